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
 * cache.  A bucket is a list of chunks: nothing is copied as it grows, and there is
 * no second array to sort into, whose fresh pages would cost more than the sort.
 * When duplicates are looked for is decided as for the array, for all buckets at
 * once.
 *
 * Either way it takes 8 bytes for each distinct hash, times at most 2.25.
 */
#include "hashset.h"

#include "hashsort.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Small, for the many groups of a GROUP BY that see only a few rows. */
#define FIRST_ROOM			4

/* From here on a 64th of the hashes is a fair sample. */
#define SAMPLED_FROM		16384

/* An array that would have to grow beyond this is dealt out into buckets. */
#define FEW_MAX				131072

/* Hashes in a chunk: few enough that half a chunk lost in each bucket does not matter. */
#define CHUNK				256

#define BUCKETS				(1 << FAV_BUCKET_BITS)

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

/* What settling or merging buckets needs besides them. */
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

static inline size_t
bucket_count(const FavHashBucket *bucket)
{
	return (size_t) bucket->nchunks * CHUNK - (size_t) (bucket->end - bucket->next);
}

/* How many of the hashes of a bucket are in chunk i. */
static inline size_t
chunk_count(const FavHashBucket *bucket, uint32 i)
{
	return i + 1 < bucket->nchunks ? CHUNK : (size_t) (bucket->next - bucket->chunks[i]);
}

static void
add_chunk(FavHashBuckets *many, FavHashBucket *bucket, MemoryContext context)
{
	uint64	   *chunk;

	if (bucket->nchunks == bucket->room)
	{
		uint32		room = bucket->room == 0 ? 8 : bucket->room * 2;

		if (bucket->room == 0)
			bucket->chunks = MemoryContextAlloc(context, room * sizeof(uint64 *));
		else
			bucket->chunks = repalloc_huge(bucket->chunks, room * sizeof(uint64 *));
		bucket->room = room;
	}
	chunk = MemoryContextAlloc(context, CHUNK * sizeof(uint64));
	bucket->chunks[bucket->nchunks++] = chunk;
	bucket->next = chunk;
	bucket->end = chunk + CHUNK;
	many->nchunks++;
}

/* The bucket has `count` hashes, in its first chunks; the others are not needed. */
static void
set_bucket_count(FavHashBuckets *many, FavHashBucket *bucket, size_t count)
{
	uint32		nchunks = (uint32) ((count + CHUNK - 1) / CHUNK);

	while (bucket->nchunks > nchunks)
	{
		pfree(bucket->chunks[--bucket->nchunks]);
		many->nchunks--;
	}
	bucket->next = bucket->end = NULL;
	if (nchunks > 0)
	{
		bucket->end = bucket->chunks[nchunks - 1] + CHUNK;
		bucket->next = bucket->end - (nchunks * (size_t) CHUNK - count);
	}
	bucket->sorted = count;
}

static void
gather_bucket(const FavHashBucket *bucket, uint64 *to)
{
	uint32		i;

	for (i = 0; i < bucket->nchunks; i++, to += CHUNK)
	{
		if (i % (INTERRUPT_EVERY / CHUNK) == 0)
			CHECK_FOR_INTERRUPTS();
		memcpy(to, bucket->chunks[i], chunk_count(bucket, i) * sizeof(uint64));
	}
}

static void
settle_bucket(FavHashBuckets *many, FavHashBucket *bucket, Scratch *scratch)
{
	size_t		count = bucket_count(bucket);
	uint64	   *hashes;
	size_t		i;

	if (bucket->sorted == count)
		return;
	hashes = reserve_scratch(scratch, 2 * count);
	gather_bucket(bucket, hashes);
	hashes = fav_sort_hashes(hashes, count, 64 - FAV_BUCKET_BITS, hashes + count);
	count = fav_copy_unique(hashes, hashes, count);
	for (i = 0; i < count; i += CHUNK)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		memcpy(bucket->chunks[i / CHUNK], hashes + i, Min(CHUNK, count - i) * sizeof(uint64));
	}
	set_bucket_count(many, bucket, count);
}

