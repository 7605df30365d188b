/*
 * fuzz_bounded.c
 *		Arbitrary bytes as a bounded set: they are rejected, or they can be probed and
 *		edited, and the result of an edit is valid if they were.
 */
#include "cache/bounded.h"
#include "fuzz.h"

/* Adds and deletes that depend on the bytes.  `checked`: the value was valid. */
static void
edit(const FavBounded *set, bool checked)
{
	FavBoundedEditor editor;
	FavBounded	again;
	FavProblem	problem;
	uint64_t	random = set->used + set->params.seed;
	size_t		size;
	int			i;

	REQUIRE(fav_bounded_edit(&editor, set) == FAV_OK);
	editor.set.params.kind = FAV_KIND_INTEGER;
	for (i = 0; i < 64; i++)
	{
		uint64_t	hash = next_random(&random) & (i % 2 == 0 ? ~UINT64_C(0) : UINT64_C(0xff00000000000003));

		if (i % 3 == 2)
		{
			REQUIRE(fav_bounded_remove(&editor, hash) == FAV_OK);
			REQUIRE(!checked || !fav_bounded_contains(&editor.set, hash));
		}
		else
		{
			REQUIRE(fav_bounded_add(&editor, hash) == FAV_OK);
			REQUIRE(fav_bounded_contains(&editor.set, hash));
		}
	}
	fav_bounded_finish(&editor);
	size = fav_bounded_size(&editor.set);
	REQUIRE(!checked || (fav_bounded_open(&again, editor.value + FAV_VALUE_PREFIX, size, size, &problem) == FAV_OK &&
						 fav_bounded_check(&again, &problem) == FAV_OK));
	fav_free(editor.value);
}

void
fuzz_bounded(const uint8_t *data, size_t size)
{
	FavBounded	set;
	FavBounded	head;
	FavBoundedEditor copy;
	FavProblem	problem = {""};
	bool		checked;
	uint64_t	i;

	if (fav_bounded_open(&set, data, size, size, &problem) != FAV_OK)
	{
		REQUIRE(problem.detail[0] != '\0');
		return;
	}
	REQUIRE(fav_bounded_open(&head, data, FAV_BOUNDED_HEADER_SIZE, size, &problem) == FAV_OK);
	REQUIRE(head.used == set.used && head.nbuckets == set.nbuckets);
	checked = fav_bounded_check(&set, &problem) == FAV_OK;
	REQUIRE(checked || problem.detail[0] != '\0');
	for (i = 0; i < 64; i++)
		(void) fav_bounded_contains(&set, i * UINT64_C(0x0404040404040404));
	REQUIRE(fav_bounded_eviction_rate(&set) >= 0 && fav_bounded_eviction_rate(&set) <= 1);

	/* a copy has the same bytes */
	REQUIRE(fav_bounded_edit(&copy, &set) == FAV_OK);
	fav_bounded_finish(&copy);
	REQUIRE(memcmp(copy.value + FAV_VALUE_PREFIX, data, size) == 0);
	fav_free(copy.value);
	edit(&set, checked);
	REQUIRE(allocated_bytes() == 0);
}

FUZZ_TARGET(fuzz_bounded)
