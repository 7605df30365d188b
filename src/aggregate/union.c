/*
 * union.c
 *		fav_union and fav_union_agg.
 *
 * The aggregate keeps the hashes of filters that have no slices and no tombstones
 * in one set, and the others as they are.  Only the end merges: the set, or the
 * filters in the order of their bytes and then the set.  So the result depends
 * neither on the order of the rows nor on the workers that read them.
 */
#include "fav.h"

#include "core/editor.h"
#include "type/elements.h"
#include "aggregate/hashset.h"
#include "miscadmin.h"
#include "utils/memutils.h"

typedef struct UnionState
{
	FavParams	params;			/* of the filters without slices */
	bool		has_params;
	FavHashSet	set;			/* their elements */
	const uint8_t *stored;		/* of a deserialized state: these where they came */
	size_t		stored_size;
	struct varlena **parts;		/* the filters with slices */
	size_t		nparts;
	size_t		room;
} UnionState;

PG_FUNCTION_INFO_V1(fav_union);
PG_FUNCTION_INFO_V1(fav_union_transition);
PG_FUNCTION_INFO_V1(fav_union_combine);
PG_FUNCTION_INFO_V1(fav_union_serialize);
PG_FUNCTION_INFO_V1(fav_union_deserialize);
PG_FUNCTION_INFO_V1(fav_union_final);

static void
check_compatible(const FavParams *a, const FavParams *b)
{
	if (a->seed != b->seed)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot unite filters with different seeds"),
				 errdetail("The seeds are " INT64_FORMAT " and " INT64_FORMAT ".",
						   (int64) a->seed, (int64) b->seed)));
	if (a->region_size != b->region_size)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot unite filters with different region sizes"),
				 errdetail("The region sizes are %d and %d.", (int) a->region_size, (int) b->region_size)));
	if (a->kind != b->kind && a->kind != FAV_KIND_NONE && b->kind != FAV_KIND_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("cannot unite filters with elements of different kinds"),
				 errdetail("The kinds are %s and %s.", fav_kind_name(a->kind), fav_kind_name(b->kind))));
}

static void
unite(FavEditor *editor, const FavFilter *other)
{
	check_compatible(&editor->filter.params, &other->params);
	fav_require(fav_editor_union(editor, other));
}

Datum
fav_union(PG_FUNCTION_ARGS)
{
	FavArgument a;
	FavArgument b;
	FavEditor	editor;

	if (PG_ARGISNULL(0) && PG_ARGISNULL(1))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(PG_ARGISNULL(0) ? 1 : 0));
	fav_get_argument(fcinfo, 0, &a);
	fav_get_argument(fcinfo, 1, &b);
	fav_editor_open(&editor, &a.filter);
	unite(&editor, &b.filter);
	return fav_finish_edit(&editor);
}

/*
 * The aggregate
 */

static UnionState *
state_argument(FunctionCallInfo fcinfo, MemoryContext context)
{
	if (PG_ARGISNULL(0))
		return MemoryContextAllocZero(context, sizeof(UnionState));
	return (UnionState *) PG_GETARG_POINTER(0);
}

/* The parameters of a union of exact filters are the largest there were. */
static void
unite_params(UnionState *state, const FavParams *params)
{
	if (!state->has_params)
	{
		state->params = *params;
		state->has_params = true;
		return;
	}
	check_compatible(&state->params, params);
	state->params.capacity = Max(state->params.capacity, params->capacity);
	state->params.error_rate = Max(state->params.error_rate, params->error_rate);
	if (state->params.kind == FAV_KIND_NONE)
		state->params.kind = params->kind;
}

static void
keep_part(UnionState *state, const struct varlena *value, MemoryContext context)
{
	struct varlena *copy;

	if (state->nparts == state->room)
	{
		size_t		room = state->room == 0 ? 4 : state->room * 2;

		if (state->room == 0)
			state->parts = MemoryContextAlloc(context, room * sizeof(struct varlena *));
		else
			state->parts = repalloc_huge(state->parts, room * sizeof(struct varlena *));
		state->room = room;
	}
	copy = MemoryContextAllocHuge(context, VARSIZE_ANY_EXHDR(value) + VARHDRSZ);
	SET_VARSIZE(copy, VARSIZE_ANY_EXHDR(value) + VARHDRSZ);
	fav_copy((uint8_t *) VARDATA(copy), (const uint8_t *) VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
	state->parts[state->nparts++] = copy;
}

Datum
fav_union_transition(PG_FUNCTION_ARGS)
{
	MemoryContext context = fav_aggregate_context(fcinfo);
	UnionState *state = state_argument(fcinfo, context);
	FavArgument argument;
	uint32_t	i;

	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(state);
	fav_get_argument(fcinfo, 1, &argument);
	if (argument.filter.nslices > 0 || argument.filter.ntombstones > 0)
		keep_part(state, argument.datum, context);
	else
	{
		unite_params(state, &argument.filter.params);
		for (i = 0; i < argument.filter.nrecent; i++)
			fav_hashset_add(&state->set, fav_load64(argument.filter.recent + 8 * i), context);
	}
	fav_free_argument(fcinfo, 1, &argument);
	PG_RETURN_POINTER(state);
}

Datum
fav_union_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = fav_aggregate_context(fcinfo);
	UnionState *state = state_argument(fcinfo, context);
	UnionState *other = PG_ARGISNULL(1) ? NULL : (UnionState *) PG_GETARG_POINTER(1);
	size_t		i;

	if (other == NULL)
		PG_RETURN_POINTER(state);
	/* its hashes are looked for in one place only: rather an error than a loss */
	if (other->stored == NULL)
		elog(ERROR, "a state of fav_union_agg that was never serialized cannot be combined");
	if (other->has_params)
		unite_params(state, &other->params);
	fav_hashset_merge(&state->set, other->stored, other->stored_size, context);
	for (i = 0; i < other->nparts; i++)
		keep_part(state, other->parts[i], context);
	PG_RETURN_POINTER(state);
}

