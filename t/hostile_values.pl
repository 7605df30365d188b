
# Bytes from outside.  The test damages valid values in many ways, crafts others, and sends all
# of them to the server as text, as binary COPY and through the cast from bytea.  All three must
# reject the same values, with an ordinary error.  On accepted values the test calls every
# function of the extension, found in the catalogs so that none is forgotten.  The result must be
# a valid value or an ordinary error.

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

my $node = start_node('hostile', conf => "work_mem = '8MB'\n");
my $directory = PostgreSQL::Test::Utils::tempdir();

# ---------------------------------------------------------------------------------
# Values to start from
# ---------------------------------------------------------------------------------

my @valid = map { pack('H*', $_) } split /\n/, $node->safe_psql(
	'postgres', q{
SELECT encode(f::bytea, 'hex') FROM (VALUES
	('\x01'), (fav_new()), (fav_new(7, 0.2, 1, 99)), (fav_new(100000, 0.001, 31, -1)),
	(fav_add(fav_new(), 1)), (fav_add(fav_new(), ARRAY['a', 'b', 'c'])),
	(fav_add(fav_new(), (SELECT array_agg(i) FROM generate_series(1::bigint, 128) i))),
	(fav_add(fav_new(130), (SELECT array_agg(i) FROM generate_series(1::bigint, 150) i))),
	(fav_add(fav_new(130), (SELECT array_agg(i) FROM generate_series(1::bigint, 900) i))),
	(fav_add(fav_new(130, 0.1, 1), (SELECT array_agg(i) FROM generate_series(1::bigint, 700) i))),
	(fav_add(fav_new(130, 0.001, 31), (SELECT array_agg(i) FROM generate_series(1::bigint, 400) i))),
	(fav_del(fav_add(fav_new(500), (SELECT array_agg(i) FROM generate_series(1::bigint, 1200) i)),
		(SELECT array_agg(i) FROM generate_series(1::bigint, 800) i))),
	((SELECT fav_agg(i) FROM generate_series(1::bigint, 1000) i)),
	((SELECT fav_agg(i, 0.001) FROM generate_series(1::bigint, 300) i) ||
		(SELECT fav_agg(i, 0.1) FROM generate_series(200::bigint, 600) i)),
	((SELECT fav_agg(i::text) FROM generate_series(1, 300) i)),
	((SELECT fav_agg(md5(i::text)::uuid) FROM generate_series(1, 300) i)),
	((SELECT fav_agg(int4send(i)) FROM generate_series(1, 300) i)),
	((SELECT fav_agg(i, i + 1) FROM generate_series(1::bigint, 300) i)),
	(fav_add(fav_add(NULL, 1, 2), 3, 4)), (fav_exclude(NULL, 1)), (fav_exclude(fav_add(NULL, ARRAY[1, 2, 3]), ARRAY[3, 4])),
	((SELECT fav_exclude(fav_agg(i), array_agg(i) FILTER (WHERE i % 3 = 0)) FROM generate_series(1::bigint, 400) i)),
	(fav_new(keep => 7)), (fav_add_at(fav_add_at(fav_new(keep => 7), ARRAY[1, 2, 3]::bigint[], -1), ARRAY[3, 4]::bigint[], 2)),
	(fav_add_at(fav_add_at(fav_new(100, keep => 30), ARRAY(SELECT generate_series(1, 300)), 1), ARRAY(SELECT generate_series(200, 500)), 5)),
	(fav_del(fav_add_at(fav_add_at(fav_new(100, keep => 1), ARRAY(SELECT generate_series(1, 300)), 1), ARRAY(SELECT generate_series(200, 500)), 2),
		ARRAY(SELECT generate_series(150, 250))))
) AS valid(f)});
is(scalar(@valid), 26, 'valid values to start from');

sub any { return $_[ int(rand(@_)) ]; }

sub random_bytes
{
	my ($length) = @_;
	return join('', map { chr(int(rand(256))) } 1 .. $length);
}

sub random_hash { return (int(rand(2**32)) << 32) | int(rand(2**32)); }

# Offset and length of the numbers in the header and in the first entries of the directory. Those
# from offset 8 on follow the recent hashes.
my @fields = (
	[ 0, 1 ], [ 1, 1 ], [ 2, 1 ], [ 3, 1 ], [ 4, 2 ], [ 6, 1 ], [ 7, 1 ], [ 8, 8 ], [ 16, 8 ],
	[ 24, 8 ], [ 32, 8 ], [ 40, 4 ], [ 44, 4 ], [ 48, 1 ], [ 49, 1 ], [ 50, 2 ],
	[ 52, 8 ], [ 60, 8 ], [ 68, 4 ], [ 72, 1 ], [ 76, 8 ], [ 84, 8 ]);

