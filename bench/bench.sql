-- What bench/run measures with, and the data of its sections.

CREATE EXTENSION fav;
SELECT count(*) > 0 AS roaring FROM pg_available_extensions WHERE name = 'roaringbitmap' \gset
\if :roaring
CREATE EXTENSION roaringbitmap;
\endif

CREATE TABLE results(n serial, section text, variant text, size bigint, contender text, value float8);

-- Is the median of each figure of a section known to some two per cent?
CREATE FUNCTION is_stable(of_section text) RETURNS boolean LANGUAGE sql AS $$
	SELECT coalesce(bool_and((q[3] - q[1]) <= 0.03 * sqrt(n) * q[2]), true) FROM
		(SELECT count(value) AS n, percentile_cont('{0.25,0.5,0.75}'::float8[]) WITHIN GROUP (ORDER BY value) AS q
		 FROM results WHERE section ^@ of_section GROUP BY section, variant, size, contender) cells $$;

-- Processor time of this backend in microseconds.  It is accounted for when the process sleeps.
CREATE FUNCTION processor_time() RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(0.0001);
	RETURN split_part(pg_read_file('/proc/' || pg_backend_pid() || '/schedstat'), ' ', 1)::float8 / 1000;
END $$;

-- Processor time per execution of a query, as the plan cache plans it for a parameter k; loops for
-- `enough` microseconds, after six executions that end with the generic plan, if it is chosen.
CREATE PROCEDURE measure(section text, variant text, size bigint, contender text, query text, k bigint, enough int) LANGUAGE plpgsql AS $$
DECLARE
	loops int := 1;
	before float8;
	spent float8;
BEGIN
	EXECUTE format('CREATE FUNCTION pg_temp.looped(k bigint, loops int) RETURNS void LANGUAGE plpgsql AS $f$
		DECLARE answer text; BEGIN FOR i IN 1 .. loops LOOP %s; END LOOP; END $f$',
		query || ' INTO answer');
	before := processor_time();
	PERFORM pg_temp.looped(k, 1);
	spent := processor_time() - before;
	IF spent < 500000 THEN
		PERFORM pg_temp.looped(k, 6);
		before := processor_time();
		PERFORM pg_temp.looped(k, 2);
		loops := 1 + enough / greatest((processor_time() - before) / 2, 1);
		before := processor_time();
		PERFORM pg_temp.looped(k, loops);
		spent := processor_time() - before;
	END IF;
	INSERT INTO results(section, variant, size, contender, value) VALUES (section, variant, size, contender, spent / loops);
END $$;

-- Processor time of a long query with k as a constant, the second time.
CREATE PROCEDURE measure_long(section text, variant text, size bigint, contender text, query text, k bigint, enough int) LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	before float8;
BEGIN
	query := regexp_replace(query, '\mk\M', k::text, 'g');
	EXECUTE query INTO answer;
	before := processor_time();
	EXECUTE query INTO answer;
	INSERT INTO results(section, variant, size, contender, value) VALUES (section, variant, size, contender, processor_time() - before);
END $$;

-- Processor time of planning alone: EXPLAIN of the statement, unprepared, with k as a constant.
CREATE PROCEDURE measure_planning(section text, variant text, size bigint, contender text, query text, k bigint, enough int) LANGUAGE plpgsql AS $$
DECLARE
	before float8;
	loops int := enough / 50;
BEGIN
	query := 'EXPLAIN ' || regexp_replace(query, '\mk\M', k::text, 'g');
	FOR i IN 1 .. 10 LOOP EXECUTE query; END LOOP;
	before := processor_time();
	FOR i IN 1 .. loops LOOP EXECUTE query; END LOOP;
	INSERT INTO results(section, variant, size, contender, value) VALUES (section, variant, size, contender, (processor_time() - before) / loops);
END $$;

