/*
 * share.c
 *		See share.h.
 *
 * What a worker sends is copied four times otherwise: into a tuple, into a queue in
 * shared memory, out of it into a message, and from there to where it can stay, most of it
 * to memory that is fresh each time.  The executor has an area in shared memory for each
 * parallel query; what is left there is read where it is.
 */
#include "aggregate/share.h"

#include "access/parallel.h"
#include "executor/execParallel.h"
#include "aggregate/handover.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "postmaster/bgworker.h"
#include "storage/dsm_impl.h"

#ifndef WIN32
#include <sys/statvfs.h>
#endif

/*
 * PostgreSQL takes it for an error if there is no more shared memory, and in many
 * containers there is little.  So we take some only where that leaves plenty: for as many
 * workers as a query may have, which all ask at once, and for other queries.
 */
#define AT_ONCE			16
#define LEFT_TO_OTHERS	((Size) 64 * 1024 * 1024)

static bool
is_ample(Size size)
{
#ifndef WIN32
	struct statvfs system;

	/* where Linux has it; elsewhere nobody can tell how much there is */
	return dynamic_shared_memory_type == DSM_IMPL_POSIX && statvfs("/dev/shm", &system) == 0 &&
		(uint64) system.f_bavail * system.f_frsize / AT_ONCE >= size + LEFT_TO_OTHERS / AT_ONCE;
#else
	return false;
#endif
}

void *
fav_share(FunctionCallInfo fcinfo, Size size, FavShared *shared)
{
	const PlanState *node;

	if (!IsParallelWorker() || fcinfo->context == NULL || !IsA(fcinfo->context, AggState))
		return NULL;
	node = &((const AggState *) fcinfo->context)->ss.ps;
	if (!fav_is_plain_aggregate(node->plan, AGGSPLIT_INITIAL_SERIAL) || node->state->es_query_dsa == NULL || !is_ample(size))
		return NULL;
	shared->query = DatumGetUInt32(MyBgworkerEntry->bgw_main_arg);
	shared->place = dsa_allocate_extended(node->state->es_query_dsa, size, DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
	if (!DsaPointerIsValid(shared->place))
		return NULL;
	return dsa_get_address(node->state->es_query_dsa, shared->place);
}

/* What the leader has taken. */
typedef struct Taken
{
	FavShared	shared;
	GatherState *gather;		/* below us: its workers have left it */
} Taken;

static dsa_area *
area_of(const GatherState *gather, dsm_handle query)
{
	const ParallelExecutorInfo *info = gather->pei;

	return info != NULL && info->pcxt->seg != NULL && dsm_segment_handle(info->pcxt->seg) == query ? info->area : NULL;
}

static bool
find_gather(PlanState *node, void *argument)
{
	Taken	   *taken = argument;

	if (node == NULL)
		return false;
	if (IsA(node, GatherState) && area_of((GatherState *) node, taken->shared.query) != NULL)
	{
		taken->gather = (GatherState *) node;
		return true;
	}
	return planstate_tree_walker(node, find_gather, taken);
}

/* A query may come here again and again (a rescan) and keep its area, unless it has ended. */
static void
give_back(Datum argument)
{
	const Taken *taken = (const Taken *) DatumGetPointer(argument);
	dsa_area   *area = area_of(taken->gather, taken->shared.query);

	if (area != NULL)
		dsa_free(area, taken->shared.place);
}

void *
fav_take_shared(FunctionCallInfo fcinfo, const FavShared *shared)
{
	Taken	   *taken = MemoryContextAllocZero(fav_aggregate_context(fcinfo), sizeof(Taken));

	taken->shared = *shared;
	if (!IsA(fcinfo->context, AggState) || !find_gather(&((AggState *) fcinfo->context)->ss.ps, taken))
		elog(ERROR, "parallel query %u is not in this process", shared->query);
	AggRegisterCallback(fcinfo, give_back, PointerGetDatum(taken));
	return dsa_get_address(area_of(taken->gather, shared->query), shared->place);
}
