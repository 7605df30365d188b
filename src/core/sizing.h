/*
 * sizing.h
 *		The mathematics: from an error rate to the geometry of a slice, and from the fill of
 *		a slice to the number of its elements.
 *
 * Every result that ends up in a value must be the same on every machine.  Only operations
 * that IEEE 754 defines to the last bit are used (no exp() or log() of a C library), and the
 * file is compiled with -ffp-contract=off.
 */
#ifndef FAV_SIZING_H
#define FAV_SIZING_H

#include "format.h"

/* Below this, slices late in a long chain would need more than FAV_MAX_K bits per element. */
#define FAV_MIN_ERROR_RATE	1e-6
#define FAV_MAX_ERROR_RATE	0.5

/*
 * A slice of a chain for fewer elements does not pay for its block.  Also, a flush of
 * FAV_RECENT_LIMIT elements always fits an empty slice.
 */
#define FAV_MIN_SLICE_CAPACITY	256

/*
 * The error that slice `number` (from 0) of a chain may have: half of error_rate for the first
 * slice, an eighth for the second, and three quarters of its predecessor's for every other.
 * The sum over any number of slices stays below error_rate.
 */
extern double fav_error_share(double error_rate, uint32_t number);

/*
 * The cheapest geometry for `capacity` elements with this error when full: sets nblocks, k and
 * bits_limit.  False if the slice would exceed FAV_MAX_SIZE.
 */
extern bool fav_size_slice(FavSlice *slice, double error, uint32_t region_size,
						   uint64_t capacity);

/* Enlarge the slice by some blocks of the same fill. */
extern void fav_slice_widen(FavSlice *slice, uint32_t region_size);

/* The error that a slice is sized for: the expected one when its fill reaches bits_limit. */
extern double fav_slice_design_error(const FavSlice *slice, uint32_t region_size);

/* How many elements a slice holds when its fill reaches bits_limit. */
extern double fav_slice_capacity(const FavSlice *slice, uint32_t region_size);

/* How many elements give `bits_set` bits in this slice. */
extern double fav_slice_estimate(const FavSlice *slice, uint32_t region_size,
								 uint64_t bits_set);

/* base^exponent */
extern double fav_power(double base, uint32_t exponent);

#endif							/* FAV_SIZING_H */
