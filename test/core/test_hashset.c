/*
 * test_hashset.c
 *		The set of hashes of the aggregates: it is right, and nobody can choose
 *		hashes, or their order, so that it takes much more work than others.
 */
#include "harness.h"
#include "work.h"

#include "server/server.h"
#include "../../src/aggregate/hashset.h"

/*
 * The most steps for each hash (work.h): to sort them once, to add them one by one,
 * which sorts them several times, to do that twice, and to build a filter from them and a second one
 * to compare it with.  Hashes by chance take a third of that.
 */
#define MOST_TO_SORT	150
#define MOST_TO_ADD		450
#define MOST_TO_MERGE	900
#define MOST_TO_BUILD	1500

/* And from one look for a cancel to the next, however many there are. */
#define MOST_AT_ONCE	4000000

void *
server_alloc(size_t size)
{
	void	   *memory = fav_alloc(size);

	if (memory == NULL)
		abort();
	return memory;
}

void *
server_realloc(void *memory, size_t size)
{
	size_t		old = allocated_size(memory);
	void	   *moved = server_alloc(size);

	memcpy(moved, memory, old < size ? old : size);
	fav_free(memory);
	return moved;
}

static uint64_t random_state;

/*
 * Hashes that are not as by chance
 */
static uint64_t
by_chance(size_t i, size_t count)
{
	(void) i;
	(void) count;
	return next_random(&random_state);
}

static uint64_t
ascending(size_t i, size_t count)
{
	return UINT64_MAX / count * i;
}

static uint64_t
descending(size_t i, size_t count)
{
	return UINT64_MAX / count * (count - i);
}

static uint64_t
alike_at_the_front(size_t i, size_t count)
{
	(void) count;
	return UINT64_C(0xabcdef0123) << 24 | (i * 7919 & 0xffffff);
}

static uint64_t
alike_at_the_end(size_t i, size_t count)
{
	(void) count;
	return (i * 7919) << 40 | 5;
}

static uint64_t
all_equal(size_t i, size_t count)
{
	(void) i;
	(void) count;
	return 42;
}

static uint64_t
few_different(size_t i, size_t count)
{
	(void) count;
	return (i % 5) << 62 | i % 3;
}

/* The first bits by chance, then all the same: every bucket is crowded. */
static uint64_t
crowded_buckets(size_t i, size_t count)
{
	return by_chance(i, count) & UINT64_C(0xff000000000000ff);
}

/* All but a few in one bucket. */
static uint64_t
one_bucket(size_t i, size_t count)
{
	uint64_t	hash = by_chance(i, count);

	return i % 1000 == 0 ? hash : hash >> 30;
}

/* In every bucket places that one hash more would make too crowded. */
static uint64_t
nearly_crowded(size_t i, size_t count)
{
	(void) count;
	return (i / 32 * UINT64_C(0x9e3779b97f4a7c15) & ~UINT64_C(0xffffffff)) | (32 - i % 32);
}

/*
 * The order that is worst for a quicksort, by McIlroy's adversary ("A Killer
 * Adversary for Quicksort", 1999): numbers get their values while they are
 * sorted, each as late as possible, so that every pivot turns out to be one of the
 * smallest.  The quicksort is PostgreSQL's (Bentley and McIlroy's), which hashset.c
 * used once.
 */
#define UNKNOWN UINT32_MAX

static uint32_t *killer;		/* value of each number */
static uint32_t nknown;
static uint32_t candidate;		/* for the pivot: what was compared last */
static bool scanning;			/* in order already?  It must not be */

static int
compare_late(const uint32_t *a, const uint32_t *b)
{
	if (killer[*a] == UNKNOWN && killer[*b] == UNKNOWN)
		killer[*a == candidate && !scanning ? *a : *b] = nknown++;
	if (killer[*a] == UNKNOWN)
		candidate = *a;
	else if (killer[*b] == UNKNOWN)
		candidate = *b;
	return (killer[*a] > killer[*b]) - (killer[*a] < killer[*b]);
}

static void
swap(uint32_t *a, uint32_t *b, ptrdiff_t count)
{
	for (; count > 0; count--, a++, b++)
	{
		uint32_t	number = *a;

		*a = *b;
		*b = number;
	}
}

static uint32_t *
median(uint32_t *a, uint32_t *b, uint32_t *c)
{
	if (compare_late(a, b) < 0)
		return compare_late(b, c) < 0 ? b : compare_late(a, c) < 0 ? c : a;
	return compare_late(b, c) > 0 ? b : compare_late(a, c) < 0 ? a : c;
}

