/*
 * agg.c
 *		fav_agg: one filter of exactly the right size from many rows.
 *
 * The state is the set of hashes seen.  The result depends on nothing else, neither
 * on the order of the rows nor on the workers that read them.
 */
#include "fav.h"

#include "core/levels.h"
#include "type/elements.h"
#include "aggregate/handover.h"
#include "aggregate/hashset.h"
#include "aggregate/share.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

/*
 * How a state gets from a partial aggregate to the final one.  Only within one machine: no
 * byte order to fix.
 */
typedef struct Message
{
	enum
	{
		SENT,					/* the hashes follow */
		SHARED,					/* they are in shared memory (share.h) */
		KEPT					/* they stay in this process (handover.h) */
	}			how;
	FavParams	params;
	union
	{
		struct
		{
			FavShared	where;
			size_t		size;	/* as sent */
		}			shared;
		uint64		kept;		/* its number */
	};
} Message;

typedef struct AggState
{
	FavParams	params;			/* capacity 0: none was given */
	MemoryContext context;		/* where all of it lives */
	FavHashSet	set;

	bool		sent;			/* towards the final aggregate, at least once */
	bool		kept;			/* so that it stays here (handover.h) */

	/* as the final aggregate gets it from another process: where its hashes are */
	const Message *shared;
	const uint8_t *stored;		/* if not shared */
	size_t		stored_size;
} AggState;

/*
 * A large state whose hashes are sent is an expanded object: they are written right into
 * the tuple that goes there, with no copy in between.
 *
 * PostgreSQL flattens the first state that a final aggregate gets all the same, to
 * copy its tuple.  Mostly it is the leader's own, which is kept here.
 */
typedef struct SentState
{
	ExpandedObjectHeader header;
	AggState   *state;
	Message		message;
} SentState;

PG_FUNCTION_INFO_V1(fav_agg_combine);
PG_FUNCTION_INFO_V1(fav_agg_serialize);
PG_FUNCTION_INFO_V1(fav_agg_deserialize);
PG_FUNCTION_INFO_V1(fav_agg_final);
PG_FUNCTION_INFO_V1(fav_base_final);

/* error_rate and capacity, the arguments after the element, if they are there. */
static FavParams
agg_params(FunctionCallInfo fcinfo)
{
	FavParams	params = fav_default_params();

	params.capacity = 0;
	if (PG_NARGS() > 2 && !PG_ARGISNULL(2))
		params.error_rate = PG_GETARG_FLOAT8(2);
	if (PG_NARGS() > 3 && !PG_ARGISNULL(3))
	{
		if (PG_GETARG_INT64(3) < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("capacity " INT64_FORMAT " is out of range", PG_GETARG_INT64(3)),
					 errdetail("The capacity must be at least 1.")));
		params.capacity = (uint64_t) PG_GETARG_INT64(3);
	}
	return params;
}

static void
check_same_params(const FavParams *first, const FavParams *now)
{
	if (first->error_rate != now->error_rate)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("error_rate must be the same for all rows of a group"),
				 errdetail("It was %g, and is %g.", first->error_rate, now->error_rate)));
	if (first->capacity != now->capacity)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity must be the same for all rows of a group"),
				 errdetail("It was " UINT64_FORMAT ", and is " UINT64_FORMAT ".",
						   first->capacity, now->capacity)));
}

static AggState *
new_state(MemoryContext context, const FavParams *params)
{
	AggState   *state = MemoryContextAllocZero(context, sizeof(AggState));

	state->params = *params;
	state->context = context;
	return state;
}

/* Called for each row: a function for each kind, with no more calls in it. */
static pg_attribute_always_inline Datum
agg_transition(FunctionCallInfo fcinfo, FavKind kind)
{
	AggState   *state;

	if (PG_ARGISNULL(0))
	{
		MemoryContext context = fav_aggregate_context(fcinfo);
		FavParams	params = agg_params(fcinfo);

		params.kind = kind;
		fav_check_params(&params);
		state = new_state(context, &params);
	}
	else
	{
		state = (AggState *) PG_GETARG_POINTER(0);
		if (PG_NARGS() > 2)
		{
			FavParams	params = agg_params(fcinfo);

			check_same_params(&state->params, &params);
		}
	}
	if (!PG_ARGISNULL(1))
		fav_hashset_add(&state->set, fav_hash_datum(kind, PG_GETARG_DATUM(1), state->params.seed), state->context);
	PG_RETURN_POINTER(state);
}

