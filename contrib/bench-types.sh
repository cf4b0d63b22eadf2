# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# The section "types" of contrib/bench: messages of MPI's derived types, zero-copy,
# packed by the library (UCX_DCX_TYPES=n) and packed by the program, beside
# contiguous ones: times in turn, in memory that the software device shares and in
# memory that it does not, copies by a processor, a 3-D halo, and instructions of
# short messages; for Open MPI, and for MPICH if it is installed; and OpenSHMEM's
# strided operations. Prints the lines of tables that are furthest from a goal, or
# all (DCX_BENCH_FULL=y). Sourced by contrib/bench.

types_ms=$((rounds > 1 ? 40 : 20)) # of a run, for each layout

# types_mpis: prints the MPIs that programs are built for
types_mpis()
{
    echo openmpi
    ! grep -q '^MPICH = .' "$build/Makefile" || echo mpich
}

# types_programs SUFFIX: prints the programs of an MPI, by its suffix of their names
types_programs() { echo test/bench/mpi_{types,halo,type_copies}"$1"; }

# types_job MPI "NAME=VALUE..."... PROGRAM ARGUMENT...: runs a job with two ranks for
# each of these settings. MPICH uses UCX within a node only with MPIR_CVAR_NOLOCAL.
types_job()
{
    local mpi=$1 set groups=() line=() group
    shift
    while [[ $1 == *=* ]]; do
        groups+=("$1")
        shift
    done
    for group in "${groups[@]}"; do
        [ ${#line[@]} = 0 ] || line+=(:)
        line+=(-np 2)
        for set in $group; do
            case $mpi in
            openmpi) line+=(-x "$set") ;;
            mpich) line+=(-env "${set%%=*}" "${set#*=}") ;;
            esac
        done
        line+=("$build/test/bench/$1$(types_suffix "$mpi")" "${@:2}")
    done
    case $mpi in
    openmpi) line=(mpirun --oversubscribe --bind-to none "${line[@]}") ;;
    mpich) line=(mpirun.mpich "${line[@]}") ;;
    esac
    UCX_TLS=dcx UCX_WARN_UNUSED_ENV_VARS=n MPIR_CVAR_NOLOCAL=1 \
        "$run" "${device[@]}" "${line[@]}" 2> "$work/types.log" ||
        { tail -n 20 "$work/types.log" >&2; return 1; }
}

types_suffix() { [ "$1" = openmpi ] || echo "_$1"; }

# types_times MPI PROGRAM ARGUMENT...: prints the lines of the program, with medians
# of the runs
types_times()
{
    local i
    for ((i = 0; i < rounds; i++)); do
        types_job "$1" UCX_DCX_TYPES=n UCX_DCX_TYPES=try "${@:2}"
    done | medians 4 | awk '{
        printf "%-13s %8d %6d %-4s %9.2f", $1, $2, $3, $4, $5
        for (f = 6; f <= NF; f++)
            printf " %6s", $f
        print ""
    }'
}

types_head()
{
    printf '%-13s %8s %6s %-4s %9s %6s %6s %6s %6s %6s %6s %6s %6s\n' \
        '# layout' bytes block side us again off packed views /off /packed cpu \
        /packed
}

# types_goals TABLE: prints for each goal how many lines meet it, and the five that
# are furthest from it; with DCX_BENCH_FULL=y all lines before these
types_goals()
{
    types_head
    awk -v is_full="${DCX_BENCH_FULL:-n}" '
        function judge(goal, value, most, i)
        {
            met[goal] += value <= most
            # the worst first
            for (i = ++all[goal]; i > 1 && values[goal, i - 1] < value; i--) {
                values[goal, i] = values[goal, i - 1]
                lines[goal, i] = lines[goal, i - 1]
            }
            values[goal, i] = value
            lines[goal, i] = $0
        }
        function report(goal, title, i, word)
        {
            if (!all[goal])
                return
            split(lines[goal, 1], word)
            printf "# goal %s: met in %d of %d, worst %.3f (%s of %s in %s, %s)\n",
                   title, met[goal], all[goal], values[goal, 1], word[1],
                   word[2], word[3], word[4]
            for (i = 1; is_full != "y" && i <= 5 && i <= all[goal]; i++)
                print lines[goal, i]
        }
        is_full == "y" { print }
        /^#/ || $10 == "-" { next }
        { judge("any", $10, 1.03) }
        $1 != "halo" && $2 >= 65536 && $3 >= 256 { judge("large", $11, 0.9999) }
        END {
            report("any", "views / off <= 1.03 everywhere")
            report("large", "views / packed < 1 from 64 KiB in blocks of 256 B on")
        }' "$1"
}

