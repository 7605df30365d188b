/*
 * test_format.c
 *		The parser, the validator and the writer: an invalid value is rejected with the
 *		reason; a valid one is written with the same bytes.
 */
#include <math.h>

#include "dated.h"
#include "harness.h"
#include "hash.h"

/* A value with several slices, recent hashes and tombstones. */
static void
make_value(Value *value, uint32_t region_size)
{
	FavParams	params = {.capacity = 300, .kind = FAV_KIND_INTEGER, .error_rate = 0.05, .region_size = region_size, .seed = 7};
	FavEditor	editor;
	int64_t		i;

	fav_editor_new(&editor, &params);
	for (i = 0; i < 2040; i++)
		CHECK(fav_editor_add(&editor, fav_hash_integer(i, params.seed)) == FAV_OK);
	for (i = 0; i < 700; i++)
		CHECK(fav_editor_remove(&editor, fav_hash_integer(i, params.seed)) == FAV_OK);
	value_from_editor(value, &editor);
	fav_editor_close(&editor);
	CHECK(value->filter.nslices >= 3 && value->filter.nrecent > 2 && value->filter.ntombstones > 2);
}

/* Open and check a copy in an allocation of the exact size. */
static FavStatus
try(const uint8_t *bytes, size_t size, FavProblem *problem)
{
	uint8_t    *copy = malloc(size > 0 ? size : 1);
	FavFilter	filter;
	FavStatus	status;

	memcpy(copy, bytes, size);
	problem->detail[0] = '\0';
	status = fav_open(&filter, copy, size, size, problem);
	if (status == FAV_OK)
		status = fav_check(&filter, problem);
	free(copy);
	return status;
}

static void
expect_refusal(const char *what, const uint8_t *bytes, size_t size, const char *reason)
{
	FavProblem	problem;
	FavStatus	status = try(bytes, size, &problem);

	CHECK_THAT(status == FAV_MALFORMED && strstr(problem.detail, reason) != NULL,
			   "%s: status %d, \"%s\"", what, (int) status, problem.detail);
	CHECK_THAT(status != FAV_MALFORMED || problem.detail[strlen(problem.detail) - 1] == '.',
			   "%s: not a sentence: \"%s\"", what, problem.detail);
}

static void
store(uint8_t *at, size_t width, uint64_t number)
{
	size_t		i;

	for (i = 0; i < width; i++)
		at[i] = (uint8_t) (number >> 8 * i);
}

/* Replace one number of a value. */
typedef struct Change
{
	const char *what;
	size_t		at;
	size_t		width;
	uint64_t	number;
	const char *reason;
} Change;

static void
check_changes(const Value *value, const Change *changes, size_t count, size_t base)
{
	uint8_t    *bytes = malloc(value->size);
	size_t		i;

	for (i = 0; i < count; i++)
	{
		memcpy(bytes, value->bytes, value->size);
		store(bytes + base + changes[i].at, changes[i].width, changes[i].number);
		expect_refusal(changes[i].what, bytes, value->size, changes[i].reason);
	}
	free(bytes);
}

