/*
 * maintain.c
 *		The triggers that keep filters true.
 *
 * A statement is one change: the rows of its transition tables are gathered by
 * key, what an UPDATE takes away and brings back is netted, and each key whose
 * pairs did change has its filter row locked, edited and written once.  Keys come
 * in their sort order, so two such statements never lock each other out.
 *
 * Why no element is lost.  Whoever changes pairs of a key writes a new version of
 * the key's filter row and so holds its lock until the end of the transaction,
 * even if the filter's bytes stay as they are.  Hence the changes of one key are
 * made one after the other, in an order in which each sees, in a snapshot taken
 * under the lock, the source as all before it have left it; at REPEATABLE READ
 * and above one that does not gets the usual serialization error.
 *
 * A pair that a statement took away may still be there: as a duplicate, put back
 * by a trigger of the user's, or by another part of the same MERGE.  So what goes
 * is looked up in the source, under the lock, unless a unique index and a
 * statement that did one thing only make that needless.  What comes needs no
 * such look unless statements on the source were nested.
 *
 * A filter must never delete what was not added to it: it would take away bits
 * of others.  That could happen in nested statements: a trigger of the user's
 * deletes a row whose insertion we have not heard of yet.  There, elements are
 * added before they are deleted, which makes it safe and clears no bits.
 *
 * Nesting is seen by means of a BEFORE STATEMENT trigger, see statements.c.  The
 * row trigger is for changes that fire no statement triggers of ours: rows that
 * logical replication applies, and statements on partitions that came later.
 */
#include "changes.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* So few elements are looked up one by one, see FAV_QUERY_PRESENT_FEW. */
#define FEW_ELEMENTS	16

/* Elements that go are deleted in groups of so many. */
#define EDIT_AT_ONCE	64

static int
compare_changes(const void *a, const void *b)
{
	uint64_t	left = ((const Change *) a)->hash;
	uint64_t	right = ((const Change *) b)->hash;

	return left < right ? -1 : left > right;
}

/*
 * One entry for each element of a key, with what all entries come to; those that
 * come to nothing fall out.
 */
static void
net_changes(Changes *changes)
{
	size_t		kept = 0;
	size_t		i = 0;

	qsort(changes->list, changes->count, sizeof(Change), compare_changes);
	while (i < changes->count)
	{
		Change		sum = changes->list[i++];

		for (; i < changes->count && changes->list[i].hash == sum.hash; i++)
			sum.delta += changes->list[i].delta;
		if (sum.delta != 0)
			changes->list[kept++] = sum;
	}
	changes->count = kept;
}

/*
 * Look elements up in the source, where that is needed, and let what is (still,
 * or no longer) there have the last word.
 */
