# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# The section "jobs" of contrib/bench: memory and queue pairs of a rank in MPI
# jobs of 2 to 32 ranks, each of which sends to all others, over dcx, dc_mlx5 and
# rc_mlx5 on softhca. Sourced by contrib/bench.
#
# The memory of a rank has two terms. The first is the private pages that it
# has written and its part of registered pages; the base is a rank that only
# opens the device. The second is its part of the device's shared segment, which
# holds the rings that libmlx5 allocates; the base is a segment without queues.
# Each base is subtracted.

jobs_ranks='2 4 8 16 32'
# NAME:UCX_TLS:RECEIVE-BUFFERS; 0 stands for the transport's default
jobs_transports='dcx:dcx:0 dc_mlx5:dc_x:0 rc_mlx5:rc_x:0 dc_mlx5/1024:dc_x:1024'

# jobs_run RANKS UCX_TLS [ARGUMENT]: prints footprint lines; keeps the device's log
jobs_run()
{
    rm -f "$work/hca.log"
    UCX_TLS=$2 SOFTHCA_LOG=info SOFTHCA_LOG_FILE=$work/hca.log \
        "$run" --soft mpirun -np "$1" --oversubscribe \
        "$build/test/bench/mpi_footprint" "${@:3}" 2> "$work/mpi.log" ||
        { cat "$work/mpi.log" >&2; return 1; }
}

# jobs_qps: prints the greatest number of queue pairs that a rank had at a time
jobs_qps()
{
    awk '/ qp 0x[0-9a-f]*: created/ { if (++n[$1] > most) most = n[$1] }
         / qp 0x[0-9a-f]*: destroyed/ { n[$1]-- }
         END { print most }' "$work/hca.log"
}

# jobs_measure RANKS UCX_TLS BUFFERS PRIVATE DEVICE: prints MiB and queue pairs of a
# rank. PRIVATE and DEVICE are the KiB of a rank without a transport and of the
# segment without queues.
jobs_measure()
{
    (
        [ "$3" = 0 ] || export UCX_DC_MLX5_RX_QUEUE_LEN=$3
        jobs_run "$1" "$2,self" > "$work/footprints"
    )
    awk -v private="$4" -v device="$5" -v qps="$(jobs_qps)" '
        /^footprint/ { n++; sum += $2 + $3 }
        END { printf "%.1f %d\n", ((sum - device) / n - private) / 1024, qps
        }' "$work/footprints"
}

# jobs_table: prints a line for each number of ranks: MiB of all transports, then QPs
jobs_table()
{
    local private device ranks transport name tls buffers mib qps mibs all_qps
    read -r _ private device < <(jobs_run 1 self device)
    for ranks in $jobs_ranks; do
        mibs=
        all_qps=
        for transport in $jobs_transports; do
            IFS=: read -r name tls buffers <<< "$transport"
            read -r mib qps < <(jobs_measure "$ranks" "$tls" "$buffers" \
                "$private" "$device")
            mibs+=$(printf ' %12s' "$mib")
            all_qps+=$(printf ' %12s' "$qps")
        done
        printf '%7s %s  %s\n' "$ranks" "$mibs" "$all_qps"
    done
}

# jobs_windows UCX_TLS: prints the seconds that 4 ranks take to make and to free
# 1,000 windows
jobs_windows()
{
    UCX_TLS=$1 OMPI_MCA_osc=ucx "$run" --soft mpirun -np 4 --oversubscribe \
        "$build/test/bench/mpi_windows" 1000 2> "$work/mpi.log" ||
        { cat "$work/mpi.log" >&2; return 1; }
}

# jobs_windows_lines: prints lines NAME MAKE FREE of dcx and posix, in turn
jobs_windows_lines()
{
    local round
    for ((round = 0; round < rounds; round++)); do
        jobs_windows dcx | sed -n 's/^windows [0-9]*/dcx/p'
        jobs_windows posix,self | sed -n 's/^windows [0-9]*/posix/p'
    done
}

# jobs_chart TABLE SVG: draws the table
jobs_chart()
{
    gnuplot <<END
set terminal svg size 900,400 font "sans,12" background "white" noenhanced
set output "$2"
set label 1 "softhca, not a NIC" at screen 0.01,0.04
set multiplot layout 1,2
set logscale x 2
set xtics (2, 4, 8, 16, 32)
set xlabel "ranks" offset 0,0.5
set yrange [0:*]
set grid ytics
set key below maxrows 2
set title "memory of a rank for the transport (MiB)"
plot "$1" using 1:2 with linespoints linetype 1 title "dcx", \
     "" using 1:3 with linespoints linetype 2 title "dc_mlx5", \
     "" using 1:4 with linespoints linetype 3 title "rc_mlx5", \
     "" using 1:5 with linespoints linetype 4 title "dc_mlx5, 1024 buffers"
set title "queue pairs of a rank"
plot "$1" using 1:6 with linespoints linetype 1 title "dcx", \
     "" using 1:7 with linespoints linetype 2 title "dc_mlx5", \
     "" using 1:8 with linespoints linetype 3 title "rc_mlx5"
unset multiplot
END
}

section_jobs()
{
    # shellcheck disable=SC2086 # a list of names
    install_packages $packages_job gnuplot-nox
    build_targets test/bench/mpi_footprint test/bench/mpi_windows
    allow_root_jobs
    echo "# MiB and queue pairs that a rank needs for its transport, in an MPI job in" \
        "which each"
    echo "# rank sends to all others; dc_mlx5/1024: with as many receive buffers as dcx"
    {
        printf '# ranks '
        printf ' %12s' dcx dc_mlx5 rc_mlx5 dc_mlx5/1024
        printf '  '
        printf ' %12s' dcx dc_mlx5 rc_mlx5 dc_mlx5/1024
        echo
        jobs_table
    } | tee "$build/bench-jobs.txt"
    jobs_chart "$build/bench-jobs.txt" "$build/bench-jobs.svg"
    echo "# chart: $build/bench-jobs.svg"
    echo "# seconds to make and to free 1,000 windows of 4 KiB on 4 ranks;"
    echo "# goal: at most 2.5 times as long as shared memory (posix)"
    jobs_windows_lines | medians 1
}
