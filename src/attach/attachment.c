/*
 * attachment.c
 *		Attachments, their queries, and the cache of them.
 *
 * There is no catalog of attachments: the triggers say everything (triggers.c).
 *
 * A trigger is not trusted because it calls our function: anybody can create one on a
 * table of their own.  One whose table is neither the source nor a partition or child of
 * it does nothing, and source and levels must have one owner, as whom all is done.
 */
#include "attach.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * Names
 */

char *
fav_relation_name(Oid relation)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), get_rel_name(relation));
}

char *
fav_schema_name(Oid schema)
{
	return pstrdup(quote_identifier(get_namespace_name(schema)));
}

Oid
fav_schema_of_function(FunctionCallInfo fcinfo)
{
	return get_func_namespace(fcinfo->flinfo->fn_oid);
}

Oid
fav_get_relation_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
	Oid			relation;

	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", name)));
	relation = PG_GETARG_OID(number);
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relation)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relation)));
	return relation;
}

/*
 * Columns
 */

void
fav_find_column(Oid relation, const char *name, FavColumn *column)
{
	HeapTuple	tuple = SearchSysCacheAttName(relation, name);
	Form_pg_attribute attribute;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table \"%s\" does not exist", name, get_rel_name(relation))));
	attribute = (Form_pg_attribute) GETSTRUCT(tuple);
	column->name = attribute->attname;
	column->number = attribute->attnum;
	column->type = getBaseType(attribute->atttypid);
	column->collation = attribute->attcollation;
	ReleaseSysCache(tuple);
}

FavKind
fav_kind_of_column(const FavColumn *column)
{
	switch (column->type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return FAV_KIND_INTEGER;
		case TEXTOID:
		case VARCHAROID:
			return FAV_KIND_TEXT;
		case UUIDOID:
			return FAV_KIND_UUID;
		case BYTEAOID:
			return FAV_KIND_BYTES;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" has type %s, which cannot be an element", NameStr(column->name),
							format_type_be(column->type)),
					 errdetail("Elements are smallint, integer, bigint, text, varchar, uuid or bytea.")));
	}
	pg_unreachable();
}

const char *
fav_element_type_name(FavKind kind)
{
	switch (kind)
	{
		case FAV_KIND_INTEGER:
			return "pg_catalog.int8";
		case FAV_KIND_TEXT:
			return "pg_catalog.text";
		case FAV_KIND_UUID:
			return "pg_catalog.uuid";
		default:
			return "pg_catalog.bytea";
	}
}

TypeCacheEntry *
fav_check_key(const FavColumn *column)
{
	TypeCacheEntry *type = lookup_type_cache(column->type, TYPECACHE_BTREE_OPFAMILY | TYPECACHE_EQ_OPR |
											 TYPECACHE_CMP_PROC_FINFO);

	if (type->typtype == TYPTYPE_COMPOSITE || column->type == RECORDOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" has composite type %s, which cannot be a key", NameStr(column->name),
						format_type_be(column->type))));
	if (!OidIsValid(type->btree_opf) || !OidIsValid(type->eq_opr) || !OidIsValid(type->cmp_proc_finfo.fn_oid))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" has type %s, which cannot be a key", NameStr(column->name),
						format_type_be(column->type)),
				 errdetail("The type has no default btree operator class.")));
	return type;
}

/* The equality of keys, as it is written in a query. */
const char *
fav_equality(const TypeCacheEntry *key_type)
{
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(key_type->eq_opr));
	Form_pg_operator form;
	char	   *text;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", key_type->eq_opr);
	form = (Form_pg_operator) GETSTRUCT(tuple);
	text = psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(form->oprnamespace)),
					NameStr(form->oprname));
	ReleaseSysCache(tuple);
	return text;
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
		 typeInheritsFrom(get_rel_type_id(relation), get_rel_type_id(source)));
}

