-- fav_attachments.active is false whenever filters would not be kept, or could not be read; and what to do then.
SET client_min_messages = warning;
CREATE ROLE fav_old;
CREATE ROLE fav_new;
CREATE SCHEMA yard;
GRANT ALL ON SCHEMA yard TO fav_old, fav_new;
CREATE FUNCTION state(source regclass) RETURNS TABLE (active boolean, missing bigint, stale bigint) LANGUAGE sql AS
	$$ SELECT a.active, v.missing, v.stale FROM fav_attachments a, fav_verify(source) v WHERE a.source = state.source $$;
CREATE FUNCTION is_active(source regclass) RETURNS boolean LANGUAGE sql AS $$ SELECT active FROM fav_attachments a WHERE a.source = is_active.source $$;

-- Another owner: the hint is complete, and detaching works after it
SET ROLE fav_old;
CREATE TABLE yard.pairs (k int, e int, PRIMARY KEY (k, e));
INSERT INTO yard.pairs VALUES (1, 1);
SELECT fav_attach('yard.pairs', 'k', 'e');
RESET ROLE;
ALTER TABLE yard.pairs OWNER TO fav_new;
SELECT is_active('yard.pairs');
INSERT INTO yard.pairs VALUES (1, 2);
SELECT fav_detach('yard.pairs');
ALTER TABLE yard.pairs_fav_levels OWNER TO fav_new;
SELECT is_active('yard.pairs');
SET ROLE fav_new;
SELECT fav_detach('yard.pairs');
RESET ROLE;
ALTER FUNCTION yard.pairs_has(bigint, bigint) OWNER TO fav_new;
SELECT is_active('yard.pairs');
SELECT fav_detach('yard.pairs');
ALTER VIEW yard.pairs_fav OWNER TO fav_new;
SELECT * FROM state('yard.pairs');
SET ROLE fav_new;
INSERT INTO yard.pairs VALUES (1, 2);
SELECT yard.pairs_has(1, 2), (SELECT filter @> 2 FROM yard.pairs_fav);
SELECT fav_detach('yard.pairs');
SELECT fav_attach('yard.pairs', 'k', 'e');
RESET ROLE;
-- only one of them
ALTER VIEW yard.pairs_fav OWNER TO fav_old;
SELECT is_active('yard.pairs');
DROP VIEW yard.pairs_fav;
SELECT is_active('yard.pairs');
ALTER FUNCTION yard.pairs_has(bigint, bigint) OWNER TO fav_old;
SELECT is_active('yard.pairs');
DROP FUNCTION yard.pairs_has;
SELECT is_active('yard.pairs');
SELECT fav_rebuild('yard.pairs');
SELECT is_active('yard.pairs');

-- Another primary key, or a unique index with another idea of equality
ALTER TABLE yard.pairs_fav_levels DROP CONSTRAINT pairs_fav_levels_pkey, ADD COLUMN id serial, ADD PRIMARY KEY (id);
SELECT is_active('yard.pairs');
INSERT INTO yard.pairs VALUES (1, 3);
DELETE FROM yard.pairs WHERE e = 1;
SELECT yard.pairs_has(1, 3), yard.pairs_has(1, 1);
INSERT INTO yard.pairs VALUES (2, 3);
CREATE UNIQUE INDEX ON yard.pairs_fav_levels (k);
SELECT * FROM state('yard.pairs');
INSERT INTO yard.pairs VALUES (3, 3), (1, 4);
SELECT * FROM state('yard.pairs');
DROP TABLE yard.pairs CASCADE;
DROP TABLE yard.pairs_fav_levels CASCADE;

-- A rule of the levels table replaces what writes it
CREATE TABLE ruled (k int, e int, PRIMARY KEY (k, e));
INSERT INTO ruled VALUES (1, 1);
SELECT fav_attach('ruled', 'k', 'e');
CREATE RULE nothing AS ON UPDATE TO ruled_fav_levels DO INSTEAD NOTHING;
SELECT is_active('ruled');
INSERT INTO ruled VALUES (1, 2);
DROP RULE nothing ON ruled_fav_levels;
SELECT is_active('ruled');
SELECT fav_detach('ruled');
DROP TABLE ruled;

