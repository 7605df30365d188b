/*
 * elements.c
 *		Elements of another kind than the filter, and elements of arrays.
 *
 * Many drivers send parameters without a type, which PostgreSQL resolves to text.  So text is
 * converted to the kind of the filter.  Text that cannot be converted is an error, and so is
 * an element of any other kind.  A mismatch never means "absent".
 *
 * An array without a type becomes one text, too.  Converting it fails for a filter of numbers
 * or uuids.  A filter of text, or one without a kind yet, would accept it as one meaningless
 * element, so refuse_array_as_text() raises an error.
 */
#include "type/elements.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

const char *
fav_kind_name(FavKind kind)
{
	static const char *const names[] = {NULL, "bigint", "text", "uuid", "bytea", "pair"};

	return kind < lengthof(names) ? names[kind] : NULL;
}

/* A filter may have become one of text by accident.  The hint explains how. */
static int
hint_other_kind(FavKind filter_kind)
{
	if (filter_kind == FAV_KIND_PAIR)
		return errhint("Give both numbers of the pair.");
	if (filter_kind == FAV_KIND_TEXT)
		return errhint("Cast the element to text. If the filter should not hold text, rebuild it "
					   "and cast its first element: a parameter without a type is text.");
	return errhint("Cast the element to %s.", fav_kind_name(filter_kind));
}

void
fav_raise_other_kind(FavKind filter_kind, FavKind kind)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("filter has elements of kind %s, not %s",
					fav_kind_name(filter_kind), fav_kind_name(kind)),
			 hint_other_kind(filter_kind)));
	pg_unreachable();
}

uint64_t
fav_hash_other_kind(const FavParams *params, FavKind kind, Datum element)
{
	FavKind		wanted = params->kind;

	if (kind != FAV_KIND_TEXT || (wanted != FAV_KIND_INTEGER && wanted != FAV_KIND_UUID))
		fav_raise_other_kind(wanted, kind);
	element = DirectFunctionCall1(wanted == FAV_KIND_INTEGER ? int8in : uuid_in,
								  CStringGetDatum(TextDatumGetCString(element)));
	return fav_hash_datum(wanted, element, params->seed);
}

/*
 * Raise an error if text that becomes an element could be an array without a type.  Only a
 * literal, a parameter or a variable can have been sent without a type.  A column or the result
 * of a function has type text on purpose.
 */
static void
refuse_array_as_text(FunctionCallInfo fcinfo, const FavParams *params)
{
	text	   *element;
	const char *bytes;
	int			size;

	if ((params->kind != FAV_KIND_TEXT && params->kind != FAV_KIND_NONE) ||
		!get_fn_expr_arg_stable(fcinfo->flinfo, 1))
		return;
	element = PG_GETARG_TEXT_PP(1);
	bytes = VARDATA_ANY(element);
	size = VARSIZE_ANY_EXHDR(element);
	if (size >= 2 && bytes[0] == '{' && bytes[size - 1] == '}')
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("text in braces could be an array without a type"),
				 errhint("Cast an array to its type, for example $1::bigint[]. If the text itself "
						 "is the element, write ARRAY[$1].")));
}

uint64_t *
fav_hash_elements(FunctionCallInfo fcinfo, FavKind kind, const FavElements *elements,
				  const FavParams *params)
{
	uint64_t   *hashes = MemoryContextAllocHuge(CurrentMemoryContext,
												(Size) elements->count * sizeof(uint64_t));
	int			i;

	if (elements->array == NULL)
	{
		if (kind == FAV_KIND_TEXT)
			refuse_array_as_text(fcinfo, params);
		hashes[0] = fav_hash_argument(fcinfo, kind, 1, params);
		return hashes;
	}
	for (i = 0; i < elements->count; i++)
	{
		if (i % FAV_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		hashes[i] = fav_hash_for(params, kind, elements->values[i]);
	}
	return hashes;
}

/*
 * Integers of an array without NULLs are Datums already.  Deconstructing such an array costs
 * more than probing its elements.
 */
void
fav_get_elements(FunctionCallInfo fcinfo, bool is_array, FavElements *elements)
{
	ArrayType  *array = is_array ? PG_GETARG_ARRAYTYPE_P(1) : NULL;
	bool	   *nulls;
	int			count;
	int			i;

	elements->array = array;
	elements->count = 1;
	if (!is_array)
		return;
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
