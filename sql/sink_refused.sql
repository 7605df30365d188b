-- What a sink cannot do justice to is refused: by fav_sink, and by writes if it comes later.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE TABLE users(id bigint PRIMARY KEY);
CREATE TABLE seen(user_id bigint, post_id bigint, at timestamptz);
CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';

-- Constraints that nobody would check
ALTER TABLE seen ADD CONSTRAINT positive CHECK (post_id > 0);
SELECT fav_sink('seen', 'user_id', 'post_id');
ALTER TABLE seen DROP CONSTRAINT positive;
ALTER TABLE seen ADD CONSTRAINT of_user FOREIGN KEY (user_id) REFERENCES users;
SELECT fav_sink('seen', 'user_id', 'post_id');
ALTER TABLE seen DROP CONSTRAINT of_user;
ALTER TABLE seen ADD CONSTRAINT one_by_one EXCLUDE USING btree (user_id WITH =, post_id WITH =);
SELECT fav_sink('seen', 'user_id', 'post_id');
ALTER TABLE seen DROP CONSTRAINT one_by_one;
-- Unique indexes that demand more than a sink does, which has each pair once
ALTER TABLE seen ADD CONSTRAINT single UNIQUE (post_id) DEFERRABLE INITIALLY DEFERRED;
SELECT fav_sink('seen', 'user_id', 'post_id');
ALTER TABLE seen DROP CONSTRAINT single, ADD CONSTRAINT single UNIQUE (user_id, at);
SELECT fav_sink('seen', 'user_id', 'post_id');
ALTER TABLE seen DROP CONSTRAINT single;
CREATE UNIQUE INDEX single ON seen((post_id % 10));
SELECT fav_sink('seen', 'user_id', 'post_id');
DROP INDEX single;
CREATE UNIQUE INDEX single ON seen(user_id) WHERE post_id = 1;
SELECT fav_sink('seen', 'user_id', 'post_id');
DROP INDEX single;
-- Generated columns, which are not computed
ALTER TABLE seen ADD twice bigint GENERATED ALWAYS AS (nullif(post_id, 7) * 2) STORED NOT NULL;
SELECT fav_sink('seen', 'user_id', 'post_id');
CREATE DOMAIN even AS bigint CHECK (VALUE % 4 = 0);
ALTER TABLE seen DROP twice, ADD twice even GENERATED ALWAYS AS (post_id * 2) STORED;
SELECT fav_sink('seen', 'user_id', 'post_id');
ALTER TABLE seen DROP twice;
-- Triggers that would not fire, or see nothing
CREATE TRIGGER later AFTER INSERT ON seen FOR EACH ROW EXECUTE FUNCTION pass();
SELECT fav_sink('seen', 'user_id', 'post_id');
DROP TRIGGER later ON seen;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON seen DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pass();
SELECT fav_sink('seen', 'user_id', 'post_id');
DROP TRIGGER later ON seen;
CREATE TRIGGER later AFTER INSERT ON seen REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION pass();
SELECT fav_sink('seen', 'user_id', 'post_id');
DROP TRIGGER later ON seen;
CREATE TRIGGER zzz BEFORE INSERT OR UPDATE ON seen FOR EACH ROW EXECUTE FUNCTION pass();
SELECT fav_sink('seen', 'user_id', 'post_id');
ALTER TABLE seen DISABLE TRIGGER zzz;
-- Policies, partitions, children
ALTER TABLE seen ENABLE ROW LEVEL SECURITY;
SELECT fav_sink('seen', 'user_id', 'post_id');
ALTER TABLE seen DISABLE ROW LEVEL SECURITY;
CREATE TABLE parts(user_id bigint, post_id bigint, at timestamptz) PARTITION BY LIST (user_id);
CREATE TABLE part PARTITION OF parts FOR VALUES IN (1);
SELECT fav_sink('parts', 'user_id', 'post_id');
SELECT fav_sink('part', 'user_id', 'post_id');
CREATE TABLE child() INHERITS (seen);
SELECT fav_sink('seen', 'user_id', 'post_id');
DROP TABLE child;
-- Other filters of the same table
SELECT fav_attach('seen', 'user_id', 'post_id', name => 'other');
SELECT fav_sink('seen', 'user_id', 'post_id');
SELECT fav_detach('seen');
-- What is not a table, and other arguments
CREATE VIEW v AS SELECT * FROM seen;
SELECT fav_sink('v', 'user_id', 'post_id');
CREATE TEMP TABLE fleeting(a int, b int);
SELECT fav_sink('fleeting', 'a', 'b');
CREATE TABLE generated(a int, b int GENERATED ALWAYS AS (a + 1) STORED);
SELECT fav_sink('generated', 'a', 'b');
SELECT fav_sink('seen', 'user_id', 'at');
SELECT fav_sink('seen', 'user_id', 'nothing');
SELECT fav_sink('seen', 'user_id', 'user_id');
SELECT fav_sink('seen', 'user_id', NULL);
SELECT fav_sink(NULL, 'user_id', 'post_id');
SELECT fav_sink('seen', 'user_id', 'post_id', error_rate => 0);
SELECT count(*) FROM fav_attachments;

