
# Random statements of every kind in one session, on attached sources of every shape,
# with triggers that change the sources from within.  After every statement the test compares
# filter and source element by element, in both directions, and <name>_has with EXISTS: for all
# elements of the keys that changed, and for a grid of keys and elements in several shapes of
# query.
#
# The sources form three groups.  A statement, its triggers and its cascades stay within
# one group, so a comparison need not look at the others:
#   a  plain tables, with and without a unique key, one of them attached twice
#   b  partitions on two levels, and inheritance
#   c  foreign keys with all their actions
#
# Perl writes the statements of a run into one psql script before the run begins, and every
# statement starts from a random seed of its own.  So FAV_SEED repeats a run exactly, and
# the script, which stays beside the logs, can be cut down by hand.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $first_seed = $ENV{FAV_SEED} || (time ^ $$) % 1_000_000_000;
my $per_run = 500;
my $runs = effort() > 1 ? 20 * effort() : 6;

# Keys are numbered from 1.  The first two are large: their elements come from a domain of
# "large" elements.  The others have small domains.
my $keys = 12;
my $small = 60;

# An element is reported falsely this often, and the comparison probes every absent element
# of the large keys.
my $error_rate = 0.000001;

my $node = start_node('attach_nested', conf => "max_locks_per_transaction = 256\nmax_prepared_transactions = 2\n");
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# PL/Perl can end a statement after a number of rows.  Not every machine has it.
my $has_limit = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'plperl'});
note('no PL/Perl: no statements that end after a number of rows') if !$has_limit;

# ---------------------------------------------------------------------------------------
# The sources
# ---------------------------------------------------------------------------------------

# A piece is a table that statements name: the source, a partition or a child.  "only" says
# which pairs may be inserted there.  No statement trigger exists on a "late" piece, which
# became a partition after fav_attach.
my %source = (
	uniq => { group => 'a', key => 'int', element => 'bigint', large => 3000, unique => '(k, e)', pieces => [ {} ] },
	dups => { group => 'a', key => 'text', element => 'text', large => 400, nulls => 1, pieces => [ {} ] },
	parts => {
		group => 'b', key => 'int', element => 'bigint', large => 3000, unique => '(region, k, e)',
		pieces => [
			{},
			{ name => 'parts_1' },
			{ name => 'parts_2' },
			{ name => 'parts_2_low', only => 'k < 6' },
			{ name => 'parts_2_high', only => 'k >= 6' },
			{ name => 'parts_3', late => 1 },
			{ name => 'parts_4', late => 1 },
			{ name => 'parts_4_1', late => 1, only => q{satisfies_hash_partition('parts_4'::regclass, 2, 1, k)} },
			{ name => 'parts_default' },
		]
	},
	family => {
		group => 'b', key => 'bigint', element => 'uuid', large => 500, unique => '(k, e)',
		pieces => [ {}, { name => 'child_1' }, { name => 'child_2' }, { name => 'grandchild' } ]
	},
	likes => { group => 'c', key => 'int', element => 'bigint', large => 600, nulls => 1, refers => 1, pieces => [ {} ] },
	hides => {
		group => 'c', key => 'int', element => 'bigint', large => 600, unique => '(k, e)', refers => 1,
		pieces => [
			{},
			{ name => 'hides_0', only => q{satisfies_hash_partition('hides'::regclass, 2, 0, k)} },
			{ name => 'hides_1', only => q{satisfies_hash_partition('hides'::regclass, 2, 1, k)} },
		]
	},
	tree => { group => 'c', key => 'int', element => 'bigint', large => 300, nulls => 1, pieces => [ {} ] });
my @sources = sort keys %source;
my %group;
push @{ $group{ $source{$_}{group} } }, $_ foreach @sources;

# What is attached: a name, its source, its key column, the domain of its pairs, and how many
# keys share a filter.
my @attachments = map { { name => $_, view => "${_}_fav", source => $_, column => 'k', key => $source{$_}{key}, domain => "${_}_domain" } } @sources;
push @attachments, { name => 'by_note', view => 'by_note_fav', source => 'dups', column => 'note', key => 'int', domain => 'note_domain' };
my %share = (uniq => 3, parts => 5, likes => 7, hides => 4);
push @attachments, { name => "${_}_shared", view => "${_}_shared_fav", source => $_, column => 'k', key => 'bigint', domain => "${_}_domain", share => $share{$_} } foreach sort keys %share;

# Number i as a key or an element of each type, in SQL and as COPY reads it.  Text is long,
# so that a statement of some hundred rows collects more than the smallest work_mem.
my %in_sql = (
	int => '$1',
	bigint => '$1::bigint',
	text => q{'x' || rpad($1::text, 150, '.')},
	uuid => q{lpad(to_hex($1), 32, '0')::uuid});
my %in_copy = (
	int => sub { $_[0] },
	bigint => sub { $_[0] },
	text => sub { "x$_[0]" . '.' x (150 - length $_[0]) },
	uuid => sub { sprintf('%032x', $_[0]) });
my %hash = (
	bigint => 'hashint8extended',
	text => 'hashtextextended',
	uuid => 'uuid_hash_extended');

# The errors that a statement may end with, unless they speak of filters: in PL/pgSQL, and
# as psql shows them.  An error that passes through PL/Perl loses its SQLSTATE.
my $caught = q{EXCEPTION WHEN SQLSTATE 'P0099' OR integrity_constraint_violation OR cardinality_violation
	OR triggered_data_change_violation OR object_in_use THEN PERFORM let_pass(SQLERRM);};
my $expected = qr/ERROR:[ ]{2}(P0099|38000|23...|53400|21000|27000|55006|25P02|3B001|
	38000:[ ](duplicate[ ]key|new[ ]row|insert[ ]or[ ]update|null[ ]value|tuple[ ]to[ ]be|cannot[ ]TRUNCATE))/x;
my $of_filters = 'fav|levels|filter|_has';

my $schema = q{
CREATE TABLE users (id int PRIMARY KEY);
CREATE TABLE posts (id bigint PRIMARY KEY);

CREATE TABLE uniq (k int, e bigint, note int DEFAULT 0, PRIMARY KEY (k, e));
CREATE TABLE dups (k text, e text, note int DEFAULT floor(random() * 4));

-- Partitions have other column orders and dropped columns.
CREATE TABLE parts (region int DEFAULT 1 + floor(random() * 2), k int, e bigint, note int, UNIQUE (region, k, e)) PARTITION BY LIST (region);
CREATE TABLE parts_1 (gone_1 text, e bigint, note int, gone_2 int, k int, region int DEFAULT 1);
ALTER TABLE parts_1 DROP gone_1, DROP gone_2;
ALTER TABLE parts ATTACH PARTITION parts_1 FOR VALUES IN (1);
CREATE TABLE parts_2 (k int, gone int, region int DEFAULT 2, note int, e bigint) PARTITION BY RANGE (k);
ALTER TABLE parts_2 DROP gone;
CREATE TABLE parts_2_low (note int, gone bigint, e bigint, k int, region int DEFAULT 2);
ALTER TABLE parts_2_low DROP gone;
ALTER TABLE parts_2 ATTACH PARTITION parts_2_low FOR VALUES FROM (0) TO (6);
CREATE TABLE parts_2_high PARTITION OF parts_2 FOR VALUES FROM (6) TO (100);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
CREATE TABLE parts_default PARTITION OF parts (region DEFAULT 5) DEFAULT;

CREATE INDEX ON parts (k, e);

CREATE TABLE family (k bigint, e uuid, note int, PRIMARY KEY (k, e));
CREATE TABLE child_1 (more text, PRIMARY KEY (k, e)) INHERITS (family);
CREATE TABLE grandchild (still_more text, PRIMARY KEY (k, e)) INHERITS (child_1);
CREATE TABLE child_2 (note int, gone int, e uuid NOT NULL, gone_2 text, k bigint NOT NULL, UNIQUE (k, e));
ALTER TABLE child_2 DROP gone, DROP gone_2;
ALTER TABLE child_2 INHERIT family;

CREATE TABLE likes (k int REFERENCES users ON DELETE CASCADE ON UPDATE CASCADE, e bigint REFERENCES posts ON DELETE SET NULL ON UPDATE CASCADE, note int);
CREATE INDEX ON likes (k, e);
CREATE INDEX ON likes (e);
CREATE TABLE hides (note int, k int REFERENCES users ON DELETE CASCADE ON UPDATE CASCADE, e bigint REFERENCES posts ON DELETE CASCADE ON UPDATE CASCADE,
	PRIMARY KEY (k, e)) PARTITION BY HASH (k);
CREATE TABLE hides_0 PARTITION OF hides FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hides_1 (e bigint NOT NULL, gone int, k int NOT NULL, note int);
ALTER TABLE hides_1 DROP gone;
ALTER TABLE hides ATTACH PARTITION hides_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX ON hides (e);

-- A row takes a random row for its parent.
CREATE SEQUENCE tree_id;
CREATE TABLE tree (id int PRIMARY KEY DEFAULT nextval('tree_id'), parent int REFERENCES tree ON DELETE CASCADE, k int, e bigint, note int);
CREATE FUNCTION any_parent() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
	RETURN (SELECT id FROM tree WHERE id > floor(random() * (SELECT max(id) FROM tree)) ORDER BY id LIMIT 1);
END $$;
ALTER TABLE tree ALTER parent SET DEFAULT any_parent();
CREATE INDEX ON tree (parent);
CREATE INDEX ON tree (k, e);
};