static void
look_up(const Maintenance *maintenance, Datum key, Changes *changes)
{
	FavAttachment *attachment = maintenance->attachment;
	Oid			type = fav_element_type(attachment->kind);
	Datum	   *elements = MemoryContextAllocHuge(CurrentMemoryContext, changes->count * sizeof(Datum));
	int			count = 0;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum		values[2];
	size_t		i;

	for (i = 0; i < changes->count; i++)
		if (changes->list[i].delta < 0 ? maintenance->look_up_gone : maintenance->look_up_new)
		{
			elements[count++] = changes->list[i].element;
			changes->list[i].delta = -1;
		}
	if (count == 0)
	{
		pfree(elements);
		return;
	}
	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	values[0] = key;
	values[1] = PointerGetDatum(construct_array(elements, count, type, typlen, typbyval, typalign));
	if (SPI_execute_plan(fav_attachment_plan(attachment, count <= FEW_ELEMENTS ?
											 FAV_QUERY_PRESENT_FEW : FAV_QUERY_PRESENT_MANY),
						 values, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not look for elements in the source");
	for (i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		Datum		element = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
		Change		wanted;
		Change	   *found;

		wanted.hash = fav_hash_datum(attachment->kind, element, attachment->params.seed);
		found = bsearch(&wanted, changes->list, changes->count, sizeof(Change), compare_changes);
		if (found != NULL)
			found->delta = 1;
	}
	SPI_freetuptable(SPI_tuptable);
	pfree(DatumGetPointer(values[1]));
	pfree(elements);
}

/* In the filter that is edited; one that the user made may have another seed than ours. */
static inline uint64_t
hash_in(const FavEditor *editor, const FavAttachment *attachment, const Change *change)
{
	uint64_t	seed = editor->filter.params.seed;

	if (likely(seed == attachment->params.seed))
		return change->hash;
	return fav_hash_datum(attachment->kind, change->element, seed);
}

/* All that goes, or all that comes. */
static void
edit_each(const Maintenance *maintenance, FavEditor *editor, const Changes *changes, bool comes)
{
	uint64_t	going[EDIT_AT_ONCE];
	size_t		ngoing = 0;
	size_t		i;

	for (i = 0; i < changes->count; i++)
	{
		const Change *change = &changes->list[i];
		uint64_t	hash;

		if (i % FAV_INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if ((change->delta > 0) != comes)
			continue;
		hash = hash_in(editor, maintenance->attachment, change);
		if (comes || maintenance->add_first)
			fav_require(fav_editor_add(editor, hash));
		if (comes)
			continue;
		going[ngoing++] = hash;
		/* what was just added had better go while it is among the recent ones */
		if (maintenance->add_first || ngoing == EDIT_AT_ONCE)
		{
			fav_require(fav_editor_del_many(editor, going, ngoing));
			ngoing = 0;
		}
	}
	fav_require(fav_editor_del_many(editor, going, ngoing));
}

static size_t
count_new(const Changes *changes)
{
	size_t		count = 0;
	size_t		i;

	for (i = 0; i < changes->count; i++)
		count += changes->list[i].delta > 0;
	return count;
}

static FavHashSet
set_with_room(size_t room)
{
	FavHashSet	set = {0};

	set.hashes = MemoryContextAllocHuge(CurrentMemoryContext, room * sizeof(uint64));
	set.room = room;
	return set;
}

/*
 * A filter without slices knows the hash of each of its elements.  If it is about
 * to get its first slice, let that have the right size at once, and be filled at
 * once: much faster than one by one, and not worn out as soon as it is full.
 */
static Datum
outgrow_recent(const Maintenance *maintenance, const FavEditor *editor, const Changes *changes)
{
	const FavFilter *filter = &editor->filter;
	FavHashSet	set = set_with_room(filter->nrecent + count_new(changes));
	size_t		i;

	for (i = 0; i < filter->nrecent; i++)
		set.hashes[set.count++] = fav_load64(filter->recent + 8 * i);
	for (i = 0; i < changes->count; i++)
		if (changes->list[i].delta > 0)
			set.hashes[set.count++] = hash_in(editor, maintenance->attachment, &changes->list[i]);
	return fav_build_filter(&filter->params, &set);
}

/* The filter with the changes made.  *worn: it should be rebuilt. */
static Datum
edit_filter(const Maintenance *maintenance, Datum old, bool isnull, const Changes *changes, bool *worn)
{
	FavEditor	editor;
	const FavFilter *result;
	FavFilter	filter;
	FavProblem	problem;
	Datum		datum = old;

	*worn = false;
	if (isnull)
		fav_editor_new(&editor, &maintenance->attachment->params);
	else
	{
		struct varlena *bytes = PG_DETOAST_DATUM_PACKED(old);
		size_t		size = VARSIZE_ANY_EXHDR(bytes);

		if (fav_open(&filter, (uint8_t *) VARDATA_ANY(bytes), size, size, &problem) != FAV_OK)
			fav_raise_corrupted(&problem);
		fav_editor_open(&editor, &filter);
	}

	/* what goes first: it makes room */
	edit_each(maintenance, &editor, changes, false);
	/* the editor puts deletes off, and here its recent hashes are looked at */
	if (editor.filter.nslices == 0)
		fav_require(fav_editor_finish(&editor, &result));
	if (editor.filter.nslices == 0 && editor.filter.nrecent + count_new(changes) > FAV_RECENT_MAX)
		datum = outgrow_recent(maintenance, &editor, changes);
	else
	{
		edit_each(maintenance, &editor, changes, true);
		fav_require(fav_editor_finish(&editor, &result));
		*worn = fav_is_worn(result);
		/* an unchanged one need not be written to TOAST again */
		if (isnull || editor.changed)
			datum = fav_make_datum(result);
	}
	fav_editor_close(&editor);
	return datum;
}

/* What fav_apply() is asked to do, and its answer. */
typedef struct Application
{
	const Maintenance *maintenance;
	const Changes *changes;
	Oid			user;			/* on whose behalf: the owner of the filters */
	bool		worn;
} Application;

/* That of the UPDATE that is running, if one is. */
static Application *current_application = NULL;

PG_FUNCTION_INFO_V1(fav_apply);

/*
 * The function in the UPDATE of apply_changes().  That UPDATE may fire triggers, and
 * these others, written by anybody: only who may read the filter gets an answer.
 */
Datum
fav_apply(PG_FUNCTION_ARGS)
{
	Application *application = current_application;
	bool		isnull = PG_ARGISNULL(0);

	if (application == NULL || application->user != GetUserId())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("fav_apply can only be called by fav_maintain")));
	return edit_filter(application->maintenance, isnull ? (Datum) 0 : PG_GETARG_DATUM(0), isnull,
					   application->changes, &application->worn);
}

/*
 * The common case, nothing to look up: let a single UPDATE lock, edit and write.
 * False if the key has no row.
 */
static bool
apply_changes(const Maintenance *maintenance, Datum key, const Changes *changes)
{
	FavAttachment *attachment = maintenance->attachment;
	SPIPlanPtr	plan = fav_attachment_plan(attachment, FAV_QUERY_APPLY);
	Application application = {maintenance, changes, GetUserId(), false};
	Application *outer = current_application;

	current_application = &application;
	PG_TRY();
	{
		if (SPI_execute_plan(plan, &key, NULL, false, 0) != SPI_OK_UPDATE)
			elog(ERROR, "could not update a filter");
	}
	PG_FINALLY();
	{
		current_application = outer;
	}
	PG_END_TRY();
	if (SPI_processed == 0)
		return false;
	if (application.worn)
		fav_set_filter(attachment, key, fav_build_key(attachment, key));
	return true;
}

/* A filter for a key that has none yet. */
static Datum
first_filter(const Maintenance *maintenance, const Changes *changes)
{
	FavHashSet	set = set_with_room(changes->count);
	size_t		i;

	for (i = 0; i < changes->count; i++)
		if (changes->list[i].delta > 0)
			set.hashes[set.count++] = changes->list[i].hash;
	return fav_build_filter(&maintenance->attachment->params, &set);
}

void
fav_change_key(const Maintenance *maintenance, Datum key, Changes *changes)
{
	FavAttachment *attachment = maintenance->attachment;
	bool		any_new = false;
	bool		any_look_up = false;
	Datum		filter = (Datum) 0;
	bool		isnull;
	bool		worn;
	int			attempt;
	size_t		i;

	if (!maintenance->distinct)
		net_changes(changes);
	if (changes->count == 0)
		return;
	for (i = 0; i < changes->count; i++)
	{
		if (changes->list[i].delta > 0)
			any_new = true;
		if (changes->list[i].delta < 0 ? maintenance->look_up_gone : maintenance->look_up_new)
			any_look_up = true;
	}
	/* to look up is to search among sorted changes */
	Assert(!(maintenance->distinct && any_look_up));
	if (!any_look_up && apply_changes(maintenance, key, changes))
		return;

	for (attempt = 0; !fav_lock_filter(attachment, key, &filter, &isnull); attempt++)
	{
		/* Without a filter there is nothing to take an element from. */
		if (!any_new)
			return;
		/* What must be looked up must be so under the lock. */
		if (fav_insert_filter(attachment, key,
							  any_look_up ? attachment->empty : first_filter(maintenance, changes)) &&
			!any_look_up)
			return;
		/* Somebody else was first: wait for their row.  They may yet roll back. */
		CHECK_FOR_INTERRUPTS();
		if (attempt == 100)
			ereport(ERROR,
					(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
					 errmsg("could not insert a filter into table \"%s\"", get_rel_name(attachment->target)),
					 errdetail("A trigger or a rule of the table prevented it; elements would be missing.")));
	}
	if (any_look_up)
		look_up(maintenance, key, changes);
	filter = edit_filter(maintenance, filter, isnull, changes, &worn);
	fav_set_filter(attachment, key, worn ? fav_build_key(attachment, key) : filter);
}

/*
 * The events
 */

/*
 * The truncated table is locked against everybody.  If it is all there is, all
 * filters are empty; if it is one of several, only the others know.
 */
static void
maintain_truncate(FavWatch *watch)
{
	FavAttachment *attachment = &watch->attachment;

	if (watch->relation == attachment->source && !has_subclass(attachment->source))
	{
		if (SPI_execute_plan(fav_attachment_plan(attachment, FAV_QUERY_EMPTY), &attachment->empty, NULL, false, 0) < 0)
			elog(ERROR, "could not empty filters");
	}
	else
	{
		fav_lock_source(attachment->source, ShareRowExclusiveLock);
		fav_build_all(attachment, false);
	}
}

static FavTrigger
classify_event(TriggerData *data)
{
	TriggerEvent event = data->tg_event;

	if (TRIGGER_FIRED_FOR_ROW(event))
		return FAV_TRIGGER_ROW;
	if (TRIGGER_FIRED_BEFORE(event))
		return FAV_TRIGGER_BEFORE;
	if (TRIGGER_FIRED_BY_INSERT(event))
		return FAV_TRIGGER_INSERT;
	if (TRIGGER_FIRED_BY_UPDATE(event))
		return FAV_TRIGGER_UPDATE;
	if (TRIGGER_FIRED_BY_DELETE(event))
		return FAV_TRIGGER_DELETE;
	return FAV_TRIGGER_TRUNCATE;
}

static void
raise_forged(TriggerData *data)
{
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("trigger \"%s\" of table \"%s\" was not made by fav_attach",
					data->tg_trigger->tgname, RelationGetRelationName(data->tg_relation)),
			 errhint("Drop the trigger, and use fav_attach.")));
}

