--
-- Filters that maintain themselves: who may do what, and what tricks do not work
--
\set SHOW_CONTEXT never
CREATE ROLE fav_owner;
CREATE ROLE fav_writer;
CREATE ROLE fav_stranger;
CREATE SCHEMA yard;
GRANT USAGE, CREATE ON SCHEMA yard TO fav_owner, fav_stranger;
GRANT USAGE ON SCHEMA yard TO fav_writer;

SET ROLE fav_owner;
CREATE TABLE yard.pairs (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE yard.users (id int PRIMARY KEY, hidden fav, blocked fav, vip fav);
INSERT INTO yard.users (id) SELECT generate_series(1, 3);
INSERT INTO yard.pairs VALUES (1, 1);
SET ROLE fav_stranger;
CREATE TABLE yard.mine (k int, e int, PRIMARY KEY (k, e));
CREATE TABLE yard.my_users (id int PRIMARY KEY, hidden fav);

-- attaching needs ownership of both
SELECT fav_attach('yard.pairs', 'k', 'e');
SELECT fav_attach('yard.mine', 'k', 'e', 'yard.users', filter => 'hidden');
SELECT fav_attach('yard.pairs', 'k', 'e', 'yard.my_users');
RESET ROLE;
-- even for a superuser: the owner of the source shall not reach the target by it
SELECT fav_attach('yard.mine', 'k', 'e', 'yard.users', filter => 'hidden');

SET ROLE fav_owner;
SELECT fav_attach('yard.pairs', 'k', 'e');
SELECT fav_attach('yard.pairs', 'k', 'e', 'yard.users', filter => 'hidden');
GRANT INSERT, DELETE, UPDATE, SELECT ON yard.pairs TO fav_writer, fav_stranger;
GRANT TRIGGER ON yard.pairs TO fav_stranger;
SELECT relowner::regrole FROM pg_class WHERE oid = 'yard.pairs_fav'::regclass;

-- a writer needs no rights on the filters
SET ROLE fav_writer;
INSERT INTO yard.pairs VALUES (1, 2), (2, 2), (9, 9);
DELETE FROM yard.pairs WHERE e = 1;
UPDATE yard.pairs SET e = 10 WHERE e = 9;
SELECT * FROM yard.pairs_fav;
SELECT filters, bytes, want_rebuild FROM fav_attachments WHERE source = 'yard.pairs'::regclass;
SELECT fav_verify('yard.pairs', 'yard.users');
SELECT fav_rebuild('yard.pairs', NULL, 'yard.users');
SELECT fav_rebuild('yard.pairs', '1', 'yard.users');
SELECT fav_detach('yard.pairs', 'yard.users');
SET ROLE fav_owner;
SELECT missing FROM fav_verify('yard.pairs', 'yard.users');
SELECT missing FROM fav_verify('yard.pairs', 'yard.pairs_fav');
SELECT filters > 0 AS filters, bytes > 0 AS bytes FROM fav_attachments WHERE source = 'yard.pairs'::regclass ORDER BY target::text;

-- the table of attachments
SET ROLE fav_stranger;
INSERT INTO fav_attachment VALUES ('yard.mine', 1, 'k', 'e', 'yard.users', 'id', 'vip', 0.01, 'bigint');
INSERT INTO fav_attachment VALUES ('yard.pairs', 3, 'k', 'e', 'yard.my_users', 'id', 'hidden', 0.01, 'bigint');
UPDATE fav_attachment SET filter = 'vip';
DELETE FROM fav_attachment;
-- ... about one's own tables it gives nothing that fav_attach would not
INSERT INTO fav_attachment VALUES ('yard.mine', 1, 'k', 'e', 'yard.my_users', 'id', 'hidden', 0.01, 'bigint');
SELECT active FROM fav_attachments WHERE source = 'yard.mine'::regclass;

-- triggers made by hand
CREATE TRIGGER forged AFTER INSERT ON yard.pairs REFERENCING NEW TABLE AS n
	FOR EACH STATEMENT EXECUTE FUNCTION fav_maintain('2');
INSERT INTO yard.pairs VALUES (3, 3);
RESET ROLE;
DROP TRIGGER forged ON yard.pairs;
SET ROLE fav_stranger;
CREATE TRIGGER fav_7_insert AFTER INSERT ON yard.pairs REFERENCING NEW TABLE AS n
	FOR EACH STATEMENT EXECUTE FUNCTION fav_maintain('7');
INSERT INTO yard.pairs VALUES (3, 3);
RESET ROLE;
DROP TRIGGER fav_7_insert ON yard.pairs;
SET ROLE fav_stranger;
CREATE TRIGGER fav_1_insert AFTER INSERT ON yard.mine REFERENCING NEW TABLE AS n
	FOR EACH STATEMENT EXECUTE FUNCTION fav_maintain('2');
INSERT INTO yard.mine VALUES (3, 3);
DROP TRIGGER fav_1_insert ON yard.mine;
CREATE TRIGGER fav_1_insert AFTER INSERT ON yard.mine
	FOR EACH STATEMENT EXECUTE FUNCTION fav_maintain('1');
INSERT INTO yard.mine VALUES (3, 3);
DROP TRIGGER fav_1_insert ON yard.mine;
CREATE TRIGGER fav_1_insert AFTER UPDATE ON yard.mine REFERENCING NEW TABLE AS n OLD TABLE AS o
	FOR EACH STATEMENT EXECUTE FUNCTION fav_maintain('1');
UPDATE yard.mine SET k = 1;
DROP TRIGGER fav_1_insert ON yard.mine;
CREATE TRIGGER fav_1_row BEFORE INSERT ON yard.mine FOR EACH ROW EXECUTE FUNCTION fav_maintain('1');
INSERT INTO yard.mine VALUES (3, 3);
DROP TRIGGER fav_1_row ON yard.mine;
CREATE TRIGGER fav_1_row AFTER INSERT ON yard.mine FOR EACH ROW EXECUTE FUNCTION fav_maintain();
INSERT INTO yard.mine VALUES (3, 3);
DROP TRIGGER fav_1_row ON yard.mine;
CREATE TRIGGER fav_1_row AFTER INSERT ON yard.mine FOR EACH ROW EXECUTE FUNCTION fav_maintain('1; DROP TABLE users');
INSERT INTO yard.mine VALUES (3, 3);
DROP TRIGGER fav_1_row ON yard.mine;
CREATE TRIGGER odd BEFORE INSERT ON yard.mine FOR EACH ROW EXECUTE FUNCTION fav_attachment_check();
INSERT INTO yard.mine VALUES (3, 3);
DROP TRIGGER odd ON yard.mine;
SELECT fav_maintain();
SELECT fav_apply(fav_new());
-- on another table of a column of the same name
CREATE TRIGGER fav_2_insert AFTER INSERT ON yard.mine REFERENCING NEW TABLE AS n
	FOR EACH STATEMENT EXECUTE FUNCTION fav_maintain('2');
INSERT INTO yard.mine VALUES (3, 3);
DROP TRIGGER fav_2_insert ON yard.mine;
-- a child of somebody's table is no way in
CREATE TABLE yard.child () INHERITS (yard.pairs);

-- a table that changes its owner
RESET ROLE;
ALTER TABLE yard.mine OWNER TO fav_owner;
SET ROLE fav_owner;
SELECT fav_attach('yard.mine', 'k', 'e', 'yard.users', filter => 'blocked');
INSERT INTO yard.mine VALUES (1, 1);
RESET ROLE;
ALTER TABLE yard.mine OWNER TO fav_stranger;
SET ROLE fav_stranger;
INSERT INTO yard.mine VALUES (1, 2);
RESET ROLE;
GRANT fav_owner TO fav_stranger;
SET ROLE fav_stranger;
INSERT INTO yard.mine VALUES (1, 2);
RESET ROLE;
GRANT SELECT ON yard.mine TO fav_owner;
SET ROLE fav_stranger;
INSERT INTO yard.mine VALUES (1, 2);
RESET ROLE;
SELECT missing FROM fav_verify('yard.mine', 'yard.users');
-- ... whose row security would hide pairs from the owner of the filters
ALTER TABLE yard.mine ENABLE ROW LEVEL SECURITY;
SET ROLE fav_stranger;
ALTER TABLE yard.mine DROP CONSTRAINT mine_pkey;
DELETE FROM yard.mine WHERE e = 2;
RESET ROLE;
DROP TABLE yard.mine, yard.my_users;
REVOKE fav_owner FROM fav_stranger;

-- row security on source and target, forced on their owner, too
ALTER TABLE yard.pairs DROP CONSTRAINT pairs_pkey;
CREATE INDEX ON yard.pairs (k, e);
SET ROLE fav_owner;
INSERT INTO yard.pairs VALUES (1, 50), (1, 50), (1, 51), (2, 51);
ALTER TABLE yard.pairs ENABLE ROW LEVEL SECURITY;
ALTER TABLE yard.pairs FORCE ROW LEVEL SECURITY;
ALTER TABLE yard.users ENABLE ROW LEVEL SECURITY;
ALTER TABLE yard.users FORCE ROW LEVEL SECURITY;
ALTER TABLE yard.pairs_fav ENABLE ROW LEVEL SECURITY;
ALTER TABLE yard.pairs_fav FORCE ROW LEVEL SECURITY;
CREATE POLICY low ON yard.pairs TO fav_writer USING (k = 1 AND ctid <> '(0,99)') WITH CHECK (true);
SET ROLE fav_writer;
INSERT INTO yard.pairs VALUES (5, 5), (1, 60);
SELECT * FROM yard.pairs ORDER BY 1, 2;
DELETE FROM yard.pairs WHERE ctid = (SELECT min(ctid) FROM yard.pairs WHERE e = 50);
DELETE FROM yard.pairs WHERE e = 51;
RESET ROLE;
SELECT missing FROM fav_verify('yard.pairs', 'yard.users');
SELECT id, ARRAY(SELECT i FROM generate_series(1, 60) i WHERE hidden @> i) FROM yard.users ORDER BY id;
SET ROLE fav_owner;
SELECT fav_rebuild('yard.pairs', NULL, 'yard.users');
-- what one may not see one cannot verify
SELECT fav_verify('yard.pairs', 'yard.users');
RESET ROLE;
SELECT missing FROM fav_verify('yard.pairs', 'yard.users');
ALTER TABLE yard.pairs DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
ALTER TABLE yard.users DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;

-- search_path: a writer's own operators and functions, and what runs as the owner
SET ROLE fav_owner;
CREATE TABLE yard.log (who text, path text);
CREATE FUNCTION yard.note() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO yard.log VALUES (current_user, current_setting('search_path')); RETURN NEW; END $$;
CREATE TRIGGER note BEFORE UPDATE ON yard.users FOR EACH ROW EXECUTE FUNCTION yard.note();
RESET ROLE;
CREATE SCHEMA trap AUTHORIZATION fav_writer;
SET ROLE fav_writer;
CREATE FUNCTION trap.evil(int, int) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
CREATE FUNCTION trap.evil(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
CREATE OPERATOR trap.= (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.evil);
CREATE OPERATOR trap.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.evil);
CREATE OPERATOR trap.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.evil);
CREATE FUNCTION trap.fav_add(fav, bigint) RETURNS fav LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
CREATE FUNCTION trap.count(bigint) RETURNS bigint LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'caught as %', current_user; END $$;
SET search_path = trap, public, pg_catalog;
INSERT INTO yard.pairs VALUES (1, 70);
INSERT INTO yard.pairs VALUES (1, 71), (1, 72), (3, 70);
DELETE FROM yard.pairs WHERE e OPERATOR(pg_catalog.=) 71;
RESET ROLE;
SELECT missing FROM fav_verify('yard.pairs', 'yard.users');
SELECT fav_rebuild('yard.pairs', NULL, 'yard.users');
SELECT fav_rebuild('yard.pairs', '1', 'yard.users');
SELECT count(source) FROM fav_attachments;
RESET search_path;
SELECT DISTINCT * FROM yard.log;

-- a trigger of the target that swallows the change
SET ROLE fav_owner;
CREATE OR REPLACE FUNCTION yard.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
SET ROLE fav_writer;
INSERT INTO yard.pairs VALUES (1, 80);
RESET ROLE;

-- ... and one that calls somebody else's function, which would like to know what was hidden
SET ROLE fav_stranger;
CREATE FUNCTION yard.curious() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = public AS
	$$ SELECT fav_count(fav_apply(fav_new())) $$;
SET ROLE fav_owner;
CREATE OR REPLACE FUNCTION yard.note() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE NOTICE 'hidden: %', yard.curious(); RETURN NEW; END $$;
SET ROLE fav_writer;
INSERT INTO yard.pairs VALUES (1, 80);
RESET ROLE;

-- an extension that was trusted to somebody
CREATE ROLE fav_installer;
SELECT nspowner::regrole <> 'fav_installer'::regrole AS other, relowner::regrole::text = current_user AS superuser
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relname = 'fav_attachment';

SET client_min_messages = warning;
DROP SCHEMA yard, trap CASCADE;
DROP ROLE fav_owner, fav_writer, fav_stranger, fav_installer;
