/*
 * state.h
 *		Parameters of a filter to be, and the hashes of its elements: the state of the
 *		aggregates, and the bytes as which it travels.
 *
 * The bytes may come from another process or from another server, so they have a version and
 * are little endian on every machine:
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
#ifndef FAV_STATE_H
#define FAV_STATE_H

#include "aggregate/hashset.h"

typedef struct FavAggState
{
	FavParams	params;			/* capacity 0: none was given */
	FavHashSet	set;
} FavAggState;

/* Make a state without hashes.  All its memory comes from this context. */
extern void fav_state_init(FavAggState *state, const FavParams *params, MemoryContext context);

/* Add the hashes of another state, which is settled for that. */
extern void fav_state_unite(FavAggState *state, FavAggState *other);

/* The bytes of a state whose set is settled: how many; write them, and return their end. */
extern size_t fav_state_size(const FavAggState *state);
extern uint8_t *fav_state_write(const FavAggState *state, uint8_t *to);

/*
 * Read a state of at most `size` bytes and set *used to their number.  Trusts nothing:
 * returns what is wrong with the bytes, or NULL.
 */
extern const char *fav_state_read(FavAggState *state, const uint8_t *bytes, size_t size,
								  size_t *used);

#endif							/* FAV_STATE_H */
