/*
 * build.c
 *		Filters from the source: all keys, after a TRUNCATE, and in batches.
 *
 * Why a rebuild of all keys loses nothing.  It locks the levels table against writers and
 * then reads the source in the latest snapshot.  A transaction that has changed the source
 * has either reconciled already: then the lock has waited for its commit, and the snapshot
 * sees its change.  Or it has not reconciled yet: then it will find the rebuilt filters.  So
 * the source itself need not be locked.
 *
 * fav_build makes them in batches, while others read and write.
 *
 * The triggers exist already.  So every transaction that changes pairs of a key writes the
 * key's filter before it commits, and builds it if it is missing.  A batch reads a range of keys
 * in one snapshot and inserts the missing filters.  If the insert succeeds, no transaction has
 * committed a change of these keys since the triggers were created, and later ones will find the
 * filter.  If another transaction has inserted a filter first, the batch is tried again.
 *
 * Every batch is a transaction.  The filters themselves record the progress: a build that was
 * interrupted starts again and skips filters that exist.
 *
 * A batch may wait for a filter that another transaction is writing.  Meanwhile it must not block
 * others with the filters that it has written.  So it waits only for a moment, and then gives up
 * and tries fewer filters.  A batch of one filter may wait for any time, because it blocks nobody,
 * and it leaves a filter that exists then as it is.
 *
 * A rebuild first goes through the levels table in the same way and builds each filter anew
 * under its lock.
 */
#include "attach/attachment_cache.h"
#include "attach/build.h"
#include "attach/collect.h"
#include "attach/columns.h"
#include "attach/interface.h"
#include "attach/monitor.h"
#include "attach/objects.h"
#include "attach/queries.h"
#include "attach/reconcile.h"
#include "attach/sink.h"
#include "attach/spread.h"
#include "attach/subtransaction.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* The pairs that a batch reads; the filters that it rebuilds, and for how long. */
#define BATCH_PAIRS			100000
#define BATCH_FILTERS		1000
#define BATCH_MILLISECONDS	100

/* How much a batch shrinks when it has to wait, and grows when it need not. */
#define BATCH_FACTOR		8

/* How many keys the conditions of a batch have as parameters. */
#define MAX_CONDITION_KEYS	4

/* How long a batch of more than one filter may wait. */
#define BATCH_LOCK_TIMEOUT	"100ms"

PG_FUNCTION_INFO_V1(fav_build);
PG_FUNCTION_INFO_V1(fav_rebuild);

/*
 * Insert filters that are built from the source, as far as its rows r, and the filters of
 * these in a table s of (key, element), meet conditions.  These may have parameters from $4 on, of
 * the type of filter keys.  `form` says whether all filters are built first (MATERIALIZED), and
 * `end` is the end of the INSERT.  Returns how many filters were inserted.
 */
static uint64
insert_filters(FavAttachment *attachment, const char *rows, const char *filters, const char *form,
			   const char *end, int nkeys, const Datum *keys)
{
	Oid			types[3 + MAX_CONDITION_KEYS] = {FLOAT8OID, INT8OID};
	Datum		values[3 + MAX_CONDITION_KEYS];
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
	(void) insert_filters(attachment, "", "", "NOT MATERIALIZED", "", 0, NULL);
}

/*
 * One TRUNCATE of many partitions fires a trigger for each of them, after all of them were
 * truncated.  The first trigger rebuilds the filters, and there is nothing left to do for those
 * that follow it: no command was executed in between.
 */
static List *rebuilt = NIL;		/* levels tables, in TopTransactionContext */
static LocalTransactionId rebuilt_by;
static SubTransactionId rebuilt_in;
static CommandId rebuilt_at;

static bool
is_rebuilt(Oid levels)
{
	if (rebuilt_by != fav_local_transaction() || rebuilt_in != GetCurrentSubTransactionId() ||
		rebuilt_at != GetCurrentCommandId(false))
		rebuilt = NIL;
	return list_member_oid(rebuilt, levels);
}

