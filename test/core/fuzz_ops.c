/*
 * fuzz_ops.c
 *		Operations on a value that the validator accepts, or on one that began empty.
 *
 * The input:
 *
 *		byte 0		odd: it begins empty; bytes 1 .. 3 choose the parameters.  Byte 1 / 8 is the
 *					number of periods for which elements are kept; 0: for ever
 *					even: bytes 1 and 2 are a length, and a value follows
 *		the rest	operations: one byte for the operation, two for the element
 *					(12 bits) or elements, or for periods to go on
 *
 * For a filter that began empty, the test keeps an exact set and asserts the
 * promises.  For any other value it asserts: no crash, leak or endless loop; the
 * result is valid; and a single allocation is at most a small multiple of the value,
 * unless the stated capacity requires more.
 */
#include "dated.h"
#include "fuzz.h"
#include "hash.h"

#define UNIVERSE		4096
#define WORK_MAX		3000	/* the most elements for one input */

/* A slice for one flush takes at most 4 kB; the rest is for the core's own structures. */
#define SMALL_CHANGE	65536

typedef struct Subject
{
	FavEditor	editor;
	Value		value;			/* the editor is opened on this */
	Value		snapshot;		/* an earlier value, for unions */
	bool		honest;			/* began empty, so the exact set is complete */
	bool		checked;		/* began as a valid value */
	uint8_t		present[UNIVERSE];
	uint8_t		snapshot_present[UNIVERSE];
	int32_t		period[UNIVERSE];	/* in which an element was added; 0 if not dated */
	int32_t		snapshot_period[UNIVERSE];
	int32_t		now;
	uint32_t	work;
} Subject;

static inline uint64_t
hash_of(const Subject *subject, uint32_t element)
{
	return fav_hash_integer(element, subject->editor.filter.params.seed);
}

/* Is the element in the set, and not forgotten? */
static bool
is_kept(const Subject *subject, uint32_t element)
{
	return subject->present[element] &&
		!fav_is_too_old(&subject->editor.filter, subject->period[element], subject->now);
}

/* Is the allocated memory in proportion to the value? */
static void
check_allocation(const Subject *subject)
{
	const FavFilter *filter = &subject->editor.filter;
	FavSlice	stated = {0};
	uint64_t	allowed = 10 * (fav_size(filter) + subject->snapshot.size) + SMALL_CHANGE;
	size_t		largest = largest_allocation();
	uint64_t	capacity = filter->params.capacity;

	if (largest <= allowed)
		return;

	/* otherwise it is for the stated capacity, or the least, in the last slice of a chain */
	if (capacity < FAV_MIN_SLICE_CAPACITY)
		capacity = FAV_MIN_SLICE_CAPACITY;
	if (fav_size_slice(&stated, fav_error_share(filter->params.error_rate, FAV_MAX_SLICES),
					   filter->params.region_size, capacity))
		REQUIRE(largest <= allowed + fav_slice_bytes(&stated, filter->params.region_size));
	else
		REQUIRE(largest <= FAV_MAX_SIZE);
}

static void
check_status(const Subject *subject, FavStatus status)
{
	if (subject->honest)
		REQUIRE(status == FAV_OK || status == FAV_NO_MEMORY || status == FAV_TOO_LARGE || status == FAV_TOO_MANY_SLICES ||
				(status == FAV_UNDATED && subject->editor.filter.newest == FAV_NO_PERIOD));
	REQUIRE(status != FAV_MALFORMED);
}

/* Add an element, `late` periods ago. */
static void
add(Subject *subject, uint32_t element, uint32_t late)
{
	bool		is_dated = fav_is_dated(&subject->editor.filter);
	int32_t		period = !is_dated || (int64_t) subject->now - late <= FAV_NO_PERIOD ? subject->now : subject->now - (int32_t) late;
	FavStatus	status = is_dated ? fav_editor_add_at(&subject->editor, hash_of(subject, element), period) :
		fav_editor_add(&subject->editor, hash_of(subject, element));

	check_status(subject, status);
	subject->work++;
	if (status != FAV_OK || fav_is_too_old(&subject->editor.filter, period, subject->editor.filter.newest))
		return;
	REQUIRE(fav_editor_contains(&subject->editor, hash_of(subject, element)));
	if (!subject->present[element] || subject->period[element] < period)
		subject->period[element] = period;
	subject->present[element] = 1;
}

