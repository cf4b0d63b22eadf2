/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Copies between programs' memory: see hca_mem.h. Memory of this process, and
 * memory of a peer that is mapped here (hca_share_map.h), is accessed by
 * guarded loads and stores, as the program may have unmapped what it
 * registered. The rest of a peer's is copied by process_vm_readv() and
 * process_vm_writev(). Addresses of hca_mem_near() are also used by
 * obj/hca_sgl_copy.c (rows) and resp/hca_atomic.c.
 */
#define _GNU_SOURCE
#include "hca_mem.h"
#include "hca_proc.h"
#include "hca_share.h"
#include "hca_timer.h"
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

/* --- the right to copy ---------------------------------------------------- */

#define HCA_MEM_CONTAINER \
    "in a container add the capability SYS_PTRACE (--cap-add=SYS_PTRACE)"

/* Tries to read this process' own memory, at address 0: if reading is allowed
 * the error is EFAULT. @return 0 or an errno */
static int hca_mem_try_self(void)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {NULL, 1};

    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) >= 0) {
        return 0;
    }
    return (errno == EFAULT) ? 0 : errno;
}

/* Returns the cause and the fix of a copy that was denied. @param own  errno of
 * a copy within this process, or 0 */
static const char *hca_mem_advice(int own)
{
    switch (own) {
    case 0:
        return "Yama or a user namespace keeps processes apart; ask the "
               "administrator for kernel.yama.ptrace_scope=1; " HCA_MEM_CONTAINER;
    case ENOSYS:
        return "the system has no process_vm_readv";
    default:
        return "seccomp forbids it; " HCA_MEM_CONTAINER ", or allow "
               "process_vm_readv and process_vm_writev in its seccomp profile";
    }
}

int hca_mem_probe(void)
{
    bool is_needed = !hca_share_is_on();
    int error      = hca_mem_try_self();

    if (error == 0) {
        return 0;
    }
    hca_log(is_needed ? HCA_LOG_ERROR : HCA_LOG_INFO,
            "process_vm_readv: %s: %s", strerror(error), hca_mem_advice(error));
    return is_needed ? -EPERM : 0;
}

/* Logs the cause once. */
static void hca_mem_log_denied(pid_t pid)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&said)) {
        hca_error("process %d: no access to memory that is not shared: %s",
                  (int)pid, hca_mem_advice(hca_mem_try_self()));
    }
}

/* --- copies by the kernel ------------------------------------------------- */

/* Turns a short or failed process_vm_*() into a result: as hca_mem_read(), or
 * -EPERM: denied. */
static int hca_mem_status(ssize_t moved, size_t total)
{
    if (moved == (ssize_t)total) {
        return 0;
    }
    if ((moved >= 0) || (errno == EFAULT)) {
        return -EFAULT;
    }
    return (errno == ESRCH) ? -ESRCH : -EPERM;
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
    return hca_mem_status(move->fn(move->owner.pid, move->local, move->nlocal,
                                   move->remote, move->nremote, 0),
                          total);
}

/* Bits of hca_mem_freezes(): some pages of that process are read-only now. */
#define HCA_MEM_FROZEN (1ull << 32 | 1)

/* Returns hca_proc.freezes of the peer and of this process, side by side. */
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

/* --- memory that is mapped here ------------------------------------------- */

/* Least part of a piece that is copied by itself, while other parts need a
 * system call. */
#define HCA_MEM_NEAR 16384u

/* Most bytes taken ahead: a fourth of a usual cache of 32 KiB */
#define HCA_MEM_PREFETCH 8192u
#define HCA_MEM_LINE     64u

/* Limit of the wait for an owner that changes its runs */
#define HCA_MEM_CHANGE_NS 5000000000ull

/* Pieces collected for one system call, if some others are mapped here. */
#define HCA_MEM_FAR 64u

static bool hca_mem_writes(const struct hca_mem_move *move)
{
    return move->fn == process_vm_writev;
}

/* Copies to or from @near, which hca_mem_near() has returned for @far.
 * @return 0; -EFAULT after a fault, or if the owner has replaced its pages
 *         meanwhile: the caller lets the kernel copy, which finds the right
 *         pages. */
