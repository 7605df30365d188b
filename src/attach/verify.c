/*
 * verify.c
 *		Do the filters tell the truth?  fav_verify, and sizes for monitoring.
 *
 * Everything is read in one snapshot, in which source and filters agree, as the owner of
 * the tables, and without a lock that anybody would notice.
 *
 * An element that is missing is found by asking for every pair of the source.  One that is
 * stale leaves bits that no element of the source explains: base and middle may have
 * bits of elements that are in the source, and of those that have a tombstone, and no
 * others.
 */
#include "attach.h"

#include "access/htup_details.h"
#include "core/levels.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* About how many probes the false positive rate is measured with, of how many filters. */
#define PROBES			100000
#define PROBED_FILTERS	1000

/* So many filters are searched for stale elements. */
#define SEARCHED_FILTERS	1000

PG_FUNCTION_INFO_V1(fav_verify);
PG_FUNCTION_INFO_V1(fav_attachment_stats);

/* One row of a query in the given snapshot; *SPI_tuptable has it. */
static void
select_row(const char *query, Snapshot snapshot)
{
	SPIPlanPtr	plan = SPI_prepare(query, 0, NULL);

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s: %s", SPI_result_code_string(SPI_result), query);
	if (SPI_execute_snapshot(plan, NULL, NULL, snapshot, InvalidSnapshot, true, false, 0) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "query failed: %s", query);
}

static Datum
result_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	TupleDesc	descriptor;
	Datum		result;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "unexpected result type");
	result = HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * Missing elements and the false positive rate
 */

/* Elements that are in no source: hashes of numbers, in the type asked for. */
static const char *
probe_expression(FavKind kind)
{
	switch (kind)
	{
		case FAV_KIND_INTEGER:
			return "pg_catalog.hashint8extended(n, 4711)";
		case FAV_KIND_TEXT:
			return "pg_catalog.concat('fav_verify ', n)";
		case FAV_KIND_UUID:
			return "CAST(pg_catalog.md5(pg_catalog.concat('fav_verify ', n)) AS pg_catalog.uuid)";
		default:
			return "pg_catalog.decode(pg_catalog.md5(pg_catalog.concat('fav_verify ', n)), 'hex')";
	}
}

static char *
missing_query(const FavAttachment *attachment)
{
	const char *extension = fav_schema_name(attachment->schema);
	const char *levels = fav_relation_name(attachment->levels);
	const char *key = quote_identifier(NameStr(attachment->key.name));
	const char *element = quote_identifier(NameStr(attachment->element.name));
	const char *levels_key = quote_identifier(get_attname(attachment->levels, FAV_LEVELS_KEY, false));
	const char *base = quote_identifier(get_attname(attachment->levels, FAV_LEVELS_BASE, false));
	const char *middle = quote_identifier(get_attname(attachment->levels, FAV_LEVELS_MIDDLE, false));
	const char *recent = quote_identifier(get_attname(attachment->levels, FAV_LEVELS_RECENT, false));
	const char *type = fav_element_type_name(attachment->kind);
	const char *collate = OidIsValid(attachment->element.collation) ? " COLLATE pg_catalog.\"C\"" : "";

	return psprintf("SELECT p.keys, p.elements, p.missing, q.rate FROM"
					" (SELECT pg_catalog.count(*) AS keys, COALESCE(pg_catalog.sum(k.elements), 0)::pg_catalog.int8 AS elements,"
					" COALESCE(pg_catalog.sum(k.missing), 0)::pg_catalog.int8 AS missing FROM"
					" (SELECT pg_catalog.count(*) AS elements, pg_catalog.count(*) FILTER"
					" (WHERE NOT %s.fav_contains(l.%s, l.%s, l.%s, s.element)) AS missing FROM"
					" (SELECT DISTINCT %s AS key, %s::%s%s AS element FROM %s WHERE %s IS NOT NULL AND %s IS NOT NULL) s"
					" LEFT JOIN ONLY %s l ON l.%s %s s.key GROUP BY s.key) k) p,"
					" (SELECT pg_catalog.avg(CASE WHEN %s.fav_contains(l.%s, l.%s, l.%s, %s) THEN 1.0 ELSE 0.0 END)::pg_catalog.float8 AS rate"
					" FROM (SELECT * FROM ONLY %s LIMIT %d) l,"
					" pg_catalog.generate_series(1::pg_catalog.int8, (SELECT %d OPERATOR(pg_catalog./) GREATEST(1, LEAST(%d, pg_catalog.count(*)))"
					" FROM (SELECT FROM ONLY %s LIMIT %d) c)) n) q",
					extension, base, middle, recent,
					key, element, type, collate, fav_relation_name(attachment->source), key, element,
					levels, levels_key, fav_equality(attachment->key_type),
					extension, base, middle, recent, probe_expression(attachment->kind),
					levels, PROBED_FILTERS, PROBES, PROBED_FILTERS, levels, PROBED_FILTERS);
}

