# fav: a deletable, growing membership filter for PostgreSQL
#
#   make && make install        for the server that pg_config belongs to
#   make PG_CONFIG=/path/to/pg_config ...   for another one
#   tools/test                  all tests, in throw-away clusters
#   make core-check, make fuzz  the filter alone, without PostgreSQL
#   make dist                   the archive for PGXN

EXTENSION = fav
MODULE_big = fav
DATA = fav--1.0.sql

core = build editor filter flush format levels sizing slice slice_avx2 sort tombstones union
type = compare elements expanded functions io stats support union
aggregate = agg hashset state union
attach = attach attachment collect columns levels list objects owner queries rebuild reconcile \
	triggers verify

OBJS = src/fav.o src/toast_cache.o \
	$(core:%=src/core/%.o) $(type:%=src/type/%.o) \
	$(aggregate:%=src/aggregate/%.o) $(attach:%=src/attach/%.o)

# Also right when this file is used from another folder (a VPATH build).
top := $(dir $(lastword $(MAKEFILE_LIST)))

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
PG_CPPFLAGS = -I$(top)src -ffp-contract=off -falign-functions=64 -isystem $(includedir_server)
PG_CFLAGS = -Wextra

# Every file in sql/ is a test; one called setup, if there is one, goes first.
tests = $(sort $(notdir $(basename $(wildcard $(top)sql/*.sql))))
REGRESS = $(filter setup,$(tests)) $(filter-out setup,$(tests))
REGRESS_OPTS = --load-extension=fav

ISOLATION = $(sort $(notdir $(basename $(wildcard $(top)specs/*.spec))))
ISOLATION_OPTS = --load-extension=fav

TAP_TESTS = 1

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# PGXS knows of no headers but the server's.
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(top)src/*.h $(top)src/*/*.h)

# A VPATH build starts in an empty folder.
$(shell mkdir -p $(dir $(OBJS)))

.PHONY: core-check fuzz dist

core-check:
	$(MAKE) -C $(top)test/core check

fuzz:
	$(MAKE) -C $(top)test/core fuzz

distversion = $(shell sed -n 's/^\t"version": "\(.*\)",$$/\1/p' $(top)META.json)

dist:
	git -C $(top) archive --format=zip --prefix=fav-$(distversion)/ -o $(CURDIR)/fav-$(distversion).zip HEAD
