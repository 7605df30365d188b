/*
 * model.c
 *		Random operations on a filter, compared with an exact set.
 *
 * The test asserts:
 *
 *		- Every element of the set is found (no false negatives).
 *		- An element is absent right after its delete.  An excluded element is absent
 *		  until it is added again.
 *		- Elements that were never added are found at most as often as promised.  With
 *		  the promised rate p and N probes, the count may exceed p * N by five standard
 *		  deviations of a binomial distribution (one check in three million does so by
 *		  chance), by 2 % of p for the precision of the formulas, and by one.
 *		- The bytes survive writing, opening and checking at any moment.
 *
 * One round goes through all error rates and region sizes.  For each it tests a filter
 * that grows from nothing, one with a known capacity, and one so small that it remains
 * exact.  Then a filter grows by a factor of 1,000.  All random choices depend on the
 * seed, which is printed.
 *
 * Usage: model [rounds [seed]]
 */
#include <math.h>
#include <time.h>

#include "harness.h"
#include "hash.h"

#define HOT		16				/* elements that are blocked and unblocked all the time */
#define BATCH	300

typedef struct Model
{
	FavEditor	editor;
	Value		value;			/* the bytes that the editor was opened from */
	FavParams	params;
	uint64_t	random;
	uint32_t	universe;		/* elements are 0 .. universe - 1 */
	uint32_t	live;
	uint8_t    *present;		/* the exact set */
	uint8_t    *excluded;		/* excluded and not added since, so certainly absent */
	bool		excludes;		/* does this run exclude elements? */
	uint32_t   *list;			/* live elements, in any order */
	uint32_t   *position;		/* of an element in that list */
	uint64_t	operations;
} Model;

static uint64_t total_operations;
static uint64_t total_deletes;
static uint64_t total_absent;
static uint64_t total_excluded;
static uint64_t total_members;
static uint64_t total_probes;

static inline uint64_t
hash_of(const Model *model, uint64_t element)
{
	return fav_hash_integer((int64_t) element, model->params.seed);
}

static void
model_begin(Model *model, const FavParams *params, uint32_t universe, uint64_t seed)
{
	memset(model, 0, sizeof(*model));
	model->params = *params;
	model->random = seed;
	model->universe = universe;
	model->present = calloc(universe, 1);
	model->excluded = calloc(universe, 1);
	model->list = malloc(universe * sizeof(uint32_t));
	model->position = malloc(universe * sizeof(uint32_t));
	fav_editor_new(&model->editor, params);
	value_from_editor(&model->value, &model->editor);
}

static void
model_end(Model *model)
{
	total_operations += model->operations;
	fav_editor_close(&model->editor);
	value_free(&model->value);
	free(model->present);
	free(model->excluded);
	free(model->list);
	free(model->position);
	CHECK(allocated_bytes() == 0);
}

static void
model_add(Model *model, uint32_t element)
{
	uint64_t	hash = hash_of(model, element);

	CHECK(fav_editor_add(&model->editor, hash) == FAV_OK);
	CHECK_THAT(fav_editor_contains(&model->editor, hash), "element %u is not there right after its add", element);
	model->excluded[element] = 0;
	if (!model->present[element])
	{
		model->present[element] = 1;
		model->position[element] = model->live;
		model->list[model->live++] = element;
	}
	model->operations++;
}

/* Remove an element from the exact set. */
static void
model_forget(Model *model, uint32_t element)
{
	uint32_t	last = model->list[--model->live];

	CHECK_THAT(!fav_editor_contains(&model->editor, hash_of(model, element)),
			   "element %u is there right after its delete", element);
	model->present[element] = 0;
	model->list[model->position[element]] = last;
	model->position[last] = model->position[element];
	model->operations++;
	total_deletes++;
}

static void
model_del(Model *model, uint32_t element)
{
	uint64_t	hash = hash_of(model, element);

	/* the contract: delete only elements of the set */
	if (!model->present[element])
		return;
	CHECK_THAT(fav_editor_contains(&model->editor, hash), "false negative: element %u", element);
	CHECK(fav_editor_remove(&model->editor, hash) == FAV_OK);
	model_forget(model, element);
}

/* Delete many at once, some of them twice. */
static void
model_del_many(Model *model)
{
	uint32_t	elements[BATCH];
	uint64_t	hashes[BATCH];
	uint32_t	count = 1 + (uint32_t) random_below(&model->random, BATCH);
	uint32_t	i;

	for (i = 0; i < count; i++)
	{
		elements[i] = i > 0 && random_below(&model->random, 20) == 0 ?
			elements[random_below(&model->random, i)] : model->list[random_below(&model->random, model->live)];
		hashes[i] = hash_of(model, elements[i]);
		CHECK_THAT(fav_editor_contains(&model->editor, hashes[i]), "false negative: element %u", elements[i]);
	}
	CHECK(fav_editor_remove_many(&model->editor, hashes, count) == FAV_OK);
	for (i = 0; i < count; i++)
		if (model->present[elements[i]])
			model_forget(model, elements[i]);
}

