
# The archive for PGXN: what `make dist` packs, and META.json by the rules of the PGXN Meta Spec
# 1.0.0 (required fields, types, forms).  One version everywhere.

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use FindBin;
use IO::Uncompress::Unzip qw($UnzipError);
use JSON::PP;
use Test::More;

my $source = abs_path("$FindBin::RealBin/..");
my $semver = qr/\d+\.\d+\.\d+(?:-?[A-Za-z][-0-9A-Za-z]*)?/;

sub slurp { local (@ARGV, $/) = @_; return <> }

# Rules: a pattern for a string; [rule] for a list or a single value; {name => rule} for a map,
# where * stands for all other names; a required name begins with !.
my $any = qr/./s;
my $term = qr/^[^\s[:cntrl:]\/\\]{2,}$/;
my $url = qr{^\w+://[^/]};
my $version = qr/^$semver$/;
my $range = qr/^(?:0|(?:(?:[<>]=?|==|!=)\s*)?$semver)(?:,\s*(?:[<>]=?|==|!=)?\s*$semver)*$/;
my $relations = { map { $_ => { '*' => $range } } qw(requires recommends suggests conflicts) };
my $spec = {
	'!name' => $term,
	'!version' => $version,
	'!abstract' => $any,
	'!maintainer' => [$any],
	'!license' => [qr/^(?:postgresql|bsd|mit|apache_2_0|gpl_[123]|open_source|restricted|unrestricted|unknown)$/],
	'!provides' => {
		'*' => { '!file' => $any, '!version' => $version, abstract => $any, docfile => $any }
	},
	'!meta-spec' => { '!version' => qr/^1\.0\.0$/, url => $url },
	description => $any,
	generated_by => $any,
	release_status => qr/^(?:stable|testing|unstable)$/,
	tags => [qr/^[^[:cntrl:]\/\\]{1,256}$/],
	prereqs => { map { $_ => $relations } qw(configure build test runtime develop) },
	resources => {
		homepage => $url,
		license => [$url],
		bugtracker => { web => $url, mailto => qr/@/ },
		repository => { web => $url, url => $url, type => qr/^[^A-Z]+$/ }
	}
};

# What is wrong with a value.
sub errors
{
	my ($rule, $value, $path) = @_;

	if (ref $rule eq 'ARRAY')
	{
		my @values = ref $value eq 'ARRAY' ? @$value : ($value);
		return ("$path is empty") unless @values;
		return map { errors($rule->[0], $_, $path) } @values;
	}
	if (ref $rule eq 'HASH')
	{
		return ("$path is not a map") unless ref $value eq 'HASH';
		return (
			(map { !/^!/ || exists $value->{ substr $_, 1 } ? () : "$path lacks $_" } sort keys %$rule),
			map {
				my $known = $rule->{$_} // $rule->{"!$_"} // $rule->{'*'};
				$known ? errors($known, $value->{$_}, "$path.$_") : /^x_/i ? () : "$path has an unknown $_";
			} sort keys %$value);
	}
	return !ref $value && defined $value && $value =~ $rule ? () : "$path is wrong";
}

my $text = slurp("$source/META.json");
my $meta = decode_json($text);
is_deeply([ errors($spec, $meta, 'META') ], [], 'META.json follows the specification');

# The rules themselves: each required field is missed, and a wrong form is seen.
foreach my $field (map { /^!(.*)/ } keys %$spec)
{
	my $broken = decode_json($text);
	delete $broken->{$field};
	is_deeply([ errors($spec, $broken, 'META') ], ["META lacks !$field"], "$field is required");
}
is_deeply([ errors($spec, { %$meta, version => '1.0' }, 'META') ], ['META.version is wrong'], 'a version has three parts');

# One version everywhere.
my ($short) = $meta->{version} =~ /^(\d+\.\d+)/;
like(slurp("$source/fav.control"), qr/^default_version = '\Q$short\E'$/m, 'the control file has the same version');
is($meta->{provides}{fav}{version}, $meta->{version}, 'so does what it provides');
is($meta->{provides}{fav}{file}, "fav--$short.sql", 'and the script');
like(slurp("$source/CHANGELOG.md"), qr/\A# Changelog\n\n## \Q$short\E /, 'and the changelog');
like(slurp("$source/debian/changelog"), qr/\Apostgresql-fav \(\Q$meta->{version}\E[~)]/, 'and the Debian package')
  if -e "$source/debian";

SKIP:
{
	my $folder = tempdir(CLEANUP => 1);
	my $git = 'git -c user.name=nobody -c user.email=nobody@localhost';

	skip 'no git here', 3 if system('git --version >/dev/null 2>&1');
	delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
	my $output = qx{cp -r $source $folder/fav && cd $folder/fav && rm -rf .git && git init -q . 2>&1 && git add . 2>&1 &&
		$git commit -q -m all 2>&1 && make -s dist PG_CONFIG=@{[ $ENV{PG_CONFIG} || 'pg_config' ]} 2>&1};
	is($?, 0, 'make dist works') or diag($output);

	my $zip = IO::Uncompress::Unzip->new("$folder/fav/fav-$meta->{version}.zip")
	  or BAIL_OUT("no archive: $UnzipError");
	my %files;
	do { $files{ $zip->getHeaderInfo->{Name} } = 1 } while ($zip->nextStream > 0);
	my $prefix = "fav-$meta->{version}";
	is_deeply(
		[ grep { !$files{"$prefix/$_"} } 'META.json', 'Makefile', 'LICENSE', 'fav.control', @{ $meta->{provides}{fav} }{qw(file docfile)} ],
		[], 'the archive has what PGXN wants');
	is_deeply([ grep { !m{^\Q$prefix\E/} || /\.(?:o|bc|so|zip)$/ } keys %files ], [], 'in one folder, without build products');
}

done_testing();
