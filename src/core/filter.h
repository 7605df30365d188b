/*
 * filter.h
 *		The filter: recent hashes, slices, deleted hashes.
 *
 * Reading works on a FavFilter, in place.  Changing works on a FavEditor, which
 * starts from a FavFilter (or from nothing), copies what it changes and leaves
 * the rest where it is; fav_editor_finish() gives the result as a FavFilter to
 * write.  Any number of changes can be made in between: an array is one edit.
 *
 * Every change either succeeds or leaves the set of elements as it was.
 */
#ifndef FAV_FILTER_H
#define FAV_FILTER_H

#include "format.h"
#include "slice.h"
#include "tombstones.h"

/*
 * Memory comes from the program that embeds the core.  fav_alloc() may return
 * NULL, and must not leave by a longjmp: a half-made change would remain.
 */
extern void *fav_alloc(size_t size);
extern void fav_free(void *memory);

/*
 * A small bitmap of the recent hashes, to pass over the search for most hashes
 * that are not among them.
 */
typedef struct FavSketch
{
	uint64_t	words[UINT8_MAX + 1];	/* see fav_sketch_word() */
} FavSketch;

/* So many elements are deleted at once, their memory waited for together. */
#define FAV_DEL_AT_ONCE		64

typedef struct FavEditor
{
	FavFilter	filter;			/* as it is now, but for deletes: whole once it is finished */
	uint8_t    *own_blocks[FAV_MAX_SLICES]; /* NULL: the slice is untouched */
	uint8_t    *own_value;		/* the slice is in there as it was built; NULL: none is */
	size_t		zeroed;			/* so many bytes of its blocks are ready to be filled */
	bool		changed;		/* anything at all, since it was opened */
	FavTombstones tombstones;
	uint64_t	pending[FAV_DEL_AT_ONCE];	/* to be deleted: not in the set any more */
	uint32_t	npending;
	FavSketch	sketch;			/* of recent */
	uint8_t		own_recent[FAV_RECENT_MAX * 8]; /* filled from its end */
} FavEditor;

/*
 * The questions (hot.c): is the hash among the recent ones; how many slices report
 * it (all its bits are set), counted up to `enough`, of which *first is one.
 * Deleted may hide it all the same.
 */
extern bool (*fav_recent_contains) (const uint8_t *recent, uint32_t count, uint64_t hash);
extern uint32_t (*fav_reporting) (const FavFilter *filter, uint64_t hash, uint32_t enough,
								  uint32_t *first);

/* Does the filter have a tombstone for this hash?  Its tombstones must be loaded. */
static inline bool
fav_has_tombstone(const FavFilter *filter, uint64_t hash)
{
	if (filter->ntombstones == 0)
		return false;
	if (fav_tombstones_are_sorted(filter))
		return fav_hashes_contain(filter->tombstones, filter->ntombstones, hash);
	return fav_recent_contains(filter->tombstones, filter->ntombstones, hash);
}

/* Reading (hot.c): is the hash in the filter? */
extern bool (*fav_contains) (const FavFilter *filter, uint64_t hash);

/* Which words of a lane a group of bits takes, by the word it begins with: a one in each. */
typedef uint64_t FavGroupWords[FAV_LANE_WORDS][FAV_LANE_WORDS];

/*
 * The same for many questions: whatever does not depend on the hash, like which code fits
 * the shape of the filter, is found out once.  The filter must stay as it is meanwhile.
 */
typedef struct FavAsker FavAsker;

struct FavAsker
{
	bool		(*contains) (const FavAsker *asker, uint64_t hash);
	void		(*contains_many) (const FavAsker *asker, const uint64_t *hashes, size_t count,
								  bool *answers);
	const FavFilter *filter;
	const uint8_t *blocks;		/* of the only slice, if it is of the usual shape, */
	uint64_t	nblocks;
	const FavGroupWords *second_words;	/* and for the second group of bits there */
	bool		none_deleted;
	FavSketch	sketch;			/* of recent */
};

extern void fav_asker_init(FavAsker *asker, const FavFilter *filter);

static inline bool
fav_ask(const FavAsker *asker, uint64_t hash)
{
	return asker->contains(asker, hash);
}

/* One after the other, but what they look at is fetched ahead. */
static inline void
fav_ask_many(const FavAsker *asker, const uint64_t *hashes, size_t count, bool *answers)
{
	asker->contains_many(asker, hashes, count, answers);
}

/*
 * A slice of so many bytes is too large for the processor's nearest caches.  With less
 * it does not pay to compute what to fetch.
 */
#define FAV_FAR_SLICE		(384 * 1024)

static inline bool
fav_slice_is_far(const FavSlice *slice, uint32_t region_size)
{
	return fav_slice_bytes(slice, region_size) >= FAV_FAR_SLICE;
}

/*
 * Have the processor fetch what a question for this hash will look at, while it does
 * something else.  Inlined for sure: gcc takes a function that does nothing else for
 * one without any effect, and leaves the call out.
 */
