/*
 * readers.c
 *		What people read an attachment with: the function <name>_has and the view <name>_fav.
 *
 * Both are ordinary objects of the owner, in the schema of the levels table.  They are found by
 * identity, not by name: they depend on the levels table, belong to its owner, and call our
 * functions.  Nobody else can make such an object.
 *
 * The function says if the filters are complete.  The view is made when they are.
 */
#include "attach/catalogs.h"
#include "attach/monitor.h"
#include "attach/objects.h"
#include "attach/queries.h"
#include "attach/spread.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_trigger.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(fav_refuse_write);

/*
 * The function
 */

/*
 * The call that the body of a function of an owner, or of anybody, consists of; NULL if it is
 * anything else.
 */
FuncExpr *
fav_read_body(Oid function, Oid owner)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Node	   *body = NULL;
	bool		isnull;
	Datum		source;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosqlbody, &isnull);
	if (!isnull &&
		(!OidIsValid(owner) || ((Form_pg_proc) GETSTRUCT(tuple))->proowner == owner))
		body = stringToNode(TextDatumGetCString(source));
	ReleaseSysCache(tuple);
	if (body == NULL || !IsA(body, Query) || list_length(((Query *) body)->targetList) != 1)
		return NULL;
	body = (Node *) ((TargetEntry *) linitial(((Query *) body)->targetList))->expr;
	return IsA(body, FuncExpr) ? (FuncExpr *) body : NULL;
}

static Oid
owner_of_function(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

static bool
is_constant(Node *node, Oid type)
{
	return IsA(node, Const) && ((Const *) node)->consttype == type &&
		!((Const *) node)->constisnull;
}

static Oid
has_function(Oid schema)
{
	Oid			types[4] = {REGCLASSOID, RECORDOID, BOOLOID, BOOLOID};

	return fav_find_function(schema, "fav_has", 4, types);
}

/* The function <name>_has of a levels table; false if there is none. */
bool
fav_find_has(Oid schema, Oid levels, FavHas *has)
{
	ListCell   *cell;

	memset(has, 0, sizeof(*has));
	foreach(cell, fav_dependents(levels, ProcedureRelationId))
	{
		FuncExpr   *call = fav_read_body(lfirst_oid(cell), fav_owner_of(levels));

		if (call == NULL || call->funcid != has_function(schema) ||
			!is_constant(linitial(call->args), REGCLASSOID) ||
			DatumGetObjectId(((Const *) linitial(call->args))->constvalue) != levels ||
			!is_constant(lthird(call->args), BOOLOID) ||
			!is_constant(lfourth(call->args), BOOLOID))
			continue;
		has->function = lfirst_oid(cell);
		has->exact = DatumGetBool(((Const *) lthird(call->args))->constvalue);
		has->complete = DatumGetBool(((Const *) lfourth(call->args))->constvalue);
		return true;
	}
	return false;
}

static const char *
type_name(const FavColumn *column)
{
	return format_type_extended(fav_argument_type(column), -1, FORMAT_TYPE_FORCE_QUALIFY);
}

/* The arguments are called like the columns, or as they were when the function was made. */
static char *
argument_name(Oid function, int number, const FavColumn *column)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	char	   *name = pstrdup(NameStr(column->name));
	Oid		   *types;
	char	  **names;
	char	   *modes;

	if (!HeapTupleIsValid(tuple))
		return name;
	if (get_func_arg_info(tuple, &types, &names, &modes) == 2 && names != NULL)
		name = names[number];
	ReleaseSysCache(tuple);
	return name;
}

static char *
function_name(Oid function)
{
	return quote_qualified_identifier(get_namespace_name(get_func_namespace(function)),
									  get_func_name(function));
}

/*
 * Replace the function, or create it.  If somebody else is about to create one of this name, that
 * must not be replaced: it would still be theirs.
 */
