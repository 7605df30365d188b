
# Sinks, compared with a plain table that gets the same statements: after every transaction each
# pair of the table is in the filters, and nothing else.
#
# Statements are random: savepoints, exception blocks, statements that fail halfway, functions
# and triggers that insert from within other statements, removals, TRUNCATE.  Then many sessions
# at once, a crash, a standby, logical replication, dump and restore.
#
# FAV_SEED repeats a run.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{FAV_SEED} || (time ^ $$) % 1_000_000_000;
my $transactions = 250 * effort();
srand($seed);
note("FAV_SEED=$seed");

my $node = start_node('sink', init => { allows_streaming => 'logical' }, conf => "max_prepared_transactions = 2\n");
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# Keys from 3 on have up to 100 elements, so their filters are exact.  1 and 2 have thousands.
$node->safe_psql(
	'postgres', q{
CREATE TABLE sink(k int, e bigint, PRIMARY KEY (k, e));
SELECT fav_sink('sink', 'k', 'e', error_rate => 0.000001);
CREATE TABLE model(k int, e bigint);
CREATE TABLE driver(k int, e bigint, fails boolean);

CREATE FUNCTION put(k int, low bigint, high bigint) RETURNS void LANGUAGE sql AS $$
	INSERT INTO sink SELECT k, n FROM generate_series(low, high) n;
	INSERT INTO model SELECT k, n FROM generate_series(low, high) n;
$$;

-- Row by row, from within a statement; half of the rows are taken back.
CREATE FUNCTION try(k int, e bigint, fails boolean) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		INSERT INTO sink VALUES (k, e), (k, e + 1);
		INSERT INTO model VALUES (k, e), (k, e + 1);
		PERFORM 1 / (CASE WHEN fails THEN 0 ELSE 1 END);
	EXCEPTION WHEN division_by_zero THEN
		NULL;
	END;
	RETURN e;
END $$;

CREATE FUNCTION drive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM try(NEW.k, NEW.e, NEW.fails);
	RETURN NEW;
END $$;
CREATE TRIGGER drive_before BEFORE INSERT ON driver FOR EACH ROW EXECUTE FUNCTION drive();
CREATE TRIGGER drive_after AFTER INSERT ON driver FOR EACH ROW EXECUTE FUNCTION drive();

-- Remove what was added, or exclude whatever.
CREATE FUNCTION remove(k int, low bigint, high bigint) RETURNS void LANGUAGE sql AS $$
	SELECT sink_remove(remove.k, array_agg(DISTINCT m.e)) FROM model m WHERE m.k = remove.k AND m.e BETWEEN low AND high HAVING count(*) > 0;
	DELETE FROM model m WHERE m.k = remove.k AND m.e BETWEEN low AND high;
$$;
CREATE FUNCTION exclude(k int, low bigint, high bigint) RETURNS void LANGUAGE sql AS $$
	SELECT sink_remove(k, array_agg(n), exclude => true) FROM generate_series(low, high) n;
	DELETE FROM model m WHERE m.k = exclude.k AND m.e BETWEEN low AND high;
$$;

-- Elements are told if they were new, in their order, and not if they were known.
CREATE FUNCTION tell(k int, low bigint, high bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	told bigint[] := sink_add(k, ARRAY(SELECT n FROM generate_series(high, low, -1) n) || low);
	known bigint[] := ARRAY(SELECT m.e FROM model m WHERE m.k = tell.k AND m.e BETWEEN low AND high);
BEGIN
	IF told && known OR told <> ARRAY(SELECT n FROM unnest(told) n GROUP BY n ORDER BY n DESC)
		OR k > 2 AND cardinality(told) + (SELECT count(DISTINCT n) FROM unnest(known) n) <> high - low + 1 THEN
		RAISE EXCEPTION 'key %: told % of % to %, known are %', k, told, low, high, known;
	END IF;
	INSERT INTO model SELECT k, n FROM generate_series(low, high) n;
END $$;

CREATE FUNCTION compare() RETURNS text LANGUAGE sql AS $$
	WITH missing AS (SELECT DISTINCT m.k, m.e FROM model m LEFT JOIN (SELECT k, filter FROM sink_fav OFFSET 0) f USING (k) WHERE f.k IS NULL OR NOT fav_contains(f.filter, m.e)),
	extra AS (SELECT k, n FROM (SELECT k, filter FROM sink_fav WHERE k > 2 OFFSET 0) f, generate_series(1, 120) n WHERE fav_contains(filter, n)
		EXCEPT SELECT m.k, m.e FROM model m)
	SELECT concat_ws(', ', 'missing ' || (SELECT array_agg(m)::text FROM missing m),
		'extra ' || (SELECT array_agg(e)::text FROM extra e), (SELECT 'rows' FROM sink LIMIT 1))
$$;
-- How many absent elements of the large keys are reported?
CREATE FUNCTION errors() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM (SELECT k, n FROM (SELECT k, filter FROM sink_fav WHERE k <= 2 OFFSET 0) f, generate_series(1, 9000) n
		WHERE fav_contains(filter, n) EXCEPT SELECT m.k, m.e FROM model m) x
$$;
});

# --------------------------------------------------------------------------------------
# Random statements
# --------------------------------------------------------------------------------------

sub pick { return $_[ rand @_ ]; }

# A key and a range of elements
sub range
{
	my $k = rand() < 0.3 ? 1 + int(rand(2)) : 3 + int(rand(6));
	my $low = 1 + int(rand($k <= 2 ? 8000 : 90));
	my $high = $low + int(rand($k <= 2 ? pick(5, 60, 400) : 10));

	return ($k, $low, $high);
}

sub statement
{
	my ($k, $low, $high) = range();
	my $kind = int(rand(14));

	return "SELECT put($k, $low, $high);" if $kind < 4;
	return "SELECT remove($k, $low, $high);" if $kind < 6;
	return "SELECT tell($k, $low, $high);" if $kind >= 12;
	return "SELECT exclude($k, $low, $high);" if $kind == 6;
	return "INSERT INTO driver SELECT $k, n, n % 2 = 0 FROM generate_series($low, least($high, $low + 9)) n;" if $kind == 7;
	# inserts from within the statement that inserts; what try() gives back is inserted, too
	return "INSERT INTO sink SELECT $k, try($k, n, n % 3 = 0) FROM generate_series($low, least($high, $low + 9)) n; "
	  . "INSERT INTO model SELECT $k, n FROM generate_series($low, least($high, $low + 9)) n;"
	  if $kind == 8;
	# fails in its last row
	return "DO \$d\$ BEGIN INSERT INTO sink SELECT $k, n / (CASE WHEN n = $high THEN 0 ELSE 1 END) FROM generate_series($low, $high) n; "
	  . "EXCEPTION WHEN division_by_zero THEN NULL; END \$d\$;"
	  if $kind == 9;
	return "WITH a AS (INSERT INTO sink VALUES ($k, $low)), b AS (INSERT INTO model VALUES ($k, $low)) SELECT 1 WHERE false;" if $kind == 10;
	return "DO \$d\$ BEGIN " . inner() . " BEGIN " . inner() . pick('', ' RAISE division_by_zero;') . " EXCEPTION WHEN division_by_zero THEN " . inner()
	  . " END; " . inner() . pick('', ' RAISE division_by_zero;') . " EXCEPTION WHEN division_by_zero THEN NULL; END \$d\$;";
}

# A statement of PL/pgSQL
sub inner
{
	my ($k, $low, $high) = range();

	return 'PERFORM ' . pick(qw(put tell tell remove exclude)) . "($k, $low, $high);";
}

sub transaction
{
	my ($depth) = @_;
	my @out;

	foreach (1 .. 1 + int(rand(3)))
	{
		push @out, statement();
		if ($depth < 3 && rand() < 0.3)
		{
			push @out, "SAVEPOINT s$depth;", transaction($depth + 1), pick("ROLLBACK TO s$depth;", "RELEASE s$depth;");
		}
	}
	return @out;
}

# With and without keep: nothing is so old that it would be forgotten.
foreach my $keep ('', ", keep => '30 days'")
{
	my @script = ('SET client_min_messages = error;', 'TRUNCATE model;');
	push @script, q{SELECT fav_detach('sink');}, "SELECT fav_sink('sink', 'k', 'e', error_rate => 0.000001$keep);" if $keep;
	foreach my $n (1 .. $transactions)
	{
		my $level = pick('', '', ' ISOLATION LEVEL REPEATABLE READ', ' ISOLATION LEVEL SERIALIZABLE');
		if (rand() < 0.4)
		{
			push @script, "BEGIN$level;", statement(), "COMMIT;";
		}
		else
		{
			push @script, "BEGIN$level;", transaction(0),
			  pick('COMMIT;', 'COMMIT;', 'COMMIT;', 'ROLLBACK;', "PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p';", "PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p';");
		}
		push @script, 'BEGIN; TRUNCATE sink; TRUNCATE model;' . statement() . pick('COMMIT;', 'ROLLBACK;') if rand() < 0.01;
		push @script, "SELECT 'transaction $n: ' || compare() WHERE compare() <> '';";
	}
	my $file = $node->basedir . '/statements' . ($keep ? '_keep' : '') . '.sql';
	append_to_file($file, join("\n", @script));
	my ($out, $error) = ('', '');
	my $result = $node->psql('postgres', undef, extra_params => [ '-f', $file, '-v', 'ON_ERROR_STOP=1', '-qAt' ], stdout => \$out, stderr => \$error);
	is($result, 0, "statements$keep") or diag($error);
	$out =~ s/^(sink_has\(.*\))?\s*\n//mg;
	$out =~ s/^sink_has\(.*\)$//;
	is($out, '', "after every transaction filters and table agree$keep (FAV_SEED=$seed)") or diag($file);
	my $errors = $node->safe_psql('postgres', 'SELECT errors()');
	cmp_ok($errors, '<=', 2, "almost nothing else is reported$keep ($errors)");
}

# --------------------------------------------------------------------------------------
# MERGE
# --------------------------------------------------------------------------------------

SKIP:
{
	skip 'no MERGE before 15', 2 if $version < 150000;
	$node->safe_psql('postgres', 'MERGE INTO sink USING (VALUES (7, 101)) v(k, e) ON sink.k = v.k AND sink.e = v.e WHEN NOT MATCHED THEN INSERT VALUES (v.k, v.e);'
		. 'INSERT INTO model VALUES (7, 101)');
	is($node->safe_psql('postgres', 'SELECT compare()'), '', 'MERGE inserts');
	my ($result, $out, $error) = $node->psql('postgres', 'MERGE INTO sink USING (VALUES (7, 102)) v(k, e) ON sink.k = v.k AND sink.e = v.e'
		. ' WHEN NOT MATCHED THEN INSERT VALUES (v.k, v.e) WHEN MATCHED THEN DELETE');
	like($error, qr/sink_remove/, 'MERGE that deletes is refused');
}

# --------------------------------------------------------------------------------------
# Many sessions, one user; a standby; a crash
# --------------------------------------------------------------------------------------

$node->safe_psql('postgres', 'TRUNCATE sink; TRUNCATE model');
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;

my $sessions = 6;
my $rounds = 150;
my $script = $node->basedir . '/session.sql';
append_to_file($script, q{
\set low random(1, 8000)
\set high :low + random(0, 60)
BEGIN;
SELECT put(1, :low, :high), put(3 + :client_id, 1 + :low % 80, 3 + :low % 80);
END;
});
$node->command_ok(
	[ 'pgbench', '-n', '-c', $sessions, '-t', $rounds, '-f', $script, $node->connstr('postgres') ],
	"$sessions sessions insert for one user");
is($node->safe_psql('postgres', 'SELECT compare()'), '', 'no update is lost');

# each element is new to exactly one session, with and without keep, at all isolation levels (who
# loses at the higher ones fails and is tried again)
sub make_race
{
	my ($level, $keep) = @_;
	my $race = $node->basedir . '/race.sql';

	$node->safe_psql('postgres', "CREATE TABLE raced(k bigint, e text); SELECT fav_sink('raced', 'k', 'e', error_rate => 0.000001$keep); CREATE TABLE told(e text)");
	unlink $race;
	append_to_file($race, qq{
\\set low random(1, 6000)
BEGIN ISOLATION LEVEL $level;
INSERT INTO told SELECT unnest(raced_add(1, ARRAY(SELECT n::text FROM generate_series(:low, :low + 49) n)));
SAVEPOINT s;
SELECT raced_add(1, ARRAY(SELECT n::text FROM generate_series(:low + 25, :low + 99) n));
ROLLBACK TO s;
END;
});
	return $race;
}

sub check_race
{
	my ($name) = @_;

	is( $node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT e), count(*) > 1000, count(*) FILTER (WHERE NOT fav_contains(filter, e)) FROM told, (SELECT filter FROM raced_fav OFFSET 0) f'),
		'0|t|0', "told twice, and told and not found: none $name");
	$node->safe_psql('postgres', "SET client_min_messages = error; SELECT fav_detach('raced'); DROP TABLE raced, told");
	return;
}

