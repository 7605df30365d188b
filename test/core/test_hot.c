/*
 * test_hot.c
 *		What is written for speed, in several ways, does the same as what is written
 *		for clarity.  Includes hot.c and change.c for their static functions.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <stdbool.h>
#include <stddef.h>

/* What was asked to be fetched ahead. */
static const void *prefetched[100];
static size_t nprefetched;

static void
note_prefetch(const void *address, ...)
{
	prefetched[nprefetched++ % 100] = address;
}

#define __builtin_prefetch(...) note_prefetch(__VA_ARGS__, 0)
#include "../../src/core/change.c"
#include "../../src/core/hot.c"
#undef __builtin_prefetch

#include "harness.h"

typedef uint32_t (*Reporting) (const FavFilter *filter, uint64_t hash, uint32_t enough, uint32_t *first);
typedef bool (*RecentContains) (const uint8_t *recent, uint32_t count, uint64_t hash);
typedef bool (*ContainsOne) (const FavFilter *filter, uint64_t hash);
typedef void (*PrepareAsker) (FavAsker *asker, const FavFilter *filter);

/* Slices of random bits, of which so many are set that questions of k bits are met now and then. */
/* `far`: so large that memory is fetched ahead for many questions. */
static void
make_slices(FavFilter *filter, uint32_t region_size, uint32_t nslices, bool far, uint64_t *random)
{
	uint32_t	i;

	memset(filter, 0, sizeof(*filter));
	filter->params.region_size = region_size;
	filter->nslices = nslices;
	for (i = 0; i < nslices; i++)
	{
		FavSlice   *slice = &filter->slices[i];
		size_t		made = 5 * fav_block_bytes(region_size);
		size_t		size;
		uint8_t    *blocks;
		size_t		at;

		slice->nblocks = (far ? PREFETCH_FROM / (uint32_t) fav_block_bytes(region_size) : 0) + 1 + (uint32_t) random_below(random, 5);
		slice->k = 1 + (uint32_t) random_below(random, FAV_MAX_K);
		size = fav_slice_bytes(slice, region_size);
		blocks = malloc(size);
		for (at = 0; at < (size < made ? size : made) * 8; at++)
		{
			uint8_t		mask = (uint8_t) (1 << at % 8);

			if (random_below(random, slice->k + 1) > 0)
				blocks[at / 8] |= mask;
			else
				blocks[at / 8] &= (uint8_t) ~mask;
		}
		for (at = made; at < size; at++)
			blocks[at] = blocks[at - made];
		slice->blocks = blocks;
	}
}

static void
check(const char *name, Reporting reporting)
{
	uint64_t	random = 5;
	uint64_t	answers[2] = {0, 0};
	uint32_t	run;

	test_begin("report: %s answers as it should", name);
	for (run = 0; run < 31 * 40; run++)
	{
		uint32_t	region_size = 1 + run % FAV_MAX_REGION_SIZE;
		FavFilter	filter;
		uint32_t	question;
		uint32_t	i;

		make_slices(&filter, region_size, (uint32_t) random_below(&random, 5), false, &random);
		for (question = 0; question < 200; question++)
		{
			uint64_t	hash = next_random(&random);
			uint32_t	enough = 1 + (uint32_t) random_below(&random, 3);
			uint32_t	expected = 0;
			uint32_t	first = FAV_MAX_SLICES;
			uint32_t	reported;

			for (i = 0; i < filter.nslices; i++)
			{
				const FavSlice *slice = &filter.slices[i];
				bool		contained = fav_block_contains(slice->blocks + fav_slice_block_offset(slice, region_size, hash),
														   region_size, slice->k, hash);

				expected += contained;
				answers[contained]++;
			}
			reported = reporting(&filter, hash, enough, &first);
			CHECK(reported == (expected < enough ? expected : enough));
			if (reported > 0)
				CHECK(first < filter.nslices &&
					  fav_block_contains(filter.slices[first].blocks +
										 fav_slice_block_offset(&filter.slices[first], region_size, hash),
										 region_size, filter.slices[first].k, hash));
			else
				CHECK(first == FAV_MAX_SLICES);
		}
		for (i = 0; i < filter.nslices; i++)
			free((void *) filter.slices[i].blocks);
	}
	CHECK_THAT(answers[0] > 50000 && answers[1] > 50000, "%llu times no, %llu times yes",
			   (unsigned long long) answers[0], (unsigned long long) answers[1]);
	test_end();
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = fav_load64(a);
	uint64_t	y = fav_load64(b);

	return (x > y) - (x < y);
}

