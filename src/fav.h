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
#define fav_input_error(fcinfo, ...) ereport(ERROR, __VA_ARGS__)
#endif

/* 14 put the compression method into the size field of a TOAST pointer. */
#if PG_VERSION_NUM < 140000
#define VARATT_EXTERNAL_GET_EXTSIZE(pointer) ((pointer).va_extsize)
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

/* 14 renamed the roles that come with the server, 16 the look at other sessions. */
#if PG_VERSION_NUM < 140000
#define ROLE_PG_READ_ALL_STATS DEFAULT_ROLE_READ_ALL_STATS
#endif
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

/* Since 19 a tuple descriptor has to be finished. */
#if PG_VERSION_NUM < 190000
#define TupleDescFinalize(descriptor) ((void) (descriptor))
#endif

/* The body of an SQL function: since 14 an expression whose dependencies PostgreSQL tracks. */
#if PG_VERSION_NUM >= 140000
#define FAV_SQL_BODY	"RETURN %s"
#else
#define FAV_SQL_BODY	"AS $fav$ SELECT %s $fav$"
#endif

/* The defaults of fav_new(), which are also the parameters of fav_add(NULL, ...). */
#define FAV_DEFAULT_CAPACITY	1000
#define FAV_DEFAULT_ERROR_RATE	0.01
#define FAV_DEFAULT_REGION_SIZE 7
#define FAV_DEFAULT_SEED		0

/* The number of elements that a long loop handles between two checks for interrupts. */
#define FAV_INTERRUPT_EVERY		4096

/* The hint of every error about a value that is too large. */
#define FAV_SPREAD_HINT \
	"Spread the elements over several rows, for example one for each remainder of the" \
	" element's hash."

/* fav.c */
pg_noreturn extern void fav_raise(FavStatus status);
pg_noreturn extern void fav_raise_corrupted(const FavProblem *problem);
extern FavParams fav_default_params(void);
extern void fav_check_params(const FavParams *params);
extern MemoryContext fav_aggregate_context(FunctionCallInfo fcinfo);

/* Begin the result of a function that returns rows. */
extern ReturnSetInfo *fav_return_rows(FunctionCallInfo fcinfo);

static inline void
fav_require(FavStatus status)
{
	if (unlikely(status != FAV_OK))
		fav_raise(status);
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
extern void fav_free_argument(FunctionCallInfo fcinfo, int number, FavArgument *argument);

/* Make a value from a filter. */
extern Datum fav_make_datum(const FavFilter *filter);

/* Make a value from the result of an editor, and close the editor. */
extern Datum fav_finish_edit(FavEditor *editor);

#endif							/* FAV_H */
