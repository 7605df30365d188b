/*
 * change.c
 *		What changes a slice: insert, and take out; one element, or many one after the
 *		other.  Each is here with and without AVX2, and the first call chooses.
 */
#include "lanes.h"

/* Returns how many bits that set. */
typedef uint32_t (*Insert) (const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash);

static ALWAYS_INLINE size_t
fill(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
	 size_t count, uint64_t *doubtful, Insert insert)
{
	FavSlice	now = *slice;	/* which the writes to blocks cannot change, for the compiler */
	size_t		ndoubtful = 0;
	size_t		i;

	for (i = 0; i < count; i++)
	{
		uint32_t	added = insert(&now, blocks, region_size, hashes[i]);

		now.bits_set += added;
		doubtful[ndoubtful] = hashes[i];
		ndoubtful += added == 0;
	}
	slice->bits_set = now.bits_set;
	return ndoubtful;
}

static ALWAYS_INLINE uint32_t
insert(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	uint8_t    *tracker = block + (size_t) region_size * FAV_LANE_BYTES;
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	added = 0;
	uint32_t	left;
	uint32_t	count;

	for (left = slice->k; left > 0; left -= count, fav_probe_next(&probe))
	{
		uint8_t    *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		count = fav_probe_masks(&probe, left, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
		{
			uint64_t	old = fav_load64(lane + 8 * word);

			fav_store64(tracker + 8 * word, fav_load64(tracker + 8 * word) | (old & masks[word]));
			fav_store64(lane + 8 * word, old | masks[word]);
			added += (masks[word] & ~old) != 0;
		}
	}
	return added;
}

static void
insert_plain(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	slice->bits_set += insert(slice, blocks, region_size, hash);
}

static size_t
fill_plain(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
		   size_t count, uint64_t *doubtful)
{
	return fill(slice, blocks, region_size, hashes, count, doubtful, insert);
}

/*
 * Clear the bits of an element that are in unmarked regions, or set them again.  Returns
 * how many that changes.
 */
typedef uint32_t (*ChangeOwnBits) (uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t k, bool set);

/* Any number of groups, in any number of lanes. */
static ALWAYS_INLINE int
take(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash,
	 LaneHasAll has_all, LaneHasSome has_some, ChangeOwnBits change_own_bits)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	uint32_t	own;

	if (!block_has(block, region_size, hash, slice->k, (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES,
				   fav_probe_product(hash, 0), has_all, has_some))
		return FAV_NOT_REPORTED;
	own = change_own_bits(block, region_size, hash, slice->k, false);
	if (!fav_stays(slice, (int) own))
		slice->bits_set -= own;
	else if (own > 0)
		change_own_bits(block, region_size, hash, slice->k, true);
	return (int) own;
}

static ALWAYS_INLINE uint32_t
change_own_bits(uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t k, bool set)
{
	uint8_t    *tracker = block + (size_t) region_size * FAV_LANE_BYTES;
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	changed = 0;
	uint32_t	left;
	uint32_t	count;

	for (left = k; left > 0; left -= count, fav_probe_next(&probe))
	{
		uint8_t    *lane = block + (size_t) probe.lane * FAV_LANE_BYTES;
		uint64_t	masks[FAV_LANE_WORDS];
		uint32_t	word;

		count = fav_probe_masks(&probe, left, masks);
		for (word = 0; word < FAV_LANE_WORDS; word++)
		{
			uint64_t	old = fav_load64(lane + 8 * word);
			uint64_t	own = (set ? ~old : old) & masks[word] & ~fav_load64(tracker + 8 * word);

			fav_store64(lane + 8 * word, old ^ own);
			changed += own != 0;
		}
	}
	return changed;
}

static int
take_plain(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	return take(slice, blocks, region_size, hash, has_all, has_some, change_own_bits);
}

typedef int (*Take) (FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash);

/* The first lane and the tracker. */
static ALWAYS_INLINE void
fetch_to_take(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);

	__builtin_prefetch(block + (size_t) fav_probe_lane(hash, region_size) * FAV_LANE_BYTES);
	__builtin_prefetch(block + (size_t) region_size * FAV_LANE_BYTES);
}

