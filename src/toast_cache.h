/*
 * toast_cache.h
 *		Reading a filter argument that may be the same in the next call.
 */
#ifndef FAV_TOAST_CACHE_H
#define FAV_TOAST_CACHE_H

#include "fav.h"

/*
 * A filter to probe, from one of three sources: read in place; loaded whole into the cache of
 * the calling function; or its head loaded and blocks fetched from TOAST one by one.
 */
typedef struct FavReader
{
	struct varatt_external pointer; /* the key, for a reader in the cache */

	/* for a reader in the cache: see fav_reader_look_ahead() */
	bool		is_far;			/* loaded, and too large for the nearest caches */
	uint64		last_integer;	/* the last one probed */
	uint64		last_step;		/* to that, from the one before */

	FavFilter	filter;			/* blocks are NULL while only the head is there */
	FavMatcher	matcher;		/* of the filter */

	/* for a reader in the cache as well */
	struct FavCache *cache;
	MemoryContext context;		/* holds the reader and all that was loaded */
	Size		bytes;			/* that the context takes */
	struct varlena *attribute;	/* copy of the TOAST pointer */
	uint64		fetched;		/* cost of the single blocks so far, in bytes */
} FavReader;

/*
 * Filters that are probed in turn (hidden posts and blocked authors; a join over some
 * hundred users) are kept, as many as fit the memory of a hash table (work_mem times
 * hash_mem_multiplier).
 */
typedef struct FavCache
{
	FavReader  *latest;			/* the one used last; or NULL */
	FavReader  *newest;			/* the one loaded last; or NULL */
	struct readers_hash *readers;	/* all, by TOAST pointer; NULL if there was none yet */
	Size		bytes;			/* that they take */
	uint32		evictions;		/* so far */
} FavCache;

/*
 * The reader of an attribute that may be toasted: one of the cache, which keeps what it
 * loads in `context`, or `local` for a value that is not out of line.
 */
extern FavReader *fav_cache_find(FavCache *cache, MemoryContext context, struct varlena *attribute,
								 FavReader *local);

extern FavReader *fav_find_reader(FunctionCallInfo fcinfo, struct varlena *attribute,
								  FavReader *local);

/* The latest reader of the cache, if it is the one of this attribute. */
static pg_attribute_always_inline FavReader *
fav_cache_latest(FavCache *cache, struct varlena *attribute)
{
	if (!VARATT_IS_EXTERNAL_ONDISK(attribute) || cache->latest == NULL ||
		memcmp(&cache->latest->pointer, VARDATA_EXTERNAL(attribute),
			   sizeof(struct varatt_external)) != 0)
		return NULL;
	return cache->latest;
}

/*
 * The reader of argument `number`, which is not NULL, if it is the same as in the last call:
 * that is so for every row of a scan.  NULL otherwise.
 */
static pg_attribute_always_inline FavReader *
fav_same_reader(FunctionCallInfo fcinfo, int number)
{
	struct varlena *attribute = (struct varlena *) PG_GETARG_POINTER(number);
	FavCache   *cache;

	if (!VARATT_IS_EXTERNAL_ONDISK(attribute) || fcinfo->flinfo == NULL)
		return NULL;
	cache = fcinfo->flinfo->fn_extra;
	return cache == NULL ? NULL : fav_cache_latest(cache, attribute);
}

/*
 * The reader of argument `number`, which is not NULL.  `local` is used where there is nothing
 * to keep.  The result is valid until the call returns.
 */
static inline FavReader *
fav_get_reader(FunctionCallInfo fcinfo, int number, FavReader *local)
{
	FavReader  *same = fav_same_reader(fcinfo, number);

	if (same != NULL)
		return same;
	return fav_find_reader(fcinfo, (struct varlena *) PG_GETARG_POINTER(number), local);
}

/* The structure of a value, of which only the head is loaded if it is out of line. */
extern void fav_open_head(FavFilter *filter, struct varlena *attribute);

/* Copy the blocks of a slice that fav_open_head() has found. */
extern void fav_copy_blocks(struct varlena *attribute, const FavSlice *slice,
							uint32_t region_size, uint8_t *to);

/* About so many probes follow: a few fetch blocks, many load the whole value. */
extern void fav_reader_expect(FavReader *reader, uint64 probes);

extern bool fav_reader_fetch_contains(FavReader *reader, uint64_t hash);

/* Does the filter exclude the hash by a tombstone? */
extern bool fav_reader_excludes(FavReader *reader, uint64_t hash);

/* Is the whole value there, or only its head? */
static inline bool
fav_reader_is_loaded(const FavReader *reader)
{
	return reader->filter.tombstones != NULL;
}

/*
 * A far filter is about to be probed for this integer.
 *
 * Ids often come in order: a table is mostly read as it was written.  After two steps of the
 * same length a third is likely, and the block for it can be prefetched while PostgreSQL works
 * on the next row.  (Unsigned: steps go both ways and past the ends.)
 */
static pg_attribute_always_inline void
fav_reader_look_ahead(FavReader *reader, uint64 integer)
{
	uint64		step = integer - reader->last_integer;

	if (step == reader->last_step)
		fav_prefetch(&reader->filter,
					 fav_hash_integer((int64) (integer + step), reader->filter.params.seed));
	reader->last_step = step;
	reader->last_integer = integer;
}

static pg_attribute_always_inline bool
fav_reader_contains(FavReader *reader, uint64_t hash)
{
	if (unlikely(!fav_reader_is_loaded(reader)))
		return fav_reader_fetch_contains(reader, hash);
	return fav_matcher_contains(&reader->matcher, hash);
}

extern void fav_reader_contains_many(FavReader *reader, const uint64_t *hashes, size_t count,
									 bool *answers);

#endif							/* FAV_TOAST_CACHE_H */
