# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# Functions of several scripts: packages, the headers of UCX, the build. Sourced by
# bash, with set -eu. Sets top (the source tree) and build.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${DCX_BUILD:-$top/build}

packages_build='gcc g++ make autoconf automake libtool pkg-config dpkg-dev
    xz-utils libibverbs-dev ibverbs-providers libucx-dev ucx-utils
    libpmix-dev'
packages_job='openmpi-bin libopenmpi-dev'
packages_test='libgtest-dev ibverbs-utils perftest procps clang
    libclang-rt-dev valgrind gnuplot-nox mpich libmpich-dev codespell clang-format
    cppcheck shellcheck python3 tcl'
# Compilers and emulator of test/aarch64
packages_aarch64='gcc-aarch64-linux-gnu g++-aarch64-linux-gnu
    libc6-dev-arm64-cross qemu-user'
# Slurm of test/launch, which starts its own. Without an /etc/slurm/slurm.conf
# Debian starts munge only.
packages_slurm='slurmctld slurmd slurm-client munge'
# Programs and libraries of test/programs, if this Debian has them
packages_programs='netpipe-openmpi netpipe-mpich2 hpcc scalapack-mpi-test
    python3-mpi4py python3-numpy lammps libfftw3-dev libfftw3-mpi-dev
    libhdf5-openmpi-dev libhdf5-mpich-dev'
# Tools that build packages (contrib/package) and install them (test/packages)
packages_deb='build-essential debhelper lintian'
packages_rpm='rpm cpio'
# Libraries to build UCX itself, for ucx-build and ucx-gtest
packages_ucx='libnuma-dev librdmacm-dev'

say() { printf '%s: %s\n' "${0##*/}" "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# need_no_space DIR: ends the script if DIR has a space in its name
need_no_space()
{
    case $1 in
    *[[:space:]]*) die "'$1' has a space in its name, which autoconf cannot" \
        "build in: choose another folder" ;;
    esac
}
need_no_space "$top"
need_no_space "$build"

# Runs a command as root
as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# missing_packages PACKAGE...: prints those not installed, one a line
missing_packages()
{
    local package
    for package; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2> /dev/null |
            grep -qx installed || echo "$package"
    done
}

# known_packages PACKAGE...: prints those that this Debian has, one a line
known_packages()
{
    local package
    for package; do
        ! apt-cache show "$package" > /dev/null 2>&1 || echo "$package"
    done
}

# install_packages PACKAGE...: names what is missing, then installs just that
install_packages()
{
    local missing
    command -v dpkg-query > /dev/null || die "this is not a Debian system:" \
        "install the packages of docs/building.md, then run ./autogen.sh"
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    say "installing these Debian packages: ${missing//$'\n'/ }"
    if [ "$(id -u)" != 0 ] && ! command -v sudo > /dev/null; then
        die "cannot install packages without root or sudo: ask your" \
            "administrator to install them, then run this again"
    fi
    as_root apt-get -q update ||
        say "apt-get update failed: continuing with the old lists of packages"
    # Wait for another installation to end, such as unattended-upgrades
    # shellcheck disable=SC2086 # a list of names
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
        -o DPkg::Lock::Timeout=600 --no-install-recommends $missing ||
        die "apt-get could not install the packages: see its message above"
}

# Sets $ucx_source to DCX_UCX_SOURCE, or to a folder for which it fetches the
# headers of the installed UCX
get_ucx_source()
{
    ucx_source=${DCX_UCX_SOURCE:-$build/ucx-source}
    [ -n "${DCX_UCX_SOURCE:-}" ] || "$top/contrib/ucx-source" "$ucx_source"
}

# Prints the prefix that $build was configured for; nothing if it was not
build_prefix()
{
    sed -n 's/^prefix = //p' "$build/Makefile" 2> /dev/null || true
}

# sources_newer_than FILE: prints a source of configure or of the Makefile that is
# newer than FILE, or any if there is no FILE
sources_newer_than()
{
    local newer=()
    [ ! -f "$1" ] || newer=(-newer "$1")
    find "$top/." "(" -name build -o -name .git -o -name install ")" -prune -o \
        "(" -name configure.ac -o -name Makefile.am -o -name Makefile.inc ")" \
        "${newer[@]}" -print -quit
}

