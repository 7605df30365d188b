/*
 * filter.c
 *		The filter: contains, add, del, flush.
 *
 * A value is three lists of 64-bit hashes:
 *
 *		recent		up to 128, exact; every add lands here first
 *		slices		a chain of FAV slices, into which recent is flushed when full
 *		deleted		exact hashes that are hidden, whatever the slices say
 *
 * An element is there if it is in recent, or if some slice reports it (all its
 * bits are set) and it is not in deleted.  An element is never in recent and in
 * deleted at once.
 *
 * Why no element can vanish.  An element x that was added and not deleted since
 * is in recent, or was flushed into a slice.  There either it was inserted, and
 * its bits in unmarked regions are its own, or it was claimed, and all its
 * regions are marked.  Bits are only cleared in unmarked regions, and only for
 * an element y that exactly one slice reports: that slice is y's home then,
 * because the home of an element always reports it.  So what is cleared are y's
 * own bits, not x's.  When two slices report y nobody can tell which is its
 * home, and y is hidden instead of cleared.  docs/ALGORITHM.md has the long form.
 */
#include "filter.h"
#include "room.h"
#include "sizing.h"

/*
 * The next slice is at most so many times as large as the value, unless its stated
 * capacity asks for more.  Ours are at most four times; only a value that somebody
 * made up claims to hold more elements than its size allows, and it must not make
 * us allocate for them.
 */
#define GROWTH_MAX			8

/*
 * Editing: begin and end
 */

void
fav_editor_new(FavEditor *editor, const FavParams *params)
{
	FavFilter	empty;

	memset(&empty, 0, sizeof(empty));
	empty.params = *params;
	fav_editor_open(editor, &empty);
}

void
fav_editor_open(FavEditor *editor, const FavFilter *source)
{
	uint8_t    *end = editor->own_recent + sizeof(editor->own_recent);
	uint32_t	i;

	editor->filter = *source;
	memset(editor->own_blocks, 0, sizeof(editor->own_blocks));
	editor->own_value = NULL;
	editor->npending = 0;
	editor->changed = false;
	fav_tombstones_open(editor);
	editor->filter.recent = end - 8 * source->nrecent;
	if (source->nrecent > 0)
		memcpy(end - 8 * source->nrecent, source->recent, 8 * source->nrecent);
	fav_sketch_clear(&editor->sketch);
	for (i = 0; i < source->nrecent; i++)
		fav_sketch_add(&editor->sketch, fav_load64(source->recent + 8 * i));
}

void
fav_editor_close(FavEditor *editor)
{
	uint32_t	i;

	for (i = 0; i < FAV_MAX_SLICES; i++)
		if (editor->own_blocks[i] != NULL)
			fav_free(editor->own_blocks[i]);
	if (editor->own_value != NULL)
		fav_free(editor->own_value);
	fav_tombstones_close(editor);
}

void
fav_editor_replace(FavEditor *editor, const FavEditor *next)
{
	FavEditor	old = *editor;
	uint32_t	i;
	uint32_t	j;

	/* what `next` only borrowed changes hands */
	*editor = *next;
	editor->filter.recent = editor->own_recent + sizeof(editor->own_recent) -
		8 * editor->filter.nrecent;
	for (i = 0; i < editor->filter.nslices; i++)
		for (j = 0; j < FAV_MAX_SLICES && editor->own_blocks[i] == NULL; j++)
			if (old.own_blocks[j] != NULL && old.own_blocks[j] == editor->filter.slices[i].blocks)
			{
				editor->own_blocks[i] = old.own_blocks[j];
				old.own_blocks[j] = NULL;
			}
	editor->own_value = old.own_value;
	old.own_value = NULL;
	fav_tombstones_moved(editor);
	fav_editor_close(&old);
}

/* Make sure that slice i may be written to. */
FavStatus
fav_editor_own_slice(FavEditor *editor, uint32_t i)
{
	FavSlice   *slice = &editor->filter.slices[i];
	size_t		size = fav_slice_bytes(slice, editor->filter.params.region_size);

	if (editor->own_blocks[i] != NULL)
		return FAV_OK;
	editor->own_blocks[i] = fav_alloc(size);
	if (editor->own_blocks[i] == NULL)
		return FAV_NO_MEMORY;
	fav_copy(editor->own_blocks[i], slice->blocks, size);
	slice->blocks = editor->own_blocks[i];
	return FAV_OK;
}

