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

-- Tables that are called like catalogs of Citus, in a database without Citus
CREATE TABLE hidden_posts_2024 (k int, e int, PRIMARY KEY (k, e));
INSERT INTO pg_dist_partition VALUES ('hidden_posts_2024', 'h', 'nonsense', 1, 's');
SELECT fav_attach('hidden_posts_2024', 'k', 'e');
INSERT INTO hidden_posts_2024 VALUES (1, 1);
SELECT hidden_posts_2024_has(1, 1), hidden_posts_2024_has(1, 2);
DELETE FROM pg_dist_partition;

-- They belong to Citus if they belong to its extension.  The table above is none of its shards.
INSERT INTO pg_extension VALUES (pg_nextoid('pg_extension', 'oid', 'pg_extension_oid_index'), 'citus', 10, 'pg_catalog'::regnamespace, false, '13.2-1');
ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_partition;
ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_shard;
ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_local_group;
\c -
SET client_min_messages = warning;
SET allow_system_table_mods = on;
INSERT INTO pg_dist_shard VALUES ('hidden_posts_2024', 2024, '0');
INSERT INTO hidden_posts_2024 VALUES (1, 3);
SELECT missing, stale FROM fav_verify('hidden_posts_2024');
SELECT fav_detach('hidden_posts_2024');
DELETE FROM pg_dist_shard;
DROP TABLE hidden_posts_2024;
GRANT SELECT ON pg_dist_partition, pg_dist_shard, pg_dist_local_group TO PUBLIC;
CREATE FUNCTION shard_name(regclass, bigint) RETURNS text STABLE STRICT LANGUAGE sql AS
$$ SELECT quote_ident(relname || '_' || $2) FROM pg_class WHERE oid = $1 $$;

