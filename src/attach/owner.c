/*
 * owner.c
 *		Acting as the owner of the tables of an attachment.
 *
 * Planning a query may run code of the owner of its tables (index predicates, defaults), and
 * executing it may, too.  So every query of ours is planned and executed as that owner: no
 * code runs with the rights of another role.  The operation is security-restricted, so that
 * this code cannot change the session of the caller.  The search_path is fixed, so that
 * objects of the caller are not found, and so is what else of the session's settings would
 * change the objects that we make.  Row security hides no rows from the owner, even if it
 * is forced.
 */
#include "attach/queries.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* For the present nest level of options. */
void
fav_set_option(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
							 false);
}

/* With SPI connected.  An error on the way undoes all of this with the transaction. */
void
fav_become_owner(FavRole *role, Oid owner)
{
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	GetUserIdAndSecContext(&role->user, &role->security);
	SetUserIdAndSecContext(owner, role->security | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
	role->guc_level = NewGUCNestLevel();
	fav_set_option("search_path", "pg_catalog, pg_temp");
}

void
fav_become_caller(const FavRole *role)
{
	AtEOXact_GUC(false, role->guc_level);
	SetUserIdAndSecContext(role->user, role->security);
	SPI_finish();
}

/* InvalidOid if the relation does not exist. */
Oid
fav_owner_of(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

void
fav_check_owner(Oid relation)
{
	if (!fav_owns_relation(relation, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relation)),
					   get_rel_name(relation));
}

/*
 * Lock a relation that the caller must own.  The owner may change while this waits for the lock,
 * so the check is repeated.  The first check keeps others from waiting there.
 */
void
fav_lock_as_owner(Oid relation, LOCKMODE mode)
{
	fav_check_owner(relation);
	LockRelationOid(relation, mode);
	fav_check_owner(relation);
}
