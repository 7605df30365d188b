# The pages: every link leads to a file and every anchor to a heading, every page can be reached
# from README.md, no heading is empty, and every file and function that a page names is there.
# Needs no server.

use strict;
use warnings;

use File::Find qw(find);
use File::Spec;
use FindBin;
use Test::More;

my $root = File::Spec->rel2abs("$FindBin::RealBin/..");

sub slurp { local (@ARGV, $/) = @_; return <> }

# The files of these folders, relative to the root
sub files_in
{
	my ($wanted, @folders) = @_;
	my @files;

	find(
		{
			no_chdir => 1,
			wanted => sub { push @files, File::Spec->abs2rel($_, $root) if -f && /$wanted/ }
		},
		grep { -e } map { "$root/$_" } @folders);
	return sort @files;
}

my @pages = files_in(qr/\.md$/, qw(README.md CHANGELOG.md docs bench clients/js/README.md));

plan skip_all => 'no documents here' unless -d "$root/docs";

# "docs/../README.md" is "README.md"
sub resolve
{
	my ($page, $target) = @_;
	my @path;

	foreach my $step (split m{/}, ($page =~ s{[^/]*$}{}r) . $target)
	{
		next if $step eq '' || $step eq '.';
		if ($step ne '..')
		{
			push @path, $step;
		}
		elsif (!@path)
		{
			return undef;
		}
		else
		{
			pop @path;
		}
	}
	return join '/', @path;
}

# A page: its headings [line, level, text, whether something follows], its anchors, its links
# [line, target]
sub parse
{
	my ($text) = @_;
	my (@headings, %anchors, @links, $fence);
	my $number = 0;

	# A comment is not content, and may have more than one line.
	$text =~ s/(<!--.*?-->)/$1 =~ tr{\n}{}cdr/gse;
	foreach my $line (split /\n/, $text)
	{
		$number++;
		if (defined $fence)
		{
			undef $fence if $line =~ /^\s*$fence\s*$/;
			next;
		}
		if ($line =~ /^\s*(```+)/)
		{
			$fence = $1;
			$headings[-1][3] = 1 if @headings;
			next;
		}
		if ($line =~ /^(#+)\s*(.*?)\s*$/)
		{
			my ($level, $title) = (length $1, $2);

			# A heading with deeper ones below has content.
			$headings[-1][3] = 1 if @headings && $level > $headings[-1][1];
			push @headings, [ $number, $level, $title, 0 ];

			# As GitHub makes it
			my $anchor = lc($title =~ s/\[([^]]*)\]\([^)]*\)/$1/gr);
			utf8::decode($anchor);
			$anchor =~ s/[^\w\- ]//g;
			$anchor =~ tr/ /-/;
			my $again = exists $anchors{$anchor} ? '-' . $anchors{$anchor} : '';
			$anchors{$anchor}++;
			$anchors{"$anchor$again"} //= 1;
			next;
		}
		$headings[-1][3] = 1 if @headings && $line =~ /\S/;
		my $prose = $line =~ s/`[^`]*`//gr;
		push @links, [ $number, $1 ] while $prose =~ /\]\(\s*([^)\s]+)/g;
		push @links, [ $number, $1 ] while $prose =~ /\b(?:href|src)="([^"]+)"/g;
		push @links, [ $number, $1 ] if $prose =~ /^\[[^]]+\]:\s*(\S+)/;
	}
	return { headings => \@headings, anchors => \%anchors, links => \@links };
}

my %parsed = map { $_ => parse(slurp("$root/$_")) } @pages;

# Links and anchors
my %linked = ('README.md' => 1);
foreach my $page (@pages)
{
	my @wrong;

	foreach my $link (@{ $parsed{$page}{links} })
	{
		my ($number, $target) = @$link;
		next if $target =~ /^(?:https?|mailto):/;
		my ($path, $anchor) = split /#/, $target, 2;
		my $file = $path eq '' ? $page : resolve($page, $path);

		utf8::decode($anchor) if defined $anchor;
		$linked{ $file // '' } = 1 if $path ne '';
		if (!defined $file || !-e "$root/$file")
		{
			push @wrong, "line $number: no file $target";
		}
		elsif (defined $anchor && !($parsed{$file} && $parsed{$file}{anchors}{$anchor}))
		{
			push @wrong, "line $number: no heading $target";
		}
	}
	is(join("\n", @wrong), '', "$page: every link leads somewhere");
}
is_deeply([ grep { !$linked{$_} } @pages ], [], 'every page is linked');

# Headings
foreach my $page (@pages)
{
	my @empty = map { "line $_->[0]: $_->[2]" } grep { !$_->[3] || $_->[2] eq '' } @{ $parsed{$page}{headings} };
	is(join("\n", @empty), '', "$page: no heading is empty");
}

# Files that a page names in code (of src/ without that folder, of tests without an ending), and
# pages that any other file names
my %ending = (sql => '.sql', specs => '.spec', t => '.pl');
my $source_folders = qr/docs|bench|tools|specs|sql|src|t|test|core|type|aggregate|attach|cache|lib/;
foreach my $page (@pages)
{
	my %missing;

	foreach my $name (slurp("$root/$page") =~ m{`($source_folders/[\w./-]*\w)`}g)
	{
		my $tail = $ending{ $name =~ s{/.*}{}r } // '';
		$missing{$name} = 1 unless grep { -e "$root/$_" } $name, "src/$name", "$name$tail";
	}
	is(join(' ', sort keys %missing), '', "$page: the files that it names are there");
}

# Functions that a page names
my $sources = join "\n", map { slurp("$root/$_") } files_in(qr/\.[ch]$/, 'src');
foreach my $page (grep { m{^docs/internals/} } @pages)
{
	my %functions = map { $_ => 1 } slurp("$root/$page") =~ /`([a-z]\w*)\(\)`/g;
	my @missing = grep { $sources !~ /\b\Q$_\E\b/ } sort keys %functions;

	is(join(' ', @missing), '', "$page: the functions that it names are there");
}

my %missing;
foreach my $file ('Makefile', files_in(qr/./, qw(src t tools bench sql test/core/server test/lib clients debian)), map { File::Spec->abs2rel($_, $root) } glob("$root/test/core/*.[ch]"))
{
	next if $file =~ /\.(?:md|o|bc|so|wasm)$/ || $file =~ m{/(?:build|node_modules)/};
	foreach my $name (slurp("$root/$file") =~ m{\b(docs/[\w./-]*\.(?:md|svg|tsv))\b}g)
	{
		push @{ $missing{$name} }, $file unless -e "$root/$name";
	}
}
is_deeply(\%missing, {}, 'pages that other files name are there');

done_testing();
