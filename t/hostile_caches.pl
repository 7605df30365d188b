
# Bytes from outside as fav_cache values.  The test damages valid values in many ways and sends
# them to the server as text, as binary COPY and through the cast from bytea.  All three must
# reject the same values, with an ordinary error.  Every function that takes a cache, found in the
# catalogs, must give a valid value or an ordinary error on the accepted ones; and on the rejected
# ones, which a damaged disk can contain, an answer or an ordinary error.

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
note("seed $seed: set FAV_SEED to see the same values again");

my $node = start_node('hostile');
my $directory = PostgreSQL::Test::Utils::tempdir();

sub any { return $_[ int(rand(@_)) ]; }

my @valid = map { pack('H*', $_) } split /\n/, $node->safe_psql(
	'postgres', q{
SELECT encode(c::bytea, 'hex') FROM (VALUES
	(fav_cache_new(1000)), (fav_cache_new(12000000, -1)), (fav_add(fav_cache_new(1000), 1)),
	(fav_add(fav_cache_new(100), ARRAY(SELECT generate_series(1::bigint, 200)))),
	(fav_add(fav_cache_new(1000), ARRAY(SELECT generate_series(1::bigint, 128)))),
	(fav_add(fav_cache_new(129), ARRAY(SELECT generate_series(1::bigint, 129)))),
	(fav_add(fav_cache_new(200), ARRAY(SELECT generate_series(1::bigint, 5000)))),
	(fav_add(fav_cache_new(6000), ARRAY(SELECT generate_series(1::bigint, 5000)))),
	(fav_add(fav_cache_new(500), ARRAY(SELECT 'post ' || generate_series(1, 400)))),
	(fav_add(fav_cache_new(50), 1, 2))
) AS valid(c)});
is(scalar(@valid), 10, 'valid values to start from');

# Offset and length of the numbers in the header, and numbers to put there.
my @fields = ([ 0, 1 ], [ 1, 1 ], [ 2, 1 ], [ 3, 1 ], [ 4, 4 ], [ 8, 8 ], [ 16, 4 ]);
my @extremes = map { pack('Q<', $_) }
  (0, 1, 2, 5, 6, 127, 128, 129, 193, 194, 1343, 1344, 1345, 12000000, 12000001, 2**31 - 1, 2**31, 2**32 - 1, ~0);

sub set_field
{
	my ($value, $field, $bytes) = @_;
	substr($value, $field->[0], $field->[1]) = substr($bytes, 0, $field->[1]);
	return $value;
}

my @mutations = (
	# bits flipped
	sub {
		my ($value) = @_;
		vec($value, int(rand(8 * length($value))), 1) ^= 1 foreach 1 .. any(1, 1, 2, 8);
		return $value;
	},
	# too short, too long
	sub { return substr($_[0], 0, int(rand(length($_[0])))); },
	sub { return $_[0] . chr(int(rand(256))) x any(1, 8, 192); },
	# a number at its maximum or minimum
	sub { return set_field($_[0], any(@fields), any(@extremes)); },
	# a part is copied to another place, or emptied
	sub {
		my ($value) = @_;
		my $size = any(2, 4, 6, 8, 192);
		my $from = 20 + $size * int(rand(length($value) / $size));
		my $to = 20 + $size * int(rand(length($value) / $size));
		substr($value, $to, $size) = any(substr($value, $from, $size), "\0" x $size)
		  if $from + $size <= length($value) && $to + $size <= length($value);
		return $value;
	},
	# the front of one and the end of another
	sub {
		my ($value) = @_;
		my $other = any(@valid);
		my $at = int(rand(length($value)));
		return substr($value, 0, $at) . ($at < length($other) ? substr($other, $at) : '');
	},
	sub { return join('', map { chr(int(rand(256))) } 1 .. int(rand(100))); });

my @values = @valid;
push @values, any(@mutations)->(any(@valid)) foreach 1 .. 3000 * effort();
foreach my $value (@valid)
{
	foreach my $field (@fields)
	{
		push @values, set_field($value, $field, $_) foreach @extremes;
	}
}

