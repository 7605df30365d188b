/*
 * test_levels.c
 *		The levels of an attached filter: random changes, compared with an exact set.
 *
 * A run follows one key.  Elements are inserted and removed, recent is pushed into middle
 * when it is full, and base is rebuilt when middle is full.  At any moment
 *
 *		- every element of the set is reported (no false negatives);
 *		- an element is not reported right after its removal;
 *		- the stack is a valid value with the same answers and the same count;
 *		- other elements are reported at most as often as promised.
 *
 * Usage: test_levels [rounds [seed]]
 */
#include <math.h>
#include <time.h>

#include "harness.h"
#include "hash.h"
#include "levels.h"

typedef struct Life
{
	FavParams	params;
	uint64_t	random;
	uint32_t	universe;
	uint32_t	live;
	uint8_t    *present;
	Value		base;
	Value		middle;
	Value		recent;
	bool		has_base;
	bool		has_middle;
	uint32_t	pushes;
	uint32_t	builds;
} Life;

static uint64_t
hash_of(const Life *life, uint64_t element)
{
	return fav_hash_integer((int64_t) element, life->params.seed);
}

static FavLevels
levels_of(const Life *life)
{
	FavLevels	levels;

	levels.base = life->has_base ? &life->base.filter : NULL;
	levels.middle = life->has_middle ? &life->middle.filter : NULL;
	levels.recent = &life->recent.filter;
	return levels;
}

/* Replace a level by the result of the editor. */
static void
replace(Value *value, bool *there, FavEditor *editor)
{
	Value		next;

	value_from_editor(&next, editor);
	fav_editor_close(editor);
	if (*there)
		value_free(value);
	*value = next;
	*there = true;
}

static void
drop(Value *value, bool *there)
{
	if (*there)
		value_free(value);
	*there = false;
}

static void
empty_recent(Life *life)
{
	bool		there = true;
	FavEditor	editor;

	fav_editor_new(&editor, &life->params);
	replace(&life->recent, &there, &editor);
}

/* Build a base as fav_base() does. */
static void
build(Life *life)
{
	uint64_t   *hashes = malloc((life->live + 1) * sizeof(uint64_t));
	FavParams	params = life->params;
	FavEditor	editor;
	size_t		count = 0;
	bool		there = true;
	uint32_t	i;

	for (i = 0; i < life->universe; i++)
		if (life->present[i])
			hashes[count++] = hash_of(life, i);
	params.error_rate *= 2 * FAV_BASE_ERROR_SHARE;
	params.capacity = count > 0 ? count : 1;
	CHECK(fav_editor_build(&editor, &params, hashes, count) == FAV_OK);
	editor.filter.params.error_rate = life->params.error_rate;
	drop(&life->middle, &life->has_middle);
	if (editor.filter.nslices > 0)
	{
		replace(&life->base, &life->has_base, &editor);
		empty_recent(life);
	}
	else
	{
		drop(&life->base, &life->has_base);
		replace(&life->recent, &there, &editor);
	}
	free(hashes);
	life->builds++;
}

static void
push(Life *life)
{
	uint64_t	capacity = life->has_base ? fav_middle_capacity(life->base.filter.elements) : 0;
	uint64_t	count = life->recent.filter.nrecent + life->recent.filter.ntombstones;
	FavEditor	editor;

	if (life->has_middle)
		count += fav_middle_count(&life->middle.filter);
	if (count > capacity)
	{
		build(life);
		return;
	}
	if (life->has_middle)
		fav_editor_open(&editor, &life->middle.filter);
	else
	{
		FavParams	params = life->params;

		params.capacity = capacity;
		params.error_rate *= FAV_MIDDLE_ERROR_SHARE;
		fav_editor_new(&editor, &params);
	}
	CHECK(fav_levels_push(&editor, &life->recent.filter) == FAV_OK);
	CHECK(editor.filter.nrecent == 0);
	replace(&life->middle, &life->has_middle, &editor);
	empty_recent(life);
	life->pushes++;
}

/* Insert or remove an element as reconciling does. */
static void
change(Life *life, uint32_t element, bool comes)
{
	uint64_t	hash = hash_of(life, element);
	FavLevels	levels = levels_of(life);
	FavLevels	below = levels;
	FavEditor	editor;
	bool		there = true;

	life->live += comes - life->present[element];
	life->present[element] = comes;
	if (life->recent.filter.nrecent + life->recent.filter.ntombstones >= FAV_RECENT_MAX)
	{
		/* the set includes the change already, and so does a base that is built now */
		push(life);
		levels = below = levels_of(life);
	}
	below.recent = NULL;
	fav_editor_open(&editor, &life->recent.filter);
	if (comes && random_below(&life->random, 2) == 0 && levels_contain(&levels, hash))
		/* it is found as it is, perhaps by chance */ ;
	else if (comes)
		CHECK(fav_levels_add(&editor, hash) == FAV_OK);
	else if (levels_contain(&below, hash))
		CHECK(fav_editor_exclude(&editor, hash) == FAV_OK);
	else
		CHECK(fav_editor_remove(&editor, hash) == FAV_OK);
	replace(&life->recent, &there, &editor);
	CHECK(life->recent.filter.nslices == 0);
	levels = levels_of(life);
	CHECK_THAT(levels_contain(&levels, hash) == comes, "element %u is %s right after its change", element,
			   comes ? "missing" : "there");
}

