/*
 * slice.h
 *		One FAV slice: an array of blocks of bits with a collision tracker.
 *
 * A block is region_size data lanes of 256 bits and one tracker lane.  Column j of the data
 * lanes is region j.  Bit j of the tracker lane marks the region: two elements wanted the
 * same bit of it.  All bits of an element lie in one block.
 *
 * The invariant that everything rests on: a bit in an unmarked region belongs to at most one
 * element of the slice.
 */
#ifndef FAV_SLICE_H
#define FAV_SLICE_H

#include "format.h"
#include "hash.h"

/* The slice that fav_find_slice() returns if none reports the hash. */
#define FAV_NO_SLICE		UINT32_MAX

/*
 * The functions that exist twice, portable (slice.c) and for AVX2 (slice_avx2.c).  The ones
 * for this processor are chosen when the library is loaded.  The wrappers below call them.
 */
typedef struct FavKernels
{
	bool		(*list_contains) (const uint8_t *list, uint32_t count, uint64_t hash);
	uint32_t	(*find_slice) (const FavSlice *slices, uint32_t nslices, uint32_t region_size,
							   uint64_t hash);
	uint32_t	(*block_insert) (uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash);
	uint32_t	(*block_remove) (uint8_t *block, uint32_t region_size, uint32_t k, uint64_t hash,
								 uint32_t least);
} FavKernels;

extern FavKernels fav_kernels;

extern const FavKernels fav_portable_kernels;

/* NULL if this processor has no AVX2. */
extern const FavKernels *fav_avx2_kernels(void);

/* Is the hash in a short list without order? */
static inline bool
fav_recent_contains(const uint8_t *list, uint32_t count, uint64_t hash)
{
	return fav_kernels.list_contains(list, count, hash);
}

/* Does the filter have a tombstone for this hash?  The tombstones must be loaded. */
static inline bool
fav_has_tombstone(const FavFilter *filter, uint64_t hash)
{
	if (filter->ntombstones == 0)
		return false;
	if (fav_tombstones_are_sorted(filter))
		return fav_hashes_contain(filter->tombstones, filter->ntombstones, hash);
	return fav_recent_contains(filter->tombstones, filter->ntombstones, hash);
}

/*
 * The last slice that reports the hash: all bits of the hash are set in it.  The last slices
 * of a chain are the largest, so they are probed first.
 */
static inline uint32_t
fav_find_slice(const FavSlice *slices, uint32_t nslices, uint32_t region_size, uint64_t hash)
{
	return nslices == 0 ? FAV_NO_SLICE :
		fav_kernels.find_slice(slices, nslices, region_size, hash);
}

/* The offset of the hash's block from the first block of the slice. */
static inline uint64_t
fav_slice_block_offset(const FavSlice *slice, uint32_t region_size, uint64_t hash)
{
	return (uint64_t) fav_hash_block(hash, slice->nblocks) * fav_block_bytes(region_size);
}

static inline bool
fav_slice_has_free_bits(const FavSlice *slice)
{
	return slice->bits_set < slice->bits_limit;
}

/*
 * Prefetch the lane that a probe looks at first.  Always inlined: gcc considers a function that
 * only prefetches to have no effect, and drops the call.
 */
__attribute__((always_inline))
static inline void
fav_slice_prefetch(const FavSlice *slice, uint32_t region_size, uint64_t hash)
{
	__builtin_prefetch(slice->blocks + fav_slice_block_offset(slice, region_size, hash) +
					   (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES);
}

/* Are all k bits of the hash set in this block? */
extern bool fav_block_contains(const uint8_t *block, uint32_t region_size, uint32_t k,
							   uint64_t hash);

/*
 * Changes.  `blocks` is the writable memory that slice->blocks points to; slice->bits_set is
 * kept true.
 */

/* Set the element's clear bits and mark the regions of those that were set. */
static inline void
fav_slice_insert(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	slice->bits_set +=
		fav_kernels.block_insert(blocks + fav_slice_block_offset(slice, region_size, hash),
								 region_size, slice->k, hash);
}

extern void fav_slice_insert_many(FavSlice *slice, uint8_t *blocks, uint32_t region_size,
								  const uint64_t *hashes, size_t count);

/* Mark all regions of an element whose bits are set, so that no other's removal clears them. */
extern void fav_slice_pin(const FavSlice *slice, uint8_t *blocks, uint32_t region_size,
						  uint64_t hash);

/*
 * Remove an element that the slice reports and whose only possible home it is: clear its bits
 * in unmarked regions.
 *
 * An element that lost few bits looks present again as soon as other elements set these.  So
 * if an element has fewer than `least` such bits, nothing is cleared, and it needs a tombstone:
 * the function returns false.
 */
static inline bool
fav_slice_remove(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash,
				 uint32_t least)
{
	uint32_t	cleared =
		fav_kernels.block_remove(blocks + fav_slice_block_offset(slice, region_size, hash),
								 region_size, slice->k, hash, least);

	slice->bits_set -= cleared;
	return cleared > 0;
}

/*
 * Merge two slices of the same geometry into `blocks`, which may be either of theirs: OR the
 * bits, and mark the regions of bits that both have set.  With `blocks` NULL, only count the bits
 * that would be set then.
 */
extern uint64_t fav_slice_merge(const FavSlice *a, const FavSlice *b, uint32_t region_size,
								uint8_t *blocks);

/* Bits set in a word.  Compilers call a slow function where they may not use the instruction. */
static inline uint32_t
fav_popcount64(uint64_t word)
{
	word -= word >> 1 & UINT64_C(0x5555555555555555);
	word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
	word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t) (word * UINT64_C(0x0101010101010101) >> 56);
}

/* Bits set in `length` bytes, a multiple of 8. */
extern uint64_t fav_popcount(const uint8_t *bytes, size_t length);

/*
 * The probability that an element that was never added finds all its bits set in this block.
 */
extern double fav_block_error(const uint8_t *block, uint32_t region_size, uint32_t k);

#endif							/* FAV_SLICE_H */
