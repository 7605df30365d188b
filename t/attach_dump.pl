
# Attached filters through pg_dump and restore, by a database owner who is not a superuser. After
# each restore the attachments are listed as before, nothing is missing or stale, and filters
# follow further writes.  Two cases need a further step, which this test shows: a data-only
# restore, and a table that is dumped without its filters.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('attach_dump', bare => 1);
my $directory = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql(
	'postgres', q{
CREATE ROLE landlord LOGIN CREATEDB;
CREATE ROLE heir LOGIN;
CREATE DATABASE house OWNER landlord;
});

# Results, or the error, of statements by a role.
sub as
{
	my ($role, $database, $sql) = @_;
	my ($status, $out, $error) =
	  $node->psql($database, "SET search_path = public, ext;\n$sql", extra_params => [ '-U', $role ], on_error_stop => 1);

	return $status == 0 ? $out : $error;
}

sub connection
{
	my ($database, $role) = @_;
	return $node->connstr($database) . " user=$role";
}

# ---------------------------------------------------------------------------------
# A database with attachments of every shape
# ---------------------------------------------------------------------------------

is( as( 'landlord', 'house', q{
CREATE SCHEMA ext;
CREATE EXTENSION fav SCHEMA ext;
CREATE SCHEMA app;

-- Names that must be quoted, a dropped column, two attachments; all renamed afterwards.
CREATE TABLE app.first_name (k int, dropped int, e text, note text);
ALTER TABLE app.first_name DROP dropped;
INSERT INTO app.first_name SELECT k, 'p' || e FROM generate_series(1, 20) k, generate_series(1, 150) e;
ALTER TABLE app.first_name ADD PRIMARY KEY (k, e);
DO $$ BEGIN
	PERFORM fav_attach('app.first_name', 'k', 'e');
	PERFORM fav_attach('app.first_name', 'k', 'e', error_rate => 0.0001, seed => -7, name => 'sharp', exact => false);
END $$;
ALTER TABLE app.first_name RENAME TO "Pairs";
ALTER TABLE app."Pairs" RENAME k TO "the Key";
ALTER TABLE app."Pairs" RENAME e TO "Element";
ALTER TABLE app.sharp_fav_levels RENAME TO "Sharp Levels";
ALTER TABLE app."Sharp Levels" RENAME k TO "Schluessel";
ALTER VIEW app.sharp_fav RENAME TO "Sharp";
ALTER FUNCTION app.sharp_has RENAME TO "Sharp?";
INSERT INTO app."Pairs" VALUES (1, 'after the renaming');

-- Two levels of partitions, other orders of columns, made before and after.  The latter get
-- their statement triggers from fav_rebuild.
CREATE TABLE parts (k int, e bigint, note text, PRIMARY KEY (k, e)) PARTITION BY LIST (k);
CREATE TABLE parts_a (note text, e bigint NOT NULL, gone int, k int NOT NULL);
ALTER TABLE parts_a DROP gone;
ALTER TABLE parts ATTACH PARTITION parts_a FOR VALUES IN (1, 2);
DO $$ BEGIN PERFORM fav_attach('parts', 'k', 'e'); END $$;
CREATE TABLE parts_p PARTITION OF parts DEFAULT PARTITION BY HASH (e);
CREATE TABLE parts_p0 PARTITION OF parts_p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_p1 (e bigint NOT NULL, k int NOT NULL, note text);
ALTER TABLE parts_p ATTACH PARTITION parts_p1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT 1 + i % 10, i, repeat(md5(i::text), 2) FROM generate_series(1, 5000) i;
DO $$ BEGIN PERFORM fav_rebuild('parts'); END $$;

-- Inheritance.
CREATE TABLE parent (k varchar(10) COLLATE "C", e uuid);
CREATE TABLE child (note text) INHERITS (parent);
CREATE INDEX ON parent (k, e);
CREATE INDEX ON child (k, e);
DO $$ BEGIN PERFORM fav_attach('parent', 'k', 'e'); END $$;
INSERT INTO parent SELECT 'k' || i % 3, md5(i::text)::uuid FROM generate_series(1, 300) i;
INSERT INTO child SELECT 'k' || i % 5, md5(i::text)::uuid FROM generate_series(301, 900) i;

-- A key with all three levels.
CREATE TABLE big (k bigint, e bigint, PRIMARY KEY (k, e));
INSERT INTO big SELECT 1, i FROM generate_series(1, 20000) i;
DO $$ BEGIN PERFORM fav_attach('big', 'k', 'e'); END $$;
INSERT INTO big SELECT 1, i FROM generate_series(20001, 20200) i;
DELETE FROM big WHERE e % 200 = 1;
INSERT INTO big VALUES (1, 30001);
DELETE FROM big WHERE e = 777;

-- Keys that share filters under a random seed, some of them across two partitions.
CREATE TABLE circles (k int, e bigint, PRIMARY KEY (k, e)) PARTITION BY RANGE (k);
CREATE TABLE circles_low PARTITION OF circles FOR VALUES FROM (MINVALUE) TO (50);
CREATE TABLE circles_high PARTITION OF circles FOR VALUES FROM (50) TO (MAXVALUE);
INSERT INTO circles SELECT i / 10, i FROM generate_series(-2000, 2999) i;
DO $$ BEGIN PERFORM fav_attach('circles', 'k', 'e', share => 100); END $$;
INSERT INTO circles VALUES (-1000, 1), (49, 1), (50, 1);

-- Sources that were dropped without fav_detach must not harm the dump.
CREATE TABLE gone (k int, e int, PRIMARY KEY (k, e));
DO $$ BEGIN PERFORM fav_attach('gone', 'k', 'e'); END $$;
INSERT INTO gone VALUES (1, 1);
SET client_min_messages = error;
DROP TABLE gone CASCADE;
CREATE TABLE unseen (k int, e int, PRIMARY KEY (k, e));
DO $$ BEGIN PERFORM fav_attach('unseen', 'k', 'e'); END $$;
DROP TABLE unseen_fav_levels CASCADE;
SELECT count(*) FILTER (WHERE base <> '\x01'), count(*) FILTER (WHERE middle <> '\x01'), count(recent) FROM big_fav_levels}),
	'1|1|1',
	'a database of an ordinary user, with attachments');

