/*
 * hashset.h
 *		A growing set of 64-bit hashes: the state of the aggregates.
 *
 * A hash may be added any number of times.  Settle the set before you read it.
 */
#ifndef FAV_HASHSET_H
#define FAV_HASHSET_H

#include "fav.h"

typedef struct FavHashSet
{
	uint64	   *hashes;
	size_t		count;			/* of all hashes; of the distinct ones once it is settled */
	size_t		sorted;			/* length of the prefix that is ascending and unique */
	size_t		capacity;
} FavHashSet;

/* Make an empty set.  Its memory comes from this context, also when it grows. */
extern void fav_hashset_init(FavHashSet *set, MemoryContext context);

/* Make capacity for so many more hashes; or for one more, as cheaply as it can be had. */
extern void fav_hashset_reserve(FavHashSet *set, size_t count);
extern void fav_hashset_grow(FavHashSet *set);

/* Sort the hashes and remove duplicates. */
extern void fav_hashset_settle(FavHashSet *set);

/* Add hashes that are ascending and unique. */
extern void fav_hashset_unite(FavHashSet *set, const uint64 *hashes, size_t count);

static inline void
fav_hashset_add(FavHashSet *set, uint64 hash)
{
	if (unlikely(set->count == set->capacity))
		fav_hashset_grow(set);
	set->hashes[set->count++] = hash;
}

#endif							/* FAV_HASHSET_H */
