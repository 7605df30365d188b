/*
 * libfav.c
 *		The filter as a C library: libfav.h, on top of the core.
 *
 * A filter is an editor that stays open.  Elements become hashes as in src/type/elements.c, and
 * messages are those of the server.
 *
 * The core's functions for memory and pauses have no argument for the filter that they work for.
 * So each call stores it in a variable of its thread and restores the former value at the end.
 * All memory of a filter is in a list, so that freeing the filter releases it even after a
 * longjmp out of a pause.
 */
#include "libfav.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/editor.h"
#include "core/hash.h"
#include "core/sizing.h"

/* The number of elements whose cache misses overlap. */
#define PROBE_BATCH		64

#define STRING(x)		#x
#define EXPANDED(x)		STRING(x)

_Static_assert(LIBFAV_VERSION_MAJOR == FAV_FORMAT_VERSION, "the version follows the format");
_Static_assert((int) LIBFAV_NONE == FAV_KIND_NONE && (int) LIBFAV_INTEGER == FAV_KIND_INTEGER &&
			   (int) LIBFAV_TEXT == FAV_KIND_TEXT && (int) LIBFAV_UUID == FAV_KIND_UUID &&
			   (int) LIBFAV_BYTES == FAV_KIND_BYTES && (int) LIBFAV_PAIR == FAV_KIND_PAIR,
			   "the kinds have the same numbers");

/* Memory of a filter, in a list.  What follows is aligned for any type. */
typedef union Block
{
	struct
	{
		union Block *before;
		union Block *after;
	}			list;
	long double align[2];
} Block;

/* What a filter holds. */
typedef struct State
{
	FavEditor	editor;
	uint8_t    *bytes;			/* the value that the editor was opened on, or NULL */
	bool		was_short;		/* that was the short form of the empty filter */
} State;

struct libfav
{
	libfav_hooks hooks;
	Block	   *blocks;
	bool		is_busy;		/* a call changes it, or was interrupted while it did */
	State	   *state;
	uint8_t    *written;
};

/* The filter that the core works for. */
static FAV_PER_THREAD libfav *current;

/* Set the filter that the core works for.  Returns the former one. */
static libfav *
enter(libfav *filter)
{
	libfav	   *outer = current;

	current = filter;
	filter->is_busy = true;
	return outer;
}

static void
leave(libfav *outer)
{
	current->is_busy = false;
	current = outer;
}

/*
 * For the core
 */

void *
fav_alloc(size_t size)
{
	Block	   *block;

	if (size > SIZE_MAX - sizeof(Block))
		return NULL;
	block = current->hooks.alloc(sizeof(Block) + size, current->hooks.context);
	if (block == NULL)
		return NULL;
	block->list.before = NULL;
	block->list.after = current->blocks;
	if (current->blocks != NULL)
		current->blocks->list.before = block;
	current->blocks = block;
	return block + 1;
}

void
fav_free(void *memory)
{
	Block	   *block = (Block *) memory - 1;

	if (block->list.before != NULL)
		block->list.before->list.after = block->list.after;
	else
		current->blocks = block->list.after;
	if (block->list.after != NULL)
		block->list.after->list.before = block->list.before;
	current->hooks.free(block, current->hooks.context);
}

void
fav_pause(void)
{
	/* libfav_check() has no filter */
	if (current != NULL && current->hooks.pause != NULL)
		current->hooks.pause(current->hooks.context);
}

static void *
default_alloc(size_t size, void *context)
{
	(void) context;
	return malloc(size);
}

static void
default_free(void *memory, void *context)
{
	(void) context;
	free(memory);
}

/*
 * Errors
 */

static libfav_status fail(libfav_error *error, libfav_status status, const char *format,...)
#if defined(__GNUC__)
	__attribute__((cold, format(printf, 3, 4)))
#endif
	;

static libfav_status
fail(libfav_error *error, libfav_status status, const char *format,...)
{
	va_list		args;

	if (error == NULL)
		return status;
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return status;
}

static libfav_status
fail_interrupted(libfav_error *error)
{
	return fail(error, LIBFAV_INTERRUPTED, "an earlier call for this filter did not return");
}

