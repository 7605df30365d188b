/*
 * probe.c
 *		Reading the levels of an attached filter in SQL: fav_probe, fav_probe_at and fav_stack.
 */
#include "fav.h"

#include "core/levels.h"
#include "type/elements.h"
#include "toast_cache.h"

PG_FUNCTION_INFO_V1(fav_stack);

/* Arguments.  fav_probe_at has a period before the element. */
enum
{
	BASE,
	MIDDLE,
	RECENT,
	ELEMENT,
	PERIOD = ELEMENT
};

/*
 * The levels, each of them opened once in a call, when it is needed.  Only the caches are kept for
 * the next call: the rest is in registers.
 */
typedef struct LevelReaders
{
	FunctionCallInfo fcinfo;
	FavReaderCache *caches;		/* of each level */
	FavReader  *readers[RECENT + 1];	/* NULL: not opened yet */
	FavParams	params;			/* of all levels */
	int32		now;			/* the period in which they are read, of a dated filter */
} LevelReaders;

pg_noreturn static void
raise_not_levels(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("these values are not the levels of one filter"),
			 errdetail("All three need the same seed, region size, keep and kind of elements;"
					   " recent has no slices, and base and middle have no recent hashes.")));
}

static pg_attribute_always_inline FavReader *
level_reader(LevelReaders *levels, int number)
{
	FunctionCallInfo fcinfo = levels->fcinfo;

	if (levels->readers[number] == NULL)
		levels->readers[number] =
			fav_reader_cache_keep(&levels->caches[number], fcinfo->flinfo->fn_mcxt,
								  (struct varlena *) PG_GETARG_POINTER(number));
	return levels->readers[number];
}

/* Is there such a level? */
static inline bool
has_level(FunctionCallInfo fcinfo, int number)
{
	return !PG_ARGISNULL(number) && !fav_is_short_value(PG_GETARG_DATUM(number));
}

static bool
level_contains(LevelReaders *levels, int number, uint64_t hash)
{
	FavReader  *reader;
	const FavParams *params;

	if (!has_level(levels->fcinfo, number))
		return false;
	reader = level_reader(levels, number);
	params = &reader->filter.params;
	if (unlikely(params->seed != levels->params.seed || params->keep != levels->params.keep ||
				 (params->kind != levels->params.kind && params->kind != FAV_KIND_NONE)))
		raise_not_levels();
	if (unlikely(params->keep > 0))
		fav_reader_forget(reader, levels->now);
	return fav_reader_contains(reader, hash);
}

static pg_attribute_always_inline bool
is_below_recent(LevelReaders *levels, uint64_t hash)
{
	return FAV_IS_BELOW_RECENT(level_contains(levels, MIDDLE, hash),
							   level_contains(levels, BASE, hash),
							   has_level(levels->fcinfo, MIDDLE) &&
							   fav_reader_excludes(level_reader(levels, MIDDLE), hash));
}

/*
 * An empty recent may not know the kind, and the short form of the empty filter knows nothing.
 * Then a level below tells, one that knows its kind if there is one.
 */
static void
find_params(LevelReaders *levels)
{
	const FavFilter *recent = &level_reader(levels, RECENT)->filter;
	int			number;

	for (number = BASE; number <= MIDDLE; number++)
		if (has_level(levels->fcinfo, number) && levels->params.kind == FAV_KIND_NONE)
		{
			const FavParams *params = &level_reader(levels, number)->filter.params;

			if (recent->is_short)
				levels->params = *params;
			levels->params.kind = params->kind;
		}
}

/* The newest period of all levels is the present one, unless the caller knows a later one. */
static void
find_present(LevelReaders *levels, int32 period)
{
	int			number;

	levels->now = period;
	for (number = BASE; number <= RECENT; number++)
		if (has_level(levels->fcinfo, number))
			levels->now = Max(levels->now, level_reader(levels, number)->newest);
	fav_reader_forget(level_reader(levels, RECENT), levels->now);
}

/*
 * Does the filter of the levels contain an element, which is argument `element`?  Before it may
 * come the present period.  Levels that are NULL are those of a key without a filter, and contain
 * nothing.
 */
