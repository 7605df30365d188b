/*
 * hot.c
 *		Where the time goes: the two questions behind every contains, add and del (is
 *		a hash among the recent ones, and which slices report it), and what changes a
 *		slice.  The one piece of the core that is written for speed first.
 *
 * Each is here with and without AVX2, and the first call chooses.
 *
 * Slices are asked for one group of bits after the other.  Of the elements that
 * are not there all but some 3 % end with the first group, which the processor
 * predicts well; a branch for each bit it could not.
 */
#include "filter.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_AVX2 1
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Inlined for sure: a call costs as much as the question. */
#if defined(__GNUC__)
#define ALWAYS_INLINE	inline __attribute__((always_inline))
#define NOINLINE		__attribute__((noinline))
#else
#define ALWAYS_INLINE	inline
#define NOINLINE
#endif

/* A slice of so many bytes may not be in the processor's nearest caches. */
#define PREFETCH_FROM	(128 * 1024)

/* Of many questions or deletes, memory is fetched for so many ahead. */
#define FETCHED_AHEAD	16

/* The region size that filters have unless somebody asks for another. */
#define USUAL_REGION_SIZE	7

/* Are the bits of a group set in its lane: all four, or the first `left`? */
typedef bool (*LaneHasAll) (const uint8_t *lane, uint64_t product);
typedef bool (*LaneHasSome) (const uint8_t *lane, uint64_t product, uint32_t left);

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
			return has_some(block + (size_t) probe.lane * FAV_LANE_BYTES, probe.product, left);
		if (!has_all(block + (size_t) probe.lane * FAV_LANE_BYTES, probe.product))
			return false;
	}
}

static ALWAYS_INLINE bool
block_has(const uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t k,
		  size_t lane, uint64_t product, LaneHasAll has_all, LaneHasSome has_some)
{
	if (k < FAV_LANE_WORDS)
		return has_some(block + lane, product, k);
	return has_all(block + lane, product) &&
		has_rest(block, region_size, hash, k, has_all, has_some);
}

/*
 * How many slices report the hash, counted up to `enough`; *first is one of them.
 * The last slices hold most elements, so they come first.
 */
