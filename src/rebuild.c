/*
 * rebuild.c
 *		Filters from the source of truth: the first build, fav_rebuild, and the
 *		rebuild of a filter that churn has worn out.
 *
 * Why a rebuild loses nothing.  Every statement that changes the pairs of a key
 * writes a new version of the key's filter row (maintain.c), and holds its lock
 * until it commits.  To rebuild one key, lock the row first, then read the
 * source:
 *
 * READ COMMITTED: the snapshot is taken after the lock.  A change that committed
 * before is in it.  One that did not has yet to get the lock: it will be applied
 * to the rebuilt filter.
 *
 * REPEATABLE READ and above: the snapshot is as old as the transaction.  But if
 * anybody changed pairs of this key and committed since, they have written the
 * row, and locking it fails with a serialization error.  If it does not fail, the
 * old snapshot has all the pairs there are.
 *
 * To build all filters the source is locked against writers instead, and read
 * with a snapshot taken after that, at every isolation level.
 */
#include "attach.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_inherits.h"
#include "core/measure.h"
#include "core/sizing.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

/* Rows to fetch from a cursor at a time. */
#define FETCH_ROWS		10000

/*
 * A filter is worn out once it takes this many times the bytes that a new one
 * would, plus a little: a small filter is not worth the reading.  New ones have
 * a third more room than they need, so this is 1.7 times a filter of exactly the
 * right size.
 */
#define WORN_FACTOR		1.3
#define WORN_SLACK		1024

/*
 * What filters look like
 */

/* With room to grow, or the next few elements would chain a second slice. */
static uint64
capacity_for(uint64 wanted, uint64 count)
{
	return Max(wanted, Max(count + count / 3, FAV_DEFAULT_CAPACITY));
}

Datum
fav_empty_filter(const FavAttachment *attachment)
{
	FavEditor	editor;

	fav_editor_new(&editor, &attachment->params);
	return fav_finish_edit(&editor);
}

/* With these parameters, but for the capacity, which may become larger. */
Datum
fav_build_filter(const FavParams *wanted, FavHashSet *set)
{
	FavEditor	editor;

	fav_hashset_build(set, wanted, capacity_for, &editor);
	return fav_finish_edit(&editor);
}

/*
 * fav_needs_rebuild() gives a user time until their next maintenance.  We are the
 * maintenance, and know that the capacity of the filter is no wish of the user's
 * but our own guess of last time: so we can be stricter.
 */
bool
fav_is_worn(const FavFilter *filter)
{
	const FavSlice *first = &filter->slices[0];
	uint64		count = filter->elements + filter->nrecent;
	double		fresh;

	if (filter->nslices == 0)
		return false;
	if (fav_needs_rebuild(filter))
		return true;
	if (fav_size(filter) < 4 * WORN_SLACK)
		return false;
	fresh = 8.0 * filter->nrecent + (double) capacity_for(0, count) /
		fav_slice_capacity(first, filter->params.region_size) *
		(double) fav_slice_bytes(first, filter->params.region_size);
	return (double) fav_size(filter) > WORN_FACTOR * fresh + WORN_SLACK;
}

/*
 * Filter rows
 */

bool
fav_lock_filter(FavAttachment *attachment, Datum key, Datum *filter, bool *isnull)
{
	int			status = SPI_execute_plan(fav_attachment_plan(attachment, FAV_QUERY_LOCK), &key, NULL, false, 0);
	bool		found = SPI_processed > 0;

	if (status != SPI_OK_SELECT)
		elog(ERROR, "could not lock a filter: %s", SPI_result_code_string(status));
	*isnull = true;
	if (found)
	{
		*filter = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, isnull);
		if (!*isnull)
			*filter = PointerGetDatum(PG_DETOAST_DATUM_COPY(*filter));
	}
	SPI_freetuptable(SPI_tuptable);
	return found;
}

