/*
 * agg.c
 *		fav_agg: build one filter of exactly the right size from many rows.
 *
 * The state is the set of the hashes seen, and the result depends on nothing else: neither on
 * the order of the rows nor on the workers that read them.
 *
 * fav_base builds the base of an attached filter.  It differs only in its parameters.
 */
#include "fav.h"

#include "aggregate/hashset.h"
#include "core/levels.h"
#include "type/elements.h"

PG_FUNCTION_INFO_V1(fav_agg_combine);
PG_FUNCTION_INFO_V1(fav_agg_serialize);
PG_FUNCTION_INFO_V1(fav_agg_deserialize);

/*
 * Read the parameters, which follow the element as arguments from number `first` on.
 * fav_agg has error_rate and capacity, both optional.
 */
static FavParams
agg_params(FunctionCallInfo fcinfo, int first)
{
	FavParams	params = fav_default_params();

	params.capacity = 0;
	if (PG_NARGS() > first && !PG_ARGISNULL(first))
		params.error_rate = PG_GETARG_FLOAT8(first);
	if (PG_NARGS() > first + 1 && !PG_ARGISNULL(first + 1))
		params.capacity = fav_get_capacity(fcinfo, first + 1);
	return params;
}

/* fav_base has error_rate and seed. */
static FavParams
base_params(FunctionCallInfo fcinfo, int first)
{
	FavParams	params = fav_default_params();

	fav_refuse_null(PG_ARGISNULL(first) || PG_ARGISNULL(first + 1), "error_rate and seed");
	params.capacity = 0;
	params.error_rate = PG_GETARG_FLOAT8(first);
	params.seed = (uint64) PG_GETARG_INT64(first + 1);
	return params;
}

static void
check_same_params(const FavParams *first, const FavParams *now)
{
	if (first->error_rate != now->error_rate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("error_rate must be the same for all rows of a group"),
				 errdetail("One row has %g, another has %g.",
						   first->error_rate, now->error_rate)));
	if (first->capacity != now->capacity)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity must be the same for all rows of a group"),
				 errdetail("One row has " UINT64_FORMAT ", another has " UINT64_FORMAT ".",
						   first->capacity, now->capacity)));
	if (first->seed != now->seed)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("seed must be the same for all rows of a group"),
				 errdetail("One row has " INT64_FORMAT ", another has " INT64_FORMAT ".",
						   (int64) first->seed, (int64) now->seed)));
}

static FavAggState *
new_state(FunctionCallInfo fcinfo, const FavParams *params)
{
	MemoryContext context = fav_aggregate_context(fcinfo);
	FavAggState *state = MemoryContextAlloc(context, sizeof(FavAggState));

	fav_state_init(state, params, context);
	return state;
}

typedef FavParams (*ReadParams) (FunctionCallInfo fcinfo, int first);

/*
 * A transition.  One function per kind of element, so that the kind is not tested for each row.
 * The second number of a pair has `second` bytes.
 */
static pg_attribute_always_inline Datum
transition(FunctionCallInfo fcinfo, FavKind kind, ReadParams read_params, size_t second)
{
	int			first = kind == FAV_KIND_PAIR ? 3 : 2;
	FavAggState *state = PG_ARGISNULL(0) ? NULL : (FavAggState *) PG_GETARG_POINTER(0);
	FavParams	params;
	uint64		seed;

	if (state == NULL || PG_NARGS() > first)
		params = read_params(fcinfo, first);
	if (state == NULL)
	{
		params.kind = kind;
		fav_check_params(&params);
		state = new_state(fcinfo, &params);
	}
	else if (PG_NARGS() > first)
		check_same_params(&state->params, &params);
	seed = state->params.seed;
	if (fav_element_is_null(fcinfo, kind, 1))
		PG_RETURN_POINTER(state);
	if (kind != FAV_KIND_PAIR)
		fav_hashset_add(&state->set, fav_hash_datum(kind, PG_GETARG_DATUM(1), seed));
	else
		fav_hashset_add(&state->set,
						fav_hash_pair(PG_GETARG_INT64(1),
									  second == sizeof(int64) ? PG_GETARG_INT64(2) :
									  second == sizeof(int32) ? PG_GETARG_INT32(2) :
									  PG_GETARG_INT16(2), seed));
	PG_RETURN_POINTER(state);
}

