/*
 * contains.c
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

/* The number of array elements that are probed at once. */
#define PROBE_BATCH		64

/*
 * Contains.  A NULL filter is empty.  A NULL element gives NULL.  The array forms give the OR
 * or the AND of the single results.  With is_bounded the filter is a bounded set (fav_cache).
 */

/* The first probe of a filter, and the second of one in its row. */
static pg_attribute_always_inline Datum
contains_first(FunctionCallInfo fcinfo, FavKind kind, int filter_number, int element_number,
			   bool is_bounded)
{
	struct varlena *attribute = (struct varlena *) PG_GETARG_POINTER(filter_number);
	FavExpanded *object;
	FavReader  *reader;
	uint64_t	hash;

	/* The common case, a value in its row: nothing to load. */
	if (!is_bounded && !VARATT_IS_EXTERNAL(attribute) && !VARATT_IS_COMPRESSED(attribute) &&
		!fav_is_probed_again(fcinfo, attribute))
	{
		FavFilter	filter;

		fav_open_flat(&filter, attribute);
		hash = fav_hash_argument(fcinfo, kind, element_number, &filter.params);
		PG_RETURN_BOOL(fav_contains(&filter, hash));
	}
	object = fav_find_expanded(PointerGetDatum(attribute));
	if (object != NULL)
	{
		hash = fav_hash_argument(fcinfo, kind, element_number, fav_expanded_params(object, kind));
		PG_RETURN_BOOL(fav_expanded_contains(object, hash));
	}
	reader = fav_find_reader(fcinfo, attribute, is_bounded);
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

/*
 * Returns the reader of argument 0 for an array of `count` elements of this kind.  That of an
 * expanded object is `local`.
 */
static FavReader *
get_reader(FunctionCallInfo fcinfo, FavKind kind, int count, bool is_bounded, FavReader *local)
{
	FavExpanded *object = fav_find_expanded(PG_GETARG_DATUM(0));
	FavReader  *reader;

	if (object == NULL)
	{
		reader = fav_find_reader(fcinfo, (struct varlena *) PG_GETARG_POINTER(0), is_bounded);
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

/*
 * Probe elements from number `from` on, and return how many: at most PROBE_BATCH, or one if it
 * has to be fetched, because then an early result saves the others.  No reader stands for the
 * empty filter.
 */
static inline int
probe_batch(FavReader *reader, FavKind kind, const FavElements *elements, int from, bool *answers)
{
	uint64_t	hashes[PROBE_BATCH];
	int			count = Min(elements->count - from, PROBE_BATCH);
	int			i;

	CHECK_FOR_INTERRUPTS();
	if (reader == NULL)
	{
		memset(answers, false, (size_t) count);
		return count;
	}
	if (!fav_reader_is_loaded(reader))
		count = 1;
	for (i = 0; i < count; i++)
		hashes[i] = fav_hash_for(&reader->filter.params, kind, elements->values[from + i]);
	fav_reader_contains_many(reader, hashes, (size_t) count, answers);
	return count;
}

/* OR (`wanted` is true) or AND (`wanted` is false) over the elements of an array. */
static inline Datum
contains_array(FunctionCallInfo fcinfo, FavKind kind, bool wanted, bool is_bounded)
{
	FavReader	local;
	FavReader  *reader = NULL;
	FavElements elements;
	bool		answers[PROBE_BATCH];
	int			from;
	int			count;

	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	fav_get_elements(fcinfo, true, &elements);
	if (!PG_ARGISNULL(0))
		reader = get_reader(fcinfo, kind, elements.count, is_bounded, &local);
	for (from = 0; from < elements.count; from += count)
	{
		count = probe_batch(reader, kind, &elements, from, answers);
		if (memchr(answers, wanted ? 1 : 0, (size_t) count) != NULL)
			PG_RETURN_BOOL(wanted);
	}
	if (array_contains_nulls(elements.array))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(!wanted);
}

/* Make an array of the same type. */
static ArrayType *
make_array(const FavElements *elements, Datum *values, int count)
{
	Oid			type = ARR_ELEMTYPE(elements->array);
	ArrayType  *result;

	if (!elements->is_plain || count == 0)
		return construct_array(values, count, type, elements->typlen, elements->typbyval,
							   elements->typalign);

	/* construct_array() would take longer than probing the elements */
	result = palloc(ARR_OVERHEAD_NONULLS(1) + (Size) count * sizeof(Datum));
	SET_VARSIZE(result, ARR_OVERHEAD_NONULLS(1) + (Size) count * sizeof(Datum));
	result->ndim = 1;
	result->dataoffset = 0;
	result->elemtype = type;
	ARR_DIMS(result)[0] = count;
	ARR_LBOUND(result)[0] = 1;
	memcpy(ARR_DATA_PTR(result), values, (Size) count * sizeof(Datum));
	return result;
}

/* The elements that are not in the filter, in order, without NULLs. */
static inline Datum
filter_array(FunctionCallInfo fcinfo, FavKind kind, bool is_bounded)
{
	FavReader	local;
	FavReader  *reader = NULL;
	FavElements elements;
	bool		answers[PROBE_BATCH];
	Datum	   *kept;
	int			nkept = 0;
	int			from;
	int			count;
	int			i;

	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	fav_get_elements(fcinfo, true, &elements);
	if (!PG_ARGISNULL(0))
		reader = get_reader(fcinfo, kind, elements.count, is_bounded, &local);
	kept = palloc((Size) elements.count * sizeof(Datum));
	for (from = 0; from < elements.count; from += count)
	{
		count = probe_batch(reader, kind, &elements, from, answers);
		for (i = 0; i < count; i++)
		{
			/* store every element, so that there is no branch to mispredict */
			kept[nkept] = elements.values[from + i];
			nkept += !answers[i];
		}
	}
	PG_RETURN_ARRAYTYPE_P(make_array(&elements, kept, nkept));
}

#define FAV_CONTAINS_FUNCTION(name, kind, filter_number, element_number, is_bounded) \
	static pg_noinline Datum name##_first(PG_FUNCTION_ARGS) \
	{ return contains_first(fcinfo, kind, filter_number, element_number, is_bounded); } \
	FAV_FUNCTION(name, contains_element(fcinfo, kind, filter_number, element_number, name##_first))

/* prefix: fav, or fav_cache for bounded sets */
#define FAV_PROBE_FUNCTIONS(prefix, suffix, kind, is_bounded) \
	FAV_CONTAINS_FUNCTION(prefix##_contains_##suffix, kind, 0, 1, is_bounded); \
	FAV_CONTAINS_FUNCTION(prefix##_contained_##suffix, kind, 1, 0, is_bounded); \
	FAV_FUNCTION(prefix##_contains_any_##suffix, contains_array(fcinfo, kind, true, is_bounded)); \
	FAV_FUNCTION(prefix##_contains_all_##suffix, contains_array(fcinfo, kind, false, is_bounded)); \
	FAV_FUNCTION(prefix##_filter_##suffix, filter_array(fcinfo, kind, is_bounded))

#define FAV_KIND_FUNCTIONS(suffix, kind) \
	FAV_PROBE_FUNCTIONS(fav, suffix, kind, false); \
	FAV_PROBE_FUNCTIONS(fav_cache, suffix, kind, true)

FAV_KIND_FUNCTIONS(int8, FAV_KIND_INTEGER);
FAV_KIND_FUNCTIONS(text, FAV_KIND_TEXT);
FAV_KIND_FUNCTIONS(uuid, FAV_KIND_UUID);
FAV_KIND_FUNCTIONS(bytea, FAV_KIND_BYTES);
FAV_CONTAINS_FUNCTION(fav_contains_pair, FAV_KIND_PAIR, 0, 1, false);
FAV_CONTAINS_FUNCTION(fav_cache_contains_pair, FAV_KIND_PAIR, 0, 1, true);
