# shellcheck shell=bash
# What the scripts share; sourced by each of them, never run.

set -euo pipefail

# The server of root's checkout runs as another user, who must be able to read what is built.
umask 022

# Messages that the scripts read, and the same order of names everywhere.
export LC_ALL=C.UTF-8

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
# shellcheck disable=SC2034  # the scripts use it
BUILD=$ROOT/build

# The caller's PGHOST and friends speak of other servers than ours. PG_CONFIG is not one of them.
# shellcheck disable=SC2046
unset $(compgen -v | grep '^PG[A-Z]*$') || true

# make's own variables would make a make called from here think that it shares its caller's jobs.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GNUMAKEFLAGS

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# codename: of Debian's or Ubuntu's release of this machine
codename() {
    sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null
}

# distribution_version: the PostgreSQL that this release has
distribution_version() {
    case $(codename) in
        bookworm) say 15 ;;
        noble) say 16 ;;
        trixie) say 17 ;;
        *) say 18 ;;
    esac
}

# installed_version: the newest PostgreSQL that extensions can be built for here, else what the distribution has
installed_version() {
    local version
    for version in 18 17 16 15; do
        if [[ -x /usr/lib/postgresql/$version/bin/postgres && -e /usr/include/postgresql/$version/server/postgres.h ]]; then
            say "$version"
            return
        fi
    done
    distribution_version
}

# Where scripts/install-dependencies unpacks PostgreSQL's headers for the demonstration
HEADERS=$BUILD/headers

# has_headers: whether extensions can be built for the PostgreSQL of the package
has_headers() {
    [[ -e /usr/include/postgresql/$PG_VERSION/server/postgres.h ]]
}

# PG_CONFIG chooses the PostgreSQL. Debian's packages name themselves by PG_VERSION.
CHOSEN_PG_CONFIG=${PG_CONFIG:-}

# choose_postgresql: sets PG_VERSION and PG_CONFIG; again after packages were installed
choose_postgresql() {
    if [[ -n $CHOSEN_PG_CONFIG ]]; then
        # One that is still to be installed has it in its path, if it is a package.
        PG_VERSION=$("$PG_CONFIG" --version 2>/dev/null || say "$PG_CONFIG")
        PG_VERSION=$(sed 's/^[^0-9]*\([0-9]*\).*/\1/' <<<"$PG_VERSION")
        PG_VERSION=${PG_VERSION:-$(distribution_version)}
        return
    fi
    PG_VERSION=${PG_VERSION:-$(installed_version)}
    POSTGRESQL_CONFIG=/usr/lib/postgresql/$PG_VERSION/bin/pg_config
    PG_CONFIG=$POSTGRESQL_CONFIG
    if ! has_headers && [[ -x $HEADERS/pg_config ]]; then
        PG_CONFIG=$HEADERS/pg_config
    fi
}
choose_postgresql

