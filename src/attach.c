/*
 * attach.c
 *		fav_attach and fav_detach: the table of attachments, the triggers on the
 *		source, and the table for filters where there is none yet.
 */
#include "attach.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Numbers beyond are refused by the triggers. */
#define MAX_NUMBER		999999

PG_FUNCTION_INFO_V1(fav_attach);
PG_FUNCTION_INFO_V1(fav_detach);
PG_FUNCTION_INFO_V1(fav_attachment_check);

void
fav_check_owner(Oid relation)
{
	if (!fav_owns_relation(relation, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relation)), get_rel_name(relation));
}

/*
 * SPI, with everything that can go wrong
 */

static void
run(const char *query)
{
	int			status = SPI_execute(query, false, 0);

	if (status < 0)
		elog(ERROR, "SPI_execute failed: %s: %s", SPI_result_code_string(status), query);
}

static void
connect_spi(void)
{
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

/*
 * Writing the table of attachments.  It belongs to whoever created the extension
 * (a superuser, also where somebody else was trusted to), and only we write it,
 * as that role, after all checks.
 */

static Oid
catalog_owner(Oid catalog)
{
	Relation	relation = table_open(catalog, AccessShareLock);
	Oid			owner = relation->rd_rel->relowner;

	table_close(relation, AccessShareLock);
	return owner;
}

static void
write_catalog(Oid schema, const char *query, int count, Oid *types, Datum *values)
{
	FavRole		role;
	int			status;

	fav_role_begin(&role, catalog_owner(fav_catalog_oid(schema)), true);
	connect_spi();
	status = SPI_execute_with_args(query, count, types, values, NULL, false, 0);
	if (status < 0)
		elog(ERROR, "SPI_execute_with_args failed: %s: %s", SPI_result_code_string(status), query);
	SPI_finish();
	fav_role_end(&role);
}

static void
delete_catalog_row(Oid schema, Oid source, int32 number)
{
	Oid			types[2] = {OIDOID, INT4OID};
	Datum		values[2] = {ObjectIdGetDatum(source), Int32GetDatum(number)};

	write_catalog(schema,
				  psprintf("DELETE FROM %s WHERE source OPERATOR(pg_catalog.=) $1 AND number OPERATOR(pg_catalog.=) $2",
						   fav_relation_name(fav_catalog_oid(schema))),
				  2, types, values);
}

static void
insert_catalog_row(Oid schema, const FavCatalogRow *row)
{
	Oid			types[9] = {REGCLASSOID, INT4OID, NAMEOID, NAMEOID, REGCLASSOID, NAMEOID, NAMEOID, FLOAT8OID, REGTYPEOID};
	Datum		values[9];

	values[0] = ObjectIdGetDatum(row->source);
	values[1] = Int32GetDatum(row->number);
	values[2] = NameGetDatum(&row->names[0]);
	values[3] = NameGetDatum(&row->names[1]);
	values[4] = ObjectIdGetDatum(row->target);
	values[5] = NameGetDatum(&row->names[2]);
	values[6] = NameGetDatum(&row->names[3]);
	values[7] = Float8GetDatum(row->error_rate);
	values[8] = ObjectIdGetDatum(row->elements);
	write_catalog(schema,
				  psprintf("INSERT INTO %s (source, number, key, element, target, target_key, filter, error_rate, elements)"
						   " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
						   fav_relation_name(fav_catalog_oid(schema))),
				  9, types, values);
}

/*
 * Columns were renamed: note their new names, for dumps.  Somebody may be doing
 * that just now; and it can wait, if our snapshot is old.
 */
void
fav_catalog_rename(FavAttachment *attachment)
{
	Oid			types[6] = {OIDOID, INT4OID, NAMEOID, NAMEOID, NAMEOID, NAMEOID};
	Datum		values[6];
	const char *catalog = fav_relation_name(fav_catalog_oid(attachment->schema));

	if (IsolationUsesXactSnapshot())
		return;
	values[0] = ObjectIdGetDatum(attachment->source);
	values[1] = Int32GetDatum(attachment->number);
	values[2] = NameGetDatum(&attachment->key.name);
	values[3] = NameGetDatum(&attachment->element.name);
	values[4] = NameGetDatum(&attachment->target_key.name);
	values[5] = NameGetDatum(&attachment->filter.name);
	write_catalog(attachment->schema,
				  psprintf("WITH one AS (SELECT source, number FROM %s WHERE source OPERATOR(pg_catalog.=) $1"
						   " AND number OPERATOR(pg_catalog.=) $2 FOR UPDATE SKIP LOCKED)"
						   " UPDATE %s a SET key = $3, element = $4, target_key = $5, filter = $6 FROM one"
						   " WHERE a.source OPERATOR(pg_catalog.=) one.source AND a.number OPERATOR(pg_catalog.=) one.number",
						   catalog, catalog),
				  6, types, values);
	attachment->renamed = false;
}

/*
 * Trigger of the table itself.  Everybody may insert rows (or a restore by an
 * ordinary user would fail), but only about tables that are theirs.  Fills in
 * the column numbers, which a dump does not know.  Rows about tables that are
 * gone, and rows that are there already, are passed over.
 */
Datum
fav_attachment_check(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	TupleDesc	descriptor;
	HeapTuple	tuple;
	Datum		values[FAV_CATALOG_NATTS];
	bool		nulls[FAV_CATALOG_NATTS];
	static const int names[4] = {FAV_CATALOG_KEY, FAV_CATALOG_ELEMENT, FAV_CATALOG_TARGET_KEY, FAV_CATALOG_FILTER};
	Datum		numbers[4];
	Oid			relations[2];
	int			column = FAV_CATALOG_COLUMNS;
	Datum		value;
	bool		isnull = false;
	int			i;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(data->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(data->tg_event) || TRIGGER_FIRED_BY_DELETE(data->tg_event) ||
		RelationGetNumberOfAttributes(data->tg_relation) != FAV_CATALOG_NATTS ||
		RelationGetRelid(data->tg_relation) != fav_catalog_oid(get_func_namespace(fcinfo->flinfo->fn_oid)))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("fav_attachment_check is the trigger of table \"%s\" only", FAV_CATALOG)));
	descriptor = RelationGetDescr(data->tg_relation);
	tuple = TRIGGER_FIRED_BY_UPDATE(data->tg_event) ? data->tg_newtuple : data->tg_trigtuple;
	heap_deform_tuple(tuple, descriptor, values, nulls);
	for (i = 0; i < FAV_CATALOG_COLUMNS - 1; i++)
		if (nulls[i])
			return PointerGetDatum(tuple);	/* the constraint will complain */

	relations[0] = DatumGetObjectId(values[FAV_CATALOG_SOURCE - 1]);
	relations[1] = DatumGetObjectId(values[FAV_CATALOG_TARGET - 1]);
	for (i = 0; i < 2; i++)
	{
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relations[i])))
			return PointerGetDatum(NULL);
		fav_check_owner(relations[i]);
	}
	if (TRIGGER_FIRED_BY_INSERT(data->tg_event))
	{
		List	   *rows = fav_catalog_rows(get_func_namespace(fcinfo->flinfo->fn_oid), relations[0]);
		ListCell   *cell;

		foreach(cell, rows)
		{
			FavCatalogRow *row = lfirst(cell);

			if (row->target == relations[1] &&
				strcmp(NameStr(row->names[3]), NameStr(*DatumGetName(values[FAV_CATALOG_FILTER - 1]))) == 0)
				return PointerGetDatum(NULL);
		}
	}

	for (i = 0; i < 4; i++)
		numbers[i] = Int16GetDatum(get_attnum(relations[i / 2], NameStr(*DatumGetName(values[names[i] - 1]))));
	value = PointerGetDatum(construct_array(numbers, 4, INT2OID, sizeof(int16), true, TYPALIGN_SHORT));
	tuple = heap_modify_tuple_by_cols(tuple, descriptor, 1, &column, &value, &isnull);
	return PointerGetDatum(tuple);
}

