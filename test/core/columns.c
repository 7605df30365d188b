/*
 * columns.c
 *		False positives of a full slice for three choices of an element's bits: those of
 *		hash.h, four in a lane; each bit in another lane; and those of the original
 *		filter, whose columns are Ha + i * Hb.  Prints the table of docs/internals/ALGORITHM.md;
 *		make columns runs it.
 */
#include "harness.h"
#include "hash.h"

#define REGION_SIZE 7
#define CAPACITY	300000

typedef enum Scheme
{
	GROUPS,						/* hash.h */
	SPREAD,						/* any column, each in another lane */
	LINE						/* Ha + i * Hb, each in another lane */
} Scheme;

typedef struct Element
{
	uint64_t	block;
	uint32_t	bits[FAV_MAX_K];	/* counted from the beginning of the block */
} Element;

static void
make_element(Element *element, Scheme scheme, const FavSlice *slice, uint64_t hash)
{
	FavProbe	probe = fav_probe_first(hash, REGION_SIZE, slice->k);
	uint32_t	lane = probe.lane;
	uint32_t	a;
	uint32_t	b;
	uint32_t	i = 0;

	element->block = fav_hash_block(hash, slice->nblocks);
	if (scheme == GROUPS)
	{
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		do
		{
			fav_probe_masks(&probe, masks);
			for (word = 0; word < FAV_LANE_WORDS; word++)
				if (masks[word] != 0)
					element->bits[i++] = probe.lane * FAV_LANE_BITS + word * FAV_WORD_BITS +
						(uint32_t) __builtin_ctzll(masks[word]);
		} while (fav_probe_next(&probe));
		return;
	}
	a = (uint32_t) (next_random(&hash) >> 32);
	b = (uint32_t) (next_random(&hash) >> 32) | 1;
	for (; i < slice->k; i++, lane = (lane + 1) % REGION_SIZE)
		element->bits[i] = lane * FAV_LANE_BITS +
			(scheme == LINE ? a + i * b : (uint32_t) next_random(&hash)) % FAV_LANE_BITS;
}

/* Set the bits and return how many were clear; or only test them, up to the first clear one. */
static uint32_t
visit(const Element *element, const FavSlice *slice, uint8_t *bits, bool set)
{
	uint8_t    *block = bits + element->block * REGION_SIZE * FAV_LANE_BYTES;
	uint32_t	clear = 0;
	uint32_t	i;

	for (i = 0; i < slice->k && (set || clear == 0); i++)
	{
		uint8_t    *byte = &block[element->bits[i] / 8];
		uint8_t		mask = (uint8_t) (1 << element->bits[i] % 8);

		clear += !(*byte & mask);
		if (set)
			*byte |= mask;
	}
	return clear;
}

/* False positives, relative to the error that the slice is sized for. */
static double
measure(Scheme scheme, double error, uint64_t probes)
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
	for (i = 0; i < probes; i++)
	{
		make_element(&element, scheme, &slice, next_random(&random));
		wrong += visit(&element, &slice, bits, false) == 0;
	}
	free(bits);
	return (double) wrong / (double) probes / error;
}

int
main(void)
{
	static const double errors[] = {0.01, 0.001, 0.0001, 0.00001};
	int			i;

	printf("| sized for | four in a lane | each in another lane | on a line |\n|---|---|---|---|\n");
	for (i = 0; i < 4; i++)
	{
		uint64_t	probes = errors[i] < 0.001 ? 40000000 : 5000000;

		printf("| %g %% |", 100 * errors[i]);
		printf(" %.2f ×", measure(GROUPS, errors[i], probes));
		printf(" | %.2f ×", measure(SPREAD, errors[i], probes));
		printf(" | %.2f × |\n", measure(LINE, errors[i], probes));
		fflush(stdout);
	}
	return 0;
}
