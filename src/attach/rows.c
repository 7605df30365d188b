/*
 * rows.c
 *		The row of a filter in its levels table: reading, locking and writing it.
 *
 * A row that is not locked is written on the condition that it is still the version that was
 * read.  As the owner.  The memory of a row comes from the current memory context.
 */
#include "attach/queries.h"
#include "attach/rows.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "core/levels.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#define MAX_TRIES		10

void
fav_open_value(FavFilter *filter, Datum value)
{
	fav_open_flat(filter, PG_DETOAST_DATUM_PACKED(value));
}

/*
 * Levels
 */

/* A column that may be NULL. */
static Datum
get_column(HeapTuple tuple, TupleDesc descriptor, int column)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, column, descriptor, &isnull);

	return isnull ? FAV_NO_LEVEL : value;
}

/* Base or middle: the short form of the empty filter is a level that the key does not have. */
static Datum
get_level(HeapTuple tuple, TupleDesc descriptor, int column)
{
	Datum		value = get_column(tuple, descriptor, column);

	return value == FAV_NO_LEVEL || fav_is_short_value(value) ? FAV_NO_LEVEL : value;
}

static Datum
written_level(Datum level)
{
	return level == FAV_NO_LEVEL ? fav_make_short() : level;
}

/* Base and middle are opened when they are needed: their heads may be in TOAST. */
static FavReader *
open_level(const FavRow *row, FavRowLevel *level)
{
	if (level->reader == NULL && level->value != FAV_NO_LEVEL)
	{
		memset(&level->cache, 0, sizeof(level->cache));
		level->reader = fav_reader_cache_keep(&level->cache, CurrentMemoryContext,
											  (struct varlena *) DatumGetPointer(level->value));

		/* An empty level does not know its kind. */
		level->reader->filter.params.kind = row->attachment->kind;
	}
	return level->reader;
}

/* NULL if there is none; likewise below. */
FavReader *
fav_row_base(FavRow *row)
{
	return open_level(row, &row->base);
}

FavReader *
fav_row_middle(FavRow *row)
{
	return open_level(row, &row->middle);
}

/* Base and middle forget what is too old in this period, or with FAV_NO_PERIOD nothing. */
void
fav_forget_below_recent(FavRow *row, int32 period)
{
	if (fav_row_middle(row) != NULL)
		fav_reader_forget(fav_row_middle(row), period);
	if (fav_row_base(row) != NULL)
		fav_reader_forget(fav_row_base(row), period);
}

/* Does middle or base report the hash? */
bool
fav_row_reports_below_recent(FavRow *row, uint64_t hash)
{
	FavReader  *middle = fav_row_middle(row);

	return FAV_IS_BELOW_RECENT(middle != NULL && fav_reader_contains(middle, hash),
							   fav_row_base(row) != NULL &&
							   fav_reader_contains(fav_row_base(row), hash),
							   middle != NULL && fav_reader_excludes(middle, hash));
}

/* A new level with a share of the error rate.  Recent, and a base that grows, have no capacity. */
void
fav_new_level(const FavAttachment *attachment, double error_share, uint64 capacity,
			  FavEditor *editor)
{
	FavParams	params = attachment->params;

	params.kind = attachment->kind;
	params.error_rate *= error_share;
	if (capacity > 0)
		params.capacity = capacity;
	fav_editor_new(editor, &params);
}

static void
set_levels(FavRow *row, HeapTuple tuple, TupleDesc descriptor)
{
	Datum		recent = get_level(tuple, descriptor, FAV_LEVELS_RECENT);
	int			i;

	fav_open_value(&row->recent, recent == FAV_NO_LEVEL ? row->attachment->empty : recent);
	row->recent.params.kind = row->attachment->kind;
	row->base.value = get_level(tuple, descriptor, FAV_LEVELS_BASE);
	row->middle.value = get_level(tuple, descriptor, FAV_LEVELS_MIDDLE);
	row->base.reader = row->middle.reader = NULL;
	for (i = 0; i < FAV_LOG_PARTS && row->attachment->is_sink; i++)
		row->log[i] = get_column(tuple, descriptor, FAV_LEVELS_LOG + i);
}

/*
 * Reading
 */

