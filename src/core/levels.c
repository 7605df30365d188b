/*
 * levels.c
 *		See levels.h.
 */
#include "levels.h"

#include "sizing.h"

/* A small middle costs next to nothing and spares a small base frequent rebuilds. */
#define MIDDLE_CAPACITY_MIN		512

/*
 * The capacity c of middle that makes a change cheapest.  The bytes of middle are written once
 * in FAV_RECENT_MAX changes, and those of base once in c.  With bytes in proportion to
 * elements, the sum is smallest where c^2 is this many times the elements of base.
 */
#define MIDDLE_CAPACITY_FACTOR	80.0

uint64_t
fav_middle_capacity(uint64_t base_elements)
{
	uint64_t	capacity = MIDDLE_CAPACITY_MIN;
	uint64_t	next = capacity;

	if (base_elements == 0)
		return 0;
	/* a square root that is the same on every machine */
	while ((double) next * (double) next <= MIDDLE_CAPACITY_FACTOR * (double) base_elements)
	{
		capacity = next;
		next += next / 8;
	}
	return capacity;
}

FavStatus
fav_levels_add(FavEditor *level, uint64_t hash)
{
	FavStatus	status;

	if (!fav_editor_has_tombstone(level, hash))
		return fav_editor_add(level, hash);
	status = fav_tombstones_remove(level, hash);
	if (status == FAV_OK && fav_slices_report(&level->filter, hash))
		fav_count_in(&level->filter);
	return status;
}

FavStatus
fav_levels_push(FavEditor *middle, const FavFilter *recent)
{
	FavStatus	status = FAV_OK;
	uint32_t	i;

	/* oldest first */
	for (i = recent->nrecent; i-- > 0 && status == FAV_OK;)
		status = fav_levels_add(middle, fav_load64(recent->recent + 8 * (size_t) i));
	for (i = recent->ntombstones; i-- > 0 && status == FAV_OK;)
		status = fav_editor_exclude(middle, fav_load64(recent->tombstones + 8 * (size_t) i));
	return status == FAV_OK ? fav_editor_flush(middle) : status;
}

static bool
fits(const FavFilter *level, const FavFilter *recent, FavKind kind)
{
	return level == NULL ||
		(level->nrecent == 0 && level->params.seed == recent->params.seed &&
		 level->params.region_size == recent->params.region_size &&
		 level->params.keep == recent->params.keep && level->newest <= recent->newest &&
		 (fav_is_empty(level) || level->params.kind == kind));
}

static inline void
find_newest(const FavFilter *level, int32_t *newest)
{
	if (level != NULL && level->newest > *newest)
		*newest = level->newest;
}

void
fav_levels_forget(FavFilter *base, FavFilter *middle, FavFilter *recent)
{
	int32_t		newest = recent->newest;

	find_newest(middle, &newest);
	find_newest(base, &newest);
	fav_forget(recent, newest);
	if (middle != NULL)
		fav_forget(middle, newest);
	if (base != NULL)
		fav_forget(base, newest);
}

/* An empty level does not know its kind. */
static FavKind
kind_of(const FavLevels *levels)
{
	if (!fav_is_empty(levels->recent))
		return levels->recent->params.kind;
	if (levels->middle != NULL && !fav_is_empty(levels->middle))
		return levels->middle->params.kind;
	return levels->base != NULL ? levels->base->params.kind : FAV_KIND_NONE;
}

/* A cursor on the tombstones of a level, in ascending order. */
typedef struct Tombstones
{
	const uint8_t *list;
	uint32_t	count;
	uint32_t	at;
	uint8_t		copy[FAV_RECENT_MAX * 8];
} Tombstones;

static void
open_tombstones(Tombstones *tombstones, const FavFilter *level)
{
	tombstones->at = 0;
	tombstones->count = level != NULL ? level->ntombstones : 0;
	if (tombstones->count > 0)
		tombstones->list = fav_sorted_tombstones(level, tombstones->copy);
}

static uint64_t
next_tombstone(const Tombstones *tombstones)
{
	return tombstones->at < tombstones->count ?
		fav_load64(tombstones->list + 8 * (size_t) tombstones->at) : UINT64_MAX;
}

/* Is this the next one?  Then go on. */
static bool
pass_tombstone(Tombstones *tombstones, uint64_t hash)
{
	bool		is_next = tombstones->at < tombstones->count &&
		next_tombstone(tombstones) == hash;

	tombstones->at += is_next;
	return is_next;
}

