/*
 * test_filter.c
 *		The operations on a filter: the result of each, and that a failure changes
 *		nothing.
 */
#include "dated.h"
#include "harness.h"
#include "hash.h"

static inline uint64_t
hash_of(int64_t element)
{
	return fav_hash_integer(element, 0);
}

static void
add(FavEditor *editor, int64_t from, int64_t to)
{
	int64_t		i;

	for (i = from; i < to; i++)
		CHECK(fav_editor_add(editor, hash_of(i)) == FAV_OK);
}

static void
del(FavEditor *editor, int64_t from, int64_t to)
{
	int64_t		i;

	for (i = from; i < to; i++)
		CHECK(fav_editor_remove(editor, hash_of(i)) == FAV_OK);
}

static void
check_same(const char *what, const Value *a, const Value *b)
{
	CHECK_THAT(a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0,
			   "%s: %zu and %zu bytes, not the same", what, a->size, b->size);
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

static void
build(FavEditor *editor, const FavParams *params, size_t count)
{
	uint64_t   *hashes = malloc((count + 1) * sizeof(uint64_t));
	size_t		i;

	for (i = 0; i < count; i++)
		hashes[i] = hash_of((int64_t) i);
	qsort(hashes, count, sizeof(uint64_t), compare_hashes);
	CHECK(fav_editor_build(editor, params, hashes, count) == FAV_OK);
	free(hashes);
}

/* One edit of many changes gives the same bytes as many edits of one. */
static void
test_batches(void)
{
	FavParams	params = {.capacity = 300, .kind = FAV_KIND_INTEGER, .error_rate = 0.02, .region_size = 7};
	FavEditor	whole;
	FavEditor	single;
	Value		value;
	Value		expected;
	uint64_t	random = 11;
	int			i;

	test_begin("filter: an edit of many changes gives the bytes of many edits");
	fav_editor_new(&whole, &params);
	fav_editor_new(&single, &params);
	value_from_editor(&value, &single);
	fav_editor_close(&single);
	for (i = 0; i < 6000; i++)
	{
		uint64_t	hash = hash_of((int64_t) random_below(&random, 2000));
		bool		adding = random_below(&random, 100) < (uint64_t) (i < 3000 ? 75 : 40);
		Value		next;

		/* keep the contract: delete only elements of the set */
		if (!adding && !fav_editor_contains(&whole, hash))
			continue;
		fav_editor_open(&single, &value.filter);
		CHECK((adding ? fav_editor_add : fav_editor_remove) (&single, hash) == FAV_OK);
		CHECK((adding ? fav_editor_add : fav_editor_remove) (&whole, hash) == FAV_OK);
		value_from_editor(&next, &single);
		fav_editor_close(&single);
		value_free(&value);
		value = next;
		if (i % 500 == 499)
		{
			/* the result of the edit if it ended here */
			value_from_editor(&expected, &whole);
			check_same("after some", &value, &expected);
			value_free(&expected);
		}
	}
	value_from_editor(&expected, &whole);
	check_same("in the end", &value, &expected);
	CHECK(value.filter.ntombstones > 0 && value.filter.nslices > 2);
	value_free(&expected);
	value_free(&value);
	fav_editor_close(&whole);
	CHECK(allocated_bytes() == 0);
	test_end();
}

/* Batched deletes give the same bytes as single ones, if no deleted hash is in recent. */
static void
test_del_many(void)
{
	uint64_t	random = 12;
	uint32_t	failures = 0;
	int			run;

	test_begin("filter: batched deletes give the bytes of single deletes");
	for (run = 0; run < 60; run++)
	{
		FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = run % 2 ? 0.01 : 0.2, .region_size = 1 + (uint32_t) run % 9};
		uint32_t	count = 200 + (uint32_t) random_below(&random, 5000);
		uint64_t   *hashes = malloc(2 * count * sizeof(uint64_t));
		FavEditor	singly;
		FavEditor	at_once;
		Value		value;
		Value		expected;
		uint32_t	deletes = run == 0 ? 2 * count : (uint32_t) random_below(&random, 2 * count);
		Value		source;
		uint32_t	i;
		uint32_t	done;

		for (i = 0; i < 2 * count; i++)
			hashes[i] = hash_of((int64_t) i);
		/* the first run deletes all; the slice is so sparse that no bit remains */
		if (run == 0)
			params.capacity = 10000000;
		CHECK(fav_editor_build(&singly, &params, hashes, run == 0 ? 200 : count) == FAV_OK);
		value_from_editor(&source, &singly);
		fav_editor_close(&singly);
		fav_editor_open(&singly, &source.filter);
		fav_editor_open(&at_once, &source.filter);

		/* members in any order, some of them repeated, and some non-members */
		for (i = 0; i < deletes; i++)
			hashes[i] = hash_of((int64_t) (run == 0 ? i : random_below(&random, count + count / 8)));
		for (i = 0; i < deletes; i++)
			CHECK(fav_editor_remove(&singly, hashes[i]) == FAV_OK);
		for (i = 0; i < deletes; i += done)
		{
			FavStatus	status;

			done = 1 + (uint32_t) random_below(&random, 150);
			if (done > deletes - i)
				done = deletes - i;
			/* without memory the failed deletes change nothing, and can be repeated */
			fail_allocation(run % 3 == 2 ? 1 : 0);
			status = fav_editor_remove_many(&at_once, hashes + i, done);
			fail_allocation(0);
			failures += status != FAV_OK;
			CHECK(status == FAV_OK ||
				  (status == FAV_NO_MEMORY && fav_editor_remove_many(&at_once, hashes + i, done) == FAV_OK));
		}
		value_from_editor(&value, &at_once);
		value_from_editor(&expected, &singly);
		CHECK(singly.changed == at_once.changed);
		check_same("after deletes", &value, &expected);
		CHECK(run > 0 || value.filter.nslices == 0);
		value_free(&expected);
		value_free(&value);
		fav_editor_close(&singly);
		fav_editor_close(&at_once);
		value_free(&source);
		free(hashes);
	}
	CHECK_THAT(failures > 10, "%u failures only", failures);
	CHECK(allocated_bytes() == 0);
	test_end();
}

