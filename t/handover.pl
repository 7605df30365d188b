
# How the states of a parallel aggregate reach the final one: that of the leader as it is,
# those of the workers in shared memory where there is plenty of it, otherwise by the
# executor.  The server's debug messages tell; that the results are right in every case is
# also seen in sql/parallel.sql and sql/parts.sql.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node(
	'handover', conf => q{
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
max_parallel_workers_per_gather = 2
client_min_messages = debug2
});

# More than are kept in a plain array, for the leader alone and for each worker.
$node->safe_psql(
	'postgres', q{
CREATE TABLE numbers AS SELECT n::bigint FROM generate_series(1, 900000) n;
VACUUM ANALYZE numbers});

# The output of a query and its messages.
sub run
{
	my ($query, $settings) = @_;
	my ($output, $errors) = ('', '');

	is($node->psql('postgres', ($settings || '') . $query, stdout => \$output, stderr => \$errors), 0, "runs: $query");
	return ($output, $errors);
}

# How often a state was handed over.
sub handed_over
{
	my (undef, $errors) = run(@_);

	return scalar(() = $errors =~ /fav_agg: state \d+ was handed over/g);
}

# Without workers all rows are the leader's, which is one of the partial aggregates all the same.
my $alone = 'SET max_parallel_workers = 0; ';

is(handed_over('SELECT fav_count(fav_agg(n)) FROM numbers', $alone), 1, 'the leader hands its state over');
is(handed_over('SELECT fav_count(fav_agg(n)), fav_count(fav_agg(n + 1)) FROM numbers', $alone), 2, 'of each aggregate');
is(handed_over('SELECT 1 WHERE (SELECT fav_count(fav_agg(n)) FROM numbers) > 0', $alone), 1, 'in a sub-select');
is(handed_over('SELECT fav_count(fav_agg(n)) FROM numbers', 'SET max_parallel_workers_per_gather = 0; '),
	0, 'a serial aggregate has nothing to hand over');
is(handed_over('SELECT fav_count(fav_agg(n)) FROM numbers WHERE n < 1000', $alone), 0, 'a few hashes are sent');
is(handed_over('SELECT n % 2, fav_count(fav_agg(n)) FROM numbers GROUP BY 1', $alone), 0, 'so are groups');

# Without the leader's help, one of the two workers at least gets so many rows that its state is shared, if it is
# started.  How many were, and how many states were shared.
my $workers = 'SET parallel_leader_participation = off; ';

sub shared
{
	my ($query, $settings) = @_;
	my ($output, $errors) = run("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query", $workers . ($settings || ''));
	my $launched = 0;

	$launched += $1 while $output =~ /Workers Launched: (\d+)/g;
	like($output, qr/Workers Planned: 2/, 'by two workers, if they are started');
	return ($launched, scalar(() = $errors =~ /fav_agg: \d+ bytes of a worker are shared/g));
}

# initdb chooses other shared memory where the user of the server may not write to /dev/shm.
my $posix = $node->safe_psql('postgres', 'SET client_min_messages = error; SHOW dynamic_shared_memory_type') eq 'posix';
my $free = $posix && -d '/dev/shm' ? (split ' ', (`df -Pk /dev/shm` =~ /\n(.*)/)[0])[3] : 0;
my $ample = $free > 300 * 1024;
my $scarce = $free <= 64 * 1024;	# in between, it depends

my ($launched, $shared) = shared('SELECT fav_agg(n) FROM numbers');
ok($shared >= ($ample && $launched > 0 ? 1 : 0) && $shared <= ($scarce ? 0 : $launched),
	"states of workers are shared: $shared of $launched ($free kB of shared memory)");
($launched, $shared) = shared('SELECT fav_agg(n), fav_agg(n + 1) FROM numbers');
ok($shared >= ($ample && $launched > 0 ? 2 : 0) && $shared <= ($scarce ? 0 : 2 * $launched),
	"of each aggregate: $shared of $launched workers");
($launched, $shared) = shared('SELECT fav_agg(n) FROM numbers WHERE n < 1000');
is($shared, 0, 'a few hashes are sent');
($launched, $shared) = shared('SELECT n % 2, fav_agg(n) FROM numbers GROUP BY 1');
is($shared, 0, 'so are groups');

# The same over and over in one query, which keeps its shared memory: what is not needed any more is given back.
# How much there is in all, in kB, each time that the aggregate has ended.
$node->safe_psql(
	'postgres', q{
CREATE FUNCTION all_shared(fav) RETURNS bigint LANGUAGE sql VOLATILE PARALLEL RESTRICTED AS $$
	SELECT sum((pg_stat_file('/dev/shm/' || file, true)).size) / 1024 FROM pg_ls_dir('/dev/shm') file WHERE file LIKE 'PostgreSQL.%'
$$}) if $ample;
SKIP:
{
	skip 'no shared memory', 3 unless $ample;
	my ($output, $errors) = run(q{
SET enable_material = off;
SELECT all_shared(f) FROM generate_series(1, 40) x LEFT JOIN (SELECT fav_agg(n) AS f FROM numbers OFFSET 0) a ON x > 0}, $workers);
	my @kilobytes = split /\n/, $output;

	cmp_ok(scalar(() = $errors =~ /of a worker are shared/g), '>', $launched > 0 ? 1 : -1, 'a query that aggregates again and again');
	is(scalar(@kilobytes), 40, 'all of it');

	# 7,200 kB each time: 281 MB in all.  What is free is used again if it is large enough, and grows by doubling.
	cmp_ok($kilobytes[-1], '<=', 150 * 1024, 'gives shared memory back: ' . join(' ', @kilobytes) . ' kB');
}

# Where there is none in abundance, or nobody can tell, states are sent.  The result is the same.
my ($expected) = run('SELECT md5(fav_agg(n)::text) FROM numbers');
$node->append_conf('postgresql.conf', 'dynamic_shared_memory_type = mmap');
$node->restart;
($launched, $shared) = shared('SELECT fav_agg(n) FROM numbers');
is($shared, 0, "other shared memory is not used ($launched workers)");
is((run('SELECT md5(fav_agg(n)::text) FROM numbers', $workers))[0], $expected, 'the same filter');
is((run('SELECT md5(fav_agg(n)::text) FROM numbers'))[0], $expected, 'also with the leader');
$node->stop;
done_testing();
