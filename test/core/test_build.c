/*
 * test_build.c
 *		A filter built in steps, into the memory of its value, has the bytes of one that is
 *		built at once.
 */
#include "harness.h"
#include "hash.h"
#include "union.h"

static uint64_t random_state = 1;

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

static uint64_t *
make_hashes(size_t count)
{
	uint64_t   *hashes = malloc((count + 1) * sizeof(uint64_t));
	size_t		i;

	for (i = 0; i < count; i++)
		hashes[i] = next_random(&random_state);
	qsort(hashes, count, sizeof(uint64_t), compare_hashes);
	return hashes;
}

/* How parts come. */
typedef enum Order
{
	ASCENDING,					/* and each says what its last hash is */
	VAGUE,						/* and none says where it ends */
	DESCENDING,
	IN_TURNS					/* every seventh hash in one part */
} Order;

static const char *const order_names[] = {"ascending", "vague", "descending", "in turns"};

/* Fill with all hashes in parts; returns how many are doubtful. */
static size_t
fill(FavEditor *editor, const uint64_t *hashes, size_t count, Order order)
{
	uint64_t   *part = malloc(count * sizeof(uint64_t));
	uint64_t   *doubtful = malloc(count * sizeof(uint64_t));
	size_t		ndoubtful = 0;
	size_t		nparts = 7;
	size_t		p;
	size_t		i;

	for (p = 0; p < nparts; p++)
	{
		size_t		number = order == DESCENDING ? nparts - 1 - p : p;
		size_t		n = 0;

		for (i = 0; i < count; i++)
			if ((order == IN_TURNS ? i % nparts : i * nparts / count) == number)
				part[n++] = hashes[i];
		if (n > 0)
			ndoubtful += fav_editor_fill(editor, part, n, order == VAGUE ? UINT64_MAX : part[n - 1],
										 p % 2 == 0 ? doubtful : NULL);
	}
	free(part);
	free(doubtful);
	return ndoubtful;
}

/* Take the value and compare it; leaves the editor closed. */
static void
check_value(FavEditor *editor, const Value *expected, const char *what)
{
	const FavFilter *result;
	uint8_t    *value;

	CHECK(fav_editor_finish(editor, &result) == FAV_OK);
	CHECK_THAT(fav_size(result) == expected->size, "%s: %zu bytes instead of %zu", what,
			   (size_t) fav_size(result), expected->size);
	value = fav_editor_take_value(editor);
	CHECK_THAT(value != NULL && memcmp(value + FAV_VALUE_PREFIX, expected->bytes, expected->size) == 0,
			   "%s: other bytes", what);
	if (value != NULL)
		fav_free(value);
	fav_editor_close(editor);
	CHECK(allocated_bytes() == 0);
}

static void
build_whole(Value *value, const FavParams *params, const uint64_t *hashes, size_t count)
{
	FavEditor	editor;

	CHECK(fav_editor_build(&editor, params, hashes, count) == FAV_OK);
	value_from_editor(value, &editor);
	fav_editor_close(&editor);
}

static void
test_same_bytes(void)
{
	static const FavParams kinds[] = {
		{.capacity = 0, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7},
		{.capacity = 100000, .kind = FAV_KIND_INTEGER, .error_rate = 0.001, .region_size = 7},
		{.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.3, .region_size = 1},
		{.capacity = 0, .kind = FAV_KIND_INTEGER, .error_rate = 0.00001, .region_size = 13},
	};
	static const size_t counts[] = {FAV_RECENT_MAX + 1, 5000, 70000};
	size_t		k;
	size_t		c;
	Order		order;

	test_begin("build: in steps, the same bytes");
	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		{
			uint64_t   *hashes = make_hashes(counts[c]);
			Value		expected;

			build_whole(&expected, &kinds[k], hashes, counts[c]);
			for (order = ASCENDING; order <= IN_TURNS; order++)
			{
				FavEditor	editor;

				CHECK(fav_editor_begin_build(&editor, &kinds[k], counts[c]) == FAV_OK);
				fill(&editor, hashes, counts[c], order);
				if (fav_editor_end_build(&editor))
					check_value(&editor, &expected, order_names[order]);
				else
					CHECK(allocated_bytes() == 0);
			}
			value_free(&expected);
			free(hashes);
		}
	test_end();
}

