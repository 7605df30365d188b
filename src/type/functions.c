/*
 * functions.c
 *		fav_new, fav_add, fav_del, fav_exclude, fav_contains and fav_filter.
 *
 * Each operation is written once for all kinds of elements.  The macros at the end of the file
 * define the functions that SQL calls.
 */
#include "fav.h"

#include "type/elements.h"
#include "type/expanded.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "toast_cache.h"
#include "utils/lsyscache.h"

/* The number of array elements that are probed at once. */
#define PROBE_BATCH		64

/*
 * Integers of an array without NULLs are Datums already.  Deconstructing such an array costs
 * more than probing its elements.
 */
void
fav_get_elements(FunctionCallInfo fcinfo, int number, FavElements *elements)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(number);
	bool	   *nulls;
	int			count;
	int			i;

	elements->array = array;
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &elements->typlen, &elements->typbyval,
						 &elements->typalign);
	elements->is_plain = elements->typbyval && elements->typlen == sizeof(Datum) &&
		!ARR_HASNULL(array);
	if (elements->is_plain)
	{
		elements->values = (Datum *) ARR_DATA_PTR(array);
		elements->count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
		return;
	}
	deconstruct_array(array, ARR_ELEMTYPE(array), elements->typlen, elements->typbyval,
					  elements->typalign, &elements->values, &nulls, &count);
	elements->count = 0;
	for (i = 0; i < count; i++)
		if (!nulls[i])
			elements->values[elements->count++] = elements->values[i];
}

PG_FUNCTION_INFO_V1(fav_new);

Datum
fav_new(PG_FUNCTION_ARGS)
{
	int64		capacity = PG_GETARG_INT64(0);
	FavParams	params = fav_default_params();
	FavEditor	editor;

	if (capacity < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity " INT64_FORMAT " is out of range", capacity),
				 errdetail("The capacity must be at least 1.")));
	params.capacity = (uint64_t) capacity;
	params.error_rate = PG_GETARG_FLOAT8(1);
	params.region_size = (uint32_t) PG_GETARG_INT32(2);
	params.seed = (uint64_t) PG_GETARG_INT64(3);
	fav_check_params(&params);
	fav_editor_new(&editor, &params);
	return fav_finish_edit(&editor);
}

/*
 * Add, del and exclude.  NULL is the empty filter.  A NULL element changes nothing.  If nothing
 * changes, the result is the argument itself, so that an UPDATE with it does not write the
 * TOAST value again.
 *
 * For a PL/pgSQL variable the result is an expanded object, which the next call edits in place.
 * Otherwise it is a flat value, because it is probably about to be stored.
 */
typedef struct Edit
{
	FavExpanded *object;		/* to edit in place; NULL: use the editor */
	bool		is_new;			/* this call made the object */
	FavEditor	editor;
	FavArgument argument;		/* opened by the editor; datum NULL: the argument is NULL */
} Edit;

/* Is argument 0 a variable?  Some query parameters look the same, which does no harm. */
static bool
is_variable(FunctionCallInfo fcinfo)
{
	Node	   *call = fcinfo->flinfo != NULL ? fcinfo->flinfo->fn_expr : NULL;
	Node	   *first = NULL;

	if (call != NULL && IsA(call, FuncExpr))
		first = linitial(((FuncExpr *) call)->args);
	else if (call != NULL && IsA(call, OpExpr))
		first = linitial(((OpExpr *) call)->args);
	return first != NULL && IsA(first, Param) && ((Param *) first)->paramkind == PARAM_EXTERN;
}

/* Begin to edit argument 0, which may be NULL.  Returns the parameters for hashing elements. */
static const FavParams *
begin_edit(FunctionCallInfo fcinfo, FavKind kind, size_t count, Edit *edit)
{
	bool		is_null = PG_ARGISNULL(0);
	FavExpanded *object = NULL;
	bool		is_own;

	if (FAV_HAS_IN_PLACE && !is_null)
		object = fav_find_expanded(PG_GETARG_DATUM(0));
	is_own = object != NULL && VARATT_IS_EXTERNAL_EXPANDED_RW(PG_GETARG_POINTER(0));
	edit->object = NULL;
	edit->is_new = false;
	edit->argument.datum = NULL;
	if (is_own && fav_expanded_is_editable(object, count))
		edit->object = object;
	else if (FAV_HAS_IN_PLACE && (is_own || is_variable(fcinfo)))
	{
		edit->object = is_null ? fav_expand_empty() : fav_expand(PG_GETARG_DATUM(0));
		edit->is_new = true;
	}
	if (edit->object != NULL)
		return fav_expanded_params(edit->object, kind);

	if (is_null)
	{
		FavParams	params = fav_default_params();

		fav_editor_new(&edit->editor, &params);
	}
	else
	{
		fav_get_argument(fcinfo, 0, &edit->argument);
		fav_editor_open(&edit->editor, &edit->argument.filter);
	}
	return &edit->editor.filter.params;
}

