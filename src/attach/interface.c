/*
 * interface.c
 *		What people use an attachment with: the function <name>_has and the view <name>_fav, and
 *		the functions <sink>_add and <sink>_remove.
 *
 * All are ordinary objects of the owner, in the schema of the levels table.  They are found by
 * identity, not by name: they depend on the levels table, belong to its owner, and call our
 * functions.  Nobody else can make such an object.
 *
 * <name>_has says if the filters are complete.  The view is made when they are.
 */
#include "attach/catalogs.h"
#include "attach/columns.h"
#include "attach/definition.h"
#include "attach/interface.h"
#include "attach/queries.h"
#include "attach/rights.h"
#include "attach/spread.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_trigger.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(fav_refuse_write);

static const struct
{
	const char *suffix;			/* of its name */
	const char *called;			/* the function of ours that it calls; NULL: it is the view */
	AclMode		right;			/* who has it on the source may use it */
}			kinds[] =
{
	[FAV_OBJECT_HAS] = {"has", "fav_has", ACL_SELECT},
	[FAV_OBJECT_ADD] = {"add", "fav_sink_add", ACL_INSERT},
	[FAV_OBJECT_REMOVE] = {"remove", "fav_sink_remove", ACL_DELETE},
	[FAV_OBJECT_VIEW] = {"fav", NULL, ACL_SELECT}
};

/*
 * Finding functions
 */

/* The call that the body of a function consists of; NULL if it is anything else. */
static FuncExpr *
read_body(HeapTuple function)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(PROCOID, function, Anum_pg_proc_prosqlbody, &isnull);
	Query	   *body = isnull ? NULL : stringToNode(TextDatumGetCString(value));
	Expr	   *call;

	if (body == NULL || !IsA(body, Query) || list_length(body->targetList) != 1)
		return NULL;
	call = linitial_node(TargetEntry, body->targetList)->expr;
	return IsA(call, FuncExpr) ? (FuncExpr *) call : NULL;
}

/* Argument n of a call, if it is a constant of this type. */
static bool
read_constant(const FuncExpr *call, int n, Oid type, Datum *value)
{
	Const	   *argument = list_length(call->args) > n ? list_nth(call->args, n) : NULL;

	if (argument == NULL || !IsA(argument, Const) || argument->consttype != type ||
		argument->constisnull)
		return false;
	*value = argument->constvalue;
	return true;
}

/* What a function is that has this body; false if it is none of ours, for this levels table. */
static bool
read_call(Oid schema, Oid levels, const FuncExpr *call, FavObject *object)
{
	const char *called = get_func_name(call->funcid);
	Datum		value;
	Datum		exact = BoolGetDatum(false);
	Datum		complete = BoolGetDatum(false);

	if (called == NULL || get_func_namespace(call->funcid) != schema ||
		!read_constant(call, 0, REGCLASSOID, &value) || DatumGetObjectId(value) != levels)
		return false;
	for (object->kind = FAV_OBJECT_HAS; object->kind < FAV_OBJECT_VIEW; object->kind++)
		if (strcmp(called, kinds[object->kind].called) == 0)
			break;
	if (object->kind == FAV_OBJECT_VIEW ||
		(object->kind == FAV_OBJECT_HAS && !(read_constant(call, 2, BOOLOID, &exact) &&
											 read_constant(call, 3, BOOLOID, &complete))))
		return false;
	object->exact = DatumGetBool(exact);
	object->complete = DatumGetBool(complete);

	/* anybody may add functions to our schema, but not to our extension */
	return getExtensionOfObject(ProcedureRelationId, call->funcid) ==
		get_extension_oid("fav", false);
}

/*
 * The functions of an owner, or of anybody, whose body is RETURN ours('levels'::regclass, ...); a
 * list of FavObject.
 */
