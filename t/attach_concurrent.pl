
# Random statements in several sessions at once, on sources with and without a unique key
# and on partitions, with filters of their own for each key and with filters that keys share:
# READ COMMITTED and REPEATABLE READ, savepoints, two-phase commit, TRUNCATE, and all the while
# sessions that rebuild and verify, and sessions that read: in every snapshot <name>_has is EXISTS.
# Afterwards filter and source have to be equal.

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

my $node = start_node('attach_concurrent',
	conf => "max_connections = 50\nmax_prepared_transactions = 20\ndeadlock_timeout = 10ms\nautovacuum = on\nautovacuum_naptime = 1\n");
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# pgbench repeats a transaction that ended with a deadlock or a serialization error from
# version 15 on.  Before that, nothing may fail at the end of a transaction, so no statement
# may go to the partition that was made after fav_attach.
my $can_repeat = $version >= 150000;
my $late = $can_repeat ? 'true' : 'false';

$node->safe_psql(
	'postgres', q{
-- Keys 1 to 3 are large: up to 3,000 elements.  Keys 4 to 20 are small: up to 60.
CREATE FUNCTION size(k int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN k <= 3 THEN 3000 ELSE 60 END $$;
CREATE FUNCTION any_element(k int) RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT floor(random() * size(k))::bigint $$;
CREATE FUNCTION any_key() RETURNS int LANGUAGE sql VOLATILE AS
	$$ SELECT CASE WHEN random() < 0.3 THEN 1 + floor(random() * 3) ELSE 4 + floor(random() * 17) END::int $$;
CREATE FUNCTION any_pairs(n int, a int) RETURNS TABLE (k int, e bigint) LANGUAGE sql VOLATILE AS
	$$ SELECT k, any_element(k) FROM (SELECT coalesce(a, any_key()) AS k FROM generate_series(1, n) OFFSET 0) x $$;

CREATE TABLE uniq (k int, e bigint, note int DEFAULT 0, PRIMARY KEY (k, e));
CREATE TABLE dups (k int, e text, note int DEFAULT 0);
CREATE INDEX ON dups (k, e);
CREATE TABLE parts (note int DEFAULT 0, k int, e bigint, UNIQUE (k, e)) PARTITION BY LIST (k);
CREATE TABLE parts_odd PARTITION OF parts FOR VALUES IN (1, 3, 5, 7, 9, 11, 13, 15, 17, 19);
CREATE TABLE parts_rest (e bigint, gone int, k int, note int DEFAULT 0, UNIQUE (k, e));
ALTER TABLE parts_rest DROP gone;
ALTER TABLE parts ATTACH PARTITION parts_rest DEFAULT;
INSERT INTO uniq SELECT * FROM any_pairs(3000, NULL) ON CONFLICT DO NOTHING;
SELECT fav_attach('uniq', 'k', 'e');
SELECT fav_attach('uniq', 'k', 'e', error_rate => 0.001, name => 'uniq_again');
SELECT fav_attach('uniq', 'k', 'e', share => 4, name => 'uniq_shared');
SELECT fav_attach('dups', 'k', 'e');
SELECT fav_attach('parts', 'k', 'e');
SELECT fav_attach('parts', 'k', 'e', error_rate => 0.000001, share => 6, name => 'parts_shared');
CREATE TABLE single (k int, e bigint, PRIMARY KEY (k, e));
SELECT fav_attach('single', 'k', 'e', 0.000001);
SELECT fav_attach('single', 'k', 'e', 0.000001, share => 7, name => 'single_shared');
CREATE TABLE parts_18 PARTITION OF parts FOR VALUES IN (18);

CREATE FUNCTION statement(source text, late boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	piece text := source;
	a int := any_key();
	b int := any_key();
	n int := CASE WHEN random() < 0.3 THEN 300 ELSE 1 + floor(random() * 5) END;
	kind int := floor(random() * 14);
BEGIN
	IF source = 'parts' AND random() < 0.5 THEN
		piece := CASE WHEN a = 18 THEN 'parts_18' WHEN a % 2 = 1 THEN 'parts_odd' ELSE 'parts_rest' END;
	END IF;
	IF a = 18 AND NOT late THEN
		piece := source;
	END IF;
	CASE
	WHEN kind <= 2 THEN
		EXECUTE format('INSERT INTO %I (k, e) SELECT * FROM any_pairs($1, $2) ON CONFLICT DO NOTHING', piece) USING n, a;
	WHEN kind = 3 THEN
		EXECUTE format('INSERT INTO %I (k, e) SELECT * FROM any_pairs($1, NULL) ON CONFLICT DO NOTHING', source) USING n;
	WHEN kind <= 5 THEN
		EXECUTE format('DELETE FROM %I WHERE k = $1 AND e::bigint IN (SELECT e FROM any_pairs(2 * $2, $1))', piece) USING a, n;
	WHEN kind = 6 THEN
		EXECUTE format('DELETE FROM %I WHERE k IN ($1, $2) AND random() < 0.2', source) USING a, b;
	WHEN kind = 7 THEN
		EXECUTE format('UPDATE %I SET note = note + 1 WHERE k = $1', piece) USING a;
	WHEN kind = 8 THEN
		EXECUTE format('UPDATE %I SET k = $2 WHERE k = $1 AND e::bigint < 60 AND random() < 0.1', source) USING a, b;
	WHEN kind = 9 THEN
		EXECUTE format('UPDATE %I t SET e = any_element(k) WHERE k = $1 AND random() < 3.0 / size(k)', piece) USING a;
	WHEN kind = 10 THEN
		EXECUTE format('WITH gone AS (DELETE FROM %I WHERE k = $1 AND random() < 0.2 RETURNING k, e)
			INSERT INTO %1$I (k, e) SELECT k, e FROM gone WHERE random() < 0.5 ON CONFLICT DO NOTHING', piece) USING a;
	WHEN kind = 11 AND source = 'uniq' THEN
		INSERT INTO uniq SELECT * FROM any_pairs(1, a) ON CONFLICT (k, e) DO UPDATE SET e = any_element(uniq.k);
	WHEN kind = 12 THEN
		BEGIN
			EXECUTE format('INSERT INTO %I (k, e) SELECT * FROM any_pairs($1, $2) ON CONFLICT DO NOTHING', piece) USING n, a;
			EXECUTE format('DELETE FROM %I WHERE k = $1 AND random() < 0.8', piece) USING a;
			IF random() < 0.8 THEN RAISE EXCEPTION USING ERRCODE = 'P0099'; END IF;
		EXCEPTION WHEN SQLSTATE 'P0099' THEN NULL;
		END;
	WHEN kind = 13 AND source = 'parts' AND random() < 0.1 THEN
		TRUNCATE parts_rest;
	WHEN kind = 13 AND source = 'parts' AND random() < 0.02 THEN
		TRUNCATE parts;
	WHEN kind = 13 AND random() < 0.1 THEN
		PERFORM fav_rebuild(source::regclass, a::text, (source || '_fav')::name);
	ELSE
		EXECUTE format('INSERT INTO %I (k, e) SELECT * FROM any_pairs(2, $1) ON CONFLICT DO NOTHING', piece) USING a;
	END CASE;
EXCEPTION
	-- what sessions at once may do to each other
	WHEN unique_violation OR deadlock_detected OR serialization_failure THEN NULL;
END $$;

-- The session that rebuilds and verifies
CREATE TABLE verified (source text, missing bigint, stale bigint);
CREATE FUNCTION mend(source text, name name, chance float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF random() < chance THEN
		PERFORM fav_rebuild(source::regclass, any_key()::text, name);
	ELSIF random() < chance / 2 THEN
		PERFORM fav_rebuild(source::regclass, name => name);
	END IF;
EXCEPTION
	WHEN deadlock_detected OR serialization_failure THEN NULL;
END $$;
});
if ($version >= 150000)
{
	$node->safe_psql(
		'postgres', q{
CREATE FUNCTION merging(source text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	a int := any_key();
BEGIN
	EXECUTE format('MERGE INTO %I t USING (SELECT DISTINCT * FROM any_pairs(10, $1)) v ON t.k = v.k AND t.e::bigint = v.e
		WHEN MATCHED AND v.e %% 4 = 0 THEN UPDATE SET e = any_element(t.k)
		WHEN MATCHED THEN DELETE
		WHEN NOT MATCHED THEN INSERT (k, e) VALUES (v.k, v.e)', source) USING a;
EXCEPTION
	WHEN unique_violation OR deadlock_detected OR serialization_failure OR cardinality_violation THEN NULL;
END $$;
});
}
else
{
	$node->safe_psql('postgres', 'CREATE FUNCTION merging(source text) RETURNS void LANGUAGE sql AS $$ $$');
}

# The attachments: name, source, error rate, and how many keys share a filter
my @attachments = (
	[ 'uniq', 'uniq', 0.01 ], [ 'uniq_again', 'uniq', 0.001 ], [ 'uniq_shared', 'uniq', 0.01, 4 ],
	[ 'dups', 'dups', 0.01 ],
	[ 'parts', 'parts', 0.01 ], [ 'parts_shared', 'parts', 0.000001, 6 ],
	[ 'single', 'single', 0.000001 ], [ 'single_shared', 'single', 0.000001, 7 ]);

# The sessions that read, each statement in one snapshot: the key is a parameter, from a row, and
# from outside.  Nobody has the keys 0 and 21.
$node->safe_psql('postgres', 'CREATE TABLE wrong (name text, shape text, k int, e bigint, here boolean); CREATE SEQUENCE looks');
foreach my $which (@attachments)
{
	my ($name, $source) = @$which;
	my $type = $source eq 'dups' ? 'text' : 'bigint';
	my $exists = sub { my ($key) = @_; return "EXISTS (SELECT FROM $source s WHERE s.k = $key AND s.e = d.e::$type)"; };
	my $grid = 'generate_series(0, 21) u, generate_series(0, 63, 7) e';

	$node->safe_psql(
		'postgres', qq{
CREATE FUNCTION look_$name() RETURNS bigint LANGUAGE plpgsql AS \$\$
DECLARE
	key int := any_key();
BEGIN
	INSERT INTO wrong SELECT '$name', 'parameter', key, e, here
	FROM (SELECT e, ${name}_has(key, e::$type) AS h, @{[ $exists->('key') ]} AS here FROM generate_series(0, size(key), 1 + size(key) / 100) d(e)) q
	WHERE h IS DISTINCT FROM here;
	INSERT INTO wrong SELECT '$name', 'row', u, e, here
	FROM (SELECT u, e, ${name}_has(u, e::$type) AS h, @{[ $exists->('u') ]} AS here FROM (SELECT * FROM $grid) d) q
	WHERE h IS DISTINCT FROM here;
	INSERT INTO wrong SELECT '$name', 'outside', u, e, here
	FROM generate_series(0, 21) u, LATERAL (SELECT e, ${name}_has(u, e::$type) AS h, @{[ $exists->('u') ]} AS here FROM generate_series(0, 63, 7) d(e) OFFSET 0) q
	WHERE h IS DISTINCT FROM here;
	RETURN nextval('looks');
EXCEPTION
	WHEN deadlock_detected THEN RETURN NULL;
END \$\$});
}
my $look = join('', map { "SELECT look_$_->[0]();\n" } @attachments);

my %script = (
	look => $look,
	look_again => "BEGIN ISOLATION LEVEL REPEATABLE READ;\n$look\\sleep 20 ms\n$look${look}END;\n",
	plain => qq{
SELECT statement('uniq', true);
SELECT statement('dups', true);
SELECT statement('parts', true);
SELECT merging('parts');
},
	savepoints => qq{
BEGIN;
SELECT statement('parts', $late);
SAVEPOINT s;
SELECT statement('uniq', $late);
SELECT statement('parts', $late);
ROLLBACK TO s;
SELECT statement('dups', $late);
SAVEPOINT s;
SELECT statement('parts', $late);
RELEASE s;
SELECT merging('uniq');
END;
},
	strict => qq{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT statement('uniq', $late);
SELECT statement('dups', $late);
SELECT mend('dups', 'dups_fav', 0.1);
SELECT statement('dups', $late);
SELECT statement('parts', $late);
END;
},
	prepared => qq{
\\set outcome random(1, 4)
BEGIN;
SELECT statement('uniq', $late);
SELECT statement('parts', $late);
PREPARE TRANSACTION 'session_:client_id';
\\if :outcome > 1
COMMIT PREPARED 'session_:client_id';
\\else
ROLLBACK PREPARED 'session_:client_id';
\\endif
},
	# Sessions share keys here but lock no two rows of the source that another one has.  So
	# single statements cannot deadlock, neither with each other nor with a rebuild.
	single => q{
\set k random(1, 20)
\set e random(0, 59)
DELETE FROM single WHERE e IN (1000 + :client_id, 2000 + :client_id);
INSERT INTO single VALUES (:k, :e) ON CONFLICT DO NOTHING;
INSERT INTO single SELECT i, 1000 + :client_id FROM generate_series(20, 1, -1) i;
UPDATE single SET e = e + 1000 WHERE e = 1000 + :client_id;
DELETE FROM single WHERE k = 21 - :k AND e = :e;
},
	# The same with many rows, in any order of keys, which go to disk on the way
	bulk => q{
SET work_mem = '64kB';
INSERT INTO single SELECT k, 10000 + 1000 * :client_id + e FROM generate_series(1, 20) k, generate_series(1, 200) e ORDER BY random();
DELETE FROM single WHERE e BETWEEN 10000 + 1000 * :client_id AND 10999 + 1000 * :client_id;
},
	# one after the other, because a builder waits for writers
	build => q{
\set which random(1, 4)
\if :which = 1
CALL fav_build('uniq', 'uniq_again', rebuild => true);
\elif :which = 2
CALL fav_build('parts', 'parts', rebuild => true);
\elif :which = 3
CALL fav_build('parts', 'parts_shared', rebuild => true);
\else
CALL fav_build('dups', rebuild => true);
\endif
},
	mend => q{
SELECT fav_rebuild('single', name => 'single_fav');
SELECT fav_rebuild('single', name => 'single_shared');
SELECT mend('uniq', 'uniq_fav', 0.5);
SELECT mend('uniq', 'uniq_again', 0.5);
SELECT mend('uniq', 'uniq_shared', 0.5);
SELECT mend('dups', 'dups_fav', 0.5);
SELECT mend('parts', 'parts_fav', 0.5);
SELECT mend('parts', 'parts_shared', 0.5);
INSERT INTO verified SELECT 'uniq', missing, stale FROM fav_verify('uniq', 'uniq_fav');
INSERT INTO verified SELECT 'uniq', missing, stale FROM fav_verify('uniq', 'uniq_shared');
INSERT INTO verified SELECT 'dups', missing, stale FROM fav_verify('dups', 'dups_fav');
INSERT INTO verified SELECT 'parts', missing, stale FROM fav_verify('parts', 'parts_fav');
});
foreach my $name (sort keys %script)
{
	append_to_file($node->basedir . "/$name.sql", $script{$name});
	$script{$name} = $node->basedir . "/$name.sql";
}

my ($out1, $err1, $out2, $err2, $out3, $err3, $out4, $err4, $out5, $err5) = ('') x 10;
my @common = ('pgbench', '-n', '-h', $node->host, '-p', $node->port, '-T', $seconds, "--random-seed=$seed");
my @repeat = $can_repeat ? '--max-tries=100' : ();
my $one = run_in_background(
	[
		@common, @repeat, '-c', 8,
		(map { ('-f', $_) } "$script{plain}\@4", "$script{savepoints}\@3", "$script{strict}\@3", "$script{prepared}\@2"), 'postgres'
	], \$out1, \$err1);
my $two = run_in_background([ @common, @repeat, '-c', 1, '-f', $script{mend}, 'postgres' ], \$out2, \$err2);
my $three = run_in_background([ @common, '-c', 4, '-f', "$script{single}\@3", '-f', "$script{bulk}\@1", 'postgres' ], \$out3, \$err3);
my $four = run_in_background([ @common, '-c', 3, '-f', "$script{look}\@2", '-f', "$script{look_again}\@1", 'postgres' ], \$out4, \$err4);
my $five = $can_repeat ? run_in_background([ @common, @repeat, '-c', 1, '-f', $script{build}, 'postgres' ], \$out5, \$err5) : undef;
ok($one->finish && $err1 !~ /aborted/, 'random statements') or diag($err1);
ok($two->finish && $err2 !~ /aborted/, 'rebuilding and verifying all the while') or diag($err2);
ok($three->finish && $err3 !~ /aborted/ && $out3 !~ /failed transactions: [1-9]/, 'single statements without an error') or diag("$out3$err3");
ok($four->finish && $err4 !~ /aborted/, 'readers all the while') or diag($err4);
ok($five->finish && $err5 !~ /aborted/, 'fav_build all the while') or diag($err5) if $five;
my ($transactions) = $out1 =~ /actually processed: (\d+)/;
my $looks = $node->safe_psql('postgres', 'SELECT count(*) FROM verified');
note("$transactions transactions, $looks looks");
cmp_ok($transactions, '>', 0, 'there were some');
cmp_ok($looks, '>', 0, 'and the filters were verified meanwhile');
my $reads = $node->safe_psql('postgres', 'SELECT last_value FROM looks');
figures("$reads comparisons of grids while others wrote");
cmp_ok($reads, '>', 0, 'and read');
is($node->safe_psql('postgres', 'SELECT name, shape, count(*), min((k, e, here)::text) FROM wrong GROUP BY 1, 2'), '', 'in every snapshot _has was EXISTS');
# TRUNCATE empties a partition for older snapshots, too, but these still see the old filters.
is($node->safe_psql('postgres', q{SELECT * FROM verified WHERE missing > 0 OR (stale > 0 AND source <> 'parts') LIMIT 5}),
	'', 'nothing was missing or stale at any time');

foreach my $which (@attachments)
{
	my ($name, $source, $rate, $share) = @$which;
	my $view = "${name}_fav";
	my $column = $share ? 'k_group' : 'k';
	my $key = $share ? "fav_group(p.k, $share)" : 'p.k';
	my $probe = $share ? 'p.k, p.e' : 'p.e';
	my $type = $source eq 'dups' ? 'text' : 'bigint';
	my ($keys, $elements, $missing, $stale, $positives) = split /\|/, $node->safe_psql('postgres', "SELECT * FROM fav_verify('$source', '$view')");

	figures("$view: $keys keys, $elements elements, missing $missing, stale $stale, false positives $positives");
	is("$missing|$stale", '0|0', "$view: fav_verify finds nothing missing and nothing stale");
	cmp_ok($positives, '<=', $rate * 1.5, "$view: false positives within the rate");

	# Every pair of the source, and every pair of the small keys, read in all ways.  The filters of
	# small keys that share them have false positives, unless the rate is very small.
	my $smallest = $view eq 'uniq_shared' ? 21 : 4;
	is( $node->safe_psql(
			'postgres', qq{
WITH pairs AS (SELECT k, e::$type AS e FROM generate_series($smallest, 20) k, generate_series(0, size(k) - 1) e UNION SELECT k, e FROM $source),
answers AS (
	SELECT p.k, p.e, EXISTS (SELECT FROM $source s WHERE s.k = p.k AND s.e = p.e) AS here,
		coalesce(fav_contains((SELECT filter FROM $view v WHERE v.$column = $key), $probe), false) AS in_filter,
		coalesce(fav_probe(h.base, h.middle, h.recent, $probe), false) AS in_levels, ${name}_has(p.k, p.e) AS has
	FROM pairs p LEFT JOIN ${view}_levels h ON h.$column = $key)
SELECT format('key %s, element %s: source %s, filter %s, levels %s, has %s', k, e, here, in_filter, in_levels, has)
FROM answers WHERE in_filter <> here OR in_levels <> here OR has IS DISTINCT FROM here LIMIT 10}), '', "$view: filter, ${name}_has and source are equal");
}
# A rebuild creates the statement trigger of a partition that was created later.
$node->safe_psql('postgres', q{SELECT fav_rebuild('parts', name => 'parts_fav'), fav_rebuild('parts', name => 'parts_shared')});
is($node->safe_psql('postgres', 'SELECT count(*), bool_and(active) FROM fav_attachments'), @attachments . '|t', 'all are active');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'), 0, 'no transaction is left prepared');

log_is_clean($node, 'a clean log');
$node->stop;
done_testing();
