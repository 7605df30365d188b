/*
 * edit.c
 *		fav_new, fav_add, fav_del, fav_exclude, fav_add_at, fav_expire and fav_union.
 *
 * Each operation is written once for all kinds of elements.  The macros at the end of the file
 * define the functions that SQL calls.
 */
#include "type/edit.h"

#include "core/dated.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "type/elements.h"
#include "type/expanded.h"

PG_FUNCTION_INFO_V1(fav_new);

Datum
fav_new(PG_FUNCTION_ARGS)
{
	FavParams	params = fav_default_params();
	FavEditor	editor;
	int32		region_size;
	int			i;

	for (i = 0; i < 4; i++)
		if (PG_ARGISNULL(i))
			PG_RETURN_NULL();
	params.capacity = fav_get_capacity(fcinfo, 0);
	region_size = PG_GETARG_INT32(2);
	if (region_size < 1 || region_size > FAV_MAX_REGION_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("region_size %d is out of range", region_size),
				 errdetail("The region size must be between 1 and %d.", FAV_MAX_REGION_SIZE)));
	params.error_rate = PG_GETARG_FLOAT8(1);
	params.region_size = (uint16_t) region_size;
	params.seed = (uint64_t) PG_GETARG_INT64(3);
	if (!PG_ARGISNULL(4))
	{
		if (PG_GETARG_INT32(4) < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("keep %d is out of range", PG_GETARG_INT32(4)),
					 errdetail("A filter keeps elements for at least one period.")));
		params.keep = (uint32_t) PG_GETARG_INT32(4);
	}
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
	struct varlena *value;		/* that the editor was opened on, or NULL */
	int32		period;			/* for functions that have one */
} Edit;

/* The changes, as FavEdit. */
static FavStatus
add_elements(FavEditor *editor, const uint64_t *hashes, size_t count, int32_t period)
{
	(void) period;
	return fav_editor_add_many(editor, hashes, count);
}

static FavStatus
remove_elements(FavEditor *editor, const uint64_t *hashes, size_t count, int32_t period)
{
	(void) period;
	return fav_editor_remove_many(editor, hashes, count);
}

static FavStatus
exclude_elements(FavEditor *editor, const uint64_t *hashes, size_t count, int32_t period)
{
	(void) period;
	return fav_editor_exclude_many(editor, hashes, count);
}

/* No elements; the hash only makes it a change. */
static FavStatus
expire_elements(FavEditor *editor, const uint64_t *hashes, size_t count, int32_t period)
{
	(void) hashes;
	(void) count;
	return fav_editor_expire(editor, period);
}

/* Is argument 0 a variable?  Some query parameters look the same, which does no harm. */
static bool
is_variable(FunctionCallInfo fcinfo)
{
	List	   *arguments = fcinfo->flinfo != NULL ?
		fav_arguments_of(fcinfo->flinfo->fn_expr) : NIL;

	return arguments != NIL && IsA(linitial(arguments), Param) &&
		linitial_node(Param, arguments)->paramkind == PARAM_EXTERN;
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
	if (is_own && fav_expanded_is_editable(object, count))
		edit->object = object;
	else if (FAV_HAS_IN_PLACE && (is_own || is_variable(fcinfo)))
	{
		edit->object = fav_expand(&fcinfo->args[0]);
		edit->is_new = true;
	}
	if (edit->object != NULL)
		return fav_expanded_params(edit->object, kind);

	edit->value = is_null ? NULL : PG_GETARG_VARLENA_PP(0);
	fav_begin_edit(&edit->editor, edit->value);
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
			fav_expanded_edit(edit->object, kind, function, hashes + from, now, edit->period);
		else
			fav_require(function(&edit->editor, hashes + from, now, edit->period));
	}
	if (edit->object == NULL && edit->editor.filter.params.kind == FAV_KIND_NONE)
		edit->editor.filter.params.kind = kind;
}

static Datum
end_edit(FunctionCallInfo fcinfo, Edit *edit)
{
	const FavFilter *filter;
	Datum		result = PG_GETARG_DATUM(0);

	if (edit->object != NULL)
		return fav_expanded_result(edit->object, edit->is_new ? &fcinfo->args[0] : NULL);
	if (PG_ARGISNULL(0))
		return fav_finish_edit(&edit->editor);
	fav_require(fav_editor_finish(&edit->editor, &filter));
	if (edit->editor.changed)
		result = fav_finish_edit(&edit->editor);
	else
		fav_editor_close(&edit->editor);
	PG_FREE_IF_COPY(edit->value, 0);
	return result;
}

/* Get the period of an edit from argument `number`.  `params` are those of the filter. */
static void
get_period(FunctionCallInfo fcinfo, int number, const FavParams *params, Edit *edit)
{
	if (params->keep == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filter is not dated"),
				 errdetail("It keeps its elements for ever and knows no periods."),
				 errhint("Make the filter with fav_new(keep => ...).")));
	fav_refuse_null(PG_ARGISNULL(number), "period");
	edit->period = PG_GETARG_INT32(number);
	if (edit->period == FAV_NO_PERIOD)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("period %d is out of range", edit->period),
				 errdetail("A period is between %d and %d.", FAV_NO_PERIOD + 1, PG_INT32_MAX)));
}

