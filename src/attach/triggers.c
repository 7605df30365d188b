/*
 * triggers.c
 *		The triggers of attached tables and sinks.
 *
 * A row trigger collects the pairs of the rows that were touched, and a statement trigger
 * reconciles what was collected (collect.c).  After a TRUNCATE the filters are emptied or built
 * anew (build.c).
 */
#include "attach/attachment_cache.h"
#include "attach/build.h"
#include "attach/collect.h"
#include "attach/interface.h"
#include "attach/spread.h"

#include "utils/lsyscache.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(fav_collect);
PG_FUNCTION_INFO_V1(fav_reconcile);

pg_noreturn static void
raise_protocol(const char *function)
{
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("%s must be called by a trigger that fav_attach or fav_sink has made",
					function)));
	pg_unreachable();
}

static void
check_trigger_call(FunctionCallInfo fcinfo, bool for_row, const char *function)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || TRIGGER_FIRED_INSTEAD(data->tg_event) ||
		(TRIGGER_FIRED_FOR_ROW(data->tg_event) != 0) != for_row)
		raise_protocol(function);
}

/*
 * Nobody else checks the rows of a sink: PostgreSQL does that when it stores them.  Constraints
 * other than these are refused (attachment.c).
 */
static void
check_not_null(const TriggerData *data, const FavWhen *when)
{
	TupleDesc	descriptor = RelationGetDescr(data->tg_relation);
	int			i;

	for (i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		bool		is_ours = i + 1 == when->key || i + 1 == when->element || i + 1 == when->at;

		if ((is_ours || (attribute->attnotnull && attribute->attgenerated == '\0')) &&
			!attribute->attisdropped && slot_attisnull(data->tg_trigslot, i + 1))
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in column \"%s\" of sink \"%s\"",
							NameStr(attribute->attname),
							get_rel_name(fav_shell(RelationGetRelid(data->tg_relation)))),
					 errtablecol(data->tg_relation, i + 1)));
	}
}

pg_noreturn static void
raise_no_rows(const FavAttachment *attachment)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("table \"%s\" is a sink, which has no rows to update or delete",
					get_rel_name(fav_shell(attachment->source))),
			 errhint("Remove elements with the function %s. Instead of ON CONFLICT DO UPDATE use ON"
					 " CONFLICT DO NOTHING.", fav_name_of_remove(attachment))));
	pg_unreachable();
}

Datum
fav_collect(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	FavAttachment *attachment;
	FavWhen		when;

	check_trigger_call(fcinfo, true, "fav_collect");
	attachment = fav_attachment_of_trigger(fcinfo, &when);
	if (attachment == NULL)
	{
		fav_refuse_left(fcinfo);
		return PointerGetDatum(data->tg_trigtuple);
	}
	if ((TRIGGER_FIRED_BEFORE(data->tg_event) != 0) != attachment->is_sink ||
		(attachment->is_sink && !TRIGGER_FIRED_BY_INSERT(data->tg_event)))
		raise_protocol("fav_collect");
	if (attachment->is_sink)
		check_not_null(data, &when);
	fav_collect_rows(attachment, &when, data);

	/* this keeps the row of a sink from being stored */
	return PointerGetDatum(NULL);
}

Datum
fav_reconcile(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	FavAttachment *attachment = NULL;
	FavWhen		when;
	Oid			source;
	Oid			levels;

	check_trigger_call(fcinfo, false, "fav_reconcile");
	if (fav_has_collected() || !TRIGGER_FIRED_AFTER(data->tg_event) ||
		TRIGGER_FIRED_BY_TRUNCATE(data->tg_event))
		attachment = fav_attachment_of_trigger(fcinfo, &when);
	if (attachment == NULL)
	{
		fav_refuse_left(fcinfo);

		/* the filters still have its pairs; if it came back, nobody would know that */
		if (TRIGGER_FIRED_BY_TRUNCATE(data->tg_event) && fav_has_left(fcinfo, &source, &levels))
			fav_rebuild_after_truncate(fav_schema_of_function(fcinfo), levels,
									   RelationGetRelid(data->tg_relation));
		return PointerGetDatum(NULL);
	}
	fav_keep_attachment(attachment);
	if (TRIGGER_FIRED_BEFORE(data->tg_event))
	{
		if (!attachment->is_sink)
			raise_protocol("fav_reconcile");
		raise_no_rows(attachment);
	}
	if (!TRIGGER_FIRED_BY_TRUNCATE(data->tg_event))
		fav_reconcile_collected(attachment);
	else
	{
		if (attachment->is_sink)
			fav_settle(attachment);
		fav_rebuild_after_truncate(attachment->schema, attachment->levels,
								   RelationGetRelid(data->tg_relation));
	}
	return PointerGetDatum(NULL);
}
