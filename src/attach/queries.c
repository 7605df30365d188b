/*
 * queries.c
 *		The texts of queries, and the plans that are kept.
 *
 * Every name in a query is qualified: the search_path has no say.
 */
#include "attach/catalogs.h"
#include "attach/queries.h"
#include "attach/spread.h"

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

/* The name of a column of ours, next to that of the key, which may have any name. */
const char *
fav_own_column(const char *name, const char *key)
{
	return strcmp(name, key) == 0 ? psprintf("%s_", name) : name;
}

/*
 * What words in braces stand for.  The table `words` says which function below makes the text of
 * which word, and with what argument.
 */
#define WORD(name) \
	static const char * \
	name(const FavAttachment *attachment pg_attribute_unused(), \
		 int argument pg_attribute_unused())

WORD(extension)
{
	return quote_identifier(get_namespace_name(attachment->schema));
}

/* the tables: their names, or these as text */
enum
{
	SOURCE,
	LEVELS
};

WORD(table)
{
	return fav_relation_name(argument == SOURCE ? attachment->source : attachment->levels);
}

WORD(table_as_text)
{
	return quote_literal_cstr(table(attachment, argument));
}

/* Triggers of a table that is spread name the levels table by text (definition.c). */
WORD(levels_cast)
{
	return fav_is_spread(attachment->source) ? "::pg_catalog.text" : "::pg_catalog.regclass";
}

WORD(period)
{
	return psprintf(INT64_FORMAT, attachment->period);
}

WORD(key)
{
	return quote_identifier(NameStr(attachment->key.name));
}

WORD(element)
{
	return quote_identifier(NameStr(attachment->element.name));
}

WORD(and_at)
{
	return attachment->at.number == 0 ? "" :
		psprintf(" AND (NEW.%s IS NULL) IS NOT NULL",
				 quote_identifier(NameStr(attachment->at.name)));
}

/* A column of the levels table, by its place. */
WORD(levels_column)
{
	return quote_identifier(get_attname(attachment->levels, (AttrNumber) argument, false));
}

/* The column of the view. */
WORD(filter)
{
	return quote_identifier(fav_own_column("filter", get_attname(attachment->levels,
																 FAV_LEVELS_KEY, false)));
}

/* The short form of the empty filter. */
WORD(no_level)
{
	return psprintf("E'\\\\x%02x'::%s.fav", FAV_FORMAT_VERSION, extension(attachment, 0));
}

/* All parts of a sink's log; part $8 becomes $7; none any more. */
enum
{
	ALL_PARTS,
	SET_PART,
	NO_PARTS
};

WORD(log_parts)
{
	static const char *const formats[] = {
		[ALL_PARTS] = ", l.%1$s",
		[SET_PART] = ", %1$s = CASE WHEN $8 OPERATOR(pg_catalog.=) '%2$d'::pg_catalog.int4"
			" THEN $7 ELSE l.%1$s END",
		[NO_PARTS] = ", %1$s = NULL"
	};
	StringInfoData list;
	int			i;

	initStringInfo(&list);
	for (i = 0; i < FAV_LOG_PARTS && attachment->is_sink; i++)
		appendStringInfo(&list, formats[argument], levels_column(attachment, FAV_LEVELS_LOG + i),
						 i);
	return list.data;
}

/* The operator of keys with this strategy. */
WORD(operator)
{
	const TypeCacheEntry *type = attachment->key_type;
	Oid			found = argument == BTEqualStrategyNumber ? type->eq_opr :
		get_opfamily_member(type->btree_opf, type->btree_opintype, type->btree_opintype,
							(int16) argument);
	const char *name = get_opname(found);
	Oid			namespace = fav_oid_of(OPEROID, found, Anum_pg_operator_oprnamespace);

	if (name == NULL)
		elog(ERROR, "cache lookup failed for operator %u", found);
	return psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(namespace)), name);
}