static List *
list_functions(Oid schema, Oid levels, Oid owner)
{
	List	   *functions = NIL;
	ListCell   *cell;

	foreach(cell, fav_dependents(RelationRelationId, levels, ProcedureRelationId))
	{
		HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(lfirst_oid(cell)));
		FavObject  *object = palloc0(sizeof(FavObject));
		FuncExpr   *call = NULL;
		Form_pg_proc form;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_proc) GETSTRUCT(tuple);
		object->oid = lfirst_oid(cell);
		object->owner = form->proowner;
		object->namespace = form->pronamespace;
		object->name = pstrdup(NameStr(form->proname));
		if (!OidIsValid(owner) || owner == form->proowner)
			call = read_body(tuple);
		ReleaseSysCache(tuple);
		if (call != NULL && read_call(schema, levels, call, object))
			functions = lappend(functions, object);
	}
	return functions;
}

/*
 * Finding views
 */

/* Does the relation have our trigger that refuses to write it? */
static bool
refuses_writes(Oid schema, Oid relation)
{
	Oid			function = fav_find_function(schema, "fav_refuse_write", 0, NULL);
	bool		found = false;
	HeapTuple	row;
	FavScan		scan;

	fav_begin_scan(&scan, TriggerRelationId, TriggerRelidNameIndexId, Anum_pg_trigger_tgrelid,
				   relation);
	while (HeapTupleIsValid(row = fav_next_row(&scan)))
		found |= ((Form_pg_trigger) GETSTRUCT(row))->tgfoid == function;
	fav_end_scan(&scan);
	return found;
}

/*
 * The views that look like ours, whoever has made them; a list of FavObject.  Those that Citus has
 * made, on other nodes and where it converts the source, have no trigger.
 */
static List *
list_views(Oid schema, Oid levels, bool are_of_citus)
{
	Oid			fav = get_atttype(levels, FAV_LEVELS_RECENT);
	Oid			stack = fav_find_function(schema, "fav_stack", 3, (Oid[]) {fav, fav, fav});
	List	   *callers = are_of_citus ?
		fav_dependents(ProcedureRelationId, stack, RewriteRelationId) : NIL;
	List	   *views = NIL;
	ListCell   *cell;

	foreach(cell, fav_dependents(RelationRelationId, levels, RewriteRelationId))
	{
		FavObject  *object = palloc0(sizeof(FavObject));

		object->kind = FAV_OBJECT_VIEW;
		object->oid = fav_relation_of(RewriteRelationId, lfirst_oid(cell),
									  Anum_pg_rewrite_ev_class);
		object->owner = fav_owner_of(object->oid);
		object->namespace = get_rel_namespace(object->oid);
		object->name = get_rel_name(object->oid);
		if (object->name != NULL && get_rel_relkind(object->oid) == RELKIND_VIEW &&
			(are_of_citus ? list_member_oid(callers, lfirst_oid(cell)) :
			 refuses_writes(schema, object->oid)))
			views = lappend(views, object);
	}
	return views;
}

/* The first object of its kind and owner in a list; false if there is none. */
static bool
find_in_list(const List *objects, FavObjectKind kind, Oid owner, FavObject *found)
{
	const ListCell *cell;

	foreach(cell, objects)
	{
		*found = *(FavObject *) lfirst(cell);
		if (found->kind == kind && found->owner == owner)
			return true;
	}
	memset(found, 0, sizeof(*found));
	return false;
}

/* An object of a levels table; false, and zeros, if there is none of this kind. */
bool
fav_find_object(Oid schema, Oid levels, FavObjectKind kind, FavObject *object)
{
	Oid			owner = fav_owner_of(levels);

	if (kind != FAV_OBJECT_VIEW)
		return find_in_list(list_functions(schema, levels, owner), kind, owner, object);
	return find_in_list(list_views(schema, levels, false), kind, owner, object) ||
		(fav_spread() != NULL &&
		 find_in_list(list_views(schema, levels, true), kind, owner, object));
}

/* InvalidOid if there is none. */
Oid
fav_view_of_levels(Oid schema, Oid levels)
{
	FavObject	view;

	(void) fav_find_object(schema, levels, FAV_OBJECT_VIEW, &view);
	return view.oid;
}

/* The name of the function that removes elements from a sink, for hints. */
const char *
fav_name_of_remove(const FavAttachment *attachment)
{
	FavObject	remove;

	return fav_find_object(attachment->schema, fav_shell(attachment->levels), FAV_OBJECT_REMOVE,
						   &remove) ? quote_identifier(remove.name) : "fav_sink_remove";
}

