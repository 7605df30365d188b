/*
 * changes.c
 *		See changes.h.
 *
 * In memory where they fit, by a hash table of the keys; otherwise sorted by key,
 * on disk.  Either way keys come in their sort order: two statements that change the
 * same keys lock them in the same order.
 */
#include "changes.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

/* So few keys are found without an index or a hash of them. */
#define FEW_KEYS		8

#define END_OF_CHAIN	PG_UINT32_MAX

static Change *
append_change(Changes *changes)
{
	if (changes->count == changes->room)
	{
		changes->room = Max(2 * changes->room, 8);
		changes->list = changes->list == NULL ?
			MemoryContextAllocHuge(CurrentMemoryContext, changes->room * sizeof(Change)) :
			repalloc_huge(changes->list, changes->room * sizeof(Change));
	}
	return &changes->list[changes->count++];
}

static bool
same_key(const Maintenance *maintenance, Datum a, Datum b)
{
	return DatumGetBool(FunctionCall2Coll(&maintenance->key_type->eq_opr_finfo,
										  maintenance->attachment->key.collation, a, b));
}

static bool
keys_have_hashes(const Maintenance *maintenance)
{
	return OidIsValid(maintenance->key_type->hash_proc);
}

static uint32
hash_key(const Maintenance *maintenance, Datum key)
{
	if (!keys_have_hashes(maintenance))
		return 0;
	return DatumGetUInt32(FunctionCall1Coll(&maintenance->key_type->hash_proc_finfo,
											maintenance->attachment->key.collation, key));
}

static Datum
copy_key(const Maintenance *maintenance, Datum key)
{
	return datumCopy(key, maintenance->key_type->typbyval, maintenance->key_type->typlen);
}

/* Fill in a change whose element shall outlive the row it comes from. */
static void
copy_change(const Maintenance *maintenance, Change *change, Datum element, int32 delta)
{
	FavAttachment *attachment = maintenance->attachment;

	if (attachment->kind == FAV_KIND_UUID)
		element = datumCopy(element, false, UUID_LEN);
	else if (attachment->kind != FAV_KIND_INTEGER)
		element = datumCopy(element, false, -1);
	change->element = element;
	change->hash = fav_hash_datum(attachment->kind, element, attachment->params.seed);
	change->delta = delta;
	change->next = END_OF_CHAIN;
}

/*
 * What to do with a row that has both key and element.  They are gone after it
 * returns.  False: no more rows, please.
 */
typedef bool (*TakeFunction) (const Maintenance *maintenance, Datum key, Datum element, int32 delta,
							  void *argument);

static bool
take_row(const Maintenance *maintenance, TupleTableSlot *slot, int32 delta, TakeFunction take, void *argument)
{
	Datum		key;
	Datum		element;
	bool		isnull;

	key = slot_getattr(slot, maintenance->key_number, &isnull);
	if (isnull)
		return true;
	element = slot_getattr(slot, maintenance->element_number, &isnull);
	if (isnull)
		return true;
	return take(maintenance, key, fav_element_datum(maintenance->attachment, element), delta, argument);
}

/* Takes every row of a transition table, or as many as are wanted. */
static bool
take_rows(const Maintenance *maintenance, Relation relation, Tuplestorestate *table, int32 delta,
		  TakeFunction take, void *argument)
{
	TupleTableSlot *slot;
	int			pointer;
	bool		more = true;

	if (table == NULL)
		return true;
	/* other triggers read the same table: leave their positions alone */
	pointer = tuplestore_alloc_read_pointer(table, EXEC_FLAG_REWIND);
	tuplestore_select_read_pointer(table, pointer);
	tuplestore_rescan(table);
	slot = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsMinimalTuple);
	while (more && tuplestore_gettupleslot(table, true, false, slot))
	{
		CHECK_FOR_INTERRUPTS();
		more = take_row(maintenance, slot, delta, take, argument);
	}
	ExecDropSingleTupleTableSlot(slot);
	return more;
}

/* One row only: nothing to gather. */
static bool
apply_row(const Maintenance *maintenance, Datum key, Datum element, int32 delta, void *argument)
{
	Change		change;
	Changes		changes = {&change, 1, 1};

	(void) argument;
	copy_change(maintenance, &change, element, delta);
	fav_change_key(maintenance, copy_key(maintenance, key), &changes);
	return true;
}

/*
 * In memory: by a hash table of the keys, each with a chain of its changes.  Only
 * the keys are sorted, of which there are fewer, and copied once each.
 */

typedef struct KeyGroup
{
	Datum		key;
	uint32		hash;			/* of the key */
	char		status;			/* for the hash table */
	uint32		first;			/* of its changes */
	uint32		count;
} KeyGroup;