static inline __attribute__((always_inline)) int
hca_mem_copy_near(struct hca_owner owner, bool writes, void *near, void *far,
                  void *own, size_t length)
{
    int ret = writes ? hca_trap_guard_memcpy(near, own, length) :
                       hca_trap_guard_memcpy(own, near, length);

    return __builtin_expect(
               (ret == 0) && (hca_mem_near(owner, far, length, writes) == near),
               1) ?
               0 :
               -EFAULT;
}

/* Pieces to be moved by the kernel. */
struct hca_mem_far {
    struct hca_mem_move move;
    struct iovec local[HCA_MEM_FAR], remote[HCA_MEM_FAR];
    size_t total;
};

static int hca_mem_far_flush(struct hca_mem_far *far)
{
    int ret = (far->total > 0) ? hca_mem_move(&far->move, far->total) : 0;

    far->move.nlocal  = 0;
    far->move.nremote = 0;
    far->total        = 0;
    return ret;
}

static int hca_mem_far_add(struct hca_mem_far *far, void *own, void *peers,
                           size_t length)
{
    int ret = (far->move.nlocal == HCA_MEM_FAR) ? hca_mem_far_flush(far) : 0;

    far->local[far->move.nlocal++]   = (struct iovec){own, length};
    far->remote[far->move.nremote++] = (struct iovec){peers, length};
    far->total += length;
    return ret;
}

/* Finds the first part of a peer's piece, of @length bytes, that is either
 * mapped here or not; stores its length in @length.
 * @param least  shorter parts count as not mapped
 * @return its address here, or NULL. */
static void *hca_mem_near_part(const struct hca_mem_move *move, void *peers,
                               size_t least, size_t *length)
{
    uintptr_t addr                  = (uintptr_t)peers;
    const struct hca_share_hit *hit = hca_share_map_hit(move->owner.proc,
                                                        move->owner.pid, addr);
    size_t most                     = hit->end - addr;

    *length = (*length < most) ? *length : most;
    return (*length >= least) ?
               hca_share_hit_at(hit, addr, hca_mem_writes(move)) :
               NULL;
}

/* Copies a stretch that is one piece on both sides, in the order of addresses,
 * as a program may wait for the last byte. */
static int hca_mem_mixed_piece(struct hca_mem_far *far, char *own, char *peers,
                               size_t length, size_t least)
{
    int ret = 0;

    while ((length > 0) && (ret == 0)) {
        size_t n   = length;
        void *near = hca_mem_near_part(&far->move, peers, least, &n);

        if (near != NULL) {
            ret = hca_mem_far_flush(far);
        }
        if ((near == NULL) ||
            ((ret == 0) &&
             (hca_mem_copy_near(far->move.owner, hca_mem_writes(&far->move),
                                near, peers, own, n) != 0))) {
            ret = hca_mem_far_add(far, own, peers, n);
        }
        own += n;
        peers += n;
        length -= n;
    }
    return ret;
}

/* Returns true if all remote pieces are mapped here. */
static bool hca_mem_is_near(const struct hca_mem_move *move)
{
    for (unsigned i = 0; i < move->nremote; i++) {
        if (hca_mem_near(move->owner, move->remote[i].iov_base,
                         move->remote[i].iov_len,
                         hca_mem_writes(move)) == NULL) {
            return false;
        }
    }
    return true;
}

