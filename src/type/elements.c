/*
 * elements.c
 *		Elements of another kind than those of the filter.
 *
 * Many drivers send parameters without a type, and PostgreSQL takes those for text.  So
 * text is read as what the filter holds.  Text that cannot be read, and an element of any
 * other type, is an error.  No mismatch is ever answered with "absent".
 */
#include "type/elements.h"

#include "utils/builtins.h"

const char *
fav_kind_name(FavKind kind)
{
	switch (kind)
	{
		case FAV_KIND_INTEGER:
			return "bigint";
		case FAV_KIND_TEXT:
			return "text";
		case FAV_KIND_UUID:
			return "uuid";
		case FAV_KIND_BYTES:
			return "bytea";
		case FAV_KIND_PAIR:
			return "pair";
		default:
			return NULL;
	}
}

/* A filter of text may have come about by accident, so say how. */
static int
hint_other_kind(FavKind filter_kind)
{
	if (filter_kind == FAV_KIND_PAIR)
		return errhint("Give both numbers of the pair.");
	if (filter_kind == FAV_KIND_TEXT)
		return errhint("Cast the element to text. If the filter should not hold text, build it "
					   "anew and cast its first element: a parameter without a type is text.");
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
