/*
 * rebuild.c
 *		Filters from the source: one key, all keys, and after a TRUNCATE.
 *
 * Why a rebuild of all keys loses nothing.  It locks the levels table against writers and
 * then reads the source in the latest snapshot.  Whoever has changed the source has
 * either reconciled already, and then the lock has waited for their commit and the
 * snapshot sees their change; or has yet to reconcile, and will then find the rebuilt
 * filters.  So the source itself need not be locked.
 */
#include "attach.h"

#include "core/levels.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(fav_rebuild);

static Datum
empty_value(const FavAttachment *attachment, uint64 seed)
{
	FavParams	params = attachment->params;
	FavEditor	editor;

	params.seed = seed;
	fav_editor_new(&editor, &params);
	return fav_finish_edit(&editor);
}

/* The levels of a key from the source as it is now.  Few elements are all in recent. */
void
fav_build_key(FavAttachment *attachment, Datum key, uint64 seed, Datum *base, Datum *recent)
{
	Datum		values[3];
	Datum		filter;
	bool		isnull;

	values[0] = key;
	values[1] = Float8GetDatum(attachment->params.error_rate);
	values[2] = Int64GetDatum((int64) seed);
	(void) fav_spi_execute(fav_attachment_plan(attachment, FAV_QUERY_BUILD), values, NULL, SPI_OK_SELECT);
	filter = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	*base = FAV_NO_BASE;
	if (isnull)
		*recent = empty_value(attachment, seed);
	else
	{
		struct varlena *copy = (struct varlena *) PG_DETOAST_DATUM_COPY(filter);

		if (((const uint8_t *) VARDATA(copy))[FAV_AT_NSLICES] > 0)
		{
			*base = PointerGetDatum(copy);
			*recent = empty_value(attachment, seed);
		}
		else
			*recent = PointerGetDatum(copy);
	}
	SPI_freetuptable(SPI_tuptable);
}

/*
 * All keys.  As the owner, with SPI connected.
 */
void
fav_build_all(FavAttachment *attachment)
{
	const char *extension = fav_schema_name(attachment->schema);
	const char *levels = fav_relation_name(attachment->levels);
	const char *key = quote_identifier(NameStr(attachment->key.name));
	const char *element = quote_identifier(NameStr(attachment->element.name));
	Oid			types[3] = {FLOAT8OID, INT8OID, InvalidOid};
	Datum		values[3];

	LockRelationOid(attachment->levels, ShareRowExclusiveLock);
	(void) fav_spi_execute_latest(psprintf("DELETE FROM ONLY %s", levels), 0, NULL, NULL);
	types[2] = get_atttype(attachment->levels, FAV_LEVELS_RECENT);
	values[0] = Float8GetDatum(attachment->params.error_rate);
	values[1] = Int64GetDatum((int64) attachment->params.seed);
	values[2] = attachment->empty;
	(void) fav_spi_execute_latest(
		psprintf("INSERT INTO %s (%s, %s, %s)"
				 " SELECT b.key, CASE WHEN %s.fav_count(b.filter) OPERATOR(pg_catalog.>) %d THEN b.filter END,"
				 " CASE WHEN %s.fav_count(b.filter) OPERATOR(pg_catalog.>) %d THEN $3 ELSE b.filter END FROM"
				 " (SELECT %s AS key, %s.fav_base(%s::%s, $1, $2) AS filter FROM %s"
				 " WHERE %s IS NOT NULL AND %s IS NOT NULL GROUP BY 1) b",
				 levels, quote_identifier(get_attname(attachment->levels, FAV_LEVELS_KEY, false)),
				 quote_identifier(get_attname(attachment->levels, FAV_LEVELS_BASE, false)),
				 quote_identifier(get_attname(attachment->levels, FAV_LEVELS_RECENT, false)),
				 extension, FAV_RECENT_MAX, extension, FAV_RECENT_MAX,
				 key, extension, element, fav_element_type_name(attachment->kind),
				 fav_relation_name(attachment->source), key, element),
		3, types, values);
}

/*
 * The source, or a partition or child of it, was truncated.  If nothing is left, so are
 * the filters.  A truncate does not care for snapshots, and neither does this.
 */
void
fav_rebuild_after_truncate(FavAttachment *attachment)
{
	FavRole		role;

	fav_become_owner(&role, attachment->owner);
	fav_spi_connect();
	LockRelationOid(attachment->levels, ShareRowExclusiveLock);
	if (fav_spi_execute_latest(psprintf("SELECT FROM %s LIMIT 1", fav_relation_name(attachment->source)),
							   0, NULL, NULL) == 0)
		fav_spi_run(psprintf("TRUNCATE ONLY %s", fav_relation_name(attachment->levels)));
	else
		fav_build_all(attachment);
	SPI_finish();
	fav_become_caller(&role);
}

/* A key in its text form. */
static Datum
read_key(const FavAttachment *attachment, Datum text_key)
{
	Oid			input;
	Oid			parameter;

	getTypeInputInfo(attachment->key.type, &input, &parameter);
	return OidInputFunctionCall(input, text_to_cstring(DatumGetTextPP(text_key)), parameter, -1);
}

/*
 * fav_rebuild(source, key, name); all keys if key is NULL, and then also triggers that are
 * missing or not enabled.
 */
Datum
fav_rebuild(PG_FUNCTION_ARGS)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	Oid			source = fav_get_relation_argument(fcinfo, 0, "source");
	const char *name = PG_ARGISNULL(2) ? NULL : NameStr(*PG_GETARG_NAME(2));
	FavAttachment *attachment;
	FavRole		role;

	fav_check_owner(source);
	attachment = fav_attachment_of_levels(schema, source, fav_choose_levels(schema, source, name));
	fav_become_owner(&role, attachment->owner);
	fav_spi_connect();
	if (PG_ARGISNULL(1))
	{
		if (!fav_is_active(schema, source, attachment->levels))
			fav_create_triggers(schema, source, attachment->levels, &attachment->key, &attachment->element,
								&attachment->params);
		fav_build_all(attachment);
	}
	else
	{
		LockRelationOid(attachment->levels, RowExclusiveLock);
		fav_prefer_indexes();
		fav_rebuild_key(attachment, read_key(attachment, PG_GETARG_DATUM(1)));
	}
	SPI_finish();
	fav_become_caller(&role);
	PG_RETURN_VOID();
}
