/*
 * test_union.c
 *		Unions of random filters, with deletes on either side, compared with the
 *		union of exact sets; then more adds and deletes, and more unions.
 *
 * Usage: test_union [rounds [seed]]
 */
#include <math.h>
#include <time.h>

#include "harness.h"
#include "hash.h"

#define UNIVERSE	20000

static uint64_t random_state;
static uint64_t total_operations;
static unsigned unions;
static unsigned merged;			/* unions with fewer slices than both sides had */
static unsigned refused;		/* unions with more slices than the limit */

/* A filter as bytes, and the exact set. */
typedef struct Side
{
	Value		value;
	uint8_t		present[UNIVERSE];
} Side;

static uint64_t
hash_of(uint32_t element)
{
	return fav_hash_integer(element, 0);
}

static void
replace_value(Side *side, FavEditor *editor)
{
	Value		next;

	value_from_editor(&next, editor);
	fav_editor_close(editor);
	value_free(&side->value);
	side->value = next;
}

static void
change(Side *side, uint32_t operations, uint32_t first, uint32_t count)
{
	uint32_t	deletes = (uint32_t) random_below(&random_state, 50);
	FavEditor	editor;
	uint32_t	i;

	fav_editor_open(&editor, &side->value.filter);
	for (i = 0; i < operations; i++)
	{
		uint32_t	element = first + (uint32_t) random_below(&random_state, count);
		uint64_t	hash = hash_of(element);

		if (random_below(&random_state, 100) >= deletes)
		{
			CHECK(fav_editor_add(&editor, hash) == FAV_OK);
			side->present[element] = 1;
		}
		else if (side->present[element])
		{
			CHECK_THAT(fav_editor_contains(&editor, hash), "false negative: %u", element);
			CHECK(fav_editor_remove(&editor, hash) == FAV_OK);
			CHECK_THAT(!fav_editor_contains(&editor, hash), "%u is there right after its delete", element);
			side->present[element] = 0;
		}
	}
	total_operations += operations;
	replace_value(side, &editor);
}

static void
check_members(const Side *side)
{
	uint32_t	i;

	for (i = 0; i < UNIVERSE; i++)
		if (side->present[i])
			CHECK_THAT(fav_contains(&side->value.filter, hash_of(i)), "false negative: %u", i);
}

static void
check_error(const FavFilter *filter)
{
	uint32_t	probes = 20000;
	double		promised = filter->params.error_rate * probes;
	uint32_t	wrong = 0;
	uint32_t	i;

	for (i = 0; i < probes; i++)
		wrong += fav_contains(filter, hash_of(UNIVERSE + i));
	CHECK_THAT(wrong <= promised * 1.02 + 5 * sqrt(promised) + 1,
			   "%u false positives in %u probes, promised are %g", wrong, probes, promised);
}

/* A subset of the universe, so that sides overlap fully, partly or not at all. */
static void
make_side(Side *side, const FavParams *params)
{
	static const uint32_t sizes[] = {50, 200, 3000, 15000};
	uint32_t	first = (uint32_t) random_below(&random_state, 4) * (UNIVERSE / 4);
	uint32_t	count = UNIVERSE / 4 + (uint32_t) random_below(&random_state, UNIVERSE * 3 / 4 - first + 1);
	FavEditor	editor;

	memset(side, 0, sizeof(*side));
	fav_editor_new(&editor, params);
	replace_value(side, &editor);
	change(side, sizes[random_below(&random_state, 4)], first, count);
}

/* An element that was deleted on a side and is in neither set is absent. */
static void
check_deletes_hold(const FavFilter *side, const FavFilter *a, const FavFilter *b,
				   const FavFilter *united)
{
	uint32_t	i;

	for (i = 0; i < side->ntombstones; i++)
	{
		uint64_t	hash = fav_load64(side->tombstones + 8 * (size_t) i);

		if (!fav_contains(a, hash) && !fav_contains(b, hash))
			CHECK_THAT(!fav_contains(united, hash), "a deleted hash is back after the union");
	}
}

/* Unite b into a, both sets and filters. */
static void
unite(Side *a, const Side *b)
{
	FavEditor	editor;
	Value		united;
	FavStatus	status;
	uint32_t	i;

	fav_editor_open(&editor, &a->value.filter);
	status = fav_editor_union(&editor, &b->value.filter);
	value_from_editor(&united, &editor);
	fav_editor_close(&editor);
	unions++;
	if (status == FAV_TOO_MANY_SLICES)
	{
		refused++;
		CHECK(united.size == a->value.size && memcmp(united.bytes, a->value.bytes, united.size) == 0);
	}
	else
	{
		CHECK(status == FAV_OK);
		merged += united.filter.nslices < a->value.filter.nslices + b->value.filter.nslices;
		for (i = 0; i < UNIVERSE; i++)
			a->present[i] |= b->present[i];
		check_deletes_hold(&a->value.filter, &a->value.filter, &b->value.filter, &united.filter);
		check_deletes_hold(&b->value.filter, &a->value.filter, &b->value.filter, &united.filter);
	}
	value_free(&a->value);
	a->value = united;
	check_members(a);
	check_error(&a->value.filter);
}