/*
 * Stale elements
 */

typedef struct Explained
{
	uint64_t   *hashes;			/* of the source, and tombstones */
	size_t		count;
	size_t		in_source;		/* so many of the first are of the source */
} Explained;

static void
explain(Explained *explained, const FavFilter *level)
{
	uint32_t	i;

	for (i = 0; i < level->ntombstones; i++)
		explained->hashes[explained->count++] = fav_load64(level->tombstones + 8 * (size_t) i);
}

/* How many elements the unexplained bits of a slice are worth. */
static uint64
stale_in_slice(const FavSlice *slice, uint32_t region_size, const Explained *explained)
{
	size_t		size = fav_slice_bytes(slice, region_size);
	uint8_t    *blocks = MemoryContextAllocExtended(CurrentMemoryContext, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	FavSlice	copy = *slice;
	uint64		unexplained = 0;
	size_t		done;
	size_t		at;

	copy.blocks = blocks;
	copy.bits_set = 0;
	for (done = 0; done < explained->count; done += FAV_INTERRUPT_EVERY)
	{
		CHECK_FOR_INTERRUPTS();
		fav_slice_insert_many(&copy, blocks, region_size, explained->hashes + done,
							  Min(explained->count - done, FAV_INTERRUPT_EVERY));
	}
	for (at = 0; at < size; at += FAV_LANE_BYTES)
	{
		uint8_t		rest[FAV_LANE_BYTES];
		int			i;

		/* the tracker lane has marks, not bits of elements */
		if (at / FAV_LANE_BYTES % (region_size + 1) == region_size)
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
	struct varlena *bytes;
	FavProblem	problem;

	if (isnull)
		return false;
	bytes = (struct varlena *) PG_DETOAST_DATUM_PACKED(value);
	if (fav_open(filter, (uint8_t *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), VARSIZE_ANY_EXHDR(bytes),
				 &problem) != FAV_OK)
		fav_raise_corrupted(&problem);
	return true;
}

static uint64
stale_of_key(const FavAttachment *attachment, HeapTuple tuple, TupleDesc descriptor, SPIPlanPtr elements,
			 Snapshot snapshot)
{
	MemoryContext context = CurrentMemoryContext;
	FavFilter	levels[3];		/* base, middle, recent */
	bool		there[3];
	Explained	explained = {NULL, 0, 0};
	size_t		most = 0;
	bool		isnull;
	Datum		key = SPI_getbinval(tuple, descriptor, 1, &isnull);
	uint64		stale = 0;
	uint64		i;

	for (i = 0; i < 3; i++)
	{
		there[i] = open_level(tuple, descriptor, (int) i + 2, &levels[i]);
		most += there[i] ? levels[i].ntombstones : 0;
	}
	if (!there[2])
		return 0;
	if (SPI_execute_snapshot(elements, &key, NULL, snapshot, InvalidSnapshot, true, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the elements of a key");
	MemoryContextSwitchTo(context);
	explained.hashes = MemoryContextAllocHuge(CurrentMemoryContext, (most + SPI_processed + 1) * sizeof(uint64_t));
	for (i = 0; i < SPI_processed; i++)
	{
		Datum		element = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);

		explained.hashes[explained.count++] = fav_hash_element(attachment, element, levels[2].params.seed);
	}
	explained.in_source = explained.count;
	SPI_freetuptable(SPI_tuptable);
	for (i = 0; i < 3; i++)
		if (there[i])
			explain(&explained, &levels[i]);
	for (i = 0; i < 3; i++)
		if (there[i])
			stale += stale_in_level(&levels[i], &explained);
	return stale;
}

/* In a sample of the filters. */
static uint64
count_stale(const FavAttachment *attachment, Snapshot snapshot)
{
	MemoryContext per_key = AllocSetContextCreate(CurrentMemoryContext, "fav verify", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	Oid			key_type = attachment->key.type;
	SPIPlanPtr	elements;
	SPIPlanPtr	sample;
	SPITupleTable *rows;
	uint64		nrows;
	uint64		stale = 0;
	uint64		i;

	elements = SPI_prepare(psprintf("SELECT %s FROM %s WHERE %s %s $1 AND %s IS NOT NULL",
									quote_identifier(NameStr(attachment->element.name)),
									fav_relation_name(attachment->source),
									quote_identifier(NameStr(attachment->key.name)),
									fav_equality(attachment->key_type),
									quote_identifier(NameStr(attachment->element.name))), 1, &key_type);
	sample = SPI_prepare(psprintf("SELECT %s, %s, %s, %s FROM ONLY %s ORDER BY pg_catalog.random() LIMIT %d",
								  quote_identifier(get_attname(attachment->levels, FAV_LEVELS_KEY, false)),
								  quote_identifier(get_attname(attachment->levels, FAV_LEVELS_BASE, false)),
								  quote_identifier(get_attname(attachment->levels, FAV_LEVELS_MIDDLE, false)),
								  quote_identifier(get_attname(attachment->levels, FAV_LEVELS_RECENT, false)),
								  fav_relation_name(attachment->levels), SEARCHED_FILTERS), 0, NULL);
	if (elements == NULL || sample == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	if (SPI_execute_snapshot(sample, NULL, NULL, snapshot, InvalidSnapshot, true, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the filters");
	rows = SPI_tuptable;
	nrows = SPI_processed;
	for (i = 0; i < nrows; i++)
	{
		CHECK_FOR_INTERRUPTS();
		old = MemoryContextSwitchTo(per_key);
		stale += stale_of_key(attachment, rows->vals[i], rows->tupdesc, elements, snapshot);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_key);
	}
	MemoryContextDelete(per_key);
	return stale;
}

/*
 * fav_verify(source, name): keys, elements, missing, stale, false_positive_rate
 */
Datum
fav_verify(PG_FUNCTION_ARGS)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	Oid			source = fav_get_relation_argument(fcinfo, 0, "source");
	MemoryContext caller = CurrentMemoryContext;
	FavAttachment *attachment;
	Snapshot	snapshot;
	FavRole		role;
	Datum		values[5];
	bool		nulls[5];
	Datum		result;

	fav_check_owner(source);
	attachment = fav_attachment_of_levels(schema, source,
										  fav_choose_levels(schema, source,
															PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1))));
	fav_become_owner(&role, attachment->owner);
	fav_spi_connect();
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	select_row(missing_query(attachment), snapshot);
	values[0] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &nulls[0]);
	values[1] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &nulls[1]);
	values[2] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 3, &nulls[2]);
	values[4] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 4, &nulls[4]);
	values[3] = Int64GetDatum((int64) count_stale(attachment, snapshot));
	nulls[3] = false;
	result = result_row(fcinfo, values, nulls, caller);
	UnregisterSnapshot(snapshot);
	SPI_finish();
	fav_become_caller(&role);
	return result;
}

