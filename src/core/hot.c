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

typedef bool (*Contains) (const FavAsker *asker, uint64_t hash);

/* Is the hash there, which a slice reports? */
static NOINLINE bool
contains_reported(const FavFilter *filter, uint64_t hash)
{
	return !fav_has_tombstone(filter, hash) ||
		fav_recent_contains(filter->recent, filter->nrecent, hash);
}

/* Is the hash there, which no slice reports, but the sketch? */
static NOINLINE bool
contains_sketched(const FavFilter *filter, uint64_t hash)
{
	return fav_recent_contains(filter->recent, filter->nrecent, hash);
}

/*
 * One slice is what aggregates and rebuilds make, two groups are what error rates from 5 % to
 * 0.1 % take, and the region size is hardly ever another than the default.
 */
static ALWAYS_INLINE bool
is_usual(const FavFilter *filter)
{
	return filter->nslices == 1 && filter->params.region_size == USUAL_REGION_SIZE &&
		filter->slices[0].k - FAV_LANE_WORDS - 1 < FAV_LANE_WORDS;
}

static ALWAYS_INLINE const FavGroupWords *
second_words(const FavFilter *filter)
{
	return &group_words[filter->slices[0].k - FAV_LANE_WORDS - 1];
}

/* For these, no loop. */
static ALWAYS_INLINE bool
usual_reports(const uint8_t *blocks, uint64_t nblocks, const FavGroupWords *words, uint64_t hash,
			  LaneHasAll has_all, LaneHasSome has_some)
{
	const uint8_t *block = blocks + ((hash >> 32) * nblocks >> 32) * fav_block_bytes(USUAL_REGION_SIZE);
	LanePair	pair = lane_pair(hash, USUAL_REGION_SIZE);

	return has_all(block + lane_one(pair), fav_probe_product(hash, 0)) &&
		has_some(block + lane_two(pair), fav_probe_product(hash, 1), words);
}

/* One question to any filter. */
static ALWAYS_INLINE bool
contains(const FavFilter *filter, uint64_t hash, LaneHasAll has_all, LaneHasSome has_some)
{
	uint32_t	which;
	bool		reported;

	if (is_usual(filter))
		reported = usual_reports(filter->slices[0].blocks, filter->slices[0].nblocks, second_words(filter), hash,
								 has_all, has_some);
	else
		reported = count_reporting(filter, hash, 1, &which, has_all, has_some) > 0;
	if (reported)
		return filter->ntombstones == 0 || contains_reported(filter, hash);
	return filter->nrecent > 0 && fav_recent_contains(filter->recent, filter->nrecent, hash);
}

/*
 * Many questions, one by one: is the hash there, knowing whether a slice reports it?  What
 * few of them need is left to functions that are called last, so that no register is saved.
 */
static ALWAYS_INLINE bool
contains_if(bool reported, const FavAsker *asker, uint64_t hash)
{
	if (reported)
		return asker->none_deleted || contains_reported(asker->filter, hash);
	return fav_sketch_may_contain(&asker->sketch, hash) && contains_sketched(asker->filter, hash);
}

static ALWAYS_INLINE bool
contains_any(const FavAsker *asker, uint64_t hash, LaneHasAll has_all, LaneHasSome has_some)
{
	uint32_t	which;

	return contains_if(count_reporting(asker->filter, hash, 1, &which, has_all, has_some) > 0, asker, hash);
}

static ALWAYS_INLINE bool
contains_usual(const FavAsker *asker, uint64_t hash, LaneHasAll has_all, LaneHasSome has_some)
{
	return contains_if(usual_reports(asker->blocks, asker->nblocks, asker->second_words, hash, has_all, has_some),
					   asker, hash);
}

/*
 * Each question has the processor wait for memory once, if the slice is large.  So what
 * a question will look at is fetched while those before it are answered.
 */
static ALWAYS_INLINE void
fetch_first_lane(const uint8_t *blocks, uint64_t nblocks, uint32_t region_size, uint64_t hash)
{
	__builtin_prefetch(blocks + ((hash >> 32) * nblocks >> 32) * fav_block_bytes(region_size) +
					   (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES);
}

static ALWAYS_INLINE bool
is_far(const FavSlice *slice, uint32_t region_size)
{
	return fav_slice_bytes(slice, region_size) >= PREFETCH_FROM;
}

/* Any filter; `contains` is contains_any. */
static ALWAYS_INLINE void
contains_many_any(const FavAsker *asker, const uint64_t *hashes, size_t count, bool *answers, Contains contains)
{
	const FavFilter *filter = asker->filter;
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
				fetch_first_lane(filter->slices[i].blocks, filter->slices[i].nblocks, region_size, hashes[j]);
		if (j >= ahead)
			answers[j - ahead] = contains(asker, hashes[j - ahead]);
	}
}

