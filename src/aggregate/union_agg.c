/*
 * union_agg.c
 *		fav_union_agg: the union of many filters.
 *
 * A filter without slices and tombstones is exact, unless it is dated.  The state has the
 * hashes of all exact filters in one set, and copies of the other filters.  Only the final
 * function unites them: first the filters, in the order of their size and bytes, then the set.
 * So the result depends neither on the order of the rows nor on the workers that read them.
 *
 * A serialized state is
 *
 *		version			u8
 *		has_exact		u8, 0 or 1
 *		exact			if has_exact: see hashset.h
 *		filters			each as its size, u32, and its bytes
 */
#include "fav.h"

#include "aggregate/hashset.h"
#include "miscadmin.h"
#include "type/edit.h"

#define AGGREGATE			"fav_union_agg"

#define UNION_VERSION		1
#define UNION_HEADER_SIZE	2

typedef struct UnionState
{
	bool		has_exact;		/* is one of the filters exact? */
	FavAggState exact;			/* elements and largest parameters of the exact filters */
	List	   *filters;		/* values of the other filters */
} UnionState;

PG_FUNCTION_INFO_V1(fav_union_transition);
PG_FUNCTION_INFO_V1(fav_union_combine);
PG_FUNCTION_INFO_V1(fav_union_serialize);
PG_FUNCTION_INFO_V1(fav_union_deserialize);
PG_FUNCTION_INFO_V1(fav_union_final);

static UnionState *
state_argument(FunctionCallInfo fcinfo, MemoryContext context)
{
	if (PG_ARGISNULL(0))
		return MemoryContextAllocZero(context, sizeof(UnionState));
	return (UnionState *) PG_GETARG_POINTER(0);
}

/* A union of exact filters has the largest capacity and error rate of them. */
static void
unite_params(UnionState *state, const FavParams *params, MemoryContext context)
{
	FavParams  *united = &state->exact.params;

	if (!state->has_exact)
	{
		fav_state_init(&state->exact, params, context);
		state->has_exact = true;
		return;
	}
	fav_check_unitable(united, params);
	united->capacity = Max(united->capacity, params->capacity);
	united->error_rate = Max(united->error_rate, params->error_rate);
	if (united->kind == FAV_KIND_NONE)
		united->kind = params->kind;
}

static void
keep_filter(UnionState *state, const uint8_t *bytes, size_t size, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	struct varlena *copy = fav_allocate_value(size);

	fav_copy((uint8_t *) VARDATA(copy), bytes, size);
	state->filters = lappend(state->filters, copy);
	MemoryContextSwitchTo(old);
}

static inline size_t
filter_size(const struct varlena *filter)
{
	return VARSIZE(filter) - VARHDRSZ;
}

Datum
fav_union_transition(PG_FUNCTION_ARGS)
{
	MemoryContext context = fav_aggregate_context(fcinfo);
	UnionState *state = state_argument(fcinfo, context);
	FavArgument argument;
	uint32		i;

	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(state);
	fav_get_argument(fcinfo, 1, &argument);
	if (argument.filter.is_short)
		PG_RETURN_POINTER(state);
	if (argument.filter.nslices > 0 || argument.filter.ntombstones > 0 ||
		fav_is_dated(&argument.filter))
		keep_filter(state, (const uint8_t *) VARDATA_ANY(argument.datum),
					VARSIZE_ANY_EXHDR(argument.datum), context);
	else
	{
		unite_params(state, &argument.filter.params, context);
		for (i = 0; i < argument.filter.nrecent; i++)
			fav_hashset_add(&state->exact.set, fav_load64(argument.filter.recent + 8 * i));
	}
	PG_FREE_IF_COPY(argument.datum, 1);
	PG_RETURN_POINTER(state);
}

Datum
fav_union_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = fav_aggregate_context(fcinfo);
	UnionState *state = state_argument(fcinfo, context);
	UnionState *other = PG_ARGISNULL(1) ? NULL : (UnionState *) PG_GETARG_POINTER(1);
	ListCell   *cell;

	if (other == NULL)
		PG_RETURN_POINTER(state);
	if (other->has_exact)
	{
		unite_params(state, &other->exact.params, context);
		fav_state_unite(&state->exact, &other->exact);
	}
	foreach(cell, other->filters)
		keep_filter(state, (const uint8_t *) VARDATA(lfirst(cell)), filter_size(lfirst(cell)),
					context);
	PG_RETURN_POINTER(state);
}

