-- An excluded element is absent until it is added again, whether it was there or not, and no
-- other element is affected.

-- In an exact filter
SELECT f @> 1 AS excluded, f @> 2 AS other, fav_count(f) AS count, (fav_stats(f)).tombstones FROM fav_exclude(fav_add(NULL, ARRAY[1, 2, 3]), 1) f;
SELECT f @> 9 AS excluded, f @> 2 AS other, fav_count(f) AS count, (fav_stats(f)).tombstones FROM fav_exclude(fav_add(NULL, ARRAY[1, 2, 3]), 9) f;
SELECT f @> 1 AS "1", f @> 2 AS "2", f @> 9 AS "9", fav_count(f) AS count, (fav_stats(f)).tombstones
FROM fav_exclude(fav_add(NULL, ARRAY[1, 2, 3]), ARRAY[1, NULL, 9, 1]) f;
SELECT fav_contains(f, 1, 2) AS excluded, fav_contains(f, 2, 1) AS other, fav_count(f) AS count FROM fav_exclude(fav_add(fav_add(NULL, 1, 2), 2, 1), 1, 2) f;
SELECT fav_exclude(t, 'a') @> 'a' AS "text", fav_exclude(b, '\x61'::bytea) @> '\x61'::bytea AS "bytea", fav_exclude(u, u1) @> u1 AS "uuid",
	fav_contains_any(fav_exclude(t, ARRAY['a', 'b']), ARRAY['a', 'b']) AS "text[]"
FROM fav_add(NULL, ARRAY['a', 'b']) t, fav_add(NULL, '\x61'::bytea) b, (VALUES ('00000000-0000-0000-0000-000000000001'::uuid)) v (u1), fav_add(NULL, u1) u;
-- excluding again changes nothing
SELECT fav_exclude(f, 1) = f AS present, fav_exclude(f, 9) = f AS absent, fav_exclude(f, ARRAY[9, 1]) = f AS both
FROM fav_exclude(fav_add(NULL, ARRAY[1, 2, 3]), ARRAY[1, 9]) f;

-- In slices: 10,000 elements, and the false positives among a million others
CREATE TABLE exclude_from (f fav);
INSERT INTO exclude_from SELECT fav_agg(i, 0.01) FROM generate_series(1::bigint, 10000) i;
CREATE TEMP TABLE false_positives AS SELECT i FROM exclude_from, generate_series(10001::bigint, 1010000) i WHERE fav_contains(f, i);
SELECT (fav_stats(f)).slices, (SELECT count(*) BETWEEN 1000 AND 20000 FROM false_positives) AS some FROM exclude_from;
CREATE TABLE excluded AS
SELECT fav_exclude(fav_exclude(f, (SELECT array_agg(i) FROM false_positives)), ARRAY(SELECT generate_series(1::bigint, 1000))) AS f FROM exclude_from;
-- neither the false positives nor the excluded elements are there, all others are
SELECT count(*) FILTER (WHERE fav_contains(f, i)) AS found FROM excluded, false_positives;
SELECT i <= 1000 AS excluded, count(*) FILTER (WHERE fav_contains(f, i)) AS found FROM excluded, generate_series(1::bigint, 10000) i GROUP BY 1 ORDER BY 1;
SELECT fav_filter(f, ARRAY(SELECT generate_series(1::bigint, 1010000))) = ARRAY(SELECT generate_series(1::bigint, 1000)) || ARRAY(SELECT generate_series(10001::bigint, 1010000)) AS exact
FROM excluded;
-- no bit and no mark has changed: only the tombstones are new
SELECT e.bits_set = o.bits_set AS bits, e.clean_regions = o.clean_regions AS marks
FROM exclude_from, LATERAL fav_slices(exclude_from.f) o, excluded, LATERAL fav_slices(excluded.f) e;
SELECT (fav_stats(f)).tombstones = 1000 + (SELECT count(*) FROM false_positives) AS remembered,
	(fav_stats(f)).bytes - (SELECT (fav_stats(f)).bytes FROM exclude_from) = 8 * (fav_stats(f)).tombstones AS bytes FROM excluded;

-- Adding an element brings back that element alone
SELECT fav_contains(fav_add(f, i), i) AS back, fav_contains(fav_add(f, i), i % 1000 + 1) AS other, fav_contains(fav_add(f, ARRAY[i]), i) AS back_by_array
FROM excluded, (VALUES (500::bigint), ((SELECT min(i) FROM false_positives)), (123456789)) v (i);
WITH back AS MATERIALIZED (SELECT fav_add(f, ARRAY(SELECT generate_series(1::bigint, 1000))) AS f FROM excluded)
SELECT count(*) FILTER (WHERE NOT fav_contains(f, i)) AS missing FROM back, generate_series(1::bigint, 10000) i;
-- and it can be excluded and deleted again
SELECT fav_contains(fav_exclude(fav_add(f, 500), 500), 500) AS excluded, fav_contains(fav_del(fav_add(f, 500), 500), 500) AS deleted FROM excluded;

