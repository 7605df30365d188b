/*
 * attachment.c
 *		Attachments as the triggers and the SQL functions see them: the rows of
 *		fav_attachment, what they mean today, and the queries made from them.
 *
 * Nothing here trusts the table.  Anyone may insert a row for tables that are
 * theirs (a restore without superuser has to), names may have changed since, and
 * so may owners.  So every use goes through fav_attachment_resolve() and
 * fav_attachment_check_rights(): a row gives nobody more than the owner of the
 * source could do anyway.
 *
 * Queries name everything with its schema, operators included.
 */
#include "attach.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/*
 * The table
 */

char *
fav_trigger_name(int32 number, FavTrigger trigger)
{
	static const char *const events[FAV_NTRIGGERS] = {
		"before", "insert", "update", "delete", "truncate", "row"
	};

	return psprintf("fav_%d_%s", number, events[trigger]);
}

Oid
fav_catalog_oid(Oid schema)
{
	Oid			catalog = get_relname_relid(FAV_CATALOG, schema);

	if (!OidIsValid(catalog))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" of extension fav does not exist", FAV_CATALOG),
				 errhint("Drop the extension and create it again.")));
	return catalog;
}

static FavCatalogRow *
read_catalog_row(HeapTuple tuple, TupleDesc descriptor)
{
	static const int name_numbers[4] = {
		FAV_CATALOG_KEY, FAV_CATALOG_ELEMENT, FAV_CATALOG_TARGET_KEY, FAV_CATALOG_FILTER
	};
	FavCatalogRow *row = palloc0(sizeof(FavCatalogRow));
	Datum		values[FAV_CATALOG_NATTS];
	bool		nulls[FAV_CATALOG_NATTS];
	int			i;

	heap_deform_tuple(tuple, descriptor, values, nulls);
	row->source = DatumGetObjectId(values[FAV_CATALOG_SOURCE - 1]);
	row->number = DatumGetInt32(values[FAV_CATALOG_NUMBER - 1]);
	row->target = DatumGetObjectId(values[FAV_CATALOG_TARGET - 1]);
	row->error_rate = DatumGetFloat8(values[FAV_CATALOG_ERROR_RATE - 1]);
	row->elements = DatumGetObjectId(values[FAV_CATALOG_ELEMENTS - 1]);
	for (i = 0; i < 4; i++)
		row->names[i] = *DatumGetName(values[name_numbers[i] - 1]);
	if (!nulls[FAV_CATALOG_COLUMNS - 1])
	{
		ArrayType  *array = DatumGetArrayTypeP(values[FAV_CATALOG_COLUMNS - 1]);

		if (ARR_NDIM(array) == 1 && ARR_DIMS(array)[0] == 4 && !ARR_HASNULL(array))
			memcpy(row->numbers, ARR_DATA_PTR(array), 4 * sizeof(int16));
	}
	return row;
}

/*
 * The newest committed rows, whatever the snapshot of the transaction: as with
 * system catalogs, a lock on the source is what orders us with fav_attach and
 * fav_detach.
 */
List *
fav_catalog_rows(Oid schema, Oid source)
{
	Relation	catalog = table_open(fav_catalog_oid(schema), AccessShareLock);
	ScanKeyData scan_key;
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *rows = NIL;

	if (RelationGetNumberOfAttributes(catalog) != FAV_CATALOG_NATTS)
		elog(ERROR, "table \"%s\" has %d columns instead of %d", FAV_CATALOG,
			 RelationGetNumberOfAttributes(catalog), FAV_CATALOG_NATTS);
	ScanKeyInit(&scan_key, FAV_CATALOG_SOURCE, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(source));
	scan = systable_beginscan(catalog, InvalidOid, false, NULL, OidIsValid(source) ? 1 : 0, &scan_key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		rows = lappend(rows, read_catalog_row(tuple, RelationGetDescr(catalog)));
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return rows;
}

static bool
relation_exists(Oid relation)
{
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relation));
}

/*
 * By target and filter where they are given.  More than one left is an error:
 * to guess which one to detach would be no service.
 */
