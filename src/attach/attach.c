/*
 * attach.c
 *		fav_attach, fav_sink and fav_detach.
 */
#include "attach/build.h"
#include "attach/objects.h"
#include "attach/queries.h"
#include "attach/sink.h"
#include "attach/spread.h"

#include "catalog/pg_type.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
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
	List	   *family;
	ListCell   *cell;
	char		kind;

	fav_lock_as_owner(source, ShareRowExclusiveLock);
	kind = get_rel_relkind(source);
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_FOREIGN_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", get_rel_name(source)),
				 errdetail("Filters can be attached to ordinary and partitioned tables.")));
	if (IsCatalogRelationOid(source))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("\"%s\" is a system catalog", get_rel_name(source))));
	if (get_rel_persistence(source) == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a temporary table", get_rel_name(source)),
				 errhint("Build a filter of it with fav_agg.")));
	family = find_all_inheritors(source, ShareRowExclusiveLock, NULL);
	foreach(cell, family)
	{
		Relation	relation = table_open(lfirst_oid(cell), NoLock);

		/* A statement that is under way would not fire triggers that are made now. */
		CheckTableNotInUse(relation, "attach filters to");
		table_close(relation, NoLock);
		if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_FOREIGN_TABLE)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot attach filters to rows of foreign table \"%s\"",
							get_rel_name(lfirst_oid(cell))),
					 errdetail("Changes on the foreign server would not be seen here."),
					 errhint("Attach the filters on the server that has the rows.")));
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

static void
find_key(Oid source, const char *name, FavAttachment *attachment)
{
	FavColumn  *key = &attachment->key;

	find_usable_column(source, name, key);
	attachment->key_type = fav_key_type(key->type);
	if (attachment->key_type == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" has type %s, which cannot be a key", name,
						format_type_be(key->type)),
				 errdetail("Keys have a type with a default btree operator class that is not"
						   " composite.")));
}

static void
find_element(Oid source, const char *name, FavAttachment *attachment)
{
	FavColumn  *element = &attachment->element;

	find_usable_column(source, name, element);
	attachment->kind = fav_kind_of_column(element);
	if (attachment->kind == FAV_KIND_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" has type %s, which cannot be an element", name,
						format_type_be(element->type)),
				 errdetail("Elements are smallint, integer, bigint, text, varchar, uuid or"
						   " bytea.")));
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
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" has type %s, which cannot be in filters that keys share",
						NameStr(column->name), format_type_be(column->type)),
				 errdetail("Keys and elements of such filters are smallint, integer or bigint."),
				 errhint("Leave share out: then each key has a filter of its own.")));
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

/* The names of what an attachment is made of. */
typedef struct Names
{
	const char *levels;
	const char *view;
	const char *has;
} Names;

