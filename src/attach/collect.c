/*
 * collect.c
 *		The triggers: collect the pairs that were touched, and start to reconcile.
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
 * The statement trigger reconciles the pairs of its source.  Not every row event is followed
 * by one: there is none for logical replication, for statements on a partition that was
 * created later, and for statements that a row limit ends early.  So the remaining pairs are
 * reconciled before commit.  It never happens in between: a collection is sorted, so that
 * a statement locks its keys in one order, and two statements cannot deadlock.
 *
 * The pairs of a sink are collected instead of being stored.  There is nothing to look up, so
 * here it matters that a collection goes with its subtransaction: what was rolled back is not
 * added.
 */
#include "attach/build.h"
#include "attach/citus.h"
#include "attach/collect.h"
#include "attach/interface.h"
#include "attach/queries.h"
#include "attach/reconcile.h"
#include "attach/sink.h"

#include "access/xact.h"
#include "catalog/pg_operator_d.h"
#include "commands/trigger.h"
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
	Oid			function;		/* fav_collect, to find the schema of the extension */
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

static void watch_transactions(void);

PG_FUNCTION_INFO_V1(fav_collect);
PG_FUNCTION_INFO_V1(fav_reconcile);

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
begin_collection(FavAttachment *attachment, Oid function, int nest_level)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext, "fav collection",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	ResourceOwner owner = CurrentResourceOwner;
	Collection *collection = palloc0(sizeof(Collection));

	collection->attachment = attachment;
	collection->function = function;
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