#define FAV_AGG_FUNCTION(suffix, kind) \
	extern PGDLLEXPORT Datum fav_agg_##suffix(PG_FUNCTION_ARGS); \
	Datum fav_agg_##suffix(PG_FUNCTION_ARGS) { return agg_transition(fcinfo, kind); } \
	PG_FUNCTION_INFO_V1(fav_agg_##suffix)

FAV_AGG_FUNCTION(int8, FAV_KIND_INTEGER);
FAV_AGG_FUNCTION(text, FAV_KIND_TEXT);
FAV_AGG_FUNCTION(uuid, FAV_KIND_UUID);
FAV_AGG_FUNCTION(bytea, FAV_KIND_BYTES);

/* A pair has no parameters after it. */
PG_FUNCTION_INFO_V1(fav_agg_pair);

Datum
fav_agg_pair(PG_FUNCTION_ARGS)
{
	AggState   *state;

	if (PG_ARGISNULL(0))
	{
		FavParams	params = fav_default_params();

		params.capacity = 0;
		params.kind = FAV_KIND_PAIR;
		state = new_state(fav_aggregate_context(fcinfo), &params);
	}
	else
		state = (AggState *) PG_GETARG_POINTER(0);
	if (!PG_ARGISNULL(1) && !PG_ARGISNULL(2))
		fav_hashset_add(&state->set, fav_hash_pair(PG_GETARG_INT64(1), PG_GETARG_INT64(2), state->params.seed),
						state->context);
	PG_RETURN_POINTER(state);
}

/*
 * fav_base(element, error_rate, seed): the base of an attached filter.  It is never
 * chained, so its only slice may err as often as the whole.
 */
static pg_attribute_always_inline Datum
base_transition(FunctionCallInfo fcinfo, FavKind kind)
{
	AggState   *state;

	if (PG_ARGISNULL(0))
	{
		FavParams	params = fav_default_params();

		if (PG_ARGISNULL(2) || PG_ARGISNULL(3))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("error_rate and seed must not be null")));
		params.error_rate = PG_GETARG_FLOAT8(2);
		params.seed = (uint64_t) PG_GETARG_INT64(3);
		params.capacity = 0;
		params.kind = kind;
		fav_check_params(&params);
		state = new_state(fav_aggregate_context(fcinfo), &params);
	}
	else
		state = (AggState *) PG_GETARG_POINTER(0);
	if (!PG_ARGISNULL(1))
		fav_hashset_add(&state->set, fav_hash_datum(kind, PG_GETARG_DATUM(1), state->params.seed), state->context);
	PG_RETURN_POINTER(state);
}

#define FAV_BASE_FUNCTION(suffix, kind) \
	extern PGDLLEXPORT Datum fav_base_##suffix(PG_FUNCTION_ARGS); \
	Datum fav_base_##suffix(PG_FUNCTION_ARGS) { return base_transition(fcinfo, kind); } \
	PG_FUNCTION_INFO_V1(fav_base_##suffix)

FAV_BASE_FUNCTION(int8, FAV_KIND_INTEGER);
FAV_BASE_FUNCTION(text, FAV_KIND_TEXT);
FAV_BASE_FUNCTION(uuid, FAV_KIND_UUID);
FAV_BASE_FUNCTION(bytea, FAV_KIND_BYTES);

Datum
fav_agg_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = fav_aggregate_context(fcinfo);
	AggState   *state = PG_ARGISNULL(0) ? NULL : (AggState *) PG_GETARG_POINTER(0);
	AggState   *other = PG_ARGISNULL(1) ? NULL : (AggState *) PG_GETARG_POINTER(1);

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	if (state == NULL)
	{
		state = new_state(context, &other->params);
		if (other->kept)
		{
			/* its memory stays the partial aggregate's, which outlives us (handover.h) */
			state->set = other->set;
			memset(&other->set, 0, sizeof(FavHashSet));
			PG_RETURN_POINTER(state);
		}
	}
	check_same_params(&state->params, &other->params);
	if (other->shared != NULL)
		fav_hashset_lend(&state->set, fav_take_shared(fcinfo, &other->shared->shared.where),
						 other->shared->shared.size, context);
	else if (other->stored != NULL)
		fav_hashset_merge(&state->set, other->stored, other->stored_size, context);
	else
		fav_hashset_unite(&state->set, &other->set, context);
	PG_RETURN_POINTER(state);
}

/* What goes through the executor. */
static Size
message_size(const Message *message, const AggState *state)
{
	return VARHDRSZ + sizeof(Message) + (message->how == SENT ? fav_hashset_stored_size(&state->set) : 0);
}

static void
write_message(const Message *message, const AggState *state, bytea *to)
{
	SET_VARSIZE(to, message_size(message, state));
	memcpy(VARDATA(to), message, sizeof(Message));
	if (message->how == SENT)
		fav_hashset_store(&state->set, (uint8_t *) VARDATA(to) + sizeof(Message));
}

static Size
sent_size(ExpandedObjectHeader *object)
{
	const SentState *sent = (const SentState *) object;

	return message_size(&sent->message, sent->state);
}

static void
write_sent(ExpandedObjectHeader *object, void *to, Size size pg_attribute_unused())
{
	const SentState *sent = (const SentState *) object;

	Assert(size == sent_size(object));
	write_message(&sent->message, sent->state, to);
}

static const ExpandedObjectMethods sent_methods = {sent_size, write_sent};

static Datum
send_expanded(const Message *message, AggState *state)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fav_agg", ALLOCSET_SMALL_SIZES);
	SentState  *sent = MemoryContextAlloc(context, sizeof(SentState));
	void	   *pointer = palloc(EXPANDED_POINTER_SIZE);

	EOH_init_header(&sent->header, &sent_methods, context);
	sent->state = state;
	sent->message = *message;

	/* before 16, what is not allocated here by itself would be copied, and so flattened */
	memcpy(pointer, sent->header.eoh_ro_ptr, EXPANDED_POINTER_SIZE);
	return PointerGetDatum(pointer);
}

