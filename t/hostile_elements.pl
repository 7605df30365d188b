
# Elements chosen by an attacker.  The hash function is public.  An attacker who knows the seed
# of a filter can find elements that all fall into one block, and make the filter report elements
# that were never added.  This test shows that it works with seed 0, and that with an unknown
# seed such elements behave like any others.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{FAV_SEED} || (time ^ $$);
srand($seed);
note("seed $seed: set FAV_SEED to see the same again");

my $node = start_node('elements');

# A filter shows the hashes of its recent elements: bytes 8 and on.  The leading bits of
# a hash choose the block, so the elements with the smallest of many hashes share it.
$node->safe_psql(
	'postgres', q{
CREATE TABLE crafted AS
	SELECT element, row_number() OVER (ORDER BY md5(element::text)) AS n FROM
		(SELECT element FROM (SELECT i AS element, fav_add(fav_new(), i)::bytea AS b
			FROM generate_series(1::bigint, 160000) i OFFSET 0) AS v
		ORDER BY get_byte(b, 15), get_byte(b, 14), get_byte(b, 13) LIMIT 6000) AS smallest;
CREATE TABLE texts AS
	SELECT element, row_number() OVER (ORDER BY md5(element)) AS n FROM
		(SELECT element FROM (SELECT 'post ' || i AS element, fav_add(fav_new(), 'post ' || i)::bytea AS b
			FROM generate_series(1, 160000) i OFFSET 0) AS v
		ORDER BY get_byte(b, 15), get_byte(b, 14), get_byte(b, 13) LIMIT 6000) AS smallest;
});

# Add half of the crafted elements, and probe for the other half.
sub attack
{
	my ($table, $filter_seed) = @_;
	my ($missing, $wrong) = split /\|/, $node->safe_psql(
		'postgres', qq{
WITH filter AS MATERIALIZED (
	SELECT fav_add(fav_new(3000, 0.01, 7, $filter_seed), array_agg(element)) AS f FROM $table WHERE n <= 3000)
SELECT count(*) FILTER (WHERE n <= 3000 AND NOT fav_contains(f, element)),
	count(*) FILTER (WHERE n > 3000 AND fav_contains(f, element)) FROM filter, $table});
	is($missing, '0', "$table, seed $filter_seed: nothing is missing");
	return $wrong / 3000;
}

foreach my $table ('crafted', 'texts')
{
	my $known = attack($table, 0);
	cmp_ok($known, '>', 0.03, sprintf('%s: with the seed known, %.0f %% of what was not added is reported', $table, 100 * $known));

	my $sum = 0;
	my $seeds = 8 * effort();
	foreach my $i (1 .. $seeds)
	{
		# seeds that differ little from 0 are as good as any
		my $unknown = $i == 1 ? 1 : $i == 2 ? -1 : int(rand(2**53)) - 2**52;
		my $rate = attack($table, $unknown);
		# 1 % is promised; three standard deviations of 3000 probes are 0.6 %
		cmp_ok($rate, '<', 0.02, sprintf('%s, seed %s: %.2f %% of what was not added is reported', $table, $unknown, 100 * $rate));
		$sum += $rate;
	}
	cmp_ok($sum / $seeds, '<', 0.0125, sprintf('%s: %.2f %% over all seeds, 1 %% is promised', $table, 100 * $sum / $seeds));
	figures(sprintf('%s against seed 0: %.0f %% false positives; against %d other seeds: %.2f %%',
			$table eq 'crafted' ? 'integers crafted' : 'texts crafted', 100 * $known, $seeds, 100 * $sum / $seeds));
}

# Pairs of elements that collide under one seed do not collide under another: the
# blocks of the crafted elements are spread evenly.
my $spread = $node->safe_psql(
	'postgres', q{
SELECT max(n) FROM (SELECT get_byte(fav_add(fav_new(1000, 0.01, 7, 987654321), element)::bytea, 15) / 16 AS block, count(*) AS n
	FROM crafted GROUP BY 1) AS blocks});
# 375 are expected in each of 16; the standard deviation is 19
cmp_ok($spread, '<', 500, "under another seed at most $spread of 6000 share a sixteenth of all blocks");

# An aggregate sorts hashes.  Hashes with equal leading bits must not make that slow.
my $sorted = $node->safe_psql(
	'postgres', q{
SELECT count(*) FROM crafted, (SELECT fav_agg(element) AS f FROM (SELECT element FROM crafted, generate_series(1, 20)) AS c) AS v
WHERE fav_contains(f, element)});
is($sorted, '6000', 'an aggregate of crafted elements has them all');

log_is_clean($node, 'the log shows ordinary errors only');
$node->stop;
done_testing();
