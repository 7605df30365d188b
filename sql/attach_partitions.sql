--
-- Attached filters: sources with partitions or children, TRUNCATE, foreign tables
--
\set SHOW_CONTEXT never
SET client_min_messages = warning;

-- Compares filters and source element by element.  Missing is a pair of the source that the
-- view, the levels or the function do not report.  Stale is an element that they report although the source
-- does not have it: of the numbers up to 300 for exact filters, and by fav_verify for all.
CREATE FUNCTION missing_and_stale(source regclass, OUT missing bigint, OUT stale bigint)
LANGUAGE plpgsql AS $$
DECLARE
	a record;
	v record;
BEGIN
	SELECT * INTO STRICT a FROM fav_attachments f WHERE f.source = $1;
	SELECT * INTO v FROM fav_verify(source);
	EXECUTE format('SELECT count(*) FROM %1$s s LEFT JOIN %2$s f USING (%3$I) LEFT JOIN %4$s l USING (%3$I)
		WHERE %3$I IS NOT NULL AND s.%5$I IS NOT NULL AND NOT (fav_contains(f.filter, s.%5$I) AND fav_probe(l.base, l.middle, l.recent, s.%5$I)
			AND %6$s(%3$I, s.%5$I))',
		source, a.filter, a.key, a.levels, a.element, a.has::oid::regproc) INTO missing;
	EXECUTE format('SELECT count(*) FROM %4$s l JOIN %2$s f USING (%3$I), generate_series(0, 300) x
		WHERE base = ''\x01'' AND (fav_contains(f.filter, x) OR fav_probe(l.base, l.middle, l.recent, x) OR %6$s(l.%3$I, x))
			AND NOT EXISTS (SELECT FROM %1$s s WHERE s.%3$I = l.%3$I AND s.%5$I = x)',
		source, a.filter, a.key, a.levels, a.element, a.has::oid::regproc) INTO stale;
	missing := greatest(missing, v.missing);
	stale := greatest(stale, v.stale);
END $$;

-- Two levels; partitions with other column orders, and with columns that were dropped
CREATE TABLE pairs (note text, k int, gone int, e int, UNIQUE (k, e)) PARTITION BY RANGE (k);
ALTER TABLE pairs DROP gone;
CREATE TABLE pairs_low PARTITION OF pairs FOR VALUES FROM (0) TO (10);
CREATE TABLE pairs_high (e int, gone int, k int, lost int, note text) PARTITION BY RANGE (e);
ALTER TABLE pairs_high DROP gone, DROP lost;
CREATE TABLE pairs_high_1 PARTITION OF pairs_high FOR VALUES FROM (0) TO (100);
CREATE TABLE pairs_high_2 (x int, note text, e int, k int);
ALTER TABLE pairs_high_2 DROP x;
ALTER TABLE pairs_high ATTACH PARTITION pairs_high_2 FOR VALUES FROM (100) TO (200);
ALTER TABLE pairs ATTACH PARTITION pairs_high FOR VALUES FROM (10) TO (20);
INSERT INTO pairs (k, e) SELECT k, e FROM generate_series(1, 19) k, generate_series(1, 5) e;
SELECT fav_attach('pairs', 'k', 'e');
SELECT active FROM fav_attachments;

-- on the parent, and from one partition to another
INSERT INTO pairs (k, e) VALUES (1, 10), (11, 10), (11, 110);
UPDATE pairs SET e = e + 20 WHERE e = 5;
UPDATE pairs SET e = e + 100 WHERE k = 12;
UPDATE pairs SET k = k + 10, e = e + 30 WHERE k IN (2, 3) AND e < 3;
DELETE FROM pairs WHERE e = 4;
SELECT * FROM missing_and_stale('pairs');
-- on partitions
INSERT INTO pairs_low (k, e) VALUES (1, 11), (4, 11);
INSERT INTO pairs_high (k, e) VALUES (11, 11), (14, 11), (14, 111);
INSERT INTO pairs_high_1 (k, e) VALUES (11, 12), (14, 12);
UPDATE pairs_low SET e = e + 1, k = k + 1 WHERE e = 11;
UPDATE pairs_high SET note = 'x';
UPDATE pairs_high SET e = e + 110 WHERE k = 11 AND e = 11;
UPDATE pairs_high_1 SET e = 50 WHERE e = 12;
DELETE FROM pairs_low WHERE e = 1;
DELETE FROM pairs_high_2 WHERE e = 110;
COPY pairs_high_1 (k, e) FROM stdin;
15	15
16	15
\.
INSERT INTO pairs_high_1 (k, e) VALUES (15, 15) ON CONFLICT DO NOTHING;
INSERT INTO pairs_high_1 (k, e) VALUES (15, 15), (15, 16) ON CONFLICT (k, e) DO UPDATE SET e = pairs_high_1.e + 30;
SELECT * FROM missing_and_stale('pairs');

