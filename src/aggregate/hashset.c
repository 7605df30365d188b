/*
 * hashset.c
 *		See hashset.h.
 *
 * Few hashes are an array, to which they are appended.  When it is full it is
 * sorted and freed of duplicates; only if it is still more than two thirds full it
 * grows.  Where a sample shows that there is little to free, it grows right away.
 *
 * Many hashes are dealt out into buckets by their leading bits, so that they are
 * half sorted as they come and each bucket can be sorted within the processor's
 * cache.  Some hundred are dealt out at once: between two rows the executor needs the
 * cache for itself, and every hash by itself would wait for its bucket.  A bucket is
 * a list of chunks: nothing is copied as it grows, and there is no second array to
 * sort into, whose fresh pages would cost more than the sort.
 * When duplicates are looked for is decided as for the array, for all buckets at
 * once.  In the end most sets have none, and a filter is built without sorting: if
 * a hash is there twice, its second insert finds nothing to set.
 *
 * Many hashes that come from other sets stay in the parts as which they came, beside
 * the buckets, until duplicates must be freed or the filter is built.
 *
 * Either way it takes 8 bytes for each distinct hash, times at most 2.25.  As much
 * again may be allocated for chunks to come, but not touched.
 */
#include "aggregate/hashset.h"

#include "core/sort.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Small, for the many groups of a GROUP BY that see only a few rows. */
#define FIRST_ROOM			4

/* From here on a 64th of the hashes is a fair sample. */
#define SAMPLED_FROM		16384

/* An array that would have to grow beyond this is dealt out into buckets. */
#define FEW_MAX				131072

/* Chunks that are allocated at once: as many as there are, within these limits. */
#define SLAB_MIN			2048
#define SLAB_MAX			65536

/* So many hashes may look as if they were there twice; without duplicates few do. */
#define DOUBTFUL_SHARE		32

/* Passes over all hashes look for a cancel once in so many. */
#define INTERRUPT_EVERY		((size_t) 1 << 18)

/*
 * Few hashes: an array
 */

static void
settle_few(FavHashSet *set)
{
	uint64	   *scratch;

	if (set->sorted == set->count)
		return;
	scratch = MemoryContextAllocHuge(CurrentMemoryContext, set->count * sizeof(uint64));
	set->count = fav_copy_unique(set->hashes, fav_sort_hashes(set->hashes, set->count, 64, scratch), set->count);
	set->sorted = set->count;
	pfree(scratch);
}

/*
 * Are nine of ten hashes distinct?  Equal hashes fall into the same 64th of all
 * possible ones, so one of these 64ths tells for all.
 */
static bool
mostly_distinct(const FavHashSet *set)
{
	FavHashSet	sample = {0};
	size_t		taken;
	bool		result;
	size_t		i;

	for (i = 0; i < set->count; i++)
		sample.count += set->hashes[i] >> 58 == 0;
	sample.hashes = palloc((sample.count + 1) * sizeof(uint64));
	taken = sample.count;
	sample.count = 0;
	for (i = 0; i < set->count; i++)
		if (set->hashes[i] >> 58 == 0)
			sample.hashes[sample.count++] = set->hashes[i];
	settle_few(&sample);
	result = sample.count > taken / 10 * 9;
	pfree(sample.hashes);
	return result;
}

/*
 * Many hashes: buckets
 */

/* What settling a bucket or looking at it needs besides. */
typedef struct Scratch
{
	uint64	   *memory;
	size_t		room;
} Scratch;

static uint64 *
reserve_scratch(Scratch *scratch, size_t count)
{
	if (scratch->memory == NULL || scratch->room < count)
	{
		if (scratch->memory != NULL)
			pfree(scratch->memory);
		scratch->room = count + count / 8 + 1;
		scratch->memory = MemoryContextAllocHuge(CurrentMemoryContext, scratch->room * sizeof(uint64));
	}
	return scratch->memory;
}

static void
release_scratch(Scratch *scratch)
{
	if (scratch->memory != NULL)
		pfree(scratch->memory);
}

