/*
 * toast_cache.c
 *		A cache of detoasted filters.  With it, probing the same filter for every row of a
 *		scan detoasts the filter once.
 *
 * A value in its row, or computed by the query, is read in place; toast_cache.h says how it is
 * known when it is probed again.  A value out of line is identified by its TOAST pointer, and its
 * reader is kept in fn_extra.  That lives as long as the calling expression: a query, or a
 * transaction for an expression of PL/pgSQL.  A TOAST value never changes, because an UPDATE
 * writes a new one under a new pointer.  The snapshot of a query protects the old value from
 * vacuum.  An expression of PL/pgSQL may outlive the snapshot.  But then a stale entry can only be
 * found if 2^32 value ids are used up within the transaction and a value of the same size gets
 * the same id.
 *
 * A large value is not loaded for a single probe.  At first the reader loads only its head (one
 * TOAST chunk), and each probe fetches one block per slice.  The reader loads the whole value
 * when the fetched blocks have cost a quarter of that, because the number of probes is not
 * known in advance.  A query with many probes then pays at most a quarter more than if it had
 * loaded the value at once.  A query that stops right after the load pays five times as much
 * as without the load.
 */
#include "toast_cache.h"

#include "access/table.h"
#include "access/tableam.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/*
 * Fetching one block costs about as much as loading this many bytes: a fetch is an index scan
 * of the TOAST table, a load reads its chunks in sequence (bench/README.md).
 */
#define BLOCK_FETCH_COST	(16 * 1024)

/* Values of up to this many bytes are loaded at once: head and one block cost as much. */
#define SMALL_VALUE			(2 * BLOCK_FETCH_COST)

/*
 * Larger values are loaded later: they exceed the processor's caches and need fresh pages, so
 * that each byte costs two to four times as much to load.
 */
#define LARGE_VALUE			(4 * 1024 * 1024)

/* Values from this many bytes on are too large for the processor's nearest caches. */
#define FAR_BYTES			(384 * 1024)

/* The initial size of the hash table of readers. */
#define FEW_READERS			8

/* One eviction in this many chooses any reader instead of the newest. */
#define REPLACE_ANY			4

static void account(FavReader *reader);

/* Open the value of a reader, of which these bytes are here. */
static void
open_bytes(FavReader *reader, const struct varlena *bytes)
{
	const uint8_t *start = (const uint8_t *) VARDATA_ANY(bytes);
	size_t		available = VARSIZE_ANY_EXHDR(bytes);

	if (reader->is_bounded)
	{
		FavProblem	problem;

		if (fav_bounded_open(&reader->bounded, start, available, reader->size, &problem) != FAV_OK)
			fav_raise_corrupted(&problem);
		reader->filter.params = reader->bounded.params;
		/* makes fav_reader_contains() call fav_reader_fetch_contains() */
		reader->filter.tombstones = NULL;
		return;
	}
	fav_require_open(&reader->filter, start, available, reader->size);
	reader->newest = reader->filter.newest;
	fav_forget(&reader->filter, reader->now);
	reader->loaded = bytes;
	fav_matcher_init(&reader->matcher, &reader->filter);
}

void
fav_reader_forget(FavReader *reader, int32 now)
{
	if (reader->now == now || !fav_is_dated(&reader->filter))
		return;
	reader->now = now;
	open_bytes(reader, reader->loaded);
}

/* Is the whole value loaded, of a filter or a bounded set? */
static bool
is_loaded(const FavReader *reader)
{
	return reader->is_bounded ? reader->bounded.entries != NULL : fav_reader_is_loaded(reader);
}

static void
load_whole(FavReader *reader)
{
	MemoryContext old = MemoryContextSwitchTo(reader->context);
	struct varlena *whole = detoast_attr(reader->attribute);

	MemoryContextSwitchTo(old);
	open_bytes(reader, whole);
	reader->is_far = reader->size >= FAR_BYTES && !reader->is_bounded;
	account(reader);
}

/* Fetch the head of a value out of line: one TOAST chunk, but for some dated values. */
static struct varlena *
fetch_head(struct varlena *attribute)
{
	struct varlena *head = detoast_attr_slice(attribute, 0, FAV_PLAIN_HEAD_SIZE);

	if (fav_head_is_longer((const uint8_t *) VARDATA_ANY(head), VARSIZE_ANY_EXHDR(head)))
		head = detoast_attr_slice(attribute, 0, FAV_MAX_HEAD_SIZE);
	return head;
}

