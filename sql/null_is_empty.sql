-- NULL is the empty filter, and a NULL element is no element.

-- So a feed needs no special case for users without a filter.
CREATE TEMP TABLE reader (id int, hidden fav);
CREATE TEMP TABLE post (id bigint);
INSERT INTO reader VALUES (1, NULL), (2, fav_add(NULL, 3)), (3, fav_new());
INSERT INTO post SELECT generate_series(1, 5);
SELECT r.id AS reader, array_agg(p.id ORDER BY p.id) AS feed
FROM reader r, post p WHERE NOT fav_contains(r.hidden, p.id) GROUP BY r.id ORDER BY r.id;
SELECT r.id AS reader, array_agg(p.id ORDER BY p.id) AS feed
FROM reader r, post p WHERE NOT r.hidden @> p.id GROUP BY r.id ORDER BY r.id;
SELECT id AS reader, fav_filter(hidden, ARRAY[5, 4, 3, 2, 1]) AS feed FROM reader ORDER BY id;

-- A NULL filter contains nothing
SELECT fav_contains(NULL, 42) AS "bigint", fav_contains(NULL, 'a'::text) AS "text",
	fav_contains(NULL, '00000000-0000-0000-0000-000000000001'::uuid) AS "uuid",
	fav_contains(NULL, '\x01'::bytea) AS "bytea", fav_contains(NULL, 1, 2) AS pair;
SELECT fav_contains_any(NULL, ARRAY[1, 2]) AS "any", fav_contains_all(NULL, ARRAY[1, 2]) AS "all",
	fav_contains_any(NULL, '{}'::bigint[]) AS any_of_none, fav_contains_all(NULL, '{}'::bigint[]) AS all_of_none;
SELECT fav_filter(NULL, ARRAY[1, NULL, 2]), fav_count(NULL), fav_needs_rebuild(NULL);
SELECT NULL::fav @> 42 AS contains, 42 <@ NULL::fav AS contained;

-- Adding to NULL makes a filter with the default parameters, deleting from NULL gives NULL
SELECT fav_add(NULL, 42)::bytea = fav_add(fav_new(), 42)::bytea AS element,
	fav_add(NULL, ARRAY[1, 2])::bytea = fav_add(fav_new(), ARRAY[1, 2])::bytea AS elements,
	fav_add(NULL, '{}'::bigint[])::bytea = fav_new()::bytea AS no_elements,
	fav_add(NULL, 1, 2)::bytea = fav_add(fav_new(), 1, 2)::bytea AS pair,
	(NULL::fav + 42)::bytea = fav_add(fav_new(), 42)::bytea AS plus;
SELECT fav_del(NULL, 42) IS NULL AS element, fav_del(NULL, ARRAY[1, 2]) IS NULL AS elements,
	fav_del(NULL, 1, 2) IS NULL AS pair, NULL::fav - 42 IS NULL AS minus;

-- Excluding from NULL makes a filter with a tombstone, which contains nothing
SELECT f @> 42 AS contains, fav_count(f) AS count, (fav_stats(f)).kind, (fav_stats(f)).tombstones,
	f::bytea = fav_exclude(fav_new(), 42)::bytea AS element,
	fav_exclude(NULL, ARRAY[1, 2])::bytea = fav_exclude(fav_new(), ARRAY[1, 2])::bytea AS elements,
	fav_exclude(NULL, 1, 2)::bytea = fav_exclude(fav_new(), 1, 2)::bytea AS pair
FROM fav_exclude(NULL, 42) f;

-- Probing for NULL gives NULL, as everywhere in SQL
SELECT fav_contains(f, NULL::bigint) IS NULL AS "bigint", fav_contains(f, NULL::text) IS NULL AS "text",
	fav_contains(f, NULL::uuid) IS NULL AS "uuid", fav_contains(f, NULL::bytea) IS NULL AS "bytea",
	fav_contains(f, NULL, 2) IS NULL AND fav_contains(f, 1, NULL) IS NULL AS pair,
	f @> NULL::bigint IS NULL AND NULL::bigint <@ f IS NULL AS operators,
	fav_contains_any(f, NULL::bigint[]) IS NULL AS "any", fav_contains_all(f, NULL::bigint[]) IS NULL AS "all",
	fav_filter(f, NULL::bigint[]) IS NULL AS filter
FROM (VALUES (NULL::fav), (fav_new()), (fav_add(fav_new(), 42))) v (f);

