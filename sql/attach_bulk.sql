--
-- Filters that maintain themselves: statements with many rows, gathered by key in
-- memory or sorted on disk, and filters that get their first slice
--
CREATE TABLE pairs (k bigint, e bigint, PRIMARY KEY (k, e));
SELECT fav_attach('pairs', 'k', 'e');
CREATE VIEW differences AS
SELECT f.k, x.e FROM pairs_fav f CROSS JOIN generate_series(-20, 80) x (e)
WHERE fav_contains(f.filter, x.e) <> EXISTS (SELECT FROM pairs p WHERE p.k = f.k AND p.e = x.e);

-- new keys, and known ones with new ones; some pairs move, some are as they were
INSERT INTO pairs SELECT 1 + i % 200, i / 200 FROM generate_series(0, 1999) i;
INSERT INTO pairs SELECT 101 + i % 200, -1 - i / 200 FROM generate_series(0, 1999) i;
SELECT * FROM differences;
UPDATE pairs SET k = k + 1, e = 13 WHERE e = 3;
UPDATE pairs SET e = e - 10 WHERE e < 0 AND k % 2 = 0;
SELECT * FROM differences;
SELECT fav_count(filter) FROM pairs_fav WHERE k IN (1, 2, 150) ORDER BY k;
UPDATE pairs SET e = e WHERE k < 20;
UPDATE pairs SET k = 301 - k, e = e + 30;
DELETE FROM pairs WHERE e % 3 = 0;
SELECT * FROM differences;
SELECT missing FROM fav_verify('pairs');

-- the same with so little memory that the rows fit into it, but not the keys; and not the rows
SET work_mem = '64kB';
INSERT INTO pairs SELECT i, i % 5 + 60 FROM generate_series(1, 2000) i;
INSERT INTO pairs SELECT 2001 - i, 75 FROM generate_series(1, 2000) i;
INSERT INTO pairs SELECT i % 100 + 1, 1000 + i FROM generate_series(1, 5000) i;
DELETE FROM pairs WHERE e BETWEEN 60 AND 63;
UPDATE pairs SET k = k + 1, e = 76 WHERE e = 75;
RESET work_mem;
SELECT * FROM differences;
SELECT missing FROM fav_verify('pairs');

-- pairs that come, go and stay several times, in one statement
CREATE TABLE repeated (k text, e text);
CREATE INDEX ON repeated (k, e);
SELECT fav_attach('repeated', 'k', 'e');
INSERT INTO repeated SELECT 'user ' || i % 3, 'post ' || i % 10 FROM generate_series(1, 300) i;
DELETE FROM repeated WHERE ctid IN (SELECT min(ctid) FROM repeated GROUP BY k, e);
SELECT k, fav_count(filter) FROM repeated_fav ORDER BY k;
DELETE FROM repeated WHERE e IN ('post 1', 'post 2');
UPDATE repeated SET e = 'post 4' WHERE e = 'post 3';
SELECT k, fav_count(filter), ARRAY(SELECT i FROM generate_series(0, 10) i WHERE filter @> ('post ' || i)) FROM repeated_fav ORDER BY k;
-- and more than recent takes: 150 each, five times, in any order
INSERT INTO repeated SELECT 'user ' || i % 3, 'more ' || i % 450 FROM generate_series(1, 2250) i;
SELECT k, fav_count(filter) FROM repeated_fav ORDER BY k;
DELETE FROM repeated WHERE ctid IN (SELECT max(ctid) FROM repeated GROUP BY k, e);
SELECT missing FROM fav_verify('repeated');

-- keys that are equal and do not look the same; keys that have an order and no hash
CREATE TABLE numbers (k numeric, e int);
CREATE INDEX ON numbers (k, e);
SELECT fav_attach('numbers', 'k', 'e');
INSERT INTO numbers SELECT CASE i % 3 WHEN 0 THEN 1 WHEN 1 THEN 1.0 ELSE 1.000 END, i FROM generate_series(1, 30) i;
INSERT INTO numbers SELECT round(i % 7, i % 4), i FROM generate_series(1, 700) i;
DELETE FROM numbers WHERE k = 1.0 AND e <= 20;
SELECT k::int, (SELECT count(DISTINCT n.e) = fav_count(f.filter) FROM numbers n WHERE n.k = f.k) FROM numbers_fav f ORDER BY f.k;
SELECT missing FROM fav_verify('numbers');
CREATE TABLE flags (k varbit, e int);
CREATE INDEX ON flags (k, e);
SELECT fav_attach('flags', 'k', 'e');
INSERT INTO flags VALUES (B'0', 1), (B'00', 2), (B'1', 3), (B'0', 4);
INSERT INTO flags SELECT (i % 20)::bit(5)::varbit, i FROM generate_series(1, 400) i;
UPDATE flags SET k = k || B'0' WHERE e <= 20;
DELETE FROM flags WHERE e % 4 = 0;
SELECT count(*), sum(fav_count(filter)) = (SELECT count(*) FROM flags) AS good FROM flags_fav;
SELECT missing FROM fav_verify('flags');

-- the first slice is for all that comes with it, and keeps what the user chose
CREATE TABLE views (who int, what bigint, PRIMARY KEY (who, what));
CREATE TABLE few (id int PRIMARY KEY, seen fav);
SELECT fav_attach('views', 'who', 'what', 'few');
INSERT INTO few VALUES (1, fav_new()), (2, NULL), (4, fav_new(50));
INSERT INTO views VALUES (3, 1), (3, 2), (3, 3), (5, 1), (5, 2);
UPDATE few SET seen = fav_add(fav_new(5000, 0.001, seed => 7), '{1,2,3}'::bigint[]) WHERE id = 3;
CREATE VIEW shape AS
SELECT id, s.elements, s.capacity, s.error_rate, s.seed, s.slices, s.recent, s.needs_rebuild FROM few, fav_stats(seen) s;
SELECT * FROM shape ORDER BY id;
INSERT INTO views SELECT who, what FROM generate_series(1, 4) who, generate_series(11, 3010) what;
SELECT * FROM shape ORDER BY id;
-- no slice for what recent can take, though some come and some go
DELETE FROM views WHERE who = 5;
INSERT INTO views SELECT 5, generate_series(1, 100);
UPDATE views SET what = what + 1000 WHERE who = 5 AND what > 10;
INSERT INTO views SELECT 5, generate_series(201, 228);
SELECT * FROM shape WHERE id = 5;
-- one more
INSERT INTO views VALUES (5, 301), (5, 302);
SELECT id, elements, slices, recent FROM shape WHERE id = 5;
SELECT ARRAY(SELECT what FROM views WHERE who = 5 AND NOT fav_contains(seen, what)) FROM few WHERE id = 5;
DELETE FROM views WHERE what % 2 = 0;
SELECT missing FROM fav_verify('views');

DROP VIEW differences, shape;
DROP TABLE pairs, pairs_fav, repeated, repeated_fav, numbers, numbers_fav, flags, flags_fav, views, few;

-- What goes is gone also where what comes makes a first slice
CREATE TABLE moved (k bigint, e bigint, PRIMARY KEY (k, e));
INSERT INTO moved SELECT 1, e FROM generate_series(1, 100) e;
SELECT fav_attach('moved', 'k', 'e');
UPDATE moved SET e = e + 1000;
SELECT fav_count(filter), cardinality(fav_filter(filter, ARRAY(SELECT generate_series(1::bigint, 100)))) AS gone,
	fav_contains_all(filter, ARRAY(SELECT generate_series(1001::bigint, 1100))) AS come FROM moved_fav;
DROP TABLE moved, moved_fav;
