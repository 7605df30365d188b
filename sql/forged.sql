-- Forged triggers, functions and operators reach nothing that is not theirs, and crash nothing.
\set VERBOSITY terse

CREATE ROLE forged_mallory;
CREATE SCHEMA forged AUTHORIZATION forged_mallory;
CREATE TABLE forged_victim (id int, a text, b text, c text);

SET ROLE forged_mallory;
CREATE TABLE forged.t (k int, e int);
CREATE TRIGGER forged AFTER INSERT ON forged.t FOR EACH ROW
	WHEN ('forged_victim'::regclass IS NOT NULL AND 'forged.t'::regclass IS NOT NULL AND
		  NEW.k IS NOT NULL AND NEW.e IS NOT NULL)
	EXECUTE FUNCTION fav_collect('0.01', '0');
RESET ROLE;
SELECT fav_attachment_stats('forged.t');
SELECT fav_verify('forged.t');
SELECT fav_rebuild('forged.t');
SELECT fav_detach('forged.t');
SELECT count(*) FROM forged_victim;

-- other columns than those of the attachment
SET ROLE forged_mallory;
CREATE TABLE forged.c (k bigint, e text, n bigint, PRIMARY KEY (k, e));
SELECT fav_attach('forged.c', 'k', 'e');
INSERT INTO forged.c VALUES (1, 'x', 1);
CREATE TRIGGER forged AFTER INSERT ON forged.c FOR EACH ROW
	WHEN ('forged.c_fav_levels'::regclass IS NOT NULL AND 'forged.c'::regclass IS NOT NULL AND
		  NEW.k IS NOT NULL AND NEW.n IS NOT NULL)
	EXECUTE FUNCTION fav_collect('0.01', '0');
INSERT INTO forged.c VALUES (2, 'y', 4096);
RESET ROLE;

-- an overload of fav_stack is not ours
CREATE FUNCTION fav_stack(bigint, bigint, bigint) RETURNS fav LANGUAGE plpgsql VOLATILE AS
	'BEGIN RETURN fav_add(fav_new(), 5); END';
SELECT fav_contains(fav_stack(1::bigint, 2::bigint, 3::bigint), 5::bigint);
DROP FUNCTION fav_stack(bigint, bigint, bigint);

-- an operator that borrows our estimator
CREATE OPERATOR === (LEFTARG = int4, RIGHTARG = int4, FUNCTION = int4eq,
	RESTRICT = fav_restriction_selectivity);
SELECT count(*) FROM forged_victim WHERE 42 === id;
DROP OPERATOR === (int4, int4);

SET client_min_messages = error;
DROP TABLE forged_victim CASCADE;
DROP SCHEMA forged CASCADE;
DROP ROLE forged_mallory;
