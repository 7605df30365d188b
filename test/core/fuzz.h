/*
 * fuzz.h
 *		Code that the fuzz targets share.
 *
 * Each target is one function.  With FUZZ_ALONE it is the entry point of libFuzzer.
 * Without, all targets are linked into replay, which runs them on the corpus.
 */
#ifndef FAV_TEST_FUZZ_H
#define FAV_TEST_FUZZ_H

#include "harness.h"

/* Unlike CHECK, this ends the program: libFuzzer keeps the input then. */
#define REQUIRE(condition) \
	((condition) ? (void) 0 : fuzz_failed(__FILE__, __LINE__, #condition))

static inline void
fuzz_failed(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
	abort();
}

/* Arbitrary bytes as a value. */
extern void fuzz_open(const uint8_t *data, size_t size);

/* A value or parameters, then operations; fuzz_ops.c describes the bytes. */
extern void fuzz_ops(const uint8_t *data, size_t size);

/* Arbitrary bytes as a bounded set, which is then edited. */
extern void fuzz_bounded(const uint8_t *data, size_t size);

#ifdef FUZZ_ALONE
extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_TARGET(function) \
int \
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) \
{ \
	function(data, size); \
	return 0; \
}
#else
#define FUZZ_TARGET(function)
#endif

#endif							/* FAV_TEST_FUZZ_H */
