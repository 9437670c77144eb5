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

PG_CONFIG=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
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
