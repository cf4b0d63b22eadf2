# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# The section "tag" of contrib/bench: tagged messages of dcx and of UCX's
# dc_mlx5, with the device matching tags ("offload") and without: times in turn,
# instructions, copies by a processor, overlap with computation, and long lists
# of posted receives. Sourced by contrib/bench.

tag_columns='dcx dcx+offload dc_mlx5 dc_mlx5+offload'
declare -A tag_settings=(
    [dcx]='UCX_TLS=dcx UCX_DCX_TM_ENABLE=n'
    [dcx+offload]='UCX_TLS=dcx UCX_DCX_TM_ENABLE=y UCX_PROTO_ENABLE=n'
    [dc_mlx5]='UCX_TLS=dc_x UCX_DC_MLX5_TM_ENABLE=n'
    [dc_mlx5+offload]='UCX_TLS=dc_x UCX_DC_MLX5_TM_ENABLE=y'
)

# tag_head TITLE WIDTH: prints a line with the names of the columns
tag_head()
{
    local column
    printf '%-17s' "$1"
    for column in $tag_columns; do printf " %$2s" "$column"; done
    echo
}

# tag_times_table: merges the lines of all runs into one for each test and size, with
# the median and half of the range of each column
tag_times_table()
{
    awk '
        function sorted(key, n,   i, j, t)
        {
            for (i = 1; i <= n; i++)
                v[i] = value[key, i]
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && v[j - 1] > v[j]; j--) {
                    t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
                }
        }
        /^tag_/ {
            key = $1 " " $2
            if (!(key in runs))
                keys[++count] = key
            runs[key]++
            for (f = 3; f <= NF; f++)
                value[key, f, runs[key]] = $f
        }
        END {
            for (k = 1; k <= count; k++) {
                key = keys[k]
                n = runs[key]
                split(key, name, " ")
                printf "%-7s %9d", name[1], name[2]
                for (f = 3; f <= NF; f++) {
                    sorted(key SUBSEP f, n)
                    printf (f == 3) ? " %8.2f" : "  %6.3f +-%.3f",
                           v[int((n + 1) / 2)], (v[n] - v[1]) / 2
                }
                print ""
            }
        }'
}

# tag_times: prints a line for each test and size. dcx is measured twice: the second
# column shows the noise.
tag_times()
{
    local i
    for ((i = 0; i < rounds; i++)); do
        UCX_WARN_UNUSED_ENV_VARS=n "$run" "${device[@]}" \
            "$build/test/bench/tag_turns" 40 \
            "${tag_settings[dcx]}" "${tag_settings[dcx]}" \
            "${tag_settings[dcx+offload]}" "${tag_settings[dc_mlx5]}" \
            "${tag_settings[dc_mlx5+offload]}"
    done > "$work/turns"
    echo "# us of a message of dcx without offload, and the ratios of others to it:" \
        "medians of $rounds runs"
    echo "# and half of their range, with assertions; goal for dcx+offload: <= 1.03"
    printf '%-17s %8s %14s %14s %14s %15s\n' '# test     bytes' dcx 'dcx again' \
        dcx+offload dc_mlx5 dc_mlx5+offload
    tag_times_table < "$work/turns"
}

# tag_insn_table RELEASE SYSTEM: prints both outputs of count-insn as one table
tag_insn_table()
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
            row("receive posted", "tag_bcopy" how "/append")
            for (i = 1; i <= n; i++)
                row(ops[i], ops[i] how "/post")
            for (i = 1; i <= n; i++)
                row("progress, " ops[i] " sent", ops[i] how "/send")
            for (i = 1; i <= n; i++)
                row("progress, " ops[i] " received", ops[i] how "/recv")
            row("progress, am_short received", "am_short" how "/recv")
            row("  ... without offload", "off_am_short" how "/recv")
            row("progress, am_bcopy received", "am_bcopy" how "/recv")
            row("  ... without offload", "off_am_bcopy" how "/recv")
        }
        FNR == 1 { file++ }
        { dcx[file, $1] = $2; peer[file, $1] = $3; ratio[file, $1] = $4 }
        END {
            n = split("tag_short tag_bcopy tag_zcopy tag_rndv", ops, " ")
            printf "%-32s %-22s   %s\n", "#", "without assertions",
                   "with assertions"
            printf "%-32s %6s %8s %6s   %6s %8s %6s\n",
                   "# instructions per message",
                   "dcx", "dc_mlx5", "ratio", "dcx", "dc_mlx5", "ratio"
            group("16 in a row, then progress", "/16")
            group("progress after each", "/1")
            row("progress that finds nothing", "idle/1/call")
        }' "$1" "$2"
}