/* An object in a command. */
static char *
identity(const FavObject *object)
{
	return object->kind == FAV_OBJECT_VIEW ?
		psprintf("VIEW %s", fav_relation_name(object->oid)) :
		psprintf("FUNCTION %s", format_procedure_qualified(object->oid));
}

/*
 * After the owner of the source has changed
 */

/* A name without its ending; NULL if it does not have that. */
static char *
without(const char *name, const char *ending)
{
	size_t		length = strlen(name);
	size_t		end = strlen(ending);

	return length > end && strcmp(name + length - end, ending) == 0 ?
		pnstrdup(name, length - end) : NULL;
}

/* Has an object the schema and the name that we give to those of a levels table? */
static bool
is_placed_like_ours(const FavObject *object, Oid levels)
{
	const char *base = without(object->name, psprintf("_%s", kinds[object->kind].suffix));

	return base != NULL &&
		get_relname_relid(makeObjectName(base, "fav", "levels"), object->namespace) == levels;
}

/*
 * The commands that are missing after the source has got another owner: levels table, view and
 * functions must follow.  NULL if there are none.  A view that was dropped is not missed.
 *
 * Anybody can make an object that looks like ours, and the owner must not be told to take it over.
 * So it must belong to the owner of the levels table or, if that table has the new owner already,
 * who has no such object, be placed like ours.
 */
const char *
fav_list_owner_commands(Oid schema, Oid source, Oid levels)
{
	Oid			owner = fav_owner_of(source);
	Oid			former = fav_owner_of(levels);
	List	   *objects;
	FavObject	found;
	StringInfoData commands;
	const char *new_owner;
	ListCell   *cell;

	if (!OidIsValid(owner) || !OidIsValid(former))
		return NULL;
	initStringInfo(&commands);
	new_owner = quote_identifier(GetUserNameFromId(owner, false));
	if (former != owner)
		appendStringInfo(&commands, " ALTER TABLE %s OWNER TO %s;", fav_relation_name(levels),
						 new_owner);
	objects = list_functions(schema, levels, InvalidOid);
	if (!find_in_list(objects, FAV_OBJECT_HAS, former, &found) || found.complete)
		objects = list_concat(list_views(schema, levels, false), objects);
	foreach(cell, objects)
	{
		const FavObject *object = lfirst(cell);

		if (object->owner != owner &&
			(former != owner ? object->owner == former :
			 is_placed_like_ours(object, levels) &&
			 !find_in_list(objects, object->kind, owner, &found)))
			appendStringInfo(&commands, " ALTER %s OWNER TO %s;", identity(object), new_owner);
	}
	return commands.len > 0 ? commands.data + 1 : NULL;
}

/*
 * Creating
 */

/* Any integer is given as a bigint, and any text as text. */
const char *
fav_argument_type_name(const FavColumn *column)
{
	return format_type_extended(fav_argument_type(column), -1, FORMAT_TYPE_FORCE_QUALIFY);
}

/* An overload would make calls ambiguous, so the name must be free, whatever the arguments. */
void
fav_refuse_taken_function(Oid namespace, const char *name)
{
	CatCList   *functions = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(name));
	bool		is_taken = false;
	int			i;

	for (i = 0; i < functions->n_members; i++)
		is_taken |= ((Form_pg_proc) GETSTRUCT(&functions->members[i]->tuple))->pronamespace ==
			namespace;
	ReleaseSysCacheList(functions);
	if (is_taken)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_FUNCTION),
				 errmsg("function \"%s\" already exists in schema \"%s\"", name,
						get_namespace_name(namespace)),
				 errhint("Rename it or, for fav_attach, choose another name for the filters with"
						 " name => '...'.")));
}

/* The arguments key and element of a function, which are called like the columns. */
static char *
column_arguments(const FavAttachment *attachment)
{
	return psprintf("%s %s, %s %s", quote_identifier(NameStr(attachment->key.name)),
					fav_argument_type_name(&attachment->key),
					quote_identifier(NameStr(attachment->element.name)),
					fav_argument_type_name(&attachment->element));
}

