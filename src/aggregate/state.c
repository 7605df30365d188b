/*
 * state.c
 *		See state.h.
 */
#include "aggregate/state.h"

#include "miscadmin.h"

#define STATE_VERSION		1

#define AT_VERSION			0
#define AT_KIND				1
#define AT_REGION_SIZE		2
#define AT_RESERVED			3
#define AT_CAPACITY			4
#define AT_SEED				12
#define AT_ERROR_RATE		20
#define AT_COUNT			28
#define AT_HASHES			36

/* The number of hashes that are read or written between two checks for interrupts. */
#define INTERRUPT_EVERY		((size_t) 1 << 18)

void
fav_state_init(FavAggState *state, const FavParams *params, MemoryContext context)
{
	state->params = *params;
	fav_hashset_init(&state->set, context);
}

void
fav_state_unite(FavAggState *state, FavAggState *other)
{
	fav_hashset_settle(&other->set);
	fav_hashset_unite(&state->set, other->set.hashes, other->set.count);
}

size_t
fav_state_size(const FavAggState *state)
{
	return AT_HASHES + state->set.count * sizeof(uint64);
}

uint8_t *
fav_state_write(const FavAggState *state, uint8_t *to)
{
	uint64		error_rate;
	size_t		i;

	memcpy(&error_rate, &state->params.error_rate, sizeof(error_rate));
	to[AT_VERSION] = STATE_VERSION;
	to[AT_KIND] = (uint8_t) state->params.kind;
	to[AT_REGION_SIZE] = (uint8_t) state->params.region_size;
	to[AT_RESERVED] = 0;
	fav_store64(to + AT_CAPACITY, state->params.capacity);
	fav_store64(to + AT_SEED, state->params.seed);
	fav_store64(to + AT_ERROR_RATE, error_rate);
	fav_store64(to + AT_COUNT, state->set.count);
	to += AT_HASHES;
	for (i = 0; i < state->set.count; i++, to += sizeof(uint64))
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		fav_store64(to, state->set.hashes[i]);
	}
	return to;
}

const char *
fav_state_read(FavAggState *state, const uint8_t *bytes, size_t size, size_t *used)
{
	FavParams	params;
	uint64		error_rate;
	uint64		count;
	size_t		i;

	if (size < AT_HASHES)
		return "It is too short.";
	if (bytes[AT_VERSION] != STATE_VERSION || bytes[AT_RESERVED] != 0)
		return "It has an unknown version.";
	params.kind = bytes[AT_KIND];
	params.keep = 0;
	params.region_size = bytes[AT_REGION_SIZE];
	params.capacity = fav_load64(bytes + AT_CAPACITY);
	params.seed = fav_load64(bytes + AT_SEED);
	error_rate = fav_load64(bytes + AT_ERROR_RATE);
	memcpy(&params.error_rate, &error_rate, sizeof(error_rate));
	count = fav_load64(bytes + AT_COUNT);
	if (params.kind > FAV_KIND_PAIR || (params.kind == FAV_KIND_NONE && count > 0))
		return "The kind of its elements is out of range.";
	if (params.region_size < 1 || params.region_size > FAV_MAX_REGION_SIZE)
		return "Its region size is out of range.";
	if (params.capacity > FAV_MAX_ELEMENTS)
		return "Its capacity is out of range.";
	if (!(params.error_rate > 0.0 && params.error_rate <= 1.0))
		return "Its error rate is out of range.";
	if (count > (size - AT_HASHES) / sizeof(uint64))
		return "It has fewer hashes than its count says.";

	fav_state_init(state, &params, CurrentMemoryContext);
	fav_hashset_reserve(&state->set, count);
	bytes += AT_HASHES;
	for (i = 0; i < count; i++)
	{
		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		state->set.hashes[i] = fav_load64(bytes + i * sizeof(uint64));
		if (i > 0 && state->set.hashes[i - 1] >= state->set.hashes[i])
			return "Its hashes are not in order.";
	}
	state->set.count = state->set.sorted = count;
	*used = AT_HASHES + count * sizeof(uint64);
	return NULL;
}
