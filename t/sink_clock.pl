
# Sinks that forget, under a clock that jumps both ways, compared with a model.
#
# A library that is preloaded into the server adds an offset from a file to its clock.  Statements
# and jumps are random.
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

my $folder = PostgreSQL::Test::Utils::tempdir;
my $clock = "$folder/clock";
append_to_file("$folder/clock.c", <<'C');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int64_t *offset;	/* in seconds */

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	static int	(*original) (struct timeval *, void *) = NULL;
	int			result;

	if (original == NULL)
	{
		int			file = open(getenv("FAV_CLOCK"), O_RDONLY);

		offset = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, file, 0);
		close(file);
		original = (int (*) (struct timeval *, void *)) dlsym(RTLD_NEXT, "gettimeofday");
	}
	result = original(now, zone);
	if (offset != MAP_FAILED)
		now->tv_sec += *offset;
	return result;
}
C
plan skip_all => 'no compiler for the library that moves the clock'
  if system('cc', '-shared', '-fPIC', '-o', "$folder/clock.so", "$folder/clock.c", '-ldl') != 0;

my $seed = $ENV{FAV_SEED} || (time ^ $$) % 1_000_000_000;
my $steps = 400 * effort();
srand($seed);
note("FAV_SEED=$seed");

my $offset = 0;

sub set_clock
{
	($offset) = @_;
	open(my $file, '+<', $clock) or die "$clock: $!";
	syswrite($file, pack('q', $offset));
	close($file);
	return;
}

append_to_file($clock, "\0" x 8);
my $node;
{
	local $ENV{LD_PRELOAD} = "$folder/clock.so";
	local $ENV{FAV_CLOCK} = $clock;
	$node = start_node('clock');
}

# Periods of an hour.
my $hour = 3600;
my $keep = 64;
my $late = 8;
$node->safe_psql('postgres', q{
SET client_min_messages = warning;
CREATE TABLE seen(k int, e bigint);
SELECT fav_sink('seen', 'k', 'e', keep => '64 hours', error_rate => 0.000001);
});

sub now
{
	return $node->safe_psql('postgres', "SELECT fav_period($hour)");
}

# What the filter of a key of a sink reports now, what its levels do for whoever knows no clock, and
# where its function _has, of which a part is asked, does not agree with the filter.
sub make_reported
{
	my ($sink) = @_;

	$node->safe_psql('postgres', qq{
CREATE FUNCTION reported_$sink(OUT k int, OUT now bigint[], OUT by_levels bigint[], OUT differs bigint[]) RETURNS SETOF record LANGUAGE sql AS \$\$
	SELECT f.k, array_agg(n) FILTER (WHERE fav_contains(f.filter, n)), array_agg(n) FILTER (WHERE fav_contains(l.stack, n)),
		array_agg(n) FILTER (WHERE CASE WHEN n % 8 = 1 THEN ${sink}_has(f.k, n) <> fav_contains(f.filter, n) END)
	FROM (SELECT k, filter FROM ${sink}_fav OFFSET 0) f JOIN (SELECT k, fav_stack(base, middle, recent) AS stack FROM ${sink}_fav_levels OFFSET 0) l USING (k),
		generate_series(1, 4000) n GROUP BY f.k
\$\$;
});
	return;
}

make_reported('seen');

set_clock(1000 * $hour);
my $begin = now();
set_clock(0);
is($begin, now() + 1000, 'the clock obeys');

# --------------------------------------------------------------------------------------
# One jump
# --------------------------------------------------------------------------------------