/*
 * Make a function from what follows its name, with a comment about the source.  If somebody else
 * is about to create one of this name, that must not be replaced: it would still be theirs.
 */
static Oid
create_function(const FavAttachment *attachment, FavObjectKind kind, const char *base,
				const char *definition, const char *comment)
{
	Oid			namespace = get_rel_namespace(attachment->levels);
	const char *name = makeObjectName(base, NULL, kinds[kind].suffix);
	FavObject	object;

	fav_refuse_taken_function(namespace, name);
	fav_run(psprintf("CREATE FUNCTION %s%s",
					 quote_qualified_identifier(get_namespace_name(namespace), name), definition));
	if (!fav_find_object(attachment->schema, attachment->levels, kind, &object))
		elog(ERROR, "function %s was not created", name);
	fav_run(psprintf("COMMENT ON %s IS %s", identity(&object),
					 quote_literal_cstr(psprintf(comment, get_rel_name(attachment->source)))));
	fav_grant_call(attachment->source, object.oid, kinds[kind].right);
	return object.oid;
}

static char *
define_has(const FavAttachment *attachment, const char *arguments, bool exact, bool complete)
{
	return psprintf("(%s) RETURNS pg_catalog.bool LANGUAGE sql STABLE PARALLEL SAFE"
					" RETURN %s, %s, %s)", arguments,
					fav_query(attachment, "{fav}.fav_has({'levels'}::pg_catalog.regclass,"
							  " ROW($1, $2)"),
					exact ? "true" : "false", complete ? "true" : "false");
}

static Oid
create_has(const FavAttachment *attachment, const char *base, bool exact, bool complete)
{
	return create_function(attachment, FAV_OBJECT_HAS, base,
						   define_has(attachment, column_arguments(attachment), exact, complete),
						   attachment->is_sink ? "was the pair inserted into sink %s?" :
						   "is the pair in table %s?");
}

/* Its arguments may have other names than the columns by now, and must keep them.  As the owner. */
void
fav_replace_has(const FavAttachment *attachment, const FavObject *has)
{
	Datum		arguments = DirectFunctionCall1(pg_get_function_arguments,
												ObjectIdGetDatum(has->oid));

	fav_run(psprintf("CREATE OR REPLACE FUNCTION %s%s",
					 quote_qualified_identifier(get_namespace_name(has->namespace), has->name),
					 define_has(attachment, TextDatumGetCString(arguments), has->exact,
								has->complete)));
}

/*
 * <sink>_add(key, elements) and <sink>_remove(key, elements, exclude), with the types of the sink.
 * The bodies are resolved here, once, and depend on the levels table.
 */
static void
create_sink_functions(const FavAttachment *attachment, const char *base)
{
	const char *columns = column_arguments(attachment);
	bool		is_taken = strcmp(NameStr(attachment->key.name), "exclude") == 0 ||
		strcmp(NameStr(attachment->element.name), "exclude") == 0;

	(void) create_function(attachment, FAV_OBJECT_ADD, base,
		psprintf("(%s[]) RETURNS %s[] LANGUAGE sql VOLATILE PARALLEL UNSAFE RETURN %s", columns,
				 fav_argument_type_name(&attachment->element),
				 fav_query(attachment, "{fav}.fav_sink_add({'levels'}::pg_catalog.regclass,"
						   " ROW($1), $2)")),
		"add elements to sink %s, and return those that are new");
	(void) create_function(attachment, FAV_OBJECT_REMOVE, base,
		psprintf("(%s[], %s pg_catalog.bool DEFAULT false) RETURNS pg_catalog.void"
				 " LANGUAGE sql VOLATILE PARALLEL UNSAFE RETURN %s", columns,
				 is_taken ? "" : "exclude",
				 fav_query(attachment, "{fav}.fav_sink_remove({'levels'}::pg_catalog.regclass,"
						   " ROW($1), $2, $3)")),
		"remove elements from sink %s");
}

/*
 * Make the view of a levels table, in its schema.  It names the source, so that this cannot be
 * dropped without it.
 */
