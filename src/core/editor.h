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
#include "tombstones.h"

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

/* Add an element: to a dated filter in its newest period, FAV_UNDATED if it has none. */
extern FavStatus fav_editor_add(FavEditor *editor, uint64_t hash);

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
extern FavStatus fav_editor_add_many(FavEditor *editor, const uint64_t *hashes, size_t count);
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

/* Move the recent hashes of one span into the slices: of that which has most of them. */
extern FavStatus fav_editor_flush_span(FavEditor *editor);

/* Make slice i writable. */
extern FavStatus fav_editor_own_slice(FavEditor *editor, uint32_t i);

/* Drop slice i. */
extern void fav_editor_drop_slice(FavEditor *editor, uint32_t i);

#endif							/* FAV_EDITOR_H */
