/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pages of this process in its memfd: see hca_share_pages.h. System calls are
 * made directly, past any hook.
 */
#define _GNU_SOURCE
#include "hca_share_pages.h"
#include "hca_freeze.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Entries of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_SHARED  (1ull << 61) /* of a file, or shared */
#define PAGEMAP_BATCH   512u

#define SHARE_FILE_SIZE (1ull << 62)

static int share_pagemap    = -1;
static _Atomic int share_fd = -1;       /* read without a lock, too */
static uint64_t share_dev, share_inode; /* of the memfd */
static uint64_t share_next;             /* offset of the next window */

/* The child closes its end when it has copied, or when it dies. */
static int share_fork_pipe[2] = {-1, -1};

/* --- pages that were touched ---------------------------------------------- */

static bool share_pagemap_read(uintptr_t addr, uint64_t *entries,
                               unsigned count)
{
    const size_t size = count * sizeof(*entries);

    if (share_pagemap < 0) {
        share_pagemap = hca_fd_mark(syscall(
            SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    }
    return (share_pagemap >= 0) &&
           (syscall(SYS_pread64, share_pagemap, entries, size,
                    addr / HCA_SHARE_PAGE * sizeof(*entries)) == (long)size);
}

bool hca_share_pages_are_private(uintptr_t addr)
{
    uint64_t entry;

    return share_pagemap_read(addr, &entry, 1) &&
           ((entry & (PAGEMAP_PRESENT | PAGEMAP_SHARED)) == PAGEMAP_PRESENT);
}

/* mincore() would say no of pages that were swapped out. */
static bool share_is_fresh(uintptr_t start, uintptr_t end)
{
    uint64_t entries[PAGEMAP_BATCH];

    while (start < end) {
        size_t count = (end - start) / HCA_SHARE_PAGE;

        count = (count < PAGEMAP_BATCH) ? count : PAGEMAP_BATCH;
        if (!share_pagemap_read(start, entries, count)) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            if (entries[i] & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED)) {
                return false;
            }
        }
        start += count * HCA_SHARE_PAGE;
    }
    return true;
}

/* --- the memfd ------------------------------------------------------------ */

static int share_create(void)
{
    struct rlimit limit;
    struct stat st;
    int fd, ret;

    /* ftruncate() above it would end the process by SIGXFSZ */
    if ((getrlimit(RLIMIT_FSIZE, &limit) != 0) ||
        (limit.rlim_cur < SHARE_FILE_SIZE)) {
        return -EFBIG;
    }
    ret = hca_maps_keep(); /* else hca_share_discard() might not look */
    if (ret != 0) {
        return ret;
    }
    fd = memfd_create("softhca-share", MFD_CLOEXEC);
    if ((fd < 0) || (fchmod(fd, 0600) < 0) ||
        (ftruncate(fd, SHARE_FILE_SIZE) < 0) ||
        (hca_sys()->fstat(fd, &st) < 0)) {
        ret = -errno;
        syscall(SYS_close, fd);
        return ret;
    }
    share_dev   = st.st_dev;
    share_inode = st.st_ino;
    share_next  = 0;
    share_fd    = hca_fd_mark(fd);
    return 0;
}

/* The program may have put a file of its own in the place of the memfd. */
static bool share_has_fd(void)
{
    return (share_fd >= 0) && hca_fd_is_own(share_fd);
}

int hca_share_pages_fd(void)
{
    return share_has_fd() ? share_fd : -1;
}

bool hca_share_pages_have(const struct hca_vma *vma)
{
    return (share_fd >= 0) && vma->is_shared && (vma->dev == share_dev) &&
           (vma->inode == share_inode);
}

