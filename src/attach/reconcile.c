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
 * Of all touched elements of a key the hashes are kept, 8 bytes each.  That is no more than
 * building the key's base takes.
 */
#include "attach/build.h"
#include "attach/queries.h"
#include "attach/reconcile.h"
#include "attach/rows.h"

#include "core/levels.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Millions of hashes take a while. */
#define ST_SORT			sort_hashes
#define ST_ELEMENT_TYPE uint64_t
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * A row that is neither there nor can be inserted is one that somebody else has inserted
 * and removed again.  That does not go on for long.
 */
#define INSERT_TRIES		10

/* So many elements, or so many bytes of them, are looked up at once. */
#define LOOK_UP_BATCH		8192
#define LOOK_UP_BATCH_BYTES (8 * 1024 * 1024)

/* A key that is being reconciled. */
struct FavKey
{
	FavRow		row;
	FavKnown	known;			/* of its touched rows */

	/* Its touched rows, by their hashes: those in the source, and the others. */
	FavHashes		present;
	FavHashes		absent;

	/* Elements that are yet to be looked up, and the key that they belong to. */
	MemoryContext batch;
	Datum		row_key;
	Datum	   *elements;
	int			nelements;
	int			allocated;

	/* What the levels do not tell right: these come, and those go. */
	FavHashes		add;
	FavHashes		exclude;
};

/* In a loop over the elements of a key, which may have millions. */
static void
check_for_interrupts(size_t i)
{
	if (i % FAV_INTERRUPT_EVERY == 0)
		CHECK_FOR_INTERRUPTS();
}

/*
 * Hashes
 */

void
fav_append_hash(FavHashes *hashes, uint64_t hash)
{
	if (hashes->count == hashes->allocated)
	{
		hashes->allocated = Max(16, 2 * hashes->allocated);
		hashes->values = hashes->values == NULL ?
			palloc(hashes->allocated * sizeof(uint64_t)) :
			repalloc_huge(hashes->values, hashes->allocated * sizeof(uint64_t));
	}
	hashes->values[hashes->count++] = hash;
}

int
fav_compare_hashes(const void *a, const void *b)
{
	uint64_t	first = *(const uint64_t *) a;
	uint64_t	second = *(const uint64_t *) b;

	return (first > second) - (first < second);
}

/* Sort them, and leave out repetitions. */
void
fav_sort_hashes(FavHashes *hashes)
{
	size_t		unique = 0;
	size_t		i;

	if (hashes->count < 2)
		return;
	sort_hashes(hashes->values, hashes->count);
	for (i = 0; i < hashes->count; i++)
		if (unique == 0 || hashes->values[i] != hashes->values[unique - 1])
			hashes->values[unique++] = hashes->values[i];
	hashes->count = unique;
}

static bool
includes(const FavHashes *hashes, uint64_t hash)
{
	return hashes->count > 0 && bsearch(&hash, hashes->values, hashes->count, sizeof(uint64_t),
										fav_compare_hashes) != NULL;
}

/* Remove from sorted hashes those that others include. */
static void
subtract(FavHashes *hashes, const FavHashes *others)
{
	size_t		kept = 0;
	size_t		i;

	for (i = 0; i < hashes->count; i++)
	{
		check_for_interrupts(i);
		if (!includes(others, hashes->values[i]))
			hashes->values[kept++] = hashes->values[i];
	}
	hashes->count = kept;
}

/*
 * Rows
 */

/* The first filter of a key, from the source; false if somebody else was faster. */
static bool
insert_row(FavRow *row)
{
	FavWritten	levels = {0};

	fav_build_key(row->attachment, row->key, &levels.base, &levels.recent);
	return fav_insert_row(row, &levels);
}

