/*
 * queries.h
 *		Queries on the tables of an attachment, as their owner.
 */
#ifndef FAV_QUERIES_H
#define FAV_QUERIES_H

#include "attach/attachment.h"

#include "storage/lockdefs.h"
#include "utils/snapshot.h"

/* owner.c: acting as the owner of the tables */
typedef struct FavRole
{
	Oid			user;
	int			security;
	int			guc_level;
} FavRole;

extern void fav_set_option(const char *name, const char *value);
extern void fav_become_owner(FavRole *role, Oid owner);
extern void fav_become_caller(const FavRole *role);
extern Oid	fav_owner_of(Oid relation);
extern void fav_check_owner(Oid relation);
extern void fav_lock_as_owner(Oid relation, LOCKMODE mode);

/* queries.c: the texts of queries, and executing them */
extern char *fav_relation_name(Oid relation);
extern const char *fav_element_type_name(FavKind kind);
extern const char *fav_own_column(const char *name, const char *key);
extern char *fav_query(const FavAttachment *attachment, const char *text);
extern void fav_run(const char *command);
extern uint64 fav_execute(FavAttachment *attachment, FavQuery query, Datum *values,
						  const char *nulls, int expected);
extern uint64 fav_execute_in(Snapshot snapshot, const char *text, int expected, int nvalues,
							 Oid *types, Datum *values);

#endif							/* FAV_QUERIES_H */