static inline int
bucket_of(uint64 hash)
{
	return (int) (hash >> (64 - FAV_BUCKET_BITS));
}

static inline FavHashBucket *
find_bucket(FavHashBuckets *many, uint64 hash)
{
	return &many->buckets[bucket_of(hash)];
}

static inline size_t
bucket_count(const FavHashBucket *bucket)
{
	return (size_t) bucket->nchunks * FAV_CHUNK - (size_t) (bucket->end - bucket->next);
}

/* How many of the hashes of a bucket are in chunk i. */
static inline size_t
chunk_count(const FavHashBucket *bucket, uint32 i)
{
	return i + 1 < bucket->nchunks ? FAV_CHUNK : (size_t) (bucket->next - bucket->chunks[i]);
}

static uint64 *
take_chunk(FavHashBuckets *many)
{
	uint64	   *chunk = many->unused;

	if (chunk != NULL)
	{
		memcpy(&many->unused, chunk, sizeof(many->unused));
		return chunk;
	}
	if (many->slab_left == 0)
	{
		many->slab_left = Min(Max(many->nchunks, SLAB_MIN), SLAB_MAX);
		many->slab = MemoryContextAllocHuge(many->context, many->slab_left * FAV_CHUNK * sizeof(uint64));
	}
	chunk = many->slab;
	many->slab += FAV_CHUNK;
	many->slab_left--;
	return chunk;
}

static void
return_chunk(FavHashBuckets *many, uint64 *chunk)
{
	memcpy(chunk, &many->unused, sizeof(many->unused));
	many->unused = chunk;
}

static void
add_chunk(FavHashBuckets *many, FavHashBucket *bucket)
{
	uint64	   *chunk;

	if (bucket->nchunks == bucket->room)
	{
		uint32		room = bucket->room == 0 ? 8 : bucket->room * 2;

		if (bucket->room == 0)
			bucket->chunks = MemoryContextAlloc(many->context, room * sizeof(uint64 *));
		else
			bucket->chunks = repalloc_huge(bucket->chunks, room * sizeof(uint64 *));
		bucket->room = room;
	}
	chunk = take_chunk(many);
	bucket->chunks[bucket->nchunks++] = chunk;
	bucket->next = chunk;
	bucket->end = chunk + FAV_CHUNK;
	many->nchunks++;
}

/* The bucket has `count` hashes, in its first chunks; the others are not needed. */
static void
set_bucket_count(FavHashBuckets *many, FavHashBucket *bucket, size_t count)
{
	uint32		nchunks = (uint32) ((count + FAV_CHUNK - 1) / FAV_CHUNK);

	while (bucket->nchunks > nchunks)
	{
		return_chunk(many, bucket->chunks[--bucket->nchunks]);
		many->nchunks--;
	}
	bucket->next = bucket->end = NULL;
	if (nchunks > 0)
	{
		bucket->end = bucket->chunks[nchunks - 1] + FAV_CHUNK;
		bucket->next = bucket->end - (nchunks * (size_t) FAV_CHUNK - count);
	}
	bucket->sorted = count;
}

/* How many hashes of a bucket there are, also in parts. */
static size_t
count_all(const FavHashBuckets *many, int i)
{
	size_t		count = bucket_count(&many->buckets[i]);
	const FavHashPart *part;

	for (part = many->parts; part != NULL; part = part->next)
		count += fav_part_count(part, i);
	return count;
}

/* All of them one after the other. */
static void
gather_all(const FavHashBuckets *many, int i, uint64 *to)
{
	const FavHashBucket *bucket = &many->buckets[i];
	const FavHashPart *part;
	uint32		j;

	for (j = 0; j < bucket->nchunks; j++)
	{
		size_t		count = chunk_count(bucket, j);

		if (j % (INTERRUPT_EVERY / FAV_CHUNK) == 0)
			CHECK_FOR_INTERRUPTS();
		fav_prefetch_chunk(bucket->chunks, (size_t) j + 3, bucket->nchunks);
		memcpy(to, bucket->chunks[j], count * sizeof(uint64));
		to += count;
	}
	for (part = many->parts; part != NULL; part = part->next)
		to = fav_part_unpack(part, i, to);
}

