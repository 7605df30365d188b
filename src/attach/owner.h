/*
 * owner.h
 *		Acting as the owner of the tables of an attachment, and running queries.
 */
#ifndef FAV_OWNER_H
#define FAV_OWNER_H

#include "postgres.h"

#include "executor/spi.h"
#include "storage/lockdefs.h"
#include "utils/snapshot.h"

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

extern char *fav_relation_name(Oid relation);
extern void fav_run(const char *command);
extern SPIPlanPtr fav_prepare(const char *text, int nvalues, Oid *types, int options);
extern uint64 fav_execute_plan(SPIPlanPtr plan, Datum *values, const char *nulls,
							   Snapshot snapshot, int expected);
extern uint64 fav_execute_in(Snapshot snapshot, const char *text, int expected, int nvalues,
							 Oid *types, Datum *values);

#endif							/* FAV_OWNER_H */
