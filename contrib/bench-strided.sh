# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# The section "strided" of contrib/bench: the cost of data in blocks to a program
# that moves them by an mkey with a layout, beside a program that packs and unpacks
# them; the cost of such an mkey; the sizes at which it is cheaper than a copy; and
# times between two processes. Sourced by contrib/bench.
#
# It uses the builds of build_release(), which have no assertions.

# strided_counts: writes lines of WHAT/HOW, instructions and UMR WQEs to
# $work/strided.insn
strided_counts()
{
    "$top/test/bench/count-insn" --dcx "$build/release/test/bench/strided" |
        sed 's|/op | |' > "$work/strided.insn"
}

# strided_times: writes lines of WHAT/HOW and nanoseconds of the application's
# thread, without the device's, to $work/strided.ns
strided_times()
{
    local i
    for ((i = 0; i < rounds; i++)); do
        "$build/release/src/tools/dcx-run" "${device[@]}" \
            "$build/release/test/bench/strided" dcx "$port"
    done > "$work/strided.runs"
    medians 1 < "$work/strided.runs" > "$work/strided.ns"
}

# strided_blocks: prints a line for each size of message and block: the cost of a
# MiB packed and unpacked, and the ratios of a handle and of blocks to it; three
# times: in instructions, in time with memory in caches, and in none
strided_blocks()
{
    awk '
        function group(v, cold, scale,   packed)
        {
            packed = v["pack" cold "/" how] + v["contiguous" cold "/" how] + \
                     v["unpack" cold "/" how]
            return sprintf(" %8.1f %6.3f %6.3f", packed * scale,
                           v["handle" cold "/" how] / packed,
                           v["key" cold "/" how] / packed)
        }
        FNR == NR { insn[$1] = $2 }
        FNR != NR { ns[$1] = $2 }
        END {
            for (l = 4096; l <= 1048576; l *= 4)
                for (b = 8; b <= 16384; b *= (b == 8) ? 8 : 4) {
                    how = (l / b) "x" b
                    if (!(("key/" how) in insn))
                        continue
                    mib = 1048576 / l
                    print sprintf("%8d %6d", l, b) \
                          group(insn, "", mib / 1e3) \
                          group(ns, "", mib / 1e3) \
                          group(ns, "_cold", mib / 1e3)
                }
        }' "$work/strided.insn" "$work/strided.ns"
}

# strided_setup: prints instructions, nanoseconds, UMR WQEs and doorbells that set an
# mkey's layout
strided_setup()
{
    awk '
        BEGIN {
            n = split("handle there empty replaced set sets", kinds, " ")
            title["handle"] = "operation on a handle"
            title["there"] = "on blocks, a key has them"
            title["empty"] = "... new, to a key without any"
            title["replaced"] = "... new, in place of others"
            title["set"] = "uct_dcx_layout_set, _test"
            title["sets"] = "... one of 16 at a time"
        }
        FNR == NR { insn[$1] = $2; umr[$1] = $3 }
        FNR != NR && /^doorbells_/ { doorbells[substr($1, 11)] = $2 }
        FNR != NR { ns[$1] = $2 }
        END {
            m = split("row1024x64:row list12x64:12 list52x64:52 " \
                      "list1024x64:1024", cases, " ")
            for (i = 1; i <= n; i++)
                for (j = 1; j <= m; j++) {
                    split(cases[j], c, ":")
                    key = kinds[i] "/" c[1]
                    if (key in insn)
                        printf "%-32s %6s %10.0f %8.0f %6.2f %9.2f\n",
                               title[kinds[i]], c[2], insn[key], ns[key],
                               umr[key], doorbells[key]
                }
        }' "$work/strided.insn" "$work/strided.ns"
}

# strided_forms: prints instructions and nanoseconds of an operation by each form
strided_forms()
{
    awk '
        function cell(v, what)
        {
            what = what "/" how
            return sprintf((what in v) ? "%7.0f" : "      -", v[what])
        }
        FNR == NR { insn[$1] = $2 }
        FNR != NR { ns[$1] = $2 }
        END {
            split("row list", shapes, " ")
            n = split("2 4 11 16 64 128 512", pieces, " ")
            for (s = 1; s <= 2; s++)
                for (i = 1; i <= n; i++)
                    for (b = 8; b <= 1024; b *= 4) {
                        how = shapes[s] pieces[i] "x" b
                        if (("copy/" how) in insn)
                            print sprintf("%-5s %6d %5d", shapes[s], pieces[i],
                                          b),
                                  cell(insn, "plain"), cell(insn, "copy"),
                                  cell(insn, "key"), cell(insn, "miss"), " ",
                                  cell(ns, "plain"), cell(ns, "copy"),
                                  cell(ns, "copy_cold"), cell(ns, "key"),
                                  cell(ns, "miss")
                    }
        }' "$work/strided.insn" "$work/strided.ns"
}