/* Returns true if a part of HCA_MEM_NEAR bytes or more is mapped here. */
static bool hca_mem_is_mixed(const struct hca_mem_move *move)
{
    for (unsigned i = 0; i < move->nremote; i++) {
        char *peers = move->remote[i].iov_base;
        size_t left = move->remote[i].iov_len, n;

        for (; left >= HCA_MEM_NEAR; peers += n, left -= n) {
            n = left;
            if (hca_mem_near_part(move, peers, HCA_MEM_NEAR, &n) != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* Copies parts that are mapped here by loads and stores, others by the
 * kernel. */
static int hca_mem_mixed(const struct hca_mem_move *move, size_t total)
{
    struct hca_mem_cursor own = {move->local, 0}, peers = {move->remote, 0};
    struct hca_mem_far far;
    size_t least = hca_mem_is_near(move) ? 0 : HCA_MEM_NEAR;
    int ret      = 0;

    if ((least > 0) && !hca_mem_is_mixed(move)) {
        return hca_mem_move(move, total);
    }
    far.move        = *move;
    far.move.local  = far.local;
    far.move.remote = far.remote;
    far.move.nlocal = far.move.nremote = 0;
    far.total                          = 0;
    while ((total > 0) && (ret == 0)) {
        size_t n = hca_mem_left(&own);

        n   = (n < hca_mem_left(&peers)) ? n : hca_mem_left(&peers);
        ret = hca_mem_mixed_piece(&far, (char *)own.iov->iov_base + own.offset,
                                  (char *)peers.iov->iov_base + peers.offset, n,
                                  least);
        total -= n;
        hca_mem_advance(&own, n);
        hca_mem_advance(&peers, n);
    }
    return (ret == 0) ? hca_mem_far_flush(&far) : ret;
}

/* Copies in any of these ways. If the kernel denies the copy while the owner
 * changes its runs, which cannot be found then: waits, and tries again. */
static __attribute__((noinline)) int
hca_mem_any(const struct hca_mem_move *move, size_t total)
{
    const struct hca_share *share = &hca_fabric->shares[move->owner.proc];
    uint64_t until                = 0;
    uint32_t seq;
    int ret;

    do {
        seq = atomic_load(&share->seq);
        ret = hca_mem_mixed(move, total);
        if (__builtin_expect(ret != -EPERM, 1)) {
            return ret;
        }
        if (!hca_proc_is_attached(move->owner.proc)) {
            return -ESRCH;
        }
        until = (until == 0) ? hca_time_ns() + HCA_MEM_CHANGE_NS : until;
        syscall(SYS_sched_yield);
    } while (((seq & 1) || (atomic_load(&share->seq) != seq)) &&
             (hca_time_ns() < until));
    hca_mem_log_denied(move->owner.pid);
    return -EFAULT;
}

/* Copies in any way. */
static __attribute__((noinline)) int
hca_mem_run(const struct hca_mem_move *move)
{
    size_t total = hca_mem_total(move->local, move->nlocal);

    if (total == 0) {
        return 0;
    }
    if (move->owner.proc != hca_self) {
        return hca_mem_any(move, total);
    }
    return hca_mem_writes(move) ?
               hca_mem_copy(move->remote, move->local, total) :
               hca_mem_copy(move->local, move->remote, total);
}

/* Copies one piece that loads and stores reach as a whole: the most usual case.
 * @return false if it does not; a part of it may have been copied. */
static inline __attribute__((always_inline)) bool
hca_mem_one(struct hca_owner owner, bool writes, const struct iovec *local,
            unsigned nlocal, const struct iovec *remote, unsigned nremote)
{
    size_t length;
    void *near;

    if (__builtin_expect((nlocal != 1) || (nremote != 1), 0)) {
        return false;
    }
    length = local->iov_len;
    near   = hca_mem_near(owner, remote->iov_base, length, writes);
    return (near != NULL) &&
           (hca_mem_copy_near(owner, writes, near, remote->iov_base,
                              local->iov_base, length) == 0);
}

int hca_mem_write(struct hca_owner owner, const struct iovec *local,
                  unsigned nlocal, const struct iovec *remote, unsigned nremote)
{
    return hca_mem_one(owner, true, local, nlocal, remote, nremote) ?
               0 :
               hca_mem_run(&(struct hca_mem_move){
                   process_vm_writev, owner, local, nlocal, remote, nremote});
}

int hca_mem_read(struct hca_owner owner, const struct iovec *local,
                 unsigned nlocal, const struct iovec *remote, unsigned nremote)
{
    return hca_mem_one(owner, false, local, nlocal, remote, nremote) ?
               0 :
               hca_mem_run(&(struct hca_mem_move){
                   process_vm_readv, owner, local, nlocal, remote, nremote});
}

void hca_mem_prefetch(struct hca_owner owner, const void *base, size_t length)
{
    size_t most      = (length < HCA_MEM_PREFETCH) ? length : HCA_MEM_PREFETCH;
    const char *near = hca_mem_near(owner, (void *)base, most, true);

    for (size_t at = 0; (near != NULL) && (at < most); at += HCA_MEM_LINE) {
        __asm__ volatile("prefetchw (%0)" : : "r"(near + at));
    }
}
