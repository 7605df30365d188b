/*
 * sink.c
 *		The filters of a sink: a table that takes rows and keeps filters of them, not the rows.
 *
 * There is no source to build a filter from, so the levels have what they need to be merged:
 *
 *		recent		the latest changes, exact: up to 128 hashes, added or removed
 *		middle		what changed since base was written, but for the latest changes
 *		log			the changes in middle, exact, for us alone: every recent that was pushed.  It
 *					has four parts, so that a push need not write all of it
 *		base		everything before that; an ordinary filter that grows
 *
 * A change writes recent.  A full recent is pushed into middle, and appended to the log.  When
 * the log is full, it is replayed on base: every change is made there, in its order, as if it
 * had been made there in the first place.  Then middle and log are gone.
 *
 * Replaying removes elements from base by clearing bits.  That is safe only if base has the
 * element (docs/ALGORITHM.md), so what recent says must be true of base once everything before
 * it was replayed:
 *
 *		- An element that is added goes to recent, even if a level below reports it: that may be
 *		  by chance, thanks to bits of others, which may be cleared later.  Base pins it then.
 *		- An element that is removed while it is in recent may be in a level below, or may be
 *		  reported there by chance.  Nobody knows, so no bit must be cleared: it is excluded.
 *
 * A filter has one flag for all its tombstones that says whether some are of excluded elements.
 * Where it is set, no bit is cleared for any of them.
 */
#include "attach.h"

#include "access/detoast.h"
#include "access/xact.h"
#include "core/dated.h"
#include "core/levels.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* A row that is neither there nor can be inserted was inserted and removed by somebody else. */
#define INSERT_TRIES		10

/*
 * Of each change, the bytes of middle and half of those of a full part of the log are written once
 * in some 128 changes, and the bytes of base once in the capacity of the log.  The sum is smallest
 * where the square of the capacity is this many times the bytes of base.
 */
#define CAPACITY_FACTOR		50.0

/*
 * Base takes FAV_BASE_ERROR_SHARE.  Middle has one slice, perhaps two, which take less than two
 * thirds of its share; one that forgets may have many.
 */
#define MIDDLE_ERROR_SHARE	0.3
#define DATED_MIDDLE_ERROR_SHARE	0.2

/* A base of fewer bytes is written each time: a middle would not be cheaper. */
#define MIDDLE_MIN_BASE		4096

/* What precedes a filter in the log: its size. */
#define LOG_PREFIX			sizeof(uint32)

PG_FUNCTION_INFO_V1(fav_period);

typedef enum Action
{
	ADD,
	REMOVE,
	EXCLUDE
} Action;

/* A change of some elements, all in the same way. */
typedef struct Change
{
	Action		action;
	FavHashes	hashes;			/* sorted, unique */
	int32		period;			/* the present one */
} Change;

/*
 * Periods
 */

static int32
find_period(TimestampTz now, int64 seconds)
{
	int64		elapsed = now / USECS_PER_SEC;

	return (int32) (elapsed / seconds - (elapsed % seconds < 0 ? 1 : 0));
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

static void
raise_not_ours(const FavAttachment *attachment)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("table \"%s\" has a row that is not of sink \"%s\"",
					get_rel_name(attachment->levels), get_rel_name(attachment->source)),
			 errhint("Delete the row.")));
}

static bool
is_recent(const FavAttachment *attachment, const FavFilter *filter)
{
	return filter->nslices == 0 && filter->params.seed == attachment->params.seed &&
		filter->params.region_size == attachment->params.region_size &&
		filter->params.keep == attachment->params.keep &&
		(filter->params.kind == attachment->kind || fav_is_empty(filter));
}

static bool
in_recent(const FavRow *row, uint64_t hash)
{
	return fav_recent_contains(row->recent.recent, row->recent.nrecent, hash);
}

/* A new level; a recent has no capacity. */
static void
new_level(const FavAttachment *attachment, double error_share, uint64 capacity, FavEditor *editor)
{
	FavParams	params = attachment->params;

	params.kind = attachment->kind;
	params.error_rate *= error_share;
	if (capacity > 0)
		params.capacity = capacity;
	fav_editor_new(editor, &params);
}

