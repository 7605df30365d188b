/*
 * tombstones.c
 *		See tombstones.h.
 *
 * The hashes of the table ascend, with free slots between them, so that they are merged into
 * the list without sorting.  The home slot of a hash is its upper half, scaled to the number
 * of slots.  The hash is in that slot or in the run of used slots after it.
 *
 * An attacker who chooses hashes can make them collide.  A long run therefore makes the next
 * change merge the table into the list, which empties it.
 */
#include "editor.h"

#define FIRST_SLOTS			64

/* Evenly spread hashes have shorter runs of used slots, in a table of any size. */
#define RUN_MAX				512

/* A table with more hashes is merged rather than enlarged. */
#define FLIPPED_MAX			(UINT32_C(3) << 20)

static inline uint8_t *
short_end(FavTombstones *tombstones)
{
	return tombstones->short_list + sizeof(tombstones->short_list);
}

static inline bool
should_be_short(const FavEditor *editor)
{
	return editor->filter.nslices == 0 && editor->tombstones.count <= FAV_RECENT_MAX;
}

/* Sort the `count` hashes at `list`, at most FAV_RECENT_MAX. */
static void
sort_short(uint8_t *list, uint32_t count)
{
	uint32_t	i;

	for (i = 1; i < count; i++)
	{
		uint64_t	hash = fav_load64(list + 8 * i);
		uint32_t	at = i;

		for (; at > 0 && fav_load64(list + 8 * (at - 1)) > hash; at--)
			memcpy(list + 8 * at, list + 8 * (at - 1), 8);
		fav_store64(list + 8 * at, hash);
	}
}

const uint8_t *
fav_sorted_tombstones(const FavFilter *filter, uint8_t copy[FAV_RECENT_MAX * 8])
{
	if (fav_tombstones_are_sorted(filter) || filter->ntombstones == 0)
		return filter->tombstones;
	memcpy(copy, filter->tombstones, 8 * filter->ntombstones);
	sort_short(copy, filter->ntombstones);
	return copy;
}

/* Copy the list, which has at most FAV_RECENT_MAX hashes, into short_list. */
static void
copy_to_short(FavEditor *editor)
{
	FavTombstones *tombstones = &editor->tombstones;
	uint8_t    *front = short_end(tombstones) - 8 * editor->filter.ntombstones;

	if (editor->filter.ntombstones > 0)
		memmove(front, editor->filter.tombstones, 8 * editor->filter.ntombstones);
	editor->filter.tombstones = front;
	tombstones->is_short = true;
}

void
fav_tombstones_open(FavEditor *editor)
{
	FavTombstones *tombstones = &editor->tombstones;

	tombstones->is_short = false;
	tombstones->count = editor->filter.ntombstones;
	tombstones->flipped = NULL;
	tombstones->nflipped = tombstones->nslots = 0;
	tombstones->is_crowded = tombstones->is_free_flipped = false;
	tombstones->own_list = NULL;
	if (should_be_short(editor))
		copy_to_short(editor);
}

void
fav_tombstones_close(FavEditor *editor)
{
	FavTombstones *tombstones = &editor->tombstones;

	if (tombstones->flipped != NULL)
		fav_free(tombstones->flipped);
	if (tombstones->own_list != NULL)
		fav_free(tombstones->own_list);
	tombstones->flipped = NULL;
	tombstones->nflipped = tombstones->nslots = 0;
	tombstones->is_crowded = tombstones->is_free_flipped = false;
	tombstones->own_list = NULL;
}

void
fav_tombstones_replace(FavEditor *editor, uint8_t *list, uint32_t count)
{
	FavTombstones *tombstones = &editor->tombstones;

	fav_tombstones_close(editor);
	tombstones->own_list = list;
	tombstones->count = count;
	tombstones->is_short = false;
	editor->filter.tombstones = list;
	editor->filter.ntombstones = count;
	fav_tombstones_reorder(editor);
}

void
fav_tombstones_moved(FavEditor *editor)
{
	if (editor->tombstones.own_list == NULL)
		editor->filter.tombstones = short_end(&editor->tombstones) - 8 * editor->filter.ntombstones;
}

/* The list becomes an ascending one. */
static void
make_sorted(FavTombstones *tombstones)
{
	sort_short(short_end(tombstones) - 8 * tombstones->count, tombstones->count);
	tombstones->is_short = false;
}

void
fav_tombstones_reorder(FavEditor *editor)
{
	FavTombstones *tombstones = &editor->tombstones;

	if (tombstones->is_short == should_be_short(editor))
		return;
	if (tombstones->is_short)
		make_sorted(tombstones);
	/* without memory the list remains as it is until the edit is finished */
	else if (fav_tombstones_merge(editor) == FAV_OK && should_be_short(editor))
	{
		copy_to_short(editor);
		fav_tombstones_close(editor);
	}
}