static void
test_idempotent(void)
{
	FavParams	params = DEFAULT_PARAMS;
	FavEditor	editor;
	Value		before;
	Value		after;
	size_t		largest = 0;
	int			i;

	test_begin("filter: add, add, del leaves it absent; del of the absent changes nothing");
	fav_editor_new(&editor, &params);
	add(&editor, 0, 2);
	add(&editor, 0, 2);
	CHECK(fav_count(&editor.filter) == 2);
	del(&editor, 0, 1);
	CHECK(!fav_editor_contains(&editor, hash_of(0)) && fav_editor_contains(&editor, hash_of(1)));
	add(&editor, 0, 5000);
	add(&editor, 0, 5000);
	del(&editor, 0, 2500);
	for (i = 0; i < 2500; i++)
		CHECK(!fav_editor_contains(&editor, hash_of(i)) && fav_editor_contains(&editor, hash_of(i + 2500)));
	value_from_editor(&before, &editor);
	fav_editor_close(&editor);
	fav_editor_open(&editor, &before.filter);
	del(&editor, 0, 2500);
	value_from_editor(&after, &editor);
	check_same("deleted again", &before, &after);
	value_free(&before);
	value_free(&after);
	fav_editor_close(&editor);
	test_end();

	test_begin("filter: blocked and unblocked 100,000 times, it does not grow");
	fav_editor_new(&editor, &params);
	add(&editor, 0, 900);
	value_from_editor(&before, &editor);
	for (i = 0; i < 100000; i++)
	{
		/* add two others now and then, so that it is flushed at every age */
		int64_t		element = i % 7 == 0 ? 5 : i % 11 == 0 ? 890 : 777;
		uint64_t	hash = hash_of(element);

		CHECK(fav_editor_remove(&editor, hash) == FAV_OK);
		CHECK(!fav_editor_contains(&editor, hash));
		CHECK(fav_editor_add(&editor, hash) == FAV_OK);
		CHECK(fav_editor_contains(&editor, hash));
		if (fav_size(&editor.filter) > largest)
			largest = fav_size(&editor.filter);
	}
	CHECK_THAT(largest <= before.size + 8 * FAV_RECENT_MAX, "%zu bytes, then %zu", before.size, largest);
	for (i = 0; i < 900; i++)
		CHECK(fav_editor_contains(&editor, hash_of(i)));
	value_free(&before);
	fav_editor_close(&editor);
	test_end();
}

