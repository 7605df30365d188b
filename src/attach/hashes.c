/*
 * hashes.c
 *		A list of hashes that grows.
 */
#include "attach/hashes.h"

#include "lib/qunique.h"
#include "miscadmin.h"

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	first = *(const uint64_t *) a;
	uint64_t	second = *(const uint64_t *) b;

	return (first > second) - (first < second);
}

/* Sorting millions of hashes takes a while, so it checks for interrupts. */
#define ST_SORT			sort_hashes
#define ST_ELEMENT_TYPE uint64_t
#define ST_COMPARE(a, b) compare_hashes(a, b)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

void
fav_append_hash(FavHashes *hashes, uint64_t hash)
{
	if (hashes->count == hashes->allocated)
	{
		hashes->allocated = Max(16, 2 * hashes->allocated);
		hashes->values = hashes->values == NULL ?
			palloc(hashes->allocated * sizeof(uint64_t)) :
			repalloc_huge(hashes->values, hashes->allocated * sizeof(uint64_t));
	}
	hashes->values[hashes->count++] = hash;
}

/* Sort them, and leave out repetitions. */
void
fav_sort_hashes(FavHashes *hashes)
{
	if (hashes->count < 2)
		return;
	sort_hashes(hashes->values, hashes->count);
	hashes->count = qunique(hashes->values, hashes->count, sizeof(uint64_t), compare_hashes);
}

/* NULL if it is not there. */
uint64_t *
fav_find_hash(const FavHashes *sorted, uint64_t hash)
{
	return sorted->count == 0 ? NULL :
		bsearch(&hash, sorted->values, sorted->count, sizeof(uint64_t), compare_hashes);
}
