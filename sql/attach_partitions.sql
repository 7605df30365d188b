--
-- Filters that maintain themselves: partitioned sources, and sources with children
--
CREATE TABLE pairs (note text, k int, e int, UNIQUE (k, e)) PARTITION BY RANGE (k);
CREATE TABLE pairs_low PARTITION OF pairs FOR VALUES FROM (0) TO (10);
-- columns in another order, and a level more
CREATE TABLE pairs_high (e int, gone int, k int, note text) PARTITION BY RANGE (e);
ALTER TABLE pairs_high DROP gone;
CREATE TABLE pairs_high_1 PARTITION OF pairs_high FOR VALUES FROM (0) TO (100);
ALTER TABLE pairs ATTACH PARTITION pairs_high FOR VALUES FROM (10) TO (20);
INSERT INTO pairs (k, e) SELECT k, e FROM generate_series(1, 19) k, generate_series(1, 5) e;
SELECT fav_attach('pairs', 'k', 'e');

-- exact: no difference, either way
CREATE VIEW differences AS
SELECT g.k, x.e FROM generate_series(0, 40) g (k) CROSS JOIN generate_series(0, 60) x (e) LEFT JOIN pairs_fav f ON f.k = g.k
WHERE fav_contains(f.filter, x.e) <> EXISTS (SELECT FROM pairs p WHERE p.k = g.k AND p.e = x.e);

-- on the parent, and from one partition to another
INSERT INTO pairs (k, e) VALUES (1, 10), (11, 10);
UPDATE pairs SET k = k + 10 WHERE k IN (2, 3) AND e < 3 AND NOT EXISTS (SELECT FROM pairs q WHERE q.k = pairs.k + 10 AND q.e = pairs.e);
UPDATE pairs SET e = e + 20 WHERE e = 5;
UPDATE pairs SET k = k + 10, e = e + 30 WHERE k IN (2, 3) AND e < 3;
DELETE FROM pairs WHERE e = 4;
SELECT * FROM differences;
-- on partitions
INSERT INTO pairs_low (k, e) VALUES (1, 11), (4, 11);
INSERT INTO pairs_high (k, e) VALUES (11, 11), (14, 11);
INSERT INTO pairs_high_1 (k, e) VALUES (11, 12), (14, 12);
UPDATE pairs_low SET e = e + 1, k = k + 1 WHERE e = 11;
UPDATE pairs_high SET note = 'x';
UPDATE pairs_high_1 SET e = 50 WHERE e = 12;
DELETE FROM pairs_low WHERE e = 1;
DELETE FROM pairs_high_1 WHERE e = 2;
COPY pairs_high_1 (k, e) FROM stdin;
15	15
16	15
\.
SELECT * FROM differences;
-- a partition that came later
CREATE TABLE pairs_later PARTITION OF pairs FOR VALUES FROM (20) TO (30);
CREATE TABLE pairs_high_2 PARTITION OF pairs_high FOR VALUES FROM (100) TO (200);
INSERT INTO pairs (k, e) VALUES (21, 1), (22, 1), (12, 101);
INSERT INTO pairs_later (k, e) VALUES (21, 2), (21, 3), (22, 2);
UPDATE pairs_later SET e = e + 5 WHERE k = 21 AND e > 1;
UPDATE pairs_later SET e = 40 WHERE e = 1;
DELETE FROM pairs_later WHERE e = 2;
UPDATE pairs SET k = 23 WHERE k = 22;
INSERT INTO pairs_high_2 (k, e) VALUES (12, 102);
DELETE FROM pairs_high_2 WHERE e = 101;
SELECT * FROM differences;
SELECT missing FROM fav_verify('pairs');
INSERT INTO pairs_later (k, e) VALUES (21, 7) ON CONFLICT DO NOTHING;
INSERT INTO pairs_later (k, e) VALUES (21, 7), (21, 8) ON CONFLICT (k, e) DO UPDATE SET e = pairs_later.e + 30;
SELECT * FROM differences;
-- ... while a statement on the parent is under way
CREATE FUNCTION nest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO pairs_later (k, e) SELECT 24, e FROM new_pairs WHERE k < 20;
	DELETE FROM pairs_later WHERE (k, e) IN (SELECT k, e FROM new_pairs WHERE e > 52);
	RETURN NULL;
END $$;
CREATE TRIGGER a_nest AFTER INSERT ON pairs REFERENCING NEW TABLE AS new_pairs
	FOR EACH STATEMENT EXECUTE FUNCTION nest();
