/*
 * golden.c
 *		libfav gives the answers and the bytes of the server.
 *
 * Usage: golden expected/golden.out.  sql/golden.sql describes the lines.
 */
#include "check.h"

#define MAX_FILTERS	64
#define MAX_FIELDS	12
#define PROBES		1000000

typedef struct Golden
{
	const char *name;
	libfav_kind kind;
	uint8_t    *bytes;
	size_t		size;
} Golden;

static Golden goldens[MAX_FILTERS];
static int	ngoldens;

static libfav_kind
kind_from(const char *name)
{
	static const char *const names[] = {"", "bigint", "text", "uuid", "bytea", "pair"};
	int			kind = LIBFAV_PAIR;

	while (kind > 0 && strcmp(name, names[kind]) != 0)
		kind--;
	return (libfav_kind) kind;
}

/* Bytes from hexadecimal digits, followed by a zero. */
static uint8_t *
from_hex(const char *digits, size_t *size)
{
	uint8_t    *bytes = malloc(strlen(digits) / 2 + 1);

	for (*size = 0; digits[2 * *size] != '\0'; ++*size)
	{
		char		pair[3] = {digits[2 * *size], digits[2 * *size + 1], '\0'};

		bytes[*size] = (uint8_t) strtoul(pair, NULL, 16);
	}
	bytes[*size] = '\0';
	return bytes;
}

/* Element i of a kind; `memory` is for its bytes. */
static libfav_element
element_of(libfav_kind kind, int64_t i, char memory[32])
{
	int			at;

	if (kind == LIBFAV_INTEGER)
		return libfav_integer(i);
	if (kind == LIBFAV_PAIR)
		return libfav_pair(i, 3 * i);
	if (kind == LIBFAV_TEXT)
	{
		snprintf(memory, 32, "post %lld", (long long) i);
		return libfav_text(memory);
	}
	memset(memory, 0, 16);
	for (at = 0; at < 8; at++)
		memory[(kind == LIBFAV_UUID ? 15 : 7) - at] = (char) (i >> 8 * at);
	return kind == LIBFAV_UUID ? libfav_uuid(memory) : libfav_bytes(memory, 8);
}

static const Golden *
find(const char *name)
{
	int			i = 0;

	while (strcmp(goldens[i].name, name) != 0)
		if (++i == ngoldens)
		{
			printf("no filter \"%s\"\n", name);
			exit(1);
		}
	return &goldens[i];
}

static libfav *
open_golden(const Golden *golden)
{
	libfav	   *filter = libfav_new(NULL);
	libfav_error error = {""};

	TEST(libfav_open(filter, golden->bytes, golden->size, &error) == LIBFAV_OK, "%s: %s",
		 golden->name, error.message);
	return filter;
}

/* Does the filter have these bytes? */
static bool
has_bytes(libfav *filter, const uint8_t *bytes, size_t size)
{
	const void *written;
	size_t		written_size;

	return libfav_write(filter, &written, &written_size, NULL) == LIBFAV_OK &&
		written_size == size && memcmp(written, bytes, size) == 0;
}

static void
test_filter(char **fields)
{
	Golden	   *golden = &goldens[ngoldens++];
	libfav	   *filter;
	int64_t		wrong = 0;
	int64_t		i;

	golden->name = fields[1];
	golden->kind = kind_from(fields[2]);
	golden->bytes = from_hex(fields[5], &golden->size);
	filter = open_golden(golden);
	TEST(libfav_get_info(filter).count == strtoull(fields[3], NULL, 10), "%s: count", fields[1]);
	for (i = 0; fields[4][i] != '\0'; i++)
	{
		char		memory[32];
		libfav_element element = element_of(golden->kind, i + 1, memory);
		bool		answer = false;

		if (libfav_contains(filter, &element, 1, &answer, NULL) != LIBFAV_OK ||
			answer != (fields[4][i] == '1'))
			wrong++;
	}
	TEST(wrong == 0, "%s: %lld wrong answers", fields[1], (long long) wrong);
	TEST(has_bytes(filter, golden->bytes, golden->size), "%s: bytes", fields[1]);
	libfav_free(filter);
}

