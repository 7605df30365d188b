
# Load: readers and writers on one hot user and on many users; the memory of a session that calls
# every function repeatedly; a cancel in the middle of the longest calls.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('load', conf => "autovacuum = on\nautovacuum_naptime = 1\nmax_connections = 50\njit = off\n");

# ---------------------------------------------------------------------------------
# Readers and writers
# ---------------------------------------------------------------------------------

$node->safe_psql(
	'postgres', q{
CREATE TABLE users (id bigint PRIMARY KEY, hidden fav) WITH (fillfactor = 50);
CREATE TABLE pairs (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
CREATE TABLE posts AS SELECT i AS id FROM generate_series(1::bigint, 20000) i;
INSERT INTO users SELECT i FROM generate_series(1, 1000) i;
CREATE FUNCTION hide(who bigint, post bigint) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	PERFORM FROM users WHERE id = who FOR UPDATE;
	INSERT INTO pairs VALUES (who, post) ON CONFLICT DO NOTHING;
	IF FOUND THEN
		UPDATE users SET hidden = fav_add(hidden, post) WHERE id = who;
	END IF;
END
$$;
CREATE FUNCTION show(who bigint, post bigint) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	PERFORM FROM users WHERE id = who FOR UPDATE;
	DELETE FROM pairs WHERE user_id = who AND post_id = post;
	IF FOUND THEN
		UPDATE users SET hidden = fav_del(hidden, post) WHERE id = who;
	END IF;
END
$$;
-- A feed without what is hidden, as the filter and as the table say.  In one snapshot
-- the filter may hide a post too many, but never show one that is hidden.
CREATE TABLE complaints (who bigint, post bigint);
CREATE FUNCTION read_feed(who bigint, first bigint) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	wrong bigint[];
	shown bigint;
BEGIN
	SELECT count(*), array_agg(p.id) FILTER (WHERE EXISTS (SELECT FROM pairs WHERE user_id = who AND post_id = p.id))
	INTO shown, wrong
	FROM posts p, users u
	WHERE u.id = who AND p.id BETWEEN first AND first + 300 AND NOT fav_contains(u.hidden, p.id);
	IF wrong IS NOT NULL THEN
		INSERT INTO complaints SELECT who, unnest(wrong);
	END IF;
	RETURN shown;
END
$$;
INSERT INTO pairs SELECT 1, i FROM generate_series(1, 5000) i;
UPDATE users SET hidden = (SELECT fav_agg(post_id) FROM pairs) WHERE id = 1;
});

my $scripts = PostgreSQL::Test::Utils::tempdir();
append_to_file("$scripts/hot_write", "\\set post random(1, 20000)\nSELECT hide(1, :post);\n\\set post random(1, 20000)\nSELECT show(1, :post);\n");
append_to_file("$scripts/hot_read", "\\set first random(1, 19700)\nSELECT read_feed(1, :first);\n");
append_to_file("$scripts/write", "\\set who random(1, 1000)\n\\set post random(1, 500)\nSELECT hide(:who, :post);\n\\set post random(1, 500)\nSELECT show(:who, :post);\n");
append_to_file("$scripts/read", "\\set who random(1, 1000)\n\\set first random(1, 500)\nSELECT read_feed(:who, :first);\n");

my $seconds = effort() > 1 ? 60 * effort() : 6;
my ($out, $error) = ('', '');
my $bench = run_in_background(
	[
		'pgbench', '-n', '-c', '12', '-j', '2', '-T', $seconds, '-M', 'prepared',
		'-f', "$scripts/hot_write\@2", '-f', "$scripts/hot_read\@3",
		'-f', "$scripts/write\@4", '-f', "$scripts/read\@4", $node->connstr('postgres')
	],
	\$out, \$error);
ok($bench->finish, "pgbench, $seconds seconds, 12 clients");
is($error =~ /ERROR|aborted/ ? $error : '', '', 'no client had an error');
my ($transactions) = $out =~ /actually processed: (\d+)/;
cmp_ok($transactions, '>', 0, "$transactions transactions");
is($node->safe_psql('postgres', 'SELECT count(*) FROM complaints'), '0', 'no reader saw a post that was hidden');
is( $node->safe_psql('postgres', 'SELECT count(*) FROM pairs JOIN users ON id = user_id WHERE NOT fav_contains(hidden, post_id)'),
	'0', 'nothing is missing at the end');
my $bits = $node->safe_psql('postgres', 'SELECT 8 * length(hidden::bytea) / fav_count(hidden) FROM users WHERE id = 1');
cmp_ok($bits, '<', 60, "the hot filter has $bits bits an element");
figures("$transactions transactions of 12 clients in $seconds s, 0 wrong answers");
$node->safe_psql('postgres', 'ALTER SYSTEM SET autovacuum = off; SELECT pg_reload_conf()');

# ---------------------------------------------------------------------------------
# Memory
# ---------------------------------------------------------------------------------

# One session makes each call many times, within one statement and in a loop of a function. The
# test compares the size and the peak of the process before and after.
SKIP:
{
	skip 'needs /proc', 2 unless -r '/proc/self/status';
	my $often = effort() > 1 ? 1000000 : 4000;
	# a stack of three times the same filter is an error, and so are periods of a filter without dates
	my @calls = grep { !/fav_stack|fav_add_at|fav_expire/ } calls_on_filter($node);
	push @calls, 'fav_expire(fav_add_at(fav_new(keep => 3), many, 7), 9)', 'fav_add(c, 42)', 'fav_add(c, many)', 'fav_del(c, many)', 'fav_contains(c, 42)', 'fav_contains(c, 42::text)', 'fav_filter(c, many)', 'fav_count(c)',
	  'fav_cache_stats(c)', 'c = c', 'fav_cache_hash(c)', 'c::bytea::fav_cache', '(SELECT fav_cache_agg(m) FROM unnest(many) m)';
	my $warm_up = '';
	my $measured = '';
	my $calls = 0;

	foreach my $source ('small', 'large')
	{
		foreach my $call (@calls)
		{
			# the large filter has thousands of times the bytes
			my $heavy = $source eq 'large' && $call =~ /fav_(add|del|exclude|union|union_agg|stats|cache_stats|slices|count|out|send|from_bytea|needs_rebuild)|::fav_cache|[-+]|\|\|/;
			my $times = int($often / ($heavy ? 500 : $source eq 'large' ? 10 : 1));
			my $statement = "SELECT count(x) FROM (SELECT f, c, many FROM samples WHERE name = '$source') s,
				LATERAL (SELECT $call AS x FROM generate_series(1, TIMES) i OFFSET 0) c;\n";
			my $loop = "DO \$\$ DECLARE f fav; c fav_cache; many bigint[]; BEGIN SELECT s.f, s.c, s.many INTO f, c, many FROM samples s WHERE name = '$source';
				FOR i IN 1 .. TIMES LOOP PERFORM $call; END LOOP; END \$\$;\n";
			my $few = $heavy ? 20 : 200;
			(my $first = "$statement$loop") =~ s/TIMES/$few/g;
			my $loops = int($times / 20) || 1;
			$statement =~ s/TIMES/$times/;
			$loop =~ s/TIMES/$loops/;
			$warm_up .= $first;
			$measured .= $statement . $loop;
			$calls += $times + $loops;
		}
	}
	my $look = q{
DELETE FROM status;
DO $$ BEGIN EXECUTE format('COPY status FROM PROGRAM %L', 'grep ^Vm /proc/' || pg_backend_pid() || '/status | tr -d ''\t kB'''); END $$;
SELECT 'memory', max(substr(line, 7)) FILTER (WHERE line LIKE 'VmRSS:%'), max(substr(line, 7)) FILTER (WHERE line LIKE 'VmHWM:%')
FROM status;
};
	$node->safe_psql(
		'postgres', q{
CREATE TABLE samples (name text, f fav, many bigint[], c fav_cache);
INSERT INTO samples VALUES
	('small', (SELECT fav_add(NULL, array_agg(i)) FROM generate_series(1::bigint, 100) i), ARRAY[1, 2, 3, 100, 101, 102, 103],
		(SELECT fav_cache_agg(i) FROM generate_series(1::bigint, 100) i)),
	('large', (SELECT fav_agg(i) FROM generate_series(1::bigint, 60000) i), ARRAY[1, 2, 3, 100000, 100001, 100002],
		(SELECT fav_cache_agg(i, 20000) FROM generate_series(1::bigint, 60000) i))});
	my $output = $node->safe_psql(
		'postgres', "SET max_parallel_workers_per_gather = 0;
CREATE TEMPORARY TABLE status (line text);
ALTER TABLE samples ALTER f SET STORAGE EXTERNAL;
$warm_up $warm_up $look $measured $look");
	my @memory = map { [ split /\|/ ] } grep { /^memory/ } split /\n/, $output;
	my $grown = $memory[1][1] - $memory[0][1];
	my $peak = $memory[1][2] - $memory[0][2];
	cmp_ok($grown, '<', 3000, "$calls calls: the session has grown by $grown kB");
	cmp_ok($peak, '<', 8000, "and its peak by $peak kB");
	figures(scalar(@calls) . " different calls, up to $often times each, $calls in all: $grown kB more memory, peak $peak kB more");
}

# ---------------------------------------------------------------------------------
# Cancel
# ---------------------------------------------------------------------------------

my $many = effort() > 1 ? 10000000 : 1000000;
my $array = effort() > 1 ? 1000000 : 400000;
$node->safe_psql(
	'postgres', qq{
CREATE TABLE numbers AS SELECT i FROM generate_series(1::bigint, $many) i;
CREATE TABLE arrays AS SELECT array_agg(i) AS a, array_agg('post ' || i) AS t FROM generate_series(1::bigint, $array) i;
CREATE TABLE giants AS SELECT fav_agg(i) AS f FROM numbers;
INSERT INTO giants SELECT fav_agg(i + 1) FROM numbers;
CREATE TABLE giant_cache AS SELECT fav_cache_agg(i, 1000000) AS c FROM numbers;
});
my %statements = (
	'fav_agg' => 'SELECT fav_agg(i) FROM numbers',
	'fav_agg with duplicates' => "SELECT fav_agg(i % ($many / 10)) FROM numbers",
	'fav_agg of text' => 'SELECT fav_agg(i::text) FROM numbers',
	'fav_add of an array' => 'SELECT fav_add(fav_new(), a) FROM arrays',
	'fav_add of texts' => 'SELECT fav_add(fav_new(), t) FROM arrays',
	'fav_del of an array' => 'SELECT fav_del(f, a) FROM giants, arrays',
	'fav_filter' => 'SELECT fav_filter(f, a) FROM giants, arrays',
	'fav_union' => 'SELECT fav_union(a.f, b.f) FROM giants a, giants b',
	'fav_union_agg' => 'SELECT fav_union_agg(f) FROM giants, generate_series(1, 10)',
	'fav_cache_agg' => 'SELECT fav_cache_agg(i, 1000000) FROM numbers',
	'fav_add to a cache' => 'SELECT fav_add(c, a) FROM giant_cache, arrays',
	'the cast from bytea to a cache' => 'SELECT count(c::bytea::fav_cache) FROM giant_cache, generate_series(1, 10)',
	'fav_stats' => 'SELECT count(fav_stats(f)) FROM giants, generate_series(1, 10)',
	'the cast from bytea' => 'SELECT count(f::bytea::fav) FROM giants, generate_series(1, 10)',
	'text out and in' => 'SELECT count(f::text::fav) FROM giants, generate_series(1, 10)');

# First run to the end, then cancel at points spread over that time.
my ($worst, $worst_name, $cancels) = (0, '', 0);
my @late;
foreach my $name (sort keys %statements)
{
	my $points = effort() > 1 ? 12 : 2;
	my $quiet = "CREATE TEMPORARY TABLE discarded AS $statements{$name}";
	my $whole = timing($quiet, 0);
	my $cancelled = 0;

	foreach my $point (1 .. $points)
	{
		my $limit = int($whole * $point / ($points + 1)) || 1;
		my ($took, $state) = timing($quiet, $limit);
		next unless $state eq '57014';
		$cancelled++;
		$cancels++;
		push @late, $took - $limit;
		($worst, $worst_name) = ($took - $limit, "$name after $limit of $whole ms") if $took - $limit > $worst;
	}
	cmp_ok($cancelled, '>', 0, sprintf('%s: cancelled in the middle of %d ms', $name, $whole));
}
@late = sort { $a <=> $b } @late;
figures(
	sprintf('%d cancels: answered in %.1f ms (median), %.1f ms (95 %%), at worst %.1f ms (%s)',
		$cancels, $late[ @late / 2 ], $late[ int(@late * 0.95) ], $worst, $worst_name));

# a timeout at the end of a session can no longer be sent
log_is_clean($node, 'the log shows ordinary errors only', '08006' => 1);
$node->stop;
done_testing();

# The duration of a statement in ms, and its SQLSTATE.
sub timing
{
	my ($statement, $limit) = @_;
	my ($status, $stdout, $stderr) = $node->psql(
		'postgres', "\\set VERBOSITY sqlstate\nSET max_parallel_workers_per_gather = 0; SET work_mem = '64MB';\nSELECT count(*) FROM giants;\nSET statement_timeout = $limit;\n\\timing on\n$statement;\n", on_error_stop => 0);
	my ($took) = $stdout =~ /Time: ([\d.]+) ms/;
	my ($state) = $stderr =~ /ERROR:  (\w+)/;
	return wantarray ? ($took, $state // '') : $took;
}