static void
check_levels(const FavAttachment *attachment)
{
	Relation	levels = table_open(attachment->levels, AccessShareLock);
	TupleDesc	descriptor = RelationGetDescr(levels);
	Oid			fav = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("fav"),
									  ObjectIdGetDatum(attachment->schema));
	bool		good = levels->rd_rel->relkind == RELKIND_RELATION && descriptor->natts >= FAV_LEVELS_RECENT;
	int			i;

	for (i = FAV_LEVELS_KEY; good && i <= FAV_LEVELS_RECENT; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i - 1);

		if (i == FAV_LEVELS_KEY)
			good = !attribute->attisdropped && getBaseType(attribute->atttypid) == attachment->key.type &&
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

/* Does the index keep pairs from repeating, by the same equality of keys as ours? */
static bool
is_unique_on_pair(Relation index, const FavAttachment *attachment)
{
	Form_pg_index form = index->rd_index;
	int			i;
	bool		has_key = false;
	bool		has_element = false;

	if (!form->indisunique || !form->indisvalid || form->indnkeyatts != 2 ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return false;
	for (i = 0; i < 2; i++)
	{
		bool		is_key = form->indkey.values[i] == attachment->key.number;
		const FavColumn *column = is_key ? &attachment->key : &attachment->element;

		if (form->indkey.values[i] != column->number || index->rd_indcollation[i] != column->collation ||
			index->rd_opfamily[i] != lookup_type_cache(column->type, TYPECACHE_BTREE_OPFAMILY)->btree_opf)
			return false;
		has_key |= is_key;
		has_element |= !is_key;
	}
	return has_key && has_element;
}

/* Can the source have a pair but once?  Each child by inheritance has indexes of its own. */
static bool
has_unique_pairs(const FavAttachment *attachment)
{
	Relation	source = table_open(attachment->source, AccessShareLock);
	bool		is_unique = false;
	ListCell   *cell;

	if (source->rd_rel->relkind == RELKIND_PARTITIONED_TABLE || !source->rd_rel->relhassubclass)
		foreach(cell, RelationGetIndexList(source))
		{
			Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

			is_unique = is_unique || is_unique_on_pair(index, attachment);
			index_close(index, AccessShareLock);
		}
	table_close(source, AccessShareLock);
	return is_unique;
}

/* The attachment that a row trigger of `relation` speaks of. */
static FavAttachment *
resolve(Oid schema, const FavWhen *when, Oid relation, const FavParams *params)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fav attachment", ALLOCSET_SMALL_SIZES);
	FavAttachment *attachment = MemoryContextAllocZero(context, sizeof(FavAttachment));
	MemoryContext old;
	FavEditor	editor;

	attachment->context = context;
	attachment->schema = schema;
	attachment->source = when->source;
	attachment->levels = when->levels;
	attachment->owner = fav_owner_of(when->source);
	if (attachment->owner != fav_owner_of(when->levels))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("tables \"%s\" and \"%s\" have different owners", get_rel_name(when->source),
						get_rel_name(when->levels)),
				 errdetail("The filters of a table are kept by its owner."),
				 errhint("Give both tables one owner with ALTER TABLE ... OWNER TO.")));
	fav_find_column(when->source, get_attname(relation, when->key, false), &attachment->key);
	fav_find_column(when->source, get_attname(relation, when->element, false), &attachment->element);
	attachment->kind = fav_kind_of_column(&attachment->element);
	attachment->key_type = fav_check_key(&attachment->key);
	get_typlenbyvalalign(attachment->element.type, &attachment->element_length, &attachment->element_by_value,
						 &attachment->element_align);
	check_levels(attachment);
	attachment->is_unique = has_unique_pairs(attachment);

	attachment->params = *params;
	fav_check_params(&attachment->params);
	old = MemoryContextSwitchTo(context);
	fav_editor_new(&editor, &attachment->params);
	attachment->empty = fav_finish_edit(&editor);
	MemoryContextSwitchTo(old);
	return attachment;
}

