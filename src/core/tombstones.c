/*
 * tombstones.c
 *		See tombstones.h.
 *
 * The hash table uses linear probing and is at most three quarters full.  Whoever can choose
 * hashes can make them collide.  A long run of taken slots therefore makes the next
 * reservation merge the table into the list, which empties it.
 */
#include "editor.h"
#include "sort.h"

#define FIRST_SLOTS			64

/* Even hashes have shorter runs of taken slots, whatever the size of the table. */
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
	tombstones->is_crowded = false;
	tombstones->count = editor->filter.ntombstones;
	tombstones->is_free_slot_flipped = false;
	tombstones->nflipped = tombstones->nslots = 0;
	tombstones->flipped = NULL;
	tombstones->own_list = NULL;
	if (should_be_short(editor))
		copy_to_short(editor);
}

static void
drop_table(FavTombstones *tombstones)
{
	if (tombstones->flipped != NULL)
		fav_free(tombstones->flipped);
	tombstones->flipped = NULL;
	tombstones->nflipped = tombstones->nslots = 0;
	tombstones->is_crowded = tombstones->is_free_slot_flipped = false;
}

void
fav_tombstones_close(FavEditor *editor)
{
	drop_table(&editor->tombstones);
	if (editor->tombstones.own_list != NULL)
		fav_free(editor->tombstones.own_list);
	editor->tombstones.own_list = NULL;
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
	/* without memory the list stays as it is until the edit is finished */
	else if (fav_tombstones_merge(editor) == FAV_OK && should_be_short(editor))
	{
		copy_to_short(editor);
		fav_tombstones_close(editor);
	}
}

/*
 * The hash table
 */

