
# Attaching online, and rebuilding all filters, while sessions write: READ COMMITTED and
# REPEATABLE READ, on a table with a filter for each key, one whose keys share filters, and
# partitions.  Builds that wait, are cancelled, and crash, and then go on.  Nothing may be missing
# or stale.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $seed = $ENV{FAV_SEED} || (time ^ $$) % 1_000_000_000;
note("seed $seed");
my $seconds = effort() > 1 ? 60 * effort() : 12;

my $node = start_node('attach_online', conf => "max_connections = 30\nrestart_after_crash = on\nautovacuum = on\nautovacuum_naptime = 1\n");
my $can_repeat = $node->safe_psql('postgres', 'SHOW server_version_num') >= 150000;

$node->safe_psql(
	'postgres', q{
CREATE TABLE each (k int, e bigint, PRIMARY KEY (k, e));
CREATE TABLE shared (k int, e bigint, PRIMARY KEY (k, e));
CREATE TABLE parts (k int, e bigint, PRIMARY KEY (k, e)) PARTITION BY RANGE (k);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (12345);
CREATE TABLE parts_high (e bigint NOT NULL, k int NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_high FOR VALUES FROM (12345) TO (MAXVALUE);
INSERT INTO each SELECT k, e FROM generate_series(1, 20000) k, generate_series(1, 15) e;
INSERT INTO each SELECT 10000, e FROM generate_series(101, 20100) e;
INSERT INTO shared SELECT * FROM each;
INSERT INTO parts SELECT * FROM each;
CREATE ROLE stranger;
});

# ---------------------------------------------------------------------------------------
# Writers all the while
# ---------------------------------------------------------------------------------------

my @sources = qw(each shared parts);
my %script;
foreach my $source (@sources)
{
	# Single statements, which must not fail
	$script{"single_$source"} = qq{
\\set k random(1, 20100)
\\set e random(1, 30)
INSERT INTO $source VALUES (:k, :e) ON CONFLICT DO NOTHING;
\\set k random(1, 20100)
\\set e random(1, 30)
DELETE FROM $source WHERE k = :k AND e = :e;
INSERT INTO $source SELECT k, 1000000 + :client_id FROM generate_series(:k, :k + 20) k ON CONFLICT DO NOTHING;
DELETE FROM $source WHERE k BETWEEN :k AND :k + 20 AND e = 1000000 + :client_id;
};
	# Transactions of several statements, in which other sessions get into the way
	$script{"strict_$source"} = qq{
\\set k random(1, 20100)
\\set j random(1, 20100)
\\set e random(1, 30)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM $source WHERE k = :k;
UPDATE $source SET e = 2000000 + e WHERE k = :k AND e <= :e;
SAVEPOINT s;
DELETE FROM $source WHERE k = :j;
ROLLBACK TO s;
DELETE FROM $source WHERE k = :j AND e = :e;
UPDATE $source SET e = e - 2000000 WHERE k = :k AND e > 2000000;
INSERT INTO $source VALUES (10000, :k) ON CONFLICT DO NOTHING;
END;
};
}
foreach my $name (sort keys %script)
{
	append_to_file($node->basedir . "/$name.sql", $script{$name});
	$script{$name} = $node->basedir . "/$name.sql";
}

sub bench
{
	my ($out, $error, $clients, @options) = @_;
	return run_in_background([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-T', $seconds, "--random-seed=$seed", '-c', $clients, @options, 'postgres' ], $out, $error);
}

# A statement, until it gets its lock
sub when_possible
{
	my ($sql) = @_;
	my ($status, $out, $error);

	foreach (1 .. 1000)
	{
		($status, $out, $error) = $node->psql('postgres', "SET lock_timeout = '20ms'; SET client_min_messages = warning; $sql");
		return 1 if $status == 0;
		last if $error !~ /lock timeout/;
	}
	diag($error);
	return 0;
}

sub look
{
	my ($source, $when) = @_;
	is($node->safe_psql('postgres', "SELECT missing, stale FROM fav_verify('$source')"), '0|0', "$source: nothing is missing or stale $when");
	return;
}

my %share = (each => '', shared => ', share => 50', parts => ', share => 7');
my ($out1, $error1, $out2, $error2) = ('') x 4;
my @singles = map { ('-f', $script{"single_$_"}) } @sources;
my @stricts = map { ('-f', $script{"strict_$_"}) } @sources;
my $one = bench(\$out1, \$error1, 3, @singles);
my $two = $can_repeat ? bench(\$out2, \$error2, 3, '--max-tries=1000', @stricts) : undef;
foreach my $source (@sources)
{
	ok(when_possible("SELECT fav_attach('$source', 'k', 'e', 0.001, build => false$share{$source})"), "$source: attached without a build");
	is($node->safe_psql('postgres', "SELECT complete, active, filter IS NULL, has IS NULL FROM fav_attachments WHERE source = '$source'::regclass"), 'f|t|t|f', "$source: not complete yet");
	$node->safe_psql('postgres', "CALL fav_build('$source')");
	is($node->safe_psql('postgres', "SELECT complete, active, has FROM fav_attachments WHERE source = '$source'::regclass"), "t|t|${source}_has(bigint,bigint)", "$source: complete");
	look($source, 'after the build');
}
foreach my $source (@sources)
{
	$node->safe_psql('postgres', "CALL fav_build('$source', rebuild => true)");
	look($source, 'after a rebuild');
}
ok($one->finish && $error1 !~ /aborted/ && $out1 !~ /failed transactions: [1-9]/, 'single statements without an error') or diag("$out1$error1");
ok($two->finish && $error2 !~ /aborted/, 'transactions at REPEATABLE READ') or diag("$out2$error2") if $two;
foreach my $out ($out1, $two ? $out2 : ())
{
	my ($transactions) = $out =~ /actually processed: (\d+)/;
	cmp_ok($transactions, '>', 10, "$transactions transactions");
}

# Every pair of the source, and the elements up to 30 of some keys, read in all ways
sub compare
{
	my ($source, $when) = @_;
	my $share = $share{$source} =~ /(\d+)/ ? $1 : 0;
	my $column = $share ? 'k_group' : 'k';
	my $key = $share ? "fav_group(p.k, $share)" : 'p.k';
	my $probe = $share ? 'p.k, p.e' : 'p.e';

	look($source, $when);
	is( $node->safe_psql(
			'postgres', qq{
SELECT count(*) FROM $source p LEFT JOIN ${source}_fav_levels h ON h.$column = $key
WHERE NOT (fav_probe(h.base, h.middle, h.recent, $probe) AND (p.k % 10 > 0 OR fav_contains((SELECT filter FROM ${source}_fav f WHERE f.$column = $key), $probe)))}),
		0, "$source: every pair is reported $when");
	is( $node->safe_psql(
			'postgres', qq{
SELECT count(*) FROM (SELECT k, e FROM $source WHERE k % 10 = 0 UNION SELECT k, e FROM generate_series(0, 20200, 100) k, generate_series(1, 30) e) p
WHERE ${source}_has(k, e) <> EXISTS (SELECT FROM $source s WHERE s.k = p.k AND s.e = p.e)}),
		0, "$source: ${source}_has is EXISTS $when");
	return;
}
compare($_, 'in the end') foreach @sources;

# ---------------------------------------------------------------------------------------
# A build that waits for a transaction blocks no others
# ---------------------------------------------------------------------------------------

sub start_build
{
	my ($source, $options, $out, $error) = @_;
	return run_in_background([ 'psql', '-X', '-At', '-v', 'ON_ERROR_STOP=1', '-c', "CALL fav_build('$source'$options)", $node->connstr('postgres') ], $out, $error);
}

# The process that builds, when it waits for longer than a batch of several filters would
sub waiting_build
{
	my $pid;

	foreach (1 .. 600)
	{
		$pid = $node->safe_psql('postgres', q{
SELECT pid FROM pg_stat_activity WHERE query LIKE 'CALL fav_build%' AND wait_event_type = 'Lock' AND xact_start < clock_timestamp() - interval '500 ms'});
		return $pid if $pid;
		sleep(0.1);
	}
	return;
}

# A transaction that has changed a key and does not end, until its session is told to
sub hold
{
	my ($source, $key) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 1);

	$session->query_safe("BEGIN; INSERT INTO $source VALUES ($key, 3000000)");
	return $session;
}

# background_psql is younger than 13.
SKIP:
{
	skip 'no background sessions here', 1 unless $node->can('background_psql');

	foreach my $source (@sources)
	{
		foreach my $rebuild ('', ', rebuild => true')
		{
			my ($out, $error) = ('', '');

			$node->safe_psql('postgres', "SET client_min_messages = warning; SELECT fav_detach('$source'); SELECT fav_attach('$source', 'k', 'e', 0.001, build => false$share{$source})") unless $rebuild;
			$node->safe_psql('postgres', "ANALYZE $source, ${source}_fav_levels");
			my $holder = hold($source, 15000);
			my $build = start_build($source, $rebuild, \$out, \$error);
			ok(waiting_build(), "$source$rebuild: the build waits for a transaction");
			is($node->safe_psql('postgres', "SELECT complete FROM fav_attachments WHERE source = '$source'::regclass"), $rebuild ? 't' : 'f', "$source$rebuild: complete or not");

			is( $node->safe_psql('postgres', 'SELECT source, phase, keys_done > 0, keys_estimated > keys_done FROM fav_progress'),
				"$source|" . ($rebuild ? 'rebuilding' : 'building') . ' filters|t|t', "$source$rebuild: how far it is");
			is($node->safe_psql('postgres', 'SET ROLE stranger; SELECT count(*) FROM fav_progress'), 0, "$source$rebuild: which is for its role to know");

			# Many keys before and after, but none of the group that the transaction has
			$node->safe_psql('postgres', "INSERT INTO $source SELECT k, 4000000 FROM generate_series(100, 20000, 100) k WHERE k <> 15000 ON CONFLICT DO NOTHING");
			$holder->query_safe("INSERT INTO $source VALUES (1, 3000000), (16000, 3000000)");
			$holder->query_safe('COMMIT');
			$holder->quit;
			ok($build->finish, "$source$rebuild: and ends when the transaction does") or diag($error);
			is($node->safe_psql('postgres', 'SELECT count(*) FROM fav_progress'), 0, "$source$rebuild: nothing is under way any more");
			compare($source, "after a build that waited$rebuild");
			$node->safe_psql('postgres', "DELETE FROM $source WHERE e IN (3000000, 4000000)");
			look($source, 'and after a delete');
		}
	}

	log_is_clean($node, 'a clean log');

	# ---------------------------------------------------------------------------------------
	# Cancelled and crashed in the middle
	# ---------------------------------------------------------------------------------------

	my %ends = (each => [qw(cancel kill)], shared => [qw(crash terminate)], parts => ['kill']);
	foreach my $source (@sources)
	{
		foreach my $end (@{ $ends{$source} })
		{
			my ($out, $error) = ('', '');

			$node->safe_psql('postgres', "SET client_min_messages = warning; SELECT fav_detach('$source'); SELECT fav_attach('$source', 'k', 'e', 0.001, build => false$share{$source})");
			my $holder = hold($source, 15000);
			my $build = start_build($source, '', \$out, \$error);
			my $pid = waiting_build();

			ok($pid, "$source, $end: the build is in the middle");
			my $before = -s $node->logfile;
			if ($end eq 'crash')
			{
				# Otherwise the build may get its lock and end before it notices that the
				# postmaster is gone.
				kill('STOP', $pid);
				$node->kill9;
				kill('KILL', $pid);
			}
			elsif ($end eq 'kill')
			{
				kill('KILL', $pid);
			}
			else
			{
				$node->safe_psql('postgres', "SELECT pg_${end}_backend($pid)");
			}
			ok(!$build->finish, "$source, $end: the build fails");
			if ($end eq 'cancel' || $end eq 'terminate')
			{
				$holder->query_safe('ROLLBACK');
				$holder->quit;
			}
			else
			{
				eval { $holder->quit };
				ok(start_again($end, $before), "$source, $end: the server recovers");
			}
			my $some = $node->safe_psql('postgres', "SELECT count(*) FROM ${source}_fav_levels");
			is($node->safe_psql('postgres', "SELECT complete, active FROM fav_attachments WHERE source = '$source'::regclass"), 'f|t', "$source, $end: not complete");
			$node->safe_psql('postgres', "INSERT INTO $source VALUES (19000, 3000000), (19001, 3000000); DELETE FROM $source WHERE e = 3000000 AND k = 19000");
			$node->safe_psql('postgres', "CALL fav_build('$source')");
			is($node->safe_psql('postgres', "SELECT complete, active FROM fav_attachments WHERE source = '$source'::regclass"), 't|t', "$source, $end: complete when called again");
			cmp_ok($some, '>', 0, "$source, $end: $some filters were there already");
			cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM ${source}_fav_levels"), '>', $some, "$source, $end: and there are more now");
			compare($source, "after $end");
			$node->safe_psql('postgres', "DELETE FROM $source WHERE e = 3000000");
		}
	}
}

$node->stop;
done_testing();

# After a crash.  The postmaster is either gone, or starts all others again by itself, which
# shows in the log behind position `before`.
sub start_again
{
	my ($end, $before) = @_;

	foreach (1 .. 300)
	{
		sleep(0.2);
		if ($end eq 'kill')
		{
			return 1 if substr(slurp_file($node->logfile), $before) =~ /ready to accept connections/;
			next;
		}
		return 1 if $node->start(fail_ok => 1);
		$node->stop('fast', fail_ok => 1);
	}
	return 0;
}
