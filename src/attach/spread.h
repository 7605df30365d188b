/*
 * spread.h
 *		The hook to an extension that spreads tables over servers.
 *
 * A table that is spread is an empty shell, on every server that queries can be sent to.  Its rows
 * are in shards: ordinary tables, to which triggers and column defaults of the shell are copied
 * word by word.  So what a shard says names shells, and means the shards beside it.
 *
 * Only citus.c knows which extension this is.
 */
#ifndef FAV_SPREAD_H
#define FAV_SPREAD_H

#include "attach/attachment.h"

typedef struct FavSpread
{
	/* The table that a shard belongs to; for any other relation, the relation. */
	Oid			(*shell) (Oid relation);

	/* Is it such a shell, whose rows are elsewhere? */
	bool		(*is_spread) (Oid table);

	/*
	 * The table that a trigger or a default of a relation means when it names a table: if the
	 * relation is a shard, the shard of the table beside it, or InvalidOid without one; otherwise
	 * the table.
	 */
	Oid			(*colocated_table) (Oid relation, Oid table);

	/* Why filters cannot be kept where they and their source are; NULL if they can. */
	const FavObstacle *(*check) (Oid source, Oid levels);

	/*
	 * May the trigger of a relation, which is none of the tables of a source, pass over a row?
	 * Raises an error if the relation may be about to become a shard of the source.
	 */
	void		(*check_stranger) (Oid relation, Oid source);

	/* Do filters of the source come to a relation in the way in which its rows come now? */
	bool		(*is_being_copied) (Oid relation, Oid source);

	/* Raise an error for what cannot be kept of a new source, before anything is changed. */
	void		(*check_new) (const FavAttachment *attachment);

	/* Raise an error for what can be asked of one shard only, or of none. */
	void		(*refuse_call) (Oid source, Oid function);
	void		(*refuse_probe) (Oid levels, const char *hint);

	/*
	 * What follows runs as the owner.  Let the commands that attach and detach filters be followed
	 * on other servers; let all that is sent there be part of this transaction.
	 */
	void		(*prepare_commands) (void);
	void		(*prepare_transaction) (void);

	/* Spread a new levels table as its source is.  `key` is the name of its first column. */
	void		(*distribute) (const FavAttachment *attachment, const char *key);

	/* CALL fav_build for each shard, in sessions of their own. */
	void		(*build_shards) (const FavAttachment *attachment, bool rebuild);
} FavSpread;

/* NULL if this database has no such extension. */
extern const FavSpread *fav_spread(void);

static inline Oid
fav_shell(Oid relation)
{
	const FavSpread *spread = fav_spread();

	return spread == NULL ? relation : spread->shell(relation);
}

static inline bool
fav_is_spread(Oid table)
{
	const FavSpread *spread = fav_spread();

	return spread != NULL && spread->is_spread(table);
}

/* Is it a shard? */
static inline bool
fav_is_shard(Oid relation)
{
	return fav_shell(relation) != relation;
}

static inline Oid
fav_colocated_table(Oid relation, Oid table)
{
	const FavSpread *spread = fav_spread();

	return spread == NULL ? table : spread->colocated_table(relation, table);
}

static inline bool
fav_is_being_copied(Oid relation, Oid source)
{
	const FavSpread *spread = fav_spread();

	return spread != NULL && spread->is_being_copied(relation, source);
}

static inline const FavObstacle *
fav_check_spread(Oid source, Oid levels)
{
	const FavSpread *spread = fav_spread();

	return spread == NULL ? NULL : spread->check(source, levels);
}

/* For the commands on a table that is spread; as the owner. */
static inline void
fav_prepare_nodes(Oid table)
{
	if (fav_is_spread(table))
		fav_spread()->prepare_commands();
}

#endif							/* FAV_SPREAD_H */
