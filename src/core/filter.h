/*
 * filter.h
 *		Reading a filter: membership, and what a filter says about itself.
 *
 * A filter is three sets of 64-bit hashes:
 *
 *		recent		up to 128, exact; every add lands here first
 *		slices		a chain of FAV slices, into which recent is flushed when it is full
 *		tombstones	exact hashes that are absent, whatever the slices report
 */
#ifndef FAV_FILTER_H
#define FAV_FILTER_H

#include "format.h"
#include "slice.h"

/*
 * The one definition of membership.  An element is in the filter if its hash is in recent,
 * or if some slice reports it and it has no tombstone.  Arguments are evaluated in order and
 * only as far as needed.
 */
#define FAV_IS_MEMBER(in_recent, is_reported, has_tombstone) \
	((in_recent) || ((is_reported) && !(has_tombstone)))

/* Is the hash in recent? */
static inline bool
fav_in_recent(const FavFilter *filter, uint64_t hash)
{
	return filter->nrecent > 0 && fav_recent_contains(filter->recent, filter->nrecent, hash);
}

/* Does some slice report the hash? */
static inline bool
fav_slices_report(const FavFilter *filter, uint64_t hash)
{
	return fav_find_slice(filter->slices, filter->nslices, filter->params.region_size, hash) !=
		FAV_NO_SLICE;
}

static inline bool
fav_contains(const FavFilter *filter, uint64_t hash)
{
	return FAV_IS_MEMBER(fav_in_recent(filter, hash), fav_slices_report(filter, hash),
						 fav_has_tombstone(filter, hash));
}

/*
 * A bitmap of the recent hashes.  It spares most hashes that are not among them the search.
 */
typedef struct FavRecentBits
{
	uint64_t	words[64];
} FavRecentBits;

static inline void
fav_recent_bits_add(FavRecentBits *bits, uint64_t hash)
{
	bits->words[hash / 64 % 64] |= UINT64_C(1) << hash % 64;
}

/* False: the hash is certainly not in recent. */
static inline bool
fav_recent_bits_may_contain(const FavRecentBits *bits, uint64_t hash)
{
	return bits->words[hash / 64 % 64] >> hash % 64 & 1;
}

extern void fav_recent_bits_init(FavRecentBits *bits, const FavFilter *filter);

/* Prefetch what a probe looks at first, in all slices. */
__attribute__((always_inline))
static inline void
fav_prefetch(const FavFilter *filter, uint64_t hash)
{
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
		fav_slice_prefetch(&filter->slices[i], filter->params.region_size, hash);
}

/* For probing one filter many times.  The filter must stay as it is meanwhile. */
typedef struct FavMatcher
{
	const FavFilter *filter;
	FavRecentBits recent_bits;	/* not set where recent is empty */
} FavMatcher;

static inline void
fav_matcher_init(FavMatcher *matcher, const FavFilter *filter)
{
	matcher->filter = filter;
	if (filter->nrecent > 0)
		fav_recent_bits_init(&matcher->recent_bits, filter);
}

/* Is the hash in recent? */
static inline bool
fav_matcher_in_recent(const FavMatcher *matcher, uint64_t hash)
{
	return matcher->filter->nrecent > 0 &&
		fav_recent_bits_may_contain(&matcher->recent_bits, hash) &&
		fav_in_recent(matcher->filter, hash);
}

static inline bool
fav_matcher_contains(const FavMatcher *matcher, uint64_t hash)
{
	return FAV_IS_MEMBER(fav_matcher_in_recent(matcher, hash),
						 fav_slices_report(matcher->filter, hash),
						 fav_has_tombstone(matcher->filter, hash));
}

/* Probe many hashes.  Their cache misses overlap. */
extern void fav_matcher_contains_many(const FavMatcher *matcher, const uint64_t *hashes,
									  size_t count, bool *answers);

/*
 * What a filter says about itself
 */

typedef struct FavMeasure
{
	double		fill;			/* share of the data bits that are set */
	double		error;			/* false positives, exact for these bits */
	double		clean_regions;	/* share of the regions without a collision */
	double		deletable;		/* share of removals that clear bits; 0 for a stack */
} FavMeasure;

/* Of one slice, and of all together (without slices 0, 0, 1, 1).  A pass over the blocks. */
extern void fav_measure_slice(const FavFilter *filter, uint32_t number, FavMeasure *measure);
extern void fav_measure(const FavFilter *filter, FavMeasure *measure);

/* The number of elements: exact without slices, an estimate with them. */
extern uint64_t fav_count(const FavFilter *filter);

/* The periods of the recent hashes, in their order. */
extern void fav_recent_periods(const FavFilter *filter, int32_t periods[FAV_RECENT_LIMIT]);

/* The oldest period of an element, or FAV_NO_PERIOD. */
extern int32_t fav_oldest(const FavFilter *filter);

/*
 * Leave out what is forgotten in period `now`, for a reader.  The slices that remain keep their
 * order.
 */
extern void fav_forget(FavFilter *filter, int32_t now);

/* Size relative to that of a fresh filter with the same elements. */
extern double fav_bloat(const FavFilter *filter);

/*
 * Should the filter be rebuilt?  True when its error exceeds the promise, or when it is, or is
 * about to become, three times as large as a fresh one.
 */
extern bool fav_needs_rebuild(const FavFilter *filter);

#endif							/* FAV_FILTER_H */
