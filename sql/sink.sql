-- A sink keeps filters of the rows that are inserted, and not the rows.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE TABLE seen(user_id bigint, post_id bigint, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (user_id, post_id));
SELECT fav_sink('seen', 'user_id', 'post_id');
SELECT source, key, element, filter, levels, error_rate, share, complete, active, sink FROM fav_attachments;

-- How many of these are in the filter of this user?
CREATE FUNCTION found(u bigint, low int, high int) RETURNS bigint LANGUAGE sql AS
	'SELECT count(*) FROM generate_series(low, high) n WHERE fav_contains((SELECT filter FROM seen_fav WHERE user_id = u), n)';

-- Every way to insert
INSERT INTO seen VALUES (1, 1);
INSERT INTO seen(post_id, user_id) VALUES (2, 1), (3, 1), (1, 2);
INSERT INTO seen SELECT 1, n FROM generate_series(4, 6) n;
COPY seen(user_id, post_id) FROM stdin;
1	7
2	2
\.
WITH w AS (INSERT INTO seen VALUES (1, 8)), v AS (INSERT INTO seen VALUES (1, 9)) SELECT 1 AS one;
INSERT INTO seen VALUES (1, 10) ON CONFLICT DO NOTHING;
INSERT INTO seen VALUES (1, 10) ON CONFLICT (user_id, post_id) DO NOTHING;
PREPARE see(bigint, bigint) AS INSERT INTO seen VALUES ($1, $2);
EXECUTE see(1, 11);
EXECUTE see(1, 12);
SELECT count(*) FROM seen;
SELECT user_id, fav_count(filter) FROM seen_fav ORDER BY user_id;
SELECT found(1, 1, 12), found(1, 13, 1000), found(2, 1, 1000);
SELECT seen_has(1, 3), seen_has(1, 13);

-- There is no row to return, to count, or to conflict with.
INSERT INTO seen VALUES (3, 1) RETURNING *;
INSERT INTO seen VALUES (3, 1) RETURNING *;
SELECT found(3, 1, 1);

-- No rows to update or delete
UPDATE seen SET post_id = 1;
DELETE FROM seen WHERE user_id = 1;
INSERT INTO seen VALUES (1, 1) ON CONFLICT (user_id, post_id) DO UPDATE SET at = now();
SELECT fav_rebuild('seen');
SELECT fav_rebuild('seen', '1');
SELECT fav_verify('seen');
CALL fav_build('seen');
SELECT keys, elements, exact_keys, keys_with_middle FROM fav_attachment_stats('seen');

-- What PostgreSQL would refuse
INSERT INTO seen VALUES (NULL, 1);
INSERT INTO seen VALUES (1, NULL);
INSERT INTO seen VALUES (1, 1, NULL);
SELECT found(1, 1, 1000);

-- What is rolled back leaves nothing behind: a statement, a savepoint, an exception block, ...
INSERT INTO seen SELECT 4, 10 / (5 - n) FROM generate_series(1, 9) n;
BEGIN;
INSERT INTO seen VALUES (4, 1);
SAVEPOINT s;
INSERT INTO seen VALUES (4, 2), (5, 2);
ROLLBACK TO s;
INSERT INTO seen VALUES (4, 3);
SAVEPOINT t;
INSERT INTO seen VALUES (4, 4);
RELEASE t;
COMMIT;
DO $$
BEGIN
	INSERT INTO seen VALUES (4, 5);
	BEGIN
		INSERT INTO seen VALUES (4, 6), (6, 6);
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
		INSERT INTO seen VALUES (4, 7);
	END;
END $$;
BEGIN;
INSERT INTO seen VALUES (4, 8);
ROLLBACK;
-- ... a statement that fails when it has collected some rows
DO $$
BEGIN
	INSERT INTO seen SELECT 4, 10 / (14 - n) FROM generate_series(11, 14) n;
EXCEPTION WHEN division_by_zero THEN
	NULL;
END $$;
BEGIN;
SAVEPOINT s;
INSERT INTO seen SELECT 4, 10 / (14 - n) FROM generate_series(11, 14) n;
ROLLBACK TO s;
INSERT INTO seen VALUES (4, 9);
COMMIT;
SELECT user_id, n FROM seen_fav, generate_series(1, 10) n WHERE user_id > 3 AND fav_contains(filter, n) ORDER BY 1, 2;

