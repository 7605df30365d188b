-- Dated filters: an element is found for at least `keep` periods after it was last added, and forgotten at most max(1, keep / 8) later.

-- Small sets are exact: each element goes in its own period
CREATE TEMP TABLE days AS SELECT d, fav_expire(f, d) AS f
FROM generate_series(0, 12) d,
	(SELECT fav_add_at(fav_add_at(fav_add_at(fav_new(keep => 7), ARRAY[1, 2]::bigint[], 0), ARRAY[3]::bigint[], 2), ARRAY[1]::bigint[], 4) AS f) made;
SELECT d, fav_contains(f, 1) AS renewed, fav_contains(f, 2) AS first, fav_contains(f, 3) AS third, fav_count(f) AS count FROM days ORDER BY d;
SELECT d, keep, periods, oldest, newest FROM days, fav_stats(f) WHERE d IN (0, 8, 10, 12) ORDER BY d;

-- fav_add_at forgets as it goes
SELECT fav_contains(f, 1) AS gone, fav_contains(f, 2) AS there, fav_count(f) FROM fav_add_at(fav_add_at(fav_new(keep => 7), ARRAY[1]::bigint[], 0), ARRAY[2]::bigint[], 8) f;

-- If nothing changes, the result is the argument itself
SELECT f::bytea = fav_expire(f, 7)::bytea AS nothing_to_forget, f::bytea = fav_expire(f, -100)::bytea AS backwards, f::bytea = fav_add_at(f, '{}'::bigint[], 50)::bytea AS no_elements,
	f::bytea = fav_add_at(f, NULL::bigint[], 50)::bytea AS null_elements, f::bytea = fav_add_at(f, ARRAY[1]::bigint[], 0)::bytea AS again
FROM fav_add_at(fav_new(keep => 7), ARRAY[1]::bigint[], 0) f;

-- All kinds of elements
SELECT fav_contains(fav_add_at(fav_new(keep => 1), ARRAY['a', NULL, 'b'], 1), 'b') AS text,
	fav_contains(fav_add_at(fav_new(keep => 1), ARRAY['00000000-0000-0000-0000-000000000001']::uuid[], 1), '00000000-0000-0000-0000-000000000001'::uuid) AS uuid,
	fav_contains(fav_add_at(fav_new(keep => 1), ARRAY['\x01']::bytea[], 1), '\x01'::bytea) AS bytea,
	fav_contains(fav_add_at(fav_new(keep => 1), 7, 42, 1), 7, 42) AS pair,
	fav_contains(fav_expire(fav_add_at(fav_new(keep => 1), 7, 42, 1), 3), 7, 42) AS forgotten;

-- Periods may be negative, go backwards, and reach the limits of their type
SELECT p, fav_contains(f, 1) AS found FROM unnest(ARRAY[-10, -4, -3]) p, fav_expire(fav_add_at(fav_new(keep => 6), ARRAY[1]::bigint[], -10), p) f ORDER BY p;
-- an element that comes late keeps its own period, and one that would be forgotten already is not added
SELECT p, fav_contains(f, 1) AS present, fav_contains(f, 2) AS late, fav_contains(f, 3) AS too_late
FROM (SELECT fav_add_at(fav_add_at(fav_add_at(fav_new(keep => 6), ARRAY[1]::bigint[], 10), ARRAY[2]::bigint[], 5), ARRAY[3]::bigint[], 3) AS made) m,
	unnest(ARRAY[10, 11, 12, 16, 17]) p, fav_expire(made, p) f ORDER BY p;
SELECT keep, p, fav_contains(f, 1) AS low, fav_contains(f, 2) AS high, (fav_stats(f)).periods
FROM unnest(ARRAY[1, 2147483647]) keep, unnest(ARRAY[-2147483647, 2147483647]) p,
	fav_add_at(fav_add_at(fav_new(keep => keep), ARRAY[1]::bigint[], -2147483647), ARRAY[2]::bigint[], p) f ORDER BY keep, p;

-- An ordinary add is of the newest period
SELECT p, fav_contains(f, 1) AS first, fav_contains(f, 2) AS ordinary, fav_contains(f, 3) AS operator
FROM (SELECT fav_add(fav_add_at(fav_add_at(fav_new(keep => 2), ARRAY[1]::bigint[], 0), ARRAY[9]::bigint[], 2), 2) + 3::bigint AS made) m,
	unnest(ARRAY[2, 3, 4, 5]) p, fav_expire(made, p) f ORDER BY p;

