--
-- Attached filters: statements within statements, cascades, triggers that change the source,
-- statements that no statement trigger sees, and blocks that roll back
--
\set SHOW_CONTEXT never
SET client_min_messages = warning;

-- Compares filters and source element by element.  Missing is a pair of the source that the
-- view, the levels or the function do not report.  Stale is an element that they report although the source
-- does not have it: of the numbers up to 300 for exact filters, and by fav_verify for all.
CREATE FUNCTION missing_and_stale(source regclass, OUT missing bigint, OUT stale bigint)
LANGUAGE plpgsql AS $$
DECLARE
	a record;
	v record;
BEGIN
	SELECT * INTO STRICT a FROM fav_attachments f WHERE f.source = $1;
	SELECT * INTO v FROM fav_verify(source);
	EXECUTE format('SELECT count(*) FROM %1$s s LEFT JOIN %2$s f USING (%3$I) LEFT JOIN %4$s l USING (%3$I)
		WHERE %3$I IS NOT NULL AND s.%5$I IS NOT NULL AND NOT (fav_contains(f.filter, s.%5$I) AND fav_probe(l.base, l.middle, l.recent, s.%5$I)
			AND %6$s(%3$I, s.%5$I))',
		source, a.filter, a.key, a.levels, a.element, a.has::oid::regproc) INTO missing;
	EXECUTE format('SELECT count(*) FROM %4$s l JOIN %2$s f USING (%3$I), generate_series(0, 300) x
		WHERE base = ''\x01'' AND (fav_contains(f.filter, x) OR fav_probe(l.base, l.middle, l.recent, x) OR %6$s(l.%3$I, x))
			AND NOT EXISTS (SELECT FROM %1$s s WHERE s.%3$I = l.%3$I AND s.%5$I = x)',
		source, a.filter, a.key, a.levels, a.element, a.has::oid::regproc) INTO stale;
	missing := greatest(missing, v.missing);
	stale := greatest(stale, v.stale);
END $$;

-- A cascade to a partitioned source: one nested statement on h for each post
CREATE TABLE posts (id int PRIMARY KEY);
CREATE TABLE h (u int, p int REFERENCES posts ON DELETE CASCADE ON UPDATE CASCADE, PRIMARY KEY (u, p)) PARTITION BY HASH (u);
CREATE TABLE h0 PARTITION OF h FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE h1 PARTITION OF h FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX ON h (p);
INSERT INTO posts SELECT generate_series(1, 3000);
INSERT INTO h SELECT u, p FROM generate_series(1, 20) u, generate_series(1, 3000) p;
SELECT fav_attach('h', 'u', 'p');
DELETE FROM posts WHERE id <= 2000;
SELECT count(*) FROM h;
SELECT * FROM missing_and_stale('h');
UPDATE posts SET id = id + 10000 WHERE id % 100 = 0;
SELECT * FROM missing_and_stale('h');
DROP TABLE h, h_fav_levels, posts CASCADE;

-- One statement that inserts and deletes
CREATE TABLE h (u int, p int, PRIMARY KEY (u, p));
INSERT INTO h SELECT 1, generate_series(1, 10000);
SELECT fav_attach('h', 'u', 'p');
WITH i AS (INSERT INTO h SELECT 1, g FROM generate_series(100001, 115000) g RETURNING p)
DELETE FROM h WHERE u = 1 AND p <= 9000 AND (SELECT count(*) FROM i) > 0;
SELECT * FROM missing_and_stale('h');
WITH gone AS (DELETE FROM h WHERE p <= 9100 RETURNING u, p),
	moved AS (UPDATE h SET u = 2 WHERE p > 114900 RETURNING p)
INSERT INTO h SELECT u + 1, p FROM gone UNION ALL SELECT 3, p FROM moved;
SELECT * FROM missing_and_stale('h');
-- the same pair is deleted and inserted again
WITH gone AS (DELETE FROM h WHERE u = 3 RETURNING u, p)
INSERT INTO h SELECT u, p FROM gone WHERE p % 2 = 0 ON CONFLICT DO NOTHING;
SELECT * FROM missing_and_stale('h');

