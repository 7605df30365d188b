-- Filters are equal if their bytes are equal, wherever they are stored and however SQL compares them.

SELECT a = b AS "=", a <> b AS "<>", a < b AS "<", a <= b AS "<=", a > b AS ">", a >= b AS ">=", a IS DISTINCT FROM b AS is_distinct,
	fav_cmp(a, b) = -fav_cmp(b, a) AS antisymmetric, (fav_hash(a) = fav_hash(b)) AS same_hash, (fav_hash_extended(a, 7) = fav_hash_extended(b, 7)) AS same_hash_extended
FROM (VALUES (fav_new(), fav_new()), (fav_add(NULL, 1), fav_add(fav_new(), '1'::bigint)), (fav_add(NULL, 1), fav_add(NULL, 2)),
	(fav_add(NULL, 1), fav_add(NULL, '1')), (fav_new(), fav_new(seed => 1)), (fav_new(), fav_new(1001)), (fav_new(), fav_add(NULL, 1)),
	(fav_add(NULL, 1), fav_del(fav_add(NULL, ARRAY[1, 2]), 2)), (NULL, fav_new())) v (a, b);
SELECT NULL::fav = NULL::fav AS null_is_null, NULL::fav IS NOT DISTINCT FROM NULL::fav AS not_distinct, fav_hash_extended(fav_new(), 1) = fav_hash_extended(fav_new(), 2) AS seed_matters;

-- The same values in their rows and out of line, with compression and without.  Number 3
-- differs from 1 in one element at the end, 4 in its seed.
CREATE TABLE same (id int, way text, f fav);
CREATE TABLE compressed (id int, way text, f fav);
ALTER TABLE compressed ALTER f SET STORAGE MAIN;
CREATE TEMP TABLE made AS
SELECT size, n, v.* FROM (VALUES ('small', 50), ('sliced', 500), ('large', 50000)) s (size, n),
	LATERAL (VALUES (1, fav_add(fav_new(100000), ARRAY(SELECT generate_series(1, n)))), (2, fav_add(fav_new(100000), ARRAY(SELECT generate_series(1, n)))),
		(3, fav_add(fav_new(100000), ARRAY(SELECT generate_series(1, n - 1) UNION ALL SELECT 0))),
		(4, fav_add(fav_new(100000, seed => 1), ARRAY(SELECT generate_series(1, n))))) v (id, f);
INSERT INTO same SELECT id, size, f FROM made;
INSERT INTO compressed SELECT id, size, f FROM made;
CREATE TEMP VIEW all_ways AS
SELECT 'stored' AS kept, * FROM same UNION ALL SELECT 'compressed', * FROM compressed UNION ALL SELECT 'made', id, way, f::bytea::fav FROM same;
SELECT a.way, count(*) AS compared, count(*) FILTER (WHERE (a.f = b.f) <> (a.f::bytea = b.f::bytea)) AS wrong_equality,
	count(*) FILTER (WHERE (a.f <> b.f) <> (a.f::bytea <> b.f::bytea)) AS wrong_inequality,
	count(*) FILTER (WHERE sign(fav_cmp(a.f, b.f)) <> CASE WHEN a.f::bytea < b.f::bytea THEN -1 WHEN a.f::bytea > b.f::bytea THEN 1 ELSE 0 END) AS wrong_order,
	count(*) FILTER (WHERE a.f = b.f AND (fav_hash(a.f) <> fav_hash(b.f) OR fav_hash_extended(a.f, 3) <> fav_hash_extended(b.f, 3))) AS wrong_hash,
	count(*) FILTER (WHERE a.f = b.f) AS equal
FROM all_ways a JOIN all_ways b USING (way) GROUP BY a.way ORDER BY a.way;
SELECT count(*) FILTER (WHERE sign(fav_cmp(a.f, b.f)) <> CASE WHEN a.f::bytea < b.f::bytea THEN -1 WHEN a.f::bytea > b.f::bytea THEN 1 ELSE 0 END) AS wrong_order
FROM same a, compressed b WHERE a.way <> b.way;

