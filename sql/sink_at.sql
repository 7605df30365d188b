-- Sinks whose rows have a time of their own
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET timezone = 'UTC';
CREATE TABLE seen(user_id int, post_id int, seen_at timestamptz NOT NULL DEFAULT now());
SELECT fav_sink('seen', 'user_id', 'post_id', keep => '64 days', at => 'seen_at');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'zz_seen_fav_levels_insert';
SELECT source, keep, at FROM fav_attachments;
CREATE FUNCTION found(u int) RETURNS int[] LANGUAGE sql AS
	'SELECT array_agg(n ORDER BY n) FROM generate_series(-1, 400) n WHERE fav_contains((SELECT filter FROM seen_fav WHERE user_id = u), n)';

-- Late rows count for their own time, rows that are too old are dropped, and rows from the future count as of now.
INSERT INTO seen SELECT 1, n, now() - n * interval '10 days' FROM generate_series(-1, 8) n;
SELECT found(1);
SELECT newest = fav_period(86400) AS now, newest - oldest FROM seen_fav, fav_stats(filter);
INSERT INTO seen VALUES (1, 100, 'infinity'), (1, 101, '-infinity'), (1, 102, DEFAULT);
SELECT found(1);
SELECT newest = fav_period(86400) AS now FROM seen_fav, fav_stats(filter);
-- a key with nothing but rows that are too old has no filter
INSERT INTO seen SELECT 2, n, now() - interval '1 year' FROM generate_series(1, 1000) n;
SELECT count(*) FROM seen_fav WHERE user_id = 2;
INSERT INTO seen VALUES (1, 1, NULL);
INSERT INTO seen(user_id, post_id) VALUES (1, 103);
SELECT found(1) @> '{103}';
-- renewed by a later row, not by an earlier one; one statement has both
INSERT INTO seen VALUES (3, 1, now() - interval '50 days'), (3, 2, now() - interval '1 day'), (3, 1, now() - interval '2 days'), (3, 2, now() - interval '60 days');
SELECT newest = fav_period(86400) AS now, newest - oldest FROM seen_fav, fav_stats(filter) WHERE user_id = 3;
-- _add is of now, and _remove of all times
SELECT seen_add(1, ARRAY[1, 6, 7, 8]);
SELECT seen_remove(1, ARRAY[1, 2, 7]);
SELECT found(1);
INSERT INTO seen VALUES (1, 7, now() - interval '63 days');
SELECT found(1);

-- A history, in any order, in one statement: nothing is missing, and both take the same
CREATE TABLE history AS SELECT u, n, now() - (n % 6000) * interval '24 minutes' AS at FROM generate_series(10, 11) u, generate_series(1, 30000) n;
INSERT INTO seen SELECT u, n, at FROM history WHERE u = 10 ORDER BY at;
INSERT INTO seen SELECT u, n, at FROM history WHERE u = 11 ORDER BY md5(n::text);
SELECT u, count(*) FILTER (WHERE NOT fav_contains(filter, n)) AS missing FROM history JOIN (SELECT user_id, filter FROM seen_fav OFFSET 0) f ON user_id = u WHERE at > now() - interval '63 days' GROUP BY u ORDER BY u;
SELECT u, count(*) FILTER (WHERE fav_contains(filter, n)) < 400 AS forgotten FROM history JOIN (SELECT user_id, filter FROM seen_fav OFFSET 0) f ON user_id = u WHERE at < now() - interval '75 days' GROUP BY u ORDER BY u;
SELECT pg_column_size(a.base) = pg_column_size(b.base) AS same, pg_column_size(a.base) * 8 / 20000 < 40 AS dense FROM seen_fav_levels a, seen_fav_levels b WHERE a.user_id = 10 AND b.user_id = 11;
-- in many statements
DO $$
BEGIN
	FOR i IN 0 .. 149 LOOP
		INSERT INTO seen SELECT 12, n, at FROM history WHERE u = 10 AND n % 150 = i;
	END LOOP;
