# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# Source trees of UCX, and builds of them for ucx-build and ucx-gtest: a configured
# copy in DIR/src, its objects in DIR/obj. Sourced by bash after common.sh, or by a
# script that has $top, say and die.
#
# DIR/.dcx-ucx names the version and the options that DIR was configured for.
# $ucx_tree: a source tree, a folder or an archive; none for Debian's package
ucx_tree=
# DCX_UCX_TREES: folders of other versions, separated by colons. Made absolute, for
# scripts that change to another folder.
if [ -n "${DCX_UCX_TREES:-}" ]; then
    DCX_UCX_TREES=$(tr : '\n' <<< "$DCX_UCX_TREES" |
        grep . | xargs -d '\n' realpath -ms | paste -s -d :)
    export DCX_UCX_TREES
fi

# Prints the options that Debian configured UCX with, without folders and options
# of its build system
ucx_options()
{
    ucx_info -v | sed -n 's/^# Configured with: //p' | tr ' ' '\n' |
        grep -E -- '^--(enable|disable|with|without)-' |
        grep -vE -- '-(option-checking|silent-rules|maintainer-mode)$'
    # no bindings, which need compilers of their own, nothing of perftest's or for
    # GPUs that needs more packages, no coverage, and no second set of objects
    printf '%s\n' --without-java --without-go --without-mad --without-mpi \
        --without-rocm --disable-lcov --disable-static
}

# Prints the compiler's flags of a package build, without the name of its folder
ucx_flags()
{
    dpkg-buildflags --export=configure | sed 's/-ffile-prefix-map=[^ ]* *//g'
}

# configure_ucx DIR [OPTION...]: configures DIR/src, in DIR/obj; both are new.
# OPTIONs are shell words, and come last, so that they may change flags.
configure_ucx()
{
    local dir=$1 log=$1/configure.log options
    shift
    mapfile -t options < <(ucx_options)
    (
        cd "$dir/src" && { [ ! -e autogen.sh ] || ./autogen.sh; } && cd ../obj &&
            eval "../src/configure --prefix=\"\$dir/install\" \
                ${options[*]} $(ucx_flags) $*"
    ) > "$log" 2>&1 ||
        { tail -n 8 "$log" >&2; die "UCX's configure failed: see $log"; }
}

ucx_prefix= # folder of a UCX that is not the system's

# find_ucx_tree VERSION: sets $ucx_tree to the source tree of that UCX, from a
# folder of DCX_UCX_TREES
find_ucx_tree()
{
    local folder folders tree
    IFS=: read -ra folders <<< "${DCX_UCX_TREES:-}"
    for folder in "${folders[@]}"; do
        for tree in "$folder/ucx-$1" "$folder/ucx-$1".tar.*; do
            if [ -e "$tree" ]; then
                ucx_tree=$(realpath "$tree")
                return 0
            fi
        done
    done
    return 1
}

# need_ucx_tree VERSION: as find_ucx_tree; without a tree, skips the test
need_ucx_tree()
{
    find_ucx_tree "$1" || {
        echo "SKIP: set DCX_UCX_TREES to a folder that has ucx-$1"
        exit 77
    }
}