static Datum
edit(FunctionCallInfo fcinfo, FavKind kind, bool is_array, FavEdit function)
{
	Edit		edit;
	FavElements elements;
	const FavParams *params;
	uint64_t   *hashes;

	if (fav_element_is_null(fcinfo, kind, 1) || (PG_ARGISNULL(0) && function == remove_elements))
		return fav_return_argument(fcinfo, 0);
	fav_get_elements(fcinfo, is_array, &elements);
	params = begin_edit(fcinfo, kind, (size_t) elements.count, &edit);
	if (function == fav_editor_add_many_at)
		get_period(fcinfo, kind == FAV_KIND_PAIR ? 3 : 2, params, &edit);
	hashes = fav_hash_elements(fcinfo, kind, &elements, params);
	edit_hashes(&edit, kind, function, hashes, (size_t) elements.count);
	pfree(hashes);
	return end_edit(fcinfo, &edit);
}

PG_FUNCTION_INFO_V1(fav_expire);

Datum
fav_expire(PG_FUNCTION_ARGS)
{
	const uint64_t none = 0;
	Edit		edit;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	get_period(fcinfo, 1, begin_edit(fcinfo, FAV_KIND_NONE, 1, &edit), &edit);
	edit_hashes(&edit, FAV_KIND_NONE, expire_elements, &none, 1);
	return end_edit(fcinfo, &edit);
}

#define FAV_ELEMENT_FUNCTIONS(suffix, kind) \
	FAV_FUNCTION(fav_add_##suffix, edit(fcinfo, kind, false, add_elements)); \
	FAV_FUNCTION(fav_del_##suffix, edit(fcinfo, kind, false, remove_elements)); \
	FAV_FUNCTION(fav_exclude_##suffix, edit(fcinfo, kind, false, exclude_elements))

#define FAV_KIND_FUNCTIONS(suffix, kind) \
	FAV_ELEMENT_FUNCTIONS(suffix, kind); \
	FAV_FUNCTION(fav_add_##suffix##_array, edit(fcinfo, kind, true, add_elements)); \
	FAV_FUNCTION(fav_del_##suffix##_array, edit(fcinfo, kind, true, remove_elements)); \
	FAV_FUNCTION(fav_exclude_##suffix##_array, edit(fcinfo, kind, true, exclude_elements)); \
	FAV_FUNCTION(fav_add_at_##suffix, edit(fcinfo, kind, true, fav_editor_add_many_at))

FAV_KIND_FUNCTIONS(int8, FAV_KIND_INTEGER);
FAV_KIND_FUNCTIONS(text, FAV_KIND_TEXT);
FAV_KIND_FUNCTIONS(uuid, FAV_KIND_UUID);
FAV_KIND_FUNCTIONS(bytea, FAV_KIND_BYTES);
FAV_ELEMENT_FUNCTIONS(pair, FAV_KIND_PAIR);
FAV_FUNCTION(fav_add_at_pair, edit(fcinfo, FAV_KIND_PAIR, false, fav_editor_add_many_at));

/*
 * The union of two filters
 */

PG_FUNCTION_INFO_V1(fav_union);

void
fav_check_unitable(const FavParams *a, const FavParams *b)
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
				 errdetail("The region sizes are %d and %d.",
						   (int) a->region_size, (int) b->region_size)));
	if (a->keep != b->keep)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot unite filters that keep elements for different numbers of periods"),
				 errdetail("One keeps them for %u periods, the other for %u (0: for ever).",
						   a->keep, b->keep)));
	if (a->kind != b->kind && a->kind != FAV_KIND_NONE && b->kind != FAV_KIND_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("cannot unite filters with elements of different kinds"),
				 errdetail("The kinds are %s and %s.",
						   fav_kind_name(a->kind), fav_kind_name(b->kind))));
}

void
fav_unite(FavEditor *editor, const FavFilter *other)
{
	fav_check_unitable(&editor->filter.params, &other->params);
	fav_require(fav_editor_union(editor, other));
}

Datum
fav_union(PG_FUNCTION_ARGS)
{
	FavArgument a;
	FavArgument b;
	FavEditor	editor;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return fav_return_argument(fcinfo, PG_ARGISNULL(0) ? 1 : 0);
	fav_get_argument(fcinfo, 0, &a);
	fav_get_argument(fcinfo, 1, &b);
	if (a.filter.is_short || b.filter.is_short)
		return fav_return_argument(fcinfo, a.filter.is_short ? 1 : 0);
	fav_editor_open(&editor, &a.filter);
	fav_unite(&editor, &b.filter);
	return fav_finish_edit(&editor);
}