-- MERGE, if the server has it
TRUNCATE h;
INSERT INTO h SELECT 1, generate_series(1, 40000);
DO $$
BEGIN
	IF current_setting('server_version_num')::int >= 150000 THEN
		EXECUTE 'MERGE INTO h USING generate_series(1, 30010) g ON u = 1 AND p = g
			WHEN MATCHED AND g <= 20000 THEN DELETE
			WHEN MATCHED AND g <= 30000 THEN UPDATE SET p = p + 100000
			WHEN MATCHED THEN UPDATE SET u = 2';
		EXECUTE 'MERGE INTO h USING (VALUES (2, 30001), (2, 1), (3, 1)) v (a, b) ON u = a AND p = b
			WHEN MATCHED THEN DELETE
			WHEN NOT MATCHED THEN INSERT VALUES (a, b)';
	END IF;
END $$;
SELECT * FROM missing_and_stale('h');
DROP TABLE h, h_fav_levels CASCADE;

-- A partition that was created after attaching has no statement trigger
CREATE TABLE h (u int, p int, PRIMARY KEY (u, p)) PARTITION BY RANGE (u);
SELECT fav_attach('h', 'u', 'p');
CREATE TABLE h_late PARTITION OF h FOR VALUES FROM (0) TO (10);
INSERT INTO h SELECT 1, generate_series(1, 20000);
DELETE FROM h_late WHERE p <= 10000;
SELECT * FROM missing_and_stale('h');
INSERT INTO h_late SELECT 2, generate_series(1, 20);
UPDATE h_late SET u = 3 WHERE u = 2 AND p > 10;
UPDATE h_late SET p = p + 100 WHERE u = 2;
SELECT * FROM missing_and_stale('h');
-- Pairs that a statement on it touches are reconciled by the next statement on h, or before commit.
BEGIN;
INSERT INTO h_late VALUES (4, 4);
SELECT count(*) FROM h_fav WHERE u = 4;
INSERT INTO h VALUES (5, 5);
SELECT fav_count(filter) FROM h_fav WHERE u = 4;
DELETE FROM h_late WHERE u = 4;
COMMIT;
SELECT * FROM missing_and_stale('h');
-- savepoints
BEGIN;
INSERT INTO h_late VALUES (4, 1);
SAVEPOINT a;
INSERT INTO h_late VALUES (4, 2);
SAVEPOINT b;
INSERT INTO h_late VALUES (4, 3);
RELEASE b;
INSERT INTO h_late VALUES (4, 4);
ROLLBACK TO a;
INSERT INTO h_late VALUES (4, 5);
SAVEPOINT c;
DELETE FROM h_late WHERE u = 4;
ROLLBACK TO c;
COMMIT;
SELECT p FROM h WHERE u = 4;
SELECT * FROM missing_and_stale('h');
-- a reconcile that is rolled back, of pairs collected before and after the savepoint
BEGIN;
INSERT INTO h_late VALUES (6, 1);
SAVEPOINT a;
INSERT INTO h_late VALUES (6, 2);
INSERT INTO h VALUES (6, 3);
ROLLBACK TO a;
COMMIT;
SELECT * FROM missing_and_stale('h');
-- filters that were detached and truncated, but rolled back
BEGIN;
INSERT INTO h_late VALUES (7, 1);
SAVEPOINT a;
SELECT fav_detach('h');
ROLLBACK TO a;
COMMIT;
SELECT * FROM missing_and_stale('h');
BEGIN;
INSERT INTO h_late VALUES (7, 2);
SAVEPOINT a;
TRUNCATE h;
SELECT fav_rebuild('h');
ROLLBACK TO a;
COMMIT;
SELECT * FROM missing_and_stale('h');
-- detached, attached again, and dropped
BEGIN;
INSERT INTO h_late VALUES (7, 3);
SELECT fav_detach('h');
INSERT INTO h_late VALUES (7, 4);
SELECT fav_attach('h', 'u', 'p');
INSERT INTO h_late VALUES (7, 5);
COMMIT;
SELECT * FROM missing_and_stale('h');
BEGIN;
INSERT INTO h_late VALUES (7, 6);
DROP TABLE h, h_fav_levels CASCADE;
COMMIT;

