
# Crashes.  While pgbench hides and shows posts, the test kills a backend or the postmaster.
# After recovery it compares each filter with its table: no element may be missing.  The filters
# of one table are kept by hand, in the transaction that changes the table, those of another by
# fav_attach.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $seed = $ENV{FAV_SEED} || (time ^ $$);
srand($seed);
note("seed $seed");

my $rounds = effort() > 1 ? 12 * effort() : 3;
my $node = start_node(
	'crash', conf => q{
restart_after_crash = on
autovacuum = on
autovacuum_naptime = 1
checkpoint_timeout = 30s
max_wal_size = 64MB
max_prepared_transactions = 10
});

# Before PostgreSQL 15, an autovacuum worker that waits for statistics does not notice for a long
# time that the postmaster was killed.
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 150000)
{
	$node->append_conf('postgresql.conf', 'autovacuum = off');
	$node->reload;
}

$node->safe_psql(
	'postgres', q{
CREATE TABLE users (id bigint PRIMARY KEY, hidden fav);
CREATE TABLE pairs (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
CREATE SEQUENCE operations;
INSERT INTO users SELECT i FROM generate_series(1, 200) i;

-- The row of the user is the lock; who is deleted was there.
CREATE FUNCTION hide(who bigint, first bigint, posts bigint) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	added bigint[];
BEGIN
	PERFORM FROM users WHERE id = who FOR UPDATE;
	WITH new AS (INSERT INTO pairs SELECT who, p FROM generate_series(first, first + posts - 1) p ON CONFLICT DO NOTHING RETURNING post_id)
		SELECT array_agg(post_id) INTO added FROM new;
	UPDATE users SET hidden = fav_add(hidden, added) WHERE id = who;
	PERFORM nextval('operations') FROM generate_series(1, posts);
END
$$;
CREATE FUNCTION show(who bigint, first bigint, posts bigint) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	deleted bigint[];
BEGIN
	PERFORM FROM users WHERE id = who FOR UPDATE;
	WITH gone AS (DELETE FROM pairs WHERE user_id = who AND post_id BETWEEN first AND first + posts - 1 RETURNING post_id)
		SELECT array_agg(post_id) INTO deleted FROM gone;
	UPDATE users SET hidden = fav_del(hidden, deleted) WHERE id = who;
	PERFORM nextval('operations') FROM generate_series(1, posts);
END
$$;
SELECT hide(1, 1, 20000);

CREATE TABLE blocks (who bigint, whom bigint, PRIMARY KEY (who, whom));
INSERT INTO blocks SELECT 1, i FROM generate_series(1, 20000) i;
SELECT fav_attach('blocks', 'who', 'whom');
SELECT fav_attach('blocks', 'who', 'whom', share => 10, name => 'blocks_shared');
});

# User 1 has a large filter, which all clients change.  The others have small filters.
my $scripts = PostgreSQL::Test::Utils::tempdir();
append_to_file(
	"$scripts/single", q{
\set who random(2, 200)
\set post random(1, 3000)
SELECT hide(:who, :post, 1);
\set post random(1, 3000)
SELECT show(:who, :post, 1);
});
append_to_file(
	"$scripts/hot", q{
\set post random(1, 60000)
BEGIN;
SELECT hide(1, :post, 300);
SELECT show(1, :post + 100, 20);
COMMIT;
});
append_to_file(
	"$scripts/undone", q{
\set who random(1, 200)
\set post random(1, 3000)
BEGIN;
SELECT hide(:who, :post, 150);
SAVEPOINT s;
SELECT show(:who, :post, 50);
ROLLBACK TO s;
SELECT show(:who, :post + 100, 50);
ROLLBACK;
});
append_to_file(
	"$scripts/attached", q{
\set who random(4, 200)
\set whom random(1, 3000)
INSERT INTO blocks VALUES (:who, :whom) ON CONFLICT DO NOTHING;
\set whom random(1, 3000)
DELETE FROM blocks WHERE who = :who AND whom = :whom;
SELECT nextval('operations'), nextval('operations');
});
append_to_file(
	"$scripts/attached_many", q{
\set who random(1, 3)
\set whom random(1, 60000)
BEGIN;
SELECT FROM users WHERE id = :who FOR UPDATE;
INSERT INTO blocks SELECT :who, i FROM generate_series(:whom, :whom + 300) i ON CONFLICT DO NOTHING;
DELETE FROM blocks WHERE who = :who AND whom BETWEEN :whom + 100 AND :whom + 150;
UPDATE blocks SET whom = -whom WHERE who = :who AND whom BETWEEN :whom + 200 AND :whom + 205
	AND NOT EXISTS (SELECT FROM blocks b WHERE b.who = blocks.who AND b.whom = -blocks.whom);
COMMIT;
});

my $missing = q{SELECT count(*) FROM pairs JOIN users ON id = user_id WHERE NOT fav_contains(hidden, post_id)};
my $recheck = q{SELECT count(*) FROM users, LATERAL (SELECT array_agg(post_id) AS posts FROM pairs WHERE user_id = id) p
	WHERE posts IS NOT NULL AND NOT fav_contains_all(hidden, posts)};

# Deletes hold: an element that is in a filter but not in the table is a false positive.
my $too_many = q{
SELECT count(*) > 0.02 * 200 * 3000 FROM users, generate_series(1::bigint, 3000) p
WHERE fav_contains(hidden, p) AND NOT EXISTS (SELECT FROM pairs WHERE user_id = id AND post_id = p)};

# The attached filters are asked for pairs that are there, and for pairs that are not.
my $wrong = q{
SELECT count(*) FROM (
	SELECT blocks_has(who, whom) AS has, blocks_shared_has(who, whom) AS shared_has, EXISTS (SELECT FROM blocks b WHERE b.who = p.who AND b.whom = p.whom) AS here
	FROM (SELECT who, whom FROM blocks UNION SELECT u, i FROM generate_series(1, 310, 7) u, generate_series(-200, 2000, 9) i) p) q
WHERE has IS DISTINCT FROM here OR shared_has IS DISTINCT FROM here};

my ($backends, $postmasters) = (0, 0);
foreach my $round (1 .. $rounds)
{
	my ($out, $error) = ('', '');
	my $bench = run_in_background(
		[
			'pgbench', '-n', '-c', '6', '-j', '2', '-T', '60', '-f', "$scripts/single\@8",
			'-f', "$scripts/hot\@2", '-f', "$scripts/undone\@1",
			'-f', "$scripts/attached\@8", '-f', "$scripts/attached_many\@2", $node->connstr('postgres')
		],
		\$out, \$error);
	sleep(0.4 + rand(0.8));
	if ($round % 2)
	{
		my ($pid) = split /\n/, $node->safe_psql(
			'postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY state = 'active' DESC, random() LIMIT 1});
		ok($pid, "round $round: pgbench is at work") or diag($error), last;
		my $before = -s $node->logfile;
		kill('KILL', $pid);
		$backends++;
		ok(wait_for_server($before), "round $round: a backend was killed, the server recovers");
	}
	else
	{
		$node->kill9;
		$postmasters++;
		ok(start_again(), "round $round: the postmaster was killed, the server recovers");
	}
	$bench->finish;
	unlike($error, qr/fav|ERROR:/, "round $round: pgbench saw nothing but the crash");

	is($node->safe_psql('postgres', $missing), '0', "round $round: nothing is missing");
	is($node->safe_psql('postgres', $recheck), '0', "round $round: nor in whole arrays");
	is($node->safe_psql('postgres', "SELECT missing, stale, elements > 10000, false_positive_rate < 0.03 FROM fav_verify('blocks', '$_')"),
		'0|0|t|t', "round $round: nor in the filters that are attached ($_), which have nothing stale") foreach qw(blocks blocks_shared);
	is($node->safe_psql('postgres', $too_many), 'f', "round $round: what was deleted is gone");
	is($node->safe_psql('postgres', $wrong), '0', "round $round: blocks_has is EXISTS");
	$node->safe_psql('postgres', 'VACUUM users; VACUUM blocks_fav_levels; CHECKPOINT') if $round % 3 == 0;
}

# A prepared transaction survives a crash, with its changes of filters.
$node->safe_psql(
	'postgres', q{
BEGIN;
INSERT INTO blocks SELECT 1, i FROM generate_series(100001, 100200) i;
INSERT INTO blocks VALUES (301, 1);
DELETE FROM blocks WHERE who = 1 AND whom BETWEEN 1 AND 100;
PREPARE TRANSACTION 'kept'});
$node->kill9;
ok(start_again(), 'the postmaster was killed after PREPARE TRANSACTION, the server recovers');
$node->safe_psql('postgres', q{COMMIT PREPARED 'kept'});
is( $node->safe_psql('postgres', q{
SELECT missing, stale FROM fav_verify('blocks', 'blocks');
SELECT missing, stale FROM fav_verify('blocks', 'blocks_shared');
SELECT fav_contains(filter, 1), fav_contains(filter, 2) FROM blocks_fav WHERE who = 301;
SELECT fav_probe(l.base, l.middle, l.recent, 301, 1), fav_probe(l.base, l.middle, l.recent, 302, 1) FROM blocks_shared_fav_levels l WHERE who_group = 30;
SELECT blocks_has(301, 1), blocks_has(301, 2), blocks_shared_has(301, 1), blocks_shared_has(302, 1)}),
	"0|0\n0|0\nt|f\nt|f\nt|f|t|f", 'the filters agree with what was committed then');

# All filters pass the full check of input values.
is( $node->safe_psql('postgres', 'SELECT count(*) FROM users WHERE (hidden::bytea::fav)::bytea <> hidden::bytea'),
	'0', 'every filter is a valid value');
is( $node->safe_psql(
		'postgres', 'SELECT count(*) FROM blocks_fav_levels, unnest(ARRAY[base, middle, recent]) f WHERE (f::bytea::fav)::bytea <> f::bytea'),
	'0', 'every level, too');
my ($pairs, $operations) = split /\|/, $node->safe_psql('postgres', 'SELECT count(*), (SELECT last_value FROM operations) FROM pairs');
cmp_ok($operations, '>', 0, "$operations operations, $pairs pairs at the end");
figures("$rounds crashes ($backends backends and $postmasters postmasters killed), $operations operations, 0 false negatives");
$node->stop;
done_testing();

# Start after the postmaster was killed.  Its children hold its shared memory until they notice,
# so try repeatedly.
sub start_again
{
	foreach (1 .. 300)
	{
		sleep(0.2);
		return 1 if $node->start(fail_ok => 1);
		$node->stop('fast', fail_ok => 1);
	}
	return 0;
}

# Wait until the log says that the server is ready again.  Not by $node->psql, which dies if psql
# ends before it has read the query.
sub wait_for_server
{
	my ($before) = @_;

	foreach (1 .. 600)
	{
		return 1 if substr(slurp_file($node->logfile), $before) =~ /ready to accept connections/;
		sleep(0.1);
	}
	return 0;
}
