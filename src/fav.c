/*
 * fav.c
 *		Code that all functions share: memory for the core, errors, arguments and
 *		results.
 */
#include "fav.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "core/sizing.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

PG_MODULE_MAGIC;

/* What a tuple needs beside a serialized state. */
#define TUPLE_OVERHEAD		1024

/* Returns NULL instead of raising an error, so that the core can restore its filter. */
void *
fav_alloc(size_t size)
{
	return MemoryContextAllocExtended(CurrentMemoryContext, size,
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

void
fav_free(void *memory)
{
	pfree(memory);
}

void
fav_pause(void)
{
	CHECK_FOR_INTERRUPTS();
}

void
fav_raise(FavStatus status)
{
	switch (status)
	{
		case FAV_NO_MEMORY:
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory"),
					 errdetail("Failed to allocate a slice of a fav value.")));
			break;
		case FAV_TOO_LARGE:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("fav value would exceed the limit of %u bytes",
							(unsigned) FAV_MAX_SIZE),
					 errhint(FAV_SPREAD_HINT)));
			break;
		case FAV_TOO_MANY_SLICES:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("fav value would exceed the limit of %d slices, or %d if it forgets",
							FAV_MAX_SLICES, FAV_MAX_DATED_SLICES),
					 errhint("Rebuild the filter from its source with fav_agg.")));
			break;
		case FAV_UNDATED:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("dated filter knows no period yet"),
					 errdetail("An element is added in the newest period of a dated filter."),
					 errhint("Add the first elements with fav_add_at.")));
			break;
		default:
			elog(ERROR, "unexpected fav status %d", (int) status);
	}
	pg_unreachable();
}

void
fav_raise_corrupted(const FavProblem *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("fav value is corrupted"),
			 errdetail_internal("%s", problem->detail)));
	pg_unreachable();
}

FavParams
fav_default_params(void)
{
	FavParams	params;

	fav_set_default_params(&params);
	return params;
}

uint64
fav_get_capacity(FunctionCallInfo fcinfo, int number)
{
	int64		capacity = PG_GETARG_INT64(number);

	if (capacity < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity " INT64_FORMAT " is out of range", capacity),
				 errdetail("The capacity must be at least 1.")));
	return (uint64) capacity;
}

/* fav_get_capacity() checks that the capacity is positive, because SQL passes a signed number. */
void
fav_check_params(const FavParams *params)
{
	FavSlice	first;

	if (!(params->error_rate >= FAV_MIN_ERROR_RATE && params->error_rate <= FAV_MAX_ERROR_RATE))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("error_rate %g is out of range", params->error_rate),
				 errdetail("The error rate must be between %g and %g.", FAV_MIN_ERROR_RATE,
						   FAV_MAX_ERROR_RATE)));

	/* an element takes at most 4 bytes, so a small capacity always fits */
	if (params->capacity > 1000000 &&
		!fav_size_slice(&first, fav_error_share(params->error_rate, 0), params->region_size,
						params->capacity))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("capacity " UINT64_FORMAT " is too large", params->capacity),
				 errdetail("With an error rate of %g and a region size of %d the filter would"
						   " exceed the limit of %u bytes.",
						   params->error_rate, (int) params->region_size, (unsigned) FAV_MAX_SIZE),
				 errhint(FAV_SPREAD_HINT)));
}

MemoryContext
fav_aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "aggregate function called in non-aggregate context");
	return context;
}

struct varlena *
fav_allocate_state(Size size, const char *aggregate, const char *items)
{
	/* it travels in a tuple, whose total size is limited to 1 GB */
	if (size > MaxAllocSize - TUPLE_OVERHEAD)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many %s for a parallel %s", items, aggregate),
				 errhint("Set max_parallel_workers_per_gather to 0 for this query.")));
	return fav_allocate_value(size);
}

void
fav_raise_invalid_state(const char *aggregate, const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid serialized state of %s", aggregate),
			 errdetail_internal("%s", problem)));
	pg_unreachable();
}

List *
fav_arguments_of(Node *call)
{
	if (call != NULL && IsA(call, FuncExpr))
		return ((FuncExpr *) call)->args;
	if (call != NULL && IsA(call, OpExpr))
		return ((OpExpr *) call)->args;
	return NIL;
}

Oid
fav_schema_of_function(FunctionCallInfo fcinfo)
{
	return get_func_namespace(fcinfo->flinfo->fn_oid);
}

Oid
fav_find_type(Oid schema, const char *name)
{
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name),
						   ObjectIdGetDatum(schema));
}

Oid
fav_find_function(Oid schema, const char *name, int nargs, const Oid *types)
{
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
						   PointerGetDatum(buildoidvector(types, nargs)),
						   ObjectIdGetDatum(schema));
}

/* The rows of the result are yet to be put into setResult. */
ReturnSetInfo *
fav_return_rows(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old;

	if (result == NULL || !IsA(result, ReturnSetInfo) ||
		!(result->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	old = MemoryContextSwitchTo(result->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, &result->setDesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	result->returnMode = SFRM_Materialize;
	result->setResult = tuplestore_begin_heap(result->allowedModes & SFRM_Materialize_Random,
											  false, work_mem);
	MemoryContextSwitchTo(old);
	return result;
}

Datum
fav_return_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}

void
fav_refuse_null(bool is_null, const char *names)
{
	if (is_null)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", names)));
}

void
fav_get_argument(FunctionCallInfo fcinfo, int number, FavArgument *argument)
{
	argument->datum = PG_GETARG_VARLENA_PP(number);
	fav_open_flat(&argument->filter, argument->datum);
}

struct varlena *
fav_allocate_value(size_t size)
{
	struct varlena *value = palloc(VARHDRSZ + size);

	SET_VARSIZE(value, VARHDRSZ + size);
	return value;
}

Datum
fav_make_short(void)
{
	struct varlena *result = fav_allocate_value(FAV_SHORT_SIZE);

	*VARDATA(result) = FAV_FORMAT_VERSION;
	return PointerGetDatum(result);
}

void
fav_begin_edit(FavEditor *editor, const struct varlena *value)
{
	FavParams	params = fav_default_params();
	FavFilter	filter;

	if (value == NULL)
		fav_make_empty(&filter, &params);
	else
		fav_open_flat(&filter, value);
	fav_editor_open(editor, &filter);
}

Datum
fav_finish_edit(FavEditor *editor)
{
	const FavFilter *filter;
	struct varlena *result;

	fav_require(fav_editor_finish(editor, &filter));
	result = fav_allocate_value(fav_size(filter));
	fav_write(filter, (uint8_t *) VARDATA(result));
	fav_editor_close(editor);
	return PointerGetDatum(result);
}
