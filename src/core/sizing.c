/*
 * sizing.c
 *		See sizing.h.  docs/internals/ALGORITHM.md derives the formulas and shows what was
 *		measured.
 *
 * Notation: m data bits, n elements of k bits each, load l = k * n / m.
 */
#include <math.h>

#include "sizing.h"

/* This much extra capacity keeps a filter that churns at its capacity from chaining a slice. */
#define SLACK				0.01

/* The choice of k and l assumes that one element in ten is removed; a tombstone has 64 bits. */
#define REMOVED_SHARE		0.1
#define TOMBSTONE_BITS		64.0

#define LN2_HIGH			6.93147180369123816490e-01
#define LN2_LOW				1.90821492927058770002e-10

/* e^x, to about 1e-15; |x| up to 700. */
static double
exact_exp(double x)
{
	double		power = floor(x / LN2_HIGH + 0.5);
	double		rest = (x - power * LN2_HIGH) - power * LN2_LOW;
	double		sum = 1.0;
	int			i;

	/* Taylor from the small end; |rest| <= 0.35 */
	for (i = 16; i >= 1; i--)
		sum = 1.0 + sum * rest / i;
	return ldexp(sum, (int) power);
}

/* ln x for x > 0, to about 1e-15. */
static double
exact_log(double x)
{
	int			exponent;
	double		mantissa = frexp(x, &exponent);
	double		s;
	double		square;
	double		sum = 0.0;
	int			i;

	if (mantissa < 0.70710678118654752)
	{
		mantissa *= 2.0;
		exponent--;
	}

	/* 2 artanh(s), |s| <= 0.172 */
	s = (mantissa - 1.0) / (mantissa + 1.0);
	square = s * s;
	for (i = 23; i >= 1; i -= 2)
		sum = sum * square + 1.0 / i;
	return exponent * LN2_HIGH + (2.0 * s * sum + exponent * LN2_LOW);
}

double
fav_power(double base, uint32_t exponent)
{
	double		result = 1.0;

	for (; exponent > 0; exponent >>= 1, base *= base)
		if (exponent & 1)
			result *= base;
	return result;
}

double
fav_error_share(double error_rate, uint32_t number)
{
	return number == 0 ? error_rate / 2 : error_rate / 8 * fav_power(0.75, number - 1);
}

/*
 * The bits of an element depend on each other, because those of other elements lie in groups,
 * too.  For one element: the probabilities that it does not set a given bit, or neither of two
 * given bits, which are in two words of one lane, in two lanes, or in one word.  Also, how
 * many such pairs there are among k bits.
 */
enum
{
	ONE, SAME_LANE, TWO_LANES, SAME_WORD, CASES
};

typedef struct Chances
{
	double		clear[CASES];
	double		pairs[CASES];
} Chances;

static void
find_chances(Chances *chances, uint32_t region_size, uint32_t k)
{
	const double w = 1.0 / FAV_WORD_BITS;
	uint32_t	full_groups = k / FAV_LANE_WORDS;
	double		full = full_groups;
	double		part = k % FAV_LANE_WORDS;
	double		groups = full + (part > 0.0);

	/* on a word, by an element */
	double		hits = (double) k / (FAV_LANE_WORDS * region_size);

	/* groups in one lane, where there are more groups than lanes */
	double		rounds = floor(groups / region_size);
	double		over = groups - rounds * region_size;
	double		same = over * (rounds + 1) * rounds / 2 +
		(region_size - over) * rounds * (rounds - 1) / 2;
	double		all = (double) k * (k - 1) / 2;

	if (groups <= region_size)
	{
		double		both_words = (full + part * (part - 1) / 12) / region_size;
		double		both_lanes = region_size == 1 ? 0.0 :
			(full * (full - 1) + full * part / 2) / (region_size * (region_size - 1.0));

		chances->clear[ONE] = 1.0 - hits * w;
		chances->clear[SAME_LANE] = 1.0 - 2 * hits * w + both_words * w * w;
		chances->clear[TWO_LANES] = 1.0 - 2 * hits * w + both_lanes * w * w;
		chances->clear[SAME_WORD] = 1.0 - 2 * hits * w;
	}
	else
	{
		/* several groups in every lane, one more in some */
		uint32_t	each = (uint32_t) hits;
		double		more = hits - each;

		chances->clear[ONE] = fav_power(1.0 - w, each) * (1.0 - more * w);
		chances->clear[SAME_LANE] = fav_power((1.0 - w) * (1.0 - w), each) *
			(1.0 - 2 * more * w + more * w * w);
		chances->clear[TWO_LANES] = chances->clear[ONE] * chances->clear[ONE];
		chances->clear[SAME_WORD] = fav_power(1.0 - 2 * w, each) * (1.0 - 2 * more * w);
	}
	chances->pairs[SAME_WORD] = FAV_LANE_WORDS * same;
	chances->pairs[SAME_LANE] = full * FAV_LANE_WORDS * (FAV_LANE_WORDS - 1) / 2 +
		part * (part - 1) / 2 + same * FAV_LANE_WORDS * (FAV_LANE_WORDS - 1);
	if (chances->pairs[SAME_LANE] + chances->pairs[SAME_WORD] > all)
		chances->pairs[SAME_LANE] = all - chances->pairs[SAME_WORD];
	chances->pairs[TWO_LANES] = all - chances->pairs[SAME_LANE] - chances->pairs[SAME_WORD];
}

