/*
 * rows.c
 *		The row of a filter in its levels table: reading, locking and writing it.
 *
 * A row that is not locked is written on the condition that it is still the version that was
 * read.  As the owner.  What a row takes is in the current memory context.
 */
#include "attach.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Where the query that locks a row has these. */
enum
{
	LOCK_CTID = FAV_LEVELS_RECENT + 1,
	LOCK_XMIN,
	LOCK_LOG
};

void
fav_open_value(FavFilter *filter, Datum value)
{
	struct varlena *bytes = (struct varlena *) PG_DETOAST_DATUM_PACKED(value);
	size_t		size = VARSIZE_ANY_EXHDR(bytes);
	FavProblem	problem;

	if (fav_open(filter, (uint8_t *) VARDATA_ANY(bytes), size, size, &problem) != FAV_OK)
		fav_raise_corrupted(&problem);
}

/*
 * Levels
 */

static Datum
get_level(HeapTuple tuple, TupleDesc descriptor, int column)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, column, descriptor, &isnull);

	return isnull ? FAV_NO_LEVEL : value;
}

/* Base and middle are opened when they are needed: their heads may be in TOAST. */
static FavReader *
open_level(const FavRow *row, FavRowLevel *level)
{
	if (level->reader == NULL && level->value != FAV_NO_LEVEL)
	{
		memset(&level->cache, 0, sizeof(level->cache));
		level->reader = fav_cache_find(&level->cache, CurrentMemoryContext,
									   (struct varlena *) DatumGetPointer(level->value),
									   &level->local);

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

/* Base and middle report no more what they have forgotten by now. */
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
	FavReader  *base;

	if (middle != NULL)
	{
		if (fav_reader_contains(middle, hash))
			return true;
		if (fav_reader_excludes(middle, hash))
			return false;
	}
	base = fav_row_base(row);
	return base != NULL && fav_reader_contains(base, hash);
}

static void
set_levels(FavRow *row, HeapTuple tuple, TupleDesc descriptor, int log)
{
	Datum		recent = get_level(tuple, descriptor, FAV_LEVELS_RECENT);
	int			i;

	fav_open_value(&row->recent, recent == FAV_NO_LEVEL ? row->attachment->empty : recent);
	row->recent.params.kind = row->attachment->kind;
	row->base.value = get_level(tuple, descriptor, FAV_LEVELS_BASE);
	row->middle.value = get_level(tuple, descriptor, FAV_LEVELS_MIDDLE);
	row->base.reader = row->middle.reader = NULL;
	for (i = 0; i < FAV_LOG_PARTS && row->attachment->is_sink; i++)
		row->log[i] = get_level(tuple, descriptor, log + i);
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
		bool		isnull;
		Pointer		ctid = DatumGetPointer(heap_getattr(tuple, LOCK_CTID, descriptor, &isnull));

		if (!row->is_built_anew)
			set_levels(row, tuple, descriptor, LOCK_LOG);
		if (ctid == NULL)
			elog(ERROR, "ctid is null");
		row->tid = *(ItemPointer) ctid;
		row->xmin = DatumGetTransactionId(heap_getattr(tuple, LOCK_XMIN, descriptor, &isnull));
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
	scan = systable_beginscan(levels, levels->rd_pkindex, true, GetActiveSnapshot(), 1,
							  &scan_key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		row->tid = tuple->t_self;
		row->xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
		set_levels(row, heap_copytuple(tuple), RelationGetDescr(levels), FAV_LEVELS_LOG);
	}
	systable_endscan(scan);
	PopActiveSnapshot();
	return HeapTupleIsValid(tuple);
}

/*
 * Read the row of the key, locked or not; false if there is none.  While a dump is restored, the
 * table may be without its primary key for a moment.
 */
bool
fav_read_row(FavRow *row)
{
	Relation	levels;
	bool		found;

	if (row->is_locked)
		return lock_row(row);
	levels = table_open(row->attachment->levels, RowExclusiveLock);
	list_free(RelationGetIndexList(levels));
	row->is_locked = !OidIsValid(levels->rd_pkindex);
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
 * Write recent and, as far as the query has them, middle, base and log.  False if somebody else
 * has written the row since it was read, which cannot be if it is locked.
 */
bool
fav_write_row(FavRow *row, FavQuery query, const FavWritten *levels)
{
	Datum		values[8];
	char		nulls[9] = "        ";

	values[0] = row->key;
	values[1] = PointerGetDatum(&row->tid);
	values[2] = TransactionIdGetDatum(row->xmin);
	values[3] = levels->recent;
	values[4] = levels->middle;
	values[5] = levels->base;
	values[6] = levels->log;
	values[7] = Int32GetDatum(levels->part);
	nulls[4] = levels->middle == FAV_NO_LEVEL ? 'n' : ' ';
	nulls[5] = levels->base == FAV_NO_LEVEL ? 'n' : ' ';
	nulls[6] = levels->log == FAV_NO_LEVEL ? 'n' : ' ';
	if (fav_execute(row->attachment, query, values, nulls, SPI_OK_UPDATE) > 0)
		return true;
	if (row->is_locked)
		fav_raise_not_written(row->attachment);
	return false;
}

/* The first version of a row; false if somebody else was faster. */
bool
fav_insert_row(FavRow *row, const FavWritten *levels)
{
	Datum		values[3];
	char		nulls[4] = "   ";

	values[0] = row->key;
	values[1] = levels->base;
	values[2] = levels->recent;
	if (levels->base == FAV_NO_LEVEL)
		nulls[1] = 'n';
	return fav_execute(row->attachment, FAV_QUERY_INSERT, values, nulls, SPI_OK_INSERT) > 0;
}