static bool
write_filter(FavAttachment *attachment, FavQuery query, Datum key, Datum filter)
{
	Datum		values[2] = {key, filter};
	int			status = SPI_execute_plan(fav_attachment_plan(attachment, query), values, NULL, false, 0);

	if (status < 0)
		elog(ERROR, "could not write a filter: %s", SPI_result_code_string(status));
	return SPI_processed > 0;
}

/* To a row that is there: only a trigger or rule of the target can prevent it. */
void
fav_set_filter(FavAttachment *attachment, Datum key, Datum filter)
{
	if (!write_filter(attachment, FAV_QUERY_SET, key, filter))
		ereport(ERROR,
				(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
				 errmsg("filter in table \"%s\" was not updated", get_rel_name(attachment->target)),
				 errdetail("A trigger or a rule of the table prevented it; the filter would no longer be true.")));
}

/* False if the key has a row already. */
bool
fav_insert_filter(FavAttachment *attachment, Datum key, Datum filter)
{
	return write_filter(attachment, FAV_QUERY_INSERT, key, filter);
}

/*
 * Reading the source
 */

static uint64_t
hash_element(const FavAttachment *attachment, Datum element)
{
	return fav_hash_datum(attachment->kind, fav_element_datum(attachment, element), attachment->params.seed);
}

/* A new filter for one key, from the source as it is now. */
Datum
fav_build_key(FavAttachment *attachment, Datum key)
{
	Portal		portal = SPI_cursor_open(NULL, fav_attachment_plan(attachment, FAV_QUERY_SCAN), &key, NULL, false);
	FavHashSet	set = {0};
	Datum		filter;
	uint64		i;

	for (;;)
	{
		SPI_cursor_fetch(portal, true, FETCH_ROWS);
		if (SPI_processed == 0)
			break;
		for (i = 0; i < SPI_processed; i++)
		{
			bool		isnull;
			Datum		element = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);

			if (!isnull)
				fav_hashset_add(&set, hash_element(attachment, element), CurrentMemoryContext);
		}
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_cursor_close(portal);
	filter = fav_build_filter(&attachment->params, &set);
	if (set.hashes != NULL)
		pfree(set.hashes);
	return filter;
}

static void
write_built(FavAttachment *attachment, Datum key, FavHashSet *set, bool fresh)
{
	Datum		filter = fav_build_filter(&attachment->params, set);

	if (fresh && fav_insert_filter(attachment, key, filter))
		return;
	if (write_filter(attachment, FAV_QUERY_SET, key, filter))
		return;
	if (!fav_insert_filter(attachment, key, filter))
		fav_set_filter(attachment, key, filter);
}

/*
 * All filters.  The caller has locked the source against writers.  `fresh` says
 * that the target is probably empty.
 */
void
fav_build_all(FavAttachment *attachment, bool fresh)
{
	Datum		empty = fav_empty_filter(attachment);
	TypeCacheEntry *type = lookup_type_cache(attachment->key.type, TYPECACHE_EQ_OPR_FINFO);
	MemoryContext per_key = AllocSetContextCreate(CurrentMemoryContext, "fav build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	FavHashSet	set = {0};
	SPIPlanPtr	plan = fav_attachment_plan(attachment, FAV_QUERY_SCAN_ALL);
	Portal		portal;
	Datum		current = (Datum) 0;
	bool		any = false;
	uint64		i;

	if (!fresh)
	{
		/* the latest snapshot here too: a key may be new since ours */
		PushActiveSnapshot(GetLatestSnapshot());
		if (SPI_execute_snapshot(fav_attachment_plan(attachment, FAV_QUERY_EMPTY_REST), &empty, NULL,
								 GetActiveSnapshot(),
								 IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : InvalidSnapshot,
								 false, false, 0) < 0)
			elog(ERROR, "could not empty filters");
		PopActiveSnapshot();
	}

	/* "read only", for it to use the active snapshot */
	PushActiveSnapshot(GetLatestSnapshot());
	portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);
	PopActiveSnapshot();
	old = MemoryContextSwitchTo(per_key);
	for (;;)
	{
		SPITupleTable *rows;
		uint64		count;

		SPI_cursor_fetch(portal, true, FETCH_ROWS);
		rows = SPI_tuptable;
		count = SPI_processed;
		if (count == 0)
			break;
		for (i = 0; i < count; i++)
		{
			bool		key_null;
			bool		element_null;
			Datum		key = SPI_getbinval(rows->vals[i], rows->tupdesc, 1, &key_null);
			Datum		element = SPI_getbinval(rows->vals[i], rows->tupdesc, 2, &element_null);

			if (key_null || element_null)
				continue;
			if (any && !DatumGetBool(FunctionCall2Coll(&type->eq_opr_finfo, attachment->key.collation, current, key)))
			{
				write_built(attachment, current, &set, fresh);
				MemoryContextReset(per_key);
				set = (FavHashSet) {0};
				any = false;
			}
			if (!any)
				current = datumCopy(key, type->typbyval, type->typlen);
			any = true;
			fav_hashset_add(&set, hash_element(attachment, element), per_key);
		}
		SPI_freetuptable(rows);
		CHECK_FOR_INTERRUPTS();
	}
	if (any)
		write_built(attachment, current, &set, fresh);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(per_key);
	SPI_cursor_close(portal);
}