-- Large values that differ only after their heads: a bit of the last block, moved
CREATE TABLE late (id int, f fav);
INSERT INTO late SELECT 1, f FROM same WHERE way = 'large' AND id = 1;
INSERT INTO late SELECT 2, overlay(b PLACING set_byte(set_byte('\x0000'::bytea, 0, get_byte(b, at + 1)), 1, get_byte(b, at)) FROM at + 1)::fav
FROM (SELECT f::bytea AS b FROM late) l, LATERAL (SELECT at FROM generate_series(length(b) - 4000, length(b) - 3000) at
	WHERE get_byte(b, at) <> get_byte(b, at + 1) AND (length(b) - at) % 32 > 2 ORDER BY at LIMIT 1) a;
SELECT a.f = b.f AS "=", a.f <> b.f AS "<>", fav_cmp(a.f, b.f) <> 0 AS compared, fav_hash(a.f) = fav_hash(b.f) AS same_hash,
	substr(a.f::bytea, 1, 5000) = substr(b.f::bytea, 1, 5000) AS same_head, pg_column_size(a.f) > 100000 AS large
FROM late a, late b WHERE a.id = 1 AND b.id = 2;
SELECT count(*) AS rows, count(DISTINCT f) AS filters FROM (SELECT f FROM late UNION ALL SELECT f FROM late UNION ALL SELECT f FROM same WHERE way = 'large' AND id = 2) a;

-- DISTINCT, GROUP BY, UNION, INTERSECT, EXCEPT, by sorting and by hashing
SET enable_hashagg = off;
SELECT way, count(DISTINCT f) FROM all_ways GROUP BY way ORDER BY way;
SELECT count(*) FROM (SELECT DISTINCT f FROM all_ways) a;
SELECT count(*) AS groups, sum(n) AS rows FROM (SELECT f, count(*) AS n FROM all_ways GROUP BY f) a;
SELECT count(*) FROM (SELECT f FROM same UNION SELECT f FROM compressed) a;
RESET enable_hashagg;
SET enable_sort = off;
SELECT count(*) FROM (SELECT DISTINCT f FROM all_ways) a;
SELECT count(*) AS groups, sum(n) AS rows FROM (SELECT f, count(*) AS n FROM all_ways GROUP BY f) a;
SELECT count(*) FROM (SELECT f FROM same UNION SELECT f FROM compressed) a;
SELECT count(*) FROM (SELECT f FROM same INTERSECT SELECT f FROM compressed WHERE id = 3) a;
SELECT count(*) FROM (SELECT f FROM same EXCEPT SELECT f FROM compressed WHERE id = 2) a;
RESET enable_sort;

