/*
 * reconcile.h
 *		Making the filter of one key agree with the source.
 */
#ifndef FAV_RECONCILE_H
#define FAV_RECONCILE_H

#include "attach/attachment.h"

/* What is known of touched elements without looking them up. */
typedef enum FavKnown
{
	FAV_UNKNOWN,
	FAV_ALL_PRESENT,
	FAV_ALL_ABSENT
} FavKnown;

typedef struct FavReconciliation FavReconciliation;

extern FavReconciliation *fav_open_key(FavAttachment *attachment, Datum filter_key,
									   FavKnown known);
extern void fav_touch_row(FavReconciliation *work, Datum row_key, Datum element);
extern void fav_reconcile_key(FavReconciliation *work);
extern void fav_rebuild_key(FavAttachment *attachment, Datum filter_key);

#endif							/* FAV_RECONCILE_H */
