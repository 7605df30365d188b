-- Which values are the same element.

-- Integers of any width are the same element, and so are text and varchar
SELECT f @> 42::smallint AS "smallint", f @> 42::int AS "int", f @> 42::bigint AS "bigint",
	42::smallint <@ f AS "smallint <@", f @> 43 AS other
FROM (VALUES (fav_add(NULL, 42::smallint)), (fav_add(NULL, 42)), (fav_add(NULL, 42::bigint)),
	(fav_add(NULL, ARRAY[42]::smallint[])), (fav_add(NULL, ARRAY[42])), (fav_add(NULL, ARRAY[42]::bigint[]))) v (f);
SELECT f @> 'post'::text AS "text", f @> 'post'::varchar AS "varchar", f @> 'post'::varchar(10) AS "varchar(10)",
	f @> 'post' AS literal, f @> 'post'::char(10) AS "char(10)", f @> 'POST' AS other
FROM (VALUES (fav_add(NULL, 'post'::text)), (fav_add(NULL, 'post'::varchar)), (fav_add(NULL, 'post')),
	(fav_add(NULL, ARRAY['post']::varchar[])), (fav_add(NULL, ARRAY['post']))) v (f);
SELECT fav_add(NULL, 42::smallint)::bytea = fav_add(NULL, 42::bigint)::bytea AS integers,
	fav_add(NULL, 'post'::varchar)::bytea = fav_add(NULL, 'post'::text)::bytea AS texts;

-- A domain is its base type
CREATE DOMAIN post_id AS bigint CHECK (VALUE > 0);
CREATE DOMAIN handle AS text;
SELECT fav_add(NULL, 42::post_id) @> 42 AS "bigint", fav_add(NULL, 'mira'::handle) @> 'mira' AS "text";
DROP DOMAIN post_id, handle;

-- Elements of different kinds differ: the number 42, the text and the bytes '42', the bytes of
-- the number, of a uuid and of a pair have different hashes (sql/kinds.sql: they cannot be mixed)
CREATE TEMP TABLE kinds AS
SELECT * FROM (VALUES
	(1, 'number', fav_add(NULL, 42)),
	(2, 'text', fav_add(NULL, '42'::text)),
	(3, 'bytes', fav_add(NULL, '\x3432'::bytea)),
	(4, 'number as bytes', fav_add(NULL, '\x2a00000000000000'::bytea)),
	(5, 'uuid', fav_add(NULL, '2a000000-0000-0000-2b00-000000000000'::uuid)),
	(6, 'pair', fav_add(NULL, 42, 43)),
	(7, 'pair as bytes', fav_add(NULL, '\x2a000000000000002b00000000000000'::bytea)),
	(8, 'pair as text', fav_add(NULL, '42_43'::text))) v (id, kind, f);
SELECT count(DISTINCT substr(f::bytea, 9, 8)) AS hashes FROM kinds;
SELECT kind, (fav_stats(f)).kind AS kind_of_filter FROM kinds ORDER BY id;
DROP TABLE kinds;

-- The order of a pair matters, and pairs may have one number in common
SELECT fav_contains(f, 1, 2) AS "(1,2)", fav_contains(f, 2, 1) AS "(2,1)", fav_contains(f, 1, 1) AS "(1,1)",
	fav_contains(f, 1, 3) AS "(1,3)"
FROM fav_add(NULL, 1, 2) f;

-- The ends of each type
SELECT n, fav_contains(f, n) AS found, fav_contains(f, n # 1) AS neighbour, fav_count(f) AS count
FROM (SELECT ARRAY[0, 2147483647, -2147483648, 9223372036854775807, -9223372036854775808] AS ends) e,
	LATERAL fav_add(NULL, ends) f, unnest(ends) n ORDER BY n;
SELECT f @> ''::text AS empty_text, f @> ' '::text AS blank FROM (VALUES (fav_add(NULL, ''::text)), (fav_new())) v (f);
SELECT f @> ''::bytea AS empty_bytes, f @> '\x00'::bytea AS zero FROM (VALUES (fav_add(NULL, ''::bytea)), (fav_new())) v (f);
SELECT f @> '00000000-0000-0000-0000-000000000000'::uuid AS nil, f @> 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid AS max
FROM fav_add(NULL, '00000000-0000-0000-0000-000000000000'::uuid) f;

-- Every length at which the hash function has a branch of its own, and longer ones: all are
-- found, and none is taken for its neighbour
SELECT count(*) AS texts, count(*) FILTER (WHERE NOT f @> repeat('x', n)) AS missing,
	count(*) FILTER (WHERE f @> (repeat('x', n) || 'y')) AS wrong
FROM (SELECT array_agg(repeat('x', n)) AS xs FROM generate_series(0, 2000, 17) n) a,
	LATERAL fav_add(NULL, xs) f, generate_series(0, 2000, 17) n;
SELECT f @> repeat('long ', 200000) AS found, f @> (repeat('long ', 199999) || 'lonG ') AS other,
	pg_column_size(f) < 100 AS small
FROM fav_add(NULL, repeat('long ', 200000)) f;

-- Elements from a TOAST table, compressed or not, are the same elements
CREATE TEMP TABLE toasted (id int, compressed text, plain text, bytes bytea);
ALTER TABLE toasted ALTER plain SET STORAGE EXTERNAL, ALTER bytes SET STORAGE EXTERNAL;
INSERT INTO toasted
SELECT id, t, t, convert_to(t, 'UTF8') FROM generate_series(1, 5) id, LATERAL repeat(id || ' fish, ', 10000) t;
SELECT id, f @> t.compressed AS compressed, f @> t.plain AS plain, f @> repeat(id || ' fish, ', 10000) AS computed
FROM toasted t, LATERAL fav_add(NULL, t.compressed) f ORDER BY id;
SELECT id, f @> t.bytes AS bytes
FROM toasted t, (SELECT fav_add(fav_new(), array_agg(bytes)) AS f FROM toasted) a ORDER BY id;
SELECT fav_contains_all(f, compressed) AS "all", fav_contains_any(f, others) AS "any", cardinality(fav_filter(f, plain)) AS kept
FROM (SELECT fav_add(fav_new(), array_agg(plain)) AS f, array_agg(compressed) AS compressed, array_agg(plain) AS plain,
		array_agg(plain || '.') AS others FROM toasted) a;
DROP TABLE toasted;

-- The seed changes the hashes, but not what is found
SELECT f @> 42 AS found, f @> 43 AS other, f::bytea = fav_add(NULL, 42)::bytea AS same_bytes
FROM fav_add(fav_new(seed => -7), 42) f;
