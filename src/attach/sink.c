/*
 * sink.c
 *		The filters of a sink: a table that takes rows and keeps filters of them, not the rows.
 *
 * There is no source to build a filter from, so the levels have what they need to be merged:
 *
 *		recent		the latest changes, exact: up to 250 hashes, added or removed
 *		middle		what changed since base was written, but for the latest changes
 *		log			the changes in middle, exact, for us alone: every recent that was pushed.
 *					It has several parts, so that a push need not write all of it
 *		base		everything before that; an ordinary filter that grows
 *
 * A change writes recent.  A full recent is pushed into middle, and appended to the log.  A full
 * middle is built anew from the log, with more capacity, so that it has one slice and is never much
 * larger than what it holds.  When
 * the log is full, it is replayed on base: every change is made there, in its order, as if it
 * had been made there in the first place.  Then middle and log are gone.
 *
 * Replaying removes elements from base by clearing bits.  That is safe only if base has the
 * element (docs/internals/ALGORITHM.md), so what recent says must be true of base once everything
 * before it was replayed:
 *
 *		- An element that is added goes to recent, even if a level below reports it: that may be
 *		  by chance, thanks to bits of others, which may be cleared later.  Base pins it then.
 *		- An element that is removed while it is in recent may be in a level below, or may be
 *		  reported there by chance.  Nobody knows, so no bit must be cleared: it is excluded.
 *
 * In a sink that forgets, removing clears no bit anyway.
 *
 * A filter has one flag for all its tombstones that says whether some are of excluded elements.
 * Where it is set, no bit is cleared for any of them.
 *
 * Time in a filter that forgets never goes backwards: the present period is that of the clock, or
 * the newest one of the filter if that is later.  So a clock that was ahead, and is right again,
 * does not make elements too old at once.
 */
#include "attach/rows.h"
#include "attach/sink.h"
#include "attach/spread.h"

#include "access/detoast.h"
#include "access/xact.h"
#include "core/dated.h"
#include "core/levels.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/*
 * Of each change, the bytes of middle and half of those of a full part of the log are written once
 * in some 250 changes, and the bytes of base once in the capacity of the log.  The sum is smallest
 * where the square of the capacity is this many times the bytes of base.
 */
#define CAPACITY_FACTOR		200.0

/* A smaller part of the log might stay in the row, which is written with each change. */
#define PART_MIN_SIZE		4000

/* By how much a middle grows that is built anew, of what it holds. */
#define MIDDLE_GROWTH		1.25
#define MIDDLE_MIN_CAPACITY	(4 * FAV_RECENT_MAX)

/*
 * Base takes FAV_BASE_ERROR_SHARE.  Middle has one slice, perhaps two, which take less than two
 * thirds of its share; one that forgets may have many.
 */
#define MIDDLE_ERROR_SHARE	0.3
#define DATED_MIDDLE_ERROR_SHARE	0.2

/* A base of fewer bytes is written each time: a middle would not be cheaper. */
#define MIDDLE_MIN_BASE		4096

/* Days after this one have no time of day. */
#define LAST_DAY			(TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE - 2)

/* What precedes a filter in the log: its size. */
#define LOG_PREFIX			sizeof(uint32)

PG_FUNCTION_INFO_V1(fav_period);

/*
 * Periods
 */

/* Periods of a second end in 2068. */
static int32
find_period(TimestampTz now, int64 seconds)
{
	int64		elapsed = now / USECS_PER_SEC;
	int64		period = elapsed / seconds - (elapsed % seconds < 0 ? 1 : 0);

	return (int32) Max(FAV_NO_PERIOD + 1, Min(period, PG_INT32_MAX));
}

/* fav_period(seconds): the period of this transaction */
Datum
fav_period(PG_FUNCTION_ARGS)
{
	int64		seconds = PG_GETARG_INT64(0);

	if (seconds < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("seconds must be at least 1")));
	PG_RETURN_INT32(find_period(GetCurrentTransactionStartTimestamp(), seconds));
}

