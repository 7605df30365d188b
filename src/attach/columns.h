/*
 * columns.h
 *		The columns of key and element, the key of a filter, and the hash of a row.
 */
#ifndef FAV_COLUMNS_H
#define FAV_COLUMNS_H

#include "attach/attachment.h"

extern bool fav_read_column(Oid relation, AttrNumber number, FavColumn *column);
extern bool fav_find_column(Oid relation, const char *name, FavColumn *column);
extern FavKind fav_kind_of_column(const FavColumn *column);
extern TypeCacheEntry *fav_key_type(Oid key);
extern void fav_read_indexes(FavAttachment *attachment);
extern bool fav_has_index_on_key(Oid source, const FavColumn *key);
extern Oid	fav_find_key_index(const FavAttachment *attachment);
extern bool fav_has_columns(Oid relation, AttrNumber first, int count, Oid type);
extern bool fav_has_log(Oid levels);
extern const char *fav_hint_to_copy(Oid levels);
extern Oid	fav_argument_type(const FavColumn *column);
extern FavKind fav_kind_of_row(const FavAttachment *attachment);
extern int64 fav_integer(Oid type, Datum value);
extern Datum fav_filter_key(const FavAttachment *attachment, Datum key);
extern void fav_filter_range(const FavAttachment *attachment, Datum filter_key, Datum *range);
extern uint64_t fav_hash_row(const FavAttachment *attachment, Datum key, Datum element);

#endif							/* FAV_COLUMNS_H */
