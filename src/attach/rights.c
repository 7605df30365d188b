/*
 * rights.c
 *		Who may read the filters of a table, and call the functions of an attachment.
 *
 * The rights on the source decide.  They are copied by ordinary GRANTs when objects are made, and
 * when the filters are complete.
 */
#include "attach/catalogs.h"
#include "attach/queries.h"
#include "attach/rights.h"

#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rls.h"
#include "utils/syscache.h"

/* The ACL of an object; NULL: the default. */
static Acl *
read_acl(int cache, Oid object, AttrNumber column)
{
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(object));
	Acl		   *acl = NULL;
	bool		isnull;
	Datum		value;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	value = SysCacheGetAttr(cache, tuple, column, &isnull);
	if (!isnull)
		acl = DatumGetAclPCopy(value);
	ReleaseSysCache(tuple);
	return acl;
}

/*
 * The roles other than the owner that have any of these rights on a relation, as a list in SQL;
 * NULL if there are none.
 */
static const char *
list_grantees(Oid relation, AclMode rights)
{
	const Acl  *acl = read_acl(RELOID, relation, Anum_pg_class_relacl);
	Oid			owner = fav_owner_of(relation);
	StringInfoData roles;
	int			i;

	initStringInfo(&roles);
	for (i = 0; acl != NULL && i < ACL_NUM(acl); i++)
	{
		const AclItem *item = &ACL_DAT(acl)[i];

		if (item->ai_grantee != owner && (ACLITEM_GET_PRIVS(*item) & rights) != 0)
			appendStringInfo(&roles, "%s%s", roles.len > 0 ? ", " : "",
							 item->ai_grantee == ACL_ID_PUBLIC ? "PUBLIC" :
							 quote_identifier(GetUserNameFromId(item->ai_grantee, false)));
	}
	return roles.len > 0 ? roles.data : NULL;
}

/*
 * Who has this right on the source may call a function.  PUBLIC may, unless the default privileges
 * of the owner are others.  As the owner.
 */
void
fav_grant_call(Oid source, Oid function, AclMode right)
{
	const char *roles = list_grantees(source, right);

	if (roles != NULL && read_acl(PROCOID, function, Anum_pg_proc_proacl) != NULL)
		fav_run(psprintf("GRANT EXECUTE ON FUNCTION %s TO %s",
						 format_procedure_qualified(function), roles));
}

/* With row security, to read the source is not to read all of it. */
static bool
has_row_security(Oid relation)
{
	return check_enable_rls(relation, InvalidOid, true) != RLS_NONE;
}

/*
 * Those who may read the source may read its filters, too.  With row security the filters are for
 * the owner.
 */
void
fav_grant_select(Oid source, Oid relation)
{
	const char *roles = list_grantees(source, ACL_SELECT);

	if (roles != NULL && !has_row_security(source))
		fav_run(psprintf("GRANT SELECT ON TABLE %s TO %s", fav_relation_name(relation), roles));
}

/* Nobody but the owner may write filters, whatever the default privileges say.  As the owner. */
void
fav_grant_to_readers(Oid source, Oid relation)
{
	const char *roles = list_grantees(relation, ~(AclMode) 0);

	if (roles != NULL)
		fav_run(psprintf("REVOKE ALL ON TABLE %s FROM %s", fav_relation_name(relation), roles));
	fav_grant_select(source, relation);
}

void
fav_notice_row_security(Oid source)
{
	if (has_row_security(source))
		ereport(NOTICE,
				(errmsg("only the owner of table \"%s\" can read its filters",
						get_rel_name(source)),
				 errdetail("The table has row security, which filters do not know."),
				 errhint("Grant SELECT on the filters to roles that may read all rows.")));
}

/*
 * Do policies or rules come between the filters and their users?  Policies hide filters from
 * readers, and rules replace the queries that write them.
 */
bool
fav_is_overruled(Oid levels)
{
	FavScan		scan;
	bool		has_rule;

	fav_begin_scan(&scan, RewriteRelationId, RewriteRelRulenameIndexId, Anum_pg_rewrite_ev_class,
				   levels);
	has_rule = HeapTupleIsValid(fav_next_row(&scan));
	fav_end_scan(&scan);
	return has_rule || has_row_security(levels);
}