static void
settle_many(FavHashBuckets *many)
{
	Scratch		scratch = {0};
	int			i;

	for (i = 0; i < BUCKETS; i++)
	{
		CHECK_FOR_INTERRUPTS();
		settle_bucket(many, &many->buckets[i], &scratch);
	}
	release_scratch(&scratch);
}

/*
 * As many chunks as the limit allows: free duplicates or raise it.  One bucket
 * tells for all whether nine of ten hashes are distinct.
 */
static void
reconsider_limit(FavHashBuckets *many)
{
	FavHashBucket *sample = &many->buckets[0];
	size_t		taken = bucket_count(sample);
	Scratch		scratch = {0};

	settle_bucket(many, sample, &scratch);
	release_scratch(&scratch);
	if (sample->sorted > taken / 10 * 9)
		many->limit *= 2;
	else
	{
		settle_many(many);
		if (many->nchunks > many->limit / 3 * 2)
			many->limit += many->limit / 2;
	}
}

/* From few to many. */
static void
deal_out(FavHashSet *set, MemoryContext context)
{
	FavHashBuckets *many = MemoryContextAllocZero(context, sizeof(FavHashBuckets));
	size_t		i;

	for (i = 0; i < set->count; i++)
	{
		FavHashBucket *bucket = fav_hash_bucket(many, set->hashes[i]);

		if (bucket->next == bucket->end)
			add_chunk(many, bucket, context);
		*bucket->next++ = set->hashes[i];
	}
	many->limit = Max(many->nchunks, BUCKETS) / 2 * 3;
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
fav_hashset_grow(FavHashSet *set, uint64 hash, MemoryContext context)
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
	if (set->many->nchunks >= set->many->limit)
		reconsider_limit(set->many);
	if (fav_hash_bucket(set->many, hash)->next == fav_hash_bucket(set->many, hash)->end)
		add_chunk(set->many, fav_hash_bucket(set->many, hash), context);
}

void
fav_hashset_settle(FavHashSet *set)
{
	int			i;

	if (set->many == NULL)
	{
		settle_few(set);
		return;
	}
	settle_many(set->many);
	set->count = 0;
	for (i = 0; i < BUCKETS; i++)
		set->count += set->many->buckets[i].sorted;
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
	for (i = 0; i < BUCKETS; i++)
		for (j = 0; j < set->many->buckets[i].nchunks; j++)
		{
			spans[n].hashes = set->many->buckets[i].chunks[j];
			spans[n++].count = chunk_count(&set->many->buckets[i], j);
		}
	*nspans = n;
	return spans;
}

void
fav_hashset_store(const FavHashSet *set, uint8_t *to)
{
	size_t		nspans;
	FavSpan    *spans = fav_hashset_spans(set, &nspans);
	size_t		i;
	size_t		j;

	for (i = 0; i < nspans; i++)
	{
		if (i % (INTERRUPT_EVERY / CHUNK) == 0)
			CHECK_FOR_INTERRUPTS();
		for (j = 0; j < spans[i].count; j++, to += sizeof(uint64))
			fav_store64(to, spans[i].hashes[j]);
	}
	pfree(spans);
}

/*
 * Two ascending lists become one.
 */
typedef struct Merge
{
	const uint64 *ours;
	size_t		nours;
	const uint8_t *theirs;		/* stored */
	size_t		ntheirs;
	size_t		i;				/* so many of ours are merged, */
	size_t		j;				/* and of theirs */
} Merge;

