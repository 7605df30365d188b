/*
 * test_bounded.c
 *		The bounded set (fav_cache) against exact models: what it reports was added and not
 *		deleted since; what it forgets, next to an exact LRU of the same capacity.
 */
#include <math.h>

#include "cache/bounded.h"
#include "harness.h"

/* The bytes of the editor, opened and checked as a value from outside. */
static FavBounded
reopen(FavBoundedEditor *editor)
{
	FavBounded	set;
	FavProblem	problem = {""};
	size_t		size;

	fav_bounded_finish(editor);
	size = fav_bounded_size(&editor->set);
	CHECK_THAT(fav_bounded_open(&set, editor->value + FAV_VALUE_PREFIX, size, size, &problem) == FAV_OK,
			   "%s", problem.detail);
	CHECK_THAT(fav_bounded_check(&set, &problem) == FAV_OK, "%s", problem.detail);
	return set;
}

static void
add(FavBoundedEditor *editor, uint64_t hash)
{
	CHECK(fav_bounded_add(editor, hash) == FAV_OK);
	editor->set.params.kind = FAV_KIND_INTEGER;
}

/* Go on with a copy, as every SQL call does. */
static void
copy_editor(FavBoundedEditor *editor)
{
	FavBounded	set = reopen(editor);
	FavBoundedEditor copy;

	CHECK(fav_bounded_edit(&copy, &set) == FAV_OK);
	fav_free(editor->value);
	*editor = copy;
}

/* Random adds and deletes of a few elements.  The list is an exact LRU: same elements, same order. */
static void
test_list(uint32_t capacity, uint64_t seed)
{
	uint64_t	random = seed;
	uint64_t	model[FAV_BOUNDED_LIST_MAX];
	uint32_t	count = 0;
	FavBoundedEditor editor;
	int			step;

	test_begin("list of %u, seed %llu", capacity, (unsigned long long) seed);
	CHECK(fav_bounded_new(&editor, capacity, 7) == FAV_OK);
	for (step = 0; step < 20000; step++)
	{
		uint64_t	hash = fav_hash_integer((int64_t) random_below(&random, 2 * capacity), 7);
		bool		deletes = random_below(&random, 4) == 0;
		uint32_t	i;

		editor.changed = false;
		for (i = 0; i < count && model[i] != hash; i++)
			;
		CHECK(fav_bounded_contains(&editor.set, hash) == (i < count));
		if (deletes)
		{
			CHECK(fav_bounded_remove(&editor, hash) == FAV_OK);
			CHECK(editor.changed == (i < count));
			if (i < count)
				memmove(model + i, model + i + 1, (--count - i) * sizeof(uint64_t));
		}
		else
		{
			add(&editor, hash);
			CHECK(editor.changed == (i > 0 || count == 0));
			if (i == count)
			{
				if (count < capacity)
					count++;
				else
					i--;
			}
			memmove(model + 1, model, i * sizeof(uint64_t));
			model[0] = hash;
		}
		CHECK(editor.set.used == count && editor.set.nbuckets == 0);
		for (i = 0; i < count; i++)
			CHECK(fav_load64(editor.set.entries + 8 * i) == model[i]);
		if (step % 100 == 0)
			copy_editor(&editor);
	}
	CHECK(fav_bounded_eviction_rate(&editor.set) == (editor.set.used == capacity ? 1.0 : 0.0));
	fav_free(editor.value);
	test_end();
}

/*
 * Random adds and deletes on a table.  Integers have no equal hashes, and the chance of equal
 * fingerprints in a bucket is below 2^-43.  So what is reported must have been added and not
 * deleted since, exactly.
 */
