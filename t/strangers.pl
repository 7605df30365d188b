
# A stranger who may create objects in the schemas of the extension and of the source makes an
# overload or a look-alike of everything that the extension has, uses or makes: before a table is
# attached, and after every step.  Nobody else ever runs the stranger's code.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_node('strangers', bare => 1, conf => 'max_locks_per_transaction = 500');

$node->safe_psql(
	'postgres', q{
CREATE ROLE stranger;
CREATE ROLE owner;
CREATE ROLE writer;
CREATE SCHEMA home;
CREATE SCHEMA yard;
CREATE SCHEMA evil AUTHORIZATION stranger;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
GRANT ALL ON SCHEMA home, yard TO owner, writer, stranger;
CREATE EXTENSION fav SCHEMA home;
SET ROLE owner;
CREATE TABLE yard.pairs (k bigint, e bigint, PRIMARY KEY (k, e));
CREATE TABLE yard.texts (k int, e text, PRIMARY KEY (k, e));
CREATE TABLE yard.parts (k int, e int) PARTITION BY LIST (k);
CREATE TABLE yard.part PARTITION OF yard.parts FOR VALUES IN (1);
CREATE TABLE yard.rest PARTITION OF yard.parts DEFAULT;
CREATE INDEX ON yard.parts (k, e);
CREATE TABLE yard.seen (k bigint, e bigint);
GRANT ALL ON ALL TABLES IN SCHEMA yard TO writer;
INSERT INTO yard.pairs SELECT i % 3, i FROM generate_series(1, 1000) i;

SET ROLE stranger;
CREATE TABLE evil.log (who name, what text);
GRANT INSERT ON evil.log TO PUBLIC;
CREATE FUNCTION evil.note(what text) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO evil.log VALUES (current_user, what); RETURN true; END $$;
CREATE TABLE evil.failed (command text, message text);
-- Not everything can be made, and little of it for a second time.
CREATE PROCEDURE evil.try(command text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
EXCEPTION WHEN others THEN
	INSERT INTO evil.failed VALUES (command, SQLERRM);
END $$;

-- What competes with arguments of a type: what literals have, what casts to it, what it casts to, what it is made of
CREATE FUNCTION evil.competitors(type regtype) RETURNS text[] LANGUAGE sql AS $$
	SELECT CASE type::text
		WHEN 'bigint' THEN '{integer,smallint,numeric,evil.big,anyelement,text}'::text[]
		WHEN 'integer' THEN '{bigint,smallint,evil.small,anyelement}'
		WHEN 'double precision' THEN '{numeric,real,integer,text}'
		WHEN 'text' THEN '{varchar,name,evil.word,anyelement,"char"}'
		WHEN 'name' THEN '{text,varchar}'
		WHEN 'regclass' THEN '{oid,text,bigint,evil.class}'
		WHEN 'record' THEN '{anyelement,evil.pair}' || ARRAY(SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace = 'yard'::regnamespace)
		WHEN 'boolean' THEN '{text,integer,evil.flag}'
		WHEN 'interval' THEN '{text,time}'
		WHEN 'home.fav' THEN '{anyelement,bytea,text}' || ARRAY(SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relname LIKE '%levels')
		WHEN 'bigint[]' THEN '{integer[],anyarray}'
		ELSE '{anyelement}'
	END $$;
CREATE DOMAIN evil.big AS bigint CHECK (evil.note('domain big'));
CREATE DOMAIN evil.small AS int CHECK (evil.note('domain small'));
CREATE DOMAIN evil.word AS text CHECK (evil.note('domain word'));
CREATE DOMAIN evil.class AS regclass CHECK (evil.note('domain class'));
CREATE DOMAIN evil.flag AS boolean CHECK (evil.note('domain flag'));
CREATE TYPE evil.pair AS (k bigint, e bigint);

CREATE PROCEDURE evil.overload(schema text, function text, types text[], result text) LANGUAGE plpgsql AS $$
BEGIN
	CALL evil.try(format('CREATE FUNCTION %s.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', schema, function, array_to_string(types, ', '),
		CASE WHEN result ~ '^(any|record|internal|trigger|void)' THEN 'boolean' ELSE result END,
		format('BEGIN PERFORM evil.note(%L); RETURN NULL; END', format('%s.%s(%s)', schema, function, array_to_string(types, ', ')))));
END $$;

-- All of it, for whatever is there by now
CREATE PROCEDURE evil.strike() LANGUAGE plpgsql AS $$
DECLARE
	f record;
	n int;
	t text;
	s text;
	types text[];
	alias text;
BEGIN
	-- functions of the extension, those that it has made, and those of PostgreSQL that it uses
	FOR f IN SELECT p.proname, p.prorettype::regtype::text AS result, ARRAY(SELECT u.t::regtype::text FROM unnest(p.proargtypes) WITH ORDINALITY u(t, i) ORDER BY u.i) AS types
		FROM pg_proc p WHERE p.proowner <> 'stranger'::regrole AND (p.pronamespace IN ('home'::regnamespace, 'yard'::regnamespace) OR p.pronamespace = 'pg_catalog'::regnamespace
			AND p.proname IN ('count', 'sum', 'avg', 'concat', 'md5', 'decode', 'hashint8extended', 'generate_series', 'unnest', 'random', 'pg_total_relation_size', 'now'))
			AND NOT 'internal'::regtype = ANY (p.proargtypes) AND NOT 'cstring'::regtype = ANY (p.proargtypes) LOOP
		FOREACH s IN ARRAY '{home,yard}'::text[] LOOP
			CALL evil.overload(s, f.proname, f.types, f.result);
			CALL evil.overload(s, f.proname, '{VARIADIC anyarray}', f.result);
			types := '{}';
			FOR n IN 1 .. cardinality(f.types) LOOP
				types := types || (evil.competitors(f.types[n]::regtype))[1];
				FOREACH t IN ARRAY evil.competitors(f.types[n]::regtype) LOOP
					CALL evil.overload(s, f.proname, f.types[: n - 1] || t || f.types[n + 1 :], f.result);
				END LOOP;
			END LOOP;
			CALL evil.overload(s, f.proname, types, f.result);
		END LOOP;
	END LOOP;
	-- operators
	FOREACH t IN ARRAY '{smallint,integer,bigint,text,varchar,tid,xid,oid,boolean,home.fav}'::text[] LOOP
		CALL evil.try(format('CREATE FUNCTION evil.compare(%s, %1$s) RETURNS boolean LANGUAGE plpgsql AS %L', t, format('BEGIN RETURN evil.note(%L); END', 'operator of ' || t)));
		FOREACH s IN ARRAY '{home,yard}'::text[] LOOP
			FOREACH alias IN ARRAY '{=,<>,<,>,<=,>=,@>,<@,/}'::text[] LOOP
				CALL evil.try(format('CREATE OPERATOR %s.%s (LEFTARG = %s, RIGHTARG = %3$s, FUNCTION = evil.compare)', s, alias, t));
			END LOOP;
		END LOOP;
	END LOOP;
	-- types and relations
	FOREACH t IN ARRAY '{int2,int4,int8,bigint,text,bool,regclass,float8,name,bytea,tid,xid,fav,record}'::text[] LOOP
		CALL evil.try(format('CREATE DOMAIN yard.%I AS pg_catalog.int8 CHECK (evil.note(%L))', t, 'type ' || t));
		CALL evil.try(format('CREATE DOMAIN home.%I AS pg_catalog.int8 CHECK (evil.note(%L))', t, 'type ' || t));
	END LOOP;
	FOREACH t IN ARRAY '{s,r,l,u,g,k,a,b,c,p,q,pg_class,pg_trigger,pg_proc,pairs_fav_levels_pkey}'::text[] LOOP
		FOREACH s IN ARRAY '{home,yard}'::text[] LOOP
			CALL evil.try(format('CREATE VIEW %s.%I AS SELECT evil.note(%L) AS k', s, t, 'view ' || t));
		END LOOP;
	END LOOP;
	-- look-alikes of what is attached
	FOR f IN SELECT c.oid::regclass::text AS levels, split_part(relname, '_fav_', 1) AS source FROM pg_class c WHERE relnamespace = 'yard'::regnamespace AND relname LIKE '%fav\_levels' LOOP
		CALL evil.try(format('CREATE FUNCTION yard.%s_has_too(bigint, bigint) RETURNS boolean LANGUAGE sql RETURN home.fav_has(%L::regclass, ROW($1, $2), true, true)', f.source, f.levels));
		CALL evil.try(format('CREATE VIEW yard.%s_too AS SELECT l.k, home.fav_stack(l.base, l.middle, l.recent) AS filter FROM %s l WHERE %L::regclass IS NOT NULL', f.source, f.levels, 'yard.' || f.source));
		CALL evil.try(format('CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON yard.%s_too FOR EACH ROW EXECUTE FUNCTION home.fav_refuse_write()', f.source));
		CALL evil.try(format('CREATE TABLE yard.%s_copy (k bigint, e bigint)', f.source));
		CALL evil.try(format('CREATE TABLE yard.%s_levels (k bigint, base home.fav, middle home.fav, recent home.fav DEFAULT home.fav_recent(%L::regclass, 0.01, 0, 0))', f.source, 'yard.' || f.source));
		CALL evil.try(format('CREATE TRIGGER evil AFTER INSERT ON yard.%s_copy FOR EACH ROW WHEN (%L::regclass IS NOT NULL AND NEW.k IS NOT NULL AND NEW.e IS NOT NULL) EXECUTE FUNCTION home.fav_collect()', f.source, f.levels));
		CALL evil.try(format('CREATE TRIGGER evil AFTER INSERT ON yard.%s_copy WHEN (%L::regclass IS NOT NULL) EXECUTE FUNCTION home.fav_reconcile()', f.source, f.levels));
		CALL evil.try(format('INSERT INTO yard.%s_copy VALUES (1, 4711)', f.source));
	END LOOP;
END $$;
});

my $struck = 0;

# What somebody does, with the stranger's objects ahead of PostgreSQL's in the search_path; the
# stranger strikes before.  Every name and literal here is typed, so only the extension's count.
sub step
{
	my ($who, $what, $expected) = @_;
	my ($out, $error) = ('', '');

	$node->safe_psql('postgres', 'SET ROLE stranger; CALL evil.strike()');
	$struck = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_proc WHERE proowner = 'stranger'::regrole});
	$node->psql('postgres', "SET client_min_messages = error;\nSET ROLE $who;\nSET search_path = yard, home, pg_catalog;\n$what",
		stdout => \$out, stderr => \$error);
	is("$error$out", $expected // '', "$who: $what");
	is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT format('%s ran %s', who, what), E'\n') FROM evil.log WHERE who <> 'stranger'}),
		'', "... and nobody ran the stranger's code");
	return;
}

