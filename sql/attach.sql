--
-- Attached filters: every kind of statement, and reading
--
\set SHOW_CONTEXT never

-- Compares filters and source element by element.  Missing is a pair of the source that the
-- view, the levels or the function do not report.  Stale is an element that they report although the source
-- does not have it: of the numbers up to 300 for exact filters, and by fav_verify for all.
CREATE FUNCTION missing_and_stale(source regclass, name text DEFAULT NULL, OUT missing bigint, OUT stale bigint)
LANGUAGE plpgsql AS $$
DECLARE
	a record;
	v record;
BEGIN
	SELECT f.*, attname AS k INTO STRICT a FROM fav_attachments f JOIN pg_attribute ON attrelid = levels AND attnum = 1
	WHERE f.source = $1 AND (name IS NULL OR filter::text = name);
	SELECT * INTO v FROM fav_verify(source, name);
	EXECUTE format('SELECT count(*) FROM %1$s s LEFT JOIN %2$s f ON f.%3$I = s.%4$I LEFT JOIN %5$s l ON l.%3$I = s.%4$I
		WHERE s.%4$I IS NOT NULL AND s.%6$I IS NOT NULL AND NOT (fav_contains(f.filter, s.%6$I) AND fav_probe(l.base, l.middle, l.recent, s.%6$I)
			AND %7$s(s.%4$I, s.%6$I))',
		source, a.filter, a.k, a.key, a.levels, a.element, a.has::oid::regproc) INTO missing;
	EXECUTE format('SELECT count(*) FROM %5$s l JOIN %2$s f USING (%3$I), generate_series(0, 300) x
		WHERE base = ''\x01'' AND (fav_contains(f.filter, x) OR fav_probe(l.base, l.middle, l.recent, x) OR %7$s(l.%3$I, x))
			AND NOT EXISTS (SELECT FROM %1$s s WHERE s.%4$I = l.%3$I AND s.%6$I = x)',
		source, a.filter, a.k, a.key, a.levels, a.element, a.has::oid::regproc) INTO stale;
	missing := greatest(missing, v.missing);
	stale := greatest(stale, v.stale);
END $$;

CREATE TABLE hidden (user_id int, post_id bigint, note text, PRIMARY KEY (user_id, post_id));
INSERT INTO hidden SELECT u, p FROM generate_series(1, 3) u, generate_series(1, 20) p;
SELECT fav_attach('hidden', 'user_id', 'post_id');
SELECT source, key, element, filter, levels, error_rate = 0.01 AS default_rate, active FROM fav_attachments;
SELECT attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
WHERE attrelid IN ('hidden_fav'::regclass, 'hidden_fav_levels'::regclass) AND attnum > 0 ORDER BY attrelid::regclass::text, attnum;
SELECT * FROM missing_and_stale('hidden');

-- INSERT, COPY
INSERT INTO hidden VALUES (1, 50);
INSERT INTO hidden VALUES (4, 1), (5, 1), (4, 2);
COPY hidden (user_id, post_id) FROM stdin;
5	2
1	51
6	1
\.
SELECT * FROM missing_and_stale('hidden');
SELECT user_id, fav_count(filter) FROM hidden_fav ORDER BY 1;

-- UPDATE of keys, elements, both, neither
UPDATE hidden SET user_id = 7 WHERE user_id = 6;
UPDATE hidden SET post_id = post_id + 60 WHERE user_id = 1 AND post_id <= 10;
UPDATE hidden SET user_id = 8, post_id = post_id + 60 WHERE user_id = 2 AND post_id > 15;
UPDATE hidden SET note = 'seen';
SELECT * FROM missing_and_stale('hidden');
-- an UPDATE that does not change the pair does not lock the filter
BEGIN;
UPDATE hidden SET note = 'seen again', user_id = user_id;
SELECT count(*) FROM hidden_fav_levels WHERE pg_current_xact_id()::text IN (xmin::text, xmax::text);
COMMIT;

-- DELETE; the last pair of a user leaves an empty filter
DELETE FROM hidden WHERE user_id = 3;
DELETE FROM hidden WHERE (user_id, post_id) = (1, 50);
DELETE FROM hidden WHERE post_id % 2 = 0;
SELECT * FROM missing_and_stale('hidden');
SELECT fav_count(filter) FROM hidden_fav WHERE user_id = 3;

