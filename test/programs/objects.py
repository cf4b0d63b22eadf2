# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
"""Checks of MPI by Python programs: pickled objects of 250 bytes to 5 MB, received
after a probe, arrays of numpy with derived types, collectives of objects, windows,
and a pool of workers. Prints a digest of each rank's result of each check; a wrong
result is an error."""
import hashlib

import numpy as np
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()
after, before = (rank + 1) % ranks, (rank - 1) % ranks


def thing(owner, size):
    """Returns an object of a rank."""
    return {"owner": owner, "bytes": bytes(i * 7 % 251 for i in range(251)) * size,
            "nested": [(owner, i, str(i)) for i in range(size)]}


def say(name, value):
    """Rank 0 prints one line with a digest of each rank's value."""
    digests = comm.gather(hashlib.sha256(repr(value).encode()).hexdigest()[:16])
    if rank == 0:
        print(name, *digests, flush=True)


def objects():
    got = []
    for size in 1, 30, 1000, 20000:
        request = comm.isend(thing(rank, size), dest=after, tag=size)
        message = comm.mprobe(source=before)
        assert message.recv() == thing(before, size)
        request.wait()
        got.append(size)
    return got


def collectives():
    gathered = comm.allgather(thing(rank, 3))
    assert gathered == [thing(i, 3) for i in range(ranks)]
    assert comm.bcast(thing(rank, 5000), root=ranks - 1) == thing(ranks - 1, 5000)
    assert comm.alltoall([thing(rank, i) for i in range(ranks)]) == \
        [thing(i, rank) for i in range(ranks)]
    return comm.allreduce([rank], op=MPI.SUM)


def columns():
    """A column of a matrix is sent, and received as a row."""
    matrix = np.arange(600 * 400, dtype="d").reshape(600, 400) + rank
    column = MPI.DOUBLE.Create_vector(600, 1, 400).Commit()
    row = np.zeros(600)
    comm.Sendrecv([matrix, 1, column], after, recvbuf=row, source=before)
    column.Free()
    assert (row == np.arange(0, 600 * 400, 400) + before).all()
    sums = np.zeros_like(matrix)
    comm.Allreduce(matrix, sums)
    assert (sums == ranks * (matrix - rank) + sum(range(ranks))).all()
    return row.tolist()


def windows():
    memory = np.zeros(1000, dtype="i")
    window = MPI.Win.Create(memory, memory.itemsize, comm=comm)
    window.Fence()
    given = np.full(300, rank + 1, dtype="i")  # MPI may read it until the fence
    window.Put(given, after, target=(100, 300, MPI.INT))
    window.Fence()
    got = np.zeros(300, dtype="i")
    window.Lock(after, MPI.LOCK_SHARED)
    window.Get(got, after, target=(100, 300, MPI.INT))
    window.Unlock(after)
    assert (got == rank + 1).all() and (memory[100:400] == before + 1).all()
    window.Fence()
    one = np.ones(1, dtype="i")
    for _ in range(10):
        window.Accumulate(one, 0, target=(0, 1, MPI.INT))
    window.Fence()
    assert rank or memory[0] == 10 * ranks
    window.Free()
    return got.tolist()


def pool():
    with MPICommExecutor(comm, root=0) as executor:
        if executor is not None:
            got = list(executor.map(pow, range(50), range(50), chunksize=3))
            assert got == [i ** i for i in range(50)]
            return got
    return None


for test in objects, collectives, columns, windows, pool:
    say(test.__name__, test())
