/*
 * model.c
 *		Random operations on a filter, compared with an exact set.
 *
 * Each run has its own seed, parameters and mixture of operations.  What is
 * asserted:
 *
 *		- every element of the set is found, always (no false negatives);
 *		- an element is not found right after its delete;
 *		- elements never added are found at most as often as promised.  With p
 *		  the promise and N questions, the count may exceed p * N by five
 *		  standard deviations of a binomial distribution (one run in three
 *		  million would by chance), and by 2 % of p for the model's precision;
 *		- the bytes survive writing, opening and checking at any moment.
 *
 * Usage: model [operations in millions [first seed]]
 */
#include <math.h>
#include <time.h>

#include "harness.h"
#include "hash.h"

#define HOT		16				/* elements blocked and unblocked all the time */

typedef struct Model
{
	FavEditor	editor;
	Value		value;			/* the bytes that the editor was opened from */
	FavParams	params;
	uint64_t	random;
	uint32_t	universe;		/* elements are 0 .. universe - 1 */
	uint32_t	live;
	uint8_t    *present;		/* the exact set */
	uint32_t   *list;			/* live elements, in any order */
	uint32_t   *position;		/* of an element in that list */
	uint64_t	operations;
} Model;

static uint64_t total_operations;
static uint64_t total_lookups;

static inline uint64_t
hash_of(const Model *model, uint64_t element)
{
	return fav_hash_integer((int64_t) element, model->params.seed);
}

static void
model_add(Model *model, uint32_t element)
{
	uint64_t	hash = hash_of(model, element);

	CHECK(fav_editor_add(&model->editor, hash) == FAV_OK);
	CHECK_THAT(fav_editor_contains(&model->editor, hash), "element %u is not there right after its add", element);
	if (!model->present[element])
	{
		model->present[element] = 1;
		model->position[element] = model->live;
		model->list[model->live++] = element;
	}
	model->operations++;
}

static void
model_del(Model *model, uint32_t element)
{
	uint64_t	hash = hash_of(model, element);
	uint32_t	last;

	/* the contract: only what is there is deleted */
	if (!model->present[element])
		return;
	CHECK_THAT(fav_editor_contains(&model->editor, hash), "false negative: element %u", element);
	CHECK(fav_editor_del(&model->editor, hash) == FAV_OK);
	CHECK_THAT(!fav_editor_contains(&model->editor, hash), "element %u is there right after its delete", element);
	model->present[element] = 0;
	last = model->list[--model->live];
	model->list[model->position[element]] = last;
	model->position[last] = model->position[element];
	model->operations++;
}

/* To bytes and back, as every SQL statement does. */
static void
model_reopen(Model *model)
{
	Value		next;

	value_from_editor(&next, &model->editor);
	fav_editor_close(&model->editor);
	value_free(&model->value);
	model->value = next;
	fav_editor_open(&model->editor, &model->value.filter);
}

static void
check_members(Model *model)
{
	uint32_t	i;

	for (i = 0; i < model->live; i++)
	{
		uint64_t	hash = hash_of(model, model->list[i]);

		CHECK_THAT(fav_editor_contains(&model->editor, hash), "false negative: element %u", model->list[i]);
		CHECK_THAT(fav_contains(&model->value.filter, hash), "false negative in the bytes: element %u", model->list[i]);
	}
	total_lookups += 2 * (uint64_t) model->live;
}

static void
check_error(Model *model, uint32_t questions)
{
	double		promised = model->params.error_rate * 1.02;
	double		allowed = promised * questions + 5 * sqrt(promised * questions) + 1;
	uint32_t	wrong = 0;
	uint32_t	i;

	for (i = 0; i < questions; i++)
		wrong += fav_contains(&model->value.filter,
							  hash_of(model, (uint64_t) 1 << 40 | next_random(&model->random) >> 20));
	CHECK_THAT(wrong <= allowed, "%u false positives in %u questions, promised are %g, estimated %u elements of %u",
			   wrong, questions, promised * questions,
			   (unsigned) fav_count(&model->value.filter), model->live);
	if (model->value.filter.nslices == 0)
		CHECK_THAT(wrong == 0, "%u false positives in an exact filter", wrong);
	total_lookups += questions;
}