-- Joins
CREATE FUNCTION is_planned_with(node text, query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan::text LIKE '%"' || node || '"%';
END
$$;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT is_planned_with('Hash Join', 'SELECT FROM same a JOIN compressed b ON a.f = b.f');
SELECT count(*) AS pairs, count(*) FILTER (WHERE a.f::bytea <> b.f::bytea) AS wrong FROM same a JOIN compressed b ON a.f = b.f;
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SELECT is_planned_with('Merge Join', 'SELECT FROM same a JOIN compressed b ON a.f = b.f');
SELECT count(*) AS pairs, count(*) FILTER (WHERE a.f::bytea <> b.f::bytea) AS wrong FROM same a JOIN compressed b ON a.f = b.f;
RESET enable_nestloop;
RESET enable_hashjoin;
RESET enable_mergejoin;
SELECT count(*) FROM same WHERE f IN (SELECT f FROM compressed WHERE id = 1);
SELECT way, array_agg(id ORDER BY f, id) = array_agg(id ORDER BY f::bytea, id) AS same_order FROM same GROUP BY way ORDER BY way;

-- Indexes: a btree for filters that fit a page, a hash for all
CREATE TABLE indexed (id int, f fav);
INSERT INTO indexed SELECT i, fav_add(NULL, i) FROM generate_series(1, 300) i;
CREATE UNIQUE INDEX indexed_btree ON indexed (f);
SET enable_seqscan = off;
SELECT is_planned_with('indexed_btree', 'SELECT id FROM indexed WHERE f = fav_add(NULL, 42)');
SELECT id FROM indexed WHERE f = fav_add(NULL, 42);
SELECT count(*) FROM indexed WHERE f < fav_add(NULL, 42) OR f >= fav_add(NULL, 42);
SELECT count(*) AS out_of_order FROM (SELECT f, lag(f) OVER (ORDER BY f) AS before FROM indexed) a WHERE before >= f;
INSERT INTO indexed VALUES (0, fav_add(NULL, 7));
-- a larger one does not fit in a btree, as with every type
DO $$
BEGIN
	INSERT INTO indexed SELECT -id, f FROM same WHERE way = 'large';
EXCEPTION WHEN program_limit_exceeded THEN
	RAISE NOTICE '%', regexp_replace(SQLERRM, '\d+', 'N', 'g');
END
$$;
DROP INDEX indexed_btree;
INSERT INTO indexed SELECT -id, f FROM same WHERE way = 'large';
CREATE INDEX indexed_hash ON indexed USING hash (f);
SELECT is_planned_with('indexed_hash', 'SELECT id FROM indexed WHERE f = fav_add(NULL, 42)');
SELECT id FROM indexed WHERE f = fav_add(NULL, 42);
SELECT id FROM indexed WHERE f = (SELECT f FROM compressed WHERE way = 'large' AND id = 3);
SELECT id FROM indexed WHERE f = (SELECT f FROM compressed WHERE way = 'large' AND id = 1) ORDER BY id;
RESET enable_seqscan;
DROP TABLE indexed;

-- Rows, arrays and windows
SELECT count(*) FROM (SELECT DISTINCT same.* FROM same) a;
SELECT count(*) FROM (SELECT same.* FROM same UNION SELECT compressed.* FROM compressed) a;
SELECT count(*) FILTER (WHERE a IS DISTINCT FROM b) AS distinct_rows, count(*) FILTER (WHERE a = b) AS same_rows, count(*) FILTER (WHERE a < b OR a > b) AS in_order
FROM same a JOIN compressed b USING (id, way);
SELECT count(DISTINCT ARRAY[f, NULL]) AS arrays, count(DISTINCT ROW(f, id % 2)) AS rows FROM all_ways;
SELECT ARRAY[a.f, b.f] = ARRAY[b.f, a.f] AS same, ARRAY[a.f] < ARRAY[b.f] AS less, a.f = ANY (ARRAY[b.f, a.f]) AS "any", a.f <> ALL (ARRAY[b.f, NULL]) AS "all",
	ARRAY[a.f, b.f] @> ARRAY[b.f] AS contains, ARRAY[a.f] && ARRAY[b.f] AS overlap, array_position(ARRAY[b.f, NULL, a.f], a.f) AS position, cardinality(array_remove(ARRAY[a.f, b.f], b.f)) AS removed
FROM fav_add(NULL, 1) a (f), fav_add(NULL, '1'::text) b (f);
SELECT array_agg(DISTINCT n ORDER BY n) AS partition_sizes FROM (SELECT count(*) OVER (PARTITION BY way, f) AS n FROM all_ways) a;
SELECT array_agg(DISTINCT n ORDER BY n) AS ranks FROM (SELECT dense_rank() OVER (PARTITION BY way ORDER BY f) AS n FROM all_ways) a;
SELECT count(*) FILTER (WHERE l.f IS NULL) AS without_left, count(*) FILTER (WHERE r.f IS NULL) AS without_right, count(*) AS all
FROM (SELECT f FROM same WHERE id < 4 UNION ALL SELECT NULL) l FULL JOIN (SELECT f FROM compressed WHERE id > 2 UNION ALL SELECT NULL) r ON l.f = r.f;

-- Out of line, a comparison loads only what it needs: nothing for values of different sizes or
-- for the same TOAST value, the heads for other values, everything for equal ones
CREATE FUNCTION toast_blocks(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	FOR i IN 1..2 LOOP
		EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ' || query INTO plan;
	END LOOP;
	RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::bigint + (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
END
$$;
CREATE TABLE apart AS SELECT id, f FROM same WHERE way = 'large' UNION ALL SELECT 5, f FROM same WHERE way = 'sliced' AND id = 1;
INSERT INTO apart SELECT 6, fav_add(fav_new(200000), ARRAY(SELECT generate_series(1, 50000)));
SELECT a.id, b.id, toast_blocks(format('SELECT FROM apart a, apart b WHERE a.id = %s AND b.id = %s AND a.f IS NOT DISTINCT FROM b.f', a.id, b.id)) BETWEEN least AND most AS as_expected
FROM (VALUES (1, 1, 0, 5), (1, 5, 0, 10), (1, 6, 0, 10), (1, 4, 3, 30), (1, 3, 3, 30), (1, 2, 40, 400)) v (a, b, least, most), apart a, apart b WHERE a.id = v.a AND b.id = v.b ORDER BY 1, 2;
DROP TABLE apart;
DROP FUNCTION toast_blocks;

-- A partition for each hash
CREATE TABLE parted (id int, f fav) PARTITION BY HASH (f);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parted SELECT i, fav_add(NULL, i) FROM generate_series(1, 100) i;
SELECT count(*) AS rows, count(DISTINCT tableoid) AS partitions FROM parted;
SELECT id FROM parted WHERE f = fav_add(NULL, 42);
DROP TABLE parted;

-- A trigger that fires only if something has changed
CREATE TABLE readers (id int PRIMARY KEY, hidden fav);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'reader % has changed', new.id; RETURN new; END $$;
CREATE TRIGGER tell BEFORE UPDATE ON readers FOR EACH ROW WHEN (old.hidden IS DISTINCT FROM new.hidden) EXECUTE FUNCTION tell();
INSERT INTO readers SELECT id, f FROM same WHERE way = 'large' AND id IN (1, 3);
INSERT INTO readers VALUES (5, fav_add(NULL, 1)), (6, NULL);
-- these elements are there already
UPDATE readers SET hidden = hidden + 50000 WHERE id = 1;
UPDATE readers SET hidden = hidden + 1 WHERE id = 5;
-- these elements are not
UPDATE readers SET hidden = fav_add(hidden, 1000000) WHERE id = 1;
UPDATE readers SET hidden = fav_add(hidden, 2) WHERE id IN (5, 6);
UPDATE readers SET hidden = NULL WHERE id = 3;
-- this changes nothing either
UPDATE readers SET hidden = NULL WHERE id = 3;
UPDATE readers SET hidden = hidden - 1000001;
-- suppress_redundant_updates_trigger() works for filters, too
CREATE TRIGGER suppress BEFORE UPDATE ON readers FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
UPDATE readers SET hidden = hidden - 1000001;
DROP TABLE readers;
DROP FUNCTION tell;

-- A publication of a table without a key: rows are found by all of their columns.
-- (t/replication.pl tests that the subscriber finds them.)
CREATE TABLE keyless (hidden fav);
ALTER TABLE keyless REPLICA IDENTITY FULL;
SET client_min_messages = error; -- wal_level may be too low to publish anything
CREATE PUBLICATION keyless FOR TABLE keyless;
RESET client_min_messages;
INSERT INTO keyless VALUES (fav_add(NULL, 1)), (fav_add(NULL, 2)), (NULL);
UPDATE keyless SET hidden = hidden + 3 WHERE hidden = fav_add(NULL, 1);
DELETE FROM keyless WHERE hidden = fav_add(NULL, 2);
SELECT hidden @> 1 AS "1", hidden @> 3 AS "3" FROM keyless ORDER BY hidden;
DROP PUBLICATION keyless;
DROP TABLE keyless;

DROP VIEW all_ways;
DROP FUNCTION is_planned_with;
DROP TABLE same, compressed, late, made;