-- The same, later: the next write says so, and fav_attachments does.
SELECT fav_sink('seen', 'user_id', 'post_id');
INSERT INTO seen VALUES (1, 1);
SELECT fav_sink('seen', 'user_id', 'post_id');
ALTER TABLE seen ADD CONSTRAINT positive CHECK (post_id > 0);
INSERT INTO seen VALUES (1, 2);
SELECT active FROM fav_attachments;
ALTER TABLE seen DROP CONSTRAINT positive;
ALTER TABLE seen ADD CONSTRAINT of_user FOREIGN KEY (user_id) REFERENCES users;
INSERT INTO seen VALUES (1, 2);
ALTER TABLE seen DROP CONSTRAINT of_user;
ALTER TABLE seen ADD CONSTRAINT one_by_one EXCLUDE USING btree (post_id WITH =);
INSERT INTO seen VALUES (1, 2);
ALTER TABLE seen DROP CONSTRAINT one_by_one, ADD CONSTRAINT single UNIQUE (post_id);
INSERT INTO seen VALUES (1, 2);
SELECT active FROM fav_attachments;
ALTER TABLE seen DROP CONSTRAINT single;
CREATE TRIGGER later AFTER INSERT ON seen FOR EACH ROW EXECUTE FUNCTION pass();
INSERT INTO seen VALUES (1, 2);
DROP TRIGGER later ON seen;
ALTER TABLE seen ENABLE TRIGGER zzz;
INSERT INTO seen VALUES (1, 2);
DROP TRIGGER zzz ON seen;
ALTER TABLE seen ENABLE ROW LEVEL SECURITY;
INSERT INTO seen VALUES (1, 2);
ALTER TABLE seen DISABLE ROW LEVEL SECURITY;
ALTER TABLE parts ATTACH PARTITION seen FOR VALUES IN (2);
INSERT INTO parts VALUES (2, 2);
INSERT INTO seen VALUES (2, 2);
ALTER TABLE parts DETACH PARTITION seen;
CREATE TABLE child() INHERITS (seen);
INSERT INTO seen VALUES (1, 2);
DROP TABLE child;
SELECT fav_attach('seen', 'user_id', 'post_id', name => 'other');
ALTER TABLE seen DISABLE TRIGGER zz_seen_fav_levels_insert;
SELECT active FROM fav_attachments;
ALTER TABLE seen ENABLE ALWAYS TRIGGER zz_seen_fav_levels_insert;
SELECT active FROM fav_attachments;
SELECT array_agg(n) FROM seen_fav, generate_series(0, 100) n WHERE fav_contains(filter, n);
SELECT count(*) FROM seen;

-- What works: unique indexes on key and element, or on columns that are thrown away, statement
-- triggers, BEFORE triggers with earlier names, rules, views, being a child, identity columns,
-- domains, generated columns
ALTER TABLE seen ADD UNIQUE (post_id, user_id), ADD UNIQUE (user_id, at, post_id), ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	ADD COLUMN twice bigint GENERATED ALWAYS AS (post_id * 2) STORED, ADD COLUMN other even;
INSERT INTO seen VALUES (3, 1) ON CONFLICT DO NOTHING;
INSERT INTO seen VALUES (3, 1) ON CONFLICT (user_id, post_id) DO NOTHING;
INSERT INTO seen(user_id, post_id, other) VALUES (3, 10, 1);
INSERT INTO v VALUES (3, 1), (4, 1), (4, 1);
SELECT user_id FROM seen_fav WHERE fav_contains(filter, 1) ORDER BY 1;
CREATE RULE also AS ON INSERT TO seen DO ALSO INSERT INTO users VALUES (NEW.user_id);
INSERT INTO seen VALUES (5, 1);
SELECT id FROM users;
DROP RULE also ON seen;
CREATE RULE instead AS ON DELETE TO seen DO INSTEAD SELECT seen_remove(OLD.user_id, ARRAY[OLD.post_id]);
DELETE FROM seen;
DROP RULE instead ON seen;
CREATE TABLE general(user_id bigint, post_id bigint, at timestamptz);
ALTER TABLE seen INHERIT general;
INSERT INTO seen VALUES (6, 1);
INSERT INTO general VALUES (7, 1);
SELECT user_id FROM seen_fav WHERE fav_contains(filter, 1) ORDER BY 1;
SELECT user_id FROM general;
UPDATE general SET post_id = 2;
ALTER TABLE seen NO INHERIT general;
CREATE UNLOGGED TABLE faint(a int, b int);
SELECT fav_sink('faint', 'a', 'b');
INSERT INTO faint VALUES (1, 1);
SELECT relpersistence FROM pg_class WHERE relname = 'faint_fav_levels';
ALTER TABLE faint SET LOGGED;
INSERT INTO faint VALUES (1, 2);
ALTER TABLE faint_fav_levels SET LOGGED;
INSERT INTO faint VALUES (1, 2);
SELECT fav_count(filter) FROM faint_fav;

