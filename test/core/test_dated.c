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
 *		- A removed element is absent right after its removal, and later found at most twice as
 *		  often as promised.  It is found again for `keep` periods if it is added again.
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
#include "levels.h"

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
	Value		snapshot;		/* an earlier value, for unions */
	int64_t    *snapshot_added;
	uint8_t    *snapshot_removed;
	double		allowed;		/* strangers that may be found, at the error rate */
	uint64_t	found;			/* strangers that were found */
	double		removed_allowed;	/* likewise, removed elements */
	uint64_t	removed_found;
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
	model->snapshot_added = malloc(universe * sizeof(int64_t));
	model->snapshot_removed = calloc(universe, 1);
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
	value_free(&model->snapshot);
	free(model->added);
	free(model->removed);
	free(model->snapshot_added);
	free(model->snapshot_removed);
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

static void
take_snapshot(Model *model)
{
	value_free(&model->snapshot);
	value_from_editor(&model->snapshot, &model->editor);
	memcpy(model->snapshot_added, model->added, model->universe * sizeof(int64_t));
	memcpy(model->snapshot_removed, model->removed, model->universe);
}

/* Unite the filter with the snapshot: what was removed since comes back. */
static void
unite(Model *model)
{
	uint32_t	i;

	CHECK(fav_editor_union(&model->editor, &model->snapshot.filter) == FAV_OK);
	for (i = 0; i < model->universe; i++)
		if (model->snapshot_added[i] != NEVER && !model->snapshot_removed[i] &&
			(model->removed[i] || model->added[i] < model->snapshot_added[i]))
		{
			model->added[i] = model->snapshot_added[i];
			model->removed[i] = 0;
		}
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
probe_stranger(Model *model, uint64_t element)
{
	model->allowed += model->editor.filter.params.error_rate;
	model->found += fav_editor_contains(&model->editor, hash_of(model, element));
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
			probe_stranger(model, i);
		else if (model->removed[i])
		{
			model->removed_allowed += model->editor.filter.params.error_rate;
			model->removed_found += fav_editor_contains(&model->editor, hash_of(model, i));
		}
	}
	for (i = 0; i < 2000; i++)
		probe_stranger(model, model->universe + next_random(&model->random) % 1000000000);
}

static void
check_error(const Model *model)
{
	CHECK_THAT((double) model->found <= 1.02 * model->allowed + 5 * sqrt(model->allowed) + 1,
			   "%llu strangers are found, allowed %g", (unsigned long long) model->found, model->allowed);
	CHECK_THAT((double) model->removed_found <= 2 * model->removed_allowed + 5 * sqrt(model->removed_allowed) + 1,
			   "%llu removed elements are found, allowed %g", (unsigned long long) model->removed_found, model->removed_allowed);
}

/*
 * Many come, some come again, some are removed; rates change by factors, periods are skipped, some
 * elements come late, some come by a union.
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
		if (step % 20 == 5)
			take_snapshot(&model);
		if (step % 20 == 9)
			unite(&model);
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
	uint64_t   *before = malloc(keep * keeps * sizeof(uint64_t));	/* how many came before a period */

	test_begin("dated: steady at %g %%, keep %u, %u in a period, over %u keeps", 100 * error_rate, keep, per_period, keeps);
	fav_editor_new(&editor, &params);
	for (period = 0; period < (int32_t) (keep * keeps); period++)
	{
		/* about Poisson distributed */
		uint32_t	count = (uint32_t) (per_period + sqrt(per_period) * ((double) random_below(&random, 1001) + random_below(&random, 1001) + random_below(&random, 1001) - 1500) / 500);
		uint32_t	i;

		before[period] = next;
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
			CHECK((double) fav_count(result) >= 0.97 * (double) (next - before[period - (int32_t) keep]));
			CHECK((double) fav_count(result) <= 1.02 * (double) (next - before[period - (int32_t) (keep + fav_delay(keep))]));
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
	free(before);
	fav_editor_close(&editor);
	test_end();
}