/*
 * Slices
 */

/*
 * The geometry of the next slice: what the first was sized for, doubled as often
 * as it stays below what all slices hold.  So a chain grows 1, 1, 2, 4, 8, ...
 * times its capacity, and a union goes on from its real size.
 */
FavStatus
fav_size_next_slice(const FavFilter *filter, FavSlice *slice)
{
	uint32_t	region_size = filter->params.region_size;
	double		error = fav_error_share(filter->params.error_rate, filter->nslices);
	uint64_t	capacity = filter->params.capacity;
	uint64_t	most = GROWTH_MAX * fav_size(filter);
	double		held = 0.0;
	uint32_t	halvings = 0;
	uint32_t	i;

	if (filter->nslices == FAV_MAX_SLICES)
		return FAV_TOO_MANY_SLICES;
	for (i = 0; i < filter->nslices; i++)
		held += fav_slice_capacity(&filter->slices[i], region_size);
	if (capacity < FAV_MIN_SLICE_CAPACITY)
		capacity = FAV_MIN_SLICE_CAPACITY;
	if (capacity > FAV_MAX_ELEMENTS)
		return FAV_TOO_LARGE;
	for (i = 0; 2.0 * (double) capacity <= held; i++)
		capacity *= 2;
	if (!fav_size_slice(slice, error, region_size, capacity))
		return FAV_TOO_LARGE;
	while (halvings < i && fav_slice_bytes(slice, region_size) >> halvings > most)
		halvings++;
	if (halvings > 0 && !fav_size_slice(slice, error, region_size, capacity >> halvings))
		return FAV_TOO_LARGE;
	if (fav_size(filter) + fav_slice_bytes(slice, region_size) + FAV_MAX_HEAD_SIZE > FAV_MAX_SIZE)
		return FAV_TOO_LARGE;
	return FAV_OK;
}

/* Memory for an empty slice that is not in the chain yet. */
FavStatus
fav_make_blocks(const FavFilter *filter, FavSlice *slice, uint8_t **blocks)
{
	size_t		size = fav_slice_bytes(slice, filter->params.region_size);

	*blocks = fav_alloc(size);
	if (*blocks == NULL)
		return FAV_NO_MEMORY;
	fav_zero(*blocks, size);
	slice->blocks = *blocks;
	slice->bits_set = 0;
	slice->offset = 0;
	return FAV_OK;
}

