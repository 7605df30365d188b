/*
 * flush.c
 *		Adding to recent, moving recent into the slices, and building a slice from all hashes.
 *
 * A hash that some slice reports is pinned there: it is an earlier add or a false positive.
 * Any other is inserted into the slice with the largest share of free bits.
 * If no slice has any, a new one is chained.
 *
 * In a dated filter a flush moves the hashes of one span, and only slices of that span or of
 * later ones count.  An earlier slice that reports a hash would be forgotten too early.
 *
 * A slice is full when its bits reach bits_limit: its blocks then have, on average, the error
 * that it was sized for.  With few blocks the average is not worth much: one block that
 * happens to be fuller than the others has several times their error.  So a small slice is
 * also full when its error, computed from its bits, reaches the error it was sized for.
 */
#include <math.h>

#include "dated.h"
#include "sizing.h"

/* A slice of up to this many blocks is small. */
#define SMALL_SLICE			128

/*
 * The next slice is at most this many times as large as the value, unless its capacity demands
 * more.  The slices of honest values are at most four times as large.  A forged value may state
 * more elements than its size allows, and must not make us allocate memory for them.
 */
#define GROWTH_MAX			8

/* With more slices, a dated filter takes larger steps, see plan_dated(). */
#define MANY_SLICES			10
#define VERY_MANY_SLICES	46
#define NEARLY_ALL_SLICES	56

/* A slice that is not the first of its span gets this share of the error that is left. */
#define NEXT_ERROR_SHARE	0.125

/* A slice of a dated filter for this many elements fits at every error rate. */
#define MAX_STEP			(FAV_MAX_ELEMENTS / 128)

/*
 * From this many slices on, only the newest span of a dated filter gets more, and a little later
 * no span that has one already.  At most nine spans are alive at once, so each gets its first.
 */
#define SLICES_FOR_LATE		(FAV_MAX_DATED_SLICES - 12)
#define SLICES_FOR_SPANS	(FAV_MAX_DATED_SLICES - 9)

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

/* Does the error of slice i, if it is small, exceed what it is sized for by a tenth? */
static bool
is_uneven(const FavFilter *filter, uint32_t i)
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

/* The slice of a span with the largest share of free bits; FAV_NO_SLICE if all are full. */
static uint32_t
choose_slice(const Gauge *gauges, const FavFilter *filter, int64_t span)
{
	uint32_t	chosen = FAV_NO_SLICE;
	double		best_fill = 1.0;
	uint32_t	i;

	for (i = filter->nslices; i-- > 0;)
	{
		const FavSlice *slice = &filter->slices[i];
		double		fill = (double) slice->bits_set / (double) slice->bits_limit;

		if (fill < best_fill && fav_slice_span(filter, i) == span &&
			!(gauges[i].is_watched && gauges[i].sum >= gauges[i].allowed))
		{
			chosen = i;
			best_fill = fill;
		}
	}
	return chosen;
}

/* How many elements fit into the slices of a span for certain. */
static uint64_t
certain_capacity(const Gauge *gauges, const FavFilter *filter, int64_t span)
{
	uint64_t	certain = 0;
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
	{
		const FavSlice *slice = &filter->slices[i];

		if (fav_slice_has_free_bits(slice) && !gauges[i].is_watched &&
			fav_slice_span(filter, i) == span)
			certain += (slice->bits_limit - slice->bits_set + slice->k - 1) / slice->k;
	}
	return certain;
}

/* The number of elements that the slices of a span have; `full`: have when they are full. */
static double
count_span(const FavFilter *filter, int64_t span, bool full, uint32_t *nslices)
{
	double		held = 0.0;
	uint32_t	i;

	*nslices = 0;
	for (i = 0; i < filter->nslices; i++)
		if (fav_slice_span(filter, i) == span)
		{
			const FavSlice *slice = &filter->slices[i];

			held += fav_slice_estimate(slice, filter->params.region_size,
									   full ? slice->bits_limit : slice->bits_set);
			++*nslices;
		}
	return held;
}

/* What a slice is made for. */
typedef struct Plan
{
	double		error;
	uint64_t	capacity;
	uint64_t	least;			/* capacity may be halved down to this */
} Plan;

