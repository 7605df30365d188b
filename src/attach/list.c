/*
 * list.c
 *		The attachments: the function behind view fav_attachments.
 *
 * It reads only catalogs, so that a look at the view runs no code of others and waits for no
 * lock.
 */
#include "attach.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/* So often is an attachment read whose objects vanish meanwhile. */
#define DESCRIBE_TRIES	3

PG_FUNCTION_INFO_V1(fav_list_attachments);

#define NCOLUMNS	14			/* of fav_attachments */

/* The levels tables of all attachments. */
List *
fav_list_attachments_of_all(Oid schema)
{
	List	   *all = NIL;
	ListCell   *cell;

	foreach(cell, fav_read_triggers(schema, InvalidOid))
	{
		const FavTrigger *trigger = lfirst(cell);
		FavDefinition definition;

		/* forged triggers on other tables are ignored, and shards go with their table */
		if (fav_shell(trigger->relation) == trigger->relation &&
			fav_read_definition(schema, trigger->when.levels, &definition) &&
			fav_shell(definition.source) == trigger->relation)
			all = list_append_unique_oid(all, trigger->when.levels);
	}
	return all;
}

static void
set_name(const NameData *name, Datum *value, bool *isnull)
{
	*isnull = NameStr(*name)[0] == '\0';
	if (!*isnull)
		*value = DirectFunctionCall1(namein, CStringGetDatum(NameStr(*name)));
}

/* False if a table was dropped in the meantime. */
static bool
describe(Oid schema, Oid levels, Datum *values, bool *nulls)
{
	FavAttachment attachment;
	const FavObstacle *found = fav_read_attachment(schema, levels, &attachment);
	Interval   *keep = palloc0(sizeof(Interval));
	Oid			view;
	FavHas		has;

	if (!OidIsValid(attachment.owner) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(levels)))
		return false;
	view = fav_view_of_levels(schema, levels);
	nulls[11] = !fav_find_has(schema, levels, &has);
	values[0] = ObjectIdGetDatum(fav_shell(attachment.source));
	set_name(&attachment.key.name, &values[1], &nulls[1]);
	set_name(&attachment.element.name, &values[2], &nulls[2]);
	values[3] = ObjectIdGetDatum(view);
	nulls[3] = !OidIsValid(view);
	values[4] = ObjectIdGetDatum(levels);
	values[5] = Float8GetDatum(attachment.params.error_rate);
	values[6] = Int32GetDatum(attachment.share);
	nulls[6] = attachment.share == 0;
	values[7] = BoolGetDatum(has.complete);
	values[8] = BoolGetDatum(found == NULL && fav_is_active(&attachment));
	values[9] = BoolGetDatum(attachment.is_sink);
	keep->time = attachment.keep * USECS_PER_SEC;
	values[10] = DirectFunctionCall1(interval_justify_hours, IntervalPGetDatum(keep));
	nulls[10] = attachment.keep == 0;
	values[11] = ObjectIdGetDatum(has.function);
	values[12] = BoolGetDatum(has.exact);
	set_name(&attachment.at.name, &values[13], &nulls[13]);
	return true;
}

/* "cache lookup failed", or that something does not exist */
static bool
is_about_catalogs(int code)
{
	return ERRCODE_TO_CATEGORY(code) == ERRCODE_INTERNAL_ERROR ||
		ERRCODE_TO_CATEGORY(code) == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION;
}

static bool
exists(Oid relation)
{
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relation));
}

/*
 * In a subtransaction: nothing is locked, so objects may be dropped in between, for which
 * functions of PostgreSQL raise errors.  Then it is tried again, unless the tables are gone.
 */
static bool
try_describe(Oid schema, Oid levels, Datum *values, bool *nulls)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool found = false;
	volatile bool is_done = false;
	volatile int tries = 0;

	if (IsInParallelMode())
		return describe(schema, levels, values, nulls);
	while (!is_done && exists(levels))
	{
		BeginInternalSubTransaction(NULL);
		PG_TRY();
		{
			MemoryContextSwitchTo(context);
			found = describe(schema, levels, values, nulls);
			is_done = true;
			ReleaseCurrentSubTransaction();
		}
		PG_CATCH();
		{
			ErrorData  *error;

			MemoryContextSwitchTo(context);
			error = CopyErrorData();
			FlushErrorState();
			RollbackAndReleaseCurrentSubTransaction();
			CurrentResourceOwner = owner;
			if (!is_about_catalogs(error->sqlerrcode) || ++tries == DESCRIBE_TRIES)
				ReThrowError(error);
		}
		PG_END_TRY();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	return found;
}

/* What is left of an attachment (fav_is_remnant): its table, whose writes fail, and no more. */
static void
describe_remnant(const FavTrigger *trigger, Datum *values, bool *nulls)
{
	memset(nulls, true, NCOLUMNS * sizeof(bool));
	values[0] = ObjectIdGetDatum(trigger->relation);
	values[4] = ObjectIdGetDatum(trigger->when.named);
	values[7] = values[8] = values[9] = BoolGetDatum(false);
	nulls[0] = nulls[7] = nulls[8] = nulls[9] = false;
	nulls[4] = !OidIsValid(trigger->when.named);
}

Datum
fav_list_attachments(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = fav_return_rows(fcinfo);
	Oid			schema = fav_schema_of_function(fcinfo);
	List	   *remnants = NIL;
	ListCell   *cell;

	foreach(cell, fav_list_attachments_of_all(schema))
	{
		Datum		values[NCOLUMNS];
		bool		nulls[NCOLUMNS] = {false};

		if (try_describe(schema, lfirst_oid(cell), values, nulls))
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	foreach(cell, fav_read_triggers(schema, InvalidOid))
	{
		const FavTrigger *trigger = lfirst(cell);
		Datum		values[NCOLUMNS];
		bool		nulls[NCOLUMNS];

		if (list_member_oid(remnants, trigger->relation) || !fav_is_remnant(schema, trigger) ||
			fav_shell(trigger->relation) != trigger->relation)
			continue;
		remnants = lappend_oid(remnants, trigger->relation);
		describe_remnant(trigger, values, nulls);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	PG_RETURN_NULL();
}
