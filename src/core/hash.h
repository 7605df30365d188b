/*
 * hash.h
 *		From an element to its 64-bit hash, and from there to block, lane and
 *		column.  xxHash is used here and nowhere else.
 *
 * The hash of an element is XXH3 (64 bits) of its canonical bytes, seeded with
 * the filter's seed and a constant for the element's kind: 42, '42' and a pair
 * are different elements.  For integers (8 bytes) XXH3 is a bijection, so two
 * different integers never share a hash.
 *
 * Where a hash h goes in a slice of n blocks with region size R:
 *
 *		block	upper half of h, scaled to n (multiply-shift).  Ascending hashes
 *				thus fall into ascending blocks.
 *		lane	lower half of h, scaled to R, is the lane of the first bit; the
 *				next bit is in the next lane, round and round
 *		column	9 bits each out of h * c0, then h * c1, ..., seven to a product
 *
 * The columns of the original filter, Ha + i * Hb, lie on a line: two elements
 * that share a few of them tend to share all.  In a block of 512 columns that
 * costs more false positives than the rest of the error at rates of 0.1 % and
 * below (docs/ALGORITHM.md has the figures); slices of a product do not, and
 * cost one multiplication for seven columns.
 */
#ifndef FAV_HASH_H
#define FAV_HASH_H

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#if XXH_VERSION_NUMBER < 800
#error "xxHash 0.8.0 or later is needed: the XXH3 of earlier versions gives other hashes"
#endif

#include "format.h"

typedef enum FavKind
{
	FAV_KIND_INTEGER,
	FAV_KIND_TEXT,
	FAV_KIND_UUID,
	FAV_KIND_BYTES,
	FAV_KIND_PAIR
} FavKind;

/* Canonical bytes: as they are (text, uuid, bytea). */
static inline uint64_t
fav_hash_bytes(FavKind kind, const void *bytes, size_t length, uint64_t seed)
{
	/* odd multiples of the golden ratio keep the seeds of the kinds apart */
	return XXH3_64bits_withSeed(bytes, length,
								seed ^ (uint64_t) kind * UINT64_C(0x9e3779b97f4a7c15));
}

/* Canonical bytes: 64 bits, little endian. */
static inline uint64_t
fav_hash_integer(int64_t value, uint64_t seed)
{
	uint8_t		bytes[8];

	fav_store64(bytes, (uint64_t) value);
	return fav_hash_bytes(FAV_KIND_INTEGER, bytes, sizeof(bytes), seed);
}

/* Canonical bytes: the two integers one after the other. */
static inline uint64_t
fav_hash_pair(int64_t first, int64_t second, uint64_t seed)
{
	uint8_t		bytes[16];

	fav_store64(bytes, (uint64_t) first);
	fav_store64(bytes + 8, (uint64_t) second);
	return fav_hash_bytes(FAV_KIND_PAIR, bytes, sizeof(bytes), seed);
}

static inline uint32_t
fav_hash_block(uint64_t hash, uint32_t nblocks)
{
	return (uint32_t) ((hash >> 32) * nblocks >> 32);
}

#define FAV_FIRST_FACTOR	UINT64_C(0x243f6a8885a308d3)

/*
 * The bits of an element within its block, one after the other:
 *
 *		FavProbe probe = fav_probe_first(hash, region_size);
 *		for (i = 0; i < k; i++, fav_probe_next(&probe)) ...
 *
 * probe.lane and probe.column are the current bit.
 */
typedef struct FavProbe
{
	uint64_t	hash;
	uint64_t	product;		/* columns not yet taken, from the top */
	uint32_t	region_size;
	uint32_t	lane;
	uint32_t	column;
	uint32_t	taken;			/* columns taken out of this product */
	uint32_t	round;			/* which product this is */
} FavProbe;

static inline void
fav_probe_column(FavProbe *probe)
{
	/*
	 * The first words of the fraction of pi, made odd.  Five times seven
	 * columns are enough for any k, and for the step after the last.
	 */
	static const uint64_t factors[5] = {
		FAV_FIRST_FACTOR, UINT64_C(0x13198a2e03707345),
		UINT64_C(0xa4093822299f31d1), UINT64_C(0x082efa98ec4e6c89),
		UINT64_C(0x452821e638d01377)
	};

	if (probe->taken == 7)
	{
		probe->taken = 0;
		probe->product = probe->hash * factors[probe->round++];
	}
	probe->column = (uint32_t) (probe->product >> 55);
	probe->product <<= 9;
	probe->taken++;
}

static inline FavProbe
fav_probe_first(uint64_t hash, uint32_t region_size)
{
	FavProbe	probe;

	probe.hash = hash;
	probe.product = 0;
	probe.region_size = region_size;
	probe.lane = (uint32_t) ((hash & UINT32_MAX) * region_size >> 32);
	probe.taken = 7;
	probe.round = 0;
	fav_probe_column(&probe);
	return probe;
}

static inline void
fav_probe_next(FavProbe *probe)
{
	if (++probe->lane == probe->region_size)
		probe->lane = 0;
	fav_probe_column(probe);
}

/* Where the current bit is within the block. */
static inline size_t
fav_probe_byte(const FavProbe *probe)
{
	return (size_t) probe->lane * FAV_LANE_BYTES + probe->column / 8;
}

static inline uint8_t
fav_probe_mask(const FavProbe *probe)
{
	return (uint8_t) (1u << probe->column % 8);
}

/*
 * The same for questions, which are asked far more often and need no more than the
 * first product most of the time: what does not depend on the block, to be
 * computed once for all slices.
 */
typedef struct FavBits
{
	uint64_t	hash;
	uint64_t	columns;		/* the first product, turned: column 0 is lowest */
	size_t		lane;			/* where the lane of bit 0 begins in its block */
} FavBits;

static inline uint64_t
fav_turn_columns(uint64_t columns)
{
	return columns << 9 | columns >> 55;
}

static inline FavBits
fav_bits(uint64_t hash, uint32_t region_size)
{
	FavBits		bits;

	bits.hash = hash;
	bits.columns = fav_turn_columns(hash * FAV_FIRST_FACTOR);
	bits.lane = (size_t) ((hash & UINT32_MAX) * region_size >> 32) * FAV_LANE_BYTES;
	return bits;
}

#endif							/* FAV_HASH_H */
