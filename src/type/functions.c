/*
 * functions.c
 *		fav_contains and fav_filter, for elements and arrays.
 *
 * Each operation is written once for all kinds of elements.  The macros at the end of the file
 * define the functions that SQL calls.
 */
#include "fav.h"

#include "type/elements.h"
#include "type/expanded.h"
#include "miscadmin.h"
#include "toast_cache.h"
#include "utils/lsyscache.h"

/* The number of array elements that are probed at once. */
#define PROBE_BATCH		64

/*
 * Returns the integers of an array in place, or NULL if it has NULLs or other elements.
 * Deconstructing an array of integers costs more than probing them.
 */
static inline const int64 *
plain_integers(FavKind kind, ArrayType *array, int *count)
{
	if (kind != FAV_KIND_INTEGER || ARR_HASNULL(array))
		return NULL;
	*count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	return (const int64 *) ARR_DATA_PTR(array);
}

void
fav_get_elements(FunctionCallInfo fcinfo, int number, FavElements *elements)
{
	elements->array = PG_GETARG_ARRAYTYPE_P(number);
	get_typlenbyvalalign(ARR_ELEMTYPE(elements->array), &elements->typlen,
						 &elements->typbyval, &elements->typalign);
	deconstruct_array(elements->array, ARR_ELEMTYPE(elements->array), elements->typlen,
					  elements->typbyval, elements->typalign,
					  &elements->values, &elements->nulls, &elements->count);
}

/*
 * Contains.  A NULL filter is empty.  A NULL element gives NULL.  The array forms give the OR
 * or the AND of the single results.
 */

/* The first probe of a filter, and every probe of one that is not toasted. */
static pg_attribute_always_inline Datum
contains_first(FunctionCallInfo fcinfo, FavKind kind, int filter_number, int element_number)
{
	struct varlena *attribute = (struct varlena *) PG_GETARG_POINTER(filter_number);
	FavExpanded *object;
	FavReader	local;
	FavReader  *reader;
	uint64_t	hash;

	/* The common case, a value in its row: nothing to load. */
	if (!VARATT_IS_EXTERNAL(attribute) && !VARATT_IS_COMPRESSED(attribute))
	{
		const uint8_t *bytes = (const uint8_t *) VARDATA_ANY(attribute);
		size_t		size = VARSIZE_ANY_EXHDR(attribute);
		FavProblem	problem;

		if (fav_open(&local.filter, bytes, size, size, &problem) != FAV_OK)
			fav_raise_corrupted(&problem);
		hash = fav_hash_argument(fcinfo, kind, element_number, &local.filter.params);
		PG_RETURN_BOOL(fav_contains(&local.filter, hash));
	}
	object = fav_find_expanded(PointerGetDatum(attribute));
	if (object != NULL)
	{
		hash = fav_hash_argument(fcinfo, kind, element_number, fav_expanded_params(object, kind));
		PG_RETURN_BOOL(fav_expanded_contains(object, hash));
	}
	reader = fav_find_reader(fcinfo, attribute, &local);
	hash = fav_hash_argument(fcinfo, kind, element_number, &reader->filter.params);
	PG_RETURN_BOOL(fav_reader_contains(reader, hash));
}

/*
 * `first` calls contains_first() for this kind.  It is a tail call of a function that is not
 * inlined, so that a probe of the same filter as in the last row has a small stack frame.
 */
static pg_attribute_always_inline Datum
contains_element(FunctionCallInfo fcinfo, FavKind kind, int filter_number, int element_number,
				 PGFunction first)
{
	FavReader  *reader;

	if (fav_element_is_null(fcinfo, kind, element_number))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(filter_number))
		PG_RETURN_BOOL(false);
	reader = fav_same_reader(fcinfo, filter_number);
	if (reader == NULL)
		return first(fcinfo);
	if (kind == FAV_KIND_INTEGER && reader->is_far)
		fav_reader_look_ahead(reader, (uint64) PG_GETARG_INT64(element_number));
	PG_RETURN_BOOL(fav_reader_contains(reader, fav_hash_argument(fcinfo, kind, element_number,
																 &reader->filter.params)));
}

