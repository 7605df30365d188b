/*
 * format.h
 *		The bytes of a fav value, and a filter as parsed from them.
 *
 * A value is, in this order:
 *
 *		front			8 bytes, or 16 in a dated value, FAV_AT_* below
 *		runs			5 bytes for each run of recent hashes of one period; dated values only
 *		recent			8 bytes for each hash, newest first, unique
 *		parameters		36 bytes, FAV_PARAMS_AT_* below
 *		slice directory	24 bytes for each slice, or 36 in a dated value, FAV_SLICE_AT_* below
 *		blocks			slice after slice, (region_size + 1) * 32 bytes a block
 *		tombstones		8 bytes for each hash, unique; ascending, or the newest first
 *						(fav_tombstones_are_sorted())
 *
 * All numbers are little endian, on disk and on the wire, on every machine.
 * There is no padding and nothing is aligned: numbers are read with fav_load*(), which is a
 * plain load where the machine allows it.
 *
 * Why this order: what one change writes is close together.  A new hash goes to the front
 * of recent, next to the count in the front.  A new tombstone of a value without slices
 * goes to the front of the tombstones, next to their count, the last of the parameters.
 * PostgreSQL leaves what the old and the new row have in common before and after that out
 * of the WAL record of an UPDATE, and so logs 20 bytes of the value, not all of it.
 *
 * The short form of the empty filter is its version alone.  It stands for NULL in columns that
 * are NOT NULL.
 *
 * The head is everything before the blocks.  It fits in the first TOAST chunk of a large value
 * (except for some dated ones, and those of sinks), and gives the offset of every block.
 */
#ifndef FAV_FORMAT_H
#define FAV_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FAV_FORMAT_VERSION	1

/* front */
#define FAV_AT_VERSION		0	/* u8, FAV_FORMAT_VERSION */
#define FAV_AT_FLAGS		1	/* u8, FAV_FLAG_* */
#define FAV_AT_REGION_SIZE	2	/* u8, 1 .. FAV_MAX_REGION_SIZE */
#define FAV_AT_NSLICES		3	/* u8, 0 .. fav_max_slices() */
#define FAV_AT_NRECENT		4	/* u16, 0 .. FAV_RECENT_LIMIT */
#define FAV_AT_KIND			6	/* u8, FavKind; none if and only if the value is empty */
#define FAV_AT_NRUNS		7	/* u8, 0 .. number of recent hashes; zero if not dated */
#define FAV_FRONT_SIZE		8

/* the front of a dated value goes on */
#define FAV_AT_KEEP			8	/* u32, 1 .. FAV_MAX_KEEP */
#define FAV_AT_NEWEST		12	/* i32, the newest period, or FAV_NO_PERIOD */
#define FAV_DATED_FRONT_SIZE 16

/* Some tombstones are of excluded elements, which need not have been added ever. */
#define FAV_FLAG_EXCLUDED	1

/* The filter forgets, see dated.h. */
#define FAV_FLAG_DATED		2

/*
 * The slices are a stack of levels, and elements need not have a home in them.  Only with slices,
 * and not in a dated value, where no removal clears a bit anyway.
 */
#define FAV_FLAG_STACKED	4

/* a run of recent hashes; the periods of runs descend */
#define FAV_RUN_AT_PERIOD	0	/* i32 */
#define FAV_RUN_AT_COUNT	4	/* u8, at least 1 */
#define FAV_RUN_SIZE		5

/* parameters, after recent: see fav_params_offset() */
#define FAV_PARAMS_AT_ELEMENTS	0	/* u64, elements in the slices; 0 while there
									 * are none */
#define FAV_PARAMS_AT_CAPACITY	8	/* u64, what the first slice is sized for: 1 ..
									 * FAV_MAX_ELEMENTS */
#define FAV_PARAMS_AT_SEED		16	/* u64, seed of the hash function */
#define FAV_PARAMS_AT_ERROR_RATE 24 /* IEEE 754 double, above 0 and at most 1 */
#define FAV_PARAMS_AT_NTOMBSTONES 32	/* u32 */
#define FAV_PARAMS_SIZE			36

