/*
 * spread.h
 *		Tables that an extension has spread over servers.
 *
 * A table that is spread is an empty shell, on every server that queries can be sent to.  Its rows
 * are in shards: ordinary tables, to which triggers and column defaults of the shell are copied
 * word by word.  So what a shard says names shells, and means the shards beside it.
 *
 * Only citus.c knows which extension this is.  In a database without it no table is spread, and
 * everything here says so, or does nothing.
 */
#ifndef FAV_SPREAD_H
#define FAV_SPREAD_H

#include "attach/attachment.h"

/* Has this database the extension? */
extern bool fav_can_spread(void);

/* The table that a shard belongs to; for any other relation, the relation. */
extern Oid	fav_shell(Oid relation);

/* Is it such a shell, whose rows are elsewhere? */
extern bool fav_is_spread(Oid table);

/*
 * The table that a trigger or a default of a relation means when it names a table: if the relation
 * is a shard, the shard of the table beside it, or InvalidOid without one; otherwise the table.
 */
extern Oid	fav_colocated_table(Oid relation, Oid table);

/* Why filters cannot be kept where they and their source are; NULL if they can. */
extern const FavObstacle *fav_check_spread(Oid source, Oid levels);

/*
 * May the trigger of a relation, which is none of the tables of a source, pass over a row?  Raises
 * an error if the relation may be about to become a shard of the source.
 */
extern void fav_check_stranger(Oid relation, Oid source);

/* Do filters of the source come to a relation in the way in which its rows come now? */
extern bool fav_is_being_copied(Oid relation, Oid source);

/* Raise an error for what cannot be kept of a new source, before anything is changed. */
extern void fav_check_new_source(const FavAttachment *attachment);

/* Raise an error for what can be asked of one shard only, or of none. */
extern void fav_refuse_spread_call(Oid source, Oid function);
extern void fav_refuse_spread_probe(Oid levels, const char *hint);

/*
 * What follows runs as the owner.  Let the commands that attach and detach filters of a table be
 * followed on other servers; let all that is sent there be part of this transaction.
 */
extern void fav_prepare_nodes(Oid table);
extern void fav_prepare_transaction(void);

/* Spread a new levels table as its source is.  `key` is the name of its first column. */
extern void fav_distribute(const FavAttachment *attachment, const char *key);

/* CALL fav_build for each shard, in sessions of their own. */
extern void fav_build_shards(const FavAttachment *attachment, bool rebuild);

/* Is it a shard? */
static inline bool
fav_is_shard(Oid relation)
{
	return fav_shell(relation) != relation;
}

#endif							/* FAV_SPREAD_H */
