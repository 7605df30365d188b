-- For the section "cache": the last n ids that somebody saw, as a fav_cache of that capacity, as a
-- fav, and as an array, newest first.

CREATE TABLE cache_cache AS
	SELECT n AS id, fav_cache_agg(scattered(i), n ORDER BY i) AS v
	FROM unnest('{100,1000,10000,100000}'::int[]) n, generate_series(1::bigint, n) i GROUP BY n;
CREATE TABLE cache_fav AS
	SELECT n AS id, fav_agg(scattered(i)) AS v
	FROM unnest('{100,1000,10000,100000}'::int[]) n, generate_series(1::bigint, n) i GROUP BY n;
CREATE TABLE cache_array AS
	SELECT n AS id, array_agg(scattered(i) ORDER BY i DESC) AS v
	FROM unnest('{100,1000,10000,100000}'::int[]) n, generate_series(1::bigint, n) i GROUP BY n;
ALTER TABLE cache_cache ADD PRIMARY KEY (id);
ALTER TABLE cache_fav ADD PRIMARY KEY (id);
ALTER TABLE cache_array ADD PRIMARY KEY (id);
VACUUM (ANALYZE, FREEZE) cache_cache, cache_fav, cache_array;
CHECKPOINT;
