/*
 * test_slice.c
 *		The functions of a slice, portable and AVX2, compared with slow ones that follow
 *		docs/internals/FORMAT.md bit by bit; and the membership in whole filters.
 */
#include "harness.h"

/* Slices of random bits, so full that probes of k bits succeed now and then. */
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
		size_t		made = 5 * fav_block_bytes(region_size);
		size_t		size;
		uint8_t    *blocks;
		size_t		at;

		slice->nblocks = 1 + (uint32_t) random_below(random, 5);
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

/* The k bits of a hash in a block, as numbers within the data lanes. */
static void
bits_of(uint64_t hash, uint32_t region_size, uint32_t k, uint32_t *bits)
{
	FavProbe	probe = fav_probe_first(hash, region_size, k);
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

static bool
slice_contains_slowly(const FavSlice *slice, uint32_t region_size, uint64_t hash)
{
	const uint8_t *block = slice->blocks +
		(hash >> 32) * slice->nblocks / (UINT64_C(1) << 32) * (region_size + 1) * 32;
	uint32_t	bits[FAV_MAX_K];
	uint32_t	i;

	bits_of(hash, region_size, slice->k, bits);
	for (i = 0; i < slice->k; i++)
		if (!(block[bits[i] / 8] >> bits[i] % 8 & 1))
			return false;
	return true;
}

static void
check_find(const char *name, const FavKernels *kernels)
{
	uint64_t	random = 5;
	uint64_t	answers[2] = {0, 0};
	uint32_t	run;

	test_begin("find: %s gives the right answers", name);
	for (run = 0; run < 31 * 40; run++)
	{
		uint32_t	region_size = 1 + run % FAV_MAX_REGION_SIZE;
		FavFilter	filter;
		uint32_t	probe;
		uint32_t	i;

		make_slices(&filter, region_size, (uint32_t) random_below(&random, 5), &random);
		for (probe = 0; probe < 200; probe++)
		{
			uint64_t	hash = next_random(&random);
			uint32_t	expected = FAV_NO_SLICE;

			for (i = 0; i < filter.nslices; i++)
			{
				const FavSlice *slice = &filter.slices[i];
				bool		contained = slice_contains_slowly(slice, region_size, hash);

				CHECK(fav_block_contains(slice->blocks + fav_slice_block_offset(slice, region_size, hash),
										 region_size, slice->k, hash) == contained);
				answers[contained]++;
				if (contained)
					expected = i;
			}
			CHECK(kernels->find_slice(filter.slices, filter.nslices, region_size, hash) == expected);
		}
		for (i = 0; i < filter.nslices; i++)
			free((void *) filter.slices[i].blocks);
	}
	CHECK_THAT(answers[0] > 50000 && answers[1] > 50000, "%llu times no, %llu times yes",
			   (unsigned long long) answers[0], (unsigned long long) answers[1]);
	test_end();
}

/* All counts, each hash wanted in turn, and hashes that differ from one by a bit. */
static void
check_list(const char *name, const FavKernels *kernels)
{
	uint64_t	random = 6;
	uint32_t	count;

	test_begin("list: %s gives the right answers", name);
	for (count = 0; count <= FAV_RECENT_LIMIT; count++)
	{
		/* of the exact size, for the sanitizer, and at any address */
		uint32_t	offset = count % 8;
		uint8_t    *memory = malloc(8 * count + offset);
		uint8_t    *recent = memory + offset;
		uint32_t	i;
		uint32_t	bit;

		for (i = 0; i < count; i++)
			fav_store64(recent + 8 * i, next_random(&random));
		CHECK(!kernels->list_contains(recent, count, next_random(&random)));
		for (i = 0; i < count; i++)
		{
			uint64_t	hash = fav_load64(recent + 8 * i);

			CHECK(kernels->list_contains(recent, count, hash));
			for (bit = 0; bit < 64; bit++)
				CHECK(!kernels->list_contains(recent, count, hash ^ UINT64_C(1) << bit));
		}
		free(memory);
	}
	test_end();
}

/* Bit by bit, as in docs/internals/FORMAT.md. */
static void
insert_slowly(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + (hash >> 32) * slice->nblocks / (UINT64_C(1) << 32) * (region_size + 1) * 32;
	uint8_t    *tracker = block + region_size * 32;
	FavProbe	probe = fav_probe_first(hash, region_size, slice->k);
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
check_insert(const char *name, const FavKernels *kernels)
{
	uint64_t	random = 7;
	uint32_t	run;

	test_begin("insert: %s sets and marks the right bits", name);
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

			slice.bits_set += kernels->block_insert(blocks + fav_slice_block_offset(&slice, region_size, hash),
													region_size, slice.k, hash);
			insert_slowly(&expected, expected_blocks, region_size, hash);
		}
		CHECK_THAT(slice.bits_set == expected.bits_set && memcmp(blocks, expected_blocks, size) == 0,
				   "region size %u, k %u", region_size, slice.k);
		free(blocks);
		free(expected_blocks);
	}
	test_end();
}

