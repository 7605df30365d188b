-- For the sections "turn" and "loop".

-- 1,000 filters of 5,000 elements each, none of which is a candidate.
CREATE TABLE turn_filters AS
	SELECT n, fav_agg(n * 1000000 + i) AS fav FROM generate_series(1::bigint, 1000) n, generate_series(1, 5000) i GROUP BY n;
ALTER TABLE turn_filters ADD PRIMARY KEY (n);
CREATE TABLE turn_candidates AS SELECT -i::bigint AS id FROM generate_series(1, 10000) i;
VACUUM (ANALYZE, FREEZE) turn_filters, turn_candidates;

-- A variable that is changed repeatedly: in place, and through an expression that makes every
-- server copy the value with each change.
CREATE FUNCTION loop_variable(elements int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	f fav;
BEGIN
	FOR i IN 1..elements LOOP f := fav_add(f, i); END LOOP;
	RETURN fav_count(f);
END
$$;
CREATE FUNCTION loop_copies(elements int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	f fav;
BEGIN
	FOR i IN 1..elements LOOP f := fav_add(fav_union(f, NULL), i); END LOOP;
	RETURN fav_count(f);
END
$$;
CREATE FUNCTION loop_nothing(elements int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	x bigint := 0;
BEGIN
	FOR i IN 1..elements LOOP x := x + i; END LOOP;
	RETURN x;
END
$$;
