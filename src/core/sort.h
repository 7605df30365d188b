/*
 * sort.h
 *		Sorting 64-bit hashes.
 *
 * Hashes are spread evenly, unless somebody chose them.  Sorting takes time in proportion to
 * their number in either case, and calls fav_pause() now and then.
 */
#ifndef FAV_SORT_H
#define FAV_SORT_H

#include "format.h"

/*
 * Sort hashes that differ only in their lowest `bits` bits.  `scratch` is as long as `hashes`.
 * Both arrays are overwritten; returns the one that has the result.
 */
extern uint64_t *fav_sort_hashes(uint64_t *hashes, size_t count, int bits, uint64_t *scratch);

/* Copy without the duplicates of a sorted list, which may be copied onto itself. */
extern size_t fav_copy_unique(uint64_t *to, const uint64_t *from, size_t count);

#endif							/* FAV_SORT_H */
