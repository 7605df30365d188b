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
#include "deleted.h"
#include "room.h"
#include "sizing.h"

/*
 * The next slice is at most so many times as large as the value, unless its stated
 * capacity asks for more.  Ours are at most four times; only a value that somebody
 * made up claims to hold more elements than its size allows, and it must not make
 * us allocate for them.
 */
#define GROWTH_MAX			8

/* Elements that are deleted at once, their memory waited for together. */
#define DEL_AT_ONCE			FAV_TABLE_AT_ONCE

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
	editor->own_deleted = NULL;
	fav_table_init(&editor->changed_deleted);
	editor->changed = false;
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
	if (editor->own_deleted != NULL)
		fav_free(editor->own_deleted);
	fav_table_close(&editor->changed_deleted);
}

void
fav_editor_replace(FavEditor *editor, const FavEditor *next)
{
	FavEditor	old = *editor;
	uint32_t	i;
	uint32_t	j;

	fav_table_replace(&old.changed_deleted, &editor->changed_deleted);

	/* what `next` only borrowed changes hands */
	*editor = *next;
	fav_table_replace(&editor->changed_deleted, &next->changed_deleted);
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
	if (editor->own_deleted == NULL && editor->filter.deleted == old.own_deleted)
	{
		editor->own_deleted = old.own_deleted;
		old.own_deleted = NULL;
	}
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
 * The number of elements in the slices changes when an element becomes visible
 * in them or ceases to be.  An estimate: an add that meets a false positive is
 * taken for a re-add.
 */
static inline void
count_in(FavFilter *filter)
{
	if (filter->elements < FAV_MAX_ELEMENTS)
		filter->elements++;
}

static inline void
count_out(FavFilter *filter, uint64_t count)
{
	filter->elements -= filter->elements < count ? filter->elements : count;
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
	count_in(filter);
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
		count_in(filter);
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

	filter->nrecent = 0;
	filter->recent = editor->own_recent + sizeof(editor->own_recent);
	fav_sketch_clear(&editor->sketch);
	return FAV_OK;
}

/*
 * Without a single bit set there is no element in the slices: what they marked
 * and what was hidden means nothing any more.
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
	fav_editor_clear_deleted(editor);
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
fav_editor_contains(const FavEditor *editor, uint64_t hash)
{
	return in_recent(editor, hash) ||
		(fav_slices_report(&editor->filter, hash) && !fav_editor_is_deleted(editor, hash));
}

FavStatus
fav_editor_add(FavEditor *editor, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	FavStatus	status;
	uint8_t    *front;

	if (in_recent(editor, hash))
		return FAV_OK;
	if (filter->nrecent == FAV_RECENT_MAX)
	{
		status = flush(editor);
		if (status != FAV_OK)
			return status;
	}
	if (fav_editor_is_deleted(editor, hash))
	{
		status = fav_editor_unhide(editor, hash);
		if (status != FAV_OK)
			return status;
		if (fav_slices_report(filter, hash))
			count_in(filter);
	}
	editor->changed = true;

	front = editor->own_recent + sizeof(editor->own_recent) - 8 * (filter->nrecent + 1);
	fav_store64(front, hash);
	filter->recent = front;
	filter->nrecent++;
	fav_sketch_add(&editor->sketch, hash);
	return FAV_OK;
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

FavStatus
fav_editor_del(FavEditor *editor, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	region_size = filter->params.region_size;
	bool		recent = in_recent(editor, hash);
	uint32_t	home = 0;
	int			cleared = 0;
	FavStatus	status = FAV_OK;

	/* all that is waited for comes at the same time */
	prefetch_blocks(filter, hash);
	fav_table_prefetch(&editor->changed_deleted, hash);
	if (fav_editor_is_deleted(editor, hash))
		return FAV_OK;			/* so it is not in recent either */

	/*
	 * Clear only in the slice that is certainly its home.  When two report it nobody
	 * can tell which is.  An element in recent need not have one: what the slice
	 * reports may be a false positive.
	 */
	if (filter->nslices == 1 && editor->own_blocks[0] != NULL && !recent)
	{
		cleared = fav_slice_take(&filter->slices[0], editor->own_blocks[0], region_size, hash);
		if (cleared == FAV_NOT_REPORTED)
			return FAV_OK;
	}
	else
	{
		uint32_t	reporting = fav_reporting(filter, hash, 2, &home);

		if (reporting == 0)
		{
			remove_recent(editor, hash);
			return FAV_OK;
		}
		if (reporting == 1 && !recent)
		{
			status = fav_editor_own_slice(editor, home);
			if (status != FAV_OK)
				return status;
			cleared = (int) fav_slice_clear(&filter->slices[home], editor->own_blocks[home], region_size, hash);
		}
	}

	if (fav_is_close(&filter->slices[home], (uint32_t) cleared))
	{
		status = fav_editor_prepare_hide(editor, 1);
		if (status != FAV_OK)
		{
			if (cleared > 0)
				fav_slice_restore(&filter->slices[home], editor->own_blocks[home], region_size, hash);
			return status;
		}
		fav_editor_hide(editor, hash);
	}
	if (recent)
		remove_recent(editor, hash);
	editor->changed = true;
	count_out(filter, 1);
	drop_empty_slices(editor);
	return FAV_OK;
}

