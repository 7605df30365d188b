/*
 * queries.c
 *		The texts of queries, and executing them.
 *
 * Every name in a query is qualified: the search_path has no say.
 */
#include "attach/citus.h"
#include "attach/queries.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_operator.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

const char *
fav_element_type_name(FavKind kind)
{
	switch (kind)
	{
		case FAV_KIND_INTEGER:
		case FAV_KIND_PAIR:
			return "pg_catalog.int8";
		case FAV_KIND_TEXT:
			return "pg_catalog.text";
		case FAV_KIND_UUID:
			return "pg_catalog.uuid";
		default:
			return "pg_catalog.bytea";
	}
}

/*
 * Texts
 */

char *
fav_relation_name(Oid relation)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
									  get_rel_name(relation));
}

/* The name of a column of ours, next to that of the key, which may have any name. */
const char *
fav_own_column(const char *name, const char *key)
{
	return strcmp(name, key) == 0 ? psprintf("%s_", name) : name;
}

static const char *
levels_column(const FavAttachment *attachment, AttrNumber number)
{
	return quote_identifier(get_attname(attachment->levels, number, false));
}

/* `format` with the name and the number of each part of a sink's log. */
static const char *
log_parts(const FavAttachment *attachment, const char *format)
{
	StringInfoData list;
	int			i;

	initStringInfo(&list);
	for (i = 0; i < FAV_LOG_PARTS && attachment->is_sink; i++)
		appendStringInfo(&list, format, levels_column(attachment, FAV_LEVELS_LOG + i), i);
	return list.data;
}

/* The qualified name of an operator of keys. */
static char *
key_operator(Oid operator)
{
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator));
	Form_pg_operator form;
	char	   *text;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", operator);
	form = (Form_pg_operator) GETSTRUCT(tuple);
	text = psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(form->oprnamespace)),
					NameStr(form->oprname));
	ReleaseSysCache(tuple);
	return text;
}

static Oid
btree_operator(const TypeCacheEntry *type, int16 strategy)
{
	return get_opfamily_member(type->btree_opf, type->btree_opintype, type->btree_opintype,
							   strategy);
}

/*
 * A cast to the very type that the operators of keys take.  A key may be of a domain over it, or
 * be coercible to it; then somebody else's operator could fit better.
 */
static const char *
key_cast(const FavAttachment *attachment)
{
	Oid			type = attachment->key_type->btree_opintype;

	if (IsPolymorphicType(type))
		type = attachment->key.type;
	return type == attachment->key.type && !attachment->key.is_domain ? "" :
		psprintf("::%s", format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY));
}

/*
 * The two forms of an attachment (columns.c) in SQL, for a table s of (key, element): the key
 * of the filter; what the filter holds; and which rows r of the source are of the filter whose
 * first key is $1 and whose last key is $2.
 */

static const char *
filter_key(const FavAttachment *attachment)
{
	return attachment->share == 0 ? "s.key" :
		psprintf("%s.fav_group(s.key::pg_catalog.int8, '%d'::pg_catalog.int4)",
				 quote_identifier(get_namespace_name(attachment->schema)), attachment->share);
}

static const char *
held_by_filter(const FavAttachment *attachment)
{
	return attachment->share > 0 ? "s.key::pg_catalog.int8, s.element::pg_catalog.int8" :
		psprintf("s.element::%s", fav_element_type_name(attachment->kind));
}

static const char *
is_of_filter(const FavAttachment *attachment)
{
	return fav_query(attachment, attachment->share == 0 ? "r.{k}{::k} {=} $1{::key}" :
					 "r.{k}{::k} OPERATOR(pg_catalog.>=) $1 AND"
					 " r.{k}{::k} OPERATOR(pg_catalog.<=) $2");
}

/*
 * What words in braces stand for.  Each of these functions knows some, and gives NULL for others.
 */

/* the tables, the extension, and what it calls the sink's period */
static const char *
word_of_objects(const FavAttachment *attachment, const char *word)
{
	if (strcmp(word, "fav") == 0)
		return quote_identifier(get_namespace_name(attachment->schema));
	if (strcmp(word, "period") == 0)
		return psprintf(INT64_FORMAT, attachment->period);
	if (strcmp(word, "levels") == 0)
		return fav_relation_name(attachment->levels);
	if (strcmp(word, "source") == 0)
		return fav_relation_name(attachment->source);
	if (strcmp(word, "'levels'") == 0)
		return quote_literal_cstr(fav_relation_name(attachment->levels));
	if (strcmp(word, "'source'") == 0)
		return quote_literal_cstr(fav_relation_name(attachment->source));
	if (strcmp(word, "::levels") == 0)
		return fav_is_spread(attachment->source) ? "::pg_catalog.text" :
			"::pg_catalog.regclass";
	return NULL;
}

