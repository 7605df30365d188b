--
-- Filters that maintain themselves: types of elements and keys
--
\set SHOW_CONTEXT never
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE DOMAIN handle AS varchar(40);
CREATE DOMAIN post AS bigint CHECK (VALUE > 0);

CREATE FUNCTION try(key_type text, element_type text, key1 text, key2 text, e1 text, e2 text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('CREATE TABLE pairs (k %s, e %s, UNIQUE (k, e))', key_type, element_type);
	EXECUTE format('INSERT INTO pairs VALUES (%L, %L)', key1, e1);
	PERFORM fav_attach('pairs', 'k', 'e');
	EXECUTE format('INSERT INTO pairs VALUES (%L, %L), (%1$L, %4$L), (%3$L, %4$L)', key2, e1, key1, e2);
	EXECUTE format('DELETE FROM pairs WHERE k = %L AND e = %L', key1, e1);
	EXECUTE format('UPDATE pairs SET k = %L WHERE k = %L AND e = %L', key1, key2, e1);
	EXECUTE format('SELECT string_agg(format(''%%s: %%s %%s'', k, fav_contains(filter, %L::%s), fav_contains(filter, %L::%2$s)), '', '' ORDER BY k)
		FROM pairs_fav', e1, CASE WHEN element_type IN ('smallint', 'int', 'post') THEN 'bigint' WHEN element_type ~ 'char|handle' THEN 'text' ELSE element_type END, e2) INTO result;
	SELECT result || '; missing ' || missing INTO result FROM fav_verify('pairs');
	EXECUTE format('SELECT fav_rebuild(''pairs'', %L)', key1);
	DROP TABLE pairs, pairs_fav;
	RETURN result;
END $$;

SELECT try('bigint', 'bigint', '1', '2', '10', '20');
SELECT try('int', 'int', '1', '2', '10', '20');
SELECT try('smallint', 'smallint', '1', '2', '10', '20');
SELECT try('text', 'text', 'ann', 'bob', 'x', 'y');
SELECT try('varchar(9)', 'varchar(9)', 'ann', 'bob', 'x', 'y');
SELECT try('uuid', 'uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
	'c0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'd0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
SELECT try('bytea', 'bytea', '\x01', '\x02', '\xaa', '\xbb');
SELECT try('date', 'text', '2026-01-01', '2026-01-02', 'x', 'y');
SELECT try('numeric', 'bigint', '1.50', '2', '10', '20');
SELECT try('mood', 'bigint', 'sad', 'glad', '10', '20');
SELECT try('int[]', 'bigint', '{1}', '{1,2}', '10', '20');
SELECT try('name', 'bigint', 'ann', 'bob', '10', '20');
SELECT try('char(5)', 'bigint', 'ann', 'bob', '10', '20');
SELECT try('handle', 'post', 'ann', 'bob', '10', '20');
SELECT try('post', 'handle', '1', '2', 'x', 'y');
SELECT try('text COLLATE "C"', 'text COLLATE "C"', 'ann', 'bob', 'x', 'y');

-- what cannot be
SELECT try('json', 'bigint', '1', '2', '10', '20');
CREATE TABLE pairs (k int PRIMARY KEY, e numeric, c char(3), f float8, j json);
SELECT fav_attach('pairs', 'k', 'e');
SELECT fav_attach('pairs', 'k', 'c');
SELECT fav_attach('pairs', 'k', 'f');
SELECT fav_attach('pairs', 'j', 'k');
SELECT fav_attach('pairs', 'k', 'nothing');
SELECT fav_attach('pairs', 'nothing', 'k');
SELECT fav_attach('pairs', 'ctid', 'k');
SELECT to_regclass('pairs_fav');
DROP TABLE pairs;

-- key of the target: integers of another width, text for varchar; nothing else
CREATE TABLE pairs (k int, v varchar, e bigint, PRIMARY KEY (k, e));
CREATE TABLE wide (k bigint PRIMARY KEY, f fav);
CREATE TABLE narrow (k smallint PRIMARY KEY, f fav);
CREATE TABLE words (k text PRIMARY KEY, f fav);
SELECT fav_attach('pairs', 'k', 'e', 'wide');
SELECT fav_attach('pairs', 'k', 'e', 'narrow');
SELECT fav_attach('pairs', 'v', 'e', 'words');
SELECT fav_attach('pairs', 'k', 'e', 'words');
INSERT INTO pairs VALUES (1, 'one', 7), (2, 'two', 8);
SELECT k, f @> 7 AS seven, f @> 8 AS eight FROM wide ORDER BY k;
SELECT k, f @> 7 AS seven, f @> 8 AS eight FROM narrow ORDER BY k;
SELECT k, f @> 7 AS seven, f @> 8 AS eight FROM words ORDER BY k;
INSERT INTO pairs VALUES (100000, 'many', 1);
DROP TABLE pairs, wide, narrow, words;

-- names
CREATE SCHEMA "Odd ""schema";
CREATE TABLE "Odd ""schema"."Hidden Posts" ("User" int, "Post's ""id""" int, UNIQUE ("User", "Post's ""id"""));
SELECT fav_attach('"Odd ""schema"."Hidden Posts"', 'User', 'Post''s "id"');
INSERT INTO "Odd ""schema"."Hidden Posts" VALUES (1, 2), (1, 3);
DELETE FROM "Odd ""schema"."Hidden Posts" WHERE "Post's ""id""" = 3;
SELECT * FROM fav_verify('"Odd ""schema"."Hidden Posts"');
SELECT "User", filter @> 2 AS two, filter @> 3 AS three FROM "Odd ""schema"."Hidden Posts_fav";
CREATE TABLE a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre', 'k', 'e');
INSERT INTO a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre VALUES (1, 1);
SELECT missing FROM fav_verify('a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre');
DROP TABLE a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_postgre CASCADE;
DROP TABLE a_table_with_a_name_that_is_as_long_as_a_name_can_be_in_pos_fav;
SET client_min_messages = warning;
DROP SCHEMA "Odd ""schema" CASCADE;
DROP FUNCTION try;
DROP DOMAIN handle, post;
DROP TYPE mood;
