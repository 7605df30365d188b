/*
 * columns.c
 *		The columns of key and element, the key of a filter, and the hash of a row.
 *
 *		a filter for each key		The key of the filter is the key, and its elements are the
 *									elements.
 *		n keys share a filter		The key of the filter is their group, key / n rounded down,
 *									and its elements are the pairs (key, element).
 *
 * Groups are in the order of their keys.  So rows that are sorted by key are sorted by
 * filter, and the rows of a filter are a range of the source's index.
 */
#include "attach/attachment.h"
#include "attach/catalogs.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(fav_group);

/* False if the relation has no such column. */
bool
fav_read_column(Oid relation, AttrNumber number, FavColumn *column)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relation), Int16GetDatum(number));
	Form_pg_attribute attribute;

	if (!HeapTupleIsValid(tuple))
		return false;
	attribute = (Form_pg_attribute) GETSTRUCT(tuple);
	column->name = attribute->attname;
	column->number = attribute->attnum;
	column->typmod = attribute->atttypmod;
	column->type = attribute->attisdropped ? InvalidOid :
		getBaseTypeAndTypmod(attribute->atttypid, &column->typmod);
	column->is_domain = column->type != attribute->atttypid;
	column->collation = attribute->attcollation;
	column->is_generated = attribute->attgenerated != '\0';
	ReleaseSysCache(tuple);
	return OidIsValid(column->type);
}

bool
fav_find_column(Oid relation, const char *name, FavColumn *column)
{
	return fav_read_column(relation, get_attnum(relation, name), column);
}

/* Does the table have the log of a sink, even if it has lost its definition? */
bool
fav_has_log(Oid levels)
{
	int			i;

	for (i = 0; i < FAV_LOG_PARTS; i++)
		if (get_atttype(levels, FAV_LEVELS_LOG + i) != BYTEAOID)
			return false;
	return true;
}

/* The hint for a sink whose tables have changed so much that only a copy saves the filters. */
const char *
fav_hint_to_copy(Oid levels)
{
	const char *name = get_rel_name(levels);

	return psprintf("Copy table \"%s\" before fav_detach drops it. If the elements are integers, a"
					" new sink with the same keep can take the copy into its own table.",
					name == NULL ? "(dropped)" : name);
}

/* The kind of a column's elements; FAV_KIND_NONE if it cannot have any. */
FavKind
fav_kind_of_column(const FavColumn *column)
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
			return FAV_KIND_NONE;
	}
}

/*
 * The type of an argument for a column.  Any integer can be asked of a column of integers, and
 * any text of a column of text.
 */
Oid
fav_argument_type(const FavColumn *column)
{
	if (column->type == INT2OID || column->type == INT4OID)
		return INT8OID;
	return column->type == VARCHAROID ? TEXTOID : column->type;
}

/* The type of keys; NULL if they cannot be compared as a btree does. */
TypeCacheEntry *
fav_key_type(Oid key)
{
	TypeCacheEntry *type = lookup_type_cache(key, TYPECACHE_BTREE_OPFAMILY | TYPECACHE_EQ_OPR |
											 TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC_FINFO);

	return type->typtype != TYPTYPE_COMPOSITE && key != RECORDOID &&
		OidIsValid(type->btree_opf) && OidIsValid(type->eq_opr) &&
		OidIsValid(type->lt_opr) && OidIsValid(type->cmp_proc_finfo.fn_oid) ? type : NULL;
}

/* Does the index begin with both columns, and compare them as we do? */
static bool
is_on_pair(Relation index, const FavAttachment *attachment)
{
	Form_pg_index form = index->rd_index;
	bool		has_key = false;
	bool		has_element = false;
	int			i;

	if (!form->indisvalid || form->indnkeyatts < 2 ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return false;
	for (i = 0; i < 2; i++)
	{
		bool		is_key = form->indkey.values[i] == attachment->key.number;
		const FavColumn *column = is_key ? &attachment->key : &attachment->element;
		TypeCacheEntry *type = lookup_type_cache(column->type, TYPECACHE_BTREE_OPFAMILY);

		if (form->indkey.values[i] != column->number ||
			index->rd_indcollation[i] != column->collation ||
			index->rd_opfamily[i] != type->btree_opf)
			return false;
		has_key |= is_key;
		has_element |= !is_key;
	}
	return has_key && has_element;
}

/*
 * Each child by inheritance has indexes of its own.  This locks the source, so an insert does not
 * call it: a parallel restore may be loading the partitions of a source whose primary key is being
 * made.
 */
static void
read_indexes(FavAttachment *attachment)
{
	Relation	source;
	ListCell   *cell;

	if (attachment->are_indexes_known)
		return;
	source = table_open(attachment->source, AccessShareLock);
	if (source->rd_rel->relkind == RELKIND_PARTITIONED_TABLE || !source->rd_rel->relhassubclass)
		foreach(cell, RelationGetIndexList(source))
		{
			Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

			if (is_on_pair(index, attachment))
			{
				attachment->has_index_on_pair = true;
				attachment->is_unique |= index->rd_index->indisunique &&
					index->rd_index->indnkeyatts == 2;
			}
			index_close(index, AccessShareLock);
		}
	table_close(source, AccessShareLock);
	attachment->are_indexes_known = true;
}

/* Can the source have a pair but once? */
bool
fav_has_unique_pairs(FavAttachment *attachment)
{
	read_indexes(attachment);
	return attachment->is_unique;
}

/* Does an index find a pair of the source at once? */
bool
fav_has_index_on_pair(FavAttachment *attachment)
{
	read_indexes(attachment);
	return attachment->has_index_on_pair;
}

/*
 * Without an index that begins with the key, every look-up would read the whole table.  It has
 * all keys, in their order.
 */
bool
fav_has_index_on_key(Oid source, const FavColumn *key)
{
	Relation	relation = table_open(source, AccessShareLock);
	TypeCacheEntry *type = lookup_type_cache(key->type, TYPECACHE_BTREE_OPFAMILY);
	bool		found = false;
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(relation))
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		found |= index->rd_index->indkey.values[0] == key->number && index->rd_index->indisvalid &&
			index->rd_opfamily[0] == type->btree_opf &&
			index->rd_indcollation[0] == key->collation &&
			heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);
		index_close(index, AccessShareLock);
	}
	table_close(relation, AccessShareLock);
	return found;
}

