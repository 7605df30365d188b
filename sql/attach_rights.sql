--
-- Attached filters: rights, and attacks that must fail
--
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE fav_owner;
CREATE ROLE fav_writer;
CREATE ROLE fav_stranger;
CREATE ROLE fav_helper;
GRANT fav_owner TO fav_helper;
CREATE SCHEMA yard;
GRANT USAGE, CREATE ON SCHEMA yard TO fav_owner, fav_stranger;
GRANT USAGE ON SCHEMA yard TO fav_writer;

-- Compares filters and source element by element.  Missing is a pair of the source that the
-- view or the levels do not report.  Stale is an element that they report although the source
-- does not have it: of the numbers up to 300 for exact filters, and by fav_verify for all.
CREATE FUNCTION missing_and_stale(source regclass, OUT missing bigint, OUT stale bigint)
LANGUAGE plpgsql AS $$
DECLARE
	a record;
	v record;
BEGIN
	SELECT * INTO STRICT a FROM fav_attachments f WHERE f.source = $1;
	SELECT * INTO v FROM fav_verify(source);
	EXECUTE format('SELECT count(*) FROM %1$s s LEFT JOIN %2$s f USING (%3$I)
		WHERE %3$I IS NOT NULL AND s.%4$I IS NOT NULL AND NOT fav_contains(f.filter, s.%4$I)',
		source, a.filter, a.key, a.element) INTO missing;
	EXECUTE format('SELECT count(*) FROM %2$s f, generate_series(0, 300) x
		WHERE fav_contains(f.filter, x) AND NOT EXISTS (SELECT FROM %1$s s WHERE s.%3$I = f.%3$I AND s.%4$I = x)',
		source, a.filter, a.key, a.element) INTO stale;
	missing := greatest(missing, v.missing);
	stale := greatest(stale, v.stale);
END $$;

-- PostgreSQL's own messages depend on its version: only the SQLSTATE is shown.
CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	RETURN 'done';
EXCEPTION WHEN others THEN
	RETURN SQLSTATE;
END $$;

--
-- Rights
--
SET ROLE fav_owner;
CREATE TABLE yard.pairs (k int, e int, PRIMARY KEY (k, e));
INSERT INTO yard.pairs VALUES (1, 1);
SET ROLE fav_writer;
SELECT attempt($$SELECT fav_attach('yard.pairs', 'k', 'e')$$);
SET ROLE fav_helper;
SELECT fav_attach('yard.pairs', 'k', 'e');
RESET ROLE;
SELECT relname, relowner::regrole FROM pg_class WHERE relname LIKE 'pairs_fav%' AND relkind IN ('r', 'v') ORDER BY 1;
SELECT proowner::regrole FROM pg_proc WHERE pronamespace = 'yard'::regnamespace;
-- a superuser attaches for the owner
SELECT fav_detach('yard.pairs');
SELECT fav_attach('yard.pairs', 'k', 'e');
SELECT relname, relowner::regrole FROM pg_class WHERE relname LIKE 'pairs_fav%' AND relkind IN ('r', 'v') ORDER BY 1;

-- A role that may write the source needs no rights on the filters
SET ROLE fav_owner;
GRANT SELECT, INSERT, DELETE, UPDATE, TRUNCATE ON yard.pairs TO fav_writer;
SET ROLE fav_writer;
INSERT INTO yard.pairs VALUES (1, 2), (2, 2), (9, 9);
DELETE FROM yard.pairs WHERE e = 1;
UPDATE yard.pairs SET e = 10 WHERE e = 9;
SELECT attempt('SELECT * FROM yard.pairs_fav'), attempt('SELECT * FROM yard.pairs_fav_levels'), attempt('DELETE FROM yard.pairs_fav_levels');
SELECT attempt($$SELECT fav_verify('yard.pairs')$$), attempt($$SELECT fav_attachment_stats('yard.pairs')$$),
	attempt($$SELECT fav_rebuild('yard.pairs')$$), attempt($$SELECT fav_rebuild('yard.pairs', '1')$$), attempt($$SELECT fav_detach('yard.pairs')$$);