$node->safe_psql('postgres', 'INSERT INTO seen SELECT k, n FROM generate_series(1, 2) k, generate_series(1, 1000 * (k - 1)) n');
set_clock(1000 * $hour);
$node->safe_psql('postgres', 'INSERT INTO seen SELECT k, 1001 FROM generate_series(1, 2) k');
set_clock(0);
$node->safe_psql('postgres', 'INSERT INTO seen SELECT k, 1001 + n FROM generate_series(1, 2) k, generate_series(1, 500 * k) n');
my $found = 'SELECT count(*) FROM seen_fav, generate_series(1001, 1000 + 500 * k) n WHERE fav_contains(filter, n)';
is($node->safe_psql('postgres', $found), 1500, 'what is inserted after a jump is found');
set_clock(60 * $hour);
is($node->safe_psql('postgres', $found), 1500, 'and is later');
my ($result, $out, $error) = $node->psql('postgres', 'INSERT INTO seen SELECT 1, 3000 + n FROM generate_series(1, 3) n; INSERT INTO seen VALUES (2, 3000)');
like($error, qr/WARNING:  a filter of sink "seen" is \d+ seconds ahead of the clock/, 'there is a warning');
is(scalar(() = $error =~ /WARNING/g), 1, 'once in a session');
$node->safe_psql('postgres', q{SELECT seen_remove(k, ARRAY[1001, 1400, 3000]) FROM generate_series(1, 2) k});
is($node->safe_psql('postgres', 'SELECT count(*) FROM reported_seen(), unnest(ARRAY[1001, 1400, 3000]) n WHERE n = ANY (now) OR n = ANY (by_levels)'),
	0, 'what is removed is not found');

# what is too old, but still there, is removed for those who know no clock
set_clock(2000 * $hour);
$node->safe_psql('postgres', 'INSERT INTO seen SELECT 3, n FROM generate_series(1, 2000) n');
set_clock(2100 * $hour);
$node->safe_psql('postgres', q{SELECT seen_remove(3, ARRAY[1, 2, 3])});
is($node->safe_psql('postgres', 'SELECT array_length(now, 1), by_levels[1] FROM reported_seen() WHERE k = 3'), '|4', 'elements that are too old are removed');
set_clock(2010 * $hour);
is($node->safe_psql('postgres', 'SELECT now[1] FROM reported_seen() WHERE k = 3'), '4', 'whatever the clock says later');

# removing many, which writes base, forgets nothing else
set_clock(0);
$node->safe_psql('postgres', 'INSERT INTO seen SELECT 5, n FROM generate_series(1, 2000) n');
set_clock(1000 * $hour);
$node->safe_psql('postgres', 'SELECT seen_remove(5, array_agg(n)) FROM generate_series(1, 200) n');
set_clock(0);
is($node->safe_psql('postgres', 'SELECT array_length(now, 1), now[1] FROM reported_seen() WHERE k = 5'), '1800|201',
	'what is removed while the clock is ahead takes nothing else along');

# --------------------------------------------------------------------------------------
# Rows with a time of their own: the clock limits it, but does not replace it
# --------------------------------------------------------------------------------------

set_clock(0);
$node->safe_psql('postgres', q{
SET client_min_messages = warning;
CREATE TABLE late(k int, e bigint, at timestamptz);
SELECT fav_sink('late', 'k', 'e', keep => '64 hours', at => 'at', error_rate => 0.000001);
CREATE TABLE start AS SELECT now() AS at;
INSERT INTO late SELECT k, n, s.at - n % 60 * interval '1 hour' FROM start s, generate_series(1, 2) k, generate_series(1, k * k * 100) n;
});
set_clock(1000 * $hour);
($result, $out, $error) = $node->psql('postgres', q{INSERT INTO late SELECT 4, n, at FROM start, generate_series(1, 3) n;
INSERT INTO late SELECT 1, n, s.at - 1000 * interval '1 hour' FROM start s, generate_series(1, 3) n});
is($error, '', 'a history that is too old is dropped without a word');
($result, $out, $error) = $node->psql('postgres', q{INSERT INTO late SELECT k, 1000 + n, s.at + interval '1 hour' + n * interval '1 minute' FROM start s, generate_series(1, 2) k, generate_series(1, 50) n;
SELECT late_add(3, ARRAY[1])});
like($error, qr/WARNING:  rows of sink "late" are dropped as too old by the clock/, 'rows that are newer than their filter are dropped with a warning');
is(scalar(() = $error =~ /WARNING/g), 1, 'once in a session');
set_clock(0);
my $counts = q{SELECT k, count(*) FROM (SELECT k, filter FROM late_fav OFFSET 0) f, generate_series(1, 2000) n WHERE fav_contains(filter, n) GROUP BY k ORDER BY k};
is($node->safe_psql('postgres', $counts), "1|100\n2|400\n3|1", 'rows that are too old by a clock that is ahead are not added, and nothing is forgotten');
$node->safe_psql('postgres', q{INSERT INTO late SELECT k, 1000 + n, s.at + n * interval '1 year' FROM start s, generate_series(1, 3) k, generate_series(1, 50) n});
is($node->safe_psql('postgres', $counts), "1|150\n2|450\n3|51", 'rows of the future are added');
set_clock(5 * $hour);
$node->safe_psql('postgres', q{INSERT INTO late SELECT k, 1100 + n, s.at - n * interval '1 hour' FROM start s, generate_series(1, 2) k, generate_series(1, 50) n});
is($node->safe_psql('postgres', q{SELECT k, bool_and(fav_contains(filter, n)) FROM (SELECT k, filter FROM late_fav WHERE k < 3 OFFSET 0) f, generate_series(1101, 1150) n GROUP BY k ORDER BY k}),
	"1|t\n2|t", 'rows of the future do not make the present, or the past, too old');