/* All of them, sorted and unique. */
static uint64 *
sort_all(const FavHashBuckets *many, int i, Scratch *scratch, size_t *count)
{
	size_t		taken = count_all(many, i);
	uint64	   *hashes = reserve_scratch(scratch, 2 * taken);

	gather_all(many, i, hashes);
	hashes = fav_sort_hashes(hashes, taken, 64 - FAV_BUCKET_BITS, hashes + taken);
	*count = fav_copy_unique(hashes, hashes, taken);
	return hashes;
}

static void
settle_bucket(FavHashBuckets *many, int number, Scratch *scratch)
{
	FavHashBucket *bucket = &many->buckets[number];
	uint64	   *hashes;
	size_t		count;
	size_t		i;

	if (bucket->sorted == count_all(many, number))
		return;
	hashes = sort_all(many, number, scratch, &count);
	while ((size_t) bucket->nchunks * FAV_CHUNK < count)
		add_chunk(many, bucket);
	for (i = 0; i < count; i += FAV_CHUNK)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		memcpy(bucket->chunks[i / FAV_CHUNK], hashes + i, Min(FAV_CHUNK, count - i) * sizeof(uint64));
	}
	set_bucket_count(many, bucket, count);
}

/* After this, all are in buckets. */
static void
settle_many(FavHashBuckets *many)
{
	Scratch		scratch = {0};
	int			i;

	for (i = 0; i < FAV_BUCKETS; i++)
	{
		CHECK_FOR_INTERRUPTS();
		settle_bucket(many, i, &scratch);
	}
	release_scratch(&scratch);
	while (many->parts != NULL)
	{
		FavHashPart *part = many->parts;

		many->parts = part->next;
		if (!part->lent)
			pfree(part);
	}
	many->nparted = 0;
}

/* How many duplicates are in a bucket, and how many distinct hashes?  One tells for all. */
static size_t
sample_duplicates(const FavHashBuckets *many, int i, size_t *distinct)
{
	Scratch		scratch = {0};

	*distinct = count_all(many, i);
	if (many->buckets[i].sorted < *distinct)
		sort_all(many, i, &scratch, distinct);
	release_scratch(&scratch);
	return count_all(many, i) - *distinct;
}

/* Settle, unless nine of ten hashes are distinct.  Is that so? */
static bool
settle_duplicates(FavHashBuckets *many)
{
	size_t		distinct;

	if (sample_duplicates(many, 0, &distinct) < distinct / 9)
		return true;
	settle_many(many);
	return false;
}

/* If there are more than the limit allows: free duplicates or raise it. */
static bool
reconsider_limit(FavHashBuckets *many)
{
	if (many->nchunks + many->nparted / FAV_CHUNK < many->limit)
		return false;
	if (settle_duplicates(many))
		many->limit *= 2;
	else if (many->nchunks > many->limit / 3 * 2)
		many->limit += many->limit / 2;
	return true;
}

static inline void
deal(FavHashBuckets *many, uint64 hash)
{
	FavHashBucket *bucket = find_bucket(many, hash);

	if (unlikely(bucket->next == bucket->end))
		add_chunk(many, bucket);
	*bucket->next++ = hash;
}

static void
deal_pending(FavHashBuckets *many)
{
	size_t		i;

	for (i = 0; i < many->npending; i++)
		deal(many, many->pending[i]);
	many->npending = 0;
	reconsider_limit(many);
}

/* From few to many. */
static void
deal_out(FavHashSet *set, MemoryContext context)
{
	FavHashBuckets *many = MemoryContextAllocZero(context, sizeof(FavHashBuckets));
	size_t		i;

	many->context = context;
	for (i = 0; i < set->count; i++)
		deal(many, set->hashes[i]);
	many->limit = Max(many->nchunks, FAV_BUCKETS) / 2 * 3;
	if (set->hashes != NULL)
		pfree(set->hashes);
	set->hashes = NULL;
	set->count = set->sorted = set->room = 0;
	set->many = many;
}

