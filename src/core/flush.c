/*
 * flush.c
 *		Moving recent into the slices.
 *
 * A hash that some slice reports is pinned there: it is an earlier add or a false positive.
 * Any other is inserted into the slice with the largest share of free bits.
 * If no slice has any, a new one is chained.
 *
 * A slice is full when its bits reach bits_limit: its blocks then have, on average, the error
 * that it was sized for.  With few blocks the average is not worth much: one block that
 * happens to be fuller than the others has several times their error.  So a small slice is
 * also full when its error, computed from its bits, reaches what it was sized for.
 */
#include "editor.h"
#include "sizing.h"

/* A slice of up to this many blocks is small. */
#define SMALL_SLICE			128

/*
 * The next slice is at most this many times as large as the value, unless its capacity demands
 * more.  The slices of honest values are at most four times as large.  A forged value may state
 * more elements than its size allows, and must not make us allocate memory for them.
 */
#define GROWTH_MAX			8

/* The error of a small slice, block by block. */
typedef struct Gauge
{
	bool		is_watched;		/* small, and not full by its bits */
	double		allowed;		/* the sum of errors that makes the slice full */
	double		sum;
	double		errors[SMALL_SLICE];
} Gauge;

static double
block_error(const FavFilter *filter, uint32_t i, uint32_t block)
{
	const FavSlice *slice = &filter->slices[i];

	return fav_block_error(slice->blocks + block * fav_block_bytes(filter->params.region_size),
						   filter->params.region_size, slice->k);
}

bool
fav_slice_is_uneven(const FavFilter *filter, uint32_t i)
{
	const FavSlice *slice = &filter->slices[i];
	double		sum = 0.0;
	uint32_t	block;

	if (slice->nblocks > SMALL_SLICE)
		return false;
	for (block = 0; block < slice->nblocks; block++)
		sum += block_error(filter, i, block);
	return sum > 1.1 * slice->nblocks * fav_slice_design_error(slice, filter->params.region_size);
}

static void
watch(Gauge *gauge, const FavFilter *filter, uint32_t i)
{
	const FavSlice *slice = &filter->slices[i];
	uint32_t	block;

	gauge->is_watched = slice->nblocks <= SMALL_SLICE && fav_slice_has_free_bits(slice);
	if (!gauge->is_watched)
		return;
	gauge->allowed = fav_slice_design_error(slice, filter->params.region_size) * slice->nblocks;
	gauge->sum = 0.0;
	for (block = 0; block < slice->nblocks; block++)
	{
		gauge->errors[block] = block_error(filter, i, block);
		gauge->sum += gauge->errors[block];
	}
}

/* The slice with the largest share of free bits; FAV_NO_SLICE if all are full. */
static uint32_t
choose_slice(const Gauge *gauges, const FavFilter *filter)
{
	uint32_t	chosen = FAV_NO_SLICE;
	double		best_fill = 1.0;
	uint32_t	i;

	for (i = filter->nslices; i-- > 0;)
	{
		const FavSlice *slice = &filter->slices[i];
		double		fill = (double) slice->bits_set / (double) slice->bits_limit;

		if (fill < best_fill && !(gauges[i].is_watched && gauges[i].sum >= gauges[i].allowed))
		{
			chosen = i;
			best_fill = fill;
		}
	}
	return chosen;
}

/* How many elements fit for certain. */
static uint64_t
certain_capacity(const Gauge *gauges, const FavFilter *filter)
{
	uint64_t	certain = 0;
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
	{
		const FavSlice *slice = &filter->slices[i];

		if (fav_slice_has_free_bits(slice) && !gauges[i].is_watched)
			certain += (slice->bits_limit - slice->bits_set + slice->k - 1) / slice->k;
	}
	return certain;
}

/*
 * The next slice has the capacity of the first, doubled while that stays below the capacity of
 * all slices.  So a chain grows 1, 1, 2, 4, 8, ... times the first capacity, and a union goes on
 * from its real size.
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

/* An empty slice for the end of the chain, in memory of its own. */
static FavStatus
make_next_slice(const FavFilter *filter, FavSlice *slice, uint8_t **blocks)
{
	FavStatus	status = fav_size_next_slice(filter, slice);
	size_t		size;

	if (status != FAV_OK)
		return status;
	size = fav_slice_bytes(slice, filter->params.region_size);
	*blocks = fav_alloc(size);
	if (*blocks == NULL)
		return FAV_NO_MEMORY;
	fav_zero(*blocks, size);
	slice->blocks = *blocks;
	slice->bits_set = 0;
	slice->offset = 0;
	return FAV_OK;
}

/*
 * Move one hash into the slices.  An attacker may choose hashes that all fall into one block.
 * If no slice has free bits left then, the last one is filled beyond its limit.
 */
static void
place(FavEditor *editor, Gauge *gauges, uint64_t hash)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	region_size = filter->params.region_size;
	uint32_t	i = fav_find_slice(filter->slices, filter->nslices, region_size, hash);

	if (i != FAV_NO_SLICE)
	{
		fav_slice_pin(&filter->slices[i], editor->own_blocks[i], region_size, hash);
		return;
	}
	i = choose_slice(gauges, filter);
	if (i == FAV_NO_SLICE)
		i = filter->nslices - 1;
	fav_slice_insert(&filter->slices[i], editor->own_blocks[i], region_size, hash);
	fav_count_in(filter);
	if (gauges[i].is_watched)
	{
		uint32_t	block = fav_hash_block(hash, filter->slices[i].nblocks);
		double		error = block_error(filter, i, block);

		gauges[i].sum += error - gauges[i].errors[block];
		gauges[i].errors[block] = error;
	}
}

/* The oldest hash goes first.  All that can fail comes before the first change. */
FavStatus
fav_editor_flush(FavEditor *editor)
{
	FavFilter  *filter = &editor->filter;
	FavSlice	spare;
	uint8_t    *spare_blocks = NULL;
	Gauge		gauges[FAV_MAX_SLICES];
	FavStatus	status;
	uint32_t	i;

	if (filter->nrecent == 0)
		return FAV_OK;
	for (i = 0; i < FAV_MAX_SLICES; i++)
		gauges[i].is_watched = false;
	for (i = 0; i < filter->nslices; i++)
	{
		status = fav_editor_own_slice(editor, i);
		if (status != FAV_OK)
			return status;
		watch(&gauges[i], filter, i);
	}
	if (certain_capacity(gauges, filter) < filter->nrecent)
	{
		status = make_next_slice(filter, &spare, &spare_blocks);
		if (status != FAV_OK)
			return status;
	}

	for (i = filter->nrecent; i-- > 0;)
	{
		if (spare_blocks != NULL && choose_slice(gauges, filter) == FAV_NO_SLICE)
		{
			editor->own_blocks[filter->nslices] = spare_blocks;
			filter->slices[filter->nslices++] = spare;
			watch(&gauges[filter->nslices - 1], filter, filter->nslices - 1);
			spare_blocks = NULL;
		}
		place(editor, gauges, fav_load64(filter->recent + 8 * i));
	}
	if (spare_blocks != NULL)
		fav_free(spare_blocks);

	filter->nrecent = 0;
	filter->recent = editor->own_recent + sizeof(editor->own_recent);
	fav_recent_bits_init(&editor->recent_bits, filter);
	fav_tombstones_reorder(editor);
	editor->changed = true;
	return FAV_OK;
}
