/*
 * rebuild.c
 *		Filters from the source: one key, all keys, and after a TRUNCATE.
 *
 * Why a rebuild of all keys loses nothing.  It locks the levels table against writers and
 * then reads the source in the latest snapshot.  A transaction that has changed the source
 * has either reconciled already: then the lock has waited for its commit, and the snapshot
 * sees its change.  Or it has not reconciled yet: then it will find the rebuilt filters.  So
 * the source itself need not be locked.
 */
#include "attach.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "core/levels.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(fav_rebuild);

/* The levels of a key from the source as it is now.  Few elements are all in recent. */
void
fav_build_key(FavAttachment *attachment, Datum filter_key, Datum *base, Datum *recent)
{
	Datum		values[4];
	Datum		filter;
	bool		isnull;

	fav_filter_range(attachment, filter_key, values);
	values[2] = Float8GetDatum(attachment->params.error_rate);
	values[3] = Int64GetDatum((int64) attachment->params.seed);
	(void) fav_execute(attachment, FAV_QUERY_BUILD, values, NULL, SPI_OK_SELECT);
	filter = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	*base = FAV_NO_LEVEL;
	*recent = attachment->empty;
	if (!isnull)
	{
		struct varlena *copy = (struct varlena *) PG_DETOAST_DATUM_COPY(filter);
		bool		has_slices = ((const uint8_t *) VARDATA(copy))[FAV_AT_NSLICES] > 0;

		*(has_slices ? base : recent) = PointerGetDatum(copy);
	}
	SPI_freetuptable(SPI_tuptable);
}

/*
 * Insert filters that are built from the source, as far as its rows r, and the filters of
 * these in a table s of (key, element), meet conditions.  These may have parameters from $4 on, of
 * the type of filter keys.  `form` says whether all filters are built first (MATERIALIZED), and
 * `end` how they are inserted.  Returns how many filters there were.
 */
uint64
fav_insert_filters(FavAttachment *attachment, const char *rows, const char *filters,
				   const char *form, const char *end, int nkeys, const Datum *keys)
{
	Oid			types[3 + FAV_MAX_CONDITION_KEYS] = {FLOAT8OID, INT8OID};
	Datum		values[3 + FAV_MAX_CONDITION_KEYS];
	int			i;

	types[2] = get_atttype(attachment->levels, FAV_LEVELS_RECENT);
	values[0] = Float8GetDatum(attachment->params.error_rate);
	values[1] = Int64GetDatum((int64) attachment->params.seed);
	values[2] = attachment->empty;
	for (i = 0; i < nkeys; i++)
	{
		types[3 + i] = attachment->filter_key_type->type_id;
		values[3 + i] = keys[i];
	}
	return fav_execute_in(InvalidSnapshot, fav_query(attachment, psprintf(
		"INSERT INTO {levels} ({key}, {base}, {middle}, {recent})"
		" WITH a AS %s (SELECT {filter key} AS key, {fav}.fav_base({held}, $1, $2) AS filter FROM"
		"  (SELECT r.{k} AS key, r.{e} AS element FROM {source} r"
		"   WHERE r.{k} IS NOT NULL AND r.{e} IS NOT NULL%s) s%s GROUP BY 1)"
		" SELECT b.key, CASE WHEN b.is_large THEN b.filter ELSE {no level} END, {no level},"
		" CASE WHEN b.is_large THEN $3 ELSE b.filter END FROM"
		" (SELECT a.key, a.filter,"
		"  {fav}.fav_count(a.filter) OPERATOR(pg_catalog.>)"
		"  '" CppAsString2(FAV_RECENT_MAX) "'::pg_catalog.int8 AS is_large FROM a) b%s",
		form, rows, filters, end)), SPI_OK_INSERT, 3 + nkeys, types, values);
}

