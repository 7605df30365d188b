/*
 * shards.c
 *		Sources that Citus has spread over servers.
 *
 * Citus keeps a distributed table as a shell, an empty table on every node that everybody
 * names, and as shards, ordinary tables with a number at the end of their names.  Triggers and
 * column defaults of the shell are copied to the shards word by word, and again when a shard
 * moves or is split.  So the triggers of a shard of the source name the shell of the levels
 * table, and a shard of the levels table names the shell of the source.
 *
 * What they mean is the shard beside it: that of the other table for the same range of keys,
 * which is on the same node, because both tables are colocated.  Translated like this, two
 * shards are source and levels table of an attachment like any other, and everything about
 * them is checked as ever.
 *
 * In a database without Citus nothing here does anything.
 */
#include "attach.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "replication/logicalworker.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

static bool
has_citus(void)
{
	return OidIsValid(get_relname_relid("pg_dist_shard", PG_CATALOG_NAMESPACE));
}

/* The number at the end of a shard's name; 0 if there is none. */
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

/* A column of the only row that SPI has found. */
static Datum
column_of_row(int number, bool *isnull)
{
	return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, number, isnull);
}

/*
 * A table by its name; InvalidOid if there is none, or if that is not a name.  It may come from
 * a trigger that anybody has made, and those who look at it must not get an error.
 */
static Oid
find_table(Datum name, Oid schema)
{
	List	   *parts;

	if (!SplitIdentifierString(text_to_cstring(DatumGetTextPP(name)), '.', &parts) ||
		parts == NIL)
		return InvalidOid;
	if (list_length(parts) == 2)
		schema = get_namespace_oid(linitial(parts), true);
	return OidIsValid(schema) ? get_relname_relid(llast(parts), schema) : InvalidOid;
}

/* The table that a trigger names. */
Oid
fav_find_named(Datum name)
{
	return find_table(name, InvalidOid);
}

/* The shard that Citus gives this name; InvalidOid if it is not on this node. */
static Oid
find_shard(Oid shell, int column)
{
	bool		isnull;
	Datum		name = column_of_row(column, &isnull);

	return isnull ? InvalidOid : find_table(name, get_rel_namespace(shell));
}

/*
 * Is the relation a shard?  Of which table, and which shard of another table is beside it?
 * InvalidOid if none is.
 */
static bool
read_shard(Oid relation, Oid other, Oid *shell, Oid *beside)
{
	int64		number = has_citus() ? number_of_shard(relation) : 0;
	Oid			types[2] = {INT8OID, OIDOID};
	Datum		values[2] = {Int64GetDatum(number), ObjectIdGetDatum(other)};
	bool		found = false;
	bool		isnull;

	if (number == 0)
		return false;
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (fav_execute_in(InvalidSnapshot,
			"SELECT s.logicalrelid, pg_catalog.shard_name(s.logicalrelid, s.shardid),"
			" pg_catalog.shard_name(o.logicalrelid, o.shardid)"
			" FROM pg_catalog.pg_dist_shard s LEFT JOIN pg_catalog.pg_dist_shard o ON"
			" o.logicalrelid OPERATOR(pg_catalog.=) $2 AND"
			" COALESCE(o.shardminvalue, '') OPERATOR(pg_catalog.=) COALESCE(s.shardminvalue, '')"
			" WHERE s.shardid OPERATOR(pg_catalog.=) $1", SPI_OK_SELECT, 2, types, values) == 1)
	{
		*shell = DatumGetObjectId(column_of_row(1, &isnull));
		*beside = find_shard(other, 3);
		found = find_shard(*shell, 2) == relation;
	}
	SPI_finish();
	return found;
}

/* The table that a shard belongs to; for any other relation, the relation. */
Oid
fav_shell(Oid relation)
{
	Oid			shell;
	Oid			beside;

	return read_shard(relation, InvalidOid, &shell, &beside) ? shell : relation;
}

/*
 * What a trigger or a default of a relation means by a table: the shard beside the relation if
 * that is a shard, InvalidOid if there is none, and otherwise the table.
 */
Oid
fav_beside(Oid relation, Oid table)
{
	Oid			shell;
	Oid			beside;

	return read_shard(relation, table, &shell, &beside) ? beside : table;
}

/*
 * Does a trigger of a shard have to do nothing?  While Citus copies a shard by logical
 * replication, the filters come in the same way as the rows.
 */
bool
fav_is_being_copied(Oid relation)
{
	return has_citus() && IsLogicalWorker() && number_of_shard(relation) != 0;
}

/*
 * Tables
 */

typedef struct Distribution
{
	char		method;			/* pg_dist_partition.partmethod: h is by hash, n by nothing, */
	char		replication;	/* repmodel: t means that every node has all rows, */
	bool		is_local;		/* and this that only the coordinator has */
	bool		is_coordinator; /* this node */
	NameData	key;			/* of a table that is distributed by hash */
} Distribution;