/*
 * The period of the time of a row, in a column that says when.  A date counts as the end of its
 * day, so that nothing is forgotten too early.  Times without a zone are of that of the session.
 */
int32
fav_period_of_time(const FavAttachment *attachment, Datum time)
{
	TimestampTz at;
	DateADT		day;

	switch (attachment->at.type)
	{
		case TIMESTAMPTZOID:
			at = DatumGetTimestampTz(time);
			break;
		case TIMESTAMPOID:
			at = DatumGetTimestampTz(DirectFunctionCall1(timestamp_timestamptz, time));
			break;
		default:
			day = DatumGetDateADT(time);
			if (DATE_NOT_FINITE(day) || day >= LAST_DAY)
				at = DATE_IS_NOBEGIN(day) ? DT_NOBEGIN : DT_NOEND;
			else
				at = DatumGetTimestampTz(DirectFunctionCall1(date_timestamptz,
															 DateADTGetDatum(day + 1)));
	}
	return find_period(at, attachment->period);
}

/*
 * Elements are kept for longer than promised, because nobody can tell whether the clock is wrong
 * now or was wrong before.  One warning is enough for a session.
 */
static void
warn_of_clock(FavAttachment *attachment, int32 newest, int32 clock)
{
	int64		ahead = ((int64) newest - clock) * attachment->period;

	if ((int64) newest - clock <= fav_delay(attachment->params.keep) || attachment->has_warned)
		return;
	attachment->has_warned = true;
	ereport(WARNING,
			(errmsg("a filter of sink \"%s\" is " INT64_FORMAT " seconds ahead of the clock",
					get_rel_name(fav_shell(attachment->source)), ahead),
			 errdetail("The clock was ahead, or is late now. Until it has caught up, the elements"
					   " of this filter are not forgotten."),
			 errhint("If the clock is right, find filters whose newest period is in the future,"
					 " and delete their rows from table \"%s\", or wait.",
					 get_rel_name(fav_shell(attachment->levels)))));
}

/*
 * The newest period of a filter.  Recent has that of all levels, unless nothing was added to it
 * yet.
 */
static int32
newest_period(FavRow *row)
{
	int32		newest = row->recent.newest;
	FavReader  *middle;
	FavReader  *base;

	if (row->attachment->keep == 0 || newest != FAV_NO_PERIOD)
		return newest;
	middle = fav_open_level(&row->middle);
	base = fav_open_level(&row->base);
	return Max(middle == NULL ? newest : middle->filter.newest,
			   base == NULL ? newest : base->filter.newest);
}

static int32
present_period(FavAttachment *attachment, int32 newest)
{
	int32		clock;

	if (attachment->keep == 0)
		return 0;
	clock = find_period(GetCurrentTimestamp(), attachment->period);
	if (newest <= clock)
		return clock;
	warn_of_clock(attachment, newest, clock);
	return newest;
}

static void
raise_not_ours(const FavAttachment *attachment)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("table \"%s\" has a row that is not of sink \"%s\"",
					get_rel_name(attachment->levels), get_rel_name(attachment->source)),
			 errhint("Delete the row.")));
}

static void
check_recent(const FavAttachment *attachment, const FavFilter *filter)
{
	if (filter->nslices != 0 || filter->params.seed != attachment->params.seed ||
		filter->params.region_size != attachment->params.region_size ||
		filter->params.keep != attachment->params.keep ||
		(filter->params.kind != attachment->kind && !fav_is_empty(filter)))
		raise_not_ours(attachment);
}

/*
 * The log
 */

static size_t
part_size(const FavRow *row, int part)
{
	return row->log[part] == FAV_NO_LEVEL ? 0 : toast_raw_datum_size(row->log[part]) - VARHDRSZ;
}

static size_t
log_size(const FavRow *row)
{
	size_t		size = 0;
	int			i;

	for (i = 0; i < FAV_LOG_PARTS; i++)
		size += part_size(row, i);
	return size;
}

