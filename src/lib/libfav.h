/*
 * libfav.h
 *		The filters of the PostgreSQL extension fav, outside PostgreSQL.
 *
 * libfav reads and writes the bytes of filter::bytea and gives the same answers as the server.
 * docs/LIBFAV.md has an example.
 *
 * A filter belongs to its caller.  Any number of threads may read one filter (functions that take
 * a const pointer).  Changing it, writing it and uniting it with another must not overlap with any
 * other call for the same filter.
 *
 * Functions that can fail return a status.  If `error` is not NULL, it gets a message.
 */
#ifndef LIBFAV_H
#define LIBFAV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The major version is that of the format (docs/internals/FORMAT.md).  All older ones are read. */
#define LIBFAV_VERSION_MAJOR	1
#define LIBFAV_VERSION_MINOR	0
#define LIBFAV_VERSION_PATCH	0

#if defined(__GNUC__)
#define LIBFAV_API __attribute__((visibility("default")))
#else
#define LIBFAV_API
#endif

#ifdef __cplusplus
extern "C"
{
#endif

typedef struct libfav libfav;

typedef enum libfav_status
{
	LIBFAV_OK,
	LIBFAV_MALFORMED,			/* these bytes are not a filter */
	LIBFAV_NO_MEMORY,
	LIBFAV_TOO_LARGE,			/* a filter has at most 511 MB */
	LIBFAV_TOO_MANY_SLICES,		/* rebuild the filter from its elements */
	LIBFAV_MISMATCH,			/* these filters cannot be united */
	LIBFAV_UNDATED,				/* a filter that forgets and knows no period yet */
	LIBFAV_OTHER_KIND,			/* the filter holds elements of another kind */
	LIBFAV_BAD_ELEMENT,			/* text that is no integer or uuid; a uuid of the wrong size */
	LIBFAV_BAD_PARAMETER,
	LIBFAV_INTERRUPTED			/* the pause hook left by longjmp: only free the filter */
} libfav_status;

typedef struct libfav_error
{
	char		message[256];
} libfav_error;

/* The kind of the elements of a filter.  The first one decides. */
typedef enum libfav_kind
{
	LIBFAV_NONE,				/* the filter is empty */
	LIBFAV_INTEGER,
	LIBFAV_TEXT,
	LIBFAV_UUID,
	LIBFAV_BYTES,
	LIBFAV_PAIR
} libfav_kind;

/*
 * An element.  A filter of integers or uuids converts text, as id = '42' does in SQL; text that
 * cannot be converted is an error, and so is any other mismatch.
 */
typedef struct libfav_element
{
	libfav_kind kind;
	int64_t		first;			/* integer, pair */
	int64_t		second;			/* pair */
	const void *bytes;			/* text (in the encoding of the database), uuid, bytes */
	size_t		size;			/* in bytes; 16 for a uuid */
} libfav_element;

static inline libfav_element
libfav_pair(int64_t first, int64_t second)
{
	libfav_element element = {LIBFAV_PAIR, first, second, NULL, 0};

	return element;
}

static inline libfav_element
libfav_integer(int64_t value)
{
	libfav_element element = {LIBFAV_INTEGER, value, 0, NULL, 0};

	return element;
}

static inline libfav_element
libfav_bytes(const void *bytes, size_t size)
{
	libfav_element element = {LIBFAV_BYTES, 0, 0, bytes, size};

	return element;
}

static inline libfav_element
libfav_uuid(const void *bytes)
{
	libfav_element element = {LIBFAV_UUID, 0, 0, bytes, 16};

	return element;
}

static inline libfav_element
libfav_text(const char *text)
{
	libfav_element element = {LIBFAV_TEXT, 0, 0, text, strlen(text)};

	return element;
}

/* The parameters of fav_new().  Start from libfav_defaults(). */
typedef struct libfav_params
{
	uint64_t	capacity;
	double		error_rate;
	uint32_t	region_size;
	int64_t		seed;
	uint32_t	keep;			/* 0: for ever */
} libfav_params;

typedef struct libfav_info
{
	libfav_params params;
	libfav_kind kind;
	uint64_t	count;			/* exact up to 128 elements, then an estimate */
} libfav_info;

/*
 * Memory and pauses, for one filter.  A member that is NULL stands for malloc, free, no pause.
 *
 * `pause` is called every few milliseconds of a long call, by each thread that makes one; only
 * libfav_check(), which has no filter, calls none.  It may leave by a longjmp; a filter that was
 * being changed can then only be freed, which releases everything.
 */
typedef struct libfav_hooks
{
	void	   *(*alloc) (size_t size, void *context);
	void		(*free) (void *memory, void *context);
	void		(*pause) (void *context);
	void	   *context;
} libfav_hooks;

LIBFAV_API const char *libfav_version(void);	/* "1.0.0" */
LIBFAV_API const char *libfav_status_name(libfav_status status);	/* "MALFORMED" */

LIBFAV_API libfav_params libfav_defaults(void);

/* An empty filter with the default parameters; NULL if there is no memory.  hooks may be NULL. */
LIBFAV_API libfav *libfav_new(const libfav_hooks *hooks);
LIBFAV_API void libfav_free(libfav *filter);	/* may be NULL */

/*
 * The next three replace the filter.  If they fail, it is as it was.
 */

/* By an empty one with these parameters: fav_new(). */
LIBFAV_API libfav_status libfav_reset(libfav *filter, const libfav_params *params,
									  libfav_error *error);

/* By a copy of these bytes, which are checked completely: bytea::fav. */
LIBFAV_API libfav_status libfav_open(libfav *filter, const void *bytes, size_t size,
									 libfav_error *error);

/*
 * By one of exactly the right size for these elements: fav_agg().  A capacity of 0 is the number
 * of elements.
 */
LIBFAV_API libfav_status libfav_build(libfav *filter, const libfav_params *params,
									  const libfav_element *elements, size_t count,
									  libfav_error *error);

/* Are these bytes a filter? */
LIBFAV_API libfav_status libfav_check(const void *bytes, size_t size, libfav_error *error);

/* Which of these elements are in the filter? */
LIBFAV_API libfav_status libfav_contains(const libfav *filter, const libfav_element *elements,
										 size_t count, bool *answers, libfav_error *error);

/*
 * Changes: fav_add(), fav_del(), fav_exclude().  An element of the wrong kind fails the call before
 * anything is changed.  If memory or a limit fails it, the elements before are changed.
 *
 * Remove only what was added.  libfav_exclude() has no such contract.
 */
LIBFAV_API libfav_status libfav_add(libfav *filter, const libfav_element *elements, size_t count,
									libfav_error *error);
LIBFAV_API libfav_status libfav_remove(libfav *filter, const libfav_element *elements,
									   size_t count, libfav_error *error);
LIBFAV_API libfav_status libfav_exclude(libfav *filter, const libfav_element *elements,
										size_t count, libfav_error *error);

/* Add all that `other` holds: fav_union(). */
LIBFAV_API libfav_status libfav_union(libfav *filter, libfav *other, libfav_error *error);

LIBFAV_API libfav_info libfav_get_info(const libfav *filter);

/*
 * The bytes of the filter: filter::bytea.  *size is set to their number.  They belong to the filter
 * and are valid until it is changed, written again or freed.
 */
LIBFAV_API libfav_status libfav_write(libfav *filter, const void **bytes, size_t *size,
									  libfav_error *error);

#ifdef __cplusplus
}
#endif

#endif							/* LIBFAV_H */
