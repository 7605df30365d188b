
# Attached filters and replication.  A standby reads and verifies filters, and maintains them
# after its promotion.  A subscriber attaches its own filters, before or after it subscribes;
# they follow the initial copy and every applied change.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $settings = q{
max_prepared_transactions = 10
max_worker_processes = 30
max_logical_replication_workers = 20
max_replication_slots = 20
};
my $publisher = start_node(
	'publisher',
	init => { allows_streaming => 'logical' },
	conf => "$settings\nwal_level = logical\nmax_wal_senders = 20\nlogical_decoding_work_mem = 64kB\n");
my $version = $publisher->safe_psql('postgres', 'SHOW server_version_num');

$publisher->safe_psql(
	'postgres', q{
CREATE TABLE hidden (user_id int, post_id bigint, note text, PRIMARY KEY (user_id, post_id));
CREATE TABLE seen (id int PRIMARY KEY, user_id int, post_id bigint);
CREATE TABLE parts (k int, e int, note text, PRIMARY KEY (k, e)) PARTITION BY RANGE (e);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 (note text, e int NOT NULL, k int NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (1000) TO (1000000);
INSERT INTO hidden SELECT u, p FROM generate_series(1, 50) u, generate_series(1, 300) p;
INSERT INTO seen SELECT i, 1, i % 50 FROM generate_series(1, 200) i;
INSERT INTO parts SELECT i % 7, i FROM generate_series(0, 1999) i;
SELECT fav_attach('hidden', 'user_id', 'post_id');
SELECT fav_attach('parts', 'k', 'e');
});

# All attachments, compared with their sources.
my $verified = q{
SELECT a.source, a.active, v.elements, v.missing, v.stale
FROM fav_attachments a, fav_verify(a.source) v ORDER BY a.source::text};

# ---------------------------------------------------------------------------------
# Writes in replica role, as logical replication does
# ---------------------------------------------------------------------------------

is( $publisher->safe_psql(
		'postgres', qq{
BEGIN;
SET LOCAL session_replication_role = replica;
INSERT INTO hidden VALUES (1, 500), (51, 500);
UPDATE hidden SET post_id = 501 WHERE post_id = 500;
DELETE FROM hidden WHERE user_id = 2;
INSERT INTO parts_2 (k, e) VALUES (1, 5000);
UPDATE parts SET e = e + 1000 WHERE e < 10;
TRUNCATE parts_1;
COPY hidden (user_id, post_id) FROM stdin;
60	1
60	2
\\.
$verified;
ROLLBACK}),
	"hidden|t|" . (15000 + 2 - 300 + 2) . "|0|0\nparts|t|1011|0|0",
	'writes in replica role are maintained');

# ---------------------------------------------------------------------------------
# A standby
# ---------------------------------------------------------------------------------

$publisher->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($publisher, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby = on\n");
$standby->start;
$publisher->safe_psql(
	'postgres', q{
DELETE FROM hidden WHERE post_id % 10 = 0;
INSERT INTO hidden VALUES (77, 77);
INSERT INTO parts SELECT 1, i FROM generate_series(2000, 2500) i});
$publisher->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $verified), "hidden|t|13501|0|0\nparts|t|2501|0|0", 'standby: verified');
is( $standby->safe_psql(
		'postgres', q{
SELECT (SELECT filter FROM hidden_fav WHERE user_id = 77) @> 77, (SELECT filter FROM hidden_fav WHERE user_id = 77) @> 78,
	(SELECT filter FROM hidden_fav WHERE user_id = 0) @> 78}),
	't|f|f', 'standby: the view');
is($standby->safe_psql('postgres', 'SELECT hidden_has(77, 77), hidden_has(77, 78), hidden_has(0, 78)'), 't|f|f', 'standby: hidden_has');
is( $standby->safe_psql(
		'postgres', q{
SELECT count(*) FROM generate_series(1::bigint, 300) p WHERE NOT hidden_has(5, p);
SELECT count(*) FROM generate_series(1::bigint, 300) p WHERE NOT hidden_has(78, p);
SELECT count(*) FROM generate_series(1, 80) u, generate_series(1, 320) p
	WHERE hidden_has(u, p) <> EXISTS (SELECT FROM hidden WHERE user_id = u AND post_id = p)}),
	"30\n300\n0", 'standby: pages of it');
