/*
 * attach.c
 *		fav_attach, fav_sink and fav_detach.
 */
#include "attach/attachment_cache.h"
#include "attach/build.h"
#include "attach/columns.h"
#include "attach/definition.h"
#include "attach/interface.h"
#include "attach/objects.h"
#include "attach/queries.h"
#include "attach/rights.h"
#include "attach/spread.h"

#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* 100 years of 12 months, in seconds */
#define MAX_KEEP_SECONDS	((int64) 100 * 12 * DAYS_PER_MONTH * SECS_PER_DAY)

PG_FUNCTION_INFO_V1(fav_attach);
PG_FUNCTION_INFO_V1(fav_sink);
PG_FUNCTION_INFO_V1(fav_detach);

/* Lock the source with its partitions and children, and refuse what cannot be attached. */
static void
check_source(Oid source)
{
	const char *name;
	char		kind;
	ListCell   *cell;

	fav_lock_as_owner(source, ShareRowExclusiveLock);
	name = get_rel_name(source);
	kind = get_rel_relkind(source);
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_FOREIGN_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", name),
				 errdetail("Filters can be attached to ordinary and partitioned tables.")));
	if (IsCatalogRelationOid(source))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("\"%s\" is a system catalog", name)));
	if (get_rel_persistence(source) == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a temporary table", name),
				 errhint("Build a filter of it with fav_agg.")));
	foreach(cell, find_all_inheritors(source, ShareRowExclusiveLock, NULL))
	{
		Relation	relation = table_open(lfirst_oid(cell), NoLock);

		/* A statement that is under way would not fire triggers that are made now. */
		CheckTableNotInUse(relation, "attach filters to");
		if (relation->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot attach filters to rows of foreign table \"%s\"",
							RelationGetRelationName(relation)),
					 errdetail("Changes on the foreign server would not be seen here."),
					 errhint("Attach the filters on the server that has the rows.")));
		table_close(relation, NoLock);
	}
}

static void
find_usable_column(Oid source, const char *name, FavColumn *column)
{
	if (!fav_find_column(source, name, column))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table \"%s\" does not exist", name,
						get_rel_name(source))));
	if (column->number < 1 || column->is_generated)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of table \"%s\" cannot be key or element", name,
						get_rel_name(source)),
				 errdetail("System columns and generated columns change without a trigger.")));
}

/* Refuse a column because of its type. */
static void
refuse_type(const FavColumn *column, const char *problem, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("column \"%s\" has type %s, which %s", NameStr(column->name),
					format_type_be(column->type), problem),
			 errdetail("%s", detail), hint == NULL ? 0 : errhint("%s", hint)));
}

static void
find_key(Oid source, const char *name, FavAttachment *attachment)
{
	FavColumn  *key = &attachment->key;

	find_usable_column(source, name, key);
	attachment->key_type = fav_key_type(key->type);
	if (attachment->key_type == NULL)
		refuse_type(key, "cannot be a key",
					"Keys have a type with a default btree operator class that is not composite.",
					NULL);
}

static void
find_element(Oid source, const char *name, FavAttachment *attachment)
{
	FavColumn  *element = &attachment->element;

	find_usable_column(source, name, element);
	attachment->kind = fav_kind_of_column(element);
	if (attachment->kind == FAV_KIND_NONE)
		refuse_type(element, "cannot be an element",
					"Elements are smallint, integer, bigint, text, varchar, uuid or bytea.", NULL);
}

/* Can keys share filters?  Their groups are numbers, and a pair is two numbers. */
static void
check_share(FavAttachment *attachment)
{
	const FavColumn *column = &attachment->key;

	if (attachment->share < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("share %d is out of range", attachment->share),
				 errdetail("share must be at least 1.")));
	if (fav_kind_of_column(column) == FAV_KIND_INTEGER)
		column = &attachment->element;
	if (fav_kind_of_column(column) != FAV_KIND_INTEGER)
		refuse_type(column, "cannot be in filters that keys share",
					"Keys and elements of such filters are smallint, integer or bigint.",
					"Leave share out: then each key has a filter of its own.");
	attachment->kind = FAV_KIND_PAIR;
}

/*
 * The default seed.  Different integers have different hashes under any seed.  For all other
 * kinds of elements collisions can be crafted if the seed is known, so it is random.
 */