/*
 * A slice has the capacity of the first, doubled while that stays below the capacity of
 * all slices.  So a chain grows 1, 1, 2, 4, 8, ... times the first capacity, and a union goes on
 * from its real size.
 */
static void
plan_chain(const FavFilter *filter, Plan *plan)
{
	uint32_t	nslices;
	double		held = count_span(filter, 0, true, &nslices);

	plan->error = fav_error_share(filter->params.error_rate, nslices);
	plan->least = filter->params.capacity;
	if (plan->least < FAV_MIN_SLICE_CAPACITY)
		plan->least = FAV_MIN_SLICE_CAPACITY;
	plan->capacity = plan->least;
	while (2.0 * (double) plan->capacity <= held)
		plan->capacity *= 2;
}

/* By how much the errors of all slices of a span exceed that of its first one. */
static double
excess_error(const FavFilter *filter, int64_t span, double first)
{
	double		sum = 0.0;
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
		if (fav_slice_span(filter, i) == span)
			sum += fav_slice_design_error(&filter->slices[i], filter->params.region_size);
	return sum > first ? sum - first : 0.0;
}

/*
 * The error of a new slice of a dated filter.  Seven eighths of the rate are for the first
 * slices of all spans that may be alive, in equal parts.  Any other slice gets an eighth of what
 * the others have left of the last eighth.  A span that has lost its first slice keeps its part:
 * the span that comes next will need it.
 */
static double
dated_error(const FavFilter *filter, bool is_first)
{
	double		first = fav_first_error(filter->params.error_rate, filter->params.keep);
	double		left = filter->params.error_rate - first * fav_max_spans(filter->params.keep);
	uint32_t	i;

	if (is_first)
		return first;
	for (i = 0; i < filter->nslices; i++)
		if (!fav_has_span(filter, i, fav_slice_span(filter, i)))
			left -= excess_error(filter, fav_slice_span(filter, i), first);

	/* only unions and forged values leave next to nothing */
	left *= NEXT_ERROR_SHARE;
	return left > first / 1024 ? left : first / 1024;
}

/* How much a span of a dated filter with many slices grows at once, of what it has. */
static double
growth(uint32_t nslices)
{
	if (nslices < VERY_MANY_SLICES)
		return 1.25;
	return nslices < NEARLY_ALL_SLICES ? 2.5 : 6.0;
}

/*
 * The first slice of a span is sized for what the nearest other span got and a little more, so
 * that most spans have a single slice.  Without another span, it is sized for the span's share of
 * the capacity.  If it becomes full, the next has a quarter of its capacity.  After that the
 * span grows as other chains do.
 *
 * If elements come in any order of their periods, all spans grow at once.  A span that is not the
 * newest, or has two slices, takes larger steps then, the larger the more slices the filter has, so
 * that their number stays within its limit.
 */
static void
plan_dated(const FavFilter *filter, int64_t span, size_t count, Plan *plan)
{
	uint32_t	keep = filter->params.keep;
	int64_t		nearest = INT64_MAX;	/* distance of the nearest other span */
	int64_t		other = span;
	bool		is_late = span < fav_span(filter, filter->newest);
	uint64_t	most = MAX_STEP;
	uint32_t	nslices;
	uint32_t	i;
	double		wanted = count_span(filter, span, true, &nslices);

	for (i = 0; i < filter->nslices; i++)
	{
		int64_t		distance = span - fav_slice_span(filter, i);

		if (distance < 0)
			distance = -distance;
		if (distance > 0 && distance < nearest)
		{
			nearest = distance;
			other = fav_slice_span(filter, i);
		}
	}
	plan->error = dated_error(filter, nslices == 0);
	plan->least = 2 * count;
	if (filter->nslices >= MANY_SLICES && (nslices > 1 || (nslices == 1 && is_late)))
		wanted *= growth(filter->nslices);
	else if (nslices == 1 && other != span)
		wanted /= 4;
	else if (nslices == 0 && other != span)
	{
		wanted = count_span(filter, other, false, &i);
		wanted += 2 * sqrt(wanted);
	}
	else if (nslices == 0)
		wanted = (double) filter->params.capacity * (fav_delay(keep) + 1.0) / (keep + 1.0);
	plan->capacity = wanted < (double) most ? (uint64_t) wanted : most;
	if (plan->capacity < plan->least)
		plan->capacity = plan->least;
}

