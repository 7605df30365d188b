/*
 * citus.h
 *		Sources that Citus has spread over servers.  Only citus.c knows Citus.
 */
#ifndef FAV_CITUS_H
#define FAV_CITUS_H

#include "attach/attachment.h"

extern Oid	fav_shell(Oid relation);
extern Oid	fav_colocated_table(Oid relation, Oid table);
extern Oid	fav_find_named(Datum name);
extern bool fav_is_being_copied(Oid relation, Oid source);
extern const FavObstacle *fav_check_spread(Oid source, Oid levels);
extern void fav_refuse_unknown_shard(Oid relation, Oid source);
extern bool fav_has_citus(void);
extern bool fav_is_spread(Oid table);
extern void fav_refuse_shard(Oid source);
extern void fav_check_distribution(const FavAttachment *attachment);
extern void fav_distribute_levels(const FavAttachment *attachment, const char *key_name);
extern void fav_prepare_nodes(Oid source);
extern void fav_prepare_transaction(void);
extern void fav_refuse_distributed(Oid source, Oid function);
extern void fav_build_shards(const FavAttachment *attachment, bool rebuild);

#endif							/* FAV_CITUS_H */