/* Load the head, or the whole value if that costs no more. */
static void
load_first(FavReader *reader)
{
	/* blocks of a compressed value cannot be fetched alone */
	if (fav_is_compressed(reader->pointer) || reader->size <= SMALL_VALUE)
		load_whole(reader);
	else
	{
		MemoryContext old = MemoryContextSwitchTo(reader->context);
		struct varlena *head = fetch_head(reader->attribute);

		MemoryContextSwitchTo(old);
		open_bytes(reader, head);

		/* a block of each slice may cost more than the whole value */
		fav_reader_expect(reader, 1);
	}
}

void
fav_open_head(FavFilter *filter, struct varlena *attribute)
{
	size_t		size = toast_raw_datum_size(PointerGetDatum(attribute)) - VARHDRSZ;
	bool		apart = VARATT_IS_EXTERNAL_ONDISK(attribute) && size > FAV_MAX_HEAD_SIZE;
	struct varlena *bytes = apart ? fetch_head(attribute) :
		pg_detoast_datum_packed(attribute);

	fav_require_open(filter, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), size);
}

void
fav_copy_blocks(struct varlena *attribute, const FavSlice *slice, uint32_t region_size, uint8_t *to)
{
	size_t		length = fav_slice_bytes(slice, region_size);
	struct varatt_external pointer;

	if (slice->blocks != NULL)
	{
		fav_copy(to, slice->blocks, length);
		return;
	}
	VARATT_EXTERNAL_GET_POINTER(pointer, attribute);
	if (fav_is_compressed(pointer))
	{
		struct varlena *bytes = detoast_attr_slice(attribute, (int32) slice->offset,
												   (int32) length);

		fav_copy(to, (const uint8_t *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	}
	else
	{
		/* fetch directly to the destination, without a second copy */
		Relation	toast = table_open(pointer.va_toastrelid, AccessShareLock);

		table_relation_fetch_toast_slice(toast, pointer.va_valueid,
										 (int32) (pointer.va_rawsize - VARHDRSZ),
										 (int32) slice->offset, (int32) length,
										 (struct varlena *) (to - VARHDRSZ));
		table_close(toast, AccessShareLock);
	}
}

/* The hash table of a cache.  Hashing the value id is enough: it is nearly unique. */
typedef struct CacheEntry
{
	struct varatt_external pointer; /* key */
	FavReader  *reader;
	char		status;
} CacheEntry;

#define SH_PREFIX		readers
#define SH_ELEMENT_TYPE CacheEntry
#define SH_KEY_TYPE		struct varatt_external
#define SH_KEY			pointer
#define SH_HASH_KEY(table, key) murmurhash32((key).va_valueid)
#define SH_EQUAL(table, a, b) (memcmp(&(a), &(b), sizeof(struct varatt_external)) == 0)
#define SH_SCOPE		static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/*
 * Choose a reader to release, but not `keep`.  A query often probes its filters in a cycle, and
 * then the least recently used filter is the one needed next: with one filter more than fit,
 * LRU would never hit.  So mostly the newest is evicted.  The others stay, and the next filter
 * reuses memory that is still in the processor's caches.  Now and then any other reader is
 * evicted, so that the cache adapts when the query moves on.  (docs/internals/DECISIONS.md has
 * the measurement.)
 */
static FavReader *
choose_victim(FavReaderCache *cache, const FavReader *keep)
{
	readers_hash *readers = cache->readers;
	uint64		i = murmurhash32(cache->evictions++);

	if (cache->newest != NULL && cache->newest != keep && i % REPLACE_ANY != 0)
		return cache->newest;
	while (readers->data[i % readers->size].status != readers_SH_IN_USE ||
		   readers->data[i % readers->size].reader == keep)
		i++;
	return readers->data[i % readers->size].reader;
}

/* Release readers until the rest fits.  Never release `keep`. */
static void
evict(FavReaderCache *cache, const FavReader *keep)
{
	Size		limit = get_hash_memory_limit();

	while (cache->bytes > limit && cache->readers->members > 1)
	{
		FavReader  *victim = choose_victim(cache, keep);

		Assert(victim != NULL);
		if (victim == cache->newest)
			cache->newest = NULL;
		(void) readers_delete(cache->readers, victim->pointer);
		cache->bytes -= victim->bytes;
		MemoryContextDelete(victim->context);
	}
}

/* Update the memory accounting after a reader has loaded something. */
static void
account(FavReader *reader)
{
	Size		bytes = MemoryContextMemAllocated(reader->context, false);

	reader->cache->bytes += bytes - reader->bytes;
	reader->bytes = bytes;
	evict(reader->cache, reader);
}

static FavReader *
new_reader(MemoryContext context)
{
	FavReader  *reader = MemoryContextAlloc(context, sizeof(FavReader));

	memset(reader, 0, offsetof(FavReader, filter));
	reader->filter.tombstones = NULL;
	return reader;
}

static FavReader *
make_reader(FavReaderCache *cache, MemoryContext context, struct varlena *attribute)
{
	MemoryContext own = AllocSetContextCreate(context, "fav reader", ALLOCSET_SMALL_SIZES);
	FavReader  *reader = new_reader(own);

	reader->cache = cache;
	reader->context = own;
	reader->is_bounded = cache->is_bounded;
	VARATT_EXTERNAL_GET_POINTER(reader->pointer, attribute);
	reader->size = reader->pointer.va_rawsize - VARHDRSZ;
	reader->now = FAV_NO_PERIOD;
	reader->attribute = MemoryContextAlloc(own, VARSIZE_ANY(attribute));
	memcpy(reader->attribute, attribute, VARSIZE_ANY(attribute));
	load_first(reader);
	return reader;
}

static FavReader *
find_out_of_line(FavReaderCache *cache, MemoryContext context, struct varlena *attribute)
{
	struct varatt_external pointer;
	CacheEntry *entry;
	FavReader  *reader;
	bool		found;

	VARATT_EXTERNAL_GET_POINTER(pointer, attribute);
	if (cache->readers == NULL)
		cache->readers = readers_create(context, FEW_READERS, NULL);
	entry = readers_lookup(cache->readers, pointer);
	if (entry != NULL)
		return cache->latest = entry->reader;

	/* an error here leaves no entry; the reader's context is deleted with its parent */
	reader = make_reader(cache, context, attribute);
	readers_insert(cache->readers, pointer, &found)->reader = reader;
	account(reader);
	return cache->latest = cache->newest = reader;
}

/*
 * The head is copied when a value is found at the same address again.  In a scan each row has its
 * own address, and nothing is copied.
 */
static FavReader *
find_in_row(FavReaderCache *cache, MemoryContext context, struct varlena *attribute)
{
	FavReader  *reader = cache->in_row;
	struct varlena *whole = pg_detoast_datum_packed(attribute);
	bool		is_probed_again = cache->last_in_row == attribute;

	if (reader == NULL)
		reader = cache->in_row = new_reader(context);
	reader->is_bounded = cache->is_bounded;
	reader->head_size = 0;
	reader->size = VARSIZE_ANY_EXHDR(whole);
	reader->now = FAV_NO_PERIOD;
	open_bytes(reader, whole);
	cache->last_in_row = attribute;
	if (is_probed_again && whole == attribute && !reader->is_bounded)
	{
		if (reader->head == NULL)
			reader->head = MemoryContextAlloc(context, VARHDRSZ + FAV_MAX_HEAD_SIZE);
		reader->head_size = (size_t) (VARDATA_ANY(attribute) - (char *) attribute) +
			Min(fav_head_size(&reader->filter), reader->size);
		memcpy(reader->head, attribute, reader->head_size);
	}
	return cache->latest = reader;
}

FavReader *
fav_reader_cache_keep(FavReaderCache *cache, MemoryContext context, struct varlena *attribute)
{
	FavReader  *latest = fav_reader_cache_latest(cache, attribute);

	if (latest != NULL)
		return latest;
	return VARATT_IS_EXTERNAL_ONDISK(attribute) ?
		find_out_of_line(cache, context, attribute) : find_in_row(cache, context, attribute);
}

/* Without `function` nothing is kept for the next call. */
static FavReaderCache *
cache_of_call(FmgrInfo *function)
{
	if (function == NULL)
		return palloc0(sizeof(FavReaderCache));
	if (function->fn_extra == NULL)
		function->fn_extra = MemoryContextAllocZero(function->fn_mcxt, sizeof(FavReaderCache));
	return function->fn_extra;
}

FavReader *
fav_find_reader(FunctionCallInfo fcinfo, struct varlena *attribute, bool is_bounded)
{
	FavReaderCache *cache = cache_of_call(fcinfo->flinfo);

	cache->is_bounded = is_bounded;
	return fav_reader_cache_keep(cache, fcinfo->flinfo == NULL ? CurrentMemoryContext :
								 fcinfo->flinfo->fn_mcxt, attribute);
}

bool
fav_is_probed_again(FunctionCallInfo fcinfo, const struct varlena *attribute)
{
	FavReaderCache *cache = cache_of_call(fcinfo->flinfo);
	bool		result = cache->last_in_row == attribute;

	cache->last_in_row = attribute;
	return result;
}

void
fav_reader_expect(FavReader *reader, uint64 probes)
{
	if (!is_loaded(reader) && probes * (reader->is_bounded ? 1 : reader->filter.nslices) >=
		reader->size / BLOCK_FETCH_COST)
		load_whole(reader);
}

/* Fetch `length` bytes at `offset` of a value of which only the head is loaded. */
static struct varlena *
fetch(FavReader *reader, uint64 offset, size_t length)
{
	struct varlena *bytes = detoast_attr_slice(reader->attribute, (int32) offset, (int32) length);

	reader->fetched += BLOCK_FETCH_COST;
	if (VARSIZE_ANY_EXHDR(bytes) != length)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("fav value is corrupted"),
				 errdetail("%d bytes are missing at offset %llu.",
						   (int) (length - VARSIZE_ANY_EXHDR(bytes)),
						   (unsigned long long) offset)));
	return bytes;
}

