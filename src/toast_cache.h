/*
 * toast_cache.h
 *		Reading filters that a query probes again and again.
 */
#ifndef FAV_TOAST_CACHE_H
#define FAV_TOAST_CACHE_H

#include "fav.h"

#include "cache/bounded.h"

/*
 * A filter to probe, in the cache of the calling function.  A value that is not out of line is
 * read in place.  A value out of line is loaded completely, or only its head, in which case each
 * probe fetches blocks from TOAST.
 *
 * A value in its row that is probed again and again, as that of an InitPlan, is not parsed again.
 * It is known by its address, its size and its head: what a reader knows of it comes from these,
 * and blocks and tombstones are read where they are.
 *
 * The reader of a bounded set (fav_cache) has its parameters in `filter`, and nothing else there.
 */
typedef struct FavReader
{
	/* only of a value out of line */
	struct varatt_external pointer; /* the key */
	bool		is_far;			/* a loaded filter, too large for the nearest caches */
	uint64		last_integer;	/* the last integer probed; see fav_reader_look_ahead() */
	uint64		last_step;		/* its difference from the one before */

	/* only of a value in its row that is probed again */
	uint8_t    *head;			/* a copy, with the header of the varlena, or NULL */
	size_t		head_size;		/* 0: the value was opened once */

	const struct varlena *loaded;	/* the bytes that the filter was opened from */
	size_t		size;			/* of the value */
	int32		newest;			/* period of the value */
	int32		now;			/* see fav_reader_forget() */
	bool		is_bounded;
	FavBounded	bounded;		/* if is_bounded; no entries while only the head is loaded */

	/* only of a value out of line */
	struct FavReaderCache *cache;
	MemoryContext context;		/* holds the reader and everything it loads */
	Size		bytes;			/* allocated in the context */
	struct varlena *attribute;	/* copy of the TOAST pointer */
	uint64		fetched;		/* cost of fetching single blocks so far, in bytes */

	/* last, because they are large: a new reader does not touch all of their memory */
	FavFilter	filter;			/* blocks are NULL while only the head is loaded */
	FavMatcher	matcher;		/* of the filter */
} FavReader;

/*
 * The filters that one call in a query has loaded.  A query may probe many in turn, for example
 * in a join over hundreds of users.  Together they use at most the memory of a hash table
 * (work_mem times hash_mem_multiplier), but the latest one is always kept.
 */
typedef struct FavReaderCache
{
	FavReader  *latest;			/* the one used last, or NULL */
	FavReader  *newest;			/* the one loaded last, or NULL */
	FavReader  *in_row;			/* of the last value in its row, or NULL */
	const struct varlena *last_in_row;	/* its address */
	struct readers_hash *readers;	/* all, by TOAST pointer; NULL before the first one */
	Size		bytes;			/* allocated by all readers */
	uint32		evictions;		/* so far */
	bool		is_bounded;		/* the values are bounded sets */
} FavReaderCache;

/* Returns the reader of an attribute.  The memory of the cache comes from `context`. */
extern FavReader *fav_reader_cache_keep(FavReaderCache *cache, MemoryContext context,
										struct varlena *attribute);

/*
 * The same for an attribute of a call, which is a filter or a bounded set.  The reader is valid
 * until the SQL function returns.
 */
extern FavReader *fav_find_reader(FunctionCallInfo fcinfo, struct varlena *attribute,
								  bool is_bounded);

/*
 * Had the last call a filter in its row at the same address?  If not, this is not the time to
 * prepare a reader.
 */
extern bool fav_is_probed_again(FunctionCallInfo fcinfo, const struct varlena *attribute);

static pg_attribute_always_inline bool
fav_reader_is_of_row(const FavReader *reader, const struct varlena *attribute)
{
	return reader->head_size > 0 && reader->loaded == attribute &&
		VARSIZE_ANY_EXHDR(attribute) == reader->size &&
		memcmp(attribute, reader->head, reader->head_size) == 0;
}

/* Returns the latest reader of the cache if it belongs to this attribute, or else NULL. */
static pg_attribute_always_inline FavReader *
fav_reader_cache_latest(FavReaderCache *cache, struct varlena *attribute)
{
	FavReader  *latest = cache->latest;

	if (latest == NULL)
		return NULL;
	if (VARATT_IS_EXTERNAL_ONDISK(attribute))
		return memcmp(&latest->pointer, VARDATA_EXTERNAL(attribute),
					  sizeof(struct varatt_external)) == 0 ? latest : NULL;
	return fav_reader_is_of_row(latest, attribute) ? latest : NULL;
}

/*
 * Returns the reader of argument `number`, which is not NULL, if the last call had the same
 * argument, as in a scan.  Otherwise returns NULL.
 */
static pg_attribute_always_inline FavReader *
fav_same_reader(FunctionCallInfo fcinfo, int number)
{
	FavReaderCache *cache = fcinfo->flinfo == NULL ? NULL : fcinfo->flinfo->fn_extra;

	return cache == NULL ? NULL :
		fav_reader_cache_latest(cache, (struct varlena *) PG_GETARG_POINTER(number));
}

/* Open a value.  If it is out of line, load only its head. */
extern void fav_open_head(FavFilter *filter, struct varlena *attribute);

/* Copy the blocks of a slice of a filter that fav_open_head() opened. */
extern void fav_copy_blocks(struct varlena *attribute, const FavSlice *slice,
							uint32_t region_size, uint8_t *to);

/*
 * Leave out what a dated filter forgets in period `now`, if that is later than its own newest
 * one.  For levels: the later ones know the present period.
 */
extern void fav_reader_forget(FavReader *reader, int32 now);

/* Announce a number of probes.  If it is large, this loads the whole value. */
extern void fav_reader_expect(FavReader *reader, uint64 probes);

extern bool fav_reader_fetch_contains(FavReader *reader, uint64_t hash);

/* Does the filter have a tombstone for the hash? */
extern bool fav_reader_excludes(FavReader *reader, uint64_t hash);

/* Is the whole filter loaded, and not only its head?  Not for bounded sets. */
static inline bool
fav_reader_is_loaded(const FavReader *reader)
{
	return reader->filter.tombstones != NULL;
}

/*
 * Prefetch the block of the integer that the next row probably has.  Call this before a far
 * filter is probed for `integer`.
 *
 * A table is mostly read in the order in which it was written, so ids often ascend evenly.
 * After two equal steps, predict a third one of the same length.  The arithmetic is unsigned
 * because steps may be negative and may wrap around.
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