static void
test_table(uint32_t capacity, uint64_t universe, uint64_t seed)
{
	uint64_t	random = seed;
	bool	   *is_member = calloc(universe, sizeof(bool));
	FavBoundedEditor editor;
	uint64_t	reported = 0;
	uint64_t	step;
	uint64_t	i;

	test_begin("table of %u, %llu elements, seed %llu", capacity, (unsigned long long) universe,
			   (unsigned long long) seed);
	CHECK(fav_bounded_new(&editor, capacity, seed) == FAV_OK);
	for (step = 0; step < 8 * universe; step++)
	{
		uint64_t	element = random_below(&random, universe);
		uint64_t	hash = fav_hash_integer((int64_t) element, seed);

		CHECK(!fav_bounded_contains(&editor.set, hash) || is_member[element]);
		is_member[element] = random_below(&random, 4) != 0;
		if (is_member[element])
			add(&editor, hash);
		else
			CHECK(fav_bounded_remove(&editor, hash) == FAV_OK);
		CHECK(fav_bounded_contains(&editor.set, hash) == is_member[element]);
		if (step % universe == 0)
			copy_editor(&editor);
	}
	(void) reopen(&editor);
	for (i = 0; i < universe; i++)
	{
		bool		found = fav_bounded_contains(&editor.set, fav_hash_integer((int64_t) i, seed));

		CHECK(!found || is_member[i]);
		reported += found;
	}
	CHECK(editor.set.nbuckets > 0 && reported == editor.set.used);

	/* the empty set is an empty list again, without a kind */
	for (i = 0; i < universe; i++)
		CHECK(fav_bounded_remove(&editor, fav_hash_integer((int64_t) i, seed)) == FAV_OK);
	CHECK(reopen(&editor).used == 0 && editor.set.nbuckets == 0 && editor.set.params.kind == FAV_KIND_NONE);
	fav_free(editor.value);
	free(is_member);
	test_end();
}

/* The share of the newest n elements that a set has forgotten: docs/CACHE.md. */
static double
expected_loss(double n, double nbuckets)
{
	double		lambda = n / nbuckets;
	double		probability = exp(-lambda);
	double		loss = 0;
	int			k;

	for (k = 1; k < 1000; k++)
	{
		probability *= lambda / k;
		if (k > FAV_BUCKET_SLOTS)
			loss += (k - FAV_BUCKET_SLOTS) * probability;
	}
	return loss / lambda;
}

/*
 * Add `added` distinct elements.  An exact LRU then remembers the newest of them, up to its
 * capacity.
 */
static void
test_recall(uint32_t capacity, uint64_t added)
{
	FavBoundedEditor editor;
	uint64_t	newest = added < capacity ? added : capacity;
	double		loss = expected_loss((double) newest, fav_bounded_nbuckets(capacity));
	uint64_t	forgotten = 0;
	uint64_t	older = 0;
	uint64_t	i;

	test_begin("recall of %llu in %u", (unsigned long long) added, capacity);
	CHECK(fav_bounded_new(&editor, capacity, 0) == FAV_OK);
	for (i = 0; i < added; i++)
		add(&editor, fav_hash_integer((int64_t) i, 0));
	for (i = 0; i < added; i++)
	{
		bool		found = fav_bounded_contains(&editor.set, fav_hash_integer((int64_t) i, 0));

		if (i >= added - newest)
			forgotten += !found;
		else
			older += found;
	}
	(void) reopen(&editor);
	CHECK(editor.set.used == newest - forgotten + older);
	printf("test_bounded: capacity %u, added %4.1f times as many: an exact LRU remembers %.4f of them, "
		   "the set %.4f; of the LRU's elements it lacks %.5f (computed %.5f)\n",
		   capacity, (double) added / capacity, (double) newest / (double) added,
		   (double) editor.set.used / (double) added, (double) forgotten / (double) newest, loss);

	/* seven standard deviations of a count whose variance is a few times its mean */
	CHECK_THAT((double) forgotten <= (double) newest * loss + 7 * sqrt(8 * (double) newest * loss) + 1,
			   "%llu of %llu forgotten", (unsigned long long) forgotten, (unsigned long long) newest);
	if (2 * added <= capacity)
		CHECK((double) forgotten < 1e-4 * (double) added);
	fav_free(editor.value);
	test_end();
}

/* Elements that are added again and again remain, however many others come. */
static void
test_renewal(void)
{
	FavBoundedEditor editor;
	int64_t		i;
	int64_t		j;

	test_begin("renewal");
	CHECK(fav_bounded_new(&editor, 10000, 0) == FAV_OK);
	for (i = 0; i < 100000; i++)
	{
		add(&editor, fav_hash_integer(i, 0));
		if (i % 1000 == 0)
			for (j = -100; j < 0; j++)
			{
				CHECK(i == 0 || fav_bounded_contains(&editor.set, fav_hash_integer(j, 0)));
				add(&editor, fav_hash_integer(j, 0));
			}
	}
	CHECK(fav_bounded_eviction_rate(&editor.set) > 0.9);
	fav_free(editor.value);
	test_end();
}

