# psql's \bind (PostgreSQL 16 and later), which sends parameters without a type

use strict;
use warnings;

use IPC::Open2 qw(open2);

# What \bind and \echo take: a quoted string, in which psql knows the escapes of C.
sub quoted
{
	my ($text) = @_;

	return "'" . ($text =~ s/\\/\\\\/gr =~ s/'/''/gr) . "'";
}

my $pid = open2(my $from, my $to, 'psql', '-X', '-q', '-A', '-t', '-F', "\t", '-P', 'null=NULL');
my $last;

while (my $line = <STDIN>)
{
	chomp $line;
	my ($mode, $sql, @parameters) = split /\t/, $line, -1;
	my @values;

	foreach my $parameter (@parameters)
	{
		my ($kind, $text) = split / /, $parameter, 2;

		push @values,
			$kind eq 'last' ? $last
		  : $kind eq 'bytes' ? "\\x$text"
		  : $kind =~ /^(ints|strs|uuids)$/ ? "{$text}"
		  : $kind eq 'null' ? undef
		  : $text;
	}
	if ($mode eq 'binary' || grep { !defined } @values)
	{
		print "unsupported\n";
		next;
	}
	print $to "$sql \\bind ", join(' ', map { quoted($_) } @values), " \\g\n",
	  "\\echo end of answer :SQLSTATE :LAST_ERROR_MESSAGE\n";
	$to->flush;
	my $answer;
	while (1)
	{
		$line = <$from> // die 'psql ended';
		chomp $line;
		if ($line =~ /^end of answer (\w+) ?(.*)/)
		{
			$answer = "ERROR $1 $2" if $1 ne '00000';
			last;
		}
		$answer //= $line =~ s/\t.*//r;
	}
	print $answer // '-', "\n";
	$last = $answer;
}
close $to;
waitpid $pid, 0;
