/*
 * format.c
 *		Parse, check and write fav values.
 */
#include <stdarg.h>
#include <stdio.h>

#include "slice.h"

__attribute__((cold, format(printf, 2, 3)))
static FavStatus
malformed(FavProblem *problem, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(problem->detail, sizeof(problem->detail), format, args);
	va_end(args);
	return FAV_MALFORMED;
}

static FavStatus
parse_version(const uint8_t *bytes, FavProblem *problem)
{
	if (bytes[FAV_AT_VERSION] != FAV_FORMAT_VERSION)
		return malformed(problem, "Format version is %u, but only version %u is known.",
						 bytes[FAV_AT_VERSION], FAV_FORMAT_VERSION);
	return FAV_OK;
}

static FavStatus
parse_short(FavFilter *filter, const uint8_t *bytes, FavProblem *problem)
{
	FavParams	params;

	fav_set_default_params(&params);
	fav_make_empty(filter, &params);
	filter->is_short = true;
	filter->tombstones_offset = FAV_SHORT_SIZE;
	filter->runs = filter->recent = filter->tombstones = bytes + FAV_SHORT_SIZE;
	return parse_version(bytes, problem);
}

static FavStatus
parse_front(FavFilter *filter, const uint8_t *bytes, FavProblem *problem)
{
	if (parse_version(bytes, problem) != FAV_OK)
		return FAV_MALFORMED;
	if ((bytes[FAV_AT_FLAGS] & ~(FAV_FLAG_EXCLUDED | FAV_FLAG_DATED | FAV_FLAG_STACKED)) != 0 ||
		((bytes[FAV_AT_FLAGS] & FAV_FLAG_DATED) == 0 && bytes[FAV_AT_NRUNS] != 0))
		return malformed(problem, "Unknown flags and reserved bytes must be zero.");

	filter->params.keep = 0;
	filter->newest = 0;
	filter->nruns = bytes[FAV_AT_NRUNS];
	filter->runs = bytes + FAV_DATED_FRONT_SIZE;
	filter->params.region_size = bytes[FAV_AT_REGION_SIZE];
	filter->params.kind = bytes[FAV_AT_KIND];
	filter->is_short = false;
	filter->has_excluded = (bytes[FAV_AT_FLAGS] & FAV_FLAG_EXCLUDED) != 0;
	filter->is_stacked = (bytes[FAV_AT_FLAGS] & FAV_FLAG_STACKED) != 0;
	filter->nslices = bytes[FAV_AT_NSLICES];
	filter->nrecent = fav_load16(bytes + FAV_AT_NRECENT);

	if (filter->params.region_size < 1 || filter->params.region_size > FAV_MAX_REGION_SIZE)
		return malformed(problem, "Region size is %u, but must be between 1 and %d.",
						 filter->params.region_size, FAV_MAX_REGION_SIZE);
	if (bytes[FAV_AT_KIND] > FAV_KIND_PAIR)
		return malformed(problem, "The kind of its elements is %u, but at most %d is known.",
						 bytes[FAV_AT_KIND], FAV_KIND_PAIR);
	if (filter->nrecent > FAV_RECENT_LIMIT)
		return malformed(problem, "The value has %u recent hashes, but at most %d are possible.",
						 filter->nrecent, FAV_RECENT_LIMIT);
	if ((bytes[FAV_AT_FLAGS] & FAV_FLAG_DATED) != 0)
	{
		filter->params.keep = fav_load32(bytes + FAV_AT_KEEP);
		filter->newest = (int32_t) fav_load32(bytes + FAV_AT_NEWEST);
		if (filter->params.keep < 1 || filter->params.keep > FAV_MAX_KEEP)
			return malformed(problem, "The value keeps elements for %u periods, but must keep them"
							 " for 1 to %d.", filter->params.keep, FAV_MAX_KEEP);
		if (filter->newest == FAV_NO_PERIOD && (filter->nrecent > 0 || filter->nslices > 0))
			return malformed(problem, "A dated value with elements has a newest period.");
	}
	if (filter->nslices > fav_max_slices(filter))
		return malformed(problem, "The value has %u slices, but at most %u are possible.",
						 filter->nslices, fav_max_slices(filter));
	filter->recent = bytes + fav_recent_offset(filter);
	return FAV_OK;
}