/*
 * A cast of a key to the very type that the operators of keys take.  A key may be of a domain over
 * it, or be coercible to it; then somebody else's operator could fit better.
 */
WORD(key_cast)
{
	Oid			type = attachment->key_type->btree_opintype;

	if (IsPolymorphicType(type))
		type = attachment->key.type;
	return type == attachment->key.type && !attachment->key.is_domain ? "" :
		psprintf("::%s", format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY));
}

/* The same for the key of a filter. */
WORD(filter_key_cast)
{
	return attachment->share == 0 ? key_cast(attachment, 0) : "";
}

WORD(element_cast)
{
	static const char *const casts[] = {
		[FAV_KIND_INTEGER] = "::pg_catalog.int8",
		[FAV_KIND_PAIR] = "::pg_catalog.int8",
		[FAV_KIND_TEXT] = "::pg_catalog.text",
		[FAV_KIND_UUID] = "::pg_catalog.uuid",
		[FAV_KIND_BYTES] = "::pg_catalog.bytea"
	};

	return casts[attachment->kind];
}

/* Elements are the same if their bytes are. */
WORD(collation)
{
	return OidIsValid(attachment->element.collation) ? " COLLATE pg_catalog.\"C\"" : "";
}

/*
 * The two forms of an attachment (columns.c) in SQL, for a table s of (key, element): the key
 * of the filter; what the filter holds; and which rows r of the source are of the filter whose
 * first key is $1 and whose last key is $2.
 */

WORD(filter_key)
{
	return attachment->share == 0 ? "s.key" :
		psprintf("%s.fav_group(s.key::pg_catalog.int8, '%d'::pg_catalog.int4)",
				 extension(attachment, 0), attachment->share);
}

WORD(held)
{
	return attachment->share == 0 ? psprintf("s.element%s", element_cast(attachment, 0)) :
		"s.key::pg_catalog.int8, s.element::pg_catalog.int8";
}

WORD(is_of_filter)
{
	return fav_query(attachment, attachment->share == 0 ? "r.{k}{::k} {=} $1{::key}" :
					 "r.{k}{::k} OPERATOR(pg_catalog.>=) $1 AND"
					 " r.{k}{::k} OPERATOR(pg_catalog.<=) $2");
}

static const struct
{
	const char *word;
	const char *(*text) (const FavAttachment *attachment, int argument);
	int			argument;
}			words[] =
{
	{"fav", extension, 0},
	{"source", table, SOURCE},
	{"levels", table, LEVELS},
	{"'source'", table_as_text, SOURCE},
	{"'levels'", table_as_text, LEVELS},
	{"::levels", levels_cast, 0},
	{"period", period, 0},
	{"k", key, 0},
	{"e", element, 0},
	{"AND at", and_at, 0},
	{"key", levels_column, FAV_LEVELS_KEY},
	{"base", levels_column, FAV_LEVELS_BASE},
	{"middle", levels_column, FAV_LEVELS_MIDDLE},
	{"recent", levels_column, FAV_LEVELS_RECENT},
	{", log", log_parts, ALL_PARTS},
	{", log $7", log_parts, SET_PART},
	{", log NULL", log_parts, NO_PARTS},
	{"filter", filter, 0},
	{"no level", no_level, 0},
	{"=", operator, BTEqualStrategyNumber},
	{">", operator, BTGreaterStrategyNumber},
	{"<=", operator, BTLessEqualStrategyNumber},
	{"::k", key_cast, 0},
	{"::key", filter_key_cast, 0},
	{"::element", element_cast, 0},
	{"collate", collation, 0},
	{"filter key", filter_key, 0},
	{"held", held, 0},
	{"r is of filter", is_of_filter, 0}
};

/* `word` has this many characters. */
static const char *
replacement(const FavAttachment *attachment, const char *word, size_t length)
{
	size_t		i;

	for (i = 0; i < lengthof(words); i++)
		if (strlen(words[i].word) == length && memcmp(words[i].word, word, length) == 0)
			return words[i].text(attachment, words[i].argument);
	elog(ERROR, "unknown word in query: {%s", word);
}