/*
 * The hash table
 */

/* All slots.  A run that reaches the last home slot goes on after it; then comes a free slot. */
static inline size_t
table_size(uint32_t nslots)
{
	return nslots == 0 ? 0 : (size_t) nslots + RUN_MAX + 2;
}

static inline uint64_t *
home_slot(const FavTombstones *tombstones, uint64_t hash)
{
	return tombstones->flipped + ((hash >> 32) * tombstones->nslots >> 32);
}

/* The slot of the hash, or the one to put it into.  No hash is larger than a free slot. */
static inline uint64_t *
find_slot(const FavTombstones *tombstones, uint64_t hash)
{
	uint64_t   *slot = home_slot(tombstones, hash);

	while (*slot < hash)
		slot++;
	return slot;
}

/* Is the ascending list wrong about the hash? */
static inline bool
is_flipped(const FavTombstones *tombstones, uint64_t hash)
{
	if (hash == FAV_FREE_SLOT)
		return tombstones->is_free_flipped;
	return tombstones->nflipped > 0 && *find_slot(tombstones, hash) == hash;
}

/* Put a hash into the slot that was found for it.  The rest of the run moves on by a slot. */
static inline void
put(FavTombstones *tombstones, uint64_t *slot, uint64_t hash)
{
	const uint64_t *home = home_slot(tombstones, hash);

	while (hash != FAV_FREE_SLOT)
	{
		uint64_t	next = *slot;

		*slot++ = hash;
		hash = next;
	}
	if (slot - home > RUN_MAX)
		tombstones->is_crowded = true;
}

/* Free a slot.  The hashes after it move back by a slot, up to the first in its home slot. */
static void
free_slot(const FavTombstones *tombstones, uint64_t *slot)
{
	for (; slot[1] != FAV_FREE_SLOT && home_slot(tombstones, slot[1]) <= slot; slot++)
		slot[0] = slot[1];
	*slot = FAV_FREE_SLOT;
}

/* The list becomes wrong about the hash, or right again. */
static void
flip(FavTombstones *tombstones, uint64_t hash)
{
	bool		was_flipped = is_flipped(tombstones, hash);

	tombstones->nflipped += was_flipped ? -1 : 1;
	if (hash == FAV_FREE_SLOT)
		tombstones->is_free_flipped = !was_flipped;
	else if (was_flipped)
		free_slot(tombstones, find_slot(tombstones, hash));
	else
		put(tombstones, find_slot(tombstones, hash), hash);
}

/* Move the hashes into a table of this many slots. */
static FavStatus
resize(FavTombstones *tombstones, uint32_t nslots)
{
	FavTombstones old = *tombstones;
	size_t		i;

	tombstones->flipped = fav_alloc(table_size(nslots) * sizeof(uint64_t));
	if (tombstones->flipped == NULL)
	{
		tombstones->flipped = old.flipped;
		return FAV_NO_MEMORY;
	}
	tombstones->nslots = nslots;
	for (i = 0; i < table_size(nslots); i++)
	{
		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		tombstones->flipped[i] = FAV_FREE_SLOT;
	}
	for (i = 0; i < table_size(old.nslots); i++)
	{
		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (old.flipped[i] != FAV_FREE_SLOT)
			put(tombstones, find_slot(tombstones, old.flipped[i]), old.flipped[i]);
	}
	if (old.flipped != NULL)
		fav_free(old.flipped);
	return FAV_OK;
}

/* Make sure that one more hash can be flipped. */
static inline FavStatus
reserve(FavEditor *editor)
{
	FavTombstones *tombstones = &editor->tombstones;
	FavStatus	status = FAV_OK;

	if (tombstones->is_crowded || tombstones->nflipped == FLIPPED_MAX)
		status = fav_tombstones_merge(editor);
	if (status != FAV_OK || tombstones->nflipped < tombstones->nslots / 4 * 3)
		return status;
	return resize(tombstones, tombstones->nslots == 0 ? FIRST_SLOTS : 4 * tombstones->nslots);
}

bool
fav_editor_has_tombstone(const FavEditor *editor, uint64_t hash)
{
	const FavFilter *filter = &editor->filter;
	bool		is_listed = false;

	if (editor->tombstones.count == 0)
		return false;
	if (editor->tombstones.is_short)
		return fav_recent_contains(filter->tombstones, filter->ntombstones, hash);
	if (filter->ntombstones > 0)
		is_listed = fav_hashes_contain(filter->tombstones, filter->ntombstones, hash);
	return is_listed != is_flipped(&editor->tombstones, hash);
}