# is_packaged: whether the PostgreSQL is a package of the distribution, or is still to be installed as one
is_packaged() {
    local programs
    programs=$("$PG_CONFIG" --bindir 2>/dev/null || true)
    [[ ! -x $programs/postgres || $programs == /usr/lib/postgresql/* ]]
}

# has_cron_package: whether there is a package of pg_cron for the PostgreSQL. These releases have one for their own
# PostgreSQL, also where apt has no lists yet.
has_cron_package() {
    is_packaged || return
    case $(codename) in
        bookworm | noble | trixie) [[ $PG_VERSION != "$(distribution_version)" ]] || return 0 ;;
    esac
    apt-cache show "postgresql-$PG_VERSION-cron" >/dev/null 2>&1
}

# has_pgvector_package: the same of pgvector, which Debian 12 does not have
has_pgvector_package() {
    is_packaged || return
    case $(codename) in
        noble | trixie) [[ $PG_VERSION != "$(distribution_version)" ]] || return 0 ;;
    esac
    apt-cache show "postgresql-$PG_VERSION-pgvector" >/dev/null 2>&1
}

# For the GPU of this machine alone, which is built sooner; where there is none, kernels are only to
# compile. nvidia-smi lists devices if there are any.
if [[ -z ${GPUTEXT_CUDA_ARCHITECTURES:-} ]]; then
    GPUTEXT_CUDA_ARCHITECTURES=90
    ! nvidia-smi -L >/dev/null 2>&1 || GPUTEXT_CUDA_ARCHITECTURES=native
fi
export GPUTEXT_CUDA_ARCHITECTURES

# What is built in several folders, the kernels above all, is compiled once: the folder, which only
# debuggers would see, makes no difference to ccache.
export CCACHE_NOHASHDIR=1

# run_make GOAL...: the Makefile with the PostgreSQL of these scripts
run_make() {
    make --no-print-directory -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" "$@"
}

# The module of the tests is built and installed, unless GPUTEXT_TEST_MODULE=no.
if [[ ${GPUTEXT_TEST_MODULE:-} == no ]]; then
    BUILD_GOALS=(all) INSTALL_GOAL=install
else
    BUILD_GOALS=(all test-module) INSTALL_GOAL=install-test-module
fi

# install_for_tests ROOT: what make install installs, below ROOT, with the module of the tests (tests/module/) and the
# installation scripts of earlier releases, which the test of updates begins with
install_for_tests() {
    run_make "$INSTALL_GOAL" DESTDIR="$1" >/dev/null
    cp tests/upgrade/gputext--*.sql "$1$("$PG_CONFIG" --sharedir)/extension"
}

# kinds_of_packages PART...: what scripts/install-dependencies is to install for these parts of scripts/check, or for all
kinds_of_packages() {
    local part kinds=build
    for part in "${@:-all}"; do
        case $part in
            build | server | isolation | plans) ;;
            regression) kinds="build regression" ;;
            *)
                say "build test"
                return
                ;;
        esac
    done
    say "$kinds"
}

# copy_checkout COPY: this checkout without what is built in it; what was built in an earlier copy there stays
copy_checkout() {
    mkdir -p "$1"
    find "$1" -mindepth 1 -maxdepth 1 ! -name build ! -name gputext.so -exec rm -r {} +
    tar -c --exclude=./build --exclude=./.git --exclude=./gputext.so --exclude=./shared . | tar -x -C "$1"
}

# ---- Building with a word on how far it is ----

# How many files the compiler still has to take for BUILD_GOALS.
files_to_compile() {
    local make=(make --no-print-directory PG_CONFIG="$PG_CONFIG")
    # A dry run does not configure, and without that CMake does not know its files. In a fresh folder it misses a
    # precompiled header that is not there yet, and says so.
    "${make[@]}" -s configure >/dev/null
    "${make[@]}" -n -o configure "${BUILD_GOALS[@]}" 2>/dev/null | grep -c -e ' -c -o ' -e 'Building C[A-Z]* object' || true
}

# show_progress TOTAL: reads make's output, in which each file that the compiler begins with has a line, and says how
# many are done and how long the others will take at the speed of the last ones: in one line at a terminal, else a line
# for each tenth
show_progress() {
    local total=$1 begun=0 done_files=0 shown=0 line text recent
    local times=("$SECONDS")    # when each file was done, from the start on
    while IFS= read -r line; do
        [[ $line == *' -c -o '* || $line =~ Building\ C[A-Z]*\ object ]] || continue
        begun=$((begun + 1))
        done_files=$((begun > JOBS ? begun - JOBS : 0))
        ((done_files > 0 && done_files <= total)) || continue
        times[done_files]=$SECONDS
        text="    $done_files of $total files"
        # By the last files alone: files that ccache knows take no time, and come in runs.
        recent=$((done_files < 20 ? done_files : 20))
        if ((done_files >= 5 || SECONDS - times[0] >= 20)); then
            text+=", $(duration $(((SECONDS - times[done_files - recent]) * (total - done_files) / recent))) left"
        fi
        if [[ -t 2 ]]; then
            printf '\r%-60s' "$text" >&2
        elif ((done_files * 10 >= (shown + 1) * total)); then
            shown=$((done_files * 10 / total))
            say "$text" >&2
        fi
    done
    [[ ! -t 2 ]] || printf '\r%-60s\r' '' >&2
}

# duration SECONDS: as people say it
duration() {
    if (($1 < 90)); then
        say "about $1 s"
    else
        say "about $((($1 + 30) / 60)) min"
    fi
}

# build_extension: BUILD_GOALS, on standard error what it does and how far it is. What the compilers say is kept in
# build/build.log, and its end shown if they fail.
JOBS=$(nproc)
build_extension() {
    local total start=$SECONDS
    mkdir -p "$BUILD"
    total=$(files_to_compile)
    if ((total == 0)); then
        run_make "${BUILD_GOALS[@]}" >&2
        return
    fi
    say "Compiling $total files, $JOBS at a time. Each takes a processor 1 to 10 seconds, unless ccache knows it." >&2
    if ! make --no-print-directory -j"$JOBS" PG_CONFIG="$PG_CONFIG" "${BUILD_GOALS[@]}" 2>&1 | tee "$BUILD/build.log" | show_progress "$total"; then
        grep -v -e ' -c -o ' -e '^\[' "$BUILD/build.log" | tail -n 40 >&2 || true
        die "the build failed; all of its output is in build/build.log"
    fi
    say "Compiled $total files in $((SECONDS - start)) s." >&2
}
