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

/*
 * Drop what is forgotten in period `now`, and the tombstones that are not needed any more.  Nothing
 * changes if nothing is too old.
 */
extern FavStatus fav_editor_expire(FavEditor *editor, int32_t now);

/* The same, and the filter remembers that it is `now`, even if nothing is too old. */
extern FavStatus fav_editor_advance(FavEditor *editor, int32_t now);

#endif							/* FAV_DATED_H */
