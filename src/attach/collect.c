/*
 * collect.c
 *		The triggers: collect the pairs that were touched, and say when to reconcile.
 *
 * A collection is a set of pairs (key, element) of one attachment, and says nothing but
 * "look these up".  It has no order, no counts and no signs, so events may come in any
 * order, twice, or for rows that are gone again.
 *
 * A collection belongs to the subtransaction that made it.  Reconciling empties
 * collections of the current subtransaction only.  When a subtransaction ends well, what
 * it has left goes to its parent; when it is rolled back, its collections go with it,
 * because its changes of the source and of the filters are both undone.
 *
 * The statement trigger reconciles what its source collected.  Not every row event is
 * followed by one: there is none for logical replication, for statements on a partition
 * that was made later, and for statements cut short by a row limit.  So whatever is left is
 * reconciled before commit.  A full collection is reconciled on the spot, so that memory
 * is bounded.
 */
#include "attach.h"

#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* With so many pairs, or work_mem of bytes, a collection is full. */
#define COLLECTION_PAIRS	65536

typedef struct Pair
{
	Datum		key;
	Datum		element;
} Pair;

typedef struct Collection
{
	FavAttachment *attachment;
	int			nest_level;		/* of the subtransaction that it belongs to */
	MemoryContext context;		/* holds all of it */
	Pair	   *pairs;
	int			count;
	int			allocated;
	Size		bytes;			/* of keys and elements that are not in a Datum */
} Collection;

static List *collections = NIL; /* of this transaction, in TopTransactionContext */

/*
 * Has this transaction removed anything from a source, or put anything in?  While it has
 * removed nothing, every pair that was touched is there.  While it has put nothing in, no
 * pair that was touched is there, if the source has each pair at most once.  Such pairs
 * need not be looked up.
 */
static bool has_removed = false;
static bool has_inserted = false;

PG_FUNCTION_INFO_V1(fav_collect);
PG_FUNCTION_INFO_V1(fav_reconcile);

/*
 * Collections
 */

static Collection *
find_collection(FavAttachment *attachment, int nest_level)
{
	ListCell   *cell;

	foreach(cell, collections)
	{
		Collection *collection = lfirst(cell);

		if (collection->attachment->levels == attachment->levels && collection->nest_level == nest_level)
		{
			/* the attachment may have been resolved again since */
			collection->attachment = attachment;
			return collection;
		}
	}
	return NULL;
}

static Collection *
open_collection(FavAttachment *attachment)
{
	int			nest_level = GetCurrentTransactionNestLevel();
	Collection *collection = find_collection(attachment, nest_level);
	MemoryContext context;
	MemoryContext old;

	if (collection != NULL)
		return collection;
	context = AllocSetContextCreate(TopTransactionContext, "fav collection", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	collection = palloc0(sizeof(Collection));
	collection->attachment = attachment;
	collection->nest_level = nest_level;
	collection->context = context;
	collection->allocated = 16;
	collection->pairs = palloc(collection->allocated * sizeof(Pair));
	MemoryContextSwitchTo(TopTransactionContext);
	collections = lappend(collections, collection);
	MemoryContextSwitchTo(old);
	return collection;
}

/* Copy a value, with all that is out of line. */
static Datum
copy_value(Collection *collection, Datum value, bool by_value, int16 length)
{
	if (by_value)
		return value;
	if (length == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
	else
		value = datumCopy(value, false, length);
	collection->bytes += datumGetSize(value, false, length);
	return value;
}

static void
collect_pair(Collection *collection, TupleTableSlot *slot, const FavWhen *when)
{
	const FavAttachment *attachment = collection->attachment;
	bool		key_is_null;
	bool		element_is_null;
	Datum		key = slot_getattr(slot, when->key, &key_is_null);
	Datum		element = slot_getattr(slot, when->element, &element_is_null);
	MemoryContext old;

	if (key_is_null || element_is_null)
		return;
	old = MemoryContextSwitchTo(collection->context);
	if (collection->count == collection->allocated)
	{
		collection->allocated *= 2;
		collection->pairs = repalloc(collection->pairs, collection->allocated * sizeof(Pair));
	}
	collection->pairs[collection->count].key =
		copy_value(collection, key, attachment->key_type->typbyval, attachment->key_type->typlen);
	collection->pairs[collection->count].element =
		copy_value(collection, element, attachment->element_by_value, attachment->element_length);
	collection->count++;
	MemoryContextSwitchTo(old);
}

/* The attachment is given up, and what was collected for it. */
void
fav_forget_collected(Oid levels)
{
	ListCell   *cell;

	foreach(cell, collections)
		if (((Collection *) lfirst(cell))->attachment->levels == levels)
			collections = foreach_delete_current(collections, cell);
}

/*
 * Reconciling
 */

static int
compare_pairs(const void *a, const void *b, void *arg)
{
	const FavAttachment *attachment = arg;

	return DatumGetInt32(FunctionCall2Coll(&attachment->key_type->cmp_proc_finfo, attachment->key.collation,
										   ((const Pair *) a)->key, ((const Pair *) b)->key));
}

/* Key by key, in their order: two statements that touch the same keys cannot deadlock. */
static void
reconcile_pairs(FavAttachment *attachment, Pair *pairs, int count, FavKnown known)
{
	MemoryContext per_key = AllocSetContextCreate(CurrentMemoryContext, "fav reconcile", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	Datum	   *elements = palloc(count * sizeof(Datum));
	int			first;
	int			end;

	if (count > 1)
		qsort_arg(pairs, count, sizeof(Pair), compare_pairs, attachment);
	for (first = 0; first < count; first = end)
	{
		for (end = first; end < count && (end == first || compare_pairs(&pairs[first], &pairs[end], attachment) == 0); end++)
			elements[end - first] = pairs[end].element;
		CHECK_FOR_INTERRUPTS();
		old = MemoryContextSwitchTo(per_key);
		fav_reconcile_key(attachment, pairs[first].key, elements, end - first, known);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_key);
	}
	pfree(elements);
	MemoryContextDelete(per_key);
}

/* Take a collection off the list and reconcile it.  Triggers of levels may collect anew. */
static void
reconcile_collection(Collection *collection, FavKnown known)
{
	FavRole		role;

	collections = list_delete_ptr(collections, collection);

	/* A rebuild of all keys comes before or after this, and not in between. */
	LockRelationOid(collection->attachment->levels, RowExclusiveLock);
	fav_become_owner(&role, collection->attachment->owner);
	fav_prefer_indexes();
	fav_spi_connect();
	reconcile_pairs(collection->attachment, collection->pairs, collection->count, known);
	SPI_finish();
	fav_become_caller(&role);
	MemoryContextDelete(collection->context);
}

static FavKnown
what_is_known(const FavAttachment *attachment)
{
	if (!has_removed)
		return FAV_ALL_PRESENT;
	return !has_inserted && attachment->is_unique ? FAV_ALL_ABSENT : FAV_UNKNOWN;
}

/*
 * Before commit.  Partitions may have been dropped or detached since a row was inserted,
 * so everything is looked up.  Deferred triggers of the levels table may be due then, and
 * may collect anew.
 */
static void
reconcile_all(void)
{
	while (collections != NIL)
	{
		Collection *collection = linitial(collections);

		/* tables may have changed, or have gone, since the pairs were collected */
		PushActiveSnapshot(GetTransactionSnapshot());
		collection->attachment = fav_attachment_refresh(collection->attachment);
		if (collection->attachment != NULL)
			reconcile_collection(collection, FAV_UNKNOWN);
		else
			collections = list_delete_first(collections);
		PopActiveSnapshot();
		if (collections == NIL)
			AfterTriggerFireDeferred();
	}
}

/*
 * Ends of transactions
 */

static void
transaction_ends(XactEvent event, void *arg pg_attribute_unused())
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			reconcile_all();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			/* the memory goes with the transaction's */
			collections = NIL;
			has_removed = has_inserted = false;
			fav_release_stale_attachments();
			break;
		default:
			break;
	}
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId child pg_attribute_unused(),
					SubTransactionId parent pg_attribute_unused(), void *arg pg_attribute_unused())
{
	int			nest_level = GetCurrentTransactionNestLevel();
	ListCell   *cell;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	foreach(cell, collections)
	{
		Collection *collection = lfirst(cell);

		if (collection->nest_level < nest_level)
			continue;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			collection->nest_level = nest_level - 1;
		else
		{
			collections = foreach_delete_current(collections, cell);
			MemoryContextDelete(collection->context);
		}
	}
}

