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
 */
#include "attach.h"

#include "access/xact.h"
#include "core/levels.h"
#include "miscadmin.h"
#include "toast_cache.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/*
 * A row that is neither there nor can be inserted is one that somebody else has inserted
 * and removed again.  That does not go on for long.
 */
#define INSERT_TRIES		10

/* The row of a key while it is being reconciled. */
typedef struct KeyRow
{
	FavAttachment *attachment;
	Datum		key;
	bool		is_locked;
	ItemPointerData version_tid;	/* where the version is that was read */
	TransactionId version_xmin; /* who has written it */
	FavFilter	recent;
	FavReader  *base;			/* NULL: none */
	FavReader  *middle;
	FavReader	local_base;		/* for values that are not out of line */
	FavReader	local_middle;
	FavCache	base_cache;		/* for those that are */
	FavCache	middle_cache;
} KeyRow;

/* The touched elements, by their hashes. */
typedef struct Touched
{
	uint64_t   *present;		/* in the source */
	int			npresent;
	uint64_t   *absent;
	int			nabsent;		/* so many of the first need a change, */
	int			nall_absent;	/* of so many */
} Touched;

/*
 * Rows
 */

static FavReader *
open_level(HeapTuple tuple, TupleDesc descriptor, int column, FavCache *cache, FavReader *local)
{
	bool		isnull;
	Datum		value = SPI_getbinval(tuple, descriptor, column, &isnull);

	if (isnull)
		return NULL;
	memset(cache, 0, sizeof(*cache));
	return fav_cache_find(cache, CurrentMemoryContext, (struct varlena *) DatumGetPointer(value), local);
}

/* Read the row of the key, locked or not, and open its levels; false if there is none. */
static bool
read_row(KeyRow *row)
{
	FavQuery	query = row->is_locked ? FAV_QUERY_LOCK : FAV_QUERY_READ;
	HeapTuple	tuple;
	TupleDesc	descriptor;
	struct varlena *recent;
	FavProblem	problem;
	bool		isnull;

	if (fav_spi_execute(fav_attachment_plan(row->attachment, query), &row->key, NULL, SPI_OK_SELECT) == 0)
	{
		SPI_freetuptable(SPI_tuptable);
		return false;
	}
	tuple = heap_copytuple(SPI_tuptable->vals[0]);
	descriptor = SPI_tuptable->tupdesc;
	row->base = open_level(tuple, descriptor, 1, &row->base_cache, &row->local_base);
	row->middle = open_level(tuple, descriptor, 2, &row->middle_cache, &row->local_middle);
	row->version_tid = *(ItemPointer) DatumGetPointer(SPI_getbinval(tuple, descriptor, 4, &isnull));
	row->version_xmin = DatumGetTransactionId(SPI_getbinval(tuple, descriptor, 5, &isnull));
	recent = (struct varlena *) DatumGetPointer(SPI_getbinval(tuple, descriptor, 3, &isnull));
	recent = (struct varlena *) PG_DETOAST_DATUM_PACKED(isnull ? row->attachment->empty : PointerGetDatum(recent));
	if (fav_open(&row->recent, (uint8_t *) VARDATA_ANY(recent), VARSIZE_ANY_EXHDR(recent),
				 VARSIZE_ANY_EXHDR(recent), &problem) != FAV_OK)
		fav_raise_corrupted(&problem);
	row->recent.params.kind = row->attachment->kind;
	SPI_freetuptable(SPI_tuptable);
	return true;
}

pg_noreturn static void
raise_not_written(const FavAttachment *attachment)
{
	ereport(ERROR,
			(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
			 errmsg("the filter of a key was not written to table \"%s\"", get_rel_name(attachment->levels)),
			 errdetail("A trigger of that table prevented it, and the filter would not be true any more.")));
	pg_unreachable();
}

/*
 * Write recent and, as far as the query has them, middle and base.  False if somebody else
 * has written the row since it was read, which cannot be if it is locked.
 */
static bool
write_row(KeyRow *row, FavQuery query, Datum recent, Datum middle, Datum base)
{
	Datum		values[6];
	char		nulls[7] = "      ";

	values[0] = row->key;
	values[1] = PointerGetDatum(&row->version_tid);
	values[2] = TransactionIdGetDatum(row->version_xmin);
	values[3] = recent;
	values[4] = middle;
	values[5] = base;
	if (middle == FAV_NO_LEVEL)
		nulls[4] = 'n';
	if (base == FAV_NO_LEVEL)
		nulls[5] = 'n';
	if (fav_spi_execute(fav_attachment_plan(row->attachment, query), values, nulls, SPI_OK_UPDATE) > 0)
		return true;
	if (row->is_locked)
		raise_not_written(row->attachment);
	return false;
}

