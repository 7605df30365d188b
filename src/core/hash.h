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
 *		block	The upper half of h, scaled to n (multiply-shift).  Ascending hashes fall
 *				into ascending blocks.
 *		lane	Bits come in groups of four, one lane per group.  The lower half of h,
 *				scaled to R, is the first lane.  The rest of that product, scaled to
 *				R - 1, is the stride from one group's lane to the next, modulo R.
 *		column	One in each 64-bit word of the lane: 6 bits each of h * c0 for the first
 *				group, of h * c1 for the second, ...
 *
 * A last group of fewer than four bits uses some of the four words, beginning with any of
 * them.
 *
 * A probe therefore finds its first four bits within 32 bytes, and nearly always they are
 * enough to say no.  The columns of the original filter, Ha + i * Hb over the whole block, take
 * a cache line each.  They also lie on a line: two elements that share a few of them tend to
 * share all.  docs/internals/ALGORITHM.md has the figures.
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

/* Canonical bytes: as they are (text, uuid, bytea). */
static inline uint64_t
fav_hash_bytes(FavKind kind, const void *bytes, size_t length, uint64_t seed)
{
	/* multiples of the golden ratio keep the seeds of the kinds apart */
	uint64_t	of_kind = (uint64_t) (kind - FAV_KIND_INTEGER) * UINT64_C(0x9e3779b97f4a7c15);

	return XXH3_64bits_withSeed(bytes, length, seed ^ of_kind);
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

/*
 * The bits of an element within its block, group after group:
 *
 *		FavProbe probe = fav_probe_first(hash, region_size, k);
 *		do
 *			fav_probe_masks(&probe, masks);
 *		while (fav_probe_next(&probe));
 *
 * masks are the bits wanted in the four words of the lane.
 */
typedef struct FavProbe
{
	uint64_t	hash;
	uint64_t	product;		/* gives the columns of this group */
	uint32_t	region_size;
	uint32_t	lane;
	uint32_t	stride;			/* from lane to lane */
	uint32_t	group;
	uint32_t	left;			/* bits of this group and all that follow */
} FavProbe;

static inline uint64_t
fav_probe_product(uint64_t hash, uint32_t group)
{
	/* the first words of the fraction of pi, made odd */
	static const uint64_t factors[FAV_MAX_K / FAV_LANE_WORDS] = {
		UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707345),
		UINT64_C(0xa4093822299f31d1), UINT64_C(0x082efa98ec4e6c89),
		UINT64_C(0x452821e638d01377), UINT64_C(0xbe5466cf34e90c6d),
		UINT64_C(0xc0ac29b7c97c50dd), UINT64_C(0x3f84d5b5b5470917)
	};

	return hash * factors[group];
}

static inline uint32_t
fav_probe_lane(uint64_t hash, uint32_t region_size)
{
	return (uint32_t) ((hash & UINT32_MAX) * region_size >> 32);
}

/* The column in word `word` of the lane. */
static inline uint32_t
fav_probe_column(uint64_t product, uint32_t word)
{
	return product >> (40 + 6 * word) & 63;
}

/* The word that a group of fewer than four bits begins with. */
static inline uint32_t
fav_probe_begin(uint64_t product)
{
	return product >> 38 & 3;
}

/*
 * First lane and stride together are the lower half of the hash, scaled to the R * (R - 1) ways
 * to choose two lanes.
 */
static inline FavProbe
fav_probe_first(uint64_t hash, uint32_t region_size, uint32_t k)
{
	uint64_t	rest = (hash & UINT32_MAX) * region_size & UINT32_MAX;
	FavProbe	probe;

	probe.hash = hash;
	probe.product = fav_probe_product(hash, 0);
	probe.region_size = region_size;
	probe.lane = fav_probe_lane(hash, region_size);
	probe.stride = 1 + (uint32_t) (rest * (region_size - 1) >> 32);
	probe.group = 0;
	probe.left = k;
	return probe;
}

static inline bool
fav_probe_next(FavProbe *probe)
{
	if (probe->left <= FAV_LANE_WORDS)
		return false;
	probe->left -= FAV_LANE_WORDS;
	probe->product = fav_probe_product(probe->hash, ++probe->group);
	probe->lane += probe->stride;
	if (probe->lane >= probe->region_size)
		probe->lane -= probe->region_size;
	return true;
}

/* The bits of this group. */
static inline void
fav_probe_masks(const FavProbe *probe, uint64_t masks[FAV_LANE_WORDS])
{
	uint32_t	begin = probe->left < FAV_LANE_WORDS ? fav_probe_begin(probe->product) : 0;
	uint32_t	word;

	for (word = 0; word < FAV_LANE_WORDS; word++)
		masks[word] = ((word - begin) % FAV_LANE_WORDS < probe->left ? UINT64_C(1) : 0)
			<< fav_probe_column(probe->product, word);
}

#endif							/* FAV_HASH_H */
