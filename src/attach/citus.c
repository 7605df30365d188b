/*
 * citus.c
 *		Sources that Citus has spread over servers.
 *
 * Citus keeps a distributed table as a shell, an empty table on every node that queries
 * name, and as shards, ordinary tables with a number at the end of their names.  Triggers and
 * column defaults of the shell are copied to the shards word by word, and again when a shard
 * moves or is split.  So the triggers of a shard of the source name the shell of the levels
 * table, and a shard of the levels table names the shell of the source.
 *
 * They mean the colocated shard: that of the other table for the same range of keys, which is
 * on the same node.  Translated like this, two shards are source and levels table of an
 * attachment like any other, and are checked like any other.
 *
 * Everything here is called through the hook in spread.h, which finds it in a database with Citus.
 */
#include "attach/catalogs.h"
#include "attach/columns.h"
#include "attach/owner.h"
#include "attach/spread.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "commands/extension.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/primnodes.h"
#include "replication/logicalworker.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * The catalogs of Citus
 *
 * They are read like those of PostgreSQL, without a query: triggers and the planner look here.
 */

/*
 * Scan the rows of a catalog that have a value in a column.  Citus itself finds the index by its
 * name, too; a small catalog has none.  Returns the first row, or NULL.
 */
static HeapTuple
first_row(FavScan *scan, const char *name, const char *index_name, const char *column,
		  RegProcedure equal, Datum value)
{
	Oid			index = get_relname_relid(index_name, PG_CATALOG_NAMESPACE);
	ScanKeyData key;

	scan->catalog = table_open(get_relname_relid(name, PG_CATALOG_NAMESPACE), AccessShareLock);
	ScanKeyInit(&key, get_attnum(RelationGetRelid(scan->catalog), column), BTEqualStrategyNumber,
				equal, value);
	scan->scan = systable_beginscan(scan->catalog, index, OidIsValid(index), NULL, 1, &key);
	return fav_next_row(scan);
}

static Datum
column_of(const FavScan *scan, HeapTuple row, const char *column, bool *isnull)
{
	return fav_row_column(scan, row, get_attnum(RelationGetRelid(scan->catalog), column), isnull);
}

/*
 * Tables
 */

typedef struct Distribution
{
	char		method;			/* pg_dist_partition.partmethod: h is by hash, n by nothing, */
	char		replication;	/* repmodel: t means that every node has all rows */
	int32		colocation;		/* 0 means that only the coordinator has them */
	NameData	key;			/* of a table that is distributed by hash */
} Distribution;

/* What Citus says of a table; false if it does not manage it. */
static bool
read_distribution(Oid table, Distribution *distribution)
{
	FavScan		scan;
	HeapTuple	row = first_row(&scan, "pg_dist_partition",
								"pg_dist_partition_logical_relid_index", "logicalrelid", F_OIDEQ,
								ObjectIdGetDatum(table));
	bool		isnull;
	Datum		key;

	memset(distribution, 0, sizeof(*distribution));
	if (HeapTupleIsValid(row))
	{
		distribution->method = DatumGetChar(column_of(&scan, row, "partmethod", &isnull));
		distribution->replication = DatumGetChar(column_of(&scan, row, "repmodel", &isnull));
		distribution->colocation = DatumGetInt32(column_of(&scan, row, "colocationid", &isnull));
		key = column_of(&scan, row, "partkey", &isnull);
		if (!isnull)
		{
			Var		   *column = stringToNode(TextDatumGetCString(key));
			char	   *name = IsA(column, Var) ? get_attname(table, column->varattno, true) : NULL;

			namestrcpy(&distribution->key, name == NULL ? "" : name);
		}
	}
	fav_end_scan(&scan);
	return HeapTupleIsValid(row);
}

/*
 * This holds for every table that Citus manages: distributed by a key, to one node or to all, or
 * local.  It does not hold for their shards.
 */
static bool
is_spread(Oid table)
{
	Distribution distribution;

	return read_distribution(table, &distribution);
}

/* Are the rows of a key, or all rows, of both tables on the same nodes, in shards of one kind? */
static bool
are_colocated(Oid table, Oid other)
{
	Distribution one;
	Distribution two;

	return read_distribution(table, &one) && read_distribution(other, &two) &&
		one.colocation != 0 && one.colocation == two.colocation;
}

static bool
is_coordinator(void)
{
	FavScan		scan;
	bool		found = HeapTupleIsValid(first_row(&scan, "pg_dist_local_group", "", "groupid",
												   F_INT4EQ, Int32GetDatum(0)));

	fav_end_scan(&scan);
	return found;
}

/*
 * Shards
 *
 * No catalog has their OIDs.  To Citus a relation is a shard if it is called like one: after its
 * table, in the schema of that, with the number of a shard of that table.
 */

