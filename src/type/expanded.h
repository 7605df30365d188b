/*
 * expanded.h
 *		An expanded filter: the value of a PL/pgSQL variable, which can be edited in place.
 */
#ifndef FAV_EXPANDED_H
#define FAV_EXPANDED_H

#include "fav.h"

#include "utils/expandeddatum.h"

typedef struct FavExpanded FavExpanded;

/* One of the core's fav_editor_..._many(). */
typedef FavStatus (*FavEdit) (FavEditor *editor, const uint64_t *hashes, size_t count,
							  int32_t period);

/* Returns the object of a value, or NULL if the value is not expanded. */
extern FavExpanded *fav_find_expanded(Datum value);

/*
 * Make an object from a copy of a value, in a child of the current memory context.  NULL is the
 * empty filter.
 */
extern FavExpanded *fav_expand(const NullableDatum *value);

/* The parameters for hashing an element of this kind. */
extern const FavParams *fav_expanded_params(FavExpanded *object, FavKind kind);

/* May this many elements be edited in place, all or none of them? */
extern bool fav_expanded_is_editable(const FavExpanded *object, size_t count);

extern void fav_expanded_edit(FavExpanded *object, FavKind kind, FavEdit edit,
							  const uint64_t *hashes, size_t count, int32_t period);

extern bool fav_expanded_contains(const FavExpanded *object, uint64_t hash);

/* Returns the current filter, which is valid until the next edit. */
extern const FavFilter *fav_expanded_filter(FavExpanded *object);

/*
 * Returns a read-write pointer to the object.  If `source` is given, the caller has made the
 * object from that.  If they do not differ, this releases the object and returns the source.
 */
extern Datum fav_expanded_result(FavExpanded *object, const NullableDatum *source);

/* Open an argument for reading, without flattening it.  NULL is the empty filter. */
extern const FavFilter *fav_get_filter(FunctionCallInfo fcinfo, int number);

#endif							/* FAV_EXPANDED_H */