/* All keys.  As the owner. */
void
fav_build_all(FavAttachment *attachment)
{
	LockRelationOid(attachment->levels, ShareRowExclusiveLock);
	(void) fav_execute_in(InvalidSnapshot, fav_query(attachment, "DELETE FROM ONLY {levels}"),
						  SPI_OK_DELETE, 0, NULL, NULL);
	(void) fav_insert_filters(attachment, "", "", "NOT MATERIALIZED", "", 0, NULL);
}

/*
 * One TRUNCATE of many partitions fires a trigger for each of them, after all of them were
 * truncated.  The first trigger rebuilds the filters, and there is nothing left to do for those
 * that follow it: no command was executed in between.
 */
static List *rebuilt = NIL;		/* levels tables, in TopTransactionContext */
static SubTransactionId rebuilt_in = InvalidSubTransactionId;
static CommandId rebuilt_at;

void
fav_forget_truncates(void)
{
	rebuilt = NIL;
	rebuilt_in = InvalidSubTransactionId;
}

static bool
is_rebuilt(Oid levels)
{
	if (rebuilt_in != GetCurrentSubTransactionId() || rebuilt_at != GetCurrentCommandId(false))
		fav_forget_truncates();
	return list_member_oid(rebuilt, levels);
}

/* A command ID that is marked as used is not that of any later command. */
static void
remember_rebuilt(Oid levels)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	rebuilt = lappend_oid(rebuilt, levels);
	rebuilt_in = GetCurrentSubTransactionId();
	rebuilt_at = GetCurrentCommandId(true);
	MemoryContextSwitchTo(old);
}

/*
 * The source, or a partition or child of it, was truncated.  If it was all of the source, so
 * are the filters: a truncate does not care for older snapshots, and neither does this.  The lock
 * on the levels table comes before the attachment is read, so that its owner stays the same.
 */
void
fav_rebuild_after_truncate(Oid schema, Oid levels, Oid truncated)
{
	FavAttachment *attachment;
	FavRole		role;
	bool		is_whole;

	/* TRUNCATE of a distributed table also truncates its filters */
	if (is_rebuilt(levels) || fav_shell(truncated) != truncated)
		return;
	LockRelationOid(levels, ShareRowExclusiveLock);
	attachment = fav_attachment_of_levels(schema, levels);
	is_whole = attachment->is_sink ||
		(truncated == attachment->source &&
		 (get_rel_relkind(truncated) == RELKIND_PARTITIONED_TABLE || !has_subclass(truncated)));
	if (!is_whole)
		fav_lock_source(attachment);
	fav_become_owner(&role, attachment->owner);
	if (is_whole)
		fav_run(fav_query(attachment, "TRUNCATE ONLY {levels}"));
	else
		fav_build_all(attachment);
	fav_become_caller(&role);
	remember_rebuilt(levels);
}

/* A key in its text form, read as its column would. */
Datum
fav_read_key(const FavAttachment *attachment, Datum text_key)
{
	Oid			input;
	Oid			parameter;

	getTypeInputInfo(attachment->key.type, &input, &parameter);
	return OidInputFunctionCall(input, text_to_cstring(DatumGetTextPP(text_key)), parameter,
								attachment->key.typmod);
}

/*
 * fav_rebuild(source, key, name); all keys if key is NULL, and then also triggers that are
 * missing or not enabled.
 */
Datum
fav_rebuild(PG_FUNCTION_ARGS)
{
	FavAttachment *attachment = fav_attachment_of_arguments(fcinfo, 2);
	FavRole		role;

	fav_refuse_sink(attachment, "fav_rebuild");
	fav_forget_known();
	fav_become_owner(&role, attachment->owner);
	if (PG_ARGISNULL(1))
	{
		if (!fav_is_active(attachment))
			fav_create_triggers(attachment);
		fav_build_all(attachment);
		fav_free_left(attachment);
		fav_complete(attachment);
	}
	else
	{
		LockRelationOid(attachment->levels, RowExclusiveLock);
		fav_rebuild_key(attachment,
						fav_filter_key(attachment, fav_read_key(attachment, PG_GETARG_DATUM(1))));
	}
	fav_become_caller(&role);
	PG_RETURN_VOID();
}