/* Many come in one period and few in another: the number of slices stays within its limit. */
static void
test_bursts(uint32_t keep, uint64_t seed)
{
	FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .keep = keep};
	uint64_t	random = seed;
	FavEditor	editor;
	int64_t		next = 0;
	uint32_t	most = 0;
	double		worst = 0.0;
	int32_t		period = 0;
	uint32_t	step;

	test_begin("dated: bursts, keep %u, seed %llu", keep, (unsigned long long) seed);
	fav_editor_new(&editor, &params);
	for (step = 0; step < 150; step++)
	{
		uint64_t	count = UINT64_C(1) << random_below(&random, 16);
		const FavFilter *result;
		FavMeasure	measure;

		period += (int32_t) random_below(&random, 2 * fav_delay(keep) + 1);
		for (; count > 0; count--)
			CHECK(fav_editor_add_at(&editor, fav_hash_integer(next++, 0), period) == FAV_OK);
		fav_editor_finish(&editor, &result);
		fav_measure(result, &measure);
		if (measure.error > worst)
			worst = measure.error;
		if (result->nslices > most)
			most = result->nslices;
	}
	printf("dated: at most %u slices, error %.3f of the rate\n", most, worst / params.error_rate);
	CHECK(worst <= params.error_rate);
	fav_editor_close(&editor);
	test_end();
}

/* The period of element i of n in some order of adding. */
static int32_t
ordered_period(const char *order, int64_t i, int64_t n, uint32_t keep, uint64_t *random)
{
	int64_t		even = i * (keep + 1) / n;

	if (strcmp(order, "random") == 0)
		return (int32_t) random_below(random, keep + 1);
	if (strcmp(order, "late") == 0)
		return (int32_t) (even - (int64_t) random_below(random, keep / 3 + 1));
	if (strcmp(order, "descending") == 0)
		return (int32_t) (keep - even);
	/* 1.35 times as many in each span as in the one before */
	return (int32_t) ((fav_delay(keep) + 1) * log(1.0 + 0.35 * (double) i / 80) / log(1.35));
}

/* Whatever the order of periods is, all elements are taken, and the filter does not become huge. */
static void
test_order(const char *order, uint32_t keep, int64_t n)
{
	FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .keep = keep};
	int32_t    *periods = malloc((size_t) n * sizeof(int32_t));
	uint64_t	random = 1;
	FavEditor	editor;
	const FavFilter *result;
	FavMeasure	measure;
	double		worst = 0.0;
	int64_t		i;

	test_begin("dated: %lld elements, order %s, keep %u", (long long) n, order, keep);
	fav_editor_new(&editor, &params);
	for (i = 0; i < n; i++)
	{
		/* some of a period come together */
		periods[i] = i % 50 == 0 ? ordered_period(order, i, n, keep, &random) : periods[i - 1];
		CHECK(fav_editor_add_at(&editor, fav_hash_integer(i, 0), periods[i]) == FAV_OK);
		if (i % 1000 == 999 && i > 5000)
		{
			double		bits = 8.0 * (double) fav_size(&editor.filter) / (double) fav_count(&editor.filter);

			worst = bits > worst ? bits : worst;
		}
	}
	fav_editor_finish(&editor, &result);
	fav_measure(result, &measure);
	printf("dated: at most %.0f bits per element, error %.3f of the rate\n", worst, measure.error / params.error_rate);
	CHECK(worst <= 100);
	CHECK(measure.error <= params.error_rate);
	for (i = 0; i < n; i++)
		if (periods[i] + (int64_t) keep >= result->newest)
			CHECK(fav_editor_contains(&editor, fav_hash_integer(i, 0)));
	fav_editor_close(&editor);
	free(periods);
	test_end();
}

/* By how many periods an element is late. */
static uint64_t
random_lateness(uint64_t order, uint32_t keep, uint64_t *random)
{
	switch (order)
	{
		case 0:
			return random_below(random, (uint64_t) keep + 1);
		case 1:
			return random_below(random, random_below(random, (uint64_t) keep + 1) + 1);
		case 2:
			return keep - random_below(random, random_below(random, (uint64_t) keep + 1) + 1);
		case 3:
			return random_below(random, 5) > 0 ? 0 : random_below(random, (uint64_t) keep + 1);
		case 4:
			return 0;
		default:
			return keep;
	}
}

