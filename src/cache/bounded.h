/*
 * bounded.h
 *		The bounded set of type fav_cache: its bytes, probing and editing.
 *
 * A bounded set remembers about `capacity` elements and forgets the least recently added ones.
 * It never reports an element that was not added (but for a chance below 2^-40).
 * docs/CACHE.md has the proofs and the figures.
 *
 * A value is a header and its entries, in one of two forms:
 *
 *		list	8 bytes for each hash, newest first, unique.  Sets of up to 128 elements.
 *		table	buckets of 32 slots.  A slot holds a fingerprint of 48 bits, or 0 if it is
 *				free.  In a bucket the newest fingerprint comes first and the free slots
 *				come last.
 *
 * A set begins as a list.  With a capacity of up to 128 it remains one, and is an exact LRU.
 * Otherwise it becomes a table when the list is full.
 *
 * All numbers are little endian.  Nothing is aligned.
 */
#ifndef FAV_BOUNDED_H
#define FAV_BOUNDED_H

#include "core/editor.h"
#include "core/hash.h"

/* The first byte: type and version.  No fav value begins with it. */
#define FAV_BOUNDED_FORMAT			0xc1
#define FAV_BOUNDED_FORMAT_VERSION	(FAV_BOUNDED_FORMAT & 0x0f)

#define FAV_BOUNDED_AT_FORMAT		0	/* u8, FAV_BOUNDED_FORMAT */
#define FAV_BOUNDED_AT_KIND			1	/* u8, FavKind; none if and only if the set is empty */
#define FAV_BOUNDED_AT_FORM			2	/* u8, 0: list, 1: table */
#define FAV_BOUNDED_AT_RESERVED		3	/* u8, always zero */
#define FAV_BOUNDED_AT_CAPACITY		4	/* u32, 1 .. FAV_BOUNDED_MAX_CAPACITY */
#define FAV_BOUNDED_AT_SEED			8	/* u64, seed of the hash function */
#define FAV_BOUNDED_AT_USED			16	/* u32, elements in the set; next to the newest one */
#define FAV_BOUNDED_HEADER_SIZE		20

#define FAV_BOUNDED_LIST_MAX		128

/* A bucket has the lower 32 bits of its fingerprints, then the upper 16 bits. */
#define FAV_BUCKET_SLOTS			32
#define FAV_BUCKET_HIGHS			(4 * FAV_BUCKET_SLOTS)
#define FAV_BUCKET_BYTES			(6 * FAV_BUCKET_SLOTS)

/*
 * A bucket is for 24 elements of capacity, which is 8 bytes each.  With fewer free slots a set
 * that is filled to its capacity would forget more: 0.6 % now, 7 % with 32 per bucket.
 */
#define FAV_BUCKET_CAPACITY			24

/* 500,000 buckets.  With more, false positives would exceed 2^-40. */
#define FAV_BOUNDED_MAX_CAPACITY	12000000

typedef struct FavBounded
{
	FavParams	params;			/* only capacity, seed and kind */
	uint32_t	used;			/* the number of elements */
	uint32_t	nbuckets;		/* 0: a list */
	const uint8_t *entries;		/* NULL if not loaded */
} FavBounded;

static inline uint32_t
fav_bounded_nbuckets(uint64_t capacity)
{
	return (uint32_t) ((capacity + FAV_BUCKET_CAPACITY - 1) / FAV_BUCKET_CAPACITY);
}

/* The number of elements that a set can have. */
static inline uint32_t
fav_bounded_nslots(uint64_t capacity)
{
	return capacity <= FAV_BOUNDED_LIST_MAX ? (uint32_t) capacity :
		fav_bounded_nbuckets(capacity) * FAV_BUCKET_SLOTS;
}

/* The number of elements that a list can have. */
static inline uint32_t
fav_bounded_list_limit(const FavBounded *set)
{
	return set->params.capacity < FAV_BOUNDED_LIST_MAX ?
		(uint32_t) set->params.capacity : FAV_BOUNDED_LIST_MAX;
}

static inline size_t
fav_bounded_size(const FavBounded *set)
{
	return FAV_BOUNDED_HEADER_SIZE + (set->nbuckets > 0 ?
									  (size_t) set->nbuckets * FAV_BUCKET_BYTES :
									  (size_t) set->used * 8);
}

/* Where the bucket of a hash begins within the entries of a table. */
static inline size_t
fav_bounded_bucket_offset(const FavBounded *set, uint64_t hash)
{
	return (size_t) fav_hash_block(hash, set->nbuckets) * FAV_BUCKET_BYTES;
}

/*
 * Parse the value of `size` bytes of which the first `available` are at `bytes`.  Whatever
 * passes can be probed and edited without touching a byte outside.  With available < size the
 * entries are not loaded.
 */
extern FavStatus fav_bounded_open(FavBounded *set, const uint8_t *bytes, size_t available,
								  size_t size, FavProblem *problem);

/* Check the entries, too.  For every value that comes from outside. */
extern FavStatus fav_bounded_check(const FavBounded *set, FavProblem *problem);

extern bool fav_bucket_contains(const uint8_t *bucket, uint64_t hash);
extern bool fav_bounded_contains(const FavBounded *set, uint64_t hash);

/* The probability that adding a new element makes the set forget another one. */
extern double fav_bounded_eviction_rate(const FavBounded *set);

/* The embedding program uses this many bytes before a value. */
#define FAV_VALUE_PREFIX	4

/* Changing a set: a copy of its value, which is complete once it is finished. */
typedef struct FavBoundedEditor
{
	FavBounded	set;
	uint8_t    *value;			/* after FAV_VALUE_PREFIX bytes */
	bool		changed;
} FavBoundedEditor;

extern FavStatus fav_bounded_new(FavBoundedEditor *editor, uint32_t capacity, uint64_t seed);
extern FavStatus fav_bounded_edit(FavBoundedEditor *editor, const FavBounded *source);

/* Add an element as the newest one.  Fails only for lack of memory, and changes nothing then. */
extern FavStatus fav_bounded_add(FavBoundedEditor *editor, uint64_t hash);

/* Remove an element if it is there.  Always succeeds. */
extern FavStatus fav_bounded_remove(FavBoundedEditor *editor, uint64_t hash);

/* Write the header.  The value has fav_bounded_size() bytes.  The editor can be used further. */
extern void fav_bounded_finish(FavBoundedEditor *editor);

#endif							/* FAV_BOUNDED_H */
