/*
 * test_tombstones.c
 *		The tombstones of an editor, compared with a plain list.  Hashes are added and
 *		removed in any order, evenly distributed or chosen to collide.
 */
#include "harness.h"

#define UNIVERSE	30000

/* The number of elements that the filter states. */
#define ELEMENTS	1000000

typedef struct Model
{
	uint64_t	hashes[UNIVERSE];	/* ascending */
	bool		listed[UNIVERSE];
	uint32_t	count;
	FavEditor	editor;
	Value		value;
} Model;

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

typedef enum Spread
{
	EVEN,
	CLOSE,						/* in one slot of the hash table, whatever its size */
	CLUSTERED,					/* in a few slots of a large one */
	MIXED						/* every other hash is close */
} Spread;

static const char *const spread_names[] = {"even", "close", "clustered", "mixed"};

static void
make_hashes(Model *model, Spread spread, uint64_t *random)
{
	uint32_t	i;

	for (i = 0; i < UNIVERSE; i++)
	{
		uint64_t	hash = next_random(random);

		if (spread == CLOSE || (spread == MIXED && i % 2 == 0))
			hash = hash >> 40 | UINT64_C(0x1234560000000000);
		else if (spread == CLUSTERED)
			hash |= UINT64_C(0xfff0000000000000);
		model->hashes[i] = hash;
	}
	/* the ends */
	model->hashes[0] = 0;
	model->hashes[1] = UINT64_MAX;
	model->hashes[2] = UINT64_MAX - 1;
	qsort(model->hashes, UNIVERSE, sizeof(uint64_t), compare_hashes);
	for (i = 1; i < UNIVERSE; i++)
		if (model->hashes[i] <= model->hashes[i - 1])
			model->hashes[i] = model->hashes[i - 1] + 1;
	CHECK(model->hashes[UNIVERSE - 1] == UINT64_MAX);
}

/* Open a value with one slice, whose bits do not matter, and without tombstones. */
static void
open_empty(Model *model)
{
	uint64_t	elements[200];
	uint32_t	i;

	for (i = 0; i < 200; i++)
		elements[i] = i * UINT64_C(0x0101010101010101);
	CHECK(fav_editor_build(&model->editor, &DEFAULT_PARAMS, elements, 200) == FAV_OK);
	model->editor.filter.elements = ELEMENTS;
	memset(model->listed, 0, sizeof(model->listed));
	model->count = 0;
	model->value.bytes = NULL;
}

static void
add(Model *model, uint32_t i)
{
	uint64_t	elements = model->editor.filter.elements;

	CHECK(fav_tombstones_add(&model->editor, model->hashes[i]) == FAV_OK);
	CHECK(model->editor.filter.elements == elements - !model->listed[i]);
}

/* Remove the tombstone, or add it. */
static void
change(Model *model, uint32_t i)
{
	CHECK(fav_editor_has_tombstone(&model->editor, model->hashes[i]) == model->listed[i]);
	if (model->listed[i])
	{
		CHECK(fav_tombstones_remove(&model->editor, model->hashes[i]) == FAV_OK);
		fav_count_in(&model->editor.filter);
		model->count--;
	}
	else
	{
		add(model, i);
		model->count++;
	}
	model->listed[i] = !model->listed[i];
}

/* Add the tombstone, whether it exists or not. */
static void
add_again(Model *model, uint32_t i)
{
	add(model, i);
	model->count += !model->listed[i];
	model->listed[i] = true;
}

static void
compare_all(Model *model)
{
	uint32_t	i;

	for (i = 0; i < UNIVERSE; i++)
		CHECK_THAT(fav_editor_has_tombstone(&model->editor, model->hashes[i]) == model->listed[i], "hash %u", i);
}

/* Write the value, compare its list, and mostly continue from there. */
static void
reopen(Model *model, bool go_on)
{
	const FavFilter *filter;
	Value		old = model->value;
	uint32_t	at = 0;
	uint32_t	i;

	/* once with too little memory */
	fail_allocation(go_on ? 1 : 0);
	if (fav_editor_finish(&model->editor, &filter) != FAV_OK)
	{
		fail_allocation(0);
		compare_all(model);
		CHECK(fav_editor_finish(&model->editor, &filter) == FAV_OK);
	}
	fail_allocation(0);
	CHECK(filter->ntombstones == model->count);
	CHECK(filter->elements == ELEMENTS - model->count);
	for (i = 0; i < UNIVERSE; i++)
		if (model->listed[i])
		{
			CHECK_THAT(at < filter->ntombstones && fav_load64(filter->tombstones + 8 * (size_t) at) == model->hashes[i],
					   "hash %u at %u", i, at);
			at++;
		}
	if (!go_on)
		return;
	value_from_editor(&model->value, &model->editor);
	fav_editor_close(&model->editor);
	if (old.bytes != NULL)
		value_free(&old);
	fav_editor_open(&model->editor, &model->value.filter);
}

