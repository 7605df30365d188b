/*
 * build.c
 *		A filter with one slice of exactly the right size, from all its hashes.
 */
#include "filter.h"
#include "room.h"
#include "sizing.h"

/* Hashes that the slice is filled with at once. */
#define FILL_AT_ONCE		256

/* Where the blocks of an only slice are in a value with its prefix. */
#define ONLY_BLOCKS_AT		(FAV_VALUE_PREFIX + fav_head_size(1, 0))

/* Fill a slice; returns how many hashes are doubtful, which go there if it is not NULL. */
static size_t
fill_slice(FavEditor *editor, uint8_t *blocks, const uint64_t *hashes, size_t count, uint64_t *doubtful)
{
	FavFilter  *filter = &editor->filter;
	uint64_t	doubtful_now[FILL_AT_ONCE];
	size_t		ndoubtful = 0;
	size_t		done;
	size_t		now;

	for (done = 0; done < count; done += now)
	{
		size_t		n;

		now = count - done < FILL_AT_ONCE ? count - done : FILL_AT_ONCE;
		if (done % FAV_PAUSE_HASHES == 0)
			fav_pause();
		/* where all bits are set already, to insert is to claim */
		n = fav_slice_fill(&filter->slices[0], blocks, filter->params.region_size, hashes + done, now, doubtful_now);
		if (doubtful != NULL)
			memcpy(doubtful + ndoubtful, doubtful_now, n * sizeof(uint64_t));
		ndoubtful += n;
	}
	return ndoubtful;
}

/* An editor for one slice that holds so many, and its geometry. */
static FavStatus
size_only_slice(FavEditor *editor, const FavParams *params, size_t count)
{
	fav_editor_new(editor, params);
	if (editor->filter.params.capacity < count)
		editor->filter.params.capacity = count;
	editor->filter.elements = count;
	return fav_size_next_slice(&editor->filter, &editor->filter.slices[0]);
}

/* A few blocks may be uneven by chance: some more, then. */
static bool
only_slice_fits(const FavEditor *editor)
{
	return editor->filter.slices[0].nblocks > FAV_SMALL_SLICE || fav_room_error_fits(&editor->filter, 0);
}

FavStatus
fav_editor_build_spans(FavEditor *editor, const FavParams *params, const FavSpan *spans, size_t nspans)
{
	FavSlice   *slice = &editor->filter.slices[0];
	FavStatus	status;
	size_t		count = 0;
	size_t		i;
	size_t		j;

	for (i = 0; i < nspans; i++)
		count += spans[i].count;
	if (count <= FAV_RECENT_MAX)
	{
		/* fits recent: nothing here can fail */
		fav_editor_new(editor, params);
		for (i = 0; i < nspans; i++)
			for (j = 0; j < spans[i].count; j++)
				fav_editor_add(editor, spans[i].hashes[j]);
		return FAV_OK;
	}

	status = size_only_slice(editor, params, count);
	while (status == FAV_OK)
	{
		status = fav_make_blocks(&editor->filter, slice, &editor->own_blocks[0]);
		if (status != FAV_OK)
			break;
		editor->filter.nslices = 1;
		fav_tombstones_reorder(editor);
		for (i = 0; i < nspans; i++)
			fill_slice(editor, editor->own_blocks[0], spans[i].hashes, spans[i].count, NULL);
		if (only_slice_fits(editor))
			break;
		fav_free(editor->own_blocks[0]);
		editor->own_blocks[0] = NULL;
		editor->filter.nslices = 0;
		fav_slice_widen(slice, editor->filter.params.region_size);
	}
	return status;
}

FavStatus
fav_editor_build(FavEditor *editor, const FavParams *params, const uint64_t *hashes, size_t count)
{
	FavSpan		span;

	span.hashes = hashes;
	span.count = count;
	return fav_editor_build_spans(editor, params, &span, 1);
}

FavStatus
fav_editor_begin_build(FavEditor *editor, const FavParams *params, size_t count)
{
	FavSlice   *slice = &editor->filter.slices[0];
	FavStatus	status = size_only_slice(editor, params, count);

	if (status != FAV_OK)
		return status;
	editor->own_value = fav_alloc(ONLY_BLOCKS_AT + fav_slice_bytes(slice, params->region_size));
	if (editor->own_value == NULL)
		return FAV_NO_MEMORY;
	slice->blocks = editor->own_value + ONLY_BLOCKS_AT;
	slice->bits_set = 0;
	slice->offset = 0;
	editor->filter.nslices = 1;
	fav_tombstones_reorder(editor);
	editor->zeroed = 0;
	return FAV_OK;
}

/*
 * Blocks are cleared not long before they are filled, when they are touched for the
 * first time anyway.
 */
static void
zero_blocks_until(FavEditor *editor, size_t end)
{
	if (end <= editor->zeroed)
		return;
	fav_zero(editor->own_value + ONLY_BLOCKS_AT + editor->zeroed, end - editor->zeroed);
	editor->zeroed = end;
}

size_t
fav_editor_fill(FavEditor *editor, const uint64_t *hashes, size_t count, uint64_t last, uint64_t *doubtful)
{
	uint32_t	region_size = editor->filter.params.region_size;

	zero_blocks_until(editor, fav_slice_block_offset(&editor->filter.slices[0], region_size, last) +
					  fav_block_bytes(region_size));
	return fill_slice(editor, editor->own_value + ONLY_BLOCKS_AT, hashes, count, doubtful);
}

bool
fav_editor_end_build(FavEditor *editor)
{
	zero_blocks_until(editor, fav_slice_bytes(&editor->filter.slices[0], editor->filter.params.region_size));
	if (only_slice_fits(editor))
		return true;
	fav_editor_close(editor);
	return false;
}

uint8_t *
fav_editor_take_value(FavEditor *editor)
{
	const FavFilter *filter = &editor->filter;
	uint8_t    *value = editor->own_value;

	if (value == NULL || filter->nslices != 1 || filter->slices[0].blocks != value + ONLY_BLOCKS_AT ||
		filter->nrecent > 0 || filter->ntombstones > 0)
		return NULL;
	fav_write_head(filter, value + FAV_VALUE_PREFIX);
	editor->own_value = NULL;
	return value;
}
