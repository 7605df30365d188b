/*
 * attach.h
 *		Filters that keep themselves true: what an attachment is, and what its parts
 *		share.
 *
 * An attachment ties a source, a table of pairs (key, element), to a levels table with one
 * row for each key: the three levels of its filter (core/levels.h).  It consists of
 * triggers on the source and nothing else.  Two steps keep the filters true:
 *
 *		collect		Row triggers note which pairs were touched.
 *		reconcile	At the end of the statement, and before commit for what no statement
 *					trigger covered, each touched key is locked, its touched elements are
 *					looked up in the source, and its filter is made to agree.
 *
 * docs/ATTACHMENTS.md shows why this is right.
 *
 *		triggers.c		what triggers of ours say
 *		attachment.c	attachments, their queries, and the cache of them
 *		owner.c			acting as the owner of the tables
 *		attach.c		fav_attach, fav_detach
 *		objects.c		the table, view, function and triggers of an attachment
 *		collect.c		the row triggers, and when to reconcile
 *		reconcile.c		making the filter of one key agree with the source
 *		rebuild.c		filters from the source: fav_rebuild, and TRUNCATE
 *		verify.c		fav_verify and fav_attachment_stats
 *		list.c			the view fav_attachments
 *		levels.c		reading levels in SQL
 */
#ifndef FAV_ATTACH_H
#define FAV_ATTACH_H

#include "fav.h"

#include "catalog/pg_type.h"
#include "type/elements.h"
#include "executor/spi.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/snapshot.h"
#include "utils/typcache.h"

/* The trigger functions. */
#define FAV_COLLECT		"fav_collect"
#define FAV_RECONCILE	"fav_reconcile"

/* The columns of a levels table. */
enum
{
	FAV_LEVELS_KEY = 1,
	FAV_LEVELS_BASE,
	FAV_LEVELS_MIDDLE,
	FAV_LEVELS_RECENT
};

/* The queries of an attachment; attachment.c has their texts. */
typedef enum FavQuery
{
	FAV_QUERY_READ,				/* read the levels of a key */
	FAV_QUERY_LOCK,				/* the same, and lock them */
	FAV_QUERY_INSERT,			/* the first levels of a key */
	FAV_QUERY_SET_RECENT,
	FAV_QUERY_SET_MIDDLE,		/* and recent */
	FAV_QUERY_SET_BASE,			/* and middle and recent */
	FAV_QUERY_LOOK_UP,			/* those of some elements that the source has */
	FAV_QUERY_BUILD				/* a filter of all elements of a key */
} FavQuery;

#define FAV_NQUERIES	(FAV_QUERY_BUILD + 1)

typedef struct FavColumn
{
	NameData	name;
	AttrNumber	number;
	Oid			type;			/* a domain is its base type */
	Oid			collation;
} FavColumn;

/* What the WHEN clause of a trigger says. */
typedef struct FavWhen
{
	Oid			levels;
	Oid			source;
	AttrNumber	key;			/* in the trigger's own table; 0 for a statement trigger */
	AttrNumber	element;
} FavWhen;

/* A trigger of ours as the catalog has it. */
typedef struct FavTrigger
{
	Oid			relation;
	NameData	name;
	int16		type;
	bool		is_enabled;		/* fires always */
	bool		is_of_rows;
	FavWhen		when;
	FavParams	params;			/* error rate and seed */
} FavTrigger;

typedef struct FavAttachment
{
	Oid			source;
	Oid			levels;
	Oid			schema;			/* of the extension */
	Oid			owner;			/* of both tables; all queries run as this role */
	FavColumn	key;
	FavColumn	element;
	FavKind		kind;			/* of the elements */
	bool		is_unique;		/* the source has each pair at most once */
	TypeCacheEntry *key_type;
	int16		element_length;
	bool		element_by_value;
	char		element_align;
	FavParams	params;			/* of recent; levels.h has the shares of the other levels */
	Datum		empty;			/* the value of an empty recent */
	List	   *family;			/* the source with its partitions and children */
	SPIPlanPtr	plans[FAV_NQUERIES];
	MemoryContext context;		/* holds all of it */
} FavAttachment;