FavCatalogRow *
fav_catalog_choose(Oid schema, Oid source, Oid target, const char *filter)
{
	List	   *rows;
	ListCell   *cell;
	FavCatalogRow *found = NULL;

	if (!relation_exists(source))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table with OID %u does not exist", source)));
	rows = fav_catalog_rows(schema, source);
	foreach(cell, rows)
	{
		FavCatalogRow *row = lfirst(cell);
		FavColumn	column;

		if (OidIsValid(target) && row->target != target)
			continue;
		if (filter != NULL)
		{
			bool		known = fav_column_find(row->target, NameStr(row->names[3]), row->numbers[3], &column);

			if (strcmp(known ? NameStr(column.name) : NameStr(row->names[3]), filter) != 0)
				continue;
		}
		if (found != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_AMBIGUOUS_PARAMETER),
					 errmsg("table \"%s\" has more than one attachment like this", get_rel_name(source)),
					 errhint("Name the target, and the filter column if need be; view fav_attachments lists them.")));
		found = row;
	}
	if (found == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("table \"%s\" has no attachment like this", get_rel_name(source)),
				 errhint("View fav_attachments lists all attachments; fav_attach makes one.")));
	return found;
}

/*
 * What a row means today
 */

/*
 * By number if that is known, so that a renamed column is still found; else by
 * name.  False if it is not there (any more).
 */
bool
fav_column_find(Oid relation, const char *name, AttrNumber number, FavColumn *column)
{
	HeapTuple	tuple;
	Form_pg_attribute attribute;
	bool		found = false;

	if (number > 0)
		tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relation), Int16GetDatum(number));
	else
		tuple = SearchSysCacheAttName(relation, name);
	if (!HeapTupleIsValid(tuple))
		return false;
	attribute = (Form_pg_attribute) GETSTRUCT(tuple);
	if (!attribute->attisdropped && attribute->attnum > 0)
	{
		column->number = attribute->attnum;
		column->name = attribute->attname;
		column->type = getBaseType(attribute->atttypid);
		column->collation = attribute->attcollation;
		found = true;
	}
	ReleaseSysCache(tuple);
	return found;
}

static void
resolve_column(Oid relation, const FavCatalogRow *row, int which, FavColumn *column, bool *renamed)
{
	const char *name = NameStr(row->names[which]);

	if (!fav_column_find(relation, name, row->numbers[which], column))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table \"%s\" does not exist", name, get_rel_name(relation)),
				 errdetail("Attachment %d of table \"%s\" needs it.", row->number, get_rel_name(row->source)),
				 errhint("Detach it with fav_detach, and attach what is there now with fav_attach.")));
	if (strcmp(NameStr(column->name), name) != 0)
		*renamed = true;
}

static Oid
relation_owner(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

static FavKind
element_kind(const FavColumn *column)
{
	switch (column->type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return FAV_KIND_INTEGER;
		case TEXTOID:
		case VARCHAROID:
			return FAV_KIND_TEXT;
		case UUIDOID:
			return FAV_KIND_UUID;
		case BYTEAOID:
			return FAV_KIND_BYTES;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("element column \"%s\" has type %s", NameStr(column->name), format_type_be(column->type)),
					 errdetail("Elements can be smallint, integer, bigint, text, varchar, uuid or bytea.")));
			pg_unreachable();
	}
}

Oid
fav_element_type(FavKind kind)
{
	switch (kind)
	{
		case FAV_KIND_INTEGER:
			return INT8OID;
		case FAV_KIND_TEXT:
			return TEXTOID;
		case FAV_KIND_UUID:
			return UUIDOID;
		default:
			return BYTEAOID;
	}
}

const char *
fav_element_type_name(FavKind kind)
{
	switch (kind)
	{
		case FAV_KIND_INTEGER:
			return "pg_catalog.int8";
		case FAV_KIND_TEXT:
			return "pg_catalog.text";
		case FAV_KIND_UUID:
			return "pg_catalog.uuid";
		default:
			return "pg_catalog.bytea";
	}
}

/* The default btree operator family of a type, and what its operators take. */
static Oid
btree_family(const FavColumn *column, Oid *input_type)
{
	Oid			opclass = GetDefaultOpClass(column->type, BTREE_AM_OID);

	if (!OidIsValid(opclass))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("key column \"%s\" has type %s", NameStr(column->name), format_type_be(column->type)),
				 errdetail("A key needs a type with a default btree operator class.")));
	*input_type = get_opclass_input_type(opclass);
	return get_opclass_family(opclass);
}