#define SH_PREFIX groups
#define SH_ELEMENT_TYPE KeyGroup
#define SH_KEY_TYPE Datum
#define SH_KEY key
#define SH_HASH_KEY(table, key) hash_key((table)->private_data, key)
#define SH_EQUAL(table, a, b) same_key((table)->private_data, a, b)
#define SH_STORE_HASH
#define SH_GET_HASH(table, group) ((group)->hash)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct Gathering
{
	groups_hash *groups;
	Changes		changes;
	uint32		most_groups;	/* that fit into memory */
} Gathering;

/* Room for this many changes; false if that is too much. */
static bool
begin_gathering(Maintenance *maintenance, Gathering *gathering, int64 rows)
{
	int64		memory = work_mem * INT64CONST(1024);
	int64		per_row = sizeof(Change);
	int64		per_key = 2 * sizeof(KeyGroup);

	/* estimates will do: the transition tables themselves are in memory or on disk */
	if (maintenance->attachment->kind != FAV_KIND_INTEGER)
		per_row += 64;
	if (!maintenance->key_type->typbyval)
		per_key += 32;
	if (rows > Min(memory / per_row, END_OF_CHAIN - 1) || (rows > FEW_KEYS && !keys_have_hashes(maintenance)))
		return false;
	gathering->most_groups = Max((memory - rows * per_row) / per_key, FEW_KEYS);
	gathering->groups = groups_create(CurrentMemoryContext, FEW_KEYS, maintenance);
	gathering->changes.list = MemoryContextAllocHuge(CurrentMemoryContext, Max(rows, 1) * sizeof(Change));
	gathering->changes.count = 0;
	gathering->changes.room = rows;
	return true;
}

static bool
gather(const Maintenance *maintenance, Datum key, Datum element, int32 delta, void *argument)
{
	Gathering  *gathering = argument;
	uint32		at = gathering->changes.count;
	Change	   *change = append_change(&gathering->changes);
	KeyGroup   *group;
	bool		found;

	group = groups_insert(gathering->groups, key, &found);
	if (!found)
	{
		group->key = copy_key(maintenance, key);
		group->first = END_OF_CHAIN;
		group->count = 0;
	}
	copy_change(maintenance, change, element, delta);
	change->next = group->first;
	group->first = at;
	group->count++;
	return gathering->groups->members <= gathering->most_groups;
}

static int
compare_groups(const void *a, const void *b, void *argument)
{
	return ApplySortComparator(((const KeyGroup *) a)->key, false, ((const KeyGroup *) b)->key, false,
							   (SortSupport) argument);
}

/* All groups, in the order of their keys. */
static KeyGroup *
sort_groups(const Maintenance *maintenance, const Gathering *gathering, uint32 *count)
{
	KeyGroup   *list = MemoryContextAllocHuge(CurrentMemoryContext,
											  Max(gathering->groups->members, 1) * sizeof(KeyGroup));
	groups_iterator iterator;
	KeyGroup   *group;

	*count = 0;
	groups_start_iterate(gathering->groups, &iterator);
	while ((group = groups_iterate(gathering->groups, &iterator)) != NULL)
		list[(*count)++] = *group;
	if (*count > 1)
	{
		SortSupportData sort;

		memset(&sort, 0, sizeof(sort));
		sort.ssup_cxt = CurrentMemoryContext;
		sort.ssup_collation = maintenance->attachment->key.collation;
		PrepareSortSupportFromOrderingOp(maintenance->attachment->key_less, &sort);
		qsort_arg(list, *count, sizeof(KeyGroup), compare_groups, &sort);
	}
	return list;
}

