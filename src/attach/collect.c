/*
 * collect.c
 *		The pairs that a transaction has touched: collect them, and reconcile them.
 *
 * A collection is a set of pairs (key, element) of one attachment that have to be looked up.
 * It has no order, no counts and no signs, so events may come in any order, twice, or for rows
 * that are deleted again.  It is a tuplestore, which goes to disk when it exceeds work_mem.
 *
 * A collection belongs to the subtransaction that made it.  Reconciling empties
 * collections of the current subtransaction only.  When a subtransaction commits, its
 * collections pass to its parent; when it is rolled back, they are dropped, because its
 * changes of the source and of the filters are both undone.
 *
 * The statement trigger (triggers.c) reconciles the pairs of its source.  Not every row event is
 * followed by one: there is none for logical replication, for statements on a partition that was
 * created later, and for statements that a row limit ends early.  So the remaining pairs are
 * reconciled before commit.  It never happens in between: a collection is sorted, so that
 * a statement locks its keys in one order, and two statements cannot deadlock.
 *
 * The pairs of a sink are collected instead of being stored.  There is nothing to look up, so
 * here it matters that a collection goes with its subtransaction: what was rolled back is not
 * added.
 */
#include "attach/attachment_cache.h"
#include "attach/collect.h"
#include "attach/columns.h"
#include "attach/queries.h"
#include "attach/reconcile.h"
#include "attach/sink.h"

#include "access/xact.h"
#include "catalog/pg_operator_d.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

typedef struct Collection
{
	FavAttachment *attachment;	/* as it was when the collection began */
	int			nest_level;		/* of the subtransaction that it belongs to */
	bool		is_open;		/* accepts pairs; false while it is being reconciled */
	bool		is_broken;		/* has lost pairs, because a disk was full */
	bool		is_unique;		/* the source had no pair twice when pairs were removed */
	Tuplestorestate *pairs;
	List	   *origins;		/* the relations that the pairs come from */
	MemoryContext context;		/* holds all of it, */
	ResourceOwner owner;		/* and this its files */
} Collection;

static List *collections = NIL; /* of this transaction, in TopTransactionContext */

/*
 * Has this transaction removed rows from a source, or inserted any?  While it has removed
 * none, every touched pair is present.  While it has inserted none, every touched pair is
 * absent, if the source has each pair at most once.  Such pairs need not be looked up.
 */
static bool has_removed = false;
static bool has_inserted = false;

/*
 * Collections
 */

static void
check_collection(const Collection *collection)
{
	if (collection->is_broken)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("the filters of table \"%s\" cannot be kept in this transaction",
						get_rel_name(collection->attachment->source)),
				 errdetail("There was no space for the pairs that it has touched.")));
}

static bool
has_same_types(const FavAttachment *a, const FavAttachment *b)
{
	return a->key.type == b->key.type && a->element.type == b->element.type &&
		a->pair->natts == b->pair->natts;
}

static Collection *
find_collection(const FavAttachment *attachment, int nest_level)
{
	ListCell   *cell;

	foreach(cell, collections)
	{
		Collection *collection = lfirst(cell);

		if (collection->attachment->levels != attachment->levels ||
			!has_same_types(collection->attachment, attachment) ||
			collection->nest_level != nest_level || !collection->is_open)
			continue;
		check_collection(collection);
		return collection;
	}
	return NULL;
}

static Collection *
begin_collection(FavAttachment *attachment, int nest_level)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext, "fav collection",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	ResourceOwner owner = CurrentResourceOwner;
	Collection *collection = palloc0(sizeof(Collection));

	collection->attachment = attachment;
	collection->nest_level = nest_level;
	collection->is_open = true;
	collection->is_unique = true;
	collection->context = context;
	fav_keep_attachment(attachment);

	/* Its files must outlive the statement, and the subtransaction if that ends well. */
	collection->owner = ResourceOwnerCreate(TopTransactionResourceOwner, "fav collection");
	CurrentResourceOwner = collection->owner;
	collection->pairs = tuplestore_begin_heap(false, false, work_mem);
	CurrentResourceOwner = owner;
	MemoryContextSwitchTo(TopTransactionContext);
	collections = lappend(collections, collection);
	MemoryContextSwitchTo(old);
	return collection;
}

/*
 * Forget a collection, also when a subtransaction is rolled back.  tuplestore_end() would
 * write to its file once more, and so might fail.
 */