/*
 * Lock the source with all its partitions and children: statements on one of
 * them do not lock the parent.
 */
void
fav_lock_source(Oid source, LOCKMODE mode)
{
	LockRelationOid(source, mode);
	list_free(find_all_inheritors(source, mode, NULL));
}

/*
 * fav_rebuild(source, key, target, filter); all keys if key is NULL
 */

PG_FUNCTION_INFO_V1(fav_rebuild);

/* A key in its text form, as the type's operators take it. */
static Datum
read_key(const FavAttachment *attachment, Datum text_key)
{
	Oid			input;
	Oid			parameter;

	getTypeInputInfo(attachment->key.type, &input, &parameter);
	return OidInputFunctionCall(input, text_to_cstring(DatumGetTextPP(text_key)), parameter, -1);
}

Datum
fav_rebuild(PG_FUNCTION_ARGS)
{
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	Oid			target = PG_ARGISNULL(2) ? InvalidOid : PG_GETARG_OID(2);
	const char *filter_name = PG_ARGISNULL(3) ? NULL : NameStr(*PG_GETARG_NAME(3));
	Oid			source;
	FavCatalogRow *row;
	FavAttachment attachment;
	FavRole		role;
	int			i;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("source must not be null")));
	source = PG_GETARG_OID(0);
	row = fav_catalog_choose(schema, source, target, filter_name);
	fav_check_owner(source);
	fav_check_owner(row->target);
	if (PG_ARGISNULL(1))
		fav_lock_source(source, ShareRowExclusiveLock);
	else
		LockRelationOid(source, RowExclusiveLock);
	LockRelationOid(row->target, RowExclusiveLock);

	/* once more, now that it cannot change */
	row = fav_catalog_choose(schema, source, target, filter_name);
	fav_attachment_resolve(&attachment, schema, row);
	fav_attachment_check_rights(&attachment);

	fav_role_begin(&role, attachment.target_owner, true);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (PG_ARGISNULL(1))
		fav_build_all(&attachment, false);
	else
	{
		Datum		key = read_key(&attachment, PG_GETARG_DATUM(1));
		Datum		filter;
		bool		isnull;

		if (!fav_lock_filter(&attachment, key, &filter, &isnull) &&
			!fav_insert_filter(&attachment, key, fav_empty_filter(&attachment)))
			(void) fav_lock_filter(&attachment, key, &filter, &isnull);
		fav_set_filter(&attachment, key, fav_build_key(&attachment, key));
	}
	for (i = 0; i < FAV_NQUERIES; i++)
		if (attachment.plans[i] != NULL)
			SPI_freeplan(attachment.plans[i]);
	SPI_finish();
	fav_role_end(&role);
	PG_RETURN_VOID();
}
