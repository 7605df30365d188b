/*
 * sort.c
 *		See sort.h.
 */
#include "sort.h"

/* So many hashes fit the processor's cache. */
#define CACHED				8192

/* Passes over all hashes pause after so many. */
#define PAUSE_EVERY			((size_t) 1 << 18)

/* So many hashes are sorted by insertion alone. */
#define INSERTED_MAX		32

/* The highest bit that is set; there is one. */
static inline int
leading_bit(size_t number)
{
	int			bit = 0;

	while (number >>= 1)
		bit++;
	return bit;
}

static void
sort_by_insertion(uint64_t *hashes, size_t count)
{
	size_t		i;

	for (i = 1; i < count; i++)
	{
		uint64_t	hash = hashes[i];
		size_t		at = i;

		for (; at > 0 && hashes[at - 1] > hash; at--)
			hashes[at] = hashes[at - 1];
		hashes[at] = hash;
	}
}

/* Any number of hashes, with pauses. */
static inline void
copy_hashes(uint64_t *to, const uint64_t *from, size_t count)
{
	fav_copy((uint8_t *) to, (const uint8_t *) from, count * sizeof(uint64_t));
}

/*
 * Sort into `to` by one byte after the other, from the last; `from` is overwritten.
 * Slower than the ways below, but takes the same time for any hashes in any order.
 */
static void
sort_by_bytes(uint64_t *from, size_t count, uint64_t *to)
{
	uint64_t   *result = to;
	int			shift;

	for (shift = 0; shift < 64; shift += 8)
	{
		size_t		next[257] = {0};
		uint64_t   *swap = from;
		size_t		i;

		for (i = 0; i < count; i++)
		{
			if (i % PAUSE_EVERY == 0)
				fav_pause();
			next[(from[i] >> shift & 255) + 1]++;
		}
		for (i = 1; i < 256; i++)
			next[i] += next[i - 1];
		for (i = 0; i < count; i++)
		{
			if (i % PAUSE_EVERY == 0)
				fav_pause();
			to[next[from[i] >> shift & 255]++] = from[i];
		}
		from = to;
		to = swap;
	}

	/* the last of eight steps went back to where the first came from */
	copy_hashes(result, from, count);
}

/*
 * Sort into `to` hashes that differ only in their lowest `bits` bits.  With as many places as
 * hashes, nearly each hash has a place of its own, and insertion has little left to do.
 * Uneven hashes, because many are equal or because somebody chose them, are sorted by bytes.
 * `from` is overwritten.
 */
static void
sort_bucket(uint64_t *from, size_t count, int bits, uint64_t *to)
{
	uint16_t	next[CACHED + 1];
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
		memcpy(to, from, count * sizeof(uint64_t));
		return;
	}
	digit = leading_bit(count);
	if (digit > bits)
		digit = bits;
	shift = bits - digit;
	nplaces = (size_t) 1 << digit;
	memset(next, 0, (nplaces + 1) * sizeof(uint16_t));
	for (i = 0; i < count; i++)
		next[(from[i] >> shift & (nplaces - 1)) + 1]++;
	for (i = 1; i <= nplaces; i++)
	{
		crowd = next[i] > crowd ? next[i] : crowd;
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
 * By the leading bits into buckets that fit the processor's cache, and then each
 * bucket.
 */
uint64_t *
fav_sort_hashes(uint64_t *hashes, size_t count, int bits, uint64_t *scratch)
{
	int			digit = count <= CACHED / 2 ? 0 : leading_bit(count / (CACHED / 4));
	int			shift = bits - digit;
	size_t		nbuckets = (size_t) 1 << digit;
	size_t	   *end;
	size_t		start = 0;
	size_t		i;

	if (count <= INSERTED_MAX)
	{
		sort_by_insertion(hashes, count);
		return hashes;
	}
	if (digit == 0)
	{
		sort_bucket(hashes, count, bits, scratch);
		return scratch;
	}
	end = fav_alloc((nbuckets + 1) * sizeof(size_t));
	if (end == NULL)
	{
		sort_by_bytes(hashes, count, scratch);
		return scratch;
	}
	memset(end, 0, (nbuckets + 1) * sizeof(size_t));
	for (i = 0; i < count; i++)
	{
		if (i % PAUSE_EVERY == 0)
			fav_pause();
		end[(hashes[i] >> shift & (nbuckets - 1)) + 1]++;
	}
	for (i = 1; i <= nbuckets; i++)
		end[i] += end[i - 1];
	for (i = 0; i < count; i++)
	{
		if (i % PAUSE_EVERY == 0)
			fav_pause();
		scratch[end[hashes[i] >> shift & (nbuckets - 1)]++] = hashes[i];
	}
	for (i = 0; i < nbuckets; i++)
	{
		if (i % 32 == 0)
			fav_pause();
		sort_bucket(scratch + start, end[i] - start, shift, hashes + start);
		start = end[i];
	}
	fav_free(end);
	return hashes;
}

size_t
fav_copy_unique(uint64_t *to, const uint64_t *from, size_t count)
{
	size_t		kept = 0;
	size_t		i;

	if (count == 0)
		return 0;
	for (i = 0; i + 1 < count; i++)
	{
		if (i % PAUSE_EVERY == 0)
			fav_pause();
		to[kept] = from[i];
		kept += from[i] != from[i + 1];
	}
	to[kept] = from[i];
	return kept + 1;
}