/*
 * Checks of what is to be attached
 */

static void
check_table(Oid relation, const char *role)
{
	char		relkind = get_rel_relkind(relation);

	if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", get_rel_name(relation)),
				 errdetail("The %s of an attachment must be an ordinary or a partitioned table.", role)));
	if (get_rel_persistence(relation) == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("table \"%s\" is temporary", get_rel_name(relation)),
				 errdetail("Temporary tables cannot be attached.")));
}

static void
check_column(Oid relation, const NameData *name)
{
	FavColumn	column;

	if (!fav_column_find(relation, NameStr(*name), 0, &column))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table \"%s\" does not exist", NameStr(*name), get_rel_name(relation))));
}

/* After a crash an unlogged table is empty; filters without their source lie. */
static void
check_persistence(Oid source, Oid target)
{
	if (get_rel_persistence(source) != get_rel_persistence(target))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("one of the tables \"%s\" and \"%s\" is unlogged", get_rel_name(source), get_rel_name(target)),
				 errdetail("After a crash one of them would be empty and the other would not.")));
}

/* One filter for a key: there must be a unique index on the key alone. */
static void
check_unique_key(const FavAttachment *attachment)
{
	Relation	target = table_open(attachment->target, AccessShareLock);
	List	   *indexes = RelationGetIndexList(target);
	ListCell   *cell;
	bool		found = false;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);
		Form_pg_index form = index->rd_index;

		if (form->indisunique && form->indimmediate && form->indisvalid && form->indnkeyatts == 1 &&
			form->indkey.values[0] == attachment->target_key.number && RelationGetIndexPredicate(index) == NIL)
			found = true;
		index_close(index, AccessShareLock);
	}
	table_close(target, AccessShareLock);
	if (!found)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TABLE_DEFINITION),
				 errmsg("column \"%s\" of table \"%s\" has no unique index", NameStr(attachment->target_key.name),
						get_rel_name(attachment->target)),
				 errdetail("There must be at most one filter for a key."),
				 errhint("Make the column a primary key or unique.")));
}

