-- The operators are the functions.

CREATE TEMP TABLE probe AS
SELECT fav_add(NULL, ARRAY[1, 2]) AS n, fav_add(NULL, ARRAY['a', 'b']) AS t, fav_add(NULL, '\x01'::bytea) AS b,
	fav_add(NULL, '00000000-0000-0000-0000-000000000001'::uuid) AS u;

SELECT n @> 1 AS "1", n @> 3 AS "3", 1 <@ n AS "1 <@", 3 <@ n AS "3 <@" FROM probe;
SELECT n @> '1' AS "1", n @> '3' AS "3", '1' <@ n AS "1 <@", '3' <@ n AS "3 <@" FROM probe;
SELECT t @> 'a' AS a, t @> 'c' AS c, 'a' <@ t AS "a <@", 'c'::text <@ t AS "c <@" FROM probe;
SELECT b @> '\x01'::bytea AS "01", b @> '\x02'::bytea AS "02", '\x01'::bytea <@ b AS "01 <@", '\x02'::bytea <@ b AS "02 <@" FROM probe;
SELECT u @> u1 AS u1, u @> u2 AS u2, u1 <@ u AS "u1 <@", u2 <@ u AS "u2 <@"
FROM probe, (VALUES ('00000000-0000-0000-0000-000000000001'::uuid, '00000000-0000-0000-0000-000000000002'::uuid)) v (u1, u2);

SELECT (n + 3) @> 3 AS plus, (n - 1) @> 1 AS minus, (t + 'c') @> 'c' AS plus_text,
	(b + '\x02'::bytea) @> '\x02'::bytea AS plus_bytea,
	(u + '00000000-0000-0000-0000-000000000002'::uuid) @> '00000000-0000-0000-0000-000000000002'::uuid AS plus_uuid,
	(u - '00000000-0000-0000-0000-000000000001'::uuid) @> '00000000-0000-0000-0000-000000000001'::uuid AS minus_uuid
FROM probe;
SELECT (n + 3 - 1 + 4)::bytea = fav_add(fav_del(fav_add(n, 3), 1), 4)::bytea AS chained,
	(n || fav_add(NULL, 3)) @> 3 AS "union" FROM probe;

-- No operator has an array as an argument, and there is no fav - text (see sql/harmless.sql)
\set VERBOSITY terse
SELECT n @> ARRAY[1, 2] FROM probe;
SELECT n && ARRAY[1, 2] FROM probe;
SELECT t - 'a'::text FROM probe;
\set VERBOSITY default

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
SELECT id FROM reader WHERE fav_contains_any(hidden, ARRAY[7, 8]);
DROP TABLE probe, reader;