static inline uint32_t
home_slot(const FavTombstones *tombstones, uint64_t hash)
{
	return (uint32_t) (hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (tombstones->nslots - 1);
}

/* The slot of the hash, or the free one where it belongs. */
static inline uint32_t
find_slot(const FavTombstones *tombstones, uint64_t hash)
{
	uint32_t	slot = home_slot(tombstones, hash);

	while (tombstones->flipped[slot] != FAV_FREE_SLOT && tombstones->flipped[slot] != hash)
		slot = (slot + 1) & (tombstones->nslots - 1);
	return slot;
}

static inline bool
is_flipped(const FavTombstones *tombstones, uint64_t hash)
{
	if (tombstones->nflipped == 0)
		return false;
	if (hash == FAV_FREE_SLOT)
		return tombstones->is_free_slot_flipped;
	return tombstones->flipped[find_slot(tombstones, hash)] == hash;
}

/* Put a hash into the table, which has a free slot. */
static inline void
put(FavTombstones *tombstones, uint64_t hash)
{
	uint32_t	slot = find_slot(tombstones, hash);

	tombstones->flipped[slot] = hash;
	if (((slot - home_slot(tombstones, hash)) & (tombstones->nslots - 1)) >= RUN_MAX)
		tombstones->is_crowded = true;
}

/* Take a hash out of the table; those after it move up as far as they may. */
static void
take_out(FavTombstones *tombstones, uint64_t hash)
{
	uint32_t	mask = tombstones->nslots - 1;
	uint32_t	gap = find_slot(tombstones, hash);
	uint32_t	slot = gap;

	while (tombstones->flipped[slot = (slot + 1) & mask] != FAV_FREE_SLOT)
	{
		uint64_t	next = tombstones->flipped[slot];

		if (((slot - home_slot(tombstones, next)) & mask) >= ((slot - gap) & mask))
		{
			tombstones->flipped[gap] = next;
			gap = slot;
		}
	}
	tombstones->flipped[gap] = FAV_FREE_SLOT;
}

bool
fav_editor_has_tombstone(const FavEditor *editor, uint64_t hash)
{
	const FavFilter *filter = &editor->filter;
	bool		is_listed = false;

	if (filter->ntombstones == 0 && editor->tombstones.nflipped == 0)
		return false;
	if (editor->tombstones.is_short)
		return fav_recent_contains(filter->tombstones, filter->ntombstones, hash);
	if (filter->ntombstones > 0)
		is_listed = fav_hashes_contain(filter->tombstones, filter->ntombstones, hash);
	return is_listed != is_flipped(&editor->tombstones, hash);
}

/* Move the hashes into a table of so many slots. */
static FavStatus
resize(FavTombstones *tombstones, uint32_t nslots)
{
	FavTombstones old = *tombstones;
	uint32_t	i;

	tombstones->flipped = fav_alloc(nslots * sizeof(uint64_t));
	if (tombstones->flipped == NULL)
	{
		tombstones->flipped = old.flipped;
		return FAV_NO_MEMORY;
	}
	tombstones->nslots = nslots;
	fav_zero((uint8_t *) tombstones->flipped, nslots * sizeof(uint64_t));
	for (i = 0; i < old.nslots; i++)
	{
		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (old.flipped[i] != FAV_FREE_SLOT)
			put(tombstones, old.flipped[i]);
	}
	if (old.flipped != NULL)
		fav_free(old.flipped);
	return FAV_OK;
}

FavStatus
fav_tombstones_reserve(FavEditor *editor, uint32_t count)
{
	FavTombstones *tombstones = &editor->tombstones;
	uint32_t	nslots;
	FavStatus	status;

	if (tombstones->is_short && tombstones->count + count <= FAV_RECENT_MAX)
		return FAV_OK;
	if (tombstones->is_crowded || tombstones->nflipped + count > FLIPPED_MAX)
	{
		status = fav_tombstones_merge(editor);
		if (status != FAV_OK)
			return status;
	}
	nslots = tombstones->nslots > 0 ? tombstones->nslots : FIRST_SLOTS;
	while (nslots / 4 * 3 < tombstones->nflipped + count)
		nslots *= 4;
	return nslots == tombstones->nslots ? FAV_OK : resize(tombstones, nslots);
}

/* The ascending list is wrong about the hash from now on, or right again. */
static void
flip(FavTombstones *tombstones, uint64_t hash)
{
	bool		was_flipped = is_flipped(tombstones, hash);

	if (hash == FAV_FREE_SLOT)
		tombstones->is_free_slot_flipped = !was_flipped;
	else if (was_flipped)
		take_out(tombstones, hash);
	else
		put(tombstones, hash);
	tombstones->nflipped += was_flipped ? -1 : 1;
}

bool
fav_tombstones_add(FavEditor *editor, uint64_t hash)
{
	FavTombstones *tombstones = &editor->tombstones;

	if (fav_editor_has_tombstone(editor, hash))
		return false;
	if (tombstones->is_short && tombstones->count == FAV_RECENT_MAX)
		make_sorted(tombstones);
	tombstones->count++;
	if (!tombstones->is_short)
		flip(tombstones, hash);
	else
	{
		uint8_t    *front = short_end(tombstones) - 8 * tombstones->count;

		fav_store64(front, hash);
		editor->filter.tombstones = front;
		editor->filter.ntombstones = tombstones->count;
	}
	return true;
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
	{
		remove_short(editor, hash);
		return FAV_OK;
	}
	status = fav_tombstones_reserve(editor, 1);
	if (status != FAV_OK)
		return status;
	flip(tombstones, hash);
	tombstones->count--;
	fav_tombstones_reorder(editor);
	return FAV_OK;
}

/*
 * Merging
 */

/* The flipped hashes in ascending order, in memory that the caller frees. */
static uint64_t *
sort_flipped(const FavTombstones *tombstones, uint64_t **memory, size_t *count)
{
	uint64_t   *hashes = fav_alloc(2 * (size_t) tombstones->nflipped * sizeof(uint64_t));
	uint32_t	i;

	*memory = hashes;
	*count = 0;
	if (hashes == NULL)
		return NULL;
	for (i = 0; i < tombstones->nslots; i++)
	{
		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (tombstones->flipped[i] != FAV_FREE_SLOT)
			hashes[(*count)++] = tombstones->flipped[i];
	}
	if (tombstones->is_free_slot_flipped)
		hashes[(*count)++] = FAV_FREE_SLOT;
	return fav_sort_hashes(hashes, *count, 64, hashes + tombstones->nflipped);
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
	uint64_t   *memory;
	uint64_t   *flipped;
	size_t		nflipped;
	uint8_t    *list;

	if (tombstones->nflipped == 0)
		return FAV_OK;
	if (most * 8 > FAV_MAX_SIZE)
		return FAV_TOO_LARGE;
	flipped = sort_flipped(tombstones, &memory, &nflipped);
	if (flipped == NULL)
		return FAV_NO_MEMORY;
	list = fav_alloc(most * 8);
	if (list == NULL)
	{
		fav_free(memory);
		return FAV_NO_MEMORY;
	}
	filter->ntombstones = merge_lists(filter, flipped, nflipped, list);
	fav_free(memory);
	fav_tombstones_close(editor);
	tombstones->own_list = list;
	tombstones->count = filter->ntombstones;
	filter->tombstones = list;
	return FAV_OK;
}