/* columns of the source, and what its rows, as a table s of (key, element), mean for a filter */
static const char *
word_of_source(const FavAttachment *attachment, const char *word)
{
	if (strcmp(word, "k") == 0)
		return quote_identifier(NameStr(attachment->key.name));
	if (strcmp(word, "e") == 0)
		return quote_identifier(NameStr(attachment->element.name));
	if (strcmp(word, "AND at") == 0)
		return attachment->at.number == 0 ? "" :
			psprintf(" AND (NEW.%s IS NULL) IS NOT NULL",
					 quote_identifier(NameStr(attachment->at.name)));
	if (strcmp(word, "filter key") == 0)
		return filter_key(attachment);
	if (strcmp(word, "held") == 0)
		return held_by_filter(attachment);
	if (strcmp(word, "r is of filter") == 0)
		return is_of_filter(attachment);
	return NULL;
}

/* columns of the levels table, known by their place, and of the view; no level; the log */
static const char *
word_of_levels(const FavAttachment *attachment, const char *word)
{
	static const char *const columns[] = {"key", "base", "middle", "recent"};
	int			i;

	for (i = 0; i < (int) lengthof(columns); i++)
		if (strcmp(word, columns[i]) == 0)
			return levels_column(attachment, FAV_LEVELS_KEY + i);
	if (strcmp(word, "filter") == 0)
		return quote_identifier(fav_own_column("filter", get_attname(attachment->levels,
																	 FAV_LEVELS_KEY, false)));
	/* the short form of the empty filter */
	if (strcmp(word, "no level") == 0)
		return psprintf("E'\\\\x%02x'::%s.fav", FAV_FORMAT_VERSION,
						quote_identifier(get_namespace_name(attachment->schema)));
	/* all parts of the log; part $8 becomes $7; none any more */
	if (strcmp(word, ", log") == 0)
		return log_parts(attachment, ", l.%1$s");
	if (strcmp(word, ", log $7") == 0)
		return log_parts(attachment, ", %1$s = CASE WHEN $8 OPERATOR(pg_catalog.=)"
						 " '%2$d'::pg_catalog.int4 THEN $7 ELSE l.%1$s END");
	if (strcmp(word, ", log NULL") == 0)
		return log_parts(attachment, ", %1$s = NULL");
	return NULL;
}

/* operators and types of keys and elements, and what makes those of both tables fit for them */
static const char *
word_of_types(const FavAttachment *attachment, const char *word)
{
	if (strcmp(word, "=") == 0)
		return key_operator(attachment->key_type->eq_opr);
	if (strcmp(word, ">") == 0)
		return key_operator(btree_operator(attachment->key_type, BTGreaterStrategyNumber));
	if (strcmp(word, "<=") == 0)
		return key_operator(btree_operator(attachment->key_type, BTLessEqualStrategyNumber));
	if (strcmp(word, "::k") == 0)
		return key_cast(attachment);
	if (strcmp(word, "::key") == 0)
		return attachment->share == 0 ? key_cast(attachment) : "";
	if (strcmp(word, "::element") == 0)
		return psprintf("::%s", fav_element_type_name(attachment->kind));
	/* elements are the same if their bytes are */
	if (strcmp(word, "collate") == 0)
		return OidIsValid(attachment->element.collation) ? " COLLATE pg_catalog.\"C\"" : "";
	return NULL;
}

/* What a word in braces stands for; NULL if it is none of ours. */
static const char *
replacement(const FavAttachment *attachment, const char *word)
{
	const char *found = word_of_objects(attachment, word);

	if (found == NULL)
		found = word_of_source(attachment, word);
	if (found == NULL)
		found = word_of_levels(attachment, word);
	if (found == NULL)
		found = word_of_types(attachment, word);
	return found;
}

/*
 * A query with its words in braces replaced.  Names that are put in may have braces of their
 * own, so the result must not be given to this a second time.
 */
