
# Citus: attached filters of distributed tables, on a coordinator and two workers, through every
# kind of statement, shard moves and splits under writers, a new node, and the failure of a
# worker.
#
# docs/SCALING.md shows what of it users call.  Skipped where Citus is not installed; sql/attach_shards
# covers the shard logic without it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $share = `pg_config --sharedir`);
plan skip_all => 'Citus is not installed' unless -f "$share/extension/citus.control";

my $conf = q{
shared_preload_libraries = 'citus'
citus.node_conninfo = 'sslmode=prefer'
citus.shard_count = 4
max_connections = 100
max_prepared_transactions = 50
max_worker_processes = 20
max_wal_senders = 20
max_replication_slots = 20
wal_level = logical
};
my $users = 300;

sub start_citus
{
	my ($name) = @_;
	my $node = start_node($name, bare => 1, init => { allows_streaming => 1 }, conf => $conf);

	$node->append_conf('postgresql.conf', "wal_level = logical\ncitus.local_hostname = '" . $node->host . "'\n");
	# some minor releases let only listed plugins decode
	$node->append_conf('postgresql.conf', "output_plugin_libraries = 'citus, pgoutput'\n")
	  if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries'});
	$node->restart;
	$node->safe_psql('postgres', 'CREATE EXTENSION citus');
	return $node;
}

my $coordinator = start_citus('coordinator');
my @workers = map { start_citus("worker_$_") } 1 .. 2;

sub address
{
	my ($node) = @_;

	return "'" . $node->host . "', " . $node->port;
}

sub run
{
	my ($sql, $node) = @_;

	return ($node // $coordinator)->safe_psql('postgres', $sql);
}

sub fails_with
{
	my ($sql, $pattern, $what, $node) = @_;
	my ($status, $out, $error) = ($node // $coordinator)->psql('postgres', $sql);

	isnt($status, 0, "$what: refused");
	like($error, $pattern, "$what: says why");
	return;
}

# All shards, where they are now.
sub agree
{
	my ($what, $table, $name) = @_;
	my $arguments = $name ? "'%s', '$name'" : q{'%s'};

	$table //= 'hidden_posts';
	is( run(qq{
SELECT bool_and(success), sum((result::json ->> 'missing')::int), sum((result::json ->> 'stale')::int) FROM run_command_on_placements(
	'$table', \$\$SELECT row_to_json(v) FROM fav_verify($arguments) v\$\$)}), 't|0|0', $what);
	return;
}

run("SELECT citus_set_coordinator_host(" . address($coordinator) . ")");
run("SELECT citus_add_node(" . address($_) . ")") foreach @workers;
my $version = run('SELECT citus_version()');
note($version);

# ---------------------------------------------------------------------------------
# The type and its aggregates
# ---------------------------------------------------------------------------------

run('CREATE EXTENSION fav');
is(run(q{SELECT string_agg(result, ' ') FROM run_command_on_workers('SELECT fav_contains(fav_add(NULL, 7), 7)')}), 't t', 'the extension is on all nodes');
run(q{
CREATE TABLE posts (id bigint PRIMARY KEY, topic int);
SELECT create_reference_table('posts');
CREATE TABLE spread (id bigint PRIMARY KEY, topic int);
SELECT create_distributed_table('spread', 'id', colocate_with => 'none');
INSERT INTO posts SELECT i, i % 10 FROM generate_series(1, 3000) i;
INSERT INTO spread SELECT * FROM posts;
CREATE TABLE hidden_posts (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
SELECT create_distributed_table('hidden_posts', 'user_id', colocate_with => 'none');
INSERT INTO hidden_posts SELECT u, (u * 7 + p * 13) % 3000 FROM generate_series(1, 40) u, generate_series(1, 200) p});
my $bytes = q{SELECT md5(string_agg(f::bytea, '' ORDER BY user_id)) FROM (SELECT user_id, fav_agg(post_id) AS f FROM %s GROUP BY user_id) s};
run('CREATE TABLE local_pairs AS SELECT * FROM hidden_posts');
is(run(sprintf($bytes, 'hidden_posts')), run(sprintf($bytes, 'local_pairs')), 'fav_agg by the distribution column: the bytes of one server');
like(run('EXPLAIN (VERBOSE) SELECT user_id, fav_agg(post_id) FROM hidden_posts GROUP BY user_id'), qr/Query: SELECT user_id, (public\.)?fav_agg\(post_id\)/, 'made on the workers');
is(run('SELECT md5(fav_agg(post_id)::bytea) FROM hidden_posts'), run('SELECT md5(fav_agg(post_id)::bytea) FROM local_pairs'), 'fav_agg over all nodes: the bytes of one server');
run(q{
CREATE TABLE filters (user_id bigint PRIMARY KEY, filter fav);
SELECT create_distributed_table('filters', 'user_id', colocate_with => 'hidden_posts');
INSERT INTO filters SELECT user_id, fav_agg(post_id) FROM hidden_posts GROUP BY user_id});
is(run('SELECT count(*) FROM hidden_posts JOIN filters USING (user_id) WHERE NOT fav_contains(filter, post_id)'), 0, 'INSERT ... SELECT into a colocated table: nothing is missing');
run('CREATE TABLE united AS SELECT fav_union_agg(filter) AS filter FROM filters');
is(run('SELECT count(*) FROM united, local_pairs WHERE NOT fav_contains(filter, post_id)'), 0, 'fav_union_agg over all nodes');

# ---------------------------------------------------------------------------------
# Attaching
# ---------------------------------------------------------------------------------

fails_with(q{SELECT fav_attach('hidden_posts', 'post_id', 'user_id')}, qr/is distributed by column "user_id", not by "post_id"/, 'a key that is not the distribution column');
fails_with(q{SELECT fav_attach('hidden_posts', 'user_id', 'post_id', share => 10)}, qr/cannot share filters/, 'shared filters');
fails_with(q{SELECT fav_attach('hidden_posts', 'user_id', 'post_id')}, qr/this is not the coordinator/, 'attaching on a worker', $workers[0]);
fails_with(q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT fav_attach('hidden_posts', 'user_id', 'post_id')}, qr/at READ COMMITTED only/, 'REPEATABLE READ');
run(q{CREATE TABLE parts (k int, e int, PRIMARY KEY (k, e)) PARTITION BY RANGE (e); SELECT create_distributed_table('parts', 'k')});
run(q{CREATE TABLE lonely (k int, e int, PRIMARY KEY (k, e)); SELECT citus_add_local_table_to_metadata('lonely')});
foreach my $function ('fav_attach', 'fav_sink')
{
	fails_with(qq{SELECT $function('parts', 'k', 'e')}, qr/has partitions/, "$function: partitions");
	fails_with(qq{SELECT $function('lonely', 'k', 'e')}, qr/in a way that filters cannot follow/, "$function: a local table that Citus knows");
}
fails_with(q{SELECT fav_sink('posts', 'id', 'topic')}, qr/in several copies.*Take it out of Citus with undistribute_table, and distribute it by its key/s, 'a sink that is a reference table');
fails_with(q{SELECT fav_sink('hidden_posts', 'post_id', 'user_id')}, qr/is distributed by column "user_id", not by "post_id"/, 'a sink whose key is not the distribution column');
fails_with(q{SELECT fav_sink('hidden_posts', 'user_id', 'post_id')}, qr/"hidden_posts" is not empty/, 'a sink that has rows');
fails_with(q{SELECT fav_sink('hidden_posts', 'user_id', 'post_id')}, qr/Call fav_sink on the coordinator/, 'a sink on a worker', $workers[0]);
fails_with(q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT fav_sink('hidden_posts', 'user_id', 'post_id')}, qr/at READ COMMITTED only/, 'a sink at REPEATABLE READ');
run(q{SET citus.shard_replication_factor = 2; CREATE TABLE twice (k int, e int); SELECT create_distributed_table('twice', 'k')});
fails_with(q{SELECT fav_sink('twice', 'k', 'e')}, qr/in several copies/, 'a sink with two copies of each shard');
is(run(q{SELECT count(*) FROM pg_class WHERE relname LIKE '%_fav%levels'}), 0, 'nothing was made by what was refused');

run(q{SELECT fav_attach('hidden_posts', 'user_id', 'post_id')});
agree('attached: filters agree with their source');
is(run('SELECT source, levels, complete, active FROM fav_attachments'), 'hidden_posts|hidden_posts_fav_levels|t|t', 'the coordinator lists the attachment');
is(run('SELECT source, levels, complete, active FROM fav_attachments', $workers[0]), 'hidden_posts|hidden_posts_fav_levels|t|t', 'and so does a worker');
fails_with(q{SELECT fav_verify('hidden_posts')}, qr/is distributed.*run_command_on_placements/s, 'verifying the whole table at once');

# with a name that must be quoted, and in the transaction that distributes the table
run(q{
BEGIN;
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
CREATE TABLE "Ann's" (k bigint, e bigint, PRIMARY KEY (k, e));
SELECT create_distributed_table('"Ann''s"', 'k', colocate_with => 'none');
SELECT fav_attach('"Ann''s"', 'k', 'e');
INSERT INTO "Ann's" SELECT i % 10, i FROM generate_series(1, 1000) i;
COMMIT});
foreach my $function ('fav_verify', 'fav_rebuild')
{
	my (undef, undef, $error) = $coordinator->psql('postgres', qq{SELECT $function('"Ann''s"')});
	my ($call) = $error =~ /Call the function for each shard: (.*)\.$/m;

	is(run("SELECT bool_and(success) FROM ($call) s"), 't', "$function: what its hint says works");
}
is(run(q{SELECT sum((result::json ->> 'elements')::int), sum((result::json ->> 'missing')::int) FROM run_command_on_placements('"Ann''s"', 'SELECT row_to_json(v) FROM fav_verify(%L) v')}),
	'1000|0', 'attached in the transaction that distributes the table');
run(q{DROP TABLE "Ann's", "Ann's_fav_levels" CASCADE});

# reading: a router query, a reference table, posts that are distributed otherwise
my $page = q{SELECT array_agg(id ORDER BY id) FROM %s p WHERE topic = 3 AND NOT fav_contains(%s, p.id)};
my $filter = q{(SELECT filter FROM hidden_posts_fav WHERE user_id = 7)};
foreach my $table ('posts', 'spread')
{
	my $got = run(sprintf($page, $table, $filter));
	is(run(qq{SELECT count(*) FROM hidden_posts WHERE user_id = 7 AND post_id = ANY ('$got')}), 0, "a page of $table has nothing that is hidden");
	cmp_ok(run("SELECT cardinality('$got'::bigint[])"), '>', 200, 'and most of the rest');
}
is( run(q{
SELECT count(*) FROM hidden_posts h JOIN hidden_posts_fav f USING (user_id) WHERE NOT fav_contains(f.filter, h.post_id)}),
	0, 'a join with the view finds everything');
fails_with('DELETE FROM hidden_posts_fav WHERE user_id = 7', qr/cannot modify views|cannot be written/, 'writing the view', $_) foreach $coordinator, $workers[0];

# hidden_posts_has cannot be right: Citus sends a query to nodes before the planner expands the call.
# Its error quotes what to write instead, which is right in all these places.
run('CREATE TABLE local_posts AS TABLE posts');
my $hint = q{COALESCE(public.fav_contains((SELECT fav_filter FROM public.hidden_posts_fav AS fav_view (fav_key, fav_filter) WHERE fav_key = ...), ...), false)};

sub instead
{
	my ($query) = @_;

	$query =~ s/HAS\(([^,]+), ([^)]+)\)/my ($key, $element, $call) = ($1, $2, $hint); $call =~ s|\.\.\.|$key|; $call =~ s|\.\.\.|$element|; $call/ge;
	return $query;
}

