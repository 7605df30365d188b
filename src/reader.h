/*
 * reader.h
 *		Reading a filter argument that may be the same in the next call.
 */
#ifndef FAV_READER_H
#define FAV_READER_H

#include "fav.h"

/*
 * A filter to ask, from one of three sources: read in place; loaded whole into
 * the cache of the calling function; or its head loaded and blocks fetched from
 * TOAST one by one.
 */
typedef struct FavReader
{
	FavFilter	filter;			/* blocks are NULL while only the head is there */
	bool		has_sketch;
	FavSketch	sketch;			/* of recent, for a reader that is kept */

	/* for a reader in the cache only */
	struct varatt_external pointer; /* the key */
	MemoryContext context;		/* holds all that was loaded; NULL: unused */
	bool		loaded;			/* at least the head */
	struct varlena *attribute;	/* copy of the TOAST pointer */
	uint64		fetched;		/* what single blocks have cost so far */
	uint64		last_used;
} FavReader;

/*
 * The reader of argument `number`, which is not NULL.  `local` is used where there
 * is nothing to keep; both are valid until the call returns.
 */
extern FavReader *fav_get_reader(FunctionCallInfo fcinfo, int number, FavReader *local);

/* Say that about so many questions follow: a few read blocks, many load all. */
extern void fav_reader_expect(FavReader *reader, uint64 questions);

extern bool fav_reader_fetch_contains(FavReader *reader, uint64_t hash);

static inline bool
fav_reader_contains(FavReader *reader, uint64_t hash)
{
	const FavFilter *filter = &reader->filter;
	uint32_t	i;

	if ((!reader->has_sketch || fav_sketch_may_contain(&reader->sketch, hash)) &&
		fav_recent_contains(filter->recent, filter->nrecent, hash))
		return true;
	if (filter->nslices == 0)
		return false;
	if (unlikely(filter->deleted == NULL))
		return fav_reader_fetch_contains(reader, hash);
	for (i = filter->nslices; i-- > 0;)
		if (fav_slice_contains(&filter->slices[i], filter->params.region_size, hash))
			return !fav_hashes_contain(filter->deleted, filter->ndeleted, hash);
	return false;
}

#endif							/* FAV_READER_H */