my $attachments = 'SELECT source, key, element, filter, levels, has, exact, error_rate, share, complete, active FROM fav_attachments ORDER BY source::text, levels::text';
my $triggers = q{
SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE tgname LIKE '%levels%' ORDER BY 1, 2};
my $verified = q{
SELECT count(*), sum(v.missing), sum(v.stale), sum(v.elements) FROM fav_attachments a JOIN pg_class c ON c.oid = a.levels,
	fav_verify(a.source, c.relname) v};
my $bytes = q{
SELECT md5(string_agg(l::text, ' ' ORDER BY k)) FROM parts_fav_levels l UNION ALL
SELECT md5(string_agg(l::text, ' ' ORDER BY k)) FROM big_fav_levels l UNION ALL
SELECT md5(string_agg(l::text, ' ' ORDER BY k_group)) FROM circles_fav_levels l UNION ALL
SELECT md5(string_agg(l::text, ' ' ORDER BY k)) FROM parent_fav_levels l UNION ALL
SELECT md5(string_agg(l::text, ' ' ORDER BY "Schluessel")) FROM app."Sharp Levels" l};

my $before = as('landlord', 'house', $attachments);
my $triggers_before = as('landlord', 'house', $triggers);
my $bytes_before = as('landlord', 'house', $bytes);
is(scalar(() = $before =~ /\|t$/mg), 6, 'six attachments, all active') or diag($before);
is(as('landlord', 'house', $verified), '6|0|0|' . (2 * 3001 + 5000 + 900 + 20099 + 5003), 'filters and sources agree');