foreach my $keep ('', ", keep => '30 days'")
{
	foreach my $level ('READ COMMITTED', $version >= 150000 ? ('REPEATABLE READ', 'SERIALIZABLE') : ())
	{
		my $race = make_race($level, $keep);
		my @tries = $level eq 'READ COMMITTED' ? () : '--max-tries=10000';

		$node->command_ok([ 'pgbench', '-n', '-c', $sessions, '-t', $rounds, @tries, '-f', $race, $node->connstr('postgres') ], "sessions race at $level$keep");
		check_race("at $level$keep");
	}
}

# at REPEATABLE READ the loser fails and is tried again
if ($version >= 150000)
{
	my $strict = $node->basedir . '/strict.sql';
	append_to_file($strict, q{
\set low random(8001, 8900)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT put(2, :low, :low + 9);
END;
});
	$node->command_ok([ 'pgbench', '-n', '-c', $sessions, '-t', 30, '--max-tries=10000', '-f', $strict, $node->connstr('postgres') ], 'sessions at REPEATABLE READ');
	is($node->safe_psql('postgres', 'SELECT compare()'), '', 'no update is lost at REPEATABLE READ');
}

# keys in opposite orders do not deadlock
my $bulk = $node->basedir . '/bulk.sql';
append_to_file($bulk, q{
INSERT INTO sink SELECT 20 + (CASE WHEN :client_id % 2 = 0 THEN n ELSE 50 - n END), n FROM generate_series(1, 50) n;
});
$node->command_ok([ 'pgbench', '-n', '-c', $sessions, '-t', 40, '-f', $bulk, $node->connstr('postgres') ], 'bulk statements do not deadlock');
unlike(slurp_file($node->logfile), qr/deadlock/, 'no deadlock');
$node->safe_psql('postgres', q{
INSERT INTO model SELECT 20 + n, n FROM generate_series(1, 50) n;
INSERT INTO model SELECT 20 + 50 - n, n FROM generate_series(1, 50) n;
});
is($node->safe_psql('postgres', 'SELECT compare()'), '', 'and lose nothing');

