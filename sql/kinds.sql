-- A filter knows its kind: every call gives the right result, or an error that names both kinds.

-- A filter of each kind, stored in each way: in its row without slices, with slices, out of line.
-- Each contains 42 and not 43.
CREATE TABLE kinds (size text, kind text, f fav);
INSERT INTO kinds
SELECT size, kind, f FROM (VALUES ('small', 1), ('sliced', 300), ('large', 30000)) s (size, n),
	LATERAL (SELECT array_agg(i) AS numbers FROM generate_series(1000::bigint, 999 + n) i) e,
	LATERAL (VALUES
		('bigint', fav_add(fav_add(fav_new(error_rate => 0.00001), numbers), 42)),
		('text', fav_add(fav_add(fav_new(error_rate => 0.00001), numbers::text[]), '42'::text)),
		('uuid', fav_add(fav_add(fav_new(error_rate => 0.00001), ARRAY(SELECT lpad(i::text, 32, '0')::uuid FROM unnest(numbers) i)), lpad('42', 32, '0')::uuid)),
		('bytea', fav_add(fav_add(fav_new(error_rate => 0.00001), ARRAY(SELECT int8send(i) FROM unnest(numbers) i)), '\x42'::bytea)),
		('pair', fav_add((SELECT fav_agg(i, i + 1) FROM unnest(numbers) i), 42, 43)),
		('empty', fav_new(n)),
		('NULL', NULL::fav)) k (kind, f);
SELECT size, array_agg(DISTINCT (fav_stats(f)).slices > 0) AS slices, bool_or(pg_column_size(f) > 32768) AS out_of_line
FROM kinds WHERE kind NOT IN ('empty', 'NULL') GROUP BY size ORDER BY size;
SELECT kind, array_agg(DISTINCT (fav_stats(f)).kind) AS kinds FROM kinds GROUP BY kind ORDER BY kind;

