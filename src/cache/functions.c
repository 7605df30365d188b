/*
 * functions.c
 *		fav_cache_new, fav_add, fav_del, fav_count, fav_cache_stats and fav_cache_agg for
 *		bounded sets.
 *
 * The functions that probe are those of filters (type/contains.c), and so are input and output
 * (type/io.c) and comparing (type/compare.c).
 */
#include "fav.h"

#include "cache/bounded.h"
#include "miscadmin.h"
#include "type/elements.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(fav_cache_new);
PG_FUNCTION_INFO_V1(fav_cache_count);
PG_FUNCTION_INFO_V1(fav_cache_stats);
PG_FUNCTION_INFO_V1(fav_cache_agg_final);

static void
begin_new(FavBoundedEditor *editor, int32 capacity, int64 seed)
{
	if (capacity < 1 || capacity > FAV_BOUNDED_MAX_CAPACITY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity %d is out of range", capacity),
				 errdetail("The capacity must be between 1 and %d.", FAV_BOUNDED_MAX_CAPACITY)));
	fav_require(fav_bounded_new(editor, (uint32) capacity, (uint64) seed));
}

/*
 * Opens argument 0, which may be toasted, and returns the detoasted value.  With head_only only
 * the header is loaded.
 */
static struct varlena *
get_bounded(FunctionCallInfo fcinfo, bool head_only, FavBounded *set)
{
	struct varlena *attribute = (struct varlena *) PG_GETARG_POINTER(0);
	size_t		size = toast_raw_datum_size(PointerGetDatum(attribute)) - VARHDRSZ;
	struct varlena *bytes = head_only && size > FAV_BOUNDED_HEADER_SIZE ?
		detoast_attr_slice(attribute, 0, FAV_BOUNDED_HEADER_SIZE) :
		pg_detoast_datum_packed(attribute);
	FavProblem	problem;

	if (fav_bounded_open(set, (const uint8_t *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), size,
						 &problem) != FAV_OK)
		fav_raise_corrupted(&problem);
	return bytes;
}

/* The value of an editor.  It remains the editor's. */
static Datum
finished_datum(FavBoundedEditor *editor)
{
	fav_bounded_finish(editor);
	SET_VARSIZE(editor->value, VARHDRSZ + fav_bounded_size(&editor->set));
	return PointerGetDatum(editor->value);
}

Datum
fav_cache_new(PG_FUNCTION_ARGS)
{
	FavBoundedEditor editor;

	begin_new(&editor, PG_GETARG_INT32(0), PG_GETARG_INT64(1));
	return finished_datum(&editor);
}

/*
 * Add and del.  NULL is an empty set of the default capacity.  A NULL element changes nothing.
 * If nothing changes, the result is the argument itself.
 */
typedef FavStatus (*BoundedEdit) (FavBoundedEditor *editor, uint64_t hash);

static void
begin_edit(FunctionCallInfo fcinfo, FavBoundedEditor *editor)
{
	FavBounded	set;
	struct varlena *bytes;

	if (PG_ARGISNULL(0))
	{
		begin_new(editor, FAV_DEFAULT_CAPACITY, FAV_DEFAULT_SEED);
		return;
	}
	bytes = get_bounded(fcinfo, false, &set);
	fav_require(fav_bounded_edit(editor, &set));
	PG_FREE_IF_COPY(bytes, 0);
}

