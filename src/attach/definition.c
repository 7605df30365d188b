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
 * This file reads catalogs only.  It opens no table of a user, runs no query, and waits for no
 * lock.
 */
#include "attach/catalogs.h"
#include "attach/definition.h"
#include "attach/spread.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_trigger.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

/*
 * The levels table
 */

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

Datum
fav_make_recent(const FavParams *params)
{
	FavEditor	editor;

	fav_check_params(params);
	fav_editor_new(&editor, params);
	return fav_finish_edit(&editor);
}

/* The arguments that are not used here are for those who read the expression. */
static Datum
make_recent(FunctionCallInfo fcinfo, int64 keep)
{
	FavParams	params = fav_default_params();
	int64		period;

	params.error_rate = PG_GETARG_FLOAT8(1);
	params.seed = (uint64_t) PG_GETARG_INT64(2);
	fav_set_keep(Max(0, keep), &params, &period);
	return fav_make_recent(&params);
}

/* fav_recent(source, error_rate, seed, share): an empty filter */
FAV_FUNCTION(fav_recent, make_recent(fcinfo, 0));

/* fav_sink_recent(source, error_rate, seed, keep): an empty filter of a sink; keep in seconds */
FAV_FUNCTION(fav_sink_recent, make_recent(fcinfo, PG_GETARG_INT64(3)));

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

/*
 * Read the part of an attachment that the levels table says.  False if the relation is not a levels
 * table.
 */
bool
fav_read_definition(Oid schema, Oid levels, FavAttachment *definition)
{
	Oid			types[4] = {REGCLASSOID, FLOAT8OID, INT8OID, INT4OID};
	Oid			sink_types[4] = {REGCLASSOID, FLOAT8OID, INT8OID, INT8OID};
	Node	   *expression = read_default(levels, FAV_LEVELS_RECENT);
	Datum		values[4] = {0};
	Oid			function;
	ListCell   *cell;
	int			i = 0;

	memset(definition, 0, sizeof(*definition));
	definition->schema = schema;
	definition->levels = levels;
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

/*
 * The table that a trigger names by text; InvalidOid if there is none, or if that is not a
 * qualified name.  Anybody may have made the trigger, and those who look at it must not get an
 * error.
 */
static Oid
find_named(Datum name)
{
	List	   *parts;
	Oid			schema;

	if (!SplitIdentifierString(text_to_cstring(DatumGetTextPP(name)), '.', &parts) ||
		list_length(parts) != 2)
		return InvalidOid;
	schema = get_namespace_oid(linitial(parts), true);
	return OidIsValid(schema) ? get_relname_relid(lsecond(parts), schema) : InvalidOid;
}

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
	if (IsA(node, Const) && !((Const *) node)->constisnull)
	{
		const Const *table = (const Const *) node;

		if (table->consttype == REGCLASSOID)
			walk->when->named = DatumGetObjectId(table->constvalue);
		else if (table->consttype == TEXTOID)
			walk->when->named = find_named(table->constvalue);
		walk->nrelations += table->consttype == REGCLASSOID || table->consttype == TEXTOID;
	}
	else if (IsA(node, Var))
	{
		AttrNumber *columns[] = {&walk->when->key, &walk->when->element, &walk->when->at};
		AttrNumber	number = ((Var *) node)->varattno;
		int			i = 0;

		/* the first one that is free, unless one has this number */
		while (i < (int) lengthof(columns) && *columns[i] != InvalidAttrNumber &&
			   *columns[i] != number)
			i++;
		if (i < (int) lengthof(columns))
			*columns[i] = number;

		/* system columns and whole rows are never a key or an element */
		walk->is_strange |= number <= 0;
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
read_trigger(const FavScan *scan, HeapTuple row, bool is_of_rows)
{
	Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(row);
	FavTrigger *trigger = palloc0(sizeof(FavTrigger));
	bool		isnull;
	Datum		when = fav_row_column(scan, row, Anum_pg_trigger_tgqual, &isnull);

	if (isnull || !fav_read_when(form->tgrelid, TextDatumGetCString(when), is_of_rows,
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

/* Our triggers on a relation, or with InvalidOid on all; a list of FavTrigger. */
List *
fav_read_triggers(Oid schema, Oid relation)
{
	Oid			collect = fav_find_function(schema, "fav_collect", 0, NULL);
	Oid			reconcile = fav_find_function(schema, "fav_reconcile", 0, NULL);
	List	   *triggers = NIL;
	HeapTuple	row;
	FavScan		scan;

	if (OidIsValid(relation))
		fav_begin_scan(&scan, TriggerRelationId, TriggerRelidNameIndexId, Anum_pg_trigger_tgrelid,
					   relation);
	else
		fav_begin_scan_of_all(&scan, TriggerRelationId);
	while (HeapTupleIsValid(row = fav_next_row(&scan)))
	{
		Oid			function = ((Form_pg_trigger) GETSTRUCT(row))->tgfoid;
		FavTrigger *trigger = function != collect && function != reconcile ? NULL :
			read_trigger(&scan, row, function == collect);

		if (trigger != NULL)
			triggers = lappend(triggers, trigger);
	}
	fav_end_scan(&scan);
	return triggers;
}
