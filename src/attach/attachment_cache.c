/*
 * attachment_cache.c
 *		Attachments that are ready for use.
 *
 * An attachment is read from the catalogs once and kept until something changes that it was read
 * from.  Then it is stale: look-ups ignore it, and it is freed when its last user is gone.
 * Users are memory contexts: an attachment lives at least as long as the context that was current
 * when it was looked up.
 *
 * A cached attachment may be stale unless its user has locked the levels table.  Reconciling
 * takes that lock first.
 */
#include "attach/attachment_cache.h"
#include "attach/catalogs.h"
#include "attach/columns.h"
#include "attach/definition.h"
#include "attach/owner.h"
#include "attach/spread.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

typedef struct CachedTrigger
{
	Oid			trigger;		/* hash key */
	FavWhen		when;
	FavAttachment *attachment;
} CachedTrigger;

/* A memory context that uses an attachment. */
typedef struct User
{
	MemoryContextCallback callback;
	FavAttachment *attachment;
} User;

static HTAB *triggers = NULL;
static List *attachments = NIL; /* also those that are stale or being read */
static bool has_stale = false;

/*
 * Changes
 */

static void
relation_changed(Datum arg pg_attribute_unused(), Oid relation)
{
	ListCell   *cell;

	foreach(cell, attachments)
	{
		FavAttachment *attachment = lfirst(cell);

		if (!attachment->is_stale &&
			(!OidIsValid(relation) || list_member_oid(attachment->relations, relation)))
			attachment->is_stale = has_stale = true;
	}
}

/* Two objects may have the same hash.  Then an attachment is read again without need. */
static void
object_changed(Datum arg pg_attribute_unused(), int cache pg_attribute_unused(), uint32 hash)
{
	ListCell   *cell;

	foreach(cell, attachments)
	{
		FavAttachment *attachment = lfirst(cell);

		if (hash == 0 || list_member_int(attachment->objects, (int) hash))
			attachment->is_stale = has_stale = true;
	}
}

static void
watch_relations(FavAttachment *attachment, const List *relations)
{
	MemoryContext old = MemoryContextSwitchTo(attachment->context);

	attachment->relations = list_concat_unique_oid(attachment->relations, relations);
	MemoryContextSwitchTo(old);
}

static void
watch_object(FavAttachment *attachment, int cache, Oid object)
{
	MemoryContext old = MemoryContextSwitchTo(attachment->context);

	attachment->objects = lappend_int(attachment->objects, (int)
									  GetSysCacheHashValue1(cache, ObjectIdGetDatum(object)));
	MemoryContextSwitchTo(old);
}

/*
 * Watch every object whose name is in the kept queries.  Functions and types of the extension
 * move to other schemas together.
 */
static void
watch_names(FavAttachment *attachment)
{
	Oid			operator = attachment->key_type->eq_opr;
	Oid			base_type = attachment->key_type->btree_opintype;
	const Oid	namespaces[] = {
		attachment->schema,
		get_rel_namespace(attachment->source),
		get_rel_namespace(attachment->levels),
		fav_oid_of(OPEROID, operator, Anum_pg_operator_oprnamespace),
		fav_oid_of(TYPEOID, attachment->key.type, Anum_pg_type_typnamespace),
		fav_oid_of(TYPEOID, base_type, Anum_pg_type_typnamespace)
	};
	size_t		i;

	watch_object(attachment, PROCOID, attachment->function);
	watch_object(attachment, OPEROID, operator);
	watch_object(attachment, TYPEOID, attachment->key.type);
	watch_object(attachment, TYPEOID, base_type);
	for (i = 0; i < lengthof(namespaces); i++)
		watch_object(attachment, NAMESPACEOID, namespaces[i]);
}

/*
 * Users
 */

static void
end_use(void *arg)
{
	FavAttachment *attachment = ((User *) arg)->attachment;

	if (--attachment->nusers == 0 && attachment->is_stale)
		MemoryContextDelete(attachment->context);
}

/* Keep an attachment until the current memory context is reset. */
void
fav_keep_attachment(FavAttachment *attachment)
{
	User	   *user = palloc(sizeof(User));

	user->callback.func = end_use;
	user->callback.arg = user;
	user->attachment = attachment;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &user->callback);
	attachment->nusers++;
}