static void
test_model(Spread spread, uint64_t seed)
{
	Model	   *model = malloc(sizeof(Model));
	uint64_t	random = seed;
	uint32_t	round;

	test_begin("tombstones: as a plain list, %s hashes, seed %llu", spread_names[spread], (unsigned long long) seed);
	make_hashes(model, spread, &random);
	open_empty(model);
	for (round = 0; round < 24; round++)
	{
		/* a few changes or many, of all hashes or of a few, in any order or ascending */
		uint32_t	most = UINT32_C(1) << random_below(&random, 15);
		uint32_t	changes = 1 + (uint32_t) random_below(&random, most);
		uint32_t	first = (uint32_t) random_below(&random, UNIVERSE);
		uint32_t	range = random_below(&random, 3) == 0 ? 100 : UNIVERSE;
		bool		ascending = random_below(&random, 4) == 0;
		bool		again = random_below(&random, 2) == 0;
		uint32_t	i;

		for (i = 0; i < changes; i++)
			(again ? add_again : change) (model, (first + (ascending ? i : (uint32_t) random_below(&random, range))) % UNIVERSE);
		if (!again)
			change(model, UNIVERSE - 1);
		if (!again || random_below(&random, 2) == 0)
			compare_all(model);
		if (random_below(&random, 2) == 0)
			reopen(model, random_below(&random, 3) > 0);
	}
	reopen(model, true);
	compare_all(model);
	fav_editor_close(&model->editor);
	value_free(&model->value);
	CHECK(allocated_bytes() == 0);
	free(model);
	test_end();
}

/* Chosen hashes may collide: the table is merged before it becomes slow. */
static void
test_collisions(void)
{
	Model	   *model = malloc(sizeof(Model));
	uint64_t	random = 1;
	Spread		spread;
	uint32_t	i;

	test_begin("tombstones: hashes chosen to collide do not slow the table down");
	for (spread = EVEN; spread <= MIXED; spread++)
	{
		uint32_t	merges = 0;
		uint32_t	longest = 0;
		uint32_t	run;

		make_hashes(model, spread, &random);
		open_empty(model);
		for (i = 0; i < UNIVERSE; i++)
		{
			const FavTombstones *tombstones = &model->editor.tombstones;
			uint32_t	before = model->editor.filter.ntombstones;
			uint64_t	hash = model->hashes[i * UINT64_C(7919) % UNIVERSE];
			const uint64_t *slot;

			add(model, (uint32_t) (i * UINT64_C(7919) % UNIVERSE));
			merges += model->editor.filter.ntombstones != before;
			slot = tombstones->flipped + ((hash >> 32) * tombstones->nslots >> 32);
			for (run = 0; slot[run] != FAV_FREE_SLOT; run++)
				;
			longest = run > longest ? run : longest;
		}
		CHECK_THAT(longest <= 700, "%s: %u slots in a row", spread_names[spread], longest);
		CHECK_THAT(spread == EVEN ? merges == 0 : merges > 10, "%s: %u merges", spread_names[spread], merges);
		CHECK(model->editor.tombstones.nslots <= 65536);
		fav_editor_close(&model->editor);
	}
	CHECK(allocated_bytes() == 0);
	free(model);
	test_end();
}

