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
 * In a database without Citus nothing here does anything.
 */
#include "attach/citus.h"
#include "attach/queries.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "commands/extension.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/primnodes.h"
#include "replication/logicalworker.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

/*
 * The catalogs of Citus
 *
 * They are read like those of PostgreSQL, without a query: triggers and the planner look here.
 */

typedef struct Catalog
{
	const char *name;
	Oid			relation;		/* that is known to belong to Citus */
} Catalog;

static Catalog dist_partition = {"pg_dist_partition", InvalidOid};
static Catalog dist_shard = {"pg_dist_shard", InvalidOid};
static Catalog dist_local_group = {"pg_dist_local_group", InvalidOid};

/*
 * NULL if this database is without Citus: then this costs one look into PostgreSQL's own cache.
 * A table is not taken for a catalog of Citus because of its name: it belongs to the extension.
 */
static Relation
open_catalog(Catalog *catalog)
{
	Oid			relation = get_relname_relid(catalog->name, PG_CATALOG_NAMESPACE);
	Oid			extension;

	if (!OidIsValid(relation))
		return NULL;
	if (relation != catalog->relation)
	{
		extension = get_extension_oid("citus", true);
		if (!OidIsValid(extension) ||
			getExtensionOfObject(RelationRelationId, relation) != extension)
			return NULL;
		catalog->relation = relation;
	}
	return table_open(relation, AccessShareLock);
}

bool
fav_has_citus(void)
{
	Relation	catalog = open_catalog(&dist_partition);

	if (catalog == NULL)
		return false;
	table_close(catalog, AccessShareLock);
	return true;
}

/* An index of a catalog on one column; InvalidOid if there is none. */
static Oid
find_index(Relation catalog, AttrNumber column)
{
	Oid			found = InvalidOid;
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(catalog))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
		Form_pg_index index;

		if (!HeapTupleIsValid(tuple))
			continue;
		index = (Form_pg_index) GETSTRUCT(tuple);
		if (index->indisvalid && index->indkey.values[0] == column)
			found = lfirst_oid(cell);
		ReleaseSysCache(tuple);
	}
	return found;
}

/* Scan the rows of a catalog that have a value in a column. */
static SysScanDesc
begin_scan(Relation catalog, const char *column, RegProcedure equal, Datum value)
{
	AttrNumber	number = get_attnum(RelationGetRelid(catalog), column);
	Oid			index = find_index(catalog, number);
	ScanKeyData key;

	ScanKeyInit(&key, number, BTEqualStrategyNumber, equal, value);
	return systable_beginscan(catalog, index, OidIsValid(index), NULL, 1, &key);
}

