/*
 * attach.h
 *		Filters that maintain themselves: what an attachment is, and the few
 *		things that attaching, maintaining, rebuilding and verifying share.
 *
 * An attachment ties a source, a table of pairs (key, element), to a target, a
 * table with one filter for each key.  It consists of a row in the extension's
 * table fav_attachment and of triggers on the source, which are called
 * fav_<number>_<event> and have the number as their only argument.
 *
 *		attach.c		fav_attach, fav_detach
 *		attachment.c	finding and checking attachments
 *		queries.c		their queries
 *		watch.c			the cache for triggers
 *		statements.c	statements that have begun and not ended
 *		maintain.c		the triggers
 *		rebuild.c		filters from the source; fav_rebuild
 *		verify.c		fav_verify, and the counts of view fav_attachments
 */
#ifndef FAV_ATTACH_H
#define FAV_ATTACH_H

#include "fav.h"

#include "elements.h"
#include "executor/spi.h"
#include "hashset.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"

/* The triggers of one attachment. */
typedef enum FavTrigger
{
	FAV_TRIGGER_BEFORE,			/* before each statement: it has begun */
	FAV_TRIGGER_INSERT,			/* after each statement, with its rows */
	FAV_TRIGGER_UPDATE,
	FAV_TRIGGER_DELETE,
	FAV_TRIGGER_TRUNCATE,
	FAV_TRIGGER_ROW				/* after each row, where no statement comes by */
} FavTrigger;

#define FAV_NTRIGGERS	(FAV_TRIGGER_ROW + 1)

/* The queries of an attachment; queries.c has their texts. */
typedef enum FavQuery
{
	FAV_QUERY_APPLY,			/* apply changes to the filter of a key */
	FAV_QUERY_LOCK,				/* lock and read the filter of a key */
	FAV_QUERY_SET,				/* write it */
	FAV_QUERY_INSERT,			/* a first filter for a key */
	FAV_QUERY_PRESENT_FEW,		/* which of these elements has the source? */
	FAV_QUERY_PRESENT_MANY,
	FAV_QUERY_SCAN,				/* all elements of a key */
	FAV_QUERY_SCAN_ALL,			/* all keys and elements, by key */
	FAV_QUERY_EMPTY,			/* empty all filters */
	FAV_QUERY_EMPTY_REST		/* empty those of keys the source does not have */
} FavQuery;

#define FAV_NQUERIES	(FAV_QUERY_EMPTY_REST + 1)

/* A column of the source or the target. */
typedef struct FavColumn
{
	AttrNumber	number;
	NameData	name;
	Oid			type;			/* a domain is its base type */
	Oid			collation;
} FavColumn;

typedef struct FavAttachment
{
	Oid			source;
	int32		number;
	Oid			target;
	Oid			source_owner;
	Oid			target_owner;	/* maintenance runs as this role */
	FavColumn	key;
	FavColumn	element;
	FavColumn	target_key;
	FavColumn	filter;
	bool		renamed;		/* columns are no longer called as noted */
	FavParams	params;
	FavKind		kind;			/* of the elements */
	bool		unique;			/* a unique index keeps pairs from repeating */
	bool		guarded;		/* must set search_path and row_security */

	/* from the default btree operator class of the key's type */
	Oid			key_type;		/* what its operators take */
	Oid			key_less;
	Oid			key_equal;
	Oid			target_equal;	/* target key with source key */

	Oid			schema;			/* of the extension */
	Datum		empty;			/* an empty filter; only for triggers */
	SPIPlanPtr	plans[FAV_NQUERIES];
} FavAttachment;

/* What a trigger knows: its attachment, and the columns in its own table. */
typedef struct FavWatch
{
	Oid			relation;
	int32		number;
	FavAttachment attachment;
	AttrNumber	key_number;
	AttrNumber	element_number;
	List	   *ancestors;		/* of the relation, itself first */
	Oid			function;		/* fav_maintain */
	uint32		function_hash;	/* in the cache of functions */
	Oid			triggers[FAV_NTRIGGERS];	/* that were seen and found to be right */
	int			users;			/* calls that are using it now */
	bool		valid;
} FavWatch;

/* attachment.c: names of the table, the triggers and their states */
#define FAV_CATALOG		"fav_attachment"

enum
{
	FAV_CATALOG_SOURCE = 1,
	FAV_CATALOG_NUMBER,
	FAV_CATALOG_KEY,
	FAV_CATALOG_ELEMENT,
	FAV_CATALOG_TARGET,
	FAV_CATALOG_TARGET_KEY,
	FAV_CATALOG_FILTER,
	FAV_CATALOG_ERROR_RATE,
	FAV_CATALOG_ELEMENTS,
	FAV_CATALOG_COLUMNS,
	FAV_CATALOG_NATTS = FAV_CATALOG_COLUMNS
};

