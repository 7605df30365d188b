/*
 * core.c
 *		The core alone, in nanoseconds per operation, next to a cuckoo filter.
 *
 *		core ELEMENTS SEED
 *
 * prints a line for each filter and operation, tab separated:
 *
 *		filter	operation	nanoseconds	bits per element
 *
 * Both filters get the same hashes (XXH3 of a 64-bit id, computed within what is measured), hold
 * the same elements and are probed in the same random order.  Every operation is a call that is not
 * inlined; "64 at once" has as many in one call, as SQL has them for the elements of an array.
 *
 * The filters:
 *
 *		fav, sized		capacity known: one slice
 *		fav, grown		started for 1,000 elements: a chain of slices
 *		cuckoo			12-bit fingerprints, four to a bucket, partial-key
 *						cuckoo hashing (Fan et al. 2014); false positives 0.2 %
 *
 * The cuckoo filter is as good as a straightforward one gets: buckets of six
 * bytes are loaded as one word and compared four fingerprints at a time.  Its
 * number of buckets is a power of two, so it has its best case at a million
 * elements (95 % full) and wastes up to half of its space elsewhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "editor.h"

void *
fav_alloc(size_t size)
{
	return malloc(size);
}

void
fav_free(void *memory)
{
	free(memory);
}

void
fav_pause(void)
{
}

static void *
must_alloc(size_t size)
{
	void	   *memory = malloc(size);

	if (memory == NULL)
	{
		fprintf(stderr, "core: out of memory\n");
		exit(1);
	}
	return memory;
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static inline uint64_t
next_random(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/*
 * The cuckoo filter
 */

#define MAX_KICKS	500

typedef struct Cuckoo
{
	uint8_t    *buckets;		/* six bytes each, two more at the very end */
	uint64_t	mask;
	uint64_t	state;			/* of the random numbers for kicks */
} Cuckoo;

#define BUCKET_BITS		UINT64_C(0x0000ffffffffffff)

static void
cuckoo_init(Cuckoo *cuckoo, size_t elements)
{
	uint64_t	count = 1;

	while ((double) count * 4 * 0.96 < (double) elements)
		count *= 2;
	cuckoo->mask = count - 1;
	cuckoo->state = 1;
	cuckoo->buckets = must_alloc(count * 6 + 2);
	memset(cuckoo->buckets, 0, count * 6 + 2);
}

static inline uint64_t
cuckoo_load(const Cuckoo *cuckoo, uint64_t bucket)
{
	return fav_load64(cuckoo->buckets + 6 * bucket);
}

static inline void
cuckoo_store(Cuckoo *cuckoo, uint64_t bucket, uint64_t word)
{
	fav_store32(cuckoo->buckets + 6 * bucket, (uint32_t) word);
	fav_store16(cuckoo->buckets + 6 * bucket + 4, (uint32_t) (word >> 32));
}

/* zero is the empty slot */
static inline uint64_t
cuckoo_fingerprint(uint64_t hash)
{
	uint64_t	fingerprint = hash >> 52;

	return fingerprint + (fingerprint == 0);
}

static inline uint64_t
cuckoo_other(const Cuckoo *cuckoo, uint64_t bucket, uint64_t fingerprint)
{
	return (bucket ^ fingerprint * UINT64_C(0x5bd1e995)) & cuckoo->mask;
}

/* The top bit of each slot that is zero.  Exact for the lowest such slot. */
static inline uint64_t
cuckoo_zeros(uint64_t word)
{
	return (word - UINT64_C(0x001001001001)) & ~word & UINT64_C(0x800800800800);
}

static inline uint64_t
cuckoo_matches(uint64_t word, uint64_t fingerprint)
{
	return cuckoo_zeros((word & BUCKET_BITS) ^ fingerprint * UINT64_C(0x001001001001));
}