/* The levels table of a source that the arguments of an SQL function mean. */
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
				 name == NULL ? errmsg("table \"%s\" has no attached filters", get_rel_name(source)) :
				 errmsg("table \"%s\" has no attached filters \"%s\"", get_rel_name(source), name),
				 errhint("The view fav_attachments lists what is attached.")));
	if (list_length(found) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_PARAMETER),
				 errmsg("table \"%s\" has attached filters of %d names", get_rel_name(source), list_length(found)),
				 errhint("Choose one by its name, which view fav_attachments shows as filter.")));
	return linitial_oid(found);
}

/*
 * The cache, for triggers
 */

typedef struct TriggerEntry
{
	Oid			trigger;		/* hash key */
	FavWhen		when;
	FavAttachment *attachment;	/* NULL: the trigger's table is not of the source's family */
} TriggerEntry;

static HTAB *triggers = NULL;
static List *attachments = NIL; /* of the entries */
static List *watched = NIL;		/* relations whose changes make the cache stale */
static List *stale = NIL;		/* attachments that may still be in use */
static bool cache_is_stale = false;

static void
relation_changed(Datum arg pg_attribute_unused(), Oid relation)
{
	if (!OidIsValid(relation) || list_member_oid(watched, relation))
		cache_is_stale = true;
}

/* Names in queries change with schemas, operators and the extension's own functions. */
static void
name_changed(Datum arg pg_attribute_unused(), int cache pg_attribute_unused(), uint32 hash pg_attribute_unused())
{
	cache_is_stale = true;
}

static void
open_cache(void)
{
	HASHCTL		control;

	if (triggers != NULL && !cache_is_stale)
		return;
	if (triggers != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		hash_destroy(triggers);
		triggers = NULL;
		stale = list_concat(stale, attachments);
		list_free(watched);
		attachments = watched = NIL;
		MemoryContextSwitchTo(old);
	}
	else
	{
		static bool registered = false;

		if (!registered)
		{
			CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
			CacheRegisterSyscacheCallback(NAMESPACEOID, name_changed, (Datum) 0);
			CacheRegisterSyscacheCallback(OPEROID, name_changed, (Datum) 0);
			CacheRegisterSyscacheCallback(PROCOID, name_changed, (Datum) 0);
		}
		registered = true;
	}
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(Oid);
	control.entrysize = sizeof(TriggerEntry);
	control.hcxt = TopMemoryContext;
	triggers = hash_create("fav triggers", 16, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	cache_is_stale = false;
}

/* At the end of a transaction nobody uses an attachment any more. */
void
fav_release_stale_attachments(void)
{
	ListCell   *cell;

	foreach(cell, stale)
	{
		FavAttachment *attachment = lfirst(cell);
		int			i;

		for (i = 0; i < FAV_NQUERIES; i++)
			if (attachment->plans[i] != NULL)
				SPI_freeplan(attachment->plans[i]);
		MemoryContextDelete(attachment->context);
	}
	list_free(stale);
	stale = NIL;
}

static FavAttachment *
find_attachment(Oid levels, Oid source)
{
	ListCell   *cell;

	foreach(cell, attachments)
	{
		FavAttachment *attachment = lfirst(cell);

		if (attachment->levels == levels && attachment->source == source)
			return attachment;
	}
	return NULL;
}

/* Put an attachment into the cache. */
static FavAttachment *
remember(FavAttachment *attachment)
{
	MemoryContext old;

	/* resolving has looked at catalogs, and so may have seen changes */
	open_cache();
	old = MemoryContextSwitchTo(TopMemoryContext);
	attachments = lappend(attachments, attachment);
	watched = lappend_oid(watched, attachment->levels);
	watched = lappend_oid(watched, attachment->source);
	MemoryContextSetParent(attachment->context, TopMemoryContext);
	MemoryContextSwitchTo(old);
	return attachment;
}

static FavAttachment *
load_attachment(Oid schema, Oid source, Oid levels)
{
	ListCell   *cell;

	foreach(cell, fav_read_triggers(schema, source))
	{
		const FavTrigger *trigger = lfirst(cell);

		if (trigger->when.source == source && trigger->when.levels == levels && trigger->is_of_rows &&
			trigger->when.element != InvalidAttrNumber)
			return remember(resolve(schema, &trigger->when, source, &trigger->params));
	}
	return NULL;
}

/* By the words of the triggers on the source itself. */
FavAttachment *
fav_attachment_of_levels(Oid schema, Oid source, Oid levels)
{
	FavAttachment *attachment;

	open_cache();
	attachment = find_attachment(levels, source);
	if (attachment == NULL)
		attachment = load_attachment(schema, source, levels);
	if (attachment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has lost its row triggers for \"%s\"", get_rel_name(source),
						get_rel_name(levels)),
				 errhint("Call fav_detach, then fav_attach.")));
	return attachment;
}