static Datum
column_of(Relation catalog, HeapTuple row, const char *column, bool *isnull)
{
	return heap_getattr(row, get_attnum(RelationGetRelid(catalog), column),
						RelationGetDescr(catalog), isnull);
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
	Relation	catalog = open_catalog(&dist_partition);
	SysScanDesc scan;
	HeapTuple	row;
	bool		found;
	bool		isnull;
	Datum		key;

	memset(distribution, 0, sizeof(*distribution));
	if (catalog == NULL)
		return false;
	scan = begin_scan(catalog, "logicalrelid", F_OIDEQ, ObjectIdGetDatum(table));
	row = systable_getnext(scan);
	found = HeapTupleIsValid(row);
	if (found)
	{
		distribution->method = DatumGetChar(column_of(catalog, row, "partmethod", &isnull));
		distribution->replication = DatumGetChar(column_of(catalog, row, "repmodel", &isnull));
		distribution->colocation =
			DatumGetInt32(column_of(catalog, row, "colocationid", &isnull));
		key = column_of(catalog, row, "partkey", &isnull);
		if (!isnull)
		{
			Var		   *column = stringToNode(TextDatumGetCString(key));
			char	   *name = IsA(column, Var) ? get_attname(table, column->varattno, true) : NULL;

			namestrcpy(&distribution->key, name == NULL ? "" : name);
		}
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/*
 * Does Citus keep the rows of a relation elsewhere than in the relation itself, which is then an
 * empty shell?  This holds for every table that Citus manages: distributed by a key, to one node
 * or to all, or local.  It does not hold for their shards.
 */
bool
fav_is_spread(Oid table)
{
	Relation	catalog = open_catalog(&dist_partition);
	SysScanDesc scan;
	bool		found;

	if (catalog == NULL)
		return false;
	scan = begin_scan(catalog, "logicalrelid", F_OIDEQ, ObjectIdGetDatum(table));
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
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
	Relation	catalog = open_catalog(&dist_local_group);
	SysScanDesc scan;
	HeapTuple	row;
	bool		isnull;
	bool		found;

	if (catalog == NULL)
		return false;
	scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	row = systable_getnext(scan);
	found = HeapTupleIsValid(row) &&
		DatumGetInt32(column_of(catalog, row, "groupid", &isnull)) == 0;
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
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

/* Of which table is the relation a shard?  False if of none. */
static bool
read_shard(Oid relation, Oid *table, char **range)
{
	int64		number = number_of_shard(relation);
	Relation	catalog = number == 0 ? NULL : open_catalog(&dist_shard);
	SysScanDesc scan;
	HeapTuple	row;
	bool		isnull;
	Datum		minimum;

	*table = InvalidOid;
	if (catalog == NULL)
		return false;
	scan = begin_scan(catalog, "shardid", F_INT8EQ, Int64GetDatum(number));
	if (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		*table = DatumGetObjectId(column_of(catalog, row, "logicalrelid", &isnull));
		minimum = column_of(catalog, row, "shardminvalue", &isnull);
		*range = isnull ? "" : TextDatumGetCString(minimum);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return OidIsValid(*table) && find_shard(*table, number) == relation;
}

/* The table that a shard belongs to; for any other relation, the relation. */
Oid
fav_shell(Oid relation)
{
	Oid			table;
	char	   *range;

	return read_shard(relation, &table, &range) ? table : relation;
}

/* The shard of a table that begins a range; 0 if there is none. */
static int64
number_of_range(Oid table, const char *range)
{
	Relation	catalog = open_catalog(&dist_shard);
	int64		number = 0;
	SysScanDesc scan;
	HeapTuple	row;
	bool		isnull;

	if (catalog == NULL)
		return 0;
	scan = begin_scan(catalog, "logicalrelid", F_OIDEQ, ObjectIdGetDatum(table));
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Datum		minimum = column_of(catalog, row, "shardminvalue", &isnull);

		if (strcmp(isnull ? "" : TextDatumGetCString(minimum), range) == 0)
			number = DatumGetInt64(column_of(catalog, row, "shardid", &isnull));
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return number;
}

/*
 * The table that a trigger or a default of a relation means when it names a table: if the relation
 * is a shard, the colocated shard of the table, or InvalidOid without one; otherwise the table.
 */
Oid
fav_colocated_table(Oid relation, Oid table)
{
	Oid			own;
	char	   *range;

	if (!read_shard(relation, &own, &range))
		return table;

	/* tables that are spread otherwise may have a shard that begins the same range */
	return are_colocated(own, table) ? find_shard(table, number_of_range(table, range)) :
		InvalidOid;
}

/*
 * The table that a trigger names by text; InvalidOid if there is none, or if that is not a
 * qualified name.  Anybody may have made the trigger, and those who look at it must not get an
 * error.
 */
Oid
fav_find_named(Datum name)
{
	List	   *parts;
	Oid			schema;

	if (!SplitIdentifierString(text_to_cstring(DatumGetTextPP(name)), '.', &parts) ||
		list_length(parts) != 2)
		return InvalidOid;
	schema = get_namespace_oid(linitial(parts), true);
	return OidIsValid(schema) ? get_relname_relid(lsecond(parts), schema) : InvalidOid;
}

/*
 * Does a trigger of a relation, for filters of a source, have to do nothing?  While Citus copies
 * a shard by logical replication, the filters come in the same way as the rows.  The catalogs
 * may not know the shard yet, but it is called like one of the source.  Any other table that is
 * replicated keeps its own filters.
 */
bool
fav_is_being_copied(Oid relation, Oid source)
{
	return IsLogicalWorker() && fav_is_spread(source) &&
		find_shard(source, number_of_shard(relation)) == relation;
}

/*
 * Checks
 */

/* Why filters cannot be kept where Citus keeps them and their source; NULL if they can. */
const FavObstacle *
fav_check_spread(Oid source, Oid levels)
{
	Oid			table = fav_shell(source);
	Oid			filters = fav_shell(levels);
	Distribution distribution;

	if ((!fav_is_spread(table) && !fav_is_spread(filters)) ||
		(are_colocated(table, filters) && (table == source) == (filters == levels)))
		return NULL;
	if (read_distribution(table, &distribution) && distribution.method == 'n' &&
		distribution.colocation == 0)
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
void
fav_refuse_unknown_shard(Oid relation, Oid source)
{
	if (!fav_is_spread(source))
		return;
	if (find_shard(source, number_of_shard(relation)) == relation)
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

/* Filters are attached to the distributed table, not to a shard. */
void
fav_refuse_shard(Oid source)
{
	Oid			shell = fav_shell(source);

	if (shell != source)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a shard of table \"%s\"", get_rel_name(source),
						get_rel_name(shell)),
				 errhint("Attach and detach filters of the distributed table.")));
}

/* Refuse what cannot be kept of a distributed source, before anything is changed. */
void
fav_check_distribution(const FavAttachment *attachment)
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

/*
 * Spread a new levels table as its source is.  As the owner.  The key may be called like a
 * placeholder of fav_query.
 */
void
fav_distribute_levels(const FavAttachment *attachment, const char *key_name)
{
	const char *levels = quote_literal_cstr(fav_relation_name(attachment->levels));
	const char *source = quote_literal_cstr(fav_relation_name(attachment->source));
	Distribution distribution;

	if (!read_distribution(attachment->source, &distribution))
		return;
	make_source_first(attachment);
	if (fav_is_spread(attachment->levels))
		return;
	if (distribution.replication == 't')
		fav_run(psprintf("SELECT pg_catalog.create_reference_table(%s::pg_catalog.regclass)",
						 levels));
	else
		fav_run(psprintf("SELECT pg_catalog.create_distributed_table(%s::pg_catalog.regclass,"
						 " %s::pg_catalog.text, colocate_with => %s::pg_catalog.text)", levels,
						 distribution.method == 'h' ? quote_literal_cstr(key_name) : "NULL",
						 source));
}

/*
 * Make Citus follow commands that attach or detach filters.  It refuses triggers unless it is
 * told not to, and a trigger on a shard must see the new levels table, which another connection
 * to the node would not.  It cannot make generic plans of the query that builds the filters.  As
 * the owner, until they are the caller again.
 */
void
fav_prepare_nodes(Oid source)
{
	if (!fav_is_spread(source))
		return;
	fav_set_option("citus.enable_unsafe_triggers", "on");
	fav_set_option("citus.multi_shard_modify_mode", "sequential");
	fav_set_option("plan_cache_mode", "auto");
}

/*
 * All that is sent to other nodes from here on is part of the transaction of the caller.  As the
 * owner, until they are the caller again.
 */
void
fav_prepare_transaction(void)
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
void
fav_refuse_distributed(Oid source, Oid function)
{
	if (fav_is_spread(source))
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
 * fav_build on each shard.  Each of these is a session of its own, and this one is in no
 * transaction that they could wait for.  As the owner.
 */
void
fav_build_shards(const FavAttachment *attachment, bool rebuild)
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
