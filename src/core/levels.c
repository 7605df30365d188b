/*
 * levels.c
 *		See levels.h.
 */
#include "levels.h"


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
	return fav_editor_has_tombstone(level, hash) ? fav_editor_revive(level, hash) :
		fav_editor_add(level, hash);
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
	return level->nrecent == 0 && level->params.seed == recent->params.seed &&
		level->params.region_size == recent->params.region_size &&
		level->params.keep == recent->params.keep && level->newest <= recent->newest &&
		(fav_is_empty(level) || level->params.kind == kind);
}

void
fav_levels_forget(FavFilter *base, FavFilter *middle, FavFilter *recent)
{
	FavFilter  *levels[] = {base, middle, recent};
	int32_t		newest = recent->newest;
	uint32_t	i;

	for (i = 0; i < 3; i++)
		if (levels[i] != NULL && levels[i]->newest > newest)
			newest = levels[i]->newest;
	for (i = 0; i < 3; i++)
		if (levels[i] != NULL)
			fav_forget(levels[i], newest);
}

/*
 * Join the tombstones of all levels to one ascending list, without those of elements that a
 * level above has added.  *excluded is the number of tombstones of elements that a level below
 * counts.  A level does not count those that have a tombstone in it.
 */
static uint32_t
join_tombstones(const FavFilter *base, const FavFilter *middle, const FavFilter *recent,
				uint8_t *list, uint64_t *excluded)
{
	FavMerge	merge = {.nlists = 0};
	uint32_t	count = 0;
	uint64_t	hash;
	uint32_t	which;

	fav_merge_tombstones(&merge, base);
	fav_merge_tombstones(&merge, middle);
	fav_merge_tombstones(&merge, recent);
	*excluded = 0;
	while ((which = fav_merge_next(&merge, &hash)) != 0)
	{
		bool		in_base = (which & 1) != 0;
		bool		in_middle = (which & 2) != 0;
		bool		in_recent = (which & 4) != 0;
		bool		is_reported = fav_slices_report(middle, hash);

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
	FavFilter	none;
	const FavFilter *base;
	const FavFilter *middle;
	uint64_t	most;
	uint64_t	excluded;
	FavKind		kind;
	FavStatus	status;

	fav_make_empty(&none, &recent->params);
	none.params.kind = FAV_KIND_NONE;
	base = levels->base != NULL ? levels->base : &none;
	middle = levels->middle != NULL ? levels->middle : &none;

	/* an empty level does not know its kind */
	kind = (FavKind) (!fav_is_empty(recent) ? recent : !fav_is_empty(middle) ? middle : base)
		->params.kind;
	*tombstones = NULL;
	if (!fits(base, recent, kind) || !fits(middle, recent, kind) || recent->nslices > 0)
		return FAV_MISMATCH;
	*stack = *recent;
	stack->params.kind = kind;
	stack->has_excluded |= middle->has_excluded || base->has_excluded;
	stack->ntombstones = 0;
	status = chain_slices(stack, base);
	if (status == FAV_OK)
		status = chain_slices(stack, middle);
	if (status != FAV_OK)
		return status;
	stack->is_stacked = stack->nslices > 0 && !fav_is_dated(stack);
	if (stack->params.capacity < base->params.capacity)
		stack->params.capacity = base->params.capacity;
	most = (uint64_t) base->ntombstones + middle->ntombstones + recent->ntombstones;
	if (most > 0)
	{
		status = fav_new_list(most, tombstones);
		if (status != FAV_OK)
			return status;
		stack->ntombstones = join_tombstones(base, middle, recent, *tombstones, &excluded);
		stack->tombstones = *tombstones;
		fav_count_out(stack, stack->nslices > 0 ? excluded : 0);
	}
	return fav_size(stack) > FAV_MAX_SIZE ? FAV_TOO_LARGE : FAV_OK;
}