# --------------------------------------------------------------------------------------
# Random jumps, without and with times of rows
# --------------------------------------------------------------------------------------

set_clock(0);
make_reported('late');
$node->safe_psql('postgres', 'TRUNCATE seen, late');
my %low;       # of an element: the period in which it was added last, at least,
my %high;      # and at most, whatever was removed in between
my %newest;    # period of a key, at most
my %removed;
my @wrong;
my $chance = 0;    # elements that are reported by chance

sub jump
{
	my $kind = rand();

	return if $kind < 0.4;
	# half an hour off the hour, so that it does not change while a step is made
	my $hours = $kind < 0.85 ? int(rand(4)) : $kind < 0.9 ? int(rand(300)) : $kind < 0.95 ? -int(rand(300)) : int(rand(20)) - 10;
	set_clock($offset + $hours * $hour);
	return;
}

sub pick_range
{
	my $k = 1 + int(rand(4));
	my $low = 1 + int(rand(3500));
	my $count = $k == 1 ? 1 + int(rand(500)) : $k == 2 ? 1 + int(rand(60)) : 1 + int(rand(3));

	return ($k, $low, $low + $count - 1);
}

sub least { return $_[0] < $_[1] ? $_[0] : $_[1]; }
sub most { return $_[0] > $_[1] ? $_[0] : $_[1]; }

# Is this element certainly there, or certainly not?
sub is_kept
{
	my ($sink, $k, $n, $present) = @_;
	my $date = $low{$sink}{$k}{$n};

	return defined $date && $date + $keep >= most($present, $newest{$sink}{$k});
}

sub is_gone
{
	my ($sink, $k, $n, $present) = @_;
	my $date = $high{$sink}{$k}{$n};

	return !defined $date || $removed{$sink}{$k}{$n} || $date + $keep + $late < $present;
}

