/*
 * levels.c
 *		Reading the levels of an attached filter in SQL: fav_contains of three levels, and
 *		fav_stack.
 */
#include "fav.h"

#include "core/dated.h"
#include "core/levels.h"
#include "type/elements.h"
#include "toast_cache.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(fav_stack);

/* Arguments */
enum
{
	BASE,
	MIDDLE,
	RECENT,
	ELEMENT
};

/* What a call of fav_contains keeps for the next: loaded values of base and middle. */
typedef struct LevelCaches
{
	FavCache	caches[MIDDLE + 1];
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

static FavCache *
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
	FavCache   *cache;

	if (below->readers[number] != NULL)
		return below->readers[number];
	attribute = (struct varlena *) PG_GETARG_POINTER(number);
	cache = level_cache(fcinfo->flinfo, number);
	below->readers[number] = fav_cache_latest(cache, attribute);
	if (below->readers[number] == NULL)
		below->readers[number] = fav_cache_find(cache, fcinfo->flinfo->fn_mcxt, attribute,
												&below->local[number]);
	return below->readers[number];
}

static bool
level_contains(LevelReaders *below, int number, const FavFilter *recent, uint64_t hash)
{
	FunctionCallInfo fcinfo = below->fcinfo;
	FavReader  *reader;
	const FavParams *params;

	if (PG_ARGISNULL(number))
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

/* Recent is in its row, unless a user has written it. */
static void
open_recent(FunctionCallInfo fcinfo, FavFilter *recent)
{
	struct varlena *value = PG_GETARG_VARLENA_PP(RECENT);
	const uint8_t *bytes = (const uint8_t *) VARDATA_ANY(value);
	size_t		size = VARSIZE_ANY_EXHDR(value);
	FavProblem	problem;

	if (fav_open(recent, bytes, size, size, &problem) != FAV_OK)
		fav_raise_corrupted(&problem);
}

/* The parameters of a level below recent, one that knows its kind if there is one. */
static bool
params_below(LevelReaders *below, FavParams *params)
{
	FunctionCallInfo fcinfo = below->fcinfo;

	if (!PG_ARGISNULL(BASE))
		*params = level_reader(below, BASE)->filter.params;
	if (!PG_ARGISNULL(MIDDLE) && (PG_ARGISNULL(BASE) || params->kind == FAV_KIND_NONE))
		*params = level_reader(below, MIDDLE)->filter.params;
	return !PG_ARGISNULL(BASE) || !PG_ARGISNULL(MIDDLE);
}

/* The newest period of all levels is the present one, in which recent forgets. */
static void
find_present(LevelReaders *below, FavFilter *recent)
{
	FunctionCallInfo fcinfo = below->fcinfo;

	if (!PG_ARGISNULL(MIDDLE))
		fav_forget(recent, level_reader(below, MIDDLE)->newest);
	if (!PG_ARGISNULL(BASE))
		fav_forget(recent, level_reader(below, BASE)->newest);
}

/* Recent, which may be NULL or not know its kind.  False: all levels are NULL. */
static bool
get_recent(LevelReaders *below, FavFilter *recent)
{
	FunctionCallInfo fcinfo = below->fcinfo;
	FavParams	params;

	if (PG_ARGISNULL(RECENT))
	{
		if (!params_below(below, &params))
			return false;
		/* NULL is the empty filter, here with the parameters of a level below */
		fav_make_empty(recent, &params);
	}
	else
	{
		open_recent(fcinfo, recent);
		if (recent->params.kind == FAV_KIND_NONE && params_below(below, &params))
			recent->params.kind = params.kind;
	}
	if (unlikely(fav_is_dated(recent)))
		find_present(below, recent);
	return true;
}

/*
 * The definition of core/levels.h, in the order that is fastest if most elements are absent:
 * tombstones matter only if a level below reports the element.
 */
static pg_attribute_always_inline Datum
contains_levels(FunctionCallInfo fcinfo, FavKind kind)
{
	LevelReaders below;
	FavFilter	recent;
	uint64_t	hash;
	bool		in_middle;

	if (fav_element_is_null(fcinfo, kind, ELEMENT))
		PG_RETURN_NULL();
	below.fcinfo = fcinfo;
	below.readers[BASE] = below.readers[MIDDLE] = NULL;
	if (!get_recent(&below, &recent))
		PG_RETURN_BOOL(false);
	hash = fav_hash_argument(fcinfo, kind, ELEMENT, &recent.params);
	if (recent.nslices == 0 ? fav_recent_contains(recent.recent, recent.nrecent, hash) :
		fav_contains(&recent, hash))
		PG_RETURN_BOOL(true);
	in_middle = level_contains(&below, MIDDLE, &recent, hash);
	if (!in_middle && !level_contains(&below, BASE, &recent, hash))
		PG_RETURN_BOOL(false);
	if (fav_has_tombstone(&recent, hash))
		PG_RETURN_BOOL(false);
	PG_RETURN_BOOL(in_middle || PG_ARGISNULL(MIDDLE) ||
				   !fav_reader_excludes(level_reader(&below, MIDDLE), hash));
}

#define FAV_LEVELS_FUNCTION(suffix, kind) \
	extern PGDLLEXPORT Datum fav_contains_levels_##suffix(PG_FUNCTION_ARGS); \
	Datum fav_contains_levels_##suffix(PG_FUNCTION_ARGS) { return contains_levels(fcinfo, kind); } \
	PG_FUNCTION_INFO_V1(fav_contains_levels_##suffix)

FAV_LEVELS_FUNCTION(int8, FAV_KIND_INTEGER);
FAV_LEVELS_FUNCTION(text, FAV_KIND_TEXT);
FAV_LEVELS_FUNCTION(uuid, FAV_KIND_UUID);
FAV_LEVELS_FUNCTION(bytea, FAV_KIND_BYTES);
FAV_LEVELS_FUNCTION(pair, FAV_KIND_PAIR);

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

Datum
fav_stack(PG_FUNCTION_ARGS)
{
	FavArgument whole_base;
	FavArgument middle;
	FavArgument recent;
	FavFilter	base;
	FavLevels	levels = {NULL, NULL, NULL};
	FavFilter	stack;
	uint8_t    *tombstones;
	FavStatus	status;

	if (PG_ARGISNULL(BASE) && PG_ARGISNULL(MIDDLE))
	{
		if (PG_ARGISNULL(RECENT))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(RECENT));
	}
	if (!PG_ARGISNULL(BASE))
	{
		fav_open_head(&base, (struct varlena *) PG_GETARG_POINTER(BASE));
		levels.base = &base;
		if (base.ntombstones > 0)
		{
			fav_get_argument(fcinfo, BASE, &whole_base);
			base = whole_base.filter;
		}
	}
	if (!PG_ARGISNULL(MIDDLE))
	{
		fav_get_argument(fcinfo, MIDDLE, &middle);
		levels.middle = &middle.filter;
	}
	if (!PG_ARGISNULL(RECENT))
		fav_get_argument(fcinfo, RECENT, &recent);
	else
		fav_make_empty(&recent.filter,
					   levels.base != NULL ? &base.params : &middle.filter.params);
	levels.recent = &recent.filter;
	fav_levels_forget(PG_ARGISNULL(BASE) ? NULL : &base,
					  PG_ARGISNULL(MIDDLE) ? NULL : &middle.filter, &recent.filter);
	status = fav_levels_stack(&levels, &stack, &tombstones);
	if (status == FAV_MISMATCH)
		raise_not_levels();
	fav_require(status);
	return write_stack(&stack, levels.base, (struct varlena *) PG_GETARG_POINTER(BASE));
}