static bool
lock_row(FavRow *row)
{
	bool		found = fav_execute(row->attachment, FAV_QUERY_LOCK, &row->key, NULL,
									SPI_OK_SELECT) > 0;

	if (found)
	{
		HeapTuple	tuple = heap_copytuple(SPI_tuptable->vals[0]);
		TupleDesc	descriptor = SPI_tuptable->tupdesc;
		int			last = descriptor->natts;	/* the last columns are ctid and xmin */
		Datum		ctid = get_column(tuple, descriptor, last - 1);

		if (!row->is_built_anew)
			set_levels(row, tuple, descriptor);
		Assert(ctid != (Datum) 0);
		row->tid = *(ItemPointer) DatumGetPointer(ctid);
		row->xmin = DatumGetTransactionId(get_column(tuple, descriptor, last));
	}
	SPI_freetuptable(SPI_tuptable);
	return found;
}

/*
 * Read the row by the primary key of the table, in a snapshot as a query would.  A query would
 * take four times as long.
 */
static bool
fetch_row(FavRow *row, Relation levels)
{
	const FavAttachment *attachment = row->attachment;
	ScanKeyData scan_key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyEntryInitialize(&scan_key, 0, FAV_LEVELS_KEY, BTEqualStrategyNumber, InvalidOid,
						   attachment->key.collation,
						   get_opcode(attachment->filter_key_type->eq_opr), row->key);
	CommandCounterIncrement();
	PushCopiedSnapshot(GetTransactionSnapshot());
	UpdateActiveSnapshotCommandId();
	scan = systable_beginscan(levels, row->attachment->key_index, true, GetActiveSnapshot(), 1,
							  &scan_key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		row->tid = tuple->t_self;
		row->xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
		set_levels(row, heap_copytuple(tuple), RelationGetDescr(levels));
	}
	systable_endscan(scan);
	PopActiveSnapshot();
	return HeapTupleIsValid(tuple);
}

/* Read the row of the key, locked or not; false if there is none. */
bool
fav_read_row(FavRow *row)
{
	Relation	levels;
	bool		found;

	if (row->is_locked)
		return lock_row(row);
	levels = table_open(row->attachment->levels, RowExclusiveLock);
	row->is_locked = !OidIsValid(row->attachment->key_index);
	found = row->is_locked ? lock_row(row) : fetch_row(row, levels);
	table_close(levels, NoLock);
	return found;
}

/*
 * Writing
 */

void
fav_raise_not_written(const FavAttachment *attachment)
{
	ereport(ERROR,
			(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
			 errmsg("the filter of a key was not written to table \"%s\"",
					get_rel_name(attachment->levels)),
			 errdetail("A trigger of that table prevented it, and the filter would not be true any"
					   " more.")));
	pg_unreachable();
}

/*
 * Before another try to change a row.  One that is neither there nor can be inserted was inserted
 * by somebody else and removed again.  That does not go on for long.
 */
void
fav_count_try(const FavAttachment *attachment, int *tries)
{
	CHECK_FOR_INTERRUPTS();
	if (++*tries == MAX_TRIES)
		fav_raise_not_written(attachment);
}

/*
 * Write recent and, as far as the query has them, middle, base and log.  False if somebody else
 * has written the row since it was read, which cannot be if it is locked.
 */
bool
fav_write_row(FavRow *row, FavQuery query, const FavWritten *written)
{
	Datum		values[8];
	char		nulls[9] = "        ";

	values[0] = row->key;
	values[1] = PointerGetDatum(&row->tid);
	values[2] = TransactionIdGetDatum(row->xmin);
	values[3] = written->recent;
	values[4] = written_level(written->middle);
	values[5] = written_level(written->base);
	values[6] = written->log;
	values[7] = Int32GetDatum(written->part);
	nulls[6] = written->log == FAV_NO_LEVEL ? 'n' : ' ';
	if (fav_execute(row->attachment, query, values, nulls, SPI_OK_UPDATE) > 0)
		return true;
	if (row->is_locked)
		fav_raise_not_written(row->attachment);
	return false;
}

/* The first version of a row; false if somebody else was faster. */
bool
fav_insert_row(FavRow *row, const FavWritten *written)
{
	Datum		values[4];

	if (!OidIsValid(row->attachment->key_index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no primary key on its first column",
						get_rel_name(row->attachment->levels)),
				 errhint("Create a unique index on that column of table \"%s\".",
						 get_rel_name(row->attachment->levels))));
	values[0] = row->key;
	values[1] = written_level(written->base);
	values[2] = written_level(written->middle);
	values[3] = written->recent;
	return fav_execute(row->attachment, FAV_QUERY_INSERT, values, NULL, SPI_OK_INSERT) > 0;
}
