/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pages that the program shares with the device: see hca_umem.h. System calls
 * are made directly, past any hook. hca_umem_mutex guards the list.
 */
#define _GNU_SOURCE
#include "hca_umem.h"
#include "hca_arena.h"
#include "hca_fabric.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_maps.h"
#include "hca_segment.h"
#include "softhca/doorbell/hca_trap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define UMEM_PAGE  4096ul
#define UMEM_STACK 65536ul

static pthread_mutex_t hca_umem_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hca_umem *hca_umems;

/* Puts the pages at `from` in place of those at `to`, in one step. */
static int hca_umem_move(void *from, size_t size, void *to)
{
    long ret = syscall(SYS_mremap, from, size, size,
                       MREMAP_MAYMOVE | MREMAP_FIXED, to);

    return (ret < 0) ? -errno : 0;
}

/* As the kernel copies: what is not there is an error and no fault. */
static int hca_umem_copy(void *to, void *from, size_t size)
{
    struct iovec local  = {to, size};
    struct iovec remote = {from, size};
    ssize_t ret = syscall(SYS_process_vm_readv, getpid(), &local, 1ul, &remote,
                          1ul, 0ul);

    return (ret == (ssize_t)size) ? 0 : -EFAULT;
}

static bool hca_umem_overlaps(const struct hca_umem *umem)
{
    const struct hca_umem *other = hca_umems;

    while ((other != NULL) && ((umem->pages >= other->pages + other->size) ||
                               (other->pages >= umem->pages + umem->size))) {
        other = other->next;
    }
    return other != NULL;
}

/* The exchange itself needs the stack from here on downwards. */
static bool hca_umem_is_stack(const struct hca_umem *umem, uintptr_t frame)
{
    uintptr_t start = (uintptr_t)umem->pages;

    return (frame >= start) && (frame - UMEM_STACK < start + umem->size);
}

/* Neither this process nor a peer (hca_mem.c) writes there meanwhile. */
static int hca_umem_freeze(void *pages, size_t size)
{
    int ret = hca_trap_freeze(pages, size);

    if (ret == 0) {
        atomic_fetch_add(&hca_fabric->procs[hca_self].freezes, 1);
    }
    return ret;
}

static void hca_umem_thaw(void)
{
    atomic_fetch_add(&hca_fabric->procs[hca_self].freezes, 1);
    hca_trap_thaw();
}

/* Nobody writes to the pages between their copy and their exchange. That they
 * can be read is found out before their protection changes. */
static int hca_umem_exchange(struct hca_umem *umem)
{
    int ret = hca_umem_copy(umem->base, umem->pages, umem->size);

    if (ret == 0) {
        ret = hca_umem_freeze(umem->pages, umem->size);
    }
    if (ret != 0) {
        return ret;
    }
    if (syscall(SYS_mprotect, umem->pages, umem->size, PROT_READ) != 0) {
        ret = -EFAULT;
        goto out;
    }
    ret = hca_umem_copy(umem->base, umem->pages, umem->size);
    if (ret == 0) {
        ret = hca_segment_map_again(umem->base, umem->size, umem->pages);
    }
    if (ret != 0) {
        syscall(SYS_mprotect, umem->pages, umem->size, PROT_READ | PROT_WRITE);
    }
out:
    hca_umem_thaw();
    return ret;
}

/* Pages that others have as well would be theirs alone afterwards. */
static int hca_umem_check(const struct hca_umem *umem, bool writes)
{
    struct hca_range range = {
        .start = (uintptr_t)umem->pages,
        .end   = (uintptr_t)umem->pages + umem->size,
    };
    int ret = hca_maps_query(&range);

    if (ret != 0) {
        return ret;
    }
    if (!range.is_whole || !(range.prot & PROT_READ) ||
        (writes && !(range.prot & PROT_WRITE))) {
        return -EFAULT;
    }
    return (range.is_shared || !(range.prot & PROT_WRITE)) ? -EOPNOTSUPP : 0;
}

