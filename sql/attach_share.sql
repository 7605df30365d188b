--
-- Shared filters: one for every n neighbouring keys, with pairs (key, element)
--
\set SHOW_CONTEXT never
SET search_path = public;

-- The group of a key is rounded down, also below 0 and at the ends of the range
SELECT key, fav_group(key, 200) FROM unnest('{-401,-400,-201,-200,-1,0,1,199,200,399,400}'::bigint[]) key;
SELECT n, fav_group(9223372036854775807, n) AS highest, fav_group(-9223372036854775808, n) AS lowest
FROM unnest('{1,2,200,2147483647}'::int[]) n;
SELECT fav_group(NULL, 200), fav_group(17, NULL);
SELECT fav_group(17, 0);
SELECT fav_group(17, -1);

-- Compares source and filters pair by pair, in all ways to read: every pair of the source,
-- and all other pairs of the given keys with the elements 0 to 300.  fav_verify compares all.
CREATE FUNCTION missing_and_stale(source regclass, keys bigint[] DEFAULT '{}', name text DEFAULT NULL, OUT missing bigint, OUT stale bigint)
LANGUAGE plpgsql AS $$
DECLARE
	a record;
	v record;
BEGIN
	SELECT f.*, attname AS k INTO STRICT a FROM fav_attachments f JOIN pg_attribute ON attrelid = levels AND attnum = 1
	WHERE f.source = $1 AND share IS NOT NULL AND (name IS NULL OR filter::text = name);
	SELECT * INTO v FROM fav_verify(source, coalesce(name, a.filter::text)::name);
	EXECUTE format('SELECT count(*) FROM %1$s s LEFT JOIN %2$s l ON l.%3$I = fav_group(s.%4$I, %5$s)
		WHERE s.%4$I IS NOT NULL AND s.%6$I IS NOT NULL AND NOT (fav_probe(l.base, l.middle, l.recent, s.%4$I, s.%6$I) AND %8$s(s.%4$I, s.%6$I) AND
			fav_contains((SELECT filter FROM %7$s f WHERE f.%3$I = fav_group(s.%4$I, %5$s)), s.%4$I, s.%6$I))',
		source, a.levels, a.k, a.key, a.share, a.element, a.filter, a.has::oid::regproc) INTO missing;
	EXECUTE format('SELECT count(*) FROM unnest($1) k JOIN %2$s l ON l.%3$I = fav_group(k, %5$s), generate_series(0, 300) e
		WHERE NOT EXISTS (SELECT FROM %1$s s WHERE s.%4$I = k AND s.%6$I = e) AND (fav_probe(l.base, l.middle, l.recent, k, e) OR %8$s(k, e) OR
			fav_contains((SELECT filter FROM %7$s f WHERE f.%3$I = fav_group(k, %5$s)), k, e))',
		source, a.levels, a.k, a.key, a.share, a.element, a.filter, a.has::oid::regproc) INTO stale USING keys;
	missing := greatest(missing, v.missing);
	stale := greatest(stale, v.stale);
END $$;

CREATE TABLE hidden (user_id int, post_id bigint, note text, PRIMARY KEY (user_id, post_id));
INSERT INTO hidden SELECT u, p FROM generate_series(-3, 3) u, generate_series(1, 10) p;
SELECT fav_attach('hidden', 'user_id', 'post_id', 0.000001, share => 4);
SELECT source, key, element, filter, levels, share, active FROM fav_attachments;
SELECT attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
WHERE attrelid IN ('hidden_fav'::regclass, 'hidden_fav_levels'::regclass) AND attnum > 0 ORDER BY attrelid::regclass::text, attnum;
SELECT user_id_group, fav_count(filter), (fav_stats(filter)).kind FROM hidden_fav ORDER BY 1;
SELECT * FROM missing_and_stale('hidden', '{-4,-3,-1,0,1,3}');

-- A feed, by the view and by the function; a user whose group has no filter sees the whole feed
SELECT array_agg(p ORDER BY p) FROM generate_series(8, 13) p
WHERE NOT coalesce(fav_contains((SELECT filter FROM hidden_fav WHERE user_id_group = fav_group(-2, 4)), -2, p), false);
SELECT array_agg(p ORDER BY p) FROM generate_series(8, 13) p WHERE NOT hidden_has(-2, p);
SELECT array_agg(p ORDER BY p) FROM generate_series(8, 13) p WHERE NOT hidden_has(17, p);
SELECT fav_probe(base, middle, recent, 1, 10), fav_probe(base, middle, recent, 1, 11), fav_probe(base, middle, recent, NULL, 10),
	fav_probe(base, middle, recent, 1, NULL), fav_probe(NULL, NULL, NULL, 1, 10)