#if defined(__GNUC__)
__attribute__((always_inline))
#endif
static inline void
fav_fetch_ahead(const FavFilter *filter, uint64_t hash)
{
	uint32_t	region_size = filter->params.region_size;
	FavProbe	probe = fav_probe_first(hash, region_size);
	size_t		one = (size_t) probe.lane * FAV_LANE_BYTES;
	size_t		two;
	uint32_t	i;

	fav_probe_next(&probe);
	two = (size_t) probe.lane * FAV_LANE_BYTES;
	for (i = filter->nslices; i-- > 0;)
	{
		const FavSlice *slice = &filter->slices[i];
		const uint8_t *block;

		if (!fav_slice_is_far(slice, region_size))
			continue;
		block = slice->blocks + fav_slice_block_offset(slice, region_size, hash);
		__builtin_prefetch(block + one);
		__builtin_prefetch(block + two);
	}
}

/* Editing */
extern void fav_editor_new(FavEditor *editor, const FavParams *params);

/* Some hashes of a list that lies in pieces. */
typedef struct FavSpan
{
	const uint64_t *hashes;
	size_t		count;
} FavSpan;

/*
 * All at once (build.c), from unique hashes: one slice of exactly the right size (or for
 * params->capacity, if that is more).  Up to FAV_RECENT_MAX of them are taken in
 * their order.  That of more does not matter to the result, only to the time it
 * takes: ascending hashes fill block after block.
 */
extern FavStatus fav_editor_build(FavEditor *editor, const FavParams *params,
								  const uint64_t *hashes, size_t count);
extern FavStatus fav_editor_build_spans(FavEditor *editor, const FavParams *params,
										const FavSpan *spans, size_t nspans);

/*
 * The same bytes from more than FAV_RECENT_MAX hashes, `count` in all, that come in
 * parts, best ascending ones.  None of a part is larger than `last`.
 *
 * If they may not be unique: `doubtful` (with room for a whole part) gets those for
 * which there was nothing to set, and so one of two that are equal; fill returns how
 * many.  Whoever finds that they are equal closes the editor.
 *
 * End returns false, with the editor closed, if a small slice happens to be so
 * uneven that it has to be wider: that takes all hashes once more.
 */
extern FavStatus fav_editor_begin_build(FavEditor *editor, const FavParams *params, size_t count);
extern size_t fav_editor_fill(FavEditor *editor, const uint64_t *hashes, size_t count,
							  uint64_t last, uint64_t *doubtful);
extern bool fav_editor_end_build(FavEditor *editor);

/*
 * What was built so, and is finished and still unchanged, is a value already: after
 * FAV_VALUE_PREFIX bytes for the program that embeds the core.  It is the caller's,
 * to be freed by fav_free().  NULL: it has to be written.
 */
#define FAV_VALUE_PREFIX	4

extern uint8_t *fav_editor_take_value(FavEditor *editor);

extern void fav_editor_open(FavEditor *editor, const FavFilter *source);
extern bool fav_editor_contains(FavEditor *editor, uint64_t hash);
extern FavStatus fav_editor_add(FavEditor *editor, uint64_t hash);

/*
 * A delete is put off until there are many, or until the next add or the end of the edit.
 * If there is not enough memory for it then, it is that which fails, and may be tried again.
 */
extern FavStatus fav_editor_del(FavEditor *editor, uint64_t hash);

/*
 * Exclude an element: it is absent from now on, whether it was ever added or not, until it
 * is added again.  Its hash becomes a tombstone and no bit is cleared, so no other element
 * is affected.  From then on a delete of this filter looks for a tombstone first: an
 * excluded element may be reported by bits that all belong to others.
 */
extern FavStatus fav_editor_exclude(FavEditor *editor, uint64_t hash);

/* Move recent into the slices now, not only when it is full. */
extern FavStatus fav_editor_flush(FavEditor *editor);

/* One after the other, until one fails. */
extern FavStatus fav_editor_add_many(FavEditor *editor, const uint64_t *hashes, size_t count);
extern FavStatus fav_editor_del_many(FavEditor *editor, const uint64_t *hashes, size_t count);
extern FavStatus fav_editor_exclude_many(FavEditor *editor, const uint64_t *hashes, size_t count);
extern FavStatus fav_editor_finish(FavEditor *editor, const FavFilter **result);
extern void fav_editor_close(FavEditor *editor);

/*
 * For build.c.  The geometry of the next slice, and memory for it, all zero, that is not
 * in the chain yet.
 */
extern FavStatus fav_size_next_slice(const FavFilter *filter, FavSlice *slice);
extern FavStatus fav_make_blocks(const FavFilter *filter, FavSlice *slice, uint8_t **blocks);

/*
 * The number of elements in the slices changes when an element becomes visible
 * in them or ceases to be.  An estimate: an add that meets a false positive is
 * taken for a re-add.
 */
static inline void
fav_count_in(FavFilter *filter)
{
	filter->elements += filter->elements < FAV_MAX_ELEMENTS;
}

