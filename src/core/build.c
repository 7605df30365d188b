/*
 * build.c
 *		A filter with one slice of exactly the right size, from all its hashes.
 *
 * The slice is built where it will be in the value, so that a large filter need not be copied.
 */
#include "editor.h"
#include "sizing.h"

/* The offset of the blocks of an only slice in a value with its prefix. */
#define BLOCKS_OFFSET		(FAV_VALUE_PREFIX + fav_head_size(1, 0))

/* Build the slice, whose geometry is known. */
static FavStatus
build_slice(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	FavSlice   *slice = &editor->filter.slices[0];
	uint32_t	region_size = editor->filter.params.region_size;
	size_t		size = fav_slice_bytes(slice, region_size);
	uint8_t    *blocks;

	editor->own_value = fav_alloc(BLOCKS_OFFSET + size);
	if (editor->own_value == NULL)
		return FAV_NO_MEMORY;
	blocks = editor->own_value + BLOCKS_OFFSET;
	fav_zero(blocks, size);
	slice->blocks = blocks;
	slice->bits_set = 0;
	slice->offset = 0;
	fav_slice_insert_many(slice, blocks, region_size, hashes, count);
	editor->filter.nslices = 1;
	return FAV_OK;
}

FavStatus
fav_editor_build(FavEditor *editor, const FavParams *params, const uint64_t *hashes, size_t count)
{
	FavFilter  *filter = &editor->filter;
	FavStatus	status;

	fav_editor_new(editor, params);
	if (count <= FAV_RECENT_MAX)
		return fav_editor_add_many(editor, hashes, count);

	if (filter->params.capacity < count)
		filter->params.capacity = count;
	filter->elements = count;
	status = fav_size_next_slice(filter, &filter->slices[0]);
	if (status == FAV_OK)
		status = build_slice(editor, hashes, count);

	/* the blocks of a small slice may be uneven by chance: some more, then */
	while (status == FAV_OK && fav_slice_is_uneven(filter, 0))
	{
		filter->nslices = 0;
		fav_free(editor->own_value);
		fav_slice_widen(&filter->slices[0], filter->params.region_size);
		status = build_slice(editor, hashes, count);
	}
	fav_tombstones_reorder(editor);
	return status;
}

uint8_t *
fav_editor_built_value(FavEditor *editor)
{
	const FavFilter *filter = &editor->filter;
	uint8_t    *value = editor->own_value;

	if (value == NULL || filter->nslices != 1 || filter->nrecent > 0 || filter->ntombstones > 0 ||
		filter->slices[0].blocks != value + BLOCKS_OFFSET)
		return NULL;
	fav_write_head(filter, value + FAV_VALUE_PREFIX);
	editor->own_value = NULL;
	return value;
}
