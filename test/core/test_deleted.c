/*
 * test_deleted.c
 *		The deleted hashes of an editor, against a plain list of them: whatever is hidden
 *		and unhidden, in a table or not, crowded or not.
 */
#include "deleted.h"
#include "harness.h"
#include "union.h"

/* More distinct ones than a table of two thirds of them would take at once. */
#define UNIVERSE	30000

/* So many elements the filter says it has: deleted ones are counted out. */
#define ELEMENTS	1000000

typedef struct Model
{
	uint64_t	hashes[UNIVERSE];	/* ascending */
	bool		hidden[UNIVERSE];
	uint32_t	count;
	FavEditor	editor;
	Value		value;
} Model;

static int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

typedef enum Spread
{
	EVEN,
	CROWDED,					/* all in one place of every table */
	CROWDED_AT_END,
	CLUSTERS					/* longer than a table bears, between others that are even */
} Spread;

static const char *const spread_names[] = {"even", "crowded", "crowded at the end", "in clusters"};

static void
make_hashes(Model *model, Spread spread, uint64_t *random)
{
	uint32_t	i;

	for (i = 0; i < UNIVERSE; i++)
	{
		uint64_t	hash = next_random(random);

		if (spread == CROWDED)
			hash = hash >> 40 | UINT64_C(0x1234560000000000);
		else if (spread == CROWDED_AT_END)
			hash |= UINT64_C(0xffffff0000000000);
		else if (spread == CLUSTERS && i % 2 == 0)
			hash = hash >> 40 | (uint64_t) (i / 1000) << 58;
		model->hashes[i] = hash;
	}
	/* the ends, of which one is what gaps hold */
	model->hashes[0] = 0;
	model->hashes[1] = UINT64_MAX;
	model->hashes[2] = UINT64_MAX - 1;
	qsort(model->hashes, UNIVERSE, sizeof(uint64_t), compare_hashes);
	for (i = 1; i < UNIVERSE; i++)
		if (model->hashes[i] <= model->hashes[i - 1])
			model->hashes[i] = model->hashes[i - 1] + 1;
	CHECK(model->hashes[UNIVERSE - 1] == UINT64_MAX);
}

/* A value whose one slice does not matter: what counts is its list. */
static void
open_empty(Model *model)
{
	uint64_t	elements[200];
	uint32_t	i;

	for (i = 0; i < 200; i++)
		elements[i] = i * UINT64_C(0x0101010101010101);
	CHECK(fav_editor_build(&model->editor, &DEFAULT_PARAMS, elements, 200) == FAV_OK);
	model->editor.filter.elements = ELEMENTS;
	memset(model->hidden, 0, sizeof(model->hidden));
	model->count = 0;
	model->value.bytes = NULL;
}

/* One that is not there is hidden, one that is there is not any more. */
static void
change(Model *model, uint32_t i)
{
	CHECK(fav_editor_is_deleted(&model->editor, model->hashes[i]) == model->hidden[i]);
	if (model->hidden[i])
	{
		CHECK(fav_editor_unhide(&model->editor, model->hashes[i]) == FAV_OK);
		fav_count_in(&model->editor.filter);
		model->count--;
	}
	else
	{
		CHECK(fav_editor_prepare_hide(&model->editor, 1) == FAV_OK);
		fav_editor_hide(&model->editor, model->hashes[i], true);
		model->count++;
	}
	model->hidden[i] = !model->hidden[i];
}

/* Hidden without a look whether it is already. */
static void
hide_blindly(Model *model, uint32_t i)
{
	CHECK(fav_editor_prepare_hide(&model->editor, 1) == FAV_OK);
	fav_editor_hide(&model->editor, model->hashes[(i + 1) % UNIVERSE], false);
	fav_editor_hide(&model->editor, model->hashes[i], true);
	model->count += !model->hidden[i];
	model->hidden[i] = true;
}

static void
compare_all(Model *model)
{
	uint32_t	i;

	for (i = 0; i < UNIVERSE; i++)
		CHECK_THAT(fav_editor_is_deleted(&model->editor, model->hashes[i]) == model->hidden[i], "hash %u", i);
}

/* Write it, look at the list, and mostly go on from there. */
static void
reopen(Model *model, bool go_on)
{
	const FavFilter *filter;
	Value		old = model->value;
	uint32_t	at = 0;
	uint32_t	i;

	/* once more than there is memory for */
	fail_allocation(go_on ? 1 : 0);
	if (fav_editor_finish(&model->editor, &filter) != FAV_OK)
	{
		fail_allocation(0);
		compare_all(model);
		CHECK(fav_editor_finish(&model->editor, &filter) == FAV_OK);
	}
	fail_allocation(0);
	CHECK(filter->ndeleted == model->count);
	CHECK(filter->elements == ELEMENTS - model->count);
	for (i = 0; i < UNIVERSE; i++)
		if (model->hidden[i])
		{
			CHECK_THAT(at < filter->ndeleted && fav_load64(filter->deleted + 8 * (size_t) at) == model->hashes[i],
					   "hash %u at %u", i, at);
			at++;
		}
	if (!go_on)
		return;
	value_from_editor(&model->value, &model->editor);
	fav_editor_close(&model->editor);
	if (old.bytes != NULL)
		value_free(&old);
	fav_editor_open(&model->editor, &model->value.filter);
}