char *
fav_query(const FavAttachment *attachment, const char *text)
{
	StringInfoData result;
	const char *end;

	initStringInfo(&result);
	for (; *text != '\0'; text = end + 1)
	{
		const char *with;

		end = text;
		if (*text != '{')
		{
			appendStringInfoChar(&result, *text);
			continue;
		}
		end = strchr(text, '}');
		with = end == NULL ? NULL : replacement(attachment, pnstrdup(text + 1, end - text - 1));
		if (with == NULL)
			elog(ERROR, "unknown word in query: %s", text);
		appendStringInfoString(&result, with);
	}
	return result.data;
}

/*
 * Plans that are kept
 */

/* The row has not changed since it was read. */
#define THIS_VERSION \
	" WHERE l.ctid OPERATOR(pg_catalog.=) $2 AND l.xmin OPERATOR(pg_catalog.=) $3" \
	" AND l.{key}{::key} {=} $1{::key}"

/*
 * Parameters: k is a key, l the key of a filter, e an array of elements, f a filter, t a ctid,
 * x an xmin, r an error rate, s a seed, b a part of a log, i its number.
 */
static const struct
{
	const char *text;
	const char *parameters;
}			queries[FAV_NQUERIES] =
{
	[FAV_QUERY_LOCK] = {
		"SELECT l.{key}, l.{base}, l.{middle}, l.{recent}{, log}, l.ctid, l.xmin"
		" FROM ONLY {levels} l WHERE l.{key}{::key} {=} $1{::key} FOR NO KEY UPDATE", "l"
	},
	[FAV_QUERY_INSERT] = {
		"INSERT INTO {levels} ({key}, {base}, {middle}, {recent}) VALUES ($1, $2, $3, $4)"
		" ON CONFLICT ({key}) DO NOTHING", "lfff"
	},
	[FAV_QUERY_SET_RECENT] = {
		"UPDATE ONLY {levels} l SET {recent} = $4" THIS_VERSION, "ltxf"
	},
	[FAV_QUERY_SET_MIDDLE] = {
		"UPDATE ONLY {levels} l SET {recent} = $4, {middle} = $5" THIS_VERSION, "ltxff"
	},
	[FAV_QUERY_SET_BASE] = {
		"UPDATE ONLY {levels} l SET {recent} = $4, {middle} = $5, {base} = $6" THIS_VERSION,
		"ltxfff"
	},
	[FAV_QUERY_SINK_MIDDLE] = {
		"UPDATE ONLY {levels} l SET {recent} = $4, {middle} = $5{, log $7}" THIS_VERSION,
		"ltxfffbi"
	},
	[FAV_QUERY_SINK_BASE] = {
		"UPDATE ONLY {levels} l SET {recent} = $4, {middle} = $5, {base} = $6{, log NULL}"
		THIS_VERSION, "ltxfff"
	},
	/* stops at the first of many duplicates; the equality of elements may be wider than ours */
	[FAV_QUERY_PROBE] = {
		"SELECT u.e FROM pg_catalog.unnest($2) u(e)"
		" WHERE (SELECT true FROM {source} s WHERE s.{k}{::k} {=} $1{::key}"
		"  AND s.{e} OPERATOR(pg_catalog.=) u.e"
		"  AND s.{e}{collate} OPERATOR(pg_catalog.=) u.e{collate} LIMIT 1)", "ke"
	},
	[FAV_QUERY_LOOK_UP] = {
		"SELECT DISTINCT s.{e}{collate} FROM {source} s WHERE s.{k}{::k} {=} $1{::key}"
		" AND s.{e}{collate} OPERATOR(pg_catalog.=)"
		" ANY (SELECT u.e{collate} FROM pg_catalog.unnest($2) u(e))", "ke"
	},
	[FAV_QUERY_BUILD] = {
		"SELECT {fav}.fav_base({held}, $3, $4) FROM"
		" (SELECT r.{k} AS key, r.{e} AS element FROM {source} r"
		"  WHERE {r is of filter} AND r.{e} IS NOT NULL) s", "llrs"
	},
};