void hca_share_pages_punch(uint64_t offset, uint64_t size)
{
    if (share_has_fd()) {
        syscall(SYS_fallocate, share_fd,
                FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
    }
}

/* Maps the window over the pages, in one step. If that fails, the pages are as
 * before; older kernels may leave nothing there: then they are fresh ones. */
static int share_map(void *pages, size_t size)
{
    long ret = syscall(SYS_mmap, pages, size, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED | MAP_NORESERVE, share_fd,
                       share_next);
    int error;

    if (ret != -1) {
        return 0;
    }
    error = -errno;
    if (syscall(SYS_mprotect, pages, size, PROT_READ | PROT_WRITE) != 0) {
        syscall(SYS_mmap, pages, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0ul);
    }
    return error;
}

/* Another thread may have shared these pages as a queue (hca_umem.h), or the
 * program may have replaced them. */
static bool share_is_private(uintptr_t start, uintptr_t end)
{
    struct hca_vma vma;

    return hca_maps_find(start, &vma) && (vma.end >= end) && !vma.is_shared &&
           (vma.inode == 0);
}

/* Looks again while no store can touch the pages. */
static int share_replace(uintptr_t start, uintptr_t end)
{
    size_t size = end - start;
    void *pages = (void *)start;
    int ret     = hca_freeze_begin(pages, size);

    if (ret != 0) {
        return ret;
    }
    if (syscall(SYS_mprotect, pages, size, PROT_READ) != 0) {
        ret = -errno;
    } else if (!share_is_private(start, end) || !share_is_fresh(start, end)) {
        syscall(SYS_mprotect, pages, size, PROT_READ | PROT_WRITE);
        ret = -EBUSY;
    } else {
        ret = share_map(pages, size);
    }
    hca_freeze_end();
    return ret;
}

/* A policy of mbind(), which the kernel shows in no file. */
struct share_policy {
    int mode;
    unsigned long nodes[16]; /* SHARE_MAX_NODES bits */
};

#define SHARE_MAX_NODES 1024ul

/* Without NUMA it is MPOL_DEFAULT. */
static void share_policy_get(uintptr_t start, struct share_policy *policy)
{
    if (syscall(SYS_get_mempolicy, &policy->mode, policy->nodes,
                SHARE_MAX_NODES, start, (unsigned long)MPOL_F_ADDR) != 0) {
        policy->mode = MPOL_DEFAULT;
    }
}

static void share_policy_set(uintptr_t start, uintptr_t end,
                             const struct share_policy *policy)
{
    if (policy->mode != MPOL_DEFAULT) {
        syscall(SYS_mbind, start, end - start, policy->mode, policy->nodes,
                SHARE_MAX_NODES, 0ul);
    }
}

/* Gives the new mapping the advice that the old one had. */
static void share_advise(uintptr_t start, uintptr_t end, int advice)
{
    for (int i = 0; advice >> i != 0; i++) {
        if ((advice >> i) & 1) {
            syscall(SYS_madvise, start, end - start, i);
        }
    }
}

int hca_share_pages_convert(uintptr_t start, uintptr_t end, uint64_t *offset)
{
    struct share_policy policy;
    int advice, ret;

    if ((end - start > HCA_SHARE_WINDOW) || !share_is_fresh(start, end)) {
        return -EBUSY;
    }
    advice = hca_maps_plain(start, end);
    if (advice < 0) {
        return advice;
    }
    ret = (share_fd < 0) ? share_create() : share_has_fd() ? 0 : -EBADF;
    if (ret != 0) {
        return ret;
    }
    if (share_next > SHARE_FILE_SIZE - HCA_SHARE_WINDOW) {
        return -ENOSPC;
    }
    *offset = share_next;
    share_policy_get(start, &policy);
    ret = share_replace(start, end);
    if (ret == 0) {
        share_next += HCA_SHARE_WINDOW;
        share_advise(start, end, advice);
        share_policy_set(start, end, &policy);
    }
    return ret;
}

/* --- fork ----------------------------------------------------------------- */

void hca_share_pages_fork_begin(void)
{
    if ((share_fd >= 0) && (pipe2(share_fork_pipe, O_CLOEXEC) < 0)) {
        share_fork_pipe[0] = -1;
        share_fork_pipe[1] = -1;
        hca_warn("fork: no descriptor to wait with: the child may see stores "
                 "of its parent to registered memory: raise ulimit -n");
    }
}

void hca_share_pages_fork_end(void)
{
    char byte;

    if (share_fork_pipe[0] < 0) {
        return;
    }
    syscall(SYS_close, share_fork_pipe[1]);
    while ((syscall(SYS_read, share_fork_pipe[0], &byte, 1ul) < 0) &&
           (errno == EINTR)) {
    }
    syscall(SYS_close, share_fork_pipe[0]);
    share_fork_pipe[0] = -1;
}

/* Copies the parts of the file that have pages. */
static int share_read(char *to, const struct hca_vma *vma)
{
    uint64_t offset = vma->offset, at = offset;
    uint64_t end = offset + (vma->end - vma->start);

    if (!share_has_fd()) { /* holes are copied, too */
        memcpy(to, (const void *)vma->start, end - offset);
        return 0;
    }
    while (at < end) {
        long data = syscall(SYS_lseek, share_fd, at, SEEK_DATA), got;

        if ((data < 0) || ((uint64_t)data >= end)) {
            return ((data < 0) && (errno != ENXIO)) ? -errno : 0;
        }
        at  = syscall(SYS_lseek, share_fd, data, SEEK_HOLE);
        at  = (at < end) ? at : end;
        got = syscall(SYS_pread64, share_fd, to + (data - offset), at - data,
                      data);
        if (got <= 0) {
            return -EIO;
        }
        at = data + got;
    }
    return 0;
}

/* Puts a private copy in the place of a mapping of the parent's memfd. */
static int share_make_private(const struct hca_vma *vma)
{
    size_t size = vma->end - vma->start;
    char *copy  = (char *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                  -1, 0ul);
    int ret;

    if (copy == MAP_FAILED) {
        return -errno;
    }
    ret = share_read(copy, vma);
    if ((ret == 0) && (vma->prot != (PROT_READ | PROT_WRITE)) &&
        (syscall(SYS_mprotect, copy, size, vma->prot) != 0)) {
        ret = -errno;
    }
    if ((ret == 0) &&
        (syscall(SYS_mremap, copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
                 vma->start) < 0)) {
        ret = -errno;
    }
    if (ret != 0) {
        syscall(SYS_munmap, copy, size);
    }
    return ret;
}

/* A child that has memory in common with its parent would spoil it. */
static void share_end_child(const char *reason)
{
    hca_error("fork: registered memory cannot be copied: %s; the child ends",
              reason);
    syscall(SYS_exit_group, EXIT_FAILURE);
}

/* Makes the mapping private at least, if it cannot be copied: a store of one
 * process is then not seen by the other. */
static void share_forked_vma(const struct hca_vma *vma, void *arg)
{
    int ret;

    (void)arg;
    if (!hca_share_pages_have(vma)) {
        return;
    }
    ret = share_make_private(vma);
    if (ret != 0) {
        hca_error("fork: no memory for a copy of registered memory at %p: %s",
                  (void *)vma->start, strerror(-ret));
        if (!share_has_fd() ||
            (syscall(SYS_mmap, vma->start, vma->end - vma->start, vma->prot,
                     MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, share_fd,
                     vma->offset) == -1)) {
            share_end_child(strerror(-ret));
        }
    }
}

void hca_share_pages_forked(void)
{
    /* first, as the walk needs a descriptor */
    hca_maps_forked();
    if (share_pagemap >= 0) {
        hca_fd_close(share_pagemap); /* of the parent's memory */
        share_pagemap = -1;
    }
    if (share_fork_pipe[0] >= 0) {
        syscall(SYS_close, share_fork_pipe[0]);
    }
    if (share_fd >= 0) {
        if (!hca_maps_walk(share_forked_vma, NULL)) {
            share_end_child(
                "/proc/self/maps cannot be opened: raise ulimit -n");
        }
        hca_fd_close(share_fd);
        share_fd = -1;
    }
    if (share_fork_pipe[0] >= 0) {
        syscall(SYS_close, share_fork_pipe[1]); /* lets the parent go on */
        share_fork_pipe[0] = -1;
    }
}
