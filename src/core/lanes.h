/*
 * lanes.h
 *		What the fast code for questions (hot.c) and for changes (change.c) shares: the
 *		bits of an element in a lane, with and without AVX2.  For these two only.
 */
#ifndef FAV_LANES_H
#define FAV_LANES_H

#include "filter.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_AVX2 1
#include <immintrin.h>
#endif

/* Inlined for sure: a call costs as much as the question. */
#if defined(__GNUC__)
#define ALWAYS_INLINE	inline __attribute__((always_inline))
#define NOINLINE		__attribute__((noinline))
#else
#define ALWAYS_INLINE	inline
#define NOINLINE
#endif

/* Of many questions or deletes, memory is fetched for so many ahead. */
#define FETCHED_AHEAD	16

/* The region size that filters have unless somebody asks for another. */
#define USUAL_REGION_SIZE	7

/*
 * Which words of its lane a group takes, by how many bits it has (less one) and by the
 * word it begins with: a one in each of them.
 */
static const FavGroupWords group_words[FAV_LANE_WORDS] = {
	{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}},
	{{1, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 1, 1}, {1, 0, 0, 1}},
	{{1, 1, 1, 0}, {0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}},
	{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}
};

/* Are the bits of a group set in its lane: all four, or those in some words? */
typedef bool (*LaneHasAll) (const uint8_t *lane, uint64_t product);
typedef bool (*LaneHasSome) (const uint8_t *lane, uint64_t product, const FavGroupWords *words);

/*
 * Where in its block an element has its first two lanes, in bytes.  As one number, to be
 * loaded at once: the second one is needed only if the first tells nothing.
 */
typedef uint32_t LanePair;

static ALWAYS_INLINE size_t
lane_one(LanePair pair)
{
	return (uint16_t) pair;
}

static ALWAYS_INLINE size_t
lane_two(LanePair pair)
{
	return pair >> 16;
}

#define LANE_PAIR(one, two)	((one) * FAV_LANE_BYTES | (two) * FAV_LANE_BYTES << 16)
#define LANE_PAIR_AFTER(one, more)	LANE_PAIR(one, ((one) + (more)) % USUAL_REGION_SIZE)
#define LANE_PAIRS(one) \
	LANE_PAIR_AFTER(one, 1), LANE_PAIR_AFTER(one, 2), LANE_PAIR_AFTER(one, 3), \
	LANE_PAIR_AFTER(one, 4), LANE_PAIR_AFTER(one, 5), LANE_PAIR_AFTER(one, 6)

/* For the usual region size, all there are. */
static const LanePair usual_pairs[USUAL_REGION_SIZE * (USUAL_REGION_SIZE - 1)] = {
	LANE_PAIRS(0), LANE_PAIRS(1), LANE_PAIRS(2), LANE_PAIRS(3), LANE_PAIRS(4), LANE_PAIRS(5), LANE_PAIRS(6)
};

/* To look them up takes half as many instructions as to compute them. */
static ALWAYS_INLINE LanePair
lane_pair(uint64_t hash, uint32_t region_size)
{
	uint32_t	one;
	uint32_t	two;

	if (region_size == USUAL_REGION_SIZE)
		return usual_pairs[(hash & UINT32_MAX) * (USUAL_REGION_SIZE * (USUAL_REGION_SIZE - 1)) >> 32];
	one = fav_probe_lane(hash, region_size);
	two = one + fav_probe_stride(hash, region_size);
	if (two >= region_size)
		two -= region_size;
	return LANE_PAIR(one, two);
}

/* Are the bits of the second group and all that follow set? */
static ALWAYS_INLINE bool
has_rest(const uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t k,
		 LaneHasAll has_all, LaneHasSome has_some)
{
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	left = k;

	for (;;)
	{
		left -= FAV_LANE_WORDS;
		if (left == 0)
			return true;
		fav_probe_next(&probe);
		if (left < FAV_LANE_WORDS)
			return has_some(block + (size_t) probe.lane * FAV_LANE_BYTES, probe.product, &group_words[left - 1]);
		if (!has_all(block + (size_t) probe.lane * FAV_LANE_BYTES, probe.product))
			return false;
	}
}

static ALWAYS_INLINE bool
block_has(const uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t k,
		  size_t lane, uint64_t product, LaneHasAll has_all, LaneHasSome has_some)
{
	if (k < FAV_LANE_WORDS)
		return has_some(block + lane, product, &group_words[k - 1]);
	return has_all(block + lane, product) &&
		has_rest(block, region_size, hash, k, has_all, has_some);
}

static ALWAYS_INLINE bool
has_all(const uint8_t *lane, uint64_t product)
{
	return (fav_load64(lane) >> fav_probe_column(product, 0) &
			fav_load64(lane + 8) >> fav_probe_column(product, 1) &
			fav_load64(lane + 16) >> fav_probe_column(product, 2) &
			fav_load64(lane + 24) >> fav_probe_column(product, 3)) & 1;
}

static ALWAYS_INLINE bool
has_some(const uint8_t *lane, uint64_t product, const FavGroupWords *words)
{
	const uint64_t *wanted = (*words)[fav_probe_begin(product)];

	return ((~(fav_load64(lane) >> fav_probe_column(product, 0)) & wanted[0]) |
			(~(fav_load64(lane + 8) >> fav_probe_column(product, 1)) & wanted[1]) |
			(~(fav_load64(lane + 16) >> fav_probe_column(product, 2)) & wanted[2]) |
			(~(fav_load64(lane + 24) >> fav_probe_column(product, 3)) & wanted[3])) == 0;
}

#ifdef HAVE_AVX2

static inline bool
fav_have_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}

/* The columns of a group, one in each word. */
__attribute__((target("avx2")))
static ALWAYS_INLINE __m256i
group_columns(uint64_t product)
{
	return _mm256_and_si256(_mm256_srlv_epi64(_mm256_set1_epi64x((long long) product),
											  _mm256_set_epi64x(58, 52, 46, 40)),
							_mm256_set1_epi64x(FAV_WORD_BITS - 1));
}

/* One in each word that the group takes. */
__attribute__((target("avx2")))
static ALWAYS_INLINE __m256i
some_words(uint64_t product, const FavGroupWords *words)
{
	return _mm256_loadu_si256((const __m256i *) (const void *) (*words)[fav_probe_begin(product)]);
}

/* The four words of the lane, each shifted so that its bit of the group is lowest. */
__attribute__((target("avx2")))
static ALWAYS_INLINE __m256i
shifted_lane(const uint8_t *lane, uint64_t product)
{
	return _mm256_srlv_epi64(_mm256_loadu_si256((const __m256i *) (const void *) lane),
							 group_columns(product));
}

__attribute__((target("avx2")))
static ALWAYS_INLINE bool
has_all_avx2(const uint8_t *lane, uint64_t product)
{
	return _mm256_testc_si256(shifted_lane(lane, product), _mm256_set1_epi64x(1));
}

__attribute__((target("avx2")))
static ALWAYS_INLINE bool
has_some_avx2(const uint8_t *lane, uint64_t product, const FavGroupWords *words)
{
	return _mm256_testc_si256(shifted_lane(lane, product), some_words(product, words));
}

#endif

#endif							/* FAV_LANES_H */
