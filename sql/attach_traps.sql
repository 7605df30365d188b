-- Unusual changes of the tables of an attachment: each works, or the error says what to do.
CREATE FUNCTION missing_and_stale(source regclass) RETURNS TABLE (missing bigint, stale bigint) LANGUAGE sql AS
	$$ SELECT missing, stale FROM fav_verify(source) $$;
CREATE FUNCTION is_active(source regclass) RETURNS boolean LANGUAGE sql AS
	$$ SELECT active FROM fav_attachments a WHERE a.source = is_active.source $$;

-- A grandchild that becomes part of the source again because its parent inherits again
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE child (PRIMARY KEY (k, e)) INHERITS (pairs);
CREATE TABLE grandchild (PRIMARY KEY (k, e)) INHERITS (child);
SELECT fav_attach('pairs', 'k', 'e');
ALTER TABLE child NO INHERIT pairs;
INSERT INTO grandchild VALUES (1, 1);
SELECT count(*) FROM pairs_fav;
ALTER TABLE child INHERIT pairs;
INSERT INTO grandchild VALUES (1, 2);
SELECT * FROM missing_and_stale('pairs');
DROP TABLE child CASCADE;
SELECT fav_rebuild('pairs');

-- Logged and unlogged tables
ALTER TABLE pairs_fav_levels SET UNLOGGED;
SELECT is_active('pairs');
INSERT INTO pairs VALUES (1, 3);
ALTER TABLE pairs_fav_levels SET LOGGED;
SELECT is_active('pairs');
INSERT INTO pairs VALUES (1, 3);
CREATE TEMP TABLE child () INHERITS (pairs);
SELECT is_active('pairs');
INSERT INTO pairs VALUES (1, 4);
DROP TABLE child;
INSERT INTO pairs VALUES (1, 4);
SELECT * FROM missing_and_stale('pairs');

-- A levels table without its primary key
ALTER TABLE pairs_fav_levels DROP CONSTRAINT pairs_fav_levels_pkey CASCADE;
SELECT is_active('pairs');
INSERT INTO pairs VALUES (1, 5);
INSERT INTO pairs VALUES (2, 5);
ALTER TABLE pairs_fav_levels ADD PRIMARY KEY (k);
SELECT is_active('pairs');
INSERT INTO pairs VALUES (2, 5);
SELECT * FROM missing_and_stale('pairs');

-- A levels table that does not name its source
ALTER TABLE pairs_fav_levels ALTER recent DROP DEFAULT;
SELECT count(*) FROM fav_attachments WHERE source = 'pairs'::regclass;
INSERT INTO pairs VALUES (1, 6);
SELECT fav_attach('pairs', 'k', 'e', name => 'second');
BEGIN;
SELECT fav_detach('pairs');
SELECT to_regclass('pairs_fav_levels'), count(*) FROM pg_trigger WHERE tgrelid = 'pairs'::regclass;
ROLLBACK;
ALTER TABLE pairs_fav_levels ALTER recent SET DEFAULT fav_recent('pairs', '0.01', '0', 0);
INSERT INTO pairs VALUES (1, 6);
SELECT * FROM missing_and_stale('pairs');

-- Rules that suppress the writes of fav_rebuild
CREATE RULE swallow AS ON INSERT TO pairs_fav_levels DO INSTEAD NOTHING;
SELECT fav_rebuild('pairs');
DROP RULE swallow ON pairs_fav_levels;
CREATE RULE swallow AS ON DELETE TO pairs_fav_levels DO INSTEAD NOTHING;
SELECT fav_rebuild('pairs');
DROP RULE swallow ON pairs_fav_levels;
SELECT * FROM missing_and_stale('pairs');