-- ON CONFLICT: inserted, updated, moved, or left alone
INSERT INTO hidden VALUES (1, 51), (1, 52) ON CONFLICT DO NOTHING;
INSERT INTO hidden VALUES (1, 51, 'new'), (1, 53, 'new') ON CONFLICT (user_id, post_id) DO UPDATE SET note = 'again';
INSERT INTO hidden VALUES (1, 51), (1, 54) ON CONFLICT (user_id, post_id) DO UPDATE SET user_id = 9;
SELECT user_id, post_id FROM hidden WHERE post_id BETWEEN 51 AND 54 ORDER BY 1, 2;
SELECT * FROM missing_and_stale('hidden');

-- also with session_replication_role = replica
SET session_replication_role = replica;
INSERT INTO hidden VALUES (1, 100), (2, 100);
UPDATE hidden SET post_id = 101 WHERE user_id = 1 AND post_id = 100;
DELETE FROM hidden WHERE user_id = 2 AND post_id = 100;
RESET session_replication_role;
SELECT * FROM missing_and_stale('hidden');

-- transactions that are rolled back, partly or completely
BEGIN;
SAVEPOINT s;
INSERT INTO hidden VALUES (3, 33);
ROLLBACK TO s;
INSERT INTO hidden VALUES (3, 34);
SELECT * FROM missing_and_stale('hidden');
COMMIT;
BEGIN;
DELETE FROM hidden;
SELECT sum(fav_count(filter)) FROM hidden_fav;
ROLLBACK;
SELECT * FROM missing_and_stale('hidden');

-- The function, and the view.  A user without a row, such as 77, sees the whole feed.
CREATE TABLE posts (id bigint PRIMARY KEY);
INSERT INTO posts SELECT generate_series(50, 56);
SELECT array_agg(id ORDER BY id) FROM posts WHERE NOT fav_contains((SELECT filter FROM hidden_fav WHERE user_id = 1), id);
SELECT array_agg(id ORDER BY id) FROM posts WHERE NOT fav_contains((SELECT filter FROM hidden_fav WHERE user_id = 77), id);
SELECT array_agg(id ORDER BY id) FROM posts p WHERE NOT hidden_has(1, p.id);
SELECT array_agg(id ORDER BY id) FROM posts p WHERE NOT hidden_has(77, p.id);
SELECT hidden_has(1, NULL), hidden_has(NULL, 1), hidden_has(NULL, NULL);
-- All of them are turned into a probe of plain columns, also in a LEFT JOIN.
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS
	$$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query; END $$;
SELECT name, bool_or(line ~ 'fav_probe\(\w+.base, \w+.middle, \w+.recent, p.id\)') AS probes_columns, bool_or(line ~ 'fav_stack') AS copies
FROM (VALUES ('levels', 'SELECT p.id FROM posts p LEFT JOIN hidden_fav_levels h ON h.user_id = 1 WHERE NOT fav_probe(h.base, h.middle, h.recent, p.id)'),
	('view', 'SELECT p.id FROM posts p LEFT JOIN hidden_fav h ON h.user_id = 1 WHERE NOT fav_contains(h.filter, p.id)'),
	('operator', 'SELECT p.id FROM posts p LEFT JOIN hidden_fav h ON h.user_id = 1 WHERE NOT p.id <@ h.filter')) q (name, query), plan(query) line
GROUP BY name ORDER BY name;
SELECT array_agg(p.id ORDER BY p.id) FROM posts p LEFT JOIN hidden_fav h ON h.user_id = 1 WHERE NOT fav_contains(h.filter, p.id);
SELECT array_agg(p.id ORDER BY p.id) FROM posts p LEFT JOIN hidden_fav h ON h.user_id = 77 WHERE NOT h.filter @> p.id;

