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

/*
 * Base and middle are opened when they are needed: their heads may be in TOAST.  NULL if there is
 * no such level.
 */
FavReader *
fav_open_level(FavRowLevel *level)
{
	if (level->reader == NULL && level->value != FAV_NO_LEVEL)
	{
		level->reader = fav_reader_cache_keep(palloc0(sizeof(FavReaderCache)), CurrentMemoryContext,
											  (struct varlena *) DatumGetPointer(level->value));
		level->reader->filter.params.kind = level->kind;
	}
	return level->reader;
}

/* Base and middle forget what is too old in this period, or with FAV_NO_PERIOD nothing. */
void
fav_forget_below_recent(FavRow *row, int32 period)
{
	if (fav_open_level(&row->middle) != NULL)
		fav_reader_forget(fav_open_level(&row->middle), period);
	if (fav_open_level(&row->base) != NULL)
		fav_reader_forget(fav_open_level(&row->base), period);
}

/* Does middle or base report the hash? */
bool
fav_row_reports_below_recent(FavRow *row, uint64_t hash)
{
	FavReader  *middle = fav_open_level(&row->middle);

	return FAV_IS_BELOW_RECENT(middle != NULL && fav_reader_contains(middle, hash),
							   fav_open_level(&row->base) != NULL &&
							   fav_reader_contains(fav_open_level(&row->base), hash),
							   middle != NULL && fav_reader_excludes(middle, hash));
}

/*
 * Edit a level.  If it is NULL, begin a new one with a share of the error rate; recent has no
 * capacity.
 */
void
fav_edit_level(const FavAttachment *attachment, FavReader *level, double error_share,
			   uint64 capacity, FavEditor *editor)
{
	FavParams	params = attachment->params;

	if (level != NULL)
	{
		fav_reader_expect(level, UINT32_MAX);
		fav_editor_open(editor, &level->filter);
		return;
	}
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

	fav_open_flat(&row->recent, PG_DETOAST_DATUM_PACKED(recent == FAV_NO_LEVEL ?
														row->attachment->empty : recent));
	row->recent.params.kind = row->attachment->kind;
	row->base.value = get_level(tuple, descriptor, FAV_LEVELS_BASE);
	row->middle.value = get_level(tuple, descriptor, FAV_LEVELS_MIDDLE);
	row->base.kind = row->middle.kind = row->attachment->kind;
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
fetch_row(FavRow *row)
{
	const FavAttachment *attachment = row->attachment;
	Relation	levels = table_open(attachment->levels, RowExclusiveLock);
	ScanKeyData scan_key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyEntryInitialize(&scan_key, 0, FAV_LEVELS_KEY, BTEqualStrategyNumber, InvalidOid,
						   attachment->key.collation,
						   get_opcode(attachment->filter_key_type->eq_opr), row->key);
	CommandCounterIncrement();
	PushCopiedSnapshot(GetTransactionSnapshot());
	UpdateActiveSnapshotCommandId();
	scan = systable_beginscan(levels, attachment->key_index, true, GetActiveSnapshot(), 1,
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
	table_close(levels, NoLock);
	return HeapTupleIsValid(tuple);
}

/* Read the row of the key, locked or not; false if there is none. */
bool
fav_read_row(FavRow *row)
{
	row->is_locked |= !OidIsValid(row->attachment->key_index);
	return row->is_locked ? lock_row(row) : fetch_row(row);
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
 * Write recent and, as far as the query has them, middle, base and log, or insert the first version
 * of a row.  False if somebody else was faster: has written the row since it was read, which cannot
 * be if it is locked, or has inserted it.
 */
bool
fav_write_row(FavRow *row, FavQuery query, const FavWritten *written)
{
	bool		is_insert = query == FAV_QUERY_INSERT;
	char		nulls[] = "        ";
	Datum		values[] = {
		row->key, PointerGetDatum(&row->tid), TransactionIdGetDatum(row->xmin), written->recent,
		written_level(written->middle), written_level(written->base), written->log,
		Int32GetDatum(written->part)
	};

	if (is_insert && !OidIsValid(row->attachment->key_index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no primary key on its first column",
						get_rel_name(row->attachment->levels)),
				 errhint("Create a unique index on that column of table \"%s\".",
						 get_rel_name(row->attachment->levels))));
	if (written->log == FAV_NO_LEVEL)
		nulls[6] = 'n';
	if (fav_execute(row->attachment, query, values, nulls,
					is_insert ? SPI_OK_INSERT : SPI_OK_UPDATE) > 0)
		return true;
	if (row->is_locked && !is_insert)
		fav_raise_not_written(row->attachment);
	return false;
}
