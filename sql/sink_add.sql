-- <sink>_add: adds elements, and returns those that were new
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE TABLE seen(user_id int, post_id int, PRIMARY KEY (user_id, post_id));
SELECT fav_sink('seen', 'user_id', 'post_id');
SELECT provolatile, proparallel, pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE 'seen\_%' ORDER BY proname;

-- In their order, each once; NULLs are skipped, and arrays of more dimensions are flattened.
SELECT seen_add(1, ARRAY[5, 1, 7, 2, 5, NULL, 9]);
SELECT seen_add(1, ARRAY[5, 1, 8, 7, 2, 5, NULL, 9, 8]);
SELECT seen_add(1, '{}'), seen_add(1, NULL), seen_add(1, '{NULL}'), seen_add(2, ARRAY[[4, 3], [2, 1]]);
SELECT user_id, fav_count(filter) FROM seen_fav ORDER BY 1;
SELECT seen_add(user_id => 1, post_id => ARRAY[10]);
INSERT INTO seen VALUES (1, 11), (3, 1);
SELECT seen_add(1, ARRAY[11, 12]), seen_add(3, ARRAY[1, 2]);
SELECT u, seen_add(u, ARRAY(SELECT generate_series(1, 4))) FROM generate_series(1, 4) u;
SELECT seen_add(NULL, ARRAY[1]);
\set VERBOSITY terse
SELECT seen_add(1, ARRAY['x']);
\set VERBOSITY default
-- what the columns would not take
SELECT seen_add(3000000000, ARRAY[1]);
SELECT seen_add(1, ARRAY[3000000000]);
-- removed ones are new again
SELECT seen_remove(1, ARRAY[5, 7]);
SELECT seen_add(1, ARRAY[5, 6, 7, 8]);
SELECT seen_remove(1, ARRAY[8, 80], exclude => true);
SELECT seen_add(1, ARRAY[7, 8, 80]);

-- Through all levels: nobody is told twice, and what was told is found.
CREATE TABLE told(n bigint);
DO $$
BEGIN
	FOR i IN 1 .. 400 LOOP
		INSERT INTO told SELECT unnest(seen_add(7, ARRAY(SELECT 40 * i - n FROM generate_series(-20, 39) n)));
	END LOOP;
END $$;
SELECT count(*) - count(DISTINCT n) AS twice, count(*) > 15900 AS nearly_all, count(*) FILTER (WHERE NOT fav_contains((SELECT filter FROM seen_fav WHERE user_id = 7), n)) AS missing FROM told;
SELECT array_length(seen_add(8, ARRAY(SELECT generate_series(1, 50000))), 1);
SELECT array_length(seen_add(8, ARRAY(SELECT generate_series(1, 60000))), 1) > 9800;
SELECT count(*) FROM seen_fav, generate_series(1, 60000) n WHERE user_id = 8 AND NOT fav_contains(filter, n);
DROP TABLE told;

-- What is rolled back was not added.
BEGIN;
SELECT seen_add(10, ARRAY[1]);
SAVEPOINT s;
SELECT seen_add(10, ARRAY[1, 2]);
INSERT INTO seen VALUES (10, 3);
SELECT seen_add(10, ARRAY[2, 3, 4]);
ROLLBACK TO s;
SELECT seen_add(10, ARRAY[1, 2, 3]);
ROLLBACK;
SELECT seen_add(10, ARRAY[1]);
DO $$
BEGIN
	BEGIN
		PERFORM seen_add(10, ARRAY[2]);
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
		RAISE WARNING '%', seen_add(10, ARRAY[2, 3]);
	END;
