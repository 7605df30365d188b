/*
 * edit.h
 *		The union of filters, with errors reported by ereport.
 */
#ifndef FAV_EDIT_H
#define FAV_EDIT_H

#include "fav.h"

/* Raise an error if filters with these parameters cannot be united. */
extern void fav_check_unitable(const FavParams *a, const FavParams *b);

/* Add all elements of `other` to the filter of the editor. */
extern void fav_unite(FavEditor *editor, const FavFilter *other);

#endif							/* FAV_EDIT_H */
