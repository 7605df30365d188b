/*
 * room.c
 *		See room.h.
 */
#include "room.h"
#include "sizing.h"

/* The errors of all blocks of a slice, if wanted, and their sum. */
static double
sum_errors(const FavFilter *filter, uint32_t i, double *errors)
{
	const FavSlice *slice = &filter->slices[i];
	uint32_t	region_size = filter->params.region_size;
	double		sum = 0.0;
	uint32_t	block;

	for (block = 0; block < slice->nblocks; block++)
	{
		double		error = fav_block_error(slice->blocks + block * fav_block_bytes(region_size),
											region_size, slice->k);

		if (errors != NULL)
			errors[block] = error;
		sum += error;
	}
	return sum;
}

bool
fav_room_error_fits(const FavFilter *filter, uint32_t i)
{
	const FavSlice *slice = &filter->slices[i];

	return sum_errors(filter, i, NULL) <=
		1.1 * slice->nblocks * fav_slice_design_error(slice, filter->params.region_size);
}

void
fav_room_watch(FavRoom *room, const FavFilter *filter, uint32_t i)
{
	const FavSlice *slice = &filter->slices[i];
	uint32_t	region_size = filter->params.region_size;
	FavGauge   *gauge = &room->gauges[i];

	gauge->watched = slice->nblocks <= FAV_SMALL_SLICE && fav_slice_has_room(slice);
	if (!gauge->watched)
		return;
	gauge->allowed = fav_slice_design_error(slice, region_size) * slice->nblocks;
	gauge->sum = sum_errors(filter, i, gauge->errors);
}

bool
fav_room_choose(const FavRoom *room, const FavFilter *filter, uint32_t *chosen)
{
	double		best_fill = 1.0;
	uint32_t	i;

	for (i = filter->nslices; i-- > 0;)
	{
		const FavSlice *slice = &filter->slices[i];
		const FavGauge *gauge = &room->gauges[i];
		double		fill = (double) slice->bits_set / (double) slice->bits_limit;

		if (fill < best_fill && !(gauge->watched && gauge->sum >= gauge->allowed))
		{
			*chosen = i;
			best_fill = fill;
		}
	}
	return best_fill < 1.0;
}

void
fav_room_inserted(FavRoom *room, const FavFilter *filter, uint32_t i, uint64_t hash)
{
	const FavSlice *slice = &filter->slices[i];
	FavGauge   *gauge = &room->gauges[i];
	uint32_t	block = fav_hash_block(hash, slice->nblocks);
	double		error;

	if (!gauge->watched)
		return;
	error = fav_block_error(slice->blocks + block * fav_block_bytes(filter->params.region_size),
							filter->params.region_size, slice->k);
	gauge->sum += error - gauge->errors[block];
	gauge->errors[block] = error;
}

uint64_t
fav_room_certain(const FavRoom *room, const FavFilter *filter)
{
	uint64_t	certain = 0;
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
	{
		const FavSlice *slice = &filter->slices[i];

		if (fav_slice_has_room(slice) && !room->gauges[i].watched)
			certain += (slice->bits_limit - slice->bits_set + slice->k - 1) / slice->k;
	}
	return certain;
}
