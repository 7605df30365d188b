/*
 * harness.c
 *		See harness.h.
 */
#include <stdarg.h>

#include "harness.h"

static char current[200];
static unsigned failures;
static unsigned passed;
static unsigned failed;

/* The header of an allocation.  Its size keeps the memory after it aligned. */
typedef struct Allocation
{
	_Alignas(max_align_t) size_t size;
	struct Allocation *before;
	struct Allocation *after;
} Allocation;

static Allocation *newest;

void		(*on_pause) (void);

static unsigned fail_in;
static size_t allocated;
static size_t limit;
static size_t largest;

void
test_begin(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(current, sizeof(current), format, args);
	va_end(args);
	failures = 0;
}

void
test_end(void)
{
	printf("%s  %s\n", failures == 0 ? "ok    " : "FAILED", current);
	fflush(stdout);
	if (failures == 0)
		passed++;
	else
		failed++;
}

void
test_fail(const char *file, int line, const char *format,...)
{
	va_list		args;

	if (failures++ >= 10)
		return;
	printf("%s:%d: %s: ", file, line, current);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

int
test_summary(const char *program)
{
	printf("%s: %u passed, %u failed\n", program, passed, failed);
	return failed == 0 && passed > 0 ? 0 : 1;
}

void
fail_allocation(unsigned n)
{
	fail_in = n;
}

size_t
allocated_bytes(void)
{
	return allocated;
}

size_t
allocated_size(const void *memory)
{
	return ((const Allocation *) memory - 1)->size;
}

void
limit_allocation(size_t size)
{
	limit = size;
}

size_t
largest_allocation(void)
{
	size_t		result = largest;

	largest = 0;
	return result;
}

void *
fav_alloc(size_t size)
{
	Allocation *allocation;

	if (size > largest)
		largest = size;
	if (limit > 0 && size > limit)
		return NULL;
	if (fail_in > 0 && --fail_in == 0)
	{
		fail_in = 1;
		return NULL;
	}
	allocation = malloc(sizeof(Allocation) + size);
	if (allocation == NULL)
		return NULL;
	*allocation = (Allocation) {.size = size, .before = newest};
	if (newest != NULL)
		newest->after = allocation;
	newest = allocation;
	allocated += size;
	return allocation + 1;
}

void
fav_free(void *memory)
{
	Allocation *allocation = (Allocation *) memory - 1;

	allocated -= allocation->size;
	if (allocation->before != NULL)
		allocation->before->after = allocation->after;
	if (allocation->after != NULL)
		allocation->after->before = allocation->before;
	else
		newest = allocation->before;
	free(allocation);
}

void
free_allocations(void)
{
	while (newest != NULL)
		fav_free(newest + 1);
}

void
fav_pause(void)
{
	if (on_pause != NULL)
		on_pause();
}

void
value_from_editor(Value *value, FavEditor *editor)
{
	const FavFilter *result;
	FavProblem	problem = {""};

	CHECK(fav_editor_finish(editor, &result) == FAV_OK);
	value->size = fav_size(result);
	value->bytes = malloc(value->size);
	fav_write(result, value->bytes);
	CHECK_THAT(fav_open(&value->filter, value->bytes, value->size, value->size, &problem) == FAV_OK &&
			   fav_check(&value->filter, &problem) == FAV_OK, "%s", problem.detail);

	/* an empty value has no kind yet */
	if (value->filter.params.kind == FAV_KIND_NONE)
		value->filter.params.kind = FAV_KIND_INTEGER;
}

void
value_free(Value *value)
{
	free(value->bytes);
	value->bytes = NULL;
}

/* Membership of levels that are all in memory; the server fetches some from TOAST. */

static bool
contains(const FavFilter *filter, uint64_t hash)
{
	return filter != NULL && fav_contains(filter, hash);
}

static bool
excludes(const FavFilter *filter, uint64_t hash)
{
	return filter != NULL && fav_has_tombstone(filter, hash);
}

static bool
is_below_recent(const FavLevels *levels, uint64_t hash)
{
	return FAV_IS_BELOW_RECENT(contains(levels->middle, hash), contains(levels->base, hash),
							   excludes(levels->middle, hash));
}

bool
levels_contain(const FavLevels *levels, uint64_t hash)
{
	return FAV_IS_IN_LEVELS(contains(levels->recent, hash), is_below_recent(levels, hash),
							excludes(levels->recent, hash));
}
