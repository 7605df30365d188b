-- Aggregates in parallel: really, and with the same bytes as in one process
CREATE TABLE rows AS SELECT i, i * 7919 AS n, i % 100 AS key FROM generate_series(1, 100000) i;
CREATE TABLE parts AS SELECT i / 50 AS part, fav_agg(n) f FROM rows GROUP BY 1;
INSERT INTO parts SELECT -1 - key, fav_agg(n) FROM rows WHERE key < 4 GROUP BY key;
ANALYZE rows, parts;

-- the nodes of a plan
CREATE FUNCTION plan_has(query text, node text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json, COSTS off) ' || query INTO plan;
	RETURN plan::text LIKE '%' || node || '%';
END
$$;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT plan_has('SELECT fav_agg(n) FROM rows', '"Partial Mode": "Partial"') AS partial,
	plan_has('SELECT fav_agg(n) FROM rows', '"Partial Mode": "Finalize"') AS finalize,
	plan_has('SELECT fav_agg(n) FROM rows', '"Node Type": "Gather"') AS gather;
SELECT plan_has('SELECT fav_union_agg(f) FROM parts', '"Partial Mode": "Partial"') AS partial;
SELECT plan_has('SELECT count(*) FROM rows WHERE fav_contains(fav_new(), n)', '"Node Type": "Gather"') AS gather;
CREATE TABLE parallel AS SELECT
	(SELECT fav_agg(n)::bytea FROM rows) AS numbers,
	(SELECT fav_agg(n::text, 0.001, 200000)::bytea FROM rows) AS texts,
	(SELECT fav_agg(n)::bytea FROM rows WHERE i <= 100) AS few,
	(SELECT fav_union_agg(f)::bytea FROM parts) AS united,
	(SELECT md5(string_agg(f::text, '' ORDER BY key)) FROM (SELECT key, fav_agg(n) f FROM rows GROUP BY key) g) AS grouped,
	(SELECT count(*) FROM rows WHERE fav_contains((SELECT fav_agg(n) FROM rows WHERE key = 7), n)) AS found;
SET max_parallel_workers_per_gather = 0;
SELECT plan_has('SELECT fav_agg(n) FROM rows', '"Partial Mode": "Partial"') AS partial;
SELECT
	(SELECT fav_agg(n)::bytea FROM rows) = numbers AS numbers,
	(SELECT fav_agg(n::text, 0.001, 200000)::bytea FROM rows) = texts AS texts,
	(SELECT fav_agg(n)::bytea FROM rows WHERE i <= 100) = few AS few,
	(SELECT fav_union_agg(f)::bytea FROM parts) = united AS united,
	(SELECT md5(string_agg(f::text, '' ORDER BY key)) FROM (SELECT key, fav_agg(n) f FROM rows GROUP BY key) g) = grouped AS grouped,
	found BETWEEN 1000 AND 2500 AS found
FROM parallel;
DROP TABLE rows, parts, parallel;
DROP FUNCTION plan_has;