static void
add_origin(Collection *collection, Oid relation)
{
	MemoryContext old;

	if (list_member_oid(collection->origins, relation))
		return;
	old = MemoryContextSwitchTo(collection->context);
	collection->origins = lappend_oid(collection->origins, relation);
	MemoryContextSwitchTo(old);
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

static bool
next_pair(SortedPairs *pairs)
{
	if (pairs->sort != NULL)
		return tuplesort_gettupleslot(pairs->sort, true, false, pairs->slot, NULL);
	return tuplestore_gettupleslot(pairs->collection->pairs, true, false, pairs->slot);
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

/* The key of the filter that the pair at hand belongs to. */
static Datum
filter_key(const SortedPairs *pairs)
{
	bool		isnull;

	return fav_filter_key(pairs->attachment, slot_getattr(pairs->slot, 1, &isnull));
}

static bool
is_of_filter(const SortedPairs *pairs, Datum key)
{
	return DatumGetInt32(FunctionCall2Coll(&pairs->attachment->filter_key_type->cmp_proc_finfo,
										   pairs->attachment->key.collation, key,
										   filter_key(pairs))) == 0;
}

static void
touch_pair(FavReconciliation *work, TupleTableSlot *pair)
{
	bool		isnull;
	Datum		key = slot_getattr(pair, 1, &isnull);

	fav_touch_row(work, key, slot_getattr(pair, 2, &isnull));
}

static FavKnown
known_presence(const Collection *collection)
{
	if (!has_removed)
		return FAV_ALL_PRESENT;
	return !has_inserted && collection->is_unique ? FAV_ALL_ABSENT : FAV_UNKNOWN;
}

/* The source may have changed without the triggers: from now on every pair is looked up. */
void
fav_forget_known(void)
{
	watch_transactions();
	has_removed = has_inserted = true;
}

/*
 * Filter by filter.  A trigger of the levels table may change the source in between, so
 * known_presence() is called for each filter.
 */
static void
reconcile_pairs(SortedPairs *pairs, bool is_known)
{
	FavAttachment *attachment = pairs->attachment;
	MemoryContext per_key = AllocSetContextCreate(CurrentMemoryContext, "fav reconcile",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(per_key);
	bool		more = next_pair(pairs);

	while (more)
	{
		Datum		key = datumCopy(filter_key(pairs), attachment->filter_key_type->typbyval,
									attachment->filter_key_type->typlen);
		FavReconciliation *work = fav_open_key(attachment, key,
											   is_known ? known_presence(pairs->collection) :
											   FAV_UNKNOWN);

		do
		{
			CHECK_FOR_INTERRUPTS();
			if (work != NULL)
				touch_pair(work, pairs->slot);
			more = next_pair(pairs);
		} while (more && is_of_filter(pairs, key));
		if (work != NULL)
			fav_reconcile_key(work);
		MemoryContextReset(per_key);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(per_key);
}

/* Append the pair at hand to the elements that are added to a filter of a sink. */
static void
append_pair(const SortedPairs *pairs, FavChange *change)
{
	FavHashes  *hashes = &change->hashes;
	size_t		allocated = hashes->allocated;
	bool		isnull;
	Datum		key = slot_getattr(pairs->slot, 1, &isnull);

	fav_append_hash(hashes, fav_hash_row(pairs->attachment, key,
										 slot_getattr(pairs->slot, 2, &isnull)));
	if (pairs->attachment->at.number == 0)
		return;
	if (hashes->allocated > allocated)
		change->periods = change->periods == NULL ?
			palloc(hashes->allocated * sizeof(int32)) :
			repalloc_huge(change->periods, hashes->allocated * sizeof(int32));
	change->periods[hashes->count - 1] = DatumGetInt32(slot_getattr(pairs->slot, 3, &isnull));
}

/* What was inserted into a sink, filter by filter. */
static void
add_pairs(SortedPairs *pairs)
{
	FavAttachment *attachment = pairs->attachment;
	MemoryContext per_key = AllocSetContextCreate(CurrentMemoryContext, "fav sink",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(per_key);
	bool		more = next_pair(pairs);

	while (more)
	{
		Datum		key = datumCopy(filter_key(pairs), attachment->filter_key_type->typbyval,
									attachment->filter_key_type->typlen);
		FavChange	change = {.action = FAV_ADD};

		do
		{
			CHECK_FOR_INTERRUPTS();
			append_pair(pairs, &change);
			more = next_pair(pairs);
		} while (more && is_of_filter(pairs, key));
		if (change.periods == NULL)
			fav_sort_hashes(&change.hashes);
		fav_change_sink(attachment, key, &change);
		MemoryContextReset(per_key);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(per_key);
}

/*
 * Does the source still have the relations that the pairs are from?  If the attachment is
 * the same as before, none of them has changed at all.
 */
static bool
is_family_together(const Collection *collection, const FavAttachment *attachment)
{
	ListCell   *cell;

	if (attachment != collection->attachment)
		foreach(cell, collection->origins)
			if (!fav_is_in_family(lfirst_oid(cell), attachment->source))
				return false;
	return true;
}

/*
 * Triggers of the levels table may collect pairs again, in another collection.
 *
 * The lock comes first.  It keeps a rebuild of all keys from running in between, and the
 * attachment from changing.
 */
static void
reconcile_collection(Collection *collection)
{
	SortedPairs pairs = {NULL, collection, NULL, NULL};
	FavAttachment *attachment;
	FavRole		role;

	check_collection(collection);
	LockRelationOid(collection->attachment->levels, RowExclusiveLock);
	attachment = fav_attachment_of_levels(get_func_namespace(collection->function),
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
	if (attachment->is_sink)
		add_pairs(&pairs);
	else
		reconcile_pairs(&pairs, is_family_together(collection, attachment));
	ExecDropSingleTupleTableSlot(pairs.slot);
	if (pairs.sort != NULL)
		tuplesort_end(pairs.sort);
	fav_become_caller(&role);
	end_collection(collection);
}

/*
 * What follows must come after all that was inserted into a sink.  That is so once the filters
 * have it, unless it belongs to an outer subtransaction: writing it in this one would lose it if
 * this is rolled back.
 */
void
fav_settle(const FavAttachment *attachment)
{
	Collection *collection;
	ListCell   *cell;

	while ((collection = find_collection(attachment, GetCurrentTransactionNestLevel())) != NULL)
		reconcile_collection(collection);
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
		if (OidIsValid(get_func_namespace(collection->function)) &&
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
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			reconcile_all();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			/* memory and files go with the transaction */
			collections = NIL;
			has_removed = has_inserted = false;
			fav_forget_truncates();
			break;
		default:
			break;
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
	ListCell   *cell;

	to->is_broken = true;
	while (tuplestore_gettupleslot(from->pairs, true, false, slot))
		tuplestore_puttupleslot(to->pairs, slot);
	foreach(cell, from->origins)
		add_origin(to, lfirst_oid(cell));
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
	List	   *all;
	ListCell   *cell;

	if (collections == NIL ||
		(event != SUBXACT_EVENT_PRE_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB))
		return;

	/* The subtransaction's own context would be kept if anything was ever put there. */
	old = MemoryContextSwitchTo(TopTransactionContext);
	all = list_copy(collections);
	foreach(cell, all)
	{
		Collection *collection = lfirst(cell);
		Collection *outer;

		if (collection->nest_level < nest_level)
			continue;
		if (event == SUBXACT_EVENT_ABORT_SUB)
		{
			end_collection(collection);
			continue;
		}
		outer = find_collection(collection->attachment, nest_level - 1);
		if (outer != NULL)
			merge_collection(collection, outer);
		else
			collection->nest_level = nest_level - 1;
	}
	list_free(all);
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
 * The triggers
 */

pg_noreturn static void
raise_protocol(const char *function)
{
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("%s must be called by a trigger that fav_attach or fav_sink has made",
					function)));
	pg_unreachable();
}

static void
check_trigger_call(FunctionCallInfo fcinfo, bool for_row, const char *function)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || TRIGGER_FIRED_INSTEAD(data->tg_event) ||
		(TRIGGER_FIRED_FOR_ROW(data->tg_event) != 0) != for_row)
		raise_protocol(function);
}

/*
 * Nobody else checks the rows of a sink: PostgreSQL does that when it stores them.  Constraints
 * other than these are refused (attachment.c).
 */
static void
check_not_null(const TriggerData *data, const FavWhen *when)
{
	TupleDesc	descriptor = RelationGetDescr(data->tg_relation);
	int			i;

	for (i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		bool		is_ours = i + 1 == when->key || i + 1 == when->element || i + 1 == when->at;

		if ((is_ours || (attribute->attnotnull && attribute->attgenerated == '\0')) &&
			!attribute->attisdropped && slot_attisnull(data->tg_trigslot, i + 1))
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in column \"%s\" of sink \"%s\"",
							NameStr(attribute->attname),
							get_rel_name(fav_shell(RelationGetRelid(data->tg_relation)))),
					 errtablecol(data->tg_relation, i + 1)));
	}
}

pg_noreturn static void
raise_no_rows(const FavAttachment *attachment)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("table \"%s\" is a sink, which has no rows to update or delete",
					get_rel_name(fav_shell(attachment->source))),
			 errhint("Remove elements with the function %s. Instead of ON CONFLICT DO UPDATE use ON"
					 " CONFLICT DO NOTHING.", fav_name_of_remove(attachment))));
	pg_unreachable();
}