/* Read the row; false if there was none, and now is one, fresh from the source. */
static bool
read_or_insert(FavKey *key)
{
	int			tries;

	for (tries = 0; tries < INSERT_TRIES; tries++)
	{
		if (fav_read_row(&key->row))
			return true;
		if (insert_row(&key->row))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	fav_raise_not_written(key->row.attachment);
}

/*
 * Read the row, of a key without one after writing it.  False if nothing is left to do: the row
 * is fresh from the source, and all touched elements are there.
 */
static bool
open_row(FavKey *key)
{
	if (read_or_insert(key))
		return true;
	if (key->known == FAV_ALL_PRESENT)
		return false;
	if (!fav_read_row(&key->row))
		fav_raise_not_written(key->row.attachment);
	return true;
}

/*
 * Which touched elements are there
 */

/*
 * Look a batch of elements up.  Without an index on pairs each element would read all pairs of
 * the key, unless there is but one.
 */
static void
look_up(FavKey *key)
{
	FavAttachment *attachment = key->row.attachment;
	const TypeCacheEntry *type = attachment->element_type;
	FavHashes	found = {NULL, 0, 0};
	FavQuery	query;
	Datum		values[2];
	uint64		nrows;
	uint64		i;

	if (key->nelements == 0)
		return;
	values[0] = key->row_key;
	values[1] = PointerGetDatum(construct_array(key->elements, key->nelements,
												attachment->element.type, type->typlen,
												type->typbyval, type->typalign));
	query = key->nelements == 1 || fav_has_index_on_pair(attachment) ? FAV_QUERY_PROBE :
		FAV_QUERY_LOOK_UP;
	nrows = fav_execute(attachment, query, values, NULL, SPI_OK_SELECT);
	for (i = 0; i < nrows; i++)
	{
		bool		isnull;
		Datum		element = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1,
											&isnull);

		fav_append_hash(&found, fav_hash_row(attachment, key->row_key, element));
	}
	SPI_freetuptable(SPI_tuptable);
	pfree(DatumGetPointer(values[1]));
	fav_sort_hashes(&found);
	for (i = 0; i < (uint64) key->nelements; i++)
	{
		uint64_t	hash = fav_hash_row(attachment, key->row_key, key->elements[i]);

		fav_append_hash(includes(&found, hash) ? &key->present : &key->absent, hash);
	}
	if (found.values != NULL)
		pfree(found.values);
	key->nelements = 0;
	MemoryContextReset(key->batch);
}

/*
 * A row of the filter was touched.  Rows come in the order of their keys, and those of one key
 * are looked up together.
 */
void
fav_touch_row(FavKey *key, Datum row_key, Datum element)
{
	const FavAttachment *attachment = key->row.attachment;
	const TypeCacheEntry *type = attachment->element_type;
	MemoryContext old;

	if (key->known != FAV_UNKNOWN)
	{
		fav_append_hash(key->known == FAV_ALL_PRESENT ? &key->present : &key->absent,
			   fav_hash_row(attachment, row_key, element));
		return;
	}
	if (attachment->share > 0 && key->nelements > 0 &&
		fav_integer(attachment->key.type, row_key) !=
		fav_integer(attachment->key.type, key->row_key))
		look_up(key);
	if (key->nelements == key->allocated)
	{
		key->allocated *= 2;
		key->elements = repalloc(key->elements, key->allocated * sizeof(Datum));
	}
	old = MemoryContextSwitchTo(key->batch);
	if (key->nelements == 0)
		key->row_key = datumCopy(row_key, attachment->key_type->typbyval,
								 attachment->key_type->typlen);
	key->elements[key->nelements++] = datumCopy(element, type->typbyval, type->typlen);
	MemoryContextSwitchTo(old);
	if (key->nelements == LOOK_UP_BATCH ||
		MemoryContextMemAllocated(key->batch, false) >= LOOK_UP_BATCH_BYTES)
		look_up(key);
}

/*
 * Changing levels
 */

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

/*
 * Find out what recent has to be told.  A present element that a level below reports need
 * not be added, but looking there costs more than adding it, so it is done on demand.  Of
 * the absent ones, those that a level below reports need a tombstone.
 */
static void
find_changes(FavKey *key, bool look_below)
{
	const FavFilter *recent = &key->row.recent;
	size_t		nprobes = key->absent.count + (look_below ? key->present.count : 0);
	size_t		i;

	if (nprobes > 1 && fav_row_base(&key->row) != NULL)
		fav_reader_expect(fav_row_base(&key->row), nprobes);
	key->add.count = key->exclude.count = 0;
	for (i = 0; i < key->present.count; i++)
	{
		uint64_t	hash = key->present.values[i];

		check_for_interrupts(i);
		if (!recent_contains(recent, hash) &&
			!(look_below && !recent_excludes(recent, hash) &&
			  fav_row_reports_below_recent(&key->row, hash)))
			fav_append_hash(&key->add, hash);
	}
	for (i = 0; i < key->absent.count; i++)
	{
		uint64_t	hash = key->absent.values[i];

		check_for_interrupts(i);
		if (recent_contains(recent, hash) ||
			(!recent_excludes(recent, hash) && fav_row_reports_below_recent(&key->row, hash)))
			fav_append_hash(&key->exclude, hash);
	}
}