/*
 * Elements come one by one, in random periods of the last keep + 1.  Every `pace` elements a new period
 * begins; 0: never.  With `mixed`, pace and order change now and then.  Some elements come again.
 * However long that goes on, all elements are taken and found, slices are not filled beyond their
 * limits and none of them is empty, and the error stays within the rate.
 */
static void
test_random_periods(uint32_t keep, uint32_t pace, bool mixed, uint32_t n, uint64_t seed)
{
	FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .keep = keep};
	int64_t    *last = malloc(n * sizeof(int64_t));
	uint64_t	random = seed;
	int32_t		now = (int32_t) keep;
	FavEditor	editor;
	uint32_t	most = 0;
	double		worst = 0.0;
	uint64_t	order = 0;
	uint32_t	left = 0;
	uint32_t	i;
	uint32_t	j;

	test_begin("dated: random periods, keep %u, %u in a period%s, %u elements, seed %llu", keep, pace, mixed ? " at first, mixed" : "", n,
			   (unsigned long long) seed);
	fav_editor_new(&editor, &params);
	for (i = 0; i < n; i++)
	{
		uint32_t	element = i > 0 && random_below(&random, 10) == 0 ? (uint32_t) random_below(&random, i) : i;
		int32_t		period;

		if (mixed && left-- == 0)
		{
			left = UINT32_C(1) << random_below(&random, 15);
			order = random_below(&random, 6);
			pace = random_below(&random, 3) == 0 ? 0 : (UINT32_C(1) << random_below(&random, 15)) / (keep + 1) + 1;
		}
		period = now - (int32_t) random_lateness(order, keep, &random);
		last[i] = NEVER;
		if (period > last[element])
			last[element] = period;
		CHECK(fav_editor_add_at(&editor, fav_hash_integer(element, 0), period) == FAV_OK);
		if (pace > 0 && i % pace == pace - 1)
			now++;
		if (editor.filter.nslices > most)
			most = editor.filter.nslices;
		if (i % (n / 20) == n / 20 - 1)
		{
			const FavFilter *result;
			FavMeasure	measure;

			CHECK(fav_editor_expire(&editor, now) == FAV_OK);
			fav_editor_finish(&editor, &result);
			fav_measure(result, &measure);
			worst = measure.error > worst ? measure.error : worst;
			for (j = 0; j < result->nslices; j++)
			{
				const FavSlice *slice = &result->slices[j];

				CHECK_THAT(slice->bits_set > 0, "slice %u is empty", j);
				CHECK_THAT(slice->bits_set <= slice->bits_limit + slice->k * FAV_RECENT_MAX / 4, "slice %u has %llu of %llu bits", j,
						   (unsigned long long) slice->bits_set, (unsigned long long) slice->bits_limit);
			}
			for (j = 0; j <= i; j++)
				if (last[j] + keep >= now)
					CHECK_THAT(fav_editor_contains(&editor, fav_hash_integer(j, 0)), "element %u of period %lld is lost in %d", j, (long long) last[j], now);
		}
	}
	printf("dated: random periods: at most %u slices, error %.3f of the rate\n", most, worst / params.error_rate);
	CHECK(worst <= params.error_rate);
	fav_editor_close(&editor);
	free(last);
	test_end();
}

/*
 * A history that comes in many statements, whose elements are sorted within each of them only.
 * The filter is written after each.
 */
