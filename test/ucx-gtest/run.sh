# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# Runs UCX's own tests. Sourced by test/run-tests. The gtest program is built by
# contrib/ucx-gtest, and runs for dcx, and for dc_mlx5 as a check of the device.
# Each of its cases counts as a test "ucx/TRANSPORT/CLASS.NAME/N".
#
# runs.list has the runs and their environments: cases in more than one run have
# the name "ucx/TRANSPORT+RUN/CLASS.NAME/N" in the others.
#
# The cases of a class run in one process on a device of its own; as many
# classes run at a time as there are cores. A case that crashes or hangs has
# failed; the class continues after it in a new process, and no case runs twice.
#
# expected.list has the cases that may skip or fail, and those that only a full
# run has. Without --full each case runs with one of its parameters; these
# rotate, so that all of them occur. The first tier has the cases of dcx with its
# defaults.

# seconds for a case, checked by gtest itself, and for its process
ucx_case_limit=300
ucx_process_limit=1500

# Runs UCX with its defaults, on softhca. Its tests count warnings, and expect
# none when an endpoint fails: UCX_DCX_FAILURE.
ucx_gtest()
{
    dcx-run --soft env -u UCX_TLS UCX_HANDLE_ERRORS=bt UCX_LOG_LEVEL=warn \
        UCX_DCX_FAILURE=diag UCX_WARN_UNUSED_ENV_VARS=n \
        DCX_TEST_GPU_TYPES="${DCX_TEST_GPU_TYPES:-none}" \
        timeout -k 5 "$ucx_process_limit" \
        "$ucx_gtest_program" -s "$ucx_seed" -t "$ucx_case_limit" "$@" \
        < /dev/null
}

# ucx_rows FILE: prints it without comments
ucx_rows()
{
    sed -e '/^[[:space:]]*\(#.*\)\{0,1\}$/d' \
        "$DCX_SOURCE_DIR/test/ucx-gtest/$1"
}

