/*
 * work.h
 *		Work, counted instead of timed: the same on every machine, however busy.
 *
 * Sources that are compiled with WORK (see the Makefile) count a step for every
 * basic block they run through, that is, at least one for each turn of a loop; and
 * as they copy or clear memory by a call, one for four bytes.  A step is about a
 * nanosecond.
 */
#ifndef FAV_TEST_WORK_H
#define FAV_TEST_WORK_H

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

extern uint64_t work_done;

/*
 * Whoever sets a limit is left to by a longjmp when work_done reaches it: what
 * takes for ever fails, and does not take for ever.  0: none.
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
