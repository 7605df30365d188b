-- Parallel aggregates: the plan is parallel, and the bytes are the same as in one process
CREATE TABLE rows AS SELECT i, i * 7919 AS n, i % 100 AS key FROM generate_series(1, 100000) i;
CREATE TABLE filters AS SELECT i / 50 AS id, fav_agg(n) f FROM rows GROUP BY 1;
INSERT INTO filters SELECT -1 - key, fav_agg(n) FROM rows WHERE key < 4 GROUP BY key;
ANALYZE rows, filters;

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
SELECT plan_has('SELECT fav_union_agg(f) FROM filters', '"Partial Mode": "Partial"') AS partial;
SELECT plan_has('SELECT count(*) FROM rows WHERE fav_contains(fav_new(), n)', '"Node Type": "Gather"') AS gather;
CREATE TABLE parallel AS SELECT
	(SELECT fav_agg(n)::bytea FROM rows) AS numbers,
	(SELECT fav_agg(n::text, 0.001, 200000)::bytea FROM rows) AS texts,
	(SELECT fav_agg(n)::bytea FROM rows WHERE i <= 100) AS few,
	(SELECT fav_union_agg(f)::bytea FROM filters) AS united,
	(SELECT md5(string_agg(f::text, '' ORDER BY key)) FROM (SELECT key, fav_agg(n) f FROM rows GROUP BY key) g) AS grouped,
	(SELECT count(*) FROM rows WHERE fav_contains((SELECT fav_agg(n) FROM rows WHERE key = 7), n)) AS found;
SET max_parallel_workers_per_gather = 0;
SELECT plan_has('SELECT fav_agg(n) FROM rows', '"Partial Mode": "Partial"') AS partial;
SELECT
	(SELECT fav_agg(n)::bytea FROM rows) = numbers AS numbers,
	(SELECT fav_agg(n::text, 0.001, 200000)::bytea FROM rows) = texts AS texts,
	(SELECT fav_agg(n)::bytea FROM rows WHERE i <= 100) = few AS few,
	(SELECT fav_union_agg(f)::bytea FROM filters) = united AS united,
	(SELECT md5(string_agg(f::text, '' ORDER BY key)) FROM (SELECT key, fav_agg(n) f FROM rows GROUP BY key) g) = grouped AS grouped,
	found BETWEEN 1000 AND 2500 AS found
FROM parallel;

-- many elements, some of them twice, in two workers
CREATE TABLE many (i int, n int, key int) PARTITION BY RANGE (i);
CREATE TABLE many1 PARTITION OF many FOR VALUES FROM (0) TO (300000);
CREATE TABLE many2 PARTITION OF many FOR VALUES FROM (300000) TO (600001);
INSERT INTO many SELECT i, i * 3001, i % 2 FROM generate_series(1, 600000) i;
ANALYZE many;
\set rare '(SELECT fav_agg(CASE WHEN i = 600000 THEN 3001 ELSE n END)::bytea FROM many) AS rare'
\set often '(SELECT fav_agg(i % 400000)::bytea FROM many) AS often'
\set keys '(SELECT md5(string_agg(f::text, \'\' ORDER BY key)) FROM (SELECT key, fav_agg(n) f FROM many GROUP BY key) g) AS keys'
CREATE TABLE sent AS SELECT 'serial' AS mode, :rare, :often, :keys;
SET max_parallel_workers_per_gather = 2;
SELECT plan_has('SELECT fav_agg(n) FROM many', '"Node Type": "Gather"') AS gather;
CREATE TABLE sent2 AS SELECT 'hashed' AS mode, :rare, :often, :keys;
SET enable_hashagg = off;
SELECT plan_has('SELECT key, fav_agg(n) FROM many GROUP BY key', '"Node Type": "Sort"') AS sort;
CREATE TABLE sent3 AS SELECT 'sorted' AS mode, :rare, :often, :keys;
SET max_parallel_workers_per_gather = 0;
SET enable_partitionwise_aggregate = on;
CREATE TABLE sent4 AS SELECT 'partitions, sorted' AS mode, :rare, :often, :keys;
SET enable_hashagg = on;
SET enable_sort = off;
SELECT plan_has('SELECT key, fav_agg(n) FROM many GROUP BY key', '"Partial Mode": "Partial"') AS partial;
CREATE TABLE sent5 AS SELECT 'partitions, hashed' AS mode, :rare, :often, :keys;

