/*
 * test_lib.c
 *		What libfav.h promises beyond the answers of the server: memory, pauses, errors, threads,
 *		and bytes from anywhere.
 *
 * Usage: test_lib FILE...: the files are bytes from anywhere.
 */
#include <pthread.h>
#include <setjmp.h>

#include "check.h"

static size_t allocated;		/* by the hooks below, and not freed */
static int	allocations_left = -1;	/* then there is no memory; -1: always */
static int	pauses;
static int	pauses_left = -1;	/* then the hook leaves by a longjmp; -1: never */
static jmp_buf away;

static void *
counting_alloc(size_t size, void *context)
{
	if (allocations_left == 0)
		return NULL;
	if (allocations_left > 0)
		allocations_left--;
	allocated += context == &allocated;
	return malloc(size);
}

static void
counting_free(void *memory, void *context)
{
	allocated -= context == &allocated;
	free(memory);
}

static void
counting_pause(void *context)
{
	(void) context;
	pauses++;
	if (pauses_left > 0 && --pauses_left == 0)
		longjmp(away, 1);
}

static const libfav_hooks hooks = {counting_alloc, counting_free, counting_pause, &allocated};

/* The integers from `first` on. */
static libfav_element *
integers(int64_t first, size_t count)
{
	libfav_element *elements = malloc(count * sizeof(libfav_element));
	size_t		i;

	for (i = 0; i < count; i++)
		elements[i] = libfav_integer(first + (int64_t) i);
	return elements;
}

static size_t
count_reported(const libfav *filter, int64_t first, size_t count)
{
	libfav_element *elements = integers(first, count);
	bool	   *answers = malloc(count);
	size_t		reported = 0;
	size_t		i;

	if (libfav_contains(filter, elements, count, answers, NULL) == LIBFAV_OK)
		for (i = 0; i < count; i++)
			reported += answers[i];
	free(elements);
	free(answers);
	return reported;
}

static void
test_names(void)
{
	char		version[32];

	snprintf(version, sizeof(version), "%d.%d.%d", LIBFAV_VERSION_MAJOR, LIBFAV_VERSION_MINOR,
			 LIBFAV_VERSION_PATCH);
	TEST(strcmp(libfav_version(), version) == 0, "version %s", libfav_version());
	TEST(strcmp(libfav_status_name(LIBFAV_OK), "OK") == 0, "name of the first status");
	TEST(strcmp(libfav_status_name(LIBFAV_INTERRUPTED), "INTERRUPTED") == 0, "of the last one");
	TEST(strcmp(libfav_status_name((libfav_status) 99), "UNKNOWN") == 0, "of another one");
}

/* All memory comes from the hooks and goes back to them, wherever there is no more. */
static void
test_memory(void)
{
	libfav_element *elements = integers(1, 1000);
	libfav_params params = libfav_defaults();
	unsigned	refused = 0;
	int			n;

	params.capacity = 0;
	for (n = 0; n < 60; n++)
	{
		libfav	   *filter;
		libfav_status status = LIBFAV_NO_MEMORY;
		const void *bytes;
		size_t		size;

		allocations_left = n;
		filter = libfav_new(&hooks);
		if (filter != NULL)
			status = libfav_add(filter, elements, 500, NULL);
		if (status == LIBFAV_OK)
			status = libfav_remove(filter, elements, 400, NULL);
		if (status == LIBFAV_OK)
			status = libfav_write(filter, &bytes, &size, NULL);
		if (status == LIBFAV_OK)
			status = libfav_open(filter, bytes, size, NULL);
		if (status == LIBFAV_OK)
			status = libfav_build(filter, &params, elements, 1000, NULL);
		refused += status == LIBFAV_NO_MEMORY;
		allocations_left = -1;
		if (status == LIBFAV_OK)
			TEST(count_reported(filter, 1, 1000) == 1000, "all elements");
		else if (status != LIBFAV_NO_MEMORY)
			TEST(false, "status %s", libfav_status_name(status));
		else if (filter != NULL)
			TEST(libfav_add(filter, elements, 1000, NULL) == LIBFAV_OK &&
				 count_reported(filter, 1, 1000) == 1000, "it works when there is memory again");
		libfav_free(filter);
		TEST(allocated == 0, "%zu blocks are left", allocated);
	}
	TEST(refused > 5 && refused < 60, "%u refused", refused);
	free(elements);
}

