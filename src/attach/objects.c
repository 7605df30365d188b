/*
 * objects.c
 *		The table, view, function and triggers of an attachment.
 *
 * All of them are ordinary objects of the source's owner, made by ordinary DDL.
 */
#include "attach.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_trigger.h"
#include "commands/defrem.h"
#include "funcapi.h"
#include "nodes/makefuncs.h"
#include "parser/parse_func.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * Triggers
 */

/*
 * The triggers of an attachment on one table.  Their WHEN clauses name what fav_read_when()
 * looks for.  Elements are the same if their bytes are, whatever the collation says.
 */
#define LEVELS	"{'levels'}{::levels} IS NOT NULL"

typedef struct TriggerShape
{
	const char *suffix;			/* of its name */
	const char *event;
	bool		is_of_rows;
	int16		type;			/* bits that its tgtype has */
	const char *when;
} TriggerShape;

static const TriggerShape attachment_shapes[] = {
	{
		"insert", "AFTER INSERT", true, TRIGGER_TYPE_INSERT,
		LEVELS " AND NEW.{k} IS NOT NULL AND NEW.{e} IS NOT NULL"
	},
	{
		"update", "AFTER UPDATE", true, TRIGGER_TYPE_UPDATE,
		LEVELS " AND (OLD.{k}{::k} {=} NEW.{k}{::k} AND"
		" OLD.{e}{collate} OPERATOR(pg_catalog.=) NEW.{e}{collate}) IS NOT TRUE"
	},
	{
		"delete", "AFTER DELETE", true, TRIGGER_TYPE_DELETE,
		LEVELS " AND OLD.{k} IS NOT NULL AND OLD.{e} IS NOT NULL"
	},
	{
		"statement", "AFTER INSERT OR UPDATE OR DELETE", false,
		TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE, LEVELS
	},
	{
		"truncate", "AFTER TRUNCATE", false, TRIGGER_TYPE_TRUNCATE, LEVELS
	}
};

/*
 * Those of a sink.  The row trigger fires for every row, and after the BEFORE triggers of others,
 * which may change rows: triggers fire in the order of their names.
 */
static const TriggerShape sink_shapes[] = {
	{
		"insert", "BEFORE INSERT", true, TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_INSERT,
		LEVELS " AND (NEW.{k} IS NULL) IS NOT NULL AND (NEW.{e} IS NULL) IS NOT NULL"
	},
	{
		"statement", "AFTER INSERT OR TRUNCATE", false,
		TRIGGER_TYPE_INSERT | TRIGGER_TYPE_TRUNCATE, LEVELS
	},
	{
		"refuse", "BEFORE UPDATE OR DELETE", false,
		TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE, LEVELS
	}
};

static const TriggerShape *
shapes_of(const FavAttachment *attachment, size_t *count)
{
	*count = attachment->is_sink ? lengthof(sink_shapes) : lengthof(attachment_shapes);
	return attachment->is_sink ? sink_shapes : attachment_shapes;
}

/* The trigger of this shape among those of a table; NULL if there is none. */
static const FavTrigger *
find_trigger(const List *triggers, Oid levels, const TriggerShape *shape)
{
	const ListCell *cell;

	foreach(cell, triggers)
	{
		const FavTrigger *trigger = lfirst(cell);

		if (trigger->when.levels == levels && trigger->is_of_rows == shape->is_of_rows &&
			(trigger->type & (shape->type | TRIGGER_TYPE_BEFORE)) == shape->type)
			return trigger;
	}
	return NULL;
}

static void
create_trigger(const FavAttachment *attachment, Oid relation, const TriggerShape *shape)
{
	const char *levels = get_rel_name(attachment->levels);
	bool		comes_last = (shape->type & TRIGGER_TYPE_BEFORE) != 0;

	fav_run(psprintf("CREATE TRIGGER %s %s ON %s FOR EACH %s WHEN (%s)"
					 " EXECUTE FUNCTION %s()",
					 quote_identifier(comes_last ? makeObjectName("zz", levels, shape->suffix) :
									  makeObjectName(levels, NULL, shape->suffix)),
					 shape->event, fav_relation_name(relation),
					 shape->is_of_rows ? "ROW" : "STATEMENT", fav_query(attachment, shape->when),
					 fav_query(attachment, shape->is_of_rows ? "{fav}.fav_collect" :
							   "{fav}.fav_reconcile")));
	CommandCounterIncrement();
}

/*
 * All triggers of an attachment, as far as they are missing or not enabled.  PostgreSQL
 * clones the row triggers of a partitioned table to its partitions, also to those that are
 * created later.  They fire in replicas, too: filters that miss the changes of some sessions
 * are of no use.
 */
