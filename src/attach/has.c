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
 * call means in terms of ordinary queries (expand.c).
 *
 * Where the planner has no query to put sub-selects into, or an argument cannot move into one,
 * the call remains, and its executor runs the same call in a query of its own.
 */
#include "attach/attachment_cache.h"
#include "attach/columns.h"
#include "attach/definition.h"
#include "attach/has.h"
#include "attach/interface.h"
#include "attach/queries.h"
#include "attach/spread.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_inherits.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

/* What a call that is not expanded costs, in units of cpu_operator_cost, and how many it finds. */
#define CALL_COST			1000
#define CALL_SELECTIVITY	0.01

PG_FUNCTION_INFO_V1(fav_has);
PG_FUNCTION_INFO_V1(fav_has_support);
PG_FUNCTION_INFO_V1(fav_may_have);

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

/* The two fields of a row, as constants; false if it has another number of them. */
static bool
read_pair(Datum row, Const **fields)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(row);
	TupleDesc	descriptor = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
													HeapTupleHeaderGetTypMod(header));
	bool		is_pair = descriptor->natts == 2;
	int			i;

	for (i = 0; i < 2 && is_pair; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		bool		isnull;
		Datum		value = GetAttributeByNum(header, i + 1, &isnull);

		fields[i] = makeConst(attribute->atttypid, attribute->atttypmod, attribute->attcollation,
							  attribute->attlen, value, isnull, attribute->attbyval);
	}
	ReleaseTupleDesc(descriptor);
	return is_pair;
}

/* False if the argument is not known when the query is planned, or NULL. */
static bool
read_constant(Node *argument, Datum *value)
{
	const Const *constant = (const Const *) argument;

	if (!IsA(argument, Const) || constant->constisnull)
		return false;
	*value = constant->constvalue;
	return true;
}

/* Key and element, if they can move into a sub-select.  The planner folds constant rows. */
static bool
read_row(Node *row, FavCall *call)
{
	Datum		value;
	Const	   *fields[2];

	if (IsA(row, RowExpr) && list_length(((RowExpr *) row)->args) == 2)
	{
		call->key = linitial(((RowExpr *) row)->args);
		call->element = lsecond(((RowExpr *) row)->args);
		return can_move(call->key) && can_move(call->element);
	}
	if (!read_constant(row, &value) || !read_pair(value, fields))
		return false;
	call->key = (Node *) fields[0];
	call->element = (Node *) fields[1];
	return true;
}

/*
 * The filters are elsewhere, and the table here is empty.
 *
 * The sub-select of the hint has columns of other names than the view: a column of the query
 * that is written in it without its table may be called like one of the view.
 */
static void
refuse_spread(Oid schema, Oid levels)
{
	const char *fav = quote_identifier(get_namespace_name(schema));
	FavAttachment definition;
	const char *key;
	Oid			view;

	if (!fav_is_spread(levels))
		return;
	(void) fav_read_definition(schema, levels, &definition);
	view = fav_view_of_levels(schema, levels);
	key = definition.share == 0 ? "..." : psprintf("%s.fav_group(..., %d)", fav, definition.share);
	fav_spread()->refuse_probe(levels, OidIsValid(view) && OidIsValid(definition.source) ?
		psprintf("Use COALESCE(%s.fav_contains((SELECT fav_filter FROM %s AS fav_view"
				 " (fav_key, fav_filter) WHERE fav_key = %s), ...%s), false).", fav,
				 fav_relation_name(view), key, definition.share == 0 ? "" : ", ...") :
		fav_has_log(levels) ? fav_hint_to_copy(levels) : "Call fav_detach, then fav_attach.");
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

/* What the planner puts in the place of a call; NULL: nothing. */
static Node *
simplify(const SupportRequestSimplify *wanted)
{
	List	   *args = wanted->fcall->args;
	Oid			schema = get_func_namespace(wanted->fcall->funcid);
	FavCall		call = {.root = wanted->root};
	Datum		levels;
	Datum		exact;
	Datum		complete;

	if (!can_take_sub_selects(wanted->root) || !read_constant(linitial(args), &levels) ||
		!read_row(lsecond(args), &call) || !read_constant(lthird(args), &exact) ||
		!read_constant(lfourth(args), &complete))
		return NULL;
	fav_lock_for_reading(schema, DatumGetObjectId(levels));
	refuse_spread(schema, DatumGetObjectId(levels));
	call.attachment = fav_attachment_of_levels(schema, DatumGetObjectId(levels));
	call.exact = DatumGetBool(exact);
	check_type(call.attachment, &call.attachment->key, exprType(call.key));
	check_type(call.attachment, &call.attachment->element, exprType(call.element));
	if (!DatumGetBool(complete))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the filters of table \"%s\" are not complete",
						get_rel_name(call.attachment->source)),
				 errhint("Complete them with CALL %s.fav_build(%s).",
						 quote_identifier(get_namespace_name(schema)),
						 quote_literal_cstr(fav_relation_name(call.attachment->source)))));

	/* The planner makes plans of sub-selects after this, if it knows of any. */
	wanted->root->parse->hasSubLinks = true;
	return fav_expand_call(&call);
}

