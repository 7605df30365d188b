/*
 * sink.h
 *		The filters of a sink.
 */
#ifndef FAV_SINK_H
#define FAV_SINK_H

#include "attach/attachment.h"
#include "attach/hashes.h"

typedef enum FavAction
{
	FAV_ADD,
	FAV_REMOVE,
	FAV_EXCLUDE
} FavAction;

/* A change of some elements of a filter, all in the same way. */
typedef struct FavChange
{
	FavAction	action;
	FavHashes	hashes;			/* sorted and unique, unless they have periods of their own */
	int32	   *periods;		/* of each, in ascending order; NULL: the present one for all */
	bool	   *is_new;			/* to be set for each that was not reported before; or NULL */
	int32		present;		/* set when the filter is changed, */
	size_t		step;			/* and so is this: the order in which elements are added */
} FavChange;

extern int32 fav_period_of_time(const FavAttachment *attachment, Datum time);
extern void fav_change_sink(FavAttachment *attachment, Datum filter_key, FavChange *change);
extern void fav_refuse_sink(const FavAttachment *attachment, const char *function);

#endif							/* FAV_SINK_H */