static void
test_small(void)
{
	FavParams	params = DEFAULT_PARAMS;
	uint32_t	n;

	test_begin("filter: up to 128 elements it is exact, of 64 + 8n bytes at most");
	for (n = 0; n <= FAV_RECENT_MAX; n++)
	{
		FavEditor	editor;
		Value		value;
		uint32_t	wrong = 0;
		int64_t		i;

		fav_editor_new(&editor, &params);
		add(&editor, 0, n);
		value_from_editor(&value, &editor);
		CHECK(value.filter.nslices == 0 && fav_count(&value.filter) == n);
		CHECK(value.size + 4 <= 64 + 8 * n);
		CHECK(!fav_needs_rebuild(&value.filter));
		for (i = 0; i < 2000; i++)
			wrong += fav_contains(&value.filter, hash_of(i)) != (i < n);
		CHECK_THAT(wrong == 0, "%u wrong answers of %u elements", wrong, n);
		value_free(&value);
		fav_editor_close(&editor);
	}
	test_end();
}

/* The recent of a sink has more hashes than a filter keeps, and may become an ordinary value. */
static void
test_long_recent(uint32_t keep)
{
	FavParams	params = DEFAULT_PARAMS;
	FavEditor	editor;
	FavEditor	other;
	FavFilter	filter;
	FavProblem	problem;
	Value		value;
	int64_t		i;

	test_begin("filter: up to %d recent hashes, keep %u", FAV_RECENT_LIMIT, keep);
	params.keep = keep;
	fav_editor_new(&editor, &params);
	editor.recent_max = FAV_RECENT_LIMIT;
	for (i = 0; i < FAV_RECENT_LIMIT; i++)
		CHECK(fav_editor_add_at(&editor, hash_of(i), 1000) == FAV_OK);
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	CHECK(value.filter.nslices == 0 && value.filter.nrecent == FAV_RECENT_LIMIT);
	CHECK(fav_open(&filter, value.bytes, value.size, value.size, &problem) == FAV_OK);
	CHECK(fav_check(&filter, &problem) == FAV_OK);
	for (i = 0; i < 2000; i++)
		CHECK(fav_contains(&filter, hash_of(i)) == (i < FAV_RECENT_LIMIT));
	value.bytes[FAV_AT_NRECENT]++;
	CHECK(fav_open(&filter, value.bytes, value.size, value.size, &problem) == FAV_MALFORMED);
	value.bytes[FAV_AT_NRECENT]--;
	CHECK(fav_open(&filter, value.bytes, value.size, value.size, &problem) == FAV_OK);

	/* removed ones stay away, whatever is flushed; the others are found */
	fav_editor_open(&editor, &filter);
	fav_editor_open(&other, &filter);
	for (i = 0; i < 10; i++)
		CHECK(fav_editor_remove(&editor, hash_of(i)) == FAV_OK);
	for (i = FAV_RECENT_LIMIT; i < 1000; i++)
		CHECK(fav_editor_add_at(&editor, hash_of(i), 1000 + (int32_t) (i % 3)) == FAV_OK);
	for (i = 0; i < 1000; i++)
		CHECK(fav_editor_contains(&editor, hash_of(i)) == (i >= 10));
	CHECK(editor.filter.nslices > 0 && editor.filter.nrecent <= FAV_RECENT_MAX);

	/* either side of a union may be such a value */
	CHECK(fav_editor_union(&editor, &filter) == FAV_OK);
	CHECK(fav_editor_union(&other, &editor.filter) == FAV_OK);
	for (i = 0; i < 1000; i++)
		CHECK(fav_editor_contains(&editor, hash_of(i)) && fav_editor_contains(&other, hash_of(i)));
	value_free(&value);
	fav_editor_close(&other);
	fav_editor_close(&editor);
	test_end();
}

/* A provably empty filter has the bytes of the empty value. */
static void
test_empty(void)
{
	static const int64_t counts[] = {1, 128, 129, 200};
	FavParams	params = {.capacity = 1000000, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7};
	FavEditor	editor;
	Value		empty;
	Value		value;
	size_t		i;

	test_begin("filter: provably empty is the empty value");
	fav_editor_new(&editor, &params);
	value_from_editor(&empty, &editor);
	fav_editor_close(&editor);
	CHECK(empty.size == FAV_HEADER_SIZE);
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
	{
		fav_editor_new(&editor, &params);
		add(&editor, 0, counts[i]);
		del(&editor, 0, counts[i]);
		value_from_editor(&value, &editor);
		fav_editor_close(&editor);

		/*
		 * A collision of two elements would leave a bit, and the filter would not be provably
		 * empty.  So few elements in so large a slice do not collide.
		 */
		check_same("all deleted", &empty, &value);
		value_free(&value);
	}
	value_free(&empty);
	CHECK(allocated_bytes() == 0);
	test_end();
}

