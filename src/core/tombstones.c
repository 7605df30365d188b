/*
 * tombstones.c
 *		The tombstones of an editor.
 *
 * A value has its tombstones in one of two orders (fav_tombstones_are_sorted()).  A short
 * list in a value without slices has the newest first, and the editor changes it in place.
 * Any other list ascends.  The editor leaves an ascending list alone and keeps a hash table of
 * the hashes that the list is wrong about; finishing the edit merges the two.
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

/*
 * Merging ascending lists
 */

FavStatus
fav_new_list(uint64_t count, uint8_t **list)
{
	if (count * 8 > FAV_MAX_SIZE)
		return FAV_TOO_LARGE;
	*list = fav_alloc(count * 8);
	return *list != NULL ? FAV_OK : FAV_NO_MEMORY;
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

static void
merge_list(FavMerge *merge, const uint8_t *list, size_t count)
{
	merge->at[merge->nlists] = list;
	merge->end[merge->nlists++] = list + 8 * count;
}

void
fav_merge_tombstones(FavMerge *merge, const FavFilter *filter)
{
	const uint8_t *list = filter->tombstones;

	if (filter->ntombstones == 0)
		list = merge->copies[merge->nlists];
	else if (!fav_tombstones_are_sorted(filter))
	{
		list = memcpy(merge->copies[merge->nlists], list, 8 * filter->ntombstones);
		sort_short(merge->copies[merge->nlists], filter->ntombstones);
	}
	merge_list(merge, list, filter->ntombstones);
}

static inline uint32_t
merge_next(FavMerge *merge, uint32_t nlists, uint64_t *hash)
{
	uint32_t	which = 0;
	uint32_t	i;

	if (merge->npassed++ % FAV_PAUSE_HASHES == 0)
		fav_pause();
	*hash = UINT64_MAX;
	for (i = 0; i < nlists; i++)
		if (merge->at[i] < merge->end[i] && fav_load64(merge->at[i]) <= *hash)
		{
			if (fav_load64(merge->at[i]) < *hash)
				which = 0;
			*hash = fav_load64(merge->at[i]);
			which |= UINT32_C(1) << i;
		}
	for (i = 0; i < nlists; i++)
		merge->at[i] += which >> i & 1 ? 8 : 0;
	return which;
}

uint32_t
fav_merge_next(FavMerge *merge, uint64_t *hash)
{
	return merge_next(merge, merge->nlists, hash);
}

/*
 * The short list and the ascending one
 */

static inline uint8_t *
short_front(FavEditor *editor, uint32_t count)
{
	return editor->tombstones.short_list + 8 * (FAV_RECENT_MAX - count);
}

static inline bool
should_be_short(const FavEditor *editor)
{
	return editor->filter.nslices == 0 && editor->tombstones.count <= FAV_RECENT_MAX;
}

/* Copy the list, which has at most FAV_RECENT_MAX hashes, into short_list. */
static void
make_short(FavEditor *editor)
{
	uint8_t    *front = short_front(editor, editor->filter.ntombstones);

	if (editor->filter.ntombstones > 0)
		memmove(front, editor->filter.tombstones, 8 * editor->filter.ntombstones);
	editor->filter.tombstones = front;
	editor->tombstones.is_short = true;
	if (editor->tombstones.own_list != NULL)
		fav_free(editor->tombstones.own_list);
	editor->tombstones.own_list = NULL;
}

/* The short list becomes an ascending one. */
static void
make_sorted(FavEditor *editor)
{
	sort_short(short_front(editor, editor->tombstones.count), editor->tombstones.count);
	editor->tombstones.is_short = false;
}

void
fav_tombstones_open(FavEditor *editor, uint8_t *own_list)
{
	memset(&editor->tombstones, 0, offsetof(FavTombstones, short_list));
	editor->tombstones.count = editor->filter.ntombstones;
	editor->tombstones.own_list = own_list;
	if (should_be_short(editor))
		make_short(editor);
}

void
fav_tombstones_close(FavEditor *editor)
{
	if (editor->tombstones.flipped != NULL)
		fav_free(editor->tombstones.flipped);
	if (editor->tombstones.own_list != NULL)
		fav_free(editor->tombstones.own_list);
}

void
fav_tombstones_replace(FavEditor *editor, uint8_t *list, uint32_t count)
{
	fav_tombstones_close(editor);
	editor->filter.tombstones = list;
	editor->filter.ntombstones = count;
	fav_tombstones_open(editor, list);
}

void
fav_tombstones_moved(FavEditor *editor)
{
	if (editor->tombstones.own_list == NULL)
		editor->filter.tombstones = short_front(editor, editor->filter.ntombstones);
}

void
fav_tombstones_reorder(FavEditor *editor)
{
	if (editor->tombstones.is_short == should_be_short(editor))
		return;
	if (editor->tombstones.is_short)
		make_sorted(editor);
	/* without memory the list remains as it is until the edit is finished */
	else if (fav_tombstones_merge(editor) == FAV_OK && should_be_short(editor))
		make_short(editor);
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

/* Put a hash into its slot.  The rest of the run moves on by a slot. */
static inline void
put(FavTombstones *tombstones, uint64_t hash)
{
	const uint64_t *home = home_slot(tombstones, hash);
	uint64_t   *slot = find_slot(tombstones, hash);

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
		put(tombstones, hash);
}

/* Move the hashes into a table of this many slots. */
static FavStatus
resize(FavTombstones *tombstones, uint32_t nslots)
{
	FavTombstones old = *tombstones;
	uint64_t   *flipped = fav_alloc(table_size(nslots) * sizeof(uint64_t));
	size_t		i;

	if (flipped == NULL)
		return FAV_NO_MEMORY;
	fav_fill((uint8_t *) flipped, UINT8_MAX, table_size(nslots) * sizeof(uint64_t));
	tombstones->flipped = flipped;
	tombstones->nslots = nslots;
	for (i = 0; i < table_size(old.nslots); i++)
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

/* Flip a hash; a list that is short until now has to ascend. */
static FavStatus
change(FavEditor *editor, uint64_t hash)
{
	FavTombstones *tombstones = &editor->tombstones;
	FavStatus	status = FAV_OK;

	if (tombstones->is_crowded || tombstones->nflipped == FLIPPED_MAX)
		status = fav_tombstones_merge(editor);
	if (status == FAV_OK && tombstones->nflipped >= tombstones->nslots / 4 * 3)
		status = resize(tombstones, tombstones->nslots == 0 ? FIRST_SLOTS : 4 * tombstones->nslots);
	if (status != FAV_OK)
		return status;
	if (tombstones->is_short)
		make_sorted(editor);
	flip(tombstones, hash);
	return FAV_OK;
}

/*
 * Add and remove
 */

bool
fav_editor_has_tombstone(const FavEditor *editor, uint64_t hash)
{
	const FavFilter *filter = &editor->filter;

	if (editor->tombstones.count == 0)
		return false;
	if (editor->tombstones.is_short)
		return fav_recent_contains(filter->tombstones, filter->ntombstones, hash);
	return fav_hashes_contain(filter->tombstones, filter->ntombstones, hash) !=
		is_flipped(&editor->tombstones, hash);
}

/* The short list has another number of hashes. */
static void
set_short_count(FavEditor *editor, uint32_t count)
{
	editor->filter.tombstones = short_front(editor, count);
	editor->filter.ntombstones = editor->tombstones.count = count;
}

FavStatus
fav_tombstones_add(FavEditor *editor, uint64_t hash)
{
	uint32_t	count = editor->tombstones.count;
	FavStatus	status;

	if (fav_editor_has_tombstone(editor, hash))
		return FAV_OK;
	if (editor->tombstones.is_short && count < FAV_RECENT_MAX)
	{
		fav_store64(short_front(editor, count + 1), hash);
		set_short_count(editor, count + 1);
	}
	else
	{
		status = change(editor, hash);
		if (status != FAV_OK)
			return status;
		editor->tombstones.count++;
	}
	fav_count_out(&editor->filter, 1);
	editor->changed = true;
	return FAV_OK;
}

FavStatus
fav_tombstones_remove(FavEditor *editor, uint64_t hash)
{
	uint32_t	count = editor->tombstones.count;
	FavStatus	status;

	if (editor->tombstones.is_short)
	{
		uint8_t    *front = short_front(editor, count);

		memmove(front + 8, front, 8 * fav_list_position(front, hash));
		set_short_count(editor, count - 1);
	}
	else
	{
		status = change(editor, hash);
		if (status != FAV_OK)
			return status;
		editor->tombstones.count--;
		fav_tombstones_reorder(editor);
	}
	editor->changed = true;
	return FAV_OK;
}

/*
 * Merging the table into the list
 */

/* Move all hashes of the table to its beginning, as a list; returns how many there are. */
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
		fav_store64((uint8_t *) &tombstones->flipped[count], hash);
		count += hash != FAV_FREE_SLOT;
	}
	if (tombstones->is_free_flipped)
		tombstones->flipped[count++] = FAV_FREE_SLOT;
	return count;
}

/*
 * A flipped hash that the old list has is left out, any other is added.  Damage may have left the
 * old list in any order.  Then the result is another wrong list, and nothing worse happens.
 */
FavStatus
fav_tombstones_merge(FavEditor *editor)
{
	FavTombstones *tombstones = &editor->tombstones;
	FavMerge	merge = {.nlists = 0};
	uint32_t	count = 0;
	uint8_t    *list;
	uint64_t	hash;
	uint32_t	which;
	FavStatus	status;

	if (tombstones->nflipped == 0)
		return FAV_OK;
	status = fav_new_list((uint64_t) editor->filter.ntombstones + tombstones->nflipped, &list);
	if (status != FAV_OK)
		return status;
	merge_list(&merge, editor->filter.tombstones, editor->filter.ntombstones);
	merge_list(&merge, (const uint8_t *) tombstones->flipped, close_gaps(tombstones));
	while ((which = merge_next(&merge, 2, &hash)) != 0)
		if (which != 3)
			fav_store64(list + 8 * (size_t) count++, hash);
	fav_tombstones_replace(editor, list, count);
	return FAV_OK;
}