$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', 'SELECT compare()'), '', 'a standby agrees');
$standby->stop;

# a crash in the middle of a transaction, and after one
my ($session_out, $session_error) = ('', '');
my $session = run_in_background(
	[ 'psql', '-XqAt', '-d', $node->connstr('postgres'), '-c', 'BEGIN; INSERT INTO sink SELECT 8, n FROM generate_series(1, 100) n; SELECT pg_sleep(1000)' ],
	\$session_out, \$session_error);
$node->safe_psql('postgres', 'SELECT put(1, 8500, 8700)');
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
my $race = make_race('READ COMMITTED', '');
my ($adders_out, $adders_error) = ('', '');
my $adders = run_in_background([ 'pgbench', '-n', '-c', 2, '-T', 1000, '-f', $race, $node->connstr('postgres') ], \$adders_out, \$adders_error);
$node->poll_query_until('postgres', 'SELECT count(*) > 2000 FROM told');
$node->stop('immediate');
eval { $_->finish } foreach $session, $adders;
$node->start;
is($node->safe_psql('postgres', 'SELECT compare()'), '', 'after a crash');
check_race('in sessions that a crash ends');

# --------------------------------------------------------------------------------------
# Logical replication: a sink on the subscriber
# --------------------------------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE model');
$node->safe_psql('postgres', 'ALTER TABLE model REPLICA IDENTITY FULL');
my $subscriber = start_node('subscriber');
$subscriber->safe_psql('postgres', q{CREATE TABLE model(k int, e bigint); SELECT fav_sink('model', 'k', 'e', error_rate => 0.000001)});
my $from = $node->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$from' PUBLICATION p");
$subscriber->wait_for_subscription_sync($node, 's') if $subscriber->can('wait_for_subscription_sync');
$subscriber->poll_query_until('postgres', q{SELECT NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r')});
$node->safe_psql('postgres', 'SELECT put(1, 8800, 8900); SELECT put(9, 1, 30)');
$node->wait_for_catchup('s');
my $pairs = $node->safe_psql('postgres', 'SELECT array_agg(DISTINCT (k, e)::text) FROM model');
is( $subscriber->safe_psql('postgres', qq{
	SELECT count(*) FROM (SELECT split_part(trim('()' FROM x), ',', 1)::int AS k, split_part(trim('()' FROM x), ',', 2)::bigint AS e FROM unnest('$pairs'::text[]) x) p
	LEFT JOIN model_fav l USING (k) WHERE l.k IS NULL OR NOT fav_contains(l.filter, p.e)}),
	0, 'first copy and changes are in the filters of the subscriber');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM model'), 0, 'which stores no rows');
$node->safe_psql('postgres', 'TRUNCATE model');
$node->safe_psql('postgres', 'INSERT INTO model VALUES (1, 1)');
$node->wait_for_catchup('s');
is($subscriber->safe_psql('postgres', 'SELECT k, fav_count(filter) FROM model_fav'), '1|1', 'TRUNCATE is applied');
$subscriber->stop;
$node->safe_psql('postgres', q{DROP PUBLICATION p; SELECT pg_drop_replication_slot('s')}) ;

# --------------------------------------------------------------------------------------
# Dump and restore
# --------------------------------------------------------------------------------------

$node->safe_psql('postgres', 'TRUNCATE model, sink, driver; SELECT put(1, 1, 5000), put(3, 1, 50), put(4, 1, 7); SELECT remove(1, 100, 160)');
$node->safe_psql('postgres', 'SELECT put(1, 5000 + 40 * n, 5040 + 40 * n) FROM generate_series(1, 5) n');
my $dump = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-Fd', '-f', $dump, $node->connstr('postgres') ], 'dump');
foreach my $jobs (1, 4)
{
	$node->safe_psql('postgres', "CREATE DATABASE restored$jobs");
	$node->command_ok([ 'pg_restore', '-j', $jobs, '-d', $node->connstr("restored$jobs"), $dump ], "restore with $jobs jobs");
	is($node->safe_psql("restored$jobs", 'SELECT compare()'), '', 'restored filters are the same');
	$node->safe_psql("restored$jobs", 'SELECT put(1, 6000, 6500), put(5, 1, 5)');
	is($node->safe_psql("restored$jobs", 'SELECT compare()'), '', 'and go on');
	is($node->safe_psql("restored$jobs", 'SELECT source, active, sink FROM fav_attachments'), 'sink|t|t', 'as a sink');
}
# data only, into what is there
$node->safe_psql('restored1', 'TRUNCATE sink, model');
$node->command_ok([ 'pg_restore', '--data-only', '-d', $node->connstr('restored1'), $dump ], 'restore data only');
is($node->safe_psql('restored1', 'SELECT compare()'), '', 'the same');

log_is_clean($node, 'nothing in the log that a bug would write');
done_testing();