# Writes of many kinds, and the state of the filters afterwards.
my $writes = q{
BEGIN;
INSERT INTO app."Pairs" VALUES (1, 'new'), (99, 'new');
DELETE FROM app."Pairs" WHERE "Element" IN ('p1', 'p2');
UPDATE app."Pairs" SET "the Key" = 98 WHERE "the Key" = 2 AND "Element" = 'p3';
INSERT INTO parts VALUES (1, 100001), (7, 100001);
INSERT INTO parts_a (k, e) VALUES (2, 100002);
INSERT INTO parts_p1 SELECT e + 1000000, k FROM parts_p1 WHERE satisfies_hash_partition('parts_p'::regclass, 2, 1, e + 1000000);
DELETE FROM parts WHERE e < 100;
UPDATE parts SET k = 3 WHERE k = 1 AND e < 200;
TRUNCATE parts_a;
INSERT INTO child VALUES ('k0', md5('new')::uuid), ('new', md5('new')::uuid);
UPDATE parent SET k = 'moved' WHERE k = 'k1';
DELETE FROM parent WHERE k = 'k2';
INSERT INTO big VALUES (1, 40000), (2, 40000);
DELETE FROM big WHERE e BETWEEN 1000 AND 1200;
INSERT INTO circles SELECT k, 10000 FROM generate_series(45, 55) k;
DELETE FROM circles WHERE k IN (49, 50) AND e = 1;
INSERT INTO circles VALUES (5000, 1);
COMMIT;
SELECT filter @> 'new', filter @> 'p3' FROM app.first_name_fav WHERE k = 99;
SELECT filter @> 'new', filter @> 'p3' FROM app."Sharp" WHERE k = 98;
SELECT e.e, fav_probe(l.base, l.middle, l.recent, e.e) FROM unnest('{p2,p3,new}'::text[]) WITH ORDINALITY AS e(e, n)
	LEFT JOIN app."Sharp Levels" l ON l."Schluessel" = 1 ORDER BY e.n;
SELECT big_has(2, 40000), big_has(2, 50000), big_has(2, 60000), big_has(1, 1100), big_has(1, 999), big_has(1, 777);
SELECT fav_probe(l.base, l.middle, l.recent, 49, 1), fav_probe(l.base, l.middle, l.recent, 50, 1), fav_probe(l.base, l.middle, l.recent, 45, 10000) FROM circles_fav_levels l WHERE k_group = 0;
SELECT circles_has(49, 1), circles_has(50, 1), circles_has(45, 10000), circles_has(55, 10000), circles_has(5000, 1);
SELECT parts_has(7, 100001), parts_has(2, 100002), parts_has(3, 50), parent_has('moved', md5('1')::uuid), parent_has('new', md5('new')::uuid), parent_has('k2', md5('2')::uuid);
SELECT app.first_name_has(99, 'new'), app."Sharp?"(99, 'new'), app."Sharp?"(98, 'p3'), app."Sharp?"(98, 'p4');
SELECT count(*) FROM generate_series(1, 12) u, generate_series(1, 300) p WHERE parts_has(u, p) <> EXISTS (SELECT FROM parts WHERE k = u AND e = p);
};
my $written = "t|f\nf|t\np2|f\np3|t\nnew|t\nt|t|f|f|t|f\nf|f|t\nf|f|t|t|t\nt|f|f|t|t|f\nt|t|t|f\n0";

# Write as logical replication does.
my $replicated = 'SET session_replication_role = replica; INSERT INTO public.big VALUES (2, 50000)';

# Check a restore.  Options: bytes_differ if the filters were rebuilt, inactive if fav_rebuild
# has to enable the triggers.
sub check_restored
{
	my ($database, %option) = @_;
	my $role = $option{role} || 'landlord';
	my $expected = $before;

	$expected =~ s/\|t$/|f/mg if $option{inactive};
	is(as($role, $database, $attachments), $expected, "$database: the attachments are there");
	is(as($role, $database, $verified), as('landlord', 'house', $verified), "$database: nothing is missing or stale");
	is(as($role, $database, $bytes), $bytes_before, "$database: every filter has the same bytes") unless $option{bytes_differ};
	if ($option{inactive})
	{
		is( as( $role, $database, q{
DO $$ BEGIN
	PERFORM fav_rebuild(a.source, name => c.relname) FROM fav_attachments a JOIN pg_class c ON c.oid = a.levels;
END $$}), '', "$database: fav_rebuild");
		is(as($role, $database, $attachments), $before, "$database: and they are active again");
	}
	is(as($role, $database, $triggers), $triggers_before, "$database: all triggers are there");
	$node->safe_psql($database, $replicated);
	is(as($role, $database, $writes), $written, "$database: further writes are maintained");
	like(as($role, $database, $verified), qr/^6\|0\|0\|/, "$database: all of them");
	return;
}

sub create_database
{
	my ($database, $owner) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $database OWNER " . ($owner || 'landlord'));
	return;
}

