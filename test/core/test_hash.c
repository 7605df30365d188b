/*
 * test_hash.c
 *		The hash of an element and the bytes of a value never change: values are stored,
 *		replicated and compared across machines and versions.  A change that makes a test
 *		of this file fail needs a new format version.
 */
#include <math.h>

#include "harness.h"
#include "hash.h"

static void
check_hash(const char *what, uint64_t hash, uint64_t expected)
{
	CHECK_THAT(hash == expected, "%s: 0x%016llx, not 0x%016llx", what,
			   (unsigned long long) hash, (unsigned long long) expected);
}

static void
test_vectors(void)
{
	static const uint8_t uuid[16] = {
		0xa0, 0xee, 0xbc, 0x99, 0x9c, 0x0b, 0x4e, 0xf8, 0xbb, 0x6d, 0x6b, 0xb9, 0xbd, 0x38, 0x0a, 0x11
	};
	char		text[300];

	test_begin("hash: known hashes");
	memset(text, 'x', sizeof(text));
	check_hash("integer 0", fav_hash_integer(0, 0), UINT64_C(0xc77b3abb6f87acd9));
	check_hash("integer 42", fav_hash_integer(42, 0), UINT64_C(0xd5a6f8c838df27c8));
	check_hash("integer -1", fav_hash_integer(-1, 0), UINT64_C(0x5111c7e47d784413));
	check_hash("integer 42, seed 1", fav_hash_integer(42, 1), UINT64_C(0x67572691c5abfc9c));
	check_hash("empty text", fav_hash_bytes(FAV_KIND_TEXT, "", 0, 0), UINT64_C(0x602b0e2cd6662c8b));
	check_hash("text 42", fav_hash_bytes(FAV_KIND_TEXT, "42", 2, 0), UINT64_C(0x2e454cadcb651f41));
	check_hash("text of 300 bytes", fav_hash_bytes(FAV_KIND_TEXT, text, 300, 5), UINT64_C(0x911e5d11e353d454));
	check_hash("uuid", fav_hash_bytes(FAV_KIND_UUID, uuid, 16, 0), UINT64_C(0x646f5cb6bd4388ec));
	check_hash("bytes 42", fav_hash_bytes(FAV_KIND_BYTES, "42", 2, 0), UINT64_C(0x649f4b91d4260af0));
	check_hash("pair (4, 2)", fav_hash_pair(4, 2, 0), UINT64_C(0x66841f3aa2bcb0b9));
	check_hash("pair (2, 4)", fav_hash_pair(2, 4, 0), UINT64_C(0x2812bf9f81b4e21a));
	test_end();
}

/* The same bytes of another kind are another element. */
static void
test_kinds(void)
{
	uint8_t		bytes[16] = {42};
	uint64_t	hashes[64];
	int			count = 0;
	int			kind;
	int			i;
	int			j;

	test_begin("hash: kinds, lengths and seeds are kept apart");
	hashes[count++] = fav_hash_integer(42, 0);
	hashes[count++] = fav_hash_integer(42, 1);
	hashes[count++] = fav_hash_pair(4, 2, 0);
	hashes[count++] = fav_hash_pair(2, 4, 0);
	hashes[count++] = fav_hash_pair(42, 0, 0);
	hashes[count++] = fav_hash_pair(0, 42, 0);
	for (kind = FAV_KIND_TEXT; kind <= FAV_KIND_BYTES; kind++)
	{
		hashes[count++] = fav_hash_bytes((FavKind) kind, "", 0, 0);
		hashes[count++] = fav_hash_bytes((FavKind) kind, "42", 2, 0);
		hashes[count++] = fav_hash_bytes((FavKind) kind, "4,2", 3, 0);
		hashes[count++] = fav_hash_bytes((FavKind) kind, bytes, 8, 0);
		hashes[count++] = fav_hash_bytes((FavKind) kind, bytes, 16, 0);
		hashes[count++] = fav_hash_bytes((FavKind) kind, bytes, 16, 1);
	}
	for (i = 0; i < count; i++)
		for (j = 0; j < i; j++)
			CHECK_THAT(hashes[i] != hashes[j], "elements %d and %d", i, j);
	test_end();
}

