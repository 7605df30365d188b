/*
 * io.c
 *		Input and output of fav and fav_cache as text, binary and bytea.
 *
 * Binary and bytea are the bytes of the value (docs/internals/FORMAT.md).  Text is \x and these
 * bytes in hexadecimal, as in bytea.
 */
#include "fav.h"

#include "cache/bounded.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* The number of bytes that are converted between two checks for interrupts. */
#define INTERRUPT_EVERY_BYTES	(1024 * 1024)

PG_FUNCTION_INFO_V1(fav_in);
PG_FUNCTION_INFO_V1(fav_out);
PG_FUNCTION_INFO_V1(fav_recv);
PG_FUNCTION_INFO_V1(fav_send);
PG_FUNCTION_INFO_V1(fav_from_bytea);
PG_FUNCTION_INFO_V1(fav_to_bytea);
PG_FUNCTION_INFO_V1(fav_cache_in);
PG_FUNCTION_INFO_V1(fav_cache_recv);
PG_FUNCTION_INFO_V1(fav_cache_from_bytea);

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

static bool
is_too_large(size_t size, FavProblem *problem)
{
	if (size <= FAV_MAX_SIZE)
		return false;
	snprintf(problem->detail, sizeof(problem->detail),
			 "It has %zu bytes, but the limit is %u.", size, (unsigned) FAV_MAX_SIZE);
	return true;
}

static Datum
datum_from_bytes(const ValueType *type, const uint8_t *bytes, size_t size)
{
	struct varlena *result;
	FavProblem	problem;

	if (is_too_large(size, &problem))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("%s value is too large", type->name),
				 errdetail_internal("%s", problem.detail),
				 errhint(FAV_SPREAD_HINT)));
	if (!type->is_value(bytes, size, &problem))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid binary representation of a %s value", type->name),
				 errdetail_internal("%s", problem.detail)));
	result = palloc(VARHDRSZ + size);
	SET_VARSIZE(result, VARHDRSZ + size);
	fav_copy((uint8_t *) VARDATA(result), bytes, size);
	return PointerGetDatum(result);
}

static inline int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static Datum
datum_from_text(FunctionCallInfo fcinfo, const ValueType *type)
{
	const char *text = PG_GETARG_CSTRING(0);
	size_t		length = strlen(text);
	size_t		size;
	size_t		i;
	struct varlena *result;
	uint8_t    *bytes;
	FavProblem	problem;

	if (length < 2 || text[0] != '\\' || text[1] != 'x')
		fav_input_error(fcinfo,
						(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
						 errmsg("invalid input syntax for type %s", type->name),
						 errdetail("A %s value is \"\\x\" followed by hexadecimal digits.",
								   type->name),
						 errhint("%s", type->hint)));
	if (length % 2 != 0)
		fav_input_error(fcinfo,
						(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
						 errmsg("invalid input syntax for type %s", type->name),
						 errdetail("The number of hexadecimal digits must be even.")));

	size = (length - 2) / 2;
	if (is_too_large(size, &problem))
		fav_input_error(fcinfo,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("%s value is too large", type->name),
						 errdetail_internal("%s", problem.detail),
						 errhint(FAV_SPREAD_HINT)));
	result = palloc(VARHDRSZ + size);
	SET_VARSIZE(result, VARHDRSZ + size);
	bytes = (uint8_t *) VARDATA(result);
	for (i = 0; i < size; i++)
	{
		int			high = hex_digit(text[2 + 2 * i]);
		int			low = hex_digit(text[3 + 2 * i]);

		if (i % INTERRUPT_EVERY_BYTES == 0)
			CHECK_FOR_INTERRUPTS();
		if (high < 0 || low < 0)
			fav_input_error(fcinfo,
							(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
							 errmsg("invalid input syntax for type %s", type->name),
							 errdetail("Character %llu is not a hexadecimal digit.",
									   (unsigned long long) (high < 0 ? 3 : 4) + 2 * i)));
		bytes[i] = (uint8_t) (high << 4 | low);
	}
	if (!type->is_value(bytes, size, &problem))
		fav_input_error(fcinfo,
						(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
						 errmsg("invalid input syntax for type %s", type->name),
						 errdetail_internal("%s", problem.detail)));
	PG_RETURN_POINTER(result);
}

static Datum
datum_from_message(StringInfo message, const ValueType *type)
{
	int			size = message->len - message->cursor;

	return datum_from_bytes(type, (const uint8_t *) pq_getmsgbytes(message, size), size);
}

static Datum
datum_from_bytea(Datum value, const ValueType *type)
{
	struct varlena *bytes = PG_DETOAST_DATUM_PACKED(value);

	return datum_from_bytes(type, (const uint8_t *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}

Datum
fav_in(PG_FUNCTION_ARGS)
{
	return datum_from_text(fcinfo, &filter_type);
}

Datum
fav_cache_in(PG_FUNCTION_ARGS)
{
	return datum_from_text(fcinfo, &cache_type);
}

Datum
fav_out(PG_FUNCTION_ARGS)
{
	static const char digits[] = "0123456789abcdef";
	struct varlena *value = PG_GETARG_VARLENA_PP(0);
	const uint8_t *bytes = (uint8_t *) VARDATA_ANY(value);
	size_t		size = VARSIZE_ANY_EXHDR(value);
	char	   *text;
	size_t		i;

	text = palloc(2 * size + 3);
	text[0] = '\\';
	text[1] = 'x';
	for (i = 0; i < size; i++)
	{
		if (i % INTERRUPT_EVERY_BYTES == 0)
			CHECK_FOR_INTERRUPTS();
		text[2 + 2 * i] = digits[bytes[i] >> 4];
		text[3 + 2 * i] = digits[bytes[i] & 15];
	}
	text[2 + 2 * size] = '\0';
	PG_RETURN_CSTRING(text);
}

Datum
fav_recv(PG_FUNCTION_ARGS)
{
	return datum_from_message((StringInfo) PG_GETARG_POINTER(0), &filter_type);
}

Datum
fav_cache_recv(PG_FUNCTION_ARGS)
{
	return datum_from_message((StringInfo) PG_GETARG_POINTER(0), &cache_type);
}

Datum
fav_send(PG_FUNCTION_ARGS)
{
	struct varlena *value = PG_GETARG_VARLENA_PP(0);
	StringInfoData message;

	pq_begintypsend(&message);
	pq_sendbytes(&message, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
	PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

Datum
fav_from_bytea(PG_FUNCTION_ARGS)
{
	return datum_from_bytea(PG_GETARG_DATUM(0), &filter_type);
}

Datum
fav_cache_from_bytea(PG_FUNCTION_ARGS)
{
	return datum_from_bytea(PG_GETARG_DATUM(0), &cache_type);
}

/* A flat fav value has the same representation as a bytea. */
Datum
fav_to_bytea(PG_FUNCTION_ARGS)
{
	if (VARATT_IS_EXTERNAL_EXPANDED(PG_GETARG_POINTER(0)))
		PG_RETURN_BYTEA_P(PG_DETOAST_DATUM(PG_GETARG_DATUM(0)));
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}
