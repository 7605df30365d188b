/*
 * filter.c
 *		Reading a filter.
 */
#include <math.h>

#include "filter.h"
#include "sizing.h"

/*
 * A filter this many times the size of a fresh one should be rebuilt.  A little less than
 * three, because the size of a fresh one is an estimate.
 */
#define BLOATED				2.9

/* With a smaller share of free bits left, the next slice is as good as there. */
#define NEARLY_FULL			(1.0 / 8)

/* The number of probes that are prefetched ahead. */
#define PREFETCH_DISTANCE	16

void
fav_recent_bits_init(FavRecentBits *bits, const FavFilter *filter)
{
	uint32_t	i;

	memset(bits, 0, sizeof(*bits));
	for (i = 0; i < filter->nrecent; i++)
		fav_recent_bits_add(bits, fav_load64(filter->recent + 8 * i));
}

void
fav_matcher_contains_many(const FavMatcher *matcher, const uint64_t *hashes, size_t count,
						  bool *answers)
{
	size_t		i;

	for (i = 0; i < count + PREFETCH_DISTANCE; i++)
	{
		if (i < count)
			fav_prefetch(matcher->filter, hashes[i]);
		if (i >= PREFETCH_DISTANCE)
			answers[i - PREFETCH_DISTANCE] =
				fav_matcher_contains(matcher, hashes[i - PREFETCH_DISTANCE]);
	}
}

/*
 * What a filter says about itself
 */

void
fav_measure_slice(const FavFilter *filter, uint32_t number, FavMeasure *measure)
{
	const FavSlice *slice = &filter->slices[number];
	uint32_t	region_size = filter->params.region_size;
	uint64_t	all_set = 0;
	uint64_t	all_clean = 0;
	uint64_t	marked = 0;
	double		error = 0.0;
	uint32_t	i;

	for (i = 0; i < slice->nblocks; i++)
	{
		const uint8_t *block = slice->blocks + i * fav_block_bytes(region_size);
		const uint8_t *tracker = block + (size_t) region_size * FAV_LANE_BYTES;
		const uint8_t *at;

		if (i % FAV_PAUSE_BLOCKS == 0)
			fav_pause();
		for (at = block; at < tracker; at += 8)
		{
			uint64_t	bits = fav_load64(at);
			uint64_t	marks = fav_load64(tracker + (at - block) % FAV_LANE_BYTES);

			all_set += fav_popcount64(bits);
			all_clean += fav_popcount64(bits & ~marks);
		}
		marked += fav_popcount(tracker, FAV_LANE_BYTES);
		error += fav_block_error(block, region_size, slice->k);
	}
	measure->fill = (double) all_set / (double) fav_slice_bits(slice, region_size);
	measure->error = error / slice->nblocks;
	measure->clean_regions = 1.0 - (double) marked / ((double) slice->nblocks * FAV_LANE_BITS);
	measure->deletable = filter->is_stacked ? 0.0 : all_set == 0 ? 1.0 :
		1.0 - fav_power(1.0 - (double) all_clean / (double) all_set, slice->k);
}

void
fav_measure(const FavFilter *filter, FavMeasure *measure)
{
	double		bits = 0.0;
	double		set = 0.0;
	double		regions = 0.0;
	double		clean = 0.0;
	double		elements = 0.0;
	double		deletable = 0.0;
	double		right = 1.0;	/* probability of no false positive */
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
	{
		const FavSlice *slice = &filter->slices[i];
		double		slice_bits = (double) fav_slice_bits(slice, filter->params.region_size);
		double		slice_elements = fav_slice_estimate(slice, filter->params.region_size,
														slice->bits_set);
		FavMeasure	of_slice;

		fav_measure_slice(filter, i, &of_slice);
		bits += slice_bits;
		set += of_slice.fill * slice_bits;
		regions += slice->nblocks;
		clean += of_slice.clean_regions * slice->nblocks;
		elements += slice_elements;
		deletable += of_slice.deletable * slice_elements;
		right *= 1.0 - of_slice.error;
	}
	measure->fill = bits > 0 ? set / bits : 0.0;
	measure->error = 1.0 - right;
	measure->clean_regions = regions > 0 ? clean / regions : 1.0;
	measure->deletable = filter->is_stacked ? 0.0 : elements > 0 ? deletable / elements : 1.0;
}

