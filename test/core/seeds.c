/*
 * seeds.c
 *		Write the seeds of the fuzz targets: small values with everything that a value
 *		can have, inconsistent values, and operations that reach all code.
 *
 * Usage: seeds <corpus directory>
 */
#include "cache/bounded.h"
#include "dated.h"
#include "harness.h"
#include "hash.h"

static const char *corpus;

static void
save(const char *target, const char *name, const uint8_t *bytes, size_t size)
{
	char		path[1024];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/%s/%s", corpus, target, name);
	file = fopen(path, "wb");
	if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
	{
		perror(path);
		exit(1);
	}
}

/* Write the bytes as a value, and as a value followed by operations. */
static void
save_value(const char *name, const uint8_t *bytes, size_t size)
{
	/* add, add 480, delete 200, snapshot, delete, unite, reopen, block and unblock */
	static const uint8_t operations[] = {
		0, 1, 0, 0xf2, 0, 2, 0x63, 0, 2, 6, 0, 0, 1, 1, 0, 7, 0, 0, 5, 0, 0, 0xfc, 7, 0
	};
	uint8_t    *both = malloc(3 + size + sizeof(operations));

	save("open", name, bytes, size);
	both[0] = 0;
	fav_store16(both + 1, (uint32_t) size);
	memcpy(both + 3, bytes, size);
	memcpy(both + 3 + size, operations, sizeof(operations));
	save("ops", name, both, 3 + size + sizeof(operations));
	free(both);
}

/* A stack of levels, of which some elements are removed. */
static void
make_stacked(const char *name)
{
	FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.2, .region_size = 1, .seed = 2};
	FavEditor	editor;
	Value		value;
	int64_t		i;

	fav_editor_new(&editor, &params);
	for (i = 0; i < 400; i++)
		fav_editor_add(&editor, fav_hash_integer(i, params.seed));
	editor.filter.is_stacked = true;
	for (i = 0; i < 100; i++)
		fav_editor_remove(&editor, fav_hash_integer(i, params.seed));
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	save_value(name, value.bytes, value.size);
	value_free(&value);
}

static void
make(const char *name, double error_rate, uint32_t region_size, uint64_t capacity, int64_t adds, int64_t dels)
{
	FavParams	params = {.capacity = capacity, .kind = FAV_KIND_INTEGER, .error_rate = error_rate, .region_size = region_size, .seed = 2};
	FavEditor	editor;
	Value		value;
	int64_t		i;

	fav_editor_new(&editor, &params);
	for (i = 0; i < adds; i++)
		fav_editor_add(&editor, fav_hash_integer(i, params.seed));
	for (i = 0; i < dels; i++)
		fav_editor_remove(&editor, fav_hash_integer(i, params.seed));
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	save_value(name, value.bytes, value.size);
	value_free(&value);
}

/* A dated value of elements that were added in as many periods, of which some are removed. */
static void
make_dated(const char *name, uint32_t keep, int32_t periods, int64_t per_period)
{
	FavParams	params = {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.2, .region_size = 1, .seed = 2, .keep = keep};
	FavEditor	editor;
	Value		value;
	int32_t		period;
	int64_t		i;

	fav_editor_new(&editor, &params);
	for (period = 0; period < periods; period++)
		for (i = 0; i < per_period; i++)
			fav_editor_add_at(&editor, fav_hash_integer(period * per_period + i, params.seed), period);
	for (i = 0; i < periods * per_period; i += 5)
		fav_editor_remove(&editor, fav_hash_integer(i, params.seed));
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	save_value(name, value.bytes, value.size);
	value_free(&value);
}

/* A value of one small slice with all bits set and 128 recent hashes. */
static void
make_full(const char *name, double error_rate, uint32_t k, uint32_t nslices, uint64_t capacity)
{
	static uint8_t ones[2 * FAV_LANE_BYTES];
	static uint8_t recent[8 * FAV_RECENT_MAX];
	FavFilter	filter;
	uint8_t    *bytes;
	uint32_t	i;

	memset(ones, 0xff, sizeof(ones));
	memset(&filter, 0, sizeof(filter));
	filter.params = (FavParams) {.capacity = capacity, .kind = FAV_KIND_INTEGER, .error_rate = error_rate, .region_size = 1, .seed = 2};
	filter.nslices = nslices;
	for (i = 0; i < nslices; i++)
		filter.slices[i] = (FavSlice) {.nblocks = 1, .k = k, .bits_set = FAV_LANE_BITS, .bits_limit = FAV_LANE_BITS, .blocks = ones};
	filter.nrecent = FAV_RECENT_MAX;
	filter.recent = recent;
	for (i = 0; i < FAV_RECENT_MAX; i++)
		fav_store64(recent + 8 * i, fav_hash_integer(5000 + i, 2));
	filter.elements = FAV_MAX_ELEMENTS;
	bytes = malloc(fav_size(&filter));
	fav_write(&filter, bytes);
	save_value(name, bytes, fav_size(&filter));
	free(bytes);
}

