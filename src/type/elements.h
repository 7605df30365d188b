/*
 * elements.h
 *		From SQL elements to hashes.  Only this module knows how PostgreSQL stores an
 *		element of each type.
 */
#ifndef FAV_ELEMENTS_H
#define FAV_ELEMENTS_H

#include "fav.h"

#include "core/hash.h"
#include "utils/array.h"
#include "utils/uuid.h"

static pg_attribute_always_inline uint64_t
fav_hash_datum(FavKind kind, Datum element, uint64_t seed)
{
	if (kind == FAV_KIND_INTEGER)
		return fav_hash_integer(DatumGetInt64(element), seed);
	else if (kind == FAV_KIND_UUID)
		return fav_hash_bytes(FAV_KIND_UUID, DatumGetUUIDP(element)->data, UUID_LEN, seed);
	else
	{
		struct varlena *bytes = PG_DETOAST_DATUM_PACKED(element);
		uint64_t	hash = fav_hash_bytes(kind, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), seed);

		if ((Pointer) bytes != DatumGetPointer(element))
			pfree(bytes);
		return hash;
	}
}

/* The name of a kind, which is also the type to cast an element to; NULL for no kind. */
extern const char *fav_kind_name(FavKind kind);

/* Raise the error that an element has another kind than the filter. */
pg_noreturn extern void fav_raise_other_kind(FavKind filter_kind, FavKind kind);

/*
 * The hash of an element whose kind differs from that of the filter.  Text is converted to the
 * kind of the filter, as in id = '42'.  Any other kind is an error.
 */
extern uint64_t fav_hash_other_kind(const FavParams *params, FavKind kind, Datum element);

/* The hash of an element for a filter with these parameters. */
static pg_attribute_always_inline uint64_t
fav_hash_for(const FavParams *params, FavKind kind, Datum element)
{
	if (unlikely(params->kind != kind && params->kind != FAV_KIND_NONE))
		return fav_hash_other_kind(params, kind, element);
	return fav_hash_datum(kind, element, params->seed);
}

/* An element begins with argument `number`.  A pair has two arguments. */
static inline bool
fav_element_is_null(FunctionCallInfo fcinfo, FavKind kind, int number)
{
	return PG_ARGISNULL(number) || (kind == FAV_KIND_PAIR && PG_ARGISNULL(number + 1));
}

static inline uint64_t
fav_hash_argument(FunctionCallInfo fcinfo, FavKind kind, int number, const FavParams *params)
{
	if (kind != FAV_KIND_PAIR)
		return fav_hash_for(params, kind, PG_GETARG_DATUM(number));
	if (unlikely(params->kind != kind && params->kind != FAV_KIND_NONE))
		fav_raise_other_kind(params->kind, kind);
	return fav_hash_pair(PG_GETARG_INT64(number), PG_GETARG_INT64(number + 1), params->seed);
}

/* The elements of an array that are not NULL; without an array, one element. */
typedef struct FavElements
{
	ArrayType  *array;			/* NULL: none, and no values */
	Datum	   *values;
	int			count;
	bool		is_plain;		/* the values are those in the array: not to be changed */
	int16		typlen;
	bool		typbyval;
	char		typalign;
} FavElements;

/* Get those of argument 1: of an array, or an element. */
extern void fav_get_elements(FunctionCallInfo fcinfo, bool is_array, FavElements *elements);

/* Hash them all, for a filter that is about to change. */
extern uint64_t *fav_hash_elements(FunctionCallInfo fcinfo, FavKind kind,
								   const FavElements *elements, const FavParams *params);

#endif							/* FAV_ELEMENTS_H */