foreach my $s (@sources)
{
	my %s = %{ $source{$s} };
	my $refers = $s{refers} ? 'k IN (SELECT id FROM users) AND e IN (SELECT id FROM posts)' : 'true';
	my $absent = $s{unique} ? "NOT EXISTS (SELECT FROM $s x WHERE x.k = \$1 AND x.e = \$2)" : 'true';
	my $distinct = $s{unique} ? 'DISTINCT' : '';
	my $is_null = $s{nulls} ? 'random() < 0.02' : 'false';
	my $shared_check = $share{$s} ? " OR ${s}_shared_has(\$1, \$2) <> ${s}_has(\$1, \$2)" : '';

	$schema .= qq{
CREATE FUNCTION ${s}_k(int) RETURNS $s{key} LANGUAGE sql IMMUTABLE AS \$\$ SELECT $in_sql{$s{key}} \$\$;
CREATE FUNCTION ${s}_e(int) RETURNS $s{element} LANGUAGE sql IMMUTABLE AS \$\$ SELECT $in_sql{$s{element}} \$\$;
CREATE TABLE ${s}_domain AS SELECT ${s}_k(i) AS k, ${s}_e(j) AS e FROM generate_series(1, $keys) i, generate_series(0, CASE WHEN i <= 2 THEN $s{large} ELSE $small END - 1) j;
CREATE INDEX ON ${s}_domain (k);

-- A random element for a key.
CREATE FUNCTION ${s}_pick($s{key}) RETURNS $s{element} LANGUAGE sql AS \$\$
	SELECT ${s}_e(floor(random() * CASE WHEN \$1 IN (${s}_k(1), ${s}_k(2)) THEN $s{large} ELSE $small END)::int) \$\$;

-- Random pairs of key a, or of any key if a is 0.
CREATE FUNCTION ${s}_pairs(a int, n int) RETURNS TABLE (k $s{key}, e $s{element}) LANGUAGE sql AS \$\$
	SELECT $distinct k, e FROM (
		SELECT CASE WHEN $is_null THEN NULL ELSE k END AS k, CASE WHEN $is_null THEN NULL ELSE ${s}_pick(k) END AS e FROM (
			SELECT ${s}_k(CASE WHEN a = 0 THEN 1 + floor(random() * $keys)::int ELSE a END) AS k
			FROM generate_series(1, n) OFFSET 0) x OFFSET 0) y
	WHERE $refers \$\$;

-- Elements of key a, and for each of them an element that the key does not have.
CREATE FUNCTION ${s}_moves(a int, n int) RETURNS TABLE (old $s{element}, new $s{element}) LANGUAGE sql AS \$\$
	SELECT x.e, y.e
	FROM (SELECT e, row_number() OVER (ORDER BY random()) AS i FROM (SELECT DISTINCT e FROM $s WHERE k = ${s}_k(a) AND e IS NOT NULL) x) x
	JOIN (SELECT e, row_number() OVER (ORDER BY random()) AS i
		FROM (SELECT k, e FROM ${s}_domain WHERE k = ${s}_k(a) EXCEPT SELECT k, e FROM $s) y WHERE $refers) y USING (i)
	WHERE i <= n \$\$;

-- <name>_has is EXISTS also while a statement is running.
CREATE FUNCTION ${s}_check($s{key}, $s{element}) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	IF ${s}_has(\$1, \$2) <> EXISTS (SELECT FROM $s x WHERE x.k = \$1 AND x.e = \$2)$shared_check THEN
		RAISE EXCEPTION '${s}_has is wrong: % %', \$1, \$2 USING ERRCODE = 'XX000';
	END IF;
END \$\$;

-- No constraint stands against a new row with this pair.
CREATE FUNCTION ${s}_new($s{key}, $s{element}) RETURNS boolean LANGUAGE sql AS \$\$
	SELECT $absent AND (SELECT $refers FROM (SELECT \$1 AS k, \$2 AS e) x) \$\$;
};
}
$schema .= qq{
CREATE TABLE note_domain AS SELECT i AS k, dups_e(j) AS e FROM generate_series(0, 4) i, generate_series(0, $source{dups}{large} - 1) j;
CREATE INDEX ON note_domain (k);
};

# ---------------------------------------------------------------------------------------
# The statements
# ---------------------------------------------------------------------------------------