static void
test_build(void)
{
	static const size_t counts[] = {0, 1, 128, 129, 255, 1000, 20000};
	FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7};
	size_t		c;

	test_begin("filter: built at once, it holds its elements in one slice and can be edited");
	for (c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
	{
		size_t		count = counts[c];
		FavEditor	editor;
		Value		value;
		size_t		i;

		build(&editor, &params, count);
		value_from_editor(&value, &editor);
		CHECK(value.filter.nslices == (count > FAV_RECENT_MAX));
		CHECK(fav_count(&value.filter) == count);
		CHECK(!fav_needs_rebuild(&value.filter));
		for (i = 0; i < count; i++)
			CHECK(fav_contains(&value.filter, hash_of((int64_t) i)));
		fav_editor_close(&editor);

		fav_editor_open(&editor, &value.filter);
		del(&editor, 0, (int64_t) count / 2);
		add(&editor, (int64_t) count, (int64_t) count + 10);
		for (i = 0; i < count + 10; i++)
			CHECK(fav_editor_contains(&editor, hash_of((int64_t) i)) == (i >= count / 2));
		fav_editor_close(&editor);
		value_free(&value);
	}
	CHECK(allocated_bytes() == 0);
	test_end();

	test_begin("filter: built for a larger capacity, it has free bits");
	{
		FavEditor	editor;
		Value		value;
		Value		grown;

		params.capacity = 5000;
		build(&editor, &params, 1000);
		CHECK(editor.filter.params.capacity == 5000);
		value_from_editor(&value, &editor);
		add(&editor, 1000, 5000);
		value_from_editor(&grown, &editor);
		CHECK(grown.filter.nslices == 1);
		value_free(&grown);
		value_free(&value);
		fav_editor_close(&editor);
	}
	CHECK(allocated_bytes() == 0);
	test_end();
}

/*
 * A value that would be too large is rejected before any allocation, and the filter is
 * unchanged.
 */
static void
test_too_large(void)
{
	static const uint64_t capacities[] = {UINT64_C(1000000000), UINT64_C(1) << 40, UINT64_C(1) << 53, UINT64_MAX};
	size_t		c;

	test_begin("filter: a slice beyond the limit is refused");
	for (c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++)
	{
		FavParams	params = {.capacity = capacities[c], .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7};
		uint64_t	hashes[200];
		FavEditor	editor;
		int64_t		i;

		fav_editor_new(&editor, &params);
		add(&editor, 0, FAV_RECENT_MAX);
		CHECK(fav_editor_add(&editor, hash_of(FAV_RECENT_MAX)) == FAV_TOO_LARGE);
		CHECK(fav_editor_add(&editor, hash_of(5)) == FAV_OK);
		for (i = 0; i < 2 * FAV_RECENT_MAX; i++)
			CHECK(fav_editor_contains(&editor, hash_of(i)) == (i < FAV_RECENT_MAX));
		del(&editor, 0, 1);
		add(&editor, 500, 501);
		CHECK(allocated_bytes() == 0);
		fav_editor_close(&editor);

		for (i = 0; i < 200; i++)
			hashes[i] = (uint64_t) i;
		CHECK(fav_editor_build(&editor, &params, hashes, 200) == FAV_TOO_LARGE);
		fav_editor_close(&editor);
		CHECK(allocated_bytes() == 0);
	}
	test_end();
}