FROM hidden_fav_levels WHERE user_id_group = 0;

-- One element is not a pair
SELECT fav_contains(filter, 10) FROM hidden_fav;
\set VERBOSITY terse
SELECT fav_probe(l.base, l.middle, l.recent, 10) FROM hidden_fav_levels l;
\set VERBOSITY default
SELECT fav_contains(fav_add(NULL, 1), 1, 1);

-- INSERT, COPY, UPDATE within a group, to another one, and of neither, DELETE, NULL
INSERT INTO hidden VALUES (1, 50);
INSERT INTO hidden VALUES (4, 1), (-5, 1), (7, 1), (4, 2);
COPY hidden (user_id, post_id) FROM stdin;
5	2
-9	51
1	51
\.
SELECT * FROM missing_and_stale('hidden', '{-9,-5,-4,-3,-1,0,1,3,4,5,7}');
UPDATE hidden SET user_id = 2 WHERE user_id = 1 AND post_id > 10;
UPDATE hidden SET user_id = -1, post_id = post_id + 20 WHERE user_id = 4;
UPDATE hidden SET post_id = post_id + 60 WHERE user_id IN (0, -3) AND post_id <= 5;
UPDATE hidden SET note = 'seen';
SELECT * FROM missing_and_stale('hidden', '{-9,-5,-4,-3,-1,0,1,2,3,4,5,7}');
DELETE FROM hidden WHERE post_id % 3 = 0;
DELETE FROM hidden WHERE user_id BETWEEN -9 AND -2;
SELECT * FROM missing_and_stale('hidden', '{-9,-5,-4,-3,-1,0,1,2,3,4,5,7}');
BEGIN;
INSERT INTO hidden SELECT u, 100 FROM generate_series(-20, 20) u;
SAVEPOINT s;
DELETE FROM hidden WHERE user_id > 0;
ROLLBACK TO s;
WITH gone AS (DELETE FROM hidden WHERE post_id = 100 RETURNING user_id)
INSERT INTO hidden SELECT user_id, 101 FROM gone WHERE user_id % 2 = 0;
SELECT * FROM missing_and_stale('hidden', '{-20,-9,-5,-4,-3,-1,0,1,2,3,4,5,7,20}');
COMMIT;
INSERT INTO hidden VALUES (1, 1), (1, 7) ON CONFLICT (user_id, post_id) DO UPDATE SET post_id = hidden.post_id + 200;
SELECT * FROM missing_and_stale('hidden', '{-20,-9,-5,-4,-3,-1,0,1,2,3,4,5,7,20}');

-- A heavy user among light ones.  The group has all three levels, and deletes hold
INSERT INTO hidden SELECT 9, p FROM generate_series(1000, 3999) p;
INSERT INTO hidden SELECT 9, p FROM generate_series(4000, 4299) p;
INSERT INTO hidden SELECT 8 + p % 4, p FROM generate_series(4300, 4349) p;
SELECT base <> '\x01' AS base, middle <> '\x01' AS middle, (fav_stats(base)).slices, (fav_stats(base)).kind, (fav_stats(middle)).kind
FROM hidden_fav_levels WHERE user_id_group = 2;
SELECT * FROM missing_and_stale('hidden');
DELETE FROM hidden WHERE user_id = 9 AND post_id % 2 = 0;
SELECT count(*) FROM hidden_fav_levels l, generate_series(1000, 4299, 2) p WHERE user_id_group = 2 AND fav_probe(l.base, l.middle, l.recent, 9, p);
DELETE FROM hidden WHERE user_id = 10;
SELECT count(*) FROM hidden_fav_levels l, generate_series(4300, 4349) p WHERE user_id_group = 2 AND fav_probe(l.base, l.middle, l.recent, 10, p) AND p % 4 = 2;
SELECT * FROM missing_and_stale('hidden');

