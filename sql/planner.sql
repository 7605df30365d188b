-- What the planner assumes of a feed query: nearly no row is in the filter
CREATE TABLE posts AS SELECT i AS id, i * 10 AS author FROM generate_series(1, 10000) i;
CREATE TABLE users AS SELECT i AS id, fav_agg(i) AS hidden FROM generate_series(1, 10) i GROUP BY i;
ANALYZE posts, users;
CREATE FUNCTION rows_expected(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END
$$;
SET max_parallel_workers_per_gather = 0;
-- unknown filter: it contains one element in a hundred
SELECT rows_expected('SELECT * FROM posts WHERE NOT fav_contains((SELECT hidden FROM users WHERE id = 1), id)');
SELECT rows_expected('SELECT * FROM posts WHERE NOT (SELECT hidden FROM users WHERE id = 1) @> id');
SELECT rows_expected('SELECT * FROM posts WHERE NOT id <@ (SELECT hidden FROM users WHERE id = 1)');
SELECT rows_expected('SELECT * FROM posts WHERE NOT fav_contains((SELECT hidden FROM users WHERE id = 1), 1, id)');
-- levels, whether they are known or not
SELECT rows_expected('SELECT p.* FROM posts p, users u WHERE u.id = 1 AND fav_probe(hidden, hidden, hidden, p.id)');
SELECT rows_expected('SELECT p.* FROM posts p, users u WHERE u.id = 1 AND NOT fav_probe(hidden, hidden, hidden, 1, p.id)');
SELECT rows_expected('SELECT p.* FROM posts p, users u WHERE u.id = 1 AND NOT fav_probe_at(hidden, hidden, hidden, 1, p.id)');
SELECT rows_expected('SELECT * FROM posts WHERE fav_probe(fav_new(), fav_new(), fav_new(), id) IS NOT TRUE');
SELECT rows_expected('SELECT * FROM posts WHERE NOT fav_probe(NULL, NULL, (SELECT hidden FROM users WHERE id = 1), id)');
SELECT rows_expected('SELECT p.* FROM posts p, users u WHERE u.id = 1 AND NOT fav_contains(fav_stack(hidden, hidden, hidden), p.id)');
-- known filter, known column
SELECT rows_expected('SELECT * FROM posts WHERE fav_contains(fav_add(NULL, ARRAY[1, 2, 3]), id)');
SELECT rows_expected('SELECT * FROM posts WHERE fav_add(NULL, ARRAY[1, 2, 3]) @> author');
SELECT rows_expected('SELECT * FROM posts WHERE NOT fav_add(NULL, ARRAY[1, 2, 3]) @> id');
SELECT rows_expected('SELECT * FROM posts WHERE NOT fav_contains(fav_new(), id)');
SELECT rows_expected('SELECT * FROM posts WHERE NOT fav_contains(NULL::fav, id)');
-- bounded sets
SELECT rows_expected('SELECT * FROM posts WHERE fav_contains(fav_add(fav_cache_new(10), ARRAY[1, 2, 3]), id)');
SELECT rows_expected('SELECT * FROM posts WHERE NOT id <@ fav_add(fav_cache_new(10), ARRAY[1, 2, 3])');
SELECT rows_expected('SELECT * FROM posts WHERE NOT fav_contains(NULL::fav_cache, id)');
-- arrays
SELECT rows_expected('SELECT * FROM posts WHERE fav_contains_any((SELECT hidden FROM users WHERE id = 1), ARRAY[id, author])');
SELECT rows_expected('SELECT * FROM posts WHERE fav_contains_all((SELECT hidden FROM users WHERE id = 1), ARRAY[id, author])');
-- joins
SELECT rows_expected('SELECT * FROM posts p JOIN users u ON fav_contains(u.hidden, p.id)');
SELECT rows_expected('SELECT * FROM posts p JOIN users u ON u.hidden @> p.id');
-- a filter that changes from row to row costs more
CREATE FUNCTION cost_expected(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Total Cost';
END
$$;
SELECT cost_expected('SELECT * FROM users WHERE fav_contains(hidden, 1)') >
	cost_expected('SELECT * FROM users WHERE fav_contains(fav_new(), id)') AS dearer,
	cost_expected('SELECT * FROM users WHERE 1 <@ hidden') >
	cost_expected('SELECT * FROM users WHERE id <@ fav_new()') AS dearer;
DROP FUNCTION rows_expected, cost_expected;
DROP TABLE posts, users;