static void
test_header(const Value *value)
{
	const Change front[] = {
		{"version 0", FAV_AT_VERSION, 1, 0, "Format version is 0"},
		{"version 2", FAV_AT_VERSION, 1, 2, "Format version is 2"},
		{"version 255", FAV_AT_VERSION, 1, 255, "Format version is 255"},
		{"flags 8", FAV_AT_FLAGS, 1, 8, "Unknown flags and reserved"},
		{"flags 128", FAV_AT_FLAGS, 1, 128, "Unknown flags and reserved"},
		{"reserved", FAV_AT_NRUNS, 1, 1, "Unknown flags and reserved"},
		{"no kind", FAV_AT_KIND, 1, FAV_KIND_NONE, "if and only if it is not empty"},
		{"kind 6", FAV_AT_KIND, 1, FAV_KIND_PAIR + 1, "kind of its elements is 6"},
		{"kind 255", FAV_AT_KIND, 1, 255, "kind of its elements is 255"},
		{"region size 0", FAV_AT_REGION_SIZE, 1, 0, "Region size is 0"},
		{"region size 32", FAV_AT_REGION_SIZE, 1, 32, "Region size is 32"},
		{"region size 255", FAV_AT_REGION_SIZE, 1, 255, "Region size is 255"},
		{"another region size", FAV_AT_REGION_SIZE, 1, 8, "add up to"},
		{"33 slices", FAV_AT_NSLICES, 1, 33, "33 slices"},
		{"255 slices", FAV_AT_NSLICES, 1, 255, "255 slices"},
		{"no slices", FAV_AT_NSLICES, 1, 0, "without slices"},
		{"251 recent", FAV_AT_NRECENT, 2, 251, "251 recent"},
		{"65535 recent", FAV_AT_NRECENT, 2, 65535, "65535 recent"},
		{"one recent less", FAV_AT_NRECENT, 2, 1, ""},
	};
	const Change params[] = {
		{"capacity 0", FAV_PARAMS_AT_CAPACITY, 8, 0, "Capacity"},
		{"capacity too large", FAV_PARAMS_AT_CAPACITY, 8, FAV_MAX_ELEMENTS + 1, "Capacity"},
		{"capacity UINT64_MAX", FAV_PARAMS_AT_CAPACITY, 8, UINT64_MAX, "Capacity"},
		{"no tombstones", FAV_PARAMS_AT_NTOMBSTONES, 4, 0, "add up to"},
		{"2^31 tombstones", FAV_PARAMS_AT_NTOMBSTONES, 4, 0x80000000, "add up to"},
		{"2^32 - 1 tombstones", FAV_PARAMS_AT_NTOMBSTONES, 4, 0xffffffff, "add up to"},
		{"too many elements", FAV_PARAMS_AT_ELEMENTS, 8, FAV_MAX_ELEMENTS + 1, "elements, more than"},
		{"2^64 - 1 elements", FAV_PARAMS_AT_ELEMENTS, 8, UINT64_MAX, "elements, more than"},
	};

	test_begin("format: every number of the header");
	check_changes(value, front, sizeof(front) / sizeof(front[0]), 0);
	check_changes(value, params, sizeof(params) / sizeof(params[0]), fav_params_offset(&value->filter));
	test_end();
}

static void
test_error_rates(const Value *value)
{
	static const double bad[] = {NAN, -NAN, 0.0, -0.0, -0.01, 1.0000001, 2.0, 1e300, INFINITY, -INFINITY};
	uint8_t    *bytes = malloc(value->size);
	FavProblem	problem;
	double		rate = 1.0;
	size_t		rate_at = fav_params_offset(&value->filter) + FAV_PARAMS_AT_ERROR_RATE;
	uint64_t	bits;
	size_t		i;

	test_begin("format: invalid error rates");
	memcpy(bytes, value->bytes, value->size);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		memcpy(&bits, &bad[i], sizeof(bits));
		store(bytes + rate_at, 8, bits);
		expect_refusal("error rate", bytes, value->size, "Error rate is");
	}
	memcpy(&bits, &rate, sizeof(bits));
	store(bytes + rate_at, 8, bits);
	CHECK(try(bytes, value->size, &problem) == FAV_OK);
	free(bytes);
	test_end();
}

static void
test_directory(const Value *value)
{
	uint64_t	bits = fav_slice_bits(&value->filter.slices[1], value->filter.params.region_size);
	uint64_t	set = value->filter.slices[1].bits_set;
	const Change changes[] = {
		{"no blocks", FAV_SLICE_AT_NBLOCKS, 4, 0, "Slice 2 has no blocks"},
		{"one block more", FAV_SLICE_AT_NBLOCKS, 4, value->filter.slices[1].nblocks + 1, "add up to"},
		{"2^32 - 1 blocks", FAV_SLICE_AT_NBLOCKS, 4, UINT32_MAX, "add up to"},
		{"k 0", FAV_SLICE_AT_K, 1, 0, "Slice 2 sets 0 bits"},
		{"k 33", FAV_SLICE_AT_K, 1, 33, "Slice 2 sets 33 bits"},
		{"k 255", FAV_SLICE_AT_K, 1, 255, "Slice 2 sets 255 bits"},
		{"reserved, first byte", FAV_SLICE_AT_RESERVED, 1, 1, "Reserved bytes of slice 2"},
		{"reserved, second byte", FAV_SLICE_AT_RESERVED + 1, 1, 1, "Reserved bytes of slice 2"},
		{"reserved, third byte", FAV_SLICE_AT_RESERVED + 2, 1, 1, "Reserved bytes of slice 2"},
		{"one bit more than set", FAV_SLICE_AT_BITS_SET, 8, set + 1, "Slice 2 records"},
		{"one bit less than set", FAV_SLICE_AT_BITS_SET, 8, set - 1, "Slice 2 records"},
		{"more bits set than there are", FAV_SLICE_AT_BITS_SET, 8, bits + 1, "Slice 2 records"},
		{"2^64 - 1 bits set", FAV_SLICE_AT_BITS_SET, 8, UINT64_MAX, "Slice 2 records"},
		{"limit 0", FAV_SLICE_AT_BITS_LIMIT, 8, 0, "Slice 2 records"},
		{"limit above the bits", FAV_SLICE_AT_BITS_LIMIT, 8, bits + 1, "Slice 2 records"},
		{"limit 2^64 - 1", FAV_SLICE_AT_BITS_LIMIT, 8, UINT64_MAX, "Slice 2 records"},
	};

	test_begin("format: every number of the slice directory");
	check_changes(value, changes, sizeof(changes) / sizeof(changes[0]),
				  fav_entry_offset(&value->filter, 1));
	test_end();
}