static void
end_collection(Collection *collection)
{
	collections = list_delete_ptr(collections, collection);
	ResourceOwnerRelease(collection->owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, false);
	ResourceOwnerRelease(collection->owner, RESOURCE_RELEASE_LOCKS, false, false);
	ResourceOwnerRelease(collection->owner, RESOURCE_RELEASE_AFTER_LOCKS, false, false);
	ResourceOwnerDelete(collection->owner);
	MemoryContextDelete(collection->context);
}

static void
collect_pair(Collection *collection, TupleTableSlot *slot, const FavWhen *when)
{
	TupleDesc	pair = collection->attachment->pair;
	Datum		values[3];
	bool		nulls[3] = {false};
	int			i;

	values[0] = slot_getattr(slot, when->key, &nulls[0]);
	values[1] = slot_getattr(slot, when->element, &nulls[1]);
	if (nulls[0] || nulls[1])
		return;
	for (i = 0; i < 2; i++)
		if (TupleDescAttr(pair, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
			values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));
	if (pair->natts == 3)
		values[2] = Int32GetDatum(fav_period_of_time(collection->attachment,
													 slot_getattr(slot, when->at, &nulls[2])));
	tuplestore_putvalues(collection->pairs, pair, values, nulls);
}

/*
 * Reconciling
 */

/* The pairs of a collection in the order of their keys. */
typedef struct SortedPairs
{
	FavAttachment *attachment;
	Collection *collection;
	Tuplesortstate *sort;		/* NULL: there is only one pair */
	TupleTableSlot *slot;		/* the pair at hand */
} SortedPairs;

/* Fetch the next pair with all its columns; false if there is none. */
static bool
next_pair(SortedPairs *pairs)
{
	bool		found = pairs->sort != NULL ?
		tuplesort_gettupleslot(pairs->sort, true, false, pairs->slot, NULL) :
		tuplestore_gettupleslot(pairs->collection->pairs, true, false, pairs->slot);

	if (found)
		slot_getallattrs(pairs->slot);
	return found;
}

/* By their keys, and those of a key by their periods if they have some. */
static void
sort_pairs(SortedPairs *pairs)
{
	FavAttachment *attachment = pairs->attachment;
	AttrNumber	columns[2] = {1, 3};
	Oid			operators[2] = {attachment->key_type->lt_opr, Int4LessOperator};
	Oid			collations[2] = {attachment->key.collation, InvalidOid};
	bool		nulls_first[2] = {false, false};

	if (tuplestore_tuple_count(pairs->collection->pairs) < 2)
		return;
	pairs->sort = tuplesort_begin_heap(attachment->pair, attachment->pair->natts == 3 ? 2 : 1,
									   columns, operators, collations, nulls_first, work_mem,
									   NULL, false);
	while (tuplestore_gettupleslot(pairs->collection->pairs, true, false, pairs->slot))
	{
		CHECK_FOR_INTERRUPTS();
		tuplesort_puttupleslot(pairs->sort, pairs->slot);
	}
	tuplestore_clear(pairs->collection->pairs);
	tuplesort_performsort(pairs->sort);
}

static bool
is_of_filter(const SortedPairs *pairs, Datum key)
{
	const FavAttachment *attachment = pairs->attachment;

	return DatumGetInt32(FunctionCall2Coll(&attachment->filter_key_type->cmp_proc_finfo,
										   attachment->key.collation, key,
										   fav_filter_key(attachment,
														  pairs->slot->tts_values[0]))) == 0;
}

static FavKnown
known_presence(const Collection *collection)
{
	if (!has_removed)
		return FAV_ALL_PRESENT;
	return !has_inserted && collection->is_unique ? FAV_ALL_ABSENT : FAV_UNKNOWN;
}

/* Append the pair at hand to the elements that are added to a filter of a sink. */
static void
append_pair(const SortedPairs *pairs, FavChange *change)
{
	FavHashes  *hashes = &change->hashes;
	const Datum *values = pairs->slot->tts_values;
	size_t		allocated = hashes->allocated;

	fav_append_hash(hashes, fav_hash_row(pairs->attachment, values[0], values[1]));
	if (pairs->attachment->at.number == 0)
		return;
	if (hashes->allocated > allocated)
		change->periods = change->periods == NULL ?
			palloc(hashes->allocated * sizeof(int32)) :
			repalloc_huge(change->periods, hashes->allocated * sizeof(int32));
	change->periods[hashes->count - 1] = DatumGetInt32(values[2]);
}

