/*
 * reconcile.c
 *		Making the filter of one key agree with the source, for the elements that were
 *		touched.
 *
 * Lock the key's row, look the touched elements up in a snapshot that is taken after the
 * lock, add what is there, exclude what is not, and write the row.  A key without a row
 * is built from the source.
 *
 * Where nothing has to be looked up the row is not locked, which would cost as much as
 * writing it.  It is read, and written if it is still the version that was read.
 *
 * The write comes even if nothing changed.  At REPEATABLE READ it is what makes a
 * concurrent change of the same key a serialization error.
 *
 * Of all touched elements of a key the hashes are kept, 8 bytes each, and those that look-ups
 * have found are kept twice.  That is about as much as building the key's base takes.
 */
#include "attach/attachment_cache.h"
#include "attach/columns.h"
#include "attach/hashes.h"
#include "attach/queries.h"
#include "attach/reconcile.h"
#include "attach/rows.h"

#include "core/levels.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* How many elements, or bytes of them, are looked up at once. */
#define LOOK_UP_BATCH		8192
#define LOOK_UP_BATCH_BYTES (8 * 1024 * 1024)

/* The work on one key. */
struct FavReconciliation
{
	FavRow		row;
	FavKnown	known;			/* of its touched rows */

	/*
	 * Its touched rows, by their hashes: those in the source, and the others, or all of them as
	 * long as rows come.
	 */
	FavHashes	present;
	FavHashes	absent;

	/* Elements that are yet to be looked up, and the key that they belong to. */
	ArrayBuildState *batch;		/* NULL: none */
	Datum		row_key;

	/* Hashes to add and to exclude. */
	FavHashes	add;
	FavHashes	exclude;
};

/*
 * Hashes.  A key may have millions.
 */

/* Remove from sorted hashes those that others include. */
static void
subtract(FavHashes *hashes, const FavHashes *others)
{
	size_t		kept = 0;
	size_t		i;

	for (i = 0; i < hashes->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (fav_find_hash(others, hashes->values[i]) == NULL)
			hashes->values[kept++] = hashes->values[i];
	}
	hashes->count = kept;
}

/*
 * Rows
 */

/* The levels of a key from the source as it is now.  Few elements are all in recent. */
static void
build_levels(const FavRow *row, FavWritten *written)
{
	FavAttachment *attachment = row->attachment;
	Datum		values[4];
	Datum		filter;
	bool		isnull;

	fav_filter_range(attachment, row->key, values);
	values[2] = Float8GetDatum(attachment->params.error_rate);
	values[3] = Int64GetDatum((int64) attachment->params.seed);
	fav_lock_source(attachment);
	(void) fav_execute(attachment, FAV_QUERY_BUILD, values, NULL, SPI_OK_SELECT);
	filter = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	memset(written, 0, sizeof(*written));
	written->recent = attachment->empty;
	if (!isnull)
	{
		struct varlena *copy = (struct varlena *) PG_DETOAST_DATUM_COPY(filter);
		bool		has_slices = ((const uint8_t *) VARDATA(copy))[FAV_AT_NSLICES] > 0;

		*(has_slices ? &written->base : &written->recent) = PointerGetDatum(copy);
	}
	SPI_freetuptable(SPI_tuptable);
}

/* Read the row; false if there was none, and now is one, fresh from the source. */
static bool
read_or_insert(FavRow *row)
{
	int			tries = 0;

	while (!fav_read_row(row))
	{
		FavWritten	written;

		build_levels(row, &written);
		if (fav_write_row(row, FAV_QUERY_INSERT, &written))
			return false;
		fav_count_try(row->attachment, &tries);
	}
	return true;
}

/*
 * Read the row, of a key without one after writing it.  False if nothing is left to do: the row
 * is fresh from the source, and all touched elements are there.
 */
static bool
open_row(FavReconciliation *work)
{
	if (read_or_insert(&work->row))
		return true;
	if (work->known == FAV_ALL_PRESENT)
		return false;
	if (!fav_read_row(&work->row))
		fav_raise_not_written(work->row.attachment);
	return true;
}