/* Recent hashes, slices and deleted hashes together, by their definition. */
static bool
contains_slowly(const FavFilter *filter, uint64_t hash)
{
	uint32_t	i;
	bool		reported = false;
	bool		deleted = false;

	for (i = 0; i < filter->nrecent; i++)
		if (fav_load64(filter->recent + 8 * i) == hash)
			return true;
	for (i = 0; i < filter->nslices; i++)
		reported |= fav_block_contains(filter->slices[i].blocks +
									   fav_slice_block_offset(&filter->slices[i], filter->params.region_size, hash),
									   filter->params.region_size, filter->slices[i].k, hash);
	for (i = 0; i < filter->ntombstones; i++)
		deleted |= fav_load64(filter->tombstones + 8 * i) == hash;
	return reported && !deleted;
}

/* An asker with the code of one way or the other. */
static void
prepare_plain(FavAsker *asker, const FavFilter *filter)
{
	fav_asker_init(asker, filter);
	choose_answers(asker, is_usual(filter), false);
}

#ifdef HAVE_AVX2
static void
prepare_avx2(FavAsker *asker, const FavFilter *filter)
{
	fav_asker_init(asker, filter);
	choose_answers(asker, is_usual(filter), true);
}
#endif

static void
check_contains(const char *name, ContainsOne contains_one, PrepareAsker prepare)
{
	uint64_t	random = 11;
	uint64_t	answered[2] = {0, 0};
	uint64_t	answered_usual[2] = {0, 0};
	uint32_t	run;

	test_begin("contains: %s answers as it should", name);
	for (run = 0; run < 31 * 60; run++)
	{
		uint8_t		lists[2][8 * 40];
		uint64_t	hashes[160];
		bool		answers[160];
		FavFilter	filter;
		FavAsker	asker;
		bool		usual = run % 4 == 1;	/* a shape for which there is code of its own */
		uint32_t	asked;
		uint32_t	i;

		make_slices(&filter, usual ? USUAL_REGION_SIZE : 1 + run % FAV_MAX_REGION_SIZE,
					run % 2 ? 1 : (uint32_t) random_below(&random, 4), run % 16 < 2, &random);
		if (usual)
			filter.slices[0].k = FAV_LANE_WORDS + 1 + run / 4 % FAV_LANE_WORDS;
		for (i = 0; i < 160; i++)
			hashes[i] = next_random(&random);
		/* some of the questions are for recent, some for deleted ones, some (made up) for both */
		filter.nrecent = (uint32_t) random_below(&random, 41);
		filter.ntombstones = run % 3 == 0 ? 0 : (uint32_t) random_below(&random, 41);
		for (i = 0; i < 40; i++)
		{
			fav_store64(lists[0] + 8 * i, hashes[3 * i]);
			fav_store64(lists[1] + 8 * i, hashes[4 * i]);
		}
		filter.recent = lists[0];
		filter.tombstones = lists[1];
		qsort(lists[1], filter.ntombstones, 8, compare_hashes);
		prepare(&asker, &filter);
		CHECK(!usual || asker.blocks == filter.slices[0].blocks);
		for (i = 0; i < 160; i++)
			answers[i] = !contains_slowly(&filter, hashes[i]);
		asked = run % 3 ? (uint32_t) random_below(&random, 161) : (uint32_t) random_below(&random, FETCHED_AHEAD + 2);
		fav_ask_many(&asker, hashes, asked, answers);
		for (i = 0; i < 160; i++)
		{
			bool		expected = contains_slowly(&filter, hashes[i]);

			answered[expected]++;
			answered_usual[expected] += usual;
			CHECK_THAT(fav_ask(&asker, hashes[i]) == expected &&
					   contains_one(&filter, hashes[i]) == expected && (answers[i] == expected) == (i < asked),
					   "run %u, question %u of %u", run, i, asked);
		}
		for (i = 0; i < filter.nslices; i++)
			free((void *) filter.slices[i].blocks);
	}
	CHECK_THAT(answered[0] > 50000 && answered[1] > 50000, "%llu times no, %llu times yes",
			   (unsigned long long) answered[0], (unsigned long long) answered[1]);
	CHECK_THAT(answered_usual[0] > 10000 && answered_usual[1] > 10000, "%llu times no, %llu times yes of the usual shape",
			   (unsigned long long) answered_usual[0], (unsigned long long) answered_usual[1]);
	test_end();
}