/* `name` is that of the attachment; NULL: the source's. */
static void
choose_names(Oid source, const char *name, Names *names)
{
	if (name == NULL)
		name = get_rel_name(source);
	names->levels = makeObjectName(name, "fav", "levels");
	names->view = makeObjectName(name, NULL, "fav");
	names->has = makeObjectName(name, NULL, "has");
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
check_names(Oid source, const Names *names)
{
	Oid			namespace = get_rel_namespace(source);

	refuse_taken_relation(namespace, names->levels);
	refuse_taken_relation(namespace, names->view);
	fav_refuse_taken_function(namespace, names->has);
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
change_exact(const FavAttachment *new, const Names *names, bool has_seed, bool exact)
{
	Oid			levels = get_relname_relid(names->levels, get_rel_namespace(new->source));
	FavAttachment old;
	FavHas		has;
	FavRole		role;

	if (!OidIsValid(levels) || !list_member_oid(fav_list_levels(new->schema, new->source), levels))
		return InvalidOid;
	LockRelationOid(levels, ShareUpdateExclusiveLock);
	if (fav_read_attachment(new->schema, levels, &old) != NULL || old.is_sink ||
		!fav_find_has(new->schema, levels, &has) || has.exact == exact ||
		old.key.number != new->key.number || old.element.number != new->element.number ||
		old.share != new->share || old.params.error_rate != new->params.error_rate ||
		(has_seed && old.params.seed != new->params.seed))
		return InvalidOid;
	has.exact = exact;
	fav_become_owner(&role, old.owner);
	fav_replace_has(&old, &has);
	fav_become_caller(&role);
	return has.function;
}

/* The arguments of fav_attach after name and columns. */
static void
read_parameters(FunctionCallInfo fcinfo, FavAttachment *new)
{
	if (!PG_ARGISNULL(4))
	{
		new->share = PG_GETARG_INT32(4);
		check_share(new);
	}
	new->params = fav_default_params();
	new->params.error_rate = PG_GETARG_FLOAT8(3);
	new->params.seed = PG_ARGISNULL(5) ? choose_seed(new->kind) : (uint64_t) PG_GETARG_INT64(5);
	fav_check_params(&new->params);
}

/* Make all that an attachment consists of.  As the owner. */
static void
create_objects(FavAttachment *new, const Names *names, bool exact, bool build)
{
	const char *key_name = new->share == 0 ? NameStr(new->key.name) :
		makeObjectName(NameStr(new->key.name), NULL, "group");
	FavAttachment *attachment;

	fav_prepare_nodes(new->source);
	fav_create_levels(new, key_name, names->levels);
	fav_create_triggers(new);
	CommandCounterIncrement();
	attachment = fav_attachment_of_levels(new->schema, new->levels);
	if (build)
		fav_build_all(attachment);
	fav_create_has(new, names->has, exact, build);
	if (build)
		fav_create_view(new, names->view);
}

/*
 * fav_attach(source, key, element, error_rate, share, seed, name, exact, build).  Without build
 * the triggers are there when this commits, and fav_build does the rest.
 */
Datum
fav_attach(PG_FUNCTION_ARGS)
{
	FavAttachment new = {.schema = fav_schema_of_function(fcinfo)};
	Names		names;
	FavRole		role;
	FavHas		has;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3) || PG_ARGISNULL(7) ||
		PG_ARGISNULL(8))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("key, element, error_rate, exact and build must not be null")));
	find_source(fcinfo, &new);
	read_parameters(fcinfo, &new);
	choose_names(new.source, PG_ARGISNULL(6) ? NULL : NameStr(*PG_GETARG_NAME(6)), &names);
	has.function = change_exact(&new, &names, !PG_ARGISNULL(5), PG_GETARG_BOOL(7));
	if (OidIsValid(has.function))
		PG_RETURN_OID(has.function);
	check_names(new.source, &names);
	if (fav_spread() != NULL)
		fav_spread()->check_new(&new);
	advise_index(new.source, &new.key);
	fav_notice_row_security(new.source);

	fav_become_owner(&role, fav_owner_of(new.source));
	create_objects(&new, &names, PG_GETARG_BOOL(7), PG_GETARG_BOOL(8));
	fav_become_caller(&role);
	if (!PG_GETARG_BOOL(8))
		ereport(NOTICE,
				(errmsg("the filters of table \"%s\" cannot be read until they are complete",
						get_rel_name(new.source)),
				 errhint("Call the procedure fav_build.")));
	fav_find_has(new.schema, new.levels, &has);
	PG_RETURN_OID(has.function);
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

/* Warn that elements are lost: they are stored in the filters of a sink only. */
static void
tell_destroyed(const FavAttachment *attachment)
{
	uint64		nkeys;
	bool		isnull;

	(void) fav_execute_in(InvalidSnapshot,
						  fav_query(attachment, "SELECT pg_catalog.count(*) FROM ONLY {levels}"),
						  SPI_OK_SELECT, 0, NULL, NULL);
	nkeys = (uint64) DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
												 &isnull));
	SPI_freetuptable(SPI_tuptable);
	if (nkeys > 0)
		ereport(WARNING,
				(errmsg_plural("the filters of %lu key of sink \"%s\" are destroyed",
							   "the filters of %lu keys of sink \"%s\" are destroyed",
							   (unsigned long) nkeys, (unsigned long) nkeys,
							   get_rel_name(attachment->source)),
				 errdetail("A sink stores no rows, so nothing can build them again."),
				 errhint("Only ROLLBACK, if this is in a transaction, or a backup can bring them"
						 " back.")));
}

/* The column with the time of a row. */
static void
find_time(FavAttachment *attachment, const char *name)
{
	FavColumn  *at = &attachment->at;

	find_usable_column(attachment->source, name, at);
	if (at->type != TIMESTAMPTZOID && at->type != TIMESTAMPOID && at->type != DATEOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" has type %s, which is no time of a row", name,
						format_type_be(at->type)),
				 errdetail("Times are timestamptz, timestamp or date.")));
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