void
fav_check_key_type(const FavColumn *column)
{
	Oid			input;

	(void) btree_family(column, &input);
}

static void
resolve_key_operators(FavAttachment *attachment)
{
	Oid			input;
	Oid			target_input;
	Oid			family = btree_family(&attachment->key, &input);
	Oid			target_family = btree_family(&attachment->target_key, &target_input);

	attachment->key_less = get_opfamily_member(family, input, input, BTLessStrategyNumber);
	attachment->key_equal = get_opfamily_member(family, input, input, BTEqualStrategyNumber);
	attachment->target_equal = family == target_family ?
		get_opfamily_member(family, target_input, input, BTEqualStrategyNumber) : InvalidOid;
	/* an operator class of arrays, enums and the like is one for many types */
	if (IsPolymorphicType(input))
	{
		attachment->key_type = attachment->key.type;
		if (attachment->key.type != attachment->target_key.type)
			attachment->target_equal = InvalidOid;
	}
	else
		attachment->key_type = input;

	if (!OidIsValid(attachment->target_equal))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("key columns \"%s\" and \"%s\" have types %s and %s",
						NameStr(attachment->key.name), NameStr(attachment->target_key.name),
						format_type_be(attachment->key.type), format_type_be(attachment->target_key.type)),
				 errdetail("The key of the target must be comparable with the key of the source by an index.")));
	if (!OidIsValid(attachment->key_less) || !OidIsValid(attachment->key_equal))
		elog(ERROR, "incomplete btree operator family %u", family);
}

/*
 * Is a pair there at most once, because a unique index says so?  One on the key
 * or the element alone says so as well.
 */
static bool
pairs_are_unique(const FavAttachment *attachment)
{
	Relation	source = table_open(attachment->source, AccessShareLock);
	List	   *indexes = NIL;
	ListCell   *cell;
	bool		unique = false;

	/* an index of a parent does not know its children, unless they are partitions */
	if (source->rd_rel->relkind == RELKIND_PARTITIONED_TABLE || !has_subclass(attachment->source))
		indexes = RelationGetIndexList(source);
	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);
		Form_pg_index form = index->rd_index;
		int			i;

		if (form->indisunique && form->indimmediate && form->indisvalid && form->indisready &&
			RelationGetIndexPredicate(index) == NIL)
		{
			for (i = 0; i < form->indnkeyatts; i++)
			{
				const FavColumn *column =
					form->indkey.values[i] == attachment->key.number ? &attachment->key :
					form->indkey.values[i] == attachment->element.number ? &attachment->element : NULL;
				Oid			input;

				/* another operator class may call other things equal */
				if (column == NULL || index->rd_opfamily[i] != btree_family(column, &input))
					break;
			}
			unique = i == form->indnkeyatts;
		}
		index_close(index, AccessShareLock);
		if (unique)
			break;
	}
	list_free(indexes);
	table_close(source, AccessShareLock);
	return unique;
}

/*
 * Could maintenance run code of a user's, which might fall for a search_path, or
 * meet row security?  Almost never; and then there is no need to change settings
 * for every statement.  Our own queries do not depend on them.
 */
static bool
needs_guard(const FavAttachment *attachment)
{
	Relation	source = table_open(attachment->source, AccessShareLock);
	Relation	target = table_open(attachment->target, AccessShareLock);
	TupleDesc	descriptor = RelationGetDescr(target);
	TupleConstr *constraints = descriptor->constr;
	bool		guard;
	List	   *indexes;
	ListCell   *cell;
	int			i;

	guard = target->rd_rel->relkind != RELKIND_RELATION || has_subclass(attachment->target) ||
		target->rd_rel->relhasrules || target->rd_rel->relrowsecurity || source->rd_rel->relrowsecurity ||
		attachment->target_equal >= FirstNormalObjectId || attachment->key_equal >= FirstNormalObjectId ||
		(constraints != NULL &&
		 (constraints->num_check > 0 || constraints->num_defval > 0 || constraints->has_generated_stored));
	for (i = 0; i < descriptor->natts; i++)
		if (!TupleDescAttr(descriptor, i)->attisdropped &&
			get_typtype(TupleDescAttr(descriptor, i)->atttypid) == TYPTYPE_DOMAIN)
			guard = true;
	if (target->trigdesc != NULL)
		for (i = 0; i < target->trigdesc->numtriggers; i++)
			if (!target->trigdesc->triggers[i].tgisinternal)
				guard = true;
	indexes = RelationGetIndexList(target);
	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		if (RelationGetIndexExpressions(index) != NIL || RelationGetIndexPredicate(index) != NIL)
			guard = true;
		for (i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
			if (index->rd_opfamily[i] >= FirstNormalObjectId)
				guard = true;
		index_close(index, AccessShareLock);
	}
	list_free(indexes);
	table_close(target, AccessShareLock);
	table_close(source, AccessShareLock);
	return guard;
}