static void
write_has(const FavAttachment *attachment, Oid function, const char *name, bool exact,
		  bool complete)
{
	char	   *key = argument_name(function, 0, &attachment->key);
	char	   *element = argument_name(function, 1, &attachment->element);

	fav_run(psprintf("CREATE%s FUNCTION %s(%s %s, %s %s) RETURNS pg_catalog.bool"
					 " LANGUAGE sql STABLE PARALLEL SAFE RETURN %s.fav_has("
					 "%s::pg_catalog.regclass, ROW($1, $2), %s, %s)",
					 OidIsValid(function) ? " OR REPLACE" : "", name,
					 key[0] == '\0' ? "" : quote_identifier(key), type_name(&attachment->key),
					 element[0] == '\0' ? "" : quote_identifier(element),
					 type_name(&attachment->element),
					 quote_identifier(get_namespace_name(attachment->schema)),
					 quote_literal_cstr(fav_relation_name(attachment->levels)),
					 exact ? "true" : "false", complete ? "true" : "false"));
	CommandCounterIncrement();
}

/* Make <name>_has for a levels table that has none.  As the owner. */
void
fav_create_has(const FavAttachment *attachment, const char *name, bool exact, bool complete)
{
	Oid			namespace = get_rel_namespace(attachment->levels);
	FavHas		has;

	fav_refuse_taken_function(namespace, name);
	write_has(attachment, InvalidOid,
			  quote_qualified_identifier(get_namespace_name(namespace), name), exact, complete);
	if (!fav_find_has(attachment->schema, attachment->levels, &has))
		elog(ERROR, "function %s was not created", name);
	fav_run(psprintf("COMMENT ON FUNCTION %s IS %s", format_procedure_qualified(has.function),
					 quote_literal_cstr(psprintf(attachment->is_sink ?
												 "was the pair inserted into sink %s?" :
												 "is the pair in table %s?",
												 get_rel_name(attachment->source)))));
	fav_grant_call(attachment, has.function, ACL_SELECT);
}

/* As the owner. */
void
fav_replace_has(const FavAttachment *attachment, const FavHas *has)
{
	write_has(attachment, has->function, function_name(has->function), has->exact,
			  has->complete);
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

/*
 * The view
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

/* The views that look like ours, whoever has made them. */
static List *
list_views(Oid schema, Oid levels)
{
	List	   *views = NIL;
	ListCell   *cell;

	foreach(cell, fav_dependents(levels, RewriteRelationId))
	{
		Oid			view = fav_relation_of_rule(lfirst_oid(cell));

		if (OidIsValid(view) && get_rel_relkind(view) == RELKIND_VIEW &&
			refuses_writes(schema, view))
			views = lappend_oid(views, view);
	}
	return views;
}

/* Does a view, which a rule belongs to, call fav_stack? */
static bool
calls_stack(Oid schema, Oid rule, Oid fav)
{
	Oid			types[3] = {fav, fav, fav};

	return list_member_oid(fav_dependencies_of_rule(rule, ProcedureRelationId),
						   fav_find_function(schema, "fav_stack", 3, types));
}

/*
 * The view <name>_fav of a levels table; InvalidOid if there is none.  Citus makes it again, and
 * without its trigger, on other nodes and where it converts the source.
 */
Oid
fav_view_of_levels(Oid schema, Oid levels)
{
	Oid			owner = fav_owner_of(levels);
	Oid			fav = get_atttype(levels, FAV_LEVELS_RECENT);
	ListCell   *cell;

	foreach(cell, list_views(schema, levels))
		if (fav_owner_of(lfirst_oid(cell)) == owner)
			return lfirst_oid(cell);
	if (fav_spread() == NULL)
		return InvalidOid;
	foreach(cell, fav_dependents(levels, RewriteRelationId))
	{
		Oid			view = fav_relation_of_rule(lfirst_oid(cell));

		if (OidIsValid(view) && get_rel_relkind(view) == RELKIND_VIEW &&
			fav_owner_of(view) == owner && calls_stack(schema, lfirst_oid(cell), fav))
			return view;
	}
	return InvalidOid;
}

/*
 * Make the view of a levels table, in its schema.  It names the source, so that this cannot be
 * dropped without it.  As the owner.
 */
void
fav_create_view(const FavAttachment *attachment, const char *view_name)
{
	Oid			namespace = get_rel_namespace(attachment->levels);
	const char *view = quote_qualified_identifier(get_namespace_name(namespace), view_name);

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
	CommandCounterIncrement();
	fav_grant_to_readers(attachment, get_relname_relid(view_name, namespace));
}

/* The definition of the filters that a view reads; false if it is none of our views. */
static bool
read_definition_of_view(Oid schema, Relation view, FavDefinition *definition)
{
	ListCell   *cell;
	int			i;

	for (i = 0; view->rd_rules != NULL && i < view->rd_rules->numLocks; i++)
	{
		Oid			rule = view->rd_rules->rules[i]->ruleId;

		foreach(cell, fav_dependencies_of_rule(rule, RelationRelationId))
			if (fav_read_definition(schema, lfirst_oid(cell), definition))
				return true;
	}
	return false;
}

/* The trigger of the view. */
Datum
fav_refuse_write(PG_FUNCTION_ARGS)
{
	FavDefinition definition;
	Relation	view;
	char	   *source;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("fav_refuse_write must be called by a trigger")));
	view = ((TriggerData *) fcinfo->context)->tg_relation;
	source = !read_definition_of_view(fav_schema_of_function(fcinfo), view, &definition) ? NULL :
		get_rel_name(definition.source);
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