/* Leave many hashes for the final aggregate, in this process or in shared memory, if possible. */
static void
leave(FunctionCallInfo fcinfo, AggState *state, Message *message)
{
	/* two aggregates may share a state, but only one can take it */
	state->kept = !state->sent && fav_goes_to_final(fcinfo);
	if (state->kept)
	{
		message->how = KEPT;
		message->kept = fav_keep_here(state, state->context);
	}
	else
	{
		size_t		size = fav_hashset_stored_size(&state->set);
		FavHashPart *part = fav_share(fcinfo, fav_part_offset() + size, &message->shared.where);

		if (part == NULL)
			return;
		fav_hashset_store(&state->set, fav_part_sent(part));
		message->shared.size = size;
		message->how = SHARED;
	}
}

Datum
fav_agg_serialize(PG_FUNCTION_ARGS)
{
	AggState   *state = (AggState *) PG_GETARG_POINTER(0);
	Message		message;
	bytea	   *result;

	fav_aggregate_context(fcinfo);
	fav_hashset_compact(&state->set);
	memset(&message, 0, sizeof(message));
	message.params = state->params;
	message.how = SENT;
	if (state->set.many != NULL)
		leave(fcinfo, state, &message);
	state->sent = true;
	if (message_size(&message, state) > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many elements for a parallel fav_agg"),
				 errhint("Set max_parallel_workers_per_gather to 0 for this query.")));
	if (state->set.many != NULL && message.how != SHARED)
		return send_expanded(&message, state);
	result = palloc(message_size(&message, state));
	write_message(&message, state, result);
	PG_RETURN_BYTEA_P(result);
}

/*
 * The state is for fav_agg_combine alone, which is called before the argument goes
 * away: its hashes stay in there.
 */
Datum
fav_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes;
	Size		size;
	Message		message;
	AggState   *state;

	fav_aggregate_context(fcinfo);
	if (VARATT_IS_EXTERNAL_EXPANDED(PG_GETARG_POINTER(0)))
	{
		ExpandedObjectHeader *object = DatumGetEOHP(PG_GETARG_DATUM(0));

		if (object->eoh_methods == &sent_methods)
			PG_RETURN_POINTER(((SentState *) object)->state);
	}
	bytes = PG_GETARG_BYTEA_PP(0);
	size = VARSIZE_ANY_EXHDR(bytes);
	if (size < sizeof(Message))
		elog(ERROR, "serialized state of fav_agg has %zu bytes", size);
	memcpy(&message, VARDATA_ANY(bytes), sizeof(Message));
	if (message.how == KEPT)
	{
		state = fav_find_here(message.kept);
		if (state == NULL)
			elog(ERROR, "state " UINT64_FORMAT " of fav_agg is not in this process", message.kept);
		elog(DEBUG2, "fav_agg: state " UINT64_FORMAT " was handed over", message.kept);
		PG_RETURN_POINTER(state);
	}
	state = palloc0(sizeof(AggState));
	state->params = message.params;
	if (message.how == SHARED)
	{
		Message    *shared = palloc(sizeof(Message));

		*shared = message;
		state->shared = shared;
		elog(DEBUG2, "fav_agg: %zu bytes of a worker are shared", message.shared.size);
		PG_RETURN_POINTER(state);
	}
	state->stored = (const uint8_t *) VARDATA_ANY(bytes) + sizeof(Message);
	state->stored_size = size - sizeof(Message);
	if (state->stored_size < sizeof(uint64))
		elog(ERROR, "serialized state of fav_agg has %zu bytes", size);
	PG_RETURN_POINTER(state);
}

/* Exactly what is needed, if it is not known better. */
static uint64
capacity_for(uint64 wanted, uint64 count)
{
	if (wanted > 0)
		return wanted;
	return count > FAV_RECENT_MAX ? count : FAV_DEFAULT_CAPACITY;
}

/* Leaves the state as good as it was: a window calls it again and again. */
Datum
fav_agg_final(PG_FUNCTION_ARGS)
{
	AggState   *state;
	FavEditor	editor;

	fav_aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (AggState *) PG_GETARG_POINTER(0);
	fav_hashset_build(&state->set, &state->params, capacity_for, &editor);
	return fav_finish_edit(&editor);
}

Datum
fav_base_final(PG_FUNCTION_ARGS)
{
	AggState   *state;
	FavParams	params;
	FavEditor	editor;

	fav_aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (AggState *) PG_GETARG_POINTER(0);

	/* The first slice of a chain gets half of its error rate: twice its share, then. */
	params = state->params;
	params.error_rate *= 2 * FAV_BASE_ERROR_SHARE;
	fav_hashset_build(&state->set, &params, capacity_for, &editor);
	editor.filter.params.error_rate = state->params.error_rate;
	return fav_finish_edit(&editor);
}
