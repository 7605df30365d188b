--
-- Attached filters: renaming, moving, altering and dropping tables
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
	SELECT f.*, attname AS k INTO STRICT a FROM fav_attachments f JOIN pg_attribute ON attrelid = levels AND attnum = 1
	WHERE f.source = $1;
	SELECT * INTO v FROM fav_verify(source);
	EXECUTE format('SELECT count(*) FROM %1$s s LEFT JOIN %2$s f ON f.%3$I = s.%4$I LEFT JOIN %5$s l ON l.%3$I = s.%4$I
		WHERE s.%4$I IS NOT NULL AND s.%6$I IS NOT NULL AND NOT (fav_contains(f.filter, s.%6$I) AND fav_probe(l.base, l.middle, l.recent, s.%6$I)
			AND %7$s(s.%4$I, s.%6$I))',
		source, a.filter, a.k, a.key, a.levels, a.element, a.has::oid::regproc) INTO missing;
	EXECUTE format('SELECT count(*) FROM %5$s l JOIN %2$s f USING (%3$I), generate_series(0, 300) x
		WHERE base = ''\x01'' AND (fav_contains(f.filter, x) OR fav_probe(l.base, l.middle, l.recent, x) OR %7$s(l.%3$I, x))
			AND NOT EXISTS (SELECT FROM %1$s s WHERE s.%4$I = l.%3$I AND s.%6$I = x)',
		source, a.filter, a.k, a.key, a.levels, a.element, a.has::oid::regproc) INTO stale;
	missing := greatest(missing, v.missing);
	stale := greatest(stale, v.stale);
END $$;

-- PostgreSQL's own messages depend on its version: only the SQLSTATE is shown.
CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	RETURN 'done';
EXCEPTION WHEN others THEN
	RETURN SQLSTATE;
END $$;

