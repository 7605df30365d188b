--
-- Filters that maintain themselves: under endless churn they stay small and right
--
CREATE TABLE pairs (k int, e bigint, PRIMARY KEY (k, e));
SELECT fav_attach('pairs', 'k', 'e');

-- a filter that grows row by row stays about the right size
DO $$ BEGIN FOR i IN 1 .. 1500 LOOP INSERT INTO pairs VALUES (1, i); END LOOP; END $$;
SELECT (s).slices <= 2 AS few, (s).bytes < 2 * (SELECT pg_column_size(fav_agg(e)) FROM pairs WHERE k = 1) AS small
FROM (SELECT fav_stats(filter) AS s FROM pairs_fav WHERE k = 1) x;
SELECT missing, false_positive_rate <= 0.01 AS good FROM fav_verify('pairs');
-- and shrinks again
DELETE FROM pairs WHERE e % 20 > 0;
SELECT missing, false_positive_rate <= 0.01 AS good FROM fav_verify('pairs');
SELECT (fav_stats(filter)).bytes < 5000 AS small FROM pairs_fav WHERE k = 1;
DELETE FROM pairs;

-- 20 turnovers of 10,000 pairs
INSERT INTO pairs SELECT 1, i FROM generate_series(1, 10000) i;
CREATE TABLE turnovers (turnover int, ratio float8, missing bigint, false_positive_rate float8, wants boolean);
CREATE PROCEDURE turn_over(turnover int) LANGUAGE plpgsql AS $$
BEGIN
	FOR part IN 0 .. 9 LOOP
		DELETE FROM pairs WHERE k = 1 AND e > (turnover - 1) * 10000 + part * 1000 AND e <= (turnover - 1) * 10000 + part * 1000 + 1000;
		INSERT INTO pairs SELECT 1, turnover * 10000 + part * 1000 + i FROM generate_series(1, 1000) i;
		COMMIT;
	END LOOP;
	INSERT INTO turnovers SELECT turnover, pg_column_size(filter)::float8 / (SELECT pg_column_size(fav_agg(e)) FROM pairs WHERE k = 1),
		v.missing, v.false_positive_rate, fav_needs_rebuild(filter) FROM pairs_fav, fav_verify('pairs') v;
END $$;
DO $$ BEGIN FOR i IN 1 .. 20 LOOP CALL turn_over(i); END LOOP; END $$;
SELECT count(*), max(ratio) <= 2 AS small, max(missing) AS missing, max(false_positive_rate) <= 0.01 AS good, bool_or(wants) AS wants FROM turnovers;
-- after all that, what was deleted long ago is not there, but for false positives
SELECT count(*) < 2000 AS good FROM generate_series(1, 190000) e WHERE (SELECT filter FROM pairs_fav) @> e;

-- row by row
TRUNCATE turnovers;
DO $$
BEGIN
	FOR i IN 200001 .. 200500 LOOP
		DELETE FROM pairs WHERE k = 1 AND e = i;
		INSERT INTO pairs VALUES (1, i + 20000);
	END LOOP;
END $$;
SELECT pg_column_size(filter) <= 2 * (SELECT pg_column_size(fav_agg(e)) FROM pairs WHERE k = 1) AS small,
	v.missing, v.false_positive_rate <= 0.01 AS good FROM pairs_fav, fav_verify('pairs') v;

DROP TABLE pairs, pairs_fav, turnovers CASCADE;
DROP PROCEDURE turn_over;