-- Every kind of element in every call.  An answer is the result for 42 and for 43, or an SQLSTATE.
CREATE TABLE elements (element text, present text, absent text);
INSERT INTO elements VALUES
	('bigint', '42::bigint', '43::bigint'),
	('smallint', '42::smallint', '43::smallint'),
	('text, a number', '''42''::text', '''43''::text'),
	('text, a uuid', '''00000000-0000-0000-0000-000000000042''::text', '''00000000-0000-0000-0000-000000000043''::text'),
	('text, neither', '''x''::text', '''''::text'),
	('uuid', '''00000000-0000-0000-0000-000000000042''::uuid', '''00000000-0000-0000-0000-000000000043''::uuid'),
	('bytea', '''\x42''::bytea', '''\x43''::bytea'),
	('pair', '42, 43', '43, 42');
CREATE TABLE calls (call text, expression text, takes_pair boolean);
INSERT INTO calls VALUES
	('contains', 'fav_contains(f, E)', true), ('@>', 'f @> E', false), ('<@', 'E <@ f', false),
	('any', 'fav_contains_any(f, ARRAY[E])', false), ('all', 'fav_contains_all(f, ARRAY[NULL, E]) IS NOT false', false),
	('filter', 'fav_filter(f, ARRAY[E]) = ''{}''', false),
	('add', 'fav_contains(fav_add(f, E), E)', true), ('add[]', 'fav_contains(fav_add(f, ARRAY[E, NULL]), E)', false),
	('added', 'fav_add(f, E) IS DISTINCT FROM f', true),
	('del', 'fav_contains(fav_del(f, E), E)', true), ('del[]', 'fav_contains(fav_del(f, ARRAY[E]), E)', false),
	('deleted', 'fav_del(f, E) IS DISTINCT FROM f', true),
	('exclude', 'fav_contains(fav_exclude(f, E), E)', true), ('exclude[]', 'fav_contains(fav_exclude(f, ARRAY[E]), E)', false),
	('levels', 'fav_probe(NULL, NULL, coalesce(f, fav_new()), E)', false);
CREATE FUNCTION with_element(expression text, element text) RETURNS text LANGUAGE sql AS
$$ SELECT regexp_replace(expression, '\mE\M', replace(element, '\', '\\'), 'g') $$;
CREATE FUNCTION answer(size text, kind text, expression text, OUT answer text, OUT error text) LANGUAGE plpgsql AS $$
DECLARE
	hint text;
BEGIN
	EXECUTE format('SELECT %s FROM kinds WHERE size = %L AND kind = %L', expression, size, kind) INTO answer;
	answer := left(answer, 1);
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	answer := SQLSTATE;
	error := concat_ws('. ', SQLERRM, nullif(hint, ''));
END
$$;
CREATE TABLE answers AS
SELECT size, kind, element, call, CASE WHEN p.answer = a.answer AND p.error IS NOT NULL THEN p.answer ELSE concat(p.answer, ' ', a.answer) END AS answer, p.error
FROM kinds, elements, calls, LATERAL answer(size, kind, with_element(expression, present)) p, LATERAL answer(size, kind, with_element(expression, absent)) a
WHERE takes_pair OR element <> 'pair';
SELECT kind AS filter, element, max(answer) FILTER (WHERE call = 'contains') AS contains, max(answer) FILTER (WHERE call = '@>') AS "@>", max(answer) FILTER (WHERE call = '<@') AS "<@",
	max(answer) FILTER (WHERE call = 'any') AS "any", max(answer) FILTER (WHERE call = 'all') AS "all", max(answer) FILTER (WHERE call = 'filter') AS filter,
	max(answer) FILTER (WHERE call = 'add') AS add, max(answer) FILTER (WHERE call = 'add[]') AS "add[]", max(answer) FILTER (WHERE call = 'added') AS added,
	max(answer) FILTER (WHERE call = 'del') AS del, max(answer) FILTER (WHERE call = 'del[]') AS "del[]", max(answer) FILTER (WHERE call = 'deleted') AS deleted,
	max(answer) FILTER (WHERE call = 'exclude') AS exclude, max(answer) FILTER (WHERE call = 'exclude[]') AS "exclude[]", max(answer) FILTER (WHERE call = 'levels') AS levels
FROM answers WHERE size = 'small' GROUP BY kind, element ORDER BY kind COLLATE "C", element COLLATE "C";

-- The errors are the same for all calls, and name both kinds
\pset format unaligned
SELECT kind AS filter, element, error FROM answers WHERE error IS NOT NULL GROUP BY 1, 2, 3 ORDER BY kind COLLATE "C", element COLLATE "C", error;
\pset format aligned

-- Filters with slices, in the row and out of line, give the same results
SELECT other.* FROM answers small JOIN answers other USING (kind, element, call)
WHERE small.size = 'small' AND other.answer IS DISTINCT FROM small.answer;

-- Row after row: a filter out of line comes from the cache
SELECT size, count(*) FILTER (WHERE fav_contains(f, i)) AS numbers, count(*) FILTER (WHERE fav_contains(f, i::text)) AS texts,
	count(*) FILTER (WHERE i::text <@ f) AS contained, count(*) FILTER (WHERE fav_contains_any(f, ARRAY[i::text])) AS "any"
FROM kinds, generate_series(1000::bigint, 1299) i WHERE kind = 'bigint' AND size <> 'small' GROUP BY size ORDER BY size;
SELECT size, count(*) FILTER (WHERE fav_contains(f, lpad(i::text, 32, '0'))) AS texts
FROM kinds, generate_series(1000::bigint, 1299) i WHERE kind = 'uuid' AND size <> 'small' GROUP BY size ORDER BY size;
SELECT count(*) FROM kinds, generate_series(1000::bigint, 1299) i WHERE kind = 'uuid' AND size = 'large' AND fav_contains(f, i);
SELECT count(*) FROM kinds, generate_series(1000::bigint, 1299) i WHERE kind = 'pair' AND size = 'large' AND fav_contains(f, i);

-- Literals and parameters without a type, as drivers send them
SELECT kind, fav_contains(f, '42') AS contains, f @> '42' AS "@>", '42' <@ f AS "<@", fav_contains(f, '43') AS absent, fav_count(fav_add(f, '43')) AS added,
	fav_count(f + '43') AS plus, fav_count(fav_del(f, '42')) AS deleted, fav_contains(fav_exclude(f, '42'), '42') AS excluded
FROM kinds WHERE kind IN ('bigint', 'text') AND size = 'small' ORDER BY kind;
PREPARE contains AS SELECT fav_contains(f, $1) AS contains, f @> $1 AS "@>", $1 <@ f AS "<@" FROM kinds WHERE size = 'large' AND kind = $2;
PREPARE change AS SELECT fav_contains(fav_add(f, $1), $1) AS add, fav_contains(fav_del(f, $1), $1) AS del, fav_contains(fav_exclude(f, $1), $1) AS exclude, (f + $1) @> $1 AS "+"
FROM kinds WHERE size = 'small' AND kind = $2;
SELECT name, parameter_types FROM pg_prepared_statements ORDER BY name;
EXECUTE contains('42', 'bigint');
EXECUTE contains('43', 'bigint');
EXECUTE contains(' 42 ', 'bigint');
EXECUTE contains('00000000-0000-0000-0000-000000000042', 'uuid');
EXECUTE contains('{00000000000000000000000000000042}', 'uuid');
EXECUTE contains('00000000-0000-0000-0000-000000000043', 'uuid');
EXECUTE change('43', 'bigint');
EXECUTE change('00000000-0000-0000-0000-000000000043', 'uuid');
EXECUTE contains('junk', 'bigint');
EXECUTE contains('', 'bigint');
EXECUTE contains('4.2', 'bigint');
EXECUTE contains('9223372036854775808', 'bigint');
EXECUTE contains('42', 'uuid');
EXECUTE contains('42', 'bytea');
EXECUTE contains('42', 'pair');
EXECUTE contains(NULL, 'pair');
EXECUTE change('junk', 'bigint');
EXECUTE change('junk', 'uuid');
DEALLOCATE ALL;
-- there is no fav - text, and arrays need a type
\set VERBOSITY terse
SELECT f - '42' FROM kinds;
SELECT fav_contains_any(f, '{42}') FROM kinds;
\set VERBOSITY default

-- Every function of elements, with all that a driver may send for a number, an array or a uuid, as
-- a literal and as a parameter: nothing is silently taken for something else.
CREATE TABLE untyped (call text, expression text);
INSERT INTO untyped VALUES
	('contains', 'fav_contains(f, E)'), ('add', 'fav_count(fav_add(f, E)) - coalesce(fav_count(f), 0)'), ('del', 'fav_count(fav_del(f, E)) - coalesce(fav_count(f), 0)'),
	('exclude', 'fav_contains(fav_exclude(f, E), E)'), ('@>', 'f @> E'), ('<@', 'E <@ f'), ('+', 'fav_count(f + E) - coalesce(fav_count(f), 0)'), ('-', 'f - E'),
	('any', 'fav_contains_any(f, E)'), ('all', 'fav_contains_all(f, E)'), ('filter', 'fav_filter(f, E)'),
	('pair', 'fav_contains(f, E, E)'), ('add pair', 'fav_count(fav_add(f, E, E)) - coalesce(fav_count(f), 0)'), ('levels', 'fav_probe(NULL, NULL, f, E)'), ('union', 'fav_count(fav_union(f, E))');
-- a generic plan must not depend on the parameter
CREATE FUNCTION untyped_answer(kind text, expression text, element text, way text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	expression := format('SELECT %s FROM kinds WHERE size = %L AND kind = %L', with_element(expression, CASE way WHEN 'parameter' THEN '$1' ELSE quote_nullable(element) END), 'small', kind);
	IF way = 'literal' THEN
		EXECUTE expression INTO answer;
	ELSE
		EXECUTE 'PREPARE untyped AS ' || expression;
		EXECUTE format('EXECUTE untyped(%L)', element) INTO answer;
		DEALLOCATE untyped;
	END IF;
	RETURN coalesce(answer, 'NULL');
EXCEPTION WHEN OTHERS THEN
	PERFORM FROM pg_prepared_statements WHERE name = 'untyped';
	IF FOUND THEN DEALLOCATE untyped; END IF;
	RETURN CASE SQLSTATE WHEN '42725' THEN 'not unique' WHEN '42804' THEN 'other kind' WHEN '42P18' THEN 'an array?' WHEN '22P02' THEN CASE WHEN SQLERRM LIKE '%type fav%' THEN 'not a fav' ELSE 'not a ' || substring(SQLERRM FROM 'for type (\w+)') END ELSE SQLSTATE || ' ' || SQLERRM END;
END
$$;
CREATE TABLE untyped_answers AS
SELECT kind, element, way, call, untyped_answer(kind, expression, element, way) AS answer
FROM kinds, untyped, (VALUES ('42'), ('{42,43}'), ('{"42"}'), ('00000000-0000-0000-0000-000000000042'), (NULL)) e (element), (VALUES ('literal'), ('parameter')) w (way)
WHERE size = 'small';
SELECT kind AS filter, element, max(answer) FILTER (WHERE call = 'contains') AS contains, max(answer) FILTER (WHERE call = '@>') AS "@>", max(answer) FILTER (WHERE call = '<@') AS "<@",
	max(answer) FILTER (WHERE call = 'add') AS add, max(answer) FILTER (WHERE call = '+') AS "+", max(answer) FILTER (WHERE call = 'del') AS del, max(answer) FILTER (WHERE call = 'exclude') AS exclude,
	max(answer) FILTER (WHERE call = 'levels') AS levels, max(answer) FILTER (WHERE call = 'pair') AS pair, max(answer) FILTER (WHERE call = 'add pair') AS "add pair"
FROM untyped_answers WHERE way = 'parameter' GROUP BY kind, element ORDER BY kind COLLATE "C", element COLLATE "C";
SELECT call, element, array_agg(DISTINCT answer COLLATE "C") AS answers FROM untyped_answers WHERE call IN ('-', 'any', 'all', 'filter', 'union') AND way = 'parameter' GROUP BY call, element ORDER BY call COLLATE "C", element COLLATE "C";
-- literals and parameters give the same results
SELECT l.kind, l.call, l.element, l.answer AS literal, p.answer AS parameter FROM untyped_answers l JOIN untyped_answers p USING (kind, call) WHERE l.way = 'literal' AND p.way = 'parameter'
	AND l.element IS NOT DISTINCT FROM p.element AND l.answer <> p.answer ORDER BY 1, 2, 3;
-- an array without a type does not become an element of type text
SELECT fav_add(NULL, '{44,45,46}');
-- a text in braces is an element if it has a type, and in an array
CREATE TABLE braces (t text);
INSERT INTO braces VALUES ('{a}'), ('{44,45}'), ('{}');
SELECT bool_and(fav_add(fav_new(), t) @> t) AS added, bool_and(fav_add(fav_add(NULL, 'a'), t) @> t) AS added_to_text, bool_or(fav_del(fav_add(NULL, ARRAY[t]), t) @> t) AS deleted,
	bool_or(fav_exclude(fav_add(NULL, ARRAY[t]), t) @> t) AS excluded, fav_count(fav_agg(t)) AS aggregated, fav_agg(t) @> '{a}' AS contains
FROM braces;
PREPARE braces AS SELECT fav_add(NULL, ARRAY[$1]) @> $1 AS added, fav_contains_any(fav_del(fav_add(NULL, ARRAY['b', $1]), ARRAY[$1]), ARRAY[$1]) AS deleted;
EXECUTE braces('{a}');
DEALLOCATE braces;
SELECT (fav_stats(fav_add(NULL, '{'))).kind AS one_brace, (fav_stats(fav_add(NULL, '{a} '))).kind AS more_behind, (fav_stats(fav_add(NULL, ''))).kind AS none;
DO $$
DECLARE
	f fav;
	t text := '{a}';
BEGIN
	f := fav_add(f, ARRAY[t]);
	RAISE NOTICE 'variable: %', f @> t;
	f := fav_add(f, t);
END
$$;
DROP TABLE braces;
DROP FUNCTION untyped_answer;
DROP TABLE untyped, untyped_answers;

-- An empty filter accepts any kind, and its first element decides
SELECT (fav_stats(fav_add(f, 1))).kind, (fav_stats(fav_add(f, '1'))).kind, (fav_stats(fav_add(f, '{1}'::text[]))).kind,
	(fav_stats(fav_add(f, '00000000-0000-0000-0000-000000000001'::uuid))).kind, (fav_stats(fav_add(f, '\x01'::bytea))).kind, (fav_stats(fav_add(f, 1, 2))).kind,
	(fav_stats(fav_add(f, NULL::bigint))).kind, (fav_stats(fav_add(f, '{}'::bigint[]))).kind, (fav_stats(fav_exclude(f, 'a'))).kind
FROM (VALUES (fav_new()), (NULL)) v (f);

-- A filter without elements has no kind
SELECT n, slices, (fav_stats(f)).kind IS NULL AS no_kind, fav_contains(f, 'a') AS contains, (fav_stats(fav_add(f, 'a'))).kind, fav_add(f, 'a') @> 'a' AS found
FROM (SELECT n, (fav_stats(f)).slices, fav_del(f, ARRAY(SELECT generate_series(1, n))) AS f
	FROM (VALUES (1), (200)) v (n), fav_add(fav_new(1000000), ARRAY(SELECT generate_series(1, n))) f) a ORDER BY n;
-- but a filter with tombstones has one
SELECT (fav_stats(f)).kind, fav_count(f) AS count FROM fav_del(fav_exclude(fav_add(NULL, 1), 2), 1) f;
SELECT fav_add(f, 'a') FROM fav_exclude(NULL, 2) f;

-- Aggregates: the kind of the elements, or none without elements
SELECT (fav_stats(fav_agg(i))).kind AS "bigint", (fav_stats(fav_agg(i::text))).kind AS "text", (fav_stats(fav_agg(md5(i::text)::uuid))).kind AS "uuid",
	(fav_stats(fav_agg(int8send(i)))).kind AS "bytea", (fav_stats(fav_agg(i, i))).kind AS pair, (fav_stats(fav_agg(NULL::text))).kind AS only_null,
	(fav_stats(fav_agg(i, 0.01))).kind AS rate, (fav_stats(fav_agg(i, NULL::bigint))).kind AS half_null
FROM generate_series(1::bigint, 200) i;
SELECT fav_agg(a, b) = (SELECT fav_agg(a, b) FROM generate_series(20::bigint, 1, -1) a, generate_series(1::bigint, 20) b) AS same,
	count(*) FILTER (WHERE NOT fav_contains(f, a, b)) AS missing, fav_count(f) BETWEEN 380 AND 420 AS counted
FROM generate_series(1::bigint, 20) a, generate_series(1::bigint, 20) b,
	(SELECT fav_agg(a, b) AS f FROM generate_series(1::bigint, 20) a, generate_series(1::bigint, 20) b) p GROUP BY f;
SELECT fav_count(f) AS count, fav_contains(f, 1, 2) AS "(1,2)", fav_contains(f, 2, 1) AS "(2,1)"
FROM (SELECT fav_agg(a::bigint, b::bigint) AS f FROM (VALUES (3, 4), (NULL, 5), (1, 2), (5, NULL), (1, 2)) v (a, b)) p;

-- Unions: of one kind, or with an empty filter
SELECT a.kind, b.kind, x.kind AS "union" FROM kinds a, kinds b,
	LATERAL (SELECT coalesce(error, (SELECT (fav_stats(fav_union(a.f, b.f))).kind WHERE error IS NULL)) AS kind
		FROM answer('small', a.kind, format('fav_union(f, (SELECT f FROM kinds WHERE size = %L AND kind = %L))', 'small', b.kind))) x
WHERE a.size = 'small' AND b.size = 'small' AND (a.kind <= b.kind COLLATE "C") ORDER BY a.kind COLLATE "C", b.kind COLLATE "C";
SELECT fav_union(a.f, b.f) FROM kinds a, kinds b WHERE a.size = 'small' AND b.size = 'small' AND a.kind = 'bigint' AND b.kind = 'pair';
SELECT fav_union_agg(f) FROM kinds WHERE size = 'sliced' AND kind IN ('text', 'uuid');
SELECT fav_union_agg(f) FROM kinds WHERE size = 'small' AND kind IN ('text', 'uuid');
SELECT (fav_stats(fav_union_agg(f ORDER BY kind))).kind, (fav_stats(fav_union_agg(f ORDER BY kind DESC))).kind FROM kinds WHERE kind IN ('text', 'empty', 'NULL');
SELECT (fav_stats(fav_union_agg(f))).kind AS none FROM kinds WHERE kind IN ('empty', 'NULL');

-- Levels: any of them decides the kind, empty ones do not matter
CREATE TABLE levels AS
SELECT kind, base, exclusion FROM (SELECT array_agg(i) AS numbers FROM generate_series(1000::bigint, 1199) i) e, LATERAL (VALUES
	('bigint', (SELECT fav_base(i, 0.01, 0) FROM unnest(numbers || 42::bigint) i), fav_exclude(NULL, 42)),
	('text', (SELECT fav_base(i::text, 0.01, 0) FROM unnest(numbers || 42::bigint) i), fav_exclude(NULL, '42')),
	('uuid', (SELECT fav_base(lpad(i::text, 32, '0')::uuid, 0.01, 0) FROM unnest(numbers || 42::bigint) i), fav_exclude(NULL, lpad('42', 32, '0')::uuid)),
	('bytea', (SELECT fav_base(decode(i::text, 'hex'), 0.01, 0) FROM unnest(numbers || 42::bigint) i), fav_exclude(NULL, '\x42'::bytea))) v (kind, base, exclusion);
SELECT kind, (fav_stats(base)).kind AS base, (fav_stats(base)).slices, (fav_stats(base)).recent, (fav_stats(exclusion)).kind AS exclusion FROM levels ORDER BY kind;
CREATE FUNCTION answer_levels(kind text, expression text, OUT answer text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT %s FROM levels WHERE kind = %L', expression, kind) INTO answer;
	answer := left(answer, 1);
EXCEPTION WHEN OTHERS THEN
	answer := SQLSTATE || ' ' || SQLERRM;
END
$$;
SELECT kind AS filter, element, answer_levels(kind, 'fav_probe(base, NULL, fav_new(), ' || present || ')') AS in_base,
	answer_levels(kind, 'fav_probe(base, NULL, exclusion, ' || present || ')') AS excluded
FROM levels, elements WHERE element <> 'pair' ORDER BY kind, element COLLATE "C";
-- the same from middle, and from a stack of all three
SELECT way, kind AS filter, element, way_answer AS answer, base_answer AS in_base
FROM levels, elements, (VALUES
		('middle alone', 'fav_probe(NULL, base, fav_new(), E)'), ('empty base', 'fav_probe(fav_new(), base, fav_new(), E)'),
		('empty middle', 'fav_probe(base, fav_new(), fav_new(), E)'), ('both', 'fav_probe(base, base, fav_new(), E)'),
		('stack', 'fav_contains(fav_stack(base, ''\x01'', fav_new()), E)'), ('stack of middle', 'fav_contains(fav_stack(''\x01'', base, fav_new()), E)'),
		('stack on an empty base', 'fav_contains(fav_stack(fav_new(), base, fav_new()), E)'),
		('copied stack', 'fav_contains((SELECT fav_stack(base, ''\x01'', fav_new()) OFFSET 0), E)'),
		('base alone', 'fav_probe(base, NULL, ''\x01'', E)'), ('middle and short', 'fav_probe(NULL, base, ''\x01'', E)'), ('empty base and short', 'fav_probe(fav_new(), base, ''\x01'', E)'),
		('both and short', 'fav_probe(base, base, ''\x01'', E)'), ('stack of base alone', 'fav_contains(fav_stack(base, ''\x01'', ''\x01''), E)'),
		('copied stack of base alone', 'fav_contains((SELECT fav_stack(base, ''\x01'', ''\x01'') OFFSET 0), E)'), ('copied stack of middle alone', 'fav_contains((SELECT fav_stack(''\x01'', base, ''\x01'') OFFSET 0), E)'),
		('copied stack of both and short', 'fav_contains((SELECT fav_stack(base, base, ''\x01'') OFFSET 0), E)'),
		('copied stack on an empty base', 'fav_contains((SELECT fav_stack(fav_new(), base, fav_new()) OFFSET 0), E)')) w (way, expression),
	LATERAL (SELECT answer_levels(kind, with_element(expression, present)) AS way_answer,
		answer_levels(kind, 'fav_probe(base, NULL, fav_new(), ' || present || ')') AS base_answer) a
WHERE element <> 'pair' AND way_answer IS DISTINCT FROM base_answer ORDER BY 1, 2, 3;
SELECT fav_probe(base, NULL, exclusion, 1000) AS other, fav_probe(base, base, exclusion, 42) AS excluded, fav_probe(base, fav_exclude(NULL, 42), fav_new(), 42) AS in_middle,
	fav_probe(base, fav_exclude(NULL, 42), fav_add(NULL, '42'::bigint), '42') AS added_again, fav_stack(base, '\x01', exclusion) @> '42' AS stacked,
	(SELECT fav_stack(base, '\x01', exclusion) OFFSET 0) @> '42' AS copied
FROM levels WHERE kind = 'bigint';
-- levels of different kinds are an error
SELECT a.kind, b.kind, answer_levels(a.kind, format('fav_stack(base, ''\x01'', (SELECT exclusion FROM levels WHERE kind = %L)) IS NOT NULL', b.kind)) AS recent,
	answer_levels(a.kind, format('fav_stack(base, (SELECT base FROM levels WHERE kind = %L), fav_new()) IS NOT NULL', b.kind)) AS middle
FROM levels a, levels b ORDER BY 1, 2;
SELECT fav_stack(base, '\x01', fav_add(NULL, 1, 2)) FROM levels WHERE kind = 'bigint';
SELECT fav_stack(base, (SELECT base FROM levels WHERE kind = 'uuid'), '\x01') FROM levels WHERE kind = 'bigint';
SELECT fav_probe(base, (SELECT base FROM levels WHERE kind = 'uuid'), '\x01', 42) FROM levels WHERE kind = 'bigint';
-- levels of different seeds, too
SELECT fav_stack(base, fav_add(fav_new(seed => 1), 1), '\x01') FROM levels WHERE kind = 'bigint';
SELECT fav_probe(base, fav_add(fav_new(seed => 1), 1), '\x01', 42) FROM levels WHERE kind = 'bigint';
-- The short form of the empty filter means that there is no such level, and the stack keeps the seed of the others; NULL that there is no row
SELECT fav_probe(f, e, e, 5) AS contains, fav_probe(e, f, e, 5) AS in_middle, fav_contains(fav_stack(f, e, e), 5) AS stacked, fav_stack(f, e, e) = f AS same, fav_stack(e, f, e) = f AS middle,
	fav_probe(f, e, e, 50000) AS absent, fav_probe(f, fav_exclude(fav_new(seed => 7), 5), e, 5) AS excluded, fav_probe(e, e, e, 5) AS nothing, fav_stack(e, e, e) = e AS no_stack
FROM (SELECT fav_base(i, 0.01, 7), '\x01'::fav FROM generate_series(1::bigint, 300) i) v (f, e);
SELECT fav_probe(NULL, NULL, NULL, 5) AS no_row, fav_probe(NULL, NULL, NULL, 1, 2) AS no_row, fav_probe(f, f, NULL, 5) AS no_recent, fav_probe(f, NULL, fav_new(), NULL::bigint) AS no_element,
	fav_probe(f, NULL, fav_new(), 1, NULL) AS no_element, fav_probe(f, NULL, fav_new(), 5) AS only_base, fav_stack(f, NULL, f) IS NULL AS no_stack, fav_probe_at(NULL, NULL, NULL, 1, 5) AS no_row,
	fav_probe_at(f, NULL, fav_new(), 1, 5) AS not_dated, fav_probe_at(f, NULL, fav_new(), NULL, 5) AS no_period, fav_probe_at(f, NULL, fav_new(), 1, NULL::bigint) AS no_element
FROM (SELECT fav_base(i, 0.01, 0) FROM generate_series(1::bigint, 300) i) v (f);
-- A call that is replaced by a probe gives the same: NULL if the element is NULL, false if there is no filter
CREATE VIEW stacks AS SELECT kind, fav_stack(base, '\x01', fav_new()) AS filter FROM levels;
SELECT x, fav_contains(filter, x) IS NOT DISTINCT FROM copied AS same, fav_contains(filter, x), x <@ filter AS contained, NOT fav_contains(filter, x) AS negated
FROM (VALUES (42), (1000), (NULL::bigint)) v (x) LEFT JOIN stacks ON kind = 'bigint' AND x <> 1000, LATERAL (SELECT fav_contains((SELECT filter OFFSET 0), x) AS copied) c ORDER BY x;
SELECT fav_contains(filter, NULL::bigint) IS NULL AS no_element, fav_contains(filter, 42), NOT fav_contains(filter, 43) AS negated FROM stacks WHERE kind = 'bigint';
SELECT count(*) FROM (VALUES (42), (99999), (NULL::bigint)) v (x), stacks WHERE kind = 'bigint' AND NOT fav_contains(filter, x);
CREATE SEQUENCE twice;
SELECT fav_contains(filter, nextval('twice') + 41) AS once, currval('twice') FROM stacks WHERE kind = 'bigint';
DROP SEQUENCE twice;
DROP VIEW stacks;

DROP TABLE kinds, elements, calls, answers, levels;
DROP FUNCTION answer, answer_levels, with_element;