# make_configure: runs autogen.sh if a source of configure has changed. Makefile.in
# is the file that it writes last.
make_configure()
{
    [ ! -f "$top/configure" ] ||
        [ -n "$(sources_newer_than "$top/Makefile.in")" ] || return 0
    "$top/autogen.sh" > "$build/autogen.log" 2>&1 ||
        { rm -f "$top/Makefile.in"
          tail -n 20 "$build/autogen.log" >&2
          die "autogen.sh failed: see $build/autogen.log"; }
}

# Prints compilers and flags: make does not build again if these change
build_flags()
{
    sed -n -e ':line' -e '/\\$/{N;s/\\\n//;b line' -e '}' \
        -e '/^[a-z0-9_]*\(flags\|defs\|cc\|cxx\|sanitize\|wrap\) = /Ip' \
        "$build/Makefile"
}

# clean_build TARGET: runs make clean or mostlyclean
clean_build()
{
    make -s -C "$build" "$1" > "$build/clean.log" 2>&1 ||
        { tail -n 5 "$build/clean.log" >&2
          die "make $1 failed: see $build/clean.log"; }
}

# drop_objects WANT: removes all objects if they were built with other flags than
# those of WANT and the Makefile; flags of new targets do not count
drop_objects()
{
    local flags=$build/.flags made_by
    made_by="$1
$(build_flags)"
    if [ ! -f "$flags" ] ||
        grep -qvxFf <(printf '%s\n' "$made_by") "$flags"; then
        clean_build mostlyclean
    fi
    printf '%s\n' "$made_by" > "$flags"
}

# configure_build PREFIX [ARGUMENT...]: runs configure in $build if something has
# changed. An empty PREFIX stands for that of the last time, at first ./install.
configure_build()
{
    local stamp=$build/.configured want found prefix=$1
    shift
    prefix=${prefix:-$(build_prefix)}
    set -- --prefix="${prefix:-$top/install}" "$@"
    # ucx_info logs to standard output: silence it
    want="$* --with-ucx-source=$ucx_source \
ucx=$(UCX_LOG_LEVEL=fatal ucx_info -v -b | cksum)"
    # configure looks for these packages: it runs again if one was installed
    # shellcheck disable=SC2086 # lists of names
    found="without: "$(missing_packages $packages_build $packages_job \
        $packages_test 2> /dev/null || true)
    mkdir -p "$build" && [ -w "$build" ] ||
        die "cannot write to $build: set DCX_BUILD to another folder"
    if [ -f "$stamp" ] && [ -z "$(sources_newer_than "$stamp")" ] &&
        [ -f "$build/Makefile" ] && [ "$(cat "$stamp")" = "$want
$found" ]; then
        return 0
    fi
    say "configuring in $build"
    [ ! -f "$top/Makefile" ] ||
        die "a build is configured in $top itself: run 'make distclean' there"
    make_configure
    rm -f "$stamp" # until it is done
    (cd "$build" && "$top/configure" --with-ucx-source="$ucx_source" "$@" \
        > configure.log 2>&1) ||
        { tail -n 8 "$build/configure.log" >&2
          die "configure failed: see $build/configure.log"; }
    drop_objects "$want"
    printf '%s\n' "$want" "$found" > "$stamp"
}

# build_targets TARGET...: runs make, with its output in a log. The file .warned
# marks a build in which the compiler warned, also one that failed.
build_targets()
{
    local status=0
    say "building in $build"
    make -C "$build" -j"$(nproc)" "$@" > "$build/make.log" 2>&1 || status=$?
    ! grep -Eq ':[0-9]+: warning: ' "$build/make.log" || touch "$build/.warned"
    [ "$status" = 0 ] ||
        { grep -E -A3 'error|Error' "$build/make.log" | tail -n 40 >&2 || true
          die "the build failed: see $build/make.log"; }
}

# build_strictly TARGET...: builds with warnings as errors. After a build that had
# warnings it compiles everything anew, as make would keep those objects.
build_strictly()
{
    if [ -e "$build/.warned" ]; then
        clean_build clean
        rm "$build/.warned"
    fi
    build_targets WERROR=-Werror "$@"
}

# Installs the build into its prefix, with the output of make in a log.
install_build()
{
    make -s -C "$build" install > "$build/install.log" 2>&1 ||
        { tail -n 10 "$build/install.log" >&2
          die "the installation failed: see $build/install.log"; }
}

# Lets root start jobs of Open MPI, which refuses that by default
allow_root_jobs()
{
    [ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 \
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}
