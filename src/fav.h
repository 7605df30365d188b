/*
 * fav.h
 *		The PostgreSQL side: the type as a varlena, errors, and the differences
 *		between server versions (all of them, only here).
 */
#ifndef FAV_H
#define FAV_H

#include "postgres.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/pg_list.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#include "core/editor.h"

/* Soft errors of input functions exist since 16. */
#if PG_VERSION_NUM >= 160000
#define fav_input_error(fcinfo, ...) ereturn((fcinfo)->context, (Datum) 0, __VA_ARGS__)
#else
#define fav_input_error(fcinfo, ...) \
	do { (void) (fcinfo); ereport(ERROR, __VA_ARGS__); } while (0)
#endif

/* 18 turned pg_attribute_noreturn() into a specifier. */
#ifndef pg_noreturn
#define pg_noreturn pg_attribute_noreturn()
#endif

/* 16 made one function of all ownership checks. */
#if PG_VERSION_NUM >= 160000
#define fav_owns_relation(relation, role) object_ownercheck(RelationRelationId, relation, role)
#else
#define fav_owns_relation(relation, role) pg_class_ownercheck(relation, role)
#endif

/* 16 renamed the look at other sessions. */
#if PG_VERSION_NUM < 160000
#define pgstat_get_local_beentry_by_index pgstat_fetch_stat_local_beentry
#endif

/*
 * Since 18 a support function can tell PL/pgSQL that a variable may be changed in place.  Older
 * servers never send the request; the struct only lets the code compile.
 */
#if PG_VERSION_NUM >= 180000
#define FAV_HAS_IN_PLACE	true
#else
#define FAV_HAS_IN_PLACE	false
#define T_SupportRequestModifyInPlace T_Invalid
typedef struct SupportRequestModifyInPlace
{
	NodeTag		type;
	List	   *args;
	int			paramid;
} SupportRequestModifyInPlace;
#endif

/* 17 put both halves of a virtual transaction ID together.  With storage/proc.h. */
#if PG_VERSION_NUM >= 170000
#define fav_local_transaction() (MyProc->vxid.lxid)
#else
#define fav_local_transaction() (MyProc->lxid)
#endif

/* Does this transaction hold this lock?  With storage/lock.h. */
#if PG_VERSION_NUM >= 170000
#define fav_is_lock_held(tag, mode) LockHeldByMe(tag, mode, false)
#else
#define fav_is_lock_held(tag, mode) LockHeldByMe(tag, mode)
#endif

/* Since 19 a tuple descriptor has to be finished. */
#if PG_VERSION_NUM < 190000
#define TupleDescFinalize(descriptor) ((void) (descriptor))
#endif

/* 16 moved the rights that a query needs out of its range table. */
#if PG_VERSION_NUM >= 160000
#define fav_selected_columns(item) ((item)->p_perminfo->selectedCols)
#define fav_set_permissions(query, state) ((query)->rteperminfos = (state)->p_rteperminfos)
#else
#define fav_selected_columns(item) ((item)->p_rte->selectedCols)
#define fav_set_permissions(query, state) ((void) 0)
#endif

/*
 * Before 18, PostgreSQL recognizes an expression of GROUP BY in other places only if it is equal
 * to it after planning, which two sub-selects never are.
 */
#if PG_VERSION_NUM >= 180000
#define FAV_SUB_SELECTS_GROUP	true
#else
#define FAV_SUB_SELECTS_GROUP	false
#endif

/* 17 estimates arrays of columns by their statistics.  With utils/selfuncs.h. */
#if PG_VERSION_NUM >= 170000
#define fav_estimate_array_length(root, array) estimate_array_length(root, array)
#else
#define fav_estimate_array_length(root, array) estimate_array_length(array)
#endif

/* VARATT_EXTERNAL_IS_COMPRESSED compares signed and unsigned numbers before 19. */
static inline bool
fav_is_compressed(struct varatt_external pointer)
{
	return VARATT_EXTERNAL_GET_EXTSIZE(pointer) < (uint32) (pointer.va_rawsize - VARHDRSZ);
}

/* The number of elements that a long loop handles between two checks for interrupts. */
#define FAV_INTERRUPT_EVERY		4096

/* The hint of every error about a value that is too large. */
#define FAV_SPREAD_HINT \
	"Spread the elements over several rows, for example one for each remainder of the" \
	" element's hash."