/* Operations on a filter that begins empty. */
static void
make_operations(const char *name, uint8_t error_rate, uint8_t region_size, uint8_t capacity)
{
	uint8_t		bytes[400] = {1, error_rate, region_size, capacity};
	size_t		size = 4;
	uint64_t	random = (uint64_t) error_rate * 77 + region_size;

	while (size + 3 <= sizeof(bytes))
	{
		uint64_t	number = next_random(&random);

		/* more adds than deletes, few of the expensive operations */
		bytes[size] = (uint8_t) number;
		if (bytes[size] % 8 >= 5 && number >> 8 & 1)
			bytes[size] = (uint8_t) (bytes[size] & 0xf8) | 2;
		fav_store16(bytes + size + 1, (uint32_t) (number >> 16) & 0x0fff);
		size += 3;
	}
	save("ops", name, bytes, size);
}

/* A bounded set after `adds` elements, of which `dels` are deleted. */
static void
make_bounded(const char *name, uint32_t capacity, int64_t adds, int64_t dels)
{
	FavBoundedEditor editor;
	int64_t		i;

	if (fav_bounded_new(&editor, capacity, 2) != FAV_OK)
		exit(1);
	editor.set.params.kind = FAV_KIND_INTEGER;
	for (i = 0; i < adds; i++)
		fav_bounded_add(&editor, fav_hash_integer(i, 2));
	for (i = 0; i < dels; i++)
		fav_bounded_remove(&editor, fav_hash_integer(i, 2));
	fav_bounded_finish(&editor);
	save("bounded", name, editor.value + FAV_VALUE_PREFIX, fav_bounded_size(&editor.set));
	fav_free(editor.value);
}

int
main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	corpus = argv[1];
	save_value("short", (const uint8_t[]) {FAV_FORMAT_VERSION}, FAV_SHORT_SIZE);
	make("empty", 0.01, 7, 1000, 0, 0);
	make("one", 0.01, 7, 1000, 1, 0);
	make("exact-20", 0.01, 7, 1000, 20, 3);
	make("exact-128", 0.01, 7, 1000, 128, 0);
	make("one-slice", 0.1, 1, 1, 130, 0);
	make("one-slice-deleted", 0.2, 1, 1, 200, 100);
	make("two-slices", 0.2, 1, 1, 520, 60);
	make("three-slices", 0.5, 1, 1, 1100, 100);
	make("four-slices-deleted", 0.5, 1, 1, 2200, 300);
	make("region-2", 0.2, 2, 1, 700, 90);
	make("region-7", 0.2, 7, 1, 140, 30);
	make("region-31", 0.5, 31, 1, 140, 9);
	make("many-bits", 1e-6, 1, 1, 129, 20);
	make("large-capacity", 0.2, 3, UINT64_C(1) << 31, 5, 1);
	make_stacked("stacked");
	make_dated("dated-empty", 7, 0, 0);
	make_dated("dated-exact", 7, 5, 12);
	make_dated("dated-slices", 1, 5, 50);
	make_dated("dated-long-head", 1000000, 150, 1);
	make_full("full-k1", 1e-6, 1, 1, 1);
	make_full("full-k32", 1.0, 32, 2, 1);
	make_full("full-chain", 0.01, 5, FAV_MAX_SLICES, 1);
	make_full("full-tiny-error", 1e-300, 3, 1, 1);
	make_full("full-no-error", 5e-324, 3, 1, 1);
	make_full("full-capacity", 0.01, 5, 1, UINT64_C(1) << 31);
	make_operations("empty-1", 0, 0, 0);
	make_operations("empty-2", 1, 0, 5);
	make_operations("empty-3", 2, 2, 10);
	make_operations("empty-4", 3, 6, 0);
	make_operations("empty-5", 4, 6, 31);
	make_operations("empty-6", 5, 30, 0);
	make_operations("empty-7", 6, 9, 60);
	make_operations("empty-8", 7, 1, 0);
	make_bounded("empty", 1000, 0, 0);
	make_bounded("one", 1000, 1, 0);
	make_bounded("list", 100, 30, 5);
	make_bounded("full-list", 20, 30, 0);
	make_bounded("largest-list", 1000, 128, 0);
	make_bounded("largest-capacity", FAV_BOUNDED_MAX_CAPACITY, 10, 0);
	make_bounded("table", 130, 129, 0);
	make_bounded("table-deleted", 130, 150, 140);
	make_bounded("full-table", 130, 2000, 0);
	make_operations("dated-1", 8 + 3, 6, 0);
	make_operations("dated-2", 8 * 7 + 1, 0, 1);
	make_operations("dated-3", 8 * 16 + 4, 2, 5);
	make_operations("dated-4", 8 * 31 + 2, 6, 9);
	return 0;
}
