/*
 * build.c
 *		A filter with one slice of exactly the right size, from all its hashes.
 */
#include "editor.h"
#include "sizing.h"

/* Build the slice, whose geometry is known. */
static FavStatus
build_slice(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	FavSlice   *slice = &editor->filter.slices[0];
	uint32_t	region_size = editor->filter.params.region_size;
	size_t		size = fav_slice_bytes(slice, region_size);
	uint8_t    *blocks = fav_alloc(size);

	if (blocks == NULL)
		return FAV_NO_MEMORY;
	editor->own_blocks[0] = blocks;
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
	status = fav_size_next_slice(filter, 0, count, &filter->slices[0]);
	if (status == FAV_OK)
		status = build_slice(editor, hashes, count);

	/* the blocks of a small slice may be uneven by chance: some more, then */
	while (status == FAV_OK && fav_slice_is_uneven(filter, 0))
	{
		filter->nslices = 0;
		fav_free(editor->own_blocks[0]);
		editor->own_blocks[0] = NULL;
		fav_slice_widen(&filter->slices[0], filter->params.region_size);
		status = build_slice(editor, hashes, count);
	}
	fav_tombstones_reorder(editor);
	return status;
}