-- While pairs wait for the end of the transaction: the extension moves, the owner changes, a trigger is dropped
ALTER TABLE pairs DISABLE TRIGGER pairs_fav_levels_statement;
CREATE SCHEMA elsewhere;
BEGIN;
INSERT INTO pairs VALUES (1, 7);
ALTER EXTENSION fav SET SCHEMA elsewhere;
COMMIT;
ALTER EXTENSION fav SET SCHEMA public;
SELECT * FROM missing_and_stale('pairs');
CREATE ROLE fav_heir;
BEGIN;
INSERT INTO pairs VALUES (1, 8);
ALTER TABLE pairs OWNER TO fav_heir;
COMMIT;
BEGIN;
INSERT INTO pairs VALUES (1, 8);
ALTER TABLE pairs OWNER TO fav_heir;
ALTER TABLE pairs_fav_levels OWNER TO fav_heir;
ALTER VIEW pairs_fav OWNER TO fav_heir;
ALTER FUNCTION pairs_has(bigint, bigint) OWNER TO fav_heir;
GRANT ALL ON SCHEMA public TO fav_heir;
COMMIT;
SELECT * FROM missing_and_stale('pairs');
BEGIN;
INSERT INTO pairs VALUES (1, 9);
DROP TRIGGER pairs_fav_levels_insert ON pairs;
DROP TRIGGER pairs_fav_levels_update ON pairs;
DROP TRIGGER pairs_fav_levels_delete ON pairs;
COMMIT;
BEGIN;
INSERT INTO pairs VALUES (1, 9);
SELECT fav_detach('pairs');
COMMIT;
SELECT count(*) FROM pairs WHERE e = 9;
DROP TABLE pairs;
DROP OWNED BY fav_heir;
DROP ROLE fav_heir;
DROP SCHEMA elsewhere;

-- While pairs wait: a new unique index, and a partition that is attached again
CREATE TABLE pairs (k int, e int) PARTITION BY LIST (k);
CREATE INDEX ON pairs (k, e);
SELECT fav_attach('pairs', 'k', 'e');
CREATE TABLE late PARTITION OF pairs FOR VALUES IN (1);
INSERT INTO late VALUES (1, 1), (1, 1), (1, 2);
BEGIN;
DELETE FROM late WHERE ctid = (SELECT min(ctid) FROM late WHERE e = 1);
CREATE UNIQUE INDEX ON pairs (k, e);
COMMIT;
SELECT * FROM missing_and_stale('pairs');
BEGIN;
DELETE FROM late WHERE e = 1;
ALTER TABLE pairs DETACH PARTITION late;
INSERT INTO late VALUES (1, 1);
ALTER TABLE pairs ATTACH PARTITION late FOR VALUES IN (1);
SELECT fav_rebuild('pairs');
COMMIT;
SELECT * FROM missing_and_stale('pairs');
SELECT fav_detach('pairs');
DROP TABLE pairs;
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e)) PARTITION BY LIST (k);
SELECT fav_attach('pairs', 'k', 'e');
CREATE TABLE late PARTITION OF pairs FOR VALUES IN (1);
BEGIN;
INSERT INTO late VALUES (1, 3), (1, 4);
TRUNCATE late;
SELECT fav_rebuild('pairs');
COMMIT;
SELECT * FROM missing_and_stale('pairs');
SELECT fav_detach('pairs');
DROP TABLE pairs;

-- A middle that becomes empty, and then gets elements again
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
INSERT INTO pairs SELECT 1, i FROM generate_series(1, 1000) i;
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs SELECT 1, i FROM generate_series(2001, 2100) i;
DELETE FROM pairs WHERE e > 2000;
INSERT INTO pairs SELECT 1, i FROM generate_series(3001, 3200) i;
INSERT INTO pairs VALUES (1, 5000);
SELECT * FROM missing_and_stale('pairs');

-- A levels table without its key does not break fav_attachments
ALTER TABLE pairs_fav_levels DROP COLUMN k CASCADE;
SELECT is_active('pairs');
INSERT INTO pairs VALUES (1, 5001);
SELECT fav_detach('pairs');
DROP TABLE pairs;

