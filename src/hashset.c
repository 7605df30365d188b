/*
 * hashset.c
 *		See hashset.h.
 *
 * An array to which hashes are appended.  When it is full it is sorted and freed
 * of duplicates; only if it is still more than two thirds full it grows.  So it
 * takes 8 bytes for each distinct hash, times at most 2.25.  Where a sample shows
 * that there is little to free, it grows right away.
 */
#include "hashset.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* Small, for the many groups of a GROUP BY that see only a few rows. */
#define FIRST_ROOM			4

/* From here on a 64th of the hashes is a fair sample. */
#define SAMPLED_FROM		16384

/* So many fit the processor's cache. */
#define CACHED				8192

/* Passes over all hashes look for a cancel once in so many. */
#define INTERRUPT_EVERY		((size_t) 1 << 18)

/* So many are sorted by insertion alone. */
#define FEW					32

static void
sort_by_insertion(uint64 *hashes, size_t count)
{
	size_t		i;

	for (i = 1; i < count; i++)
	{
		uint64		hash = hashes[i];
		size_t		at = i;

		for (; at > 0 && hashes[at - 1] > hash; at--)
			hashes[at] = hashes[at - 1];
		hashes[at] = hash;
	}
}

/* However many, with looks for a cancel. */
static inline void
copy_hashes(uint64 *to, const uint64 *from, size_t count)
{
	fav_copy((uint8_t *) to, (const uint8_t *) from, count * sizeof(uint64));
}

/*
 * Sort into `to` by one byte after the other, from the last; `from` is overwritten.
 * Slower than the ways below, but takes the same time for any hashes in any order.
 */
static void
sort_by_bytes(uint64 *from, size_t count, uint64 *to)
{
	uint64	   *result = to;
	int			shift;

	for (shift = 0; shift < 64; shift += 8)
	{
		size_t		next[257] = {0};
		uint64	   *swap = from;
		size_t		i;

		for (i = 0; i < count; i++)
		{
			if (i % INTERRUPT_EVERY == 0)
				CHECK_FOR_INTERRUPTS();
			next[(from[i] >> shift & 255) + 1]++;
		}
		for (i = 1; i < 256; i++)
			next[i] += next[i - 1];
		for (i = 0; i < count; i++)
		{
			if (i % INTERRUPT_EVERY == 0)
				CHECK_FOR_INTERRUPTS();
			to[next[from[i] >> shift & 255]++] = from[i];
		}
		from = to;
		to = swap;
	}

	/* the last of eight steps went back to where the first came from */
	copy_hashes(result, from, count);
}

/*
 * Sort into `to` hashes whose bits from `bits` upwards are all the same.  They are
 * spread evenly over what is left, so that with as many places as hashes nearly
 * each has a place of its own, and insertion has little left to do.  If they are
 * uneven, because many are the same or because somebody chose them so, they are
 * sorted by bytes.  `from` is overwritten.
 */
static void
sort_bucket(uint64 *from, size_t count, int bits, uint64 *to)
{
	uint16		next[CACHED + 1];
	int			digit;
	int			shift;
	size_t		nplaces;
	size_t		crowd = 0;
	size_t		i;

	if (count > CACHED)
	{
		sort_by_bytes(from, count, to);
		return;
	}
	if (count <= 1)
	{
		memcpy(to, from, count * sizeof(uint64));
		return;
	}
	digit = Min(pg_leftmost_one_pos64(count), bits);
	shift = bits - digit;
	Assert(digit >= 0 && digit < 64 && shift >= 0 && shift < 64);
	nplaces = (size_t) 1 << digit;
	memset(next, 0, (nplaces + 1) * sizeof(uint16));
	for (i = 0; i < count; i++)
		next[(from[i] >> shift & (nplaces - 1)) + 1]++;
	for (i = 1; i <= nplaces; i++)
	{
		crowd = Max(crowd, next[i]);
		next[i] += next[i - 1];
	}
	if (crowd > 32)
	{
		sort_by_bytes(from, count, to);
		return;
	}
	for (i = 0; i < count; i++)
		to[next[from[i] >> shift & (nplaces - 1)]++] = from[i];
	sort_by_insertion(to, count);
}

