/*
 * wasm.c
 *		libfav for WebAssembly: the functions that fav.js calls.
 *
 * An instance has one filter, so that the memory of a filter is that of its instance, and the
 * garbage collector releases it.  One buffer takes what travels in either direction.
 *
 * Functions return a status of libfav, negated, or a result that is not negative.
 */
#include <stdlib.h>

#include "libfav.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

/* What fav.js puts into the buffer for each element; a multiple of 8 bytes. */
typedef struct Record
{
	uint32_t	kind;
	uint32_t	size;			/* of the bytes that follow: text, uuid, bytes */
	int64_t		first;
	int64_t		second;
} Record;

static libfav *filter;
static libfav_error error;
static uint8_t *buffer;

/* Make the buffer this large.  Returns it, or NULL. */
uint8_t *
EXPORT(reserve) (size_t size)
{
	uint8_t    *larger = realloc(buffer, size);

	if (larger != NULL)
		buffer = larger;
	return larger;
}

const char *
EXPORT(message) (void)
{
	return error.message;
}

const char *
EXPORT(status_name) (int status)
{
	return libfav_status_name((libfav_status) status);
}

/* Because it is called here, not each exported function calls it. */
extern void __wasm_call_ctors(void);

/* The first call of an instance: an empty filter. */
int
EXPORT(begin) (void)
{
	__wasm_call_ctors();
	filter = libfav_new(NULL);
	return filter != NULL ? 0 : -LIBFAV_NO_MEMORY;
}

/* Open the bytes in the buffer. */
int
EXPORT(open) (size_t size)
{
	return -(int) libfav_open(filter, buffer, size, &error);
}

/* Probe for one number.  The caller checks that it is an integer. */
int
EXPORT(has_number) (double number)
{
	libfav_element element = libfav_integer((int64_t) number);
	bool		answer;
	libfav_status status = libfav_contains(filter, &element, 1, &answer, &error);

	return status == LIBFAV_OK ? answer : -(int) status;
}

int
EXPORT(has_bigint) (int64_t number)
{
	libfav_element element = libfav_integer(number);
	bool		answer;
	libfav_status status = libfav_contains(filter, &element, 1, &answer, &error);

	return status == LIBFAV_OK ? answer : -(int) status;
}

/* The elements in the buffer, which point into it; NULL if there is no memory. */
static libfav_element *
read_elements(size_t count)
{
	libfav_element *elements = calloc(count + 1, sizeof(libfav_element));
	const uint8_t *at = buffer;
	size_t		i;

	for (i = 0; i < count && elements != NULL; i++)
	{
		Record		record;

		memcpy(&record, at, sizeof(record));
		at += sizeof(record);
		elements[i].kind = (libfav_kind) record.kind;
		elements[i].first = record.first;
		elements[i].second = record.second;
		elements[i].bytes = at;
		elements[i].size = record.size;
		at += (record.size + 7) / 8 * 8;
	}
	return elements;
}

typedef libfav_status (*Change) (libfav *filter, const libfav_element *elements, size_t count,
								 libfav_error *error);

static int
change(Change function, size_t count)
{
	libfav_element *elements = read_elements(count);
	libfav_status status = LIBFAV_NO_MEMORY;

	if (elements != NULL)
		status = function(filter, elements, count, &error);
	free(elements);
	return -(int) status;
}

int
EXPORT(add) (size_t count)
{
	return change(libfav_add, count);
}

/* "delete" is what JavaScript calls it. */
int
EXPORT(remove_) (size_t count)
{
	return change(libfav_remove, count);
}

int
EXPORT(exclude) (size_t count)
{
	return change(libfav_exclude, count);
}

static libfav_params build_params;

static libfav_status
build_elements(libfav *target, const libfav_element *elements, size_t count, libfav_error *problem)
{
	return libfav_build(target, &build_params, elements, count, problem);
}

/* The parameters of the filter to be built, or of an empty one. */
void
EXPORT(set_params) (double capacity, double error_rate, double region_size, int64_t seed)
{
	build_params = libfav_defaults();
	build_params.capacity = (uint64_t) capacity;
	build_params.error_rate = error_rate;
	build_params.region_size = region_size <= 255 ? (uint32_t) region_size : 255;
	build_params.seed = seed;
}

int
EXPORT(build) (size_t count)
{
	return change(build_elements, count);
}

/* Probe for the element in the buffer. */
int
EXPORT(has) (void)
{
	bool		answer = false;
	libfav_element *elements = read_elements(1);
	libfav_status status = LIBFAV_NO_MEMORY;

	if (elements != NULL)
		status = libfav_contains(filter, elements, 1, &answer, &error);
	free(elements);
	return status == LIBFAV_OK ? answer : -(int) status;
}

double
EXPORT(count) (void)
{
	return (double) libfav_get_info(filter).count;
}

int
EXPORT(kind) (void)
{
	return (int) libfav_get_info(filter).kind;
}

static const void *written;

/* Write the filter.  Returns its size; written_at() is where it is. */
int
EXPORT(write) (void)
{
	size_t		size;
	libfav_status status = libfav_write(filter, &written, &size, &error);

	return status == LIBFAV_OK ? (int) size : -(int) status;
}

const void *
EXPORT(written_at) (void)
{
	return written;
}
