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
#include "attach/monitor.h"
#include "attach/queries.h"
#include "attach/rows.h"
#include "attach/sink.h"

#include "access/htup_details.h"
#include "core/levels.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
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

/* Elements that are in no source: hashes of numbers, as elements of this kind. */
static const char *
probe_expression(FavKind kind)
{
	switch (kind)
	{
		case FAV_KIND_INTEGER:
			return "pg_catalog.hashint8extended(g.n, " SEED ")";
		case FAV_KIND_PAIR:
			return "pg_catalog.hashint8extended(g.n, " SEED "), g.n";
		case FAV_KIND_TEXT:
			return TEXT;
		case FAV_KIND_UUID:
			return "CAST(pg_catalog.md5(" TEXT ") AS pg_catalog.uuid)";
		default:
			return "pg_catalog.decode(pg_catalog.md5(" TEXT "), 'hex'::pg_catalog.text)";
	}
}

/* $1 is the number of stale elements, which no query can find. */
static const char verify_query[] =
"SELECT p.keys, p.elements, p.missing, $1, q.rate FROM"
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

typedef struct Explained
{
	uint64_t   *hashes;			/* of the source, and tombstones */
	size_t		count;
	size_t		in_source;		/* this many of the first are of the source */
} Explained;

/* How many elements the unexplained bits of a slice are worth. */
static uint64
stale_in_slice(const FavSlice *slice, uint32_t region_size, const Explained *explained)
{
	size_t		size = fav_slice_bytes(slice, region_size);
	uint8_t    *blocks = MemoryContextAllocExtended(CurrentMemoryContext, size,
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	FavSlice	copy = *slice;
	uint64		unexplained = 0;
	size_t		done;
	size_t		lane;

	copy.blocks = blocks;
	copy.bits_set = 0;
	for (done = 0; done < explained->count; done += FAV_INTERRUPT_EVERY)
	{
		CHECK_FOR_INTERRUPTS();
		fav_slice_insert_many(&copy, blocks, region_size, explained->hashes + done,
							  Min(explained->count - done, FAV_INTERRUPT_EVERY));
	}
	for (lane = 0; lane < size / FAV_LANE_BYTES; lane++)
	{
		size_t		at = lane * FAV_LANE_BYTES;
		uint8_t		rest[FAV_LANE_BYTES];
		int			i;

		if (lane % FAV_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		/* the tracker lane has marks, not bits of elements */
		if (lane % (region_size + 1) == region_size)
			continue;
		for (i = 0; i < FAV_LANE_BYTES; i++)
			rest[i] = slice->blocks[at + i] & (uint8_t) ~blocks[at + i];
		unexplained += fav_popcount(rest, FAV_LANE_BYTES);
	}
	pfree(blocks);
	return (unexplained + slice->k - 1) / slice->k;
}

static uint64
stale_in_level(const FavFilter *level, const Explained *explained)
{
	uint64		stale = 0;
	uint32_t	i;
	size_t		j;

	for (i = 0; i < level->nslices; i++)
		stale += stale_in_slice(&level->slices[i], level->params.region_size, explained);
	for (i = 0; i < level->nrecent; i++)
	{
		uint64_t	hash = fav_load64(level->recent + 8 * (size_t) i);

		CHECK_FOR_INTERRUPTS();
		for (j = 0; j < explained->in_source && explained->hashes[j] != hash; j++)
			;
		stale += j == explained->in_source;
	}
	return stale;
}

static bool
open_level(HeapTuple tuple, TupleDesc descriptor, int column, FavFilter *filter)
{
	bool		isnull;
	Datum		value = SPI_getbinval(tuple, descriptor, column, &isnull);

	if (!isnull)
		fav_open_value(filter, value);
	return !isnull;
}

/* Of one row of (key, base, middle, recent). */
static uint64
stale_of_key(const FavAttachment *attachment, HeapTuple tuple, TupleDesc descriptor,
			 const char *elements_query, Snapshot snapshot)
{
	FavFilter	levels[3];		/* base, middle, recent, without those that are not there */
	int			nlevels = 0;
	Explained	explained = {NULL, 0, 0};
	size_t		ntombstones = 0;
	Oid			type = attachment->filter_key_type->type_id;
	Oid			types[2] = {type, type};
	Datum		range[2];
	bool		isnull;
	uint64		nrows;
	uint64		stale = 0;
	uint64		i;
	int			level;

	for (level = 0; level < 3; level++)
		if (open_level(tuple, descriptor, level + 2, &levels[nlevels]))
			ntombstones += levels[nlevels++].ntombstones;
	fav_filter_range(attachment, SPI_getbinval(tuple, descriptor, 1, &isnull), range);
	nrows = fav_execute_in(snapshot, elements_query, SPI_OK_SELECT, 2, types, range);
	explained.hashes = MemoryContextAllocHuge(CurrentMemoryContext,
											  (ntombstones + nrows + 1) * sizeof(uint64_t));
	for (i = 0; i < nrows; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		Datum		key = SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &isnull);
		Datum		element = SPI_getbinval(row, SPI_tuptable->tupdesc, 2, &isnull);

		explained.hashes[explained.count++] = fav_hash_row(attachment, key, element);
	}
	explained.in_source = explained.count;
	SPI_freetuptable(SPI_tuptable);
	for (level = 0; level < nlevels; level++)
		for (i = 0; i < levels[level].ntombstones; i++)
			explained.hashes[explained.count++] = fav_load64(levels[level].tombstones + 8 * i);
	for (level = 0; level < nlevels; level++)
		stale += stale_in_level(&levels[level], &explained);
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
result_row(FunctionCallInfo fcinfo, Snapshot snapshot, const char *query, int nvalues, Oid *types,
		   Datum *values)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "unexpected result type");
	if (fav_execute_in(snapshot, query, SPI_OK_SELECT, nvalues, types, values) != 1)
		elog(ERROR, "query failed: %s", query);
	return PointerGetDatum(SPI_returntuple(SPI_tuptable->vals[0], BlessTupleDesc(descriptor)));
}

/*
 * fav_verify(source, name): keys, elements, missing, stale, false_positive_rate
 */
Datum
fav_verify(PG_FUNCTION_ARGS)
{
	FavAttachment *attachment = fav_attachment_of_arguments(fcinfo, 1);
	Oid			type = INT8OID;
	FavProgress progress;
	Snapshot	snapshot;
	FavRole		role;
	Datum		stale;
	Datum		result;

	fav_refuse_sink(attachment, "fav_verify");
	fav_become_owner(&role, attachment->owner);
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	fav_begin_progress(&progress, FAV_PHASE_STALE, attachment);
	stale = Int64GetDatum((int64) count_stale(attachment, snapshot, &progress));
	fav_begin_progress(&progress, FAV_PHASE_MISSING, attachment);
	result = result_row(fcinfo, snapshot,
						psprintf("%s%s%s", fav_query(attachment, verify_query),
								 probe_expression(attachment->kind),
								 fav_query(attachment, probes_query)),
						1, &type, &stale);
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
	FavAttachment *attachment = fav_attachment_of_arguments(fcinfo, 1);
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
		" FROM ONLY {levels} l"), 0, NULL, NULL);
	fav_become_caller(&role);
	return result;
}