static void
must_refuse(const uint8_t *good, size_t size, size_t at, uint64_t value, unsigned bytes, const char *why)
{
	uint8_t    *bad = malloc(size);
	FavBounded	set;
	FavProblem	problem = {""};

	memcpy(bad, good, size);
	for (; bytes > 0; bytes--, at++, value >>= 8)
		bad[at] = (uint8_t) value;
	CHECK_THAT(fav_bounded_open(&set, bad, size, size, &problem) == FAV_MALFORMED ||
			   fav_bounded_check(&set, &problem) == FAV_MALFORMED, "%s was accepted", why);
	CHECK_THAT(strstr(problem.detail, why) != NULL, "\"%s\", not %s", problem.detail, why);
	free(bad);
}

static void
test_malformed(void)
{
	FavBoundedEditor editor;
	FavBounded	set;
	FavProblem	problem;
	uint8_t    *good;
	size_t		size;
	size_t		bucket;
	int64_t		i;

	test_begin("malformed values");
	CHECK(fav_bounded_new(&editor, 200, 0) == FAV_OK);
	for (i = 0; i < 20; i++)
		add(&editor, fav_hash_integer(i, 0));
	set = reopen(&editor);
	good = editor.value + FAV_VALUE_PREFIX;
	size = fav_bounded_size(&set);
	must_refuse(good, size, FAV_BOUNDED_AT_FORMAT, 1, 1, "first byte");
	must_refuse(good, size, FAV_BOUNDED_AT_FORMAT, 0xc2, 1, "first byte");
	must_refuse(good, size, FAV_BOUNDED_AT_KIND, 6, 1, "kind");
	must_refuse(good, size, FAV_BOUNDED_AT_KIND, 0, 1, "if and only if");
	must_refuse(good, size, FAV_BOUNDED_AT_FORM, 2, 1, "reserved");
	must_refuse(good, size, FAV_BOUNDED_AT_RESERVED, 1, 1, "reserved");
	must_refuse(good, size, FAV_BOUNDED_AT_FORM, 1, 1, "the header says");
	must_refuse(good, size, FAV_BOUNDED_AT_CAPACITY, 0, 4, "Capacity");
	must_refuse(good, size, FAV_BOUNDED_AT_CAPACITY, FAV_BOUNDED_MAX_CAPACITY + 1, 4, "Capacity");
	must_refuse(good, size, FAV_BOUNDED_AT_CAPACITY, 19, 4, "at most 19");
	must_refuse(good, size, FAV_BOUNDED_AT_USED, 129, 4, "at most 128");
	must_refuse(good, size, FAV_BOUNDED_AT_USED, 0, 4, "if and only if");
	must_refuse(good, size, FAV_BOUNDED_AT_USED, 19, 4, "the header says");
	must_refuse(good, size, FAV_BOUNDED_HEADER_SIZE, fav_load64(good + size - 8), 8, "in the list before");
	CHECK(fav_bounded_open(&set, good, size - 1, size - 1, &problem) == FAV_MALFORMED);
	CHECK(fav_bounded_open(&set, good, FAV_BOUNDED_HEADER_SIZE - 1, FAV_BOUNDED_HEADER_SIZE - 1, &problem) ==
		  FAV_MALFORMED);

	for (; i < 150; i++)
		add(&editor, fav_hash_integer(i, 0));
	set = reopen(&editor);
	good = editor.value + FAV_VALUE_PREFIX;
	size = fav_bounded_size(&set);
	CHECK(set.nbuckets == 9 && size == FAV_BOUNDED_HEADER_SIZE + 9 * FAV_BUCKET_BYTES);
	bucket = FAV_BOUNDED_HEADER_SIZE + 3 * FAV_BUCKET_BYTES;
	must_refuse(good, size, FAV_BOUNDED_AT_CAPACITY, 128, 4, "too small");
	must_refuse(good, size, FAV_BOUNDED_AT_CAPACITY, 217, 4, "the header says");
	must_refuse(good, size, FAV_BOUNDED_AT_FORM, 0, 1, "at most 128");
	must_refuse(good, size, FAV_BOUNDED_AT_USED, 9 * FAV_BUCKET_SLOTS + 1, 4, "must have 1 to 288");
	must_refuse(good, size, FAV_BOUNDED_AT_USED, 151, 4, "but has 150");
	must_refuse(good, size, bucket + FAV_BUCKET_HIGHS - 4, 5, 4, "before a used one");
	must_refuse(good, size, bucket + FAV_BUCKET_BYTES - 2, 5, 2, "before a used one");
	/* a slot like the first one */
	{
		uint8_t    *twice = malloc(size);

		memcpy(twice, good, size);
		memcpy(twice + bucket + 4, twice + bucket, 4);
		memcpy(twice + bucket + FAV_BUCKET_HIGHS + 2, twice + bucket + FAV_BUCKET_HIGHS, 2);
		must_refuse(twice, size, 0, FAV_BOUNDED_FORMAT, 1, "twice");
		free(twice);
	}

	/* the header alone */
	CHECK(fav_bounded_open(&set, good, FAV_BOUNDED_HEADER_SIZE, size, &problem) == FAV_OK &&
		  set.entries == NULL && set.used == 150);
	fav_free(editor.value);
	test_end();
}

