/*
 * editor.h
 *		Changing a filter: add, remove, exclude, flush, build, union.
 *
 * An editor starts from a filter, or from nothing.  It copies what it changes and borrows the
 * rest.  fav_editor_finish() gives the result as a filter to write.  Any number of changes can
 * be made before: the elements of an array are one edit.
 *
 * Every change either succeeds or leaves the set of elements as it was.
 */
#ifndef FAV_EDITOR_H
#define FAV_EDITOR_H

#include "filter.h"

/* A free slot of the hash table. */
#define FAV_FREE_SLOT		UINT64_MAX

/* The tombstones of an editor, see tombstones.c. */
typedef struct FavTombstones
{
	bool		is_short;		/* the list is short_list, newest first */
	bool		is_crowded;		/* the hash table has a long run of used slots */
	bool		is_free_flipped;	/* the hash that looks like a free slot is flipped, too */
	uint32_t	count;			/* of all tombstones, with the changes */
	uint32_t	nflipped;		/* hashes that the ascending list is wrong about */
	uint32_t	nslots;			/* home slots of the hash table; 0: there is none */
	uint64_t   *flipped;		/* the hash table */
	uint8_t    *own_list;		/* the list, if it was allocated for the editor */
	uint8_t		short_list[FAV_RECENT_MAX * 8];	/* filled from its end */
} FavTombstones;

typedef struct FavEditor
{
	FavFilter	filter;			/* as it is now; its tombstones are complete once finished */
	uint8_t    *own_blocks[FAV_MAX_DATED_SLICES];	/* writable; NULL: the slice is untouched */
	bool		changed;		/* anything at all, since it was opened */
	uint32_t	recent_max;		/* how many recent hashes are not flushed; FAV_RECENT_MAX */
	FavTombstones tombstones;
	FavRecentBits recent_bits;	/* of all that recent has, or had since it was empty */
	uint8_t		own_recent[FAV_RECENT_LIMIT * 8]; /* filled from its end */
	int32_t		periods[FAV_RECENT_LIMIT];	/* of the hashes in own_recent; 0 if not dated */
	uint8_t		own_runs[FAV_RECENT_LIMIT * FAV_RUN_SIZE];	/* made when the edit ends */
} FavEditor;

extern void fav_editor_new(FavEditor *editor, const FavParams *params);
extern void fav_editor_open(FavEditor *editor, const FavFilter *source);
extern FavStatus fav_editor_finish(FavEditor *editor, const FavFilter **result);
extern void fav_editor_close(FavEditor *editor);

extern bool fav_editor_contains(const FavEditor *editor, uint64_t hash);

/*
 * Add elements, one after the other, until one fails: to a dated filter in its newest period,
 * FAV_UNDATED if it has none.
 */
extern FavStatus fav_editor_add_many(FavEditor *editor, const uint64_t *hashes, size_t count);

static inline FavStatus
fav_editor_add(FavEditor *editor, uint64_t hash)
{
	return fav_editor_add_many(editor, &hash, 1);
}

/*
 * Add elements in a period, which must not be FAV_NO_PERIOD.  A new period makes the filter
 * forget.  Elements of an earlier period keep that, unless they have a later one already.  If they
 * would be forgotten by now, nothing happens.
 *
 * A filter that is not dated ignores the period.
 */
extern FavStatus fav_editor_add_many_at(FavEditor *editor, const uint64_t *hashes, size_t count,
										int32_t period);

static inline FavStatus
fav_editor_add_at(FavEditor *editor, uint64_t hash, int32_t period)
{
	return fav_editor_add_many_at(editor, &hash, 1, period);
}

/*
 * Remove an element that was added.  Removing what the filter does not contain changes
 * nothing.  Removing what was never added but looks present may clear bits of others, unless the
 * filter is dated or a stack of levels.
 */
extern FavStatus fav_editor_remove(FavEditor *editor, uint64_t hash);

/*
 * Exclude an element: it is absent from now on, whether it was ever added or not, until it is
 * added again.  Its hash becomes a tombstone and no bit is cleared, so no other element is
 * affected.  From then on a removal checks for a tombstone first: bits that report an
 * excluded element may all belong to others.
 */
extern FavStatus fav_editor_exclude(FavEditor *editor, uint64_t hash);

/* One after the other, until one fails. */
extern FavStatus fav_editor_remove_many(FavEditor *editor, const uint64_t *hashes, size_t count);
extern FavStatus fav_editor_exclude_many(FavEditor *editor, const uint64_t *hashes, size_t count);

/*
 * Hashes that ascend fall into one block of a slice after the other.  Added in that order, they
 * crowd a few blocks of a new slice, which reports far too much then.  So whoever has sorted
 * hashes adds them in steps of this size, modulo their number: that reaches each of them once.
 */
