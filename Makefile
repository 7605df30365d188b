# fav: a deletable, growing membership filter for PostgreSQL
#
#   make && make install        for the server that pg_config belongs to
#   make PG_CONFIG=/path/to/pg_config ...   for another one
#   tools/test                  all tests, in throw-away clusters
#   make core-check, make fuzz  the filter alone, without PostgreSQL
#   make dist                   the archive for PGXN

EXTENSION = fav
MODULE_big = fav
DATA = $(sort $(wildcard fav--*.sql))
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/core/*.c src/attach/*.c)))

# Everything here goes to the .o files and to the .bc files (JIT) alike; PG_CFLAGS
# would miss the latter.
#
# -ffp-contract=off: the sizing formulas decide how many bytes a filter gets.  A
# compiler that fuses a*b+c, as most do where the processor can, rounds
# differently, and the same filter would have other bytes on another machine.
#
# -falign-functions: the same code, moved by 48 bytes because another file had become
# longer, was seen to take 7 ns more for a question, a fifth of the call.
#
# -isystem: our own code is held to -Wextra; PostgreSQL's headers are not ours.
PG_CPPFLAGS = -Isrc -ffp-contract=off -falign-functions=64 -isystem $(includedir_server)
PG_CFLAGS = -Wextra

# Every file in sql/ is a test; one called setup, if there is one, goes first.
tests = $(sort $(patsubst sql/%.sql,%,$(wildcard sql/*.sql)))
REGRESS = $(filter setup,$(tests)) $(filter-out setup,$(tests))
REGRESS_OPTS = --load-extension=fav

ISOLATION = $(sort $(patsubst specs/%.spec,%,$(wildcard specs/*.spec)))
ISOLATION_OPTS = --load-extension=fav

ifneq ($(wildcard t/*.pl),)
TAP_TESTS = 1
endif

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# PGXS knows of no headers but the server's.
$(OBJS) $(OBJS:.o=.bc): $(wildcard src/*.h src/core/*.h src/attach/*.h)

.PHONY: core-check fuzz dist

core-check:
	$(MAKE) -C test/core check

fuzz:
	$(MAKE) -C test/core fuzz

distversion = $(shell sed -n 's/^\t"version": "\(.*\)",$$/\1/p' META.json)

dist:
	git archive --format=zip --prefix=fav-$(distversion)/ -o fav-$(distversion).zip HEAD
