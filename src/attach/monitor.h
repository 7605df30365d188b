/*
 * monitor.h
 *		What is attached, and how far a build is.
 */
#ifndef FAV_MONITOR_H
#define FAV_MONITOR_H

#include "attach/attachment.h"

#include "datatype/timestamp.h"

typedef enum FavPhase
{
	FAV_PHASE_BUILD,
	FAV_PHASE_REBUILD,
	FAV_PHASE_STALE,
	FAV_PHASE_MISSING
} FavPhase;

typedef struct FavProgress
{
	Oid			source;
	FavPhase	phase;
	TimestampTz begin;
	int64		keys;			/* of filters that are done, */
	int64		estimated;		/* and of all; -1: not known */
	int64		rows;			/* of the source that were read for them */
} FavProgress;

extern void fav_begin_progress(FavProgress *progress, FavPhase phase,
							   const FavAttachment *attachment);
extern void fav_report_progress(const FavProgress *progress);
extern void fav_end_progress(void);

#endif							/* FAV_MONITOR_H */