/* How many changes the log may have; 0: it is not worth while. */
static uint64
log_capacity(FavRow *row)
{
	FavReader  *base = fav_open_level(&row->base);
	double		size = base == NULL ? 0 : (double) fav_size(&base->filter);
	uint64		capacity = 0;

	if (size >= MIDDLE_MIN_BASE)
		while ((double) capacity * (double) capacity < CAPACITY_FACTOR * size)
			capacity += FAV_RECENT_MAX;
	return capacity;
}

/* The part of the log to append to. */
static int
current_part(FavRow *row)
{
	size_t		full = Max(8 * log_capacity(row) / FAV_LOG_PARTS, PART_MIN_SIZE);
	int			part = 0;

	while (part < FAV_LOG_PARTS - 1 &&
		   (part_size(row, part) >= full || row->log[part + 1] != FAV_NO_LEVEL))
		part++;
	return part;
}

static void
append_part(StringInfo log, Datum part)
{
	struct varlena *bytes;

	if (part == FAV_NO_LEVEL)
		return;
	bytes = (struct varlena *) PG_DETOAST_DATUM_PACKED(part);
	appendBinaryStringInfo(log, VARDATA_ANY(bytes), (int) VARSIZE_ANY_EXHDR(bytes));
}

static void
append_to_log(StringInfo log, const FavFilter *filter)
{
	uint32		size = (uint32) fav_size(filter);

	enlargeStringInfo(log, (int) (LOG_PREFIX + size));
	fav_store32((uint8_t *) log->data + log->len, size);
	fav_write(filter, (uint8_t *) log->data + log->len + LOG_PREFIX);
	log->len += (int) (LOG_PREFIX + size);
}

/*
 * Make all changes in `filter` on a level below.  Bits are only cleared in base, which has every
 * element that was removed.
 */
static void
replay(FavEditor *level, const FavFilter *filter, bool is_base)
{
	int32_t		periods[FAV_RECENT_LIMIT];
	uint32_t	i;

	/* oldest first */
	fav_recent_periods(filter, periods);
	for (i = filter->nrecent; i-- > 0;)
		fav_require(fav_editor_add_at(level, fav_load64(filter->recent + 8 * (size_t) i),
									  periods[i]));
	for (i = filter->ntombstones; i-- > 0;)
	{
		uint64_t	hash = fav_load64(filter->tombstones + 8 * (size_t) i);

		fav_require(is_base && !filter->has_excluded ? fav_editor_remove(level, hash) :
					fav_editor_exclude(level, hash));
	}
}

/* All of the log. */
static StringInfo
read_log(const FavRow *row)
{
	StringInfo	log = makeStringInfo();
	int			part;

	for (part = 0; part < FAV_LOG_PARTS; part++)
		append_part(log, row->log[part]);
	return log;
}

/* The next recent that was pushed; false if there is none. */
static bool
next_in_log(const FavAttachment *attachment, StringInfo log, FavFilter *filter)
{
	const uint8_t *at = (const uint8_t *) log->data + log->cursor;
	size_t		left = (size_t) (log->len - log->cursor);
	size_t		size = left < LOG_PREFIX ? 0 : fav_load32(at);

	if (left == 0)
		return false;
	if (left < LOG_PREFIX + size)
		raise_not_ours(attachment);
	fav_require_open(filter, at + LOG_PREFIX, size, size);
	check_recent(attachment, filter);
	log->cursor += (int) (LOG_PREFIX + size);
	return true;
}

static void
replay_log(const FavRow *row, FavEditor *level, bool is_base)
{
	StringInfo	log = read_log(row);
	FavFilter	filter;

	while (next_in_log(row->attachment, log, &filter))
	{
		CHECK_FOR_INTERRUPTS();
		replay(level, &filter, is_base);
	}
}

/*
 * Changing levels
 */

/* Add some of the elements of a change, each in its period, oldest first. */
static void
add_elements(FavEditor *level, const FavChange *change, size_t from, size_t count)
{
	size_t		i;

	for (i = from; i < from + count; i++)
	{
		size_t		place = fav_scattered(i, change->step, change->hashes.count);
		int32		period = change->periods != NULL ? change->periods[place] : change->present;

		CHECK_FOR_INTERRUPTS();
		fav_require(fav_editor_add_at(level, change->hashes.values[place],
									  Min(period, change->present)));
	}
}

