/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pages that the program shares with the device: see hca_umem.h. System calls
 * are made directly, past any hook. hca_umem_mutex guards the list of spans; it
 * is held over fork().
 */
#define _GNU_SOURCE
#include "hca_umem.h"
#include "hca_arena.h"
#include "hca_freeze.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_maps.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/base/hca_sys.h"
#include "hca_segment.h"
#include "hca_share.h"
#include "softhca/doorbell/hca_trap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UMEM_PAGE  4096ul
#define UMEM_STACK 65536ul
#define UMEM_MAX   (1ul << 56) /* beyond every address of a program */

/* Bytes of a span before and behind its first umem, for umems that follow: an
 * allocator often begins a piece in the page where the last one ended, and a
 * page is at one place in the arena only. All processes take spans from one
 * arena: the first ones of a process get most room, as long as half of the
 * arena is free. */
#define UMEM_ROOM_MOST  (2ul << 20)
#define UMEM_ROOM       (128 * 1024ul)
#define UMEM_ROOM_LEAST (16 * 1024ul)
#define UMEM_ROOMS_MOST 64
#define UMEM_ROOMS      1024

/* A range of the program's addresses that has a range of the arena. Not all of
 * its pages are shared. */
struct hca_span {
    uintptr_t start, end;
    char *base;          /* address of `start` in the arena */
    unsigned num_shared; /* pages that have users */
    struct hca_span *next;
    uint32_t users[]; /* umems, of each page */
};

static pthread_mutex_t hca_umem_mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static struct hca_span *hca_spans;
static unsigned hca_num_spans;

/* Moves the pages at @from over those at @to, in one step. */
static int hca_umem_move(void *from, size_t size, void *to)
{
    long ret = syscall(SYS_mremap, from, size, size,
                       MREMAP_MAYMOVE | MREMAP_FIXED, to);

    return (ret < 0) ? -errno : 0;
}

/* Returns true if some pages are of this thread's stack from @frame on
 * downwards, which the exchange itself needs. */
static bool hca_umem_is_stack(const struct hca_umem *umem, uintptr_t frame)
{
    uintptr_t start = (uintptr_t)umem->pages;

    return (frame >= start) && (frame - UMEM_STACK < start + umem->size);
}

/* Copies the pages to the arena and maps it in their place. No thread or peer
 * writes to them in between. A first copy shows if they are readable, before
 * their protection changes. */
static int hca_umem_exchange(char *pages, size_t size, char *base)
{
    int ret = hca_freeze_begin(pages, size);

    if (ret != 0) {
        return ret;
    }
    if ((hca_trap_guard_memcpy(base, pages, size) != 0) ||
        (syscall(SYS_mprotect, pages, size, PROT_READ) != 0)) {
        ret = -EFAULT;
        goto out;
    }
    ret = hca_trap_guard_memcpy(base, pages, size);
    if (ret == 0) {
        ret = hca_segment_map_again(base, size, pages);
    }
    if (ret != 0) {
        syscall(SYS_mprotect, pages, size, PROT_READ | PROT_WRITE);
    }
out:
    hca_freeze_end();
    return ret;
}

/* Checks rights, and rejects pages that are shared with other processes: they
 * would be private afterwards. */
static int hca_umem_check(char *pages, size_t size, bool writes)
{
    struct hca_range range = {
        .start = (uintptr_t)pages,
        .end   = (uintptr_t)pages + size,
    };
    int ret = hca_maps_query(&range);

    if (ret != 0) {
        return ret;
    }
    if (!range.is_whole || !(range.prot & PROT_READ) ||
        (writes && !(range.prot & PROT_WRITE))) {
        return -EFAULT;
    }
    return ((range.is_shared && !hca_share_has(range.start, range.end)) ||
            !(range.prot & PROT_WRITE)) ?
               -EOPNOTSUPP :
               0;
}

/* Puts a private copy in place of a run of shared pages. */
static int hca_umem_make_private(char *pages, size_t size)
{
    void *copy = (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0ul);
    int ret;

    if (copy == MAP_FAILED) {
        return -errno;
    }
    ret = hca_freeze_begin(pages, size);
    if (ret == 0) {
        syscall(SYS_mprotect, pages, size, PROT_READ);
        ret = hca_trap_guard_memcpy(copy, pages, size);
        if (ret == 0) {
            ret = hca_umem_move(copy, size, pages);
        }
        if (ret != 0) {
            syscall(SYS_mprotect, pages, size, PROT_READ | PROT_WRITE);
        }
        hca_freeze_end();
    }
    if (ret != 0) {
        syscall(SYS_munmap, copy, size);
    }
    return ret;
}

/* --- shared pages --------------------------------------------------------- */

/* A part of a span. The program may have mapped something else there: only
 * pages count that are still the arena's, at the right place. */
struct hca_umem_part {
    const struct hca_span *span;
    uintptr_t start, end;
    size_t size; /* bytes that are still there */
};

/* Cuts the part to its overlap with @vma. @return true if that has pages of the
 * span. */