static ALWAYS_INLINE size_t
take_many(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes, size_t count,
		  uint64_t *staying, size_t *gone, Take take)
{
	FavSlice	now = *slice;	/* which the writes to blocks cannot change, for the compiler */
	size_t		nstaying = 0;
	size_t		reported = 0;
	size_t		fetched = 0;
	size_t		i;

	for (; fetched < count && fetched < FETCHED_AHEAD; fetched++)
		fetch_to_take(&now, blocks, region_size, hashes[fetched]);
	for (i = 0; i < count; i++)
	{
		int			own;

		if (fetched < count)
			fetch_to_take(&now, blocks, region_size, hashes[fetched++]);
		own = take(&now, blocks, region_size, hashes[i]);

		/* which of them stay cannot be predicted: no branch */
		staying[nstaying] = hashes[i];
		nstaying += fav_stays(&now, own);
		reported += own != FAV_NOT_REPORTED;
	}
	slice->bits_set = now.bits_set;
	*gone = reported - nstaying;
	return nstaying;
}

static size_t
take_many_plain(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes, size_t count,
				uint64_t *staying, size_t *gone)
{
	return take_many(slice, blocks, region_size, hashes, count, staying, gone, take_plain);
}

#ifdef HAVE_AVX2

/* How many of the four words are not zero. */
__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE uint32_t
nonzero_words(__m256i words)
{
	__m256i		zero = _mm256_cmpeq_epi64(words, _mm256_setzero_si256());

	return FAV_LANE_WORDS - (uint32_t) __builtin_popcount((unsigned) _mm256_movemask_pd(_mm256_castsi256_pd(zero)));
}

/* The bits of a group, at most `left`. */
__attribute__((target("avx2")))
static ALWAYS_INLINE __m256i
group_masks(uint64_t product, uint32_t left)
{
	return _mm256_sllv_epi64(left < FAV_LANE_WORDS ? some_words(product, &group_words[left - 1]) : _mm256_set1_epi64x(1),
							 group_columns(product));
}

/* Two groups in two lanes are what most filters have: for them, no loop. */
typedef struct TwoGroups
{
	__m256i    *one;			/* their lanes */
	__m256i    *two;
	__m256i		of_one;			/* and bits */
	__m256i		of_two;
} TwoGroups;

static ALWAYS_INLINE bool
has_two_groups(const FavSlice *slice, uint32_t region_size)
{
	return slice->k - FAV_LANE_WORDS - 1 < FAV_LANE_WORDS && region_size > 1;
}

/* `left` bits are in the second group. */
__attribute__((target("avx2")))
static ALWAYS_INLINE TwoGroups
two_groups(uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t left)
{
	LanePair	pair = lane_pair(hash, region_size);
	uint64_t	second = fav_probe_product(hash, 1);
	TwoGroups	groups;

	groups.one = (__m256i *) (void *) (block + lane_one(pair));
	groups.of_one = group_masks(fav_probe_product(hash, 0), FAV_LANE_WORDS);
	groups.two = (__m256i *) (void *) (block + lane_two(pair));
	groups.of_two = _mm256_sllv_epi64(some_words(second, &group_words[left - 1]), group_columns(second));
	return groups;
}

__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE uint32_t
insert_with_avx2(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	__m256i    *tracker = (__m256i *) (void *) (block + (size_t) region_size * FAV_LANE_BYTES);
	FavProbe	probe = fav_probe_first(hash, region_size);
	__m256i		marked = _mm256_loadu_si256(tracker);
	uint32_t	added = 0;
	uint32_t	left = slice->k;

	for (;; left -= FAV_LANE_WORDS, fav_probe_next(&probe))
	{
		__m256i    *lane = (__m256i *) (void *) (block + (size_t) probe.lane * FAV_LANE_BYTES);
		__m256i		masks = group_masks(probe.product, left);
		__m256i		old = _mm256_loadu_si256(lane);

		marked = _mm256_or_si256(marked, _mm256_and_si256(old, masks));
		_mm256_storeu_si256(lane, _mm256_or_si256(old, masks));
		added += nonzero_words(_mm256_andnot_si256(old, masks));
		if (left <= FAV_LANE_WORDS)
			break;
	}
	_mm256_storeu_si256(tracker, marked);
	return added;
}