static uint64_t
choose_seed(FavKind kind)
{
	uint64_t	seed = FAV_DEFAULT_SEED;

	if (kind != FAV_KIND_INTEGER && !pg_strong_random(&seed, sizeof(seed)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random seed")));
	return seed;
}

static void
advise_index(Oid source, const FavColumn *key)
{
	if (!fav_has_index_on_key(source, key))
		ereport(WARNING,
				(errmsg("table \"%s\" has no btree index that begins with column \"%s\"",
						get_rel_name(source), NameStr(key->name)),
				 errdetail("Each delete, and each rebuild of a filter, will read the whole table."),
				 errhint("Create an index on the columns of key and element.")));
}

static void
refuse_taken_relation(Oid namespace, const char *name)
{
	Oid			taken = get_relname_relid(name, namespace);

	if (OidIsValid(taken))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("relation \"%s\" already exists", name),
				 fav_has_log(taken) ?
				 errhint("It has the filters of a sink. fav_detach or, if the sink is gone, DROP"
						 " TABLE would destroy them, and nothing can build them again.") :
				 errhint("Call fav_detach if these filters are attached, drop the table if it was"
						 " left by a source that was dropped, or, for fav_attach, choose another"
						 " name for the filters with name => '...'.")));
}

/* The errors that CREATE would raise, with a hint. */
static void
check_names(Oid source, const char *name)
{
	Oid			namespace = get_rel_namespace(source);

	refuse_taken_relation(namespace, makeObjectName(name, "fav", "levels"));
	refuse_taken_relation(namespace, makeObjectName(name, NULL, "fav"));
	fav_refuse_taken_function(namespace, makeObjectName(name, NULL, "has"));
}

/* The source and its columns, from the first arguments. */
static void
find_source(FunctionCallInfo fcinfo, FavAttachment *new)
{
	new->source = fav_source_argument(fcinfo);
	check_source(new->source);
	fav_refuse_shard(new->source);
	if (fav_find_remnant(new->schema, new->source) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has triggers of filters that are gone",
						get_rel_name(new->source)),
				 errhint("Call fav_detach first.")));
	find_key(new->source, NameStr(*PG_GETARG_NAME(1)), new);
	find_element(new->source, NameStr(*PG_GETARG_NAME(2)), new);
	if (new->key.number == new->element.number)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("key and element are the same column \"%s\"", NameStr(new->key.name))));
}

/*
 * If filters of this name are attached already, with the same parameters except `exact`, only
 * replace their function.  InvalidOid if nothing was replaced.
 */
static Oid
change_exact(const FavAttachment *new, const char *name, bool has_seed, bool exact)
{
	Oid			levels = get_relname_relid(makeObjectName(name, "fav", "levels"),
										   get_rel_namespace(new->source));
	FavAttachment old;
	FavObject	has;
	FavRole		role;

	if (!OidIsValid(levels) || !list_member_oid(fav_list_levels(new->schema, new->source), levels))
		return InvalidOid;
	LockRelationOid(levels, ShareUpdateExclusiveLock);
	if (fav_read_attachment(new->schema, levels, &old) != NULL || old.is_sink ||
		!fav_find_object(new->schema, levels, FAV_OBJECT_HAS, &has) || has.exact == exact ||
		old.key.number != new->key.number || old.element.number != new->element.number ||
		old.share != new->share || old.params.error_rate != new->params.error_rate ||
		(has_seed && old.params.seed != new->params.seed))
		return InvalidOid;
	has.exact = exact;
	fav_become_owner(&role, old.owner);
	fav_replace_has(&old, &has);
	fav_become_caller(&role);
	return has.oid;
}

/* Rows that the table has already would stay, and would not be in any filter. */
static void
check_empty(const FavAttachment *attachment)
{
	if (fav_execute_in(InvalidSnapshot, fav_query(attachment, "SELECT 1 FROM {source} LIMIT 1"),
					   SPI_OK_SELECT, 0, NULL, NULL) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not empty", get_rel_name(attachment->source)),
				 errhint("Rename it, create an empty one in its place, and insert the rows into"
						 " that after fav_sink.")));
}

