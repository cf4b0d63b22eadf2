# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# The section "speed" of contrib/bench: latency, rate, bandwidth, start-up and
# idle cost beside those of UCX's tcp, cma and posix. Each figure is the median of
# $rounds runs, except the idle cost, which is of one run. Sourced by
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
    line "$name ($unit)" "$peer" "$goal"
}

# line NAME PEER GOAL: prints a line with the medians of $work/dcx and $work/peer
line()
{
    awk -v n="$1" -v p="$2" -v g="$3" \
        -v d="$(median < "$work/dcx")" -v o="$(median < "$work/peer")" \
        'BEGIN { printf "%-30s %12.2f %12.2f %-5s %6.2f   %s\n", n, d, o, p,
                 d / o, g }'
}

# in_turn NAME PEER GOAL COMMAND...: runs COMMAND, which prints a figure, with
# tls=dcx and tls=posix in turn, and prints a line with both medians
in_turn()
{
    local name=$1 peer=$2 goal=$3 i tls
    shift 3
    : > "$work/dcx"
    : > "$work/peer"
    for ((i = 0; i < rounds; i++)); do
        tls=dcx "$@" >> "$work/dcx"
        tls=posix "$@" >> "$work/peer"
    done
    line "$name" "$peer" "$goal"
}

# job ARGUMENT...: runs mpirun or oshrun on the device, with UCX_TLS=$tls,self
job()
{
    UCX_TLS=$tls,self "$run" "${device[@]}" "$@" 2> "$work/mpi.log" ||
        { cat "$work/mpi.log" >&2; return 1; }
}

# mpi_pair ARGUMENT...: prints the median of mpi_pairs for two ranks on two cores
mpi_pair()
{
    job mpirun --oversubscribe -np 2 --map-by core \
        --bind-to core:overload-allowed "$build/test/bench/mpi_pairs" "$@" |
        awk '{ print $2 }'
}

# start_ms: prints the milliseconds of a job of two ranks with few messages
start_ms()
{
    local start
    start=$(date +%s%N)
    mpi_pair 1 > "$work/start.log"
    echo $((($(date +%s%N) - start) / 1000000))
}

# copy_or TEST BYTES: with tls=dcx prints the us of perftest's TEST, else of a
# memcpy() from one shared mapping to another
copy_or()
{
    if [ "$tls" = dcx ]; then
        with_dcx perftest 3 -x dcx -d "$port" -t "$1" -D zcopy -s "$2" -n 2000
    else
        "$build/test/bench/copy" "$2"
    fi
}

# shmem_lines: prints lines of OpenSHMEM's put and fetch-and-add of 8 bytes
shmem_lines()
{
    local i tls=dcx
    : > "$work/shmem"
    for ((i = 0; i < rounds; i++)); do
        job oshrun -np 2 --oversubscribe --map-by core \
            --bind-to core:overload-allowed "$build/test/bench/shmem_small" \
            >> "$work/shmem"
    done
    shmem_line 1 'shmem put 8 B, quiet (us)' '<= 0.50'
    shmem_line 2 'shmem fetch_add (us)' '<= 0.50'
    shmem_line 3 'shmem put 8 B, static (us)' ''
    shmem_line 4 'shmem fetch_add, static (us)' ''
}

