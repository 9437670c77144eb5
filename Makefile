# make, make install, make installcheck, make uninstall, make clean   the extension, through PGXS
# make demo                                                           see it work on this machine's files
# make check                                                          every test
# make dependencies                                                   the Debian packages of all that
#
# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL to build for and install into. The developer's
# goals never install into it: scripts/cluster keeps a private server under build/.
#
# GPUTEXT_CUDA_ARCHITECTURES chooses the GPUs to build for, in CMake's way: "80-real;90-real". By
# default it is all that nvcc 13 knows. Without nvcc, or with GPUTEXT_KERNELS=no, gputext is built for
# the CPU alone.
#
# GPUTEXT_CPU_ONLY=1 builds and installs the extension without gputextd, the program that owns the GPUs,
# which takes half of the time: every call then computes on the CPU.

SCRIPT_GOALS = demo check dependencies

ifneq (,$(filter $(SCRIPT_GOALS),$(MAKECMDGOALS)))

# These goals install PostgreSQL where it is missing, so nothing of it may be needed to read this
# part. It also keeps PGXS' own target named check away.
.PHONY: $(MAKECMDGOALS)
.NOTPARALLEL:

demo:
	@scripts/demo

check:
	@scripts/check

dependencies:
	@scripts/install-dependencies

# Goals of PGXS asked for together with ours: make clean check
$(filter-out $(SCRIPT_GOALS),$(MAKECMDGOALS)):
	+$(MAKE) $@

else

# The parts of the installation script, in the order in which PostgreSQL is to read them.
SQL_PARTS = loaded_version.sql ctph.sql edit_distance.sql ssdeep.sql near_duplicates.sql knn.sql tfidf.sql \
	cosine_similarity.sql outlier_factor.sql k_means.sql trie.sql word_similarity.sql word2vec.sql \
	word_movers.sql sequence_probability.sql code_tokens.sql operation.sql

# The regression tests: sql/NAME.sql and expected/NAME.out.
REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))

# Each of them finds the extension in its database, so any of them runs alone.
REGRESS_OPTS = --load-extension=gputext

# The tests hold texts beyond ASCII, whatever the locale of the one who runs them.
ENCODING = UTF8

VERSION_LINE = s/^default_version *= *'\(.*\)'.*/\1/p
EXTVERSION := $(shell sed -n "$(VERSION_LINE)" extension/gputext.control)
SQL_SCRIPT = extension/gputext--$(EXTVERSION).sql

# What only gputextd needs lies in cpp/daemon and stays out of the module.
SOURCES := $(filter-out cpp/daemon/%,$(shell find cpp extension -name '*.cpp' | LC_ALL=C sort))

# PGXS installs and removes the control file by its last name and is content with a folder before it.
EXTENSION = extension/gputext
MODULE_big = gputext
OBJS = $(SOURCES:%.cpp=build/pgxs/%.o)
DATA_built = $(SQL_SCRIPT)
# Installation scripts of earlier releases, and what leads from one release to the next
DATA = $(wildcard extension/releases/gputext--*.sql)
EXTRA_CLEAN = build

# The module is linked by the C compiler driver.
SHLIB_LINK = -lstdc++ -pthread

# The program that owns the GPUs lies beside the module. CMake builds it, which knows nvcc.
DAEMON_BUILD = build/gputextd
DAEMON = $(DAEMON_BUILD)/gputextd

# Bitcode serves inlining into queries, which nothing here could gain from, and needs clang.
override with_llvm = no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq (,$(wildcard $(PGXS)))
$(error "$(PG_CONFIG)" knows no PostgreSQL to build for: run "make dependencies", or choose another by PG_CONFIG=/path/to/pg_config)
endif
include $(PGXS)
ifeq (,$(filter 15 16 17 18,$(MAJORVERSION)))
$(error gputext is for PostgreSQL 15, and "$(PG_CONFIG)" is of PostgreSQL $(MAJORVERSION): choose another by PG_CONFIG=/path/to/pg_config)
endif

CCACHE := $(shell command -v ccache)
# Without contraction distances have the same bits wherever they are computed (cpp/knn/distance.hpp).
GPUTEXT_CXXFLAGS = $(CXXFLAGS) -std=c++20 -O2 -ffp-contract=off -Wall -Wextra -Werror -pthread \
	-fvisibility=hidden -fvisibility-inlines-hidden