/*
 * Sort by the leading bits into buckets that fit the processor's cache, and then
 * each bucket.  `scratch` has room for as many.
 */
static void
sort_hashes(uint64 *hashes, size_t count, uint64 *scratch)
{
	int			digit = count <= CACHED / 2 ? 0 : pg_leftmost_one_pos64(count / (CACHED / 4));
	int			shift = 64 - digit;
	size_t		nbuckets = (size_t) 1 << digit;
	size_t	   *end;
	size_t		start = 0;
	size_t		i;

	if (digit == 0)
	{
		memcpy(scratch, hashes, count * sizeof(uint64));
		sort_bucket(scratch, count, 64, hashes);
		return;
	}
	end = palloc0((nbuckets + 1) * sizeof(size_t));
	for (i = 0; i < count; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		end[(hashes[i] >> shift) + 1]++;
	}
	for (i = 1; i <= nbuckets; i++)
		end[i] += end[i - 1];
	for (i = 0; i < count; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		scratch[end[hashes[i] >> shift]++] = hashes[i];
	}
	for (i = 0; i < nbuckets; i++)
	{
		if (i % 64 == 0)
			CHECK_FOR_INTERRUPTS();
		sort_bucket(scratch + start, end[i] - start, shift, hashes + start);
		start = end[i];
	}
	pfree(end);
}

void
fav_hashset_settle(FavHashSet *set)
{
	size_t		kept = 0;
	size_t		i;

	if (set->sorted == set->count)
		return;
	if (set->count <= FEW)
		sort_by_insertion(set->hashes, set->count);
	else
	{
		uint64	   *scratch;

		/* what is not needed makes up for the scratch memory */
		if (set->count > CACHED && set->count < set->room)
		{
			set->hashes = repalloc_huge(set->hashes, set->count * sizeof(uint64));
			set->room = set->count;
		}
		scratch = MemoryContextAllocHuge(CurrentMemoryContext, set->count * sizeof(uint64));
		sort_hashes(set->hashes, set->count, scratch);
		pfree(scratch);
	}
	for (i = 0; i < set->count; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (kept == 0 || set->hashes[kept - 1] != set->hashes[i])
			set->hashes[kept++] = set->hashes[i];
	}
	set->count = kept;
	set->sorted = kept;
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
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		sample.count += set->hashes[i] >> 58 == 0;
	}
	sample.hashes = MemoryContextAllocHuge(CurrentMemoryContext, (sample.count + 1) * sizeof(uint64));
	taken = sample.count;
	sample.count = 0;
	for (i = 0; i < set->count; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (set->hashes[i] >> 58 == 0)
			sample.hashes[sample.count++] = set->hashes[i];
	}
	fav_hashset_settle(&sample);
	result = sample.count > taken / 10 * 9;
	pfree(sample.hashes);
	return result;
}

void
fav_hashset_grow(FavHashSet *set, MemoryContext context)
{
	size_t		room;

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
		fav_hashset_settle(set);
		if (set->count <= set->room / 3 * 2)
			return;
		room = set->room + (set->room + 1) / 2;
	}
	set->hashes = repalloc_huge(set->hashes, room * sizeof(uint64));
	set->room = room;
}

/* Two lists that ascend become one: no sort is needed after that. */
void
fav_hashset_merge(FavHashSet *set, FavHashSet *other, MemoryContext context)
{
	uint64	   *merged;
	size_t		count = 0;
	size_t		i = 0;
	size_t		j = 0;

	fav_hashset_settle(set);
	fav_hashset_settle(other);
	if (other->count == 0)
		return;
	merged = MemoryContextAllocHuge(context, (set->count + other->count) * sizeof(uint64));
	while (i < set->count && j < other->count)
	{
		uint64		a = set->hashes[i];
		uint64		b = other->hashes[j];

		if (count % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		merged[count++] = a < b ? a : b;
		i += a <= b;
		j += b <= a;
	}
	if (i < set->count)
		copy_hashes(merged + count, set->hashes + i, set->count - i);
	count += set->count - i;
	copy_hashes(merged + count, other->hashes + j, other->count - j);
	count += other->count - j;
	if (set->hashes != NULL)
		pfree(set->hashes);
	set->room = set->count + other->count;
	set->hashes = merged;
	set->count = set->sorted = count;
}