/* The first filter of a key; false if somebody else was faster. */
static bool
insert_row(KeyRow *row)
{
	Datum		values[3];
	char		nulls[4] = "   ";

	values[0] = row->key;
	fav_build_key(row->attachment, row->key, row->attachment->params.seed, &values[1], &values[2]);
	if (values[1] == FAV_NO_LEVEL)
		nulls[1] = 'n';
	return fav_spi_execute(fav_attachment_plan(row->attachment, FAV_QUERY_INSERT), values, nulls, SPI_OK_INSERT) > 0;
}

/*
 * Which touched elements are there
 */

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	first = *(const uint64_t *) a;
	uint64_t	second = *(const uint64_t *) b;

	return (first > second) - (first < second);
}

static size_t
sort_hashes(uint64_t *hashes, size_t count)
{
	size_t		unique = 0;
	size_t		i;

	if (count > 1)
		qsort(hashes, count, sizeof(uint64_t), compare_hashes);
	for (i = 0; i < count; i++)
		if (unique == 0 || hashes[i] != hashes[unique - 1])
			hashes[unique++] = hashes[i];
	return unique;
}

/*
 * The hashes of those elements that the source has.  The query may find more, where the
 * equality of elements is not that of their bytes.
 */
static uint64_t *
look_up(KeyRow *row, const Datum *elements, int count, size_t *nfound)
{
	const FavAttachment *attachment = row->attachment;
	Datum		values[2];
	uint64_t   *found;
	uint64		nrows;
	uint64		i;

	values[0] = row->key;
	values[1] = PointerGetDatum(construct_array((Datum *) elements, count, attachment->element.type,
												attachment->element_length, attachment->element_by_value,
												attachment->element_align));
	nrows = fav_spi_read_source(row->attachment, FAV_QUERY_LOOK_UP, values);
	found = MemoryContextAllocHuge(CurrentMemoryContext, (nrows + 1) * sizeof(uint64_t));
	for (i = 0; i < nrows; i++)
	{
		bool		isnull;
		Datum		element = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);

		found[i] = fav_hash_element(attachment, element, row->recent.params.seed);
	}
	SPI_freetuptable(SPI_tuptable);
	pfree(DatumGetPointer(values[1]));
	*nfound = sort_hashes(found, nrows);
	return found;
}

static void
find_present(KeyRow *row, const Datum *elements, int count, FavKnown known, Touched *touched)
{
	uint64_t   *hashes = palloc(count * sizeof(uint64_t));
	uint64_t   *found;
	size_t		nfound;
	int			unique;
	int			i;

	for (i = 0; i < count; i++)
		hashes[i] = fav_hash_element(row->attachment, elements[i], row->recent.params.seed);
	unique = (int) sort_hashes(hashes, (size_t) count);
	touched->present = touched->absent = hashes;
	touched->npresent = known == FAV_ALL_PRESENT ? unique : 0;
	touched->nabsent = touched->nall_absent = known == FAV_ALL_ABSENT ? unique : 0;
	if (known != FAV_UNKNOWN)
		return;

	found = look_up(row, elements, count, &nfound);
	touched->absent = palloc(unique * sizeof(uint64_t));
	for (i = 0; i < unique; i++)
	{
		if (nfound > 0 && bsearch(&hashes[i], found, nfound, sizeof(uint64_t), compare_hashes) != NULL)
			touched->present[touched->npresent++] = hashes[i];
		else
			touched->absent[touched->nabsent++] = hashes[i];
	}
	touched->nall_absent = touched->nabsent;
	pfree(found);
}

/*
 * Changing levels
 */

/* Does middle or base report the hash? */
static bool
is_below_recent(KeyRow *row, uint64_t hash)
{
	if (row->middle != NULL)
	{
		if (fav_reader_contains(row->middle, hash))
			return true;
		if (fav_reader_excludes(row->middle, hash))
			return false;
	}
	return row->base != NULL && fav_reader_contains(row->base, hash);
}

static bool
recent_excludes(const FavFilter *recent, uint64_t hash)
{
	return fav_has_tombstone(recent, hash);
}

