/*
 * deleted.h
 *		The deleted hashes of an editor.
 *
 * They are in a long ascending list and a short ascending one, `fresh`, of the
 * hashes for which the long one is wrong, so that neither a delete nor its undoing
 * moves the whole list.
 *
 * An editor that fills `fresh`, and so is likely to go on, makes a bitmap of all
 * hashes in both lists, to pass over the search for most that are in neither.
 */
#ifndef FAV_DELETED_H
#define FAV_DELETED_H

#include "filter.h"

/*
 * A delete that left all but one bit of the element set is remembered in deleted
 * too: others soon set that one bit again, and the element would look present.
 * (With one bit an element, no delete leaves anything.)  Measured in
 * docs/ALGORITHM.md.
 */
static inline bool
fav_is_close(const FavSlice *slice, uint32_t missing)
{
	return missing <= 1 && missing < slice->k;
}

/* *in_long: is it in the long list? */
static inline bool
fav_editor_is_deleted(const FavEditor *editor, uint64_t hash, bool *in_long)
{
	*in_long = false;
	if (editor->sketch_of_deleted != NULL)
	{
		uint64_t	bit = hash >> editor->sketch_shift;

		if (!(editor->sketch_of_deleted[bit / 64] >> bit % 64 & 1))
			return false;
	}
	*in_long = fav_hashes_contain(editor->filter.deleted, editor->filter.ndeleted, hash);
	return *in_long != fav_hashes_contain(editor->fresh, editor->nfresh, hash);
}

/*
 * Make room for one more deleted hash, so that fav_editor_toggle_deleted() cannot
 * fail; merge and sweep, if it is time.
 */
extern FavStatus fav_editor_prepare_deleted(FavEditor *editor);

/* The hash is deleted now, or no more: fresh, which has room, gets or loses it. */
extern void fav_editor_toggle_deleted(FavEditor *editor, uint64_t hash, bool in_long);

/* Take a hash out of deleted.  *found says whether it was there. */
extern FavStatus fav_editor_forget_deleted(FavEditor *editor, uint64_t hash, bool *found);

/* Make one list of both. */
extern FavStatus fav_editor_merge_deleted(FavEditor *editor);

extern void fav_editor_drop_sketch(FavEditor *editor);

#endif							/* FAV_DELETED_H */
