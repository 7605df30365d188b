/*
 * tombstones.h
 *		The tombstones of an editor.
 *
 * A value has its tombstones in one of two orders (fav_tombstones_are_sorted()).  A short
 * list in a value without slices has the newest first, and the editor changes it in place.
 * Any other list ascends.  The editor leaves an ascending list alone and keeps a hash table of
 * the hashes that the list is wrong about; finishing the edit merges the two.
 */
#ifndef FAV_TOMBSTONES_H
#define FAV_TOMBSTONES_H

#include "format.h"

struct FavEditor;

/* A free slot of the hash table. */
#define FAV_FREE_SLOT		UINT64_MAX

typedef struct FavTombstones
{
	bool		is_short;		/* the list is short_list, newest first */
	bool		is_crowded;		/* the hash table has a long run of used slots */
	uint32_t	count;			/* of all tombstones, with the changes */
	uint32_t	nflipped;		/* hashes that the ascending list is wrong about */
	uint32_t	nslots;			/* home slots of the hash table; 0: there is none */
	uint64_t   *flipped;		/* the hash table */
	bool		is_free_flipped;	/* the hash that looks like a free slot is flipped, too */
	uint8_t    *own_list;		/* the list, if it was allocated here */
	uint8_t		short_list[FAV_RECENT_MAX * 8];	/* filled from its end */
} FavTombstones;

/* Start from the tombstones of editor->filter; release all memory. */
extern void fav_tombstones_open(struct FavEditor *editor);
extern void fav_tombstones_close(struct FavEditor *editor);

extern bool fav_editor_has_tombstone(const struct FavEditor *editor, uint64_t hash);

/* Add a tombstone, if there is none: the slices have an element less. */
extern FavStatus fav_tombstones_add(struct FavEditor *editor, uint64_t hash);

/* Remove a tombstone that is there. */
extern FavStatus fav_tombstones_remove(struct FavEditor *editor, uint64_t hash);

/* Replace all tombstones by `list`: ascending, from fav_alloc(), and the editor's from now on. */
extern void fav_tombstones_replace(struct FavEditor *editor, uint8_t *list, uint32_t count);

/* The editor was copied to another place, after a union made all its lists. */
extern void fav_tombstones_moved(struct FavEditor *editor);

/* Reorder the list if the number of slices requires it. */
extern void fav_tombstones_reorder(struct FavEditor *editor);

/* Merge all changes into the list of editor->filter. */
extern FavStatus fav_tombstones_merge(struct FavEditor *editor);

/*
 * The tombstones of a filter in ascending order: its own list, or a sorted copy of a
 * short one in `copy`.
 */
extern const uint8_t *fav_sorted_tombstones(const FavFilter *filter,
											uint8_t copy[FAV_RECENT_MAX * 8]);

#endif							/* FAV_TOMBSTONES_H */
