# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# Another Debian in a folder. Sourced by bash after common.sh and ucx.sh. Only
# its own processes see the mounts in it, which end with them: nothing has to be
# unmounted, and the folder may be removed afterwards.

# The server that this system's own packages come from
system_mirror()
{
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' \
        'Created-By: Packages' | awk '$2 == "Debian" { print $1; exit }')
    [ -n "$mirror" ] || die "no source of this system's packages is Debian's"
    echo "$mirror"
}

# apart COMMAND...: as root, with mounts and processes of its own; all of them end
# with it
apart()
{
    as_root unshare --mount --pid --fork --kill-child "$@"
}

# make_chroot SUITE DIR: the least Debian that there is, if DIR has none yet
make_chroot()
{
    local log=$2.log mirror
    [ ! -e "$2/.dcx-chroot" ] || return 0
    [ -z "$(ls -A "$2" 2> /dev/null)" ] ||
        die "$2 is in use for something else: name a new folder"
    install_packages debootstrap
    mirror=$(system_mirror) || exit
    as_root rm -rf "$2.new" # of a try that did not come to its end
    mkdir -p "$2" "$2.new"
    say "installing Debian $1 in $2"
    apart debootstrap --variant=minbase "$1" "$2.new" "$mirror" \
        > "$log" 2>&1 ||
        { tail -n 5 "$log" >&2
          as_root rm -rf "$2.new"
          die "debootstrap failed: $log"; }
    as_root touch "$2.new/.dcx-chroot"
    as_root mv -T "$2.new" "$2"
}

# Becomes ARGUMENT... in DIR, with FROM of this system seen as TO, which is below
# DIR; run by in_chroot in a process of its own
enter_chroot()
{
    local dir=$1
    shift
    mount --bind "$dir" "$dir" # a place of its own for mounts to be below
    mount -t proc proc "$dir/proc"
    mount -t sysfs -o ro sysfs "$dir/sys"
    mount --rbind /dev "$dir/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$dir/dev/shm"
    cp -L /etc/resolv.conf "$dir/etc/resolv.conf"
    while [ "$1" != -- ]; do
        mkdir -p "$dir$2"
        mount --bind "$1" "$dir$2"
        shift 2
    done
    shift
    exec chroot "$dir" "$@"
}

# in_chroot DIR [FROM TO]... -- COMMAND...: as root, in an empty environment but
# for what COMMAND (env NAME=VALUE ...) sets
in_chroot()
{
    apart env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        bash -euc "$(declare -f enter_chroot); enter_chroot \"\$@\"" _ "$@"
}

# in_chroot_tree DIR TREE COMMAND...: the same in a source tree of dcx, which is
# /root/dcx there, and finds the source trees of UCX that this one finds
in_chroot_tree()
{
    local dir=$1 binds=("$2" /root/dcx) trees='' folder folders
    shift 2
    IFS=: read -ra folders <<< "${DCX_UCX_TREES:-}"
    for folder in "${folders[@]}"; do
        [ -d "$folder" ] || continue
        binds+=("$folder" "/root/trees/${#binds[@]}")
        trees+=:${binds[-1]}
    done
    in_chroot "$dir" "${binds[@]}" -- env DEBIAN_FRONTEND=noninteractive \
        ${trees:+"DCX_UCX_TREES=${trees#:}"} \
        bash -c 'cd /root/dcx && exec "$@"' _ "$@"
}

# remove_chroot DIR
remove_chroot()
{
    as_root rm -rf --one-file-system "$1"
}
