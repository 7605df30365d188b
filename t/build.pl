
# VPATH builds, started as people and as Debian's pg_buildext do.  The library exports every
# function that the extension script names, and the script matches its template.

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Spec;
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $source = abs_path("$FindBin::RealBin/..");
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';

# The options of a make that runs this test must not reach the builds.
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};

sub run
{
	my ($command) = @_;
	my $output = qx{$command 2>&1};

	return ($? >> 8, $output);
}

# The C functions of the script, each with the record that PG_FUNCTION_INFO_V1 makes.
my $script = do { local (@ARGV, $/) = "$source/fav--1.0.sql"; <> };
my %functions;
$functions{ $2 || $1 } = 1
  while $script =~ /CREATE FUNCTION (\w+)\([^;]*?AS 'MODULE_PATHNAME'(?:, '(\w+)')?/g;
my @symbols = sort map { ($_, "pg_finfo_$_") } keys %functions;
cmp_ok(scalar(keys %functions), '>', 100, 'the script names its functions');

# A VPATH build needs sources without objects of a build in place.
my $folder = tempdir(CLEANUP => 1);
my $clean = "$folder/source";
mkdir $clean or die "could not make a folder: $!";
my ($failed, $why) = run("cd $source && cp -r Makefile fav.control fav--1.0.sql src $clean"
	  . " && find $clean -name '*.o' -delete");
die "could not copy the sources: $why" if $failed;

# From a folder in the sources, and from elsewhere.
my %builds = (
	plain => { folder => "$clean/b", top => '..', options => '-f ../Makefile' },
	vpath => { folder => "$folder/b", top => $clean, options => "-f $clean/Makefile VPATH=$clean" });

foreach my $name (sort keys %builds)
{
	my ($build, $top, $options) = @{ $builds{$name} }{qw(folder top options)};
	my $make = "make -s -C $build $options PG_CONFIG=$pg_config with_llvm=no COPT='-O0 -g0'";
	my ($status, $output);

	mkdir $build or die "could not make a folder: $!";
	($status, $output) = run($make);
	is($status, 0, "$name: builds") or diag($output);

	($status, $output) = run("nm -D --defined-only $build/fav.so");
	my %exported = map { $_ => 1 } $output =~ / T (\w+)$/mg;
	is_deeply([ grep { !$exported{$_} } @symbols ], [], "$name: the library has all functions");

	# make -W: as if the file had just been changed
	is((run("$make -q"))[0], 0, "$name: nothing is left to do");
	is((run("$make -q -W $top/src/$_"))[0], 1, "$name: a change of $_ is seen")
	  foreach ('fav.h', 'core/format.h', 'attach/attachment.h', 'fav.c');

	($status, $output) = run("$make install DESTDIR=$build/root");
	is($status, 0, "$name: installs") or diag($output);
	my @installed = map { s{.*/}{}r } split /\n/, (run("find $build/root -type f"))[1];
	is_deeply([ sort @installed ], [ 'fav--1.0.sql', 'fav.control', 'fav.so' ], "$name: all files");
}

is((run("awk -f $source/tools/sql.awk $source/fav--1.0.sql.in"))[1],
	$script, 'fav--1.0.sql is what its template gives (after a change of it: make script)');

done_testing();