-- Adding and deleting NULL changes nothing
SELECT count(*) AS results, count(*) FILTER (WHERE g::bytea IS DISTINCT FROM f::bytea) AS changed
FROM (VALUES (NULL::fav), (fav_new()), (fav_add(fav_new(), 42))) v (f),
	LATERAL (VALUES (fav_add(f, NULL::bigint)), (fav_add(f, NULL::text)), (fav_add(f, NULL::uuid)), (fav_add(f, NULL::bytea)),
		(fav_add(f, NULL::bigint[])), (fav_add(f, NULL::text[])), (fav_add(f, NULL::uuid[])), (fav_add(f, NULL::bytea[])),
		(fav_add(f, 1, NULL)), (fav_add(f, NULL, 1)), (f + NULL::bigint),
		(fav_del(f, NULL::bigint)), (fav_del(f, NULL::text)), (fav_del(f, NULL::uuid)), (fav_del(f, NULL::bytea)),
		(fav_del(f, NULL::bigint[])), (fav_del(f, NULL::text[])), (fav_del(f, NULL::uuid[])), (fav_del(f, NULL::bytea[])),
		(fav_del(f, 1, NULL)), (fav_del(f, NULL, 1)), (f - NULL::bigint),
		(fav_exclude(f, NULL::bigint)), (fav_exclude(f, NULL::text)), (fav_exclude(f, NULL::uuid)), (fav_exclude(f, NULL::bytea)),
		(fav_exclude(f, NULL::bigint[])), (fav_exclude(f, NULL::text[])), (fav_exclude(f, NULL::uuid[])), (fav_exclude(f, NULL::bytea[])),
		(fav_exclude(f, 1, NULL)), (fav_exclude(f, NULL, 1))) w (g);

-- Inspecting and converting NULL gives NULL
SELECT fav_new(NULL) IS NULL AS new, fav_stats(NULL) IS NULL AS stats,
	NULL::fav::bytea IS NULL AS to_bytea, NULL::bytea::fav IS NULL AS from_bytea;
SELECT count(*) AS slices FROM fav_slices(NULL);

DROP TABLE reader, post;

-- Where a column is NOT NULL, the short form of the empty filter stands for NULL.  It is its version alone.
CREATE TEMP TABLE short (f fav NOT NULL DEFAULT '\x01');
INSERT INTO short DEFAULT VALUES;
SELECT f, f::bytea, fav_send(f), f::bytea::fav = f AS same, f = fav_new() AS same_as_new, pg_column_size(f), octet_length(f::bytea) FROM short;
SELECT fav_contains(f, 42), f @> 'a'::text AS contains, fav_contains(f, 1, 2) AS pair, fav_contains_any(f, ARRAY[1, 2]) AS "any", fav_contains_all(f, ARRAY[1, 2]) AS "all",
	fav_filter(f, ARRAY[2, 1]), fav_count(f), fav_needs_rebuild(f) FROM short;
SELECT format, elements, kind, capacity, error_rate, region_size, seed, slices, recent, tombstones, bytes, bloat, keep FROM short, fav_stats(f);
SELECT count(*) FROM short, fav_slices(f);
SELECT fav_add(f, 42) = fav_add(NULL, 42) AS element, fav_add(f, ARRAY['a', 'b']) = fav_add(NULL, ARRAY['a', 'b']) AS elements, fav_add(f, 1, 2) = fav_add(NULL, 1, 2) AS pair,
	f + 42 = NULL::fav + 42 AS plus, fav_exclude(f, 42) = fav_exclude(NULL, 42) AS exclude, fav_add(f, NULL::bigint) = f AS nothing, fav_add(f, '{}'::bigint[]) = f AS none FROM short;
SELECT fav_del(f, 42) = f AS element, fav_del(f, ARRAY[1, 2]) = f AS elements, fav_del(f, 1, 2) = f AS pair, f - 42 = f AS minus, fav_del(fav_add(f, 42), 42) = fav_new() AS empty_again FROM short;
SELECT fav_add_at(f, ARRAY[1]::bigint[], 1) FROM short;
SELECT fav_expire(f, 1) FROM short;
-- it fits any filter, as NULL does
SELECT fav_union(f, other) = other AS left, other || f = other AS right, fav_union(f, f) = f AS both,
	(SELECT fav_union_agg(g) FROM (VALUES (f), (other), (f)) v (g)) = other AS aggregate, (SELECT fav_union_agg(g) FROM (VALUES (f), (f)) v (g)) IS NULL AS none
FROM short, (VALUES (fav_add(fav_new(seed => 7), 1)), (fav_add_at(fav_new(keep => 3), ARRAY[1]::bigint[], 5)), ((SELECT fav_agg(i, 0.1) FROM generate_series(1::bigint, 300) i))) v (other);
SELECT fav_cmp(f, fav_new()) AS before, fav_cmp(fav_new(), f) AS after, fav_hash(f) = fav_hash('\x01') AS hash FROM short;
-- no other byte is a value
SELECT '\x'::fav;
SELECT '\x00'::fav;
SELECT '\x02'::bytea::fav;
SELECT '\x0100'::fav;
SELECT '\x01'::bytea::fav_cache;
DO $$
DECLARE
	f fav := '\x01';
BEGIN
	ASSERT fav_count(f) = 0 AND NOT fav_contains(f, 1);
	f := fav_add(f, 1);
	f := fav_del(f, 1);
	f := fav_add(f, 'a'::text);
	ASSERT f = fav_add(NULL, 'a'::text);
END $$;
