/*
 * test_sizing.c
 *		The formulas, against the C library and against the figures of the design.
 *		Includes sizing.c for its static functions.
 */
#include "../../src/core/sizing.c"

#include "harness.h"

static void
test_functions(void)
{
	uint64_t	random = 1;
	double		worst_exp = 0.0;
	double		worst_log = 0.0;
	double		worst_power = 0.0;
	int			i;

	test_begin("sizing: exp, log and power against the C library");
	for (i = 0; i < 200000; i++)
	{
		double		unit = (double) (next_random(&random) >> 11) / 9007199254740992.0;
		double		x = i % 2 ? unit * 4 - 4 : unit * 1200 - 600;
		double		positive = i % 2 ? unit + 1e-300 : exp(unit * 600 - 300);
		uint32_t	exponent = (uint32_t) i % 40;

		worst_exp = fmax(worst_exp, fabs(exact_exp(x) / exp(x) - 1.0));
		worst_log = fmax(worst_log, fabs(exact_log(positive) - log(positive)) / fmax(fabs(log(positive)), 1e-3));
		worst_power = fmax(worst_power, fabs(fav_power(0.5 + unit, exponent) / pow(0.5 + unit, exponent) - 1.0));
	}
	CHECK_THAT(worst_exp < 4e-15, "exp is off by %g", worst_exp);
	CHECK_THAT(worst_log < 1e-14, "log is off by %g", worst_log);
	CHECK_THAT(worst_power < 1e-14, "power is off by %g", worst_power);
	CHECK(exact_exp(0.0) == 1.0 && exact_log(1.0) == 0.0 && fav_power(0.3, 0) == 1.0 && fav_power(0.0, 3) == 0.0);
	test_end();
}

static void
test_shares(void)
{
	static const double rates[] = {FAV_MIN_ERROR_RATE, 0.0001, 0.01, 0.2, FAV_MAX_ERROR_RATE, 1.0};
	size_t		i;
	uint32_t	number;

	test_begin("sizing: the shares of all slices add up to less than the whole");
	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
	{
		double		sum = 0.0;

		for (number = 0; number < FAV_MAX_SLICES; number++)
		{
			double		share = fav_error_share(rates[i], number);

			CHECK(share > 0.0 && (number == 0 || share < fav_error_share(rates[i], number - 1)));
			sum += share;
		}
		CHECK_THAT(sum < rates[i] && sum > 0.99 * rates[i], "%g of %g", sum, rates[i]);
	}
	test_end();
}

/*
 * The table of the design assumes one large bitmap.  A slice takes up to 5 % more: for
 * correlated bits, for slack, and for whole blocks.  So the best k may be larger by one.
 */
static void
test_table(void)
{
	static const struct
	{
		double		error;
		uint32_t	k;
		double		load;
		double		bits;
	}			table[] = {{0.05, 3, 0.46, 7.5}, {0.01, 5, 0.51, 11.3}, {0.005, 6, 0.53, 12.9}, {0.001, 8, 0.55, 16.7}};
	size_t		i;

	test_begin("sizing: k, load and bits per element are about as designed");
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
	{
		FavSlice	slice;
		double		bits;
		double		load;

		CHECK(fav_size_slice(&slice, table[i].error, 7, 1000000));
		bits = (double) fav_slice_bytes(&slice, 7) * 8 / 1e6;
		load = slice.k * fav_slice_capacity(&slice, 7) / (double) fav_slice_bits(&slice, 7);
		printf("sizing: error %5.2f %%: k %u, load %.3f, %.2f bits per element; designed: %u, %.2f, %.1f\n",
			   100 * table[i].error, slice.k, load, bits, table[i].k, table[i].load, table[i].bits);
		CHECK_THAT(slice.k == table[i].k || slice.k == table[i].k + 1, "error %g: k %u", table[i].error, slice.k);
		CHECK_THAT(fabs(load / slice.k / table[i].load * table[i].k - 1) < 0.05, "error %g: load %g", table[i].error, load);
		CHECK_THAT(bits < table[i].bits * 1.05, "error %g: %g bits per element", table[i].error, bits);
	}
	test_end();
}