-- A column as Citus writes it down: the tree of an expression
CREATE FUNCTION tree_of_column(relation regclass, name text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	tree text;
BEGIN
	EXECUTE format('CREATE TABLE public.tree (LIKE %s, generated int GENERATED ALWAYS AS (%I) STORED)', relation, name);
	SELECT adbin::text INTO tree FROM pg_attrdef WHERE adrelid = 'public.tree'::regclass;
	DROP TABLE public.tree;
	RETURN tree;
END
$$;

-- Two shards; column defaults and storage are copied to them.
CREATE SEQUENCE shard_numbers START 1001;
CREATE FUNCTION distribute(shell regclass, key text, method "char" DEFAULT 'h', colocation int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	range text;
	number bigint;
BEGIN
	INSERT INTO pg_dist_partition VALUES (shell, method, public.tree_of_column(shell, key), colocation, 's');
	FOREACH range IN ARRAY ARRAY['-2147483648', '0'] LOOP
		number := nextval('public.shard_numbers');
		INSERT INTO pg_dist_shard VALUES (shell, number, range);
		EXECUTE format('CREATE TABLE public.%s (LIKE %s INCLUDING ALL)', public.shard_name(shell, number), shell);
		EXECUTE format('ALTER TABLE public.%s OWNER TO %s', public.shard_name(shell, number), (SELECT relowner::regrole FROM pg_class WHERE oid = shell));
	END LOOP;
END
$$;
CREATE FUNCTION pg_catalog.create_distributed_table(regclass, distribution_column text, colocate_with text)
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
INSERT INTO pg_dist_partition VALUES ('parts', 'h', tree_of_column('parts', 'k'), 2, 's');
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

-- The shell is empty, so it is never read instead of the shards
SELECT pairs_has(1, 1);
SELECT count(*) FROM pairs_1001 WHERE pairs_has(k, e);
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

-- Filters that Citus keeps elsewhere than their table
BEGIN;
UPDATE pg_dist_partition SET colocationid = 7 WHERE logicalrelid = 'pairs_fav_levels'::regclass;
SELECT levels, active FROM fav_attachments;
SAVEPOINT s;
INSERT INTO pairs_1001 VALUES (1, 5002);
ROLLBACK TO s;
DELETE FROM pg_dist_partition WHERE logicalrelid = 'pairs_fav_levels'::regclass;
SELECT levels, active FROM fav_attachments;
SAVEPOINT s;
INSERT INTO pairs_1001 VALUES (1, 5002);
ROLLBACK TO s;
SELECT pairs_has(1, 5000);
ROLLBACK;
SELECT levels, active FROM fav_attachments;

-- An attached table that Citus takes into its metadata becomes a shard, and a shell its place
BEGIN;
CREATE TABLE local (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('local', 'k', 'e');
INSERT INTO local VALUES (1, 1);
ALTER TABLE local RENAME TO local_5000;
CREATE TABLE local (LIKE local_5000 INCLUDING ALL);
SELECT string_agg(replace(pg_get_triggerdef(oid), ' ON public.local_5000', ' ON public.local'), ';') AS triggers FROM pg_trigger WHERE tgrelid = 'local_5000'::regclass \gset
:triggers;
DROP TRIGGER local_fav_levels_truncate ON local_5000;
INSERT INTO pg_dist_partition VALUES ('local', 'n', NULL, 0, 's');
INSERT INTO pg_dist_shard VALUES ('local', 5000, NULL);
SELECT source, active FROM fav_attachments WHERE levels = 'local_fav_levels'::regclass;
SAVEPOINT s;
INSERT INTO local_5000 VALUES (1, 2);
ROLLBACK TO s;
TRUNCATE local;
ROLLBACK TO s;
SELECT local_has(1, 1);
ROLLBACK;

-- Tables of another owner, and triggers of others
CREATE ROLE regress_shard_owner;
ALTER TABLE pairs_fav_levels_1003 OWNER TO regress_shard_owner;
\set VERBOSITY terse
INSERT INTO pairs_1001 VALUES (1, 5001);
\set VERBOSITY default
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
SELECT source, active FROM fav_attachments ORDER BY source::text;

-- A build of all shards
CREATE FUNCTION pg_catalog.run_command_on_placements(regclass, text, boolean, OUT nodename text, OUT nodeport int, OUT shardid bigint, OUT success boolean, OUT result text)
RETURNS SETOF record LANGUAGE sql AS
$$ SELECT 'here', 5432, s.shardid, s.shardid % 2 = 1, format($2, s.shardid) FROM pg_catalog.pg_dist_shard s WHERE s.logicalrelid = $1 ORDER BY s.shardid $$;
SELECT fav_attach('pairs', 'k', 'e', name => 'later', build => false);
CALL fav_build('pairs', 'later');
SELECT complete FROM fav_attachments WHERE levels = 'later_fav_levels'::regclass;
DELETE FROM pg_dist_shard WHERE logicalrelid = 'pairs'::regclass AND shardid % 2 = 0;
CALL fav_build('pairs', 'later');
SELECT complete FROM fav_attachments WHERE levels = 'later_fav_levels'::regclass;
SELECT fav_detach('pairs', 'later');

-- What undistribute_table leaves: another table, with triggers that name the filters by text
CREATE TABLE undistributed (LIKE pairs INCLUDING ALL);
SELECT string_agg(replace(pg_get_triggerdef(oid), ' ON public.pairs', ' ON public.undistributed'), ';') AS triggers FROM pg_trigger WHERE tgrelid = 'pairs'::regclass AND NOT tgisinternal \gset
BEGIN;
DELETE FROM pg_dist_partition WHERE logicalrelid = 'pairs'::regclass;
DELETE FROM pg_dist_shard WHERE logicalrelid = 'pairs'::regclass;
:triggers;
DROP TABLE pairs CASCADE;
ALTER TABLE undistributed RENAME TO pairs;
SELECT source, key, filter, levels, complete, active FROM fav_attachments WHERE source = 'pairs'::regclass;
SAVEPOINT s;
INSERT INTO pairs VALUES (1, 1);
ROLLBACK TO s;
SELECT pairs_has(1, 1);
ROLLBACK TO s;
SELECT fav_attach('pairs', 'k', 'e');
ROLLBACK TO s;
SELECT fav_detach('pairs');
INSERT INTO pairs VALUES (1, 1);
SELECT fav_attach('pairs', 'k', 'e');
SELECT pairs_has(1, 1), pairs_has(1, 2);
ROLLBACK TO s;
DROP TABLE pairs_fav_levels CASCADE;
SELECT source, levels, active FROM fav_attachments WHERE source = 'pairs'::regclass;
SELECT fav_detach('pairs');
INSERT INTO pairs VALUES (1, 1);
ROLLBACK;
DROP TABLE undistributed;

-- A sink: one copy of each shard, and shards that write the filters beside them
CREATE TABLE seen (k int, e int, PRIMARY KEY (k, e));
SELECT distribute('seen', 'k');
UPDATE pg_dist_partition SET repmodel = 'c' WHERE logicalrelid = 'seen'::regclass;
SELECT fav_sink('seen', 'k', 'e');
UPDATE pg_dist_partition SET repmodel = 's' WHERE logicalrelid = 'seen'::regclass;
SELECT fav_sink('seen', 'e', 'k');
UPDATE pg_dist_local_group SET groupid = 1;
SELECT fav_sink('seen', 'k', 'e');
UPDATE pg_dist_local_group SET groupid = 0;
SELECT fav_sink('seen', 'k', 'e');
SELECT min(shardid) AS shard, copy_triggers('seen', min('seen_' || shardid)::regclass) FROM pg_dist_shard WHERE logicalrelid = 'seen'::regclass \gset
SELECT 'seen_fav_levels_' || min(shardid) AS filters FROM pg_dist_shard WHERE logicalrelid = 'seen_fav_levels'::regclass \gset
INSERT INTO seen_:shard SELECT i % 3, i FROM generate_series(1, 300) i;
SELECT count(*) FROM seen_:shard;
SELECT k, fav_count(recent) FROM :filters ORDER BY k;
SELECT fav_sink_add(:'filters', ROW(1::bigint), ARRAY[4, 5, 5, 7, 8]);
SELECT fav_sink_remove(:'filters', ROW(1::bigint), ARRAY[5], false);
SELECT fav_sink_add(:'filters', ROW(1::bigint), ARRAY[4, 5]);
UPDATE seen_:shard SET e = 1;
INSERT INTO seen_:shard VALUES (1, NULL);
TRUNCATE seen_:shard;
SELECT count(*) FROM :filters;
INSERT INTO seen_fav_levels SELECT 1;
TRUNCATE seen;
SELECT count(*) FROM seen_fav_levels;
SELECT source, levels, active, sink FROM fav_attachments WHERE sink;
SELECT seen_has(1, 1);
SELECT seen_add(1, NULL), seen_add(1, ARRAY[]::bigint[]);
CALL fav_build('seen');
BEGIN;
UPDATE pg_dist_partition SET colocationid = 7 WHERE logicalrelid = 'seen_fav_levels'::regclass;
SAVEPOINT s;
INSERT INTO seen_:shard VALUES (1, 1);
ROLLBACK TO s;
ALTER TABLE seen_fav_levels ALTER recent DROP DEFAULT;
SAVEPOINT s;
SELECT seen_add(1, ARRAY[1]);
ROLLBACK TO s;
SELECT seen_has(1, 1);
ROLLBACK;
SELECT fav_detach('seen');

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
DROP TABLE seen, pairs, other, plain, moved, moved_levels;
SET allow_system_table_mods = on;
DROP FUNCTION pg_catalog.run_command_on_placements, pg_catalog.create_distributed_table, shard_name, tree_of_column, distribute, copy_triggers;
DROP EXTENSION citus;
DROP SEQUENCE shard_numbers;
DROP ROLE regress_shard_owner;
RESET allow_system_table_mods;
RESET client_min_messages;