static void
create_view(const FavAttachment *attachment, const char *base)
{
	Oid			namespace = get_rel_namespace(attachment->levels);
	const char *name = makeObjectName(base, NULL, kinds[FAV_OBJECT_VIEW].suffix);
	const char *view = quote_qualified_identifier(get_namespace_name(namespace), name);

	fav_run(psprintf("CREATE VIEW %s AS %s", view, fav_query(attachment,
		attachment->keep == 0 ?
		"SELECT l.{key}, {fav}.fav_stack(l.{base}, l.{middle}, l.{recent}) AS {filter}"
		" FROM {levels} l WHERE {'source'}::pg_catalog.regclass IS NOT NULL" :
		"SELECT l.{key}, {fav}.fav_expire({fav}.fav_stack(l.{base}, l.{middle}, l.{recent}),"
		" {fav}.fav_period('{period}'::pg_catalog.int8)) AS {filter}"
		" FROM {levels} l WHERE {'source'}::pg_catalog.regclass IS NOT NULL")));
	fav_run(psprintf("CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON %s"
					 " FOR EACH ROW EXECUTE FUNCTION %s", view,
					 fav_query(attachment, "{fav}.fav_refuse_write()")));
	fav_grant_to_readers(attachment->source, get_relname_relid(name, namespace));
}

/* All that a new levels table has to have.  Returns <name>_has.  As the owner. */
Oid
fav_create_interface(const FavAttachment *attachment, const char *name, bool exact, bool complete)
{
	Oid			has = create_has(attachment, name, exact, complete);

	if (complete)
		create_view(attachment, name);
	if (attachment->is_sink)
		create_sink_functions(attachment, name);
	return has;
}

/*
 * Filters are complete now, if they have not been before.  Then those who may read the source by
 * now get their rights.  The lock keeps two sessions from saying so at once; writers do not wait
 * for it.  A shard is read through its table.  As the owner.
 */
void
fav_complete(const FavAttachment *attachment)
{
	Oid			levels = attachment->levels;
	const char *name = get_rel_name(levels);
	const char *base = without(name, "_fav_levels");
	FavObject	has;

	LockRelationOid(levels, ShareUpdateExclusiveLock);
	if (fav_shell(levels) != levels)
		return;
	if (base == NULL)
		base = name;
	if (!fav_find_object(attachment->schema, levels, FAV_OBJECT_HAS, &has))
		(void) create_has(attachment, base, true, true);
	else if (!has.complete)
	{
		has.complete = true;
		fav_replace_has(attachment, &has);
		fav_grant_call(attachment->source, has.oid, ACL_SELECT);
		fav_grant_select(attachment->source, levels);
	}
	if (!OidIsValid(fav_view_of_levels(attachment->schema, levels)))
		create_view(attachment, base);
}

/* As the owner. */
void
fav_drop_interface(Oid schema, Oid levels)
{
	List	   *objects = list_functions(schema, levels, fav_owner_of(levels));
	FavObject	view;
	ListCell   *cell;

	if (fav_find_object(schema, levels, FAV_OBJECT_VIEW, &view))
		objects = lappend(objects, &view);
	foreach(cell, objects)
		fav_run(psprintf("DROP %s", identity(lfirst(cell))));
}

/*
 * The trigger of the view
 */

Datum
fav_refuse_write(PG_FUNCTION_ARGS)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	const char *source = NULL;
	FavAttachment definition;
	Relation	view;
	ListCell   *cell;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("fav_refuse_write must be called by a trigger")));
	view = ((TriggerData *) fcinfo->context)->tg_relation;
	foreach(cell, view->rd_rel->relkind == RELKIND_VIEW ? get_view_query(view)->rtable : NIL)
		if (source == NULL &&
			fav_read_definition(schema, lfirst_node(RangeTblEntry, cell)->relid, &definition))
			source = get_rel_name(definition.source);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("view \"%s\" cannot be written", RelationGetRelationName(view)),
			 source == NULL ? 0 : errdetail("Its filters follow table \"%s\".", source),
			 source == NULL ? 0 : definition.is_sink ?
			 errhint("Insert into \"%s\" instead, or remove elements with its function"
					 " ..._remove.", source) :
			 errhint("Insert into, update or delete from \"%s\" instead.", source)));
	return (Datum) 0;
}