/* The status of the core. */
static libfav_status
check(FavStatus status, libfav_error *error)
{
	switch (status)
	{
		case FAV_OK:
			return LIBFAV_OK;
		case FAV_NO_MEMORY:
			return fail(error, LIBFAV_NO_MEMORY, "out of memory");
		case FAV_TOO_LARGE:
			return fail(error, LIBFAV_TOO_LARGE, "filter would exceed the limit of %u bytes",
						(unsigned) FAV_MAX_SIZE);
		case FAV_TOO_MANY_SLICES:
			return fail(error, LIBFAV_TOO_MANY_SLICES, "filter would exceed the limit of %d slices,"
						" or %d if it forgets: rebuild it from its elements", FAV_MAX_SLICES,
						FAV_MAX_DATED_SLICES);
		case FAV_UNDATED:
			return fail(error, LIBFAV_UNDATED, "dated filter knows no period yet: add the first"
						" elements with fav_add_at in the server");
		case FAV_MISMATCH:
			return fail(error, LIBFAV_MISMATCH, "filters differ in their parameters");
		default:
			return fail(error, LIBFAV_MALFORMED, "unexpected status %d", (int) status);
	}
}

static libfav_status
check_value(FavStatus status, const FavProblem *problem, libfav_error *error)
{
	if (status == FAV_OK)
		return LIBFAV_OK;
	return fail(error, LIBFAV_MALFORMED, "not a fav value: %s", problem->detail);
}

const char *
libfav_status_name(libfav_status status)
{
	static const char *const names[] = {
		"OK", "MALFORMED", "NO_MEMORY", "TOO_LARGE", "TOO_MANY_SLICES", "MISMATCH", "UNDATED",
		"OTHER_KIND", "BAD_ELEMENT", "BAD_PARAMETER", "INTERRUPTED"
	};

	return (unsigned) status < sizeof(names) / sizeof(names[0]) ? names[status] : "UNKNOWN";
}

const char *
libfav_version(void)
{
	return EXPANDED(LIBFAV_VERSION_MAJOR) "." EXPANDED(LIBFAV_VERSION_MINOR) "."
		EXPANDED(LIBFAV_VERSION_PATCH);
}

/*
 * Elements
 */

static const char *
kind_name(FavKind kind)
{
	static const char *const names[] = {"no kind", "bigint", "text", "uuid", "bytea", "pair"};

	return (unsigned) kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown kind";
}

