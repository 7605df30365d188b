# Every example in the documents runs, and gives the documented result.
#
# The test runs each block of ```sql in README.md and docs/, and comments "<!-- sql ... -->", which
# prepare them; a block of ```text right after one is the expected output of psql -At.  The blocks
# of a document share one session in a database of their own.  Documents for developers and a block
# after "<!-- run by t/other.pl -->" are left out.  With the line "<!-- needs vector -->" a document
# is run only if that extension is installed.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use File::Basename qw(basename);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/..";
my @documents = grep { -e } ("$root/README.md", sort glob("$root/docs/*.md"));

plan skip_all => 'no documents here' unless @documents;

my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init;
$node->start;

foreach my $file (@documents)
{
	my $name = basename($file);
	my $database = lc($name =~ s/\W/_/gr);
	my ($extension) = slurp_file($file) =~ /^<!-- needs (\w+) -->$/m;
	my @examples = grep { $_->{language} eq 'sql' } read_examples($file);
	my $mark = 'end of the example in line';
	my ($output, $errors) = ('', '');

	foreach my $elsewhere (grep { $_->{run_by} } @examples)
	{
		like(slurp_file("$root/$elsewhere->{run_by}"),
			qr/\Q$name\E/, "$name, line $elsewhere->{line}: $elsewhere->{run_by} knows of it");
	}
	@examples = grep { !$_->{run_by} } @examples;
	next unless @examples;
	if ($extension
		&& !$node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = '$extension'"))
	{
	  SKIP: { skip "$name: please install the extension $extension", 1 }
		next;
	}
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->psql(
		$database,
		join('', map { "$_->{text}\n\\echo $mark $_->{line}\n" } @examples),
		stdout => \$output,
		stderr => \$errors,
		on_error_stop => 1);

	foreach my $example (@examples)
	{
		my ($line, $expected) = @{$example}{qw(line output)};

		# The output up to the mark.  Without a mark, the session ended before this example.
		if ($output !~ s/\A(.*?)^\Q$mark\E $line(?:\n|\z)//ms)
		{
			fail("$name, line $line: runs");
			diag($errors);
			last;
		}
		my $printed = $1;
		pass("$name, line $line: runs");
		is($printed, $expected, "$name, line $line: gives what it says") if defined $expected;
	}
}

$node->stop;
done_testing();