/* Deleting an element that looks absent changes nothing. */
static void
model_del_absent(Model *model, uint32_t element)
{
	uint64_t	hash = hash_of(model, element);

	if (model->present[element] || fav_editor_contains(&model->editor, hash))
		return;
	CHECK(fav_editor_remove(&model->editor, hash) == FAV_OK);
	CHECK_THAT(!fav_editor_contains(&model->editor, hash), "element %u, absent, is there after a delete", element);
	model->operations++;
	total_absent++;
}

/* Exclude an element, whether it was ever added or not. */
static void
model_exclude(Model *model, uint32_t element)
{
	uint64_t	hash = hash_of(model, element);

	CHECK(fav_editor_exclude(&model->editor, hash) == FAV_OK);
	CHECK_THAT(!fav_editor_contains(&model->editor, hash), "element %u is there right after it was excluded", element);
	if (model->present[element])
		model_forget(model, element);
	else
		model->operations++;
	model->excluded[element] = 1;
	total_excluded++;
}

static inline uint32_t
random_element(Model *model)
{
	return (uint32_t) random_below(&model->random, model->universe);
}

static inline uint32_t
random_member(Model *model)
{
	return model->list[random_below(&model->random, model->live)];
}

/* Write the filter and open it again, as every SQL statement does. */
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
		CHECK_THAT(fav_contains(&model->value.filter, hash_of(model, model->list[i])),
				   "false negative: element %u", model->list[i]);
	total_members += model->live;
	for (i = 0; i < model->universe; i++)
		if (model->excluded[i])
			CHECK_THAT(!fav_contains(&model->value.filter, hash_of(model, i)), "element %u was excluded", i);
}

static void
check_error(Model *model, uint32_t probes)
{
	double		promised = model->params.error_rate * 1.02;
	double		allowed = promised * probes + 5 * sqrt(promised * probes) + 1;
	uint32_t	wrong = 0;
	uint32_t	i;

	for (i = 0; i < probes; i++)
		wrong += fav_contains(&model->value.filter,
							  hash_of(model, (uint64_t) 1 << 40 | next_random(&model->random) >> 20));
	CHECK_THAT(wrong <= allowed, "%u false positives in %u probes, promised are %g, estimated %u elements of %u",
			   wrong, probes, promised * probes,
			   (unsigned) fav_count(&model->value.filter), model->live);
	if (model->value.filter.nslices == 0)
		CHECK_THAT(wrong == 0, "%u false positives in an exact filter", wrong);
	total_probes += probes;
}

static void
check_all(Model *model, uint32_t probes)
{
	model_reopen(model);
	check_members(model);
	check_error(model, probes);
}

/* One random operation.  Of plain adds and deletes, `adding` percent are adds. */
static void
step(Model *model, uint32_t adding)
{
	uint32_t	what = (uint32_t) random_below(&model->random, 1000);
	uint32_t	i;

	if (what < 60)				/* block, unblock, block the same few */
	{
		uint32_t	element = (uint32_t) random_below(&model->random, HOT);

		if (model->present[element])
			model_del(model, element);
		else
			model_add(model, element);
	}
	else if (what < 110 && model->live > 0) /* add an element again */
		model_add(model, random_member(model));
	else if (what == 110)
		for (i = 0; i < BATCH && adding > 0; i++)
			model_add(model, random_element(model));
	else if (what <= 112)
	{
		if (model->live > 0 && adding < 100)
			model_del_many(model);
	}
	else if (what <= 160)
		model_del_absent(model, random_element(model));
	else if (what <= 180 && model->excludes)
		model_exclude(model, random_element(model));
	else if (random_below(&model->random, 100) < adding)
		model_add(model, random_element(model));
	else if (model->live > 0)
		model_del(model, random_member(model));

	if (random_below(&model->random, 4000) == 0)
		model_reopen(model);
}

static void
steps(Model *model, uint64_t operations, uint32_t adding)
{
	uint64_t	end = model->operations + operations;

	while (model->operations < end)
		step(model, adding);
}

/*
 * One run: grow to half of the universe, churn (delete and add every element a few times),
 * shrink, grow again, delete all.
 */