/* The periods of recent hashes, of a dated value. */
static FavStatus
parse_runs(const FavFilter *filter, FavProblem *problem)
{
	uint32_t	count = 0;
	uint32_t	i;

	for (i = 0; i < filter->nruns; i++)
	{
		int32_t		period = fav_run_period(filter, i);

		count += fav_run_count(filter, i);
		if (fav_run_count(filter, i) == 0)
			return malformed(problem, "Run %u of recent hashes is empty.", i + 1);
		if (i > 0 && period >= fav_run_period(filter, i - 1))
			return malformed(problem, "The periods of the runs %u and %u do not descend.",
							 i, i + 1);
		if (period > filter->newest || fav_is_too_old(filter, period, filter->newest))
			return malformed(problem,
							 "Period %d of recent hashes is not among the last %u up to %d.",
							 period, filter->params.keep, filter->newest);
	}
	if (fav_is_dated(filter) && count != filter->nrecent)
		return malformed(problem, "The runs have %u recent hashes, but the value has %u.", count,
						 filter->nrecent);
	return FAV_OK;
}

static FavStatus
parse_params(FavFilter *filter, const uint8_t *params, FavProblem *problem)
{
	uint64_t	rate_bits = fav_load64(params + FAV_PARAMS_AT_ERROR_RATE);

	filter->ntombstones = fav_load32(params + FAV_PARAMS_AT_NTOMBSTONES);
	filter->elements = fav_load64(params + FAV_PARAMS_AT_ELEMENTS);
	filter->params.capacity = fav_load64(params + FAV_PARAMS_AT_CAPACITY);
	filter->params.seed = fav_load64(params + FAV_PARAMS_AT_SEED);
	memcpy(&filter->params.error_rate, &rate_bits, sizeof(rate_bits));

	if (filter->params.capacity < 1 || filter->params.capacity > FAV_MAX_ELEMENTS)
		return malformed(problem, "Capacity is %llu, but must be between 1 and %llu.",
						 (unsigned long long) filter->params.capacity,
						 (unsigned long long) FAV_MAX_ELEMENTS);
	/* written so that NaN fails */
	if (!(filter->params.error_rate > 0.0 && filter->params.error_rate <= 1.0))
		return malformed(problem, "Error rate is %g, but must be above 0 and at most 1.",
						 filter->params.error_rate);
	if (filter->has_excluded && filter->ntombstones == 0)
		return malformed(problem, "A value without tombstones cannot have excluded elements.");
	if (filter->is_stacked && (filter->nslices == 0 || fav_is_dated(filter)))
		return malformed(problem, "A value without slices, or one that is dated, is not a stack.");
	if ((filter->params.kind == FAV_KIND_NONE) != fav_is_empty(filter))
		return malformed(problem, "A value has a kind of elements if and only if it is not empty.");
	if (filter->nslices == 0 && filter->elements != 0)
		return malformed(problem, "A value without slices cannot have elements in them.");
	if (filter->elements > FAV_MAX_ELEMENTS)
		return malformed(problem, "The value has %llu elements, more than a value can hold.",
						 (unsigned long long) filter->elements);
	return FAV_OK;
}

