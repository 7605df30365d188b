-- <name>_has is EXISTS: the same answer in every shape of query, never NULL.

\set VERBOSITY terse

CREATE TABLE people (id int PRIMARY KEY, name text);
INSERT INTO people SELECT i, 'p' || i FROM generate_series(1, 8) i;
INSERT INTO people VALUES (99, NULL);
CREATE TABLE posts (id bigint PRIMARY KEY, topic int, author int, prev bigint);
INSERT INTO posts SELECT i, i % 5, i % 7, nullif(i - 1, 40) FROM generate_series(1, 400) i;
CREATE TABLE hidden (user_id int, post_id bigint, PRIMARY KEY (user_id, post_id));
-- 1 and 2 have slices, 3 and 4 a few pairs, 5 none; most of 6 is deleted later, and 7 comes later
INSERT INTO hidden SELECT 1, i FROM generate_series(1, 400, 2) i;
INSERT INTO hidden SELECT 2, i FROM generate_series(1, 4000, 13) i;
INSERT INTO hidden VALUES (3, 7), (3, 8), (4, 400), (-1, 5);
INSERT INTO hidden SELECT 6, i FROM generate_series(1, 350) i;
SELECT fav_attach('hidden', 'user_id', 'post_id');
CREATE TABLE shared AS TABLE hidden;
ALTER TABLE shared ADD PRIMARY KEY (user_id, post_id);
SELECT fav_attach('shared', 'user_id', 'post_id', share => 4);
CREATE TABLE split (user_id int, post_id bigint, PRIMARY KEY (user_id, post_id)) PARTITION BY RANGE (post_id);
CREATE TABLE split_low PARTITION OF split FOR VALUES FROM (MINVALUE) TO (100);
CREATE TABLE split_high PARTITION OF split FOR VALUES FROM (100) TO (MAXVALUE);
INSERT INTO split TABLE hidden;
SELECT fav_attach('split', 'user_id', 'post_id');
ANALYZE;

\sf hidden_has

