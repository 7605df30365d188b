
# Code that the fault tests share.

package FavTest;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
use Time::HiRes qw(time);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(effort figures start_node log_is_clean poll_for build_value popcount
  calls_on_filter run_in_background read_examples);

# The effort: 1 in a quick run, more in tools/soak.
sub effort
{
	return $ENV{FAV_SOAK} || 1;
}

# Report one line per test, for tools/soak to collect.
sub figures
{
	my ($what) = @_;

	note("figures: $what");
	diag("figures: $what") if $ENV{FAV_SOAK};
	return;
}

# A running cluster with the extension.  Every line of its log begins with the
# SQLSTATE.
sub start_node
{
	my ($name, %param) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%{ $param{init} || {} });
	$node->append_conf(
		'postgresql.conf', qq{
log_line_prefix = '%e [%p] '
log_statement = 'none'
log_min_duration_statement = -1
autovacuum = off
fsync = off
});
	$node->append_conf('postgresql.conf', $param{conf}) if $param{conf};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION fav') unless $param{bare};
	return $node;
}

# The blocks of code of a document, in order: language, text, line, heading, the name of the test
# that runs it if that is not t/readme.pl ("run_by"), and for SQL the output that the next block
# shows.  A comment "<!-- sql ... -->" is a block of SQL that readers do not see.
sub read_examples
{
	my ($file) = @_;
	my (@examples, $heading, $run_by, $open);
	my $number = 0;

	foreach my $line (split /\n/, slurp_file($file))
	{
		$number++;
		if ($open && $line =~ /^(```|-->)\s*$/)
		{
			my $latest = $examples[-1];

			if ($open->{language} eq 'text' && $latest && $latest->{language} eq 'sql' && !$latest->{closed})
			{
				$latest->{output} = $open->{text};
			}
			push @examples, $open;
			undef $open;
		}
		elsif ($open)
		{
			$open->{text} .= "$line\n";
		}
		elsif ($line =~ /^(?:```|<!-- (?=sql$))(\w*)$/)
		{
			$open = {
				language => $1,
				text => '',
				line => $number,
				heading => $heading,
				run_by => $run_by
			};
			undef $run_by;
		}
		elsif ($line =~ /^<!-- run by (\S+) -->$/)
		{
			$run_by = $1;
		}
		elsif ($line =~ /\S/)
		{
			$heading = $1 if $line =~ /^#+ (.*)/;
			$examples[-1]{closed} = 1 if @examples;
		}
	}
	return @examples;
}

