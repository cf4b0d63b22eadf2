/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The one file that touches an application's memory: this process' own with a
 * guarded copy (the program may have unmapped what it registered), another's
 * with process_vm_readv/writev, which copy straight between the two.
 */
#define _GNU_SOURCE
#include "hca_mem.h"
#include "softhca/base/hca_log.h"
#include "softhca/doorbell/hca_trap.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A position in a list of pieces. */
struct hca_mem_cursor {
    const struct iovec *iov;
    size_t offset;
};

static size_t hca_mem_left(const struct hca_mem_cursor *cursor)
{
    return cursor->iov->iov_len - cursor->offset;
}

static void hca_mem_advance(struct hca_mem_cursor *cursor, size_t length)
{
    cursor->offset += length;
    if (cursor->offset == cursor->iov->iov_len) {
        cursor->iov++;
        cursor->offset = 0;
    }
}

static size_t hca_mem_total(const struct iovec *iov, unsigned count)
{
    size_t total = 0;

    for (unsigned i = 0; i < count; i++) {
        total += iov[i].iov_len;
    }
    return total;
}

static int hca_mem_copy(const struct iovec *to, const struct iovec *from,
                        size_t total)
{
    struct hca_mem_cursor dst = {to, 0}, src = {from, 0};

    while (total > 0) {
        size_t n = hca_mem_left(&dst);

        n = (n < hca_mem_left(&src)) ? n : hca_mem_left(&src);
        if ((n > 0) && (hca_trap_guard_memcpy(
                            (char *)dst.iov->iov_base + dst.offset,
                            (char *)src.iov->iov_base + src.offset, n) != 0)) {
            return -EFAULT;
        }
        total -= n;
        hca_mem_advance(&dst, n);
        hca_mem_advance(&src, n);
    }
    return 0;
}

#define HCA_MEM_CONTAINER \
    "in a container add the capability SYS_PTRACE (--cap-add=SYS_PTRACE), or " \
    "allow process_vm_readv and process_vm_writev in its seccomp profile"

/* Logs once that the system forbids it: no message will ever get through. */
static int hca_mem_denied(pid_t pid, int error)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&said)) {
        hca_error(
            "process %d: no access to its memory: %s; ask the "
            "administrator for kernel.yama.ptrace_scope=1; " HCA_MEM_CONTAINER,
            (int)pid, strerror(error));
    }
    return -EPERM;
}

/* Reads from address 0: where reading is allowed at all, it succeeds, or the
 * error is EFAULT. @return 0 or an errno */
static int hca_mem_probe(pid_t pid)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {NULL, 1};

    if (process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0) {
        return 0;
    }
    return ((errno == EFAULT) || (errno == ESRCH)) ? 0 : errno;
}

int hca_mem_probe_self(void)
{
    int error = hca_mem_probe(getpid());

    if (error == ENOSYS) {
        hca_error("process_vm_readv: %s: the system has no process_vm_readv",
                  strerror(error));
    } else if (error != 0) {
        hca_error(
            "process_vm_readv: %s: seccomp forbids it; " HCA_MEM_CONTAINER,
            strerror(error));
    }
    return (error != 0) ? -EPERM : 0;
}

void hca_mem_probe_peer(pid_t pid)
{
    int error = hca_mem_probe(pid);

    if (error != 0) {
        hca_mem_denied(pid, error);
    }
}

/* Turns a short or failed process_vm_*() into a result. */
static int hca_mem_status(pid_t pid, ssize_t moved, size_t total)
{
    if (moved == (ssize_t)total) {
        return 0;
    }
    if ((moved >= 0) || (errno == EFAULT)) {
        return -EFAULT;
    }
    return (errno == ESRCH) ? -ESRCH : hca_mem_denied(pid, errno);
}

/* A copy between two processes, which process_vm_readv() or _writev() makes. */
struct hca_mem_move {
    __typeof__(process_vm_readv) *fn;
    struct hca_owner owner;
    const struct iovec *local;
    unsigned nlocal;
    const struct iovec *remote;
    unsigned nremote;
};

static int hca_mem_move_once(const struct hca_mem_move *move, size_t total)
{
    return hca_mem_status(move->owner.pid,
                          move->fn(move->owner.pid, move->local, move->nlocal,
                                   move->remote, move->nremote, 0),
                          total);
}

/* The counts of both, side by side; a bit of HCA_MEM_FROZEN: pages of that
 * process are read-only now (hca_umem.c). */
#define HCA_MEM_FROZEN (1ull << 32 | 1)

static uint64_t hca_mem_freezes(unsigned proc)
{
    return (uint64_t)atomic_load(&hca_fabric->procs[proc].freezes) << 32 |
           atomic_load(&hca_fabric->procs[hca_self].freezes);
}

/* Repeats a copy during which pages were exchanged: it may have failed because
 * of that, or have accessed a page that was exchanged meanwhile, as the kernel
 * first finds the page and then copies. */
static int hca_mem_move(const struct hca_mem_move *move, size_t total)
{
    unsigned proc   = move->owner.proc;
    uint64_t before = hca_mem_freezes(proc), after;
    int ret;

    for (;;) {
        ret   = hca_mem_move_once(move, total);
        after = hca_mem_freezes(proc);
        if (__builtin_expect((before == after) && !(after & HCA_MEM_FROZEN),
                             1) ||
            ((ret != 0) && (ret != -EFAULT))) {
            return ret;
        }
        before = after;
        syscall(SYS_sched_yield);
    }
}

/* Inline, as most messages take this path. */
static inline __attribute__((always_inline)) int
hca_mem_run(const struct hca_mem_move *move)
{
    bool writes  = (move->fn == process_vm_writev);
    size_t total = hca_mem_total(move->local, move->nlocal);

    if (total == 0) {
        return 0;
    }
    if (move->owner.proc != hca_self) {
        return hca_mem_move(move, total);
    }
    return writes ? hca_mem_copy(move->remote, move->local, total) :
                    hca_mem_copy(move->local, move->remote, total);
}

int hca_mem_write(struct hca_owner owner, const struct iovec *local,
                  unsigned nlocal, const struct iovec *remote, unsigned nremote)
{
    return hca_mem_run(&(struct hca_mem_move){process_vm_writev, owner, local,
                                              nlocal, remote, nremote});
}

int hca_mem_read(struct hca_owner owner, const struct iovec *local,
                 unsigned nlocal, const struct iovec *remote, unsigned nremote)
{
    return hca_mem_run(&(struct hca_mem_move){process_vm_readv, owner, local,
                                              nlocal, remote, nremote});
}
