-- Sets of up to 128 elements are exact, and small.

-- n elements: all are found, none of 5,000 others is, the count is n, at most 64 + 8n bytes
CREATE TEMP TABLE filters AS
SELECT n, fav_add(fav_new(), ARRAY(SELECT generate_series(1, n))) AS f FROM generate_series(0, 128) n;
SELECT count(*) AS filters,
	count(*) FILTER (WHERE NOT fav_contains_all(f, ARRAY(SELECT generate_series(1, n)))) AS with_a_missing_element,
	count(*) FILTER (WHERE fav_contains_any(f, ARRAY(SELECT generate_series(n + 1, n + 5000)))) AS with_a_false_positive,
	count(*) FILTER (WHERE fav_count(f) <> n) AS miscounted,
	count(*) FILTER (WHERE pg_column_size(f) > 64 + 8 * n) AS too_large
FROM filters;

-- The same one row at a time, from the table
SELECT count(*) AS asked, count(*) FILTER (WHERE fav_contains(f, i) <> (i <= n)) AS wrong
FROM filters, generate_series(1, 200) i;

-- No false positive among many, whatever the type and the error rate
WITH careless AS MATERIALIZED (
	SELECT fav_add(fav_new(error_rate => 0.5), array_agg(-i)) AS n, fav_add(fav_new(error_rate => 0.5), array_agg((-i)::text)) AS t,
		fav_add(fav_new(error_rate => 0.5), array_agg(int8send(-i))) AS b, fav_agg(-i, i) AS p
	FROM generate_series(1::bigint, 128) i)
SELECT count(*) FILTER (WHERE fav_contains(n, i)) AS numbers,
	count(*) FILTER (WHERE fav_contains(t, i::text)) AS texts,
	count(*) FILTER (WHERE fav_contains(b, int8send(i))) AS bytes,
	count(*) FILTER (WHERE fav_contains(p, i, i)) AS pairs
FROM careless, generate_series(0::bigint, 99999) i;

-- A capacity does not make a small set larger
SELECT pg_column_size(fav_add(fav_new(capacity => 10000000), ARRAY(SELECT generate_series(1, 100)))) <= 64 + 800 AS small;

-- Such a value stays in its row
CREATE TEMP TABLE inline (hidden fav);
INSERT INTO inline SELECT f FROM filters WHERE n = 128;
SELECT pg_column_size(hidden) <= 64 + 8 * 128 AS small, pg_relation_size(reltoastrelid) AS toasted
FROM inline, pg_class WHERE oid = 'inline'::regclass;
DROP TABLE inline;

-- Element 129 makes the first slice, where false positives are possible; all elements are found
SELECT fav_contains_all(f, ARRAY(SELECT generate_series(1, 129))) AS found, fav_count(f) BETWEEN 127 AND 131 AS counted,
	(fav_stats(f)).slices AS slices
FROM (SELECT fav_add(f, 129) AS f FROM filters WHERE n = 128) a;

-- Deleting keeps the set exact: the result is as if the deleted elements had never been added
WITH two_thirds AS MATERIALIZED (SELECT fav_del(f, ARRAY(SELECT generate_series(3, 128, 3))) AS f FROM filters WHERE n = 128)
SELECT count(*) AS asked, count(*) FILTER (WHERE fav_contains(f, i) <> (i % 3 <> 0 AND i <= 128)) AS wrong
FROM two_thirds, generate_series(1, 20000) i;
SELECT f::bytea = fav_new()::bytea AS empty_again
FROM (SELECT fav_del(f, ARRAY(SELECT generate_series(1, 128))) AS f FROM filters WHERE n = 128) a;

DROP TABLE filters;
