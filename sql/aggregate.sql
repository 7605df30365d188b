-- fav_agg: one filter of exactly the right size from many rows
CREATE TABLE numbers AS SELECT i, i * 7919 AS n FROM generate_series(1, 20000) i;

-- every kind of element: no element is lost
SELECT count(*) FILTER (WHERE NOT f @> n) AS lost
FROM numbers, (SELECT fav_agg(n::bigint) f FROM numbers) a;
SELECT count(*) FILTER (WHERE NOT f @> n) AS lost
FROM numbers, (SELECT fav_agg(n) f FROM numbers) a;
SELECT count(*) FILTER (WHERE NOT f @> n::text) AS lost
FROM numbers, (SELECT fav_agg(n::text) f FROM numbers) a;
SELECT count(*) FILTER (WHERE NOT f @> n::text) AS lost
FROM numbers, (SELECT fav_agg(n::varchar) f FROM numbers) a;
SELECT count(*) FILTER (WHERE NOT f @> md5(n::text)::uuid) AS lost
FROM numbers, (SELECT fav_agg(md5(n::text)::uuid) f FROM numbers) a;
SELECT count(*) FILTER (WHERE NOT f @> decode(md5(n::text), 'hex')) AS lost
FROM numbers, (SELECT fav_agg(decode(md5(n::text), 'hex')) f FROM numbers) a;

-- the count is exact, and size and error rate are within the promise
SELECT fav_count(f), pg_column_size(f) * 8.0 / 20000 <= 13.5 AS small,
	(SELECT count(*) FROM generate_series(1, 100000) x WHERE f @> -x) <= 1000 AS right_enough
FROM (SELECT fav_agg(n) f FROM numbers) a;
SELECT size, pg_column_size(f) * 8.0 / size <= 13.5 AS small
FROM unnest(ARRAY[10000, 30000, 100000]) size,
	LATERAL (SELECT fav_agg(i) f FROM generate_series(1, size) i) a;

-- up to 128 elements: exact, 8 bytes per element
SELECT fav_count(f), pg_column_size(f) <= 64 + 8 * 128 AS small, slices, recent
FROM (SELECT fav_agg(n) f FROM numbers WHERE i <= 128) a, fav_stats(f);
SELECT count(*) FILTER (WHERE f @> n) AS found
FROM numbers, (SELECT fav_agg(n) f FROM numbers WHERE i <= 128) a;
SELECT fav_count(f), slices, recent
FROM (SELECT fav_agg(n) f FROM numbers WHERE i <= 129) a, fav_stats(f);

-- duplicates cost nothing
SELECT (SELECT fav_agg(n)::bytea FROM numbers) =
	(SELECT fav_agg(n)::bytea FROM numbers, generate_series(1, 5)) AS same;
SELECT fav_count(fav_agg(i % 10)) FROM generate_series(1, 100000) i;

-- the order of the rows does not matter
SELECT (SELECT fav_agg(n ORDER BY n)::bytea FROM numbers) =
	(SELECT fav_agg(n ORDER BY -n)::bytea FROM numbers) AS same;
SELECT (SELECT fav_agg(n ORDER BY n)::bytea FROM numbers WHERE i <= 100) =
	(SELECT fav_agg(n ORDER BY -n)::bytea FROM numbers WHERE i <= 100) AS same;

-- NULLs are ignored; no rows give NULL; only NULLs give an empty filter
SELECT fav_count(fav_agg(nullif(i % 3, 0))) FROM generate_series(1, 9) i;
SELECT fav_agg(n) IS NULL AS is_null FROM numbers WHERE false;
SELECT fav_count(fav_agg(NULL::bigint)), fav_agg(NULL::bigint)::text = fav_new()::text AS empty FROM numbers;

-- error rate and capacity
SELECT error_rate, capacity, slices FROM fav_stats((SELECT fav_agg(n, 0.001) FROM numbers));
SELECT error_rate, capacity, slices FROM fav_stats((SELECT fav_agg(n, 0.05, 50000) FROM numbers));
SELECT error_rate, capacity, slices FROM fav_stats((SELECT fav_agg(n, 0.05, 50000) FROM numbers WHERE i < 10));
SELECT error_rate, capacity, slices FROM fav_stats((SELECT fav_agg(n, 0.05, 10) FROM numbers));
SELECT pg_column_size(fav_agg(n, 0.001)) > pg_column_size(fav_agg(n, 0.01)) AS larger FROM numbers;
SELECT (SELECT count(*) FROM generate_series(1, 100000) x WHERE f @> -x) <= 130 AS right_enough
FROM (SELECT fav_agg(n, 0.001) f FROM numbers) a;
SELECT fav_agg(n, 0.0) FROM numbers;
SELECT fav_agg(n, 'NaN') FROM numbers;
SELECT fav_agg(n, 0.6) FROM numbers;
SELECT fav_agg(n, 0.01, 0) FROM numbers;
SELECT fav_agg(n, 0.01 + n / 1e9) FROM numbers WHERE i <= 2;
SELECT fav_agg(n, 0.01, i) FROM numbers WHERE i <= 2;

-- two integers of any type are a pair; a second argument that is a fraction or has no type is an error rate
SELECT (fav_stats(fav_agg(i2, i2))).kind, (fav_stats(fav_agg(i2, i4))).kind, (fav_stats(fav_agg(i2, i8))).kind,
	(fav_stats(fav_agg(i4, i2))).kind, (fav_stats(fav_agg(i4, i4))).kind, (fav_stats(fav_agg(i4, i8))).kind,
	(fav_stats(fav_agg(i8, i2))).kind, (fav_stats(fav_agg(i8, i4))).kind, (fav_stats(fav_agg(i8, i8))).kind