/* front and parameters: the value of the empty filter */
#define FAV_HEADER_SIZE			(FAV_FRONT_SIZE + FAV_PARAMS_SIZE)

/* the short form of the empty filter */
#define FAV_SHORT_SIZE			1

/* an entry of the slice directory */
#define FAV_SLICE_AT_NBLOCKS	0	/* u32, at least 1 */
#define FAV_SLICE_AT_K			4	/* u8, bits per element: 1 .. FAV_MAX_K */
#define FAV_SLICE_AT_RESERVED	5	/* three bytes, always zero */
#define FAV_SLICE_AT_BITS_SET	8	/* u64, bits set in the data lanes */
#define FAV_SLICE_AT_BITS_LIMIT 16	/* u64, the slice is full from here on */
#define FAV_SLICE_ENTRY_SIZE	24

/* the entry of a dated value goes on */
#define FAV_SLICE_AT_FIRST		24	/* i32, the first and the last period of its elements */
#define FAV_SLICE_AT_LAST		28
#define FAV_SLICE_AT_ELEMENTS	32	/* u32, elements that no later slice has */
#define FAV_DATED_ENTRY_SIZE	36

#define FAV_WORD_BITS		64
#define FAV_LANE_WORDS		4
#define FAV_LANE_BITS		(FAV_LANE_WORDS * FAV_WORD_BITS)
#define FAV_LANE_BYTES		(FAV_LANE_BITS / 8)

/*
 * A filter flushes so many recent hashes.  The recent of a sink, which is not flushed, may have
 * more.  A run counts them in one byte.
 */
#define FAV_RECENT_MAX		128
#define FAV_RECENT_LIMIT	250

#define FAV_MAX_REGION_SIZE 31
#define FAV_MAX_K			32
#define FAV_MAX_KEEP		INT32_MAX

/* The newest period of a filter to which nothing was added yet. */
#define FAV_NO_PERIOD		INT32_MIN

/*
 * A filter that doubles from one block to the largest value has about 22 slices; the rest is
 * for unions.  The limit keeps the head within one TOAST chunk.  In a dated filter, up to nine
 * spans grow at once if elements come in random order of their periods.
 */
#define FAV_MAX_SLICES		32
#define FAV_MAX_DATED_SLICES 72

/* The size that few heads exceed, none of a plain filter, and the largest one. */
#define FAV_PLAIN_HEAD_SIZE \
	(FAV_HEADER_SIZE + FAV_MAX_SLICES * FAV_SLICE_ENTRY_SIZE + FAV_RECENT_MAX * 8)
#define FAV_MAX_HEAD_SIZE \
	(FAV_DATED_FRONT_SIZE + FAV_PARAMS_SIZE + FAV_MAX_DATED_SLICES * FAV_DATED_ENTRY_SIZE + \
	 FAV_RECENT_LIMIT * (8 + FAV_RUN_SIZE))

/* No value has more bits than that. */
#define FAV_MAX_ELEMENTS	(FAV_MAX_SIZE * 8)

/*
 * What can be stored can be dumped: the text form has two characters per byte, and its row
 * must stay below 1 GB.
 */
#define FAV_MAX_SIZE		((uint64_t) 511 * 1024 * 1024)

/* What the elements of a filter are.  The first one decides. */
typedef enum FavKind
{
	FAV_KIND_NONE,				/* there is none yet */
	FAV_KIND_INTEGER,
	FAV_KIND_TEXT,
	FAV_KIND_UUID,
	FAV_KIND_BYTES,
	FAV_KIND_PAIR
} FavKind;

/* The parameters of a filter that was given none: of fav_new(), fav_add(NULL, ...) and others. */
#define FAV_DEFAULT_CAPACITY	1000
#define FAV_DEFAULT_ERROR_RATE	0.01
#define FAV_DEFAULT_REGION_SIZE 7
#define FAV_DEFAULT_SEED		0