-- A statement that has not ended
CREATE FUNCTION forget_all(u bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		PERFORM seen_remove(u, ARRAY[1]);
	EXCEPTION WHEN object_in_use THEN
		RAISE WARNING '%', SQLERRM;
	END;
	RETURN u;
END $$;
INSERT INTO seen SELECT forget_all(u), u FROM generate_series(20, 22) u;
SELECT user_id, fav_contains(filter, user_id) FROM seen_fav WHERE user_id >= 20 ORDER BY 1;

-- Rights: who may insert needs nothing else, also to call <sink>_add; <sink>_remove needs DELETE, TRUNCATE its own.
CREATE ROLE sink_owner;
CREATE ROLE sink_writer;
GRANT USAGE, CREATE ON SCHEMA public TO sink_owner;
GRANT USAGE ON SCHEMA public TO sink_writer;
SET ROLE sink_owner;
CREATE TABLE mine(k int, e int);
SELECT fav_sink('seen', 'user_id', 'post_id');
SELECT fav_sink('mine', 'k', 'e');
GRANT INSERT ON mine TO sink_writer;
SET ROLE sink_writer;
INSERT INTO mine VALUES (1, 1), (1, 2), (1, 3);
SELECT * FROM mine_fav;
UPDATE mine_fav_levels SET log1 = NULL;
SELECT mine_remove(1, ARRAY[1]);
SELECT fav_detach('mine');
TRUNCATE mine;
RESET ROLE;
GRANT DELETE ON mine TO sink_writer;
SET ROLE sink_writer;
SELECT mine_remove(1, ARRAY[1]);
RESET ROLE;
SELECT fav_contains(filter, 1), fav_contains(filter, 2) FROM mine_fav;
-- a trigger of the owner's levels table runs as the owner
CREATE FUNCTION who() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'as %', current_user; RETURN NEW; END $$;
SET ROLE sink_owner;
CREATE TRIGGER who BEFORE UPDATE ON mine_fav_levels FOR EACH ROW EXECUTE FUNCTION who();
SET ROLE sink_writer;
INSERT INTO mine VALUES (1, 4);
SELECT mine_remove(1, ARRAY[2]);
RESET ROLE;
-- one that drops the write is an error
CREATE OR REPLACE FUNCTION who() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
INSERT INTO mine VALUES (1, 5);
DROP TRIGGER who ON mine_fav_levels;
-- forged triggers
CREATE TABLE forged(k int, e int);
CREATE TRIGGER t BEFORE INSERT ON forged FOR EACH ROW WHEN ('mine_fav_levels'::regclass IS NOT NULL AND NEW.k IS NOT NULL AND NEW.e IS NOT NULL) EXECUTE FUNCTION fav_collect();
INSERT INTO forged VALUES (1, 1) RETURNING *;
CREATE TRIGGER u BEFORE UPDATE ON mine FOR EACH ROW WHEN ('mine_fav_levels'::regclass IS NOT NULL AND NEW.k IS NOT NULL AND NEW.e IS NOT NULL) EXECUTE FUNCTION fav_collect();
INSERT INTO mine VALUES (1, 6);
DROP TRIGGER u ON mine;
-- rows and logs of strangers
UPDATE mine_fav_levels SET recent = fav_add(NULL, ARRAY(SELECT generate_series(1, 200)));
INSERT INTO mine VALUES (1, 7);
UPDATE mine_fav_levels SET recent = DEFAULT, log1 = '\x010203';
INSERT INTO mine VALUES (1, 8);
INSERT INTO mine SELECT 1, generate_series(1, 300);
UPDATE mine_fav_levels SET log1 = '\xffffffff00';
INSERT INTO mine SELECT 1, generate_series(1, 300);
UPDATE mine_fav_levels SET log1 = '\x0100000000';
INSERT INTO mine SELECT 1, generate_series(1, 300);
UPDATE mine_fav_levels SET log1 = NULL;
INSERT INTO mine SELECT 1, generate_series(1, 300);
SELECT count(*) FROM mine_fav, generate_series(1, 300) n WHERE fav_contains(filter, n);

DROP TABLE seen, seen_fav_levels, mine, mine_fav_levels, faint, faint_fav_levels, forged, users, parts, general, generated CASCADE;
DROP DOMAIN even;
DROP FUNCTION pass, who, forget_all;
DROP OWNED BY sink_owner, sink_writer;
DROP ROLE sink_owner, sink_writer;
