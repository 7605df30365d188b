-- A page of 500 candidates through <name>_has and its alternatives: processor time of the backend.

-- Processor time of this backend in microseconds.
CREATE FUNCTION processor_time() RETURNS float8 LANGUAGE sql AS $$
	SELECT (a[14]::float8 + a[15]::float8) * 10000
	FROM string_to_array(pg_read_file('/proc/' || pg_backend_pid() || '/stat'), ' ') a $$;

-- User size * 1000 + percent has `size` pairs, of which percent of the candidates 1 .. 500 are some.
CREATE TABLE has_posts(id bigint PRIMARY KEY, topic int, body text);
INSERT INTO has_posts SELECT i, i % 10, repeat('x', 100) FROM generate_series(1, 100000) i;
CREATE TABLE has_sizes AS SELECT size, percent FROM unnest(ARRAY[10, 100, 1000, 10000, 100000, 1000000]) size, unnest('{0,2,50,100}'::int[]) percent
	WHERE percent * 5 <= size AND (percent IN (0, 2) OR size IN (1000, 10000));
CREATE TABLE has_pairs(user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
INSERT INTO has_pairs SELECT size * 1000 + percent, i * 100 / percent FROM has_sizes, generate_series(1, percent * 5) i WHERE percent > 0;
INSERT INTO has_pairs SELECT size * 1000 + percent, 1000000 + (hashint8extended(i, size) & ((1::bigint << 40) - 1))
	FROM has_sizes, generate_series(1, size - percent * 5) i ON CONFLICT DO NOTHING;
-- many others
INSERT INTO has_pairs SELECT u, hashint8extended(i, u) & ((1::bigint << 40) - 1) FROM generate_series(1, 5000) u, generate_series(1, 20) i ON CONFLICT DO NOTHING;
CREATE TABLE has_column AS SELECT user_id, fav_agg(post_id) AS hidden FROM has_pairs GROUP BY user_id;
ALTER TABLE has_column ADD PRIMARY KEY (user_id);
SELECT count(*) > 0 AS roaring FROM pg_extension WHERE extname = 'roaringbitmap' \gset
\if :roaring
ALTER TABLE has_column ADD COLUMN rb roaringbitmap64;
UPDATE has_column c SET rb = (SELECT rb64_build_agg(post_id) FROM has_pairs p WHERE p.user_id = c.user_id) WHERE user_id > 5000;
\endif
VACUUM ANALYZE has_posts, has_pairs, has_column;
SELECT fav_attach('has_pairs', 'user_id', 'post_id');
SELECT fav_attach('has_pairs', 'user_id', 'post_id', name => 'has_filter', exact => false);
VACUUM ANALYZE has_pairs_fav_levels, has_filter_fav_levels;

CREATE TABLE has_contenders(n serial, contender text, condition text, options text);
INSERT INTO has_contenders(contender, condition, options) VALUES
	('no filter', 'true', ''),
	('_has', 'NOT has_pairs_has(k, p.id)', ''),
	('_has, exact => false', 'NOT has_filter_has(k, p.id)', ''),
	('fav in a plain column', 'NOT coalesce((SELECT hidden FROM has_column WHERE user_id = k) @> p.id, false)', ''),
	('NOT EXISTS', 'NOT EXISTS (SELECT FROM has_pairs h WHERE h.user_id = k AND h.post_id = p.id)', ''),
	('NOT EXISTS, nested loop', 'NOT EXISTS (SELECT FROM has_pairs h WHERE h.user_id = k AND h.post_id = p.id)', 'enable_hashjoin,enable_mergejoin'),
	('NOT EXISTS, look-ups', 'NOT EXISTS (SELECT FROM has_pairs h WHERE h.user_id = k AND h.post_id = p.id OFFSET 0)', '');
\if :roaring
INSERT INTO has_contenders(contender, condition, options) VALUES
	('roaring', 'NOT (SELECT rb FROM has_column WHERE user_id = k) @> p.id', '');
\endif

-- One round of one contender: microseconds per page, and per EXPLAIN of the page, unprepared.
CREATE PROCEDURE has_round(contender text, of_condition text, options text, size bigint, percent int) LANGUAGE plpgsql AS $$
DECLARE
	page text := 'SELECT count(body) FROM has_posts p WHERE id BETWEEN 1 AND 500 AND ' || of_condition;
	loops int;
	before float8;
	spent float8 := 0;
	option text;
BEGIN
	SET LOCAL jit = off;
	FOREACH option IN ARRAY string_to_array(options, ',') LOOP
		PERFORM set_config(option, 'off', true);
	END LOOP;
	EXECUTE format('CREATE OR REPLACE FUNCTION pages(k bigint, loops int) RETURNS void LANGUAGE plpgsql AS $f$
		DECLARE c bigint; BEGIN FOR i IN 1 .. loops LOOP %s; END LOOP; END $f$', replace(page, 'FROM has_posts', 'INTO c FROM has_posts'));
	PERFORM pages(size * 1000 + percent, 20);
	loops := 100;
	WHILE spent < 200000 LOOP
		loops := loops * 2;
		before := processor_time();
		PERFORM pages(size * 1000 + percent, loops);
		spent := processor_time() - before;
	END LOOP;
	INSERT INTO results(section, ids, size, contender, value) VALUES ('has', percent || ' %', size, contender, spent / loops);
	IF size = 1000 AND percent = 2 THEN
		page := replace(page, '= k', '= ' || size * 1000 + percent);
		page := replace(page, '(k,', '(' || size * 1000 + percent || ',');
		FOR i IN 1 .. 50 LOOP EXECUTE 'EXPLAIN ' || page; END LOOP;
		before := processor_time();
		FOR i IN 1 .. 2000 LOOP EXECUTE 'EXPLAIN ' || page; END LOOP;
		INSERT INTO results(section, ids, size, contender, value) VALUES ('has, planning', '', 1000, contender, (processor_time() - before) / 2000);
	END IF;
END $$;