# The log has only ordinary errors: no process died, no assertion failed, and no error occurred
# that only a bug can cause.
sub log_is_clean
{
	my ($node, $what, %allowed) = @_;
	my @bad;

	# a session that is connected when the server stops gets this message
	$allowed{'57P01'} = 1;
	foreach my $line (split /\n/, slurp_file($node->logfile))
	{
		my ($state) = $line =~ /^(\w{5}) /;
		push @bad, $line
		  if $line =~ /PANIC|TRAP:|terminated by signal|stack depth/
		  || ($line =~ /FATAL|^XX/ && !(defined $state && $allowed{$state}));
	}
	is(scalar(@bad), 0, $what) or diag(join("\n", @bad[ 0 .. ($#bad > 9 ? 9 : $#bad) ]));
	return;
}

# Start a program; the result has ->pump_nb and ->finish.
sub run_in_background
{
	my ($command, $out, $error) = @_;

	return IPC::Run::start($command, '<', \'', '>', $out, '2>', $error);
}

# Wait until the query returns true.  Returns false if it never does.
sub poll_for
{
	my ($node, $query, $seconds) = @_;
	my $end = time + ($seconds || $PostgreSQL::Test::Utils::timeout_default || 180);

	while (time < $end)
	{
		return 1 if $node->safe_psql('postgres', $query) eq 't';
		select(undef, undef, undef, 0.05);
	}
	return 0;
}

# The elements of a filter of each kind in SQL: a single one, and an array made from "many" (an
# array of bigint).  A filter of bigint or uuid converts text.
my %elements = (
	bigint => [ '42::bigint', 'many' ],
	text => [ q{'42'::text}, 'many::text[]' ],
	uuid => [ q{md5('42')::uuid}, 'ARRAY(SELECT md5(i::text)::uuid FROM unnest(many) i)' ],
	bytea => [ q{'\\x42'::bytea}, 'ARRAY(SELECT int8send(i) FROM unnest(many) i)' ],
	pair => ['42::bigint, 43::bigint']);
my %texts = (
	bigint => [ q{'42'}, 'many::text[]' ],
	uuid => [ q{md5('42')}, 'ARRAY(SELECT md5(i::text) FROM unnest(many) i)' ]);

# Every function, operator and aggregate of the extension with a filter argument, and with other
# arguments that SQL can supply, as expressions over "f" (a filter of this kind, bigint by
# default) and "many" (an array of bigint).  A result of type fav is checked.
sub calls_on_filter
{
	my ($node, $kind) = @_;

	$kind //= 'bigint';
	my %sample = (fav => 'f', 'double precision' => '0.01', integer => '7');
	my ($element, $many) = @{ $elements{$kind} };
	if ($kind eq 'pair')
	{
		$sample{bigint} = '42::bigint';
	}
	else
	{
		($sample{text}, $sample{'text[]'}) = @{ $texts{$kind} } if $texts{$kind};
		($sample{$kind}, $sample{"${kind}[]"}) = ($element, $many);
	}
	my $samples = join(', ', map { "('$_'::regtype, \$sample\$$sample{$_}\$sample\$)" } sort keys %sample);
	my $like = 'fav_new(1000, 0.01, (fav_stats(f)).region_size, (fav_stats(f)).seed, (fav_stats(f)).keep)';
	my @more = ("fav_union(f, $like)", "fav_add(fav_del(f, $element), $element)", "fav_union(fav_add(f, $element), fav_exclude(f, $element))");
	push @more, "fav_union(fav_add($like, $many), f)", "fav_add(fav_del(f, $many), $many)", "fav_del(fav_add(f, $many), $many)",
	  "fav_union(fav_add(f, $many), fav_del(f, $many))", "fav_del(fav_exclude(f, $many), $many)", "fav_add(fav_exclude(f, $many), $many)"
	  if $many;
	my $more = join(', ', map { "\$more\$$_\$more\$" } @more);

	# a pair has two numbers, everything else at most one (and a hash function a seed)
	my $numbers = $kind eq 'pair' ? 'IN (0, 2)' : '< 2';
	return split /\n/, $node->safe_psql(
		'postgres', qq{
WITH sample(type, value) AS (VALUES $samples), called AS (
	SELECT p.oid, p.prokind, p.proname, p.prorettype, count(s.value) AS known, p.pronargs,
		string_agg(s.value, ', ' ORDER BY a.n) AS arguments
	FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	CROSS JOIN unnest(p.proargtypes) WITH ORDINALITY AS a(type, n) LEFT JOIN sample s ON s.type = a.type
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fav')
	GROUP BY p.oid, p.prokind, p.proname, p.prorettype, p.pronargs
	HAVING bool_or(a.type = 'fav'::regtype) AND count(*) FILTER (WHERE a.type = 'bigint'::regtype) $numbers
), expressions AS (
	SELECT CASE WHEN prokind = 'a'
		THEN format('(SELECT %I(g) FROM (VALUES (f), (NULL), (fav_add(f, %s)), (f)) AS v(g))', proname, \$element\$$element\$element\$)
		ELSE format('%I(%s)', proname, arguments) END AS expression, prorettype
	FROM called WHERE known = pronargs
	UNION ALL
	SELECT format('%s %s %s', l.value, o.oprname, r.value), o.oprresult
	FROM pg_operator o JOIN sample l ON l.type = o.oprleft JOIN sample r ON r.type = o.oprright
	WHERE 'fav'::regtype IN (o.oprleft, o.oprright) AND ('$kind' <> 'pair' OR o.oprleft = o.oprright)
	UNION ALL
	SELECT unnest(ARRAY[$more]), 'fav'::regtype
)
SELECT CASE WHEN prorettype = 'fav'::regtype THEN format('fav_from_bytea(fav_to_bytea(%s))', expression)
	ELSE expression END
FROM expressions ORDER BY 1});
}

sub popcount
{
	return unpack('%64b*', $_[0]);
}

# The bytes of a value as in docs/internals/FORMAT.md, from any parameters.  Sizes and counts are correct
# unless they are given.  An empty value has no kind; the default for others is bigint.
sub build_value
{
	my (%value) = @_;
	my $region_size = $value{region_size} // 7;
	my @slices = @{ $value{slices} || [] };
	my @recent = @{ $value{recent} || [] };
	my @deleted = @{ $value{deleted} || [] };
	my $nslices = $value{nslices} // scalar(@slices);
	my $nrecent = $value{nrecent} // scalar(@recent);
	my $ndeleted = $value{ndeleted} // scalar(@deleted);
	my $is_empty = $nslices + $nrecent + $ndeleted == 0;
	my $bytes = pack(
		'CCCCvCCQ<*',
		$value{version} // 1, $value{flags} // 0, $region_size, $nslices, $nrecent,
		$is_empty ? 0 : $value{kind} // 1,
		$value{reserved} // 0, @recent);

	$bytes .= pack(
		'Q<Q<Q<d<V',
		$value{elements} // 0,
		$value{capacity} // 1000,
		$value{seed} // 0,
		$value{error_rate} // 0.01,
		$ndeleted);

	foreach my $slice (@slices)
	{
		my $block = ($region_size + 1) * 32;
		my $bits = 0;
		for (my $at = 0; $at < length($slice->{blocks}); $at += $block)
		{
			$bits += popcount(substr($slice->{blocks}, $at, $block - 32));
		}
		$bytes .= pack('VCx3Q<Q<',
			$slice->{nblocks} // length($slice->{blocks}) / $block,
			$slice->{k} // 5,
			$slice->{bits_set} // $bits,
			$slice->{bits_limit} // 1 + int(length($slice->{blocks}) * 2));
	}
	$bytes .= $_->{blocks} foreach @slices;
	$bytes .= pack('Q<*', @deleted);
	return $bytes;
}

1;
