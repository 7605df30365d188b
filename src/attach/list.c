/*
 * list.c
 *		What is attached: the function behind view fav_attachments.
 *
 * It reads catalogs and nothing else, so that looking runs nobody's code and waits for
 * nobody.
 */
#include "attach.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(fav_list_attachments);

/* A trigger of each attachment, on its source; one that names the columns, if there is one. */
static List *
list_attachments(Oid schema)
{
	List	   *attachments = NIL;
	ListCell   *cell;
	ListCell   *other;

	foreach(cell, fav_read_triggers(schema, InvalidOid))
	{
		FavTrigger *trigger = lfirst(cell);
		bool		is_new = trigger->when.source == trigger->relation;

		foreach(other, attachments)
		{
			FavTrigger *listed = lfirst(other);

			if (!is_new || listed->when.levels != trigger->when.levels ||
				listed->when.source != trigger->when.source)
				continue;
			if (trigger->when.element != InvalidAttrNumber)
				*listed = *trigger;
			is_new = false;
		}
		if (is_new)
			attachments = lappend(attachments, trigger);
	}
	return attachments;
}

static void
set_column_name(Oid source, AttrNumber number, Datum *value, bool *isnull)
{
	char	   *name = number == InvalidAttrNumber ? NULL : get_attname(source, number, true);

	*isnull = name == NULL;
	if (name != NULL)
		*value = DirectFunctionCall1(namein, CStringGetDatum(name));
}

/* False if somebody has dropped a table in the meantime. */
static bool
describe(Oid schema, const FavTrigger *trigger, Datum *values, bool *nulls)
{
	Oid			source = trigger->when.source;
	Oid			levels = trigger->when.levels;
	Oid			view;

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(source)) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(levels)))
		return false;
	view = fav_view_of_levels(schema, levels);
	values[0] = ObjectIdGetDatum(source);
	set_column_name(source, trigger->when.key, &values[1], &nulls[1]);
	set_column_name(source, trigger->when.element, &values[2], &nulls[2]);
	values[3] = ObjectIdGetDatum(view);
	nulls[3] = !OidIsValid(view);
	values[4] = ObjectIdGetDatum(levels);
	values[5] = Float8GetDatum(trigger->params.error_rate);
	values[6] = BoolGetDatum(fav_owner_of(levels) == fav_owner_of(source) &&
							 fav_is_active(schema, source, levels));
	return true;
}

Datum
fav_list_attachments(PG_FUNCTION_ARGS)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	FuncCallContext *context;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;
		TupleDesc	descriptor;

		context = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(context->multi_call_memory_ctx);
		if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "fav_list_attachments must return records");
		context->tuple_desc = BlessTupleDesc(descriptor);
		context->user_fctx = list_attachments(schema);
		context->max_calls = (uint64) list_length(context->user_fctx);
		MemoryContextSwitchTo(old);
	}

	context = SRF_PERCALL_SETUP();
	for (; context->call_cntr < context->max_calls; context->call_cntr++)
	{
		Datum		values[7];
		bool		nulls[7] = {false};

		if (describe(schema, list_nth(context->user_fctx, (int) context->call_cntr), values,
					 nulls))
			SRF_RETURN_NEXT(context, HeapTupleGetDatum(heap_form_tuple(context->tuple_desc,
																	   values, nulls)));
	}
	SRF_RETURN_DONE(context);
}
