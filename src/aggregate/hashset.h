/*
 * hashset.h
 *		A growing set of 64-bit hashes, and the state of the aggregates: such a set and the
 *		parameters of the future filter.
 */
#ifndef FAV_HASHSET_H
#define FAV_HASHSET_H

#include "fav.h"

/* A hash may be added any number of times.  Sort the set before reading it. */
typedef struct FavHashSet
{
	uint64	   *hashes;
	size_t		count;			/* all hashes; once the set is sorted, the distinct ones */
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
extern void fav_hashset_sort(FavHashSet *set);

/* Add hashes that are ascending and unique. */
extern void fav_hashset_unite(FavHashSet *set, const uint64 *hashes, size_t count);

static inline void
fav_hashset_add(FavHashSet *set, uint64 hash)
{
	if (unlikely(set->count == set->capacity))
		fav_hashset_grow(set);
	set->hashes[set->count++] = hash;
}

/*
 * The state of an aggregate.
 *
 * A serialized state may come from another process or another server, so it has a version and
 * is little endian on every machine:
 *
 *		version			u8
 *		kind			u8, FavKind
 *		region size		u8
 *		reserved		u8, always zero
 *		capacity		u64
 *		seed			u64
 *		error rate		IEEE 754 double
 *		count			u64
 *		hashes			u64 each, ascending and unique
 */
typedef struct FavAggState
{
	FavParams	params;			/* capacity 0: not given */
	FavHashSet	set;
} FavAggState;

/* Make a state without hashes.  All its memory comes from this context. */
extern void fav_state_init(FavAggState *state, const FavParams *params, MemoryContext context);

/* Add the hashes of another state, which this sorts. */
extern void fav_state_unite(FavAggState *state, FavAggState *other);

/* The serialized size of a state whose set is sorted. */
extern size_t fav_state_size(const FavAggState *state);

/* Serialize such a state.  Returns the end of its bytes. */
extern uint8_t *fav_state_write(const FavAggState *state, uint8_t *to);

/*
 * Read a serialized state of at most `size` bytes and set *used to its size.  The bytes are not
 * trusted.  Returns NULL, or the detail of an error message if they are invalid.
 */
extern const char *fav_state_read(FavAggState *state, const uint8_t *bytes, size_t size,
								  size_t *used);

#endif							/* FAV_HASHSET_H */