static void
free_unused(void)
{
	List	   *all = has_stale ? list_copy(attachments) : NIL;
	ListCell   *cell;

	has_stale = false;
	foreach(cell, all)
	{
		FavAttachment *attachment = lfirst(cell);

		if (attachment->is_stale && attachment->is_ready && attachment->nusers == 0)
			MemoryContextDelete(attachment->context);
	}
	list_free(all);
}

/*
 * Attachments
 */

static void
open_cache(void)
{
	static const int caches[] = {NAMESPACEOID, OPEROID, PROCOID, TYPEOID};
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(CachedTrigger)};
	size_t		i;

	if (triggers != NULL)
		return;
	triggers = hash_create("fav triggers", 16, &control, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	for (i = 0; i < lengthof(caches); i++)
		CacheRegisterSyscacheCallback(caches[i], object_changed, (Datum) 0);
}

/* Called when its memory context is deleted. */
static void
forget_attachment(void *arg)
{
	FavAttachment *attachment = arg;
	HASH_SEQ_STATUS scan;
	CachedTrigger *cached;
	int			i;

	attachments = list_delete_ptr(attachments, attachment);
	hash_seq_init(&scan, triggers);
	while ((cached = hash_seq_search(&scan)) != NULL)
		if (cached->attachment == attachment)
			(void) hash_search(triggers, &cached->trigger, HASH_REMOVE, NULL);
	for (i = 0; i < FAV_NQUERIES; i++)
		if (attachment->plans[i] != NULL)
			SPI_freeplan(attachment->plans[i]);
}

/*
 * An attachment that has nothing yet but is watched: what changes while it is being read must not
 * go unnoticed.  An error frees it with the current memory context.
 */
static FavAttachment *
begin_attachment(Oid levels)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fav attachment",
												  ALLOCSET_SMALL_SIZES);
	FavAttachment *attachment = MemoryContextAllocZero(context, sizeof(FavAttachment));
	MemoryContextCallback *callback = MemoryContextAlloc(context, sizeof(MemoryContextCallback));
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	attachments = lappend(attachments, attachment);
	MemoryContextSwitchTo(old);
	callback->func = forget_attachment;
	callback->arg = attachment;
	MemoryContextRegisterResetCallback(context, callback);
	attachment->context = context;
	watch_relations(attachment, list_make1_oid(levels));
	return attachment;
}

/* Read an attachment and make it ready. */
static FavAttachment *
read_attachment(Oid schema, Oid levels)
{
	FavAttachment *attachment = begin_attachment(levels);
	FavAttachment found;
	MemoryContext old;

	if (fav_read_definition(schema, levels, &found))
		watch_relations(attachment, fav_list_family(found.source));
	fav_raise_obstacle(fav_read_attachment(schema, levels, &found));
	found.context = attachment->context;
	found.relations = attachment->relations;
	found.is_stale = attachment->is_stale;
	*attachment = found;
	watch_names(attachment);
	fav_read_indexes(attachment);
	old = MemoryContextSwitchTo(attachment->context);
	attachment->empty = fav_make_recent(&attachment->params);
	attachment->pair = CreateTemplateTupleDesc(attachment->at.number != 0 ? 3 : 2);
	TupleDescInitEntry(attachment->pair, 1, "key", attachment->key.type, -1, 0);
	TupleDescInitEntry(attachment->pair, 2, "element", attachment->element.type, -1, 0);
	if (attachment->at.number != 0)
		TupleDescInitEntry(attachment->pair, 3, "period", INT4OID, -1, 0);
	TupleDescFinalize(attachment->pair);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(attachment->context, TopMemoryContext);
	attachment->is_ready = true;
	return attachment;
}

static FavAttachment *
find_attachment(Oid levels)
{
	FavAttachment *attachment = NULL;
	ListCell   *cell;

	foreach(cell, attachments)
	{
		FavAttachment *other = lfirst(cell);

		if (other->levels == levels && other->is_ready && !other->is_stale)
			attachment = other;
	}
	return attachment;
}

/*
 * Lock the tables of an attachment for reading: the source first, as all others do.  Nothing is
 * known for sure of a levels table that is not locked.
 */