/*
 * fav_attachment_stats(source, name): keys, elements, bytes, keys by the levels they have
 */
Datum
fav_attachment_stats(PG_FUNCTION_ARGS)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	Oid			source = fav_get_relation_argument(fcinfo, 0, "source");
	MemoryContext caller = CurrentMemoryContext;
	const char *base;
	const char *middle;
	const char *recent;
	const char *extension;
	Snapshot	snapshot;
	FavRole		role;
	Datum		values[5];
	bool		nulls[5];
	Datum		result;
	Oid			levels;
	int			i;

	fav_check_owner(source);
	levels = fav_choose_levels(schema, source, PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1)));
	fav_check_owner(levels);
	fav_become_owner(&role, fav_owner_of(levels));
	fav_spi_connect();
	extension = fav_schema_name(schema);
	base = quote_identifier(get_attname(levels, FAV_LEVELS_BASE, false));
	middle = quote_identifier(get_attname(levels, FAV_LEVELS_MIDDLE, false));
	recent = quote_identifier(get_attname(levels, FAV_LEVELS_RECENT, false));
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	select_row(psprintf("SELECT pg_catalog.count(*), COALESCE(pg_catalog.sum(%s.fav_count(%s.fav_stack(%s, %s, %s))), 0)::pg_catalog.int8,"
						" pg_catalog.pg_total_relation_size(%u::pg_catalog.regclass),"
						" pg_catalog.count(*) FILTER (WHERE %s IS NULL AND %s IS NULL), pg_catalog.count(%s) FROM ONLY %s",
						extension, extension, base, middle, recent, levels, base, middle, middle,
						fav_relation_name(levels)), snapshot);
	for (i = 0; i < 5; i++)
		values[i] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i + 1, &nulls[i]);
	result = result_row(fcinfo, values, nulls, caller);
	UnregisterSnapshot(snapshot);
	SPI_finish();
	fav_become_caller(&role);
	return result;
}
