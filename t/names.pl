
# Tables, schemas, keys and elements with every name that could be mistaken: identifiers in the SQL
# of the extension itself, keywords, quotes, braces, dollars, digits at the end, 63 bytes.  For each
# of them: attach, write, read, verify, rebuild, build, dump and restore, detach.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('names', conf => 'max_locks_per_transaction = 1000');

# Every word in a string literal of the sources, and in the braces of queries
my %words;
foreach my $file (glob "$FindBin::RealBin/../src/attach/*.c")
{
	my $text = slurp_file($file);

	$text =~ s{/\*.*?\*/}{}gs;
	while ($text =~ /"((?:[^"\\]|\\.)*)"/g)
	{
		my $literal = $1;

		next unless $literal =~ /SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|CREATE|GROUP|LIMIT|pg_catalog|\{/;
		$words{$1} = 1 while $literal =~ /([A-Za-z_][A-Za-z_0-9]*)/g;
	}
}
cmp_ok(scalar(keys %words), '>', 100, 'the sources have queries');

my @hard = (
	'a b', 'a"b', "a'b", 'a\\b', 'a{b}', '{key}', '{\'source\'}', '$1', '$$', 'a$b$', '%s', '%1$s', 'a.b', 'a,b', 'A', 'é', 'hidden_posts_2024', 'x_1', '1', ';', '--', '/*', 'E', "a\nb", 'NEW', 'OLD', 'excluded',
	'log1', 'log1_', 'base_', 'filter_', 'login_id', 'n', 'ctid_', 'tableoid_', 'user_id', 'x' x 63, ('y' x 60) . '_12', 'é' x 31);

# PL/pgSQL with qualified names, so that only those of the extension matter
$node->safe_psql(
	'postgres', q{
CREATE SCHEMA test;
CREATE FUNCTION test.counts(source regclass, OUT elements bigint, OUT missing bigint, OUT stale bigint) LANGUAGE sql AS
	'SELECT v.elements, v.missing, v.stale FROM fav_verify(source) v';
CREATE PROCEDURE test.try(s text, t text, k text, e text, types text) LANGUAGE plpgsql AS $$
DECLARE
	pairs text := format('%I.%I', s, t);
	key_type text := split_part(types, ' ', 1);
	a record;
	is_there boolean;
	found record;
BEGIN
	EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', s);
	EXECUTE format('CREATE TABLE %s (%I %s, %I %s, PRIMARY KEY (%2$I, %4$I))', pairs, k, key_type, e, split_part(types, ' ', 2));
	EXECUTE format('INSERT INTO %s SELECT (i %% 3)::text::%s, i FROM generate_series(1, 200) i', pairs, key_type);
	PERFORM fav_attach(pairs, k, e, share => CASE WHEN types LIKE '% shared' THEN 2 END);
	EXECUTE format('INSERT INTO %s SELECT (i %% 5)::text::%s, i FROM generate_series(201, 210) i', pairs, key_type);
	EXECUTE format('UPDATE %s SET %I = (-%2$I::bigint)::%s WHERE %2$I::bigint IN (1, 2, 3)', pairs, e, split_part(types, ' ', 2));
	EXECUTE format('DELETE FROM %s WHERE %I::bigint BETWEEN 10 AND 19', pairs, e);
	SELECT * INTO STRICT a FROM fav_attachments f WHERE f.source = pairs::regclass;
	IF NOT a.active OR NOT a.complete OR a.key <> k OR a.element <> e THEN RAISE EXCEPTION 'attachment: %', a; END IF;
	EXECUTE format('SELECT %s(%L, %L) AND NOT %1$s(%2$L, %4$L) AND %1$s(%5$L, %6$L)', a.has::regproc, 1, 4, 10, 1, -1) INTO is_there;
	IF is_there IS NOT TRUE THEN RAISE EXCEPTION 'has: %', is_there; END IF;
	EXECUTE format('SELECT count(*) FROM %s', a.filter) INTO found;
	SELECT * INTO found FROM test.counts(pairs);
	IF found <> ROW(200::bigint, 0::bigint, 0::bigint) THEN RAISE EXCEPTION 'counts: %', found; END IF;
	PERFORM fav_rebuild(pairs, '1');
	PERFORM fav_rebuild(pairs);
	PERFORM fav_attachment_stats(pairs);
	EXECUTE format('SELECT %s(%L, %L) AND NOT %1$s(%2$L, %4$L) AND %1$s(%5$L, %6$L)', a.has::regproc, 1, 4, 10, 1, -1) INTO is_there;
	IF is_there IS NOT TRUE THEN RAISE EXCEPTION 'has, rebuilt: %', is_there; END IF;
	IF hashtext(t || k || e) % 8 <> 0 THEN PERFORM fav_detach(pairs); END IF;
EXCEPTION WHEN others THEN
	RAISE WARNING 'schema % table % key % element % (%): % %', quote_ident(s), quote_ident(t), quote_ident(k), quote_ident(e), types, SQLSTATE, SQLERRM;
END $$;
CREATE PROCEDURE test.sink(s text, t text, k text, e text) LANGUAGE plpgsql AS $$
DECLARE
	pairs text := format('%I.%I', s, t);
	is_there boolean;
	a record;
BEGIN
	EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', s);
	EXECUTE format('CREATE TABLE %s (%I int, %I bigint)', pairs, k, e);
	PERFORM fav_sink(pairs, k, e, keep => '30 days');
	EXECUTE format('INSERT INTO %s SELECT 1, i FROM generate_series(1, 5000) i', pairs);
	SELECT * INTO STRICT a FROM fav_attachments f WHERE f.source = pairs::regclass;
	EXECUTE format('SELECT %s(1, 5000) AND %1$s(1, 1) AND NOT %1$s(2, 1) AND %L', a.has::regproc, a.active) INTO is_there;
	IF is_there IS NOT TRUE THEN RAISE EXCEPTION 'has: %', is_there; END IF;
	EXECUTE format('SELECT count(*) FROM %s', a.filter) INTO is_there;
	PERFORM set_config('client_min_messages', 'error', true);
	PERFORM fav_detach(pairs);
EXCEPTION WHEN others THEN
	RAISE WARNING 'sink %.% key % element %: % %', quote_ident(s), quote_ident(t), quote_ident(k), quote_ident(e), SQLSTATE, SQLERRM;
END $$;
});