FAV_FUNCTION(fav_agg_int8, transition(fcinfo, FAV_KIND_INTEGER, agg_params, 0));
FAV_FUNCTION(fav_agg_text, transition(fcinfo, FAV_KIND_TEXT, agg_params, 0));
FAV_FUNCTION(fav_agg_uuid, transition(fcinfo, FAV_KIND_UUID, agg_params, 0));
FAV_FUNCTION(fav_agg_bytea, transition(fcinfo, FAV_KIND_BYTES, agg_params, 0));

FAV_FUNCTION(fav_base_int8, transition(fcinfo, FAV_KIND_INTEGER, base_params, 0));
FAV_FUNCTION(fav_base_text, transition(fcinfo, FAV_KIND_TEXT, base_params, 0));
FAV_FUNCTION(fav_base_uuid, transition(fcinfo, FAV_KIND_UUID, base_params, 0));
FAV_FUNCTION(fav_base_bytea, transition(fcinfo, FAV_KIND_BYTES, base_params, 0));
FAV_FUNCTION(fav_base_pair, transition(fcinfo, FAV_KIND_PAIR, base_params, sizeof(int64)));

/*
 * The second number of a pair may have any integer type.  Without a function for each type,
 * PostgreSQL would resolve two integer columns to an element and its error rate, because float8
 * is the preferred numeric type.
 */
FAV_FUNCTION(fav_agg_pair_int8, transition(fcinfo, FAV_KIND_PAIR, agg_params, sizeof(int64)));
FAV_FUNCTION(fav_agg_pair_int4, transition(fcinfo, FAV_KIND_PAIR, agg_params, sizeof(int32)));
FAV_FUNCTION(fav_agg_pair_int2, transition(fcinfo, FAV_KIND_PAIR, agg_params, sizeof(int16)));

Datum
fav_agg_combine(PG_FUNCTION_ARGS)
{
	FavAggState *state = PG_ARGISNULL(0) ? NULL : (FavAggState *) PG_GETARG_POINTER(0);
	FavAggState *other = PG_ARGISNULL(1) ? NULL : (FavAggState *) PG_GETARG_POINTER(1);

	if (other == NULL)
		return fav_return_argument(fcinfo, 0);
	if (state == NULL)
		state = new_state(fcinfo, &other->params);
	check_same_params(&state->params, &other->params);
	if (state->params.kind != other->params.kind ||
		state->params.region_size != other->params.region_size)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("cannot combine states of different aggregates")));
	fav_state_unite(state, other);
	PG_RETURN_POINTER(state);
}

Datum
fav_agg_serialize(PG_FUNCTION_ARGS)
{
	FavAggState *state = (FavAggState *) PG_GETARG_POINTER(0);
	bytea	   *result;

	fav_aggregate_context(fcinfo);
	fav_hashset_sort(&state->set);
	result = fav_allocate_state(fav_state_size(state), "fav_agg", "elements");
	fav_state_write(state, (uint8_t *) VARDATA(result));
	PG_RETURN_BYTEA_P(result);
}

Datum
fav_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	Size		size = VARSIZE_ANY_EXHDR(bytes);
	FavAggState *state = palloc(sizeof(FavAggState));
	const char *problem;
	size_t		used;

	fav_aggregate_context(fcinfo);
	problem = fav_state_read(state, (const uint8_t *) VARDATA_ANY(bytes), size, &used);
	if (problem == NULL && used != size)
		problem = "It is too long.";
	if (problem != NULL)
		fav_raise_invalid_state("fav_agg", problem);
	fav_check_params(&state->params);
	PG_RETURN_POINTER(state);
}

/*
 * Build the filter with `factor` times its error rate.  The default capacity is the number of
 * elements.  The state remains usable, because a window function calls this repeatedly.
 */
static Datum
final(FunctionCallInfo fcinfo, double factor)
{
	FavAggState *state;
	FavParams	params;
	FavEditor	editor;
	size_t		count;

	fav_aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (FavAggState *) PG_GETARG_POINTER(0);
	fav_hashset_sort(&state->set);
	count = state->set.count;
	params = state->params;
	params.error_rate *= factor;
	if (params.capacity == 0)
		params.capacity = count > FAV_RECENT_MAX ? count : FAV_DEFAULT_CAPACITY;
	fav_require(fav_editor_build(&editor, &params, state->set.hashes, count));
	editor.filter.params.error_rate = state->params.error_rate;
	return fav_finish_edit(&editor);
}

FAV_FUNCTION(fav_agg_final, final(fcinfo, 1));

/*
 * A base never grows, so its only slice may use all of the error share of the base.  The first
 * slice of a chain gets half of the error rate, so build with twice the share.
 */
FAV_FUNCTION(fav_base_final, final(fcinfo, 2 * FAV_BASE_ERROR_SHARE));
