/*
 * clients.c
 *		libfav for bench/run clients: builds a filter of random ids, and probes it one by one.
 *
 * Usage: clients COUNT FILE: writes the filter to FILE.  Prints nanoseconds of processor time per
 * probe, half of which find their element.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "libfav.h"

#define PROBES		1000000
#define ROUNDS		3

/* An id below 2^53, as bench/clients.mjs makes it. */
static int64_t
id_of(uint64_t i)
{
	uint64_t	x = i * UINT64_C(2654435761) % (UINT64_C(1) << 32);

	return (int64_t) (x * (UINT64_C(1) << 20) + i % 1024);
}

int
main(int argc, char **argv)
{
	size_t		count = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
	libfav_element *elements = malloc((count > PROBES ? count : PROBES) * sizeof(libfav_element));
	libfav_params params = libfav_defaults();
	libfav	   *filter = libfav_new(NULL);
	double		best = 1e9;
	const void *bytes;
	size_t		size;
	FILE	   *file;
	size_t		i;
	int			round;

	if (count == 0 || filter == NULL || elements == NULL)
		return 2;
	params.capacity = 0;
	for (i = 0; i < count; i++)
		elements[i] = libfav_integer(id_of(i));
	if (libfav_build(filter, &params, elements, count, NULL) != LIBFAV_OK ||
		libfav_write(filter, &bytes, &size, NULL) != LIBFAV_OK)
		return 1;
	file = fopen(argv[2], "wb");
	if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
		return 1;
	for (i = 0; i < PROBES; i++)
		elements[i] = libfav_integer(id_of(i * 7919 % (2 * count)));
	for (round = 0; round < ROUNDS; round++)
	{
		clock_t		start = clock();
		double		took;
		size_t		found = 0;

		for (i = 0; i < PROBES; i++)
		{
			bool		answer;

			if (libfav_contains(filter, &elements[i], 1, &answer, NULL) != LIBFAV_OK)
				return 1;
			found += answer;
		}
		took = (double) (clock() - start) / CLOCKS_PER_SEC * 1e9 / PROBES;
		if (took < best)
			best = took;
		if (found < PROBES / 3)
			return 1;
	}
	printf("%.1f\n", best);
	libfav_free(filter);
	free(elements);
	return 0;
}
