/*
 * hashpart.h
 *		Many hashes that are not to change: as they go from one process to another,
 *		and wait there until a filter is built.
 */
#ifndef FAV_HASHPART_H
#define FAV_HASHPART_H

#include "fav.h"

/* Sets deal their hashes out into buckets by so many leading bits. */
#define FAV_BUCKET_BITS		8
#define FAV_BUCKETS			(1 << FAV_BUCKET_BITS)

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
fav_prefetch_chunk(uint64 *const *chunks, size_t number, size_t nchunks)
{
	const uint64 *chunk;
	size_t		at;

	if (number >= nchunks)
		return;
	chunk = chunks[number];
	for (at = 0; at < FAV_CHUNK; at += 64 / sizeof(uint64))
		__builtin_prefetch(chunk + at);
}

/* Hashes in the order of their buckets. */
typedef struct FavHashPart
{
	struct FavHashPart *next;	/* of the same set */
	bool		lent;			/* is not the set's to free */
	uint64		count;			/* from here on: the same bytes as it was sent */
	uint64		ends[FAV_BUCKETS];	/* of the buckets, counted in hashes */
	uint64		hashes[FLEXIBLE_ARRAY_MEMBER];
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

/*
 * The same in memory that stays, where it was written to fav_part_sent() of a part.  That
 * takes fav_part_offset() bytes more than are sent.
 */
extern size_t fav_part_offset(void);
extern uint8_t *fav_part_sent(FavHashPart *part);
extern void fav_part_lend(FavHashPart *part, size_t size);

/* The hashes of a bucket, and how many they are; writes them, and returns where they end. */
extern size_t fav_part_count(const FavHashPart *part, int bucket);
extern uint64 *fav_part_unpack(const FavHashPart *part, int bucket, uint64 *to);

#endif							/* FAV_HASHPART_H */
