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
#include "attach/columns.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
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

/* Do all of these columns have this very type? */
bool
fav_has_columns(Oid relation, AttrNumber first, int count, Oid type)
{
	int			i;

	for (i = 0; i < count; i++)
		if (get_atttype(relation, first + i) != type)
			return false;
	return true;
}

/* Does the table have the log of a sink, even if it has lost its definition? */
bool
fav_has_log(Oid levels)
{
	return fav_has_columns(levels, FAV_LEVELS_LOG, FAV_LOG_PARTS, BYTEAOID);
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

/*
 * Indexes.  They are read from their catalog, which takes no lock: a parallel restore may be
 * loading the partitions of a source whose primary key is being made.
 */

static void
begin_scan_of_indexes(FavScan *scan, Oid table)
{
	fav_begin_scan(scan, IndexRelationId, IndexIndrelidIndexId, Anum_pg_index_indrelid, table);
}

/* Does an index of all rows have the column in this place, and compare it as we do? */
static bool
has_column(const FavScan *scan, HeapTuple index, int place, AttrNumber number,
		   Oid type, Oid collation)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(index);
	bool		isnull;
	Datum		classes = fav_row_column(scan, index, Anum_pg_index_indclass, &isnull);
	Datum		collations = fav_row_column(scan, index, Anum_pg_index_indcollation, &isnull);

	return form->indisvalid && heap_attisnull(index, Anum_pg_index_indpred, NULL) &&
		place < form->indnkeyatts && form->indkey.values[place] == number &&
		((oidvector *) DatumGetPointer(collations))->values[place] == collation &&
		get_opclass_family(((oidvector *) DatumGetPointer(classes))->values[place]) ==
		lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
}

static bool
has_source_column(const FavScan *scan, HeapTuple index, int place, const FavColumn *column)
{
	return has_column(scan, index, place, column->number, column->type, column->collation);
}

/*
 * What indexes say of the pairs of the source, and which one finds a row of the levels table.  Each
 * child by inheritance has indexes of its own.
 */
void
fav_read_indexes(FavAttachment *attachment)
{
	const FavColumn *key = &attachment->key;
	const FavColumn *element = &attachment->element;
	HeapTuple	row;
	FavScan		scan;

	attachment->key_index = fav_find_key_index(attachment);
	if (get_rel_relkind(attachment->source) != RELKIND_PARTITIONED_TABLE &&
		has_subclass(attachment->source))
		return;
	begin_scan_of_indexes(&scan, attachment->source);
	while (HeapTupleIsValid(row = fav_next_row(&scan)))
		if ((has_source_column(&scan, row, 0, key) && has_source_column(&scan, row, 1, element)) ||
			(has_source_column(&scan, row, 0, element) && has_source_column(&scan, row, 1, key)))
		{
			attachment->has_index_on_pair = true;
			attachment->is_unique |= ((Form_pg_index) GETSTRUCT(row))->indisunique &&
				((Form_pg_index) GETSTRUCT(row))->indnkeyatts == 2;
		}
	fav_end_scan(&scan);
}

/*
 * An index of a table that begins with a column, or that has nothing else and keeps a value from
 * being there twice; InvalidOid if there is none.
 */
static Oid
find_index(Oid table, AttrNumber number, Oid type, Oid collation, bool is_key)
{
	Oid			found = InvalidOid;
	HeapTuple	row;
	FavScan		scan;

	begin_scan_of_indexes(&scan, table);
	while (HeapTupleIsValid(row = fav_next_row(&scan)))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(row);

		if ((!is_key || (form->indisunique && form->indimmediate && form->indnkeyatts == 1)) &&
			has_column(&scan, row, 0, number, type, collation))
			found = form->indexrelid;
	}
	fav_end_scan(&scan);
	return found;
}

/*
 * Without an index that begins with the key, every look-up would read the whole table.  It has
 * all keys, in their order.
 */
bool
fav_has_index_on_key(Oid source, const FavColumn *key)
{
	return OidIsValid(find_index(source, key->number, key->type, key->collation, false));
}

/*
 * The index that keeps the levels table from having a key twice, by our equality of keys;
 * InvalidOid if there is none.  While a dump is restored, there may be none for a moment, and the
 * owner may have given the table another one.
 */
Oid
fav_find_key_index(const FavAttachment *attachment)
{
	return find_index(attachment->levels, FAV_LEVELS_KEY, attachment->filter_key_type->type_id,
					  attachment->share > 0 ? InvalidOid : attachment->key.collation, true);
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