static void
check_all(Model *model)
{
	model_reopen(model);
	check_members(model);
	check_error(model, 20000);
}

static void
run(uint64_t seed, const FavParams *params, uint32_t universe, uint64_t operations)
{
	Model		model = {.params = *params, .random = seed, .universe = universe};
	uint32_t	live_target = universe / 2;
	uint64_t	next_check = 1000;
	uint32_t	i;

	model.present = calloc(universe, 1);
	model.list = malloc(universe * sizeof(uint32_t));
	model.position = malloc(universe * sizeof(uint32_t));
	fav_editor_new(&model.editor, params);
	value_from_editor(&model.value, &model.editor);

	while (model.operations < operations)
	{
		uint32_t	what = (uint32_t) random_below(&model.random, 100);
		uint32_t	element = (uint32_t) random_below(&model.random, universe);

		if (what < 5)			/* block, unblock, block the same few */
		{
			element = (uint32_t) random_below(&model.random, HOT);
			if (model.present[element])
				model_del(&model, element);
			else
				model_add(&model, element);
		}
		else if (what < 10 && model.live > 0)	/* again */
			model_add(&model, model.list[random_below(&model.random, model.live)]);
		else if (what == 10)	/* a batch */
			for (i = 0; i < 300; i++)
				model_add(&model, (uint32_t) random_below(&model.random, universe));
		else if (what == 11 && model.live > 300)
			for (i = 0; i < 300; i++)
				model_del(&model, model.list[random_below(&model.random, model.live)]);
		else if (model.live < live_target ? what < 80 : what < 30)
			model_add(&model, element);
		else if (model.live > 0)
			model_del(&model, model.list[random_below(&model.random, model.live)]);

		if (random_below(&model.random, 5000) == 0)
			model_reopen(&model);
		if (random_below(&model.random, 100000) == 0)
			live_target = (uint32_t) random_below(&model.random, universe);
		if (model.operations >= next_check)
		{
			check_all(&model);
			next_check += operations / 20 + 1;
		}
	}
	check_all(&model);

	/* and away with all of it */
	while (model.live > 0)
		model_del(&model, model.list[model.live - 1]);
	model_reopen(&model);
	for (i = 0; i < universe; i++)
		CHECK(model.value.filter.nslices > 0 || !fav_contains(&model.value.filter, hash_of(&model, i)));

	total_operations += model.operations;
	fav_editor_close(&model.editor);
	value_free(&model.value);
	free(model.present);
	free(model.list);
	free(model.position);
	CHECK(allocated_bytes() == 0);
}

int
main(int argc, char **argv)
{
	static const double error_rates[] = {0.2, 0.05, 0.01, 0.001, 0.0001};
	static const uint32_t region_sizes[] = {1, 3, 7, 10, 31};
	static const uint64_t capacities[] = {1, 1000, 100000};
	static const uint32_t universes[] = {150, 4000, 60000, 1000000};
	double		millions = argc > 1 ? atof(argv[1]) : 24;
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t) time(NULL);
	clock_t		start = clock();

	printf("model: first seed %llu\n", (unsigned long long) seed);
	while (total_operations < millions * 1e6)
	{
		uint64_t	random = seed;
		FavParams	params;
		uint32_t	universe;

		params.error_rate = error_rates[random_below(&random, 5)];
		params.region_size = region_sizes[random_below(&random, 5)];
		params.capacity = capacities[random_below(&random, 3)];
		params.seed = random_below(&random, 2) ? next_random(&random) : 0;
		universe = universes[random_below(&random, 4)];
		test_begin("model: seed %llu, error rate %g, region size %u, capacity %llu, universe %u",
				   (unsigned long long) seed, params.error_rate, params.region_size,
				   (unsigned long long) params.capacity, universe);
		run(random, &params, universe, universe < 1000 ? 20000 : universe < 10000 ? 200000 : 1000000);
		test_end();
		seed++;
	}
	printf("model: %.1f million operations, %.1f million look-ups, %.0f s\n",
		   total_operations / 1e6, total_lookups / 1e6, (double) (clock() - start) / CLOCKS_PER_SEC);
	return test_summary();
}
