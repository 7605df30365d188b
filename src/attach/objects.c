/*
 * objects.c
 *		The levels table and the triggers of an attachment.
 *
 * They are ordinary objects of the source's owner, made by ordinary DDL.
 */
#include "attach/catalogs.h"
#include "attach/columns.h"
#include "attach/definition.h"
#include "attach/interface.h"
#include "attach/objects.h"
#include "attach/queries.h"
#include "attach/rights.h"
#include "attach/spread.h"

#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

/*
 * Triggers
 */

/*
 * The triggers of an attachment on one table.  Their WHEN clauses name what fav_read_when()
 * looks for.  Elements are the same if their bytes are, whatever the collation says.
 */
#define LEVELS	"{'levels'}{::levels} IS NOT NULL"

typedef struct TriggerShape
{
	const char *suffix;			/* of its name */
	const char *event;
	bool		is_of_rows;
	int16		type;			/* bits that its tgtype has */
	const char *when;
} TriggerShape;

static const TriggerShape attachment_shapes[] = {
	{
		"insert", "AFTER INSERT", true, TRIGGER_TYPE_INSERT,
		LEVELS " AND NEW.{k} IS NOT NULL AND NEW.{e} IS NOT NULL"
	},
	{
		"update", "AFTER UPDATE", true, TRIGGER_TYPE_UPDATE,
		LEVELS " AND (OLD.{k}{::k} {=} NEW.{k}{::k} AND"
		" OLD.{e}{collate} OPERATOR(pg_catalog.=) NEW.{e}{collate}) IS NOT TRUE"
	},
	{
		"delete", "AFTER DELETE", true, TRIGGER_TYPE_DELETE,
		LEVELS " AND OLD.{k} IS NOT NULL AND OLD.{e} IS NOT NULL"
	},
	{
		"statement", "AFTER INSERT OR UPDATE OR DELETE", false,
		TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE, LEVELS
	},
	{
		"truncate", "AFTER TRUNCATE", false, TRIGGER_TYPE_TRUNCATE, LEVELS
	},
	{.suffix = NULL}
};

/*
 * Those of a sink.  The row trigger fires for every row, and after the BEFORE triggers of others,
 * which may change rows: triggers fire in the order of their names.
 */
static const TriggerShape sink_shapes[] = {
	{
		"insert", "BEFORE INSERT", true, TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_INSERT,
		LEVELS " AND (NEW.{k} IS NULL) IS NOT NULL AND (NEW.{e} IS NULL) IS NOT NULL{AND at}"
	},
	{
		"statement", "AFTER INSERT", false, TRIGGER_TYPE_INSERT, LEVELS
	},
	{
		/* by itself: Citus copies no trigger of TRUNCATE to shards */
		"truncate", "AFTER TRUNCATE", false, TRIGGER_TYPE_TRUNCATE, LEVELS
	},
	{
		"refuse", "BEFORE UPDATE OR DELETE", false,
		TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE, LEVELS
	},
	{.suffix = NULL}
};

/* The last one has no name. */
static const TriggerShape *
first_shape(const FavAttachment *attachment)
{
	return attachment->is_sink ? sink_shapes : attachment_shapes;
}

/* The trigger of this shape among those of a table; NULL if there is none. */
static const FavTrigger *
find_trigger(const List *triggers, Oid levels, const TriggerShape *shape)
{
	const ListCell *cell;

	foreach(cell, triggers)
	{
		const FavTrigger *trigger = lfirst(cell);

		if (trigger->when.levels == levels && trigger->is_of_rows == shape->is_of_rows &&
			(trigger->type & (shape->type | TRIGGER_TYPE_BEFORE)) == shape->type)
			return trigger;
	}
	return NULL;
}