# cpp/ sees no header of PostgreSQL.
COMPILE_cpp = $(CXX) $(GPUTEXT_CXXFLAGS) $(filter-out -I%,$(CPPFLAGS)) -I.

# PostgreSQL's headers are system headers to us: our own code keeps all its warnings, theirs give
# none. PostgreSQL 15 leaves PGDLLEXPORT empty here, as it exports everything by default.
# EXTENSION_CXXFLAGS is for scripts/check-server.
COMPILE_extension = $(CXX) $(GPUTEXT_CXXFLAGS) $(EXTENSION_CXXFLAGS) -isystem $(includedir_server) \
	-D'PGDLLEXPORT=__attribute__((visibility("default")))' $(CPPFLAGS)

# The release that the module and gputextd compare.
RELEASE = build/pgxs/generated/release.hpp
$(RELEASE): $(shell find cpp gputextd kernels -name '*.?pp' -o -name '*.cu' -o -name '*.cuh') \
		extension/gputext.control scripts/write-release
	@$(MKDIR_P) $(@D)
	@scripts/write-release $@
	@touch $@
build/pgxs/extension/server/release.o: $(RELEASE)

# Another compiler, other flags or a source more or less: build again.
SETTINGS = $(OBJS) | $(COMPILE_cpp) | $(COMPILE_extension) | $(LINK.shared) $(LDFLAGS) $(SHLIB_LINK)
build/pgxs/settings: FORCE
	$(shell mkdir -p $(@D))$(file >$@.new,$(SETTINGS))
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
.PHONY: FORCE
FORCE:

$(OBJS): build/pgxs/%.o: %.cpp build/pgxs/settings
	@$(MKDIR_P) $(@D)
	$(CCACHE) $(COMPILE_$(firstword $(subst /, ,$<))) -MMD -MP -c -o $@ $<
-include $(OBJS:.o=.d)

$(MODULE_big)$(DLSUFFIX): build/pgxs/settings

$(SQL_SCRIPT): Makefile extension/gputext.control $(SQL_PARTS:%=extension/sql/%)
	@{ printf "%s\n" '\echo Use "CREATE EXTENSION gputext" to load this file. \quit'; \
	   for part in $(SQL_PARTS:%=extension/sql/%); do echo; sed "s/@VERSION@/$(EXTVERSION)/" $$part || exit; done; } >$@.new
	mv $@.new $@

.PHONY: gputextd install-gputextd uninstall-gputextd
ifndef GPUTEXT_CPU_ONLY
all: gputextd
install: install-gputextd
endif
uninstall: uninstall-gputextd

# The extension alone, without gputextd
.PHONY: module
module: $(MODULE_big)$(DLSUFFIX) $(SQL_SCRIPT)

# CMake itself sees what has changed.
DAEMON_OPTIONS = -DGPUTEXT_TESTS=OFF \
	$(if $(GPUTEXT_CUDA_ARCHITECTURES),-D'GPUTEXT_CUDA_ARCHITECTURES=$(GPUTEXT_CUDA_ARCHITECTURES)') \
	$(if $(filter no,$(GPUTEXT_KERNELS)),-DCMAKE_CUDA_COMPILER=NOTFOUND)
.PHONY: configure-gputextd
configure-gputextd:
	@cmake -S . -B $(DAEMON_BUILD) --log-level=NOTICE $(DAEMON_OPTIONS) >/dev/null
gputextd: configure-gputextd
	+@cmake --build $(DAEMON_BUILD) --target gputextd $(if $(findstring s,$(firstword -$(MAKEFLAGS))),>/dev/null)

install-gputextd: gputextd installdirs
	$(INSTALL_PROGRAM) $(DAEMON) '$(DESTDIR)$(pkglibdir)/gputextd'

uninstall-gputextd:
	rm -f '$(DESTDIR)$(pkglibdir)/gputextd'

# A private server holds files that go away with build/, and sometimes a directory elsewhere.
.PHONY: remove-clusters
remove-clusters:
	scripts/cluster remove-all
clean: remove-clusters

endif
