/*
 * collect.h
 *		The pairs that a transaction has touched.
 */
#ifndef FAV_COLLECT_H
#define FAV_COLLECT_H

#include "attach/attachment.h"

extern void fav_forget_known(void);
extern void fav_settle(const FavAttachment *attachment);

#endif							/* FAV_COLLECT_H */