# Statements on one piece of a source.  {a} and {b} stand for two keys, {n} for a number of
# rows.
sub statements_on_piece
{
	my ($s, $piece) = @_;
	my $p = $piece->{name} || $s;
	my $unique = $source{$s}{unique};
	my $only = $piece->{only} || 'true';
	my ($other) = grep { $_ ne $s } @{ $group{ $source{$s}{group} } };
	my $a = "${s}_k({a})";
	my $b = "${s}_k({b})";
	my $pairs = "SELECT k, e, {b} FROM ${s}_pairs({a}, {n}) WHERE $only";
	my $some = "random() < least(0.5, {n} / 20.0)";
	my $few = "random() < least(0.3, {n} / 100.0)";
	my $absent = $unique ? "AND NOT EXISTS (SELECT FROM $s x WHERE x.k = $b AND x.e = t.e)" : '';
	my $delete = "DELETE FROM $p WHERE k = $a AND e IN (SELECT e FROM ${s}_pairs({a}, 3 * {n}))";
	my $update_element = "UPDATE $p t SET e = m.new FROM ${s}_moves({a}, 2 * {n}) m WHERE t.k = $a AND t.e = m.old";
	my $update_key = "UPDATE $p t SET k = $b WHERE k = $a AND e IN (SELECT e FROM ${s}_domain WHERE k = $b) AND $some $absent";
	my @list = (
		("INSERT INTO $p (k, e, note) $pairs ON CONFLICT DO NOTHING") x 3,
		("INSERT INTO $p (k, e) SELECT k, e FROM ${s}_pairs(1 + {b} % 2, least(20 * {n}, 600)) WHERE $only AND ${s}_new(k, e)") x 3,
		"INSERT INTO $p (k, e, note) SELECT k, e, 1 FROM ${s}_pairs(0, {n}) WHERE $only AND ${s}_new(k, e)",
		"INSERT INTO $p (k, e, note) $pairs AND ${s}_new(k, e)",
		($update_key) x 2,
		($update_element) x 2,
		"UPDATE $p SET e = ${s}_pick(k) WHERE k = $a AND random() < 0.05",
		"UPDATE $p SET note = {b} - 1 WHERE k = $a",
		"UPDATE $p SET note = floor(random() * 5), e = e WHERE $few",
		($delete) x 2,
		"DELETE FROM $p WHERE k = $a AND $some",
		"DELETE FROM $p WHERE k = $a AND ({a} > 2 OR random() < 0.5)",
		"DELETE FROM $p WHERE $few",
		"WITH gone AS ($delete RETURNING k, e) INSERT INTO $p (k, e) SELECT k, e FROM gone WHERE random() < 0.5",
		"WITH gone AS ($delete RETURNING k, e) INSERT INTO $p (k, e, note) $pairs ON CONFLICT DO NOTHING",
		"WITH added AS (INSERT INTO $p (k, e, note) $pairs ON CONFLICT DO NOTHING) $delete",
		"WITH changed AS ($update_element RETURNING t.k, m.old) INSERT INTO $p (k, e) SELECT k, old FROM changed WHERE random() < 0.5 ON CONFLICT DO NOTHING",
		"WITH changed AS ($update_key), gone AS ($delete) INSERT INTO $p (k, e, note) $pairs ON CONFLICT DO NOTHING",
		"WITH gone AS (DELETE FROM $other WHERE k = ${other}_k({b}) AND $some) $delete",
		"WITH added AS (INSERT INTO $other (k, e) SELECT k, e FROM ${other}_pairs({b}, {n}) ON CONFLICT DO NOTHING) $update_element");

	if (!$piece->{only})
	{
		push @list, "INSERT INTO $p (k, e, note) VALUES ($a, ${s}_pick($a), {b})",
		  "INSERT INTO $p (k, e, note) VALUES ($a, ${s}_pick($a), 1), ($b, ${s}_pick($b), NULL), ($a, ${s}_pick($a), 2) ON CONFLICT DO NOTHING";
	}
	if ($unique)
	{
		push @list,
		  "INSERT INTO $p AS t (k, e) SELECT k, e FROM ${s}_pairs({a}, 4) WHERE $only ON CONFLICT $unique DO UPDATE SET e = ${s}_pick(t.k)",
		  "INSERT INTO $p AS t (k, e) SELECT k, e FROM ${s}_pairs({a}, {n}) WHERE $only ON CONFLICT $unique DO UPDATE SET note = 3";
	}
	else
	{
		push @list, "UPDATE $p SET k = CASE WHEN k = $a THEN $b ELSE $a END WHERE k IN ($a, $b) AND e IN (SELECT ${s}_e(i) FROM generate_series(0, 59) i) AND $some";
	}
	if ($s eq 'parts')
	{
		push @list, ("UPDATE $p SET region = 1 + floor(random() * 5)::int WHERE k = $a AND random() < 0.05") x ($piece->{name} ? 1 : 4);
	}
	if ($s eq 'tree')
	{
		push @list, "INSERT INTO tree (id, k, e) SELECT max(id), $a, ${s}_pick($a) FROM tree WHERE random() < 0.5 ON CONFLICT (id) DO UPDATE SET k = excluded.k, e = excluded.e",
		  "UPDATE tree SET parent = any_parent() WHERE $some",
		  'DELETE FROM tree WHERE id = (SELECT min(id) FROM tree)';
	}
	if ($version >= 150000)
	{
		my $move = $s eq 'parts' && !$piece->{name} ? ', region = 1 + floor(random() * 5)::int' : '';
		push @list, ("MERGE INTO $p t USING (SELECT DISTINCT k, e FROM ${s}_pairs({a}, {n}) WHERE $only) v ON t.k = v.k AND t.e = v.e
			WHEN MATCHED AND random() < 0.1 THEN UPDATE SET e = ${s}_pick(t.k)$move
			WHEN MATCHED AND random() < 0.3 THEN UPDATE SET note = 2
			WHEN MATCHED THEN DELETE
			WHEN NOT MATCHED AND random() < 0.8 THEN INSERT (k, e) VALUES (v.k, v.e)") x 2;
	}
	return @list;
}

sub views_of
{
	my ($s) = @_;
	return map { $_->{view} } grep { $_->{source} eq $s } @attachments;
}

# Statements on a whole source.
sub statements_on_source
{
	my ($s) = @_;
	my ($other) = grep { $_ ne $s } reverse @{ $group{ $source{$s}{group} } };
	my @list = (
		(map { "SELECT fav_rebuild('$s', name => '$_')" } views_of($s)),
		(map { "SELECT fav_rebuild('$s', ${s}_k({a})::text, '$_')" } grep { $_ ne 'by_note_fav' } views_of($s)),
		"SELECT nested('$s', {n}) FROM generate_series(1, 3)");

	# Few of these are TRUNCATE, or the sources would be empty most of the time.
	@list = (@list) x 4;
	push @list, "TRUNCATE $s";

	push @list, "TRUNCATE $s, $other" if $s eq 'uniq' || $s eq 'family';
	push @list, 'TRUNCATE ONLY family', 'TRUNCATE child_1', 'TRUNCATE child_2, grandchild' if $s eq 'family';
	push @list, 'TRUNCATE parts_1', 'TRUNCATE parts_2', 'TRUNCATE parts_2_low, parts_default' if $s eq 'parts';
	push @list, 'TRUNCATE hides_0', 'TRUNCATE likes, hides_1' if $s eq 'hides';
	push @list, q{SELECT fav_rebuild('dups', '2', 'by_note')} if $s eq 'dups';
	return @list;
}

# Statements on the tables that sources refer to.
sub statements_on_referenced
{
	my $large = $source{likes}{large};
	my $post = "floor(random() * CASE WHEN random() < 0.5 THEN $small ELSE $large END)";

	return (
		("INSERT INTO users SELECT generate_series(1, $keys) ON CONFLICT DO NOTHING") x 4,
		("INSERT INTO posts SELECT generate_series(0, $large - 1) ON CONFLICT DO NOTHING") x 4,
		'DELETE FROM users WHERE id = {a}',
		'DELETE FROM users WHERE id IN ({a}, {b})',
		'TRUNCATE users CASCADE',
		'TRUNCATE posts CASCADE',
		("DELETE FROM posts WHERE id IN (SELECT $post FROM generate_series(1, {n}))") x 4,
		# Large keys stay large, and small elements stay small.
		('UPDATE users SET id = {b} WHERE id = {a} AND ({a} <= 2) = ({b} <= 2) AND NOT EXISTS (SELECT FROM users WHERE id = {b})') x 4,
		("UPDATE posts SET id = x.new FROM (SELECT o.id AS old, n.id AS new
			FROM (SELECT id, id < $small AS small, row_number() OVER (PARTITION BY id < $small ORDER BY random()) AS i FROM posts) o
			JOIN (SELECT id, id < $small AS small, row_number() OVER (PARTITION BY id < $small ORDER BY random()) AS i
				FROM (SELECT generate_series(0, $large - 1) EXCEPT SELECT id FROM posts) n(id)) n USING (small, i)
			WHERE i <= {n}) x WHERE posts.id = x.old") x 4,
		'WITH gone AS (DELETE FROM users WHERE id = {a}) INSERT INTO likes (k, e) SELECT k, e FROM likes_pairs({b}, {n})',
		"WITH gone AS (DELETE FROM posts WHERE id = $post) DELETE FROM hides WHERE k = {a}",
		'WITH added AS (INSERT INTO likes (k, e) SELECT k, e FROM likes_pairs({a}, {n})) DELETE FROM users WHERE id = {a}');
}

# The statements of each source.  Perl picks from a list, and triggers pick from a table.
my (%statements, @templates);
foreach my $s (@sources)
{
	foreach my $piece (@{ $source{$s}{pieces} })
	{
		# As many on the source itself as on all its pieces together
		my $weight = $piece->{name} ? 1 : @{ $source{$s}{pieces} };
		push @{ $statements{$s} }, ({ sql => $_, late => $piece->{late} }) x $weight foreach statements_on_piece($s, $piece);
	}
	# One of sixteen is a statement on the whole.
	my @whole = statements_on_source($s);
	my $count = int(@{ $statements{$s} } / 16);
	push @{ $statements{$s} }, { sql => $whole[ $_ * @whole / $count ] } foreach 0 .. $count - 1;
}
foreach my $s (@sources)
{
	push @{ $statements{$s} }, (map { { sql => $_ } } statements_on_referenced()) x 3 if $source{$s}{refers};
	push @templates, map { [ $s, $_->{late} ? 't' : 'f', $_->{sql} ] } @{ $statements{$s} };
}
$schema .= "CREATE TABLE template (source text, late boolean, sql text);\nINSERT INTO template VALUES\n"
  . join(",\n", map { "('$_->[0]', '$_->[1]', \$sql\$$_->[2]\$sql\$)" } @templates)
  . ";\nCREATE TABLE friend (source text, friend text);\nINSERT INTO friend VALUES "
  . join(', ', map { my $s = $_; map { "('$s', '$_')" } @{ $group{ $source{$s}{group} } } } @sources) . ";\n";

# ---------------------------------------------------------------------------------------
# The triggers
# ---------------------------------------------------------------------------------------

$schema .= qq{
-- What a statement starts from: the random seed; how probable it is that a trigger
-- meddles; how many nested statements there may be; whether they may go to late pieces.
CREATE FUNCTION prepare(seed float8, chance float8, budget int, late boolean) RETURNS void LANGUAGE sql AS \$\$
	SELECT set_config('meddle.chance', chance::text, false), set_config('meddle.budget', budget::text, false),
		set_config('meddle.late', late::text, false), setseed(seed) \$\$;

-- A random statement on a source, or on another one of its group.
CREATE FUNCTION change(source text, n int) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	target text := source;
	a int := 1 + floor(random() * $keys);
	b int := 1 + floor(random() * $keys);
	statement text;
BEGIN
	IF random() < 0.3 THEN
		SELECT f.friend INTO target FROM friend f WHERE f.source = change.source ORDER BY random() LIMIT 1;
	END IF;
	SELECT t.sql INTO statement FROM template t
	WHERE t.source = target AND (current_setting('meddle.late')::boolean OR NOT t.late) ORDER BY random() LIMIT 1;
	EXECUTE replace(replace(replace(statement, '{a}', a::text), '{b}', b::text), '{n}', n::text);
END \$\$;

CREATE FUNCTION run(statement text) RETURNS void LANGUAGE plpgsql AS \$\$ BEGIN EXECUTE statement; END \$\$;

-- An error was caught.
CREATE FUNCTION let_pass(message text) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	IF message ~ '$of_filters' THEN RAISE EXCEPTION 'unexpected error: %', message USING ERRCODE = 'XX000'; END IF;
END \$\$;

-- One nested statement or two, which may be rolled back.
CREATE FUNCTION nested(source text, n int) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	budget int := current_setting('meddle.budget')::int;
BEGIN
	IF budget <= 0 THEN RETURN; END IF;
	PERFORM set_config('meddle.budget', (budget - 1)::text, false);
	IF random() < 0.1 THEN
		PERFORM change(source, n);
	ELSE
		BEGIN
			PERFORM change(source, n);
			IF random() < 0.3 THEN PERFORM change(source, n); END IF;
			IF random() < 0.3 THEN RAISE EXCEPTION USING ERRCODE = 'P0099'; END IF;
		$caught
			IF random() < 0.2 THEN PERFORM change(source, n); END IF;
		END;
	END IF;
END \$\$;

CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS \$\$
DECLARE
	chance float8 := current_setting('meddle.chance')::float8 / pg_trigger_depth();
BEGIN
	IF chance > 0 AND TG_LEVEL = 'ROW' AND TG_ARGV[1] IS NULL AND random() < 0.2 THEN
		IF TG_OP <> 'DELETE' THEN EXECUTE format('SELECT %s_check(\$1, \$2)', TG_ARGV[0]) USING NEW.k, NEW.e; END IF;
		IF TG_OP <> 'INSERT' THEN EXECUTE format('SELECT %s_check(\$1, \$2)', TG_ARGV[0]) USING OLD.k, OLD.e; END IF;
	END IF;
	IF TG_LEVEL = 'STATEMENT' THEN chance := sqrt(chance) / 3; END IF;
	IF random() < chance AND pg_trigger_depth() <= 4 THEN
		PERFORM nested(TG_ARGV[0], CASE WHEN random() < 0.1 THEN 150 ELSE 3 END);
	END IF;
	IF TG_WHEN = 'AFTER' OR TG_LEVEL = 'STATEMENT' OR random() < chance / 3 THEN
		RETURN NULL;
	ELSIF TG_OP = 'DELETE' THEN
		RETURN OLD;
	ELSIF random() < chance AND TG_ARGV[1] IS NULL THEN
		EXECUTE format('SELECT %s_pick(\$1)', TG_ARGV[0]) INTO NEW.e USING NEW.k;
	END IF;
	RETURN NEW;
END \$\$;
};
my $meddles = q{current_setting('meddle.chance') <> '0'};
foreach my $s (@sources)
{
	my %piece = map { ($_->{name} || $s) => 1 } grep { !$_->{late} } @{ $source{$s}{pieces} };
	# Partitions get the row triggers of the source; children do not.
	foreach my $p (sort keys %piece)
	{
		$schema .= qq{
CREATE TRIGGER ${_}_before BEFORE INSERT OR UPDATE OR DELETE ON $p FOR EACH ROW WHEN ($meddles) EXECUTE FUNCTION meddle($s);
CREATE TRIGGER ${_}_after AFTER INSERT OR UPDATE OR DELETE ON $p FOR EACH ROW WHEN ($meddles) EXECUTE FUNCTION meddle($s);
} foreach ($p eq $s || $s eq 'family' ? qw(a z) : ());
		$schema .= "CREATE TRIGGER ${_}_statement AFTER INSERT OR UPDATE OR DELETE ON $p FOR EACH STATEMENT EXECUTE FUNCTION meddle($s);\n" foreach qw(a z);
		$schema .= "CREATE TRIGGER m_statement BEFORE INSERT OR UPDATE OR DELETE ON $p FOR EACH STATEMENT EXECUTE FUNCTION meddle($s);\n";
	}
}
foreach my $s (qw(dups family likes))
{
	$schema .= "CREATE CONSTRAINT TRIGGER m_deferred AFTER INSERT OR DELETE ON $s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION meddle($s);\n";
}
foreach my $t (qw(users posts))
{
	$schema .= "CREATE TRIGGER ${_}_before BEFORE UPDATE OR DELETE ON $t FOR EACH ROW EXECUTE FUNCTION meddle(hides, plain);\n"
	  . "CREATE TRIGGER ${_}_after AFTER UPDATE OR DELETE ON $t FOR EACH ROW EXECUTE FUNCTION meddle(likes, plain);\n" foreach qw(A z);
}

# ---------------------------------------------------------------------------------------
# The comparison
# ---------------------------------------------------------------------------------------

# A filter depends on its row in the levels table alone.  So a comparison of filters skips it if
# neither the pairs of its keys nor its levels changed since the last one.  It reports
#   missing  the source has the pair, and the filter or the levels do not report it
#   stale    the source does not have the pair, but it is reported, although the key has a
#            small domain, or the source had the pair in the last comparison, or only one
#            of view and levels reports it
#   false    any other pair that is reported and that the source does not have
#   wrong    <name>_has, which is exact, is not what EXISTS is
#
# The grid has all keys, one that no pair has, and NULL, and for each of them the same elements:
# present and absent ones, one outside of the domain, and NULL.
foreach my $attachment (@attachments)
{
	my ($name, $view, $s, $k, $domain, $share) = @$attachment{qw(name view source column domain share)};
	my $element = $source{$s}{element};
	my $key_is_small = $name eq 'by_note' || $share ? 'false' : "r.k NOT IN (${s}_k(1), ${s}_k(2))";
	# The key of the filter and of its row, that of the domain, what is probed for, and its hash
	my $filter_key = $share ? "fav_group($k, $share)" : $k;
	my $levels_key = $share ? "${k}_group" : $k;
	my $domain_key = $share ? "fav_group(k, $share)" : 'k';
	my $probe = $share ? 'd.k, d.e' : 'd.e';
	my $pair_hash = $share ? "hashint8extended($k, e)" : "$hash{$element}(e, 0)";
	my $number = $name eq 'by_note' ? 'i' : "${s}_k(i)";
	my $key_type = $name eq 'by_note' ? 'int' : $source{$s}{key};
	# Each look-up in a source without an index reads all of it.
	my $grid = $s eq 'dups' ? '0, 41, 100, NULL' : "0, 1, 3, 8, 20, 41, 59, 100, $source{$s}{large}, NULL";
	my $last_key = $name eq 'by_note' ? 4 : $keys;
	my $answer = sub { my ($key, $e) = @_; return "string_agg(${name}_has($key, $e)::text, ' ' ORDER BY i)"; };

	$schema .= qq{
CREATE TABLE before_$name (k $attachment->{key} PRIMARY KEY, source numeric, levels bigint, pairs text[]);
CREATE FUNCTION compare_filters_$name(number int) RETURNS int LANGUAGE plpgsql SET work_mem = '32MB' SET enable_nestloop = off AS \$\$
DECLARE
	r record;
	x record;
	key $key_type;
	bad int := 0;
	what text;
BEGIN
	FOR r IN
		SELECT k, s.hash AS source, l.hash AS levels, b.pairs
		FROM (SELECT $filter_key AS k, sum($pair_hash) AS hash FROM $s WHERE $k IS NOT NULL AND e IS NOT NULL GROUP BY 1) s
		FULL JOIN (SELECT $levels_key AS k, hashtextextended(l::text, 0) AS hash FROM ${view}_levels l) l USING (k)
		FULL JOIN before_$name b USING (k)
		WHERE (s.hash, l.hash) IS DISTINCT FROM (b.source, b.levels)
	LOOP
		FOR x IN
			SELECT * FROM (
				SELECT d.k, d.e, s.e IS NOT NULL AS here,
					coalesce(fav_contains((SELECT filter FROM $view WHERE $levels_key = r.k), $probe), false) AS in_filter,
					coalesce(fav_probe(h.base, h.middle, h.recent, $probe), false) AS in_levels
				FROM (SELECT k, e FROM $domain WHERE $domain_key = r.k UNION SELECT $k, e FROM $s WHERE $filter_key = r.k AND e IS NOT NULL) d
				LEFT JOIN (SELECT DISTINCT $k AS k, e FROM $s WHERE $filter_key = r.k) s ON s.k = d.k AND s.e = d.e
				LEFT JOIN ${view}_levels h ON h.$levels_key = r.k) c
			WHERE in_filter <> here OR in_levels <> here LIMIT 10
		LOOP
			what := CASE WHEN x.here THEN 'missing'
				WHEN $key_is_small OR x.in_filter <> x.in_levels OR concat(x.k, ':', x.e) = ANY (r.pairs) THEN 'stale'
				ELSE 'false' END;
			RAISE WARNING '% in $view after statement %: key %, element %, source %, filter %, levels %',
				what, number, x.k, x.e, x.here, x.in_filter, x.in_levels;
			bad := bad + (what <> 'false')::int;
		END LOOP;
		FOR key IN SELECT k FROM $domain WHERE $domain_key = r.k UNION SELECT $k FROM $s WHERE $filter_key = r.k
		LOOP
			FOR x IN
				SELECT d.e, s.e IS NOT NULL AS here
				FROM (SELECT e FROM $domain WHERE k = key UNION SELECT e FROM $s WHERE $k = key AND e IS NOT NULL) d
				LEFT JOIN (SELECT DISTINCT e FROM $s WHERE $k = key) s ON s.e = d.e
				WHERE ${name}_has(key, d.e) IS DISTINCT FROM (s.e IS NOT NULL) LIMIT 10
			LOOP
				RAISE WARNING 'wrong in $name after statement %: key %, element %, source %', number, key, x.e, x.here;
				bad := bad + 1;
			END LOOP;
		END LOOP;
		INSERT INTO before_$name VALUES (r.k, r.source, r.levels, ARRAY(SELECT DISTINCT concat($k, ':', e) FROM $s WHERE $filter_key = r.k AND e IS NOT NULL))
		ON CONFLICT (k) DO UPDATE SET source = excluded.source, levels = excluded.levels, pairs = excluded.pairs;
	END LOOP;
	RETURN bad;
END \$\$;

CREATE TABLE keys_$name AS SELECT i, CASE WHEN i <= $last_key + 1 THEN $number END AS k FROM generate_series(0, $last_key + 2) i;
CREATE TABLE elements_$name AS SELECT i, ${s}_e(i) AS e FROM unnest('{$grid}'::int[]) i;
-- The key is a parameter, and a constant if the plan is a custom one.
CREATE FUNCTION answers_generic_$name(key $key_type) RETURNS text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS
	\$\$ BEGIN RETURN (SELECT @{[ $answer->('key', 'e') ]} FROM elements_$name); END \$\$;
CREATE FUNCTION answers_custom_$name(key $key_type) RETURNS text LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS
	\$\$ BEGIN RETURN (SELECT @{[ $answer->('key', 'e') ]} FROM elements_$name); END \$\$;
CREATE FUNCTION compare_grid_$name(number int) RETURNS int LANGUAGE plpgsql AS \$\$
DECLARE
	x record;
	bad int := 0;
BEGIN
	FOR x IN
		SELECT * FROM (
			SELECT u.k,
				(SELECT string_agg((EXISTS (SELECT FROM $s s WHERE s.$k = u.k AND s.e = d.e))::text, ' ' ORDER BY i) FROM elements_$name d) AS expected,
				from_row.answers AS from_row,
				(SELECT @{[ $answer->('u.k', 'd.e') ]} FROM elements_$name d) AS from_outside,
				answers_generic_$name(u.k) AS generic,
				CASE WHEN (u.i + number) % 5 = 0 THEN answers_custom_$name(u.k) END AS custom
			FROM keys_$name u
			JOIN (SELECT k.i, string_agg(${name}_has(k.k, d.e)::text, ' ' ORDER BY d.i) AS answers FROM keys_$name k, elements_$name d GROUP BY k.i) from_row USING (i)) q
		WHERE from_row IS DISTINCT FROM expected OR from_outside IS DISTINCT FROM expected OR generic IS DISTINCT FROM expected OR custom <> expected
	LOOP
		RAISE WARNING 'wrong in $name after statement %: key %, source %, key from a row %, from outside %, generic plan %, custom plan %',
			number, x.k, x.expected, x.from_row, x.from_outside, x.generic, x.custom;
		bad := bad + 1;
	END LOOP;
	RETURN bad;
END \$\$;
CREATE FUNCTION compare_$name(number int) RETURNS int LANGUAGE sql AS \$\$ SELECT compare_filters_$name(number) + compare_grid_$name(number) \$\$;
};
}
foreach my $g (sort(keys %group), 'all')
{
	my @in_group = grep { $g eq 'all' || $source{ $_->{source} }{group} eq $g } @attachments;
	$schema .= "CREATE FUNCTION compare_$g(number int) RETURNS boolean LANGUAGE sql AS \$\$ SELECT "
	  . join(' + ', map { "compare_$_->{name}(number)" } @in_group) . " > 0 \$\$;\n";
}

# ---------------------------------------------------------------------------------------
# A run
# ---------------------------------------------------------------------------------------

# The script of a run, and the line on which each statement begins.
my (@script, @line, $lines);

sub pick { return $_[ rand @_ ]; }

sub emit
{
	my ($text) = @_;

	push @script, $text;
	$lines += 1 + ($text =~ tr/\n//);
	return;
}

# A statement: a number for it, what it starts from, and the statement itself.
sub emit_statement
{
	my ($sql, %param) = @_;
	my $chance = rand() < 0.4 ? 0 : pick(0.01, 0.03, 0.1, 0.3);

	emit(sprintf('SELECT prepare(%.6f, %g, %d, %s);', rand(), $param{calm} ? 0 : $chance, pick(1, 3, 6), $param{late} ? 'true' : 'false'));
	push @line, $lines + 1;
	$sql =~ s/\s*\n\s*/ /g unless $param{as_is};
	emit($param{as_is} ? $sql : "$sql;");
	return;
}

sub emit_comparison
{
	my ($g) = @_;

	$g = 'all' if @line % 25 == 0;
	emit('SELECT compare_' . $g . '(' . scalar(@line) . ") AS bad \\gset\n\\if :bad\n\\quit\n\\endif");
	return;
}

# A random statement on a source; on a late piece only on request.
sub random_statement
{
	my ($s, %param) = @_;
	my $statement = pick(grep { !$_->{late} || $param{late} } @{ $statements{$s} });
	my $a = rand() < 0.4 ? pick(1, 2) : 1 + int(rand $keys);
	my $b = 1 + int(rand $keys);
	my $n = $a <= 2 && rand() < 0.4 ? 100 + int(rand 250) : pick(1, 1, 2, 5, 5, 20);
	my $sql = $statement->{sql};

	$sql =~ s/\{a\}/$a/g;
	$sql =~ s/\{b\}/$b/g;
	$sql =~ s/\{n\}/$n/g;
	return $sql;
}

# The same as a statement in PL/pgSQL.
sub random_in_block
{
	my $sql = random_statement(@_);

	$sql =~ s/^SELECT/PERFORM/;
	return "$sql;";
}

# A statement that returns rows.
sub random_returning
{
	my $sql;

	do { $sql = random_statement(@_) } until $sql =~ /^(INSERT|UPDATE|DELETE|WITH)/;
	return "$sql RETURNING 1";
}

sub emit_block
{
	my ($s) = @_;
	my ($one, $two, $three) = map { random_in_block($s, late => 1) } 1 .. 3;
	my $other = pick(@{ $group{ $source{$s}{group} } });
	my $returning = random_returning($s, late => 1);
	my $raise = rand() < 0.6 ? q{RAISE EXCEPTION USING ERRCODE = 'P0099';} : '';
	my $block = pick(
		"$one BEGIN $two $three $raise $caught END;",
		"BEGIN $one $two $raise $caught $three END;",
		"BEGIN $one $caught END; COMMIT; BEGIN $two $caught END; ROLLBACK; $three",
		"FOR round IN 1 .. 3 LOOP $one $two END LOOP;",
		"FOR r IN $returning LOOP $one EXIT WHEN random() < 0.5; END LOOP;",
		"$one PERFORM nested('$other', 5); $two");

	emit_statement("DO \$do\$ DECLARE r record; BEGIN $block END \$do\$", late => 1);
	emit_comparison($source{$s}{group});
	return;
}

sub emit_copy
{
	my ($s) = @_;
	my $rows = pick(1, 5, 30, 300);
	my $piece = pick(grep { !$_->{only} } @{ $source{$s}{pieces} });
	my $p = $piece->{name} || $s;
	my %pairs;
	my $null = $source{$s}{nulls} ? 0.03 : 0;

	foreach (1 .. $rows)
	{
		my $k = rand() < 0.5 ? pick(1, 2) : 1 + int(rand $keys);
		my $e = int(rand($k <= 2 ? $source{$s}{large} : $small));

		$k = rand() < $null ? '\N' : $in_copy{ $source{$s}{key} }->($k);
		$e = rand() < $null ? '\N' : $in_copy{ $source{$s}{element} }->($e);
		$pairs{"$k\t$e"} = 1;
	}
	emit_statement(
		"COPY $p (k, e) FROM STDIN" . (rand() < 0.9 ? " WHERE ${s}_new(k, e);\n" : ";\n") . join("\n", sort keys %pairs) . "\n\\.",
		as_is => 1, late => 1);
	emit_comparison($source{$s}{group});
	return;
}

sub emit_transaction
{
	my ($s) = @_;
	my $g = $source{$s}{group};
	# The comparison has to wait for the end of the transaction if a statement goes to a
	# late piece.
	my $late = rand() < 0.3;
	my $compare = sub { emit_comparison($g) if !$late && rand() < 0.8; };

	# psql sets a savepoint before each statement, or an error ends the transaction.
	emit('\set ON_ERROR_ROLLBACK ' . pick('on', 'off'));
	emit('BEGIN' . pick('', ' ISOLATION LEVEL REPEATABLE READ', ' ISOLATION LEVEL SERIALIZABLE') . ';');
	if ($late && $g ne 'c' && rand() < 0.2)
	{
		# as a logical replication worker does
		emit('SET LOCAL session_replication_role = replica;');
	}
	foreach (1 .. 2 + rand 4)
	{
		my $t = pick($s, $s, @{ $group{$g} });
		my $savepoint = rand() < 0.5;

		emit('SAVEPOINT s;') if $savepoint;
		my $kind = rand();
		if ($kind < 0.1)
		{
			emit_statement("DECLARE c CURSOR FOR SELECT nested('$t', 3) FROM generate_series(1, 6)", late => $late);
			emit_statement('FETCH ' . pick(1, 3, 10) . ' FROM c', late => $late);
			$compare->();
			emit_statement('CLOSE c', late => $late);
		}
		elsif ($kind < 0.13)
		{
			emit_statement('SET CONSTRAINTS ALL ' . pick('IMMEDIATE', 'DEFERRED'), late => $late);
		}
		else
		{
			emit_statement(random_statement($t, late => $late), late => $late);
		}
		$compare->();
		if ($savepoint)
		{
			emit(pick('ROLLBACK TO s;', 'RELEASE s;'));
			$compare->();
		}
	}
	if (rand() < 0.1)
	{
		# The commit runs the rest of the query.
		emit_statement("DECLARE held CURSOR WITH HOLD FOR SELECT nested('$s', 3) FROM generate_series(1, 6)", late => $late);
		emit_statement('FETCH ' . pick(1, 2) . ' FROM held', late => $late);
		emit("COMMIT;\nCLOSE ALL;");
	}
	else
	{
		emit(rand() < 0.8 ? 'COMMIT;' : 'ROLLBACK;');
	}
	emit('\set ON_ERROR_ROLLBACK off');
	emit_comparison($g);
	return;
}

# A statement that the executor ends after a number of rows
sub emit_limited
{
	my ($s) = @_;
	my $returning = random_returning($s, late => 1);

	emit_statement("SELECT limited(\$sql\$$returning\$sql\$, " . pick(1, 2, 20) . ')', late => 1);
	emit_comparison($source{$s}{group});
	return;
}

sub emit_rebuild
{
	my ($s) = @_;

	emit_statement("SELECT fav_rebuild('$s', name => '$_')", calm => 1) foreach views_of($s);
	return;
}

# A partition leaves and comes back, and so does a child.  The filters need a rebuild each
# time; what happens to the table in the meantime does not concern them.
sub emit_leave
{
	my ($leave, $come, $s, $p) = @{
		pick(
			[ 'ALTER TABLE parts DETACH PARTITION parts_1', 'ALTER TABLE parts ATTACH PARTITION parts_1 FOR VALUES IN (1)', 'parts', 'parts_1' ],
			[ 'ALTER TABLE parts DETACH PARTITION parts_3', 'ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES IN (3)', 'parts', 'parts_3' ],
			[ 'ALTER TABLE parts DETACH PARTITION parts_4', 'ALTER TABLE parts ATTACH PARTITION parts_4 FOR VALUES IN (4)', 'parts', 'parts_4' ],
			[ 'ALTER TABLE child_2 NO INHERIT family', 'ALTER TABLE child_2 INHERIT family', 'family', 'child_2' ])
	};

	foreach my $step ($leave, $come)
	{
		emit_statement($step, calm => 1);
		emit_rebuild($s);
		emit_comparison('b');
		emit_statement("INSERT INTO $p (k, e) SELECT k, e FROM ${s}_pairs(0, 50) ON CONFLICT DO NOTHING", calm => 1);
		emit_comparison('b');
		emit_statement("DELETE FROM $p WHERE random() < 0.3", calm => 1);
		emit_comparison('b');
		emit_statement("TRUNCATE $p", calm => 1);
		emit_rebuild($s) if $p eq 'parts_3' || $p eq 'parts_4';
		emit_comparison('b');
	}
	return;
}

# Many rows for all keys, most of them for the large ones
sub emit_refill
{
	my ($s) = @_;
	my $large = $source{$s}{large};

	emit_statement("INSERT INTO $s (k, e) SELECT k, e FROM (SELECT * FROM ${s}_pairs(1, $large / 3) UNION ALL SELECT * FROM ${s}_pairs(2, $large / 6)
		UNION ALL SELECT * FROM ${s}_pairs(0, 200)) x ON CONFLICT DO NOTHING");
	emit_comparison($source{$s}{group});
	return;
}

# Pairs that wait for the commit, because the partition has no statement trigger, and that go
# to disk on the way, because they are more than the smallest work_mem holds.
sub emit_spill
{
	my $change = sub {
		return rand() < 0.6
		  ? 'INSERT INTO parts_3 (k, e) SELECT k, e FROM parts_domain WHERE k <= 2 AND random() < 0.7 ON CONFLICT DO NOTHING'
		  : 'DELETE FROM parts_3 WHERE k <= 2 AND random() < 0.6';
	};
	my ($one, $two, $three) = map { $change->() } 1 .. 3;
	my $fail = q{RAISE EXCEPTION USING ERRCODE = 'P0099';};
	my $small = q{SET LOCAL work_mem = '64kB'};
	my $kind = int(rand 6);

	# a fav_rebuild may have made one
	emit_statement("DROP TRIGGER IF EXISTS ${_}_levels_statement ON parts_3", calm => 1) foreach views_of('parts');
	if ($kind <= 1)
	{
		emit("BEGIN;\n$small;");
		emit_statement($one, calm => 1, late => 1) if $kind == 0;
		emit('SAVEPOINT a;');
		emit_statement($two, calm => 1, late => 1);
		emit('SAVEPOINT b;');
		emit_statement($three, calm => 1, late => 1);
		emit(pick('ROLLBACK TO b;', 'RELEASE b;', ''));
		emit(pick('ROLLBACK TO a;', 'RELEASE a;', ''));
		# what is left is reconciled here together with this
		emit_statement('INSERT INTO parts (k, e, region) SELECT 1, e, 2 FROM parts_domain WHERE k = 1 AND e < 9 ON CONFLICT DO NOTHING', calm => 1)
		  if rand() < 0.3;
		emit(pick('COMMIT;', 'COMMIT;', "PREPARE TRANSACTION 'spill';\nCOMMIT PREPARED 'spill';", "PREPARE TRANSACTION 'spill';\nROLLBACK PREPARED 'spill';", 'ROLLBACK;'));
	}
	elsif ($kind == 2)
	{
		emit_statement("DO \$do\$ BEGIN $small; $one; BEGIN $two; $fail EXCEPTION WHEN SQLSTATE 'P0099' THEN NULL; END; BEGIN $three; EXCEPTION WHEN SQLSTATE 'P0099' THEN NULL; END; END \$do\$", calm => 1, late => 1);
	}
	elsif ($kind == 3)
	{
		emit_statement("DO \$do\$ BEGIN $small; $one; COMMIT; $small; $two; ROLLBACK; $small; $three; END \$do\$", calm => 1, late => 1);
	}
	elsif ($kind == 4)
	{
		emit("BEGIN;\n$small;");
		emit_statement("DECLARE c CURSOR FOR SELECT run(\$sql\$$one\$sql\$) FROM generate_series(1, 2)", calm => 1, late => 1);
		emit_statement('FETCH 1 FROM c', calm => 1, late => 1);
		emit('SAVEPOINT a;');
		emit_statement('FETCH 1 FROM c', calm => 1, late => 1);
		emit(pick('ROLLBACK TO a;', 'RELEASE a;'));
		emit('COMMIT;');
	}
	else
	{
		# on the way a full disk, as far as the session can tell
		emit("BEGIN;\n$small;\nSAVEPOINT a;");
		emit_statement($one, calm => 1, late => 1);
		emit("SET LOCAL temp_file_limit = 0;\nSAVEPOINT b;");
		emit_statement($two, calm => 1, late => 1);
		emit("ROLLBACK TO b;\nRESET temp_file_limit;");
		emit_statement($three, calm => 1, late => 1);
		emit('COMMIT;');
	}
	emit_comparison('b');
	return;
}

# Many more pairs than memory takes.  Triggers of ours fire here and no others.
sub emit_huge
{
	foreach my $sql (
		'INSERT INTO uniq (k, e) SELECT 1, 10000 + i FROM generate_series(1, 70000) i',
		'UPDATE uniq SET e = e + 100000, k = 3 - k WHERE e > 10000',
		'DELETE FROM uniq WHERE e > 10000')
	{
		emit("BEGIN;\nSET LOCAL session_replication_role = replica;");
		emit_statement($sql, calm => 1);
		emit('COMMIT;');
		emit_comparison('a');
	}
	return;
}

sub write_run
{
	my ($seed, $file, $is_first) = @_;

	srand($seed);
	(@script, @line) = ();
	$lines = 0;
	emit(qq{\\set bad false
\\set VERBOSITY verbose
SET client_min_messages = warning;
SET jit = off;
SET work_mem = '@{[ pick('64kB', '4MB') ]}';
SELECT prepare($seed % 1000 / 1000.0, 0, 0, false);
INSERT INTO users SELECT generate_series(1, $keys);
INSERT INTO posts SELECT generate_series(0, $source{likes}{large} - 1);});
	emit("INSERT INTO $_ (k, e) SELECT k, e FROM (SELECT * FROM ${_}_pairs(1, $source{$_}{large} / 2) UNION ALL SELECT * FROM ${_}_pairs(0, 200)) x ON CONFLICT DO NOTHING;") foreach @sources;
	emit("SELECT fav_attach('$_', 'k', 'e', error_rate => $error_rate, seed => $seed);") foreach @sources;
	emit("SELECT fav_attach('dups', 'note', 'e', name => 'by_note', error_rate => $error_rate);");
	emit("SELECT fav_attach('$_->{source}', 'k', 'e', share => $_->{share}, name => '$_->{name}', error_rate => $error_rate, seed => $seed);") foreach grep { $_->{share} } @attachments;
	emit(q{CREATE TABLE parts_3 PARTITION OF parts (region DEFAULT 3) FOR VALUES IN (3);
CREATE TABLE parts_4 (e bigint, gone int, k int, note int, gone_2 text, region int DEFAULT 4) PARTITION BY HASH (k);
ALTER TABLE parts_4 DROP gone, DROP gone_2;
CREATE TABLE parts_4_0 PARTITION OF parts_4 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_4_1 (region int DEFAULT 4, note int, gone int, e bigint, k int);
ALTER TABLE parts_4_1 DROP gone;
ALTER TABLE parts_4 ATTACH PARTITION parts_4_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
ALTER TABLE parts ATTACH PARTITION parts_4 FOR VALUES IN (4);
ALTER TABLE ONLY parts ALTER region SET DEFAULT 1 + floor(random() * 5);});
	emit_comparison('all');

	while (@line < $per_run)
	{
		my $s = pick(@sources);
		my $g = $source{$s}{group};
		my $kind = rand();

		if ($source{$s}{refers} && rand() < 0.3)
		{
			emit_statement("INSERT INTO users SELECT generate_series(1, $keys) ON CONFLICT DO NOTHING", calm => 1);
			emit_statement("INSERT INTO posts SELECT generate_series(0, $source{$s}{large} - 1) ON CONFLICT DO NOTHING", calm => 1);
		}
		if ($kind < 0.15) { emit_transaction($s); }
		elsif ($kind < 0.25) { emit_block($s); }
		elsif ($kind < 0.31) { emit_copy($s); }
		elsif ($kind < 0.35 && $has_limit) { emit_limited($s); }
		elsif ($kind < 0.36 && $g eq 'b') { emit_leave(); }
		elsif ($kind < 0.38 && $g eq 'b') { emit_spill(); }
		elsif ($kind < 0.42) { emit_refill($s); }
		elsif ($kind < 0.43)
		{
			emit_statement('VACUUM ' . join(', ', @sources, map { ("$_->{view}_levels", "before_$_->{name}") } @attachments), calm => 1);
			emit_comparison('all');
		}
		else
		{
			emit_statement(random_statement($s, late => 1), late => 1);
			emit_comparison($g);
		}
	}
	emit_huge() if $is_first;
	emit_spill() foreach $is_first ? 1 .. 8 : ();
	emit_comparison('all');
	append_to_file($file, join("\n", @script) . "\n");
	return;
}

# The statement that a line of the script belongs to: its number and its text.
sub statement_at
{
	my ($at) = @_;
	my $number = grep { $_ <= $at } @line;
	my $text = $number ? (split /\n/, join("\n", @script))[ $line[ $number - 1 ] - 1 ] : '(none)';

	return "statement $number: $text";
}

$node->safe_psql('postgres', 'CREATE DATABASE prepared');
$node->safe_psql('prepared', "CREATE EXTENSION fav;\n$schema;\nANALYZE");
$node->safe_psql('prepared', q{
CREATE EXTENSION plperl;
CREATE FUNCTION limited(text, int) RETURNS void LANGUAGE plperl AS $$ spi_exec_query($_[0], $_[1]); return $$}) if $has_limit;

my ($statements, $errors, $bases, $middles) = (0) x 4;
my %false;
foreach my $run (0 .. $runs - 1)
{
	my $seed = $first_seed + $run;
	my $file = "$PostgreSQL::Test::Utils::log_path/attach_nested_$seed.sql";
	my @problems;

	note("seed $seed");
	write_run($seed, $file, $run == 0);
	$node->safe_psql('postgres', 'CREATE DATABASE run TEMPLATE prepared');
	my $command = [ 'psql', '-X', '-q', '-A', '-t', '-o', '/dev/null', '-f', $file, $node->connstr('run') ];
	my $error = '';
	my $ended = IPC::Run::run($command, '<', \'', '>', '/dev/null', '2>', \$error);
	ok($ended, "seed $seed: the session lasts to the end") or diag(substr($error, -2000));

	foreach my $message (split /\n(?=psql:)/, $error)
	{
		my ($at, $severity) = $message =~ /^psql:.*?:(\d+): (\w+):  / or next;
		my $text = statement_at($at) . "\n$message";

		if ($severity eq 'WARNING')
		{
			# A false positive remains until its filter is rebuilt.  It counts once.
			if ($message =~ /: false in (\w+) after statement \d+: (key \S+ element \S+)/) { $false{"$seed: $1, $2"} = 1; }
			elsif ($message =~ /: \w+ in \w+ after statement/) { push @problems, "MISMATCH $text"; }
		}
		elsif ($message =~ $expected && $message !~ /ERROR: .*($of_filters)/ && $at >= $line[0]) { $errors++; }
		else { push @problems, $text; }
	}
	is(scalar(@problems), 0, "seed $seed: filter and source are equal after every statement, no unexpected error")
	  or diag("FAV_SEED=$seed, script $file\n" . join("\n", @problems[ 0 .. ($#problems > 9 ? 9 : $#problems) ]));
	$statements += @line;
	last if @problems || !$ended;

	foreach my $attachment (@attachments)
	{
		is($node->safe_psql('run', "SELECT missing, stale FROM fav_verify('$attachment->{source}', '$attachment->{view}')"), '0|0', "seed $seed: fav_verify finds $attachment->{view} true");
	}
	foreach my $attachment (@attachments)
	{
		my ($base, $middle) = split /\|/, $node->safe_psql('run', q{SELECT count(*) FILTER (WHERE base <> '\x01'), count(*) FILTER (WHERE middle <> '\x01') FROM } . " $attachment->{view}_levels");
		$bases += $base;
		$middles += $middle;
	}
	# which makes the statement triggers of partitions that were made later
	$node->safe_psql('run', join(';', map { "SELECT fav_rebuild('parts', name => '$_')" } views_of('parts')));
	is($node->safe_psql('run', 'SELECT count(*), bool_and(active) FROM fav_attachments'), scalar(@attachments) . '|t', "seed $seed: all are active");
	$node->safe_psql('run', join(';', map { "SELECT fav_detach('$_->{source}', '$_->{view}')" } @attachments));
	is( $node->safe_psql('run', q{
SELECT (SELECT count(*) FROM fav_attachments),
	(SELECT count(*) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE p.proname LIKE 'fav%'),
	(SELECT count(*) FROM pg_class WHERE relname ~ '_fav|_levels' AND relkind IN ('r', 'v')),
	(SELECT count(*) FROM pg_proc p WHERE proname ~ '_has$' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e'))
}), '0|0|0|0', "seed $seed: fav_detach leaves nothing");
	$node->safe_psql('postgres', 'DROP DATABASE run');
	unlink $file;
}
figures("$statements statements, $errors of them with an expected error; " . keys(%false) . " false positives; at the ends of runs $bases keys have a base, $middles a middle");
cmp_ok($bases, '>', 0, 'some keys have a base');
cmp_ok($middles, '>', 0, 'some keys have a middle');
cmp_ok(scalar(keys %false), '<=', 2 + $statements / 5000, 'false positives are rare') or diag(join("\n", sort keys %false));

log_is_clean($node, 'a clean log');
$node->stop;
done_testing();
