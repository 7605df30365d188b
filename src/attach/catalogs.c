/*
 * catalogs.c
 *		Reading the catalogs of PostgreSQL.
 */
#include "attach/catalogs.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_depend.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Begin to scan the rows with these values in the columns that the index begins with. */
static void
begin_scan(FavScan *scan, Oid catalog, Oid index, int ncolumns, const AttrNumber *columns,
		   const Oid *values)
{
	ScanKeyData keys[2];
	int			i;

	for (i = 0; i < ncolumns; i++)
		ScanKeyInit(&keys[i], columns[i], BTEqualStrategyNumber, F_OIDEQ,
					ObjectIdGetDatum(values[i]));
	scan->catalog = table_open(catalog, AccessShareLock);
	scan->scan = systable_beginscan(scan->catalog, index, ncolumns > 0, NULL, ncolumns, keys);
}

void
fav_begin_scan(FavScan *scan, Oid catalog, Oid index, AttrNumber column, Oid value)
{
	begin_scan(scan, catalog, index, 1, &column, &value);
}

/* All rows. */
void
fav_begin_scan_of_all(FavScan *scan, Oid catalog)
{
	begin_scan(scan, catalog, InvalidOid, 0, NULL, NULL);
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

/* A column of type Oid of an object's row in a system cache; InvalidOid if there is no such row. */
Oid
fav_oid_of(int cache, Oid object, AttrNumber column)
{
	HeapTuple	row = SearchSysCache1(cache, ObjectIdGetDatum(object));
	Oid			value = InvalidOid;
	bool		isnull;

	if (HeapTupleIsValid(row))
	{
		value = DatumGetObjectId(SysCacheGetAttr(cache, row, column, &isnull));
		ReleaseSysCache(row);
	}
	return value;
}

/* The objects of a class that depend on an object of another class. */
List *
fav_dependents(Oid class, Oid object, Oid dependent_class)
{
	const AttrNumber columns[2] = {Anum_pg_depend_refclassid, Anum_pg_depend_refobjid};
	const Oid	values[2] = {class, object};
	List	   *found = NIL;
	HeapTuple	row;
	FavScan		scan;

	begin_scan(&scan, DependRelationId, DependReferenceIndexId, 2, columns, values);
	while (HeapTupleIsValid(row = fav_next_row(&scan)))
		if (((Form_pg_depend) GETSTRUCT(row))->classid == dependent_class)
			found = list_append_unique_oid(found, ((Form_pg_depend) GETSTRUCT(row))->objid);
	fav_end_scan(&scan);
	return found;
}

/*
 * The relation that an object belongs to, which is in this column of its catalog; InvalidOid if
 * there is no such object.
 */
Oid
fav_relation_of(Oid catalog, Oid object, AttrNumber column)
{
	Oid			relation = InvalidOid;
	HeapTuple	row;
	FavScan		scan;
	bool		isnull;

	fav_begin_scan(&scan, catalog, get_object_oid_index(catalog), get_object_attnum_oid(catalog),
				   object);
	if (HeapTupleIsValid(row = fav_next_row(&scan)))
		relation = DatumGetObjectId(fav_row_column(&scan, row, column, &isnull));
	fav_end_scan(&scan);
	return relation;
}
