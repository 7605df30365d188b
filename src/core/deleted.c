/*
 * deleted.c
 *		See deleted.h.
 */
#include "deleted.h"

/* From here on deleted is swept whenever it has doubled. */
#define SWEEP_FROM			256

void
fav_editor_drop_sketch(FavEditor *editor)
{
	if (editor->sketch_of_deleted != NULL)
		fav_free(editor->sketch_of_deleted);
	editor->sketch_of_deleted = NULL;
}

static inline void
sketch_deleted(FavEditor *editor, uint64_t hash)
{
	uint64_t	bit = hash >> editor->sketch_shift;

	editor->sketch_of_deleted[bit / 64] |= UINT64_C(1) << bit % 64;
}

/* Of the long list, with `fresh` empty; 16 bits a hash at first, 8 before it is made anew. */
static void
make_sketch(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	bits = 10;
	uint32_t	i;

	while (UINT64_C(1) << bits < 16 * (uint64_t) filter->ndeleted)
		bits++;
	if (editor->sketch_of_deleted != NULL && 64 - editor->sketch_shift >= bits - 1)
		return;
	fav_editor_drop_sketch(editor);
	editor->sketch_of_deleted = fav_alloc((size_t) 1 << (bits - 3));
	if (editor->sketch_of_deleted == NULL)
		return;
	editor->sketch_shift = 64 - bits;
	fav_zero((uint8_t *) editor->sketch_of_deleted, (size_t) 1 << (bits - 3));
	for (i = 0; i < filter->ndeleted; i++)
	{
		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		sketch_deleted(editor, fav_load64(filter->deleted + 8 * (size_t) i));
	}
}

static inline uint32_t
count_deleted(const FavEditor *editor)
{
	return editor->filter.ndeleted + editor->nfresh - 2 * editor->nforgotten;
}

/* Make sure that the long list may be written to and has room for `more`. */
static FavStatus
own_deleted(FavEditor *editor, uint32_t more)
{
	uint32_t	needed = editor->filter.ndeleted + more;
	uint32_t	room = needed + needed / 4;
	uint8_t    *list;

	if (editor->own_deleted != NULL && needed <= editor->own_deleted_max)
		return FAV_OK;
	if ((uint64_t) needed * 8 > FAV_MAX_SIZE)
		return FAV_TOO_LARGE;
	list = fav_alloc((size_t) room * 8 + 8);
	if (list == NULL)
		return FAV_NO_MEMORY;
	if (editor->filter.ndeleted > 0)
		fav_copy(list, editor->filter.deleted, (size_t) editor->filter.ndeleted * 8);
	if (editor->own_deleted != NULL)
		fav_free(editor->own_deleted);
	editor->own_deleted = list;
	editor->own_deleted_max = room;
	editor->filter.deleted = list;
	return FAV_OK;
}

void
fav_editor_set_deleted(FavEditor *editor, uint8_t *list, uint32_t count, uint32_t room)
{
	if (editor->own_deleted != NULL)
		fav_free(editor->own_deleted);
	editor->own_deleted = list;
	editor->own_deleted_max = room;
	editor->filter.deleted = list;
	editor->filter.ndeleted = count;
	editor->nfresh = 0;
	editor->nforgotten = 0;
	fav_editor_drop_sketch(editor);
}

/* Take the hashes that both lists have out of both. */
static void
drop_forgotten(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	kept = 0;
	uint32_t	kept_fresh = 0;
	uint32_t	fresh = 0;
	uint32_t	i;

	for (i = 0; i < filter->ndeleted; i++)
	{
		uint64_t	hash = fav_load64(editor->own_deleted + 8 * (size_t) i);

		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		while (fresh < editor->nfresh && fav_load64(editor->fresh + 8 * fresh) < hash)
			fav_store64(editor->fresh + 8 * kept_fresh++, fav_load64(editor->fresh + 8 * fresh++));
		if (fresh < editor->nfresh && fav_load64(editor->fresh + 8 * fresh) == hash)
			fresh++;
		else
			fav_store64(editor->own_deleted + 8 * (size_t) kept++, hash);
	}
	while (fresh < editor->nfresh)
		fav_store64(editor->fresh + 8 * kept_fresh++, fav_load64(editor->fresh + 8 * fresh++));
	filter->ndeleted = kept;
	editor->nfresh = kept_fresh;
	editor->nforgotten = 0;
}

