/*
 * sink_functions.c
 *		What the functions of a sink call: <sink>_add and <sink>_remove.
 *
 * They are SQL functions that fav_sink makes, with the types of the sink.  What they
 * call has no type of a sink but that of the elements, and takes the key in a row.  So each
 * argument has exactly the type that is declared here, and no function of a stranger can fit
 * better.
 */
#include "attach/citus.h"
#include "attach/collect.h"
#include "attach/interface.h"
#include "attach/queries.h"
#include "attach/rows.h"
#include "attach/sink.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_coerce.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* A row may be deleted again before it is found. */
#define CALL_TRIES	10

PG_FUNCTION_INFO_V1(fav_sink_add);
PG_FUNCTION_INFO_V1(fav_sink_remove);

/* The arguments of both functions, and the sink that they are about. */
typedef struct SinkCall
{
	FavAttachment *attachment;
	Datum		key;
	ArrayType  *array;			/* NULL if it was */
	Datum	   *elements;		/* of it, without NULLs */
	int			count;
	uint64_t   *hashes;			/* of each of them */
	FavChange	change;
} SinkCall;

/*
 * Rights
 */

static bool
may_insert(Oid column_owner, AttrNumber number)
{
	return pg_attribute_aclcheck(column_owner, number, GetUserId(), ACL_INSERT) == ACLCHECK_OK;
}

/* As for the statement in whose place the function is called. */
static void
check_right(Oid source, AclMode right, const FavWhen *columns)
{
	AclResult	result = pg_class_aclcheck(source, GetUserId(), right);

	if (result != ACLCHECK_OK &&
		!(right == ACL_INSERT && may_insert(source, columns->key) &&
		  may_insert(source, columns->element)))
		aclcheck_error(result, get_relkind_objtype(get_rel_relkind(source)),
					   get_rel_name(source));
}

/* The columns of key and element, from the row trigger of the sink. */
static FavWhen
read_columns(Oid schema, Oid source, Oid levels)
{
	FavWhen		columns = {0};
	ListCell   *cell;

	foreach(cell, fav_read_triggers(schema, source))
	{
		const FavTrigger *trigger = lfirst(cell);

		if (trigger->is_of_rows && trigger->when.levels == levels)
			columns = trigger->when;
	}
	return columns;
}

pg_noreturn static void
raise_no_sink(Oid levels)
{
	const char *name = get_rel_name(levels);

	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 name == NULL ? errmsg("relation with OID %u does not exist", levels) :
			 errmsg("table \"%s\" does not have the filters of a sink", name)));
	pg_unreachable();
}

/*
 * The sink of a levels table, for those who have a right on it.  Rights and definition are read
 * again after the locks: somebody may have changed them meanwhile.
 */
static FavAttachment *
open_sink(Oid schema, Oid levels, AclMode right)
{
	FavDefinition definition;
	FavDefinition locked;
	FavWhen		columns;

	if (!fav_read_definition(schema, levels, &definition) || !definition.is_sink ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(definition.source)))
		raise_no_sink(levels);
	columns = read_columns(schema, definition.source, levels);
	check_right(definition.source, right, &columns);
	LockRelationOid(definition.source, RowExclusiveLock);
	LockRelationOid(levels, RowExclusiveLock);
	if (!fav_read_definition(schema, levels, &locked) || !locked.is_sink ||
		locked.source != definition.source ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(definition.source)))
		raise_no_sink(levels);
	columns = read_columns(schema, definition.source, levels);
	check_right(definition.source, right, &columns);
	return fav_attachment_of_levels(schema, levels);
}

/*
 * Elements
 */

/* What checks the values of a column as an INSERT would. */
typedef struct ValueCheck
{
	const FavColumn *column;
	Oid			domain;			/* InvalidOid: it is no domain */
	void	   *domain_cache;
	int64		least;			/* of integers */
	int64		greatest;
} ValueCheck;