/* Apply the edit.  Only memory and limits can fail here, because the elements are hashed. */
static void
edit_hashes(Edit *edit, FavKind kind, FavEdit function, const uint64_t *hashes, size_t count)
{
	size_t		from;
	size_t		now;

	for (from = 0; from < count; from += now)
	{
		/* an edit in place has a single step, see fav_expanded_is_editable() */
		now = Min(count - from, FAV_INTERRUPT_EVERY);
		CHECK_FOR_INTERRUPTS();
		if (edit->object != NULL)
			fav_expanded_edit(edit->object, kind, function, hashes + from, now);
		else
			fav_require(function(&edit->editor, hashes + from, now));
	}
	if (edit->object == NULL && edit->editor.filter.params.kind == FAV_KIND_NONE)
		edit->editor.filter.params.kind = kind;
}

static Datum
end_edit(FunctionCallInfo fcinfo, Edit *edit)
{
	const FavFilter *filter;
	Datum		result;

	if (edit->object != NULL)
	{
		if (!edit->is_new || PG_ARGISNULL(0) || fav_expanded_has_changed(edit->object))
			return fav_expanded_datum(edit->object);
		fav_expanded_release(edit->object);
		return PG_GETARG_DATUM(0);
	}
	fav_require(fav_editor_finish(&edit->editor, &filter));
	if (edit->argument.datum != NULL && !edit->editor.changed)
	{
		fav_editor_close(&edit->editor);
		result = PG_GETARG_DATUM(0);
	}
	else
		result = fav_finish_edit(&edit->editor);
	if (edit->argument.datum != NULL)
		fav_free_argument(fcinfo, 0, &edit->argument);
	return result;
}

static Datum
edit_element(FunctionCallInfo fcinfo, FavKind kind, FavEdit function)
{
	Edit		edit;
	const FavParams *params;
	uint64_t	hash;

	if (fav_element_is_null(fcinfo, kind, 1) ||
		(PG_ARGISNULL(0) && function == fav_editor_remove_many))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	params = begin_edit(fcinfo, kind, 1, &edit);
	if (kind == FAV_KIND_TEXT)
		fav_refuse_array_as_text(fcinfo, 1, params);
	hash = fav_hash_argument(fcinfo, kind, 1, params);
	edit_hashes(&edit, kind, function, &hash, 1);
	return end_edit(fcinfo, &edit);
}

