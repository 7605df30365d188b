/*
 * editor.c
 *		Changing a filter: open, remove, exclude, finish.
 *
 * Why no element can vanish.  An element x that was added and not removed since is in recent,
 * or was flushed into a slice.  There either it was inserted, and its bits in unmarked regions
 * are its own, or it was pinned, and all its regions are marked.  Bits are only cleared in
 * unmarked regions, and only for an element y that exactly one slice reports.  That slice is
 * y's home, because the home of an element always reports it.  So the cleared bits are y's
 * own, not x's.  If two slices report y, its home is unknown, and y gets a tombstone
 * instead.  docs/internals/ALGORITHM.md has the long form.
 */
#include "editor.h"

/* The number of changes that are prefetched ahead. */
#define PREFETCH_DISTANCE	16

/*
 * Begin and end
 */

void
fav_editor_new(FavEditor *editor, const FavParams *params)
{
	FavFilter	empty;

	fav_make_empty(&empty, params);
	fav_editor_open(editor, &empty);
}

void
fav_editor_open(FavEditor *editor, const FavFilter *source)
{
	uint8_t    *front = editor->own_recent + sizeof(editor->own_recent) - 8 * source->nrecent;

	editor->filter = *source;
	editor->filter.is_short = false;
	memset(editor->own_blocks, 0, sizeof(editor->own_blocks));
	editor->changed = false;
	editor->recent_max = FAV_RECENT_MAX;
	fav_copy(front, source->recent, 8 * source->nrecent);
	editor->filter.recent = front;
	fav_recent_periods(source, editor->periods + FAV_RECENT_LIMIT - source->nrecent);
	fav_recent_bits_init(&editor->recent_bits, &editor->filter);
	fav_tombstones_open(editor, NULL);
}

void
fav_editor_close(FavEditor *editor)
{
	uint32_t	i;

	for (i = 0; i < FAV_MAX_DATED_SLICES; i++)
		if (editor->own_blocks[i] != NULL)
			fav_free(editor->own_blocks[i]);
	fav_tombstones_close(editor);
}

/* Write the periods of recent hashes down, as runs. */
static void
make_runs(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	const int32_t *periods = fav_editor_periods(editor);
	uint8_t    *run = editor->own_runs;
	uint32_t	i;

	filter->nruns = 0;
	filter->runs = editor->own_runs;
	for (i = 0; i < filter->nrecent && fav_is_dated(filter); i++)
	{
		if (i == 0 || periods[i] != periods[i - 1])
		{
			run = editor->own_runs + filter->nruns++ * FAV_RUN_SIZE;
			fav_store32(run + FAV_RUN_AT_PERIOD, (uint32_t) periods[i]);
			run[FAV_RUN_AT_COUNT] = 0;
		}
		run[FAV_RUN_AT_COUNT]++;
	}
}

FavStatus
fav_editor_finish(FavEditor *editor, const FavFilter **result)
{
	FavStatus	status = fav_tombstones_merge(editor);

	make_runs(editor);
	fav_tombstones_reorder(editor);
	if (status == FAV_OK && fav_size(&editor->filter) > FAV_MAX_SIZE)
		status = FAV_TOO_LARGE;
	*result = &editor->filter;
	return status;
}

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

bool
fav_editor_contains(const FavEditor *editor, uint64_t hash)
{
	return FAV_IS_MEMBER(fav_editor_in_recent(editor, hash),
						 fav_slices_report(&editor->filter, hash),
						 fav_editor_has_tombstone(editor, hash));
}

void
fav_editor_drop_recent(FavEditor *editor, uint32_t from, uint32_t count)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	front = FAV_RECENT_LIMIT - filter->nrecent;

	memmove(editor->own_recent + 8 * (front + count), editor->own_recent + 8 * front, 8 * from);
	memmove(editor->periods + front + count, editor->periods + front,
			from * sizeof(editor->periods[0]));
	filter->recent = editor->own_recent + 8 * (front + count);
	filter->nrecent -= count;
	editor->changed = true;
}

/*
 * Remove
 */

void
fav_editor_drop_slice(FavEditor *editor, uint32_t i)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	after = --filter->nslices - i;

	if (editor->own_blocks[i] != NULL)
		fav_free(editor->own_blocks[i]);
	memmove(&filter->slices[i], &filter->slices[i + 1], after * sizeof(filter->slices[0]));
	memmove(&editor->own_blocks[i], &editor->own_blocks[i + 1],
			after * sizeof(editor->own_blocks[0]));
	editor->own_blocks[filter->nslices] = NULL;
	editor->changed = true;
}

/*
 * Without a single bit set no element is in the slices.  What they marked means nothing any
 * more, and neither do tombstones of removed elements.  Excluded elements stay excluded.
 */
static void
drop_empty_slices(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
		if (filter->slices[i].bits_set > 0)
			return;
	while (filter->nslices > 0)
		fav_editor_drop_slice(editor, filter->nslices - 1);
	filter->elements = 0;
	if (filter->has_excluded)
		fav_tombstones_reorder(editor);
	else
		fav_tombstones_replace(editor, NULL, 0);
}

/*
 * This many of the k bits of an element are cleared, or none.
 *
 * The fewer are cleared, the more often the element comes back when others set them.  With an
 * error rate of 1 % and more, and regions that are not small, two keep that below the error
 * rate, and every bit more would cost tombstones.  Otherwise it takes half of the bits.  That
 * also keeps blocks evenly full: those with many elements have few bits to clear, and would
 * stay full while the others are emptied and filled anew.
 */
