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
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
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
