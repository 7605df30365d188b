/*
 * list.c
 *		The attachments: the function behind view fav_attachments.
 *
 * It reads only catalogs, so that a look at the view runs no code of others and waits for no
 * lock.
 */
#include "attach.h"

#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(fav_list_attachments);

/* The levels tables of all attachments. */
static List *
list_attachments(Oid schema)
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
			definition.source == trigger->relation)
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

	if (!OidIsValid(attachment.owner) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(levels)))
		return false;
	view = fav_view_of_levels(schema, levels);
	values[0] = ObjectIdGetDatum(attachment.source);
	set_name(&attachment.key.name, &values[1], &nulls[1]);
	set_name(&attachment.element.name, &values[2], &nulls[2]);
	values[3] = ObjectIdGetDatum(view);
	nulls[3] = !OidIsValid(view);
	values[4] = ObjectIdGetDatum(levels);
	values[5] = Float8GetDatum(attachment.params.error_rate);
	values[6] = Int32GetDatum(attachment.share);
	nulls[6] = attachment.share == 0;
	values[7] = BoolGetDatum(fav_is_complete(levels));
	values[8] = BoolGetDatum(found == NULL && fav_is_active(&attachment));
	values[9] = BoolGetDatum(attachment.is_sink);
	keep->time = attachment.keep * USECS_PER_SEC;
	values[10] = DirectFunctionCall1(interval_justify_hours, IntervalPGetDatum(keep));
	nulls[10] = attachment.keep == 0;
	return true;
}

Datum
fav_list_attachments(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = fav_return_rows(fcinfo);
	Oid			schema = fav_schema_of_function(fcinfo);
	ListCell   *cell;

	foreach(cell, list_attachments(schema))
	{
		Datum		values[11];
		bool		nulls[11] = {false};

		if (describe(schema, lfirst_oid(cell), values, nulls))
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	PG_RETURN_NULL();
}
