# The cost of a change: the WAL of adding one element to a filter, compared with the WAL of
# inserting the row (user, post) with its primary key.
#
# First for small filters that are kept by hand.  The WAL record of an UPDATE omits the common
# beginning and end of the old and the new row if both are on the same page.  That is why a
# filter keeps its newest elements at the front.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# This many users hide this many posts each, one post per transaction.
my $users = 200;
my $rounds = 20;

my $node = PostgreSQL::Test::Cluster->new('wal');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
full_page_writes = off
autovacuum = off
fsync = off
log_statement = none
checkpoint_timeout = 1h
max_wal_size = 4GB
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fav');

# The average WAL of single-statement transactions, in bytes.
sub bytes_each
{
	my (@statements) = @_;
	my $lsn = "SELECT pg_current_wal_insert_lsn() - '0/0';\n";
	my ($before, $after) =
	  split /\n/, $node->safe_psql('postgres', $lsn . join('', map { "$_;\n" } @statements) . $lsn);

	return ($after - $before) / @statements;
}

# Every user hides another post, then every user the next, ...
sub each_user
{
	my ($statement) = @_;

	return bytes_each(
		map {
			my $round = $_;
			map { sprintf($statement, 1000000 + 17 * $_ + $round, $_) } (1 .. $users)
		} (1 .. $rounds));
}

# A table of pairs in which every user has n already
sub make_pairs
{
	my ($n) = @_;

	$node->safe_psql(
		'postgres', qq{
DROP TABLE IF EXISTS pairs;
CREATE TABLE pairs (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
INSERT INTO pairs SELECT u, u * 7919 + post FROM generate_series(1, $users) u, generate_series(1, $n) post;
VACUUM pairs;
CHECKPOINT;
});
	return;
}

# A table of filters, or of caches, in which every user has n elements already
sub make_users
{
	my ($n, $fillfactor, $count, $type) = @_;

	$type //= 'fav';

	$node->safe_psql(
		'postgres', qq{
DROP TABLE IF EXISTS users;
CREATE TABLE users (id bigint PRIMARY KEY, hidden $type) WITH (fillfactor = $fillfactor);
INSERT INTO users
SELECT id, (SELECT fav_add(${type}_new(1000), array_agg(id * 7919 + post)) FROM generate_series(1, $n) post)
FROM generate_series(1, $count) id;
VACUUM users;
CHECKPOINT;
});
	return;
}

# One update compared with one insert, with free space on the page, so that the new row is on the
# page of the old one.  (One user per page: a second update there would have to prune the page
# first.)
foreach my $n (0, 1, 50, 100, 127)
{
	make_pairs($n);
	my $pair = bytes_each(map { "INSERT INTO pairs VALUES ($_, 1000000)" } (1 .. $users));

	make_users($n, 10, 10 * $users);
	my $filter =
	  bytes_each(map { "UPDATE users SET hidden = fav_add(hidden, 1000000) WHERE id = 10 * $_" } (1 .. $users));

	note(sprintf('%d there, one more: %.0f bytes for a pair, %.0f bytes for the filter', $n, $pair, $filter));
	cmp_ok($filter, '<=', $pair, "adding to a filter of $n costs no more WAL than a pair");

	make_users($n, 10, 10 * $users, 'fav_cache');
	my $cache =
	  bytes_each(map { "UPDATE users SET hidden = fav_add(hidden, 1000000) WHERE id = 10 * $_" } (1 .. $users));

	note(sprintf('%d there, one more: %.0f bytes for the cache', $n, $cache));
	cmp_ok($cache, '<=', $pair, "nor does adding to a cache of $n");
}

# In the long run index pages split and heap pages are pruned.
foreach my $n (0, 50, 100)
{
	make_pairs($n);
	my $pair = each_user('INSERT INTO pairs (post_id, user_id) VALUES (%d, %d)');

	make_users($n, 50, $users);
	my $filter = each_user('UPDATE users SET hidden = fav_add(hidden, %d) WHERE id = %d');

	note(sprintf('%d there, %d more: %.0f bytes for a pair, %.0f bytes for the filter', $n, $rounds, $pair, $filter));
	cmp_ok($filter, '<=', 1.1 * $pair, "in the long run it is at most a tenth more for $n");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM users WHERE fav_count(hidden) <> ' . ($n + $rounds)),
		'0', "every filter of $n has $rounds more");
}

# Without free space the row moves to another page and is logged completely.
make_users(100, 100, $users);
note(sprintf('100 there, %d more, pages full: %.0f bytes for the filter',
		$rounds, each_user('UPDATE users SET hidden = fav_add(hidden, %d) WHERE id = %d')));

# ---------------------------------------------------------------------------------
# Attached filters
# ---------------------------------------------------------------------------------

# A change writes the level `recent`.  Now and then that is pushed into `middle`, and `middle`
# into `base`.  This number of changes includes pushes, and for small filters also rebuilds.
my $changes = 600;

foreach my $n (1000, 10000, 100000, 1000000)
{
	$node->safe_psql(
		'postgres', qq{
DROP TABLE IF EXISTS plain;
DROP TABLE IF EXISTS hidden CASCADE;
DROP TABLE IF EXISTS hidden_fav_levels CASCADE;
CREATE TABLE plain (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
INSERT INTO plain SELECT 1, 10 * i FROM generate_series(1, $n) i;
CREATE TABLE hidden (LIKE plain INCLUDING ALL);
INSERT INTO hidden SELECT * FROM plain;
SELECT fav_attach('hidden', 'user_id', 'post_id');
});
	$node->safe_psql('postgres', 'VACUUM ANALYZE plain, hidden, hidden_fav_levels');
	$node->safe_psql('postgres', 'CHECKPOINT');

	# spread over the table, so that no page is changed twice
	my $step = 10 * int($n / $changes) || 10;
	my %average;
	foreach my $table ('plain', 'hidden')
	{
		$average{"$table insert"} = bytes_each(map { sprintf('INSERT INTO %s VALUES (1, %d)', $table, $step * $_ + 5) } (1 .. $changes));
		$average{"$table delete"} = bytes_each(map { sprintf('DELETE FROM %s WHERE user_id = 1 AND post_id = %d', $table, $step * $_) } (1 .. $changes));
	}
	figures(
		sprintf('WAL per change of an attached source, %d elements: insert %.0f bytes, %.0f without filters; delete %.0f bytes, %.0f without filters',
			$n, @average{ 'hidden insert', 'plain insert', 'hidden delete', 'plain delete' }));

	# The bounds are generous; bench/README.md has the figures.
	my $limit = $n < 1000000 ? 3 : 4;
	cmp_ok($average{'hidden insert'}, '<=', $limit * $average{'plain insert'}, "$n elements: an insert costs at most $limit times the pair's own row");
	cmp_ok($average{'hidden delete'}, '<=', 2 * $limit * $average{'plain insert'}, "$n elements: a delete at most twice that");
	is($node->safe_psql('postgres', q{SELECT missing, stale FROM fav_verify('hidden')}), '0|0', "$n elements: and the filter is true");
}

$node->stop;
done_testing();
