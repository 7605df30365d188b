/*
 * test_question.c
 *		The questions are asked in several ways, for speed: all must give the
 *		answers of those that are written for clarity.  Includes
 *		question.c for its static functions.
 */
#include "../../src/core/question.c"

#include "harness.h"

typedef uint32_t (*Reporting) (const FavFilter *filter, uint64_t hash, uint32_t enough, uint32_t *first);
typedef bool (*SliceReports) (const FavSlice *slice, uint32_t region_size, uint64_t hash);

/* Slices of random bits, of which so many are set that questions of k bits are met now and then. */
static void
make_slices(FavFilter *filter, uint32_t region_size, uint32_t nslices, uint64_t *random)
{
	uint32_t	i;

	memset(filter, 0, sizeof(*filter));
	filter->params.region_size = region_size;
	filter->nslices = nslices;
	for (i = 0; i < nslices; i++)
	{
		FavSlice   *slice = &filter->slices[i];
		size_t		size;
		uint8_t    *blocks;
		size_t		at;

		slice->nblocks = 1 + (uint32_t) random_below(random, 5);
		slice->k = 1 + (uint32_t) random_below(random, FAV_MAX_K);
		size = fav_slice_bytes(slice, region_size);
		blocks = malloc(size);
		for (at = 0; at < size * 8; at++)
		{
			uint8_t		mask = (uint8_t) (1 << at % 8);

			if (random_below(random, slice->k + 1) > 0)
				blocks[at / 8] |= mask;
			else
				blocks[at / 8] &= (uint8_t) ~mask;
		}
		slice->blocks = blocks;
	}
}

static void
check(const char *name, Reporting reporting, SliceReports slice_reports_one)
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

		make_slices(&filter, region_size, (uint32_t) random_below(&random, 5), &random);
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
				CHECK(slice_reports_one(slice, region_size, hash) == contained);
				CHECK((fav_slice_missing(slice, region_size, hash) == 0) == contained);
			}
			reported = reporting(&filter, hash, enough, &first);
			CHECK(reported == (expected < enough ? expected : enough));
			if (reported > 0)
				CHECK(first < filter.nslices && slice_reports_one(&filter.slices[first], region_size, hash));
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

typedef bool (*RecentContains) (const uint8_t *recent, uint32_t count, uint64_t hash);

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

int
main(void)
{
	check_recent("the plain way", recent_contains_plain);
	check("the plain way", reporting_plain, slice_reports_plain);
#ifdef HAVE_AVX2
	if (__builtin_cpu_supports("avx2"))
	{
		check_recent("AVX2", recent_contains_avx2);
		check("AVX2", reporting_avx2, slice_reports_avx2);
	}
#endif
	check_recent("what was chosen", choose_recent_contains);
	check("what was chosen", choose_reporting, choose_slice_reports);
	return test_summary("test_question");
}