/* How long a sink keeps its elements, in seconds; a month has 30 days. */
static int64
read_keep(const Interval *keep)
{
	int64		seconds = ((int64) keep->month * DAYS_PER_MONTH + keep->day) * SECS_PER_DAY +
		(keep->time + USECS_PER_SEC - 1) / USECS_PER_SEC;

	if (seconds < 1 || seconds > MAX_KEEP_SECONDS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("keep is out of range"),
				 errdetail("keep must be at least a second, and at most 100 years.")));
	return seconds;
}

/* An interval without a unit means seconds, which is seldom what was meant. */
static void
tell_keep(const FavAttachment *attachment, const Interval *keep)
{
	if (keep == NULL)
		ereport(NOTICE,
				(errmsg("sink \"%s\" keeps its elements for ever",
						get_rel_name(attachment->source))));
	else
		ereport(NOTICE,
				(errmsg("sink \"%s\" forgets elements " INT64_FORMAT " seconds (%s) after they were"
						" last inserted", get_rel_name(attachment->source), attachment->keep,
						DatumGetCString(DirectFunctionCall1(interval_out,
															IntervalPGetDatum(keep))))));
}

/*
 * Make all that an attachment consists of.  Without build the triggers are there when this
 * commits, and fav_build does the rest.  Returns <name>_has.
 */
static Oid
create_objects(FavAttachment *new, const char *name, bool exact, bool build)
{
	FavAttachment *attachment;
	FavRole		role;
	Oid			has;

	fav_become_owner(&role, fav_owner_of(new->source));
	fav_prepare_nodes(new->source);
	fav_create_levels(new, name);
	fav_create_triggers(new);

	/* not before: other nodes can insert until the triggers have locked the shards */
	if (new->is_sink)
		check_empty(new);
	attachment = fav_attachment_of_levels(new->schema, new->levels);
	if (build && !new->is_sink)
		fav_build_all(attachment);
	has = fav_create_interface(new, name, exact, build);
	fav_become_caller(&role);
	return has;
}

/* fav_attach(source, key, element, error_rate, share, seed, name, exact, build) */
Datum
fav_attach(PG_FUNCTION_ARGS)
{
	FavAttachment new = {
		.schema = fav_schema_of_function(fcinfo),.params = fav_default_params()
	};
	const char *name;
	Oid			has;

	fav_refuse_null(PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3) ||
					PG_ARGISNULL(7) || PG_ARGISNULL(8),
					"key, element, error_rate, exact and build");
	find_source(fcinfo, &new);
	name = PG_ARGISNULL(6) ? get_rel_name(new.source) : NameStr(*PG_GETARG_NAME(6));
	if (!PG_ARGISNULL(4))
	{
		new.share = PG_GETARG_INT32(4);
		check_share(&new);
	}
	new.params.error_rate = PG_GETARG_FLOAT8(3);
	new.params.seed = PG_ARGISNULL(5) ? choose_seed(new.kind) : (uint64_t) PG_GETARG_INT64(5);
	fav_check_params(&new.params);
	has = change_exact(&new, name, !PG_ARGISNULL(5), PG_GETARG_BOOL(7));
	if (OidIsValid(has))
		PG_RETURN_OID(has);
	check_names(new.source, name);
	if (fav_spread() != NULL)
		fav_spread()->check_new(&new);
	advise_index(new.source, &new.key);
	fav_notice_row_security(new.source);
	has = create_objects(&new, name, PG_GETARG_BOOL(7), PG_GETARG_BOOL(8));
	if (!PG_GETARG_BOOL(8))
		ereport(NOTICE,
				(errmsg("the filters of table \"%s\" cannot be read until they are complete",
						get_rel_name(new.source)),
				 errhint("Call the procedure fav_build.")));
	PG_RETURN_OID(has);
}

/* The column with the time of a row. */
static void
find_time(FavAttachment *attachment, const char *name)
{
	FavColumn  *at = &attachment->at;

	find_usable_column(attachment->source, name, at);
	if (at->type != TIMESTAMPTZOID && at->type != TIMESTAMPOID && at->type != DATEOID)
		refuse_type(at, "is no time of a row", "Times are timestamptz, timestamp or date.", NULL);
	if (at->number == attachment->key.number || at->number == attachment->element.number)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("column \"%s\" cannot be the time as well", name)));
	if (attachment->keep == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("at needs keep"),
				 errdetail("A sink that forgets nothing takes no notice of time.")));
}

