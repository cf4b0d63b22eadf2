# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# Functions for the tests of other projects' programs: a folder, jobs over dcx
# and over a transport without dcx, and the comparison of their results. Sourced
# by bash, with the arguments of the row:
#
#     PROGRAM openmpi|mpich -np RANKS
set -euo pipefail

name=${0##*/}
mpi=$1
ranks=$3
# Transport to compare with: UCX's tcp. With MPICH it is shared memory, as MPICH
# 4.0.2 sometimes hangs in MPI_Finalize() over UCX's tcp, even if all messages
# use MPICH's own shared memory.
case $mpi in
openmpi) other=tcp ;;
mpich) other=shm ;;
esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$DCX_BUILD_DIR/programs/$name-$mpi
# one thread per rank
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

skip() { echo "SKIP: $*"; exit 77; }
die() { echo "$name: $*" >&2; exit 1; }

# need FILE-OR-COMMAND PACKAGE: skips the test if it is not installed
need()
{
    [ -e "$1" ] || command -v "$1" > /dev/null ||
        skip "$1 is not installed (Debian's package $2)"
}

# over dcx|$other COMMAND...: runs the job over this transport alone, in a
# folder of its own
over()
{
    cd "$dir/$1"
    case $mpi/$1 in
    openmpi/*) UCX_TLS=$1 dcx-run --soft mpirun --oversubscribe -np "$ranks" "${@:2}" ;;
    mpich/dcx) MPIR_CVAR_NOLOCAL=1 UCX_TLS=dcx dcx-run --soft \
        mpirun.mpich -np "$ranks" "${@:2}" ;;
    mpich/shm) UCX_TLS=self,sm mpirun.mpich -np "$ranks" "${@:2}" ;;
    esac < /dev/null
}

# over_both COMMAND...: runs the job over both. Each writes its output to the
# file "output" of its folder; complaints of UCX are removed from the other's.
over_both()
{
    local transport
    for transport in dcx "$other"; do
        (over "$transport" "$@") > "$dir/$transport/output" 2>&1 ||
            { cat "$dir/$transport/output"; die "$* failed over $transport"; }
    done
    # over tcp UCX sometimes warns that an endpoint was not closed in time
    sed -i '/ UCX  \(WARN\|ERROR\) /d' "$dir/$other/output"
    cat "$dir/dcx/output"
}

# same FILE COMMAND...: compares the files of both after COMMAND (a filter);
# they must be equal and not empty
same()
{
    "${@:2}" < "$dir/dcx/$1" > "$dir/dcx.seen" || true
    "${@:2}" < "$dir/$other/$1" > "$dir/other.seen" || true
    [ -s "$dir/dcx.seen" ] || die "$1 says nothing"
    diff "$dir/dcx.seen" "$dir/other.seen" || die "$1 differs over $other"
    echo "$1: $(wc -l < "$dir/dcx.seen") lines as over $other"
}

rm -rf "$dir"
mkdir -p "$dir/dcx" "$dir/$other"
