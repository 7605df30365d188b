/*
 * test_pauses.c
 *		Every long operation pauses, so that the server can check for interrupts, and
 *		leaving at a pause does no damage.
 *
 * The filters are so large that a loop or copy without pauses exceeds the limit of work
 * between two pauses.  work.h describes how work is counted.
 */
#include "harness.h"
#include "hash.h"
#include "work.h"

/*
 * The most steps between two pauses.  The code takes about half as many at most.  Without
 * pauses, each loop over the large sources below takes several times as many.
 */
#define MOST	1500000

/*
 * The filters that operations use
 */
typedef struct Sources
{
	FavParams	params;
	uint64_t   *hashes;			/* ascending */
	size_t		nhashes;
	Value		large;			/* one large slice with every second hash, and a
								 * full recent */
	Value		full;			/* the same, with a slice that is marked as full */
	Value		alike;			/* of the same geometry, with the other hashes */
	Value		unlike;			/* with the other hashes, half as large */
	Value		listed;			/* a small slice and many tombstones */
	Value		shifted;		/* the same without the first tombstone */
	Value		between;		/* with other tombstones, one after each of these */
} Sources;

static void
value_from_filter(Value *value, const FavFilter *filter)
{
	FavProblem	problem = {""};

	value->size = fav_size(filter);
	value->bytes = malloc(value->size);
	fav_write(filter, value->bytes);
	CHECK_THAT(fav_open(&value->filter, value->bytes, value->size, value->size, &problem) == FAV_OK &&
			   fav_check(&value->filter, &problem) == FAV_OK, "%s", problem.detail);
}

static void
make_listed(Value *value, const FavFilter *filter, const uint8_t *tombstones, size_t count)
{
	FavFilter	listed = *filter;

	listed.tombstones = tombstones;
	listed.ntombstones = (uint32_t) count;
	value_from_filter(value, &listed);
}

/* Every second hash from the given one on, with some of them in recent. */
static void
make_half(Value *value, const Sources *sources, const FavParams *params, size_t first, size_t nrecent)
{
	size_t		count = sources->nhashes / 2;
	uint64_t   *half = malloc(count * sizeof(uint64_t));
	FavEditor	editor;
	size_t		i;

	for (i = 0; i < count; i++)
		half[i] = sources->hashes[2 * i + first];
	CHECK(fav_editor_build(&editor, params, half, count) == FAV_OK);
	for (i = 0; i < nrecent; i++)
		CHECK(fav_editor_add(&editor, i + 1) == FAV_OK);
	value_from_editor(value, &editor);
	fav_editor_close(&editor);
	free(half);
}

static void
make_sources(Sources *sources, uint64_t capacity, size_t nhashes, size_t ntombstones)
{
	FavParams	params = {.capacity = capacity, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7};
	uint64_t	stride = UINT64_MAX / nhashes;
	uint8_t    *tombstones = malloc(8 * ntombstones);
	FavFilter	full;
	FavEditor	editor;
	Value		small;
	uint64_t	random = 1;
	size_t		i;

	sources->params = params;
	sources->nhashes = nhashes;
	sources->hashes = malloc(nhashes * sizeof(uint64_t));
	for (i = 0; i < nhashes; i++)
		sources->hashes[i] = stride * i + random_below(&random, stride);
	make_half(&sources->large, sources, &params, 0, FAV_RECENT_MAX);
	make_half(&sources->alike, sources, &params, 1, 10);
	params.capacity /= 2;
	make_half(&sources->unlike, sources, &params, 1, 10);
	full = sources->large.filter;
	full.slices[0].bits_limit = full.slices[0].bits_set;
	value_from_filter(&sources->full, &full);

	/* all elements are less than all tombstones */
	CHECK(fav_editor_build(&editor, &DEFAULT_PARAMS, sources->hashes, 1000) == FAV_OK);
	value_from_editor(&small, &editor);
	fav_editor_close(&editor);
	stride = (UINT64_MAX - sources->hashes[1000]) / ntombstones;
	for (i = 0; i < ntombstones; i++)
		fav_store64(tombstones + 8 * i, sources->hashes[1000] + stride * i + random_below(&random, stride / 2));
	make_listed(&sources->listed, &small.filter, tombstones, ntombstones);
	make_listed(&sources->shifted, &small.filter, tombstones + 8, ntombstones - 1);
	for (i = 0; i < ntombstones; i++)
		fav_store64(tombstones + 8 * i, fav_load64(tombstones + 8 * i) + stride / 2);
	make_listed(&sources->between, &small.filter, tombstones, ntombstones);
	value_free(&small);
	free(tombstones);
}

static void
free_sources(Sources *sources)
{
	free(sources->hashes);
	value_free(&sources->large);
	value_free(&sources->full);
	value_free(&sources->alike);
	value_free(&sources->unlike);
	value_free(&sources->listed);
	value_free(&sources->shifted);
	value_free(&sources->between);
}

