
# Rights and installation: by a database owner who is not a superuser, into any schema, under a
# hostile search_path, moved, dropped and created again, and through every upgrade path.

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

# All objects of the extension, as the catalogs describe them, without oids.
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
# Rights
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

# The tables of attached filters belong to the owner of the source.  Other users have no rights
# on them, and need none to write the source.
is( as('owner', 'owned', q{
CREATE TABLE pairs (who bigint, what bigint, PRIMARY KEY (who, what));
INSERT INTO pairs SELECT i % 10, i FROM generate_series(1, 1000) i;
SELECT fav_attach('pairs', 'who', 'what');
SELECT keys, elements, missing, stale FROM fav_verify('pairs')}),
	"pairs_has(bigint,bigint)\n10|1000|0|0", 'the owner of tables attaches filters');
my %forbidden = (
	'attach a table of others' => q{SELECT fav_attach('pairs', 'who', 'what', name => 'mine')},
	'detach it' => q{SELECT fav_detach('pairs')},
	'rebuild its filters' => q{SELECT fav_rebuild('pairs')},
	'rebuild one of them' => q{SELECT fav_rebuild('pairs', '1')},
	'verify them' => q{SELECT fav_verify('pairs')},
	'ask for their sizes' => q{SELECT fav_attachment_stats('pairs')},
	'ask them' => q{SELECT pairs_has(1, 1)},
	'ask them in a query' => q{SELECT count(*) FROM generate_series(1, 10) i WHERE pairs_has(1, i)},
	'read them' => q{SELECT * FROM pairs_fav},
	'read their levels' => q{SELECT * FROM pairs_fav_levels},
	'write them' => q{UPDATE pairs_fav_levels SET base = '\x01'},
	'attach it by hand' => q{
CREATE TRIGGER t AFTER INSERT ON pairs FOR EACH ROW WHEN ('pairs_fav_levels'::regclass IS NOT NULL
	AND NEW.what IS NOT NULL AND NEW.who IS NOT NULL) EXECUTE FUNCTION fav_collect()});
foreach my $what (sort keys %forbidden)
{
	like(as('stranger', 'owned', $forbidden{$what}), qr/must be owner|permission denied/, "a stranger cannot $what");
}
is(as('stranger', 'owned', 'SELECT source, filter, active FROM fav_attachments'), 'pairs|pairs_fav|t', 'but may see that they are there');
as('owner', 'owned', 'GRANT INSERT, DELETE ON pairs TO stranger; GRANT SELECT (what) ON pairs TO stranger');
is(as('stranger', 'owned', 'INSERT INTO pairs VALUES (1, 5000); DELETE FROM pairs WHERE what = 7'), '', 'a stranger who may writes the source');
is( as('owner', 'owned', q{
SELECT keys, elements, missing, stale FROM fav_verify('pairs');
SELECT pairs_has(1, 5000), pairs_has(7, 7);
REVOKE ALL ON pairs FROM stranger; REVOKE SELECT (what) ON pairs FROM stranger}),
	"10|1000|0|0\nt|f", 'and the filters follow');

# Any user may create our triggers on their own tables, because a restore does that.  A forged
# trigger does no harm to a user who fires it or lists it, and cannot reach filters of others.
my $filters = q{SELECT md5(string_agg(l::text, ' ' ORDER BY who)) FROM pairs_fav_levels l};
my $before = as('owner', 'owned', $filters);
$node->safe_psql('owned', 'CREATE SCHEMA stranger AUTHORIZATION stranger');
my $mine = q{'stranger.l'::regclass IS NOT NULL};
my $yours = q{'public.pairs_fav_levels'::regclass IS NOT NULL};
my $columns = 'NEW.who IS NOT NULL AND NEW.what IS NOT NULL';
my $as_made = [ "ROW WHEN ($mine AND $columns)", 'fav_collect()' ];
my $honest = q{fav_recent('stranger.t', '0.01', '0', '0')};