static bool hca_umem_cut(const struct hca_vma *vma, struct hca_umem_part *part)
{
    uint64_t offset;

    part->start = (vma->start > part->start) ? vma->start : part->start;
    part->end   = (vma->end < part->end) ? vma->end : part->end;
    if ((part->start >= part->end) ||
        (strstr(vma->line, "/memfd:softhca:") == NULL)) {
        return false;
    }
    offset = hca_off(part->span->base) + (part->start - part->span->start);
    return vma->offset + (part->start - vma->start) == offset;
}

static void hca_umem_count_vma(const struct hca_vma *vma, void *arg)
{
    struct hca_umem_part *part = arg, cut = *part;

    if (hca_umem_cut(vma, &cut)) {
        part->size += cut.end - cut.start;
    }
}

static void hca_umem_unshare_vma(const struct hca_vma *vma, void *arg)
{
    struct hca_umem_part part = *(const struct hca_umem_part *)arg;
    int ret;

    if (!hca_umem_cut(vma, &part)) {
        return;
    }
    ret = hca_umem_make_private((char *)part.start, part.end - part.start);
    if (ret != 0) {
        hca_error("umem: failed to make pages at %p private again: %s",
                  (void *)part.start, strerror(-ret));
    }
}

static uint32_t *hca_span_users(struct hca_span *span, uintptr_t page)
{
    return &span->users[(page - span->start) / UMEM_PAGE];
}

static char *hca_span_mem(const struct hca_span *span, uintptr_t addr)
{
    return span->base + (addr - span->start);
}

/* Returns the end of the run of pages from @page on that all have users, or all
 * have none. */
static uintptr_t hca_span_run(struct hca_span *span, uintptr_t page,
                              uintptr_t end)
{
    bool is_shared = (*hca_span_users(span, page) != 0);

    while ((page < end) && ((*hca_span_users(span, page) != 0) == is_shared)) {
        page += UMEM_PAGE;
    }
    return page;
}

/* Returns the bytes of the range that are shared by way of this span. */
static size_t hca_span_shared(struct hca_span *span, uintptr_t start,
                              uintptr_t end)
{
    size_t size = 0;

    start = (span->start > start) ? span->start : start;
    end   = (span->end < end) ? span->end : end;
    for (uintptr_t page = start; page < end; page += UMEM_PAGE) {
        size += (*hca_span_users(span, page) != 0) ? UMEM_PAGE : 0;
    }
    return size;
}

static uintptr_t hca_span_room(void)
{
    if ((hca_num_spans < UMEM_ROOMS_MOST) && hca_arena_is_ample()) {
        return UMEM_ROOM_MOST;
    }
    return (hca_num_spans < UMEM_ROOMS) ? UMEM_ROOM : UMEM_ROOM_LEAST;
}

static struct hca_span *hca_span_create(uintptr_t start, uintptr_t end)
{
    uintptr_t room = hca_span_room();
    struct hca_span *span;

    start = (start > room) ? (start - room) & ~(room - 1) : 0;
    end   = (end + 2 * room - 1) & ~(room - 1);
    span  = calloc(1, sizeof(*span) +
                          (end - start) / UMEM_PAGE * sizeof(span->users[0]));
    if (span == NULL) {
        return NULL;
    }
    span->base = hca_arena_reserve(end - start);
    if (span->base == NULL) {
        free(span);
        return NULL;
    }
    span->start = start;
    span->end   = end;
    span->next  = hca_spans;
    hca_spans   = span;
    hca_num_spans++;
    return span;
}

static void hca_span_destroy(struct hca_span *span)
{
    struct hca_span **link = &hca_spans;

    while (*link != span) {
        link = &(*link)->next;
    }
    *link = span->next;
    hca_num_spans--;
    hca_arena_free(span->base);
    free(span);
}

/* Finds or creates the span of a umem. If some of its pages are shared already,
 * all of them must be in that span (else -EEXIST). */
static int hca_umem_find_span(struct hca_umem *umem)
{
    uintptr_t start = (uintptr_t)umem->pages, end = start + umem->size;
    struct hca_umem_part part = {.start = start, .end = end};
    size_t shared             = 0;

    for (struct hca_span *span = hca_spans; span; span = span->next) {
        size_t size = hca_span_shared(span, start, end);
        bool fits   = (span->start <= start) && (end <= span->end);

        if ((size != 0) && (!fits || (shared != 0))) {
            return -EEXIST;
        }
        if ((size != 0) || (fits && (shared == 0))) {
            umem->span = span;
        }
        shared += size;
    }
    if (shared != 0) {
        part.span = umem->span;
        hca_maps_walk(hca_umem_count_vma, &part);
        return (part.size == shared) ? 0 : -EEXIST;
    }
    if (umem->span == NULL) {
        umem->span = hca_span_create(start, end);
    }
    return (umem->span != NULL) ? 0 : -ENOMEM;
}