/* 32 full slices and 128 recent hashes: no further slice is possible. */
static void
test_too_many_slices(void)
{
	FavFilter	filter;
	FavEditor	editor;
	Value		value;
	uint8_t		recent[FAV_RECENT_MAX * 8];
	uint8_t		block[2 * FAV_LANE_BYTES];
	uint32_t	i;

	test_begin("filter: a chain of 32 full slices accepts no more");
	memset(&filter, 0, sizeof(filter));
	memset(block, 0xff, sizeof(block));
	memset(block, 0, 8);		/* the first word is clear */
	filter.params = (FavParams) {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 1};
	filter.nslices = FAV_MAX_SLICES;
	for (i = 0; i < FAV_MAX_SLICES; i++)
		filter.slices[i] = (FavSlice) {.nblocks = 1, .k = 1, .bits_set = FAV_LANE_BITS - FAV_WORD_BITS,
			.bits_limit = FAV_LANE_BITS - FAV_WORD_BITS, .blocks = block};
	filter.nrecent = FAV_RECENT_MAX;
	for (i = 0; i < FAV_RECENT_MAX; i++)
		fav_store64(recent + 8 * i, i + 1);
	filter.recent = recent;
	fav_editor_open(&editor, &filter);
	CHECK(fav_editor_add(&editor, 1000) == FAV_TOO_MANY_SLICES);
	CHECK(editor.filter.nrecent == FAV_RECENT_MAX && editor.filter.nslices == FAV_MAX_SLICES);
	for (i = 0; i < FAV_RECENT_MAX; i++)
		CHECK(fav_editor_contains(&editor, i + 1));
	CHECK(fav_editor_add(&editor, 1) == FAV_OK);
	value_from_editor(&value, &editor);
	value_free(&value);
	fav_editor_close(&editor);
	CHECK(allocated_bytes() == 0);
	test_end();
}

/*
 * A crafted slice may state far more elements than it can hold.  The next slice is not sized for
 * all of them: a value cannot cause allocations beyond a small multiple of its size.
 */
static void
test_growth_is_bounded(void)
{
	uint32_t	nblocks;

	test_begin("filter: the next slice is at most eight times the value");
	for (nblocks = 1; nblocks <= 10000; nblocks *= 10)
	{
		uint8_t    *blocks = malloc((size_t) nblocks * 2 * FAV_LANE_BYTES);
		uint8_t		recent[FAV_RECENT_MAX * 8];
		FavFilter	filter;
		FavEditor	editor;
		FavStatus	status;
		size_t		largest;
		uint32_t	i;

		memset(&filter, 0, sizeof(filter));
		memset(blocks, 0xff, (size_t) nblocks * 2 * FAV_LANE_BYTES);
		filter.params = (FavParams) {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 1e-6, .region_size = 1};
		filter.nslices = 1;
		filter.slices[0] = (FavSlice) {.nblocks = nblocks, .k = 1, .blocks = blocks,
			.bits_set = (uint64_t) FAV_LANE_BITS * nblocks, .bits_limit = (uint64_t) FAV_LANE_BITS * nblocks};
		filter.nrecent = FAV_RECENT_MAX;
		for (i = 0; i < FAV_RECENT_MAX; i++)
			fav_store64(recent + 8 * i, hash_of(i));
		filter.recent = recent;
		fav_editor_open(&editor, &filter);
		largest_allocation();
		status = fav_editor_add(&editor, 1000);
		largest = largest_allocation();

		/* a slice for one flush takes 4 kB in any case */
		CHECK_THAT((status == FAV_OK || status == FAV_TOO_LARGE) && largest <= 8 * fav_size(&filter) + 4096, "%u blocks: status %d, %zu bytes for %llu",
				   nblocks, (int) status, largest, (unsigned long long) fav_size(&filter));
		fav_editor_close(&editor);
		free(blocks);
	}
	test_end();
}

/*
 * Memory runs out at each allocation in turn.  Each case runs single adds and deletes up to a
 * given step, and that step with too little memory.  The step fails and changes nothing;
 * repeated with memory, it succeeds.
 */
#define UNIVERSE 2200

static void
remember_answers(FavEditor *editor, uint8_t *answers)
{
	int64_t		i;

	for (i = 0; i < UNIVERSE; i++)
		answers[i] = fav_editor_contains(editor, hash_of(i));
}

static FavStatus
do_step(FavEditor *editor, int step)
{
	const FavFilter *result;

	/*
	 * adds, deletes (deferred to the end of the edit), adds of deleted elements, and the end of
	 * an edit
	 */
	if (step < 1600)
		return fav_editor_add(editor, hash_of(step));
	if (step < 2600)
		return fav_editor_finish(editor, &result);
	if (step < 3000)
		return fav_editor_add(editor, hash_of(2 * (step - 2600)));
	if (step < 3600)
		return fav_editor_add(editor, hash_of(step - 1400));
	return fav_editor_finish(editor, &result);
}

