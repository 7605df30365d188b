-- What the cases work on, in a database per driver.

CREATE EXTENSION fav;

-- A filter of each kind.
CREATE TABLE filters (kind text PRIMARY KEY, f fav);
INSERT INTO filters VALUES
	('bigint', fav_add(NULL, ARRAY[42, -1, 9007199254740993, 9223372036854775807])),
	('text', fav_add(NULL, ARRAY['42', 'a', 'héllo', ''])),
	('uuid', fav_add(NULL, ARRAY['6ba7b810-9dad-11d1-80b4-00c04fd430c8',
		'ffffffff-ffff-ffff-ffff-ffffffffffff']::uuid[])),
	('bytea', fav_add(NULL, ARRAY['\x00ff', '\xc3a9']::bytea[])),
	('pair', fav_add(NULL, 7, 42)),
	('empty', fav_new()),
	('null', NULL);

-- 10,000 elements, which are in slices and out of line.
CREATE TABLE many (f fav);
INSERT INTO many SELECT fav_agg(i) FROM generate_series(1, 10000) i;

-- Columns without a first element yet, and one that takes numbers only.
CREATE TABLE hidden (number fav, list fav, posts fav CHECK ((fav_stats(posts)).kind = 'bigint'));
INSERT INTO hidden DEFAULT VALUES;

-- For the examples of docs/CLIENTS.md.
CREATE TABLE users (id bigint PRIMARY KEY, hidden fav);
INSERT INTO users VALUES (9);

-- Filters that keep themselves true: of numbers, uuids and text, shared ones, and a sink.
CREATE TABLE hidden_posts (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
CREATE TABLE blocked (user_id uuid, author uuid, PRIMARY KEY (user_id, author));
CREATE TABLE muted (user_id int, word text, PRIMARY KEY (user_id, word));
CREATE TABLE liked (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
CREATE TABLE seen (user_id bigint, post_id bigint);
SELECT fav_attach('hidden_posts', 'user_id', 'post_id'), fav_attach('blocked', 'user_id', 'author'),
	fav_attach('muted', 'user_id', 'word'), fav_attach('liked', 'user_id', 'post_id', share => 100),
	fav_sink('seen', 'user_id', 'post_id');
CREATE TABLE posts (id bigint PRIMARY KEY, reader bigint);
INSERT INTO posts VALUES (41, 7), (42, 7), (43, 7);
