/*
 * test_dated.c
 *		Filters that forget, compared with an exact set of elements and their periods.
 *
 * The test asserts:
 *
 *		- An element that was added and not removed is found for `keep` periods after it was
 *		  last added (no false negatives).
 *		- It is forgotten at most max(1, keep / 8) periods later.  What is forgotten, and what was
 *		  never added, is found at most as often as promised, as in model.c.
 *		- A removed element is absent right after its removal, and is found again for `keep`
 *		  periods if it is added again.
 *		- The bytes survive writing, opening and checking at any moment.
 *		- In the steady state the size neither grows nor exceeds 20 bits per element at 1 %, for spans
 *		  of some thousand elements.
 *
 * Usage: test_dated [rounds [seed]]
 */
#include <math.h>
#include <time.h>

#include "dated.h"
#include "harness.h"
#include "hash.h"

#define NEVER	INT64_MIN

typedef struct Model
{
	FavEditor	editor;
	Value		value;			/* the bytes that the editor was opened from */
	FavParams	params;
	uint64_t	random;
	uint32_t	universe;		/* elements are 0 .. universe - 1 */
	int64_t    *added;			/* the last period of each element, or NEVER */
	uint8_t    *removed;		/* and not added since */
	int32_t		now;
	uint64_t	strangers;		/* probed that must be absent, and found */
	uint64_t	found;
} Model;

static inline uint64_t
hash_of(const Model *model, uint64_t element)
{
	return fav_hash_integer((int64_t) element, model->params.seed);
}

static void
open_model(Model *model, const FavParams *params, uint32_t universe, int32_t start, uint64_t seed)
{
	uint32_t	i;

	memset(model, 0, sizeof(*model));
	model->params = *params;
	model->random = seed;
	model->universe = universe;
	model->now = start;
	model->added = malloc(universe * sizeof(int64_t));
	model->removed = calloc(universe, 1);
	for (i = 0; i < universe; i++)
		model->added[i] = NEVER;
	fav_editor_new(&model->editor, params);
	value_from_editor(&model->value, &model->editor);
}

static void
close_model(Model *model)
{
	fav_editor_close(&model->editor);
	value_free(&model->value);
	free(model->added);
	free(model->removed);
}

/* Write the filter, and go on from its bytes. */
static void
reopen(Model *model)
{
	Value		next;

	value_from_editor(&next, &model->editor);
	fav_editor_close(&model->editor);
	value_free(&model->value);
	model->value = next;
	fav_editor_open(&model->editor, &model->value.filter);
}

static void
add(Model *model, uint32_t element, int32_t period)
{
	CHECK(fav_editor_add_at(&model->editor, hash_of(model, element), period) == FAV_OK);
	if (period > model->now)
		model->now = period;
	if ((int64_t) period + model->params.keep < model->now)
		return;
	if (model->removed[element] || model->added[element] < period)
		model->added[element] = period;
	model->removed[element] = 0;
}

static bool
is_kept(const Model *model, uint32_t element)
{
	return model->added[element] != NEVER && !model->removed[element] &&
		model->added[element] + model->params.keep >= model->now;
}

static bool
is_gone(const Model *model, uint32_t element)
{
	return model->added[element] == NEVER ||
		model->added[element] + model->params.keep + fav_delay(model->params.keep) < model->now;
}

static void
remove_element(Model *model, uint32_t element)
{
	CHECK(fav_editor_remove(&model->editor, hash_of(model, element)) == FAV_OK);
	CHECK(!fav_editor_contains(&model->editor, hash_of(model, element)));
	model->removed[element] = 1;
}

static void
check(Model *model)
{
	uint32_t	i;

	CHECK(fav_editor_expire(&model->editor, model->now) == FAV_OK);
	for (i = 0; i < model->universe; i++)
	{
		if (is_kept(model, i))
			CHECK_THAT(fav_editor_contains(&model->editor, hash_of(model, i)),
					   "element %u of period %lld is lost in %d", i, (long long) model->added[i],
					   model->now);
		else if (is_gone(model, i))
		{
			model->strangers++;
			model->found += fav_editor_contains(&model->editor, hash_of(model, i));
		}
	}
	for (i = 0; i < 2000; i++)
	{
		model->strangers++;
		model->found += fav_editor_contains(&model->editor,
											hash_of(model, model->universe + next_random(&model->random) % 1000000000));
	}
}

static void
check_error(const Model *model)
{
	double		expected = model->params.error_rate * (double) model->strangers;

	CHECK_THAT((double) model->found <= 1.02 * expected + 5 * sqrt(expected) + 1,
			   "%llu of %llu strangers are found, allowed %g", (unsigned long long) model->found,
			   (unsigned long long) model->strangers, model->params.error_rate);
}

/*
 * Many come, some come again, some are removed; rates change by factors, periods are skipped, some
 * elements come late.
 */
