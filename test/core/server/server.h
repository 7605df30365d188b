/*
 * server.h
 *		The part of PostgreSQL that hashset.c needs, to compile it without the
 *		server.  Replaces fav.h (the Makefile defines FAV_H) and the headers in this
 *		folder.
 */
#ifndef FAV_TEST_SERVER_H
#define FAV_TEST_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "editor.h"

typedef uint64_t uint64;
typedef void *MemoryContext;

#define CurrentMemoryContext	NULL
#define Min(a, b)				((a) < (b) ? (a) : (b))
#define Max(a, b)				((a) > (b) ? (a) : (b))
#define unlikely(condition)		(condition)
#define CHECK_FOR_INTERRUPTS()	fav_pause()

#define MemoryContextAlloc(context, size)		((void) (context), server_alloc(size))
#define MemoryContextAllocHuge(context, size)	((void) (context), server_alloc(size))
#define repalloc_huge(memory, size)				server_realloc(memory, size)
#define pfree(memory)							fav_free(memory)

/* Never returns NULL, as in the server. */
extern void *server_alloc(size_t size);
extern void *server_realloc(void *memory, size_t size);

#endif							/* FAV_TEST_SERVER_H */