/* The number at the end of a relation's name; 0 if there is none. */
static int64
number_of_shard(Oid relation)
{
	const char *name = get_rel_name(relation);
	const char *digits = name == NULL ? NULL : strrchr(name, '_');

	if (digits == NULL || digits[1] == '\0' ||
		digits[1 + strspn(digits + 1, "0123456789")] != '\0')
		return 0;
	return strtoll(digits + 1, NULL, 10);
}

/*
 * The relation that is called like a shard of a table; InvalidOid if it is not on this node.
 * In a name that would be too long, Citus replaces the end by a hash of all of it.
 */
static Oid
find_shard(Oid table, int64 number)
{
	char	   *name = get_rel_name(table);
	char		suffix[NAMEDATALEN];
	int			length;
	int			limit;

	if (name == NULL || number <= 0)
		return InvalidOid;
	length = strlen(name);
	limit = NAMEDATALEN - 1 - snprintf(suffix, sizeof(suffix), "_" INT64_FORMAT, number);
	if (length > limit)
		name = psprintf("%.*s_%.8x", pg_mbcliplen(name, length, limit - 9), name,
						hash_bytes((unsigned char *) name, length));
	return get_relname_relid(psprintf("%s%s", name, suffix), get_rel_namespace(table));
}

/* Is the relation called like a shard of a table? */
static bool
is_called_like_shard(Oid relation, Oid table)
{
	return find_shard(table, number_of_shard(relation)) == relation;
}

/* The beginning of the range of keys that a shard has. */
static const char *
range_of(const FavScan *scan, HeapTuple shard)
{
	bool		isnull;
	Datum		minimum = column_of(scan, shard, "shardminvalue", &isnull);

	return isnull ? "" : TextDatumGetCString(minimum);
}

/* Of which table is the relation a shard?  InvalidOid if of none. */
static Oid
read_shard(Oid relation, const char **range)
{
	int64		number = number_of_shard(relation);
	Oid			table = InvalidOid;
	FavScan		scan;
	HeapTuple	row;
	bool		isnull;

	if (number == 0)
		return InvalidOid;
	row = first_row(&scan, "pg_dist_shard", "pg_dist_shard_shardid_index", "shardid", F_INT8EQ,
					Int64GetDatum(number));
	if (HeapTupleIsValid(row))
	{
		table = DatumGetObjectId(column_of(&scan, row, "logicalrelid", &isnull));
		*range = range_of(&scan, row);
	}
	fav_end_scan(&scan);
	return OidIsValid(table) && find_shard(table, number) == relation ? table : InvalidOid;
}

static Oid
shell(Oid relation)
{
	const char *range;
	Oid			table = read_shard(relation, &range);

	return OidIsValid(table) ? table : relation;
}

/* The shard of a table that begins a range; InvalidOid if it is not on this node. */
static Oid
shard_of_range(Oid table, const char *range)
{
	int64		number = 0;
	FavScan		scan;
	HeapTuple	row;
	bool		isnull;

	for (row = first_row(&scan, "pg_dist_shard", "pg_dist_shard_logical_relid_index",
						 "logicalrelid", F_OIDEQ, ObjectIdGetDatum(table));
		 HeapTupleIsValid(row); row = fav_next_row(&scan))
		if (strcmp(range_of(&scan, row), range) == 0)
			number = DatumGetInt64(column_of(&scan, row, "shardid", &isnull));
	fav_end_scan(&scan);
	return find_shard(table, number);
}

static Oid
colocated_table(Oid relation, Oid table)
{
	const char *range;
	Oid			own = read_shard(relation, &range);

	if (!OidIsValid(own))
		return table;

	/* tables that are spread otherwise may have a shard that begins the same range */
	return are_colocated(own, table) ? shard_of_range(table, range) : InvalidOid;
}

/*
 * While Citus copies a shard by logical replication, the filters come in the same way as the rows.
 * The catalogs may not know the shard yet, but it is called like one of the source.  Any other
 * table that is replicated keeps its own filters.
 */
static bool
is_being_copied(Oid relation, Oid source)
{
	return IsLogicalWorker() && is_spread(source) && is_called_like_shard(relation, source);
}

/*
 * Checks
 */

static const FavObstacle *
check(Oid source, Oid levels)
{
	Oid			table = shell(source);
	Oid			filters = shell(levels);
	Distribution distribution;
	bool		found = read_distribution(table, &distribution);

	if ((!found && !is_spread(filters)) ||
		(are_colocated(table, filters) && (table == source) == (filters == levels)))
		return NULL;
	if (found && distribution.method == 'n' && distribution.colocation == 0)
		return fav_obstacle(fav_has_log(filters) ? fav_hint_to_copy(filters) :
							"Call fav_detach, distribute the table by its key or take it out of"
							" Citus with undistribute_table, and call fav_attach.",
							psprintf("table \"%s\" is in the metadata of Citus, and its filters are"
									 " not", get_rel_name(table)));
	return fav_obstacle(fav_has_log(filters) ? fav_hint_to_copy(filters) :
						"Call fav_detach, then fav_attach, on the coordinator.",
						psprintf("Citus does not keep table \"%s\" where it keeps table \"%s\"",
								 get_rel_name(filters), get_rel_name(table)));
}