-- ... a statement within a statement: each inserts, and those that end badly are caught
CREATE FUNCTION try_insert(u bigint, p bigint, fails boolean) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		INSERT INTO seen VALUES (u, p), (u, p + 1000);
		IF fails THEN
			RAISE division_by_zero;
		END IF;
	EXCEPTION WHEN division_by_zero THEN
		RETURN p + 100;
	END;
	RETURN p;
END $$;
INSERT INTO seen SELECT 7, try_insert(7, n, n % 2 = 0) FROM generate_series(1, 6) n;
SELECT array_agg(n) FROM generate_series(1, 2000) n, seen_fav WHERE user_id = 7 AND fav_contains(filter, n);
BEGIN;
SAVEPOINT s;
INSERT INTO seen SELECT 8, try_insert(8, n, n % 2 = 0) FROM generate_series(1, 6) n;
ROLLBACK TO s;
COMMIT;
SELECT count(*) FROM seen_fav WHERE user_id = 8;

-- ... and a row that a trigger takes back, in the middle of its own statement
CREATE TABLE log(n int);
CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		INSERT INTO seen VALUES (9, NEW.n), (9, NEW.n + 50);
		PERFORM 1 / (NEW.n % 3);
	EXCEPTION WHEN division_by_zero THEN
		NULL;
	END;
	RETURN NULL;
END $$;
CREATE TRIGGER forget AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION forget();
INSERT INTO log SELECT generate_series(1, 9);
SELECT array_agg(n) FROM generate_series(1, 2000) n, seen_fav WHERE user_id = 9 AND fav_contains(filter, n);

-- BEFORE triggers change and drop rows first.
CREATE FUNCTION tidy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.post_id < 0 THEN
		RETURN NULL;
	END IF;
	NEW.post_id := NEW.post_id * 2;
	RETURN NEW;
END $$;
CREATE TRIGGER tidy BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION tidy();
INSERT INTO seen VALUES (10, 1), (10, -1), (10, 3);
SELECT array_agg(n) FROM generate_series(-10, 10) n, seen_fav WHERE user_id = 10 AND fav_contains(filter, n);
DROP TRIGGER tidy ON seen;

-- TRUNCATE empties the filters, and can be rolled back.
BEGIN;
TRUNCATE seen;
SELECT count(*) FROM seen_fav;
INSERT INTO seen VALUES (1, 77);
ROLLBACK;
SELECT count(*), found(1, 77, 77) FROM seen_fav;
TRUNCATE seen;
SELECT count(*) FROM seen_fav;

-- Growing through all levels: nothing is missing, and errors stay within the rate.
INSERT INTO seen SELECT 1, n FROM generate_series(1, 100) n;
SELECT base = '\x01' AS base, middle = '\x01' AS middle, log1 IS NULL AS log FROM seen_fav_levels WHERE user_id = 1;
SELECT found(1, 1, 100), found(1, 101, 100000);
DO $$
BEGIN
	FOR i IN 2 .. 300 LOOP
		INSERT INTO seen SELECT 1, n FROM generate_series(100 * i - 99, 100 * i) n;
	END LOOP;
END $$;
SELECT base = '\x01' AS base, middle = '\x01' AS middle, log1 IS NULL AS log FROM seen_fav_levels WHERE user_id = 1;
SELECT found(1, 1, 30000), found(1, 100001, 200000) BETWEEN 50 AND 1000 AS within_rate;
SELECT abs(fav_count(filter) - 30000) < 600 AS counted FROM seen_fav WHERE user_id = 1;
-- 250 elements are exact, and their value is one like any other
INSERT INTO seen SELECT 250, n FROM generate_series(1, 250) n;
SELECT base = '\x01' AS base, middle = '\x01' AS middle, log1 IS NULL AS log FROM seen_fav_levels WHERE user_id = 250;
SELECT found(250, 1, 250), found(250, 251, 100000);
SELECT count(*) FILTER (WHERE fav_contains(edited, n)), bool_or(fav_contains(edited, n) AND n = 250) AS removed
	FROM (SELECT fav_add(fav_del(filter, 250), ARRAY(SELECT generate_series(1001, 1100))) AS edited FROM seen_fav WHERE user_id = 250) f, generate_series(1, 250) n;
