
# Rights and installation: by a database owner who is no superuser, into any schema,
# under a hostile search_path, moved, dropped and made again, and through every
# upgrade path there is.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('installation', bare => 1);

$node->safe_psql(
	'postgres', q{
CREATE ROLE owner LOGIN;
CREATE ROLE stranger LOGIN;
CREATE DATABASE owned OWNER owner;
});

sub as
{
	my ($role, $database, $sql) = @_;
	my ($status, $out, $error) = $node->psql($database, $sql, extra_params => [ '-U', $role ]);
	return $status == 0 ? $out : $error;
}

# What the extension consists of: all that the catalogs say, but oids.
my $objects = q{
SELECT pg_describe_object(d.classid, d.objid, 0) || coalesce(
	CASE d.classid
	WHEN 'pg_proc'::regclass THEN (SELECT format(' %s %s %s %s %s %s %s %s %s %s %s %s', prosrc, provolatile, proparallel, proisstrict,
			procost, prorows, prosupport::regproc, prorettype::regtype, proretset, pg_get_function_arguments(p.oid), prosecdef, proconfig)
		FROM pg_proc p WHERE p.oid = d.objid)
	WHEN 'pg_type'::regclass THEN (SELECT format(' %s %s %s %s %s %s', typlen, typstorage, typalign, typinput, typreceive, typcategory)
		FROM pg_type t WHERE t.oid = d.objid)
	WHEN 'pg_operator'::regclass THEN (SELECT format(' %s %s %s %s %s', oprcode, oprcom::regoperator, oprnegate::regoperator, oprrest, oprjoin)
		FROM pg_operator o WHERE o.oid = d.objid)
	WHEN 'pg_class'::regclass THEN (SELECT format(' %s %s %s', relkind, relpersistence,
			(SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
				FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped))
		FROM pg_class c WHERE c.oid = d.objid)
	END, '') || ' ' || coalesce(obj_description(d.objid, d.classid::regclass::name), '-')
FROM pg_depend d
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fav')
ORDER BY 1};

# ---------------------------------------------------------------------------------
# Who may
# ---------------------------------------------------------------------------------

like(as('stranger', 'owned', 'CREATE EXTENSION fav'), qr/permission denied/, 'not everybody may install it');
is(as('owner', 'owned', 'CREATE EXTENSION fav'), '', 'the owner of a database may, without being superuser');
is( as('stranger', 'owned', "SELECT fav_contains(fav_add(NULL, 'x'), 'x'), fav_count(fav_new() + 1 + 2)"),
	't|2', 'everybody may use it');
is( as('owner', 'owned', q{
SELECT count(*) FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND p.prosecdef AND p.proconfig IS NULL}),
	'0', 'no function runs with other rights under a search_path of the caller');
is( as('owner', 'owned', q{
SELECT string_agg(pg_describe_object(d.classid, d.objid, 0), ', ') FROM pg_depend d
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fav')
	AND d.classid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)
	AND NOT EXISTS (SELECT FROM pg_type t WHERE t.oid = d.objid AND t.typcategory IN ('A', 'C'))
	AND obj_description(d.objid, d.classid::regclass::name) IS NULL}),
	'', 'every object has a comment');

# Filters that maintain themselves write into tables of their owner; nobody else may
# have that done.
is( as('owner', 'owned', q{
CREATE TABLE pairs (who bigint, what bigint, PRIMARY KEY (who, what));
INSERT INTO pairs SELECT i % 10, i FROM generate_series(1, 1000) i;
SELECT fav_attach('pairs', 'who', 'what');
SELECT keys, elements, missing FROM fav_verify('pairs')}),
	"pairs_fav\n10|1000|0", 'the owner of tables attaches filters');
my %forbidden = (
	'attach a table of others' => q{SELECT fav_attach('pairs', 'who', 'what')},
	'detach it' => q{SELECT fav_detach('pairs')},
	'rebuild its filters' => q{SELECT fav_rebuild('pairs')},
	'verify them' => q{SELECT fav_verify('pairs')},
	'read them' => q{SELECT filter FROM pairs_fav},
	'read their levels' => q{SELECT recent FROM pairs_fav_levels},
	'change them' => q{UPDATE pairs_fav_levels SET recent = fav_new()},
	'forget them' => q{DELETE FROM pairs_fav_levels});
foreach my $what (sort keys %forbidden)
{
	like(as('stranger', 'owned', $forbidden{$what}), qr/must be owner|permission denied/, "a stranger cannot $what");
}
$node->safe_psql('owned', 'CREATE SCHEMA stranger AUTHORIZATION stranger');
foreach my $trigger ('BEFORE INSERT ON stranger.t FOR EACH ROW', 'AFTER INSERT ON stranger.t FOR EACH ROW',
	'AFTER INSERT ON stranger.t FOR EACH STATEMENT', 'BEFORE INSERT ON stranger.t FOR EACH STATEMENT',
	'AFTER INSERT ON stranger.t REFERENCING NEW TABLE AS fav_new FOR EACH STATEMENT')
{
	foreach my $call (map { my $function = $_; map { "$function($_)" } '', "'1'", "'7', 'public.pairs', 'x'", "'public.pairs'", "'pairs_fav'" }
		'fav_collect', 'fav_reconcile')
	{
		my $result = as('stranger', 'owned', qq{
DROP TABLE IF EXISTS stranger.t;
CREATE TABLE stranger.t (who bigint, what bigint);
CREATE TRIGGER t $trigger EXECUTE FUNCTION public.$call;
INSERT INTO stranger.t VALUES (1, 1)});
		like($result, qr/^$|NOTICE|ERROR/, "a trigger of a stranger's own, $trigger $call, does no harm");
		unlike($result, qr/server closed|connection to server/, 'the server is up');
	}
}