sub attach
{
	my ($source, $share, $build) = @_;

	return "DO \$\$ BEGIN PERFORM home.fav_attach('yard.$source'::pg_catalog.regclass, 'k'::pg_catalog.name, 'e'::pg_catalog.name, '0.01'::pg_catalog.float8, $share"
	  . "::pg_catalog.int4, '7'::pg_catalog.int8, NULL::pg_catalog.name, true::pg_catalog.bool, $build\::pg_catalog.bool); END \$\$";
}

sub regclass
{
	return "'yard.$_[0]'::pg_catalog.regclass";
}

my $no_name = 'NULL::pg_catalog.name';
my $state = "SELECT a.source::pg_catalog.text, a.active, a.complete FROM home.fav_attachments a";

sub verify
{
	my ($source, $expected) = @_;

	step('owner', "SELECT v.keys, v.elements, v.missing, v.stale FROM home.fav_verify(" . regclass($source) . ", $no_name) v", $expected);
	return;
}

step('owner', attach('pairs', 'NULL', 'false'));
step('postgres', $state, 'pairs|t|f');
step('owner', 'CALL home.fav_build(' . regclass('pairs') . ", $no_name, false::pg_catalog.bool)");
step('postgres', $state, 'pairs|t|t');
step('writer', "INSERT INTO yard.pairs VALUES ('1'::pg_catalog.int8, '5000'::pg_catalog.int8), ('9'::pg_catalog.int8, '1'::pg_catalog.int8)");
step('writer', "DELETE FROM yard.pairs WHERE e OPERATOR(pg_catalog.<) '11'::pg_catalog.int8");
step('writer', "UPDATE yard.pairs SET e = '6000'::pg_catalog.int8 WHERE e OPERATOR(pg_catalog.=) '5000'::pg_catalog.int8");
my $has = "SELECT yard.pairs_has('1'::pg_catalog.int8, '6000'::pg_catalog.int8), yard.pairs_has('1'::pg_catalog.int8, '5000'::pg_catalog.int8)";
step('writer', $has, 't|f');
step('postgres', $has, 't|f');
step('postgres', "SELECT pg_catalog.count(*) FROM yard.pairs p WHERE yard.pairs_has(p.k, p.e)", '991');
step('postgres', 'SELECT pg_catalog.count(*) FROM yard.pairs_fav f WHERE f.filter IS NOT NULL', '4');
step('owner', 'SELECT s.keys FROM home.fav_attachment_stats(' . regclass('pairs') . ", $no_name) s", '4');
verify('pairs', '3|991|0|0');
step('owner', 'DO $$ BEGIN PERFORM home.fav_rebuild(' . regclass('pairs') . ", '1'::pg_catalog.text, $no_name); END \$\$");
step('postgres', 'DO $$ BEGIN PERFORM home.fav_rebuild(' . regclass('pairs') . ", NULL::pg_catalog.text, $no_name); END \$\$");
step('postgres', 'CALL home.fav_build(' . regclass('pairs') . ", $no_name, true::pg_catalog.bool)");
verify('pairs', '3|991|0|0');
step('postgres', attach('texts', 'NULL', 'true'));
step('writer', "INSERT INTO yard.texts VALUES ('1'::pg_catalog.int4, 'a'::pg_catalog.text), ('1'::pg_catalog.int4, 'b'::pg_catalog.text)");
step('writer', "DELETE FROM yard.texts WHERE e OPERATOR(pg_catalog.=) 'a'::pg_catalog.text");
step('postgres', "SELECT yard.texts_has('1'::pg_catalog.int8, 'b'::pg_catalog.text), yard.texts_has('1'::pg_catalog.int8, 'a'::pg_catalog.text)", 't|f');
verify('texts', '1|1|0|0');
step('owner', attach('parts', "'4'", 'true'));
step('writer', "INSERT INTO yard.parts SELECT '1'::pg_catalog.int4, i FROM pg_catalog.generate_series('1'::pg_catalog.int4, '300'::pg_catalog.int4) i");
step('writer', "DELETE FROM yard.parts WHERE e OPERATOR(pg_catalog.<) '100'::pg_catalog.int4");
step('postgres', "SELECT yard.parts_has('1'::pg_catalog.int8, '200'::pg_catalog.int8), yard.parts_has('1'::pg_catalog.int8, '50'::pg_catalog.int8)", 't|f');
verify('parts', '1|201|0|0');
step('writer', 'TRUNCATE yard.rest');
step('postgres', 'TRUNCATE yard.parts');
step('owner', 'DO $$ BEGIN PERFORM home.fav_sink(' . regclass('seen') . ", 'k'::pg_catalog.name, 'e'::pg_catalog.name, '30 days'::pg_catalog.interval, $no_name, '0.01'::pg_catalog.float8); END \$\$");
step('writer', "INSERT INTO yard.seen SELECT '1'::pg_catalog.int8, i FROM pg_catalog.generate_series('1'::pg_catalog.int8, '2000'::pg_catalog.int8) i");
step('postgres', "SELECT yard.seen_has('1'::pg_catalog.int8, '2000'::pg_catalog.int8), yard.seen_has('2'::pg_catalog.int8, '1'::pg_catalog.int8)", 't|f');
step('writer', "SELECT yard.seen_add('1'::pg_catalog.int8, ARRAY['2000'::pg_catalog.int8, '6000'::pg_catalog.int8])", '{6000}');
step('writer', "DO \$\$ BEGIN PERFORM yard.seen_remove('1'::pg_catalog.int8, ARRAY['6000'::pg_catalog.int8], false::pg_catalog.bool); END \$\$");
step('postgres', "SELECT yard.seen_has('1'::pg_catalog.int8, '6000'::pg_catalog.int8)", 'f');
step('postgres', 'SELECT pg_catalog.count(*) FROM yard.seen_fav f WHERE f.filter IS NOT NULL', '1');
step('postgres', "$state ORDER BY a.source::pg_catalog.text COLLATE pg_catalog.\"C\" USING OPERATOR(pg_catalog.<)", "pairs|t|t\nparts|t|t\nseen|t|t\ntexts|t|t");
cmp_ok($struck, '>', 1000, 'there was much of it');

# Owners drop what they have, whatever the stranger has made of it.
$node->safe_psql('postgres', q{
SET client_min_messages = error;
DROP OWNED BY stranger CASCADE;
});
foreach my $source ('pairs', 'texts', 'parts', 'seen')
{
	$node->safe_psql('postgres', "SET client_min_messages = error; SET ROLE owner; SET search_path = home; SELECT fav_detach('yard.$source')");
}
is($node->safe_psql('postgres', q{SELECT string_agg(relname, ' ') FROM pg_class WHERE relname ~ '_fav' AND relkind IN ('r', 'v')}), '', 'nothing is left');
log_is_clean($node, 'no internal errors in the log');
done_testing();
