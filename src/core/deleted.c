/*
 * deleted.c
 *		See deleted.h.
 */
#include "deleted.h"
#include "sort.h"

/*
 * The table takes the list over when it has an eighth as many hashes: a few changes
 * are not worth it.
 */
#define TAKE_OVER			8

/*
 * Room for what was deleted lately: more than the most goes to the table.  It grows by
 * large steps, since memory that is not used yet costs nothing, and copying does.
 */
#define FRESH_FIRST			FAV_DEL_AT_ONCE
#define FRESH_GROWTH		32
#define FRESH_MAX			2097152

/* A list instead of the one there is, and of the table. */
static void
set_list(FavEditor *editor, uint8_t *list, uint32_t count)
{
	if (editor->own_deleted != NULL)
		fav_free(editor->own_deleted);
	editor->own_deleted = list;
	editor->filter.deleted = list;
	editor->filter.ndeleted = count;
	fav_table_close(&editor->changed_deleted);
}

void
fav_editor_set_deleted(FavEditor *editor, uint8_t *list, uint32_t count)
{
	set_list(editor, list, count);
	editor->nfresh = 0;
}

void
fav_editor_clear_deleted(FavEditor *editor)
{
	fav_editor_set_deleted(editor, NULL, 0);
}

/*
 * Put what the table has into the list.  A list that does not ascend, as damage may leave
 * it, gives another; no more can happen.
 */