/* The number of the attachment, a trigger's only argument. */
static int32
trigger_number(TriggerData *data)
{
	Trigger    *definition = data->tg_trigger;

	if (definition->tgnargs != 1 || strlen(definition->tgargs[0]) > 9 ||
		strspn(definition->tgargs[0], "0123456789") != strlen(definition->tgargs[0]))
		raise_forged(data);
	return atoi(definition->tgargs[0]);
}

/*
 * A trigger must be exactly what fav_attach makes: its name, which no two
 * triggers of a table share, says for which attachment and event it is, and must
 * agree with its argument, with the event, and with the table of attachments.
 */
static void
check_trigger(TriggerData *data, FavTrigger trigger, int32 number)
{
	char	   *name = fav_trigger_name(number, trigger);

	if (strcmp(data->tg_trigger->tgname, name) != 0 ||
		(trigger == FAV_TRIGGER_ROW && !TRIGGER_FIRED_AFTER(data->tg_event)) ||
		(trigger == FAV_TRIGGER_INSERT && data->tg_newtable == NULL) ||
		(trigger == FAV_TRIGGER_UPDATE && (data->tg_newtable == NULL || data->tg_oldtable == NULL)) ||
		(trigger == FAV_TRIGGER_DELETE && data->tg_oldtable == NULL))
		raise_forged(data);
	pfree(name);
}

