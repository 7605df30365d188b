/*
 * attachment.c
 *		What the catalogs say of an attachment, and whether its filters can be kept.
 *
 * One function reads everything and checks everything.  The cache raises what it finds as
 * an error; the view fav_attachments says that the attachment is not active.  Only catalogs
 * are read.
 */
#include "attach/catalogs.h"
#include "attach/columns.h"
#include "attach/definition.h"
#include "attach/interface.h"
#include "attach/queries.h"
#include "attach/spread.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "commands/defrem.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define ATTACH_AGAIN	"Call fav_detach, then fav_attach."
#define MEND_SINK \
	"Undo the change. To call fav_detach, and then fav_sink, would destroy the filters."

static const char *
attach_again(const FavAttachment *attachment)
{
	return attachment->is_sink ? MEND_SINK : ATTACH_AGAIN;
}

/* Raise an obstacle as an error, if there is one. */
void
fav_raise_obstacle(const FavObstacle *found)
{
	if (found != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg_internal("%s", found->message), errhint("%s", found->hint)));
}

/* A relation may be dropped at this moment. */
static const char *
name_of(Oid relation)
{
	const char *name = get_rel_name(relation);

	return name != NULL ? name : "(dropped)";
}

/*
 * The source with its partitions and children, from the catalog alone: no lock is taken, and a
 * relation that is dropped at this moment is no error.  A partition whose detachment is pending is
 * not one of them: the source does not have its rows any more.
 */
List *
fav_list_family(Oid source)
{
	List	   *family = list_make1_oid(source);
	HeapTuple	row;
	FavScan		scan;
	int			i;

	for (i = 0; i < list_length(family); i++)
	{
		fav_begin_scan(&scan, InheritsRelationId, InheritsParentIndexId,
					   Anum_pg_inherits_inhparent, list_nth_oid(family, i));
		while (HeapTupleIsValid(row = fav_next_row(&scan)))
			if (!((Form_pg_inherits) GETSTRUCT(row))->inhdetachpending)
				family = list_append_unique_oid(family,
												((Form_pg_inherits) GETSTRUCT(row))->inhrelid);
		fav_end_scan(&scan);
	}
	return family;
}

bool
fav_is_in_family(Oid relation, Oid source)
{
	return list_member_oid(fav_list_family(source), relation);
}

/* Filters are attached to the table, not to a shard of it. */
void
fav_refuse_shard(Oid source)
{
	if (fav_is_shard(source))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a shard of table \"%s\"", get_rel_name(source),
						get_rel_name(fav_shell(source))),
				 errhint("Attach and detach filters of the distributed table.")));
}

/* The levels tables of a source. */
List *
fav_list_levels(Oid schema, Oid source)
{
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, fav_read_triggers(schema, source))
	{
		Oid			levels = ((FavTrigger *) lfirst(cell))->when.levels;
		FavAttachment definition;

		if (!list_member_oid(found, levels) &&
			fav_read_definition(schema, levels, &definition) &&
			(definition.source == source || fav_shell(definition.source) == source))
			found = lappend_oid(found, levels);
	}
	return found;
}

static bool
has_columns_of_levels(Oid relation, Oid schema)
{
	return fav_has_columns(relation, FAV_LEVELS_BASE, 3, fav_find_type(schema, "fav"));
}

/*
 * Does a trigger of a table name filters that are gone, or a levels table that has lost its
 * definition?  That is what undistribute_table leaves behind: it drops the source, with all that
 * depends on it, and makes another one with triggers that name the filters by text.
 */
bool
fav_is_remnant(Oid schema, const FavTrigger *trigger)
{
	Oid			levels = trigger->when.named;
	FavAttachment definition;

	return !OidIsValid(levels) ||
		(fav_owner_of(levels) == fav_owner_of(trigger->relation) &&
		 has_columns_of_levels(levels, schema) &&
		 !fav_read_definition(schema, levels, &definition));
}

/* A trigger of a table that names such filters; NULL if there is none. */
const FavTrigger *
fav_find_remnant(Oid schema, Oid source)
{
	ListCell   *cell;

	foreach(cell, fav_read_triggers(schema, source))
		if (fav_is_remnant(schema, lfirst(cell)))
			return lfirst(cell);
	return NULL;
}

/* `name` is that of the attachment, of its levels table, or of its view. */
static bool
have_name(Oid schema, Oid levels, const char *name)
{
	Oid			view;

	levels = fav_shell(levels);
	if (strcmp(name_of(levels), name) == 0 ||
		strcmp(name_of(levels), makeObjectName(name, "fav", "levels")) == 0)
		return true;
	view = fav_view_of_levels(schema, levels);
	return OidIsValid(view) && strcmp(name_of(view), name) == 0;
}

