-- fav_union, ||, fav_union_agg
CREATE FUNCTION series(first bigint, last bigint) RETURNS fav LANGUAGE sql IMMUTABLE AS
	'SELECT fav_agg(i) FROM generate_series(first, last) i';
-- the number of elements of first .. last that the filter does not contain
CREATE FUNCTION lost(f fav, first bigint, last bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	'SELECT count(*) FROM generate_series(first, last) i WHERE NOT f @> i';

-- exact, mixed, and with slices of the same and of different sizes
SELECT fav_count(series(1, 50) || series(41, 100)), lost(series(1, 50) || series(41, 100), 1, 100);
SELECT fav_count(series(1, 100) || series(101, 200)) AS about_200, lost(series(1, 100) || series(101, 200), 1, 200);
SELECT lost(series(1, 5000) || series(5001, 5050), 1, 5050), lost(series(5001, 5050) || series(1, 5000), 1, 5050);
SELECT lost(series(1, 5000) || series(4001, 9000), 1, 9000), lost(series(1, 5000) || series(4001, 30000), 1, 30000);

-- slices of equal geometry are merged if the result is not too full, others are chained
SELECT slices, error_rate, elements BETWEEN 2900 AND 3100 AS counted FROM fav_stats(
	fav_add(fav_new(10000), ARRAY(SELECT generate_series(1, 2000))) ||
	fav_add(fav_new(10000), ARRAY(SELECT generate_series(1001, 3000))));
SELECT slices, error_rate, estimated_error < 0.02 AS as_promised FROM fav_stats(series(1, 5000) || series(5001, 10000));
SELECT slices, error_rate FROM fav_stats(series(1, 5000) || series(1, 5000));

-- NULL is empty
SELECT fav_union(NULL, NULL) IS NULL AS is_null, (NULL || series(1, 3)) @> 3 AS found, (series(1, 3) || NULL) @> 3 AS found;
SELECT (series(1, 3) || fav_new())::text = series(1, 3)::text AS same;

-- one side may contain an element that the other has deleted
WITH x AS (SELECT fav_del(series(1, 3000), ARRAY(SELECT generate_series(1, 1000))) a, series(500, 600) b)
SELECT lost(a || b, 500, 600), lost(b || a, 500, 600), lost(a || b, 1001, 3000),
	(SELECT count(*) FROM generate_series(1, 499) i WHERE a || b @> i) <= 15 AS deletes_hold
FROM x;
-- ... and on both sides
WITH x AS (SELECT fav_del(series(1, 3000), ARRAY(SELECT generate_series(1, 1500))) a,
	fav_del(series(1, 3000), ARRAY(SELECT generate_series(1001, 2500))) b)
SELECT lost(a || b, 1, 1000), lost(a || b, 1501, 3000),
	(SELECT count(*) FROM generate_series(1001, 1500) i WHERE a || b @> i) <= 15 AS deletes_hold
FROM x;
-- ... and after more adds and deletes
WITH x AS (SELECT fav_add(fav_del(series(1, 3000) || series(2000, 6000), ARRAY(SELECT generate_series(1900, 2100))),
	ARRAY(SELECT generate_series(7000, 9000))) f)
SELECT lost(f, 1, 1899), lost(f, 2101, 6000), lost(f, 7000, 9000),
	(SELECT count(*) FROM generate_series(1900, 2100) i WHERE f @> i) <= 15 AS deletes_hold
FROM x;

-- filters that cannot be united
SELECT fav_new(seed => 1) || fav_new(seed => -2);
SELECT fav_new(region_size => 3) || fav_new();
SELECT fav_union_agg(f) FROM (VALUES (fav_new(seed => 1)), (fav_new())) v(f);
SELECT fav_union_agg(f) FROM (VALUES (fav_new(region_size => 5)), (series(1, 1000))) v(f);

-- too many slices
SELECT fav_union_agg(series(i * 1000, i * 1000 + 300 + i * 100)) IS NULL FROM generate_series(1, 40) i;

-- the aggregate of filters
CREATE TABLE days AS SELECT d, series(d * 90, d * 90 + 99) f FROM generate_series(0, 99) d;
SELECT fav_count(fav_union_agg(f)), lost(fav_union_agg(f), 0, 9009) FROM days;
SELECT fav_union_agg(f)::bytea = series(0, 9009)::bytea AS same_as_fav_agg FROM days;
SELECT (SELECT fav_union_agg(f ORDER BY d)::bytea FROM days) = (SELECT fav_union_agg(f ORDER BY -d)::bytea FROM days) AS same;
SELECT fav_union_agg(f) IS NULL FROM days WHERE false;
SELECT fav_union_agg(NULL) IS NULL FROM days;
SELECT fav_count(fav_union_agg(CASE WHEN d < 2 THEN f END)) FROM days;
-- with slices, in any order
INSERT INTO days SELECT 100 + d, fav_add(fav_new(20000), ARRAY(SELECT generate_series(10000 + d * 1000, 10999 + d * 1000))) FROM generate_series(0, 9) d;
INSERT INTO days SELECT 200 + d, series(20000 + d * 1000, 20999 + d * 1000) FROM generate_series(0, 4) d;
SELECT lost(fav_union_agg(f), 0, 9009), lost(fav_union_agg(f), 10000, 24999) FROM days;
SELECT (SELECT fav_union_agg(f ORDER BY d)::bytea FROM days) = (SELECT fav_union_agg(f ORDER BY -d)::bytea FROM days) AS same;
SELECT d / 100 AS hundred, slices FROM (SELECT d / 100 * 100 AS d, fav_union_agg(f) f FROM days GROUP BY 1) g, fav_stats(f) ORDER BY 1;
WITH chosen AS (SELECT * FROM days WHERE d % 20 = 0 OR d >= 100)
SELECT bool_and(f = (SELECT fav_union_agg(f) FROM chosen WHERE d <= w.d)) AS same
FROM (SELECT d, fav_union_agg(f) OVER (ORDER BY d) AS f FROM chosen) w;
DROP TABLE days;
DROP FUNCTION series, lost;

-- Small filters beside a large one: their hashes are sorted, which must not crowd a few blocks of new slices
SELECT n, estimated_error < error_rate AS is_within_rate, bloat < 2 AS is_small FROM unnest('{200,2000}'::int[]) n,
	LATERAL (SELECT fav_union_agg(f) AS f FROM
		(SELECT fav_agg(i) AS f FROM generate_series(1, n) i UNION ALL SELECT fav_agg(i) FROM generate_series(10000, 40000) i GROUP BY i / 100) x) u, fav_stats(f);