static __attribute__((noinline)) bool
cuckoo_contains(const Cuckoo *cuckoo, uint64_t hash)
{
	uint64_t	fingerprint = cuckoo_fingerprint(hash);
	uint64_t	one = hash & cuckoo->mask;
	uint64_t	two = cuckoo_other(cuckoo, one, fingerprint);

	return (cuckoo_matches(cuckoo_load(cuckoo, one), fingerprint) |
			cuckoo_matches(cuckoo_load(cuckoo, two), fingerprint)) != 0;
}

static inline bool
cuckoo_put(Cuckoo *cuckoo, uint64_t bucket, uint64_t fingerprint)
{
	uint64_t	word = cuckoo_load(cuckoo, bucket);
	uint64_t	zeros = cuckoo_zeros(word & BUCKET_BITS);

	if (zeros == 0)
		return false;
	cuckoo_store(cuckoo, bucket, word | fingerprint << (__builtin_ctzll(zeros) - 11));
	return true;
}

static __attribute__((noinline)) bool
cuckoo_insert(Cuckoo *cuckoo, uint64_t hash)
{
	uint64_t	fingerprint = cuckoo_fingerprint(hash);
	uint64_t	bucket = hash & cuckoo->mask;
	int			kick;

	if (cuckoo_put(cuckoo, bucket, fingerprint))
		return true;
	bucket = cuckoo_other(cuckoo, bucket, fingerprint);
	for (kick = 0; kick < MAX_KICKS; kick++)
	{
		uint64_t	word;
		uint64_t	old;
		int			shift;

		if (cuckoo_put(cuckoo, bucket, fingerprint))
			return true;
		shift = 12 * (int) (next_random(&cuckoo->state) & 3);
		word = cuckoo_load(cuckoo, bucket);
		old = word >> shift & 0xfff;
		cuckoo_store(cuckoo, bucket, word ^ (old ^ fingerprint) << shift);
		fingerprint = old;
		bucket = cuckoo_other(cuckoo, bucket, fingerprint);
	}
	return false;
}

static __attribute__((noinline)) bool
cuckoo_delete(Cuckoo *cuckoo, uint64_t hash)
{
	uint64_t	fingerprint = cuckoo_fingerprint(hash);
	uint64_t	bucket = hash & cuckoo->mask;
	int			i;

	for (i = 0; i < 2; i++)
	{
		uint64_t	word = cuckoo_load(cuckoo, bucket);
		uint64_t	matches = cuckoo_matches(word, fingerprint);

		if (matches != 0)
		{
			cuckoo_store(cuckoo, bucket, word ^ fingerprint << (__builtin_ctzll(matches) - 11));
			return true;
		}
		bucket = cuckoo_other(cuckoo, bucket, fingerprint);
	}
	return false;
}

/*
 * What is measured
 */

#define FILTERS			3
#define OPERATIONS		7

static const char *const filter_names[FILTERS] = {"fav, sized", "fav, grown", "cuckoo"};
static const char *const operation_names[OPERATIONS] = {
	"absent", "present", "add", "delete", "absent, 64 at once", "present, 64 at once", "delete, 64 at once"
};

/* Probes and removals of one call, as SQL has them for the elements of an array. */
#define MANY			64

static double bits[FILTERS];

/* Elements, and as many ids that are not. */
typedef struct Ids
{
	size_t		count;
	size_t		deleted;
	int64_t    *inside;
	int64_t    *shuffled;		/* the same in another order */
	int64_t    *outside;
} Ids;

static void
make_ids(Ids *ids, uint64_t seed)
{
	uint64_t	state = seed;
	size_t		i;

	for (i = 0; i < ids->count; i++)
	{
		ids->inside[i] = ids->shuffled[i] = (int64_t) next_random(&state);
		ids->outside[i] = (int64_t) next_random(&state);
	}
	for (i = ids->count; i > 1; i--)
	{
		size_t		j = next_random(&state) % i;
		int64_t		swap = ids->shuffled[i - 1];

		ids->shuffled[i - 1] = ids->shuffled[j];
		ids->shuffled[j] = swap;
	}
}

