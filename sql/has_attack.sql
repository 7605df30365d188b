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
DROP FUNCTION as_answer CASCADE;
SELECT fav_detach('hidden');
DROP TABLE hidden;
DROP ROLE regress_fav_reader;