-- fav_rebuild of a key rebuilds the filter of its group.  fav_verify counts keys and pairs
UPDATE hidden_fav_levels SET recent = fav_add(recent, 9, 1000000), base = '\x01', middle = '\x01' WHERE user_id_group = 2;
SELECT missing > 0 AS missing, stale FROM fav_verify('hidden');
SELECT fav_rebuild('hidden', '11');
SELECT * FROM missing_and_stale('hidden');
SELECT fav_rebuild('hidden', 'eleven');
SELECT fav_rebuild('hidden', '1000');
SELECT fav_rebuild('hidden');
SELECT keys = (SELECT count(DISTINCT user_id) FROM hidden) AS keys, elements = (SELECT count(*) FROM hidden) AS elements,
	missing, stale, false_positive_rate < 0.0001 AS within_rate FROM fav_verify('hidden');
SELECT keys = (SELECT count(DISTINCT fav_group(user_id, 4)) FROM hidden) AS groups, exact_keys = keys - 1 AS exact FROM fav_attachment_stats('hidden');
DELETE FROM hidden WHERE user_id = 9;
TRUNCATE hidden;
SELECT count(*) FROM hidden_fav;
INSERT INTO hidden VALUES (1, 1), (-1, 1);
SELECT * FROM missing_and_stale('hidden', '{-1,0,1}');

-- Two attachments of one source are kept apart
SELECT fav_attach('hidden', 'user_id', 'post_id', name => 'each');
SELECT fav_attach('hidden', 'post_id', 'user_id', share => 1000, name => 'by_post');
SELECT fav_attach('hidden', 'user_id', 'post_id', share => 1, name => 'alone');
SELECT fav_attach('hidden', 'user_id', 'post_id', share => 2147483647, name => 'all_of_them');
INSERT INTO hidden SELECT u, p FROM generate_series(-5, 5) u, generate_series(1, 40) p ON CONFLICT DO NOTHING;
DELETE FROM hidden WHERE (user_id + post_id) % 3 = 0;
SELECT a.filter, a.share, v.missing, v.stale FROM fav_attachments a, fav_verify(a.source, (a.filter::text)::name) v ORDER BY a.filter::text;
SELECT 'hidden_fav' AS name, * FROM missing_and_stale('hidden', '{-6,-5,-1,0,4,5}', 'hidden_fav')
UNION ALL SELECT 'by_post', * FROM missing_and_stale('hidden', '{}', 'by_post_fav')
UNION ALL SELECT 'alone', * FROM missing_and_stale('hidden', '{-6,-5,-1,0,4,5}', 'alone_fav')
UNION ALL SELECT 'all_of_them', * FROM missing_and_stale('hidden', '{}', 'all_of_them_fav');
SELECT post_id_group, fav_count(filter) = (SELECT count(*) FROM hidden) AS all FROM by_post_fav;

-- Users share a filter, so each shared attachment has a random seed
SELECT count(DISTINCT seed) = 4 AS differ, bool_or(seed = 0) AS fixed
FROM (SELECT (fav_stats(recent)).seed FROM hidden_fav_levels UNION ALL SELECT (fav_stats(recent)).seed FROM by_post_fav_levels
	UNION ALL SELECT (fav_stats(recent)).seed FROM alone_fav_levels UNION ALL SELECT (fav_stats(recent)).seed FROM all_of_them_fav_levels) s;
SELECT fav_detach('hidden', filter::text::name) FROM fav_attachments WHERE filter::text <> 'hidden_fav';
SELECT (fav_stats(recent)).seed AS before FROM hidden_fav_levels LIMIT 1 \gset
SELECT fav_rebuild('hidden');
SELECT bool_and((fav_stats(recent)).seed = :before) AS same_seed FROM hidden_fav_levels;
SELECT fav_detach('hidden');
SELECT to_regclass('hidden_fav'), to_regclass('hidden_fav_levels'), count(*) FROM fav_attachments;

