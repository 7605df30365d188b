/*
 * check.h
 *		Code that the tests of libfav share: counting, and reading the golden values.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "libfav.h"

static unsigned passed;
static unsigned failed;

/* One test. */
#define TEST(condition, ...) \
	((condition) ? (void) passed++ : (void) (failed++, printf("%s:%d: ", __FILE__, __LINE__), \
											 printf(__VA_ARGS__), printf("\n")))

static inline int
summary(const char *program)
{
	printf("%s: %u passed, %u failed\n", program, passed, failed);
	return failed == 0 && passed > 0 ? 0 : 1;
}

/* A whole file; aborts if there is none. */
static inline uint8_t *
read_file(const char *path, size_t *size)
{
	FILE	   *file = fopen(path, "rb");
	uint8_t    *bytes = NULL;
	size_t		allocated = 0;
	size_t		got;

	*size = 0;
	if (file == NULL)
	{
		perror(path);
		exit(1);
	}
	do
	{
		allocated += 65536;
		bytes = realloc(bytes, allocated + 1);
		got = fread(bytes + *size, 1, allocated - *size, file);
		*size += got;
	}
	while (got > 0 && *size == allocated);
	fclose(file);
	bytes[*size] = '\0';
	return bytes;
}

#endif							/* CHECK_H */
