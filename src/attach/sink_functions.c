/*
 * sink_functions.c
 *		What the functions of a sink call: <sink>_add and <sink>_remove.
 *
 * They are SQL functions that fav_sink makes, with the types of the sink.  What they
 * call has no type of a sink but that of the elements, and takes the key in a row.  So each
 * argument has exactly the type that is declared here, and no function of a stranger can fit
 * better.
 */
#include "attach/attachment_cache.h"
#include "attach/collect.h"
#include "attach/columns.h"
#include "attach/definition.h"
#include "attach/interface.h"
#include "attach/queries.h"
#include "attach/rows.h"
#include "attach/sink.h"
#include "attach/spread.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
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
may_insert(Oid source, AttrNumber number)
{
	return pg_attribute_aclcheck(source, number, GetUserId(), ACL_INSERT) == ACLCHECK_OK;
}

/*
 * As for the statement in whose place the function is called.  The columns of key and element are
 * those of the row trigger of the sink.
 */
static void
check_right(Oid schema, Oid source, Oid levels, AclMode right)
{
	AclResult	result = pg_class_aclcheck(source, GetUserId(), right);
	ListCell   *cell;

	foreach(cell, result == ACLCHECK_OK || right != ACL_INSERT ? NIL :
			fav_read_triggers(schema, source))
	{
		const FavTrigger *trigger = lfirst(cell);

		if (trigger->is_of_rows && trigger->when.levels == levels &&
			may_insert(source, trigger->when.key) && may_insert(source, trigger->when.element))
			result = ACLCHECK_OK;
	}
	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(get_rel_relkind(source)),
					   get_rel_name(source));
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

/* The source of a levels table, if that is one of a sink and the caller has a right on it. */
static Oid
check_sink(Oid schema, Oid levels, AclMode right)
{
	FavAttachment definition;

	if (!fav_read_definition(schema, levels, &definition) || !definition.is_sink ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(definition.source)))
		raise_no_sink(levels);
	check_right(schema, definition.source, levels, right);
	return definition.source;
}

/*
 * The sink of a levels table, for those who have a right on it.  Rights and definition are read
 * again after the locks: somebody may have changed them meanwhile.
 */
static FavAttachment *
open_sink(Oid schema, Oid levels, AclMode right)
{
	Oid			source = check_sink(schema, levels, right);

	LockRelationOid(source, RowExclusiveLock);
	LockRelationOid(levels, RowExclusiveLock);
	if (check_sink(schema, levels, right) != source)
		raise_no_sink(levels);
	return fav_attachment_of_levels(schema, levels);
}

/*
 * Elements
 */

/* What checks and converts arguments as an INSERT into their column would. */
typedef struct ValueCheck
{
	Oid			type;			/* of the column, or the base type of its domain */
	Oid			argument_type;
	ExprState  *assignment;
	ExprContext *context;		/* of the assignment, and for its results */
	EState	   *executor;
} ValueCheck;

static void
begin_check(ValueCheck *check, Oid source, const FavColumn *column)
{
	CaseTestExpr *argument = makeNode(CaseTestExpr);
	Oid			target;
	int32		modifier;
	Oid			collation;

	check->type = column->type;
	check->argument_type = fav_argument_type(column);
	argument->typeId = check->argument_type;
	argument->typeMod = -1;
	argument->collation = get_typcollation(check->argument_type);
	get_atttypetypmodcoll(source, column->number, &target, &modifier, &collation);
	check->executor = CreateExecutorState();
	check->context = GetPerTupleExprContext(check->executor);
	check->assignment = ExecPrepareExpr((Expr *)
		coerce_to_target_type(NULL, (Node *) argument, check->argument_type, target, modifier,
							  COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1), check->executor);
}

/* An argument as the column would have it, until the next one is checked. */
static Datum
check_value(const ValueCheck *check, Datum value)
{
	bool		isnull;

	/* the cast would not say which value it was */
	if ((check->type == INT2OID && DatumGetInt64(value) != (int16) DatumGetInt64(value)) ||
		(check->type == INT4OID && DatumGetInt64(value) != (int32) DatumGetInt64(value)))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value " INT64_FORMAT " is out of range for type %s",
						DatumGetInt64(value), format_type_be(check->type))));
	ResetExprContext(check->context);
	check->context->caseValue_datum = value;
	check->context->caseValue_isNull = false;
	return ExecEvalExprSwitchContext(check->assignment, check->context, &isnull);
}

/* The key, in a row of its own; it has the type that the function of the sink takes. */
static Datum
read_key(const FavAttachment *attachment, FunctionCallInfo fcinfo)
{
	bool		isnull = PG_ARGISNULL(1);
	Datum		key = (Datum) 0;
	ValueCheck	check;

	begin_check(&check, attachment->source, &attachment->key);
	if (!isnull)
	{
		HeapTupleHeader row = PG_GETARG_HEAPTUPLEHEADER(1);
		TupleDesc	descriptor = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row),
														HeapTupleHeaderGetTypMod(row));
		bool		is_key = descriptor->natts == 1 &&
			TupleDescAttr(descriptor, 0)->atttypid == check.argument_type;

		ReleaseTupleDesc(descriptor);
		if (!is_key)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("key of sink \"%s\" is not a row of type %s",
							get_rel_name(attachment->source),
							format_type_be(check.argument_type)),
					 errhint("Call the function that fav_sink has made.")));
		key = GetAttributeByNum(row, 1, &isnull);
	}
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("null value in column \"%s\" of sink \"%s\"",
						NameStr(attachment->key.name), get_rel_name(attachment->source))));
	key = datumCopy(check_value(&check, key), attachment->key_type->typbyval,
					attachment->key_type->typlen);
	FreeExecutorState(check.executor);
	return key;
}