static void
test_life(double error_rate, uint32_t region_size, uint32_t keep, uint32_t per_period, int32_t start,
		  uint64_t seed)
{
	FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = error_rate, .region_size = region_size, .seed = seed, .keep = keep};
	uint32_t	delay = fav_delay(keep);
	uint32_t	steps = 60;
	uint32_t	universe = per_period * steps * 4;
	Model		model;
	uint32_t	step;
	uint32_t	i;

	test_begin("dated: keep %u, error rate %g, region size %u, %u in a period, from %d, seed %llu", keep,
			   error_rate, region_size, per_period, start, (unsigned long long) seed);
	open_model(&model, &params, universe, start, seed);
	for (step = 0; step < steps; step++)
	{
		uint64_t	kind = random_below(&model.random, 10);
		uint32_t	count = per_period * (kind == 0 ? 8 : kind < 3 ? 3 : 1) / (kind > 7 ? 10 : 1);
		int64_t		period = (int64_t) model.now + (step == 0 ? 0 : 1 + random_below(&model.random, kind == 9 ? keep : 1 + delay));
		int32_t		now = period > INT32_MAX ? INT32_MAX : (int32_t) period;

		for (i = 0; i < count; i++)
		{
			uint32_t	element = (uint32_t) random_below(&model.random, universe);
			int64_t		late = random_below(&model.random, 20) == 0 ? random_below(&model.random, 2 * (uint64_t) keep) : 0;

			if (late > 0 && now - late > INT32_MIN)
				add(&model, element, (int32_t) (now - late));
			else
				add(&model, element, now);
			if (random_below(&model.random, 8) == 0)
			{
				element = (uint32_t) random_below(&model.random, universe);
				if (is_kept(&model, element))
					remove_element(&model, element);
			}
		}
		if (step % 4 == 0)
			reopen(&model);
		if (step % 6 == 0 || step == steps - 1)
			check(&model);
	}
	check_error(&model);
	close_model(&model);
	test_end();
}

/* As many come as go. */
static void
test_steady(double error_rate, uint32_t keep, uint32_t per_period, uint32_t keeps, double bits_allowed)
{
	FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = error_rate, .region_size = 7, .keep = keep};
	uint64_t	random = 1;
	FavEditor	editor;
	uint64_t	next = 0;
	double		sum = 0.0;
	double		kept_sum = 0.0;
	double		slices = 0.0;
	double		most = 0.0;
	double		worst_error = 0.0;
	uint32_t	samples = 0;
	int32_t		period;
	double		elements = (double) per_period * (keep + 1);

	test_begin("dated: steady at %g %%, keep %u, %u in a period, over %u keeps", 100 * error_rate, keep, per_period, keeps);
	fav_editor_new(&editor, &params);
	for (period = 0; period < (int32_t) (keep * keeps); period++)
	{
		/* about Poisson distributed */
		uint32_t	count = (uint32_t) (per_period + sqrt(per_period) * ((double) random_below(&random, 1001) + random_below(&random, 1001) + random_below(&random, 1001) - 1500) / 500);
		uint32_t	i;

		for (i = 0; i < count; i++)
			CHECK(fav_editor_add_at(&editor, fav_hash_integer((int64_t) next++, 0), period) == FAV_OK);
		if (period >= (int32_t) (3 * keep))
		{
			const FavFilter *result;
			FavMeasure	measure;

			fav_editor_finish(&editor, &result);
			sum += (double) fav_size(result) * 8 / fav_count(result);
			kept_sum += (double) fav_size(result) * 8 / elements;
			slices += result->nslices;
			samples++;
			if ((double) fav_size(result) * 8 / elements > most)
				most = (double) fav_size(result) * 8 / elements;
			if (period % 7 == 0)
			{
				fav_measure(result, &measure);
				if (measure.error > worst_error)
					worst_error = measure.error;
			}
		}
	}
	printf("dated: %.2f bits per element that is found, %.2f per element to keep (at most %.2f), %.1f slices, error %.3f of the rate\n",
		   sum / samples, kept_sum / samples, most, slices / samples, worst_error / error_rate);
	CHECK(sum / samples <= bits_allowed);
	CHECK(most <= 1.5 * bits_allowed);
	CHECK(worst_error <= error_rate);
	fav_editor_close(&editor);
	test_end();
}

int
main(int argc, char **argv)
{
	unsigned	rounds = argc > 1 ? (unsigned) strtoul(argv[1], NULL, 10) : 1;
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t) time(NULL);
	static const uint32_t keeps[] = {1, 2, 7, 30, 100, 720, INT32_MAX};
	unsigned	round;
	size_t		i;

	test_steady(0.01, 30, 100, 100, 25);
	test_steady(0.01, 30, 1000, 100, 20);
	test_steady(0.01, 7, 1000, 100, 20);
	test_steady(0.01, 15, 1000, 100, 20);
	test_steady(0.01, 720, 20, 20, 21);
	test_steady(0.01, 30, 10, 100, 100);
	printf("seed %llu\n", (unsigned long long) seed);
	for (round = 0; round < rounds; round++)
		for (i = 0; i < sizeof(keeps) / sizeof(keeps[0]); i++)
		{
			uint64_t	random = seed + round;

			test_life(0.01, 7, keeps[i], 10, -50, next_random(&random));
			test_life(0.01, 7, keeps[i], 300, INT32_MAX - 100, next_random(&random));
			test_life(0.001, 3, keeps[i], 300, INT32_MIN + 1, next_random(&random));
			test_life(0.2, 31, keeps[i], 2000, 1000000, next_random(&random));
		}
	return test_summary("test_dated");
}