FROM (SELECT i::smallint AS i2, i AS i4, i::bigint AS i8 FROM generate_series(-5, 5) i) v;
SELECT fav_agg(i4, i4) = f AND fav_agg(i8, i4) = f AND fav_agg(i4, i8) = f AND fav_agg(i2, i2) = f AND fav_agg(i8, i2) = f AS same,
	fav_contains(f, -5, -5) AS found
FROM (SELECT i::smallint AS i2, i AS i4, i::bigint AS i8 FROM generate_series(-5, 5) i) v,
	(SELECT fav_agg(i::bigint, i::bigint) AS f FROM generate_series(-5, 5) i) expected GROUP BY f;
SELECT (fav_stats(fav_agg(i2, 0.01))).kind, (fav_stats(fav_agg(i4, 0.01))).kind, (fav_stats(fav_agg(i8, 0.01))).kind,
	(fav_stats(fav_agg(i8, f8))).error_rate AS f8, (fav_stats(fav_agg(i4, f4))).error_rate > 0.02 AS f4, (fav_stats(fav_agg(i4, n))).error_rate AS n,
	(fav_stats(fav_agg(i8, '0.02'))).error_rate AS untyped, (fav_stats(fav_agg(i4, NULL))).kind AS "null"
FROM (SELECT i::smallint AS i2, i AS i4, i::bigint AS i8, 0.05::float8 AS f8, 0.05::float4 AS f4, 0.05::numeric AS n FROM generate_series(-5, 5) i) v;
SELECT (fav_stats(fav_agg(i2, 0.01, i4))).capacity AS i2, (fav_stats(fav_agg(i4, 0.01, 1000))).capacity AS i4, (fav_stats(fav_agg(i8, 0.01, i8))).capacity AS i8,
	(fav_stats(fav_agg(t, 0.01, i2))).capacity AS t, (fav_stats(fav_agg(t, 0.01))).kind
FROM (SELECT 1000::smallint AS i2, 1000 AS i4, 1000::bigint AS i8, i::text AS t FROM generate_series(-5, 5) i) v;
SELECT fav_count(fav_agg(a, b)) FROM (VALUES (1, 2), (NULL, 2), (1, NULL), (1, 2), (2, 1)) v(a, b);
PREPARE with_rate AS SELECT error_rate FROM fav_stats((SELECT fav_agg(n, $1) FROM numbers));
EXECUTE with_rate(0.003);

-- an aggregated filter can be changed like any other
WITH a AS (SELECT fav_agg(n) f FROM numbers),
	b AS (SELECT fav_del(fav_add(f, ARRAY[-1, -2, -3]), ARRAY[-2, 7919]) f FROM a)
SELECT f @> -1 AS added, f @> -2 AS deleted, f @> 7919 AS deleted, f @> 15838 AS there FROM b;

-- FILTER, DISTINCT, GROUP BY, HAVING, window frames
SELECT fav_count(fav_agg(n) FILTER (WHERE i <= 50)), fav_count(fav_agg(DISTINCT n % 100)) FROM numbers;
SELECT i % 4 AS key, fav_count(fav_agg(n)) FROM numbers GROUP BY 1 HAVING fav_agg(n) @> 7919 ORDER BY 1;
SELECT i, fav_count(fav_agg(i % 4) OVER (ORDER BY i ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)) AS frame,
	fav_count(fav_agg(i) OVER (ORDER BY i)) AS growing,
	fav_agg(i) OVER (ORDER BY i) @> i - 1 AS previous
FROM generate_series(1, 5) i;
SELECT max(c), bool_and(inside) FROM (
	SELECT fav_count(fav_agg(i) OVER w) c, fav_agg(i) OVER w @> i inside
	FROM generate_series(1, 1000) i WINDOW w AS (ORDER BY i ROWS BETWEEN 300 PRECEDING AND CURRENT ROW)) x;
SELECT bool_and(f = (SELECT fav_agg(n % 700) FROM numbers WHERE i <= w.i)) AS same
FROM (SELECT i, fav_agg(n % 700) OVER (ORDER BY i) AS f FROM numbers WHERE i <= 1500) w WHERE i % 50 = 0;

-- many groups, also if the hash table does not fit in memory
SET work_mem = '64kB';
SELECT count(*), sum(fav_count(f)), count(*) FILTER (WHERE NOT (f @> first AND f @> last)) AS lost FROM (
	SELECT i % 5000 AS key, fav_agg(n) AS f, min(n) AS first, max(n) AS last FROM numbers GROUP BY 1) g;
SET enable_sort = off;
SELECT count(*), sum(fav_count(f)) FROM (
	SELECT i % 5000 AS key, fav_agg(n) f FROM numbers GROUP BY 1) g;
RESET enable_sort;

-- a small group needs little memory, and all small groups need the same
CREATE FUNCTION hashed(query text, OUT bytes bigint, OUT spilled boolean) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT json) ' || query INTO plan;
	plan := plan->0->'Plan';
	bytes := 1024 * (plan->>'Peak Memory Usage')::bigint;
	spilled := (plan->>'Disk Usage')::bigint > 0;
END
$$;
SET enable_sort = off;
SELECT spilled FROM hashed('SELECT i % 6000, fav_agg(n) FROM numbers WHERE i <= 18000 GROUP BY 1');
SET work_mem = '64MB';
SELECT spilled, bytes / 6000 <= 400 AS small FROM hashed('SELECT i % 6000, fav_agg(n) FROM numbers WHERE i <= 18000 GROUP BY 1');
RESET enable_sort;
RESET work_mem;
DROP FUNCTION hashed;

DROP TABLE numbers;
