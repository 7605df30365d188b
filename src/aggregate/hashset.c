/*
 * hashset.c
 *		See hashset.h.
 *
 * The set is one array.  Its prefix is ascending and unique; new hashes are appended.  When the
 * array is full, the new hashes are sorted and merged into the prefix, which removes duplicates.
 * If the array is then still more than two thirds full, it grows.  So each hash is sorted once
 * and merged a few times at most, for any hashes in any order.
 *
 * The array has capacity for at most 1.5 times the number of distinct hashes.  Sorting needs a
 * copy of the new hashes, a third of the array.  So the set needs at most 16 bytes per distinct
 * hash.  (Small sets grow faster and need at most 24.)
 */
#include "aggregate/hashset.h"

#include "miscadmin.h"

/* Small, because a GROUP BY may have many groups of a few rows each. */
#define FIRST_CAPACITY		4

/* Sets of up to this many hashes double when they grow. */
#define SMALL_SET			1024

/* The number of hashes that a loop handles between two checks for interrupts. */
#define INTERRUPT_EVERY		((size_t) 1 << 18)

/*
 * Hashes are merged at once if the set is at most this many times as large.  Fewer hashes are
 * appended instead, because each merge reads the whole set.
 */
#define MERGED_FRACTION		8

void
fav_hashset_init(FavHashSet *set, MemoryContext context)
{
	set->hashes = MemoryContextAlloc(context, FIRST_CAPACITY * sizeof(uint64));
	set->count = 0;
	set->sorted = 0;
	set->capacity = FIRST_CAPACITY;
}

static void
set_capacity(FavHashSet *set, size_t capacity)
{
	set->hashes = repalloc_huge(set->hashes, capacity * sizeof(uint64));
	set->capacity = capacity;
}

void
fav_hashset_reserve(FavHashSet *set, size_t count)
{
	if (set->capacity - set->count < count)
		set_capacity(set, set->count + count);
}

/*
 * Sorting
 *
 * Hashes are spread evenly, unless an attacker chose them.
 */

/* This many hashes are sorted by insertion. */
#define FEW_HASHES			32

/* Hashes are distributed by at most this many bits at once. */
#define DIGIT_BITS			11

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

/*
 * Sort into `to` hashes that differ only in their lowest `bits` bits; `from` is overwritten.
 *
 * The next bits distribute the hashes over as many places, up to 2^DIGIT_BITS.  If each place
 * has a few hashes, insertion does the rest.  Otherwise the places are sorted in the same way.
 * Even hashes need one or two rounds.  Any hashes need at most 13, because more than
 * FEW_HASHES are distributed by five bits or more.
 */
static void
sort_hashes(uint64 *from, size_t count, int bits, uint64 *to)
{
	size_t		end[(1 << DIGIT_BITS) + 1]; /* of each place in `to` */
	size_t		start = 0;
	size_t		most = 0;
	size_t		nplaces;
	size_t		i;
	int			shift = bits;

	CHECK_FOR_INTERRUPTS();
	if (count <= FEW_HASHES || bits == 0)
	{
		fav_copy((uint8_t *) to, (const uint8_t *) from, count * sizeof(uint64));
		if (bits > 0)
			sort_by_insertion(to, count);
		return;
	}
	while (shift > 0 && bits - shift < DIGIT_BITS && (size_t) 2 << (bits - shift) <= count)
		shift--;
	nplaces = (size_t) 1 << (bits - shift);
	memset(end, 0, (nplaces + 1) * sizeof(size_t));
	for (i = 0; i < count; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		end[(from[i] >> shift & (nplaces - 1)) + 1]++;
	}
	for (i = 1; i <= nplaces; i++)
	{
		most = Max(most, end[i]);
		end[i] += end[i - 1];
	}
	for (i = 0; i < count; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		to[end[from[i] >> shift & (nplaces - 1)]++] = from[i];
	}
	if (most <= FEW_HASHES)
	{
		sort_by_insertion(to, count);
		return;
	}
	for (i = 0; i < nplaces; i++)
	{
		sort_hashes(to + start, end[i] - start, shift, from + start);
		start = end[i];
	}
	fav_copy((uint8_t *) to, (const uint8_t *) from, count * sizeof(uint64));
}

/* Remove the duplicates of sorted hashes; returns how many are left. */
static size_t
remove_duplicates(uint64 *hashes, size_t count)
{
	size_t		kept = 0;
	size_t		i;

	for (i = 0; i < count; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		hashes[kept] = hashes[i];
		kept += i + 1 == count || hashes[i] != hashes[i + 1];
	}
	return kept;
}

/*
 * Merge hashes into the prefix, from the end of both.  The hashes are ascending and unique, the
 * set has none after its prefix, and its capacity is large enough for both.
 */
static void
merge(FavHashSet *set, const uint64 *hashes, size_t count)
{
	uint64	   *into = set->hashes;
	size_t		end = set->count + count;
	size_t		i = set->count;
	size_t		j = count;
	size_t		k = end;

	while (i > 0 && j > 0)
	{
		size_t		stop = k - Min(Min(i, j), INTERRUPT_EVERY);

		CHECK_FOR_INTERRUPTS();
		while (k > stop)
		{
			uint64		x = into[i - 1];
			uint64		y = hashes[j - 1];

			/* without a branch, which would be unpredictable; equal hashes become one */
			into[--k] = x > y ? x : y;
			i -= x >= y;
			j -= y >= x;
		}
	}
	k -= j;
	fav_copy((uint8_t *) (into + k), (const uint8_t *) hashes, j * sizeof(uint64));

	/* the first i hashes have not moved; duplicates have left a gap after them */
	if (k > i)
		fav_copy((uint8_t *) (into + i), (const uint8_t *) (into + k), (end - k) * sizeof(uint64));
	set->count = set->sorted = i + end - k;
}

