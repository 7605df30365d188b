# fav: a deletable, growing membership filter for PostgreSQL
#
#   make && make install        for the server that pg_config belongs to
#   make PG_CONFIG=/path/to/pg_config ...   for another one
#   tools/test                  all tests, in throw-away clusters
#   make core-check, make fuzz  the filter alone, without PostgreSQL
#   make lib, make install-lib  libfav, the filter as a C library (docs/LIBFAV.md)
#   make script                 fav--1.0.sql, after a change of its template
#   make dist                   the archive for PGXN

EXTENSION = fav
MODULE_big = fav
DATA = fav--1.0.sql

core = dated editor filter flush format levels sizing slice slice_avx2 tombstones union
type = compare contains edit elements expanded io stats support
aggregate = agg hashset union_agg
cache = bounded functions
attach = attach attachment attachment_cache build catalogs citus collect columns definition expand \
	has hashes interface monitor objects owner probe queries reconcile rights rows sink \
	sink_functions subtransaction triggers verify

OBJS = src/fav.o src/toast_cache.o \
	$(core:%=src/core/%.o) $(type:%=src/type/%.o) \
	$(aggregate:%=src/aggregate/%.o) $(attach:%=src/attach/%.o) $(cache:%=src/cache/%.o)

# The folder of this file.  A VPATH build uses it from another one.  PGXS sets VPATH only if
# PostgreSQL itself was a VPATH build.
top := $(dir $(lastword $(MAKEFILE_LIST)))
ifneq ($(top),./)
VPATH ?= $(top:/=)
endif

# Everything here goes to the .o files and to the .bc files (JIT) alike; PG_CFLAGS
# would miss the latter.
#
# -ffp-contract=off: the sizing formulas decide how many bytes a filter gets.  A
# compiler that fuses a*b+c, as most do where the processor can, rounds
# differently, and the same filter would have other bytes on another machine.
#
# -falign-functions: without it the speed of a probe depends on the length of other files.
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

# libfav has a Makefile of its own and needs no server.  PGXS has another target install-lib.
ifneq ($(filter lib install-lib,$(MAKECMDGOALS)),)
.PHONY: lib install-lib
lib:
	$(MAKE) -C $(top)src/lib
install-lib:
	$(MAKE) -C $(top)src/lib install
else

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# PGXS knows of no headers but the server's.
$(OBJS) $(OBJS:.o=.bc): $(filter-out %/libfav.h,$(wildcard $(top)src/*.h $(top)src/*/*.h))

# A VPATH build starts in an empty folder.
$(shell mkdir -p $(dir $(OBJS)))

.PHONY: script core-check fuzz dist

# The extension script has a section for each element type.  It is in the repository, so that
# installing needs no awk; t/build.pl compares it with its template.
script:
	awk -f $(top)tools/sql.awk $(top)$(DATA).in >$(top)$(DATA)

core-check:
	$(MAKE) -C $(top)test/core check

fuzz:
	$(MAKE) -C $(top)test/core fuzz

distversion = $(shell sed -n 's/^\t"version": "\(.*\)",$$/\1/p' $(top)META.json)

dist:
	git -C $(top) archive --format=zip --prefix=fav-$(distversion)/ -o $(CURDIR)/fav-$(distversion).zip HEAD

endif
