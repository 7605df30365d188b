/*
 * test_hashset.c
 *		The hash set of the aggregates: it is correct, and no choice or order of hashes
 *		makes it need much more work or memory than others.  Its serialized form: reading
 *		is safe for any bytes.
 */
#include "harness.h"
#include "work.h"

#include "server/server.h"
#include "../../src/aggregate/hashset.h"

/*
 * The most steps per hash (work.h): to sort them once, to add them one by one, and to merge sets
 * to which they were added one by one.  Random hashes take a third of that.
 */
#define MOST_TO_SORT	200
#define MOST_TO_ADD		200
#define MOST_TO_MERGE	250

/* The most memory per distinct hash during adds, and the constant for small sets. */
#define MOST_BYTES		16
#define MOST_SMALL		(16 * 1024)

/* The most steps between two checks for interrupts, for any number of hashes. */
#define MOST_AT_ONCE	4000000

static size_t peak_bytes;

void *
server_alloc(size_t size)
{
	void	   *memory = fav_alloc(size);

	if (memory == NULL)
		abort();
	if (allocated_bytes() > peak_bytes)
		peak_bytes = allocated_bytes();
	return memory;
}

/* The server remaps large arrays without a second copy, so the peak does not include one. */
void *
server_realloc(void *memory, size_t size)
{
	size_t		old = allocated_size(memory);
	void	   *moved = fav_alloc(size);

	if (moved == NULL)
		abort();
	memcpy(moved, memory, old < size ? old : size);
	fav_free(memory);
	return moved;
}

static uint64_t random_state;

/*
 * Hashes that are not random
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

/* Random first bits, equal other bits: every bucket is crowded. */
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

/* Every bucket has places that one more hash would overcrowd. */
static uint64_t
nearly_crowded(size_t i, size_t count)
{
	(void) count;
	return (i / 32 * UINT64_C(0x9e3779b97f4a7c15) & ~UINT64_C(0xffffffff)) | (32 - i % 32);
}

/*
 * The order that is worst for a quicksort, by McIlroy's adversary ("A Killer
 * Adversary for Quicksort", 1999).  Numbers get their values while they are
 * sorted, each as late as possible, so that every pivot turns out to be one of the
 * smallest.  The quicksort is PostgreSQL's (Bentley and McIlroy's), which hashset.c
 * used once.
 */
#define UNKNOWN UINT32_MAX

static uint32_t *killer;		/* value of each number */
static uint32_t nknown;
static uint32_t candidate;		/* the pivot, probably: the number compared last */
static bool scanning;			/* is it already in order?  It must not be. */

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

/* All hashes are in one place, so that they must be sorted by comparison. */
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

