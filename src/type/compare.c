/*
 * compare.c
 *		Equality and order of filters, by their bytes.
 *
 * Filters of the same elements may have different bytes, because these depend on the history
 * of a filter.  Equality exists for DISTINCT, IS DISTINCT FROM and the like.
 *
 * Large values are out of line.  Sizes and TOAST pointers are compared first, then the heads,
 * which contain the counts of bits and elements.  Values are loaded only if their heads are
 * equal.
 */
#include "fav.h"

#include "common/hashfn.h"

PG_FUNCTION_INFO_V1(fav_lt);
PG_FUNCTION_INFO_V1(fav_le);
PG_FUNCTION_INFO_V1(fav_eq);
PG_FUNCTION_INFO_V1(fav_ne);
PG_FUNCTION_INFO_V1(fav_ge);
PG_FUNCTION_INFO_V1(fav_gt);
PG_FUNCTION_INFO_V1(fav_cmp);
PG_FUNCTION_INFO_V1(fav_hash);
PG_FUNCTION_INFO_V1(fav_hash_extended);

/* Returns an argument.  Flattens an expanded one, and keeps the result for the next call. */
static inline struct varlena *
argument(FunctionCallInfo fcinfo, int number)
{
	if (VARATT_IS_EXTERNAL_EXPANDED(PG_GETARG_POINTER(number)))
		fcinfo->args[number].value = PointerGetDatum(PG_DETOAST_DATUM(PG_GETARG_DATUM(number)));
	return (struct varlena *) PG_GETARG_POINTER(number);
}

/* Returns at least the head of a value. */
static struct varlena *
load_head(struct varlena *value)
{
	if (VARATT_IS_EXTERNAL_ONDISK(value))
		return detoast_attr_slice(value, 0, FAV_PLAIN_HEAD_SIZE);
	return pg_detoast_datum_packed(value);
}

static bool
is_same_pointer(const struct varlena *a, const struct varlena *b)
{
	return VARATT_IS_EXTERNAL_ONDISK(a) && VARATT_IS_EXTERNAL_ONDISK(b) &&
		memcmp(VARDATA_EXTERNAL(a), VARDATA_EXTERNAL(b), sizeof(struct varatt_external)) == 0;
}

static void
release(struct varlena *loaded, const struct varlena *value)
{
	if (loaded != value)
		pfree(loaded);
}

/* Compare the bytes that both have. */
static int
compare_bytes(const struct varlena *a, const struct varlena *b)
{
	return memcmp(VARDATA_ANY(a), VARDATA_ANY(b), Min(VARSIZE_ANY_EXHDR(a), VARSIZE_ANY_EXHDR(b)));
}

static int
compare(FunctionCallInfo fcinfo)
{
	struct varlena *a = argument(fcinfo, 0);
	struct varlena *b = argument(fcinfo, 1);
	Size		a_size = toast_raw_datum_size(PointerGetDatum(a));
	Size		b_size = toast_raw_datum_size(PointerGetDatum(b));
	struct varlena *a_bytes;
	struct varlena *b_bytes;
	int			result;

	if (is_same_pointer(a, b))
		return 0;
	a_bytes = load_head(a);
	b_bytes = load_head(b);
	result = compare_bytes(a_bytes, b_bytes);
	release(a_bytes, a);
	release(b_bytes, b);
	if (result == 0 && Min(a_size, b_size) > FAV_PLAIN_HEAD_SIZE)
	{
		a_bytes = pg_detoast_datum_packed(a);
		b_bytes = pg_detoast_datum_packed(b);
		result = compare_bytes(a_bytes, b_bytes);
		release(a_bytes, a);
		release(b_bytes, b);
	}
	if (result == 0)
		result = (a_size > b_size) - (a_size < b_size);
	return result;
}

static bool
is_equal(FunctionCallInfo fcinfo)
{
	return toast_raw_datum_size(PointerGetDatum(argument(fcinfo, 0))) ==
		toast_raw_datum_size(PointerGetDatum(argument(fcinfo, 1))) && compare(fcinfo) == 0;
}

Datum
fav_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(is_equal(fcinfo));
}

Datum
fav_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!is_equal(fcinfo));
}

Datum
fav_lt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(fcinfo) < 0);
}

Datum
fav_le(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(fcinfo) <= 0);
}

Datum
fav_ge(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(fcinfo) >= 0);
}

Datum
fav_gt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(fcinfo) > 0);
}

Datum
fav_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(compare(fcinfo));
}

/* Hash only the head, which is cheap to load: equal values have equal heads. */
static uint64
hash_head(FunctionCallInfo fcinfo, uint64 seed)
{
	struct varlena *value = argument(fcinfo, 0);
	struct varlena *head = load_head(value);
	int			size = (int) Min(VARSIZE_ANY_EXHDR(head), FAV_PLAIN_HEAD_SIZE);
	uint64		hash = hash_bytes_extended((const unsigned char *) VARDATA_ANY(head), size, seed);

	release(head, value);
	return hash;
}

Datum
fav_hash(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) hash_head(fcinfo, 0));
}

Datum
fav_hash_extended(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) hash_head(fcinfo, (uint64) PG_GETARG_INT64(1)));
}