/*
 * The share of distinct bits among the k bits of an element: all of them, unless several groups
 * share a lane.
 */
static double
distinct_share(uint32_t region_size, uint32_t k)
{
	Chances		chances;

	find_chances(&chances, region_size, k);
	return (1.0 - chances.clear[ONE]) * region_size * FAV_LANE_BITS / k;
}

/*
 * False positives of a block: as if the k bits were independent, corrected for each pair of
 * bits that is not.  `clear` are the probabilities that given bits are clear.
 */
static double
block_error(const Chances *chances, uint32_t k, const double clear[CASES])
{
	double		set = 1.0 - clear[ONE];
	double		error = fav_power(set, k);
	int			i;

	if (set <= 0.0)
		return 0.0;
	for (i = SAME_LANE; i < CASES; i++)
	{
		double		both = (1.0 - 2 * clear[ONE] + clear[i]) / (set * set);

		/* two bits in the same word may be the same */
		if (i == SAME_WORD)
			both += (1.0 / set - both) / FAV_WORD_BITS;
		error *= fav_power(both, (uint32_t) (chances->pairs[i] + 0.5));
	}
	return error;
}

/*
 * False positives of a slice at load l.  Blocks fill unevenly: the number of elements in one is
 * Poisson distributed around lambda.  The result is the mean error of blocks over that.
 */
static double
slice_error(uint32_t region_size, uint32_t k, double load)
{
	double		lambda = load * region_size * FAV_LANE_BITS / k;
	double		mode = floor(lambda);
	double		weights = 0.0;
	double		errors = 0.0;
	double		weight;
	Chances		step;
	double		clear[CASES];
	double		at_mode[CASES];
	double		n;
	int			i;

	find_chances(&step, region_size, k);
	for (i = 0; i < CASES; i++)
		at_mode[i] = exact_exp(mode * exact_log(step.clear[i]));

	/* from the mode up, then down; relative weights will do */
	memcpy(clear, at_mode, sizeof(clear));
	for (n = mode, weight = 1.0; weight > 1e-8; n += 1.0)
	{
		weights += weight;
		if (n > 0.0)
			errors += weight * block_error(&step, k, clear);
		weight *= lambda / (n + 1.0);
		for (i = 0; i < CASES; i++)
			clear[i] *= step.clear[i];
	}
	memcpy(clear, at_mode, sizeof(clear));
	for (n = mode, weight = mode / lambda; n > 0.0 && weight > 1e-8; n -= 1.0)
	{
		for (i = 0; i < CASES; i++)
			clear[i] /= step.clear[i];
		weights += weight;
		if (n > 1.0)
			errors += weight * block_error(&step, k, clear);
		weight *= (n - 1.0) / lambda;
	}
	return errors / weights;
}

/* The load at which a slice with k bits per element reaches this error. */
static double
load_for_error(uint32_t region_size, uint32_t k, double error)
{
	double		low = 0.0;
	double		high = 2.0;
	int			i;

	for (i = 0; i < 20; i++)
	{
		double		middle = (low + high) / 2;

		if (slice_error(region_size, k, middle) > error)
			high = middle;
		else
			low = middle;
	}
	return low;
}

/*
 * The cost of an element in bits: its share of data and tracker lanes, and the tombstone that
 * it leaves if it is removed and no bit can be cleared.  A bit can be cleared if no other
 * element set it (e^-l) and no other bit of its region had a collision.
 */
static double
element_cost(uint32_t region_size, uint32_t k, double load)
{
	double		calm = (1.0 + load) * exact_exp(-load);
	double		own = exact_exp(-load) * fav_power(calm, region_size - 1);

	return k / load * (region_size + 1) / region_size +
		REMOVED_SHARE * fav_power(1.0 - own, k) * TOMBSTONE_BITS;
}

