-- What users have seen: rows, a column of type fav, an array, and sinks with and without keep.

CREATE PROCEDURE make_sinks(users int, n int) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL client_min_messages = error;
	DROP TABLE IF EXISTS seen_rows, seen_sink, seen_keep, seen_column, seen_array, seen_rows_fav_levels, seen_sink_fav_levels, seen_keep_fav_levels CASCADE;
	CREATE TABLE seen_rows(user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
	CREATE TABLE seen_sink(LIKE seen_rows INCLUDING ALL);
	CREATE TABLE seen_keep(LIKE seen_rows INCLUDING ALL);
	CREATE TABLE seen_column(user_id bigint PRIMARY KEY, seen fav);
	CREATE TABLE seen_array(user_id bigint PRIMARY KEY, seen bigint[]);
	PERFORM fav_sink('seen_sink', 'user_id', 'post_id'), fav_sink('seen_keep', 'user_id', 'post_id', keep => '30 days');
	INSERT INTO seen_rows SELECT u, hashint8extended(p, u) FROM generate_series(1, users) u, generate_series(1, n) p;
	INSERT INTO seen_column SELECT user_id, fav_agg(post_id) FROM seen_rows GROUP BY user_id;
	INSERT INTO seen_array SELECT user_id, array_agg(post_id) FROM seen_rows GROUP BY user_id;

	-- page by page, as users do
	FOR u IN 1 .. users LOOP
		FOR page IN 0 .. n / 50 - 1 LOOP
			INSERT INTO seen_sink SELECT u, hashint8extended(p, u) FROM generate_series(page * 50 + 1, page * 50 + 50) p;
			INSERT INTO seen_keep SELECT u, hashint8extended(p, u) FROM generate_series(page * 50 + 1, page * 50 + 50) p;
		END LOOP;
	END LOOP;
END $$;

-- Page views that record 50 seen posts, each a transaction of its own, all contenders in turn.  A
-- page view of a sink now and then writes much at once, so means are what counts, not medians.
CREATE PROCEDURE page_views(users int, n int, views int) LANGUAGE plpgsql AS $$
DECLARE
	contenders text[] := '{rows,sink,"sink, keep",fav_add,array}';
	statements text[] := ARRAY['INSERT INTO seen_rows SELECT $1, unnest($2)', 'INSERT INTO seen_sink SELECT $1, unnest($2)',
		'INSERT INTO seen_keep SELECT $1, unnest($2)', 'UPDATE seen_column SET seen = fav_add(seen, $2) WHERE user_id = $1',
		'UPDATE seen_array SET seen = seen || $2 WHERE user_id = $1'];
	done int[] := '{0,0,0,0,0}';
	spent float8[] := '{0,0,0,0,0}';
	written float8[] := '{0,0,0,0,0}';
	before pg_lsn;
	started timestamptz;
	ids bigint[];
BEGIN
	FOR i IN 0 .. views - 1 LOOP
		ids := ARRAY(SELECT hashint8extended(p, 1 + i % users) FROM generate_series(n + i * 50 + 1, n + i * 50 + 50) p);
		FOR c IN 1 .. 5 LOOP
			-- the last two write everything anew each time, so fewer of them will do
			CONTINUE WHEN c > 3 AND i % 10 > 0;
			before := pg_current_wal_insert_lsn();
			started := clock_timestamp();
			EXECUTE statements[c] USING (1 + i % users)::bigint, ids;
			COMMIT;
			spent[c] := spent[c] + extract(epoch FROM clock_timestamp() - started);
			written[c] := written[c] + (pg_current_wal_insert_lsn() - before);
			done[c] := done[c] + 1;
		END LOOP;
	END LOOP;
	FOR c IN 1 .. 5 LOOP
		INSERT INTO results(section, ids, size, contender, value) VALUES
			('sink, page view', '', n, contenders[c], spent[c] * 1000 / done[c]),
			('sink, WAL', '', n, contenders[c], written[c] / done[c]);
	END LOOP;
END $$;

-- What all of it takes, compacted.
CREATE PROCEDURE sink_bytes(n int) LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO results(section, ids, size, contender, value)
	SELECT 'sink, bytes', '', n, contender, pg_total_relation_size(t) / elements::float8
	FROM (VALUES ('rows', 'seen_rows'::regclass, (SELECT count(*) FROM seen_rows)),
		('sink', 'seen_sink_fav_levels', (SELECT sum(fav_count(filter)) FROM seen_sink_fav)),
		('sink, keep', 'seen_keep_fav_levels', (SELECT sum(fav_count(filter)) FROM seen_keep_fav)),
		('fav_add', 'seen_column', (SELECT sum(fav_count(seen)) FROM seen_column)),
		('array', 'seen_array', (SELECT sum(cardinality(seen)) FROM seen_array))) v (contender, t, elements);
END $$;

-- Pages of 500 candidates, of which none was seen: all contenders in turn, again and again.
CREATE PROCEDURE sink_pages(users int, n int, topics int, pages int) LANGUAGE plpgsql AS $$
DECLARE
	contender record;
	answer bigint;
	started timestamptz;
BEGIN
	CREATE TEMP TABLE IF NOT EXISTS page_times(contender text, seconds float8);
	TRUNCATE page_times;
	FOR i IN 1 .. pages LOOP
		FOR contender IN
			SELECT name, format('SELECT count(*) FROM posts_random p WHERE topic = $1 AND NOT %s_has($2, p.id)', source) AS query
			FROM (VALUES ('attached', 'seen_rows'), ('sink', 'seen_sink'), ('sink, keep', 'seen_keep')) v (name, source)
		LOOP
			started := clock_timestamp();
			EXECUTE contender.query INTO answer USING i % topics, (1 + i % users)::bigint;
			INSERT INTO page_times VALUES (contender.name, extract(epoch FROM clock_timestamp() - started));
		END LOOP;
	END LOOP;
	INSERT INTO results(section, ids, size, contender, value)
	SELECT 'sink, page of 500', '', n, t.contender, 1 / percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM page_times t GROUP BY t.contender;
END $$;
