/*
 * hashpart.h
 *		Many hashes that are not to change, in 6 bytes each: as they go from one
 *		process to another, and wait there until a filter is built.
 *
 * They are in the order of their leading bits, FAV_PART_BITS, which are not stored: a
 * table says where those with the same ones end.
 */
#ifndef FAV_HASHPART_H
#define FAV_HASHPART_H

#include "fav.h"

/* Sets deal their hashes out into buckets by so many leading bits; parts go further. */
#define FAV_BUCKET_BITS		8
#define FAV_PART_BITS		16

/*
 * A bucket is a list of chunks, all full but the last.  So many hashes in a chunk: few
 * enough that the chunks to which all buckets append stay in the processor's cache, and
 * that half of one lost in each bucket does not matter.
 */
#define FAV_CHUNK			64

/*
 * Chunks of a bucket are far from each other: the processor does not see by itself
 * which comes next.
 */
static inline void
fav_prefetch(const void *from, size_t size)
{
	const char *at = from;
	const char *end = at + size;

	for (; at < end; at += 64)
		__builtin_prefetch(at);
}

static inline void
fav_prefetch_chunk(uint64 *const *chunks, size_t number, size_t nchunks)
{
	if (number < nchunks)
		fav_prefetch(chunks[number], FAV_CHUNK * sizeof(uint64));
}

typedef struct FavHashPart
{
	struct FavHashPart *next;	/* of the same set */
	uint64		count;			/* from here on: the same bytes as it was sent */
	uint32		ends[1 << FAV_PART_BITS];
	uint8_t		hashes[FLEXIBLE_ARRAY_MEMBER];
} FavHashPart;

/* How many bytes it takes to send so many hashes. */
extern size_t fav_part_size(size_t count);

/*
 * Write them to where there may be no alignment: first how many there will be, then the
 * buckets in their order, each with `count` hashes; `before` are in those before it.
 */
extern void fav_part_begin(uint8_t *to, size_t count);
extern void fav_part_add_bucket(uint8_t *to, int bucket, uint64 *const *chunks, size_t count, size_t before);

/* What was sent so, in memory of its own. */
extern FavHashPart *fav_part_copy(const uint8_t *from, size_t size, MemoryContext context);

/* The hashes of a bucket, and how many they are; writes them, and returns where they end. */
extern size_t fav_part_count(const FavHashPart *part, int bucket);
extern uint64 *fav_part_unpack(const FavHashPart *part, int bucket, uint64 *to);

#endif							/* FAV_HASHPART_H */
