/*
 * has.c
 *		Reading attached filters: <name>_has(key, element).
 *
 * fav_attach and fav_sink make this function for each source.  It is a macro, one line of SQL
 * that PostgreSQL inlines:
 *
 *		RETURN fav_has('hidden_posts_fav_levels'::regclass, ROW($1, $2), exact, complete)
 *
 * The planner then asks the support function of fav_has to simplify the call, and gets what the
 * call means in terms of ordinary queries.  For an exact answer this is
 *
 *		fav_may_have((SELECT probe(base, middle, recent, element) FROM levels WHERE key = $1),
 *					 xid, source)
 *		AND (SELECT true FROM source WHERE key = $1 AND element = $2 LIMIT 1) IS NOT NULL
 *
 * Rights, row security, invalidation, pruning and EXPLAIN are PostgreSQL's own, because nothing
 * but ordinary plans is left.
 *
 * The first sub-select is a row comparison as far as the planner knows: the probe is the
 * comparison, and its left side, the element, stays in the outer query.  If the key is the same
 * for all rows, the sub-select becomes an InitPlan: it runs once, gives TOAST pointers, and
 * copies nothing.  If the key is from a row of the same query, it runs for each row.
 *
 * The second one runs only for what the filter reports.  It is a scalar sub-select: PostgreSQL
 * might hash an EXISTS, and read all pairs of the key for that.
 *
 * A key without a filter has no pairs.  But a snapshot that is older than the transaction that
 * completed the filters, or rewrote their table, may lack some of them, and filters are behind the
 * source until the end of the statement that changes it, or of the transaction.  Then fav_may_have
 * says yes.
 *
 * Where the planner has no query to put sub-selects into, or an argument cannot move into one,
 * the call remains, and its executor runs the same call in a query of its own.
 */
#include "attach/citus.h"
#include "attach/interface.h"
#include "attach/queries.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_node.h"
#include "parser/parse_oper.h"
#include "parser/parse_relation.h"
#include "rewrite/rewriteHandler.h"
#include "rewrite/rewriteManip.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* What a call that is not expanded costs, in units of cpu_operator_cost, and how many it finds. */
#define CALL_COST			1000
#define CALL_SELECTIVITY	0.01

PG_FUNCTION_INFO_V1(fav_has);
PG_FUNCTION_INFO_V1(fav_has_support);
PG_FUNCTION_INFO_V1(fav_may_have);

/* A call of fav_has. */
typedef struct Call
{
	PlannerInfo *root;
	FavAttachment *attachment;
	Node	   *key;
	Node	   *element;
	bool		exact;
} Call;

/*
 * Sub-selects
 */

typedef struct Select
{
	PlannerInfo *root;
	ParseState *state;
	ParseNamespaceItem *table;
	Query	   *query;
	List	   *quals;
} Select;

static void
begin_select(const Call *call, Select *select, Oid table, bool with_children)
{
	Relation	relation = table_open(table, AccessShareLock);

	select->root = call->root;
	select->state = make_parsestate(NULL);
	select->table = addRangeTableEntryForRelation(select->state, relation, AccessShareLock, NULL,
												  with_children, true);
	table_close(relation, NoLock);
	select->query = makeNode(Query);
	select->query->commandType = CMD_SELECT;
	select->query->canSetTag = true;
	select->quals = NIL;
}

static Var *
select_column(Select *select, AttrNumber number)
{
	Bitmapset **selected = &fav_selected_columns(select->table);
	Oid			type;
	int32		modifier;
	Oid			collation;

	get_atttypetypmodcoll(select->table->p_rte->relid, number, &type, &modifier, &collation);
	*selected = bms_add_member(*selected, number - FirstLowInvalidHeapAttributeNumber);
	return makeVar(1, number, type, modifier, collation, 0);
}

/* Add a column of the result. */
static void
add_target(Select *select, Expr *expression)
{
	List	  **targets = &select->query->targetList;

	*targets = lappend(*targets, makeTargetEntry(expression, list_length(*targets) + 1,
												 NULL, false));
}