/* How many hashes recent would have; a little pessimistic: one may replace another. */
static uint64
recent_count(const FavKey *key)
{
	const FavFilter *recent = &key->row.recent;

	return recent->nrecent + recent->ntombstones + key->add.count + key->exclude.count;
}

static uint64
middle_capacity(FavKey *key)
{
	FavReader  *base = fav_row_base(&key->row);

	return base == NULL ? 0 : fav_middle_capacity(base->filter.elements);
}

static uint64
middle_count(FavKey *key)
{
	FavReader  *middle = fav_row_middle(&key->row);

	return middle == NULL ? 0 : fav_middle_count(&middle->filter);
}

/* An editor of recent without what is absent.  Recent has no slices, so no bit is cleared. */
static void
open_recent(const FavKey *key, FavEditor *editor)
{
	fav_editor_open(editor, &key->row.recent);
	if (key->exclude.count > 0)
		fav_require(fav_editor_remove_many(editor, key->exclude.values, key->exclude.count));
}

static bool
change_recent(FavKey *key)
{
	FavWritten	levels = {0};
	FavEditor	editor;
	size_t		i;

	open_recent(key, &editor);
	for (i = 0; i < key->exclude.count; i++)
		if (fav_row_reports_below_recent(&key->row, key->exclude.values[i]))
			fav_require(fav_editor_exclude(&editor, key->exclude.values[i]));
	for (i = 0; i < key->add.count; i++)
		fav_require(fav_levels_add(&editor, key->add.values[i]));
	levels.recent = fav_finish_edit(&editor);
	return fav_write_row(&key->row, FAV_QUERY_SET_RECENT, &levels);
}

/*
 * Push recent and the changes into middle.  What is absent is excluded in the end: the slices
 * may report it by chance now, though they did not before.
 */
static bool
push(FavKey *key)
{
	FavEditor	recent;
	FavEditor	middle;
	FavReader  *old = fav_row_middle(&key->row);
	FavWritten	levels = {.recent = key->row.attachment->empty};
	const FavFilter *pushed;
	size_t		step = fav_scatter_step(key->add.count);
	size_t		i;

	if (old != NULL)
	{
		fav_reader_expect(old, UINT32_MAX);
		fav_editor_open(&middle, &old->filter);
	}
	else
		fav_new_level(key->row.attachment, FAV_MIDDLE_ERROR_SHARE, middle_capacity(key), &middle);

	open_recent(key, &recent);
	fav_require(fav_editor_finish(&recent, &pushed));
	fav_require(fav_levels_push(&middle, pushed));
	fav_editor_close(&recent);
	for (i = 0; i < key->add.count; i++)
	{
		check_for_interrupts(i);
		fav_require(fav_levels_add(&middle,
								   key->add.values[fav_scattered(i, step, key->add.count)]));
	}
	fav_require(fav_editor_flush(&middle));
	for (i = 0; i < key->absent.count; i++)
	{
		check_for_interrupts(i);
		if (fav_editor_contains(&middle, key->absent.values[i]) ||
			fav_row_reports_below_recent(&key->row, key->absent.values[i]))
			fav_require(fav_editor_exclude(&middle, key->absent.values[i]));
	}
	levels.middle = fav_finish_edit(&middle);
	return fav_write_row(&key->row, FAV_QUERY_SET_MIDDLE, &levels);
}

/*
 * Tombstones for absent elements that the new base reports by chance, so that deletes hold.
 * They go to recent or, if they are many, to middle.
 */
static void
exclude_again(FavKey *key, Datum base, Datum *recent, Datum *middle)
{
	FavFilter	filter;
	FavEditor	editor;
	bool		are_many;
	size_t		i;

	fav_open_value(&filter, base);
	key->exclude.count = 0;
	for (i = 0; i < key->absent.count; i++)
	{
		check_for_interrupts(i);
		if (fav_contains(&filter, key->absent.values[i]))
			fav_append_hash(&key->exclude, key->absent.values[i]);
	}
	if (key->exclude.count == 0)
		return;
	are_many = key->exclude.count > FAV_RECENT_MAX;
	if (are_many)
		fav_new_level(key->row.attachment, FAV_MIDDLE_ERROR_SHARE,
					  fav_middle_capacity(filter.elements), &editor);
	else
		fav_new_level(key->row.attachment, 1.0, 0, &editor);
	for (i = 0; i < key->exclude.count; i++)
	{
		check_for_interrupts(i);
		fav_require(fav_editor_exclude(&editor, key->exclude.values[i]));
	}
	*(are_many ? middle : recent) = fav_finish_edit(&editor);
}

