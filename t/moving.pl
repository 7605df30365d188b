
# Filters are dumped and restored, copied, upgraded with pg_upgrade, rewritten by CLUSTER, VACUUM
# FULL and ALTER TABLE, and stored in every way that PostgreSQL supports.  No byte and no answer
# changes.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('moving');
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# An empty filter, an exact one, one slice, many slices with tombstones, and one that is read
# block by block.  Their elements are odd numbers.
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql(
	'source', q{
CREATE EXTENSION fav;
CREATE TABLE filters (id int PRIMARY KEY, f fav, note text);
INSERT INTO filters VALUES (1, NULL), (2, fav_new(77, 0.05, 9, -5)),
	(3, fav_add(fav_new(), (SELECT array_agg(i) FROM generate_series(1::bigint, 199, 2) i))),
	(4, fav_add(fav_new(100), (SELECT array_agg(i) FROM generate_series(1::bigint, 1999, 2) i))),
	(5, fav_del(fav_add(fav_new(200), (SELECT array_agg(i) FROM generate_series(1::bigint, 20000) i)),
		(SELECT array_agg(i) FROM generate_series(2::bigint, 20000, 2) i))),
	(6, (SELECT fav_agg(i) FROM generate_series(1::bigint, 199999, 2) i));
CREATE TABLE shared (f fav DEFAULT fav_new(10), CHECK (fav_count(f) < 1000000));
INSERT INTO shared VALUES (fav_add(NULL, 1, 2)), (DEFAULT);
CREATE TABLE caches (c fav_cache DEFAULT fav_cache_new(5, 9), CHECK (fav_count(c) < 1000000));
INSERT INTO caches VALUES (NULL), (DEFAULT), (fav_add(NULL::fav_cache, 'x')), (fav_add(NULL::fav_cache, 1, 2)),
	((SELECT fav_cache_agg(i, 1000 ORDER BY i) FROM generate_series(1, 2000) i)), ((SELECT fav_cache_agg(i, 100000 ORDER BY i) FROM generate_series(1, 90000) i));
CREATE INDEX ON filters (fav_count(f));
CREATE VIEW visible AS SELECT id, i FROM filters, generate_series(1::bigint, 200) i WHERE NOT fav_contains(f, i);
CREATE TABLE blocks (who bigint, whom bigint, PRIMARY KEY (who, whom));
INSERT INTO blocks SELECT i % 3, i FROM generate_series(1, 1000) i;
SELECT fav_attach('blocks', 'who', 'whom');
CREATE TABLE lists (f fav[]);
INSERT INTO lists SELECT array_agg(f ORDER BY id) FROM filters;
});

# Bytes and answers of all filters.  The answers come from single probes, which read a large
# filter block by block, and from a whole array.
my $bytes = q{SELECT id, md5(f::bytea) FROM filters ORDER BY id};
my $answers = q{
SELECT id, count(*) FILTER (WHERE fav_contains(f, i)), count(*) FILTER (WHERE fav_contains(f, i) AND i % 2 = 1),
	cardinality(fav_filter(f, (SELECT array_agg(j) FROM generate_series(1::bigint, 1000) j)))
FROM filters, generate_series(1::bigint, 300000, 997) i GROUP BY id ORDER BY id};
my $others = q{SELECT count(*), md5(string_agg(id || ' ' || i, ',' ORDER BY id, i)) FROM visible
UNION ALL SELECT count(*), md5(string_agg(f::text, ',' ORDER BY f::text)) FROM shared
UNION ALL SELECT count(*), md5(string_agg(c::text, ',' ORDER BY c::text)) FROM caches
UNION ALL SELECT cardinality(f), md5(f::text) FROM lists};
my $contents = "$bytes; $answers; $others";
my $before = $node->safe_psql('source', $contents);
is( $node->safe_psql(
		'source', q{SELECT id, count(*) FROM filters, generate_series(1::bigint, 199999, 2) i
WHERE i < (ARRAY[0, 0, 200, 2000, 20000, 200000])[id] AND NOT fav_contains(f, i) GROUP BY id}),
	'', 'every odd number is found');