/* A value of the outer query, for use in the sub-select. */
static Expr *
from_outside(Node *value)
{
	Node	   *copy = copyObject(value);

	IncrementVarSublevelsUp(copy, 1, 0);
	return (Expr *) copy;
}

/* The operator may be that of a base type, or of any type. */
static void
add_equality(Select *select, Oid operator, Oid collation, AttrNumber column, Expr *value)
{
	Var		   *var = select_column(select, column);
	Expr	   *left = (Expr *) var;
	Oid			type;
	Oid			right_type;

	op_input_types(operator, &type, &right_type);
	if (type != var->vartype && !IsPolymorphicType(type))
		left = (Expr *) makeRelabelType(left, type, -1, collation, COERCE_IMPLICIT_CAST);
	left = make_opclause(operator, BOOLOID, false, left, value, InvalidOid, collation);
	set_opfuncid((OpExpr *) left);
	select->quals = lappend(select->quals, left);
}

/*
 * The query has policies of row security after it was rewritten.  They are those of the role that
 * plans, so the plan is for this role only; PostgreSQL saw no such policy in the statement itself.
 * Conditions come later: what they take from the outer query was rewritten already.
 */
static SubLink *
end_select(Select *select, SubLinkType type, Node *test)
{
	Query	   *query = select->query;
	RangeTblRef *table = makeNode(RangeTblRef);
	SubLink    *link = makeNode(SubLink);

	table->rtindex = 1;
	query->rtable = select->state->p_rtable;
	fav_set_permissions(query, select->state);
	query->jointree = makeFromExpr(list_make1(table), NULL);
	query = linitial_node(Query, QueryRewrite(query));
	if (query->hasRowSecurity)
		select->root->glob->dependsOnRole = true;
	query->jointree->quals = (Node *) make_ands_explicit(select->quals);
	query->hasSubLinks |= checkExprHasSubLink(query->jointree->quals);
	free_parsestate(select->state);

	link->subLinkType = type;
	link->testexpr = test;
	link->subselect = (Node *) query;
	link->location = -1;
	return link;
}

/*
 * Parts of the answer
 */

static Oid
find_function(Oid schema, const char *name, int count, const Oid *types)
{
	Oid			function = fav_find_function(schema, name, count, types);

	if (!OidIsValid(function))
		elog(ERROR, "function %s does not exist", name);
	return function;
}

/* The equality of a column and an argument for it. */
static Oid
equality(Oid type)
{
	if (type == INT2OID || type == INT4OID || type == INT8OID)
		return get_opfamily_member(INTEGER_BTREE_FAM_OID, type, INT8OID, BTEqualStrategyNumber);
	return lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr;
}

/* (SELECT column ... LIMIT 1) IS NOT NULL */
static Node *
finds_row(Select *select)
{
	NullTest   *test = makeNode(NullTest);

	select->query->limitCount = (Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
												   Int64GetDatum(1), false, FLOAT8PASSBYVAL);
	test->arg = (Expr *) end_select(select, EXPR_SUBLINK, NULL);
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	return (Node *) test;
}

/* Elements are the same if their bytes are, whatever their collation says. */
static Node *
source_has_pair(const Call *call)
{
	const FavColumn *key = &call->attachment->key;
	const FavColumn *element = &call->attachment->element;
	Select		select;

	begin_select(call, &select, call->attachment->source, true);
	add_equality(&select, equality(key->type), key->collation, key->number,
				 from_outside(call->key));
	add_equality(&select, equality(element->type), element->collation, element->number,
				 from_outside(call->element));
	if (OidIsValid(element->collation) && !get_collation_isdeterministic(element->collation))
		add_equality(&select, equality(element->type), C_COLLATION_OID, element->number,
					 from_outside(call->element));
	add_target(&select, (Expr *) makeBoolConst(true, false));
	return finds_row(&select);
}

static Param *
column_of_levels(Oid type, int number)
{
	Param	   *param = makeNode(Param);

	param->paramkind = PARAM_SUBLINK;
	param->paramid = number;
	param->paramtype = type;
	param->paramtypmod = -1;
	param->location = -1;
	return param;
}