# shape => query with calls HAS(key, element), the same with EXISTS (of the pairs on one server)
my @shapes = (
	[ 'reference table', q{SELECT p.id FROM posts p WHERE HAS(7, p.id)}, q{SELECT p.id FROM posts p WHERE (7, p.id) IN (TABLE local_pairs)} ],
	[ 'distributed table', q{SELECT p.id FROM spread p WHERE HAS(7, p.id)}, q{SELECT p.id FROM posts p WHERE (7, p.id) IN (TABLE local_pairs)} ],
	[ 'local table', q{SELECT p.id FROM local_posts p WHERE HAS(7, p.id)}, q{SELECT p.id FROM posts p WHERE (7, p.id) IN (TABLE local_pairs)}, 'coordinator' ],
	[ 'routed', q{SELECT h.post_id FROM hidden_posts h WHERE h.user_id = 7 AND HAS(7, h.post_id)}, q{SELECT post_id FROM local_pairs WHERE user_id = 7} ],
	[ 'routed elsewhere', q{SELECT h.post_id FROM hidden_posts h WHERE h.user_id = 8 AND HAS(7, h.post_id)}, q{SELECT post_id FROM local_pairs WHERE user_id = 8 AND (7, post_id) IN (TABLE local_pairs)} ],
	[ 'all shards', q{SELECT h.post_id FROM hidden_posts h WHERE HAS(7, h.post_id)}, q{SELECT post_id FROM local_pairs WHERE (7, post_id) IN (TABLE local_pairs)} ],
	[ 'all shards, by key', q{SELECT h.post_id FROM hidden_posts h WHERE HAS(h.user_id, h.post_id)}, q{SELECT post_id FROM local_pairs} ],
	[ 'all shards, columns without their table', q{SELECT post_id FROM hidden_posts WHERE HAS(user_id, post_id)}, q{SELECT post_id FROM local_pairs} ],
	[ 'no table', q{SELECT i FROM generate_series(1, 3000) i WHERE HAS(7, i)}, q{SELECT post_id FROM local_pairs WHERE user_id = 7 AND post_id > 0} ],
	[ 'one probe', q{SELECT 1 WHERE HAS(7, 62)}, q{SELECT 1 WHERE (7, 62) IN (TABLE local_pairs)} ],
	[ 'an element that is NULL', q{SELECT 1 WHERE NOT HAS(7, NULL::bigint)}, q{SELECT 1} ],
	[ 'a key that is NULL', q{SELECT 1 WHERE NOT HAS(NULL, 62)}, q{SELECT 1} ],
);