/*
 * Remove an element from recent, and make sure that levels below do not report it, in whatever
 * period they are read: what is too old there now need not be so for everybody who reads.
 */
static void
remove_in_recent(FavRow *row, FavEditor *recent, FavAction action, uint64_t hash)
{
	bool		was_recent = fav_in_recent(&row->recent, hash);

	fav_require(fav_editor_remove(recent, hash));
	if (action == FAV_EXCLUDE)
		fav_require(fav_editor_exclude(recent, hash));
	else if (!fav_editor_has_tombstone(recent, hash) && fav_row_reports_below_recent(row, hash))
		fav_require(was_recent && !fav_is_dated(&row->recent) ? fav_editor_exclude(recent, hash) :
					fav_tombstones_add(recent, hash));
}

static void
change_recent(FavRow *row, const FavChange *change, FavWritten *written)
{
	FavEditor	editor;
	size_t		i;

	fav_editor_open(&editor, &row->recent);
	editor.recent_max = FAV_RECENT_LIMIT;
	if (change->action == FAV_ADD)
	{
		fav_require(fav_editor_advance(&editor, change->present));
		add_elements(&editor, change, 0, change->hashes.count);
	}
	else
		for (i = 0; i < change->hashes.count; i++)
			remove_in_recent(row, &editor, change->action, change->hashes.values[i]);
	written->recent = fav_finish_edit(&editor);
}

/*
 * Middle
 */

/* The largest number of changes in the log and in recent that are of one span. */
static uint64
count_largest_span(const FavRow *row)
{
	/* one more than can be alive at once, for those that are too old */
	int64		spans[10];
	uint64		counts[lengthof(spans)] = {0};
	uint64		largest = 0;
	StringInfo	log = read_log(row);
	FavFilter	filter = row->recent;
	uint32		run;

	do
	{
		for (run = 0; run < filter.nruns; run++)
		{
			int64		span = fav_span(&filter, fav_run_period(&filter, run));
			int			i = 0;

			while (i < (int) lengthof(spans) - 1 && counts[i] > 0 && spans[i] != span)
				i++;
			spans[i] = span;
			counts[i] += fav_run_count(&filter, run);
			largest = Max(largest, counts[i]);
		}
	} while (next_in_log(row->attachment, log, &filter));
	return largest;
}

/*
 * The capacity that makes the first slice of a span as large as this.  The other spans follow the
 * first (flush.c).
 */
static uint64
capacity_of_span(const FavAttachment *attachment, uint64 capacity)
{
	uint32		keep = attachment->params.keep;

	return keep == 0 ? capacity : capacity * (keep + 1) / (fav_delay(keep) + 1) + 1;
}

/*
 * Middle, with capacity for `count` changes more than the log has.  One that has not is built anew
 * from the log.
 */
static void
open_middle(FavRow *row, size_t count, FavEditor *middle)
{
	FavReader  *old = fav_open_level(&row->middle);
	size_t		logged = log_size(row) / sizeof(uint64_t);
	uint64		capacity;
	uint64		largest;

	if (old != NULL && logged + count <= old->filter.params.capacity)
	{
		fav_edit_level(row->attachment, old, 0, 0, middle);
		return;
	}
	capacity = Min((uint64) (MIDDLE_GROWTH * (logged + count)), log_capacity(row));
	capacity = Max(capacity, Max(logged + count, MIDDLE_MIN_CAPACITY));
	largest = row->attachment->keep == 0 ? capacity :
		(count_largest_span(row) + count) * capacity / (logged + count);
	fav_edit_level(row->attachment, NULL,
				   row->attachment->keep > 0 ? DATED_MIDDLE_ERROR_SHARE : MIDDLE_ERROR_SHARE,
				   capacity_of_span(row->attachment, largest), middle);
	replay_log(row, middle, false);
	fav_require(fav_editor_flush(middle));
	middle->filter.params.capacity = capacity;
}

