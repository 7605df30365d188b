/*
 * agg.c
 *		fav_agg: one filter of exactly the right size from many rows.
 *
 * The state is the set of hashes seen.  The result is made from it in ascending
 * order, and so depends neither on the order of the rows nor on the workers that
 * read them; ascending hashes also fall into ascending blocks.
 */
#include "fav.h"

#include "elements.h"
#include "hashset.h"
#include "utils/memutils.h"

typedef struct AggState
{
	FavParams	params;			/* capacity 0: none was given */
	MemoryContext context;		/* where all of it lives */
	FavHashSet	set;
	const uint8_t *stored;		/* of a deserialized state: its hashes where they came */
	size_t		nstored;
} AggState;

PG_FUNCTION_INFO_V1(fav_agg_combine);
PG_FUNCTION_INFO_V1(fav_agg_serialize);
PG_FUNCTION_INFO_V1(fav_agg_deserialize);
PG_FUNCTION_INFO_V1(fav_agg_final);

/* error_rate and capacity, the arguments after the element, if they are there. */
static FavParams
agg_params(FunctionCallInfo fcinfo)
{
	FavParams	params = fav_default_params();

	params.capacity = 0;
	if (PG_NARGS() > 2 && !PG_ARGISNULL(2))
		params.error_rate = PG_GETARG_FLOAT8(2);
	if (PG_NARGS() > 3 && !PG_ARGISNULL(3))
	{
		if (PG_GETARG_INT64(3) < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("capacity " INT64_FORMAT " is out of range", PG_GETARG_INT64(3)),
					 errdetail("The capacity must be at least 1.")));
		params.capacity = (uint64_t) PG_GETARG_INT64(3);
	}
	return params;
}

static void
check_same_params(const FavParams *first, const FavParams *now)
{
	if (first->error_rate != now->error_rate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("error_rate must be the same for all rows of a group"),
				 errdetail("It was %g, and is %g.", first->error_rate, now->error_rate)));
	if (first->capacity != now->capacity)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity must be the same for all rows of a group"),
				 errdetail("It was " UINT64_FORMAT ", and is " UINT64_FORMAT ".",
						   first->capacity, now->capacity)));
}

static AggState *
new_state(MemoryContext context, const FavParams *params)
{
	AggState   *state = MemoryContextAllocZero(context, sizeof(AggState));

	state->params = *params;
	state->context = context;
	return state;
}

/* Called for each row: a function for each kind, with no more calls in it. */
static pg_attribute_always_inline Datum
agg_transition(FunctionCallInfo fcinfo, FavKind kind)
{
	AggState   *state;

	if (PG_ARGISNULL(0))
	{
		MemoryContext context = fav_aggregate_context(fcinfo);
		FavParams	params = agg_params(fcinfo);

		fav_check_params(&params);
		state = new_state(context, &params);
	}
	else
	{
		state = (AggState *) PG_GETARG_POINTER(0);
		if (PG_NARGS() > 2)
		{
			FavParams	params = agg_params(fcinfo);

			check_same_params(&state->params, &params);
		}
	}
	if (!PG_ARGISNULL(1))
		fav_hashset_add(&state->set, fav_hash_datum(kind, PG_GETARG_DATUM(1), state->params.seed), state->context);
	PG_RETURN_POINTER(state);
}

#define FAV_AGG_FUNCTION(suffix, kind) \
	extern PGDLLEXPORT Datum fav_agg_##suffix(PG_FUNCTION_ARGS); \
	Datum fav_agg_##suffix(PG_FUNCTION_ARGS) { return agg_transition(fcinfo, kind); } \
	PG_FUNCTION_INFO_V1(fav_agg_##suffix)

FAV_AGG_FUNCTION(int8, FAV_KIND_INTEGER);
FAV_AGG_FUNCTION(text, FAV_KIND_TEXT);
FAV_AGG_FUNCTION(uuid, FAV_KIND_UUID);
FAV_AGG_FUNCTION(bytea, FAV_KIND_BYTES);

Datum
fav_agg_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = fav_aggregate_context(fcinfo);
	AggState   *state = PG_ARGISNULL(0) ? NULL : (AggState *) PG_GETARG_POINTER(0);
	AggState   *other = PG_ARGISNULL(1) ? NULL : (AggState *) PG_GETARG_POINTER(1);

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	/* its hashes are looked for in one place only: rather an error than a loss */
	if (other->stored == NULL)
		elog(ERROR, "a state of fav_agg that was never serialized cannot be combined");
	if (state == NULL)
		state = new_state(context, &other->params);
	check_same_params(&state->params, &other->params);
	fav_hashset_merge(&state->set, other->stored, other->nstored, context);
	PG_RETURN_POINTER(state);
}

/* Only from one process to another on the same machine: no byte order to fix. */
Datum
fav_agg_serialize(PG_FUNCTION_ARGS)
{
	AggState   *state = (AggState *) PG_GETARG_POINTER(0);
	Size		size;
	bytea	   *result;

	fav_aggregate_context(fcinfo);
	fav_hashset_settle(&state->set);
	size = state->set.count * sizeof(uint64);
	if (size > MaxAllocSize - VARHDRSZ - sizeof(FavParams))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many elements for a parallel fav_agg"),
				 errhint("Set max_parallel_workers_per_gather to 0 for this query.")));
	result = palloc(VARHDRSZ + sizeof(FavParams) + size);
	SET_VARSIZE(result, VARHDRSZ + sizeof(FavParams) + size);
	memcpy(VARDATA(result), &state->params, sizeof(FavParams));
	fav_hashset_store(&state->set, (uint8_t *) VARDATA(result) + sizeof(FavParams));
	PG_RETURN_BYTEA_P(result);
}

/*
 * The state is for fav_agg_combine alone, which is called before the argument goes
 * away: its hashes stay in there.
 */
Datum
fav_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	Size		size = VARSIZE_ANY_EXHDR(bytes);
	AggState   *state;

	fav_aggregate_context(fcinfo);
	if (size < sizeof(FavParams) || (size - sizeof(FavParams)) % sizeof(uint64) != 0)
		elog(ERROR, "serialized state of fav_agg has %zu bytes", size);
	state = palloc0(sizeof(AggState));
	memcpy(&state->params, VARDATA_ANY(bytes), sizeof(FavParams));
	state->stored = (const uint8_t *) VARDATA_ANY(bytes) + sizeof(FavParams);
	state->nstored = (size - sizeof(FavParams)) / sizeof(uint64);
	PG_RETURN_POINTER(state);
}

/* Leaves the state as good as it was: a window calls it again and again. */
Datum
fav_agg_final(PG_FUNCTION_ARGS)
{
	AggState   *state;
	FavParams	params;
	FavEditor	editor;
	FavSpan    *spans;
	size_t		nspans;

	fav_aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (AggState *) PG_GETARG_POINTER(0);
	fav_hashset_settle(&state->set);
	params = state->params;
	if (params.capacity == 0)
		params.capacity = state->set.count > FAV_RECENT_MAX ? state->set.count : FAV_DEFAULT_CAPACITY;
	spans = fav_hashset_spans(&state->set, &nspans);
	fav_require(fav_editor_build_spans(&editor, &params, spans, nspans));
	return fav_finish_edit(&editor);
}