-- A random id for the number n: a bijection.
CREATE FUNCTION scattered(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$SELECT hashint8extended(n, 42)$$;

-- Posts 1 .. posts, 500 of each topic; pairs of users with sets of each size.  User 1000 * size +
-- percent has so many per cent of the posts of topic 1, and others, half of which exist.
CREATE PROCEDURE load_page(posts int, sizes bigint[]) LANGUAGE plpgsql AS $$
DECLARE
	topics int := posts / 500;
	ids text;
BEGIN
	CREATE TABLE sets AS SELECT s AS size, percent, s * 1000 + percent AS k, greatest(posts / s, 1) AS step FROM unnest(sizes) s, unnest('{0,2,50,100}'::int[]) percent
		WHERE percent * 5 <= s AND (percent = 2 OR s IN (1000, 10000));
	CREATE TABLE numbered AS
		SELECT k, 1 + topics * (i * 100 / percent) AS n FROM sets, generate_series(0, percent * 5 - 1) i WHERE percent > 0
		UNION ALL
		SELECT k, n FROM sets, LATERAL (SELECT 2 * i * step + (hashint8extended(i, size) & 2147483647) % (2 * step) AS n FROM generate_series(0, size - percent * 5 - 1) i) x WHERE n % topics <> 1
		UNION ALL
		SELECT u, 1 + 2 * (hashint8extended(i, u) & 65535) FROM generate_series(1, 5000) u, generate_series(1, 20) i;
	FOREACH ids IN ARRAY '{random,dense}'::text[] LOOP
		EXECUTE format($f$
			CREATE TABLE posts_%1$s AS SELECT %2$s AS id, (n %% %3$s)::int AS topic, repeat('x', 100) AS body FROM generate_series(1::bigint, %4$s) n ORDER BY topic, id;
			CREATE INDEX ON posts_%1$s(topic, id);
			CREATE TABLE pairs_%1$s AS SELECT DISTINCT k AS user_id, %2$s AS post_id FROM numbered;
			ALTER TABLE pairs_%1$s ADD PRIMARY KEY (user_id, post_id);
			CREATE TABLE values_%1$s AS SELECT user_id, fav_agg(post_id) AS filter, array_agg(post_id) AS ids FROM pairs_%1$s GROUP BY user_id;
			ALTER TABLE values_%1$s ADD PRIMARY KEY (user_id);
			$f$, ids, CASE ids WHEN 'random' THEN 'scattered(n)' ELSE 'n' END, topics, posts);
	END LOOP;
	DROP TABLE numbered;
END $$;

-- Tables of pairs for writes: without filters, with filters by a trigger, and attached.
CREATE TABLE hand_filters(user_id bigint PRIMARY KEY, hidden fav);
CREATE FUNCTION by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		UPDATE hand_filters SET hidden = fav_add(hidden, NEW.post_id) WHERE user_id = NEW.user_id;
	ELSE
		UPDATE hand_filters SET hidden = fav_del(hidden, OLD.post_id) WHERE user_id = OLD.user_id;
	END IF;
	RETURN NULL;
END $$;

CREATE PROCEDURE load_writes(users int, pairs int, share int DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
	t text;
BEGIN
	SET LOCAL client_min_messages = error;
	DROP TABLE IF EXISTS plain, by_trigger, attached, attached_fav_levels, shared, shared_fav_levels CASCADE;
	FOREACH t IN ARRAY '{plain,by_trigger,attached,shared}'::text[] LOOP
		CONTINUE WHEN t = CASE WHEN share IS NULL THEN 'shared' ELSE 'by_trigger' END;
		EXECUTE format('CREATE TABLE %I (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id))', t);
		EXECUTE format('INSERT INTO %I SELECT u, scattered(n * 10000000 + u) FROM generate_series(1, %s) u, generate_series(1::bigint, %s) n', t, users, pairs);
	END LOOP;
	PERFORM fav_attach('attached', 'user_id', 'post_id');
	IF share IS NULL THEN
		TRUNCATE hand_filters;
		INSERT INTO hand_filters SELECT user_id, fav_agg(post_id) FROM by_trigger GROUP BY user_id;
		CREATE TRIGGER by_hand AFTER INSERT OR DELETE ON by_trigger FOR EACH ROW EXECUTE FUNCTION by_hand();
	ELSE
		PERFORM fav_attach('shared', 'user_id', 'post_id', share => load_writes.share);
	END IF;
END $$;

-- Transactions of one statement each, with i as the number of the turn: rows per second, bytes of
-- WAL.  The loop is in the server: messages would take more time than the contenders do.
CREATE PROCEDURE transactions(section text, variant text, size bigint, contender text, statement text, n int, rows int DEFAULT 1) LANGUAGE plpgsql AS $$
DECLARE
	wal pg_lsn := pg_current_wal_insert_lsn();
	before float8 := processor_time();
	spent float8;
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE statement USING i::bigint;
		COMMIT;
	END LOOP;
	spent := processor_time() - before;
	INSERT INTO results(section, variant, size, contender, value) VALUES
		(section || ', rows per second', variant, size, contender, n * rows / spent * 1e6),
		(section || ', WAL', variant, size, contender, (pg_current_wal_insert_lsn() - wal) / (n * rows)::float8);
END $$;

-- What users have seen: rows, sinks with and without keep; loaded page by page, as users do.  A sink
-- now and then writes much at once, so users have 0.7 to 1.4 times n elements, the middle one has n.
CREATE FUNCTION pages_seen(u int, users int, n int) RETURNS int LANGUAGE sql IMMUTABLE AS $$SELECT (n / 50 * 2 ^ ((u - (users + 1) / 2.0) / users))::int$$;
CREATE PROCEDURE load_seen(users int, n int) LANGUAGE plpgsql AS $$
DECLARE
	t text;
BEGIN
	SET LOCAL client_min_messages = error;
	DROP TABLE IF EXISTS seen_rows, seen, seen_keep, seen_rows_fav_levels, seen_fav_levels, seen_keep_fav_levels, seen_saved, seen_keep_saved CASCADE;
	FOREACH t IN ARRAY '{seen_rows,seen,seen_keep}'::text[] LOOP
		EXECUTE format('CREATE TABLE %I (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id))', t);
	END LOOP;
	PERFORM fav_sink('seen', 'user_id', 'post_id'), fav_sink('seen_keep', 'user_id', 'post_id', keep => '30 days');
	INSERT INTO seen_rows SELECT u, scattered(-1000000000 - p * 1000 - u) FROM generate_series(1, users) u, generate_series(1::bigint, 50 * pages_seen(u, users, n)) p;
	FOR page IN 0 .. pages_seen(users, users, n) - 1 LOOP
		FOR u IN 1 .. users LOOP
			CONTINUE WHEN page >= pages_seen(u, users, n);
			INSERT INTO seen SELECT u, scattered(-1000000000 - p * 1000 - u) FROM generate_series(page * 50 + 1::bigint, page * 50 + 50) p;
			INSERT INTO seen_keep SELECT u, scattered(-1000000000 - p * 1000 - u) FROM generate_series(page * 50 + 1::bigint, page * 50 + 50) p;
		END LOOP;
		COMMIT;
	END LOOP;
END $$;

-- A history of n views in 64 days by users in turn, in time order and in random order.
CREATE PROCEDURE load_history(n int, users int) LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE history_ordered AS SELECT i % users AS user_id, scattered(i) AS post_id, now() - (n - i) * interval '64 days' / n AS seen_at FROM generate_series(1::bigint, n) i;
	CREATE TABLE history_random AS SELECT * FROM history_ordered ORDER BY post_id;
END $$;

CREATE PROCEDURE measure_history(contender text, variant text) LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz;
	n bigint;
BEGIN
	SET LOCAL client_min_messages = error;
	DROP TABLE IF EXISTS loaded, loaded_fav_levels CASCADE;
	CREATE TABLE loaded(user_id bigint, post_id bigint, seen_at timestamptz, PRIMARY KEY (user_id, post_id));
	IF contender = 'sink' THEN
		PERFORM fav_sink('loaded', 'user_id', 'post_id', keep => '90 days', at => 'seen_at');
	END IF;
	COMMIT;
	started := clock_timestamp();
	EXECUTE 'INSERT INTO loaded SELECT * FROM history_' || variant;
	COMMIT;
	EXECUTE 'SELECT count(*) FROM history_' || variant INTO n;
	INSERT INTO results(section, variant, size, contender, value) VALUES
		('history, rows per second', variant, n, contender, n / extract(epoch FROM clock_timestamp() - started)),
		('history, bytes', variant, n, contender, pg_total_relation_size(CASE contender WHEN 'sink' THEN 'loaded_fav_levels' ELSE 'loaded' END::regclass) / n::float8);
END $$;

-- The build of filters: one statement by hand, fav_attach, fav_build.
CREATE PROCEDURE measure_build(variant text, size bigint, share int) LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz;
	way text;
BEGIN
	SET client_min_messages = error;
	FOREACH way IN ARRAY '{"INSERT ... GROUP BY",fav_attach,fav_build}'::text[] LOOP
		DROP TABLE IF EXISTS built_by_hand;
		CREATE TABLE built_by_hand(key bigint PRIMARY KEY, filter fav) WITH (fillfactor = 80);
		COMMIT;
		started := clock_timestamp();
		IF way LIKE 'INSERT%' AND share IS NULL THEN
			INSERT INTO built_by_hand SELECT user_id, fav_agg(post_id) FROM plain GROUP BY 1;
		ELSIF way LIKE 'INSERT%' THEN
			INSERT INTO built_by_hand SELECT user_id / share, fav_agg(user_id, post_id) FROM plain GROUP BY 1;
		ELSE
			PERFORM fav_attach('plain', 'user_id', 'post_id', share => measure_build.share, name => 'built', build => way = 'fav_attach');
		END IF;
		COMMIT;
		IF way = 'fav_build' THEN
			CALL fav_build('plain', 'built');
		END IF;
		INSERT INTO results(section, variant, size, contender, value)
			SELECT 'shared, build', variant, size, way, count(*) / extract(epoch FROM clock_timestamp() - started) FROM plain;
		IF way NOT LIKE 'INSERT%' THEN
			PERFORM fav_detach('plain', 'built');
		END IF;
		COMMIT;
	END LOOP;
END $$;

-- A day in the life: sets of a dozen pairs, and of 20,000 for every 10,000th user by activity
-- (bench/client.c maps the rank in the same way).
CREATE PROCEDURE load_life(users int, posts int, topics int) LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE posts AS SELECT n AS id, (n % topics)::int AS topic, repeat('x', 100) AS body FROM generate_series(0::bigint, posts - 1) n;
	CREATE INDEX ON posts(topic, id);
	CREATE TABLE at_dawn AS SELECT DISTINCT rank * 7919 % users AS user_id, (hashint8extended(i, rank) & 2147483647) % posts AS post_id
		FROM generate_series(0::bigint, users - 1) rank, LATERAL generate_series(1, CASE rank % 10000 WHEN 100 THEN 20000 ELSE 12 END) i
		ORDER BY 1, 2;
END $$;