/* What is fetched ahead is what a question then reads: both lanes, in each slice that is far. */
static void
check_prefetch(void)
{
	uint64_t	random = 12;
	uint32_t	run;

	test_begin("prefetch: the lanes of the first two groups, in far slices");
	for (run = 0; run < FAV_MAX_REGION_SIZE * 4; run++)
	{
		uint32_t	region_size = 1 + run % FAV_MAX_REGION_SIZE;
		uint32_t	far_blocks = (uint32_t) ((FAV_FAR_SLICE - 1) / fav_block_bytes(region_size)) + 1;
		FavFilter	filter;
		uint32_t	question;
		uint32_t	i;

		/* nothing is read: any address will do */
		memset(&filter, 0, sizeof(filter));
		filter.params.region_size = region_size;
		filter.nslices = (uint32_t) random_below(&random, 6);
		for (i = 0; i < filter.nslices; i++)
		{
			filter.slices[i].k = 1 + (uint32_t) random_below(&random, FAV_MAX_K);
			filter.slices[i].nblocks = random_below(&random, 2) ? far_blocks + (uint32_t) random_below(&random, 3) : far_blocks - 1;
			filter.slices[i].blocks = malloc(fav_slice_bytes(&filter.slices[i], region_size));
		}
		for (question = 0; question < 100; question++)
		{
			uint64_t	hash = next_random(&random);
			size_t		expected = 0;

			nprefetched = 0;
			fav_fetch_ahead(&filter, hash);
			for (i = filter.nslices; i-- > 0;)
			{
				const FavSlice *slice = &filter.slices[i];
				const uint8_t *block = slice->blocks + fav_slice_block_offset(slice, region_size, hash);
				FavProbe	probe = fav_probe_first(hash, region_size);

				if (slice->nblocks < far_blocks)
					continue;
				CHECK(prefetched[expected++] == block + probe.lane * FAV_LANE_BYTES);
				fav_probe_next(&probe);
				CHECK(prefetched[expected++] == block + probe.lane * FAV_LANE_BYTES);
			}
			CHECK(nprefetched == expected);
		}
		for (i = 0; i < filter.nslices; i++)
			free((void *) filter.slices[i].blocks);
	}
	test_end();
}

/* All counts, each hash wanted in turn, and hashes that differ from one by a bit. */
static void
check_recent(const char *name, RecentContains recent_contains)
{
	uint64_t	random = 6;
	uint32_t	count;

	test_begin("recent: %s answers as it should", name);
	for (count = 0; count <= FAV_RECENT_MAX; count++)
	{
		/* of the very size, for the sanitizer, and at any address */
		uint32_t	offset = count % 8;
		uint8_t    *memory = malloc(8 * count + offset);
		uint8_t    *recent = memory + offset;
		uint32_t	i;
		uint32_t	bit;

		for (i = 0; i < count; i++)
			fav_store64(recent + 8 * i, next_random(&random));
		CHECK(!recent_contains(recent, count, next_random(&random)));
		for (i = 0; i < count; i++)
		{
			uint64_t	hash = fav_load64(recent + 8 * i);

			CHECK(recent_contains(recent, count, hash));
			for (bit = 0; bit < 64; bit++)
				CHECK(!recent_contains(recent, count, hash ^ UINT64_C(1) << bit));
		}
		free(memory);
	}
	test_end();
}