static FavStatus
parse_slice(FavFilter *filter, uint32_t number, const uint8_t *entry, FavProblem *problem)
{
	FavSlice   *slice = &filter->slices[number];
	uint64_t	bits;

	slice->nblocks = fav_load32(entry + FAV_SLICE_AT_NBLOCKS);
	slice->k = entry[FAV_SLICE_AT_K];
	slice->bits_set = fav_load64(entry + FAV_SLICE_AT_BITS_SET);
	slice->bits_limit = fav_load64(entry + FAV_SLICE_AT_BITS_LIMIT);
	slice->blocks = NULL;
	slice->first = slice->last = 0;
	slice->elements = 0;
	if (fav_is_dated(filter))
	{
		slice->first = (int32_t) fav_load32(entry + FAV_SLICE_AT_FIRST);
		slice->last = (int32_t) fav_load32(entry + FAV_SLICE_AT_LAST);
		slice->elements = fav_load32(entry + FAV_SLICE_AT_ELEMENTS);
	}

	if (entry[FAV_SLICE_AT_RESERVED] != 0 || fav_load16(entry + FAV_SLICE_AT_RESERVED + 1) != 0)
		return malformed(problem, "Reserved bytes of slice %u must be zero.", number + 1);
	if (slice->nblocks < 1)
		return malformed(problem, "Slice %u has no blocks.", number + 1);
	if (slice->k < 1 || slice->k > FAV_MAX_K)
		return malformed(problem,
						 "Slice %u sets %u bits for an element, but must set between 1 and %d.",
						 number + 1, slice->k, FAV_MAX_K);
	bits = fav_slice_bits(slice, filter->params.region_size);
	if (slice->bits_set > bits || slice->bits_limit < 1 || slice->bits_limit > bits)
		return malformed(problem,
						 "Slice %u records %llu bits set of at most %llu, but has %llu bits.",
						 number + 1, (unsigned long long) slice->bits_set,
						 (unsigned long long) slice->bits_limit, (unsigned long long) bits);
	if (slice->first > slice->last || slice->last > filter->newest ||
		fav_span(filter, slice->first) != fav_span(filter, slice->last) ||
		fav_is_too_old(filter, slice->last, filter->newest))
		return malformed(problem, "Slice %u has the periods %d to %d, but must have those of one"
						 " span among the last %u up to %d.", number + 1, slice->first, slice->last,
						 filter->params.keep, filter->newest);
	return FAV_OK;
}

FavStatus
fav_open(FavFilter *filter, const uint8_t *bytes, size_t available, size_t size,
		 FavProblem *problem)
{
	size_t		head_size;
	uint64_t	offset;
	uint32_t	i;
	FavStatus	status;

	if (size > FAV_MAX_SIZE)
		return malformed(problem, "The value has %llu bytes, but at most %llu are possible.",
						 (unsigned long long) size, (unsigned long long) FAV_MAX_SIZE);
	if (available > size)
		available = size;
	if (size == FAV_SHORT_SIZE && available == size)
		return parse_short(filter, bytes, problem);
	if (available < FAV_HEADER_SIZE)
		return malformed(problem, "The value has %llu bytes, but must have %d or at least %d.",
						 (unsigned long long) available, FAV_SHORT_SIZE, FAV_HEADER_SIZE);
	status = parse_front(filter, bytes, problem);
	if (status != FAV_OK)
		return status;

	head_size = fav_head_size(filter);
	if (available < head_size)
		return malformed(problem, "The value has %llu bytes, but its recent hashes and "
						 "slice directory end at %llu.",
						 (unsigned long long) available, (unsigned long long) head_size);
	status = parse_runs(filter, problem);
	if (status == FAV_OK)
		status = parse_params(filter, bytes + fav_params_offset(filter), problem);
	if (status != FAV_OK)
		return status;

	/* At most 72 slices below 2^43 bytes each: the sum cannot overflow. */
	offset = head_size;
	for (i = 0; i < filter->nslices; i++)
	{
		FavSlice   *slice = &filter->slices[i];

		status = parse_slice(filter, i, bytes + fav_entry_offset(filter, i), problem);
		if (status != FAV_OK)
			return status;
		slice->offset = offset;
		offset += fav_slice_bytes(slice, filter->params.region_size);
	}
	filter->tombstones_offset = offset;
	offset += (uint64_t) filter->ntombstones * 8;
	if (offset != size)
		return malformed(problem, "The value has %llu bytes, but its counts add up to %llu.",
						 (unsigned long long) size, (unsigned long long) offset);

	filter->tombstones = NULL;
	if (available == size)
	{
		for (i = 0; i < filter->nslices; i++)
			filter->slices[i].blocks = bytes + filter->slices[i].offset;
		filter->tombstones = bytes + filter->tombstones_offset;
	}
	return FAV_OK;
}

