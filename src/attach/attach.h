/*
 * attach.h
 *		Filters that keep themselves true: what an attachment is, and what its parts share.
 *
 * An attachment ties a source, a table of pairs (key, element), to a levels table with one
 * row for each filter: its three levels (core/levels.h).  There is a filter for each key, or
 * for each group of keys that share one (mapping.c).  The levels table and triggers on the
 * source say all of it (definition.c).  Two steps keep the filters true:
 *
 *		collect		Row triggers note which pairs were touched.
 *		reconcile	At the end of the statement, and before commit for what no statement
 *					trigger covered, each touched key is locked, its touched elements are
 *					looked up in the source, and its filter is made to agree.
 *
 * docs/ATTACHMENTS.md shows why this is right.
 *
 * A sink is an attachment whose source stores no rows.  Its row trigger collects the pairs of
 * rows before they are inserted, and lets none of them in; what is collected is added to the
 * filters (sink.c).
 */
#ifndef FAV_ATTACH_H
#define FAV_ATTACH_H

#include "fav.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "type/elements.h"
#include "executor/spi.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "toast_cache.h"
#include "utils/snapshot.h"
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

#define FAV_LOG_PARTS	4

/* A level that a key does not have: the short form of the empty filter in the table. */
#define FAV_NO_LEVEL	((Datum) 0)

