/*
 * slice.h
 *		One FAV slice: an array of blocks of bits with a collision tracker.
 *
 * A block is region_size data lanes of 256 bits and one tracker lane.  Column j
 * of the data lanes is region j; bit j of the tracker lane says that some bit of
 * the region was wanted by a second element.  All that an element touches is in
 * one block.
 *
 * The invariant on which everything rests: a bit in an unmarked region belongs
 * to at most one element of the slice.
 */
#ifndef FAV_SLICE_H
#define FAV_SLICE_H

#include "format.h"
#include "hash.h"

/* Are all k bits of the hash set in this block? */
extern bool fav_block_contains(const uint8_t *block, uint32_t region_size, uint32_t k,
							   uint64_t hash);

/* How many of the k bits are clear. */
extern uint32_t fav_block_missing(const uint8_t *block, uint32_t region_size, uint32_t k,
								  uint64_t hash);

/* Where the block of a hash begins, counted from the slice's first block. */
static inline uint64_t
fav_slice_block_offset(const FavSlice *slice, uint32_t region_size, uint64_t hash)
{
	return (uint64_t) fav_hash_block(hash, slice->nblocks) * fav_block_bytes(region_size);
}

static inline bool
fav_slice_has_room(const FavSlice *slice)
{
	return slice->bits_set < slice->bits_limit;
}

/*
 * The probability that an element that was never added finds all its k bits set in
 * this block, given how full each lane is.
 */
extern double fav_block_error(const uint8_t *block, uint32_t region_size, uint32_t k);

/*
 * The three changes.  `blocks` is the writable memory that slice->blocks points
 * to; slice->bits_set is kept true.
 */

/* Add an element: set its clear bits, mark the regions of those already set. (change.c) */
extern void (*fav_slice_insert) (FavSlice *slice, uint8_t *blocks,
								 uint32_t region_size, uint64_t hash);

/*
 * Add many, all different.  An element whose bits were all set already goes to
 * `doubtful`, which has room for all: it may have been there twice.  Returns how
 * many these are. (change.c)
 */
extern size_t (*fav_slice_fill) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
								 const uint64_t *hashes, size_t count, uint64_t *doubtful);

/*
 * Hold on to bits that are all set already: mark all its regions, so that no
 * other element's delete clears them.
 */
extern void fav_slice_claim(FavSlice *slice, uint8_t *blocks,
							uint32_t region_size, uint64_t hash);

/*
 * Take an element out whose only possible home is this slice: clear its bits in unmarked
 * regions.  FAV_NOT_REPORTED: the slice does not report it.  Otherwise returns how many
 * such bits it had; if these are too few (fav_stays()) they are left as they are. (change.c)
 */
#define FAV_NOT_REPORTED	(-1)
extern int	(*fav_slice_take) (FavSlice *slice, uint8_t *blocks,
							   uint32_t region_size, uint64_t hash);

/*
 * One after the other.  Elements whose bits were left go to `staying`, which has room for
 * all.  Returns how many these are; *gone is how many others the slice reported. (change.c)
 */
extern size_t (*fav_slice_take_many) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
									  const uint64_t *hashes, size_t count,
									  uint64_t *staying, size_t *gone);

/*
 * An element of which a single bit were cleared would look present again as soon as
 * somebody else sets that bit.  So it stays as it is, as if there were no bit to clear,
 * and is remembered among the deleted.  (With one bit an element, no delete leaves
 * anything.)  Measured in docs/ALGORITHM.md.
 */
static inline bool
fav_stays(const FavSlice *slice, int own_bits)
{
	/* without a branch; FAV_NOT_REPORTED becomes a large number */
	return (uint32_t) own_bits <= (slice->k > 1 ? 1U : 0U);
}

/*
 * Merge two slices of the same geometry into `blocks` (which may be either of
 * theirs): OR, with the regions of bits set in both marked.
 */
extern void fav_slice_merge(const FavSlice *a, const FavSlice *b,
							uint32_t region_size, uint8_t *blocks);

/* How many bits that would set. */
extern uint64_t fav_slice_union_bits(const FavSlice *a, const FavSlice *b,
									 uint32_t region_size);

/* Bits set in `length` bytes. */
extern uint64_t fav_popcount(const uint8_t *bytes, size_t length);

#endif							/* FAV_SLICE_H */