sub literal
{
	my ($text) = @_;

	$text =~ s/(['\\])/$1$1/g;
	return "E'$text'";
}

# Two words may be the same column; then the other gets another name.
sub other
{
	my ($word, $default) = @_;

	return literal($word eq $default ? 'other' : $default);
}

my @types = ('int bigint', 'text bigint', 'int text', 'bigint int shared');
my @calls;
delete @words{@hard};
my @names = (@hard, sort keys %words);
my $i = 0;
foreach my $word (@names)
{
	my $name = literal($word);
	my $types = $types[ $i++ % @types ];

	next if $word =~ /^(ctid|xmin|xmax|cmin|cmax|tableoid)$/;
	push @calls, "CALL test.try('keys', 't$i', $name, " . other($word, 'e') . ", '$types');" if $i <= @hard || $i % 2;
	push @calls, "CALL test.try('elements', 't$i', " . other($word, 'k') . ", $name, '$types');" if $i <= @hard || $i % 2 == 0;
	push @calls, "CALL test.sink('sinks', 's$i', $name, " . other($word, 'e') . ');' if $i % 3 == 0 || $word =~ /log|base|filter|recent|middle/;
}
$i = 0;
foreach my $word (@names)
{
	my $name = literal($word);

	$i++;
	# PostgreSQL keeps these names for itself
	next if $word =~ /^pg_|^(ctid|xmin|xmax|cmin|cmax|tableoid)$/ || $word eq 'test' || $word eq 'public';
	push @calls, "CALL test.try('tables', $name, 'k', 'e', 'int bigint');" if $i <= @hard || $i % 4;
	push @calls, "CALL test.try($name, $name, $name, " . other($word, 'e') . ", 'int bigint');" if $i <= @hard || $i % 4 == 0;
}
my ($out, $error);
sub run_calls
{
	my ($calls) = @_;

	$error = '';
	$node->psql('postgres', "SET client_min_messages = warning;\n" . join("\n", @$calls), stdout => \$out, stderr => \$error, on_error_stop => 0, extra_params => [ '-v', 'VERBOSITY=terse' ]);
	return $error;
}
is(run_calls(\@calls), '', scalar(@calls) . ' names, in every role');

# fav_build commits, so it is called from outside
my $all = "FROM fav_attachments ORDER BY source::text COLLATE \"C\"";
is(run_calls([ map { "CALL fav_build(" . literal($_) . ", rebuild => true);" } split /\x01/, $node->safe_psql('postgres', "SELECT string_agg(source::text, chr(1)) FROM fav_attachments") ]), '', 'fav_build');

# Dump and restore
my $dump = $node->backup_dir . '/names.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ], 'restore');
my $state = "SELECT source, key, element, filter, levels, has, error_rate, share, active, complete $all";
is($node->safe_psql('restored', $state), $node->safe_psql('postgres', $state), 'the same attachments');
is($node->safe_psql('restored', 'SELECT count(*) FROM fav_attachments a, fav_verify(source) v WHERE v.missing > 0 OR v.stale > 0 OR v.elements <> 200 OR NOT a.active'), '0', 'and all is true');
$node->safe_psql('restored', q{
DO $$
DECLARE
	s regclass;
BEGIN
	FOR s IN SELECT source FROM fav_attachments LOOP PERFORM fav_detach(s); END LOOP;
END $$});
is($node->safe_psql('restored', q{SELECT count(*) FROM fav_attachments}), '0', 'detached');
is($node->safe_psql('restored', q{SELECT (SELECT count(*) FROM pg_class WHERE relname ~ '_fav(_levels)?$') + (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal)}), '0', 'nothing is left');

log_is_clean($node, 'no internal errors in the log');
done_testing();