void
fav_lock_for_reading(Oid schema, Oid levels)
{
	FavAttachment *attachment = find_attachment(levels);
	FavAttachment definition;

	if (attachment != NULL)
		LockRelationOid(attachment->source, AccessShareLock);
	else if (fav_read_definition(schema, levels, &definition))
		LockRelationOid(definition.source, AccessShareLock);
	else
		return;
	LockRelationOid(levels, AccessShareLock);
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(levels)))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("the filters were detached while the query waited for their tables"),
				 errhint("Run the query again.")));
}

/* For use while the current memory context lasts. */
FavAttachment *
fav_attachment_of_levels(Oid schema, Oid levels)
{
	FavAttachment *attachment;

	open_cache();
	free_unused();
	attachment = find_attachment(levels);
	if (attachment == NULL)
		attachment = read_attachment(schema, levels);
	fav_keep_attachment(attachment);
	return attachment;
}

/*
 * Lock the source with its partitions and children before it is read as its owner, and check
 * that none of them has got another owner in the meantime.  Locks last as long as the
 * subtransaction that takes them.
 */
void
fav_lock_source(FavAttachment *attachment)
{
	FavAttachment now;

	if (!attachment->is_stale && attachment->lock_transaction == fav_local_transaction() &&
		attachment->lock_subtransaction == GetCurrentSubTransactionId())
		return;
	LockRelationOid(attachment->source, AccessShareLock);
	(void) find_all_inheritors(attachment->source, AccessShareLock, NULL);
	attachment->lock_transaction = fav_local_transaction();
	attachment->lock_subtransaction = GetCurrentSubTransactionId();
	if (!attachment->is_stale)
		return;
	fav_raise_obstacle(fav_read_attachment(attachment->schema, attachment->levels, &now));
	if (now.owner != attachment->owner)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("owner of table \"%s\" changed while its filters were being written",
						get_rel_name(attachment->source))));
}

/*
 * Triggers
 */

/* A trigger names no table, or one that has no shard for the range of the trigger's shard. */
static void
raise_no_levels(const Trigger *trigger, Oid relation, const FavWhen *when)
{
	if (OidIsValid(when->named))
		fav_raise_obstacle(fav_check_spread(fav_shell(relation), when->named));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the filters that trigger \"%s\" of table \"%s\" names are not here",
					trigger->tgname, get_rel_name(relation)),
			 TRIGGER_FOR_BEFORE(trigger->tgtype) ?
			 errhint("Give their table its name back. If Citus has converted it, copy it before"
					 " fav_detach drops it.") :
			 errhint("Give their table its name back, or call fav_detach, then fav_attach, for"
					 " table \"%s\".", get_rel_name(fav_shell(relation)))));
}

/* The attachment that a trigger speaks of; NULL if its table is not of the source's family. */
static FavAttachment *
read_trigger(Oid schema, const Trigger *trigger, Oid relation, bool is_of_rows, FavWhen *when)
{
	FavAttachment *attachment;
	FavAttachment definition;

	if (!fav_read_when(relation, trigger->tgqual, is_of_rows, when))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("trigger \"%s\" was not made by fav_attach", trigger->tgname),
				 errhint("Drop the trigger.")));
	if (fav_read_definition(schema, when->named, &definition) &&
		fav_is_being_copied(relation, definition.source))
		return NULL;
	if (!OidIsValid(when->levels))
		raise_no_levels(trigger, relation, when);
	if (fav_read_definition(schema, when->levels, &definition) &&
		!fav_is_in_family(relation, definition.source))
	{
		if (fav_shell(definition.source) == relation)
			fav_raise_obstacle(fav_check_spread(definition.source, when->levels));
		if (fav_spread() != NULL)
			fav_spread()->check_stranger(relation, definition.source);
		return NULL;
	}
	attachment = fav_attachment_of_levels(schema, when->levels);
	if (is_of_rows &&
		(strcmp(get_attname(relation, when->key, false), NameStr(attachment->key.name)) != 0 ||
		 strcmp(get_attname(relation, when->element, false),
				NameStr(attachment->element.name)) != 0))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("trigger \"%s\" names other columns than the filters of table \"%s\"",
						trigger->tgname, get_rel_name(attachment->source)),
				 errhint("Drop the trigger.")));
	return attachment;
}

/* What is kept of the trigger that is being called; NULL if it is not known any more. */
static CachedTrigger *
find_trigger(const TriggerData *data)
{
	CachedTrigger *cached;

	open_cache();
	cached = hash_search(triggers, &data->tg_trigger->tgoid, HASH_FIND, NULL);
	return cached != NULL && !cached->attachment->is_stale ? cached : NULL;
}

