-- fav_cache: a bounded set that forgets the least recently added elements, and never claims what was not added.

-- The bytes of a value are the same everywhere and for ever
SELECT fav_cache_new(1000);
SELECT fav_cache_new(12000000, -1);
SELECT fav_add(fav_cache_new(1000), 42);
SELECT fav_add(fav_cache_new(1000, 1), ARRAY['a', 'b']);
SELECT fav_add(fav_cache_new(2), 1, 2);
SELECT length(c::bytea) AS bytes, md5(c::bytea), fav_count(c) FROM (VALUES (1, fav_add(fav_cache_new(1000), ARRAY(SELECT generate_series(1, 128)))),
	(2, fav_add(fav_cache_new(1000), ARRAY(SELECT generate_series(1, 129)))), (3, fav_add(fav_cache_new(1000), ARRAY(SELECT generate_series(1, 5000)))),
	(4, fav_add(fav_cache_new(100000, 7), ARRAY(SELECT 'post ' || generate_series(1, 200000))))) v (id, c) ORDER BY id;

-- Up to 128 elements it is exact: the newest are remembered, and adding again renews
SELECT fav_filter(fav_add(fav_cache_new(3), ARRAY[1, 2, 3, 4]), ARRAY[1, 2, 3, 4]) AS forgotten,
	fav_filter(fav_add(fav_cache_new(3), ARRAY[1, 2, 3, 1, 4]), ARRAY[1, 2, 3, 4]) AS renewed,
	fav_filter(fav_add(fav_del(fav_add(fav_cache_new(3), ARRAY[1, 2, 3]), 2), 4), ARRAY[1, 2, 3, 4]) AS after_delete,
	fav_filter(fav_cache_new(1) + 1 + 2 - 2, ARRAY[1, 2]) AS operators;
SELECT fav_count(fav_add(c, ARRAY(SELECT generate_series(1, 1000)))), fav_filter(fav_add(c, ARRAY(SELECT generate_series(1, 1000))), ARRAY(SELECT generate_series(872, 1000))) AS forgotten
FROM fav_cache_new(128) c;

-- A larger one remembers the newest half of its capacity, whatever came before, and nothing that was never added
CREATE TABLE caches (id int, c fav_cache);
INSERT INTO caches SELECT n, fav_add(fav_cache_new(n), ARRAY(SELECT generate_series(1, 10 * n))) FROM unnest(ARRAY[200, 1000, 10000, 100000]) n;
SELECT id, pg_column_size(c) / id AS bytes_per_element, fav_count(c) > id AS remembers_more, fav_contains_all(c, ARRAY(SELECT generate_series(10 * id - id / 2 + 1, 10 * id))) AS newest_half,
	cardinality(fav_filter(c, ARRAY(SELECT generate_series(9 * id + 1, 10 * id)))) < id / 50 + 5 AS newest,
	cardinality(fav_filter(c, ARRAY(SELECT generate_series(1, 5 * id)))) = 5 * id AS forgets,
	fav_contains_any(c, ARRAY(SELECT -generate_series(1, 100000))) AS claims
FROM caches ORDER BY id;

-- Deleting is exact, and what does not change is not written again
SELECT id, fav_contains_any(d, a) AS deleted, fav_count(c) - fav_count(d) = cardinality(a) AS others_remain,
	fav_del(d, a) = d AS again, fav_add(d, a[1]) <> d AS added, fav_add(fav_add(d, a[1]), a[1]) = fav_add(d, a[1]) AS newest_again
FROM caches, LATERAL (SELECT ARRAY(SELECT generate_series(10 * id - id / 2 + 1, 10 * id, 7)) AS a) s, LATERAL (SELECT fav_del(c, a) AS d) t ORDER BY id;
SELECT fav_del(fav_add(fav_cache_new(200), ARRAY(SELECT generate_series(1, 300))), ARRAY(SELECT generate_series(1, 300))) = fav_cache_new(200) AS empty_again;

-- The same answers by block, loaded and in memory
SELECT id, count(*) FILTER (WHERE fav_contains(c, g) <> fav_contains(c::bytea::fav_cache, g)) AS single FROM caches, generate_series(1, 1000000, 99991) g GROUP BY id ORDER BY id;
SET work_mem = '64kB';
SELECT count(*) AS probes, count(*) FILTER (WHERE fav_contains(c, 10 * id + d) <> (d <= 0)) AS wrong, count(*) FILTER (WHERE (c @> (10 * id + d)::text) <> (d <= 0)) AS wrong_text,
	count(*) FILTER (WHERE (10 * id + d)::bigint <@ c <> (d <= 0)) AS wrong_commuted
FROM caches, generate_series(-99, 500) d;
RESET work_mem;

