-- The cache of filters that a query probes: its memory is bounded, however often the filter
-- changes, and every way to read a filter gives the same results.

-- Memory contexts and bytes that readers have now; 0 on a server that cannot tell.
CREATE FUNCTION reader_held(OUT contexts bigint, OUT bytes bigint) LANGUAGE plpgsql AS $$
BEGIN
	SELECT count(*), coalesce(sum(total_bytes), 0) INTO contexts, bytes
	FROM pg_backend_memory_contexts WHERE name = 'fav reader';
EXCEPTION WHEN undefined_table THEN
	contexts := 0;
	bytes := 0;
END $$;

-- 60 filters of 40 kB, with the elements id * 1000 + 1 .. 200
CREATE TABLE reader_filters (id int PRIMARY KEY, hidden fav);
INSERT INTO reader_filters
SELECT id, fav_add(fav_new(25000), ARRAY(SELECT id * 1000 + generate_series(1, 200)::bigint))
FROM generate_series(1, 60) id;
SELECT min(pg_column_size(hidden)) > 32768 AS out_of_line FROM reader_filters;

-- Another filter in every row, round after round.  All are kept while they fit in the memory of a
-- hash table (a server that cannot tell says 0).
SET hash_mem_multiplier = 1;
SET work_mem = '4MB';
SELECT count(*) AS asked, max((held).contexts) IN (0, 60) AS kept, max((held).bytes) < 60 * 60000 AS bounded
FROM (SELECT id, hidden, i FROM reader_filters, generate_series(1, 50) i ORDER BY i, id OFFSET 0) a,
	LATERAL (SELECT reader_held() AS held WHERE id = 60 OFFSET 0) h
WHERE fav_contains(hidden, id * 1000 + i);
RESET work_mem;
SELECT count(*) AS asked, count(*) FILTER (WHERE NOT fav_contains(hidden, id * 1000 + i)) AS missing
FROM (SELECT id, hidden, i FROM reader_filters, generate_series(1, 50) i ORDER BY i, id OFFSET 0) a;

-- Otherwise as many are kept as fit, and the latest one.  Heads are small, so there may be some of
-- them, too.
SET work_mem = '1MB';
SELECT count(*) AS asked, max((held).bytes) < 1048576 + 50000 AS bounded
FROM (SELECT id, hidden, i FROM reader_filters, generate_series(1, 50) i ORDER BY i, id OFFSET 0) a,
	LATERAL (SELECT reader_held() AS held WHERE id = 60 OFFSET 0) h
WHERE fav_contains(hidden, id * 1000 + i);
SET work_mem = '64kB';
SELECT count(*) AS asked, max((held).contexts) <= 20 AS few, max((held).bytes) < 65536 + 50000 AS bounded
FROM (SELECT id, hidden, i FROM reader_filters, generate_series(1, 50) i ORDER BY i, id OFFSET 0) a,
	LATERAL (SELECT reader_held() AS held WHERE id = 60 OFFSET 0) h
WHERE fav_contains(hidden, id * 1000 + i);
SELECT count(*) AS asked, count(*) FILTER (WHERE NOT fav_contains(hidden, id * 1000 + i)) AS missing
FROM (SELECT id, hidden, i FROM reader_filters, generate_series(1, 50) i ORDER BY i, id OFFSET 0) a;

-- If not all fit, most of those that do are found again: with a fifth more filters than fit, less
-- than half of the probes load something.  Each load is an index scan of the TOAST table.
SET work_mem = '2300kB';
CREATE FUNCTION toast_scans() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT idx_scan FROM pg_stat_xact_all_tables WHERE relid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'reader_filters'::regclass) $$;
BEGIN;
SELECT toast_scans() AS before \gset
SELECT count(*) AS asked FROM (SELECT id, hidden, i FROM reader_filters, generate_series(1, 200) i ORDER BY i, id OFFSET 0) a WHERE fav_contains(hidden, id * 1000 + i);
SELECT toast_scans() - :before < 60 * 200 / 2 AS found_again;
COMMIT;
DROP FUNCTION toast_scans;
RESET work_mem;
RESET hash_mem_multiplier;