/* The geometry of the next slice of a span, to which this many hashes will be added at once. */
static FavStatus
size_next_slice(const FavFilter *filter, int64_t span, size_t count, FavSlice *slice)
{
	uint32_t	region_size = filter->params.region_size;
	bool		is_first = fav_is_dated(filter) && filter->nslices == 0;
	uint64_t	most = is_first ? FAV_MAX_SIZE : GROWTH_MAX * fav_size(filter);
	uint32_t	halvings = 0;
	Plan		plan;

	if (filter->nslices == fav_max_slices(filter))
		return FAV_TOO_MANY_SLICES;
	if (fav_is_dated(filter))
		plan_dated(filter, span, count, &plan);
	else
		plan_chain(filter, &plan);
	if (plan.capacity > FAV_MAX_ELEMENTS ||
		!fav_size_slice(slice, plan.error, region_size, plan.capacity))
		return FAV_TOO_LARGE;
	while (plan.capacity >> (halvings + 1) >= plan.least &&
		   fav_slice_bytes(slice, region_size) >> halvings > most)
		halvings++;
	if (halvings > 0 &&
		!fav_size_slice(slice, plan.error, region_size, plan.capacity >> halvings))
		return FAV_TOO_LARGE;
	if (fav_size(filter) + fav_slice_bytes(slice, region_size) + FAV_MAX_HEAD_SIZE > FAV_MAX_SIZE)
		return FAV_TOO_LARGE;
	return FAV_OK;
}

/* Memory for a slice whose geometry is known, without elements. */
static FavStatus
alloc_blocks(FavSlice *slice, uint32_t region_size, uint8_t **blocks)
{
	size_t		size = fav_slice_bytes(slice, region_size);

	*blocks = fav_alloc(size);
	if (*blocks == NULL)
		return FAV_NO_MEMORY;
	fav_fill(*blocks, 0, size);
	slice->blocks = *blocks;
	slice->bits_set = 0;
	slice->offset = 0;
	slice->elements = 0;
	return FAV_OK;
}

/*
 * The period that a new slice of a span begins with, for a hash of this period.  A hash of an
 * earlier span comes only to a span that has a slice (next_span()), and is kept as long as that.
 */
static int32_t
first_period(const FavFilter *filter, int64_t span, int32_t period)
{
	uint32_t	i;

	for (i = 0; i < filter->nslices && fav_span(filter, period) != span; i++)
		if (fav_slice_span(filter, i) == span)
			period = filter->slices[i].last;
	return period;
}

/* Chain a slice that was made for this. */
static void
chain(FavEditor *editor, Gauge *gauges, FavSlice *slice, uint8_t *blocks, int32_t period)
{
	FavFilter  *filter = &editor->filter;

	slice->first = slice->last = period;
	editor->own_blocks[filter->nslices] = blocks;
	filter->slices[filter->nslices++] = *slice;
	watch(&gauges[filter->nslices - 1], filter, filter->nslices - 1);
}

/*
 * Move one hash into the slices of its span, and into the spare one, whose blocks are NULL once it
 * is chained, only if the others are full.  An attacker may choose hashes that all fall into one
 * block.  If no slice has free bits left then, the last one is filled beyond its limit, as if no
 * slice is left for this span.
 */
