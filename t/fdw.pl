
# Three servers and postgres_fdw: two have the rows of their users and keep the filters, and one
# has foreign tables.  Probes and aggregates are sent to the server that has the rows, and
# writes through the foreign tables keep the filters there.  docs/SCALING.md shows how to set it up.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $router = start_node('router');
my @homes = map { start_node("home_$_") } 0 .. 1;

# ---------------------------------------------------------------------------------
# The servers
# ---------------------------------------------------------------------------------

# A user is at home on one server.  All servers have all posts.
foreach my $home (@homes)
{
	$home->safe_psql(
		'postgres', q{
CREATE TABLE posts (id bigint PRIMARY KEY, topic int);
INSERT INTO posts SELECT i, i % 10 FROM generate_series(1, 20000) i;
CREATE INDEX ON posts (topic, id);
ANALYZE posts;
CREATE TABLE hidden_posts (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
SELECT fav_attach('hidden_posts', 'user_id', 'post_id');
CREATE TABLE users (id bigint PRIMARY KEY, seen fav)});
}

$router->safe_psql(
	'postgres', q{
CREATE EXTENSION postgres_fdw;
CREATE TABLE hidden_posts (user_id bigint, post_id bigint) PARTITION BY HASH (user_id);
CREATE TABLE hidden_posts_fav (user_id bigint, filter fav) PARTITION BY HASH (user_id)});
foreach my $i (0 .. $#homes)
{
	my ($host, $port) = ($homes[$i]->host, $homes[$i]->port);
	my $attach = join '', map {
		"ALTER TABLE $_ ATTACH PARTITION home_$i.$_ FOR VALUES WITH (MODULUS 2, REMAINDER $i);\n"
	} qw(hidden_posts hidden_posts_fav);

	$router->safe_psql(
		'postgres', qq{
CREATE SERVER home_$i FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres', extensions 'fav', use_remote_estimate 'true');
CREATE USER MAPPING FOR CURRENT_USER SERVER home_$i;
CREATE SCHEMA home_$i;
IMPORT FOREIGN SCHEMA public EXCEPT (fav_attachments, fav_progress) FROM SERVER home_$i INTO home_$i;
$attach});
}

is( $router->safe_psql('postgres', q{SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'f' AND relnamespace = 'home_0'::regnamespace}),
	'hidden_posts hidden_posts_fav hidden_posts_fav_levels posts users',
	'IMPORT FOREIGN SCHEMA brings the source, its levels and its view');

# ---------------------------------------------------------------------------------
# Attaching is for the servers that have the rows
# ---------------------------------------------------------------------------------

sub fails_with
{
	my ($sql, $pattern, $what) = @_;
	my ($status, $out, $error) = $router->psql('postgres', $sql);

	isnt($status, 0, "$what: refused");
	like($error, $pattern, "$what: says so");
	return;
}

my $elsewhere = qr/cannot attach filters to rows of foreign table "hidden_posts".*HINT:  Attach the filters on the server that has the rows/s;
fails_with(q{SELECT fav_attach('hidden_posts', 'user_id', 'post_id')}, $elsewhere, 'attaching to a table of foreign partitions');
fails_with(q{SELECT fav_attach('home_0.hidden_posts', 'user_id', 'post_id')}, $elsewhere, 'attaching to a foreign table');

# a foreign partition that comes later
$router->safe_psql(
	'postgres', q{
CREATE TABLE mixed (user_id bigint, post_id bigint) PARTITION BY LIST (user_id);
CREATE TABLE mixed_here PARTITION OF mixed FOR VALUES IN (1);
CREATE INDEX ON mixed (user_id, post_id);
SELECT fav_attach('mixed', 'user_id', 'post_id');
CREATE FOREIGN TABLE mixed_there (user_id bigint, post_id bigint) SERVER home_0 OPTIONS (table_name 'hidden_posts');
ALTER TABLE mixed ATTACH PARTITION mixed_there FOR VALUES IN (2)});
my $late = qr/table "mixed" has rows of foreign table "mixed_there" in it.*HINT:  Detach it/s;
fails_with(q{INSERT INTO mixed VALUES (2, 1)}, $late, 'writing a foreign partition that came later');
fails_with(q{INSERT INTO mixed VALUES (1, 1)}, $late, 'writing the others');
is($router->safe_psql('postgres', 'SELECT active FROM fav_attachments'), 'f', 'such filters are not called active');
fails_with('SELECT mixed_has(1, 1)', $late, 'mixed_has while it is there');
is( $router->safe_psql(
		'postgres', q{
ALTER TABLE mixed DETACH PARTITION mixed_there;
INSERT INTO mixed VALUES (1, 1);
SELECT active, (fav_verify('mixed')).missing, mixed_has(1, 1), mixed_has(1, 2) FROM fav_attachments}),
	't|0|t|f', 'and they go on when it has left');

# ---------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------

sub at_home
{
	my ($sql) = @_;

	return join ' ', map { $_->safe_psql('postgres', $sql) } @homes;
}

sub agree
{
	my ($what) = @_;

	is(at_home(q{SELECT missing, stale FROM fav_verify('hidden_posts')}), '0|0 0|0', $what);
	return;
}

my $copied = join '', map { my $user = $_; map { "$user\t$_\n" } 1001 .. 1200 } 1 .. 20;
$router->safe_psql('postgres', 'INSERT INTO hidden_posts SELECT u, p FROM generate_series(1, 40) u, generate_series(1, 50) p');
$router->safe_psql('postgres', "COPY hidden_posts FROM stdin;\n$copied\\.\n");
my ($first, $second) = split / /, at_home('SELECT count(DISTINCT user_id) FROM hidden_posts');
ok($first > 5 && $second > 5 && $first + $second == 40, 'users are spread over the servers');
is($router->safe_psql('postgres', 'SELECT count(*) FROM hidden_posts'), 40 * 50 + 20 * 200, 'INSERT and COPY reach them');
agree('the filters follow');

$router->safe_psql('postgres', "ALTER SERVER home_$_ OPTIONS (ADD batch_size '100')") foreach 0, 1;
$router->safe_psql('postgres', 'INSERT INTO hidden_posts SELECT u, p FROM generate_series(1, 40) u, generate_series(2001, 2100) p');
agree('rows in batches');
$router->safe_psql(
	'postgres', q{
DELETE FROM hidden_posts WHERE post_id BETWEEN 10 AND 20;
UPDATE hidden_posts SET post_id = post_id + 3000 WHERE post_id BETWEEN 30 AND 40;
BEGIN;
DELETE FROM hidden_posts WHERE user_id < 20;
INSERT INTO hidden_posts SELECT u, 4999 FROM generate_series(1, 40) u;
ROLLBACK;
BEGIN;
INSERT INTO hidden_posts SELECT u, 4500 FROM generate_series(1, 40) u;
SAVEPOINT s;
DELETE FROM hidden_posts WHERE post_id > 1100;
ROLLBACK TO s;
COMMIT});
agree('deletes, updates, rollbacks');
is( $router->safe_psql('postgres', 'SELECT count(*), count(*) FILTER (WHERE fav_contains(filter, 4500)), bool_or(fav_contains(filter, 4999)) FROM hidden_posts_fav'),
	'40|40|f', 'the filters are read through the view');
$router->safe_psql('postgres', 'TRUNCATE hidden_posts; INSERT INTO hidden_posts SELECT u, u * p FROM generate_series(1, 40) u, generate_series(1, 300) p');
agree('TRUNCATE');

# ---------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------

# The queries that a plan sends.
sub sent
{
	my ($query, $settings) = @_;
	my $plan = $router->safe_psql('postgres', ($settings // '') . "EXPLAIN (VERBOSE, COSTS OFF) $query");

	return join "\n", $plan =~ /Remote SQL: (.*)/g;
}

# The same without `extensions 'fav'`: nothing of ours is sent, and the answer is the same.
sub is_sent
{
	my ($query, $pattern, $what) = @_;
	my $answer = $router->safe_psql('postgres', $query);

	like(sent($query), $pattern, "$what: sent");
	$router->safe_psql('postgres', "ALTER SERVER home_$_ OPTIONS (DROP extensions)") foreach 0, 1;
	unlike(sent($query), qr/fav_(contains|agg|union|filter)|@>|<@/, "$what: not sent without the option");
	is($router->safe_psql('postgres', $query), $answer, "$what: the same answer");
	$router->safe_psql('postgres', "ALTER SERVER home_$_ OPTIONS (ADD extensions 'fav')") foreach 0, 1;
	return $answer;
}

my $home = $router->safe_psql('postgres', q{SELECT tableoid::regclass FROM hidden_posts WHERE user_id = 7 LIMIT 1}) =~ /home_1/ ? 1 : 0;
my $posts = "home_$home.posts";
my $hidden = $homes[$home]->safe_psql('postgres', 'SELECT count(*) FROM hidden_posts JOIN posts ON id = post_id WHERE user_id = 7');
my $feed = "SELECT p.id FROM $posts p WHERE topic = 3";
my $filter = '(SELECT filter FROM hidden_posts_fav WHERE user_id = 7)';
my $latest = 'ORDER BY p.id DESC LIMIT 50';

my $page = is_sent("$feed AND NOT fav_contains($filter, p.id) $latest",
	qr/NOT public\.fav_contains\(\$1::public\.fav, id\).*ORDER BY id DESC.*LIMIT 50/, 'a page of the feed');
is( $page, $homes[$home]->safe_psql('postgres', "SELECT p.id FROM posts p WHERE topic = 3 AND NOT hidden_posts_has(7, p.id) $latest"),
	'it is the page that the server itself gives');
unlike(sent("$feed AND NOT fav_contains($filter, p.id) $latest"), qr/hidden_posts_fav.*hidden_posts_fav/s, 'one server is queried for the filter');
is_sent("$feed AND NOT $filter @> p.id $latest", qr/OPERATOR\(public\.@>\)/, 'the operator @>');
is_sent("$feed AND NOT p.id <@ $filter $latest", qr/OPERATOR\(public\.<@\)/, 'the operator <@');
is( is_sent("SELECT count(*) FROM $posts p JOIN home_$home.hidden_posts_fav f ON f.user_id = 7 JOIN home_$home.hidden_posts h ON h.user_id = 7 AND h.post_id = p.id WHERE fav_contains(f.filter, p.id)", qr/ INNER JOIN .*fav_contains/, 'counting'),
	$hidden, 'what is hidden is all there');

# aggregates on one server, and of groups of all
is_sent("SELECT fav_agg(post_id) FROM home_$home.hidden_posts", qr/SELECT public\.fav_agg\(post_id\)/, 'fav_agg on a server');
is_sent("SELECT fav_union_agg(filter) FROM home_$home.hidden_posts_fav", qr/SELECT public\.fav_union_agg\(filter\)/, 'fav_union_agg on a server');
is_sent("SELECT user_id, fav_agg(post_id) FROM home_$home.hidden_posts GROUP BY user_id ORDER BY user_id", qr/SELECT user_id, public\.fav_agg\(post_id\).*GROUP BY/, 'groups on a server');
my $groups = 'SELECT user_id, fav_agg(post_id) FROM hidden_posts GROUP BY user_id ORDER BY user_id';
my $wise = "SET enable_partitionwise_aggregate = on;\n";
is(scalar(() = sent($groups, $wise) =~ /public\.fav_agg\(/g), 2, 'groups of all servers: each of them makes its own');
is($router->safe_psql('postgres', "$wise$groups"), $router->safe_psql('postgres', $groups), 'with the same bytes');
is( $router->safe_psql('postgres', 'SELECT md5(fav_agg(post_id)::bytea) FROM hidden_posts'),
	$router->safe_psql('postgres', 'SELECT md5(fav_agg(p)::bytea) FROM (SELECT DISTINCT u * p AS p FROM generate_series(1::bigint, 40) u, generate_series(1, 300) p) s'),
	'an aggregate over all servers');

# ---------------------------------------------------------------------------------
# A filter in a column of one's own
# ---------------------------------------------------------------------------------

my $users = "home_$home.users";
$router->safe_psql('postgres', "INSERT INTO $users VALUES (1, NULL), (2, fav_add(NULL, ARRAY[1, 2, 3]))");
like(
	sent("UPDATE $users SET seen = fav_add(seen, 5) WHERE id = 1"),
	qr/^UPDATE public\.users SET seen = public\.fav_add\(seen, /,
	'an update is made on the server');
$router->safe_psql(
	'postgres', qq{
UPDATE $users SET seen = fav_add(seen, 5) WHERE id = 1;
UPDATE $users SET seen = fav_del(seen, 2) WHERE seen \@> 2});
is($homes[$home]->safe_psql('postgres', 'SELECT id, fav_filter(seen, ARRAY[1, 2, 3, 4, 5]) FROM users ORDER BY id'), "1|{1,2,3,4}\n2|{2,4,5}", 'and is there');

log_is_clean($_, $_->name . ': the log shows ordinary errors only') foreach $router, @homes;
$_->stop foreach $router, @homes;
done_testing();