# types_copies MPI: prints the copies without views and with them, side by side, of
# the first five layouts that are copied with views, or of all layouts
# (DCX_BENCH_FULL=y); and the loader's report
types_copies()
{
    types_job "$1" UCX_DCX_TYPES=n mpi_type_copies large > "$work/copies.off"
    types_job "$1" "UCX_DCX_TYPES=try UCX_DCX_TYPES_REPORT=y" \
        mpi_type_copies large > "$work/copies.views"
    paste "$work/copies.off" "$work/copies.views" |
        awk -v is_full="${DCX_BENCH_FULL:-n}" '
            $9 + $10 == 0 && $4 > 0 { none++ }
            is_full == "y" || ($9 + $10 > 0 && shown++ < 5) {
                printf "%-13s %8d %6d  %5s/%s  %5s/%s\n", $1, $2, $3, $4, $5, $9, $10
            }
            END {
                printf "# goal no copy on either side: met in %d of %d\n", none, NR
            }'
    grep -o 'dcx types: rank 0: .*' "$work/types.log" ||
        echo "# the loader reports nothing: no message was sent without packing"
}

# types_compare TITLE MPI PROGRAM MILLISECONDS ARGUMENT...: measures in memory of both
# kinds, and prints the goals
types_compare()
{
    local memory
    for memory in fresh touched; do
        echo "# $2: $1, in $memory memory"
        types_times "${@:2:3}" $memory "${@:5}" > "$work/table"
        types_goals "$work/table"
    done
}

types_mpi()
{
    echo "# $1: us of a contiguous message, and ratios to it: the same by the second" \
        "pair (again: noise),"
    echo "# a type without views (off), packed by the program (packed), a type with" \
        "views (views); views /off"
    echo "# and /packed; then the same two for the processors' time of both sides," \
        "without the device's."
    echo "# Fresh memory was exchanged once before the program wrote to it: softhca" \
        "shares its pages."
    echo "# Touched memory was written before: softhca moves it by system calls."
    types_compare "blocks of any size" "$1" mpi_types "$types_ms" vector far indexed
    types_compare "what applications exchange" "$1" mpi_types "$types_ms" ddt
    types_compare "a 3-D halo of six faces: bytes of a face, cells in a dimension" \
        "$1" mpi_halo $((5 * types_ms))
    echo "# $1: copies by the processors of receiver/sender, without views, with views"
    types_copies "$1"
}

# types_shmem: measures OpenSHMEM's strided operations with the loader
types_shmem()
{
    build_targets test/bench/shmem_strided
    echo "# OpenSHMEM's strided operations: elements, strides there/here, us for each by" \
        "the library and"
    echo "# by the loader, and the ratio"
    UCX_TLS=dcx UCX_WARN_UNUSED_ENV_VARS=n "$run" "${device[@]}" \
        oshrun -np 2 --oversubscribe "$build/test/bench/shmem_strided" |
        awk -v is_full="${DCX_BENCH_FULL:-n}" 'is_full == "y" || $2 == 1000'
}

section_types()
{
    local mpi
    # shellcheck disable=SC2086 # a list of names
    install_packages $packages_job
    allow_root_jobs
    for mpi in $(types_mpis); do
        # shellcheck disable=SC2046 # a list of names
        build_targets $(types_programs "$(types_suffix "$mpi")")
        types_mpi "$mpi"
    done
    build_targets test/bench/mpi_small
    echo "# instructions of calls for short messages, contiguous and of a type in" \
        "blocks: with views,"
    echo "# without (UCX_DCX_TYPES=n)${DCX_BENCH_BEFORE:+, and by $DCX_BENCH_BEFORE}"
    # shellcheck disable=SC2086 # a list of names
    "$top/test/bench/count-types" "$build/test/bench/mpi_small" \
        ${DCX_BENCH_BEFORE:-}
    ! grep -q '^OSHCC = .' "$build/Makefile" || types_shmem
}
