-- Tombstones that an attacker chose, spread as unevenly as possible: searching them in a large
-- value out of line still reads only a few pages of the list.

-- Numbers in a value are little endian
CREATE FUNCTION crafted_turn(n bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT substr(n, 8, 1) || substr(n, 7, 1) || substr(n, 6, 1) || substr(n, 5, 1) || substr(n, 4, 1) || substr(n, 3, 1) || substr(n, 2, 1) || substr(n, 1, 1) $$;

-- The elements with the smallest and the largest hash of 20,000.  (A small filter contains the
-- hashes themselves.)  Both are at an end of the range of hashes.
CREATE TEMP TABLE crafted_elements AS
SELECT element, crafted_turn(substr(fav_add(fav_new(), element)::bytea, 9, 8)) AS hash FROM generate_series(1::bigint, 20000) element;
CREATE TEMP TABLE crafted_ends AS
(SELECT 'smallest' AS which, element, ('x' || encode(hash, 'hex'))::bit(64)::bigint AS hash FROM crafted_elements ORDER BY crafted_elements.hash LIMIT 1)
UNION ALL
(SELECT 'largest', element, ('x' || encode(hash, 'hex'))::bit(64)::bigint FROM crafted_elements ORDER BY crafted_elements.hash DESC LIMIT 1);

-- All elements in one slice, and 200,000 tombstones right below the smallest hash or right above
-- the largest, with or without that hash itself.  Evenly spread tombstones would be elsewhere.
-- (The number of tombstones is at byte 40 of a value without recent hashes, the list at its end.)
CREATE TABLE crafted (which text, with_it boolean, filter fav);
INSERT INTO crafted
SELECT which, with_it, (overlay(filter PLACING '\x400d0300' FROM 41) || deleted)::fav
FROM (SELECT fav_agg(element)::bytea AS filter FROM crafted_elements) f, crafted_ends, (VALUES (true), (false)) w (with_it),
	LATERAL (SELECT string_agg(crafted_turn(int8send(h)), '' ORDER BY h) AS deleted
		FROM generate_series(hash - 200000, hash + 200000) h
		WHERE CASE WHEN which = 'smallest' THEN h <= hash ELSE h >= hash END
			AND h <> CASE WHEN NOT with_it THEN hash WHEN which = 'smallest' THEN hash - 200000 ELSE hash + 200000 END) d;
SELECT which, with_it, tombstones, slices, pg_column_size(filter) > 1600000 AS out_of_line FROM crafted, fav_stats(filter) ORDER BY 1, 2;

-- How many pages does a probe read?
CREATE FUNCTION crafted_pages(ask text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE ask;				-- once before, for the catalogs
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) ' || ask INTO plan;
	RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::bigint + (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
END $$;
SELECT which, with_it, fav_contains(filter, element) AS contains,
	crafted_pages(format('SELECT fav_contains(filter, %s) FROM crafted WHERE which = %L AND with_it = %L', element, which, with_it)) < 100 AS few_pages
FROM crafted JOIN crafted_ends USING (which) ORDER BY 1, 2;

-- Reading the whole value takes many pages
SELECT which, with_it,
	crafted_pages(format('SELECT fav_count(filter) FROM crafted WHERE which = %L AND with_it = %L', which, with_it)) > 150 AS many_pages
FROM crafted ORDER BY 1, 2;

DROP TABLE crafted, crafted_elements, crafted_ends;
DROP FUNCTION crafted_turn, crafted_pages;
