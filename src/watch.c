/*
 * watch.c
 *		What the triggers of a table need to know of their attachment, cached: one
 *		entry for each table with triggers and each number.
 */
#include "attach.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_inherits.h"
#include "commands/trigger.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

typedef struct WatchKey
{
	Oid			relation;
	int32		number;
} WatchKey;

typedef struct WatchEntry
{
	WatchKey	key;
	FavWatch   *watch;			/* NULL: not loaded */
} WatchEntry;

static HTAB *watches = NULL;
static uint64 invalidations = 0;
static int	nusers = 0;			/* of all watches */

static void
invalidate_watches(Datum argument, Oid relation)
{
	HASH_SEQ_STATUS status;
	WatchEntry *entry;

	(void) argument;
	invalidations++;
	hash_seq_init(&status, watches);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		FavWatch   *watch = entry->watch;

		if (watch != NULL &&
			(!OidIsValid(relation) || relation == watch->relation ||
			 relation == watch->attachment.source || relation == watch->attachment.target))
			watch->valid = false;
	}
}

/* The function that triggers call may have moved to another schema. */
static void
invalidate_by_function(Datum argument, int cache, uint32 hash)
{
	HASH_SEQ_STATUS status;
	WatchEntry *entry;

	(void) argument;
	(void) cache;
	invalidations++;
	hash_seq_init(&status, watches);
	while ((entry = hash_seq_search(&status)) != NULL)
		if (entry->watch != NULL && (hash == 0 || hash == entry->watch->function_hash))
			entry->watch->valid = false;
}

static void
start_cache(void)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(WatchKey);
	control.entrysize = sizeof(WatchEntry);
	watches = hash_create("fav attachments", 32, &control, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(invalidate_watches, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, invalidate_by_function, (Datum) 0);
}

/* A relation and all it inherits from, itself first. */
static List *
find_ancestors(Oid relation)
{
	List	   *ancestors = list_make1_oid(relation);
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	int			i;

	for (i = 0; i < list_length(ancestors); i++)
	{
		ScanKeyData key;
		SysScanDesc scan;
		HeapTuple	tuple;

		ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
					ObjectIdGetDatum(list_nth_oid(ancestors, i)));
		scan = systable_beginscan(inherits, InheritsRelidSeqnoIndexId, true, NULL, 1, &key);
		while (HeapTupleIsValid(tuple = systable_getnext(scan)))
			ancestors = list_append_unique_oid(ancestors,
											   ((Form_pg_inherits) GETSTRUCT(tuple))->inhparent);
		systable_endscan(scan);
	}
	table_close(inherits, AccessShareLock);
	return ancestors;
}

static FavCatalogRow *
find_row(Oid schema, List *ancestors, int32 number)
{
	ListCell   *ancestor;
	ListCell   *cell;

	foreach(ancestor, ancestors)
	{
		List	   *rows = fav_catalog_rows(schema, lfirst_oid(ancestor));

		foreach(cell, rows)
		{
			FavCatalogRow *row = lfirst(cell);

			if (row->number == number)
				return row;
		}
	}
	return NULL;
}

/* A child may have its columns in another order, but not under other names. */
static AttrNumber
column_in(Oid relation, const FavAttachment *attachment, const FavColumn *column)
{
	FavColumn	own;

	if (relation == attachment->source)
		return column->number;
	if (!fav_column_find(relation, NameStr(column->name), 0, &own))
		elog(ERROR, "table \"%s\" has no column \"%s\"", get_rel_name(relation), NameStr(column->name));
	return own.number;
}

static FavWatch *
load_watch(Oid function, Relation relation, int32 number)
{
	Oid			oid = RelationGetRelid(relation);
	Oid			schema = get_func_namespace(function);
	List	   *ancestors = find_ancestors(oid);
	FavCatalogRow *row = find_row(schema, ancestors, number);
	FavAttachment attachment;
	FavWatch   *watch;
	MemoryContext old;

	if (row == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("table \"%s\" has no attachment %d", RelationGetRelationName(relation), number),
				 errdetail("Only fav_attach makes triggers that maintain a filter."),
				 errhint("Drop the trigger, or attach the table with fav_attach.")));
	fav_attachment_resolve(&attachment, schema, row);

	watch = MemoryContextAllocZero(TopMemoryContext, sizeof(FavWatch));
	watch->relation = oid;
	watch->number = number;
	watch->attachment = attachment;
	watch->key_number = column_in(oid, &attachment, &attachment.key);
	watch->element_number = column_in(oid, &attachment, &attachment.element);
	watch->function = function;
	watch->function_hash = GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(function));
	old = MemoryContextSwitchTo(TopMemoryContext);
	watch->ancestors = list_copy(ancestors);
	watch->attachment.empty = fav_empty_filter(&attachment);
	MemoryContextSwitchTo(old);
	return watch;
}

static void
free_watch(FavWatch *watch)
{
	int			i;

	for (i = 0; i < FAV_NQUERIES; i++)
		if (watch->attachment.plans[i] != NULL)
			SPI_freeplan(watch->attachment.plans[i]);
	list_free(watch->ancestors);
	pfree(DatumGetPointer(watch->attachment.empty));
	pfree(watch);
}

/* A plan in here that names may no longer fit? */
static bool
plans_are_valid(const FavWatch *watch)
{
	int			i;

	for (i = 0; i < FAV_NQUERIES; i++)
		if (watch->attachment.plans[i] != NULL && !SPI_plan_is_valid(watch->attachment.plans[i]))
			return false;
	return true;
}

/* The attachment that a trigger of this relation serves, if it is known and not outdated. */
FavWatch *
fav_watch_find(Oid function, Oid relation, int32 number)
{
	WatchKey	key = {relation, number};
	WatchEntry *entry;

	if (watches == NULL)
		return NULL;
	entry = hash_search(watches, &key, HASH_FIND, NULL);
	if (entry == NULL || entry->watch == NULL)
		return NULL;
	if (entry->watch->valid && entry->watch->function == function && plans_are_valid(entry->watch))
		return entry->watch;

	/* one in use is left to itself: this is too rare to be worth more */
	if (entry->watch->users == 0)
		free_watch(entry->watch);
	entry->watch = NULL;
	return NULL;
}

/* Raises an error if there is none. */
FavWatch *
fav_watch_load(Oid function, Relation relation, int32 number)
{
	WatchKey	key = {RelationGetRelid(relation), number};
	WatchEntry *entry;
	FavWatch   *watch;
	uint64		before;
	bool		found;

	if (watches == NULL)
		start_cache();
	before = invalidations;
	watch = load_watch(function, relation, number);
	/* was it outdated already while it was loaded? */
	watch->valid = before == invalidations;
	entry = hash_search(watches, &key, HASH_ENTER, &found);
	entry->watch = watch;
	return watch;
}

/* One that is in use survives that the next call finds it outdated. */
void
fav_watch_use(FavWatch *watch)
{
	watch->users++;
	nusers++;
}

void
fav_watch_close(FavWatch *watch)
{
	watch->users--;
	nusers--;
}

/* At the end of a transaction nobody uses any, however it ended. */
void
fav_watch_forget_users(void)
{
	HASH_SEQ_STATUS status;
	WatchEntry *entry;

	if (nusers == 0)
		return;
	nusers = 0;
	hash_seq_init(&status, watches);
	while ((entry = hash_seq_search(&status)) != NULL)
		if (entry->watch != NULL)
			entry->watch->users = 0;
}
