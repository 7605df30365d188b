/*
 * work.c
 *		See work.h.
 */
#include "work.h"

uint64_t	work_done;
uint64_t	work_limit;
jmp_buf		work_exceeded;

/* The compiler puts a call of this into every basic block. */
void
__sanitizer_cov_trace_pc(void)
{
	if (++work_done >= work_limit && work_limit > 0)
	{
		work_limit = 0;
		longjmp(work_exceeded, 1);
	}
}