END $$;
-- what a statement that has not ended has inserted comes first
CREATE FUNCTION tell(u int, p int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING '%', seen_add(u, ARRAY[p, p - 1]);
	RETURN p;
END $$;
INSERT INTO seen SELECT 11, tell(11, n) FROM generate_series(1, 3) n;
CREATE FUNCTION tell_in_block(u int, p int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		RAISE WARNING '%', seen_add(u, ARRAY[p, p - 1]);
	EXCEPTION WHEN object_in_use THEN
		RAISE WARNING '%', SQLERRM;
	END;
	RETURN p;
END $$;
INSERT INTO seen SELECT 12, tell_in_block(12, n) FROM generate_series(1, 3) n;
START TRANSACTION READ ONLY;
SELECT seen_add(1, ARRAY[1]);
ROLLBACK;

-- In a sink that forgets, elements are renewed.
CREATE TABLE short(user_id bigint, post_id bigint);
SELECT fav_sink('short', 'user_id', 'post_id', keep => '64 hours');
INSERT INTO short_fav_levels(user_id, recent) SELECT 1, fav_add_at(fav_add_at(fav_sink_recent('short', 0.01, 0, 230400), ARRAY[1], fav_period(3600) - 100),
	ARRAY[2], fav_period(3600) - 60);
SELECT short_add(1, ARRAY[1, 2, 3]);
SELECT newest - oldest FROM short_fav, fav_stats(filter);
-- large, and forgotten all at once
DELETE FROM short_fav_levels;
INSERT INTO short_fav_levels(user_id, base) SELECT 1, fav_union(fav_add_at(fav_sink_recent('short', 0.01, 0, 230400), ARRAY(SELECT generate_series(1, 3000)), fav_period(3600) - 100), NULL);
SELECT array_length(short_add(1, ARRAY(SELECT generate_series(1, 100))), 1);

-- Other types, domains, and limits of columns
CREATE DOMAIN handle AS text CHECK (VALUE <> '');
CREATE DOMAIN positive AS smallint CHECK (VALUE > 0);
CREATE TABLE texts(k varchar(4), e varchar(3));
CREATE TABLE uuids(k uuid, e uuid);
CREATE TABLE bytes(k handle, e bytea);
CREATE TABLE small(k date, e positive);
SELECT fav_sink(t, 'k', 'e') FROM unnest('{texts, uuids, bytes, small}'::regclass[]) t;
SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc WHERE proname IN ('texts_add', 'uuids_add', 'bytes_add', 'small_add') ORDER BY 1;
SELECT texts_add('a', '{x,y,x}'), texts_add('a', ARRAY['y', 'z']), texts_add($$a'"\$$, '{1}');
SELECT texts_add('abcde', '{x}');
SELECT texts_add('a', '{abcd}');
SELECT uuids_add(md5('1')::uuid, ARRAY[md5('2')::uuid]), uuids_add(md5('1')::uuid, ARRAY[md5('2')::uuid, md5('3')::uuid]);
SELECT bytes_add('k', ARRAY['\x00'::bytea, '\x0001']), bytes_add('k', ARRAY['\x01'::bytea, '\x0001']);
SELECT bytes_add('', ARRAY['\x00'::bytea]);
SELECT small_add('2026-01-01', '{1, 2}'), small_add('2026-01-01', '{2, 3}');
SELECT small_add('2026-01-01', '{0}');
SELECT small_add('2026-01-01', '{40000}');
SELECT k, fav_count(filter) FROM texts_fav ORDER BY k;
SELECT fav_detach(t) FROM unnest('{texts, uuids, bytes, small}'::regclass[]) t;
SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc WHERE proname IN ('texts_add', 'uuids_add', 'bytes_add', 'small_add') ORDER BY 1;
-- Keys are the same whatever the settings are that their text form depends on.
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN price AS numeric(6, 2) CHECK (VALUE > 0);
SET extra_float_digits = -10;
SET DateStyle = 'SQL, DMY';
SET IntervalStyle = 'sql_standard';
SET timezone = 'Asia/Kathmandu';
CREATE TABLE floats(k float8, e int);
CREATE TABLE times(k timestamptz(3), e int);
CREATE TABLE intervals(k interval, e int);
CREATE TABLE moods(k mood, e int);
CREATE TABLE arrays(k float8[], e int);
CREATE TABLE prices(k price, e int);
CREATE TABLE lists(k numeric(6, 2)[], e int);
CREATE TABLE chars(k char(3), e int);
SELECT fav_sink(t, 'k', 'e') FROM unnest('{floats, times, intervals, moods, arrays, prices, lists, chars}'::regclass[]) t;
INSERT INTO floats VALUES (1 / 3::float8, 1);
INSERT INTO times VALUES ('2026-02-01 01:02:03.456789', 1);
INSERT INTO intervals VALUES ('1 year -2 days 03:00', 1);
INSERT INTO moods VALUES ('happy', 1);
INSERT INTO arrays VALUES (ARRAY[1 / 3::float8, NULL], 1);
INSERT INTO prices VALUES (1.234, 1);
INSERT INTO lists VALUES (ARRAY[1.234], 1);
INSERT INTO chars VALUES ('a', 1);
SELECT floats_add(1 / 3::float8, '{1, 2}'), times_add('2026-02-01 01:02:03.456789', '{1, 2}'), intervals_add('1 year -2 days 03:00', '{1, 2}'), moods_add('happy', '{1, 2}'),
	arrays_add(ARRAY[1 / 3::float8, NULL], '{1, 2}'), prices_add(1.234, '{1, 2}'), lists_add(ARRAY[1.234], '{1, 2}'), chars_add('a', '{1, 2}');
SELECT floats_remove(1 / 3::float8, '{1}'), arrays_remove(ARRAY[1 / 3::float8, NULL], '{1}'), prices_remove(1.234, '{1}');
SELECT (SELECT sum(fav_count(filter)) FROM floats_fav) AS floats, (SELECT sum(fav_count(filter)) FROM arrays_fav) AS arrays, (SELECT sum(fav_count(filter)) FROM prices_fav) AS prices,
	(SELECT count(*) FROM times_fav) AS times, (SELECT count(*) FROM lists_fav) AS lists;
SELECT prices_add(-1, '{1}');
SELECT prices_add(12345, '{1}');
SELECT chars_add('abcd', '{1}');
SELECT fav_sink_add('floats_fav_levels', ROW('1'), ARRAY[1]::bigint[]);
SELECT fav_sink_add('floats_fav_levels', ROW(1::float8, 2), ARRAY[1]::bigint[]);
SELECT fav_sink_add('floats_fav_levels', NULL, ARRAY[1]::bigint[]);
SELECT fav_detach(t) FROM unnest('{floats, times, intervals, moods, arrays, prices, lists, chars}'::regclass[]) t;
DROP TABLE floats, times, intervals, moods, arrays, prices, lists, chars;
DROP TYPE mood;
DROP DOMAIN price;
RESET extra_float_digits;
RESET DateStyle;
RESET IntervalStyle;
RESET timezone;
-- columns with the names of arguments
CREATE TABLE odd(exclude int, elements int);
SELECT fav_sink('odd', 'exclude', 'elements');
SELECT odd_add(1, ARRAY[1]), odd_remove(1, ARRAY[1]), odd_add(1, ARRAY[1]);
SELECT fav_detach('odd');

-- Names that are taken, also with other arguments; renamed functions are found.
CREATE FUNCTION odd_remove(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
SELECT fav_sink('odd', 'exclude', 'elements');
DROP FUNCTION odd_remove;
SELECT fav_sink('odd', 'exclude', 'elements');
ALTER FUNCTION odd_remove RENAME TO forget;
CREATE SCHEMA elsewhere;
ALTER FUNCTION odd_add SET SCHEMA elsewhere;
UPDATE odd SET elements = 1;
SELECT fav_detach('odd');
SELECT count(*) FROM pg_proc WHERE proname IN ('forget', 'odd_add');
-- what depends on them keeps them
SELECT fav_sink('odd', 'exclude', 'elements');
CREATE VIEW v AS SELECT odd_add(1, ARRAY[1]);
SELECT fav_detach('odd');
DROP VIEW v;
SELECT fav_detach('odd');
DROP SCHEMA elsewhere;

-- A stranger's functions are not called, however well their types fit.
CREATE ROLE stranger;
GRANT CREATE ON SCHEMA public TO stranger;
SET ROLE stranger;
CREATE FUNCTION public.fav_sink_add(regclass, anyelement, bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'stranger'; RETURN NULL; END $$;
CREATE FUNCTION public.fav_sink_add(regclass, bigint, bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'stranger'; RETURN NULL; END $$;
CREATE FUNCTION public.fav_sink_add(regclass, text, int[]) RETURNS bigint[] LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'stranger'; RETURN NULL; END $$;
CREATE FUNCTION public.fav_sink_remove(regclass, bigint, bigint[], boolean) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'stranger'; END $$;
RESET ROLE;
SELECT fav_sink('odd', 'exclude', 'elements');
SELECT odd_add(1, ARRAY[1]), odd_remove(1, ARRAY[1]);
SELECT fav_detach('odd');
DROP OWNED BY stranger;

-- Rights: INSERT, on the table or on both columns, to add; DELETE to remove.  The row is written as the owner.
SET ROLE stranger;
SELECT seen_add(1, ARRAY[1]);
SELECT seen_remove(1, ARRAY[1]);
SELECT fav_sink_add('seen_fav_levels', ROW(1::bigint), ARRAY[1]::bigint[]);
RESET ROLE;
GRANT INSERT(user_id) ON seen TO stranger;
SET ROLE stranger;
SELECT seen_add(1, ARRAY[1]);
RESET ROLE;
GRANT INSERT(post_id) ON seen TO stranger;
SET ROLE stranger;
SELECT seen_add(1, ARRAY[1, 99]);
SELECT seen_remove(1, ARRAY[99]);
RESET ROLE;
REVOKE ALL ON seen FROM stranger;
GRANT DELETE ON seen TO stranger;
SET ROLE stranger;
SELECT seen_add(1, ARRAY[1, 99]);
SELECT seen_remove(1, ARRAY[99]);
RESET ROLE;
SELECT fav_contains(filter, 99) FROM seen_fav WHERE user_id = 1;
DROP OWNED BY stranger;
DROP ROLE stranger;

-- What a sink refuses
ALTER TABLE seen ADD CHECK (post_id > 0);
SELECT seen_add(1, ARRAY[-1]);
DROP TABLE seen, seen_fav_levels, short, short_fav_levels, texts, uuids, bytes, small, odd CASCADE;
SELECT count(*) FROM pg_proc WHERE proname LIKE 'seen\_%';
DROP FUNCTION tell, tell_in_block;
DROP DOMAIN handle, positive;