static bool
recent_contains(const FavFilter *recent, uint64_t hash)
{
	return fav_recent_contains(recent->recent, recent->nrecent, hash);
}

/* Leave out what recent says already.  Of the absent, only what a level below reports needs a tombstone. */
static void
leave_out_what_is_said(KeyRow *row, Touched *touched)
{
	const FavFilter *recent = &row->recent;
	int			kept = 0;
	int			i;

	for (i = 0; i < touched->npresent; i++)
		if (!recent_contains(recent, touched->present[i]))
			touched->present[kept++] = touched->present[i];
	touched->npresent = kept;
	kept = 0;
	for (i = 0; i < touched->nabsent; i++)
	{
		uint64_t	hash = touched->absent[i];

		if (recent_contains(recent, hash) || (!recent_excludes(recent, hash) && is_below_recent(row, hash)))
		{
			touched->absent[i] = touched->absent[kept];
			touched->absent[kept++] = hash;
		}
	}
	touched->nabsent = kept;
}

/* Leave out what middle or base reports already. */
static void
leave_out_what_is_reported(KeyRow *row, Touched *touched)
{
	int			kept = 0;
	int			i;

	if (row->base != NULL)
		fav_reader_expect(row->base, touched->npresent);
	for (i = 0; i < touched->npresent; i++)
		if (recent_excludes(&row->recent, touched->present[i]) || !is_below_recent(row, touched->present[i]))
			touched->present[kept++] = touched->present[i];
	touched->npresent = kept;
}

/* Do the changes fit recent?  A little pessimistic: one may take the place of another. */
static bool
fits_recent(const KeyRow *row, const Touched *touched)
{
	return row->recent.nrecent + row->recent.ntombstones + (uint32_t) touched->npresent +
		(uint32_t) touched->nabsent <= FAV_RECENT_MAX;
}

/* Add what is present; exclude what is absent and would be reported by a level below. */
static void
change(KeyRow *row, FavEditor *editor, const Touched *touched)
{
	int			i;

	for (i = 0; i < touched->nabsent; i++)
		if (is_below_recent(row, touched->absent[i]))
			fav_require(fav_editor_exclude(editor, touched->absent[i]));
	for (i = 0; i < touched->npresent; i++)
		fav_require(fav_levels_add(editor, touched->present[i]));
}

/* An editor of recent without what is absent.  Recent has no slices, so no bit is cleared. */
static void
open_recent(const KeyRow *row, const Touched *touched, FavEditor *editor)
{
	fav_editor_open(editor, &row->recent);
	fav_require(fav_editor_remove_many(editor, touched->absent, touched->nabsent));
}

static bool
change_recent(KeyRow *row, const Touched *touched)
{
	FavEditor	editor;

	open_recent(row, touched, &editor);
	change(row, &editor, touched);
	return write_row(row, FAV_QUERY_SET_RECENT, fav_finish_edit(&editor), FAV_NO_LEVEL, FAV_NO_LEVEL);
}

/* An empty recent with the seed of this row. */
static Datum
empty_recent(const KeyRow *row)
{
	FavEditor	editor;

	fav_editor_new(&editor, &row->recent.params);
	return fav_finish_edit(&editor);
}

static uint64
middle_capacity(const KeyRow *row)
{
	return row->base == NULL ? 0 : fav_middle_capacity(row->base->filter.elements);
}

/* Do recent and the changes fit middle? */
static bool
fits_middle(const KeyRow *row, const Touched *touched)
{
	uint64		count = row->recent.nrecent + row->recent.ntombstones + touched->npresent + touched->nabsent;

	if (row->middle != NULL)
		count += fav_middle_count(&row->middle->filter);
	return count <= middle_capacity(row);
}

/* Push recent and the changes into middle. */
static bool
push(KeyRow *row, const Touched *touched)
{
	FavEditor	recent;
	FavEditor	middle;
	const FavFilter *pushed;

	if (row->middle != NULL)
	{
		fav_reader_expect(row->middle, UINT32_MAX);
		fav_editor_open(&middle, &row->middle->filter);
	}
	else
	{
		FavParams	params = row->recent.params;

		params.capacity = middle_capacity(row);
		params.error_rate *= FAV_MIDDLE_ERROR_SHARE;
		fav_editor_new(&middle, &params);
	}

	open_recent(row, touched, &recent);
	fav_require(fav_editor_finish(&recent, &pushed));
	fav_require(fav_levels_push(&middle, pushed));
	change(row, &middle, touched);
	fav_require(fav_editor_flush(&middle));
	fav_editor_close(&recent);
	return write_row(row, FAV_QUERY_SET_MIDDLE, empty_recent(row), fav_finish_edit(&middle), FAV_NO_LEVEL);
}

