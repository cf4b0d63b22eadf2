# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# The section "speed" of contrib/bench: latency, rate, bandwidth and idle cost
# beside those of UCX's tcp and cma, medians of $rounds runs in turn. Sourced by
# contrib/bench.

# perftest COLUMN ARGUMENT...: one run of ucx_perftest over two processes;
# prints a column of its last line (3 median us, 7 MB/s, 9 messages/s)
perftest()
{
    local column=$1 port pid
    shift
    port=$(free_port)
    ucx_perftest -p "$port" "$@" > "$work/server.log" 2>&1 &
    pid=$!
    wait_listening "$port" "$pid" ||
        { cat "$work/server.log" >&2; return 1; }
    ucx_perftest 127.0.0.1 -p "$port" "$@" > "$work/client.log" 2>&1 ||
        { cat "$work/client.log" >&2; return 1; }
    wait "$pid" || true
    awk -v c="$column" '/^Final:/ { print $c }' "$work/client.log"
}

# compare NAME UNIT GOAL COLUMN PEER DEVICE ARGUMENT...: runs dcx and PEER in turn,
# and prints a line with both medians
compare()
{
    local name=$1 unit=$2 goal=$3 column=$4 peer=$5 peer_device=$6 i
    shift 6
    : > "$work/dcx"
    : > "$work/peer"
    for ((i = 0; i < rounds; i++)); do
        with_dcx perftest "$column" -x dcx -d "$port" "$@" >> "$work/dcx"
        perftest "$column" -x "$peer" -d "$peer_device" "$@" >> "$work/peer"
    done
    awk -v n="$name" -v u="$unit" -v g="$goal" -v p="$peer" \
        -v d="$(median < "$work/dcx")" -v o="$(median < "$work/peer")" \
        'BEGIN { printf "%-30s %12.2f %12.2f %-5s %6.2f   %s\n", \
                 n " (" u ")", d, o, p, d / o, g }'
}

# with_dcx COMMAND...: runs COMMAND with the environment that dcx-run sets
with_dcx()
{
    (
        while IFS= read -rd '' pair; do
            export "${pair?}"
        done < <("$run" "${device[@]}" env -0)
        "$@"
    )
}

# pairs NP: prints the one-way us of 8-byte ping-pongs, of NP/2 pairs at once. The
# ranks of a pair are bound to two cores, as their cores change the time more than
# the transport does (docs/tuning.md).
pairs()
{
    local i
    for ((i = 0; i < rounds; i++)); do
        "$run" "${device[@]}" mpirun --oversubscribe -np "$1" \
            --map-by core --bind-to core:overload-allowed \
            "$build/test/bench/mpi_pairs" 3000 2> "$work/mpi.log" ||
            { cat "$work/mpi.log" >&2; return 1; }
    done | median
}

# apart COMMAND...: runs COMMAND in a session of its own, with most of the cores'
# time where sessions have a share each and this user may change it. A rank that
# yields would give other load a time slice.
apart()
{
    setsid -w sh -c '{ echo -19 > /proc/self/autogroup; } 2> /dev/null || :
        exec "$@"' sh "$@"
}

# crowd NP: runs dcx and posix in turn, and prints a line with both medians: one-way
# us of 64-byte ping-pongs, NP/2 pairs at once on two cores. The kernel places the
# ranks.
crowd()
{
    local i tls
    : > "$work/dcx"
    : > "$work/posix"
    for ((i = 0; i < rounds; i++)); do
        for tls in dcx posix; do
            UCX_TLS=$tls,self apart taskset -c 0,1 "$run" "${device[@]}" \
                mpirun --oversubscribe --bind-to none \
                --mca mpi_yield_when_idle 1 -np "$1" \
                "$build/test/bench/mpi_pairs" 3000 64 \
                >> "$work/$tls" 2> "$work/mpi.log" ||
                { cat "$work/mpi.log" >&2; return 1; }
        done
    done
    awk -v n="$1" -v d="$(median < "$work/dcx")" \
        -v o="$(median < "$work/posix")" 'BEGIN {
            printf "%-30s %12.2f %12.2f %-5s %6.2f   %s\n",
                   n " ranks on 2 cores, 64 B (us)", d, o, "posix", d / o,
                   "<= 2.50" }'
}

section_speed()
{
    local tls one two before with cpu
    # shellcheck disable=SC2086 # a list of names
    install_packages $packages_job
    build_targets test/bench/idle test/bench/mpi_pairs
    allow_root_jobs
    echo "# medians of $rounds runs in turn"
    printf '%-30s %12s %12s %-5s %6s   %s\n' '# figure' dcx other '' ratio goal
    compare 'am_lat 8 B' us '<= 0.80' 3 tcp lo -t am_lat -s 8 -n 20000
    compare 'am_bw 8 B short' 'msg/s' '>= 1.50' 9 tcp lo \
        -t am_bw -D short -s 8 -n 100000
    compare 'put_bw 1 MiB zcopy' 'MB/s' '>= 0.90' 7 cma memory \
        -t put_bw -D zcopy -s 1048576 -n 1000
    compare 'get 1 MiB zcopy' 'MB/s' '>= 0.90' 7 cma memory \
        -t get -D zcopy -s 1048576 -n 1000

    # Compare one pair with two pairs that share the cores. The row of UCX's shared
    # memory shows the share of the scheduler.
    for tls in dcx posix,self; do
        one=$(UCX_TLS=$tls pairs 2)
        two=$(UCX_TLS=$tls pairs 4)
        awk -v t="$tls" -v a="$one" -v b="$two" 'BEGIN {
            printf "%-30s %12.2f %12.2f %-5s %6.2f   %s\n", "2 pairs, " t " (us)",
                   b, a, "1pair", b / a, (t == "dcx") ? "<= 4.00" : "" }'
    done

    crowd 4
    crowd 8

    read -r before with cpu < <("$run" "${device[@]}" "$build/test/bench/idle" 3)
    printf '%-30s %12d %12s %-5s %6s   %s\n' 'one context, more PSS (KiB)' \
        $((with - before)) '' '' '' '< 5120'
    printf '%-30s %12.3f %12s %-5s %6s   %s\n' 'CPU of 3 s idle (ms)' \
        "$cpu" '' '' '' '0'
}
