# shellcheck shell=bash disable=SC2154
#
# Section redis of bench/run: a whole feed page of one client (redis.c).  Either PostgreSQL
# returns 500 candidates and Redis says in one more round trip which of them are hidden, or
# PostgreSQL filters by itself.  Both servers listen on sockets in the work folder only.

redis() { redis-cli -s "$work/redis.sock" "$@"; }

# Start a private Redis without TCP and without persistence; it ends with this script.
start_redis()
{
	local module options=()

	for module in "$(dirname "$(command -v redis-server)")"/../lib/{redis/modules/,}redisbloom.so
	do
		[[ ! -f $module ]] || options=(--loadmodule "$module")
	done
	redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly no --dir "$work" \
		"${options[@]}" >"$work/redis.log" 2>&1 &
	redis_server=$!
	trap 'kill "$redis_server" 2>/dev/null' EXIT
	for _ in {1..100}
	do
		[[ $(redis PING 2>/dev/null) != PONG ]] || return 0
		sleep 0.1
	done
	cat "$work/redis.log" >&2
	die 'Redis did not start'
}

stop_redis()
{
	kill "$redis_server"
	wait "$redis_server" || true
	trap - EXIT
}

# The pairs of the attached filters, as commands of 500 ids each.
fill_redis()
{
	redis < <(sql -c "SELECT '$1 $2:' || user_id || ' ' || string_agg(post_id::text, ' ') FROM
		(SELECT user_id, post_id, row_number() OVER (PARTITION BY user_id) / 500 AS chunk FROM feed_pairs) p
		GROUP BY user_id, chunk") >/dev/null
}

# redis_page SIZE CONTENDER QUERY [SOCKET COMMAND KEY]: record pages per second.  fav and a Bloom
# filter may lose up to 3 % of the visible posts; the others are exact.
redis_page()
{
	local size=$1 contender=$2 visible tps most=${exact[$1]} least=${exact[$1]}

	shift 2
	read -r visible tps < <("$work/redis" 0.5 $((posts / 500)) "$size" "$@") || die "redis, $contender, $size"
	case $contender in
		'candidates alone') most=50000 least=50000 ;;
		fav* | *BF.*) least=$((least * 97 / 100)) ;;
	esac
	((visible >= least && visible <= most)) || die "redis, $contender, $size: $visible visible ids, not $least to $most"
	record 'redis, page of 500' '' "$size" "$contender" "$tps"
}

# Bytes of a user's hidden set.  The filter is attached to the table of pairs.
redis_bytes()
{
	record 'redis, bytes' '' "$1" 'Redis set' "$(redis MEMORY USAGE "hidden:$1" SAMPLES 0)"
	[[ -z $bloom ]] || record 'redis, bytes' '' "$1" 'Redis Bloom filter' "$(redis MEMORY USAGE "bloom:$1")"
	record 'redis, bytes' '' "$1" 'fav, attached' "(SELECT coalesce(pg_column_size(base), 0) + coalesce(pg_column_size(middle), 0) + pg_column_size(recent)
		FROM feed_pairs_fav_levels WHERE user_id = $1)"
	record 'redis, bytes' '' "$1" 'pairs with their index' "(SELECT pg_total_relation_size('feed_pairs')::float8 *
		count(*) FILTER (WHERE user_id = $1) / count(*) FROM feed_pairs)"
}

run_redis()
{
	local round size bloom='' exact=() page='SELECT p.id FROM posts_random p' candidates include lib

	include=$("$FAV_PG_CONFIG" --includedir) lib=$("$FAV_PG_CONFIG" --libdir)
	if ! command -v redis-server >/dev/null || ! command -v redis-cli >/dev/null ||
		! printf '#include <%s>\n' libpq-fe.h hiredis/hiredis.h | gcc -E -I"$include" - >/dev/null 2>&1
	then
		note 'redis: skipped, it needs redis-server (6.2), libhiredis-dev and libpq-dev' >&2
		return
	fi
	gcc -O2 -I"$include" -o "$work/redis" bench/redis.c -L"$lib" -Wl,-rpath,"$lib" -lpq -lhiredis
	progress 'redis: loading'
	load_attached
	start_redis
	candidates="$page WHERE topic = \$1 AND \$2::bigint > 0"
	fill_redis SADD hidden
	for size in "${sizes[@]}"
	do
		exact[size]=$(sql -c "SELECT count(*) FROM posts_random p WHERE topic < 100 AND NOT EXISTS
			(SELECT FROM feed_pairs h WHERE h.user_id = $size AND h.post_id = p.id)")
		[[ $(redis BF.RESERVE "bloom:$size" 0.01 "$(redis SCARD "hidden:$size")") != OK ]] || bloom=yes
	done
	[[ -z $bloom ]] || fill_redis BF.MADD bloom
	for size in "${sizes[@]}"
	do
		redis_bytes "$size"
	done
	# two servers and a client on few cores vary much: many short rounds
	for ((round = 1; round <= 3 * rounds; round++))
	do
		progress "redis: round $round of $((3 * rounds))"
		for size in "${sizes[@]}"
		do
			redis_page "$size" 'candidates, then SMISMEMBER' "$candidates" "$work/redis.sock" SMISMEMBER "hidden:$size"
			[[ -z $bloom ]] || redis_page "$size" 'candidates, then BF.MEXISTS' "$candidates" "$work/redis.sock" BF.MEXISTS "bloom:$size"
			redis_page "$size" fav "$page WHERE topic = \$1 AND NOT feed_pairs_has(\$2, p.id)"
			redis_page "$size" 'candidates alone' "$candidates"
		done
	done
	stop_redis
}