static void
life(const FavParams *params, uint32_t universe, uint64_t operations, uint64_t seed)
{
	Model		model;
	uint32_t	probes = params->error_rate < 0.0005 ? 400000 : 50000;
	uint32_t	i;

	test_begin("model: error rate %g, region size %u, capacity %llu, %u elements, seed %llu",
			   params->error_rate, params->region_size, (unsigned long long) params->capacity,
			   universe / 2, (unsigned long long) seed);
	model_begin(&model, params, universe, seed);
	model.excludes = random_below(&model.random, 3) == 0;
	while (model.live < universe / 2)
		step(&model, 90);
	check_all(&model, probes);
	for (i = 0; i < 4; i++)
	{
		steps(&model, operations / 8, 60);
		check_all(&model, probes / 10);
	}
	check_all(&model, probes);
	while (model.live > universe / 20)
		step(&model, 10);
	check_all(&model, probes / 10);
	while (model.operations < operations)
		step(&model, model.live < universe / 2 ? 80 : 40);
	check_all(&model, probes);

	/* a filter that has dropped its slices must contain nothing */
	while (model.live > 0)
		model_del(&model, model.list[model.live - 1]);
	model_reopen(&model);
	for (i = 0; i < universe; i++)
		CHECK(model.value.filter.nslices > 0 || !fav_contains(&model.value.filter, hash_of(&model, i)));
	model_end(&model);
	test_end();
}

/* Grow from a capacity of 1,000 to 1,000,000 elements, delete a tenth, then replace a tenth. */
static void
growth(double error_rate, uint32_t region_size, uint64_t seed)
{
	FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = error_rate, .region_size = region_size, .seed = seed};
	uint32_t	target = 1000000;
	uint32_t	probes = error_rate < 0.0005 ? 1000000 : 200000;
	Model		model;
	uint32_t	next = 0;
	uint32_t	check = 1000;
	uint32_t	i;

	test_begin("model: error rate %g, region size %u, grown from 1000 to %u, seed %llu",
			   error_rate, region_size, target, (unsigned long long) seed);
	model_begin(&model, &params, target + target / 10, seed);
	while (next < target)
	{
		model_add(&model, next++);
		if (next == check)
		{
			check_all(&model, probes);
			check *= 10;
		}
	}
	for (i = 0; i < target / 10; i++)
		model_del(&model, random_member(&model));
	check_all(&model, probes);
	for (i = 0; i < target / 10; i++)
	{
		model_add(&model, next++);
		model_del(&model, random_member(&model));
	}
	check_all(&model, probes);
	model_end(&model);
	test_end();
}

static void
all_rates_and_sizes(uint64_t *random)
{
	static const double error_rates[] = {0.2, 0.05, 0.01, 0.001, 0.0001};
	static const uint32_t region_sizes[] = {1, 3, 7, 10, 31};
	uint32_t	i;
	uint32_t	j;

	for (i = 0; i < sizeof(error_rates) / sizeof(error_rates[0]); i++)
		for (j = 0; j < sizeof(region_sizes) / sizeof(region_sizes[0]); j++)
		{
			FavParams	params = {.kind = FAV_KIND_INTEGER, .error_rate = error_rates[i], .region_size = region_sizes[j]};

			/* exact filters without slices, then sizes around the first slice */
			params.seed = next_random(random);
			params.capacity = 1 + random_below(random, 1000);
			life(&params, FAV_RECENT_MAX, 20000, next_random(random));
			life(&params, 600 + (uint32_t) random_below(random, 1000), 100000, next_random(random));

			params.capacity = 1;
			life(&params, 10000 + (uint32_t) random_below(random, 10000), 300000, next_random(random));
			params.seed = 0;
			params.capacity = 5000 + random_below(random, 10000);
			life(&params, 2 * (uint32_t) params.capacity, 300000, next_random(random));
		}
}

int
main(int argc, char **argv)
{
	int			rounds = argc > 1 ? atoi(argv[1]) : 1;
	uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t) time(NULL);
	clock_t		start = clock();

	for (; rounds > 0; rounds--, seed++)
	{
		uint64_t	random = seed;

		printf("model: seed %llu\n", (unsigned long long) seed);
		all_rates_and_sizes(&random);
		growth(0.2, 3, next_random(&random));
		growth(0.01, 7, next_random(&random));
		growth(0.0001, 10, next_random(&random));
		printf("model: %.1f million operations, of which %.1f million deletes, %.1f million of what is absent and %.1f million exclusions; %.1f million probes for members, "
			   "%.1f million for others; %.0f s\n",
			   (double) total_operations / 1e6, (double) total_deletes / 1e6, (double) total_absent / 1e6, (double) total_excluded / 1e6, (double) total_members / 1e6,
			   (double) total_probes / 1e6, (double) (clock() - start) / CLOCKS_PER_SEC);
		fflush(stdout);
	}
	test_begin("model: at least 20 million operations");
	CHECK_THAT(total_operations >= 20000000, "only %llu", (unsigned long long) total_operations);
	test_end();
	return test_summary("model");
}
