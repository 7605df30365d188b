/*
 * hashpart.c
 *		See hashpart.h.
 */
#include "aggregate/hashpart.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* What is sent begins here. */
#define SENT_FROM			offsetof(FavHashPart, count)
#define SENT_ENDS			(offsetof(FavHashPart, ends) - SENT_FROM)
#define SENT_HASHES			(offsetof(FavHashPart, hashes) - SENT_FROM)

/* Passes over all hashes look for a cancel once in so many. */
#define INTERRUPT_EVERY		((size_t) 1 << 18)

size_t
fav_part_size(size_t count)
{
	return SENT_HASHES + count * sizeof(uint64);
}

void
fav_part_begin(uint8_t *to, size_t count)
{
	uint64		all = count;

	memcpy(to, &all, sizeof(all));
}

void
fav_part_add_bucket(uint8_t *to, int bucket, uint64 *const *chunks, size_t count, size_t before)
{
	uint64		end = before + count;
	size_t		i;

	memcpy(to + SENT_ENDS + (size_t) bucket * sizeof(end), &end, sizeof(end));
	to += SENT_HASHES + before * sizeof(uint64);
	for (i = 0; i < count; i += FAV_CHUNK)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		fav_prefetch_chunk(chunks, i / FAV_CHUNK + 3, (count + FAV_CHUNK - 1) / FAV_CHUNK);
		memcpy(to + i * sizeof(uint64), chunks[i / FAV_CHUNK], Min(FAV_CHUNK, count - i) * sizeof(uint64));
	}
}

/* Is it as it was written, so many bytes? */
static void
check_part(const FavHashPart *part, size_t size)
{
	uint64		end = 0;
	size_t		i;

	for (i = 0; i < lengthof(part->ends) && part->ends[i] >= end; i++)
		end = part->ends[i];
	if (i < lengthof(part->ends) || end != part->count || size != fav_part_size(end))
		elog(ERROR, "stored hashes are not as many as they claim");
}

FavHashPart *
fav_part_copy(const uint8_t *from, size_t size, MemoryContext context)
{
	FavHashPart *part;

	if (size < SENT_HASHES)
		elog(ERROR, "stored hashes have %zu bytes", size);
	part = MemoryContextAllocHuge(context, SENT_FROM + size);
	part->next = NULL;
	part->lent = false;
	fav_copy(fav_part_sent(part), from, size);
	check_part(part, size);
	return part;
}

size_t
fav_part_offset(void)
{
	return SENT_FROM;
}

uint8_t *
fav_part_sent(FavHashPart *part)
{
	return (uint8_t *) part + SENT_FROM;
}

void
fav_part_lend(FavHashPart *part, size_t size)
{
	part->next = NULL;
	part->lent = true;
	check_part(part, size);
}

static inline uint64
start_of(const FavHashPart *part, int bucket)
{
	return bucket == 0 ? 0 : part->ends[bucket - 1];
}

size_t
fav_part_count(const FavHashPart *part, int bucket)
{
	return part->ends[bucket] - start_of(part, bucket);
}

uint64 *
fav_part_unpack(const FavHashPart *part, int bucket, uint64 *to)
{
	size_t		count = fav_part_count(part, bucket);

	fav_copy((uint8_t *) to, (const uint8_t *) (part->hashes + start_of(part, bucket)), count * sizeof(uint64));
	return to + count;
}