foreach my $shape (@shapes)
{
	my ($what, $query, $truth, $where) = @$shape;
	my $call = $query =~ s/HAS\(/hidden_posts_has(/gr;
	my $probe = instead($query);
	my $expected = run("SELECT COALESCE(array_agg(x ORDER BY x), '{}') FROM ($truth) t(x)");

	foreach my $node ($coordinator, $where ? () : $workers[0])
	{
		my $place = "$what, on " . $node->name;

		fails_with($call, qr/cannot be asked by function.*\QUse $hint\E/s, "hidden_posts_has: $place", $node);
		fails_with("PREPARE q AS $call; EXECUTE q", qr/cannot be asked by function/, "hidden_posts_has: $place, prepared", $node);
		my $got = run("SELECT COALESCE(array_agg(x ORDER BY x), '{}') FROM ($probe) t(x)", $node);
		is(run("SELECT '$got'::bigint[] @> '$expected'::bigint[], cardinality('$got'::bigint[]) <= cardinality('$expected'::bigint[]) * 1.5 + 20"), 't|t', "what it quotes: $place");
	}
}
is( run(q{PREPARE q(bigint, bigint) AS SELECT } . instead('HAS($1, $2)') . q{; } . join(';', map { "EXECUTE q($_, 62)" } 1 .. 8)),
	run(q{SELECT (u, 62) IN (TABLE local_pairs) FROM generate_series(1, 8) u ORDER BY u}), 'what it quotes: prepared, generic plan');
like(run(q{SELECT string_agg(result, ' ') FROM run_command_on_placements('hidden_posts', $$SELECT count(*) FROM %s h WHERE hidden_posts_has(h.user_id, h.post_id)$$)}),
	qr/^(ERROR:  filters in table "hidden_posts_fav_levels" cannot be asked[^E]* ?)+$/, 'hidden_posts_has directly on shards: refused');
fails_with(q{DO $$ BEGIN IF hidden_posts_has(7, 20) THEN NULL; END IF; END $$}, qr/cannot be asked by function/, 'hidden_posts_has in PL/pgSQL');

# ---------------------------------------------------------------------------------
# Statements
# ---------------------------------------------------------------------------------

run(q{INSERT INTO hidden_posts VALUES (3, 100001); DELETE FROM hidden_posts WHERE user_id = 3 AND post_id = 100001});
run(q{INSERT INTO hidden_posts SELECT u, p FROM generate_series(1, 60) u, generate_series(4001, 4150) p});
agree('router and multi-shard statements');
run("COPY hidden_posts FROM stdin;\n" . join('', map { "$_\t5000\n$_\t5001\n" } 1 .. 80) . "\\.\n");
run(q{
DELETE FROM hidden_posts WHERE post_id BETWEEN 4010 AND 4020;
UPDATE hidden_posts SET post_id = post_id + 10000 WHERE post_id BETWEEN 4030 AND 4040;
INSERT INTO hidden_posts VALUES (1, 5000) ON CONFLICT (user_id, post_id) DO UPDATE SET post_id = 6000;
INSERT INTO hidden_posts SELECT user_id, post_id + 20000 FROM hidden_posts WHERE post_id > 5000});
agree('COPY, DELETE, UPDATE, ON CONFLICT, INSERT ... SELECT');
run(q{
CREATE TABLE staging (user_id bigint, post_id bigint);
SELECT create_distributed_table('staging', 'user_id', colocate_with => 'hidden_posts');
INSERT INTO staging SELECT u, p FROM generate_series(1, 90) u, generate_series(4100, 4170) p;
MERGE INTO hidden_posts h USING staging s ON h.user_id = s.user_id AND h.post_id = s.post_id
	WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.user_id, s.post_id)});
agree('MERGE');
run(qq{
CREATE TABLE users (id bigint PRIMARY KEY);
SELECT create_distributed_table('users', 'id', colocate_with => 'hidden_posts');
INSERT INTO users SELECT generate_series(1, $users);
ALTER TABLE hidden_posts ADD CONSTRAINT of_user FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE;
DELETE FROM users WHERE id BETWEEN 10 AND 20;
DELETE FROM users WHERE id = 5;
INSERT INTO users VALUES (5);
INSERT INTO users SELECT generate_series(10, 20)});
agree('cascades');
is( run(q{
BEGIN;
INSERT INTO hidden_posts VALUES (1, 777777);
SAVEPOINT s;
DELETE FROM hidden_posts WHERE user_id = 1;
ROLLBACK TO s;
SELECT filter @> 777777 FROM hidden_posts_fav WHERE user_id = 1;
DELETE FROM hidden_posts WHERE user_id = 1 AND post_id = 777777;
SELECT filter @> 777777 FROM hidden_posts_fav WHERE user_id = 1;
ROLLBACK}), "t\nf", 'within a transaction the filter is true after each statement');
run(q{INSERT INTO hidden_posts SELECT u, p FROM generate_series(1, 60) u, generate_series(7001, 7020) p; DELETE FROM hidden_posts WHERE post_id = 7010}, $workers[1]);
agree('statements on a worker');
run(q{BEGIN; INSERT INTO hidden_posts VALUES (1, 1234); TRUNCATE hidden_posts; INSERT INTO hidden_posts SELECT u, p FROM generate_series(1, 60) u, generate_series(1, 140) p; COMMIT});
agree('TRUNCATE');
run(q{TRUNCATE hidden_posts}, $workers[0]);
is(run('SELECT count(*) FROM hidden_posts_fav_levels'), 0, 'TRUNCATE on a worker');
run(q{INSERT INTO hidden_posts SELECT u, p FROM generate_series(1, 60) u, generate_series(1, 140) p});

# ---------------------------------------------------------------------------------
# Other kinds of tables, and owners
# ---------------------------------------------------------------------------------

run(q{
CREATE TABLE everywhere (k int, e int, PRIMARY KEY (k, e));
SELECT create_reference_table('everywhere');
INSERT INTO everywhere SELECT i % 10, i FROM generate_series(1, 2000) i;
SELECT fav_attach('everywhere', 'k', 'e'), fav_attach('everywhere', 'k', 'e', share => 5, name => 'shared');
INSERT INTO everywhere SELECT i % 10, i FROM generate_series(2001, 3000) i;
DELETE FROM everywhere WHERE e % 7 = 0});
agree('a reference table', 'everywhere', 'everywhere_fav');
agree('a reference table with shared filters', 'everywhere', 'shared');
fails_with('SELECT shared_has(3, 13)', qr/\QUse COALESCE(public.fav_contains((SELECT fav_filter FROM public.shared_fav AS fav_view (fav_key, fav_filter) WHERE fav_key = public.fav_group(..., 5)), ..., ...), false)\E/, 'shared_has');
is(run('SELECT count(*) FROM everywhere WHERE NOT COALESCE(public.fav_contains((SELECT fav_filter FROM public.shared_fav AS fav_view (fav_key, fav_filter) WHERE fav_key = public.fav_group(k, 5)), k, e), false)'), 0, 'what it quotes finds everything');
run(q{
SET citus.enable_schema_based_sharding = on;
CREATE SCHEMA tenant;
CREATE TABLE tenant.pairs (k int, e text, PRIMARY KEY (k, e));
INSERT INTO tenant.pairs SELECT i % 10, i FROM generate_series(1, 2000) i;
SELECT fav_attach('tenant.pairs', 'k', 'e');
INSERT INTO tenant.pairs SELECT i % 10, i FROM generate_series(2001, 3000) i;
DELETE FROM tenant.pairs WHERE k = 3});
agree('a table of a distributed schema', 'tenant.pairs');
run(q{
CREATE ROLE alice LOGIN;
CREATE ROLE bob LOGIN;
GRANT CREATE ON SCHEMA public TO alice;
SET ROLE alice;
CREATE TABLE of_alice (k int, e int, PRIMARY KEY (k, e));
SELECT create_distributed_table('of_alice', 'k');
SELECT fav_attach('of_alice', 'k', 'e');
GRANT SELECT, INSERT, DELETE ON of_alice TO bob;
SET ROLE bob;
INSERT INTO of_alice SELECT i % 20, i FROM generate_series(1, 4000) i;
DELETE FROM of_alice WHERE e = 77});
agree('an owner who is no superuser, and a writer without rights on the filters', 'of_alice');
run(q{SET ROLE alice; SELECT fav_detach('of_alice')});
is(run(q{SELECT sum(result::int) FROM run_command_on_all_nodes($$SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'of_alice_fav%'$$)}), 0, 'detached on all nodes');

run(q{SET ROLE alice; SELECT fav_attach('of_alice', 'k', 'e', build => false)});
run(q{SET ROLE alice; CALL fav_build('of_alice')});
agree('the owner builds filters', 'of_alice');
run(q{SET ROLE alice; SELECT fav_detach('of_alice')});
run(q{
SET citus.shard_replication_factor = 2;
CREATE TABLE doubled (k int, e text, PRIMARY KEY (k, e));
SELECT create_distributed_table('doubled', 'k');
INSERT INTO doubled SELECT i % 50, i FROM generate_series(1, 5000) i;
SELECT fav_attach('doubled', 'k', 'e');
INSERT INTO doubled SELECT i % 50, i FROM generate_series(5001, 9000) i;
DELETE FROM doubled WHERE e::int % 5 = 0});
agree('two copies of each shard', 'doubled');
run(q{SELECT fav_detach('doubled')});
my $long = q{"My schema"."A ""very"" long name of a table with hidden posts in it, 12345"};
run(qq{
CREATE SCHEMA "My schema";
CREATE TABLE $long ("User" bigint, "Post" bigint, PRIMARY KEY ("User", "Post"));
SELECT create_distributed_table('$long', 'User');
SELECT fav_attach('$long', 'User', 'Post');
INSERT INTO $long SELECT i % 50, i FROM generate_series(1, 5000) i;
DELETE FROM $long WHERE "Post" % 5 = 0});
agree('names that Citus shortens', $long);
run(qq{SELECT fav_detach('$long')});

# ---------------------------------------------------------------------------------
# Sinks
# ---------------------------------------------------------------------------------

run(q{
CREATE TABLE seen (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
SELECT create_distributed_table('seen', 'user_id', colocate_with => 'hidden_posts');
SELECT fav_sink('seen', 'user_id', 'post_id', keep => '30 days')});
my $sink = 'seen|seen_fav_levels|t|t|t|30 days';

is(run('SELECT source, levels, complete, active, sink, keep FROM fav_attachments WHERE sink', $_), $sink, 'a sink is listed: ' . $_->name) foreach $coordinator, $workers[0];

# How many of these elements has the filter of a user?
sub has
{
	my ($user, @elements) = @_;

	return run("SELECT count(*) FROM unnest(ARRAY[" . join(',', @elements) . "]) e WHERE fav_contains((SELECT filter FROM seen_fav WHERE user_id = $user), e)");
}

run('INSERT INTO seen VALUES (1, 1), (2, 1), (2, 1), (3, 1) ON CONFLICT DO NOTHING');
run('INSERT INTO seen VALUES (1, 2)', $workers[0]);
run('INSERT INTO seen SELECT u, 3 FROM generate_series(1, 60) u', $workers[1]);
run("COPY seen FROM stdin;\n" . join('', map { "$_\t4\n$_\t5\n" } 1 .. 60) . "\\.\n");
run('INSERT INTO seen SELECT user_id, post_id FROM hidden_posts WHERE user_id <= 60; INSERT INTO seen SELECT id % 60 + 1, 10000 + id FROM spread');
is(has(1, 1 .. 5) . has(2, 1, 3 .. 5) . has(60, 3 .. 5), '543', 'a sink: INSERT and COPY, on coordinator and workers');
is(run('SELECT count(*) FROM hidden_posts LEFT JOIN seen_fav USING (user_id) WHERE user_id <= 60 AND NOT COALESCE(fav_contains(filter, post_id), false)'), 0, 'INSERT ... SELECT of a colocated table');
is(run('SELECT count(*) FROM local_posts LEFT JOIN (SELECT user_id, filter FROM seen_fav OFFSET 0) f ON f.user_id = id % 60 + 1 WHERE NOT COALESCE(fav_contains(filter, 10000 + id), false)'), 0, 'and of one that is distributed otherwise');
is(run('SELECT count(*) FROM seen'), 0, 'no rows are stored');
is(run(q{SELECT sum(result::int) FROM run_command_on_placements('seen', 'SELECT count(*) FROM %s')}), 0, 'not in shards either');
run('BEGIN; INSERT INTO seen VALUES (1, 5000); SAVEPOINT s; INSERT INTO seen VALUES (1, 5001); ROLLBACK TO s; INSERT INTO seen VALUES (1, 5002); COMMIT');
is(has(1, 5000, 5002) . has(1, 5001), '20', 'a savepoint');
foreach my $statement ('UPDATE seen SET post_id = 7 WHERE user_id = 1', 'DELETE FROM seen', 'INSERT INTO seen VALUES (1, 1) ON CONFLICT (user_id, post_id) DO UPDATE SET post_id = 7')
{
	fails_with($statement, qr/table "seen" is a sink.*function seen_remove/s, $statement);
}
fails_with('INSERT INTO seen VALUES (1, NULL)', qr/null value in column "post_id" of sink "seen"/, 'an element that is NULL');
fails_with('SELECT seen_has(1, 1)', qr/cannot be asked by function.*\QUse COALESCE(public.fav_contains((SELECT fav_filter FROM public.seen_fav AS fav_view (fav_key, fav_filter) WHERE fav_key = ...), ...), false)\E/s, 'seen_has', $_) foreach $coordinator, $workers[0];

# adding
is(run('SELECT seen_add(1001, ARRAY[53, 51, NULL, 52, 53])'), '{53,51,52}', 'seen_add tells what is new, in order');
is(run('SELECT seen_add(1001, ARRAY[53, 54]), seen_add(1001, ARRAY[53, 54])'), '{54}|{}', 'and what is new since');
is(run('SELECT seen_add(1001, ARRAY[]::bigint[]), seen_add(1001, NULL), seen_add(1001, ARRAY[NULL]::bigint[]), seen_add(1002, ARRAY[NULL]::bigint[])'), '{}|{}|{}|{}', 'seen_add of nothing');
is(run('SELECT count(*) FROM seen_fav WHERE user_id = 1002'), 0, 'leaves no filter');
fails_with('SELECT seen_add(NULL, ARRAY[1])', qr/null value in column "user_id" of sink "seen"/, 'seen_add without a key');
is(run("SELECT seen_add(u, ARRAY[53, 55]) FROM unnest(ARRAY[1001, 1003, 1004, 1005]) u", $_), $_ == $workers[0] ? "{55}\n{53,55}\n{53,55}\n{53,55}" : "{}\n{}\n{}\n{}", 'seen_add: ' . $_->name) foreach @workers, $coordinator;
is(run('BEGIN; SELECT seen_add(1001, ARRAY[56]); ROLLBACK; SELECT seen_add(1001, ARRAY[56])'), "{56}\n{56}", 'seen_add, rolled back');
is(run('BEGIN; INSERT INTO seen VALUES (1001, 57); SELECT seen_add(1001, ARRAY[57, 58]); SAVEPOINT s; SELECT seen_add(1001, ARRAY[59]); ROLLBACK TO s; SELECT seen_add(1001, ARRAY[58, 59]); COMMIT; SELECT seen_add(1001, ARRAY[57, 58, 59])'),
	"{58}\n{59}\n{59}\n{}", 'within a transaction');
is(run(q{DO $$ BEGIN PERFORM seen_add(1001, ARRAY[60]); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $$; SELECT seen_add(1001, ARRAY[60])}), '{60}', 'an exception block');
fails_with('BEGIN; SELECT seen_add(u, ARRAY[70]) FROM generate_series(1001, 1010) u; SELECT 1 / 0; COMMIT', qr/division by zero/, 'a transaction on many nodes that fails');
is(run('SELECT sum(cardinality(seen_add(u, ARRAY[70]))) FROM generate_series(1001, 1010) u'), 10, 'it has added nothing');
is(run('SET plan_cache_mode = force_generic_plan; PREPARE q(bigint, bigint[]) AS SELECT seen_add($1, $2); EXECUTE q(1020, ARRAY[1]); EXECUTE q(1021, ARRAY[1]); EXECUTE q(1020, ARRAY[1, 2])'), "{1}\n{1}\n{2}", 'prepared, with generic plans');
is(run('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT seen_add(1020, ARRAY[2, 3]); COMMIT'), '{3}', 'at REPEATABLE READ');
is(run('SELECT sum(cardinality(seen_add(1030, ARRAY(SELECT i FROM generate_series(n * 100, n * 100 + 149) i)))) BETWEEN 5900 AND 6050 FROM generate_series(1, 60) n'), 't', 'many elements');
fails_with('SELECT seen_add(user_id, ARRAY[1]) FROM hidden_posts WHERE user_id = 1', qr/cannot execute a distributed query from a query on a shard/, 'seen_add in a query that Citus sends to shards');

# removing
is(run('SELECT seen_remove(1001, ARRAY[53, 54]), seen_remove(1001, ARRAY[55], exclude => true); SELECT seen_add(1001, ARRAY[51, 53, 54, 55])'), "|\n{53,54,55}", 'seen_remove');
is(run('BEGIN; SELECT seen_remove(1001, ARRAY[53]); ROLLBACK; SELECT seen_add(1001, ARRAY[53])'), "\n{}", 'rolled back');
run('SELECT seen_remove(1001, ARRAY[53]), seen_remove(1040, ARRAY[53])', $workers[1]);
is(has(1001, 53) . has(1001, 54), '01', 'on a worker');

# types of keys and elements, times, names, and no time
run(q{
SET citus.shard_replication_factor = 1;
CREATE TABLE "S %s" ("{k}%s" varchar(9), "{e}" uuid, at timestamptz NOT NULL);
SELECT create_distributed_table('"S %s"', '{k}%s');
SELECT fav_sink('"S %s"', '{k}%s', '{e}', keep => '30 days', at => 'at');
INSERT INTO "S %s" SELECT 'k' || i % 5, (lpad(i::text, 8, '0') || '-0000-0000-0000-000000000000')::uuid, now() - i * interval '10 days' FROM generate_series(0, 9) i});
is(run(q{SELECT sum(fav_count(filter)) FROM "S %s_fav"}), 4, 'a column that says when: old rows are dropped');
is(run(q{SELECT "S %s_add"('k1', ARRAY['00000001-0000-0000-0000-000000000000', '00000006-0000-0000-0000-000000000000']::uuid[])}), '{00000006-0000-0000-0000-000000000000}', 'text and uuid');
fails_with(q{SELECT "S %s_add"('too long a key', ARRAY['00000001-0000-0000-0000-000000000000']::uuid[])}, qr/value too long for type character varying\(9\)/, 'a key that its column does not take');
is(run(q{SET citus.log_remote_commands = on; SET client_min_messages = log; SELECT "S %s_add"('k1', ARRAY['00000001-0000-0000-0000-000000000000']::uuid[])}), '{}', 'and again');
my (undef, undef, $log) = $coordinator->psql('postgres', q{SET citus.log_remote_commands = on; SET client_min_messages = log; SELECT "S %s_add"('k1', ARRAY['00000001-0000-0000-0000-000000000000']::uuid[])});
is(scalar(() = $log =~ /issuing SELECT public\.fav_sink_add/g), 1, 'one shard is asked');
run(q{SELECT fav_detach('"S %s"'); INSERT INTO "S %s" VALUES ('k', '00000001-0000-0000-0000-000000000000', now())});
is(run(q{SELECT count(*) FROM "S %s"}), 1, 'detached: it stores rows');
run(q{
SET citus.enable_schema_based_sharding = on;
CREATE TABLE tenant.seen (k int, e text);
SELECT fav_sink('tenant.seen', 'k', 'e');
INSERT INTO tenant.seen VALUES (1, 'a')});
is(run(q{SELECT tenant.seen_add(1, ARRAY['a', 'b']), tenant.seen_add(1, ARRAY['a', 'b', 'c'])}), '{b}|{c}', 'a sink of a distributed schema');

# rights
run(q{
SET ROLE alice;
CREATE TABLE sink_of_alice (k int, e int);
SELECT create_distributed_table('sink_of_alice', 'k');
SELECT fav_sink('sink_of_alice', 'k', 'e');
GRANT INSERT ON sink_of_alice TO bob});
is(run('SET ROLE bob; INSERT INTO sink_of_alice VALUES (1, 1); SELECT sink_of_alice_add(1, ARRAY[1, 2])', $_), $_ == $coordinator ? '{2}' : '{}', 'INSERT is enough to add: ' . $_->name) foreach $coordinator, $workers[0];
fails_with('SET ROLE bob; SELECT sink_of_alice_remove(1, ARRAY[1])', qr/permission denied for table sink_of_alice/, 'and not to remove', $_) foreach $coordinator, $workers[0];
fails_with('SET ROLE bob; SELECT count(*) FROM sink_of_alice_fav', qr/permission denied/, 'nor to read');
run('GRANT DELETE ON sink_of_alice TO bob; SET ROLE bob; SELECT sink_of_alice_remove(1, ARRAY[1])');
is(run('SET ROLE bob; SELECT sink_of_alice_add(1, ARRAY[1, 2])'), '{1}', 'removed by bob');
fails_with('SET ROLE bob; BEGIN; INSERT INTO sink_of_alice VALUES (1, 3); SELECT sink_of_alice_add(1, ARRAY[3])', qr/by a different user.*The function runs as role alice\. Call it in a transaction of its own/s, 'two roles in one transaction');
fails_with('SET ROLE bob; SELECT fav_detach(' . q{'sink_of_alice')}, qr/must be owner/, 'detaching what another role owns');
my (undef, undef, $warning) = $coordinator->psql('postgres', q{SET ROLE alice; SELECT fav_detach('sink_of_alice')});
like($warning, qr/the filters of 1 key of sink "sink_of_alice" are destroyed/, 'fav_detach warns');

# the same sink, distributed: numbers have no seed of their own
run(q{
CREATE TABLE seen_here (k bigint, e bigint);
SELECT fav_sink('seen_here', 'k', 'e');
INSERT INTO seen_here SELECT i % 20, i FROM generate_series(1, 5000) i;
CREATE TABLE seen_there (k bigint, e bigint);
SELECT create_distributed_table('seen_there', 'k', colocate_with => 'none');
SELECT fav_sink('seen_there', 'k', 'e');
INSERT INTO seen_there_fav_levels SELECT * FROM seen_here_fav_levels});
is(run('WITH f AS MATERIALIZED (TABLE seen_there_fav) SELECT count(*) FROM generate_series(1, 5000) i LEFT JOIN f ON f.k = i % 20 WHERE NOT COALESCE(fav_contains(f.filter, i), false)'), 0, 'filters of a local sink, copied to a distributed one');
is(run('INSERT INTO seen_there VALUES (3, 6000); SELECT seen_there_add(3, ARRAY[3, 6000, 6020])'), '{6020}', 'it goes on');
fails_with(q{SELECT create_distributed_table('seen_here', 'k')}, qr/has triggers/, 'distributing a sink');
is(run('SELECT seen_here_has(3, 3), seen_here_add(3, ARRAY[3])'), 't|{}', 'it stays as it was');

# TRUNCATE, and Citus taking the tables of a sink apart: writes fail
run('BEGIN; INSERT INTO seen_there VALUES (1, 7000); TRUNCATE seen_there; INSERT INTO seen_there VALUES (1, 7001); COMMIT');
is(run('SELECT k, fav_count(filter) FROM seen_there_fav'), '1|1', 'TRUNCATE of a sink');
run('TRUNCATE seen_there', $workers[0]);
is(run('SELECT count(*) FROM seen_there_fav_levels'), 0, 'on a worker');
run(q{INSERT INTO seen_there VALUES (1, 1); SELECT alter_distributed_table('seen_there_fav_levels', shard_count => 8, cascade_to_colocated => false)});
fails_with('INSERT INTO seen_there VALUES (1, 2)', qr/Citus does not keep table "seen_there_fav_levels" where it keeps.*Copy table "seen_there_fav_levels" before fav_detach drops it/s, 'filters that are distributed otherwise');
run(q{SELECT fav_detach('seen_there'), fav_sink('seen_there', 'k', 'e'); INSERT INTO seen_there VALUES (1, 1); SELECT undistribute_table('seen_there')});
fails_with('INSERT INTO seen_there VALUES (1, 2)', qr/does not say whose filters it has.*Copy table "seen_there_fav_levels" before fav_detach drops it/s, 'undistributed: a write');
fails_with('SELECT seen_there_add(1, ARRAY[2])', qr/does not have the filters of a sink/, 'undistributed: seen_there_add');
fails_with('SELECT seen_there_has(1, 2)', qr/cannot be asked by function.*Copy table/s, 'undistributed: a read');
run('CREATE TABLE saved AS TABLE seen_there_fav_levels');
(undef, undef, $warning) = $coordinator->psql('postgres', q{SELECT fav_detach('seen_there')});
like($warning, qr/the filters of 1 key of sink "seen_there" are destroyed/, 'detaching what is left warns');
run(q{SELECT fav_sink('seen_there', 'k', 'e'); INSERT INTO seen_there_fav_levels TABLE saved});
is(run('SELECT seen_there_has(1, 1), seen_there_has(1, 2), seen_there_add(1, ARRAY[1, 2])'), 't|f|{2}', 'a new sink takes a copy of the filters');
run(q{SELECT fav_detach('seen_there'); DROP TABLE saved;
DROP TABLE seen_here CASCADE; DROP TABLE seen_here_fav_levels CASCADE});

# ---------------------------------------------------------------------------------
# Moves, splits, new nodes, all under writers
# ---------------------------------------------------------------------------------

my $scripts = PostgreSQL::Test::Utils::tempdir();
append_to_file("$scripts/one.sql", qq{
\\set u random(1, $users)
\\set p random(1, 1000)
INSERT INTO hidden_posts VALUES (:u, :p) ON CONFLICT DO NOTHING;
DELETE FROM hidden_posts WHERE user_id = :u AND post_id BETWEEN :p + 3 AND :p + 5;
});
append_to_file("$scripts/many.sql", q{
\set p random(1001, 2000)
INSERT INTO hidden_posts SELECT u, :p FROM generate_series(1, 20) u ON CONFLICT DO NOTHING;
});

# What was inserted into the sink, or told as new by it, is also in tables beside it.  To tell
# an element twice is a duplicate key.
run(q{
CREATE TABLE seen_rows (user_id bigint, post_id bigint);
SELECT create_distributed_table('seen_rows', 'user_id', colocate_with => 'hidden_posts');
CREATE TABLE told (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
SELECT create_distributed_table('told', 'user_id', colocate_with => 'hidden_posts')});
append_to_file("$scripts/sink.sql", qq{
\\set u random(1, $users)
\\set p random(100000, 200000)
BEGIN;
INSERT INTO seen VALUES (:u, :p), (:u, :p + 1);
INSERT INTO seen_rows VALUES (:u, :p), (:u, :p + 1);
COMMIT;
});
append_to_file("$scripts/add.sql", q{
\set u random(2001, 2010)
\set p random(1, 2000)
BEGIN;
SELECT seen_add(:u, ARRAY[:p, :p + 1, :p + 2]) AS new \gset
INSERT INTO told SELECT :u, e FROM unnest(':new'::bigint[]) e;
COMMIT;
});

sub sink_agrees
{
	my ($what) = @_;

	is(run("SELECT count(*) FROM $_ r LEFT JOIN seen_fav f USING (user_id) WHERE NOT COALESCE(fav_contains(f.filter, r.post_id), false)"), 0, "$what: the sink has all of $_")
	  foreach 'seen_rows', 'told';
	return;
}

my ($transactions, $writers, $output, $errors) = (0);

sub start_writers
{
	my @scripts = @_ ? @_ : ("$scripts/one.sql\@20", "$scripts/sink.sql\@10", "$scripts/add.sql\@10", "$scripts/many.sql\@1");

	($output, $errors) = ('', '');
	$writers = run_in_background(
		[ 'pgbench', '-n', '-c', 4, '-T', 600, '-P', 1, '--max-tries', 100, (map { ('-f', $_) } @scripts), '-h', $coordinator->host, '-p', $coordinator->port, 'postgres' ],
		\$output, \$errors);
	return;
}

sub end_writers
{
	$writers->signal('TERM');
	eval { $writers->finish };
	$transactions += $_ foreach $errors =~ /^progress: [\d.]+ s, ([\d.]+) tps/mg;
	return;
}

sub stop_writers
{
	my ($what) = @_;

	sleep 1;
	end_writers();
	# Citus itself may end a statement whose shard is gone
	unlike($errors, qr/filters|as a shard of|duplicate key/, "$what: the filters stopped no writer, and nothing was told twice");
	sink_agrees($what);
	return;
}

my %ports = ($workers[0]->port => $workers[1], $workers[1]->port => $workers[0]);

sub placements
{
	return map { [ split /\|/ ] } split /\n/,
	  run(q{SELECT shardid, nodename, nodeport FROM citus_shards WHERE table_name = 'hidden_posts'::regclass ORDER BY shardid});
}

foreach my $mode ('force_logical', 'block_writes')
{
	start_writers();
	foreach my $shard ((placements())[ 0, 1 ])
	{
		my ($id, $host, $port) = @$shard;
		run("SELECT citus_move_shard_placement($id, '$host', $port, " . address($ports{$port}) . ", shard_transfer_mode => '$mode')");
	}
	stop_writers("moves, $mode");
	agree("moves, $mode");

	# To other nodes: by logical replication, Citus 13.2 loses its way under updates of any table
	# if a new shard is on the node of the old one.
	start_writers();
	my ($id, undef, $port) = @{ (placements())[2] };
	my $node = 'nodeport = ' . $ports{$port}->port;
	run(qq{
SELECT citus_split_shard_by_split_points($id, ARRAY[((shardminvalue::bigint + shardmaxvalue::bigint) / 2)::text], ARRAY(SELECT nodeid FROM pg_dist_node, generate_series(1, 2) WHERE $node), '$mode')
FROM pg_dist_shard WHERE shardid = $id});
	stop_writers("split, $mode");
	agree("split, $mode");
	run("SELECT isolate_tenant_to_new_shard('hidden_posts', " . ($mode eq 'block_writes' ? 8 : 7) . ", 'CASCADE', shard_transfer_mode => '$mode')");
	run(q{INSERT INTO hidden_posts SELECT u, 3001 FROM generate_series(1, 60) u ON CONFLICT DO NOTHING; DELETE FROM hidden_posts WHERE post_id = 3001 AND user_id % 2 = 0});
	agree("a tenant of its own, $mode");
}

push @workers, start_citus('worker_3');
# Citus has no order of tables but that of their dependencies and that of this catalog.
run(q{
WITH moved AS (DELETE FROM pg_dist_object WHERE classid = 'pg_class'::regclass AND objid IN ('hidden_posts'::regclass, 'seen'::regclass, 'everywhere'::regclass, 'tenant.pairs'::regclass) RETURNING *)
INSERT INTO pg_dist_object SELECT * FROM moved});
is(run(q{SELECT count(*) FROM pg_dist_object s, pg_dist_object l WHERE s.ctid > l.ctid AND (s.objid, l.objid) IN (('hidden_posts'::regclass, 'hidden_posts_fav_levels'::regclass), ('seen'::regclass, 'seen_fav_levels'::regclass))}), 2, 'sources are behind their levels tables');
start_writers();
run("SELECT citus_add_node(" . address($workers[2]) . ")");
run(q{SELECT rebalance_table_shards('hidden_posts', shard_transfer_mode => 'force_logical')});
stop_writers('a new node');
agree('a new node');
cmp_ok(run("SELECT count(*) FROM citus_shards WHERE table_name = 'hidden_posts'::regclass AND nodeport = " . $workers[2]->port), '>', 1, 'it has shards');
is(run('SELECT bool_and(active AND complete), count(*) FROM fav_attachments', $workers[2]), 't|6', 'and lists the attachments and sinks');
run(q{INSERT INTO hidden_posts SELECT u, 3002 FROM generate_series(1, 60) u}, $workers[2]);
agree('statements there');

# ---------------------------------------------------------------------------------
# Maintenance
# ---------------------------------------------------------------------------------

start_writers();
run(q{SELECT fav_attach('hidden_posts', 'user_id', 'post_id', name => 'later', build => false)});
is(run(q{SELECT complete, active FROM fav_attachments WHERE levels = 'later_fav_levels'::regclass}), 'f|t', 'attached without filters');
run(q{CALL fav_build('hidden_posts', 'later')});
stop_writers('a build');
agree('a build', 'hidden_posts', 'later');
is(run(q{SELECT filter, complete, active FROM fav_attachments WHERE levels = 'later_fav_levels'::regclass}), 'later_fav|t|t', 'complete now');
run(q{DELETE FROM later_fav_levels WHERE user_id < 20; CALL fav_build('hidden_posts', 'later', rebuild => true)});
agree('a rebuild', 'hidden_posts', 'later');
run(q{DELETE FROM later_fav_levels WHERE user_id < 20});
is(run(q{SELECT bool_and(success) FROM run_command_on_placements('hidden_posts', $$SELECT fav_rebuild('%s', name => 'later')$$)}), 't', 'a rebuild of each shard');
agree('rebuilt', 'hidden_posts', 'later');
run(q{SELECT fav_detach('hidden_posts', 'later')});

# names lead nowhere: writes fail
run('ALTER TABLE hidden_posts_fav_levels RENAME TO elsewhere');
fails_with('INSERT INTO hidden_posts VALUES (1, 999999)', qr/are not here/, 'a levels table that was renamed');
run('ALTER TABLE elsewhere RENAME TO hidden_posts_fav_levels');
run('ALTER TABLE hidden_posts RENAME TO pairs; INSERT INTO pairs VALUES (1, 999999); ALTER TABLE pairs RENAME TO hidden_posts');
agree('renamed and back');

# names with what the extension's own texts use
run(q{
CREATE TABLE braces ("a{b}" int, "{k}%s" int, PRIMARY KEY ("a{b}", "{k}%s"));
SELECT create_distributed_table('braces', 'a{b}', colocate_with => 'none');
INSERT INTO braces SELECT i % 10, i FROM generate_series(1, 1000) i;
SELECT fav_attach('braces', 'a{b}', '{k}%s', name => 'x%s {fav}', build => false);
CALL fav_build('braces', 'x%s {fav}');
DELETE FROM braces WHERE "a{b}" = 3});
agree('names with braces and percent signs', 'braces');
run(q{SELECT fav_detach('braces')});

# ---------------------------------------------------------------------------------
# Tables that are distributed otherwise later
# ---------------------------------------------------------------------------------

# Generic plans of hidden_posts_has, made before, in a session with generic plans of everything.
my $session = $coordinator->background_psql('postgres', on_error_stop => 0);

sub answer
{
	my ($sql) = @_;
	my $answer = $session->query($sql);
	my $error = $session->{stderr};

	$session->{stderr} = '';
	return "$answer$error";
}

run(q{CREATE TABLE pre (k bigint, e bigint, PRIMARY KEY (k, e)); INSERT INTO pre SELECT i % 10, i FROM generate_series(1, 1000) i; SELECT fav_attach('pre', 'k', 'e')});
answer(q{SET plan_cache_mode = force_generic_plan; PREPARE p(bigint, bigint) AS SELECT pre_has($1, $2)});
is(answer('EXECUTE p(1, 1)') . answer('EXECUTE p(1, 2)'), 'tf', 'prepared before the table is distributed');
answer(q{SELECT fav_detach('pre'); SELECT create_distributed_table('pre', 'k', colocate_with => 'none'); SELECT fav_attach('pre', 'k', 'e')});
like(answer('EXECUTE p(1, 1)'), qr/cannot be asked by function/, 'after that: refused');
agree('attached with generic plans', 'pre');
run(q{SELECT fav_detach('pre'); SELECT undistribute_table('pre'); SELECT fav_attach('pre', 'k', 'e')});
is(answer('EXECUTE p(1, 1)') . answer('EXECUTE p(1, 2)'), 'tf', 'undistributed: right');
$session->quit;
run(q{SELECT fav_detach('pre')});

sub attachment
{
	my ($table, $node) = @_;

	return run(qq{SELECT string_agg(concat_ws('|', levels, active), ' ') FROM fav_attachments WHERE source = '$table'::regclass}, $node);
}

my $apart = qr/Citus does not keep table "apart_fav_levels" where it keeps table "apart".*Call fav_detach, then fav_attach/s;
run(q{CREATE TABLE apart (k bigint, e bigint, PRIMARY KEY (k, e)); SELECT create_distributed_table('apart', 'k', colocate_with => 'none'); INSERT INTO apart SELECT i % 10, i FROM generate_series(1, 1000) i});
foreach my $command (
	[ q{alter_distributed_table('apart_fav_levels', shard_count => 8, cascade_to_colocated => false)}, $apart ],
	[ q{undistribute_table('apart_fav_levels')}, qr/names are not here.*call fav_detach, then fav_attach, for table "apart"/s ],
	[ q{undistribute_table('apart')}, qr/does not say whose filters it has.*Call fav_detach, then fav_attach/s ])
{
	my ($call, $error) = @$command;

	run(q{SELECT fav_attach('apart', 'k', 'e')});
	is(attachment('apart'), 'apart_fav_levels|t', "before $call: active");
	run("SELECT $call");
	is(attachment('apart'), 'apart_fav_levels|f', "$call: not active");
	fails_with('INSERT INTO apart VALUES (1, -1)', $error, "$call, a write");
	fails_with('SELECT apart_has(1, 1)', qr/cannot be asked by function|does not exist|Call fav_detach/, "$call, a read");
	run(q{SELECT fav_detach('apart')});
	is(run(q{SELECT count(*) FROM pg_class WHERE relname ~ '^apart_fav'}), 0, "$call: detached");
	run('INSERT INTO apart VALUES (1, -1); DELETE FROM apart WHERE e = -1');
}
run(q{SELECT fav_attach('apart', 'k', 'e')});
is(run('SELECT apart_has(1, 1), apart_has(1, 2)'), 't|f', 'undistributed, detached and attached: right');

# A local table that Citus takes into its metadata: it refuses where there are other nodes, ...
fails_with($_, qr/relation "public.apart_fav_levels" does not exist/, $_)
  foreach (q{SELECT citus_add_local_table_to_metadata('apart')}, q{CREATE TABLE ids AS SELECT generate_series(0, 10)::bigint AS id; ALTER TABLE ids ADD PRIMARY KEY (id); SELECT create_reference_table('ids'); ALTER TABLE apart ADD FOREIGN KEY (k) REFERENCES ids});
run('INSERT INTO apart VALUES (1, -1)');
is(run('SELECT apart_has(1, -1)'), 't', 'it stays as it was');

# ... and otherwise does it.
my $single = start_citus('single');
run(q{SELECT citus_set_coordinator_host(} . address($single) . q{);
CREATE EXTENSION fav;
CREATE TABLE apart (k bigint, e bigint, PRIMARY KEY (k, e));
INSERT INTO apart SELECT i % 10, i FROM generate_series(1, 1000) i;
SELECT fav_attach('apart', 'k', 'e');
SELECT citus_add_local_table_to_metadata('apart')}, $single);
is(attachment('apart', $single), 'apart_fav_levels|f', 'a local table in the metadata: not active');
fails_with($_, qr/table "apart" is in the metadata of Citus, and its filters are not.*Call fav_detach/s, "a local table in the metadata: $_", $single)
  foreach ('INSERT INTO apart VALUES (1, -1)', 'DELETE FROM apart WHERE k = 1', 'TRUNCATE apart', 'SELECT apart_has(1, 1)');
run(q{SELECT fav_detach('apart'); INSERT INTO apart VALUES (1, -1); SELECT undistribute_table('apart'); SELECT fav_attach('apart', 'k', 'e')}, $single);
is(run('SELECT apart_has(1, -1), apart_has(1, -2)', $single), 't|f', 'detached, undistributed and attached: right');

# ---------------------------------------------------------------------------------
# Ordinary logical replication into tables that are called like shards
# ---------------------------------------------------------------------------------

$single->safe_psql('postgres', 'CREATE DATABASE publisher');
$single->safe_psql('publisher', q{
CREATE TABLE hidden_posts_2024 (k bigint, e bigint, PRIMARY KEY (k, e));
INSERT INTO hidden_posts_2024 VALUES (1, 1);
CREATE PUBLICATION p FOR ALL TABLES;
SELECT pg_create_logical_replication_slot('s', 'pgoutput')});
run(q{
CREATE TABLE hidden_posts_2024 (k bigint, e bigint, PRIMARY KEY (k, e));
SELECT fav_attach('hidden_posts_2024', 'k', 'e');
CREATE SUBSCRIPTION s CONNECTION 'dbname=publisher host=} . $single->host . ' port=' . $single->port . q{' PUBLICATION p WITH (create_slot = false, slot_name = 's')}, $single);
$single->wait_for_subscription_sync;
$single->safe_psql('publisher', 'INSERT INTO hidden_posts_2024 SELECT 1, i FROM generate_series(2, 500) i; DELETE FROM hidden_posts_2024 WHERE e = 7');
$single->poll_query_until('postgres', 'SELECT count(*) = 499 FROM hidden_posts_2024') or die 'the rows do not come';
is(run(q{SELECT elements, missing, stale FROM fav_verify('hidden_posts_2024')}, $single), '499|0|0', 'logical replication into hidden_posts_2024: its filters follow');
run('DROP SUBSCRIPTION s', $single);

# attached before it is distributed
run(q{CREATE TABLE early (k int, e int, PRIMARY KEY (k, e)); SELECT fav_attach('early', 'k', 'e')});
foreach my $unsafe ('off', 'on')
{
	fails_with("SET citus.enable_unsafe_triggers = $unsafe; SELECT create_distributed_table('early', 'k')", qr/has triggers|does not exist/, "distributing an attached table, unsafe triggers $unsafe");
}
run('INSERT INTO early VALUES (1, 1)');
is(run(q{SELECT missing FROM fav_verify('early')}), 0, 'it stays as it was');

# ---------------------------------------------------------------------------------
# A worker fails
# ---------------------------------------------------------------------------------

my $failing = $workers[1];
$failing->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($failing, 'backup', has_streaming => 1);
$standby->start;

# An assertion of Citus 13.2 fails when a node goes while COPY sends rows to it.
start_writers(map { "$scripts/$_.sql" } 'one', 'sink', 'add');
sleep 2;
$failing->stop('immediate');
end_writers();
$standby->promote;
run('SELECT citus_update_node(nodeid, ' . address($standby) . ') FROM pg_dist_node WHERE nodeport = ' . $failing->port);
run('SELECT recover_prepared_transactions()');
agree('after a failover');
sink_agrees('after a failover');
unlike($errors, qr/duplicate key/, 'after a failover: nothing was told twice');
cmp_ok(run('SELECT count(*) FROM told'), '>', 500, 'much was told');
is(run('SELECT seen_add(u, ARRAY[300000]) FROM generate_series(2001, 2010) u'), join("\n", ('{300000}') x 10), 'and it goes on');
run(q{INSERT INTO hidden_posts SELECT u, p FROM generate_series(1, 60) u, generate_series(8001, 8050) p; DELETE FROM hidden_posts WHERE post_id = 8010});
agree('and it goes on');
figures(int($transactions) . " transactions of writers beside moves, splits, builds, a new node and a failure ($version)");

foreach my $node ($coordinator, @workers, $standby, $single)
{
	unlike(slurp_file($node->logfile), qr/PANIC|TRAP:|terminated by signal/, $node->name . ': nothing died');
	$node->stop if $node != $failing;
}
done_testing();
