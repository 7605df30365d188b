/*
 * union.h
 *		Merge one filter into another.
 */
#ifndef FAV_UNION_H
#define FAV_UNION_H

#include "filter.h"

/*
 * Add to the editor's filter all that `other` holds.  FAV_MISMATCH if seed or
 * region size differ; then and on any other failure the editor's elements are
 * as they were.  `other` must stay in memory until the editor is closed: slices
 * that are just chained are not copied.
 */
extern FavStatus fav_editor_union(FavEditor *editor, const FavFilter *other);

#endif							/* FAV_UNION_H */