static void
go_on(Subject *subject, uint32_t periods, bool expire)
{
	if (!fav_is_dated(&subject->editor.filter))
		return;
	subject->now = (int64_t) subject->now + periods > INT32_MAX ? INT32_MAX : subject->now + (int32_t) periods;
	if (expire)
		check_status(subject, fav_editor_expire(&subject->editor, subject->now));
}

static void
del(Subject *subject, uint32_t element)
{
	FavStatus	status;

	/* if the elements are known, keep the contract: remove only elements of the set */
	subject->work++;
	if (subject->honest && !is_kept(subject, element))
		return;
	status = fav_editor_remove(&subject->editor, hash_of(subject, element));
	check_status(subject, status);
	if (status != FAV_OK)
		return;
	REQUIRE(!subject->checked || !fav_editor_contains(&subject->editor, hash_of(subject, element)));
	subject->present[element] = 0;
}

/* Remove several consecutive elements at once. */
static void
del_many(Subject *subject, uint32_t first, uint32_t count)
{
	uint64_t	hashes[UNIVERSE];
	uint32_t	elements[UNIVERSE];
	uint32_t	n = 0;
	FavStatus	status;
	uint32_t	i;

	for (i = 0; i < count; i++)
	{
		uint32_t	element = (first + i) % UNIVERSE;

		if (subject->honest && !is_kept(subject, element))
			continue;
		elements[n] = element;
		hashes[n++] = hash_of(subject, element);
	}
	subject->work += count;
	if (n == 0)
		return;
	status = fav_editor_remove_many(&subject->editor, hashes, n);
	check_status(subject, status);
	for (i = 0; i < n; i++)
	{
		REQUIRE(!subject->checked || status != FAV_OK || !fav_editor_contains(&subject->editor, hashes[i]));
		/* after a failure an unknown subset is removed */
		subject->present[elements[i]] = 0;
	}
}

/* Exclude an element, whether it is in the set or not. */
static void
exclude(Subject *subject, uint32_t element)
{
	uint64_t	hash = hash_of(subject, element);
	FavStatus	status = fav_editor_exclude(&subject->editor, hash);

	check_status(subject, status);
	REQUIRE(status != FAV_OK || !fav_editor_contains(&subject->editor, hash));
	if (status == FAV_OK)
		subject->present[element] = 0;
	subject->work++;
}

/* An empty value has no kind yet. */
static void
open_editor(Subject *subject)
{
	fav_editor_open(&subject->editor, &subject->value.filter);
	if (subject->editor.filter.params.kind == FAV_KIND_NONE)
		subject->editor.filter.params.kind = FAV_KIND_INTEGER;
}

static bool
take_value(const Subject *subject, FavEditor *editor, Value *value)
{
	const FavFilter *result;
	FavProblem	problem;

	if (fav_editor_finish(editor, &result) != FAV_OK)
		return false;
	value->size = fav_size(result);
	value->bytes = malloc(value->size);
	fav_write(result, value->bytes);
	if (fav_open(&value->filter, value->bytes, value->size, value->size, &problem) == FAV_OK &&
		(!subject->checked || fav_check(&value->filter, &problem) == FAV_OK))
		return true;
	REQUIRE(!subject->checked);
	value_free(value);
	return false;
}

static void
check_members(Subject *subject)
{
	uint32_t	i;

	if (!subject->honest)
		return;
	for (i = 0; i < UNIVERSE; i++)
		if (is_kept(subject, i))
		{
			REQUIRE(fav_editor_contains(&subject->editor, hash_of(subject, i)));
			REQUIRE(fav_contains(&subject->value.filter, hash_of(subject, i)));
		}
}

static void
reopen(Subject *subject)
{
	Value		next;

	if (!take_value(subject, &subject->editor, &next))
		return;
	fav_editor_close(&subject->editor);
	value_free(&subject->value);
	subject->value = next;
	open_editor(subject);
	check_members(subject);
	subject->work += 200;
}

static void
take_snapshot(Subject *subject)
{
	value_free(&subject->snapshot);
	subject->snapshot.size = 0;
	if (take_value(subject, &subject->editor, &subject->snapshot))
	{
		memcpy(subject->snapshot_present, subject->present, sizeof(subject->present));
		memcpy(subject->snapshot_period, subject->period, sizeof(subject->period));
	}
	else
		memset(&subject->snapshot, 0, sizeof(subject->snapshot));
	subject->work += 200;
}