static void
place(FavEditor *editor, Gauge *gauges, FavSlice *spare, uint8_t **spare_blocks, int64_t span,
	  uint64_t hash, int32_t period)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	region_size = filter->params.region_size;
	uint32_t	earlier = FAV_NO_SLICE;
	uint32_t	i = filter->nslices;

	while ((i = fav_find_slice(filter->slices, i, region_size, hash)) != FAV_NO_SLICE &&
		   fav_slice_span(filter, i) < span)
		if (earlier == FAV_NO_SLICE)
			earlier = i;
	if (i != FAV_NO_SLICE)
	{
		fav_slice_pin(&filter->slices[i], editor->own_blocks[i], region_size, hash);
		if (fav_slice_span(filter, i) == fav_span(filter, period))
			fav_widen_periods(&filter->slices[i], period);
		return;
	}
	i = choose_slice(gauges, filter, span);
	if (i == FAV_NO_SLICE && *spare_blocks != NULL)
	{
		chain(editor, gauges, spare, *spare_blocks, first_period(filter, span, period));
		*spare_blocks = NULL;
		i = filter->nslices - 1;
	}
	if (i == FAV_NO_SLICE)
		for (i = filter->nslices - 1; fav_slice_span(filter, i) != span;)
			i--;
	fav_slice_insert(&filter->slices[i], editor->own_blocks[i], region_size, hash);
	if (fav_span(filter, period) == span)
		fav_widen_periods(&filter->slices[i], period);
	filter->slices[i].elements++;
	if (earlier == FAV_NO_SLICE)
		fav_count_in(filter);
	else
		filter->slices[earlier].elements -= filter->slices[earlier].elements > 0;
	if (gauges[i].is_watched)
	{
		uint32_t	block = fav_hash_block(hash, filter->slices[i].nblocks);
		double		error = block_error(filter, i, block);

		gauges[i].sum += error - gauges[i].errors[block];
		gauges[i].errors[block] = error;
	}
}

/* The first span after this one that has a slice; this one if there is none. */
static int64_t
next_span(const FavFilter *filter, int64_t span)
{
	int64_t		next = span;
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
		if (fav_slice_span(filter, i) > span &&
			(next == span || fav_slice_span(filter, i) < next))
			next = fav_slice_span(filter, i);
	return next;
}

/*
 * Move `count` recent hashes, beginning with the one at `from`, into slices of this span.  They
 * are of this span, or of an earlier one for which no slice is left.
 */
static FavStatus
flush_some(FavEditor *editor, int64_t span, uint32_t from, uint32_t count)
{
	FavFilter  *filter = &editor->filter;
	const int32_t *periods = fav_editor_periods(editor);
	FavSlice	spare;
	uint8_t    *spare_blocks = NULL;
	Gauge		gauges[FAV_MAX_DATED_SLICES];
	FavStatus	status;
	uint32_t	i;

	for (i = 0; i < FAV_MAX_DATED_SLICES; i++)
		gauges[i].is_watched = false;
	for (i = 0; i < filter->nslices; i++)
	{
		if (fav_slice_span(filter, i) < span)
			continue;
		status = fav_editor_own_slice(editor, i);
		if (status != FAV_OK)
			return status;
		watch(&gauges[i], filter, i);
	}
	if (certain_capacity(gauges, filter, span) < count)
	{
		/* better forget late elements too late than have no slice left for new ones */
		if (filter->nslices >= SLICES_FOR_LATE && next_span(filter, span) != span)
			return flush_some(editor, next_span(filter, span), from, count);
		if (filter->nslices < SLICES_FOR_SPANS || !fav_has_span(filter, filter->nslices, span))
		{
			status = size_next_slice(filter, span, count, &spare);
			if (status == FAV_OK)
				status = alloc_blocks(&spare, filter->params.region_size, &spare_blocks);
			if (status != FAV_OK)
				return status;
		}
	}

	/* the oldest hash goes first; all that can fail came before */
	for (i = from + count; i-- > from;)
		place(editor, gauges, &spare, &spare_blocks, span, fav_load64(filter->recent + 8 * i),
			  periods[i]);
	if (spare_blocks != NULL)
		fav_free(spare_blocks);

	fav_editor_drop_recent(editor, from, count);
	fav_recent_bits_init(&editor->recent_bits, filter);
	fav_tombstones_reorder(editor);
	return FAV_OK;
}

/* Move the recent hashes of one span into the slices: of that which has most of them. */
static FavStatus
flush_span(FavEditor *editor)
{
	const FavFilter *filter = &editor->filter;
	const int32_t *periods = fav_editor_periods(editor);
	uint32_t	best_from = 0;
	uint32_t	best_count = 0;
	uint32_t	from = 0;
	uint32_t	i;

	/* the hashes of a span follow each other */
	for (i = 1; i <= filter->nrecent; i++)
		if (i == filter->nrecent ||
			fav_span(filter, periods[i]) != fav_span(filter, periods[from]))
		{
			if (i - from > best_count)
			{
				best_from = from;
				best_count = i - from;
			}
			from = i;
		}
	return best_count == 0 ? FAV_OK :
		flush_some(editor, fav_span(filter, periods[best_from]), best_from, best_count);
}