static int hca_umem_take(struct hca_umem *umem, bool writes)
{
    int ret;

    if (hca_umem_overlaps(umem)) {
        return -EEXIST;
    }
    ret = hca_umem_check(umem, writes);
    if (ret != 0) {
        return ret;
    }
    umem->base = hca_arena_alloc(umem->size);
    if (umem->base == NULL) {
        return -ENOMEM;
    }
    ret = hca_umem_exchange(umem);
    if (ret != 0) {
        hca_arena_free(umem->base);
        return ret;
    }
    umem->next = hca_umems;
    hca_umems  = umem;
    return 0;
}

int hca_umem_share(struct hca_umem *umem, uint64_t addr, size_t length,
                   bool writes)
{
    char *ptr = (char*)(uintptr_t)addr;
    int ret;

    *umem = (struct hca_umem){.mem = ptr};
    if (hca_arena_contains(ptr, length)) {
        return 0;
    }
    umem->pages = (char*)(addr & ~(UMEM_PAGE - 1));
    if (umem->pages == NULL) {
        return -EFAULT; /* nobody has the first page */
    }
    umem->size  = (ptr - umem->pages + length + UMEM_PAGE - 1) &
                  ~(UMEM_PAGE - 1);
    if (hca_umem_is_stack(umem, (uintptr_t)__builtin_frame_address(0))) {
        return -EINVAL;
    }
    pthread_mutex_lock(&hca_umem_mutex);
    ret = hca_umem_take(umem, writes);
    pthread_mutex_unlock(&hca_umem_mutex);
    if (ret == 0) {
        umem->mem = umem->base + (ptr - umem->pages);
    }
    return ret;
}

/* A private copy in place of a run of shared pages. */
static int hca_umem_make_private(char *pages, size_t size)
{
    void *copy = (void*)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0ul);
    int ret;

    if (copy == MAP_FAILED) {
        return -errno;
    }
    ret = hca_umem_freeze(pages, size);
    if (ret == 0) {
        syscall(SYS_mprotect, pages, size, PROT_READ);
        ret = hca_umem_copy(copy, pages, size);
        if (ret == 0) {
            ret = hca_umem_move(copy, size, pages);
        }
        if (ret != 0) {
            syscall(SYS_mprotect, pages, size, PROT_READ | PROT_WRITE);
        }
        hca_umem_thaw();
    }
    if (ret != 0) {
        syscall(SYS_munmap, copy, size);
    }
    return ret;
}

/* The program may have unmapped its pages, and something else may lie there:
 * only what is still the arena's at the right place is exchanged. */
static void hca_umem_unshare_vma(const struct hca_vma *vma, void *arg)
{
    const struct hca_umem *umem = arg;
    uintptr_t start = (uintptr_t)umem->pages, end = start + umem->size;
    uint64_t offset;
    int ret;

    start  = (vma->start > start) ? vma->start : start;
    end    = (vma->end < end) ? vma->end : end;
    if ((start >= end) || (strstr(vma->line, "/memfd:softhca:") == NULL)) {
        return;
    }
    offset = hca_off(umem->base) + (start - (uintptr_t)umem->pages);
    if (vma->offset + (start - vma->start) != offset) {
        return;
    }
    ret = hca_umem_make_private((char*)start, end - start);
    if (ret != 0) {
        hca_error("umem: cannot give pages at %p back: %s", (void*)start,
                  strerror(-ret));
    }
}

void hca_umem_unshare(struct hca_umem *umem)
{
    struct hca_umem **link = &hca_umems;

    if (umem->pages == NULL) {
        return;
    }
    pthread_mutex_lock(&hca_umem_mutex);
    while ((*link != NULL) && (*link != umem)) {
        link = &(*link)->next;
    }
    if (*link != NULL) { /* else: abandoned before */
        *link = umem->next;
        hca_maps_walk(hca_umem_unshare_vma, umem);
    }
    pthread_mutex_unlock(&hca_umem_mutex);
    hca_arena_free(umem->base);
}

void hca_umem_abandon(void)
{
    pthread_mutex_lock(&hca_umem_mutex);
    while (hca_umems != NULL) {
        hca_maps_walk(hca_umem_unshare_vma, hca_umems);
        hca_umems = hca_umems->next;
    }
    pthread_mutex_unlock(&hca_umem_mutex);
}

/* There is one thread, and a lock that another may have held. */
void hca_umem_forked(void)
{
    pthread_mutex_init(&hca_umem_mutex, NULL);
    hca_trap_freeze_forked();
    hca_umem_abandon();
}