/* Looking up a key in a source without an index reads all of it. */
static void
advise_index(const FavAttachment *attachment)
{
	Relation	source = table_open(attachment->source, AccessShareLock);
	List	   *indexes = RelationGetIndexList(source);
	ListCell   *cell;
	bool		found = false;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		if (index->rd_index->indkey.values[0] == attachment->key.number)
			found = true;
		index_close(index, AccessShareLock);
	}
	table_close(source, AccessShareLock);
	if (!found)
		ereport(WARNING,
				(errmsg("table \"%s\" has no index that starts with column \"%s\"", get_rel_name(attachment->source),
						NameStr(attachment->key.name)),
				 errdetail("To rebuild one filter, or to find out whether a deleted pair was the last of its kind, the whole table has to be read."),
				 errhint("Create an index on (%s, %s), unique if pairs are.",
						 quote_identifier(NameStr(attachment->key.name)),
						 quote_identifier(NameStr(attachment->element.name)))));
}

/* The only column of the primary key. */
static void
default_target_key(Oid target, NameData *name)
{
	Bitmapset  *columns;
	Oid			constraint;
	int			column = -1;

	columns = get_primary_key_attnos(target, false, &constraint);
	if (bms_num_members(columns) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("table \"%s\" has no primary key of one column", get_rel_name(target)),
				 errhint("Name the column that holds the key with target_key.")));
	column = bms_next_member(columns, column) + FirstLowInvalidHeapAttributeNumber;
	namestrcpy(name, get_attname(target, (AttrNumber) column, false));
}