static ALWAYS_INLINE uint32_t
count_reporting(const FavFilter *filter, uint64_t hash, uint32_t enough, uint32_t *first,
				LaneHasAll has_all, LaneHasSome has_some)
{
	uint32_t	region_size = filter->params.region_size;
	uint64_t	product = fav_probe_product(hash, 0);
	size_t		lane = (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES;
	uint32_t	reporting = 0;
	uint32_t	i;

	for (i = filter->nslices; i-- > 0;)
	{
		const FavSlice *slice = &filter->slices[i];

		if (!block_has(slice->blocks + fav_slice_block_offset(slice, region_size, hash),
					   region_size, hash, slice->k, lane, product, has_all, has_some))
			continue;
		*first = i;
		if (++reporting == enough)
			break;
	}
	return reporting;
}

typedef bool (*Contains) (const FavFilter *filter, const FavSketch *sketch, uint64_t hash);
typedef bool (*RecentContains) (const uint8_t *recent, uint32_t count, uint64_t hash);

/* Is the hash there, which a slice reports? */
static NOINLINE bool
contains_reported(const FavFilter *filter, uint64_t hash)
{
	return !fav_hashes_contain(filter->deleted, filter->ndeleted, hash) ||
		fav_recent_contains(filter->recent, filter->nrecent, hash);
}

/* Is the hash there, knowing whether a slice reports it? */
static ALWAYS_INLINE bool
contains_if(bool reported, const FavFilter *filter, const FavSketch *sketch, uint64_t hash,
			RecentContains recent_contains)
{
	if (reported)
		return filter->ndeleted == 0 || contains_reported(filter, hash);
	if (sketch != NULL && !fav_sketch_may_contain(sketch, hash))
		return false;
	return recent_contains(filter->recent, filter->nrecent, hash);
}

/* One slice is what aggregates and rebuilds make, and two groups what error rates from 5 % to 0.1 % take. */
static ALWAYS_INLINE bool
is_single(const FavFilter *filter)
{
	return filter->nslices == 1 && filter->slices[0].k - FAV_LANE_WORDS - 1 < FAV_LANE_WORDS;
}

/* For these, no loop. */
static ALWAYS_INLINE bool
contains_single(const FavFilter *filter, const FavSketch *sketch, uint64_t hash, uint32_t region_size,
				RecentContains recent_contains, LaneHasAll has_all, LaneHasSome has_some)
{
	const FavSlice *slice = &filter->slices[0];
	const uint8_t *block = slice->blocks + fav_slice_block_offset(slice, region_size, hash);
	uint64_t	product = fav_probe_product(hash, 0);
	size_t		lane = fav_probe_lane(hash, region_size);
	bool		reported = has_all(block + lane * FAV_LANE_BYTES, product);

	if (reported)
	{
		lane += fav_probe_stride(product, region_size);
		if (lane >= region_size)
			lane -= region_size;
		reported = has_some(block + lane * FAV_LANE_BYTES, fav_probe_product(hash, 1), slice->k - FAV_LANE_WORDS);
	}
	return contains_if(reported, filter, sketch, hash, recent_contains);
}

/* Any number of slices, with any number of bits an element. */
static ALWAYS_INLINE bool
contains_chain(const FavFilter *filter, const FavSketch *sketch, uint64_t hash,
			   RecentContains recent_contains, LaneHasAll has_all, LaneHasSome has_some)
{
	uint32_t	which;

	return contains_if(count_reporting(filter, hash, 1, &which, has_all, has_some) > 0,
					   filter, sketch, hash, recent_contains);
}

/* Any filter; `chain` is contains_chain. */
static ALWAYS_INLINE bool
contains_any(const FavFilter *filter, const FavSketch *sketch, uint64_t hash, Contains chain,
			 RecentContains recent_contains, LaneHasAll has_all, LaneHasSome has_some)
{
	if (!is_single(filter))
		return chain(filter, sketch, hash);
	return contains_single(filter, sketch, hash, filter->params.region_size, recent_contains, has_all, has_some);
}

/*
 * The region size is hardly ever another than the default.  When the compiler knows it,
 * less is to be computed, above all on the way to the first load.  All the rest is left to
 * functions that are called last (`otherwise` is contains_any), so that no register is saved.
 */
static ALWAYS_INLINE bool
contains(const FavFilter *filter, const FavSketch *sketch, uint64_t hash, Contains otherwise,
		 RecentContains recent_contains, LaneHasAll has_all, LaneHasSome has_some)
{
	if (!is_single(filter) || filter->params.region_size != USUAL_REGION_SIZE)
		return otherwise(filter, sketch, hash);
	return contains_single(filter, sketch, hash, USUAL_REGION_SIZE, recent_contains, has_all, has_some);
}

/*
 * Each question has the processor wait for memory once, if the slice is large.  So what
 * a question will look at is fetched while those before it are answered.
 */
static ALWAYS_INLINE void
fetch_first_lane(const FavSlice *slice, uint32_t region_size, uint64_t hash)
{
	__builtin_prefetch(slice->blocks + fav_slice_block_offset(slice, region_size, hash) +
					   (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES);
}

static ALWAYS_INLINE bool
is_far(const FavSlice *slice, uint32_t region_size)
{
	return fav_slice_bytes(slice, region_size) >= PREFETCH_FROM;
}

/* Any filter. */
static ALWAYS_INLINE void
contains_each(const FavFilter *filter, const FavSketch *sketch, const uint64_t *hashes, size_t count,
			  bool *answers, Contains contains)
{
	uint32_t	region_size = filter->params.region_size;
	uint32_t	first_far = 0;
	size_t		ahead;
	uint32_t	i;
	size_t		j;

	/* the last slices are the largest */
	while (first_far < filter->nslices && !is_far(&filter->slices[first_far], region_size))
		first_far++;
	ahead = first_far < filter->nslices ? FETCHED_AHEAD : 0;
	for (j = 0; j < count + ahead; j++)
	{
		if (j < count)
			for (i = first_far; i < filter->nslices; i++)
				fetch_first_lane(&filter->slices[i], region_size, hashes[j]);
		if (j >= ahead)
			answers[j - ahead] = contains(filter, sketch, hashes[j - ahead]);
	}
}

/* `otherwise` is contains_any. */
static ALWAYS_INLINE void
contains_many(const FavFilter *filter, const FavSketch *sketch, const uint64_t *hashes, size_t count,
			  bool *answers, Contains otherwise, RecentContains recent_contains,
			  LaneHasAll has_all, LaneHasSome has_some)
{
	const FavSlice *slice = &filter->slices[0];
	size_t		fetched;
	size_t		j;

	if (!is_single(filter) || filter->params.region_size != USUAL_REGION_SIZE)
	{
		contains_each(filter, sketch, hashes, count, answers, otherwise);
		return;
	}
	for (fetched = is_far(slice, USUAL_REGION_SIZE) ? 0 : count; fetched < count && fetched < FETCHED_AHEAD; fetched++)
		fetch_first_lane(slice, USUAL_REGION_SIZE, hashes[fetched]);
	for (j = 0; fetched < count; j++, fetched++)
	{
		fetch_first_lane(slice, USUAL_REGION_SIZE, hashes[fetched]);
		answers[j] = contains_single(filter, sketch, hashes[j], USUAL_REGION_SIZE, recent_contains, has_all, has_some);
	}
	for (; j < count; j++)
		answers[j] = contains_single(filter, sketch, hashes[j], USUAL_REGION_SIZE, recent_contains, has_all, has_some);
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
has_some(const uint8_t *lane, uint64_t product, uint32_t left)
{
	uint32_t	word = fav_probe_begin(product);
	uint64_t	all = 1;

	for (; left > 0; left--, word = (word + 1) % FAV_LANE_WORDS)
		all &= fav_load64(lane + 8 * word) >> fav_probe_column(product, word);
	return all;
}

static NOINLINE bool
recent_contains_plain(const uint8_t *recent, uint32_t count, uint64_t hash)
{
	uint32_t	i = 0;

#if defined(__SSE2__)
	/*
	 * Four at a time, by the lower halves first: SSE2 cannot compare 64 bits.
	 * No branch within: nothing tells where a hash is.
	 */
	__m128i		wanted = _mm_set1_epi32((int) (uint32_t) hash);
	__m128i		found = _mm_setzero_si128();

	for (; i + 4 <= count; i += 4)
	{
		__m128		one = _mm_loadu_ps((const float *) (const void *) (recent + 8 * i));
		__m128		two = _mm_loadu_ps((const float *) (const void *) (recent + 8 * i + 16));
		__m128i		halves = _mm_castps_si128(_mm_shuffle_ps(one, two, _MM_SHUFFLE(2, 0, 2, 0)));

		found = _mm_or_si128(found, _mm_cmpeq_epi32(halves, wanted));
	}
	if (_mm_movemask_epi8(found) != 0)
		i = 0;
#endif
	for (; i < count; i++)
		if (fav_load64(recent + 8 * i) == hash)
			return true;
	return false;
}

static NOINLINE bool
contains_chain_plain(const FavFilter *filter, const FavSketch *sketch, uint64_t hash)
{
	return contains_chain(filter, sketch, hash, recent_contains_plain, has_all, has_some);
}

static NOINLINE bool
contains_any_plain(const FavFilter *filter, const FavSketch *sketch, uint64_t hash)
{
	return contains_any(filter, sketch, hash, contains_chain_plain, recent_contains_plain, has_all, has_some);
}

static bool
contains_plain(const FavFilter *filter, const FavSketch *sketch, uint64_t hash)
{
	return contains(filter, sketch, hash, contains_any_plain, recent_contains_plain, has_all, has_some);
}

static void
contains_many_plain(const FavFilter *filter, const FavSketch *sketch, const uint64_t *hashes,
					size_t count, bool *answers)
{
	contains_many(filter, sketch, hashes, count, answers, contains_any_plain, recent_contains_plain, has_all, has_some);
}

static uint32_t
reporting_plain(const FavFilter *filter, uint64_t hash, uint32_t enough, uint32_t *first)
{
	return count_reporting(filter, hash, enough, first, has_all, has_some);
}

/* Returns how many bits that set. */
typedef uint32_t (*Insert) (const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash);

static ALWAYS_INLINE size_t
fill(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
	 size_t count, uint64_t *doubtful, Insert insert)
{
	FavSlice	now = *slice;	/* which the writes to blocks cannot change, for the compiler */
	size_t		ndoubtful = 0;
	size_t		i;

	for (i = 0; i < count; i++)
	{
		uint32_t	added = insert(&now, blocks, region_size, hashes[i]);

		now.bits_set += added;
		doubtful[ndoubtful] = hashes[i];
		ndoubtful += added == 0;
	}
	slice->bits_set = now.bits_set;
	return ndoubtful;
}

static ALWAYS_INLINE uint32_t
insert(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	uint8_t    *tracker = block + (size_t) region_size * FAV_LANE_BYTES;
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	added = 0;
	uint32_t	left;
	uint32_t	count;

	for (left = slice->k; left > 0; left -= count, fav_probe_next(&probe))
	{
		uint8_t    *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		count = fav_probe_masks(&probe, left, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
		{
			uint64_t	old = fav_load64(lane + 8 * word);

			fav_store64(tracker + 8 * word, fav_load64(tracker + 8 * word) | (old & masks[word]));
			fav_store64(lane + 8 * word, old | masks[word]);
			added += (masks[word] & ~old) != 0;
		}
	}
	return added;
}

static void
insert_plain(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	slice->bits_set += insert(slice, blocks, region_size, hash);
}

static size_t
fill_plain(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
		   size_t count, uint64_t *doubtful)
{
	return fill(slice, blocks, region_size, hashes, count, doubtful, insert);
}

/*
 * Clear the bits of an element that are in unmarked regions, or set them again.  Returns
 * how many that changes.
 */
typedef uint32_t (*ChangeOwnBits) (uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t k, bool set);

/* Any number of groups, in any number of lanes. */
static ALWAYS_INLINE int
take(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash,
	 LaneHasAll has_all, LaneHasSome has_some, ChangeOwnBits change_own_bits)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	uint32_t	own;

	if (!block_has(block, region_size, hash, slice->k, (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES,
				   fav_probe_product(hash, 0), has_all, has_some))
		return FAV_NOT_REPORTED;
	own = change_own_bits(block, region_size, hash, slice->k, false);
	if (!fav_stays(slice, (int) own))
		slice->bits_set -= own;
	else if (own > 0)
		change_own_bits(block, region_size, hash, slice->k, true);
	return (int) own;
}

static ALWAYS_INLINE uint32_t
change_own_bits(uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t k, bool set)
{
	uint8_t    *tracker = block + (size_t) region_size * FAV_LANE_BYTES;
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	changed = 0;
	uint32_t	left;
	uint32_t	count;

	for (left = k; left > 0; left -= count, fav_probe_next(&probe))
	{
		uint8_t    *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		count = fav_probe_masks(&probe, left, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
		{
			uint64_t	old = fav_load64(lane + 8 * word);
			uint64_t	own = (set ? ~old : old) & masks[word] & ~fav_load64(tracker + 8 * word);

			fav_store64(lane + 8 * word, old ^ own);
			changed += own != 0;
		}
	}
	return changed;
}

static int
take_plain(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	return take(slice, blocks, region_size, hash, has_all, has_some, change_own_bits);
}

typedef int (*Take) (FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash);

/* The first lane and the tracker. */
static ALWAYS_INLINE void
fetch_to_take(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);

	__builtin_prefetch(block + (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES);
	__builtin_prefetch(block + (size_t) region_size * FAV_LANE_BYTES);
}

static ALWAYS_INLINE size_t
take_many(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes, size_t count,
		  uint64_t *staying, size_t *gone, Take take)
{
	FavSlice	now = *slice;	/* which the writes to blocks cannot change, for the compiler */
	size_t		nstaying = 0;
	size_t		reported = 0;
	size_t		fetched = 0;
	size_t		i;

	for (; fetched < count && fetched < FETCHED_AHEAD; fetched++)
		fetch_to_take(&now, blocks, region_size, hashes[fetched]);
	for (i = 0; i < count; i++)
	{
		int			own;

		if (fetched < count)
			fetch_to_take(&now, blocks, region_size, hashes[fetched++]);
		own = take(&now, blocks, region_size, hashes[i]);

		/* which of them stay cannot be predicted: no branch */
		staying[nstaying] = hashes[i];
		nstaying += fav_stays(&now, own);
		reported += own != FAV_NOT_REPORTED;
	}
	slice->bits_set = now.bits_set;
	*gone = reported - nstaying;
	return nstaying;
}

static size_t
take_many_plain(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes, size_t count,
				uint64_t *staying, size_t *gone)
{
	return take_many(slice, blocks, region_size, hashes, count, staying, gone, take_plain);
}

#ifdef HAVE_AVX2

/* The columns of a group, one in each word. */
__attribute__((target("avx2")))
static ALWAYS_INLINE __m256i
group_columns(uint64_t product)
{
	return _mm256_and_si256(_mm256_srlv_epi64(_mm256_set1_epi64x((long long) product),
											  _mm256_set_epi64x(58, 52, 46, 40)),
							_mm256_set1_epi64x(FAV_WORD_BITS - 1));
}

/* One in each word that a group of `left` bits takes: (word - begin) % 4 < left. */
__attribute__((target("avx2")))
static ALWAYS_INLINE __m256i
some_words(uint64_t product, uint32_t left)
{
	static const uint64_t words[FAV_LANE_WORDS][FAV_LANE_WORDS][FAV_LANE_WORDS] = {
		{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}},
		{{1, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 1, 1}, {1, 0, 0, 1}},
		{{1, 1, 1, 0}, {0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}},
		{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}
	};

	return _mm256_loadu_si256((const __m256i *) (const void *) words[left - 1][fav_probe_begin(product)]);
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
has_some_avx2(const uint8_t *lane, uint64_t product, uint32_t left)
{
	return _mm256_testc_si256(shifted_lane(lane, product), some_words(product, left));
}

__attribute__((target("avx2")))
static NOINLINE bool
recent_contains_avx2(const uint8_t *recent, uint32_t count, uint64_t hash)
{
	__m256i		wanted = _mm256_set1_epi64x((long long) hash);
	__m256i		found = _mm256_setzero_si256();
	__m256i		found_too = _mm256_setzero_si256();
	uint32_t	i = 0;

	for (; i + 8 <= count; i += 8)
	{
		const __m256i *four = (const __m256i *) (const void *) (recent + 8 * i);

		found = _mm256_or_si256(found, _mm256_cmpeq_epi64(_mm256_loadu_si256(four), wanted));
		found_too = _mm256_or_si256(found_too, _mm256_cmpeq_epi64(_mm256_loadu_si256(four + 1), wanted));
	}
	found = _mm256_or_si256(found, found_too);
	if (!_mm256_testz_si256(found, found))
		return true;
	for (; i < count; i++)
		if (fav_load64(recent + 8 * i) == hash)
			return true;
	return false;
}

__attribute__((target("avx2")))
static NOINLINE bool
contains_chain_avx2(const FavFilter *filter, const FavSketch *sketch, uint64_t hash)
{
	return contains_chain(filter, sketch, hash, recent_contains_avx2, has_all_avx2, has_some_avx2);
}

__attribute__((target("avx2")))
static NOINLINE bool
contains_any_avx2(const FavFilter *filter, const FavSketch *sketch, uint64_t hash)
{
	return contains_any(filter, sketch, hash, contains_chain_avx2, recent_contains_avx2, has_all_avx2, has_some_avx2);
}

__attribute__((target("avx2")))
static bool
contains_avx2(const FavFilter *filter, const FavSketch *sketch, uint64_t hash)
{
	return contains(filter, sketch, hash, contains_any_avx2, recent_contains_avx2, has_all_avx2, has_some_avx2);
}

__attribute__((target("avx2")))
static void
contains_many_avx2(const FavFilter *filter, const FavSketch *sketch, const uint64_t *hashes,
				   size_t count, bool *answers)
{
	contains_many(filter, sketch, hashes, count, answers, contains_any_avx2, recent_contains_avx2, has_all_avx2, has_some_avx2);
}

__attribute__((target("avx2")))
static uint32_t
reporting_avx2(const FavFilter *filter, uint64_t hash, uint32_t enough, uint32_t *first)
{
	return count_reporting(filter, hash, enough, first, has_all_avx2, has_some_avx2);
}

/* How many of the four words are not zero. */
__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE uint32_t
nonzero_words(__m256i words)
{
	__m256i		zero = _mm256_cmpeq_epi64(words, _mm256_setzero_si256());

	return FAV_LANE_WORDS - (uint32_t) __builtin_popcount((unsigned) _mm256_movemask_pd(_mm256_castsi256_pd(zero)));
}

/* The bits of a group, at most `left`. */
__attribute__((target("avx2")))
static ALWAYS_INLINE __m256i
group_masks(uint64_t product, uint32_t left)
{
	return _mm256_sllv_epi64(left < FAV_LANE_WORDS ? some_words(product, left) : _mm256_set1_epi64x(1),
							 group_columns(product));
}

/* Two groups in two lanes are what most filters have: for them, no loop. */
typedef struct TwoGroups
{
	__m256i    *one;			/* their lanes */
	__m256i    *two;
	__m256i		of_one;			/* and bits */
	__m256i		of_two;
} TwoGroups;

static ALWAYS_INLINE bool
has_two_groups(const FavSlice *slice, uint32_t region_size)
{
	return slice->k - FAV_LANE_WORDS - 1 < FAV_LANE_WORDS && region_size > 1;
}

/* `left` bits are in the second group. */
__attribute__((target("avx2")))
static ALWAYS_INLINE TwoGroups
two_groups(uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t left)
{
	uint64_t	product = fav_probe_product(hash, 0);
	size_t		lane = fav_probe_lane(hash, region_size);
	TwoGroups	groups;

	groups.one = (__m256i *) (void *) (block + lane * FAV_LANE_BYTES);
	groups.of_one = group_masks(product, FAV_LANE_WORDS);
	lane += fav_probe_stride(product, region_size);
	if (lane >= region_size)
		lane -= region_size;
	product = fav_probe_product(hash, 1);
	groups.two = (__m256i *) (void *) (block + lane * FAV_LANE_BYTES);
	groups.of_two = _mm256_sllv_epi64(some_words(product, left), group_columns(product));
	return groups;
}

__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE uint32_t
insert_with_avx2(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	__m256i    *tracker = (__m256i *) (void *) (block + (size_t) region_size * FAV_LANE_BYTES);
	FavProbe	probe = fav_probe_first(hash, region_size);
	__m256i		marked = _mm256_loadu_si256(tracker);
	uint32_t	added = 0;
	uint32_t	left = slice->k;

	for (;; left -= FAV_LANE_WORDS, fav_probe_next(&probe))
	{
		__m256i    *lane = (__m256i *) (void *) (block + (size_t) probe.lane * FAV_LANE_BYTES);
		__m256i		masks = group_masks(probe.product, left);
		__m256i		old = _mm256_loadu_si256(lane);

		marked = _mm256_or_si256(marked, _mm256_and_si256(old, masks));
		_mm256_storeu_si256(lane, _mm256_or_si256(old, masks));
		added += nonzero_words(_mm256_andnot_si256(old, masks));
		if (left <= FAV_LANE_WORDS)
			break;
	}
	_mm256_storeu_si256(tracker, marked);
	return added;
}

/* The same for two groups in two lanes. */
__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE uint32_t
insert_two_avx2(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	__m256i    *tracker = (__m256i *) (void *) (block + (size_t) region_size * FAV_LANE_BYTES);
	TwoGroups	groups = two_groups(block, region_size, hash, slice->k - FAV_LANE_WORDS);
	__m256i		in_one = _mm256_loadu_si256(groups.one);
	__m256i		in_two = _mm256_loadu_si256(groups.two);

	_mm256_storeu_si256(tracker, _mm256_or_si256(_mm256_loadu_si256(tracker),
												 _mm256_or_si256(_mm256_and_si256(in_one, groups.of_one),
																 _mm256_and_si256(in_two, groups.of_two))));
	_mm256_storeu_si256(groups.one, _mm256_or_si256(in_one, groups.of_one));
	_mm256_storeu_si256(groups.two, _mm256_or_si256(in_two, groups.of_two));
	return nonzero_words(_mm256_andnot_si256(in_one, groups.of_one)) +
		nonzero_words(_mm256_andnot_si256(in_two, groups.of_two));
}

__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE uint32_t
change_own_bits_avx2(uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t k, bool set)
{
	__m256i		marked = _mm256_loadu_si256((const __m256i *) (void *) (block + (size_t) region_size * FAV_LANE_BYTES));
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	changed = 0;
	uint32_t	left = k;

	for (;; left -= FAV_LANE_WORDS, fav_probe_next(&probe))
	{
		__m256i    *lane = (__m256i *) (void *) (block + (size_t) probe.lane * FAV_LANE_BYTES);
		__m256i		old = _mm256_loadu_si256(lane);
		__m256i		own = _mm256_andnot_si256(marked, group_masks(probe.product, left));

		own = set ? _mm256_andnot_si256(old, own) : _mm256_and_si256(old, own);
		_mm256_storeu_si256(lane, _mm256_xor_si256(old, own));
		changed += nonzero_words(own);
		if (left <= FAV_LANE_WORDS)
			break;
	}
	return changed;
}

__attribute__((target("avx2,popcnt")))
static int
take_any_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	return take(slice, blocks, region_size, hash, has_all_avx2, has_some_avx2, change_own_bits_avx2);
}

/* For two groups in two lanes, so with more than one bit an element. */
__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE int
take_two_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	TwoGroups	groups = two_groups(block, region_size, hash, slice->k - FAV_LANE_WORDS);
	__m256i		in_one = _mm256_loadu_si256(groups.one);
	__m256i		in_two = _mm256_loadu_si256(groups.two);
	__m256i		marked;
	__m256i		cleared;
	uint32_t	own;

	/* a branch, but only the contract's breach makes it hard to predict */
	if (!_mm256_testc_si256(in_one, groups.of_one) || !_mm256_testc_si256(in_two, groups.of_two))
		return FAV_NOT_REPORTED;
	marked = _mm256_loadu_si256((const __m256i *) (void *) (block + (size_t) region_size * FAV_LANE_BYTES));
	groups.of_one = _mm256_andnot_si256(marked, groups.of_one);
	groups.of_two = _mm256_andnot_si256(marked, groups.of_two);
	own = nonzero_words(groups.of_one) + nonzero_words(groups.of_two);

	/* all of them or none, without a branch */
	cleared = _mm256_set1_epi64x(-(long long) (own > 1));
	_mm256_storeu_si256(groups.one, _mm256_andnot_si256(_mm256_and_si256(groups.of_one, cleared), in_one));
	_mm256_storeu_si256(groups.two, _mm256_andnot_si256(_mm256_and_si256(groups.of_two, cleared), in_two));
	slice->bits_set -= own > 1 ? own : 0;
	return (int) own;
}

__attribute__((target("avx2,popcnt")))
static int
take_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	if (!has_two_groups(slice, region_size))
		return take_any_avx2(slice, blocks, region_size, hash);
	if (region_size == USUAL_REGION_SIZE)
		return take_two_avx2(slice, blocks, USUAL_REGION_SIZE, hash);
	return take_two_avx2(slice, blocks, region_size, hash);
}

__attribute__((target("avx2,popcnt")))
static size_t
take_many_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes, size_t count,
			   uint64_t *staying, size_t *gone)
{
	if (!has_two_groups(slice, region_size))
		return take_many(slice, blocks, region_size, hashes, count, staying, gone, take_any_avx2);
	if (region_size == USUAL_REGION_SIZE)
		return take_many(slice, blocks, USUAL_REGION_SIZE, hashes, count, staying, gone, take_two_avx2);
	return take_many(slice, blocks, region_size, hashes, count, staying, gone, take_two_avx2);
}

__attribute__((target("avx2,popcnt")))
static void
insert_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	slice->bits_set += insert_with_avx2(slice, blocks, region_size, hash);
}

