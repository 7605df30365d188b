/*
 * handover.h
 *		States of aggregates that do not leave their process on the way from the
 *		partial to the final aggregate.
 */
#ifndef FAV_HANDOVER_H
#define FAV_HANDOVER_H

#include "fav.h"

#include "nodes/plannodes.h"

/*
 * A plain aggregate takes each state as it comes, and has a single group.  The
 * other strategies may look ahead, sort or spill.
 */
extern bool fav_is_plain_aggregate(const Plan *plan, AggSplit split);

/*
 * Does what the calling partial aggregate gives go right to the final aggregate of
 * the same process, which asks for nothing more before it has taken it, and is done
 * before the partial one lets go of its memory?
 */
extern bool fav_goes_to_final(FunctionCallInfo fcinfo);

/*
 * A number for a state, which leads to it in this process as long as its memory
 * context is there and not reset.  fav_find_here() returns NULL for any other.
 */
extern uint64 fav_keep_here(void *state, MemoryContext context);
extern void *fav_find_here(uint64 number);

#endif							/* FAV_HANDOVER_H */