/* The same for two groups in two lanes. */
__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE uint32_t
insert_two_avx2(const FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	__m256i    *tracker = (__m256i *) (void *) (block + (size_t) region_size * FAV_LANE_BYTES);
	TwoGroups	groups = two_groups(block, region_size, hash, slice->k - FAV_LANE_WORDS);
	__m256i		in_one = _mm256_loadu_si256(groups.one);
	__m256i		in_two = _mm256_loadu_si256(groups.two);

	_mm256_storeu_si256(tracker, _mm256_or_si256(_mm256_loadu_si256(tracker),
												 _mm256_or_si256(_mm256_and_si256(in_one, groups.of_one),
																 _mm256_and_si256(in_two, groups.of_two))));
	_mm256_storeu_si256(groups.one, _mm256_or_si256(in_one, groups.of_one));
	_mm256_storeu_si256(groups.two, _mm256_or_si256(in_two, groups.of_two));
	return nonzero_words(_mm256_andnot_si256(in_one, groups.of_one)) +
		nonzero_words(_mm256_andnot_si256(in_two, groups.of_two));
}

__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE uint32_t
change_own_bits_avx2(uint8_t *block, uint32_t region_size, uint64_t hash, uint32_t k, bool set)
{
	__m256i		marked = _mm256_loadu_si256((const __m256i *) (void *) (block + (size_t) region_size * FAV_LANE_BYTES));
	FavProbe	probe = fav_probe_first(hash, region_size);
	uint32_t	changed = 0;
	uint32_t	left = k;

	for (;; left -= FAV_LANE_WORDS, fav_probe_next(&probe))
	{
		__m256i    *lane = (__m256i *) (void *) (block + (size_t) probe.lane * FAV_LANE_BYTES);
		__m256i		old = _mm256_loadu_si256(lane);
		__m256i		own = _mm256_andnot_si256(marked, group_masks(probe.product, left));

		own = set ? _mm256_andnot_si256(old, own) : _mm256_and_si256(old, own);
		_mm256_storeu_si256(lane, _mm256_xor_si256(old, own));
		changed += nonzero_words(own);
		if (left <= FAV_LANE_WORDS)
			break;
	}
	return changed;
}

__attribute__((target("avx2,popcnt")))
static int
take_any_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	return take(slice, blocks, region_size, hash, has_all_avx2, has_some_avx2, change_own_bits_avx2);
}

/* For two groups in two lanes, so with more than one bit an element. */
__attribute__((target("avx2,popcnt")))
static ALWAYS_INLINE int
take_two_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	uint8_t    *block = blocks + fav_slice_block_offset(slice, region_size, hash);
	TwoGroups	groups = two_groups(block, region_size, hash, slice->k - FAV_LANE_WORDS);
	__m256i		in_one = _mm256_loadu_si256(groups.one);
	__m256i		in_two = _mm256_loadu_si256(groups.two);
	__m256i		marked;
	__m256i		cleared;
	uint32_t	own;

	/* a branch, but only the contract's breach makes it hard to predict */
	if (!_mm256_testc_si256(in_one, groups.of_one) || !_mm256_testc_si256(in_two, groups.of_two))
		return FAV_NOT_REPORTED;
	marked = _mm256_loadu_si256((const __m256i *) (void *) (block + (size_t) region_size * FAV_LANE_BYTES));
	groups.of_one = _mm256_andnot_si256(marked, groups.of_one);
	groups.of_two = _mm256_andnot_si256(marked, groups.of_two);
	own = nonzero_words(groups.of_one) + nonzero_words(groups.of_two);

	/* all of them or none, without a branch */
	cleared = _mm256_set1_epi64x(-(long long) (own > 1));
	_mm256_storeu_si256(groups.one, _mm256_andnot_si256(_mm256_and_si256(groups.of_one, cleared), in_one));
	_mm256_storeu_si256(groups.two, _mm256_andnot_si256(_mm256_and_si256(groups.of_two, cleared), in_two));
	slice->bits_set -= own > 1 ? own : 0;
	return (int) own;
}

