/*
 * expanded.h
 *		A filter that stays open for changes: the value of a PL/pgSQL variable.
 */
#ifndef FAV_EXPANDED_H
#define FAV_EXPANDED_H

#include "fav.h"

#include "utils/expandeddatum.h"

typedef struct FavExpanded FavExpanded;

/* One of the core's fav_editor_..._many(). */
typedef FavStatus (*FavEdit) (FavEditor *editor, const uint64_t *hashes, size_t count);

/* The object behind a value of any form; NULL if the value is not expanded. */
extern FavExpanded *fav_find_expanded(Datum value);

/* A new object, in a child of the current memory context: a copy of a value, or an empty filter. */
extern FavExpanded *fav_expand(Datum value);
extern FavExpanded *fav_expand_empty(void);

/* The parameters for hashing an element of this kind. */
extern const FavParams *fav_expanded_params(FavExpanded *object, FavKind kind);

/* Can so many elements be edited in place, with no change left behind if that fails? */
extern bool fav_expanded_takes(const FavExpanded *object, size_t count);

extern void fav_expanded_edit(FavExpanded *object, FavKind kind, FavEdit edit,
							  const uint64_t *hashes, size_t count);

/* Has a new object become another value than it was made from? */
extern bool fav_expanded_has_changed(FavExpanded *object);

extern bool fav_expanded_contains(FavExpanded *object, uint64_t hash);

/* The filter as it is now; valid until the next edit. */
extern const FavFilter *fav_expanded_filter(FavExpanded *object);

/* Results: a pointer that lets the caller change the object. */
extern Datum fav_expanded_datum(const FavExpanded *object);

/* Release an object that nobody else knows. */
extern void fav_expanded_release(FavExpanded *object);

/* An argument for a function that needs nothing but the filter: nothing is flattened. */
extern void fav_get_filter(FunctionCallInfo fcinfo, int number, FavFilter *filter);

#endif							/* FAV_EXPANDED_H */