/* Check the bits that a removal clears, and that a second removal clears nothing. */
static void
check_remove(const char *name, const FavKernels *kernels)
{
	uint64_t	random = 9;
	uint32_t	stuck = 0;
	uint32_t	run;

	test_begin("remove: %s clears the right bits, all or none", name);
	fav_kernels = *kernels;
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
			uint64_t	expected_bits = slice.bits_set;
			uint32_t	least = 1 + i / 2 % slice.k;
			bool		is_removed;
			uint32_t	b;

			if (!slice_contains_slowly(&slice, region_size, hashes[i]))
				continue;
			memcpy(expected, blocks, size);
			bits_of(hashes[i], region_size, slice.k, bits);
			for (b = 0; b < slice.k; b++)
			{
				uint32_t	column = bits[b] % 256;

				if (blocks[region_size * 32 + column / 8] >> column % 8 & 1)
					continue;
				cleared += expected[bits[b] / 8] >> bits[b] % 8 & 1;
				expected[bits[b] / 8] &= (uint8_t) ~(1 << bits[b] % 8);
			}
			is_removed = cleared >= least;
			stuck += !is_removed;
			if (is_removed)
				expected_bits -= cleared;
			else
				memcpy(expected, blocks, size);
			CHECK_THAT(fav_slice_remove(&slice, blocks, region_size, hashes[i], least) == is_removed &&
					   slice.bits_set == expected_bits && memcmp(blocks, expected, size) == 0,
					   "region size %u, k %u", region_size, slice.k);
		}
		free(blocks);
		free(expected);
	}
	CHECK_THAT(stuck > 1000, "%u removals only were stuck", stuck);
	test_end();
}

/* A pinned element loses no bit, whichever others are removed. */
static void
check_pin(void)
{
	uint64_t	random = 10;
	uint32_t	run;

	test_begin("pin: marks all regions of the element and nothing else");
	for (run = 0; run < FAV_MAX_REGION_SIZE * FAV_MAX_K; run++)
	{
		uint32_t	region_size = 1 + run % FAV_MAX_REGION_SIZE;
		FavSlice	slice = {.nblocks = 2, .k = 1 + run / FAV_MAX_REGION_SIZE};
		size_t		size = fav_slice_bytes(&slice, region_size);
		uint8_t    *blocks = calloc(1, size);
		uint8_t    *expected = calloc(1, size);
		uint64_t	hash = next_random(&random);
		uint32_t	bits[FAV_MAX_K];
		uint32_t	b;

		bits_of(hash, region_size, slice.k, bits);
		for (b = 0; b < slice.k; b++)
			expected[fav_slice_block_offset(&slice, region_size, hash) + region_size * 32 + bits[b] % 256 / 8] |=
				(uint8_t) (1 << bits[b] % 8);
		fav_slice_pin(&slice, blocks, region_size, hash);
		CHECK(memcmp(blocks, expected, size) == 0);
		free(blocks);
		free(expected);
	}
	test_end();
}

