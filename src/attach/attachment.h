/*
 * attachment.h
 *		Filters that keep themselves true: what an attachment is.
 *
 * An attachment ties a source, a table of pairs (key, element), to a levels table with one
 * row for each filter: its three levels (core/levels.h).  There is a filter for each key, or
 * for each group of keys that share one (columns.c).  The levels table and triggers on the
 * source say all of it (definition.c).  Two steps keep the filters true:
 *
 *		collect		Row triggers note which pairs were touched.
 *		reconcile	At the end of the statement, and before commit for what no statement
 *					trigger covered, each touched key is locked, its touched elements are
 *					looked up in the source, and its filter is made to agree.
 *
 * docs/internals/ATTACHMENTS.md shows why this is right.
 *
 * A sink is an attachment whose source stores no rows.  Its row trigger collects the pairs of
 * rows before they are inserted, and lets none of them in; what is collected is added to the
 * filters (sink.c).
 */
#ifndef FAV_ATTACHMENT_H
#define FAV_ATTACHMENT_H

#include "fav.h"

#include "executor/spi.h"
#include "type/elements.h"
#include "utils/typcache.h"

/* The columns of a levels table. */
enum
{
	FAV_LEVELS_KEY = 1,
	FAV_LEVELS_BASE,
	FAV_LEVELS_MIDDLE,
	FAV_LEVELS_RECENT,
	FAV_LEVELS_LOG				/* the first of FAV_LOG_PARTS, in a sink */
};

#define FAV_LOG_PARTS	8

/* A level that a key does not have: the short form of the empty filter in the table. */
#define FAV_NO_LEVEL	((Datum) 0)

/* The queries about one key, whose plans are kept; queries.c has their texts. */
typedef enum FavQuery
{
	FAV_QUERY_LOCK,				/* read the levels of a key and lock them */
	FAV_QUERY_INSERT,			/* the first levels of a key */
	FAV_QUERY_SET_RECENT,
	FAV_QUERY_SET_MIDDLE,		/* and recent, and a part of the log */
	FAV_QUERY_SET_BASE,			/* and middle and recent; the log is empty then */
	FAV_QUERY_PROBE,			/* those of some elements that the source has, one by one */
	FAV_QUERY_LOOK_UP,			/* the same in one pass over the pairs of the key */
	FAV_QUERY_BUILD				/* a filter of all elements of a key */
} FavQuery;

#define FAV_NQUERIES	(FAV_QUERY_BUILD + 1)

typedef struct FavColumn
{
	NameData	name;
	AttrNumber	number;
	Oid			type;			/* a domain is its base type */
	int32		typmod;
	bool		is_domain;
	Oid			collation;
	bool		is_generated;
} FavColumn;

/* What the WHEN clause of a trigger says. */
typedef struct FavWhen
{
	Oid			named;			/* the table that it names, */
	Oid			levels;			/* and what that means: in a shard, the colocated shard */
	AttrNumber	key;			/* in the trigger's own table; 0 for a statement trigger */
	AttrNumber	element;
	AttrNumber	at;				/* the time of a row, for a sink that has it from a column */
} FavWhen;

/* A trigger of ours. */
typedef struct FavTrigger
{
	Oid			relation;
	NameData	name;
	int16		type;
	bool		is_enabled;		/* fires always */
	bool		is_clone;		/* PostgreSQL made it for a partition */
	bool		is_of_rows;
	FavWhen		when;
} FavTrigger;

typedef struct FavAttachment
{
	Oid			schema;			/* of the extension */
	Oid			source;
	Oid			levels;

	/* what the levels table says of itself (definition.c); this alone is a definition */
	Oid			function;		/* of the extension, in the default that says all of this */
	FavParams	params;			/* of recent; core/levels.h has the other levels' shares */
	int32		share;			/* this many keys share a filter; 0: each has its own */
	bool		is_sink;		/* the source stores no rows */
	int64		keep;			/* a sink forgets after this many seconds; 0: never */
	int64		period;			/* the seconds of a period */

	Oid			owner;			/* of both tables; all queries run as this role */
	FavColumn	key;			/* of the source */
	FavColumn	element;
	FavColumn	at;				/* when, in a sink that has it from a column; or number is 0 */
	FavKind		kind;			/* of what the filters hold */
	Datum		empty;			/* the value of an empty recent */
	TypeCacheEntry *key_type;
	TypeCacheEntry *filter_key_type;	/* of the key of the levels table */
	TupleDesc	pair;			/* (key, element), and the period if there is a column for it */
	bool		is_unique;		/* the source has each pair at most once */
	bool		has_index_on_pair;	/* of the source: it finds a pair at once */
	bool		has_warned;		/* of filters that are ahead of the clock */
	SPIPlanPtr	plans[FAV_NQUERIES];

	Oid			has;			/* <name>_has, if it was looked up; it may be dropped */
	Oid			key_index;		/* of levels; InvalidOid: it has no such index */

	/* the latest that has locked the source */
	LocalTransactionId lock_transaction;
	SubTransactionId lock_subtransaction;

	/* for the cache */
	List	   *relations;		/* whose changes make it stale, */
	List	   *objects;		/* and other objects */
	int			nusers;
	bool		is_ready;
	bool		is_stale;
	MemoryContext context;		/* holds all of it */
} FavAttachment;

/* Why filters cannot be kept, and what to do about it. */
typedef struct FavObstacle
{
	const char *message;
	const char *hint;
} FavObstacle;

static inline const FavObstacle *
fav_obstacle(const char *hint, const char *message)
{
	FavObstacle *found = palloc(sizeof(FavObstacle));

	found->message = message;
	found->hint = hint;
	return found;
}

extern const FavObstacle *fav_read_attachment(Oid schema, Oid levels, FavAttachment *attachment);
extern void fav_raise_obstacle(const FavObstacle *obstacle);
extern bool fav_is_in_family(Oid relation, Oid source);
extern List *fav_list_family(Oid source);
extern void fav_refuse_shard(Oid source);
extern List *fav_list_levels(Oid schema, Oid source);
extern bool fav_is_remnant(Oid schema, const FavTrigger *trigger);
extern const FavTrigger *fav_find_remnant(Oid schema, Oid source);
extern Oid	fav_choose_levels(Oid schema, Oid source, const char *name);

#endif							/* FAV_ATTACHMENT_H */
