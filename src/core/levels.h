/*
 * levels.h
 *		Three filters that answer as one: the levels of an attached filter.
 *
 *		base		big, rarely written
 *		middle		what changed since base was built, but for the latest changes
 *		recent		the latest changes, exact: up to 128 hashes, added or excluded
 *
 * An upper level overrides the lower ones.  An element is reported if recent says that it
 * was added; or else, unless recent or middle excludes it, if middle or base reports it.
 *
 * A change writes recent alone.  When recent is full it is pushed into middle.  When
 * middle is full, base is built anew: from the elements themselves, without tombstones, or from
 * a log of the changes if nobody has the elements (a sink).  So a write costs what it changes, as
 * in an LSM tree.  No bit of middle is ever cleared, and of base only by a sink.
 *
 * Any level may be missing (NULL).  In a table, base and middle that are missing are the short form
 * of the empty filter.
 */
#ifndef FAV_LEVELS_H
#define FAV_LEVELS_H

#include "editor.h"

/*
 * The shares of the error rate.  A base is never chained, so its only slice gets most of
 * the rate.  The rest covers slices of a few blocks, which may err a tenth more than they
 * are sized for.
 */
#define FAV_BASE_ERROR_SHARE	0.8
#define FAV_MIDDLE_ERROR_SHARE	0.1

typedef struct FavLevels
{
	const FavFilter *base;		/* NULL: none; likewise below */
	const FavFilter *middle;
	const FavFilter *recent;
} FavLevels;

/*
 * The one definition of the membership of levels.  The levels below one are to it what slices are
 * to recent hashes within a filter.  Arguments are evaluated in order and only as far as needed:
 * tombstones are searched only if a lower level reports the element, which is rare.
 */
#define FAV_IS_BELOW_RECENT(in_middle, in_base, middle_excludes) \
	FAV_IS_MEMBER(in_middle, in_base, middle_excludes)
#define FAV_IS_IN_LEVELS(in_recent, is_below, recent_excludes) \
	FAV_IS_MEMBER(in_recent, is_below, recent_excludes)

/* The capacity of middle, in hashes added or excluded, above a base of this many elements. */
extern uint64_t fav_middle_capacity(uint64_t base_elements);

/* The number of hashes in middle. */
static inline uint64_t
fav_middle_count(const FavFilter *middle)
{
	return middle->elements + middle->nrecent + middle->ntombstones;
}

/*
 * Add an element to recent or middle.  If it has a tombstone, it is enough to drop that: a
 * level below, or the slices of this level, report the element.
 */
extern FavStatus fav_levels_add(FavEditor *level, uint64_t hash);

/* Move all hashes of recent into middle, and flush it. */
extern FavStatus fav_levels_push(FavEditor *middle, const FavFilter *recent);

/*
 * The levels of a dated filter forget what is too old in the newest period of all.  Call this
 * before they are read; base and middle may be NULL.
 */
extern void fav_levels_forget(FavFilter *base, FavFilter *middle, FavFilter *recent);

/*
 * One filter that contains what the three levels contain: slices are chained and lists joined.
 * Removing from it clears no bit (FAV_FLAG_STACKED), because an element that a lower level reports
 * by chance was not added to it.
 *
 * The result borrows blocks from the levels; the caller frees *tombstones.  FAV_MISMATCH if the
 * levels differ in seed, region size, kind or keep, or if recent has slices or another level has
 * recent hashes, which ours never have.
 */
extern FavStatus fav_levels_stack(const FavLevels *levels, FavFilter *stack, uint8_t **tombstones);

#endif							/* FAV_LEVELS_H */