/* The only column of type fav. */
static void
default_filter(Oid target, Oid fav, NameData *name)
{
	Relation	relation = table_open(target, AccessShareLock);
	TupleDesc	descriptor = RelationGetDescr(relation);
	int			found = 0;
	int			i;

	for (i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (!attribute->attisdropped && attribute->atttypid == fav)
		{
			*name = attribute->attname;
			found++;
		}
	}
	table_close(relation, AccessShareLock);
	if (found != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("table \"%s\" has %d columns of type fav", get_rel_name(target), found),
				 errhint("Name the column that holds the filter with filter.")));
}

static Oid
fav_type(Oid schema)
{
	Oid			type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("fav"),
									   ObjectIdGetDatum(schema));

	if (!OidIsValid(type))
		elog(ERROR, "type fav is not in the schema of its functions");
	return type;
}

static char *
collation_name(Oid collation)
{
	HeapTuple	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	Form_pg_collation form;
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	form = (Form_pg_collation) GETSTRUCT(tuple);
	name = quote_qualified_identifier(get_namespace_name(form->collnamespace), NameStr(form->collname));
	ReleaseSysCache(tuple);
	return name;
}

/*
 * The table for filters beside the source, of its owner.  One that an earlier
 * attachment has left is used again.
 */
static Oid
make_target(Oid schema, Oid source, const char *key, NameData *target_key, NameData *filter, bool *fresh)
{
	char	   *name = makeObjectName(get_rel_name(source), NULL, "fav");
	Oid			namespace = get_rel_namespace(source);
	Oid			target = get_relname_relid(name, namespace);
	FavColumn	column;

	(void) fav_column_find(source, key, 0, &column);
	fav_check_key_type(&column);
	namestrcpy(target_key, key);
	namestrcpy(filter, "filter");
	*fresh = !OidIsValid(target);
	if (*fresh)
	{
		FavRole		role;
		Relation	relation = table_open(source, AccessShareLock);
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), column.number - 1);
		StringInfoData query;

		initStringInfo(&query);
		appendStringInfo(&query, "CREATE %sTABLE %s (%s %s",
						 relation->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED ? "UNLOGGED " : "",
						 quote_qualified_identifier(get_namespace_name(namespace), name),
						 quote_identifier(key),
						 format_type_extended(attribute->atttypid, attribute->atttypmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
		if (OidIsValid(attribute->attcollation))
			appendStringInfo(&query, " COLLATE %s", collation_name(attribute->attcollation));
		appendStringInfo(&query, " PRIMARY KEY, filter %s NOT NULL)",
						 quote_qualified_identifier(get_namespace_name(schema), "fav"));
		fav_role_begin(&role, relation->rd_rel->relowner, true);
		connect_spi();
		run(query.data);
		SPI_finish();
		fav_role_end(&role);
		table_close(relation, NoLock);
		target = get_relname_relid(name, namespace);
		if (!OidIsValid(target))
			elog(ERROR, "table \"%s\" was not created", name);
		return target;
	}

	if (!fav_column_find(target, key, 0, &column) || !fav_column_find(target, "filter", 0, &column) ||
		column.type != fav_type(schema))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("table \"%s\" already exists", name),
				 errdetail("It is not a table of filters for column \"%s\".", key),
				 errhint("Name the table and columns that are to hold the filters with target, target_key and filter.")));
	fav_check_owner(target);
	return target;
}

/*
 * Triggers
 */

static bool
trigger_exists(Oid relation, int32 number, FavTrigger trigger)
{
	return OidIsValid(get_trigger_oid(relation, fav_trigger_name(number, trigger), true));
}

/*
 * Rows of this source whose triggers are gone (the source was made anew, or
 * somebody dropped them) and rows of tables that are gone have no meaning any
 * more.
 */
static void
sweep_catalog(Oid schema, Oid source)
{
	List	   *rows = fav_catalog_rows(schema, InvalidOid);
	ListCell   *cell;

	foreach(cell, rows)
	{
		FavCatalogRow *row = lfirst(cell);

		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(row->source)) ||
			(row->source == source && !trigger_exists(source, row->number, FAV_TRIGGER_INSERT)))
			delete_catalog_row(schema, row->source, row->number);
	}
}