-- Partitions that were created later, also at a deeper level.  All changes are collected, except a
-- TRUNCATE of such a partition alone; active is false.
CREATE TABLE pairs_later PARTITION OF pairs FOR VALUES FROM (20) TO (30);
CREATE TABLE pairs_high_3 PARTITION OF pairs_high FOR VALUES FROM (200) TO (300);
CREATE TABLE pairs_deep (e int, k int, note text) PARTITION BY LIST (k);
CREATE TABLE pairs_deep_40 (note text, e int, k int);
ALTER TABLE pairs_deep ATTACH PARTITION pairs_deep_40 FOR VALUES IN (40);
ALTER TABLE pairs ATTACH PARTITION pairs_deep FOR VALUES FROM (40) TO (50);
CREATE TABLE pairs_deep_41 PARTITION OF pairs_deep FOR VALUES IN (41);
SELECT active FROM fav_attachments;
INSERT INTO pairs (k, e) VALUES (21, 1), (22, 1), (12, 201), (40, 1), (41, 1);
INSERT INTO pairs_later (k, e) VALUES (21, 2), (21, 3), (22, 2);
UPDATE pairs_later SET e = e + 5 WHERE k = 21 AND e > 1;
UPDATE pairs SET k = 23 WHERE k = 22;
INSERT INTO pairs_high_3 (k, e) VALUES (12, 202);
DELETE FROM pairs_high_3 WHERE e = 201;
INSERT INTO pairs_deep (k, e) VALUES (40, 2), (41, 2);
INSERT INTO pairs_deep_40 (k, e) VALUES (40, 3), (40, 4);
UPDATE pairs_deep SET e = e + 10 WHERE e = 2;
UPDATE pairs_deep SET k = 81 - k WHERE k = 40 AND e = 4;
DELETE FROM pairs_deep_40 WHERE e = 3;
SELECT * FROM missing_and_stale('pairs');
-- while a statement on the parent is under way
CREATE FUNCTION nest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO pairs_later (k, e) SELECT 24, e FROM new_pairs WHERE k < 20;
	DELETE FROM pairs_later WHERE (k, e) IN (SELECT k, e FROM new_pairs WHERE e > 52);
	RETURN NULL;
END $$;
CREATE TRIGGER a_nest AFTER INSERT ON pairs REFERENCING NEW TABLE AS new_pairs
	FOR EACH STATEMENT EXECUTE FUNCTION nest();
INSERT INTO pairs (k, e) VALUES (1, 51), (21, 51), (11, 52), (22, 53), (23, 54);
SELECT k, e FROM pairs WHERE e BETWEEN 51 AND 54 ORDER BY 1, 2;
SELECT * FROM missing_and_stale('pairs');
DROP TRIGGER a_nest ON pairs;
-- a disabled trigger on one partition makes active false
ALTER TABLE pairs_high_1 DISABLE TRIGGER pairs_fav_levels_delete;
SELECT active FROM fav_attachments;
SELECT fav_rebuild('pairs');
SELECT active FROM fav_attachments;