# An element was added as of a period.  Rows that may be too old are nothing to rely on.
sub note_added
{
	my ($sink, $k, $n, $period, $present) = @_;
	my $newest = most($present, $newest{$sink}{$k} // $present);
	my $has_at = $sink eq 'late';

	delete $removed{$sink}{$k}{$n};
	return if $period + $keep < $present;
	$high{$sink}{$k}{$n} = most($high{$sink}{$k}{$n} // $newest, least($period, $newest));
	return if $period + $keep < $newest;
	# without times of rows an element is of the newest period
	$low{$sink}{$k}{$n} = most($low{$sink}{$k}{$n} // -1e9, $has_at ? least($period, $present) : $newest);
	return;
}

sub check
{
	my ($sink, $step, $present) = @_;

	foreach my $line (split /\n/, $node->safe_psql('postgres', "SELECT k, now, by_levels, differs FROM reported_$sink()"))
	{
		my ($k, $now, $by_levels, $differs) = split /\|/, $line, -1;
		my %now = map { $_ => 1 } $now =~ /\d+/g;
		my %by_levels = map { $_ => 1 } $by_levels =~ /\d+/g;

		push @wrong, "step $step: $sink, $k, has differs for $differs" if $differs ne '';
		foreach my $n (1 .. 4000)
		{
			push @wrong, "step $step: $sink, $k, $n is missing"
			  if is_kept($sink, $k, $n, $present) && !($now{$n} && $by_levels{$n});
			push @wrong, "step $step: $sink, $k, $n is still there"
			  if $removed{$sink}{$k}{$n} && ($now{$n} || $by_levels{$n});
			push @wrong, "step $step: $sink, $k, $n is not forgotten"
			  if $now{$n} && defined $high{$sink}{$k}{$n} && is_gone($sink, $k, $n, $present);
			$chance += $now{$n} || 0 if !defined $high{$sink}{$k}{$n};
		}
	}
	return;
}

# What is told is new, and what is not is known.
sub add
{
	my ($sink, $step, $k, $low, $high, $present) = @_;
	my $told = $node->safe_psql('postgres', "SET client_min_messages = error; SELECT ${sink}_add($k, ARRAY(SELECT generate_series($low, $high)))");
	my %told = map { $_ => 1 } $told =~ /\d+/g;

	foreach ($low .. $high)
	{
		push @wrong, "step $step: $sink, $k, $_ is told twice" if $told{$_} && is_kept($sink, $k, $_, $present);
		$chance++ if !$told{$_} && is_gone($sink, $k, $_, $present);
		note_added($sink, $k, $_, 1e9, $present);
	}
	return;
}

sub insert
{
	my ($sink, $k, $low, $high, $present) = @_;
	my $has_at = $sink eq 'late';
	# of one time, or of many
	my $width = rand() < 0.5 ? 1 : 1 + int(rand(90));
	my $first = $present - int(rand(80)) + (rand() < 0.3 ? int(rand(100)) : 0);
	my $time = $has_at ? ", '2000-01-01 00:30 UTC'::timestamptz + ($first + n % $width) * interval '1 hour'" : '';

	$node->safe_psql('postgres', "SET client_min_messages = error; INSERT INTO $sink SELECT $k, n $time FROM generate_series($low, $high) n");
	note_added($sink, $k, $_, $has_at ? $first + $_ % $width : 1e9, $present) foreach $low .. $high;
	return;
}

# not near the end of an hour
sleep 30 if time % $hour > $hour - 20;
foreach my $step (1 .. $steps)
{
	my $sink = $step % 2 == 0 ? 'seen' : 'late';
	my ($k, $low, $high) = pick_range();
	my $kind = rand();
	my $present;

	sleep 30 if time % $hour > $hour - 20;
	jump();
	$present = now();
	if ($kind < 0.2)
	{
		my @known = grep { $_ >= $low && $_ <= $high } keys %{ $low{$sink}{$k} };

		$node->safe_psql('postgres', "SELECT ${sink}_remove($k, ARRAY[" . join(',', @known) . ']::bigint[])');
		foreach (@known)
		{
			delete $low{$sink}{$k}{$_};
			$removed{$sink}{$k}{$_} = 1;
		}
	}
	else
	{
		$kind < 0.5 ? add($sink, $step, $k, $low, $high, $present) : insert($sink, $k, $low, $high, $present);
		$newest{$sink}{$k} = most($present, $newest{$sink}{$k} // $present);
	}
	check($sink, $step, $present) if $step % 10 < 2 || $step > $steps - 2;
}
is(scalar(@wrong), 0, "filters and model agree (FAV_SEED=$seed)") or diag(join("\n", @wrong[ 0 .. ($#wrong > 9 ? 9 : $#wrong) ]));
cmp_ok($chance, '<=', 60, "almost nothing else is reported ($chance)");

log_is_clean($node, 'nothing in the log that a bug would write');
$node->stop;
done_testing();