/* fav_sink(source, key, element, keep, at, error_rate) */
Datum
fav_sink(PG_FUNCTION_ARGS)
{
	FavAttachment new = {
		.schema = fav_schema_of_function(fcinfo),.params = fav_default_params(),.is_sink = true
	};
	Interval   *keep = PG_ARGISNULL(3) ? NULL : PG_GETARG_INTERVAL_P(3);
	const char *name;
	Oid			has;

	fav_refuse_null(PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(5),
					"key, element and error_rate");
	find_source(fcinfo, &new);
	name = get_rel_name(new.source);
	if (keep != NULL)
		new.keep = read_keep(keep);
	fav_set_keep(new.keep, &new.params, &new.period);
	if (!PG_ARGISNULL(4))
		find_time(&new, NameStr(*PG_GETARG_NAME(4)));
	new.params.error_rate = PG_GETARG_FLOAT8(5);
	new.params.seed = choose_seed(new.kind);
	fav_check_params(&new.params);
	check_names(new.source, name);
	if (fav_spread() != NULL)
		fav_spread()->check_new(&new);
	has = create_objects(&new, name, false, true);
	tell_keep(&new, keep);
	PG_RETURN_OID(has);
}

/* Warn that elements are lost: they are stored in the filters of a sink only. */
static void
tell_destroyed(const FavAttachment *attachment)
{
	unsigned long nkeys;
	bool		isnull;

	(void) fav_execute_in(InvalidSnapshot,
						  fav_query(attachment, "SELECT pg_catalog.count(*) FROM ONLY {levels}"),
						  SPI_OK_SELECT, 0, NULL, NULL);
	nkeys = (unsigned long) DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
														SPI_tuptable->tupdesc, 1, &isnull));
	if (nkeys > 0)
		ereport(WARNING,
				(errmsg_plural("the filters of %lu key of sink \"%s\" are destroyed",
							   "the filters of %lu keys of sink \"%s\" are destroyed",
							   nkeys, nkeys, get_rel_name(attachment->source)),
				 errdetail("A sink stores no rows, so nothing can build them again."),
				 errhint("Only ROLLBACK, if this is in a transaction, or a backup can bring them"
						 " back.")));
}

/* Drop filters with all that belongs to them; there may be triggers only, and no levels table. */
static void
drop_filters(Oid schema, Oid source, Oid levels)
{
	FavAttachment attachment = {.schema = schema,.source = source,.levels = levels};
	FavAttachment definition;
	FavRole		role;

	fav_become_owner(&role, fav_owner_of(source));
	fav_prepare_nodes(levels);
	if (OidIsValid(levels) &&
		(fav_read_definition(schema, levels, &definition) ? definition.is_sink :
		 fav_has_log(levels)))
		tell_destroyed(&attachment);
	fav_drop_objects(schema, source, levels);
	fav_become_caller(&role);
}

/*
 * fav_detach(source, name).  The filters are dropped, too: without triggers they would miss the
 * next write, and nobody would notice.
 */
Datum
fav_detach(PG_FUNCTION_ARGS)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	Oid			source = fav_source_argument(fcinfo);
	const char *name = PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1));
	const FavTrigger *remnant;
	const char *commands;
	Oid			levels;
	Oid			view;

	/* the source first, as its writers do, whichever trigger is the first to be dropped */
	fav_lock_as_owner(source, AccessExclusiveLock);
	fav_refuse_shard(source);
	(void) find_all_inheritors(source, AccessExclusiveLock, NULL);
	remnant = fav_find_remnant(schema, source);
	if (remnant != NULL)
	{
		/* what undistribute_table has left, and nothing else in the same call */
		for (; remnant != NULL; remnant = fav_find_remnant(schema, source))
			drop_filters(schema, source, remnant->when.named);
		PG_RETURN_VOID();
	}
	levels = fav_choose_levels(schema, source, name);

	/* a reader locks the view first, too */
	view = fav_view_of_levels(schema, levels);
	if (OidIsValid(view))
		LockRelationOid(view, AccessExclusiveLock);
	LockRelationOid(levels, AccessExclusiveLock);
	levels = fav_choose_levels(schema, source, name);
	commands = fav_list_owner_commands(schema, source, levels);
	if (commands != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the filters of table \"%s\" do not belong to its owner",
						get_rel_name(source)),
				 errhint("%s", commands)));
	drop_filters(schema, source, levels);
	PG_RETURN_VOID();
}
