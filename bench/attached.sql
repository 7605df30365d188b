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

-- 100,000 new pairs over all users, by INSERT ... SELECT and by COPY, taken out again after.
CREATE PROCEDURE bulk(pairs text, contender text, dir text) LANGUAGE plpgsql AS $$
DECLARE
	first bigint := nextval('turn');
	started timestamptz;
BEGIN
	PERFORM setval('turn', first + 200000);
	started := clock_timestamp();
	EXECUTE format('INSERT INTO %I SELECT 1 + n %% 1000, %s + n FROM generate_series(1, 100000) n', pairs, first);
	COMMIT;
	INSERT INTO results(section, ids, size, contender, value) VALUES ('attached, bulk', 'INSERT ... SELECT', 0,
		contender, extract(epoch FROM clock_timestamp() - started) * 1000);

	EXECUTE format('COPY (SELECT 1 + n %% 1000, %s + 100000 + n FROM generate_series(1, 100000) n) TO %L',
		first, dir || '/pairs');
	started := clock_timestamp();
	EXECUTE format('COPY %I FROM %L', pairs, dir || '/pairs');
	COMMIT;
	INSERT INTO results(section, ids, size, contender, value) VALUES ('attached, bulk', 'COPY', 0,
		contender, extract(epoch FROM clock_timestamp() - started) * 1000);
END $$;
