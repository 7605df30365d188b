/*
 * bounded.c
 *		A bounded set: a short list of hashes, or a set-associative table of
 *		fingerprints in which each bucket is an LRU list.
 */
#include "cache/bounded.h"

#include <stdio.h>

#define MALFORMED(problem, ...) \
	(snprintf((problem)->detail, sizeof((problem)->detail), __VA_ARGS__), FAV_MALFORMED)

FavStatus
fav_bounded_open(FavBounded *set, const uint8_t *bytes, size_t available, size_t size,
				 FavProblem *problem)
{
	uint8_t		form;

	memset(set, 0, sizeof(*set));
	if (size < FAV_BOUNDED_HEADER_SIZE || available < FAV_BOUNDED_HEADER_SIZE)
		return MALFORMED(problem, "It has %zu bytes, less than the header.", size);
	if (bytes[FAV_BOUNDED_AT_FORMAT] != FAV_BOUNDED_FORMAT)
		return MALFORMED(problem, "The first byte is %u, but only %d is known.",
						 bytes[FAV_BOUNDED_AT_FORMAT], FAV_BOUNDED_FORMAT);
	form = bytes[FAV_BOUNDED_AT_FORM];
	if (form > 1 || bytes[FAV_BOUNDED_AT_RESERVED] != 0)
		return MALFORMED(problem, "Unknown forms and reserved bytes must be zero.");
	if (bytes[FAV_BOUNDED_AT_KIND] > FAV_KIND_PAIR)
		return MALFORMED(problem, "The kind of its elements is %u, but at most %d is known.",
						 bytes[FAV_BOUNDED_AT_KIND], FAV_KIND_PAIR);
	set->params.kind = bytes[FAV_BOUNDED_AT_KIND];
	set->params.capacity = fav_load32(bytes + FAV_BOUNDED_AT_CAPACITY);
	set->params.seed = fav_load64(bytes + FAV_BOUNDED_AT_SEED);
	set->used = fav_load32(bytes + FAV_BOUNDED_AT_USED);
	if (set->params.capacity < 1 || set->params.capacity > FAV_BOUNDED_MAX_CAPACITY)
		return MALFORMED(problem, "Capacity is %llu, but must be between 1 and %d.",
						 (unsigned long long) set->params.capacity, FAV_BOUNDED_MAX_CAPACITY);
	if ((set->params.kind == FAV_KIND_NONE) != (set->used == 0))
		return MALFORMED(problem, "A value has a kind of elements if and only if it is not empty.");
	if (form == 0)
	{
		if (set->used > fav_bounded_list_limit(set))
			return MALFORMED(problem, "The list has %u elements, but at most %u are possible.",
							 set->used, fav_bounded_list_limit(set));
	}
	else
	{
		if (set->params.capacity <= FAV_BOUNDED_LIST_MAX)
			return MALFORMED(problem, "A capacity of %llu is too small for a table.",
							 (unsigned long long) set->params.capacity);
		set->nbuckets = fav_bounded_nbuckets(set->params.capacity);
		if (set->used < 1 || set->used > fav_bounded_nslots(set->params.capacity))
			return MALFORMED(problem, "The table records %u elements, but must have 1 to %u.",
							 set->used, fav_bounded_nslots(set->params.capacity));
	}
	if (size != fav_bounded_size(set))
		return MALFORMED(problem, "It has %zu bytes, but the header says %zu.",
						 size, fav_bounded_size(set));
	set->entries = available == size ? bytes + FAV_BOUNDED_HEADER_SIZE : NULL;
	return FAV_OK;
}

/* The lower 48 bits of the hash.  0 means a free slot, so 0 and 1 share a fingerprint. */
static inline uint64_t
fingerprint_of(uint64_t hash)
{
	uint64_t	fingerprint = hash & UINT64_C(0xffffffffffff);

	return fingerprint == 0 ? 1 : fingerprint;
}

static inline uint64_t
load_slot(const uint8_t *bucket, uint32_t slot)
{
	return fav_load32(bucket + 4 * slot) |
		(uint64_t) fav_load16(bucket + FAV_BUCKET_HIGHS + 2 * slot) << 32;
}

static inline void
store_slot(uint8_t *bucket, uint32_t slot, uint64_t fingerprint)
{
	fav_store32(bucket + 4 * slot, (uint32_t) fingerprint);
	fav_store16(bucket + FAV_BUCKET_HIGHS + 2 * slot, (uint32_t) (fingerprint >> 32));
}

/* The slot with this fingerprint, or FAV_BUCKET_SLOTS.  The first slot with 0 is the free one. */
static inline uint32_t
find_slot(const uint8_t *bucket, uint64_t fingerprint)
{
	uint32_t	slot;

	for (slot = 0; slot < FAV_BUCKET_SLOTS; slot++)
		if (fav_load32(bucket + 4 * slot) == (uint32_t) fingerprint &&
			load_slot(bucket, slot) == fingerprint)
			break;
	return slot;
}

