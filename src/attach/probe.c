/*
 * probe.c
 *		Reading the levels of an attached filter in SQL: fav_probe, fav_probe_at and fav_stack.
 */
#include "fav.h"

#include "core/dated.h"
#include "core/levels.h"
#include "type/elements.h"
#include "toast_cache.h"
#include "utils/memutils.h"

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

/* What a call of fav_probe keeps for the next. */
typedef struct LevelCaches
{
	FavReaderCache	caches[RECENT + 1];
} LevelCaches;

/* The levels, each of them opened once in a call, when it is needed. */
typedef struct LevelReaders
{
	FunctionCallInfo fcinfo;
	LevelCaches *caches;
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
	pg_unreachable();
}

static pg_attribute_always_inline FavReader *
level_reader(LevelReaders *levels, int number)
{
	FunctionCallInfo fcinfo = levels->fcinfo;

	if (levels->readers[number] == NULL)
		levels->readers[number] =
			fav_reader_cache_keep(&levels->caches->caches[number], fcinfo->flinfo->fn_mcxt,
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

static bool
level_excludes(LevelReaders *levels, int number, uint64_t hash)
{
	return has_level(levels->fcinfo, number) &&
		fav_reader_excludes(level_reader(levels, number), hash);
}

static pg_attribute_always_inline bool
is_below_recent(LevelReaders *levels, uint64_t hash)
{
	return FAV_IS_BELOW_RECENT(level_contains(levels, MIDDLE, hash),
							   level_contains(levels, BASE, hash),
							   level_excludes(levels, MIDDLE, hash));
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
find_present(LevelReaders *levels, const int32 *period)
{
	int			number;

	levels->now = period == NULL ? FAV_NO_PERIOD : *period;
	for (number = BASE; number <= RECENT; number++)
		if (has_level(levels->fcinfo, number))
			levels->now = Max(levels->now, level_reader(levels, number)->newest);
	fav_reader_forget(level_reader(levels, RECENT), levels->now);
}

/*
 * Does the filter of the levels contain an element, in `period` if that is not NULL?  Levels that
 * are NULL are those of a key without a filter, and contain nothing.
 */
static pg_attribute_always_inline Datum
probe_levels(FunctionCallInfo fcinfo, FavKind kind, int element, const int32 *period)
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
		function->fn_extra = MemoryContextAllocZero(function->fn_mcxt, sizeof(LevelCaches));
	levels.fcinfo = fcinfo;
	levels.caches = function->fn_extra;
	memset(levels.readers, 0, sizeof(levels.readers));
	recent = level_reader(&levels, RECENT);
	levels.params = recent->filter.params;
	if (unlikely(levels.params.kind == FAV_KIND_NONE))
		find_params(&levels);
	if (unlikely(levels.params.keep > 0))
		find_present(&levels, period);
	hash = fav_hash_argument(fcinfo, kind, element, &levels.params);
	PG_RETURN_BOOL(FAV_IS_IN_LEVELS(fav_reader_contains(recent, hash),
									is_below_recent(&levels, hash),
									fav_reader_excludes(recent, hash)));
}

static pg_attribute_always_inline Datum
probe_levels_at(FunctionCallInfo fcinfo, FavKind kind)
{
	int32		period = PG_GETARG_INT32(PERIOD);

	return probe_levels(fcinfo, kind, PERIOD + 1, PG_ARGISNULL(PERIOD) ? NULL : &period);
}

#define FAV_LEVELS_FUNCTIONS(suffix, kind) \
	FAV_FUNCTION(fav_probe_##suffix, probe_levels(fcinfo, kind, ELEMENT, NULL)); \
	FAV_FUNCTION(fav_probe_at_##suffix, probe_levels_at(fcinfo, kind))

FAV_LEVELS_FUNCTIONS(int8, FAV_KIND_INTEGER);
FAV_LEVELS_FUNCTIONS(text, FAV_KIND_TEXT);
FAV_LEVELS_FUNCTIONS(uuid, FAV_KIND_UUID);
FAV_LEVELS_FUNCTIONS(bytea, FAV_KIND_BYTES);
FAV_FUNCTION(fav_probe_pair, probe_levels(fcinfo, FAV_KIND_PAIR, ELEMENT, NULL));

/* The value of a stack.  Base is copied from where it is, block by block. */
static Datum
write_stack(const FavFilter *stack, const FavFilter *base, struct varlena *base_value)
{
	uint32_t	region_size = stack->params.region_size;
	size_t		size = VARHDRSZ + fav_size(stack);
	struct varlena *result = palloc(size);
	uint8_t    *at;
	uint32_t	i;

	SET_VARSIZE(result, size);
	at = fav_write_head(stack, (uint8_t *) VARDATA(result));
	for (i = 0; i < stack->nslices; i++)
	{
		if (base != NULL && i < base->nslices)
			fav_copy_blocks(base_value, &base->slices[i], region_size, at);
		else
			fav_copy(at, stack->slices[i].blocks, fav_slice_bytes(&stack->slices[i], region_size));
		at += fav_slice_bytes(&stack->slices[i], region_size);
	}
	if (stack->ntombstones > 0)
		memcpy(at, stack->tombstones, 8 * (size_t) stack->ntombstones);
	return PointerGetDatum(result);
}

/* Base, of which only the head is loaded; all of it if it has tombstones. */
static void
open_base(FunctionCallInfo fcinfo, FavFilter *base)
{
	FavArgument whole;

	fav_open_head(base, (struct varlena *) PG_GETARG_POINTER(BASE));
	if (base->ntombstones > 0)
	{
		fav_get_argument(fcinfo, BASE, &whole);
		*base = whole.filter;
	}
}

Datum
fav_stack(PG_FUNCTION_ARGS)
{
	bool		has_base = has_level(fcinfo, BASE);
	bool		has_middle = has_level(fcinfo, MIDDLE);
	FavFilter	base;
	FavArgument middle;
	FavArgument recent;
	FavLevels	levels = {NULL, NULL, NULL};
	FavFilter	stack;
	uint8_t    *tombstones;
	FavStatus	status;

	if (!has_base && !has_middle)
		PG_RETURN_DATUM(PG_GETARG_DATUM(RECENT));
	if (has_base)
	{
		open_base(fcinfo, &base);
		levels.base = &base;
	}
	if (has_middle)
	{
		fav_get_argument(fcinfo, MIDDLE, &middle);
		levels.middle = &middle.filter;
	}
	fav_get_argument(fcinfo, RECENT, &recent);
	if (recent.filter.is_short)
		fav_make_empty(&recent.filter, has_base ? &base.params : &middle.filter.params);
	levels.recent = &recent.filter;
	fav_levels_forget(has_base ? &base : NULL, has_middle ? &middle.filter : NULL,
					  &recent.filter);
	status = fav_levels_stack(&levels, &stack, &tombstones);
	if (status == FAV_MISMATCH)
		raise_not_levels();
	fav_require(status);
	return write_stack(&stack, levels.base, (struct varlena *) PG_GETARG_POINTER(BASE));
}