/*
 * Rights
 */

static bool
has_row_security(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_class) GETSTRUCT(tuple))->relrowsecurity;
	ReleaseSysCache(tuple);
	return result;
}

/* The roles other than the owner that have any of these rights, by an ACL; quoted. */
static List *
list_roles(Datum list, Oid owner, AclMode rights)
{
	Acl		   *acl = DatumGetAclPCopy(list);
	List	   *roles = NIL;
	int			i;

	for (i = 0; i < ACL_NUM(acl); i++)
	{
		const AclItem *item = &ACL_DAT(acl)[i];

		if (item->ai_grantee != owner && (ACLITEM_GET_PRIVS(*item) & rights) != 0)
			roles = lappend(roles, item->ai_grantee == ACL_ID_PUBLIC ? "PUBLIC" :
							(char *) quote_identifier(GetUserNameFromId(item->ai_grantee, false)));
	}
	return roles;
}

static List *
list_grantees(Oid relation, AclMode rights)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	List	   *grantees = NIL;
	bool		isnull;
	Datum		list;

	if (!HeapTupleIsValid(tuple))
		return NIL;
	list = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relacl, &isnull);
	if (!isnull)
		grantees = list_roles(list, ((Form_pg_class) GETSTRUCT(tuple))->relowner, rights);
	ReleaseSysCache(tuple);
	return grantees;
}

/*
 * Who has this right on the source may call a function.  PUBLIC may, unless the default privileges
 * of the owner are others.  As the owner.
 */
void
fav_grant_call(const FavAttachment *attachment, Oid function, AclMode right)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		is_public;
	ListCell   *cell;

	if (!HeapTupleIsValid(tuple))
		return;
	is_public = heap_attisnull(tuple, Anum_pg_proc_proacl, NULL);
	ReleaseSysCache(tuple);
	if (is_public)
		return;
	foreach(cell, list_grantees(attachment->source, right))
		fav_run(psprintf("GRANT EXECUTE ON FUNCTION %s TO %s",
						 format_procedure_qualified(function), (char *) lfirst(cell)));
}

/*
 * Those who may read the source may read its filters, too.  With row security, to read the source
 * is not to read all of it, and the filters are for the owner.
 */