static void
test_lists(const Value *value)
{
	uint8_t    *bytes = malloc(value->size);
	size_t		recent = FAV_FRONT_SIZE;
	size_t		tombstones = (size_t) value->filter.tombstones_offset;
	size_t		last = tombstones + 8 * (size_t) (value->filter.ntombstones - 1);
	uint8_t		first[8];

	test_begin("format: lists that are not in order");
	memcpy(bytes, value->bytes, value->size);
	memcpy(bytes + recent + 8, bytes + recent, 8);
	expect_refusal("a recent hash twice", bytes, value->size, "recent hashes 1 and 2 are the same");

	memcpy(bytes, value->bytes, value->size);
	memcpy(bytes + recent + 8 * (size_t) (value->filter.nrecent - 1), bytes + recent, 8);
	expect_refusal("first and last recent hash", bytes, value->size, "are the same");

	memcpy(bytes, value->bytes, value->size);
	memcpy(bytes + tombstones + 8, bytes + tombstones, 8);
	expect_refusal("a tombstone twice", bytes, value->size, "tombstones 1 and 2 are not");

	memcpy(bytes, value->bytes, value->size);
	memcpy(first, bytes + tombstones, 8);
	memcpy(bytes + tombstones, bytes + last, 8);
	memcpy(bytes + last, first, 8);
	expect_refusal("tombstones not ascending", bytes, value->size, "not in ascending order");

	memcpy(bytes, value->bytes, value->size);
	memcpy(bytes + recent + 8, bytes + last, 8);
	expect_refusal("a hash in recent and among the tombstones", bytes, value->size, "recent hash 2 also has a tombstone");

	memcpy(bytes, value->bytes, value->size);
	bytes[value->filter.slices[2].offset] ^= 4;
	expect_refusal("a bit of the data changed", bytes, value->size, "Slice 3 records");
	free(bytes);
	test_end();
}

static void
test_lengths(const Value *value)
{
	uint8_t    *longer = calloc(1, value->size + 64);
	size_t		size;

	test_begin("format: truncated at every length, and longer by up to 64 bytes");
	for (size = 0; size < value->size; size++)
		if (size != FAV_SHORT_SIZE)
			expect_refusal("truncated", value->bytes, size, "The value has");
	memcpy(longer, value->bytes, value->size);
	for (size = value->size + 1; size <= value->size + 64; size++)
		expect_refusal("trailing bytes", longer, size, "add up to");
	free(longer);
	test_end();
}

