/*
 * columns.c
 *		What the choice of columns costs: false positives of a full slice with the
 *		columns of hash.h, and with those on a line, Ha + i * Hb, of the original
 *		filter.  Prints the table of docs/ALGORITHM.md; make columns runs it.
 */
#include "harness.h"
#include "hash.h"

#define REGION_SIZE 7
#define CAPACITY	300000

typedef enum Scheme
{
	PRODUCTS,					/* hash.h */
	LINE_9,						/* Ha + i * Hb in 9 bits */
	LINE_32						/* the upper 9 of 32 bits of Ha + i * Hb */
} Scheme;

typedef struct Element
{
	uint64_t	block;
	uint32_t	lane;
	uint32_t	columns[FAV_MAX_K];
} Element;

static void
make_element(Element *element, Scheme scheme, const FavSlice *slice, uint64_t hash)
{
	FavProbe	probe = fav_probe_first(hash, REGION_SIZE);
	uint32_t	a = (uint32_t) (next_random(&hash) >> 32);
	uint32_t	b = (uint32_t) (next_random(&hash) >> 32) | 1;
	uint32_t	i;

	element->block = fav_hash_block(probe.hash, slice->nblocks);
	element->lane = probe.lane;
	for (i = 0; i < slice->k; i++, fav_probe_next(&probe))
		element->columns[i] = scheme == PRODUCTS ? probe.column :
			scheme == LINE_9 ? (a + i * b) % FAV_LANE_BITS : (a + i * b) >> 23;
}

/* Set the bits of the element, or ask whether they are; counts those that were clear. */
static uint32_t
visit(const Element *element, const FavSlice *slice, uint8_t *bits, bool set)
{
	uint8_t    *block = bits + element->block * REGION_SIZE * FAV_LANE_BYTES;
	uint32_t	clear = 0;
	uint32_t	i;

	for (i = 0; i < slice->k && (set || clear == 0); i++)
	{
		uint8_t    *byte = &block[(element->lane + i) % REGION_SIZE * FAV_LANE_BYTES + element->columns[i] / 8];
		uint8_t		mask = (uint8_t) (1 << element->columns[i] % 8);

		clear += !(*byte & mask);
		if (set)
			*byte |= mask;
	}
	return clear;
}

/* False positives, relative to the error the slice is sized for. */
static double
measure(Scheme scheme, double error, uint64_t questions)
{
	uint64_t	random = 42;
	uint64_t	wrong = 0;
	uint64_t	i;
	FavSlice	slice;
	Element		element;
	uint8_t    *bits;

	fav_size_slice(&slice, error, REGION_SIZE, CAPACITY);
	bits = calloc(slice.nblocks, REGION_SIZE * FAV_LANE_BYTES);
	for (i = 0; i < slice.bits_limit;)
	{
		make_element(&element, scheme, &slice, next_random(&random));
		i += visit(&element, &slice, bits, true);
	}
	for (i = 0; i < questions; i++)
	{
		make_element(&element, scheme, &slice, next_random(&random));
		wrong += visit(&element, &slice, bits, false) == 0;
	}
	free(bits);
	return (double) wrong / (double) questions / error;
}

int
main(void)
{
	static const double errors[] = {0.01, 0.001, 0.0001, 0.00001};
	int			i;

	printf("| sized for | products | line, 9 bits | line, 32 bits |\n|---|---|---|---|\n");
	for (i = 0; i < 4; i++)
	{
		uint64_t	questions = errors[i] < 0.001 ? 40000000 : 5000000;

		printf("| %g %% |", 100 * errors[i]);
		printf(" %.2f ×", measure(PRODUCTS, errors[i], questions));
		printf(" | %.2f ×", measure(LINE_9, errors[i], questions));
		printf(" | %.2f × |\n", measure(LINE_32, errors[i], questions));
		fflush(stdout);
	}
	return 0;
}
