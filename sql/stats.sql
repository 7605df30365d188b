-- Inspecting filters.

-- The columns, and the result type of each function
SELECT attname, format_type(t, NULL) AS type
FROM (SELECT unnest(proargnames) AS attname, unnest(proallargtypes) AS t, unnest(proargmodes) AS m FROM pg_proc WHERE oid = 'fav_stats'::regproc) a WHERE m = 'o';
SELECT attname, format_type(t, NULL) AS type
FROM (SELECT unnest(proargnames) AS attname, unnest(proallargtypes) AS t, unnest(proargmodes) AS m FROM pg_proc WHERE oid = 'fav_slices'::regproc) a WHERE m = 'o';

-- Parameters are reported as they were given
SELECT format, capacity, error_rate = 0.002 AS error_rate, region_size, seed FROM fav_stats(fav_new(5000, 0.002, 9, -3));
SELECT format, capacity, error_rate = 0.01 AS error_rate, region_size, seed FROM fav_stats(fav_add(NULL, 1));
SELECT capacity, error_rate = 0.002 AS error_rate, region_size, seed
FROM fav_stats(fav_del(fav_add(fav_new(5000, 0.002, 9, -3), ARRAY(SELECT generate_series(1, 20000))), ARRAY(SELECT generate_series(1, 5000))));

-- An empty filter and small ones: exact and not bloated
SELECT n, elements, slices, recent, tombstones, bytes, fill = 0 AS fill, estimated_error = 0 AS estimated_error, clean_regions = 1 AS clean_regions,
	deletable = 1 AS deletable, bloat = 1 AS bloat, needs_rebuild
FROM (VALUES (0), (1), (128)) v (n), fav_stats(fav_add(fav_new(), ARRAY(SELECT generate_series(1, n)))) ORDER BY n;
SELECT count(*) AS slices FROM fav_slices(fav_new());

-- The kind of a filter
SELECT (fav_stats(fav_new())).kind IS NULL AS "none", (fav_stats(fav_add(NULL, 1))).kind AS "bigint", (fav_stats(fav_add(NULL, 'a'))).kind AS "text",
	(fav_stats(fav_add(NULL, '00000000-0000-0000-0000-000000000001'::uuid))).kind AS "uuid", (fav_stats(fav_add(NULL, '\x01'::bytea))).kind AS "bytea",
	(fav_stats(fav_add(NULL, 1, 2))).kind AS pair, (fav_stats(fav_del(fav_add(NULL, 1), 1))).kind IS NULL AS "none again";

-- Larger ones
CREATE TEMP TABLE filters AS
SELECT name, n, f FROM (VALUES
	('fresh', 20000, fav_add(fav_new(20000), ARRAY(SELECT generate_series(1, 20000)))),
	('grown', 20000, fav_add(fav_new(), ARRAY(SELECT generate_series(1, 20000)))),
	('half deleted', 10000, fav_del(fav_add(fav_new(20000), ARRAY(SELECT generate_series(1, 20000))), ARRAY(SELECT generate_series(1, 10000)))),
	('roomy', 1000, fav_add(fav_new(20000), ARRAY(SELECT generate_series(1, 1000))))) v (name, n, f);
SELECT name, abs(elements - n) < 0.03 * n AS elements, elements = fav_count(f) AS as_count, slices = 1 AS one_slice,
	recent BETWEEN 0 AND 128 AS recent, (tombstones > 0) AS tombstones, bytes = length(f::bytea) + 4 AS bytes,
	fill > 0.001 AND fill < 0.5 AS fill, estimated_error > 0 AND estimated_error <= 0.01 AS estimated_error,
	clean_regions > 0.2 AND clean_regions < 1 AS clean_regions, deletable > 0.5 AND deletable <= 1 AS deletable,
	bloat >= 0.9 AND bloat < 6 AS bloat, needs_rebuild = fav_needs_rebuild(f) AS needs_rebuild
FROM filters, fav_stats(f) ORDER BY name;

-- The estimated error is close to the measured one
SELECT name, abs(100000 - cardinality(fav_filter(f, ARRAY(SELECT generate_series(1000001, 1100000)))) - 100000 * s.estimated_error)
	< 5 * sqrt(100000 * s.estimated_error) + 5 AS as_measured
FROM filters, fav_stats(f) s ORDER BY name;

-- Deleting raises deletable and lowers fill and error; no marked region becomes clean
SELECT h.fill < f.fill AS fill, h.estimated_error < f.estimated_error AS estimated_error, h.clean_regions <= f.clean_regions AS clean_regions
FROM (SELECT s.* FROM filters, fav_stats(f) s WHERE name = 'fresh') f, (SELECT s.* FROM filters, fav_stats(f) s WHERE name = 'half deleted') h;

-- The slices add up to the whole
SELECT name, count(*) > 1 AS several, count(*) = max(s.slices) AS counted, array_agg(p.slice ORDER BY p.slice) = ARRAY(SELECT generate_series(1, max(s.slices))) AS numbered,
	sum(p.bytes) + 44 + 24 * count(*) + 8 * max(s.recent) + 8 * max(s.tombstones) + 4 = max(s.bytes) AS bytes,
	sum(p.blocks * (s.region_size + 1) * 32) = sum(p.bytes) AS blocks, bool_and(p.bits_set BETWEEN 1 AND p.blocks * s.region_size * 256) AS bits_set,
	bool_and(p.bits_limit BETWEEN 1 AND p.blocks * s.region_size * 256) AS bits_limit,
	bool_and(abs(p.fill - p.bits_set / (p.blocks * s.region_size * 256.0)) < 1e-9) AS fill,
	max(s.estimated_error) BETWEEN max(p.estimated_error) - 1e-12 AND sum(p.estimated_error) + 1e-12 AS estimated_error,
	bool_and(p.clean_regions BETWEEN 0 AND 1 AND p.deletable BETWEEN 0 AND 1) AS shares, bool_and(p.bits_per_element BETWEEN 1 AND 32) AS bits_per_element
FROM filters, fav_stats(f) s, fav_slices(f) p GROUP BY name ORDER BY name;

-- Each slice of a chain is about as large as the one before or larger, and has more bits per element
SELECT bool_and(capacity >= 0.9 * before) AS larger, bool_and(bits_per_element >= bits_before) AS stricter
FROM (SELECT capacity, lag(capacity) OVER w AS before, bits_per_element, lag(bits_per_element) OVER w AS bits_before
	FROM filters, fav_slices(f) WHERE name = 'grown' WINDOW w AS (ORDER BY slice)) a;

-- In the select list, and of several rows
SELECT name, (fav_slices(f)).slice FROM filters WHERE name IN ('fresh', 'roomy') ORDER BY 1, 2;
SELECT count(*) FROM (SELECT fav_slices(f) FROM filters) a;
SELECT name FROM filters WHERE (fav_stats(f)).slices > 1;
DROP TABLE filters;

-- The count is exact up to 128, and an estimate within 3 % above
SELECT count(*) FILTER (WHERE n <= 128 AND fav_count(f) <> n) AS inexact, count(*) FILTER (WHERE abs(fav_count(f) - n) > 0.03 * n) AS too_far
FROM (SELECT n, fav_add(NULL, ARRAY(SELECT generate_series(1, n))) AS f FROM (SELECT generate_series(0, 300) AS n UNION ALL SELECT generate_series(1000, 50000, 7000)) s OFFSET 0) a;
