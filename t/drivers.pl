# Real drivers, as application developers use them: whatever a driver makes of a parameter, the
# answer is right or an error.
#
# test/drivers has the cases, a program per driver, and says how they work together.  A
# driver that is not installed is left out, with a note that names its package.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A program that has ended early does not end this one.
$SIG{PIPE} = 'IGNORE';

plan skip_all => 'FAV_DRIVERS=no' if ($ENV{FAV_DRIVERS} // '') eq 'no';

my $home = "$FindBin::RealBin/../test/drivers";

# Debian's own Node.js looks there anyway.
$ENV{NODE_PATH} = join(':', grep { defined } $ENV{NODE_PATH}, '/usr/share/nodejs', '/usr/lib/nodejs');
my $java = '/usr/share/java';
my @java = ('java', '-Xshare:auto', '-cp', join(':', grep { defined } $ENV{CLASSPATH}, map { "$java/$_.jar" } qw(postgresql scram-client scram-common saslprep stringprep)));

# All drivers.  "programs" are tried in this order; one that gives true to "probe" is taken.
my @drivers = (
	{
		name => 'node-postgres',
		package => 'node-pg',
		programs => [ ['node'] ],
		probe => [ '-e', 'require("pg")' ],
		run => ['node_postgres.js'],
	},
	{
		name => 'postgres.js',
		package => 'npm (it takes the package postgres)',
		programs => [ ['node'] ],
		probe => [ '-e', 'require("postgres")' ],
		run => ['postgres_js.js'],
	},
	{
		name => 'psycopg',
		package => 'python3-psycopg',
		programs => [ ['/usr/bin/python3'], ['python3'] ],
		probe => [ '-c', 'import psycopg' ],
		run => ['psycopg3.py'],
	},
	{
		name => 'JDBC',
		package => 'libpostgresql-jdbc-java and default-jdk-headless',
		programs => [ \@java ],
		probe => ["$home/Jdbc.java", '--probe'],
		run => ['Jdbc.java'],
		tcp => 1,
	},
	(
		map +{
			name => "Ruby pg$_->[0]",
			package => 'ruby-pg',
			programs => [ ['/usr/bin/ruby'], ['ruby'] ],
			probe => [ '-e', 'require "pg"' ],
			run => [ 'ruby_pg.rb', $_->[1] ],
		},
		[ '', 'untyped' ],
		[ ', type map', 'typed' ]
	),
	(
		map +{
			name => "PHP $_->[0]",
			package => 'php-cli and php-pgsql',
			programs => [ ['/usr/bin/php'], ['php'] ],
			probe => [ '-r', 'exit(extension_loaded("pgsql") && extension_loaded("pdo_pgsql") ? 0 : 1);' ],
			run => [ 'php.php', $_->[1] ],
		},
		[ 'pg_query_params', 'functions' ],
		[ 'PDO', 'objects' ],
		[ 'PDO, emulated', 'emulated' ]
	),
	{
		name => 'psql \bind',
		package => 'postgresql-client-16 or later',
		programs => [ [$^X] ],
		probe => [ '-e', 'exit(`psql --version` =~ /(\d+)/ && $1 < 16)' ],
		run => ['psql.pl'],
	});

# The program that runs this driver, if there is one.
sub find_program
{
	my ($driver) = @_;

	foreach my $program (@{ $driver->{programs} })
	{
		my $output;
		return $program
		  if eval { IPC::Run::run([ @$program, @{ $driver->{probe} } ], '<', \'', '>&', \$output) };
	}
	return;
}

# Lines for the drivers, and what each must give: [title, line, kind of the first parameter,
# { variant => expected }]
sub read_cases
{
	my (@cases, @latest, $title, $mode, $sql);

	foreach my $line (split /\n/, slurp_file("$home/cases"))
	{
		next if $line =~ /^(#|$)/;
		if ($line =~ /^== (.*?)(?: \[(\w+)\])?$/)
		{
			($title, $mode) = ($1, $2 // 'plain');
		}
		elsif ($line =~ /^<(?: (.*))?$/)
		{
			my $parameters = $1 // '';
			my ($kind) = $parameters =~ /^(\w+)/;
			my @runs = $parameters =~ s/ (\d+)\.\.(\d+)/ %d/ ? map { sprintf($parameters, $_) } ($1 .. $2) : ($parameters);

			@latest = ();
			push @latest, [ $title, join("\t", $mode, $sql, split / \| /, $_), $kind, {} ] foreach @runs;
			push @cases, @latest;
		}
		elsif ($line =~ /^((?:typed|text)?(?: \w+)?)> (.*)$/)
		{
			$_->[3]{$1} = $2 foreach @latest;
		}
		else
		{
			$sql = $line;
		}
	}
	return @cases;
}

# What a driver must give that sends parameters as these types.
sub expected
{
	my ($sends, $kind, $variants) = @_;

	foreach my $variant (grep { / / } keys %$variants)
	{
		my ($how, $of) = split / /, $variant;
		return $variants->{$variant} if $sends->{$of};
	}
	my $type = defined $kind ? $sends->{$kind} : undef;
	my $how = !defined $type ? '' : $type =~ /^(text|character varying)$/ ? 'text' : 'typed';
	return $variants->{$how} // $variants->{''};
}

sub matches
{
	my ($got, $expected) = @_;

	return 1 if $got eq $expected;
	return $got !~ /^ERROR/ if $expected eq '*';
	return scalar grep { $got eq $_ || (/^ERROR/ && index($got, $_) == 0) } split / \|\| /, $expected;
}

my @cases = read_cases();
my %samples = (
	int => '42', str => 'a', uuid => '6ba7b810-9dad-11d1-80b4-00c04fd430c8', bytes => '00ff', ints => '44,45,46', strs => 'a,b',
	uuids => '6ba7b810-9dad-11d1-80b4-00c04fd430c8');

foreach my $driver (@drivers)
{
	$driver->{program} = find_program($driver);
	diag("$driver->{name} is not tested: please install Debian's $driver->{package}") unless $driver->{program};
}
@drivers = grep { $_->{program} } @drivers;
plan skip_all => 'no driver is installed' unless @drivers;

# JDBC knows TCP only.  Others on this machine could connect as well, so TCP wants a password.
my $node = PostgreSQL::Test::Cluster->new('drivers');
my $user = 'driver';
my $password = unpack('H*', join('', map { chr(int(rand(256))) } (1 .. 16)));

if (open(my $random, '<:raw', '/dev/urandom'))
{
	read($random, $password, 16);
	$password = unpack('H*', $password);
}
$node->init;
if (grep { $_->{tcp} } @drivers)
{
	$node->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'\npassword_encryption = 'scram-sha-256'\n");
	unlink $node->data_dir . '/pg_hba.conf';
	$node->append_conf('pg_hba.conf', "local all all trust\nhost all $user 127.0.0.1/32 scram-sha-256\n");
}
$node->append_conf('postgresql.conf', "log_line_prefix = '%e [%p] '\nlog_statement = 'none'\nlog_min_error_statement = panic\nfsync = off\n");
$node->start;
$node->safe_psql('postgres', "CREATE ROLE $user SUPERUSER LOGIN PASSWORD '$password'; CREATE DATABASE cases");
$node->safe_psql('cases', slurp_file("$home/setup.sql"));

foreach my $driver (@drivers)
{
	my @kinds = sort keys %samples;
	my @lines = ((map { "plain\tSELECT pg_typeof(\$1)::text\t$_ $samples{$_}" } @kinds), map { $_->[1] } @cases);
	my ($output, $errors) = ('', '');
	my $name = $driver->{name};
	my $database = lc($name) =~ s/\W+/_/gr;
	my ($run, @options) = @{ $driver->{run} };
	my %sends;

	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE cases");
	local $ENV{PGHOST} = $driver->{tcp} ? '127.0.0.1' : $node->host;
	local $ENV{PGPORT} = $node->port;
	local $ENV{PGUSER} = $user;
	local $ENV{PGDATABASE} = $database;
	local $ENV{PGPASSWORD} = $driver->{tcp} ? $password : '';
	local $ENV{PGCLIENTENCODING} = 'UTF8';
	my $ended = eval { IPC::Run::run([ @{ $driver->{program} }, "$home/$run", @options ],
		'<', \join('', map { "$_\n" } @lines), '>', \$output, '2>', \$errors,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default // 180)) };
	my @answers = split /\n/, $output;

	ok($ended && @answers == @lines, "$name: the program runs") or diag($@, $errors);
	foreach my $kind (@kinds)
	{
		my $type = shift @answers // 'nothing';

		# "unknown" is a literal without a type, where PDO puts it into the statement
		next if $type =~ /^ERROR 42P18|^unknown$/;
		like($type, qr/^[a-z ]+(\[\])?$/, "$name: $kind has a type");
		$sends{$kind} = $type;
	}
	note("$name: ", join(', ', map { "$_ is sent " . ($sends{$_} ? "as $sends{$_}" : 'without a type') } @kinds));

	# a title counts one
	my (@wrong, $unsupported);
	my $count = 0;
	foreach my $i (0 .. $#cases)
	{
		my ($title, $line, $kind, $variants) = @{ $cases[$i] };
		my $expected = expected(\%sends, $kind, $variants);
		my $got = $answers[$i] // 'nothing';

		$count++;
		if ($got eq 'unsupported')
		{
			$unsupported = 1;
		}
		elsif (!matches($got, $expected))
		{
			push @wrong, "$line\n     got: $got\nexpected: $expected";
		}
		next if $i < $#cases && $cases[ $i + 1 ][0] eq $title;
		is(scalar(@wrong), 0, "$name: $title" . ($unsupported ? ', as far as it can' : '')) or diag(join("\n", @wrong[ 0 .. ($#wrong > 4 ? 4 : $#wrong) ]));
		(@wrong, $unsupported) = ();
	}
	note("$name: $count cases");
}

log_is_clean($node, 'the server has seen ordinary errors only');
$node->stop;
done_testing();
