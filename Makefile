# make, make install, make installcheck, make uninstall, make clean   the extension, through PGXS
# make demo, or scripts/demo where make is missing                    see it work on this machine's files
# make gallery                                                        draw the pictures of docs/gallery.md from them
# make check, or scripts/check                                        the tests of every day, in 20 minutes on two cores
# make check-all                                                      all tests, with PostgreSQL 15 to 18, in hours
# make dependencies                                                   the Debian packages of all that
# make packages                                                       gputext's own Debian packages
# make dist                                                           the archive of the sources for PGXN
#
# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL to build for and install into. The developer's
# goals never install into it: scripts/cluster keeps a private server under build/.
#
# make -f /path/to/gputext/Makefile VPATH=/path/to/gputext builds in the current directory.
#
# GPUTEXT_CUDA_ARCHITECTURES chooses the GPUs to build for, in CMake's way: "80-real;90-real", or "all".
# By default it is the GPU of this machine, and all that nvcc 13 knows where there is none. Without nvcc, or
# with GPUTEXT_KERNELS=no, gputext is built for the CPU alone.
#
# GPUTEXT_CPU_ONLY=1 builds and installs the extension without gputextd, the program that owns the GPUs:
# every call then computes on the CPU.

SCRIPT_GOALS = demo gallery check check-all dependencies packages dist

ifneq (,$(filter $(SCRIPT_GOALS),$(MAKECMDGOALS)))

# These goals install PostgreSQL where it is missing, so nothing of it may be needed to read this
# part. It also keeps PGXS' own target named check away.
.PHONY: $(MAKECMDGOALS)
.NOTPARALLEL:

demo:
	@scripts/demo

gallery:
	@bench/gallery

check:
	@scripts/check

check-all:
	@scripts/check-all

dependencies:
	@scripts/install-dependencies

packages:
	@scripts/install-dependencies packages
	@scripts/build-packages

dist:
	@scripts/make-dist

# Goals of PGXS asked for together with ours: make clean check
$(filter-out $(SCRIPT_GOALS),$(MAKECMDGOALS)):
	+$(MAKE) $@

else

# The folder of this checkout, and the same before a file: nothing for the current one.
ROOT := $(or $(patsubst %/,%,$(VPATH)),.)
SOURCE := $(if $(VPATH),$(ROOT)/)

# The parts of the installation script, in the order in which PostgreSQL is to read them.
SQL_PARTS = search_path.sql loaded_version.sql ctph.sql edit_distance.sql string_similarity.sql ssdeep.sql near_duplicates.sql near_duplicates_between.sql near_duplicate_index.sql \
	shared_passages.sql similar_sets.sql groups_of.sql knn.sql knn_exclude_key.sql knn_merge.sql tfidf.sql tfidf_bm25.sql tfidf_frequencies.sql cosine_similarity.sql distance_operators.sql \
	knn_recall.sql outlier_factor.sql k_means.sql dbscan.sql trie.sql trie_agg_parallel.sql trie_summary.sql word_similarity.sql word_frequencies.sql word2vec.sql \
	word2vec_average.sql word_movers.sql sequence_probability.sql code_tokens.sql linkage_model.sql linked_records.sql operation.sql resident.sql distributed.sql

# Those that the last release did not have. The update script consists of them, behind what has changed in the others.
NEW_SQL_PARTS =

