/*
 * io.c
 *		Input and output of fav and fav_cache as text, binary and bytea.
 *
 * Binary and bytea are the bytes of the value (docs/internals/FORMAT.md).  Text is \x and these
 * bytes in hexadecimal, as in bytea.
 */
#include "fav.h"

#include <ctype.h>

#include "cache/bounded.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"

/* The number of bytes that are converted between two checks for interrupts. */
#define INTERRUPT_EVERY_BYTES	(1024 * 1024)

PG_FUNCTION_INFO_V1(fav_out);

/* A type, and the check that every input function makes of bytes from outside. */
typedef struct ValueType
{
	const char *name;
	const char *hint;
	bool		(*is_value) (const uint8_t *bytes, size_t size, FavProblem *problem);
} ValueType;

static bool
is_filter(const uint8_t *bytes, size_t size, FavProblem *problem)
{
	FavFilter	filter;

	return fav_open(&filter, bytes, size, size, problem) == FAV_OK &&
		fav_check(&filter, problem) == FAV_OK;
}

static bool
is_bounded_set(const uint8_t *bytes, size_t size, FavProblem *problem)
{
	FavBounded	set;

	return fav_bounded_open(&set, bytes, size, size, problem) == FAV_OK &&
		fav_bounded_check(&set, problem) == FAV_OK;
}

static const ValueType filter_type = {
	"fav", "Use fav_new, fav_add or fav_agg to make a filter.", is_filter
};
static const ValueType cache_type = {
	"fav_cache", "Use fav_cache_new, fav_add or fav_cache_agg to make a cache.", is_bounded_set
};

/* Make a value of `size` bytes, which are at `source`, as hexadecimal digits if is_text. */
static Datum
make_value(FunctionCallInfo fcinfo, const ValueType *type, const char *source, size_t size,
		   bool is_text)
{
	struct varlena *result;
	uint8_t    *bytes;
	size_t		right;
	size_t		i;
	FavProblem	problem;

	if (size > FAV_MAX_SIZE)
		fav_input_error(fcinfo,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("%s value is too large", type->name),
						 errdetail("It has %zu bytes, but the limit is %u.",
								   size, (unsigned) FAV_MAX_SIZE),
						 errhint(FAV_SPREAD_HINT)));
	for (right = 0; is_text && isxdigit((unsigned char) source[right]); right++)
		if (right % INTERRUPT_EVERY_BYTES == 0)
			CHECK_FOR_INTERRUPTS();
	if (is_text && right < 2 * size)
		fav_input_error(fcinfo,
						(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
						 errmsg("invalid input syntax for type %s", type->name),
						 errdetail("Character %zu is not a hexadecimal digit.", right + 3)));
	result = fav_allocate_value(size);
	bytes = (uint8_t *) VARDATA(result);
	for (i = 0; i < size; i += INTERRUPT_EVERY_BYTES)
	{
		size_t		now = Min(size - i, INTERRUPT_EVERY_BYTES);

		CHECK_FOR_INTERRUPTS();
		if (is_text)
			hex_decode(source + 2 * i, 2 * now, (char *) bytes + i);
		else
			memcpy(bytes + i, source + i, now);
	}
	if (!type->is_value(bytes, size, &problem))
		fav_input_error(fcinfo,
						(errcode(is_text ? ERRCODE_INVALID_TEXT_REPRESENTATION :
								 ERRCODE_INVALID_BINARY_REPRESENTATION),
						 is_text ? errmsg("invalid input syntax for type %s", type->name) :
						 errmsg("invalid binary representation of a %s value", type->name),
						 errdetail_internal("%s", problem.detail)));
	PG_RETURN_POINTER(result);
}

static Datum
value_from_text(FunctionCallInfo fcinfo, const ValueType *type)
{
	const char *text = PG_GETARG_CSTRING(0);
	size_t		length = strlen(text);
	bool		has_prefix = length >= 2 && text[0] == '\\' && text[1] == 'x';

	if (!has_prefix || length % 2 != 0)
		fav_input_error(fcinfo,
						(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
						 errmsg("invalid input syntax for type %s", type->name),
						 has_prefix ? errdetail("The number of hexadecimal digits must be even.") :
						 errdetail("A %s value is \"\\x\" followed by hexadecimal digits.",
								   type->name),
						 has_prefix ? 0 : errhint("%s", type->hint)));
	return make_value(fcinfo, type, text + 2, length / 2 - 1, true);
}

static Datum
value_from_message(FunctionCallInfo fcinfo, const ValueType *type)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			size = message->len - message->cursor;

	return make_value(fcinfo, type, pq_getmsgbytes(message, size), size, false);
}

static Datum
value_from_bytea(FunctionCallInfo fcinfo, const ValueType *type)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);

	return make_value(fcinfo, type, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), false);
}

FAV_FUNCTION(fav_in, value_from_text(fcinfo, &filter_type));
FAV_FUNCTION(fav_recv, value_from_message(fcinfo, &filter_type));
FAV_FUNCTION(fav_from_bytea, value_from_bytea(fcinfo, &filter_type));
FAV_FUNCTION(fav_cache_in, value_from_text(fcinfo, &cache_type));
FAV_FUNCTION(fav_cache_recv, value_from_message(fcinfo, &cache_type));
FAV_FUNCTION(fav_cache_from_bytea, value_from_bytea(fcinfo, &cache_type));

Datum
fav_out(PG_FUNCTION_ARGS)
{
	struct varlena *value = PG_GETARG_VARLENA_PP(0);
	size_t		size = VARSIZE_ANY_EXHDR(value);
	char	   *text = palloc(2 * size + 3);
	size_t		i;

	text[0] = '\\';
	text[1] = 'x';
	for (i = 0; i < size; i += INTERRUPT_EVERY_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		hex_encode(VARDATA_ANY(value) + i, Min(size - i, INTERRUPT_EVERY_BYTES), text + 2 + 2 * i);
	}
	text[2 + 2 * size] = '\0';
	PG_RETURN_CSTRING(text);
}

/* A flat fav value has the same representation as a bytea. */
FAV_FUNCTION(fav_send, PointerGetDatum(PG_GETARG_BYTEA_P_COPY(0)));
FAV_FUNCTION(fav_to_bytea, VARATT_IS_EXTERNAL_EXPANDED(PG_GETARG_POINTER(0)) ?
			 PointerGetDatum(PG_GETARG_BYTEA_P(0)) : PG_GETARG_DATUM(0));