static double
load_history(uint32_t keep, uint32_t statements, uint32_t count, bool is_ordered)
{
	FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .keep = keep};
	uint32_t	n = statements * count;
	int32_t    *periods = malloc(n * sizeof(int32_t));
	uint64_t	random = 1;
	Value		value;
	FavEditor	editor;
	FavMeasure	measure;
	double		bytes;
	uint32_t	i;
	uint32_t	j;

	fav_editor_new(&editor, &params);
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	for (i = 0; i < n; i++)
		periods[i] = (int32_t) (is_ordered ? (uint64_t) i * (keep + 1) / n : random_below(&random, keep + 1));
	for (i = 0; i < n; i += count)
	{
		uint32_t	period;
		Value		next;

		fav_editor_open(&editor, &value.filter);
		CHECK(fav_editor_advance(&editor, (int32_t) keep) == FAV_OK);
		for (period = 0; period <= keep; period++)
			for (j = i; j < i + count; j++)
				if (periods[j] == (int32_t) period)
					CHECK(fav_editor_add_at(&editor, fav_hash_integer(j, 0), periods[j]) == FAV_OK);
		CHECK(fav_editor_flush(&editor) == FAV_OK);
		value_from_editor(&next, &editor);
		fav_editor_close(&editor);
		value_free(&value);
		value = next;
	}
	fav_measure(&value.filter, &measure);
	CHECK(measure.error <= params.error_rate);
	for (i = 0; i < n; i++)
		CHECK(fav_contains(&value.filter, fav_hash_integer(i, 0)));
	printf("dated: %u statements of %u, %s: %.2f bytes per element, %u slices, error %.3f of the rate\n", statements, count,
		   is_ordered ? "in order" : "in any order", (double) value.size / n, value.filter.nslices, measure.error / params.error_rate);
	bytes = (double) value.size / n;
	value_free(&value);
	free(periods);
	return bytes;
}

static void
test_history(uint32_t keep, uint32_t statements, uint32_t count)
{
	test_begin("dated: a history in %u statements of %u, keep %u", statements, count, keep);
	CHECK(load_history(keep, statements, count, false) <= 3 * load_history(keep, statements, count, true));
	test_end();
}

/*
 * Nobody runs out of slices, however much the elements of a period grow while all spans do.
 */
static void
test_limit(void)
{
	FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 1, .keep = 64};
	uint64_t	random = 1;
	FavEditor	editor;
	int64_t		next = 0;
	uint32_t	most = 0;
	int32_t		now;

	test_begin("dated: slices never run out");
	fav_editor_new(&editor, &params);
	for (now = 0; now < 300; now++)
	{
		int64_t		first = next;
		uint32_t	i;

		/* late ones in bursts, now and then so many that all spans need large steps */
		for (i = now % 13 == 0 ? 40000 : 3000; i > 0; i--)
			CHECK(fav_editor_add_at(&editor, fav_hash_integer(next++, 0), now - (int32_t) random_below(&random, 65)) == FAV_OK);
		most = editor.filter.nslices > most ? editor.filter.nslices : most;
		for (; first < next; first += 97)
			CHECK(fav_editor_contains(&editor, fav_hash_integer(first, 0)));
	}
	printf("dated: at most %u slices\n", most);
	CHECK(most <= FAV_MAX_DATED_SLICES);
	fav_editor_close(&editor);
	test_end();
}

/* The first span gets its share of the capacity, as far as that can be. */
static void
test_capacity(void)
{
	static const uint64_t capacities[] = {1000000, FAV_MAX_ELEMENTS};
	size_t		i;

	test_begin("dated: capacity is for the elements of all spans");
	for (i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
	{
		FavParams	params = {.capacity = capacities[i], .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .keep = 1};
		FavEditor	editor;
		int64_t		element;

		fav_editor_new(&editor, &params);
		for (element = 0; element < 10000; element++)
			CHECK(fav_editor_add_at(&editor, fav_hash_integer(element, 0), 0) == FAV_OK);
		CHECK(editor.filter.nslices == 1 && fav_size(&editor.filter) > 1000000 && fav_size(&editor.filter) < FAV_MAX_SIZE / 4);
		fav_editor_close(&editor);
	}
	test_end();
}

/* A small set knows the period of each element, in any order of adding. */
static void
test_exact(void)
{
	FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .keep = 40};
	FavEditor	editor;
	int32_t		now;
	int32_t		i;

	test_begin("dated: a small set forgets each element in its own period");
	fav_editor_new(&editor, &params);
	CHECK(fav_editor_add(&editor, 1) == FAV_UNDATED && !editor.changed);
	/* 0, 3, 6, ... 38, 1, 4, ... */
	for (i = 0; i < 40; i++)
		CHECK(fav_editor_add_at(&editor, fav_hash_integer(3 * i % 40, 0), 3 * i % 40) == FAV_OK);
	for (now = 39; now < 82; now++)
	{
		Value		value;

		CHECK(fav_editor_expire(&editor, now) == FAV_OK);
		value_from_editor(&value, &editor);
		CHECK(fav_count(&value.filter) == (uint64_t) (now <= 40 ? 40 : now > 79 ? 0 : 80 - now));
		CHECK(fav_oldest(&value.filter) == (now <= 40 ? 0 : now > 79 ? FAV_NO_PERIOD : now - 40));
		for (i = 0; i < 40; i++)
			CHECK(fav_contains(&value.filter, fav_hash_integer(i, 0)) == (i + 40 >= now));
		value_free(&value);
	}
	fav_editor_close(&editor);
	test_end();
}

