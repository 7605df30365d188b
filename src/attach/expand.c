/*
 * expand.c
 *		What a call of <name>_has means, as the planner sees it: sub-selects.
 *
 * The exact answer is
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
 */
#include "attach/has.h"
#include "attach/interface.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_opfamily.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_relation.h"
#include "rewrite/rewriteHandler.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/*
 * Expressions
 */

static Const *
constant(Oid type, Datum value)
{
	int16		length;
	bool		is_by_value;

	get_typlenbyval(type, &length, &is_by_value);
	return makeConst(type, -1, InvalidOid, length, value, false, is_by_value);
}

/* A call of one of our functions, which has arguments of exactly these types. */
static Node *
call_function(const FavCall *call, const char *name, List *args)
{
	Oid		   *types = palloc(list_length(args) * sizeof(Oid));
	int			count = 0;
	Oid			function;
	ListCell   *cell;

	foreach(cell, args)
		types[count++] = exprType(lfirst(cell));
	function = fav_find_function(call->attachment->schema, name, count, types);
	if (!OidIsValid(function))
		elog(ERROR, "function %s does not exist", name);
	return (Node *) makeFuncExpr(function, get_func_rettype(function), args, InvalidOid,
								 InvalidOid, COERCE_EXPLICIT_CALL);
}

/* A value of the outer query, for use in a sub-select. */
static Node *
from_outside(Node *value)
{
	Node	   *copy = copyObject(value);

	IncrementVarSublevelsUp(copy, 1, 0);
	return copy;
}

/*
 * Sub-selects
 */

/*
 * A query on columns of a table, without targets and conditions yet.  It has policies of row
 * security after it was rewritten.  They are those of the role that plans, so the plan is for this
 * role only; PostgreSQL saw no such policy in the statement itself.  Conditions come later: what
 * they take from the outer query was rewritten already.
 */
static Query *
begin_select(const FavCall *call, Oid table, bool with_children, List *columns)
{
	Relation	relation = table_open(table, AccessShareLock);
	ParseState *state = make_parsestate(NULL);
	ParseNamespaceItem *item = addRangeTableEntryForRelation(state, relation, AccessShareLock,
															 NULL, with_children, true);
	Bitmapset **selected = &fav_selected_columns(item);
	RangeTblRef *reference = makeNode(RangeTblRef);
	Query	   *query = makeNode(Query);
	ListCell   *cell;

	table_close(relation, NoLock);
	foreach(cell, columns)
		*selected = bms_add_member(*selected,
								   lfirst_int(cell) - FirstLowInvalidHeapAttributeNumber);
	reference->rtindex = 1;
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	query->rtable = state->p_rtable;
	fav_set_permissions(query, state);
	query->jointree = makeFromExpr(list_make1(reference), NULL);
	free_parsestate(state);
	query = linitial_node(Query, QueryRewrite(query));
	if (query->hasRowSecurity)
		call->root->glob->dependsOnRole = true;
	return query;
}

static Var *
make_column(const Query *query, AttrNumber number)
{
	Oid			type;
	int32		modifier;
	Oid			collation;

	get_atttypetypmodcoll(linitial_node(RangeTblEntry, query->rtable)->relid, number, &type,
						  &modifier, &collation);
	return makeVar(1, number, type, modifier, collation, 0);
}

static void
add_target(Query *query, Node *expression)
{
	query->targetList = lappend(query->targetList,
								makeTargetEntry((Expr *) expression,
												list_length(query->targetList) + 1, NULL, false));
}

/*
 * The equality of a column of this type, or of a domain on it, and an argument for it.  The
 * operator may be that of a base type, or of any type.
 */
static void
add_equality(Query *query, AttrNumber column, Oid type, Oid collation, Node *value)
{
	Expr	   *left = (Expr *) make_column(query, column);
	Oid			operator;
	Oid			left_type;
	Oid			right_type;

	if (type == INT2OID || type == INT4OID || type == INT8OID)
		operator = get_opfamily_member(INTEGER_BTREE_FAM_OID, type, INT8OID,
									   BTEqualStrategyNumber);
	else
		operator = lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr;
	op_input_types(operator, &left_type, &right_type);
	if (left_type != exprType((Node *) left) && !IsPolymorphicType(left_type))
		left = (Expr *) makeRelabelType(left, left_type, -1, collation, COERCE_IMPLICIT_CAST);
	left = make_opclause(operator, BOOLOID, false, left, (Expr *) value, InvalidOid, collation);
	set_opfuncid((OpExpr *) left);
	query->jointree->quals = make_and_qual(query->jointree->quals, (Node *) left);
	query->hasSubLinks |= checkExprHasSubLink(value);
}

static SubLink *
make_sub_link(SubLinkType type, Node *test, Query *query)
{
	SubLink    *link = makeNode(SubLink);

	link->subLinkType = type;
	link->testexpr = test;
	link->subselect = (Node *) query;
	link->location = -1;
	return link;
}

/*
 * Parts of the answer
 */

/*
 * (SELECT true FROM source WHERE key = $1 AND element = $2 LIMIT 1) IS NOT NULL.  Elements are the
 * same if their bytes are, whatever their collation says.
 */
