# shellcheck shell=bash
#
# Code that tools/test, tools/demo and bench/run share: a private, throw-away PostgreSQL with fav.
#
# A run never installs fav into the system's PostgreSQL, never connects to a cluster that it did
# not create, and leaves nothing behind.  It has two halves:
#
#   outer   as whoever called: finds (or, as root on Debian, installs) what is needed,
#           unpacks servers and services that are missing into the temporary folder,
#           makes a temporary folder with a copy of the sources, and starts the same
#           script from that copy.  Waits, then stops what still runs and removes the folder.
#   inner   never root, because PostgreSQL refuses to be: builds, installs and runs, all
#           inside the folder ($FAV_WORK).
#
# A script sources this file and calls `in_sandbox "$@"`; the outer half does not return. A
# script that sets needs_tap before also requires what TAP tests need.  With wants_drivers,
# drivers are installed if possible.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# shellcheck disable=SC2034 # for the scripts
if [[ -t 1 && -z ${NO_COLOR-} && ${TERM-dumb} != dumb ]]
then
	bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' cyan=$'\e[36m' plain=$'\e[0m'
else
	bold='' dim='' red='' green='' cyan='' plain=''
fi

headline() { printf '%s== %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$*"; }
die()
{
	printf '%s%s: %s%s\n' "$red" "${0##*/}" "$*" "$plain" >&2
	exit 1
}

# ---------------------------------------------------------------------------------------
# outer: what the machine must have
# ---------------------------------------------------------------------------------------

# Can this pg_config's installation build an extension and run a server?  (The server may be in
# the temporary folder.)
usable_server()
{
	local bin pgxs headers

	bin=$("$1" --bindir 2>/dev/null) && pgxs=$("$1" --pgxs) &&
		headers=$("$1" --includedir-server) || return 1
	[[ -x $bin/psql && -f $pgxs && -f $headers/postgres.h ]] &&
		[[ -x $bin/postgres && -x $bin/initdb || -x $unpacked$bin/postgres && -x $unpacked$bin/initdb ]]
}

# The PostgreSQL major version to complete on this Debian: one that is partly installed, or else
# the default of the distribution.
debian_pg_version()
{
	local found headers

	if headers=$(pg_config --includedir-server 2>/dev/null) && [[ -f $headers/postgres.h ]]
	then
		pg_config --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/'
		return
	fi
	found=$(printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -V | tail -n 1)
	if [[ -x $found ]]
	then
		cut -d/ -f5 <<<"$found"
		return
	fi
	apt-cache depends postgresql 2>/dev/null |
		sed -nE 's/^ *Depends: postgresql-([0-9]+)$/\1/p' | head -n 1
}

# The Debian packages with the missing files.  Look for the files, not for packages, because they
# may have been installed in another way.
missing_packages()
{
	local version

	command -v make >/dev/null || echo make
	if ! command -v gcc >/dev/null
	then
		printf '%s\n' gcc libc6-dev libxxhash-dev
	else
		echo '#include <stdio.h>' | gcc -E - >/dev/null 2>&1 || echo libc6-dev
		echo '#include <xxhash.h>' | gcc -E - >/dev/null 2>&1 || echo libxxhash-dev
	fi
	if [[ -n ${needs_tap-} ]]
	then
		command -v prove >/dev/null || echo perl
		perl -MIPC::Run -e 1 2>/dev/null || echo libipc-run-perl
	fi
	if ! usable_server "${PG_CONFIG:-pg_config}"
	then
		version=$(debian_pg_version)
		# Omit installed packages: an upgrade would restart their clusters.
		[[ -n $version && -x /usr/lib/postgresql/$version/bin/postgres ]] ||
			echo "postgresql${version:+-$version}"
		[[ -n $version && -f /usr/include/postgresql/$version/server/postgres.h ]] ||
			echo "postgresql-server-dev-${version:-all}"
	fi
}

# The package of a server is unpacked into the temporary folder, and only what it depends on is
# installed.  If it were installed, Debian would start a cluster or a service.  If that were
# switched off, an "apt install postgresql" of the user would never create the cluster that they
# expect, because Debian does so only when the package is installed for the first time.
is_server() { [[ $1 =~ ^(postgresql-[0-9]+(-pgvector)?|pgbouncer)$ ]]; }

# The dependencies of a server's package, except on another one, or on what the server's provides.
dependencies_of()
{
	apt-cache show --no-all-versions "$1" | sed -nE 's/^Depends: //p' |
		tr , '\n' | sed -E 's/^ +//; /^postgresql-[0-9]+(-jit-llvm)?( |$)/d'
}

apt_install()
{
	local package packages=() servers=()

	for package in "$@"
	do
		if is_server "$package"
		then
			servers+=("$package")
			mapfile -t -O "${#packages[@]}" packages < <(dependencies_of "$package")
		else
			packages+=("$package")
		fi
	done
	DEBIAN_FRONTEND=noninteractive apt-get satisfy -y -q --no-install-recommends \
		-o DPkg::Lock::Timeout=600 "$(IFS=, && echo "${packages[*]}")" </dev/null 2>&1 |
		tee "$work/apt.log" | show_latest || return
	((${#servers[@]} == 0)) || unpack "${servers[@]}"
}

unpack()
{
	local package

	mkdir "$work/debs"
	(cd "$work/debs" && apt-get download -q "$@" </dev/null >>"$work/apt.log" 2>&1) || return
	for package in "$work"/debs/*.deb
	do
		dpkg -x "$package" "$unpacked" || return
	done
	rm -r "$work/debs"
}

# Show on a terminal what a long command is doing: the latest line of its output, in one line.
show_latest()
{
	local line

	[[ -t 1 ]] || { cat >/dev/null; return; }
	while IFS= read -r line
	do
		printf '\r\e[K   %s%.70s%s' "$dim" "$line" "$plain"
	done
	printf '\r\e[K'
}

# Sets PG_CONFIG to one that works.
require_packages()
{
	local packages

	[[ -z ${PG_CONFIG-} ]] || usable_server "$PG_CONFIG" ||
		die "PG_CONFIG=$PG_CONFIG does not belong to a server with its development files"

	mapfile -t packages < <(missing_packages)
	if ((${#packages[@]}))
	then
		if ((EUID != 0)) || ! command -v apt-get >/dev/null
		then
			die "please install (these are Debian's names): ${packages[*]}"
		fi
		headline 'installing what is missing'
		note 'reading the lists of packages'
		apt-get update -qq </dev/null || die 'apt-get update failed'
		has_fresh_lists=yes
		# Try again: only a fresh list knows which PostgreSQL is the default.
		mapfile -t packages < <(missing_packages)
		note "${packages[*]}"
		apt_install "${packages[@]}" ||
			{ cat "$work/apt.log" >&2; die "could not install ${packages[*]}"; }
		mapfile -t packages < <(missing_packages)
		((${#packages[@]} == 0)) || die "still missing after installation: ${packages[*]}"
	fi
	PG_CONFIG=$(command -v "${PG_CONFIG:-pg_config}")
}

# ---------------------------------------------------------------------------------------
# outer: drivers of other languages, and what else tests work with
# ---------------------------------------------------------------------------------------

has_node_module() { NODE_PATH=/usr/share/nodejs:/usr/lib/nodejs:${NODE_PATH-} node -e "require('$1')"; }

# Can clang compile C for WebAssembly?
has_wasm_compiler() { command -v clang && command -v wasm-ld && [[ -f ${WASI_SYSROOT:-/usr}/lib/wasm32-wasi/libc.a ]]; } >/dev/null

# One line per missing driver, or other program that a test works with: its Debian packages.
missing_drivers()
{
	has_node_module pg || echo nodejs node-pg
	/usr/bin/python3 -c 'import psycopg' || echo python3-psycopg
	[[ -f /usr/share/java/postgresql.jar ]] && command -v javac >&2 ||
		echo libpostgresql-jdbc-java default-jdk-headless
	ruby -e 'require "pg"' || echo ruby-pg
	php -r 'exit(extension_loaded("pdo_pgsql") ? 0 : 1);' >&2 || echo php-cli php-pgsql
	[[ -d /usr/share/gocode/src/github.com/lib/pq ]] && command -v go >&2 ||
		echo golang-go golang-github-lib-pq-dev
	[[ -x $(PATH=$PATH:/usr/sbin command -v pgbouncer) ]] || echo pgbouncer
	missing_pgvector
	/usr/bin/python3 -c 'import sqlalchemy, psycopg2' || echo python3-sqlalchemy python3-psycopg2
	/usr/bin/python3 -c 'import django, psycopg2' || echo python3-django python3-psycopg2
	ruby -e 'require "active_record"' || echo ruby-activerecord
	has_wasm_compiler || echo clang lld wasi-libc
} 2>/dev/null

# Debian has pgvector for its own servers.
missing_pgvector()
{
	local share

	share=$("$PG_CONFIG" --sharedir)
	[[ ! $share =~ ^/usr/share/postgresql/([0-9]+)$ || -f $share/extension/vector.control ]] ||
		echo "postgresql-${BASH_REMATCH[1]}-pgvector"
}

# install_node_modules NAME...: those that are missing.
install_node_modules()
{
	local name missing=()

	command -v npm >/dev/null || return 0
	for name in "$@"
	do
		has_node_module "$name" 2>/dev/null || missing+=("$name")
	done
	((${#missing[@]} == 0)) ||
		timeout 60 npm install --prefix "$work/node" --cache "$work/npm" \
			--ignore-scripts --no-audit --no-fund "${missing[@]}" </dev/null >"$work/npm.log" 2>&1 ||
		note "npm could not install ${missing[*]}"
}

# A failure here does not fail the run: the tests skip what is missing.
install_drivers()
{
	local driver missing packages=() names=()

	((EUID == 0)) || return 0
	mapfile -t missing < <(missing_drivers)
	if ((${#missing[@]})) && command -v apt-get >/dev/null
	then
		[[ -n ${has_fresh_lists-} ]] || apt-cache show "${missing[0]##* }" >/dev/null 2>&1 ||
			apt-get update -qq </dev/null >/dev/null 2>&1 || true
		for driver in "${missing[@]}"
		do
			read -ra names <<<"$driver"
			# An unavailable package must not prevent the others.
			! apt-get install -s --no-install-recommends "${names[@]}" >/dev/null 2>&1 ||
				packages+=("${names[@]}")
		done
		if ((${#packages[@]}))
		then
			headline 'installing drivers and more for the tests (not with FAV_DRIVERS=no)'
			note "${packages[*]}"
			apt_install "${packages[@]}" ||
				{ apt-get update -qq </dev/null >/dev/null 2>&1 && apt_install "${packages[@]}"; } ||
				note "without them: $(tail -n 1 "$work/apt.log")"
		fi
	fi
	# A Node.js that is not Debian's cannot use Debian's modules, but has npm.
	# Object mappers come second: without them the drivers are there all the same.
	install_node_modules pg postgres
	install_node_modules drizzle-orm typeorm knex sequelize
}

# ---------------------------------------------------------------------------------------
# outer: the temporary folder, and its end
# ---------------------------------------------------------------------------------------

# The files that git tracks or would track, without build products.  Without git (an unpacked
# archive), everything except build products.
copy_sources()
{
	if git -C "$here" rev-parse --show-toplevel 2>/dev/null | grep -qxF "$here"
	then
		git -C "$here" ls-files -z --cached --others --exclude-standard --deduplicate |
			tar -C "$here" -c --null --ignore-failed-read -T - 2>/dev/null
	else
		tar -C "$here" -c --exclude=./.git --exclude='*.o' --exclude='*.bc' --exclude='*.so' .
	fi | tar -C "$1" -x --no-same-owner
}

# Every postmaster writes its process id into its data directory, whoever started it.
stop_servers()
{
	local file pid

	while IFS= read -r -d '' file
	do
		pid=$(head -n 1 "$file") || continue
		# Only if it is still that process, running in our folder.
		[[ $(readlink "/proc/$pid/cwd" 2>/dev/null) == "$work"/* ]] || continue
		kill -QUIT "$pid" 2>/dev/null || continue
		for _ in {1..100}
		do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
	done < <(find "$work" -name postmaster.pid -print0 2>/dev/null)
}

# shellcheck disable=SC2317 # called by trap
clean_up()
{
	trap - EXIT INT TERM HUP
	if [[ -n ${inner-} ]]
	then
		kill -TERM -- "-$inner" 2>/dev/null || true
		wait "$inner" 2>/dev/null || true
	fi
	stop_servers
	if [[ -n ${FAV_RESULTS-} && -d $work/results ]]
	then
		mkdir -p "$FAV_RESULTS" && cp -r "$work/results/." "$FAV_RESULTS"
	fi
	rm -rf "$work"
}

outer()
{
	local as=() user script status=0

	script=$(realpath --relative-to="$here" "$0")
	# The folder holds sockets, whose paths must be short (107 bytes), so a long TMPDIR is not
	# used.
	work=${TMPDIR:-/tmp}
	((${#work} <= 40)) || work=/tmp
	work=$(mktemp -d "$work/fav.XXXXXX")
	unpacked=$work/unpacked
	trap clean_up EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM

	require_packages
	[[ -z ${wants_drivers-} || ${FAV_DRIVERS-} == no ]] || install_drivers
	mkdir "$work/src" "$work/tmp" "$work/results"
	copy_sources "$work/src"

	if ((EUID == 0))
	then
		user=postgres
		id "$user" >/dev/null 2>&1 || user=nobody
		chown -R "$user:" "$work"
		as=(setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups)
	fi

	# A separate process group, so that one signal ends all of it.
	set -m
	"${as[@]}" env -i PATH="$PATH" TERM="${TERM-dumb}" COLUMNS="${COLUMNS-}" LANG="${LANG-}" LC_ALL="${LC_ALL-}" LC_CTYPE="${LC_CTYPE-}" \
		CHROMIUM="${CHROMIUM-}" NO_COLOR="${NO_COLOR-}" DEMO_PACE="${DEMO_PACE-}" HOME="$work" TMPDIR="$work/tmp" \
		BENCH_QUICK="${BENCH_QUICK-}" REDISBLOOM="${REDISBLOOM-}" \
		FAV_WORK="$work" FAV_PG_CONFIG="$PG_CONFIG" FAV_DRIVERS="${FAV_DRIVERS-}" FAV_SEED="${FAV_SEED-}" \
		NODE_PATH="$work/node/node_modules${NODE_PATH:+:$NODE_PATH}" \
		bash "$work/src/$script" "$@" </dev/null &
	inner=$!
	set +m
	wait "$inner" || status=$?
	inner=
	exit "$status"
}

# ---------------------------------------------------------------------------------------
# inner: a private server installation
# ---------------------------------------------------------------------------------------

# PostgreSQL finds its files relative to its programs.  So a tree of the same shape, with copies
# of the programs and links to everything else, is a separate installation.  With its pg_config,
# `make install` and `make installcheck` work unchanged and need no privileges, and two runs
# cannot disturb each other.
private_server()
{
	local root=$work/pg bin dir program from

	bin=$("$FAV_PG_CONFIG" --bindir)
	mkdir -p "$root$bin"
	for program in postgres initdb psql createdb createuser dropdb dropuser clusterdb \
		reindexdb vacuumdb vacuumlo oid2name pgbench pg_config pg_ctl pg_amcheck \
		pg_archivecleanup pg_basebackup pg_checksums pg_combinebackup pg_controldata \
		pg_createsubscriber pg_dump pg_dumpall pg_isready pg_receivewal pg_recvlogical \
		pg_resetwal pg_restore pg_rewind pg_upgrade pg_verifybackup pg_waldump \
		pg_walsummary
	do
		# Copies, because a program resolves symbolic links to find its location.
		for from in "$bin" "$unpacked$bin"
		do
			[[ ! -x $from/$program ]] || cp -L --reflink=auto "$from/$program" "$root$bin/"
		done
	done

	for dir in pkglibdir sharedir
	do
		dir=$("$FAV_PG_CONFIG" --$dir)
		mkdir -p "$root${dir%/*}"
		cp -rs "$dir" "$root${dir%/*}"
		[[ ! -d $unpacked$dir ]] || cp -rsf "$unpacked$dir" "$root${dir%/*}"
	done
	# Omit a fav that is installed there.
	find "$root" -type l \( -name 'fav.so' -o -name 'fav.control' -o -name 'fav--*' -o \
		-path '*/bitcode/fav*' \) -delete

	for dir in includedir pkgincludedir includedir-server
	do
		dir=$("$FAV_PG_CONFIG" --$dir)
		if [[ ! -e $root$dir ]]
		then
			mkdir -p "$root${dir%/*}"
			ln -s "$dir" "$root$dir"
		fi
	done

	PG_CONFIG=$root$bin/pg_config
	PATH=$root$bin:$PATH:$unpacked/usr/sbin
	pgxs=$("$PG_CONFIG" --pgxs)
	pgxs=${pgxs%/src/makefiles/pgxs.mk}
	export PG_CONFIG PATH
}

# Run make for the private server.  It builds bitcode for the JIT if the server's clang is
# installed; nothing here depends on it.
pg_make()
{
	local clang llvm=()

	clang=$(sed -nE 's/^CLANG[ \t]*=[ \t]*//p' "$pgxs/src/Makefile.global")
	[[ -n $clang && -x $(command -v "$clang") ]] || llvm=(with_llvm=no)
	make -s PG_CONFIG="$PG_CONFIG" "${llvm[@]}" "$@"
}

# start_cluster NAME [SETTING...]: start a cluster and set the environment for it.
start_cluster()
{
	local data=$work/$1 setting

	shift
	export PGHOST=$work PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	initdb -D "$data" -U postgres -A trust -E UTF8 --no-locale --no-sync >"$data.log" 2>&1 ||
		{ cat "$data.log"; die 'initdb failed'; }
	# No TCP: the socket in our folder cannot collide with another one.
	for setting in "listen_addresses = ''" "unix_socket_directories = '$work'" \
		'fsync = off' "$@"
	do
		echo "$setting" >>"$data/postgresql.conf"
	done
	pg_ctl -D "$data" -l "$data.log" -w start >/dev/null 2>&1 ||
		{ cat "$data.log"; die 'the server did not start'; }
}

stop_cluster() { pg_ctl -D "$work/$1" -m fast -w stop >/dev/null; }

in_sandbox()
{
	if [[ -z ${FAV_WORK-} ]]
	then
		outer "$@"
	fi
	work=$FAV_WORK
	unpacked=$work/unpacked
	cd "$work/src"
	private_server
}