# A trigger, the default of recent in the levels table, and the result of fav_verify.
my %forged = (
	'as it should be' => [ @$as_made, $honest, qr/^1\|1\|0\|0$/ ],
	'for filters of others' => [ "ROW WHEN ($yours AND $columns)", 'fav_collect()', $honest, qr/no attached filters/ ],
	'for a source of others' => [ @$as_made, q{fav_recent('pairs', '0.01', '0', '0')}, qr/no attached filters/ ],
	'for a source that is not there' => [ @$as_made, q{fav_recent(4000000001::oid::regclass, '0.01', '0', '0')}, qr/no attached filters/ ],
	'for no source' => [ @$as_made, 'fav_new()', qr/no attached filters/ ],
	'for a source that changes' => [ @$as_made, q{fav_recent(CASE WHEN random() < 0.5 THEN 'stranger.t'::regclass END, '0.01', '0', '0')}, qr/no attached filters/ ],
	'for NULL' => [ @$as_made, q{fav_recent(NULL, '0.01', '0', '0')}, qr/no attached filters/ ],
	'with an impossible error rate' => [ @$as_made, q{fav_recent('stranger.t', 'nan', '0', '0')}, qr/ERROR/ ],
	'without a condition' => [ 'ROW', 'fav_collect()', $honest, qr/no attached filters/ ],
	'without columns' => [ "ROW WHEN ($mine)", 'fav_collect()', $honest, qr/no attached filters/ ],
	'without filters' => [ "ROW WHEN ($columns)", 'fav_collect()', $honest, qr/no attached filters/ ],
	'with one column' => [ "ROW WHEN ($mine AND NEW.who IS NOT NULL)", 'fav_collect()', $honest, qr/no attached filters/ ],
	'with two tables of filters' => [ "ROW WHEN ($mine AND $yours AND $columns)", 'fav_collect()', $honest, qr/no attached filters/ ],
	'with filters that are not there' => [ "ROW WHEN (4000000001::oid::regclass IS NOT NULL AND $columns)", 'fav_collect()', $honest, qr/no attached filters/ ],
	'with a system column as key' => [ "ROW WHEN ($mine AND NEW.tableoid IS NOT NULL AND NEW.what IS NOT NULL)", 'fav_collect()', $honest, qr/ERROR/ ],
	'with a system column as element' => [ "ROW WHEN ($mine AND NEW.who IS NOT NULL AND NEW.tableoid IS NOT NULL)", 'fav_collect()', $honest, qr/ERROR/ ],
	'with the row itself as key' => [ "ROW WHEN ($mine AND NEW IS NOT NULL AND $columns)", 'fav_collect()', $honest, qr/^1\|1\|\d\|\d$|ERROR/ ],
	'with another type of key' => [ "ROW WHEN ($mine AND NEW.note IS NOT NULL AND NEW.what IS NOT NULL)", 'fav_collect()', $honest, qr/does not have the columns/ ],
	'with a type that cannot be an element' => [ "ROW WHEN ($mine AND NEW.who IS NOT NULL AND NEW.at IS NOT NULL)", 'fav_collect()', $honest, qr/cannot be key and element/ ],
	'with the source as filters' => [ "ROW WHEN ('stranger.t'::regclass IS NOT NULL AND $columns)", 'fav_collect()', $honest, qr/no attached filters/ ],
	'with a view as filters' => [ "ROW WHEN ('stranger.v'::regclass IS NOT NULL AND $columns)", 'fav_collect()', $honest, qr/no attached filters/ ],
	'with a view that says it has filters' => [ "ROW WHEN ('stranger.v'::regclass IS NOT NULL AND $columns)", 'fav_collect()',
		q{fav_new(); ALTER VIEW stranger.v ALTER recent SET DEFAULT fav_recent('stranger.t', '0.01', '0', '0')}, qr/does not have the columns/ ],
	'with a catalog as filters' => [ "ROW WHEN ('pg_catalog.pg_class'::regclass IS NOT NULL AND $columns)", 'fav_collect()', $honest, qr/no attached filters/ ],
	'with arguments' => [ "ROW WHEN ($mine AND $columns)", "fav_collect('7', 'public.pairs', 'x')", $honest, qr/^1\|1\|0\|0$/ ],
	'for statements' => [ "STATEMENT WHEN ($mine)", 'fav_collect()', $honest, qr/ERROR/ ],
	'for rows, to reconcile' => [ "ROW WHEN ($mine AND $columns)", 'fav_reconcile()', $honest, qr/ERROR/ ],
	'to reconcile alone' => [ "STATEMENT WHEN ($mine)", 'fav_reconcile()', $honest, qr/lost its row triggers/ ],
	'to reconcile others' => [ "STATEMENT WHEN ($yours)", 'fav_reconcile()', $honest, qr/no attached filters/ ]);
