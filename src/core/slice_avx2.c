/*
 * slice_avx2.c
 *		The functions of slice.c that are worth writing again for AVX2.
 *
 * A lane is one AVX2 register, and so are the four bits of a group in it.
 */
#include "slice.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define AVX2			__attribute__((target("avx2,popcnt")))
#define AVX2_INLINE		AVX2 static inline __attribute__((always_inline))

/*
 * The words of its lane that a group uses, by the number of its bits (less one) and the word
 * that it begins with: a one in each of them.
 */
static const uint64_t group_words[FAV_LANE_WORDS][FAV_LANE_WORDS][FAV_LANE_WORDS] = {
	{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}},
	{{1, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 1, 1}, {1, 0, 0, 1}},
	{{1, 1, 1, 0}, {0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}},
	{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}
};

AVX2_INLINE __m256i
load(const uint8_t *at)
{
	return _mm256_loadu_si256((const __m256i *) (const void *) at);
}

AVX2_INLINE void
store(uint8_t *at, __m256i value)
{
	_mm256_storeu_si256((__m256i *) (void *) at, value);
}

/* The bits of a group, at most `left`. */
AVX2_INLINE __m256i
group_bits(uint64_t product, uint32_t left)
{
	__m256i		shifted = _mm256_srlv_epi64(_mm256_set1_epi64x((long long) product),
											_mm256_set_epi64x(58, 52, 46, 40));
	__m256i		columns = _mm256_and_si256(shifted, _mm256_set1_epi64x(FAV_WORD_BITS - 1));
	__m256i		words = _mm256_set1_epi64x(1);

	if (left < FAV_LANE_WORDS)
		words = load((const uint8_t *) group_words[left - 1][fav_probe_begin(product)]);
	return _mm256_sllv_epi64(words, columns);
}

/* How many of the four words are not zero. */
AVX2_INLINE uint32_t
nonzero_words(__m256i words)
{
	__m256i		zero = _mm256_cmpeq_epi64(words, _mm256_setzero_si256());

	return FAV_LANE_WORDS -
		(uint32_t) __builtin_popcount((unsigned) _mm256_movemask_pd(_mm256_castsi256_pd(zero)));
}

AVX2 static bool
list_contains(const uint8_t *list, uint32_t count, uint64_t hash)
{
	__m256i		wanted = _mm256_set1_epi64x((long long) hash);
	__m256i		found = _mm256_setzero_si256();
	uint32_t	i = 0;

	for (; i + 8 <= count; i += 8)
	{
		__m256i		low = _mm256_cmpeq_epi64(load(list + 8 * (size_t) i), wanted);
		__m256i		high = _mm256_cmpeq_epi64(load(list + 8 * (size_t) (i + 4)), wanted);

		found = _mm256_or_si256(found, _mm256_or_si256(low, high));
	}
	if (!_mm256_testz_si256(found, found))
		return true;
	for (; i < count; i++)
		if (fav_load64(list + 8 * (size_t) i) == hash)
			return true;
	return false;
}

/* Does the block have all bits of the hash after the first group? */
AVX2 static bool
has_other_groups(const uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash)
{
	FavProbe	probe = fav_probe_first(hash, region_size, k);

	while (fav_probe_next(&probe))
		if (!_mm256_testc_si256(load(block + (size_t) probe.lane * FAV_LANE_BYTES),
								group_bits(probe.product, probe.left)))
			return false;
	return true;
}

/* The first group is in the same lane and columns of all slices. */
AVX2 static uint32_t
find_slice(const FavSlice *slices, uint32_t nslices, uint32_t region_size, uint64_t hash)
{
	uint64_t	product = fav_probe_product(hash, 0);
	size_t		lane = (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES;
	__m256i		first = group_bits(product, FAV_LANE_WORDS);

	while (nslices-- > 0)
	{
		const FavSlice *slice = &slices[nslices];
		const uint8_t *block = slice->blocks + fav_slice_block_offset(slice, region_size, hash);
		__m256i		bits = slice->k < FAV_LANE_WORDS ? group_bits(product, slice->k) : first;

		if (_mm256_testc_si256(load(block + lane), bits) &&
			has_other_groups(block, region_size, slice->k, hash))
			return nslices;
	}
	return FAV_NO_SLICE;
}

AVX2 static uint32_t
block_insert(uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash)
{
	uint8_t    *tracker = block + (size_t) region_size * FAV_LANE_BYTES;
	__m256i		marked = load(tracker);
	uint32_t	added = 0;
	FavProbe	probe = fav_probe_first(hash, region_size, k);

	do
	{
		uint8_t    *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		__m256i		bits = group_bits(probe.product, probe.left);
		__m256i		old = load(lane);

		marked = _mm256_or_si256(marked, _mm256_and_si256(old, bits));
		store(lane, _mm256_or_si256(old, bits));
		added += nonzero_words(_mm256_andnot_si256(old, bits));
	} while (fav_probe_next(&probe));
	store(tracker, marked);
	return added;
}

AVX2 static uint32_t
block_remove(uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash, uint32_t least)
{
	__m256i		marked = load(block + (size_t) region_size * FAV_LANE_BYTES);
	FavProbe	probe = fav_probe_first(hash, region_size, k);
	uint8_t    *lanes[FAV_MAX_K / FAV_LANE_WORDS];
	__m256i		own[FAV_MAX_K / FAV_LANE_WORDS];
	uint32_t	ngroups = 0;
	uint32_t	cleared = 0;

	do
	{
		uint8_t    *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		__m256i		old = load(lane);
		__m256i		bits = group_bits(probe.product, probe.left);

		lanes[ngroups] = lane;
		own[ngroups] = _mm256_andnot_si256(marked, _mm256_and_si256(old, bits));
		store(lane, _mm256_andnot_si256(own[ngroups], old));
		cleared += nonzero_words(own[ngroups++]);
	} while (fav_probe_next(&probe));
	if (cleared >= least)
		return cleared;
	while (ngroups-- > 0)
		store(lanes[ngroups], _mm256_or_si256(load(lanes[ngroups]), own[ngroups]));
	return 0;
}

static const FavKernels kernels = {list_contains, find_slice, block_insert, block_remove};

const FavKernels *
fav_avx2_kernels(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") ? &kernels : NULL;
}

#else

const FavKernels *
fav_avx2_kernels(void)
{
	return NULL;
}

#endif
