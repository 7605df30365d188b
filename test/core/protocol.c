/*
 * protocol.c
 *		Measure and print the figures of docs/internals/ALGORITHM.md, and check their bounds.
 *
 *		protocol [seed]
 *
 * Bounds are wide enough to hold for every seed.
 */
#include <math.h>

#include "harness.h"
#include "hash.h"

static uint64_t seed;

static inline uint64_t
hash_of(uint64_t element)
{
	return fav_hash_integer((int64_t) element, seed);
}

/* Elements that are never added. */
static inline uint64_t
stranger(uint64_t number)
{
	return hash_of(number | UINT64_C(1) << 50);
}

static void
add(FavEditor *editor, uint64_t element)
{
	CHECK(fav_editor_add(editor, hash_of(element)) == FAV_OK);
}

static void
del(FavEditor *editor, uint64_t element)
{
	CHECK(fav_editor_remove(editor, hash_of(element)) == FAV_OK);
	CHECK_THAT(!fav_editor_contains(editor, hash_of(element)), "there right after its delete");
}

static uint64_t
count_present(const FavFilter *filter, uint64_t from, uint64_t to)
{
	uint64_t	present = 0;
	uint64_t	i;

	for (i = from; i < to; i++)
		present += fav_contains(filter, hash_of(i));
	return present;
}

static double
measured_error(const FavFilter *filter, uint32_t probes)
{
	uint32_t	wrong = 0;
	uint32_t	i;

	for (i = 0; i < probes; i++)
		wrong += fav_contains(filter, stranger(i));
	return (double) wrong / probes;
}

