/*
 * hashpart.c
 *		See hashpart.h.
 */
#include "hashpart.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* Of a hash: the rest is known from where it is. */
#define STORED_BYTES		6

/* Leading bits of the same bucket differ in this many ways. */
#define PLACES				(1 << (FAV_PART_BITS - FAV_BUCKET_BITS))

/* What is sent begins here. */
#define SENT_FROM			offsetof(FavHashPart, count)
#define SENT_ENDS			(offsetof(FavHashPart, ends) - SENT_FROM)
#define SENT_HASHES			(offsetof(FavHashPart, hashes) - SENT_FROM)

/* Passes over all hashes look for a cancel once in so many. */
#define INTERRUPT_EVERY		((size_t) 1 << 18)

static inline int
place_of(uint64 hash)
{
	return (int) (hash >> (64 - FAV_PART_BITS) & (PLACES - 1));
}

static inline void
put(uint8_t *at, uint64 hash)
{
	uint32		low = (uint32) hash;
	uint16		high = (uint16) (hash >> 32);

	memcpy(at, &low, sizeof(low));
	memcpy(at + sizeof(low), &high, sizeof(high));
}

static inline uint64
get(const uint8_t *at)
{
	uint32		low;
	uint16		high;

	memcpy(&low, at, sizeof(low));
	memcpy(&high, at + sizeof(low), sizeof(high));
	return (uint64) high << 32 | low;
}

size_t
fav_part_size(size_t count)
{
	return SENT_HASHES + count * STORED_BYTES;
}

void
fav_part_begin(uint8_t *to, size_t count)
{
	uint64		all = count;

	memcpy(to, &all, sizeof(all));
}

/* Counted, and then placed: no more memory is needed. */
void
fav_part_add_bucket(uint8_t *to, int bucket, uint64 *const *chunks, size_t count, size_t before)
{
	uint32		next[PLACES] = {0};
	uint32		end = (uint32) before;
	size_t		i;
	size_t		j;

	for (i = 0; i < count; i += FAV_CHUNK)
	{
		const uint64 *chunk = chunks[i / FAV_CHUNK];
		size_t		here = Min(FAV_CHUNK, count - i);

		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		fav_prefetch_chunk(chunks, i / FAV_CHUNK + 3, (count + FAV_CHUNK - 1) / FAV_CHUNK);
		fav_prefetch(to + SENT_HASHES + (before + i) * STORED_BYTES, FAV_CHUNK * STORED_BYTES);
		for (j = 0; j < here; j++)
			next[place_of(chunk[j])]++;
	}
	for (i = 0; i < PLACES; i++)
	{
		uint32		here = next[i];

		next[i] = end;
		end += here;
		memcpy(to + SENT_ENDS + ((size_t) bucket * PLACES + i) * sizeof(end), &end, sizeof(end));
	}
	to += SENT_HASHES;
	for (i = 0; i < count; i += FAV_CHUNK)
	{
		const uint64 *chunk = chunks[i / FAV_CHUNK];
		size_t		here = Min(FAV_CHUNK, count - i);

		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		for (j = 0; j < here; j++)
			put(to + (size_t) next[place_of(chunk[j])]++ * STORED_BYTES, chunk[j]);
	}
}

FavHashPart *
fav_part_copy(const uint8_t *from, size_t size, MemoryContext context)
{
	FavHashPart *part;
	uint32		end = 0;
	size_t		i;

	if (size < SENT_HASHES)
		elog(ERROR, "stored hashes have %zu bytes", size);
	part = MemoryContextAllocHuge(context, SENT_FROM + size);
	part->next = NULL;
	fav_copy((uint8_t *) part + SENT_FROM, from, size);
	for (i = 0; i < lengthof(part->ends) && part->ends[i] >= end; i++)
		end = part->ends[i];
	if (i < lengthof(part->ends) || end != part->count || size != fav_part_size(end))
		elog(ERROR, "stored hashes are not as many as they claim");
	return part;
}

static inline uint32
start_of(const FavHashPart *part, int bucket)
{
	return bucket == 0 ? 0 : part->ends[bucket * PLACES - 1];
}

size_t
fav_part_count(const FavHashPart *part, int bucket)
{
	return part->ends[bucket * PLACES + PLACES - 1] - start_of(part, bucket);
}

uint64 *
fav_part_unpack(const FavHashPart *part, int bucket, uint64 *to)
{
	size_t		from = start_of(part, bucket);
	int			i;

	for (i = bucket * PLACES; i < (bucket + 1) * PLACES; i++)
	{
		uint64		leading = (uint64) i << (64 - FAV_PART_BITS);
		size_t		end = part->ends[i];

		for (; from < end; from++)
		{
			if (from % INTERRUPT_EVERY == 0)
				CHECK_FOR_INTERRUPTS();
			*to++ = leading | get(part->hashes + from * STORED_BYTES);
		}
	}
	return to;
}