/* Make all that a sink consists of.  As the owner. */
static void
create_sink_objects(FavAttachment *new, const Names *names)
{
	fav_prepare_nodes(new->source);
	check_empty(new);
	fav_create_levels(new, NameStr(new->key.name), names->levels);
	fav_create_triggers(new);

	/* other nodes could insert until the triggers locked the shards */
	if (fav_is_spread(new->source))
		check_empty(new);
	CommandCounterIncrement();
	(void) fav_attachment_of_levels(new->schema, new->levels);
	fav_create_has(new, names->has, false, true);
	fav_create_view(new, names->view);
	fav_create_sink_functions(new);
}

/*
 * fav_sink(source, key, element, keep, at, error_rate)
 */
Datum
fav_sink(PG_FUNCTION_ARGS)
{
	FavAttachment new = {.schema = fav_schema_of_function(fcinfo),.is_sink = true};
	Names		names;
	FavRole		role;
	FavHas		has;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(5))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("key, element and error_rate must not be null")));
	find_source(fcinfo, &new);
	new.params = fav_default_params();
	if (!PG_ARGISNULL(3))
		new.keep = read_keep(PG_GETARG_INTERVAL_P(3));
	fav_set_keep(new.keep, &new.params, &new.period);
	if (!PG_ARGISNULL(4))
		find_time(&new, NameStr(*PG_GETARG_NAME(4)));
	new.params.error_rate = PG_GETARG_FLOAT8(5);
	new.params.seed = choose_seed(new.kind);
	fav_check_params(&new.params);
	choose_names(new.source, NULL, &names);
	check_names(new.source, &names);
	if (fav_spread() != NULL)
		fav_spread()->check_new(&new);

	fav_become_owner(&role, fav_owner_of(new.source));
	create_sink_objects(&new, &names);
	fav_become_caller(&role);
	tell_keep(&new, PG_ARGISNULL(3) ? NULL : PG_GETARG_INTERVAL_P(3));
	fav_find_has(new.schema, new.levels, &has);
	PG_RETURN_OID(has.function);
}

/* Drop what undistribute_table has left of attached filters; false if that is nothing. */
static bool
drop_remnants(Oid schema, Oid source)
{
	const FavTrigger *trigger = fav_find_remnant(schema, source);
	bool		is_found = trigger != NULL;
	FavRole		role;

	fav_become_owner(&role, fav_owner_of(source));
	for (; trigger != NULL; trigger = fav_find_remnant(schema, source))
	{
		FavAttachment attachment = {
			.schema = schema,.source = source,.levels = trigger->when.named
		};

		fav_prepare_nodes(attachment.levels);
		if (OidIsValid(attachment.levels) && fav_has_log(attachment.levels))
			tell_destroyed(&attachment);
		fav_drop_objects(schema, source, attachment.levels);
	}
	fav_become_caller(&role);
	return is_found;
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
	FavAttachment attachment = {.schema = schema,.source = source};
	FavDefinition definition;
	const char *commands;
	Oid			levels;
	Oid			view;
	FavRole		role;

	fav_check_owner(source);
	fav_refuse_shard(source);

	/* the source first, as its writers do, whichever trigger is the first to be dropped */
	fav_lock_as_owner(source, AccessExclusiveLock);
	(void) find_all_inheritors(source, AccessExclusiveLock, NULL);
	if (drop_remnants(schema, source))
		PG_RETURN_VOID();
	levels = fav_choose_levels(schema, source,
							   PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1)));

	/* a reader locks the view first, too */
	view = fav_view_of_levels(schema, levels);
	if (OidIsValid(view))
		LockRelationOid(view, AccessExclusiveLock);
	LockRelationOid(levels, AccessExclusiveLock);
	levels = fav_choose_levels(schema, source,
							   PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1)));
	commands = fav_list_owner_commands(schema, source, levels);
	if (commands != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the filters of table \"%s\" do not belong to its owner",
						get_rel_name(source)),
				 errhint("%s", commands)));
	fav_become_owner(&role, fav_owner_of(levels));
	attachment.levels = levels;
	fav_prepare_nodes(source);
	if (fav_read_definition(schema, levels, &definition) && definition.is_sink)
		tell_destroyed(&attachment);
	fav_drop_objects(schema, source, levels);
	fav_become_caller(&role);
	PG_RETURN_VOID();
}
