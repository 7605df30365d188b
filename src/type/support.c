/*
 * support.c
 *		Planner support: the selectivity and cost of a probe, and a call that probes the
 *		levels of an attached filter without copying them.  Support for PL/pgSQL:
 *		editing a variable in place.
 *
 * Without an estimate PostgreSQL assumes that a filter contains a third of all rows (in a
 * function) or half of them (in an operator).  In a feed query it contains nearly none.
 */
#include "fav.h"

#include <math.h>

#include "cache/bounded.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* The default for the share of elements that a filter contains. */
#define DEFAULT_CONTAINED	0.01

/*
 * The cost of a probe in units of cpu_operator_cost.  A filter that is the same for all rows is
 * loaded once.  A filter that changes from row to row may be fetched from TOAST each time.
 */
#define SAME_FILTER_COST	2
#define OTHER_FILTER_COST	20

PG_FUNCTION_INFO_V1(fav_support);
PG_FUNCTION_INFO_V1(fav_edit_support);

/* The number of elements of a constant filter, or -1 if its value is corrupted. */
static double
count_of_constant(Const *filter)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(filter->constvalue);
	size_t		size = toast_raw_datum_size(filter->constvalue) - VARHDRSZ;
	struct varlena *head = pg_detoast_datum_slice(value, 0, FAV_MAX_HEAD_SIZE);
	const uint8_t *bytes = (const uint8_t *) VARDATA_ANY(head);
	FavFilter	parsed;
	FavBounded	set;
	FavProblem	problem;

	/* the executor reports a corrupted value; no value is of both types */
	if (fav_open(&parsed, bytes, VARSIZE_ANY_EXHDR(head), size, &problem) == FAV_OK)
		return (double) (parsed.elements + parsed.nrecent);
	if (fav_bounded_open(&set, bytes, VARSIZE_ANY_EXHDR(head), size, &problem) == FAV_OK)
		return set.used;
	return -1;
}

/* The probability that one element is contained. */
static double
contained_share(PlannerInfo *root, Node *filter, Node *element, int varRelid)
{
	VariableStatData variable;
	double		count;
	double		ndistinct;
	bool		guessed;

	if (!IsA(filter, Const))
		return DEFAULT_CONTAINED;
	if (((Const *) filter)->constisnull)
		return 0.0;
	count = count_of_constant((Const *) filter);
	if (count == 0)
		return 0.0;
	if (count < 0 || type_is_array(exprType(element)))
		return DEFAULT_CONTAINED;

	examine_variable(root, element, varRelid, &variable);
	ndistinct = get_variable_numdistinct(&variable, &guessed);
	ReleaseVariableStats(variable);
	if (guessed || ndistinct < 1)
		return DEFAULT_CONTAINED;
	return Min(count / ndistinct, 1.0);
}

/*
 * Is the argument a filter or a bounded set?  Any user may define an operator with our estimator
 * and with other argument types.
 */
static bool
is_filter(Node *node, Oid function)
{
	Oid			schema = get_func_namespace(function);
	Oid			type = getBaseType(exprType(node));

	return OidIsValid(type) && (type == fav_find_type(schema, "fav") ||
								type == fav_find_type(schema, "fav_cache"));
}

/*
 * The selectivity of every form: contains(filter, element), its commutator, and any or all of
 * an array.
 */
static double
selectivity(PlannerInfo *root, List *args, Oid function, int varRelid)
{
	int			number;			/* of the argument that is the filter */
	Node	   *filter;
	Node	   *element;
	double		share;

	if (list_length(args) < 2)
		return DEFAULT_CONTAINED;
	number = is_filter(linitial(args), function) ? 0 : 1;	/* 1: element <@ filter */
	if (!is_filter(list_nth(args, number), function))
		return DEFAULT_CONTAINED;
	filter = estimate_expression_value(root, list_nth(args, number));
	element = estimate_expression_value(root, list_nth(args, 1 - number));

	/* an int column is cast to bigint, but its statistics belong to the column */
	element = strip_implicit_coercions(element);

	/* a pair has no statistics */
	share = list_length(args) == 2 ?
		contained_share(root, filter, element, varRelid) : DEFAULT_CONTAINED;
	if (type_is_array(exprType(element)))
	{
		double		count = fav_estimate_array_length(root, element);
		char	   *name = get_func_name(function);
		bool		is_any = name != NULL && strcmp(name, "fav_contains_any") == 0;

		share = is_any ? 1.0 - pow(1.0 - share, count) : pow(share, count);
	}
	CLAMP_PROBABILITY(share);
	return share;
}