/*
 * A trigger for filters of a distributed table fires on a table that is none of its shards as
 * far as this node knows.  It may be the shard of a split that is about to be committed here, so
 * this must not pass unseen.
 */
static void
check_stranger(Oid relation, Oid source)
{
	if (!is_spread(source))
		return;
	if (is_called_like_shard(relation, source))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not known as a shard of table \"%s\"",
						get_rel_name(relation), get_rel_name(source)),
				 errdetail("A split or move has not made it a shard yet, or has left it behind."),
				 errhint("Change table \"%s\" instead. Tables that are left behind go with CALL"
						 " pg_catalog.citus_cleanup_orphaned_resources().",
						 get_rel_name(source))));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" has a trigger for the filters of table \"%s\"",
					get_rel_name(relation), get_rel_name(source)),
			 errhint("Drop the trigger, which fav_attach has not made.")));
}

static void
check_new(const FavAttachment *attachment)
{
	const char *source = get_rel_name(attachment->source);
	Distribution distribution;

	if (!read_distribution(attachment->source, &distribution))
		return;
	if (!is_coordinator())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is distributed, and this is not the coordinator", source),
				 errhint("Call %s on the coordinator.",
						 attachment->is_sink ? "fav_sink" : "fav_attach")));
	if (distribution.method == 'h' &&
		strcmp(NameStr(distribution.key), NameStr(attachment->key.name)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is distributed by column \"%s\", not by \"%s\"", source,
						NameStr(distribution.key), NameStr(attachment->key.name)),
				 errdetail("The pairs of a key must be on one node."),
				 errhint("Distribute the table by the key.")));
	if (distribution.colocation == 0 || (distribution.method != 'h' && distribution.method != 'n'))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is kept by Citus in a way that filters cannot follow",
						source),
				 errhint("Distribute it by its key with create_distributed_table, or take it out"
						 " of Citus with undistribute_table.")));
	if (attachment->is_sink && distribution.replication != 's')
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is kept by Citus in several copies", source),
				 errdetail("Nothing compares the filters of a sink, so that copies might differ."),
				 errhint("Take it out of Citus with undistribute_table, and distribute it by its"
						 " key with create_distributed_table, while"
						 " citus.shard_replication_factor is 1.")));
	if (distribution.method == 'h' && attachment->share > 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of distributed table \"%s\" cannot share filters", source),
				 errdetail("Neighbouring keys may be on different nodes."),
				 errhint("Leave share out: then each key has a filter of its own.")));
	if (get_rel_relkind(attachment->source) == RELKIND_PARTITIONED_TABLE ||
		get_rel_relispartition(attachment->source))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("distributed table \"%s\" has partitions", source),
				 errdetail("Citus does not carry the triggers of partitions to all shards.")));
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("filters of a distributed table can be attached at READ COMMITTED only"),
				 errdetail("Nodes would read table \"%s\" as it was before it was locked.",
						   source)));
}

/*
 * On a new node Citus makes tables in the order of their dependencies, and otherwise in no order.
 * The default that names the source must find it, but Citus does not look at what defaults depend
 * on.  It does look at indexes, so the primary key, which is the only one, depends on the source.
 */
static void
make_source_first(const FavAttachment *attachment)
{
	Relation	levels = table_open(attachment->levels, NoLock);
	ObjectAddress source;
	ObjectAddress key;

	ObjectAddressSet(source, RelationRelationId, attachment->source);
	ObjectAddressSet(key, RelationRelationId, linitial_oid(RelationGetIndexList(levels)));
	table_close(levels, NoLock);
	recordDependencyOn(&key, &source, DEPENDENCY_NORMAL);
}

/* The key may be called like a placeholder of fav_query. */
static void
distribute(const FavAttachment *attachment, const char *key)
{
	const char *levels = quote_literal_cstr(fav_relation_name(attachment->levels));
	const char *source = quote_literal_cstr(fav_relation_name(attachment->source));
	Distribution distribution;

	if (!read_distribution(attachment->source, &distribution))
		return;
	make_source_first(attachment);
	if (is_spread(attachment->levels))
		return;
	if (distribution.replication == 't')
		fav_run(psprintf("SELECT pg_catalog.create_reference_table(%s::pg_catalog.regclass)",
						 levels));
	else
		fav_run(psprintf("SELECT pg_catalog.create_distributed_table(%s::pg_catalog.regclass,"
						 " %s::pg_catalog.text, colocate_with => %s::pg_catalog.text)", levels,
						 distribution.method == 'h' ? quote_literal_cstr(key) : "NULL",
						 source));
}

