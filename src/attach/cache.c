/*
 * cache.c
 *		Attachments that are ready for use.
 *
 * The cache lives in one memory context.  When a table in it changes, the whole context is
 * handed to the transaction, which frees it at its end: a function further up the stack may
 * still use an attachment.
 *
 * A cached attachment may be stale unless its user has locked the levels table.  Reconciling
 * takes that lock first.
 */
#include "attach.h"

#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/trigger.h"
#include "storage/lmgr.h"
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

static MemoryContext cache = NULL;	/* holds all of these */
static HTAB *triggers;
static List *attachments;
static List *watched;			/* relations whose changes make the cache stale */

static bool cache_is_stale = false;

static void
relation_changed(Datum arg pg_attribute_unused(), Oid relation)
{
	if (cache != NULL && (!OidIsValid(relation) || list_member_oid(watched, relation)))
		cache_is_stale = true;
}

/* Names in queries change with schemas, operators and the extension's own functions. */
static void
name_changed(Datum arg pg_attribute_unused(), int id pg_attribute_unused(),
			 uint32 hash pg_attribute_unused())
{
	cache_is_stale = true;
}

/* Make the cache empty if it is stale. */
static void
open_cache(void)
{
	static bool is_registered = false;
	HASHCTL		control;

	if (cache != NULL && !cache_is_stale)
		return;
	if (cache != NULL)
		MemoryContextSetParent(cache, TopTransactionContext);
	if (!is_registered)
	{
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, name_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(OPEROID, name_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(PROCOID, name_changed, (Datum) 0);
		is_registered = true;
	}
	cache = NULL;
	cache_is_stale = false;
	attachments = watched = NIL;
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(Oid);
	control.entrysize = sizeof(CachedTrigger);
	control.hcxt = AllocSetContextCreate(TopMemoryContext, "fav attachments",
										 ALLOCSET_DEFAULT_SIZES);
	triggers = hash_create("fav triggers", 16, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	cache = control.hcxt;
}

static void
free_plans(void *arg)
{
	FavAttachment *attachment = arg;
	int			i;

	for (i = 0; i < FAV_NQUERIES; i++)
		if (attachment->plans[i] != NULL)
			SPI_freeplan(attachment->plans[i]);
}

static void
watch(const List *relations)
{
	MemoryContext old = MemoryContextSwitchTo(cache);

	watched = list_concat_unique_oid(watched, relations);
	MemoryContextSwitchTo(old);
}

/* Read an attachment and make it ready, in a context of its own. */
static FavAttachment *
prepare(Oid schema, Oid levels)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext, "fav attachment",
												  ALLOCSET_SMALL_SIZES);
	FavAttachment *attachment = MemoryContextAlloc(context, sizeof(FavAttachment));
	MemoryContextCallback *callback = MemoryContextAlloc(context, sizeof(MemoryContextCallback));
	const FavObstacle *found;
	FavDefinition definition;
	MemoryContext old;

	/* Watch first and read then, so that no change goes unnoticed. */
	watch(list_make1_oid(levels));
	if (fav_read_definition(schema, levels, &definition))
		watch(fav_list_family(definition.source));
	found = fav_read_attachment(schema, levels, attachment);
	if (found != NULL)
		fav_raise_obstacle(found);

	attachment->context = context;
	attachment->element_type = lookup_type_cache(attachment->element.type, 0);
	callback->func = free_plans;
	callback->arg = attachment;
	MemoryContextRegisterResetCallback(context, callback);
	old = MemoryContextSwitchTo(context);
	attachment->empty = fav_make_recent(&attachment->params);
	attachment->pair = CreateTemplateTupleDesc(2);
	TupleDescInitEntry(attachment->pair, 1, "key", attachment->key.type, -1, 0);
	TupleDescInitEntry(attachment->pair, 2, "element", attachment->element.type, -1, 0);
	TupleDescFinalize(attachment->pair);
	MemoryContextSwitchTo(old);
	return attachment;
}

FavAttachment *
fav_attachment_of_levels(Oid schema, Oid levels)
{
	FavAttachment *attachment;
	ListCell   *cell;
	MemoryContext old;

	open_cache();
	foreach(cell, attachments)
	{
		attachment = lfirst(cell);
		if (attachment->levels == levels)
		{
			attachment->is_source_locked = false;
			return attachment;
		}
	}
	attachment = prepare(schema, levels);

	/* What is stale by now lives until the end of the transaction, and is not entered. */
	if (!cache_is_stale)
	{
		old = MemoryContextSwitchTo(cache);
		attachments = lappend(attachments, attachment);
		MemoryContextSwitchTo(old);
		MemoryContextSetParent(attachment->context, cache);
	}
	return attachment;
}