sub pg_dump
{
	my ($file, @options) = @_;
	$node->command_ok([ 'pg_dump', '--no-sync', '-f', "$directory/$file", @options, '-d', connection('house', 'landlord') ],
		"pg_dump @options");
	return "$directory/$file";
}

sub pg_restore
{
	my ($database, $file, $role, @options) = @_;
	$node->command_ok([ 'pg_restore', '--exit-on-error', @options, '-d', connection($database, $role), $file ],
		"$database: pg_restore @options");
	return;
}

# ---------------------------------------------------------------------------------
# All of it
# ---------------------------------------------------------------------------------

my $custom = pg_dump('custom', '-Fc');
my %scripts = (plain => pg_dump('plain'), inserts => pg_dump('inserts', '--column-inserts'));

foreach my $database (sort keys %scripts)
{
	create_database($database);
	$node->command_ok(
		[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $scripts{$database}, '-d', connection($database, 'landlord') ],
		"$database: the script is run");
	check_restored($database);
}

create_database('restored');
pg_restore('restored', $custom, 'landlord');
check_restored('restored');

create_database('parallel');
pg_restore('parallel', pg_dump('directory', '-Fd', '-j', '2', '-Z', '0'), 'landlord', '-j', '4');
check_restored('parallel');

create_database('by_superuser');
pg_restore('by_superuser', pg_dump('tar', '-Ft'), $node->safe_psql('postgres', 'SELECT current_user'));
check_restored('by_superuser');

# Then one role owns everything, tables and filters.
create_database('inherited', 'heir');
pg_restore('inherited', $custom, 'heir', '--no-owner');
check_restored('inherited', role => 'heir');

create_database('sections');
pg_restore('sections', $custom, 'landlord', '-j', '2', "--section=$_") foreach (qw(pre-data data post-data));
check_restored('sections');

create_database('via_root');
pg_restore('via_root', pg_dump('via_root', '-Fc', '--load-via-partition-root'), 'landlord', '-j', '2');
check_restored('via_root');

# ---------------------------------------------------------------------------------
# The schema first, then the data: the triggers are there while it is loaded
# ---------------------------------------------------------------------------------

# The triggers build the filters while the source is loaded.  The filters of the dump are then
# rejected, and are not needed.
create_database('schema_first');
pg_restore('schema_first', $custom, 'landlord', '-s');
is(as('landlord', 'schema_first', $triggers), $triggers_before, 'schema_first: all triggers are there before the data');
is(as('landlord', 'schema_first', $verified), '6|0|0|0', 'schema_first: and agree about nothing');
my ($out, $error) = ('', '');
my $status = IPC::Run::run([ 'pg_restore', '-a', '-d', connection('schema_first', 'landlord'), $custom ], '>', \$out, '2>', \$error);
ok(!$status, 'schema_first: pg_restore -a reports errors');
my @errors = $error =~ /error: (.*)/g;
is_deeply([ grep { !/duplicate key value violates unique constraint ".*[lL]evels_pkey"/ } @errors ],
	[], 'schema_first: namely filters that are there already')
  or diag($error);
is($node->safe_psql('schema_first', 'SELECT count(*) FROM ' . $_), $node->safe_psql('house', 'SELECT count(*) FROM ' . $_),
	"schema_first: all rows of $_ are there")
  foreach ('app."Pairs"', 'parts', 'parent', 'big', 'circles');
check_restored('schema_first', bytes_differ => 1);

# Because of these errors, a restore in one transaction restores nothing.
create_database('at_once');
pg_restore('at_once', $custom, 'landlord', '-s');
$node->command_fails([ 'pg_restore', '-a', '-1', '-d', connection('at_once', 'landlord'), $custom ],
	'at_once: pg_restore -a -1 fails');
is(as('landlord', 'at_once', $verified), '6|0|0|0', 'at_once: and nothing happened');

# Without them: leave the filters out of the dump.
create_database('without_filters');
pg_restore('without_filters', $custom, 'landlord', '-s');
pg_restore('without_filters',
	pg_dump('without_filters', '-Fc', '-a', '--exclude-table-data=*.*_fav_levels', '--exclude-table-data=app."Sharp Levels"'),
	'landlord', '-1');
check_restored('without_filters', bytes_differ => 1);

