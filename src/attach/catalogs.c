/*
 * catalogs.c
 *		Reading those catalogs of PostgreSQL that have no system cache.
 */
#include "attach/catalogs.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_trigger.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

/* Begin to scan the rows with this value in the column that the index begins with. */
void
fav_begin_scan(FavScan *scan, Oid catalog, Oid index, AttrNumber column, Oid value)
{
	ScanKeyData key;

	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(value));
	scan->catalog = table_open(catalog, AccessShareLock);
	scan->scan = systable_beginscan(scan->catalog, index, true, NULL, 1, &key);
}

/* NULL if there are no more. */
HeapTuple
fav_next_row(FavScan *scan)
{
	return systable_getnext(scan->scan);
}

/* A column that may be NULL, or of variable length. */
Datum
fav_row_column(const FavScan *scan, HeapTuple row, AttrNumber column, bool *isnull)
{
	return heap_getattr(row, column, RelationGetDescr(scan->catalog), isnull);
}

void
fav_end_scan(FavScan *scan)
{
	systable_endscan(scan->scan);
	table_close(scan->catalog, AccessShareLock);
}

/*
 * Dependencies
 */

/* The objects of a class that depend on an object or, the other way, that it depends on. */
static List *
list_related(bool dependents, Oid class, Oid object, Oid wanted)
{
	Relation	catalog = table_open(DependRelationId, AccessShareLock);
	List	   *found = NIL;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	row;

	ScanKeyInit(&keys[0], dependents ? Anum_pg_depend_refclassid : Anum_pg_depend_classid,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(class));
	ScanKeyInit(&keys[1], dependents ? Anum_pg_depend_refobjid : Anum_pg_depend_objid,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(object));
	scan = systable_beginscan(catalog, dependents ? DependReferenceIndexId :
							  DependDependerIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(row);

		if ((dependents ? depend->classid : depend->refclassid) == wanted)
			found = list_append_unique_oid(found,
										   dependents ? depend->objid : depend->refobjid);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/* The objects of a class that depend on a table. */
List *
fav_dependents(Oid table, Oid dependent_class)
{
	return list_related(true, RelationRelationId, table, dependent_class);
}

/* The objects of a class that a rule depends on. */
List *
fav_dependencies_of_rule(Oid rule, Oid class)
{
	return list_related(false, RewriteRelationId, rule, class);
}

/*
 * The relation that a rule or a trigger belongs to; InvalidOid if there is no such rule or
 * trigger.
 */

Oid
fav_relation_of_rule(Oid rule)
{
	Oid			relation = InvalidOid;
	HeapTuple	row;
	FavScan		scan;

	fav_begin_scan(&scan, RewriteRelationId, RewriteOidIndexId, Anum_pg_rewrite_oid, rule);
	if (HeapTupleIsValid(row = fav_next_row(&scan)))
		relation = ((Form_pg_rewrite) GETSTRUCT(row))->ev_class;
	fav_end_scan(&scan);
	return relation;
}

Oid
fav_relation_of_trigger(Oid trigger)
{
	Oid			relation = InvalidOid;
	HeapTuple	row;
	FavScan		scan;

	fav_begin_scan(&scan, TriggerRelationId, TriggerOidIndexId, Anum_pg_trigger_oid, trigger);
	if (HeapTupleIsValid(row = fav_next_row(&scan)))
		relation = ((Form_pg_trigger) GETSTRUCT(row))->tgrelid;
	fav_end_scan(&scan);
	return relation;
}