bool
fav_head_is_longer(const uint8_t *bytes, size_t available)
{
	FavFilter	filter = {0};
	FavProblem	problem;

	return available >= FAV_DATED_FRONT_SIZE && parse_front(&filter, bytes, &problem) == FAV_OK &&
		fav_head_size(&filter) > available;
}

/* A megabyte takes less than a millisecond. */
#define PAUSE_BYTES			(1024 * 1024)

void
fav_copy(uint8_t *to, const uint8_t *from, size_t size)
{
	for (; size > PAUSE_BYTES; to += PAUSE_BYTES, from += PAUSE_BYTES, size -= PAUSE_BYTES)
	{
		memmove(to, from, PAUSE_BYTES);
		fav_pause();
	}
	if (size > 0)
		memmove(to, from, size);
}

void
fav_fill(uint8_t *to, uint8_t byte, size_t size)
{
	for (; size > PAUSE_BYTES; to += PAUSE_BYTES, size -= PAUSE_BYTES)
	{
		memset(to, byte, PAUSE_BYTES);
		fav_pause();
	}
	memset(to, byte, size);
}

static FavStatus
check_slice(const FavFilter *filter, uint32_t number, FavProblem *problem)
{
	const FavSlice *slice = &filter->slices[number];
	size_t		data_bytes = (size_t) filter->params.region_size * FAV_LANE_BYTES;
	uint64_t	bits_set = 0;
	uint32_t	i;

	for (i = 0; i < slice->nblocks; i++)
	{
		if (i % FAV_PAUSE_BLOCKS == 0)
			fav_pause();
		bits_set += fav_popcount(slice->blocks + i * fav_block_bytes(filter->params.region_size),
								 data_bytes);
	}
	if (bits_set != slice->bits_set)
		return malformed(problem, "Slice %u records %llu bits set, but has %llu.", number + 1,
						 (unsigned long long) slice->bits_set, (unsigned long long) bits_set);
	return FAV_OK;
}

/* Check a short list without order. */
static FavStatus
check_unique(const uint8_t *list, uint32_t count, const char *name, FavProblem *problem)
{
	uint32_t	i;
	uint32_t	j;

	for (i = 1; i < count; i++)
		for (j = 0; j < i; j++)
			if (fav_load64(list + 8 * j) == fav_load64(list + 8 * i))
				return malformed(problem, "The %s %u and %u are the same.", name, j + 1, i + 1);
	return FAV_OK;
}

static FavStatus
check_tombstones(const FavFilter *filter, FavProblem *problem)
{
	uint32_t	i;

	if (!fav_tombstones_are_sorted(filter))
		return check_unique(filter->tombstones, filter->ntombstones, "tombstones", problem);
	for (i = 1; i < filter->ntombstones; i++)
	{
		if (i % FAV_PAUSE_HASHES == 0)
			fav_pause();
		if (fav_load64(filter->tombstones + 8 * (size_t) i) <=
			fav_load64(filter->tombstones + 8 * (size_t) (i - 1)))
			return malformed(problem, "The tombstones %u and %u are not in ascending order.",
							 i, i + 1);
	}
	return FAV_OK;
}

FavStatus
fav_check(const FavFilter *filter, FavProblem *problem)
{
	FavStatus	status = check_unique(filter->recent, filter->nrecent, "recent hashes", problem);
	uint32_t	i;

	if (status == FAV_OK)
		status = check_tombstones(filter, problem);
	for (i = 0; i < filter->nrecent && status == FAV_OK; i++)
		if (fav_has_tombstone(filter, fav_load64(filter->recent + 8 * i)))
			return malformed(problem, "The recent hash %u also has a tombstone.", i + 1);
	for (i = 0; i < filter->nslices && status == FAV_OK; i++)
		status = check_slice(filter, i, problem);
	return status;
}

uint64_t
fav_size(const FavFilter *filter)
{
	uint64_t	size = fav_head_size(filter);
	uint32_t	i;

	if (filter->is_short)
		return FAV_SHORT_SIZE;
	for (i = 0; i < filter->nslices; i++)
		size += fav_slice_bytes(&filter->slices[i], filter->params.region_size);
	return size + (uint64_t) filter->ntombstones * 8;
}