/* Every allocation of a change fails once, and the set is unchanged. */
static void
test_no_memory(void)
{
	Model	   *model = malloc(sizeof(Model));
	uint64_t	random = 2;
	uint32_t	failed = 0;
	Spread		spread;
	uint32_t	i;

	test_begin("tombstones: out of memory, a change fails and changes nothing");
	for (spread = EVEN; spread <= MIXED; spread++)
	{
		make_hashes(model, spread, &random);
		open_empty(model);
		for (i = 0; i < 20000; i++)
		{
			uint32_t	at = (uint32_t) random_below(&random, UNIVERSE);
			FavStatus	status;

			bool		removing = model->listed[at] && i % 2;

			fail_allocation(1);
			status = removing ? fav_tombstones_remove(&model->editor, model->hashes[at]) :
				fav_tombstones_add(&model->editor, model->hashes[at]);
			fail_allocation(0);
			if (status != FAV_OK)
			{
				CHECK(status == FAV_NO_MEMORY);
				if (failed++ % 16 == 0)
					compare_all(model);
			}
			else if (removing)
			{
				fav_count_in(&model->editor.filter);
				model->listed[at] = false;
				model->count--;
			}
			else
			{
				model->count += !model->listed[at];
				model->listed[at] = true;
			}
			add_again(model, at);
		}
		reopen(model, false);
		fav_editor_close(&model->editor);
	}
	CHECK_THAT(failed > 20, "%u failures only", failed);
	CHECK(allocated_bytes() == 0);
	free(model);
	test_end();
}

/* A damaged, shuffled list may give wrong answers, but no access is out of bounds. */
static void
test_damaged(void)
{
	Model	   *model = malloc(sizeof(Model));
	uint64_t	random = 3;
	uint32_t	run;
	uint32_t	i;

	test_begin("tombstones: a damaged list does no harm");
	for (run = 0; run < 40; run++)
	{
		const FavFilter *filter;
		FavFilter	damaged;
		uint32_t	count = 1 + (uint32_t) random_below(&random, run % 2 ? 100 : 5000);
		uint8_t    *list = malloc(8 * count);

		make_hashes(model, (Spread) (run % 4), &random);
		open_empty(model);
		CHECK(fav_editor_finish(&model->editor, &filter) == FAV_OK);
		damaged = *filter;
		for (i = 0; i < count; i++)
			fav_store64(list + 8 * i, model->hashes[random_below(&random, run % 3 ? UNIVERSE : 50)]);
		damaged.tombstones = list;
		damaged.ntombstones = count;
		{
			FavEditor	editor;

			fav_editor_open(&editor, &damaged);
			for (i = 0; i < 6000; i++)
			{
				uint64_t	hash = model->hashes[random_below(&random, UNIVERSE)];

				if (fav_editor_has_tombstone(&editor, hash))
					CHECK(fav_tombstones_remove(&editor, hash) == FAV_OK);
				else
					CHECK(fav_tombstones_add(&editor, hash) == FAV_OK);
				if (random_below(&random, 2000) == 0)
					CHECK(fav_editor_finish(&editor, &filter) == FAV_OK);
			}
			CHECK(fav_editor_finish(&editor, &filter) == FAV_OK);
			fav_editor_close(&editor);
		}
		fav_editor_close(&model->editor);
		free(list);
	}
	CHECK(allocated_bytes() == 0);
	free(model);
	test_end();
}

/* A union includes earlier changes of the editor, and the editor can be changed again. */
static void
test_union(void)
{
	Model	   *model = malloc(sizeof(Model));
	Model	   *other = malloc(sizeof(Model));
	uint64_t	random = 4;
	uint32_t	run;
	uint32_t	i;

	test_begin("tombstones: changes before and after a union");
	for (run = 0; run < 20; run++)
	{
		uint32_t	most = run % 2 ? 40 : 4000;
		uint32_t	kept = 0;
		const FavFilter *filter;

		make_hashes(model, EVEN, &random);
		make_hashes(other, EVEN, &random);
		open_empty(model);
		open_empty(other);
		for (i = 0; i < most; i++)
		{
			change(model, i);
			change(other, i);
		}
		CHECK(fav_editor_finish(&other->editor, &filter) == FAV_OK);
		CHECK(fav_editor_union(&model->editor, filter) == FAV_OK);

		/* an element that the other side reports loses its tombstone */
		for (i = 0; i < most; i++)
		{
			model->listed[i] = !fav_contains(filter, model->hashes[i]);
			kept += model->listed[i];
			CHECK(fav_editor_has_tombstone(&model->editor, model->hashes[i]) == model->listed[i]);
		}
		CHECK(kept > most / 10 * 9);
		for (i = 0; i < 2 * most; i++)
			change(model, i % most);
		for (i = 0; i < most; i++)
			CHECK(fav_editor_has_tombstone(&model->editor, model->hashes[i]) == model->listed[i]);
		fav_editor_close(&model->editor);
		fav_editor_close(&other->editor);

		/* a change that was undone leaves an empty table */
		open_empty(model);
		open_empty(other);
		change(model, 5);
		change(model, 5);
		CHECK(fav_editor_finish(&other->editor, &filter) == FAV_OK);
		CHECK(fav_editor_union(&model->editor, filter) == FAV_OK);
		change(model, 5);
		CHECK(fav_editor_has_tombstone(&model->editor, model->hashes[5]));
		fav_editor_close(&model->editor);
		fav_editor_close(&other->editor);
	}
	CHECK(allocated_bytes() == 0);
	free(model);
	free(other);
	test_end();
}

