--
-- Attaching without a build, and fav_build: batch by batch, while others read and write
--
\set SHOW_CONTEXT never
CREATE TABLE pairs (k int, e bigint, PRIMARY KEY (k, e));
INSERT INTO pairs SELECT k, e FROM generate_series(-20, 400) k, generate_series(1, 20) e;
INSERT INTO pairs SELECT 7, e FROM generate_series(1000, 1999) e;
SELECT fav_attach('pairs', 'k', 'e', build => NULL);
SELECT fav_attach('pairs', 'k', 'e', build => false);
SELECT key, element, filter, levels, share, complete, active FROM fav_attachments;

-- Incomplete filters cannot be read
SELECT count(*) FROM pairs_fav;
\set VERBOSITY terse
SELECT pairs_has(3, 1);
SELECT count(*) FROM pairs p WHERE pairs_has(p.k, p.e);
SELECT count(*) FROM pairs p WHERE NOT pairs_has(3, p.e);
\set VERBOSITY default

-- A writer builds the missing filter of a key
INSERT INTO pairs VALUES (3, 100), (1000, 1);
DELETE FROM pairs WHERE k = 4 AND e = 1;
BEGIN;
DELETE FROM pairs WHERE k = 5;
ROLLBACK;
SELECT k, fav_count(fav_stack(base, middle, recent)) FROM pairs_fav_levels ORDER BY k;
-- their filters are complete; all others are missing
SELECT missing = (SELECT count(*) FROM pairs WHERE k NOT IN (3, 4, 1000)) AS others, stale FROM fav_verify('pairs');

-- fav_build commits, so it cannot run within a transaction block
BEGIN;
CALL fav_build('pairs');
ROLLBACK;
CREATE FUNCTION build_it() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CALL fav_build('pairs'); END $$;
SELECT build_it();
SELECT complete FROM fav_attachments;
CALL fav_build(NULL);
CALL fav_build('pairs', 'nobody');
CALL fav_build('pg_class');

CALL fav_build('pairs');
SELECT key, element, filter, levels, share, complete, active FROM fav_attachments;
SELECT keys, elements, missing, stale FROM fav_verify('pairs');
SELECT fav_contains(filter, 20) AS t, fav_contains(filter, 21) AS f FROM pairs_fav WHERE k = 9;
SELECT count(*) FROM pairs p LEFT JOIN pairs_fav_levels l ON l.k = p.k WHERE NOT fav_probe(l.base, l.middle, l.recent, p.e);
SELECT count(*) FROM pairs p WHERE NOT pairs_has(p.k, p.e);
SELECT pairs_has(9, 20) AS t, pairs_has(9, 21) AS f;
SELECT count(*) = (SELECT count(DISTINCT k) FROM pairs) AS one_each FROM pairs_fav;

-- Again: nothing to do
SELECT md5(string_agg(l::text, ' ' ORDER BY k)) AS before FROM pairs_fav_levels l \gset
CALL fav_build('pairs');
SELECT md5(string_agg(l::text, ' ' ORDER BY k)) = :'before' AS same FROM pairs_fav_levels l;

-- fav_build builds lost filters, and with rebuild all
DELETE FROM pairs_fav_levels WHERE k BETWEEN 10 AND 20 OR k = -20;
CALL fav_build('pairs');
SELECT missing, stale FROM fav_verify('pairs');
UPDATE pairs_fav_levels SET recent = fav_recent('pairs', 0.01, 0, 0), base = '\x01' WHERE k < 100;
CALL fav_build('pairs');
SELECT missing > 0 AS missing FROM fav_verify('pairs');
CALL fav_build('pairs', rebuild => true);
SELECT keys, elements, missing, stale FROM fav_verify('pairs');
-- the source was changed without triggers
ALTER TABLE pairs DISABLE TRIGGER USER;
INSERT INTO pairs VALUES (8, 8000), (2000, 1);
DELETE FROM pairs WHERE k = 9;
SELECT active FROM fav_attachments;
CALL fav_build('pairs', rebuild => true);
SELECT complete, active FROM fav_attachments;
SELECT keys, elements, missing, stale FROM fav_verify('pairs');
-- only the view is dropped; then also the function, so that filters cannot be read
DROP VIEW pairs_fav;
SELECT filter, complete FROM fav_attachments;
CALL fav_build('pairs');
SELECT filter, complete FROM fav_attachments;
DROP FUNCTION pairs_has(bigint, bigint);
SELECT filter, complete FROM fav_attachments;
CALL fav_build('pairs', 'pairs_fav');
SELECT filter, complete FROM fav_attachments;
SELECT fav_detach('pairs');

-- Attached and detached without a build; fav_rebuild builds all at once
SELECT fav_attach('pairs', 'k', 'e', build => false, name => 'later');
SELECT fav_detach('pairs', 'later');
SELECT to_regclass('later_fav_levels'), count(*) FROM fav_attachments;
SELECT fav_attach('pairs', 'k', 'e', build => false, name => 'later');
ALTER TABLE later_fav_levels RENAME TO quite_another;
SELECT fav_rebuild('pairs');
SELECT filter, levels, complete FROM fav_attachments;
SELECT missing, stale FROM fav_verify('pairs');
SELECT fav_detach('pairs');

