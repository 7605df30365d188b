/*
 * room.h
 *		Which slice takes the next element.
 *
 * A slice is full when its fill reaches bits_limit: its blocks then err, on
 * average, as much as it was sized for.  Where the blocks are few the average is
 * not worth much: one that happens to be fuller than the others errs several times
 * as much as they do.  So a small slice is also full when its error, computed from
 * its bits, reaches what it was sized for.
 */
#ifndef FAV_ROOM_H
#define FAV_ROOM_H

#include "slice.h"

/* With so many blocks and fewer a slice is small. */
#define FAV_SMALL_SLICE		128

typedef struct FavGauge
{
	bool		watched;		/* small, and not full by its fill */
	double		allowed;		/* sum of the errors of its blocks, at most */
	double		sum;
	double		errors[FAV_SMALL_SLICE];	/* of each block */
} FavGauge;

typedef struct FavRoom
{
	FavGauge	gauges[FAV_MAX_SLICES];
} FavRoom;

/* Look at slice i, before inserts into it. */
extern void fav_room_watch(FavRoom *room, const FavFilter *filter, uint32_t i);

/* The slice with the most room; false if all are full. */
extern bool fav_room_choose(const FavRoom *room, const FavFilter *filter, uint32_t *chosen);

/* The hash was inserted into slice i. */
extern void fav_room_inserted(FavRoom *room, const FavFilter *filter, uint32_t i, uint64_t hash);

/* Does the small slice i err no more than one in ten above what it was sized for? */
extern bool fav_room_error_fits(const FavFilter *filter, uint32_t i);

/* How many elements fit for certain. */
extern uint64_t fav_room_certain(const FavRoom *room, const FavFilter *filter);

#endif							/* FAV_ROOM_H */
