/*
 * union.c
 *		Merging one filter into another.
 *
 * Slices of the same geometry (and span, if dated) are OR-ed if the result is not too full;
 * others are chained.  A bit that both had set may belong to two elements now, so its region is
 * marked: the invariant of slice.h holds for the result.
 *
 * A hash keeps its tombstone only if neither side contains it: what one side removed the other
 * may well hold.
 *
 * A second editor does all this and replaces the first at the end, so that a failure leaves
 * nothing half done.
 */
#include "editor.h"
#include "sizing.h"

/* The number of elements that both slices have, estimated from the bits of their union. */
static double
common_elements(const FavSlice *a, const FavSlice *b, uint64_t bits_set, uint32_t region_size)
{
	double		in_a = fav_slice_estimate(a, region_size, a->bits_set);
	double		in_b = fav_slice_estimate(b, region_size, b->bits_set);
	double		common = in_a + in_b - fav_slice_estimate(a, region_size, bits_set);
	double		most = in_a < in_b ? in_a : in_b;

	return common < 0 ? 0 : common > most ? most : common;
}

static uint64_t
unite_counts(uint64_t a, uint64_t b, double common)
{
	uint64_t	sum = a + b;

	sum -= common < (double) sum ? (uint64_t) common : sum;
	return sum < FAV_MAX_ELEMENTS ? sum : FAV_MAX_ELEMENTS;
}

/*
 * OR a slice into one of the editor's that has its geometry and would not become
 * too full.  *merged says whether there was one.
 */
static FavStatus
merge_slice(FavEditor *editor, const FavSlice *slice, bool *merged, double *common)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	region_size = filter->params.region_size;
	int64_t		span = fav_span(filter, slice->last);
	uint32_t	i;

	*merged = false;
	for (i = 0; i < filter->nslices; i++)
	{
		FavSlice   *own = &filter->slices[i];
		FavStatus	status;
		uint64_t	bits_set;
		double		in_both;

		if (own->nblocks != slice->nblocks || own->k != slice->k ||
			own->bits_limit != slice->bits_limit || fav_slice_span(filter, i) != span)
			continue;
		bits_set = fav_slice_merge(own, slice, region_size, NULL);
		if (bits_set > own->bits_limit && bits_set > own->bits_set && bits_set > slice->bits_set)
			continue;
		status = fav_editor_own_slice(editor, i);
		if (status != FAV_OK)
			return status;
		in_both = common_elements(own, slice, bits_set, region_size);

		/* elements that came again are counted in a later slice */
		if (fav_is_dated(filter) && in_both > own->elements)
			in_both = own->elements;
		if (fav_is_dated(filter) && in_both > slice->elements)
			in_both = slice->elements;
		*common += in_both;
		fav_slice_merge(own, slice, region_size, editor->own_blocks[i]);
		own->bits_set = bits_set;
		own->elements = unite_counts(own->elements, slice->elements, in_both);
		fav_widen_periods(own, slice->first);
		fav_widen_periods(own, slice->last);
		*merged = true;
		return FAV_OK;
	}
	return FAV_OK;
}

static FavStatus
chain_slice(FavEditor *editor, const FavSlice *slice)
{
	FavFilter  *filter = &editor->filter;

	if (filter->nslices == fav_max_slices(filter))
		return FAV_TOO_MANY_SLICES;
	if (fav_size(filter) + fav_slice_bytes(slice, filter->params.region_size) > FAV_MAX_SIZE)
		return FAV_TOO_LARGE;
	filter->slices[filter->nslices] = *slice;
	return fav_editor_own_slice(editor, filter->nslices++);
}

static FavStatus
union_slices(FavEditor *editor, const FavFilter *other)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	nslices = filter->nslices;
	bool		chained = false;
	double		common = 0.0;
	uint32_t	i;

	for (i = 0; i < other->nslices; i++)
	{
		bool		merged;
		FavStatus	status = merge_slice(editor, &other->slices[i], &merged, &common);

		if (status == FAV_OK && !merged)
		{
			chained |= fav_has_span(filter, nslices, fav_slice_span(other, i));
			status = chain_slice(editor, &other->slices[i]);
		}
		if (status != FAV_OK)
			return status;
	}
	filter->elements = unite_counts(filter->elements, other->elements, common);

	/* Two chains of one span side by side err as often as both together. */
	if (chained)
		filter->params.error_rate += other->params.error_rate;
	else if (filter->params.error_rate < other->params.error_rate)
		filter->params.error_rate = other->params.error_rate;
	if (filter->params.error_rate > 1.0)
		filter->params.error_rate = 1.0;
	if (filter->params.capacity < other->params.capacity)
		filter->params.capacity = other->params.capacity;
	return FAV_OK;
}