/* Removes a user from each page. Pages without users become private. */
static void hca_umem_drop(struct hca_span *span, uintptr_t start, uintptr_t end)
{
    for (uintptr_t page = start, next; page < end; page = next) {
        next = page + UMEM_PAGE;
        if (--*hca_span_users(span, page) != 0) {
            continue;
        }
        while ((next < end) && (*hca_span_users(span, next) == 1)) {
            *hca_span_users(span, next) = 0;
            next += UMEM_PAGE;
        }
        hca_maps_walk(hca_umem_unshare_vma,
                      &(struct hca_umem_part){span, page, next, 0});
        hca_sys()->madvise(hca_span_mem(span, page), next - page, MADV_REMOVE);
        span->num_shared -= (next - page) / UMEM_PAGE;
    }
    if (span->num_shared == 0) {
        hca_span_destroy(span);
    }
}

static int hca_umem_take_run(struct hca_span *span, uintptr_t start,
                             uintptr_t end, bool writes)
{
    int ret;

    if (*hca_span_users(span, start) == 0) {
        hca_share_evict(start, end);
        ret = hca_umem_check((char *)start, end - start, writes);
        if (ret == 0) {
            ret = hca_umem_exchange((char *)start, end - start,
                                    hca_span_mem(span, start));
        }
        if (ret != 0) {
            return ret;
        }
        span->num_shared += (end - start) / UMEM_PAGE;
    }
    for (uintptr_t page = start; page < end; page += UMEM_PAGE) {
        ++*hca_span_users(span, page);
    }
    return 0;
}

static int hca_umem_take(struct hca_umem *umem, bool writes)
{
    uintptr_t start = (uintptr_t)umem->pages, end = start + umem->size, next;
    int ret = hca_umem_find_span(umem);

    for (uintptr_t page = start; (ret == 0) && (page < end); page = next) {
        next = hca_span_run(umem->span, page, end);
        ret  = hca_umem_take_run(umem->span, page, next, writes);
        if (ret != 0) {
            hca_umem_drop(umem->span, start, page);
        }
    }
    return ret;
}

int hca_umem_share(struct hca_umem *umem, uint64_t addr, size_t length,
                   bool writes)
{
    char *ptr = (char *)(uintptr_t)addr;
    int ret;

    *umem = (struct hca_umem){.mem = ptr};
    if (hca_arena_contains(ptr, length)) {
        return 0;
    }
    if ((addr > UMEM_MAX) || (length > UMEM_MAX - addr)) {
        return -EFAULT;
    }
    if (length > HCA_MAX_CHUNKS * HCA_CHUNK_SIZE) {
        return -ENOMEM;
    }
    umem->pages = (char *)(addr & ~(UMEM_PAGE - 1));
    umem->size  = (ptr - umem->pages + length + UMEM_PAGE - 1) &
                 ~(UMEM_PAGE - 1);
    ret = (umem->pages == NULL) ? -EFAULT /* page 0 is never mapped */ :
          hca_umem_is_stack(umem, (uintptr_t)__builtin_frame_address(0)) ?
                                  -EINVAL :
                                  0;
    if (ret == 0) {
        pthread_mutex_lock(&hca_umem_mutex);
        ret = hca_umem_take(umem, writes);
        pthread_mutex_unlock(&hca_umem_mutex);
    }
    if (ret != 0) {
        umem->pages = NULL;
        return ret;
    }
    umem->mem = hca_span_mem(umem->span, addr);
    return 0;
}

void hca_umem_unshare(struct hca_umem *umem)
{
    uintptr_t start = (uintptr_t)umem->pages;
    const struct hca_span *span;

    if (start == 0) {
        return;
    }
    pthread_mutex_lock(&hca_umem_mutex);
    for (span = hca_spans; (span != NULL) && (span != umem->span);) {
        span = span->next;
    }
    if (span != NULL) { /* else: abandoned before */
        hca_umem_drop(umem->span, start, start + umem->size);
    }
    pthread_mutex_unlock(&hca_umem_mutex);
}

const char *hca_umem_error(int error)
{
    switch (error) {
    case EEXIST:
        return "some of these pages are already shared, but not as one range";
    case EOPNOTSUPP:
        return "it is shared with other processes, or read-only";
    default:
        return strerror(error);
    }
}

/* Waits until hca_mutex_deadline(): a thread with the mutex may wait for a
 * stopped process, and exchanges no pages then. */
static void hca_umem_lock_last(void)
{
    struct timespec deadline = hca_mutex_deadline();

    pthread_mutex_clocklock(&hca_umem_mutex, CLOCK_MONOTONIC, &deadline);
}

void hca_umem_abandon(void)
{
    hca_umem_lock_last();
    for (struct hca_span *span = hca_spans; span; span = span->next) {
        hca_maps_walk(hca_umem_unshare_vma,
                      &(struct hca_umem_part){span, span->start, span->end, 0});
    }
    hca_spans     = NULL; /* their umems still point to them */
    hca_num_spans = 0;
    pthread_mutex_unlock(&hca_umem_mutex); /* fails without the mutex */
}

void hca_umem_fork_begin(void)
{
    hca_umem_lock_last();
}

void hca_umem_fork_end(void)
{
    pthread_mutex_unlock(&hca_umem_mutex);
}

void hca_umem_forked(void)
{
    hca_umem_mutex = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    hca_trap_freeze_forked();
    hca_umem_abandon();
}