-- Nothing is left when the query has ended
SELECT * FROM reader_held();

-- Rescans: the inner side starts again for each outer row, with another filter or the same
SELECT count(*) AS asked, sum(found) AS found
FROM (SELECT id FROM reader_filters WHERE id IN (3, 5, 7)) o, generate_series(1, 4) again,
	LATERAL (SELECT count(*) AS found FROM generate_series(1, 200) i
		WHERE fav_contains((SELECT hidden FROM reader_filters f WHERE f.id = o.id), o.id * 1000 + i)) s;

-- A row that changes between two probes of one plan
CREATE FUNCTION reader_ask(element bigint) RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN RETURN fav_contains((SELECT hidden FROM reader_filters WHERE id = 1), element); END $$;
SELECT reader_ask(-1);
UPDATE reader_filters SET hidden = fav_add(hidden, -1) WHERE id = 1;
SELECT reader_ask(-1);
UPDATE reader_filters SET hidden = fav_del(hidden, -1) WHERE id = 1;
SELECT reader_ask(-1);

-- Values in their row of the same size, one after the other in the same memory, each probed several
-- times: those of few elements, and those with a slice, which differ in their blocks
CREATE TABLE reader_rows AS
SELECT n::int, i, fav_agg(i * 1000 + e::bigint) AS hidden
FROM unnest(ARRAY[1, 2, 128, 300]) n, generate_series(1, 300) i, generate_series(1, n) e GROUP BY n, i;
SELECT n, max(pg_column_size(hidden)) < 2000 AS in_row FROM reader_rows GROUP BY n ORDER BY n;
SELECT n, sum(asked) AS asked, sum(found) AS found, sum(wrong) < 40 AS few_wrong
FROM unnest(ARRAY[1, 2, 128, 300]) n, generate_series(1, 300) o,
	LATERAL (SELECT count(*) AS asked,
			count(*) FILTER (WHERE fav_contains((SELECT hidden FROM reader_rows r WHERE r.n = a.n AND r.i = o), o * 1000 + least(e, n))) AS found,
			count(*) FILTER (WHERE fav_contains((SELECT hidden FROM reader_rows r WHERE r.n = a.n AND r.i = o), o * 1000 - e)) AS wrong
		FROM (SELECT n, e FROM generate_series(1, 4) e OFFSET 0) a) s
GROUP BY n ORDER BY n;

-- In place, cached, by blocks, and in memory: the same results
CREATE TABLE reader_ways (n int, hidden fav);
INSERT INTO reader_ways
SELECT n, fav_del(fav_add(fav_new(1000), ARRAY(SELECT generate_series(1, n)::bigint)), ARRAY(SELECT generate_series(1, n, 5)::bigint))
FROM unnest(ARRAY[0, 1, 3, 4, 5, 127, 128, 129, 5000, 50000]) n;
SELECT n, count(*) AS asked,
	count(*) FILTER (WHERE fav_contains(hidden, i) <> fav_contains(hidden::bytea::fav, i)) AS differ,
	count(*) FILTER (WHERE fav_contains(hidden, i) <> fav_contains_any(hidden, ARRAY[i])) AS differ_any,
	count(*) FILTER (WHERE fav_contains(hidden, i) <> (fav_contains_all(hidden, ARRAY[i, NULL, i]) IS NOT FALSE)) AS differ_all,
	count(*) FILTER (WHERE fav_contains(hidden, i) <> (fav_filter(hidden, ARRAY[i]) = '{}')) AS differ_filter
FROM reader_ways, generate_series(-20::bigint, 150) i GROUP BY n ORDER BY n;

-- Arrays of integers, with and without NULLs, of any shape
SELECT fav_filter(fav_add(NULL, ARRAY[2, 4]::bigint[]), a) FROM (VALUES
	('{1,2,3,4,5}'::bigint[]), ('{1,2,NULL,4,5}'), ('{{1,2},{3,4}}'), ('[5:7]={1,2,3}'), ('{2,4}'), ('{}'), ('{NULL}')) v (a);