static inline uint32_t
find_hash(const FavBounded *list, uint64_t hash)
{
	uint32_t	i;

	for (i = 0; i < list->used; i++)
		if (fav_load64(list->entries + 8 * i) == hash)
			break;
	return i;
}

bool
fav_bucket_contains(const uint8_t *bucket, uint64_t hash)
{
	return find_slot(bucket, fingerprint_of(hash)) < FAV_BUCKET_SLOTS;
}

bool
fav_bounded_contains(const FavBounded *set, uint64_t hash)
{
	if (set->nbuckets == 0)
		return find_hash(set, hash) < set->used;
	return fav_bucket_contains(set->entries + fav_bounded_bucket_offset(set, hash), hash);
}

static FavStatus
check_bucket(const uint8_t *bucket, uint32_t number, uint32_t *used, FavProblem *problem)
{
	uint32_t	count = find_slot(bucket, 0);
	uint32_t	i;

	for (i = 0; i < count; i++)
		if (find_slot(bucket, load_slot(bucket, i)) != i)
			return MALFORMED(problem, "Bucket %u has a fingerprint twice.", number + 1);
	for (; i < FAV_BUCKET_SLOTS; i++)
		if (load_slot(bucket, i) != 0)
			return MALFORMED(problem, "Bucket %u has a free slot before a used one.", number + 1);
	*used += count;
	return FAV_OK;
}

FavStatus
fav_bounded_check(const FavBounded *set, FavProblem *problem)
{
	uint32_t	used = 0;
	uint32_t	i;

	if (set->nbuckets == 0)
	{
		for (i = 0; i < set->used; i++)
			if (find_hash(set, fav_load64(set->entries + 8 * i)) != i)
				return MALFORMED(problem, "Hash %u is in the list before.", i + 1);
		return FAV_OK;
	}
	for (i = 0; i < set->nbuckets; i++)
	{
		if (i % FAV_PAUSE_BLOCKS == 0)
			fav_pause();
		if (check_bucket(set->entries + (size_t) i * FAV_BUCKET_BYTES, i, &used, problem) != FAV_OK)
			return FAV_MALFORMED;
	}
	if (used != set->used)
		return MALFORMED(problem, "The table records %u elements, but has %u.", set->used, used);
	return FAV_OK;
}

double
fav_bounded_eviction_rate(const FavBounded *set)
{
	uint32_t	full = 0;
	uint32_t	i;

	if (set->nbuckets == 0)
		return set->used == set->params.capacity ? 1.0 : 0.0;
	for (i = 0; i < set->nbuckets; i++)
	{
		if (i % FAV_PAUSE_BLOCKS == 0)
			fav_pause();
		full += load_slot(set->entries + (size_t) i * FAV_BUCKET_BYTES, FAV_BUCKET_SLOTS - 1) != 0;
	}
	return (double) full / set->nbuckets;
}

/* Allocate a list, or a table of `nbuckets`.  Its entries are not set. */
static FavStatus
allocate(FavBoundedEditor *editor, uint32_t nbuckets)
{
	size_t		size = nbuckets > 0 ?
		(size_t) nbuckets * FAV_BUCKET_BYTES : FAV_BOUNDED_LIST_MAX * 8;
	uint8_t    *value = fav_alloc(FAV_VALUE_PREFIX + FAV_BOUNDED_HEADER_SIZE + size);

	if (value == NULL)
		return FAV_NO_MEMORY;
	editor->value = value;
	editor->set.entries = value + FAV_VALUE_PREFIX + FAV_BOUNDED_HEADER_SIZE;
	editor->set.nbuckets = nbuckets;
	return FAV_OK;
}

static inline uint8_t *
own_entries(FavBoundedEditor *editor)
{
	return editor->value + FAV_VALUE_PREFIX + FAV_BOUNDED_HEADER_SIZE;
}

FavStatus
fav_bounded_new(FavBoundedEditor *editor, uint32_t capacity, uint64_t seed)
{
	memset(editor, 0, sizeof(*editor));
	editor->set.params.capacity = capacity;
	editor->set.params.seed = seed;
	editor->set.params.kind = FAV_KIND_NONE;
	return allocate(editor, 0);
}

FavStatus
fav_bounded_edit(FavBoundedEditor *editor, const FavBounded *source)
{
	editor->set = *source;
	editor->changed = false;
	if (allocate(editor, source->nbuckets) != FAV_OK)
		return FAV_NO_MEMORY;
	fav_copy(own_entries(editor), source->entries,
			 fav_bounded_size(source) - FAV_BOUNDED_HEADER_SIZE);
	return FAV_OK;
}