-- A statement that a row limit ends early fires no statement trigger.  The result is the same
-- without statement triggers.
CREATE TABLE h (u int, p int, PRIMARY KEY (u, p));
SELECT fav_attach('h', 'u', 'p');
ALTER TABLE h DISABLE TRIGGER h_fav_levels_statement;
SELECT active FROM fav_attachments;
INSERT INTO h SELECT 1, generate_series(1, 6);
UPDATE h SET p = p + 10;
DELETE FROM h WHERE p = 15;
SELECT * FROM missing_and_stale('h');
-- in procedures that commit
DO $$
BEGIN
	FOR i IN 1 .. 4 LOOP
		INSERT INTO h VALUES (2, i);
		IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
		DELETE FROM h WHERE u = 2 AND p = i - 2;
	END LOOP;
END $$;
SELECT p FROM h WHERE u = 2;
SELECT * FROM missing_and_stale('h');
-- and at every isolation level
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO h VALUES (3, 1), (4, 1);
DELETE FROM h WHERE u = 2;
COMMIT;
SELECT * FROM missing_and_stale('h');

-- After DISABLE TRIGGER ALL and ENABLE TRIGGER ALL triggers do not fire in replicas, and active is
-- false
ALTER TABLE h DISABLE TRIGGER ALL;
SELECT active FROM fav_attachments;
ALTER TABLE h ENABLE TRIGGER ALL;
SELECT active FROM fav_attachments;
SET session_replication_role = replica;
INSERT INTO h VALUES (3, 33);
RESET session_replication_role;
SELECT * FROM missing_and_stale('h');
SELECT fav_rebuild('h');
SELECT active FROM fav_attachments;
SET session_replication_role = replica;
INSERT INTO h VALUES (3, 34);
RESET session_replication_role;
SELECT * FROM missing_and_stale('h');

-- The source becomes a partition, and is written through its parent
CREATE TABLE everything (p int, u int) PARTITION BY RANGE (u);
ALTER TABLE everything ATTACH PARTITION h FOR VALUES FROM (0) TO (100);
CREATE TABLE everything_else PARTITION OF everything FOR VALUES FROM (100) TO (200);
SELECT active FROM fav_attachments;
INSERT INTO everything (u, p) VALUES (3, 35), (5, 5), (105, 5);
UPDATE everything SET u = u + 100, p = p + 1 WHERE u = 5;
UPDATE everything SET u = u - 100 WHERE u = 105;
DELETE FROM everything WHERE p = 35;
SELECT * FROM missing_and_stale('h');
SELECT u, p FROM h WHERE u = 5;
TRUNCATE everything;
SELECT * FROM missing_and_stale('h');
DROP TABLE everything, h_fav_levels CASCADE;

-- TRUNCATE at REPEATABLE READ
CREATE TABLE h (u int, p int, PRIMARY KEY (u, p));
INSERT INTO h SELECT u, p FROM generate_series(1, 3) u, generate_series(1, 200) p;
SELECT fav_attach('h', 'u', 'p');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM h;
TRUNCATE h;
INSERT INTO h VALUES (1, 1);
COMMIT;
SELECT * FROM missing_and_stale('h');
SELECT count(*) FROM generate_series(0, 300) x WHERE (SELECT filter FROM h_fav WHERE u = 1) @> x;

-- A user trigger that rebuilds filters
INSERT INTO h SELECT 1, generate_series(2, 10000);
CREATE FUNCTION rebuild() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM fav_rebuild('h', TG_ARGV[0]); RETURN NULL; END $$;
CREATE TRIGGER a_rebuild AFTER DELETE ON h FOR EACH STATEMENT EXECUTE FUNCTION rebuild();
DELETE FROM h WHERE p <= 5000;
SELECT * FROM missing_and_stale('h');
CREATE TRIGGER z_rebuild AFTER DELETE ON h FOR EACH ROW WHEN (OLD.p % 100 = 0) EXECUTE FUNCTION rebuild('1');
DELETE FROM h WHERE p <= 9000;
SELECT * FROM missing_and_stale('h');
DROP TRIGGER a_rebuild ON h;
DROP TRIGGER z_rebuild ON h;