static Datum
edit_array(FunctionCallInfo fcinfo, FavKind kind, FavEdit function)
{
	Edit		edit;
	FavElements elements;
	const FavParams *params;
	uint64_t   *hashes;
	int			i;

	if (PG_ARGISNULL(1) || (PG_ARGISNULL(0) && function == fav_editor_remove_many))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	fav_get_elements(fcinfo, 1, &elements);
	params = begin_edit(fcinfo, kind, (size_t) elements.count, &edit);
	hashes = MemoryContextAllocHuge(CurrentMemoryContext, (Size) elements.count * sizeof(uint64_t));
	for (i = 0; i < elements.count; i++)
	{
		if (i % FAV_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		hashes[i] = fav_hash_for(params, kind, elements.values[i]);
	}
	edit_hashes(&edit, kind, function, hashes, (size_t) elements.count);
	pfree(hashes);
	return end_edit(fcinfo, &edit);
}

/*
 * Contains.  A NULL filter is empty.  A NULL element gives NULL.  The array forms give the OR
 * or the AND of the single results.  With is_bounded the filter is a bounded set (fav_cache).
 */

/* The first probe of a filter, and every probe of one that is not toasted. */
static pg_attribute_always_inline Datum
contains_first(FunctionCallInfo fcinfo, FavKind kind, int filter_number, int element_number,
			   bool is_bounded)
{
	struct varlena *attribute = (struct varlena *) PG_GETARG_POINTER(filter_number);
	FavExpanded *object;
	FavReader	local;
	FavReader  *reader;
	uint64_t	hash;

	/* The common case, a value in its row: nothing to load. */
	if (!is_bounded && !VARATT_IS_EXTERNAL(attribute) && !VARATT_IS_COMPRESSED(attribute))
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
	reader = fav_find_reader(fcinfo, attribute, is_bounded, &local);
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
get_reader(FunctionCallInfo fcinfo, FavKind kind, int count, bool is_bounded, FavReader *local)
{
	FavExpanded *object = fav_find_expanded(PG_GETARG_DATUM(0));
	FavReader  *reader;

	if (object == NULL)
	{
		reader = fav_get_reader(fcinfo, 0, is_bounded, local);
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
	fav_get_elements(fcinfo, 1, &elements);
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
	fav_get_elements(fcinfo, 1, &elements);
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

#define FAV_FUNCTION(name, call) \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	Datum name(PG_FUNCTION_ARGS) { return call; } \
	PG_FUNCTION_INFO_V1(name)

#define FAV_CONTAINS_FUNCTION(name, kind, filter_number, element_number, is_bounded) \
	static pg_noinline Datum name##_first(PG_FUNCTION_ARGS) \
	{ return contains_first(fcinfo, kind, filter_number, element_number, is_bounded); } \
	FAV_FUNCTION(name, contains_element(fcinfo, kind, filter_number, element_number, name##_first))

#define FAV_EDIT_FUNCTIONS(suffix, kind) \
	FAV_FUNCTION(fav_add_##suffix, edit_element(fcinfo, kind, fav_editor_add_many)); \
	FAV_FUNCTION(fav_del_##suffix, edit_element(fcinfo, kind, fav_editor_remove_many)); \
	FAV_FUNCTION(fav_exclude_##suffix, edit_element(fcinfo, kind, fav_editor_exclude_many))

#define FAV_EDIT_ARRAY_FUNCTIONS(suffix, kind) \
	FAV_FUNCTION(fav_add_##suffix##_array, edit_array(fcinfo, kind, fav_editor_add_many)); \
	FAV_FUNCTION(fav_del_##suffix##_array, edit_array(fcinfo, kind, fav_editor_remove_many)); \
	FAV_FUNCTION(fav_exclude_##suffix##_array, edit_array(fcinfo, kind, fav_editor_exclude_many))

/* prefix: fav, or fav_cache for bounded sets */
#define FAV_PROBE_FUNCTIONS(prefix, suffix, kind, is_bounded) \
	FAV_CONTAINS_FUNCTION(prefix##_contains_##suffix, kind, 0, 1, is_bounded); \
	FAV_CONTAINS_FUNCTION(prefix##_contained_##suffix, kind, 1, 0, is_bounded); \
	FAV_FUNCTION(prefix##_contains_any_##suffix, contains_array(fcinfo, kind, true, is_bounded)); \
	FAV_FUNCTION(prefix##_contains_all_##suffix, contains_array(fcinfo, kind, false, is_bounded)); \
	FAV_FUNCTION(prefix##_filter_##suffix, filter_array(fcinfo, kind, is_bounded))

#define FAV_KIND_FUNCTIONS(suffix, kind) \
	FAV_EDIT_FUNCTIONS(suffix, kind); \
	FAV_EDIT_ARRAY_FUNCTIONS(suffix, kind); \
	FAV_PROBE_FUNCTIONS(fav, suffix, kind, false); \
	FAV_PROBE_FUNCTIONS(fav_cache, suffix, kind, true)

FAV_KIND_FUNCTIONS(int8, FAV_KIND_INTEGER);
FAV_KIND_FUNCTIONS(text, FAV_KIND_TEXT);
FAV_KIND_FUNCTIONS(uuid, FAV_KIND_UUID);
FAV_KIND_FUNCTIONS(bytea, FAV_KIND_BYTES);
FAV_EDIT_FUNCTIONS(pair, FAV_KIND_PAIR);
FAV_CONTAINS_FUNCTION(fav_contains_pair, FAV_KIND_PAIR, 0, 1, false);
FAV_CONTAINS_FUNCTION(fav_cache_contains_pair, FAV_KIND_PAIR, 0, 1, true);