/* A number whose triggers are not there, whether or not there is a row for them. */
static int32
free_number(Oid schema, Oid source)
{
	List	   *rows = fav_catalog_rows(schema, source);
	ListCell   *cell;
	int32		number = 1;

	while (number <= MAX_NUMBER)
	{
		bool		taken = false;
		int			i;

		foreach(cell, rows)
			taken = taken || ((FavCatalogRow *) lfirst(cell))->number == number;
		for (i = 0; i < FAV_NTRIGGERS; i++)
			taken = taken || trigger_exists(source, number, i);
		if (!taken)
			return number;
		number++;
	}
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("table \"%s\" has too many attachments", get_rel_name(source))));
	pg_unreachable();
}

/* The source, its partitions and its children. */
static List *
family(Oid source)
{
	return find_all_inheritors(source, NoLock, NULL);
}

static bool
has_trigger_of_its_own(Oid relation, int32 number, FavTrigger trigger)
{
	/* a partitioned table's row trigger is on its partitions, too */
	return trigger == FAV_TRIGGER_ROW && trigger_exists(relation, number, trigger);
}

static void
create_triggers(Oid schema, Oid source, int32 number)
{
	static const char *const events[FAV_NTRIGGERS] = {
		"BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH STATEMENT",
		"AFTER INSERT ON %s REFERENCING NEW TABLE AS fav_new FOR EACH STATEMENT",
		"AFTER UPDATE ON %s REFERENCING OLD TABLE AS fav_old NEW TABLE AS fav_new FOR EACH STATEMENT",
		"AFTER DELETE ON %s REFERENCING OLD TABLE AS fav_old FOR EACH STATEMENT",
		"AFTER TRUNCATE ON %s FOR EACH STATEMENT",
		"AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW"
	};
	const char *function = quote_qualified_identifier(get_namespace_name(schema), "fav_maintain");
	List	   *relations = family(source);
	ListCell   *cell;
	bool		alone = list_length(relations) == 1 && !has_superclass(source) &&
		get_rel_relkind(source) != RELKIND_PARTITIONED_TABLE;
	int			i;

	foreach(cell, relations)
	{
		Oid			relation = lfirst_oid(cell);
		const char *name = fav_relation_name(relation);

		for (i = 0; i < FAV_NTRIGGERS; i++)
		{
			const char *trigger = fav_trigger_name(number, i);
			StringInfoData query;

			if (!has_trigger_of_its_own(relation, number, i))
			{
				initStringInfo(&query);
				appendStringInfo(&query, "CREATE TRIGGER %s ", trigger);
				appendStringInfo(&query, events[i], name);
				appendStringInfo(&query, " EXECUTE FUNCTION %s('%d')", function, number);
				run(query.data);
			}

			/*
			 * Statement triggers fire whatever session_replication_role says:
			 * filters that are true only in some sessions are of no use.  The
			 * row trigger is for rows without statement.  These come from
			 * replication only, unless partitions or parents are involved.
			 */
			run(psprintf("ALTER TABLE ONLY %s ENABLE %s TRIGGER %s", name,
						 i == FAV_TRIGGER_ROW && alone ? "REPLICA" : "ALWAYS", trigger));
		}
	}
}

/*
 * Nobody shall drop the target, or one of the columns, from under the triggers
 * without saying CASCADE.  (A dump does not carry this.)
 */