static uint64_t
sum_of(const void *bytes, size_t size)
{
	return fav_hash_bytes(FAV_KIND_BYTES, bytes, size, 0);
}

static uint64_t
sum_of_sources(const Sources *sources)
{
	const Value *values[] = {&sources->large, &sources->full, &sources->alike, &sources->unlike,
	&sources->listed, &sources->shifted, &sources->between};
	uint64_t	sum = sum_of(sources->hashes, sources->nhashes * sizeof(uint64_t));
	size_t		i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		sum = sum * 31 + sum_of(values[i]->bytes, values[i]->size);
	return sum;
}

/* The operations.  Each returns a checksum of its result, which is the same every time. */

/* Finish an edit as the server does. */
static uint64_t
finish(FavEditor *editor)
{
	const FavFilter *result;
	uint8_t    *bytes;
	uint64_t	sum;

	CHECK(fav_editor_finish(editor, &result) == FAV_OK);
	bytes = fav_alloc(fav_size(result));
	fav_write(result, bytes);
	sum = sum_of(bytes, fav_size(result));
	fav_free(bytes);
	fav_editor_close(editor);
	return sum;
}

static uint64_t
do_build(const Sources *sources)
{
	FavEditor	editor;

	CHECK(fav_editor_build(&editor, &sources->params, sources->hashes, sources->nhashes) == FAV_OK);
	return finish(&editor);
}

static uint64_t
check(const Value *value)
{
	FavFilter	filter;
	FavProblem	problem;

	CHECK(fav_open(&filter, value->bytes, value->size, value->size, &problem) == FAV_OK);
	CHECK(fav_check(&filter, &problem) == FAV_OK);
	return 0;
}

static uint64_t
do_check_blocks(const Sources *sources)
{
	return check(&sources->large);
}

static uint64_t
do_check_tombstones(const Sources *sources)
{
	return check(&sources->listed);
}

static uint64_t
do_measure(const Sources *sources)
{
	FavMeasure	measure;

	fav_measure(&sources->large.filter, &measure);
	return sum_of(&measure, sizeof(measure));
}

static uint64_t
do_head_measures(const Sources *sources)
{
	return fav_count(&sources->listed.filter) + (uint64_t) (1e6 * fav_bloat(&sources->listed.filter)) +
		fav_needs_rebuild(&sources->listed.filter);
}

static uint64_t
do_flush(const Sources *sources)
{
	FavEditor	editor;

	fav_editor_open(&editor, &sources->large.filter);
	CHECK(fav_editor_add(&editor, 1000) == FAV_OK);
	CHECK(editor.filter.nslices == 1 && editor.filter.nrecent == 1);
	return finish(&editor);
}

static uint64_t
do_grow(const Sources *sources)
{
	FavEditor	editor;

	fav_editor_open(&editor, &sources->full.filter);
	CHECK(fav_editor_add(&editor, 1000) == FAV_OK);
	CHECK(editor.filter.nslices == 2 && editor.filter.nrecent == 1);
	return finish(&editor);
}

/* Many tombstones are removed: the hash table grows and is merged at the end. */
static uint64_t
do_tabulate(const Sources *sources)
{
	const FavFilter *filter = &sources->listed.filter;
	FavEditor	editor;
	uint32_t	i;

	fav_editor_open(&editor, filter);
	for (i = 0; i < filter->ntombstones / 5; i++)
	{
		/* as a caller with many changes does */
		if (i % 4096 == 0)
			fav_pause();
		CHECK(fav_tombstones_remove(&editor, fav_load64(filter->tombstones + 8 * (i * UINT64_C(7919) % filter->ntombstones))) == FAV_OK);
	}
	CHECK(editor.tombstones.nflipped == filter->ntombstones / 5);
	return finish(&editor);
}

/* One hash is inserted at the front of the list, so all others move. */
static uint64_t
do_merge(const Sources *sources)
{
	FavEditor	editor;

	fav_editor_open(&editor, &sources->shifted.filter);
	/* an element that is also in recent gets a tombstone, and no bit is cleared */
	CHECK(fav_editor_add(&editor, sources->hashes[0]) == FAV_OK);
	CHECK(fav_editor_remove(&editor, sources->hashes[0]) == FAV_OK);
	return finish(&editor);
}

static uint64_t
do_forget(const Sources *sources)
{
	FavEditor	editor;

	fav_editor_open(&editor, &sources->listed.filter);
	CHECK(fav_editor_add(&editor, fav_load64(sources->listed.filter.tombstones)) == FAV_OK);
	CHECK(editor.tombstones.nflipped == 1);
	return finish(&editor);
}

static uint64_t
unite(const Value *a, const Value *b, uint32_t nslices)
{
	FavEditor	editor;

	fav_editor_open(&editor, &a->filter);
	CHECK(fav_editor_union(&editor, &b->filter) == FAV_OK);
	CHECK(editor.filter.nslices == nslices);
	return finish(&editor);
}