sub same
{
	my ($what, $where, $database) = @_;
	is(($where || $node)->safe_psql($database || 'source', $contents), $before, "$what: the same bytes and answers");
	return;
}

# Attached filters are still maintained.
sub attached
{
	my ($what, $where, $database) = @_;
	is( $where->safe_psql(
			$database, q{
BEGIN;
INSERT INTO blocks SELECT 1, i FROM generate_series(5001, 5300) i;
DELETE FROM blocks WHERE who = 1 AND whom < 100;
INSERT INTO blocks VALUES (77, 1);
SELECT missing, stale, keys, elements FROM fav_verify('blocks');
SELECT count(*), bool_and(active) FROM fav_attachments;
ROLLBACK;
SELECT missing, stale, keys, elements FROM fav_verify('blocks')}),
		"0|0|4|1268\n1|t\n0|0|3|1000", "$what: what was attached is maintained");
	return;
}
attached('at first', $node, 'source');

# ---------------------------------------------------------------------------------
# Rewritten and stored in other ways
# ---------------------------------------------------------------------------------

$node->safe_psql('source', 'CLUSTER filters USING filters_pkey');
same('CLUSTER');
$node->safe_psql('source', 'VACUUM FULL filters');
same('VACUUM FULL');
$node->safe_psql('source', 'ALTER TABLE filters ADD added timestamptz DEFAULT clock_timestamp()');
same('ALTER TABLE with a rewrite');
$node->safe_psql(
	'source', q{
CREATE TABLE copied AS SELECT id, f FROM filters;
ALTER TABLE copied ALTER f TYPE bytea USING f::bytea;
ALTER TABLE copied ALTER f TYPE fav USING f::fav});
is( $node->safe_psql('source', 'SELECT count(*) FROM filters a JOIN copied b USING (id) WHERE a.f::bytea IS DISTINCT FROM b.f::bytea'),
	'0', 'to bytea and back: the same bytes');

# tables of an attachment
foreach my $rewrite (
	'CLUSTER blocks USING blocks_pkey',
	'VACUUM FULL blocks, blocks_fav_levels',
	'ALTER TABLE blocks ADD added timestamptz DEFAULT clock_timestamp()',
	'ALTER TABLE blocks DROP added',
	'CLUSTER blocks_fav_levels USING blocks_fav_levels_pkey',
	'ALTER TABLE blocks SET UNLOGGED; ALTER TABLE blocks_fav_levels SET UNLOGGED',
	'ALTER TABLE blocks SET LOGGED; ALTER TABLE blocks_fav_levels SET LOGGED',
	'REINDEX TABLE blocks_fav_levels')
{
	$node->safe_psql('source', $_) foreach (split /; /, $rewrite);
	attached($rewrite, $node, 'source');
}

# storage, compression, and toast_tuple_target
my @compressions = ('pglz');
push @compressions, 'lz4'
  if $node->psql('source', "CREATE TEMPORARY TABLE t (x text COMPRESSION lz4)") == 0;
foreach my $storage (qw(EXTERNAL EXTENDED MAIN PLAIN))
{
	foreach my $compression ($storage =~ /MAIN|EXTENDED/ ? @compressions : '')
	{
		foreach my $target ($storage eq 'PLAIN' ? 2040 : (128, 2040, 8160))
		{
			my $compress = $compression ? "ALTER TABLE stored ALTER f SET COMPRESSION $compression;" : '';
			# with PLAIN a value must fit a page, and MAIN prefers that
			my $which = $storage eq 'PLAIN' ? 'length(f::bytea) < 8000' : 'true';
			is( $node->safe_psql(
					'source', qq{
DROP TABLE IF EXISTS stored;
CREATE TABLE stored (id int, f fav) WITH (toast_tuple_target = $target);
ALTER TABLE stored ALTER f SET STORAGE $storage;
$compress
INSERT INTO stored SELECT id, (f::bytea || '')::fav FROM filters WHERE $which;
UPDATE stored SET f = fav_add(f, 1);
UPDATE stored SET f = fav_del(fav_add(f, 123456789), 123456789);
SELECT count(*) > 2, bool_and(fav_contains(f, 1)) FROM stored;
SELECT count(*) FROM stored s JOIN filters USING (id), generate_series(1::bigint, 20000, 97) i
	WHERE filters.f IS NOT NULL AND id > 2 AND fav_contains(s.f, i) <> fav_contains(filters.f, i);
}),
				"t|t\n0", "$storage $compression, toast_tuple_target $target: the same answers");
		}
	}
}
is( $node->safe_psql(
		'source', q{
DROP TABLE stored;
CREATE TABLE stored (id int, f fav);
ALTER TABLE stored ALTER f SET STORAGE EXTENDED;
INSERT INTO stored SELECT 1, fav_agg(i, 0.01, 100000) FROM generate_series(1::bigint, 300) i;
SELECT pg_column_size(f) < length(f::bytea) / 2, fav_contains(f, 300), fav_contains_all(f, ARRAY[1, 2, 3]),
	fav_contains(f, 301) FROM stored}),
	't|t|t|f', 'a compressed filter is read');