extern size_t fav_scatter_step(size_t count);

/* Where the i-th of `count` hashes is. */
static inline size_t
fav_scattered(size_t i, size_t step, size_t count)
{
	return (size_t) ((uint64_t) i * step % count);
}

/* Move recent into the slices now, not only when it is full. */
extern FavStatus fav_editor_flush(FavEditor *editor);

/*
 * A new editor with all of `hashes`, which are unique: one slice of exactly the right size, or
 * for params->capacity if that is more.  Up to FAV_RECENT_MAX hashes go to recent in their
 * order.  The order of more does not matter to the result, but ascending hashes fill block
 * after block and take less time.
 */
extern FavStatus fav_editor_build(FavEditor *editor, const FavParams *params,
								  const uint64_t *hashes, size_t count);

/*
 * Add to the editor's filter all that `other` holds.  FAV_MISMATCH if seed, region size, kind or
 * keep differ (but the short form fits any filter), FAV_TOO_MANY_SLICES if the slices of both do
 * not fit one chain.  On any failure the editor is as it was.
 */
extern FavStatus fav_editor_union(FavEditor *editor, const FavFilter *other);

/*
 * For the files of the editor
 */

/* Is the hash in recent? */
static inline bool
fav_editor_in_recent(const FavEditor *editor, uint64_t hash)
{
	return fav_recent_bits_may_contain(&editor->recent_bits, hash) &&
		fav_in_recent(&editor->filter, hash);
}

/* The position of a hash that is in the list. */
static inline uint32_t
fav_list_position(const uint8_t *list, uint64_t hash)
{
	uint32_t	i = 0;

	while (fav_load64(list + 8 * i) != hash)
		i++;
	return i;
}

/* The periods of the recent hashes, in their order. */
static inline const int32_t *
fav_editor_periods(const FavEditor *editor)
{
	return editor->periods + FAV_RECENT_LIMIT - editor->filter.nrecent;
}

/* Add an element to recent; its period may already be forgotten. */
extern FavStatus fav_editor_put_recent(FavEditor *editor, uint64_t hash, int32_t period);

/* Drop this many recent hashes, beginning with the one at `from`. */
extern void fav_editor_drop_recent(FavEditor *editor, uint32_t from, uint32_t count);

/* Make slice i writable. */
extern FavStatus fav_editor_own_slice(FavEditor *editor, uint32_t i);

/* Drop slice i. */
extern void fav_editor_drop_slice(FavEditor *editor, uint32_t i);

/* Start from the tombstones of editor->filter; release all memory. */
extern void fav_tombstones_open(FavEditor *editor, uint8_t *own_list);
extern void fav_tombstones_close(FavEditor *editor);

extern bool fav_editor_has_tombstone(const FavEditor *editor, uint64_t hash);

/* Add a tombstone, if there is none: the slices have an element less. */
extern FavStatus fav_tombstones_add(FavEditor *editor, uint64_t hash);

/* Remove a tombstone that is there. */
extern FavStatus fav_tombstones_remove(FavEditor *editor, uint64_t hash);

/* The same for an element that is added: the slices have it again if they report it. */
static inline FavStatus
fav_editor_revive(FavEditor *editor, uint64_t hash)
{
	FavStatus	status = fav_tombstones_remove(editor, hash);

	if (status == FAV_OK && fav_slices_report(&editor->filter, hash))
		fav_count_in(&editor->filter);
	return status;
}

/* Replace all tombstones by `list`: ascending, from fav_alloc(), and the editor's from now on. */
extern void fav_tombstones_replace(FavEditor *editor, uint8_t *list, uint32_t count);

/* The editor was copied to another place, after a union made all its lists. */
extern void fav_tombstones_moved(FavEditor *editor);

/* Reorder the list if the number of slices requires it. */
extern void fav_tombstones_reorder(FavEditor *editor);

/* Merge all changes into the list of editor->filter. */
extern FavStatus fav_tombstones_merge(FavEditor *editor);

/* Memory for a list of hashes. */
extern FavStatus fav_new_list(uint64_t count, uint8_t **list);

/* Up to three ascending lists as one.  Begins as zeros. */
typedef struct FavMerge
{
	uint32_t	nlists;
	uint32_t	npassed;
	const uint8_t *at[3];		/* what is left of each list */
	const uint8_t *end[3];
	uint8_t		copies[3][FAV_RECENT_MAX * 8];	/* of short lists, sorted */
} FavMerge;

/* The next list: the tombstones of a filter. */
extern void fav_merge_tombstones(FavMerge *merge, const FavFilter *filter);

/* The next hash.  Returns which lists have it, as bits; 0 at the end. */
extern uint32_t fav_merge_next(FavMerge *merge, uint64_t *hash);

#endif							/* FAV_EDITOR_H */