/*
 * Citus refuses triggers unless it is told not to, and a trigger on a shard must see the new levels
 * table, which another connection to the node would not.  It cannot make generic plans of the query
 * that builds the filters.
 */
static void
prepare_commands(void)
{
	fav_set_option("citus.enable_unsafe_triggers", "on");
	fav_set_option("citus.multi_shard_modify_mode", "sequential");
	fav_set_option("plan_cache_mode", "auto");
}

static void
prepare_transaction(void)
{
	fav_set_option("citus.function_opens_transaction_block", "on");
	fav_set_option("plan_cache_mode", "auto");
}

/* Text that goes through the format() of run_command_on_placements. */
static const char *
escape_percent(const char *text)
{
	StringInfoData escaped;

	initStringInfo(&escaped);
	for (; *text != '\0'; text++)
	{
		if (*text == '%')
			appendStringInfoChar(&escaped, '%');
		appendStringInfoChar(&escaped, *text);
	}
	return escaped.data;
}

/* Maintenance functions work on one shard. */
static void
refuse_call(Oid source, Oid function)
{
	if (is_spread(source))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is distributed", get_rel_name(source)),
				 errhint("Call the function for each shard: SELECT * FROM"
						 " pg_catalog.run_command_on_placements(%s, $$SELECT %s.%s(%%L)$$).",
						 quote_literal_cstr(fav_relation_name(source)),
						 escape_percent(quote_identifier(
							get_namespace_name(get_func_namespace(function)))),
						 quote_identifier(get_func_name(function)))));
}

/*
 * Citus chooses the nodes of a query before the planner expands calls, so the expansion would read
 * the empty shell.
 */
static void
refuse_probe(Oid levels, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("filters in table \"%s\" cannot be asked by function: Citus keeps them on"
					" other nodes, or as shards", get_rel_name(levels)),
			 errhint("%s", hint)));
}

/* This session is in no transaction that those of the shards could wait for. */
static void
build_shards(const FavAttachment *attachment, bool rebuild)
{
	const char *fav = quote_identifier(get_namespace_name(attachment->schema));
	const char *name = quote_literal_cstr(get_rel_name(attachment->levels));
	const char *command = psprintf("CALL %s.fav_build(%%L, %s, %s)", escape_percent(fav),
								   escape_percent(name), rebuild ? "true" : "false");
	Oid			types[2] = {OIDOID, TEXTOID};
	Datum		values[2] = {ObjectIdGetDatum(attachment->source), CStringGetTextDatum(command)};
	bool		isnull;

	if (fav_execute_in(InvalidSnapshot,
			"SELECT pg_catalog.format('shard %s on %s:%s: %s', shardid, nodename, nodeport, result)"
			" FROM pg_catalog.run_command_on_placements($1, $2, false) WHERE NOT success LIMIT 1",
			SPI_OK_SELECT, 2, types, values) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				 errmsg("filters of distributed table \"%s\" could not be built",
						get_rel_name(attachment->source)),
				 errdetail_internal("%s", TextDatumGetCString(SPI_getbinval(SPI_tuptable->vals[0],
																	SPI_tuptable->tupdesc, 1,
																	&isnull))),
				 errhint("Call fav_build again: it builds what is missing.")));
}

/*
 * The hook
 */

static const FavSpread citus = {
	.shell = shell,
	.is_spread = is_spread,
	.colocated_table = colocated_table,
	.check = check,
	.check_stranger = check_stranger,
	.is_being_copied = is_being_copied,
	.check_new = check_new,
	.refuse_call = refuse_call,
	.refuse_probe = refuse_probe,
	.prepare_commands = prepare_commands,
	.prepare_transaction = prepare_transaction,
	.distribute = distribute,
	.build_shards = build_shards
};

/*
 * Without Citus this costs one look into PostgreSQL's own cache.  A table is not taken for a
 * catalog of Citus because of its name: it belongs to the extension.
 */
const FavSpread *
fav_spread(void)
{
	static Oid	catalog = InvalidOid;	/* that is known to belong to Citus */
	Oid			relation = get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE);
	Oid			extension;

	if (!OidIsValid(relation))
		return NULL;
	if (relation != catalog)
	{
		extension = get_extension_oid("citus", true);
		if (!OidIsValid(extension) ||
			getExtensionOfObject(RelationRelationId, relation) != extension)
			return NULL;
		catalog = relation;
	}
	return &citus;
}
