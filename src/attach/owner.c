/*
 * owner.c
 *		Acting as the owner of the tables of an attachment, and running queries.
 *
 * Planning a query may run code of the owner of its tables (index predicates, defaults), and
 * executing it may, too.  So every query of ours is planned and executed as that owner: no
 * code runs with the rights of another role.  The operation is security-restricted, so that
 * this code cannot change the session of the caller.  The search_path is fixed, so that
 * objects of the caller are not found, and so is what else of the session's settings would
 * change the objects that we make.  Row security hides no rows from the owner, even if it
 * is forced.
 */
#include "fav.h"

#include "attach/catalogs.h"
#include "attach/owner.h"

#include "catalog/pg_class.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
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
	return fav_oid_of(RELOID, relation, Anum_pg_class_relowner);
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

/*
 * Queries
 */

char *
fav_relation_name(Oid relation)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
									  get_rel_name(relation));
}

/* The following functions restore the memory context, which SPI changes. */

SPIPlanPtr
fav_prepare(const char *text, int nvalues, Oid *types, int options)
{
	MemoryContext context = CurrentMemoryContext;
	SPIPlanPtr	plan = SPI_prepare_cursor(text, nvalues, types, options);

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s: %s", SPI_result_code_string(SPI_result), text);
	MemoryContextSwitchTo(context);
	return plan;
}

/* In the given snapshot; InvalidSnapshot means as any query does.  Returns the number of rows. */
uint64
fav_execute_plan(SPIPlanPtr plan, Datum *values, const char *nulls, Snapshot snapshot,
				 int expected)
{
	MemoryContext context = CurrentMemoryContext;
	int			status;

	if (snapshot != InvalidSnapshot)
	{
		PushActiveSnapshot(snapshot);
		snapshot = GetActiveSnapshot();
	}
	status = SPI_execute_snapshot(plan, values, nulls, snapshot, InvalidSnapshot, false, true, 0);
	if (snapshot != InvalidSnapshot)
		PopActiveSnapshot();
	if (status != expected)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a query on the tables of an attached filter gave an unexpected result"),
				 errdetail("The result was %s. A rule of one of the tables may have replaced the"
						   " query.", SPI_result_code_string(status))));
	MemoryContextSwitchTo(context);
	return SPI_processed;
}

/*
 * A query that is executed once, in the given snapshot; InvalidSnapshot means the latest at any
 * isolation level.  Returns the number of rows.
 */
uint64
fav_execute_in(Snapshot snapshot, const char *text, int expected, int nvalues, Oid *types,
			   Datum *values)
{
	SPIPlanPtr	plan = fav_prepare(text, nvalues, types, 0);

	return fav_execute_plan(plan, values, NULL,
							snapshot == InvalidSnapshot ? GetLatestSnapshot() : snapshot,
							expected);
}

/* A utility command. */
void
fav_run(const char *command)
{
	int			status = SPI_execute(command, false, 0);

	if (status < 0)
		elog(ERROR, "SPI_execute failed: %s: %s", SPI_result_code_string(status), command);
}