/*
 * All of it
 */

void
fav_hashset_grow(FavHashSet *set, MemoryContext context)
{
	size_t		room;

	if (set->many == NULL)
	{
		if (set->room == 0)
		{
			set->hashes = MemoryContextAlloc(context, FIRST_ROOM * sizeof(uint64));
			set->room = FIRST_ROOM;
			return;
		}
		if (set->count >= SAMPLED_FROM && mostly_distinct(set))
			room = set->room * 2;
		else
		{
			settle_few(set);
			if (set->count <= set->room / 3 * 2)
				return;
			room = set->room + (set->room + 1) / 2;
		}
		if (room <= FEW_MAX)
		{
			set->hashes = repalloc(set->hashes, room * sizeof(uint64));
			set->room = room;
			return;
		}
		deal_out(set, context);
	}
	deal_pending(set->many);
}

static void
count_many(FavHashSet *set)
{
	int			i;

	set->count = set->many->nparted;
	for (i = 0; i < FAV_BUCKETS; i++)
		set->count += bucket_count(&set->many->buckets[i]);
}

void
fav_hashset_settle(FavHashSet *set)
{
	if (set->many == NULL)
		settle_few(set);
	else
	{
		deal_pending(set->many);
		settle_many(set->many);
		count_many(set);
	}
}

void
fav_hashset_compact(FavHashSet *set)
{
	if (set->many == NULL)
		settle_few(set);
	else
	{
		deal_pending(set->many);
		settle_duplicates(set->many);
		if (set->many->parts != NULL)
			settle_many(set->many);
		count_many(set);
	}
}

FavSpan *
fav_hashset_spans(const FavHashSet *set, size_t *nspans)
{
	FavSpan    *spans = MemoryContextAllocHuge(CurrentMemoryContext,
											   (set->many == NULL ? 1 : set->many->nchunks) * sizeof(FavSpan));
	size_t		n = 0;
	int			i;
	uint32		j;

	if (set->many == NULL)
	{
		spans[0].hashes = set->hashes;
		spans[0].count = set->count;
		*nspans = 1;
		return spans;
	}
	Assert(set->many->parts == NULL);
	for (i = 0; i < FAV_BUCKETS; i++)
		for (j = 0; j < set->many->buckets[i].nchunks; j++)
		{
			spans[n].hashes = set->many->buckets[i].chunks[j];
			spans[n++].count = chunk_count(&set->many->buckets[i], j);
		}
	*nspans = n;
	return spans;
}

/* Stored hashes are a part, or after a zero an array. */
size_t
fav_hashset_stored_size(const FavHashSet *set)
{
	return set->many != NULL ? fav_part_size(set->count) : (1 + set->count) * sizeof(uint64);
}

/* Allocates nothing: where it is called from there may be memory that cannot be freed. */
void
fav_hashset_store(const FavHashSet *set, uint8_t *to)
{
	size_t		done = 0;
	int			i;

	if (set->many == NULL)
	{
		memset(to, 0, sizeof(uint64));
		if (set->count > 0)
			memcpy(to + sizeof(uint64), set->hashes, set->count * sizeof(uint64));
		return;
	}
	Assert(set->many->parts == NULL);
	fav_part_begin(to, set->count);
	for (i = 0; i < FAV_BUCKETS; i++)
	{
		const FavHashBucket *bucket = &set->many->buckets[i];

		fav_part_add_bucket(to, i, bucket->chunks, bucket_count(bucket), done);
		done += bucket_count(bucket);
	}
}

/* Hashes that all belong to this bucket. */
static void
append_hashes(FavHashBuckets *many, FavHashBucket *bucket, const uint8_t *stored, size_t count)
{
	while (count > 0)
	{
		size_t		fit;

		CHECK_FOR_INTERRUPTS();
		if (bucket->next == bucket->end)
			add_chunk(many, bucket);
		fit = Min(count, (size_t) (bucket->end - bucket->next));
		memcpy(bucket->next, stored, fit * sizeof(uint64));
		bucket->next += fit;
		stored += fit * sizeof(uint64);
		count -= fit;
	}
}