static void
test_model(Spread spread, uint64_t seed)
{
	Model	   *model = malloc(sizeof(Model));
	uint64_t	random = seed;
	uint32_t	round;

	test_begin("deleted: as a plain list, %s hashes, seed %llu", spread_names[spread], (unsigned long long) seed);
	make_hashes(model, spread, &random);
	open_empty(model);
	for (round = 0; round < 24; round++)
	{
		/* a few changes or many, of all hashes or of a few, in any order or ascending */
		uint32_t	most = UINT32_C(1) << random_below(&random, 15);
		uint32_t	changes = 1 + (uint32_t) random_below(&random, most);
		uint32_t	first = (uint32_t) random_below(&random, UNIVERSE);
		uint32_t	range = random_below(&random, 3) == 0 ? 100 : UNIVERSE;
		bool		ascending = random_below(&random, 4) == 0;
		bool		blindly = random_below(&random, 2) == 0;
		uint32_t	i;

		for (i = 0; i < changes; i++)
			(blindly ? hide_blindly : change) (model, (first + (ascending ? i : (uint32_t) random_below(&random, range))) % UNIVERSE);
		if (!blindly)
			change(model, UNIVERSE - 1);
		if (!blindly || random_below(&random, 2) == 0)
			compare_all(model);
		if (random_below(&random, 2) == 0)
			reopen(model, random_below(&random, 3) > 0);
	}
	reopen(model, true);
	compare_all(model);
	fav_editor_close(&model->editor);
	value_free(&model->value);
	CHECK(allocated_bytes() == 0);
	free(model);
	test_end();
}

/* What a table cannot take without becoming slow it gives back: no change looks at more than some hundred slots. */
static void
test_crowding(void)
{
	Model	   *model = malloc(sizeof(Model));
	uint64_t	random = 1;
	uint32_t	i;
	uint32_t	longest = 0;
	Spread		spread;

	test_begin("deleted: a table does not let hashes crowd");
	for (spread = EVEN; spread <= CLUSTERS; spread++)
	{
		uint32_t	largest = 0;

		make_hashes(model, spread, &random);
		open_empty(model);
		for (i = 0; i < UNIVERSE - 1; i++)
		{
			const FavTable *table = &model->editor.changed_deleted;
			uint32_t	j;

			/* as many as the table takes at once */
			CHECK(fav_editor_prepare_hide(&model->editor, 1) == FAV_OK);
			fav_editor_hide(&model->editor, model->hashes[(i * UINT64_C(7919)) % (UNIVERSE - 1)], true);
			if (model->editor.nfresh < FAV_TABLE_AT_ONCE)
				continue;
			CHECK(fav_editor_is_deleted(&model->editor, model->hashes[(i * UINT64_C(7919)) % (UNIVERSE - 1)]));
			CHECK(model->editor.nfresh == 0);
			for (j = 0; j < FAV_TABLE_AT_ONCE && table->count > 0; j++)
			{
				uint64_t	hash = model->hashes[((i - j) * UINT64_C(7919)) % (UNIVERSE - 1)];
				uint32_t	distance = (uint32_t) ((size_t) (fav_table_find(table, hash) - table->slots) / 8 -
												   (size_t) (hash >> (64 - table->bits)));

				longest = distance > longest ? distance : longest;
				largest = table->bits > largest ? table->bits : largest;
			}
		}
		CHECK_THAT(longest < FAV_TABLE_RUN_MAX, "%s: %u slots", spread_names[spread], longest);
		CHECK_THAT(largest <= 16, "%s: 2^%u places", spread_names[spread], largest);
		if (spread == EVEN)
			CHECK_THAT(largest == 16 && model->editor.filter.ndeleted == 0 && longest < 100,
					   "even hashes: 2^%u places, %u in the list, %u slots", largest, model->editor.filter.ndeleted, longest);
		fav_editor_close(&model->editor);
	}
	CHECK(allocated_bytes() == 0);
	free(model);
	test_end();
}

/* Every allocation that a change needs fails once: the set is as it was. */
static void
test_no_memory(void)
{
	Model	   *model = malloc(sizeof(Model));
	uint64_t	random = 2;
	uint32_t	failed = 0;
	Spread		spread;
	uint32_t	i;

	test_begin("deleted: out of memory, a change fails and leaves all as it was");
	for (spread = EVEN; spread <= CLUSTERS; spread++)
	{
		make_hashes(model, spread, &random);
		open_empty(model);
		for (i = 0; i < 20000; i++)
		{
			uint32_t	at = (uint32_t) random_below(&random, UNIVERSE);
			FavStatus	status;

			hide_blindly(model, at);
			fail_allocation(1);
			status = i % 2 ? fav_editor_unhide(&model->editor, model->hashes[at]) :
				fav_editor_is_deleted(&model->editor, model->hashes[at]) ? FAV_OK : FAV_DOUBTFUL;
			fail_allocation(0);
			if (status == FAV_OK && i % 2)
			{
				fav_count_in(&model->editor.filter);
				model->hidden[at] = false;
				model->count--;
			}
			if (status != FAV_OK || model->editor.nfresh > 0)
			{
				CHECK(status == FAV_NO_MEMORY || (i % 2 == 0 && status == FAV_OK));
				compare_all(model);
				failed++;
			}
		}
		reopen(model, false);
		fav_editor_close(&model->editor);
	}
	CHECK_THAT(failed > 20, "%u failures only", failed);
	CHECK(allocated_bytes() == 0);
	free(model);
	test_end();
}

