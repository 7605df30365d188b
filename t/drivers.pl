# Real drivers, used as application developers use them.  However a driver sends a parameter, the
# result is a right answer or an error.
#
# test/drivers has the cases and a program per driver; its README.md describes them.  The test
# skips a driver that is not installed, with a note that names its package.  It also runs the
# examples of README.md and docs/CLIENTS.md in other languages.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'FAV_DRIVERS=no' if ($ENV{FAV_DRIVERS} // '') eq 'no';

# A driver program that ends early must not end this test.
$SIG{PIPE} = 'IGNORE';

my $root = "$FindBin::RealBin/..";
my $home = "$root/test/drivers";

# Debian's own Node.js looks there by default.
$ENV{NODE_PATH} =
  join(':', grep { defined } $ENV{NODE_PATH}, '/usr/share/nodejs', '/usr/lib/nodejs');
my $classpath = join(':',
	grep { defined } $ENV{CLASSPATH},
	map { "/usr/share/java/$_.jar" } qw(postgresql scram-client scram-common saslprep stringprep));

# All drivers and object mappers.  The first of "programs" for which "probe" succeeds runs "script".
# The first example under the heading "example" (default: the name) of "document" (default:
# docs/CLIENTS.md) is put between the two strings of "frame".  A driver without a language has none.
my $php = {
	package => 'php-cli and php-pgsql',
	programs => [ ['/usr/bin/php'], ['php'] ],
	probe => [
		'-r', 'exit(extension_loaded("pgsql") && extension_loaded("pdo_pgsql") ? 0 : 1);'
	],
};
my $ruby = {
	package => 'ruby-pg',
	programs => [ ['/usr/bin/ruby'], ['ruby'] ],
	probe => [ '-e', 'require "pg"' ],
};
my $sqlalchemy = {
	package => 'python3-sqlalchemy and python3-psycopg2',
	programs => [ ['/usr/bin/python3'], ['python3'] ],
	probe => [ '-c', 'import sqlalchemy, psycopg2' ],
	language => 'python',
};
my @drivers = (
	{
		name => 'node-postgres',
		package => 'node-pg',
		programs => [ ['node'] ],
		probe => [ '-e', 'require("pg")' ],
		script => ['node_postgres.js'],
		language => 'js',
	},
	{
		name => 'node-postgres, README',
		package => 'node-pg',
		programs => [ ['node'] ],
		probe => [ '-e', 'require("pg")' ],
		document => 'README.md',
		example => 'Clients',
		language => 'js',
	},
	{
		name => 'postgres.js',
		package => 'npm, and with it the package postgres',
		programs => [ ['node'] ],
		probe => [ '-e', 'require("postgres")' ],
		script => ['postgres_js.js'],
		language => 'js',
	},
	{
		name => 'psycopg 3',
		package => 'python3-psycopg',
		programs => [ ['/usr/bin/python3'], ['python3'] ],
		probe => [ '-c', 'import psycopg' ],
		script => ['psycopg3.py'],
		language => 'python',
	},
	{
		name => 'JDBC',
		package => 'libpostgresql-jdbc-java and default-jdk-headless',
		programs => [ [ 'java', '-cp', $classpath ] ],
		probe => [ "$home/Jdbc.java", '--probe' ],
		script => ['Jdbc.java'],
		needs_tcp => 1,
		language => 'java',
		frame => [
			q~import java.sql.*;
public class Readme { public static void main(String[] arguments) throws Exception {
Connection connection = DriverManager.getConnection("jdbc:postgresql://" + System.getenv("PGHOST") +
	":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE"),
	System.getenv("PGUSER"), System.getenv("PGPASSWORD"));~,
			'}}'
		],
	},
	{
		%$ruby,
		name => 'Ruby pg',
		script => ['ruby_pg.rb'],
		language => 'ruby',
	},
	{ %$ruby, name => 'Ruby pg with a type map', script => [ 'ruby_pg.rb', 'typed' ] },
	{ %$php, name => 'PHP pg_query_params', script => [ 'php.php', 'functions' ] },
	{
		%$php,
		name => 'PHP PDO',
		script => [ 'php.php', 'objects' ],
		language => 'php',
		frame => [ '<?php', '' ],
	},
	{ %$php, name => 'PHP PDO with emulated prepares', script => [ 'php.php', 'emulated' ] },
	{
		name => 'Go lib/pq',
		package => 'golang-go and golang-github-lib-pq-dev',
		programs => [ [ 'env', 'GO111MODULE=off', 'GOPATH=/usr/share/gocode', 'PGSSLMODE=disable', 'go', 'run' ] ],
		probe => ["$home/probe.go"],
		language => 'go',
		frame => [
			q~package main
import ("database/sql"; "fmt"; _ "github.com/lib/pq")
func main() {~,
			'}'
		],
	},
	{
		%$sqlalchemy,
		name => 'SQLAlchemy',
	},
	{
		%$sqlalchemy,
		name => 'SQLAlchemy, a filter column',
	},
	{
		name => 'Django',
		package => 'python3-django and python3-psycopg2',
		programs => [ ['/usr/bin/python3'], ['python3'] ],
		probe => [ '-c', 'import django, psycopg2' ],
		language => 'python',
		frame => [
			q~import os
import django
from django.conf import settings
settings.configure(DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "HOST": os.environ["PGHOST"],
    "PORT": os.environ["PGPORT"], "NAME": os.environ["PGDATABASE"],
    "USER": os.environ["PGUSER"], "PASSWORD": os.environ["PGPASSWORD"]}})
django.setup()
from django.db import connection
connection.cursor().execute("INSERT INTO hidden_posts VALUES (%s, %s)", [7, 42])~,
			''
		],
	},
	{
		name => 'Active Record',
		package => 'ruby-activerecord',
		programs => [ ['/usr/bin/ruby'], ['ruby'] ],
		probe => [ '-e', 'require "active_record"; require "pg"' ],
		language => 'ruby',
	},
	{
		name => 'Drizzle',
		package => 'npm, and with it the packages pg and drizzle-orm',
		programs => [ ['node'] ],
		probe => [ '-e', 'require("pg"); require("drizzle-orm/node-postgres")' ],
		language => 'js',
	},
	{
		name => 'TypeORM',
		package => 'npm, and with it the packages pg and typeorm',
		programs => [ ['node'] ],
		probe => [ '-e', 'require("pg"); require("typeorm")' ],
		language => 'js',
	},
	{
		name => 'Knex',
		package => 'npm, and with it the packages pg and knex',
		programs => [ ['node'] ],
		probe => [ '-e', 'require("pg"); require("knex")' ],
		language => 'js',
	},
	{
		name => 'Sequelize',
		package => 'npm, and with it the packages pg and sequelize',
		programs => [ ['node'] ],
		probe => [ '-e', 'require("pg"); require("sequelize")' ],
		language => 'js',
	},
	{
		name => 'psql \bind',
		package => 'postgresql-client-16 or later',
		programs => [ [$^X] ],
		probe => [ '-e', 'exit(`psql --version` =~ /(\d+)/ && $1 < 16)' ],
		script => ['psql.pl'],
	});

