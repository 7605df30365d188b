/*
 * build.h
 *		Filters from the source.
 */
#ifndef FAV_BUILD_H
#define FAV_BUILD_H

#include "attach/attachment.h"

extern void fav_build_all(FavAttachment *attachment);
extern void fav_rebuild_after_truncate(Oid schema, Oid levels, Oid truncated);

#endif							/* FAV_BUILD_H */
