-- Arrays of elements: one operation with the same result as one call per element.

-- With NULLs, without elements, with several dimensions, with other lower bounds
SELECT fav_count(fav_add(NULL, ARRAY[1, NULL, 2])) AS nulls, fav_count(fav_add(NULL, ARRAY[NULL]::bigint[])) AS only_null,
	fav_count(fav_add(NULL, '{}'::bigint[])) AS none, fav_count(fav_add(NULL, ARRAY[[1, 2], [3, 4]])) AS matrix,
	fav_count(fav_add(NULL, '[5:7]={1,2,3}'::bigint[])) AS from_five, fav_count(fav_add(NULL, ARRAY[1, 1, 1])) AS same;
SELECT fav_add(NULL, ARRAY[[1, 2], [3, 4]])::bytea = fav_add(NULL, ARRAY[1, 2, 3, 4])::bytea AS matrix_add,
	fav_del(f, ARRAY[[1, 2], [3, 4]])::bytea = fav_new()::bytea AS matrix_del,
	fav_del(f, ARRAY[1, NULL])::bytea = fav_add(NULL, ARRAY[2, 3, 4])::bytea AS null_del,
	fav_del(f, '{}'::bigint[])::bytea = f::bytea AS none_del
FROM fav_add(NULL, ARRAY[1, 2, 3, 4]) f;

-- Adding an array gives the same bytes as adding its elements one by one
CREATE TEMP TABLE made (n int, at_once fav, one_by_one fav);
DO $$
DECLARE
	n int;
	f fav;
BEGIN
	FOREACH n IN ARRAY ARRAY[0, 1, 127, 128, 129, 256, 257, 1000, 5000] LOOP
		f := fav_new();
		FOR i IN 1..n LOOP
			f := fav_add(f, i * i);
		END LOOP;
		INSERT INTO made VALUES (n, fav_add(fav_new(), ARRAY(SELECT i * i FROM generate_series(1, n) i)), f);
	END LOOP;
END
$$;
SELECT n, at_once::bytea = one_by_one::bytea AS same FROM made ORDER BY n;

-- The same for deletes
DO $$
DECLARE
	f fav := (SELECT one_by_one FROM made WHERE n = 5000);
BEGIN
	FOR i IN 1..5000 BY 3 LOOP
		f := fav_del(f, i * i);
	END LOOP;
	UPDATE made SET one_by_one = f, at_once = fav_del(at_once, ARRAY(SELECT i * i FROM generate_series(1, 5000, 3) i)) WHERE n = 5000;
END
$$;
SELECT n, at_once::bytea = one_by_one::bytea AS same, (fav_stats(at_once)).tombstones > 0 AS some_tombstones FROM made WHERE n = 5000;
DROP TABLE made;

-- Any and all are OR and AND of the single results, with NULLs
SELECT a::text AS elements, fav_contains_any(f, a) AS "any", fav_contains_all(f, a) AS "all",
	(SELECT bool_or(c) OR (CASE WHEN bool_or(c IS NULL) THEN NULL ELSE false END) FROM (SELECT fav_contains(f, e) FROM unnest(a) e) s (c)) IS NOT DISTINCT FROM
		CASE WHEN a = '{}' THEN NULL ELSE fav_contains_any(f, a) END AS as_or,
	(SELECT bool_and(c) AND (CASE WHEN bool_or(c IS NULL) THEN NULL ELSE true END) FROM (SELECT fav_contains(f, e) FROM unnest(a) e) s (c)) IS NOT DISTINCT FROM
		CASE WHEN a = '{}' THEN NULL ELSE fav_contains_all(f, a) END AS as_and
FROM fav_add(NULL, ARRAY[1, 2]) f,
	(VALUES ('{}'::bigint[]), ('{1}'), ('{3}'), ('{1,2}'), ('{1,3}'), ('{3,4}'), ('{NULL}'),
		('{1,NULL}'), ('{NULL,1}'), ('{3,NULL}'), ('{NULL,3}'), ('{1,3,NULL}'), ('{{1,2},{1,3}}')) v (a);

