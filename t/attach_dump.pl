
# Attachments through pg_dump and a restore, by a superuser and by the ordinary owner
# of the database: they are back, alive, and the filters true.  Also: what a dump of
# the schema alone leaves, and a standby.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('attach_dump', bare => 1);

# The owner of a database is no superuser, and the extension is trusted to them.
$node->safe_psql(
	'postgres', q{
CREATE ROLE landlord LOGIN CREATEDB;
CREATE ROLE tenant LOGIN;
CREATE DATABASE house OWNER landlord;
});
$node->safe_psql(
	'house', q{
SET ROLE landlord;
CREATE SCHEMA ext;
CREATE EXTENSION fav SCHEMA ext;
SET search_path = public, ext;
CREATE SCHEMA app;
CREATE TABLE app."Pairs" ("the Key" int, dropped int, "Element" text, note text, PRIMARY KEY ("the Key", "Element"));
ALTER TABLE app."Pairs" DROP dropped;
INSERT INTO app."Pairs" SELECT k, 'p' || e FROM generate_series(1, 20) k, generate_series(1, 200) e;
SELECT fav_attach('app."Pairs"', 'the Key', 'Element');
CREATE TABLE app.users (id int PRIMARY KEY, hidden fav);
INSERT INTO app.users SELECT generate_series(1, 20);
SELECT fav_attach('app."Pairs"', 'the Key', 'Element', 'app.users', error_rate => 0.001);
ALTER TABLE app.users RENAME hidden TO concealed;
-- partitioned
CREATE TABLE app.parts (k int, e bigint, PRIMARY KEY (k, e)) PARTITION BY HASH (k);
CREATE TABLE app.parts_0 PARTITION OF app.parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE app.parts_1 PARTITION OF app.parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT fav_attach('app.parts', 'k', 'e');
INSERT INTO app.parts SELECT 1 + i % 10, i FROM generate_series(1, 1000) i;
INSERT INTO app."Pairs" VALUES (1, 'after the renaming');
-- one that is gone must not harm the dump
CREATE TABLE gone (k int, e int, PRIMARY KEY (k, e));
SELECT fav_attach('gone', 'k', 'e');
DROP TABLE gone;
});
is( $node->safe_psql('house', q{SELECT relowner::regrole::text FROM pg_class WHERE relname = 'fav_attachment'}),
	$node->safe_psql('house', 'SELECT current_user'),
	'the table of attachments belongs to a superuser');

my $attachments = q{
SET search_path = public, ext;
SELECT source, key, element, target, target_key, filter, error_rate, active, filters, bytes FROM fav_attachments ORDER BY 1, 4};
my $triggers = q{
SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger WHERE tgname LIKE 'fav%' ORDER BY 1, 2};
my $before = $node->safe_psql('house', $attachments);
my $triggers_before = $node->safe_psql('house', $triggers);
is(scalar(split /\n/, $before), 3, 'three attachments');

sub check_alive
{
	my ($database, $role) = @_;

	is($node->safe_psql($database, $attachments), $before, "$database: the attachments are back");
	is($node->safe_psql($database, $triggers), $triggers_before, "$database: the triggers are back");
	my $result = $node->safe_psql(
		$database, qq{
SET ROLE $role;
SET search_path = public, ext;
INSERT INTO app."Pairs" VALUES (1, 'new'), (99, 'new');
DELETE FROM app."Pairs" WHERE "Element" IN ('p1', 'p2');
UPDATE app."Pairs" SET "the Key" = 98 WHERE "the Key" = 2 AND "Element" = 'p3';
INSERT INTO app.parts_0 SELECT 1, 5000 WHERE EXISTS (SELECT FROM app.parts_0 WHERE k = 1);
INSERT INTO app.parts VALUES (1, 6000), (2, 6000);
DELETE FROM app.parts WHERE e < 100;
SELECT missing FROM fav_verify('app."Pairs"', 'app."Pairs_fav"');
SELECT missing FROM fav_verify('app."Pairs"', 'app.users');
SELECT missing FROM fav_verify('app.parts');
SELECT filter \@> 'new', filter \@> 'p3' FROM app."Pairs_fav" WHERE "the Key" = 99;
SELECT concealed \@> 'new', concealed \@> 'p3' FROM app.users WHERE id = 98;
});
	is($result, "0\n0\n0\nt|f\nf|t", "$database: and they work");
	$node->safe_psql($database,
		q{SET search_path = public, ext; SELECT fav_detach('app."Pairs"', 'app.users'); SELECT fav_rebuild('app.parts')});
	return;
}

my $dump = $node->basedir . '/house.dump';
my $sql = $node->basedir . '/house.sql';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('house') ], 'pg_dump -Fc');
$node->command_ok([ 'pg_dump', '--column-inserts', '-f', $sql, $node->connstr('house') ], 'pg_dump --column-inserts');

$node->safe_psql('postgres', 'CREATE DATABASE copy OWNER landlord');
# Section by section, as docs/OPERATIONS.md advises for parallel restores.
foreach my $section (qw(pre-data data post-data))
{
	$node->command_ok(
		[ 'pg_restore', '--exit-on-error', '-j', '2', "--section=$section", '-d', $node->connstr('copy'), $dump ],
		"restore by a superuser, in parallel: $section");
}
check_alive('copy', 'landlord');

$node->safe_psql('postgres', 'CREATE DATABASE text OWNER landlord');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $sql, $node->connstr('text') ], 'restore of a script');
check_alive('text', 'landlord');

# By the landlord: whatever is theirs.  (Comments on members of the extension, and
# the like, a dump does not have.)
$node->safe_psql('postgres', 'CREATE DATABASE own OWNER landlord');
$node->command_ok(
	[ 'pg_restore', '--exit-on-error', '--no-owner', '-d', $node->connstr('own') . ' user=landlord', $dump ],
	'restore by an ordinary user');
check_alive('own', 'landlord');

# Data once more over attachments that are there: nothing twice.
$node->command_ok(
	[ 'pg_restore', '--exit-on-error', '--data-only', '-t', 'fav_attachment', '-d', $node->connstr('copy'), $dump ],
	'data of the table of attachments alone');
is($node->safe_psql('copy', q{SELECT count(*) FROM ext.fav_attachment WHERE source = 'app.parts'::regclass}), 1, 'no row twice');

# The schema alone: triggers without their attachment raise an error until it is made.
$node->safe_psql('postgres', 'CREATE DATABASE bare OWNER landlord');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--schema-only', '-d', $node->connstr('bare'), $dump ], 'restore of the schema');
my ($ret, $out, $err) = $node->psql('bare', q{INSERT INTO app."Pairs" VALUES (1, 'x')});
like($err, qr/table "Pairs" has no attachment 1/, 'orphans complain');
is( $node->safe_psql(
		'bare', q{
SET search_path = public, ext;
SELECT fav_attach('app."Pairs"', 'the Key', 'Element');
INSERT INTO app."Pairs" VALUES (1, 'x'), (2, 'x');
SELECT missing FROM fav_verify('app."Pairs"')}),
	"app.\"Pairs_fav\"\n0",
	'fav_attach replaces them');

# A tenant cannot use a restore to get at somebody's table.
($ret, $out, $err) = $node->psql('bare',
	q{SET ROLE tenant; INSERT INTO ext.fav_attachment VALUES ('app.parts', 1, 'k', 'e', 'app.users', 'id', 'concealed', 0.01, 'bigint')});
like($err, qr/permission denied|must be owner/, 'rows about tables of others are refused');

log_is_clean($node, 'a clean log');
$node->stop;
done_testing();