/* A command ID that is marked as used is not that of any later command. */
static void
remember_rebuilt(Oid levels)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	rebuilt = lappend_oid(rebuilt, levels);
	rebuilt_by = fav_local_transaction();
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

	fav_forget_known();

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
static Datum
read_key(const FavAttachment *attachment, Datum text_key)
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
	FavAttachment *attachment = fav_attachment_of_arguments(fcinfo, 2, false);
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
						fav_filter_key(attachment, read_key(attachment, PG_GETARG_DATUM(1))));
	}
	fav_become_caller(&role);
	PG_RETURN_VOID();
}

/*
 * In batches
 */

/* A walk through all filters in the order of their keys, batch by batch. */
typedef struct Walk
{
	FunctionCallInfo fcinfo;
	bool		(*batch) (FavAttachment *attachment, struct Walk *walk);	/* is there more? */
	bool		has_more;
	Oid			levels;			/* InvalidOid: not known yet */
	bool		is_begun;		/* there is a position: */
	Datum		position;		/* the filter key that was reached, in PortalContext */
	uint64		size;			/* of the next batch */
	uint64		max_size;
	FavPhase	phase;
	FavProgress progress;
} Walk;

static void
set_position(const FavAttachment *attachment, Walk *walk, Datum filter_key)
{
	const TypeCacheEntry *type = attachment->filter_key_type;
	MemoryContext old = MemoryContextSwitchTo(PortalContext);

	walk->position = datumCopy(filter_key, type->typbyval, type->typlen);
	walk->is_begun = true;
	MemoryContextSwitchTo(old);
}

/*
 * Batches.  As the owner.
 */

/*
 * The key of the filter that the next batch of pairs ends with, after key `after`; false if it
 * is the last batch.  Without an index on the key of the source there is only one.
 */
static bool
find_end(FavAttachment *attachment, const Walk *walk, Datum after, Datum *end)
{
	const char *text = psprintf("SELECT r.{k} FROM {source} r WHERE r.{k} IS NOT NULL"
								" AND r.{e} IS NOT NULL%s ORDER BY 1 OFFSET " UINT64_FORMAT
								" LIMIT 1", walk->is_begun ? " AND r.{k}{::k} {>} $1{::key}" : "",
								walk->size - 1);
	Oid			type = attachment->filter_key_type->type_id;
	bool		isnull;

	if (!fav_has_index_on_key(attachment->source, &attachment->key) ||
		fav_execute_in(InvalidSnapshot, fav_query(attachment, text), SPI_OK_SELECT,
					   walk->is_begun ? 1 : 0, &type, &after) == 0)
		return false;
	*end = fav_filter_key(attachment, SPI_getbinval(SPI_tuptable->vals[0],
													SPI_tuptable->tupdesc, 1, &isnull));
	return true;
}

/*
 * Insert the filters that are missing in a range of keys, in the order of their keys.  In a
 * first build there are none, and then nothing has to be looked for.  The planner should use the
 * index of the source and not sort its rows; the costs that tell it so must not start the JIT.
 * It does not know that groups are in the order of keys, so these are hashed, and sorted then.
 */
