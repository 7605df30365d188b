/*
 * remove.c
 *		fav_remove: removing elements from the filter of a sink.
 */
#include "attach.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(fav_remove);

/* For functions that need rows. */
void
fav_refuse_sink(const FavAttachment *attachment, const char *function)
{
	if (attachment->is_sink)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s cannot work on sink \"%s\"", function,
						get_rel_name(attachment->source)),
				 errdetail("A sink stores no rows that its filters could be compared with or"
						   " built from.")));
}

/* Hashes of the elements of an array, sorted and unique. */
static void
hash_elements(const FavAttachment *attachment, ArrayType *array, FavHashes *hashes)
{
	FavColumn	column = {.type = getBaseType(ARR_ELEMTYPE(array))};
	FavKind		kind = fav_kind_of_column(&column);
	uint64_t	seed = attachment->params.seed;
	Datum	   *elements;
	bool	   *nulls;
	int			count;
	int16		length;
	bool		by_value;
	char		alignment;
	int			i;

	if (kind != attachment->kind)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("elements of sink \"%s\" are not of type %s",
						get_rel_name(attachment->source), format_type_be(column.type))));
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &alignment);
	deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, alignment, &elements, &nulls,
					  &count);
	for (i = 0; i < count; i++)
		if (!nulls[i])
			fav_append_hash(hashes, kind == FAV_KIND_INTEGER ?
							fav_hash_integer(fav_integer(column.type, elements[i]), seed) :
							fav_hash_datum(kind, elements[i], seed));
	fav_sort_hashes(hashes);
}

static void
check_right_to_delete(Oid source)
{
	AclResult	right = pg_class_aclcheck(source, GetUserId(), ACL_DELETE);

	if (right != ACLCHECK_OK)
		aclcheck_error(right, get_relkind_objtype(get_rel_relkind(source)), get_rel_name(source));
}

/*
 * fav_remove(source, key, elements, exclude), for those who may delete from the source.
 */
Datum
fav_remove(PG_FUNCTION_ARGS)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	Oid			source = fav_source_argument(fcinfo);
	FavHashes	hashes = {NULL, 0, 0};
	FavAttachment *attachment;
	FavRole		role;
	Oid			levels;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("key, elements and exclude must not be null")));
	check_right_to_delete(source);
	LockRelationOid(source, RowExclusiveLock);
	check_right_to_delete(source);
	levels = fav_choose_levels(schema, source, NULL);
	LockRelationOid(levels, RowExclusiveLock);
	attachment = fav_attachment_of_levels(schema, levels);
	if (!attachment->is_sink)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("table \"%s\" is not a sink", get_rel_name(source)),
				 errhint("Delete the rows: the filters follow.")));
	fav_settle(attachment);
	hash_elements(attachment, PG_GETARG_ARRAYTYPE_P(2), &hashes);
	if (hashes.count > 0)
	{
		fav_become_owner(&role, attachment->owner);
		fav_remove_from_sink(attachment, fav_read_key(attachment, PG_GETARG_DATUM(1)), &hashes,
							 PG_GETARG_BOOL(3));
		fav_become_caller(&role);
	}
	PG_RETURN_VOID();
}