-- What is wrong is said
SELECT fav_new(keep => 0);
SELECT fav_new(keep => -1);
SELECT fav_add_at(fav_new(), ARRAY[1]::bigint[], 1);
SELECT fav_add_at(NULL, ARRAY[1]::bigint[], 1);
SELECT fav_add_at(fav_new(keep => 1), ARRAY[1]::bigint[], NULL);
SELECT fav_add_at(fav_new(keep => 1), ARRAY[1]::bigint[], -2147483648);
SELECT fav_add_at(fav_add_at(fav_new(keep => 1), ARRAY[1]::bigint[], 1), ARRAY['x'], 1);
SELECT fav_expire(fav_new(), 1);
SELECT fav_add(fav_new(keep => 1), 1);
SELECT fav_add(fav_new(keep => 1), ARRAY[1, 2]::bigint[]);
SELECT fav_union(fav_new(keep => 1), fav_new(keep => 2));
SELECT fav_union(fav_new(keep => 1), fav_new());
SELECT fav_union_agg(f) FROM (VALUES (fav_add_at(fav_new(keep => 1), ARRAY[1]::bigint[], 1)), (fav_add(NULL, 1))) v (f);
SELECT fav_expire(NULL, 1) IS NULL AS expire, fav_add_at(NULL, NULL::bigint[], 1) IS NULL AS add_at, fav_new(NULL) IS NULL AS new, (fav_stats(fav_new())).keep IS NULL AS undated;

-- Large sets: 200 elements a day for 100 days, kept for 30; some come again 20 days later
CREATE TEMP TABLE seen (day int, element bigint);
INSERT INTO seen SELECT d, d * 1000 + i FROM generate_series(1, 100) d, generate_series(1, 200) i;
INSERT INTO seen SELECT day + 20, element FROM seen WHERE element % 10 = 0 AND day <= 80;
CREATE TEMP TABLE filters (day int, f fav);
DO $$
DECLARE
	f fav := fav_new(keep => 30);
BEGIN
	FOR d IN 1 .. 100 LOOP
		f := fav_add_at(f, (SELECT array_agg(element ORDER BY element) FROM seen WHERE day = d), d);
		INSERT INTO filters VALUES (d, f);
	END LOOP;
END $$;
CREATE TEMP VIEW wrong AS
SELECT f.day, count(*) FILTER (WHERE s.last + 30 >= f.day AND NOT fav_contains(f, element)) AS lost,
	count(*) FILTER (WHERE s.last + 33 < f.day) AS old, count(*) FILTER (WHERE s.last + 33 < f.day AND fav_contains(f, element)) AS remembered
FROM filters f CROSS JOIN LATERAL (SELECT element, max(day) FILTER (WHERE day <= f.day) AS last FROM seen GROUP BY element) s
GROUP BY f.day;
SELECT sum(lost) AS lost, sum(remembered) <= 0.01 * sum(old) AS forgotten_within_the_rate FROM wrong WHERE day % 10 = 0;
-- the size is steady, and so is the count: 31 to 34 days of 200, and what came again
SELECT max(bytes) FILTER (WHERE day > 60) <= 1.1 * max(bytes) FILTER (WHERE day BETWEEN 35 AND 60) AS steady,
	min(elements) FILTER (WHERE day > 60) > 6000 AND max(elements) FILTER (WHERE day > 60) < 8000 AS count, max(slices) <= 12 AS slices,
	max(estimated_error) <= 0.01 AS error, bool_or(needs_rebuild) AS needs_rebuild, max(newest) AS newest, max(oldest) BETWEEN 65 AND 70 AS oldest,
	max(periods) BETWEEN 31 AND 35 AS periods
FROM filters, fav_stats(f);
SELECT bool_and(last_period - first_period BETWEEN 0 AND 3 AND last_period + 30 >= day) AS spans FROM filters, fav_slices(f) WHERE day % 7 = 0;
SELECT first_period, last_period FROM fav_slices(fav_add(NULL, ARRAY(SELECT generate_series(1, 200))));
-- all is gone when the time has come
SELECT fav_contains_all(fav_expire(f, 130), ARRAY(SELECT element FROM seen WHERE day = 100)) AS last_day, (s.kind, s.elements, s.slices, s.recent, s.tombstones, s.oldest, s.newest)
FROM filters, fav_stats(fav_expire(f, 131)) s WHERE day = 100;

-- Deletes hold, and leave nothing behind when their slice is forgotten
CREATE TEMP TABLE deleted AS SELECT fav_del(f, ARRAY(SELECT DISTINCT element FROM seen WHERE day BETWEEN 80 AND 90)) AS f FROM filters WHERE day = 100;
SELECT count(*) FILTER (WHERE day BETWEEN 80 AND 90 AND fav_contains(f, element)) AS deleted_found,
	count(*) FILTER (WHERE day > 90 AND fav_contains(f, element)) = count(*) FILTER (WHERE day > 90 AND NOT EXISTS (SELECT FROM seen b WHERE b.element = s.element AND b.day BETWEEN 80 AND 90)) AS others_found