static void
test_places(void)
{
	uint64_t	random = 3;
	int			n;

	test_begin("hash: blocks ascend with the hash, lanes go round, groups have the bits they should");
	for (n = 0; n < 20000; n++)
	{
		uint64_t	hash = next_random(&random);
		uint64_t	other = next_random(&random);
		uint32_t	nblocks = 1 + (uint32_t) (next_random(&random) >> (32 + n % 32));
		uint32_t	region_size = 1 + (uint32_t) n % FAV_MAX_REGION_SIZE;
		uint32_t	k = 1 + (uint32_t) (n / FAV_MAX_REGION_SIZE) % FAV_MAX_K;
		FavProbe	probe = fav_probe_first(hash, region_size, k);
		uint32_t	first_lane = probe.lane;
		uint32_t	stride = probe.stride;
		uint32_t	left;

		CHECK(fav_hash_block(hash, nblocks) < nblocks);
		CHECK((hash < other) == (fav_hash_block(hash, nblocks) < fav_hash_block(other, nblocks)) ||
			  fav_hash_block(hash, nblocks) == fav_hash_block(other, nblocks));
		CHECK(stride >= 1 && (stride < region_size || region_size == 1));
		if (region_size > 1)
		{
			/* all ways to choose two lanes are equally likely */
			uint64_t	way = (hash & UINT32_MAX) * (region_size * (region_size - 1)) >> 32;

			CHECK(first_lane == way / (region_size - 1) && stride == 1 + way % (region_size - 1));
		}
		for (left = k; left > 0;)
		{
			uint32_t	count = left < FAV_LANE_WORDS ? left : FAV_LANE_WORDS;
			uint64_t	masks[FAV_LANE_WORDS];
			uint32_t	bits = 0;
			uint32_t	word;

			CHECK(probe.lane == (first_lane + probe.group * stride) % region_size);
			CHECK(probe.left == left);
			fav_probe_masks(&probe, masks);
			for (word = 0; word < FAV_LANE_WORDS; word++)
			{
				/* at most one bit per word, in consecutive words */
				CHECK((masks[word] & (masks[word] - 1)) == 0);
				bits += masks[word] != 0;
				if (masks[word] != 0)
					CHECK(masks[word] >> fav_probe_column(probe.product, word) == 1);
				CHECK((masks[word] != 0) ==
					  ((word + FAV_LANE_WORDS - (left < FAV_LANE_WORDS ? fav_probe_begin(probe.product) : 0)) %
					   FAV_LANE_WORDS < left));
			}
			CHECK(bits == count);
			left -= count;
			CHECK(fav_probe_next(&probe) == (left > 0));
		}
	}
	CHECK(fav_hash_block(0, UINT32_MAX) == 0);
	CHECK(fav_hash_block(UINT64_MAX, 1) == 0);
	CHECK(fav_hash_block(UINT64_MAX, UINT32_MAX) == UINT32_MAX - 1);
	test_end();
}

static void
check_even(const char *what, const uint32_t *counts, uint32_t cells, uint32_t total)
{
	double		expected = (double) total / cells;
	double		chi = 0.0;
	uint32_t	i;

	for (i = 0; i < cells; i++)
		chi += (counts[i] - expected) * (counts[i] - expected) / expected;

	/* mean: the degrees of freedom; variance: twice that */
	CHECK_THAT(fabs(chi - (cells - 1)) < 6 * sqrt(2.0 * (cells - 1)), "%s: chi squared %.0f of %u", what, chi, cells - 1);
}

