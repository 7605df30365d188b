/*
 * attachment.c
 *		Attachments, and the cache of them.
 *
 * There is no catalog of attachments: the triggers say everything (triggers.c).
 *
 * A trigger is not trusted because it calls our function: anybody can create one on a
 * table of their own.  One whose table is neither the source nor a partition or child of
 * it does nothing, and source and levels must have one owner, as whom all is done.
 *
 * The cache lives in one memory context.  When a table in it changes, the whole context is
 * handed to the transaction, which frees it at its end: somebody further up the stack may
 * still use an attachment.
 */
#include "attach.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/trigger.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

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

/* The levels table of a source; `name` is its name, or that of its view, or NULL. */
Oid
fav_choose_levels(Oid schema, Oid source, const char *name)
{
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, fav_read_triggers(schema, source))
	{
		const FavTrigger *trigger = lfirst(cell);
		Oid			view = fav_view_of_levels(schema, trigger->when.levels);

		if (trigger->when.source == source &&
			(name == NULL || strcmp(name, get_rel_name(trigger->when.levels)) == 0 ||
			 (OidIsValid(view) && strcmp(name, get_rel_name(view)) == 0)))
			found = list_append_unique_oid(found, trigger->when.levels);
	}
	if (found == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 name == NULL ?
				 errmsg("table \"%s\" has no attached filters", get_rel_name(source)) :
				 errmsg("table \"%s\" has no attached filters \"%s\"", get_rel_name(source), name),
				 errhint("The view fav_attachments lists what is attached.")));
	if (list_length(found) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_PARAMETER),
				 errmsg("table \"%s\" has attached filters of %d names", get_rel_name(source),
						list_length(found)),
				 errhint("Choose one by its name, which view fav_attachments shows as filter.")));
	return linitial_oid(found);
}

/* The attachment that (source, ..., name) mean, for the owner of the source. */
FavAttachment *
fav_attachment_of_arguments(FunctionCallInfo fcinfo, int name_argument)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	Oid			source = fav_source_argument(fcinfo);
	const char *name = PG_ARGISNULL(name_argument) ? NULL :
		NameStr(*PG_GETARG_NAME(name_argument));

	fav_check_owner(source);
	return fav_attachment_of_levels(schema, source, fav_choose_levels(schema, source, name),
									false);
}

/*
 * From the words of a trigger to the attachment
 */

/* Is the relation the source, or a partition or child of it? */
bool
fav_is_in_family(Oid relation, Oid source)
{
	return relation == source ||
		(SearchSysCacheExists1(RELOID, ObjectIdGetDatum(source)) &&
		 SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relation)) &&
		 typeInheritsFrom(get_rel_type_id(relation), get_rel_type_id(source)));
}

static void
check_levels(const FavAttachment *attachment)
{
	Relation	levels = table_open(attachment->levels, AccessShareLock);
	TupleDesc	descriptor = RelationGetDescr(levels);
	Oid			fav = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("fav"),
									  ObjectIdGetDatum(attachment->schema));
	bool		good = levels->rd_rel->relkind == RELKIND_RELATION &&
		descriptor->natts >= FAV_LEVELS_RECENT;
	int			i;

	for (i = FAV_LEVELS_KEY; good && i <= FAV_LEVELS_RECENT; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i - 1);

		if (i == FAV_LEVELS_KEY)
			good = !attribute->attisdropped &&
				getBaseType(attribute->atttypid) == attachment->key.type &&
				attribute->attcollation == attachment->key.collation;
		else
			good = !attribute->attisdropped && attribute->atttypid == fav;
	}
	table_close(levels, AccessShareLock);
	if (!good)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" does not have the columns of a levels table of table \"%s\"",
						get_rel_name(attachment->levels), get_rel_name(attachment->source)),
				 errhint("Call fav_detach, then fav_attach.")));
}

/* What hangs on a table of somebody else would run with the rights of the source's owner. */
static void
check_one_owner(const FavAttachment *attachment, Oid relation)
{
	Oid			owner = fav_owner_of(relation);

	/* a partition may be dropped at this moment */
	if (OidIsValid(owner) && owner != attachment->owner)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("tables \"%s\" and \"%s\" have different owners",
						get_rel_name(attachment->source), get_rel_name(relation)),
				 errdetail("The filters of a table are kept by its owner."),
				 errhint("Give both tables one owner with ALTER TABLE ... OWNER TO.")));
}

/*
 * The attachment that a row trigger of `relation` speaks of, in a context of its own.  All
 * relations whose change would change it are added to *watched.
 */