DELETE FROM seen_fav_levels WHERE user_id = 250;
-- what is there is not added again and again
DO $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		INSERT INTO seen SELECT 1, n FROM generate_series(100 * i - 99, 100 * i) n;
	END LOOP;
END $$;
SELECT found(1, 1, 30000), found(1, 100001, 200000) BETWEEN 50 AND 1000 AS within_rate;
SELECT fav_count(filter) - 30000 < 3000 AS counted FROM seen_fav WHERE user_id = 1;
-- all at once
INSERT INTO seen SELECT 2, n FROM generate_series(1, 50000) n;
SELECT found(2, 1, 50000), found(2, 100001, 200000) BETWEEN 50 AND 1000 AS within_rate,
	pg_column_size(base) * 8 / 50000 < 16 AS dense, recent = fav_sink_recent('seen', 0.01, 0, 0) AS empty
FROM seen_fav_levels WHERE user_id = 2;

-- <sink>_remove, in recent, in middle, in base
SELECT seen_remove(1, ARRAY[1, 29999]);
SELECT found(1, 1, 1), found(1, 29999, 29999), found(1, 2, 29998), found(1, 30000, 30000);
INSERT INTO seen VALUES (1, 1);
SELECT found(1, 1, 1), found(1, 29999, 29999);
SELECT seen_remove(1, ARRAY[1]);
SELECT found(1, 1, 1), found(1, 2, 29998);
SELECT seen_remove(1, (SELECT array_agg(n) FROM generate_series(1, 1000) n));
SELECT found(1, 1, 1000), found(1, 1001, 29998);
-- removing again, or from a user without a filter, changes nothing
SELECT seen_remove(1, ARRAY[5, 6, 7]), seen_remove(4711, ARRAY[5]), seen_remove(1, ARRAY[]::int[]), seen_remove(1, ARRAY[NULL::int]);
SELECT found(1, 1, 1000), found(1, 1001, 29998), (SELECT count(*) FROM seen_fav WHERE user_id = 4711);
-- through all levels
DO $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		INSERT INTO seen SELECT 1, 100000 + n FROM generate_series(40 * i - 39, 40 * i) n;
		PERFORM seen_remove(1, (SELECT array_agg(100000 + n) FROM generate_series(40 * i - 39, 40 * i - 20) n));
		PERFORM seen_remove(1, (SELECT array_agg(1000 + n) FROM generate_series(40 * i - 39, 40 * i) n));
	END LOOP;
END $$;
SELECT found(1, 5001, 29998), (SELECT count(*) FROM generate_series(1, 4000) n, seen_fav f WHERE user_id = 1
	AND (n - 1) % 40 >= 20 AND fav_contains(filter, 100000 + n)) AS added;
SELECT found(1, 1, 5000) < 100 AS removed, (SELECT count(*) FROM generate_series(1, 4000) n, seen_fav f WHERE user_id = 1
	AND (n - 1) % 40 < 20 AND fav_contains(filter, 100000 + n)) < 100 AS removed;
-- removed and added again within one transaction
BEGIN;
SELECT seen_remove(1, ARRAY[29000]);
SAVEPOINT s;
INSERT INTO seen VALUES (1, 29000);
SELECT found(1, 29000, 29000);
ROLLBACK TO s;
SELECT found(1, 29000, 29000);
ROLLBACK;
SELECT found(1, 29000, 29000);

-- exclude: also what was never added, and for good
CREATE TEMP TABLE errors AS SELECT n FROM generate_series(200001, 260000) n, seen_fav WHERE user_id = 1 AND fav_contains(filter, n);
SELECT count(*) > 20 AS some FROM errors;
SELECT seen_remove(1, (SELECT array_agg(n) FROM errors), exclude => true);
SELECT count(*) FROM errors, seen_fav WHERE user_id = 1 AND fav_contains(filter, n);
INSERT INTO seen SELECT 1, n FROM generate_series(30001, 40000) n;
SELECT count(*) FROM errors, seen_fav WHERE user_id = 1 AND fav_contains(filter, n);
SELECT found(1, 5001, 29998), found(1, 30001, 40000);
INSERT INTO seen SELECT 1, n FROM errors;
SELECT count(*) FROM errors, seen_fav WHERE user_id = 1 AND NOT fav_contains(filter, n);
SELECT seen_remove(11, ARRAY[1, 2], true);
SELECT found(11, 1, 2);
INSERT INTO seen VALUES (11, 2);
SELECT found(11, 1, 1), found(11, 2, 2);