/* Does the filter of this call of the function change from row to row? */
static bool
filter_changes(Node *call, Oid function)
{
	ListCell   *cell;

	foreach(cell, fav_arguments_of(call))
		if (is_filter(lfirst(cell), function))
			return contain_var_clause(lfirst(cell));
	return false;
}

/*
 * Turn fav_contains(fav_stack(base, middle, recent), x) into a call of fav_probe(base, middle,
 * recent, x), which copies nothing.  x is an element or a pair.  Returns NULL for any other call.
 */
static Node *
contains_levels(FuncExpr *call)
{
	Oid			schema = get_func_namespace(call->funcid);
	Oid			fav = fav_find_type(schema, "fav");
	Oid		   *declared;
	int			count;
	bool		is_contained;	/* x <@ filter */
	FuncExpr   *stack;
	List	   *element;
	Oid			types[5];
	Oid			function;

	(void) get_func_signature(call->funcid, &declared, &count);
	if (!OidIsValid(fav) || count < 2 || count > 3 || list_length(call->args) != count)
		return NULL;
	is_contained = declared[1] == fav;
	types[0] = types[1] = types[2] = fav;
	types[3] = declared[is_contained ? 0 : 1];
	types[4] = declared[count - 1];
	stack = list_nth(call->args, is_contained ? 1 : 0);
	if (!IsA(stack, FuncExpr) || stack->funcid != fav_find_function(schema, "fav_stack", 3, types))
		return NULL;
	function = fav_find_function(schema, "fav_probe", 2 + count, types);
	if (!OidIsValid(function))
		return NULL;
	element = list_delete_nth_cell(list_copy(call->args), is_contained ? 1 : 0);
	return (Node *) makeFuncExpr(function, BOOLOID, list_concat_copy(stack->args, element),
								 call->funccollid, call->inputcollid, COERCE_EXPLICIT_CALL);
}

/*
 * The probe of a sub-select that stands for <name>_has.  The planner may put such a condition
 * into another query than that which it was made for (convert_EXISTS_to_ANY), so the query that
 * has it now must know that it has a sub-select.
 */
static void
note_sub_select(PlannerInfo *root, const FuncExpr *call)
{
	const Node *filter = list_length(call->args) > 3 ? lthird(call->args) : NULL;

	if (root != NULL && root->parse != NULL && filter != NULL && IsA(filter, Param) &&
		((const Param *) filter)->paramkind == PARAM_SUBLINK)
		root->parse->hasSubLinks = true;
}

Datum
fav_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSelectivity))
	{
		SupportRequestSelectivity *wanted = (SupportRequestSelectivity *) request;

		if (wanted->is_join)
			wanted->selectivity = DEFAULT_CONTAINED;
		else
			wanted->selectivity = selectivity(wanted->root, wanted->args, wanted->funcid,
											 wanted->varRelid);
		PG_RETURN_POINTER(wanted);
	}
	if (IsA(request, SupportRequestCost))
	{
		SupportRequestCost *wanted = (SupportRequestCost *) request;
		bool		changes = filter_changes(wanted->node, wanted->funcid);

		wanted->startup = 0;
		wanted->per_tuple = (changes ? OTHER_FILTER_COST : SAME_FILTER_COST) * cpu_operator_cost;
		PG_RETURN_POINTER(wanted);
	}
	if (IsA(request, SupportRequestSimplify))
	{
		SupportRequestSimplify *wanted = (SupportRequestSimplify *) request;

		note_sub_select(wanted->root, wanted->fcall);
		PG_RETURN_POINTER(contains_levels(wanted->fcall));
	}
	PG_RETURN_POINTER(NULL);
}

/*
 * Tell PL/pgSQL that f := fav_add(f, x) may edit the variable in place.  A failure leaves the
 * variable unchanged (expanded.c).  x may refer to the variable, because elements are hashed
 * before the first change.
 */
Datum
fav_edit_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestModifyInPlace))
	{
		SupportRequestModifyInPlace *wanted = (SupportRequestModifyInPlace *) request;
		Param	   *filter = linitial(wanted->args);

		if (filter != NULL && IsA(filter, Param) && filter->paramkind == PARAM_EXTERN &&
			filter->paramid == wanted->paramid)
			PG_RETURN_POINTER(filter);
	}
	PG_RETURN_POINTER(NULL);
}

FAV_FUNCTION(fav_restriction_selectivity,
			 Float8GetDatum(selectivity((PlannerInfo *) PG_GETARG_POINTER(0),
										(List *) PG_GETARG_POINTER(2),
										get_opcode(PG_GETARG_OID(1)), PG_GETARG_INT32(3))));
FAV_FUNCTION(fav_join_selectivity, ((void) fcinfo, Float8GetDatum(DEFAULT_CONTAINED)));
