--
-- Who may read an attachment: those who may read its source, and nobody may write but the owner
--
CREATE ROLE fav_keeper;
CREATE ROLE fav_app;
CREATE ROLE fav_reader;
CREATE ROLE fav_columns;
CREATE ROLE fav_nobody;
CREATE SCHEMA shop;
GRANT USAGE, CREATE ON SCHEMA shop TO fav_keeper;
GRANT USAGE ON SCHEMA shop TO fav_app, fav_reader, fav_columns, fav_nobody;

CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE command INTO result;
	RETURN coalesce(result, 'done');
EXCEPTION WHEN insufficient_privilege THEN
	RETURN SQLERRM;
END $$;
-- What roles may do with table, levels and view of shop.pairs, and what they get
CREATE VIEW shop.rights AS
	SELECT r.rolname AS role, c.relname AS relation,
		concat_ws(' ', CASE WHEN has_table_privilege(r.oid, c.oid, 'SELECT') THEN 'SELECT' END,
			CASE WHEN has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') THEN 'others' END) AS rights
	FROM pg_roles r, pg_class c
	WHERE r.rolname IN ('fav_app', 'fav_reader', 'fav_columns', 'fav_nobody') AND c.relname IN ('pairs', 'pairs_fav', 'pairs_fav_levels')
		AND c.relnamespace = 'shop'::regnamespace
	ORDER BY r.rolname COLLATE "C", c.relname COLLATE "C";
CREATE FUNCTION try_all() RETURNS TABLE (role name, has text, view text, levels text) LANGUAGE plpgsql AS $$
BEGIN
	FOREACH role IN ARRAY '{fav_keeper,fav_app,fav_reader,fav_columns,fav_nobody}'::name[] LOOP
		EXECUTE format('SET LOCAL ROLE %I', role);
		has := attempt('SELECT array_agg(shop.pairs_has(1, i)) FROM generate_series(1, 3) i');
		view := attempt('SELECT sum(fav_count(filter)) FROM shop.pairs_fav');
		levels := attempt('SELECT count(*) FROM shop.pairs_fav_levels');
		RESET ROLE;
		RETURN NEXT;
	END LOOP;
END $$;

-- Default privileges give the application everything on new tables, filters included.
SET ROLE fav_keeper;
ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT ALL ON TABLES TO fav_app;
CREATE TABLE shop.pairs (k int, e int, PRIMARY KEY (k, e));
INSERT INTO shop.pairs VALUES (1, 1), (1, 2), (2, 1);
GRANT SELECT ON shop.pairs TO fav_reader;
GRANT SELECT (k, e) ON shop.pairs TO fav_columns;
SELECT fav_attach('shop.pairs', 'k', 'e');
RESET ROLE;
TABLE shop.rights;
SELECT * FROM try_all();
SET ROLE fav_app;
SELECT attempt('DELETE FROM shop.pairs_fav_levels'), attempt('UPDATE shop.pairs_fav_levels SET recent = fav_new()'), attempt('TRUNCATE shop.pairs_fav_levels');
SELECT attempt('DELETE FROM shop.pairs_fav'), attempt('INSERT INTO shop.pairs_fav VALUES (9, fav_new())');
-- the application writes the source
INSERT INTO shop.pairs VALUES (1, 3);
SELECT shop.pairs_has(1, 3), shop.pairs_has(9, 9);
-- the owner cannot write the view
SET ROLE fav_keeper;
DELETE FROM shop.pairs_fav;
UPDATE shop.pairs_fav SET filter = fav_new();
INSERT INTO shop.pairs_fav VALUES (9, fav_new());

-- Detached and attached again, with others' rights
SELECT fav_detach('shop.pairs');
REVOKE ALL ON shop.pairs FROM fav_app, fav_reader, fav_columns;
GRANT INSERT ON shop.pairs TO fav_app;
GRANT SELECT ON shop.pairs TO PUBLIC;
SELECT fav_attach('shop.pairs', 'k', 'e');
RESET ROLE;
TABLE shop.rights;
SELECT * FROM try_all();
-- Right after fav_build, not before
SET ROLE fav_keeper;
SELECT fav_detach('shop.pairs');
REVOKE ALL ON shop.pairs FROM PUBLIC;
GRANT SELECT ON shop.pairs TO fav_reader;
SET client_min_messages = warning;
SELECT fav_attach('shop.pairs', 'k', 'e', build => false);
RESET client_min_messages;
RESET ROLE;
TABLE shop.rights;
-- also those who got SELECT on the source meanwhile
SET ROLE fav_keeper;
GRANT SELECT ON shop.pairs TO fav_columns;
CALL fav_build('shop.pairs');
RESET ROLE;
TABLE shop.rights;
SELECT * FROM try_all();
-- A right on the source that is taken away ends exact answers; the filters are taken away by hand.
SET ROLE fav_keeper;
REVOKE SELECT ON shop.pairs FROM fav_reader;
RESET ROLE;
SELECT * FROM try_all();

-- Row security on the source: the filters are the owner's.
SET ROLE fav_keeper;
SELECT fav_detach('shop.pairs');
GRANT SELECT ON shop.pairs TO PUBLIC;
ALTER TABLE shop.pairs ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON shop.pairs TO fav_reader USING (e % 2 = 1);
CREATE POLICY everything ON shop.pairs TO fav_app USING (true);
SELECT fav_attach('shop.pairs', 'k', 'e');
RESET ROLE;
TABLE shop.rights;
SELECT * FROM try_all();
-- Granted by hand: the answers follow the policies of the user who asks
SET ROLE fav_keeper;
GRANT SELECT ON shop.pairs_fav_levels TO PUBLIC;
RESET ROLE;
SELECT * FROM try_all();
SET ROLE fav_reader;
SELECT e, shop.pairs_has(1, e) FROM generate_series(1, 4) e;
SELECT k, e, shop.pairs_has(k, e) FROM generate_series(1, 2) k, generate_series(1, 2) e ORDER BY 1, 2;
DO $$ BEGIN ASSERT shop.pairs_has(1, 1) AND NOT shop.pairs_has(1, 2); END $$;
-- also in a plan that another user has made, and where there is no planner at hand
RESET ROLE;
CREATE FUNCTION ask(key int, element int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN shop.pairs_has(key, element); END $$;
CREATE FUNCTION ask_volatile(key int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN shop.pairs_has(key, (2 + 0 * random())::int); END $$;
PREPARE ask(int) AS SELECT array_agg(shop.pairs_has($1, i)) FROM generate_series(1, 3) i;
SET plan_cache_mode = force_generic_plan;
EXECUTE ask(1);
SELECT ask(1, 1), ask(1, 2), ask_volatile(1);
SET ROLE fav_reader;
EXECUTE ask(1);
SELECT ask(1, 1), ask(1, 2), ask_volatile(1);
SET ROLE fav_nobody;
EXECUTE ask(1);
SELECT ask(1, 1), ask(1, 2), ask_volatile(1);
SET ROLE fav_app;
EXECUTE ask(1);
SELECT ask(1, 1), ask(1, 2), ask_volatile(1);
RESET ROLE;
RESET plan_cache_mode;
-- Filters that policies hide are no answer.
SET ROLE fav_keeper;
ALTER TABLE shop.pairs_fav_levels ENABLE ROW LEVEL SECURITY;
SELECT shop.pairs_has(1, 1), shop.pairs_has(1, 9);
SET ROLE fav_app;
SELECT shop.pairs_has(1, 1);
RESET ROLE;
ALTER TABLE shop.pairs_fav_levels DISABLE ROW LEVEL SECURITY;
-- forced on the owner, whose answers follow them, too, while the filters have all pairs
SET ROLE fav_keeper;
ALTER TABLE shop.pairs FORCE ROW LEVEL SECURITY;
RESET ROLE;
SELECT role, has FROM try_all();
SET ROLE fav_keeper;
ALTER TABLE shop.pairs NO FORCE ROW LEVEL SECURITY;
SELECT missing, stale FROM fav_verify('shop.pairs');
INSERT INTO shop.pairs VALUES (1, 4);
SELECT shop.pairs_has(1, 4);

-- Policies of the levels table hide filters: nobody is told that their elements are absent
SET ROLE fav_app;
PREPARE asked AS SELECT shop.pairs_has(1, 1);
EXECUTE asked;
SET ROLE fav_keeper;
ALTER TABLE shop.pairs_fav_levels ENABLE ROW LEVEL SECURITY;
SELECT shop.pairs_has(1, 1), active FROM fav_attachments;
SET ROLE fav_app;
SELECT attempt('EXECUTE asked');
SET ROLE fav_keeper;
ALTER TABLE shop.pairs_fav_levels FORCE ROW LEVEL SECURITY;
CREATE POLICY everything ON shop.pairs_fav_levels USING (true);
RESET ROLE;
SELECT role, has FROM try_all();
SELECT shop.pairs_has(1, 1);
SET ROLE fav_keeper;
INSERT INTO shop.pairs VALUES (1, 5), (5, 5);
ALTER TABLE shop.pairs_fav_levels DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
SELECT shop.pairs_has(1, 5), shop.pairs_has(5, 5), active FROM fav_attachments;

-- A sink has no rows to read: its filters are for those who may read it
SELECT fav_detach('shop.pairs');
CREATE TABLE shop.seen (k int, e int);
GRANT SELECT, INSERT ON shop.seen TO fav_reader;
SELECT fav_sink('shop.seen', 'k', 'e');
SET ROLE fav_reader;
INSERT INTO shop.seen VALUES (1, 1);
SELECT shop.seen_has(1, 1), shop.seen_has(1, 2);
SET ROLE fav_nobody;
SELECT attempt('SELECT shop.seen_has(1, 1)');
SET ROLE fav_app;
SELECT attempt('DELETE FROM shop.seen_fav_levels');
RESET ROLE;

-- Where default privileges keep functions from PUBLIC, those who may use the table may call them
DROP TABLE shop.pairs;
ALTER DEFAULT PRIVILEGES FOR ROLE fav_keeper REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
SET ROLE fav_keeper;
CREATE TABLE shop.pairs (k int, e int, PRIMARY KEY (k, e));
GRANT SELECT ON shop.pairs TO fav_reader;
CREATE TABLE shop.told (k int, e int);
GRANT SELECT ON shop.told TO fav_reader;
GRANT INSERT ON shop.told TO fav_columns;
GRANT DELETE ON shop.told TO fav_nobody;
SET client_min_messages = warning;
SELECT fav_attach('shop.pairs', 'k', 'e'), fav_sink('shop.told', 'k', 'e');
RESET client_min_messages;
RESET ROLE;
SELECT r.rolname, string_agg(p.proname, ' ' ORDER BY p.proname COLLATE "C") FILTER (WHERE has_function_privilege(r.oid, p.oid, 'EXECUTE')) FROM pg_roles r, pg_proc p
WHERE r.rolname IN ('fav_app', 'fav_columns', 'fav_nobody', 'fav_reader') AND p.proname IN ('pairs_has', 'told_has', 'told_add', 'told_remove') GROUP BY r.rolname ORDER BY r.rolname COLLATE "C";
SET ROLE fav_keeper;
SET client_min_messages = warning;
SELECT fav_attach('shop.pairs', 'k', 'e', name => 'late', build => false);
RESET client_min_messages;
GRANT SELECT ON shop.pairs TO fav_app;
CALL fav_build('shop.pairs', 'late');
SELECT r.rolname, has_function_privilege(r.oid, 'shop.late_has(bigint, bigint)', 'EXECUTE') FROM pg_roles r WHERE r.rolname IN ('fav_app', 'fav_columns') ORDER BY 1;
SET ROLE fav_columns;
SELECT shop.told_add(1, '{1,2,1}');
SET ROLE fav_reader;
SELECT shop.told_has(1, 2), shop.pairs_has(1, 2);
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA shop CASCADE;
RESET client_min_messages;
DEALLOCATE ask;
DEALLOCATE asked;
DROP FUNCTION attempt, try_all, ask, ask_volatile;
DROP OWNED BY fav_keeper, fav_app, fav_reader, fav_columns, fav_nobody;
DROP ROLE fav_keeper, fav_app, fav_reader, fav_columns, fav_nobody;