END $$;
SELECT a.pg_column_size < 3 * b.pg_column_size AS dense FROM (SELECT pg_column_size(base) FROM seen_fav_levels WHERE user_id = 12) a, (SELECT pg_column_size(base) FROM seen_fav_levels WHERE user_id = 10) b;
SELECT count(*) FILTER (WHERE NOT fav_contains(filter, n)) AS missing FROM history, (SELECT user_id, filter FROM seen_fav OFFSET 0) f WHERE user_id = 12 AND u = 10 AND at > now() - interval '63 days';
SELECT count(*) FILTER (WHERE fav_contains(filter, n)) < 400 AS within_rate FROM (SELECT user_id, filter FROM seen_fav OFFSET 0) f, generate_series(100001, 130000) n WHERE user_id = 12;

-- timestamp in the zone of the session, and date: the end of its day
CREATE TABLE stamps(k int, e int, at timestamp);
CREATE DOMAIN day AS date;
CREATE TABLE days(k int, e int, at day);
SELECT fav_sink('stamps', 'k', 'e', '10 days', 'at'), fav_sink('days', 'k', 'e', '10 days', 'at');
INSERT INTO stamps SELECT 1, n, now()::timestamp - n * interval '1 day' FROM generate_series(0, 20) n;
INSERT INTO days SELECT 1, n, current_date - n FROM generate_series(0, 20) n;
INSERT INTO stamps VALUES (1, 100, 'infinity'), (1, 101, '-infinity');
INSERT INTO days VALUES (1, 100, 'infinity'), (1, 101, '-infinity'), (1, 102, '5874897-12-31'), (1, 103, '4714-11-24 BC');
SELECT array_agg(n) @> '{0,1,2,3,4,5,6,7,8,9,100}' AS kept, array_agg(n) && '{12,13,14,15,16,17,18,19,20,101}' AS too_old FROM stamps_fav, generate_series(0, 200) n WHERE fav_contains(filter, n);
SELECT array_agg(n) @> '{0,1,2,3,4,5,6,7,8,9,10,100,102}' AS kept, array_agg(n) && '{13,14,15,16,17,18,19,20,101,103}' AS too_old FROM days_fav, generate_series(0, 200) n WHERE fav_contains(filter, n);

-- Renamed, dropped, of another type, from partitions and triggers
ALTER TABLE seen RENAME seen_at TO moment;
INSERT INTO seen VALUES (4, 1, now() - interval '1 year'), (4, 2, now());
SELECT found(4);
ALTER TABLE seen DROP COLUMN moment;
\set VERBOSITY terse
ALTER TABLE seen ALTER moment TYPE date;
\set VERBOSITY default
CREATE FUNCTION set_time() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.moment := now() - NEW.post_id * interval '1 day'; RETURN NEW; END $$;
CREATE TRIGGER a BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION set_time();
INSERT INTO seen SELECT 5, 20 * n FROM generate_series(1, 5) n;
SELECT found(5);
-- what is wrong
CREATE TABLE other(a int, b int, c int, d date, e timestamptz GENERATED ALWAYS AS ('2026-01-01 00:00 UTC') STORED);
SELECT fav_sink('other', 'a', 'b', at => 'd');
SELECT fav_sink('other', 'a', 'b', '1 day', 'c');
SELECT fav_sink('other', 'a', 'b', '1 day', 'e');
SELECT fav_sink('other', 'a', 'b', '1 day', 'xmin');
SELECT fav_sink('other', 'd', 'b', '1 day', 'd');
SELECT fav_sink('other', 'a', 'b', '1 day', 'nothing');
CREATE TRIGGER forged BEFORE INSERT ON seen FOR EACH ROW WHEN ('seen_fav_levels'::regclass IS NOT NULL AND NEW.user_id IS NOT NULL AND NEW.post_id IS NOT NULL) EXECUTE FUNCTION fav_collect();
INSERT INTO seen VALUES (5, 1);
DROP TABLE seen, seen_fav_levels, stamps, stamps_fav_levels, days, days_fav_levels, history, other CASCADE;
DROP FUNCTION found, set_time;
DROP DOMAIN day;