/*
 * Lock the source with its partitions and children before it is read as its owner, and check
 * that none of them has got another owner in the meantime.  Once for each use of an attachment:
 * the executor locks them anyway.
 */
void
fav_lock_source(FavAttachment *attachment)
{
	const FavObstacle *found;
	FavAttachment now;

	if (attachment->is_source_locked)
		return;
	LockRelationOid(attachment->source, AccessShareLock);
	(void) find_all_inheritors(attachment->source, AccessShareLock, NULL);
	if (cache_is_stale || !list_member_ptr(attachments, attachment))
	{
		found = fav_read_attachment(attachment->schema, attachment->levels, &now);
		if (found != NULL)
			fav_raise_obstacle(found);
		if (now.owner != attachment->owner)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("owner of table \"%s\" changed while its filters were being written",
							get_rel_name(attachment->source))));
	}
	attachment->is_source_locked = true;
}

/*
 * Triggers
 */

static void
check_columns(const FavAttachment *attachment, const Trigger *trigger, Oid relation,
			  const FavWhen *when)
{
	if (strcmp(get_attname(relation, when->key, false), NameStr(attachment->key.name)) != 0 ||
		strcmp(get_attname(relation, when->element, false),
			   NameStr(attachment->element.name)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("trigger \"%s\" names other columns than the filters of table \"%s\"",
						trigger->tgname, get_rel_name(attachment->source)),
				 errhint("Drop the trigger.")));
}

/* The attachment that a trigger speaks of; NULL if its table is not of the source's family. */
static FavAttachment *
read_trigger(Oid schema, const Trigger *trigger, Oid relation, bool is_of_rows, FavWhen *when)
{
	FavAttachment *attachment;
	FavDefinition definition;

	if (fav_is_being_copied(relation))
		return NULL;
	if (!fav_read_when(relation, trigger->tgqual, is_of_rows, when))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("trigger \"%s\" was not made by fav_attach", trigger->tgname),
				 errhint("Drop the trigger.")));
	if (!OidIsValid(when->levels))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the filters that trigger \"%s\" of table \"%s\" names are not here",
						trigger->tgname, get_rel_name(relation)),
				 errhint("Give their table its name back, or drop the triggers.")));
	if (fav_read_definition(schema, when->levels, &definition) &&
		!fav_is_in_family(relation, definition.source))
	{
		fav_refuse_unknown_shard(relation, definition.source);
		return NULL;
	}
	attachment = fav_attachment_of_levels(schema, when->levels);
	if (is_of_rows)
		check_columns(attachment, trigger, relation, when);
	return attachment;
}

/*
 * The attachment of the trigger that is being called, and what its WHEN clause says.  NULL if
 * its table is not of the source's family.  That is not remembered: the table may come to the
 * family without anything being said of it.
 */
FavAttachment *
fav_attachment_of_trigger(FunctionCallInfo fcinfo, FavWhen *when)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	Oid			relation = RelationGetRelid(data->tg_relation);
	CachedTrigger *cached;
	FavAttachment *attachment;

	open_cache();
	cached = hash_search(triggers, &data->tg_trigger->tgoid, HASH_FIND, NULL);
	if (cached != NULL)
	{
		*when = cached->when;
		return cached->attachment;
	}
	attachment = read_trigger(fav_schema_of_function(fcinfo), data->tg_trigger, relation,
							  TRIGGER_FIRED_FOR_ROW(data->tg_event), when);
	if (attachment != NULL && !cache_is_stale)
	{
		watch(list_make1_oid(relation));
		cached = hash_search(triggers, &data->tg_trigger->tgoid, HASH_ENTER, NULL);
		cached->when = *when;
		cached->attachment = attachment;
	}
	return attachment;
}

/*
 * Arguments of SQL functions
 */

Oid
fav_schema_of_function(FunctionCallInfo fcinfo)
{
	return get_func_namespace(fcinfo->flinfo->fn_oid);
}

Oid
fav_source_argument(FunctionCallInfo fcinfo)
{
	Oid			source;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("source must not be null")));
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
fav_attachment_of_arguments(FunctionCallInfo fcinfo, int name_argument)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	Oid			source = fav_source_argument(fcinfo);
	const char *name = PG_ARGISNULL(name_argument) ? NULL :
		NameStr(*PG_GETARG_NAME(name_argument));
	FavAttachment *attachment;
	Oid			levels;

	fav_check_owner(source);
	LockRelationOid(source, AccessShareLock);
	fav_check_owner(source);
	fav_refuse_distributed(source, fcinfo->flinfo->fn_oid);
	levels = fav_choose_levels(schema, source, name);
	LockRelationOid(levels, AccessShareLock);
	attachment = fav_attachment_of_levels(schema, levels);
	fav_lock_source(attachment);
	return attachment;
}