/* Define a function that SQL calls. */
#define FAV_FUNCTION(name, call) \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	Datum name(PG_FUNCTION_ARGS) { return call; } \
	PG_FUNCTION_INFO_V1(name)

/* fav.c */
pg_noreturn extern void fav_raise(FavStatus status);
pg_noreturn extern void fav_raise_corrupted(const FavProblem *problem);
extern FavParams fav_default_params(void);
extern void fav_check_params(const FavParams *params);

/* A capacity that is an argument, which must be positive. */
extern uint64 fav_get_capacity(FunctionCallInfo fcinfo, int number);

/*
 * For aggregates: the memory context of their states; memory for a serialized state of `size`
 * bytes, with an error that names the aggregate and what it has too many of; and the error about
 * a state that is none.
 */
extern MemoryContext fav_aggregate_context(FunctionCallInfo fcinfo);
extern struct varlena *fav_allocate_state(Size size, const char *aggregate, const char *items);
pg_noreturn extern void fav_raise_invalid_state(const char *aggregate, const char *problem);

/* The arguments of a call of a function or an operator; NIL if this is none. */
extern List *fav_arguments_of(Node *call);

/*
 * The schema of the extension, which is that of the function that is being called; a type there,
 * and a function with exactly these argument types, because anybody may add overloads.  InvalidOid
 * if there is none.
 */
extern Oid	fav_schema_of_function(FunctionCallInfo fcinfo);
extern Oid	fav_find_type(Oid schema, const char *name);
extern Oid	fav_find_function(Oid schema, const char *name, int nargs, const Oid *types);

/* Begin the result of a function that returns rows; the result of one that returns a row. */
extern ReturnSetInfo *fav_return_rows(FunctionCallInfo fcinfo);
extern Datum fav_return_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls);

/* Return an argument, which may be NULL, as the result. */
static inline Datum
fav_return_argument(FunctionCallInfo fcinfo, int number)
{
	fcinfo->isnull = PG_ARGISNULL(number);
	return PG_GETARG_DATUM(number);
}

/* Raise an error if an argument, or one of several, is NULL. */
extern void fav_refuse_null(bool is_null, const char *names);

/* Memory for a value of `size` bytes, which are yet to be set. */
extern struct varlena *fav_allocate_value(size_t size);

static inline void
fav_require(FavStatus status)
{
	if (unlikely(status != FAV_OK))
		fav_raise(status);
}

/*
 * Open a value of `size` bytes, of which `available` are here.  The server has checked it when it
 * came in, so anything wrong is corruption.
 */
static inline void
fav_require_open(FavFilter *filter, const void *bytes, size_t available, size_t size)
{
	FavProblem	problem;

	if (unlikely(fav_open(filter, bytes, available, size, &problem) != FAV_OK))
		fav_raise_corrupted(&problem);
}

/* Open a value that is here completely.  The filter points into it. */
static inline void
fav_open_flat(FavFilter *filter, const struct varlena *value)
{
	size_t		size = VARSIZE_ANY_EXHDR(value);

	fav_require_open(filter, VARDATA_ANY(value), size, size);
}

/*
 * An argument that is detoasted completely and opened.  `filter` points into `datum`.  `datum`
 * is the argument itself if that is not toasted.
 */
typedef struct FavArgument
{
	struct varlena *datum;
	FavFilter	filter;
} FavArgument;

extern void fav_get_argument(FunctionCallInfo fcinfo, int number, FavArgument *argument);

/* The short form of the empty filter; and is a value that? */
extern Datum fav_make_short(void);

static inline bool
fav_is_short_value(Datum value)
{
	struct varlena *bytes = (struct varlena *) DatumGetPointer(value);

	/* a value of one byte is never out of line or compressed */
	return !VARATT_IS_EXTERNAL(bytes) && !VARATT_IS_COMPRESSED(bytes) &&
		fav_is_short((const uint8_t *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}

/* Edit a value that is here completely, or the empty filter if it is NULL. */
extern void fav_begin_edit(FavEditor *editor, const struct varlena *value);

/* Make a value from the result of an editor, and close the editor. */
extern Datum fav_finish_edit(FavEditor *editor);

#endif							/* FAV_H */