/* What the trigger watches; to be closed again. */
static FavWatch *
open_watch(Oid function, TriggerData *data, FavTrigger trigger)
{
	int32		number = trigger_number(data);
	FavWatch   *watch = fav_watch_find(function, RelationGetRelid(data->tg_relation), number);

	if (watch == NULL || watch->triggers[trigger] != data->tg_trigger->tgoid)
	{
		check_trigger(data, trigger, number);
		if (watch == NULL)
			watch = fav_watch_load(function, data->tg_relation, number);
		watch->triggers[trigger] = data->tg_trigger->tgoid;
	}
	fav_watch_use(watch);
	return watch;
}

static CommandId
row_command(TriggerData *data)
{
	if (TRIGGER_FIRED_BY_DELETE(data->tg_event))
		return HeapTupleHeaderGetCmax(data->tg_trigtuple->t_data);
	if (TRIGGER_FIRED_BY_UPDATE(data->tg_event))
		return HeapTupleHeaderGetCmin(data->tg_newtuple->t_data);
	return HeapTupleHeaderGetCmin(data->tg_trigtuple->t_data);
}

/* Did this transaction insert the row that is now changed? */
static bool
row_is_ours(TriggerData *data)
{
	return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(data->tg_trigtuple->t_data));
}

/* Has the row that this event wrote been changed again since? */
static bool
row_is_outdated(TriggerData *data)
{
	HeapTupleHeader header = TRIGGER_FIRED_BY_UPDATE(data->tg_event) ?
		data->tg_newtuple->t_data : data->tg_trigtuple->t_data;

	return !(header->t_infomask & HEAP_XMAX_INVALID) && !HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask);
}

