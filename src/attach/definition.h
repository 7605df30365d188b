/*
 * definition.h
 *		Where an attachment is written down: in its levels table and its triggers.
 */
#ifndef FAV_DEFINITION_H
#define FAV_DEFINITION_H

#include "attach/attachment.h"

extern Datum fav_make_recent(const FavParams *params);
extern void fav_set_keep(int64 seconds, FavParams *params, int64 *period);
extern bool fav_read_definition(Oid schema, Oid levels, FavAttachment *definition);
extern bool fav_read_when(Oid relation, const char *expression, bool is_of_rows, FavWhen *when);
extern List *fav_read_triggers(Oid schema, Oid relation);

#endif							/* FAV_DEFINITION_H */