/*
 * fav_probe(base, middle, recent, [key,] element), or fav_probe_at(base, middle, recent, period,
 * element), of the columns of the sub-select on the levels
 */
static Node *
make_probe(const Call *call)
{
	const FavAttachment *attachment = call->attachment;
	Oid			fav = get_atttype(attachment->levels, FAV_LEVELS_RECENT);
	bool		forgets = attachment->keep > 0;
	Oid			types[5] = {fav, fav, fav};
	int			count = 3;
	List	   *args = NIL;
	int			i;

	for (i = 1; i <= 3; i++)
		args = lappend(args, column_of_levels(fav, i));
	if (forgets)
	{
		args = lappend(args, column_of_levels(INT4OID, 4));
		types[count++] = INT4OID;
	}
	if (attachment->share > 0)
	{
		args = lappend(args, call->key);
		types[count++] = INT8OID;
	}
	args = lappend(args, call->element);
	types[count++] = exprType(call->element);
	return (Node *) makeFuncExpr(find_function(attachment->schema,
											   forgets ? "fav_probe_at" : "fav_probe", count,
											   types),
								 BOOLOID, args, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

static Expr *
filter_key(const Call *call)
{
	Oid			types[2] = {INT8OID, INT4OID};
	Expr	   *key = from_outside(call->key);

	if (call->attachment->share == 0)
		return key;
	return (Expr *) makeFuncExpr(find_function(call->attachment->schema, "fav_group", 2, types),
								 INT8OID, list_make2(key, makeConst(INT4OID, -1, InvalidOid,
										sizeof(int32), Int32GetDatum(call->attachment->share),
										false, true)),
								 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/* The present period, once for all rows. */
static Expr *
present_period(const FavAttachment *attachment)
{
	Oid			type = INT8OID;

	return (Expr *) makeFuncExpr(find_function(attachment->schema, "fav_period", 1, &type),
								 INT4OID, list_make1(makeConst(INT8OID, -1, InvalidOid,
										sizeof(int64), Int64GetDatum(attachment->period), false,
										FLOAT8PASSBYVAL)),
								 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/* Who does not see a filter would be told that its elements are absent. */
static void
refuse_policies(const FavAttachment *attachment, const Query *query)
{
	const char *levels = get_rel_name(attachment->levels);

	if (linitial_node(RangeTblEntry, query->rtable)->securityQuals != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("row security of table \"%s\" may hide filters", levels),
				 errhint("Disable row level security of table \"%s\", and grant SELECT on it to"
						 " those who may read the filters.", levels)));
}

/* The levels of the key, and a test of them.  It is false or NULL if the key has none. */
static Node *
test_levels(const Call *call, Node *test)
{
	const FavAttachment *attachment = call->attachment;
	Oid			key_type = attachment->share > 0 ? INT8OID : attachment->key.type;
	SubLink    *link;
	Select		select;

	begin_select(call, &select, attachment->levels, false);
	add_equality(&select, equality(key_type), attachment->key.collation, FAV_LEVELS_KEY,
				 filter_key(call));
	add_target(&select, (Expr *) select_column(&select, FAV_LEVELS_BASE));
	add_target(&select, (Expr *) select_column(&select, FAV_LEVELS_MIDDLE));
	add_target(&select, (Expr *) select_column(&select, FAV_LEVELS_RECENT));
	if (attachment->keep > 0)
		add_target(&select, present_period(attachment));
	link = end_select(&select, ROWCOMPARE_SUBLINK, test);
	refuse_policies(attachment, castNode(Query, link->subselect));
	return (Node *) link;
}

/* The transaction that wrote the row of an object in its catalog; invalid if there is none. */
static TransactionId
writer_of(int cache, Oid object)
{
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(object));
	TransactionId xid;

	if (!HeapTupleIsValid(tuple))
		return InvalidTransactionId;
	xid = HeapTupleHeaderGetXmin(tuple->t_data);
	ReleaseSysCache(tuple);
	return xid;
}

/* This transaction sees what it writes itself. */
static bool
is_later(TransactionId xid, TransactionId other)
{
	if (!TransactionIdIsNormal(xid) || TransactionIdIsCurrentTransactionId(xid))
		return false;
	return !TransactionIdIsNormal(other) || TransactionIdIsCurrentTransactionId(other) ||
		TransactionIdFollows(xid, other);
}

/*
 * The latest transaction before which a snapshot may lack filters; a NULL constant if it is not
 * known.  <name>_has was not written as it is before the filters were complete.  The plan depends
 * on it, because it was inlined.  A command that rewrites the levels table, such as ALTER TABLE ...
 * SET LOGGED, hides all rows from older snapshots, and writes the catalog.
 */
static Node *
completion(FavAttachment *attachment)
{
	TransactionId xid = writer_of(PROCOID, attachment->has);
	TransactionId rewriter = writer_of(RELOID, attachment->levels);
	FavObject	has;

	if (!TransactionIdIsValid(xid) &&
		fav_find_object(attachment->schema, attachment->levels, FAV_OBJECT_HAS, &has))
	{
		attachment->has = has.oid;
		xid = writer_of(PROCOID, attachment->has);
	}
	return (Node *) makeConst(XIDOID, -1, InvalidOid, sizeof(TransactionId),
							  TransactionIdGetDatum(is_later(rewriter, xid) ? rewriter : xid),
							  !TransactionIdIsValid(xid), true);
}

/*
 * fav_may_have(found, xid, source).  The planner knows nothing of the result of a sub-select for
 * each row; of this function it knows that it is seldom true.
 */
static Node *
may_have(const Call *call, Node *found, Node *xid, Oid source)
{
	Oid			types[3] = {BOOLOID, XIDOID, REGCLASSOID};
	Const	   *table = makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid),
								  ObjectIdGetDatum(source), !OidIsValid(source), true);

	return (Node *) makeFuncExpr(find_function(call->attachment->schema, "fav_may_have", 3, types),
								 BOOLOID, list_make3(found, xid, table), InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/* The meaning of a call.  It is true or false, never NULL. */
static Node *
make_answer(const Call *call)
{
	Node	   *found = test_levels(call, make_probe(call));
	Node	   *never = (Node *) makeConst(XIDOID, -1, InvalidOid, sizeof(TransactionId),
										   TransactionIdGetDatum(InvalidTransactionId), false,
										   true);

	if (call->attachment->is_sink)
		return may_have(call, found, never, InvalidOid);
	if (call->exact)
		return (Node *) make_andclause(list_make2(
			may_have(call, found, completion(call->attachment), call->attachment->source),
			source_has_pair(call)));
	return (Node *) make_orclause(list_make2(
		may_have(call, found, never, InvalidOid),
		make_andclause(list_make2(may_have(call, makeBoolConst(false, false),
										   completion(call->attachment), InvalidOid),
								  source_has_pair(call)))));
}

/*
 * Calls
 */

/*
 * Can the argument not be copied into a sub-select?  Some nodes have their meaning only where
 * they are, and what changes from call to call must be evaluated once.
 */
static bool
must_stay(Node *node, void *in_sublink)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_WindowFunc:
		case T_CaseTestExpr:
		case T_CoerceToDomainValue:
		case T_SetToDefault:
		case T_CurrentOfExpr:
			return true;
		case T_Param:
			return in_sublink == NULL && ((Param *) node)->paramkind != PARAM_EXTERN &&
				((Param *) node)->paramkind != PARAM_EXEC;
		case T_SubLink:
			return expression_tree_walker(node, must_stay, node);
		default:
			return expression_tree_walker(node, must_stay, in_sublink);
	}
}

static bool
can_move(Node *node)
{
	return !must_stay(node, NULL) && !contain_volatile_functions(node) &&
		!expression_returns_set(node);
}

static Node *
make_field(HeapTuple tuple, TupleDesc descriptor, int number)
{
	Form_pg_attribute attribute = TupleDescAttr(descriptor, number - 1);
	bool		isnull;
	Datum		value = heap_getattr(tuple, number, descriptor, &isnull);

	return (Node *) makeConst(attribute->atttypid, attribute->atttypmod, attribute->attcollation,
							  attribute->attlen, isnull ? (Datum) 0 :
							  datumCopy(value, attribute->attbyval, attribute->attlen), isnull,
							  attribute->attbyval);
}

/* The two fields of a row; false if it is not such a row.  The planner folds constant rows. */
static bool
read_row(Node *row, Node **key, Node **element)
{
	if (IsA(row, RowExpr) && list_length(((RowExpr *) row)->args) == 2)
	{
		*key = linitial(((RowExpr *) row)->args);
		*element = lsecond(((RowExpr *) row)->args);
		return true;
	}
	if (IsA(row, Const) && !((Const *) row)->constisnull)
	{
		HeapTupleHeader header = DatumGetHeapTupleHeader(((Const *) row)->constvalue);
		TupleDesc	descriptor = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
														HeapTupleHeaderGetTypMod(header));
		HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header),.t_data = header};
		bool		is_pair = descriptor->natts == 2;

		if (is_pair)
		{
			*key = make_field(&tuple, descriptor, 1);
			*element = make_field(&tuple, descriptor, 2);
		}
		ReleaseTupleDesc(descriptor);
		return is_pair;
	}
	return false;
}