static void
quicksort(uint32_t *a, ptrdiff_t n)
{
	uint32_t   *low_equal = a + 1;
	uint32_t   *low = a + 1;
	uint32_t   *high = a + n - 1;
	uint32_t   *high_equal = a + n - 1;
	ptrdiff_t	i;
	ptrdiff_t	j;
	int			order = 0;

	if (n < 7)
	{
		for (i = 1; i < n; i++)
			for (j = i; j > 0 && compare_late(a + j - 1, a + j) > 0; j--)
				swap(a + j - 1, a + j, 1);
		return;
	}
	scanning = true;
	for (i = 1; i < n && compare_late(a + i - 1, a + i) <= 0; i++)
		continue;
	scanning = false;
	if (i == n)
		return;
	if (n > 40)
		swap(a, median(median(a, a + n / 8, a + n / 8 * 2),
					   median(a + n / 2 - n / 8, a + n / 2, a + n / 2 + n / 8),
					   median(a + n - 1 - n / 8 * 2, a + n - 1 - n / 8, a + n - 1)), 1);
	else
		swap(a, n > 7 ? median(a, a + n / 2, a + n - 1) : a + n / 2, 1);
	for (;; swap(low++, high--, 1))
	{
		for (; low <= high && (order = compare_late(low, a)) <= 0; low++)
			if (order == 0)
				swap(low_equal++, low, 1);
		for (; low <= high && (order = compare_late(high, a)) >= 0; high--)
			if (order == 0)
				swap(high, high_equal--, 1);
		if (low > high)
			break;
	}
	i = Min(low_equal - a, low - low_equal);
	swap(a, low - i, i);
	i = Min(high_equal - high, a + n - 1 - high_equal);
	swap(low, a + n - i, i);
	quicksort(a, low - low_equal);
	quicksort(a + n - (high_equal - high), high_equal - high);
}

static void
make_killer(size_t count)
{
	uint32_t   *numbers = malloc(count * sizeof(uint32_t));
	size_t		i;

	free(killer);
	killer = malloc(count * sizeof(uint32_t));
	for (i = 0; i < count; i++)
	{
		numbers[i] = (uint32_t) i;
		killer[i] = UNKNOWN;
	}
	nknown = 0;
	candidate = 0;
	quicksort(numbers, (ptrdiff_t) count);
	free(numbers);
}

/* All in one place, so that they must be sorted by something else. */
static uint64_t
worst_for_quicksort(size_t i, size_t count)
{
	if (i == 0)
		make_killer(count);
	return UINT64_C(0xabcdef01) << 32 | killer[i];
}

static const struct
{
	const char *name;
	uint64_t	(*hash) (size_t i, size_t count);
}			kinds[] =
{
	{"hashes by chance", by_chance},
	{"ascending hashes", ascending},
	{"descending hashes", descending},
	{"hashes that are alike at the front", alike_at_the_front},
	{"hashes that are alike at the end", alike_at_the_end},
	{"one hash again and again", all_equal},
	{"few different hashes", few_different},
	{"crowds in every bucket", crowded_buckets},
	{"all in one bucket", one_bucket},
	{"places that are nearly too crowded", nearly_crowded},
	{"the worst order for a quicksort", worst_for_quicksort},
};

