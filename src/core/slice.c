/*
 * slice.c
 *		One FAV slice: claim, merge, and what a block holds.  The rest is in change.c.
 */
#include "slice.h"

static inline uint8_t *
block_of(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	return blocks + fav_slice_block_offset(slice, region_size, hash);
}

/* The tracker lane comes after the data lanes. */
static inline uint8_t *
tracker_of(uint8_t *block, uint32_t region_size)
{
	return block + (size_t) region_size * FAV_LANE_BYTES;
}

uint32_t
fav_block_missing(const uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash)
{
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	missing = 0;
	uint32_t	left;
	uint32_t	count;

	for (left = k; left > 0; left -= count, fav_probe_next(&probe))
	{
		const uint8_t *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		count = fav_probe_masks(&probe, left, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
			missing += (masks[word] & ~fav_load64(lane + 8 * word)) != 0;
	}
	return missing;
}

bool
fav_block_contains(const uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash)
{
	return fav_block_missing(block, region_size, k, hash) == 0;
}

/*
 * The mean over all ways to go through the lanes: each group in another lane, or
 * in every lane as often where the groups are more.
 */
double
fav_block_error(const uint8_t *block, uint32_t region_size, uint32_t k)
{
	/* sums over all choices of i lanes for full groups, without and with the last */
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
			fill[word] = (double) fav_popcount(block + (size_t) lane * FAV_LANE_BYTES + 8 * word, 8) / FAV_WORD_BITS;
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

	/* how many choices there are */
	for (i = 0; i < full; i++)
		error *= (i + 1.0) / (region_size - i);
	if (part == 0)
		return error * sums[full][0];
	return full < region_size ? error * sums[full][1] / (region_size - full) : error * sums[full][0];
}

void
fav_slice_claim(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *tracker = tracker_of(block_of(slice, blocks, region_size, hash), region_size);
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	left;
	uint32_t	count;

	for (left = slice->k; left > 0; left -= count, fav_probe_next(&probe))
	{
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		count = fav_probe_masks(&probe, left, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
			fav_store64(tracker + 8 * word, fav_load64(tracker + 8 * word) | masks[word]);
	}
}

void
fav_slice_merge(const FavSlice *a, const FavSlice *b, uint32_t region_size, uint8_t *blocks)
{
	size_t		data_bytes = (size_t) region_size * FAV_LANE_BYTES;
	uint32_t	i;

	for (i = 0; i < a->nblocks; i++)
	{
		size_t		offset = i * fav_block_bytes(region_size);
		uint8_t		collided[FAV_LANE_BYTES] = {0};
		size_t		at;

		if (i % FAV_PAUSE_BLOCKS == 0)
			fav_pause();
		for (at = 0; at < data_bytes; at += 8)
		{
			uint64_t	in_a = fav_load64(a->blocks + offset + at);
			uint64_t	in_b = fav_load64(b->blocks + offset + at);
			uint8_t    *column = &collided[at % FAV_LANE_BYTES];

			fav_store64(column, fav_load64(column) | (in_a & in_b));
			fav_store64(blocks + offset + at, in_a | in_b);
		}
		for (at = 0; at < FAV_LANE_BYTES; at += 8)
		{
			uint64_t	marked = fav_load64(a->blocks + offset + data_bytes + at) |
				fav_load64(b->blocks + offset + data_bytes + at);

			fav_store64(blocks + offset + data_bytes + at, marked | fav_load64(&collided[at]));
		}
	}
}

uint64_t
fav_slice_union_bits(const FavSlice *a, const FavSlice *b, uint32_t region_size)
{
	size_t		data_bytes = (size_t) region_size * FAV_LANE_BYTES;
	uint64_t	bits_set = 0;
	uint32_t	i;

	for (i = 0; i < a->nblocks; i++)
	{
		size_t		offset = i * fav_block_bytes(region_size);
		uint8_t		either[FAV_MAX_REGION_SIZE * FAV_LANE_BYTES];
		size_t		at;

		if (i % FAV_PAUSE_BLOCKS == 0)
			fav_pause();
		for (at = 0; at < data_bytes; at += 8)
			fav_store64(either + at, fav_load64(a->blocks + offset + at) |
						fav_load64(b->blocks + offset + at));
		bits_set += fav_popcount(either, data_bytes);
	}
	return bits_set;
}

uint64_t
fav_popcount(const uint8_t *bytes, size_t length)
{
	uint64_t	count = 0;
	size_t		at;

	/* every length here is a multiple of a lane */
	for (at = 0; at + 8 <= length; at += 8)
	{
		/* Without a popcount instruction compilers call a table function. */
		uint64_t	word = fav_load64(bytes + at);

		word -= word >> 1 & UINT64_C(0x5555555555555555);
		word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
		word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
		count += word * UINT64_C(0x0101010101010101) >> 56;
	}
	return count;
}