typedef void (*InsertOne) (FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash);

/* Bit by bit, as docs/FORMAT.md has it. */
static void
insert_slowly(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + (hash >> 32) * slice->nblocks / (UINT64_C(1) << 32) * (region_size + 1) * 32;
	uint8_t    *tracker = block + region_size * 32;
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	bit;

	for (bit = 0; bit < slice->k; bit++)
	{
		uint32_t	word = bit % 4;
		uint32_t	column;

		if (bit > 0 && word == 0)
			fav_probe_next(&probe);
		if (bit / 4 == slice->k / 4)
			word = (uint32_t) (probe.product >> 38) % 4 + word;
		word %= 4;
		column = 64 * word + (uint32_t) (probe.product >> (40 + 6 * word)) % 64;
		if (block[probe.lane * 32 + column / 8] >> column % 8 & 1)
			tracker[column / 8] |= (uint8_t) (1 << column % 8);
		else
			slice->bits_set++;
		block[probe.lane * 32 + column / 8] |= (uint8_t) (1 << column % 8);
	}
}

static void
check_insert(const char *name, InsertOne insert)
{
	uint64_t	random = 7;
	uint32_t	run;

	test_begin("insert: %s sets and marks what it should", name);
	for (run = 0; run < FAV_MAX_REGION_SIZE * FAV_MAX_K; run++)
	{
		uint32_t	region_size = 1 + run % FAV_MAX_REGION_SIZE;
		FavSlice	slice = {.nblocks = 3, .k = 1 + run / FAV_MAX_REGION_SIZE};
		FavSlice	expected = slice;
		size_t		size = fav_slice_bytes(&slice, region_size);
		uint8_t    *blocks = calloc(1, size);
		uint8_t    *expected_blocks = calloc(1, size);
		int			i;

		for (i = 0; i < 100; i++)
		{
			uint64_t	hash = next_random(&random);

			insert(&slice, blocks, region_size, hash);
			insert_slowly(&expected, expected_blocks, region_size, hash);
		}
		CHECK_THAT(slice.bits_set == expected.bits_set && memcmp(blocks, expected_blocks, size) == 0,
				   "region size %u, k %u", region_size, slice.k);
		free(blocks);
		free(expected_blocks);
	}
	test_end();
}

typedef int (*TakeOne) (FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash);

/* The k bits of a hash in a block, as numbers within the data lanes. */
static void
bits_of(uint64_t hash, uint32_t region_size, uint32_t k, uint32_t *bits)
{
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	bit;

	for (bit = 0; bit < k; bit++)
	{
		uint32_t	word = bit % 4;

		if (bit > 0 && word == 0)
			fav_probe_next(&probe);
		if (bit / 4 == k / 4)
			word = ((uint32_t) (probe.product >> 38) + word) % 4;
		bits[bit] = probe.lane * 256 + 64 * word + (uint32_t) (probe.product >> (40 + 6 * word)) % 64;
	}
}

