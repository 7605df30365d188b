-- Forged triggers, functions and operators reach no tables of others, and do not crash the server.
\set VERBOSITY terse

CREATE ROLE forged_mallory;
CREATE SCHEMA forged AUTHORIZATION forged_mallory;
CREATE TABLE forged_victim (id int, a text, b text, c text);

SET ROLE forged_mallory;
CREATE TABLE forged.t (k int, e int);
CREATE TRIGGER forged AFTER INSERT ON forged.t FOR EACH ROW
	WHEN ('forged_victim'::regclass IS NOT NULL AND
		  NEW.k IS NOT NULL AND NEW.e IS NOT NULL)
	EXECUTE FUNCTION fav_collect();
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
	WHEN ('forged.c_fav_levels'::regclass IS NOT NULL AND
		  NEW.k IS NOT NULL AND NEW.n IS NOT NULL)
	EXECUTE FUNCTION fav_collect();
INSERT INTO forged.c VALUES (2, 'y', 4096);
SELECT active FROM fav_attachments WHERE source = 'forged.c'::regclass;
DROP TRIGGER forged ON forged.c;
INSERT INTO forged.c VALUES (2, 'y', 4096);
SELECT active FROM fav_attachments WHERE source = 'forged.c'::regclass;
-- also if the forged trigger fires first
CREATE TABLE forged.d (k bigint, e text, n bigint, PRIMARY KEY (k, e));
SELECT fav_attach('forged.d', 'k', 'e');
CREATE TRIGGER a AFTER INSERT ON forged.d FOR EACH ROW
	WHEN ('forged.d_fav_levels'::regclass IS NOT NULL AND NEW.n IS NOT NULL AND NEW.e IS NOT NULL)
	EXECUTE FUNCTION fav_collect();
INSERT INTO forged.d VALUES (2, 'y', 4096);
RESET ROLE;

-- A role that may create triggers on one table cannot change the filters of another table.
CREATE TABLE forged_one (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE forged_two (k int, e int, PRIMARY KEY (k, e));
INSERT INTO forged_two VALUES (1, 1);
SELECT fav_attach('forged_two', 'k', 'e');
GRANT INSERT, TRIGGER ON forged_one TO forged_mallory;
SET ROLE forged_mallory;
CREATE TRIGGER forged AFTER INSERT ON forged_one FOR EACH ROW
	WHEN ('forged_two_fav_levels'::regclass IS NOT NULL AND NEW.k IS NOT NULL AND NEW.e IS NOT NULL)
	EXECUTE FUNCTION fav_collect();
CREATE TRIGGER forged_too AFTER INSERT ON forged_one
	WHEN ('forged_two_fav_levels'::regclass IS NOT NULL) EXECUTE FUNCTION fav_reconcile();
INSERT INTO forged_one VALUES (1, 77);
RESET ROLE;
SELECT filter @> 1 AS one, filter @> 77 AS other FROM forged_two_fav;
SELECT source, active FROM fav_attachments WHERE source::text LIKE 'forged_%' ORDER BY source::text COLLATE "C";
SELECT fav_detach('forged_one');
-- fav_detach drops the objects that fav_attach made, and no others
CREATE FUNCTION forged_own() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER own AFTER INSERT ON forged_two FOR EACH ROW
	WHEN ('forged_two_fav_levels'::regclass IS NOT NULL) EXECUTE FUNCTION forged_own();
SELECT fav_detach('forged_two');
DROP TRIGGER own ON forged_two;
SELECT fav_detach('forged_two');
SELECT tgname FROM pg_trigger WHERE tgrelid IN ('forged_one'::regclass, 'forged_two'::regclass) ORDER BY 1;
DROP TABLE forged_one, forged_two;
DROP FUNCTION forged_own;

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