-- repeatedly from the same states
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT x, md5(string_agg(f::text, '' ORDER BY key)) = (SELECT keys FROM sent) AS keys
FROM generate_series(1, 3) x LEFT JOIN (SELECT key, fav_agg(n) f FROM many GROUP BY key OFFSET 0) g ON x + key > 0
GROUP BY x ORDER BY x;
SELECT a.mode, a.rare = sent.rare AS rare, a.often = sent.often AS often, a.keys = sent.keys AS keys
FROM sent, (TABLE sent2 UNION ALL TABLE sent3 UNION ALL TABLE sent4 UNION ALL TABLE sent5) a
ORDER BY a.mode COLLATE "C";
SELECT fav_count(rare::fav) AS rare, fav_count(often::fav) AS often FROM sent;

-- in any place of the plan, repeatedly, two of them, and two aggregates with one state
RESET enable_partitionwise_aggregate;
RESET enable_sort;
CREATE TABLE expected AS SELECT fav_agg(n)::bytea AS n, fav_agg(i)::bytea AS i FROM many;
SET max_parallel_workers_per_gather = 2;
CREATE AGGREGATE twin(bigint) (sfunc = fav_agg_transition, stype = internal, combinefunc = fav_agg_combine,
	serialfunc = fav_agg_serialize, deserialfunc = fav_agg_deserialize, finalfunc = fav_agg_final, parallel = safe);
SELECT plan_has('SELECT fav_agg(n) FROM many', '"Partial Mode": "Finalize"') AS finalize;
SELECT a.n = e.n AS n, a.i = e.i AS i
FROM (SELECT fav_agg(n)::bytea AS n, fav_agg(i)::bytea AS i FROM many) a, expected e;
SELECT a.n = e.n AS n, a.twin = e.n AS twin
FROM (SELECT fav_agg(n::bigint)::bytea AS n, twin(n::bigint)::bytea AS twin FROM many) a, expected e;
SELECT a.n = e.n AS n FROM (SELECT fav_agg(n)::bytea AS n FROM many OFFSET 0) a, expected e;
SELECT a.n = e.n AS n, a.n = e.i AS i
FROM (SELECT fav_agg(n)::bytea AS n FROM many UNION ALL SELECT fav_agg(i)::bytea FROM many) a, expected e ORDER BY 1;
SELECT x, a.n = e.n AS n
FROM generate_series(1, 3) x LEFT JOIN (SELECT fav_agg(n)::bytea AS n FROM many OFFSET 0) a ON x > 0, expected e ORDER BY x;
\set VERBOSITY terse
SELECT fav_agg(n / (n - 600 * 3001)) FROM many;	-- ends in the middle of it
\set VERBOSITY default
SELECT a.n = e.n AS n FROM (SELECT fav_agg(n)::bytea AS n FROM many) a, expected e;
PREPARE again AS SELECT a.n = e.n AS n FROM (SELECT fav_agg(n)::bytea AS n FROM many) a, expected e;
EXECUTE again;
EXECUTE again;

