/*
 * interface.h
 *		What people use an attachment with: its functions and its view.
 */
#ifndef FAV_INTERFACE_H
#define FAV_INTERFACE_H

#include "attach/attachment.h"

typedef enum FavObjectKind
{
	FAV_OBJECT_HAS,				/* <name>_has */
	FAV_OBJECT_ADD,				/* <sink>_add */
	FAV_OBJECT_REMOVE,			/* <sink>_remove */
	FAV_OBJECT_VIEW				/* <name>_fav */
} FavObjectKind;

typedef struct FavObject
{
	FavObjectKind kind;
	Oid			oid;
	Oid			owner;
	Oid			namespace;
	const char *name;
	bool		exact;			/* <name>_has looks up in the source what the filter reports */
	bool		complete;		/* and says that all filters were built */
} FavObject;

extern bool fav_find_object(Oid schema, Oid levels, FavObjectKind kind, FavObject *object);
extern Oid	fav_view_of_levels(Oid schema, Oid levels);
extern const char *fav_name_of_remove(const FavAttachment *attachment);
extern const char *fav_list_owner_commands(Oid schema, Oid source, Oid levels);
extern const char *fav_argument_type_name(const FavColumn *column);
extern void fav_refuse_taken_function(Oid namespace, const char *name);
extern Oid	fav_create_interface(const FavAttachment *attachment, const char *name, bool exact,
								 bool complete);
extern void fav_replace_has(const FavAttachment *attachment, const FavObject *has);
extern void fav_complete(const FavAttachment *attachment);
extern void fav_drop_interface(Oid schema, Oid levels);

#endif							/* FAV_INTERFACE_H */