/* A hash that is there twice is among the doubtful ones; few others are. */
static void
test_doubtful(void)
{
	size_t		count = 20000;
	uint64_t   *hashes = make_hashes(count);
	uint64_t   *doubtful = malloc(count * sizeof(uint64_t));
	FavEditor	editor;
	size_t		n;
	size_t		i;
	size_t		found = 0;

	test_begin("build: doubtful hashes");
	for (i = 100; i < count; i += 100)
		hashes[i] = hashes[i - 99];
	CHECK(fav_editor_begin_build(&editor, &DEFAULT_PARAMS, count) == FAV_OK);
	n = fav_editor_fill(&editor, hashes, count, UINT64_MAX, doubtful);
	fav_editor_close(&editor);
	for (i = 100; i < count; i += 100)
	{
		size_t		j = 0;

		while (j < n && doubtful[j] != hashes[i])
			j++;
		found += j < n;
	}
	CHECK_THAT(found == count / 100 - 1, "%zu of %zu duplicates are doubtful", found, count / 100 - 1);
	CHECK_THAT(n < count / 50, "%zu are doubtful", n);
	free(doubtful);
	free(hashes);
	CHECK(allocated_bytes() == 0);
	test_end();
}

/* What was changed after it was built must be written, and is as if it had been built at once. */
static void
test_changed(void)
{
	size_t		count = 3000;
	uint64_t   *hashes = make_hashes(count);
	Value		whole;
	int			change;

	test_begin("build: changes after it");
	build_whole(&whole, &DEFAULT_PARAMS, hashes, count);
	for (change = 0; change < 4; change++)
	{
		FavEditor	editors[2];
		Value		values[2];
		int			i;

		fav_editor_open(&editors[0], &whole.filter);
		CHECK(fav_editor_begin_build(&editors[1], &DEFAULT_PARAMS, count) == FAV_OK);
		fill(&editors[1], hashes, count, ASCENDING);
		CHECK(fav_editor_end_build(&editors[1]));
		for (i = 0; i < 2; i++)
		{
			FavFilter	other = whole.filter;
			size_t		j;

			if (change == 0)
				CHECK(fav_editor_add(&editors[i], 42) == FAV_OK);
			if (change == 1)
				CHECK(fav_editor_del(&editors[i], hashes[7]) == FAV_OK);
			if (change == 2)
				for (j = 0; j < 2000; j++)
					CHECK(fav_editor_add(&editors[i], j << 50 | 1) == FAV_OK);
			if (change == 3)
				CHECK(fav_editor_union(&editors[i], &other) == FAV_OK);
			value_from_editor(&values[i], &editors[i]);
		}
		CHECK_THAT(change == 3 || fav_editor_take_value(&editors[1]) == NULL, "change %d went unnoticed", change);
		CHECK_THAT(values[0].size == values[1].size && memcmp(values[0].bytes, values[1].bytes, values[0].size) == 0,
				   "change %d: %zu bytes instead of %zu, or others", change, values[1].size, values[0].size);
		for (i = 0; i < 2; i++)
		{
			value_free(&values[i]);
			fav_editor_close(&editors[i]);
		}
	}
	value_free(&whole);
	free(hashes);
	CHECK(allocated_bytes() == 0);
	test_end();
}

static void
test_memory(void)
{
	FavParams	huge = {.capacity = UINT64_C(1) << 40, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7};
	FavEditor	editor;

	test_begin("build: without memory, or too large, nothing is left behind");
	fail_allocation(1);
	CHECK(fav_editor_begin_build(&editor, &DEFAULT_PARAMS, 1000) == FAV_NO_MEMORY);
	fail_allocation(0);
	CHECK(fav_editor_begin_build(&editor, &huge, 1000) == FAV_TOO_LARGE);
	CHECK(allocated_bytes() == 0);
	test_end();
}

/* All in one block: the slice has to be wider. */
static void
test_uneven(void)
{
	uint64_t	hashes[1000];
	FavEditor	editor;
	size_t		i;

	test_begin("build: a small slice that is too uneven");
	for (i = 0; i < 1000; i++)
		hashes[i] = next_random(&random_state) >> 12;
	CHECK(fav_editor_begin_build(&editor, &DEFAULT_PARAMS, 1000) == FAV_OK);
	fill(&editor, hashes, 1000, VAGUE);
	CHECK(!fav_editor_end_build(&editor));
	CHECK(allocated_bytes() == 0);
	test_end();
}

int
main(void)
{
	test_same_bytes();
	test_doubtful();
	test_changed();
	test_memory();
	test_uneven();
	return test_summary("test_build");
}