Datum
fav_has_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSimplify))
		PG_RETURN_POINTER(simplify((SupportRequestSimplify *) request));
	if (IsA(request, SupportRequestSelectivity))
		((SupportRequestSelectivity *) request)->selectivity = CALL_SELECTIVITY;
	else if (IsA(request, SupportRequestCost))
		((SupportRequestCost *) request)->per_tuple = CALL_COST * cpu_operator_cost;
	else
		request = NULL;
	PG_RETURN_POINTER(request);
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

/* What a call keeps for the next one. */
typedef struct CallPlan
{
	MemoryContextCallback callback; /* frees the plan */
	SPIPlanPtr	plan;
	Oid			levels;
	Oid			types[2];		/* of key and element */
} CallPlan;

static void
free_plan(void *plan)
{
	SPI_freeplan(plan);
}

/* SELECT fav_has(...) with key and element as parameters, which can move into sub-selects. */
static SPIPlanPtr
plan_of_call(FunctionCallInfo fcinfo, Oid *types)
{
	FmgrInfo   *function = fcinfo->flinfo;
	CallPlan   *kept = function->fn_extra;

	if (kept != NULL && kept->levels == PG_GETARG_OID(0) &&
		memcmp(kept->types, types, sizeof(kept->types)) == 0)
		return kept->plan;
	kept = MemoryContextAllocZero(function->fn_mcxt, sizeof(CallPlan));
	kept->levels = PG_GETARG_OID(0);
	memcpy(kept->types, types, sizeof(kept->types));
	kept->plan = SPI_prepare(psprintf("SELECT %s.fav_has('%u'::pg_catalog.regclass,"
									  " ROW($1, $2), %s, %s)",
		quote_identifier(get_namespace_name(get_func_namespace(function->fn_oid))),
		kept->levels, PG_GETARG_BOOL(2) ? "true" : "false",
		PG_GETARG_BOOL(3) ? "true" : "false"), 2, types);
	if (kept->plan == NULL || SPI_keepplan(kept->plan) != 0)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	kept->callback.func = free_plan;
	kept->callback.arg = kept->plan;
	MemoryContextRegisterResetCallback(function->fn_mcxt, &kept->callback);
	function->fn_extra = kept;
	return kept->plan;
}

/* fav_has(levels, (key, element), exact, complete) */
Datum
fav_has(PG_FUNCTION_ARGS)
{
	Const	   *fields[2];
	Oid			types[2];
	Datum		values[2];
	char		nulls[2];
	bool		isnull;
	bool		result;
	int			i;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("arguments of fav_has must not be null"),
				 errhint("Call the function that fav_attach has made.")));
	if (!read_pair(PG_GETARG_DATUM(1), fields))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the row of fav_has must have a key and an element")));
	for (i = 0; i < 2; i++)
	{
		types[i] = fields[i]->consttype;
		values[i] = fields[i]->constvalue;
		nulls[i] = fields[i]->constisnull ? 'n' : ' ';
	}

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute_plan(plan_of_call(fcinfo, types), values, nulls, true, 1) !=
		SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "the query of fav_has failed");
	result = DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
										&isnull));
	SPI_finish();
	PG_RETURN_BOOL(result);
}
