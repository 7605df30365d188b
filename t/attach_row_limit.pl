
# Statements that end at a row limit, as SPI_execute does for PL/Perl and PL/Python: rows are
# written and their row triggers fire, but no statement trigger fires.  The filters agree with
# the source at commit.
#
# Needs a compiler, or PL/Perl.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $directory = PostgreSQL::Test::Utils::tempdir();

# A function run_limited(query, rows) that returns the number of rows of the query.
my $module = q{
#include "postgres.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(run_limited);

Datum
run_limited(PG_FUNCTION_ARGS)
{
	uint64		rows;

	SPI_connect();
	if (SPI_execute(text_to_cstring(PG_GETARG_TEXT_PP(0)), false, PG_GETARG_INT32(1)) < 0)
		elog(ERROR, "SPI_execute failed");
	rows = SPI_processed;
	SPI_finish();
	PG_RETURN_INT64((int64) rows);
}
};

sub compile
{
	my ($out, $error) = ('', '');
	my $pg_config = sub { chomp(my $line = `pg_config --$_[0]`); return $line };

	append_to_file("$directory/run_limited.c", $module);
	return IPC::Run::run(
		[
			'cc', '-shared', '-fPIC', '-I' . $pg_config->('includedir-server'), '-o', "$directory/run_limited.so",
			"$directory/run_limited.c"
		],
		'>', \$out, '2>', \$error);
}

my $node = start_node('attach_row_limit', conf => "max_prepared_transactions = 10\n");
my %languages;
$languages{C} = "CREATE FUNCTION run_limited(text, int) RETURNS bigint LANGUAGE C AS '$directory/run_limited', 'run_limited'"
  if eval { compile() };
$languages{'PL/Perl'} = q{
CREATE EXTENSION plperl;
CREATE FUNCTION run_limited(text, int) RETURNS bigint LANGUAGE plperl AS 'return spi_exec_query($_[0], $_[1])->{processed}'}
  if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'plperl'});
if (!%languages)
{
	$node->stop;
	plan skip_all => 'neither a compiler nor PL/Perl';
}

foreach my $language (sort keys %languages)
{
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS h, h_fav_levels CASCADE; DROP FUNCTION IF EXISTS run_limited(text, int)');
	$node->safe_psql(
		'postgres', qq{
$languages{$language};
CREATE TABLE h (u int, p int, note text, PRIMARY KEY (u, p));
CREATE TABLE candidates AS SELECT 1 + i % 2 AS u, i AS p FROM generate_series(1, 1000) i});
	$node->safe_psql('postgres', q{SELECT fav_attach('h', 'u', 'p')});

	# The query returns this many rows, or writes one more than it returns.
	my $check = sub {
		my ($what, $sql, $given) = @_;

		is($node->safe_psql('postgres', $sql), $given, "$language: $what");
		is( $node->safe_psql(
				'postgres', q{
SELECT (SELECT count(*) FROM h) = elements, missing, stale FROM fav_verify('h');
SELECT count(*) FROM generate_series(1, 3000) p, h_fav_levels l
	WHERE fav_probe(l.base, l.middle, l.recent, p) <> EXISTS (SELECT FROM h WHERE h.u = l.u AND h.p = p.p);
SELECT count(*) FROM generate_series(1, 10) u, generate_series(1, 3000) p
	WHERE h_has(u, p) <> EXISTS (SELECT FROM h WHERE h.u = u.u AND h.p = p.p)}),
			"t|0|0\n0\n0", "$language: $what, filters and source agree");
	};
	$check->('INSERT', q{SELECT run_limited('INSERT INTO h SELECT u, p FROM candidates ORDER BY p RETURNING p', 5)}, '5');
	cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM h'), '<=', 6, "$language: it was cut short");
	$node->safe_psql('postgres', 'INSERT INTO h SELECT u, p FROM candidates WHERE p BETWEEN 21 AND 120');
	$check->('UPDATE of elements', q{SELECT run_limited('UPDATE h SET p = p + 1000 WHERE p > 20 RETURNING p', 7)}, '7');
	$check->('UPDATE of keys', q{SELECT run_limited('UPDATE h SET u = 3 WHERE p < 100 RETURNING p', 7)}, '7');
	$check->('DELETE', q{SELECT run_limited('DELETE FROM h WHERE p > 20 RETURNING p', 7)}, '7');
	$check->(
		'ON CONFLICT',
		q{SELECT run_limited('INSERT INTO h SELECT u, p FROM candidates ORDER BY p ON CONFLICT (u, p) DO UPDATE SET p = h.p + 2000 RETURNING p', 40)},
		'40');
	$check->(
		'several in a transaction', q{
BEGIN;
SELECT run_limited('INSERT INTO h SELECT 4, p FROM candidates ORDER BY p RETURNING p', 5);
SAVEPOINT a;
SELECT run_limited('DELETE FROM h WHERE u = 4 RETURNING p', 2);
ROLLBACK TO a;
SELECT run_limited('UPDATE h SET u = 5 WHERE u = 4 RETURNING p', 2);
INSERT INTO h VALUES (6, 6);
COMMIT}, "5\n2\n2");
	$check->(
		'a prepared transaction', q{
BEGIN;
SELECT run_limited('INSERT INTO h SELECT 7, p FROM candidates ORDER BY p RETURNING p', 5);
PREPARE TRANSACTION 'limited';
COMMIT PREPARED 'limited'}, '5');
	$check->(
		'a statement within one that is cut short', q{
SELECT run_limited($$INSERT INTO h SELECT 8, run_limited('INSERT INTO h SELECT 9, max(p) + 1 FROM h RETURNING p', 1) + c.p
	FROM candidates c ORDER BY c.p RETURNING p$$, 3)}, '3');
	$node->safe_psql('postgres', 'DROP TABLE candidates');
}

log_is_clean($node, 'a clean log');
$node->stop;
done_testing();
