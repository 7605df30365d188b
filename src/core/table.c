/*
 * table.c
 *		See table.h.
 */
#include "table.h"
#include "filter.h"

void
fav_table_init(FavTable *table)
{
	table->slots = NULL;
	table->bits = FAV_TABLE_FIRST_BITS;
	table->count = 0;
	table->has_gap_value = false;
	table->crowded = false;
}

void
fav_table_close(FavTable *table)
{
	if (table->slots != NULL && table->slots != table->first)
		fav_free(table->slots);
	fav_table_init(table);
}

void
fav_table_replace(FavTable *table, const FavTable *next)
{
	*table = *next;
	if (next->slots == next->first)
		table->slots = table->first;
}

/* A hash that is so far behind its place shows that they crowd. */
#define CROWD				(FAV_TABLE_RUN_MAX - FAV_TABLE_AT_ONCE)

/* How far a slot is behind the place of the hash. */
static inline size_t
distance(const FavTable *table, size_t slot, uint64_t hash)
{
	return slot - (size_t) (hash >> (64 - table->bits));
}

FavStatus
fav_table_spread(FavTable *table, uint32_t bits, const uint8_t *from, size_t nfrom, bool has_gap_value)
{
	size_t		nslots = fav_table_slots(bits);
	FavTable	next;
	size_t		slot = 0;
	size_t		i;

	fav_table_init(&next);
	next.bits = bits;
	next.slots = fav_alloc(nslots * 8);
	if (next.slots == NULL)
		return FAV_NO_MEMORY;
	for (; slot < nslots; slot += FAV_PAUSE_HASHES)
	{
		fav_pause();
		memset(next.slots + 8 * slot, 0xff, 8 * (nslots - slot < FAV_PAUSE_HASHES ? nslots - slot : FAV_PAUSE_HASHES));
	}
	for (slot = 0, i = 0; i < nfrom; i++)
	{
		uint64_t	hash = fav_load64(from + 8 * i);
		size_t		place = (size_t) (hash >> (64 - bits));

		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (hash == FAV_TABLE_GAP)
			continue;
		slot = slot < place ? place : slot;
		if (slot - place >= CROWD)
		{
			fav_table_close(&next);
			return FAV_DOUBTFUL;
		}
		fav_store64(next.slots + 8 * slot++, hash);
		next.count++;
	}
	next.has_gap_value = has_gap_value;
	next.count += has_gap_value;
	fav_table_close(table);
	fav_table_replace(table, &next);
	return FAV_OK;
}

/* Those behind the slot move up, as far as they are behind their places. */
static void
take_out(FavTable *table, uint8_t *slot)
{
	size_t		next = (size_t) (slot - table->slots) / 8 + 1;
	size_t		end = next;

	while (fav_load64(table->slots + 8 * end) != FAV_TABLE_GAP &&
		   distance(table, end, fav_load64(table->slots + 8 * end)) > 0)
		end++;
	memmove(slot, slot + 8, 8 * (end - next));
	fav_store64(table->slots + 8 * (end - 1), FAV_TABLE_GAP);
}

/* Those from the slot on move down to the next gap. */
static void
put_in(FavTable *table, uint8_t *slot, uint64_t hash)
{
	uint64_t	moving = hash;

	for (; moving != FAV_TABLE_GAP; slot += 8)
	{
		uint64_t	next = fav_load64(slot);

		fav_store64(slot, moving);
		moving = next;
	}
	if (distance(table, (size_t) (slot - table->slots) / 8 - 1, hash) >= CROWD)
		table->crowded = true;
}

void
fav_table_toggle(FavTable *table, uint64_t hash)
{
	bool		present;

	if (table->slots == NULL)
	{
		table->slots = table->first;
		memset(table->first, 0xff, sizeof(table->first));
	}
	if (hash == FAV_TABLE_GAP)
	{
		present = table->has_gap_value;
		table->has_gap_value = !present;
	}
	else
	{
		uint8_t    *slot = fav_table_find(table, hash);

		present = fav_load64(slot) == hash;
		if (present)
			take_out(table, slot);
		else
			put_in(table, slot, hash);
	}
	table->count = present ? table->count - 1 : table->count + 1;
}
