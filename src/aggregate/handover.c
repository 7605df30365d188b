/*
 * handover.c
 *		See handover.h.
 */
#include "aggregate/handover.h"

#include "access/parallel.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"

bool
fav_is_plain_aggregate(const Plan *plan, AggSplit split)
{
	return IsA(plan, Agg) && ((const Agg *) plan)->aggstrategy == AGG_PLAIN &&
		((const Agg *) plan)->aggsplit == split;
}

static bool any_hands_over(List *plans, const Plan *partial);

/*
 * Is there a final aggregate in the plan right above a Gather that is right above
 * the partial one?  A node has one parent, so then nobody else sees its states.
 * The search passes over whatever has its inputs in other places.
 */
static bool
hands_over(const Plan *plan, const Plan *partial)
{
	if (plan == NULL)
		return false;
	check_stack_depth();
	if (fav_is_plain_aggregate(plan, AGGSPLIT_FINAL_DESERIAL) && outerPlan(plan) != NULL &&
		IsA(outerPlan(plan), Gather) && outerPlan(outerPlan(plan)) == partial)
		return true;
	if (IsA(plan, SubqueryScan) && hands_over(((const SubqueryScan *) plan)->subplan, partial))
		return true;
	if (IsA(plan, Append) && any_hands_over(((const Append *) plan)->appendplans, partial))
		return true;
	return hands_over(outerPlan(plan), partial) || hands_over(innerPlan(plan), partial);
}

static bool
any_hands_over(List *plans, const Plan *partial)
{
	ListCell   *cell;

	foreach(cell, plans)
		if (hands_over(lfirst(cell), partial))
			return true;
	return false;
}

bool
fav_goes_to_final(FunctionCallInfo fcinfo)
{
	const PlanState *node;
	const PlannedStmt *statement;

	if (IsParallelWorker() || fcinfo->context == NULL || !IsA(fcinfo->context, AggState))
		return false;
	node = &((const AggState *) fcinfo->context)->ss.ps;
	statement = node->state->es_plannedstmt;
	return fav_is_plain_aggregate(node->plan, AGGSPLIT_INITIAL_SERIAL) && statement != NULL &&
		(hands_over(statement->planTree, node->plan) || any_hands_over(statement->subplans, node->plan));
}

typedef struct Kept
{
	dlist_node	node;
	uint64		number;
	void	   *state;
	MemoryContextCallback callback;
} Kept;

static dlist_head kept = DLIST_STATIC_INIT(kept);
static uint64 last_number;

static void
forget(void *argument)
{
	dlist_delete(&((Kept *) argument)->node);
}

uint64
fav_keep_here(void *state, MemoryContext context)
{
	Kept	   *entry = MemoryContextAlloc(context, sizeof(Kept));

	entry->number = ++last_number;
	entry->state = state;
	entry->callback.func = forget;
	entry->callback.arg = entry;
	dlist_push_head(&kept, &entry->node);
	MemoryContextRegisterResetCallback(context, &entry->callback);
	return entry->number;
}

void *
fav_find_here(uint64 number)
{
	dlist_iter	iterator;

	dlist_foreach(iterator, &kept)
	{
		const Kept *entry = dlist_container(Kept, node, iterator.cur);

		if (entry->number == number)
			return entry->state;
	}
	return NULL;
}
