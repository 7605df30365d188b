/*
 * rights.h
 *		Who may read the filters of a table, and call the functions of an attachment.
 */
#ifndef FAV_RIGHTS_H
#define FAV_RIGHTS_H

#include "attach/attachment.h"

extern void fav_grant_call(Oid source, Oid function, AclMode right);
extern void fav_grant_select(Oid source, Oid relation);
extern void fav_grant_to_readers(Oid source, Oid relation);
extern void fav_notice_row_security(Oid source);
extern bool fav_is_overruled(Oid levels);

#endif							/* FAV_RIGHTS_H */