is($standby->safe_psql('postgres', q{SELECT keys, elements FROM fav_attachment_stats('hidden')}), '51|13501', 'standby: sizes');
foreach my $call (
	q{fav_rebuild('hidden')}, q{fav_rebuild('hidden', '5')},
	q{fav_detach('hidden')}, q{fav_attach('hidden', 'user_id', 'post_id', name => 'again')})
{
	my ($status, $out, $error) = $standby->psql('postgres', "SELECT $call");
	like($error, qr/read-only transaction|during recovery/, "standby: no $call");
}

$standby->promote;
$standby->safe_psql(
	'postgres', q{
INSERT INTO hidden VALUES (78, 78);
DELETE FROM hidden WHERE user_id = 5;
UPDATE parts SET k = 8 WHERE k = 1;
TRUNCATE parts_1});
is( $standby->safe_psql('postgres', $verified),
	"hidden|t|13232|0|0\nparts|t|1501|0|0", 'standby: promoted, filters are kept');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM generate_series(1, 300) p, hidden_fav WHERE user_id = 5 AND (filter @> p OR hidden_has(5, p))'),
	'0', 'standby: what is deleted there is gone');
log_is_clean($standby, 'standby: a clean log');
$standby->stop;

# ---------------------------------------------------------------------------------
# Subscribers
# ---------------------------------------------------------------------------------

my $subscriber = start_node('subscriber', bare => 1, conf => $settings);
my $connection = $publisher->connstr . ' dbname=postgres';

$publisher->safe_psql(
	'postgres', q{
CREATE PUBLICATION plain FOR TABLE hidden, seen;
CREATE PUBLICATION root FOR TABLE parts WITH (publish_via_partition_root = true);
CREATE PUBLICATION leaf FOR TABLE parts WITH (publish_via_partition_root = false);
});

sub subscribe
{
	my ($database, $publication, $options) = @_;

	$subscriber->safe_psql($database,
		"CREATE SUBSCRIPTION $database CONNECTION '$connection' PUBLICATION $publication" . ($options ? " WITH ($options)" : ''));
	return;
}

# Wait until the initial copy and all changes of the publisher have arrived.
sub catch_up
{
	my ($database) = @_;

	ok($subscriber->poll_query_until($database, q{SELECT count(*) > 0 AND bool_and(srsubstate IN ('r', 's')) FROM pg_subscription_rel}),
		"$database: first copy");
	$publisher->wait_for_catchup($database);
	return;
}

# The number of distinct pairs of the publisher.
sub pairs
{
	my ($key, $element, $table) = @_;
	return $publisher->safe_psql('postgres', "SELECT count(DISTINCT ($key, $element)) FROM $table WHERE ($key, $element) IS NOT NULL");
}

sub check_plain
{
	my ($database, $what, $local) = @_;
	my $hidden = pairs('user_id', 'post_id', 'hidden') + ($local || 0);
	my $seen = pairs('user_id', 'post_id', 'seen');

	is($subscriber->safe_psql($database, $verified), "hidden|t|$hidden|0|0\nseen|t|$seen|0|0", "$database: $what");
	return;
}

# One attaches before it subscribes, with another order of columns.  The other subscribes first,
# and applies large transactions while they stream.
my $streamed = $version >= 160000 ? 'streaming = parallel' : 'streaming = on';
my $prepared = $version >= 150000 ? "$streamed, two_phase = true" : $streamed;
foreach my $database ('before', 'after')
{
	$subscriber->safe_psql('postgres', "CREATE DATABASE $database");
	$subscriber->safe_psql(
		$database, q{
CREATE EXTENSION fav;
CREATE TABLE hidden (note text, post_id bigint, user_id int, PRIMARY KEY (user_id, post_id));
CREATE TABLE seen (id int PRIMARY KEY, post_id bigint, user_id int);
CREATE INDEX ON seen (user_id, post_id);
});
}
my $attach = q{
SELECT fav_attach('hidden', 'user_id', 'post_id');
SELECT fav_attach('seen', 'user_id', 'post_id', share => 7)};
$subscriber->safe_psql('before', $attach);
subscribe('before', 'plain');
subscribe('after', 'plain', $prepared);
catch_up('before');
check_plain('before', 'filters of the first copy');

