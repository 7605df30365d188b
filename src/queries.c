/*
 * queries.c
 *		The queries of an attachment: their texts, and plans that are kept.
 *
 * They name everything with its schema, operators included.
 */
#include "attach.h"

#include "access/htup_details.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

char *
fav_relation_name(Oid relation)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), get_rel_name(relation));
}

/* left = right, by this operator wherever it lives */
static void
append_operation(StringInfo query, const char *left, Oid operator, const char *right)
{
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator));
	Form_pg_operator form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", operator);
	form = (Form_pg_operator) GETSTRUCT(tuple);
	appendStringInfo(query, "%s OPERATOR(%s.%s) %s", left,
					 quote_identifier(get_namespace_name(form->oprnamespace)), NameStr(form->oprname), right);
	ReleaseSysCache(tuple);
}

/*
 * Elements are equal when their bytes are, which is what the filter sees.  A
 * collation may call more things equal; then, and only then, ask for bytes.
 */
void
fav_append_equal(StringInfo query, const FavAttachment *attachment,
				 const char *source_element, const char *element)
{
	const char *collate = "";

	if (attachment->kind == FAV_KIND_TEXT)
	{
		if (OidIsValid(attachment->element.collation) &&
			!get_collation_isdeterministic(attachment->element.collation))
			collate = " COLLATE pg_catalog.\"C\"";
		appendStringInfo(query, "%s::pg_catalog.text%s OPERATOR(pg_catalog.=) %s%s",
						 source_element, collate, element, collate);
	}
	else
		appendStringInfo(query, "%s OPERATOR(pg_catalog.=) %s", source_element, element);
}

/* The target's key t.<key> equals this key of the source. */
void
fav_append_key_equal(StringInfo query, const FavAttachment *attachment, const char *key)
{
	append_operation(query, psprintf("t.%s", quote_identifier(NameStr(attachment->target_key.name))),
					 attachment->target_equal, key);
}

static void
query_text(StringInfo query, const FavAttachment *attachment, FavQuery which)
{
	const char *schema = quote_identifier(get_namespace_name(attachment->schema));
	const char *source = fav_relation_name(attachment->source);
	const char *target = fav_relation_name(attachment->target);
	const char *key = psprintf("s.%s", quote_identifier(NameStr(attachment->key.name)));
	const char *element = psprintf("s.%s", quote_identifier(NameStr(attachment->element.name)));
	const char *filter = quote_identifier(NameStr(attachment->filter.name));
	const char *plain_target_key = quote_identifier(NameStr(attachment->target_key.name));
	const char *target_key = psprintf("t.%s", plain_target_key);

	switch (which)
	{
		case FAV_QUERY_APPLY:
			appendStringInfo(query, "UPDATE %s t SET %s = %s.fav_apply(t.%s) WHERE ", target, filter, schema, filter);
			append_operation(query, target_key, attachment->target_equal, "$1");
			break;
		case FAV_QUERY_LOCK:
			appendStringInfo(query, "SELECT t.%s FROM %s t WHERE ", filter, target);
			append_operation(query, target_key, attachment->target_equal, "$1");
			appendStringInfoString(query, " FOR NO KEY UPDATE");
			break;
		case FAV_QUERY_SET:
			appendStringInfo(query, "UPDATE %s t SET %s = $2 WHERE ", target, filter);
			append_operation(query, target_key, attachment->target_equal, "$1");
			break;
		case FAV_QUERY_INSERT:
			appendStringInfo(query, "INSERT INTO %s (%s, %s) VALUES (CAST($1 AS %s), $2) ON CONFLICT (%s) DO NOTHING",
							 target, plain_target_key, filter,
							 format_type_extended(attachment->target_key.type, -1,
												  FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY),
							 plain_target_key);
			break;
		case FAV_QUERY_PRESENT_FEW:

			/*
			 * A subselect that the planner cannot turn into a join: a join might
			 * read all pairs of a key for the sake of one, if it was planned
			 * while the table was small.
			 */
			appendStringInfo(query,
							 "SELECT u.x FROM pg_catalog.unnest($2) u (x) WHERE (SELECT true FROM %s s WHERE ", source);
			append_operation(query, key, attachment->key_equal, "$1");
			appendStringInfoString(query, " AND ");
			fav_append_equal(query, attachment, element, "u.x");
			appendStringInfoString(query, " LIMIT 1)");
			break;
		case FAV_QUERY_PRESENT_MANY:
			appendStringInfo(query,
							 "SELECT u.x FROM pg_catalog.unnest($2) u (x) WHERE EXISTS (SELECT FROM %s s WHERE ", source);
			append_operation(query, key, attachment->key_equal, "$1");
			appendStringInfoString(query, " AND ");
			fav_append_equal(query, attachment, element, "u.x");
			appendStringInfoString(query, ")");
			break;
		case FAV_QUERY_SCAN:
			appendStringInfo(query, "SELECT %s FROM %s s WHERE ", element, source);
			append_operation(query, key, attachment->key_equal, "$1");
			appendStringInfo(query, " AND %s IS NOT NULL", element);
			break;
		case FAV_QUERY_SCAN_ALL:
			appendStringInfo(query, "SELECT %s, %s FROM %s s WHERE %s IS NOT NULL AND %s IS NOT NULL ORDER BY %s",
							 key, element, source, key, element, key);
			break;
		case FAV_QUERY_EMPTY:
			appendStringInfo(query, "UPDATE %s t SET %s = $1 WHERE %s.fav_count(t.%s) OPERATOR(pg_catalog.>) 0",
							 target, filter, schema, filter);
			break;
		case FAV_QUERY_EMPTY_REST:
			appendStringInfo(query, "UPDATE %s t SET %s = $1 WHERE %s.fav_count(t.%s) OPERATOR(pg_catalog.>) 0"
							 " AND NOT EXISTS (SELECT FROM %s s WHERE ",
							 target, filter, schema, filter, source);
			append_operation(query, target_key, attachment->target_equal, key);
			appendStringInfo(query, " AND %s IS NOT NULL)", element);
			break;
	}
}

