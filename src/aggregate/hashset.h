/*
 * hashset.h
 *		A growing set of 64-bit hashes: the state of the aggregates.
 *
 * A zeroed one is empty.  What is added may be there already; settle (or compact) before
 * you look at it.
 */
#ifndef FAV_HASHSET_H
#define FAV_HASHSET_H

#include "fav.h"

#include "aggregate/hashpart.h"

typedef struct FavHashBuckets FavHashBuckets;

typedef struct FavHashSet
{
	uint64	   *hashes;			/* few of them: the first `sorted` ascend and are unique */
	size_t		count;			/* of all hashes, once it is settled */
	size_t		sorted;
	size_t		room;
	FavHashBuckets *many;		/* NULL as long as they are few */
} FavHashSet;

typedef struct FavHashBucket
{
	uint64	   *next;			/* where the next hash goes in the last chunk */
	uint64	   *end;			/* of the last chunk */
	uint64	  **chunks;
	uint32		nchunks;
	uint32		room;			/* for pointers to chunks */
	size_t		sorted;			/* so many of the first ascend and are unique */
} FavHashBucket;

/* Hashes that are dealt out at once, when the buckets are in the processor's cache. */
#define FAV_PENDING_MAX		512

struct FavHashBuckets
{
	size_t		npending;
	uint64		pending[FAV_PENDING_MAX];	/* not dealt out yet */
	MemoryContext context;
	size_t		nchunks;		/* of all buckets */
	FavHashPart *parts;			/* from other sets, not dealt out */
	size_t		nparted;		/* hashes in these */
	size_t		limit;			/* with so many chunks it is time to look for duplicates */
	uint64	   *slab;			/* memory for further chunks, */
	size_t		slab_left;		/* so many */
	uint64	   *unused;			/* chunks that were given back, each points to the next */
	FavHashBucket buckets[FAV_BUCKETS];
};

/* Make room for one more, where fav_hashset_add() puts it. */
extern void fav_hashset_grow(FavHashSet *set, MemoryContext context);

/* Remove duplicates, sort and count. */
extern void fav_hashset_settle(FavHashSet *set);

/* The same, but where duplicates are few they may stay (and count), and no order is promised. */
extern void fav_hashset_compact(FavHashSet *set);

/* The hashes of a settled or compact set: as bytes, of this size, or where they are. */
extern size_t fav_hashset_stored_size(const FavHashSet *set);
extern void fav_hashset_store(const FavHashSet *set, uint8_t *to);
typedef struct FavSpan
{
	const uint64_t *hashes;
	size_t		count;
} FavSpan;

extern FavSpan *fav_hashset_spans(const FavHashSet *set, size_t *nspans);

/* Add what another set stored, or the other set (which becomes compact). */
extern void fav_hashset_merge(FavHashSet *set, const uint8_t *stored, size_t size, MemoryContext context);
extern void fav_hashset_unite(FavHashSet *set, FavHashSet *other, MemoryContext context);

/* The same for a part of `size` bytes, which must stay as long as the set. */
extern void fav_hashset_lend(FavHashSet *set, FavHashPart *part, size_t size, MemoryContext context);

/*
 * Build a filter from the set.  Its capacity is chosen by what was wanted and by how
 * many there are; raises an error if it cannot be built.
 */
typedef uint64 (*FavCapacity) (uint64 wanted, uint64 count);

extern void fav_hashset_build(FavHashSet *set, const FavParams *wanted, FavCapacity capacity,
							  FavEditor *editor);

static inline void
fav_hashset_add(FavHashSet *set, uint64 hash, MemoryContext context)
{
	if (set->many == NULL)
	{
		if (unlikely(set->count == set->room))
			fav_hashset_grow(set, context);
		if (likely(set->many == NULL))
		{
			set->hashes[set->count++] = hash;
			return;
		}
	}
	if (unlikely(set->many->npending == FAV_PENDING_MAX))
		fav_hashset_grow(set, context);
	set->many->pending[set->many->npending++] = hash;
}

#endif							/* FAV_HASHSET_H */
