-- <name>_has where it was attacked: query shapes, rights, cached plans.

\set VERBOSITY terse

CREATE TABLE hidden (user_id int, post_id bigint, PRIMARY KEY (user_id, post_id));
INSERT INTO hidden SELECT 1, i FROM generate_series(1, 400, 2) i;
SELECT fav_attach('hidden', 'user_id', 'post_id');

-- One sub-select reads the levels, once for a constant key, and one looks up what they report
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS
	$$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query; END $$;
SELECT key, count(*) FILTER (WHERE line ~ '^ *InitPlan') AS once, count(*) FILTER (WHERE line ~ '^ *SubPlan') AS for_each_row
	FROM unnest('{1,i}'::text[]) key, plan_of(format('SELECT i FROM generate_series(1, 400) i WHERE NOT hidden_has(%s, i)', key)) line GROUP BY key ORDER BY key;
DROP FUNCTION plan_of;

-- PL/pgSQL plans casts without any query
CREATE TYPE answer AS (h bool);
CREATE FUNCTION as_answer(element bigint) RETURNS answer LANGUAGE sql STABLE RETURN ROW(hidden_has(1, element))::answer;
CREATE CAST (bigint AS answer) WITH FUNCTION as_answer AS ASSIGNMENT;
DO $$
DECLARE
	a answer;
BEGIN
	a := 1::bigint;
	RAISE NOTICE '%', a;
	a := 2::bigint;
	RAISE NOTICE '%', a;
END $$;

-- A constraint that calls it is no condition of a query
CREATE TABLE checked (id bigint CHECK (NOT hidden_has(1, id)));
INSERT INTO checked VALUES (2), (4);
SET constraint_exclusion = on;
SELECT * FROM checked WHERE id > 2;
SELECT * FROM checked WHERE hidden_has(1, id);
RESET constraint_exclusion;
DROP TABLE checked;

-- In groups of a set without an expression, the expression is NULL wherever it appears
SELECT hidden_has(1, i), NOT hidden_has(1, i) AS visible, count(*) FROM generate_series(1, 10) i
	GROUP BY GROUPING SETS ((hidden_has(1, i)), ()) HAVING hidden_has(1, i) IS NOT FALSE ORDER BY 1, 2;
SELECT NOT hidden_has(i % 3, i) AS visible, i % 3 AS r, count(*) FROM generate_series(1, 10) i
	GROUP BY ROLLUP (hidden_has(i % 3, i), i % 3) ORDER BY 1, 2, 3;

-- Policies of the source are those of the role that asks, also with plans that another role made
CREATE ROLE regress_fav_reader;
GRANT SELECT ON hidden, hidden_fav_levels TO regress_fav_reader;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE POLICY late ON hidden USING (post_id > 100);
PREPARE q AS SELECT hidden_has(1, 1), hidden_has(1, 101), hidden_has(1, 102), (SELECT count(*) FROM generate_series(1, 200) i WHERE hidden_has(1, i));
CREATE FUNCTION by_plpgsql(key bigint, element bigint) RETURNS bool LANGUAGE plpgsql STABLE AS 'BEGIN RETURN hidden_has(key, element); END';
SET plan_cache_mode = force_generic_plan;
EXECUTE q;
SELECT by_plpgsql(1, 1), by_plpgsql(1, 101);
SET ROLE regress_fav_reader;
EXECUTE q;
SELECT by_plpgsql(1, 1), by_plpgsql(1, 101);
RESET ROLE;
EXECUTE q;
SELECT by_plpgsql(1, 1), by_plpgsql(1, 101);
RESET plan_cache_mode;
-- Where filters are behind the source: before the end of the statement that changes it, and of the
-- transaction for a partition that was made later
CREATE TABLE pairs (k int, e bigint, PRIMARY KEY (k, e)) PARTITION BY RANGE (e);
CREATE TABLE pairs_low PARTITION OF pairs FOR VALUES FROM (MINVALUE) TO (100);
SELECT fav_attach('pairs', 'k', 'e');
SELECT fav_attach('pairs', 'k', 'e', name => 'grouped', share => 4);
CREATE TABLE pairs_high PARTITION OF pairs FOR VALUES FROM (100) TO (MAXVALUE);
CREATE FUNCTION differences() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	differences bigint;
	pair pairs;
BEGIN
	SELECT count(*) INTO differences FROM generate_series(1, 2) k, unnest('{1,2,3,4,101,102,103}'::int[]) e
		WHERE (pairs_has(k, e), grouped_has(k, e), pairs_has(1, e)) <>
		(EXISTS (SELECT FROM pairs p WHERE p.k = k.k AND p.e = e.e), EXISTS (SELECT FROM pairs p WHERE p.k = k.k AND p.e = e.e), EXISTS (SELECT FROM pairs p WHERE p.k = 1 AND p.e = e.e));
	FOR pair IN SELECT * FROM pairs LOOP
		IF NOT pairs_has(pair.k, pair.e) OR NOT grouped_has(pair.k, pair.e) THEN differences := differences + 1; END IF;
	END LOOP;
	RETURN differences;
END $$;
CREATE FUNCTION check_pairs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF differences() > 0 THEN RAISE WARNING 'has is not EXISTS in trigger % on %', TG_NAME, TG_TABLE_NAME; END IF;
	RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER "0_row" AFTER INSERT OR UPDATE OR DELETE ON pairs FOR EACH ROW EXECUTE FUNCTION check_pairs();
CREATE TRIGGER zz_row AFTER INSERT OR UPDATE OR DELETE ON pairs FOR EACH ROW EXECUTE FUNCTION check_pairs();
CREATE TRIGGER before_low BEFORE INSERT OR UPDATE OR DELETE ON pairs_low FOR EACH ROW EXECUTE FUNCTION check_pairs();
CREATE TRIGGER "0_statement" AFTER INSERT OR UPDATE OR DELETE ON pairs FOR EACH STATEMENT EXECUTE FUNCTION check_pairs();
INSERT INTO pairs VALUES (1, 1), (1, 2), (2, 1), (1, 101);
UPDATE pairs SET e = e + 2;
DELETE FROM pairs WHERE e = 3;
INSERT INTO pairs SELECT 2, e FROM generate_series(1, 3) e WHERE differences() = 0;
BEGIN;
INSERT INTO pairs_high VALUES (1, 102), (2, 102);
SELECT pairs_has(1, 102), grouped_has(2, 102), differences();
UPDATE pairs_high SET e = 101 WHERE k = 1 AND e = 102;
SELECT pairs_has(1, 101), pairs_has(1, 102), grouped_has(1, 101), differences();
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
CREATE TABLE wanted AS SELECT e FROM generate_series(100, 2000) e;
SELECT count(*) FROM wanted WHERE pairs_has(CASE e WHEN 1 THEN 2 ELSE 1 END, e);
COMMIT;
SELECT differences();
DROP TABLE wanted;
SELECT fav_detach('pairs', 'grouped'), fav_detach('pairs', 'pairs');
DROP TABLE pairs;
DROP FUNCTION differences, check_pairs;

DROP FUNCTION as_answer CASCADE;
SELECT fav_detach('hidden');
DROP TABLE hidden;
DROP ROLE regress_fav_reader;
