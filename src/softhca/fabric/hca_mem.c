/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The one file that touches an application's memory: this process' own with a
 * guarded copy (the program may have unmapped what it registered), another's
 * with process_vm_readv/writev, which copy straight between the two.
 */
#define _GNU_SOURCE
#include "hca_log.h"
#include "hca_proc.h"
#include "softhca/doorbell/hca_trap.h"

#include <errno.h>
#include <string.h>

/* A position in a list of pieces. */
struct hca_mem_cursor {
    const struct iovec *iov;
    size_t              offset;
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
        if ((n > 0) &&
            (hca_trap_guard_memcpy((char*)dst.iov->iov_base + dst.offset,
                                   (char*)src.iov->iov_base + src.offset,
                                   n) != 0)) {
            return -EFAULT;
        }
        total -= n;
        hca_mem_advance(&dst, n);
        hca_mem_advance(&src, n);
    }
    return 0;
}

/* The system forbids it: no message will ever get through, said once. */
static int hca_mem_denied(unsigned proc, int error)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&said)) {
        hca_error("process %d: no access to its memory: %s. Set "
                  "/proc/sys/kernel/yama/ptrace_scope to 0; in a container "
                  "add the capability SYS_PTRACE, or have its seccomp profile "
                  "allow process_vm_readv and process_vm_writev",
                  (int)hca_fabric->procs[proc].pid, strerror(error));
    }
    return -EPERM;
}

/* What a short or failed process_vm_*() means. */
static int hca_mem_status(unsigned proc, ssize_t moved, size_t total)
{
    if (moved == (ssize_t)total) {
        return 0;
    }
    if ((moved >= 0) || (errno == EFAULT)) {
        return -EFAULT;
    }
    return (errno == ESRCH) ? -ESRCH : hca_mem_denied(proc, errno);
}

int hca_mem_write(unsigned proc, const struct iovec *local, unsigned nlocal,
                  const struct iovec *remote, unsigned nremote)
{
    size_t total = hca_mem_total(local, nlocal);

    if (total == 0) {
        return 0;
    }
    if (proc == hca_self) {
        return hca_mem_copy(remote, local, total);
    }
    return hca_mem_status(proc,
                          process_vm_writev(hca_fabric->procs[proc].pid,
                                            local, nlocal, remote, nremote, 0),
                          total);
}

int hca_mem_read(unsigned proc, const struct iovec *local, unsigned nlocal,
                 const struct iovec *remote, unsigned nremote)
{
    size_t total = hca_mem_total(local, nlocal);

    if (total == 0) {
        return 0;
    }
    if (proc == hca_self) {
        return hca_mem_copy(local, remote, total);
    }
    return hca_mem_status(proc,
                          process_vm_readv(hca_fabric->procs[proc].pid,
                                           local, nlocal, remote, nremote, 0),
                          total);
}