extern char *fav_trigger_name(int32 number, FavTrigger trigger);

/* attachment.c: one row of the table, as it is */
typedef struct FavCatalogRow
{
	Oid			source;
	int32		number;
	Oid			target;
	NameData	names[4];		/* key, element, target_key, filter */
	AttrNumber	numbers[4];		/* the same; 0 where unknown */
	double		error_rate;
	Oid			elements;		/* bigint for any integer; 0 where unknown */
} FavCatalogRow;

extern Oid	fav_catalog_oid(Oid schema);

/* Rows of this source (InvalidOid: all), as a list of FavCatalogRow. */
extern List *fav_catalog_rows(Oid schema, Oid source);

/* The one row that the arguments of an SQL function mean. */
extern FavCatalogRow *fav_catalog_choose(Oid schema, Oid source, Oid target, const char *filter);

/* attachment.c: from the row to the attachment */
extern void fav_attachment_resolve(FavAttachment *attachment, Oid schema, const FavCatalogRow *row);
extern void fav_check_owner(Oid relation);
extern void fav_attachment_check_rights(const FavAttachment *attachment);
extern bool fav_column_find(Oid relation, const char *name, AttrNumber number, FavColumn *column);
extern void fav_check_key_type(const FavColumn *column);
extern SPIPlanPtr fav_attachment_plan(FavAttachment *attachment, FavQuery query);
extern char *fav_relation_name(Oid relation);
extern void fav_append_equal(StringInfo query, const FavAttachment *attachment,
							 const char *source_element, const char *element);
extern void fav_append_key_equal(StringInfo query, const FavAttachment *attachment, const char *key);
extern Oid	fav_element_type(FavKind kind);
extern const char *fav_element_type_name(FavKind kind);

/* watch.c */
extern FavWatch *fav_watch_find(Oid function, Oid relation, int32 number);
extern FavWatch *fav_watch_load(Oid function, Relation relation, int32 number);
extern void fav_watch_use(FavWatch *watch);
extern void fav_watch_close(FavWatch *watch);
extern void fav_watch_forget_users(void);

/* attachment.c: acting for somebody else, in a safe environment */
typedef struct FavRole
{
	Oid			user;
	int			security;
	int			guc_level;		/* 0: settings are as they were */
} FavRole;

extern void fav_role_begin(FavRole *role, Oid user, bool guarded);
extern void fav_role_end(const FavRole *role);

/* statements.c: a statement on an attached table that has begun and not ended */
typedef struct FavStatement
{
	Oid			source;
	int32		number;			/* of the attachment */
	Oid			relation;		/* source, or a partition or child of it */
	CommandId	command;
	int			level;			/* of the transaction, in savepoints */
	bool		several;		/* one of the parts of one statement: MERGE, ON
								 * CONFLICT, WITH */
	bool		nested;			/* others began or ended while it was open */
} FavStatement;

extern void fav_statement_begins(const FavWatch *watch);
extern void fav_statement_ends(const FavWatch *watch, FavStatement *ended);
extern bool fav_statement_is_open(void);
extern bool fav_statement_brings(const FavWatch *watch, CommandId command);

/* attach.c: keep the noted names up with renamed columns */
extern void fav_catalog_rename(FavAttachment *attachment);

/* rebuild.c */
extern Datum fav_empty_filter(const FavAttachment *attachment);
extern Datum fav_build_filter(const FavParams *wanted, FavHashSet *set);
extern Datum fav_build_key(FavAttachment *attachment, Datum key);
extern bool fav_is_worn(const FavFilter *filter);
extern void fav_build_all(FavAttachment *attachment, bool fresh);
extern void fav_set_filter(FavAttachment *attachment, Datum key, Datum filter);
extern bool fav_insert_filter(FavAttachment *attachment, Datum key, Datum filter);
extern bool fav_lock_filter(FavAttachment *attachment, Datum key, Datum *filter, bool *isnull);
extern void fav_lock_source(Oid source, LOCKMODE mode);

static inline Datum
fav_element_datum(const FavAttachment *attachment, Datum value)
{
	switch (attachment->element.type)
	{
		case INT2OID:
			return Int64GetDatum((int64) DatumGetInt16(value));
		case INT4OID:
			return Int64GetDatum((int64) DatumGetInt32(value));
		default:
			return value;
	}
}

#endif							/* FAV_ATTACH_H */
