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
	PERFORM setval('turn', n);
END $$;

-- Page views that record 50 seen posts, each a transaction of its own.
CREATE PROCEDURE page_views(contender text, users int, n int, views int) LANGUAGE plpgsql AS $$
DECLARE
	statement text := CASE contender
		WHEN 'fav_add' THEN 'UPDATE seen_column SET seen = fav_add(seen, $2) WHERE user_id = $1'
		WHEN 'array' THEN 'UPDATE seen_array SET seen = seen || $2 WHERE user_id = $1'
		ELSE format('INSERT INTO %I SELECT $1, unnest($2)', CASE contender WHEN 'rows' THEN 'seen_rows' WHEN 'sink' THEN 'seen_sink' ELSE 'seen_keep' END) END;
	at bigint := nextval('turn');
	started timestamptz;
	before pg_lsn;
	spent float8 := 0;
	ids bigint[];
BEGIN
	PERFORM setval('turn', at + views * 50);
	before := pg_current_wal_insert_lsn();
	FOR i IN 0 .. views - 1 LOOP
		ids := ARRAY(SELECT hashint8extended(p, 1 + i % users) FROM generate_series(at + i * 50, at + i * 50 + 49) p);
		started := clock_timestamp();
		EXECUTE statement USING (1 + i % users)::bigint, ids;
		COMMIT;
		spent := spent + extract(epoch FROM clock_timestamp() - started);
	END LOOP;
	INSERT INTO results(section, ids, size, contender, value) VALUES
		('sink, page view', '', n, contender, spent * 1000 / views),
		('sink, WAL', '', n, contender, (pg_current_wal_insert_lsn() - before) / views);
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
