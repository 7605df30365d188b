/*
 * deleted.h
 *		The deleted hashes of an editor.
 *
 * They are in a long ascending list, as in the value, and in a table of the hashes for
 * which the list is wrong, so that neither a delete nor its undoing moves the whole
 * list.  When there are many of those the table takes all hashes, and the list none.
 *
 * What was deleted lately is in a third place, in no order and unseen: it may be there
 * twice, or have been deleted before.  Only when somebody asks whether a hash is deleted
 * do these go to the table.  So a delete after the other does not wait for it.
 *
 * A hash stays deleted until it is added again, the slices are empty, or the filter is
 * built anew.  To look for those that no slice reports any more would be in vain: there
 * are none.
 */
#ifndef FAV_DELETED_H
#define FAV_DELETED_H

#include "filter.h"

/* Make room for so many, at most FAV_DEL_AT_ONCE, so that fav_editor_hide() cannot fail. */
extern FavStatus fav_editor_make_room_to_hide(FavEditor *editor, uint32_t count);

static inline FavStatus
fav_editor_prepare_hide(FavEditor *editor, uint32_t count)
{
	return editor->nfresh + count <= editor->fresh_room ? FAV_OK : fav_editor_make_room_to_hide(editor, count);
}

/* A hash is deleted now, if `really`.  It may have been before. */
static inline void
fav_editor_hide(FavEditor *editor, uint64_t hash, bool really)
{
	editor->fresh[editor->nfresh] = hash;
	editor->nfresh += really;
}

extern bool fav_editor_is_deleted(FavEditor *editor, uint64_t hash);

/* A hash that was deleted is no more. */
extern FavStatus fav_editor_unhide(FavEditor *editor, uint64_t hash);

/* None is deleted. */
extern void fav_editor_clear_deleted(FavEditor *editor);

/* Put all into the list. */
extern FavStatus fav_editor_list_deleted(FavEditor *editor);

#endif							/* FAV_DELETED_H */
