--
-- Attached filters: types of keys and elements, equality, names
--
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA "Other types";
CREATE TYPE "Other types".mood AS ENUM ('sad', 'glad');
CREATE DOMAIN handle AS varchar(40);
CREATE DOMAIN post AS bigint CHECK (VALUE > 0);
CREATE DOMAIN scores AS int[];
CREATE TYPE pair_of_int AS (a int, b int);
CREATE DOMAIN domain_of_pair AS pair_of_int;

-- The number of differences between filters and source for two keys and two elements, in all
-- ways to read; and whether the levels table has the type of the key.
CREATE FUNCTION differences() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT count(*) FROM candidates c LEFT JOIN pairs_fav f ON f.k = c.k LEFT JOIN pairs_fav_levels l ON l.k = c.k,
			LATERAL (SELECT EXISTS (SELECT FROM pairs p WHERE p.k = c.k AND p.e = c.e) AS in_source) s
		WHERE fav_contains(f.filter, c.e) <> in_source OR fav_probe(l.base, l.middle, l.recent, c.e) <> in_source OR pairs_has(c.k, c.e) <> in_source)
	+ (SELECT count(*) FROM pg_attribute a, pg_attribute b
		WHERE a.attrelid = 'pairs'::regclass AND a.attname = 'k' AND b.attrelid = 'pairs_fav_levels'::regclass AND b.attname = 'k'
			AND (a.atttypid, a.atttypmod, a.attcollation) <> (b.atttypid, b.atttypmod, b.attcollation));
END $$;

CREATE FUNCTION try(key_type text, element_type text, k1 text, k2 text, e1 text, e2 text) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
	found bigint[];
BEGIN
	EXECUTE format('CREATE TABLE pairs (k %s, e %s)', key_type, element_type);
	CREATE INDEX ON pairs (k, e);
	CREATE TABLE candidates (LIKE pairs);
	EXECUTE format('INSERT INTO candidates VALUES (%1$L, %3$L), (%1$L, %4$L), (%2$L, %3$L), (%2$L, %4$L)', k1, k2, e1, e2);
	EXECUTE format('INSERT INTO pairs VALUES (%L, %L)', k1, e1);
	PERFORM fav_attach('pairs', 'k', 'e');
	found := found || differences();
	EXECUTE format('INSERT INTO pairs VALUES (%2$L, %3$L), (%1$L, %4$L), (%2$L, %4$L), (%1$L, NULL), (NULL, %3$L)', k1, k2, e1, e2);
	found := found || differences();
	EXECUTE format('DELETE FROM pairs WHERE k = %L AND e = %L', k1, e1);
	found := found || differences();
	EXECUTE format('UPDATE pairs SET k = %L WHERE k = %L AND e = %L', k1, k2, e1);
	EXECUTE format('UPDATE pairs SET e = %L WHERE k = %L AND e = %L', e1, k2, e2);
	found := found || differences();
	EXECUTE format('UPDATE pairs SET e = NULL WHERE k = %L', k2);
	EXECUTE format('UPDATE pairs SET k = %L WHERE k IS NULL', k2);
	found := found || differences();
	EXECUTE format('SELECT fav_rebuild(''pairs'', %L)', k1);
	PERFORM fav_rebuild('pairs');
	found := found || differences() || (SELECT missing + stale FROM fav_verify('pairs'));
	PERFORM fav_detach('pairs');
	DROP TABLE pairs, candidates;
	RETURN found;
END $$;