# strided_rule: writes a line for each size of message and block to
# $work/strided.rule: times between two processes
strided_rule()
{
    local i
    for ((i = 0; i < rounds; i++)); do
        "$build/release/src/tools/dcx-run" "${device[@]}" \
            "$build/release/test/bench/strided_turns" dcx "$port" 21
    done > "$work/strided.runs"
    medians 2 < "$work/strided.runs" | awk '
        { printf "%8d %6d %8.2f %8.2f  %8.2f %6.2f %6.2f %6.2f  " \
                 "%8.2f %6.2f %6.2f %6.2f\n",
                 $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12
        }' > "$work/strided.rule"
}

# strided_chart BLOCKS RULE SVG: draws both tables
strided_chart()
{
    gnuplot <<END
set terminal svg size 900,480 font "sans,12" background "white" noenhanced
set output "$3"
set label 1 "softhca, not a NIC" at screen 0.01,0.04
set multiplot layout 1,2
set logscale xy
set xrange [8:16384]
set xtics ("8" 8, "64" 64, "256" 256, "1 Ki" 1024, "4 Ki" 4096, "16 Ki" 16384)
set xlabel "bytes of a block" offset 0,0.5
set grid ytics
set key below maxrows 3
set title "the program's time by a key,\nover that with pack and unpack (not in caches)"
plot for [l in "4096 16384 65536 1048576"] \
     "< awk '\$1 == " . l . "' $1" using 2:11 with linespoints \
     title sprintf("messages of %d KiB", l / 1024), \
     0.1 with lines dashtype 2 linecolor "black" title "goal"
set title "time of 64 KiB between two processes,\nover pack, contiguous operation and unpack"
plot for [c = 6:8] "< awk '\$1 == 65536' $2" using 2:c with linespoints \
     title (c == 6) ? "put, own rows" : (c == 7) ? "put, peer's rows" : "put, both", \
     for [c = 10:12] "" using 2:c with linespoints dashtype 3 \
     title (c == 10) ? "get, own rows" : (c == 11) ? "get, peer's rows" : "get, both", \
     1 with lines dashtype 2 linecolor "black" title "the rule"
unset multiplot
END
}

section_strided()
{
    install_packages gnuplot-nox
    build_release
    (
        export LD_LIBRARY_PATH=$build/ucx-release/install/lib
        strided_counts
        strided_times
        strided_rule
    )
    echo "# 1 MiB in messages of blocks: the program's cost to pack, post and unpack it" \
        "(1,000"
    echo "# instructions, us, us with the memory in no cache), and the ratios to it of" \
        "an operation on a"
    echo "# handle and on blocks whose layout an mkey has. The device's work is not" \
        "counted."
    echo "# goal: <= 0.1 for blocks of 256 bytes and more"
    printf '%-15s %8s %6s %6s %8s %6s %6s %8s %6s %6s\n' '#  bytes  block' \
        insn handle blocks us handle blocks 'us cold' handle blocks
    strided_blocks | tee "$work/blocks"
    echo "# cost of an operation, and of setting a handle: instructions, ns, UMR WQEs and" \
        "their doorbells"
    printf '%-32s %6s %10s %8s %6s %9s\n' '# layout' pieces insn ns WQEs doorbells
    strided_setup
    echo "# cost of an operation by each form, in instructions, then in ns: pieces in" \
        "its WQE (plain),"
    echo "# copied (cold: memory in no cache), by an mkey that has the layout (key) or" \
        "gets it (new)"
    printf '%-18s %7s %7s %7s %7s   %7s %7s %7s %7s %7s\n' '# pieces of bytes' \
        plain copy key new plain copy cold key new
    strided_forms
    echo "# times between two processes: us of a program that packs, and the ratios to" \
        "it with rows on the"
    echo "# own side, on the peer's, on both; goal: none above 1"
    printf '%-15s %8s %8s  %8s %6s %6s %6s  %8s %6s %6s %6s\n' '#  bytes  block' \
        pack unpack put own peer both get own peer both
    cat "$work/strided.rule"
    strided_chart "$work/blocks" "$work/strided.rule" "$build/bench-strided.svg"
    echo "# chart: $build/bench-strided.svg"
}
