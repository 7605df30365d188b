-- Tables of pairs: without filters, with filters by a trigger written by hand, with attached filters.

CREATE FUNCTION by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		UPDATE hand_filters SET hidden = fav_add(hidden, NEW.post_id) WHERE user_id = NEW.user_id;
	ELSE
		UPDATE hand_filters SET hidden = fav_del(hidden, OLD.post_id) WHERE user_id = OLD.user_id;
	END IF;
	RETURN NULL;
END $$;
CREATE TABLE hand_filters(user_id bigint PRIMARY KEY, hidden fav);

-- Fresh tables with a number of users and a number of pairs per user.
CREATE PROCEDURE make_pairs(users int, pairs int) LANGUAGE plpgsql AS $$
DECLARE
	t text;
BEGIN
	SET LOCAL client_min_messages = error;
	DROP TABLE IF EXISTS pairs_none, pairs_hand, pairs_attached, pairs_attached_fav_levels CASCADE;
	FOREACH t IN ARRAY ARRAY['pairs_none', 'pairs_hand', 'pairs_attached'] LOOP
		EXECUTE format('CREATE TABLE %I (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id))', t);
		EXECUTE format('INSERT INTO %I SELECT u, n FROM generate_series(1, %s) u, generate_series(1, %s) n', t, users, pairs);
	END LOOP;
	TRUNCATE hand_filters;
	INSERT INTO hand_filters SELECT user_id, fav_agg(post_id) FROM pairs_hand GROUP BY user_id;
	CREATE TRIGGER by_hand AFTER INSERT OR DELETE ON pairs_hand FOR EACH ROW EXECUTE FUNCTION by_hand();
	PERFORM fav_attach('pairs_attached', 'user_id', 'post_id');
	PERFORM setval('turn', 1000000);
END $$;

-- Single rows, each in a transaction of its own.  The loop is in the server: otherwise most of the
-- time would be messages between client and server, which vary more than the contenders do.
CREATE PROCEDURE single_rows(t text, contender text, kind text, users int, pairs int, n int) LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz := clock_timestamp();
	before pg_lsn := pg_current_wal_insert_lsn();
	at bigint := nextval('turn');
BEGIN
	PERFORM setval('turn', at + n);
	FOR i IN 1 .. n LOOP
		IF kind = 'INSERT' THEN
			EXECUTE format('INSERT INTO %I VALUES ($1, $2)', t) USING 1 + i % users, at + i;
		ELSE
			-- the rows of the latest INSERT
			EXECUTE format('DELETE FROM %I WHERE user_id = $1 AND post_id = $2', t) USING 1 + i % users,
				(SELECT value FROM latest WHERE latest.t = single_rows.t) + i;
		END IF;
		COMMIT;
	END LOOP;
	INSERT INTO latest VALUES (t, at) ON CONFLICT ON CONSTRAINT latest_pkey DO UPDATE SET value = excluded.value;
	INSERT INTO results(section, ids, size, contender, value) VALUES
		('attached, single rows', kind, pairs, contender, n / extract(epoch FROM clock_timestamp() - started)),
		('attached, WAL', kind, pairs, contender, (pg_current_wal_insert_lsn() - before) / n);
END $$;
CREATE TABLE latest(t text PRIMARY KEY, value bigint);

-- 100,000 new pairs of all users, by INSERT ... SELECT and by COPY.  Each is measured on fresh
-- tables, without traces of earlier rounds: 1,000 users with 100 pairs each.
CREATE PROCEDURE bulk_begin(contender text) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL client_min_messages = error;
	DROP TABLE IF EXISTS bulk, bulk_fav_levels CASCADE;
	CREATE TABLE bulk(user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
	INSERT INTO bulk SELECT u, n FROM generate_series(1, 1000) u, generate_series(1, 100) n;
	IF contender = 'trigger by hand' THEN
		TRUNCATE hand_filters;
		INSERT INTO hand_filters SELECT user_id, fav_agg(post_id) FROM bulk GROUP BY user_id;
		CREATE TRIGGER by_hand AFTER INSERT OR DELETE ON bulk FOR EACH ROW EXECUTE FUNCTION by_hand();
	ELSIF contender = 'fav_attach' THEN
		PERFORM fav_attach('bulk', 'user_id', 'post_id');
	END IF;
END $$;

CREATE PROCEDURE bulk_measure(contender text, kind text, statement text) LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz := clock_timestamp();
BEGIN
	EXECUTE statement;
	COMMIT;
	INSERT INTO results(section, ids, size, contender, value) VALUES ('attached, bulk', kind, 0,
		contender, extract(epoch FROM clock_timestamp() - started) * 1000);
END $$;

-- The hidden sets of the feed section, attached and then changed, so that all levels are in use;
-- and a plain column with the same elements.
CREATE TABLE feed_pairs(user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
INSERT INTO feed_pairs SELECT user_id, post_id FROM hidden_random;
SELECT count(fav_attach('feed_pairs', 'user_id', 'post_id')) \g /dev/null
SELECT count(fav_attach('feed_pairs', 'user_id', 'post_id', name => 'feed_filter', exact => false)) \g /dev/null
INSERT INTO feed_pairs SELECT DISTINCT user_id, -n FROM hidden_random, generate_series(1, 20) n WHERE user_id > 100;
INSERT INTO feed_pairs SELECT DISTINCT user_id, -n FROM hidden_random, generate_series(21, 150) n WHERE user_id > 100;
INSERT INTO feed_pairs SELECT DISTINCT user_id, -n FROM hidden_random, generate_series(151, 210) n WHERE user_id > 100;
CREATE TABLE feed_column(user_id bigint PRIMARY KEY, filter fav);
INSERT INTO feed_column SELECT user_id, fav_agg(post_id) FROM feed_pairs GROUP BY user_id;
INSERT INTO results(section, ids, size, contender, value)
	SELECT 'attached, bits', '', user_id, 'base', 8 * pg_column_size(base) / fav_count(base)::float8
	FROM feed_pairs_fav_levels WHERE base <> '\x01';
VACUUM ANALYZE;