/*
 * Delete at most DEL_AT_ONCE elements from the only slice, which may be written to, or
 * from recent.  In which order does not matter: a delete does not change what another
 * finds, unless it is of the same element.
 */
static FavStatus
del_some(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	FavFilter  *filter = &editor->filter;
	FavSlice   *slice = &filter->slices[0];
	uint64_t	taken[DEL_AT_ONCE];
	uint64_t	close[DEL_AT_ONCE];
	uint64_t	singly[DEL_AT_ONCE];
	int			cleared[DEL_AT_ONCE];
	size_t		ntaken = 0;
	size_t		nclose = 0;
	size_t		nsingly = 0;
	uint64_t	gone = 0;
	FavStatus	status = fav_editor_prepare_hide(editor, (uint32_t) count);
	size_t		i;

	if (status != FAV_OK)
		return status;

	/* Here and below: what cannot be predicted is written without a branch. */
	for (i = 0; i < count; i++)
		fav_table_prefetch(&editor->changed_deleted, hashes[i]);
	for (i = 0; i < count; i++)
	{
		bool		recent = fav_sketch_may_contain(&editor->sketch, hashes[i]);

		singly[nsingly] = hashes[i];
		nsingly += recent;
		taken[ntaken] = hashes[i];
		ntaken += !recent & !fav_editor_is_deleted(editor, hashes[i]);
	}
	fav_slice_take_many(slice, editor->own_blocks[0], filter->params.region_size, taken, ntaken, cleared);
	for (i = 0; i < ntaken; i++)
	{
		bool		reported = cleared[i] != FAV_NOT_REPORTED;
		bool		is_close = fav_is_close(slice, (uint32_t) cleared[i]);

		close[nclose] = taken[i];
		nclose += is_close;
		gone += reported & !is_close;
	}
	for (i = 0; i < nclose; i++)
	{
		/* the same element may have come twice */
		if (fav_editor_is_deleted(editor, close[i]))
			continue;
		fav_editor_hide(editor, close[i]);
		gone++;
	}
	if (gone > 0)
	{
		editor->changed = true;
		count_out(filter, gone);
		drop_empty_slices(editor);
	}
	return edit_each(editor, singly, nsingly, fav_editor_del);
}

FavStatus
fav_editor_del_many(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	FavStatus	status = FAV_OK;

	while (count > 0 && status == FAV_OK)
	{
		size_t		now = 1;

		if (editor->filter.nslices == 1 && editor->own_blocks[0] != NULL)
		{
			now = count < DEL_AT_ONCE ? count : DEL_AT_ONCE;
			status = del_some(editor, hashes, now);
		}
		else
			status = fav_editor_del(editor, *hashes);
		hashes += now;
		count -= now;
	}
	return status;
}

FavStatus
fav_editor_finish(FavEditor *editor, const FavFilter **result)
{
	FavStatus	status = fav_editor_list_deleted(editor);

	if (status == FAV_OK && fav_size(&editor->filter) > FAV_MAX_SIZE)
		status = FAV_TOO_LARGE;
	*result = &editor->filter;
	return status;
}
