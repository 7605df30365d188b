-- Three tables of pairs, 1,000 users with 100 pairs each.

CREATE TABLE hand_filters(user_id bigint PRIMARY KEY, hidden fav);
INSERT INTO hand_filters SELECT u, fav_new() FROM generate_series(1, 1000) u;

CREATE TABLE pairs_none(user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
CREATE TABLE pairs_hand(LIKE pairs_none INCLUDING ALL);
CREATE TABLE pairs_attached(LIKE pairs_none INCLUDING ALL);

-- As people write it.
CREATE FUNCTION by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		UPDATE hand_filters SET hidden = fav_add(hidden, NEW.post_id) WHERE user_id = NEW.user_id;
	ELSE
		UPDATE hand_filters SET hidden = fav_del(hidden, OLD.post_id) WHERE user_id = OLD.user_id;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER by_hand AFTER INSERT OR DELETE ON pairs_hand FOR EACH ROW EXECUTE FUNCTION by_hand();

SELECT count(fav_attach('pairs_attached', 'user_id', 'post_id')) \g /dev/null

INSERT INTO pairs_none SELECT u, n FROM generate_series(1, 1000) u, generate_series(1, 100) n;
INSERT INTO pairs_hand SELECT * FROM pairs_none;
INSERT INTO pairs_attached SELECT * FROM pairs_none;
SELECT setval('turn', 1000000) \g /dev/null
VACUUM ANALYZE;

-- Single rows, each a transaction of its own.  The loop is in the server: otherwise most of the time
-- would go into the messages between client and server, which vary more than the contenders do.
SELECT format('CREATE PROCEDURE %3$s_%1$s(contender text, n int) LANGUAGE plpgsql AS $$
		DECLARE
			started timestamptz := clock_timestamp();
		BEGIN
			FOR i IN 1 .. n LOOP
				%2$s;
				COMMIT;
			END LOOP;
			INSERT INTO results(section, ids, size, contender, value) VALUES (''attached, single rows'', ''%3$s'', 0,
				contender, n / extract(epoch FROM clock_timestamp() - started));
		END $$', t, format(statement, t), kind)
FROM unnest(ARRAY['pairs_none', 'pairs_hand', 'pairs_attached']) t, (VALUES
	('INSERT', 'INSERT INTO %1$s VALUES (1 + i %% 1000, nextval(''turn''))'),
	('DELETE', 'DELETE FROM %1$s WHERE (user_id, post_id) = (SELECT user_id, post_id FROM %1$s WHERE user_id = 1 + i %% 1000 LIMIT 1)')
) v (kind, statement) \gexec

-- 100,000 new pairs over all users, by INSERT ... SELECT and by COPY.  Each is measured on tables
-- made for it, so that nobody works on what earlier rounds have left behind: as above, 1,000 users
-- with 100 pairs each.
CREATE PROCEDURE bulk_begin(contender text) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL client_min_messages = warning;
	DROP TABLE IF EXISTS bulk, bulk_fav;
	CREATE TABLE bulk(LIKE pairs_none INCLUDING ALL);
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
