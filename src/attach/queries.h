/*
 * queries.h
 *		Queries on the tables of an attachment: their texts, and the plans that are kept.
 */
#ifndef FAV_QUERIES_H
#define FAV_QUERIES_H

#include "attach/attachment.h"
#include "attach/owner.h"

extern const char *fav_own_column(const char *name, const char *key);
extern char *fav_query(const FavAttachment *attachment, const char *text);
extern uint64 fav_execute(FavAttachment *attachment, FavQuery query, Datum *values,
						  const char *nulls, int expected);

#endif							/* FAV_QUERIES_H */