/*
 * The pairs of one filter, which begin with the one at hand: add them to it if it is of a sink,
 * or else make it agree with the source.  False if there is no pair left.
 */
static bool
change_filter(SortedPairs *pairs, bool is_known)
{
	FavAttachment *attachment = pairs->attachment;
	Datum		key = datumCopy(fav_filter_key(attachment, pairs->slot->tts_values[0]),
								attachment->filter_key_type->typbyval,
								attachment->filter_key_type->typlen);
	FavChange	change = {.action = FAV_ADD};
	FavReconciliation *work = attachment->is_sink ? NULL :
		fav_open_key(attachment, key, is_known ? known_presence(pairs->collection) : FAV_UNKNOWN);
	bool		more;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (work != NULL)
			fav_touch_row(work, pairs->slot->tts_values[0], pairs->slot->tts_values[1]);
		else if (attachment->is_sink)
			append_pair(pairs, &change);
		more = next_pair(pairs);
	} while (more && is_of_filter(pairs, key));
	if (work != NULL)
		fav_reconcile_key(work);
	else if (attachment->is_sink)
	{
		if (change.periods == NULL)
			fav_sort_hashes(&change.hashes);
		fav_change_sink(attachment, key, &change);
	}
	return more;
}

/*
 * Filter by filter.  A trigger of the levels table may change the source in between, so
 * known_presence() is called for each filter.
 */
static void
change_filters(SortedPairs *pairs, bool is_known)
{
	MemoryContext per_filter = AllocSetContextCreate(CurrentMemoryContext, "fav reconcile",
													 ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(per_filter);
	bool		more = next_pair(pairs);

	while (more)
	{
		more = change_filter(pairs, is_known);
		MemoryContextReset(per_filter);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(per_filter);
}

/*
 * Does the source still have the relations that the pairs are from?  If the attachment is
 * the same as before, none of them has changed at all.
 */
static bool
is_family_together(const Collection *collection, const FavAttachment *attachment)
{
	return attachment == collection->attachment ||
		list_difference_oid(collection->origins, fav_list_family(attachment->source)) == NIL;
}

/*
 * Triggers of the levels table may collect pairs again, in another collection.
 *
 * The lock comes first.  It keeps a rebuild of all keys from running in between, and the
 * attachment from changing.  The extension may be in another schema now.
 */
static void
reconcile_collection(Collection *collection)
{
	SortedPairs pairs = {NULL, collection, NULL, NULL};
	FavAttachment *attachment;
	FavRole		role;

	check_collection(collection);
	LockRelationOid(collection->attachment->levels, RowExclusiveLock);
	attachment = fav_attachment_of_levels(get_func_namespace(collection->attachment->function),
										  collection->attachment->levels);
	pairs.attachment = attachment;
	if (!has_same_types(attachment, collection->attachment))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("columns of table \"%s\" have changed their types in the meantime",
						get_rel_name(attachment->source))));
	collection->is_open = false;
	fav_become_owner(&role, attachment->owner);
	pairs.slot = MakeSingleTupleTableSlot(attachment->pair, &TTSOpsMinimalTuple);
	sort_pairs(&pairs);
	change_filters(&pairs, is_family_together(collection, attachment));
	ExecDropSingleTupleTableSlot(pairs.slot);
	if (pairs.sort != NULL)
		tuplesort_end(pairs.sort);
	fav_become_caller(&role);
	end_collection(collection);
}

/* What the current subtransaction has collected. */
void
fav_reconcile_collected(const FavAttachment *attachment)
{
	Collection *collection;

	while ((collection = find_collection(attachment, GetCurrentTransactionNestLevel())) != NULL)
		reconcile_collection(collection);
}

/*
 * What follows must come after all that was inserted into a sink.  That is so once the filters
 * have it, unless it belongs to an outer subtransaction: writing it in this one would lose it if
 * this is rolled back.
 */
void
fav_settle(const FavAttachment *attachment)
{
	ListCell   *cell;

	fav_reconcile_collected(attachment);
	foreach(cell, collections)
		if (((Collection *) lfirst(cell))->attachment->levels == attachment->levels)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("rows are being inserted into sink \"%s\"",
							get_rel_name(attachment->source)),
					 errdetail("The statement that inserts them has not ended.")));
}

