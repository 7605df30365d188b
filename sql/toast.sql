-- Filters out of line: probed in the cache or block by block, always with the right result.

-- Filters of 10 to 100,000 elements (multiples of the filter's id), a third of them deleted
-- again; a few are in their row, most in the TOAST table.
CREATE TABLE toast_filters (id int PRIMARY KEY, n int, hidden fav);
INSERT INTO toast_filters
SELECT id, n, fav_del(fav_add(fav_new(), ARRAY(SELECT id * generate_series(1, n))), ARRAY(SELECT id * generate_series(3, n, 3)))
FROM (VALUES (1, 10), (2, 128), (3, 129), (4, 1000), (5, 3000), (6, 10000), (7, 30000), (8, 60000), (9, 100000)) v (id, n);
SELECT count(*) FILTER (WHERE pg_column_size(hidden) < 2000) AS in_the_row,
	count(*) FILTER (WHERE pg_column_size(hidden) > 65536) AS asked_by_blocks
FROM toast_filters;

-- The right result for element i: true, false, or NULL if both are allowed
CREATE FUNCTION toast_truth(id int, n int, i int) RETURNS boolean IMMUTABLE LANGUAGE sql AS
$$ SELECT CASE WHEN i % id = 0 AND i / id BETWEEN 1 AND n THEN i / id % 3 <> 0 END $$;

-- A column of a row: the filter is the same for all elements
SELECT id, count(*) AS asked, count(*) FILTER (WHERE fav_contains(hidden, i) <> toast_truth(id, n, i)) AS wrong
FROM toast_filters, generate_series(1, 3000) i GROUP BY id ORDER BY id;

-- The filter changes from row to row, with more filters than the cache keeps
SELECT count(*) AS asked, count(*) FILTER (WHERE fav_contains(hidden, i) <> toast_truth(id, n, i)) AS wrong
FROM (SELECT id, n, hidden, i FROM toast_filters, generate_series(1, 300) i ORDER BY i, id OFFSET 0) a;

-- Two filters in one expression, and in two
SELECT count(*) AS asked,
	count(*) FILTER (WHERE (NOT fav_contains(a.hidden, i) AND NOT fav_contains(b.hidden, i)) <> (NOT toast_truth(8, a.n, i) AND NOT toast_truth(9, b.n, i))) AS wrong
FROM toast_filters a, toast_filters b, generate_series(72, 72 * 500, 72) i WHERE a.id = 8 AND b.id = 9;

-- A scalar sub-select, a lateral one, a correlated one
SELECT count(*) AS asked, count(*) FILTER (WHERE fav_contains((SELECT hidden FROM toast_filters WHERE id = 9), i) <> toast_truth(9, 100000, i)) AS wrong
FROM generate_series(9, 9 * 3000, 9) i;
SELECT count(*) AS asked, sum(wrong) AS wrong FROM toast_filters,
	LATERAL (SELECT count(*) FILTER (WHERE fav_contains(hidden, i) <> toast_truth(id, n, i)) AS wrong FROM generate_series(id, id * 1000, id) i) s;
SELECT count(*) AS asked, count(*) FILTER (WHERE (SELECT fav_contains(f.hidden, i) FROM toast_filters f WHERE f.id = 1 + i % 9) <> toast_truth(1 + i % 9, n, i)) AS wrong
FROM generate_series(1, 2000) i, LATERAL (SELECT n FROM toast_filters WHERE id = 1 + i % 9) s;

-- Rescans of a join, whichever side is the inner one
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT count(*) AS asked, count(*) FILTER (WHERE fav_contains(hidden, i) <> toast_truth(id, n, i)) AS wrong
FROM generate_series(1, 500) i JOIN toast_filters ON id = 1 + i % 9;
SELECT count(*) AS asked, count(*) FILTER (WHERE fav_contains(hidden, i) <> toast_truth(id, n, i)) AS wrong
FROM generate_series(1, 500) i LEFT JOIN toast_filters ON id IN (6, 9);
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;

-- Prepared: another filter in each execution of the same plan
PREPARE toast_ask(int) AS
SELECT $1 AS id, count(*) AS asked, count(*) FILTER (WHERE fav_contains(hidden, i) <> toast_truth(id, n, i)) AS wrong
FROM toast_filters, generate_series(1, 200) i WHERE id = $1 GROUP BY id;
SET plan_cache_mode = force_generic_plan;
EXECUTE toast_ask(9);
EXECUTE toast_ask(8);
EXECUTE toast_ask(2);
EXECUTE toast_ask(9);
RESET plan_cache_mode;
DEALLOCATE toast_ask;

-- PL/pgSQL: a variable that is assigned again, in a DO block and in a function (where
-- the variable may hold the TOAST pointer itself)
CREATE FUNCTION toast_wrong(i int) RETURNS bigint STABLE LANGUAGE plpgsql AS $$
DECLARE
	r record;
	f fav;
	wrong bigint := 0;
BEGIN
	FOR r IN SELECT * FROM toast_filters ORDER BY id LOOP
		f := r.hidden;
		IF fav_contains(f, i) <> toast_truth(r.id, r.n, i) OR fav_contains(r.hidden, i) <> toast_truth(r.id, r.n, i) THEN
			wrong := wrong + 1;
		END IF;
	END LOOP;
	RETURN wrong;
END
$$;
SELECT sum(toast_wrong(i)) AS wrong FROM generate_series(1, 100) i;
DO $$ BEGIN FOR i IN 1..100 LOOP ASSERT toast_wrong(i) = 0; END LOOP; END $$;
DROP FUNCTION toast_wrong;

-- All array forms
SELECT id, fav_contains_all(hidden, there) AS "all", fav_contains_any(hidden, deleted) AS "any", fav_filter(hidden, there || deleted) = deleted AS filter
FROM toast_filters, LATERAL (SELECT array_agg(i) FILTER (WHERE i / id % 3 <> 0) AS there, array_agg(i) FILTER (WHERE i / id % 3 = 0) AS deleted
	FROM generate_series(id::bigint, id * n, id) i) a ORDER BY id;

-- The next statement of the transaction sees an UPDATE, a cursor that was opened before does
-- not; ROLLBACK undoes it
BEGIN;
DECLARE before CURSOR FOR
SELECT i, fav_contains(hidden, i) AS contains FROM toast_filters, generate_series(9, 45, 9) i WHERE id = 9 ORDER BY i;
FETCH 2 FROM before;
UPDATE toast_filters SET hidden = fav_del(fav_add(hidden, 27), ARRAY[9, 18, 36]) WHERE id = 9;
SELECT i, fav_contains(hidden, i) AS contains FROM toast_filters, generate_series(9, 45, 9) i WHERE id = 9 ORDER BY i;
FETCH ALL FROM before;
SAVEPOINT s;
UPDATE toast_filters SET hidden = fav_add(hidden, 9) WHERE id = 9;
SELECT fav_contains(hidden, 9) AS contains FROM toast_filters WHERE id = 9;
ROLLBACK TO s;
SELECT fav_contains(hidden, 9) AS contains FROM toast_filters WHERE id = 9;
ROLLBACK;
SELECT i, fav_contains(hidden, i) AS contains FROM toast_filters, generate_series(9, 45, 9) i WHERE id = 9 ORDER BY i;

-- A change in every step of a loop: no result comes from the old value
DO $$
DECLARE
	answer boolean;
BEGIN
	FOR i IN 1..40 LOOP
		UPDATE toast_filters SET hidden = CASE WHEN i % 2 = 1 THEN fav_del(hidden, 8) ELSE fav_add(hidden, 8) END WHERE id = 8;
		SELECT fav_contains(hidden, 8) INTO answer FROM toast_filters WHERE id = 8;
		ASSERT answer = (i % 2 = 0);
	END LOOP;
END
$$;

-- Nothing changed, nothing written: an UPDATE with the same elements keeps the TOAST value
CREATE TEMP TABLE toast_before AS SELECT pg_relation_size(reltoastrelid) AS size FROM pg_class WHERE oid = 'toast_filters'::regclass;
UPDATE toast_filters SET hidden = fav_del(fav_del(hidden, -1), ARRAY[-2, -3]) WHERE id = 9;
UPDATE toast_filters SET hidden = fav_add(hidden, NULL::bigint) WHERE id = 9;
SELECT pg_relation_size(reltoastrelid) = size AS same FROM pg_class, toast_before WHERE oid = 'toast_filters'::regclass;
DROP TABLE toast_before, toast_filters;
DROP FUNCTION toast_truth;

-- A value of some megabytes is not loaded for one probe.  500,000 elements, a tenth of them
-- deleted, in one slice, so that blocks and runs of tombstones are fetched one by one.
CREATE TABLE toast_big (id int, f fav);
INSERT INTO toast_big
SELECT 1, fav_del(fav_add(fav_new(500000, 0.0001), array_agg(i)), array_agg(i) FILTER (WHERE i % 10 = 0)) FROM generate_series(1, 500000) i;
INSERT INTO toast_big SELECT 2, fav_del(fav_add(fav_new(1000, 0.001), array_agg(i)), array_agg(i) FILTER (WHERE i % 10 = 0)) FROM generate_series(1, 200000) i;
SELECT id, s.bytes > 700000 AS large, s.slices > 1 AS many_slices, s.tombstones > 1000 AS many_tombstones FROM toast_big, fav_stats(f) s ORDER BY id;

-- Few probes per statement, many statements: each result is that of the whole value
DO $$
DECLARE
	r record;
	whole fav;
	i bigint;
	wrong int;
BEGIN
	FOR r IN SELECT id, f FROM toast_big LOOP
		whole := r.f::bytea::fav;
		FOR batch IN 0..149 LOOP
			-- live and deleted elements, then some that were never added
			EXECUTE format('SELECT count(*) FROM toast_big, generate_series(%s, %s, %s) i, (VALUES ($1)) v (whole)
				WHERE id = %s AND (fav_contains(f, i) <> fav_contains(whole, i)
					OR fav_contains(f, i) <> (i %% 10 <> 0) AND i <= 100000)',
				CASE WHEN batch < 100 THEN batch * 1000 + 1 ELSE 1000000 + batch * 1000 END,
				CASE WHEN batch < 100 THEN batch * 1000 + 1 ELSE 1000000 + batch * 1000 END + 7 * 20, 7, r.id) INTO wrong USING whole;
			ASSERT wrong = 0, format('%s wrong answers in batch %s of filter %s', wrong, batch, r.id);
		END LOOP;
		-- deleted elements only
		FOR batch IN 0..49 LOOP
			EXECUTE format('SELECT count(*) FROM toast_big, generate_series(%s, %s, 10) i WHERE id = %s AND fav_contains(f, i)',
				batch * 3010 + 10, batch * 3010 + 160, r.id) INTO wrong;
			ASSERT wrong = 0, format('%s deleted ones present in batch %s of filter %s', wrong, batch, r.id);
		END LOOP;
	END LOOP;
END
$$;

-- From single blocks to the whole value within one statement
SELECT id, count(*) AS asked, count(*) FILTER (WHERE fav_contains(f, i) <> (i % 10 <> 0)) AS wrong
FROM toast_big, generate_series(1, 20000) i GROUP BY id ORDER BY id;

-- A probe reads a few pages; a thousand probes read at most twice the pages of the value
CREATE FUNCTION toast_pages(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint;
END
$$;
SELECT toast_pages('SELECT fav_contains(f, 42) FROM toast_big WHERE id = 1') < 40 AS one,
	toast_pages('SELECT count(*) FROM toast_big, generate_series(1, 10000) i WHERE id = 1 AND fav_contains(f, i)') <
	3 * toast_pages('SELECT length(f::bytea::text) FROM toast_big WHERE id = 1') AS many;
DROP FUNCTION toast_pages;
DROP TABLE toast_big;

-- Other ways to store it.  A filter with many free bits is mostly zeros, so it compresses well.
CREATE TABLE toast_storage (way text PRIMARY KEY, small fav, large fav);
CREATE TEMP TABLE toast_values AS
SELECT fav_add(fav_new(3000), ARRAY(SELECT generate_series(1, 1500))) AS small,
	fav_add(fav_new(1000000), ARRAY(SELECT generate_series(1, 1500))) AS large;
INSERT INTO toast_storage SELECT 'external', small, large FROM toast_values;
ALTER TABLE toast_storage ALTER small SET STORAGE extended, ALTER large SET STORAGE extended;
INSERT INTO toast_storage SELECT 'extended', small::bytea::fav, large::bytea::fav FROM toast_values;
ALTER TABLE toast_storage ALTER small SET STORAGE main, ALTER large SET STORAGE main;
INSERT INTO toast_storage SELECT 'main', small::bytea::fav, large::bytea::fav FROM toast_values;
ALTER TABLE toast_storage ALTER small SET STORAGE plain, ALTER large SET STORAGE external;
INSERT INTO toast_storage SELECT 'plain', small::bytea::fav, large::bytea::fav FROM toast_values;
SELECT way, pg_column_size(large) < (fav_stats(large)).bytes / 2 AS compressed, small::bytea = v_small::bytea AND large::bytea = v_large::bytea AS same
FROM toast_storage, (SELECT small AS v_small, large AS v_large FROM toast_values) v ORDER BY way;
SELECT way, count(*) FILTER (WHERE fav_contains(small, i) <> (i <= 1500)) < 30 AS small_right, count(*) FILTER (WHERE fav_contains(large, i) <> (i <= 1500)) AS large_wrong,
	count(*) FILTER (WHERE NOT fav_contains(small, i) AND i <= 1500) AS missing
FROM toast_storage, generate_series(1, 3000) i GROUP BY way ORDER BY way;
UPDATE toast_storage SET small = fav_del(fav_add(small, -1), 1), large = fav_del(fav_add(large, -1), 1);
SELECT way, fav_contains(small, -1) AND fav_contains(large, -1) AS added, fav_contains(small, 1) OR fav_contains(large, 1) AS deleted,
	fav_contains_all(small, ARRAY(SELECT generate_series(2, 1500))) AND fav_contains_all(large, ARRAY(SELECT generate_series(2, 1500))) AS others
FROM toast_storage ORDER BY way;
DROP TABLE toast_storage, toast_values;