static void
record_dependencies(const FavAttachment *attachment)
{
	ObjectAddress columns[4];
	int			i;
	int			j;

	ObjectAddressSubSet(columns[0], RelationRelationId, attachment->source, attachment->key.number);
	ObjectAddressSubSet(columns[1], RelationRelationId, attachment->source, attachment->element.number);
	ObjectAddressSubSet(columns[2], RelationRelationId, attachment->target, attachment->target_key.number);
	ObjectAddressSubSet(columns[3], RelationRelationId, attachment->target, attachment->filter.number);
	for (i = 0; i < FAV_NTRIGGERS; i++)
	{
		ObjectAddress trigger;

		ObjectAddressSet(trigger, TriggerRelationId,
						 get_trigger_oid(attachment->source, fav_trigger_name(attachment->number, i), false));
		for (j = 0; j < 4; j++)
			recordDependencyOn(&trigger, &columns[j], DEPENDENCY_NORMAL);
	}
}

static void
drop_triggers(Oid source, int32 number)
{
	List	   *relations = family(source);
	ListCell   *cell;
	int			i;

	foreach(cell, relations)
	{
		Oid			relation = lfirst_oid(cell);

		for (i = 0; i < FAV_NTRIGGERS; i++)
			if (trigger_exists(relation, number, i))
				run(psprintf("DROP TRIGGER %s ON %s", fav_trigger_name(number, i), fav_relation_name(relation)));
	}
}

/*
 * Triggers of ours whose row is gone: a dump without data leaves them.  All they
 * do is raise errors.
 */
static bool
drop_orphans(Oid schema, Oid source)
{
	List	   *rows = fav_catalog_rows(schema, source);
	List	   *orphans = NIL;
	Relation	relation = table_open(source, AccessShareLock);
	Oid			owner = relation->rd_rel->relowner;
	ListCell   *cell;
	FavRole		role;
	int			i;

	for (i = 0; relation->trigdesc != NULL && i < relation->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &relation->trigdesc->triggers[i];
		char	   *function = get_func_name(trigger->tgfoid);
		bool		known = false;
		int			number;

		if (get_func_namespace(trigger->tgfoid) != schema || function == NULL ||
			strcmp(function, "fav_maintain") != 0 || sscanf(trigger->tgname, "fav_%d_", &number) != 1)
			continue;
		foreach(cell, rows)
			known = known || ((FavCatalogRow *) lfirst(cell))->number == number;
		if (!known)
			orphans = list_append_unique_int(orphans, number);
	}
	table_close(relation, AccessShareLock);
	if (orphans == NIL)
		return false;
	fav_role_begin(&role, owner, true);
	connect_spi();
	foreach(cell, orphans)
		drop_triggers(source, lfirst_int(cell));
	SPI_finish();
	fav_role_end(&role);
	return true;
}

/*
 * fav_attach(source, key, element, target, target_key, filter, error_rate)
 */

static void
check_not_maintained(Oid schema, const FavAttachment *attachment)
{
	List	   *rows = fav_catalog_rows(schema, InvalidOid);
	ListCell   *cell;

	foreach(cell, rows)
	{
		FavCatalogRow *row = lfirst(cell);
		FavColumn	column;

		if (row->target == attachment->target &&
			!(row->source == attachment->source && row->number == attachment->number) &&
			SearchSysCacheExists1(RELOID, ObjectIdGetDatum(row->source)) &&
			trigger_exists(row->source, row->number, FAV_TRIGGER_INSERT) &&
			fav_column_find(row->target, NameStr(row->names[3]), row->numbers[3], &column) &&
			column.number == attachment->filter.number)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("column \"%s\" of table \"%s\" is maintained already", NameStr(column.name),
							get_rel_name(row->target)),
					 errdetail("Table \"%s\" is attached to it.", get_rel_name(row->source)),
					 errhint("Detach that with fav_detach, or use another column.")));
	}
}

static void
require_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", name)));
}

