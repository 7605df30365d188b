-- A PL/pgSQL variable that holds a filter is changed in place since PostgreSQL 18, and copied
-- before.  The values are the same.

-- The same operations on two variables: f is changed in place, g is copied each time, because the
-- argument of the call is not the variable itself.
CREATE FUNCTION same_bytes(kind text, start fav, rounds int, spread int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f fav := start;
	g fav := start;
	x bigint;
	many bigint[];
	what int;
	most int := 0;
BEGIN
	FOR i IN 1..rounds LOOP
		x := abs(hashint8(i)) % spread;
		what := abs(hashint8(-i)) % 100;
		-- now and then an array, mostly a short one
		IF what >= 97 THEN
			many := ARRAY(SELECT abs(hashint8(i * 10000::bigint + j)) % spread FROM generate_series(1, CASE WHEN what = 99 THEN 1 + i % 6000 ELSE 1 + i % 200 END) j);
		END IF;
		IF kind = 'bigint' THEN
			CASE
				WHEN what < 60 THEN f := fav_add(f, x); g := fav_add(fav_union(g, NULL), x);
				WHEN what < 90 THEN f := fav_del(f, x); g := fav_del(fav_union(g, NULL), x);
				WHEN what < 94 THEN f := fav_exclude(f, x); g := fav_exclude(fav_union(g, NULL), x);
				WHEN what < 97 THEN f := f + x; f := f - (x + 1); g := (fav_union(g, NULL) + x) - (x + 1);
				WHEN what = 97 THEN f := fav_del(f, many); g := fav_del(fav_union(g, NULL), many);
				WHEN i % 3 = 0 THEN f := fav_exclude(f, many); g := fav_exclude(fav_union(g, NULL), many);
				ELSE f := fav_add(f, many); g := fav_add(fav_union(g, NULL), many);
			END CASE;
		ELSIF kind = 'text' THEN
			CASE
				WHEN what < 60 THEN f := fav_add(f, x::text); g := fav_add(fav_union(g, NULL), x::text);
				WHEN what < 90 THEN f := fav_del(f, x::text); g := fav_del(fav_union(g, NULL), x::text);
				WHEN what < 97 THEN f := fav_exclude(f, x::text); g := fav_exclude(fav_union(g, NULL), x::text);
				ELSE f := fav_add(f, many::text[]); g := fav_add(fav_union(g, NULL), many::text[]);
			END CASE;
		ELSE
			CASE
				WHEN what < 60 THEN f := fav_add(f, x, x % 7); g := fav_add(fav_union(g, NULL), x, x % 7);
				WHEN what < 95 THEN f := fav_del(f, x, x % 7); g := fav_del(fav_union(g, NULL), x, x % 7);
				ELSE f := fav_exclude(f, x, x % 7); g := fav_exclude(fav_union(g, NULL), x, x % 7);
			END CASE;
		END IF;
		-- reading in between finishes the edit
		IF i % 50 = 0 AND kind = 'bigint' THEN
			ASSERT fav_contains(f, x) = fav_contains(g, x), format('element in round %s', i);
			ASSERT fav_contains_any(f, ARRAY[x, x + 1]) = fav_contains_any(g, ARRAY[x, x + 1]), format('any in round %s', i);
			ASSERT fav_contains_all(f, ARRAY[x, x + 1]) = fav_contains_all(g, ARRAY[x, x + 1]), format('all in round %s', i);
			ASSERT fav_filter(f, ARRAY[x, x + 1, x + 2]) = fav_filter(g, ARRAY[x, x + 1, x + 2]), format('filter in round %s', i);
			ASSERT fav_count(f) = fav_count(g), format('count in round %s', i);
		END IF;
		IF i % 500 = 0 OR i = rounds THEN
			ASSERT f = g, format('bytes in round %s', i);
			ASSERT fav_stats(f) = fav_stats(g), format('stats in round %s', i);
			most := greatest(most, (fav_stats(g)).slices);
		END IF;
	END LOOP;
	ASSERT f::bytea = g::bytea AND f::text::fav = g, 'the value is not valid';
	RETURN CASE WHEN most > 1 THEN 'same, in several slices' ELSE 'same' END;
END
$$;
SELECT kind, spread, same_bytes(kind, start, rounds, spread)
FROM (VALUES ('bigint', NULL::fav, 3000, 100), ('bigint', NULL, 6000, 3000), ('bigint', fav_new(300, seed => 7), 6000, 20000), ('bigint', fav_new(10000, 0.3, 2), 4000, 9000),
	('text', NULL, 3000, 3000), ('pair', NULL, 3000, 3000)) v (kind, start, rounds, spread);
SELECT same_bytes('bigint', (SELECT fav_agg(i) FROM generate_series(1::bigint, 5000) i), 3000, 6000);
DROP FUNCTION same_bytes;

-- Every kind, alone and in arrays, from NULL, from an empty filter and from one in a table
CREATE TABLE filters (id int PRIMARY KEY, f fav);
ALTER TABLE filters ALTER f SET STORAGE EXTERNAL;
INSERT INTO filters SELECT 1, fav_agg(i) FROM generate_series(1::bigint, 50000) i;
INSERT INTO filters SELECT 2, fav_add(NULL, ARRAY[1, 2, 3]);
DO $$
DECLARE
	f fav;
	g fav;
	u uuid;
BEGIN
	FOR i IN 1..300 LOOP f := fav_add(f, i); END LOOP;
	ASSERT f = fav_add(NULL, ARRAY(SELECT generate_series(1, 300))), 'bigint';
	f := NULL;
	FOR i IN 1..300 LOOP f := fav_add(f, i::text); END LOOP;
	ASSERT f = fav_add(NULL, ARRAY(SELECT generate_series(1, 300)::text)), 'text';
	f := fav_new();
	FOR i IN 1..300 LOOP u := lpad(i::text, 32, '0'); f := fav_add(f, u); END LOOP;
	ASSERT f = fav_add(NULL, ARRAY(SELECT lpad(i::text, 32, '0')::uuid FROM generate_series(1, 300) i)), 'uuid';
	FOR i IN 1..300 LOOP f := fav_del(f, lpad(i::text, 32, '0')); END LOOP;
	ASSERT fav_count(f) = 0, 'uuid, as text';
	-- a filter loses its kind with its last element
	f := NULL;
	FOR i IN 1..100 LOOP f := fav_add(f, i); END LOOP;
	FOR i IN 1..100 LOOP f := fav_del(f, i); END LOOP;
	ASSERT NOT fav_contains(f, 'text') AND NOT fav_contains_any(f, ARRAY['text']) AND (fav_stats(f)).kind IS NULL, 'empty';
	FOR i IN 1..300 LOOP f := fav_add(f, int8send(i)); END LOOP;
	ASSERT f = fav_add(NULL, ARRAY(SELECT int8send(i) FROM generate_series(1, 300) i)), 'bytea';
	f := NULL;
	FOR i IN 1..300 LOOP f := fav_add(f, i, -i); END LOOP;
	g := NULL;
	FOR i IN 1..300 LOOP g := fav_add(fav_union(g, NULL), i, -i); END LOOP;
	ASSERT f = g AND fav_contains(f, 3, -3) AND NOT fav_contains(f, -3, 3), 'pair';
	SELECT filters.f INTO f FROM filters WHERE id = 1;
	FOR i IN 50001..50300 LOOP f := fav_add(f, i); END LOOP;
	ASSERT f = (SELECT fav_add(filters.f, ARRAY(SELECT generate_series(50001, 50300))) FROM filters WHERE id = 1), 'from a table';
	-- text for a filter of integers
	FOR i IN 50301..50400 LOOP f := fav_add(f, i::text); END LOOP;
	ASSERT fav_contains_all(f, ARRAY(SELECT generate_series(50001, 50400))) AND (fav_stats(f)).kind = 'bigint', 'integers as text';
	-- NULLs change nothing, and nothing is deleted from NULL
	g := f;
	f := fav_add(f, NULL::bigint); f := fav_del(f, NULL::bigint[]); f := fav_exclude(f, ARRAY[NULL]::bigint[]); f := fav_add(f, '{}'::bigint[]);
	ASSERT f = g, 'NULL elements';
	f := NULL; f := fav_del(f, 1); f := fav_del(f, ARRAY[1]); f := fav_add(f, NULL::text);
	ASSERT f IS NULL, 'NULL';
	f := fav_exclude(f, 1);
	ASSERT NOT fav_contains(f, 1) AND f = fav_exclude(NULL, 1), 'exclude from NULL';
	-- elements that are computed from the variable
	f := fav_add(NULL, 1);
	FOR i IN 1..300 LOOP f := fav_add(f, fav_count(f) + 1000 * i); END LOOP;
	ASSERT fav_count(f) BETWEEN 295 AND 305, 'the variable as an element';
	f := NULL;
	FOR i IN 1..100 LOOP f := fav_add(f, coalesce(f::bytea, '')); END LOOP;
	ASSERT fav_count(f) = 100, 'the value as an element';
	FOR i IN 1..100 LOOP f := fav_union(f, f); END LOOP;
	ASSERT fav_count(f) = 100, 'union with itself';
END
$$;

-- Copies do not change, whichever variable changes
CREATE TYPE boxed AS (id int, f fav);
DO $$
DECLARE
	f fav;
	g fav;
	h fav;
	all_of fav[];
	b boxed;
	r record;
BEGIN
	FOR i IN 1..500 LOOP f := fav_add(f, i); END LOOP;
	g := f;
	h := g;
	all_of := ARRAY[f, g];
	b.f := f;
	r := ROW(7, f);
	SELECT 8 AS id, f AS f INTO r;
	FOR i IN 501..600 LOOP f := fav_add(f, i); END LOOP;
	FOR i IN 1..100 LOOP g := fav_del(g, i); END LOOP;
	ASSERT fav_contains_all(f, ARRAY(SELECT generate_series(1, 600))), 'f';
	ASSERT NOT fav_contains_any(g, ARRAY(SELECT generate_series(1, 100))) AND fav_contains_all(g, ARRAY(SELECT generate_series(101, 500))), 'g';
	ASSERT h = fav_add(NULL, ARRAY(SELECT generate_series(1, 500))), 'h';
	ASSERT all_of[1] = h AND all_of[2] = h AND b.f = h AND r.f = h, 'array, composite, record';
	-- fields and elements can be changed, too
	FOR i IN 501..600 LOOP
		b.f := fav_add(b.f, i);
		r.f := fav_add(r.f, i);
		all_of[1] := fav_add(all_of[1], i);
	END LOOP;
	ASSERT b.f = f AND r.f = f AND all_of[1] = f AND all_of[2] = h, 'changed fields';
	-- swapped, and through nested calls
	h := f; f := g; g := h;
	f := fav_add(f, 1000); g := fav_add(g, 2000);
	ASSERT fav_contains(f, 1000) AND NOT fav_contains(f, 2000) AND fav_contains(g, 2000) AND NOT fav_contains(g, 1000) AND NOT fav_contains_any(h, ARRAY[1000, 2000]), 'swapped';
	f := f; f := fav_union(f, NULL); f := coalesce(f, g); f := fav_add(fav_del(fav_exclude(f, 3000), 1000), 4000);
	ASSERT fav_contains(f, 4000) AND NOT fav_contains_any(f, ARRAY[1000, 3000]) AND fav_contains(f, 200), 'nested calls';
	-- from one variable to another
	FOR i IN 1..300 LOOP g := fav_add(f, 5000 + i); END LOOP;
	ASSERT fav_contains(g, 5300) AND NOT fav_contains(g, 5299) AND NOT fav_contains(f, 5300), 'to another variable';
END
$$;

-- A failed change leaves the variable unchanged
DO $$
DECLARE
	f fav;
	g fav;
	failed int := 0;
BEGIN
	FOR i IN 1..1000 LOOP
		f := fav_add(f, i);
		IF i % 100 <> 0 THEN CONTINUE; END IF;
		g := f;
		BEGIN f := fav_add(f, 'junk'); EXCEPTION WHEN invalid_text_representation THEN failed := failed + 1; END;
		BEGIN f := fav_add(f, ARRAY['5001', '5002', 'junk']); EXCEPTION WHEN invalid_text_representation THEN failed := failed + 1; END;
		BEGIN f := fav_del(f, ARRAY['1', '2', '']); EXCEPTION WHEN invalid_text_representation THEN failed := failed + 1; END;
		BEGIN f := fav_exclude(f, '\x01'::bytea); EXCEPTION WHEN datatype_mismatch THEN failed := failed + 1; END;
		BEGIN f := fav_add(f, 1, 2); EXCEPTION WHEN datatype_mismatch THEN failed := failed + 1; END;
		BEGIN f := fav_add(f, 1 / (i % 10)); EXCEPTION WHEN division_by_zero THEN failed := failed + 1; END;
		BEGIN f := fav_add(fav_add(f, 7000), 1 / (i % 10)); EXCEPTION WHEN division_by_zero THEN failed := failed + 1; END;
		BEGIN f := fav_add(fav_add(f, 7000), 'junk'); EXCEPTION WHEN invalid_text_representation THEN failed := failed + 1; END;
		BEGIN f := fav_union(fav_add(f, 7000), fav_new(seed => 5) + 1); EXCEPTION WHEN OTHERS THEN failed := failed + 1; END;
		ASSERT f = g, format('round %s', i);
		-- changes in a block that fails later remain, as with every variable
		BEGIN f := fav_add(f, 10000 + i); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN failed := failed + 1; END;
		ASSERT fav_contains(f, 10000 + i), 'a change before the error';
	END LOOP;
	ASSERT failed = 100, failed;
	-- an empty filter has no kind after a failed change
	f := fav_new();
	f := fav_add(f, 1); f := fav_del(f, 1);
	BEGIN f := fav_add(f, ARRAY[1, 2 / (SELECT 0)]); EXCEPTION WHEN division_by_zero THEN NULL; END;
	f := fav_add(f, 'text');
	ASSERT f = fav_add(NULL, 'text'), 'kind';
END
$$;
-- also a change that reaches a limit: 32 slices, all full
DO $$
DECLARE
	f fav;
	g fav;
	many bigint[] := ARRAY(SELECT generate_series(2000001, 2000300));
	failed int := 0;
BEGIN
	FOR s IN 1..32 LOOP
		f := fav_union(f, (SELECT fav_agg(i + 1000 * s, 0.1 / (1 + s)) FROM generate_series(1::bigint, 256) i));
	END LOOP;
	ASSERT (fav_stats(f)).slices = 32, (fav_stats(f)).slices;
	-- one by one: only the element that failed is missing
	FOR i IN 1..20000 LOOP
		g := CASE WHEN i % 1000 = 0 THEN f ELSE g END;
		BEGIN
			f := fav_add(f, 1000000 + i);
		EXCEPTION WHEN program_limit_exceeded THEN
			ASSERT fav_contains(f, 1000000 + i - 1), 'the element before';
			failed := failed + 1;
			EXIT;
		END;
	END LOOP;
	ASSERT failed = 1, 'there was no limit';
	g := f;
	BEGIN f := fav_add(f, many); EXCEPTION WHEN program_limit_exceeded THEN failed := failed + 1; END;
	ASSERT failed = 2 AND f = g, 'array';
	f := fav_del(f, 1001);
	ASSERT NOT fav_contains(f, 1001), 'delete afterwards';
END
$$;

-- Functions: arguments, results, INOUT, recursion, a variable that a query reads
CREATE FUNCTION add_range(f fav, a int, b int) RETURNS fav LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN a..b LOOP f := fav_add(f, i); END LOOP;
	RETURN f;
END
$$;
CREATE FUNCTION add_inout(INOUT f fav, x bigint, OUT n bigint) LANGUAGE plpgsql AS $$
BEGIN
	f := fav_add(f, x);
	n := fav_count(f);
END
$$;
CREATE FUNCTION add_out(x int, OUT f fav) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..x LOOP f := fav_add(f, i); END LOOP;
END
$$;
CREATE FUNCTION add_down(f fav, x int) RETURNS fav LANGUAGE plpgsql AS $$
BEGIN
	IF x = 0 THEN RETURN f; END IF;
	f := fav_add(f, x);
	RETURN add_down(f, x - 1);
END
$$;
CREATE FUNCTION add_sql(f fav, x bigint) RETURNS fav LANGUAGE sql AS 'SELECT fav_add($1, $2)';
CREATE FUNCTION add_sql_apart(f fav, x bigint) RETURNS fav LANGUAGE sql VOLATILE SET work_mem = '1MB' AS 'SELECT fav_add($1, $2)';
CREATE FUNCTION add_each(n int) RETURNS SETOF fav LANGUAGE plpgsql AS $$
DECLARE
	f fav;
BEGIN
	FOR i IN 1..n LOOP f := fav_add(f, i); RETURN NEXT f; END LOOP;
END
$$;
CREATE FUNCTION add_rows(n int) RETURNS TABLE (i int, f fav) LANGUAGE plpgsql AS $$
BEGIN
	FOR j IN 1..n LOOP i := j; f := fav_add(f, j); RETURN NEXT; END LOOP;
END
$$;
SELECT add_range(NULL, 1, 500) = fav_add(NULL, ARRAY(SELECT generate_series(1, 500))) AS range, fav_count(add_range(add_range(NULL, 1, 50), 51, 100)) AS twice,
	fav_contains(add_range(f, 60000, 60100), 60050) AS stored, fav_contains(f, 60050) AS stays, fav_count(add_out(128)) AS "out", fav_count(add_down(NULL, 100)) AS down
FROM filters WHERE id = 1;
SELECT i, fav_count(f) AS count, f @> 1 AS first, f @> i AS last, f @> i + 1 AS next FROM add_rows(5);
SELECT count(*), count(DISTINCT f), max(fav_count(f)) FROM add_each(100) f;
DO $$
DECLARE
	f fav;
	g fav;
	n bigint;
BEGIN
	FOR i IN 1..300 LOOP
		f := add_range(f, i, i);
		IF i = 200 THEN g := f; END IF;
	END LOOP;
	ASSERT f = add_out(300) AND g = add_out(200), 'function';
	FOR i IN 301..400 LOOP SELECT a.f, a.n INTO f, n FROM add_inout(f, i) a; END LOOP;
	ASSERT f = add_out(400) AND n BETWEEN 395 AND 405, 'inout';
	FOR i IN 401..500 LOOP f := add_sql(f, i); f := add_sql_apart(f, 100 + i); END LOOP;
	ASSERT fav_contains_all(f, ARRAY(SELECT generate_series(1, 600))), 'sql';
	-- a function gets a copy if it keeps its argument
	g := add_range(f, 601, 700);
	ASSERT fav_contains(g, 650) AND NOT fav_contains(f, 650), 'argument';
	-- queries that read the variable repeatedly, with custom and generic plans
	FOR i IN 701..720 LOOP
		f := fav_add(f, i);
		SELECT count(*) INTO n FROM generate_series(701, 720) x WHERE fav_contains(f, x);
		ASSERT n = i - 700, format('query in round %s', i);
		ASSERT (SELECT fav_count(fav_union_agg(fav_add(f, x))) > 0 FROM generate_series(1, 3) x), 'aggregate';
		ASSERT (SELECT count(DISTINCT fav_add(f, 9000 + x)) FROM generate_series(1, 3) x) = 3, 'distinct';
		ASSERT (SELECT array_agg(y ORDER BY y) = array_agg(y ORDER BY y::bytea) FROM (SELECT fav_add(f, 9000 + x % 2) AS y FROM generate_series(1, 4) x OFFSET 0) s), 'order';
	END LOOP;
	ASSERT NOT fav_contains_any(f, ARRAY[9000, 9001, 9002, 9003]), 'queries change nothing';
	EXECUTE 'SELECT fav_add($1, 9100)' INTO g USING f;
	ASSERT fav_contains(g, 9100) AND NOT fav_contains(f, 9100), 'dynamic';
END
$$;

-- A query that uses one result twice: each use has its own copy
SET plan_cache_mode = force_generic_plan;
DO $$
DECLARE
	f fav;
BEGIN
	f := fav_add(f, 5); f := fav_add(f, 6);
	ASSERT (SELECT ROW(a @> 1, a @> 2, b @> 1, b @> 2, y @> 1, y @> 2) = ROW(true, false, false, true, false, false)
		FROM (SELECT fav_add(y, 1) AS a, fav_add(y, 2) AS b, y FROM (SELECT fav_add(f, 7) AS y OFFSET 0) s OFFSET 0) t), 'subquery';
	ASSERT (SELECT bool_and(ROW(a @> 1, a @> 2, b @> 1, b @> 2, y @> 1, y @> 2) = ROW(true, false, false, true, false, false))
		FROM (SELECT fav_add(y, 1) AS a, fav_add(y, 2) AS b, y FROM (SELECT fav_add(f, 7) AS y FROM generate_series(1, 2) OFFSET 0) s, generate_series(1, 2) OFFSET 0) t), 'join';
	ASSERT (SELECT ROW(a @> 1, a @> 2, b @> 1, b @> 2, y @> 1, y @> 2) = ROW(true, false, false, true, false, false)
		FROM (SELECT fav_add(y, 1) AS a, fav_add(y, 2) AS b, y FROM fav_add(f, 7) y OFFSET 0) t), 'function';
	ASSERT (SELECT ROW(a @> 1, a @> 2, b @> 1, b @> 2, y @> 1, y @> 2) = ROW(true, false, false, true, false, false)
		FROM (WITH s AS MATERIALIZED (SELECT fav_add(f, 7) AS y) SELECT fav_add(y, 1) AS a, fav_add(y, 2) AS b, y FROM s OFFSET 0) t), 'with';
	ASSERT (SELECT CASE y WHEN fav_add(y, 1) THEN false ELSE NOT y @> 1 END FROM (SELECT fav_add(f, 7) AS y OFFSET 0) s), 'case';
	ASSERT fav_count(f) = 2, 'the variable';
END
$$;
RESET plan_cache_mode;

-- Into tables and back; a record of a loop; RETURNING
CREATE TABLE kept (n int, f fav);
DO $$
DECLARE
	f fav;
	r record;
	k kept;
BEGIN
	FOR i IN 1..1000 LOOP
		f := fav_add(f, i);
		IF i % 100 = 0 THEN INSERT INTO kept VALUES (i, f); END IF;
	END LOOP;
	FOR r IN SELECT * FROM kept ORDER BY n LOOP
		r.f := fav_add(r.f, -1);
		f := r.f;
		f := fav_add(f, -2);
		UPDATE kept SET f = add_sql(fav_add(r.f, -3), -4) WHERE n = r.n RETURNING * INTO k;
		ASSERT fav_contains_all(k.f, ARRAY[-1, -3, -4]) AND NOT fav_contains(k.f, -2) AND fav_contains_all(f, ARRAY[-1, -2]) AND NOT fav_contains(f, -3), 'loop';
	END LOOP;
END
$$;
SELECT count(*), count(*) FILTER (WHERE f = fav_add(fav_add(NULL, ARRAY(SELECT generate_series(1, n))), ARRAY[-1, -3, -4])) AS same FROM kept;

-- A trigger that sets a field: a call that changes nothing does not write the TOAST value again
CREATE FUNCTION add_seven() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.f := fav_add(NEW.f, 7);
	NEW.f := fav_del(NEW.f, -1000);
	RETURN NEW;
END
$$;
CREATE TRIGGER add_seven BEFORE UPDATE ON filters FOR EACH ROW EXECUTE FUNCTION add_seven();
UPDATE filters SET f = fav_del(f, 7);
UPDATE filters SET id = id WHERE id = 1;
CREATE TEMP TABLE size AS SELECT pg_table_size('filters') AS bytes;
UPDATE filters SET id = id WHERE id = 1;
SELECT pg_table_size('filters') - bytes < 50000 AS not_written, f @> 7 AS "7" FROM size, filters WHERE id = 1;
DROP TABLE size;

-- A procedure that commits and rolls back: the variable belongs to the procedure
CREATE PROCEDURE in_transactions() LANGUAGE plpgsql AS $$
DECLARE
	f fav := (SELECT filters.f FROM filters WHERE id = 2);
	g fav;
	r record;
BEGIN
	FOR i IN 101..500 LOOP
		f := fav_add(f, i);
		IF i % 50 = 0 THEN INSERT INTO kept VALUES (-i, f); COMMIT; END IF;
		IF i % 75 = 0 THEN INSERT INTO kept VALUES (0, f); ROLLBACK; END IF;
	END LOOP;
	SELECT filters.f INTO g FROM filters WHERE id = 1;
	FOR r IN SELECT i FROM generate_series(1, 200) i LOOP
		g := fav_add(g, 100000 + r.i);
		IF r.i % 20 = 0 THEN COMMIT; DELETE FROM kept WHERE n = 0; END IF;
	END LOOP;
	ASSERT fav_contains_all(f, ARRAY(SELECT generate_series(101, 500)) || ARRAY[1, 2, 3]), 'f';
	ASSERT fav_contains_all(g, ARRAY(SELECT generate_series(100001, 100200)) || ARRAY[1, 50000]), 'g';
	COMMIT;
END
$$;
CALL in_transactions();
SELECT count(*) FILTER (WHERE fav_contains_all(f, ARRAY(SELECT generate_series(101, -n)))) AS whole, count(*) FROM kept WHERE n < 0;

-- An open cursor sees the old value of the variable
DO $$
DECLARE
	f fav;
	c refcursor;
	x int;
	n int := 0;
BEGIN
	FOR i IN 1..200 LOOP f := fav_add(f, i); END LOOP;
	OPEN c FOR SELECT i FROM generate_series(1, 400) i WHERE fav_contains(f, i);
	LOOP
		FETCH c INTO x;
		EXIT WHEN NOT FOUND;
		n := n + 1;
		f := fav_add(f, 200 + x);
		f := fav_del(f, x);
	END LOOP;
	ASSERT n BETWEEN 200 AND 205 AND fav_contains(f, 400) AND NOT fav_contains(f, 200), n;
END
$$;

-- Memory is bounded, and the changes are in place if the server supports it.  (A million changes
-- there, because they take a second.)
DO $$
DECLARE
	latest boolean := current_setting('server_version_num')::int >= 180000;
	f fav;
	g fav;
	n int := CASE WHEN latest THEN 1000000 ELSE 10000 END;
	bytes bigint;
	variables int;
	before bigint;
BEGIN
	FOR i IN 1..n LOOP
		f := fav_add(f, i % 5000);
		g := fav_add(g, (i % 300)::text);
		IF i % 3 = 0 THEN f := fav_del(f, i % 5000); END IF;
		IF i % 1000 = 0 THEN f := fav_add(f, ARRAY[i, i + 1]); f := fav_del(f, ARRAY[i, i + 1]); END IF;
		CONTINUE WHEN i NOT IN (n / 5, n);
		SELECT sum(total_bytes), count(*) FILTER (WHERE name = 'fav variable') INTO bytes, variables FROM pg_backend_memory_contexts;
		ASSERT variables = CASE WHEN latest THEN 2 ELSE 0 END, format('%s variables', variables);
		ASSERT before IS NULL OR bytes - before < 2000000, format('%s bytes more', bytes - before);
		before := bytes;
	END LOOP;
END
$$;

DROP TABLE filters, kept;
DROP TYPE boxed;
DROP PROCEDURE in_transactions;
DROP FUNCTION add_range, add_inout, add_out, add_down, add_sql, add_sql_apart, add_each, add_rows, add_seven;
