/*
 * attachment_cache.h
 *		Attachments that are ready for use.
 */
#ifndef FAV_ATTACHMENT_CACHE_H
#define FAV_ATTACHMENT_CACHE_H

#include "attach/attachment.h"

extern FavAttachment *fav_attachment_of_trigger(FunctionCallInfo fcinfo, FavWhen *when);
extern bool fav_has_left(FunctionCallInfo fcinfo, Oid *source, Oid *levels);
extern void fav_refuse_left(FunctionCallInfo fcinfo);
extern FavAttachment *fav_attachment_of_levels(Oid schema, Oid levels);
extern void fav_lock_for_reading(Oid schema, Oid levels);
extern FavAttachment *fav_attachment_of_arguments(FunctionCallInfo fcinfo, int name_argument,
												  bool may_be_spread);
extern void fav_keep_attachment(FavAttachment *attachment);
extern void fav_lock_source(FavAttachment *attachment);
extern Oid	fav_source_argument(FunctionCallInfo fcinfo);

#endif							/* FAV_ATTACHMENT_CACHE_H */
