/*
 * test_build.c
 *		Filters built at once, in the memory of their value.
 */
#include "harness.h"
#include "hash.h"

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

/* Compare the value of the editor, and close the editor. */
static void
check_value(FavEditor *editor, const Value *expected, const char *what)
{
	Value		value;

	value_from_editor(&value, editor);
	CHECK_THAT(value.size == expected->size && memcmp(value.bytes, expected->bytes, value.size) == 0,
			   "%s: %zu bytes instead of %zu, or others", what, value.size, expected->size);
	value_free(&value);
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

/* The order of the hashes does not matter. */
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
	size_t		i;

	test_begin("build: the same bytes from any order");
	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		{
			uint64_t   *hashes = make_hashes(counts[c]);
			FavEditor	editor;
			Value		expected;

			build_whole(&expected, &kinds[k], hashes, counts[c]);
			CHECK(fav_editor_build(&editor, &kinds[k], hashes, counts[c]) == FAV_OK);
			check_value(&editor, &expected, "ascending");
			for (i = counts[c]; i > 1; i--)
			{
				size_t		j = (size_t) random_below(&random_state, i);
				uint64_t	swap = hashes[i - 1];

				hashes[i - 1] = hashes[j];
				hashes[j] = swap;
			}
			CHECK(fav_editor_build(&editor, &kinds[k], hashes, counts[c]) == FAV_OK);
			check_value(&editor, &expected, "in any order");
			value_free(&expected);
			free(hashes);
		}
	test_end();
}

/* Changes after a build give the same bytes as changes of its value. */
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
		CHECK(fav_editor_build(&editors[1], &DEFAULT_PARAMS, hashes, count) == FAV_OK);
		for (i = 0; i < 2; i++)
		{
			FavFilter	other = whole.filter;
			uint64_t	j;

			if (change == 0)
				CHECK(fav_editor_add(&editors[i], 42) == FAV_OK);
			if (change == 1)
				CHECK(fav_editor_remove(&editors[i], hashes[7]) == FAV_OK);
			if (change == 2)
				for (j = 0; j < 2000; j++)
					CHECK(fav_editor_add(&editors[i], j << 50 | 1) == FAV_OK);
			if (change == 3)
				CHECK(fav_editor_union(&editors[i], &other) == FAV_OK);
			value_from_editor(&values[i], &editors[i]);
		}
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
	uint64_t   *hashes = make_hashes(1000);
	FavEditor	editor;

	test_begin("build: without memory, or too large, nothing is left behind");
	fail_allocation(1);
	CHECK(fav_editor_build(&editor, &DEFAULT_PARAMS, hashes, 1000) == FAV_NO_MEMORY);
	fail_allocation(0);
	fav_editor_close(&editor);
	CHECK(fav_editor_build(&editor, &huge, hashes, 1000) == FAV_TOO_LARGE);
	fav_editor_close(&editor);
	CHECK(allocated_bytes() == 0);
	free(hashes);
	test_end();
}

/* All hashes are in a few blocks: the slice grows until memory runs out in the middle. */
static void
test_uneven(void)
{
	uint64_t	hashes[1000];
	uint32_t	even;
	FavEditor	editor;
	FavStatus	status = FAV_NO_MEMORY;
	unsigned	n;
	size_t		i;

	test_begin("build: a small slice that is too uneven becomes wider");
	for (i = 0; i < 1000; i++)
		hashes[i] = next_random(&random_state);
	CHECK(fav_editor_build(&editor, &DEFAULT_PARAMS, hashes, 1000) == FAV_OK);
	even = editor.filter.slices[0].nblocks;
	fav_editor_close(&editor);
	for (i = 0; i < 1000; i++)
		hashes[i] >>= 1;
	for (n = 1; status == FAV_NO_MEMORY && n < 1000; n++)
	{
		fail_allocation(n);
		status = fav_editor_build(&editor, &DEFAULT_PARAMS, hashes, 1000);
		fail_allocation(0);
		CHECK_THAT(status != FAV_OK || editor.filter.slices[0].nblocks > even, "%u blocks", editor.filter.slices[0].nblocks);
		fav_editor_close(&editor);
		CHECK(allocated_bytes() == 0);
	}
	CHECK(status == FAV_OK && n > 3);
	test_end();
}

int
main(void)
{
	test_same_bytes();
	test_changed();
	test_memory();
	test_uneven();
	return test_summary("test_build");
}