SELECT source, key, element, filter, levels, active FROM fav_attachments;
RESET ROLE;
SELECT * FROM missing_and_stale('yard.pairs');
SET ROLE fav_writer;
TRUNCATE yard.pairs;
INSERT INTO yard.pairs VALUES (1, 2), (2, 2), (9, 9);
SET ROLE fav_owner;
SELECT keys, missing, stale FROM fav_verify('yard.pairs');
SELECT keys FROM fav_attachment_stats('yard.pairs');
-- readers need rights only on the objects that they read
GRANT SELECT ON yard.pairs_fav, yard.pairs_fav_levels TO fav_stranger;
SET ROLE fav_stranger;
SELECT k, filter @> 2 AS two FROM yard.pairs_fav ORDER BY k;
SELECT k, fav_probe(l.base, l.middle, l.recent, 2) AS two FROM yard.pairs_fav_levels l ORDER BY k;
SELECT attempt('SELECT * FROM yard.pairs');

-- Row security, even if forced on the owner, hides no rows from maintenance
SET ROLE fav_owner;
ALTER TABLE yard.pairs DROP CONSTRAINT pairs_pkey;
CREATE INDEX ON yard.pairs (k, e);
INSERT INTO yard.pairs VALUES (1, 50), (1, 50), (1, 51), (2, 51);
ALTER TABLE yard.pairs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE yard.pairs_fav_levels ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY low ON yard.pairs TO fav_writer USING (k = 1) WITH CHECK (true);
SET ROLE fav_writer;
INSERT INTO yard.pairs VALUES (5, 5), (1, 60);
DELETE FROM yard.pairs WHERE ctid = (SELECT min(ctid) FROM yard.pairs WHERE e = 50);
DELETE FROM yard.pairs WHERE e = 51;
SELECT * FROM yard.pairs ORDER BY 1, 2;
SET ROLE fav_owner;
SELECT count(*) FROM yard.pairs;
SELECT keys, elements, missing, stale FROM fav_verify('yard.pairs');
SELECT fav_rebuild('yard.pairs');
SELECT fav_rebuild('yard.pairs', '1');
SELECT keys FROM fav_attachment_stats('yard.pairs');
RESET ROLE;
ALTER TABLE yard.pairs DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
ALTER TABLE yard.pairs_fav_levels DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
SELECT * FROM missing_and_stale('yard.pairs');