# tag_count BUILD: prints instructions with offload, and of active messages without
tag_count()
{
    local messages=${DCX_BENCH_MESSAGES:-256} count=$top/test/bench/count-insn
    "$count" "$1/test/bench/tags" "$messages" tag_short tag_bcopy tag_zcopy \
        tag_rndv am_short am_bcopy
    "$count" "$1/test/bench/insn" "$messages" am_short am_bcopy |
        sed -n 's/^am_/off_am_/p'
}

tag_insn()
{
    echo "# instructions of the transport per message; goal: ratio <= 0.70"
    (
        export LD_LIBRARY_PATH=$build/ucx-release/install/lib
        tag_count "$build/release"
    ) > "$work/tags.release"
    tag_count "$build" > "$work/tags.system"
    tag_insn_table "$work/tags.release" "$work/tags.system"
}

# tag_ns TRANSPORT WHERE: prints the median nanoseconds of a message
tag_ns() { sed -n "s|^time depth/$2 ||p" "$work/depth.$1" | median; }

# tag_depth: prints a line for each number of posted receives and place of the match
tag_depth()
{
    local tl i where release=$build/release
    (
        export LD_LIBRARY_PATH=$build/ucx-release/install/lib
        for ((i = 0; i < rounds; i++)); do
            for tl in dcx dc_mlx5; do
                "$release/src/tools/dcx-run" "${device[@]}" \
                    "$release/test/bench/tags" "$tl" "$port" 1024 depth \
                    >> "$work/depth.$tl"
            done
        done
        "$top/test/bench/count-insn" "$release/test/bench/tags" 256 depth \
            > "$work/depth.insn"
    )
    echo "# a message that matches one of many posted receives, without assertions:" \
        "instructions of both"
    echo "# sides, and time"
    printf '%-17s %8s %8s %6s   %8s %8s %6s\n' '# receives-match' 'dcx insn' \
        dc_mlx5 ratio 'dcx ns' dc_mlx5 ratio
    for where in 1 {100,1000}-{first,middle,last}; do
        awk -v where="$where" -v ns="$(tag_ns dcx "$where")" \
            -v peer_ns="$(tag_ns dc_mlx5 "$where")" '
            index($1, "depth/" where "/") == 1 { insn += $2; peer += $3 }
            END {
                printf "%-17s %8.0f %8.0f %6.2f   %8.0f %8.0f %6.2f\n", where,
                       insn, peer, insn / peer, ns, peer_ns, ns / peer_ns
            }' "$work/depth.insn"
    done
}

# tag_job PROGRAM FIELDS: runs PROGRAM with each setting, and prints its lines side
# by side: the first word, then awk's FIELDS of each setting
tag_job()
{
    local column
    for column in $tag_columns; do
        # shellcheck disable=SC2086 # lists of variables
        env ${tag_settings[$column]} "$run" "${device[@]}" mpirun -np 2 \
            --oversubscribe "$build/test/bench/$1" 2> "$work/mpi.log" ||
            { cat "$work/mpi.log" >&2; return 1; }
    done | awk "
        !(\$1 in line) { sizes[++n] = \$1; line[\$1] = sprintf(\"%-17s\", \$1) }
        { line[\$1] = line[\$1] sprintf(\" %16s\", $2) }
        END { for (i = 1; i <= n; i++) print line[sizes[i]] }"
}

section_tag()
{
    # shellcheck disable=SC2086 # a list of names
    install_packages $packages_job
    build_targets test/bench/tag_turns test/bench/insn test/bench/tags \
        test/bench/mpi_copies test/bench/mpi_overlap
    build_release
    allow_root_jobs
    tag_times
    tag_insn
    tag_depth
    echo "# copies of an expected message's data by the processors: receiver/sender"
    tag_head '# bytes' 16
    tag_job mpi_copies '$2 "/" $3'
    echo "# part of a transfer's time that computation hides, and how many of 21" \
        "messages have arrived"
    echo "# before MPI_Wait; goal: >= 0.95"
    tag_head '# bytes' 16
    tag_job mpi_overlap '$4 " " $5'
}