/* Has the table a trigger of this name, or a partition to which row triggers are cloned? */
static bool
has_trigger_named(Oid relation, bool is_of_rows, const char *name)
{
	List	   *family = list_make1_oid(relation);
	ListCell   *cell;

	if (is_of_rows && get_rel_relkind(relation) == RELKIND_PARTITIONED_TABLE)
		family = find_all_inheritors(relation, NoLock, NULL);
	foreach(cell, family)
		if (OidIsValid(get_trigger_oid(lfirst_oid(cell), name, true)))
			return true;
	return false;
}

/*
 * The name of a trigger.  That of a levels table which has been renamed since may have the name
 * already: then a number follows.
 */
static char *
choose_trigger_name(Oid levels, Oid relation, const TriggerShape *shape)
{
	const char *base = get_rel_name(levels);
	bool		comes_last = (shape->type & TRIGGER_TYPE_BEFORE) != 0;
	const char *label = shape->suffix;
	char	   *name;
	int			number = 0;

	for (;;)
	{
		name = comes_last ? makeObjectName("zz", base, label) : makeObjectName(base, NULL, label);
		if (!has_trigger_named(relation, shape->is_of_rows, name))
			return name;
		label = psprintf("%s%d", shape->suffix, ++number);
	}
}

/* Returns its name. */
static const char *
create_trigger(const FavAttachment *attachment, Oid relation, const TriggerShape *shape)
{
	const char *name = choose_trigger_name(attachment->levels, relation, shape);

	fav_run(psprintf("CREATE TRIGGER %s %s ON %s FOR EACH %s WHEN (%s)"
					 " EXECUTE FUNCTION %s()",
					 quote_identifier(name), shape->event, fav_relation_name(relation),
					 shape->is_of_rows ? "ROW" : "STATEMENT", fav_query(attachment, shape->when),
					 fav_query(attachment, shape->is_of_rows ? "{fav}.fav_collect" :
							   "{fav}.fav_reconcile")));
	return name;
}

/*
 * All triggers of an attachment, as far as they are missing or not enabled.  PostgreSQL
 * clones the row triggers of a partitioned table to its partitions, also to those that are
 * created later.  They fire in replicas, too: filters that miss the changes of some sessions
 * are of no use.
 */
void
fav_create_triggers(const FavAttachment *attachment)
{
	List	   *family = find_all_inheritors(attachment->source, ShareRowExclusiveLock, NULL);
	const TriggerShape *shape;
	ListCell   *cell;

	fav_refuse_shard(attachment->source);
	foreach(cell, family)
	{
		Oid			relation = lfirst_oid(cell);
		List	   *triggers = fav_read_triggers(attachment->schema, relation);
		bool		gets_clones = relation != attachment->source &&
			get_rel_relispartition(relation);

		for (shape = first_shape(attachment); shape->suffix != NULL; shape++)
		{
			const FavTrigger *trigger = find_trigger(triggers, attachment->levels, shape);
			const char *name;

			if (trigger != NULL ? trigger->is_enabled : gets_clones && shape->is_of_rows)
				continue;
			name = trigger != NULL ? NameStr(trigger->name) :
				create_trigger(attachment, relation, shape);
			fav_run(psprintf("ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %s",
							 fav_relation_name(relation), quote_identifier(name)));
		}
	}
}

/* Drop the triggers of a table, or of all tables, that belong to an owner and to a levels table. */
static void
drop_triggers(Oid schema, Oid relation, Oid levels, Oid owner)
{
	ListCell   *cell;

	foreach(cell, fav_read_triggers(schema, relation))
	{
		const FavTrigger *trigger = lfirst(cell);

		/* clones go with the original */
		if (trigger->when.levels == levels && !trigger->is_clone &&
			fav_owner_of(trigger->relation) == owner)
			fav_run(psprintf("DROP TRIGGER %s ON %s", quote_identifier(NameStr(trigger->name)),
							 fav_relation_name(trigger->relation)));
	}
}

