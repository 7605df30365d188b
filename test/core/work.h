/*
 * work.h
 *		Counts work instead of time: the same on every machine, however busy.
 *
 * Sources that are compiled with WORK (see the Makefile) count one step per basic
 * block, that is, at least one per iteration of a loop, and one step per four bytes
 * that are copied or cleared.  A step takes about a nanosecond.
 */
#ifndef FAV_TEST_WORK_H
#define FAV_TEST_WORK_H

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

extern uint64_t work_done;

/*
 * When work_done reaches the limit, a longjmp returns to the code that set it, so that an
 * endless loop fails.  0: no limit.
 */
extern uint64_t work_limit;
extern jmp_buf work_exceeded;

extern void __sanitizer_cov_trace_pc(void);

#ifdef WORK_IS_COUNTED
#define memcpy(to, from, size)	(work_done += (size) / 64 * 16, memcpy(to, from, size))
#define memmove(to, from, size) (work_done += (size) / 64 * 16, memmove(to, from, size))
#define memset(to, byte, size)	(work_done += (size) / 64 * 16, memset(to, byte, size))
#endif

#endif							/* FAV_TEST_WORK_H */
