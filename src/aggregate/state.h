/*
 * state.h
 *		The state of the aggregates: the parameters of the future filter and the hashes of
 *		its elements.  Also its serialized form.
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
#ifndef FAV_STATE_H
#define FAV_STATE_H

#include "aggregate/hashset.h"

typedef struct FavAggState
{
	FavParams	params;			/* capacity 0: not given */
	FavHashSet	set;
} FavAggState;

/* Make a state without hashes.  All its memory comes from this context. */
extern void fav_state_init(FavAggState *state, const FavParams *params, MemoryContext context);

/* Add the hashes of another state.  Settles the other state. */
extern void fav_state_unite(FavAggState *state, FavAggState *other);

/* The serialized size of a settled state. */
extern size_t fav_state_size(const FavAggState *state);

/* Serialize a settled state.  Returns the end of its bytes. */
extern uint8_t *fav_state_write(const FavAggState *state, uint8_t *to);

/*
 * Read a serialized state of at most `size` bytes and set *used to its size.  The bytes are not
 * trusted.  Returns NULL, or the detail of an error message if they are invalid.
 */
extern const char *fav_state_read(FavAggState *state, const uint8_t *bytes, size_t size,
								  size_t *used);

#endif							/* FAV_STATE_H */
