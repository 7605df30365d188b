/*
 * slice.h
 *		One FAV slice: an array of blocks of bits with a collision tracker.
 *
 * A block is region_size data lanes of 512 bits and one tracker lane.  Column j
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

/* The way of a question is inlined all along: a call costs as much as it does. */
#if defined(__GNUC__)
#define FAV_ALWAYS_INLINE	__attribute__((always_inline))
#else
#define FAV_ALWAYS_INLINE
#endif

/* The bits of the hash from number `from` on, one by one. */
extern bool fav_block_contains_slowly(const uint8_t *block, uint32_t region_size,
									  uint32_t k, uint64_t hash, uint32_t from);

/*
 * Are all k bits of the hash set in this block?
 *
 * First four bits without a branch: of the elements that are not there all but
 * some 3 % end here, which the processor predicts well; a branch for each bit it
 * could not.  Then the rest of the first product, and beyond it one by one.
 */
static inline FAV_ALWAYS_INLINE bool
fav_block_has(const uint8_t *block, uint32_t region_size, uint32_t k, const FavBits *bits)
{
	const uint8_t *end = block + (size_t) region_size * FAV_LANE_BYTES;
	const uint8_t *lane = block + bits->lane;
	uint64_t	columns = bits->columns;
	uint32_t	all = 1;
	uint32_t	i;

	/* a word of 32 bits, shifted: no more than its lowest bit is of interest */
#define FAV_TEST_BIT() \
	do { \
		all &= fav_load32(lane + (columns >> 5 & 15) * 4) >> (columns & 31); \
		lane += FAV_LANE_BYTES; \
		lane = lane == end ? block : lane; \
		columns = fav_turn_columns(columns); \
	} while (0)

	if (k < 4)
		return fav_block_contains_slowly(block, region_size, k, bits->hash, 0);
	FAV_TEST_BIT();
	FAV_TEST_BIT();
	FAV_TEST_BIT();
	FAV_TEST_BIT();
	if (!(all & 1))
		return false;
	for (i = 4; i < k && i < 7; i++)
		FAV_TEST_BIT();
	if (!(all & 1))
		return false;
	return k <= 7 || fav_block_contains_slowly(block, region_size, k, bits->hash, 7);
#undef FAV_TEST_BIT
}

static inline bool
fav_block_contains(const uint8_t *block, uint32_t region_size, uint32_t k,
				   uint64_t hash)
{
	FavBits		bits = fav_bits(hash, region_size);

	return fav_block_has(block, region_size, k, &bits);
}

/* Where the block of a hash begins, counted from the slice's first block. */
static inline uint64_t
fav_slice_block_offset(const FavSlice *slice, uint32_t region_size, uint64_t hash)
{
	return (uint64_t) fav_hash_block(hash, slice->nblocks) * fav_block_bytes(region_size);
}

/* With the bits computed before, for several slices. */
static inline FAV_ALWAYS_INLINE bool
fav_slice_has(const FavSlice *slice, uint32_t region_size, const FavBits *bits)
{
	return fav_block_has(slice->blocks + fav_slice_block_offset(slice, region_size, bits->hash),
						 region_size, slice->k, bits);
}

static inline bool
fav_slice_contains(const FavSlice *slice, uint32_t region_size, uint64_t hash)
{
	FavBits		bits = fav_bits(hash, region_size);

	return fav_slice_has(slice, region_size, &bits);
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

/* How many of the k bits of the hash are clear. */
extern uint32_t fav_slice_missing(const FavSlice *slice, uint32_t region_size,
								  uint64_t hash);

/*
 * The three changes.  `blocks` is the writable memory that slice->blocks points
 * to; slice->bits_set is kept true.
 */

/* Add an element: set its clear bits, mark the regions of those already set. */
extern void fav_slice_insert(FavSlice *slice, uint8_t *blocks,
							 uint32_t region_size, uint64_t hash);

/*
 * Hold on to bits that are all set already: mark all its regions, so that no
 * other element's delete clears them.
 */
extern void fav_slice_claim(FavSlice *slice, uint8_t *blocks,
							uint32_t region_size, uint64_t hash);

/*
 * Take an element out whose only possible home is this slice: clear its bits in
 * unmarked regions.  Returns how many there were.
 */
extern uint32_t fav_slice_clear(FavSlice *slice, uint8_t *blocks,
								uint32_t region_size, uint64_t hash);

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