/* The levels table of a source; `name` may be NULL. */
Oid
fav_choose_levels(Oid schema, Oid source, const char *name)
{
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, fav_list_levels(schema, source))
		if (name == NULL || have_name(schema, lfirst_oid(cell), name))
			found = lappend_oid(found, lfirst_oid(cell));
	if (found == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 name == NULL ?
				 errmsg("table \"%s\" has no attached filters", get_rel_name(source)) :
				 errmsg("table \"%s\" has no attached filters \"%s\"", get_rel_name(source), name),
				 errhint("The view fav_attachments lists what is attached.")));
	if (list_length(found) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_PARAMETER),
				 errmsg("table \"%s\" has attached filters of %d names", get_rel_name(source),
						list_length(found)),
				 errhint("Choose one by its name, which view fav_attachments shows as filter.")));
	return linitial_oid(found);
}

/*
 * Checks
 */

/* A hint that gives all objects of an attachment one owner. */
static const char *
owner_hint(const FavAttachment *attachment, Oid relation)
{
	const char *commands = fav_list_owner_commands(attachment->schema, attachment->source,
												   attachment->levels);

	return relation == attachment->levels && commands != NULL ? commands :
		"Give both tables one owner with ALTER TABLE ... OWNER TO.";
}

/*
 * Triggers and index expressions of a partition with another owner would run with the rights
 * of the source's owner.  After a crash, unlogged filters of a permanent source would be empty.
 * Rows of a foreign table change without our triggers.
 */
static const FavObstacle *
check_relation(const FavAttachment *attachment, Oid relation)
{
	Oid			source = attachment->source;

	/* a partition may be dropped at this moment */
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relation)))
		return NULL;
	if (get_rel_relkind(relation) == RELKIND_FOREIGN_TABLE)
		return fav_obstacle("Detach it, and attach filters on the server that has the rows.",
							psprintf("table \"%s\" has rows of foreign table \"%s\" in it",
									 name_of(source), name_of(relation)));
	if (fav_owner_of(relation) != attachment->owner)
		return fav_obstacle(owner_hint(attachment, relation),
							psprintf("tables \"%s\" and \"%s\" have different owners",
									 name_of(source), name_of(relation)));
	if (get_rel_persistence(relation) != get_rel_persistence(attachment->levels))
		return fav_obstacle("All tables must be permanent, or all unlogged: use ALTER TABLE ... SET"
							" LOGGED or SET UNLOGGED.",
							psprintf("only one of tables \"%s\" and \"%s\" survives a crash",
									 name_of(relation), name_of(attachment->levels)));
	return NULL;
}

/* A generated column can change without a trigger, when its expression does. */
static const FavObstacle *
check_generated(Oid relation, const FavColumn *column)
{
	FavColumn	own;

	if (!fav_find_column(relation, NameStr(column->name), &own) || !own.is_generated)
		return NULL;
	return fav_obstacle("Attach a column that is not generated.",
						psprintf("column \"%s\" of table \"%s\" is generated", NameStr(own.name),
								 name_of(relation)));
}

static const FavObstacle *
check_family(const FavAttachment *attachment)
{
	const FavObstacle *found = check_relation(attachment, attachment->levels);
	ListCell   *cell;

	foreach(cell, fav_list_family(attachment->source))
	{
		Oid			relation = lfirst_oid(cell);

		if (found == NULL)
			found = check_relation(attachment, relation);
		if (found == NULL)
			found = check_generated(relation, &attachment->key);
		if (found == NULL)
			found = check_generated(relation, &attachment->element);
	}
	return found;
}

static const FavObstacle *
check_levels(const FavAttachment *attachment)
{
	Oid			levels = attachment->levels;
	Oid			type;
	int32		modifier;
	Oid			collation;

	if (get_rel_relkind(levels) == RELKIND_RELATION &&
		get_attname(levels, FAV_LEVELS_KEY, true) != NULL)
	{
		get_atttypetypmodcoll(levels, FAV_LEVELS_KEY, &type, &modifier, &collation);
		if (OidIsValid(type) && getBaseType(type) == attachment->filter_key_type->type_id &&
			collation == attachment->key.collation &&
			has_columns_of_levels(levels, attachment->schema) &&
			(!attachment->is_sink || fav_has_log(levels)))
			return NULL;
	}
	return fav_obstacle(attach_again(attachment),
						psprintf("table \"%s\" does not have the columns of a levels table of"
								 " table \"%s\"", name_of(levels), name_of(attachment->source)));
}

/*
 * The columns, by the row triggers of the source itself.  Anybody with the right to create
 * triggers on the source can name others, whose values may have other types.
 */