/* Five standard deviations of a rate p measured with this many probes. */
static double
with_margin(double p, uint32_t probes)
{
	return 1.02 * p + 5 * sqrt(p / probes) + 1.0 / probes;
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* The size of a fresh value of these elements. */
static size_t
fresh_size(const FavParams *params, const uint64_t *elements, size_t count)
{
	uint64_t   *hashes = malloc(count * sizeof(uint64_t));
	FavEditor	editor;
	size_t		size;
	size_t		i;

	for (i = 0; i < count; i++)
		hashes[i] = hash_of(elements[i]);
	qsort(hashes, count, sizeof(uint64_t), compare_hashes);
	CHECK(fav_editor_build(&editor, params, hashes, count) == FAV_OK);
	size = fav_size(&editor.filter);
	fav_editor_close(&editor);
	free(hashes);
	return size;
}

static void
original_protocol(void)
{
	FavParams	params = {.capacity = 100000, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .seed = seed};
	uint64_t	tenth = params.capacity / 10;
	FavEditor	editor;
	Value		value;
	uint64_t	present;
	uint64_t	i;

	test_begin("protocol: filled to capacity, a tenth deleted");
	fav_editor_new(&editor, &params);
	for (i = 0; i < params.capacity; i++)
		add(&editor, i);
	for (i = 0; i < tenth; i++)
		del(&editor, i);
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	present = count_present(&value.filter, 0, tenth);
	printf("protocol: filled to capacity (100,000 at 1 %%), a tenth deleted: of the deleted %.2f %% are present"
		   " (the inventors of FAV report 0.4 to 0.6 %%), of the others %.2f %%\n",
		   100.0 * present / tenth,
		   100.0 * count_present(&value.filter, tenth, params.capacity) / (params.capacity - tenth));
	printf("protocol: of these deletes %.1f %% are remembered by their hash; %.2f bits per element in all\n",
		   100.0 * value.filter.ntombstones / tenth, 8.0 * (value.size + 4) / (params.capacity - tenth));
	CHECK(present == 0);
	CHECK(count_present(&value.filter, tenth, params.capacity) == params.capacity - tenth);
	value_free(&value);
	test_end();
}

static void
resurrection(void)
{
	FavParams	params = DEFAULT_PARAMS;
	uint64_t	live = 100000;
	FavEditor	editor;
	Value		value;
	FavMeasure	measure;
	uint64_t	back;
	uint64_t	i;

	test_begin("protocol: deleted elements that look present again after a turnover");
	params.seed = seed;
	fav_editor_new(&editor, &params);
	for (i = 0; i < live; i++)
		add(&editor, i);
	for (i = 0; i < live; i++)
	{
		add(&editor, live + i);
		del(&editor, i);
	}
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	fav_measure(&value.filter, &measure);
	back = count_present(&value.filter, 0, live);
	printf("protocol: grown to 100,000, all replaced: %.3f %% of the deleted are back (bound: 0.6 %% or the error"
		   " rate); %u hashes remembered, %u slices, %.1f bits per element, estimated error %.3f %%, needs rebuild: %s\n",
		   100.0 * back / live, value.filter.ntombstones, value.filter.nslices, 8.0 * (value.size + 4) / live,
		   100 * measure.error, fav_needs_rebuild(&value.filter) ? "yes" : "no");
	CHECK(back <= live * fmax(params.error_rate, 0.006));
	CHECK(count_present(&value.filter, live, 2 * live) == live);
	value_free(&value);
	test_end();
}

static void
space(void)
{
	static const size_t built[] = {10000, 30000, 100000, 1000000};
	FavParams	params = {.capacity = 100000, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .seed = seed};
	uint64_t   *elements = malloc(1000000 * sizeof(uint64_t));
	FavEditor	editor;
	Value		value;
	double		bits;
	uint64_t	i;
	uint64_t	next;

	/* including the varlena header of four bytes */
	test_begin("protocol: space");
	fav_editor_new(&editor, &params);
	for (i = 0; i < params.capacity; i++)
		add(&editor, i);
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	bits = 8.0 * (value.size + 4) / params.capacity;
	printf("protocol: capacity of 100,000 known: %.2f bits per element (bound: 14)\n", bits);
	CHECK(bits <= 14);
	value_free(&value);

	params.capacity = 1000;
	fav_editor_new(&editor, &params);
	for (i = 0, next = 1000; i < 1000000;)
	{
		add(&editor, i++);
		if (i == next)
		{
			value_from_editor(&value, &editor);
			bits = 8.0 * (value.size + 4) / i;
			printf("protocol: grown from 1,000 to %llu: %.2f bits per element, %u slices%s\n",
				   (unsigned long long) i, bits, value.filter.nslices, i == 1000000 ? " (bound: 28)" : "");
			CHECK(i < 1000000 || bits <= 28);
			value_free(&value);
			next *= 10;
		}
	}
	fav_editor_close(&editor);

	for (i = 0; i < 1000000; i++)
		elements[i] = i;
	params.capacity = 1;
	for (i = 0; i < sizeof(built) / sizeof(built[0]); i++)
	{
		bits = 8.0 * (fresh_size(&params, elements, built[i]) + 4) / built[i];
		printf("protocol: built from %zu at once: %.2f bits per element (bound: 13.5)\n", built[i], bits);
		CHECK(bits <= 13.5);
	}
	free(elements);
	test_end();
}

/*
 * Churn with a constant number of elements: add one, delete another, which is the oldest or a
 * random one.  Measure ten times per turnover.
 */
#define LIVE		10000
#define TURNOVERS	20

typedef struct Churn
{
	FavEditor	editor;
	Value		value;			/* the editor is opened on these bytes */
	FavParams	params;
	uint64_t	live[LIVE];
	uint64_t	next;			/* the next new element */
	uint64_t	random;
	bool		fifo;
	uint32_t	rebuild_at;		/* in tenths of a turnover; 0: not yet */
} Churn;

static void
churn_reopen(Churn *churn)
{
	Value		next;

	value_from_editor(&next, &churn->editor);
	fav_editor_close(&churn->editor);
	value_free(&churn->value);
	churn->value = next;
	fav_editor_open(&churn->editor, &churn->value.filter);
}

static void
churn_tenth(Churn *churn, uint32_t tenth)
{
	uint32_t	i;

	for (i = 0; i < LIVE / 10; i++)
	{
		uint32_t	victim = churn->fifo ? tenth % 10 * (LIVE / 10) + i :
			(uint32_t) random_below(&churn->random, LIVE);

		del(&churn->editor, churn->live[victim]);
		churn->live[victim] = churn->next++;
		add(&churn->editor, churn->live[victim]);
	}
	churn_reopen(churn);
}

static void
churn_report(const Churn *churn, uint32_t turnovers, const FavMeasure *measure, size_t fresh)
{
	const FavFilter *filter = &churn->value.filter;
	double		error = measured_error(filter, 100000);
	uint64_t	gone = churn->next - LIVE;
	uint64_t	back = count_present(filter, 0, churn->next) - LIVE;

	CHECK_THAT(error <= with_margin(churn->params.error_rate, 100000), "error %g", error);
	if (turnovers <= 4 || turnovers % 5 == 0)
		printf("protocol:   %2u turnovers: %.2f times fresh, %u slices, %5u deleted, error %.2f %% (estimated %.2f %%), "
			   "%.2f %% of all deleted are back, count %+.1f %%%s\n",
			   turnovers, (double) churn->value.size / fresh, filter->nslices, filter->ntombstones,
			   100 * error, 100 * measure->error, gone > 0 ? 100.0 * back / gone : 0.0,
			   100.0 * fav_count(filter) / LIVE - 100, fav_needs_rebuild(filter) ? ", needs rebuild" : "");
}

static void
churn_check(Churn *churn, uint32_t tenth)
{
	const FavFilter *filter = &churn->value.filter;
	size_t		fresh = fresh_size(&churn->params, churn->live, LIVE);
	FavMeasure	measure;
	uint32_t	i;

	fav_measure(filter, &measure);
	if (fav_needs_rebuild(filter))
	{
		if (churn->rebuild_at == 0)
			churn->rebuild_at = tenth;
	}
	else
		CHECK_THAT(measure.error <= churn->params.error_rate && churn->value.size < 3 * fresh,
				   "needs no rebuild after %.1f turnovers: error %g, %zu bytes, fresh %zu",
				   tenth / 10.0, measure.error, churn->value.size, fresh);

	/* an add that meets a false positive is not counted, but its delete is */
	CHECK_THAT(fabs((double) fav_count(filter) / LIVE - 1) < (churn->rebuild_at == 0 ? 0.05 : 0.25),
			   "%llu elements counted", (unsigned long long) fav_count(filter));
	for (i = 0; i < LIVE; i++)
		CHECK_THAT(fav_contains(filter, hash_of(churn->live[i])), "false negative");
	if (tenth % 10 == 0)
		churn_report(churn, tenth / 10, &measure, fresh);
}

static void
churn(uint64_t capacity, bool fifo)
{
	Churn	   *churn = calloc(1, sizeof(Churn));
	uint32_t	tenth;

	test_begin("protocol: churn from a capacity of %llu, %s deleted", (unsigned long long) capacity,
			   fifo ? "the oldest" : "any");
	printf("protocol: %d live elements, capacity %llu, one added and %s deleted:\n", LIVE,
		   (unsigned long long) capacity, fifo ? "the oldest" : "any other");
	churn->params = (FavParams) {.capacity = capacity, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7, .seed = seed};
	churn->random = seed;
	churn->fifo = fifo;
	fav_editor_new(&churn->editor, &churn->params);
	for (; churn->next < LIVE; churn->next++)
	{
		churn->live[churn->next] = churn->next;
		add(&churn->editor, churn->next);
	}
	churn_reopen(churn);
	for (tenth = 0; tenth < 10 * TURNOVERS; tenth++)
	{
		churn_check(churn, tenth);
		churn_tenth(churn, tenth);
	}
	churn_check(churn, tenth);
	printf("protocol:   it needed a rebuild after %.1f turnovers\n", churn->rebuild_at / 10.0);
	fav_editor_close(&churn->editor);
	value_free(&churn->value);
	free(churn);
	CHECK(allocated_bytes() == 0);
	test_end();
}

/*
 * Replace a share of the elements at once, repeatedly, until the filter needs a rebuild.  Until
 * then, deleted elements and elements that were never added are reported within the error rate.
 */
static void
exchange(double error_rate, uint64_t capacity, uint32_t share)
{
	FavParams	params = {.capacity = capacity, .kind = FAV_KIND_INTEGER, .error_rate = error_rate, .region_size = 7, .seed = seed};
	uint32_t	probes = error_rate < 0.0005 ? 2000000 : 400000;
	uint64_t	live = 30000;
	uint64_t	exchanged = live * share / 100;
	uint64_t	first = 0;
	double		turnovers;
	FavEditor	editor;
	uint64_t	i;

	fav_editor_new(&editor, &params);
	for (i = 0; i < live; i++)
		add(&editor, i);
	for (;;)
	{
		Value		value;
		double		error;
		double		back;

		for (i = 0; i < exchanged; i++)
			del(&editor, first + i);
		for (i = 0; i < exchanged; i++)
			add(&editor, first + live + i);
		first += exchanged;
		turnovers = (double) first / live;
		value_from_editor(&value, &editor);
		CHECK(count_present(&value.filter, first, first + live) == live);
		if (fav_needs_rebuild(&value.filter) || turnovers > 3)
		{
			value_free(&value);
			break;
		}
		error = measured_error(&value.filter, probes);
		back = (double) count_present(&value.filter, 0, first) / first;
		CHECK_THAT(error <= with_margin(error_rate, probes), "error %g of %g after %.1f turnovers",
				   error, error_rate, turnovers);
		CHECK_THAT(back <= with_margin(error_rate, (uint32_t) first), "%g of %g are back after %.1f turnovers",
				   back, error_rate, turnovers);
		value_free(&value);
	}
	printf("protocol:   error rate %-6g capacity %5llu, %2u %% exchanged at once: needs a rebuild after %.1f turnovers\n",
		   error_rate, (unsigned long long) capacity, share, turnovers);
	fav_editor_close(&editor);
}

static void
exchanges(void)
{
	static const double rates[] = {0.05, 0.01, 0.005, 0.001, 0.0001};
	static const uint32_t shares[] = {10, 50, 99};
	size_t		i;
	size_t		j;

	test_begin("protocol: until a filter needs a rebuild, strangers and deleted elements are within the rate");
	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		for (j = 0; j < sizeof(shares) / sizeof(shares[0]); j++)
		{
			exchange(rates[i], 30000, shares[j]);
			exchange(rates[i], 1000, shares[j]);
		}
	CHECK(allocated_bytes() == 0);
	test_end();
}

/*
 * Fill a slice to its limit, for all rates and region sizes.  Compare the error that it is sized
 * for, the error computed from its bits, and the measured one.  The random distribution of
 * elements over blocks makes slices differ by some percent, more for small errors.
 */
static void
full_slices(void)
{
	static const double rates[] = {0.2, 0.05, 0.01, 0.001, 0.0001};
	static const uint32_t region_sizes[] = {1, 3, 7, 10, 31};
	size_t		i;
	size_t		j;

	test_begin("protocol: false positives of full slices");
	printf("protocol: full first slices: measured error (estimated from the bits) as a share of what it may be\n");
	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
	{
		double		promised = fav_error_share(rates[i], 0);
		uint32_t	probes = rates[i] < 0.0005 ? 2000000 : 400000;

		printf("protocol:   error rate %-6g", rates[i]);
		for (j = 0; j < sizeof(region_sizes) / sizeof(region_sizes[0]); j++)
		{
			FavParams	params = {.capacity = 100000, .kind = FAV_KIND_INTEGER, .error_rate = rates[i], .region_size = region_sizes[j], .seed = seed};
			FavMeasure measure;
			FavEditor	editor;
			Value		value;
			double		error;
			uint64_t	next = 0;

			fav_editor_new(&editor, &params);
			/* a small slice may be full before it reaches its limit of bits */
			while (editor.filter.nslices == 0 ||
				   (editor.filter.nslices == 1 && fav_slice_has_free_bits(&editor.filter.slices[0])))
				add(&editor, next++);
			value_from_editor(&value, &editor);
			fav_editor_close(&editor);
			value.filter.nslices = 1;
			fav_measure_slice(&value.filter, 0, &measure);
			error = measured_error(&value.filter, probes);
			printf("   R %2u: %3.0f %% (%3.0f %%)", region_sizes[j], 100 * error / promised, 100 * measure.error / promised);
			CHECK_THAT(error <= with_margin(1.1 * promised, probes), "error rate %g, region size %u: %g of %g",
					   rates[i], region_sizes[j], error, promised);
			CHECK_THAT(measure.error <= 1.1 * promised, "error rate %g, region size %u: estimated %g of %g",
					   rates[i], region_sizes[j], measure.error, promised);
			value_free(&value);
		}
		printf("\n");
	}
	test_end();
}

/* Grown filters: does the estimated error agree with the measured one? */
static void
estimated_error(void)
{
	static const double rates[] = {0.2, 0.05, 0.01, 0.001, 0.0001};
	size_t		i;

	test_begin("protocol: the estimated error agrees with the measured one");
	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
	{
		FavParams	params = {.capacity = 1000, .kind = FAV_KIND_INTEGER, .error_rate = rates[i], .region_size = 7, .seed = seed};
		uint32_t	probes = rates[i] < 0.0005 ? 4000000 : 400000;
		FavMeasure	measure;
		FavEditor	editor;
		Value		value;
		double		error;
		uint64_t	n;

		fav_editor_new(&editor, &params);
		for (n = 0; n < 50000; n++)
			add(&editor, n);
		for (n = 0; n < 10000; n++)
			del(&editor, n);
		value_from_editor(&value, &editor);
		fav_editor_close(&editor);
		fav_measure(&value.filter, &measure);
		error = measured_error(&value.filter, probes);
		printf("protocol: error rate %g, grown to 50,000, a fifth deleted: estimated error %.4f %%, measured %.4f %%\n",
			   rates[i], 100 * measure.error, 100 * error);
		CHECK_THAT(fabs(error - measure.error) <= 0.02 * measure.error + 5 * sqrt(measure.error / probes),
				   "error rate %g: %g estimated, %g measured", rates[i], measure.error, error);
		CHECK(error <= with_margin(rates[i], probes));
		value_free(&value);
	}
	test_end();
}

int
main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	original_protocol();
	resurrection();
	space();
	churn(1000, false);
	churn(1000, true);
	churn(LIVE, false);
	churn(LIVE, true);
	exchanges();
	full_slices();
	estimated_error();
	return test_summary("protocol");
}