/* Only from one process to another on the same machine. */
Datum
fav_union_serialize(PG_FUNCTION_ARGS)
{
	UnionState *state = (UnionState *) PG_GETARG_POINTER(0);
	UnionState	sent = *state;
	Size		size = VARHDRSZ + sizeof(UnionState);
	bytea	   *result;
	char	   *at;
	size_t		i;

	fav_aggregate_context(fcinfo);
	fav_hashset_compact(&state->set);
	sent.stored_size = fav_hashset_stored_size(&state->set);
	size += sent.stored_size;
	for (i = 0; i < state->nparts; i++)
		size += VARSIZE(state->parts[i]);
	if (size > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many filters for a parallel fav_union_agg"),
				 errhint("Set max_parallel_workers_per_gather to 0 for this query.")));
	result = palloc(size);
	SET_VARSIZE(result, size);
	at = VARDATA(result);
	memcpy(at, &sent, sizeof(UnionState));
	at += sizeof(UnionState);
	fav_hashset_store(&state->set, (uint8_t *) at);
	at += sent.stored_size;
	for (i = 0; i < state->nparts; i++)
	{
		fav_copy((uint8_t *) at, (const uint8_t *) state->parts[i], VARSIZE(state->parts[i]));
		at += VARSIZE(state->parts[i]);
	}
	PG_RETURN_BYTEA_P(result);
}

/* For fav_union_combine alone: the hashes stay where they came. */
Datum
fav_union_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	const char *at = VARDATA_ANY(bytes);
	UnionState	sent;
	UnionState *state;
	size_t		i;

	fav_aggregate_context(fcinfo);
	if (VARSIZE_ANY_EXHDR(bytes) < sizeof(UnionState))
		elog(ERROR, "serialized state of fav_union_agg has %zu bytes", (size_t) VARSIZE_ANY_EXHDR(bytes));
	memcpy(&sent, at, sizeof(UnionState));
	at += sizeof(UnionState);
	state = palloc0(sizeof(UnionState));
	state->params = sent.params;
	state->has_params = sent.has_params;
	state->stored = (const uint8_t *) at;
	state->stored_size = sent.stored_size;
	at += sent.stored_size;
	for (i = 0; i < sent.nparts; i++)
	{
		struct varlena header;
		struct varlena *part;

		/* the parts are packed without regard to alignment */
		memcpy(&header, at, VARHDRSZ);
		part = palloc(VARSIZE(&header));
		fav_copy((uint8_t *) part, (const uint8_t *) at, VARSIZE(&header));
		keep_part(state, part, CurrentMemoryContext);
		at += VARSIZE(&header);
	}
	PG_RETURN_POINTER(state);
}

static int
compare_parts(const void *a, const void *b)
{
	const struct varlena *x = *(struct varlena *const *) a;
	const struct varlena *y = *(struct varlena *const *) b;

	/* larger ones first: the others may fit into them */
	if (VARSIZE(x) != VARSIZE(y))
		return VARSIZE(x) > VARSIZE(y) ? -1 : 1;
	return memcmp(VARDATA(x), VARDATA(y), VARSIZE(x) - VARHDRSZ);
}

static void
open_part(const struct varlena *part, FavFilter *filter)
{
	FavProblem	problem;
	size_t		size = VARSIZE(part) - VARHDRSZ;

	if (fav_open(filter, (const uint8_t *) VARDATA(part), size, size, &problem) != FAV_OK)
		fav_raise_corrupted(&problem);
}

/* More elements raise it anyway. */
static uint64
wanted_capacity(uint64 wanted, uint64 count)
{
	(void) count;
	return wanted;
}

Datum
fav_union_final(PG_FUNCTION_ARGS)
{
	UnionState *state;
	FavEditor	editor;
	FavFilter	part;
	FavSpan    *spans;
	size_t		nspans;
	size_t		i;
	size_t		j;

	fav_aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (UnionState *) PG_GETARG_POINTER(0);
	if (state->nparts == 0 && !state->has_params)
		PG_RETURN_NULL();		/* nothing but NULLs */

	if (state->nparts == 0)
	{
		fav_hashset_build(&state->set, &state->params, wanted_capacity, &editor);
		return fav_finish_edit(&editor);
	}

	qsort(state->parts, state->nparts, sizeof(struct varlena *), compare_parts);
	open_part(state->parts[0], &part);
	fav_editor_open(&editor, &part);
	for (i = 1; i < state->nparts; i++)
	{
		CHECK_FOR_INTERRUPTS();
		open_part(state->parts[i], &part);
		unite(&editor, &part);
	}
	if (state->has_params)
		check_compatible(&editor.filter.params, &state->params);
	fav_hashset_settle(&state->set);
	spans = fav_hashset_spans(&state->set, &nspans);
	for (i = 0; i < nspans; i++)
		for (j = 0; j < spans[i].count; j++)
		{
			if (j % FAV_INTERRUPT_EVERY == 0)
				CHECK_FOR_INTERRUPTS();
			fav_require(fav_editor_add(&editor, spans[i].hashes[j]));
		}
	return fav_finish_edit(&editor);
}
