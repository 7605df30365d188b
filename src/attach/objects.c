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
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "parser/parse_func.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* The triggers of an attachment on one table. */
typedef struct TriggerShape
{
	const char *suffix;			/* of its name */
	const char *event;
	int16		type;			/* bits that its tgtype has */
} TriggerShape;

static const TriggerShape insert_trigger = {"insert", "INSERT", TRIGGER_TYPE_ROW | TRIGGER_TYPE_INSERT};
static const TriggerShape update_trigger = {"update", "UPDATE", TRIGGER_TYPE_ROW | TRIGGER_TYPE_UPDATE};
static const TriggerShape delete_trigger = {"delete", "DELETE", TRIGGER_TYPE_ROW | TRIGGER_TYPE_DELETE};
static const TriggerShape statement_trigger = {
	"statement", "INSERT OR UPDATE OR DELETE OR TRUNCATE",
	TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE | TRIGGER_TYPE_TRUNCATE
};

static const TriggerShape *const shapes[] = {&insert_trigger, &update_trigger, &delete_trigger, &statement_trigger};

/*
 * Triggers
 */

/* The trigger of this shape; NULL if the relation has none. */
static const FavTrigger *
find_trigger(Oid schema, Oid relation, Oid levels, const TriggerShape *shape)
{
	ListCell   *cell;

	foreach(cell, fav_read_triggers(schema, relation))
	{
		const FavTrigger *trigger = lfirst(cell);

		if (trigger->when.levels == levels && trigger->is_of_rows == (shape != &statement_trigger) &&
			(trigger->type & shape->type) == shape->type)
			return trigger;
	}
	return NULL;
}

/* What a trigger is fired for.  The tables and columns are in the order of fav_read_when(). */
static char *
when_clause(Oid source, Oid levels, const FavColumn *key, const FavColumn *element, const TriggerShape *shape)
{
	const char *k = quote_identifier(NameStr(key->name));
	const char *e = quote_identifier(NameStr(element->name));
	char	   *tables = psprintf("%s::pg_catalog.regclass IS NOT NULL AND %s::pg_catalog.regclass IS NOT NULL",
								  quote_literal_cstr(fav_relation_name(levels)),
								  quote_literal_cstr(fav_relation_name(source)));

	if (shape == &statement_trigger)
		return tables;
	if (shape == &update_trigger)
	{
		/* Elements are the same if their bytes are, whatever the collation says. */
		const char *collate = OidIsValid(element->collation) ? " COLLATE pg_catalog.\"C\"" : "";

		return psprintf("%s AND (OLD.%s %s NEW.%s AND OLD.%s%s OPERATOR(pg_catalog.=) NEW.%s%s) IS NOT TRUE",
						tables, k, fav_equality(fav_check_key(key)), k, e, collate, e, collate);
	}
	return psprintf(shape == &insert_trigger ? "%s AND NEW.%s IS NOT NULL AND NEW.%s IS NOT NULL" :
					"%s AND OLD.%s IS NOT NULL AND OLD.%s IS NOT NULL", tables, k, e);
}

static void
create_trigger(Oid schema, Oid relation, Oid source, Oid levels, const FavColumn *key, const FavColumn *element,
			   const FavParams *params, const TriggerShape *shape)
{
	char	   *error_rate = DatumGetCString(DirectFunctionCall1(float8out, Float8GetDatum(params->error_rate)));
	bool		is_of_rows = shape != &statement_trigger;

	fav_spi_run(psprintf("CREATE TRIGGER %s AFTER %s ON %s FOR EACH %s WHEN (%s)"
						 " EXECUTE FUNCTION %s.%s('%s', '" INT64_FORMAT "')",
						 quote_identifier(makeObjectName(get_rel_name(levels), NULL, shape->suffix)), shape->event,
						 fav_relation_name(relation), is_of_rows ? "ROW" : "STATEMENT",
						 when_clause(source, levels, key, element, shape), fav_schema_name(schema),
						 is_of_rows ? FAV_COLLECT : FAV_RECONCILE, error_rate, (int64) params->seed));
}

/*
 * All triggers of an attachment, as far as they are missing or not enabled.  PostgreSQL
 * clones the row triggers of a partitioned table to its partitions, also to those that are
 * made later.  They fire in replicas, too: filters that are true only in some sessions are
 * of no use.
 */