Datum
fav_attach(PG_FUNCTION_ARGS)
{
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	FavCatalogRow row;
	FavAttachment attachment;
	FavRole		role;
	bool		fresh = false;
	int			i;

	require_argument(fcinfo, 0, "source");
	require_argument(fcinfo, 1, "key");
	require_argument(fcinfo, 2, "element");
	require_argument(fcinfo, 6, "error_rate");
	memset(&row, 0, sizeof(row));
	row.source = PG_GETARG_OID(0);
	row.names[0] = *PG_GETARG_NAME(1);
	row.names[1] = *PG_GETARG_NAME(2);
	row.error_rate = PG_GETARG_FLOAT8(6);

	/* ask first: a lock alone can do harm */
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(row.source)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table with OID %u does not exist", row.source)));
	check_table(row.source, "source");
	fav_check_owner(row.source);

	/*
	 * From here on nobody writes the source.  What the build does not see, the
	 * triggers will.
	 */
	fav_lock_source(row.source, ShareRowExclusiveLock);
	check_column(row.source, &row.names[0]);
	check_column(row.source, &row.names[1]);
	sweep_catalog(schema, row.source);
	(void) drop_orphans(schema, row.source);

	if (PG_ARGISNULL(3))
	{
		if (!PG_ARGISNULL(4) || !PG_ARGISNULL(5))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("target_key and filter need a target")));
		row.target = make_target(schema, row.source, NameStr(row.names[0]), &row.names[2], &row.names[3], &fresh);
	}
	else
	{
		row.target = PG_GETARG_OID(3);
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(row.target)))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("table with OID %u does not exist", row.target)));
		check_table(row.target, "target");
		fav_check_owner(row.target);
	}
	if (row.target == row.source)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("source and target are the same table")));
	LockRelationOid(row.target, RowExclusiveLock);
	if (!PG_ARGISNULL(3))
	{
		if (PG_ARGISNULL(4))
			default_target_key(row.target, &row.names[2]);
		else
			row.names[2] = *PG_GETARG_NAME(4);
		if (PG_ARGISNULL(5))
			default_filter(row.target, fav_type(schema), &row.names[3]);
		else
			row.names[3] = *PG_GETARG_NAME(5);
	}
	check_column(row.target, &row.names[2]);
	check_column(row.target, &row.names[3]);
	check_persistence(row.source, row.target);

	row.number = free_number(schema, row.source);
	fav_attachment_resolve(&attachment, schema, &row);
	row.elements = fav_element_type(attachment.kind);
	fav_attachment_check_rights(&attachment);
	check_unique_key(&attachment);
	check_not_maintained(schema, &attachment);
	advise_index(&attachment);
	insert_catalog_row(schema, &row);

	fav_role_begin(&role, attachment.source_owner, true);
	connect_spi();
	create_triggers(schema, row.source, row.number);
	SPI_finish();
	fav_role_end(&role);
	CommandCounterIncrement();
	record_dependencies(&attachment);

	fav_role_begin(&role, attachment.target_owner, true);
	connect_spi();
	fav_build_all(&attachment, fresh);
	for (i = 0; i < FAV_NQUERIES; i++)
		if (attachment.plans[i] != NULL)
			SPI_freeplan(attachment.plans[i]);
	SPI_finish();
	fav_role_end(&role);
	PG_RETURN_OID(row.target);
}

/*
 * fav_detach(source, target, filter)
 */
Datum
fav_detach(PG_FUNCTION_ARGS)
{
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	FavCatalogRow *row;
	FavRole		role;
	Oid			source;

	require_argument(fcinfo, 0, "source");
	source = PG_GETARG_OID(0);
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(source)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table with OID %u does not exist", source)));
	fav_check_owner(source);
	fav_lock_source(source, ShareRowExclusiveLock);
	if (drop_orphans(schema, source) && fav_catalog_rows(schema, source) == NIL)
		PG_RETURN_VOID();
	row = fav_catalog_choose(schema, source,
							 PG_ARGISNULL(1) ? InvalidOid : PG_GETARG_OID(1),
							 PG_ARGISNULL(2) ? NULL : NameStr(*PG_GETARG_NAME(2)));
	fav_role_begin(&role, catalog_owner(source), true);
	connect_spi();
	drop_triggers(source, row->number);
	SPI_finish();
	fav_role_end(&role);
	delete_catalog_row(schema, source, row->number);
	PG_RETURN_VOID();
}
