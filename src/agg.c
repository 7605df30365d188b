/*
 * agg.c
 *		fav_agg: one filter of exactly the right size from many rows.
 *
 * The state is the set of hashes seen.  The result depends on nothing else, neither
 * on the order of the rows nor on the workers that read them.
 */
#include "fav.h"

#include "elements.h"
#include "handover.h"
#include "hashset.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

typedef struct AggState
{
	FavParams	params;			/* capacity 0: none was given */
	MemoryContext context;		/* where all of it lives */
	FavHashSet	set;
	const uint8_t *stored;		/* of a state from another process: its hashes where they came */
	size_t		stored_size;
	bool		sent;
	uint64		stays_as;		/* only for the final aggregate of this process: its number (handover.h) */
} AggState;

/*
 * A large state on its way to another process is an expanded object: its hashes
 * are written right into the tuple that goes there, or taken from the state if it
 * need not go anywhere, with no copy in between.
 *
 * PostgreSQL flattens the first state that a final aggregate gets all the same, to
 * copy its tuple.  Mostly it is the leader's own, and stays in its process: its
 * flat form is a number.
 */
typedef struct SentState
{
	ExpandedObjectHeader header;
	AggState   *state;
} SentState;

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
	if (state == NULL)
	{
		state = new_state(context, &other->params);
		if (other->stays_as != 0)
		{
			/* its memory stays the partial aggregate's, which outlives us (handover.h) */
			state->set = other->set;
			memset(&other->set, 0, sizeof(FavHashSet));
			PG_RETURN_POINTER(state);
		}
	}
	check_same_params(&state->params, &other->params);
	if (other->stored != NULL)
		fav_hashset_merge(&state->set, other->stored, other->stored_size, context);
	else
		fav_hashset_unite(&state->set, &other->set, context);
	PG_RETURN_POINTER(state);
}

static Size
stored_size(const AggState *state)
{
	return VARHDRSZ + sizeof(FavParams) + fav_hashset_stored_size(&state->set);
}

/* Only for a process on the same machine: no byte order to fix. */
static void
store(const AggState *state, bytea *to)
{
	SET_VARSIZE(to, stored_size(state));
	memcpy(VARDATA(to), &state->params, sizeof(FavParams));
	fav_hashset_store(&state->set, (uint8_t *) VARDATA(to) + sizeof(FavParams));
}

static Size
sent_size(ExpandedObjectHeader *object)
{
	const AggState *state = ((SentState *) object)->state;

	return state->stays_as != 0 ? VARHDRSZ + sizeof(state->stays_as) : stored_size(state);
}

static void
store_sent(ExpandedObjectHeader *object, void *to, Size size)
{
	const AggState *state = ((SentState *) object)->state;

	Assert(size == sent_size(object));
	if (state->stays_as != 0)
	{
		SET_VARSIZE(to, size);
		memcpy(VARDATA(to), &state->stays_as, sizeof(state->stays_as));
	}
	else
		store(state, to);
}

static const ExpandedObjectMethods sent_methods = {sent_size, store_sent};

static Datum
send_expanded(AggState *state)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fav_agg", ALLOCSET_SMALL_SIZES);
	SentState  *sent = MemoryContextAlloc(context, sizeof(SentState));
	void	   *pointer = palloc(EXPANDED_POINTER_SIZE);

	EOH_init_header(&sent->header, &sent_methods, context);
	sent->state = state;

	/* before 16, what is not allocated here by itself would be copied, and so flattened */
	memcpy(pointer, sent->header.eoh_ro_ptr, EXPANDED_POINTER_SIZE);
	return PointerGetDatum(pointer);
}

Datum
fav_agg_serialize(PG_FUNCTION_ARGS)
{
	AggState   *state = (AggState *) PG_GETARG_POINTER(0);
	bytea	   *result;

	fav_aggregate_context(fcinfo);
	fav_hashset_compact(&state->set);

	/* two aggregates may share a state, but only one can take it */
	state->stays_as = 0;
	if (state->set.many != NULL && !state->sent && fav_goes_to_final(fcinfo))
		state->stays_as = fav_keep_here(state, state->context);
	state->sent = true;
	if (state->stays_as == 0 && stored_size(state) > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many elements for a parallel fav_agg"),
				 errhint("Set max_parallel_workers_per_gather to 0 for this query.")));
	if (state->set.many != NULL)
		return send_expanded(state);
	result = palloc(stored_size(state));
	store(state, result);
	PG_RETURN_BYTEA_P(result);
}

/*
 * The state is for fav_agg_combine alone, which is called before the argument goes
 * away: its hashes stay in there.
 */
Datum
fav_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes;
	Size		size;
	uint64		number;
	AggState   *state;

	fav_aggregate_context(fcinfo);
	if (VARATT_IS_EXTERNAL_EXPANDED(PG_GETARG_POINTER(0)))
	{
		ExpandedObjectHeader *object = DatumGetEOHP(PG_GETARG_DATUM(0));

		if (object->eoh_methods == &sent_methods)
			PG_RETURN_POINTER(((SentState *) object)->state);
	}
	bytes = PG_GETARG_BYTEA_PP(0);
	size = VARSIZE_ANY_EXHDR(bytes);
	if (size == sizeof(number))
	{
		memcpy(&number, VARDATA_ANY(bytes), sizeof(number));
		state = fav_find_here(number);
		if (state == NULL)
			elog(ERROR, "state " UINT64_FORMAT " of fav_agg is not in this process", number);
		elog(DEBUG2, "fav_agg: state " UINT64_FORMAT " was handed over", number);
		PG_RETURN_POINTER(state);
	}
	if (size < sizeof(FavParams) + sizeof(uint64))
		elog(ERROR, "serialized state of fav_agg has %zu bytes", size);
	state = palloc0(sizeof(AggState));
	memcpy(&state->params, VARDATA_ANY(bytes), sizeof(FavParams));
	state->stored = (const uint8_t *) VARDATA_ANY(bytes) + sizeof(FavParams);
	state->stored_size = size - sizeof(FavParams);
	PG_RETURN_POINTER(state);
}

/* Exactly what is needed, if it is not known better. */
static uint64
capacity_for(uint64 wanted, uint64 count)
{
	if (wanted > 0)
		return wanted;
	return count > FAV_RECENT_MAX ? count : FAV_DEFAULT_CAPACITY;
}

/* Leaves the state as good as it was: a window calls it again and again. */
Datum
fav_agg_final(PG_FUNCTION_ARGS)
{
	AggState   *state;
	FavEditor	editor;

	fav_aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (AggState *) PG_GETARG_POINTER(0);
	fav_hashset_build(&state->set, &state->params, capacity_for, &editor);
	return fav_finish_edit(&editor);
}
