
# Attachments and replication: a standby answers and verifies; a subscriber keeps
# filters of its own, over rows that logical replication brings, in the first copy and
# one by one.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = start_node('publisher', init => { allows_streaming => 'logical' }, conf => "wal_level = logical\n");

$publisher->safe_psql(
	'postgres', q{
CREATE TABLE hidden (user_id int, post_id bigint, note text, PRIMARY KEY (user_id, post_id));
CREATE TABLE seen (id int PRIMARY KEY, user_id int, post_id bigint);
INSERT INTO hidden SELECT u, p FROM generate_series(1, 50) u, generate_series(1, 300) p;
INSERT INTO seen SELECT i, 1, i % 50 FROM generate_series(1, 200) i;
SELECT fav_attach('hidden', 'user_id', 'post_id');
CREATE PUBLICATION pub FOR TABLE hidden, seen;
});

# ---------------------------------------------------------------------------------
# A standby
# ---------------------------------------------------------------------------------

$publisher->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($publisher, 'base', has_streaming => 1);
$standby->start;
$publisher->safe_psql('postgres', 'DELETE FROM hidden WHERE post_id % 10 = 0');
$publisher->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{SELECT elements, missing FROM fav_verify('hidden')}), '13500|0', 'verified on a standby');
is($standby->safe_psql('postgres', q{SELECT active, keys FROM fav_attachments, fav_attachment_stats('hidden')}), 't|50', 'listed on a standby');
$standby->stop;

# ---------------------------------------------------------------------------------
# A subscriber that attaches before anything comes
# ---------------------------------------------------------------------------------

my $subscriber = start_node('subscriber');
$subscriber->safe_psql(
	'postgres', q{
CREATE TABLE hidden (note text, post_id bigint, user_id int, PRIMARY KEY (user_id, post_id));
CREATE TABLE seen (id int PRIMARY KEY, user_id int, post_id bigint);
CREATE INDEX ON seen (user_id, post_id);
SELECT fav_attach('hidden', 'user_id', 'post_id');
SELECT fav_attach('seen', 'user_id', 'post_id');
});
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connection' PUBLICATION pub");
ok( poll_for(
		$subscriber, q{SELECT count(*) = 2 AND bool_and(srsubstate IN ('r', 's')) FROM pg_subscription_rel}),
	'first copy');
$publisher->wait_for_catchup('sub');
my $check = q{
SELECT h.elements, h.missing, s.elements, s.missing FROM fav_verify('hidden') h, fav_verify('seen') s};
is($subscriber->safe_psql('postgres', $check), '13500|0|50|0', 'filters of the first copy');

$publisher->safe_psql(
	'postgres', q{
INSERT INTO hidden SELECT u, 1000 + p FROM generate_series(40, 60) u, generate_series(1, 50) p;
UPDATE hidden SET user_id = user_id + 100 WHERE post_id = 7;
UPDATE hidden SET post_id = post_id + 5000, note = 'x' WHERE user_id = 3;
UPDATE hidden SET note = 'y' WHERE user_id = 4;
DELETE FROM hidden WHERE post_id BETWEEN 20 AND 80;
DELETE FROM seen WHERE id <= 120;
UPDATE seen SET post_id = 49 - post_id WHERE id > 180;
BEGIN;
INSERT INTO hidden VALUES (1, 999999);
DELETE FROM hidden WHERE post_id = 999999;
INSERT INTO hidden VALUES (1, 999999);
UPDATE hidden SET user_id = 2 WHERE post_id = 999999;
COMMIT;
});
$publisher->wait_for_catchup('sub');
my $counts = $publisher->safe_psql('postgres', q{SELECT (SELECT count(*) FROM hidden), (SELECT count(DISTINCT post_id) FROM seen)});
my ($hidden, $seen) = split /\|/, $counts;
is($subscriber->safe_psql('postgres', $check), "$hidden|0|$seen|0", 'filters of rows that came one by one');

# Exact where filters are exact: nothing is in them that is not in the source.
is( $subscriber->safe_psql(
		'postgres', q{
SELECT count(*) FROM generate_series(0, 60) p, seen_fav f
WHERE f.filter @> p <> EXISTS (SELECT FROM seen s WHERE s.user_id = f.user_id AND s.post_id = p)}),
	'0', 'deleted pairs are gone');

# A subscriber writes, too.
$subscriber->safe_psql('postgres', q{INSERT INTO hidden (user_id, post_id) VALUES (1000, 1), (1000, 2)});
$publisher->safe_psql('postgres', 'TRUNCATE seen');
$publisher->wait_for_catchup('sub');
is( $subscriber->safe_psql('postgres', $check),
	($hidden + 2) . '|0|0|0', 'TRUNCATE is replicated, and local changes count');
is($subscriber->safe_psql('postgres', 'SELECT coalesce(sum(fav_count(filter)), 0) FROM seen_fav'), '0', 'the filters are empty');

# Rows in numbers, for a rebuild on the subscriber.
$publisher->safe_psql('postgres', 'INSERT INTO hidden SELECT 7, i FROM generate_series(100000, 103000) i');
$publisher->safe_psql('postgres', 'DELETE FROM hidden WHERE user_id = 7 AND post_id % 3 > 0');
$publisher->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', q{SELECT missing FROM fav_verify('hidden')}), '0', 'rebuilt while applying');
cmp_ok($subscriber->safe_psql('postgres', 'SELECT (fav_stats(filter)).bytes FROM hidden_fav WHERE user_id = 7'),
	'<', 6000, 'and small again');

log_is_clean($publisher, 'a clean log on the publisher', '57P01' => 1);
log_is_clean($subscriber, 'a clean log on the subscriber', '57P01' => 1);
$subscriber->stop;
$publisher->stop;
done_testing();