/* Hashes are in the order of buckets: how many of the first belong to this one? */
static size_t
how_many_in_bucket(const uint8_t *stored, size_t count, int bucket)
{
	size_t		low = 0;

	while (low < count)
	{
		size_t		middle = low + (count - low) / 2;
		uint64		hash;

		memcpy(&hash, stored + middle * sizeof(uint64), sizeof(uint64));
		if (bucket_of(hash) <= bucket)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

/* An array, in the order of buckets if there are many. */
static void
merge_hashes(FavHashSet *set, const uint8_t *stored, size_t count, MemoryContext context)
{
	uint64		hash;

	if (set->many == NULL && set->count + count > FEW_MAX)
		deal_out(set, context);
	if (set->many == NULL)
	{
		for (; count > 0; count--, stored += sizeof(uint64))
		{
			memcpy(&hash, stored, sizeof(uint64));
			fav_hashset_add(set, hash, context);
		}
		return;
	}
	while (count > 0)
	{
		size_t		here;

		memcpy(&hash, stored, sizeof(uint64));
		here = how_many_in_bucket(stored, count, bucket_of(hash));
		append_hashes(set->many, find_bucket(set->many, hash), stored, here);
		stored += here * sizeof(uint64);
		count -= here;
	}
	while (reconsider_limit(set->many))
		continue;
}

static void
add_part(FavHashBuckets *many, FavHashPart *part)
{
	part->next = many->parts;
	many->parts = part;
	many->nparted += part->count;
	while (reconsider_limit(many))
		continue;
}

void
fav_hashset_merge(FavHashSet *set, const uint8_t *stored, size_t size, MemoryContext context)
{
	uint64		parted;

	Assert(size >= sizeof(uint64));
	memcpy(&parted, stored, sizeof(uint64));
	if (parted == 0)
	{
		merge_hashes(set, stored + sizeof(uint64), size / sizeof(uint64) - 1, context);
		return;
	}
	if (set->many == NULL)
		deal_out(set, context);
	add_part(set->many, fav_part_copy(stored, size, set->many->context));
}

void
fav_hashset_lend(FavHashSet *set, FavHashPart *part, size_t size, MemoryContext context)
{
	fav_part_lend(part, size);
	if (set->many == NULL)
		deal_out(set, context);
	add_part(set->many, part);
}

void
fav_hashset_unite(FavHashSet *set, FavHashSet *other, MemoryContext context)
{
	FavSpan    *spans;
	size_t		nspans;
	size_t		i;

	fav_hashset_compact(other);
	spans = fav_hashset_spans(other, &nspans);
	for (i = 0; i < nspans; i++)
		merge_hashes(set, (const uint8_t *) spans[i].hashes, spans[i].count, context);
	pfree(spans);
}

/*
 * Building
 */

void
fav_hashset_build(FavHashSet *set, const FavParams *wanted, FavCapacity capacity, FavEditor *editor)
{
	FavParams	params = *wanted;
	FavSpan    *spans;
	size_t		nspans;
	uint64	   *hashes;
	size_t		count = 0;
	size_t		i;

	fav_hashset_settle(set);
	params.capacity = capacity(wanted->capacity, set->count);
	spans = fav_hashset_spans(set, &nspans);
	hashes = MemoryContextAllocHuge(CurrentMemoryContext, (set->count + 1) * sizeof(uint64));
	for (i = 0; i < nspans; i++)
	{
		CHECK_FOR_INTERRUPTS();
		memcpy(hashes + count, spans[i].hashes, spans[i].count * sizeof(uint64));
		count += spans[i].count;
	}
	fav_require(fav_editor_build(editor, &params, hashes, count));
	pfree(hashes);
	pfree(spans);
}
