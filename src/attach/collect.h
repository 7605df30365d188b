/*
 * collect.h
 *		The pairs that a transaction has touched.
 */
#ifndef FAV_COLLECT_H
#define FAV_COLLECT_H

#include "attach/attachment.h"

#include "commands/trigger.h"

extern void fav_collect_rows(FavAttachment *attachment, const FavWhen *when,
							 const TriggerData *data);
extern bool fav_has_collected(void);
extern void fav_reconcile_collected(const FavAttachment *attachment);
extern void fav_settle(const FavAttachment *attachment);
extern void fav_forget_known(void);

#endif							/* FAV_COLLECT_H */