/*
 * Looking up touched elements
 */

/*
 * Look a batch of elements up.  Without an index on pairs each element would read all pairs of
 * the key, unless there is but one.
 */
static void
look_up(FavReconciliation *work)
{
	FavAttachment *attachment = work->row.attachment;
	FavQuery	query;
	Datum		values[2];
	uint64		nrows;
	uint64		i;

	if (work->batch == NULL)
		return;
	query = work->batch->nelems == 1 || attachment->has_index_on_pair ? FAV_QUERY_PROBE :
		FAV_QUERY_LOOK_UP;
	values[0] = work->row_key;
	values[1] = makeArrayResult(work->batch, CurrentMemoryContext);
	work->batch = NULL;
	fav_lock_source(attachment);
	nrows = fav_execute(attachment, query, values, NULL, SPI_OK_SELECT);
	for (i = 0; i < nrows; i++)
	{
		bool		isnull;
		Datum		element = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1,
											&isnull);

		fav_append_hash(&work->present, fav_hash_row(attachment, work->row_key, element));
	}
	SPI_freetuptable(SPI_tuptable);
	pfree(DatumGetPointer(values[1]));
}

/*
 * A row of the filter was touched.  Rows come in the order of their keys, and those of one key
 * are looked up together.
 */
void
fav_touch_row(FavReconciliation *work, Datum row_key, Datum element)
{
	const FavAttachment *attachment = work->row.attachment;
	Oid			type = attachment->element.type;

	fav_append_hash(work->known == FAV_ALL_PRESENT ? &work->present : &work->absent,
					fav_hash_row(attachment, row_key, element));
	if (work->known != FAV_UNKNOWN)
		return;
	if (attachment->share > 0 && work->batch != NULL &&
		fav_integer(attachment->key.type, row_key) !=
		fav_integer(attachment->key.type, work->row_key))
		look_up(work);
	if (work->batch == NULL)
		work->row_key = datumCopy(row_key, attachment->key_type->typbyval,
								  attachment->key_type->typlen);
	work->batch = accumArrayResult(work->batch, element, false, type, CurrentMemoryContext);
	if (work->batch->nelems == LOOK_UP_BATCH ||
		MemoryContextMemAllocated(work->batch->mcontext, false) >= LOOK_UP_BATCH_BYTES)
		look_up(work);
}

/*
 * Changing levels
 */

static bool
levels_contain(FavReconciliation *work, uint64_t hash)
{
	const FavFilter *recent = &work->row.recent;

	return FAV_IS_IN_LEVELS(fav_in_recent(recent, hash),
							fav_row_reports_below_recent(&work->row, hash),
							fav_has_tombstone(recent, hash));
}

/*
 * Find the changes that recent needs.  A present element that a level below reports need not be
 * added, but looking there costs more than adding it, so it is done on demand.  An absent element
 * that a level below reports needs a tombstone.
 */
static void
find_changes(FavReconciliation *work, bool look_below)
{
	const FavFilter *recent = &work->row.recent;
	size_t		nprobes = work->absent.count + (look_below ? work->present.count : 0);
	size_t		i;

	if (nprobes > 1 && fav_open_level(&work->row.base) != NULL)
		fav_reader_expect(fav_open_level(&work->row.base), nprobes);
	work->add.count = work->exclude.count = 0;
	for (i = 0; i < work->present.count; i++)
	{
		uint64_t	hash = work->present.values[i];

		CHECK_FOR_INTERRUPTS();
		if (!(look_below ? levels_contain(work, hash) : fav_in_recent(recent, hash)))
			fav_append_hash(&work->add, hash);
	}
	for (i = 0; i < work->absent.count; i++)
	{
		uint64_t	hash = work->absent.values[i];

		CHECK_FOR_INTERRUPTS();
		if (levels_contain(work, hash))
			fav_append_hash(&work->exclude, hash);
	}
}