static void
begin_check(ValueCheck *check, Oid source, const FavColumn *column)
{
	check->column = column;
	check->domain = column->is_domain ? get_atttype(source, column->number) : InvalidOid;
	check->domain_cache = NULL;
	check->least = column->type == INT2OID ? PG_INT16_MIN :
		column->type == INT4OID ? PG_INT32_MIN : PG_INT64_MIN;
	check->greatest = column->type == INT2OID ? PG_INT16_MAX :
		column->type == INT4OID ? PG_INT32_MAX : PG_INT64_MAX;
}

/* A bigint in the type of the column. */
static Datum
narrow(const ValueCheck *check, int64 value)
{
	if (value < check->least || value > check->greatest)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value " INT64_FORMAT " is out of range for type %s", value,
						format_type_be(check->column->type))));
	switch (check->column->type)
	{
		case INT2OID:
			return Int16GetDatum((int16) value);
		case INT4OID:
			return Int32GetDatum((int32) value);
		default:
			return Int64GetDatum(value);
	}
}

/* A value of another length or precision than the column's, or an error, as by an assignment. */
static Datum
limit(const FavColumn *column, Datum value)
{
	Oid			type = fav_argument_type(column);
	EState	   *state = CreateExecutorState();
	int16		length;
	bool		by_value;
	bool		isnull;
	Node	   *node;

	get_typlenbyval(type, &length, &by_value);
	node = (Node *) makeConst(type, -1, get_typcollation(type), length, value, false, by_value);
	node = coerce_to_target_type(NULL, node, type, column->type, column->typmod,
								 COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1);
	value = ExecEvalExpr(ExecPrepareExpr((Expr *) node, state), GetPerTupleExprContext(state),
						 &isnull);
	get_typlenbyval(column->type, &length, &by_value);
	value = datumCopy(value, by_value, length);
	FreeExecutorState(state);
	return value;
}

/* An argument as the column would have it. */
static Datum
check_value(ValueCheck *check, Datum value)
{
	if (fav_argument_type(check->column) == INT8OID)
		value = narrow(check, DatumGetInt64(value));
	else if (check->column->type == VARCHAROID && check->column->typmod >= 0)
		value = DirectFunctionCall3(varchar, value, Int32GetDatum(check->column->typmod),
									BoolGetDatum(false));
	else if (check->column->typmod >= 0)
		value = limit(check->column, value);
	if (OidIsValid(check->domain))
		domain_check(value, false, check->domain, &check->domain_cache, CurrentMemoryContext);
	return value;
}

/* The key, in a row of its own; it has the type that the function of the sink takes. */
static Datum
read_key(const FavAttachment *attachment, FunctionCallInfo fcinfo, bool *isnull)
{
	HeapTupleHeader header = PG_ARGISNULL(1) ? NULL : PG_GETARG_HEAPTUPLEHEADER(1);
	HeapTupleData tuple = {0};
	TupleDesc	descriptor;
	ValueCheck	check;
	Datum		key;

	*isnull = true;
	if (header == NULL)
		return (Datum) 0;
	descriptor = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
										HeapTupleHeaderGetTypMod(header));
	if (descriptor->natts != 1 ||
		TupleDescAttr(descriptor, 0)->atttypid != fav_argument_type(&attachment->key))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("key of sink \"%s\" is not a row of type %s",
						get_rel_name(attachment->source),
						format_type_be(fav_argument_type(&attachment->key))),
				 errhint("Call the function that fav_sink has made.")));
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	tuple.t_data = header;
	key = heap_getattr(&tuple, 1, descriptor, isnull);
	ReleaseTupleDesc(descriptor);
	if (*isnull)
		return (Datum) 0;
	begin_check(&check, attachment->source, &attachment->key);
	return check_value(&check, key);
}

