/*
 * mapping.c
 *		From a row of the source to the key of its filter, and to its hash.
 *
 *		a filter for each key		The key of the filter is the key, and its elements are the
 *									elements.
 *		n keys share a filter		The key of the filter is their group, key / n rounded down,
 *									and its elements are the pairs (key, element).
 *
 * Groups are in the order of their keys.  So rows that are sorted by key are sorted by
 * filter, and the rows of a filter are a range of the source's index.
 */
#include "attach.h"

PG_FUNCTION_INFO_V1(fav_group);

/* A value of an integer type. */
int64
fav_integer(Oid type, Datum value)
{
	if (type == INT2OID)
		return DatumGetInt16(value);
	if (type == INT4OID)
		return DatumGetInt32(value);
	return DatumGetInt64(value);
}

static int64
group_of(int64 key, int32 n)
{
	return key / n - (key % n < 0 ? 1 : 0);
}

/* fav_group(key, n): the group of a key where n keys share a filter. */
Datum
fav_group(PG_FUNCTION_ARGS)
{
	int32		n = PG_GETARG_INT32(1);

	if (n < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("n %d is out of range", n),
				 errdetail("n must be at least 1.")));
	PG_RETURN_INT64(group_of(PG_GETARG_INT64(0), n));
}

Datum
fav_filter_key(const FavAttachment *attachment, Datum key)
{
	if (attachment->share == 0)
		return key;
	return Int64GetDatum(group_of(fav_integer(attachment->key.type, key), attachment->share));
}

/*
 * The first and the last key of a filter, in the type of filter keys.  The lowest group
 * begins below the range of the type, and the highest ends above it.
 */
void
fav_filter_range(const FavAttachment *attachment, Datum filter_key, Datum *range)
{
	int32		n = attachment->share;
	int64		lowest;
	int64		highest;
	int64		group;

	range[0] = range[1] = filter_key;
	if (n == 0)
		return;
	lowest = group_of(PG_INT64_MIN, n);
	highest = group_of(PG_INT64_MAX, n);
	group = Max(lowest, Min(highest, DatumGetInt64(filter_key)));
	range[0] = Int64GetDatum(group == lowest ? PG_INT64_MIN : group * n);
	range[1] = Int64GetDatum(group == highest ? PG_INT64_MAX : (group + 1) * n - 1);
}

/* What the filters hold; FAV_KIND_NONE if the columns cannot be key and element of them. */
FavKind
fav_kind_of_row(const FavAttachment *attachment)
{
	FavKind		kind = fav_kind_of_column(&attachment->element);

	if (attachment->share == 0)
		return kind;
	return kind == FAV_KIND_INTEGER &&
		fav_kind_of_column(&attachment->key) == FAV_KIND_INTEGER ? FAV_KIND_PAIR : FAV_KIND_NONE;
}

uint64_t
fav_hash_row(const FavAttachment *attachment, Datum key, Datum element)
{
	Oid			type = attachment->element.type;

	if (attachment->share > 0)
		return fav_hash_pair(fav_integer(attachment->key.type, key), fav_integer(type, element),
							 attachment->params.seed);
	if (attachment->kind == FAV_KIND_INTEGER)
		return fav_hash_integer(fav_integer(type, element), attachment->params.seed);
	return fav_hash_datum(attachment->kind, element, attachment->params.seed);
}
