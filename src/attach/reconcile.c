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
#include "attach.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "core/levels.h"
#include "miscadmin.h"
#include "toast_cache.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * A row that is neither there nor can be inserted is one that somebody else has inserted
 * and removed again.  That does not go on for long.
 */
#define INSERT_TRIES		10

/* So many elements, or so many bytes of them, are looked up at once. */
#define LOOK_UP_BATCH		8192
#define LOOK_UP_BATCH_BYTES (8 * 1024 * 1024)

/* A list of hashes that grows. */
typedef struct Hashes
{
	uint64_t   *values;
	size_t		count;
	size_t		allocated;
} Hashes;

/* A key that is being reconciled. */
struct FavKey
{
	FavAttachment *attachment;
	Datum		key;			/* of the filter */
	FavKnown	known;			/* of its touched rows */
	bool		is_built_anew;	/* whatever its levels are: they may be damaged */

	/* Its row. */
	bool		is_locked;
	ItemPointerData tid;		/* where the version is that was read, */
	TransactionId xmin;			/* and who has written it */
	FavFilter	recent;
	FavReader  *base;			/* NULL: none */
	FavReader  *middle;
	FavReader	local_base;		/* for values that are not out of line */
	FavReader	local_middle;
	FavCache	base_cache;		/* for those that are */
	FavCache	middle_cache;

	/* Its touched rows, by their hashes: those in the source, and the others. */
	Hashes		present;
	Hashes		absent;

	/* Elements that are yet to be looked up, and the key that they belong to. */
	MemoryContext batch;
	Datum		row_key;
	Datum	   *elements;
	int			nelements;
	int			allocated;

	/* What the levels do not tell right: these come, and those go. */
	Hashes		add;
	Hashes		exclude;
};

/*
 * Hashes
 */

static void
append(Hashes *hashes, uint64_t hash)
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

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	first = *(const uint64_t *) a;
	uint64_t	second = *(const uint64_t *) b;

	return (first > second) - (first < second);
}

/* Sort them, and leave out repetitions. */
static void
sort_hashes(Hashes *hashes)
{
	size_t		unique = 0;
	size_t		i;

	if (hashes->count < 2)
		return;
	qsort(hashes->values, hashes->count, sizeof(uint64_t), compare_hashes);
	for (i = 0; i < hashes->count; i++)
		if (unique == 0 || hashes->values[i] != hashes->values[unique - 1])
			hashes->values[unique++] = hashes->values[i];
	hashes->count = unique;
}

static bool
includes(const Hashes *hashes, uint64_t hash)
{
	return hashes->count > 0 && bsearch(&hash, hashes->values, hashes->count, sizeof(uint64_t),
										compare_hashes) != NULL;
}

/* Remove from sorted hashes those that others include. */
static void
subtract(Hashes *hashes, const Hashes *others)
{
	size_t		kept = 0;
	size_t		i;

	for (i = 0; i < hashes->count; i++)
		if (!includes(others, hashes->values[i]))
			hashes->values[kept++] = hashes->values[i];
	hashes->count = kept;
}

/*
 * Rows
 */

static FavReader *
open_level(HeapTuple tuple, TupleDesc descriptor, int column, FavCache *cache, FavReader *local)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, column, descriptor, &isnull);

	if (isnull)
		return NULL;
	memset(cache, 0, sizeof(*cache));
	return fav_cache_find(cache, CurrentMemoryContext, (struct varlena *) DatumGetPointer(value),
						  local);
}

static void
open_value(FavFilter *filter, Datum value)
{
	struct varlena *bytes = (struct varlena *) PG_DETOAST_DATUM_PACKED(value);
	size_t		size = VARSIZE_ANY_EXHDR(bytes);
	FavProblem	problem;

	if (fav_open(filter, (uint8_t *) VARDATA_ANY(bytes), size, size, &problem) != FAV_OK)
		fav_raise_corrupted(&problem);
}

static void
open_levels(FavKey *key, HeapTuple tuple, TupleDesc descriptor)
{
	bool		isnull;
	Datum		recent = heap_getattr(tuple, FAV_LEVELS_RECENT, descriptor, &isnull);

	open_value(&key->recent, isnull ? key->attachment->empty : recent);
	key->recent.params.kind = key->attachment->kind;
	key->base = open_level(tuple, descriptor, FAV_LEVELS_BASE, &key->base_cache,
						   &key->local_base);
	key->middle = open_level(tuple, descriptor, FAV_LEVELS_MIDDLE, &key->middle_cache,
							 &key->local_middle);

	/* An empty level does not know its kind. */
	if (key->middle != NULL)
		key->middle->filter.params.kind = key->attachment->kind;
}