static ALWAYS_INLINE void
contains_many_usual(const FavAsker *asker, const uint64_t *hashes, size_t count, bool *answers,
					LaneHasAll has_all, LaneHasSome has_some)
{
	bool		far = is_far(&asker->filter->slices[0], USUAL_REGION_SIZE);
	size_t		fetched;
	size_t		j;

	for (fetched = far ? 0 : count; fetched < count && fetched < FETCHED_AHEAD; fetched++)
		fetch_first_lane(asker->blocks, asker->nblocks, USUAL_REGION_SIZE, hashes[fetched]);
	for (j = 0; fetched < count; j++, fetched++)
	{
		fetch_first_lane(asker->blocks, asker->nblocks, USUAL_REGION_SIZE, hashes[fetched]);
		answers[j] = contains_usual(asker, hashes[j], has_all, has_some);
	}
	for (; j < count; j++)
		answers[j] = contains_usual(asker, hashes[j], has_all, has_some);
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

static bool
contains_plain(const FavFilter *filter, uint64_t hash)
{
	return contains(filter, hash, has_all, has_some);
}

static bool
contains_any_plain(const FavAsker *asker, uint64_t hash)
{
	return contains_any(asker, hash, has_all, has_some);
}

static bool
contains_usual_plain(const FavAsker *asker, uint64_t hash)
{
	return contains_usual(asker, hash, has_all, has_some);
}

static void
contains_many_any_plain(const FavAsker *asker, const uint64_t *hashes, size_t count, bool *answers)
{
	contains_many_any(asker, hashes, count, answers, contains_any_plain);
}

static void
contains_many_usual_plain(const FavAsker *asker, const uint64_t *hashes, size_t count, bool *answers)
{
	contains_many_usual(asker, hashes, count, answers, has_all, has_some);
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
static bool
contains_avx2(const FavFilter *filter, uint64_t hash)
{
	return contains(filter, hash, has_all_avx2, has_some_avx2);
}

__attribute__((target("avx2")))
static bool
contains_any_avx2(const FavAsker *asker, uint64_t hash)
{
	return contains_any(asker, hash, has_all_avx2, has_some_avx2);
}

__attribute__((target("avx2")))
static bool
contains_usual_avx2(const FavAsker *asker, uint64_t hash)
{
	return contains_usual(asker, hash, has_all_avx2, has_some_avx2);
}

__attribute__((target("avx2")))
static void
contains_many_any_avx2(const FavAsker *asker, const uint64_t *hashes, size_t count, bool *answers)
{
	contains_many_any(asker, hashes, count, answers, contains_any_avx2);
}

__attribute__((target("avx2")))
static void
contains_many_usual_avx2(const FavAsker *asker, const uint64_t *hashes, size_t count, bool *answers)
{
	contains_many_usual(asker, hashes, count, answers, has_all_avx2, has_some_avx2);
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
	fav_contains = contains_plain;
	fav_reporting = reporting_plain;
#ifdef HAVE_AVX2
	if (fav_have_avx2())
	{
		fav_recent_contains = recent_contains_avx2;
		fav_contains = contains_avx2;
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
choose_contains(const FavFilter *filter, uint64_t hash)
{
	choose_questions();
	return fav_contains(filter, hash);
}

static uint32_t
choose_reporting(const FavFilter *filter, uint64_t hash, uint32_t enough, uint32_t *first)
{
	choose_questions();
	return fav_reporting(filter, hash, enough, first);
}

bool		(*fav_recent_contains) (const uint8_t *recent, uint32_t count,
									uint64_t hash) = choose_recent_contains;
bool		(*fav_contains) (const FavFilter *filter, uint64_t hash) = choose_contains;
uint32_t	(*fav_reporting) (const FavFilter *filter, uint64_t hash, uint32_t enough,
							  uint32_t *first) = choose_reporting;

/* Which code answers the questions to this filter. */
static void
choose_answers(FavAsker *asker, bool usual, bool avx2)
{
	asker->contains = usual ? contains_usual_plain : contains_any_plain;
	asker->contains_many = usual ? contains_many_usual_plain : contains_many_any_plain;
#ifdef HAVE_AVX2
	if (avx2)
	{
		asker->contains = usual ? contains_usual_avx2 : contains_any_avx2;
		asker->contains_many = usual ? contains_many_usual_avx2 : contains_many_any_avx2;
	}
#endif
	(void) avx2;
}

void
fav_asker_init(FavAsker *asker, const FavFilter *filter)
{
	bool		usual = is_usual(filter);
	bool		avx2 = false;
	uint32_t	i;

#ifdef HAVE_AVX2
	avx2 = fav_have_avx2();
#endif
	choose_answers(asker, usual, avx2);
	asker->filter = filter;
	asker->none_deleted = filter->ntombstones == 0;
	asker->blocks = NULL;
	asker->nblocks = 0;
	asker->second_words = NULL;
	if (usual)
	{
		asker->blocks = filter->slices[0].blocks;
		asker->nblocks = filter->slices[0].nblocks;
		asker->second_words = second_words(filter);
	}
	fav_sketch_clear(&asker->sketch);
	for (i = 0; i < filter->nrecent; i++)
		fav_sketch_add(&asker->sketch, fav_load64(filter->recent + 8 * i));
}