/* The queries about one key, whose plans are kept; queries.c has their texts. */
typedef enum FavQuery
{
	FAV_QUERY_LOCK,				/* read the levels of a key and lock them */
	FAV_QUERY_INSERT,			/* the first levels of a key */
	FAV_QUERY_SET_RECENT,
	FAV_QUERY_SET_MIDDLE,		/* and recent */
	FAV_QUERY_SET_BASE,			/* and middle and recent */
	FAV_QUERY_SINK_MIDDLE,		/* middle, log and recent of a sink */
	FAV_QUERY_SINK_BASE,		/* all levels of a sink */
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

/* What a levels table says of itself. */
typedef struct FavDefinition
{
	Oid			source;
	FavParams	params;			/* error rate and seed */
	int32		share;			/* this many keys share a filter; 0: each has its own */
	bool		is_sink;		/* the source stores no rows */
	int64		keep;			/* a sink forgets after this many seconds; 0: never */
	int64		period;			/* the seconds of a period */
	Oid			function;		/* of the extension, in the default that says all of this */
} FavDefinition;

/* What the WHEN clause of a trigger says. */
typedef struct FavWhen
{
	Oid			named;			/* the table that it names, */
	Oid			levels;			/* and what that means: in a shard, the shard beside it */
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
	Oid			owner;			/* of both tables; all queries run as this role */
	FavColumn	key;			/* of the source */
	FavColumn	element;
	FavColumn	at;				/* when, in a sink that has it from a column; or number is 0 */
	FavKind		kind;			/* of what the filters hold */
	FavParams	params;			/* of recent; core/levels.h has the other levels' shares */
	int32		share;			/* this many keys share a filter; 0: each has its own */
	bool		is_sink;		/* the source stores no rows */
	int64		keep;			/* a sink forgets after this many seconds; 0: never */
	int64		period;			/* the seconds of a period */
	Datum		empty;			/* the value of an empty recent */
	TypeCacheEntry *key_type;
	TypeCacheEntry *filter_key_type;	/* of the key of the levels table */
	TypeCacheEntry *element_type;
	TupleDesc	pair;			/* (key, element), and the period if there is a column for it */
	bool		is_unique;		/* the source has each pair at most once */
	bool		has_index_on_pair;	/* of the source */
	bool		are_indexes_known;	/* these two are set */
	bool		has_warned;		/* of filters that are ahead of the clock */
	SPIPlanPtr	plans[FAV_NQUERIES];

	Oid			key_index;		/* the primary key of levels; InvalidOid: not as we made it */
	bool		is_key_index_known;

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

/* definition.c: where an attachment is written down */
extern Datum fav_make_recent(const FavParams *params);
extern void fav_set_keep(int64 seconds, FavParams *params, int64 *period);
extern bool fav_read_definition(Oid schema, Oid levels, FavDefinition *definition);
extern bool fav_read_when(Oid relation, const char *expression, bool is_of_rows, FavWhen *when);
extern List *fav_read_triggers(Oid schema, Oid relation);

/* columns.c: the columns of key and element */
extern bool fav_find_column(Oid relation, const char *name, FavColumn *column);
extern FavKind fav_kind_of_column(const FavColumn *column);
extern TypeCacheEntry *fav_key_type(Oid key);
extern bool fav_has_unique_pairs(FavAttachment *attachment);
extern bool fav_has_index_on_pair(FavAttachment *attachment);
extern bool fav_has_index_on_key(Oid source, const FavColumn *key);

/* attachment.c: what the catalogs say of an attachment, and whether it can be kept */

/* Why filters cannot be kept, and what to do about it. */
typedef struct FavObstacle
{
	const char *message;
	const char *hint;
} FavObstacle;

extern const FavObstacle *fav_read_attachment(Oid schema, Oid levels, FavAttachment *attachment);
pg_noreturn extern void fav_raise_obstacle(const FavObstacle *obstacle);
extern bool fav_is_in_family(Oid relation, Oid source);
extern List *fav_list_family(Oid source);
extern List *fav_list_levels(Oid schema, Oid source);
extern bool fav_is_remnant(Oid schema, const FavTrigger *trigger);
extern const FavTrigger *fav_find_remnant(Oid schema, Oid source);
extern Oid	fav_choose_levels(Oid schema, Oid source, const char *name);

/* cache.c: attachments that are ready for use */
extern FavAttachment *fav_attachment_of_trigger(FunctionCallInfo fcinfo, FavWhen *when);
extern void fav_refuse_left(FunctionCallInfo fcinfo);
extern FavAttachment *fav_attachment_of_levels(Oid schema, Oid levels);
extern void fav_lock_for_reading(Oid schema, Oid levels);
extern FavAttachment *fav_attachment_of_arguments(FunctionCallInfo fcinfo, int name_argument);
extern void fav_keep_attachment(FavAttachment *attachment);
extern void fav_lock_source(FavAttachment *attachment);
extern Oid	fav_schema_of_function(FunctionCallInfo fcinfo);
extern Oid	fav_source_argument(FunctionCallInfo fcinfo);

/* owner.c: acting as the owner of the tables */
typedef struct FavRole
{
	Oid			user;
	int			security;
	int			guc_level;
} FavRole;

extern void fav_set_option(const char *name, const char *value);
extern void fav_become_owner(FavRole *role, Oid owner);
extern void fav_become_caller(const FavRole *role);
extern Oid	fav_owner_of(Oid relation);
extern void fav_check_owner(Oid relation);
extern void fav_lock_as_owner(Oid relation, LOCKMODE mode);

/* queries.c: the texts of queries, and executing them */
extern char *fav_relation_name(Oid relation);
extern const char *fav_element_type_name(FavKind kind);
extern char *fav_query(const FavAttachment *attachment, const char *text);
extern void fav_run(const char *command);
extern uint64 fav_execute(FavAttachment *attachment, FavQuery query, Datum *values,
						  const char *nulls, int expected);
extern uint64 fav_execute_in(Snapshot snapshot, const char *text, int expected, int nvalues,
							 Oid *types, Datum *values);

/* objects.c: the levels table and triggers of an attachment */
extern const char *fav_own_column(const char *name, const char *key);
extern void fav_create_levels(FavAttachment *attachment, const char *key_name,
							  const char *levels_name);
extern void fav_create_triggers(const FavAttachment *attachment);
extern void fav_drop_objects(Oid schema, Oid source, Oid levels);
extern bool fav_is_active(const FavAttachment *attachment);
extern bool fav_has_key_index(const FavAttachment *attachment);
extern bool fav_is_key_index(const FavAttachment *attachment, Oid index);
extern void fav_free_left(const FavAttachment *attachment);

/* readers.c: the function and the view that people read with */
typedef struct FavHas
{
	Oid			function;		/* <name>_has */
	bool		exact;			/* looks up in the source what the filter reports */
	bool		complete;		/* all filters were built */
} FavHas;

extern List *fav_dependents(Oid table, Oid dependent_class);
extern const char *fav_list_owner_commands(Oid schema, Oid source, Oid levels);
extern bool fav_find_has(Oid schema, Oid levels, FavHas *has);
extern void fav_create_has(const FavAttachment *attachment, const char *name, bool exact,
						   bool complete);
extern void fav_replace_has(const FavAttachment *attachment, const FavHas *has);
extern void fav_refuse_taken_function(Oid namespace, const char *name);
extern Oid	fav_view_of_levels(Oid schema, Oid levels);
extern void fav_create_view(const FavAttachment *attachment, const char *view_name);
extern void fav_grant_to_readers(const FavAttachment *attachment, Oid relation);
extern void fav_notice_row_security(Oid source);
extern bool fav_is_complete(Oid schema, Oid levels);
extern void fav_complete(const FavAttachment *attachment);
extern void fav_drop_readers(Oid schema, Oid levels);
extern List *fav_dependents(Oid table, Oid dependent_class);
extern FuncExpr *fav_read_body(Oid function, Oid owner);

/* has.c: what the function means */
extern Oid	fav_argument_type(const FavColumn *column);

/* list.c: all attachments */
extern List *fav_list_attachments_of_all(Oid schema);

/* shards.c: sources that Citus has spread over servers */
extern Oid	fav_shell(Oid relation);
extern Oid	fav_beside(Oid relation, Oid table);
extern Oid	fav_find_named(Datum name);
extern bool fav_is_being_copied(Oid relation, Oid source);
extern const FavObstacle *fav_check_spread(Oid source, Oid levels);
extern void fav_refuse_unknown_shard(Oid relation, Oid source);
extern bool fav_has_citus(void);
extern bool fav_is_spread(Oid table);
extern void fav_refuse_shard(Oid source);
extern void fav_check_distribution(const FavAttachment *attachment);
extern void fav_distribute_levels(const FavAttachment *attachment, const char *key_name);
extern void fav_prepare_nodes(Oid source);
extern void fav_refuse_distributed(Oid source, Oid function);
extern void fav_build_shards(const FavAttachment *attachment, bool rebuild);

/* mapping.c: from a row of the source to the key of its filter, and to its hash */
extern FavKind fav_kind_of_row(const FavAttachment *attachment);
extern int64 fav_integer(Oid type, Datum value);
extern Datum fav_filter_key(const FavAttachment *attachment, Datum key);
extern void fav_filter_range(const FavAttachment *attachment, Datum filter_key, Datum *range);
extern uint64_t fav_hash_row(const FavAttachment *attachment, Datum key, Datum element);

/* rows.c: the row of a filter in its levels table */
typedef struct FavRowLevel
{
	Datum		value;
	FavReader  *reader;			/* NULL: not opened yet */
	FavReader	local;			/* for a value that is not out of line */
	FavReaderCache	cache;			/* for one that is */
} FavRowLevel;

typedef struct FavRow
{
	FavAttachment *attachment;
	Datum		key;			/* of the filter */
	bool		is_locked;
	bool		is_built_anew;	/* whatever its levels are: they may be damaged */
	ItemPointerData tid;		/* where the version is that was read, */
	TransactionId xmin;			/* and who has written it */
	FavFilter	recent;
	FavRowLevel base;
	FavRowLevel middle;
	Datum		log[FAV_LOG_PARTS]; /* of a sink */
} FavRow;

/* What is written. */
typedef struct FavWritten
{
	Datum		recent;
	Datum		middle;
	Datum		base;
	Datum		log;			/* one part of it, */
	int			part;			/* and its number, from 0 */
} FavWritten;

extern void fav_open_value(FavFilter *filter, Datum value);
extern bool fav_read_row(FavRow *row);
extern FavReader *fav_row_base(FavRow *row);
extern FavReader *fav_row_middle(FavRow *row);
extern void fav_forget_below_recent(FavRow *row, int32 period);
extern bool fav_row_reports_below_recent(FavRow *row, uint64_t hash);
extern void fav_new_level(const FavAttachment *attachment, double error_share, uint64 capacity,
						  FavEditor *editor);
extern bool fav_write_row(FavRow *row, FavQuery query, const FavWritten *levels);
extern bool fav_insert_row(FavRow *row, const FavWritten *levels);
pg_noreturn extern void fav_raise_not_written(const FavAttachment *attachment);

/* reconcile.c: making the filter of one key agree with the source */

/* What is known of touched elements without looking them up. */
typedef enum FavKnown
{
	FAV_UNKNOWN,
	FAV_ALL_PRESENT,
	FAV_ALL_ABSENT
} FavKnown;

typedef struct FavKey FavKey;

/* A list of hashes that grows. */
typedef struct FavHashes
{
	uint64_t   *values;
	size_t		count;
	size_t		allocated;
} FavHashes;

extern void fav_append_hash(FavHashes *hashes, uint64_t hash);
extern int	fav_compare_hashes(const void *a, const void *b);
extern void fav_sort_hashes(FavHashes *hashes);

extern FavKey *fav_open_key(FavAttachment *attachment, Datum filter_key, FavKnown known);
extern void fav_touch_row(FavKey *key, Datum row_key, Datum element);
extern void fav_reconcile_key(FavKey *key);
extern void fav_rebuild_key(FavAttachment *attachment, Datum filter_key);

/* sink.c: the filters of a sink */
typedef enum FavAction
{
	FAV_ADD,
	FAV_REMOVE,
	FAV_EXCLUDE
} FavAction;

/* A change of some elements of a filter, all in the same way. */
typedef struct FavChange
{
	FavAction	action;
	FavHashes	hashes;			/* sorted and unique, unless they have periods of their own */
	int32	   *periods;		/* of each, in ascending order; NULL: the present one for all */
	bool	   *is_new;			/* to be set for each that was not reported before; or NULL */
	int32		present;		/* set when the filter is changed */
} FavChange;

extern int32 fav_period_of_time(const FavAttachment *attachment, Datum time);
extern void fav_change_sink(FavAttachment *attachment, Datum filter_key, FavChange *change);
extern void fav_refuse_sink(const FavAttachment *attachment, const char *function);

/* sink_functions.c: <sink>_add and <sink>_remove */
extern void fav_create_sink_functions(const FavAttachment *attachment);
extern const char *fav_name_of_remove(const FavAttachment *attachment);
extern void fav_drop_sink_functions(Oid schema, Oid levels);

/* collect.c: the triggers */
extern void fav_forget_known(void);
extern void fav_settle(const FavAttachment *attachment);

/* rebuild.c: filters from the source */
#define FAV_MAX_CONDITION_KEYS	4

extern Datum fav_read_key(const FavAttachment *attachment, Datum text_key);
extern void fav_build_key(FavAttachment *attachment, Datum filter_key, Datum *base,
						  Datum *recent);
extern uint64 fav_insert_filters(FavAttachment *attachment, const char *rows,
								 const char *filters, const char *form, const char *end,
								 int nkeys, const Datum *keys);
extern void fav_build_all(FavAttachment *attachment);
extern void fav_rebuild_after_truncate(Oid schema, Oid levels, Oid truncated);
extern void fav_forget_truncates(void);

/* progress.c: telling others how far it is */
typedef enum FavPhase
{
	FAV_PHASE_BUILD,
	FAV_PHASE_REBUILD,
	FAV_PHASE_STALE,
	FAV_PHASE_MISSING
} FavPhase;

typedef struct FavProgress
{
	Oid			source;
	FavPhase	phase;
	TimestampTz begin;
	int64		keys;			/* of filters that are done, */
	int64		estimated;		/* and of all; -1: not known */
	int64		rows;			/* of the source that were read for them */
} FavProgress;

extern void fav_begin_progress(FavProgress *progress, FavPhase phase,
							   const FavAttachment *attachment);
extern void fav_report_progress(const FavProgress *progress);
extern void fav_end_progress(void);

#endif							/* FAV_ATTACH_H */