-- Rows with NULL are not pairs; a pair with two rows is present until both are deleted
CREATE TABLE loose (user_id int, post_id int);
CREATE INDEX ON loose (user_id, post_id);
INSERT INTO loose VALUES (1, NULL), (NULL, 1), (1, 1);
SELECT fav_attach('loose', 'user_id', 'post_id');
INSERT INTO loose VALUES (2, NULL), (NULL, 2), (NULL, NULL), (1, 1), (1, 2), (1, 2), (1, 3);
SELECT user_id, fav_count(filter) FROM loose_fav ORDER BY 1;
UPDATE loose SET post_id = 7 WHERE user_id = 2;
UPDATE loose SET user_id = 2 WHERE post_id = 2 AND user_id IS NULL;
DELETE FROM loose WHERE ctid = (SELECT min(ctid) FROM loose WHERE (user_id, post_id) = (1, 1));
UPDATE loose SET post_id = 3 WHERE ctid = (SELECT min(ctid) FROM loose WHERE (user_id, post_id) = (1, 2));
SELECT * FROM missing_and_stale('loose');
SELECT user_id, ARRAY(SELECT i FROM generate_series(0, 9) i WHERE filter @> i) FROM loose_fav ORDER BY 1;
-- swaps
UPDATE loose SET user_id = 3 - user_id WHERE post_id IN (2, 7);
UPDATE loose SET post_id = 4 - post_id WHERE post_id IN (1, 3);
SELECT * FROM missing_and_stale('loose');
SELECT user_id, ARRAY(SELECT i FROM generate_series(0, 9) i WHERE filter @> i) FROM loose_fav ORDER BY 1;
UPDATE loose SET post_id = NULL WHERE post_id IN (1, 2);
DELETE FROM loose WHERE post_id = 3;
SELECT * FROM missing_and_stale('loose');
SELECT user_id, fav_count(filter) FROM loose_fav ORDER BY 1;
TRUNCATE loose;
SELECT * FROM missing_and_stale('loose');
SELECT count(*) FROM loose_fav;
-- repeatedly
INSERT INTO loose SELECT 1 + i % 2, i % 3 FROM generate_series(1, 6000) i;
DELETE FROM loose WHERE ctid = (SELECT min(ctid) FROM loose);
UPDATE loose SET post_id = post_id + 1 WHERE ctid IN (SELECT max(ctid) FROM loose GROUP BY user_id, post_id);
SELECT * FROM missing_and_stale('loose');
DELETE FROM loose WHERE (user_id, post_id) = (1, 1);
SELECT * FROM missing_and_stale('loose');
SELECT user_id, fav_count(filter) FROM loose_fav ORDER BY 1;
SELECT fav_detach('loose');
-- without an index there is a warning, but everything works
DROP INDEX loose_user_id_post_id_idx;
SELECT fav_attach('loose', 'user_id', 'post_id');
INSERT INTO loose VALUES (1, 1), (1, 2);
DELETE FROM loose WHERE post_id = 1;
SELECT * FROM missing_and_stale('loose');
SELECT fav_detach('loose');
DROP TABLE loose;

-- Levels.  Up to 128 elements are exact, and all in recent.
CREATE VIEW levels AS
SELECT user_id, base <> '\x01' AS base, middle <> '\x01' AS middle,
	abs(fav_count(fav_stack(base, middle, recent)) - (SELECT count(*) FROM hidden h WHERE h.user_id = l.user_id)) <= 5 AS counted
FROM hidden_fav_levels l;
INSERT INTO hidden SELECT 20, generate_series(1, 128);
SELECT user_id, base, middle, fav_count(filter) FROM levels JOIN hidden_fav USING (user_id) WHERE user_id = 20;
SELECT count(*) FROM generate_series(129, 20000) p WHERE (SELECT filter FROM hidden_fav WHERE user_id = 20) @> p;
-- one element more than fits in recent makes a base
INSERT INTO hidden VALUES (20, 129);
SELECT * FROM levels WHERE user_id = 20;
-- changes are in recent ...
DELETE FROM hidden WHERE user_id = 20 AND post_id <= 29;
INSERT INTO hidden VALUES (20, 1);
SELECT * FROM levels WHERE user_id = 20;
SELECT * FROM missing_and_stale('hidden');
SELECT array_agg(p) FROM generate_series(1, 29) p WHERE (SELECT filter FROM hidden_fav WHERE user_id = 20) @> p;
-- ... until it is full and pushed into middle
INSERT INTO hidden SELECT 20, generate_series(201, 350);
SELECT * FROM levels WHERE user_id = 20;
SELECT * FROM missing_and_stale('hidden');
SELECT array_agg(p) FROM generate_series(1, 29) p WHERE (SELECT filter FROM hidden_fav WHERE user_id = 20) @> p;
-- repeated changes across the levels: in base, excluded in middle, added and excluded again in recent
INSERT INTO hidden SELECT 20, generate_series(2, 29);
DELETE FROM hidden WHERE user_id = 20 AND (post_id BETWEEN 11 AND 40 OR post_id > 340);
SELECT * FROM missing_and_stale('hidden');
SELECT count(*) FROM generate_series(11, 40) p WHERE (SELECT filter FROM hidden_fav WHERE user_id = 20) @> p;
-- a middle that is full becomes a new base of the right size
INSERT INTO hidden SELECT 20, generate_series(1001, 9000);
SELECT * FROM levels WHERE user_id = 20;
SELECT * FROM missing_and_stale('hidden');
-- row by row through all levels, inserting and deleting
DO $$
BEGIN
	FOR i IN 1 .. 1500 LOOP
		INSERT INTO hidden VALUES (21, i);
		IF i % 3 = 0 THEN
			DELETE FROM hidden WHERE user_id = 21 AND post_id = i / 3;
		END IF;
	END LOOP;