static Oid
parameter_type(const FavAttachment *attachment, char parameter)
{
	switch (parameter)
	{
		case 'k':
			return attachment->key.type;
		case 'l':
			return attachment->filter_key_type->type_id;
		case 'e':
			return get_array_type(attachment->element.type);
		case 't':
			return TIDOID;
		case 'x':
			return XIDOID;
		case 'r':
			return FLOAT8OID;
		case 's':
			return INT8OID;
		case 'b':
			return BYTEAOID;
		case 'i':
			return INT4OID;
		default:
			return get_atttype(attachment->levels, FAV_LEVELS_RECENT);
	}
}

/* As the owner, who must be in charge already: planning may run code of the tables. */
static SPIPlanPtr
get_plan(FavAttachment *attachment, FavQuery query)
{
	const char *parameters = queries[query].parameters;
	int			count = (int) strlen(parameters);
	Oid			types[8];
	SPIPlanPtr	plan = attachment->plans[query];
	char	   *text;
	int			i;

	Assert(GetUserId() == attachment->owner);
	if (plan != NULL)
		return plan;
	for (i = 0; i < count; i++)
		types[i] = parameter_type(attachment, parameters[i]);
	text = fav_query(attachment, queries[query].text);

	/* A custom plan would know no better: the key decides. */
	plan = SPI_prepare_cursor(text, count, types, CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "SPI_prepare failed: %s: %s", SPI_result_code_string(SPI_result), text);
	attachment->plans[query] = plan;
	return plan;
}

/*
 * Execution.  SPI changes the memory context; these functions restore it.
 */

pg_noreturn static void
raise_unexpected(int status)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("a query on the tables of an attached filter gave an unexpected result"),
			 errdetail("The result was %s. A rule of one of the tables may have replaced the"
					   " query.", SPI_result_code_string(status))));
	pg_unreachable();
}

/*
 * A query about one key.  Returns how many rows there were.
 *
 * Those about the source are in the latest snapshot.  At REPEATABLE READ the one of the
 * transaction may be older than the row of the key, if this transaction has made it.  If
 * it has not, the row has not changed since, and both snapshots see the same pairs.
 */
uint64
fav_execute(FavAttachment *attachment, FavQuery query, Datum *values, const char *nulls,
			int expected)
{
	MemoryContext context = CurrentMemoryContext;
	bool		is_of_source = query >= FAV_QUERY_PROBE;
	int			guc_level = 0;
	SPIPlanPtr	plan;
	int			status;

	/*
	 * The plan is kept for the session, and a table that is small now may grow.  Without an index
	 * the cost of a disabled scan would start the JIT.
	 */
	if (is_of_source || query == FAV_QUERY_LOCK)
	{
		guc_level = NewGUCNestLevel();
		fav_set_option("enable_seqscan", "off");
		fav_set_option("jit", "off");
	}
	if (is_of_source)
		fav_lock_source(attachment);
	plan = get_plan(attachment, query);
	if (is_of_source)
		PushActiveSnapshot(GetLatestSnapshot());
	status = SPI_execute_snapshot(plan, values, nulls,
								  is_of_source ? GetActiveSnapshot() : InvalidSnapshot,
								  InvalidSnapshot, false, true, 0);
	if (is_of_source)
		PopActiveSnapshot();
	if (guc_level > 0)
		AtEOXact_GUC(false, guc_level);
	if (status != expected)
		raise_unexpected(status);
	MemoryContextSwitchTo(context);
	return SPI_processed;
}

/*
 * Any other query, in the given snapshot; InvalidSnapshot means the latest at any isolation
 * level.  Returns the number of rows.
 */
uint64
fav_execute_in(Snapshot snapshot, const char *text, int expected, int nvalues, Oid *types,
			   Datum *values)
{
	MemoryContext context = CurrentMemoryContext;
	SPIPlanPtr	plan = SPI_prepare(text, nvalues, types);
	int			status;

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s: %s", SPI_result_code_string(SPI_result), text);
	PushActiveSnapshot(snapshot == InvalidSnapshot ? GetLatestSnapshot() : snapshot);
	status = SPI_execute_snapshot(plan, values, NULL, GetActiveSnapshot(), InvalidSnapshot, false,
								  true, 0);
	PopActiveSnapshot();
	if (status != expected)
		raise_unexpected(status);
	MemoryContextSwitchTo(context);
	return SPI_processed;
}

/* A utility command. */
void
fav_run(const char *command)
{
	int			status = SPI_execute(command, false, 0);

	if (status < 0)
		elog(ERROR, "SPI_execute failed: %s: %s", SPI_result_code_string(status), command);
}
