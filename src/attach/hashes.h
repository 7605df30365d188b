/*
 * hashes.h
 *		A list of hashes that grows.
 */
#ifndef FAV_HASHES_H
#define FAV_HASHES_H

#include "postgres.h"

typedef struct FavHashes
{
	uint64_t   *values;
	size_t		count;
	size_t		allocated;
} FavHashes;

extern void fav_append_hash(FavHashes *hashes, uint64_t hash);
extern void fav_sort_hashes(FavHashes *hashes);
extern uint64_t *fav_find_hash(const FavHashes *sorted, uint64_t hash);

#endif							/* FAV_HASHES_H */
