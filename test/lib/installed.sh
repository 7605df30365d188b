#!/bin/sh
#
# installed.sh CC ROOT FLAGS LIBS: what `make install-lib` puts below ROOT works as documented.

CC=$1 root=$2 flags=$3 libs=$4
passed=0 failed=0
repository=../..

# check WHAT COMMAND...: a test, whose output is shown if it fails.
check()
{
	what=$1
	shift
	if "$@" >build/output 2>&1
	then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $what"
		cat build/output
	fi
}

exports_only_api() { nm "$@" | awk '$2 ~ /[A-Z]/ && $2 != "U" { print $3 }' | sort -u >build/symbols && [ -s build/symbols ] && ! grep -v '^libfav_' build/symbols; }
declares() { sed -nE 's/^LIBFAV_API .*[ *](libfav_[a-z_]+)\(.*/\1/p' "$repository/src/lib/libfav.h" | sort -u >build/declared && cmp build/declared build/symbols; }

check 'the shared library exports the functions of libfav.h only' exports_only_api -D --defined-only "$root/lib/libfav.so"
check 'and all of them' declares
check 'so does the static one' exports_only_api -g --defined-only "$root/lib/libfav.a"
check 'and all of them' declares

# shellcheck disable=SC2086 # lists of options
{
	check 'a program is linked with the shared library' "$CC" -I. $flags -o build/shared golden.c $libs -Wl,-rpath,"$root/lib"
	check 'and gives what the server gives' build/shared "$repository/expected/golden.out"
	check 'a program is linked with the static library' "$CC" -I. $flags -o build/static golden.c "$root/lib/libfav.a" -lm
	check 'and gives what the server gives' build/static "$repository/expected/golden.out"
	# included, as users do: as the main file it would have functions that nobody uses
	echo '#include <libfav.h>' >build/include.c
	check 'the header is one of C99' "$CC" -std=c99 -pedantic-errors -Wall -Werror -fsyntax-only -x c $flags build/include.c
	if command -v c++ >/dev/null
	then
		check 'and of C++' c++ -std=c++11 -Wall -Werror -fsyntax-only -x c++ $flags build/include.c
	fi

	# The block of C in the page, and the block of text that follows it.
	awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$repository/docs/LIBFAV.md" >build/example.c
	awk '/^```text$/ { on = 1; next } /^```/ { on = 0 } on' "$repository/docs/LIBFAV.md" >build/expected
	check 'the example compiles' "$CC" -Wall -Wextra -Werror $flags -o build/example build/example.c $libs -Wl,-rpath,"$root/lib"
}
example() { build/example >build/actual && diff build/expected build/actual; }
check 'and prints what the page says' example

check 'libfav.pc knows where it is installed' grep -qx "prefix=$root" "$root/lib/pkgconfig/libfav.pc"
version=$(sed -n 's/^Version: //p' "$root/lib/pkgconfig/libfav.pc")
check 'the version is that of the extension' grep -q "\"version\": \"$version\"" "$repository/META.json"
check 'and that of the package for JavaScript' grep -q "\"version\": \"$version\"" "$repository/clients/js/package.json"

echo "installed: $passed passed, $failed failed"
[ "$failed" = 0 ]