/* Add a hash to the short list, which is not full. */
static void
add_short(FavEditor *editor, uint64_t hash)
{
	FavTombstones *tombstones = &editor->tombstones;
	uint8_t    *front = short_end(tombstones) - 8 * ++tombstones->count;

	fav_store64(front, hash);
	editor->filter.tombstones = front;
	editor->filter.ntombstones = tombstones->count;
}

FavStatus
fav_tombstones_add(FavEditor *editor, uint64_t hash)
{
	FavTombstones *tombstones = &editor->tombstones;
	FavStatus	status;

	if (fav_editor_has_tombstone(editor, hash))
		return FAV_OK;
	if (tombstones->is_short && tombstones->count < FAV_RECENT_MAX)
		add_short(editor, hash);
	else
	{
		status = reserve(editor);
		if (status != FAV_OK)
			return status;
		if (tombstones->is_short)
			make_sorted(tombstones);
		flip(tombstones, hash);
		tombstones->count++;
	}
	fav_count_out(&editor->filter, 1);
	editor->changed = true;
	return FAV_OK;
}

/* Remove a hash from the short list. */
static void
remove_short(FavEditor *editor, uint64_t hash)
{
	FavTombstones *tombstones = &editor->tombstones;
	uint8_t    *front = short_end(tombstones) - 8 * tombstones->count;
	uint32_t	i = 0;

	while (fav_load64(front + 8 * i) != hash)
		i++;
	memmove(front + 8, front, 8 * i);
	tombstones->count--;
	editor->filter.tombstones = front + 8;
	editor->filter.ntombstones = tombstones->count;
}

FavStatus
fav_tombstones_remove(FavEditor *editor, uint64_t hash)
{
	FavTombstones *tombstones = &editor->tombstones;
	FavStatus	status;

	if (tombstones->is_short)
		remove_short(editor, hash);
	else
	{
		status = reserve(editor);
		if (status != FAV_OK)
			return status;
		flip(tombstones, hash);
		tombstones->count--;
		fav_tombstones_reorder(editor);
	}
	editor->changed = true;
	return FAV_OK;
}

/*
 * Merging
 */

/* Move all hashes of the table to its beginning; returns how many there are. */
static size_t
close_gaps(FavTombstones *tombstones)
{
	size_t		count = 0;
	size_t		i;

	for (i = 0; i < table_size(tombstones->nslots); i++)
	{
		uint64_t	hash = tombstones->flipped[i];

		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		tombstones->flipped[count] = hash;
		count += hash != FAV_FREE_SLOT;
	}
	if (tombstones->is_free_flipped)
		tombstones->flipped[count++] = FAV_FREE_SLOT;
	return count;
}

/*
 * Merge the table into `list`: a flipped hash that the old list has is left out, any
 * other is added.  Damage may have left the old list in any order.  Then the result is
 * another wrong list, and nothing worse happens.
 */
static uint32_t
merge_lists(const FavFilter *filter, const uint64_t *flipped, size_t nflipped, uint8_t *list)
{
	size_t		in_old = 0;
	size_t		in_flipped = 0;
	uint32_t	count = 0;

	while (in_old < filter->ntombstones || in_flipped < nflipped)
	{
		const uint8_t *old = filter->tombstones + 8 * in_old;

		if ((in_old + in_flipped) % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (in_old == filter->ntombstones ||
			(in_flipped < nflipped && flipped[in_flipped] < fav_load64(old)))
			fav_store64(list + 8 * (size_t) count++, flipped[in_flipped++]);
		else if (in_flipped < nflipped && flipped[in_flipped] == fav_load64(old))
		{
			in_flipped++;
			in_old++;
		}
		else
		{
			memcpy(list + 8 * (size_t) count++, old, 8);
			in_old++;
		}
	}
	return count;
}

FavStatus
fav_tombstones_merge(FavEditor *editor)
{
	FavTombstones *tombstones = &editor->tombstones;
	FavFilter  *filter = &editor->filter;
	uint64_t	most = (uint64_t) filter->ntombstones + tombstones->nflipped;
	uint8_t    *list;
	size_t		nflipped;

	if (tombstones->nflipped == 0)
		return FAV_OK;
	if (most * 8 > FAV_MAX_SIZE)
		return FAV_TOO_LARGE;
	list = fav_alloc(most * 8);
	if (list == NULL)
		return FAV_NO_MEMORY;
	nflipped = close_gaps(tombstones);
	filter->ntombstones = merge_lists(filter, tombstones->flipped, nflipped, list);
	fav_tombstones_close(editor);
	tombstones->own_list = list;
	tombstones->count = filter->ntombstones;
	filter->tombstones = list;
	return FAV_OK;
}