-- A trigger that undoes the change of the statement
TRUNCATE h;
ALTER TABLE h DROP CONSTRAINT h_pkey;
CREATE INDEX ON h (u, p);
INSERT INTO h VALUES (1, 1), (1, 2);
CREATE FUNCTION swap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.p = 2 THEN
		INSERT INTO h VALUES (1, 1);
		DELETE FROM h WHERE p = 1;
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER swap BEFORE UPDATE ON h FOR EACH ROW EXECUTE FUNCTION swap();
UPDATE h SET p = 3 - p;
SELECT p FROM h ORDER BY p;
SELECT * FROM missing_and_stale('h');
DROP TRIGGER swap ON h;

-- BEFORE ROW triggers: another pair is stored, or none
CREATE FUNCTION before_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.p = 13 THEN RETURN NULL; END IF;
	NEW.p := NEW.p + 1;
	RETURN NEW;
END $$;
CREATE TRIGGER change BEFORE INSERT OR UPDATE ON h FOR EACH ROW EXECUTE FUNCTION before_row();
INSERT INTO h VALUES (1, 10), (1, 15), (2, 13);
UPDATE h SET u = 2 WHERE p = 11;
SELECT u, p FROM h ORDER BY 1, 2;
SELECT * FROM missing_and_stale('h');
DROP TRIGGER change ON h;
-- AFTER ROW triggers: inserted rows are deleted at once, before or after our triggers
CREATE FUNCTION delete_it() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN DELETE FROM h WHERE u = NEW.u AND p = NEW.p AND p % 2 = 0; RETURN NULL; END $$;
CREATE TRIGGER a_delete AFTER INSERT ON h FOR EACH ROW EXECUTE FUNCTION delete_it();
INSERT INTO h SELECT 3, generate_series(1, 20);
INSERT INTO h VALUES (4, 4);
SELECT * FROM missing_and_stale('h');
ALTER TRIGGER a_delete ON h RENAME TO z_delete;
INSERT INTO h SELECT 3, generate_series(21, 40);
SELECT * FROM missing_and_stale('h');
DROP TRIGGER z_delete ON h;
-- AFTER STATEMENT triggers: deleted rows are inserted again
CREATE FUNCTION put_back() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO h SELECT * FROM old_pairs WHERE p % 3 = 0; RETURN NULL; END $$;
CREATE TRIGGER a_put_back AFTER DELETE ON h REFERENCING OLD TABLE AS old_pairs
	FOR EACH STATEMENT EXECUTE FUNCTION put_back();
DELETE FROM h WHERE u = 3;
SELECT * FROM missing_and_stale('h');
ALTER TRIGGER a_put_back ON h RENAME TO z_put_back;
DELETE FROM h WHERE u = 3;
SELECT * FROM missing_and_stale('h');
DROP TRIGGER z_put_back ON h;
-- recursion
CREATE FUNCTION go_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.p < 60 THEN
		UPDATE h SET p = p + 1, u = 9 - u WHERE u = NEW.u AND p = NEW.p;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER a_on AFTER INSERT OR UPDATE ON h FOR EACH ROW EXECUTE FUNCTION go_on();
