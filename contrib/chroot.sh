# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# Another Debian in a folder. Sourced by bash after common.sh and ucx.sh. Only its
# own processes see its mounts, which end with them: nothing has to be unmounted,
# and the folder may be removed afterwards.

# Prints the server that this system's own packages come from
system_mirror()
{
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' \
        'Created-By: Packages' | awk '$2 == "Debian" { print $1; exit }')
    [ -n "$mirror" ] || die "apt has no package source of Debian: add one"
    echo "$mirror"
}

# apart COMMAND...: runs COMMAND as root, in mount and pid namespaces that end with
# it
apart()
{
    as_root unshare --mount --pid --fork --kill-child "$@"
}

# make_chroot SUITE DIR: installs a minimal Debian in DIR, if DIR has none yet
make_chroot()
{
    local log=$2.log mirror
    [ ! -e "$2/.dcx-chroot" ] || return 0
    [ -z "$(ls -A "$2" 2> /dev/null)" ] ||
        die "$2 has other files in it: name a new folder"
    install_packages debootstrap
    mirror=$(system_mirror) || exit
    as_root rm -rf "$2.new" # left by an interrupted installation
    mkdir -p "$2" "$2.new"
    say "installing Debian $1 in $2"
    apart debootstrap --variant=minbase "$1" "$2.new" "$mirror" \
        > "$log" 2>&1 ||
        { tail -n 5 "$log" >&2
          as_root rm -rf "$2.new"
          die "debootstrap failed: see $log"; }
    as_root touch "$2.new/.dcx-chroot"
    as_root mv -T "$2.new" "$2"
}

# enter_chroot DIR [FROM TO]... -- COMMAND...: becomes COMMAND in DIR, with FROM of
# this system mounted as TO in DIR; run by in_chroot in a process of its own
enter_chroot()
{
    local dir=$1
    shift
    mount --bind "$dir" "$dir" # a mount point, below which the others are
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

# in_chroot DIR [FROM TO]... -- COMMAND...: runs COMMAND in DIR, as root, in an empty
# environment; COMMAND may be env NAME=VALUE ...
in_chroot()
{
    apart env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        bash -euc "$(declare -f enter_chroot); enter_chroot \"\$@\"" _ "$@"
}

# in_chroot_tree DIR TREE COMMAND...: runs COMMAND in DIR, as root, in the source
# tree TREE of dcx, which is /root/dcx there. Folders of DCX_UCX_TREES are mounted.
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

# remove_chroot DIR: removes what make_chroot has installed
remove_chroot()
{
    as_root rm -rf --one-file-system "$1"
}