-- an excluded element that no level reports is added again, also among many
CREATE TABLE again(k int, e bigint);
SELECT fav_sink('again', 'k', 'e', error_rate => 0.000001);
INSERT INTO again SELECT 1, n FROM generate_series(1, 20000) n;
SELECT again_remove(1, ARRAY[30001, 30002], exclude => true);
INSERT INTO again SELECT 1, n FROM generate_series(20001, 20200) n;
INSERT INTO again SELECT 1, n FROM generate_series(30001, 30200) n;
SELECT count(*) AS missing FROM generate_series(30001, 30200) n WHERE NOT fav_contains((SELECT filter FROM again_fav WHERE k = 1), n);
SELECT fav_detach('again');

-- errors of <sink>_remove and of what it calls
\set VERBOSITY terse
SELECT seen_remove(1, ARRAY['x']);
\set VERBOSITY default
SELECT seen_remove('x', ARRAY[1]);
SELECT seen_remove(NULL, ARRAY[1]);
SELECT fav_sink_remove('log', ROW(1::bigint), ARRAY[1]::bigint[], false);
SELECT fav_sink_add('seen_fav_levels', ROW(1::bigint), ARRAY['x']);
SELECT fav_sink_add(4711::regclass, ROW(1), ARRAY['x']);
SELECT fav_sink_add(NULL, ROW(1), ARRAY['x']);
SELECT seen_remove(1, ARRAY[1], NULL);
CREATE TABLE pairs(a bigint, b bigint, PRIMARY KEY (a, b));
SELECT fav_attach('pairs', 'a', 'b');
SELECT fav_sink_remove('pairs_fav_levels', ROW(1::bigint), ARRAY[1]::bigint[], false);
-- of smaller integers
SELECT seen_remove(2, ARRAY[7::smallint]), seen_remove(2, ARRAY[8::bigint]);
SELECT found(2, 7, 8);

-- Renaming changes nothing.
ALTER TABLE seen RENAME TO viewed;
ALTER TABLE viewed RENAME user_id TO reader;
ALTER TABLE viewed RENAME post_id TO article;
INSERT INTO viewed VALUES (12, 1);
SELECT seen_remove('2', ARRAY[9]);
SELECT count(*) FROM seen_fav WHERE user_id = 12 AND fav_contains(filter, 1);
ALTER TABLE viewed RENAME TO seen;
ALTER TABLE seen DROP COLUMN article;
ALTER TABLE seen DROP COLUMN at;
INSERT INTO seen VALUES (12, 2);
SELECT found(12, 1, 2);

-- Detaching drops the filters; from then on the table stores rows.
SELECT fav_detach('seen');
SELECT to_regclass('seen_fav'), to_regclass('seen_fav_levels'), (SELECT count(*) FROM fav_attachments WHERE sink);
INSERT INTO seen VALUES (1, 1) RETURNING *;
-- not empty
SELECT fav_sink('seen', 'reader', 'article');
TRUNCATE seen;
SELECT fav_sink('seen', 'reader', 'article', error_rate => 0.000001);
SELECT error_rate FROM fav_attachments WHERE sink;
DROP TABLE seen CASCADE;
SELECT to_regclass('seen_fav'), to_regclass('seen_fav_levels'), count(*) FROM fav_attachments WHERE sink;
DROP TABLE seen_fav_levels CASCADE;

-- Other types
CREATE TABLE texts(k text, e text);
CREATE TABLE uuids(k uuid, e uuid);
CREATE DOMAIN id AS int;
CREATE TABLE bytes(k id, e bytea);
CREATE TABLE small(k date, e smallint);
SELECT fav_sink(t, 'k', 'e') FROM unnest('{texts, uuids, bytes, small}'::regclass[]) t;
INSERT INTO texts VALUES ('a', 'x'), ('a', 'y'), ('b', repeat('long', 5000));
INSERT INTO uuids SELECT md5('1')::uuid, md5(n::text)::uuid FROM generate_series(1, 200) n;
INSERT INTO bytes VALUES (1, '\x00'), (1, '\x0001'), (2, '');
INSERT INTO small VALUES ('2026-01-01', 1), ('2026-01-01', -1), ('2026-01-02', 2);
SELECT texts_remove('a', ARRAY['x']), uuids_remove(md5('1')::uuid, ARRAY[md5('7')::uuid]),
	bytes_remove(1, ARRAY['\x00'::bytea]), small_remove('2026-01-01', ARRAY[1]);