/*
 * Without slices, a short list is ordered newest first, whether one edit makes all changes or
 * many edits make one each.  A longer list ascends, and so does every list of a filter with
 * slices.
 */
static void
test_short(void)
{
	FavParams	params = DEFAULT_PARAMS;
	uint64_t	random = 5;
	uint64_t	expected[400];
	uint32_t	count = 0;
	FavEditor	whole;
	Value		value;
	uint32_t	step;
	uint32_t	i;

	test_begin("tombstones: a short list without slices has the newest first");
	fav_editor_new(&whole, &params);
	value_from_editor(&value, &whole);
	for (step = 0; step < 1450; step++)
	{
		bool		growing = step % 500 < 250;
		FavEditor	single;
		Value		next;

		fav_editor_open(&single, &value.filter);
		if (count == 0 || random_below(&random, 100) < (growing ? 90 : 10))
		{
			uint64_t	hash = next_random(&random);

			CHECK(fav_editor_exclude(&single, hash) == FAV_OK);
			CHECK(fav_editor_exclude(&whole, hash) == FAV_OK);
			memmove(expected + 1, expected, count++ * sizeof(uint64_t));
			expected[0] = hash;
		}
		else
		{
			uint32_t	at = (uint32_t) random_below(&random, count);

			CHECK(fav_tombstones_remove(&single, expected[at]) == FAV_OK);
			CHECK(fav_tombstones_remove(&whole, expected[at]) == FAV_OK);
			memmove(expected + at, expected + at + 1, (--count - at) * sizeof(uint64_t));
		}
		if (count > FAV_RECENT_MAX)
			qsort(expected, count, sizeof(uint64_t), compare_hashes);
		value_from_editor(&next, &single);
		fav_editor_close(&single);
		value_free(&value);
		value = next;
		CHECK(value.filter.ntombstones == count);
		for (i = 0; i < count; i++)
			CHECK_THAT(fav_load64(value.filter.tombstones + 8 * i) == expected[i] &&
					   fav_has_tombstone(&value.filter, expected[i]) &&
					   fav_editor_has_tombstone(&whole, expected[i]), "step %u, tombstone %u", step, i);
		if (step % 100 == 99)
		{
			value_from_editor(&next, &whole);
			CHECK(next.size == value.size && memcmp(next.bytes, value.bytes, value.size) == 0);
			value_free(&next);
		}
	}
	CHECK(count > 0 && count <= FAV_RECENT_MAX);
	fav_editor_close(&whole);

	/* a first slice sorts them */
	fav_editor_open(&whole, &value.filter);
	value_free(&value);
	for (i = 0; i < 200; i++)
		CHECK(fav_editor_add(&whole, next_random(&random)) == FAV_OK);
	value_from_editor(&value, &whole);
	qsort(expected, count, sizeof(uint64_t), compare_hashes);
	CHECK(value.filter.nslices == 1 && value.filter.ntombstones == count);
	for (i = 0; i < count; i++)
		CHECK(fav_load64(value.filter.tombstones + 8 * i) == expected[i] && fav_has_tombstone(&value.filter, expected[i]));
	fav_editor_close(&whole);
	value_free(&value);
	CHECK(allocated_bytes() == 0);
	test_end();
}

int
main(void)
{
	Spread		spread;
	uint64_t	seed;

	test_short();
	for (spread = EVEN; spread <= MIXED; spread++)
		for (seed = 1; seed <= 5; seed++)
			test_model(spread, seed);
	test_collisions();
	test_no_memory();
	test_damaged();
	test_union();
	return test_summary("test_tombstones");
}