static void
run(const FavParams *params)
{
	Side	   *a = malloc(sizeof(Side));
	Side	   *b = malloc(sizeof(Side));
	int			i;

	make_side(a, params);
	for (i = 0; i < 4; i++)
	{
		if (random_below(&random_state, 4) == 0)
		{
			/* the same again, a little later */
			memcpy(b, a, sizeof(Side));
			b->value.bytes = NULL;
			b->value.size = 0;
			{
				FavEditor	editor;

				fav_editor_open(&editor, &a->value.filter);
				replace_value(b, &editor);
			}
			change(b, 500, 0, UNIVERSE);
		}
		else
			make_side(b, params);
		unite(a, b);
		change(a, 5000, 0, UNIVERSE);
		check_members(a);
		value_free(&b->value);
	}
	value_free(&a->value);
	free(a);
	free(b);
	CHECK(allocated_bytes() == 0);
}

static void
test_refusals(void)
{
	FavParams	params = DEFAULT_PARAMS;
	FavEditor	a;
	FavEditor	b;
	Value		value;

	test_begin("union: other seeds and region sizes are refused");
	fav_editor_new(&a, &params);
	params.seed = 1;
	fav_editor_new(&b, &params);
	value_from_editor(&value, &b);
	CHECK(fav_editor_union(&a, &value.filter) == FAV_MISMATCH);
	value_free(&value);
	params.seed = 0;
	params.region_size = 3;
	fav_editor_new(&b, &params);
	value_from_editor(&value, &b);
	CHECK(fav_editor_union(&a, &value.filter) == FAV_MISMATCH);
	value_free(&value);
	test_end();
}

/* Every allocation of a union fails once, and the editor is unchanged. */
static void
test_no_memory(void)
{
	FavParams	params = DEFAULT_PARAMS;
	Side	   *a = malloc(sizeof(Side));
	Side	   *b = malloc(sizeof(Side));
	FavStatus	status = FAV_NO_MEMORY;
	unsigned	n;

	test_begin("union: running out of memory changes nothing");
	make_side(a, &params);
	change(a, 15000, 0, UNIVERSE);
	make_side(b, &params);
	change(b, 9000, 0, UNIVERSE);
	for (n = 1; status == FAV_NO_MEMORY && n < 1000; n++)
	{
		FavEditor	editor;
		Value		value;

		fav_editor_open(&editor, &a->value.filter);
		fail_allocation(n);
		status = fav_editor_union(&editor, &b->value.filter);
		fail_allocation(0);
		if (status == FAV_NO_MEMORY)
		{
			value_from_editor(&value, &editor);
			CHECK(value.size == a->value.size && memcmp(value.bytes, a->value.bytes, value.size) == 0);
			value_free(&value);
		}
		fav_editor_close(&editor);
	}
	CHECK(status == FAV_OK && n > 5);
	value_free(&a->value);
	value_free(&b->value);
	free(a);
	free(b);
	CHECK(allocated_bytes() == 0);
	test_end();
}

int
main(int argc, char **argv)
{
	static const double error_rates[] = {0.1, 0.01, 0.0005};
	static const uint32_t region_sizes[] = {1, 7, 31};
	static const uint64_t capacities[] = {1, 1000, 30000};
	int			rounds = argc > 1 ? atoi(argv[1]) : 4;
	int			i;

	random_state = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t) time(NULL);
	printf("union: seed %llu\n", (unsigned long long) random_state);
	test_refusals();
	test_no_memory();
	for (i = 0; i < rounds * 27; i++)
	{
		FavParams	params;

		params.error_rate = error_rates[i % 3];
		params.region_size = region_sizes[i / 3 % 3];
		params.capacity = capacities[i / 9 % 3];
		params.seed = 0;
		test_begin("union: run %d, error rate %g, region size %u, capacity %llu", i + 1,
				   params.error_rate, params.region_size, (unsigned long long) params.capacity);
		run(&params);
		test_end();
	}
	printf("union: %u unions (%u with slices merged, %u refused for too many slices), %.1f million operations\n",
		   unions, merged, refused, (double) total_operations / 1e6);
	return test_summary("test_union");
}
