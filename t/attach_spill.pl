
# Statements that touch more pairs than fit in memory, so that these spill to disk, and their
# interruptions: too little disk, a cancel, a timeout, the end of a session.  Source and filter
# agree afterwards, and no file remains.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('attach_spill', conf => "max_prepared_transactions = 2\nwork_mem = '64kB'\nlog_temp_files = 0\n");

sub run
{
	my ($sql) = @_;
	my ($status, $out, $error) = $node->psql('postgres', $sql, on_error_stop => 1);

	return $status == 0 ? $out : $error;
}

my $verified = q{SELECT elements, missing, stale FROM fav_verify('pairs')};

sub files_left
{
	my $directory = $node->data_dir . '/base/pgsql_tmp';

	return scalar(grep { -f } glob("$directory/*"));
}

is( run(q{
CREATE TABLE pairs (k int, e bigint, PRIMARY KEY (k, e)) PARTITION BY LIST (k);
CREATE TABLE pairs_0 PARTITION OF pairs DEFAULT;
DO $$ BEGIN PERFORM fav_attach('pairs', 'k', 'e'); END $$;
-- without a statement trigger: its pairs wait for the commit
CREATE TABLE pairs_7 PARTITION OF pairs FOR VALUES IN (7);
INSERT INTO pairs VALUES (7, 0);
DELETE FROM pairs;
INSERT INTO pairs SELECT i % 7, i FROM generate_series(1, 7000) i}), '', 'a source with filters');
is(run($verified), '7000|0|0', 'they agree');

# To disk, and back
my $insert = 'INSERT INTO pairs SELECT i % 10, 100000 + i FROM generate_series(1, 30000) i';
my $late = 'INSERT INTO pairs_7 SELECT 7, i FROM generate_series(1, 30000) i';
my $before = -s $node->logfile;
is(run("$insert; DELETE FROM pairs WHERE e > 100000"), '', 'a statement with many pairs');
ok($node->log_contains(qr/temporary file: path/, $before), 'uses files') if $node->can('log_contains');
is(run($verified), '7000|0|0', 'and the filters follow');

# Disk
like(run("SET temp_file_limit = '100kB'; $insert"), qr/temporary file size exceeds "?temp_file_limit/, 'no space for files: an error');
is(run($verified), '7000|0|0', 'and nothing happened');
is( run(qq{
BEGIN;
$late;
SAVEPOINT a;
INSERT INTO pairs_7 SELECT 7, 100000 + i FROM generate_series(1, 30000) i;
ROLLBACK TO a;
INSERT INTO pairs_7 VALUES (7, 0);
COMMIT}), '', 'a subtransaction with a file is rolled back');
is(run($verified), '37001|0|0', 'and what came before it and after it is there');
# A subtransaction cannot pass its pairs to its parent: each collection fits in memory, but not
# both together.
my $hand_on = q{
	INSERT INTO pairs_7 SELECT 7, -i FROM generate_series(1, 800) i;
	BEGIN
		INSERT INTO pairs_7 SELECT 7, -10000 - i FROM generate_series(1, 800) i;
		SET LOCAL temp_file_limit = 0;
	EXCEPTION WHEN configuration_limit_exceeded THEN
		NULL;
	END;};
like(run("DO \$\$ BEGIN $hand_on END \$\$"), qr/cannot be kept in this transaction/, 'no space when a subtransaction hands its pairs on');
is(run($verified), '37001|0|0', 'and all is rolled back');
like(run("DO \$\$ BEGIN $hand_on INSERT INTO pairs VALUES (7, -5000); END \$\$"), qr/cannot be kept in this transaction/, 'the same before another statement');
is(run("DO \$\$ BEGIN BEGIN $hand_on RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN INSERT INTO pairs_7 VALUES (7, -5000); END; END \$\$"),
	'', 'the same in a block that is rolled back as a whole');
is(run($verified), '37002|0|0', 'does no harm');

# Two-phase commit, and its absence
is(run("DELETE FROM pairs_7; BEGIN; $late; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'"), '', 'PREPARE TRANSACTION');
is(run($verified), '37000|0|0', 'committed');
is(run("BEGIN; DELETE FROM pairs_7; PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'"), '', 'PREPARE TRANSACTION once more');
is(run($verified), '37000|0|0', 'rolled back');
is(run("DELETE FROM pairs_7; DISCARD ALL; INSERT INTO pairs VALUES (7, 1); DISCARD ALL; DELETE FROM pairs_7"), '', 'DISCARD ALL in between');
is(run($verified), '7000|0|0', 'does no harm');

# Timeouts at any moment, in the statement, while its pairs are sorted, while keys are reconciled
my ($interrupted, $done) = (0, 0);
foreach my $round (1 .. 30 * effort())
{
	my $result = run(sprintf('SET statement_timeout = %d; %s', 20 + rand 400, rand() < 0.5 ? $insert : 'UPDATE pairs SET e = e + 1000000'));

	if ($result =~ /statement timeout/) { $interrupted++; }
	else
	{
		is($result, '', "round $round") if $result ne '';
		$done++;
	}
	run('DELETE FROM pairs WHERE e > 7000; INSERT INTO pairs SELECT i % 7, i FROM generate_series(1, 7000) i ON CONFLICT DO NOTHING');
	last if run($verified) ne '7000|0|0';
}
note("$interrupted interrupted, $done not");
is(run($verified), '7000|0|0', 'timeouts do no harm');

# A session that ends in the middle
my ($out, $error) = ('', '');
my $session = run_in_background([ 'psql', '-X', '-q', '-d', $node->connstr('postgres'), '-c', "BEGIN; $late; SELECT pg_sleep(100)" ], \$out, \$error);
ok(poll_for($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}), 'a session with pairs in a file');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
$session->finish;
ok(poll_for($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query ~ 'pg_sleep' AND pid <> pg_backend_pid()}), 'ends');
is(run($verified), '7000|0|0', 'and leaves nothing');
is(files_left(), 0, 'no file is left');

my @leaks = grep { /leak/ } split /\n/, slurp_file($node->logfile);
is(scalar(@leaks), 0, 'nothing leaks') or diag(join("\n", @leaks[ 0 .. ($#leaks > 4 ? 4 : $#leaks) ]));
log_is_clean($node, 'a clean log');
$node->stop;
done_testing();