static void
push_filter(FavEditor *middle, StringInfo log, const FavFilter *filter)
{
	replay(middle, filter, false);
	fav_require(fav_editor_flush(middle));
	append_to_log(log, filter);
}

/* Push recent and what is added into middle.  False if the view could not stack the levels then. */
static bool
push(FavRow *row, const FavChange *change, FavWritten *written)
{
	FavEditor	middle;
	StringInfoData log;
	int			part = current_part(row);
	size_t		done;
	size_t		count;

	open_middle(row, row->recent.nrecent + row->recent.ntombstones + change->hashes.count, &middle);
	initStringInfo(&log);
	appendStringInfoSpaces(&log, VARHDRSZ);
	append_part(&log, row->log[part]);
	if (!fav_is_empty(&row->recent))
		push_filter(&middle, &log, &row->recent);
	for (done = 0; done < change->hashes.count; done += count)
	{
		FavEditor	editor;
		const FavFilter *filter;

		count = Min(change->hashes.count - done, FAV_RECENT_MAX);
		fav_edit_level(row->attachment, NULL, 1.0, 0, &editor);
		add_elements(&editor, change, done, count);
		fav_require(fav_editor_finish(&editor, &filter));
		push_filter(&middle, &log, filter);
		fav_editor_close(&editor);
	}
	if (fav_open_level(&row->base)->filter.nslices + middle.filter.nslices >
		fav_max_slices(&middle.filter))
	{
		fav_editor_close(&middle);
		return false;
	}
	written->middle = fav_finish_edit(&middle);
	SET_VARSIZE(log.data, log.len);
	written->log = PointerGetDatum(log.data);
	written->part = part;
	return true;
}

/* Make all changes on base: those in the log, in recent, and this one. */
static void
merge(FavRow *row, const FavChange *change, FavWritten *written)
{
	FavEditor	base;
	const FavFilter *filter;
	uint64		count = row->recent.nrecent +
		(change->action == FAV_ADD ? change->hashes.count : 0);

	fav_edit_level(row->attachment, fav_open_level(&row->base), FAV_BASE_ERROR_SHARE,
				   Max(FAV_DEFAULT_CAPACITY, count), &base);
	replay_log(row, &base, true);
	replay(&base, &row->recent, true);
	if (change->action == FAV_ADD)
		add_elements(&base, change, 0, change->hashes.count);

	/* what is removed must not come back by a flush */
	fav_require(fav_editor_advance(&base, change->present));
	fav_require(fav_editor_flush(&base));
	if (change->action == FAV_REMOVE)
		fav_require(fav_editor_remove_many(&base, change->hashes.values, change->hashes.count));
	else if (change->action == FAV_EXCLUDE)
		fav_require(fav_editor_exclude_many(&base, change->hashes.values, change->hashes.count));
	fav_require(fav_editor_finish(&base, &filter));
	if (fav_is_empty(filter))
		fav_editor_close(&base);
	else
		written->base = fav_finish_edit(&base);
}

/* How many hashes recent would have at most. */
static size_t
recent_count(const FavRow *row, const FavChange *change)
{
	size_t		count = row->recent.nrecent + row->recent.ntombstones;
	size_t		i;

	for (i = 0; i < change->hashes.count; i++)
		count += !(change->action == FAV_ADD &&
				   fav_in_recent(&row->recent, change->hashes.values[i]));
	return count;
}

/* Which levels a change writes, and what. */
static FavQuery
change_levels(FavRow *row, const FavChange *change, FavWritten *written)
{
	size_t		count = recent_count(row, change);

	written->recent = row->attachment->empty;
	if (count <= FAV_RECENT_LIMIT)
	{
		change_recent(row, change, written);
		return FAV_QUERY_SET_RECENT;
	}
	if (change->action == FAV_ADD && count + log_size(row) / 8 <= log_capacity(row) &&
		push(row, change, written))
		return FAV_QUERY_SET_MIDDLE;
	merge(row, change, written);
	return FAV_QUERY_SET_BASE;
}