void
fav_create_triggers(const FavAttachment *attachment)
{
	List	   *family = find_all_inheritors(attachment->source, ShareRowExclusiveLock, NULL);
	size_t		nshapes;
	const TriggerShape *shapes = shapes_of(attachment, &nshapes);
	ListCell   *cell;
	size_t		i;

	fav_refuse_shard(attachment->source);
	foreach(cell, family)
	{
		Oid			relation = lfirst_oid(cell);
		bool		gets_clones = relation != attachment->source &&
			get_rel_relispartition(relation);

		for (i = 0; i < nshapes; i++)
		{
			const FavTrigger *trigger =
				find_trigger(fav_read_triggers(attachment->schema, relation), attachment->levels,
							 &shapes[i]);

			if (trigger == NULL && !(gets_clones && shapes[i].is_of_rows))
			{
				create_trigger(attachment, relation, &shapes[i]);
				trigger = find_trigger(fav_read_triggers(attachment->schema, relation),
									   attachment->levels, &shapes[i]);
			}
			if (trigger != NULL && !trigger->is_enabled)
				fav_run(psprintf("ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %s",
								 fav_relation_name(relation),
								 quote_identifier(NameStr(trigger->name))));
		}
	}
}

/* Does an index keep the levels table from having a key twice? */
static bool
has_unique_key(Oid levels)
{
	Relation	catalog = table_open(IndexRelationId, AccessShareLock);
	bool		found = false;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(levels));
	scan = systable_beginscan(catalog, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_index index = (Form_pg_index) GETSTRUCT(tuple);

		found |= index->indisunique && index->indisvalid && index->indimmediate &&
			index->indnkeyatts == 1 && index->indkey.values[0] == FAV_LEVELS_KEY &&
			heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/*
 * Are all triggers there and enabled?  A partition that was made later has no statement
 * trigger: its changes are seen, but not a TRUNCATE of it alone.  A shard need not see that.
 */
bool
fav_is_active(const FavAttachment *attachment)
{
	bool		is_shard = fav_shell(attachment->source) != attachment->source;
	size_t		nshapes;
	const TriggerShape *shapes = shapes_of(attachment, &nshapes);
	ListCell   *cell;
	size_t		i;

	if (!has_unique_key(attachment->levels))
		return false;
	foreach(cell, fav_list_family(attachment->source))
	{
		List	   *triggers = fav_read_triggers(attachment->schema, lfirst_oid(cell));

		for (i = 0; i < nshapes; i++)
		{
			const FavTrigger *trigger = find_trigger(triggers, attachment->levels, &shapes[i]);

			if (is_shard && shapes[i].type == TRIGGER_TYPE_TRUNCATE)
				continue;
			if (trigger == NULL || !trigger->is_enabled)
				return false;
		}
	}
	return true;
}

/*
 * Table, view and function
 */

static char *
collation_name(Oid collation)
{
	HeapTuple	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	Form_pg_collation form;
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	form = (Form_pg_collation) GETSTRUCT(tuple);
	name = quote_qualified_identifier(get_namespace_name(form->collnamespace),
									  NameStr(form->collname));
	ReleaseSysCache(tuple);
	return name;
}

/* The exact type of a column, so that equality there is equality here. */
static char *
column_type(Oid relation, AttrNumber number)
{
	Oid			type;
	int32		modifier;
	Oid			collation;
	char	   *text;

	get_atttypetypmodcoll(relation, number, &type, &modifier, &collation);
	text = format_type_extended(type, modifier,
								FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
	return OidIsValid(collation) ? psprintf("%s COLLATE %s", text, collation_name(collation)) :
		text;
}

/* The levels table, beside the source. */
void
fav_create_levels(FavAttachment *attachment, const char *key_name, const char *levels_name)
{
	Oid			source = attachment->source;
	const char *fav = fav_query(attachment, "{fav}");
	const char *namespace = get_namespace_name(get_rel_namespace(source));
	const char *levels = quote_qualified_identifier(namespace, levels_name);
	bool		is_unlogged = get_rel_persistence(source) == RELPERSISTENCE_UNLOGGED;
	Datum		error_rate = Float8GetDatum(attachment->params.error_rate);
	const char *definition =
		psprintf("(%s::pg_catalog.regclass, '%s'::pg_catalog.float8,"
				 " '" INT64_FORMAT "'::pg_catalog.int8", fav_query(attachment, "{'source'}"),
				 DatumGetCString(DirectFunctionCall1(float8out, error_rate)),
				 (int64) attachment->params.seed);
	int			i;

	definition = attachment->is_sink ?
		psprintf("fav_sink_recent%s, '" INT64_FORMAT "'::pg_catalog.int8)", definition,
				 attachment->keep) :
		psprintf("fav_recent%s, %d)", definition, attachment->share);
	fav_run(psprintf("CREATE %sTABLE %s (%s %s PRIMARY KEY, base %s.fav, middle %s.fav,"
					 " recent %s.fav NOT NULL DEFAULT %s.%s) WITH (fillfactor = 80)",
					 is_unlogged ? "UNLOGGED " : "", levels, quote_identifier(key_name),
					 attachment->share > 0 ? "pg_catalog.int8" :
					 column_type(source, attachment->key.number), fav, fav, fav, fav,
					 definition));

	attachment->levels = get_relname_relid(levels_name, get_rel_namespace(source));

	/*
	 * It must stay in the row: that is what makes a write cheap.  In some schemas Citus
	 * distributes a table when it is made, and then this cannot be said any more; it stays there
	 * anyhow, unless columns are added.
	 */
	if (!fav_is_distributed(attachment->levels))
		fav_run(psprintf("ALTER TABLE %s ALTER COLUMN recent SET STORAGE PLAIN", levels));

	/* hashes cannot be compressed */
	for (i = 1; i <= FAV_LOG_PARTS && attachment->is_sink; i++)
		fav_run(psprintf("ALTER TABLE %s ADD COLUMN log%d pg_catalog.bytea,"
						 " ALTER COLUMN log%d SET STORAGE EXTERNAL", levels, i, i));
	fav_run(psprintf("COMMENT ON TABLE %s IS %s", levels,
					 quote_literal_cstr(psprintf("filters of table %s, kept by %s",
												 quote_identifier(get_rel_name(source)),
												 attachment->is_sink ? "fav_sink" :
												 "fav_attach"))));
	fav_distribute_levels(attachment, key_name);
}

/*
 * The view and the function to read complete filters, beside the levels table; view_name NULL:
 * there is a view.  It names the source, so that this cannot be dropped without it.
 */
void
fav_create_readers(const FavAttachment *attachment, const char *view_name)
{
	const char *namespace = get_namespace_name(get_rel_namespace(attachment->levels));
	bool		is_shared = attachment->share > 0;

	if (view_name != NULL)
		fav_run(psprintf("CREATE VIEW %s AS %s",
						 quote_qualified_identifier(namespace, view_name), fav_query(attachment,
			attachment->keep == 0 ?
			"SELECT l.{key}, {fav}.fav_stack(l.{base}, l.{middle}, l.{recent}) AS filter"
			" FROM {levels} l WHERE {'source'}::pg_catalog.regclass IS NOT NULL" :
			"SELECT l.{key}, {fav}.fav_expire({fav}.fav_stack(l.{base}, l.{middle}, l.{recent}),"
			" {fav}.fav_period({period})) AS filter"
			" FROM {levels} l WHERE {'source'}::pg_catalog.regclass IS NOT NULL")));
	fav_run(psprintf("CREATE FUNCTION %s.fav_contains(levels %s, %selement %s)"
					 " RETURNS pg_catalog.bool LANGUAGE sql IMMUTABLE PARALLEL SAFE " FAV_SQL_BODY,
					 quote_identifier(namespace), fav_relation_name(attachment->levels),
					 is_shared ? "key pg_catalog.int8, " : "",
					 fav_element_type_name(attachment->kind),
					 fav_query(attachment, is_shared ?
							   "{fav}.fav_contains((levels).{base}, (levels).{middle},"
							   " (levels).{recent}, key, element)" :
							   "{fav}.fav_contains((levels).{base}, (levels).{middle},"
							   " (levels).{recent}, element)")));
}

/* The objects of a class that depend on an object. */
static List *
dependents(Oid class, Oid object, Oid dependent_class)
{
	Relation	catalog = table_open(DependRelationId, AccessShareLock);
	List	   *found = NIL;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(class));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(object));
	scan = systable_beginscan(catalog, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(tuple);

		if (depend->classid == dependent_class)
			found = list_append_unique_oid(found, depend->objid);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/* The view that a rule belongs to. */
static Oid
relation_of_rule(Oid rule)
{
	Relation	catalog = table_open(RewriteRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			relation = InvalidOid;

	ScanKeyInit(&key, Anum_pg_rewrite_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(rule));
	scan = systable_beginscan(catalog, RewriteOidIndexId, true, NULL, 1, &key);
	if (HeapTupleIsValid(tuple = systable_getnext(scan)))
		relation = ((Form_pg_rewrite) GETSTRUCT(tuple))->ev_class;
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return relation;
}

/*
 * The view of (key, filter) over a levels table; InvalidOid if it was dropped.  It belongs
 * to the same owner, and calls fav_stack.  The oldest of such views is ours.
 */
Oid
fav_view_of_levels(Oid schema, Oid levels)
{
	List	   *name = list_make2(makeString(get_namespace_name(schema)), makeString("fav_stack"));
	Oid			found = InvalidOid;
	Oid			types[3];
	List	   *callers;
	ListCell   *cell;

	types[0] = types[1] = types[2] = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
													 CStringGetDatum("fav"),
													 ObjectIdGetDatum(schema));
	callers = dependents(ProcedureRelationId, LookupFuncName(name, 3, types, false),
						 RewriteRelationId);
	foreach(cell, dependents(RelationRelationId, levels, RewriteRelationId))
	{
		Oid			view = list_member_oid(callers, lfirst_oid(cell)) ?
			relation_of_rule(lfirst_oid(cell)) : InvalidOid;
		char	   *second = OidIsValid(view) ? get_attname(view, 2, true) : NULL;

		if (second != NULL && strcmp(second, "filter") == 0 &&
			get_attname(view, 3, true) == NULL && get_rel_relkind(view) == RELKIND_VIEW &&
			fav_owner_of(view) == fav_owner_of(levels) &&
			(!OidIsValid(found) || view < found))
			found = view;
	}
	return found;
}

/*
 * Is it fav_contains(levels, ..., element), of this owner or in this schema?  The owner may have
 * made others of this name.
 */
static bool
is_our_function(Oid function, Oid owner, Oid schema)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	bool		is_ours;
	int			count;
	Oid		   *types;
	char	  **names;
	char	   *modes;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	count = get_func_arg_info(tuple, &types, &names, &modes);
	is_ours = strcmp(NameStr(form->proname), "fav_contains") == 0 &&
		(form->proowner == owner || form->pronamespace == schema) && count > 1 &&
		names != NULL && strcmp(names[0], "levels") == 0 &&
		strcmp(names[count - 1], "element") == 0;
	ReleaseSysCache(tuple);
	return is_ours;
}

/*
 * Drop all of an attachment: its triggers, the view, the function and the levels table, by
 * ordinary commands.  Any other dependent object makes this an error.
 */
void
fav_drop_objects(Oid schema, Oid source, Oid levels)
{
	Oid			owner = fav_owner_of(levels);
	Oid			view = fav_view_of_levels(schema, levels);
	ListCell   *cell;

	fav_prepare_nodes(source);
	foreach(cell, fav_read_triggers(schema, InvalidOid))
	{
		const FavTrigger *trigger = lfirst(cell);

		/* children that have left the source still have theirs; clones go with the original */
		if (trigger->when.levels == levels && !trigger->is_clone &&
			(trigger->relation == source || fav_owner_of(trigger->relation) == owner))
			fav_run(psprintf("DROP TRIGGER %s ON %s", quote_identifier(NameStr(trigger->name)),
							 fav_relation_name(trigger->relation)));
	}
	if (OidIsValid(view))
		fav_run(psprintf("DROP VIEW %s", fav_relation_name(view)));
	foreach(cell, dependents(TypeRelationId, get_rel_type_id(levels), ProcedureRelationId))
		if (is_our_function(lfirst_oid(cell), owner, InvalidOid))
			fav_run(psprintf("DROP FUNCTION %s", format_procedure_qualified(lfirst_oid(cell))));
	fav_run(psprintf("DROP TABLE %s", fav_relation_name(levels)));
}

/*
 * Filters are complete if the function that reads them exists: it is created after the last
 * filter.  Before that, a missing filter would be mistaken for an empty one.
 */
bool
fav_is_complete(Oid levels)
{
	ListCell   *cell;

	foreach(cell, dependents(TypeRelationId, get_rel_type_id(levels), ProcedureRelationId))
		if (is_our_function(lfirst_oid(cell), fav_owner_of(levels), get_rel_namespace(levels)))
			return true;
	return false;
}

/* The name of the view of a levels table that does not have one. */
const char *
fav_choose_view_name(const char *levels)
{
	static const char suffix[] = "_levels";
	size_t		length = strlen(levels);

	if (length >= sizeof(suffix) && strcmp(levels + length - strlen(suffix), suffix) == 0)
		return pnstrdup(levels, length - strlen(suffix));
	return makeObjectName(levels, NULL, "fav");
}

/*
 * Filters are complete now, if they have not been before.  The lock keeps two sessions from
 * saying so at once; writers do not wait for it.  A shard is read through its table.
 */
void
fav_complete(const FavAttachment *attachment)
{
	Oid			levels = attachment->levels;
	bool		has_view;

	LockRelationOid(levels, ShareUpdateExclusiveLock);
	has_view = OidIsValid(fav_view_of_levels(attachment->schema, levels));
	if (fav_shell(levels) == levels && !fav_is_complete(levels))
		fav_create_readers(attachment,
						   has_view ? NULL : fav_choose_view_name(get_rel_name(levels)));
}