INSERT INTO h VALUES (4, 54), (5, 56);
SELECT * FROM missing_and_stale('h');
DROP TRIGGER a_on ON h;
-- a function called by the statement itself
CREATE FUNCTION meddle(int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM h WHERE u = 6 AND p = $1 - 1;
	INSERT INTO h VALUES (7, $1);
	RETURN $1;
END $$;
INSERT INTO h SELECT 6, meddle(i) FROM generate_series(1, 10) i;
SELECT * FROM missing_and_stale('h');
-- at the end of the transaction
CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN DELETE FROM h WHERE u = NEW.u AND p = NEW.p - 1; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON h DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit();
BEGIN;
INSERT INTO h VALUES (8, 1);
INSERT INTO h VALUES (8, 2), (8, 3);
SELECT fav_count(filter) FROM h_fav WHERE u = 8;
COMMIT;
SELECT p FROM h WHERE u = 8;
SELECT * FROM missing_and_stale('h');
DROP TRIGGER at_commit ON h;

-- A trigger on the levels table that changes the source while filters are being written
SELECT fav_detach('h');
DELETE FROM h;
CREATE UNIQUE INDEX once ON h (u, p);
SELECT fav_attach('h', 'u', 'p');
INSERT INTO h SELECT u, p FROM generate_series(1, 3) u, generate_series(1, 4) p;
CREATE FUNCTION interfere() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO public.h SELECT 2, 1 WHERE TG_ARGV[0] = 'insert' ON CONFLICT DO NOTHING;
	DELETE FROM public.h WHERE u = 2 AND p = 5 AND TG_ARGV[0] = 'delete';
	RETURN NULL;
END $$;
CREATE TRIGGER interfere AFTER UPDATE ON h_fav_levels FOR EACH ROW WHEN (NEW.u = 1) EXECUTE FUNCTION interfere('insert');
DELETE FROM h WHERE p = 1;
SELECT u, p FROM h WHERE p = 1;
SELECT * FROM missing_and_stale('h');
DROP TRIGGER interfere ON h_fav_levels;
CREATE TRIGGER interfere AFTER UPDATE ON h_fav_levels FOR EACH ROW WHEN (NEW.u = 1) EXECUTE FUNCTION interfere('delete');
INSERT INTO h SELECT generate_series(1, 3), 5;
SELECT u, p FROM h WHERE p = 5 ORDER BY u;
SELECT * FROM missing_and_stale('h');
DROP TRIGGER interfere ON h_fav_levels;
DROP INDEX once;
SELECT fav_rebuild('h');

-- Nested blocks that fail and are rolled back, also after the filter was written
CREATE FUNCTION dig(depth int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO h VALUES (20, depth), (21, depth);
	BEGIN
		INSERT INTO h VALUES (20, 100 + depth);
		IF depth > 0 THEN PERFORM dig(depth - 1); END IF;
		DELETE FROM h WHERE u = 21 AND p = depth;
		IF depth % 3 = 1 THEN RAISE EXCEPTION 'no'; END IF;
	EXCEPTION WHEN raise_exception THEN
		INSERT INTO h VALUES (20, 200 + depth);
	END;
	UPDATE h SET p = p + 50 WHERE u = 20 AND p = depth;
END $$;
SELECT dig(7);
SELECT array_agg(p ORDER BY p) FROM h WHERE u = 20;
SELECT array_agg(p ORDER BY p) FROM h WHERE u = 21;
SELECT * FROM missing_and_stale('h');
-- a statement that fails in a trigger after ours
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
CREATE TRIGGER z_fail AFTER INSERT ON h FOR EACH STATEMENT EXECUTE FUNCTION fail();
DO $$
BEGIN
	FOR i IN 1 .. 5 LOOP
		BEGIN
			INSERT INTO h VALUES (1, 90 + i);
		EXCEPTION WHEN raise_exception THEN
			UPDATE h SET p = p + 1 WHERE u = 2;
		END;
	END LOOP;
END $$;
SELECT * FROM missing_and_stale('h');
DROP TRIGGER z_fail ON h;
-- a filter with levels, rebuilt in a block that is rolled back
INSERT INTO h SELECT 30, generate_series(1, 1000);
BEGIN;
DELETE FROM h WHERE u = 30 AND p <= 10;
SAVEPOINT a;
INSERT INTO h SELECT 30, generate_series(1001, 5000);
SELECT fav_rebuild('h', '30');
ROLLBACK TO a;
INSERT INTO h VALUES (30, 1001);
COMMIT;
SELECT * FROM missing_and_stale('h');

DROP TABLE h, h_fav_levels CASCADE;
DROP FUNCTION missing_and_stale, rebuild, swap, before_row, delete_it, put_back, go_on, meddle, at_commit, interfere, dig, fail;