typedef struct FavParams
{
	uint64_t	capacity;		/* what the first slice is sized for */
	uint64_t	seed;
	double		error_rate;
	uint32_t	keep;			/* how many periods an element is kept; 0: for ever */
	uint16_t	region_size;
	uint16_t	kind;			/* FavKind; may be known before there is an element */
} FavParams;

typedef struct FavSlice
{
	uint32_t	nblocks;
	uint32_t	k;				/* bits per element */
	uint64_t	bits_set;
	uint64_t	bits_limit;
	uint64_t	offset;			/* of the first block within the value */
	const uint8_t *blocks;		/* the same in memory; NULL if not loaded */
	int32_t		first;			/* periods of the elements; 0 if not dated */
	int32_t		last;
	uint32_t	elements;		/* that no later slice has; only kept if dated */
} FavSlice;

/*
 * A filter in memory: the parsed head, and pointers to lists and blocks in memory of others.
 */
typedef struct FavFilter
{
	FavParams	params;
	uint64_t	elements;		/* in the slices, see fav_count() */
	uint64_t	tombstones_offset;	/* of the list within the value */
	uint32_t	nrecent;
	uint32_t	ntombstones;
	uint32_t	nslices;
	uint32_t	nruns;
	int32_t		newest;			/* period; 0 if not dated */
	bool		has_excluded;	/* FAV_FLAG_EXCLUDED */
	bool		is_stacked;		/* FAV_FLAG_STACKED */
	bool		is_short;		/* the short form of the empty filter, see fav_is_short() */
	const uint8_t *runs;
	const uint8_t *recent;
	const uint8_t *tombstones;	/* NULL if not loaded */
	FavSlice	slices[FAV_MAX_DATED_SLICES];
} FavFilter;

typedef enum FavStatus
{
	FAV_OK,
	FAV_MALFORMED,				/* these bytes are not a value */
	FAV_NO_MEMORY,
	FAV_TOO_LARGE,				/* would exceed FAV_MAX_SIZE */
	FAV_TOO_MANY_SLICES,		/* would exceed fav_max_slices() */
	FAV_MISMATCH,				/* other seed, region size, kind or keep */
	FAV_UNDATED					/* a dated filter that knows no period yet */
} FavStatus;

/* What is wrong with a value, as a sentence for the user. */
typedef struct FavProblem
{
	char		detail[200];
} FavProblem;

/* Numbers of this machine to little endian ones and back. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FAV_LITTLE32(value) __builtin_bswap32(value)
#define FAV_LITTLE64(value) __builtin_bswap64(value)
#else
#define FAV_LITTLE32(value) (value)
#define FAV_LITTLE64(value) (value)
#endif

static inline uint32_t
fav_load16(const uint8_t *at)
{
	return (uint32_t) at[0] | (uint32_t) at[1] << 8;
}

static inline uint32_t
fav_load32(const uint8_t *at)
{
	uint32_t	value;

	memcpy(&value, at, sizeof(value));
	return FAV_LITTLE32(value);
}

static inline uint64_t
fav_load64(const uint8_t *at)
{
	uint64_t	value;

	memcpy(&value, at, sizeof(value));
	return FAV_LITTLE64(value);
}

static inline void
fav_store16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t) value;
	at[1] = (uint8_t) (value >> 8);
}

static inline void
fav_store32(uint8_t *at, uint32_t value)
{
	uint32_t	little = FAV_LITTLE32(value);

	memcpy(at, &little, sizeof(little));
}

static inline void
fav_store64(uint8_t *at, uint64_t value)
{
	uint64_t	little = FAV_LITTLE64(value);

	memcpy(at, &little, sizeof(little));
}

/*
 * Is the hash in an ascending list?  The search for the first one that is not below it has no
 * branch that depends on the hashes: half of them would be mispredicted.
 */
static inline bool
fav_hashes_contain(const uint8_t *hashes, uint32_t count, uint64_t hash)
{
	const uint8_t *low = hashes;
	uint32_t	left = count;

	while (left > 0)
	{
		uint32_t	half = (left + 1) / 2;

		low += -(size_t) (fav_load64(low + 8 * (size_t) (half - 1)) < hash) & (8 * (size_t) half);
		left -= half;
	}
	return (size_t) (low - hashes) < 8 * (size_t) count && fav_load64(low) == hash;
}

