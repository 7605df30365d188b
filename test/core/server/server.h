/*
 * server.h
 *		As much of PostgreSQL as hashset.c and hashpart.c need, to be compiled without.
 *		Stands in for fav.h (the Makefile defines FAV_H) and for the headers
 *		in this folder.
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
typedef uint32_t uint32;
typedef uint16_t uint16;
typedef size_t Size;
typedef void *MemoryContext;

#define CurrentMemoryContext	NULL
#define Assert(condition)		((condition) ? (void) 0 : abort())
#define Max(a, b)				((a) > (b) ? (a) : (b))
#define Min(a, b)				((a) < (b) ? (a) : (b))
#define likely(condition)		(condition)
#define unlikely(condition)		(condition)
#define CHECK_FOR_INTERRUPTS()	fav_pause()
#define lengthof(array)			(sizeof(array) / sizeof((array)[0]))
#define elog(level, ...)		abort()
#define FLEXIBLE_ARRAY_MEMBER

#define MemoryContextAlloc(context, size)		((void) (context), server_alloc(size))
#define MemoryContextAllocHuge(context, size)	((void) (context), server_alloc(size))
#define MemoryContextAllocZero(context, size)	((void) (context), memset(server_alloc(size), 0, size))
#define palloc(size)							server_alloc(size)
#define palloc0(size)							memset(server_alloc(size), 0, size)
#define repalloc(memory, size)					server_realloc(memory, size)
#define repalloc_huge(memory, size)				server_realloc(memory, size)
#define pfree(memory)							fav_free(memory)

#define fav_require(status)						Assert((status) == FAV_OK)

/* Never NULL, as in the server. */
extern void *server_alloc(size_t size);
extern void *server_realloc(void *memory, size_t size);

#endif							/* FAV_TEST_SERVER_H */
