/*
 * experiments.c
 *		The experiments of the works that fav builds on; docs/internals/EXPERIMENTS.md is about them.
 *
 *		experiments [file with one word per line ...]
 *
 * prints lines of tab separated fields: experiment, series, x, values.  Ends with an error if
 * an element is lost, or a deleted one is present right after its delete.
 *
 * "Plain" is a Bloom filter with a bit per region that marks collisions, in which a delete
 * clears what it can: a deletable Bloom filter, and the FAV filter as its inventors have it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "editor.h"

#define ELEMENTS	100000

void *
fav_alloc(size_t size)
{
	return malloc(size);
}

void
fav_free(void *memory)
{
	free(memory);
}

void
fav_pause(void)
{
}

static void
must(bool right, const char *what)
{
	if (!right)
	{
		fprintf(stderr, "experiments: %s\n", what);
		exit(1);
	}
}

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* ------------------------------------------------------------------------------------
 * The plain filter
 * ------------------------------------------------------------------------------------ */

typedef struct Plain
{
	uint8_t    *bits;
	uint8_t    *marks;			/* one per region */
	uint64_t	nbits;
	uint32_t	region_size;
	uint32_t	k;
} Plain;

static void
plain_new(Plain *plain, uint64_t nbits, uint32_t region_size, uint32_t k)
{
	*plain = (Plain) {.nbits = nbits, .region_size = region_size, .k = k};
	plain->bits = calloc(nbits, 1);
	plain->marks = calloc(nbits / region_size + 1, 1);
	must(plain->bits != NULL && plain->marks != NULL, "out of memory");
}

static uint64_t
plain_bit(const Plain *plain, uint64_t hash, uint32_t i)
{
	return fav_hash_pair((int64_t) hash, i, 0) % plain->nbits;
}

static void
plain_add(Plain *plain, uint64_t hash)
{
	uint32_t	i;

	for (i = 0; i < plain->k; i++)
	{
		uint64_t	bit = plain_bit(plain, hash, i);

		if (plain->bits[bit])
			plain->marks[bit / plain->region_size] = 1;
		plain->bits[bit] = 1;
	}
}

static void
plain_remove(Plain *plain, uint64_t hash)
{
	uint32_t	i;

	for (i = 0; i < plain->k; i++)
	{
		uint64_t	bit = plain_bit(plain, hash, i);

		if (!plain->marks[bit / plain->region_size])
			plain->bits[bit] = 0;
	}
}

static bool
plain_contains(const Plain *plain, uint64_t hash)
{
	uint32_t	i;

	for (i = 0; i < plain->k; i++)
		if (!plain->bits[plain_bit(plain, hash, i)])
			return false;
	return true;
}

/*
 * Fill to capacity, delete a tenth, probe for the deleted: in %, how many are still present, and
 * how many are present that were never added.
 */
static void
plain_protocol(const char *series, double bits_per_element, uint32_t region_size, uint32_t k)
{
	/* the marks are part of the space */
	double		data = bits_per_element * region_size / (region_size + 1);
	uint64_t	present = 0;
	uint64_t	wrong = 0;
	uint64_t	i;
	Plain		plain;

	plain_new(&plain, (uint64_t) (data * ELEMENTS), region_size, k);
	for (i = 0; i < ELEMENTS; i++)
		plain_add(&plain, fav_hash_integer((int64_t) i, 0));
	for (i = 0; i < ELEMENTS; i++)
		wrong += plain_contains(&plain, fav_hash_integer(-1 - (int64_t) i, 0));
	for (i = 0; i < ELEMENTS / 10; i++)
		plain_remove(&plain, fav_hash_integer((int64_t) i, 0));
	for (i = 0; i < ELEMENTS / 10; i++)
		present += plain_contains(&plain, fav_hash_integer((int64_t) i, 0));
	for (; i < ELEMENTS; i++)
		must(plain_contains(&plain, fav_hash_integer((int64_t) i, 0)), "the plain filter lost one");
	printf("plain\t%s\t%g\t%u\t%u\t%.3f\t%.3f\n", series, bits_per_element, region_size, k,
		   100.0 * (double) present / (ELEMENTS / 10), 100.0 * (double) wrong / ELEMENTS);
	free(plain.bits);
	free(plain.marks);
}

/* ------------------------------------------------------------------------------------
 * fav
 * ------------------------------------------------------------------------------------ */

static void
start(FavEditor *editor, uint64_t capacity, double error_rate, uint32_t region_size, FavKind kind)
{
	FavParams	params = {.capacity = capacity, .kind = kind, .error_rate = error_rate,
	.region_size = region_size};

	fav_editor_new(editor, &params);
}

static const FavFilter *
finish(FavEditor *editor)
{
	const FavFilter *filter;

	must(fav_editor_finish(editor, &filter) == FAV_OK, "not finished");
	return filter;
}

