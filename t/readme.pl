# Every example in the documents runs, and gives the documented result.
#
# The test runs each block of ```sql; a block of ```text right after it is the expected output of
# psql -At.  The blocks of a document share one session in a database of their own.  The test
# always runs README.md, and a document in docs/ if it has the line "<!-- tested -->"; with
# "<!-- tested with vector -->" only if that extension is installed.

use strict;
use warnings;

use File::Basename qw(basename dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = dirname(__FILE__) . '/..';
my @documents = grep { -e $_ && (basename($_) eq 'README.md' || slurp_file($_) =~ /^<!-- tested(?: with \w+)? -->$/m) }
  ("$root/README.md", sort glob("$root/docs/*.md"));

plan skip_all => 'no documents here' unless @documents;

# The examples of a document: [line, statements, expected output or undef]
sub examples
{
	my ($file) = @_;
	my (@examples, $language, $text, $begin);
	my $number = 0;
	my $follows = 0;			# nothing but blank lines since the last example

	foreach my $line (split /\n/, slurp_file($file))
	{
		$number++;
		if (!defined $language)
		{
			if ($line =~ /^```(\w*)/)
			{
				($language, $text, $begin) = ($1, '', $number);
			}
			elsif ($line =~ /\S/)
			{
				$follows = 0;
			}
		}
		elsif ($line =~ /^```\s*$/)
		{
			if ($language eq 'sql')
			{
				push @examples, [ $begin, $text, undef ];
			}
			elsif ($language eq 'text' && $follows)
			{
				$examples[-1][2] = $text;
			}
			$follows = $language eq 'sql';
			undef $language;
		}
		else
		{
			$text .= "$line\n";
		}
	}
	return @examples;
}

my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init;
$node->start;

foreach my $file (@documents)
{
	my $name = basename($file);
	my $database = lc($name =~ s/\W/_/gr);
	my ($extension) = slurp_file($file) =~ /^<!-- tested with (\w+) -->$/m;
	my @examples = examples($file);
	my $mark = 'end of the example in line';
	my ($output, $errors) = ('', '');

	if ($extension
		&& !$node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = '$extension'"))
	{
	  SKIP: { skip "$name: please install the extension $extension", 1 }
		next;
	}
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->psql(
		$database,
		join('', map { "$_->[1]\n\\echo $mark $_->[0]\n" } @examples),
		stdout => \$output,
		stderr => \$errors,
		on_error_stop => 1);
	cmp_ok(scalar(@examples), '>', 0, "$name has examples");

	foreach my $example (@examples)
	{
		my ($line, undef, $expected) = @$example;

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