/* The next of both, at most `room`.  Fewer: there are no more. */
static size_t
merge_next(Merge *merge, uint64 *to, size_t room)
{
	const uint64 *ours = merge->ours;
	const uint8_t *theirs = merge->theirs;
	size_t		i = merge->i;
	size_t		j = merge->j;
	size_t		merged = 0;
	size_t		end;

	/*
	 * So many steps pass no end, wherever they lead: nothing to look at in
	 * between.  Indexes, not pointers, because gcc makes a branch of the latter,
	 * which would be mispredicted half of the time.
	 */
	while ((end = merged + Min(Min(merge->nours - i, merge->ntheirs - j), room - merged)) > merged)
		for (; merged < end; merged++)
		{
			uint64		a = ours[i];
			uint64		b = fav_load64(theirs + j * sizeof(uint64));

			to[merged] = a < b ? a : b;
			i += a <= b;
			j += b <= a;
		}

	/* one of them may be left */
	while (merged < room && i < merge->nours)
		to[merged++] = ours[i++];
	while (merged < room && j < merge->ntheirs)
		to[merged++] = fav_load64(theirs + j++ * sizeof(uint64));
	merge->i = i;
	merge->j = j;
	return merged;
}

static void
merge_few(FavHashSet *set, const uint8_t *stored, size_t count, MemoryContext context)
{
	uint64	   *merged = MemoryContextAlloc(context, (set->count + count) * sizeof(uint64));
	Merge		merge = {0};

	settle_few(set);
	merge.ours = set->hashes;
	merge.nours = set->count;
	merge.theirs = stored;
	merge.ntheirs = count;
	set->room = set->count + count;
	set->count = set->sorted = merge_next(&merge, merged, set->room);
	if (set->hashes != NULL)
		pfree(set->hashes);
	set->hashes = merged;
}

static void
merge_bucket(FavHashBuckets *many, FavHashBucket *bucket, const uint8_t *stored, size_t count,
			 Scratch *scratch, MemoryContext context)
{
	size_t		total = 0;
	uint32		i;
	Merge		merge = {0};

	settle_bucket(many, bucket, scratch);
	merge.ours = reserve_scratch(scratch, bucket->sorted);
	merge.nours = bucket->sorted;
	merge.theirs = stored;
	merge.ntheirs = count;
	gather_bucket(bucket, scratch->memory);
	while ((size_t) bucket->nchunks * CHUNK < bucket->sorted + count)
		add_chunk(many, bucket, context);
	for (i = 0; i < bucket->nchunks; i++)
	{
		if (i % (INTERRUPT_EVERY / CHUNK) == 0)
			CHECK_FOR_INTERRUPTS();
		total += merge_next(&merge, bucket->chunks[i], CHUNK);
	}
	set_bucket_count(many, bucket, total);
}

static void
merge_many(FavHashBuckets *many, const uint8_t *stored, size_t count, MemoryContext context)
{
	Scratch		scratch = {0};
	int			i;

	for (i = 0; i < BUCKETS; i++)
	{
		FavHashBucket *bucket = &many->buckets[i];
		size_t		here = count;

		if (i + 1 < BUCKETS)
			here = fav_hashes_position(stored, (uint32) count, (uint64) (i + 1) << (64 - FAV_BUCKET_BITS));
		count -= here;
		CHECK_FOR_INTERRUPTS();
		if (bucket_count(bucket) + here > bucket->sorted + bucket->sorted / 4)
		{
			merge_bucket(many, bucket, stored, here, &scratch, context);
			stored += here * sizeof(uint64);
		}
		else
			for (; here > 0; here--, stored += sizeof(uint64))
			{
				if (bucket->next == bucket->end)
					add_chunk(many, bucket, context);
				*bucket->next++ = fav_load64(stored);
			}
	}
	release_scratch(&scratch);
	many->limit = Max(many->limit, many->nchunks);
}

/*
 * A merge goes over all of the set.  For a list far shorter than it that would be a
 * waste, if there are many such lists: its hashes are added, and sorted later.
 */
void
fav_hashset_merge(FavHashSet *set, const uint8_t *stored, size_t count, MemoryContext context)
{
	if (set->many == NULL && set->count + count > FEW_MAX)
		deal_out(set, context);
	if (set->many != NULL)
		merge_many(set->many, stored, count, context);
	else if (count > set->count / 4)
		merge_few(set, stored, count, context);
	else
		for (; count > 0; count--, stored += sizeof(uint64))
			fav_hashset_add(set, fav_load64(stored), context);
}