uint64_t
fav_count(const FavFilter *filter)
{
	uint64_t	count = filter->elements;
	uint32_t	i;

	/* a recent hash that the slices report is counted there */
	for (i = 0; i < filter->nrecent; i++)
		if (!fav_slices_report(filter, fav_load64(filter->recent + 8 * i)))
			count++;
	return count;
}

void
fav_recent_periods(const FavFilter *filter, int32_t periods[FAV_RECENT_LIMIT])
{
	uint32_t	at = 0;
	uint32_t	run;
	uint32_t	i;

	for (run = 0; run < filter->nruns; run++)
		for (i = fav_run_count(filter, run); i > 0; i--)
			periods[at++] = fav_run_period(filter, run);
	while (at < filter->nrecent)
		periods[at++] = 0;
}

int32_t
fav_oldest(const FavFilter *filter)
{
	bool		is_empty = filter->nruns == 0;
	int32_t		oldest = is_empty ? FAV_NO_PERIOD : fav_run_period(filter, filter->nruns - 1);
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++, is_empty = false)
		if (is_empty || filter->slices[i].first < oldest)
			oldest = filter->slices[i].first;
	return oldest;
}

void
fav_forget(FavFilter *filter, int32_t now)
{
	uint32_t	kept = 0;
	uint32_t	i;

	if (!fav_is_dated(filter) || now <= filter->newest)
		return;
	filter->newest = now;
	while (filter->nruns > 0 &&
		   fav_is_too_old(filter, fav_run_period(filter, filter->nruns - 1), now))
		filter->nrecent -= fav_run_count(filter, --filter->nruns);
	for (i = 0; i < filter->nslices; i++)
	{
		if (fav_is_too_old(filter, filter->slices[i].last, now))
			fav_count_out(filter, filter->slices[i].elements);
		else
			filter->slices[kept++] = filter->slices[i];
	}
	filter->nslices = kept;
	if (kept == 0)
		filter->elements = 0;
}

/* The size of a filter built now, from as many elements and these parameters. */
static double
fresh_size(const FavFilter *filter)
{
	uint32_t	region_size = filter->params.region_size;
	uint64_t	count = filter->elements + filter->nrecent;
	const FavSlice *first = &filter->slices[0];

	if (fav_is_empty(filter))
		return (double) fav_size(filter);
	if (filter->nslices == 0 || count <= FAV_RECENT_MAX)
		return FAV_HEADER_SIZE + 8.0 * (double) count;

	/* the first slice tells what an element costs */
	if (count < filter->params.capacity)
		count = filter->params.capacity;
	return FAV_HEADER_SIZE + FAV_SLICE_ENTRY_SIZE +
		ceil((double) count / fav_slice_capacity(first, region_size) * first->nblocks) *
		(double) fav_block_bytes(region_size);
}

double
fav_bloat(const FavFilter *filter)
{
	return (double) fav_size(filter) / fresh_size(filter);
}

bool
fav_needs_rebuild(const FavFilter *filter)
{
	uint32_t	region_size = filter->params.region_size;
	double		size = (double) fav_size(filter);
	double		right = 1.0;
	double		limit = 0.0;
	double		free_bits = 0.0;
	double		capacity = 0.0;
	uint32_t	i;

	if (filter->nslices == 0)
		return false;
	for (i = 0; i < filter->nslices; i++)
	{
		const FavSlice *slice = &filter->slices[i];

		limit += (double) slice->bits_limit;
		if (fav_slice_has_free_bits(slice))
			free_bits += (double) (slice->bits_limit - slice->bits_set);
		capacity += fav_slice_capacity(slice, region_size);
		right *= 1.0 - fav_power((double) slice->bits_set /
								 (double) fav_slice_bits(slice, region_size), slice->k);
	}
	if (1.0 - right > filter->params.error_rate)
		return true;

	/* a dated filter renews itself: what is too large will be forgotten */
	if (fav_is_dated(filter))
		return false;

	/* the next slice is about as large as all there are, at the last one's cost */
	if (free_bits < limit * NEARLY_FULL)
	{
		const FavSlice *last = &filter->slices[filter->nslices - 1];

		size += capacity / fav_slice_capacity(last, region_size) *
			(double) fav_slice_bytes(last, region_size);
	}
	return size > BLOATED * fresh_size(filter);
}