/*
 * Elements with a tombstone stay absent when base is built anew, as far as it reports them,
 * unless recent has added them since.  One that is in the source was inserted by this
 * transaction and has yet to be reconciled, which drops the tombstone.
 */
static void
keep_tombstones(FavKey *key, const FavFilter *level)
{
	uint32_t	i;

	for (i = 0; i < level->ntombstones; i++)
	{
		uint64_t	hash = fav_load64(level->tombstones + 8 * (size_t) i);

		check_for_interrupts(i);
		if (!recent_contains(&key->row.recent, hash))
			fav_append_hash(&key->absent, hash);
	}
}

/* Build all levels anew from the source. */
static void
rebuild(FavKey *key)
{
	FavWritten	levels = {0};

	Assert(key->row.is_locked);
	fav_build_key(key->row.attachment, key->row.key, &levels.base, &levels.recent);
	if (levels.base != FAV_NO_LEVEL)
		exclude_again(key, levels.base, &levels.recent, &levels.middle);
	(void) fav_write_row(&key->row, FAV_QUERY_SET_BASE, &levels);
}

/* Did we write this row?  If somebody else did, there is nothing to go on from. */
static bool
is_ours(const FavKey *key)
{
	const FavFilter *recent = &key->row.recent;

	return recent->nslices == 0 && recent->params.seed == key->row.attachment->params.seed;
}

/* False if this takes a lock, and there is none. */
static bool
reconcile(FavKey *key)
{
	FavReader  *middle;

	if (is_ours(key))
	{
		find_changes(key, false);
		if (recent_count(key) > FAV_RECENT_MAX)
			find_changes(key, true);
		if (recent_count(key) <= FAV_RECENT_MAX)
			return change_recent(key);
		if (recent_count(key) + middle_count(key) <= middle_capacity(key))
			return push(key);
		if (!key->row.is_locked)
			return false;
		keep_tombstones(key, &key->row.recent);
		middle = fav_row_middle(&key->row);
		if (middle != NULL)
		{
			fav_reader_expect(middle, UINT32_MAX);
			keep_tombstones(key, &middle->filter);
		}
		fav_sort_hashes(&key->absent);
		subtract(&key->absent, &key->present);
	}
	if (key->row.is_locked)
		rebuild(key);
	return key->row.is_locked;
}

/*
 * Begin to reconcile a key.  NULL if there is nothing left to do: it had no filter and has one
 * now, fresh from the source.  As the owner; what it takes is in the current memory context.
 */
FavKey *
fav_open_key(FavAttachment *attachment, Datum filter_key, FavKnown known)
{
	FavKey	   *opened = palloc0(sizeof(FavKey));

	opened->row.attachment = attachment;
	opened->row.key = filter_key;
	opened->known = known;
	opened->row.is_locked = known == FAV_UNKNOWN;
	if (!open_row(opened))
		return NULL;
	if (known == FAV_UNKNOWN)
	{
		opened->allocated = 16;
		opened->elements = palloc(opened->allocated * sizeof(Datum));
		opened->batch = AllocSetContextCreate(CurrentMemoryContext, "fav elements",
											  ALLOCSET_DEFAULT_SIZES);
	}
	return opened;
}

/* Make the filter of the key agree with the source for the elements that were touched. */
void
fav_reconcile_key(FavKey *key)
{
	look_up(key);
	fav_sort_hashes(&key->present);
	fav_sort_hashes(&key->absent);

	/* Two elements may share a hash.  Then the one that is there decides. */
	subtract(&key->absent, &key->present);
	if (reconcile(key))
		return;
	key->row.is_locked = true;
	if (open_row(key))
		(void) reconcile(key);
}

/* Build a filter anew from the source.  As the owner. */
void
fav_rebuild_key(FavAttachment *attachment, Datum filter_key)
{
	FavKey	   *key = palloc0(sizeof(FavKey));

	key->row.attachment = attachment;
	key->row.key = filter_key;
	key->row.is_locked = true;
	key->row.is_built_anew = true;
	if (read_or_insert(key))
		rebuild(key);
}
