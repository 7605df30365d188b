/*
 * build.h
 *		Filters from the source.
 */
#ifndef FAV_BUILD_H
#define FAV_BUILD_H

#include "attach/attachment.h"

#define FAV_MAX_CONDITION_KEYS	4

extern Datum fav_read_key(const FavAttachment *attachment, Datum text_key);
extern uint64 fav_insert_filters(FavAttachment *attachment, const char *rows,
								 const char *filters, const char *form, const char *end,
								 int nkeys, const Datum *keys);
extern void fav_build_all(FavAttachment *attachment);
extern void fav_rebuild_after_truncate(Oid schema, Oid levels, Oid truncated);
extern void fav_forget_truncates(void);

#endif							/* FAV_BUILD_H */
