-- Aggregates combined from partial states of all sizes: the same bytes as in one go
CREATE TABLE piece(batch int, n bigint) PARTITION BY RANGE (batch);
SELECT format('CREATE TABLE piece_%s PARTITION OF piece FOR VALUES FROM (%s) TO (%s)', i, i, i + 1)
FROM generate_series(0, 22) i \gexec
INSERT INTO piece SELECT 1, i FROM generate_series(1, 200000) i;
INSERT INTO piece SELECT 2, i FROM generate_series(100001, 300000) i;	-- half of it is new
INSERT INTO piece SELECT 3, i FROM generate_series(1, 200000) i;	-- nothing is
INSERT INTO piece VALUES (4, NULL);
INSERT INTO piece SELECT 5, i FROM generate_series(299990, 300010) i;	-- few
INSERT INTO piece SELECT 6 + i % 17, i FROM generate_series(280000, 320000) i;	-- some, many times
ANALYZE piece;
SET max_parallel_workers_per_gather = 0;

CREATE FUNCTION is_partial(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json, COSTS off) ' || query INTO plan;
	RETURN plan::text LIKE '%"Partial Mode": "Partial"%';
END
$$;
CREATE VIEW results AS SELECT
	(SELECT fav_agg(n)::bytea FROM piece) AS everything,
	(SELECT fav_agg(n)::bytea FROM piece WHERE batch <= 3) AS large,
	(SELECT fav_agg(n)::bytea FROM piece WHERE batch IN (0, 1, 4, 5)) AS many_and_few,
	(SELECT fav_agg(n)::bytea FROM piece WHERE batch >= 5) AS small,
	(SELECT fav_agg(n)::bytea FROM piece WHERE batch IN (4, 5) OR n = 7) AS tiny,
	(SELECT fav_agg(n)::bytea FROM piece WHERE batch IN (0, 4)) AS none,
	(SELECT fav_agg(n) IS NULL FROM piece WHERE batch = 0) AS no_rows,
	(SELECT fav_agg(n::text, 0.001, 400000)::bytea FROM piece) AS texts,
	(SELECT fav_union_agg(fav_add(NULL, n))::bytea FROM piece WHERE batch <= 3) AS united;

SET enable_partitionwise_aggregate = on;
SELECT is_partial('SELECT fav_agg(n) FROM piece');
CREATE TABLE combined AS SELECT * FROM results;
SET enable_partitionwise_aggregate = off;
SELECT is_partial('SELECT fav_agg(n) FROM piece');
SELECT c.everything = r.everything AS everything, c.large = r.large AS large, c.many_and_few = r.many_and_few AS many_and_few,
	c.small = r.small AS small, c.tiny = r.tiny AS tiny, c.none = r.none AS none, c.no_rows AND r.no_rows AS no_rows,
	c.texts = r.texts AS texts, c.united = r.united AS united
FROM combined c, results r;
SELECT fav_count(everything::fav), fav_count(many_and_few::fav), fav_count(small::fav), fav_count(tiny::fav), fav_count(none::fav)
FROM combined;
SELECT count(*) AS lost FROM (SELECT everything::fav AS f FROM combined OFFSET 0) c, generate_series(1, 320000) n WHERE NOT f @> n;

-- many rows with far fewer elements
SELECT (SELECT fav_agg(n % 150000)::bytea FROM piece, generate_series(1, 2)) =
	(SELECT fav_agg(n ORDER BY n DESC)::bytea FROM generate_series(0, 149999) n) AS same;

DROP VIEW results;
DROP TABLE piece, combined;
DROP FUNCTION is_partial;