static inline void
fav_count_out(FavFilter *filter, uint64_t count)
{
	filter->elements -= filter->elements < count ? filter->elements : count;
}

/*
 * For union.c.  Make slice i writable; let `next`, which was opened on the editor's filter,
 * take its place.
 */
extern FavStatus fav_editor_own_slice(FavEditor *editor, uint32_t i);
extern void fav_editor_replace(FavEditor *editor, const FavEditor *next);

static inline void
fav_sketch_clear(FavSketch *sketch)
{
	memset(sketch, 0, sizeof(*sketch));
}

/* Whole bytes of the hash: they cost the fewest instructions. */
static inline uint32_t
fav_sketch_word(uint64_t hash)
{
	return (uint8_t) (hash >> 8);
}

static inline void
fav_sketch_add(FavSketch *sketch, uint64_t hash)
{
	sketch->words[fav_sketch_word(hash)] |= UINT64_C(1) << hash % 64;
}

/* False: certainly not there. */
static inline bool
fav_sketch_may_contain(const FavSketch *sketch, uint64_t hash)
{
	return sketch->words[fav_sketch_word(hash)] >> hash % 64 & 1;
}

/* Does some slice report the hash? */
static inline bool
fav_slices_report(const FavFilter *filter, uint64_t hash)
{
	uint32_t	which;

	return fav_reporting(filter, hash, 1, &which) > 0;
}

/*
 * fav_open() of a whole value without slices, for a probe only: fills in the two lists
 * and the seed and checks what reading them relies on.  False for everything else,
 * malformed values included.
 */
static inline bool
fav_open_lists(FavFilter *filter, const uint8_t *bytes, size_t size)
{
	const uint8_t *params;

	if (size < FAV_HEADER_SIZE || bytes[FAV_AT_VERSION] != FAV_FORMAT_VERSION ||
		bytes[FAV_AT_FLAGS] > FAV_FLAG_EXCLUDED || bytes[FAV_AT_NSLICES] != 0 || bytes[FAV_AT_RESERVED] != 0)
		return false;
	filter->nslices = 0;
	filter->params.kind = bytes[FAV_AT_KIND];
	filter->nrecent = fav_load16(bytes + FAV_AT_NRECENT);
	if (filter->nrecent > FAV_RECENT_MAX || size < fav_head_size(0, filter->nrecent))
		return false;
	filter->recent = bytes + FAV_AT_RECENT;
	params = bytes + fav_params_offset(filter->nrecent);
	filter->params.seed = fav_load64(params + FAV_PARAMS_AT_SEED);
	filter->ntombstones = fav_load32(params + FAV_PARAMS_AT_NTOMBSTONES);
	filter->tombstones = params + FAV_PARAMS_SIZE;
	return fav_head_size(0, filter->nrecent) + 8 * (uint64_t) filter->ntombstones == size;
}

/*
 * fav_open() of a whole value with one slice, for a question only: fills in what
 * fav_contains() reads and checks what that relies on.  False for everything else,
 * malformed values included.
 */
static inline bool
fav_open_single(FavFilter *filter, const uint8_t *bytes, size_t size)
{
	FavSlice   *slice = &filter->slices[0];
	const uint8_t *params;
	const uint8_t *entry;

	if (size < fav_head_size(1, 0) || bytes[FAV_AT_VERSION] != FAV_FORMAT_VERSION ||
		bytes[FAV_AT_FLAGS] > FAV_FLAG_EXCLUDED || bytes[FAV_AT_NSLICES] != 1 || bytes[FAV_AT_RESERVED] != 0)
		return false;
	filter->nslices = 1;
	filter->params.region_size = bytes[FAV_AT_REGION_SIZE];
	filter->params.kind = bytes[FAV_AT_KIND];
	filter->nrecent = fav_load16(bytes + FAV_AT_NRECENT);
	if (filter->params.region_size - 1 >= FAV_MAX_REGION_SIZE || filter->nrecent > FAV_RECENT_MAX ||
		size < fav_head_size(1, filter->nrecent))
		return false;
	filter->recent = bytes + FAV_AT_RECENT;
	params = bytes + fav_params_offset(filter->nrecent);
	filter->params.seed = fav_load64(params + FAV_PARAMS_AT_SEED);
	filter->ntombstones = fav_load32(params + FAV_PARAMS_AT_NTOMBSTONES);
	entry = params + FAV_PARAMS_SIZE;
	slice->nblocks = fav_load32(entry + FAV_SLICE_AT_NBLOCKS);
	slice->k = entry[FAV_SLICE_AT_K];
	slice->blocks = entry + FAV_SLICE_ENTRY_SIZE;
	if (slice->nblocks < 1 || slice->k - 1 >= FAV_MAX_K ||
		fav_head_size(1, filter->nrecent) + fav_slice_bytes(slice, filter->params.region_size) +
		8 * (uint64_t) filter->ntombstones != size)
		return false;
	filter->tombstones = slice->blocks + fav_slice_bytes(slice, filter->params.region_size);
	return true;
}

#endif							/* FAV_FILTER_H */