foreach my $what (sort keys %forged)
{
	my ($trigger, $function, $default, $expected) = @{ $forged{$what} };

	as('stranger', 'owned', q{
SET client_min_messages = warning;
DROP TABLE IF EXISTS stranger.t CASCADE;
DROP TABLE IF EXISTS stranger.l CASCADE;
CREATE TABLE stranger.t (who bigint, what bigint, note text DEFAULT 'x', at timestamptz DEFAULT now());
CREATE TABLE stranger.l (who bigint PRIMARY KEY, base fav, middle fav, recent fav NOT NULL);
CREATE VIEW stranger.v AS SELECT who, base, middle, recent FROM stranger.l});
	is(as('stranger', 'owned', "ALTER TABLE stranger.l ALTER recent SET DEFAULT $default"), '', "filters of a stranger's own, $what");
	is(as('stranger', 'owned', "CREATE TRIGGER t AFTER INSERT ON stranger.t FOR EACH $trigger EXECUTE FUNCTION $function"),
		'', "a trigger of a stranger's own, $what");
	unlike(as($_, 'owned', 'INSERT INTO stranger.t VALUES (1, 1)'), qr/server closed|connection to server/, "fired by $_")
	  foreach ('stranger', $node->safe_psql('postgres', 'SELECT current_user'));
	as('stranger', 'owned', 'TRUNCATE stranger.l; DELETE FROM stranger.t; INSERT INTO stranger.t VALUES (1, 1)');
	like(as('stranger', 'owned', q{SELECT keys, elements, missing, stale FROM fav_verify('stranger.t')}), $expected, 'verified');
	unlike(as('stranger', 'owned', "SELECT $_('stranger.t')"), qr/server closed|connection to server/, $_)
	  foreach ('fav_attachment_stats', 'fav_rebuild', 'fav_detach');
	is($node->safe_psql('owned', q{SELECT count(*) FROM fav_attachments WHERE source = 'pairs'::regclass}), '1', 'the list can be read');
}
is(as('owner', 'owned', $filters), $before, 'nothing happened to the filters of others');
is( as('owner', 'owned', q{
SELECT keys, elements, missing, stale FROM fav_verify('pairs');
DO $$ BEGIN PERFORM fav_detach('pairs'); END $$;
DROP TABLE pairs;
SELECT count(*) FROM pg_class WHERE relname LIKE 'pairs%'}),
	"10|1000|0|0\n0", 'the owner detaches them, and nothing is left');
$node->safe_psql('owned', 'SET client_min_messages = warning; DROP SCHEMA stranger CASCADE');

# ---------------------------------------------------------------------------------
# Drop, and create again
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

# A user who may create objects in a schema of the search_path may create functions and operators
# there that look like ours and like PostgreSQL's own.
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
SELECT elements, missing, stale FROM elsewhere.fav_verify('public.pairs');
SELECT active FROM elsewhere.fav_attachments;
SELECT count(*) FROM public.pairs_fav WHERE filter OPERATOR(elsewhere.@>) 10;
DO $$ BEGIN PERFORM elsewhere.fav_rebuild('public.pairs'); PERFORM elsewhere.fav_detach('public.pairs');
	PERFORM elsewhere.fav_attach('public.pairs', 'who', 'what'); END $$;
SELECT elements, missing, stale FROM elsewhere.fav_verify('public.pairs');
SELECT public.pairs_has(1, 10)}),
	"392|0|0\nt\n1\n392|0|0\nt", 'so did what is attached, under a hostile search_path');
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

	# a path may begin at a version whose full script is no longer shipped
	next unless $fresh{$from};
	$node->safe_psql('upgraded', "CREATE EXTENSION fav VERSION '$from'; ALTER EXTENSION fav UPDATE TO '$to'");
	is($node->safe_psql('upgraded', $objects), $fresh{$to}, "from $from to $to: as installed afresh");
	$node->safe_psql('upgraded', 'DROP EXTENSION fav');
}
is(scalar(grep { !$fresh{$_} } map { (split / /)[1] } @paths), 0, scalar(@paths) . ' upgrade paths walked');

# ---------------------------------------------------------------------------------
# Another place (extension_control_path, PostgreSQL 18)
# ---------------------------------------------------------------------------------

SKIP:
{
	my $place = PostgreSQL::Test::Utils::tempdir_short();

	skip 'PostgreSQL 18 and later', 1 if $node->pg_version < 18;
	local @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
	delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
	system_or_bail('make', '-s', '-C', "$FindBin::RealBin/..", 'with_llvm=no', "PG_CONFIG=$ENV{PG_CONFIG}", 'install', "prefix=$place");

	# A library that is not among the server's own.
	system_or_bail('mv', "$place/lib/postgresql/fav.so", "$place/lib/postgresql/fav_elsewhere.so");
	system_or_bail('sed', '-i', 's/^module_pathname = .*/module_pathname = \'$libdir\/fav_elsewhere\'/', "$place/share/postgresql/extension/fav.control");
	$node->append_conf('postgresql.conf', qq{
extension_control_path = '$place/share/postgresql:\$system'
dynamic_library_path = '$place/lib/postgresql:\$libdir'
});
	$node->restart;
	$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
	is($node->safe_psql('elsewhere', 'CREATE EXTENSION fav; SELECT fav_count(fav_add(NULL, 1))'), '1', 'installed from another place');
}

log_is_clean($node, 'the log shows ordinary errors only');
$node->stop;
done_testing();