/*
 * Tables that were partitions or children of the source, and have left it with their rows: they
 * still have triggers of ours.  The filters have not been rebuilt since.  Tables of others do not
 * count.
 */
static List *
list_left(const FavAttachment *attachment)
{
	List	   *family = fav_list_family(attachment->source);
	List	   *left = NIL;
	ListCell   *cell;
	ListCell   *one;

	foreach(cell, fav_dependents(RelationRelationId, attachment->levels, TriggerRelationId))
	{
		Oid			relation = fav_relation_of(TriggerRelationId, lfirst_oid(cell),
											   Anum_pg_trigger_tgrelid);

		if (OidIsValid(relation) && !list_member_oid(family, relation) &&
			fav_owner_of(relation) == attachment->owner)
			foreach(one, fav_read_triggers(attachment->schema, relation))
				if (((FavTrigger *) lfirst(one))->when.levels == attachment->levels)
					left = list_append_unique_oid(left, relation);
	}
	return left;
}

/* Remove the triggers of tables that have left.  After a rebuild of all filters; as the owner. */
void
fav_free_left(const FavAttachment *attachment)
{
	ListCell   *cell;

	foreach(cell, list_left(attachment))
	{
		LockRelationOid(lfirst_oid(cell), AccessExclusiveLock);
		if (!fav_is_in_family(lfirst_oid(cell), attachment->source))
			drop_triggers(attachment->schema, lfirst_oid(cell), attachment->levels,
						  attachment->owner);
	}
}

/*
 * Are all triggers there and enabled, do all objects belong to one owner, do neither policies nor
 * rules come in between, and has no table left that is still in the filters?  A partition that was
 * made later has no statement trigger: its changes are seen, but not a TRUNCATE of it alone.  A
 * shard need not see that.
 */
bool
fav_is_active(const FavAttachment *attachment)
{
	bool		is_shard = fav_shell(attachment->source) != attachment->source;
	const TriggerShape *shape;
	FavObject	has;
	ListCell   *cell;

	if (!OidIsValid(fav_find_key_index(attachment)) || fav_is_overruled(attachment->levels) ||
		list_left(attachment) != NIL)
		return false;
	if (!is_shard &&
		(!fav_find_object(attachment->schema, attachment->levels, FAV_OBJECT_HAS, &has) ||
		 fav_list_owner_commands(attachment->schema, attachment->source,
								 attachment->levels) != NULL))
		return false;
	foreach(cell, fav_list_family(attachment->source))
	{
		List	   *triggers = fav_read_triggers(attachment->schema, lfirst_oid(cell));

		for (shape = first_shape(attachment); shape->suffix != NULL; shape++)
		{
			const FavTrigger *trigger = find_trigger(triggers, attachment->levels, shape);

			if (is_shard && shape->type == TRIGGER_TYPE_TRUNCATE)
				continue;
			if (trigger == NULL || !trigger->is_enabled)
				return false;
		}
	}
	return true;
}

/*
 * The levels table
 */

