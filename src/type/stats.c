/*
 * stats.c
 *		fav_count, fav_stats, fav_slices, fav_needs_rebuild.
 */
#include "fav.h"

#include "core/sizing.h"
#include "type/elements.h"
#include "type/expanded.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(fav_stats);
PG_FUNCTION_INFO_V1(fav_slices);

FAV_FUNCTION(fav_count_elements, Int64GetDatum((int64) fav_count(fav_get_filter(fcinfo, 0))));
FAV_FUNCTION(fav_rebuild_needed, BoolGetDatum(fav_needs_rebuild(fav_get_filter(fcinfo, 0))));

Datum
fav_stats(PG_FUNCTION_ARGS)
{
	const FavFilter *filter = fav_get_filter(fcinfo, 0);
	FavMeasure	measure;
	Datum		values[21];
	bool		nulls[21] = {false};
	int			i = 0;
	int32		oldest;
	bool		has_periods;

	fav_measure(filter, &measure);

	values[i++] = Int32GetDatum(FAV_FORMAT_VERSION);
	values[i++] = Int64GetDatum((int64) fav_count(filter));
	if (filter->params.kind == FAV_KIND_NONE || fav_is_empty(filter))
		nulls[i++] = true;
	else
		values[i++] = CStringGetTextDatum(fav_kind_name(filter->params.kind));
	values[i++] = Int64GetDatum((int64) filter->params.capacity);
	values[i++] = Float8GetDatum(filter->params.error_rate);
	values[i++] = Int32GetDatum((int32) filter->params.region_size);
	values[i++] = Int64GetDatum((int64) filter->params.seed);
	values[i++] = Int32GetDatum((int32) filter->nslices);
	values[i++] = Int32GetDatum((int32) filter->nrecent);
	values[i++] = Int32GetDatum((int32) filter->ntombstones);
	values[i++] = Int64GetDatum((int64) (VARHDRSZ + fav_size(filter)));
	values[i++] = Float8GetDatum(measure.fill);
	values[i++] = Float8GetDatum(measure.error);
	values[i++] = Float8GetDatum(measure.clean_regions);
	values[i++] = Float8GetDatum(measure.deletable);
	values[i++] = Float8GetDatum(fav_bloat(filter));
	values[i++] = BoolGetDatum(fav_needs_rebuild(filter));
	values[i] = Int32GetDatum((int32) filter->params.keep);
	nulls[i++] = !fav_is_dated(filter);
	oldest = fav_oldest(filter);
	has_periods = fav_is_dated(filter) && oldest != FAV_NO_PERIOD;
	values[i] = Int64GetDatum((int64) filter->newest - oldest + 1);
	nulls[i++] = !has_periods;
	values[i] = Int32GetDatum(oldest);
	nulls[i++] = !has_periods;
	values[i] = Int32GetDatum(filter->newest);
	nulls[i++] = !fav_is_dated(filter) || filter->newest == FAV_NO_PERIOD;
	Assert(i == lengthof(values));

	return fav_return_row(fcinfo, values, nulls);
}

Datum
fav_slices(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = fav_return_rows(fcinfo);
	const FavFilter *filter = fav_get_filter(fcinfo, 0);
	uint32		number;

	for (number = 0; number < filter->nslices; number++)
	{
		const FavSlice *slice = &filter->slices[number];
		FavMeasure measure;
		Datum		values[13];
		bool		nulls[13] = {false};
		int			i = 0;

		fav_measure_slice(filter, number, &measure);
		values[i++] = Int32GetDatum((int32) number + 1);
		values[i++] = Int64GetDatum((int64) fav_slice_capacity(slice, filter->params.region_size));
		values[i++] = Int32GetDatum((int32) slice->nblocks);
		values[i++] = Int32GetDatum((int32) slice->k);
		values[i++] = Int64GetDatum((int64) fav_slice_bytes(slice, filter->params.region_size));
		values[i++] = Int64GetDatum((int64) slice->bits_set);
		values[i++] = Int64GetDatum((int64) slice->bits_limit);
		values[i++] = Float8GetDatum(measure.fill);
		values[i++] = Float8GetDatum(measure.error);
		values[i++] = Float8GetDatum(measure.clean_regions);
		values[i++] = Float8GetDatum(measure.deletable);
		values[i] = Int32GetDatum(slice->first);
		nulls[i++] = !fav_is_dated(filter);
		values[i] = Int32GetDatum(slice->last);
		nulls[i++] = !fav_is_dated(filter);
		Assert(i == lengthof(values));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	PG_RETURN_NULL();
}