static FavStatus
empty_table(FavEditor *editor)
{
	const FavFilter *filter = &editor->filter;
	const FavTable *table = &editor->changed_deleted;
	size_t		nslots = table->slots != NULL ? fav_table_slots(table->bits) : 0;
	size_t		in_list = 0;
	size_t		in_table = 0;
	uint64_t	most = (uint64_t) filter->ndeleted + table->count;
	size_t		count = 0;
	uint8_t    *list;

	if (table->count == 0)
		return FAV_OK;
	if (most * 8 > FAV_MAX_SIZE)
		return FAV_TOO_LARGE;
	list = fav_alloc((most + 1) * 8);
	if (list == NULL)
		return FAV_NO_MEMORY;
	for (; in_table < nslots; in_table++)
	{
		uint64_t	hash = fav_load64(table->slots + 8 * in_table);

		if (in_table % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (filter->ndeleted == 0)
		{
			/* without a branch: nothing tells where the gaps are; there is a slot more than hashes */
			fav_store64(list + 8 * count, hash);
			count += hash != FAV_TABLE_GAP;
			continue;
		}
		if (hash == FAV_TABLE_GAP)
			continue;
		while (in_list < filter->ndeleted && fav_load64(filter->deleted + 8 * in_list) < hash)
		{
			if (in_list % FAV_PAUSE_HASHES == 0)
				fav_pause();
			fav_store64(list + 8 * count++, fav_load64(filter->deleted + 8 * in_list++));
		}
		if (in_list < filter->ndeleted && fav_load64(filter->deleted + 8 * in_list) == hash)
			in_list++;
		else
			fav_store64(list + 8 * count++, hash);
	}
	for (; in_list < filter->ndeleted; in_list++)
	{
		if (in_list % FAV_PAUSE_HASHES == 0)
			fav_pause();
		fav_store64(list + 8 * count++, fav_load64(filter->deleted + 8 * in_list));
	}
	/* the largest hash there can be, so the last one */
	if (table->has_gap_value)
	{
		if (count > 0 && fav_load64(list + 8 * (count - 1)) == FAV_TABLE_GAP)
			count--;
		else
			fav_store64(list + 8 * count++, FAV_TABLE_GAP);
	}
	set_list(editor, list, (uint32_t) count);
	return FAV_OK;
}

/* A larger table for what the table holds, or for all if the list is not much longer. */
static FavStatus
enlarge_table(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	FavTable   *table = &editor->changed_deleted;
	uint32_t	bits = table->bits;
	FavStatus	status;

	/* without a list, four times as large: less to move than if it doubled again and again */
	if (filter->ndeleted == 0 || filter->ndeleted / TAKE_OVER > table->count)
		return fav_table_spread(table, bits + (filter->ndeleted == 0 ? 2 : 1), table->slots, fav_table_slots(bits),
								table->has_gap_value);
	status = empty_table(editor);
	if (status != FAV_OK || filter->ndeleted == 0)
		return status;
	while (fav_table_limit(bits) < filter->ndeleted + filter->ndeleted / 2 + FAV_TABLE_AT_ONCE)
		bits++;
	status = fav_table_spread(table, bits, filter->deleted, filter->ndeleted,
							  fav_load64(filter->deleted + 8 * (size_t) (filter->ndeleted - 1)) == FAV_TABLE_GAP);
	if (status == FAV_OK)
		filter->ndeleted = 0;
	return status;
}

/* Room in the table for so many changes, at most FAV_TABLE_AT_ONCE. */
static FavStatus
prepare_table(FavEditor *editor, uint32_t count)
{
	FavTable   *table = &editor->changed_deleted;

	if (fav_table_has_room(table, count))
		return FAV_OK;
	if (!(table->crowded && table->count < fav_table_limit(table->bits) / 2) &&
		enlarge_table(editor) == FAV_OK)
		return FAV_OK;

	/* they crowd, or there is no memory for a larger one: an empty one, then */
	return empty_table(editor);
}

static inline bool
is_known(const FavEditor *editor, uint64_t hash)
{
	bool		listed = editor->filter.ndeleted > 0 &&
		fav_hashes_contain(editor->filter.deleted, editor->filter.ndeleted, hash);

	return listed != fav_table_contains(&editor->changed_deleted, hash);
}

/* Move what was deleted lately to the table.  Those that it fails for remain. */
static FavStatus
settle_fresh(FavEditor *editor)
{
	FavTable   *table = &editor->changed_deleted;
	uint32_t	settled = 0;

	while (editor->nfresh > 0)
	{
		uint32_t	now = editor->nfresh < FAV_TABLE_AT_ONCE ? editor->nfresh : FAV_TABLE_AT_ONCE;
		FavStatus	status = prepare_table(editor, now);
		uint32_t	i;

		if (status != FAV_OK)
			return status;
		if (settled % FAV_PAUSE_HASHES < FAV_TABLE_AT_ONCE)
			fav_pause();
		settled += now;

		/* their memory is waited for together */
		for (i = editor->nfresh - now; i < editor->nfresh; i++)
			fav_table_prefetch(table, editor->fresh[i]);
		while (now-- > 0)
		{
			uint64_t	hash = editor->fresh[--editor->nfresh];

			if (is_known(editor, hash))
				continue;
			fav_table_toggle(table, hash);
			fav_count_out(&editor->filter, 1);
			editor->changed = true;
		}
	}
	return FAV_OK;
}

FavStatus
fav_editor_make_room_to_hide(FavEditor *editor, uint32_t count)
{
	uint32_t	room = editor->fresh_room == 0 ? FRESH_FIRST : FRESH_GROWTH * editor->fresh_room;
	uint64_t   *fresh = room <= FRESH_MAX ? fav_alloc(room * sizeof(uint64_t)) : NULL;

	if (fresh == NULL)
		return editor->fresh_room >= count ? settle_fresh(editor) : FAV_NO_MEMORY;
	if (editor->nfresh > 0)
		memcpy(fresh, editor->fresh, editor->nfresh * sizeof(uint64_t));
	if (editor->fresh != NULL)
		fav_free(editor->fresh);
	editor->fresh = fresh;
	editor->fresh_room = room;
	return FAV_OK;
}

bool
fav_editor_is_deleted(FavEditor *editor, uint64_t hash)
{
	uint32_t	i;

	if (editor->nfresh > 0 && settle_fresh(editor) != FAV_OK)
		for (i = 0; i < editor->nfresh; i++)
			if (editor->fresh[i] == hash)
				return true;
	return is_known(editor, hash);
}

FavStatus
fav_editor_unhide(FavEditor *editor, uint64_t hash)
{
	FavStatus	status = settle_fresh(editor);

	if (status == FAV_OK)
		status = prepare_table(editor, 1);
	if (status == FAV_OK)
		fav_table_toggle(&editor->changed_deleted, hash);
	return status;
}

/*
 * Put what was deleted lately into the list, while there is nothing in the table.  Sorting all
 * at once takes less time than the table.
 */
static FavStatus
list_fresh(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	uint64_t	most = (uint64_t) filter->ndeleted + editor->nfresh;
	uint32_t	in_list = 0;
	uint32_t	count = 0;
	uint64_t   *sorted;
	uint8_t    *list;
	uint32_t	i;

	if (most * 8 > FAV_MAX_SIZE)
		return FAV_TOO_LARGE;
	list = fav_alloc(most * 8);
	if (list == NULL)
		return FAV_NO_MEMORY;
	sorted = fav_sort_hashes(editor->fresh, editor->nfresh, 64, (uint64_t *) (void *) list);
	if (sorted != editor->fresh && filter->ndeleted > 0)
	{
		/* not from where it is written to, unless one hash after the other goes to the same place */
		memcpy(editor->fresh, sorted, editor->nfresh * sizeof(uint64_t));
		sorted = editor->fresh;
	}
	for (i = 0; i < editor->nfresh; i++)
	{
		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (i + 1 < editor->nfresh && sorted[i] == sorted[i + 1])
			continue;
		while (in_list < filter->ndeleted && fav_load64(filter->deleted + 8 * (size_t) in_list) < sorted[i])
		{
			if (in_list % FAV_PAUSE_HASHES == 0)
				fav_pause();
			fav_store64(list + 8 * (size_t) count++, fav_load64(filter->deleted + 8 * (size_t) in_list++));
		}
		in_list += in_list < filter->ndeleted && fav_load64(filter->deleted + 8 * (size_t) in_list) == sorted[i];
		fav_store64(list + 8 * (size_t) count++, sorted[i]);
	}
	for (; in_list < filter->ndeleted; in_list++)
	{
		if (in_list % FAV_PAUSE_HASHES == 0)
			fav_pause();
		fav_store64(list + 8 * (size_t) count++, fav_load64(filter->deleted + 8 * (size_t) in_list));
	}
	if (count > filter->ndeleted)
	{
		fav_count_out(filter, count - filter->ndeleted);
		editor->changed = true;
	}
	fav_editor_set_deleted(editor, list, count);
	return FAV_OK;
}

FavStatus
fav_editor_list_deleted(FavEditor *editor)
{
	FavStatus	status;

	if (editor->nfresh > 0 && editor->changed_deleted.count == 0 && list_fresh(editor) == FAV_OK)
		return FAV_OK;
	status = settle_fresh(editor);
	return status == FAV_OK ? empty_table(editor) : status;
}