/*
 * Remove some elements of the set from the stack by hand: no other is lost.  Then add them again, and
 * unite the stack with itself.
 */
static void
check_edit(const Life *life, const FavFilter *stack)
{
	FavEditor	editor;
	Value		edited;
	FavEditor	united;
	uint32_t	removed = 0;
	uint32_t	wrong = 0;
	double		promised;
	uint32_t	i;

	fav_editor_open(&editor, stack);
	for (i = 0; i < life->universe; i++)
		if (life->present[i] && i % 3 != 0)
		{
			CHECK(fav_editor_remove(&editor, hash_of(life, i)) == FAV_OK);
			CHECK(!fav_editor_contains(&editor, hash_of(life, i)));
		}
	value_from_editor(&edited, &editor);
	CHECK(edited.filter.is_stacked == stack->is_stacked);
	for (i = 0; i < life->universe; i++)
		if (life->present[i])
			CHECK_THAT(fav_contains(&edited.filter, hash_of(life, i)) == (i % 3 == 0),
					   "after removing others, element %u", i);
	fav_editor_open(&united, &edited.filter);
	for (i = 0; i < life->universe; i++)
		if (life->present[i] && i % 3 == 1)
			CHECK(fav_editor_add(&united, hash_of(life, i)) == FAV_OK);
	if (2 * stack->nslices + 2 <= FAV_MAX_SLICES)
		CHECK(fav_editor_union(&united, &edited.filter) == FAV_OK);
	for (i = 0; i < life->universe; i++)
		if (life->present[i] && i % 3 == 0 && i % 2 == 0)
			CHECK(fav_editor_remove(&united, hash_of(life, i)) == FAV_OK);
	for (i = 0; i < life->universe; i++)
	{
		bool		is_there = i % 3 == 1 || (i % 3 == 0 && i % 2 == 1);
		bool		reported = fav_editor_contains(&united, hash_of(life, i));

		if (!life->present[i])
			continue;
		CHECK_THAT(reported || !is_there, "lost after adding others again and a union: element %u", i);
		removed += !is_there;
		wrong += reported && !is_there;
	}

	/* one that was only in `recent` has no tombstone, so it may be reported by chance */
	promised = 2 * life->params.error_rate * removed;
	CHECK_THAT(wrong <= promised + 5 * sqrt(promised) + 1, "%u of %u removed elements are reported", wrong, removed);
	fav_editor_close(&united);
	fav_editor_close(&editor);
	value_free(&edited);
}

static void
check(Life *life)
{
	FavLevels	levels = levels_of(life);
	FavFilter	stack;
	FavFilter	opened;
	FavProblem	problem;
	uint8_t    *tombstones;
	uint8_t    *bytes;
	uint32_t	probes = 20000;
	double		promised = life->params.error_rate * 1.02;
	uint32_t	wrong = 0;
	uint32_t	i;
	int64_t		off;

	CHECK(fav_levels_stack(&levels, &stack, &tombstones) == FAV_OK);
	bytes = malloc(fav_size(&stack));
	fav_write(&stack, bytes);
	CHECK(fav_open(&opened, bytes, fav_size(&stack), fav_size(&stack), &problem) == FAV_OK);
	CHECK_THAT(fav_check(&opened, &problem) == FAV_OK, "%s", problem.detail);
	for (i = 0; i < life->universe; i++)
	{
		uint64_t	hash = hash_of(life, i);
		bool		reported = levels_contain(&levels, hash);

		CHECK_THAT(reported || !life->present[i], "false negative: element %u", i);
		CHECK_THAT(reported == fav_contains(&opened, hash), "the stack differs for element %u", i);
		CHECK_THAT(life->has_base || life->has_middle || reported == life->present[i],
				   "an exact filter is wrong for element %u", i);
	}
	for (i = 0; i < probes; i++)
	{
		uint64_t	hash = hash_of(life, (uint64_t) 1 << 40 | next_random(&life->random) >> 20);
		bool		reported = levels_contain(&levels, hash);

		wrong += reported;
		CHECK(reported == fav_contains(&opened, hash));
	}
	CHECK(opened.is_stacked == (life->has_base || life->has_middle));
	check_edit(life, &opened);
	CHECK_THAT(wrong <= promised * probes + 5 * sqrt(promised * probes) + 1,
			   "%u false positives in %u probes", wrong, probes);
	off = (int64_t) fav_count(&opened) - (int64_t) life->live;

	/*
	 * A removed element may look present in a lower level; one that is added again is counted
	 * twice.
	 */
	CHECK_THAT(fabs((double) off) <= 5 + life->live * (0.1 + life->params.error_rate),
			   "%lld elements are counted, there are %u", (long long) fav_count(&opened), life->live);
	free(bytes);
	if (tombstones != NULL)
		fav_free(tombstones);
}

