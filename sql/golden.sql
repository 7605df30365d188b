-- The same filters, questions and answers for the server, libfav and JavaScript.  The server writes
-- them here, so pg_regress checks the server.  test/lib/golden.c and clients/js/test.mjs read
-- expected/golden.out and check the others.
--
-- Element i of each kind: i, 'post i', i as a uuid, i as 8 bytes (the first one the highest), the
-- pair (i, 3 * i).
\pset format unaligned
\pset tuples_only on
CREATE TABLE golden (number int GENERATED ALWAYS AS IDENTITY, name text PRIMARY KEY, kind text, probes int, filter fav);

INSERT INTO golden (name, kind, probes, filter)
SELECT 'bigint-' || n, 'bigint', n + 500, fav_agg(i::bigint)
FROM unnest(ARRAY[1, 100, 128, 129, 1000]) n, generate_series(1, n) i GROUP BY n ORDER BY n;
INSERT INTO golden (name, kind, probes, filter)
SELECT 'text-' || n, 'text', n + 500, fav_agg('post ' || i) FROM unnest(ARRAY[3, 300]) n, generate_series(1, n) i GROUP BY n ORDER BY n;
INSERT INTO golden (name, kind, probes, filter)
SELECT 'uuid-' || n, 'uuid', n + 500, fav_agg(lpad(to_hex(i), 32, '0')::uuid) FROM unnest(ARRAY[3, 300]) n, generate_series(1, n) i GROUP BY n ORDER BY n;
INSERT INTO golden (name, kind, probes, filter)
SELECT 'bytea-' || n, 'bytea', n + 500, fav_agg(int8send(i)) FROM unnest(ARRAY[3, 300]) n, generate_series(1, n) i GROUP BY n ORDER BY n;
INSERT INTO golden (name, kind, probes, filter)
SELECT 'pair-' || n, 'pair', n + 500, fav_agg(i::bigint, 3 * i::bigint) FROM unnest(ARRAY[3, 300]) n, generate_series(1, n) i GROUP BY n ORDER BY n;

INSERT INTO golden (name, kind, probes, filter)
SELECT name, 'bigint', 800, filter FROM (VALUES
	('empty', fav_new()),
	('empty, short form', '\x01'),
	('empty, other parameters', fav_new(77, 0.2, 3, -5)),
	('empty, dated', fav_new(keep => 7)),
	('grown', fav_add(fav_new(100), ARRAY(SELECT generate_series(1::bigint, 700)))),
	('grown, seed 42', fav_add(fav_new(100, seed => 42), ARRAY(SELECT generate_series(1::bigint, 300)))),
	('grown, lowest seed', fav_add(fav_new(100, seed => -9223372036854775808), ARRAY(SELECT generate_series(1::bigint, 300)))),
	('regions of 1', fav_add(fav_new(300, 0.1, 1), ARRAY(SELECT generate_series(1::bigint, 300)))),
	('regions of 31', fav_add(fav_new(300, 0.001, 31), ARRAY(SELECT generate_series(1::bigint, 300)))),
	('removed', fav_del(fav_add(fav_new(100, 0.05, 1), ARRAY(SELECT generate_series(1::bigint, 600))), ARRAY(SELECT generate_series(100::bigint, 400)))),
	('excluded', fav_exclude(fav_add(fav_new(100), ARRAY(SELECT generate_series(1::bigint, 300))), ARRAY(SELECT generate_series(250::bigint, 350)))),
	('stacked', fav_stack((SELECT fav_agg(i) FROM generate_series(1::bigint, 300) i),
		fav_exclude((SELECT fav_agg(i) FROM generate_series(301::bigint, 500) i), ARRAY(SELECT generate_series(50::bigint, 60))), fav_add(NULL, 501::bigint))),
	('excluded, exact', fav_exclude(fav_add(NULL, ARRAY[1, 2, 3]::bigint[]), ARRAY[3, 4]::bigint[])),
	('dated, exact', fav_add_at(fav_add_at(fav_new(keep => 7), ARRAY[1, 2, 3]::bigint[], -1), ARRAY[3, 4]::bigint[], 2)),
	('dated', fav_del(fav_add_at(fav_add_at(fav_new(100, keep => 30), ARRAY(SELECT generate_series(1::bigint, 300)), 1),
		ARRAY(SELECT generate_series(200::bigint, 500)), 5), ARRAY(SELECT generate_series(150::bigint, 250))))
) AS made(name, filter);