-- Keys that share filters; a group is not cut in two by the end of a batch
INSERT INTO pairs SELECT k, e FROM generate_series(-3000, 3000) k, generate_series(5001, 5040) e;
SELECT fav_attach('pairs', 'k', 'e', share => 700, build => false);
INSERT INTO pairs VALUES (1500, 1), (-1500, 1);
SELECT count(*) FROM pairs_fav_levels;
CALL fav_build('pairs');
SELECT share, complete, active FROM fav_attachments;
SELECT keys, elements, missing, stale FROM fav_verify('pairs');
SELECT k_group, fav_count(filter) / 1000 AS thousands FROM pairs_fav ORDER BY 1;
UPDATE pairs_fav_levels SET recent = fav_recent('pairs', 0.01, 0, 700), base = '\x01';
CALL fav_build('pairs', rebuild => true);
SELECT keys, elements, missing, stale FROM fav_verify('pairs');
SELECT fav_detach('pairs');
DROP TABLE pairs;

-- More than one batch, for keys of other types, NULLs among them
CREATE DOMAIN label AS varchar(20);
CREATE TABLE others (id int, name label COLLATE "C", at timestamptz, post uuid);
INSERT INTO others SELECT i, nullif('n' || i % 5000, 'n7'), 'epoch'::timestamptz + i % 3000 * interval '1 hour', md5(i::text)::uuid FROM generate_series(1, 150000) i;
INSERT INTO others VALUES (0, NULL, NULL, NULL), (0, 'only', 'infinity', NULL);
CREATE INDEX ON others (name);
CREATE INDEX ON others (at, post);
SELECT fav_attach('others', 'name', 'post', build => false, name => 'by_name');
SELECT fav_attach('others', 'at', 'post', build => false, name => 'by_time');
INSERT INTO others VALUES (-1, 'n8', '-infinity', md5('x')::uuid);
CALL fav_build('others', 'by_name');
CALL fav_build('others', 'by_time');
SELECT a.filter, v.keys, v.elements, v.missing, v.stale FROM fav_attachments a, fav_verify(a.source, a.filter::text::name) v ORDER BY a.filter::text;
CALL fav_build('others', 'by_name', rebuild => true);
SELECT keys, elements, missing, stale FROM fav_verify('others', 'by_name');
-- a build that goes on where it was, with little memory
DELETE FROM by_name_fav_levels WHERE name::text COLLATE "C" > 'n3';
SET work_mem = '64kB';
CALL fav_build('others', 'by_name');
RESET work_mem;
SELECT keys, elements, missing, stale FROM fav_verify('others', 'by_name');
SELECT fav_detach('others', filter::text::name) FROM fav_attachments;
DROP TABLE others;
DROP DOMAIN label;
-- without an index there is one batch
CREATE TABLE plain (k int, e int);
INSERT INTO plain SELECT i % 100, i FROM generate_series(1, 1000) i;
CREATE INDEX ON plain USING hash (k);
CREATE INDEX ON plain (k) WHERE e > 10;
SELECT fav_attach('plain', 'k', 'e', build => false);
CALL fav_build('plain');
CALL fav_build('plain', rebuild => true);
SELECT keys, elements, missing, stale FROM fav_verify('plain');
SELECT fav_detach('plain');
DROP TABLE plain;

-- Partitions
CREATE TABLE parts (k int, e int, PRIMARY KEY (k, e)) PARTITION BY HASH (k);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_1 (e int NOT NULL, k int NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT k, e FROM generate_series(1, 1000) k, generate_series(1, 150) e;
SELECT fav_attach('parts', 'k', 'e', build => false);
SELECT fav_attach('parts', 'k', 'e', build => false, share => 30, name => 'shared');
DELETE FROM parts WHERE k % 100 = 0 AND e < 100;
CALL fav_build('parts', 'parts');
CALL fav_build('parts', 'shared');
TRUNCATE parts_0;
SELECT a.filter, v.missing, v.stale FROM fav_attachments a, fav_verify(a.source, a.filter::text::name) v ORDER BY a.filter::text;
SELECT fav_detach('parts', 'parts_fav'), fav_detach('parts', 'shared');
DROP TABLE parts;

-- Rights: the owner of the source builds, as the owner
CREATE ROLE fav_builder;
CREATE ROLE fav_stranger;
GRANT CREATE ON SCHEMA public TO fav_builder;
SET ROLE fav_builder;
CREATE TABLE mine (k int, e int, PRIMARY KEY (k, e));
INSERT INTO mine SELECT i % 10, i FROM generate_series(1, 100) i;
SELECT fav_attach('mine', 'k', 'e', build => false);
SET ROLE fav_stranger;
CALL fav_build('mine');
RESET ROLE;
CALL fav_build('mine');
SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'mine_fav';
SELECT missing, stale FROM fav_verify('mine');
SELECT current_user = session_user AS myself, current_setting('lock_timeout') AS lock_timeout, current_setting('enable_seqscan') AS seqscan;
SELECT fav_detach('mine');
DROP TABLE mine;
REVOKE CREATE ON SCHEMA public FROM fav_builder;
DROP ROLE fav_builder, fav_stranger;
DROP FUNCTION build_it;
