-- A value stays below half a gigabyte, so that it can be dumped as text.  Every operation that
-- would make a larger one is an error that says what to do.  Nothing here needs much memory:
-- parameters alone show that a filter would be too large.

SELECT (fav_stats(fav_new(300000000))).capacity;
SELECT fav_new(400000000);
SELECT fav_new(9223372036854775807);
SELECT fav_new(50000000, 0.000001, 1);
SELECT fav_agg(i, 0.01, 400000000) FROM generate_series(1::bigint, 3) i;

-- A forged value whose first slice would be too large
CREATE FUNCTION with_capacity(f fav, capacity bigint) RETURNS fav LANGUAGE sql AS
$$ SELECT (overlay(b PLACING decode(string_agg(lpad(to_hex(capacity >> 8 * i & 255), 2, '0'), '' ORDER BY i), 'hex') FROM position(int8_le IN b)))::fav
FROM (SELECT f::bytea AS b, '\xe803000000000000'::bytea AS int8_le) v, generate_series(0, 7) i GROUP BY b, int8_le $$;
SELECT (fav_stats(with_capacity(fav_new(1000), 2000000000))).capacity;
CREATE TEMP TABLE too_large AS SELECT with_capacity(fav_add(fav_new(1000), ARRAY(SELECT generate_series(1, 100))), 2000000000) AS f;
-- it works up to 128 elements
SELECT fav_count(fav_add(f, ARRAY(SELECT generate_series(101, 128)))) FROM too_large;
SELECT fav_add(f, ARRAY(SELECT generate_series(101, 129))) FROM too_large;
SELECT fav_union(f, fav_add(fav_new(1000), ARRAY(SELECT generate_series(101, 200)))) FROM too_large;
SELECT fav_union_agg(f) FROM (SELECT f FROM too_large UNION ALL SELECT fav_add(fav_new(1000), ARRAY(SELECT generate_series(101, 200)))) a;
-- a variable keeps its value
DO $$
DECLARE
	f fav := (SELECT too_large.f FROM too_large);
	many bigint[] := ARRAY(SELECT generate_series(101, 110));
	n int := 0;
BEGIN
	f := fav_add(f, many);
	BEGIN
		FOR i IN 111..200 LOOP n := i; f := fav_add(f, i); END LOOP;
	EXCEPTION WHEN program_limit_exceeded THEN
		RAISE NOTICE '% with element %', SQLERRM, n;
	END;
	BEGIN
		f := fav_add(f, many || 200::bigint || 201::bigint);
	EXCEPTION WHEN program_limit_exceeded THEN
		RAISE NOTICE '% with an array', SQLERRM;
	END;
	ASSERT fav_count(f) = 128 AND fav_contains_all(f, ARRAY(SELECT generate_series(1, 128))), 'the variable has changed';
	f := fav_del(f, 1); f := fav_add(f, 129);
	ASSERT fav_count(f) = 128 AND fav_contains(f, 129), 'the variable cannot be used';
END
$$;
DROP TABLE too_large;
DROP FUNCTION with_capacity;
