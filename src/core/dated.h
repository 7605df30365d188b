/*
 * dated.h
 *		Filters that forget.
 *
 * A dated filter keeps an element for `keep` periods.  Periods are numbers that the caller
 * counts, for example days.  An element that was last added in period p is found up to
 * period p + keep, and forgotten at most max(1, keep / 8) periods later.
 *
 * Recent hashes know their periods.  Slices know the first and the last period of their elements,
 * and are dropped whole.  The periods are divided into spans of max(1, keep / 8) + 1, counted
 * from period 0.  All elements of a slice are of one span, so that they are forgotten in time.
 * At most nine spans are alive at once.
 *
 * In a filter that is not dated every period is 0, and all slices are of span 0.
 */
#ifndef FAV_DATED_H
#define FAV_DATED_H

#include "editor.h"

/* How many periods later than promised an element may be forgotten. */
static inline uint32_t
fav_delay(uint32_t keep)
{
	return keep < 16 ? 1 : keep / 8;
}

static inline int64_t
fav_span(const FavFilter *filter, int32_t period)
{
	int64_t		width = (int64_t) fav_delay(filter->params.keep) + 1;

	if (!fav_is_dated(filter))
		return 0;
	/* rounded down; no sum or product here exceeds 64 bits */
	return period >= 0 ? period / width : -((-(int64_t) period + width - 1) / width);
}

/* The span of a slice. */
static inline int64_t
fav_slice_span(const FavFilter *filter, uint32_t i)
{
	return fav_span(filter, filter->slices[i].last);
}

/* How many spans may be alive at once: those that `keep` + 1 periods in a row can touch. */
static inline uint32_t
fav_max_spans(uint32_t keep)
{
	uint64_t	delay = fav_delay(keep);

	return (uint32_t) ((keep + delay) / (delay + 1) + 1);
}

/* The error of the first slice of a span. */
static inline double
fav_first_error(double error_rate, uint32_t keep)
{
	return error_rate * 0.875 / fav_max_spans(keep);
}

/* Are elements that were last added in `period` forgotten in period `now`? */
static inline bool
fav_is_too_old(const FavFilter *filter, int32_t period, int32_t now)
{
	return fav_is_dated(filter) && (int64_t) period + filter->params.keep < now;
}

static inline int32_t
fav_run_period(const FavFilter *filter, uint32_t run)
{
	return (int32_t) fav_load32(filter->runs + run * FAV_RUN_SIZE + FAV_RUN_AT_PERIOD);
}

static inline uint32_t
fav_run_count(const FavFilter *filter, uint32_t run)
{
	return filter->runs[run * FAV_RUN_SIZE + FAV_RUN_AT_COUNT];
}

/* A slice gets an element of this period, which is of its span. */
static inline void
fav_widen_periods(FavSlice *slice, int32_t period)
{
	if (slice->first > period)
		slice->first = period;
	if (slice->last < period)
		slice->last = period;
}

/* The periods of the recent hashes, in their order. */
extern void fav_recent_periods(const FavFilter *filter, int32_t periods[FAV_RECENT_LIMIT]);

/* The oldest period of an element, or FAV_NO_PERIOD. */
extern int32_t fav_oldest(const FavFilter *filter);

/*
 * Leave out what is forgotten in period `now`, for a reader.  The slices that remain keep their
 * order.
 */
extern void fav_forget(FavFilter *filter, int32_t now);

/*
 * Drop what is forgotten in period `now`, and the tombstones that are not needed any more.  Nothing
 * changes if nothing is too old.
 */
extern FavStatus fav_editor_expire(FavEditor *editor, int32_t now);

/* The same, and the filter remembers that it is `now`, even if nothing is too old. */
extern FavStatus fav_editor_advance(FavEditor *editor, int32_t now);

/*
 * Add an element in a period, which must not be FAV_NO_PERIOD.  A new period makes the filter
 * forget.  An element of an earlier period keeps that, unless it has a later one already.  If it
 * would be forgotten by now, nothing happens.
 *
 * A filter that is not dated ignores the period.
 */
extern FavStatus fav_editor_add_at(FavEditor *editor, uint64_t hash, int32_t period);
extern FavStatus fav_editor_add_many_at(FavEditor *editor, const uint64_t *hashes, size_t count,
										int32_t period);

#endif							/* FAV_DATED_H */