FavStatus
fav_editor_flush(FavEditor *editor)
{
	FavStatus	status = FAV_OK;

	while (editor->filter.nrecent > 0 && status == FAV_OK)
		status = flush_span(editor);
	return status;
}

/*
 * Add
 */

/* Insert a hash into recent, which is not full: after those of later periods. */
static void
insert_recent(FavEditor *editor, uint64_t hash, int32_t period)
{
	FavFilter  *filter = &editor->filter;
	uint32_t	front = FAV_RECENT_LIMIT - filter->nrecent;
	uint32_t	at = front;

	while (at < FAV_RECENT_LIMIT && editor->periods[at] > period)
		at++;
	memmove(editor->own_recent + 8 * (front - 1), editor->own_recent + 8 * front,
			8 * (at - front));
	memmove(editor->periods + front - 1, editor->periods + front,
			(at - front) * sizeof(editor->periods[0]));
	fav_store64(editor->own_recent + 8 * (at - 1), hash);
	editor->periods[at - 1] = period;
	filter->recent = editor->own_recent + 8 * (front - 1);
	filter->nrecent++;
	fav_recent_bits_add(&editor->recent_bits, hash);
	editor->changed = true;
}

FavStatus
fav_editor_put_recent(FavEditor *editor, uint64_t hash, int32_t period)
{
	FavFilter  *filter = &editor->filter;
	FavStatus	status = FAV_OK;

	if (fav_editor_in_recent(editor, hash))
	{
		uint32_t	i = fav_list_position(filter->recent, hash);

		if (fav_editor_periods(editor)[i] >= period)
			return FAV_OK;
		fav_editor_drop_recent(editor, i, 1);
	}
	if (filter->nrecent >= editor->recent_max)
		status = flush_span(editor);
	if (status == FAV_OK && fav_editor_has_tombstone(editor, hash))
		status = fav_editor_revive(editor, hash);
	if (status == FAV_OK)
		insert_recent(editor, hash, period);
	return status;
}

FavStatus
fav_editor_add_many_at(FavEditor *editor, const uint64_t *hashes, size_t count, int32_t period)
{
	FavStatus	status = FAV_OK;
	size_t		i;

	if (!fav_is_dated(&editor->filter))
		period = 0;
	else if (count > 0)
		status = fav_editor_advance(editor, period);
	if (fav_is_too_old(&editor->filter, period, editor->filter.newest))
		return status;
	for (i = 0; i < count && status == FAV_OK; i++)
		status = fav_editor_put_recent(editor, hashes[i], period);
	return status;
}

FavStatus
fav_editor_add_many(FavEditor *editor, const uint64_t *hashes, size_t count)
{
	if (count > 0 && fav_is_dated(&editor->filter) && editor->filter.newest == FAV_NO_PERIOD)
		return FAV_UNDATED;
	return fav_editor_add_many_at(editor, hashes, count, editor->filter.newest);
}

/*
 * A filter with one slice of exactly the right size, from all its hashes
 */

FavStatus
fav_editor_build(FavEditor *editor, const FavParams *params, const uint64_t *hashes, size_t count)
{
	FavFilter  *filter = &editor->filter;
	FavSlice   *slice = &filter->slices[0];
	FavStatus	status;

	fav_editor_new(editor, params);
	if (count <= FAV_RECENT_MAX)
		return fav_editor_add_many(editor, hashes, count);

	if (filter->params.capacity < count)
		filter->params.capacity = count;
	filter->elements = count;
	status = size_next_slice(filter, 0, count, slice);
	if (status == FAV_OK)
		status = alloc_blocks(slice, params->region_size, &editor->own_blocks[0]);
	while (status == FAV_OK)
	{
		fav_slice_insert_many(slice, editor->own_blocks[0], params->region_size, hashes, count);
		if (!is_uneven(filter, 0))
			break;

		/* the blocks of a small slice may be uneven by chance: some more, then */
		fav_free(editor->own_blocks[0]);
		fav_slice_widen(slice, params->region_size);
		status = alloc_blocks(slice, params->region_size, &editor->own_blocks[0]);
	}
	filter->nslices = status == FAV_OK;
	fav_tombstones_reorder(editor);
	return status;
}