-- A function of the owner, and an extension that is dropped while pairs wait
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('pairs', 'k', 'e');
CREATE FUNCTION all_in(l pairs_fav_levels, elements bigint[]) RETURNS boolean LANGUAGE sql AS
	'SELECT bool_and(pairs_has(l.k, e)) FROM unnest(elements) e';
SELECT fav_detach('pairs');
DROP FUNCTION all_in(pairs_fav_levels, bigint[]);
-- the filter of one key can be rebuilt whatever its levels are
INSERT INTO pairs VALUES (1, 1);
UPDATE pairs_fav_levels SET recent = (SELECT fav_agg(i) FROM generate_series(1, 1000) i);
SELECT fav_rebuild('pairs', '1');
SELECT * FROM missing_and_stale('pairs');
ALTER TABLE pairs DISABLE TRIGGER pairs_fav_levels_statement;
BEGIN;
INSERT INTO pairs VALUES (1, 2);
SET LOCAL client_min_messages = warning;
DROP EXTENSION fav CASCADE;
COMMIT;
CREATE EXTENSION fav;
SET client_min_messages = warning;
DROP TABLE pairs, pairs_fav_levels CASCADE;
RESET client_min_messages;

-- Attaching within a statement that writes the source, and beside a similar function
CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
WITH a AS MATERIALIZED (SELECT fav_attach('pairs', 'k', 'e')) INSERT INTO pairs SELECT 1, i FROM a, generate_series(1, 10) i;
CREATE FUNCTION fav_recent(regclass, text, text, int) RETURNS fav LANGUAGE plpgsql AS 'BEGIN RAISE WARNING ''not ours''; RETURN NULL; END';
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs VALUES (1, 1);
SELECT * FROM missing_and_stale('pairs');
SELECT fav_detach('pairs');
DROP FUNCTION fav_recent(regclass, text, text, int);
DROP TABLE pairs;

-- A writer with an equality operator for the domain of the key
CREATE DOMAIN user_number AS int;
CREATE FUNCTION never(user_number, user_number) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR = (LEFTARG = user_number, RIGHTARG = user_number, FUNCTION = never);
CREATE TABLE pairs (k user_number, e int, PRIMARY KEY (k, e));
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs SELECT 1, i FROM generate_series(1, 300) i;
UPDATE pairs SET k = 2 WHERE e > 290;
DELETE FROM pairs WHERE e <= 3;
SELECT * FROM missing_and_stale('pairs');
SELECT fav_rebuild('pairs', '2');
SELECT * FROM missing_and_stale('pairs');
SELECT fav_detach('pairs');
DROP TABLE pairs;
DROP OPERATOR = (user_number, user_number);
DROP FUNCTION never;
DROP DOMAIN user_number;

-- A type that is coercible to one with a default operator class, and somebody's operator on that type itself
SET client_min_messages = warning;
CREATE SCHEMA trap;
CREATE TYPE trap.wide;
CREATE FUNCTION trap.wide_in(cstring) RETURNS trap.wide LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION trap.wide_out(trap.wide) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE trap.wide (INPUT = trap.wide_in, OUTPUT = trap.wide_out, LIKE = int4);
CREATE TYPE trap.narrow;
CREATE FUNCTION trap.narrow_in(cstring) RETURNS trap.narrow LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION trap.narrow_out(trap.narrow) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE trap.narrow (INPUT = trap.narrow_in, OUTPUT = trap.narrow_out, LIKE = int4);
CREATE CAST (trap.narrow AS trap.wide) WITHOUT FUNCTION AS IMPLICIT;
DO $$ DECLARE o record; types text; l text; r text; BEGIN
	FOR o IN SELECT * FROM (VALUES ('<', 'lt'), ('<=', 'le'), ('=', 'eq'), ('>=', 'ge'), ('>', 'gt')) v (name, suffix) LOOP
		EXECUTE format('CREATE FUNCTION trap.%2$s(trap.wide, trap.wide) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS %3$L', o.name, o.suffix, 'int4' || o.suffix);
		EXECUTE format('CREATE OPERATOR trap.%1$s (LEFTARG = trap.wide, RIGHTARG = trap.wide, FUNCTION = trap.%2$s)', o.name, o.suffix);
		FOREACH types IN ARRAY '{narrow narrow,narrow wide,wide narrow}'::text[] LOOP
			l := split_part(types, ' ', 1);
			r := split_part(types, ' ', 2);
			EXECUTE format('CREATE OR REPLACE FUNCTION trap.trapped(trap.%s, trap.%s) RETURNS boolean LANGUAGE plpgsql AS %L', l, r, 'BEGIN RAISE EXCEPTION ''trapped''; END');
			EXECUTE format('CREATE OPERATOR trap.%s (LEFTARG = trap.%s, RIGHTARG = trap.%s, FUNCTION = trap.trapped)', o.name, l, r);
		END LOOP;
	END LOOP;