static void
write_slice(const FavSlice *slice, uint8_t *entry, bool is_dated)
{
	memset(entry, 0, FAV_SLICE_ENTRY_SIZE);
	if (is_dated)
	{
		fav_store32(entry + FAV_SLICE_AT_FIRST, (uint32_t) slice->first);
		fav_store32(entry + FAV_SLICE_AT_LAST, (uint32_t) slice->last);
		fav_store32(entry + FAV_SLICE_AT_ELEMENTS, slice->elements);
	}
	fav_store32(entry + FAV_SLICE_AT_NBLOCKS, slice->nblocks);
	entry[FAV_SLICE_AT_K] = (uint8_t) slice->k;
	fav_store64(entry + FAV_SLICE_AT_BITS_SET, slice->bits_set);
	fav_store64(entry + FAV_SLICE_AT_BITS_LIMIT, slice->bits_limit);
}

uint8_t *
fav_write_head(const FavFilter *filter, uint8_t *out)
{
	uint64_t	rate_bits;
	uint8_t    *at;
	uint32_t	i;

	out[FAV_AT_VERSION] = FAV_FORMAT_VERSION;
	if (filter->is_short)
		return out + FAV_SHORT_SIZE;
	memcpy(&rate_bits, &filter->params.error_rate, sizeof(rate_bits));
	memset(out + 1, 0, FAV_FRONT_SIZE - 1);
	out[FAV_AT_FLAGS] = filter->has_excluded && filter->ntombstones > 0 ? FAV_FLAG_EXCLUDED : 0;
	if (filter->is_stacked && filter->nslices > 0)
		out[FAV_AT_FLAGS] |= FAV_FLAG_STACKED;
	out[FAV_AT_REGION_SIZE] = (uint8_t) filter->params.region_size;
	out[FAV_AT_NSLICES] = (uint8_t) filter->nslices;
	out[FAV_AT_KIND] = fav_is_empty(filter) ? FAV_KIND_NONE : (uint8_t) filter->params.kind;
	fav_store16(out + FAV_AT_NRECENT, filter->nrecent);
	if (fav_is_dated(filter))
	{
		out[FAV_AT_FLAGS] |= FAV_FLAG_DATED;
		out[FAV_AT_NRUNS] = (uint8_t) filter->nruns;
		fav_store32(out + FAV_AT_KEEP, filter->params.keep);
		fav_store32(out + FAV_AT_NEWEST, (uint32_t) filter->newest);
		fav_copy(out + FAV_DATED_FRONT_SIZE, filter->runs, (size_t) filter->nruns * FAV_RUN_SIZE);
	}
	fav_copy(out + fav_recent_offset(filter), filter->recent, (size_t) filter->nrecent * 8);

	at = out + fav_params_offset(filter);
	fav_store32(at + FAV_PARAMS_AT_NTOMBSTONES, filter->ntombstones);
	fav_store64(at + FAV_PARAMS_AT_ELEMENTS, filter->elements);
	fav_store64(at + FAV_PARAMS_AT_CAPACITY, filter->params.capacity);
	fav_store64(at + FAV_PARAMS_AT_SEED, filter->params.seed);
	fav_store64(at + FAV_PARAMS_AT_ERROR_RATE, rate_bits);

	for (i = 0; i < filter->nslices; i++)
		write_slice(&filter->slices[i], out + fav_entry_offset(filter, i), fav_is_dated(filter));
	return out + fav_head_size(filter);
}

void
fav_write(const FavFilter *filter, uint8_t *out)
{
	uint8_t    *at = fav_write_head(filter, out);
	uint32_t	i;

	for (i = 0; i < filter->nslices; i++)
	{
		size_t		length = fav_slice_bytes(&filter->slices[i], filter->params.region_size);

		fav_copy(at, filter->slices[i].blocks, length);
		at += length;
	}
	fav_copy(at, filter->tombstones, (size_t) filter->ntombstones * 8);
}
