
# The state that the leader of a parallel aggregate has gathered by itself goes to the
# final aggregate as it is.  The server's debug messages tell; that the
# results are right in every case is seen in sql/parallel.sql and sql/parts.sql.

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

# How often a state was handed over.
sub handed_over
{
	my ($query, $settings) = @_;
	my ($output, $errors) = ('', '');

	is( $node->psql('postgres', ($settings || '') . $query, stdout => \$output, stderr => \$errors),
		0, "runs: $query");
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
$node->stop;
done_testing();
