/*
 * changes.h
 *		What a statement on the source has changed, gathered by key.
 */
#ifndef FAV_CHANGES_H
#define FAV_CHANGES_H

#include "attach.h"

#include "commands/trigger.h"
#include "utils/typcache.h"

typedef struct Change
{
	Datum		element;		/* bigint for any integer */
	uint64_t	hash;			/* for the attachment's seed */
	int32		delta;			/* so many rows more (or less) have the pair */
	uint32		next;			/* of the same key, while they are being gathered */
} Change;

/* A growing list of them. */
typedef struct Changes
{
	Change	   *list;
	size_t		count;
	size_t		room;
} Changes;

/* How to deal with the changes of a call. */
typedef struct Maintenance
{
	FavAttachment *attachment;
	AttrNumber	key_number;
	AttrNumber	element_number;
	bool		look_up_gone;	/* it may still be in the source */
	bool		look_up_new;	/* it may no longer be in the source */
	bool		add_first;		/* it may never have been added */
	bool		distinct;		/* no pair comes twice, or goes and comes */
	TypeCacheEntry *key_type;
} Maintenance;

/*
 * Call fav_change_key() for each key of a statement's transition tables (NULL: there
 * is none), or of one row, in the sort order of the keys.
 */
extern void fav_change_statement(Maintenance *maintenance, Relation relation,
								 Tuplestorestate *old_table, Tuplestorestate *new_table);
extern void fav_change_row(Maintenance *maintenance, TriggerData *data);

/* Apply the changes of one key.  (maintain.c) */
extern void fav_change_key(const Maintenance *maintenance, Datum key, Changes *changes);

#endif							/* FAV_CHANGES_H */