/* Removing what was forgotten, or never added, affects no other element, though a slice may report it. */
static void
test_no_contract(void)
{
	FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = 0.3, .region_size = 7, .keep = 8};
	FavEditor	editor;
	uint32_t	reported = 0;
	int64_t		i;

	test_begin("dated: no element is lost when another one is removed that is not there");
	fav_editor_new(&editor, &params);
	for (i = 0; i < 2000; i++)
		CHECK(fav_editor_add_at(&editor, fav_hash_integer(i, 0), 0) == FAV_OK);
	for (i = 2000; i < 4000; i++)
		CHECK(fav_editor_add_at(&editor, fav_hash_integer(i, 0), 4) == FAV_OK);
	CHECK(fav_editor_expire(&editor, 9) == FAV_OK);
	for (i = -2000; i < 2000; i++)
	{
		reported += fav_editor_contains(&editor, fav_hash_integer(i, 0));
		CHECK(fav_editor_remove(&editor, fav_hash_integer(i, 0)) == FAV_OK);
		CHECK(!fav_editor_contains(&editor, fav_hash_integer(i, 0)));
	}
	CHECK(reported > 50);
	for (i = 2000; i < 4000; i++)
		CHECK(fav_editor_contains(&editor, fav_hash_integer(i, 0)));
	CHECK(fav_editor_expire(&editor, 13) == FAV_OK);
	CHECK(fav_is_empty(&editor.filter) && editor.tombstones.count == 0);
	fav_editor_close(&editor);
	test_end();
}

/* Out of memory at any allocation, nothing is lost. */
static void
test_no_memory(void)
{
	FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .keep = 5};
	unsigned	n;

	test_begin("dated: out of memory, what is to be kept is kept");
	for (n = 1; n < 30; n++)
	{
		FavEditor	editor;
		int64_t		i;

		fav_editor_new(&editor, &params);
		for (i = 0; i < 2000; i++)
			CHECK(fav_editor_add_at(&editor, fav_hash_integer(i, 0), (int32_t) (i / 500)) == FAV_OK);
		for (i = 1600; i < 2000; i += 3)
			CHECK(fav_editor_remove(&editor, fav_hash_integer(i, 0)) == FAV_OK);
		fail_allocation(n);
		for (i = 2000; i < 4000; i++)
			(void) fav_editor_add_at(&editor, fav_hash_integer(i, 0), (int32_t) (i / 500));
		fail_allocation(0);
		for (i = 1000; i < 2000; i++)
			if (i < 1600 || (i - 1600) % 3 != 0)
				CHECK(fav_editor_contains(&editor, fav_hash_integer(i, 0)));
		CHECK(fav_editor_expire(&editor, 100) == FAV_OK && editor.filter.nslices == 0 && editor.filter.nrecent == 0);
		CHECK(editor.tombstones.count == 0 && editor.filter.elements == 0);
		fav_editor_close(&editor);
		CHECK(allocated_bytes() == 0);
	}
	test_end();
}

