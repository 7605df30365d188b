/*
 * union.h
 *		Filters as one filter, with errors as the server reports them.
 */
#ifndef FAV_TYPE_UNION_H
#define FAV_TYPE_UNION_H

#include "fav.h"

/* Raise an error if filters with these parameters cannot be united. */
extern void fav_check_unitable(const FavParams *a, const FavParams *b);

/* Add all that `other` holds to the editor's filter. */
extern void fav_unite(FavEditor *editor, const FavFilter *other);

#endif							/* FAV_TYPE_UNION_H */