/* Which elements are not reported in the present period? */
static void
find_new(FavRow *row, const FavChange *change)
{
	FavFilter	recent = row->recent;
	size_t		i;

	fav_forget(&recent, change->present);
	fav_forget_below_recent(row, change->present);
	if (change->hashes.count > 1 && fav_open_level(&row->base) != NULL)
		fav_reader_expect(fav_open_level(&row->base), change->hashes.count);
	for (i = 0; i < change->hashes.count; i++)
	{
		uint64_t	hash = change->hashes.values[i];

		CHECK_FOR_INTERRUPTS();
		change->is_new[i] = !fav_in_recent(&recent, hash) &&
			(fav_has_tombstone(&recent, hash) || !fav_row_reports_below_recent(row, hash));
	}
	fav_forget_below_recent(row, FAV_NO_PERIOD);
}

/*
 * Rows that are newer than all that the filter has are hardly a history.  If the clock was ahead
 * for longer than `keep`, all rows would be dropped.
 */
static void
warn_of_dropped(FavAttachment *attachment)
{
	if (attachment->has_warned)
		return;
	attachment->has_warned = true;
	ereport(WARNING,
			(errmsg("rows of sink \"%s\" are dropped as too old by the clock",
					get_rel_name(fav_shell(attachment->source))),
			 errdetail("They are newer than all that the filter of their key has."),
			 errhint("If the clock is right, nothing is wrong. If it is ahead, insert the rows"
					 " again when it is right.")));
}

/* Leave out elements that are too old already.  Those that are left may be none. */
static void
drop_too_old(FavAttachment *attachment, int32 newest, FavChange *change)
{
	size_t		count = 0;

	while (change->periods != NULL && count < change->hashes.count &&
		   (int64) change->periods[count] + attachment->params.keep < change->present)
		count++;
	if (count == 0)
		return;
	if (newest != FAV_NO_PERIOD && change->periods[count - 1] > newest)
		warn_of_dropped(attachment);
	change->hashes.values += count;
	change->hashes.count -= count;
	change->periods += count;
}

/* False if somebody else was faster. */
static bool
try_change(FavRow *row, FavChange *change)
{
	FavWritten	levels = {0};
	FavQuery	query;
	bool		found = fav_read_row(row);
	int32		newest;

	if (!found)
	{
		if (change->action == FAV_REMOVE)
			return true;
		fav_open_flat(&row->recent, (struct varlena *) DatumGetPointer(row->attachment->empty));
		row->recent.params.kind = row->attachment->kind;
	}
	check_recent(row->attachment, &row->recent);
	newest = newest_period(row);

	/* removing tells no time: if the clock is ahead, nothing else is forgotten */
	change->present = change->action == FAV_ADD ? present_period(row->attachment, newest) : newest;
	drop_too_old(row->attachment, newest, change);
	if (change->hashes.count == 0)
		return true;
	change->step = change->periods != NULL ? 1 : fav_scatter_step(change->hashes.count);
	if (change->is_new != NULL)
		find_new(row, change);
	query = change_levels(row, change, &levels);
	return fav_write_row(row, found ? query : FAV_QUERY_INSERT, &levels);
}

/* Change the filter of a key.  As the owner. */
void
fav_change_sink(FavAttachment *attachment, Datum filter_key, FavChange *change)
{
	int			tries = 0;

	for (;;)
	{
		/* nothing is left of a row that somebody else has deleted meanwhile */
		FavRow		row = {.attachment = attachment,.key = filter_key,.is_locked = tries > 0};

		if (try_change(&row, change))
			return;
		fav_count_try(attachment, &tries);
	}
}

/* For functions that need rows. */
void
fav_refuse_sink(const FavAttachment *attachment, const char *function)
{
	if (attachment->is_sink)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s cannot work on sink \"%s\"", function,
						get_rel_name(attachment->source)),
				 errdetail("A sink stores no rows that its filters could be compared with or"
						   " built from.")));
}