/* Three levels, written at different times, answer in the newest period of all. */
static void
test_levels(void)
{
	FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = 0.001, .region_size = 7, .keep = 30};
	FavEditor	editors[3];
	Value		base;
	Value		middle;
	Value		recent;
	FavLevels	levels = {&base.filter, &middle.filter, &recent.filter};
	FavFilter	stack;
	uint8_t    *tombstones;
	int32_t		period;
	uint32_t	wrong = 0;
	int64_t		i;

	test_begin("dated: levels");
	for (i = 0; i < 3; i++)
		fav_editor_new(&editors[i], &params);

	/* element i is of period i / 100: 0 .. 19 in base, 20 .. 29 in middle, 49 in recent */
	for (i = 0; i < 2000; i++)
		CHECK(fav_editor_add_at(&editors[0], fav_hash_integer(i, 0), (int32_t) i / 100) == FAV_OK);
	CHECK(fav_editor_flush(&editors[0]) == FAV_OK);
	for (; i < 3000; i++)
		CHECK(fav_editor_add_at(&editors[1], fav_hash_integer(i, 0), (int32_t) i / 100) == FAV_OK);
	/* 0 comes again */
	CHECK(fav_editor_add_at(&editors[1], fav_hash_integer(0, 0), 25) == FAV_OK);
	CHECK(fav_editor_flush(&editors[1]) == FAV_OK);
	CHECK(editors[1].filter.newest == 29 && editors[1].filter.nrecent == 0);
	for (i = 4900; i < 4950; i++)
		CHECK(fav_editor_add_at(&editors[2], fav_hash_integer(i, 0), (int32_t) i / 100) == FAV_OK);
	CHECK(fav_editor_exclude(&editors[2], fav_hash_integer(2950, 0)) == FAV_OK);
	value_from_editor(&base, &editors[0]);
	value_from_editor(&middle, &editors[1]);
	value_from_editor(&recent, &editors[2]);

	fav_levels_forget(&base.filter, &middle.filter, &recent.filter);
	period = recent.filter.newest;
	CHECK(period == 49 && base.filter.newest == 49 && middle.filter.newest == 49);
	CHECK(fav_levels_stack(&levels, &stack, &tombstones) == FAV_OK);
	for (i = 0; i < 5000; i++)
	{
		uint64_t	hash = fav_hash_integer(i, 0);
		bool		found = levels_contain(&levels, hash);

		CHECK(found == fav_contains(&stack, hash));
		if (i == 2950)
			CHECK(!found);
		else if (i == 0 || (i >= 1900 && i < 3000) || (i >= 4900 && i < 4950))
			CHECK(found);
		else if (i < 1600 || i >= 3000)
			wrong += found;
	}
	CHECK(wrong < 20);
	fav_free(tombstones);
	for (i = 0; i < 3; i++)
		fav_editor_close(&editors[i]);
	value_free(&base);
	value_free(&middle);
	value_free(&recent);
	test_end();
}