/* Returns the reader of argument 0 for an array of `count` elements of this kind. */
static FavReader *
get_reader(FunctionCallInfo fcinfo, FavKind kind, int count, FavReader *local)
{
	FavExpanded *object = fav_find_expanded(PG_GETARG_DATUM(0));
	FavReader  *reader;

	if (object == NULL)
	{
		reader = fav_get_reader(fcinfo, 0, local);
		fav_reader_expect(reader, count);
		return reader;
	}
	(void) fav_expanded_params(object, kind);
	local->filter = *fav_expanded_filter(object);
	/* a list, even an empty one, marks the filter as loaded */
	if (local->filter.tombstones == NULL)
		local->filter.tombstones = local->filter.recent;
	fav_matcher_init(&local->matcher, &local->filter);
	return local;
}

/* Probe integers, at most PROBE_BATCH of them. */
static inline void
probe_integers(FavReader *reader, const int64 *integers, int count, bool *answers)
{
	uint64_t	hashes[PROBE_BATCH];
	FavKind		kind = reader->filter.params.kind;
	int			i;

	CHECK_FOR_INTERRUPTS();
	if (unlikely(kind != FAV_KIND_INTEGER && kind != FAV_KIND_NONE))
		fav_raise_other_kind(kind, FAV_KIND_INTEGER);
	for (i = 0; i < count; i++)
		hashes[i] = fav_hash_integer(integers[i], reader->filter.params.seed);
	fav_reader_contains_many(reader, hashes, (size_t) count, answers);
}

static bool
contains_integers(FavReader *reader, const int64 *integers, int count, bool wanted)
{
	bool		answers[PROBE_BATCH];
	int			probed;
	int			from;

	for (from = 0; from < count; from += probed)
	{
		/* while each probe fetches a block, probe one by one and stop early */
		probed = fav_reader_is_loaded(reader) ? Min(count - from, PROBE_BATCH) : 1;
		probe_integers(reader, integers + from, probed, answers);
		if (memchr(answers, wanted ? 1 : 0, (size_t) probed) != NULL)
			return wanted;
	}
	return !wanted;
}

