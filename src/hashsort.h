/*
 * hashsort.h
 *		Sorting 64-bit hashes, which are spread evenly unless somebody chose them.
 *		Takes time in proportion to their number, whatever they are, and looks
 *		for a cancel.
 */
#ifndef FAV_HASHSORT_H
#define FAV_HASHSORT_H

#include "fav.h"

/*
 * Sort hashes whose bits from `bits` upwards are all the same.  `scratch` has room
 * for as many.  Both arrays are overwritten; returns the one that has the result.
 */
extern uint64 *fav_sort_hashes(uint64 *hashes, size_t count, int bits, uint64 *scratch);

/* Copy without the duplicates of a sorted list, which may be copied onto itself. */
extern size_t fav_copy_unique(uint64 *to, const uint64 *from, size_t count);

#endif							/* FAV_HASHSORT_H */