-- TRUNCATE of a partition, of one with partitions, of several tables, of all, and by CASCADE
TRUNCATE pairs_low;
SELECT count(*) FROM pairs WHERE k < 10;
SELECT * FROM missing_and_stale('pairs');
BEGIN;
TRUNCATE pairs_high;
SELECT * FROM missing_and_stale('pairs');
ROLLBACK;
SELECT * FROM missing_and_stale('pairs');
CREATE TABLE other (id int);
TRUNCATE other, pairs_high_1, pairs_low;
SELECT * FROM missing_and_stale('pairs');
TRUNCATE pairs;
SELECT count(*) FROM pairs_fav;
CREATE TABLE users (id int PRIMARY KEY);
INSERT INTO users SELECT generate_series(1, 45);
ALTER TABLE pairs ADD FOREIGN KEY (k) REFERENCES users;
INSERT INTO pairs (k, e) SELECT k, 1 FROM generate_series(1, 29) k;
TRUNCATE users CASCADE;
SELECT count(*) FROM pairs_fav;
ALTER TABLE pairs DROP CONSTRAINT pairs_k_fkey;
-- of a partition that was created later: it is handled, or active is false
INSERT INTO pairs (k, e) SELECT k, 1 FROM generate_series(1, 19) k;
CREATE TABLE pairs_latest PARTITION OF pairs FOR VALUES FROM (60) TO (70);
SELECT active AS seen FROM fav_attachments \gset
INSERT INTO pairs (k, e) VALUES (60, 1), (61, 1);
TRUNCATE pairs_latest;
SELECT missing = 0 AND (stale = 0 OR NOT :'seen') AS good FROM missing_and_stale('pairs');
SELECT fav_rebuild('pairs');
SELECT active AS seen FROM fav_attachments \gset
INSERT INTO pairs (k, e) VALUES (60, 1), (61, 1);
TRUNCATE pairs_latest;
SELECT missing = 0 AND (stale = 0 OR NOT :'seen') AS good FROM missing_and_stale('pairs');
DROP TABLE pairs_latest;
TRUNCATE pairs;
-- in one transaction with other changes
INSERT INTO pairs (k, e) SELECT k, 1 FROM generate_series(1, 29) k;
BEGIN;
INSERT INTO pairs_low (k, e) VALUES (1, 2);
INSERT INTO pairs_later (k, e) VALUES (21, 2);
TRUNCATE pairs_low;
INSERT INTO pairs (k, e) VALUES (1, 3), (21, 3);
COMMIT;
SELECT * FROM missing_and_stale('pairs');

-- No trigger fires for rows that are attached or detached with their partition.  fav_verify finds the difference, and fav_rebuild repairs it.
CREATE TABLE ready (note text, k int, e int);
INSERT INTO ready VALUES (NULL, 31, 1);
ALTER TABLE pairs ATTACH PARTITION ready FOR VALUES FROM (30) TO (40);
ALTER TABLE pairs DETACH PARTITION pairs_low;
SELECT missing > 0 AS missing, stale > 0 AS stale FROM fav_verify('pairs');
SELECT fav_rebuild('pairs');
SELECT * FROM missing_and_stale('pairs');
INSERT INTO ready (k, e) VALUES (32, 1);
SELECT * FROM missing_and_stale('pairs');
-- Writes to a detached partition do not change the filters.
INSERT INTO pairs_low (k, e) VALUES (11, 7), (12, 7), (NULL, NULL);
UPDATE pairs_low SET e = e + 1, k = k + 1;
DELETE FROM pairs_low WHERE k = 12;
TRUNCATE pairs_low;
ALTER TABLE pairs DETACH PARTITION pairs_high;
SELECT fav_rebuild('pairs');
INSERT INTO pairs_high (k, e) VALUES (21, 7), (22, 107);
INSERT INTO pairs_high_1 (k, e) VALUES (23, 7);
DELETE FROM pairs_high WHERE k = 21;
TRUNCATE pairs_high_2;
TRUNCATE pairs_high;
SELECT * FROM missing_and_stale('pairs');
SELECT count(*) FROM fav_attachments;
-- ... and back, with rows: active is false until a rebuild
ALTER TABLE pairs ATTACH PARTITION pairs_high FOR VALUES FROM (10) TO (20);
SELECT active FROM fav_attachments;
SELECT fav_rebuild('pairs');
SELECT active FROM fav_attachments;
INSERT INTO pairs_high_1 (k, e) VALUES (11, 7), (12, 7);
INSERT INTO pairs (k, e) VALUES (11, 8), (11, 108);
DELETE FROM pairs_high_1 WHERE k = 12;
SELECT * FROM missing_and_stale('pairs');
TRUNCATE pairs_high_2;
SELECT * FROM missing_and_stale('pairs');
-- dropped while collected pairs wait to be reconciled
CREATE TABLE pairs_last PARTITION OF pairs FOR VALUES FROM (50) TO (60);
BEGIN;
INSERT INTO pairs_last (k, e) VALUES (51, 100);
DROP TABLE pairs_last;
COMMIT;
SELECT * FROM missing_and_stale('pairs');
-- fav_detach leaves no trigger on any partition, attached or not
SELECT fav_detach('pairs');
SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'pairs_fav%';
INSERT INTO pairs_high_1 (k, e) VALUES (11, 9);
DROP TABLE pairs, pairs_low, other, users;
DROP FUNCTION nest;