# Changes arrive while it attaches.
catch_up('after');
my ($out, $error) = ('', '');
my $writer = run_in_background(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $connection, '-c', q{
DO $$
BEGIN
	FOR i IN 1 .. 400 LOOP
		INSERT INTO hidden VALUES (i % 60, 10000 + i);
		DELETE FROM hidden WHERE user_id = 10 + i % 20 AND post_id = i % 300;
		UPDATE seen SET post_id = post_id + 1 WHERE id = i % 200;
		COMMIT;
	END LOOP;
END $$}
	],
	\$out,
	\$error);
$subscriber->safe_psql('after', $attach);
$writer->finish;
is($error, '', 'changes while a subscriber attaches');
catch_up('after');
check_plain('after', 'attached while changes came');

# Every kind of change.
$publisher->safe_psql(
	'postgres', q{
INSERT INTO hidden SELECT u, 1000 + p FROM generate_series(40, 60) u, generate_series(1, 50) p;
UPDATE hidden SET user_id = user_id + 100 WHERE post_id = 7;
UPDATE hidden SET post_id = post_id + 5000, note = 'x' WHERE user_id = 3;
UPDATE hidden SET note = 'y' WHERE user_id = 4;
DELETE FROM hidden WHERE post_id BETWEEN 20 AND 80;
DELETE FROM seen WHERE id <= 120;
UPDATE seen SET post_id = 49 - post_id WHERE id > 180;
UPDATE seen SET user_id = NULL WHERE id = 179;
BEGIN;
INSERT INTO hidden VALUES (1, 999999);
DELETE FROM hidden WHERE post_id = 999999;
INSERT INTO hidden VALUES (1, 999999);
UPDATE hidden SET user_id = 2 WHERE post_id = 999999;
COMMIT});
foreach my $database ('before', 'after')
{
	catch_up($database);
	check_plain($database, 'changes are applied');
}

# Large transactions, with blocks that are rolled back, and one in two phases.
$publisher->safe_psql(
	'postgres', q{
BEGIN;
INSERT INTO hidden SELECT 7, i FROM generate_series(100001, 103000) i;
SAVEPOINT a;
DELETE FROM hidden WHERE user_id = 7 AND post_id % 2 = 0;
INSERT INTO hidden SELECT 8, i FROM generate_series(100001, 103000) i;
ROLLBACK TO a;
DELETE FROM hidden WHERE user_id = 7 AND post_id % 3 = 0;
SAVEPOINT b;
UPDATE hidden SET user_id = 9 WHERE user_id = 7 AND post_id > 100000 AND post_id % 3 = 1;
RELEASE b;
COMMIT;
BEGIN;
INSERT INTO hidden SELECT 10, i FROM generate_series(100001, 103000) i;
ROLLBACK;
BEGIN;
INSERT INTO hidden SELECT 11, i FROM generate_series(100001, 103000) i;
DELETE FROM hidden WHERE user_id = 7 AND post_id > 102000;
PREPARE TRANSACTION 'one';
BEGIN;
INSERT INTO hidden SELECT 12, i FROM generate_series(100001, 101000) i;
PREPARE TRANSACTION 'two';
INSERT INTO hidden VALUES (13, 100001);
COMMIT PREPARED 'one';
ROLLBACK PREPARED 'two'});
foreach my $database ('before', 'after')
{
	catch_up($database);
	check_plain($database, 'large transactions are applied');
}

# A subscriber writes, too, and TRUNCATE is replicated.
$subscriber->safe_psql('before', q{INSERT INTO hidden (user_id, post_id) VALUES (1000, 1), (1000, 2)});
$publisher->safe_psql('postgres', 'TRUNCATE seen');
catch_up('before');
check_plain('before', 'TRUNCATE and local changes', 2);
is($subscriber->safe_psql('before', 'SELECT count(*) FROM seen_fav'), '0', 'before: no filters are left');

# Triggers that are enabled only for ordinary sessions do not fire for replicated changes, and
# fav_attachments shows it.  fav_rebuild repairs both.
$subscriber->safe_psql('before', 'ALTER TABLE hidden DISABLE TRIGGER ALL; ALTER TABLE hidden ENABLE TRIGGER ALL');
$publisher->safe_psql('postgres', 'INSERT INTO hidden SELECT 2000, i FROM generate_series(1, 100) i');
catch_up('before');
is( $subscriber->safe_psql(
		'before', q{SELECT a.active, v.missing FROM fav_attachments a, fav_verify(a.source) v WHERE a.source = 'hidden'::regclass}),
	'f|100', 'before: triggers that are not always enabled');
