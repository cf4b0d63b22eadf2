# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# The section "pcie" of contrib/bench: writes, reads and bytes that a NIC would move
# over PCIe for an operation of dcx and of UCX's dc_mlx5, counted by softhca
# (test/bench/count-pcie). Sourced by contrib/bench.

# pcie_table FILE: prints the output of count-pcie as one table: a line for each
# operation, with dcx/dc_mlx5 in each cell
pcie_table()
{
    awk '
        function cell(op, kind, part)
        {
            if (!((op, kind) in ours))
                return "0"
            split(ours[op, kind], a)
            split(theirs[op, kind], b)
            return short(a[part]) "/" short(b[part])
        }
        function short(value)
        {
            value = sprintf("%.2f", value)
            sub(/\.?0+$/, "", value)
            return value
        }
        function line(title, op, kinds,    i, n, list, pair)
        {
            printf "%-24s", title
            n = split(kinds, list, " ")
            for (i = 1; i <= n; i++) {
                split(list[i], pair, ":")
                printf " %13s", cell(op, pair[1], pair[2])
            }
            print ""
        }
        function group(title, how,    i)
        {
            print "# sender, " title
            for (i = 1; i <= n; i++)
                line(ops[i], ops[i] how, sender)
        }
        function receiver(how,    i)
        {
            for (i = 1; i <= n; i++)
                line(ops[i], ops[i] how, target)
        }
        {
            ours[$1, $2]   = $3 " " $4 " " $5
            theirs[$1, $2] = $6 " " $7 " " $8
        }
        END {
            n = split("am_short am_bcopy_small am_bcopy am_zcopy " \
                      "put_short put_bcopy_small put_bcopy put_zcopy " \
                      "get_bcopy get_zcopy atomic_post", ops, " ")
            sender = "mmio_write:1 mmio_write:2 wqe_read:3 wqe_wait:1 " \
                     "gather_read:3 result_write:3 send_cqe_write:3"
            target = "recv_wqe_read:3 recv_dbrec_read:1 remote_read:3 " \
                     "payload_write:3 recv_cqe_write:3"
            printf "%-24s %13s %13s %13s %13s %13s %13s %13s\n", "# dcx/dc_mlx5",
                   "mmio", "mmio bytes", "wqe lines", "wqe waits",
                   "data lines", "result lines", "cqes"
            group("progress after each", "/1")
            group("16 in a row, then progress", "/16")
            printf "%-24s %13s %13s %13s %13s %13s\n", "# receiver",
                   "wqe lines", "dbrecs", "read lines", "data lines", "cqes"
            receiver("/1")
        }' "$1"
}

section_pcie()
{
    build_targets test/bench/insn
    echo "# transfers over PCIe per operation, dcx/dc_mlx5, each in its default mode;"
    echo "# goal: mmio and data lines together no more than dc_mlx5"
    "$top/test/bench/count-pcie" "$build/test/bench/insn" \
        "${DCX_BENCH_MESSAGES:-1024}" > "$work/pcie"
    pcie_table "$work/pcie"
}