pg_noreturn static void
raise_not_complete(const FavAttachment *attachment)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the filters of table \"%s\" are not complete",
					get_rel_name(attachment->source)),
			 errhint("Complete them with CALL %s.fav_build(%s).",
					 quote_identifier(get_namespace_name(attachment->schema)),
					 quote_literal_cstr(fav_relation_name(attachment->source)))));
	pg_unreachable();
}

/*
 * Citus keeps the filters elsewhere, and an empty table here.  It chooses the
 * nodes of a query before the planner expands calls, so the expansion would read the empty one.
 *
 * The sub-select of the hint has columns of other names than the view: a column of the query
 * that is written in it without its table may be called like one of the view.
 */
static void
refuse_spread(Oid schema, Oid levels)
{
	const char *fav = quote_identifier(get_namespace_name(schema));
	FavDefinition definition = {0};
	const char *key;
	Oid			view;

	if (!fav_is_spread(levels))
		return;
	(void) fav_read_definition(schema, levels, &definition);
	view = fav_view_of_levels(schema, levels);
	key = definition.share == 0 ? "..." : psprintf("%s.fav_group(..., %d)", fav, definition.share);
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("filters in table \"%s\" cannot be asked by function: Citus keeps them on"
					" other nodes, or as shards", get_rel_name(levels)),
			 !OidIsValid(view) || !OidIsValid(definition.source) ?
			 (fav_has_log(levels) ? errhint("%s", fav_hint_to_copy(levels)) :
			  errhint("Call fav_detach, then fav_attach.")) :
			 errhint("Use COALESCE(%s.fav_contains((SELECT fav_filter FROM %s AS fav_view"
					 " (fav_key, fav_filter) WHERE fav_key = %s), ...%s), false).", fav,
					 fav_relation_name(view), key, definition.share == 0 ? "" : ", ...")));
}