FavStatus
fav_editor_merge_deleted(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	size_t		from_long;
	size_t		from_fresh;
	size_t		to;
	FavStatus	status;

	if (editor->nfresh == 0)
		return FAV_OK;
	status = own_deleted(editor, editor->nfresh);
	if (status != FAV_OK)
		return status;
	if (editor->nforgotten > 0)
		drop_forgotten(editor);

	/* in place, from the end */
	from_long = filter->ndeleted;
	from_fresh = editor->nfresh;
	to = from_long + from_fresh;
	while (from_fresh > 0)
	{
		uint64_t	fresh = fav_load64(editor->fresh + 8 * (from_fresh - 1));
		uint64_t	old = from_long > 0 ? fav_load64(editor->own_deleted + 8 * (from_long - 1)) : 0;

		if (to % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (from_long > 0 && old > fresh)
		{
			fav_store64(editor->own_deleted + 8 * --to, old);
			from_long--;
		}
		else
		{
			fav_store64(editor->own_deleted + 8 * --to, fresh);
			from_fresh--;
		}
	}
	filter->ndeleted += editor->nfresh;
	editor->nfresh = 0;
	return FAV_OK;
}

/*
 * Drop hashes that need no hiding any more: no slice reports them, nor comes so
 * close that the next insert could.
 */
static void
sweep_deleted(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	kept = 0;
	uint32_t	i;

	for (i = 0; i < filter->ndeleted; i++)
	{
		uint64_t	hash = fav_load64(editor->own_deleted + 8 * (size_t) i);
		uint32_t	s;

		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		for (s = 0; s < filter->nslices; s++)
			if (fav_is_close(&filter->slices[s],
						 fav_slice_missing(&filter->slices[s], filter->params.region_size, hash)))
				break;
		if (s < filter->nslices)
			fav_store64(editor->own_deleted + 8 * (size_t) kept++, hash);
	}
	filter->ndeleted = kept;
}

/*
 * Make room for one more deleted hash, so that fav_editor_toggle_deleted() cannot fail.
 * When the list is about to reach a power of two it is merged and swept.  That
 * depends on nothing but the number of deleted hashes: one big edit gives the same
 * bytes as many small ones.
 */
FavStatus
fav_editor_prepare_deleted(FavEditor *editor)
{
	uint32_t	count = count_deleted(editor) + 1;
	bool		sweep = count >= SWEEP_FROM && (count & (count - 1)) == 0;
	FavStatus	status;

	if (!sweep && editor->nfresh < FAV_FRESH_MAX)
		return FAV_OK;
	status = fav_editor_merge_deleted(editor);
	if (status == FAV_OK && sweep)
		status = own_deleted(editor, 0);
	if (status == FAV_OK && sweep)
		sweep_deleted(editor);
	if (status == FAV_OK && editor->filter.ndeleted >= FAV_FRESH_MAX)
		make_sketch(editor);
	return status;
}

/* The hash is deleted now, or no more: fresh, which has room, gets or loses it. */
void
fav_editor_toggle_deleted(FavEditor *editor, uint64_t hash, bool in_long)
{
	uint32_t	at = fav_hashes_position(editor->fresh, editor->nfresh, hash);
	uint8_t    *place = editor->fresh + 8 * at;

	if (at < editor->nfresh && fav_load64(place) == hash)
	{
		editor->nfresh--;
		memmove(place, place + 8, 8 * (editor->nfresh - at));
		editor->nforgotten -= in_long;
	}
	else
	{
		memmove(place + 8, place, 8 * (editor->nfresh - at));
		fav_store64(place, hash);
		editor->nfresh++;
		editor->nforgotten += in_long;
		if (editor->sketch_of_deleted != NULL)
			sketch_deleted(editor, hash);
	}
}

/* Take a hash out of deleted.  *found says whether it was there. */
FavStatus
fav_editor_forget_deleted(FavEditor *editor, uint64_t hash, bool *found)
{
	bool		in_long;

	*found = fav_editor_is_deleted(editor, hash, &in_long);
	if (!*found)
		return FAV_OK;
	if (editor->nfresh == FAV_FRESH_MAX)
	{
		FavStatus	status = fav_editor_merge_deleted(editor);

		if (status != FAV_OK)
			return status;
		in_long = true;			/* all that is deleted is there now */
	}
	fav_editor_toggle_deleted(editor, hash, in_long);
	return FAV_OK;
}