/*
 * The tombstones of both that neither contains.  `a` is the filter before its slices were
 * merged.
 */
static FavStatus
union_tombstones(FavEditor *editor, const FavFilter *a, const FavFilter *b)
{
	uint64_t	most = (uint64_t) a->ntombstones + b->ntombstones;
	FavMerge	merge = {.nlists = 0};
	uint32_t	kept = 0;
	uint64_t	hash;
	uint8_t    *list;
	FavStatus	status;

	fav_tombstones_reorder(editor);
	if (most == 0)
		return FAV_OK;
	status = fav_new_list(most, &list);
	if (status != FAV_OK)
		return status;
	fav_merge_tombstones(&merge, a);
	fav_merge_tombstones(&merge, b);
	while (fav_merge_next(&merge, &hash) != 0)
		if (!fav_contains(a, hash) && !fav_contains(b, hash))
			fav_store64(list + 8 * (size_t) kept++, hash);
	fav_tombstones_replace(editor, list, kept);
	return FAV_OK;
}

static FavStatus
union_into(FavEditor *editor, const FavFilter *a, const FavFilter *b)
{
	FavStatus	status = union_slices(editor, b);
	int32_t		periods[FAV_RECENT_LIMIT];
	uint32_t	i;

	if (status == FAV_OK)
		status = union_tombstones(editor, a, b);

	/* oldest first, as they came */
	editor->filter.has_excluded |= b->has_excluded;
	editor->filter.is_stacked |= b->is_stacked;
	fav_recent_periods(b, periods);
	for (i = b->nrecent; i-- > 0 && status == FAV_OK;)
		status = fav_editor_put_recent(editor, fav_load64(b->recent + 8 * i), periods[i]);
	editor->changed = true;
	return status;
}

/* Replace the editor by `next`, which was opened on its filter. */
static void
replace_editor(FavEditor *editor, const FavEditor *next)
{
	FavEditor	old = *editor;
	uint32_t	i;
	uint32_t	j;

	/* what `next` borrowed changes hands */
	*editor = *next;
	editor->filter.recent = editor->own_recent + sizeof(editor->own_recent) -
		8 * editor->filter.nrecent;
	for (i = 0; i < editor->filter.nslices; i++)
		for (j = 0; j < FAV_MAX_DATED_SLICES && editor->own_blocks[i] == NULL; j++)
			if (old.own_blocks[j] != NULL && old.own_blocks[j] == editor->filter.slices[i].blocks)
			{
				editor->own_blocks[i] = old.own_blocks[j];
				old.own_blocks[j] = NULL;
			}
	fav_tombstones_moved(editor);
	fav_editor_close(&old);
}

FavStatus
fav_editor_union(FavEditor *editor, const FavFilter *other)
{
	const FavFilter *finished;
	FavFilter	a;
	FavFilter	b = *other;
	FavEditor	next;
	FavStatus	status;

	if (other->is_short)
		return FAV_OK;
	if (editor->filter.params.seed != other->params.seed ||
		editor->filter.params.region_size != other->params.region_size ||
		editor->filter.params.keep != other->params.keep ||
		(editor->filter.params.kind != other->params.kind &&
		 !fav_is_empty(&editor->filter) && !fav_is_empty(other)))
		return FAV_MISMATCH;
	status = fav_editor_finish(editor, &finished);
	if (status != FAV_OK)
		return status;

	/* both forget what is too old in the newest period of either */
	a = *finished;
	fav_forget(&a, b.newest);
	fav_forget(&b, a.newest);
	fav_editor_open(&next, &a);
	if (fav_is_empty(finished) && !fav_is_empty(other))
		next.filter.params.kind = other->params.kind;
	status = union_into(&next, &a, &b);
	if (status == FAV_OK)
		replace_editor(editor, &next);
	else
		fav_editor_close(&next);
	return status;
}