static void
check_take(const char *name, TakeOne take_one)
{
	uint64_t	random = 9;
	uint32_t	stayed = 0;
	uint32_t	run;

	test_begin("take: %s clears what it should, all of it or nothing", name);
	for (run = 0; run < FAV_MAX_REGION_SIZE * FAV_MAX_K; run++)
	{
		uint32_t	region_size = 1 + run % FAV_MAX_REGION_SIZE;
		FavSlice	slice = {.nblocks = 1, .k = 1 + run / FAV_MAX_REGION_SIZE};
		size_t		size = fav_slice_bytes(&slice, region_size);
		uint8_t    *blocks = calloc(1, size);
		uint8_t    *expected = malloc(size);
		uint64_t	hashes[60];
		int			i;

		slice.blocks = blocks;
		for (i = 0; i < 60; i++)
		{
			hashes[i] = next_random(&random);
			insert_slowly(&slice, blocks, region_size, hashes[i]);
		}
		for (i = 0; i < 60; i += 2)
		{
			uint32_t	bits[FAV_MAX_K];
			uint32_t	cleared = 0;
			uint32_t	absent = 0;
			uint64_t	expected_bits = slice.bits_set;
			int			own;
			uint32_t	b;

			memcpy(expected, blocks, size);
			bits_of(hashes[i], region_size, slice.k, bits);
			for (b = 0; b < slice.k; b++)
			{
				uint32_t	column = bits[b] % 256;

				absent += !(blocks[bits[b] / 8] >> bits[b] % 8 & 1);
				if (blocks[region_size * 32 + column / 8] >> column % 8 & 1)
					continue;
				cleared += expected[bits[b] / 8] >> bits[b] % 8 & 1;
				expected[bits[b] / 8] &= (uint8_t) ~(1 << bits[b] % 8);
			}
			CHECK(fav_block_missing(blocks, region_size, slice.k, hashes[i]) == absent);
			own = absent > 0 ? FAV_NOT_REPORTED : (int) cleared;
			stayed += own == 0 || (own == 1 && slice.k > 1);
			if (own >= 2 || (own == 1 && slice.k == 1))
				expected_bits -= cleared;
			else
				memcpy(expected, blocks, size);
			CHECK_THAT(take_one(&slice, blocks, region_size, hashes[i]) == own &&
					   slice.bits_set == expected_bits && memcmp(blocks, expected, size) == 0,
					   "region size %u, k %u", region_size, slice.k);

			/* once more: nothing is cleared, whether it is still reported or not */
			own = take_one(&slice, blocks, region_size, hashes[i]);
			CHECK((own == FAV_NOT_REPORTED || fav_stays(&slice, own)) &&
				  slice.bits_set == expected_bits && memcmp(blocks, expected, size) == 0);
		}
		free(blocks);
		free(expected);
	}
	CHECK(stayed > 1000);
	test_end();
}

typedef size_t (*TakeMany) (FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
							size_t count, uint64_t *staying, size_t *gone);

/* As one take after the other, of elements that are there, that are not, and that are gone since. */
static void
check_take_many(const char *name, TakeMany take_all)
{
	uint64_t	random = 10;
	uint32_t	run;

	test_begin("take: %s takes many as one after the other", name);
	for (run = 0; run < FAV_MAX_REGION_SIZE * FAV_MAX_K; run++)
	{
		uint32_t	region_size = 1 + run % FAV_MAX_REGION_SIZE;
		FavSlice	slice = {.nblocks = 2, .k = 1 + run / FAV_MAX_REGION_SIZE};
		FavSlice	expected;
		size_t		size = fav_slice_bytes(&slice, region_size);
		uint8_t    *blocks = calloc(1, size);
		uint8_t    *expected_blocks = malloc(size);
		uint64_t	hashes[100];
		uint64_t	staying[100];
		uint64_t	expected_staying[100];
		size_t		nstaying = 0;
		size_t		expected_gone = 0;
		size_t		gone;
		size_t		i;

		for (i = 0; i < 100; i++)
		{
			hashes[i] = i % 10 == 9 ? hashes[random_below(&random, i)] : next_random(&random);
			if (i % 4 > 0)
				insert_slowly(&slice, blocks, region_size, hashes[i]);
		}
		expected = slice;
		memcpy(expected_blocks, blocks, size);
		CHECK(take_all(&slice, blocks, region_size, hashes, 0, staying, &gone) == 0 && gone == 0);
		CHECK(slice.bits_set == expected.bits_set && memcmp(blocks, expected_blocks, size) == 0);
		for (i = 0; i < 100; i++)
		{
			int			own = take_plain(&expected, expected_blocks, region_size, hashes[i]);

			if (own == FAV_NOT_REPORTED)
				continue;
			if (fav_stays(&slice, own))
				expected_staying[nstaying++] = hashes[i];
			else
				expected_gone++;
		}
		CHECK(nstaying + expected_gone >= 60 && (nstaying + expected_gone < 100 || slice.k < 3));
		CHECK_THAT(take_all(&slice, blocks, region_size, hashes, 100, staying, &gone) == nstaying &&
				   gone == expected_gone && memcmp(staying, expected_staying, nstaying * sizeof(uint64_t)) == 0,
				   "region size %u, k %u", region_size, slice.k);
		CHECK_THAT(slice.bits_set == expected.bits_set && memcmp(blocks, expected_blocks, size) == 0,
				   "region size %u, k %u", region_size, slice.k);
		free(blocks);
		free(expected_blocks);
	}
	test_end();
}