/* Arrays of more dimensions are taken as unnest() does: element by element. */
static void
read_elements(SinkCall *call)
{
	FavAttachment *attachment = call->attachment;
	Oid			type = ARR_ELEMTYPE(call->array);
	ValueCheck	check;
	ArrayIterator iterator = array_create_iterator(call->array, 0, NULL);
	int			count = ArrayGetNItems(ARR_NDIM(call->array), ARR_DIMS(call->array));
	Datum		element;
	bool		isnull;

	begin_check(&check, attachment->source, &attachment->element);
	if (type != check.argument_type)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("elements of sink \"%s\" are not of type %s",
						get_rel_name(attachment->source), format_type_be(type))));
	call->elements = palloc(count * sizeof(Datum));
	call->hashes = palloc(count * sizeof(uint64_t));
	while (array_iterate(iterator, &element, &isnull))
	{
		CHECK_FOR_INTERRUPTS();
		if (isnull)
			continue;
		call->hashes[call->count] =
			fav_hash_row(attachment, call->key, check_value(&check, element));
		call->elements[call->count] = element;
		fav_append_hash(&call->change.hashes, call->hashes[call->count]);
		call->count++;
	}
	FreeExecutorState(check.executor);
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

	fav_refuse_null(PG_ARGISNULL(0), "levels");
	call->attachment = open_sink(schema, PG_GETARG_OID(0),
								 action == FAV_ADD ? ACL_INSERT : ACL_DELETE);
	call->key = read_key(call->attachment, fcinfo);
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
	Oid			types[2] = {attachment->key.type, get_array_type(ARR_ELEMTYPE(call->array))};
	Datum		values[2] = {call->key, PointerGetDatum(call->array)};
	ErrorContextCallback callback;
	Form_pg_attribute column;
	Datum		result;
	bool		isnull;
	FavRole		role;
	int			tries = 0;

	callback.callback = advise_on_roles;
	callback.arg = GetUserNameFromId(attachment->owner, false);
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	fav_become_owner(&role, attachment->owner);
	fav_spread()->prepare_transaction();
	for (;;)
	{
		(void) fav_execute_in(GetTransactionSnapshot(), insert, SPI_OK_INSERT, 1, types, values);
		if (fav_execute_in(GetTransactionSnapshot(), select, SPI_OK_SELECT, 2, types, values) > 0)
			break;
		fav_count_try(attachment, &tries);	/* the row was deleted again before it was found */
	}
	column = TupleDescAttr(SPI_tuptable->tupdesc, 0);
	result = SPI_datumTransfer(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
											 &isnull), column->attbyval, column->attlen);
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
	Oid			type = fav_argument_type(&call->attachment->element);
	const FavHashes *sorted = &call->change.hashes;
	ArrayBuildState *result = initArrayResult(type, CurrentMemoryContext, false);
	int			i;

	for (i = 0; i < call->count; i++)
	{
		bool	   *is_new = &call->change.is_new[fav_find_hash(sorted, call->hashes[i]) -
												  sorted->values];

		CHECK_FOR_INTERRUPTS();
		if (*is_new)
			(void) accumArrayResult(result, call->elements[i], false, type, CurrentMemoryContext);
		*is_new = false;
	}
	return makeArrayResult(result, CurrentMemoryContext);
}

/* fav_sink_add(levels, key, elements) */
Datum
fav_sink_add(PG_FUNCTION_ARGS)
{
	SinkCall	call = {0};

	begin_call(&call, fcinfo, FAV_ADD);
	if (call.count > 0 && fav_is_spread(call.attachment->levels))
		PG_RETURN_DATUM(call_on_shard(&call, "fav_sink_add", ""));
	call.change.is_new = palloc0(call.change.hashes.count);
	change(&call);
	PG_RETURN_DATUM(take_new(&call));
}

/* fav_sink_remove(levels, key, elements, exclude) */
Datum
fav_sink_remove(PG_FUNCTION_ARGS)
{
	SinkCall	call = {0};

	fav_refuse_null(PG_ARGISNULL(3), "exclude");
	begin_call(&call, fcinfo, PG_GETARG_BOOL(3) ? FAV_EXCLUDE : FAV_REMOVE);
	if (call.count > 0 && fav_is_spread(call.attachment->levels))
		(void) call_on_shard(&call, "fav_sink_remove", PG_GETARG_BOOL(3) ? ", true" : ", false");
	else
		change(&call);
	PG_RETURN_VOID();
}