sub set_field
{
	my ($value, $field, $bytes) = @_;
	my ($at, $size) = @$field;
	my $recent = length($value) >= 6 ? unpack('v', substr($value, 4, 2)) : 0;

	$at += 8 * $recent if $at >= 8 && $recent <= 128;
	substr($value, $at, $size) = substr($bytes, 0, $size) if $at + $size <= length($value);
	return $value;
}

my @extremes = (
	pack('Q<', 0), pack('Q<', 1), "\xff" x 8, "\xfe" . "\xff" x 7, "\xff" x 7 . "\x7f",
	pack('Q<', 0x80), pack('Q<', 0x7fff), pack('Q<', 0x8000), pack('Q<', 0x7fffffff),
	pack('Q<', 0x80000000), pack('Q<', 0xffffffff), pack('Q<', 0x3fffffff), pack('Q<', 33),
	pack('Q<', 32), pack('Q<', 31), pack('Q<', 129), pack('Q<', 128),
	pack('d<', 'inf'), pack('d<', 'nan'), pack('d<', 1.0), pack('d<', 5e-324), pack('d<', -0.1),
	pack('d<', 1e-300), pack('d<', 1e-9));

my @mutations = (
	# bits flipped, mostly in the head
	sub {
		my ($value) = @_;
		foreach (1 .. any(1, 1, 1, 2, 8))
		{
			my $end = rand() < 0.7 && length($value) > 200 ? 200 : length($value);
			vec($value, int(rand(8 * $end)), 1) ^= 1;
		}
		return $value;
	},
	# too short, too long
	sub { return substr($_[0], 0, int(rand(length($_[0])))); },
	sub { return $_[0] . random_bytes(any(1, 8, 24, 64, 512)); },
	# swap two words
	sub {
		my ($value) = @_;
		my $size = any(1, 2, 4, 8);
		my ($a, $b) = map { $size * int(rand(int(length($value) / $size))) } 1, 2;
		my $word = substr($value, $a, $size);
		substr($value, $a, $size) = substr($value, $b, $size);
		substr($value, $b, $size) = $word;
		return $value;
	},
	# set a number to its maximum or minimum
	sub {
		my ($value) = @_;
		$value = set_field($value, any(@fields), any(@extremes)) foreach 1 .. any(1, 1, 2);
		return $value;
	},
	# no slices, or more than there are
	sub {
		my ($value) = @_;
		return $value if length($value) < 4;
		substr($value, 3, 1) = chr(any(0, 0, 1, 2, 32, 33, 255));
		return rand() < 0.5 ? substr($value, 0, 44) : $value;
	},
	# the front of one and the end of another
	sub {
		my ($value) = @_;
		my $other = any(@valid);
		my $at = int(rand(length($value)));
		return substr($value, 0, $at) . ($at < length($other) ? substr($other, $at) : '');
	},
	sub { return random_bytes(int(rand(300))); },
	sub { return "\x01\x00" . chr(any(1, 7, 31)) . random_bytes(41); });

# A value with a valid structure and random contents: bits that no element set, marks without
# collisions, random counts, any k and any limit.
sub made_up
{
	my ($blocks) = @_;
	my $region_size = any(1, 2, 7, 7, 31, 1 + int(rand(31)));
	my $block = ($region_size + 1) * 32;
	my (@slices, %recent, %deleted);
	foreach (1 .. any(0, 1, 1, 2, 3, 32))
	{
		my $nblocks = any(1, 1, 2, 1 + int(rand($blocks)));
		my $fill = rand();
		my $bytes =
			$fill < 0.1 ? "\0" x ($nblocks * $block)
		  : $fill < 0.2 ? "\xff" x ($nblocks * $block)
		  : $fill < 0.6 ? random_bytes(32) x ($nblocks * ($region_size + 1))
		  :               random_bytes($block) x $nblocks;
		my $bits = $nblocks * $region_size * 256;
		push @slices, { blocks => $bytes, k => any(1, 5, 32, 1 + int(rand(32))),
			bits_limit => any(1, $bits, 1 + int(rand($bits))) };
		last if @slices * $nblocks * $block > 200000;
	}
	$recent{ any(0, ~0, random_hash()) } = 1 foreach 1 .. any(0, 1, 127, 128);
	$deleted{ any(0, ~0, random_hash(), random_hash()) } = 1 foreach 1 .. any(0, 1, 100, 128, 255, 256, 600);
	delete @deleted{ keys %recent };
	return build_value(
		flags => %deleted ? any(0, 1) : 0,
		kind => any(1, 1, 1, 2, 3, 4, 5),
		region_size => $region_size,
		slices => \@slices,
		recent => [ keys %recent ],
		deleted => [ @slices || keys %deleted > 128 ? sort { $a <=> $b } keys %deleted : keys %deleted ],
		elements => @slices ? any(0, 1, 1000, 4286578688, int(rand(100000))) : 0,
		capacity => any(1, 2, 1000, 1000, 100000, 2**63, ~0, 2**34),
		seed => any(0, ~0, random_hash()),
		error_rate => any(1, 0.01, 1e-9, 1e-300, 5e-324, rand() + 1e-9));
}