$subscriber->safe_psql('before', q{SELECT fav_rebuild('hidden')});
$publisher->safe_psql('postgres', 'INSERT INTO hidden SELECT 2001, i FROM generate_series(1, 100) i');
catch_up('before');
check_plain('before', 'fav_rebuild repairs it', 2);

# ---------------------------------------------------------------------------------
# Partitioned tables
# ---------------------------------------------------------------------------------

# Changes arrive through the root, into other partitions than those of the publisher, or by leaf.
my %partitions = (
	root => q{
CREATE TABLE parts (e int, note text, k int, PRIMARY KEY (e, k)) PARTITION BY HASH (k);
CREATE TABLE parts_h0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_h1 (k int NOT NULL, note text, e int NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_h1 FOR VALUES WITH (MODULUS 2, REMAINDER 1)},
	leaf => q{
CREATE TABLE parts (e int, note text, k int, PRIMARY KEY (e, k)) PARTITION BY RANGE (e);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 (k int NOT NULL, note text, e int NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (1000) TO (1000000)});
foreach my $database (sort keys %partitions)
{
	$subscriber->safe_psql('postgres', "CREATE DATABASE $database");
	$subscriber->safe_psql($database, "CREATE EXTENSION fav; $partitions{$database}; SELECT fav_attach('parts', 'k', 'e'" . ($database eq 'leaf' ? ', share => 3)' : ')'));

	# Some servers do not close partitions after their AFTER triggers, and warn about each.  A
	# parallel worker cannot send so many warnings.
	subscribe($database, $database, $version >= 160000 ? 'streaming = off' : '');
}

sub check_parts
{
	my ($what) = @_;
	my $expected = 'parts|t|' . pairs('k', 'e', 'parts') . '|0|0';

	foreach my $database (sort keys %partitions)
	{
		catch_up($database);
		is($subscriber->safe_psql($database, $verified), $expected, "$database: $what");
	}
	return;
}

check_parts('filters of the first copy');
$publisher->safe_psql(
	'postgres', q{
INSERT INTO parts SELECT 3, i FROM generate_series(5000, 5400) i;
DELETE FROM parts WHERE e % 3 = 0;
UPDATE parts SET k = k + 1 WHERE e % 5 = 0;
UPDATE parts SET e = e + 100000 WHERE e BETWEEN 500 AND 600;
UPDATE parts SET e = e % 1000 WHERE e BETWEEN 5001 AND 5010 AND NOT EXISTS (SELECT FROM parts p WHERE p.e = parts.e % 1000);
UPDATE parts SET note = 'x' WHERE k = 4;
INSERT INTO parts_2 (k, e) VALUES (9, 9999)});
check_parts('changes are applied');
$publisher->safe_psql('postgres', 'TRUNCATE parts');
check_parts('TRUNCATE');
is($subscriber->safe_psql($_, 'SELECT count(*) FROM parts_fav'), '0', "$_: no filters are left") foreach (sort keys %partitions);
$publisher->safe_psql('postgres', 'INSERT INTO parts SELECT i % 5, i FROM generate_series(1, 1999) i');
check_parts('filled again');

# ---------------------------------------------------------------------------------
# All tables are published, filters among them
# ---------------------------------------------------------------------------------

# Then the filters arrive as data, and the triggers of the copied schema must not maintain them
# again.  Enabled only for ordinary sessions, they do not fire for replicated changes.  Before
# the subscriber is written to, fav_rebuild enables them always.
$publisher->safe_psql(
	'postgres', q{
CREATE DATABASE whole;
});
$publisher->safe_psql(
	'whole', q{
CREATE EXTENSION fav;
CREATE TABLE hidden (user_id int, post_id bigint, PRIMARY KEY (user_id, post_id));
INSERT INTO hidden SELECT 1, i FROM generate_series(1, 20000) i;
INSERT INTO hidden SELECT u, p FROM generate_series(2, 20) u, generate_series(1, 100) p;
SELECT fav_attach('hidden', 'user_id', 'post_id');
CREATE PUBLICATION whole FOR ALL TABLES;
});
my $schema = PostgreSQL::Test::Utils::tempdir() . '/schema';
$publisher->command_ok(
	[ 'pg_dump', '-s', '--no-publications', '--no-sync', '-f', $schema, '-d', $publisher->connstr('whole') ],
	'whole: the schema is dumped');
$subscriber->safe_psql('postgres', 'CREATE DATABASE whole');
$subscriber->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $schema, '-d', $subscriber->connstr('whole') ],
	'whole: and restored');