Datum
fav_union_serialize(PG_FUNCTION_ARGS)
{
	UnionState *state = (UnionState *) PG_GETARG_POINTER(0);
	Size		size = UNION_HEADER_SIZE;
	bytea	   *result;
	uint8_t    *at;
	ListCell   *cell;

	fav_aggregate_context(fcinfo);
	if (state->has_exact)
	{
		fav_hashset_sort(&state->exact.set);
		size += fav_state_size(&state->exact);
	}
	foreach(cell, state->filters)
		size += sizeof(uint32) + filter_size(lfirst(cell));
	result = fav_allocate_state(size, AGGREGATE, "filters");
	at = (uint8_t *) VARDATA(result);
	*at++ = UNION_VERSION;
	*at++ = state->has_exact;
	if (state->has_exact)
		at = fav_state_write(&state->exact, at);
	foreach(cell, state->filters)
	{
		size = filter_size(lfirst(cell));
		fav_store32(at, size);
		at += sizeof(uint32);
		fav_copy(at, (const uint8_t *) VARDATA(lfirst(cell)), size);
		at += size;
	}
	PG_RETURN_BYTEA_P(result);
}

Datum
fav_union_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	const uint8_t *at = (const uint8_t *) VARDATA_ANY(bytes);
	size_t		left = VARSIZE_ANY_EXHDR(bytes);
	UnionState *state = palloc0(sizeof(UnionState));
	FavFilter	filter;
	FavProblem	problem;

	fav_aggregate_context(fcinfo);
	if (left < UNION_HEADER_SIZE)
		fav_raise_invalid_state(AGGREGATE, "It is too short.");
	if (at[0] != UNION_VERSION || at[1] > 1)
		fav_raise_invalid_state(AGGREGATE, "It has an unknown version.");
	state->has_exact = at[1];
	at += UNION_HEADER_SIZE;
	left -= UNION_HEADER_SIZE;
	if (state->has_exact)
	{
		size_t		used;
		const char *detail = fav_state_read(&state->exact, at, left, &used);

		if (detail != NULL)
			fav_raise_invalid_state(AGGREGATE, detail);
		if (state->exact.params.capacity == 0)
			fav_raise_invalid_state(AGGREGATE, "Its capacity is out of range.");
		at += used;
		left -= used;
	}
	while (left > 0)
	{
		size_t		size = left >= sizeof(uint32) ? fav_load32(at) : 0;

		if (left < sizeof(uint32) || left - sizeof(uint32) < size)
			fav_raise_invalid_state(AGGREGATE, "It is too short.");
		at += sizeof(uint32);
		if (fav_open(&filter, at, size, size, &problem) != FAV_OK)
			fav_raise_invalid_state(AGGREGATE, problem.detail);
		keep_filter(state, at, size, CurrentMemoryContext);
		at += size;
		left -= sizeof(uint32) + size;
	}
	PG_RETURN_POINTER(state);
}

static int
compare_filters(const ListCell *a, const ListCell *b)
{
	const struct varlena *x = lfirst(a);
	const struct varlena *y = lfirst(b);

	/* larger filters first: smaller ones may be merged into their slices */
	if (VARSIZE(x) != VARSIZE(y))
		return VARSIZE(x) > VARSIZE(y) ? -1 : 1;
	return memcmp(VARDATA(x), VARDATA(y), filter_size(x));
}

/* Add sorted hashes. */
static void
add_exact(FavEditor *editor, const FavHashSet *set)
{
	size_t		step = fav_scatter_step(set->count);
	size_t		i;

	for (i = 0; i < set->count; i++)
	{
		if (i % FAV_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		fav_require(fav_editor_add(editor, set->hashes[fav_scattered(i, step, set->count)]));
	}
}

/* The state remains usable, because a window function calls this repeatedly. */
Datum
fav_union_final(PG_FUNCTION_ARGS)
{
	UnionState *state = PG_ARGISNULL(0) ? NULL : (UnionState *) PG_GETARG_POINTER(0);
	FavAggState *exact;
	FavEditor	editor;
	FavFilter	filter;
	ListCell   *cell;

	fav_aggregate_context(fcinfo);
	if (state == NULL || (state->filters == NIL && !state->has_exact))
		PG_RETURN_NULL();	/* all filters were NULL */
	exact = &state->exact;
	if (state->has_exact)
		fav_hashset_sort(&exact->set);
	if (state->filters == NIL)
	{
		fav_require(fav_editor_build(&editor, &exact->params, exact->set.hashes,
									 exact->set.count));
		return fav_finish_edit(&editor);
	}

	list_sort(state->filters, compare_filters);
	fav_begin_edit(&editor, linitial(state->filters));
	for_each_from(cell, state->filters, 1)
	{
		CHECK_FOR_INTERRUPTS();
		fav_open_flat(&filter, lfirst(cell));
		fav_unite(&editor, &filter);
	}
	if (state->has_exact)
	{
		fav_check_unitable(&editor.filter.params, &exact->params);
		add_exact(&editor, &exact->set);
	}
	return fav_finish_edit(&editor);
}
