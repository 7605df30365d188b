# shellcheck shell=bash disable=SC2154
#
# Section servers of bench/run: a router and two servers with half of the users each
# (postgres_fdw, docs/SCALING.md) next to one server with all of them.  All of them run on this
# machine and share its processors.

server_ports=(5433 5434)
server_users=2000 pairs_per_user=200
bulk_post=3000000000

# run_on PORT SQL
run_on() { PGPORT=$1 sql -c "$2"; }

# Posts on every server, 500 for each of 100 topics.  Users that meet a condition have pairs.
fill_server()
{
	run_on "$1" "
		CREATE TABLE posts_of_server (topic int, id bigint, PRIMARY KEY (topic, id));
		INSERT INTO posts_of_server SELECT t, t * 500 + i FROM generate_series(0, 99) t, generate_series(0, 499) i;
		CREATE TABLE parent (user_id bigint) PARTITION BY HASH (user_id);
		CREATE TABLE pairs (user_id bigint, post_id bigint, PRIMARY KEY (user_id, post_id));
		INSERT INTO pairs SELECT u, (u * 31 + p * 97) % 50000 FROM generate_series(1::bigint, $server_users) u, generate_series(1, $pairs_per_user) p WHERE $2 ON CONFLICT DO NOTHING;
		SELECT fav_attach('pairs', 'user_id', 'post_id');" >/dev/null
	run_on "$1" 'VACUUM ANALYZE posts_of_server, pairs, pairs_fav_levels'
}

set_up_servers()
{
	local i

	fill_server 5432 true
	sql -c "CREATE EXTENSION postgres_fdw; CREATE SCHEMA router;
		CREATE TABLE router.pairs (user_id bigint, post_id bigint) PARTITION BY HASH (user_id);
		CREATE TABLE router.pairs_fav (user_id bigint, filter fav) PARTITION BY HASH (user_id);"
	for i in 0 1
	do
		(start_cluster "home_$i" "port = ${server_ports[i]}" 'shared_buffers = 256MB')
		run_on "${server_ports[i]}" 'CREATE EXTENSION fav'
		fill_server "${server_ports[i]}" "satisfies_hash_partition('parent'::regclass, 2, $i, u)"
		sql -c "
			CREATE SERVER home_$i FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$work', port '${server_ports[i]}', dbname 'postgres', extensions 'fav', batch_size '1000');
			CREATE USER MAPPING FOR CURRENT_USER SERVER home_$i;
			CREATE SCHEMA home_$i;
			IMPORT FOREIGN SCHEMA public LIMIT TO (pairs, pairs_fav, posts_of_server) FROM SERVER home_$i INTO home_$i;
			ALTER TABLE router.pairs ATTACH PARTITION home_$i.pairs FOR VALUES WITH (MODULUS 2, REMAINDER $i);
			ALTER TABLE router.pairs_fav ATTACH PARTITION home_$i.pairs_fav FOR VALUES WITH (MODULUS 2, REMAINDER $i);"
	done
}

# both SECTION CONTENDER SCRIPT: one client on each of the two servers at once.
both()
{
	local port tps

	printf '%s\n' "$3" >"$work/both.sql"
	for port in "${server_ports[@]}"
	do
		PGPORT=$port pgbench -n -M prepared -T "$seconds" -f "$work/both.sql" >"$work/both.$port" 2>&1 &
	done
	wait
	tps=$(sed -nE 's/^tps = ([0-9.]+).*/\1/p' "$work"/both.54* | paste -sd+)
	[[ $tps == *+* ]] || { cat "$work"/both.54* >&2; die "servers, $2"; }
	record "$1" '' "$server_users" "$2" "$tps"
}

run_servers()
{
	local round page direct write

	progress 'servers'
	set_up_servers
	page='\set u random(1, '$server_users')
\set t random(0, 99)
SELECT count(*) FROM home_0.posts_of_server p WHERE topic = :t AND NOT fav_contains((SELECT filter FROM router.pairs_fav WHERE user_id = :u), p.id);'
	direct='\set u random(1, '$server_users')
\set t random(0, 99)
SELECT count(*) FROM posts_of_server p WHERE topic = :t AND NOT pairs_has(:u, p.id);'
	write='\set u random(1, '$server_users')
\set p random(100000, 2000000000)
INSERT INTO %s VALUES (:u, :p) ON CONFLICT DO NOTHING;'
	for ((round = 0; round < rounds; round++))
	do
		# shellcheck disable=SC2059 # the script is the format
		{
			pages 'servers, page of 500' '' "$server_users" 'one server' 2 "$direct"
			pages 'servers, page of 500' '' "$server_users" 'through the router' 2 "$page"
			both 'servers, page of 500' 'two servers, asked directly' "$direct"
			pages 'servers, INSERT' '' "$server_users" 'one server' 2 "$(printf "$write" pairs)"
			pages 'servers, INSERT' '' "$server_users" 'through the router' 2 "$(printf "$write" router.pairs)"
			both 'servers, INSERT' 'two servers, asked directly' "$(printf "$write" pairs)"
		}
		bulk_rows 'one server' 5432 pairs
		bulk_rows 'through the router, batch_size 1000' 5432 router.pairs
		bulk_rows 'one of two servers, asked directly' "${server_ports[0]}" pairs
	done
	stop_cluster home_0
	stop_cluster home_1
}

# bulk_rows CONTENDER PORT TABLE: rows/s of one statement of 20,000 rows, sorted by user.
bulk_rows()
{
	local began ended

	bulk_post=$((bulk_post + 1000))
	began=$(date +%s%N)
	run_on "$2" "INSERT INTO $3 SELECT u, $bulk_post + p FROM generate_series(1, 1000) u, generate_series(1, 20) p ORDER BY 1, 2"
	ended=$(date +%s%N)
	record 'servers, bulk' '' "$server_users" "$1" "20000 * 1e9 / ($ended - $began)"
}