void
fav_hashset_sort(FavHashSet *set)
{
	size_t		count = set->count - set->sorted;
	uint64	   *tail = set->hashes + set->sorted;
	uint64	   *hashes;

	if (count == 0)
		return;
	hashes = MemoryContextAllocHuge(CurrentMemoryContext, count * sizeof(uint64));
	sort_hashes(tail, count, 64, hashes);
	count = remove_duplicates(hashes, count);
	set->count = set->sorted;
	merge(set, hashes, count);
	pfree(hashes);
}

void
fav_hashset_grow(FavHashSet *set)
{
	fav_hashset_sort(set);
	if (set->count > set->capacity - set->capacity / 3)
		set_capacity(set, set->count + (set->count <= SMALL_SET ? set->count : set->count / 2));
}

void
fav_hashset_unite(FavHashSet *set, const uint64 *hashes, size_t count)
{
	size_t		i;

	if (count < set->count / MERGED_FRACTION)
	{
		for (i = 0; i < count; i++)
		{
			if (i % INTERRUPT_EVERY == 0)
				CHECK_FOR_INTERRUPTS();
			fav_hashset_add(set, hashes[i]);
		}
		return;
	}
	fav_hashset_sort(set);
	fav_hashset_reserve(set, count);
	merge(set, hashes, count);
}

/*
 * The state of an aggregate
 */

#define STATE_VERSION		1

#define AT_VERSION			0
#define AT_KIND				1
#define AT_REGION_SIZE		2
#define AT_RESERVED			3
#define AT_CAPACITY			4
#define AT_SEED				12
#define AT_ERROR_RATE		20
#define AT_COUNT			28
#define AT_HASHES			36

void
fav_state_init(FavAggState *state, const FavParams *params, MemoryContext context)
{
	state->params = *params;
	fav_hashset_init(&state->set, context);
}

void
fav_state_unite(FavAggState *state, FavAggState *other)
{
	fav_hashset_sort(&other->set);
	fav_hashset_unite(&state->set, other->set.hashes, other->set.count);
}

size_t
fav_state_size(const FavAggState *state)
{
	return AT_HASHES + state->set.count * sizeof(uint64);
}

uint8_t *
fav_state_write(const FavAggState *state, uint8_t *to)
{
	uint64		error_rate;
	size_t		i;

	memcpy(&error_rate, &state->params.error_rate, sizeof(error_rate));
	to[AT_VERSION] = STATE_VERSION;
	to[AT_KIND] = (uint8_t) state->params.kind;
	to[AT_REGION_SIZE] = (uint8_t) state->params.region_size;
	to[AT_RESERVED] = 0;
	fav_store64(to + AT_CAPACITY, state->params.capacity);
	fav_store64(to + AT_SEED, state->params.seed);
	fav_store64(to + AT_ERROR_RATE, error_rate);
	fav_store64(to + AT_COUNT, state->set.count);
	to += AT_HASHES;
	for (i = 0; i < state->set.count; i++, to += sizeof(uint64))
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		fav_store64(to, state->set.hashes[i]);
	}
	return to;
}

const char *
fav_state_read(FavAggState *state, const uint8_t *bytes, size_t size, size_t *used)
{
	FavParams	params;
	uint64		error_rate;
	uint64		count;
	size_t		i;

	if (size < AT_HASHES)
		return "It is too short.";
	if (bytes[AT_VERSION] != STATE_VERSION || bytes[AT_RESERVED] != 0)
		return "It has an unknown version.";
	params.kind = bytes[AT_KIND];
	params.keep = 0;
	params.region_size = bytes[AT_REGION_SIZE];
	params.capacity = fav_load64(bytes + AT_CAPACITY);
	params.seed = fav_load64(bytes + AT_SEED);
	error_rate = fav_load64(bytes + AT_ERROR_RATE);
	memcpy(&params.error_rate, &error_rate, sizeof(error_rate));
	count = fav_load64(bytes + AT_COUNT);
	if (params.kind > FAV_KIND_PAIR || (params.kind == FAV_KIND_NONE && count > 0))
		return "The kind of its elements is out of range.";
	if (params.region_size < 1 || params.region_size > FAV_MAX_REGION_SIZE)
		return "Its region size is out of range.";
	if (params.capacity > FAV_MAX_ELEMENTS)
		return "Its capacity is out of range.";
	if (!(params.error_rate > 0.0 && params.error_rate <= 1.0))
		return "Its error rate is out of range.";
	if (count > (size - AT_HASHES) / sizeof(uint64))
		return "It has fewer hashes than its count says.";

	fav_state_init(state, &params, CurrentMemoryContext);
	fav_hashset_reserve(&state->set, count);
	bytes += AT_HASHES;
	for (i = 0; i < count; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		state->set.hashes[i] = fav_load64(bytes + i * sizeof(uint64));
		if (i > 0 && state->set.hashes[i - 1] >= state->set.hashes[i])
			return "Its hashes are not in order.";
	}
	state->set.count = state->set.sorted = count;
	*used = AT_HASHES + count * sizeof(uint64);
	return NULL;
}
