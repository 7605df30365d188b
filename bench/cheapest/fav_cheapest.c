/*
 * fav_cheapest.c
 *		For the benchmark only: the least that a function can do which is called
 *		with a toasted value for every row.  It detoasts the value once, keeps it
 *		in fn_extra, and answers with a byte of it.
 *
 * What this adds to a scan is what PostgreSQL takes for the call, so it is what
 * fav_contains() is measured against.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "fmgr.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

PG_MODULE_MAGIC;

typedef struct Kept
{
	struct varatt_external pointer;
	struct varlena *value;
} Kept;

PG_FUNCTION_INFO_V1(fav_cheapest);

Datum
fav_cheapest(PG_FUNCTION_ARGS)
{
	struct varlena *attribute;
	Kept	   *kept;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	attribute = (struct varlena *) PG_GETARG_POINTER(0);
	if (!VARATT_IS_EXTERNAL_ONDISK(attribute))
		PG_RETURN_BOOL(VARDATA_ANY(attribute)[0] == (char) PG_GETARG_INT64(1) && PG_GETARG_INT64(1) < 0);

	kept = fcinfo->flinfo->fn_extra;
	if (kept == NULL || memcmp(&kept->pointer, VARDATA_EXTERNAL(attribute), sizeof(kept->pointer)) != 0)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);

		if (kept == NULL)
			kept = fcinfo->flinfo->fn_extra = palloc0(sizeof(Kept));
		if (kept->value != NULL)
			pfree(kept->value);
		kept->value = detoast_attr(attribute);
		memcpy(&kept->pointer, VARDATA_EXTERNAL(attribute), sizeof(kept->pointer));
		MemoryContextSwitchTo(old);
	}
	PG_RETURN_BOOL(VARDATA_ANY(kept->value)[0] == (char) PG_GETARG_INT64(1) && PG_GETARG_INT64(1) < 0);
}