INSERT INTO pairs (k, e) VALUES (1, 51), (21, 51), (11, 52), (22, 53), (23, 54);
SELECT * FROM differences;
SELECT k, e FROM pairs WHERE e BETWEEN 51 AND 54 ORDER BY 1, 2;
DROP TRIGGER a_nest ON pairs;
DROP FUNCTION nest;
-- TRUNCATE of one, of all
TRUNCATE pairs_low;
SELECT * FROM differences;
TRUNCATE pairs;
SELECT * FROM differences;
SELECT sum(fav_count(filter)) FROM pairs_fav;
-- what no trigger sees: rows that come and go with their partition
INSERT INTO pairs (k, e) VALUES (1, 1), (21, 1);
CREATE TABLE ready (note text, k int, e int);
INSERT INTO ready VALUES (NULL, 31, 1);
ALTER TABLE pairs ATTACH PARTITION ready FOR VALUES FROM (30) TO (40);
ALTER TABLE pairs DETACH PARTITION pairs_later;
SELECT missing FROM fav_verify('pairs');
SELECT fav_rebuild('pairs');
SELECT missing FROM fav_verify('pairs');
SELECT * FROM differences;
INSERT INTO ready (k, e) VALUES (32, 1);
SELECT * FROM differences;
-- not our business any more, and not in our way
SELECT fav_detach('pairs');
SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'fav%' AND tgrelid <> 'pairs_later'::regclass AND NOT tgisinternal
	AND tgrelid <> 'fav_attachment'::regclass;
DROP TABLE pairs, pairs_later, pairs_fav CASCADE;

-- a partition as the source
CREATE TABLE pairs (k int, e int, UNIQUE (k, e)) PARTITION BY RANGE (k);
CREATE TABLE pairs_low PARTITION OF pairs FOR VALUES FROM (0) TO (10);
CREATE TABLE pairs_high PARTITION OF pairs FOR VALUES FROM (10) TO (20);
SELECT fav_attach('pairs_low', 'k', 'e');
INSERT INTO pairs VALUES (1, 1), (2, 1), (11, 1);
INSERT INTO pairs_low VALUES (1, 2), (1, 3);
UPDATE pairs SET k = 11 WHERE e = 2;
DELETE FROM pairs WHERE e = 3;
SELECT keys, elements, missing FROM fav_verify('pairs_low');
SELECT k, ARRAY(SELECT i FROM generate_series(1, 9) i WHERE filter @> i) FROM pairs_low_fav ORDER BY k;
DROP TABLE pairs, pairs_low_fav CASCADE;

-- a partitioned target
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE users (id int PRIMARY KEY, hidden fav) PARTITION BY HASH (id);
CREATE TABLE users_0 PARTITION OF users FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE users_1 PARTITION OF users FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT fav_attach('pairs', 'k', 'e', 'users');
INSERT INTO pairs SELECT k, e FROM generate_series(1, 9) k, generate_series(1, 3) e;
DELETE FROM pairs WHERE e = 2;
INSERT INTO pairs VALUES (1, 7);
SELECT keys, elements, missing FROM fav_verify('pairs');
SELECT min(fav_count(hidden)), max(fav_count(hidden)) FROM users;
DROP TABLE pairs, users CASCADE;

-- children; a unique index of the parent means nothing for them
CREATE TABLE parent (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE child (extra int, PRIMARY KEY (k, e)) INHERITS (parent);
SELECT fav_attach('parent', 'k', 'e');
INSERT INTO parent VALUES (1, 1), (1, 2);
INSERT INTO child VALUES (1, 1), (1, 3), (2, 1);
DELETE FROM ONLY parent WHERE e = 1;
SELECT k, ARRAY(SELECT i FROM generate_series(1, 9) i WHERE filter @> i) FROM parent_fav ORDER BY k;
UPDATE parent SET e = e + 4;
SELECT k, ARRAY(SELECT i FROM generate_series(1, 9) i WHERE filter @> i) FROM parent_fav ORDER BY k;
TRUNCATE ONLY parent;
SELECT k, ARRAY(SELECT i FROM generate_series(1, 9) i WHERE filter @> i) FROM parent_fav ORDER BY k;
DELETE FROM child WHERE e = 7;
SELECT keys, elements, missing FROM fav_verify('parent');
SELECT k, ARRAY(SELECT i FROM generate_series(1, 9) i WHERE filter @> i) FROM parent_fav ORDER BY k;
DROP TABLE parent, parent_fav CASCADE;
