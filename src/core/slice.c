/*
 * slice.c
 *		One FAV slice: the portable functions.
 *
 * This file is the reference for what the functions do.  slice_avx2.c has some of them again
 * for processors with AVX2, and test_slice.c compares the two.
 *
 * A probe looks at one group of four bits after the other (hash.h).  All but 3 % of the
 * elements that are absent end with the first group, which the processor predicts well.
 */
#include "slice.h"

/* The tracker lane comes after the data lanes. */
static inline uint8_t *
tracker_of(uint8_t *block, uint32_t region_size)
{
	return block + (size_t) region_size * FAV_LANE_BYTES;
}

static bool
list_contains(const uint8_t *list, uint32_t count, uint64_t hash)
{
	uint32_t	matches = 0;
	uint32_t	i;

	/* no branch within the loop: compilers vectorize it */
	for (i = 0; i < count; i++)
		matches += fav_load64(list + 8 * (size_t) i) == hash;
	return matches > 0;
}

bool
fav_block_contains(const uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash)
{
	FavProbe	probe = fav_probe_first(hash, region_size, k);

	do
	{
		const uint8_t *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		uint64_t	masks[FAV_LANE_WORDS];
		uint64_t	missing = 0;
		uint32_t	word;

		fav_probe_masks(&probe, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
			missing |= masks[word] & ~fav_load64(lane + 8 * word);
		if (missing != 0)
			return false;
	} while (fav_probe_next(&probe));
	return true;
}

static uint32_t
find_slice(const FavSlice *slices, uint32_t nslices, uint32_t region_size, uint64_t hash)
{
	while (nslices-- > 0)
	{
		const FavSlice *slice = &slices[nslices];

		if (fav_block_contains(slice->blocks + fav_slice_block_offset(slice, region_size, hash),
							   region_size, slice->k, hash))
			return nslices;
	}
	return FAV_NO_SLICE;
}

/*
 * Set the bits of an element and mark the regions of those already set.  Returns how many
 * were clear.
 */
static uint32_t
block_insert(uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash)
{
	uint8_t    *tracker = tracker_of(block, region_size);
	uint32_t	added = 0;
	FavProbe	probe = fav_probe_first(hash, region_size, k);

	do
	{
		uint8_t    *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		fav_probe_masks(&probe, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
		{
			uint64_t	old = fav_load64(lane + 8 * word);

			fav_store64(tracker + 8 * word, fav_load64(tracker + 8 * word) | (old & masks[word]));
			fav_store64(lane + 8 * word, old | masks[word]);
			added += (masks[word] & ~old) != 0;
		}
	} while (fav_probe_next(&probe));
	return added;
}

/*
 * Clear the bits of an element in unmarked regions, if there are `least` of them.  Returns how
 * many were cleared.
 */
static uint32_t
block_remove(uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash, uint32_t least)
{
	const uint8_t *tracker = tracker_of(block, region_size);
	uint8_t		before[FAV_MAX_REGION_SIZE * FAV_LANE_BYTES];
	size_t		data_bytes = (size_t) region_size * FAV_LANE_BYTES;
	uint32_t	cleared = 0;
	FavProbe	probe = fav_probe_first(hash, region_size, k);

	memcpy(before, block, data_bytes);
	do
	{
		uint8_t    *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		fav_probe_masks(&probe, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
		{
			uint64_t	old = fav_load64(lane + 8 * word);
			uint64_t	own = old & masks[word] & ~fav_load64(tracker + 8 * word);

			fav_store64(lane + 8 * word, old & ~own);
			cleared += own != 0;
		}
	} while (fav_probe_next(&probe));
	if (cleared >= least)
		return cleared;
	memcpy(block, before, data_bytes);
	return 0;
}

const FavKernels fav_portable_kernels = {list_contains, find_slice, block_insert, block_remove};

FavKernels	fav_kernels = {list_contains, find_slice, block_insert, block_remove};

/* When the library is loaded. */
__attribute__((constructor))
static void
choose_kernels(void)
{
	if (fav_avx2_kernels() != NULL)
		fav_kernels = *fav_avx2_kernels();
}

void
fav_slice_insert_many(FavSlice *slice, uint8_t *blocks, uint32_t region_size,
					  const uint64_t *hashes, size_t count)
{
	size_t		i;

	for (i = 0; i < count; i++)
	{
		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		fav_slice_insert(slice, blocks, region_size, hashes[i]);
	}
}

void
fav_slice_pin(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *tracker = tracker_of(blocks + fav_slice_block_offset(slice, region_size, hash),
									 region_size);
	FavProbe	probe = fav_probe_first(hash, region_size, slice->k);

	do
	{
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		fav_probe_masks(&probe, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
			fav_store64(tracker + 8 * word, fav_load64(tracker + 8 * word) | masks[word]);
	} while (fav_probe_next(&probe));
}

/*
 * The mean over all ways to assign lanes to groups.  Each group is in another lane.  With
 * more groups than lanes, each lane has as many groups, or one more.
 */
double
fav_block_error(const uint8_t *block, uint32_t region_size, uint32_t k)
{
	/* sums over all choices of i lanes for full groups, without and with the last group */
	double		sums[FAV_MAX_K / FAV_LANE_WORDS + 1][2] = {{0.0}};
	uint32_t	full = k / FAV_LANE_WORDS;
	uint32_t	part = k % FAV_LANE_WORDS;
	uint32_t	rounds = (full + (part > 0)) / region_size;
	double		error = 1.0;
	uint32_t	lane;
	uint32_t	i;

	if (rounds > 0 && rounds * region_size > full)
		rounds--;
	full -= rounds * region_size;
	sums[0][0] = 1.0;
	for (lane = 0; lane < region_size; lane++)
	{
		double		fill[FAV_LANE_WORDS];
		double		whole = 1.0;
		double		some = 0.0;
		uint32_t	word;

		for (word = 0; word < FAV_LANE_WORDS; word++)
		{
			uint64_t	bits = fav_load64(block + (size_t) lane * FAV_LANE_BYTES + 8 * word);

			fill[word] = (double) fav_popcount64(bits) / FAV_WORD_BITS;
			whole *= fill[word];
		}
		for (word = 0; word < FAV_LANE_WORDS; word++)
		{
			double		product = 1.0;

			for (i = 0; i < part; i++)
				product *= fill[(word + i) % FAV_LANE_WORDS];
			some += product / FAV_LANE_WORDS;
		}
		for (i = 0; i < rounds; i++)
			error *= whole;
		for (i = full + 1; i-- > 0;)
		{
			sums[i][1] += sums[i][0] * some;
			if (i > 0)
			{
				sums[i][1] += sums[i - 1][1] * whole;
				sums[i][0] += sums[i - 1][0] * whole;
			}
		}
	}

	/* divided by the number of choices */
	for (i = 0; i < full; i++)
		error *= (i + 1.0) / (region_size - i);
	if (part == 0 || full == region_size)
		return error * sums[full][0];
	return error * sums[full][1] / (region_size - full);
}

uint64_t
fav_slice_merge(const FavSlice *a, const FavSlice *b, uint32_t region_size, uint8_t *blocks)
{
	size_t		block_bytes = fav_block_bytes(region_size);
	uint64_t	bits_set = 0;
	uint32_t	i;

	for (i = 0; i < a->nblocks; i++)
	{
		size_t		tracker = (i + 1) * block_bytes - FAV_LANE_BYTES;
		size_t		column;
		size_t		at;

		if (i % FAV_PAUSE_BLOCKS == 0)
			fav_pause();
		for (at = i * block_bytes; at < tracker && blocks == NULL; at += 8)
			bits_set += fav_popcount64(fav_load64(a->blocks + at) | fav_load64(b->blocks + at));
		for (column = tracker; column < tracker + FAV_LANE_BYTES && blocks != NULL; column += 8)
		{
			uint64_t	marks = fav_load64(a->blocks + column) | fav_load64(b->blocks + column);

			for (at = column - tracker + i * block_bytes; at < tracker; at += FAV_LANE_BYTES)
			{
				uint64_t	in_a = fav_load64(a->blocks + at);
				uint64_t	in_b = fav_load64(b->blocks + at);

				marks |= in_a & in_b;
				fav_store64(blocks + at, in_a | in_b);
			}
			fav_store64(blocks + column, marks);
		}
	}
	return bits_set;
}

uint64_t
fav_popcount(const uint8_t *bytes, size_t length)
{
	uint64_t	count = 0;
	size_t		at;

	for (at = 0; at + 8 <= length; at += 8)
		count += fav_popcount64(fav_load64(bytes + at));
	return count;
}