-- The source has a name so long that those of the other objects are cut: levels table first, then the rest
CREATE TABLE yard.a234567890b234567890c234567890d234567890e234567890f234567890abc (k int, e int, PRIMARY KEY (k, e));
SELECT oid::regclass AS long FROM pg_class WHERE relname LIKE 'a234567890b%abc' \gset
SELECT fav_attach(:'long', 'k', 'e') AS has \gset
ALTER TABLE :long OWNER TO fav_new;
SELECT levels FROM fav_attachments WHERE source = :'long'::regclass \gset
ALTER TABLE :levels OWNER TO fav_new;
SELECT fav_detach(:'long');
ALTER FUNCTION :has OWNER TO fav_new;
SELECT fav_detach(:'long');
ALTER VIEW yard.a234567890b234567890c234567890d234567890e234567890f23456789_fav OWNER TO fav_new;
SELECT * FROM state(:'long');
SELECT fav_detach(:'long');
DROP TABLE :long;

-- A partition leaves.  Its pairs are still in the filters until they are rebuilt.
CREATE TABLE parts (k int, e int) PARTITION BY RANGE (e);
CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (e);
CREATE TABLE low_1 PARTITION OF low FOR VALUES FROM (0) TO (5);
CREATE TABLE high PARTITION OF parts FOR VALUES FROM (10) TO (20);
CREATE INDEX ON parts (k, e);
INSERT INTO parts VALUES (1, 1), (1, 11);
SELECT fav_attach('parts', 'k', 'e');
ALTER TABLE parts DETACH PARTITION low;
SELECT is_active('parts');
-- Rows that it gets now would be missing if it came back
INSERT INTO low VALUES (1, 2);
INSERT INTO low_1 VALUES (1, 2);
COPY low_1 FROM stdin;
1	2
\.
UPDATE low SET e = 3;
DELETE FROM low WHERE e = 1;
SELECT fav_rebuild('parts', '1');
SELECT is_active('parts');
SELECT fav_rebuild('parts');
SELECT * FROM state('parts');
INSERT INTO low VALUES (1, 2);
ALTER TABLE parts ATTACH PARTITION low FOR VALUES FROM (0) TO (10);
SELECT * FROM state('parts');
CALL fav_build('parts', rebuild => true);
SELECT * FROM state('parts');
ALTER TABLE parts DETACH PARTITION low;
CALL fav_build('parts');
SELECT is_active('parts');
CALL fav_build('parts', rebuild => true);
SELECT * FROM state('parts');
INSERT INTO low VALUES (1, 3);
DROP TABLE low;
-- one that is emptied outside, and comes back
CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10);
CALL fav_build('parts', rebuild => true);
INSERT INTO parts VALUES (1, 4), (1, 14);
ALTER TABLE parts DETACH PARTITION low;
TRUNCATE low;
ALTER TABLE parts ATTACH PARTITION low FOR VALUES FROM (0) TO (10);
SELECT * FROM state('parts');
-- a child
CREATE TABLE family (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE child (PRIMARY KEY (k, e)) INHERITS (family);
SELECT fav_attach('family', 'k', 'e');
INSERT INTO child VALUES (1, 1);
ALTER TABLE child NO INHERIT family;
SELECT is_active('family');
INSERT INTO child VALUES (1, 2);
SELECT fav_rebuild('family');
INSERT INTO child VALUES (1, 2);
SELECT * FROM state('family');
-- A table of somebody else with such triggers says nothing about the source, and may be written
CREATE TABLE yard.forged (k int, e int);
ALTER TABLE yard.forged OWNER TO fav_old;
CREATE TRIGGER forged AFTER INSERT ON yard.forged WHEN ('family_fav_levels'::regclass IS NOT NULL) EXECUTE FUNCTION fav_reconcile();
INSERT INTO yard.forged VALUES (1, 1);
SELECT is_active('family');
DROP TABLE yard.forged;

SELECT fav_detach('parts'), fav_detach('family');
DROP TABLE parts, family, child;
DROP FUNCTION state, is_active;
DROP SCHEMA yard CASCADE;
DROP ROLE fav_old, fav_new;