/* The short form of the empty filter: one byte, whatever is done with it becomes an ordinary value. */
static void
test_short(void)
{
	const uint8_t bytes[2] = {FAV_FORMAT_VERSION, FAV_FORMAT_VERSION};
	FavParams	params = {.capacity = 3, .kind = FAV_KIND_INTEGER, .error_rate = 0.2, .region_size = 1, .seed = 9, .keep = 4};
	FavParams	defaults;
	FavFilter	filter;
	FavEditor	editor;
	FavEditor	other;
	FavProblem	problem;
	FavMeasure	measure;
	Value		value;
	Value		same;
	uint8_t		again[FAV_SHORT_SIZE];
	unsigned	version;
	int64_t		i;

	test_begin("format: the short form of the empty filter");
	for (version = 0; version < 256; version++)
	{
		uint8_t		byte = (uint8_t) version;

		CHECK((try(&byte, 1, &problem) == FAV_OK) == (version == FAV_FORMAT_VERSION));
		CHECK(fav_is_short(&byte, 1) == (version == FAV_FORMAT_VERSION));
	}
	expect_refusal("no byte", bytes, 0, "has 0 bytes");
	expect_refusal("two bytes", bytes, 2, "has 2 bytes");
	CHECK(!fav_is_short(bytes, 2) && !fav_is_short(bytes, 0));
	CHECK(fav_open(&filter, bytes, 0, 1, &problem) == FAV_MALFORMED);
	CHECK(!fav_head_is_longer(bytes, 1));

	CHECK(fav_open(&filter, bytes, 1, 1, &problem) == FAV_OK);
	fav_set_default_params(&defaults);
	CHECK(filter.is_short && fav_is_empty(&filter) && filter.tombstones != NULL);
	CHECK(memcmp(&filter.params, &defaults, sizeof(defaults)) == 0);
	CHECK(fav_size(&filter) == FAV_SHORT_SIZE);
	fav_write(&filter, again);
	CHECK(again[0] == bytes[0]);
	CHECK(!fav_contains(&filter, 0) && !fav_has_tombstone(&filter, 0) && fav_count(&filter) == 0);
	CHECK(fav_bloat(&filter) >= 1.0 && fav_bloat(&filter) <= 1.0 && !fav_needs_rebuild(&filter));
	fav_measure(&filter, &measure);
	CHECK(measure.fill <= 0.0 && measure.error <= 0.0);

	/* an edit of it is one of a new filter with the default parameters */
	fav_editor_open(&editor, &filter);
	fav_editor_new(&other, &defaults);
	for (i = 0; i < 400; i++)
	{
		CHECK(fav_editor_add(&editor, fav_hash_integer(i, 0)) == FAV_OK);
		CHECK(fav_editor_add(&other, fav_hash_integer(i, 0)) == FAV_OK);
		CHECK(fav_editor_remove(&editor, fav_hash_integer(i / 2, 0)) == FAV_OK);
		CHECK(fav_editor_remove(&other, fav_hash_integer(i / 2, 0)) == FAV_OK);
	}
	editor.filter.params.kind = other.filter.params.kind = FAV_KIND_INTEGER;
	value_from_editor(&value, &editor);
	value_from_editor(&same, &other);
	CHECK(value.size == same.size && memcmp(value.bytes, same.bytes, value.size) == 0);
	CHECK(!value.filter.is_short);
	value_free(&value);
	value_free(&same);
	fav_editor_close(&editor);
	fav_editor_close(&other);

	/* it fits any other filter */
	fav_editor_new(&editor, &params);
	CHECK(fav_editor_add_at(&editor, 1, 5) == FAV_OK);
	value_from_editor(&value, &editor);
	CHECK(fav_editor_union(&editor, &filter) == FAV_OK);
	value_from_editor(&same, &editor);
	CHECK(value.size == same.size && memcmp(value.bytes, same.bytes, value.size) == 0);
	value_free(&value);
	value_free(&same);
	fav_editor_close(&editor);
	test_end();
}

