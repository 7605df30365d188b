/*
 * union.h
 *		Merge one filter into another.
 */
#ifndef FAV_UNION_H
#define FAV_UNION_H

#include "filter.h"

/*
 * Add to the editor's filter all that `other` holds.  FAV_MISMATCH if seed,
 * region size or kind differ, FAV_TOO_MANY_SLICES if the slices of both do not fit one
 * chain; then and on any other failure the editor is as it was.
 */
extern FavStatus fav_editor_union(FavEditor *editor, const FavFilter *other);

#endif							/* FAV_UNION_H */