static Datum
edit(FunctionCallInfo fcinfo, FavKind kind, bool is_array, BoundedEdit function)
{
	FavBoundedEditor editor;
	FavElements elements;
	uint64_t   *hashes;
	int			i;

	if (fav_element_is_null(fcinfo, kind, 1) || (PG_ARGISNULL(0) && function == fav_bounded_remove))
		return fav_return_argument(fcinfo, 0);
	fav_get_elements(fcinfo, is_array, &elements);
	begin_edit(fcinfo, &editor);
	hashes = fav_hash_elements(fcinfo, kind, &elements, &editor.set.params);
	for (i = 0; i < elements.count; i++)
	{
		if (i % FAV_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		fav_require(function(&editor, hashes[i]));
	}
	pfree(hashes);
	if (!PG_ARGISNULL(0) && !editor.changed)
	{
		pfree(editor.value);
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	if (editor.set.params.kind == FAV_KIND_NONE)
		editor.set.params.kind = kind;
	return finished_datum(&editor);
}

/*
 * The aggregate.  Its state is an editor.  The order of the rows decides which elements are the
 * newest, so there is no combine function.
 */
static Datum
aggregate(FunctionCallInfo fcinfo, FavKind kind)
{
	int			capacity_number = kind == FAV_KIND_PAIR ? 3 : 2;
	int32		capacity = FAV_DEFAULT_CAPACITY;
	FavBoundedEditor *state;
	MemoryContext old = MemoryContextSwitchTo(fav_aggregate_context(fcinfo));

	if (PG_NARGS() > capacity_number)
	{
		fav_refuse_null(PG_ARGISNULL(capacity_number), "capacity");
		capacity = PG_GETARG_INT32(capacity_number);
	}
	if (PG_ARGISNULL(0))
	{
		state = palloc(sizeof(FavBoundedEditor));
		begin_new(state, capacity, FAV_DEFAULT_SEED);
		state->set.params.kind = kind;
	}
	else
		state = (FavBoundedEditor *) PG_GETARG_POINTER(0);
	if (state->set.params.capacity != (uint64) capacity)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity must be the same for all rows of a group"),
				 errdetail("One row has " UINT64_FORMAT ", another has %d.",
						   state->set.params.capacity, capacity)));
	if (!fav_element_is_null(fcinfo, kind, 1))
		fav_require(fav_bounded_add(state, fav_hash_argument(fcinfo, kind, 1, &state->set.params)));
	MemoryContextSwitchTo(old);
	PG_RETURN_POINTER(state);
}

/* Copies the state, because a window function goes on with it. */
Datum
fav_cache_agg_final(PG_FUNCTION_ARGS)
{
	FavBoundedEditor copy;

	fav_aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	fav_require(fav_bounded_edit(&copy, &((FavBoundedEditor *) PG_GETARG_POINTER(0))->set));
	return finished_datum(&copy);
}

Datum
fav_cache_count(PG_FUNCTION_ARGS)
{
	FavBounded	set;

	if (PG_ARGISNULL(0))
		PG_RETURN_INT64(0);
	(void) get_bounded(fcinfo, true, &set);
	PG_RETURN_INT64((int64) set.used);
}

Datum
fav_cache_stats(PG_FUNCTION_ARGS)
{
	FavBounded	set;
	Datum		values[8];
	bool		nulls[8] = {false};
	int			i = 0;

	(void) get_bounded(fcinfo, false, &set);

	values[i++] = Int32GetDatum(FAV_BOUNDED_FORMAT_VERSION);
	if (set.params.kind == FAV_KIND_NONE)
		nulls[i++] = true;
	else
		values[i++] = CStringGetTextDatum(fav_kind_name(set.params.kind));
	values[i++] = Int32GetDatum((int32) set.params.capacity);
	values[i++] = Int64GetDatum((int64) set.params.seed);
	values[i++] = Int32GetDatum((int32) set.used);
	values[i++] = Int32GetDatum((int32) fav_bounded_nslots(set.params.capacity));
	values[i++] = Int64GetDatum((int64) (VARHDRSZ + fav_bounded_size(&set)));
	values[i++] = Float8GetDatum(fav_bounded_eviction_rate(&set));
	Assert(i == lengthof(values));

	return fav_return_row(fcinfo, values, nulls);
}

#define ELEMENT_FUNCTIONS(suffix, kind) \
	FAV_FUNCTION(fav_cache_add_##suffix, edit(fcinfo, kind, false, fav_bounded_add)); \
	FAV_FUNCTION(fav_cache_del_##suffix, edit(fcinfo, kind, false, fav_bounded_remove)); \
	FAV_FUNCTION(fav_cache_agg_##suffix, aggregate(fcinfo, kind))

#define KIND_FUNCTIONS(suffix, kind) \
	ELEMENT_FUNCTIONS(suffix, kind); \
	FAV_FUNCTION(fav_cache_add_##suffix##_array, edit(fcinfo, kind, true, fav_bounded_add)); \
	FAV_FUNCTION(fav_cache_del_##suffix##_array, edit(fcinfo, kind, true, fav_bounded_remove))

KIND_FUNCTIONS(int8, FAV_KIND_INTEGER);
KIND_FUNCTIONS(text, FAV_KIND_TEXT);
KIND_FUNCTIONS(uuid, FAV_KIND_UUID);
KIND_FUNCTIONS(bytea, FAV_KIND_BYTES);
ELEMENT_FUNCTIONS(pair, FAV_KIND_PAIR);