static size_t
check_sorted(const FavHashSet *set, const uint64_t *hashes, size_t count)
{
	uint64_t   *expected = malloc((count + 1) * sizeof(uint64_t));
	size_t		distinct = 0;
	size_t		i;

	memcpy(expected, hashes, count * sizeof(uint64_t));
	qsort(expected, count, sizeof(uint64_t), compare);
	for (i = 0; i < count; i++)
		if (distinct == 0 || expected[distinct - 1] != expected[i])
			expected[distinct++] = expected[i];
	CHECK_THAT(set->count == distinct && set->sorted == distinct,
			   "%zu hashes, %zu different, became %zu", count, distinct, set->count);
	CHECK_THAT(set->count == distinct &&
			   memcmp(set->hashes, expected, distinct * sizeof(uint64_t)) == 0, "other hashes");
	free(expected);
	return distinct;
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
add_each(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	size_t		i;

	for (i = 0; i < count; i++)
	{
		look();					/* the server checks between rows */
		fav_hashset_add(set, hashes[i]);
	}
}

static void
add_all(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	add_each(set, hashes, count);
	fav_hashset_sort(set);
}

static void
sort_all(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	fav_hashset_reserve(set, count);
	memcpy(set->hashes, hashes, count * sizeof(uint64_t));
	set->count = count;
	fav_hashset_sort(set);
}

/* Send a state as from one process to another, without alignment. */
static void
send_to(FavHashSet *set, FavHashSet *other)
{
	FavAggState sent = {.params = DEFAULT_PARAMS, .set = *other};
	FavAggState received;
	size_t		size = fav_state_size(&sent);
	uint8_t    *bytes = server_alloc(size + 1);
	size_t		used = 0;

	CHECK(fav_state_write(&sent, bytes + 1) == bytes + 1 + size);
	CHECK(fav_state_read(&received, bytes + 1, size, &used) == NULL);
	CHECK(used == size);
	fav_hashset_unite(set, received.set.hashes, received.set.count);
	fav_free(received.set.hashes);
	fav_free(bytes);
}

/* Merge sets as of parallel workers: half, a quarter, ... and then many small ones. */
static void
merge_all(FavHashSet *set, const uint64_t *hashes, size_t count)
{
	size_t		n;
	size_t		left;

	for (left = count; left > 0; left -= n, hashes += n)
	{
		FavHashSet	other;

		n = left / 2 > count / 20 ? left / 2 : left < 50 ? left : left / 20 + 1;
		fav_hashset_init(&other, NULL);
		add_all(&other, hashes, n);
		if (left % 2 == 0)
			fav_hashset_unite(set, other.hashes, other.count);
		else
			send_to(set, &other);
		fav_free(other.hashes);
		if (left % 3 == 0)
			fav_hashset_add(set, hashes[0]);
	}
	fav_hashset_sort(set);
}

/* Work on a set within a limit, and print the number of steps. */
static void
measure(const char *what, void (*work) (FavHashSet *set, const uint64_t *hashes, size_t count),
		const uint64_t *hashes, size_t count, uint64_t most)
{
	static FavHashSet set;
	uint64_t	start = work_done;
	size_t		distinct;

	peak_bytes = 0;
	fav_hashset_init(&set, NULL);
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
		distinct = check_sorted(&set, hashes, count);
		CHECK_THAT(work != add_all || peak_bytes <= MOST_BYTES * distinct + MOST_SMALL,
				   "%s, %zu distinct hashes: %zu bytes", what, distinct, peak_bytes);
	}
	else
		CHECK_THAT(false, "%s, %zu hashes: more than %llu steps each", what, count,
				   (unsigned long long) most);
	on_pause = NULL;
	free_allocations();
}

static void
test_kind(size_t kind)
{
	static const size_t counts[] = {1, 5, 300, 8000, 50000};
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
		free(hashes);
	}
	test_end();
}

/* So many hashes that a pass without a check for interrupts exceeds the limit. */
static void
test_looks(void)
{
	size_t		count = 6000000;
	uint64_t   *hashes = malloc(count * sizeof(uint64_t));
	size_t		i;

	test_begin("hashset: many hashes, with checks for interrupts");
	for (i = 0; i < count; i++)
		hashes[i] = by_chance(i, count);
	measure("added", add_all, hashes, count, MOST_TO_ADD);
	measure("merged", merge_all, hashes, count, MOST_TO_MERGE);
	for (i = 0; i < count; i++)
		hashes[i] = by_chance(i, count) % 100000 * UINT64_C(0x9e3779b97f4a7c15);
	measure("added, most of them duplicates", add_all, hashes, count, MOST_TO_ADD);
	for (i = 0; i < count; i++)
		hashes[i] = alike_at_the_front(i, count);
	measure("sorted", sort_all, hashes, count, MOST_TO_SORT);
	free(hashes);
	test_end();
}

/* A set is read and then grows further. */
static void
test_sorted_often(void)
{
	uint64_t	hashes[3000];
	FavHashSet	set;
	size_t		i;

	test_begin("hashset: sorted after every hash");
	fav_hashset_init(&set, NULL);
	for (i = 0; i < 3000; i++)
	{
		hashes[i] = by_chance(0, 0) % 1000;
		fav_hashset_add(&set, hashes[i]);
		fav_hashset_sort(&set);
		if (i % 100 == 0)
			check_sorted(&set, hashes, i + 1);
	}
	check_sorted(&set, hashes, 3000);
	free_allocations();
	test_end();
}