SELECT k, fav_contains(filter, 'x'), fav_contains(filter, 'y'), fav_contains(filter, repeat('long', 5000)) FROM texts_fav ORDER BY k;
SELECT count(*) FROM uuids_fav, generate_series(1, 200) n WHERE fav_contains(filter, md5(n::text)::uuid);
SELECT k, fav_contains(filter, '\x00'::bytea), fav_contains(filter, '\x0001'::bytea), fav_contains(filter, ''::bytea) FROM bytes_fav ORDER BY k;
SELECT k, fav_contains(filter, 1), fav_contains(filter, -1), fav_contains(filter, 2) FROM small_fav ORDER BY k;
-- elements that can be crafted to share a hash have a seed that cannot be foreseen
SELECT (fav_stats(filter)).seed <> 0 FROM texts_fav LIMIT 1;
DROP TABLE texts, uuids, bytes, small, texts_fav_levels, uuids_fav_levels, bytes_fav_levels, small_fav_levels, log, pairs, pairs_fav_levels CASCADE;
DROP FUNCTION found, try_insert, forget, tidy;

-- A base with as many slices as a filter can have: the view can still stack it
CREATE TABLE chain (user_id bigint, post_id bigint);
SELECT fav_sink('chain', 'user_id', 'post_id');
INSERT INTO chain VALUES (1, 1);
UPDATE chain_fav_levels SET base = fav_union((SELECT fav_agg(i, 0.01, 100000) FROM generate_series(1001, 1200) i),
	(SELECT fav_union_agg(f) FROM (SELECT fav_agg(n * 10000 + i) AS f FROM generate_series(1, 31) n, generate_series(1, 200 + 60 * n) i GROUP BY n) filters));
INSERT INTO chain SELECT 1, generate_series(1, 300);
SELECT (fav_stats(filter)).slices, fav_contains_all(filter, ARRAY(SELECT generate_series(1, 300))) AS new, fav_contains_all(filter, ARRAY(SELECT generate_series(310001, 310200))) AS old FROM chain_fav;
SELECT fav_detach('chain');
DROP TABLE chain;

-- The hashes of a large statement are sorted, which must not crowd a few blocks of new slices
CREATE TABLE bulk (user_id bigint, post_id bigint);
SELECT fav_sink('bulk', 'user_id', 'post_id', keep => '64 hours', error_rate => 0.000001);
CREATE TABLE for_ever (user_id bigint, post_id bigint);
SELECT fav_sink('for_ever', 'user_id', 'post_id');
INSERT INTO bulk SELECT k, n FROM generate_series(1, 5) k, generate_series(1, 1000 * k) n;
INSERT INTO bulk SELECT k, n FROM generate_series(1, 5) k, generate_series(10001, 10000 + 1500 * k) n;
INSERT INTO bulk SELECT k, n FROM generate_series(1, 5) k, generate_series(20001, 20000 + 700 * k) n;
INSERT INTO for_ever SELECT k, n FROM generate_series(1, 5) k, generate_series(1, 1000 * k) n;
INSERT INTO for_ever SELECT k, n FROM generate_series(1, 5) k, generate_series(10001, 10000 + 1500 * k) n;
INSERT INTO for_ever SELECT k, n FROM generate_series(1, 5) k, generate_series(20001, 20000 + 700 * k) n;
SELECT user_id, estimated_error < error_rate AS is_within_rate, bloat < 3 AS is_small FROM bulk_fav, fav_stats(filter) ORDER BY user_id;
SELECT user_id, estimated_error < error_rate AS is_within_rate, bloat < 2 AS is_small FROM for_ever_fav, fav_stats(filter) ORDER BY user_id;
SELECT fav_detach('bulk'), fav_detach('for_ever');
DROP TABLE bulk, for_ever;
