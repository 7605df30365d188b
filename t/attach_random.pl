
# Random statements of all kinds, several sessions at once, on sources with and without
# a unique index, partitioned, with text for elements; rebuilds and savepoints in
# between.  Then the filters are compared with the source: nothing missing, the error
# within the rate, and for users with few pairs nothing there that should not be.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{FAV_SEED} || (time ^ $$) % 1_000_000_000;
note("seed $seed");
my $seconds = effort() > 1 ? 60 * effort() : 5;

my $node = start_node('attach_random', conf => "max_connections = 50\ndeadlock_timeout = 10ms\nautovacuum = on\nautovacuum_naptime = 1\n");
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

$node->safe_psql(
	'postgres', q{
-- k up to 20; users 1 to 5 have many pairs, the others few
CREATE TABLE uniq (k int, e bigint, note int, PRIMARY KEY (k, e));
CREATE TABLE dups (k int, e text, note int);
CREATE INDEX ON dups (k, e);
CREATE TABLE parts (note int, k int, e bigint, UNIQUE (k, e)) PARTITION BY LIST (k);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN (1, 3, 5, 7, 9, 11, 13, 15, 17, 19);
CREATE TABLE parts_b (e bigint, k int, note int, UNIQUE (k, e));
ALTER TABLE parts ATTACH PARTITION parts_b DEFAULT;
CREATE TABLE users (id int PRIMARY KEY, few fav, parts fav);
SELECT fav_attach('uniq', 'k', 'e');
SELECT fav_attach('uniq', 'k', 'e', 'users', filter => 'few', error_rate => 0.001);
SELECT fav_attach('dups', 'k', 'e');
SELECT fav_attach('parts', 'k', 'e', 'users', filter => 'parts');
CREATE TABLE parts_c PARTITION OF parts FOR VALUES IN (18);

-- a random number of a skewed kind: small users have 60 elements to choose from
CREATE FUNCTION any_element(k int) RETURNS bigint LANGUAGE sql VOLATILE AS
	$$ SELECT CASE WHEN k <= 5 THEN (random() * 3000)::bigint ELSE (random() * 60)::bigint END $$;

CREATE FUNCTION statement(source text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	a int := 1 + (random() * 19)::int;
	b int := 1 + (random() * 19)::int;
	x bigint := any_element(a);
	n int := CASE WHEN random() < 0.2 THEN 400 ELSE 1 + (random() * 5)::int END;
	kind int := (random() * 12)::int;
	quiet text := CASE WHEN source = 'dups' THEN '' ELSE 'ON CONFLICT DO NOTHING' END;
	part text := CASE WHEN source <> 'parts' THEN source WHEN random() < 0.5 THEN 'parts' ELSE
		(ARRAY['parts_a', 'parts_b'])[1 + a % 2] END;
BEGIN
	IF part = 'parts_a' THEN a := a / 2 * 2 + 1 - 2 * (a / 20); ELSIF part = 'parts_b' THEN a := 2; END IF;
	CASE
	WHEN kind <= 1 THEN
		EXECUTE format('INSERT INTO %I (k, e) VALUES ($1, $2) %s', part, quiet) USING a, x;
	WHEN kind <= 3 THEN
		EXECUTE format('INSERT INTO %I (k, e) SELECT CASE WHEN $4 THEN $1 ELSE 1 + (random() * 19)::int END, any_element($1) FROM generate_series(1, $2) %s ', part, quiet)
			USING a, n, b, part = source AND source <> 'parts' OR part <> 'parts';
	WHEN kind <= 5 THEN
		EXECUTE format('DELETE FROM %I WHERE k = $1 AND e IN (SELECT e FROM %1$I WHERE k = $1 ORDER BY random() LIMIT $2)', part) USING a, n;
	WHEN kind = 6 THEN
		EXECUTE format('DELETE FROM %I WHERE ctid = (SELECT ctid FROM ONLY %1$I WHERE k = $1 LIMIT 1 FOR UPDATE SKIP LOCKED)',
			CASE WHEN part = 'parts' THEN 'parts_a' ELSE part END) USING a;
	WHEN kind = 7 THEN
		EXECUTE format('UPDATE %I SET note = note + 1 WHERE k = $1', part) USING a;
	WHEN kind = 8 AND source = 'dups' THEN
		UPDATE dups SET k = CASE WHEN k = a THEN b ELSE a END WHERE k IN (a, b) AND e < '3';
	WHEN kind = 8 THEN
		EXECUTE format('UPDATE %I SET e = 100000 - e WHERE k = $1 AND e IN (SELECT e FROM %1$I WHERE k = $1 LIMIT 20)
			AND NOT EXISTS (SELECT FROM %1$I y WHERE y.k = $1 AND y.e > 90000)', part) USING a;
	WHEN kind = 9 THEN
		EXECUTE format('WITH gone AS (DELETE FROM %I WHERE k = $1 AND e IN (SELECT e FROM %1$I WHERE k = $1 LIMIT $2) RETURNING k, e)
			INSERT INTO %1$I (k, e) SELECT k, e FROM gone WHERE random() < 0.5 %s',
			part, quiet) USING a, n;
	WHEN kind = 10 AND source = 'uniq' THEN
		INSERT INTO uniq VALUES (a, x) ON CONFLICT (k, e) DO UPDATE SET e = uniq.e + 50000, note = 1;
	WHEN kind = 11 THEN
		BEGIN
			EXECUTE format('INSERT INTO %I (k, e) VALUES ($1, $2) %s', part, quiet) USING a, x;
			EXECUTE format('DELETE FROM %I WHERE k = $1', part) USING a;
			IF random() < 0.8 THEN RAISE EXCEPTION USING ERRCODE = 'P0099'; END IF;
		EXCEPTION WHEN SQLSTATE 'P0099' THEN NULL;
		END;
	WHEN kind = 12 AND random() < 0.1 THEN
		PERFORM fav_rebuild(source::regclass, a::text, CASE WHEN source = 'uniq' THEN 'users'::regclass END);
	ELSE
		EXECUTE format('INSERT INTO %I (k, e) VALUES ($1, $2), ($1, $2 + 1) %s', part, quiet) USING a, x;
	END CASE;
EXCEPTION
	-- Two statements at once insert or move the same pair, or lock more than one key
	-- because they have several parts: what any application has to expect.
	WHEN unique_violation OR deadlock_detected OR serialization_failure OR check_violation THEN NULL;
END $$;
});
if ($version >= 150000)
{
	$node->safe_psql(
		'postgres', q{
CREATE FUNCTION merging() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	a int := 1 + (random() * 19)::int;
BEGIN
	MERGE INTO uniq u USING (SELECT DISTINCT a AS k, any_element(a) AS e FROM generate_series(1, 10)) v ON u.k = v.k AND u.e = v.e
	WHEN MATCHED AND u.e % 2 = 0 THEN UPDATE SET e = u.e + 70000
	WHEN MATCHED THEN DELETE
	WHEN NOT MATCHED THEN INSERT (k, e) VALUES (v.k, v.e);
EXCEPTION
	WHEN unique_violation OR deadlock_detected OR serialization_failure THEN NULL;
END $$;
});
}
else
{
	$node->safe_psql('postgres', 'CREATE FUNCTION merging() RETURNS void LANGUAGE sql AS $$ $$');
}

my $script = $node->basedir . '/script.sql';
append_to_file(
	$script, q{
\set many random(1, 10)
SELECT statement('uniq');
SELECT statement('dups');
\if :many > 7
BEGIN;
SELECT statement('parts');
SAVEPOINT s;
SELECT statement('uniq');
ROLLBACK TO s;
SELECT statement('dups');
SELECT statement('parts');
END;
SELECT merging();
\endif
SELECT statement('parts');
});
my $strict = $node->basedir . '/strict.sql';
append_to_file(
	$strict, q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT statement('uniq');
SELECT statement('dups');
SELECT statement('parts');
END;
});

my ($out1, $err1, $out2, $err2) = ('', '', '', '');
my @common = ('pgbench', '-n', '-h', $node->host, '-p', $node->port, '-T', $seconds, "--random-seed=$seed");
my $one = run_in_background([ @common, '-c', 6, '-f', $script, 'postgres' ], \$out1, \$err1);
my $two = run_in_background([ @common, '-c', 2, '-f', $strict, 'postgres' ], \$out2, \$err2);
ok($one->finish, 'random statements at READ COMMITTED') or diag($err1);
ok($two->finish, 'random statements at REPEATABLE READ') or diag($err2);
my ($transactions) = $out1 =~ /actually processed: (\d+)/;
note("$transactions transactions");
cmp_ok($transactions, '>', 50, 'there were some');

foreach my $which (
	[ 'uniq', 'uniq_fav', 'filter', 0.01 ],
	[ 'uniq', 'users', 'few', 0.001 ],
	[ 'dups', 'dups_fav', 'filter', 0.01 ],
	[ 'parts', 'users', 'parts', 0.01 ])
{
	my ($source, $target, $filter, $rate) = @$which;
	my ($keys, $elements, $missing, $positives) = split /\|/,
	  $node->safe_psql('postgres', "SELECT * FROM fav_verify('$source', '$target', '$filter')");

	figures("$source, $target.$filter: $keys keys, $elements elements, missing $missing, false positives $positives");
	is($missing, 0, "$source, $target.$filter: nothing is missing");
	cmp_ok($positives, '<=', $rate * 1.5, "$source, $target.$filter: false positives within the rate");
	my $key = $target eq 'users' ? 'id' : 'k';
	my $type = $source eq 'dups' ? 'text' : 'bigint';
	is( $node->safe_psql(
			'postgres', qq{
SELECT count(*) FROM $target f, generate_series(0, 70) e
WHERE f.$key > 5 AND (fav_stats(f.$filter)).slices = 0
	AND f.$filter @> e::$type AND NOT EXISTS (SELECT FROM $source s WHERE s.k = f.$key AND s.e = e::$type)}),
		0, "$source, $target.$filter: nothing is left behind");
}
is($node->safe_psql('postgres', 'SELECT sum(want_rebuild) FROM fav_attachments'), 0, 'no filter wants a rebuild');

log_is_clean($node, 'a clean log');
$node->stop;
done_testing();