# The regression tests: sql/NAME.sql and expected/NAME.out.
REGRESS = $(patsubst $(SOURCE)sql/%.sql,%,$(sort $(wildcard $(SOURCE)sql/*.sql)))

# Each of them finds the extension in its database, so any of them runs alone.
REGRESS_OPTS = --load-extension=gputext

# The tests hold texts beyond ASCII, whatever the locale of the one who runs them.
ENCODING = UTF8

VERSION_LINE = s/^default_version *= *'\(.*\)'.*/\1/p
EXTVERSION := $(shell sed -n "$(VERSION_LINE)" $(SOURCE)extension/gputext.control)
SQL_SCRIPT = build/pgxs/gputext--$(EXTVERSION).sql
RELEASES := $(shell sed 's/ .*//' $(SOURCE)extension/releases/commits)
UPDATE_SCRIPT = build/pgxs/gputext--$(lastword $(RELEASES))--$(EXTVERSION).sql

SOURCES := $(shell cd "$(ROOT)" && find extension -name '*.cpp' | LC_ALL=C sort)

# The module of the tests: all of the extension's, and C functions by which tests see what no SQL function shows.
TEST_SOURCES := $(shell cd "$(ROOT)" && find tests/module -name '*.cpp' | LC_ALL=C sort)
TEST_OBJS = $(TEST_SOURCES:%.cpp=build/pgxs/%.o)
TEST_MODULE = build/pgxs/tests/gputext$(DLSUFFIX)

# PGXS installs and removes the control file by its last name and is content with a folder before it.
EXTENSION = extension/gputext
MODULE_big = gputext
OBJS = $(SOURCES:%.cpp=build/pgxs/%.o)
DATA_built = $(SQL_SCRIPT) $(UPDATE_SCRIPT)
# The update scripts of earlier releases
DATA := $(patsubst $(SOURCE)%,%,$(wildcard $(SOURCE)extension/releases/gputext--*--*.sql))
EXTRA_CLEAN = build

# CMake, which knows nvcc, builds what needs no PostgreSQL: the library of all computations, which the module
# and gputextd share, and gputextd, the program that owns the GPUs and lies beside the module.
CMAKE_BUILD = build/cmake
COMPUTATIONS = $(CMAKE_BUILD)/libgputext_cpp.a
DAEMON = $(CMAKE_BUILD)/gputextd

# The module is linked by the C compiler driver.
SHLIB_LINK = $(COMPUTATIONS) $(libpq) -lstdc++ -pthread

# Bitcode serves inlining into queries, which nothing here could gain from, and needs clang.
override with_llvm = no

COMMA = ,
PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
# The isolation tests: tests/isolation/specs/NAME.spec and tests/isolation/expected/NAME.out. Not every package of PostgreSQL has
# the program that runs them.
ifneq (,$(wildcard $(dir $(PGXS))../test/isolation/pg_isolation_regress))
ISOLATION = $(patsubst $(SOURCE)tests/isolation/specs/%.spec,%,$(sort $(wildcard $(SOURCE)tests/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir='$(ROOT)/tests/isolation' --load-extension=gputext
endif
ifeq (,$(wildcard $(PGXS)))
$(error "$(PG_CONFIG)" knows no PostgreSQL to build for: run "make dependencies", or choose another by PG_CONFIG=/path/to/pg_config)
endif
include $(PGXS)
# make itself would take what was built in the checkout for what is to be built here, and so would CMake's makes.
srcdir := $(ROOT)
override VPATH :=
MAKEOVERRIDES :=
vpath %.control $(ROOT)
ifeq (,$(filter 15 16 17 18 19,$(MAJORVERSION)))
$(error gputext is for PostgreSQL 15 to 18, and for the release candidate of 19, and "$(PG_CONFIG)" is of PostgreSQL $(MAJORVERSION): choose another by PG_CONFIG=/path/to/pg_config)
endif

# ccache takes a precompiled header for an input only if told to, gcc by a flag of its own.
CCACHE := $(if $(shell command -v ccache),CCACHE_SLOPPINESS=pch_defines$(COMMA)time_macros ccache)
PRECOMPILED_FLAGS := $(if $(findstring clang,$(shell $(CXX) --version)),,-fpch-preprocess)

# PostgreSQL's headers are system headers to us: our own code keeps all its warnings, theirs give
# none. PostgreSQL 15 leaves PGDLLEXPORT empty here, as it exports everything by default. Without
# contraction distances have the same bits wherever they are computed (cpp/knn/distance.hpp); -g1 is what
# backtraces need. EXTENSION_CXXFLAGS is for scripts/check-server.
COMPILE = $(CXX) $(CXXFLAGS) -std=c++20 -O2 -g1 -ffp-contract=off -Wall -Wextra -Werror -pthread \
	-fvisibility=hidden -fvisibility-inlines-hidden $(EXTENSION_CXXFLAGS) -isystem $(includedir_server) \
	-D'PGDLLEXPORT=__attribute__((visibility("default")))' $(PRECOMPILED_FLAGS) $(CPPFLAGS)

# The release that the module and gputextd compare.
RELEASE = build/pgxs/generated/release.hpp
$(RELEASE): $(shell cd "$(ROOT)" && \
		find cpp gputextd kernels -name '*.?pp' -o -name '*.cu' -o -name '*.cuh' | sed "s|^|$(SOURCE)|") \
		$(SOURCE)extension/gputext.control $(SOURCE)scripts/write-release
	@$(MKDIR_P) $(@D)
	@$(SOURCE)scripts/write-release $@
	@touch $@
build/pgxs/extension/server/release.o: $(RELEASE)

# Another compiler, other flags or a source more or less: build again. The file changes while make reads this,
# so that a dry run, which scripts/cluster counts files by, knows what is to be done.
SETTINGS = $(OBJS) $(TEST_OBJS) | $(COMPILE) | $(LINK.shared) $(LDFLAGS) $(SHLIB_LINK)
$(shell mkdir -p build/pgxs)$(file >build/pgxs/settings.new,$(SETTINGS))
$(shell cd build/pgxs && if cmp -s settings.new settings; then rm settings.new; else mv settings.new settings; fi)

# The compilers find what is compiled of a header beside it, so that it is included from a file in build/.
PRECOMPILED = build/pgxs/precompiled.hpp
$(PRECOMPILED).gch: $(SOURCE)extension/base/precompiled.hpp build/pgxs/settings
	@echo '#include "extension/base/precompiled.hpp"' >$(PRECOMPILED)
	$(CCACHE) $(COMPILE) -MMD -MP -x c++-header -o $@ $(PRECOMPILED)

$(OBJS) $(TEST_OBJS): build/pgxs/%.o: $(SOURCE)%.cpp build/pgxs/settings $(PRECOMPILED).gch
	@$(MKDIR_P) $(@D)
	$(CCACHE) $(COMPILE) -include $(PRECOMPILED) -MMD -MP -c -o $@ $<
# libpq's headers lie beside the server's.
build/pgxs/extension/remote/%.o: private COMPILE += -idirafter $(includedir)
-include $(OBJS:.o=.d) $(TEST_OBJS:.o=.d) $(PRECOMPILED).d

$(MODULE_big)$(DLSUFFIX): build/pgxs/settings $(COMPUTATIONS)

$(TEST_MODULE): $(OBJS) $(TEST_OBJS) build/pgxs/settings $(COMPUTATIONS)
	$(LINK.shared) -o $@ $(OBJS) $(TEST_OBJS) $(LDFLAGS) $(LDFLAGS_SL) $(SHLIB_LINK)

UPDATE_PARTS = $(SOURCE)extension/sql/search_path.sql $(SOURCE)extension/sql/loaded_version.sql $(SOURCE)extension/releases/changes.sql $(NEW_SQL_PARTS:%=$(SOURCE)extension/sql/%)
$(SQL_SCRIPT): COMMAND = CREATE EXTENSION gputext
$(SQL_SCRIPT): $(SQL_PARTS:%=$(SOURCE)extension/sql/%)
$(UPDATE_SCRIPT): COMMAND = ALTER EXTENSION gputext UPDATE
$(UPDATE_SCRIPT): $(UPDATE_PARTS) $(SOURCE)extension/releases/commits

$(DATA_built): $(SOURCE)Makefile $(SOURCE)extension/gputext.control
	@$(MKDIR_P) $(@D)
	@{ printf "%s\n" '\echo Use "$(COMMAND)" to load this file. \quit'; \
	   for part in $(filter %.sql,$^); do echo; sed "s/@VERSION@/$(EXTVERSION)/" $$part || exit; done; } >$@.new
	mv $@.new $@

# The two scripts alone
.PHONY: joined-scripts
joined-scripts: $(DATA_built)

.PHONY: gputextd install-gputextd uninstall-gputextd
ifndef GPUTEXT_CPU_ONLY
all: gputextd
install: install-gputextd
endif
install: remove-install-scripts
uninstall: uninstall-gputextd remove-install-scripts

# The installation scripts of earlier releases, which those have installed, are not held to what docs/development.md says of names
# in SQL. An extension that was made by them needs the update scripts alone.
.PHONY: remove-install-scripts
remove-install-scripts:
	rm -f $(foreach version,$(RELEASES),'$(DESTDIR)$(datadir)/$(datamoduledir)/gputext--$(version).sql')

# The extension alone, without gputextd
.PHONY: module
module: $(MODULE_big)$(DLSUFFIX) $(DATA_built)

# The module of the tests, and it in the place of the extension's: for servers of scripts/cluster, which alone need it
.PHONY: test-module install-test-module
test-module: $(TEST_MODULE)
install-test-module: install $(TEST_MODULE)
	$(INSTALL_SHLIB) $(TEST_MODULE) '$(DESTDIR)$(pkglibdir)/$(MODULE_big)$(DLSUFFIX)'

# CMake itself sees what has changed. Two of its builds in one folder at a time would be in each other's way.
CMAKE_OPTIONS = $(if $(GPUTEXT_CUDA_ARCHITECTURES),-D'GPUTEXT_CUDA_ARCHITECTURES=$(GPUTEXT_CUDA_ARCHITECTURES)') \
	-DGPUTEXT_KERNELS=$(if $(filter no,$(GPUTEXT_KERNELS))$(GPUTEXT_CPU_ONLY),OFF,ON)
CMAKE_QUIETLY = $(if $(findstring s,$(firstword -$(MAKEFLAGS))),>/dev/null)
.PHONY: configure
configure:
	@cmake -S "$(ROOT)" -B $(CMAKE_BUILD) --log-level=NOTICE --no-warn-unused-cli $(CMAKE_OPTIONS) >/dev/null
$(COMPUTATIONS): configure
	+@cmake --build $(CMAKE_BUILD) --target gputext_cpp $(CMAKE_QUIETLY)
gputextd: $(COMPUTATIONS)
	+@cmake --build $(CMAKE_BUILD) --target gputextd $(CMAKE_QUIETLY)

install-gputextd: gputextd installdirs
	$(INSTALL_PROGRAM) $(DAEMON) '$(DESTDIR)$(pkglibdir)/gputextd'

uninstall-gputextd:
	rm -f '$(DESTDIR)$(pkglibdir)/gputextd'

# A private server holds files that go away with build/, and sometimes a directory elsewhere.
.PHONY: remove-clusters
remove-clusters:
	$(SOURCE)scripts/cluster remove-all
clean: remove-clusters

endif