/*
 * The attachment of the trigger that is being called, and what its WHEN clause says.  NULL if
 * its table is not of the source's family.  That is not remembered: ATTACH PARTITION sends no
 * invalidation for the parent's other descendants.
 *
 * Whoever looks an attachment up, or runs code of others, while using the result, must keep it.
 */
FavAttachment *
fav_attachment_of_trigger(FunctionCallInfo fcinfo, FavWhen *when)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	Oid			relation = RelationGetRelid(data->tg_relation);
	CachedTrigger *cached = find_trigger(data);
	FavAttachment *attachment;

	if (cached != NULL)
	{
		*when = cached->when;
		return cached->attachment;
	}
	attachment = read_trigger(fav_schema_of_function(fcinfo), data->tg_trigger, relation,
							  TRIGGER_FIRED_FOR_ROW(data->tg_event), when);
	if (attachment != NULL && !attachment->is_stale)
	{
		watch_relations(attachment, list_make1_oid(relation));
		cached = hash_search(triggers, &data->tg_trigger->tgoid, HASH_ENTER, NULL);
		cached->when = *when;
		cached->attachment = attachment;
	}
	return attachment;
}

/*
 * Has the table of the trigger that is being called left the source of these filters, with its
 * triggers?  Tables of others do not count: anybody can make such a trigger.
 */
bool
fav_has_left(FunctionCallInfo fcinfo, Oid *source, Oid *levels)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	Oid			relation = RelationGetRelid(data->tg_relation);
	FavAttachment definition;
	FavWhen		when;

	if (find_trigger(data) != NULL ||
		!fav_read_when(relation, data->tg_trigger->tgqual,
					   TRIGGER_FIRED_FOR_ROW(data->tg_event), &when) ||
		!fav_read_definition(fav_schema_of_function(fcinfo), when.levels, &definition))
		return false;
	*source = definition.source;
	*levels = when.levels;
	return !fav_is_being_copied(relation, definition.source) &&
		!fav_is_in_family(relation, definition.source) &&
		fav_owner_of(relation) == fav_owner_of(definition.source);
}

/*
 * A table that has left the source of its triggers is about to get rows, which are not collected.
 * If it came back, with these triggers, the filters would lack them.
 */
void
fav_refuse_left(FunctionCallInfo fcinfo)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	Oid			relation = RelationGetRelid(data->tg_relation);
	Oid			source;
	Oid			levels;

	if ((!TRIGGER_FIRED_BY_INSERT(data->tg_event) && !TRIGGER_FIRED_BY_UPDATE(data->tg_event)) ||
		!fav_has_left(fcinfo, &source, &levels))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" has left table \"%s\", whose filters still have its rows",
					get_rel_name(relation), get_rel_name(source)),
			 errhint("%sCall fav_rebuild(%s) before you write to it.",
					 get_rel_relispartition(relation) ?
					 "If its detachment is pending, run DETACH PARTITION ... FINALIZE. " : "",
					 quote_literal_cstr(fav_relation_name(source)))));
}

/*
 * Arguments of SQL functions
 */

Oid
fav_source_argument(FunctionCallInfo fcinfo)
{
	Oid			source;

	fav_refuse_null(PG_ARGISNULL(0), "source");
	source = PG_GETARG_OID(0);
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(source)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", source)));
	return source;
}

/*
 * The attachment of the arguments (source, ..., name), for the owner of the source.  Locks keep
 * the owner of both tables from being changed.
 */
FavAttachment *
fav_attachment_of_arguments(FunctionCallInfo fcinfo, int name_argument, bool may_be_spread)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	Oid			source = fav_source_argument(fcinfo);
	const char *name = PG_ARGISNULL(name_argument) ? NULL :
		NameStr(*PG_GETARG_NAME(name_argument));
	FavAttachment *attachment;
	Oid			levels;

	fav_lock_as_owner(source, AccessShareLock);
	if (!may_be_spread && fav_spread() != NULL)
		fav_spread()->refuse_call(source, fcinfo->flinfo->fn_oid);
	levels = fav_choose_levels(schema, source, name);
	LockRelationOid(levels, AccessShareLock);
	attachment = fav_attachment_of_levels(schema, levels);
	fav_lock_source(attachment);
	return attachment;
}
