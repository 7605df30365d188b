/*
 * hashset.h
 *		A growing set of 64-bit hashes: the state of the aggregates.
 *
 * A hash may be added any number of times.  Settle the set before reading it.
 */
#ifndef FAV_HASHSET_H
#define FAV_HASHSET_H

#include "fav.h"

typedef struct FavHashSet
{
	uint64	   *hashes;
	size_t		count;			/* all hashes; once the set is settled, the distinct ones */
	size_t		sorted;			/* length of the prefix that is ascending and unique */
	size_t		capacity;
} FavHashSet;

/* Make an empty set.  All its memory comes from this context. */
extern void fav_hashset_init(FavHashSet *set, MemoryContext context);

/* Make capacity for this many more hashes. */
extern void fav_hashset_reserve(FavHashSet *set, size_t count);

/* Make capacity for at least one more hash, by removing duplicates or by growing. */
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