static void
unite(Subject *subject)
{
	FavStatus	status;
	uint32_t	i;

	if (subject->snapshot.bytes == NULL)
		return;
	status = fav_editor_union(&subject->editor, &subject->snapshot.filter);
	check_status(subject, status);
	if (status == FAV_OK)
		for (i = 0; i < UNIVERSE; i++)
			if (subject->snapshot_present[i])
			{
				if (!subject->present[i] || subject->period[i] < subject->snapshot_period[i])
					subject->period[i] = subject->snapshot_period[i];
				subject->present[i] = 1;
			}
	subject->work += 1000;
}

static void
operate(Subject *subject, const uint8_t *at, const uint8_t *end)
{
	for (; at + 3 <= end && subject->work < WORK_MAX; at += 3)
	{
		uint32_t	element = fav_load16(at + 1) % UNIVERSE;
		uint32_t	count = at[0] / 8 * 16u;
		uint32_t	i;

		switch (at[0] % 8)
		{
			case 0:
				add(subject, element, at[2] >= 0x80 ? at[0] / 8 : 0);
				break;
			case 1:
				if (at[2] >= 0x80)
					exclude(subject, element);
				else
					del(subject, element);
				break;
			case 2:
				for (i = 0; i < count; i++)
					add(subject, (element + i) % UNIVERSE, 0);
				break;
			case 3:
				if (at[2] % 2 == 0)
					del_many(subject, element, count);
				else
					for (i = 0; i < count; i++)
						del(subject, (element + i) % UNIVERSE);
				break;
			case 4:
				/* block, unblock, block */
				for (i = 0; i < count / 8; i++)
				{
					add(subject, element, 0);
					del(subject, element);
				}
				break;
			case 5:
				go_on(subject, at[1], at[2] % 2 == 1);
				reopen(subject);
				break;
			case 6:
				take_snapshot(subject);
				break;
			case 7:
				unite(subject);
				break;
		}
		check_allocation(subject);
	}
}

static void
begin_empty(Subject *subject, const uint8_t *choice)
{
	static const double error_rates[] = {0.5, 0.2, 0.05, 0.01, 0.001, 0.0001, 1e-6, 1.0};
	FavParams	params = {0};

	params.error_rate = error_rates[choice[0] % 8];
	params.region_size = 1 + choice[1] % FAV_MAX_REGION_SIZE;
	params.capacity = (uint64_t) choice[2] * choice[2] + 1;
	params.seed = choice[0];
	params.keep = choice[0] / 8;
	if (params.keep > 0)
		subject->now = choice[2] % 3 == 0 ? -5 : choice[2] % 3 == 1 ? INT32_MIN + 1 : INT32_MAX - 50;
	subject->honest = true;
	subject->checked = true;
	params.kind = FAV_KIND_INTEGER;
	fav_editor_new(&subject->editor, &params);
	REQUIRE(take_value(subject, &subject->editor, &subject->value));
}

static bool
begin_with(Subject *subject, const uint8_t *bytes, size_t size)
{
	FavProblem	problem;
	Value	   *value = &subject->value;

	value->size = size;
	value->bytes = malloc(size > 0 ? size : 1);
	memcpy(value->bytes, bytes, size);
	if (fav_open(&value->filter, value->bytes, size, size, &problem) != FAV_OK)
	{
		value_free(value);
		return false;
	}
	subject->checked = fav_check(&value->filter, &problem) == FAV_OK;
	subject->now = value->filter.newest == FAV_NO_PERIOD ? 0 : value->filter.newest;
	open_editor(subject);
	return true;
}

void
fuzz_ops(const uint8_t *data, size_t size)
{
	static Subject subject;
	const uint8_t *end = data + size;
	size_t		length;

	if (size < 4)
		return;
	memset(&subject, 0, sizeof(subject));
	limit_allocation((size_t) 16 << 20);
	largest_allocation();
	length = fav_load16(data + 1);
	if (data[0] % 2 == 1)
	{
		begin_empty(&subject, data + 1);
		operate(&subject, data + 4, end);
	}
	else
	{
		if (length > size - 3)
			length = size - 3;
		if (!begin_with(&subject, data + 3, length))
			return;
		operate(&subject, data + 3 + length, end);
	}
	reopen(&subject);
	fav_editor_close(&subject.editor);
	value_free(&subject.value);
	value_free(&subject.snapshot);
	REQUIRE(allocated_bytes() == 0);
	limit_allocation(0);
}

FUZZ_TARGET(fuzz_ops)
