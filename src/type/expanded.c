/*
 * expanded.c
 *		The expanded object of type fav.
 *
 * Every change of a flat value copies the value, so a loop of changes takes quadratic time.  An
 * expanded object keeps its editor open instead.  PL/pgSQL keeps the object as the value of a
 * variable.  In f := fav_add(f, x) it passes a read-write pointer, so the copy is saved.
 * Flattening finishes the edit, but the editor remains open for further changes.
 *
 * A variable must keep its value if a change fails.  Three measures ensure that:
 *
 * - Elements are hashed before the first change.  Wrong kinds and invalid text fail there.
 * - Interrupts are held while the core works, because an interrupted editor is unusable.
 * - The core makes a change of one element completely or not at all.  An array is applied to a
 *   copy of the filter if the array is long or the filter is near a limit.  One case remains:
 *   an array runs out of memory halfway, or reaches a limit in a crafted value.  Then the
 *   object becomes unusable, and every use of it is an error.
 */
#include "type/expanded.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/*
 * Larger arrays, and arrays for larger filters, are applied to a copy.  The next slice is at most
 * eight times as large as the filter, or it is sized for the capacity at less than 16 bytes
 * per element.  So it fits.
 */
#define IN_PLACE_ELEMENTS	FAV_INTERRUPT_EVERY
#define IN_PLACE_SLICES		(FAV_MAX_SLICES / 2)
#define IN_PLACE_BYTES		(FAV_MAX_SIZE / 16)
#define IN_PLACE_CAPACITY	(IN_PLACE_BYTES / 16)

struct FavExpanded
{
	ExpandedObjectHeader header;
	bool		is_broken;		/* an edit of several elements failed halfway */
	FavEditor	editor;			/* may point into the flat value that it was opened on */
};

static Size get_flat_size(ExpandedObjectHeader *header);
static void flatten_into(ExpandedObjectHeader *header, void *result, Size size);

static const ExpandedObjectMethods methods = {get_flat_size, flatten_into};

FavExpanded *
fav_find_expanded(Datum value)
{
	ExpandedObjectHeader *header;
	FavExpanded *object;

	if (!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		return NULL;
	header = DatumGetEOHP(value);
	if (header->eoh_methods != &methods)
		return NULL;
	object = (FavExpanded *) header;
	if (object->is_broken)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("fav variable is incomplete"),
				 errdetail("An earlier change of several elements failed halfway."),
				 errhint("Assign another value to the variable.")));
	return object;
}

FavExpanded *
fav_expand(const NullableDatum *value)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fav variable",
												  ALLOCSET_START_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	FavExpanded *object = palloc(sizeof(FavExpanded));

	EOH_init_header(&object->header, &methods, context);
	object->is_broken = false;
	fav_begin_edit(&object->editor,
				   value->isnull ? NULL : PG_DETOAST_DATUM_COPY(value->value));
	MemoryContextSwitchTo(old);
	return object;
}

const FavFilter *
fav_expanded_filter(FavExpanded *object)
{
	MemoryContext old = MemoryContextSwitchTo(object->header.eoh_context);
	const FavFilter *filter;
	FavStatus	status;

	HOLD_INTERRUPTS();
	status = fav_editor_finish(&object->editor, &filter);
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(old);
	fav_require(status);
	return filter;
}

const FavParams *
fav_expanded_params(FavExpanded *object, FavKind kind)
{
	FavParams  *params = &object->editor.filter.params;

	/* a filter without elements has no kind */
	if (unlikely(params->kind != kind && params->kind != FAV_KIND_NONE) &&
		fav_is_empty(fav_expanded_filter(object)))
		params->kind = FAV_KIND_NONE;
	return params;
}

bool
fav_expanded_is_editable(const FavExpanded *object, size_t count)
{
	const FavFilter *filter = &object->editor.filter;

	return count <= 1 ||
		(count <= IN_PLACE_ELEMENTS && filter->nslices <= IN_PLACE_SLICES &&
		 fav_size(filter) <= IN_PLACE_BYTES && filter->params.capacity <= IN_PLACE_CAPACITY);
}

void
fav_expanded_edit(FavExpanded *object, FavKind kind, FavEdit edit,
				  const uint64_t *hashes, size_t count, int32_t period)
{
	FavParams  *params = &object->editor.filter.params;
	MemoryContext old;
	FavStatus	status;

	if (count == 0)
		return;
	old = MemoryContextSwitchTo(object->header.eoh_context);
	HOLD_INTERRUPTS();
	status = edit(&object->editor, hashes, count, period);
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(old);
	if (status != FAV_OK)
	{
		/* a filter without a period refuses the first element already */
		object->is_broken = count > 1 && status != FAV_UNDATED;
		fav_raise(status);
	}
	if (params->kind == FAV_KIND_NONE)
		params->kind = kind;
}

/* Probing an editor neither allocates memory nor pauses. */
bool
fav_expanded_contains(const FavExpanded *object, uint64_t hash)
{
	return fav_editor_contains(&object->editor, hash);
}

Datum
fav_expanded_result(FavExpanded *object, const NullableDatum *source)
{
	if (source != NULL && !source->isnull)
	{
		/* the end of an edit tells whether it has changed anything */
		(void) fav_expanded_filter(object);
		if (!object->editor.changed)
		{
			MemoryContextDelete(object->header.eoh_context);
			return source->value;
		}
	}
	return EOHPGetRWDatum(&object->header);
}

const FavFilter *
fav_get_filter(FunctionCallInfo fcinfo, int number)
{
	FavExpanded *object = PG_ARGISNULL(number) ? NULL : fav_find_expanded(PG_GETARG_DATUM(number));
	FavParams	params = fav_default_params();
	FavFilter  *filter;

	if (object != NULL)
		return fav_expanded_filter(object);
	filter = palloc(sizeof(FavFilter));
	if (PG_ARGISNULL(number))
		fav_make_empty(filter, &params);
	else
		fav_open_flat(filter, PG_GETARG_VARLENA_PP(number));
	return filter;
}

static Size
get_flat_size(ExpandedObjectHeader *header)
{
	return VARHDRSZ + fav_size(fav_expanded_filter(fav_find_expanded(EOHPGetRODatum(header))));
}

static void
flatten_into(ExpandedObjectHeader *header, void *result, Size size)
{
	const FavFilter *filter = fav_expanded_filter(fav_find_expanded(EOHPGetRODatum(header)));

	if (size != VARHDRSZ + fav_size(filter))
		elog(ERROR, "size of expanded fav value has changed");
	SET_VARSIZE(result, size);
	fav_write(filter, (uint8_t *) VARDATA(result));
}