/* Without memory an add changes nothing, and succeeds later. */
static void
test_memory(void)
{
	FavBoundedEditor editor;
	int64_t		i;

	test_begin("no memory");
	fail_allocation(1);
	CHECK(fav_bounded_new(&editor, 1000, 0) == FAV_NO_MEMORY);
	fail_allocation(0);
	CHECK(fav_bounded_new(&editor, 1000, 0) == FAV_OK);
	for (i = 0; i < FAV_BOUNDED_LIST_MAX; i++)
		add(&editor, fav_hash_integer(i, 0));
	fail_allocation(1);
	add(&editor, fav_hash_integer(5, 0));
	CHECK(fav_bounded_add(&editor, fav_hash_integer(i, 0)) == FAV_NO_MEMORY);
	fail_allocation(0);
	CHECK(reopen(&editor).used == FAV_BOUNDED_LIST_MAX && editor.set.nbuckets == 0);
	add(&editor, fav_hash_integer(i, 0));
	CHECK(reopen(&editor).used == FAV_BOUNDED_LIST_MAX + 1 && editor.set.nbuckets == 42);
	fav_free(editor.value);
	CHECK(allocated_bytes() == 0);
	test_end();
}

/* A fingerprint of 0 means a free slot.  An element with 48 zero bits can still be stored. */
static void
test_zero_fingerprint(void)
{
	FavBoundedEditor editor;
	uint64_t	i;

	test_begin("zero fingerprint");
	CHECK(fav_bounded_new(&editor, 1000, 0) == FAV_OK);
	for (i = 0; i < 200; i++)
		add(&editor, i << 56 | i << 48);
	for (i = 0; i < 200; i++)
		CHECK(fav_bounded_contains(&editor.set, i << 56 | i << 48));
	(void) reopen(&editor);
	for (i = 0; i < 200; i++)
		CHECK(fav_bounded_remove(&editor, i << 56 | i << 48) == FAV_OK);
	CHECK(reopen(&editor).used == 0);
	fav_free(editor.value);
	test_end();
}

int
main(void)
{
	static const uint32_t capacities[] = {200, 1000, 10000, 100000};
	static const double shares[] = {0.5, 0.9, 1, 2, 10};
	size_t		i;
	size_t		j;

	for (i = 1; i <= 3; i++)
	{
		test_list(1, i);
		test_list(2, i);
		test_list(100, i);
		test_list(FAV_BOUNDED_LIST_MAX, i);
		test_table(FAV_BOUNDED_LIST_MAX + 1, 1000, i);
		test_table(1000, 300 * i, i);
		test_table(5000, 20000, i);
	}
	for (i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
		for (j = 0; j < sizeof(shares) / sizeof(shares[0]); j++)
			test_recall(capacities[i], (uint64_t) (shares[j] * capacities[i]));
	test_renewal();
	test_malformed();
	test_memory();
	test_zero_fingerprint();
	return test_summary("test_bounded");
}