-- A shape is a query with calls HAS(key, element).  It must give the same with EXISTS.
CREATE TABLE shapes (id serial, shape text);
INSERT INTO shapes (shape) VALUES
	('SELECT id FROM posts p WHERE NOT HAS(1, p.id)'),
	('SELECT id FROM posts p WHERE HAS(2, p.id)'),
	('SELECT id FROM posts p WHERE NOT HAS(5, p.id) AND topic = 3'),
	('SELECT id FROM posts p WHERE NOT HAS(6, p.id) ORDER BY id DESC LIMIT 20'),
	('SELECT id FROM posts p WHERE HAS(NULL, p.id)'),
	('SELECT id FROM posts p WHERE NOT HAS(1, NULL::bigint)'),
	('SELECT id, HAS(1, prev) FROM posts'),
	('SELECT HAS(1, 1), HAS(1, 2), HAS(3, 7), HAS(3, 9), HAS(77, 1), HAS(-1, 5)'),
	('SELECT id, topic, HAS(3, id) OR HAS(4, id), HAS(2, id) AND NOT HAS(1, id) FROM posts'),
	('SELECT u.id, p.id, HAS(u.id, p.id) FROM people u, posts p'),
	('SELECT u.id, EXISTS (SELECT FROM posts p WHERE p.id = u.id AND HAS(1, p.id)) FROM people u'),
	('SELECT u.id FROM people u WHERE EXISTS (SELECT FROM posts p WHERE p.author = u.id AND NOT HAS(p.author, p.id)) OR u.id = 99'),
	('SELECT u.id FROM people u WHERE u.id = 99 OR NOT EXISTS (SELECT FROM posts p WHERE p.id = u.id AND HAS(u.id, p.id))'),
	('SELECT u.id, (SELECT (SELECT HAS(max(u.id), min(p.id))) FROM posts p) FROM people u GROUP BY u.id'),
	('SELECT u.id, count(*) FROM people u JOIN posts p ON NOT HAS(u.id, p.id) GROUP BY u.id'),
	('SELECT u.id, p.id FROM people u LEFT JOIN posts p ON p.author = u.id AND NOT HAS(u.id, p.id)'),
	('SELECT u.id, p.id FROM people u LEFT JOIN posts p ON p.author = u.id WHERE NOT HAS(u.id, p.id)'),
	('SELECT u.id, p.id FROM posts p FULL JOIN people u ON u.id = p.author WHERE NOT HAS(u.id, p.prev)'),
	('SELECT u.id, q.id FROM people u, LATERAL (SELECT p.id FROM posts p WHERE NOT HAS(u.id, p.id) ORDER BY p.id DESC LIMIT 3) q'),
	('SELECT u.id, (SELECT count(*) FROM posts p WHERE HAS(u.id, p.id)) FROM people u'),
	('SELECT u.id FROM people u WHERE EXISTS (SELECT FROM posts p WHERE p.topic = 2 AND HAS(u.id, p.id))'),
	('SELECT u.id FROM people u WHERE 3 = ANY (SELECT p.topic FROM posts p WHERE HAS(u.id, p.id))'),
	('SELECT u.id, (SELECT (SELECT count(*) FROM posts q WHERE HAS(u.id, q.id) AND q.topic = p.topic) FROM posts p WHERE p.id = u.id) FROM people u'),
	('SELECT id FROM posts p WHERE NOT HAS((SELECT id FROM people WHERE name = ''p1''), p.id)'),
	('SELECT id FROM posts p WHERE NOT HAS((SELECT id FROM people WHERE name = ''nobody''), p.id)'),
	('SELECT id FROM posts p WHERE NOT HAS((SELECT p2.author FROM posts p2 WHERE p2.id = p.id), p.id)'),
	('SELECT HAS(1, (SELECT max(id) FROM posts WHERE topic = t)) FROM generate_series(0, 6) t'),
	('SELECT id FROM posts p WHERE HAS(1, p.id) IS DISTINCT FROM HAS(2, p.id)'),
	('SELECT HAS(3, id), count(*) FROM posts GROUP BY HAS(3, id)'),
	('SELECT NOT HAS(3, id), count(*) FROM posts GROUP BY HAS(3, id)'),
	('SELECT topic FROM posts GROUP BY topic HAVING HAS(1, max(id))'),
	('SELECT author, HAS(author, max(id)), HAS(max(author), min(id)) FROM posts GROUP BY author'),
	('SELECT topic, count(*) FILTER (WHERE HAS(1, id)), bool_or(HAS(4, id)), array_agg(HAS(author, id) ORDER BY id) FROM posts GROUP BY topic'),
	('SELECT topic, author, grouping(topic), HAS(coalesce(author, 1), count(id)) FROM posts GROUP BY GROUPING SETS ((topic), (author), ())'),
	('SELECT id, count(*) FILTER (WHERE HAS(1, id)) OVER (PARTITION BY topic) FROM posts'),
	('SELECT id, HAS(1, n) FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM posts) p'),
	('SELECT id, sum(1) OVER (PARTITION BY HAS(1, id) ORDER BY HAS(author, id), id) FROM posts'),
	('SELECT DISTINCT HAS(author, id), author FROM posts'),
	('SELECT id FROM posts ORDER BY HAS(1, id), HAS(2, id) DESC, id'),
	('SELECT DISTINCT ON (HAS(1, id), topic) id FROM posts ORDER BY HAS(1, id), topic, id'),
	('SELECT CASE WHEN HAS(1, id) THEN ''one'' WHEN HAS(author, id) THEN ''own'' ELSE coalesce(prev::text, ''none'') END FROM posts'),
	('SELECT CASE HAS(1, id) WHEN HAS(2, id) THEN 1 ELSE 2 END FROM posts'),
	('SELECT id FROM posts WHERE topic = 1 AND NOT HAS(1, id) UNION ALL SELECT id FROM posts WHERE topic = 2 AND NOT HAS(2, id)'),
	('SELECT id FROM posts WHERE NOT HAS(1, id) EXCEPT SELECT id FROM posts WHERE HAS(2, id)'),
	('SELECT * FROM (SELECT id, HAS(1, id) AS h FROM posts WHERE topic = 1 UNION ALL SELECT id, HAS(author, id) FROM posts WHERE topic = 2) x WHERE h'),
	('WITH feed AS (SELECT id, author FROM posts p WHERE NOT HAS(1, p.id)) SELECT * FROM feed f WHERE HAS(f.author, f.id)'),
	('WITH feed AS MATERIALIZED (SELECT id, HAS(author, id) AS h FROM posts) SELECT id FROM feed WHERE h AND NOT HAS(2, id)'),
	('WITH RECURSIVE r (id) AS (SELECT 400::bigint UNION ALL SELECT p.prev FROM r JOIN posts p ON p.id = r.id AND NOT HAS(4, p.id - 100)) SELECT * FROM r'),
	('SELECT x, HAS(1, x), HAS(x, 7) FROM unnest(ARRAY[1, 2, 3, 4, NULL]) x'),
	('SELECT x FROM generate_series(1, 10) x WHERE HAS(1, x) = ANY (ARRAY[HAS(2, x), HAS(3, x)])'),
	('SELECT (HAS(1, id), id) IN (SELECT HAS(2, q.id), q.id FROM posts q) FROM posts'),
	('SELECT id FROM posts p WHERE (id, topic) IN (SELECT q.id, q.topic FROM posts q WHERE NOT HAS(q.author, q.id))'),
	('SELECT id FROM posts p WHERE id NOT IN (SELECT q.id FROM posts q WHERE HAS(3, q.id))'),
	('SELECT * FROM (VALUES (1, HAS(1, 1)), (2, HAS(1, 2)), (3, HAS(NULL, 1))) v'),
	('SELECT id FROM posts WHERE NOT HAS(1, id) ORDER BY id OFFSET CASE WHEN HAS(1, 1) THEN 3 ELSE 5 END LIMIT 4'),
	('SELECT id, HAS(1, x) FROM posts, LATERAL unnest(ARRAY[id, prev]) x'),
	('SELECT id, HAS(1, x) FROM posts, LATERAL (SELECT id + 1 OFFSET 0) l (x)'),
	('SELECT u.id, h FROM people u, LATERAL (SELECT HAS(u.id, 7) AS h) l'),
	('SELECT u.id, f.h FROM people u LEFT JOIN (SELECT id, HAS(id, 7) AS h FROM people WHERE id < 4) f USING (id)'),
	('SELECT f.* FROM people u LEFT JOIN (SELECT p.id, p.author, HAS(1, p.id) AS h FROM posts p) f ON f.author = u.id AND f.h'),
	('SELECT id FROM posts p TABLESAMPLE SYSTEM (100) WHERE HAS(abs(-3), p.id) OR HAS(length(''four''), p.id)'),
	('SELECT unnest(ARRAY[HAS(1, id), HAS(2, id)]), id FROM posts'),
	('SELECT HAS(1, HAS(3, id)::int) FROM posts'),
	('SELECT count(*) FROM posts p WHERE HAS(1, p.id) AND HAS(2, p.id) AND NOT HAS(3, p.id) AND NOT HAS(4, p.id) AND NOT HAS(5, p.id)'),
	('SELECT id FROM posts p WHERE HAS(p.author, p.id) AND p.id < 300'),
	('SELECT p.id FROM posts p JOIN hidden s ON HAS(s.user_id, p.id) AND s.post_id = p.id'),
	('SELECT current_setting(''my.key'', true), count(*) FROM posts p WHERE NOT HAS(current_setting(''my.key'', true)::int, p.id)');