/* The largest possible numbers: no computation wraps around. */
static void
test_huge(void)
{
	uint8_t		bytes[FAV_MAX_HEAD_SIZE] = {0};
	uint8_t    *entry;
	uint64_t	rate_bits;
	double		rate = 0.01;
	int			slices;
	int			i;

	test_begin("format: counts near overflow");
	memcpy(&rate_bits, &rate, sizeof(rate));
	for (slices = 1; slices <= FAV_MAX_SLICES; slices++)
	{
		memset(bytes, 0, sizeof(bytes));
		bytes[FAV_AT_VERSION] = FAV_FORMAT_VERSION;
		bytes[FAV_AT_REGION_SIZE] = FAV_MAX_REGION_SIZE;
		bytes[FAV_AT_NSLICES] = (uint8_t) slices;
		bytes[FAV_AT_KIND] = FAV_KIND_INTEGER;
		fav_store32(bytes + (FAV_HEADER_SIZE - FAV_PARAMS_SIZE) + FAV_PARAMS_AT_NTOMBSTONES, UINT32_MAX);
		fav_store64(bytes + (FAV_HEADER_SIZE - FAV_PARAMS_SIZE) + FAV_PARAMS_AT_CAPACITY, FAV_MAX_ELEMENTS);
		fav_store64(bytes + (FAV_HEADER_SIZE - FAV_PARAMS_SIZE) + FAV_PARAMS_AT_ERROR_RATE, rate_bits);
		for (i = 0; i < slices; i++)
		{
			entry = bytes + FAV_HEADER_SIZE + (size_t) i * FAV_SLICE_ENTRY_SIZE;
			/* with 32 slices, 32 * 2^27 blocks of 2^11 bytes are 2^43 */
			fav_store32(entry + FAV_SLICE_AT_NBLOCKS, i % 2 ? UINT32_MAX : UINT32_C(1) << 27);
			entry[FAV_SLICE_AT_K] = 1;
			fav_store64(entry + FAV_SLICE_AT_BITS_LIMIT, 1);
		}
		expect_refusal("huge", bytes, FAV_HEADER_SIZE + (size_t) slices * FAV_SLICE_ENTRY_SIZE, "add up to");
		expect_refusal("huge", bytes, sizeof(bytes), "add up to");
	}
	test_end();
}

/* The structure is checked even if only the head is available. */
static void
test_head(const Value *value)
{
	size_t		head = fav_head_size(&value->filter);
	uint8_t    *copy = malloc(head);
	FavFilter	filter;
	FavProblem	problem;
	size_t		available;
	uint32_t	i;

	test_begin("format: opened from its head alone");
	memcpy(copy, value->bytes, head);
	CHECK(fav_open(&filter, copy, head, value->size, &problem) == FAV_OK);
	CHECK(filter.tombstones == NULL && filter.tombstones_offset == value->filter.tombstones_offset);
	for (i = 0; i < filter.nslices; i++)
		CHECK(filter.slices[i].blocks == NULL && filter.slices[i].offset == value->filter.slices[i].offset);
	CHECK(fav_size(&filter) == value->size);
	for (available = 0; available < head; available++)
		CHECK(fav_open(&filter, copy, available, value->size, &problem) == FAV_MALFORMED);
	CHECK(fav_open(&filter, copy, head, value->size + 1, &problem) == FAV_MALFORMED);
	CHECK(fav_open(&filter, copy, head, value->size - 1, &problem) == FAV_MALFORMED);
	free(copy);
	test_end();
}

/* Flip each bit of the head: the value is rejected, or it is written with the same bytes. */
static void
test_flips(const Value *value)
{
	size_t		head = fav_head_size(&value->filter);
	uint8_t    *bytes = malloc(value->size);
	uint8_t    *again = malloc(value->size);
	FavFilter	filter;
	FavProblem	problem;
	size_t		bit;

	test_begin("format: an accepted value is written with the same bytes");
	memcpy(bytes, value->bytes, value->size);
	for (bit = 0; bit <= 8 * head; bit++)
	{
		/* the last round is unchanged */
		if (bit < 8 * head)
			bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
		if (fav_open(&filter, bytes, value->size, value->size, &problem) == FAV_OK)
		{
			CHECK(fav_size(&filter) == value->size);
			fav_write(&filter, again);
			CHECK_THAT(memcmp(bytes, again, value->size) == 0, "bit %u", (unsigned) bit);
		}
		else
			CHECK(bit < 8 * head);
		if (bit < 8 * head)
			bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
	}
	free(bytes);
	free(again);
	test_end();
}

int
main(void)
{
	static const uint32_t region_sizes[] = {7, 1, 10};
	size_t		i;

	for (i = 0; i < 3; i++)
	{
		Value		value;

		test_begin("format: a value of region size %u", region_sizes[i]);
		make_value(&value, region_sizes[i]);
		test_end();
		if (i == 0)
		{
			test_header(&value);
			test_error_rates(&value);
			test_directory(&value);
			test_lists(&value);
			test_lengths(&value);
			test_head(&value);
		}
		test_flips(&value);
		value_free(&value);
	}
	test_huge();
	test_short();
	return test_summary("test_format");
}
