/*
 * deleted.h
 *		The deleted hashes of an editor.
 *
 * They are in a long ascending list, as in the value, and in a table of the hashes for
 * which the list is wrong, so that neither a delete nor its undoing moves the whole
 * list.  When there are many of those the table takes all hashes, and the list none.
 *
 * A hash stays deleted until it is added again, the slices are empty, or the filter is
 * built anew.  To look for those that no slice reports any more would be in vain: what
 * is left of them are bits in marked regions, which are never cleared.
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

static inline bool
fav_editor_is_deleted(const FavEditor *editor, uint64_t hash)
{
	bool		listed = editor->filter.ndeleted > 0 &&
		fav_hashes_contain(editor->filter.deleted, editor->filter.ndeleted, hash);

	return listed != fav_table_contains(&editor->changed_deleted, hash);
}

/* Make room for so many changes, at most FAV_TABLE_AT_ONCE, so that fav_editor_hide() cannot fail. */
extern FavStatus fav_editor_prepare_hide(FavEditor *editor, uint32_t count);

/* A hash that was not deleted is so now. */
extern void fav_editor_hide(FavEditor *editor, uint64_t hash);

/* A hash that was deleted is no more. */
extern FavStatus fav_editor_unhide(FavEditor *editor, uint64_t hash);

/* None is deleted. */
extern void fav_editor_clear_deleted(FavEditor *editor);

/* Put all into the list. */
extern FavStatus fav_editor_list_deleted(FavEditor *editor);

#endif							/* FAV_DELETED_H */
