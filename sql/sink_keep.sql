-- Sinks that forget
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE TABLE seen(user_id bigint, post_id bigint);
SELECT fav_sink('seen', 'user_id', 'post_id', keep => '1 month');
SELECT source, sink, keep FROM fav_attachments;
-- (without the names of tables, which newer servers leave out)
SELECT regexp_replace(pg_get_viewdef('seen_fav'), '\ml\.', '', 'g');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'seen_fav_levels'::regclass AND adnum = 4;
CREATE FUNCTION found(u bigint, low int, high int) RETURNS bigint LANGUAGE sql AS
	'SELECT count(*) FROM generate_series(low, high) n WHERE fav_contains((SELECT filter FROM seen_fav WHERE user_id = u), n)';

-- As long as nothing is too old, it is like any other sink.
INSERT INTO seen SELECT 1, n FROM generate_series(1, 100) n;
INSERT INTO seen SELECT 2, n FROM generate_series(1, 20000) n;
SELECT found(1, 1, 100), found(1, 101, 100000), found(2, 1, 20000), found(2, 100001, 200000) <= 1000 AS within_rate;
DO $$
BEGIN
	FOR i IN 2 .. 200 LOOP
		INSERT INTO seen SELECT 1, n FROM generate_series(100 * i - 99, 100 * i) n;
	END LOOP;
END $$;
SELECT found(1, 1, 20000), found(1, 100001, 200000) <= 1000 AS within_rate;
SELECT count(*) FROM generate_series(1, 20000) n, (SELECT fav_stack(base, middle, recent) AS stack FROM seen_fav_levels WHERE user_id = 1 OFFSET 0) l WHERE fav_contains(stack, n);
SELECT seen_remove(1, ARRAY[1, 10000, 20000]), seen_remove(2, ARRAY(SELECT generate_series(1, 500)));
SELECT found(1, 1, 1), found(1, 10000, 10000), found(1, 20000, 20000), found(1, 2, 9999), found(2, 1, 500), found(2, 501, 20000);
INSERT INTO seen VALUES (1, 1), (2, 7);
SELECT found(1, 1, 1), found(2, 7, 7);
BEGIN;
INSERT INTO seen VALUES (3, 1);
SAVEPOINT s;
INSERT INTO seen VALUES (3, 2);
ROLLBACK TO s;
COMMIT;
SELECT found(3, 1, 1), found(3, 2, 2);

-- Elements carry the period in which they were inserted.
SELECT user_id, newest - oldest < 2 AS now, newest BETWEEN fav_period(2592000 / 64) - 1 AND fav_period(2592000 / 64) AS present FROM seen_fav, fav_stats(filter) ORDER BY 1;
DROP TABLE seen, seen_fav_levels CASCADE;
CREATE TABLE seen(user_id bigint, post_id bigint);
SELECT fav_sink('seen', 'user_id', 'post_id', keep => '1 month');
-- What is older than a month is forgotten.  100 elements of 25 days ago, and 20 of 40 days ago:
INSERT INTO seen_fav_levels(user_id, recent) SELECT 1, fav_add_at(fav_add_at(fav_sink_recent('seen', 0.01, 0, 2592000), ARRAY(SELECT generate_series(101, 120)), fav_period(40500) - 86),
	ARRAY(SELECT generate_series(1, 100)), fav_period(40500) - 53);
SELECT found(1, 1, 100), found(1, 101, 120);
INSERT INTO seen VALUES (1, 1000);
SELECT found(1, 1, 100), found(1, 101, 120), found(1, 1000, 1000);
-- renewed
INSERT INTO seen VALUES (1, 1), (1, 2);
-- 10 days later the others would be too old
SELECT fav_contains(f, 1), fav_contains(f, 2), fav_contains(f, 3), fav_contains(f, 1000) FROM seen_fav_levels, fav_expire(recent, fav_period(40500) + 21) f;