/* The type of the elements of an array. */
static Oid
type_of_kind(FavKind kind)
{
	switch (kind)
	{
		case FAV_KIND_INTEGER:
			return INT8OID;
		case FAV_KIND_TEXT:
			return TEXTOID;
		case FAV_KIND_UUID:
			return UUIDOID;
		default:
			return BYTEAOID;
	}
}

/* Arrays of more dimensions are taken as unnest() does: element by element. */
static void
read_elements(SinkCall *call)
{
	FavAttachment *attachment = call->attachment;
	FavKind		kind = attachment->kind;
	Oid			type = ARR_ELEMTYPE(call->array);
	ValueCheck check;
	bool	   *nulls;
	int			count;
	int16		length;
	bool		by_value;
	char		alignment;
	int			i;

	if (type != type_of_kind(kind))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("elements of sink \"%s\" are not of type %s",
						get_rel_name(attachment->source), format_type_be(type))));
	get_typlenbyvalalign(type, &length, &by_value, &alignment);
	deconstruct_array(call->array, type, length, by_value, alignment, &call->elements, &nulls,
					  &count);
	begin_check(&check, attachment->source, &attachment->element);
	call->hashes = palloc_extended(Max(1, count) * sizeof(uint64_t), MCXT_ALLOC_HUGE);
	for (i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (nulls[i])
			continue;
		call->hashes[call->count] =
			fav_hash_row(attachment, call->key, check_value(&check, call->elements[i]));
		call->elements[call->count] = call->elements[i];
		fav_append_hash(&call->change.hashes, call->hashes[call->count]);
		call->count++;
	}
	fav_sort_hashes(&call->change.hashes);
}

/*
 * Open the sink of argument 0 and read key and elements, which are argument 1 and 2.  What was
 * inserted before in this transaction comes first.
 */
static void
begin_call(SinkCall *call, FunctionCallInfo fcinfo, FavAction action)
{
	Oid			schema = fav_schema_of_function(fcinfo);
	bool		isnull;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("levels must not be null")));
	call->attachment = open_sink(schema, PG_GETARG_OID(0),
								 action == FAV_ADD ? ACL_INSERT : ACL_DELETE);
	call->key = read_key(call->attachment, fcinfo, &isnull);
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("null value in column \"%s\" of sink \"%s\"",
						NameStr(call->attachment->key.name),
						get_rel_name(call->attachment->source))));
	fav_settle(call->attachment);
	call->change.action = action;
	if (!PG_ARGISNULL(2))
	{
		call->array = PG_GETARG_ARRAYTYPE_P(2);
		read_elements(call);
	}
}

static void
change(SinkCall *call)
{
	FavRole		role;

	if (call->count == 0)
		return;
	fav_become_owner(&role, call->attachment->owner);
	fav_change_sink(call->attachment, call->key, &call->change);
	fav_become_caller(&role);
}

/*
 * Citus has a connection to a node for each role.  What one of them has written cannot be written
 * over another one in the same transaction.
 */
static void
advise_on_roles(void *owner)
{
	if (geterrcode() == ERRCODE_ACTIVE_SQL_TRANSACTION)
		errhint("The function runs as role %s. Call it in a transaction of its own, or write as"
				" this role in this transaction.", (char *) owner);
}

/*
 * The sink is distributed: call the same function where the filter is, by a query that Citus sends
 * there.  Only a row can say which shard it is in, so there must be one.  Writing it first also
 * makes the node a part of the transaction, which a query alone does not.  Everything runs as the
 * owner: others need not be able to read filters.  Returns the result.
 *
 * Citus does not see the shard of a key with a cast, and asks all of them.  Only a domain needs
 * one.
 */