/* Does the index keep the levels table from having a key twice, by our equality of keys? */
bool
fav_is_key_index(const FavAttachment *attachment, Oid index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;
	bool		found;
	bool		isnull;
	Datum		classes;
	Datum		collations;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	classes = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indclass, &isnull);
	collations = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indcollation, &isnull);
	found = form->indisunique && form->indisvalid && form->indimmediate &&
		form->indnkeyatts == 1 && form->indkey.values[0] == FAV_LEVELS_KEY &&
		heap_attisnull(tuple, Anum_pg_index_indpred, NULL) &&
		get_opclass_family(((oidvector *) DatumGetPointer(classes))->values[0]) ==
		attachment->filter_key_type->btree_opf &&
		((oidvector *) DatumGetPointer(collations))->values[0] ==
		(attachment->share > 0 ? InvalidOid : attachment->key.collation);
	ReleaseSysCache(tuple);
	return found;
}

/* Has the levels table such an index, which new keys need?  This takes no lock. */
bool
fav_has_key_index(const FavAttachment *attachment)
{
	bool		found = false;
	HeapTuple	row;
	FavScan		scan;

	fav_begin_scan(&scan, IndexRelationId, IndexIndrelidIndexId, Anum_pg_index_indrelid,
				   attachment->levels);
	while (HeapTupleIsValid(row = fav_next_row(&scan)))
		found |= fav_is_key_index(attachment, ((Form_pg_index) GETSTRUCT(row))->indexrelid);
	fav_end_scan(&scan);
	return found;
}

/* A value of an integer type. */
int64
fav_integer(Oid type, Datum value)
{
	if (type == INT2OID)
		return DatumGetInt16(value);
	if (type == INT4OID)
		return DatumGetInt32(value);
	return DatumGetInt64(value);
}

static int64
group_of(int64 key, int32 n)
{
	return key / n - (key % n < 0 ? 1 : 0);
}

/* fav_group(key, n): the group of a key where n keys share a filter. */
Datum
fav_group(PG_FUNCTION_ARGS)
{
	int32		n = PG_GETARG_INT32(1);

	if (n < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("n %d is out of range", n),
				 errdetail("n must be at least 1.")));
	PG_RETURN_INT64(group_of(PG_GETARG_INT64(0), n));
}

Datum
fav_filter_key(const FavAttachment *attachment, Datum key)
{
	if (attachment->share == 0)
		return key;
	return Int64GetDatum(group_of(fav_integer(attachment->key.type, key), attachment->share));
}

/*
 * The first and the last key of a filter, in the type of filter keys.  The lowest group
 * begins below the range of the type, and the highest ends above it.
 */
void
fav_filter_range(const FavAttachment *attachment, Datum filter_key, Datum *range)
{
	int32		n = attachment->share;
	int64		lowest;
	int64		highest;
	int64		group;

	range[0] = range[1] = filter_key;
	if (n == 0)
		return;
	lowest = group_of(PG_INT64_MIN, n);
	highest = group_of(PG_INT64_MAX, n);
	group = Max(lowest, Min(highest, DatumGetInt64(filter_key)));
	range[0] = Int64GetDatum(group == lowest ? PG_INT64_MIN : group * n);
	range[1] = Int64GetDatum(group == highest ? PG_INT64_MAX : (group + 1) * n - 1);
}

/* What the filters hold; FAV_KIND_NONE if the columns cannot be key and element of them. */
FavKind
fav_kind_of_row(const FavAttachment *attachment)
{
	FavKind		kind = fav_kind_of_column(&attachment->element);

	if (attachment->share == 0)
		return kind;
	return kind == FAV_KIND_INTEGER &&
		fav_kind_of_column(&attachment->key) == FAV_KIND_INTEGER ? FAV_KIND_PAIR : FAV_KIND_NONE;
}

uint64_t
fav_hash_row(const FavAttachment *attachment, Datum key, Datum element)
{
	Oid			type = attachment->element.type;

	if (attachment->share > 0)
		return fav_hash_pair(fav_integer(attachment->key.type, key), fav_integer(type, element),
							 attachment->params.seed);
	if (attachment->kind == FAV_KIND_INTEGER)
		return fav_hash_integer(fav_integer(type, element), attachment->params.seed);
	return fav_hash_datum(attachment->kind, element, attachment->params.seed);
}