/* The same attachment as it is now; NULL if it is gone. */
FavAttachment *
fav_attachment_refresh(FavAttachment *old)
{
	FavAttachment *attachment;

	open_cache();
	attachment = find_attachment(old->levels, old->source);
	if (attachment == NULL && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(old->source)) &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(old->levels)))
		attachment = load_attachment(old->schema, old->source, old->levels);
	if (attachment != NULL &&
		(attachment->key.type != old->key.type || attachment->element.type != old->element.type))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("columns of table \"%s\" changed their types while its filters were behind",
						get_rel_name(old->source))));
	return attachment;
}

/*
 * The attachment of the trigger that is being called, and what its WHEN clause says.  NULL
 * if the trigger is none of ours, or its table has left the source.
 */
FavAttachment *
fav_attachment_of_trigger(FunctionCallInfo fcinfo, FavWhen *when)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	const Trigger *trigger = data->tg_trigger;
	Oid			relation = RelationGetRelid(data->tg_relation);
	TriggerEntry *entry;
	FavAttachment *attachment = NULL;
	FavParams	params;
	MemoryContext old;

	open_cache();
	entry = hash_search(triggers, &trigger->tgoid, HASH_FIND, NULL);
	if (entry != NULL)
	{
		*when = entry->when;
		return entry->attachment;
	}

	if (fav_read_when(trigger->tgqual, when) && fav_is_in_family(relation, when->source) &&
		fav_read_arguments(trigger->tgnargs, trigger->tgnargs > 0 ? trigger->tgargs[0] : NULL,
						   trigger->tgnargs > 1 ? trigger->tgargs[1] : NULL, &params) &&
		(!TRIGGER_FIRED_FOR_ROW(data->tg_event) || when->element != InvalidAttrNumber))
	{
		attachment = find_attachment(when->levels, when->source);
		if (attachment == NULL && TRIGGER_FIRED_FOR_ROW(data->tg_event))
			attachment = remember(resolve(fav_schema_of_function(fcinfo), when, relation, &params));
		else if (attachment == NULL)
			attachment = load_attachment(fav_schema_of_function(fcinfo), when->source, when->levels);
	}
	open_cache();
	old = MemoryContextSwitchTo(TopMemoryContext);
	watched = list_append_unique_oid(watched, relation);
	MemoryContextSwitchTo(old);
	entry = hash_search(triggers, &trigger->tgoid, HASH_ENTER, NULL);
	entry->when = *when;
	entry->attachment = attachment;
	return attachment;
}

/*
 * Queries.  Every name is qualified: the search_path has no say.
 */