typedef size_t (*Fill) (FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
						size_t count, uint64_t *doubtful);

/* As one insert after the other; what they set nothing for is doubtful. */
static void
check_fill(const char *name, Fill fill)
{
	uint64_t	random = 8;
	uint32_t	run;

	test_begin("fill: %s is one insert after the other", name);
	for (run = 0; run < FAV_MAX_REGION_SIZE * FAV_MAX_K; run++)
	{
		uint32_t	region_size = 1 + run % FAV_MAX_REGION_SIZE;
		FavSlice	slice = {.nblocks = 2, .k = 1 + run / FAV_MAX_REGION_SIZE};
		FavSlice	expected = slice;
		size_t		size = fav_slice_bytes(&slice, region_size);
		uint8_t    *blocks = calloc(1, size);
		uint8_t    *expected_blocks = calloc(1, size);
		uint64_t	hashes[100];
		uint64_t	doubtful[100];
		uint64_t	expected_doubtful[100];
		size_t		ndoubtful = 0;
		size_t		i;

		for (i = 0; i < 100; i++)
		{
			uint64_t	before = expected.bits_set;

			hashes[i] = i % 10 == 9 ? hashes[random_below(&random, i)] : next_random(&random);
			insert_slowly(&expected, expected_blocks, region_size, hashes[i]);
			if (expected.bits_set == before)
				expected_doubtful[ndoubtful++] = hashes[i];
		}
		CHECK(ndoubtful >= 10);
		CHECK(fill(&slice, blocks, region_size, hashes, 0, doubtful) == 0 && slice.bits_set == 0);
		CHECK_THAT(fill(&slice, blocks, region_size, hashes, 100, doubtful) == ndoubtful &&
				   memcmp(doubtful, expected_doubtful, ndoubtful * sizeof(uint64_t)) == 0,
				   "doubtful with region size %u, k %u", region_size, slice.k);
		CHECK_THAT(slice.bits_set == expected.bits_set && memcmp(blocks, expected_blocks, size) == 0,
				   "region size %u, k %u", region_size, slice.k);
		free(blocks);
		free(expected_blocks);
	}
	test_end();
}

int
main(void)
{
	check_insert("the plain way", insert_plain);
	check_fill("the plain way", fill_plain);
	check_take("the plain way", take_plain);
	check_take_many("the plain way", take_many_plain);
	check_recent("the plain way", recent_contains_plain);
	check("the plain way", reporting_plain);
	check_contains("the plain way", contains_plain, prepare_plain);
#ifdef HAVE_AVX2
	if (fav_have_avx2())
	{
		check_insert("AVX2", insert_avx2);
		check_fill("AVX2", fill_avx2);
		check_take("AVX2", take_avx2);
		check_take_many("AVX2", take_many_avx2);
		check_recent("AVX2", recent_contains_avx2);
		check("AVX2", reporting_avx2);
		check_contains("AVX2", contains_avx2, prepare_avx2);
	}
#endif
	check_prefetch();
	check_insert("what was chosen", choose_insert);
	check_fill("what was chosen", choose_fill);
	check_take("what was chosen", choose_take);
	check_take_many("what was chosen", choose_take_many);
	check_recent("what was chosen", choose_recent_contains);
	check("what was chosen", choose_reporting);
	check_contains("what was chosen", choose_contains, fav_asker_init);
	return test_summary("test_hot");
}
