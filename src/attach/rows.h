/*
 * rows.h
 *		The row of a filter in its levels table.
 */
#ifndef FAV_ROWS_H
#define FAV_ROWS_H

#include "attach/attachment.h"
#include "toast_cache.h"

#include "storage/itemptr.h"

typedef struct FavRowLevel
{
	Datum		value;
	FavKind		kind;			/* an empty level does not know it */
	FavReader  *reader;			/* NULL: not opened yet */
} FavRowLevel;

typedef struct FavRow
{
	FavAttachment *attachment;
	Datum		key;			/* of the filter */
	bool		is_locked;
	bool		is_built_anew;	/* whatever its levels are: they may be damaged */
	ItemPointerData tid;		/* where the version is that was read, */
	TransactionId xmin;			/* and who has written it */
	FavFilter	recent;
	FavRowLevel base;
	FavRowLevel middle;
	Datum		log[FAV_LOG_PARTS]; /* of a sink */
} FavRow;

/* The levels to write. */
typedef struct FavWritten
{
	Datum		recent;
	Datum		middle;
	Datum		base;
	Datum		log;			/* one part of it, */
	int			part;			/* and its number, from 0 */
} FavWritten;

extern bool fav_read_row(FavRow *row);
extern FavReader *fav_open_level(FavRowLevel *level);
extern void fav_forget_below_recent(FavRow *row, int32 period);
extern bool fav_row_reports_below_recent(FavRow *row, uint64_t hash);
extern void fav_edit_level(const FavAttachment *attachment, FavReader *level, double error_share,
						   uint64 capacity, FavEditor *editor);
extern bool fav_write_row(FavRow *row, FavQuery query, const FavWritten *written);
pg_noreturn extern void fav_raise_not_written(const FavAttachment *attachment);
extern void fav_count_try(const FavAttachment *attachment, int *tries);

#endif							/* FAV_ROWS_H */
