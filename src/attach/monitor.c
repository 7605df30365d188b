/*
 * monitor.c
 *		The views fav_attachments and fav_progress.
 *
 * fav_attachments reads only catalogs, so that a look at the view runs no code of others and waits
 * for no lock.
 *
 * For fav_progress PostgreSQL keeps a few numbers for each session in shared memory, with which its
 * own commands report their progress.  So do we, as a command whose number PostgreSQL does not
 * have, so that none of its views shows it.  An error or the end of the session clears it.
 */
#include "attach/definition.h"
#include "attach/interface.h"
#include "attach/monitor.h"
#include "attach/objects.h"
#include "attach/spread.h"
#include "attach/subtransaction.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/* How often to try to read an attachment whose objects vanish meanwhile. */
#define DESCRIBE_TRIES	3

PG_FUNCTION_INFO_V1(fav_list_attachments);
PG_FUNCTION_INFO_V1(fav_list_progress);

#define NCOLUMNS	14			/* of fav_attachments */

static void
set_name(const NameData *name, Datum *value, bool *isnull)
{
	*isnull = NameStr(*name)[0] == '\0';
	if (!*isnull)
		*value = DirectFunctionCall1(namein, CStringGetDatum(NameStr(*name)));
}

static bool
exists(Oid relation)
{
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relation));
}

/* A row of fav_attachments. */
typedef struct Description
{
	Oid			schema;
	Oid			levels;
	bool		found;			/* false if a table was dropped in the meantime */
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS];
} Description;

static void
describe_attachment(void *argument)
{
	Description *row = argument;
	Datum	   *values = row->values;
	bool	   *nulls = row->nulls;
	FavAttachment attachment;
	const FavObstacle *found = fav_read_attachment(row->schema, row->levels, &attachment);
	Interval   *keep = palloc0(sizeof(Interval));
	FavObject	has;

	if (!OidIsValid(attachment.owner) || !exists(row->levels))
		return;
	values[0] = ObjectIdGetDatum(fav_shell(attachment.source));
	set_name(&attachment.key.name, &values[1], &nulls[1]);
	set_name(&attachment.element.name, &values[2], &nulls[2]);
	values[3] = ObjectIdGetDatum(fav_view_of_levels(row->schema, row->levels));
	nulls[3] = !OidIsValid(DatumGetObjectId(values[3]));
	values[4] = ObjectIdGetDatum(row->levels);
	values[5] = Float8GetDatum(attachment.params.error_rate);
	values[6] = Int32GetDatum(attachment.share);
	nulls[6] = attachment.share == 0;
	nulls[11] = !fav_find_object(row->schema, row->levels, FAV_OBJECT_HAS, &has);
	values[7] = BoolGetDatum(has.complete);
	values[8] = BoolGetDatum(found == NULL && fav_is_active(&attachment));
	values[9] = BoolGetDatum(attachment.is_sink);
	keep->time = attachment.keep * USECS_PER_SEC;
	values[10] = DirectFunctionCall1(interval_justify_hours, IntervalPGetDatum(keep));
	nulls[10] = attachment.keep == 0;
	values[11] = ObjectIdGetDatum(has.oid);
	values[12] = BoolGetDatum(has.exact);
	set_name(&attachment.at.name, &values[13], &nulls[13]);
	row->found = true;
}

/* "cache lookup failed", or that something does not exist */
static bool
is_about_catalogs(int code)
{
	return ERRCODE_TO_CATEGORY(code) == ERRCODE_INTERNAL_ERROR ||
		ERRCODE_TO_CATEGORY(code) == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION;
}

/*
 * In a subtransaction: nothing is locked, so objects may be dropped in between, for which
 * functions of PostgreSQL raise errors.  Then it is tried again, unless the tables are gone.
 */
static void
try_describe(Description *row)
{
	ErrorData  *error;
	int			tries = 0;

	if (IsInParallelMode())
		describe_attachment(row);
	else
		while (exists(row->levels) && (error = fav_try(describe_attachment, row)) != NULL)
			if (!is_about_catalogs(error->sqlerrcode) || ++tries == DESCRIBE_TRIES)
				ReThrowError(error);
}

/* A remnant of an attachment (fav_is_remnant): only its table is known, whose writes fail. */
static void
describe_remnant(const FavTrigger *trigger, Description *row)
{
	memset(row->nulls, true, sizeof(row->nulls));
	row->values[0] = ObjectIdGetDatum(trigger->relation);
	row->values[4] = ObjectIdGetDatum(trigger->when.named);
	row->values[7] = row->values[8] = row->values[9] = BoolGetDatum(false);
	row->nulls[0] = row->nulls[7] = row->nulls[8] = row->nulls[9] = false;
	row->nulls[4] = !OidIsValid(trigger->when.named);
	row->found = true;
}

Datum
fav_list_attachments(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = fav_return_rows(fcinfo);
	Oid			schema = fav_schema_of_function(fcinfo);
	List	   *described = NIL;	/* levels tables, */
	List	   *remnants = NIL; /* and tables with remnants */
	ListCell   *cell;

	foreach(cell, fav_read_triggers(schema, InvalidOid))
	{
		const FavTrigger *trigger = lfirst(cell);
		Description row = {.schema = schema,.levels = trigger->when.levels};
		FavAttachment definition;

		/* shards go with their table, and forged triggers on other tables are ignored */
		if (fav_shell(trigger->relation) != trigger->relation)
			continue;
		if (fav_read_definition(schema, row.levels, &definition) &&
			fav_shell(definition.source) == trigger->relation)
		{
			if (list_member_oid(described, row.levels))
				continue;
			described = lappend_oid(described, row.levels);
			try_describe(&row);
		}
		else if (!list_member_oid(remnants, trigger->relation) &&
				 fav_is_remnant(schema, trigger))
		{
			remnants = lappend_oid(remnants, trigger->relation);
			describe_remnant(trigger, &row);
		}
		if (row.found)
			tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
	}
	PG_RETURN_NULL();
}

/*
 * Progress
 */

#define PROGRESS_COMMAND		((ProgressCommandType) 0x666176)

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

	pgstat_progress_start_command(PROGRESS_COMMAND, progress->source);
	pgstat_progress_update_multi_param(NPARAMS, numbers, values);
}

void
fav_end_progress(void)
{
	pgstat_progress_end_command();
}

/* False if the session does nothing of ours in this database, or is not for the caller to see. */
static bool
describe_session(const PgBackendStatus *status, Datum *values, bool *nulls)
{
	const int64 *params = status->st_progress_param;

	if (status->st_progress_command != PROGRESS_COMMAND || status->st_databaseid != MyDatabaseId ||
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

		if (session != NULL && describe_session(&session->backendStatus, values, nulls))
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	PG_RETURN_NULL();
}