/* triggers.c */
extern bool fav_read_when(const char *expression, FavWhen *when);
extern bool fav_read_arguments(int count, const char *first, const char *second, FavParams *params);
extern List *fav_read_triggers(Oid schema, Oid relation);

/* attachment.c */
extern bool fav_is_in_family(Oid relation, Oid source);
extern Oid	fav_choose_levels(Oid schema, Oid source, const char *name);
extern FavAttachment *fav_attachment_of_levels(Oid schema, Oid source, Oid levels);
extern FavAttachment *fav_attachment_refresh(FavAttachment *old);
extern FavAttachment *fav_attachment_of_trigger(FunctionCallInfo fcinfo, FavWhen *when);
extern void fav_release_stale_attachments(void);
extern SPIPlanPtr fav_attachment_plan(FavAttachment *attachment, FavQuery query);
extern void fav_find_column(Oid relation, const char *name, FavColumn *column);
extern FavKind fav_kind_of_column(const FavColumn *column);
extern TypeCacheEntry *fav_check_key(const FavColumn *column);
extern const char *fav_equality(const TypeCacheEntry *key_type);
extern const char *fav_element_type_name(FavKind kind);
extern char *fav_relation_name(Oid relation);
extern char *fav_schema_name(Oid schema);
extern Oid	fav_schema_of_function(FunctionCallInfo fcinfo);
extern Oid	fav_get_relation_argument(FunctionCallInfo fcinfo, int number, const char *name);

/* owner.c */
typedef struct FavRole
{
	Oid			user;
	int			security;
	int			guc_level;
} FavRole;

extern void fav_become_owner(FavRole *role, Oid owner);
extern void fav_prefer_indexes(void);
extern void fav_become_caller(const FavRole *role);
extern Oid	fav_owner_of(Oid relation);
extern bool fav_has_owner(Oid relation, Oid owner);
extern void fav_check_owner(Oid relation);
extern void fav_spi_connect(void);
extern void fav_spi_run(const char *query);
extern uint64 fav_spi_execute(SPIPlanPtr plan, Datum *values, const char *nulls, int expected);
extern uint64 fav_spi_read_source(FavAttachment *attachment, FavQuery query, Datum *values);
extern uint64 fav_spi_execute_latest(const char *query, int nvalues, Oid *types, Datum *values);

/* objects.c */
extern Oid	fav_create_objects(Oid schema, Oid source, const FavColumn *key, FavKind kind, const char *view_name,
							   const char *levels_name);
extern void fav_create_triggers(Oid schema, Oid source, Oid levels, const FavColumn *key, const FavColumn *element,
								const FavParams *params);
extern void fav_drop_objects(Oid schema, Oid levels);
extern bool fav_is_active(Oid schema, Oid source, Oid levels);
extern Oid	fav_view_of_levels(Oid schema, Oid levels);


/* reconcile.c */

/* What is known of touched elements without looking them up. */
typedef enum FavKnown
{
	FAV_UNKNOWN,
	FAV_ALL_PRESENT,
	FAV_ALL_ABSENT
} FavKnown;

extern void fav_reconcile_key(FavAttachment *attachment, Datum key, const Datum *elements, int count,
							  FavKnown known);
extern void fav_rebuild_key(FavAttachment *attachment, Datum key);

/* rebuild.c */
extern void fav_build_key(FavAttachment *attachment, Datum key, uint64 seed, Datum *base, Datum *recent);
extern void fav_build_all(FavAttachment *attachment);
extern void fav_rebuild_after_truncate(FavAttachment *attachment, Oid truncated);

#define FAV_NO_LEVEL	((Datum) 0)

/* An element as the functions of its kind take it. */
static inline uint64_t
fav_hash_element(const FavAttachment *attachment, Datum element, uint64_t seed)
{
	if (attachment->element.type == INT2OID)
		element = Int64GetDatum((int64) DatumGetInt16(element));
	else if (attachment->element.type == INT4OID)
		element = Int64GetDatum((int64) DatumGetInt32(element));
	return fav_hash_datum(attachment->kind, element, seed);
}

#endif							/* FAV_ATTACH_H */
