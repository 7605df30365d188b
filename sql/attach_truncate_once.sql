-- TRUNCATE of many tables at once rebuilds filters once, or not at all if nothing is left.
SET client_min_messages = warning;
CREATE TABLE parts (k int, e int) PARTITION BY RANGE (k);
CREATE INDEX ON parts (k, e);
CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (k);
DO $$ BEGIN
	FOR i IN 0 .. 9 LOOP EXECUTE format('CREATE TABLE low_%s PARTITION OF low FOR VALUES FROM (%s) TO (%s)', i, 10 * i, 10 * i + 10); END LOOP;
END $$;
CREATE TABLE high PARTITION OF parts FOR VALUES FROM (100) TO (200);
SELECT fav_attach('parts', 'k', 'e');
SELECT fav_attach('parts', 'k', 'e', share => 30, name => 'shared');
CREATE TABLE family (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE child (PRIMARY KEY (k, e)) INHERITS (family);
CREATE TABLE grandchild (PRIMARY KEY (k, e)) INHERITS (child);
SELECT fav_attach('family', 'k', 'e');

-- counts how often all filters are built or removed
CREATE TABLE work (levels text);
CREATE FUNCTION count_work() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.work VALUES (TG_TABLE_NAME || ' ' || lower(TG_OP)); RETURN NULL; END $$;
CREATE TRIGGER count AFTER DELETE OR TRUNCATE ON parts_fav_levels EXECUTE FUNCTION count_work();
CREATE TRIGGER count AFTER DELETE OR TRUNCATE ON shared_fav_levels EXECUTE FUNCTION count_work();
CREATE TRIGGER count AFTER DELETE OR TRUNCATE ON family_fav_levels EXECUTE FUNCTION count_work();
CREATE FUNCTION fill() RETURNS void LANGUAGE sql BEGIN ATOMIC
	INSERT INTO parts SELECT i, i % 5 FROM generate_series(0, 199) i;
	INSERT INTO family VALUES (1, 1), (2, 1);
	INSERT INTO child VALUES (1, 2), (3, 1);
	INSERT INTO grandchild VALUES (1, 3), (4, 1);
END;
CREATE FUNCTION state() RETURNS TABLE (source text, keys bigint, elements bigint, missing bigint, stale bigint) LANGUAGE sql BEGIN ATOMIC
	SELECT filter::text, v.keys, v.elements, v.missing, v.stale FROM fav_attachments a, fav_verify(a.source, a.filter::text::name) v WHERE filter IS NOT NULL ORDER BY 1;
END;
CREATE PROCEDURE try(VARIADIC commands text[]) LANGUAGE plpgsql AS $$
DECLARE
	command text;
	found text;
BEGIN
	PERFORM fill();
	DELETE FROM work;
	FOREACH command IN ARRAY commands LOOP EXECUTE command; END LOOP;
	FOR found IN SELECT format('%s times %s', count(*), levels) FROM work GROUP BY levels ORDER BY levels COLLATE "C" LOOP RAISE WARNING '%', found; END LOOP;
	FOR found IN SELECT s::text FROM state() s LOOP RAISE WARNING '%', found; END LOOP;
	DELETE FROM parts;
	DELETE FROM family;
END $$;
CALL try('TRUNCATE parts');
CALL try('TRUNCATE low');
CALL try('TRUNCATE low_1, low_3, low_5, high');
CALL try('TRUNCATE low_1', 'TRUNCATE low_3');
CALL try('TRUNCATE ONLY low_1, low_2', 'INSERT INTO low_1 VALUES (11, 77)', 'TRUNCATE low_1', 'INSERT INTO low_1 VALUES (11, 78)', 'TRUNCATE low_1, low_3');
CALL try('TRUNCATE family');
CALL try('TRUNCATE ONLY family');
CALL try('TRUNCATE child');
CALL try('TRUNCATE parts, family');

-- Truncated where they are, because this transaction has created them
BEGIN;
CREATE TABLE new (k int, e int) PARTITION BY LIST (k);
CREATE TABLE new_1 PARTITION OF new FOR VALUES IN (1);
CREATE TABLE new_2 PARTITION OF new FOR VALUES IN (2);
CREATE INDEX ON new (k, e);
SELECT fav_attach('new', 'k', 'e');
INSERT INTO new VALUES (1, 1), (2, 1);
TRUNCATE new_1;
TRUNCATE new_2;
SELECT k, filter @> 1 FROM new_fav ORDER BY k;
INSERT INTO new VALUES (1, 2), (2, 2);
SAVEPOINT s;
TRUNCATE new_2, new_1;
SELECT k, filter @> 2 FROM new_fav ORDER BY k;
ROLLBACK TO s;
SELECT k, filter @> 2 FROM new_fav ORDER BY k;
TRUNCATE new_1; TRUNCATE new_2;
SELECT k, filter @> 2 FROM new_fav ORDER BY k;
COMMIT;

-- A trigger that fails in between
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
CREATE TRIGGER zz AFTER TRUNCATE ON new_1 EXECUTE FUNCTION fail();
INSERT INTO new VALUES (1, 3), (2, 3);
DO $$ BEGIN
	BEGIN
		TRUNCATE new_1, new_2;
	EXCEPTION WHEN raise_exception THEN NULL;
	END;
	DROP TRIGGER zz ON new_1;
	TRUNCATE new_1, new_2;
END $$;
SELECT missing, stale, keys FROM fav_verify('new');
SELECT k FROM new_fav;

SELECT fav_detach('parts', 'parts_fav'), fav_detach('parts', 'shared'), fav_detach('family'), fav_detach('new');
DROP PROCEDURE try;
DROP FUNCTION fill, state;
DROP TABLE parts, family, child, grandchild, new, work;
DROP FUNCTION count_work, fail;