static void
apply_gathered(const Maintenance *maintenance, const Gathering *gathering)
{
	MemoryContext per_key = AllocSetContextCreate(CurrentMemoryContext, "fav key", ALLOCSET_DEFAULT_SIZES);
	uint32		count;
	KeyGroup   *list = sort_groups(maintenance, gathering, &count);
	MemoryContext old = MemoryContextSwitchTo(per_key);
	uint32		i;

	for (i = 0; i < count; i++)
	{
		Changes		changes = {NULL, 0, list[i].count};
		uint32		at;

		CHECK_FOR_INTERRUPTS();
		changes.list = MemoryContextAllocHuge(CurrentMemoryContext, changes.room * sizeof(Change));
		for (at = list[i].first; at != END_OF_CHAIN; at = gathering->changes.list[at].next)
			changes.list[changes.count++] = gathering->changes.list[at];
		fav_change_key(maintenance, list[i].key, &changes);
		MemoryContextReset(per_key);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(per_key);
}

/*
 * On disk: all rows sorted by key, and the changes of one key in memory.
 */

typedef struct Sorter
{
	Tuplesortstate *sort;
	TupleTableSlot *slot;
} Sorter;

static bool
put_into_sort(const Maintenance *maintenance, Datum key, Datum element, int32 delta, void *argument)
{
	Sorter	   *sorter = argument;
	TupleTableSlot *slot = sorter->slot;

	(void) maintenance;
	ExecClearTuple(slot);
	slot->tts_values[0] = key;
	slot->tts_values[1] = element;
	slot->tts_values[2] = Int32GetDatum(delta);
	memset(slot->tts_isnull, false, 3 * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(sorter->sort, slot);
	return true;
}

static void
apply_sorted(Maintenance *maintenance, Relation relation, Tuplestorestate *old_table, Tuplestorestate *new_table)
{
	FavAttachment *attachment = maintenance->attachment;
	TupleDesc	descriptor = CreateTemplateTupleDesc(3);
	AttrNumber	sort_column = 1;
	bool		nulls_first = false;
	Sorter		sorter;
	TupleTableSlot *sorted;
	MemoryContext per_key = AllocSetContextCreate(CurrentMemoryContext, "fav key", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	Changes		changes = {NULL, 0, 0};
	Datum		key = (Datum) 0;

	TupleDescInitEntry(descriptor, 1, "key", attachment->key.type, -1, 0);
	TupleDescInitEntryCollation(descriptor, 1, attachment->key.collation);
	TupleDescInitEntry(descriptor, 2, "element", fav_element_type(attachment->kind), -1, 0);
	TupleDescInitEntry(descriptor, 3, "delta", INT4OID, -1, 0);
	sorter.slot = MakeSingleTupleTableSlot(descriptor, &TTSOpsVirtual);
	sorter.sort = tuplesort_begin_heap(descriptor, 1, &sort_column, &attachment->key_less,
									   &attachment->key.collation, &nulls_first, work_mem, NULL, false);
	take_rows(maintenance, relation, old_table, -1, put_into_sort, &sorter);
	take_rows(maintenance, relation, new_table, 1, put_into_sort, &sorter);
	tuplesort_performsort(sorter.sort);

	sorted = MakeSingleTupleTableSlot(descriptor, &TTSOpsMinimalTuple);
	old = MemoryContextSwitchTo(per_key);
	while (tuplesort_gettupleslot(sorter.sort, true, false, sorted, NULL))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(sorted);
		if (changes.count > 0 && !same_key(maintenance, key, sorted->tts_values[0]))
		{
			fav_change_key(maintenance, key, &changes);
			MemoryContextReset(per_key);
			changes = (Changes) {NULL, 0, 0};
		}
		if (changes.count == 0)
			key = copy_key(maintenance, sorted->tts_values[0]);
		copy_change(maintenance, append_change(&changes), sorted->tts_values[1],
					DatumGetInt32(sorted->tts_values[2]));
	}
	if (changes.count > 0)
		fav_change_key(maintenance, key, &changes);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(per_key);
	ExecDropSingleTupleTableSlot(sorted);
	ExecDropSingleTupleTableSlot(sorter.slot);
	tuplesort_end(sorter.sort);
}

void
fav_change_statement(Maintenance *maintenance, Relation relation, Tuplestorestate *old_table, Tuplestorestate *new_table)
{
	int64		rows = (old_table ? tuplestore_tuple_count(old_table) : 0) +
		(new_table ? tuplestore_tuple_count(new_table) : 0);
	MemoryContext context;
	MemoryContext old;
	Gathering	gathering;

	if (rows == 1)
	{
		take_rows(maintenance, relation, old_table, -1, apply_row, NULL);
		take_rows(maintenance, relation, new_table, 1, apply_row, NULL);
		return;
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "fav changes", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	if (begin_gathering(maintenance, &gathering, rows) &&
		take_rows(maintenance, relation, old_table, -1, gather, &gathering) &&
		take_rows(maintenance, relation, new_table, 1, gather, &gathering))
		apply_gathered(maintenance, &gathering);
	else
	{
		MemoryContextReset(context);
		apply_sorted(maintenance, relation, old_table, new_table);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

void
fav_change_row(Maintenance *maintenance, TriggerData *data)
{
	bool		is_update = TRIGGER_FIRED_BY_UPDATE(data->tg_event);
	Gathering	gathering;

	begin_gathering(maintenance, &gathering, 2);
	if (!TRIGGER_FIRED_BY_INSERT(data->tg_event))
		take_row(maintenance, data->tg_trigslot, -1, gather, &gathering);
	if (!TRIGGER_FIRED_BY_DELETE(data->tg_event))
		take_row(maintenance, is_update ? data->tg_newslot : data->tg_trigslot, 1, gather, &gathering);
	apply_gathered(maintenance, &gathering);
}