static bool
build_batch(FavAttachment *attachment, Walk *walk)
{
	StringInfoData rows;
	StringInfoData present;
	const char *missing;
	Datum		range[2];
	Datum		keys[MAX_CONDITION_KEYS];
	Datum		end = (Datum) 0;
	int			nkeys = 0;
	bool		has_more;

	fav_set_option("enable_seqscan", "off");
	fav_set_option("enable_sort", "off");
	fav_set_option("jit", "off");
	LockRelationOid(attachment->levels, RowExclusiveLock);
	initStringInfo(&rows);
	initStringInfo(&present);
	appendStringInfoString(&present, "FROM ONLY {levels} l WHERE true");
	if (walk->is_begun)
	{
		fav_filter_range(attachment, walk->position, range);
		keys[nkeys++] = range[1];
		keys[nkeys++] = walk->position;
		appendStringInfoString(&rows, " AND r.{k}{::k} {>} $4{::key}");
		appendStringInfoString(&present, " AND l.{key}{::key} {>} $5{::key}");
	}
	has_more = find_end(attachment, walk, walk->is_begun ? range[1] : (Datum) 0, &end);
	if (has_more)
	{
		fav_filter_range(attachment, end, range);
		keys[nkeys++] = range[1];
		keys[nkeys++] = end;
		appendStringInfo(&rows, " AND r.{k}{::k} {<=} $%d{::key}", 2 + nkeys);
		appendStringInfo(&present, " AND l.{key}{::key} {<=} $%d{::key}", 3 + nkeys);
	}
	missing = psprintf(" WHERE NOT EXISTS (SELECT %s) OR"
					   " NOT EXISTS (SELECT %s AND l.{key}{::key} {=} {filter key}{::key})",
					   present.data, present.data);
	walk->progress.keys += (int64)
		insert_filters(attachment, rows.data, missing,
					   attachment->share > 0 ? "MATERIALIZED" : "NOT MATERIALIZED",
					   walk->size > 1 ? " ORDER BY 1" :
					   " ORDER BY 1 ON CONFLICT ({key}) DO NOTHING", nkeys, keys);
	if (has_more)
	{
		walk->progress.rows += (int64) walk->size;
		set_position(attachment, walk, end);
	}
	return has_more;
}

/* Rebuild the next filters of the levels table, until the time of a batch is over. */
static bool
rebuild_batch(FavAttachment *attachment, Walk *walk)
{
	const char *text = psprintf("SELECT l.{key} FROM ONLY {levels} l%s ORDER BY 1 LIMIT "
								UINT64_FORMAT,
								walk->is_begun ? " WHERE l.{key}{::key} {>} $1{::key}" : "",
								walk->size);
	Oid			type = attachment->filter_key_type->type_id;
	MemoryContext per_filter = AllocSetContextCreate(CurrentMemoryContext, "fav rebuild",
													 ALLOCSET_DEFAULT_SIZES);
	TimestampTz begin = GetCurrentTimestamp();
	SPITupleTable *rows;
	uint64		nrows;
	uint64		done = 0;
	bool		is_full = false;

	LockRelationOid(attachment->levels, RowExclusiveLock);
	nrows = fav_execute_in(InvalidSnapshot, fav_query(attachment, text), SPI_OK_SELECT,
						   walk->is_begun ? 1 : 0, &type, &walk->position);
	rows = SPI_tuptable;
	while (done < nrows && !is_full)
	{
		MemoryContext old = MemoryContextSwitchTo(per_filter);
		bool		isnull;
		Datum		key = SPI_getbinval(rows->vals[done++], rows->tupdesc, 1, &isnull);

		CHECK_FOR_INTERRUPTS();
		fav_rebuild_key(attachment, key);
		walk->progress.keys++;
		is_full = TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), BATCH_MILLISECONDS);
		if (is_full || done == nrows)
			set_position(attachment, walk, key);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_filter);
	}
	return done < nrows || nrows == walk->size;
}

static bool
is_rebuild(FunctionCallInfo fcinfo)
{
	return !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
}

/* Triggers that are missing or not enabled. */
static bool
mend_triggers(FavAttachment *attachment, Walk *walk pg_attribute_unused())
{
	if (!fav_is_active(attachment))
		fav_create_triggers(attachment);
	return false;
}

/* After a rebuild no filter has pairs of tables that have left the source. */
static bool
complete(FavAttachment *attachment, Walk *walk)
{
	if (is_rebuild(walk->fcinfo))
		fav_free_left(attachment);
	fav_complete(attachment);
	return false;
}

/*
 * Transactions
 */

static void
run_batch(void *argument)
{
	Walk	   *walk = argument;
	FavAttachment *attachment;
	FavRole		role;

	PushActiveSnapshot(GetTransactionSnapshot());
	attachment = fav_attachment_of_arguments(walk->fcinfo, 1, false);
	fav_refuse_sink(attachment, "fav_build");
	if (!OidIsValid(walk->levels))
	{
		walk->levels = attachment->levels;
		fav_begin_progress(&walk->progress, walk->phase, attachment);
	}
	if (attachment->levels != walk->levels)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("the filters of table \"%s\" were attached again during the build",
						get_rel_name(attachment->source))));
	fav_become_owner(&role, attachment->owner);
	if (walk->size > 1)
		fav_set_option("lock_timeout", BATCH_LOCK_TIMEOUT);
	walk->has_more = walk->batch(attachment, walk);
	fav_become_caller(&role);
	PopActiveSnapshot();
}

