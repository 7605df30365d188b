/*
 * objects.h
 *		The levels table and the triggers of an attachment.
 */
#ifndef FAV_OBJECTS_H
#define FAV_OBJECTS_H

#include "attach/attachment.h"

extern void fav_create_levels(FavAttachment *attachment, const char *base);
extern void fav_create_triggers(const FavAttachment *attachment);
extern void fav_drop_objects(Oid schema, Oid source, Oid levels);
extern bool fav_is_active(const FavAttachment *attachment);
extern void fav_free_left(const FavAttachment *attachment);

#endif							/* FAV_OBJECTS_H */
