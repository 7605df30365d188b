/*
 * verify.c
 *		Do the filters tell the truth?  fav_verify, and the counts of view
 *		fav_attachments.
 *
 * Both run with the rights of the caller: they read tables, and tell nothing
 * that a query would not.
 */
#include "attach.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* About how many questions to ask for the false positive rate, of how many filters. */
#define PROBES			100000
#define PROBED_FILTERS	1000

PG_FUNCTION_INFO_V1(fav_verify);
PG_FUNCTION_INFO_V1(fav_attachment_counts);

/* The first row of a query, whose columns are the results of the function. */
static Datum
run_for_row(FunctionCallInfo fcinfo, const char *query)
{
	TupleDesc	descriptor;
	FavRole		role;
	Datum		values[4];
	bool		nulls[4];
	Datum		result;
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext old;
	int			i;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE || descriptor->natts > 4)
		elog(ERROR, "unexpected result type");
	/* not as somebody else, but in the same safe environment */
	fav_role_begin(&role, GetUserId(), true);
	SetUserIdAndSecContext(role.user, role.security);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute(query, true, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "query failed: %s", query);
	for (i = 0; i < descriptor->natts; i++)
		values[i] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i + 1, &nulls[i]);
	old = MemoryContextSwitchTo(caller);
	result = HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
	MemoryContextSwitchTo(old);
	SPI_finish();
	fav_role_end(&role);
	return result;
}

/* Elements that are in no source: hashes of numbers, in the type asked for. */
static const char *
probe_expression(FavKind kind)
{
	switch (kind)
	{
		case FAV_KIND_INTEGER:
			return "pg_catalog.hashint8extended(n, 4711)";
		case FAV_KIND_TEXT:
			return "pg_catalog.concat('fav_verify ', n)";
		case FAV_KIND_UUID:
			return "CAST(pg_catalog.md5(pg_catalog.concat('fav_verify ', n)) AS pg_catalog.uuid)";
		default:
			return "pg_catalog.decode(pg_catalog.md5(pg_catalog.concat('fav_verify ', n)), 'hex')";
	}
}

/*
 * fav_verify(source, target, filter): one row (keys, elements, missing,
 * false_positive_rate), all from one snapshot, in which source and filters agree.
 */
Datum
fav_verify(PG_FUNCTION_ARGS)
{
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	FavAttachment attachment;
	FavCatalogRow *row;
	StringInfoData query;
	const char *extension;
	const char *filter;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("source must not be null")));
	row = fav_catalog_choose(schema, PG_GETARG_OID(0),
							 PG_ARGISNULL(1) ? InvalidOid : PG_GETARG_OID(1),
							 PG_ARGISNULL(2) ? NULL : NameStr(*PG_GETARG_NAME(2)));
	fav_attachment_resolve(&attachment, schema, row);
	extension = quote_identifier(get_namespace_name(schema));
	filter = quote_identifier(NameStr(attachment.filter.name));

	initStringInfo(&query);
	appendStringInfo(&query,
					 "SELECT p.keys, p.elements, p.missing, q.rate FROM"
					 " (SELECT pg_catalog.count(*) AS keys, COALESCE(pg_catalog.sum(k.elements), 0)::pg_catalog.int8 AS elements,"
					 " COALESCE(pg_catalog.sum(k.missing), 0)::pg_catalog.int8 AS missing FROM"
					 " (SELECT pg_catalog.count(*) AS elements,"
					 " pg_catalog.count(*) FILTER (WHERE NOT %s.fav_contains(t.%s, s.element)) AS missing FROM"
					 " (SELECT DISTINCT %s AS key, %s::%s%s AS element FROM %s WHERE %s IS NOT NULL AND %s IS NOT NULL) s"
					 " LEFT JOIN %s t ON ",
					 extension, filter,
					 quote_identifier(NameStr(attachment.key.name)),
					 quote_identifier(NameStr(attachment.element.name)), fav_element_type_name(attachment.kind),
					 attachment.kind == FAV_KIND_TEXT ? " COLLATE pg_catalog.\"C\"" : "",
					 fav_relation_name(attachment.source),
					 quote_identifier(NameStr(attachment.key.name)),
					 quote_identifier(NameStr(attachment.element.name)),
					 fav_relation_name(attachment.target));
	fav_append_key_equal(&query, &attachment, "s.key");
	appendStringInfoString(&query, " GROUP BY s.key) k) p,");
	appendStringInfo(&query,
					 " (SELECT pg_catalog.avg(%s.fav_contains(f.filter, %s)::pg_catalog.int4)::pg_catalog.float8 AS rate"
					 " FROM (SELECT %s AS filter, pg_catalog.count(*) OVER () AS filters,"
					 " pg_catalog.row_number() OVER () AS number FROM"
					 " (SELECT t.%s FROM %s t WHERE t.%s IS NOT NULL ORDER BY pg_catalog.random() LIMIT %d) r) f,"
					 " LATERAL pg_catalog.generate_series(f.number OPERATOR(pg_catalog.*) %d,"
					 " (f.number OPERATOR(pg_catalog.*) %d) OPERATOR(pg_catalog.+) (%d OPERATOR(pg_catalog./) f.filters)) n) q",
					 extension, probe_expression(attachment.kind), filter, filter,
					 fav_relation_name(attachment.target), filter, PROBED_FILTERS, PROBES, PROBES, PROBES);
	return run_for_row(fcinfo, query.data);
}

/*
 * fav_attachment_counts(target, filter): (filters, bytes, want_rebuild), for view
 * fav_attachments.  NULL for those who may not read the table.
 */
Datum
fav_attachment_counts(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	char	   *filter = NameStr(*PG_GETARG_NAME(1));
	FavColumn	column;

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(target)) ||
		!fav_column_find(target, filter, 0, &column) ||
		column.type != GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("fav"),
									   ObjectIdGetDatum(get_func_namespace(fcinfo->flinfo->fn_oid))) ||
		(pg_class_aclcheck(target, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		 pg_attribute_aclcheck(target, column.number, GetUserId(), ACL_SELECT) != ACLCHECK_OK))
		PG_RETURN_NULL();
	filter = pstrdup(quote_identifier(filter));
	return run_for_row(fcinfo,
					   psprintf("SELECT pg_catalog.count(%s), COALESCE(pg_catalog.sum(pg_catalog.pg_column_size(%s)), 0)::pg_catalog.int8,"
								" pg_catalog.count(*) FILTER (WHERE %s.fav_needs_rebuild(%s)) FROM %s",
								filter, filter,
								quote_identifier(get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid))),
								filter, fav_relation_name(target)));
}
