/*
 * hot.c
 *		Where the time goes: the two questions behind every contains, add and del (is
 *		a hash among the recent ones, and which slices report it).  With change.c the one piece
 *		of the core that is written for speed first.
 *
 * Each is here with and without AVX2, and the first call chooses.
 *
 * Slices are asked for one group of bits after the other.  Of the elements that
 * are not there all but some 3 % end with the first group, which the processor
 * predicts well; a branch for each bit it could not.
 */
#include "lanes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* A slice of so many bytes may not be in the processor's nearest caches. */
#define PREFETCH_FROM	(128 * 1024)

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

#ifdef HAVE_AVX2

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

#endif

static void
choose_questions(void)
{
	fav_recent_contains = recent_contains_plain;
	fav_contains_sketched = contains_plain;
	fav_contains_many = contains_many_plain;
	fav_reporting = reporting_plain;
#ifdef HAVE_AVX2
	if (fav_have_avx2())
	{
		fav_recent_contains = recent_contains_avx2;
		fav_contains_sketched = contains_avx2;
		fav_contains_many = contains_many_avx2;
		fav_reporting = reporting_avx2;
	}
#endif
}

static bool
choose_recent_contains(const uint8_t *recent, uint32_t count, uint64_t hash)
{
	choose_questions();
	return fav_recent_contains(recent, count, hash);
}

static bool
choose_contains(const FavFilter *filter, const FavSketch *sketch, uint64_t hash)
{
	choose_questions();
	return fav_contains_sketched(filter, sketch, hash);
}

static void
choose_contains_many(const FavFilter *filter, const FavSketch *sketch, const uint64_t *hashes,
					 size_t count, bool *answers)
{
	choose_questions();
	fav_contains_many(filter, sketch, hashes, count, answers);
}

static uint32_t
choose_reporting(const FavFilter *filter, uint64_t hash, uint32_t enough, uint32_t *first)
{
	choose_questions();
	return fav_reporting(filter, hash, enough, first);
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
