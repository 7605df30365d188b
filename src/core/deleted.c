/*
 * deleted.c
 *		See deleted.h.
 */
#include "deleted.h"

/*
 * The table takes the list over when it has an eighth as many hashes: a few changes
 * are not worth it.
 */
#define TAKE_OVER			8

void
fav_editor_set_deleted(FavEditor *editor, uint8_t *list, uint32_t count)
{
	if (editor->own_deleted != NULL)
		fav_free(editor->own_deleted);
	editor->own_deleted = list;
	editor->filter.deleted = list;
	editor->filter.ndeleted = count;
	fav_table_close(&editor->changed_deleted);
}

void
fav_editor_clear_deleted(FavEditor *editor)
{
	fav_editor_set_deleted(editor, NULL, 0);
}

/* A list that does not ascend, as damage may leave it, gives another; no more can happen. */
FavStatus
fav_editor_list_deleted(FavEditor *editor)
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
	fav_editor_set_deleted(editor, list, (uint32_t) count);
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
	status = fav_editor_list_deleted(editor);
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

FavStatus
fav_editor_prepare_hide(FavEditor *editor, uint32_t count)
{
	FavTable   *table = &editor->changed_deleted;

	if (fav_table_has_room(table, count))
		return FAV_OK;
	if (!(table->crowded && table->count < fav_table_limit(table->bits) / 2) &&
		enlarge_table(editor) == FAV_OK)
		return FAV_OK;

	/* they crowd, or there is no memory for a larger one: an empty one, then */
	return fav_editor_list_deleted(editor);
}

void
fav_editor_hide(FavEditor *editor, uint64_t hash)
{
	fav_table_toggle(&editor->changed_deleted, hash);
}

FavStatus
fav_editor_unhide(FavEditor *editor, uint64_t hash)
{
	FavStatus	status = fav_editor_prepare_hide(editor, 1);

	if (status == FAV_OK)
		fav_table_toggle(&editor->changed_deleted, hash);
	return status;
}