/* The answers are counted and checked, so that none of the work can be left out. */
static void
expect(bool right, const char *what)
{
	if (!right)
	{
		fprintf(stderr, "core: wrong answers from %s\n", what);
		exit(1);
	}
}

static size_t
probe_many(const FavMatcher *matcher, const int64_t *ids, size_t count)
{
	uint64_t	hashes[MANY];
	bool		answers[MANY];
	size_t		found = 0;
	size_t		from;
	size_t		i;

	for (from = 0; from < count; from += MANY)
	{
		size_t		probed = count - from < MANY ? count - from : MANY;

		for (i = 0; i < probed; i++)
			hashes[i] = fav_hash_integer(ids[from + i], 0);
		fav_matcher_contains_many(matcher, hashes, probed, answers);
		for (i = 0; i < probed; i++)
			found += answers[i];
	}
	return found;
}

/*
 * The copy that an edit begins with is not measured.  It leaves the blocks in the cache, where
 * the cuckoo filter has its own.
 */
static void
begin_deletes(FavEditor *editor, const FavFilter *filter)
{
	uint32_t	i;

	fav_editor_open(editor, filter);
	for (i = 0; i < filter->nslices; i++)
		expect(fav_editor_own_slice(editor, i) == FAV_OK, "copy");
}

static void
del_many(FavEditor *editor, const int64_t *ids, size_t count)
{
	uint64_t	hashes[MANY];
	size_t		from;
	size_t		i;

	for (from = 0; from < count; from += MANY)
	{
		size_t		deleted = count - from < MANY ? count - from : MANY;

		for (i = 0; i < deleted; i++)
			hashes[i] = fav_hash_integer(ids[from + i], 0);
		if (fav_editor_remove_many(editor, hashes, deleted) != FAV_OK)
			expect(false, "delete, many");
	}
}

static void
measure_fav(const Ids *ids, int number, uint64_t capacity, double *times)
{
	FavParams	params = {.capacity = capacity, .seed = 0, .kind = FAV_KIND_INTEGER,
	.error_rate = 0.01, .region_size = 7};
	FavEditor	editor;
	const FavFilter *result;
	FavFilter	filter;
	FavMatcher	matcher;
	FavProblem	problem;
	uint8_t    *memory;
	uint8_t    *value;
	size_t		head;
	size_t		size;
	size_t		found;
	double		start;
	size_t		i;

	start = now();
	fav_editor_new(&editor, &params);
	for (i = 0; i < ids->count; i++)
		if (fav_editor_add(&editor, fav_hash_integer(ids->inside[i], 0)) != FAV_OK)
			expect(false, "insert");
	times[2] = (now() - start) / (double) ids->count;

	/* probe the bytes of a value whose blocks begin with a cache line, as in the TOAST cache */
	expect(fav_editor_finish(&editor, &result) == FAV_OK, "finish");
	bits[number] = (double) fav_size(result) * 8 / (double) ids->count;
	size = fav_size(result);
	memory = must_alloc(size + 64);
	head = fav_head_size(result);
	value = memory + (0 - (uintptr_t) memory - head) % 64;
	fav_write(result, value);
	fav_editor_close(&editor);
	expect(fav_open(&filter, value, size, size, &problem) == FAV_OK, "open");
	fav_matcher_init(&matcher, &filter);

	start = now();
	for (i = 0, found = 0; i < ids->count; i++)
		found += fav_matcher_contains(&matcher, fav_hash_integer(ids->outside[i], 0));
	times[0] = (now() - start) / (double) ids->count;
	expect(found < ids->count / 50, "miss");

	start = now();
	for (i = 0, found = 0; i < ids->count; i++)
		found += fav_matcher_contains(&matcher, fav_hash_integer(ids->shuffled[i], 0));
	times[1] = (now() - start) / (double) ids->count;
	expect(found == ids->count, "hit");

	start = now();
	found = probe_many(&matcher, ids->outside, ids->count);
	times[4] = (now() - start) / (double) ids->count;
	expect(found < ids->count / 50, "miss, many");

	start = now();
	found = probe_many(&matcher, ids->shuffled, ids->count);
	times[5] = (now() - start) / (double) ids->count;
	expect(found == ids->count, "hit, many");

	/* with the end of the edit */
	begin_deletes(&editor, &filter);
	start = now();
	for (i = 0; i < ids->deleted; i++)
		if (fav_editor_remove(&editor, fav_hash_integer(ids->shuffled[i], 0)) != FAV_OK)
			expect(false, "delete");
	expect(fav_editor_finish(&editor, &result) == FAV_OK, "finish");
	times[3] = (now() - start) / (double) ids->deleted;
	found = (size_t) result->elements;
	fav_editor_close(&editor);

	begin_deletes(&editor, &filter);
	start = now();
	del_many(&editor, ids->shuffled, ids->deleted);
	expect(fav_editor_finish(&editor, &result) == FAV_OK, "finish");
	times[6] = (now() - start) / (double) ids->deleted;
	expect(result->elements == found, "delete, many");
	fav_editor_close(&editor);
	free(memory);
}