FROM deleted, seen s WHERE day BETWEEN 80 AND 100;
SELECT (fav_stats(f)).tombstones > 0 AS tombstones, (fav_stats(fav_expire(f, 125))).tombstones < (fav_stats(f)).tombstones / 5 AS swept, (fav_stats(fav_expire(f, 140))).tombstones AS in_the_end FROM deleted;
-- what is deleted and comes again is found for all its time
SELECT p, count(*) FILTER (WHERE fav_contains(f, element)) FROM
	(SELECT fav_add_at(f, ARRAY(SELECT DISTINCT element FROM seen WHERE day = 85), 101) AS made FROM deleted) a, unnest(ARRAY[101, 131, 135]) p, fav_expire(made, p) f, (SELECT DISTINCT element FROM seen WHERE day = 85) s
GROUP BY p ORDER BY p;
-- what is excluded stays excluded, whatever is forgotten
SELECT fav_contains(f, 99001) AS excluded, (fav_stats(fav_expire(f, 1000))).tombstones FROM (SELECT fav_exclude(f, 99001) AS f FROM filters WHERE day = 100) a;

-- Unions: the newest period of both counts, and slices of the same span are merged
SELECT count(*) FILTER (WHERE s.day >= 70 AND NOT fav_contains(u, element)) AS lost, count(*) FILTER (WHERE s.day < 67 AND NOT again AND fav_contains(u, element)) <= 0.01 * count(*) FILTER (WHERE s.day < 67 AND NOT again) AS forgotten,
	bool_and((fav_stats(u)).newest = 100) AS newest
FROM (SELECT fav_union(a.f, b.f) AS u FROM filters a, filters b WHERE a.day = 60 AND b.day = 100) u, (SELECT *, element % 10 = 0 AND day <= 80 AS again FROM seen) s;
SELECT fav_union(a.f, b.f)::bytea = fav_union(b.f, a.f)::bytea AS small_ones_commute, fav_count(fav_union(a.f, b.f)) AS count, (fav_stats(fav_union(a.f, b.f))).recent
FROM (SELECT fav_add_at(fav_new(keep => 5), ARRAY[1, 2]::bigint[], 1) AS f) a, (SELECT fav_add_at(fav_new(keep => 5), ARRAY[3]::bigint[], 7) AS f) b;
SELECT fav_contains(u, 1) AS one, fav_contains(u, 2) AS two, fav_contains(fav_expire(u, 9), 1) AS one_later, (fav_stats(u)).newest
FROM (SELECT fav_union_agg(f) AS u FROM (VALUES (fav_add_at(fav_new(keep => 5), ARRAY[1]::bigint[], 3)), (fav_add_at(fav_new(keep => 5), ARRAY[2]::bigint[], 7)), (NULL)) v (f)) a;
-- the same elements again add nothing
SELECT (fav_stats(fav_union(f, f))).bytes = (fav_stats(f)).bytes AS same_size, fav_count(fav_union(f, f)) BETWEEN 0.95 * fav_count(f) AND 1.05 * fav_count(f) AS same_count FROM filters WHERE day = 100;

-- Text, binary and bytea forms carry the periods
SELECT bool_and(f::text::fav::bytea = f::bytea AND f::bytea::fav = f) AS same FROM filters;

-- Levels of dated filters are read in the newest period of all
CREATE TEMP TABLE levels AS SELECT p, fav_del(fav_add_at(fav_new(keep => 7), ARRAY(SELECT generate_series(1, 129)), 0), 129) AS base,
	fav_del(fav_add_at(fav_new(keep => 7), ARRAY(SELECT generate_series(1001, 1129)), 2), 1129) AS middle, fav_add_at(fav_new(keep => 7), ARRAY[2000]::bigint[], p) AS recent
FROM unnest(ARRAY[3, 7, 8, 9, 10]) p;
SELECT levels, p, fav_contains(stack, 1) AS in_base, fav_contains(stack, 1001) AS in_middle, fav_contains(stack, 2000) AS in_recent, slices, newest,
	fav_probe(base, middle, recent, 1) = fav_contains(stack, 1) AND fav_probe(base, middle, recent, 1001) = fav_contains(stack, 1001) AND fav_probe(base, middle, recent, 2000) = fav_contains(stack, 2000) AS same
FROM (SELECT p, 'all', base, middle, recent FROM levels UNION ALL SELECT p, 'no recent', base, middle, '\x01'::fav FROM levels WHERE p = 3
	UNION ALL SELECT p, 'no middle', base, '\x01'::fav, recent FROM levels UNION ALL SELECT p, 'no base', '\x01'::fav, middle, recent FROM levels) l (p, levels, base, middle, recent),
	LATERAL fav_stack(base, middle, recent) stack, LATERAL (SELECT slices, newest FROM fav_stats(stack)) s
ORDER BY levels, p;
SELECT fav_stack(fav_new(keep => 1), '\x01', fav_new(keep => 2));