/* The function was made for columns of other types. */
static void
check_type(const FavAttachment *attachment, const FavColumn *column, Oid type)
{
	if (type != fav_argument_type(column))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of table \"%s\" is asked by values of type %s, not %s",
						NameStr(column->name), get_rel_name(attachment->source),
						format_type_be(fav_argument_type(column)), format_type_be(type)),
				 errhint("If the type of the column has changed, call fav_detach, then"
						 " fav_attach.")));
}

/* What the planner puts in the place of a call; NULL: nothing. */
static Node *
expand(FuncExpr *function_call, PlannerInfo *root)
{
	Const	   *levels = linitial(function_call->args);
	Const	   *exact = lthird(function_call->args);
	Const	   *complete = lfourth(function_call->args);
	Oid			schema = get_func_namespace(function_call->funcid);
	Call		call;

	if (!IsA(levels, Const) || levels->constisnull || !IsA(exact, Const) ||
		exact->constisnull || !IsA(complete, Const) || complete->constisnull ||
		!read_row(lsecond(function_call->args), &call.key, &call.element) ||
		!can_move(call.key) || !can_move(call.element))
		return NULL;
	call.root = root;
	call.exact = DatumGetBool(exact->constvalue);
	fav_lock_for_reading(schema, DatumGetObjectId(levels->constvalue));
	refuse_spread(schema, DatumGetObjectId(levels->constvalue));
	call.attachment = fav_attachment_of_levels(schema, DatumGetObjectId(levels->constvalue));
	check_type(call.attachment, &call.attachment->key, exprType(call.key));
	check_type(call.attachment, &call.attachment->element, exprType(call.element));
	if (!DatumGetBool(complete->constvalue))
		raise_not_complete(call.attachment);

	/* The planner makes plans of sub-selects after this, if it knows of any. */
	root->parse->hasSubLinks = true;
	return make_answer(&call);
}