static void
add(FavEditor *editor, uint64_t hash)
{
	must(fav_editor_add(editor, hash) == FAV_OK, "not added");
}

static void
del(FavEditor *editor, uint64_t hash)
{
	must(fav_editor_remove(editor, hash) == FAV_OK, "not deleted");
	must(!fav_editor_contains(editor, hash), "a delete does not hold");
}

/* The same protocol with fav, for one region size. */
static void
protocol(uint32_t region_size)
{
	uint64_t	present = 0;
	uint64_t	wrong = 0;
	uint64_t	full;
	FavEditor	editor;
	const FavFilter *filter;
	uint64_t	i;

	start(&editor, ELEMENTS, 0.01, region_size, FAV_KIND_INTEGER);
	for (i = 0; i < ELEMENTS; i++)
		add(&editor, fav_hash_integer((int64_t) i, 0));
	filter = finish(&editor);
	full = fav_size(filter);
	for (i = 0; i < ELEMENTS; i++)
		wrong += fav_contains(filter, fav_hash_integer(-1 - (int64_t) i, 0));
	for (i = 0; i < ELEMENTS / 10; i++)
		del(&editor, fav_hash_integer((int64_t) i, 0));
	filter = finish(&editor);
	for (i = 0; i < ELEMENTS / 10; i++)
		present += fav_contains(filter, fav_hash_integer((int64_t) i, 0));
	for (; i < ELEMENTS; i++)
		must(fav_contains(filter, fav_hash_integer((int64_t) i, 0)), "an element is lost");
	printf("fav\tregion\t%u\t%.2f\t%.2f\t%.2f\t%.3f\t%.3f\n", region_size,
		   8.0 * (double) full / ELEMENTS, 8.0 * (double) fav_size(filter) / (ELEMENTS * 9 / 10),
		   100.0 * filter->ntombstones / (ELEMENTS / 10), 100.0 * (double) present / (ELEMENTS / 10),
		   100.0 * (double) wrong / ELEMENTS);
	fav_editor_close(&editor);
}

/* ------------------------------------------------------------------------------------
 * dablooms' word test
 * ------------------------------------------------------------------------------------ */

static uint64_t
word_hash(const char *word)
{
	return fav_hash_bytes(FAV_KIND_TEXT, word, strlen(word), 0);
}

/*
 * 5 %, made for 100,000.  First: add all words, delete every fifth, probe for all.  Second: add
 * every other word, probe for the others.
 */
static void
words(char **word, size_t count)
{
	uint64_t	wrong = 0;
	uint64_t	lost = 0;
	uint64_t	probes = 0;
	FavEditor	editor;
	const FavFilter *filter;
	size_t		i;

	start(&editor, 100000, 0.05, 7, FAV_KIND_TEXT);
	for (i = 0; i < count; i++)
		add(&editor, word_hash(word[i]));
	for (i = 0; i < count; i += 5)
		del(&editor, word_hash(word[i]));
	filter = finish(&editor);
	for (i = 0; i < count; i++)
	{
		bool		present = fav_contains(filter, word_hash(word[i]));

		if (i % 5 == 0)
			wrong += present, probes++;
		else
			lost += !present;
	}
	printf("words\tevery fifth removed\t%zu\t%llu\t%llu\t%.3f\t%.0f\n", count,
		   (unsigned long long) lost, (unsigned long long) wrong, 100.0 * (double) wrong / (double) probes,
		   (double) fav_size(filter) / 1024);
	must(lost == 0, "a word is lost");
	fav_editor_close(&editor);

	start(&editor, 100000, 0.05, 7, FAV_KIND_TEXT);
	for (i = 0; i < count; i += 2)
		add(&editor, word_hash(word[i]));
	filter = finish(&editor);
	for (i = 0; i < count; i += 2)
		lost += !fav_contains(filter, word_hash(word[i]));
	for (i = 1, wrong = 0, probes = 0; i < count; i += 2, probes++)
		wrong += fav_contains(filter, word_hash(word[i]));
	printf("words\tevery other added\t%zu\t%llu\t%llu\t%.3f\t%.0f\n", count,
		   (unsigned long long) lost, (unsigned long long) wrong, 100.0 * (double) wrong / (double) probes,
		   (double) fav_size(filter) / 1024);
	must(lost == 0, "a word is lost");
	fav_editor_close(&editor);
}

static void
words_of_file(const char *name)
{
	FILE	   *file = fopen(name, "r");
	char	  **word = NULL;
	size_t		count = 0;
	size_t		space = 0;
	char	   *line = NULL;
	size_t		length = 0;

	must(file != NULL, "no such list of words");
	while (getline(&line, &length, file) > 0)
	{
		line[strcspn(line, "\r\n")] = '\0';
		if (count == space)
		{
			space = space ? 2 * space : 1024;
			word = realloc(word, space * sizeof(char *));
			must(word != NULL, "out of memory");
		}
		word[count++] = strdup(line);
	}
	fclose(file);
	words(word, count);
	while (count > 0)
		free(word[--count]);
	free(word);
	free(line);
}