static inline size_t
fav_block_bytes(uint32_t region_size)
{
	return (size_t) (region_size + 1) * FAV_LANE_BYTES;
}

/* Data bits of a slice: below 2^32 * 31 * 256, no overflow. */
static inline uint64_t
fav_slice_bits(const FavSlice *slice, uint32_t region_size)
{
	return (uint64_t) slice->nblocks * region_size * FAV_LANE_BITS;
}

static inline uint64_t
fav_slice_bytes(const FavSlice *slice, uint32_t region_size)
{
	return (uint64_t) slice->nblocks * fav_block_bytes(region_size);
}

static inline bool
fav_is_dated(const FavFilter *filter)
{
	return filter->params.keep > 0;
}

static inline uint32_t
fav_max_slices(const FavFilter *filter)
{
	return fav_is_dated(filter) ? FAV_MAX_DATED_SLICES : FAV_MAX_SLICES;
}

static inline size_t
fav_recent_offset(const FavFilter *filter)
{
	return fav_is_dated(filter) ? FAV_DATED_FRONT_SIZE + (size_t) filter->nruns * FAV_RUN_SIZE :
		FAV_FRONT_SIZE;
}

static inline size_t
fav_params_offset(const FavFilter *filter)
{
	return fav_recent_offset(filter) + (size_t) filter->nrecent * 8;
}

/* The offset of entry i of the slice directory. */
static inline size_t
fav_entry_offset(const FavFilter *filter, uint32_t i)
{
	return fav_params_offset(filter) + FAV_PARAMS_SIZE +
		(size_t) i * (fav_is_dated(filter) ? FAV_DATED_ENTRY_SIZE : FAV_SLICE_ENTRY_SIZE);
}

static inline size_t
fav_head_size(const FavFilter *filter)
{
	return fav_entry_offset(filter, filter->nslices);
}

/*
 * Periods, see dated.h
 */

/* How many periods later than promised an element may be forgotten. */
static inline uint32_t
fav_delay(uint32_t keep)
{
	return keep < 16 ? 1 : keep / 8;
}

static inline int64_t
fav_span(const FavFilter *filter, int32_t period)
{
	int64_t		width = (int64_t) fav_delay(filter->params.keep) + 1;

	if (!fav_is_dated(filter))
		return 0;
	/* rounded down; no sum or product here exceeds 64 bits */
	return period >= 0 ? period / width : -((-(int64_t) period + width - 1) / width);
}

/* The span of a slice. */
static inline int64_t
fav_slice_span(const FavFilter *filter, uint32_t i)
{
	return fav_span(filter, filter->slices[i].last);
}

/* Is one of the first `count` slices of this span? */
static inline bool
fav_has_span(const FavFilter *filter, uint32_t count, int64_t span)
{
	while (count-- > 0)
		if (fav_slice_span(filter, count) == span)
			return true;
	return false;
}

/* How many spans may be alive at once: those that `keep` + 1 periods in a row can touch. */
static inline uint32_t
fav_max_spans(uint32_t keep)
{
	uint64_t	delay = fav_delay(keep);

	return (uint32_t) ((keep + delay) / (delay + 1) + 1);
}

/* The error of the first slice of a span. */
static inline double
fav_first_error(double error_rate, uint32_t keep)
{
	return error_rate * 0.875 / fav_max_spans(keep);
}

/* Are elements that were last added in `period` forgotten in period `now`? */
static inline bool
fav_is_too_old(const FavFilter *filter, int32_t period, int32_t now)
{
	return fav_is_dated(filter) && (int64_t) period + filter->params.keep < now;
}

static inline int32_t
fav_run_period(const FavFilter *filter, uint32_t run)
{
	return (int32_t) fav_load32(filter->runs + run * FAV_RUN_SIZE + FAV_RUN_AT_PERIOD);
}

static inline uint32_t
fav_run_count(const FavFilter *filter, uint32_t run)
{
	return filter->runs[run * FAV_RUN_SIZE + FAV_RUN_AT_COUNT];
}

