/*
 * share.h
 *		Memory that a parallel worker leaves for the leader.
 */
#ifndef FAV_SHARE_H
#define FAV_SHARE_H

#include "fav.h"

#include "utils/dsa.h"

/* Where it is, for any process of the same parallel query. */
typedef struct FavShared
{
	dsm_handle	query;
	dsa_pointer place;
} FavShared;

/*
 * In a worker: memory for what the calling partial aggregate sends to the final one.
 * NULL: there is none for such as this, or not in abundance.
 */
extern void *fav_share(FunctionCallInfo fcinfo, Size size, FavShared *shared);

/*
 * In the leader: the same, for the combine function of the final aggregate.  It is there as
 * long as the aggregate's memory.
 */
extern void *fav_take_shared(FunctionCallInfo fcinfo, const FavShared *shared);

#endif							/* FAV_SHARE_H */