-- Hashes of pairs can be inverted.  User b has pairs whose hashes are those of pairs of user a
-- under seed 0, where x1 and x2 are words of XXH3's secret:
--   a = x1          hash = f(16 + (element # x2))
--   b = x1 # 1      hash = f(16 + 2^56 + 2 * (element # x2))
CREATE TABLE crafted (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
\set a -2278722034908517875
\set b -2278722034908517876
CREATE VIEW collisions AS
SELECT (72057594037927936 + 2 * i) # 3925121636510753254 AS of_a, i # 3925121636510753254 AS of_b FROM generate_series(1::bigint, 20) i;
SELECT count(*) FROM collisions WHERE fav_contains(fav_add(fav_new(), :b, of_b), :a, of_a);
SELECT fav_attach('crafted', 'user_id', 'post_id', share => 200, seed => 0, name => 'foreseen');
SELECT fav_attach('crafted', 'user_id', 'post_id', share => 200, name => 'secret');
INSERT INTO crafted SELECT :b, of_b FROM collisions;
INSERT INTO crafted VALUES (:a, 1);
SELECT count(*) FILTER (WHERE fav_probe(f.base, f.middle, f.recent, :a, of_a)) AS foreseen, count(*) FILTER (WHERE fav_probe(s.base, s.middle, s.recent, :a, of_a)) AS secret
FROM collisions, foreseen_fav_levels f, secret_fav_levels s;
-- user b removes the pairs, and user a loses them
INSERT INTO crafted SELECT :a, of_a FROM collisions;
DELETE FROM crafted WHERE user_id = :b;
SELECT count(*) FILTER (WHERE NOT fav_probe(f.base, f.middle, f.recent, :a, of_a)) AS foreseen, count(*) FILTER (WHERE NOT fav_probe(s.base, s.middle, s.recent, :a, of_a)) AS secret
FROM collisions, foreseen_fav_levels f, secret_fav_levels s;
SELECT v.name, missing, stale FROM unnest('{foreseen,secret}'::name[]) v (name), fav_verify('crafted', v.name);
SELECT fav_detach('crafted', 'foreseen'), fav_detach('crafted', 'secret');
DROP VIEW collisions;
DROP TABLE crafted;

-- The ends of the range of each type, and domains
CREATE DOMAIN user_number AS int CHECK (VALUE <> 13);
CREATE DOMAIN post_number AS smallint;
CREATE TABLE numbers (small smallint, medium int, large bigint, users user_number, posts post_number);
CREATE INDEX ON numbers (small, large);
CREATE INDEX ON numbers (medium, posts);
CREATE INDEX ON numbers (large, small);
CREATE INDEX ON numbers (users, posts);
INSERT INTO numbers SELECT s, m, l, u, p FROM unnest('{-32768,-1,0,32767}'::smallint[]) s, unnest('{-2147483648,0,2147483647}'::int[]) m,
	unnest('{-9223372036854775808,-1,0,9223372036854775807}'::bigint[]) l, unnest('{-2147483648,-1,2147483647,NULL}'::int[]) u, unnest('{-32768,1,32767,NULL}'::smallint[]) p;
SELECT fav_attach('numbers', 'small', 'large', share => 200, name => 'of_small');
SELECT fav_attach('numbers', 'medium', 'posts', share => 1000, name => 'of_medium');
SELECT fav_attach('numbers', 'large', 'small', share => 7, name => 'of_large');
SELECT fav_attach('numbers', 'users', 'posts', share => 3, name => 'of_users');
SELECT large_group, fav_count(filter) FROM of_large_fav ORDER BY 1;
SELECT users_group, fav_count(filter) FROM of_users_fav ORDER BY 1;
INSERT INTO numbers VALUES (5, 5, 9223372036854775806, 5, 5), (32766, 2147483646, -9223372036854775807, 2147483646, 32766);
UPDATE numbers SET large = large / 2, users = users / 2 WHERE posts = 1;
DELETE FROM numbers WHERE posts = 32767 OR large = -9223372036854775808;
SELECT n.name, m.* FROM unnest('{of_small,of_medium,of_large,of_users}'::text[]) n (name), missing_and_stale('numbers', '{-1,0,1,5}', n.name || '_fav') m;
SELECT fav_rebuild('numbers', '9223372036854775807', 'of_large'), fav_rebuild('numbers', '-9223372036854775808', 'of_large'), fav_rebuild('numbers', '-32768', 'of_small');
SELECT n.name, m.* FROM unnest('{of_small,of_medium,of_large,of_users}'::text[]) n (name), missing_and_stale('numbers', '{-1,0,1,5}', n.name || '_fav') m;
SELECT fav_rebuild('numbers', '13', 'of_users');
SELECT fav_detach('numbers', filter::text::name) FROM fav_attachments;
DROP TABLE numbers;
DROP DOMAIN user_number, post_number;

-- Partitions, some with other column orders, and one that is created later
CREATE TABLE parts (user_id int, post_id int, PRIMARY KEY (user_id, post_id)) PARTITION BY RANGE (user_id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (10);
CREATE TABLE parts_mid (post_id int NOT NULL, gone text, user_id int NOT NULL);
ALTER TABLE parts_mid DROP gone;
ALTER TABLE parts ATTACH PARTITION parts_mid FOR VALUES FROM (10) TO (25);
INSERT INTO parts SELECT u, p FROM generate_series(-20, 24) u, generate_series(1, 5) p;
SELECT fav_attach('parts', 'user_id', 'post_id', share => 7);
CREATE TABLE parts_high (post_id int NOT NULL, user_id int NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_high FOR VALUES FROM (25) TO (MAXVALUE);
INSERT INTO parts SELECT u, p FROM generate_series(5, 30) u, generate_series(6, 9) p;
INSERT INTO parts_high SELECT p, u FROM generate_series(25, 30) u, generate_series(1, 5) p;
UPDATE parts SET user_id = user_id + 10, post_id = 30 WHERE post_id = 3;
DELETE FROM parts_mid WHERE post_id = 2;
SELECT * FROM missing_and_stale('parts', '{-20,-1,0,9,10,11,24,25,30,31}');
-- a partition is dropped in the middle of a group
TRUNCATE parts_mid;
SELECT * FROM missing_and_stale('parts', '{-20,-1,0,9,10,11,24,25,30,31}');
SELECT fav_detach('parts');
DROP TABLE parts;

-- A source without a unique index: a pair may have two rows
CREATE TABLE twice (user_id int, post_id int);
CREATE INDEX ON twice (user_id);
SELECT fav_attach('twice', 'user_id', 'post_id', share => 10);
INSERT INTO twice SELECT u, p FROM generate_series(1, 25) u, generate_series(1, 5) p, generate_series(1, 2);
DELETE FROM twice WHERE ctid IN (SELECT min(ctid) FROM twice WHERE post_id < 4 GROUP BY user_id, post_id);
DELETE FROM twice WHERE post_id = 3;
SELECT * FROM missing_and_stale('twice', '{0,1,9,10,25}');
SELECT fav_detach('twice');
DROP TABLE twice;

-- Names
CREATE TABLE names (filter int, base int, a23456789b23456789c23456789d23456789e23456789f23456789g23456789 int, "User" int);
CREATE INDEX ON names (filter);
CREATE INDEX ON names ("User");
CREATE INDEX ON names (a23456789b23456789c23456789d23456789e23456789f23456789g23456789);
SELECT fav_attach('names', 'filter', 'base', share => 10, name => 'n1');
SELECT fav_attach('names', 'a23456789b23456789c23456789d23456789e23456789f23456789g23456789', 'base', share => 10, name => 'n2');
SELECT fav_attach('names', 'User', 'filter', share => 10, name => 'n3');
INSERT INTO names SELECT i, i, i, i FROM generate_series(1, 30) i;
SELECT n.name, m.* FROM unnest('{n1,n2,n3}'::text[]) n (name), missing_and_stale('names', '{0,1,5,30}', n.name || '_fav') m;
SELECT attrelid::regclass, attname FROM pg_attribute WHERE attrelid IN ('n1_fav'::regclass, 'n2_fav'::regclass, 'n3_fav'::regclass) AND attnum = 1 ORDER BY 1;
ALTER TABLE names RENAME "User" TO who;
ALTER TABLE n3_fav_levels RENAME "User_group" TO circle;
ALTER VIEW n3_fav RENAME "User_group" TO circle;
INSERT INTO names VALUES (0, 0, 0, 0);
SELECT * FROM missing_and_stale('names', '{0,1,5,30}', 'n3_fav');
SELECT fav_detach('names', filter::text::name) FROM fav_attachments;
DROP TABLE names;

-- Keys that cannot share a filter
CREATE TABLE others (k text, e int, u uuid, i int, j int);
SELECT fav_attach('others', 'k', 'e', share => 10);
SELECT fav_attach('others', 'i', 'k', share => 10);
SELECT fav_attach('others', 'i', 'u', share => 10);
SELECT fav_attach('others', 'u', 'i', share => 10);
SELECT fav_attach('others', 'i', 'i', share => 10);
SELECT fav_attach('others', 'i', 'j', share => 0);
SELECT fav_attach('others', 'i', 'j', share => -1);
SELECT count(*) FROM fav_attachments;
DROP TABLE others, hidden;
DROP FUNCTION missing_and_stale;
