/*
 * dated.c
 *		See dated.h.
 *
 * Why no element is forgotten too early.  An element x that was last added in period p is in
 * recent with period p, or a flush gave it a home: a slice of the span of p whose last period is
 * at least p, or a slice of a later span.  A slice is dropped when its last period is older than
 * `keep`.  The last period of a slice never decreases.
 *
 * Why it is forgotten in time.  All periods of a slice are of one span, so its last period is at
 * most fav_delay() after p.  One exception: when late elements have filled nearly all slices that
 * a filter can have, the next late ones go to a later span (flush.c).
 *
 * Why a tombstone may be dropped with a slice.  A tombstone makes a removed element absent
 * although slices report it.  If none of those that remain does, it is absent without a tombstone.
 * An excluded element stays excluded, whatever is added later, so tombstones of excluded
 * elements stay.
 */
#include "dated.h"

/* Drop the tombstones that no slice reports, and count them; `list` has memory for all. */
static uint32_t
sweep_tombstones(FavEditor *editor, uint8_t *list)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	count = filter->ntombstones;
	uint32_t	kept = 0;
	uint32_t	i;

	for (i = 0; i < count; i++)
	{
		uint64_t	hash = fav_load64(filter->tombstones + 8 * (size_t) i);

		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (fav_slices_report(filter, hash))
			fav_store64(list + 8 * (size_t) kept++, hash);
	}
	fav_tombstones_replace(editor, list, kept);
	return count - kept;
}

/* How many recent hashes and slices are too old? */
static void
count_too_old(const FavEditor *editor, int32_t now, uint32_t *nrecent, uint32_t *nslices)
{
	const FavFilter *filter = &editor->filter;
	uint32_t	i;

	*nrecent = *nslices = 0;
	for (i = filter->nrecent; i-- > 0 &&
		 fav_is_too_old(filter, fav_editor_periods(editor)[i], now);)
		++*nrecent;
	for (i = 0; i < filter->nslices; i++)
		*nslices += fav_is_too_old(filter, filter->slices[i].last, now);
}

FavStatus
fav_editor_expire(FavEditor *editor, int32_t now)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	nrecent;
	uint32_t	nslices;
	uint8_t    *list = NULL;
	uint64_t	dropped = 0;
	uint32_t	swept = 0;
	uint32_t	i;

	if (now <= filter->newest)
		return FAV_OK;
	count_too_old(editor, now, &nrecent, &nslices);
	if (nrecent + nslices == 0)
		return FAV_OK;

	/* all that can fail comes first */
	if (nslices > 0 && editor->tombstones.count > 0 && !filter->has_excluded)
	{
		FavStatus	status = fav_tombstones_merge(editor);

		if (status == FAV_OK)
			status = fav_new_list(filter->ntombstones, &list);
		if (status != FAV_OK)
			return status;
	}
	filter->newest = now;
	fav_editor_drop_recent(editor, filter->nrecent - nrecent, nrecent);
	for (i = filter->nslices; i-- > 0;)
		if (fav_is_too_old(filter, filter->slices[i].last, now))
		{
			dropped += filter->slices[i].elements;
			fav_editor_drop_slice(editor, i);
		}
	if (list != NULL)
		swept = sweep_tombstones(editor, list);
	fav_tombstones_reorder(editor);

	/* the slices counted elements that have a tombstone, the filter did not */
	fav_count_out(filter, dropped > swept ? dropped - swept : 0);
	if (filter->nslices == 0)
		filter->elements = 0;
	return FAV_OK;
}

FavStatus
fav_editor_advance(FavEditor *editor, int32_t now)
{
	FavStatus	status = FAV_OK;

	if (!fav_is_dated(&editor->filter) || now <= editor->filter.newest)
		return FAV_OK;
	status = fav_editor_expire(editor, now);
	if (status == FAV_OK)
	{
		editor->filter.newest = now;
		editor->changed = true;
	}
	return status;
}