-- The shape with EXISTS, or with the function.
CREATE FUNCTION with_exists(shape text, source text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	at int; depth int; i int; c text; args text[]; arg text;
BEGIN
	LOOP
		-- the last call has no other call behind it, but perhaps around it
		at := length(shape) - position(reverse('HAS(') IN reverse(shape)) - 2;
		EXIT WHEN position('HAS(' IN shape) = 0;
		depth := 1; i := at + 4; args := '{}'; arg := '';
		LOOP
			c := substr(shape, i, 1);
			depth := depth + CASE c WHEN '(' THEN 1 WHEN '[' THEN 1 WHEN ')' THEN -1 WHEN ']' THEN -1 ELSE 0 END;
			EXIT WHEN depth = 0;
			IF depth = 1 AND c = ',' THEN args := args || arg; arg := ''; ELSE arg := arg || c; END IF;
			i := i + 1;
		END LOOP;
		args := args || arg;
		shape := substr(shape, 1, at - 1) ||
			format('(SELECT EXISTS (SELECT FROM %I source WHERE source.user_id = a.key AND source.post_id = a.element) FROM (SELECT (%s)::bigint, (%s)::bigint) a (key, element))', source, args[1], args[2]) ||
			substr(shape, i + 1);
	END LOOP;
	RETURN shape;
END $$;
CREATE FUNCTION answers(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	result text[];
BEGIN
	EXECUTE format('SELECT array_agg(q::text ORDER BY q::text) FROM (%s) q', query) INTO result;
	RETURN result;
END $$;
CREATE VIEW different AS
	SELECT source, shape FROM shapes, unnest('{hidden,shared,split}'::text[]) source
	WHERE answers(replace(shape, 'HAS(', source || '_has(')) IS DISTINCT FROM answers(with_exists(shape, source))
	ORDER BY id, source;
SET my.key = 1;

SELECT count(*) FROM shapes WHERE cardinality(answers(with_exists(shape, 'hidden'))) > 0;
TABLE different;
SET plan_cache_mode = force_generic_plan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
TABLE different;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET plan_cache_mode;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
-- without the shapes that would start workers for each row
SELECT * FROM different WHERE shape NOT LIKE '%p2.author%' AND shape NOT LIKE '%HAS(3, id)::int%';
RESET ALL;
SET my.key = 1;

-- The same while a transaction changes the pairs
CREATE FUNCTION change(command text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format(command, 'hidden');
	EXECUTE format(command, 'shared');
	EXECUTE format(command, 'split');
END $$;
BEGIN;
SELECT change('DELETE FROM %I WHERE user_id = 6 AND post_id > 10');
TABLE different;
SELECT change('INSERT INTO %I SELECT 7, i FROM generate_series(50, 150) i');
SELECT change('UPDATE %I SET user_id = 5 WHERE user_id = 4');
TABLE different;
SAVEPOINT s;
SELECT change('TRUNCATE %I');
TABLE different;
ROLLBACK TO s;
TABLE different;
COMMIT;
TABLE different;

-- No planner, or none with a query: PL/pgSQL, constraints, defaults, policies, procedures
DO $$
DECLARE
	wrong int := 0;
	element bigint;
BEGIN
	FOR element IN 1 .. 20 LOOP
		IF hidden_has(1, element) <> (element % 2 = 1) THEN wrong := wrong + 1; END IF;
		wrong := wrong + (CASE WHEN shared_has(1, element) = (element % 2 = 1) THEN 0 ELSE 1 END);
	END LOOP;
	RAISE NOTICE '% wrong', wrong;
END $$;
CREATE TABLE checked (user_id int DEFAULT 1, id bigint CHECK (NOT hidden_has(1, id)), h bool DEFAULT hidden_has(1, 3));
INSERT INTO checked VALUES (1, 2);
INSERT INTO checked VALUES (1, 3);
INSERT INTO checked SELECT 1, i FROM generate_series(2, 20, 2) i;
SELECT DISTINCT h FROM checked;
COPY checked (user_id, id) FROM stdin WHERE NOT hidden_has(user_id, id);
1	22
1	23
\.
SELECT count(*) FROM checked;
CREATE DOMAIN visible AS bigint CHECK (NOT hidden_has(1, VALUE));
SELECT 2::visible;
SELECT 3::visible;
CREATE PROCEDURE note(h bool) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'h is %', h; END $$;
CALL note(hidden_has(1, 5));
CALL note(hidden_has(5, 5));
-- volatile arguments are evaluated once
CREATE SEQUENCE calls;
SELECT count(*) FILTER (WHERE hidden_has(1, nextval('calls'))) FROM generate_series(1, 10);
SELECT last_value FROM calls;
SELECT hidden_has(1, unnest(ARRAY[1, 2, 3]));
-- a window function cannot move into a sub-select
SELECT hidden_has(1, row_number() OVER (ORDER BY id)) FROM posts WHERE id < 5;
-- such a function cannot be indexed or generated
\set VERBOSITY sqlstate
CREATE INDEX ON posts (hidden_has(1, id));
\set VERBOSITY terse

-- Changing rows
BEGIN;
UPDATE posts SET topic = -1 WHERE NOT hidden_has(1, id) AND topic = 1;
SELECT count(*) FROM posts WHERE topic = -1;
DELETE FROM posts p USING people u WHERE u.id = p.author AND hidden_has(u.id, p.id);
SELECT count(*) FROM posts;
INSERT INTO people VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET name = hidden_has(people.id, 1)::text WHERE hidden_has(1, 1) RETURNING name, hidden_has(id, 2);
UPDATE posts SET prev = CASE WHEN hidden_has(author, id) THEN 1 END WHERE id IN (3, 9) RETURNING id, hidden_has(1, prev), prev;
ROLLBACK;

-- In views and functions, which are inlined or not
CREATE VIEW feed AS SELECT * FROM posts p WHERE NOT hidden_has(1, p.id);
CREATE FUNCTION feed_of(reader int) RETURNS SETOF posts LANGUAGE sql STABLE AS 'SELECT * FROM posts p WHERE NOT hidden_has(reader, p.id)';
CREATE FUNCTION feed_of_plpgsql(reader int) RETURNS SETOF posts LANGUAGE plpgsql STABLE AS 'BEGIN RETURN QUERY SELECT * FROM posts p WHERE NOT hidden_has(reader, p.id); END';
SELECT (SELECT count(*) FROM feed), (SELECT count(*) FROM feed_of(1)), (SELECT count(*) FROM feed_of_plpgsql(1)),
	(SELECT count(*) FROM posts WHERE id % 2 = 0) AS expected;
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM posts WHERE topic > 1;
SELECT count(*) FROM guarded WHERE NOT hidden_has(1, id);

-- Filters cannot go while others need them
SELECT fav_detach('hidden');
DROP VIEW feed;
DROP FUNCTION feed_of, feed_of_plpgsql;
DROP DOMAIN visible;
DROP TABLE checked;

-- Prepared statements, generic and custom, across everything that can change
PREPARE page(int) AS SELECT count(*) FROM posts p WHERE NOT hidden_has($1, p.id);
SET plan_cache_mode = force_generic_plan;
EXECUTE page(1);
EXECUTE page(3);
EXECUTE page(NULL);
DELETE FROM hidden WHERE user_id = 3 AND post_id = 7;
EXECUTE page(3);
ALTER TABLE hidden RENAME COLUMN user_id TO reader;
ALTER TABLE hidden RENAME COLUMN post_id TO "the post";
ALTER TABLE hidden RENAME TO hidden2;
ALTER TABLE hidden_fav_levels RENAME TO levels2;
EXECUTE page(3);
SELECT fav_rebuild('hidden2');
EXECUTE page(3);
ALTER FUNCTION hidden_has RENAME TO has2;
SELECT has2(3, 7), has2(3, 8);
SELECT source, filter, levels, has, exact, complete, active FROM fav_attachments WHERE source = 'hidden2'::regclass;
ALTER FUNCTION has2 RENAME TO hidden_has;
ALTER TABLE hidden2 RENAME TO hidden;
ALTER TABLE hidden RENAME COLUMN reader TO user_id;
ALTER TABLE hidden RENAME COLUMN "the post" TO post_id;
SELECT fav_detach('hidden');
EXECUTE page(3);
SELECT fav_attach('hidden', 'user_id', 'post_id');
EXECUTE page(3);
RESET plan_cache_mode;

-- Without the look-up the filter answers alone.  It reports no less.
SELECT fav_detach('hidden');
SELECT fav_attach('hidden', 'user_id', 'post_id', error_rate => 0.3);
CREATE VIEW reported AS SELECT count(*) FILTER (WHERE e) AS present, count(*) FILTER (WHERE e AND NOT h) AS missed, count(*) FILTER (WHERE h AND NOT e) > 100 AS more
	FROM (SELECT hidden_has(2, i) AS h, EXISTS (SELECT FROM hidden WHERE user_id = 2 AND post_id = i) AS e FROM generate_series(1, 10000) i) q;
TABLE reported;
SELECT fav_attach('hidden', 'user_id', 'post_id', error_rate => 0.3, exact => false);
SELECT exact FROM fav_attachments WHERE source = 'hidden'::regclass;
TABLE reported;
SELECT hidden_has(NULL, 1), hidden_has(1, NULL), hidden_has(77, 1), hidden_has(2, 1);
SELECT u, hidden_has(u, 1) FROM unnest(ARRAY[1, 5, 77, NULL]) u;
SELECT fav_attach('hidden', 'user_id', 'post_id', error_rate => 0.2, exact => true);
SELECT fav_attach('hidden', 'user_id', 'post_id', error_rate => 0.3, exact => true);
TABLE reported;

-- Filters that are not complete
SELECT fav_detach('shared');
SELECT fav_attach('shared', 'user_id', 'post_id', build => false);
SELECT shared_has(1, 1);
SELECT count(*) FROM posts p WHERE NOT shared_has(1, p.id);
CALL fav_build('shared');
SELECT shared_has(1, 1), shared_has(1, 2);

-- Names that are taken
SELECT fav_detach('shared');
CREATE FUNCTION shared_has(int) RETURNS bool LANGUAGE sql RETURN true;
SELECT fav_attach('shared', 'user_id', 'post_id');
CREATE TABLE other_fav ();
SELECT fav_attach('shared', 'user_id', 'post_id', name => 'other');
SELECT fav_attach('shared', 'user_id', 'post_id', name => 'mine');
SELECT mine_has(1, 1), mine_has(1, 2);
SELECT fav_detach('shared', 'mine');
SELECT proname FROM pg_proc WHERE proname LIKE '%\_has' AND pronamespace = 'public'::regnamespace ORDER BY 1;

-- Columns of other types, and arguments of other types
CREATE TABLE t1 (k varchar(10), e uuid);
CREATE TABLE t2 (k uuid, e varchar);
CREATE TABLE t3 (k smallint, e smallint);
CREATE TABLE t4 (k date, e bytea);
CREATE DOMAIN short AS text CHECK (length(VALUE) < 5);
CREATE TABLE t5 (k short, e short);
CREATE TABLE t6 (k int[], e int);
CREATE TABLE t7 (k char(5), e text);
SELECT fav_attach(t, 'k', 'e') FROM unnest('{t1,t2,t3,t4,t5,t6,t7}'::regclass[]) t;
INSERT INTO t1 VALUES ('ann', '00000000-0000-0000-0000-000000000001');
INSERT INTO t2 VALUES ('00000000-0000-0000-0000-000000000001', 'ann');
INSERT INTO t3 VALUES (1, 2);
INSERT INTO t4 VALUES ('2020-02-02', '\x00');
INSERT INTO t5 VALUES ('ann', 'bob');
INSERT INTO t6 VALUES ('{1,2}', 3);
INSERT INTO t7 VALUES ('ann', 'bob');
SELECT t1_has('ann', '00000000-0000-0000-0000-000000000001'), t1_has('ann'::varchar(2), '00000000-0000-0000-0000-000000000001'),
	t2_has('00000000-0000-0000-0000-000000000001', 'ann'), t3_has(1, 2), t3_has(1::bigint << 40, 2), t3_has(1, 1::bigint << 40),
	t4_has('2020-02-02', '\x00'), t4_has('2020-02-03', '\x00'), t5_has('ann', 'bob'), t5_has('much too long', 'bob'),
	t6_has('{1,2}', 3), t6_has('{1}', 3), t7_has('ann  ', 'bob'), t7_has('ann', 'bob ');
PREPARE untyped AS SELECT t1_has($1, $2), t3_has($3, $4), t5_has($5, $6);
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'untyped';

-- Who calls fav_has by hand gets what the function gives, or an error.
SELECT fav_has('hidden_fav_levels', ROW(1::bigint, 1::bigint), true, true);
SELECT fav_has('hidden_fav_levels', ROW(1, 1::bigint), true, true);
SELECT fav_has('hidden_fav_levels', ROW(1::bigint), true, true);
SELECT fav_has('hidden', ROW(1::bigint, 1::bigint), true, true);
SELECT fav_has(NULL, ROW(1::bigint, 1::bigint), true, true);
SELECT fav_has(0, ROW(1::bigint, 1::bigint), true, true);

-- Nothing is left for other tests
DROP VIEW reported, different, guarded;
DO $$
DECLARE
	attached regclass;
BEGIN
	FOR attached IN SELECT source FROM fav_attachments LOOP
		PERFORM fav_detach(attached);
	END LOOP;
END $$;
DROP TABLE people, posts, hidden, shared, split, shapes, other_fav, t1, t2, t3, t4, t5, t6, t7;
DROP DOMAIN short;
DROP SEQUENCE calls;
DROP FUNCTION with_exists, answers, change, shared_has(int);
DROP PROCEDURE note;
DEALLOCATE ALL;
