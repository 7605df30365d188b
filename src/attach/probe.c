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

/* What a call of fav_probe keeps for the next: loaded values of base and middle. */
typedef struct LevelCaches
{
	FavReaderCache	caches[MIDDLE + 1];
} LevelCaches;

/* Base and middle, each of them opened once in a call, when it is needed. */
typedef struct LevelReaders
{
	FunctionCallInfo fcinfo;
	FavReader  *readers[MIDDLE + 1];	/* NULL: not opened yet */
	FavReader	local[MIDDLE + 1];	/* for values in their row */
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

static FavReaderCache *
level_cache(FmgrInfo *function, int number)
{
	if (function->fn_extra == NULL)
		function->fn_extra = MemoryContextAllocZero(function->fn_mcxt, sizeof(LevelCaches));
	return &((LevelCaches *) function->fn_extra)->caches[number];
}

static FavReader *
level_reader(LevelReaders *below, int number)
{
	FunctionCallInfo fcinfo = below->fcinfo;
	struct varlena *attribute;
	FavReaderCache   *cache;

	if (below->readers[number] != NULL)
		return below->readers[number];
	attribute = (struct varlena *) PG_GETARG_POINTER(number);
	cache = level_cache(fcinfo->flinfo, number);
	below->readers[number] = fav_reader_cache_latest(cache, attribute);
	if (below->readers[number] == NULL)
		below->readers[number] = fav_reader_cache_find(cache, fcinfo->flinfo->fn_mcxt, attribute,
												&below->local[number]);
	return below->readers[number];
}

/* Is there such a level? */
static inline bool
has_level(FunctionCallInfo fcinfo, int number)
{
	return !PG_ARGISNULL(number) && !fav_is_short_value(PG_GETARG_DATUM(number));
}

static bool
level_contains(LevelReaders *below, int number, const FavFilter *recent, uint64_t hash)
{
	FavReader  *reader;
	const FavParams *params;

	if (!has_level(below->fcinfo, number))
		return false;
	reader = level_reader(below, number);
	params = &reader->filter.params;
	if (unlikely(params->seed != recent->params.seed || params->keep != recent->params.keep ||
				 (params->kind != recent->params.kind && params->kind != FAV_KIND_NONE)))
		raise_not_levels();
	if (unlikely(params->keep > 0))
		fav_reader_forget(reader, recent->newest);
	return fav_reader_contains(reader, hash);
}

static bool
level_excludes(LevelReaders *below, int number, uint64_t hash)
{
	return has_level(below->fcinfo, number) &&
		fav_reader_excludes(level_reader(below, number), hash);
}

static pg_attribute_always_inline bool
is_below_recent(LevelReaders *below, const FavFilter *recent, uint64_t hash)
{
	return FAV_IS_BELOW_RECENT(level_contains(below, MIDDLE, recent, hash),
							   level_contains(below, BASE, recent, hash),
							   level_excludes(below, MIDDLE, hash));
}

/* Ours has no slices. */
static inline bool
recent_contains(const FavFilter *recent, uint64_t hash)
{
	return recent->nslices == 0 ?
		fav_recent_contains(recent->recent, recent->nrecent, hash) : fav_contains(recent, hash);
}

/* The parameters of a level below recent, one that knows its kind if there is one. */
static bool
params_below(LevelReaders *below, FavParams *params)
{
	bool		has_base = has_level(below->fcinfo, BASE);
	bool		has_middle = has_level(below->fcinfo, MIDDLE);

	if (has_base)
		*params = level_reader(below, BASE)->filter.params;
	if (has_middle && (!has_base || params->kind == FAV_KIND_NONE))
		*params = level_reader(below, MIDDLE)->filter.params;
	return has_base || has_middle;
}

/* The newest period of all levels is the present one, in which recent forgets. */
static void
find_present(LevelReaders *below, FavFilter *recent)
{
	int			number;

	for (number = BASE; number <= MIDDLE; number++)
		if (has_level(below->fcinfo, number))
			fav_forget(recent, level_reader(below, number)->newest);
}

/* Recent is in its row, unless a user has written it.  It may not know its kind. */
static void
open_recent(LevelReaders *below, FavFilter *recent)
{
	FunctionCallInfo fcinfo = below->fcinfo;
	struct varlena *value = PG_GETARG_VARLENA_PP(RECENT);
	const uint8_t *bytes = (const uint8_t *) VARDATA_ANY(value);
	size_t		size = VARSIZE_ANY_EXHDR(value);
	FavProblem	problem;
	FavParams	params;

	if (fav_open(recent, bytes, size, size, &problem) != FAV_OK)
		fav_raise_corrupted(&problem);
	if (recent->params.kind != FAV_KIND_NONE || !params_below(below, &params))
		return;
	if (recent->is_short)
		fav_make_empty(recent, &params);
	recent->params.kind = params.kind;
}

/*
 * Does the filter of the levels contain an element, in `period` if that is not NULL?  Levels that
 * are NULL are those of a key without a filter, and contain nothing.
 */
static pg_attribute_always_inline Datum
probe_levels(FunctionCallInfo fcinfo, FavKind kind, int element, const int32 *period)
{
	LevelReaders below;
	FavFilter	recent;
	uint64_t	hash;

	if (fav_element_is_null(fcinfo, kind, element))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(RECENT))
		PG_RETURN_BOOL(false);
	below.fcinfo = fcinfo;
	below.readers[BASE] = below.readers[MIDDLE] = NULL;
	open_recent(&below, &recent);
	if (unlikely(fav_is_dated(&recent)))
	{
		find_present(&below, &recent);
		if (period != NULL)
			fav_forget(&recent, *period);
	}
	hash = fav_hash_argument(fcinfo, kind, element, &recent.params);
	PG_RETURN_BOOL(FAV_IS_IN_LEVELS(recent_contains(&recent, hash),
									is_below_recent(&below, &recent, hash),
									fav_has_tombstone(&recent, hash)));
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
