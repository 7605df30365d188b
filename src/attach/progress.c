/*
 * progress.c
 *		How far a build, a rebuild or a comparison is: view fav_progress.
 *
 * PostgreSQL keeps a few numbers for each session in shared memory, with which its own commands
 * report their progress.  So do we, as a command whose number PostgreSQL does not have, so
 * that none of its views shows it.  An error or the end of the session clears it.
 */
#include "attach.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#define COMMAND		((ProgressCommandType) 0x666176)

enum
{
	PHASE,
	KEYS,
	ESTIMATED,
	ROWS,
	BEGIN,
	NPARAMS
};

static const char *const phase_names[] = {
	[FAV_PHASE_BUILD] = "building filters",
	[FAV_PHASE_REBUILD] = "rebuilding filters",
	[FAV_PHASE_STALE] = "searching for stale elements",
	[FAV_PHASE_MISSING] = "searching for missing elements"
};

PG_FUNCTION_INFO_V1(fav_list_progress);

/* Rows of all relations together, by the statistics; -1: not known. */
static double
estimate_rows(const List *relations)
{
	const ListCell *cell;
	double		rows = -1;

	foreach(cell, relations)
	{
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(lfirst_oid(cell)));
		Form_pg_class form;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_class) GETSTRUCT(tuple);
		if (form->relkind == RELKIND_RELATION && form->reltuples > 0)
			rows = Max(rows, 0) + form->reltuples;
		ReleaseSysCache(tuple);
	}
	return rows;
}

/* Filters that the source needs, by the statistics; -1: not known. */
static double
estimate_filters(const FavAttachment *attachment)
{
	double		rows = estimate_rows(fav_list_family(attachment->source));
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(attachment->source),
										Int16GetDatum(attachment->key.number),
										BoolGetDatum(has_subclass(attachment->source)));
	double		distinct;

	if (!HeapTupleIsValid(tuple))
		return -1;
	distinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	if (distinct < 0)
		distinct *= -rows;
	if (rows < 0 || distinct <= 0)
		return -1;
	return attachment->share > 0 ? 1 + distinct / attachment->share : distinct;
}

void
fav_begin_progress(FavProgress *progress, FavPhase phase, const FavAttachment *attachment)
{
	memset(progress, 0, sizeof(*progress));
	progress->source = attachment->source;
	progress->phase = phase;
	progress->begin = GetCurrentTimestamp();
	progress->estimated = (int64) (phase == FAV_PHASE_BUILD ? estimate_filters(attachment) :
								   estimate_rows(list_make1_oid(attachment->levels)));
	fav_report_progress(progress);
}

/* All of it: a subtransaction that was rolled back has cleared what was reported before. */
void
fav_report_progress(const FavProgress *progress)
{
	const int	numbers[NPARAMS] = {PHASE, KEYS, ESTIMATED, ROWS, BEGIN};
	const int64 values[NPARAMS] = {
		progress->phase, progress->keys, progress->estimated, progress->rows, progress->begin
	};

	pgstat_progress_start_command(COMMAND, progress->source);
	pgstat_progress_update_multi_param(NPARAMS, numbers, values);
}

void
fav_end_progress(void)
{
	pgstat_progress_end_command();
}

/* False if the session does nothing of ours in this database, or is not for the caller to see. */
static bool
describe(const PgBackendStatus *status, Datum *values, bool *nulls)
{
	const int64 *params = status->st_progress_param;

	if (status->st_progress_command != COMMAND || status->st_databaseid != MyDatabaseId ||
		params[PHASE] < 0 || params[PHASE] >= (int64) lengthof(phase_names) ||
		!(has_privs_of_role(GetUserId(), status->st_userid) ||
		  has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS)))
		return false;
	values[0] = Int32GetDatum(status->st_procpid);
	values[1] = ObjectIdGetDatum(status->st_progress_command_target);
	values[2] = CStringGetTextDatum(phase_names[params[PHASE]]);
	values[3] = Int64GetDatum(params[KEYS]);
	values[4] = Int64GetDatum(params[ESTIMATED]);
	nulls[4] = params[ESTIMATED] < 0;

	/* Only a build counts rows. */
	values[5] = Int64GetDatum(params[ROWS]);
	values[6] = Float8GetDatum((double) params[ROWS] * USECS_PER_SEC /
							   (double) Max(1, GetCurrentTimestamp() - params[BEGIN]));
	nulls[5] = nulls[6] = params[PHASE] != FAV_PHASE_BUILD;
	return true;
}

Datum
fav_list_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = fav_return_rows(fcinfo);
	int			i;

	for (i = 1; i <= pgstat_fetch_stat_numbackends(); i++)
	{
		LocalPgBackendStatus *session = pgstat_get_local_beentry_by_index(i);
		Datum		values[7];
		bool		nulls[7] = {false};

		if (session != NULL && describe(&session->backendStatus, values, nulls))
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	PG_RETURN_NULL();
}