-- Deleting an excluded element changes nothing, so that no bit of another element is cleared
SELECT fav_del(f, ARRAY(SELECT generate_series(1::bigint, 1000))) = f AS elements,
	fav_del(f, (SELECT array_agg(i) FROM false_positives)) = f AS false_positives, fav_del(f, 500) = f AS one
FROM excluded;
-- other deletes work
WITH less AS MATERIALIZED (SELECT fav_del(f, ARRAY(SELECT generate_series(1001::bigint, 5000))) AS f FROM excluded)
SELECT i <= 5000 AS deleted, count(*) FILTER (WHERE fav_contains(f, i)) AS found FROM less, generate_series(1::bigint, 10000) i GROUP BY 1 ORDER BY 1;

-- Exclusions last through flushes and new slices
DO $$
DECLARE
	f fav := (SELECT excluded.f FROM excluded);
	wrong bigint[] := ARRAY(SELECT i FROM false_positives ORDER BY i LIMIT 500);
BEGIN
	FOR i IN 1..60 LOOP
		f := fav_add(f, ARRAY(SELECT 2000000 + 500 * i + generate_series(1, 500)::bigint));
		ASSERT NOT fav_contains_any(f, ARRAY(SELECT generate_series(1::bigint, 1000))), 'an excluded element is back';
		ASSERT NOT fav_contains_any(f, wrong), 'a false positive is back';
		ASSERT fav_contains_all(f, ARRAY(SELECT generate_series(1001::bigint, 10000))), 'an element is lost';
	END LOOP;
	ASSERT (fav_stats(f)).slices > 1, 'there is one slice only';
	ASSERT f::bytea::fav = f, 'the value is not valid';
END
$$;

-- A filter out of line gives the same results as in memory
SELECT pg_column_size(f) > 8192 AS out_of_line,
	(SELECT count(*) FROM generate_series(1::bigint, 20000) i WHERE fav_contains(f, i) <> fav_contains(f::bytea::fav, i)) AS differ FROM excluded;

-- Unions: an element that one side excludes is present if the other side reports it, and excluded otherwise
SELECT fav_union(a, b) @> 1 AS excluded_by_a, fav_union(a, b) @> 2 AS in_both, fav_union(a, b) @> 3 AS in_a, fav_union(a, b) @> 9 AS never_there,
	fav_union(b, a) @> 1 AS other_way, fav_union(a, fav_new()) = a AS with_empty
FROM fav_exclude(fav_add(NULL, ARRAY[1, 2, 3]), ARRAY[1, 9]) a, fav_exclude(fav_add(NULL, ARRAY[2, 4]), 9) b;
SELECT fav_union(a, b) @> 1 AS in_b, fav_union(b, a) @> 1 AS other_way FROM fav_exclude(fav_add(NULL, ARRAY[1, 2]), 1) a, fav_add(NULL, 1) b;
WITH united AS MATERIALIZED (SELECT fav_union(f, (SELECT fav_agg(i) FROM generate_series(3000001::bigint, 3005000) i)) AS f FROM excluded)
SELECT count(*) FILTER (WHERE i <= 1000 AND fav_contains(f, i)) < 50 AS excluded, count(*) FILTER (WHERE i > 1000 AND NOT fav_contains(f, i)) AS lost FROM united,
	(SELECT generate_series(1::bigint, 10000) UNION ALL SELECT generate_series(3000001::bigint, 3005000)) e (i);
WITH united AS MATERIALIZED (SELECT fav_union_agg(f) AS f FROM (SELECT f FROM excluded UNION ALL SELECT f FROM exclude_from) a)
SELECT count(*) FILTER (WHERE NOT fav_contains(f, i)) AS lost FROM united, generate_series(1::bigint, 10000) i;

-- A filter from which everything is excluded keeps its tombstones
SELECT fav_count(f) AS count, (fav_stats(f)).kind, (fav_stats(f)).tombstones, f::text::fav = f AS valid, f @> 1 AS "1", fav_add(f, 1) @> 1 AS back, fav_del(f, 1) = f AS deleted
FROM fav_exclude(fav_add(NULL, 1), 1) f;
-- adding an element again removes its tombstone
SELECT fav_add(f, 1) = fav_add(NULL, 1) AS same FROM fav_exclude(NULL, 1) f;

DROP TABLE exclude_from, excluded, false_positives;