/*
 * Join the tombstones of all levels to one ascending list, without those of elements that a
 * level above has added.  *excluded is the number of tombstones of elements that a level below
 * counts.  A level does not count those that have a tombstone in it.
 */
static uint32_t
join_tombstones(const FavLevels *levels, uint8_t *list, uint64_t *excluded)
{
	const FavFilter *middle = levels->middle;
	const FavFilter *recent = levels->recent;
	Tombstones	of_base;
	Tombstones	of_middle;
	Tombstones	of_recent;
	uint32_t	count = 0;
	uint32_t	seen = 0;

	open_tombstones(&of_base, levels->base);
	open_tombstones(&of_middle, middle);
	open_tombstones(&of_recent, recent);
	*excluded = 0;
	while (of_base.at < of_base.count || of_middle.at < of_middle.count ||
		   of_recent.at < of_recent.count)
	{
		uint64_t	hash = next_tombstone(&of_base);
		bool		in_base;
		bool		in_middle;
		bool		in_recent;
		bool		is_reported;

		if (next_tombstone(&of_middle) < hash)
			hash = next_tombstone(&of_middle);
		if (next_tombstone(&of_recent) < hash)
			hash = next_tombstone(&of_recent);
		if (seen++ % FAV_PAUSE_HASHES == 0)
			fav_pause();
		in_base = pass_tombstone(&of_base, hash);
		in_middle = pass_tombstone(&of_middle, hash);
		in_recent = pass_tombstone(&of_recent, hash);
		is_reported = middle != NULL && fav_slices_report(middle, hash);
		if (fav_recent_contains(recent->recent, recent->nrecent, hash) ||
			(is_reported && !in_middle && !in_recent))
			continue;
		fav_store64(list + 8 * (size_t) count++, hash);
		if (in_middle)
			*excluded += !is_reported && !in_base;
		else if (in_recent)
			*excluded += is_reported || !in_base;
	}
	return count;
}

static FavStatus
chain_slices(FavFilter *stack, const FavFilter *level)
{
	uint32_t	i;

	if (level == NULL)
		return FAV_OK;
	if (stack->nslices + level->nslices > fav_max_slices(stack))
		return FAV_TOO_MANY_SLICES;
	for (i = 0; i < level->nslices; i++)
		stack->slices[stack->nslices++] = level->slices[i];
	stack->elements += level->elements;
	if (stack->elements > FAV_MAX_ELEMENTS)
		stack->elements = FAV_MAX_ELEMENTS;
	return FAV_OK;
}

FavStatus
fav_levels_stack(const FavLevels *levels, FavFilter *stack, uint8_t **tombstones)
{
	const FavFilter *recent = levels->recent;
	uint64_t	most = recent->ntombstones;
	FavKind		kind = kind_of(levels);
	uint64_t	excluded;
	FavStatus	status;

	*tombstones = NULL;
	if (!fits(levels->base, recent, kind) || !fits(levels->middle, recent, kind) ||
		recent->nslices > 0)
		return FAV_MISMATCH;
	if (levels->base != NULL)
		most += levels->base->ntombstones;
	if (levels->middle != NULL)
		most += levels->middle->ntombstones;
	*stack = *recent;
	stack->params.kind = kind;
	stack->has_excluded |= (levels->middle != NULL && levels->middle->has_excluded) ||
		(levels->base != NULL && levels->base->has_excluded);
	stack->ntombstones = 0;
	status = chain_slices(stack, levels->base);
	if (status == FAV_OK)
		status = chain_slices(stack, levels->middle);
	if (status != FAV_OK)
		return status;
	stack->is_stacked = stack->nslices > 0 && !fav_is_dated(stack);
	if (levels->base != NULL && stack->params.capacity < levels->base->params.capacity)
		stack->params.capacity = levels->base->params.capacity;
	if (most > 0)
	{
		if (most * 8 > FAV_MAX_SIZE)
			return FAV_TOO_LARGE;
		*tombstones = fav_alloc(most * 8);
		if (*tombstones == NULL)
			return FAV_NO_MEMORY;
		stack->ntombstones = join_tombstones(levels, *tombstones, &excluded);
		stack->tombstones = *tombstones;
		fav_count_out(stack, stack->nslices > 0 ? excluded : 0);
	}
	return fav_size(stack) > FAV_MAX_SIZE ? FAV_TOO_LARGE : FAV_OK;
}
