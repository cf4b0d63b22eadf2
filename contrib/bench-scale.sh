# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# The section "scale" of contrib/bench: 10 to 100,000 endpoints on one interface of
# dcx and of UCX's dc_mlx5, on softhca. Queue pairs are counted in its log. Sourced
# by contrib/bench.

scale_counts='10 100 1000 100000'

# scale_run BUILD TRANSPORT ENDPOINTS: prints bytes and nanoseconds to create an
# endpoint, and nanoseconds to destroy it
scale_run()
{
    "$1/src/tools/dcx-run" --soft "$1/test/bench/scale" "$2" mlx5_0:1 "$3"
}

# scale_qps BUILD TRANSPORT ENDPOINTS: prints how many queue pairs the two
# interfaces of a run have
scale_qps()
{
    rm -f "$work/hca.log"
    SOFTHCA_LOG=info SOFTHCA_LOG_FILE=$work/hca.log scale_run "$@" > /dev/null
    grep -c ' qp 0x[0-9a-f]*: created' "$work/hca.log"
}

# scale_measure BUILD ENDPOINTS: prints a line TRANSPORT QPS BYTES NS for each
# transport, medians of runs in turn
scale_measure()
{
    local tl i
    for tl in dcx dc_mlx5; do : > "$work/scale.$tl"; done
    for ((i = 0; i < rounds; i++)); do
        for tl in dcx dc_mlx5; do
            scale_run "$1" "$tl" "$2" >> "$work/scale.$tl"
        done
    done
    for tl in dcx dc_mlx5; do
        echo "$tl $(scale_qps "$1" "$tl" "$2")" \
            "$(cut -d' ' -f1 "$work/scale.$tl" | median)" \
            "$(cut -d' ' -f2 "$work/scale.$tl" | median)"
    done
}

# scale_table BUILD: prints a line for each number of endpoints
scale_table()
{
    local count
    for count in $scale_counts; do
        scale_measure "$1" "$count" > "$work/measured"
        "$top/test/bench/count-insn" "$1/test/bench/scale" "$count" \
            > "$work/counted"
        awk -v endpoints="$count" '
            NR == FNR { qps[$1] = $2; bytes[$1] = $3; ns[$1] = $4; next }
            { split($1, key, "/"); dcx[key[1]] = $2; peer[key[1]] = $3 }
            function insn(key)
            {
                return sprintf("%6.0f %6.0f %5.2f", dcx[key], peer[key],
                               dcx[key] / peer[key])
            }
            function heap(tl)
            {
                # A few endpoints fit into blocks that malloc has already.
                return (endpoints < 1000) ? "-" : sprintf("%.0f", bytes[tl])
            }
            END {
                printf "%8d  %4d %4d  %5s %5s  %5.0f %5.0f %5.2f  " \
                       "%s  %s  %s\n", endpoints, qps["dcx"], qps["dc_mlx5"],
                       heap("dcx"), heap("dc_mlx5"), ns["dcx"],
                       ns["dc_mlx5"], ns["dcx"] / ns["dc_mlx5"],
                       insn("create"), insn("message"), insn("put")
            }' "$work/measured" "$work/counted"
    done
}

section_scale()
{
    build_targets test/bench/scale
    build_release
    cat <<END
# endpoints of one interface; columns are pairs of dcx and dc_mlx5. Goals: at most
# 48 bytes (malloc's overhead included) and less than 1 us to create one; all else
# constant
# endpoints  QPs      bytes        ns to create       insn to create      \
insn of a message   insn of a put
END
    echo "# without assertions"
    LD_LIBRARY_PATH=$build/ucx-release/install/lib scale_table "$build/release"
    echo "# with assertions"
    scale_table "$build"
}