static void
measure_cuckoo(const Ids *ids, int number, double *times)
{
	Cuckoo		cuckoo;
	size_t		found;
	double		start;
	size_t		i;

	start = now();
	cuckoo_init(&cuckoo, ids->count);
	for (i = 0, found = 0; i < ids->count; i++)
		found += cuckoo_insert(&cuckoo, fav_hash_integer(ids->inside[i], 0));
	times[2] = (now() - start) / (double) ids->count;
	expect(found == ids->count, "cuckoo insert");
	bits[number] = (double) (cuckoo.mask + 1) * 48 / (double) ids->count;

	start = now();
	for (i = 0, found = 0; i < ids->count; i++)
		found += cuckoo_contains(&cuckoo, fav_hash_integer(ids->outside[i], 0));
	times[0] = (now() - start) / (double) ids->count;
	expect(found < ids->count / 50, "cuckoo miss");

	start = now();
	for (i = 0, found = 0; i < ids->count; i++)
		found += cuckoo_contains(&cuckoo, fav_hash_integer(ids->shuffled[i], 0));
	times[1] = (now() - start) / (double) ids->count;
	expect(found == ids->count, "cuckoo hit");

	start = now();
	for (i = 0, found = 0; i < ids->deleted; i++)
		found += cuckoo_delete(&cuckoo, fav_hash_integer(ids->shuffled[i], 0));
	times[3] = (now() - start) / (double) ids->deleted;
	expect(found == ids->deleted, "cuckoo delete");

	free(cuckoo.buckets);
	times[4] = times[5] = times[6] = 0; /* it has no such call */
}

int
main(int argc, char **argv)
{
	Ids			ids;

	ids.count = argc == 3 ? (size_t) atoll(argv[1]) : 0;
	if (ids.count < 1000)
	{
		fprintf(stderr, "usage: core ELEMENTS (1000 or more) SEED\n");
		return 2;
	}
	ids.deleted = ids.count / 10;
	ids.inside = must_alloc(ids.count * 8);
	ids.shuffled = must_alloc(ids.count * 8);
	ids.outside = must_alloc(ids.count * 8);
	make_ids(&ids, strtoull(argv[2], NULL, 10));
	for (int filter = 0; filter < FILTERS; filter++)
	{
		double		times[OPERATIONS];

		if (filter == 2)
			measure_cuckoo(&ids, filter, times);
		else
			measure_fav(&ids, filter, filter == 0 ? ids.count : 1000, times);
		for (int operation = 0; operation < OPERATIONS; operation++)
			if (times[operation] > 0)
				printf("%s\t%s\t%.2f\t%.2f\n", filter_names[filter], operation_names[operation],
					   times[operation], bits[filter]);
	}
	return 0;
}