/* How many hashes recent would have; a little pessimistic: one may replace another. */
static uint64
recent_count(const FavReconciliation *work)
{
	const FavFilter *recent = &work->row.recent;

	return recent->nrecent + recent->ntombstones + work->add.count + work->exclude.count;
}

static uint64
middle_capacity(FavReconciliation *work)
{
	FavReader  *base = fav_open_level(&work->row.base);

	return base == NULL ? 0 : fav_middle_capacity(base->filter.elements);
}

/* An editor of recent without what is absent.  Recent has no slices, so no bit is cleared. */
static void
open_recent(const FavReconciliation *work, FavEditor *editor)
{
	fav_editor_open(editor, &work->row.recent);
	if (work->exclude.count > 0)
		fav_require(fav_editor_remove_many(editor, work->exclude.values, work->exclude.count));
}

static bool
change_recent(FavReconciliation *work)
{
	FavWritten	written = {0};
	FavEditor	editor;
	size_t		i;

	open_recent(work, &editor);
	for (i = 0; i < work->exclude.count; i++)
		if (fav_row_reports_below_recent(&work->row, work->exclude.values[i]))
			fav_require(fav_editor_exclude(&editor, work->exclude.values[i]));
	for (i = 0; i < work->add.count; i++)
		fav_require(fav_levels_add(&editor, work->add.values[i]));
	written.recent = fav_finish_edit(&editor);
	return fav_write_row(&work->row, FAV_QUERY_SET_RECENT, &written);
}

/*
 * Push recent and the changes into middle.  What is absent is excluded in the end: the slices
 * may report it by chance now, though they did not before.
 */
static bool
push(FavReconciliation *work)
{
	FavEditor	recent;
	FavEditor	middle;
	FavWritten	written = {.recent = work->row.attachment->empty};
	const FavFilter *pushed;
	size_t		step = fav_scatter_step(work->add.count);
	size_t		i;

	fav_edit_level(work->row.attachment, fav_open_level(&work->row.middle), FAV_MIDDLE_ERROR_SHARE,
				   middle_capacity(work), &middle);
	open_recent(work, &recent);
	fav_require(fav_editor_finish(&recent, &pushed));
	fav_require(fav_levels_push(&middle, pushed));
	fav_editor_close(&recent);
	for (i = 0; i < work->add.count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		fav_require(fav_levels_add(&middle,
								   work->add.values[fav_scattered(i, step, work->add.count)]));
	}
	fav_require(fav_editor_flush(&middle));
	for (i = 0; i < work->absent.count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (fav_editor_contains(&middle, work->absent.values[i]) ||
			fav_row_reports_below_recent(&work->row, work->absent.values[i]))
			fav_require(fav_editor_exclude(&middle, work->absent.values[i]));
	}
	written.middle = fav_finish_edit(&middle);
	return fav_write_row(&work->row, FAV_QUERY_SET_MIDDLE, &written);
}

/*
 * Tombstones for absent elements that the new base reports by chance, so that deletes hold.
 * They go to recent or, if they are many, to middle.
 */
static void
exclude_again(FavReconciliation *work, Datum base, Datum *recent, Datum *middle)
{
	FavFilter	filter;
	FavEditor	editor;
	bool		are_many;
	size_t		i;

	fav_open_flat(&filter, (struct varlena *) DatumGetPointer(base));
	work->exclude.count = 0;
	for (i = 0; i < work->absent.count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (fav_contains(&filter, work->absent.values[i]))
			fav_append_hash(&work->exclude, work->absent.values[i]);
	}
	if (work->exclude.count == 0)
		return;
	are_many = work->exclude.count > FAV_RECENT_MAX;
	fav_edit_level(work->row.attachment, NULL, are_many ? FAV_MIDDLE_ERROR_SHARE : 1.0,
				   are_many ? fav_middle_capacity(filter.elements) : 0, &editor);
	for (i = 0; i < work->exclude.count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		fav_require(fav_editor_exclude(&editor, work->exclude.values[i]));
	}
	*(are_many ? middle : recent) = fav_finish_edit(&editor);
}