/* The exact type of a column, so that equality there is equality here. */
static char *
column_type(Oid relation, AttrNumber number)
{
	Oid			type;
	int32		modifier;
	Oid			collation;
	char	   *text;

	get_atttypetypmodcoll(relation, number, &type, &modifier, &collation);
	text = format_type_extended(type, modifier,
								FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
	return OidIsValid(collation) ?
		psprintf("%s COLLATE %s", text, generate_collation_name(collation)) : text;
}

/* The default of column recent, which says whose filters these are (definition.c). */
static const char *
define_recent(const FavAttachment *attachment)
{
	const char *definition =
		psprintf("(%s::pg_catalog.regclass, '%.17g'::pg_catalog.float8,"
				 " '" INT64_FORMAT "'::pg_catalog.int8", fav_query(attachment, "{'source'}"),
				 attachment->params.error_rate, (int64) attachment->params.seed);

	return attachment->is_sink ?
		psprintf("fav_sink_recent%s, '" INT64_FORMAT "'::pg_catalog.int8)", definition,
				 attachment->keep) :
		psprintf("fav_recent%s, '%d'::pg_catalog.int4)", definition, attachment->share);
}

/* The levels table, in the schema of the source.  `base` is the name of the attachment. */
void
fav_create_levels(FavAttachment *attachment, const char *base)
{
	Oid			source = attachment->source;
	Oid			namespace = get_rel_namespace(source);
	const char *fav = fav_query(attachment, "{fav}");
	const char *no_level = fav_query(attachment, "{no level}");
	const char *name = makeObjectName(base, "fav", "levels");
	const char *levels = quote_qualified_identifier(get_namespace_name(namespace), name);
	const char *key = NameStr(attachment->key.name);
	StringInfoData log;
	StringInfoData storage;
	int			i;

	if (attachment->share > 0)
		key = makeObjectName(key, NULL, "group");
	initStringInfo(&log);
	initStringInfo(&storage);
	for (i = 1; i <= FAV_LOG_PARTS && attachment->is_sink; i++)
	{
		const char *part = fav_own_column(psprintf("log%d", i), key);

		appendStringInfo(&log, ", %s pg_catalog.bytea", part);
		appendStringInfo(&storage, ", ALTER COLUMN %s SET STORAGE EXTERNAL", part);
	}
	fav_set_option("default_tablespace", "");
	fav_set_option("default_table_access_method", "heap");
	fav_run(psprintf("CREATE %sTABLE %s (%s %s PRIMARY KEY, %s %s.fav NOT NULL DEFAULT %s,"
					 " %s %s.fav NOT NULL DEFAULT %s, %s %s.fav NOT NULL DEFAULT %s.%s%s)"
					 " WITH (fillfactor = 80)",
					 get_rel_persistence(source) == RELPERSISTENCE_UNLOGGED ? "UNLOGGED " : "",
					 levels, quote_identifier(key), attachment->share > 0 ? "pg_catalog.int8" :
					 column_type(source, attachment->key.number),
					 fav_own_column("base", key), fav, no_level,
					 fav_own_column("middle", key), fav, no_level,
					 fav_own_column("recent", key), fav, fav, define_recent(attachment),
					 log.data));
	attachment->levels = get_relname_relid(name, namespace);

	/*
	 * Recent must stay in the row: that is what makes a write cheap.  Hashes, in the log, cannot be
	 * compressed.  In some schemas Citus distributes a table when it is made, and then this cannot
	 * be said any more; recent stays there anyhow, unless columns are added.
	 */
	if (!fav_is_spread(attachment->levels))
		fav_run(psprintf("ALTER TABLE %s ALTER COLUMN %s SET STORAGE PLAIN%s", levels,
						 fav_own_column("recent", key), storage.data));
	fav_run(psprintf("COMMENT ON TABLE %s IS %s", levels,
					 quote_literal_cstr(psprintf("filters of table %s, kept by %s",
												 quote_identifier(get_rel_name(source)),
												 attachment->is_sink ? "fav_sink" :
												 "fav_attach"))));
	fav_grant_to_readers(source, attachment->levels);
	if (fav_spread() != NULL)
		fav_spread()->distribute(attachment, key);
}

/*
 * Drop all of an attachment: its triggers, the view, the functions and the levels table, by
 * ordinary commands.  Any other dependent object makes this an error.  Children that have left the
 * source still have triggers.  If there is no levels table, those of the source that name none go.
 */
void
fav_drop_objects(Oid schema, Oid source, Oid levels)
{
	fav_prepare_nodes(source);
	drop_triggers(schema, OidIsValid(levels) ? InvalidOid : source, levels, fav_owner_of(source));
	if (!OidIsValid(levels))
		return;
	fav_drop_interface(schema, levels);
	fav_run(psprintf("DROP TABLE %s", fav_relation_name(levels)));
}