# Or do not fire the triggers.  pg_restore leaves them enabled, but not always, which is
# what a later write by logical replication would need.
create_database('disabled');
pg_restore('disabled', $custom, 'landlord', '-s');
pg_restore('disabled', $custom, 'landlord', '-a', '-1', '--disable-triggers');
check_restored('disabled', inactive => 1);

# ---------------------------------------------------------------------------------
# Parts of it
# ---------------------------------------------------------------------------------

# The source without its filters: the data is restored, the triggers are not, and the error says
# why.
create_database('alone');
is(as('landlord', 'alone', 'CREATE SCHEMA ext; CREATE EXTENSION fav SCHEMA ext'), '', 'alone: the extension is there');
my $alone = pg_dump('alone', '-Fc', '-t', 'big');
$status = IPC::Run::run([ 'pg_restore', '-d', connection('alone', 'landlord'), $alone ], '>', \$out, '2>', \$error);
ok(!$status, 'alone: pg_restore reports errors');
@errors = $error =~ /error: (.*)/g;
is(scalar(grep { /relation "public.big_fav_levels" does not exist/ } @errors), 5, 'alone: the triggers need the filters');
is(scalar(@errors), 5, 'alone: that is all') or diag($error);
is( as( 'landlord', 'alone', q{
INSERT INTO big VALUES (3, 3);
SELECT fav_attach('big', 'k', 'e');
DELETE FROM big WHERE e < 100;
INSERT INTO big VALUES (3, 4);
SELECT missing, stale, elements FROM fav_verify('big');
SELECT active FROM fav_attachments}),
	"big_has(bigint,bigint)\n0|0|" . (20099 - 98 + 1) . "\nt",
	'alone: fav_attach makes new ones');

# pg_restore -t leaves triggers out by itself.
create_database('picked');
is(as('landlord', 'picked', 'CREATE SCHEMA ext; CREATE EXTENSION fav SCHEMA ext'), '', 'picked: the extension is there');
pg_restore('picked', $custom, 'landlord', '-n', 'public', '-t', 'big');
is( as( 'landlord', 'picked', q{
CREATE INDEX ON big (k, e);
SELECT fav_attach('big', 'k', 'e');
SELECT missing, stale, elements FROM fav_verify('big')}),
	"big_has(bigint,bigint)\n0|0|20099", 'picked: fav_attach makes new ones');

# The source and all tables and views with its name, but not big_has.  Without it the filters do
# not count as complete, and fav_build creates it.
create_database('family');
is(as('landlord', 'family', 'CREATE SCHEMA ext; CREATE EXTENSION fav SCHEMA ext'), '', 'family: the extension is there');
pg_restore('family', pg_dump('family', '-Fc', '-t', 'big*'), 'landlord');
is( as( 'landlord', 'family', q{
INSERT INTO big VALUES (5, 5);
SELECT missing, stale, elements FROM fav_verify('big');
SELECT complete, active FROM fav_attachments;
CALL fav_build('big');
SELECT big_has(5, 5), big_has(5, 6), complete, active FROM fav_attachments}),
	"0|0|20100\nf|f\nt|f|t|t", 'family: the attachment works');

# Filters that were not complete when they were dumped are not complete when they are restored.
create_database('begun');
is( as( 'landlord', 'begun', q{
CREATE SCHEMA ext;
CREATE EXTENSION fav SCHEMA ext;
CREATE TABLE begun (k int, e int, PRIMARY KEY (k, e));
INSERT INTO begun SELECT k, e FROM generate_series(1, 100) k, generate_series(1, 10) e;
SET client_min_messages = warning;
DO $$ BEGIN PERFORM fav_attach('begun', 'k', 'e', share => 7, build => false); END $$;
INSERT INTO begun VALUES (50, 50)}), '', 'begun: an attachment without a build');
create_database('finished');
$node->command_ok([ 'pg_dump', '--no-sync', '-Fc', '-f', "$directory/begun", '-d', connection('begun', 'landlord') ], 'begun: pg_dump');
pg_restore('finished', "$directory/begun", 'landlord');
is( as( 'landlord', 'finished', q{
SELECT complete, active FROM fav_attachments;
INSERT INTO begun VALUES (99, 99);
SELECT count(*) FROM begun_fav_levels;
CALL fav_build('begun');
SELECT complete, active FROM fav_attachments;
SELECT missing, stale, elements FROM fav_verify('begun')}),
	"f|t\n2\nt|t\n0|0|1002", 'finished: it can be finished');