static char *
query_text(const FavAttachment *attachment, FavQuery query)
{
	const char *levels = fav_relation_name(attachment->levels);
	const char *source = fav_relation_name(attachment->source);
	const char *equal = fav_equality(attachment->key_type);
	const char *key = quote_identifier(get_attname(attachment->levels, FAV_LEVELS_KEY, false));
	const char *base = quote_identifier(get_attname(attachment->levels, FAV_LEVELS_BASE, false));
	const char *middle = quote_identifier(get_attname(attachment->levels, FAV_LEVELS_MIDDLE, false));
	const char *recent = quote_identifier(get_attname(attachment->levels, FAV_LEVELS_RECENT, false));
	const char *source_key = quote_identifier(NameStr(attachment->key.name));
	const char *element = quote_identifier(NameStr(attachment->element.name));

	/* Nobody has written the row since it was read. */
	const char *this_version = psprintf("ctid OPERATOR(pg_catalog.=) $2 AND xmin OPERATOR(pg_catalog.=) $3 AND %s %s $1",
										key, equal);

	switch (query)
	{
		case FAV_QUERY_READ:
		case FAV_QUERY_LOCK:
			return psprintf("SELECT %s, %s, %s, ctid, xmin FROM ONLY %s WHERE %s %s $1%s", base, middle, recent,
							levels, key, equal, query == FAV_QUERY_LOCK ? " FOR NO KEY UPDATE" : "");
		case FAV_QUERY_INSERT:
			return psprintf("INSERT INTO %s (%s, %s, %s) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
							levels, key, base, recent);
		case FAV_QUERY_SET_RECENT:
			return psprintf("UPDATE ONLY %s SET %s = $4 WHERE %s", levels, recent, this_version);
		case FAV_QUERY_SET_MIDDLE:
			return psprintf("UPDATE ONLY %s SET %s = $4, %s = $5 WHERE %s", levels, recent, middle, this_version);
		case FAV_QUERY_SET_BASE:
			return psprintf("UPDATE ONLY %s SET %s = $4, %s = NULL, %s = $5 WHERE %s",
							levels, recent, middle, base, this_version);
		case FAV_QUERY_LOOK_UP:
			return psprintf("SELECT %s FROM %s WHERE %s %s $1 AND %s OPERATOR(pg_catalog.=) ANY ($2)",
							element, source, source_key, equal, element);
		case FAV_QUERY_BUILD:
			return psprintf("SELECT %s.fav_base(%s::%s, $2, $3) FROM %s WHERE %s %s $1 AND %s IS NOT NULL",
							fav_schema_name(attachment->schema), element, fav_element_type_name(attachment->kind),
							source, source_key, equal, element);
	}
	pg_unreachable();
}

static int
query_parameters(const FavAttachment *attachment, FavQuery query, Oid *types)
{
	Oid			fav = get_atttype(attachment->levels, FAV_LEVELS_RECENT);
	int			count = 0;

	types[count++] = attachment->key.type;
	switch (query)
	{
		case FAV_QUERY_READ:
		case FAV_QUERY_LOCK:
			break;
		case FAV_QUERY_INSERT:
			types[count++] = fav;
			types[count++] = fav;
			break;
		case FAV_QUERY_LOOK_UP:
			types[count++] = get_array_type(attachment->element.type);
			break;
		case FAV_QUERY_BUILD:
			types[count++] = FLOAT8OID;
			types[count++] = INT8OID;
			break;
		default:
			types[count++] = TIDOID;
			types[count++] = XIDOID;
			types[count++] = fav;
			if (query != FAV_QUERY_SET_RECENT)
				types[count++] = fav;
	}
	return count;
}

/* As the owner, who must be in charge already: planning may run code of the tables. */
SPIPlanPtr
fav_attachment_plan(FavAttachment *attachment, FavQuery query)
{
	Oid			types[5];
	SPIPlanPtr	plan = attachment->plans[query];
	MemoryContext context = CurrentMemoryContext;
	char	   *text;

	Assert(GetUserId() == attachment->owner);
	if (plan != NULL)
		return plan;
	text = query_text(attachment, query);

	/* A custom plan would know no better: the key decides. */
	plan = SPI_prepare_cursor(text, query_parameters(attachment, query, types), types, CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "SPI_prepare failed: %s: %s", SPI_result_code_string(SPI_result), text);
	attachment->plans[query] = plan;
	MemoryContextSwitchTo(context);
	return plan;
}
