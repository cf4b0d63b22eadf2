# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# The section "insn" of contrib/bench: instructions per operation of dcx and of
# UCX's dc_mlx5, counted on softhca by test/bench/count-insn, once with the UCX of
# the system and once with the same UCX built in release; and those of the device
# for a message. Sourced by contrib/bench.

# insn_table RELEASE SYSTEM: prints both outputs of count-insn as one table
insn_table()
{
    awk '
        function row(title, key)
        {
            printf "%-32s %6.1f %8.1f %6.2f   %6.1f %8.1f %6.2f\n", title,
                   dcx[1, key], peer[1, key], ratio[1, key],
                   dcx[2, key], peer[2, key], ratio[2, key]
        }
        function group(title, how)
        {
            print "# " title
            for (i = 1; i <= n; i++)
                row(ops[i], ops[i] how "/post")
            for (i = 1; i <= n; i++)
                row("progress, " ops[i] " sent", ops[i] how "/send")
            row("progress, 16 bytes received", "am_short" how "/recv")
            row("progress, 256 bytes received", "am_bcopy" how "/recv")
        }
        FNR == 1 { file++ }
        { dcx[file, $1] = $2; peer[file, $1] = $3; ratio[file, $1] = $4 }
        END {
            n = split("am_short am_bcopy_small am_bcopy am_zcopy " \
                      "put_short put_bcopy_small put_bcopy put_zcopy " \
                      "get_bcopy get_zcopy atomic_post", ops, " ")
            printf "%-32s %-22s   %s\n", "#", "without assertions",
                   "with assertions"
            printf "%-32s %6s %8s %6s   %6s %8s %6s\n",
                   "# instructions per operation",
                   "dcx", "dc_mlx5", "ratio", "dcx", "dc_mlx5", "ratio"
            group("16 in a row, then progress", "/16")
            group("progress after each", "/1")
            row("progress that finds nothing", "idle/1/call")
        }' "$1" "$2"
}

# device_table OUTPUT: prints the output of count-insn --device as a table
device_table()
{
    awk '
        { count[$1, $2] = $3 }
        function row(room)
        {
            printf "%-32s", room
            for (i = 1; i <= n; i++)
                printf " %8.1f", count[ops[i], room]
            print ""
        }
        END {
            n = split("am_short/1 am_bcopy_small/1 am_bcopy_long/1", ops, " ")
            printf "%-32s %8s %8s %8s\n",
                   "# instructions of the device", "8 bytes", "64", "1024"
            m = split("all doorbell exec wqe wire resp obj fabric locks libc",
                      rooms, " ")
            for (r = 1; r <= m; r++)
                row(rooms[r])
        }' "$1"
}

section_insn()
{
    local count=$top/test/bench/count-insn messages=${DCX_BENCH_MESSAGES:-1024}
    build_targets test/bench/insn
    build_release
    echo "# instructions per operation; goal: ratio <= 0.70, none above 1"
    echo "# without assertions: UCX built in release, both with $release_cflags;"
    echo "# with assertions: the system's UCX, and dcx built for it"
    LD_LIBRARY_PATH=$build/ucx-release/install/lib \
        "$count" "$build/release/test/bench/insn" "$messages" > "$work/insn.release"
    "$count" "$build/test/bench/insn" "$messages" > "$work/insn.system"
    insn_table "$work/insn.release" "$work/insn.system"
    echo "# of the device for a message, by folder: from the store, without its" \
        "jump to the device,"
    echo "# to the last completion; goal: all of 8 bytes <= 1400"
    "$count" --device "$build/test/bench/insn" "$messages" am_short \
        am_bcopy_small am_bcopy_long > "$work/insn.device"
    device_table "$work/insn.device"
}
