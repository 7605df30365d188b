/*
 * verify.c
 *		Comparing filters with the source: fav_verify, and sizes for monitoring.
 *
 * Everything is read in one snapshot, in which source and filters agree, as the owner of
 * the tables, and with locks that block nobody.
 *
 * Missing elements are found by probing every pair of the source.  A stale element has bits
 * that no element of the source has: base and middle may only have bits of elements that are
 * in the source or have a tombstone.
 */
#include "attach/attachment_cache.h"
#include "attach/columns.h"
#include "attach/hashes.h"
#include "attach/monitor.h"
#include "attach/queries.h"
#include "attach/sink.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* The numbers of probes and of filters to measure the false positive rate. */
#define PROBES			100000
#define PROBED_FILTERS	1000

/* The number of filters that are searched for stale elements. */
#define SEARCHED_FILTERS	1000

PG_FUNCTION_INFO_V1(fav_verify);
PG_FUNCTION_INFO_V1(fav_attachment_stats);

/*
 * Missing elements and the false positive rate
 */

#define SEED	"'4711'::pg_catalog.int8"
#define TEXT	"pg_catalog.concat('fav_verify '::pg_catalog.text, g.n)"

/* Elements that are in no source: hashes of numbers, as elements of each kind. */
static const char *const probe_expressions[] = {
	[FAV_KIND_INTEGER] = "pg_catalog.hashint8extended(g.n, " SEED ")",
	[FAV_KIND_PAIR] = "pg_catalog.hashint8extended(g.n, " SEED "), g.n",
	[FAV_KIND_TEXT] = TEXT,
	[FAV_KIND_UUID] = "CAST(pg_catalog.md5(" TEXT ") AS pg_catalog.uuid)",
	[FAV_KIND_BYTES] = "pg_catalog.decode(pg_catalog.md5(" TEXT "), 'hex'::pg_catalog.text)"
};

static const char verify_query[] =
" (SELECT pg_catalog.count(*) AS keys,"
"  COALESCE(pg_catalog.sum(k.elements), '0')::pg_catalog.int8 AS elements,"
"  COALESCE(pg_catalog.sum(k.missing), '0')::pg_catalog.int8 AS missing FROM"
"  (SELECT pg_catalog.count(*) AS elements, pg_catalog.count(*) FILTER"
"   (WHERE NOT {fav}.fav_probe(l.{base}, l.{middle}, l.{recent}, {held})) AS missing FROM"
"   (SELECT DISTINCT r.{k} AS key, r.{e}{::element}{collate} AS element FROM {source} r"
"    WHERE r.{k} IS NOT NULL AND r.{e} IS NOT NULL) s"
"   LEFT JOIN ONLY {levels} l ON l.{key}{::key} {=} {filter key}{::key} GROUP BY s.key) k) p,"
" (SELECT pg_catalog.avg(CASE WHEN {fav}.fav_probe(l.{base}, l.{middle}, l.{recent}, ";

/* As many probes for each of them as make PROBES in all. */
static const char probes_query[] =
") THEN '1'::pg_catalog.float8 ELSE '0'::pg_catalog.float8 END) AS rate FROM"
"  (SELECT a.* FROM ONLY {levels} a LIMIT " CppAsString2(PROBED_FILTERS) ") l,"
"  pg_catalog.generate_series('1'::pg_catalog.int8,"
"  (SELECT '" CppAsString2(PROBES) "'::pg_catalog.int8 OPERATOR(pg_catalog./)"
"   GREATEST('1'::pg_catalog.int8, pg_catalog.count(*)) FROM"
"   (SELECT FROM ONLY {levels} LIMIT " CppAsString2(PROBED_FILTERS) ") c)) g(n)) q";

/*
 * Stale elements
 */

/*
 * How many elements the bits of a slice are worth that neither elements of the source nor
 * tombstones explain.
 */
static uint64
stale_in_slice(const FavSlice *slice, uint32_t region_size, const FavHashes *source,
			   const FavHashes *tombstones)
{
	uint8_t    *blocks = MemoryContextAllocExtended(CurrentMemoryContext,
													fav_slice_bytes(slice, region_size),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	FavSlice	explained = *slice;
	uint64		unexplained;

	explained.blocks = blocks;
	explained.bits_set = 0;
	fav_slice_insert_many(&explained, blocks, region_size, source->values, source->count);
	fav_slice_insert_many(&explained, blocks, region_size, tombstones->values, tombstones->count);
	unexplained = fav_slice_merge(slice, &explained, region_size, NULL) - explained.bits_set;
	pfree(blocks);
	return (unexplained + slice->k - 1) / slice->k;
}

static uint64
stale_in_level(const FavFilter *level, const FavHashes *source, const FavHashes *tombstones)
{
	uint64		stale = 0;
	uint32_t	i;

	for (i = 0; i < level->nslices; i++)
		stale += stale_in_slice(&level->slices[i], level->params.region_size, source, tombstones);
	for (i = 0; i < level->nrecent; i++)
		stale += fav_find_hash(source, fav_load64(level->recent + 8 * (size_t) i)) == NULL;
	return stale;
}

/* Of one row of (key, base, middle, recent). */
static uint64
stale_of_key(const FavAttachment *attachment, HeapTuple tuple, TupleDesc descriptor,
			 const char *elements_query, Snapshot snapshot)
{
	FavFilter	levels[3];
	FavHashes	source = {0};
	FavHashes	tombstones = {0};
	Oid			type = attachment->filter_key_type->type_id;
	Oid			types[2] = {type, type};
	Datum		range[2];
	bool		isnull;
	uint64		nrows;
	uint64		stale = 0;
	uint64		i;
	int			level;

	for (level = 0; level < 3; level++)
	{
		Datum		value = SPI_getbinval(tuple, descriptor, level + 2, &isnull);

		fav_open_flat(&levels[level],
					  PG_DETOAST_DATUM_PACKED(isnull ? attachment->empty : value));
		for (i = 0; i < levels[level].ntombstones; i++)
			fav_append_hash(&tombstones, fav_load64(levels[level].tombstones + 8 * i));
	}
	fav_filter_range(attachment, SPI_getbinval(tuple, descriptor, 1, &isnull), range);
	nrows = fav_execute_in(snapshot, elements_query, SPI_OK_SELECT, 2, types, range);
	for (i = 0; i < nrows; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		Datum		key = SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &isnull);
		Datum		element = SPI_getbinval(row, SPI_tuptable->tupdesc, 2, &isnull);

		fav_append_hash(&source, fav_hash_row(attachment, key, element));
	}
	SPI_freetuptable(SPI_tuptable);
	fav_sort_hashes(&source);
	for (level = 0; level < 3; level++)
		stale += stale_in_level(&levels[level], &source, &tombstones);
	return stale;
}