static Datum
call_on_shard(const SinkCall *call, const char *function, const char *more)
{
	FavAttachment *attachment = call->attachment;
	const char *insert = fav_query(attachment, "INSERT INTO {levels} ({key}) VALUES ($1)"
								   " ON CONFLICT ({key}) DO NOTHING");
	const char *select = psprintf("SELECT %s.%s(l.tableoid::pg_catalog.regclass, ROW(%s::%s), $2%s)"
								  " %s", fav_query(attachment, "{fav}"), function,
								  fav_query(attachment, "l.{key}"),
								  fav_argument_type_name(&attachment->key), more,
								  fav_query(attachment, attachment->key.is_domain ?
											"FROM {levels} l WHERE l.{key}{::key} {=} $1{::key}" :
											"FROM {levels} l WHERE l.{key} {=} $1"));
	Oid			types[2] = {attachment->key.type, ARR_ELEMTYPE(call->array)};
	Datum		values[2] = {call->key, PointerGetDatum(call->array)};
	ErrorContextCallback callback;
	Datum		result;
	bool		isnull;
	FavRole		role;
	int			tries = 0;

	callback.callback = advise_on_roles;
	callback.arg = GetUserNameFromId(attachment->owner, false);
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	types[1] = get_array_type(types[1]);
	fav_become_owner(&role, attachment->owner);
	fav_prepare_transaction();
	do
	{
		if (tries++ == CALL_TRIES)
			fav_raise_not_written(attachment);
		CHECK_FOR_INTERRUPTS();
		(void) fav_execute_in(GetTransactionSnapshot(), insert, SPI_OK_INSERT, 1, types, values);
	} while (fav_execute_in(GetTransactionSnapshot(), select, SPI_OK_SELECT, 2, types,
							values) == 0);
	result = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	result = SPI_datumTransfer(result, get_typbyval(SPI_gettypeid(SPI_tuptable->tupdesc, 1)),
							   get_typlen(SPI_gettypeid(SPI_tuptable->tupdesc, 1)));
	fav_become_caller(&role);
	error_context_stack = callback.previous;
	return result;
}

/*
 * The elements that were new, in the order in which they were given, each once.
 */
static Datum
take_new(SinkCall *call)
{
	Oid			type = type_of_kind(call->attachment->kind);
	const FavHashes *sorted = &call->change.hashes;
	int16		length;
	bool		by_value;
	char		alignment;
	int			count = 0;
	int			i;

	for (i = 0; i < call->count; i++)
	{
		const uint64_t *found = bsearch(&call->hashes[i], sorted->values, sorted->count,
										sizeof(uint64_t), fav_compare_hashes);
		bool	   *is_new = &call->change.is_new[found - sorted->values];

		CHECK_FOR_INTERRUPTS();
		if (*is_new)
			call->elements[count++] = call->elements[i];
		*is_new = false;
	}
	get_typlenbyvalalign(type, &length, &by_value, &alignment);
	return PointerGetDatum(construct_array(call->elements, count, type, length, by_value,
										   alignment));
}

/* fav_sink_add(levels, key, elements) */
Datum
fav_sink_add(PG_FUNCTION_ARGS)
{
	SinkCall	call = {0};

	begin_call(&call, fcinfo, FAV_ADD);
	if (call.count > 0 && fav_is_spread(call.attachment->levels))
		PG_RETURN_DATUM(call_on_shard(&call, "fav_sink_add", ""));
	call.change.is_new = palloc_extended(Max(1, call.change.hashes.count),
										 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	change(&call);
	PG_RETURN_DATUM(take_new(&call));
}

/* fav_sink_remove(levels, key, elements, exclude) */
Datum
fav_sink_remove(PG_FUNCTION_ARGS)
{
	SinkCall	call = {0};

	if (PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("exclude must not be null")));
	begin_call(&call, fcinfo, PG_GETARG_BOOL(3) ? FAV_EXCLUDE : FAV_REMOVE);
	if (call.count > 0 && fav_is_spread(call.attachment->levels))
		(void) call_on_shard(&call, "fav_sink_remove", PG_GETARG_BOOL(3) ? ", true" : ", false");
	else
		change(&call);
	PG_RETURN_VOID();
}