# Run a program.  Returns its output, and notes the reason for a failure.
sub run_program
{
	my ($command, $input) = @_;
	my ($output, $errors) = ('', '');
	my $seconds = $PostgreSQL::Test::Utils::timeout_default // 180;
	my $has_ended = eval {
		IPC::Run::run($command, '<', \$input, '>', \$output, '2>', \$errors,
			IPC::Run::timeout($seconds));
	};

	diag($@, $errors) unless $has_ended;
	return $output;
}

# Returns the program that runs this driver, if there is one.
sub find_program
{
	my ($driver) = @_;

	foreach my $program (@{ $driver->{programs} })
	{
		my $output;
		return $program
		  if eval {
			IPC::Run::run([ @$program, @{ $driver->{probe} } ], '<', \'', '>&', \$output);
		  };
	}
	return;
}

# Lines for the drivers, with the expected results: [title, line, kind of the first parameter, {
# variant => expected }]
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
			my @runs =
			  $parameters =~ s/ (\d+)\.\.(\d+)/ %d/
			  ? map { sprintf($parameters, $_) } ($1 .. $2)
			  : ($parameters);

			@latest =
			  map { [ $title, join("\t", $mode, $sql, split / \| /, $_), $kind, {} ] } @runs;
			push @cases, @latest;
		}
		elsif ($line =~ /^((?:typed|text|joined)?(?: \w+)?)> (.*)$/)
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