END $$;
CREATE FUNCTION trap.cmp(trap.wide, trap.wide) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
CREATE OPERATOR CLASS trap.wide_ops DEFAULT FOR TYPE trap.wide USING btree AS
	OPERATOR 1 trap.<, OPERATOR 2 trap.<=, OPERATOR 3 trap.=, OPERATOR 4 trap.>=, OPERATOR 5 trap.>, FUNCTION 1 trap.cmp(trap.wide, trap.wide);
CREATE DOMAIN trap.narrowest AS trap.narrow;
CREATE TABLE trap.pairs (k trap.narrow, e int, PRIMARY KEY (k, e));
CREATE TABLE trap.domains (k trap.narrowest, e int, PRIMARY KEY (k, e));
INSERT INTO trap.pairs VALUES ('1', 1), ('2', 1);
SELECT fav_attach('trap.pairs', 'k', 'e'), fav_attach('trap.domains', 'k', 'e');
INSERT INTO trap.pairs VALUES ('1', 2), ('3', 1);
UPDATE trap.pairs SET e = 5 WHERE e = 1;
DELETE FROM trap.pairs WHERE e = 2;
INSERT INTO trap.domains SELECT * FROM trap.pairs;
DELETE FROM trap.domains WHERE e = 1;
CALL fav_build('trap.pairs', rebuild => true);
SELECT trap.pairs_has('1', 5), trap.pairs_has('1', 2), trap.domains_has('3', 5);
SELECT keys, elements, missing, stale FROM fav_verify('trap.pairs') UNION ALL SELECT keys, elements, missing, stale FROM fav_verify('trap.domains');
ALTER TYPE trap.wide RENAME TO wider;
INSERT INTO trap.pairs VALUES ('1', 7);
DELETE FROM trap.pairs WHERE e = 5;
SELECT fav_detach('trap.pairs'), fav_detach('trap.domains');
DROP SCHEMA trap CASCADE;
RESET client_min_messages;

-- Kinds of elements for which hash collisions can be crafted get a random seed.
CREATE TABLE pairs (k int, i int, t text, u uuid, b bytea, PRIMARY KEY (k, i));
SELECT count(fav_attach('pairs', 'k', c::name, name => ('by_' || c)::name)) FROM unnest('{i,t,u,b}'::text[]) c;
INSERT INTO pairs VALUES (1, 1, 'one', '00000000-0000-0000-0000-000000000001', '\x01');
SELECT (SELECT (fav_stats(filter)).seed <> 0 FROM by_i_fav) AS i, (SELECT (fav_stats(filter)).seed <> 0 FROM by_t_fav) AS t,
	(SELECT (fav_stats(filter)).seed <> 0 FROM by_u_fav) AS u, (SELECT (fav_stats(filter)).seed <> 0 FROM by_b_fav) AS b;
SELECT count(fav_detach('pairs', ('by_' || c)::name)) FROM unnest('{i,t,u,b}'::text[]) c;
DROP TABLE pairs;
DROP FUNCTION missing_and_stale, is_active;