/*
 * A search takes some 100 microseconds, and the same few errors and fills recur: the last answers
 * are kept.
 */
typedef struct Answer
{
	double		given;			/* an error or a fill */
	uint32_t	region_size;	/* 0: unused */
	uint32_t	k;
	double		found;			/* a load or an error */
} Answer;

#define ANSWERS				64

/* Where the answer is, if it is there. */
static Answer *
answer_to(Answer answers[ANSWERS], double given, uint32_t salt)
{
	uint64_t	bits;

	memcpy(&bits, &given, sizeof(bits));
	return &answers[(bits * UINT64_C(0x9e3779b97f4a7c15) >> 58) ^ salt];
}

/* The k and load that make an element cheapest at this error. */
static void
cheapest(double error, uint32_t region_size, uint32_t *best_k, double *best_load)
{
	static FAV_PER_THREAD Answer answers[ANSWERS];
	Answer	   *answer = answer_to(answers, error, region_size);
	double		bloom_k = exact_log(1.0 / error) / LN2_HIGH;
	double		best_cost = 0.0;
	uint32_t	last_k;
	uint32_t	k;

	if (answer->region_size == region_size && answer->given == error)
	{
		*best_k = answer->k;
		*best_load = answer->found;
		return;
	}

	/* written so that an error whose inverse is no number fails too */
	if (!(bloom_k < FAV_MAX_K - 1))
		bloom_k = FAV_MAX_K - 1;
	last_k = (uint32_t) bloom_k + 1;
	k = (uint32_t) (bloom_k / 2);

	/* The best k is never far below that of a plain Bloom filter. */
	*best_k = 0;
	for (k = k < 1 ? 1 : k; k <= last_k; k++)
	{
		double		load = load_for_error(region_size, k, error);
		double		cost = element_cost(region_size, k, load);

		if (*best_k == 0 || cost < best_cost)
		{
			*best_k = k;
			*best_load = load;
			best_cost = cost;
		}
	}
	*answer = (Answer) {error, region_size, *best_k, *best_load};
}

bool
fav_size_slice(FavSlice *slice, double error, uint32_t region_size, uint64_t capacity)
{
	double		best_load = 0.0;
	double		blocks;
	double		fill;

	cheapest(error, region_size, &slice->k, &best_load);
	blocks = ceil((double) capacity * (1.0 + SLACK) * slice->k / best_load /
				  ((double) region_size * FAV_LANE_BITS));
	if (blocks * fav_block_bytes(region_size) > FAV_MAX_SIZE)
		return false;
	slice->nblocks = (uint32_t) blocks;
	fill = 1.0 - exact_exp(-best_load * distinct_share(region_size, slice->k));
	slice->bits_limit = (uint64_t) ((double) fav_slice_bits(slice, region_size) * fill);
	return true;
}

void
fav_slice_widen(FavSlice *slice, uint32_t region_size)
{
	double		fill = (double) slice->bits_limit / (double) fav_slice_bits(slice, region_size);

	slice->nblocks += 1 + slice->nblocks / 32;
	slice->bits_limit = (uint64_t) ((double) fav_slice_bits(slice, region_size) * fill);
}

double
fav_slice_design_error(const FavSlice *slice, uint32_t region_size)
{
	static FAV_PER_THREAD Answer answers[ANSWERS];
	double		fill = (double) slice->bits_limit / (double) fav_slice_bits(slice, region_size);
	Answer	   *answer = answer_to(answers, fill, slice->k % ANSWERS);

	/* only a forged value has more */
	if (fill > 0.9)
		return 1.0;
	if (answer->region_size != region_size || answer->k != slice->k || answer->given != fill)
	{
		double		load = -exact_log(1.0 - fill) / distinct_share(region_size, slice->k);

		*answer = (Answer) {fill, region_size, slice->k, slice_error(region_size, slice->k, load)};
	}
	return answer->found;
}

double
fav_slice_estimate(const FavSlice *slice, uint32_t region_size, uint64_t bits_set)
{
	double		bits = (double) fav_slice_bits(slice, region_size);

	/* a full slice would be infinitely many */
	if (bits_set >= bits)
		bits_set = (uint64_t) bits - 1;
	return -exact_log(1.0 - bits_set / bits) * bits / slice->k /
		distinct_share(region_size, slice->k);
}

double
fav_slice_capacity(const FavSlice *slice, uint32_t region_size)
{
	return fav_slice_estimate(slice, region_size, slice->bits_limit);
}
