/*
 * compare.c
 *		Equality and order of filters, by their bytes.
 *
 * Filters of the same elements may have different bytes, because these depend on the history
 * of a filter.  Equality exists for DISTINCT, IS DISTINCT FROM and the like.
 *
 * Large values are out of line, and filters of one history often have the same size.  So the
 * heads are compared first, which contain the counts of bits and elements.  Values are loaded
 * only if their heads are equal.
 */
#include "fav.h"

#include "common/hashfn.h"

/* Compare the first `count` bytes of both values, or all of them if `count` is -1. */
static int
compare_start(Datum a, Datum b, int count)
{
	struct varlena *a_bytes = PG_DETOAST_DATUM_SLICE(a, 0, count);
	struct varlena *b_bytes = PG_DETOAST_DATUM_SLICE(b, 0, count);
	int			result = memcmp(VARDATA_ANY(a_bytes), VARDATA_ANY(b_bytes),
								Min(VARSIZE_ANY_EXHDR(a_bytes), VARSIZE_ANY_EXHDR(b_bytes)));

	pfree(a_bytes);
	pfree(b_bytes);
	return result;
}

static bool
is_same_pointer(const struct varlena *a, const struct varlena *b)
{
	return VARATT_IS_EXTERNAL_ONDISK(a) && VARATT_IS_EXTERNAL_ONDISK(b) &&
		memcmp(VARDATA_EXTERNAL(a), VARDATA_EXTERNAL(b), sizeof(struct varatt_external)) == 0;
}

static int
compare(FunctionCallInfo fcinfo)
{
	Datum		a = PG_GETARG_DATUM(0);
	Datum		b = PG_GETARG_DATUM(1);
	Size		a_size = toast_raw_datum_size(a);
	Size		b_size = toast_raw_datum_size(b);
	int			result;

	if (is_same_pointer((struct varlena *) DatumGetPointer(a),
						(struct varlena *) DatumGetPointer(b)))
		return 0;
	result = compare_start(a, b, FAV_PLAIN_HEAD_SIZE);
	if (result == 0 && Min(a_size, b_size) > FAV_PLAIN_HEAD_SIZE)
		result = compare_start(a, b, -1);
	if (result == 0)
		result = (a_size > b_size) - (a_size < b_size);
	return result;
}

static bool
is_equal(FunctionCallInfo fcinfo)
{
	return toast_raw_datum_size(PG_GETARG_DATUM(0)) == toast_raw_datum_size(PG_GETARG_DATUM(1)) &&
		compare(fcinfo) == 0;
}

FAV_FUNCTION(fav_eq, BoolGetDatum(is_equal(fcinfo)));
FAV_FUNCTION(fav_ne, BoolGetDatum(!is_equal(fcinfo)));
FAV_FUNCTION(fav_lt, BoolGetDatum(compare(fcinfo) < 0));
FAV_FUNCTION(fav_le, BoolGetDatum(compare(fcinfo) <= 0));
FAV_FUNCTION(fav_ge, BoolGetDatum(compare(fcinfo) >= 0));
FAV_FUNCTION(fav_gt, BoolGetDatum(compare(fcinfo) > 0));
FAV_FUNCTION(fav_cmp, Int32GetDatum(compare(fcinfo)));

/* Hash only the head, which is cheap to load: equal values have equal heads. */
static uint64
hash_head(Datum value, uint64 seed)
{
	struct varlena *head = PG_DETOAST_DATUM_SLICE(value, 0, FAV_PLAIN_HEAD_SIZE);
	uint64		hash = hash_bytes_extended((const unsigned char *) VARDATA_ANY(head),
										   (int) VARSIZE_ANY_EXHDR(head), seed);

	pfree(head);
	return hash;
}

FAV_FUNCTION(fav_hash, Int32GetDatum((int32) hash_head(PG_GETARG_DATUM(0), 0)));
FAV_FUNCTION(fav_hash_extended,
			 Int64GetDatum((int64) hash_head(PG_GETARG_DATUM(0), (uint64) PG_GETARG_INT64(1))));