/* ------------------------------------------------------------------------------------
 * Growth
 * ------------------------------------------------------------------------------------ */

/*
 * Bits per element of a scalable Bloom filter, by its formulas: filters for 1,000, 2,000, 4,000 ...
 * elements, each with r times the error of the one before.
 */
static double
scalable_bits(uint64_t elements, double error_rate, double r)
{
	double		error = error_rate * (1 - r);
	double		capacity = 1000;
	double		bits = 0;
	double		rest = (double) elements;

	for (; rest > 0; rest -= capacity, capacity *= 2, error *= r)
		bits += capacity * log(1 / error) / (M_LN2 * M_LN2);
	return bits / (double) elements;
}

static void
growth(void)
{
	static const double rates[] = {0.1, 0.01, 0.001};
	uint64_t	probes = 1000000;
	size_t		r;

	for (r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
	{
		double		next = 500;
		FavEditor	editor;
		uint64_t	i;

		start(&editor, 1000, rates[r], 7, FAV_KIND_INTEGER);
		for (i = 1; i <= 1000000; i++)
		{
			add(&editor, fav_hash_integer((int64_t) i, 0));
			if (i == 1000000 || i >= (uint64_t) next)
			{
				const FavFilter *filter = finish(&editor);
				uint64_t	wrong = 0;
				uint64_t	j;

				for (j = 1; j <= probes; j++)
					wrong += fav_contains(filter, fav_hash_integer(-(int64_t) j, 0));
				printf("growth\t%g\t%llu\t%.4f\t%.2f\t%.2f\t%.2f\t%u\n", rates[r], (unsigned long long) i,
					   100.0 * (double) wrong / (double) probes, 8.0 * (double) fav_size(filter) / (double) i,
					   scalable_bits(i, rates[r], 0.5), scalable_bits(i, rates[r], 0.9), filter->nslices);
				next *= 1.08;
			}
		}
		fav_editor_close(&editor);
	}
}

/* ------------------------------------------------------------------------------------
 * A million e-mail addresses
 * ------------------------------------------------------------------------------------ */

static void
send_mail(FavEditor *editor, int from, int to)
{
	char		address[64];
	int			i;

	for (i = from; i < to; i++)
	{
		int			length = snprintf(address, sizeof(address), "user%d@example.com", i);

		add(editor, fav_hash_bytes(FAV_KIND_TEXT, address, (size_t) length, 0));
	}
}

static void
addresses(void)
{
	int			count = 1000000;
	FavEditor	editor;
	FavEditor	trial;
	const FavFilter *filter;
	double		begin;
	double		time;

	start(&editor, (uint64_t) count, 0.01, 7, FAV_KIND_TEXT);
	begin = seconds();
	send_mail(&editor, 0, count);
	filter = finish(&editor);
	time = seconds() - begin;
	printf("addresses\tadded\t%d\t%llu\t%.3f\t%.0f\t%.0f\n", count, (unsigned long long) fav_count(filter),
		   time, 1e9 * time / count, (double) fav_size(filter) / 1024);

	begin = seconds();
	send_mail(&editor, 0, count);
	filter = finish(&editor);
	time = seconds() - begin;
	printf("addresses\tadded again\t%d\t%llu\t%.3f\t%.0f\t%.0f\n", count, (unsigned long long) fav_count(filter),
		   time, 1e9 * time / count, (double) fav_size(filter) / 1024);

	/* How many would it be?  Half of these are there. */
	begin = seconds();
	fav_editor_open(&trial, filter);
	send_mail(&trial, count - 50000, count + 50000);
	filter = finish(&trial);
	time = seconds() - begin;
	printf("addresses\tif these were added\t%d\t%llu\t%.3f\t%.0f\t%.0f\n", count + 50000,
		   (unsigned long long) fav_count(filter), time, 1e9 * time / 100000, (double) fav_size(filter) / 1024);
	fav_editor_close(&trial);
	fav_editor_close(&editor);
}

int
main(int argc, char **argv)
{
	static const uint32_t sizes[] = {1, 2, 3, 5, 7, 10, 15, 20, 25, 31};
	size_t		i;
	int			bits;

	/* The common fill of a Bloom filter for 1 %, and what it takes to delete well. */
	for (bits = 10; bits <= 30; bits += 2)
		plain_protocol("bits", bits, 7, 7);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		/* 9.6 bits of data per element, half of them set */
		plain_protocol("region", 9.585 * (sizes[i] + 1) / sizes[i], sizes[i], 7);
		protocol(sizes[i]);
	}
	for (i = 1; i < (size_t) argc; i++)
		words_of_file(argv[i]);
	growth();
	addresses();
	return 0;
}