static const FavObstacle *
find_columns(FavAttachment *attachment)
{
	Oid			source = attachment->source;
	FavTrigger *first = NULL;
	ListCell   *cell;

	foreach(cell, fav_read_triggers(attachment->schema, source))
	{
		FavTrigger *trigger = lfirst(cell);

		if (!trigger->is_of_rows || trigger->when.levels != attachment->levels)
			continue;
		if (first == NULL)
			first = trigger;
		else if (trigger->when.key != first->when.key ||
				 trigger->when.element != first->when.element ||
				 trigger->when.at != first->when.at)
			return fav_obstacle("Drop the trigger that fav_attach did not make.",
								psprintf("triggers \"%s\" and \"%s\" of table \"%s\" name different"
										 " columns", NameStr(first->name), NameStr(trigger->name),
										 name_of(source)));
	}
	if (first == NULL || !fav_read_column(source, first->when.key, &attachment->key) ||
		!fav_read_column(source, first->when.element, &attachment->element))
		return fav_obstacle(attach_again(attachment),
							psprintf("table \"%s\" has lost its row triggers for \"%s\"",
									 name_of(source), name_of(attachment->levels)));
	if (attachment->is_sink && first->when.at != InvalidAttrNumber &&
		!fav_read_column(source, first->when.at, &attachment->at))
		return fav_obstacle(attach_again(attachment),
							psprintf("table \"%s\" has lost the column that says when",
									 name_of(source)));
	attachment->key_type = fav_key_type(attachment->key.type);
	attachment->filter_key_type = attachment->share == 0 ? attachment->key_type :
		fav_key_type(INT8OID);
	attachment->kind = fav_kind_of_row(attachment);
	if (attachment->key_type == NULL || attachment->kind == FAV_KIND_NONE)
		return fav_obstacle(attach_again(attachment),
							psprintf("columns \"%s\" and \"%s\" of table \"%s\" cannot be key and"
									 " element", NameStr(attachment->key.name),
									 NameStr(attachment->element.name), name_of(source)));
	return NULL;
}

/* A sink stores no rows, so other filters of its table would miss them. */
static const FavObstacle *
check_alone(const FavAttachment *attachment)
{
	ListCell   *cell;

	foreach(cell, fav_read_triggers(attachment->schema, attachment->source))
	{
		const FavTrigger *trigger = lfirst(cell);

		if (trigger->is_of_rows && trigger->when.levels != attachment->levels &&
			(attachment->is_sink || (trigger->type & TRIGGER_TYPE_BEFORE) != 0))
			return fav_obstacle("Call fav_detach for one of them.",
								psprintf("table \"%s\" is a sink and has other filters, too",
										 name_of(attachment->source)));
	}
	return NULL;
}

/*
 * Properties of its table that a sink cannot honour.  PostgreSQL checks rows when it stores them,
 * and so not those of a sink.  Each of these functions checks one row of a catalog.
 */

static const FavObstacle *
check_table(const FavAttachment *attachment, HeapTuple row)
{
	Form_pg_class form = (Form_pg_class) GETSTRUCT(row);

	if (form->relkind != RELKIND_RELATION || form->relispartition)
		return fav_obstacle("Use a table that is neither partitioned nor a partition.",
							psprintf("sink \"%s\" is partitioned, or a partition",
									 NameStr(form->relname)));
	if (list_length(fav_list_family(attachment->source)) > 1)
		return fav_obstacle("Use a table that no other table inherits from.",
							psprintf("sink \"%s\" has child tables", NameStr(form->relname)));
	if (form->relrowsecurity)
		return fav_obstacle("Disable row level security of the table.",
							psprintf("policies of sink \"%s\" cannot be checked: it stores no"
									 " rows", NameStr(form->relname)));
	return NULL;
}

/*
 * A generated column is computed when a row is stored, and so is not in a sink.  Nobody would see
 * that it is null, or not of its domain.
 */
static const FavObstacle *
check_column(const FavAttachment *attachment, HeapTuple row)
{
	Form_pg_attribute form = (Form_pg_attribute) GETSTRUCT(row);

	if (form->attisdropped || form->attgenerated == '\0' ||
		(!form->attnotnull && getBaseType(form->atttypid) == form->atttypid))
		return NULL;
	return fav_obstacle("Drop NOT NULL, and use the type of which the domain is one.",
						psprintf("generated column \"%s\" of table \"%s\" cannot be checked: a sink"
								 " stores no rows", NameStr(form->attname),
								 name_of(attachment->source)));
}

static const FavObstacle *
check_constraint(const FavAttachment *attachment, HeapTuple row)
{
	Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(row);

	if (form->contype != CONSTRAINT_CHECK && form->contype != CONSTRAINT_FOREIGN &&
		form->contype != CONSTRAINT_EXCLUSION)
		return NULL;
	return fav_obstacle("Drop the constraint.",
						psprintf("constraint \"%s\" of table \"%s\" cannot be checked: a sink"
								 " stores no rows", NameStr(form->conname),
								 name_of(attachment->source)));
}

