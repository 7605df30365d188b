--
-- Attached filters on shards.  A stand-in for the catalogs and functions of Citus that the code
-- reads: a distributed table and its shards are ordinary tables here.  t/citus.pl is about Citus
-- itself.
--
SET client_min_messages = warning;
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (
	logicalrelid regclass, partmethod "char", partkey text, colocationid int, repmodel "char"
);
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid bigint, shardminvalue text);
CREATE TABLE pg_catalog.pg_dist_local_group (groupid int);
INSERT INTO pg_dist_local_group VALUES (0);
GRANT SELECT ON pg_dist_partition, pg_dist_shard, pg_dist_local_group TO PUBLIC;
CREATE FUNCTION pg_catalog.shard_name(regclass, bigint) RETURNS text STABLE STRICT LANGUAGE sql AS
$$ SELECT quote_ident(relname || '_' || $2) FROM pg_class WHERE oid = $1 $$;
CREATE FUNCTION pg_catalog.column_to_column_name(oid, text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT $2 $$;

-- Two shards; column defaults and storage are copied to them.
CREATE SEQUENCE shard_numbers START 1001;
CREATE FUNCTION distribute(shell regclass, key text, method "char" DEFAULT 'h', colocation int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	range text;
	number bigint;
BEGIN
	INSERT INTO pg_dist_partition VALUES (shell, method, key, colocation, 's');
	FOREACH range IN ARRAY ARRAY['-2147483648', '0'] LOOP
		number := nextval('public.shard_numbers');
		INSERT INTO pg_dist_shard VALUES (shell, number, range);
		EXECUTE format('CREATE TABLE public.%s (LIKE %s INCLUDING ALL)', shard_name(shell, number), shell);
		EXECUTE format('ALTER TABLE public.%s OWNER TO %s', shard_name(shell, number), (SELECT relowner::regrole FROM pg_class WHERE oid = shell));
	END LOOP;
END
$$;
CREATE FUNCTION pg_catalog.create_distributed_table(regclass, distribution_column text, distribution_type text, colocate_with text)
RETURNS void LANGUAGE sql AS $$ SELECT public.distribute($1, $2) $$;

-- Triggers are copied word by word.
CREATE FUNCTION copy_triggers(shell regclass, shard regclass) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	t record;
BEGIN
	FOR t IN SELECT tgname, pg_get_triggerdef(oid) AS definition FROM pg_trigger
		WHERE tgrelid = shell AND NOT tgisinternal AND tgname !~ 'truncate' ORDER BY tgname
	LOOP
		EXECUTE replace(replace(t.definition, ' ON public.' || shell, ' ON ' || shard), t.tgname, t.tgname || substring(shard::text FROM '_[0-9]+$'));
		EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', shard, t.tgname || substring(shard::text FROM '_[0-9]+$'));
	END LOOP;
END
$$;
RESET allow_system_table_mods;

CREATE TABLE pairs (k int, e int, PRIMARY KEY (k, e));
SELECT distribute('pairs', 'k');

-- What is refused before anything is changed
SELECT fav_attach('pairs', 'e', 'k');
SELECT fav_attach('pairs', 'k', 'e', share => 10);
SELECT fav_attach('pairs_1001', 'k', 'e');
UPDATE pg_dist_local_group SET groupid = 1;
SELECT fav_attach('pairs', 'k', 'e');
UPDATE pg_dist_local_group SET groupid = 0;
UPDATE pg_dist_partition SET colocationid = 0, partmethod = 'n';
SELECT fav_attach('pairs', 'k', 'e');
UPDATE pg_dist_partition SET colocationid = 1, partmethod = 'r';
SELECT fav_attach('pairs', 'k', 'e');
UPDATE pg_dist_partition SET partmethod = 'h';
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT fav_attach('pairs', 'k', 'e');
ROLLBACK;
CREATE TABLE parts (k int, e int, PRIMARY KEY (k, e)) PARTITION BY RANGE (k);
INSERT INTO pg_dist_partition VALUES ('parts', 'h', 'k', 2, 's');
SELECT fav_attach('parts', 'k', 'e');
DROP TABLE parts;
SELECT count(*) FROM pg_class WHERE relname ~ '_fav';

-- The triggers name the filters, and not by their number: other nodes have other numbers.
SELECT fav_attach('pairs', 'k', 'e');
SELECT copy_triggers('pairs', 'pairs_1001'), copy_triggers('pairs', 'pairs_1002');
SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'pairs'::regclass ORDER BY tgname COLLATE "C";
SELECT relname FROM pg_class WHERE relname ~ '^pairs.*_[0-9]+$' AND relkind = 'r' ORDER BY relname COLLATE "C";

-- A shard writes the filters beside it
INSERT INTO pairs_1001 SELECT k, e FROM generate_series(1, 5) k, generate_series(1, 200) e;
INSERT INTO pairs_1002 SELECT k, e FROM generate_series(6, 10) k, generate_series(1, 10) e;
DELETE FROM pairs_1001 WHERE e = 7;
UPDATE pairs_1002 SET e = e + 1000 WHERE e = 5;
SELECT count(*), min(k), max(k) FROM pairs_fav_levels_1003;
SELECT count(*), min(k), max(k) FROM pairs_fav_levels_1004;
SELECT count(*) FROM pairs_fav_levels;
SELECT keys, elements, missing, stale FROM fav_verify('pairs_1001');
SELECT keys, elements, missing, stale FROM fav_verify('pairs_1002', 'pairs_fav');
SELECT keys, exact_keys FROM fav_attachment_stats('pairs_1001');
BEGIN;
DELETE FROM pairs_fav_levels_1003 WHERE k = 1;
SELECT missing FROM fav_verify('pairs_1001');
SELECT fav_rebuild('pairs_1001', '1');
SELECT missing FROM fav_verify('pairs_1001');
DELETE FROM pairs_fav_levels_1003;
SELECT fav_rebuild('pairs_1001');
SELECT missing FROM fav_verify('pairs_1001');
ROLLBACK;
CALL fav_build('pairs_1002', rebuild => true);
SELECT keys, missing, stale FROM fav_verify('pairs_1002');

-- The table is listed, and its shards are not; maintenance is for the shards
SELECT source, key, element, filter, levels, complete, active FROM fav_attachments;
SELECT fav_verify('pairs');
SELECT fav_rebuild('pairs');
SELECT fav_detach('pairs_1001');

-- A shard that comes from elsewhere with its filters
CREATE TABLE moved AS SELECT * FROM pairs_1002;
CREATE TABLE moved_levels AS SELECT * FROM pairs_fav_levels_1004;
DROP TABLE pairs_1002, pairs_fav_levels_1004;
CREATE TABLE pairs_1002 (LIKE pairs INCLUDING ALL);
CREATE TABLE pairs_fav_levels_1004 (LIKE pairs_fav_levels INCLUDING ALL);
INSERT INTO pairs_1002 SELECT * FROM moved;
INSERT INTO pairs_fav_levels_1004 SELECT * FROM moved_levels;
SELECT copy_triggers('pairs', 'pairs_1002');
INSERT INTO pairs_1002 SELECT k, 2000 FROM generate_series(6, 12) k;
SELECT keys, missing, stale FROM fav_verify('pairs_1002');

-- A truncate of a shard is followed by one of the filters, which is not its own business
TRUNCATE pairs_1002;
SELECT count(*) FROM pairs_fav_levels_1004;
INSERT INTO pairs_fav_levels SELECT 1;
TRUNCATE pairs;
SELECT count(*) FROM pairs_fav_levels;

-- Never silently without filters: they are not here, or the shard is not known, or the names lead nowhere
ALTER TABLE pairs_fav_levels_1003 RENAME TO elsewhere;
INSERT INTO pairs_1001 VALUES (1, 5000);
ALTER TABLE elsewhere RENAME TO pairs_fav_levels_1003;
UPDATE pg_dist_shard SET shardid = 9001 WHERE shardid = 1001;
INSERT INTO pairs_1001 VALUES (1, 5000);
UPDATE pg_dist_shard SET shardid = 1001 WHERE shardid = 9001;
ALTER TABLE pairs_fav_levels RENAME TO elsewhere;
INSERT INTO pairs_1001 VALUES (1, 5000);
ALTER TABLE elsewhere RENAME TO pairs_fav_levels;
ALTER TABLE pairs_fav_levels_1003 ALTER recent DROP DEFAULT;
INSERT INTO pairs_1001 VALUES (1, 5000);
ALTER TABLE pairs_fav_levels_1003 ALTER recent SET DEFAULT fav_recent('pairs', '0.01'::float8, '0'::bigint, 0);
INSERT INTO pairs_1001 VALUES (1, 5000);
SELECT missing, stale FROM fav_verify('pairs_1001');
DO $$
BEGIN
	EXECUTE (SELECT format('DROP TRIGGER %I ON pairs_1001', tgname) FROM pg_trigger WHERE tgrelid = 'pairs_1001'::regclass AND tgname ~ 'delete');
END
$$;
SELECT fav_rebuild('pairs_1001');

-- Tables of another owner, and triggers of others
CREATE ROLE regress_shard_owner;
ALTER TABLE pairs_fav_levels_1003 OWNER TO regress_shard_owner;
INSERT INTO pairs_1001 VALUES (1, 5001);
ALTER TABLE pairs_fav_levels_1003 OWNER TO CURRENT_USER;
CREATE TABLE other (k int, e int, PRIMARY KEY (k, e));
SELECT distribute('other', 'k');
SELECT min(shardid) AS first FROM pg_dist_shard WHERE logicalrelid = 'other'::regclass \gset
CREATE TRIGGER forged AFTER INSERT ON other_:first FOR EACH ROW
	WHEN ('public.pairs_fav_levels'::text IS NOT NULL AND NEW.k IS NOT NULL AND NEW.e IS NOT NULL) EXECUTE FUNCTION fav_collect();
INSERT INTO other_:first VALUES (1, 6000);
SELECT missing, stale FROM fav_verify('pairs_1001');
CREATE TABLE plain (k int, e int);
CREATE TRIGGER forged AFTER INSERT ON plain FOR EACH ROW
	WHEN ('public.pairs_fav_levels'::text IS NOT NULL AND NEW.k IS NOT NULL AND NEW.e IS NOT NULL) EXECUTE FUNCTION fav_collect();
INSERT INTO plain VALUES (1, 6000);
CREATE TRIGGER nonsense AFTER INSERT ON plain FOR EACH ROW
	WHEN ('no..name'::text IS NOT NULL AND NEW.k IS NOT NULL AND NEW.e IS NOT NULL) EXECUTE FUNCTION fav_collect();
SELECT source, active FROM fav_attachments;

-- A build of all shards
CREATE FUNCTION pg_catalog.run_command_on_placements(regclass, text, boolean, OUT nodename text, OUT nodeport int, OUT shardid bigint, OUT success boolean, OUT result text)
RETURNS SETOF record LANGUAGE sql AS
$$ SELECT 'here', 5432, s.shardid, s.shardid % 2 = 1, format($2, s.shardid) FROM pg_catalog.pg_dist_shard s WHERE s.logicalrelid = $1 ORDER BY s.shardid $$;
SELECT fav_attach('pairs', 'k', 'e', name => 'later', build => false);
CALL fav_build('pairs', 'later');
SELECT complete FROM fav_attachments WHERE levels = 'later_levels'::regclass;
DELETE FROM pg_dist_shard WHERE logicalrelid = 'pairs'::regclass AND shardid % 2 = 0;
CALL fav_build('pairs', 'later');
SELECT complete FROM fav_attachments WHERE levels = 'later_levels'::regclass;
SELECT fav_detach('pairs', 'later');

-- Away with all of it
SELECT fav_detach('pairs', 'pairs_fav');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'pairs'::regclass;
DO $$
DECLARE
	t text;
BEGIN
	FOR t IN SELECT relname FROM pg_class WHERE relname ~ '_[0-9]{4}$' AND relkind = 'r' LOOP
		EXECUTE format('DROP TABLE %I CASCADE', t);
	END LOOP;
END
$$;
DROP TABLE pairs, other, plain, moved, moved_levels;
SET allow_system_table_mods = on;
DROP FUNCTION pg_catalog.run_command_on_placements, pg_catalog.create_distributed_table, pg_catalog.shard_name, pg_catalog.column_to_column_name, distribute, copy_triggers;
DROP TABLE pg_catalog.pg_dist_partition, pg_catalog.pg_dist_shard, pg_catalog.pg_dist_local_group;
DROP SEQUENCE shard_numbers;
DROP ROLE regress_shard_owner;
RESET allow_system_table_mods;
RESET client_min_messages;