/* A pause may leave by a longjmp; then the filter can be freed. */
static void
test_pauses(void)
{
	size_t		count = 200000;
	libfav_element *elements = integers(1, count);
	libfav_params params = libfav_defaults();
	volatile unsigned left = 0;
	volatile int n;

	params.capacity = 0;
	for (n = 1; n < 200; n += 7)
	{
		libfav	   *volatile filter = libfav_new(&hooks);
		libfav	   *other = libfav_new(NULL);
		bool		answer;

		pauses_left = n;
		if (setjmp(away) == 0)
			libfav_build(filter, &params, elements, count, NULL);
		else
		{
			left++;
			TEST(libfav_add(filter, elements, 1, NULL) == LIBFAV_INTERRUPTED &&
				 libfav_contains(filter, elements, 1, &answer, NULL) == LIBFAV_INTERRUPTED,
				 "an interrupted filter is not used");
		}
		pauses_left = -1;
		TEST(libfav_add(other, elements, 300, NULL) == LIBFAV_OK, "another filter works");
		libfav_free(filter);
		libfav_free(other);
		TEST(allocated == 0, "%zu blocks are left", allocated);
	}
	TEST(left > 5 && pauses > 100, "left %u times, %d pauses", left, pauses);
	free(elements);
}

/* Every call for many elements pauses, also if it needs no memory. */
static void
test_pauses_of_each(void)
{
	size_t		count = 200000;
	libfav_element *elements = integers(1, count);
	bool	   *answers = malloc(count);
	libfav_params params = libfav_defaults();
	libfav	   *filter = libfav_new(&hooks);
	int			without;

	params.capacity = count;
	TEST(libfav_reset(filter, &params, NULL) == LIBFAV_OK &&
		 libfav_add(filter, elements, 1000, NULL) == LIBFAV_OK, "a filter with a slice");
	pauses = 0;
	TEST(libfav_contains(filter, elements, count, answers, NULL) == LIBFAV_OK && pauses >= 24,
		 "contains pauses %d times", pauses);
	/* as often for the hashes, before anything is changed */
	without = pauses;
	pauses = 0;
	TEST(libfav_add(filter, elements, count, NULL) == LIBFAV_OK && pauses >= without + 24,
		 "add pauses %d times", pauses);
	pauses = 0;
	TEST(libfav_remove(filter, elements, count, NULL) == LIBFAV_OK && pauses >= without + 24,
		 "remove pauses %d times", pauses);
	pauses = 0;
	if (setjmp(away) == 0)
	{
		pauses_left = 3;
		libfav_contains(filter, elements, count, answers, NULL);
	}
	pauses_left = -1;
	TEST(pauses == 3 && libfav_add(filter, elements, 1, NULL) == LIBFAV_OK,
		 "a probe that was left harms nothing");
	libfav_free(filter);
	TEST(allocated == 0, "%zu blocks are left", allocated);
	free(elements);
	free(answers);
}