is( as('owner', 'owned', q{
SELECT keys, elements, missing FROM fav_verify('pairs');
DO $$ BEGIN PERFORM fav_detach('pairs'); END $$;
DROP TABLE pairs}),
	'10|1000|0', 'nothing happened to the filters');
$node->safe_psql('owned', 'DROP SCHEMA stranger CASCADE');

# ---------------------------------------------------------------------------------
# Drop, and make again
# ---------------------------------------------------------------------------------

my $first = as('owner', 'owned', $objects);
cmp_ok(scalar(split /\n/, $first), '>', 100, 'the catalogs know what belongs to it');
is( as('owner', 'owned', 'CREATE TABLE kept (f fav); INSERT INTO kept SELECT fav_add(NULL, 1)'), '', 'a table uses it');
like(as('owner', 'owned', 'DROP EXTENSION fav'), qr/cannot drop extension fav because other objects depend on it/,
	'not dropped from under a table');
is(as('owner', 'owned', 'DROP TABLE kept; DROP EXTENSION fav'), '', 'dropped');
is( as('owner', 'owned', q{
SELECT count(*) FROM pg_proc WHERE proname LIKE 'fav%' UNION ALL
SELECT count(*) FROM pg_type WHERE typname LIKE '%fav%' UNION ALL
SELECT count(*) FROM pg_class WHERE relname LIKE 'fav%'}),
	"0\n0\n0", 'nothing is left behind');
is(as('owner', 'owned', 'CREATE EXTENSION fav'), '', 'made again');
is(as('owner', 'owned', $objects), $first, 'it is the same as before');
is(as('owner', 'owned', 'DROP EXTENSION fav'), '', 'dropped again');

# ---------------------------------------------------------------------------------
# Another schema, hostile neighbours
# ---------------------------------------------------------------------------------

# Whoever may create objects in a schema of the search_path may put functions and
# operators there that look like ours and like PostgreSQL's own.
$node->safe_psql(
	'owned', q{
CREATE SCHEMA evil;
GRANT ALL ON SCHEMA evil TO PUBLIC;
CREATE TABLE evil.stolen (what text);
GRANT ALL ON evil.stolen TO PUBLIC;
});
my $traps = join(
	"\n",
	map {
		my ($name, $arguments, $result) = @$_;
		"CREATE FUNCTION evil.$name($arguments) RETURNS $result LANGUAGE plpgsql AS
		\$\$ BEGIN INSERT INTO evil.stolen VALUES ('$name'); RETURN NULL; END \$\$;"
	} ([ 'fav_contains', 'anyelement, bigint', 'boolean' ], [ 'format', 'text, bigint', 'text' ],
		[ 'array_agg', 'bigint', 'bigint[]' ], [ 'quote_ident', 'name', 'text' ], [ 'now', '', 'timestamptz' ],
		[ 'format', 'text, name', 'text' ], [ 'count', 'bigint', 'bigint' ], [ 'eq', 'text, name', 'boolean' ]));
as('stranger', 'owned', $traps . q{
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = name, FUNCTION = evil.eq);
CREATE TYPE evil.fav AS (x int);
});
is( as('owner', 'owned', q{
SET search_path = evil, pg_catalog;
CREATE SCHEMA filters;
CREATE EXTENSION fav SCHEMA filters}),
	'', 'installed into a schema of its own, under a hostile search_path');
is( as('owner', 'owned', q{
SET search_path = evil, pg_catalog;
SELECT n.nspname, count(*) FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fav')
GROUP BY 1}) =~ /^filters\|\d+$/ ? 1 : 0,
	1, 'all of it is in that schema');

my $use = q{
SELECT S.fav_contains(S.fav_add(NULL::S.fav, 5), 5), S.fav_add(NULL, 5) OPERATOR(S.@>) 5::bigint,
	5::bigint OPERATOR(S.<@) S.fav_add(NULL, 5),
	S.fav_filter(S.fav_add(NULL, ARRAY[1, 2]::bigint[]), ARRAY[1, 2, 3]::bigint[]),
	(S.fav_stats(S.fav_new(5000))).capacity, S.fav_count(S.fav_union(S.fav_add(NULL, 1), S.fav_add(NULL, 2))),
	(SELECT S.fav_count(S.fav_agg(i)) FROM generate_series(1::bigint, 100) i),
	(SELECT count(*) FROM generate_series(1::bigint, 10) i WHERE S.fav_contains(S.fav_add(NULL, 5), i)),
	(S.fav_add(NULL, 'x') OPERATOR(S.||) S.fav_add(NULL, 'y')) OPERATOR(S.@>) 'y'
};
my $expected = 't|t|t|{3}|5000|2|100|1|t';
foreach my $path ('evil, pg_catalog', 'pg_catalog', "''")
{
	(my $query = $use) =~ s/\bS\./filters./g;
	is(as('owner', 'owned', "SET search_path = $path; $query"), $expected, "used under search_path $path");
}

