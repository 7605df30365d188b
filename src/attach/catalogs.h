/*
 * catalogs.h
 *		Reading the catalogs of PostgreSQL.
 */
#ifndef FAV_CATALOGS_H
#define FAV_CATALOGS_H

#include "postgres.h"

#include "access/genam.h"
#include "access/htup.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"

typedef struct FavScan
{
	Relation	catalog;
	SysScanDesc scan;
} FavScan;

extern void fav_begin_scan(FavScan *scan, Oid catalog, Oid index, AttrNumber column, Oid value);
extern void fav_begin_scan_of_all(FavScan *scan, Oid catalog);
extern HeapTuple fav_next_row(FavScan *scan);
extern Datum fav_row_column(const FavScan *scan, HeapTuple row, AttrNumber column, bool *isnull);
extern void fav_end_scan(FavScan *scan);

extern Oid	fav_oid_of(int cache, Oid object, AttrNumber column);

extern List *fav_dependents(Oid class, Oid object, Oid dependent_class);
extern Oid	fav_relation_of(Oid catalog, Oid object, AttrNumber column);

#endif							/* FAV_CATALOGS_H */