-- NULL is an empty cache of capacity 1000, and a NULL element is no element
SELECT fav_contains(NULL::fav_cache, 1) AS contains, fav_contains_any(NULL::fav_cache, ARRAY[1]) AS "any", fav_contains_all(NULL::fav_cache, ARRAY[1]) AS "all",
	fav_filter(NULL::fav_cache, ARRAY[1, NULL, 2]) AS filter, fav_count(NULL::fav_cache) AS count, fav_del(NULL::fav_cache, 1) IS NULL AS del,
	fav_add(NULL::fav_cache, 1) = fav_add(fav_cache_new(1000), 1) AS add, fav_add(NULL::fav_cache, 1, 2) = fav_add(fav_cache_new(1000), 1, 2) AS pair,
	fav_cache_new(NULL) IS NULL AS new, fav_cache_stats(NULL) IS NULL AS stats;
SELECT fav_contains(c, NULL::bigint) IS NULL AS contains, fav_contains(c, NULL, 1) IS NULL AS pair, fav_contains_any(c, NULL::bigint[]) IS NULL AS "any", fav_contains_any(c, ARRAY[1, NULL]) AS any_1,
	fav_contains_any(c, ARRAY[2, NULL]) AS any_2, fav_contains_all(c, ARRAY[1, NULL]) AS all_1, fav_filter(c, NULL::bigint[]) IS NULL AS filter,
	fav_add(c, NULL::bigint) = c AND fav_add(c, NULL::bigint[]) = c AND fav_add(c, ARRAY[NULL]::bigint[]) = c AND fav_add(c, NULL, 1) = c AS add,
	fav_del(c, NULL::bigint) = c AND fav_del(c, NULL::bigint[]) = c AND fav_del(c, 1, NULL) = c AS del
FROM fav_add(fav_cache_new(10), 1) c;