/* A slice gets an element of this period, which is of its span. */
static inline void
fav_widen_periods(FavSlice *slice, int32_t period)
{
	if (slice->first > period)
		slice->first = period;
	if (slice->last < period)
		slice->last = period;
}

/*
 * Counts and lists
 */

/*
 * The tombstones ascend, unless there are no slices and the list is short: then the newest
 * comes first.
 */
static inline bool
fav_tombstones_are_sorted(const FavFilter *filter)
{
	return filter->nslices > 0 || filter->ntombstones > FAV_RECENT_MAX;
}

static inline bool
fav_is_empty(const FavFilter *filter)
{
	return filter->nrecent == 0 && filter->nslices == 0 && filter->ntombstones == 0;
}

/*
 * The number of elements in the slices changes when an element becomes visible in them or
 * ceases to be.  It is an estimate: adding a false positive counts as adding an element again.
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

/* Are these bytes the short form of the empty filter? */
static inline bool
fav_is_short(const uint8_t *bytes, size_t size)
{
	return size == FAV_SHORT_SIZE && bytes[FAV_AT_VERSION] == FAV_FORMAT_VERSION;
}

/* The parameters of a filter that was given none. */
static inline void
fav_set_default_params(FavParams *params)
{
	memset(params, 0, sizeof(*params));
	params->capacity = FAV_DEFAULT_CAPACITY;
	params->seed = FAV_DEFAULT_SEED;
	params->error_rate = FAV_DEFAULT_ERROR_RATE;
	params->region_size = FAV_DEFAULT_REGION_SIZE;
}

/* A filter without elements. */
static inline void
fav_make_empty(FavFilter *filter, const FavParams *params)
{
	memset(filter, 0, sizeof(*filter));
	filter->params = *params;
	if (params->keep > 0)
		filter->newest = FAV_NO_PERIOD;
}

/*
 * Parse the value of `size` bytes of which the first `available` are at `bytes`.  The
 * structure is checked fully: whatever passes can be probed and edited without touching a
 * byte outside.  With available < size the head must be there (FAV_MAX_HEAD_SIZE is always
 * enough), and the pointers to blocks and tombstones are NULL.
 */
extern FavStatus fav_open(FavFilter *filter, const uint8_t *bytes,
						  size_t available, size_t size, FavProblem *problem);

/* Is the head longer than these first bytes of a value, as far as they tell? */
extern bool fav_head_is_longer(const uint8_t *bytes, size_t available);

/*
 * Check the contents, too: order and uniqueness of lists, bit counts.  For every value that
 * comes from outside.  One pass over the value.
 */
extern FavStatus fav_check(const FavFilter *filter, FavProblem *problem);

/*
 * The program that embeds the core provides these functions.
 *
 * fav_alloc() may return NULL.  It must not leave by a longjmp: a change would remain half
 * done.
 *
 * Long loops call fav_pause() every few milliseconds, so that the program can check for a
 * cancel.  It may leave by a longjmp.  Then the editor or value that was being made is invalid.
 */
extern void *fav_alloc(size_t size);
extern void fav_free(void *memory);
extern void fav_pause(void);

/* Of variables that keep something between calls.  A program with threads defines it. */
#ifndef FAV_PER_THREAD
#define FAV_PER_THREAD
#endif

/* Loops pause after this many blocks or hashes. */
#define FAV_PAUSE_BLOCKS	2048
#define FAV_PAUSE_HASHES	8192

/*
 * memmove to a lower address, or to where it does not overlap, and memset, with pauses.  The source
 * of nothing may be NULL.
 */
extern void fav_copy(uint8_t *to, const uint8_t *from, size_t size);
extern void fav_fill(uint8_t *to, uint8_t byte, size_t size);

/* The size of a filter as a value. */
extern uint64_t fav_size(const FavFilter *filter);

/* Write the value of a filter, or its head, of which the end is returned. */
extern void fav_write(const FavFilter *filter, uint8_t *out);
extern uint8_t *fav_write_head(const FavFilter *filter, uint8_t *out);

#endif							/* FAV_FORMAT_H */