/*
 * Serialized states
 */

static const char *
read_exactly(FavAggState *state, const uint8_t *bytes, size_t size)
{
	uint8_t    *copy = malloc(size + 1);	/* the sanitizer detects a read of one byte too many */
	size_t		used = 0;
	const char *problem;

	memcpy(copy + 1, bytes, size);
	problem = fav_state_read(state, copy + 1, size, &used);
	CHECK(problem != NULL || used <= size);
	free(copy);
	return problem;
}

static void
test_state(void)
{
	static const uint8_t expected[] = {
		1, FAV_KIND_INTEGER, 7, 0,
		0xe8, 3, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0x7b, 0x14, 0xae, 0x47, 0xe1, 0x7a, 0x84, 0x3f,
		2, 0, 0, 0, 0, 0, 0, 0,
		0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 1,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
	};
	static const struct
	{
		size_t		at;
		uint8_t		byte;
	}			wrong[] =
	{
		{0, 0}, {0, 2}, {1, 0}, {1, 6}, {2, 0}, {2, 32}, {3, 1},	/* version, kind, region size */
		{11, 1}, {27, 0xbf}, {27, 0x40}, {27, 0x7f},	/* capacity, error rate */
		{28, 3}, {35, 0x20}, {51, 0}	/* count, order */
	};
	uint8_t		bytes[sizeof(expected)];
	FavAggState state;
	size_t		i;
	int			round;

	test_begin("hashset: serialized states");
	fav_state_init(&state, &DEFAULT_PARAMS, NULL);
	fav_hashset_add(&state.set, UINT64_MAX);
	fav_hashset_add(&state.set, UINT64_C(0x0123456789abcdef));
	fav_hashset_sort(&state.set);
	CHECK(fav_state_size(&state) == sizeof(expected));
	CHECK(fav_state_write(&state, bytes) == bytes + sizeof(bytes));
	CHECK(memcmp(bytes, expected, sizeof(expected)) == 0);

	for (i = 0; i < sizeof(bytes); i++)
		CHECK_THAT(read_exactly(&state, bytes, i) != NULL, "%zu bytes are enough", i);
	CHECK(read_exactly(&state, bytes, sizeof(bytes)) == NULL);
	CHECK(state.set.count == 2 && state.set.sorted == 2 && state.set.hashes[1] == UINT64_MAX);
	CHECK(state.params.capacity == 1000 && state.params.error_rate == 0.01);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		memcpy(bytes, expected, sizeof(bytes));
		bytes[wrong[i].at] = wrong[i].byte;
		CHECK_THAT(read_exactly(&state, bytes, sizeof(bytes)) != NULL,
				   "byte %zu may be %d", wrong[i].at, wrong[i].byte);
	}

	/* random changes: an accepted state is written with the same bytes */
	for (round = 0; round < 100000; round++)
	{
		uint8_t		again[sizeof(bytes)];
		int			changes = 1 + (int) random_below(&random_state, 4);

		memcpy(bytes, expected, sizeof(bytes));
		while (changes-- > 0)
		{
			size_t		at = random_below(&random_state, sizeof(bytes));

			bytes[at] = (uint8_t) next_random(&random_state);
		}
		if (read_exactly(&state, bytes, sizeof(bytes)) == NULL)
		{
			CHECK(fav_state_size(&state) <= sizeof(bytes));
			CHECK(memcmp(again, bytes, fav_state_write(&state, again) - again) == 0);
		}
		if (round % 100 == 0)
			free_allocations();
	}
	free_allocations();
	test_end();
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
	test_sorted_often();
	test_state();
	return test_summary("test_hashset");
}