# is_of_ucx MINOR WHAT: succeeds if the row is for UCX 1.MINOR; WHAT may end in
# @FIRST-LAST, either of them optional, or in @VERSION of the Debian package
is_of_ucx()
{
    local first last
    [[ $2 == *@* ]] || return 0
    first=${2#*@}
    if [[ $first == *.* ]]; then
        [ "$first" = "$ucx_package" ]
        return
    fi
    last=${first#*-}
    first=${first%-*}
    (($1 >= ${first:-0} && $1 <= ${last:-$1}))
}

# Reads expected.list into ucx_what, ucx_pattern and ucx_why; ucx_met counts the
# cases that needed a row. Sets ucx_minor, of UCX 1.MINOR, and ucx_package,
# empty if UCX is not from a package.
read_ucx_expected()
{
    local line what
    ucx_minor=$(ucx_info -v | sed -n 's/^# *\(Library v\|V\)ersion:* *1\.\([0-9]*\).*/\2/p')
    ucx_package=
    [ "$(command -v ucx_info)" != /usr/bin/ucx_info ] ||
        ucx_package=$(dpkg-query -W -f '${source:Version}' libucx0) || true
    ucx_what=() ucx_pattern=() ucx_why=() ucx_met=()
    while read -r -u 3 line; do
        what=${line%% | *}
        is_of_ucx "$ucx_minor" "$what" || continue
        ucx_what+=("${what%@*}")
        line=${line#* | }
        ucx_pattern+=("${line%% | *}")
        ucx_why+=("${line#* | }")
        ucx_met+=(0)
    done 3< <(ucx_rows expected.list)
}

# ucx_row WHAT TEST: sets row to the row of expected.list that says WHAT of
# TEST, for its run or for all runs
ucx_row()
{
    local any_run=${2%%[+/]*}/${2#*/}
    for ((row = 0; row < ${#ucx_what[@]}; row++)); do
        # shellcheck disable=SC2053 # a glob is meant
        [[ ${ucx_what[row]} == "$1" && ($2 == ${ucx_pattern[row]} ||
            $any_run == ${ucx_pattern[row]}) ]] && return
    done
    return 1
}

# list_ucx_run RUN FILTER VARIABLE...: prints the names of its cases, one per
# line, those of a class together
list_ucx_run()
{
    local run=$1 filter=$2
    shift 2
    # shellcheck disable=SC2163 # assignments are meant
    (export "$@" SOFTHCA_DIR="$run_dir/ucx-list"
        ucx_gtest --gtest_list_tests --gtest_filter="$filter") |
        awk -v run="${run#-}" '
            /^[^ \[]+\.([ ]|$)/ { class = $1; sub(/\//, run "/", class) }
            /^  [^ ]/ { print class $1 }'
}

# Prints the names of the cases of all runs.
list_ucx_cases()
{
    local run filter variables
    while read -r run filter variables; do
        # shellcheck disable=SC2086 # words
        list_ucx_run "$run" "$filter" $variables
    done < <(ucx_rows runs.list)
}

# ucx_variables RUN CLASS: prints the environment of a run
ucx_variables()
{
    ucx_rows runs.list | awk -v run="${1:--}" '
        $1 == run { for (i = 3; i <= NF; i++) print $i }'
    # see "Memory that UCX does not initialise" in README.md
    if [[ $ucx_minor/$2 == 18/@(dc_mlx5|rc_mlx5|rcx)[+/]* ]]; then
        echo MALLOC_PERTURB_=255
    fi
}

# Filters the names of all cases: prints those of a run without --full.
reduce_ucx_cases()
{
    awk '{ split($0, part, /\/[0-9]+$/) }
        part[1] != base { flush_base() }
        { base = part[1]; name[count++] = $0 }
        function flush_base() {
            if (count) print name[turn++ % count]
            count = 0
        }
        END { flush_base() }'
}

# ucx_kind CASE: sets kind to its transport and its part of UCX
ucx_kind()
{
    case $1 in
    */test_ucp_*) kind=${1%%/*}/ucp ;;
    */test_md.*) kind=${1%%/*}/md ;;
    *) kind=${1%%/*}/uct ;;
    esac
}

# choose_ucx_cases DIR: writes a file for each class to DIR with the cases to
# run. Fails if a transport has no cases: UCX does not report a missing
# transport.
choose_ucx_cases()
{
    local name class row kind
    local -A seen=()
    while read -r -u 3 name; do
        ucx_kind "$name"
        seen[$kind]=yes
        selected "ucx/$name" || continue
        ucx_row never "$name" && continue
        [ "$tier" != 1 ] || [[ $name == dcx/* ]] || continue
        [ "$tier" != 3 ] && ucx_row full "$name" && continue
        class=${name%%.*}
        echo "$name" >> "$1/${class//\//@}"
    done 3< <(list_ucx_cases |
        if [ "$tier" = 3 ]; then cat; else reduce_ucx_cases; fi)
    for kind in dcx/uct dcx/md dcx/ucp dc_mlx5/uct dc_mlx5/ucp ib/md \
        {rcx+all/ucp,rc_mlx5+all/uct} dcx+{tags,rand,late}/{ucp,uct} \
        dcx+gpu/ucp; do
        [ -n "${seen[$kind]:-}" ] || fail_ucx "UCX has no case of $kind"
    done
}

# fail_ucx REASON: reports a failure that is none of a case
fail_ucx()
{
    failed=$((failed + 1))
    failures+=("ucx: $*")
    printf 'FAIL  ucx: %s\n' "$*"
}

# run_ucx_class FILE: runs the cases of a class, each process on a device of its
# own
run_ucx_class()
{
    local class=${1##*/} log status todo=$1.todo ran=$1.ran
    class=${class//@//}
    local run=${class%%/*}
    run=${run#"${run%%+*}"}
    log=$logs/ucx/$class.log
    mkdir -p "${log%/*}"
    : > "$log"
    cp "$1" "$todo"
    export SOFTHCA_DIR=$run_dir/ucx-${1##*/}
    while [ -s "$todo" ]; do
        # shellcheck disable=SC2046 # words
        env $(ucx_variables "$run" "$class") bash -c 'ucx_gtest "$@"' _ \
            --gtest_filter="$(sed 's|+[^/]*||' "$todo" | paste -sd :)" \
            > "$log.part" 2>&1
        status=$?
        sed -i "s|^\(\[ [A-Z ]* \] [^/ ]*\)/|\1$run/|" "$log.part"
        awk '/^\[ RUN      \] / { print $4 }' "$log.part" > "$ran"
        cat "$log.part" >> "$log"
        [ -s "$ran" ] || break
        printf '[ STATUS   ] %d\n' "$status" >> "$log"
        # it may also fail outside of its cases
        if [ "$status" != 0 ] && ! grep -q '^\[  FAILED  \]' "$log.part" &&
            tail -n 1 "$ran" | grep -qxFf <(awk '/^\[       OK/ { print $4 }' \
                "$log.part"); then
            echo "[ RUN      ] $class.outside_of_its_cases" >> "$log"
        fi
        grep -vxFf "$ran" "$todo" > "$todo.new"
        mv "$todo.new" "$todo"
    done
    # cases that would not even start
    awk '{ print "[ RUN      ]", $0 }' "$todo" >> "$log"
    rm -rf "$SOFTHCA_DIR" "$log.part"
}

# ucx_excerpt LOG CASE: prints the part of a log on one case
ucx_excerpt()
{
    awk -v name="$2" '/^\[ RUN / { on = ($4 == name) }
        on { print }
        on && /^\[ +(OK|FAILED|STATUS) +\]/ { exit }' "$1"
}

# ucx_complaints LOG: prints the cases in which the device complained, one per
# line
ucx_complaints()
{
    awk '/^\[ RUN / { name = $4 }
        /^softhca\[[0-9]+\] (warn|error)/ { print name }' "$1" | uniq
}

# judge_ucx_case LOG RESULT CASE: sets result and why, by expected.list
judge_ucx_case()
{
    local row
    result=$2 why=
    case $2 in
    PASS)
        if ucx_row skip "$3" || ucx_row fail "$3"; then
            result=FAIL
            why="passed, but expected.list has it as ${ucx_what[row]}"
        elif [ -n "${complained[$3]:-}" ] && ! ucx_row complain "$3"; then
            result=FAIL
            why="the device complained"
        fi
        ;;
    SKIP)
        if ucx_row skip "$3"; then
            ucx_met[row]=$((ucx_met[row] + 1))
        else
            result=FAIL
            why="skipped without a row in expected.list"
        fi
        ;;
    FAIL)
        if ucx_row fail "$3"; then
            ucx_met[row]=$((ucx_met[row] + 1))
            result=SKIP
        else
            why="failed, crashed or hung"
        fi
        ;;
    esac
}

# report_ucx_case LOG RESULT CASE MILLISECONDS: counts a case, and prints a
# failure
report_ucx_case()
{
    local name=ucx/$3 result why log=$logs/ucx/$3.log
    judge_ucx_case "$@"
    case $result in
    PASS) passed=$((passed + 1)) ;;
    SKIP) skipped=$((skipped + 1)) ;;
    FAIL)
        mkdir -p "${log%/*}"
        ucx_excerpt "$1" "$3" > "$log"
        report FAIL "$name" "$4" "$log" "$why"
        ;;
    esac
}

# report_ucx_class FILE: reports its cases, then the class in one line
report_ucx_class()
{
    local class=${1##*/} log result case ms total=0
    local was_passed=$passed was_skipped=$skipped was_failed=$failed
    local -A complained=()
    class=${class//@//}
    log=$logs/ucx/$class.log
    while read -r -u 5 case; do
        complained[$case]=yes
    done 5< <(ucx_complaints "$log")
    while read -r -u 5 result case ms; do
        report_ucx_case "$log" "$result" "$case" "$ms"
        total=$((total + ms))
    done 5< <(gtest_results "$log")
    printf 'UCX   %-44s %3d passed, %3d skipped, %3d failed %6d.%02d s\n' \
        "$class" $((passed - was_passed)) $((skipped - was_skipped)) \
        $((failed - was_failed)) $((total / 1000)) $((total % 1000 / 10))
    note_time "ucx/$class" "$total" 0 # gtest does not report CPU time
}

# report_ucx_rows: counts the cases that needed each row, for the closing list;
# after a run of everything an unneeded row is a failure
report_ucx_rows()
{
    local row text
    for ((row = 0; row < ${#ucx_what[@]}; row++)); do
        text="ucx/${ucx_pattern[row]} (${ucx_met[row]}): ${ucx_why[row]}"
        case ${ucx_what[row]} in skip | fail) ;; *) continue ;; esac
        if [ "${ucx_met[row]}" != 0 ]; then
            skips+=("$text")
        elif [ "$tier" = 3 ] && [ ${#patterns[@]} = 0 ]; then
            fail_ucx "no case needs the row of expected.list: $text"
        fi
    done
}

# run_ucx_classes DIR: runs all classes and prints the file of each when it is
# done. Classes with most cases come first; those that need all cores run last,
# alone.
run_ucx_classes()
{
    export -f run_ucx_class ucx_gtest ucx_rows ucx_variables
    export logs run_dir ucx_gtest_program ucx_minor ucx_seed ucx_case_limit \
        ucx_process_limit
    local each='run_ucx_class "$1"; echo "$1"'
    (cd "$1" && wc -l -- *) | sort -rn | awk '$2 != "total" { print $2 }' |
        grep -v perf | sed "s|^|$1/|" |
        xargs -r -P "$(nproc)" -n 1 bash -c "$each" _
    find "$1" -name '*perf*' ! -name '*.*' -print0 |
        xargs -r0 -n 1 bash -c "$each" _
}

# run_ucx: runs all of UCX's tests; called by run-tests
run_ucx()
{
    local dir=$run_dir/ucx-classes file
    ucx_seed=${GTEST_RANDOM_SEED:-$RANDOM}
    mkdir -p "$dir" "$logs/ucx"
    read_ucx_expected
    choose_ucx_cases "$dir"
    if [ -n "$list" ]; then
        sed 's|^|ucx/|' "$dir"/* 2> /dev/null
        return
    fi
    printf 'UCX   its gtest with -s %s\n' "$ucx_seed"
    while read -r -u 6 file; do
        report_ucx_class "$file"
    done 6< <(run_ucx_classes "$dir")
    report_ucx_rows
}