static void
grant_select(const FavAttachment *attachment, Oid relation)
{
	ListCell   *cell;

	if (has_row_security(attachment->source))
		return;
	foreach(cell, list_grantees(attachment->source, ACL_SELECT))
		fav_run(psprintf("GRANT SELECT ON TABLE %s TO %s", fav_relation_name(relation),
						 (char *) lfirst(cell)));
	CommandCounterIncrement();
}

/* Nobody but the owner may write filters, whatever the default privileges say.  As the owner. */
void
fav_grant_to_readers(const FavAttachment *attachment, Oid relation)
{
	ListCell   *cell;

	foreach(cell, list_grantees(relation, ~(AclMode) 0))
		fav_run(psprintf("REVOKE ALL ON TABLE %s FROM %s", fav_relation_name(relation),
						 (char *) lfirst(cell)));
	grant_select(attachment, relation);
}

void
fav_notice_row_security(Oid source)
{
	if (has_row_security(source))
		ereport(NOTICE,
				(errmsg("only the owner of table \"%s\" can read its filters",
						get_rel_name(source)),
				 errdetail("The table has row security, which filters do not know."),
				 errhint("Grant SELECT on the filters to roles that may read all rows.")));
}

/*
 * Do policies or rules come between the filters and their users?  Policies hide filters from
 * readers, and rules replace the queries that write them.
 */
bool
fav_is_overruled(Oid levels)
{
	ListCell   *cell;

	foreach(cell, fav_dependents(levels, RewriteRelationId))
		if (fav_relation_of_rule(lfirst_oid(cell)) == levels)
			return true;
	return has_row_security(levels);
}

/*
 * State and names
 */

/* Filters are complete if the function says so. */
bool
fav_is_complete(Oid schema, Oid levels)
{
	FavHas		has;

	return fav_find_has(schema, levels, &has) && has.complete;
}