/*
 * Does the query group by several sets of anything but columns?  In the groups of a set without
 * an expression, this is NULL wherever it appears.
 */
static bool
has_sets_of_expressions(const Query *query)
{
	ListCell   *cell;

	if (query->groupingSets != NIL)
		foreach(cell, query->groupClause)
			if (!IsA(get_sortgroupclause_expr(lfirst(cell), query->targetList), Var))
				return true;
	return false;
}

/*
 * Does the planner have a query, and make plans of sub-selects later?  It has none for an
 * expression of its own, such as a cast in PL/pgSQL.  When it has its relations, it has seen all
 * sub-selects, and what it simplifies now are estimates, constraints, and copies for children.
 */
static bool
can_take_sub_selects(PlannerInfo *root)
{
	return root != NULL && root->parse != NULL && root->simple_rel_array == NULL &&
		(FAV_SUB_SELECTS_GROUP || !has_sets_of_expressions(root->parse));
}

Datum
fav_has_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSimplify))
	{
		SupportRequestSimplify *wanted = (SupportRequestSimplify *) request;

		PG_RETURN_POINTER(can_take_sub_selects(wanted->root) ?
						  expand(wanted->fcall, wanted->root) : NULL);
	}
	if (IsA(request, SupportRequestSelectivity))
	{
		((SupportRequestSelectivity *) request)->selectivity = CALL_SELECTIVITY;
		PG_RETURN_POINTER(request);
	}
	if (IsA(request, SupportRequestCost))
	{
		((SupportRequestCost *) request)->startup = 0;
		((SupportRequestCost *) request)->per_tuple = CALL_COST * cpu_operator_cost;
		PG_RETURN_POINTER(request);
	}
	PG_RETURN_POINTER(NULL);
}

/* What a call of fav_may_have keeps for the next: its answer for the rows of one snapshot. */
typedef struct Written
{
	LocalTransactionId transaction;
	CommandId	command;
	bool		is_written;
} Written;

/*
 * Has this transaction written the source, or a partition or child of it, before the snapshot of
 * the query?  Whoever writes a table holds this lock, of which a parallel worker knows nothing.
 */
static bool
is_written(FunctionCallInfo fcinfo, Oid source)
{
	CommandId	command = GetActiveSnapshot()->curcid;
	Written    *written = fcinfo->flinfo->fn_extra;
	List	   *family;
	ListCell   *cell;

	if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return false;
	if (IsParallelWorker())
		return true;
	if (written == NULL)
		written = fcinfo->flinfo->fn_extra = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
																	sizeof(Written));
	if (written->transaction == fav_local_transaction() && written->command == command)
		return written->is_written;
	written->transaction = fav_local_transaction();
	written->command = command;
	written->is_written = false;
	family = has_subclass(source) ? fav_list_family(source) : list_make1_oid(source);
	foreach(cell, family)
	{
		LOCKTAG		tag;

		SET_LOCKTAG_RELATION(tag, MyDatabaseId, lfirst_oid(cell));
		written->is_written |= fav_is_lock_held(&tag, RowExclusiveLock);
	}
	return written->is_written;
}