/* Read the row of the key, and lock it; false if there is none. */
static bool
lock_row(FavKey *key)
{
	bool		found = fav_execute(key->attachment, FAV_QUERY_LOCK, &key->key, NULL,
									SPI_OK_SELECT) > 0;

	if (found)
	{
		HeapTuple	tuple = heap_copytuple(SPI_tuptable->vals[0]);
		TupleDesc	descriptor = SPI_tuptable->tupdesc;
		bool		isnull;

		if (!key->is_built_anew)
			open_levels(key, tuple, descriptor);
		key->tid = *(ItemPointer) DatumGetPointer(heap_getattr(tuple, FAV_LEVELS_RECENT + 1,
															   descriptor, &isnull));
		key->xmin = DatumGetTransactionId(heap_getattr(tuple, FAV_LEVELS_RECENT + 2, descriptor,
													   &isnull));
	}
	SPI_freetuptable(SPI_tuptable);
	return found;
}

/*
 * Read the row of the key by the primary key of the table, in a snapshot as a query would;
 * false if there is none.  A query would take four times as long.
 */
static bool
fetch_row(FavKey *key, Relation levels)
{
	const FavAttachment *attachment = key->attachment;
	ScanKeyData scan_key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyEntryInitialize(&scan_key, 0, FAV_LEVELS_KEY, BTEqualStrategyNumber, InvalidOid,
						   attachment->key.collation,
						   get_opcode(attachment->filter_key_type->eq_opr), key->key);
	CommandCounterIncrement();
	PushCopiedSnapshot(GetTransactionSnapshot());
	UpdateActiveSnapshotCommandId();
	scan = systable_beginscan(levels, levels->rd_pkindex, true, GetActiveSnapshot(), 1,
							  &scan_key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		key->tid = tuple->t_self;
		key->xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
		open_levels(key, heap_copytuple(tuple), RelationGetDescr(levels));
	}
	systable_endscan(scan);
	PopActiveSnapshot();
	return HeapTupleIsValid(tuple);
}

/*
 * Read the row of the key, locked or not.  While a dump is restored, the table may be without
 * its primary key for a moment.
 */
static bool
read_row(FavKey *key)
{
	Relation	levels;
	bool		found;

	if (key->is_locked)
		return lock_row(key);
	levels = table_open(key->attachment->levels, RowExclusiveLock);
	list_free(RelationGetIndexList(levels));
	key->is_locked = !OidIsValid(levels->rd_pkindex);
	found = key->is_locked ? lock_row(key) : fetch_row(key, levels);
	table_close(levels, NoLock);
	return found;
}

pg_noreturn static void
raise_not_written(const FavAttachment *attachment)
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
 * Write recent and, as far as the query has them, middle and base.  False if somebody else
 * has written the row since it was read, which cannot be if it is locked.
 */
static bool
write_row(FavKey *key, FavQuery query, Datum recent, Datum middle, Datum base)
{
	Datum		values[6];
	char		nulls[7] = "      ";

	values[0] = key->key;
	values[1] = PointerGetDatum(&key->tid);
	values[2] = TransactionIdGetDatum(key->xmin);
	values[3] = recent;
	values[4] = middle;
	values[5] = base;
	if (middle == FAV_NO_LEVEL)
		nulls[4] = 'n';
	if (base == FAV_NO_LEVEL)
		nulls[5] = 'n';
	if (fav_execute(key->attachment, query, values, nulls, SPI_OK_UPDATE) > 0)
		return true;
	if (key->is_locked)
		raise_not_written(key->attachment);
	return false;
}

/* The first filter of a key; false if somebody else was faster. */
static bool
insert_row(FavKey *key)
{
	Datum		values[3];
	char		nulls[4] = "   ";

	values[0] = key->key;
	fav_build_key(key->attachment, key->key, &values[1], &values[2]);
	if (values[1] == FAV_NO_LEVEL)
		nulls[1] = 'n';
	return fav_execute(key->attachment, FAV_QUERY_INSERT, values, nulls, SPI_OK_INSERT) > 0;
}

