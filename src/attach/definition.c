/*
 * definition.c
 *		Where an attachment is written down: in the levels table and in the triggers.
 *
 * The levels table says whose filters it has, and how they are made.  The default of its
 * column recent is an empty filter:
 *
 *		fav_recent('hidden_posts'::regclass, 0.01, 0, 0)
 *		fav_sink_recent('seen'::regclass, 0.01, 0, 2592000)
 *
 * Only the owner of the table can write that, it costs nothing when rows are written, and a
 * dump restores it together with the table.
 *
 * The WHEN clause of a trigger on the source names the levels table as a constant of type
 * regclass, and a row trigger's also the columns of key, element and time.  So PostgreSQL itself
 * follows renames, maps columns to partitions, keeps what is needed from being dropped, and
 * dumps all of it by name.  A trigger alone proves nothing: anybody can make one.
 *
 * On a distributed table (citus.c) the constant is of type text: there triggers are made
 * before the levels table when Citus adds a node.
 *
 * This file reads catalogs only.  It opens no table of a user, and waits for no lock.
 */
#include "attach/catalogs.h"
#include "attach/citus.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_trigger.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(fav_recent);
PG_FUNCTION_INFO_V1(fav_sink_recent);

/*
 * The levels table
 */

Datum
fav_make_recent(const FavParams *params)
{
	FavEditor	editor;

	fav_check_params(params);
	fav_editor_new(&editor, params);
	return fav_finish_edit(&editor);
}

/*
 * fav_recent(source, error_rate, seed, share): an empty filter.  Source and share are for
 * those who read the expression.
 */
Datum
fav_recent(PG_FUNCTION_ARGS)
{
	FavParams	params = fav_default_params();

	params.error_rate = PG_GETARG_FLOAT8(1);
	params.seed = (uint64_t) PG_GETARG_INT64(2);
	return fav_make_recent(&params);
}

/*
 * The filters of a sink that forgets count time in periods, of which `keep` has this many, or as
 * many as it has seconds.
 */
#define PERIODS		64

void
fav_set_keep(int64 seconds, FavParams *params, int64 *period)
{
	*period = Max(1, seconds / PERIODS);
	params->keep = (uint32_t) ((seconds + *period - 1) / *period);
}

/* fav_sink_recent(source, error_rate, seed, keep): an empty filter of a sink; keep in seconds */
Datum
fav_sink_recent(PG_FUNCTION_ARGS)
{
	FavParams	params = fav_default_params();
	int64		period;

	params.error_rate = PG_GETARG_FLOAT8(1);
	params.seed = (uint64_t) PG_GETARG_INT64(2);
	fav_set_keep(Max(0, PG_GETARG_INT64(3)), &params, &period);
	return fav_make_recent(&params);
}

/* The default of a column; NULL if it has none. */
static Node *
read_default(Oid relation, AttrNumber number)
{
	Node	   *expression = NULL;
	HeapTuple	row;
	FavScan		scan;

	fav_begin_scan(&scan, AttrDefaultRelationId, AttrDefaultIndexId, Anum_pg_attrdef_adrelid,
				   relation);
	while (HeapTupleIsValid(row = fav_next_row(&scan)))
	{
		bool		isnull;
		Datum		value = fav_row_column(&scan, row, Anum_pg_attrdef_adbin, &isnull);

		if (((Form_pg_attrdef) GETSTRUCT(row))->adnum == number && !isnull)
			expression = stringToNode(TextDatumGetCString(value));
	}
	fav_end_scan(&scan);
	return expression;
}

/* False if the relation is not a levels table. */
bool
fav_read_definition(Oid schema, Oid levels, FavDefinition *definition)
{
	Oid			types[4] = {REGCLASSOID, FLOAT8OID, INT8OID, INT4OID};
	Oid			sink_types[4] = {REGCLASSOID, FLOAT8OID, INT8OID, INT8OID};
	Node	   *expression = read_default(levels, FAV_LEVELS_RECENT);
	Datum		values[4] = {0};
	Oid			function;
	ListCell   *cell;
	int			i = 0;

	if (expression == NULL || !IsA(expression, FuncExpr))
		return false;
	function = ((FuncExpr *) expression)->funcid;
	definition->is_sink = function == fav_find_function(schema, "fav_sink_recent", 4, sink_types);
	if (!definition->is_sink && function != fav_find_function(schema, "fav_recent", 4, types))
		return false;
	foreach(cell, ((FuncExpr *) expression)->args)
	{
		Const	   *argument = lfirst(cell);

		if (!IsA(argument, Const) || argument->constisnull)
			return false;
		values[i++] = argument->constvalue;
	}
	definition->function = function;
	definition->source = fav_colocated_table(levels, DatumGetObjectId(values[0]));
	definition->params = fav_default_params();
	definition->params.error_rate = DatumGetFloat8(values[1]);
	definition->params.seed = (uint64_t) DatumGetInt64(values[2]);
	definition->share = definition->is_sink ? 0 : DatumGetInt32(values[3]);
	definition->keep = definition->is_sink ? DatumGetInt64(values[3]) : 0;
	fav_set_keep(definition->keep, &definition->params, &definition->period);
	return definition->share >= 0 && definition->keep >= 0;
}