-- What can be attached
CREATE TABLE pairs (k int, e int, note text, PRIMARY KEY (k, e));
CREATE VIEW pairs_view AS SELECT * FROM pairs;
CREATE MATERIALIZED VIEW pairs_copy AS SELECT * FROM pairs;
CREATE SEQUENCE numbers;
CREATE TEMP TABLE fleeting (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('pairs_view', 'k', 'e');
SELECT fav_attach('pairs_copy', 'k', 'e');
SELECT fav_attach('numbers', 'k', 'e');
SELECT fav_attach('fleeting', 'k', 'e');
SELECT fav_attach('pairs_pkey', 'k', 'e');
SELECT fav_attach('pg_class', 'reltype', 'relname');
DROP VIEW pairs_view;
DROP MATERIALIZED VIEW pairs_copy;
DROP SEQUENCE numbers;
DROP TABLE fleeting;
CREATE UNLOGGED TABLE risky (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('risky', 'k', 'e');
SELECT relpersistence FROM pg_class WHERE relname = 'risky_fav_levels';
DROP TABLE risky, risky_fav_levels CASCADE;
-- names that exist already
CREATE TABLE pairs_fav (something int);
SELECT attempt($$SELECT fav_attach('pairs', 'k', 'e')$$);
DROP TABLE pairs_fav;
CREATE TABLE pairs_fav_levels (something int);
SELECT attempt($$SELECT fav_attach('pairs', 'k', 'e')$$);
DROP TABLE pairs_fav_levels;
SELECT fav_attach('pairs', 'k', 'e');
SELECT attempt($$SELECT fav_attach('pairs', 'k', 'e')$$);
SELECT count(*) FROM fav_attachments;

-- Renamed columns, tables and schemas, each with cached plans from before
INSERT INTO pairs VALUES (1, 1), (1, 2);
DELETE FROM pairs WHERE e = 2;
ALTER TABLE pairs RENAME k TO the_key;
ALTER TABLE pairs RENAME e TO "the Element";
INSERT INTO pairs VALUES (1, 10), (2, 20);
DELETE FROM pairs WHERE "the Element" = 1;
SELECT key, element, active FROM fav_attachments;
SELECT * FROM missing_and_stale('pairs');
ALTER TABLE pairs RENAME TO couples;
ALTER TABLE pairs_fav_levels RENAME TO filters;
ALTER VIEW pairs_fav RENAME TO filter_view;
ALTER TABLE filters RENAME k TO id;
ALTER VIEW filter_view RENAME COLUMN k TO id;
INSERT INTO couples VALUES (1, 11), (3, 30);
DELETE FROM couples WHERE "the Element" = 10;
SELECT source, key, element, filter, levels, active FROM fav_attachments;
SELECT * FROM missing_and_stale('couples');
CREATE SCHEMA elsewhere;
ALTER TABLE couples SET SCHEMA elsewhere;
INSERT INTO elsewhere.couples VALUES (1, 12), (4, 40);
ALTER TABLE filters SET SCHEMA elsewhere;
DELETE FROM elsewhere.couples WHERE "the Element" = 11;
ALTER VIEW filter_view SET SCHEMA elsewhere;
SELECT * FROM missing_and_stale('elsewhere.couples');
ALTER SCHEMA elsewhere RENAME TO nowhere;
INSERT INTO nowhere.couples VALUES (1, 13), (5, 50);
DELETE FROM nowhere.couples WHERE "the Element" = 12;
SELECT * FROM missing_and_stale('nowhere.couples');
SELECT fav_rebuild('nowhere.couples', '1', 'filter_view');
SELECT fav_rebuild('nowhere.couples', NULL, 'filters');
ALTER TABLE nowhere.couples SET SCHEMA public;
ALTER TABLE nowhere.filters SET SCHEMA public;
ALTER VIEW nowhere.filter_view SET SCHEMA public;
ALTER TABLE couples RENAME TO pairs;
DROP SCHEMA nowhere;
-- the columns of the levels table are identified by their position
ALTER TABLE filters RENAME base TO bottom;
ALTER TABLE filters RENAME middle TO center;
ALTER TABLE filters RENAME recent TO top;
INSERT INTO pairs SELECT 6, generate_series(1, 200);
DELETE FROM pairs WHERE the_key = 6 AND "the Element" % 2 = 0;
SELECT missing, stale FROM fav_verify('pairs');
SELECT keys FROM fav_attachment_stats('pairs');
SELECT fav_rebuild('pairs');
SELECT count(filter) FROM filter_view;
ALTER TABLE filters RENAME bottom TO base;
ALTER TABLE filters RENAME center TO middle;
ALTER TABLE filters RENAME top TO recent;
SELECT * FROM missing_and_stale('pairs');
-- the extension moves, too
CREATE SCHEMA ext;
ALTER EXTENSION fav SET SCHEMA ext;
INSERT INTO pairs VALUES (1, 14), (7, 70);
DELETE FROM pairs WHERE "the Element" = 13;
SELECT ext.fav_rebuild('pairs', '7');
SELECT missing, stale FROM ext.fav_verify('pairs');
SELECT count(*) FROM ext.fav_attachments WHERE active;
ALTER EXTENSION fav SET SCHEMA public;
INSERT INTO pairs VALUES (1, 15), (8, 80);
SELECT missing, stale FROM fav_verify('pairs');
DROP SCHEMA ext;

-- Other columns can be added and dropped, those of the pair cannot be dropped
ALTER TABLE pairs ADD more int DEFAULT 7;
ALTER TABLE pairs DROP note;
ALTER TABLE pairs ALTER more TYPE bigint;
INSERT INTO pairs VALUES (1, 16, 1);
SELECT attempt('ALTER TABLE pairs DROP the_key'), attempt('ALTER TABLE pairs DROP "the Element"');
SELECT attempt('ALTER TABLE pairs ALTER the_key TYPE bigint'), attempt('ALTER TABLE pairs ALTER "the Element" TYPE bigint');
SELECT attempt('ALTER TABLE filters DROP base'), attempt('ALTER TABLE filters DROP recent'), attempt('ALTER TABLE filters ALTER id TYPE bigint');
ALTER TABLE filters ADD note text;
INSERT INTO pairs VALUES (1, 17, 1), (9, 90, 1);
SELECT * FROM missing_and_stale('pairs');
CLUSTER pairs USING pairs_pkey;
VACUUM FULL filters;
DELETE FROM pairs WHERE "the Element" = 17;
SELECT * FROM missing_and_stale('pairs');
-- without the unique index, pairs may repeat
DELETE FROM pairs WHERE "the Element" = 16;
ALTER TABLE pairs DROP CONSTRAINT pairs_pkey;
CREATE INDEX ON pairs (the_key, "the Element");
INSERT INTO pairs VALUES (1, 20), (1, 20);
DELETE FROM pairs WHERE ctid = (SELECT min(ctid) FROM pairs WHERE "the Element" = 20);
SELECT * FROM missing_and_stale('pairs');
-- a copy of the table is not attached
CREATE TABLE copy (LIKE pairs INCLUDING ALL);
INSERT INTO copy VALUES (1, 100);
SELECT count(*) FROM fav_attachments;
SELECT * FROM missing_and_stale('pairs');
DROP TABLE copy;

-- Triggers that were renamed, disabled or dropped
ALTER TRIGGER pairs_fav_levels_insert ON pairs RENAME TO mine;
INSERT INTO pairs VALUES (1, 21);
SELECT active FROM fav_attachments;
SELECT * FROM missing_and_stale('pairs');
ALTER TABLE pairs DISABLE TRIGGER mine;
SELECT active FROM fav_attachments;
INSERT INTO pairs VALUES (1, 22);
SELECT * FROM missing_and_stale('pairs');
SELECT fav_rebuild('pairs');
SELECT active FROM fav_attachments;
DROP TRIGGER mine ON pairs;
SELECT active FROM fav_attachments;
INSERT INTO pairs VALUES (1, 23);
SELECT fav_rebuild('pairs');
SELECT active FROM fav_attachments;
INSERT INTO pairs VALUES (1, 24);
SELECT * FROM missing_and_stale('pairs');
-- without row triggers the columns are unknown
BEGIN;
DROP TRIGGER filters_insert ON pairs;
DROP TRIGGER pairs_fav_levels_update ON pairs;
DROP TRIGGER pairs_fav_levels_delete ON pairs;
INSERT INTO pairs VALUES (1, 25);
SELECT source, key, element, levels, active FROM fav_attachments;
SAVEPOINT a;
SELECT fav_rebuild('pairs');
ROLLBACK TO a;
SELECT fav_verify('pairs');
ROLLBACK TO a;
SELECT fav_detach('pairs');
SELECT fav_attach('pairs', 'the_key', 'the Element');
SELECT * FROM missing_and_stale('pairs');
ROLLBACK;

-- Another owner.  If the tables have different owners, writes fail with an error that says so.
CREATE ROLE fav_first;
CREATE ROLE fav_second;
GRANT CREATE, USAGE ON SCHEMA public TO fav_first, fav_second;
ALTER TABLE pairs OWNER TO fav_first;
INSERT INTO pairs VALUES (1, 31);
DELETE FROM pairs WHERE "the Element" = 24;
SELECT fav_rebuild('pairs');
SELECT fav_verify('pairs');
ALTER TABLE filters OWNER TO fav_first;
INSERT INTO pairs VALUES (1, 31);
SELECT missing, stale FROM fav_verify('pairs');
ALTER VIEW filter_view OWNER TO fav_first;
REASSIGN OWNED BY fav_first TO fav_second;
INSERT INTO pairs VALUES (1, 32);
SET ROLE fav_second;
INSERT INTO pairs VALUES (1, 33);
SELECT fav_rebuild('pairs');
RESET ROLE;
SELECT filter, active FROM fav_attachments;
SELECT missing, stale FROM fav_verify('pairs');
-- DROP OWNED BY the owner
BEGIN;
DROP OWNED BY fav_second CASCADE;
SELECT to_regclass('pairs'), to_regclass('filters'), to_regclass('filter_view'), count(*) FROM fav_attachments;
ROLLBACK;
DO $$ BEGIN EXECUTE format('REASSIGN OWNED BY fav_second TO %I', current_user); END $$;
DROP OWNED BY fav_first, fav_second;
DROP ROLE fav_first, fav_second;

-- DROP without CASCADE is refused
SELECT attempt('DROP TABLE pairs'), attempt('DROP TABLE filters'), attempt('DROP EXTENSION fav');
SELECT * FROM missing_and_stale('pairs');
-- The view is only for reading.  Filters are kept without it, and without the function.
DROP VIEW filter_view;
SELECT attempt('DROP FUNCTION pairs_has');
INSERT INTO pairs VALUES (1, 41);
SELECT source, filter, levels, active FROM fav_attachments;
SELECT missing, stale FROM fav_verify('pairs');
SELECT fav_rebuild('pairs', NULL, 'filters');
SELECT fav_detach('pairs');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'pairs'::regclass;
-- Filters with dependent objects are not detached.
SELECT fav_attach('pairs', 'the_key', 'the Element');
CREATE VIEW mine AS SELECT * FROM pairs_fav;
SELECT attempt($$SELECT fav_detach('pairs')$$);
SELECT * FROM missing_and_stale('pairs');
DROP VIEW mine;
-- A similar view of the user is not mistaken for ours.
CREATE VIEW mine AS SELECT the_key, recent AS filter FROM pairs_fav_levels;
SELECT filter FROM fav_attachments;
DROP VIEW pairs_fav;
SELECT filter FROM fav_attachments;
SELECT attempt($$SELECT fav_detach('pairs')$$), to_regclass('mine');
-- DROP ... CASCADE of the levels table is a fav_detach
DROP TABLE pairs_fav_levels CASCADE;
SELECT to_regclass('pairs_fav'), count(*) FROM fav_attachments;
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'pairs'::regclass;
INSERT INTO pairs VALUES (1, 42);
-- ... of the source leaves the levels table, which is not kept any more
SELECT fav_attach('pairs', 'the_key', 'the Element');
DROP TABLE pairs CASCADE;
SELECT to_regclass('pairs_fav'), to_regclass('pairs_fav_levels'), count(*) FROM fav_attachments;
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
INSERT INTO pairs VALUES (1, 1);
SELECT attempt($$SELECT fav_attach('pairs', 'k', 'e')$$);
DROP TABLE pairs_fav_levels CASCADE;
SELECT fav_attach('pairs', 'k', 'e');
SELECT * FROM missing_and_stale('pairs');
-- ... of the schema drops everything
CREATE SCHEMA room;
CREATE TABLE room.pairs (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('room.pairs', 'k', 'e');
SELECT attempt('DROP SCHEMA room');
DROP SCHEMA room CASCADE;
SELECT count(*) FROM fav_attachments;
-- ... of the extension leaves tables without filters
BEGIN;
DROP EXTENSION fav CASCADE;
INSERT INTO pairs VALUES (1, 2);
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'pairs'::regclass;
SELECT to_regclass('pairs_fav');
SELECT attname FROM pg_attribute WHERE attrelid = 'pairs_fav_levels'::regclass AND attnum > 0 AND NOT attisdropped;
DROP TABLE pairs_fav_levels CASCADE;
CREATE EXTENSION fav;
SELECT fav_attach('pairs', 'k', 'e');
SELECT * FROM missing_and_stale('pairs');
ROLLBACK;
INSERT INTO pairs VALUES (1, 3);
SELECT * FROM missing_and_stale('pairs');

-- In one transaction with the data, and rolled back
BEGIN;
CREATE TABLE new (k int, e int, PRIMARY KEY (k, e));
INSERT INTO new VALUES (1, 1);
SELECT fav_attach('new', 'k', 'e');
INSERT INTO new VALUES (1, 2);
SELECT fav_detach('new');
INSERT INTO new VALUES (1, 3);
SELECT fav_attach('new', 'k', 'e');
DELETE FROM new WHERE e = 1;
INSERT INTO new VALUES (2, 4);
SELECT * FROM missing_and_stale('new');
ROLLBACK;
SELECT fav_detach('pairs');
BEGIN;
SAVEPOINT a;
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs VALUES (1, 4);
ROLLBACK TO a;
INSERT INTO pairs VALUES (1, 5);
SELECT count(*) FROM fav_attachments;
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs VALUES (1, 6);
COMMIT;
SELECT * FROM missing_and_stale('pairs');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT fav_rebuild('pairs');
INSERT INTO pairs VALUES (1, 7), (9, 9);
DELETE FROM pairs WHERE e = 1;
SELECT fav_detach('pairs');
INSERT INTO pairs VALUES (1, 8);
ROLLBACK;
SELECT * FROM missing_and_stale('pairs');
-- a type that changes while pairs wait to be reconciled
SELECT fav_detach('pairs');
DROP TABLE pairs;
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e)) PARTITION BY RANGE (k);
SELECT fav_attach('pairs', 'k', 'e');
CREATE TABLE pairs_1 PARTITION OF pairs FOR VALUES FROM (0) TO (10);
BEGIN;
INSERT INTO pairs_1 VALUES (1, 1);
SELECT fav_detach('pairs');
ALTER TABLE pairs ALTER e TYPE bigint;
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs_1 VALUES (1, 2);
COMMIT;
SELECT * FROM missing_and_stale('pairs');

-- New filters take the place of the old ones, again and again.  Their triggers keep the names that
-- they were made with, on partitions of later days, too
CREATE PROCEDURE replace_filters(rate float8) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM fav_attach('pairs', 'k', 'e', rate, name => 'pairs_new');
	PERFORM fav_detach('pairs', 'pairs');
	ALTER FUNCTION pairs_new_has RENAME TO pairs_has;
	ALTER VIEW pairs_new_fav RENAME TO pairs_fav;
	ALTER TABLE pairs_new_fav_levels RENAME TO pairs_fav_levels;
END $$;
CALL replace_filters(0.02);
CALL replace_filters(0.03);
CREATE TABLE pairs_2 PARTITION OF pairs FOR VALUES FROM (10) TO (20);
CALL replace_filters(0.04);
CALL replace_filters(0.05);
SELECT has, error_rate, complete, active FROM fav_attachments;
SELECT tgrelid::regclass, count(*) FROM pg_trigger WHERE tgname ~ 'fav' GROUP BY tgrelid ORDER BY 1;
INSERT INTO pairs VALUES (1, 3), (11, 1);
DELETE FROM pairs_1 WHERE e = 1;
SELECT pairs_has(1, 3), pairs_has(11, 1), pairs_has(1, 1);
SELECT * FROM missing_and_stale('pairs');
DROP PROCEDURE replace_filters;

SELECT fav_detach('pairs');
DROP TABLE pairs;
DROP FUNCTION missing_and_stale, attempt;