void
fav_attachment_resolve(FavAttachment *attachment, Oid schema, const FavCatalogRow *row)
{
	memset(attachment, 0, sizeof(*attachment));
	attachment->schema = schema;
	attachment->source = row->source;
	attachment->number = row->number;
	attachment->target = row->target;
	if (!relation_exists(row->target))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the filter table of attachment %d of table \"%s\" does not exist",
						row->number, get_rel_name(row->source)),
				 errhint("Detach it with fav_detach.")));
	attachment->source_owner = relation_owner(row->source);
	attachment->target_owner = relation_owner(row->target);
	resolve_column(row->source, row, 0, &attachment->key, &attachment->renamed);
	resolve_column(row->source, row, 1, &attachment->element, &attachment->renamed);
	resolve_column(row->target, row, 2, &attachment->target_key, &attachment->renamed);
	resolve_column(row->target, row, 3, &attachment->filter, &attachment->renamed);
	attachment->kind = element_kind(&attachment->element);
	if (OidIsValid(row->elements) && row->elements != fav_element_type(attachment->kind))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("element column \"%s\" of table \"%s\" has type %s now", NameStr(attachment->element.name),
						get_rel_name(row->source), format_type_be(attachment->element.type)),
				 errdetail("The filters hold elements of type %s.", format_type_be(row->elements)),
				 errhint("Detach the table with fav_detach, and attach it again with fav_attach.")));
	if (attachment->filter.type != GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
												   CStringGetDatum("fav"), ObjectIdGetDatum(schema)))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("filter column \"%s\" has type %s", NameStr(attachment->filter.name),
						format_type_be(attachment->filter.type)),
				 errdetail("It must have type fav.")));
	resolve_key_operators(attachment);
	attachment->unique = pairs_are_unique(attachment);
	attachment->guarded = needs_guard(attachment);

	attachment->params = fav_default_params();
	attachment->params.error_rate = row->error_rate;
	fav_check_params(&attachment->params);
}

/*
 * Maintenance runs as the owner of the target, on behalf of whoever writes the
 * source.  That is right only if the owner of the source, who decides about its
 * triggers, may act for the owner of the target.
 */
void
fav_attachment_check_rights(const FavAttachment *attachment)
{
	if (attachment->source_owner == attachment->target_owner)
		return;
	if (!has_privs_of_role(attachment->source_owner, attachment->target_owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("the owner of table \"%s\" has no rights on table \"%s\"",
						get_rel_name(attachment->source), get_rel_name(attachment->target)),
				 errdetail("Table \"%s\" belongs to role \"%s\", and table \"%s\" to role \"%s\".",
						   get_rel_name(attachment->source), GetUserNameFromId(attachment->source_owner, true),
						   get_rel_name(attachment->target), GetUserNameFromId(attachment->target_owner, true)),
				 errhint("Give both tables the same owner.")));
	if (pg_class_aclcheck(attachment->source, attachment->target_owner, ACL_SELECT) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("the owner of table \"%s\" may not read table \"%s\"",
						get_rel_name(attachment->target), get_rel_name(attachment->source)),
				 errdetail("Filters are maintained by the owner of their table, who must read the source to do so."),
				 errhint("Give both tables the same owner, or grant SELECT on the source to role \"%s\".",
						 GetUserNameFromId(attachment->target_owner, true))));
}

