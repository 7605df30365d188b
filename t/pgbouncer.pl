
# pgbouncer in transaction mode: sessions of clients share a few server connections, and a
# connection goes from one client to another after each transaction.  The filters agree with
# their source, and probes see what was committed.  Skipped where pgbouncer is not installed.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";

use FavTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PATH} .= ':/usr/sbin';
plan skip_all => 'pgbouncer is not installed' unless grep { -x "$_/pgbouncer" } split /:/, $ENV{PATH};

my $node = start_node('behind');
$node->safe_psql(
	'postgres', q{
CREATE TABLE posts (id bigint PRIMARY KEY);
INSERT INTO posts SELECT generate_series(1, 500);
CREATE TABLE hidden_posts (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
INSERT INTO hidden_posts SELECT u, p FROM generate_series(1, 50) u, generate_series(1, 200) p;
CREATE TABLE wrong (user_id bigint)});

# A server of its own directory and port, with three connections to PostgreSQL
my $directory = PostgreSQL::Test::Utils::tempdir_short();
my ($host, $port, $user) = ($node->host, $node->port, getpwuid($<));
append_to_file(
	"$directory/pgbouncer.ini", qq{
[databases]
postgres = host=$host port=$port dbname=postgres user=$user
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = $directory
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
logfile = $directory/log
pidfile = $directory/pid
});
my ($out, $error) = ('', '');
my $bouncer = run_in_background([ 'pgbouncer', '-q', "$directory/pgbouncer.ini" ], \$out, \$error);
my @through = ('-h', $directory, '-p', 6432);

sub through
{
	my ($sql) = @_;
	my ($result, $problem) = ('', '');

	IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', @through, '-d', 'postgres', '-c', $sql ], '>', \$result, '2>', \$problem) or return "failed: $problem";
	chomp $result;
	return $result;
}

my $tries = 0;
select(undef, undef, undef, 0.1) while through('SELECT 1') ne '1' && $tries++ < 100;
is(through('SELECT 1'), '1', 'pgbouncer is there');

# attaching and building through it
is(through(q{SELECT fav_attach('hidden_posts', 'user_id', 'post_id', build => false)}), 'hidden_posts_has(bigint,bigint)', 'attached');
is(through(q{CALL fav_build('hidden_posts')}), '', 'built, in transactions of its own');
is(through(q{SELECT complete, active FROM fav_attachments}), 't|t', 'complete');

# Ten clients on three connections.  Who has hidden a post does not see it in the next
# transaction, whatever connection that is on.
append_to_file(
	"$directory/client.sql", q{
\set u random(1, 50)
\set p random(201, 500)
BEGIN;
INSERT INTO hidden_posts VALUES (:u, :p) ON CONFLICT DO NOTHING;
DELETE FROM hidden_posts WHERE user_id = :u AND post_id = :p - 200;
END;
INSERT INTO wrong SELECT :u FROM hidden_posts h WHERE user_id = :u AND NOT hidden_posts_has(:u, h.post_id) LIMIT 1;
});
my $transactions = 500 * effort();
($out, $error) = ('', '');
ok( IPC::Run::run([ 'pgbench', '-n', '-c', 10, '-j', 2, '-t', $transactions, '-f', "$directory/client.sql", @through, 'postgres' ], '>', \$out, '2>', \$error),
	'ten clients on three connections') or diag($error);
is($node->safe_psql('postgres', 'SELECT count(*) FROM wrong'), '0', 'nobody saw a pair without its filter');
is($node->safe_psql('postgres', q{SELECT missing, stale FROM fav_verify('hidden_posts')}), '0|0', 'the filters agree with their source');
cmp_ok($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'}), '<=', 4, 'on three connections');

$bouncer->signal('INT');
eval { $bouncer->finish };
log_is_clean($node, 'the log shows ordinary errors only');
figures(10 * $transactions . ' transactions of 10 clients on 3 connections');
$node->stop;
done_testing();