/* Are all positions equally likely, in each group? */
static void
test_columns(void)
{
	static uint32_t columns[FAV_LANE_WORDS][FAV_WORD_BITS];
	static uint32_t pairs[FAV_WORD_BITS * FAV_WORD_BITS];
	uint32_t	lanes[7];
	uint32_t	begins[FAV_LANE_WORDS];
	uint32_t	strides[6];
	uint32_t	elements = 200000;
	uint32_t	group;

	test_begin("hash: lanes and columns of consecutive integers are spread evenly");
	for (group = 0; group < FAV_MAX_K / FAV_LANE_WORDS; group++)
	{
		char		what[30];
		uint32_t	n;
		uint32_t	word;

		snprintf(what, sizeof(what), "group %u", group);
		memset(columns, 0, sizeof(columns));
		memset(pairs, 0, sizeof(pairs));
		memset(lanes, 0, sizeof(lanes));
		memset(begins, 0, sizeof(begins));
		memset(strides, 0, sizeof(strides));
		for (n = 0; n < elements; n++)
		{
			FavProbe	probe = fav_probe_first(fav_hash_integer(n, 0), 7, FAV_MAX_K);

			while (probe.group < group)
				fav_probe_next(&probe);
			for (word = 0; word < FAV_LANE_WORDS; word++)
				columns[word][fav_probe_column(probe.product, word)]++;
			pairs[fav_probe_column(probe.product, 0) * FAV_WORD_BITS + fav_probe_column(probe.product, 3)]++;
			lanes[probe.lane]++;
			begins[fav_probe_begin(probe.product)]++;
			strides[probe.stride - 1]++;
		}
		for (word = 0; word < FAV_LANE_WORDS; word++)
			check_even(what, columns[word], FAV_WORD_BITS, elements);
		check_even(what, pairs, FAV_WORD_BITS * FAV_WORD_BITS, elements);
		check_even(what, lanes, 7, elements);
		check_even(what, begins, FAV_LANE_WORDS, elements);
		check_even(what, strides, 6, elements);
	}
	test_end();
}

/* The digest of a value with given parameters and operations. */
static void
check_value(const char *what, const FavParams *params, int64_t adds, int64_t dels,
			size_t size, uint64_t digest)
{
	FavEditor	editor;
	Value		value;
	uint64_t	actual;
	int64_t		i;

	fav_editor_new(&editor, params);
	for (i = 0; i < adds; i++)
		CHECK(fav_editor_add(&editor, fav_hash_integer(i, params->seed)) == FAV_OK);
	for (i = 0; i < dels; i++)
		CHECK(fav_editor_remove(&editor, fav_hash_integer(i * 3, params->seed)) == FAV_OK);
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	actual = XXH64(value.bytes, value.size, 0);
	CHECK_THAT(value.size == size && actual == digest, "%s: %zu bytes, 0x%016llx; expected %zu, 0x%016llx",
			   what, value.size, (unsigned long long) actual, size, (unsigned long long) digest);
	value_free(&value);
}

static void
test_pinned(void)
{
	FavParams	params = DEFAULT_PARAMS;
	FavEditor	editor;
	Value		value;
	uint64_t	hashes[500];
	uint64_t	random = 1;
	int			i;

	test_begin("hash: values are the same to the last bit");
	check_value("empty", &params, 0, 0, 44, UINT64_C(0x4349b257775aa1f9));
	check_value("one element", &params, 1, 0, 52, UINT64_C(0x0e36f97462ce4b8e));
	check_value("128 elements", &params, 128, 0, 1068, UINT64_C(0xca190bbb45da90b6));
	check_value("129 elements", &params, 129, 0, 1868, UINT64_C(0xe348436649d5f3de));
	check_value("10,000 elements", &params, 10000, 0, 36900, UINT64_C(0x2a63940ee8b19dc2));
	check_value("10,000 elements, 3,000 deleted", &params, 10000, 3000, 44348, UINT64_C(0x6a444967490bd7c6));
	params = (FavParams) {.capacity = 1, .kind = FAV_KIND_INTEGER, .error_rate = 0.2, .region_size = 1, .seed = UINT64_MAX};
	check_value("5,000 elements, region size 1, 20 %", &params, 5000, 1000, 25748, UINT64_C(0x7f8646d406cffc2a));
	params = (FavParams) {.capacity = 4000, .kind = FAV_KIND_INTEGER, .error_rate = 0.0001, .region_size = 31, .seed = 12345};
	check_value("5,000 elements, region size 31, 0.01 %", &params, 5000, 1000, 34772, UINT64_C(0x4041393200826937));

	params = DEFAULT_PARAMS;
	for (i = 0; i < 500; i++)
		hashes[i] = ((uint64_t) i << 55) + (next_random(&random) >> 9);
	CHECK(fav_editor_build(&editor, &params, hashes, 500) == FAV_OK);
	value_from_editor(&value, &editor);
	fav_editor_close(&editor);
	CHECK_THAT(XXH64(value.bytes, value.size, 0) == UINT64_C(0x2ab8d2174c67ad85), "built: 0x%016llx",
			   (unsigned long long) XXH64(value.bytes, value.size, 0));
	value_free(&value);
	test_end();
}

int
main(void)
{
	test_vectors();
	test_kinds();
	test_places();
	test_columns();
	test_pinned();
	return test_summary("test_hash");
}