static inline bool
is_space(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/*
 * An integer as all versions of PostgreSQL read it: decimal digits, with spaces around.  (What
 * some of them read, such as 0x2a, is an error here.)
 */
static bool
parse_integer(const uint8_t *text, size_t size, int64_t *value)
{
	const uint8_t *end = text + size;
	bool		is_negative;
	uint64_t	limit;
	uint64_t	sum = 0;

	while (text < end && is_space(*text))
		text++;
	while (text < end && is_space(end[-1]))
		end--;
	is_negative = text < end && *text == '-';
	if (text < end && (*text == '-' || *text == '+'))
		text++;
	limit = (uint64_t) INT64_MAX + is_negative;
	if (text == end)
		return false;
	for (; text < end; text++)
	{
		if (*text < '0' || *text > '9' || sum > (limit - (uint64_t) (*text - '0')) / 10)
			return false;
		sum = sum * 10 + (uint64_t) (*text - '0');
	}
	*value = (int64_t) (is_negative ? -sum : sum);
	return true;
}

static inline int
hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* As uuid_in(): a hyphen may follow each group of four digits, and braces may be around. */
static bool
parse_uuid(const uint8_t *text, size_t size, uint8_t uuid[16])
{
	const uint8_t *end = text + size;
	int			i;

	if (size >= 2 && text[0] == '{')
	{
		if (end[-1] != '}')
			return false;
		text++;
		end--;
	}
	for (i = 0; i < 16; i++)
	{
		if (end - text < 2 || hex_digit(text[0]) < 0 || hex_digit(text[1]) < 0)
			return false;
		uuid[i] = (uint8_t) (hex_digit(text[0]) << 4 | hex_digit(text[1]));
		text += 2;
		if (i % 2 == 1 && i < 15 && text < end && *text == '-')
			text++;
	}
	return text == end;
}

static libfav_status
fail_syntax(const libfav_element *element, FavKind wanted, libfav_error *error)
{
	return fail(error, LIBFAV_BAD_ELEMENT, "invalid input syntax for type %s: \"%.*s\"",
				kind_name(wanted), element->size < 100 ? (int) element->size : 100,
				element->size > 0 ? (const char *) element->bytes : "");
}

/* The hash of an element for a filter of kind `wanted`, which is not none. */
static inline libfav_status
hash_element(const libfav_element *element, FavKind wanted, uint64_t seed, uint64_t *hash,
			 libfav_error *error)
{
	FavKind		kind = (FavKind) element->kind;
	const uint8_t *bytes = element->size > 0 ? element->bytes : (const uint8_t *) "";
	int64_t		integer;
	uint8_t		uuid[16];

	if (kind == FAV_KIND_UUID && element->size != sizeof(uuid))
		return fail(error, LIBFAV_BAD_ELEMENT, "a uuid has 16 bytes, not %zu", element->size);
	if (kind == wanted && kind == FAV_KIND_INTEGER)
		*hash = fav_hash_integer(element->first, seed);
	else if (kind == wanted && kind == FAV_KIND_PAIR)
		*hash = fav_hash_pair(element->first, element->second, seed);
	else if (kind == wanted)
		*hash = fav_hash_bytes(kind, bytes, element->size, seed);
	else if (kind == FAV_KIND_TEXT && wanted == FAV_KIND_INTEGER)
	{
		if (!parse_integer(bytes, element->size, &integer))
			return fail_syntax(element, wanted, error);
		*hash = fav_hash_integer(integer, seed);
	}
	else if (kind == FAV_KIND_TEXT && wanted == FAV_KIND_UUID)
	{
		if (!parse_uuid(bytes, element->size, uuid))
			return fail_syntax(element, wanted, error);
		*hash = fav_hash_bytes(FAV_KIND_UUID, uuid, sizeof(uuid), seed);
	}
	else
		return fail(error, LIBFAV_OTHER_KIND, "filter has elements of kind %s, not %s",
					kind_name(wanted), kind_name(kind));
	return LIBFAV_OK;
}

/* The kind of the first element decides if there is none yet. */
static libfav_status
hash_elements(const libfav_element *elements, size_t count, FavKind *kind, uint64_t seed,
			  uint64_t *hashes, libfav_error *error)
{
	libfav_status status = LIBFAV_OK;
	size_t		i;

	if (count > 0 && *kind == FAV_KIND_NONE)
	{
		*kind = (FavKind) elements[0].kind;
		if (*kind < FAV_KIND_INTEGER || *kind > FAV_KIND_PAIR)
			return fail(error, LIBFAV_BAD_ELEMENT, "element has no kind");
	}
	for (i = 0; i < count && status == LIBFAV_OK; i++)
	{
		if (i % FAV_PAUSE_HASHES == FAV_PAUSE_HASHES - 1)
			fav_pause();
		status = hash_element(&elements[i], *kind, seed, &hashes[i], error);
	}
	return status;
}

/* The same, in memory of the current filter. */
static libfav_status
make_hashes(const libfav_element *elements, size_t count, FavKind *kind, uint64_t seed,
			uint64_t **hashes, libfav_error *error)
{
	libfav_status status;

	*hashes = count > SIZE_MAX / sizeof(uint64_t) ? NULL : fav_alloc(count * sizeof(uint64_t));
	if (*hashes == NULL)
	{
		/* a constant, so that the analyzer knows that it is not LIBFAV_OK */
		(void) check(FAV_NO_MEMORY, error);
		return LIBFAV_NO_MEMORY;
	}
	status = hash_elements(elements, count, kind, seed, *hashes, error);
	if (status != LIBFAV_OK)
		fav_free(*hashes);
	return status;
}

/*
 * Filters
 */

static inline FavParams *
params_of(const libfav *filter)
{
	return &filter->state->editor.filter.params;
}

/* The kind of the elements: none in a filter that has become empty. */
static inline FavKind
kind_of(const libfav *filter)
{
	const FavEditor *editor = &filter->state->editor;
	bool		is_empty = editor->filter.nrecent == 0 && editor->filter.nslices == 0 &&
		editor->tombstones.count == 0;

	return is_empty ? FAV_KIND_NONE : (FavKind) editor->filter.params.kind;
}

/* Is it still the short form of the empty filter, which fits any other? */
static inline bool
is_short(const libfav *filter)
{
	return filter->state->was_short && !filter->state->editor.changed;
}

/* Release a state, of which the editor may not be open. */
static void
free_state(State *state, bool is_open)
{
	if (is_open)
		fav_editor_close(&state->editor);
	if (state->bytes != NULL)
		fav_free(state->bytes);
	fav_free(state);
}

static State *
new_state(void)
{
	State	   *state = fav_alloc(sizeof(State));

	if (state != NULL)
	{
		state->bytes = NULL;
		state->was_short = false;
	}
	return state;
}

/* Replace what the current filter holds. */
static void
set_state(State *state)
{
	if (current->state != NULL)
		free_state(current->state, true);
	current->state = state;
}

libfav_params
libfav_defaults(void)
{
	libfav_params params = {
		.capacity = FAV_DEFAULT_CAPACITY,
		.error_rate = FAV_DEFAULT_ERROR_RATE,
		.region_size = FAV_DEFAULT_REGION_SIZE,
		.seed = FAV_DEFAULT_SEED
	};

	return params;
}

/* As fav_new() checks them. */
static libfav_status
check_params(const libfav_params *from, FavParams *params, libfav_error *error)
{
	FavSlice	first;

	if (from->capacity < 1)
		return fail(error, LIBFAV_BAD_PARAMETER, "the capacity must be at least 1");
	if (!(from->error_rate >= FAV_MIN_ERROR_RATE && from->error_rate <= FAV_MAX_ERROR_RATE))
		return fail(error, LIBFAV_BAD_PARAMETER,
					"the error rate must be between 0.000001 and 0.5");
	if (from->region_size < 1 || from->region_size > FAV_MAX_REGION_SIZE)
		return fail(error, LIBFAV_BAD_PARAMETER, "the region size must be between 1 and %d",
					FAV_MAX_REGION_SIZE);
	if (from->keep > FAV_MAX_KEEP)
		return fail(error, LIBFAV_BAD_PARAMETER, "a filter keeps elements for at most %d periods",
					FAV_MAX_KEEP);
	if (from->capacity > FAV_MAX_ELEMENTS ||
		!fav_size_slice(&first, fav_error_share(from->error_rate, 0), from->region_size,
						from->capacity))
		return fail(error, LIBFAV_TOO_LARGE, "capacity %llu is too large",
					(unsigned long long) from->capacity);
	memset(params, 0, sizeof(*params));
	params->capacity = from->capacity;
	params->error_rate = from->error_rate;
	params->region_size = (uint16_t) from->region_size;
	params->seed = (uint64_t) from->seed;
	params->keep = from->keep;
	params->kind = FAV_KIND_NONE;
	return LIBFAV_OK;
}

libfav *
libfav_new(const libfav_hooks *hooks)
{
	libfav_hooks used = {NULL, NULL, NULL, NULL};
	libfav_params params = libfav_defaults();
	libfav	   *filter;

	if (hooks != NULL)
		used = *hooks;
	if (used.alloc == NULL)
		used.alloc = default_alloc;
	if (used.free == NULL)
		used.free = default_free;
	filter = used.alloc(sizeof(libfav), used.context);
	if (filter == NULL)
		return NULL;
	memset(filter, 0, sizeof(*filter));
	filter->hooks = used;
	if (libfav_reset(filter, &params, NULL) != LIBFAV_OK)
	{
		libfav_free(filter);
		return NULL;
	}
	return filter;
}

void
libfav_free(libfav *filter)
{
	if (filter == NULL)
		return;
	/* left so by a longjmp */
	if (current == filter)
		current = NULL;
	while (filter->blocks != NULL)
	{
		Block	   *next = filter->blocks->list.after;

		filter->hooks.free(filter->blocks, filter->hooks.context);
		filter->blocks = next;
	}
	filter->hooks.free(filter, filter->hooks.context);
}

libfav_status
libfav_reset(libfav *filter, const libfav_params *params, libfav_error *error)
{
	FavParams	checked;
	libfav_status status;
	libfav	   *outer;
	State	   *state;

	if (filter->is_busy)
		return fail_interrupted(error);
	status = check_params(params, &checked, error);
	if (status != LIBFAV_OK)
		return status;
	outer = enter(filter);
	state = new_state();
	if (state != NULL)
	{
		fav_editor_new(&state->editor, &checked);
		set_state(state);
	}
	leave(outer);
	return check(state != NULL ? FAV_OK : FAV_NO_MEMORY, error);
}

/* The filter in these bytes, which are checked completely. */
static libfav_status
open_value(FavFilter *value, const uint8_t *bytes, size_t size, libfav_error *error)
{
	FavProblem	problem;
	FavStatus	status = fav_open(value, bytes, size, size, &problem);

	if (status == FAV_OK)
		status = fav_check(value, &problem);
	return check_value(status, &problem, error);
}

/* The editor of the state, on a copy of these bytes. */
static libfav_status
open_state(State *state, const void *bytes, size_t size, libfav_error *error)
{
	FavFilter	value;
	libfav_status status;

	/* at least a byte, so that NULL means that there is no memory */
	state->bytes = size > FAV_MAX_SIZE ? NULL : fav_alloc(size + 1);
	if (state->bytes == NULL && size <= FAV_MAX_SIZE)
		return check(FAV_NO_MEMORY, error);
	if (state->bytes != NULL && size > 0)
		fav_copy(state->bytes, bytes, size);
	status = open_value(&value, state->bytes, size, error);
	if (status == LIBFAV_OK)
	{
		fav_editor_open(&state->editor, &value);
		state->was_short = value.is_short;
	}
	return status;
}

libfav_status
libfav_open(libfav *filter, const void *bytes, size_t size, libfav_error *error)
{
	libfav_status status;
	libfav	   *outer;
	State	   *state;

	if (filter->is_busy)
		return fail_interrupted(error);
	outer = enter(filter);
	state = new_state();
	if (state == NULL)
		status = check(FAV_NO_MEMORY, error);
	else
	{
		status = open_state(state, bytes, size, error);
		if (status == LIBFAV_OK)
			set_state(state);
		else
			free_state(state, false);
	}
	leave(outer);
	return status;
}

libfav_status
libfav_check(const void *bytes, size_t size, libfav_error *error)
{
	FavFilter	value;
	libfav	   *outer = current;
	libfav_status status;

	current = NULL;
	status = open_value(&value, bytes, size, error);
	current = outer;
	return status;
}

/* Sort by one byte after the other.  The result is in `hashes` again. */
static void
sort_hashes(uint64_t *hashes, uint64_t *spare, size_t count)
{
	int			shift;

	for (shift = 0; shift < 64; shift += 8)
	{
		size_t		starts[257] = {0};
		uint64_t   *swapped = hashes;
		size_t		i;

		fav_pause();
		for (i = 0; i < count; i++)
			starts[(hashes[i] >> shift & 255) + 1]++;
		for (i = 1; i < 256; i++)
			starts[i] += starts[i - 1];
		for (i = 0; i < count; i++)
		{
			if (i % FAV_PAUSE_HASHES == FAV_PAUSE_HASHES - 1)
				fav_pause();
			spare[starts[hashes[i] >> shift & 255]++] = hashes[i];
		}
		hashes = spare;
		spare = swapped;
	}
}

/* Sort the hashes and remove duplicates, as in fav_agg(). */
static libfav_status
sort_distinct(uint64_t *hashes, size_t *count, libfav_error *error)
{
	uint64_t   *spare = fav_alloc(*count * sizeof(uint64_t));
	size_t		kept = 0;
	size_t		i;

	if (spare == NULL)
		return check(FAV_NO_MEMORY, error);
	sort_hashes(hashes, spare, *count);
	fav_free(spare);
	for (i = 0; i < *count; i++)
		if (kept == 0 || hashes[i] != hashes[kept - 1])
			hashes[kept++] = hashes[i];
	*count = kept;
	return LIBFAV_OK;
}

static libfav_status
build_state(const libfav_params *params, FavKind kind, const uint64_t *hashes, size_t count,
			libfav_error *error)
{
	libfav_params used = *params;
	FavParams	checked;
	State	   *state;
	libfav_status status;

	if (used.capacity == 0)
		used.capacity = count > FAV_RECENT_MAX ? count : FAV_DEFAULT_CAPACITY;
	status = check_params(&used, &checked, error);
	if (status != LIBFAV_OK)
		return status;
	checked.kind = (uint16_t) kind;
	state = new_state();
	if (state == NULL)
		return check(FAV_NO_MEMORY, error);
	status = check(fav_editor_build(&state->editor, &checked, hashes, count), error);
	if (status == LIBFAV_OK)
		set_state(state);
	else
		free_state(state, true);
	return status;
}

libfav_status
libfav_build(libfav *filter, const libfav_params *params, const libfav_element *elements,
			 size_t count, libfav_error *error)
{
	FavKind		kind = FAV_KIND_NONE;
	uint64_t   *hashes;
	libfav	   *outer;
	libfav_status status;

	if (filter->is_busy)
		return fail_interrupted(error);
	if (params->keep > 0)
		return fail(error, LIBFAV_BAD_PARAMETER, "a filter that forgets cannot be built at once");
	outer = enter(filter);
	status = make_hashes(elements, count, &kind, (uint64_t) params->seed, &hashes, error);
	if (status == LIBFAV_OK)
	{
		status = sort_distinct(hashes, &count, error);
		if (status == LIBFAV_OK)
			status = build_state(params, kind, hashes, count, error);
		fav_free(hashes);
	}
	leave(outer);
	return status;
}

libfav_status
libfav_contains(const libfav *filter, const libfav_element *elements, size_t count,
				bool *answers, libfav_error *error)
{
	const FavEditor *editor = &filter->state->editor;
	FavKind		kind = kind_of(filter);
	uint64_t	hashes[PROBE_BATCH];
	size_t		from;
	size_t		batch;
	size_t		i;

	if (filter->is_busy)
		return fail_interrupted(error);
	for (from = 0; from < count; from += batch)
	{
		libfav_status status;

		/* without fav_pause(), because a probe may share the filter with other threads */
		if (from % FAV_PAUSE_HASHES == FAV_PAUSE_HASHES - PROBE_BATCH &&
			filter->hooks.pause != NULL)
			filter->hooks.pause(filter->hooks.context);
		batch = count - from < PROBE_BATCH ? count - from : PROBE_BATCH;
		status = hash_elements(elements + from, batch, &kind, editor->filter.params.seed, hashes,
							   error);
		if (status != LIBFAV_OK)
			return status;
		for (i = 0; i < batch && batch > 1; i++)
			fav_prefetch(&editor->filter, hashes[i]);
		for (i = 0; i < batch; i++)
			answers[from + i] = fav_editor_contains(editor, hashes[i]);
	}
	return LIBFAV_OK;
}

/*
 * Changes
 */

typedef FavStatus (*Change) (FavEditor *editor, const uint64_t *hashes, size_t count);

static libfav_status
change(libfav *filter, Change function, const libfav_element *elements, size_t count,
	   libfav_error *error)
{
	FavKind		kind;
	uint64_t   *hashes;
	libfav	   *outer;
	libfav_status status;
	size_t		from;
	size_t		batch;

	if (filter->is_busy)
		return fail_interrupted(error);
	kind = kind_of(filter);
	outer = enter(filter);
	status = make_hashes(elements, count, &kind, params_of(filter)->seed, &hashes, error);
	if (status == LIBFAV_OK)
	{
		params_of(filter)->kind = (uint16_t) kind;
		for (from = 0; from < count && status == LIBFAV_OK; from += batch)
		{
			batch = count - from < FAV_PAUSE_HASHES ? count - from : FAV_PAUSE_HASHES;
			fav_pause();
			status = check(function(&filter->state->editor, hashes + from, batch), error);
		}
		fav_free(hashes);
	}
	leave(outer);
	return status;
}

libfav_status
libfav_add(libfav *filter, const libfav_element *elements, size_t count, libfav_error *error)
{
	return change(filter, fav_editor_add_many, elements, count, error);
}

libfav_status
libfav_remove(libfav *filter, const libfav_element *elements, size_t count, libfav_error *error)
{
	return change(filter, fav_editor_remove_many, elements, count, error);
}

libfav_status
libfav_exclude(libfav *filter, const libfav_element *elements, size_t count, libfav_error *error)
{
	return change(filter, fav_editor_exclude_many, elements, count, error);
}

/* Finish the edit of a filter, so that its tombstones are complete. */
static libfav_status
finish(libfav *filter, const FavFilter **result, libfav_error *error)
{
	libfav	   *outer = enter(filter);
	FavStatus	status = fav_editor_finish(&filter->state->editor, result);

	leave(outer);
	return check(status, error);
}

static libfav_status
check_unitable(const libfav *a, const libfav *b, libfav_error *error)
{
	const FavParams *params = params_of(a);
	const FavParams *other = params_of(b);
	FavKind		kind = kind_of(a);
	FavKind		other_kind = kind_of(b);

	if (params->seed != other->seed)
		return fail(error, LIBFAV_MISMATCH, "cannot unite filters with different seeds");
	if (params->region_size != other->region_size)
		return fail(error, LIBFAV_MISMATCH, "cannot unite filters with different region sizes");
	if (params->keep != other->keep)
		return fail(error, LIBFAV_MISMATCH, "cannot unite filters that keep elements for different"
					" numbers of periods");
	if (kind != other_kind && kind != FAV_KIND_NONE && other_kind != FAV_KIND_NONE)
		return fail(error, LIBFAV_MISMATCH, "cannot unite filters of kinds %s and %s",
					kind_name(kind), kind_name(other_kind));
	return LIBFAV_OK;
}

libfav_status
libfav_union(libfav *filter, libfav *other, libfav_error *error)
{
	const FavFilter *own;
	const FavFilter *others;
	FavFilter	copy;
	libfav	   *outer;
	libfav_status status;

	if (filter->is_busy || other->is_busy)
		return fail_interrupted(error);
	if (is_short(other))
		return LIBFAV_OK;
	if (is_short(filter))
	{
		const void *bytes = NULL;	/* the analyzer does not know that it will be set */
		size_t		size = 0;

		status = libfav_write(other, &bytes, &size, error);
		return status != LIBFAV_OK ? status : libfav_open(filter, bytes, size, error);
	}
	status = check_unitable(filter, other, error);
	if (status == LIBFAV_OK)
		status = finish(other, &others, error);
	if (status == LIBFAV_OK)
		status = finish(filter, &own, error);
	if (status != LIBFAV_OK)
		return status;
	copy = *others;
	copy.params.kind = (uint16_t) kind_of(other);
	params_of(filter)->kind = (uint16_t) kind_of(filter);
	outer = enter(filter);
	status = check(fav_editor_union(&filter->state->editor, &copy), error);
	leave(outer);
	return status;
}

/*
 * Results
 */

libfav_info
libfav_get_info(const libfav *filter)
{
	const FavParams *params = params_of(filter);
	libfav_info info = {
		.params.capacity = params->capacity,
		.params.error_rate = params->error_rate,
		.params.region_size = params->region_size,
		.params.seed = (int64_t) params->seed,
		.params.keep = params->keep,
		.kind = (libfav_kind) kind_of(filter),
		.count = fav_count(&filter->state->editor.filter)
	};

	return info;
}

libfav_status
libfav_write(libfav *filter, const void **bytes, size_t *size, libfav_error *error)
{
	const FavFilter *finished;
	FavFilter	result;
	libfav	   *outer;
	libfav_status status;
	uint8_t    *written;

	if (filter->is_busy)
		return fail_interrupted(error);
	status = finish(filter, &finished, error);
	if (status != LIBFAV_OK)
		return status;
	result = *finished;
	result.is_short = is_short(filter);
	outer = enter(filter);
	written = fav_alloc(fav_size(&result));
	if (written != NULL)
	{
		fav_write(&result, written);
		if (filter->written != NULL)
			fav_free(filter->written);
		filter->written = written;
		*bytes = written;
		*size = fav_size(&result);
	}
	leave(outer);
	return check(written != NULL ? FAV_OK : FAV_NO_MEMORY, error);
}
