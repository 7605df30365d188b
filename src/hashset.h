/*
 * hashset.h
 *		A growing set of 64-bit hashes: the state of the aggregates.
 */
#ifndef FAV_HASHSET_H
#define FAV_HASHSET_H

#include "fav.h"

typedef struct FavHashSet
{
	uint64	   *hashes;			/* the first `sorted` ascend and are unique */
	size_t		count;
	size_t		sorted;
	size_t		room;
} FavHashSet;

/* Sort and remove duplicates. */
extern void fav_hashset_settle(FavHashSet *set);

/* Add all of another set, which is settled by this, too. */
extern void fav_hashset_merge(FavHashSet *set, FavHashSet *other, MemoryContext context);

/* Make room for one more; what is added may be there already. */
extern void fav_hashset_grow(FavHashSet *set, MemoryContext context);

static inline void
fav_hashset_add(FavHashSet *set, uint64_t hash, MemoryContext context)
{
	if (unlikely(set->count == set->room))
		fav_hashset_grow(set, context);
	set->hashes[set->count++] = hash;
}

#endif							/* FAV_HASHSET_H */