/*
 * Elements with a tombstone stay absent when base is built anew, as far as it reports them,
 * unless recent has added them since.  One that is in the source was inserted by this
 * transaction and has yet to be reconciled, which drops the tombstone.
 */
static void
keep_tombstones(FavReconciliation *work, const FavFilter *level)
{
	uint32_t	i;

	for (i = 0; i < level->ntombstones; i++)
	{
		uint64_t	hash = fav_load64(level->tombstones + 8 * (size_t) i);

		CHECK_FOR_INTERRUPTS();
		if (!fav_in_recent(&work->row.recent, hash))
			fav_append_hash(&work->absent, hash);
	}
}

/* Build all levels anew from the source. */
static void
rebuild(FavReconciliation *work)
{
	FavWritten	written;

	Assert(work->row.is_locked);
	build_levels(&work->row, &written);
	if (written.base != FAV_NO_LEVEL)
		exclude_again(work, written.base, &written.recent, &written.middle);
	(void) fav_write_row(&work->row, FAV_QUERY_SET_BASE, &written);
}

/* Did we write this row?  If somebody else did, there is nothing to go on from. */
static bool
is_ours(const FavReconciliation *work)
{
	const FavFilter *recent = &work->row.recent;

	return recent->nslices == 0 && recent->params.seed == work->row.attachment->params.seed;
}

/* False if this needs the lock of the row, which is not held. */
static bool
reconcile(FavReconciliation *work)
{
	FavReader  *middle;

	if (is_ours(work))
	{
		find_changes(work, false);
		if (recent_count(work) > FAV_RECENT_MAX)
			find_changes(work, true);
		if (recent_count(work) <= FAV_RECENT_MAX)
			return change_recent(work);
		middle = fav_open_level(&work->row.middle);
		if (recent_count(work) + (middle == NULL ? 0 : fav_middle_count(&middle->filter)) <=
			middle_capacity(work))
			return push(work);
		if (!work->row.is_locked)
			return false;
		keep_tombstones(work, &work->row.recent);
		if (middle != NULL)
		{
			fav_reader_expect(middle, UINT32_MAX);
			keep_tombstones(work, &middle->filter);
		}
		fav_sort_hashes(&work->absent);
		subtract(&work->absent, &work->present);
	}
	if (work->row.is_locked)
		rebuild(work);
	return work->row.is_locked;
}

/*
 * Begin to reconcile a key.  NULL if there is nothing left to do: it had no filter and has one
 * now, fresh from the source.  As the owner; what it takes is in the current memory context.
 */
FavReconciliation *
fav_open_key(FavAttachment *attachment, Datum filter_key, FavKnown known)
{
	FavReconciliation *opened = palloc0(sizeof(FavReconciliation));

	opened->row.attachment = attachment;
	opened->row.key = filter_key;
	opened->known = known;
	opened->row.is_locked = known == FAV_UNKNOWN;
	return open_row(opened) ? opened : NULL;
}

/* Make the filter of the key agree with the source for the elements that were touched. */
void
fav_reconcile_key(FavReconciliation *work)
{
	look_up(work);
	fav_sort_hashes(&work->present);
	fav_sort_hashes(&work->absent);

	/* Two elements may share a hash.  Then the one that is there decides. */
	subtract(&work->absent, &work->present);
	if (reconcile(work))
		return;
	work->row.is_locked = true;
	if (open_row(work))
		(void) reconcile(work);
}

/* Build a filter anew from the source.  As the owner. */
void
fav_rebuild_key(FavAttachment *attachment, Datum filter_key)
{
	FavReconciliation work = {
		.row = {.attachment = attachment,.key = filter_key,.is_locked = true,.is_built_anew = true}
	};

	if (read_or_insert(&work.row))
		rebuild(&work);
}