/* Make an element the newest of its bucket.  The oldest of a full bucket drops out. */
static void
add_to_bucket(FavBoundedEditor *editor, uint64_t hash)
{
	uint8_t    *bucket = own_entries(editor) + fav_bounded_bucket_offset(&editor->set, hash);
	uint64_t	fingerprint = fingerprint_of(hash);
	uint32_t	slot = find_slot(bucket, fingerprint);

	if (slot == 0)
		return;
	if (slot == FAV_BUCKET_SLOTS)
	{
		slot = find_slot(bucket, 0);
		if (slot == FAV_BUCKET_SLOTS)
			slot = FAV_BUCKET_SLOTS - 1;
		else
			editor->set.used++;
	}
	memmove(bucket + 4, bucket, 4 * slot);
	memmove(bucket + FAV_BUCKET_HIGHS + 2, bucket + FAV_BUCKET_HIGHS, 2 * slot);
	store_slot(bucket, 0, fingerprint);
	editor->changed = true;
}

static void
add_to_list(FavBoundedEditor *editor, uint64_t hash)
{
	uint8_t    *list = own_entries(editor);
	uint32_t	position = find_hash(&editor->set, hash);

	if (position == 0 && editor->set.used > 0)
		return;
	if (position == editor->set.used)
	{
		if (position == editor->set.params.capacity)
			position--;
		else
			editor->set.used++;
	}
	memmove(list + 8, list, 8 * position);
	fav_store64(list, hash);
	editor->changed = true;
}

/* Turn a list into a table. */
static FavStatus
make_table(FavBoundedEditor *editor)
{
	FavBoundedEditor table = *editor;
	uint32_t	i;

	if (allocate(&table, fav_bounded_nbuckets(table.set.params.capacity)) != FAV_OK)
		return FAV_NO_MEMORY;
	fav_fill(own_entries(&table), 0, (size_t) table.set.nbuckets * FAV_BUCKET_BYTES);
	table.set.used = 0;
	for (i = editor->set.used; i-- > 0;)
		add_to_bucket(&table, fav_load64(editor->set.entries + 8 * i));
	fav_free(editor->value);
	*editor = table;
	return FAV_OK;
}

FavStatus
fav_bounded_add(FavBoundedEditor *editor, uint64_t hash)
{
	const FavBounded *set = &editor->set;

	if (set->nbuckets == 0 && set->used == FAV_BOUNDED_LIST_MAX &&
		set->params.capacity > FAV_BOUNDED_LIST_MAX && find_hash(set, hash) == set->used &&
		make_table(editor) != FAV_OK)
		return FAV_NO_MEMORY;
	if (set->nbuckets > 0)
		add_to_bucket(editor, hash);
	else
		add_to_list(editor, hash);
	return FAV_OK;
}

FavStatus
fav_bounded_remove(FavBoundedEditor *editor, uint64_t hash)
{
	FavBounded *set = &editor->set;
	uint8_t    *entries = own_entries(editor);

	if (set->nbuckets > 0)
	{
		uint8_t    *bucket = entries + fav_bounded_bucket_offset(set, hash);
		uint32_t	slot = find_slot(bucket, fingerprint_of(hash));
		uint32_t	behind = FAV_BUCKET_SLOTS - 1 - slot;

		if (slot == FAV_BUCKET_SLOTS)
			return FAV_OK;
		memmove(bucket + 4 * slot, bucket + 4 * (slot + 1), 4 * behind);
		memmove(bucket + FAV_BUCKET_HIGHS + 2 * slot, bucket + FAV_BUCKET_HIGHS + 2 * (slot + 1),
				2 * behind);
		store_slot(bucket, FAV_BUCKET_SLOTS - 1, 0);
	}
	else
	{
		uint32_t	position = find_hash(set, hash);

		if (position == set->used)
			return FAV_OK;
		memmove(entries + 8 * position, entries + 8 * (position + 1),
				8 * (set->used - 1 - position));
	}

	/* the count of a value that is damaged on disk may be too low */
	if (set->used > 0)
		set->used--;
	editor->changed = true;
	return FAV_OK;
}

void
fav_bounded_finish(FavBoundedEditor *editor)
{
	FavBounded *set = &editor->set;
	uint8_t    *header = editor->value + FAV_VALUE_PREFIX;

	/* an empty set is a list and has no kind */
	if (set->used == 0)
	{
		set->nbuckets = 0;
		set->params.kind = FAV_KIND_NONE;
	}
	memset(header, 0, FAV_BOUNDED_HEADER_SIZE);
	header[FAV_BOUNDED_AT_FORMAT] = FAV_BOUNDED_FORMAT;
	header[FAV_BOUNDED_AT_KIND] = (uint8_t) set->params.kind;
	header[FAV_BOUNDED_AT_FORM] = set->nbuckets > 0;
	fav_store32(header + FAV_BOUNDED_AT_CAPACITY, (uint32_t) set->params.capacity);
	fav_store64(header + FAV_BOUNDED_AT_SEED, set->params.seed);
	fav_store32(header + FAV_BOUNDED_AT_USED, set->used);
}
