/*
 * objects.h
 *		The objects that an attachment consists of: tables, triggers, functions and a view.
 */
#ifndef FAV_OBJECTS_H
#define FAV_OBJECTS_H

#include "attach/attachment.h"

/* objects.c: the levels table and triggers of an attachment */
extern void fav_create_levels(FavAttachment *attachment, const char *key_name,
							  const char *levels_name);
extern void fav_create_triggers(const FavAttachment *attachment);
extern void fav_drop_objects(Oid schema, Oid source, Oid levels);
extern bool fav_is_active(const FavAttachment *attachment);
extern void fav_free_left(const FavAttachment *attachment);

/* readers.c: the function and the view that people read with */
typedef struct FavHas
{
	Oid			function;		/* <name>_has */
	bool		exact;			/* looks up in the source what the filter reports */
	bool		complete;		/* all filters were built */
} FavHas;

extern const char *fav_list_owner_commands(Oid schema, Oid source, Oid levels);
extern bool fav_find_has(Oid schema, Oid levels, FavHas *has);
extern void fav_create_has(const FavAttachment *attachment, const char *name, bool exact,
						   bool complete);
extern void fav_replace_has(const FavAttachment *attachment, const FavHas *has);
extern void fav_refuse_taken_function(Oid namespace, const char *name);
extern Oid	fav_view_of_levels(Oid schema, Oid levels);
extern void fav_create_view(const FavAttachment *attachment, const char *view_name);
extern bool fav_is_overruled(Oid levels);
extern void fav_grant_to_readers(const FavAttachment *attachment, Oid relation);
extern void fav_grant_call(const FavAttachment *attachment, Oid function, AclMode right);
extern void fav_notice_row_security(Oid source);
extern bool fav_is_complete(Oid schema, Oid levels);
extern void fav_complete(const FavAttachment *attachment);
extern void fav_drop_readers(Oid schema, Oid levels);
extern FuncExpr *fav_read_body(Oid function, Oid owner);

#endif							/* FAV_OBJECTS_H */