my @values;
my $rounds = 5000 * effort();
push @values, any(@mutations)->(any(@valid)) foreach 1 .. $rounds;
push @values, made_up(4) foreach 1 .. 400 * effort();
push @values, made_up(300) foreach 1 .. 40 * effort();

# each field of each value at each extreme
foreach my $value (@valid[ 0, 7, 10 ])
{
	foreach my $field (@fields)
	{
		push @values, set_field($value, $field, $_) foreach @extremes;
	}
}

# The first flush allocates memory for the stated capacity, up to 511 MB, as after fav_new. The
# test tries that once, below.
@values = grep {
	my $at = length($_) >= 8 ? 16 + 8 * unpack('v', substr($_, 4, 2)) : 0;
	$at += 8 + 5 * ord(substr($_, 7, 1)) if $at && ord(substr($_, 1, 1)) & 2;
	my $capacity = length($_) >= $at + 8 ? unpack('Q<', substr($_, $at, 8)) : 0;
	$capacity < 1000000 || $capacity > 2**33
} @values;

# ---------------------------------------------------------------------------------
# Input as text, binary and cast
# ---------------------------------------------------------------------------------

my $rows = '';
foreach my $i (0 .. $#values)
{
	$rows .= "$i\t\\\\x" . unpack('H*', $values[$i]) . "\n";
	my $binary = "PGCOPY\n\xff\r\n\0" . pack('NNnN', 0, 0, 1, length($values[$i])) . $values[$i] . pack('n', 0xffff);
	append_to_file("$directory/$i", $binary);
}
append_to_file("$directory/rows", $rows);
$node->safe_psql(
	'postgres', qq{
CREATE TABLE bytes (i int PRIMARY KEY, b bytea);
COPY bytes FROM '$directory/rows';
CREATE TABLE received (f fav);
CREATE TABLE accepted (i int, f fav);
CREATE TABLE results (what text, state text, n bigint, PRIMARY KEY (what, state));

CREATE FUNCTION note_result(what text, state text) RETURNS void LANGUAGE sql AS
\$\$
	INSERT INTO results VALUES (\$1, \$2, 1)
	ON CONFLICT ON CONSTRAINT results_pkey DO UPDATE SET n = results.n + 1
\$\$;

CREATE FUNCTION enter(i int, b bytea) RETURNS void LANGUAGE plpgsql AS
\$\$
DECLARE
	f fav;
	text_state text := 'ok';
	cast_state text := 'ok';
	copy_state text := 'ok';
BEGIN
	BEGIN
		f := fav_in(textout(b::text)::cstring);
	EXCEPTION WHEN OTHERS THEN text_state := SQLSTATE;
	END;
	BEGIN
		f := b::fav;
	EXCEPTION WHEN OTHERS THEN cast_state := SQLSTATE;
	END;
	BEGIN
		EXECUTE format('COPY received FROM %L (FORMAT binary)', '$directory/' || i);
	EXCEPTION WHEN OTHERS THEN copy_state := SQLSTATE;
	END;
	PERFORM note_result('enter', text_state || ' ' || cast_state || ' ' || copy_state);
	IF cast_state = 'ok' THEN
		INSERT INTO accepted VALUES (i, f);
		IF f::bytea <> b OR fav_send(f) <> b OR textin(fav_out(f)) <> b::text THEN
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
my ($accepted, $large) = split /\|/,
  $node->safe_psql('postgres', 'SELECT count(*), count(*) FILTER (WHERE length(f::bytea) > 32768) FROM accepted');
cmp_ok($accepted, '>', 500, "$accepted of " . scalar(@values) . ' were accepted');
cmp_ok($large, '>', 5, "$large of these are read in parts");

# ---------------------------------------------------------------------------------
# Every function on the accepted values
# ---------------------------------------------------------------------------------

# Only calls that fit the kind of a filter; all others are errors (sql/kinds.sql).
my %element = (
	bigint => '4711',
	text => q{'4711'::text},
	uuid => q{md5('4711')::uuid},
	bytea => q{'\x4711'::bytea},
	pair => '47, 11');
my %calls = map { $_ => [ calls_on_filter($node, $_) ] } keys %element;
my @calls = map { @$_ } values %calls;
cmp_ok(scalar(@calls), '>', 150, scalar(@calls) . ' different calls');
my %names = map { $_ => 1 } map { /(fav_\w+)\(/g } @calls;
foreach my $name (
	qw(fav_add fav_add_at fav_expire fav_del fav_exclude fav_contains fav_contains_any fav_contains_all fav_filter fav_count fav_stats
	fav_slices fav_needs_rebuild fav_union fav_union_agg fav_out fav_send fav_eq fav_cmp fav_hash fav_stack))
{
	ok($names{$name}, "$name is among them");
}

foreach my $kind (sort keys %element)
{
	my $body = '';
	foreach my $call (@{ $calls{$kind} })
	{
		(my $name = "$kind: $call") =~ s/'/''/g;
		$body .= qq{
	BEGIN
		PERFORM $call;
		ran := ran + 1;
	EXCEPTION WHEN OTHERS THEN PERFORM note_result('$name', SQLSTATE);
	END;};
	}
	my $e = $element{$kind};
	$node->safe_psql(
		'postgres', qq{
CREATE FUNCTION call_all_$kind(f fav, many bigint[]) RETURNS bigint LANGUAGE plpgsql AS
\$call_all\$
DECLARE
	ran bigint := 0;
BEGIN
	$body
	-- what is promised to hold of any filter
	BEGIN
		IF NOT fav_contains(fav_add(f, $e), $e) OR NOT fav_contains(fav_add(fav_exclude(f, $e), $e), $e) THEN
			PERFORM note_result('added', 'lost');
		END IF;
		IF fav_contains(fav_del(f, $e), $e) OR fav_contains(fav_del(fav_add(f, $e), $e), $e) THEN
			PERFORM note_result('deleted', 'found');
		END IF;
		IF fav_contains(fav_exclude(f, $e), $e) OR fav_contains(fav_exclude(fav_add(f, $e), $e), $e) THEN
			PERFORM note_result('excluded', 'found');
		END IF;
	EXCEPTION WHEN OTHERS THEN PERFORM note_result('promises', SQLSTATE);
	END;
	RETURN ran;
END
\$call_all\$;
});
}
# An empty filter can be probed for every kind.
$node->safe_psql(
	'postgres', q{
CREATE TABLE of_kind AS SELECT i, f, coalesce((fav_stats(f)).kind, 'bigint') AS kind FROM accepted;
INSERT INTO of_kind SELECT i, f, k FROM accepted, unnest(ARRAY['text', 'uuid', 'bytea', 'pair']) k WHERE (fav_stats(f)).kind IS NULL AND i % 10 = 0});
my $many = q{(SELECT array_agg(j) FROM generate_series(1::bigint, 150) j)};
my $ran = 0;
foreach my $kind (sort keys %element)
{
	my $of_kind = $node->safe_psql('postgres', "SELECT sum(call_all_$kind(f, $many)) FROM of_kind WHERE kind = '$kind'");
	cmp_ok($of_kind || 0, '>', 500, "$kind: calls gave a result");
	$ran += $of_kind || 0;
}
cmp_ok($ran, '>', 10000, "$ran calls gave a result");

# Editing a variable in place (since PostgreSQL 18) gives the same values and errors as editing
# copies.  A crafted value may reach a limit in the middle of an array; then the variable becomes
# unusable.
$node->safe_psql(
	'postgres', q{
CREATE FUNCTION in_place(f fav) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	g fav := f;
	f_state text;
	g_state text;
BEGIN
	FOR i IN 1..200 LOOP
		f_state := '';
		g_state := '';
		BEGIN
			CASE i % 8
				WHEN 0 THEN f := fav_del(f, i - 20);
				WHEN 1 THEN f := fav_exclude(f, i);
				WHEN 2 THEN f := fav_add(f, ARRAY[i, 2 * i, 3 * i, NULL]);
				ELSE f := fav_add(f, i);
			END CASE;
		EXCEPTION WHEN OTHERS THEN f_state := SQLSTATE;
		END;
		BEGIN
			CASE i % 8
				WHEN 0 THEN g := fav_del(fav_union(g, NULL), i - 20);
				WHEN 1 THEN g := fav_exclude(fav_union(g, NULL), i);
				WHEN 2 THEN g := fav_add(fav_union(g, NULL), ARRAY[i, 2 * i, 3 * i, NULL]);
				ELSE g := fav_add(fav_union(g, NULL), i);
			END CASE;
		EXCEPTION WHEN OTHERS THEN g_state := SQLSTATE;
		END;
		IF f_state <> g_state THEN
			RETURN format('%s, %s when copied', f_state, g_state);
		END IF;
		EXIT WHEN f_state <> '';
	END LOOP;
	BEGIN
		RETURN CASE WHEN f IS DISTINCT FROM g THEN 'other bytes' ELSE 'same' END;
	EXCEPTION WHEN object_not_in_prerequisite_state THEN
		RETURN CASE f_state WHEN '54000' THEN 'unusable' ELSE 'unusable after ' || f_state END;
	END;
END
$$});
is( $node->safe_psql(
		'postgres',
		q{SELECT in_place(f), count(*) > 100 FROM of_kind WHERE kind = 'bigint' AND in_place(f) <> 'unusable' GROUP BY 1}),
	'same|t',
	'changes in place and to copies give the same');

# 54000: a limit would be exceeded; 22023: no union with a filter of other parameters, no period for a filter that
# is not dated; 55000: an ordinary add to a dated filter that knows no period
is( $node->safe_psql(
		'postgres', q{SELECT what, state, n FROM results WHERE what <> 'enter' AND state NOT IN ('54000', '22023', '55000')}),
	'', 'none gave anything but a valid result or an ordinary error');

# The same values out of line, read block by block and as a whole, with one probe and many.
foreach my $storage ('EXTERNAL', 'EXTENDED')
{
	$node->safe_psql(
		'postgres', qq{
DROP TABLE IF EXISTS stored;
CREATE TABLE stored (i int, f fav);
ALTER TABLE stored ALTER f SET STORAGE $storage;
INSERT INTO stored SELECT i, (f::bytea || '')::fav FROM of_kind WHERE kind = 'bigint';
});
	is( $node->safe_psql(
			'postgres', qq{
SET max_parallel_workers_per_gather = 0;
SELECT count(*) FROM stored s JOIN accepted a USING (i), generate_series(1, 3) j
WHERE fav_contains(s.f, j::bigint) <> fav_contains(('' || a.f::bytea)::fav, j::bigint)
	OR fav_filter(s.f, $many) <> fav_filter(('' || a.f::bytea)::fav, $many)}),
		'0', "stored as $storage they answer as they do in memory");
}

# ---------------------------------------------------------------------------------
# Bytes that request much memory
# ---------------------------------------------------------------------------------

# 44 bytes and 128 hashes that state a capacity of 20 million, as fav_new(20000000) does.
my $hungry = unpack('H*', build_value(capacity => 20000000, recent => [ 1 .. 128 ]));
is( $node->safe_psql(
		'postgres', qq{SELECT length(fav_add('\\x$hungry'::fav, 1)::bytea) BETWEEN 20000000 AND 60000000}),
	't', 'a capacity is used as fav_new would');
foreach my $capacity (2**33, 2**40, 2**63, ~0)
{
	$hungry = unpack('H*', build_value(capacity => $capacity, recent => [ 1 .. 128 ]));
	my ($status, $out, $error) = $node->psql('postgres', "\\set VERBOSITY sqlstate\nSELECT fav_count(fav_add('\\x$hungry'::fav, 1))");
	like($error, qr/ERROR:  (54000|22P02)/, "a capacity of $capacity is refused");
}

# Counts of missing slices, hashes and blocks cause no allocation.
foreach my $value (
	build_value(nslices => 32), build_value(nrecent => 128),
	build_value(ndeleted => 2**31, nslices => 1),
	build_value(slices => [ { blocks => "\0" x 256, nblocks => 2**32 - 1 } ]))
{
	my $hex = unpack('H*', $value);
	my ($status, $out, $error) = $node->psql('postgres', "\\set VERBOSITY sqlstate\nSELECT '\\x$hex'::fav");
	like($error, qr/ERROR:  22P02/, 'a count of what is not there is refused');
}

# Text that is not hexadecimal.
foreach my $text ('', '\\\\', '\\\\x', '\\\\x0', '\\\\xzz', 'x', '\\\\x' . '0' x 87, '\\\\x' . 'g' x 88, "\x{c3}\x{a9}")
{
	my ($status, $out, $error) = $node->psql('postgres', "\\set VERBOSITY sqlstate\nSELECT E'$text'::fav");
	like($error, qr/ERROR:  22P02/, "text \"" . substr($text, 0, 8) . '" is refused');
}

is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server is up');
log_is_clean($node, 'the log shows ordinary errors only');
figures(scalar(@values) . " mutated values, $accepted accepted, $ran calls on these");
$node->stop;
done_testing();