-- Types of keys
SELECT type, try(type, 'bigint', k1, k2, '10', '20') AS differences FROM (VALUES
	('bigint', '1', '-9223372036854775808'),
	('int', '1', '-2147483648'),
	('smallint', '1', '-32768'),
	('text', 'ann', 'bob'),
	('text COLLATE "C"', 'ann', 'Ann'),
	('varchar(9)', 'ann', ''),
	('varchar(9) COLLATE "POSIX"', 'ann', 'bob'),
	('char(5)', 'ann', 'bob'),
	('name', 'ann', 'bob'),
	('numeric', '1.50', 'NaN'),
	('numeric(6,2)', '1.50', '1.51'),
	('float8', '0.1', 'Infinity'),
	('bool', 't', 'f'),
	('uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
	('bytea', '\x01', '\x'),
	('date', '2026-01-01', 'infinity'),
	('timestamptz(0)', '2026-01-01', '2026-01-02'),
	('interval', '1 day', '1 month'),
	('inet', '10.0.0.1', '::1'),
	('varbit', '0', '00'),
	('jsonb', '{"a": 1}', '[]'),
	('int[]', '{1}', '{1,2}'),
	('scores', '{1}', '{1,2}'),
	('pair_of_int[]', '{"(1,2)"}', '{}'),
	('int4range', '[1,5)', 'empty'),
	('oid', '1', '4294967295'),
	('"Other types".mood', 'sad', 'glad'),
	('handle', 'ann', 'bob'),
	('post', '1', '2')
) v (type, k1, k2);
-- Types of elements
SELECT type, try('int', type, '1', '2', e1, e2) AS differences FROM (VALUES
	('int', '-2147483648', '2147483647'),
	('smallint', '-32768', '32767'),
	('bigint', '-9223372036854775808', '9223372036854775807'),
	('text', '', 'x'),
	('text COLLATE "C"', 'x', 'X'),
	('varchar(9)', 'x', 'y'),
	('uuid', 'c0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'd0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
	('bytea', '\xaa', '\x'),
	('post', '10', '20'),
	('handle', 'x', 'y')
) v (type, e1, e2);
SELECT try('text', 'text', 'ann', 'bob', 'x', 'y') AS differences;

-- A nondeterministic collation, if the server has ICU: keys are equal if the collation says so,
-- elements if their bytes are equal.
DO $$
BEGIN
	CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE TABLE pairs (k text COLLATE any_case, e text COLLATE any_case);
	CREATE INDEX ON pairs (k, e);
	INSERT INTO pairs VALUES ('ANN', 'x');
EXCEPTION WHEN others THEN
	RETURN;
END $$;
DO $$
DECLARE
	wanted text := 'ANN {X,Y}, bob {abc,ABC,Abc,abC}; keys 2, elements 6, missing 0, stale 0';
	got text;
BEGIN
	IF to_regclass('pairs') IS NULL THEN RETURN; END IF;
	PERFORM fav_attach('pairs', 'k', 'e');
	INSERT INTO pairs VALUES ('Ann', 'X'), ('ann', 'y'), ('bob', 'abc'), ('bob', 'ABC'), ('Bob', 'Abc'), ('BOB', 'aBc'), ('bOb', 'abC');
	UPDATE pairs SET e = 'Y' WHERE k = 'ann' AND e = 'y';
	DELETE FROM pairs WHERE e COLLATE "C" IN ('x', 'aBc');
	FOR i IN 1 .. 2 LOOP
		SELECT string_agg(concat(k, ' ', ARRAY(SELECT x FROM unnest('{x,X,y,Y,abc,ABC,Abc,aBc,abC}'::text[]) x WHERE filter @> x)), ', ' ORDER BY k)
		INTO got FROM pairs_fav;
		SELECT format('%s; keys %s, elements %s, missing %s, stale %s', got, keys, elements, missing, stale) INTO got FROM fav_verify('pairs');
		IF lower(got) <> lower(wanted) OR got !~ ' {X,Y}.* {abc,ABC,Abc,abC}' THEN
			RAISE WARNING 'nondeterministic collation: %', got;
		END IF;
		PERFORM fav_rebuild('pairs', 'BOB');
		PERFORM fav_rebuild('pairs');
	END LOOP;
	PERFORM fav_detach('pairs');
	DROP TABLE pairs;
	DROP COLLATION any_case;
END $$;

-- Equal keys with different text forms have one filter
CREATE TABLE pairs (k numeric, e int);
CREATE INDEX ON pairs (k, e);
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs SELECT CASE i % 3 WHEN 0 THEN 1 WHEN 1 THEN 1.0 ELSE 1.000 END, i FROM generate_series(1, 30) i;
DELETE FROM pairs WHERE k = 1.00 AND e <= 20;
UPDATE pairs SET k = 1.0000 WHERE e = 21;
SELECT count(*), min(fav_count(filter)) FROM pairs_fav;
SELECT keys, missing, stale FROM fav_verify('pairs');
SELECT fav_detach('pairs');
DROP TABLE pairs;

-- Large values, compressed and out of line
CREATE TABLE pairs (k text, e text);
CREATE INDEX ON pairs (k);
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs SELECT repeat('k', 2000), repeat(i::text, 100000) FROM generate_series(1, 5) i;
INSERT INTO pairs SELECT 'k', string_agg(md5(concat(i, j)), '') FROM generate_series(1, 3) i, generate_series(1, 300) j GROUP BY i;
UPDATE pairs SET e = e || 'x' WHERE e LIKE '2%';
DELETE FROM pairs WHERE e LIKE '3%' OR k = 'k' AND e = (SELECT min(e) FROM pairs WHERE k = 'k');
SELECT length(k), fav_count(filter), (SELECT count(*) FROM pairs p WHERE p.k = f.k AND filter @> p.e) FROM pairs_fav f ORDER BY 1;
SELECT keys, elements, missing, stale FROM fav_verify('pairs');
SELECT fav_detach('pairs');
DROP TABLE pairs;

-- A generated column can change without a trigger, when its expression changes
CREATE TABLE pairs (u int, p int, k int GENERATED ALWAYS AS (u % 3) STORED, e int GENERATED ALWAYS AS (p * 2) STORED);
SELECT fav_attach('pairs', 'k', 'p');
SELECT fav_attach('pairs', 'u', 'e');
DROP TABLE pairs;
CREATE TABLE pairs (k int, e int, u int, PRIMARY KEY (k, e));
SELECT fav_attach('pairs', 'k', 'e');
-- also in a child (PostgreSQL itself refuses that since 16)
DO $$
BEGIN
	CREATE TABLE child (k int NOT NULL, e int GENERATED ALWAYS AS (u * 2) STORED NOT NULL, u int);
	ALTER TABLE child INHERIT pairs;
	INSERT INTO pairs VALUES (1, 2, 3);
	RAISE WARNING 'a generated column was taken';
EXCEPTION WHEN object_not_in_prerequisite_state OR datatype_mismatch THEN
	RETURN;
END $$;
INSERT INTO pairs VALUES (1, 2, 3);
SELECT fav_detach('pairs');
DROP TABLE pairs;
DO $$
BEGIN
	IF current_setting('server_version_num')::int < 180000 THEN RETURN; END IF;
	EXECUTE 'CREATE TABLE pairs (u int, k int GENERATED ALWAYS AS (u % 3) VIRTUAL, e int)';
	PERFORM fav_attach('pairs', 'k', 'e');
	RAISE WARNING 'a virtual column was attached';
EXCEPTION WHEN feature_not_supported THEN
	RETURN;
END $$;

-- Columns that cannot be attached
CREATE TABLE pairs (k int PRIMARY KEY, e numeric, c char(3), f float8, j json, b bool, g point, r pair_of_int, d domain_of_pair, i bigint);
SELECT fav_attach('pairs', 'k', 'e');
SELECT fav_attach('pairs', 'k', 'c');
SELECT fav_attach('pairs', 'k', 'f');
SELECT fav_attach('pairs', 'k', 'b');
SELECT fav_attach('pairs', 'k', 'j');
SELECT fav_attach('pairs', 'j', 'k');
SELECT fav_attach('pairs', 'g', 'k');
SELECT fav_attach('pairs', 'r', 'k');
SELECT fav_attach('pairs', 'd', 'k');
SELECT fav_attach('pairs', 'k', 'k');
SELECT fav_attach('pairs', 'k', 'nothing');
SELECT fav_attach('pairs', 'nothing', 'k');
SELECT fav_attach('pairs', 'tableoid', 'k');
SELECT fav_attach('pairs', 'ctid', 'k');
SELECT fav_attach('pairs', NULL, 'k');
SELECT fav_attach(NULL, 'k', 'i');
SELECT fav_attach('pairs', 'k', 'i', error_rate => NULL);
SELECT fav_attach('pairs', 'k', 'i', error_rate => 2);
SELECT fav_attach('pairs', 'k', 'i', error_rate => 'NaN');
SELECT fav_attach(0, 'k', 'i');
SELECT to_regclass('pairs_fav'), to_regclass('pairs_fav_levels'), count(*) FROM fav_attachments;
DROP TABLE pairs;

-- A key with more digits than its column stores is another key, or none.  fav_rebuild ends in
-- both cases.
CREATE FUNCTION ends(query text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE query;
	RETURN true;
EXCEPTION
	WHEN query_canceled THEN RETURN false;
	WHEN others THEN RETURN true;
END $$;
CREATE TABLE pairs (k numeric(5,2), e int, PRIMARY KEY (k, e));
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs VALUES (1.23, 1), (1.24, 2);
SET statement_timeout = '10s';
SELECT ends($$SELECT fav_rebuild('pairs', '1.234')$$);
SELECT ends($$SELECT fav_rebuild('pairs', '12345.6')$$);
RESET statement_timeout;
SELECT missing, stale FROM fav_verify('pairs');
SELECT fav_detach('pairs');
DROP TABLE pairs;

-- Names
CREATE SCHEMA "Odd ""schema";
CREATE TABLE "Odd ""schema"."Hidden Posts" ("User" int, "Post's ""id""" int, UNIQUE ("User", "Post's ""id"""));
SELECT fav_attach('"Odd ""schema"."Hidden Posts"', 'User', 'Post''s "id"');
INSERT INTO "Odd ""schema"."Hidden Posts" VALUES (1, 2), (1, 3);
DELETE FROM "Odd ""schema"."Hidden Posts" WHERE "Post's ""id""" = 3;
SELECT source, key, element, filter, levels, active FROM fav_attachments;
SELECT "User", filter @> 2 AS two, filter @> 3 AS three FROM "Odd ""schema"."Hidden Posts_fav";
SELECT l."User", fav_probe(l.base, l.middle, l.recent, 2) AS two, fav_probe(l.base, l.middle, l.recent, 3) AS three FROM "Odd ""schema"."Hidden Posts_fav_levels" l;
SELECT fav_rebuild('"Odd ""schema"."Hidden Posts"', '1', 'Hidden Posts_fav');
SELECT missing, stale FROM fav_verify('"Odd ""schema"."Hidden Posts"');
SELECT fav_detach('"Odd ""schema"."Hidden Posts"');
-- SQL keywords, a backslash, a percent sign; columns with the names of ours
CREATE TABLE "select" ("order" int, levels text, element int, k int, l int, PRIMARY KEY ("order", levels));
SELECT fav_attach('"select"', 'order', 'levels', name => 'a\b%s''$fav$');
INSERT INTO "select" VALUES (1, 'x'), (1, 'y');
DELETE FROM "select" WHERE levels = 'y';
SELECT "order", fav_probe(l.base, l.middle, l.recent, 'x') AS x, fav_probe(l.base, l.middle, l.recent, 'y') AS y FROM "a\b%s'$fav$_fav_levels" l;
SELECT missing, stale FROM fav_verify('"select"', 'a\b%s''$fav$');
SELECT fav_detach('"select"');
DROP TABLE "select";
-- names of the maximal length: derived names are truncated
CREATE TABLE a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre', 'k', 'e');
SELECT fav_attach('a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre', 'k', 'e',
	name => 'another_name_for_filters_that_is_as_long_as_a_name_can_be_in_pos');
INSERT INTO a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre VALUES (1, 1);
SELECT filter, levels, active FROM fav_attachments ORDER BY filter::text;
SELECT missing, stale, elements FROM fav_verify('a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre',
	'a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_pos_fav');
SELECT missing, stale, elements FROM fav_verify('a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre',
	'another_name_for_filters_that_is_as_long_as_a_name_can_be_in_po');
SELECT fav_detach(source, get_name) FROM fav_attachments, LATERAL (SELECT relname FROM pg_class WHERE oid = filter) n (get_name);
DROP TABLE a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre;

-- A session without a search_path
CREATE TABLE pairs (k "Other types".mood, e int, PRIMARY KEY (k, e));
SET search_path = '';
SELECT public.fav_attach('public.pairs', 'k', 'e');
INSERT INTO public.pairs VALUES ('sad', 1), ('glad', 2);
UPDATE public.pairs SET k = 'sad' WHERE e = 2;
DELETE FROM public.pairs WHERE e = 1;
SELECT source, filter, levels, active FROM public.fav_attachments;
SELECT k, public.fav_contains(filter, 1) AS one, public.fav_contains(filter, 2) AS two FROM public.pairs_fav ORDER BY k;
SELECT k, public.fav_probe(l.base, l.middle, l.recent, 1) AS one, public.fav_probe(l.base, l.middle, l.recent, 2) AS two FROM public.pairs_fav_levels l ORDER BY k;
SELECT public.fav_rebuild('public.pairs', 'sad');
SELECT public.fav_rebuild('public.pairs');
SELECT keys, elements, missing, stale FROM public.fav_verify('public.pairs');
SELECT keys FROM public.fav_attachment_stats('public.pairs');
TRUNCATE public.pairs;
SELECT public.fav_detach('public.pairs');
RESET search_path;
DROP TABLE pairs;

-- A domain over an enum
CREATE DOMAIN feeling AS "Other types".mood;
CREATE TABLE pairs (k feeling, e int, PRIMARY KEY (k, e));
INSERT INTO pairs VALUES ('sad', 1);
SELECT fav_attach('pairs', 'k', 'e');
INSERT INTO pairs VALUES ('sad', 2), ('glad', 1);
UPDATE pairs SET k = 'glad' WHERE e = 2;
DELETE FROM pairs WHERE e = 1;
SELECT fav_rebuild('pairs', 'glad');
SELECT keys, elements, missing, stale FROM fav_verify('pairs');
SELECT k, fav_contains(filter, 1) AS one, fav_contains(filter, 2) AS two FROM pairs_fav ORDER BY k;
SELECT fav_detach('pairs');
DROP TABLE pairs;
DROP DOMAIN feeling;

-- fav_rebuild reads a key as its column would.  The filter of the key is emptied, then rebuilt.
CREATE FUNCTION rebuilt(type text, key text) RETURNS TABLE (k text, rebuilt boolean) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE pairs (k %s, e int, PRIMARY KEY (k, e))', type);
	EXECUTE format('INSERT INTO pairs VALUES (%L, 1)', key);
	PERFORM fav_attach('pairs', 'k', 'e');
	UPDATE pairs_fav_levels SET recent = fav_new();
	PERFORM fav_rebuild('pairs', key);
	RETURN QUERY SELECT l.k::text, fav_probe(l.base, l.middle, l.recent, 1) FROM pairs_fav_levels l;
	PERFORM fav_detach('pairs');
	DROP TABLE pairs;
END $$;
CREATE DOMAIN price AS numeric(10,2);
SELECT * FROM rebuilt('numeric(10,2)', '1.234');
SELECT * FROM rebuilt('price', '1.234');
SELECT * FROM rebuilt('timestamp(0)', '2026-01-01 00:00:00.7');
SELECT * FROM rebuilt('char(4)', 'ab');
SELECT * FROM rebuilt('varchar(4)', 'ab');
DROP FUNCTION rebuilt;
DROP DOMAIN price;
-- a value that the column refuses is an error
CREATE TABLE pairs (k varchar(3), e int, PRIMARY KEY (k, e));
SELECT fav_attach('pairs', 'k', 'e');
SELECT fav_rebuild('pairs', 'abcd');
SELECT fav_detach('pairs');
DROP TABLE pairs;

-- Levels of different filters are an error, not the result false.
SELECT fav_probe(fav_agg(i), NULL, fav_add(fav_new(), 'a'::text), 'a'::text) FROM generate_series(1, 300) i;
SELECT fav_probe(fav_agg(i), NULL, fav_add(fav_new(), 'a'::text), 'b'::text) FROM generate_series(1, 300) i;
SELECT fav_probe(NULL, fav_agg(i::text), fav_add(fav_new(), 7), 8) FROM generate_series(1, 300) i;
SELECT fav_probe(fav_agg(i), NULL, fav_add(fav_new(seed => 5), 700), 8) FROM generate_series(1, 300) i;
SELECT fav_probe(fav_agg(i), NULL, fav_add(fav_new(), 700), 8) FROM generate_series(1, 300) i;

DROP SCHEMA "Odd ""schema", "Other types" CASCADE;
DROP FUNCTION try, differences, ends;
DROP DOMAIN handle, post, scores, domain_of_pair;
DROP TYPE pair_of_int;