# ---------------------------------------------------------------------------------
# Parallel restore of a partitioned source, when the triggers are made too early
# ---------------------------------------------------------------------------------

# pg_restore -j may create the row triggers of a partitioned table before it has loaded
# all partitions.  Each worker truncates its partition and loads it in one transaction.
create_database('early');
is( as( 'landlord', 'early', q{
CREATE SCHEMA ext;
CREATE EXTENSION fav SCHEMA ext;
CREATE TABLE parts (k int, e bigint, PRIMARY KEY (k, e)) PARTITION BY LIST (e);
DO $$ BEGIN PERFORM fav_attach('parts', 'k', 'e'); END $$;
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT 1, i FROM generate_series(1, 2) i;
CREATE SEQUENCE loaded}), '', 'early: a partitioned table with triggers');
my @workers = map {
	my $worker = { out => '', error => '' };

	$worker->{run} = run_in_background(
		[
			'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', connection('early', 'landlord'), '-c', qq{
BEGIN;
TRUNCATE ONLY parts_$_;
INSERT INTO parts_$_ VALUES (1, $_);
SELECT nextval('loaded');
DO \$\$ BEGIN
	WHILE (SELECT last_value < 2 FROM loaded) LOOP PERFORM pg_sleep(0.01); END LOOP;
END \$\$;
COMMIT}
		],
		\$worker->{out},
		\$worker->{error});
	$worker
} (1, 2);
$_->{run}->finish foreach @workers;
is(join('', map { $_->{error} } @workers), '', 'early: two workers at once');
is(as('landlord', 'early', q{SELECT elements, missing, stale FROM fav_verify('parts')}), '2|0|0', 'early: all is there');

# pg_restore itself, many times.  The filters are larger than a partition, so they are loaded
# first, and the triggers come before most partitions.  All partitions have pairs of all keys.
create_database('crowd');
is( as( 'landlord', 'crowd', q{
CREATE SCHEMA ext;
CREATE EXTENSION fav SCHEMA ext;
CREATE TABLE many (k int, e bigint, PRIMARY KEY (k, e)) PARTITION BY HASH (e);
DO $$ BEGIN
	FOR i IN 0 .. 9 LOOP
		EXECUTE format('CREATE TABLE many_%s PARTITION OF many FOR VALUES WITH (MODULUS 10, REMAINDER %s)', i, i);
	END LOOP;
	PERFORM fav_attach('many', 'k', 'e');
END $$;
INSERT INTO many SELECT k, e FROM generate_series(1, 200) k, generate_series(1, 180) e;
DELETE FROM many WHERE e = k}), '', 'crowd: a source with many partitions');
my %crowd = map { $_ => "$directory/crowd_$_" } qw(directory custom piped);
my @dump = ('pg_dump', '--no-sync', '-d', connection('crowd', 'landlord'));
$node->command_ok([ @dump, '-Fd', '-f', $crowd{directory} ], 'crowd: directory');
$node->command_ok([ @dump, '-Fc', '-f', $crowd{custom} ], 'crowd: custom');
# without a table of contents that says where the data is
IPC::Run::run([ @dump, '-Fc' ], '|', ['cat'], '>', $crowd{piped}) or die 'pg_dump failed';
my ($restores, @bad) = (0);
foreach my $round (1 .. effort())
{
	foreach my $jobs (2, 3, 5, 8)
	{
		foreach my $form (sort keys %crowd)
		{
			my $log = '';
			create_database('back');
			IPC::Run::run([ 'pg_restore', '-j', $jobs, '-d', connection('back', 'landlord'), $crowd{$form} ], '>', \$log, '2>&1') or push @bad, "-j $jobs, $form: $log";
			my $result = as('landlord', 'back', q{SELECT elements, missing, stale, (SELECT bool_and(active) FROM fav_attachments) FROM fav_verify('many')});
			push @bad, "-j $jobs, $form: $result" if $result ne '35820|0|0|t';
			$node->safe_psql('postgres', 'DROP DATABASE back');
			$restores++;
		}
	}
}
is(join("\n", @bad), '', "crowd: $restores parallel restores lose nothing");

# pg_restore leaves at the first error, in the middle of a transaction.
log_is_clean($node, 'a clean log', '08006' => 1);
$node->stop;
done_testing();
