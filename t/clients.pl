
# Filters outside the server: the example of docs/CLIENTS.md, where a server sends a filter over
# HTTP and a client filters a page with it, and what a client that changes a filter sends back.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use HTTP::Tiny;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/..";
my $package = "$root/clients/js";
$ENV{NODE_PATH} =
  join(':', grep { defined } $ENV{NODE_PATH}, '/usr/share/nodejs', '/usr/lib/nodejs');

plan skip_all => 'node is not installed' if system('node --version >/dev/null 2>&1');
my $pg = qx{node -p 'require("path").dirname(require.resolve("pg/package.json"))' 2>/dev/null};
chomp $pg;
plan skip_all => "please install Debian's node-pg" unless $pg;
plan skip_all => "please install Debian's clang, lld and wasi-libc"
  if !-e "$package/wasm.js" && system("node $package/build.mjs >/dev/null 2>&1");

# A folder with the two modules, as npm would make it.
my $folder = PostgreSQL::Test::Utils::tempdir();
mkdir "$folder/node_modules" or die "could not make a folder: $!";
symlink $package, "$folder/node_modules/fav-filter" or die "could not link: $!";
symlink $pg, "$folder/node_modules/pg" or die "could not link: $!";
my ($section) = slurp_file("$root/docs/CLIENTS.md") =~ /^## The filter in a browser$(.*)/ms;
my @examples = $section =~ /^```js\n(.*?)^```$/msg;
is(scalar(@examples), 2, 'docs/CLIENTS.md has a server and a client');
append_to_file("$folder/server.mjs", $examples[0]);
append_to_file("$folder/client.mjs", $examples[1]);

my $node = start_node('clients');
$node->safe_psql(
	'postgres', q{
CREATE TABLE hidden_posts (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
SELECT fav_attach('hidden_posts', 'user_id', 'post_id');
INSERT INTO hidden_posts VALUES (7, 42), (8, 43);
});

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $url = "http://127.0.0.1:$port/hidden";
local $ENV{PORT} = $port;
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
local $ENV{PGDATABASE} = 'postgres';
local $ENV{PGUSER} = $node->safe_psql('postgres', 'SELECT current_user');
my ($out, $errors) = ('', '');
my $server = IPC::Run::start([ 'node', "$folder/server.mjs" ], '<', \undef, '>', \$out, '2>', \$errors);

my $http = HTTP::Tiny->new(timeout => 180);
my $first;
foreach (1 .. 1800)
{
	$first = $http->get($url);
	last if $first->{status} != 599 || !$server->pumpable;
	select(undef, undef, undef, 0.1);
}
is($first->{status}, 200, 'the server sends the filter') or diag("$first->{content}\n$errors");
my $etag = $first->{headers}{etag};
my $again = $http->get($url, { headers => { 'If-None-Match' => $etag } });
is("$again->{status} $again->{content}", '304 ', 'once, if it has not changed');

my ($printed) = $examples[1] =~ m{.*// ([^\n]*)}s;
sub run_node
{
	my ($output, $error) = ('', '');
	my $status = IPC::Run::run([ 'node', @_ ], '<', \undef, '>', \$output, '2>', \$error);

	diag($error) unless $status;
	return $output =~ s/\s+\z//r;
}
is(run_node("$folder/client.mjs"), $printed, 'the client filters a page with it');

$node->safe_psql('postgres', 'INSERT INTO hidden_posts SELECT 7, i FROM generate_series(1001, 3000) i');
$again = $http->get($url, { headers => { 'If-None-Match' => $etag } });
is($again->{status}, 200, 'a changed filter is sent');
isnt($again->{headers}{etag}, $etag, 'with another ETag');
$node->safe_psql('postgres', 'DELETE FROM hidden_posts WHERE user_id = 7');
is(run_node("$folder/client.mjs"), '[ { id: 41 }, { id: 42 }, { id: 43 } ]', 'a filter that has become empty');
$node->safe_psql('postgres', 'DELETE FROM hidden_posts; TRUNCATE hidden_posts');
is(run_node("$folder/client.mjs"), '[ { id: 41 }, { id: 42 }, { id: 43 } ]', 'and a reader without one');
$server->kill_kill;

# To the client and back: what it added is there, what it removed is not, in any script.
my $words = q{ARRAY['é', '日本', '😀', '', 'plain']};
my $hex = $node->safe_psql('postgres', "SELECT encode(fav_agg(w)::bytea, 'hex') FROM unnest($words) w");
my $changed = run_node('--input-type=module', '-e', qq{
import { Fav } from '$package/fav.js'
const f = await Fav.open(new Uint8Array(Buffer.from('$hex', 'hex')))
if (['é', '日本', '😀', '', 'plain'].some(word => !f.has(word))) throw new Error('lost')
for (let i = 0; i < 1000; i++) f.add('ü' + i)
for (let i = 0; i < 500; i++) f.remove('ü' + i)
console.log(Buffer.from(f.exclude('plain').bytes()).toString('hex'))
});
is( $node->safe_psql(
		'postgres', qq{
SELECT fav_contains_all(f, ARRAY['é', '日本', '😀', '']), fav_contains(f, 'plain'), fav_contains_any(f, ARRAY(SELECT 'ü' || generate_series(0, 499))),
	fav_contains_all(f, ARRAY(SELECT 'ü' || generate_series(500, 999))),
	f::bytea = fav_exclude(fav_del(fav_add((SELECT fav_agg(w) FROM unnest($words) w), ARRAY(SELECT 'ü' || generate_series(0, 999))),
		ARRAY(SELECT 'ü' || generate_series(0, 499))), 'plain')::bytea
FROM (SELECT '\\x$changed'::bytea::fav AS f) given}),
	't|f|f|t|t', 'a filter that a client changed is the one that the server would have made');

log_is_clean($node, 'the server has seen no error');
$node->stop;
done_testing();