static pg_attribute_always_inline Datum
probe_levels(FunctionCallInfo fcinfo, FavKind kind, int element)
{
	FmgrInfo   *function = fcinfo->flinfo;
	LevelReaders levels;
	FavReader  *recent;
	uint64_t	hash;

	if (fav_element_is_null(fcinfo, kind, element))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(RECENT))
		PG_RETURN_BOOL(false);
	if (function->fn_extra == NULL)
		function->fn_extra = MemoryContextAllocZero(function->fn_mcxt,
													(RECENT + 1) * sizeof(FavReaderCache));
	levels.fcinfo = fcinfo;
	levels.caches = function->fn_extra;
	memset(levels.readers, 0, sizeof(levels.readers));
	recent = level_reader(&levels, RECENT);
	levels.params = recent->filter.params;
	if (unlikely(levels.params.kind == FAV_KIND_NONE))
		find_params(&levels);
	if (unlikely(levels.params.keep > 0))
		find_present(&levels, element == PERIOD || PG_ARGISNULL(PERIOD) ? FAV_NO_PERIOD :
					 PG_GETARG_INT32(PERIOD));
	hash = fav_hash_argument(fcinfo, kind, element, &levels.params);
	PG_RETURN_BOOL(FAV_IS_IN_LEVELS(fav_reader_contains(recent, hash),
									is_below_recent(&levels, hash),
									fav_reader_excludes(recent, hash)));
}

#define FAV_LEVELS_FUNCTIONS(suffix, kind) \
	FAV_FUNCTION(fav_probe_##suffix, probe_levels(fcinfo, kind, ELEMENT)); \
	FAV_FUNCTION(fav_probe_at_##suffix, probe_levels(fcinfo, kind, PERIOD + 1))

FAV_LEVELS_FUNCTIONS(int8, FAV_KIND_INTEGER);
FAV_LEVELS_FUNCTIONS(text, FAV_KIND_TEXT);
FAV_LEVELS_FUNCTIONS(uuid, FAV_KIND_UUID);
FAV_LEVELS_FUNCTIONS(bytea, FAV_KIND_BYTES);
FAV_FUNCTION(fav_probe_pair, probe_levels(fcinfo, FAV_KIND_PAIR, ELEMENT));

/* The value of a stack.  The slices of base, which come first, may have to be fetched. */
static Datum
write_stack(const FavFilter *stack, struct varlena *base)
{
	uint32_t	region_size = stack->params.region_size;
	struct varlena *result = fav_allocate_value(fav_size(stack));
	uint8_t    *at;
	uint32_t	i;

	at = fav_write_head(stack, (uint8_t *) VARDATA(result));
	for (i = 0; i < stack->nslices; i++)
	{
		fav_copy_blocks(base, &stack->slices[i], region_size, at);
		at += fav_slice_bytes(&stack->slices[i], region_size);
	}
	if (stack->ntombstones > 0)
		memcpy(at, stack->tombstones, 8 * (size_t) stack->ntombstones);
	return PointerGetDatum(result);
}

/* Base, of which only the head is loaded; all of it if it has tombstones. */
static void
open_base(FunctionCallInfo fcinfo, FavArgument *base)
{
	fav_open_head(&base->filter, (struct varlena *) PG_GETARG_POINTER(BASE));
	if (base->filter.ntombstones > 0)
		fav_get_argument(fcinfo, BASE, base);
}

Datum
fav_stack(PG_FUNCTION_ARGS)
{
	FavArgument arguments[RECENT + 1];
	FavFilter  *base = NULL;
	FavFilter  *middle = NULL;
	FavFilter  *recent;
	FavLevels	levels;
	FavFilter	stack;
	uint8_t    *tombstones;
	FavStatus	status;

	if (!has_level(fcinfo, BASE) && !has_level(fcinfo, MIDDLE))
		PG_RETURN_DATUM(PG_GETARG_DATUM(RECENT));
	if (has_level(fcinfo, BASE))
	{
		open_base(fcinfo, &arguments[BASE]);
		base = &arguments[BASE].filter;
	}
	if (has_level(fcinfo, MIDDLE))
	{
		fav_get_argument(fcinfo, MIDDLE, &arguments[MIDDLE]);
		middle = &arguments[MIDDLE].filter;
	}
	fav_get_argument(fcinfo, RECENT, &arguments[RECENT]);
	recent = &arguments[RECENT].filter;
	if (recent->is_short)
		fav_make_empty(recent, base != NULL ? &base->params : &middle->params);
	fav_levels_forget(base, middle, recent);
	levels = (FavLevels) {base, middle, recent};
	status = fav_levels_stack(&levels, &stack, &tombstones);
	if (status == FAV_MISMATCH)
		raise_not_levels();
	fav_require(status);
	return write_stack(&stack, (struct varlena *) PG_GETARG_POINTER(BASE));
}