/*
 * A sink fulfils a unique index that has both key and element, because it has each pair once, and
 * one that has only other columns, which are not stored.
 */
static const FavObstacle *
check_index(const FavAttachment *attachment, HeapTuple row)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(row);
	bool		has_key = false;
	bool		has_element = false;
	bool		has_expressions = false;
	int			i;

	for (i = 0; i < form->indnkeyatts; i++)
	{
		has_key |= form->indkey.values[i] == attachment->key.number;
		has_element |= form->indkey.values[i] == attachment->element.number;
		has_expressions |= form->indkey.values[i] == 0;
	}
	if (!form->indisexclusion &&
		(!form->indisunique || (has_key ? has_element : !has_element && !has_expressions)))
		return NULL;
	return fav_obstacle("Drop it, or make it one on the columns of key and element.",
						psprintf("index \"%s\" of table \"%s\" cannot be checked: a sink stores no"
								 " rows", name_of(form->indexrelid), name_of(attachment->source)));
}

/* A trigger of others must not miss rows because ours, which comes first, stores none. */
static const FavObstacle *
check_trigger(const FavAttachment *attachment, HeapTuple row)
{
	Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(row);
	const char *ours = "";
	ListCell   *cell;

	foreach(cell, fav_read_triggers(attachment->schema, attachment->source))
		if (((FavTrigger *) lfirst(cell))->is_of_rows)
			ours = NameStr(((FavTrigger *) lfirst(cell))->name);
	if (form->tgisinternal || form->tgenabled == TRIGGER_DISABLED ||
		!TRIGGER_FOR_INSERT(form->tgtype) ||
		(TRIGGER_FOR_ROW(form->tgtype) ?
		 !TRIGGER_FOR_AFTER(form->tgtype) && strcmp(NameStr(form->tgname), ours) <= 0 :
		 heap_attisnull(row, Anum_pg_trigger_tgnewtable, NULL)))
		return NULL;
	return fav_obstacle(psprintf("Drop it, or make it a BEFORE trigger with a name before \"%s\".",
								 ours),
						psprintf("trigger \"%s\" would see no rows of sink \"%s\"",
								 NameStr(form->tgname), name_of(attachment->source)));
}

static const struct
{
	Oid			catalog;
	Oid			index;
	AttrNumber	column;			/* of the catalog, with the OID of the table */
	const FavObstacle *(*check) (const FavAttachment *attachment, HeapTuple row);
}			sink_checks[] =
{
	{RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, check_table},
	{AttributeRelationId, AttributeRelidNumIndexId, Anum_pg_attribute_attrelid, check_column},
	{ConstraintRelationId, ConstraintRelidTypidNameIndexId, Anum_pg_constraint_conrelid,
	check_constraint},
	{IndexRelationId, IndexIndrelidIndexId, Anum_pg_index_indrelid, check_index},
	{TriggerRelationId, TriggerRelidNameIndexId, Anum_pg_trigger_tgrelid, check_trigger}
};

static const FavObstacle *
check_sink(const FavAttachment *attachment)
{
	const FavObstacle *found = NULL;
	HeapTuple	row;
	FavScan		scan;
	size_t		i;

	for (i = 0; i < lengthof(sink_checks) && attachment->is_sink && found == NULL; i++)
	{
		fav_begin_scan(&scan, sink_checks[i].catalog, sink_checks[i].index,
					   sink_checks[i].column, attachment->source);
		while (found == NULL && HeapTupleIsValid(row = fav_next_row(&scan)))
			found = sink_checks[i].check(attachment, row);
		fav_end_scan(&scan);
	}
	return found;
}

static const FavObstacle *(*const checks[]) (const FavAttachment *attachment) = {
	check_family, check_levels, check_alone, check_sink
};

/*
 * Read what the catalogs say of the filters in a levels table, as far as they do.  Returns
 * why these cannot be kept, or NULL.
 */
const FavObstacle *
fav_read_attachment(Oid schema, Oid levels, FavAttachment *attachment)
{
	const FavObstacle *found;
	const FavObstacle *spread;
	size_t		i;

	if (!fav_read_definition(schema, levels, attachment))
		return fav_obstacle(fav_has_log(levels) ? fav_hint_to_copy(levels) : ATTACH_AGAIN,
							psprintf("table \"%s\" does not say whose filters it has",
									 name_of(levels)));
	attachment->owner = fav_owner_of(attachment->source);
	found = find_columns(attachment);
	spread = fav_check_spread(attachment->source, levels);
	if (spread != NULL)
		found = spread;			/* this is why there are no columns */
	for (i = 0; i < lengthof(checks) && found == NULL; i++)
		found = checks[i](attachment);
	return found;
}