# shmem_line COLUMN NAME GOAL: prints a line with a median of $work/shmem
shmem_line()
{
    printf '%-30s %12.2f %12s %-5s %6s   %s\n' "$2" \
        "$(awk -v c="$1" '{ print $c }' "$work/shmem" | median)" '' '' '' "$3"
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

# pairs NP: prints the median of $rounds runs of the mean one-way us of 8-byte
# ping-pongs, of NP/2 pairs at once. The ranks of a pair are bound to two cores, as
# their cores change the time more than the transport does (docs/tuning.md).
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

# apart COMMAND...: runs COMMAND in a session of its own. If the kernel schedules by
# session (autogroup) and the user may change it, gives it nice -19, so that a rank
# that yields loses no time slice to other load.
apart()
{
    setsid -w sh -c '{ echo -19 > /proc/self/autogroup; } 2> /dev/null || :
        exec "$@"' sh "$@"
}

# crowd NP: prints the mean one-way us of 64-byte ping-pongs, NP/2 pairs at once on
# two cores. The kernel places the ranks: enough rounds for it to move them often.
crowd()
{
    UCX_TLS=$tls,self apart taskset -c 0,1 "$run" "${device[@]}" \
        mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
        -np "$1" "$build/test/bench/mpi_pairs" 60000 64 2> "$work/mpi.log" ||
        { cat "$work/mpi.log" >&2; return 1; }
}

section_speed()
{
    local tls one two before with cpu
    # shellcheck disable=SC2086 # a list of names
    install_packages $packages_job
    build_targets test/bench/idle test/bench/mpi_pairs test/bench/copy
    allow_root_jobs
    echo "# medians of $rounds runs; dcx and the other in turn, except '2 pairs'"
    printf '%-30s %12s %12s %-5s %6s   %s\n' '# figure' dcx other '' ratio goal
    compare 'am_lat 8 B' us '<= 0.80' 3 tcp lo -t am_lat -s 8 -n 20000
    compare 'am_bw 8 B short' 'msg/s' '>= 1.50' 9 tcp lo \
        -t am_bw -D short -s 8 -n 100000
    compare 'put_bw 1 MiB zcopy' 'MB/s' '>= 0.90' 7 cma memory \
        -t put_bw -D zcopy -s 1048576 -n 1000
    compare 'get 1 MiB zcopy' 'MB/s' '>= 0.90' 7 cma memory \
        -t get -D zcopy -s 1048576 -n 1000

    SOFTHCA_SHARE=n compare 'put_bw 1 MiB, private' 'MB/s' '>= 1.00' 7 cma \
        memory -t put_bw -D zcopy -s 1048576 -n 1000
    SOFTHCA_SHARE=n compare 'get 1 MiB, private' 'MB/s' '>= 1.00' 7 cma memory \
        -t get -D zcopy -s 1048576 -n 1000

    in_turn 'put 64 KiB, shared (us)' copy '<= 1.60' copy_or put_bw 65536
    in_turn 'get 64 KiB, shared (us)' copy '<= 1.60' copy_or get 65536
    in_turn 'put 1 MiB, shared (us)' copy '<= 1.30' copy_or put_bw 1048576
    in_turn 'get 1 MiB, shared (us)' copy '<= 1.30' copy_or get 1048576

    in_turn 'MPI 8 B (us)' posix '<= 1.70' mpi_pair 10000 8
    in_turn 'MPI 64 B (us)' posix '<= 2.50' mpi_pair 10000 64
    in_turn 'MPI 1 KiB (us)' posix '<= 2.50' mpi_pair 10000 1024
    in_turn 'MPI 8 KiB (us)' posix '<= 1.00' mpi_pair 10000 8192
    in_turn 'MPI rate, 64 B (M/s; >= 2)' posix '' mpi_pair 5000 64 64
    in_turn 'MPI job of 2 ranks (ms)' posix '+ 80 ms' start_ms
    if grep -q '^OSHCC = .' "$build/Makefile"; then
        build_targets test/bench/shmem_small
        shmem_lines
    fi

    # On a machine of two cores, compare one pair with two pairs that share them. The
    # row of UCX's shared memory shows how much of it is scheduling.
    for tls in dcx posix,self; do
        one=$(UCX_TLS=$tls pairs 2)
        two=$(UCX_TLS=$tls pairs 4)
        awk -v t="$tls" -v a="$one" -v b="$two" 'BEGIN {
            printf "%-30s %12.2f %12.2f %-5s %6.2f   %s\n", "2 pairs, " t " (us)",
                   b, a, "1pair", b / a, (t == "dcx") ? "<= 4.00" : "" }'
    done

    in_turn '4 ranks on 2 cores, 64 B (us)' posix '<= 2.50' crowd 4
    in_turn '8 ranks on 2 cores, 64 B (us)' posix '<= 2.50' crowd 8

    read -r before with cpu < <("$run" "${device[@]}" "$build/test/bench/idle" 3)
    printf '%-30s %12d %12s %-5s %6s   %s\n' 'one context, more PSS (KiB)' \
        $((with - before)) '' '' '' '< 5120'
    printf '%-30s %12.3f %12s %-5s %6s   %s\n' 'CPU of 3 s idle (ms)' \
        "$cpu" '' '' '' '0'
}