static void
open_level(const FavAttachment *attachment, FavReader *old, double error_share, uint64 capacity,
		   FavEditor *editor)
{
	if (old == NULL)
	{
		new_level(attachment, error_share, capacity, editor);
		return;
	}
	fav_reader_expect(old, UINT32_MAX);
	fav_editor_open(editor, &old->filter);
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
	FavReader  *base = fav_row_base(row);
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
	size_t		full = 8 * log_capacity(row) / FAV_LOG_PARTS;
	int			part = 0;

	while (part < FAV_LOG_PARTS - 1 &&
		   (part_size(row, part) >= full || row->log[part + 1] != FAV_NO_LEVEL))
		part++;
	return part;
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
	int32_t		periods[FAV_RECENT_MAX];
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

static void
replay_part(const FavRow *row, int part, FavEditor *base)
{
	struct varlena *log;
	const uint8_t *at;
	const uint8_t *end;

	if (row->log[part] == FAV_NO_LEVEL)
		return;
	log = (struct varlena *) PG_DETOAST_DATUM_PACKED(row->log[part]);
	at = (const uint8_t *) VARDATA_ANY(log);
	end = at + VARSIZE_ANY_EXHDR(log);
	while (at < end)
	{
		size_t		left = (size_t) (end - at);
		size_t		size = left < LOG_PREFIX ? 0 : fav_load32(at);
		FavFilter	filter;
		FavProblem	problem;

		if (left < LOG_PREFIX + size)
			raise_not_ours(row->attachment);
		if (fav_open(&filter, at + LOG_PREFIX, size, size, &problem) != FAV_OK)
			fav_raise_corrupted(&problem);
		if (!is_recent(row->attachment, &filter))
			raise_not_ours(row->attachment);
		replay(base, &filter, true);
		at += LOG_PREFIX + size;
	}
}

/*
 * Changing levels
 */

/* Remove an element from recent, and make sure that levels below do not report it. */
static void
remove_in_recent(FavRow *row, FavEditor *recent, Action action, uint64_t hash)
{
	bool		was_recent = in_recent(row, hash);

	fav_require(fav_editor_remove(recent, hash));
	if (action == EXCLUDE)
		fav_require(fav_editor_exclude(recent, hash));
	else if (!fav_editor_has_tombstone(recent, hash) && fav_row_reports_below_recent(row, hash))
		fav_require(was_recent ? fav_editor_exclude(recent, hash) :
					fav_tombstones_add(recent, hash));
}

static void
change_recent(FavRow *row, const Change *change, FavWritten *levels)
{
	FavEditor	editor;
	size_t		i;

	if (change->action != ADD)
		fav_forget_below_recent(row, change->period);

	fav_editor_open(&editor, &row->recent);
	for (i = 0; i < change->hashes.count; i++)
		if (change->action == ADD)
			fav_require(fav_editor_add_at(&editor, change->hashes.values[i], change->period));
		else
			remove_in_recent(row, &editor, change->action, change->hashes.values[i]);
	levels->recent = fav_finish_edit(&editor);
}

static void
push_filter(FavEditor *middle, StringInfo log, const FavFilter *filter)
{
	replay(middle, filter, false);
	fav_require(fav_editor_flush(middle));
	append_to_log(log, filter);
}

/* Push recent and what is added into middle. */
static void
push(FavRow *row, const Change *change, FavWritten *levels)
{
	FavEditor	middle;
	StringInfoData log;
	int			part = current_part(row);
	size_t		done;
	size_t		count;

	open_level(row->attachment, fav_row_middle(row),
			   row->attachment->keep > 0 ? DATED_MIDDLE_ERROR_SHARE : MIDDLE_ERROR_SHARE,
			   log_capacity(row), &middle);
	initStringInfo(&log);
	appendStringInfoSpaces(&log, VARHDRSZ);
	if (row->log[part] != FAV_NO_LEVEL)
	{
		struct varlena *old = (struct varlena *) PG_DETOAST_DATUM_PACKED(row->log[part]);

		appendBinaryStringInfo(&log, VARDATA_ANY(old), (int) VARSIZE_ANY_EXHDR(old));
	}
	if (!fav_is_empty(&row->recent))
		push_filter(&middle, &log, &row->recent);
	for (done = 0; done < change->hashes.count; done += count)
	{
		FavEditor	editor;
		const FavFilter *filter;

		count = Min(change->hashes.count - done, FAV_RECENT_MAX);
		new_level(row->attachment, 1.0, 0, &editor);
		fav_require(fav_editor_add_many_at(&editor, change->hashes.values + done, count,
										   change->period));
		fav_require(fav_editor_finish(&editor, &filter));
		push_filter(&middle, &log, filter);
		fav_editor_close(&editor);
	}
	levels->middle = fav_finish_edit(&middle);
	SET_VARSIZE(log.data, log.len);
	levels->log = PointerGetDatum(log.data);
	levels->part = part;
}

/* Make all changes on base: those in the log, in recent, and this one. */
static void
merge(FavRow *row, const Change *change, FavWritten *levels)
{
	FavEditor	base;
	const FavFilter *filter;
	uint64		count = row->recent.nrecent + (change->action == ADD ? change->hashes.count : 0);
	int			i;

	open_level(row->attachment, fav_row_base(row), FAV_BASE_ERROR_SHARE,
			   Max(FAV_DEFAULT_CAPACITY, count), &base);
	for (i = 0; i < FAV_LOG_PARTS; i++)
		replay_part(row, i, &base);
	replay(&base, &row->recent, true);
	if (change->action == ADD)
		fav_require(fav_editor_add_many_at(&base, change->hashes.values, change->hashes.count,
										   change->period));

	/* what is removed must not come back by a flush */
	fav_require(fav_editor_expire(&base, change->period));
	fav_require(fav_editor_flush(&base));
	if (change->action == REMOVE)
		fav_require(fav_editor_remove_many(&base, change->hashes.values, change->hashes.count));
	else if (change->action == EXCLUDE)
		fav_require(fav_editor_exclude_many(&base, change->hashes.values, change->hashes.count));
	fav_require(fav_editor_finish(&base, &filter));
	if (fav_is_empty(filter))
		fav_editor_close(&base);
	else
		levels->base = fav_finish_edit(&base);
}

/* How many hashes recent would have at most. */
static size_t
recent_count(const FavRow *row, const Change *change)
{
	size_t		count = row->recent.nrecent + row->recent.ntombstones;
	size_t		i;

	for (i = 0; i < change->hashes.count; i++)
		count += !(change->action == ADD && in_recent(row, change->hashes.values[i]));
	return count;
}

/* Which levels a change writes, and what. */
static FavQuery
change_levels(FavRow *row, const Change *change, FavWritten *levels)
{
	size_t		count = recent_count(row, change);

	levels->recent = row->attachment->empty;
	if (count <= FAV_RECENT_MAX)
	{
		change_recent(row, change, levels);
		return FAV_QUERY_SET_RECENT;
	}
	if (change->action == ADD && count + log_size(row) / 8 <= log_capacity(row))
	{
		push(row, change, levels);
		return FAV_QUERY_SINK_MIDDLE;
	}
	merge(row, change, levels);
	return FAV_QUERY_SINK_BASE;
}

/* False if somebody else was faster. */
static bool
try_change(FavRow *row, const Change *change)
{
	FavWritten	levels = {0};
	FavQuery	query;
	bool		found = fav_read_row(row);

	if (!found)
	{
		if (change->action == REMOVE)
			return true;
		memset(&row->recent, 0, sizeof(row->recent));
		fav_open_value(&row->recent, row->attachment->empty);
		row->recent.params.kind = row->attachment->kind;
	}
	if (!is_recent(row->attachment, &row->recent))
		raise_not_ours(row->attachment);
	query = change_levels(row, change, &levels);
	return found ? fav_write_row(row, query, &levels) : fav_insert_row(row, &levels);
}

/* Change the filter of a key. */
static void
change_filter(FavAttachment *attachment, Datum filter_key, Change *change)
{
	FavRow	   *row = palloc0(sizeof(FavRow));
	int			tries;

	change->period = find_period(GetCurrentTimestamp(), attachment->period);
	row->attachment = attachment;
	row->key = filter_key;
	for (tries = 0; tries < INSERT_TRIES; tries++)
	{
		if (try_change(row, change))
			return;
		memset(&row->base, 0, sizeof(row->base));
		memset(&row->middle, 0, sizeof(row->middle));
		row->is_locked = true;
		CHECK_FOR_INTERRUPTS();
	}
	fav_raise_not_written(attachment);
}

/* Elements were inserted into the sink.  As the owner; the hashes are sorted and unique. */
void
fav_add_to_sink(FavAttachment *attachment, Datum filter_key, const FavHashes *hashes)
{
	Change		change = {ADD, *hashes, 0};

	change_filter(attachment, filter_key, &change);
}

/* Elements are to be removed from the filter of a key.  Likewise. */
void
fav_remove_from_sink(FavAttachment *attachment, Datum filter_key, const FavHashes *hashes,
					 bool exclude)
{
	Change		change = {exclude ? EXCLUDE : REMOVE, *hashes, 0};

	change_filter(attachment, filter_key, &change);
}