/* Is this a conflict with another session, after which the batch can be tried again? */
static bool
is_conflict(int code)
{
	return code == ERRCODE_UNIQUE_VIOLATION || code == ERRCODE_LOCK_NOT_AVAILABLE ||
		code == ERRCODE_T_R_DEADLOCK_DETECTED || code == ERRCODE_T_R_SERIALIZATION_FAILURE;
}

/* A batch in a subtransaction.  If it gives up, the next one is smaller. */
static void
try_batch(Walk *walk)
{
	Walk		before = *walk;
	ErrorData  *error = fav_try(run_batch, walk);

	if (error == NULL)
		walk->size = Min(walk->max_size, walk->size * BATCH_FACTOR);
	else if (is_conflict(error->sqlerrcode) && before.size > 1)
	{
		*walk = before;
		walk->size = Max(1, walk->size / BATCH_FACTOR);
	}
	else
		ReThrowError(error);
}

/*
 * Run all batches of a phase, each in a transaction at READ COMMITTED, whatever the default of
 * the session: after waiting for another transaction, a batch must see its changes.
 */
static void
walk_through(FunctionCallInfo fcinfo, bool (*batch) (FavAttachment *attachment, Walk *walk),
			 FavPhase phase, uint64 size)
{
	MemoryContext old = CurrentMemoryContext;
	MemoryContext per_batch = AllocSetContextCreate(PortalContext, "fav build",
													ALLOCSET_DEFAULT_SIZES);
	Walk		walk = {
		.fcinfo = fcinfo,.batch = batch,.has_more = true,.size = size,.max_size = size,
		.phase = phase
	};

	while (walk.has_more)
	{
		SPI_commit();
		SPI_start_transaction();
		XactIsoLevel = XACT_READ_COMMITTED;
		MemoryContextSwitchTo(per_batch);
		try_batch(&walk);
		MemoryContextReset(per_batch);
		if (OidIsValid(walk.levels))
			fav_report_progress(&walk.progress);
	}
	fav_end_progress();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(per_batch);
}

/* A distributed table: each shard batch by batch, and then the function and the view. */
static void
build_distributed(FunctionCallInfo fcinfo)
{
	FavAttachment *attachment = fav_attachment_of_arguments(fcinfo, 1, true);
	FavRole		role;

	fav_refuse_sink(attachment, "fav_build");
	fav_become_owner(&role, attachment->owner);
	fav_spread()->build_shards(attachment, is_rebuild(fcinfo));
	fav_complete(attachment);
	fav_become_caller(&role);
}

/*
 * fav_build(source, name, rebuild)
 */
Datum
fav_build(PG_FUNCTION_ARGS)
{
	CallContext *call = (CallContext *) fcinfo->context;

	if (call == NULL || !IsA(call, CallContext) || call->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("fav_build commits batch by batch, and cannot do that here"),
				 errhint("Call it outside of transaction blocks and functions.")));
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (fav_is_spread(fav_source_argument(fcinfo)))
		build_distributed(fcinfo);
	else
	{
		if (is_rebuild(fcinfo))
		{
			walk_through(fcinfo, mend_triggers, FAV_PHASE_REBUILD, 1);
			walk_through(fcinfo, rebuild_batch, FAV_PHASE_REBUILD, BATCH_FILTERS);
		}
		walk_through(fcinfo, build_batch, FAV_PHASE_BUILD, BATCH_PAIRS);
		walk_through(fcinfo, complete, FAV_PHASE_BUILD, 1);
		SPI_commit();
		SPI_start_transaction();
	}
	SPI_finish();
	PG_RETURN_VOID();
}