/*
 * Before commit.  Tables, or the extension, may have been dropped since the pairs were
 * collected.  Triggers of the levels table cannot be deferred: PostgreSQL refuses that in a
 * security-restricted operation.
 */
static void
reconcile_all(void)
{
	while (collections != NIL)
	{
		Collection *collection = linitial(collections);

		PushActiveSnapshot(GetTransactionSnapshot());
		if (OidIsValid(get_func_namespace(collection->attachment->function)) &&
			SearchSysCacheExists1(RELOID, ObjectIdGetDatum(collection->attachment->source)) &&
			SearchSysCacheExists1(RELOID, ObjectIdGetDatum(collection->attachment->levels)))
			reconcile_collection(collection);
		else
			end_collection(collection);
		PopActiveSnapshot();
	}
}

/*
 * Ends of transactions
 */

static void
transaction_ends(XactEvent event, void *arg pg_attribute_unused())
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
		reconcile_all();
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
			 event == XACT_EVENT_PREPARE)
	{
		/* memory and files go with the transaction */
		collections = NIL;
		has_removed = has_inserted = false;
	}
}

/*
 * What a subtransaction has left goes to its parent.  An error, such as a full disk, rolls
 * the subtransaction back, and the parent's tuplestore cannot be used any more.
 */
static void
merge_collection(Collection *from, Collection *to)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(from->attachment->pair,
													&TTSOpsMinimalTuple);
	MemoryContext old;

	to->is_broken = true;
	while (tuplestore_gettupleslot(from->pairs, true, false, slot))
		tuplestore_puttupleslot(to->pairs, slot);
	old = MemoryContextSwitchTo(to->context);
	to->origins = list_concat_unique_oid(to->origins, from->origins);
	MemoryContextSwitchTo(old);
	to->is_unique &= from->is_unique;
	to->is_broken = false;
	ExecDropSingleTupleTableSlot(slot);
	end_collection(from);
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId child pg_attribute_unused(),
					SubTransactionId parent pg_attribute_unused(),
					void *arg pg_attribute_unused())
{
	int			nest_level = GetCurrentTransactionNestLevel();
	MemoryContext old;
	int			i;

	if (event != SUBXACT_EVENT_PRE_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;

	/* The subtransaction's own context would be kept if anything was ever put there. */
	old = MemoryContextSwitchTo(TopTransactionContext);
	for (i = list_length(collections) - 1; i >= 0; i--)
	{
		Collection *collection = list_nth(collections, i);
		Collection *outer;

		if (collection->nest_level < nest_level)
			continue;
		if (event == SUBXACT_EVENT_ABORT_SUB)
			end_collection(collection);
		else if ((outer = find_collection(collection->attachment, nest_level - 1)) != NULL)
			merge_collection(collection, outer);
		else
			collection->nest_level = nest_level - 1;
	}
	MemoryContextSwitchTo(old);
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
 * For triggers, and those who change a source without them
 */

/* Has this transaction collected anything that is not reconciled yet? */
bool
fav_has_collected(void)
{
	return collections != NIL;
}

/* The source may have changed without the triggers: from now on every pair is looked up. */
void
fav_forget_known(void)
{
	watch_transactions();
	has_removed = has_inserted = true;
}

/* Collect the pairs of the rows that a row trigger was called for. */
void
fav_collect_rows(FavAttachment *attachment, const FavWhen *when, const TriggerData *data)
{
	int			nest_level = GetCurrentTransactionNestLevel();
	Collection *collection;
	MemoryContext old;

	watch_transactions();
	if (!attachment->is_sink)
	{
		has_removed |= !TRIGGER_FIRED_BY_INSERT(data->tg_event);
		has_inserted |= !TRIGGER_FIRED_BY_DELETE(data->tg_event);
	}
	collection = find_collection(attachment, nest_level);
	if (collection == NULL)
		collection = begin_collection(attachment, nest_level);
	old = MemoryContextSwitchTo(collection->context);
	collection->origins = list_append_unique_oid(collection->origins,
												 RelationGetRelid(data->tg_relation));
	MemoryContextSwitchTo(old);
	if (TRIGGER_FIRED_BY_DELETE(data->tg_event) && collection->is_unique)
		collection->is_unique = attachment->is_unique;
	collect_pair(collection, data->tg_trigslot, when);
	if (TRIGGER_FIRED_BY_UPDATE(data->tg_event))
		collect_pair(collection, data->tg_newslot, when);
}