CREATE FUNCTION element(kind text) RETURNS text LANGUAGE sql AS
$$
	SELECT CASE kind WHEN 'bigint' THEN 'i::bigint' WHEN 'text' THEN '''post '' || i'
		WHEN 'uuid' THEN 'lpad(to_hex(i), 32, ''0'')::uuid' WHEN 'bytea' THEN 'int8send(i)' ELSE 'i::bigint, 3 * i::bigint' END
$$;

-- One digit for each of the elements 1 to n.
CREATE FUNCTION answers(f fav, kind text, n int) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT string_agg(fav_contains($1, %s)::int::text, '''' ORDER BY i) FROM generate_series(1, $2) i', element(kind))
		INTO result USING f, n;
	RETURN result;
END
$$;

-- filter|name|kind|count|answers for the elements 1 to n|bytes
SELECT 'filter', name, kind, fav_count(filter), answers(filter, kind, probes), encode(filter::bytea, 'hex') FROM golden ORDER BY number;

-- Elements of other kinds, and text: t, f or the error.
CREATE FUNCTION ask(f fav, kind text, element text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	result boolean;
BEGIN
	IF kind = 'pair' THEN
		result := fav_contains(f, element::bigint, 3 * element::bigint);
	ELSE
		EXECUTE format('SELECT fav_contains($1, $2::%s)', kind) INTO result USING f, element;
	END IF;
	RETURN left(result::text, 1);
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;

-- ask|name|kind|element in hexadecimal, as text|answer
SELECT 'ask', name, asked.kind, encode(convert_to(element, 'UTF8'), 'hex'), ask(filter, asked.kind, element)
FROM golden, (VALUES
	(1, 'text', '1'), (2, 'text', ' 1 '), (3, 'text', E'\t+2\n'), (4, 'text', '-1'), (5, 'text', '9223372036854775807'), (6, 'text', '-9223372036854775808'),
	(7, 'text', '9223372036854775808'), (8, 'text', '-9223372036854775809'), (9, 'text', '99999999999999999999999'), (10, 'text', ''), (11, 'text', ' '),
	(12, 'text', '1.0'), (13, 'text', '1 2'), (14, 'text', '- 1'), (15, 'text', '+-1'), (16, 'text', 'one'), (17, 'text', '0000000000000000000000000001'),
	(18, 'text', 'post 2'), (19, 'text', '00000000-0000-0000-0000-000000000002'), (20, 'text', '{00000000-0000-0000-0000-000000000002}'),
	(21, 'text', '00000000000000000000000000000002'), (22, 'text', '0000-0000-0000-0000-0000-0000-0000-0002'), (23, 'text', '0-000000000000000000000000000000002'),
	(24, 'text', '{00000000-0000-0000-0000-000000000002'), (25, 'text', '00000000-0000-0000-0000-000000000002-'), (26, 'text', '00000000-0000-0000-0000-00000000000g'),
	(27, 'text', ' 00000000-0000-0000-0000-000000000002'), (28, 'text', '{}'),
	(29, 'bigint', '2'), (30, 'bigint', '-9223372036854775808'), (31, 'uuid', '00000000-0000-0000-0000-000000000002'), (32, 'bytea', '\x0000000000000002'),
	(33, 'bytea', '\x'), (34, 'pair', '2'), (35, 'pair', '-2')) AS asked(n, kind, element)
WHERE name IN ('empty', 'bigint-129', 'text-3', 'uuid-3', 'bytea-3', 'pair-3') ORDER BY number, n;

-- edit|name|bytes after adding 650 to 900, removing 10 to 120 and excluding 700 to 720
SELECT 'edit', name, encode(fav_exclude(fav_del(fav_add(filter, ARRAY(SELECT generate_series(650::bigint, 900))),
	ARRAY(SELECT generate_series(10::bigint, 120))), ARRAY(SELECT generate_series(700::bigint, 720)))::bytea, 'hex')
FROM golden WHERE kind = 'bigint' AND name <> 'empty, dated' ORDER BY number;

-- union|name|name|bytes
SELECT 'union', a.name, b.name, encode(fav_union(a.filter, b.filter)::bytea, 'hex')
FROM golden a, golden b WHERE (a.name, b.name) IN (('bigint-129', 'bigint-129'), ('bigint-100', 'grown'), ('excluded', 'bigint-1'), ('empty', 'bigint-100'),
	('text-3', 'text-300'), ('dated, exact', 'empty, dated'),
	('grown, seed 42', 'empty, short form'), ('empty, short form', 'grown, seed 42'), ('empty, short form', 'empty, short form'), ('stacked', 'bigint-129')) ORDER BY a.number, b.number;

-- What is wrong with these bytes, or 'valid'.
CREATE FUNCTION problem(bytes bytea) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	detail text;
BEGIN
	PERFORM bytes::fav;
	RETURN 'valid';
EXCEPTION WHEN invalid_binary_representation THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN detail;
END
$$;

-- damaged|name|position|byte|what is wrong
SELECT 'damaged', name, position, byte, problem(set_byte(filter::bytea, position, byte))
FROM golden, generate_series(0, least(length(filter::bytea), 110) - 1) position, unnest(ARRAY[0, 5, 255]) byte
WHERE name IN ('empty', 'empty, short form', 'bigint-1', 'bigint-129', 'stacked', 'excluded, exact', 'dated, exact') AND get_byte(filter::bytea, position) <> byte ORDER BY number, position, byte;

-- cut|name|length|what is wrong
SELECT 'cut', name, size, problem(substr(filter::bytea, 1, size))
FROM golden, generate_series(0, length(filter::bytea), greatest(length(filter::bytea) / 20, 1)) size
WHERE name IN ('empty', 'empty, short form', 'bigint-1', 'bigint-129', 'dated, exact') ORDER BY number, size;

-- Large filters, of which the other programs make the same: 2, 4, ... 2 * n.  The sums are of the bytes, each
-- times its position modulo 65521, and of the numbers from 1 to a million that the filter reports.
-- large|n|capacity (0: fav_agg)|error rate|region size|seed|count|length|sum|reported|sum
CREATE FUNCTION large(f fav) RETURNS TABLE (count bigint, length int, bytes numeric, reported bigint, numbers numeric) LANGUAGE sql AS
$$
	SELECT fav_count(f), length(f::bytea), (SELECT sum(get_byte(b, i) * (i % 65521)) FROM (SELECT f::bytea AS b OFFSET 0) value, generate_series(0, length(b) - 1) i),
		count(*), sum(i) FROM generate_series(1::bigint, 1000000) i WHERE fav_contains(f, i)
$$;
SELECT 'large', n, 0, 0.01, 7, 0, (large((SELECT fav_agg(2 * i::bigint) FROM generate_series(1, n) i))).* FROM unnest(ARRAY[10000, 100000, 1000000]) n;
SELECT 'large', 100000, 1000, 0.001, 3, 99, (large(fav_add(fav_new(1000, 0.001, 3, 99), ARRAY(SELECT 2 * generate_series(1::bigint, 100000))))).*;

DROP TABLE golden;
DROP FUNCTION element, answers, ask, problem, large;