/*
 * Tombstones for elements that were just removed and that the new base reports by chance, so
 * that a delete holds.  They go to recent or, if they are many, to middle.
 */
static void
exclude_again(const KeyRow *row, const Touched *touched, Datum base, Datum *recent, Datum *middle)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(base);
	FavParams	params = row->recent.params;
	FavFilter	filter;
	FavProblem	problem;
	FavEditor	editor;
	int			count = 0;
	int			i;

	if (fav_open(&filter, (uint8_t *) VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), VARSIZE_ANY_EXHDR(value),
				 &problem) != FAV_OK)
		fav_raise_corrupted(&problem);
	for (i = 0; i < touched->nall_absent; i++)
		if (fav_contains(&filter, touched->absent[i]))
			touched->absent[count++] = touched->absent[i];
	if (count == 0)
		return;
	if (count > FAV_RECENT_MAX)
	{
		params.capacity = fav_middle_capacity(filter.elements);
		params.error_rate *= FAV_MIDDLE_ERROR_SHARE;
	}
	fav_editor_new(&editor, &params);
	fav_require(fav_editor_exclude_many(&editor, touched->absent, (size_t) count));
	*(count > FAV_RECENT_MAX ? middle : recent) = fav_finish_edit(&editor);
}

/* Build all levels anew from the source.  `touched` may be NULL. */
static void
rebuild_row(KeyRow *row, const Touched *touched)
{
	Datum		base;
	Datum		middle = FAV_NO_LEVEL;
	Datum		recent;

	Assert(row->is_locked);
	fav_build_key(row->attachment, row->key, row->recent.params.seed, &base, &recent);
	if (base != FAV_NO_LEVEL && touched != NULL)
		exclude_again(row, touched, base, &recent, &middle);
	(void) write_row(row, FAV_QUERY_SET_BASE, recent, middle, base);
}

/* The row of the key; NULL if there was none, and now is one, fresh from the source. */
static KeyRow *
read_or_insert(FavAttachment *attachment, Datum key, bool lock)
{
	KeyRow	   *row = palloc(sizeof(KeyRow));
	int			tries;

	row->attachment = attachment;
	row->key = key;
	row->is_locked = lock;
	for (tries = 0; tries < INSERT_TRIES; tries++)
	{
		if (read_row(row))
			return row;
		if (insert_row(row))
			return NULL;
		CHECK_FOR_INTERRUPTS();
	}
	raise_not_written(attachment);
}

/* False if this takes a lock, and there is none. */
static bool
reconcile_row(KeyRow *row, const Datum *elements, int count, FavKnown known)
{
	Touched		touched;

	find_present(row, elements, count, known, &touched);

	/* If somebody else has written the levels table, there is nothing to go on from. */
	if (row->recent.nslices == 0)
	{
		leave_out_what_is_said(row, &touched);
		if (!fits_recent(row, &touched))
			leave_out_what_is_reported(row, &touched);
		if (fits_recent(row, &touched))
			return change_recent(row, &touched);
		if (fits_middle(row, &touched))
			return push(row, &touched);
	}
	if (row->is_locked)
		rebuild_row(row, &touched);
	return row->is_locked;
}

/*
 * Make the filter of a key agree with the source for these elements.  As the owner, with
 * SPI connected.
 */
void
fav_reconcile_key(FavAttachment *attachment, Datum key, const Datum *elements, int count, FavKnown known)
{
	KeyRow	   *row = read_or_insert(attachment, key, known == FAV_UNKNOWN);

	if (row == NULL || reconcile_row(row, elements, count, known))
		return;
	row = read_or_insert(attachment, key, true);
	if (row != NULL)
		(void) reconcile_row(row, elements, count, known);
}

/* Build the filter of a key anew from the source.  As above. */
void
fav_rebuild_key(FavAttachment *attachment, Datum key)
{
	KeyRow	   *row = read_or_insert(attachment, key, true);

	if (row != NULL)
		rebuild_row(row, NULL);
}