/* The parameters of a query; gives their number. */
static int
query_parameters(Oid *types, const FavAttachment *attachment, FavQuery which)
{
	Oid			element = fav_element_type(attachment->kind);
	Oid			fav = attachment->filter.type;

	types[0] = attachment->key_type;
	switch (which)
	{
		case FAV_QUERY_SET:
		case FAV_QUERY_INSERT:
			types[1] = fav;
			return 2;
		case FAV_QUERY_PRESENT_FEW:
		case FAV_QUERY_PRESENT_MANY:
			types[1] = get_array_type(element);
			return 2;
		case FAV_QUERY_APPLY:
		case FAV_QUERY_LOCK:
		case FAV_QUERY_SCAN:
			return 1;
		case FAV_QUERY_SCAN_ALL:
			return 0;
		case FAV_QUERY_EMPTY:
		case FAV_QUERY_EMPTY_REST:
			types[0] = fav;
			return 1;
	}
	pg_unreachable();
}

/*
 * The plan, prepared on first use and kept.  One that has become invalid is made
 * again from names as they are now: a schema may have been renamed.
 */
SPIPlanPtr
fav_attachment_plan(FavAttachment *attachment, FavQuery which)
{
	SPIPlanPtr	plan = attachment->plans[which];
	StringInfoData query;
	Oid			types[2];
	int			count;

	if (plan != NULL && SPI_plan_is_valid(plan))
		return plan;
	initStringInfo(&query);
	query_text(&query, attachment, which);
	count = query_parameters(types, attachment, which);
	/* a custom plan would know no better: the key decides */
	plan = SPI_prepare_cursor(query.data, count, types, CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s: %s", SPI_result_code_string(SPI_result), query.data);
	SPI_keepplan(plan);
	if (attachment->plans[which] != NULL)
		SPI_freeplan(attachment->plans[which]);
	attachment->plans[which] = plan;
	pfree(query.data);
	return plan;
}