/* In a sample of the filters. */
static uint64
count_stale(const FavAttachment *attachment, Snapshot snapshot, FavProgress *progress)
{
	MemoryContext per_key = AllocSetContextCreate(CurrentMemoryContext, "fav verify",
												  ALLOCSET_DEFAULT_SIZES);
	const char *elements_query = fav_query(attachment,
										   "SELECT r.{k}, r.{e} FROM {source} r"
										   " WHERE {r is of filter} AND r.{e} IS NOT NULL");
	uint64		nrows = fav_execute_in(snapshot, fav_query(attachment,
		"SELECT l.{key}, l.{base}, l.{middle}, l.{recent} FROM ONLY {levels} l"
		" ORDER BY pg_catalog.random() LIMIT " CppAsString2(SEARCHED_FILTERS)), SPI_OK_SELECT, 0,
										  NULL, NULL);
	SPITupleTable *rows = SPI_tuptable;
	uint64		stale = 0;
	uint64		i;

	progress->estimated = (int64) nrows;
	for (i = 0; i < nrows; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(per_key);

		CHECK_FOR_INTERRUPTS();
		progress->keys = (int64) i;
		fav_report_progress(progress);
		stale += stale_of_key(attachment, rows->vals[i], rows->tupdesc, elements_query, snapshot);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_key);
	}
	MemoryContextDelete(per_key);
	return stale;
}

/*
 * Functions
 */

/* The row that a query returns, as the result of this function. */
static Datum
result_row(FunctionCallInfo fcinfo, Snapshot snapshot, const char *query)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "unexpected result type");
	if (fav_execute_in(snapshot, query, SPI_OK_SELECT, 0, NULL, NULL) != 1)
		elog(ERROR, "query failed: %s", query);
	return PointerGetDatum(SPI_returntuple(SPI_tuptable->vals[0], BlessTupleDesc(descriptor)));
}

/*
 * fav_verify(source, name): keys, elements, missing, stale, false_positive_rate
 */
Datum
fav_verify(PG_FUNCTION_ARGS)
{
	FavAttachment *attachment = fav_attachment_of_arguments(fcinfo, 1, false);
	FavProgress progress;
	Snapshot	snapshot;
	FavRole		role;
	uint64		stale;
	Datum		result;

	fav_refuse_sink(attachment, "fav_verify");
	fav_become_owner(&role, attachment->owner);
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	fav_begin_progress(&progress, FAV_PHASE_STALE, attachment);
	stale = count_stale(attachment, snapshot, &progress);
	fav_begin_progress(&progress, FAV_PHASE_MISSING, attachment);
	result = result_row(fcinfo, snapshot, psprintf(
		"SELECT p.keys, p.elements, p.missing, '" UINT64_FORMAT "'::pg_catalog.int8, q.rate FROM"
		"%s%s%s", stale, fav_query(attachment, verify_query), probe_expressions[attachment->kind],
		fav_query(attachment, probes_query)));
	fav_end_progress();
	UnregisterSnapshot(snapshot);
	fav_become_caller(&role);
	return result;
}

/*
 * fav_attachment_stats(source, name): keys, elements, bytes, keys by the levels they have
 */
Datum
fav_attachment_stats(PG_FUNCTION_ARGS)
{
	FavAttachment *attachment = fav_attachment_of_arguments(fcinfo, 1, false);
	FavRole		role;
	Datum		result;

	fav_become_owner(&role, attachment->owner);
	result = result_row(fcinfo, GetTransactionSnapshot(), fav_query(attachment,
		"SELECT pg_catalog.count(*), COALESCE(pg_catalog.sum("
		"  {fav}.fav_count({fav}.fav_stack(l.{base}, l.{middle}, l.{recent}))), '0')"
		"::pg_catalog.int8, pg_catalog.pg_total_relation_size({'levels'}::pg_catalog.regclass),"
		" pg_catalog.count(*) FILTER (WHERE l.{base} OPERATOR({fav}.=) {no level}"
		"  AND l.{middle} OPERATOR({fav}.=) {no level}),"
		" pg_catalog.count(*) FILTER (WHERE l.{middle} OPERATOR({fav}.<>) {no level})"
		" FROM ONLY {levels} l"));
	fav_become_caller(&role);
	return result;
}
