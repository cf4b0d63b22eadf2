# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# What the tests of others' programs share: their folder, jobs over dcx and over what
# has nothing of it, and that both have the same results. Sourced by bash, with the
# arguments of the row:
#
#     PROGRAM openmpi|mpich -np RANKS
set -euo pipefail

name=${0##*/}
mpi=$1
ranks=$3
# what results are compared with: UCX's tcp, or shared memory, as MPICH 4.0.2 hangs at
# times in MPI_Finalize() over UCX's tcp, even if all messages go by MPICH's own memory
case $mpi in
openmpi) other=tcp ;;
mpich) other=shm ;;
esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$DCX_BUILD_DIR/programs/$name-$mpi
# a rank is one thread
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

skip() { echo "SKIP: $*"; exit 77; }
die() { echo "$name: $*" >&2; exit 1; }

# need FILE-OR-COMMAND PACKAGE
need()
{
    [ -e "$1" ] || command -v "$1" > /dev/null ||
        skip "$1 is not installed (Debian's package $2)"
}

# over dcx|$other COMMAND...: the job, in a folder of its own, and by dcx alone
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

# over_both COMMAND...: what each has said is in the file "output" of its folder,
# without complaints of UCX's where that is not dcx
over_both()
{
    local transport
    for transport in dcx "$other"; do
        (over "$transport" "$@") > "$dir/$transport/output" 2>&1 ||
            { cat "$dir/$transport/output"; die "$* failed over $transport"; }
    done
    # over tcp, at times, that an endpoint was not closed in time
    sed -i '/ UCX  \(WARN\|ERROR\) /d' "$dir/$other/output"
    cat "$dir/dcx/output"
}

# same FILE COMMAND...: whether the files of both are alike, as the command
# (a filter) sees them, and have a line
same()
{
    "${@:2}" < "$dir/dcx/$1" > "$dir/dcx.seen" || true
    "${@:2}" < "$dir/$other/$1" > "$dir/other.seen" || true
    [ -s "$dir/dcx.seen" ] || die "$1 says nothing"
    diff "$dir/dcx.seen" "$dir/other.seen" || die "$1 is another one over $other"
    echo "$1: $(wc -l < "$dir/dcx.seen") lines as over $other"
}

rm -rf "$dir"
mkdir -p "$dir/dcx" "$dir/$other"
