/*
 * triggers.c
 *		What triggers of ours say.
 *
 * The WHEN clause of a trigger names the levels table and the source as constants of type
 * regclass, and a row trigger's also the columns of key and element.  So PostgreSQL itself
 * follows renames, maps columns to partitions, keeps what is needed from being dropped,
 * and dumps all of it by name.  The trigger's arguments are the error rate and the seed.
 *
 * Only catalogs are read here.  Nobody's table is opened, and nobody waits for a lock.
 */
#include "attach.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/syscache.h"

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
	if (IsA(node, Const) && ((Const *) node)->consttype == REGCLASSOID &&
		!((Const *) node)->constisnull)
	{
		Oid			relation = DatumGetObjectId(((Const *) node)->constvalue);

		if (walk->nrelations == 0)
			walk->when->levels = relation;
		else if (walk->nrelations == 1)
			walk->when->source = relation;
		walk->nrelations++;
	}
	else if (IsA(node, Var))
	{
		AttrNumber	number = ((Var *) node)->varattno;

		/* system columns and whole rows are nobody's key or element */
		if (number <= 0)
			walk->is_strange = true;
		else if (walk->when->key == InvalidAttrNumber)
			walk->when->key = number;
		else if (walk->when->element == InvalidAttrNumber && number != walk->when->key)
			walk->when->element = number;
	}
	return expression_tree_walker(node, read_when_walker, walk);
}

/*
 * Read a WHEN clause.  The first table it names is levels and the second is the source;
 * the first column is the key and the next is the element.
 */
bool
fav_read_when(const char *expression, FavWhen *when)
{
	WhenWalk	walk = {when, 0, false};

	memset(when, 0, sizeof(*when));
	if (expression == NULL)
		return false;
	(void) read_when_walker(stringToNode(expression), &walk);
	return walk.nrelations == 2 && !walk.is_strange;
}

/* The arguments; false if they are not ours. */
bool
fav_read_arguments(int count, const char *first, const char *second, FavParams *params)
{
	char	   *end_of_rate;
	char	   *end_of_seed;

	*params = fav_default_params();
	if (count != 2)
		return false;
	params->error_rate = strtod(first, &end_of_rate);
	params->seed = (uint64_t) strtoll(second, &end_of_seed, 10);
	return *end_of_rate == '\0' && *end_of_seed == '\0';
}

static Oid
function_oid(Oid schema, const char *name)
{
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
						   PointerGetDatum(buildoidvector(NULL, 0)), ObjectIdGetDatum(schema));
}

/* A row of pg_trigger; NULL if it is none of ours. */
static FavTrigger *
read_trigger(HeapTuple tuple, TupleDesc descriptor)
{
	Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
	FavTrigger *trigger = palloc0(sizeof(FavTrigger));
	bool		isnull;
	Datum		value = heap_getattr(tuple, Anum_pg_trigger_tgqual, descriptor, &isnull);
	bytea	   *bytes;
	char	   *first;

	if (isnull || !fav_read_when(TextDatumGetCString(value), &trigger->when))
		return NULL;

	/* Arguments are strings one after the other, each with its end. */
	value = heap_getattr(tuple, Anum_pg_trigger_tgargs, descriptor, &isnull);
	bytes = DatumGetByteaPP(value);
	first = palloc0(VARSIZE_ANY_EXHDR(bytes) + 2);
	memcpy(first, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	if (!fav_read_arguments(form->tgnargs, first, first + strlen(first) + 1, &trigger->params))
		return NULL;
	trigger->relation = form->tgrelid;
	trigger->name = form->tgname;
	trigger->type = form->tgtype;
	trigger->is_enabled = form->tgenabled == TRIGGER_FIRES_ALWAYS;
	return trigger;
}

/* Our triggers on a relation, or on all; a list of FavTrigger. */
List *
fav_read_triggers(Oid schema, Oid relation)
{
	Oid			collect = function_oid(schema, "fav_collect");
	Oid			reconcile = function_oid(schema, "fav_reconcile");
	Relation	catalog = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	List	   *triggers = NIL;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relation));
	scan = systable_beginscan(catalog, TriggerRelidNameIndexId, OidIsValid(relation), NULL,
							  OidIsValid(relation) ? 1 : 0, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			function = ((Form_pg_trigger) GETSTRUCT(tuple))->tgfoid;
		FavTrigger *trigger = function == collect || function == reconcile ?
			read_trigger(tuple, RelationGetDescr(catalog)) : NULL;

		if (trigger != NULL)
		{
			trigger->is_of_rows = function == collect;
			triggers = lappend(triggers, trigger);
		}
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return triggers;
}
