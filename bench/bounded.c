/*
 * bounded.c
 *		The published experiment of the "negative Bloom filter" (ApproxSet), repeated with
 *		its table and with fav_cache.
 *
 *		bounded
 *
 * 1,000,000 draws from 100,000 values.  Each draw is probed and then added.  A false negative is
 * a value that was drawn before and is not reported.  A false positive is a value that is
 * reported and was not drawn before.  Prints one line for each table and each tenth of the
 * occupancy, tab separated:
 *
 *		table	occupied slots in %		false negatives in %	false positives in %	bytes
 *
 * The occupancy is that of the direct-mapped table of 2^16 slots.  The last line of a table, at
 * 100, is for all draws.
 *
 * The direct-mapped table: l bits of the hash choose a slot, and b other bits are stored there,
 * over whatever was there before.  Which slots are in use is known for free here, because with
 * b = 1 an empty slot would match half of all values.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/bounded.h"

#define VALUES		100000
#define DRAWS		1000000
#define SLOT_BITS	16
#define SLOTS		(1 << SLOT_BITS)

void *
fav_alloc(size_t size)
{
	return malloc(size);
}

void
fav_free(void *memory)
{
	free(memory);
}

void
fav_pause(void)
{
}

static uint64_t
next_random(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* The direct-mapped table, for b = 1 and b = 128. */
typedef struct Slot
{
	bool		is_used;
	XXH128_hash_t stored;
} Slot;

typedef struct Direct
{
	unsigned	bits;			/* b */
	Slot		slots[SLOTS];
} Direct;

/* Probe a value, then store it. */
static bool
direct_draw(void *table, uint64_t value)
{
	Direct	   *direct = table;
	Slot	   *slot = &direct->slots[XXH3_64bits_withSeed(&value, sizeof(value), 1) % SLOTS];
	XXH128_hash_t stored = XXH3_128bits(&value, sizeof(value));
	bool		found;

	if (direct->bits == 1)
	{
		stored.low64 &= 1;
		stored.high64 = 0;
	}
	found = slot->is_used && slot->stored.low64 == stored.low64 &&
		slot->stored.high64 == stored.high64;
	slot->is_used = true;
	slot->stored = stored;
	return found;
}

static bool
cache_draw(void *table, uint64_t value)
{
	FavBoundedEditor *editor = table;
	uint64_t	hash = fav_hash_integer((int64_t) value, 0);
	bool		found = fav_bounded_contains(&editor->set, hash);

	if (fav_bounded_add(editor, hash) != FAV_OK)
		exit(1);
	return found;
}

/* An exact LRU: a list of values, linked in both directions.  Value VALUES is its anchor. */
typedef struct Lru
{
	uint32_t	capacity;
	uint32_t	used;
	uint32_t	newer[VALUES + 1];
	uint32_t	older[VALUES + 1];
	bool		is_member[VALUES];
} Lru;

static void
lru_unlink(Lru *lru, uint32_t value)
{
	lru->newer[lru->older[value]] = lru->newer[value];
	lru->older[lru->newer[value]] = lru->older[value];
	lru->is_member[value] = false;
	lru->used--;
}

static bool
lru_draw(void *table, uint64_t value)
{
	Lru		   *lru = table;
	bool		found = lru->is_member[value];

	if (found)
		lru_unlink(lru, (uint32_t) value);
	else if (lru->used == lru->capacity)
		lru_unlink(lru, lru->newer[VALUES]);
	lru->newer[value] = VALUES;
	lru->older[value] = lru->older[VALUES];
	lru->newer[lru->older[VALUES]] = (uint32_t) value;
	lru->older[VALUES] = (uint32_t) value;
	lru->is_member[value] = true;
	lru->used++;
	return found;
}

typedef struct Counts
{
	long		seen;
	long		seen_not_reported;
	long		unseen;
	long		unseen_reported;
} Counts;

static void
print_counts(const char *name, int occupancy, const Counts *counts, size_t bytes)
{
	printf("%s\t%d\t%.6g\t%.6g\t%zu\n", name, occupancy,
		   counts->seen == 0 ? 0.0 : 100.0 * (double) counts->seen_not_reported / (double) counts->seen,
		   counts->unseen == 0 ? 0.0 : 100.0 * (double) counts->unseen_reported / (double) counts->unseen,
		   bytes);
}

static void
experiment(const char *name, bool (*draw) (void *, uint64_t), void *table, size_t bytes)
{
	static bool seen[VALUES];
	static bool occupied[SLOTS];
	Counts		tenths[10] = {{0}};
	Counts		all = {0};
	int			noccupied = 0;
	uint64_t	random = 42;
	int			i;

	memset(seen, 0, sizeof(seen));
	memset(occupied, 0, sizeof(occupied));
	for (i = 0; i < DRAWS; i++)
	{
		uint64_t	value = next_random(&random) % VALUES;
		uint64_t	slot = XXH3_64bits_withSeed(&value, sizeof(value), 1) % SLOTS;
		Counts	   *counts = &tenths[(long) noccupied * 10 / SLOTS];
		bool		reported = draw(table, value);

		counts->seen += seen[value];
		counts->seen_not_reported += seen[value] && !reported;
		counts->unseen += !seen[value];
		counts->unseen_reported += !seen[value] && reported;
		seen[value] = true;
		noccupied += !occupied[slot];
		occupied[slot] = true;
	}
	for (i = 0; i < 10 && tenths[i].seen + tenths[i].unseen > 0; i++)
	{
		print_counts(name, 10 * i + 5, &tenths[i], bytes);
		all.seen += tenths[i].seen;
		all.seen_not_reported += tenths[i].seen_not_reported;
		all.unseen += tenths[i].unseen;
		all.unseen_reported += tenths[i].unseen_reported;
	}
	print_counts(name, 100, &all, bytes);
}

static void
direct_experiment(const char *name, unsigned bits)
{
	Direct	   *direct = calloc(1, sizeof(Direct));

	if (direct == NULL)
		exit(1);
	direct->bits = bits;
	experiment(name, direct_draw, direct, (size_t) SLOTS * bits / 8);
	free(direct);
}

/* A cache of as many buckets as fit into this many bytes. */
static void
cache_experiment(const char *name, size_t bytes)
{
	size_t		nbuckets = (bytes - FAV_BOUNDED_HEADER_SIZE) / FAV_BUCKET_BYTES;
	FavBoundedEditor editor;

	if (fav_bounded_new(&editor, (uint32_t) nbuckets * FAV_BUCKET_CAPACITY, 0) != FAV_OK)
		exit(1);
	experiment(name, cache_draw, &editor, FAV_BOUNDED_HEADER_SIZE + nbuckets * FAV_BUCKET_BYTES);
	free(editor.value);
}

int
main(void)
{
	Lru		   *lru = calloc(1, sizeof(Lru));

	if (lru == NULL)
		return 1;
	direct_experiment("direct-mapped, b = 128, 1 MB", 128);
	direct_experiment("direct-mapped, b = 1, 8 kB", 1);
	lru->capacity = SLOTS;
	lru->newer[VALUES] = lru->older[VALUES] = VALUES;
	experiment("exact LRU, 65,536 elements", lru_draw, lru, 0);
	cache_experiment("fav_cache, 65,536 slots, 393 kB",
					 FAV_BOUNDED_HEADER_SIZE + SLOTS / FAV_BUCKET_SLOTS * FAV_BUCKET_BYTES);
	cache_experiment("fav_cache, 1 MB", SLOTS * 128 / 8);
	cache_experiment("fav_cache, 8 kB", SLOTS / 8);
	free(lru);
	return 0;
}