$node->safe_psql('source', 'DROP TABLE stored, copied; ALTER TABLE filters DROP added');

# ---------------------------------------------------------------------------------
# COPY
# ---------------------------------------------------------------------------------

my $directory = PostgreSQL::Test::Utils::tempdir();
foreach my $format (qw(text csv binary))
{
	is( $node->safe_psql(
			'source', qq{
COPY filters TO '$directory/$format' (FORMAT $format);
CREATE TEMPORARY TABLE read (LIKE filters);
COPY read FROM '$directory/$format' (FORMAT $format);
SELECT count(*) FROM filters a FULL JOIN read b USING (id) WHERE a.f::bytea IS DISTINCT FROM b.f::bytea}),
		'0', "COPY as $format and back: the same bytes");
}

# ---------------------------------------------------------------------------------
# pg_dump and pg_restore
# ---------------------------------------------------------------------------------

sub dump_to
{
	$node->command_ok([ 'pg_dump', '--no-sync', '-d', $node->connstr('source'), @_ ], "pg_dump $_[0]");
	return;
}

foreach my $format (qw(plain custom directory))
{
	my $file = "$directory/dump_$format";
	dump_to("--format=$format", '-f', $file, $format eq 'directory' ? ('--jobs', '2') : ());
	$node->safe_psql('postgres', "CREATE DATABASE restored_$format");
	if ($format eq 'plain')
	{
		$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr("restored_$format"), '-f', $file ],
			'a plain dump is restored');
	}
	else
	{
		$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr("restored_$format"), '--jobs', '2', $file ],
			"a $format dump is restored");
	}
	same("pg_dump, $format", $node, "restored_$format");
	attached("pg_dump, $format", $node, "restored_$format");
}
dump_to('--inserts', '-f', "$directory/inserts");
$node->safe_psql('postgres', 'CREATE DATABASE restored_inserts');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored_inserts'), '-f', "$directory/inserts" ],
	'a dump of INSERT commands is restored');
same('pg_dump --inserts', $node, 'restored_inserts');
attached('pg_dump --inserts', $node, 'restored_inserts');

# ---------------------------------------------------------------------------------
# pg_upgrade to the same version: it reuses the files of tables
# ---------------------------------------------------------------------------------

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->append_conf('postgresql.conf', "fsync = off\n");
log_is_clean($node, 'the log shows ordinary errors only');
$node->stop;
chomp(my $bindir = `pg_config --bindir`);
chdir($directory) or die "$directory: $!";
$node->command_ok(
	[
		'pg_upgrade', '-d', $node->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir,
		'-s', $new->host, '-p', $node->port, '-P', $new->port, $version >= 150000 ? '--no-sync' : ()
	],
	'pg_upgrade');
$new->start;
same('pg_upgrade', $new);
attached('pg_upgrade', $new, 'source');
is( $new->safe_psql(
		'source', q{
UPDATE filters SET f = fav_add(f, 424242);
SELECT bool_and(fav_contains(f, 424242)), count(*) FILTER (WHERE fav_contains(f, 199)) FROM filters}),
	't|4', 'and it goes on from there');
log_is_clean($new, 'the log of the upgraded cluster shows ordinary errors only');
$new->stop;
done_testing();