static FavAttachment *
resolve(Oid schema, const FavWhen *when, Oid relation, const FavParams *params, List **watched)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fav attachment",
												  ALLOCSET_SMALL_SIZES);
	FavAttachment *attachment = MemoryContextAllocZero(context, sizeof(FavAttachment));
	MemoryContext old;
	FavEditor	editor;
	ListCell   *cell;

	attachment->context = context;
	attachment->schema = schema;
	attachment->source = when->source;
	attachment->levels = when->levels;
	attachment->owner = fav_owner_of(when->source);
	*watched = lappend_oid(find_all_inheritors(when->source, NoLock, NULL), when->levels);
	foreach(cell, *watched)
		check_one_owner(attachment, lfirst_oid(cell));
	fav_find_column(when->source, get_attname(relation, when->key, false), &attachment->key);
	fav_find_column(when->source, get_attname(relation, when->element, false),
					&attachment->element);
	attachment->kind = fav_kind_of_column(&attachment->element);
	attachment->key_type = fav_check_key(&attachment->key);
	attachment->element_type = lookup_type_cache(attachment->element.type, 0);
	check_levels(attachment);

	attachment->params = *params;
	fav_check_params(&attachment->params);
	old = MemoryContextSwitchTo(context);
	fav_editor_new(&editor, &attachment->params);
	attachment->empty = fav_finish_edit(&editor);
	attachment->pair = CreateTemplateTupleDesc(2);
	TupleDescInitEntry(attachment->pair, 1, "key", attachment->key.type, -1, 0);
	TupleDescInitEntry(attachment->pair, 2, "element", attachment->element.type, -1, 0);
	MemoryContextSwitchTo(old);
	return attachment;
}

/*
 * The cache
 */

typedef struct CachedTrigger
{
	Oid			trigger;		/* hash key */
	FavWhen		when;
	FavAttachment *attachment;	/* NULL: the trigger's table is not of the source's family */
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

/* To be called again after every look into the catalogs, which may have told of changes. */
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

/* Resolve an attachment and put it into the cache. */
static FavAttachment *
load(Oid schema, const FavWhen *when, Oid relation, const FavParams *params)
{
	List	   *relations;
	FavAttachment *attachment = resolve(schema, when, relation, params, &relations);
	MemoryContextCallback *callback = MemoryContextAlloc(attachment->context,
														 sizeof(MemoryContextCallback));
	MemoryContext old;

	callback->func = free_plans;
	callback->arg = attachment;
	MemoryContextRegisterResetCallback(attachment->context, callback);
	open_cache();
	old = MemoryContextSwitchTo(cache);
	attachments = lappend(attachments, attachment);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(attachment->context, cache);
	watch(relations);
	return attachment;
}

static FavAttachment *
find(Oid source, Oid levels)
{
	ListCell   *cell;

	open_cache();
	foreach(cell, attachments)
	{
		FavAttachment *attachment = lfirst(cell);

		if (attachment->levels == levels && attachment->source == source)
			return attachment;
	}
	return NULL;
}

/* By the words of the triggers on the source itself. */
FavAttachment *
fav_attachment_of_levels(Oid schema, Oid source, Oid levels, bool missing_ok)
{
	FavAttachment *attachment = find(source, levels);
	ListCell   *cell;

	if (attachment != NULL)
		return attachment;
	foreach(cell, fav_read_triggers(schema, source))
	{
		const FavTrigger *trigger = lfirst(cell);

		if (trigger->when.source == source && trigger->when.levels == levels &&
			trigger->is_of_rows && trigger->when.element != InvalidAttrNumber)
			return load(schema, &trigger->when, source, &trigger->params);
	}
	if (!missing_ok)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has lost its row triggers for \"%s\"", get_rel_name(source),
						get_rel_name(levels)),
				 errhint("Call fav_detach, then fav_attach.")));
	return NULL;
}

/*
 * Anybody with the right to create triggers on the source can name other columns.  Their values
 * may have other types, so they must not be taken for keys and elements.
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

/* The attachment that a trigger speaks of; NULL if it is none of ours, or left the source. */
static FavAttachment *
read_trigger(Oid schema, const Trigger *trigger, Oid relation, bool is_of_rows, FavWhen *when)
{
	FavAttachment *attachment;
	FavParams	params;

	if (!fav_read_when(trigger->tgqual, when) || !fav_is_in_family(relation, when->source) ||
		!fav_read_arguments(trigger->tgnargs, trigger->tgnargs > 0 ? trigger->tgargs[0] : NULL,
							trigger->tgnargs > 1 ? trigger->tgargs[1] : NULL, &params) ||
		(is_of_rows && when->element == InvalidAttrNumber))
		return NULL;
	attachment = find(when->source, when->levels);
	if (attachment != NULL && is_of_rows)
		check_columns(attachment, trigger, relation, when);
	if (attachment != NULL)
		return attachment;
	return is_of_rows ? load(schema, when, relation, &params) :
		fav_attachment_of_levels(schema, when->source, when->levels, true);
}

/*
 * The attachment of the trigger that is being called, and what its WHEN clause says.  NULL
 * if the trigger is none of ours, or its table has left the source.
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

	/* What is stale by now lives until the end of the transaction, and is not entered. */
	if (!cache_is_stale)
	{
		watch(list_make1_oid(relation));
		cached = hash_search(triggers, &data->tg_trigger->tgoid, HASH_ENTER, NULL);
		cached->when = *when;
		cached->attachment = attachment;
	}
	return attachment;
}