-- fav_filter keeps the order and the repetitions of the elements that are absent; it drops NULLs
SELECT fav_filter(f, ARRAY[9, 1, 8, 2, 7, 8, NULL, 3]) AS feed, fav_filter(f, ARRAY[1, 2]) AS nothing_left,
	fav_filter(f, '{}'::bigint[]) AS nothing_to_begin_with, fav_filter(f, ARRAY[[9, 1], [2, 8]]) AS matrix,
	pg_typeof(fav_filter(f, ARRAY[1::smallint])) AS type
FROM fav_add(NULL, ARRAY[1, 2]) f;
SELECT fav_filter(fav_add(NULL, ARRAY['b', 'd']), ARRAY['d', 'c', 'b', NULL, 'a']) AS "text",
	fav_filter(fav_add(NULL, '\x02'::bytea), ARRAY['\x02', '\x01']::bytea[]) AS "bytea",
	fav_filter(fav_add(NULL, '00000000-0000-0000-0000-000000000002'::uuid),
		ARRAY['00000000-0000-0000-0000-000000000003', '00000000-0000-0000-0000-000000000002']::uuid[]) AS "uuid",
	pg_typeof(fav_filter(NULL, ARRAY['a']::varchar[])) AS type;

-- Slices after deletes: array forms and single calls agree
CREATE TEMP TABLE big AS
SELECT fav_del(fav_add(fav_new(), ARRAY(SELECT generate_series(1, 20000))), ARRAY(SELECT generate_series(1, 20000, 7))) AS f;
SELECT fav_filter(f, candidates) = ARRAY(SELECT i FROM unnest(candidates) WITH ORDINALITY c (i, n) WHERE NOT fav_contains(f, i) ORDER BY n) AS same,
	fav_filter(f, candidates) @> ARRAY(SELECT generate_series(1::bigint, 20000, 7)) AS deleted_are_kept
FROM big, (SELECT array_agg(i ORDER BY i % 101, i) AS candidates FROM generate_series(1::bigint, 30000) i) c;
SELECT fav_contains_all(f, ARRAY(SELECT i FROM generate_series(1, 20000) i WHERE i % 7 <> 1)) AS all_that_were_kept,
	fav_contains_any(f, ARRAY(SELECT generate_series(1, 20000, 7))) AS any_that_was_deleted
FROM big;
DROP TABLE big;

-- arrays of thousands of texts, uuids and byteas
CREATE TEMP TABLE thousands AS
SELECT fav_add(fav_new(2000), array_agg(i::text)) AS t, fav_add(fav_new(2000), array_agg(md5(i::text)::uuid)) AS u,
	fav_add(fav_new(2000), array_agg(int4send(i))) AS b
FROM generate_series(1, 2000) i;
SELECT count(*) FILTER (WHERE NOT t @> i::text) AS texts, count(*) FILTER (WHERE NOT u @> md5(i::text)::uuid) AS uuids,
	count(*) FILTER (WHERE NOT b @> int4send(i)) AS bytes
FROM thousands, generate_series(1, 2000) i;
UPDATE thousands SET t = fav_del(t, texts), u = fav_del(u, uuids), b = fav_del(b, bytes)
FROM (SELECT array_agg(i::text) AS texts, array_agg(md5(i::text)::uuid) AS uuids, array_agg(int4send(i)) AS bytes
	FROM generate_series(1, 2000, 2) i) half;
SELECT i % 2 AS deleted, count(*) FILTER (WHERE t @> i::text) AS texts, count(*) FILTER (WHERE u @> md5(i::text)::uuid) AS uuids,
	count(*) FILTER (WHERE b @> int4send(i)) AS bytes
FROM thousands, generate_series(1, 2000) i GROUP BY 1 ORDER BY 1;
DROP TABLE thousands;

-- An array of text is converted to the kind of the filter
SELECT fav_contains_all(f, '{1,2}'::text[]) AS "all", fav_contains_any(f, '{3,4}'::text[]) AS "any", fav_filter(f, '{2,3, 1}'::text[]) AS filter,
	fav_count(fav_add(f, '{2,3}'::text[])) AS added, fav_count(fav_del(f, '{2,3}'::text[])) AS deleted
FROM fav_add(NULL, ARRAY[1, 2]) f;