Datum
fav_collect(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	int			nest_level = GetCurrentTransactionNestLevel();
	FavAttachment *attachment;
	Collection *collection;
	FavWhen		when;

	check_trigger_call(fcinfo, true, "fav_collect");
	attachment = fav_attachment_of_trigger(fcinfo, &when);
	if (attachment == NULL)
	{
		fav_refuse_left(fcinfo);
		return PointerGetDatum(data->tg_trigtuple);
	}
	if ((TRIGGER_FIRED_BEFORE(data->tg_event) != 0) != attachment->is_sink ||
		(attachment->is_sink && !TRIGGER_FIRED_BY_INSERT(data->tg_event)))
		raise_protocol("fav_collect");
	watch_transactions();
	if (attachment->is_sink)
		check_not_null(data, &when);
	else
	{
		has_removed |= !TRIGGER_FIRED_BY_INSERT(data->tg_event);
		has_inserted |= !TRIGGER_FIRED_BY_DELETE(data->tg_event);
	}
	collection = find_collection(attachment, nest_level);
	if (collection == NULL)
		collection = begin_collection(attachment, fcinfo->flinfo->fn_oid, nest_level);
	add_origin(collection, RelationGetRelid(data->tg_relation));
	if (TRIGGER_FIRED_BY_DELETE(data->tg_event) && collection->is_unique)
		collection->is_unique = fav_has_unique_pairs(attachment);
	collect_pair(collection, data->tg_trigslot, &when);
	if (TRIGGER_FIRED_BY_UPDATE(data->tg_event))
		collect_pair(collection, data->tg_newslot, &when);

	/* this keeps the row of a sink from being stored */
	return PointerGetDatum(NULL);
}

/*
 * A table that has left the source was emptied.  The filters still have its pairs, and if it came
 * back, nobody would know that.
 */
static void
truncate_left(FunctionCallInfo fcinfo)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	Oid			source;
	Oid			levels;

	if (!fav_has_left(fcinfo, &source, &levels))
		return;
	watch_transactions();
	has_removed = true;
	fav_rebuild_after_truncate(fav_schema_of_function(fcinfo), levels,
							   RelationGetRelid(data->tg_relation));
}

Datum
fav_reconcile(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	FavAttachment *attachment;
	Collection *collection;
	FavWhen		when;

	check_trigger_call(fcinfo, false, "fav_reconcile");
	if (collections == NIL && TRIGGER_FIRED_AFTER(data->tg_event) &&
		!TRIGGER_FIRED_BY_TRUNCATE(data->tg_event))
	{
		fav_refuse_left(fcinfo);
		return PointerGetDatum(NULL);
	}
	attachment = fav_attachment_of_trigger(fcinfo, &when);
	if (attachment == NULL)
	{
		fav_refuse_left(fcinfo);
		if (TRIGGER_FIRED_BY_TRUNCATE(data->tg_event))
			truncate_left(fcinfo);
		return PointerGetDatum(NULL);
	}
	fav_keep_attachment(attachment);
	if (TRIGGER_FIRED_BEFORE(data->tg_event))
	{
		if (!attachment->is_sink)
			raise_protocol("fav_reconcile");
		raise_no_rows(attachment);
	}
	if (TRIGGER_FIRED_BY_TRUNCATE(data->tg_event))
	{
		watch_transactions();
		if (attachment->is_sink)
			fav_settle(attachment);
		else
			has_removed = true;
		fav_rebuild_after_truncate(attachment->schema, attachment->levels,
								   RelationGetRelid(data->tg_relation));
	}
	else
		while ((collection = find_collection(attachment,
											 GetCurrentTransactionNestLevel())) != NULL)
			reconcile_collection(collection);
	return PointerGetDatum(NULL);
}
