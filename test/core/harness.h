/*
 * harness.h
 *		Code that the core's tests share: counting, memory, random numbers, values as
 *		bytes.
 */
#ifndef FAV_TEST_HARNESS_H
#define FAV_TEST_HARNESS_H

#include <stdio.h>
#include <stdlib.h>

#include "editor.h"
#include "levels.h"
#include "sizing.h"

/* A test passes if no CHECK in it failed; failures are printed, ten at most. */
extern void test_begin(const char *format,...) __attribute__((format(printf, 1, 2)));
extern void test_end(void);
extern int	test_summary(const char *program);	/* "N passed, N failed"; exit status */
extern void test_fail(const char *file, int line, const char *format,...)
			__attribute__((format(printf, 3, 4)));

#define CHECK(condition) \
	((condition) ? (void) 0 : test_fail(__FILE__, __LINE__, "%s", #condition))
#define CHECK_THAT(condition, ...) \
	((condition) ? (void) 0 : test_fail(__FILE__, __LINE__, __VA_ARGS__))

/* Make the n-th next allocation (and all after it) fail; 0: none. */
extern void fail_allocation(unsigned n);
extern size_t allocated_bytes(void);	/* now */
extern size_t allocated_size(const void *memory);	/* the requested size */

/* Make allocations of more than this fail; 0: none. */
extern void limit_allocation(size_t size);
extern size_t largest_allocation(void); /* requested since the last call */

/* Called by fav_pause(), if set; may leave by a longjmp. */
extern void (*on_pause) (void);

/* Free all memory of fav_alloc() that is still allocated, as a server does after an error. */
extern void free_allocations(void);

/* splitmix64: a full period, any seed will do */
static inline uint64_t
next_random(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline uint64_t
random_below(uint64_t *state, uint64_t limit)
{
	return next_random(state) % limit;
}

/* A value as in SQL: bytes in an allocation of exactly their size. */
typedef struct Value
{
	uint8_t    *bytes;
	size_t		size;
	FavFilter	filter;			/* opened from the bytes */
} Value;

/* Write the editor's filter, then open and check the bytes. */
extern void value_from_editor(Value *value, FavEditor *editor);
extern void value_free(Value *value);

#define DEFAULT_PARAMS ((FavParams) {.capacity = 1000, .seed = 0, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7})

/* Is the hash in the levels? */
extern bool levels_contain(const FavLevels *levels, uint64_t hash);

#endif							/* FAV_TEST_HARNESS_H */