-- Kinds, as of fav
SELECT fav_contains(c, '42') AS untyped, fav_contains(c, '42'::text) AS "text", c @> '43' AS other, fav_contains(c, 42::smallint) AS "smallint" FROM fav_add(fav_cache_new(10), 42) c;
SELECT fav_contains(c, u) AS uuid, fav_contains(c, u::text) AS "text", '6BA7B810-9DAD-11D1-80B4-00C04FD430C8' <@ c AS upper
FROM (VALUES ('6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid)) v (u), LATERAL fav_add(fav_cache_new(10), u) c;
SELECT fav_contains(fav_add(fav_cache_new(10), '\x00'::bytea), '\x00'::bytea) AS "bytea", fav_contains(fav_add(fav_cache_new(10), 1, 2), 1, 2) AS pair, fav_contains(fav_add(fav_cache_new(10), 1, 2), 2, 1) AS other_pair;
SELECT kind FROM unnest(ARRAY[fav_cache_new(10), fav_add(fav_cache_new(10), 1), fav_add(fav_cache_new(10), 'a'), fav_add(fav_cache_new(10), 1, 2), fav_del(fav_add(fav_cache_new(10), 'a'), 'a')]) WITH ORDINALITY u (c, n),
	fav_cache_stats(c) ORDER BY n;
SELECT fav_contains(fav_add(fav_cache_new(10), 42), 'x');
SELECT fav_add(fav_add(fav_cache_new(10), 'a'), 42);
SELECT fav_add(fav_add(fav_cache_new(10), 1, 2), ARRAY[42]);
SELECT fav_add(fav_cache_new(10), '{1,2}');
SELECT fav_contains(fav_add(fav_cache_new(10), ARRAY['{1,2}']), '{1,2}');

-- An argument without a type is a fav, as it is without this type
SELECT pg_typeof(fav_add(NULL, 1)) AS add, pg_typeof(fav_add(NULL, 'a')) AS add_text, pg_typeof(fav_add(NULL, ARRAY[1])) AS add_array, pg_typeof(fav_add(NULL, 1, 2)) AS add_pair,
	pg_typeof(fav_del(NULL, 1)) AS del, fav_count(NULL) AS count;
PREPARE untyped AS SELECT fav_contains($1, $2), fav_add($3, $4), fav_del($5, 1), $6 @> 1::bigint, $7 + 'a'::text, fav_filter($8, ARRAY[1]), fav_count($9), fav_contains($10, 1, 2);
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'untyped';
DEALLOCATE untyped;

-- What there is to say about a cache
SELECT id, s.capacity, s.kind, s.seed, s.used = fav_count(c) AS used, s.slots, s.bytes = length(c::bytea) + 4 AS bytes, s.eviction_rate BETWEEN 0.9 AND 1 AS full FROM caches, fav_cache_stats(c) s ORDER BY id;
SELECT s.* FROM (VALUES (1, fav_cache_new(1000)), (2, fav_add(fav_cache_new(50, -3), ARRAY(SELECT generate_series(1, 50)))), (3, fav_add(fav_cache_new(1000), ARRAY(SELECT generate_series(1, 500))))) v (id, c), fav_cache_stats(c) s ORDER BY id;

-- The aggregate: the order of the rows decides which are the newest
SELECT fav_filter(fav_cache_agg(g, 3 ORDER BY g), ARRAY[1, 2, 3, 4, 5]) AS ascending, fav_filter(fav_cache_agg(g, 3 ORDER BY g DESC), ARRAY[1, 2, 3, 4, 5]) AS descending,
	fav_cache_agg(g ORDER BY g) = fav_add(NULL::fav_cache, array_agg(g ORDER BY g)) AS same_as_add, fav_cache_agg(g, NULL) FILTER (WHERE false) IS NULL AS no_rows,
	fav_cache_agg(NULLIF(g, g)) = fav_cache_new(1000) AS nulls, fav_cache_agg(g::text, 100) @> '3' AS texts, fav_cache_agg(md5(g::text)::uuid, 100) @> md5('3')::uuid AS uuids,
	fav_cache_agg(int4send(g)) @> int4send(3) AS byteas, fav_contains(fav_cache_agg(g, g + 1, 100), 3, 4) AS pairs
FROM generate_series(1, 5) g;
SELECT fav_cache_agg(g, 200 ORDER BY g) = (SELECT c FROM caches WHERE id = 200) AS same_as_add FROM generate_series(1, 2000) g;
SELECT g, fav_filter(fav_cache_agg(g, 2) OVER (ORDER BY g), ARRAY[1, 2, 3, 4]) AS "window" FROM generate_series(1, 4) g;
SELECT fav_cache_agg(g, g) FROM generate_series(1, 2) g;
SELECT fav_cache_agg(g, NULL) FROM generate_series(1, 2) g;

-- In, out and comparing
CREATE TABLE copied (LIKE caches);
\copy caches TO 'results/cache.data' (FORMAT binary)
\copy copied FROM 'results/cache.data' (FORMAT binary)
\copy caches TO 'results/cache.data'
\copy copied FROM 'results/cache.data'
INSERT INTO copied SELECT id, c::bytea::fav_cache FROM caches;
SELECT count(*), count(DISTINCT c), count(*) FILTER (WHERE c = (SELECT c FROM caches o WHERE o.id = a.id)) AS equal FROM copied a;
SELECT count(*) AS groups FROM (SELECT c FROM copied GROUP BY c) a;
SELECT a < b AS "<", a <= b AS "<=", a = b AS "=", a <> b AS "<>", a >= b AS ">=", a > b AS ">", fav_cache_cmp(a, b), fav_cache_hash(a) = fav_cache_hash(b) AS same_hash
FROM (VALUES (fav_cache_new(10), fav_cache_new(10)), (fav_cache_new(10), fav_cache_new(11))) v (a, b);
CREATE INDEX ON caches USING hash (c);
SET enable_seqscan = off;
SELECT count(*) FROM caches a JOIN caches b ON a.c = b.c;
RESET enable_seqscan;
\set VERBOSITY terse
SELECT fav_cache_new(0);
SELECT fav_cache_new(12000001);
SELECT ''::fav_cache;
SELECT '\x0'::fav_cache;
SELECT '\xzz'::fav_cache;
\set VERBOSITY default
SELECT fav_add(NULL, 1)::bytea::fav_cache;
SELECT fav_add(NULL::fav_cache, 1)::bytea::fav;
SELECT set_byte(c::bytea, 16, 2)::fav_cache FROM fav_add(fav_cache_new(10), 1) c;
SELECT overlay(c::bytea PLACING substr(c::bytea, 21, 8) FROM 29)::fav_cache FROM fav_add(fav_cache_new(10), ARRAY[1, 2]) c;

-- In a loop and in statements as they are written
DO $$
DECLARE
	c fav_cache;
BEGIN
	FOR i IN 1 .. 2000 LOOP
		c := fav_add(c, i);
		ASSERT fav_contains(c, i);
	END LOOP;
	ASSERT c = (SELECT fav_cache_agg(g ORDER BY g) FROM generate_series(1, 2000) g);
END
$$;
CREATE TABLE reader (id int PRIMARY KEY, shown fav_cache);
INSERT INTO reader VALUES (1);
UPDATE reader SET shown = shown + 7;
UPDATE reader SET shown = fav_add(shown, ARRAY[8, 9]);
UPDATE reader SET shown = shown - 8;
SELECT p FROM reader, generate_series(6, 10) p WHERE NOT shown @> p ORDER BY p;
DROP TABLE caches, copied, reader;