__attribute__((target("avx2,popcnt")))
static size_t
fill_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
		  size_t count, uint64_t *doubtful)
{
	if (has_two_groups(slice, region_size))
	{
		if (region_size == USUAL_REGION_SIZE)
			return fill(slice, blocks, USUAL_REGION_SIZE, hashes, count, doubtful, insert_two_avx2);
		return fill(slice, blocks, region_size, hashes, count, doubtful, insert_two_avx2);
	}
	return fill(slice, blocks, region_size, hashes, count, doubtful, insert_with_avx2);
}

#endif

static void
choose(void)
{
	fav_recent_contains = recent_contains_plain;
	fav_contains_sketched = contains_plain;
	fav_contains_many = contains_many_plain;
	fav_reporting = reporting_plain;
	fav_slice_insert = insert_plain;
	fav_slice_fill = fill_plain;
	fav_slice_take = take_plain;
	fav_slice_take_many = take_many_plain;
#ifdef HAVE_AVX2
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
	{
		fav_recent_contains = recent_contains_avx2;
		fav_contains_sketched = contains_avx2;
		fav_contains_many = contains_many_avx2;
		fav_reporting = reporting_avx2;
		fav_slice_insert = insert_avx2;
		fav_slice_fill = fill_avx2;
		fav_slice_take = take_avx2;
		fav_slice_take_many = take_many_avx2;
	}
#endif
}