$subscriber->safe_psql('whole', 'ALTER TABLE hidden ENABLE TRIGGER USER');
$connection = $publisher->connstr . ' dbname=whole';
subscribe('whole', 'whole');
catch_up('whole');
is($subscriber->safe_psql('whole', $verified), 'hidden|f|21900|0|0', 'whole: the first copy');
$publisher->safe_psql('whole', 'INSERT INTO hidden SELECT 1, i FROM generate_series(30001, 30100) i');
$publisher->safe_psql('whole', "INSERT INTO hidden VALUES (1, 40000 + $_), (100 + $_, 1)") foreach (1 .. 10);
$publisher->safe_psql('whole', 'DELETE FROM hidden WHERE post_id % 100 = 7');
catch_up('whole');
is( $subscriber->safe_psql('whole', $verified),
	'hidden|f|' . $publisher->safe_psql('whole', 'SELECT count(*) FROM hidden') . '|0|0', 'whole: changes are applied');
my $levels = 'SELECT md5(string_agg(l::text, chr(32) ORDER BY user_id)) FROM hidden_fav_levels l';
is($subscriber->safe_psql('whole', $levels), $publisher->safe_psql('whole', $levels), 'whole: every filter has the same bytes');
$subscriber->safe_psql(
	'whole', q{
ALTER SUBSCRIPTION whole DISABLE;
ALTER SUBSCRIPTION whole SET (slot_name = NONE);
DROP SUBSCRIPTION whole;
SELECT fav_rebuild('hidden');
INSERT INTO hidden VALUES (1, 50000), (200, 1)});
is( $subscriber->safe_psql('whole', $verified),
	'hidden|t|' . ($publisher->safe_psql('whole', 'SELECT count(*) FROM hidden') + 2) . '|0|0', 'whole: on its own again');

# ---------------------------------------------------------------------------------
# A service without the extension: the recipe of docs/OPERATIONS.md, "Managed services"
# ---------------------------------------------------------------------------------

my @recipe = map { $_->{text} } grep { ($_->{run_by} // '') =~ /attach_replication/ }
  read_examples("$FindBin::RealBin/../docs/OPERATIONS.md");
is(scalar(@recipe), 2, 'OPERATIONS.md has a recipe');
foreach my $node ($publisher, $subscriber)
{
	$node->safe_psql('postgres', 'CREATE DATABASE feed');
}
$publisher->safe_psql(
	'feed', q{
CREATE TABLE posts (id bigint PRIMARY KEY, title text);
CREATE TABLE hidden_posts (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
INSERT INTO posts SELECT i, i FROM generate_series(1, 300) i;
INSERT INTO hidden_posts SELECT 1, i FROM generate_series(1, 200) i});
$publisher->safe_psql('feed', $recipe[0]);
$publisher->command_ok(
	[ 'pg_dump', '-s', '-t', 'posts', '-t', 'hidden_posts', '-f', $schema, '-d', $publisher->connstr('feed') ],
	'feed: the tables are dumped');
$subscriber->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $schema, '-d', $subscriber->connstr('feed') ],
	'feed: and made on the replica');
$connection = $publisher->connstr . ' dbname=feed';
$subscriber->safe_psql('feed', $recipe[1] =~ s/'host=.*?'/'$connection'/r);
catch_up('feed');
my $feed = 'SELECT count(*), max(id) FROM posts WHERE NOT hidden_posts_has(1, id)';
is($subscriber->safe_psql('feed', $feed), '100|300', 'feed: filtered on the replica');
$publisher->safe_psql('feed', 'INSERT INTO hidden_posts VALUES (1, 300); DELETE FROM hidden_posts WHERE post_id <= 10');
catch_up('feed');
is($subscriber->safe_psql('feed', $feed), '109|299', 'feed: follows the service');
is($subscriber->safe_psql('feed', q{SELECT missing, stale FROM fav_verify('hidden_posts')}), '0|0', 'feed: right');
is($publisher->safe_psql('feed', q{SELECT count(*) FROM pg_extension WHERE extname = 'fav'}), '0', 'feed: the service has no extension');

log_is_clean($publisher, 'publisher: a clean log');
log_is_clean($subscriber, 'subscriber: a clean log');
$subscriber->stop;
$publisher->stop;
done_testing();