-- the leader alone; without the leader; and with nothing to do for most workers
SET max_parallel_workers = 0;
EXECUTE again;
RESET max_parallel_workers;
SET parallel_leader_participation = off;
EXECUTE again;
RESET parallel_leader_participation;
SELECT fav_count(fav_agg(n)), fav_agg(n) @> 3001 AS there FROM many WHERE i <= 200000;
SELECT fav_agg(n) IS NULL AS is_null FROM many WHERE i < 0;
-- many small filters
SELECT plan_has('SELECT fav_union_agg(fav_add(NULL, n)) FROM many', '"Partial Mode": "Finalize"') AS finalize;
SELECT a.n = e.n AS n FROM (SELECT fav_union_agg(fav_add(NULL, n))::bytea AS n FROM many) a, expected e;

-- every kind of element, and fav_base
\set kinds '(SELECT fav_agg(n::bigint, i)::bytea FROM many WHERE i <= 3000) AS pairs, (SELECT fav_agg(n::text)::bytea FROM many WHERE i <= 3000) AS texts, (SELECT fav_agg(md5(n::text)::uuid)::bytea FROM many WHERE i <= 3000) AS uuids, (SELECT fav_agg(int4send(n))::bytea FROM many WHERE i <= 3000) AS bytes, (SELECT fav_base(n::bigint, 0.01, 7)::bytea FROM many) AS base'
SELECT plan_has('SELECT ' || :'kinds', '"Partial Mode": "Finalize"') AS finalize;
CREATE TABLE kinds AS SELECT :kinds;
SET max_parallel_workers_per_gather = 0;
SELECT p.pairs = s.pairs AS pairs, p.texts = s.texts AS texts, p.uuids = s.uuids AS uuids, p.bytes = s.bytes AS bytes, p.base = s.base AS base
FROM kinds p, (SELECT :kinds) s;
SET max_parallel_workers_per_gather = 2;

-- many small states, with hash tables that do not fit in memory on both sides
\set groups '(SELECT md5(string_agg(f::text, \'\' ORDER BY key)) FROM (SELECT i % 20000 AS key, fav_agg(n) f FROM many WHERE i <= 100000 GROUP BY 1) g)'
SET work_mem = '64kB';
SET enable_hashagg = on;
SET enable_sort = off;
SELECT plan_has('SELECT i % 20000 AS key, fav_agg(n) f FROM many WHERE i <= 100000 GROUP BY 1', '"Partial Mode": "Partial"') AS partial;
CREATE TABLE spilled AS SELECT :groups AS parallel;
RESET work_mem;
RESET enable_sort;
SET max_parallel_workers_per_gather = 0;
SELECT parallel = :groups AS same FROM spilled;
SET max_parallel_workers_per_gather = 2;

-- the serialized state of another aggregate is an error
CREATE AGGREGATE mixed(bigint) (sfunc = int8_avg_accum, stype = internal, combinefunc = fav_agg_combine,
	serialfunc = int8_avg_serialize, deserialfunc = fav_agg_deserialize, finalfunc = fav_agg_final, parallel = safe);
CREATE AGGREGATE mixed_union(bigint) (sfunc = int8_avg_accum, stype = internal, combinefunc = fav_union_combine,
	serialfunc = int8_avg_serialize, deserialfunc = fav_union_deserialize, finalfunc = fav_union_final, parallel = safe);
CREATE AGGREGATE mixed_agg(bigint) (sfunc = fav_agg_transition, stype = internal, combinefunc = fav_union_combine,
	serialfunc = fav_agg_serialize, deserialfunc = fav_union_deserialize, finalfunc = fav_union_final, parallel = safe);
\set VERBOSITY terse
SELECT mixed(n::bigint) FROM many;
SELECT mixed_union(n::bigint) FROM many;
\set VERBOSITY default
SELECT mixed_agg(n::bigint) FROM many;
DROP AGGREGATE mixed(bigint);
DROP AGGREGATE mixed_union(bigint);
DROP AGGREGATE mixed_agg(bigint);
DROP TABLE kinds, spilled;
DROP AGGREGATE twin(bigint);
DROP TABLE expected;
DROP TABLE rows, filters, parallel, many, sent, sent2, sent3, sent4, sent5;
DROP FUNCTION plan_has;