my $rows = '';
foreach my $i (0 .. $#values)
{
	$rows .= "$i\t\\\\x" . unpack('H*', $values[$i]) . "\n";
	append_to_file("$directory/$i",
		"PGCOPY\n\xff\r\n\0" . pack('NNnN', 0, 0, 1, length($values[$i])) . $values[$i] . pack('n', 0xffff));
}
append_to_file("$directory/rows", $rows);
$node->safe_psql(
	'postgres', qq{
CREATE TABLE bytes (i int PRIMARY KEY, b bytea);
COPY bytes FROM '$directory/rows';
CREATE TABLE received (c fav_cache);
CREATE TABLE accepted (i int, c fav_cache);
CREATE TABLE results (what text, state text, n bigint, PRIMARY KEY (what, state));
CREATE FUNCTION note_result(what text, state text) RETURNS void LANGUAGE sql AS
\$\$
	INSERT INTO results VALUES (\$1, \$2, 1)
	ON CONFLICT ON CONSTRAINT results_pkey DO UPDATE SET n = results.n + 1
\$\$;
CREATE FUNCTION enter(i int, b bytea) RETURNS void LANGUAGE plpgsql AS
\$\$
DECLARE
	c fav_cache;
	text_state text := 'ok';
	cast_state text := 'ok';
	copy_state text := 'ok';
BEGIN
	BEGIN
		c := fav_cache_in(textout(b::text)::cstring);
	EXCEPTION WHEN OTHERS THEN text_state := SQLSTATE;
	END;
	BEGIN
		c := b::fav_cache;
	EXCEPTION WHEN OTHERS THEN cast_state := SQLSTATE;
	END;
	BEGIN
		EXECUTE format('COPY received FROM %L (FORMAT binary)', '$directory/' || i);
	EXCEPTION WHEN OTHERS THEN copy_state := SQLSTATE;
	END;
	PERFORM note_result('enter', text_state || ' ' || cast_state || ' ' || copy_state);
	IF cast_state = 'ok' THEN
		INSERT INTO accepted VALUES (i, c);
		IF c::bytea <> b OR fav_cache_send(c) <> b OR textin(fav_cache_out(c)) <> b::text THEN
			PERFORM note_result('enter', 'changed');
		END IF;
	END IF;
END
\$\$;
SELECT count(enter(i, b)) FROM bytes;
});
is( $node->safe_psql('postgres', q{SELECT state FROM results WHERE what = 'enter' ORDER BY 1}),
	"22P02 22P03 22P03\nok ok ok",
	'text, cast and binary COPY accept and refuse the same bytes, with the right errors');
my $accepted = $node->safe_psql('postgres', 'SELECT count(*) FROM accepted');
cmp_ok($accepted, '>', 100, "$accepted of " . scalar(@values) . ' were accepted');

# Every function and operator that takes a cache, with elements of type bigint or text.
my @calls = split /\n/, $node->safe_psql(
	'postgres', q{
WITH sample (type, value) AS (VALUES ('fav_cache'::regtype, 'c'), ('bigint'::regtype, '4711::bigint'), ('bigint[]'::regtype, 'many'), ('text'::regtype, '''4711''::text'), ('text[]'::regtype, 'many::text[]')),
called AS (
	SELECT p.oid, p.proname, p.pronargs, p.prorettype, count(s.value) AS known, string_agg(s.value, ', ' ORDER BY a.n) AS arguments
	FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
		CROSS JOIN unnest(p.proargtypes) WITH ORDINALITY a (type, n) LEFT JOIN sample s ON s.type = a.type
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
	GROUP BY p.oid HAVING bool_or(a.type = 'fav_cache'::regtype)
), expressions AS (
	SELECT format('%I(%s)', proname, arguments) AS expression, prorettype AS type FROM called WHERE known = pronargs
	UNION ALL
	SELECT format('%s %s %s', l.value, oprname, r.value), oprresult
	FROM pg_operator JOIN sample l ON l.type = oprleft JOIN sample r ON r.type = oprright WHERE 'fav_cache'::regtype IN (oprleft, oprright)
)
SELECT CASE WHEN type = 'fav_cache'::regtype THEN format('fav_cache_from_bytea(fav_cache_to_bytea(%s))', expression) ELSE expression END FROM expressions ORDER BY 1});
cmp_ok(scalar(@calls), '>', 40, scalar(@calls) . ' different calls');

my $body = join(
	'',
	map {
		(my $name = $_) =~ s/'/''/g;
		qq{
	BEGIN
		PERFORM $_;
		ran := ran + 1;
	EXCEPTION WHEN OTHERS THEN PERFORM note_result('$name', SQLSTATE);
	END;}
	} @calls);
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION call_all(c fav_cache, many bigint[]) RETURNS bigint LANGUAGE plpgsql AS
\$call_all\$
DECLARE
	ran bigint := 0;
BEGIN
	$body
	RETURN ran;
END
\$call_all\$;
CREATE FUNCTION promises(c fav_cache, many bigint[]) RETURNS boolean LANGUAGE sql AS
\$\$
	SELECT fav_contains(fav_add(c, 4711), 4711) AND NOT fav_contains(fav_del(c, 4711), 4711) AND fav_contains(fav_add(c, many), many[cardinality(many)])
		AND NOT fav_contains_any(fav_del(c, many), many) AND fav_count(fav_add(c, many)) <= (fav_cache_stats(c)).slots
\$\$;
});
my $many = q{(SELECT array_agg(j) FROM generate_series(1::bigint, 150) j)};

# The 129th element allocates memory for the stated capacity, up to 96 MB, so only small ones here.
$node->safe_psql(
	'postgres', q{
CREATE TABLE integers AS SELECT i, c FROM (SELECT i, c, s.* FROM accepted, fav_cache_stats(c) s OFFSET 0) a
WHERE coalesce(kind, 'bigint') = 'bigint' AND capacity < 100000});
my $ran = $node->safe_psql('postgres', "SELECT sum(call_all(c, $many)) FROM integers");
cmp_ok($ran, '>', 3000, "$ran calls gave a result");

# 42804: a pair is of another kind
is($node->safe_psql('postgres', q{SELECT what, state, n FROM results WHERE what <> 'enter' AND state <> '42804'}), '', 'and none an unexpected error');
is($node->safe_psql('postgres', "SELECT count(*) FROM integers WHERE NOT promises(c, $many)"),
	'0', 'what is added is found, what is deleted is not');
is( $node->safe_psql(
		'postgres', qq{SELECT length(fav_add(c, $many)::bytea) FROM accepted, fav_cache_stats(c) s WHERE s.capacity = 12000000 AND s.used = 0 LIMIT 1}),
	20 + 192 * 500000, 'a capacity is used as fav_cache_new would');

# Out of line they answer as in memory, by bucket and as a whole.
$node->safe_psql(
	'postgres', q{
CREATE TABLE stored (i int, c fav_cache);
INSERT INTO stored SELECT i, (c::bytea || '')::fav_cache FROM integers});
is( $node->safe_psql(
		'postgres', qq{
SELECT count(*) FROM stored s JOIN integers a USING (i), generate_series(1, 5000, 1000) j
WHERE fav_contains(s.c, j::bigint) <> fav_contains(('' || a.c::bytea)::fav_cache, j::bigint)
	OR fav_filter(s.c, $many) <> fav_filter(('' || a.c::bytea)::fav_cache, $many)}),
	'0', 'stored they answer as they do in memory');

# Values that no input function has checked, as on a damaged disk.
$node->safe_psql(
	'postgres', q{
SET allow_system_table_mods = on;
UPDATE pg_cast SET castmethod = 'b', castfunc = 0 WHERE castsource = 'bytea'::regtype AND casttarget = 'fav_cache'::regtype;
TRUNCATE results});
$node->safe_psql('postgres', qq{
CREATE TABLE damaged (i int, c fav_cache);
INSERT INTO damaged SELECT i, b::fav_cache FROM bytes
WHERE length(b) < 8 OR get_byte(b, 6) + get_byte(b, 7) = 0;
SELECT sum(call_all(c, $many)) FROM damaged});

# XX001: corrupted; 42804, 22P02: another kind of elements; 22P03: the result is not valid either
is( $node->safe_psql('postgres', q{SELECT DISTINCT state FROM results WHERE state NOT IN ('XX001', '42804', '22P02', '22P03')}),
	'', 'damaged values give an answer or an ordinary error');

is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server is up');
log_is_clean($node, 'the log shows ordinary errors only');
figures(scalar(@values) . " mutated caches, $accepted accepted, $ran calls on these");
$node->stop;
done_testing();
