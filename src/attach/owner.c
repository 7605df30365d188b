/*
 * owner.c
 *		Acting as the owner of the tables of an attachment.
 *
 * Planning a query may run code of whoever owns its tables (index predicates, defaults),
 * and executing it certainly does.  So every query of ours is planned and executed as
 * that owner: nobody's code runs with somebody else's rights.  The operation is
 * restricted, so that this code cannot leave anything behind in the session of the
 * caller; the search_path is fixed, so that objects of the caller cannot get in its way;
 * and row security does not hide rows from the owner, even where it is forced.
 */
#include "attach.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static void
set_option(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* An error on the way restores all of this with the transaction. */
void
fav_become_owner(FavRole *role, Oid owner)
{
	GetUserIdAndSecContext(&role->user, &role->security);
	SetUserIdAndSecContext(owner, role->security | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
	role->guc_level = NewGUCNestLevel();
	set_option("search_path", "pg_catalog, pg_temp");
}

/*
 * For queries about one key, until fav_become_caller().  Their plans are kept for the
 * session, and a table that is small now may grow.
 */
void
fav_prefer_indexes(void)
{
	set_option("enable_seqscan", "off");
}

void
fav_become_caller(const FavRole *role)
{
	AtEOXact_GUC(false, role->guc_level);
	SetUserIdAndSecContext(role->user, role->security);
}

Oid
fav_owner_of(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relation)));
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

bool
fav_has_owner(Oid relation, Oid owner)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	bool		has_owner;

	if (!HeapTupleIsValid(tuple))
		return false;
	has_owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner == owner;
	ReleaseSysCache(tuple);
	return has_owner;
}

void
fav_check_owner(Oid relation)
{
	if (!fav_owns_relation(relation, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relation)), get_rel_name(relation));
}

void
fav_spi_connect(void)
{
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

void
fav_spi_run(const char *query)
{
	int			status = SPI_execute(query, false, 0);

	if (status < 0)
		elog(ERROR, "SPI_execute failed: %s: %s", SPI_result_code_string(status), query);
}

/*
 * In a snapshot of its own.  Returns how many rows there were.  The memory context stays as
 * it is; SPI would leave its own.
 */
uint64
fav_spi_execute(SPIPlanPtr plan, Datum *values, const char *nulls, int expected)
{
	MemoryContext context = CurrentMemoryContext;
	int			status = SPI_execute_plan(plan, values, nulls, false, 0);

	MemoryContextSwitchTo(context);
	if (status != expected)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a query on the tables of an attached filter gave an unexpected result"),
				 errdetail("The result was %s. A rule of one of the tables may have replaced the query.",
						   SPI_result_code_string(status))));
	return SPI_processed;
}

/*
 * In the latest snapshot, whatever the isolation level: for queries on tables that are
 * locked, so that nothing else can change.
 */
uint64
fav_spi_execute_latest(const char *query, int nvalues, Oid *types, Datum *values)
{
	SPIPlanPtr	plan = SPI_prepare(query, nvalues, types);
	int			status;

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s: %s", SPI_result_code_string(SPI_result), query);
	PushActiveSnapshot(GetLatestSnapshot());
	status = SPI_execute_snapshot(plan, values, NULL, GetActiveSnapshot(), InvalidSnapshot, false, true, 0);
	PopActiveSnapshot();
	if (status < 0)
		elog(ERROR, "SPI_execute_snapshot failed: %s: %s", SPI_result_code_string(status), query);
	return SPI_processed;
}