-- A filter that is too large for the processor's caches prefetches the next id: in steps,
-- backwards, past the ends of bigint, with jumps, for two filters in turn (one with a seed), with
-- one slice and with several.  Elements are the even numbers and the ends.
CREATE TABLE reader_far (n int PRIMARY KEY, hidden fav);
INSERT INTO reader_far
SELECT n, fav_add(fav, ARRAY(SELECT 2 * generate_series(-2000, 2000)::bigint) || '{9223372036854775807,-9223372036854775808,-9223372036854775807}'::bigint[])
FROM (VALUES (1, fav_new(400000)), (2, fav_new(400000, seed => 5)),
	(3, fav_union(fav_add(fav_new(500000), ARRAY(SELECT generate_series(5000, 6000)::bigint)),
		fav_add(fav_new(400000), ARRAY(SELECT -generate_series(5000, 6000)::bigint))))) f (n, fav);
SELECT n, pg_column_size(hidden) > 384 * 1024 AS far, (fav_stats(hidden)).slices FROM reader_far ORDER BY n;
CREATE TABLE reader_steps AS
SELECT name, i, CASE name
	WHEN 'one by one' THEN i
	WHEN 'steps of two' THEN 2 * i - 500
	WHEN 'steps of three, backwards' THEN 3000 - 3 * i
	WHEN 'from zero' THEN i - 1
	WHEN 'with gaps' THEN i + i / 7
	WHEN 'scattered' THEN i * 7919 % 4001
	WHEN 'the same' THEN 42
	WHEN 'in turn' THEN CASE i % 3 WHEN 0 THEN 10 WHEN 1 THEN 12 ELSE 13 END
	WHEN 'to the upper end' THEN 9223372036854775807 - 1000 + i
	WHEN 'to the lower end, in twos' THEN -9223372036854775808 + 2 * (1000 - i)
	WHEN 'from end to end' THEN CASE i % 2 WHEN 0 THEN -9223372036854775808 ELSE 9223372036854775807 END
	END AS id
FROM unnest('{one by one,steps of two,"steps of three, backwards",from zero,with gaps,scattered,the same,in turn,to the upper end,"to the lower end, in twos",from end to end}'::text[]) name,
	generate_series(1, 1000) i;
SELECT n, name, count(*) AS asked, count(*) FILTER (WHERE found <> fav_contains_any(hidden, ARRAY[id])) AS differ,
	count(*) FILTER (WHERE NOT found AND (id BETWEEN -4000 AND 4000 AND id % 2 = 0 OR id > 9223372036854775806 OR id < -9223372036854775806)) AS missing,
	count(*) FILTER (WHERE found) BETWEEN 1 AND 1000 AS some
FROM (SELECT n, name, id, hidden, fav_contains(hidden, id) AS found
	FROM (SELECT * FROM reader_far, reader_steps ORDER BY n, name, i OFFSET 0) q OFFSET 0) a
GROUP BY n, name ORDER BY n, name COLLATE "C";

-- Two filters in turn, and rescans of the inner side of a join
SELECT count(*) AS asked, count(*) FILTER (WHERE NOT found) AS missing
FROM (SELECT fav_contains(hidden, 2 * i) AS found FROM (SELECT * FROM reader_far, generate_series(1, 1000) i ORDER BY i, n OFFSET 0) q OFFSET 0) a;
SELECT sum(found) AS found FROM (SELECT n FROM reader_far ORDER BY n) o, generate_series(1, 3) again,
	LATERAL (SELECT count(*) AS found FROM generate_series(1, 2000) i
		WHERE (SELECT hidden FROM reader_far f WHERE f.n = o.n) @> 2 * i::bigint AND again > 0) s;

DROP TABLE reader_filters, reader_rows, reader_ways, reader_far, reader_steps;
DROP FUNCTION reader_ask, reader_held;