static void
test_ask(char **fields)
{
	libfav	   *filter = open_golden(find(fields[1]));
	libfav_kind kind = kind_from(fields[2]);
	size_t		size;
	char	   *text = (char *) from_hex(fields[3], &size);
	libfav_element element = libfav_text(text);
	uint8_t    *bytes = NULL;
	char		memory[32];
	bool		answer = false;
	const char *result;
	libfav_error error = {""};

	if (kind == LIBFAV_INTEGER || kind == LIBFAV_PAIR)
		element = element_of(kind, strtoll(text, NULL, 10), memory);
	else if (kind == LIBFAV_UUID)
		element = element_of(kind, 2, memory);
	else if (kind == LIBFAV_BYTES)
	{
		bytes = from_hex(text + 2, &size);
		element = libfav_bytes(bytes, size);
	}
	switch (libfav_contains(filter, &element, 1, &answer, &error))
	{
		case LIBFAV_OK:
			result = answer ? "t" : "f";
			break;
		case LIBFAV_OTHER_KIND:
			result = "42804";
			break;
		case LIBFAV_BAD_ELEMENT:
			/* the server tells apart what is no integer and what is too large */
			result = strcmp(fields[4], "22003") == 0 ? "22003" : "22P02";
			break;
		default:
			result = error.message;
	}
	TEST(strcmp(result, fields[4]) == 0, "%s asked for %s %s: %s, not %s", fields[1], fields[2],
		 text, result, fields[4]);
	free(text);
	free(bytes);
	libfav_free(filter);
}

typedef libfav_status (*Change) (libfav *filter, const libfav_element *elements, size_t count,
								 libfav_error *error);

static void
change(libfav *filter, Change function, int64_t first, int64_t last, int64_t step)
{
	size_t		count = (size_t) ((last - first) / step + 1);
	libfav_element *elements = malloc(count * sizeof(libfav_element));
	libfav_error error = {""};
	size_t		i;

	for (i = 0; i < count; i++)
		elements[i] = libfav_integer(first + (int64_t) i * step);
	TEST(function(filter, elements, count, &error) == LIBFAV_OK, "%s", error.message);
	free(elements);
}

static void
test_edit(char **fields)
{
	libfav	   *filter = open_golden(find(fields[1]));
	size_t		size;
	uint8_t    *bytes = from_hex(fields[2], &size);

	change(filter, libfav_add, 650, 900, 1);
	change(filter, libfav_remove, 10, 120, 1);
	change(filter, libfav_exclude, 700, 720, 1);
	TEST(has_bytes(filter, bytes, size), "%s: bytes after an edit", fields[1]);
	free(bytes);
	libfav_free(filter);
}

static void
test_union(char **fields)
{
	libfav	   *filter = open_golden(find(fields[1]));
	libfav	   *other = open_golden(find(fields[2]));
	libfav_error error = {""};
	size_t		size;
	uint8_t    *bytes = from_hex(fields[3], &size);

	TEST(libfav_union(filter, other, &error) == LIBFAV_OK, "%s", error.message);
	TEST(has_bytes(filter, bytes, size), "%s: bytes after a union with %s", fields[1], fields[2]);
	free(bytes);
	libfav_free(other);
	libfav_free(filter);
}

/* A filter whose byte at `position` is another, or of which only `size` bytes are there. */
static void
test_damaged(const Golden *golden, const char *position, const char *byte, size_t size,
			 const char *problem)
{
	/* just as much memory, so that a sanitizer sees a read behind it */
	uint8_t    *bytes = malloc(size > 0 ? size : 1);
	libfav	   *filter = libfav_new(NULL);
	libfav_error error = {"not a fav value: valid"};

	memcpy(bytes, golden->bytes, size);
	if (position != NULL)
		bytes[atoi(position)] = (uint8_t) atoi(byte);
	libfav_open(filter, bytes, size, &error);
	free(bytes);
	TEST(strncmp(error.message, "not a fav value: ", 17) == 0 &&
		 strcmp(error.message + 17, problem) == 0, "%s, damaged: \"%s\", not \"%s\"", golden->name,
		 error.message, problem);
	libfav_free(filter);
}