# use_ucx TREE|VERSION: builds that UCX in $build/ucx-versions, if it is not built
# yet, and uses its programs, libraries and headers instead of the system's. Sets
# ucx_prefix, ucx_source, and build to a folder beside that UCX.
use_ucx()
{
    local name dir
    if [ -e "$1" ]; then
        ucx_tree=$(realpath "$1")
    else
        find_ucx_tree "$1" || die "no source tree of UCX $1: set DCX_UCX_TREES" \
            "to a folder with ucx-$1 or ucx-$1.tar.*"
    fi
    name=${ucx_tree##*/}
    name=${name#ucx-}
    name=${name%.tar.*}
    dir=$build/ucx-versions/ucx-$name
    DCX_BUILD=$build "$top/contrib/ucx-build" --tree "$ucx_tree" "$dir"
    ucx_prefix=$dir/install
    ucx_source=$dir/src
    build=$build/ucx-versions/dcx-$name
    export PATH=$ucx_prefix/bin:$PATH LD_LIBRARY_PATH=$ucx_prefix/lib
    # for programs that tests compile
    export CPATH=$ucx_prefix/include LIBRARY_PATH=$ucx_prefix/lib
}

# Prints an identity of the source tree, which differs from that of any other; it
# stays the same if a file in a folder is edited
ucx_tree_name()
{
    if [ -n "$ucx_tree" ]; then
        stat -c '%n %s %Y' "$ucx_tree"
    else
        dpkg-query -W -f '${source:Version}' libucx-dev
    fi
}

# copy_ucx_tree DIR: copies the source tree to DIR, which does not exist
copy_ucx_tree()
{
    if [ -f "$ucx_tree" ]; then
        mkdir "$1"
        tar -x -f "$ucx_tree" -C "$1" --strip-components=1
    elif [ -n "$ucx_tree" ]; then
        cp -a "$ucx_tree" "$1"
    else
        "$top/contrib/ucx-source" --all "$build/ucx-tree"
        cp -a "$build/ucx-tree" "$1"
    fi
    [ -f "$1/src/uct/base/uct_iface.h" ] ||
        die "${ucx_tree:-$build/ucx-tree} is not a source tree of UCX: it has no" \
            "src/uct/base/uct_iface.h"
}

# prepare_ucx DIR EDIT [OPTION...]: copies the source tree, runs the program EDIT
# in the copy (true for no change), and configures it with Debian's options and
# OPTIONs
prepare_ucx()
{
    local dir=$1 edit=$2 want
    shift 2
    want="$(ucx_tree_name) $*
$(ucx_options) $(ucx_flags) $(cksum < "$(type -P "$edit")")"
    if [ "$(cat "$dir/.dcx-ucx" 2> /dev/null)" = "$want" ]; then
        return 0
    fi
    [ -e "$dir/.dcx-ucx" ] || [ -z "$(ls -A "$dir" 2> /dev/null)" ] ||
        die "$dir has other files in it: name a new folder"
    say "configuring UCX in $dir"
    rm -rf "$dir"
    mkdir -p "$dir/obj"
    : > "$dir/.dcx-ucx"
    copy_ucx_tree "$dir/src"
    (cd "$dir/src" && "$edit")
    configure_ucx "$dir" "$@"
    echo "$want" > "$dir/.dcx-ucx"
}

# Prints the number of compilers to run at once: one a core, each with 1 GiB
ucx_jobs()
{
    awk -v cores="$(nproc)" '/^MemAvailable:/ {
        jobs = int($2 / 1048576)
        print jobs < 1 ? 1 : jobs < cores ? jobs : cores }' /proc/meminfo
}

# make_ucx DIR FOLDER ARGUMENT...: runs make in DIR/obj/FOLDER, with its output in
# a log
make_ucx()
{
    local log=$1/make-${2//\//-}.log obj=$1/obj/$2
    shift 2
    make -C "$obj" -j"$(ucx_jobs)" "$@" > "$log" 2>&1 ||
        { grep -E -A3 'error|Error|\*\*\*' "$log" | tail -n 40 >&2
          die "the build of UCX failed: see $log"; }
}

# trim_gtest_objects MAKEFILE: removes from its lists the tests that are not of dcx
# or dc_mlx5; names in lists, unlike rules, have a space before them
trim_gtest_objects()
{
    local others='((ucs|ucm|uct/tcp)/([a-z0-9]+/)?gtest-[a-z0-9_]+'
    others="$others|uct/gtest-test_(mm|mem)"
    others="$others|uct/ib/gtest-(ud_base|test_(ud|sockaddr)[a-z_]*))"
    sed -Ei "s#([[:space:]])$others\.\\\$\(OBJEXT\)#\1#g" "$1"
}

# Builds UCX's gtest into $ucx_gtest, linked with the libraries of the system or
# of use_ucx
build_ucx_gtest()
{
    local dir=$build/ucx-gtest lib libs tests=test/gtest
    local gpu=$build/test/ucx-gtest/.libs
    # -O1 compiles fast; one source needs -O3 for its inlining
    local flags="-g0 -Wno-error -I$top/test/ucx-gtest"
    ucx_gtest=$dir/obj/$tests/gtest
    build_targets test/ucx-gtest/libfake_hip.la
    prepare_ucx "$dir" "$top/test/ucx-gtest/edit-gtest" --enable-gtest
    [ ! -e "$dir/.dcx-built" ] || return 0
    say "building UCX's gtest in $dir, which takes some minutes"
    lib=${ucx_prefix:+$ucx_prefix/lib}
    lib=${lib:-$(pkg-config --variable=libdir ucx)}
    libs="../../src/tools/perf/lib/libucxperf.la common/googletest/libgtest.la"
    libs="$libs -L$lib -lucp -luct -lucs -lucm -L$lib/ucx -luct_ib"
    # a module of its own since 1.18
    [ ! -e "$lib/ucx/libuct_ib_mlx5.so" ] || libs="$libs -luct_ib_mlx5"
    libs="$libs -L$gpu -lfake_hip -Wl,-rpath,$gpu"
    libs="$libs -Wl,-rpath,$lib/ucx -libverbs -lmlx5 -fopenmp"
    trim_gtest_objects "$dir/obj/$tests/Makefile"
    make_ucx "$dir" src/tools/perf/lib libucxperf_la_LIBADD= \
        libucxperf_la_DEPENDENCIES=
    make_ucx "$dir" $tests/common/googletest CXXFLAGS="-O1 $flags"
    make_ucx "$dir" $tests CXXFLAGS="-O3 $flags" uct/gtest-test_tag.o
    make_ucx "$dir" $tests CXXFLAGS="-O1 $flags" gtest_DEPENDENCIES= \
        gtest_LDADD="$libs" gtest
    touch "$dir/.dcx-built"
}