static void
watch_transactions(void)
{
	static bool watching = false;

	if (watching)
		return;
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
	watching = true;
}

/*
 * The triggers
 */

static void
check_trigger_call(FunctionCallInfo fcinfo, bool for_row, const char *function)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_AFTER(data->tg_event) ||
		(TRIGGER_FIRED_FOR_ROW(data->tg_event) != 0) != for_row)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("%s must be called by a trigger that fav_attach has made", function)));
}

Datum
fav_collect(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	FavAttachment *attachment;
	Collection *collection;
	FavWhen		when;

	check_trigger_call(fcinfo, true, FAV_COLLECT);
	attachment = fav_attachment_of_trigger(fcinfo, &when);
	if (attachment == NULL)
		return PointerGetDatum(NULL);
	if (data->tg_relation->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot keep filters of foreign table \"%s\"", RelationGetRelationName(data->tg_relation)),
				 errhint("Attach the filters on the server that has the rows.")));
	watch_transactions();
	has_removed |= !TRIGGER_FIRED_BY_INSERT(data->tg_event);
	has_inserted |= !TRIGGER_FIRED_BY_DELETE(data->tg_event);
	collection = open_collection(attachment);
	collect_pair(collection, data->tg_trigslot, &when);
	if (TRIGGER_FIRED_BY_UPDATE(data->tg_event))
		collect_pair(collection, data->tg_newslot, &when);
	if (collection->count >= COLLECTION_PAIRS || collection->bytes >= work_mem * (Size) 1024)
		reconcile_collection(collection, what_is_known(attachment));
	return PointerGetDatum(NULL);
}

Datum
fav_reconcile(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	FavAttachment *attachment;
	Collection *collection;
	FavWhen		when;

	check_trigger_call(fcinfo, false, FAV_RECONCILE);
	if (collections == NIL && !TRIGGER_FIRED_BY_TRUNCATE(data->tg_event))
		return PointerGetDatum(NULL);
	attachment = fav_attachment_of_trigger(fcinfo, &when);
	if (attachment == NULL)
		return PointerGetDatum(NULL);
	if (TRIGGER_FIRED_BY_TRUNCATE(data->tg_event))
	{
		watch_transactions();
		has_removed = true;
		fav_rebuild_after_truncate(attachment);
	}
	else
		while ((collection = find_collection(attachment, GetCurrentTransactionNestLevel())) != NULL)
			reconcile_collection(collection, what_is_known(attachment));
	return PointerGetDatum(NULL);
}