static void
test_errors(void)
{
	libfav	   *filter = libfav_new(NULL);
	libfav	   *other = libfav_new(NULL);
	libfav_params params = libfav_defaults();
	libfav_element mixed[] = {libfav_integer(1), libfav_text("2"), libfav_text("three")};
	libfav_element none = {LIBFAV_NONE, 0, 0, NULL, 0};
	libfav_element empty = {LIBFAV_TEXT, 0, 0, NULL, 0};
	libfav_element uuid = libfav_uuid("0123456789abcdef");
	libfav_error error;
	bool		answers[3];

	TEST(libfav_add(filter, mixed, 3, &error) == LIBFAV_BAD_ELEMENT &&
		 strcmp(error.message, "invalid input syntax for type bigint: \"three\"") == 0, "%s",
		 error.message);
	TEST(libfav_get_info(filter).count == 0, "nothing was added");
	TEST(libfav_add(filter, &none, 1, &error) == LIBFAV_BAD_ELEMENT, "an element without a kind");
	TEST(libfav_add(filter, mixed, 2, NULL) == LIBFAV_OK &&
		 libfav_get_info(filter).count == 2 && libfav_get_info(filter).kind == LIBFAV_INTEGER,
		 "the first element decides");
	TEST(libfav_contains(filter, &uuid, 1, answers, &error) == LIBFAV_OTHER_KIND &&
		 strcmp(error.message, "filter has elements of kind bigint, not uuid") == 0, "%s",
		 error.message);
	TEST(libfav_contains(filter, &empty, 1, answers, NULL) == LIBFAV_BAD_ELEMENT, "no text");
	TEST(libfav_remove(filter, mixed, 2, NULL) == LIBFAV_OK &&
		 libfav_add(filter, &empty, 1, NULL) == LIBFAV_OK &&
		 libfav_get_info(filter).kind == LIBFAV_TEXT, "a filter that became empty has no kind");
	TEST(libfav_add(other, &uuid, 1, NULL) == LIBFAV_OK &&
		 libfav_union(filter, other, &error) == LIBFAV_MISMATCH &&
		 strcmp(error.message, "cannot unite filters of kinds text and uuid") == 0, "%s",
		 error.message);
	uuid.size = 15;
	TEST(libfav_add(other, &uuid, 1, NULL) == LIBFAV_BAD_ELEMENT, "a uuid of 15 bytes");
	TEST(libfav_union(filter, filter, NULL) == LIBFAV_OK && libfav_get_info(filter).count == 1,
		 "the union with itself");
	TEST(libfav_open(filter, "x", 1, &error) == LIBFAV_MALFORMED &&
		 libfav_get_info(filter).count == 1, "what cannot be opened changes nothing");
	TEST(libfav_check(NULL, 0, NULL) == LIBFAV_MALFORMED, "no bytes at all");

	params.region_size = 32;
	TEST(libfav_reset(filter, &params, NULL) == LIBFAV_BAD_PARAMETER, "region size");
	params.region_size = 7;
	params.error_rate = 0;
	TEST(libfav_reset(filter, &params, NULL) == LIBFAV_BAD_PARAMETER, "error rate");
	params.error_rate = 0.01;
	params.capacity = UINT64_MAX;
	TEST(libfav_reset(filter, &params, NULL) == LIBFAV_TOO_LARGE, "capacity");
	params.capacity = 0;
	TEST(libfav_reset(filter, &params, NULL) == LIBFAV_BAD_PARAMETER, "no capacity");
	params.keep = 7;
	TEST(libfav_build(filter, &params, mixed, 1, NULL) == LIBFAV_BAD_PARAMETER, "keep");
	params.capacity = 1;
	TEST(libfav_reset(filter, &params, NULL) == LIBFAV_OK &&
		 libfav_add(filter, mixed, 1, NULL) == LIBFAV_UNDATED, "no period yet");
	libfav_free(filter);
	libfav_free(other);
	libfav_free(NULL);
}

/* Many threads make filters, and read one. */
static void *
work(void *argument)
{
	const libfav *shared = argument;
	libfav_params params = libfav_defaults();
	libfav	   *own = libfav_new(NULL);
	libfav_element *elements = integers(1, 3000);
	size_t		found;
	int			i;

	for (i = 0; i < 20; i++)
	{
		params.capacity = (uint64_t) i * 100 + 1;
		params.error_rate = 0.001 * (i + 1);
		libfav_reset(own, &params, NULL);
		libfav_add(own, elements, 3000, NULL);
	}
	found = count_reported(own, 1, 3000) + count_reported(shared, 1, 1000);
	free(elements);
	libfav_free(own);
	return found == 4000 ? argument : NULL;
}

