/*
 * has.h
 *		What a call of <name>_has means.
 */
#ifndef FAV_HAS_H
#define FAV_HAS_H

#include "attach/attachment.h"

#include "nodes/pathnodes.h"

typedef struct FavCall
{
	PlannerInfo *root;
	FavAttachment *attachment;
	Node	   *key;
	Node	   *element;
	bool		exact;
} FavCall;

/* The answer as an expression with sub-selects.  It is true or false, never NULL. */
extern Node *fav_expand_call(const FavCall *call);

#endif							/* FAV_HAS_H */