-- A partition as the source
CREATE TABLE pairs (k int, e int, UNIQUE (k, e)) PARTITION BY RANGE (k);
CREATE TABLE pairs_low PARTITION OF pairs FOR VALUES FROM (0) TO (10);
CREATE TABLE pairs_high PARTITION OF pairs FOR VALUES FROM (10) TO (20);
SELECT fav_attach('pairs_low', 'k', 'e');
INSERT INTO pairs VALUES (1, 1), (2, 1), (11, 1);
INSERT INTO pairs_low VALUES (1, 2), (1, 3);
UPDATE pairs SET k = 11 WHERE e = 2;
DELETE FROM pairs WHERE e = 3;
SELECT * FROM missing_and_stale('pairs_low');
-- beside an attachment of the whole table
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs VALUES (1, 4), (12, 4);
INSERT INTO pairs_low VALUES (3, 4);
UPDATE pairs SET k = 13 WHERE e = 1 AND k < 2;
SELECT source, active FROM fav_attachments ORDER BY source::text;
SELECT * FROM missing_and_stale('pairs_low');
SELECT * FROM missing_and_stale('pairs');
TRUNCATE pairs_low;
SELECT * FROM missing_and_stale('pairs_low');
SELECT * FROM missing_and_stale('pairs');
SELECT fav_detach('pairs');
INSERT INTO pairs VALUES (1, 5), (12, 5);
SELECT * FROM missing_and_stale('pairs_low');
SELECT fav_detach('pairs_low');
DROP TABLE pairs;