void
fav_create_triggers(Oid schema, Oid source, Oid levels, const FavColumn *key, const FavColumn *element,
					const FavParams *params)
{
	List	   *family = find_all_inheritors(source, ShareRowExclusiveLock, NULL);
	ListCell   *cell;
	size_t		i;

	foreach(cell, family)
	{
		Oid			relation = lfirst_oid(cell);

		for (i = 0; i < lengthof(shapes); i++)
		{
			bool		is_clone = shapes[i] != &statement_trigger && relation != source && get_rel_relispartition(relation);
			const FavTrigger *trigger = find_trigger(schema, relation, levels, shapes[i]);

			if (trigger == NULL && !is_clone)
			{
				create_trigger(schema, relation, source, levels, key, element, params, shapes[i]);
				CommandCounterIncrement();
				trigger = find_trigger(schema, relation, levels, shapes[i]);
			}
			if (trigger != NULL && !trigger->is_enabled)
				fav_spi_run(psprintf("ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %s", fav_relation_name(relation),
									 quote_identifier(NameStr(trigger->name))));
		}
	}
}

/*
 * Are all triggers there and enabled?  A partition that was made later has no statement
 * trigger: its changes are seen, but not a TRUNCATE of it alone.
 */
bool
fav_is_active(Oid schema, Oid source, Oid levels)
{
	ListCell   *cell;
	size_t		i;

	foreach(cell, find_all_inheritors(source, NoLock, NULL))
	{
		Oid			relation = lfirst_oid(cell);

		for (i = 0; i < lengthof(shapes); i++)
		{
			const FavTrigger *trigger = find_trigger(schema, relation, levels, shapes[i]);

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
	name = quote_qualified_identifier(get_namespace_name(form->collnamespace), NameStr(form->collname));
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
	text = format_type_extended(type, modifier, FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
	return OidIsValid(collation) ? psprintf("%s COLLATE %s", text, collation_name(collation)) : text;
}

/*
 * The levels table, the view and the function to read it, beside the source.  The view
 * names the source, so that this cannot be dropped without it.  Returns the levels table.
 */
Oid
fav_create_objects(Oid schema, Oid source, const FavColumn *key, FavKind kind, const char *view_name,
				   const char *levels_name)
{
	const char *extension = fav_schema_name(schema);
	const char *namespace = get_namespace_name(get_rel_namespace(source));
	const char *levels = quote_qualified_identifier(namespace, levels_name);
	const char *k = quote_identifier(NameStr(key->name));

	fav_spi_run(psprintf("CREATE %sTABLE %s (%s %s PRIMARY KEY, base %s.fav, middle %s.fav, recent %s.fav NOT NULL)"
						 " WITH (fillfactor = 80)",
						 get_rel_persistence(source) == RELPERSISTENCE_UNLOGGED ? "UNLOGGED " : "", levels,
						 k, column_type(source, key->number), extension, extension, extension));

	/* It must stay in the row: that is what makes a write cheap. */
	fav_spi_run(psprintf("ALTER TABLE %s ALTER COLUMN recent SET STORAGE PLAIN", levels));
	fav_spi_run(psprintf("COMMENT ON TABLE %s IS %s", levels,
						 quote_literal_cstr(psprintf("filters of table %s, kept by fav_attach",
													 quote_identifier(get_rel_name(source))))));
	fav_spi_run(psprintf("CREATE VIEW %s AS SELECT l.%s, %s.fav_stack(l.base, l.middle, l.recent) AS filter FROM %s l"
						 " WHERE %s::pg_catalog.regclass IS NOT NULL",
						 quote_qualified_identifier(namespace, view_name), k, extension, levels,
						 quote_literal_cstr(fav_relation_name(source))));
	fav_spi_run(psprintf("CREATE FUNCTION %s.fav_contains(levels %s, element %s) RETURNS pg_catalog.bool"
						 " LANGUAGE sql IMMUTABLE PARALLEL SAFE " FAV_SQL_BODY,
						 quote_identifier(namespace), levels, fav_element_type_name(kind),
						 psprintf("%s.fav_contains((levels).base, (levels).middle, (levels).recent, element)", extension)));
	return get_relname_relid(levels_name, get_rel_namespace(source));
}

typedef void (*DependentVisitor) (Form_pg_depend depend, void *context);

static void
visit_dependents(Oid class, Oid object, DependentVisitor visit, void *context)
{
	Relation	catalog = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(class));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(object));
	scan = systable_beginscan(catalog, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		visit((Form_pg_depend) GETSTRUCT(tuple), context);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
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

	ScanKeyInit(&key, Anum_pg_rewrite_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(rule));
	scan = systable_beginscan(catalog, RewriteOidIndexId, true, NULL, 1, &key);
	if (HeapTupleIsValid(tuple = systable_getnext(scan)))
		relation = ((Form_pg_rewrite) GETSTRUCT(tuple))->ev_class;
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return relation;
}

typedef struct ViewSearch
{
	Oid			owner;
	List	   *rules;			/* those that call fav_stack */
	Oid			found;			/* the oldest that fits */
} ViewSearch;

static void
add_rule(Form_pg_depend depend, void *context)
{
	ViewSearch *search = context;

	if (depend->classid == RewriteRelationId)
		search->rules = lappend_oid(search->rules, depend->objid);
}

static void
find_view(Form_pg_depend depend, void *context)
{
	ViewSearch *search = context;
	Oid			view;
	char	   *name;

	if (depend->classid != RewriteRelationId || !list_member_oid(search->rules, depend->objid))
		return;
	view = relation_of_rule(depend->objid);
	if (!OidIsValid(view) || get_rel_relkind(view) != RELKIND_VIEW || !fav_has_owner(view, search->owner))
		return;
	name = get_attname(view, 2, true);
	if (name != NULL && strcmp(name, "filter") == 0 && get_attname(view, 3, true) == NULL && (!OidIsValid(search->found) || view < search->found))
		search->found = view;
}

/* The view of (key, filter) over a levels table; InvalidOid if it was dropped. */
Oid
fav_view_of_levels(Oid schema, Oid levels)
{
	ViewSearch	search;

	Oid			types[3];
	List	   *name = list_make2(makeString(get_namespace_name(schema)), makeString("fav_stack"));

	types[0] = types[1] = types[2] = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("fav"),
													 ObjectIdGetDatum(schema));
	search.owner = fav_owner_of(levels);
	search.rules = NIL;
	search.found = InvalidOid;
	visit_dependents(ProcedureRelationId, LookupFuncName(name, 3, types, false), add_rule, &search);
	visit_dependents(RelationRelationId, levels, find_view, &search);
	return search.found;
}

static void
add_trigger(Form_pg_depend depend, void *context)
{
	ObjectAddress address;

	ObjectAddressSet(address, depend->classid, depend->objid);
	if (depend->classid == TriggerRelationId && !object_address_present(&address, context))
		add_exact_object_address(&address, context);
}

typedef struct FunctionSearch
{
	Oid			owner;
	ObjectAddresses *found;
} FunctionSearch;

static void
add_function(Form_pg_depend depend, void *context)
{
	FunctionSearch *search = context;
	ObjectAddress address;
	HeapTuple	tuple;

	if (depend->classid != ProcedureRelationId)
		return;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(depend->objid));
	if (!HeapTupleIsValid(tuple))
		return;
	ObjectAddressSet(address, ProcedureRelationId, depend->objid);
	if (strcmp(NameStr(((Form_pg_proc) GETSTRUCT(tuple))->proname), "fav_contains") == 0 &&
		((Form_pg_proc) GETSTRUCT(tuple))->proowner == search->owner &&
		!object_address_present(&address, search->found))
		add_exact_object_address(&address, search->found);
	ReleaseSysCache(tuple);
}

/*
 * Drop all of an attachment: its triggers wherever they are, the view, the function and the
 * levels table.  Whatever else depends on these stays, and makes this an error.
 */
void
fav_drop_objects(Oid schema, Oid levels)
{
	ObjectAddresses *objects = new_object_addresses();
	FunctionSearch functions = {fav_owner_of(levels), objects};
	Oid			view = fav_view_of_levels(schema, levels);
	ObjectAddress address;

	visit_dependents(RelationRelationId, levels, add_trigger, objects);
	visit_dependents(TypeRelationId, get_rel_type_id(levels), add_function, &functions);
	if (OidIsValid(view))
	{
		ObjectAddressSet(address, RelationRelationId, view);
		add_exact_object_address(&address, objects);
	}
	ObjectAddressSet(address, RelationRelationId, levels);
	add_exact_object_address(&address, objects);
	performMultipleDeletions(objects, DROP_RESTRICT, 0);
	free_object_addresses(objects);
}
