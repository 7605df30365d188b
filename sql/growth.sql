-- Growth: no element is lost, the error rate holds, and the size stays within bounds.

-- From nothing, in steps of many sizes, to 100,000.  At each step all elements are found, and
-- at most 1 % of as many others (a fifth more is allowed for chance).
CREATE TEMP TABLE grown (n int, f fav);
DO $$
DECLARE
	f fav;
	n int := 0;
	step int := 1;
BEGIN
	WHILE n < 100000 LOOP
		step := least(step, 100000 - n);
		f := fav_add(f, ARRAY(SELECT generate_series(n + 1, n + step)));
		n := n + step;
		INSERT INTO grown VALUES (n, f);
		step := ceil(step * 1.7);
	END LOOP;
END
$$;
SELECT count(*) AS steps, max(n) AS elements, count(*) FILTER (WHERE NOT fav_contains_all(f, ARRAY(SELECT generate_series(1, n)))) AS with_a_missing_element
FROM grown;
SELECT count(*) AS steps,
	count(*) FILTER (WHERE n <= 128 AND wrong > 0) AS small_and_inexact,
	count(*) FILTER (WHERE n > 128 AND wrong > 20000 * 0.01 * 1.2) AS above_the_error_rate,
	count(*) FILTER (WHERE abs(fav_count(f) - n) > 0.03 * n) AS miscounted,
	count(*) FILTER (WHERE (fav_stats(f)).estimated_error > 0.01) AS estimated_above_the_error_rate
FROM (SELECT n, f, 20000 - cardinality(fav_filter(f, ARRAY(SELECT generate_series(1000001, 1020000)))) AS wrong FROM grown OFFSET 0) a;

-- The largest is out of line, has several slices, and is probed there
SELECT count(*) AS asked, count(*) FILTER (WHERE NOT fav_contains(f, i)) AS missing
FROM grown, generate_series(1, 100000) i WHERE n = 100000;
SELECT (fav_stats(f)).slices BETWEEN 4 AND 10 AS slices, pg_relation_size(reltoastrelid) > 0 AS toasted
FROM grown, pg_class WHERE n = 100000 AND oid = 'grown'::regclass;

-- One element at a time gives the same value as all at once
DO $$
DECLARE
	f fav;
BEGIN
	FOR i IN 1..5000 LOOP
		f := fav_add(f, i);
	END LOOP;
	ASSERT f::bytea = fav_add(NULL, ARRAY(SELECT generate_series(1, 5000)))::bytea;
END
$$;
DROP TABLE grown;

-- With a known capacity: one slice, at most 14 bits per element at 1 %
CREATE TEMP TABLE known AS
SELECT rate, fav_add(fav_new(100000, rate), ARRAY(SELECT generate_series(1, 100000))) AS f
FROM (VALUES (0.0001::float8), (0.001), (0.01), (0.05), (0.2)) v (rate);
SELECT rate::text, (fav_stats(f)).slices AS slices, fav_contains_all(f, ARRAY(SELECT generate_series(1, 100000))) AS all_found,
	200000 - cardinality(fav_filter(f, ARRAY(SELECT generate_series(1000001, 1200000)))) <= 200000 * rate * 1.2 AS within_the_error_rate,
	pg_column_size(f) * 8 / 100000.0 <= bits AS within_bits
FROM known JOIN (VALUES (0.0001::float8, 26), (0.001, 20), (0.01, 14), (0.05, 10), (0.2, 8)) v (rate, bits) USING (rate) ORDER BY rate;

-- Ten times as many elements as the capacity
SELECT fav_contains_all(f, ARRAY(SELECT generate_series(1, 100000))) AS all_found,
	100000 - cardinality(fav_filter(f, ARRAY(SELECT generate_series(1000001, 1100000)))) <= 100000 * 0.01 * 1.2 AS within_the_error_rate
FROM fav_add(fav_new(10000), ARRAY(SELECT generate_series(1, 100000))) f;
DROP TABLE known;

-- From nothing to a million: at most 28 bits per element
CREATE TEMP TABLE million AS SELECT fav_add(fav_new(), array_agg(i)) AS f FROM generate_series(1, 1000000) i;
SELECT pg_column_size(f) * 8 / 1000000.0 <= 28 AS within_bits, abs(fav_count(f) - 1000000) < 30000 AS counted,
	(fav_stats(f)).estimated_error <= 0.01 AS estimated_within_the_error_rate FROM million;
SELECT count(*) FILTER (WHERE NOT fav_contains(f, i)) AS missing FROM million, generate_series(1, 1000000) i;
SELECT count(*) FILTER (WHERE fav_contains(f, i)) <= 200000 * 0.01 * 1.2 AS within_the_error_rate
FROM million, generate_series(2000001, 2200000) i;
DROP TABLE million;

-- Every region size, from the smallest first slice
SELECT r AS region_size, fav_contains_all(f, ARRAY(SELECT generate_series(1, 5000))) AS all_found,
	20000 - cardinality(fav_filter(f, ARRAY(SELECT generate_series(1000001, 1020000)))) <= 20000 * 0.01 * 1.3 AS within_the_error_rate,
	fav_contains_any(fav_del(f, ARRAY(SELECT generate_series(1, 2000))), ARRAY(SELECT generate_series(1, 2000))) AS deleted_present,
	fav_contains_all(fav_del(f, ARRAY(SELECT generate_series(1, 2000))), ARRAY(SELECT generate_series(2001, 5000))) AS others_found
FROM generate_series(1, 31, 3) r, fav_add(fav_new(1, 0.01, r), ARRAY(SELECT generate_series(1, 5000))) f ORDER BY r;
