-- The operators are the functions.

CREATE TEMP TABLE probe AS
SELECT fav_add(fav_add(fav_add(fav_add(NULL, ARRAY[1, 2]), ARRAY['a', 'b']), '\x01'::bytea), '00000000-0000-0000-0000-000000000001'::uuid) AS f;

SELECT f @> 1 AS "1", f @> 3 AS "3", 1 <@ f AS "1 <@", 3 <@ f AS "3 <@" FROM probe;
SELECT f @> 'a' AS a, f @> 'c' AS c, 'a' <@ f AS "a <@", 'c'::text <@ f AS "c <@" FROM probe;
SELECT f @> '\x01'::bytea AS "01", f @> '\x02'::bytea AS "02", '\x01'::bytea <@ f AS "01 <@", '\x02'::bytea <@ f AS "02 <@" FROM probe;
SELECT f @> u1 AS u1, f @> u2 AS u2, u1 <@ f AS "u1 <@", u2 <@ f AS "u2 <@"
FROM probe, (VALUES ('00000000-0000-0000-0000-000000000001'::uuid, '00000000-0000-0000-0000-000000000002'::uuid)) v (u1, u2);

SELECT f @> ARRAY[1, 2] AS "all", f @> ARRAY[1, 3] AS not_all, f && ARRAY[1, 3] AS "any", f && ARRAY[3, 4] AS not_any FROM probe;
SELECT f @> ARRAY['a', 'b'] AS "all", f @> ARRAY['a', 'c'] AS not_all, f && ARRAY['a', 'c'] AS "any", f && ARRAY['c', 'd'] AS not_any FROM probe;
SELECT f @> ARRAY['\x01']::bytea[] AS "all", f && ARRAY['\x02']::bytea[] AS not_any FROM probe;
SELECT f @> ARRAY['00000000-0000-0000-0000-000000000001']::uuid[] AS "all", f && ARRAY['00000000-0000-0000-0000-000000000002']::uuid[] AS not_any FROM probe;

SELECT (f + 3) @> 3 AS plus, (f - 1) @> 1 AS minus, (f + 'c') @> 'c' AS plus_text, (f - 'a') @> 'a' AS minus_text,
	(f + '\x02'::bytea) @> '\x02'::bytea AS plus_bytea, (f - '\x01'::bytea) @> '\x01'::bytea AS minus_bytea,
	(f + '00000000-0000-0000-0000-000000000002'::uuid) @> '00000000-0000-0000-0000-000000000002'::uuid AS plus_uuid,
	(f - '00000000-0000-0000-0000-000000000001'::uuid) @> '00000000-0000-0000-0000-000000000001'::uuid AS minus_uuid
FROM probe;
SELECT (f + 3 - 1 + 4)::bytea = fav_add(fav_del(fav_add(f, 3), 1), 4)::bytea AS chained FROM probe;

-- In statements as they are written
CREATE TEMP TABLE reader (id int PRIMARY KEY, hidden fav);
INSERT INTO reader VALUES (1), (2);
UPDATE reader SET hidden = hidden + 7 WHERE id = 1;
UPDATE reader SET hidden = hidden + 8 WHERE id = 1;
UPDATE reader SET hidden = hidden - 7 WHERE id = 1;
SELECT id, hidden @> 7 AS "7", hidden @> 8 AS "8", 8 <@ hidden AS "8 <@" FROM reader ORDER BY id;
SELECT id FROM reader WHERE hidden @> 8;
SELECT id FROM reader WHERE NOT hidden @> 8;
SELECT id FROM reader WHERE 8 <@ hidden;
SELECT id FROM reader WHERE hidden && ARRAY[7, 8];
DROP TABLE probe, reader;
