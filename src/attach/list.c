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

		/* one that somebody made on another table says nothing */
		if (fav_read_definition(schema, trigger->when.levels, &definition) &&
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

/* False if somebody has dropped a table in the meantime. */
static bool
describe(Oid schema, Oid levels, Datum *values, bool *nulls)
{
	FavAttachment attachment;
	const FavObstacle *found = fav_read_attachment(schema, levels, &attachment);
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
		Datum		values[10];
		bool		nulls[10] = {false};

		if (describe(schema, list_nth_oid(context->user_fctx, (int) context->call_cntr), values,
					 nulls))
			SRF_RETURN_NEXT(context, HeapTupleGetDatum(heap_form_tuple(context->tuple_desc,
																	   values, nulls)));
	}
	SRF_RETURN_DONE(context);
}