__attribute__((target("avx2,popcnt")))
static int
take_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	if (!has_two_groups(slice, region_size))
		return take_any_avx2(slice, blocks, region_size, hash);
	if (region_size == USUAL_REGION_SIZE)
		return take_two_avx2(slice, blocks, USUAL_REGION_SIZE, hash);
	return take_two_avx2(slice, blocks, region_size, hash);
}

__attribute__((target("avx2,popcnt")))
static size_t
take_many_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes, size_t count,
			   uint64_t *staying, size_t *gone)
{
	if (!has_two_groups(slice, region_size))
		return take_many(slice, blocks, region_size, hashes, count, staying, gone, take_any_avx2);
	if (region_size == USUAL_REGION_SIZE)
		return take_many(slice, blocks, USUAL_REGION_SIZE, hashes, count, staying, gone, take_two_avx2);
	return take_many(slice, blocks, region_size, hashes, count, staying, gone, take_two_avx2);
}

__attribute__((target("avx2,popcnt")))
static void
insert_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	slice->bits_set += insert_with_avx2(slice, blocks, region_size, hash);
}

__attribute__((target("avx2,popcnt")))
static size_t
fill_avx2(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
		  size_t count, uint64_t *doubtful)
{
	if (has_two_groups(slice, region_size))
	{
		if (region_size == USUAL_REGION_SIZE)
			return fill(slice, blocks, USUAL_REGION_SIZE, hashes, count, doubtful, insert_two_avx2);
		return fill(slice, blocks, region_size, hashes, count, doubtful, insert_two_avx2);
	}
	return fill(slice, blocks, region_size, hashes, count, doubtful, insert_with_avx2);
}

#endif

static void
choose_changes(void)
{
	fav_slice_insert = insert_plain;
	fav_slice_fill = fill_plain;
	fav_slice_take = take_plain;
	fav_slice_take_many = take_many_plain;
#ifdef HAVE_AVX2
	if (fav_have_avx2())
	{
		fav_slice_insert = insert_avx2;
		fav_slice_fill = fill_avx2;
		fav_slice_take = take_avx2;
		fav_slice_take_many = take_many_avx2;
	}
#endif
}

static void
choose_insert(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	choose_changes();
	fav_slice_insert(slice, blocks, region_size, hash);
}

static size_t
choose_fill(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes,
			size_t count, uint64_t *doubtful)
{
	choose_changes();
	return fav_slice_fill(slice, blocks, region_size, hashes, count, doubtful);
}

static int
choose_take(FavSlice *slice, uint8_t *blocks, uint32_t region_size, uint64_t hash)
{
	choose_changes();
	return fav_slice_take(slice, blocks, region_size, hash);
}

static size_t
choose_take_many(FavSlice *slice, uint8_t *blocks, uint32_t region_size, const uint64_t *hashes, size_t count,
				 uint64_t *staying, size_t *gone)
{
	choose_changes();
	return fav_slice_take_many(slice, blocks, region_size, hashes, count, staying, gone);
}

void		(*fav_slice_insert) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
								 uint64_t hash) = choose_insert;
size_t		(*fav_slice_fill) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
							   const uint64_t *hashes, size_t count,
							   uint64_t *doubtful) = choose_fill;
int			(*fav_slice_take) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
							   uint64_t hash) = choose_take;
size_t		(*fav_slice_take_many) (FavSlice *slice, uint8_t *blocks, uint32_t region_size,
									const uint64_t *hashes, size_t count,
									uint64_t *staying, size_t *gone) = choose_take_many;