/* Every legal request gives a usable slice. */
static void
test_slices(void)
{
	static const double rates[] = {FAV_MIN_ERROR_RATE, 0.0001, 0.001, 0.01, 0.05, 0.2, FAV_MAX_ERROR_RATE, 1.0};
	static const uint64_t capacities[] = {1, FAV_RECENT_MAX, FAV_MIN_SLICE_CAPACITY, 1000, 100000};
	size_t		r;
	size_t		c;
	uint32_t	number;
	uint32_t	region_size;

	test_begin("sizing: a slice for every rate, region size, place in the chain and capacity");
	for (r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
		for (region_size = 1; region_size <= FAV_MAX_REGION_SIZE; region_size += region_size < 10 ? 1 : 7)
			for (number = 0; number < FAV_MAX_SLICES; number += number < 2 ? 1 : 10)
				for (c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++)
				{
					double		error = fav_error_share(rates[r], number);
					FavSlice	slice;
					uint64_t	bits;

					CHECK(fav_size_slice(&slice, error, region_size, capacities[c]));
					bits = fav_slice_bits(&slice, region_size);
					CHECK(slice.k >= 1 && slice.k <= FAV_MAX_K && slice.nblocks >= 1);
					CHECK(slice.bits_limit >= 1 && slice.bits_limit < bits);
					CHECK(fav_slice_capacity(&slice, region_size) >= (double) capacities[c]);
					/* the hashes of one flush fit, even without a collision */
					CHECK(capacities[c] < FAV_MIN_SLICE_CAPACITY || slice.bits_limit >= (uint64_t) (FAV_RECENT_MAX - 1) * slice.k + 1);
					CHECK(slice_error(region_size, slice.k,
									  slice.k * fav_slice_capacity(&slice, region_size) / (double) bits) < error * 1.001);
				}
	test_end();
}

static void
test_limits(void)
{
	static const double tiny[] = {1e-12, 1e-19, 1e-20, 1e-21, 1e-40, 1e-300, 1e-308, 5e-324};
	FavSlice	slice;
	size_t		i;

	test_begin("sizing: too large, or an error out of reach, is refused");
	CHECK(!fav_size_slice(&slice, 0.005, 7, UINT64_C(1000000000)));
	CHECK(!fav_size_slice(&slice, 0.005, 7, UINT64_MAX));
	CHECK(!fav_size_slice(&slice, 0.5, 1, UINT64_MAX));
	CHECK(fav_size_slice(&slice, 0.005, 7, UINT64_C(300000000)));
	CHECK(fav_slice_bytes(&slice, 7) <= FAV_MAX_SIZE);
	for (i = 0; i < sizeof(tiny) / sizeof(tiny[0]); i++)
		if (fav_size_slice(&slice, tiny[i], 7, 1000))
			CHECK_THAT(slice.k >= 1 && slice.k <= FAV_MAX_K && slice.nblocks >= 1 && slice.bits_limit >= 1 &&
					   slice.bits_limit <= fav_slice_bits(&slice, 7), "error %g: k %u, %u blocks", tiny[i], slice.k, slice.nblocks);
	test_end();
}

static void
test_estimates(void)
{
	FavSlice	slice = {.nblocks = 10, .k = 5};
	uint64_t	bits = fav_slice_bits(&slice, 7);
	uint64_t	set;
	double		last = -1.0;

	test_begin("sizing: the estimate of elements rises with the bits, and is finite");
	for (set = 0; set < bits; set += 97)
	{
		double		estimate = fav_slice_estimate(&slice, 7, set);

		CHECK(estimate > last && estimate >= (double) set / slice.k);
		last = estimate;
	}
	CHECK(fav_slice_estimate(&slice, 7, 0) == 0.0);
	CHECK(isfinite(fav_slice_estimate(&slice, 7, bits)) && fav_slice_estimate(&slice, 7, bits) >= last);
	CHECK(isfinite(fav_slice_estimate(&slice, 7, UINT64_MAX)));
	test_end();
}

int
main(void)
{
	test_functions();
	test_shares();
	test_table();
	test_slices();
	test_limits();
	test_estimates();
	return test_summary("test_sizing");
}