/* A list that damage has shuffled: what is answered does not matter, but nothing is read or written beyond. */
static void
test_damaged(void)
{
	Model	   *model = malloc(sizeof(Model));
	uint64_t	random = 3;
	uint32_t	run;
	uint32_t	i;

	test_begin("deleted: a damaged list does no harm");
	for (run = 0; run < 40; run++)
	{
		const FavFilter *filter;
		FavFilter	damaged;
		uint32_t	count = 1 + (uint32_t) random_below(&random, run % 2 ? 100 : 5000);
		uint8_t    *list = malloc(8 * count);

		make_hashes(model, (Spread) (run % 4), &random);
		open_empty(model);
		CHECK(fav_editor_finish(&model->editor, &filter) == FAV_OK);
		damaged = *filter;
		for (i = 0; i < count; i++)
			fav_store64(list + 8 * i, model->hashes[random_below(&random, run % 3 ? UNIVERSE : 50)]);
		damaged.deleted = list;
		damaged.ndeleted = count;
		{
			FavEditor	editor;

			fav_editor_open(&editor, &damaged);
			for (i = 0; i < 6000; i++)
			{
				uint64_t	hash = model->hashes[random_below(&random, UNIVERSE)];

				if (fav_editor_is_deleted(&editor, hash))
					CHECK(fav_editor_unhide(&editor, hash) == FAV_OK);
				else
				{
					CHECK(fav_editor_prepare_hide(&editor, 1) == FAV_OK);
					fav_editor_hide(&editor, hash, true);
				}
				if (random_below(&random, 2000) == 0)
					CHECK(fav_editor_finish(&editor, &filter) == FAV_OK);
			}
			CHECK(fav_editor_finish(&editor, &filter) == FAV_OK);
			fav_editor_close(&editor);
		}
		fav_editor_close(&model->editor);
		free(list);
	}
	CHECK(allocated_bytes() == 0);
	free(model);
	test_end();
}

/* A union takes what was changed before, and leaves an editor that can be changed again. */
static void
test_union(void)
{
	Model	   *model = malloc(sizeof(Model));
	Model	   *other = malloc(sizeof(Model));
	uint64_t	random = 4;
	uint32_t	run;
	uint32_t	i;

	test_begin("deleted: changes before and after a union");
	for (run = 0; run < 20; run++)
	{
		uint32_t	most = run % 2 ? 40 : 4000;
		uint32_t	kept = 0;
		const FavFilter *filter;

		make_hashes(model, EVEN, &random);
		make_hashes(other, EVEN, &random);
		open_empty(model);
		open_empty(other);
		for (i = 0; i < most; i++)
		{
			change(model, i);
			change(other, i);
		}
		CHECK(fav_editor_finish(&other->editor, &filter) == FAV_OK);
		CHECK(fav_editor_union(&model->editor, filter) == FAV_OK);

		/* what the other side contains, or seems to, is not deleted any more */
		for (i = 0; i < most; i++)
		{
			model->hidden[i] = !fav_contains(filter, model->hashes[i]);
			kept += model->hidden[i];
			CHECK(fav_editor_is_deleted(&model->editor, model->hashes[i]) == model->hidden[i]);
		}
		CHECK(kept > most / 10 * 9);
		for (i = 0; i < 2 * most; i++)
			change(model, i % most);
		for (i = 0; i < most; i++)
			CHECK(fav_editor_is_deleted(&model->editor, model->hashes[i]) == model->hidden[i]);
		fav_editor_close(&model->editor);
		fav_editor_close(&other->editor);

		/* a change that was taken back leaves an empty table */
		open_empty(model);
		open_empty(other);
		change(model, 5);
		change(model, 5);
		CHECK(fav_editor_finish(&other->editor, &filter) == FAV_OK);
		CHECK(fav_editor_union(&model->editor, filter) == FAV_OK);
		change(model, 5);
		CHECK(fav_editor_is_deleted(&model->editor, model->hashes[5]));
		fav_editor_close(&model->editor);
		fav_editor_close(&other->editor);
	}
	CHECK(allocated_bytes() == 0);
	free(model);
	free(other);
	test_end();
}

int
main(void)
{
	Spread		spread;
	uint64_t	seed;

	for (spread = EVEN; spread <= CLUSTERS; spread++)
		for (seed = 1; seed <= 5; seed++)
			test_model(spread, seed);
	test_crowding();
	test_no_memory();
	test_damaged();
	test_union();
	return test_summary("test_deleted");
}
