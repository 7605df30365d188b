/*
 * fuzz_open.c
 *		Arbitrary bytes as a value: they are rejected, or every reader can read them and
 *		they are written unchanged.
 */
#include "fuzz.h"

static void
read_all(const FavFilter *filter, bool checked)
{
	FavMeasure	measure;
	FavMeasure of_slice;
	uint32_t	i;

	for (i = 0; i < filter->nrecent; i++)
		REQUIRE(fav_contains(filter, fav_load64(filter->recent + 8 * i)));
	for (i = 0; i < filter->ntombstones; i++)
	{
		/* only an ascending list can be searched */
		bool		found = fav_contains(filter, fav_load64(filter->tombstones + 8 * (size_t) i));

		REQUIRE(!checked || !found);
	}
	for (i = 0; i < 64; i++)
		(void) fav_contains(filter, i * UINT64_C(0x0404040404040404));
	for (i = 0; i < filter->nslices; i++)
	{
		fav_measure_slice(filter, i, &of_slice);
		REQUIRE(of_slice.fill >= 0 && of_slice.fill <= 1);
		REQUIRE(of_slice.error >= 0 && of_slice.error <= 1 + 1e-9);
		REQUIRE(of_slice.clean_regions >= 0 && of_slice.clean_regions <= 1);
		REQUIRE(of_slice.deletable >= -1e-9 && of_slice.deletable <= 1 + 1e-9);
	}
	fav_measure(filter, &measure);
	REQUIRE(measure.error >= -1e-9 && measure.error <= 1 + 1e-9);
	REQUIRE(fav_count(filter) <= FAV_MAX_ELEMENTS + FAV_RECENT_LIMIT);
	REQUIRE(fav_bloat(filter) > 0);
	(void) fav_needs_rebuild(filter);
}

void
fuzz_open(const uint8_t *data, size_t size)
{
	FavFilter	filter;
	FavFilter	head;
	FavProblem	problem;
	uint8_t    *again;
	bool		checked;

	if (fav_open(&filter, data, size, size, &problem) != FAV_OK)
	{
		REQUIRE(problem.detail[0] != '\0');
		return;
	}

	/* the head alone gives the same structure */
	REQUIRE(fav_open(&head, data, size < FAV_MAX_HEAD_SIZE ? size : FAV_MAX_HEAD_SIZE, size, &problem) == FAV_OK);
	REQUIRE(head.nslices == filter.nslices && head.tombstones_offset == filter.tombstones_offset);

	/*
	 * A stored value is opened but not checked again.  If it is damaged on disk, it may give
	 * wrong answers, but nothing worse.
	 */
	checked = fav_check(&filter, &problem) == FAV_OK;
	read_all(&filter, checked);
	REQUIRE(fav_size(&filter) == size);
	again = malloc(size);
	fav_write(&filter, again);
	REQUIRE(memcmp(data, again, size) == 0);
	free(again);
	REQUIRE(allocated_bytes() == 0);
}

FUZZ_TARGET(fuzz_open)
