/*
 * attach.c
 *		fav_attach and fav_detach.
 */
#include "attach.h"

#include "catalog/pg_type.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(fav_attach);
PG_FUNCTION_INFO_V1(fav_detach);

/* Lock the source with its partitions and children, and refuse what cannot be attached. */
static void
check_source(Oid source)
{
	List	   *family;
	ListCell   *cell;
	char		kind = get_rel_relkind(source);

	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", get_rel_name(source)),
				 errdetail("Filters can be attached to ordinary and partitioned tables.")));
	fav_check_owner(source);
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
		if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_FOREIGN_TABLE)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot attach filters to a table with foreign table \"%s\" in it",
							get_rel_name(lfirst_oid(cell))),
					 errdetail("Changes on the foreign server would not be seen here."),
					 errhint("Attach the filters on the server that has the rows.")));
}

static void
find_usable_column(Oid source, const char *name, FavColumn *column)
{
	HeapTuple	tuple;
	char		generated;

	fav_find_column(source, name, column);
	tuple = SearchSysCacheAttNum(source, column->number);
	generated = ((Form_pg_attribute) GETSTRUCT(tuple))->attgenerated;
	ReleaseSysCache(tuple);
	if (column->number < 1 || (generated != '\0' && generated != ATTRIBUTE_GENERATED_STORED))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of table \"%s\" is not stored in its rows", name,
						get_rel_name(source))));
}

/* Without an index that begins with the key, every look-up would read the whole table. */
static void
advise_index(Oid source, const FavColumn *key)
{
	Relation	relation = table_open(source, AccessShareLock);
	List	   *indexes = RelationGetIndexList(relation);
	ListCell   *cell;
	bool		found = false;

	foreach(cell, indexes)
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));

		if (!HeapTupleIsValid(tuple))
			continue;
		found = found || ((Form_pg_index) GETSTRUCT(tuple))->indkey.values[0] == key->number;
		ReleaseSysCache(tuple);
	}
	table_close(relation, AccessShareLock);
	if (!found)
		ereport(WARNING,
				(errmsg("table \"%s\" has no index that begins with column \"%s\"",
						get_rel_name(source), NameStr(key->name)),
				 errdetail("Each delete, and each rebuild of a filter, will read the whole table."),
				 errhint("Create an index on the columns of key and element.")));
}

/* What CREATE TABLE would say, with what to do about it. */
static void
check_names(Oid source, const char *key, const char *levels)
{
	if (strcmp(key, "base") == 0 || strcmp(key, "middle") == 0 || strcmp(key, "recent") == 0 ||
		strcmp(key, "filter") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_COLUMN),
				 errmsg("the key cannot be called \"%s\"", key),
				 errdetail("A column of the filters has this name."),
				 errhint("Rename the column.")));
	if (OidIsValid(get_relname_relid(levels, get_rel_namespace(source))))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("relation \"%s\" already exists", levels),
				 errhint("Call fav_detach if these filters are attached, drop the table if it was"
						 " left by a source that was dropped, or choose another name.")));
}

/*
 * fav_attach(source, key, element, error_rate, seed, name)
 */
Datum
fav_attach(PG_FUNCTION_ARGS)
{
	FavAttachment new = {.schema = fav_schema_of_function(fcinfo)};
	const char *view_name;
	const char *levels_name;
	FavRole		role;

	new.source = fav_source_argument(fcinfo);
	if (PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("key, element and error_rate must not be null")));
	check_source(new.source);
	find_usable_column(new.source, NameStr(*PG_GETARG_NAME(1)), &new.key);
	find_usable_column(new.source, NameStr(*PG_GETARG_NAME(2)), &new.element);
	if (new.key.number == new.element.number)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("key and element are the same column \"%s\"", NameStr(new.key.name))));
	new.key_type = fav_check_key(&new.key);
	new.kind = fav_kind_of_column(&new.element);
	new.params = fav_default_params();
	new.params.error_rate = PG_GETARG_FLOAT8(3);
	if (!PG_ARGISNULL(4))
		new.params.seed = (uint64_t) PG_GETARG_INT64(4);
	fav_check_params(&new.params);
	view_name = PG_ARGISNULL(5) ? makeObjectName(get_rel_name(new.source), NULL, "fav") :
		NameStr(*PG_GETARG_NAME(5));
	levels_name = PG_ARGISNULL(5) ? makeObjectName(get_rel_name(new.source), "fav", "levels") :
		makeObjectName(view_name, NULL, "levels");
	check_names(new.source, NameStr(new.key.name), levels_name);
	advise_index(new.source, &new.key);

	fav_become_owner(&role, fav_owner_of(new.source));
	new.levels = fav_create_objects(&new, view_name, levels_name);
	fav_create_triggers(&new);
	CommandCounterIncrement();
	fav_build_all(fav_attachment_of_levels(new.schema, new.source, new.levels, false));
	fav_become_caller(&role);
	PG_RETURN_OID(fav_view_of_levels(new.schema, new.levels));
}

/* A trigger alone proves nothing: anybody can make one on their own table that names another. */
static void
check_may_drop(Oid schema, Oid source, Oid levels)
{
	Oid			fav = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("fav"),
									  ObjectIdGetDatum(schema));

	if (fav_owner_of(levels) != fav_owner_of(source) ||
		get_rel_relkind(levels) != RELKIND_RELATION ||
		get_atttype(levels, FAV_LEVELS_RECENT) != fav)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" does not hold filters of table \"%s\"",
						get_rel_name(levels), get_rel_name(source)),
				 errdetail("It has another owner, or not the columns of a levels table."),
				 errhint("Give both tables one owner, or drop the trigger that names it.")));
}

/*
 * fav_detach(source, name).  The filters go, too: from the next write on they would be wrong,
 * and nobody would be told.
 */
Datum
fav_detach(PG_FUNCTION_ARGS)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	Oid			source = fav_source_argument(fcinfo);
	Oid			levels;
	FavRole		role;

	fav_check_owner(source);
	levels = fav_choose_levels(schema, source,
							   PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1)));
	fav_check_owner(levels);
	check_may_drop(schema, source, levels);
	fav_become_owner(&role, fav_owner_of(levels));
	fav_drop_objects(schema, levels);
	fav_become_caller(&role);
	PG_RETURN_VOID();
}