static uint32_t
least_to_clear(const FavParams *params, uint32_t k)
{
	uint32_t	half = (k + 1) / 2;

	if (half <= 2 || (params->error_rate >= 0.01 && params->region_size >= 7))
		return k > 1 ? 2 : 1;
	return half;
}

/*
 * Remove an element from the slice that is its home.  If it has a tombstone already, nothing is
 * cleared (docs/internals/ALGORITHM.md), so the caller need not check for that.
 */
static FavStatus
remove_from_slice(FavEditor *editor, uint32_t home, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	FavStatus	status = fav_editor_own_slice(editor, home);

	if (status != FAV_OK)
		return status;
	if (!fav_slice_remove(&filter->slices[home], editor->own_blocks[home],
						  filter->params.region_size, hash,
						  least_to_clear(&filter->params, filter->slices[home].k)))
		return fav_tombstones_add(editor, hash);
	fav_count_out(filter, 1);
	editor->changed = true;
	if (filter->slices[home].bits_set == 0)
		drop_empty_slices(editor);
	return FAV_OK;
}

/*
 * The home of the element is unknown.  Pin it in all slices that report it, because it may be
 * removed again when just one of them does, and give it a tombstone.
 */
static FavStatus
pin_and_add_tombstone(FavEditor *editor, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	region_size = filter->params.region_size;
	uint32_t	i = filter->nslices;

	while ((i = fav_find_slice(filter->slices, i, region_size, hash)) != FAV_NO_SLICE)
	{
		FavStatus	status = fav_editor_own_slice(editor, i);

		if (status != FAV_OK)
			return status;
		fav_slice_pin(&filter->slices[i], editor->own_blocks[i], region_size, hash);
		editor->changed = true;
	}
	return fav_tombstones_add(editor, hash);
}

FavStatus
fav_editor_remove(FavEditor *editor, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	region_size = filter->params.region_size;
	bool		in_recent = fav_editor_in_recent(editor, hash);
	uint32_t	home;
	FavStatus	status = FAV_OK;

	/* an excluded element is absent already, and bits that report it may be another's */
	if (filter->has_excluded && fav_editor_has_tombstone(editor, hash))
		return FAV_OK;
	home = fav_find_slice(filter->slices, filter->nslices, region_size, hash);
	if (home != FAV_NO_SLICE)
	{
		/*
		 * The home of an element of a dated filter may be forgotten, and then bits that report
		 * it are another's.  So none is cleared.  The tombstone is forgotten with the slice.
		 *
		 * An element of a stack need not have a home: if base reported it by chance, nobody has
		 * added it there.
		 */
		if (fav_is_dated(filter) || filter->is_stacked)
			status = fav_tombstones_add(editor, hash);
		/* an element of recent need not have a home: a slice may report a false positive */
		else if (!in_recent &&
				 fav_find_slice(filter->slices, home, region_size, hash) == FAV_NO_SLICE)
			return remove_from_slice(editor, home, hash);
		else if (in_recent || !fav_editor_has_tombstone(editor, hash))
			status = pin_and_add_tombstone(editor, hash);
		if (status != FAV_OK)
			return status;
	}
	if (in_recent)
		fav_editor_drop_recent(editor, fav_list_position(filter->recent, hash), 1);
	return FAV_OK;
}

/*
 * Exclude
 */

FavStatus
fav_editor_exclude(FavEditor *editor, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	FavStatus	status = FAV_OK;

	if (!fav_editor_has_tombstone(editor, hash))
	{
		/* A tombstone counts as an element less.  This one may never have been counted. */
		uint64_t	elements = filter->elements;

		if (!fav_slices_report(filter, hash))
			fav_count_in(filter);
		status = fav_tombstones_add(editor, hash);
		if (status != FAV_OK)
			filter->elements = elements;
		else
			filter->has_excluded = true;
	}
	if (status == FAV_OK && fav_editor_in_recent(editor, hash))
		fav_editor_drop_recent(editor, fav_list_position(filter->recent, hash), 1);
	return status;
}

/*
 * Many changes
 */

/* The golden section of a number, or the next that has no divisor in common with it. */
size_t
fav_scatter_step(size_t count)
{
	size_t		step = (size_t) (0.618 * (double) count);
	size_t		divisor = 0;

	for (; divisor != 1; step++)
	{
		size_t		rest = step;

		for (divisor = count; rest != 0;)
		{
			size_t		next = divisor % rest;

			divisor = rest;
			rest = next;
		}
	}
	return step - 1;
}

/* The cache misses of some changes overlap. */
static FavStatus
change_many(FavEditor *editor, const uint64_t *hashes, size_t count,
			FavStatus (*change) (FavEditor *editor, uint64_t hash))
{
	FavStatus	status = FAV_OK;
	size_t		i;

	for (i = 0; i < count + PREFETCH_DISTANCE && status == FAV_OK; i++)
	{
		if (i < count)
			fav_prefetch(&editor->filter, hashes[i]);
		if (i >= PREFETCH_DISTANCE)
			status = change(editor, hashes[i - PREFETCH_DISTANCE]);
	}
	return status;
}

FavStatus
fav_editor_remove_many(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	return change_many(editor, hashes, count, fav_editor_remove);
}

FavStatus
fav_editor_exclude_many(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	return change_many(editor, hashes, count, fav_editor_exclude);
}