-- A writer with operators, functions and tables of their own in the search_path
CREATE SCHEMA trap AUTHORIZATION fav_writer;
GRANT TEMPORARY ON DATABASE :"DBNAME" TO fav_writer;
SET ROLE fav_writer;
CREATE FUNCTION trap.caught(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
CREATE FUNCTION trap.caught(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
CREATE FUNCTION trap.caught(tid, tid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
CREATE OPERATOR trap.= (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.caught);
CREATE OPERATOR trap.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.caught);
CREATE OPERATOR trap.= (LEFTARG = tid, RIGHTARG = tid, FUNCTION = trap.caught);
CREATE OPERATOR trap.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.caught);
CREATE FUNCTION trap.fav_contains(fav, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
CREATE FUNCTION trap.fav_stack(fav, fav, fav) RETURNS fav LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
CREATE FUNCTION trap.count(bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
CREATE TEMP TABLE pairs (k int, e int);
CREATE TEMP TABLE pairs_fav_levels (k int, base fav, middle fav, recent fav);
SET search_path = pg_temp, trap, public, pg_catalog;
INSERT INTO yard.pairs VALUES (1, 70);
INSERT INTO yard.pairs VALUES (1, 71), (1, 72), (3, 70);
DELETE FROM yard.pairs WHERE e OPERATOR(pg_catalog.=) 71;
UPDATE yard.pairs SET e = 73 WHERE e OPERATOR(pg_catalog.=) 72;
INSERT INTO yard.pairs SELECT 8, pg_catalog.generate_series(1, 1000);
DELETE FROM yard.pairs WHERE k OPERATOR(pg_catalog.=) 8;
RESET ROLE;
SELECT keys, missing, stale FROM fav_verify('yard.pairs');
SELECT fav_rebuild('yard.pairs');
SELECT fav_rebuild('yard.pairs', '1');
SELECT pg_catalog.count(source) FROM fav_attachments;
SET search_path = public, pg_catalog;
DROP TABLE pg_temp.pairs, pg_temp.pairs_fav_levels;
RESET search_path;
SELECT * FROM missing_and_stale('yard.pairs');
DROP SCHEMA trap CASCADE;
REVOKE TEMPORARY ON DATABASE :"DBNAME" FROM fav_writer;

-- Triggers on the levels table that suppress writes
SET ROLE fav_owner;
CREATE FUNCTION yard.swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER swallow BEFORE UPDATE ON yard.pairs_fav_levels FOR EACH ROW EXECUTE FUNCTION yard.swallow();
SET ROLE fav_writer;
SELECT attempt('INSERT INTO yard.pairs VALUES (1, 80)');
SET ROLE fav_owner;
DROP TRIGGER swallow ON yard.pairs_fav_levels;
CREATE TRIGGER swallow BEFORE INSERT ON yard.pairs_fav_levels FOR EACH ROW EXECUTE FUNCTION yard.swallow();
SET ROLE fav_writer;
SET statement_timeout = '10s';
SELECT attempt('INSERT INTO yard.pairs VALUES (80, 80)');
RESET statement_timeout;
SET ROLE fav_owner;
DROP TRIGGER swallow ON yard.pairs_fav_levels;
CREATE RULE swallow AS ON UPDATE TO yard.pairs_fav_levels DO INSTEAD NOTHING;
SET ROLE fav_writer;
SELECT attempt('INSERT INTO yard.pairs VALUES (1, 80)');
SET ROLE fav_owner;
DROP RULE swallow ON yard.pairs_fav_levels;
SET ROLE fav_writer;
INSERT INTO yard.pairs VALUES (1, 80), (80, 80);
RESET ROLE;
SELECT * FROM missing_and_stale('yard.pairs');

--
-- Forged triggers: anybody can call the trigger functions on a table of their own
--
SET ROLE fav_stranger;
CREATE TABLE yard.mine (k int, e int);
CREATE INDEX ON yard.mine (k, e);
CREATE TABLE yard.my_levels (k int PRIMARY KEY, base fav, middle fav, recent fav NOT NULL);
-- tables of another role: nothing happens, or there is an error
CREATE FUNCTION yard.forge(levels text, source text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	tables text := format('%L::regclass IS NOT NULL', levels);
	rows_are text := tables || ' AND %1$s.k IS NOT NULL AND %1$s.e IS NOT NULL';
BEGIN
	IF source IS NOT NULL THEN
		EXECUTE format('ALTER TABLE %s ALTER recent SET DEFAULT fav_recent(%L, ''0.01'', ''0'', 0)', levels, source);
	END IF;
	EXECUTE format('CREATE TRIGGER a AFTER INSERT ON yard.mine FOR EACH ROW WHEN (%s) EXECUTE FUNCTION fav_collect()', format(rows_are, 'NEW'));
	EXECUTE format('CREATE TRIGGER b AFTER DELETE ON yard.mine FOR EACH ROW WHEN (%s) EXECUTE FUNCTION fav_collect()', format(rows_are, 'OLD'));
	EXECUTE format('CREATE TRIGGER c AFTER INSERT OR DELETE OR TRUNCATE ON yard.mine WHEN (%s) EXECUTE FUNCTION fav_reconcile()', tables);
	INSERT INTO yard.mine VALUES (1, 200), (77, 200);
	DELETE FROM yard.mine;
	INSERT INTO yard.mine VALUES (1, 201);
	TRUNCATE yard.mine;
	DROP TRIGGER a ON yard.mine;
	DROP TRIGGER b ON yard.mine;
	DROP TRIGGER c ON yard.mine;
	RETURN 'done';
EXCEPTION WHEN others THEN
	RETURN SQLERRM;
END $$;
SELECT yard.forge('yard.pairs_fav_levels');
SELECT yard.forge('yard.pairs_fav_levels', 'yard.mine');
SELECT yard.forge('yard.my_levels', 'yard.pairs');
SELECT yard.forge('yard.pairs');
SELECT yard.forge('123456789') <> 'done' AS refused;
SELECT count(*) FROM yard.my_levels;
-- one's own tables: nothing happens unless the levels table names the source, as after fav_attach
SELECT yard.forge('yard.mine');
ALTER TABLE yard.my_levels ALTER recent DROP DEFAULT;
SELECT yard.forge('yard.my_levels');
SELECT yard.forge('yard.my_levels', 'yard.mine');
ALTER TABLE yard.my_levels ALTER recent SET DEFAULT fav_recent('yard.mine', random(), '0', 0);
SELECT yard.forge('yard.my_levels');
ALTER TABLE yard.my_levels ALTER recent SET DEFAULT fav_recent('yard.mine', '-1', '0', 0);
SELECT yard.forge('yard.my_levels');
ALTER TABLE yard.my_levels ALTER recent SET DEFAULT fav_recent('yard.mine', '0.01', '0', 0);
-- other clauses, other arguments, other events
SELECT attempt(format('CREATE TRIGGER t %s yard.mine %s EXECUTE FUNCTION %s; INSERT INTO yard.mine VALUES (1, 1); DROP TRIGGER t ON yard.mine', event, clause, function))
FROM (VALUES
	('AFTER INSERT ON', 'FOR EACH ROW', 'fav_collect()'),
	('AFTER INSERT ON', '', 'fav_reconcile()'),
	('BEFORE INSERT ON', 'FOR EACH ROW', 'fav_collect()'),
	('AFTER INSERT ON', '', 'fav_collect()'),
	('AFTER INSERT ON', 'FOR EACH ROW', 'fav_reconcile()'),
	('AFTER INSERT ON', 'FOR EACH ROW WHEN (NEW.k = 1)', 'fav_collect()'),
	('AFTER INSERT ON', $$FOR EACH ROW WHEN ('yard.my_levels'::regclass IS NOT NULL)$$, 'fav_collect()'),
	('AFTER INSERT ON', $$FOR EACH ROW WHEN ('yard.my_levels'::regclass = 'yard.mine'::regclass IS NOT NULL)$$, 'fav_collect()'),
	('AFTER INSERT ON', $$FOR EACH ROW WHEN ('yard.my_levels'::regclass IS NULL OR NEW.k > NEW.e OR true)$$, 'fav_collect()')
) v (event, clause, function);
SELECT attempt('SELECT fav_collect()'), attempt('SELECT fav_reconcile()');
-- system columns as key or element are refused
CREATE TABLE yard.addresses (k tid PRIMARY KEY, base fav, middle fav, recent fav NOT NULL DEFAULT fav_recent('yard.mine', '0.01', '0', 0));
CREATE TRIGGER t AFTER INSERT ON yard.mine FOR EACH ROW
	WHEN ('yard.addresses'::regclass IS NOT NULL AND NEW.ctid IS NOT NULL AND NEW.e IS NOT NULL)
	EXECUTE FUNCTION fav_collect();
SELECT attempt('INSERT INTO yard.mine VALUES (1, 1)') <> '';
SELECT count(*) FROM yard.addresses;
DROP TABLE yard.addresses CASCADE;
-- a child of another role's table gives no access
SELECT attempt('CREATE TABLE yard.child () INHERITS (yard.pairs)');
SELECT attempt('CREATE TRIGGER t AFTER INSERT ON yard.pairs EXECUTE FUNCTION fav_reconcile()');
RESET ROLE;
SELECT * FROM missing_and_stale('yard.pairs');
SELECT fav_detach('yard.pairs');
DROP TABLE yard.mine, yard.my_levels;

--
-- A hostile owner: code that they attach to their tables runs with their own rights, whoever triggers it
--
CREATE SCHEMA spy AUTHORIZATION fav_owner;
GRANT USAGE ON SCHEMA spy TO PUBLIC;
SET ROLE fav_owner;
CREATE TABLE spy.log (who name, what text);
GRANT INSERT ON spy.log TO PUBLIC;
CREATE TABLE spy.is_armed ();
GRANT SELECT ON spy.is_armed TO PUBLIC;
-- records the role that it runs as, and tries to gain rights
CREATE FUNCTION spy.note(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF what LIKE 'levels%' AND EXISTS (SELECT FROM spy.is_armed) THEN
		BEGIN
			PERFORM set_config('role', 'none', false);
		EXCEPTION WHEN others THEN NULL;
		END;
		BEGIN
			EXECUTE 'RESET SESSION AUTHORIZATION';
		EXCEPTION WHEN others THEN NULL;
		END;
		BEGIN
			EXECUTE 'ALTER ROLE fav_owner SUPERUSER';
		EXCEPTION WHEN others THEN NULL;
		END;
		BEGIN
			EXECUTE 'CREATE TEMP TABLE left_behind ()';
		EXCEPTION WHEN others THEN NULL;
		END;
		BEGIN
			EXECUTE 'DECLARE left_behind CURSOR WITH HOLD FOR SELECT 1';
		EXCEPTION WHEN others THEN NULL;
		END;
		PERFORM set_config('search_path', 'spy', false);
		PERFORM set_config('application_name', 'left behind', false);
	END IF;
	INSERT INTO spy.log VALUES (current_user, what);
END $$;
CREATE FUNCTION spy.evil(what text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN PERFORM spy.note(what); RETURN true; END $$;
CREATE FUNCTION spy.evil(what text, i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN PERFORM spy.note(what); RETURN i; END $$;
CREATE FUNCTION spy.evil() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM spy.note(concat(TG_ARGV[0], ' ', lower(TG_WHEN), ' ', lower(TG_OP), ' ', lower(TG_LEVEL))); RETURN coalesce(NEW, OLD); END $$;
-- the source
CREATE DOMAIN spy.number AS int CHECK (spy.evil('source domain', VALUE) > 0);
CREATE TABLE spy.pairs (k spy.number, e int CHECK (spy.evil('source check', e) > 0), d int DEFAULT spy.evil('source default', 1),
	g int GENERATED ALWAYS AS (spy.evil('source generated column', e)) STORED);
CREATE INDEX ON spy.pairs (k, e);
CREATE INDEX ON spy.pairs (k) WHERE spy.evil('source index predicate');
CREATE INDEX ON spy.pairs (k, spy.evil('source index expression', e));
INSERT INTO spy.pairs SELECT i % 3 + 1, i FROM generate_series(1, 30) i;
CREATE POLICY p ON spy.pairs USING (spy.evil('source policy'));
ALTER TABLE spy.pairs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON spy.pairs TO fav_writer;
RESET ROLE;

-- The roles recorded since the last time: only the owner is expected.
CREATE FUNCTION caught() RETURNS TABLE (whose text, as_owner boolean, as_others text[]) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT split_part(what, ' ', 1), bool_or(who = 'fav_owner'), array_agg(DISTINCT what) FILTER (WHERE who <> 'fav_owner')
	FROM spy.log GROUP BY 1 ORDER BY 1;
	DELETE FROM spy.log;
END $$;
SELECT * FROM caught();
-- the trap works: a query of the superuser triggers it
SELECT count(*) > 0 FROM spy.pairs WHERE k = 1;
SELECT * FROM caught();

-- the superuser attaches
SELECT fav_attach('spy.pairs', 'k', 'e');
SELECT * FROM caught();
-- and the owner adds more traps to the levels table
SET ROLE fav_owner;
ALTER TABLE spy.pairs_fav_levels ADD d int DEFAULT spy.evil('levels default', 1);
ALTER TABLE spy.pairs_fav_levels ADD g int GENERATED ALWAYS AS (spy.evil('levels generated column', 1)) STORED;
ALTER TABLE spy.pairs_fav_levels ADD CHECK (spy.evil('levels check', 1) > 0);
CREATE INDEX ON spy.pairs_fav_levels (k) WHERE spy.evil('levels index predicate');
CREATE INDEX ON spy.pairs_fav_levels (spy.evil('levels index expression', k));
CREATE POLICY p ON spy.pairs_fav_levels USING (spy.evil('levels policy'));
ALTER TABLE spy.pairs_fav_levels ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE TRIGGER a BEFORE INSERT OR UPDATE OR DELETE ON spy.pairs_fav_levels FOR EACH ROW EXECUTE FUNCTION spy.evil('levels trigger');
CREATE TRIGGER b AFTER INSERT OR UPDATE OR DELETE ON spy.pairs_fav_levels FOR EACH ROW EXECUTE FUNCTION spy.evil('levels trigger');
CREATE TRIGGER c BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON spy.pairs_fav_levels EXECUTE FUNCTION spy.evil('levels trigger');
CREATE TRIGGER d AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON spy.pairs_fav_levels EXECUTE FUNCTION spy.evil('levels trigger');
CREATE RULE r AS ON DELETE TO spy.pairs_fav_levels DO ALSO SELECT spy.note('levels rule');
RESET ROLE;
SELECT * FROM caught();
INSERT INTO spy.is_armed DEFAULT VALUES;

-- The superuser lists, verifies, rebuilds, attaches and detaches
SELECT source, active FROM fav_attachments;
SELECT * FROM caught();
SELECT keys, elements, missing, stale FROM fav_verify('spy.pairs');
SELECT * FROM caught();
SELECT keys, elements FROM fav_attachment_stats('spy.pairs');
SELECT * FROM caught();
SELECT fav_rebuild('spy.pairs', '1');
SELECT * FROM caught();
SELECT fav_rebuild('spy.pairs');
SELECT * FROM caught();
SELECT fav_attach('spy.pairs', 'k', 'e', name => 'second');
SELECT fav_detach('spy.pairs', 'second');
SELECT * FROM caught();
-- The superuser and a writer write.  PostgreSQL runs triggers on the source as the writer; we add nothing to that.
INSERT INTO spy.pairs (k, e) VALUES (1, 101), (7, 101);
UPDATE spy.pairs SET e = 102 WHERE e = 101 AND k = 1;
DELETE FROM spy.pairs WHERE e = 102;
INSERT INTO spy.pairs (k, e) SELECT 8, generate_series(1, 1000);
SELECT * FROM caught() WHERE whose = 'levels';
SET ROLE fav_writer;
INSERT INTO spy.pairs (k, e) VALUES (1, 103), (9, 103);
UPDATE spy.pairs SET e = 104 WHERE e = 103 AND k = 1;
DELETE FROM spy.pairs WHERE e = 104 OR k = 8;
RESET ROLE;
SELECT * FROM caught() WHERE whose = 'levels';
SET ROLE fav_writer;
TRUNCATE spy.pairs;
RESET ROLE;
SELECT * FROM caught();
-- at the end of the transaction
ALTER TABLE spy.pairs DISABLE TRIGGER pairs_fav_levels_statement;
INSERT INTO spy.pairs (k, e) VALUES (1, 1), (2, 1);
SELECT * FROM caught() WHERE whose = 'levels';
SELECT fav_rebuild('spy.pairs');
SELECT missing, stale FROM fav_verify('spy.pairs');
SELECT * FROM caught();
-- A partition of another owner: its traps must not run as the owner of the whole table.
CREATE TABLE spy.whole (k int, e int) PARTITION BY RANGE (k);
CREATE TABLE spy.part PARTITION OF spy.whole FOR VALUES FROM (0) TO (10);
CREATE INDEX ON spy.whole (k, e);
SELECT fav_attach('spy.whole', 'k', 'e');
ALTER TABLE spy.part OWNER TO fav_owner;
SET ROLE fav_owner;
CREATE INDEX ON spy.part (k) WHERE spy.evil('partition index predicate');
RESET ROLE;
SELECT * FROM caught();
SET ROLE fav_owner;
SELECT attempt('INSERT INTO spy.part VALUES (1, 1)') <> '' AS attempted;
RESET ROLE;
SELECT as_others FROM caught() WHERE as_others IS NOT NULL;
-- traps that remain after detaching
SELECT rolsuper FROM pg_roles WHERE rolname = 'fav_owner';
SELECT current_setting('search_path') = 'spy' AS path, current_setting('application_name') = 'left behind' AS name,
	to_regclass('pg_temp.left_behind'), (SELECT count(*) FROM pg_cursors WHERE name = 'left_behind') AS cursors;

-- a deferred trigger, which runs at the end of the transaction
SET ROLE fav_owner;
CREATE CONSTRAINT TRIGGER e AFTER INSERT OR UPDATE ON spy.pairs_fav_levels DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION spy.evil('levels trigger');
RESET ROLE;
SELECT attempt('INSERT INTO spy.pairs (k, e) VALUES (1, 2)'), attempt($$SELECT fav_rebuild('spy.pairs', '1')$$);
SELECT * FROM caught() WHERE whose = 'levels';

DROP SCHEMA yard, spy CASCADE;
DROP FUNCTION missing_and_stale, attempt, caught;
DROP OWNED BY fav_owner, fav_writer, fav_stranger, fav_helper;
DROP ROLE fav_owner, fav_writer, fav_stranger, fav_helper;