static void
test_large(char **fields)
{
	libfav	   *filter = libfav_new(NULL);
	libfav_params params = libfav_defaults();
	libfav_element *elements = malloc(PROBES * sizeof(libfav_element));
	bool	   *answers = malloc(PROBES);
	int64_t		n = atoll(fields[1]);
	const void *written = NULL;
	size_t		size = 0;
	uint64_t	sums[3] = {0, 0, 0};
	int64_t		i;

	params.capacity = strtoull(fields[2], NULL, 10);
	params.error_rate = atof(fields[3]);
	params.region_size = (uint32_t) atoi(fields[4]);
	params.seed = atoll(fields[5]);
	for (i = 0; i < n; i++)
		elements[i] = libfav_integer(2 * (n - i));
	if (params.capacity == 0)
		TEST(libfav_build(filter, &params, elements, (size_t) n, NULL) == LIBFAV_OK, "build");
	else
	{
		TEST(libfav_reset(filter, &params, NULL) == LIBFAV_OK, "new");
		change(filter, libfav_add, 2, 2 * n, 2);
	}
	libfav_write(filter, &written, &size, NULL);
	for (i = 0; i < (int64_t) size; i++)
		sums[0] += (uint64_t) ((const uint8_t *) written)[i] * (uint64_t) (i % 65521);
	for (i = 0; i < PROBES; i++)
		elements[i] = libfav_integer(i + 1);
	TEST(libfav_contains(filter, elements, PROBES, answers, NULL) == LIBFAV_OK, "contains");
	for (i = 0; i < PROBES; i++)
		if (answers[i])
		{
			sums[1]++;
			sums[2] += (uint64_t) i + 1;
		}
	TEST(libfav_get_info(filter).count == strtoull(fields[6], NULL, 10), "%s elements: count",
		 fields[1]);
	TEST(size == strtoull(fields[7], NULL, 10) && sums[0] == strtoull(fields[8], NULL, 10),
		 "%s elements: bytes", fields[1]);
	TEST(sums[1] == strtoull(fields[9], NULL, 10) && sums[2] == strtoull(fields[10], NULL, 10),
		 "%s elements: answers", fields[1]);
	free(elements);
	free(answers);
	libfav_free(filter);
}

static void
test_line(char *line)
{
	char	   *fields[MAX_FIELDS];
	int			count = 0;

	for (; line != NULL && count < MAX_FIELDS; count++)
	{
		fields[count] = line;
		line = strchr(line, '|');
		if (line != NULL)
			*line++ = '\0';
	}
	if (strcmp(fields[0], "filter") == 0 && count == 6)
		test_filter(fields);
	else if (strcmp(fields[0], "ask") == 0 && count == 5)
		test_ask(fields);
	else if (strcmp(fields[0], "edit") == 0 && count == 3)
		test_edit(fields);
	else if (strcmp(fields[0], "union") == 0 && count == 4)
		test_union(fields);
	else if (strcmp(fields[0], "damaged") == 0 && count == 5)
		test_damaged(find(fields[1]), fields[2], fields[3], find(fields[1])->size, fields[4]);
	else if (strcmp(fields[0], "cut") == 0 && count == 4)
		test_damaged(find(fields[1]), NULL, NULL, (size_t) atoi(fields[2]), fields[3]);
	else if (strcmp(fields[0], "large") == 0 && count == 11)
		test_large(fields);
}

int
main(int argc, char **argv)
{
	size_t		size;
	char	   *text;
	char	   *line;
	int			i;

	if (argc != 2)
		return 2;
	text = (char *) read_file(argv[1], &size);
	for (line = text; line != NULL;)
	{
		char	   *next = strchr(line, '\n');

		if (next != NULL)
			*next++ = '\0';
		test_line(line);
		line = next;
	}
	for (i = 0; i < ngoldens; i++)
		free(goldens[i].bytes);
	free(text);
	return summary("golden");
}