/* Now and then write the filter and open it again, so that the editor owns no memory yet. */
static void
reopen(FavEditor *editor, Value *value)
{
	Value		next;

	value_from_editor(&next, editor);
	fav_editor_close(editor);
	value_free(value);
	*value = next;
	fav_editor_open(editor, &value->filter);
}

static void
test_memory(void)
{
	FavParams	params = {.capacity = 300, .kind = FAV_KIND_INTEGER, .error_rate = 0.05, .region_size = 7};
	uint8_t		before[UNIVERSE];
	uint8_t		after[UNIVERSE];
	FavEditor	editor;
	Value		value = {0};
	unsigned	failures = 0;
	int			step;

	test_begin("filter: out of memory, an operation fails and changes nothing");
	fav_editor_new(&editor, &params);
	for (step = 0; step <= 3600; step++)
	{
		unsigned	n;

		/* each kind of step, with and without memory owned by the editor */
		if (step % 3 == 0)
			reopen(&editor, &value);
		if (step >= 1600 && step < 2600)
			CHECK(fav_editor_remove(&editor, hash_of(step - 1600)) == FAV_OK);
		remember_answers(&editor, before);
		for (n = 1; n <= FAV_MAX_SLICES + 2; n++)
		{
			FavStatus	status;

			fail_allocation(n);
			status = do_step(&editor, step);
			fail_allocation(0);
			if (status == FAV_OK)
				break;
			CHECK_THAT(status == FAV_NO_MEMORY, "step %d: status %d", step, (int) status);
			failures++;
			remember_answers(&editor, after);
			CHECK_THAT(memcmp(before, after, UNIVERSE) == 0, "step %d, allocation %u", step, n);
		}
		CHECK_THAT(n <= FAV_MAX_SLICES + 2, "step %d never succeeds", step);
	}
	fav_editor_close(&editor);
	value_free(&value);
	CHECK(allocated_bytes() == 0);
	CHECK_THAT(failures > 300, "only %u failures", failures);
	test_end();
}

static void
test_memory_build(void)
{
	FavParams	params = DEFAULT_PARAMS;
	uint64_t	hashes[1000];
	FavEditor	editor;
	unsigned	i;

	test_begin("filter: out of memory, a build fails and leaves nothing behind");
	for (i = 0; i < 1000; i++)
		hashes[i] = (uint64_t) i << 50;
	fail_allocation(1);
	CHECK(fav_editor_build(&editor, &params, hashes, 1000) == FAV_NO_MEMORY);
	fav_editor_close(&editor);
	CHECK(fav_editor_build(&editor, &params, hashes, FAV_RECENT_MAX) == FAV_OK);
	fail_allocation(0);
	fav_editor_close(&editor);
	CHECK(allocated_bytes() == 0);
	test_end();
}

/*
 * In slices of a few blocks some are fuller than others by chance.  The error computed from the
 * bits stays within the promised rate, also under churn.
 */
static void
test_few_blocks(void)
{
	uint64_t	seed;

	test_begin("filter: uneven blocks of small slices do not break the promise");
	for (seed = 1; seed <= 30; seed++)
	{
		FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.0001, .region_size = 3, .seed = seed};
		FavEditor	editor;
		FavMeasure	measure;
		uint64_t	i;

		fav_editor_new(&editor, &params);
		for (i = 0; i < 8000; i++)
		{
			CHECK(fav_editor_add(&editor, fav_hash_integer((int64_t) i, seed)) == FAV_OK);
			if (i >= 3000)
				CHECK(fav_editor_remove(&editor, fav_hash_integer((int64_t) i - 3000, seed)) == FAV_OK);
			if (i % 250 != 0)
				continue;
			fav_measure(&editor.filter, &measure);
			CHECK_THAT(measure.error <= 1.02 * params.error_rate, "seed %u: after %u adds an error of %g",
					   (unsigned) seed, (unsigned) i, measure.error);
		}
		fav_editor_close(&editor);
	}
	test_end();
}

int
main(void)
{
	test_batches();
	test_del_many();
	test_idempotent();
	test_small();
	test_long_recent(0);
	test_long_recent(30);
	test_empty();
	test_build();
	test_too_large();
	test_too_many_slices();
	test_growth_is_bounded();
	test_memory();
	test_memory_build();
	test_few_blocks();
	return test_summary("test_filter");
}