/* Bytes of a dated value that are changed, and why it is refused then. */
static void
test_refusals(void)
{
	FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .keep = 20};
	FavEditor	editor;
	Value		value;
	FavFilter	filter;
	FavProblem	problem;
	size_t		entry;
	size_t		i;

	test_begin("dated: a value with wrong periods is refused");
	fav_editor_new(&editor, &params);
	for (i = 0; i < 1000; i++)
		CHECK(fav_editor_add_at(&editor, fav_hash_integer((int64_t) i, 0), (int32_t) (i / 90)) == FAV_OK);
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	CHECK(value.filter.nslices > 2 && value.filter.nruns > 1 && value.filter.newest == 11);
	entry = fav_entry_offset(&value.filter, 1);
	{
		const struct
		{
			const char *what;
			size_t		at;
			uint32_t	width;
			uint32_t	number;
			const char *reason;
		}			changes[] = {
			{"keep 0", FAV_AT_KEEP, 4, 0, "keeps elements for 0"},
			{"keep 2^31", FAV_AT_KEEP, 4, UINT32_C(1) << 31, "keeps elements for 2147483648"},
			{"a shorter keep", FAV_AT_KEEP, 4, 2, "among the last"},
			{"no newest period", FAV_AT_NEWEST, 4, (uint32_t) FAV_NO_PERIOD, "has a newest period"},
			{"an earlier newest period", FAV_AT_NEWEST, 4, 10, "among the last"},
			{"a later newest period", FAV_AT_NEWEST, 4, 1000, "among the last"},
			{"not dated", FAV_AT_FLAGS, 1, 0, "Unknown flags and reserved"},
			{"a run less", FAV_AT_NRUNS, 1, value.filter.nruns - 1, "The runs have"},
			{"255 runs", FAV_AT_NRUNS, 1, 255, ""},
			{"an empty run", FAV_DATED_FRONT_SIZE + FAV_RUN_AT_COUNT, 1, 0, "Run 1 of recent hashes is empty"},
			{"a long run", FAV_DATED_FRONT_SIZE + FAV_RUN_AT_COUNT, 1, 255, "The runs have"},
			{"an early run", FAV_DATED_FRONT_SIZE + FAV_RUN_AT_PERIOD, 4, 1, "do not descend"},
			{"a late run", FAV_DATED_FRONT_SIZE + FAV_RUN_AT_PERIOD, 4, 12, "among the last"},
			{"first after last", entry + FAV_SLICE_AT_FIRST, 4, INT32_MAX, "Slice 2 has the periods"},
			{"first in an earlier span", entry + FAV_SLICE_AT_FIRST, 4, (uint32_t) INT32_MIN, "Slice 2 has the periods"},
			{"last after newest", entry + FAV_SLICE_AT_LAST, 4, 12, "Slice 2 has the periods"},
			{"last too old", entry + FAV_SLICE_AT_LAST, 4, (uint32_t) -100, "Slice 2 has the periods"},
		};

		for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		{
			uint8_t    *bytes = malloc(value.size);
			uint32_t	j;

			memcpy(bytes, value.bytes, value.size);
			for (j = 0; j < changes[i].width; j++)
				bytes[changes[i].at + j] = (uint8_t) (changes[i].number >> 8 * j);
			CHECK_THAT(fav_open(&filter, bytes, value.size, value.size, &problem) == FAV_MALFORMED &&
					   strstr(problem.detail, changes[i].reason) != NULL,
					   "%s: %s", changes[i].what, problem.detail);
			free(bytes);
		}
	}
	/* a head that is cut off, at every length */
	for (i = 0; i < value.size; i++)
	{
		uint8_t    *bytes = malloc(i > 0 ? i : 1);

		memcpy(bytes, value.bytes, i);
		CHECK((fav_open(&filter, bytes, i, i, &problem) == FAV_OK) == (i == FAV_SHORT_SIZE));
		CHECK((fav_open(&filter, bytes, i, value.size, &problem) == FAV_OK) == (i >= fav_head_size(&value.filter)));
		CHECK(fav_head_is_longer(bytes, i) == (i >= FAV_DATED_FRONT_SIZE && i < fav_head_size(&value.filter)));
		free(bytes);
	}
	value_free(&value);
	test_end();
}

int
main(int argc, char **argv)
{
	unsigned	rounds = argc > 1 ? (unsigned) strtoul(argv[1], NULL, 10) : 1;
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t) time(NULL);
	static const uint32_t keeps[] = {1, 2, 7, 15, 16, 30, 64, 100, 720, INT32_MAX};
	unsigned	round;
	size_t		i;

	test_steady(0.01, 30, 100, 100, 25);
	test_steady(0.01, 30, 1000, 100, 20);
	test_steady(0.01, 7, 1000, 100, 20);
	test_steady(0.01, 15, 1000, 100, 20);
	test_steady(0.01, 720, 20, 20, 21);
	test_steady(0.01, 30, 10, 100, 100);
	test_order("random", 30, 60000);
	test_order("late", 30, 60000);
	test_order("descending", 15, 60000);
	test_order("growing", 30, 300000);
	test_history(64, 20, 1000);
	test_history(64, 200, 100);
	test_history(30, 40, 1000);
	test_limit();
	test_capacity();
	test_exact();
	test_levels();
	test_no_contract();
	test_refusals();
	test_no_memory();
	printf("seed %llu\n", (unsigned long long) seed);
	for (i = 0; i < sizeof(keeps) / sizeof(keeps[0]) - 1; i++)
		test_bursts(keeps[i], seed + i);
	test_random_periods(64, 0, false, 150000, 1);
	test_random_periods(100, 0, false, 30000, 1795063664);
	for (i = 0; i < sizeof(keeps) / sizeof(keeps[0]) - 1; i++)
	{
		test_random_periods(keeps[i], 0, false, 30000, seed + i);
		test_random_periods(keeps[i], 5 + 4000 / (keeps[i] + 1), false, 30000, seed + i);
		test_random_periods(keeps[i], 0, true, 60000, i + 1);
		test_random_periods(keeps[i], 0, true, 60000, seed + i);
	}
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
