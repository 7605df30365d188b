/*
 * claims.c
 *		How often does a bounded set (fav_cache) report what was never added?
 *
 *		claims [probes]
 *
 * Fills sets of several capacities and probes them for pairs that were not added.  docs/CACHE.md
 * computes less than 2^-40 for each probe.  So that the test cannot pass by accident, it counts
 * near misses, too: probes for which a fingerprint in the bucket has the same lower 32 bits.
 */
#include "cache/bounded.h"
#include "harness.h"

static uint64_t
count_near_misses(const FavBounded *set, uint64_t hash)
{
	const uint8_t *bucket = set->entries + fav_bounded_bucket_offset(set, hash);
	uint64_t	count = 0;
	uint32_t	i;

	for (i = 0; i < FAV_BUCKET_SLOTS; i++)
		count += fav_load32(bucket + 4 * i) == (uint32_t) hash;
	return count;
}

int
main(int argc, char **argv)
{
	static const uint32_t capacities[] = {1000, 50000, 500000, 2000000};
	const uint64_t ncapacities = sizeof(capacities) / sizeof(capacities[0]);
	uint64_t	probes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000000;
	uint64_t	claims = 0;
	uint64_t	near_misses = 0;
	uint64_t	c;
	uint64_t	i;

	test_begin("%llu probes for what was not added", (unsigned long long) probes);
	for (c = 0; c < ncapacities; c++)
	{
		FavBoundedEditor editor;

		CHECK(fav_bounded_new(&editor, capacities[c], c) == FAV_OK);
		for (i = 0; i < 3 * (uint64_t) capacities[c]; i++)
			CHECK(fav_bounded_add(&editor, fav_hash_pair((int64_t) i, 1, c)) == FAV_OK);
		for (i = 0; i < probes / ncapacities; i++)
		{
			uint64_t	hash = fav_hash_pair((int64_t) i, 2, c);

			claims += fav_bounded_contains(&editor.set, hash);
			near_misses += count_near_misses(&editor.set, hash);
		}
		fav_free(editor.value);
	}
	printf("claims: %llu probes, %llu claimed; %llu agreed in 32 bits (expected %.1f)\n",
		   (unsigned long long) probes, (unsigned long long) claims, (unsigned long long) near_misses,
		   (double) probes * FAV_BUCKET_SLOTS / 4294967296.0);
	CHECK(claims == 0);
	CHECK(near_misses > 0 || probes < 1000000000);
	test_end();
	return test_summary("claims");
}