/*
 * Acting for somebody else
 */

/*
 * Row security must not hide rows from the maintenance: owners pass it, even where
 * it is forced on them, and row_security = off turns all that would still be
 * filtered into an error.
 */
void
fav_role_begin(FavRole *role, Oid user, bool guarded)
{
	GetUserIdAndSecContext(&role->user, &role->security);
	SetUserIdAndSecContext(user, role->security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
	role->guc_level = 0;
	if (!guarded)
		return;
	role->guc_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("row_security", "off", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/* After an error the end of the (sub)transaction does this. */
void
fav_role_end(const FavRole *role)
{
	if (role->guc_level > 0)
		AtEOXact_GUC(false, role->guc_level);
	SetUserIdAndSecContext(role->user, role->security);
}

/*
 * The queries
 */

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
		case FAV_QUERY_ADD:
			appendStringInfo(query,
							 "UPDATE %s t SET %s = %s.fav_add(COALESCE(t.%s, $3), $2) WHERE ",
							 target, filter, schema, filter);
			append_operation(query, target_key, attachment->target_equal, "$1");
			appendStringInfo(query, " RETURNING t.%s", filter);
			break;
		case FAV_QUERY_DEL:
			appendStringInfo(query,
							 "UPDATE %s t SET %s = %s.fav_del(COALESCE(t.%s, $3), $2) WHERE ",
							 target, filter, schema, filter);
			append_operation(query, target_key, attachment->target_equal, "$1");
			appendStringInfo(query, " RETURNING t.%s", filter);
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
		case FAV_QUERY_ADD:
		case FAV_QUERY_DEL:
			types[1] = element;
			types[2] = fav;
			return 3;
		case FAV_QUERY_SET:
		case FAV_QUERY_INSERT:
			types[1] = fav;
			return 2;
		case FAV_QUERY_PRESENT_FEW:
		case FAV_QUERY_PRESENT_MANY:
			types[1] = get_array_type(element);
			return 2;
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
	Oid			types[3];
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

/*
 * The cache for triggers: one entry for each table with triggers and each number
 */

typedef struct WatchKey
{
	Oid			relation;
	int32		number;
} WatchKey;

typedef struct WatchEntry
{
	WatchKey	key;
	FavWatch   *watch;			/* NULL: not loaded */
} WatchEntry;

static HTAB *watches = NULL;
static uint64 invalidations = 0;

static void
invalidate_watches(Datum argument, Oid relation)
{
	HASH_SEQ_STATUS status;
	WatchEntry *entry;

	(void) argument;
	invalidations++;
	hash_seq_init(&status, watches);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		FavWatch   *watch = entry->watch;

		if (watch != NULL &&
			(!OidIsValid(relation) || relation == watch->relation ||
			 relation == watch->attachment.source || relation == watch->attachment.target))
			watch->valid = false;
	}
}

static void
start_cache(void)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(WatchKey);
	control.entrysize = sizeof(WatchEntry);
	watches = hash_create("fav attachments", 32, &control, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(invalidate_watches, (Datum) 0);
}

/* A relation and all it inherits from, itself first. */
static List *
find_ancestors(Oid relation)
{
	List	   *ancestors = list_make1_oid(relation);
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	int			i;

	for (i = 0; i < list_length(ancestors); i++)
	{
		ScanKeyData key;
		SysScanDesc scan;
		HeapTuple	tuple;

		ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
					ObjectIdGetDatum(list_nth_oid(ancestors, i)));
		scan = systable_beginscan(inherits, InheritsRelidSeqnoIndexId, true, NULL, 1, &key);
		while (HeapTupleIsValid(tuple = systable_getnext(scan)))
			ancestors = list_append_unique_oid(ancestors,
											   ((Form_pg_inherits) GETSTRUCT(tuple))->inhparent);
		systable_endscan(scan);
	}
	table_close(inherits, AccessShareLock);
	return ancestors;
}

static FavCatalogRow *
find_row(Oid schema, List *ancestors, int32 number)
{
	ListCell   *ancestor;
	ListCell   *cell;

	foreach(ancestor, ancestors)
	{
		List	   *rows = fav_catalog_rows(schema, lfirst_oid(ancestor));

		foreach(cell, rows)
		{
			FavCatalogRow *row = lfirst(cell);

			if (row->number == number)
				return row;
		}
	}
	return NULL;
}

/* A child may have its columns in another order, but not under other names. */
static AttrNumber
column_in(Oid relation, const FavAttachment *attachment, const FavColumn *column)
{
	FavColumn	own;

	if (relation == attachment->source)
		return column->number;
	if (!fav_column_find(relation, NameStr(column->name), 0, &own))
		elog(ERROR, "table \"%s\" has no column \"%s\"", get_rel_name(relation), NameStr(column->name));
	return own.number;
}

static FavWatch *
load_watch(Oid schema, Relation relation, int32 number)
{
	Oid			oid = RelationGetRelid(relation);
	List	   *ancestors = find_ancestors(oid);
	FavCatalogRow *row = find_row(schema, ancestors, number);
	FavAttachment attachment;
	FavWatch   *watch;
	MemoryContext old;

	if (row == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("table \"%s\" has no attachment %d", RelationGetRelationName(relation), number),
				 errdetail("Only fav_attach makes triggers that maintain a filter."),
				 errhint("Drop the trigger, or attach the table with fav_attach.")));
	fav_attachment_resolve(&attachment, schema, row);

	watch = MemoryContextAllocZero(TopMemoryContext, sizeof(FavWatch));
	watch->relation = oid;
	watch->number = number;
	watch->attachment = attachment;
	watch->key_number = column_in(oid, &attachment, &attachment.key);
	watch->element_number = column_in(oid, &attachment, &attachment.element);
	old = MemoryContextSwitchTo(TopMemoryContext);
	watch->ancestors = list_copy(ancestors);
	watch->attachment.empty = fav_empty_filter(&attachment);
	MemoryContextSwitchTo(old);
	return watch;
}