PG_FUNCTION_INFO_V1(fav_maintain);

Datum
fav_maintain(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	FavTrigger	trigger;
	FavWatch   *watch;
	FavAttachment *attachment;
	FavStatement statement;
	Maintenance maintenance;
	FavRole		role;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("fav_maintain can only be called as a trigger")));
	trigger = classify_event(data);
	watch = open_watch(fcinfo->flinfo->fn_oid, data, trigger);
	attachment = &watch->attachment;
	fav_attachment_check_rights(attachment);

	if (trigger == FAV_TRIGGER_BEFORE)
	{
		fav_statement_begins(watch);
		fav_watch_close(watch);
		return PointerGetDatum(NULL);
	}
	if (trigger == FAV_TRIGGER_ROW && fav_statement_is_open() && fav_statement_brings(watch, row_command(data)))
	{
		fav_watch_close(watch);
		return PointerGetDatum(NULL);
	}

	fav_role_begin(&role, attachment->target_owner, attachment->guarded);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");

	maintenance.attachment = attachment;
	maintenance.key_number = watch->key_number;
	maintenance.element_number = watch->element_number;
	maintenance.key_type = lookup_type_cache(attachment->key.type, TYPECACHE_EQ_OPR_FINFO | TYPECACHE_HASH_PROC_FINFO);
	if (unlikely(attachment->renamed))
		fav_catalog_rename(attachment);
	if (trigger == FAV_TRIGGER_TRUNCATE)
		maintain_truncate(watch);
	else if (trigger == FAV_TRIGGER_ROW)
	{
		/* rows of one statement come one by one: what goes may have come back */
		maintenance.look_up_gone = true;
		maintenance.look_up_new = !TRIGGER_FIRED_BY_DELETE(data->tg_event) && row_is_outdated(data);
		maintenance.add_first = !TRIGGER_FIRED_BY_INSERT(data->tg_event) && row_is_ours(data);
		maintenance.distinct = false;
		fav_change_row(&maintenance, data);
	}
	else
	{
		fav_statement_ends(watch, &statement);
		maintenance.look_up_gone = !attachment->unique || statement.several || statement.nested;
		maintenance.look_up_new = statement.nested;
		maintenance.add_first = statement.nested;
		maintenance.distinct = attachment->unique && !statement.several && !statement.nested &&
			trigger != FAV_TRIGGER_UPDATE;
		fav_change_statement(&maintenance, data->tg_relation,
							 trigger == FAV_TRIGGER_INSERT ? NULL : data->tg_oldtable,
							 trigger == FAV_TRIGGER_DELETE ? NULL : data->tg_newtable);
	}
	SPI_finish();
	fav_role_end(&role);
	fav_watch_close(watch);
	return PointerGetDatum(NULL);
}