/*
 * Search the tombstones, fetching one run at a time.  They ascend, because a value of which only
 * the head is loaded has slices or a long list of tombstones.  Hashes are distributed evenly,
 * so the first guess interpolates, and mostly it finds the right run.  The following guesses
 * halve the rest, because an attacker may have chosen the hashes.
 */
static bool
fetch_has_tombstone(FavReader *reader, uint64_t hash)
{
	const FavFilter *filter = &reader->filter;
	const uint32_t run = 256;
	uint32_t	low = 0;
	uint32_t	high = filter->ntombstones;
	uint32_t	guess = (uint32_t) ((hash >> 32) * high >> 32);

	for (; low < high; guess = low + (high - low) / 2)
	{
		uint32_t	first = Max(low, guess < run / 2 ? 0 : guess - run / 2);
		uint32_t	count = Min(run, high - first);
		uint64		offset = filter->tombstones_offset + 8 * (uint64) first;
		struct varlena *hashes = fetch(reader, offset, 8 * count);
		const uint8_t *list = (const uint8_t *) VARDATA_ANY(hashes);
		bool		found = fav_hashes_contain(list, count, hash);
		uint64_t	smallest = fav_load64(list);
		uint64_t	largest = fav_load64(list + 8 * (count - 1));

		pfree(hashes);
		if (found)
			return true;
		if (hash < smallest)
			high = first;
		else if (hash > largest)
			low = first + count;
		else
			return false;
	}
	return false;
}