static bool
choose_recent_contains(const uint8_t *recent, uint32_t count, uint64_t hash)
{
	choose();
	return fav_recent_contains(recent, count, hash);
}

static bool
choose_contains(const FavFilter *filter, const FavSketch *sketch, uint64_t hash)
{
	choose();
	return fav_contains_sketched(filter, sketch, hash);
}

static void
choose_contains_many(const FavFilter *filter, const FavSketch *sketch, const uint64_t *hashes,
					 size_t count, bool *answers)
{
	choose();
	fav_contains_many(filter, sketch, hashes, count, answers);
}

static uint32_t
choose_reporting(const FavFilter *filter, uint64_t hash, uint32_t enough, uint32_t *first)
{
	choose();
	return fav_reporting(filter, hash, enough, first);
}

static void
choose_insert(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	choose();
	fav_slice_insert(slice, blocks, region_size, hash);
}

static size_t
choose_fill(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
			size_t count, uint64_t *doubtful)
{
	choose();
	return fav_slice_fill(slice, blocks, region_size, hashes, count, doubtful);
}

static int
choose_take(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	choose();
	return fav_slice_take(slice, blocks, region_size, hash);
}

static size_t
choose_take_many(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes, size_t count,
				 uint64_t *staying, size_t *gone)
{
	choose();
	return fav_slice_take_many(slice, blocks, region_size, hashes, count, staying, gone);
}

bool		(*fav_recent_contains) (const uint8_t *recent, uint32_t count,
									uint64_t hash) = choose_recent_contains;
bool		(*fav_contains_sketched) (const FavFilter *filter, const FavSketch *sketch,
									  uint64_t hash) = choose_contains;
void		(*fav_contains_many) (const FavFilter *filter, const FavSketch *sketch,
								  const uint64_t *hashes, size_t count,
								  bool *answers) = choose_contains_many;
uint32_t	(*fav_reporting) (const FavFilter *filter, uint64_t hash, uint32_t enough,
							  uint32_t *first) = choose_reporting;
void		(*fav_slice_insert) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
								 uint64_t hash) = choose_insert;
size_t		(*fav_slice_fill) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
							   const uint64_t *hashes, size_t count,
							   uint64_t *doubtful) = choose_fill;
int			(*fav_slice_take) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
							   uint64_t hash) = choose_take;
size_t		(*fav_slice_take_many) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
									const uint64_t *hashes, size_t count,
									uint64_t *staying, size_t *gone) = choose_take_many;