END $$;
SELECT user_id, base, counted FROM levels WHERE user_id = 21;
SELECT * FROM missing_and_stale('hidden');
-- a filter that shrinks enough in one statement is exact again
DELETE FROM hidden WHERE user_id = 20 AND post_id > 100;
SELECT * FROM levels WHERE user_id = 20;
SELECT * FROM missing_and_stale('hidden');

-- More rows than fit in memory: collected pairs go to disk
SET work_mem = '64kB';
INSERT INTO hidden SELECT 30 + i % 7, i FROM generate_series(1, 20000) i;
UPDATE hidden SET post_id = post_id + 100000 WHERE user_id >= 30 AND post_id % 3 = 0;
UPDATE hidden SET user_id = user_id + 1 WHERE user_id >= 30 AND post_id % 4 = 0;
DELETE FROM hidden WHERE user_id >= 30 AND post_id % 5 = 0;
RESET work_mem;
INSERT INTO hidden SELECT 40, i FROM generate_series(1, 70000) i;
DELETE FROM hidden WHERE user_id = 40 AND post_id % 2 = 0;
SELECT * FROM missing_and_stale('hidden');
SELECT missing, stale, false_positive_rate <= 0.01 AS within_rate FROM fav_verify('hidden');
-- deletes hold, also if they made a new base
SELECT count(*) FROM generate_series(2, 70000, 2) p WHERE (SELECT filter FROM hidden_fav WHERE user_id = 40) @> p;
DELETE FROM hidden WHERE user_id >= 20;

-- TRUNCATE, of two tables at once and by CASCADE
CREATE TABLE users (id int PRIMARY KEY);
INSERT INTO users SELECT DISTINCT user_id FROM hidden;
ALTER TABLE hidden ADD FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE ON UPDATE CASCADE;
DELETE FROM users WHERE id = 1;
UPDATE users SET id = 1 WHERE id = 9;
SELECT * FROM missing_and_stale('hidden');
SELECT count(*) FROM hidden WHERE user_id = 1;
BEGIN;
TRUNCATE hidden, posts;
INSERT INTO hidden VALUES (1, 1);
SELECT * FROM missing_and_stale('hidden');
SELECT sum(fav_count(filter)) FROM hidden_fav;
ROLLBACK;
SELECT * FROM missing_and_stale('hidden');
SET client_min_messages = warning;
TRUNCATE users CASCADE;
RESET client_min_messages;
SELECT * FROM missing_and_stale('hidden');
SELECT count(*) FROM hidden_fav;

-- fav_verify finds manual changes; fav_rebuild repairs them
INSERT INTO users SELECT generate_series(1, 9);
INSERT INTO hidden SELECT u, u * 10 + i FROM generate_series(1, 9) u, generate_series(0, 1) i;
UPDATE hidden_fav_levels SET recent = fav_add(fav_new(), 7) WHERE user_id IN (1, 2);
DELETE FROM hidden_fav_levels WHERE user_id = 3;
SELECT keys, elements, missing, stale FROM fav_verify('hidden');
SELECT fav_rebuild('hidden', '1');
SELECT keys, elements, missing, stale FROM fav_verify('hidden');
-- a write builds a missing filter
INSERT INTO hidden VALUES (3, 99);
SELECT keys, elements, missing, stale FROM fav_verify('hidden');
SELECT fav_rebuild('hidden');
SELECT * FROM missing_and_stale('hidden');
-- a user without rows in the source
INSERT INTO hidden_fav_levels (user_id, recent) VALUES (77, fav_add(fav_new(), 1));
SELECT missing, stale FROM fav_verify('hidden');
SELECT fav_rebuild('hidden', '77');
SELECT fav_count(filter) FROM hidden_fav WHERE user_id = 77;
SELECT fav_rebuild('hidden');
SELECT count(*) FROM hidden_fav WHERE user_id = 77;
SELECT fav_rebuild('hidden', 'seven');
-- a recent with another seed, and one with a slice
UPDATE hidden_fav_levels SET recent = fav_add(fav_new(seed => 5), ARRAY[10, 11]) WHERE user_id = 1;
UPDATE hidden_fav_levels SET recent = fav_add(fav_new(), ARRAY(SELECT generate_series(20, 200))) WHERE user_id = 2;
INSERT INTO hidden VALUES (1, 12), (1, 13), (2, 22);
DELETE FROM hidden WHERE (user_id, post_id) IN ((1, 10), (1, 12), (2, 20));
SELECT * FROM missing_and_stale('hidden');
SELECT keys, elements, bytes > 0 AS bytes, exact_keys, keys_with_middle FROM fav_attachment_stats('hidden');