/* The name of an attachment, by that of its levels table. */
static char *
attachment_name(Oid levels)
{
	static const char suffix[] = "_fav_levels";
	char	   *name = get_rel_name(levels);
	size_t		length = strlen(name);

	if (length >= sizeof(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0)
		name[length - strlen(suffix)] = '\0';
	return name;
}

/*
 * Commands to run after the owner of the source has changed
 */

typedef struct Follow
{
	Oid			levels;
	Oid			owner;			/* the new one */
	StringInfoData commands;
} Follow;

static void
add_command(Follow *follow, const char *kind, const char *name)
{
	appendStringInfo(&follow->commands, "%sALTER %s %s OWNER TO %s;",
					 follow->commands.len > 0 ? " " : "", kind, name,
					 quote_identifier(GetUserNameFromId(follow->owner, false)));
}

/* Is an object called as we call it, beside a levels table of this name? */
static bool
has_name_of_ours(const char *name, const char *suffix, const char *levels)
{
	size_t		length = strlen(name);
	size_t		end = strlen(suffix) + 1;

	if (length < end || strcmp(name + length - end + 1, suffix) != 0)
		return false;
	return strcmp(makeObjectName(pnstrdup(name, length - end), "fav", "levels"), levels) == 0;
}

/*
 * Must an object that looks like ours get the new owner, too?  Anybody can make such an object, and
 * the owner must not be told to take it over.  So it must belong to the owner of the levels table
 * or, if that table has the new owner already, have the schema and the name that we give to ours.
 */
static bool
must_follow(const Follow *follow, Oid owner, Oid namespace, const char *name, const char *suffix)
{
	Oid			former = fav_owner_of(follow->levels);

	if (owner == follow->owner)
		return false;
	if (former != follow->owner)
		return owner == former;
	return namespace == get_rel_namespace(follow->levels) &&
		has_name_of_ours(name, suffix, get_rel_name(follow->levels));
}

static void
follow_view(Follow *follow, Oid schema)
{
	List	   *views = list_views(schema, follow->levels);
	ListCell   *cell;

	foreach(cell, views)
		if (fav_owner_of(lfirst_oid(cell)) == follow->owner)
			return;
	foreach(cell, views)
		if (must_follow(follow, fav_owner_of(lfirst_oid(cell)),
						get_rel_namespace(lfirst_oid(cell)), get_rel_name(lfirst_oid(cell)),
						"fav"))
			add_command(follow, "VIEW", fav_relation_name(lfirst_oid(cell)));
}

/* Functions that call one of ours with the levels table; they are named after what they do. */
static void
follow_functions(Follow *follow, Oid owner_wanted, List **names)
{
	static const char *const suffixes[] = {"has", "add", "remove"};
	ListCell   *cell;
	int			i;

	foreach(cell, fav_dependents(follow->levels, ProcedureRelationId))
	{
		Oid			function = lfirst_oid(cell);
		FuncExpr   *call = fav_read_body(function, owner_wanted);
		Node	   *first = call == NULL || call->args == NIL ? NULL : linitial(call->args);
		char	   *name = get_func_name(function);
		Oid			owner = owner_of_function(function);

		if (first == NULL || name == NULL || !is_constant(first, REGCLASSOID) ||
			DatumGetObjectId(((Const *) first)->constvalue) != follow->levels ||
			!OidIsValid(getExtensionOfObject(ProcedureRelationId, call->funcid)))
			continue;
		if (owner == follow->owner)
			*names = lappend(*names, makeString(name));
		for (i = 0; i < (int) lengthof(suffixes) && !OidIsValid(owner_wanted); i++)
			if (!list_member(*names, makeString(name)) &&
				must_follow(follow, owner, get_func_namespace(function), name, suffixes[i]))
			{
				add_command(follow, "FUNCTION", format_procedure_qualified(function));
				break;
			}
	}
}

/*
 * The commands that are missing after the source has got another owner: levels table, view and
 * functions must follow.  NULL if there are none.  A view that was dropped is not missed.
 */
const char *
fav_list_owner_commands(Oid schema, Oid source, Oid levels)
{
	Follow		follow = {.levels = levels,.owner = fav_owner_of(source)};
	List	   *names = NIL;
	FavHas		has;

	if (!OidIsValid(follow.owner) || !OidIsValid(fav_owner_of(levels)))
		return NULL;
	initStringInfo(&follow.commands);
	if (fav_owner_of(levels) != follow.owner)
		add_command(&follow, "TABLE", fav_relation_name(levels));
	if (!fav_find_has(schema, levels, &has) || has.complete)
		follow_view(&follow, schema);
	follow_functions(&follow, follow.owner, &names);
	follow_functions(&follow, InvalidOid, &names);
	return follow.commands.len > 0 ? follow.commands.data : NULL;
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
	char	   *name = attachment_name(levels);
	FavHas		has;

	LockRelationOid(levels, ShareUpdateExclusiveLock);
	if (fav_shell(levels) != levels)
		return;
	if (!fav_find_has(attachment->schema, levels, &has))
		fav_create_has(attachment, makeObjectName(name, NULL, "has"), true, true);
	else if (!has.complete)
	{
		has.complete = true;
		fav_replace_has(attachment, &has);
		fav_grant_call(attachment, has.function, ACL_SELECT);
		grant_select(attachment, levels);
	}
	if (!OidIsValid(fav_view_of_levels(attachment->schema, levels)))
		fav_create_view(attachment, makeObjectName(name, NULL, "fav"));
}

/* As the owner. */
void
fav_drop_readers(Oid schema, Oid levels)
{
	Oid			view = fav_view_of_levels(schema, levels);
	FavHas		has;

	if (OidIsValid(view))
		fav_run(psprintf("DROP VIEW %s", fav_relation_name(view)));
	while (fav_find_has(schema, levels, &has))
	{
		fav_run(psprintf("DROP FUNCTION %s", format_procedure_qualified(has.function)));
		CommandCounterIncrement();
	}
}