/* The first lane and the tracker of the hash's block. */
static inline void
prefetch_block(const FavSlice *slice, uint32_t region_size, uint64_t hash)
{
	const uint8_t *block = slice->blocks + fav_slice_block_offset(slice, region_size, hash);

	__builtin_prefetch(block + (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES);
	__builtin_prefetch(block + (size_t) region_size * FAV_LANE_BYTES);
}

static inline void
prefetch_blocks(const FavFilter *filter, uint64_t hash)
{
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
		prefetch_block(&filter->slices[i], filter->params.region_size, hash);
}

/*
 * Move one hash into the slices.  There is room; if somebody chose hashes so that
 * they all fall into one block, the last slice takes them all the same.
 */
static void
place(FavEditor *editor, FavRoom *room, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	region_size = filter->params.region_size;
	uint32_t	i = filter->nslices - 1;

	if (fav_reporting(filter, hash, 1, &i) > 0)
	{
		/* An earlier add, or a false positive: nobody can tell. */
		fav_slice_claim(&filter->slices[i], editor->own_blocks[i], region_size, hash);
		return;
	}
	fav_room_choose(room, filter, &i);
	fav_slice_insert(&filter->slices[i], editor->own_blocks[i], region_size, hash);
	fav_room_inserted(room, filter, i, hash);
	fav_count_in(filter);
}

/*
 * Move recent into the only slice, which has room for all of it.  Where all bits are
 * set already, to insert is to claim.
 */
static void
fill_with_recent(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	uint64_t	hashes[FAV_RECENT_MAX];
	uint64_t	claimed[FAV_RECENT_MAX];
	uint32_t	inserted = filter->nrecent;
	uint32_t	i;

	for (i = 0; i < filter->nrecent; i++)
		hashes[i] = fav_load64(filter->recent + 8 * (filter->nrecent - 1 - i));
	inserted -= (uint32_t) fav_slice_fill(&filter->slices[0], editor->own_blocks[0],
										  filter->params.region_size, hashes, filter->nrecent, claimed);
	while (inserted-- > 0)
		fav_count_in(filter);
}

/*
 * Move recent into the slices, oldest first.  All that can fail comes before the
 * first change.
 */
static FavStatus
flush(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	FavSlice	spare;
	uint8_t    *spare_blocks = NULL;
	FavRoom		room;
	FavStatus	status;
	uint32_t	chosen;
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
	{
		status = fav_editor_own_slice(editor, i);
		if (status != FAV_OK)
			return status;
		fav_room_watch(&room, filter, i);
	}
	if (fav_room_certain(&room, filter) < filter->nrecent)
	{
		status = fav_size_next_slice(filter, &spare);
		if (status == FAV_OK)
			status = fav_make_blocks(filter, &spare, &spare_blocks);
		if (status != FAV_OK)
			return status;
	}

	for (i = filter->nrecent; i-- > 0;)
		prefetch_blocks(filter, fav_load64(filter->recent + 8 * i));
	if (filter->nslices == 1 && spare_blocks == NULL)
		fill_with_recent(editor);
	else
		for (i = filter->nrecent; i-- > 0;)
		{
			if (spare_blocks != NULL && !fav_room_choose(&room, filter, &chosen))
			{
				editor->own_blocks[filter->nslices] = spare_blocks;
				filter->slices[filter->nslices++] = spare;
				fav_room_watch(&room, filter, filter->nslices - 1);
				spare_blocks = NULL;
			}
			place(editor, &room, fav_load64(filter->recent + 8 * i));
		}
	if (spare_blocks != NULL)
		fav_free(spare_blocks);

	fav_tombstones_reorder(editor);
	filter->nrecent = 0;
	filter->recent = editor->own_recent + sizeof(editor->own_recent);
	fav_sketch_clear(&editor->sketch);
	return FAV_OK;
}

/*
 * Without a single bit set there is no element in the slices: what they marked
 * and what was hidden means nothing any more.  What was excluded stays so.
 */
static void
drop_empty_slices(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
		if (filter->slices[i].bits_set > 0)
			return;
	for (i = 0; i < filter->nslices; i++)
	{
		if (editor->own_blocks[i] != NULL)
			fav_free(editor->own_blocks[i]);
		editor->own_blocks[i] = NULL;
	}
	filter->nslices = 0;
	filter->elements = 0;
	if (filter->has_excluded)
		fav_tombstones_reorder(editor);
	else
		fav_tombstones_replace(editor, NULL, 0);
}

/*
 * Editing: the operations
 */

static inline bool
in_recent(const FavEditor *editor, uint64_t hash)
{
	return fav_sketch_may_contain(&editor->sketch, hash) &&
		fav_recent_contains(editor->filter.recent, editor->filter.nrecent, hash);
}

bool
fav_editor_contains(FavEditor *editor, uint64_t hash)
{
	uint32_t	i;

	for (i = 0; i < editor->npending; i++)
		if (editor->pending[i] == hash)
			return false;
	return in_recent(editor, hash) ||
		(fav_slices_report(&editor->filter, hash) && !fav_editor_has_tombstone(editor, hash));
}

/* Take a hash out of recent, if it is there. */
static bool
remove_recent(FavEditor *editor, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	uint8_t    *front = editor->own_recent + sizeof(editor->own_recent) - 8 * filter->nrecent;
	uint32_t	i;

	if (!fav_sketch_may_contain(&editor->sketch, hash))
		return false;
	for (i = 0; i < filter->nrecent; i++)
		if (fav_load64(front + 8 * i) == hash)
		{
			memmove(front + 8, front, 8 * i);
			filter->recent = front + 8;
			filter->nrecent--;
			editor->changed = true;
			return true;
		}
	return false;
}

/* Add a tombstone, for which memory was reserved. */
static void
hide(FavEditor *editor, uint64_t hash)
{
	if (!fav_tombstones_add(editor, hash))
		return;
	fav_count_out(&editor->filter, 1);
	editor->changed = true;
}

/*
 * Take an element out of the slice that is its home, and may be written to.  Nobody looks
 * whether it is deleted already: then it has at most one bit in an unmarked region there,
 * and stays.
 */
static void
take(FavEditor *editor, uint32_t home, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	FavSlice   *slice = &filter->slices[home];
	int			own = fav_slice_take(slice, editor->own_blocks[home], filter->params.region_size, hash);
	bool		stays = fav_stays(slice, own);
	bool		gone = own != FAV_NOT_REPORTED && !stays;

	if (stays)
		hide(editor, hash);
	fav_count_out(filter, gone);
	editor->changed |= gone;
	if (slice->bits_set == 0)
		drop_empty_slices(editor);
}

/*
 * Nobody can tell which slice is the element's home, if any is: hide it, and hold on to its
 * bits in all slices that report it, lest somebody deletes it again when just one of them
 * does.
 */
static FavStatus
hide_everywhere(FavEditor *editor, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	region_size = filter->params.region_size;
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
	{
		const FavSlice *slice = &filter->slices[i];
		FavStatus	status;

		if (!fav_block_contains(slice->blocks + fav_slice_block_offset(slice, region_size, hash),
								region_size, slice->k, hash))
			continue;
		status = fav_editor_own_slice(editor, i);
		if (status != FAV_OK)
			return status;
		fav_slice_claim(&filter->slices[i], editor->own_blocks[i], region_size, hash);
		editor->changed = true;
	}
	hide(editor, hash);
	return FAV_OK;
}

/* From any number of slices, and from recent. */
static FavStatus
del_anywhere(FavEditor *editor, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	bool		recent = in_recent(editor, hash);
	uint32_t	home = 0;
	uint32_t	reporting;
	FavStatus	status = FAV_OK;

	prefetch_blocks(filter, hash);
	reporting = fav_reporting(filter, hash, 2, &home);
	if (reporting > 0)
		status = fav_tombstones_reserve(editor, 1);
	if (status == FAV_OK && reporting == 1 && !recent)
	{
		status = fav_editor_own_slice(editor, home);
		if (status == FAV_OK)
			take(editor, home, hash);
	}
	else if (status == FAV_OK && reporting > 0 && (recent || !fav_editor_has_tombstone(editor, hash)))
	{
		/* An element in recent need not have a home: what a slice reports may be a false positive. */
		status = hide_everywhere(editor, hash);
	}
	if (recent && status == FAV_OK)
		remove_recent(editor, hash);
	return status;
}

/* Is there but one slice, which may be written to? */
static inline bool
has_own_slice(const FavEditor *editor)
{
	return editor->filter.nslices == 1 && editor->own_blocks[0] != NULL;
}

/* Delete many that are not in recent, where that is so. */
static FavStatus
take_many(FavEditor *editor, const uint64_t *hashes, uint32_t count)
{
	FavFilter  *filter = &editor->filter;
	FavSlice   *slice = &filter->slices[0];
	FavStatus	status = fav_tombstones_reserve(editor, count);
	uint64_t	staying[FAV_DEL_AT_ONCE];
	size_t		nstaying;
	size_t		gone;
	size_t		i;

	if (status != FAV_OK)
		return status;
	nstaying = fav_slice_take_many(slice, editor->own_blocks[0], filter->params.region_size,
								   hashes, count, staying, &gone);
	for (i = 0; i < nstaying; i++)
		hide(editor, staying[i]);
	fav_count_out(filter, gone);
	editor->changed |= gone > 0;
	if (slice->bits_set == 0)
		drop_empty_slices(editor);
	return FAV_OK;
}

/* Delete what is to be deleted.  From where it fails on, it is still to be. */
static FavStatus
del_pending(FavEditor *editor)
{
	FavStatus	status = FAV_OK;
	uint32_t	done = 0;
	uint32_t	i;

	/* An excluded element is absent already, and bits that report it may be another's. */
	for (i = 0; editor->filter.has_excluded && i < editor->npending;)
	{
		if (fav_editor_has_tombstone(editor, editor->pending[i]))
			editor->pending[i] = editor->pending[--editor->npending];
		else
			i++;
	}
	while (done < editor->npending && status == FAV_OK)
	{
		uint32_t	end = done;

		if (has_own_slice(editor))
			while (end < editor->npending && !fav_sketch_may_contain(&editor->sketch, editor->pending[end]))
				end++;
		if (end > done)
			status = take_many(editor, editor->pending + done, end - done);
		else
			status = del_anywhere(editor, editor->pending[end++]);
		if (status == FAV_OK)
			done = end;
	}
	editor->npending -= done;
	memmove(editor->pending, editor->pending + done, editor->npending * sizeof(uint64_t));
	return status;
}

FavStatus
fav_editor_del(FavEditor *editor, uint64_t hash)
{
	if (editor->npending == FAV_DEL_AT_ONCE)
	{
		FavStatus	status = del_pending(editor);

		if (status != FAV_OK)
			return status;
	}
	editor->pending[editor->npending++] = hash;
	return FAV_OK;
}

FavStatus
fav_editor_add(FavEditor *editor, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	FavStatus	status;
	uint8_t    *front;

	if (editor->npending > 0)
	{
		status = del_pending(editor);
		if (status != FAV_OK)
			return status;
	}
	if (in_recent(editor, hash))
		return FAV_OK;
	if (filter->nrecent == FAV_RECENT_MAX)
	{
		status = flush(editor);
		if (status != FAV_OK)
			return status;
	}
	if (fav_editor_has_tombstone(editor, hash))
	{
		status = fav_tombstones_remove(editor, hash);
		if (status != FAV_OK)
			return status;
		if (fav_slices_report(filter, hash))
			fav_count_in(filter);
	}
	editor->changed = true;

	front = editor->own_recent + sizeof(editor->own_recent) - 8 * (filter->nrecent + 1);
	fav_store64(front, hash);
	filter->recent = front;
	filter->nrecent++;
	fav_sketch_add(&editor->sketch, hash);
	return FAV_OK;
}

FavStatus
fav_editor_exclude(FavEditor *editor, uint64_t hash)
{
	FavStatus	status = del_pending(editor);

	if (status == FAV_OK)
		status = fav_tombstones_reserve(editor, 1);
	if (status != FAV_OK)
		return status;
	remove_recent(editor, hash);
	if (fav_editor_has_tombstone(editor, hash))
		return FAV_OK;

	editor->filter.has_excluded = true;

	/* A tombstone counts as an element that goes.  This one may never have been there. */
	if (!fav_slices_report(&editor->filter, hash))
		fav_count_in(&editor->filter);
	hide(editor, hash);
	return FAV_OK;
}

FavStatus
fav_editor_flush(FavEditor *editor)
{
	FavStatus	status = del_pending(editor);

	if (status == FAV_OK && editor->filter.nrecent > 0)
	{
		status = flush(editor);
		editor->changed = true;
	}
	return status;
}

static FavStatus
edit_each(FavEditor *editor, const uint64_t *hashes, size_t count, FavStatus (*edit) (FavEditor *, uint64_t))
{
	FavStatus	status = FAV_OK;
	size_t		i;

	for (i = 0; i < count && status == FAV_OK; i++)
		status = edit(editor, hashes[i]);
	return status;
}

FavStatus
fav_editor_add_many(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	return edit_each(editor, hashes, count, fav_editor_add);
}

FavStatus
fav_editor_del_many(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	return edit_each(editor, hashes, count, fav_editor_del);
}

FavStatus
fav_editor_exclude_many(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	return edit_each(editor, hashes, count, fav_editor_exclude);
}

FavStatus
fav_editor_finish(FavEditor *editor, const FavFilter **result)
{
	FavStatus	status = del_pending(editor);

	if (status == FAV_OK)
		status = fav_tombstones_merge(editor);
	if (status == FAV_OK)
		fav_tombstones_reorder(editor);
	if (status == FAV_OK && fav_size(&editor->filter) > FAV_MAX_SIZE)
		status = FAV_TOO_LARGE;
	*result = &editor->filter;
	return status;
}