/*
 * Triggers
 */

typedef struct WhenWalk
{
	FavWhen    *when;
	int			nrelations;
	bool		is_strange;
} WhenWalk;

static bool
read_when_walker(Node *node, WhenWalk *walk)
{
	if (node == NULL)
		return false;
	if (IsA(node, Const) && !((Const *) node)->constisnull &&
		(((Const *) node)->consttype == REGCLASSOID || ((Const *) node)->consttype == TEXTOID))
	{
		walk->when->named = ((Const *) node)->consttype == TEXTOID ?
			fav_find_named(((Const *) node)->constvalue) :
			DatumGetObjectId(((Const *) node)->constvalue);
		walk->nrelations++;
	}
	else if (IsA(node, Var))
	{
		AttrNumber	number = ((Var *) node)->varattno;

		/* system columns and whole rows are never a key or an element */
		if (number <= 0)
			walk->is_strange = true;
		else if (walk->when->key == InvalidAttrNumber)
			walk->when->key = number;
		else if (walk->when->element == InvalidAttrNumber && number != walk->when->key)
			walk->when->element = number;
		else if (walk->when->at == InvalidAttrNumber && number != walk->when->key &&
				 number != walk->when->element)
			walk->when->at = number;
	}
	return expression_tree_walker(node, read_when_walker, walk);
}

/*
 * Read the WHEN clause of a trigger of a relation.  The table it names is levels, the first
 * column is the key, the next is the element, and a third one of a sink is the time.  False if the
 * clause is none of ours.
 */
bool
fav_read_when(Oid relation, const char *expression, bool is_of_rows, FavWhen *when)
{
	WhenWalk	walk = {when, 0, false};

	memset(when, 0, sizeof(*when));
	if (expression == NULL)
		return false;
	(void) read_when_walker(stringToNode(expression), &walk);
	if (walk.nrelations != 1 || walk.is_strange ||
		(when->element != InvalidAttrNumber) != is_of_rows)
		return false;
	when->levels = fav_colocated_table(relation, when->named);
	return true;
}

/* A row of pg_trigger; NULL if it is none of ours. */
static FavTrigger *
read_trigger(HeapTuple tuple, TupleDesc descriptor, bool is_of_rows)
{
	Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
	FavTrigger *trigger = palloc0(sizeof(FavTrigger));
	bool		isnull;
	Datum		value = heap_getattr(tuple, Anum_pg_trigger_tgqual, descriptor, &isnull);

	if (isnull || !fav_read_when(form->tgrelid, TextDatumGetCString(value), is_of_rows,
								 &trigger->when))
		return NULL;
	trigger->relation = form->tgrelid;
	trigger->name = form->tgname;
	trigger->type = form->tgtype;
	trigger->is_enabled = form->tgenabled == TRIGGER_FIRES_ALWAYS;
	trigger->is_clone = OidIsValid(form->tgparentid);
	trigger->is_of_rows = is_of_rows;
	return trigger;
}

/*
 * Our triggers on a relation, or on all; a list of FavTrigger.  The scan ends before a clause is
 * read, which looks into other catalogs.
 */
List *
fav_read_triggers(Oid schema, Oid relation)
{
	Oid			collect = fav_find_function(schema, "fav_collect", 0, NULL);
	Oid			reconcile = fav_find_function(schema, "fav_reconcile", 0, NULL);
	Relation	catalog = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	List	   *tuples = NIL;
	List	   *triggers = NIL;
	HeapTuple	tuple;
	ListCell   *cell;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relation));
	scan = systable_beginscan(catalog, TriggerRelidNameIndexId, OidIsValid(relation), NULL,
							  OidIsValid(relation) ? 1 : 0, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			function = ((Form_pg_trigger) GETSTRUCT(tuple))->tgfoid;

		if (function == collect || function == reconcile)
			tuples = lappend(tuples, heap_copytuple(tuple));
	}
	systable_endscan(scan);
	foreach(cell, tuples)
	{
		FavTrigger *trigger;

		tuple = lfirst(cell);
		trigger = read_trigger(tuple, RelationGetDescr(catalog),
							   ((Form_pg_trigger) GETSTRUCT(tuple))->tgfoid == collect);
		if (trigger != NULL)
			triggers = lappend(triggers, trigger);
	}
	table_close(catalog, AccessShareLock);
	return triggers;
}
