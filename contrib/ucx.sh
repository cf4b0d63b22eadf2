# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# What ucx-build and ucx-gtest share: a configured copy of UCX's source tree,
# DIR/src with its objects in DIR/obj. Sourced by bash after common.sh.
#
# DIR/.dcx-ucx names the version and the options that DIR was configured for.

# The options that Debian configured UCX with, less the folders and what it says
# of its own build system
ucx_options()
{
    ucx_info -v | sed -n 's/^# Configured with: //p' | tr ' ' '\n' |
        grep -E -- '^--(enable|disable|with|without)-' |
        grep -vE -- '-(option-checking|silent-rules|maintainer-mode)$'
    # no bindings, which need compilers of their own, and no second set of objects
    printf '%s\n' --without-java --without-go --disable-static
}

# The compiler's flags, those of a package build in an unnamed folder
ucx_flags()
{
    dpkg-buildflags --export=configure | sed 's/-ffile-prefix-map=[^ ]* *//g'
}

# configure_ucx DIR [OPTION...]: in DIR/src and DIR/obj, which are new. OPTIONs
# are shell words, the last ones, so that they may change flags.
configure_ucx()
{
    local dir=$1 log=$1/configure.log options
    shift
    mapfile -t options < <(ucx_options)
    (
        cd "$dir/src" && ./autogen.sh && cd ../obj &&
            eval "../src/configure --prefix=\"\$dir/install\" \
                ${options[*]} $(ucx_flags) $*"
    ) > "$log" 2>&1 ||
        { tail -n 8 "$log" >&2; die "UCX's configure failed: $log"; }
}

# prepare_ucx DIR EDIT [OPTION...]: a source tree that the function EDIT
# has changed (: for none), configured with Debian's options and OPTIONs
prepare_ucx()
{
    local dir=$1 edit=$2 want
    shift 2
    want="$(dpkg-query -W -f '${source:Version}' libucx-dev) $*
$(ucx_options) $(ucx_flags) $(declare -f "$edit" || true)"
    if [ "$(cat "$dir/.dcx-ucx" 2> /dev/null)" = "$want" ]; then
        return 0
    fi
    [ -e "$dir/.dcx-ucx" ] || [ -z "$(ls -A "$dir" 2> /dev/null)" ] ||
        die "$dir is in use for something else: name a new folder"
    "$top/contrib/ucx-source" --all "$build/ucx-tree"
    say "configuring UCX in $dir"
    rm -rf "$dir"
    mkdir -p "$dir/obj"
    : > "$dir/.dcx-ucx"
    cp -a "$build/ucx-tree" "$dir/src"
    (cd "$dir/src" && "$edit")
    configure_ucx "$dir" "$@"
    echo "$want" > "$dir/.dcx-ucx"
}

# How many compilers at once: one a core, and 1 GiB of memory for each
ucx_jobs()
{
    awk -v cores="$(nproc)" '/^MemAvailable:/ {
        jobs = int($2 / 1048576)
        print jobs < 1 ? 1 : jobs < cores ? jobs : cores }' /proc/meminfo
}

# make_ucx DIR FOLDER ARGUMENT...: make in DIR/obj/FOLDER, with its output kept
make_ucx()
{
    local log=$1/make-${2//\//-}.log obj=$1/obj/$2
    shift 2
    make -C "$obj" -j"$(ucx_jobs)" "$@" > "$log" 2>&1 ||
        { grep -E -A3 'error|Error|\*\*\*' "$log" | tail -n 40
          die "the build of UCX failed: all of it is in $log"; }
}