-- Children.  A unique index of the parent does not cover them.
CREATE TABLE parent (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE child (extra int, PRIMARY KEY (k, e)) INHERITS (parent);
CREATE TABLE grandchild (more text) INHERITS (child);
CREATE INDEX ON grandchild (k, e);
SELECT fav_attach('parent', 'k', 'e');
SELECT active FROM fav_attachments;
INSERT INTO parent VALUES (1, 1), (1, 2);
INSERT INTO child VALUES (1, 1), (1, 3), (2, 1);
INSERT INTO grandchild VALUES (1, 1), (1, 1), (1, 4);
DELETE FROM ONLY parent WHERE e = 1;
DELETE FROM ONLY child WHERE e = 1;
SELECT * FROM missing_and_stale('parent');
SELECT k, ARRAY(SELECT i FROM generate_series(0, 9) i WHERE filter @> i) FROM parent_fav ORDER BY k;
UPDATE parent SET e = e + 4;
UPDATE child SET k = 3 WHERE e = 7;
SELECT * FROM missing_and_stale('parent');
TRUNCATE ONLY parent;
SELECT * FROM missing_and_stale('parent');
TRUNCATE grandchild;
SELECT * FROM missing_and_stale('parent');
INSERT INTO grandchild VALUES (1, 1), (4, 1);
DELETE FROM child WHERE k = 3;
SELECT * FROM missing_and_stale('parent');
-- A child that was created later has no triggers: active is false, and fav_rebuild creates them.
CREATE TABLE late_child () INHERITS (parent);
SELECT active FROM fav_attachments;
INSERT INTO late_child VALUES (1, 20);
SELECT * FROM missing_and_stale('parent');
SELECT fav_rebuild('parent');
SELECT active FROM fav_attachments;
INSERT INTO late_child VALUES (1, 21);
UPDATE late_child SET e = 22 WHERE e = 20;
SELECT * FROM missing_and_stale('parent');
-- Writes to former children do not change the filters.
ALTER TABLE late_child NO INHERIT parent;
SELECT active FROM fav_attachments;
SELECT fav_rebuild('parent');
INSERT INTO late_child VALUES (1, 23), (9, 9);
UPDATE late_child SET e = e + 10;
DELETE FROM late_child WHERE k = 9;
TRUNCATE late_child;
SELECT * FROM missing_and_stale('parent');
ALTER TABLE child NO INHERIT parent;
SELECT fav_rebuild('parent');
INSERT INTO parent VALUES (1, 1);
INSERT INTO child VALUES (1, 30);
INSERT INTO grandchild VALUES (1, 31);
UPDATE child SET e = e + 1;
DELETE FROM grandchild WHERE k = 1;
TRUNCATE child;
SELECT * FROM missing_and_stale('parent');
-- ... and they can inherit again, which needs a rebuild, too
ALTER TABLE child INHERIT parent;
SELECT active FROM fav_attachments;
INSERT INTO grandchild VALUES (1, 39);
SELECT fav_rebuild('parent');
SELECT active FROM fav_attachments;
INSERT INTO grandchild VALUES (1, 40);
INSERT INTO child VALUES (5, 40);
SELECT * FROM missing_and_stale('parent');
SELECT fav_detach('parent');
SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'parent_fav%';
DROP TABLE parent, late_child CASCADE;

-- Rows of foreign tables change without triggers, so these are refused
CREATE FOREIGN DATA WRAPPER dummy;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER dummy;
CREATE TABLE pairs (k int, e int) PARTITION BY RANGE (k);
CREATE TABLE pairs_low PARTITION OF pairs FOR VALUES FROM (0) TO (10);
CREATE FOREIGN TABLE pairs_far PARTITION OF pairs FOR VALUES FROM (10) TO (20) SERVER elsewhere;
SELECT fav_attach('pairs', 'k', 'e');
SELECT fav_attach('pairs_far', 'k', 'e');
ALTER TABLE pairs DETACH PARTITION pairs_far;
CREATE INDEX ON pairs (k, e);
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs VALUES (1, 1);
SELECT * FROM missing_and_stale('pairs');
SELECT fav_detach('pairs');
DROP TABLE pairs;
DROP FOREIGN TABLE pairs_far;
DROP SERVER elsewhere;
DROP FOREIGN DATA WRAPPER dummy;
-- A partition is detached while its pairs wait for the commit
CREATE TABLE leaving (k int, e int) PARTITION BY LIST (k);
CREATE TABLE leaving_rest PARTITION OF leaving DEFAULT;
CREATE INDEX ON leaving (k, e);
SELECT fav_attach('leaving', 'k', 'e');
INSERT INTO leaving VALUES (1, 1);
DELETE FROM leaving;
CREATE TABLE leaving_1 PARTITION OF leaving FOR VALUES IN (1);
BEGIN;
INSERT INTO leaving_1 VALUES (1, 2);
ALTER TABLE leaving DETACH PARTITION leaving_1;
COMMIT;
SELECT missing, stale FROM fav_verify('leaving');
ALTER TABLE leaving ATTACH PARTITION leaving_1 FOR VALUES IN (1);
SELECT fav_rebuild('leaving', '1');
-- another statement reconciles the pairs that it finds
BEGIN;
INSERT INTO leaving_1 VALUES (1, 3);
ALTER TABLE leaving DETACH PARTITION leaving_1;
INSERT INTO leaving VALUES (2, 1);
SELECT count(*) FROM leaving_fav WHERE filter @> 3;
ROLLBACK;
BEGIN;
INSERT INTO leaving_1 VALUES (1, 4);
DROP TABLE leaving_1;
COMMIT;
SELECT count(*) FROM leaving_fav WHERE filter @> 4;
SELECT fav_detach('leaving');
DROP TABLE leaving;

DROP FUNCTION missing_and_stale;