static Node *
source_has_pair(const FavCall *call)
{
	const FavColumn *key = &call->attachment->key;
	const FavColumn *element = &call->attachment->element;
	Query	   *query = begin_select(call, call->attachment->source, true,
									 list_make2_int(key->number, element->number));
	NullTest   *test = makeNode(NullTest);

	add_target(query, makeBoolConst(true, false));
	add_equality(query, key->number, key->type, key->collation, from_outside(call->key));
	add_equality(query, element->number, element->type, element->collation,
				 from_outside(call->element));
	if (OidIsValid(element->collation) && !get_collation_isdeterministic(element->collation))
		add_equality(query, element->number, element->type, C_COLLATION_OID,
					 from_outside(call->element));
	query->limitCount = (Node *) constant(INT8OID, Int64GetDatum(1));
	test->arg = (Expr *) make_sub_link(EXPR_SUBLINK, NULL, query);
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	return (Node *) test;
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

/*
 * SELECT base, middle, recent [, the present period] FROM levels WHERE key = $1; the period is
 * computed once for all rows.
 */
static Query *
select_levels(const FavCall *call)
{
	const FavAttachment *attachment = call->attachment;
	bool		is_shared = attachment->share > 0;
	Query	   *query = begin_select(call, attachment->levels, false,
									 list_make4_int(FAV_LEVELS_KEY, FAV_LEVELS_BASE,
													FAV_LEVELS_MIDDLE, FAV_LEVELS_RECENT));
	Node	   *key = from_outside(call->key);
	AttrNumber	level;

	refuse_policies(attachment, query);
	for (level = FAV_LEVELS_BASE; level <= FAV_LEVELS_RECENT; level++)
		add_target(query, (Node *) make_column(query, level));
	if (attachment->keep > 0)
		add_target(query, call_function(call, "fav_period", list_make1(
			constant(INT8OID, Int64GetDatum(attachment->period)))));
	if (is_shared)
		key = call_function(call, "fav_group", list_make2(key,
			constant(INT4OID, Int32GetDatum(attachment->share))));
	add_equality(query, FAV_LEVELS_KEY, is_shared ? INT8OID : attachment->key.type,
				 attachment->key.collation, key);
	return query;
}

/*
 * fav_probe(base, middle, recent, [key,] element), or fav_probe_at(base, middle, recent, period,
 * element), of the levels of the key.  It is false or NULL if the key has none.
 */
static Node *
probe_levels(const FavCall *call)
{
	Query	   *levels = select_levels(call);
	List	   *args = NIL;
	ListCell   *cell;

	foreach(cell, levels->targetList)
	{
		TargetEntry *target = lfirst(cell);
		Param	   *param = makeNode(Param);

		param->paramkind = PARAM_SUBLINK;
		param->paramid = target->resno;
		param->paramtype = exprType((Node *) target->expr);
		param->paramtypmod = -1;
		param->location = -1;
		args = lappend(args, param);
	}
	if (call->attachment->share > 0)
		args = lappend(args, call->key);
	args = lappend(args, call->element);
	return (Node *) make_sub_link(ROWCOMPARE_SUBLINK, call_function(call,
		call->attachment->keep > 0 ? "fav_probe_at" : "fav_probe", args), levels);
}

/*
 * The transaction that wrote the row of an object in its catalog; invalid if there is no row.  This
 * transaction sees what it writes itself, as all see what is frozen.
 */
static TransactionId
writer_of(int cache, Oid object)
{
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(object));
	TransactionId xid;

	if (!HeapTupleIsValid(tuple))
		return InvalidTransactionId;
	xid = HeapTupleHeaderGetXmin(tuple->t_data);
	ReleaseSysCache(tuple);
	return TransactionIdIsCurrentTransactionId(xid) ? FrozenTransactionId : xid;
}

/*
 * The latest transaction before which a snapshot may lack filters; a NULL constant if it is not
 * known.  <name>_has was not written as it is before the filters were complete.  The plan depends
 * on it, because it was inlined.  A command that rewrites the levels table, such as ALTER TABLE ...
 * SET LOGGED, hides all rows from older snapshots, and writes the catalog.
 */
static Const *
completion(FavAttachment *attachment)
{
	TransactionId writer = writer_of(PROCOID, attachment->has);
	TransactionId rewriter = writer_of(RELOID, attachment->levels);
	FavObject	has;

	if (!TransactionIdIsValid(writer) &&
		fav_find_object(attachment->schema, attachment->levels, FAV_OBJECT_HAS, &has))
	{
		attachment->has = has.oid;
		writer = writer_of(PROCOID, attachment->has);
	}
	if (!TransactionIdIsValid(writer))
		return makeNullConst(XIDOID, -1, InvalidOid);
	return constant(XIDOID, TransactionIdGetDatum(
		TransactionIdFollows(rewriter, writer) ? rewriter : writer));
}

/*
 * fav_may_have(found, xid, source).  The planner knows nothing of the result of a sub-select for
 * each row; of this function it knows that it is seldom true.
 */
static Node *
may_have(const FavCall *call, Node *found, Const *xid, Oid source)
{
	Const	   *table = OidIsValid(source) ? constant(REGCLASSOID, ObjectIdGetDatum(source)) :
		makeNullConst(REGCLASSOID, -1, InvalidOid);

	return call_function(call, "fav_may_have", list_make3(found, xid, table));
}

Node *
fav_expand_call(const FavCall *call)
{
	FavAttachment *attachment = call->attachment;
	Node	   *found = probe_levels(call);
	Node	   *reported;

	if (call->exact && !attachment->is_sink)
		return (Node *) make_andclause(list_make2(
			may_have(call, found, completion(attachment), attachment->source),
			source_has_pair(call)));
	reported = may_have(call, found, constant(XIDOID, TransactionIdGetDatum(
		InvalidTransactionId)), InvalidOid);
	if (attachment->is_sink)
		return reported;
	return (Node *) make_orclause(list_make2(reported, make_andclause(list_make2(
		may_have(call, makeBoolConst(false, false), completion(attachment), InvalidOid),
		source_has_pair(call)))));
}
