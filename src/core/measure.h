/*
 * measure.h
 *		What a filter says about itself: how much it holds, how full it is, how
 *		well it can delete, whether it wants a rebuild.
 */
#ifndef FAV_MEASURE_H
#define FAV_MEASURE_H

#include "filter.h"

typedef struct FavSliceMeasure
{
	double		fill;			/* share of the data bits that are set */
	double		error;			/* false positives, exact for these bits */
	double		clean_regions;	/* share of the regions without a collision */
	double		deletable;		/* share of deletes that clear a bit */
} FavSliceMeasure;

typedef struct FavMeasure
{
	double		fill;			/* all of these over all slices; */
	double		error;			/* without slices 0, 0, 1, 1 */
	double		clean_regions;
	double		deletable;
} FavMeasure;

/* Both take a pass over the blocks. */
extern void fav_measure_slice(const FavFilter *filter, uint32_t number, FavSliceMeasure *measure);
extern void fav_measure(const FavFilter *filter, FavMeasure *measure);

/* The rest reads only the head, but for the few recent hashes of fav_count(). */

/* How many elements: exact without slices, an estimate with. */
extern uint64_t fav_count(const FavFilter *filter);

/* Size now, relative to that of a fresh filter with the same elements. */
extern double fav_bloat(const FavFilter *filter);

/*
 * Has churn (or a union) worn it out?  True when the error exceeds the promise,
 * or when it is, or is about to become, three times as large as a fresh one.
 */
extern bool fav_needs_rebuild(const FavFilter *filter);

#endif							/* FAV_MEASURE_H */
