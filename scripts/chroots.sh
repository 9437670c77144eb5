# shellcheck shell=bash
# Other releases of Debian and Ubuntu, each in a folder below build/chroots; sourced after common.sh by the scripts that use them.

CHROOTS=$BUILD/chroots
UBUNTU_KEYS=/usr/share/keyrings/ubuntu-archive-keyring.gpg

mirror() {
    case $1 in
        noble) say http://archive.ubuntu.com/ubuntu ;;
        *) say http://deb.debian.org/debian ;;
    esac
}

# in_chroot DIRECTORY COMMAND...: with /proc and shared memory of its own; what the command leaves running ends with it
in_chroot() {
    # shellcheck disable=SC2016  # the inner shell's
    unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev/shm" && exec chroot "$@"' in_chroot "$@" </dev/null
}

# make_chroot FOLDER RELEASE: the release as debootstrap leaves it, and a user
make_chroot() {
    local chroot=$CHROOTS/$1 release=$2 script=/usr/share/debootstrap/scripts
    [[ ! -e $chroot/complete ]] || return 0
    rm -rf "$chroot"
    mkdir -p "$chroot"
    say "installing $release"
    # Debian 12's debootstrap does not know this release of Ubuntu by name; all of Ubuntu's are installed alike.
    if [[ $release == noble ]]; then
        [[ -e $UBUNTU_KEYS ]] || die "Ubuntu's keys are missing: $UBUNTU_KEYS"
        debootstrap --variant=minbase --keyring=$UBUNTU_KEYS --components=main,universe \
            "$release" "$chroot" "$(mirror "$release")" $script/gutsy
    else
        debootstrap --variant=minbase "$release" "$chroot" "$(mirror "$release")"
    fi >"$chroot.log" 2>&1 || {
        tail -n 5 "$chroot.log"
        die "$release cannot be installed; all of it: $chroot.log"
    }
    chroot "$chroot" useradd -m gputext
    touch "$chroot/complete"
}

# need_chroots: ends the script where there can be none
need_chroots() {
    if ((EUID != 0)) || ! unshare --mount --pid --fork true; then
        die "a chroot takes root and namespaces"
    fi
    scripts/install-dependencies chroots
}
