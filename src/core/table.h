/*
 * table.h
 *		A set of hashes that is found in quickly and comes out in ascending order.
 *
 * The hashes ascend in an array with gaps.  Each is at the place that its leading bits
 * point to, or as little behind it as those before allow.  Hashes are spread evenly, so
 * that is a few slots mostly.  Somebody may have chosen them, and then they crowd; the
 * table says so before it becomes slow, and wants to be emptied.
 */
#ifndef FAV_TABLE_H
#define FAV_TABLE_H

#include "format.h"

/* The first table of 2^FAV_TABLE_FIRST_BITS places needs no memory but its owner's. */
#define FAV_TABLE_FIRST_BITS	6

/* A hash is less than so many slots behind its place. */
#define FAV_TABLE_RUN_MAX		256

/* So many hashes can be inserted after one look whether there is room: an empty table has it. */
#define FAV_TABLE_AT_ONCE		48

/* What a gap holds.  That the hash of this value is in the set is noted by itself. */
#define FAV_TABLE_GAP			UINT64_MAX

/* With so many hashes a table is full. */
static inline uint32_t
fav_table_limit(uint32_t bits)
{
	return UINT32_C(3) << (bits - 2);
}

/* Places, slots behind the last of them, and as many as are looked at together, always gaps. */
#define FAV_TABLE_FIRST_SLOTS	((1 << FAV_TABLE_FIRST_BITS) + (3 << (FAV_TABLE_FIRST_BITS - 2)) + 4)

static inline size_t
fav_table_slots(uint32_t bits)
{
	uint32_t	limit = fav_table_limit(bits);

	return ((size_t) 1 << bits) + (limit < FAV_TABLE_RUN_MAX ? limit : FAV_TABLE_RUN_MAX) + 4;
}

typedef struct FavTable
{
	uint8_t    *slots;			/* first, or allocated; NULL: nothing is in it */
	uint32_t	bits;			/* 2^bits places */
	uint32_t	count;
	bool		has_gap_value;
	bool		crowded;		/* FAV_TABLE_AT_ONCE hashes more could be too far from their places */
	uint8_t		first[FAV_TABLE_FIRST_SLOTS * 8];
} FavTable;

extern void fav_table_init(FavTable *table);

/* Take the place of `next`, which is not to be closed then. */
extern void fav_table_replace(FavTable *table, const FavTable *next);
extern void fav_table_close(FavTable *table);

/*
 * Make a table of the ascending hashes in the `nslots` slots of a list, or of another
 * table: gaps are passed over.  FAV_DOUBTFUL: they crowd; the table is as it was.
 */
extern FavStatus fav_table_spread(FavTable *table, uint32_t bits, const uint8_t *slots, size_t nslots,
								  bool has_gap_value);

/* Insert the hash, or take it out.  There must be room. */
extern void fav_table_toggle(FavTable *table, uint64_t hash);

/* For `count` hashes, at most FAV_TABLE_AT_ONCE. */
static inline bool
fav_table_has_room(const FavTable *table, uint32_t count)
{
	return table->slots == NULL || (table->count + count <= fav_table_limit(table->bits) && !table->crowded);
}

/* The first slot from the hash's place on that holds nothing below it. */
static inline uint8_t *
fav_table_find(const FavTable *table, uint64_t hash)
{
	uint8_t    *slot = table->slots + 8 * (size_t) (hash >> (64 - table->bits));
	uint32_t	below;

	/* four at a time, without a branch: nothing tells how many there are */
	do
	{
		below = (fav_load64(slot) < hash) + (fav_load64(slot + 8) < hash) +
			(fav_load64(slot + 16) < hash) + (fav_load64(slot + 24) < hash);
		slot += 8 * (size_t) below;
	} while (below == 4);
	return slot;
}

static inline void
fav_table_prefetch(const FavTable *table, uint64_t hash)
{
	if (table->count > 0)
		__builtin_prefetch(table->slots + 8 * (size_t) (hash >> (64 - table->bits)));
}

static inline bool
fav_table_contains(const FavTable *table, uint64_t hash)
{
	if (table->count == 0)
		return false;
	if (hash == FAV_TABLE_GAP)
		return table->has_gap_value;
	return fav_load64(fav_table_find(table, hash)) == hash;
}

#endif							/* FAV_TABLE_H */