-- Several attachments of one source, by name; each has its own rate and seed
SELECT fav_attach('hidden', 'post_id', 'user_id', error_rate => 0.001, seed => 42, name => 'hiders');
SELECT filter, levels, key, element, error_rate = 0.001 AS small_rate, active FROM fav_attachments ORDER BY filter::text;
INSERT INTO hidden VALUES (5, 10), (6, 10);
DELETE FROM hidden WHERE user_id = 7;
UPDATE hidden SET post_id = 5 WHERE user_id = 8 AND post_id = 80;
SELECT * FROM missing_and_stale('hidden', 'hidden_fav');
SELECT * FROM missing_and_stale('hidden', 'hiders_fav');
SELECT DISTINCT (fav_stats(filter)).seed FROM hiders_fav;
-- the name is needed
SELECT fav_verify('hidden');
SELECT fav_rebuild('hidden');
SELECT fav_detach('hidden', 'nothing');
SELECT keys, missing, stale FROM fav_verify('hidden', 'hiders');
SELECT fav_rebuild('hidden', NULL, 'hiders_fav_levels');
SELECT fav_rebuild('hidden', '10', 'hiders');
SELECT keys FROM fav_attachment_stats('hidden', 'hiders');
SELECT fav_detach('hidden', 'hiders');
INSERT INTO hidden VALUES (7, 70);
SELECT * FROM missing_and_stale('hidden');

-- A column of another table, kept by a trigger that the user wrote
ALTER TABLE users ADD hidden fav;
CREATE FUNCTION keep_hidden() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP <> 'INSERT' THEN
		UPDATE users SET hidden = fav_del(hidden, OLD.post_id) WHERE id = OLD.user_id;
	END IF;
	IF TG_OP <> 'DELETE' THEN
		UPDATE users SET hidden = fav_add(hidden, NEW.post_id) WHERE id = NEW.user_id;
	END IF;
	RETURN NULL;
END $$;
UPDATE users SET hidden = (SELECT fav_agg(post_id) FROM hidden WHERE user_id = id);
CREATE TRIGGER keep_hidden AFTER INSERT OR UPDATE OF user_id, post_id OR DELETE ON hidden FOR EACH ROW EXECUTE FUNCTION keep_hidden();
INSERT INTO hidden VALUES (9, 1), (9, 2), (9, 3);
UPDATE hidden SET post_id = post_id + 10 WHERE user_id = 9 AND post_id < 3;
DELETE FROM hidden WHERE user_id = 9 AND post_id = 3;
SELECT * FROM missing_and_stale('hidden');
SELECT count(*) FROM users u, generate_series(0, 300) p
WHERE (u.hidden @> p) IS DISTINCT FROM EXISTS (SELECT FROM hidden WHERE user_id = u.id AND post_id = p);

-- fav_detach drops everything
DROP VIEW levels;
SELECT fav_detach('hidden');
SELECT to_regclass('hidden_fav'), to_regclass('hidden_fav_levels'), to_regtype('hidden_fav_levels');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'hidden'::regclass AND NOT tgisinternal;
SELECT count(*) FROM pg_proc WHERE proname = 'fav_contains' AND pronamespace = 'public'::regnamespace
	AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'sql');
SELECT count(*) FROM fav_attachments;
INSERT INTO hidden VALUES (1, 99);
SELECT fav_detach('hidden');
SELECT fav_verify('hidden');
SELECT fav_rebuild('hidden');
SELECT fav_attachment_stats('hidden');
-- and attach again
SELECT fav_attach('hidden', 'user_id', 'post_id');
SELECT * FROM missing_and_stale('hidden');
SELECT fav_detach('hidden');

DROP TABLE hidden, posts, users;
DROP FUNCTION missing_and_stale, plan, keep_hidden;