-- With a keep of seconds: everything goes
CREATE TABLE short(user_id bigint, post_id bigint);
SELECT fav_sink('short', 'user_id', 'post_id', keep => '1 second');
INSERT INTO short SELECT u, n FROM generate_series(1, 3) u, generate_series(1, u * u * u * 100) n;
SELECT pg_sleep(4);
SELECT user_id FROM short_fav, generate_series(1, 5000) n WHERE fav_contains(filter, n);
INSERT INTO short SELECT u, 10000 FROM generate_series(1, 3) u;
SELECT user_id, n FROM short_fav_levels l, generate_series(1, 5000) n WHERE fav_contains(fav_stack(base, middle, recent), n);
SELECT short_remove(3, ARRAY[1, 2, 3]);
INSERT INTO short SELECT u, n FROM generate_series(1, 3) u, generate_series(1, 200) n;

-- A clock that was ahead for one insert, by twice as much as keep: what is inserted after that is
-- found, and what is removed is not.  (t/sink_clock.pl has the model test.)
SET client_min_messages = error;
CREATE TABLE early(user_id bigint, post_id bigint);
SELECT fav_sink('early', 'user_id', 'post_id', keep => '64 hours');
INSERT INTO early SELECT 1, n FROM generate_series(1, 300) n;
UPDATE early_fav_levels SET recent = fav_add_at(recent, ARRAY[1000], fav_period(3600) + 128);
INSERT INTO early SELECT 1, n FROM generate_series(10001, 10005) n;
SELECT count(*) FROM early_fav, generate_series(10001, 10005) n WHERE fav_contains(filter, n);
DO $$
BEGIN
	FOR i IN 1 .. 50 LOOP
		INSERT INTO early SELECT 1, n FROM generate_series(10000 + 20 * i, 10019 + 20 * i) n;
	END LOOP;
END $$;
SELECT count(*) FROM early_fav, generate_series(10020, 11019) n WHERE fav_contains(filter, n);
SELECT early_remove(1, ARRAY[10001, 10500, 11010]);
SELECT n, fav_contains(filter, n) FROM early_fav, unnest(ARRAY[10001, 10002, 10500, 11010, 11011]) n ORDER BY n;
SELECT fav_detach('early');
DROP TABLE early;
SET client_min_messages = warning;

-- A stranger's function is not called, however well its types fit.
CREATE ROLE stranger;
GRANT CREATE ON SCHEMA public TO stranger;
SET ROLE stranger;
CREATE FUNCTION public.fav_period(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'stranger'; RETURN 0; END $$;
CREATE FUNCTION public.fav_period(numeric) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'stranger'; RETURN 0; END $$;
RESET ROLE;
CREATE TABLE lured(a int, b int);
SELECT fav_sink('lured', 'a', 'b', keep => '30 days');
INSERT INTO lured VALUES (1, 1);
SELECT fav_contains(filter, 1) FROM lured_fav;
SELECT fav_detach('lured');
DROP TABLE lured;
DROP OWNED BY stranger;
DROP ROLE stranger;

-- Values of keep
CREATE TABLE other(a int, b int);
SET client_min_messages = notice;
SELECT fav_sink('other', 'a', 'b', keep => '30');
SELECT fav_detach('other');
SELECT fav_sink('other', 'a', 'b');
SELECT fav_detach('other');
SET client_min_messages = warning;
SELECT fav_sink('other', 'a', 'b', keep => '0');
SELECT fav_sink('other', 'a', 'b', keep => '-1 day');
SELECT fav_sink('other', 'a', 'b', keep => '1000 years');
SELECT fav_sink('other', 'a', 'b', keep => '100 years');
SELECT keep FROM fav_attachments WHERE source = 'other'::regclass;
INSERT INTO other VALUES (1, 1);
SELECT fav_contains(filter, 1) FROM other_fav;
SELECT fav_detach('other');
SELECT fav_sink('other', 'a', 'b', keep => '1.5 seconds');
SELECT keep FROM fav_attachments WHERE source = 'other'::regclass;
SELECT fav_detach('other');
SELECT fav_sink('other', 'a', 'b', '1 day 12:00', NULL, 0.001);
SELECT keep, error_rate FROM fav_attachments WHERE source = 'other'::regclass;
SELECT fav_period(0);
SELECT fav_period(86400) = floor(extract(epoch FROM now() - '2000-01-01 00:00:00+00') / 86400) AS days;
DROP TABLE seen, seen_fav_levels, short, short_fav_levels, other, other_fav_levels CASCADE;
DROP FUNCTION found;