static bool
read_distribution(Oid table, Distribution *distribution)
{
	Oid			type = OIDOID;
	Datum		value = ObjectIdGetDatum(table);
	bool		found;
	bool		isnull;

	memset(distribution, 0, sizeof(*distribution));
	if (!has_citus())
		return false;
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	found = fav_execute_in(InvalidSnapshot,
			"SELECT partmethod, repmodel, colocationid OPERATOR(pg_catalog.=) 0,"
			" (SELECT groupid OPERATOR(pg_catalog.=) 0 FROM pg_catalog.pg_dist_local_group),"
			" COALESCE(pg_catalog.column_to_column_name(logicalrelid, partkey), '')"
			" FROM pg_catalog.pg_dist_partition"
			" WHERE logicalrelid OPERATOR(pg_catalog.=) $1", SPI_OK_SELECT, 1, &type, &value) == 1;
	if (found)
	{
		distribution->method = DatumGetChar(column_of_row(1, &isnull));
		distribution->replication = DatumGetChar(column_of_row(2, &isnull));
		distribution->is_local = DatumGetBool(column_of_row(3, &isnull));
		distribution->is_coordinator = DatumGetBool(column_of_row(4, &isnull));
		namestrcpy(&distribution->key, TextDatumGetCString(column_of_row(5, &isnull)));
	}
	SPI_finish();
	return found;
}

bool
fav_is_distributed(Oid table)
{
	Distribution distribution;

	return read_distribution(table, &distribution);
}

/*
 * A trigger for filters of a distributed table fires on a table that is none of its shards as
 * far as this node knows.  It may be the shard of a split that is about to be committed here, so
 * this must not pass unseen.
 */
void
fav_refuse_unknown_shard(Oid relation, Oid source)
{
	if (fav_is_distributed(source))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not known as a shard of table \"%s\"",
						get_rel_name(relation), get_rel_name(source)),
				 errhint("Try again, or drop the trigger if fav_attach has not created it.")));
}

/* Filters are attached to tables, and go with them. */
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
	if (!distribution.is_coordinator)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is distributed, and this is not the coordinator", source),
				 errhint("Call fav_attach on the coordinator.")));
	if (distribution.method == 'h' &&
		strcmp(NameStr(distribution.key), NameStr(attachment->key.name)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is distributed by column \"%s\", not by \"%s\"", source,
						NameStr(distribution.key), NameStr(attachment->key.name)),
				 errdetail("The pairs of a key must be on one node."),
				 errhint("Distribute the table by the key.")));
	if (distribution.is_local || (distribution.method != 'h' && distribution.method != 'n'))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is kept by Citus in a way that filters cannot follow",
						source),
				 errhint("Distribute it by its key with create_distributed_table, or take it out"
						 " of Citus with undistribute_table.")));
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

/* Spread a new levels table as its source is.  As the owner. */
void
fav_distribute_levels(const FavAttachment *attachment, const char *key_name)
{
	Distribution distribution;
	const char *command = "SELECT pg_catalog.create_distributed_table({'levels'}, %s,"
		" distribution_type => %s, colocate_with => {'source'})";

	if (!read_distribution(attachment->source, &distribution) ||
		fav_is_distributed(attachment->levels))
		return;
	if (distribution.replication == 't')
		command = "SELECT pg_catalog.create_reference_table({'levels'})";
	else if (distribution.method == 'h')
		command = psprintf(command, quote_literal_cstr(key_name), "'hash'");
	else
		command = psprintf(command, "NULL", "NULL");
	fav_run(fav_query(attachment, command));
}

static void
set_option(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
							 false);
}

/*
 * Make Citus follow commands that attach or detach filters.  It refuses triggers unless it is
 * told not to, and a trigger on a shard must see the new levels table, which another connection
 * to the node would not.  As the owner, until they are the caller again.
 */
void
fav_prepare_nodes(Oid source)
{
	if (!fav_is_distributed(source))
		return;
	set_option("citus.enable_unsafe_triggers", "on");
	set_option("citus.multi_shard_modify_mode", "sequential");
}

/* Maintenance is a matter of each shard. */
void
fav_refuse_distributed(Oid source, Oid function)
{
	if (fav_is_distributed(source))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is distributed", get_rel_name(source)),
				 errhint("Call the function for each shard: SELECT * FROM"
						 " run_command_on_placements('%s', $$SELECT %s('%%s')$$).",
						 get_rel_name(source), get_func_name(function))));
}

/*
 * fav_build on each shard.  Each of these is a session of its own, and this one is in no
 * transaction that they could wait for.  As the owner.
 */
void
fav_build_shards(const FavAttachment *attachment, bool rebuild)
{
	const char *name = quote_literal_cstr(get_rel_name(attachment->levels));
	const char *command = psprintf("CALL %s.fav_build(%%L, %s, %s)", fav_query(attachment, "{fav}"),
								   name, rebuild ? "true" : "false");
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
				 errdetail_internal("%s", TextDatumGetCString(column_of_row(1, &isnull))),
				 errhint("Call fav_build again: it builds what is missing.")));
}