#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static int
compare(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

static void
check_settled(const FavHashSet *set, const uint64_t *hashes, size_t count)
{
	uint64_t   *expected = malloc((count + 1) * sizeof(uint64_t));
	size_t		distinct = 0;
	size_t		i;

	memcpy(expected, hashes, count * sizeof(uint64_t));
	qsort(expected, count, sizeof(uint64_t), compare);
	for (i = 0; i < count; i++)
		if (distinct == 0 || expected[distinct - 1] != expected[i])
			expected[distinct++] = expected[i];
	CHECK_THAT(set->count == distinct, "%zu hashes, %zu different, became %zu", count, distinct, set->count);
	if (set->count == distinct)
	{
		size_t		nspans;
		FavSpan    *spans = fav_hashset_spans(set, &nspans);
		size_t		done = 0;
		size_t		span;

		for (span = 0; span < nspans; span++)
			for (i = 0; i < spans[span].count; i++, done++)
				CHECK_THAT(done < distinct && spans[span].hashes[i] == expected[done], "hash %zu of %zu is wrong", done, distinct);
		CHECK_THAT(done == distinct, "%zu hashes of %zu", done, distinct);
		fav_free(spans);
	}
	free(expected);
}

/*
 * Counting
 */
static uint64_t last_look;
static uint64_t longest;

static void
look(void)
{
	if (work_done - last_look > longest)
		longest = work_done - last_look;
	last_look = work_done;
}

static void
add_all(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	size_t		i;

	for (i = 0; i < count; i++)
	{
		look();					/* the server does, between rows */
		fav_hashset_add(set, hashes[i], NULL);
	}
	fav_hashset_settle(set);
}

static void
sort_all(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	set->hashes = server_alloc(count * sizeof(uint64_t));
	set->room = set->count = count;
	memcpy(set->hashes, hashes, count * sizeof(uint64_t));
	fav_hashset_settle(set);
}

/* As it goes from one process to another, where there may be no alignment. */
static void
send_to(FavHashSet *set, FavHashSet *other)
{
	uint8_t    *stored;

	fav_hashset_compact(other);
	stored = server_alloc(fav_hashset_stored_size(other) + 1);
	fav_hashset_store(other, stored + 1);
	fav_hashset_merge(set, stored + 1, fav_hashset_stored_size(other), NULL);
	fav_free(stored);
}

/* In memory that both share, and that is not the set's to free. */
static void *lent[64];
static size_t nlent;

static void
lend_to(FavHashSet *set, FavHashSet *other)
{
	FavHashPart *part;
	size_t		size;

	fav_hashset_compact(other);
	if (other->many == NULL)
	{
		send_to(set, other);
		return;
	}
	size = fav_hashset_stored_size(other);
	part = lent[nlent++] = malloc(fav_part_offset() + size);
	fav_hashset_store(other, fav_part_sent(part));
	fav_hashset_lend(set, part, size, NULL);
}

/* In parts, as from parallel workers: half, a quarter, ... and then the rest. */
static void
merge_parts(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	static FavHashSet other;
	size_t		part;
	size_t		left;
	size_t		i;

	for (left = count; left > 0; left -= part, hashes += part)
	{
		part = left > 100 ? left / 2 : left;
		other = (FavHashSet) {0};
		for (i = 0; i < part; i++)
		{
			look();
			fav_hashset_add(&other, hashes[i], NULL);
		}
		if (left % 3 == 0)
			fav_hashset_unite(set, &other, NULL);
		else if (left % 3 == 1)
			send_to(set, &other);
		else
			lend_to(set, &other);
	}
}

static void
merge_all(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	merge_parts(set, hashes, count);
	fav_hashset_settle(set);
}

/* A capacity that depends on the count shows whether that was right. */
static uint64_t
exactly(uint64_t wanted, uint64_t count)
{
	(void) wanted;
	return count;
}

/*
 * A filter that is built from the set as it is has the bytes of one that is built
 * from what check_settled() will see.
 */
static void
build_both(FavHashSet *set)
{
	static FavEditor editor;
	Value		expected;
	Value		built;
	uint64_t	total = 0;
	size_t		nspans;
	FavSpan    *spans;
	uint64_t   *hashes;
	size_t		i;

	fav_hashset_build(set, &DEFAULT_PARAMS, exactly, &editor);
	value_from_editor(&built, &editor);
	fav_editor_close(&editor);

	fav_hashset_settle(set);
	spans = fav_hashset_spans(set, &nspans);
	for (i = 0; i < nspans; i++)
		total += spans[i].count;
	hashes = server_alloc(total * sizeof(uint64_t));
	for (i = 0, total = 0; i < nspans; total += spans[i++].count)
		memcpy(hashes + total, spans[i].hashes, spans[i].count * sizeof(uint64_t));
	CHECK(fav_editor_build(&editor, &(FavParams) {.capacity = total, .kind = FAV_KIND_INTEGER, .error_rate = 0.01, .region_size = 7},
						   hashes, total) == FAV_OK);
	fav_free(hashes);
	value_from_editor(&expected, &editor);
	fav_editor_close(&editor);
	fav_free(spans);
	CHECK_THAT(built.size == expected.size && memcmp(built.bytes, expected.bytes, built.size) == 0,
			   "%zu hashes give %zu bytes, or others than sorted ones, %zu", (size_t) total, built.size, expected.size);
	value_free(&built);
	value_free(&expected);
}

static void
build(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	size_t		i;

	for (i = 0; i < count; i++)
	{
		look();
		fav_hashset_add(set, hashes[i], NULL);
	}
	build_both(set);
}

static void
build_merged(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	merge_parts(set, hashes, count);
	build_both(set);
}

/* The same part from five processes, and then hashes one by one. */
static void
build_repeated(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	static FavHashSet other;
	size_t		i;
	int			part;

	other = (FavHashSet) {0};
	for (i = 0; i < count / 2; i++)
	{
		look();
		fav_hashset_add(&other, hashes[i], NULL);
	}
	for (part = 0; part < 5; part++)
	{
		look();
		if (part % 2 == 0)
			send_to(set, &other);
		else
			lend_to(set, &other);
	}
	for (i = count / 4; i < count; i++)
	{
		look();
		fav_hashset_add(set, hashes[i], NULL);
	}
	build_both(set);
}

/* Work on a set, within a limit; prints what it took. */
static void
measure(const char *what, void (*work) (FavHashSet *set, const uint64_t *hashes, size_t count),
		const uint64_t *hashes, size_t count, uint64_t most)
{
	static FavHashSet set;
	uint64_t	start = work_done;

	set = (FavHashSet) {0};
	last_look = work_done;
	longest = 0;
	on_pause = look;
	if (setjmp(work_exceeded) == 0)
	{
		work_limit = work_done + most * count;
		work(&set, hashes, count);
		work_limit = 0;
		look();
		printf("hashset: %s, %zu hashes: %.0f steps each, %.2f million at once\n", what, count,
			   (double) (work_done - start) / (double) count, (double) longest / 1e6);
		CHECK_THAT(longest <= MOST_AT_ONCE, "%s: %llu steps without a look for a cancel", what,
				   (unsigned long long) longest);
		check_settled(&set, hashes, count);

		/* chunks are allocated ahead, at most as many as there are and 2048 */
		CHECK_THAT(allocated_bytes() <= 4 * 8 * count + 2 * 1024 * 1024, "%s, %zu hashes: %zu bytes", what, count, allocated_bytes());
	}
	else
		CHECK_THAT(false, "%s, %zu hashes: more than %llu steps each", what, count, (unsigned long long) most);
	on_pause = NULL;
	free_allocations();
	while (nlent > 0)
		free(lent[--nlent]);
}

static void
test_kind(size_t kind)
{
	static const size_t counts[] = {300, 8000, 50000};
	size_t		c;

	test_begin("hashset: %s", kinds[kind].name);
	for (c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
	{
		uint64_t   *hashes = malloc(counts[c] * sizeof(uint64_t));
		size_t		i;

		for (i = 0; i < counts[c]; i++)
			hashes[i] = kinds[kind].hash(i, counts[c]);
		measure("sorted", sort_all, hashes, counts[c], MOST_TO_SORT);
		measure("added", add_all, hashes, counts[c], MOST_TO_ADD);
		measure("merged", merge_all, hashes, counts[c], MOST_TO_MERGE);
		if (counts[c] > 300)	/* for few, most of the work is to choose the size */
			measure("built", build, hashes, counts[c], MOST_TO_BUILD);
		free(hashes);
	}
	test_end();
}

/* So many that a pass without a look for a cancel is too long. */
static void
test_looks(void)
{
	size_t		count = 6000000;
	uint64_t   *hashes = malloc(count * sizeof(uint64_t));
	size_t		i;

	test_begin("hashset: many hashes, and looks for a cancel");
	for (i = 0; i < count; i++)
		hashes[i] = by_chance(i, count);
	measure("added", add_all, hashes, count, MOST_TO_ADD);
	measure("built", build, hashes, count, MOST_TO_BUILD);
	count = 4500000;
	for (i = 0; i < count; i++)
		hashes[i] = alike_at_the_front(i, count);
	measure("sorted", sort_all, hashes, count, MOST_TO_SORT);

	for (i = 0; i < count; i++)
		hashes[i] = by_chance(i, count);
	measure("merged", merge_all, hashes, count, MOST_TO_ADD);
	measure("built of parts", build_merged, hashes, count, MOST_TO_BUILD);
	measure("built of the same parts", build_repeated, hashes, count, MOST_TO_BUILD);
	free(hashes);
	test_end();
}

/*
 * Hashes that are there twice, and nobody has looked for them when the filter is
 * built: none, the very first and last, and one in so many.
 */
static void
test_duplicates(void)
{
	static const size_t every[] = {0, 1, 300000, 20000, 2000, 100, 10, 2};
	size_t		count = 300000;
	uint64_t   *hashes = malloc(count * sizeof(uint64_t));
	size_t		e;
	size_t		i;

	for (e = 0; e < sizeof(every) / sizeof(every[0]); e++)
	{
		test_begin("hashset: built with duplicates, case %zu of %zu", e + 1, sizeof(every) / sizeof(every[0]));
		for (i = 0; i < count; i++)
			hashes[i] = by_chance(i, count);
		if (every[e] == 1)
			hashes[count - 1] = hashes[0];
		else if (every[e] > 0)
			for (i = every[e] - 1; i < count; i += every[e])
				hashes[i] = hashes[random_below(&random_state, i)];
		measure("built", build, hashes, count, MOST_TO_BUILD);
		measure("built of parts", build_merged, hashes, count, MOST_TO_BUILD);
		test_end();
	}
	free(hashes);
}

int
main(void)
{
	size_t		kind;

	random_state = 1;
	for (kind = 0; kind < NKINDS; kind++)
		test_kind(kind);
	free(killer);
	test_looks();
	test_duplicates();
	return test_summary("test_hashset");
}