/*
 * A query with its words in braces replaced.  Names that are put in may have braces of their
 * own, so the result must not be given to this a second time.
 */
char *
fav_query(const FavAttachment *attachment, const char *text)
{
	StringInfoData result;
	size_t		length;

	for (initStringInfo(&result); *text != '\0'; text += length)
	{
		length = strcspn(text, "{");
		appendBinaryStringInfo(&result, text, (int) length);
		if (text[length] == '\0')
			break;
		text += length + 1;
		length = strcspn(text, "}");
		appendStringInfoString(&result, replacement(attachment, text, length));
		text++;
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
		"INSERT INTO {levels} ({key}, {base}, {middle}, {recent}) VALUES ($1, $6, $5, $4)"
		" ON CONFLICT ({key}) DO NOTHING", "ltxfff"
	},
	[FAV_QUERY_SET_RECENT] = {
		"UPDATE ONLY {levels} l SET {recent} = $4" THIS_VERSION, "ltxf"
	},
	[FAV_QUERY_SET_MIDDLE] = {
		"UPDATE ONLY {levels} l SET {recent} = $4, {middle} = $5{, log $7}" THIS_VERSION,
		"ltxfffbi"
	},
	[FAV_QUERY_SET_BASE] = {
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
	static const Oid types[] = {
		['t'] = TIDOID, ['x'] = XIDOID, ['r'] = FLOAT8OID, ['s'] = INT8OID, ['b'] = BYTEAOID,
		['i'] = INT4OID
	};

	switch (parameter)
	{
		case 'k':
			return attachment->key.type;
		case 'l':
			return attachment->filter_key_type->type_id;
		case 'e':
			return get_array_type(attachment->element.type);
		case 'f':
			return get_atttype(attachment->levels, FAV_LEVELS_RECENT);
		default:
			return types[(int) parameter];
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
	int			i;

	Assert(GetUserId() == attachment->owner);
	if (plan != NULL)
		return plan;
	for (i = 0; i < count; i++)
		types[i] = parameter_type(attachment, parameters[i]);

	/* A custom plan would know no better: the key decides. */
	plan = fav_prepare(fav_query(attachment, queries[query].text), count, types,
					   CURSOR_OPT_GENERIC_PLAN);
	if (SPI_keepplan(plan) != 0)
		elog(ERROR, "SPI_keepplan failed");
	attachment->plans[query] = plan;
	return plan;
}

/*
 * A query about one key.  Returns how many rows there were.
 *
 * Those about the source are in the latest snapshot.  At REPEATABLE READ the one of the
 * transaction may be older than the row of the key, if this transaction has made it.  If
 * it has not, the row has not changed since, and both snapshots see the same pairs.  The caller has
 * locked the source (fav_lock_source).
 */
uint64
fav_execute(FavAttachment *attachment, FavQuery query, Datum *values, const char *nulls,
			int expected)
{
	bool		is_of_source = query >= FAV_QUERY_PROBE;
	bool		needs_index = is_of_source || query == FAV_QUERY_LOCK;
	int			guc_level = needs_index ? NewGUCNestLevel() : 0;
	SPIPlanPtr	plan;
	uint64		nrows;

	/*
	 * The plan is kept for the session, and a table that is small now may grow.  Without an index
	 * the cost of a disabled scan would start the JIT.
	 */
	if (needs_index)
	{
		fav_set_option("enable_seqscan", "off");
		fav_set_option("jit", "off");
	}
	plan = get_plan(attachment, query);
	nrows = fav_execute_plan(plan, values, nulls,
							 is_of_source ? GetLatestSnapshot() : InvalidSnapshot, expected);
	if (needs_index)
		AtEOXact_GUC(false, guc_level);
	return nrows;
}