static uint64_t
do_unite_alike(const Sources *sources)
{
	return unite(&sources->large, &sources->alike, 1);
}

static uint64_t
do_unite_unlike(const Sources *sources)
{
	return unite(&sources->alike, &sources->unlike, 2);
}

static uint64_t
do_unite_same_tombstones(const Sources *sources)
{
	return unite(&sources->listed, &sources->listed, 1);
}

static uint64_t
do_unite_shifted_tombstones(const Sources *sources)
{
	return unite(&sources->listed, &sources->shifted, 1);
}

static uint64_t
do_unite_other_tombstones(const Sources *sources)
{
	return unite(&sources->listed, &sources->between, 1);
}

static const struct
{
	const char *name;
	uint64_t	(*run) (const Sources *sources);
	bool		is_long;
}			operations[] =
{
	{"build", do_build, true},
	{"check of blocks", do_check_blocks, true},
	{"check of tombstones", do_check_tombstones, true},
	{"measure", do_measure, true},
	{"what only reads the head", do_head_measures, false},
	{"flush", do_flush, true},
	{"flush into a new slice", do_grow, true},
	{"many tombstones removed", do_tabulate, true},
	{"one tombstone added", do_merge, true},
	{"one tombstone removed", do_forget, true},
	{"union, slices merged", do_unite_alike, true},
	{"union, slices chained", do_unite_unlike, true},
	{"union, the same tombstones", do_unite_same_tombstones, true},
	{"union, the same tombstones but one", do_unite_shifted_tombstones, true},
	{"union, other tombstones", do_unite_other_tombstones, true},
};

#define NOPERATIONS (sizeof(operations) / sizeof(operations[0]))

/*
 * Counting
 */
static uint64_t last_pause;
static uint64_t longest;
static unsigned pauses;

static void
look_at_work(void)
{
	if (work_done - last_pause > longest)
		longest = work_done - last_pause;
	last_pause = work_done;
	pauses++;
}

static void
test_distances(void)
{
	Sources		sources;
	size_t		i;

	make_sources(&sources, 30000000, 400000, (1 << 21) - 1);
	for (i = 0; i < NOPERATIONS; i++)
	{
		uint64_t	start = work_done;

		test_begin("pauses: %s", operations[i].name);
		last_pause = work_done;
		longest = 0;
		pauses = 0;
		on_pause = look_at_work;
		operations[i].run(&sources);
		on_pause = NULL;
		look_at_work();
		printf("pauses: %.1f million steps, %u pauses, %.2f million steps apart at most\n",
			   (double) (work_done - start) / 1e6, pauses - 1, (double) longest / 1e6);
		CHECK_THAT(longest <= MOST, "%llu steps without a pause", (unsigned long long) longest);
		CHECK_THAT(!operations[i].is_long || work_done - start > 2 * MOST, "too short to tell");
		CHECK(allocated_bytes() == 0);
		test_end();
	}
	free_sources(&sources);
}

/*
 * Leaving at a pause
 */
static jmp_buf left;
static unsigned leave_at;

static void
leave(void)
{
	if (--leave_at == 0)
		longjmp(left, 1);
}

/* Leave an operation at its n-th pause.  Returns false if it has fewer. */
static bool
leave_operation(size_t i, const Sources *sources, unsigned n, uint64_t expected)
{
	leave_at = n;
	on_pause = leave;
	if (setjmp(left) == 0)
	{
		uint64_t	sum = operations[i].run(sources);

		on_pause = NULL;
		CHECK(sum == expected && allocated_bytes() == 0);
		return false;
	}
	on_pause = NULL;
	return true;
}

/*
 * The unfinished result is released with its memory.  The source has the same bytes as before,
 * and the next operation on it gives the same result.
 */
static void
test_leaving(void)
{
	Sources		sources;
	uint64_t	before;
	size_t		i;

	make_sources(&sources, 2000000, 40000, (1 << 16) - 1);
	before = sum_of_sources(&sources);
	for (i = 0; i < NOPERATIONS; i++)
	{
		uint64_t	expected = operations[i].run(&sources);
		unsigned	n = 1;

		test_begin("pauses: %s, left at every pause", operations[i].name);
		while (leave_operation(i, &sources, n, expected))
		{
			free_allocations();
			CHECK_THAT(sum_of_sources(&sources) == before, "left at pause %u", n);
			CHECK_THAT(operations[i].run(&sources) == expected, "after it was left at pause %u", n);
			CHECK(allocated_bytes() == 0);
			n++;
		}
		CHECK_THAT(!operations[i].is_long || n > 3, "%u pauses only", n - 1);
		test_end();
	}
	free_sources(&sources);
}

int
main(void)
{
	test_distances();
	test_leaving();
	return test_summary("test_pauses");
}