bool
fav_reader_excludes(FavReader *reader, uint64_t hash)
{
	return fav_reader_is_loaded(reader) ? fav_has_tombstone(&reader->filter, hash) :
		fetch_has_tombstone(reader, hash);
}

/* Does some slice report the hash?  Fetches the block of the hash in each slice. */
static bool
fetch_is_reported(FavReader *reader, uint64_t hash)
{
	const FavFilter *filter = &reader->filter;
	uint32_t	region_size = filter->params.region_size;
	uint32_t	i;

	for (i = filter->nslices; i-- > 0;)
	{
		const FavSlice *slice = &filter->slices[i];
		uint64		offset = slice->offset + fav_slice_block_offset(slice, region_size, hash);
		struct varlena *block = fetch(reader, offset, fav_block_bytes(region_size));
		bool		reported = fav_block_contains((const uint8_t *) VARDATA_ANY(block),
												  region_size, slice->k, hash);

		pfree(block);
		if (reported)
			return true;
	}
	return false;
}

/* Fetches the bucket of the hash if the set is not loaded. */
static bool
bounded_contains(FavReader *reader, uint64_t hash)
{
	const FavBounded *set = &reader->bounded;
	struct varlena *bucket;
	bool		found;

	if (set->entries != NULL)
		return fav_bounded_contains(set, hash);
	bucket = fetch(reader, FAV_BOUNDED_HEADER_SIZE + fav_bounded_bucket_offset(set, hash),
				   FAV_BUCKET_BYTES);
	found = fav_bucket_contains((const uint8_t *) VARDATA_ANY(bucket), hash);
	pfree(bucket);
	return found;
}

bool
fav_reader_fetch_contains(FavReader *reader, uint64_t hash)
{
	if (!is_loaded(reader) &&
		reader->fetched >= (reader->size > LARGE_VALUE ? reader->size : reader->size / 4))
		load_whole(reader);
	if (reader->is_bounded)
		return bounded_contains(reader, hash);
	if (fav_reader_is_loaded(reader))
		return fav_matcher_contains(&reader->matcher, hash);
	return FAV_IS_MEMBER(fav_matcher_in_recent(&reader->matcher, hash),
						 fetch_is_reported(reader, hash),
						 fetch_has_tombstone(reader, hash));
}

void
fav_reader_contains_many(FavReader *reader, const uint64_t *hashes, size_t count, bool *answers)
{
	size_t		i;

	/* fetch single blocks until the whole value is loaded */
	for (i = 0; i < count && !fav_reader_is_loaded(reader); i++)
		answers[i] = fav_reader_fetch_contains(reader, hashes[i]);
	if (i < count)
		fav_matcher_contains_many(&reader->matcher, hashes + i, count - i, answers + i);
}