# The expected result of a driver that sends parameters with these types.
sub expected
{
	my ($sends, $kind, $variants) = @_;

	foreach my $variant (grep { / / } keys %$variants)
	{
		my ($how, $of) = split / /, $variant;
		return $variants->{$variant} if $how eq how_sent($sends->{$of});
	}
	my $how = how_sent(defined $kind ? $sends->{$kind} : undef);
	return $variants->{$how} // $variants->{''};
}

sub how_sent
{
	my ($type) = @_;

	return '' if !defined $type;
	return $type if $type eq 'joined';
	return $type =~ /^(text|character varying)$/ ? 'text' : 'typed';
}

sub matches
{
	my ($got, $expected) = @_;

	return $got !~ /^ERROR/ if $expected eq '*';
	return scalar grep { $got eq $_ || (/^ERROR/ && index($got, $_) == 0) }
	  split / \|\| /, $expected;
}

my @cases = read_cases();
my %samples = (
	int => '42',
	str => 'a',
	uuid => '6ba7b810-9dad-11d1-80b4-00c04fd430c8',
	bytes => '00ff',
	ints => '44,45,46',
	strs => 'a,b',
	uuids => '6ba7b810-9dad-11d1-80b4-00c04fd430c8');

sub test_cases
{
	my ($driver) = @_;
	my $name = $driver->{name};
	my @kinds = sort keys %samples;
	my @lines = (
		(map { "plain\tSELECT pg_typeof(\$1)::text\t$_ $samples{$_}" } @kinds),
		"plain\tSELECT \$1::text\tints $samples{ints}",
		(map { $_->[1] } @cases));
	my ($script, @options) = @{ $driver->{script} };
	my @answers = split /\n/,
	  run_program([ @{ $driver->{program} }, "$home/$script", @options ],
		join('', map { "$_\n" } @lines));
	my (%sends, @wrong, $unsupported);

	is(scalar(@answers), scalar(@lines), "$name: answers everything");

	# An untyped parameter has no type, or becomes an unknown literal if the driver puts
	# parameters into the statement.
	foreach my $kind (@kinds)
	{
		my $type = shift @answers // 'nothing';

		next if $type =~ /^ERROR 42P18|^unknown$/;
		like($type, qr/^[a-z ]+(\[\])?$/, "$name: $kind has a type");
		$sends{$kind} = $type;
	}
	# An array that is not an array literal when the server expects text.
	my $literal = shift @answers // 'nothing';
	@sends{qw(ints strs uuids)} = ('joined') x 3 if $literal eq $samples{ints};
	note("$name sends with a type: ", join(', ', map { "$_ as $sends{$_}" } sort keys %sends));

	# the cases of a title are one test
	foreach my $i (0 .. $#cases)
	{
		my ($title, $line, $kind, $variants) = @{ $cases[$i] };
		my $expected = expected(\%sends, $kind, $variants);
		my $got = $answers[$i] // 'nothing';

		if ($got eq 'unsupported')
		{
			$unsupported = 1;
		}
		elsif (!matches($got, $expected))
		{
			push @wrong, "$line\n     got: $got\nexpected: $expected";
		}
		next if $i < $#cases && $cases[ $i + 1 ][0] eq $title;
		is(scalar(@wrong), 0, "$name: $title" . ($unsupported ? ' (in part unsupported)' : ''))
		  or diag(join("\n", @wrong[ 0 .. ($#wrong > 4 ? 4 : $#wrong) ]));
		@wrong = ();
		$unsupported = 0;
	}
	return;
}

# The examples in languages that drivers run: "document, heading, language" => text.  A heading has
# one of each.
my %examples;
my %languages = map { $_->{language} => 1 } grep { $_->{language} } @drivers;
foreach my $document ('README.md', 'docs/CLIENTS.md')
{
	foreach my $example (read_examples("$root/$document"))
	{
		$examples{"$document, $example->{heading}, $example->{language}"} //= $example->{text}
		  if $languages{ $example->{language} };
	}
}

sub example_of
{
	my ($driver) = @_;

	return join(', ',
		$driver->{document} // 'docs/CLIENTS.md',
		$driver->{example} // $driver->{name},
		$driver->{language} // '');
}

# The example of this driver prints what its last comment says.
sub test_example
{
	my ($driver) = @_;
	my $title = example_of($driver);
	my $example = delete $examples{$title} // '';
	my ($printed) = $example =~ m{.*(?://|#) ([^\n]*)}s;
	my ($before, $after) = @{ $driver->{frame} // [ '', '' ] };
	my $file = PostgreSQL::Test::Utils::tempdir() . '/' . ($driver->{name} =~ s/\W//gr) . ".$driver->{language}";

	append_to_file($file, "$before\n$example\n$after\n");
	is(run_program([ @{ $driver->{program} }, $file ], '') =~ s/\s+\z//r,
		$printed, "$title: gives what it says");
	return;
}

$_->{program} = find_program($_) foreach @drivers;
my @missing = grep { !$_->{program} } @drivers;
@drivers = grep { $_->{program} } @drivers;
plan skip_all => 'no driver is installed' unless @drivers;
foreach my $driver (@missing)
{
  SKIP: { skip "$driver->{name}: please install Debian's $driver->{package}", 1 }
	delete $examples{ example_of($driver) };
}

# JDBC supports TCP only.  Other users of this machine could connect as well, so TCP requires a
# password.
my $node = PostgreSQL::Test::Cluster->new('drivers');
my $password = unpack('H*', slurp_random());

sub slurp_random
{
	open(my $random, '<:raw', '/dev/urandom') or die "/dev/urandom: $!";
	read($random, my $bytes, 16) == 16 or die "/dev/urandom: $!";
	return $bytes;
}

$node->init;
$node->append_conf(
	'postgresql.conf', q{
log_line_prefix = '%e [%p] '
log_statement = 'none'
log_min_error_statement = panic
fsync = off
password_encryption = 'scram-sha-256'
});
if (grep { $_->{needs_tcp} } @drivers)
{
	$node->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'\n");
	unlink $node->data_dir . '/pg_hba.conf';
	$node->append_conf('pg_hba.conf',
		"local all all trust\nhost all driver 127.0.0.1/32 scram-sha-256\n");
}
$node->start;
$node->safe_psql('postgres', "CREATE ROLE driver SUPERUSER LOGIN PASSWORD '$password'");
$node->safe_psql('postgres', 'CREATE DATABASE cases');
$node->safe_psql('cases', slurp_file("$home/setup.sql"));

foreach my $driver (@drivers)
{
	# each driver begins with the same tables
	my $database = lc($driver->{name}) =~ s/\W+/_/gr;

	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE cases");
	local $ENV{PGHOST} = $driver->{needs_tcp} ? '127.0.0.1' : $node->host;
	local $ENV{PGPORT} = $node->port;
	local $ENV{PGUSER} = 'driver';
	local $ENV{PGDATABASE} = $database;
	local $ENV{PGPASSWORD} = $password;
	local $ENV{PGCLIENTENCODING} = 'UTF8';
	test_cases($driver) if $driver->{script};
	test_example($driver) if $driver->{language};
}

# The browser's example belongs to t/clients.pl.
delete $examples{'docs/CLIENTS.md, The filter in a browser, js'};
is(join('; ', sort keys %examples), '', 'each example has a driver');

log_is_clean($node, 'the server has seen ordinary errors only');
$node->stop;
done_testing();
