--
-- Filters that maintain themselves: what is refused, and what happens when tables
-- change afterwards
--
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE target (id int PRIMARY KEY, f fav, g fav, x int);

SELECT fav_attach(NULL, 'k', 'e');
SELECT fav_attach('pairs', NULL, 'e');
SELECT fav_attach('pairs', 'k', 'e', error_rate => NULL);
SELECT fav_attach('pairs', 'k', 'e', error_rate => 2);
SELECT fav_attach(0, 'k', 'e');
SELECT fav_attach('pairs', 'k', 'e', target_key => 'k');
SELECT fav_attach('pairs', 'k', 'e', 'pairs');
SELECT fav_attach('pairs', 'k', 'e', 'target');
SELECT fav_attach('pairs', 'k', 'e', 'target', filter => 'x');
SELECT fav_attach('pairs', 'k', 'e', 'target', filter => 'y');
SELECT fav_attach('pairs', 'k', 'e', 'target', 'x', 'f');
CREATE VIEW pairs_view AS SELECT * FROM pairs;
SELECT fav_attach('pairs_view', 'k', 'e');
DROP VIEW pairs_view;
CREATE TEMP TABLE fleeting (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('fleeting', 'k', 'e');
CREATE UNLOGGED TABLE risky (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('risky', 'k', 'e', 'target', filter => 'f');
SELECT fav_attach('risky', 'k', 'e');
SELECT relpersistence FROM pg_class WHERE relname = 'risky_fav';
CREATE TABLE two (a int, b int, f fav, PRIMARY KEY (a, b));
SELECT fav_attach('pairs', 'k', 'e', 'two');
SELECT fav_attach('pairs', 'k', 'e', 'two', 'a');
CREATE TABLE pairs_fav (something int);
SELECT fav_attach('pairs', 'k', 'e');
DROP TABLE pairs_fav, two, risky, risky_fav;
SELECT count(*) FROM fav_attachments;
SELECT fav_detach('pairs');
SELECT fav_verify('pairs');
SELECT fav_rebuild('pairs');

-- no index to find a key by
CREATE TABLE slow (k int, e int);
SELECT fav_attach('slow', 'k', 'e');
DROP TABLE slow, slow_fav;

-- one column, one source
SELECT fav_attach('pairs', 'k', 'e', 'target', filter => 'f');
CREATE TABLE others (LIKE pairs INCLUDING ALL);
SELECT fav_attach('others', 'k', 'e', 'target', filter => 'f');
SELECT fav_attach('others', 'k', 'e', 'target', filter => 'g');
INSERT INTO pairs VALUES (1, 1);
INSERT INTO others VALUES (1, 2);
SELECT id, f @> 1 AS f1, f @> 2 AS f2, g @> 1 AS g1, g @> 2 AS g2 FROM target;

-- renamed columns, tables and schemas
ALTER TABLE pairs RENAME k TO the_key;
ALTER TABLE pairs RENAME e TO "the Element";
ALTER TABLE target RENAME f TO "the Filter";
ALTER TABLE target RENAME id TO key;
SELECT key, element, target_key, filter FROM fav_attachments WHERE source = 'pairs'::regclass;
INSERT INTO pairs VALUES (1, 10), (2, 20);
SELECT key, element, target_key, filter FROM fav_attachment WHERE source = 'pairs'::regclass;
CREATE SCHEMA elsewhere;
ALTER TABLE pairs SET SCHEMA elsewhere;
ALTER TABLE elsewhere.pairs RENAME TO couples;
ALTER TABLE target RENAME TO goal;
INSERT INTO elsewhere.couples VALUES (1, 11);
ALTER SCHEMA elsewhere RENAME TO nowhere;
INSERT INTO nowhere.couples VALUES (1, 12);
DELETE FROM nowhere.couples WHERE "the Element" = 10;
SELECT missing FROM fav_verify('nowhere.couples');
SELECT key, ARRAY(SELECT i FROM generate_series(1, 30) i WHERE "the Filter" @> i) FROM goal ORDER BY key;
ALTER TABLE nowhere.couples SET SCHEMA public;
ALTER TABLE couples RENAME TO pairs;
-- a column of another type: not under the triggers
ALTER TABLE pairs ALTER "the Element" TYPE bigint;
ALTER TABLE pairs ADD note text;
ALTER TABLE pairs DROP note;
INSERT INTO pairs VALUES (3, 7);
SELECT missing FROM fav_verify('pairs');

-- dropping: not without saying so
ALTER TABLE pairs DROP the_key;
ALTER TABLE goal DROP "the Filter";
DROP TABLE goal;
-- (a restored database does not know; there it is an error to write)
BEGIN;
DELETE FROM pg_depend WHERE classid = 'pg_trigger'::regclass AND refobjid = 'goal'::regclass;
SAVEPOINT s;
DROP TABLE goal CASCADE;
INSERT INTO pairs VALUES (4, 4);
ROLLBACK TO s;
ALTER TABLE goal DROP "the Filter";
INSERT INTO pairs VALUES (4, 4);
ROLLBACK TO s;
DELETE FROM pg_depend WHERE classid = 'pg_trigger'::regclass AND refobjid = 'pairs'::regclass AND refobjsubid > 0;
ALTER TABLE pairs ALTER "the Element" TYPE bigint;
INSERT INTO pairs VALUES (4, 5000000000);
SELECT missing FROM fav_verify('pairs');
ALTER TABLE pairs ALTER "the Element" TYPE text;
INSERT INTO pairs VALUES (4, 'four');
ROLLBACK;
-- the unique index is no more: pairs may repeat from now on
ALTER TABLE pairs DROP CONSTRAINT pairs_pkey;
INSERT INTO pairs VALUES (1, 11), (1, 11);
DELETE FROM pairs WHERE ctid = (SELECT min(ctid) FROM pairs WHERE "the Element" = 11);
SELECT missing FROM fav_verify('pairs');

-- disabled triggers are seen
SELECT active FROM fav_attachments WHERE source = 'pairs'::regclass;
ALTER TABLE pairs DISABLE TRIGGER fav_1_insert;
SELECT active FROM fav_attachments WHERE source = 'pairs'::regclass;
ALTER TABLE pairs ENABLE ALWAYS TRIGGER fav_1_insert;

-- a table dropped and made again is another table
DROP TABLE pairs;
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
INSERT INTO pairs VALUES (1, 1);
SELECT fav_attach('pairs', 'k', 'e', 'goal', filter => 'the Filter');
SELECT count(*) FROM fav_attachment;
-- triggers without their row: they say so, and do not stand in the way
DELETE FROM fav_attachment WHERE source = 'pairs'::regclass;
INSERT INTO pairs VALUES (1, 2);
SELECT fav_attach('pairs', 'k', 'e', 'goal', filter => 'the Filter');
INSERT INTO pairs VALUES (1, 2);
DELETE FROM fav_attachment WHERE source = 'pairs'::regclass;
SELECT fav_detach('pairs');
SELECT fav_detach('pairs');
INSERT INTO pairs VALUES (1, 3);
SELECT fav_attach('pairs', 'k', 'e', 'goal', filter => 'the Filter');
SELECT missing FROM fav_verify('pairs');

-- a trigger that was right once is not for ever
INSERT INTO pairs VALUES (1, 8);
SELECT tgname AS was FROM pg_trigger WHERE tgrelid = 'pairs'::regclass AND tgname LIKE 'fav%insert' \gset
ALTER TRIGGER :was ON pairs RENAME TO mine;
\set VERBOSITY terse
INSERT INTO pairs VALUES (1, 7);
\set VERBOSITY default
ALTER TRIGGER mine ON pairs RENAME TO :was;
INSERT INTO pairs VALUES (1, 7);
SELECT missing FROM fav_verify('pairs');

-- the extension moves; and does not go
CREATE SCHEMA ext;
ALTER EXTENSION fav SET SCHEMA ext;
INSERT INTO pairs VALUES (1, 6);
SELECT missing FROM ext.fav_verify('pairs');
ALTER EXTENSION fav SET SCHEMA public;
INSERT INTO pairs VALUES (1, 4);
SELECT missing FROM fav_verify('pairs');
DROP EXTENSION fav;

-- in one transaction, with the data
BEGIN;
CREATE TABLE new (k int, e int, PRIMARY KEY (k, e));
INSERT INTO new VALUES (1, 1);
SELECT fav_attach('new', 'k', 'e');
INSERT INTO new VALUES (1, 2);
SELECT fav_detach('new');
SELECT fav_attach('new', 'k', 'e');
INSERT INTO new VALUES (1, 3);
SELECT keys, elements, missing FROM fav_verify('new');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT fav_rebuild('pairs');
INSERT INTO pairs VALUES (1, 5), (9, 9);
DELETE FROM pairs WHERE e = 1;
COMMIT;
SELECT missing FROM fav_verify('pairs');

DROP TABLE pairs, others CASCADE;
DROP TABLE goal;
DROP SCHEMA ext, nowhere;