/* The definition of membership, without shortcuts. */
static bool
contains_slowly(const FavFilter *filter, uint64_t hash)
{
	bool		reported = false;
	bool		excluded = false;
	uint32_t	i;

	for (i = 0; i < filter->nrecent; i++)
		if (fav_load64(filter->recent + 8 * i) == hash)
			return true;
	for (i = 0; i < filter->nslices; i++)
		reported |= slice_contains_slowly(&filter->slices[i], filter->params.region_size, hash);
	for (i = 0; i < filter->ntombstones; i++)
		excluded |= fav_load64(filter->tombstones + 8 * i) == hash;
	return reported && !excluded;
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = fav_load64(a);
	uint64_t	y = fav_load64(b);

	return (x > y) - (x < y);
}

static void
check_contains(const char *name, const FavKernels *kernels)
{
	uint64_t	random = 11;
	uint64_t	answered[2] = {0, 0};
	uint32_t	run;

	test_begin("contains: %s gives the right answers", name);
	fav_kernels = *kernels;
	for (run = 0; run < 31 * 60; run++)
	{
		uint8_t		lists[2][8 * 40];
		uint64_t	hashes[160];
		bool		answers[160];
		FavFilter	filter;
		FavMatcher	matcher;
		FavEditor	editor;
		uint32_t	probed;
		uint32_t	i;

		make_slices(&filter, run % 4 == 1 ? 7 : 1 + run % FAV_MAX_REGION_SIZE,
					run % 2 ? 1 : (uint32_t) random_below(&random, 4), &random);
		for (i = 0; i < 160; i++)
			hashes[i] = next_random(&random);

		/* some probes are for recent hashes, some for tombstones, some (crafted) for both */
		filter.nrecent = (uint32_t) random_below(&random, 41);
		filter.ntombstones = run % 3 == 0 ? 0 : (uint32_t) random_below(&random, 41);
		for (i = 0; i < 40; i++)
		{
			fav_store64(lists[0] + 8 * i, hashes[3 * i]);
			fav_store64(lists[1] + 8 * i, hashes[4 * i]);
		}
		filter.recent = lists[0];
		filter.tombstones = lists[1];
		if (fav_tombstones_are_sorted(&filter))
			qsort(lists[1], filter.ntombstones, 8, compare_hashes);
		fav_matcher_init(&matcher, &filter);
		fav_editor_open(&editor, &filter);
		for (i = 0; i < 160; i++)
			answers[i] = !contains_slowly(&filter, hashes[i]);
		probed = (uint32_t) random_below(&random, run % 3 ? 161 : 18);
		fav_matcher_contains_many(&matcher, hashes, probed, answers);
		for (i = 0; i < 160; i++)
		{
			bool		expected = contains_slowly(&filter, hashes[i]);

			answered[expected]++;
			CHECK_THAT(fav_matcher_contains(&matcher, hashes[i]) == expected &&
					   fav_contains(&filter, hashes[i]) == expected &&
					   fav_editor_contains(&editor, hashes[i]) == expected &&
					   (answers[i] == expected) == (i < probed),
					   "run %u, probe %u of %u", run, i, probed);
		}
		fav_editor_close(&editor);
		for (i = 0; i < filter.nslices; i++)
			free((void *) filter.slices[i].blocks);
	}
	CHECK_THAT(answered[0] > 50000 && answered[1] > 50000, "%llu times no, %llu times yes",
			   (unsigned long long) answered[0], (unsigned long long) answered[1]);
	test_end();
}

static void
check_kernels(const char *name, const FavKernels *kernels)
{
	check_list(name, kernels);
	check_find(name, kernels);
	check_insert(name, kernels);
	check_remove(name, kernels);
	check_contains(name, kernels);
}

int
main(void)
{
	check_pin();
	check_kernels("what was chosen at load", &(FavKernels) {fav_kernels.list_contains, fav_kernels.find_slice,
				  fav_kernels.block_insert, fav_kernels.block_remove});
	check_kernels("the portable code", &fav_portable_kernels);
	if (fav_avx2_kernels() != NULL)
		check_kernels("AVX2", fav_avx2_kernels());
	else
		printf("no AVX2 here\n");
	return test_summary("test_slice");
}
