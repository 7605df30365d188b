/*
 * union.c
 *		fav_union: the union of two filters.
 */
#include "type/union.h"

#include "type/elements.h"

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

	if (PG_ARGISNULL(0) && PG_ARGISNULL(1))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(PG_ARGISNULL(0) ? 1 : 0));
	fav_get_argument(fcinfo, 0, &a);
	fav_get_argument(fcinfo, 1, &b);
	if (a.filter.is_short || b.filter.is_short)
		PG_RETURN_DATUM(PG_GETARG_DATUM(a.filter.is_short ? 1 : 0));
	fav_editor_open(&editor, &a.filter);
	fav_unite(&editor, &b.filter);
	return fav_finish_edit(&editor);
}