# ---------------------------------------------------------------------------------
# Moved to another schema
# ---------------------------------------------------------------------------------

is( as('owner', 'owned', q{
CREATE TABLE moved (id int, f filters.fav);
INSERT INTO moved SELECT 1, filters.fav_agg(i) FROM generate_series(1::bigint, 10000) i;
CREATE VIEW visible AS SELECT i FROM generate_series(9990::bigint, 10010) i, moved m WHERE NOT filters.fav_contains(m.f, i);
CREATE INDEX ON moved (filters.fav_count(f));
ALTER TABLE moved ADD CHECK (NOT filters.fav_contains(f, 0));
CREATE TABLE pairs (who bigint, what bigint);
DO $$ BEGIN PERFORM filters.fav_attach('public.pairs', 'who', 'what'); END $$;
INSERT INTO pairs VALUES (1, 1), (1, 2);
CREATE SCHEMA elsewhere}), '', 'a table, a view, an index, a check and an attachment use it');

# The objects of a trusted extension belong to the superuser, as with PostgreSQL's own.
$node->safe_psql('owned', 'SET search_path = evil; ALTER EXTENSION fav SET SCHEMA elsewhere');
(my $query = $use) =~ s/\bS\./elsewhere./g;
is(as('owner', 'owned', "SET search_path = evil, pg_catalog; $query"), $expected, 'used there');
is( as('owner', 'owned', 'SET search_path = public; SELECT count(*) FROM visible; UPDATE moved SET f = elsewhere.fav_add(f, 10001); SELECT count(*) FROM visible'),
	"10\n9", 'views, indexes and checks went along');
is( as('owner', 'owned', "SELECT nspname FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE typname = '_fav' AND nspname <> 'evil'"),
	'elsewhere', 'so did the array type');
is( as('owner', 'owned', q{
SET search_path = evil, pg_catalog;
INSERT INTO public.pairs SELECT i % 3, i FROM pg_catalog.generate_series(10, 400) i;
DELETE FROM public.pairs WHERE what = 1;
UPDATE public.pairs SET what = what + 1000 WHERE what % 7 = 0;
SELECT elements, missing FROM elsewhere.fav_verify('public.pairs');
SELECT active FROM elsewhere.fav_attachments;
DO $$ BEGIN PERFORM elsewhere.fav_rebuild('public.pairs'); PERFORM elsewhere.fav_detach('public.pairs');
	PERFORM elsewhere.fav_attach('public.pairs', 'who', 'what'); END $$;
SELECT elements, missing FROM elsewhere.fav_verify('public.pairs')}),
	"392|0\nt\n392|0", 'so did what is attached, under a hostile search_path');
is($node->safe_psql('owned', 'SELECT count(*) FROM evil.stolen'), '0', 'no function of the stranger was called');
is(as('owner', 'owned', 'DROP EXTENSION fav CASCADE; SELECT count(*) FROM moved') =~ /1$/ ? 1 : 0, 1, 'dropped with all that uses it');

# ---------------------------------------------------------------------------------
# Every upgrade path
# ---------------------------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE upgraded');
my @versions = split /\n/,
  $node->safe_psql('postgres', "SELECT version FROM pg_available_extension_versions WHERE name = 'fav' ORDER BY 1");
my ($default) = $node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'fav'");
ok((grep { $_ eq $default } @versions), "version $default can be installed");

my %fresh;
foreach my $version (@versions)
{
	$node->safe_psql('upgraded', "CREATE EXTENSION fav VERSION '$version'");
	$fresh{$version} = $node->safe_psql('upgraded', $objects);
	$node->safe_psql('upgraded', 'DROP EXTENSION fav');
}
my @paths = split /\n/,
  $node->safe_psql('postgres', q{SELECT source || ' ' || target FROM pg_extension_update_paths('fav') WHERE path IS NOT NULL});
foreach my $path (@paths)
{
	my ($from, $to) = split / /, $path;

	# a path may begin at a version that is no longer shipped as a whole
	next unless $fresh{$from};
	$node->safe_psql('upgraded', "CREATE EXTENSION fav VERSION '$from'; ALTER EXTENSION fav UPDATE TO '$to'");
	is($node->safe_psql('upgraded', $objects), $fresh{$to}, "from $from to $to: as installed afresh");
	$node->safe_psql('upgraded', 'DROP EXTENSION fav');
}
is(scalar(grep { !$fresh{$_} } map { (split / /)[1] } @paths), 0, scalar(@paths) . ' upgrade paths walked');

log_is_clean($node, 'the log shows ordinary errors only');
$node->stop;
done_testing();