static void
live(double error_rate, uint32_t region_size, uint32_t universe, uint32_t changes, uint64_t seed)
{
	FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = error_rate, .region_size = region_size, .seed = seed};
	Life		life;
	FavEditor	editor;
	bool		there = false;
	uint32_t	i;

	test_begin("levels: error rate %g, region size %u, %u elements, seed %llu", error_rate, region_size, universe / 2,
			   (unsigned long long) seed);
	memset(&life, 0, sizeof(life));
	life.params = params;
	life.random = seed;
	life.universe = universe;
	life.present = calloc(universe, 1);
	fav_editor_new(&editor, &params);
	replace(&life.recent, &there, &editor);
	for (i = 0; i < changes; i++)
	{
		uint32_t	element = (uint32_t) random_below(&life.random, universe);
		uint32_t	phase = i * 5 / changes;

		/* grow, churn, shrink, churn, churn; an add of a present element is rare */
		bool		comes = random_below(&life.random, 100) < (phase == 2 ? 15 : phase == 0 ? 80 : 50);

		if (!comes || !life.present[element] || random_below(&life.random, 50) == 0)
			change(&life, element, comes);
		if (random_below(&life.random, changes / 20) == 0)
			check(&life);
	}
	check(&life);
	printf("levels: %u changes, %u pushes, %u builds\n", changes, life.pushes, life.builds);
	CHECK(universe <= FAV_RECENT_MAX || (life.pushes > 0 && life.builds > 0));
	drop(&life.base, &life.has_base);
	drop(&life.middle, &life.has_middle);
	value_free(&life.recent);
	free(life.present);
	CHECK(allocated_bytes() == 0);
	test_end();
}

/* An excluded element is absent until it is added again, whether it was ever added or not. */
static void
test_exclude(void)
{
	FavParams	params = DEFAULT_PARAMS;
	FavEditor	editor;
	Value		value;
	uint64_t	i;

	test_begin("levels: an excluded element is absent, and no other is affected");
	params.capacity = 1;
	params.error_rate = 0.2;
	fav_editor_new(&editor, &params);
	for (i = 0; i < 1000; i++)
		CHECK(fav_editor_add(&editor, fav_hash_integer((int64_t) i, 0)) == FAV_OK);
	for (i = 900; i < 3000; i++)
		CHECK(fav_editor_exclude(&editor, fav_hash_integer((int64_t) i, 0)) == FAV_OK);
	for (i = 3000; i < 20000; i++)
		CHECK(fav_editor_add(&editor, fav_hash_integer((int64_t) i, 0)) == FAV_OK);
	for (i = 2000; i < 2100; i++)
		CHECK(fav_editor_add(&editor, fav_hash_integer((int64_t) i, 0)) == FAV_OK);
	value_from_editor(&value, &editor);
	for (i = 0; i < 20000; i++)
		CHECK_THAT(fav_contains(&value.filter, fav_hash_integer((int64_t) i, 0)) ==
				   (i < 900 || i >= 3000 || (i >= 2000 && i < 2100)), "element %u", (unsigned) i);
	CHECK(value.filter.ntombstones == 2000);
	fav_editor_close(&editor);
	value_free(&value);
	test_end();
}

static void
test_mismatch(void)
{
	FavParams	params = DEFAULT_PARAMS;
	FavEditor	editor;
	Value		recent;
	Value		other;
	FavLevels	levels = {NULL, NULL, NULL};
	FavFilter	stack;
	uint8_t    *tombstones;

	test_begin("levels: incompatible levels are not stacked");
	fav_editor_new(&editor, &params);
	value_from_editor(&recent, &editor);
	fav_editor_close(&editor);
	params.seed = 1;
	fav_editor_new(&editor, &params);
	value_from_editor(&other, &editor);
	levels.recent = &recent.filter;
	levels.base = &other.filter;
	CHECK(fav_levels_stack(&levels, &stack, &tombstones) == FAV_MISMATCH);
	levels.base = NULL;
	levels.middle = &other.filter;
	CHECK(fav_levels_stack(&levels, &stack, &tombstones) == FAV_MISMATCH);
	levels.middle = NULL;
	CHECK(fav_levels_stack(&levels, &stack, &tombstones) == FAV_OK);
	CHECK(tombstones == NULL);
	fav_editor_close(&editor);
	value_free(&other);
	value_free(&recent);
	test_end();
}

int
main(int argc, char **argv)
{
	int			rounds = argc > 1 ? atoi(argv[1]) : 1;
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t) time(NULL);

	test_exclude();
	test_mismatch();
	for (; rounds > 0; rounds--, seed++)
	{
		uint64_t	random = seed;

		live(0.01, 7, 128, 5000, next_random(&random));
		live(0.01, 7, 1000, 40000, next_random(&random));
		live(0.2, 3, 3000, 40000, next_random(&random));
		live(0.001, 7, 20000, 60000, next_random(&random));
		live(0.01, 31, 20000, 60000, next_random(&random));
	}
	return test_summary("test_levels");
}
