-- Many users with few pairs: filters per user, and filters that n users share.

-- Fresh tables with a million pairs (fewer in a quick run), a number of them per user.
CREATE PROCEDURE make_shared(total int, pairs int, n int) LANGUAGE plpgsql AS $$
DECLARE
	t text;
BEGIN
	SET LOCAL client_min_messages = error;
	DROP TABLE IF EXISTS shared_none, shared_each, shared_n, shared_each_fav_levels, shared_n_fav_levels, group_by CASCADE;
	FOREACH t IN ARRAY ARRAY['shared_none', 'shared_each', 'shared_n'] LOOP
		EXECUTE format('CREATE TABLE %I (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id))', t);
		EXECUTE format('INSERT INTO %I SELECT u, scattered((u - 1) * %s + i) FROM generate_series(1, %s) u, generate_series(1, %2$s) i', t, pairs, total / pairs);
	END LOOP;
END $$;

-- The build: one statement without fav_attach, fav_attach, and fav_build.
CREATE PROCEDURE measure_build(pairs int, n int) LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz;
	contender text;
BEGIN
	SET client_min_messages = error;
	FOREACH contender IN ARRAY ARRAY['INSERT ... GROUP BY', 'fav_attach', 'fav_build'] LOOP
		DROP TABLE IF EXISTS group_by;
		CREATE TABLE group_by (key bigint PRIMARY KEY, filter fav) WITH (fillfactor = 80);
		COMMIT;
		started := clock_timestamp();
		IF contender = 'INSERT ... GROUP BY' AND n = 0 THEN
			INSERT INTO group_by SELECT user_id, fav_agg(post_id) FROM shared_none GROUP BY 1;
		ELSIF contender = 'INSERT ... GROUP BY' THEN
			INSERT INTO group_by SELECT fav_group(user_id, n), fav_agg(user_id, post_id) FROM shared_none GROUP BY 1;
		ELSE
			PERFORM fav_attach('shared_none', 'user_id', 'post_id', share => nullif(n, 0), name => 'built', build => contender = 'fav_attach');
		END IF;
		COMMIT;
		IF contender = 'fav_build' THEN
			CALL fav_build('shared_none', 'built');
		END IF;
		INSERT INTO results(section, ids, size, contender, value) VALUES
			('shared, build', CASE n WHEN 0 THEN 'each' ELSE 'shared' END, pairs, contender, extract(epoch FROM clock_timestamp() - started) * 1000);
		IF contender <> 'INSERT ... GROUP BY' THEN
			PERFORM fav_detach('shared_none', 'built');
		END IF;
		COMMIT;
	END LOOP;
	RESET client_min_messages;
END $$;

-- Their sizes, and then filters for pages and for single rows.
CREATE PROCEDURE attach_shared(pairs int, n int) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM fav_attach('shared_each', 'user_id', 'post_id'), fav_attach('shared_n', 'user_id', 'post_id', share => n);
	INSERT INTO results(section, ids, size, contender, value)
	SELECT 'shared, bytes', '', pairs, contender, pg_total_relation_size(t) / (SELECT count(*) FROM shared_none)::float8
	FROM (VALUES ('table', 'shared_none'::regclass), ('a filter each', 'shared_each_fav_levels'), ('shared', 'shared_n_fav_levels')) v (contender, t);
END $$;

-- Single rows of random users, each in a transaction of its own.
CREATE PROCEDURE shared_rows(t text, contender text, kind text, users int, pairs int, n int) LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz := clock_timestamp();
	before pg_lsn := pg_current_wal_insert_lsn();
BEGIN
	FOR i IN 1 .. n LOOP
		IF kind = 'INSERT' THEN
			EXECUTE format('INSERT INTO %I VALUES ($1, $2)', t) USING 1 + i * 7919::bigint % users, -i;
		ELSE
			EXECUTE format('DELETE FROM %I WHERE user_id = $1 AND post_id = $2', t) USING 1 + i * 7919::bigint % users, -i;
		END IF;
		COMMIT;
	END LOOP;
	INSERT INTO results(section, ids, size, contender, value) VALUES
		('shared, single rows', kind, pairs, contender, n / extract(epoch FROM clock_timestamp() - started)),
		('shared, WAL', kind, pairs, contender, (pg_current_wal_insert_lsn() - before) / n);
END $$;
