
# Replicas.  A streaming replica has the same bytes and gives the same answers while the primary
# changes, also to probes that read a large filter block by block.  It continues after its
# promotion.  A logical replica gets a filter column as text and as binary.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = start_node('primary', init => { allows_streaming => 'logical' }, conf => "wal_level = logical\n");
my $version = $primary->safe_psql('postgres', 'SHOW server_version_num');

$primary->safe_psql(
	'postgres', q{
CREATE TABLE users (id bigint PRIMARY KEY, hidden fav);
CREATE TABLE pairs (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
-- users 1 to 20 hide a few posts, 21 some thousands, 22 so many that they are read in parts
CREATE FUNCTION hide(who int, posts int, first int) RETURNS void LANGUAGE sql AS
$$
	INSERT INTO pairs SELECT who, p FROM generate_series(first, first + posts - 1) p;
	UPDATE users SET hidden = fav_add(hidden, (SELECT array_agg(p::bigint) FROM generate_series(first, first + posts - 1) p))
	WHERE id = who;
$$;
CREATE FUNCTION show(who int, posts int, first int) RETURNS void LANGUAGE sql AS
$$
	DELETE FROM pairs WHERE user_id = who AND post_id BETWEEN first AND first + posts - 1;
	UPDATE users SET hidden = fav_del(hidden, (SELECT array_agg(p::bigint) FROM generate_series(first, first + posts - 1) p))
	WHERE id = who;
$$;
INSERT INTO users SELECT i FROM generate_series(1, 22) i;
SELECT count(hide(i, 10, 1)) FROM generate_series(1, 20) i;
SELECT hide(21, 3000, 1), hide(22, 60000, 1);
});

my $bytes = q{SELECT id, md5(hidden::bytea) FROM users ORDER BY id};
my $missing = q{SELECT count(*) FROM pairs JOIN users ON id = user_id WHERE NOT fav_contains(hidden, post_id)};
my $answers = q{
SELECT id, count(*) FILTER (WHERE fav_contains(hidden, i)) FROM users, generate_series(1::bigint, 100000, 991) i GROUP BY id ORDER BY id;
SELECT id, fav_contains(hidden, 59999), fav_contains(hidden, 2999), fav_contains(hidden, 123) FROM users ORDER BY id;
SELECT id, cardinality(fav_filter(hidden, (SELECT array_agg(i) FROM generate_series(1::bigint, 5000) i))) FROM users ORDER BY id;
SELECT count(*), sum(fav_count(hidden)), (fav_stats(fav_union_agg(hidden))).elements FROM users};
my $everything = "$bytes; $missing; $answers";

# ---------------------------------------------------------------------------------
# Streaming
# ---------------------------------------------------------------------------------

$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

sub caught_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

my $changes = 0;
foreach my $round (1 .. 4 * effort())
{
	my $base = 100000 * $round;
	$primary->safe_psql(
		'postgres', qq{
SELECT count(hide(i, 30, $base)) FROM generate_series(1, 22) i;
SELECT hide(21, 700, $base + 1000), hide(22, 2000, $base + 1000);
SELECT count(show(i, 10, $base)) FROM generate_series(1, 22) i;
BEGIN;
SELECT hide(1, 500, $base + 5000);
SAVEPOINT s;
SELECT hide(2, 500, $base + 5000);
ROLLBACK TO s;
COMMIT;
BEGIN; SELECT hide(3, 500, $base + 5000); ROLLBACK;
});
	$changes += 22 * 40 + 2700 + 500;
	$primary->safe_psql('postgres', 'VACUUM users') if $round % 2 == 0;
	caught_up();
	is($standby->safe_psql('postgres', $everything), $primary->safe_psql('postgres', $everything),
		"round $round: the replica has the same bytes and gives the same answers");
	is($standby->safe_psql('postgres', $missing), '0', "round $round: nothing is missing there");
}

# A session of the replica that keeps probing while values change.
my $reader = $standby->background_psql('postgres', on_error_die => 1) if $standby->can('background_psql') && $version >= 160000;
SKIP:
{
	skip 'no background sessions in the test modules of this version', 2 unless $reader;
	my $ask = "SELECT count(*) FROM generate_series(700001::bigint, 700100) i WHERE fav_contains((SELECT hidden FROM users WHERE id = 22), i)";
	cmp_ok($reader->query_safe($ask), '<', '50', 'a session of the replica asks');
	$primary->safe_psql('postgres', 'SELECT hide(22, 100, 700001)');
	caught_up();
	is($reader->query_safe($ask), '100', 'and sees what has changed since');
	$reader->quit;
}

# ---------------------------------------------------------------------------------
# Logical, text and binary
# ---------------------------------------------------------------------------------

my $subscriber = start_node('subscriber', conf => "wal_level = logical\n");
$subscriber->safe_psql('postgres', 'CREATE TABLE users (id bigint PRIMARY KEY, hidden fav)');
$primary->safe_psql('postgres', 'CREATE PUBLICATION filters FOR TABLE users');
my $first = 1;
my $source = $primary->connstr . ' dbname=postgres';
foreach my $format ('text', 'binary')
{
	my $binary = $format eq 'binary' ? ', binary = true' : '';
	$subscriber->safe_psql(
		'postgres', qq{
TRUNCATE users;
CREATE SUBSCRIPTION sub_$format CONNECTION '$source' PUBLICATION filters WITH (copy_data = true$binary)});
	ok( poll_for($subscriber, q{SELECT count(*) > 0 AND bool_and(srsubstate IN ('r', 's')) FROM pg_subscription_rel}),
		"$format: the table was copied");
	is($subscriber->safe_psql('postgres', $bytes), $primary->safe_psql('postgres', $bytes), "$format: the same bytes");
	$primary->safe_psql(
		'postgres', qq{
SELECT count(hide(i, 50, 900000)), count(show(i, 5, 900000)) FROM generate_series(1, 22) i;
SELECT hide(22, 3000, 910000), show(21, 500, $first);
UPDATE users SET id = id + 1000 WHERE id = 22;	-- the filter itself is not sent
UPDATE users SET id = id - 1000 WHERE id = 1022;
SELECT count(show(i, 45, 900005)) FROM generate_series(1, 22) i;
SELECT show(22, 3000, 910000);
});
	$first += 500;
	$primary->wait_for_catchup("sub_$format");
	is($subscriber->safe_psql('postgres', $bytes), $primary->safe_psql('postgres', $bytes),
		"$format: the same bytes after changes");
	$subscriber->safe_psql('postgres', "DROP SUBSCRIPTION sub_$format");
}

# A table without a key, in which rows are found by all of their columns
my $keyless = q{
CREATE TABLE keyless (note text, hidden fav);
ALTER TABLE keyless REPLICA IDENTITY FULL;
};
$subscriber->safe_psql('postgres', $keyless);
$primary->safe_psql(
	'postgres', $keyless . q{
INSERT INTO keyless VALUES ('none', NULL), ('small', fav_add(NULL, 1)), ('small', fav_add(NULL, 2));
INSERT INTO keyless SELECT 'large', fav_agg(i + n) FROM generate_series(1::bigint, 20000) i, generate_series(0, 1) n GROUP BY n;
CREATE PUBLICATION keyless FOR TABLE keyless});
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub_keyless CONNECTION '$source' PUBLICATION keyless");
ok(poll_for($subscriber, q{SELECT count(*) > 0 AND bool_and(srsubstate IN ('r', 's')) FROM pg_subscription_rel}), 'without a key: the table was copied');
$primary->safe_psql(
	'postgres', q{
UPDATE keyless SET hidden = fav_add(hidden, 3) WHERE NOT hidden @> 1;
UPDATE keyless SET note = 'changed' WHERE hidden @> 20000 AND NOT hidden @> 3 OR hidden IS NULL;
DELETE FROM keyless WHERE note = 'small' AND hidden @> 1;
UPDATE keyless SET hidden = fav_del(hidden, 100) WHERE note = 'large'});
$primary->wait_for_catchup('sub_keyless');
my $rows = 'SELECT note, md5(hidden::bytea) FROM keyless ORDER BY 1, 2';
is($subscriber->safe_psql('postgres', $rows), $primary->safe_psql('postgres', $rows), 'without a key: the same bytes after changes');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION sub_keyless');

# ---------------------------------------------------------------------------------
# The primary dies, the replica takes over
# ---------------------------------------------------------------------------------

caught_up();
my $last = $primary->safe_psql('postgres', $everything);
log_is_clean($primary, 'the log of the primary shows ordinary errors only');
$primary->stop('immediate');
$standby->promote;
is($standby->safe_psql('postgres', $everything), $last, 'promoted: the same bytes and answers');
$standby->safe_psql(
	'postgres', q{
SELECT count(hide(i, 300, 2000000)) FROM generate_series(1, 22) i;
SELECT count(show(i, 100, 2000000)) FROM generate_series(1, 22) i;
});
is($standby->safe_psql('postgres', $missing), '0', 'it goes on, and nothing is missing');
is( $standby->safe_psql('postgres', 'SELECT count(*) FROM users WHERE fav_contains_any(hidden, ARRAY[2000000, 2000001, 2000099])'),
	'0', 'nor is anything there that was deleted');

# both lose the connection to the primary
my %lost = map { $_ => 1 } qw(08006 08P01 57P03 XX000);
log_is_clean($standby, 'the log of the replica shows nothing else', %lost);
log_is_clean($subscriber, 'the log of the subscriber shows nothing else', %lost);
figures("$changes changes on the primary compared with the replica, byte for byte");
$standby->stop;
$subscriber->stop;
done_testing();