static void
free_watch(FavWatch *watch)
{
	int			i;

	for (i = 0; i < FAV_NQUERIES; i++)
		if (watch->attachment.plans[i] != NULL)
			SPI_freeplan(watch->attachment.plans[i]);
	list_free(watch->ancestors);
	pfree(DatumGetPointer(watch->attachment.empty));
	pfree(watch);
}

/* A plan in here that names may no longer fit? */
static bool
plans_are_valid(const FavWatch *watch)
{
	int			i;

	for (i = 0; i < FAV_NQUERIES; i++)
		if (watch->attachment.plans[i] != NULL && !SPI_plan_is_valid(watch->attachment.plans[i]))
			return false;
	return true;
}

/*
 * The attachment that a trigger of this relation serves.  To be closed again,
 * because one that is in use must survive that the next call finds it outdated.
 */
FavWatch *
fav_watch_open(Oid schema, Relation relation, int32 number)
{
	WatchKey	key = {RelationGetRelid(relation), number};
	WatchEntry *entry;
	bool		found;

	if (watches == NULL)
		start_cache();
	entry = hash_search(watches, &key, HASH_ENTER, &found);
	if (!found)
		entry->watch = NULL;
	if (entry->watch != NULL &&
		!(entry->watch->valid && entry->watch->attachment.schema == schema && plans_are_valid(entry->watch)))
	{
		/* one in use is left to itself: this is too rare to be worth more */
		if (entry->watch->users == 0)
			free_watch(entry->watch);
		entry->watch = NULL;
	}
	if (entry->watch == NULL)
	{
		uint64		before = invalidations;
		FavWatch   *watch = load_watch(schema, relation, number);

		/* was it outdated already while it was loaded? */
		watch->valid = before == invalidations;
		entry = hash_search(watches, &key, HASH_ENTER, &found);
		entry->watch = watch;
	}
	entry->watch->users++;
	return entry->watch;
}

void
fav_watch_close(FavWatch *watch)
{
	watch->users--;
}

/* At the end of a transaction nobody uses any, however it ended. */
void
fav_watch_forget_users(void)
{
	HASH_SEQ_STATUS status;
	WatchEntry *entry;

	if (watches == NULL)
		return;
	hash_seq_init(&status, watches);
	while ((entry = hash_seq_search(&status)) != NULL)
		if (entry->watch != NULL)
			entry->watch->users = 0;
}
