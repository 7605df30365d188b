/*
 * slice.c
 *		One FAV slice: insert, claim, clear, merge.
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

bool
fav_block_contains_slowly(const uint8_t *block, uint32_t region_size, uint32_t k,
						  uint64_t hash, uint32_t from)
{
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	i;

	for (i = 0; i < k; i++, fav_probe_next(&probe))
		if (i >= from && !(block[fav_probe_byte(&probe)] & fav_probe_mask(&probe)))
			return false;
	return true;
}

double
fav_block_error(const uint8_t *block, uint32_t region_size, uint32_t k)
{
	double		fill[FAV_MAX_REGION_SIZE];
	double		sum = 0.0;
	uint32_t	start;
	uint32_t	lane;
	uint32_t	i;

	for (lane = 0; lane < region_size; lane++)
		fill[lane] = (double) fav_popcount(block + (size_t) lane * FAV_LANE_BYTES, FAV_LANE_BYTES) / FAV_LANE_BITS;

	/* the mean over all lanes that an element may start in */
	for (start = 0; start < region_size; start++)
	{
		double		product = 1.0;

		for (i = 0, lane = start; i < k; i++)
		{
			product *= fill[lane];
			lane = lane + 1 == region_size ? 0 : lane + 1;
		}
		sum += product;
	}
	return sum / region_size;
}

uint32_t
fav_slice_missing(const FavSlice *slice, uint32_t region_size, uint64_t hash)
{
	const uint8_t *block = slice->blocks + fav_slice_block_offset(slice, region_size, hash);
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	missing = 0;
	uint32_t	i;

	for (i = 0; i < slice->k; i++, fav_probe_next(&probe))
		missing += !(block[fav_probe_byte(&probe)] & fav_probe_mask(&probe));
	return missing;
}

void
fav_slice_insert(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = block_of(slice, blocks, region_size, hash);
	uint8_t    *tracker = tracker_of(block, region_size);
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	k = slice->k;	/* a store to a byte might change *slice, for all C knows */
	uint32_t	added = 0;
	uint32_t	i;

	for (i = 0; i < k; i++, fav_probe_next(&probe))
	{
		uint8_t    *byte = &block[fav_probe_byte(&probe)];
		uint8_t		mask = fav_probe_mask(&probe);
		uint8_t		old = *byte;

		tracker[probe.column / 8] |= old & mask;
		*byte = old | mask;
		added += !(old & mask);
	}
	slice->bits_set += added;
}

void
fav_slice_claim(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *tracker = tracker_of(block_of(slice, blocks, region_size, hash), region_size);
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	k = slice->k;
	uint32_t	i;

	for (i = 0; i < k; i++, fav_probe_next(&probe))
		tracker[probe.column / 8] |= fav_probe_mask(&probe);
}

uint32_t
fav_slice_clear(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = block_of(slice, blocks, region_size, hash);
	uint8_t    *tracker = tracker_of(block, region_size);
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	k = slice->k;
	uint32_t	cleared = 0;
	uint32_t	i;

	for (i = 0; i < k; i++, fav_probe_next(&probe))
	{
		uint8_t    *byte = &block[fav_probe_byte(&probe)];
		uint8_t		mask = fav_probe_mask(&probe);
		uint8_t		own = (uint8_t) (*byte & mask & ~tracker[probe.column / 8]);

		*byte &= (uint8_t) ~own;
		cleared += own != 0;
	}
	slice->bits_set -= cleared;
	return cleared;
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