/* OR (`wanted` is true) or AND (`wanted` is false) over the elements of an array. */
static inline Datum
contains_array(FunctionCallInfo fcinfo, FavKind kind, bool wanted)
{
	FavReader	local;
	FavReader  *reader = NULL;
	FavElements elements;
	bool		seen_null = false;
	int			i;

	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	if (kind == FAV_KIND_INTEGER && !PG_ARGISNULL(0))
	{
		int			count;
		const int64 *integers = plain_integers(kind, PG_GETARG_ARRAYTYPE_P(1), &count);

		if (integers != NULL)
		{
			reader = get_reader(fcinfo, kind, count, &local);
			PG_RETURN_BOOL(contains_integers(reader, integers, count, wanted));
		}
	}
	fav_get_elements(fcinfo, 1, &elements);
	if (!PG_ARGISNULL(0))
		reader = get_reader(fcinfo, kind, elements.count, &local);
	for (i = 0; i < elements.count; i++)
	{
		bool		contained;

		if (i % FAV_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (elements.nulls[i])
		{
			seen_null = true;
			continue;
		}
		contained = reader != NULL &&
			fav_reader_contains(reader, fav_hash_for(&reader->filter.params, kind,
													 elements.values[i]));
		if (contained == wanted)
			PG_RETURN_BOOL(wanted);
	}
	if (seen_null)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(!wanted);
}

static ArrayType *
filter_integers(FavReader *reader, const ArrayType *array, const int64 *integers, int count)
{
	Size		overhead = ARR_OVERHEAD_NONULLS(1);
	ArrayType  *result = palloc(overhead + sizeof(int64) * (Size) count);
	int64	   *kept;
	int			nkept = 0;
	bool		answers[PROBE_BATCH];
	int			from;
	int			i;

	result->ndim = 1;
	result->dataoffset = 0;
	result->elemtype = ARR_ELEMTYPE(array);
	ARR_LBOUND(result)[0] = 1;
	kept = (int64 *) ARR_DATA_PTR(result);
	for (from = 0; from < count; from += PROBE_BATCH)
	{
		int			probed = Min(count - from, PROBE_BATCH);

		probe_integers(reader, integers + from, probed, answers);
		for (i = 0; i < probed; i++)
		{
			/* store every integer, so that there is no branch to mispredict */
			kept[nkept] = integers[from + i];
			nkept += !answers[i];
		}
	}
	if (nkept == 0)
		return construct_empty_array(ARR_ELEMTYPE(array));
	ARR_DIMS(result)[0] = nkept;
	SET_VARSIZE(result, overhead + sizeof(int64) * (Size) nkept);
	return result;
}

/* The elements that are not in the filter, in order, without NULLs. */
static inline Datum
filter_array(FunctionCallInfo fcinfo, FavKind kind)
{
	FavReader	local;
	FavReader  *reader = NULL;
	FavElements elements;
	int			kept = 0;
	int			i;

	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	if (kind == FAV_KIND_INTEGER && !PG_ARGISNULL(0))
	{
		ArrayType  *array = PG_GETARG_ARRAYTYPE_P(1);
		int			count;
		const int64 *integers = plain_integers(kind, array, &count);

		if (integers != NULL)
		{
			reader = get_reader(fcinfo, kind, count, &local);
			PG_RETURN_ARRAYTYPE_P(filter_integers(reader, array, integers, count));
		}
	}
	fav_get_elements(fcinfo, 1, &elements);
	if (!PG_ARGISNULL(0))
		reader = get_reader(fcinfo, kind, elements.count, &local);
	for (i = 0; i < elements.count; i++)
	{
		if (i % FAV_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (!elements.nulls[i] &&
			(reader == NULL ||
			 !fav_reader_contains(reader, fav_hash_for(&reader->filter.params, kind,
													   elements.values[i]))))
			elements.values[kept++] = elements.values[i];
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(elements.values, kept, ARR_ELEMTYPE(elements.array),
										  elements.typlen, elements.typbyval, elements.typalign));
}

#define FAV_CONTAINS_FUNCTION(name, kind, filter_number, element_number) \
	static pg_noinline Datum name##_first(PG_FUNCTION_ARGS) \
	{ return contains_first(fcinfo, kind, filter_number, element_number); } \
	FAV_FUNCTION(name, contains_element(fcinfo, kind, filter_number, element_number, name##_first))

#define FAV_KIND_FUNCTIONS(suffix, kind) \
	FAV_CONTAINS_FUNCTION(fav_contains_##suffix, kind, 0, 1); \
	FAV_CONTAINS_FUNCTION(fav_contained_##suffix, kind, 1, 0); \
	FAV_FUNCTION(fav_contains_any_##suffix, contains_array(fcinfo, kind, true)); \
	FAV_FUNCTION(fav_contains_all_##suffix, contains_array(fcinfo, kind, false)); \
	FAV_FUNCTION(fav_filter_##suffix, filter_array(fcinfo, kind))

FAV_KIND_FUNCTIONS(int8, FAV_KIND_INTEGER);
FAV_KIND_FUNCTIONS(text, FAV_KIND_TEXT);
FAV_KIND_FUNCTIONS(uuid, FAV_KIND_UUID);
FAV_KIND_FUNCTIONS(bytea, FAV_KIND_BYTES);
FAV_CONTAINS_FUNCTION(fav_contains_pair, FAV_KIND_PAIR, 0, 1);