/* Read the row; false if there was none, and now is one, fresh from the source. */
static bool
read_or_insert(FavKey *key)
{
	int			tries;

	for (tries = 0; tries < INSERT_TRIES; tries++)
	{
		if (read_row(key))
			return true;
		if (insert_row(key))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	raise_not_written(key->attachment);
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
	if (!read_row(key))
		raise_not_written(key->attachment);
	return true;
}

/*
 * Which touched elements are there
 */

/*
 * Look a batch of elements up.  The query may find more, where the equality of elements is
 * not that of their bytes.
 */
static void
look_up(FavKey *key)
{
	const FavAttachment *attachment = key->attachment;
	const TypeCacheEntry *type = attachment->element_type;
	Hashes		found = {NULL, 0, 0};
	Datum		values[2];
	uint64		nrows;
	uint64		i;

	if (key->nelements == 0)
		return;
	values[0] = key->row_key;
	values[1] = PointerGetDatum(construct_array(key->elements, key->nelements,
												attachment->element.type, type->typlen,
												type->typbyval, type->typalign));
	nrows = fav_execute(key->attachment, FAV_QUERY_LOOK_UP, values, NULL, SPI_OK_SELECT);
	for (i = 0; i < nrows; i++)
	{
		bool		isnull;
		Datum		element = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1,
											&isnull);

		append(&found, fav_hash_row(attachment, key->row_key, element));
	}
	SPI_freetuptable(SPI_tuptable);
	pfree(DatumGetPointer(values[1]));
	sort_hashes(&found);
	for (i = 0; i < (uint64) key->nelements; i++)
	{
		uint64_t	hash = fav_hash_row(attachment, key->row_key, key->elements[i]);

		append(includes(&found, hash) ? &key->present : &key->absent, hash);
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
	const FavAttachment *attachment = key->attachment;
	const TypeCacheEntry *type = attachment->element_type;
	MemoryContext old;

	if (key->known != FAV_UNKNOWN)
	{
		append(key->known == FAV_ALL_PRESENT ? &key->present : &key->absent,
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

/* Does middle or base report the hash? */
static bool
is_below_recent(const FavKey *key, uint64_t hash)
{
	if (key->middle != NULL)
	{
		if (fav_reader_contains(key->middle, hash))
			return true;
		if (fav_reader_excludes(key->middle, hash))
			return false;
	}
	return key->base != NULL && fav_reader_contains(key->base, hash);
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

/*
 * Find out what recent has to be told.  A present element that a level below reports need
 * not be added, but looking there costs more than adding it, so it is done on demand.  Of
 * the absent ones, those that a level below reports need a tombstone.
 */
static void
find_changes(FavKey *key, bool look_below)
{
	const FavFilter *recent = &key->recent;
	size_t		nprobes = key->absent.count + (look_below ? key->present.count : 0);
	size_t		i;

	if (key->base != NULL && nprobes > 1)
		fav_reader_expect(key->base, nprobes);
	key->add.count = key->exclude.count = 0;
	for (i = 0; i < key->present.count; i++)
	{
		uint64_t	hash = key->present.values[i];

		if (!recent_contains(recent, hash) &&
			!(look_below && !recent_excludes(recent, hash) && is_below_recent(key, hash)))
			append(&key->add, hash);
	}
	for (i = 0; i < key->absent.count; i++)
	{
		uint64_t	hash = key->absent.values[i];

		if (recent_contains(recent, hash) ||
			(!recent_excludes(recent, hash) && is_below_recent(key, hash)))
			append(&key->exclude, hash);
	}
}

/* How many hashes recent would have; a little pessimistic: one may replace another. */
static uint64
recent_count(const FavKey *key)
{
	return key->recent.nrecent + key->recent.ntombstones + key->add.count + key->exclude.count;
}

static uint64
middle_capacity(const FavKey *key)
{
	return key->base == NULL ? 0 : fav_middle_capacity(key->base->filter.elements);
}

static uint64
middle_count(const FavKey *key)
{
	return key->middle == NULL ? 0 : fav_middle_count(&key->middle->filter);
}

/* An editor of recent without what is absent.  Recent has no slices, so no bit is cleared. */
static void
open_recent(const FavKey *key, FavEditor *editor)
{
	fav_editor_open(editor, &key->recent);
	if (key->exclude.count > 0)
		fav_require(fav_editor_remove_many(editor, key->exclude.values, key->exclude.count));
}

static bool
change_recent(FavKey *key)
{
	FavEditor	editor;
	size_t		i;

	open_recent(key, &editor);
	for (i = 0; i < key->exclude.count; i++)
		if (is_below_recent(key, key->exclude.values[i]))
			fav_require(fav_editor_exclude(&editor, key->exclude.values[i]));
	for (i = 0; i < key->add.count; i++)
		fav_require(fav_levels_add(&editor, key->add.values[i]));
	return write_row(key, FAV_QUERY_SET_RECENT, fav_finish_edit(&editor), FAV_NO_LEVEL,
					 FAV_NO_LEVEL);
}

/* A new recent or, if it has a capacity, a new middle. */
static void
new_level(const FavKey *key, uint64 capacity, FavEditor *editor)
{
	FavParams	params = key->attachment->params;

	params.kind = key->attachment->kind;
	if (capacity > 0)
	{
		params.capacity = capacity;
		params.error_rate *= FAV_MIDDLE_ERROR_SHARE;
	}
	fav_editor_new(editor, &params);
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
	const FavFilter *pushed;
	size_t		i;

	if (key->middle != NULL)
	{
		fav_reader_expect(key->middle, UINT32_MAX);
		fav_editor_open(&middle, &key->middle->filter);
	}
	else
		new_level(key, middle_capacity(key), &middle);

	open_recent(key, &recent);
	fav_require(fav_editor_finish(&recent, &pushed));
	fav_require(fav_levels_push(&middle, pushed));
	fav_editor_close(&recent);
	for (i = 0; i < key->add.count; i++)
		fav_require(fav_levels_add(&middle, key->add.values[i]));
	fav_require(fav_editor_flush(&middle));
	for (i = 0; i < key->absent.count; i++)
		if (fav_editor_contains(&middle, key->absent.values[i]) ||
			is_below_recent(key, key->absent.values[i]))
			fav_require(fav_editor_exclude(&middle, key->absent.values[i]));
	return write_row(key, FAV_QUERY_SET_MIDDLE, key->attachment->empty, fav_finish_edit(&middle),
					 FAV_NO_LEVEL);
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

	open_value(&filter, base);
	key->exclude.count = 0;
	for (i = 0; i < key->absent.count; i++)
		if (fav_contains(&filter, key->absent.values[i]))
			append(&key->exclude, key->absent.values[i]);
	if (key->exclude.count == 0)
		return;
	are_many = key->exclude.count > FAV_RECENT_MAX;
	new_level(key, are_many ? fav_middle_capacity(filter.elements) : 0, &editor);
	fav_require(fav_editor_exclude_many(&editor, key->exclude.values, key->exclude.count));
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

		if (!recent_contains(&key->recent, hash))
			append(&key->absent, hash);
	}
}

/* Build all levels anew from the source. */
static void
rebuild(FavKey *key)
{
	Datum		base;
	Datum		middle = FAV_NO_LEVEL;
	Datum		recent;

	Assert(key->is_locked);
	fav_build_key(key->attachment, key->key, &base, &recent);
	if (base != FAV_NO_LEVEL)
		exclude_again(key, base, &recent, &middle);
	(void) write_row(key, FAV_QUERY_SET_BASE, recent, middle, base);
}

/* Did we write this row?  If somebody else did, there is nothing to go on from. */
static bool
is_ours(const FavKey *key)
{
	return key->recent.nslices == 0 && key->recent.params.seed == key->attachment->params.seed;
}

/* False if this takes a lock, and there is none. */
static bool
reconcile(FavKey *key)
{
	if (is_ours(key))
	{
		find_changes(key, false);
		if (recent_count(key) > FAV_RECENT_MAX)
			find_changes(key, true);
		if (recent_count(key) <= FAV_RECENT_MAX)
			return change_recent(key);
		if (recent_count(key) + middle_count(key) <= middle_capacity(key))
			return push(key);
		if (!key->is_locked)
			return false;
		keep_tombstones(key, &key->recent);
		if (key->middle != NULL)
		{
			fav_reader_expect(key->middle, UINT32_MAX);
			keep_tombstones(key, &key->middle->filter);
		}
		sort_hashes(&key->absent);
		subtract(&key->absent, &key->present);
	}
	if (key->is_locked)
		rebuild(key);
	return key->is_locked;
}

/*
 * Begin to reconcile a key.  NULL if there is nothing left to do: it had no filter and has one
 * now, fresh from the source.  As the owner; what it takes is in the current memory context.
 */
FavKey *
fav_open_key(FavAttachment *attachment, Datum filter_key, FavKnown known)
{
	FavKey	   *opened = palloc0(sizeof(FavKey));

	opened->attachment = attachment;
	opened->key = filter_key;
	opened->known = known;
	opened->is_locked = known == FAV_UNKNOWN;
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
	sort_hashes(&key->present);
	sort_hashes(&key->absent);

	/* Two elements may share a hash.  Then the one that is there decides. */
	subtract(&key->absent, &key->present);
	if (reconcile(key))
		return;
	key->is_locked = true;
	if (open_row(key))
		(void) reconcile(key);
}

/* Build a filter anew from the source.  As the owner. */
void
fav_rebuild_key(FavAttachment *attachment, Datum filter_key)
{
	FavKey	   *key = palloc0(sizeof(FavKey));

	key->attachment = attachment;
	key->key = filter_key;
	key->is_locked = true;
	key->is_built_anew = true;
	if (read_or_insert(key))
		rebuild(key);
}
