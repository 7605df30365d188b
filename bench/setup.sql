-- Tables of results, and data.
-- Variables: posts (rows of the posts tables), sizes (hidden sets), users (of the join).

CREATE EXTENSION fav;
CREATE EXTENSION hstore;
SELECT count(*) > 0 AS roaring FROM pg_available_extensions WHERE name = 'roaringbitmap' \gset
\if :roaring
CREATE EXTENSION roaringbitmap;
\endif

CREATE FUNCTION cheapest(fav, bigint) RETURNS boolean
	AS '$libdir/fav_cheapest', 'fav_cheapest' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 2;

-- One row per measurement; NULL if it did not end within the time limit.
CREATE TABLE results(
	n serial, section text, ids text, size bigint, contender text, value float8
);

-- One measurement: milliseconds of the whole query.  EXPLAIN first, so that a new session
-- has filled its catalog caches.
CREATE PROCEDURE measure(section text, ids text, size bigint, contender text, query text)
LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz;
	answer text;
BEGIN
	EXECUTE 'EXPLAIN ' || query;
	started := clock_timestamp();
	EXECUTE query INTO answer;
	INSERT INTO results(section, ids, size, contender, value) VALUES (section, ids, size, contender,
		extract(epoch FROM clock_timestamp() - started) * 1000);
END $$;

-- The id for a number from 1 to 2 * posts: the number itself, or scattered over 64 bits (a bijection).
CREATE FUNCTION scattered(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$SELECT hashint8extended(n, 42)$$;

-- 500 posts per topic.  Every second id of 1 .. 2 * posts exists.  Hidden ids are chosen from all
-- of them, so half of a hidden set exists.
CREATE TABLE posts_dense AS
	SELECT 2 * n AS id, (n % (:posts / 500))::int AS topic, n AS created
	FROM generate_series(1, :posts) n;
CREATE TABLE posts_random AS SELECT scattered(id) AS id, topic, created FROM posts_dense;

CREATE TABLE hidden_dense(user_id bigint, post_id bigint);
INSERT INTO hidden_dense
	SELECT size, x FROM unnest(:'sizes'::bigint[]) size,
	LATERAL (SELECT x FROM generate_series(1, 2 * :posts) x
			 ORDER BY hashint8extended(x, size) LIMIT size) picked;
CREATE TABLE hidden_random AS SELECT user_id, scattered(post_id) AS post_id FROM hidden_dense;

-- The user whose hidden set has n elements is user n.
CREATE TABLE users_dense(
	id bigint PRIMARY KEY, fav fav, fav_grown fav, arr bigint[], hs hstore, jb jsonb
);
CREATE TABLE users_random (LIKE users_dense INCLUDING ALL);
\if :roaring
ALTER TABLE users_dense ADD rb roaringbitmap;
ALTER TABLE users_random ADD rb roaringbitmap64;
\endif

-- fav is built at once, fav_grown element by element from the default capacity.
INSERT INTO users_dense(id, fav, fav_grown, arr, hs, jb)
	SELECT user_id, fav_agg(post_id), fav_add(fav_new(), array_agg(post_id)), array_agg(post_id),
		hstore(array_agg(post_id::text), array_fill(''::text, ARRAY[count(*)::int])),
		jsonb_object_agg(post_id, 0)
	FROM hidden_dense GROUP BY user_id;
INSERT INTO users_random(id, fav, fav_grown, arr, hs, jb)
	SELECT user_id, fav_agg(post_id), fav_add(fav_new(), array_agg(post_id)), array_agg(post_id),
		hstore(array_agg(post_id::text), array_fill(''::text, ARRAY[count(*)::int])),
		jsonb_object_agg(post_id, 0)
	FROM hidden_random GROUP BY user_id;
\if :roaring
UPDATE users_dense u SET rb = b FROM
	(SELECT user_id, rb_build_agg(post_id::int) b FROM hidden_dense GROUP BY 1) x WHERE id = user_id;
UPDATE users_random u SET rb = b FROM
	(SELECT user_id, rb64_build_agg(post_id) b FROM hidden_random GROUP BY 1) x WHERE id = user_id;
\endif

ALTER TABLE hidden_dense ADD PRIMARY KEY (user_id, post_id);
ALTER TABLE hidden_random ADD PRIMARY KEY (user_id, post_id);
CREATE INDEX ON posts_dense(topic, created, id);
CREATE INDEX ON posts_random(topic, created, id);

-- Many users with a small filter each, and 100 candidates per user.
CREATE TABLE members AS
	SELECT u AS id, fav_agg(x) AS fav
	FROM generate_series(1, :users) u, LATERAL (SELECT (u * 31 + n * 977) % 100000 AS x FROM generate_series(1, 50) n) h
	GROUP BY u;
CREATE TABLE candidates_by_user AS
	SELECT u AS user_id, (u * 17 + n * 7919) % 100000 AS post_id
	FROM generate_series(1, :users) u, generate_series(1, :posts / :users) n;
CREATE TABLE candidates_mixed AS SELECT * FROM candidates_by_user ORDER BY hashint8(user_id * 1000 + post_id);

CREATE INDEX ON candidates_by_user(user_id, post_id);

-- Filters by size, for single probes.  A probe reads the same blocks of a full or an empty slice,
-- so these have a large capacity and 200 elements.
CREATE TABLE probes AS
	SELECT capacity AS id, fav_add(fav_new(capacity), ARRAY(SELECT generate_series(1, 200)::bigint)) AS fav
	FROM unnest(:'capacities'::bigint[]) capacity;
ALTER TABLE probes ADD PRIMARY KEY (id);

-- For adds and deletes: a table for each contender, and the elements to delete.
CREATE SEQUENCE turn;
CREATE TABLE victims AS
	SELECT user_id AS size, row_number() OVER (PARTITION BY user_id) AS n, post_id FROM hidden_random;
ALTER TABLE victims ADD PRIMARY KEY (size, n);
CREATE TABLE edit_fav AS SELECT id, fav AS v FROM users_random;
CREATE TABLE edit_array AS SELECT id, arr AS v FROM users_random;
CREATE TABLE edit_hstore AS SELECT id, hs AS v FROM users_random;
CREATE TABLE edit_jsonb AS SELECT id, jb AS v FROM users_random;
CREATE TABLE edit_pairs AS SELECT * FROM hidden_random;
ALTER TABLE edit_fav ADD PRIMARY KEY (id);
ALTER TABLE edit_array ADD PRIMARY KEY (id);
ALTER TABLE edit_hstore ADD PRIMARY KEY (id);
ALTER TABLE edit_jsonb ADD PRIMARY KEY (id);
ALTER TABLE edit_pairs ADD PRIMARY KEY (user_id, post_id);
\if :roaring
CREATE TABLE edit_roaring AS SELECT id, rb AS v FROM users_random;
ALTER TABLE edit_roaring ADD PRIMARY KEY (id);
\endif

VACUUM (ANALYZE, FREEZE);
CHECKPOINT;