static void
test_threads(void)
{
	libfav	   *shared = libfav_new(NULL);
	libfav_element *elements = integers(1, 1000);
	pthread_t	threads[4];
	int			i;

	libfav_add(shared, elements, 1000, NULL);
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, shared);
	for (i = 0; i < 4; i++)
	{
		void	   *result = NULL;

		pthread_join(threads[i], &result);
		TEST(result != NULL, "thread %d", i);
	}
	free(elements);
	libfav_free(shared);
}

/* Whatever is accepted can be probed, changed and written. */
static bool
use(const uint8_t *bytes, size_t size)
{
	libfav	   *filter = libfav_new(NULL);
	libfav_element elements[3] = {libfav_integer(1), libfav_integer(2), libfav_integer(-1)};
	libfav_element text = libfav_text("x");
	libfav_element uuid = libfav_uuid("0123456789abcdef");
	libfav_element *one = elements;
	uint8_t    *copy = malloc(size > 0 ? size : 1);
	const void *written;
	bool		answers[3];
	bool		accepted;
	size_t		count = 1;

	if (size > 0)
		memcpy(copy, bytes, size);
	accepted = libfav_open(filter, copy, size, NULL) == LIBFAV_OK;
	TEST(accepted == (libfav_check(copy, size, NULL) == LIBFAV_OK), "check and open agree");
	free(copy);
	if (accepted)
	{
		libfav_kind kind = libfav_get_info(filter).kind;

		if (kind == LIBFAV_TEXT)
			one = &text;
		else if (kind == LIBFAV_UUID)
			one = &uuid;
		else if (kind == LIBFAV_BYTES)
			one->kind = LIBFAV_BYTES;
		else if (kind == LIBFAV_PAIR)
			one->kind = LIBFAV_PAIR;
		else
			count = 3;
		TEST(libfav_contains(filter, one, count, answers, NULL) == LIBFAV_OK, "contains");
		if (libfav_add(filter, one, count, NULL) == LIBFAV_OK)
			TEST(libfav_contains(filter, one, count, answers, NULL) == LIBFAV_OK && answers[0],
				 "what was added is there");
		libfav_remove(filter, one, count, NULL);
		libfav_exclude(filter, one, 1, NULL);
		TEST(libfav_contains(filter, one, 1, answers, NULL) == LIBFAV_OK && !answers[0],
			 "what was excluded is not");
		if (libfav_write(filter, &written, &size, NULL) == LIBFAV_OK)
			TEST(libfav_check(written, size, NULL) == LIBFAV_OK, "what is written is valid");
		(void) libfav_get_info(filter);
	}
	libfav_free(filter);
	return accepted;
}

/* splitmix64 */
static uint64_t
next_random(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* The file, and what becomes of it when some bits are flipped, mostly of the head. */
static void
test_hostile(const char *path)
{
	size_t		size;
	uint8_t    *bytes = read_file(path, &size);
	uint64_t	random = size;
	unsigned	passed_before = passed;
	int			i;

	use(bytes, size);
	for (i = 0; i < 200 && size > 0; i++)
	{
		size_t		end = i % 4 != 0 && size > 100 ? 100 : size;
		size_t		at = next_random(&random) % end;
		uint8_t		was = bytes[at];

		/* what a capacity asks for is allocated: not hundreds of megabytes for each */
		bytes[at] ^= (uint8_t) (1 << next_random(&random) % 8);
		if (libfav_check(bytes, size, NULL) == LIBFAV_OK)
		{
			libfav	   *filter = libfav_new(NULL);
			bool		is_small;

			libfav_open(filter, bytes, size, NULL);
			is_small = libfav_get_info(filter).params.capacity < 1000000;
			libfav_free(filter);
			if (is_small)
				use(bytes, size);
		}
		else
			use(bytes, size);
		bytes[at] = was;
	}
	for (i = 1; i <= 10; i++)
		use(bytes, size * (size_t) i / 11);
	free(bytes);
	/* one test for each file */
	passed = passed_before + 1;
}

int
main(int argc, char **argv)
{
	int			i;

	test_names();
	test_memory();
	test_pauses();
	test_pauses_of_each();
	test_errors();
	test_threads();
	for (i = 1; i < argc; i++)
		test_hostile(argv[i]);
	return summary("test_lib");
}
