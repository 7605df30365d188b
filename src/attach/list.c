/*
 * list.c
 *		What is attached: the function behind view fav_attachments.
 *
 * It reads catalogs and nothing else, so that looking runs nobody's code.
 */
#include "attach.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(fav_list_attachments);

typedef struct Listed
{
	FavWhen		when;			/* with the columns of the source, if a row trigger names them */
	double		error_rate;
} Listed;

static Oid
function_oid(Oid schema, const char *name)
{
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
						   PointerGetDatum(buildoidvector(NULL, 0)), ObjectIdGetDatum(schema));
}

static Listed *
find_listed(List *list, const FavWhen *when)
{
	ListCell   *cell;

	foreach(cell, list)
	{
		Listed	   *listed = lfirst(cell);

		if (listed->when.levels == when->levels && listed->when.source == when->source)
			return listed;
	}
	return NULL;
}

/* Note what a trigger says, if it is one of ours on its source. */
static List *
note_trigger(List *list, HeapTuple tuple, TupleDesc descriptor)
{
	Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(tuple);
	bool		isnull;
	Datum		qual = heap_getattr(tuple, Anum_pg_trigger_tgqual, descriptor, &isnull);
	Datum		args;
	FavWhen		when;
	Listed	   *listed;

	if (isnull || !fav_read_when(TextDatumGetCString(qual), &when) || when.source != trigger->tgrelid ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(when.levels)))
		return list;
	listed = find_listed(list, &when);
	if (listed == NULL)
	{
		listed = palloc0(sizeof(Listed));
		listed->when = when;
		list = lappend(list, listed);
	}
	else if (when.element != InvalidAttrNumber)
		listed->when = when;
	args = heap_getattr(tuple, Anum_pg_trigger_tgargs, descriptor, &isnull);
	if (!isnull && trigger->tgnargs == 2)
	{
		/* Arguments are strings one after the other, each with its end. */
		bytea	   *bytes = DatumGetByteaPP(args);
		char	   *copy = palloc0(VARSIZE_ANY_EXHDR(bytes) + 1);

		memcpy(copy, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
		listed->error_rate = strtod(copy, NULL);
	}
	return list;
}

static List *
list_attachments(Oid schema)
{
	Oid			collect = function_oid(schema, FAV_COLLECT);
	Oid			reconcile = function_oid(schema, FAV_RECONCILE);
	Relation	catalog = table_open(TriggerRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	List	   *list = NIL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			function = ((Form_pg_trigger) GETSTRUCT(tuple))->tgfoid;

		if (function == collect || function == reconcile)
			list = note_trigger(list, tuple, RelationGetDescr(catalog));
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return list;
}

static void
set_column_name(Oid source, AttrNumber number, Datum *value, bool *isnull)
{
	char	   *name = number == InvalidAttrNumber ? NULL : get_attname(source, number, true);

	*isnull = name == NULL;
	if (name != NULL)
		*value = DirectFunctionCall1(namein, CStringGetDatum(name));
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
		List	   *list;

		context = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(context->multi_call_memory_ctx);
		if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "fav_list_attachments must return records");
		context->tuple_desc = BlessTupleDesc(descriptor);
		list = list_attachments(schema);
		context->user_fctx = list;
		context->max_calls = (uint64) list_length(list);
		MemoryContextSwitchTo(old);
	}

	context = SRF_PERCALL_SETUP();
	while (context->call_cntr < context->max_calls)
	{
		const Listed *listed = list_nth(context->user_fctx, (int) context->call_cntr);
		Oid			source = listed->when.source;
		Oid			view;
		Datum		values[7];
		bool		nulls[7] = {false};

		/* somebody may drop tables while we look */
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(source)) ||
			!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(listed->when.levels)))
		{
			context->call_cntr++;
			continue;
		}
		values[0] = ObjectIdGetDatum(source);
		set_column_name(source, listed->when.key, &values[1], &nulls[1]);
		set_column_name(source, listed->when.element, &values[2], &nulls[2]);
		view = fav_view_of_levels(schema, listed->when.levels);
		values[3] = ObjectIdGetDatum(view);
		nulls[3] = !OidIsValid(view);
		values[4] = ObjectIdGetDatum(listed->when.levels);
		values[5] = Float8GetDatum(listed->error_rate);
		values[6] = BoolGetDatum(fav_is_active(schema, source, listed->when.levels));
		SRF_RETURN_NEXT(context, HeapTupleGetDatum(heap_form_tuple(context->tuple_desc, values, nulls)));
	}
	SRF_RETURN_DONE(context);
}