/*
 * fav_may_have(found, xid, source): was the element found, or may the filters lack what the
 * snapshot of the query sees?  It may be older than the transaction xid, which completed or rewrote
 * them, or see what this transaction has not reconciled yet.
 */
Datum
fav_may_have(PG_FUNCTION_ARGS)
{
	TransactionId xid;

	if (PG_ARGISNULL(1) || (!PG_ARGISNULL(0) && PG_GETARG_BOOL(0)))
		PG_RETURN_BOOL(true);
	xid = PG_GETARG_TRANSACTIONID(1);
	if (TransactionIdIsNormal(xid) && XidInMVCCSnapshot(xid, GetActiveSnapshot()) &&
		!TransactionIdIsCurrentTransactionId(xid))
		PG_RETURN_BOOL(true);
	PG_RETURN_BOOL(!PG_ARGISNULL(2) && is_written(fcinfo, PG_GETARG_OID(2)));
}

/*
 * Calls that the planner has left as they are
 */

static void
free_plan(void *plan)
{
	SPI_freeplan(plan);
}

/* SELECT fav_has(...) with key and element as parameters, which can move into sub-selects. */
static SPIPlanPtr
prepare_call(FunctionCallInfo fcinfo, Oid *types)
{
	FmgrInfo   *function = fcinfo->flinfo;
	MemoryContextCallback *callback = MemoryContextAlloc(function->fn_mcxt,
														 sizeof(MemoryContextCallback));
	SPIPlanPtr	plan = SPI_prepare(psprintf("SELECT %s.fav_has('%u'::pg_catalog.regclass,"
											" ROW($1, $2), %s, %s)",
		quote_identifier(get_namespace_name(get_func_namespace(function->fn_oid))),
		PG_GETARG_OID(0), PG_GETARG_BOOL(2) ? "true" : "false",
		PG_GETARG_BOOL(3) ? "true" : "false"), 2, types);

	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	callback->func = free_plan;
	callback->arg = plan;
	MemoryContextRegisterResetCallback(function->fn_mcxt, callback);
	return plan;
}

/* What a call keeps for the next one. */
typedef struct CallPlan
{
	SPIPlanPtr	plan;
	Oid			levels;
	Oid			types[2];
} CallPlan;

static CallPlan *
plan_of_call(FunctionCallInfo fcinfo, Oid *types)
{
	CallPlan   *kept = fcinfo->flinfo->fn_extra;

	if (kept == NULL)
		kept = fcinfo->flinfo->fn_extra = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
																 sizeof(CallPlan));
	if (kept->plan == NULL || kept->levels != PG_GETARG_OID(0) || kept->types[0] != types[0] ||
		kept->types[1] != types[1])
	{
		kept->plan = prepare_call(fcinfo, types);
		kept->levels = PG_GETARG_OID(0);
		memcpy(kept->types, types, sizeof(kept->types));
	}
	return kept;
}

/* fav_has(levels, (key, element), exact, complete) */
Datum
fav_has(PG_FUNCTION_ARGS)
{
	HeapTupleHeader header;
	TupleDesc	descriptor;
	HeapTupleData tuple;
	Oid			types[2];
	Datum		values[2];
	bool		nulls[2];
	char		flags[3] = "  ";
	bool		isnull;
	bool		result;
	int			i;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("arguments of fav_has must not be null"),
				 errhint("Call the function that fav_attach has made.")));
	header = PG_GETARG_HEAPTUPLEHEADER(1);
	descriptor = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
										HeapTupleHeaderGetTypMod(header));
	if (descriptor->natts != 2)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the row of fav_has must have a key and an element")));
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	tuple.t_data = header;
	heap_deform_tuple(&tuple, descriptor, values, nulls);
	for (i = 0; i < 2; i++)
	{
		types[i] = TupleDescAttr(descriptor, i)->atttypid;
		if (nulls[i])
			flags[i] = 'n';
	}
	ReleaseTupleDesc(descriptor);

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute_plan(plan_of_call(fcinfo, types)->plan, values, flags, true, 1) !=
		SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "the query of fav_has failed");
	result = DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
										&isnull));
	SPI_finish();
	PG_RETURN_BOOL(result);
}
