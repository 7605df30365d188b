/*
 * accuracy.c
 *		The measured error of a filter beside the error rate that was requested, and its size.
 *
 *		accuracy [largest size]
 *
 * prints one line for each error rate, size and way to make the filter, tab
 * separated:
 *
 *		"built" or "grown"	error rate	elements	measured rate	bits per element
 *
 * Built: all elements at once.  Grown: one by one, starting for 1,000.  Of the
 * grown ones every tenth is deleted along the way, and probed as well: whatever is
 * lost, or there after its delete, ends the program with an error.
 */
#include <stdio.h>
#include <stdlib.h>

#include "editor.h"

void *
fav_alloc(size_t size)
{
	return malloc(size);
}

void
fav_free(void *memory)
{
	free(memory);
}

void
fav_pause(void)
{
}

static void
must(bool right, const char *what)
{
	if (!right)
	{
		fprintf(stderr, "accuracy: %s\n", what);
		exit(1);
	}
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

static void
make_built(FavEditor *editor, const FavParams *params, int64_t elements)
{
	uint64_t   *hashes = malloc((size_t) elements * sizeof(uint64_t));
	int64_t		i;

	must(hashes != NULL, "out of memory");
	for (i = 0; i < elements; i++)
		hashes[i] = fav_hash_integer(i, 0);
	qsort(hashes, (size_t) elements, sizeof(uint64_t), compare_hashes);
	must(fav_editor_build(editor, params, hashes, (size_t) elements) == FAV_OK, "not built");
	free(hashes);
}

/* Ten elements are added, one of them is deleted, and one takes its place. */
static void
make_grown(FavEditor *editor, const FavParams *params, int64_t elements)
{
	int64_t		i;

	fav_editor_new(editor, params);
	for (i = 0; i < elements; i++)
	{
		must(fav_editor_add(editor, fav_hash_integer(i, 0)) == FAV_OK, "not added");
		if (i % 10 == 9)
		{
			must(fav_editor_add(editor, fav_hash_integer(-i, 0)) == FAV_OK, "not added");
			must(fav_editor_remove(editor, fav_hash_integer(-i, 0)) == FAV_OK, "not deleted");
			must(!fav_editor_contains(editor, fav_hash_integer(-i, 0)), "a delete does not hold");
		}
	}
}

int
main(int argc, char **argv)
{
	static const double rates[] = {0.1, 0.01, 0.001, 0.0001};
	int64_t		largest = argc > 1 ? atoll(argv[1]) : 1000000;
	size_t		r;
	int64_t		elements;
	int			grown;

	for (r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
		for (elements = 100; elements <= largest; elements *= 10)
			for (grown = 0; grown < 2; grown++)
			{
				FavParams	params = {.capacity = 1000, .seed = 0, .kind = FAV_KIND_INTEGER,
				.error_rate = rates[r], .region_size = 7};
				int64_t		probes = rates[r] < 0.001 ? 20000000 : 2000000;
				const FavFilter *filter;
				FavEditor	editor;
				int64_t		wrong = 0;
				int64_t		i;

				(grown ? make_grown : make_built) (&editor, &params, elements);
				must(fav_editor_finish(&editor, &filter) == FAV_OK, "not finished");
				for (i = 0; i < elements; i++)
					must(fav_contains(filter, fav_hash_integer(i, 0)), "an element is lost");
				for (i = 0; i < probes; i++)
					wrong += fav_contains(filter, fav_hash_integer(INT64_C(1000000000000) + i, 0));
				printf("%s\t%g\t%lld\t%.3g\t%.2f\n", grown ? "grown" : "built", rates[r],
					   (long long) elements, (double) wrong / (double) probes,
					   (double) fav_size(filter) * 8 / (double) elements);
				fflush(stdout);
				fav_editor_close(&editor);
			}
	return 0;
}
