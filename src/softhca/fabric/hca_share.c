/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Runs of this process: see hca_share.h. share_mutex guards all; it is held
 * over fork().
 */
#define _GNU_SOURCE
#include "hca_share.h"
#include "hca_caps.h"
#include "hca_segment.h"
#include "hca_share_file.h"
#include "hca_share_pages.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/base/hca_valgrind.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Debian 12's kernel headers lack its name */
#define HCA_MADV_DONTNEED_LOCKED 24

/* Shorter memory is not worth a mapping in each process. */
#define SHARE_LEAST (4 * HCA_SHARE_PAGE)

/* Retired windows are searched for unmapped ones when they are more than this,
 * and more than a quarter of all. */
#define SHARE_RETIRED (64ul << 20)

/* Handle of all on-demand regions. */
#define SHARE_ODP UINT64_MAX

/* A part of a file that is, or was, mapped at run.start. One that took the
 * place of private memory (is_window) stays known without users, until its
 * pages are mapped nowhere. */
struct share_area {
    struct hca_share_run run;
    uint64_t handle; /* of hca_share_begin(), as long as it has users */
    unsigned users;
    bool is_window;
    bool is_foreign; /* of a file of the program */
};

static pthread_mutex_t share_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct share_area share_areas[HCA_SHARE_RUNS]; /* by run.start */
static unsigned share_num_areas;
static uint64_t share_looked;  /* retired bytes that were found mapped */
static unsigned share_num_odp; /* uses of SHARE_ODP */

/* After a search that found none unmapped the table stays full for a number of
 * further regions, which doubles with each such search. */
static unsigned share_pause, share_waits;

/* --- the published table -------------------------------------------------- */

/* Pairs with the loads of hca_share_map.c. Does nothing once the process has
 * left the fabric, as `seq` is odd and changes then (hca_share_map_close()). */
static void share_publish(void)
{
    struct hca_share *share = &hca_fabric->shares[hca_self];
    uint32_t seq            = atomic_fetch_or(&share->seq, 1);

    if (seq & 1) {
        return;
    }
    seq++;
    share->count = 0;
    for (unsigned i = 0; i < share_num_areas; i++) {
        if ((share_areas[i].users > 0) && (share_num_odp == 0)) {
            share->runs[share->count++] = share_areas[i].run;
        }
    }
    atomic_compare_exchange_strong(&share->seq, &seq, seq + 1);
}

static void share_remove(struct share_area *area)
{
    unsigned next = area + 1 - share_areas;

    if (area->is_foreign) {
        hca_share_file_close(&area->run);
    }
    memmove(area, area + 1, (share_num_areas - next) * sizeof(*area));
    share_num_areas--;
}

/* Adds an area, which overlaps no other that has users.
 * @return NULL if there are too many. */
static struct share_area *share_insert(const struct share_area *area)
{
    unsigned at = share_num_areas;

    if (share_num_areas == HCA_SHARE_RUNS) {
        return NULL;
    }
    while ((at > 0) && (share_areas[at - 1].run.start > area->run.start)) {
        share_areas[at] = share_areas[at - 1];
        at--;
    }
    share_areas[at] = *area;
    share_num_areas++;
    return &share_areas[at];
}

/* Adds a user to the area. Peers that have mapped it read-only map it again
 * when it becomes writable. */
static uint64_t share_use(struct share_area *area, bool writes)
{
    if ((area->users == 0) || (writes && !area->run.is_writable)) {
        area->run.id          = atomic_fetch_add(&hca_fabric->num_runs, 1) + 1;
        area->run.is_writable = writes;
        area->handle = (area->users == 0) ? area->run.id : area->handle;
        area->users++;
        share_publish();
    } else {
        area->users++;
    }
    return area->handle;
}

/* --- windows -------------------------------------------------------------- */

static uint64_t share_window(uint64_t offset)
{
    return offset & ~(HCA_SHARE_WINDOW - 1);
}

static void share_mark_vma(const struct hca_vma *vma, void *arg)
{
    bool *is_mapped = arg;

    if (!hca_share_pages_have(vma)) {
        return;
    }
    for (unsigned i = 0; i < share_num_areas; i++) {
        is_mapped[i] |= share_window(vma->offset) ==
                        share_window(share_areas[i].run.offset);
    }
}

static uint64_t share_size(const struct share_area *area)
{
    return area->run.end - area->run.start;
}

/* Frees windows without users that are mapped nowhere. The program may have
 * moved them: so the mappings are searched by the place in the file. */
static void share_collect(void)
{
    bool is_mapped[HCA_SHARE_RUNS] = {false};

    /* twice, as another thread may move a mapping to where the first walk has
     * been */
    if (!hca_maps_walk(share_mark_vma, is_mapped) ||
        !hca_maps_walk(share_mark_vma, is_mapped)) {
        return;
    }
    share_looked = 0;
    for (unsigned i = share_num_areas; i-- > 0;) {
        struct share_area *area = &share_areas[i];

        if (!area->is_window || (area->users > 0)) {
            continue;
        }
        if (is_mapped[i]) {
            share_looked += share_size(area);
        } else {
            hca_share_pages_punch(share_window(area->run.offset),
                                  HCA_SHARE_WINDOW);
            share_remove(area);
        }
    }
}

/* Makes room in a full table. */
static void share_collect_full(void)
{
    if (share_waits > 0) {
        share_waits--;
        return;
    }
    share_collect();
    share_pause = (share_num_areas < HCA_SHARE_RUNS) ? 0 :
                  (share_pause < HCA_SHARE_RUNS)     ? 2 * share_pause + 1 :
                                                       share_pause;
    share_waits = share_pause;
}

/* Frees memory of windows that the program has unmapped. */
static void share_collect_some(void)
{
    uint64_t retired = 0, all = 0;

    for (unsigned i = 0; i < share_num_areas; i++) {
        const struct share_area *area = &share_areas[i];

        all += area->is_window ? share_size(area) : 0;
        retired += (area->users == 0) ? share_size(area) : 0;
    }
    if ((retired > share_looked + SHARE_RETIRED) &&
        (retired > share_looked + all / 4)) {
        share_collect();
    }
}

/* --- finding a run -------------------------------------------------------- */

/* Returns true if this part of the area is mapped as it was. */
static bool share_is_there(const struct share_area *area, uintptr_t start,
                           uintptr_t end)
{
    struct hca_vma vma;

    while (start < end) {
        if (!hca_maps_find(start, &vma) || !vma.is_shared ||
            (vma.dev != area->run.dev) || (vma.inode != area->run.inode) ||
            (vma.offset + (start - vma.start) !=
             area->run.offset + (start - area->run.start))) {
            return false;
        }
        start = vma.end;
    }
    return true;
}

static bool share_overlaps(const struct share_area *area, uintptr_t start,
                           uintptr_t end)
{
    return (area->run.start < end) && (area->run.end > start);
}

/* Drops the uses of an area. A window is kept until its pages are mapped
 * nowhere. */
static void share_drop(struct share_area *area)
{
    area->users = 0;
    if (!area->is_window) {
        share_remove(area);
    }
}

/* Unpublishes areas of these pages, or of them those that the program has
 * replaced. @return true if there were any */
static bool share_drop_range(uintptr_t start, uintptr_t end, bool is_certain)
{
    bool changes = false;

    for (unsigned i = share_num_areas; i-- > 0;) {
        struct share_area *area = &share_areas[i];
        uintptr_t first = area->run.start, last = area->run.end;

        if ((area->users == 0) || !share_overlaps(area, start, end)) {
            continue;
        }
        first = (first > start) ? first : start;
        last  = (last < end) ? last : end;
        if (is_certain || !share_is_there(area, first, last)) {
            hca_info("share: %p is no longer what was registered",
                     (void *)area->run.start);
            share_drop(area);
            changes = true;
        }
    }
    if (changes) {
        share_publish();
    }
    return changes;
}

/* Finds the area in use that has all of the range. */
static struct share_area *share_find(uintptr_t start, uintptr_t end)
{
    for (unsigned i = 0; i < share_num_areas; i++) {
        struct share_area *area = &share_areas[i];

        if ((area->users > 0) && (area->run.start <= start) &&
            (area->run.end >= end)) {
            return area;
        }
    }
    return NULL;
}

/* Converts private memory that was never touched. */
static struct share_area *share_convert(uintptr_t start, uintptr_t end)
{
    struct share_area area = {
        .run       = {.start = start, .end = end},
        .is_window = true,
    };
    struct hca_vma vma;
    int ret;

    share_collect_some();
    if (share_num_areas == HCA_SHARE_RUNS) {
        share_collect_full();
    }
    if (share_num_areas == HCA_SHARE_RUNS) {
        return NULL;
    }
    ret = hca_share_pages_convert(start, end, &area.run.offset);
    if ((ret != 0) && (ret != -EBUSY)) {
        hca_info("share: %p: pages stay private: %s", (void *)start,
                 strerror(-ret));
    }
    if ((ret != 0) || !hca_maps_find(start, &vma)) {
        return NULL;
    }
    area.run.file  = hca_share_pages_fd();
    area.run.dev   = vma.dev;
    area.run.inode = vma.inode;
    return share_insert(&area);
}

/* Removes the area from the table if it is a window without users, and is the
 * one that the mapping is of. */
static bool share_take_window(const struct hca_vma *vma)
{
    for (unsigned i = 0; i < share_num_areas; i++) {
        struct share_area *area = &share_areas[i];

        if (area->is_window && (area->users == 0) &&
            (share_window(area->run.offset) == share_window(vma->offset))) {
            share_remove(area);
            return true;
        }
    }
    return false;
}

/* Makes an area of a mapping that is shared, as far as no other area has
 * addresses of it. */
static struct share_area *share_adopt(const struct hca_vma *vma,
                                      uintptr_t start, uintptr_t end)
{
    struct share_area area = {
        .run = {.start = vma->start,
                .end   = vma->end,
                .dev   = vma->dev,
                .inode = vma->inode},
    };

    for (unsigned i = 0; i < share_num_areas; i++) {
        const struct share_area *other = &share_areas[i];

        if (other->users == 0) {
            continue;
        }
        if (share_overlaps(other, start, end)) {
            return NULL;
        }
        if ((other->run.end <= start) && (other->run.end > area.run.start)) {
            area.run.start = other->run.end;
        }
        if ((other->run.start >= end) && (other->run.start < area.run.end)) {
            area.run.end = other->run.start;
        }
    }
    area.run.offset = vma->offset + (area.run.start - vma->start);
    if (hca_share_pages_have(vma)) {
        area.run.file  = hca_share_pages_fd();
        area.is_window = share_take_window(vma);
    } else if ((share_num_areas == HCA_SHARE_RUNS) ||
               !hca_share_file_open(vma, &area.run)) {
        return NULL;
    } else {
        area.is_foreign = true;
    }
    return share_insert(&area);
}

/* The program must have the right to write, which peers get from the run.
 * Areas in use were found mapped as they were. */
static struct share_area *share_get(uintptr_t start, uintptr_t end, bool writes)
{
    uintptr_t frame         = (uintptr_t)__builtin_frame_address(0);
    struct share_area *area = share_find(start, end);
    struct hca_vma vma;

    if ((area != NULL) && (area->run.is_writable || !writes)) {
        return area;
    }
    if (!hca_maps_find(start, &vma) || (vma.end < end) ||
        (writes && !(vma.prot & PROT_WRITE))) {
        return NULL;
    }
    if (!vma.is_shared) { /* a stack stays: a forked child returns on it */
        return ((frame >= vma.start) && (frame < vma.end)) ?
                   NULL :
                   share_convert(start, end);
    }
    return (area != NULL) ? area : share_adopt(&vma, start, end);
}

/* --- interface ------------------------------------------------------------ */

bool hca_share_is_on(void)
{
    return hca_caps.share && !hca_valgrind_active();
}

/* Finds the run for whole pages, or makes one. The first and the last page may
 * stay out of it: a registration cache adds them, and they have data of an
 * allocator or of neighbours. */
static struct share_area *share_get_inner(uintptr_t start, uintptr_t end,
                                          bool writes)
{
    if (end - start < SHARE_LEAST) {
        return NULL;
    }
    if (hca_share_pages_are_private(start)) {
        start += HCA_SHARE_PAGE;
        if (hca_share_pages_are_private(start)) {
            return NULL; /* as most memory is */
        }
    }
    if (hca_share_pages_are_private(end - HCA_SHARE_PAGE)) {
        end -= HCA_SHARE_PAGE;
    }
    return (end - start >= SHARE_LEAST) ? share_get(start, end, writes) : NULL;
}

uint64_t hca_share_begin(uint64_t addr, uint64_t length, bool writes)
{
    uintptr_t start = (addr + HCA_SHARE_PAGE - 1) & ~(HCA_SHARE_PAGE - 1);
    uintptr_t end   = (addr + length) & ~(HCA_SHARE_PAGE - 1);
    struct share_area *area = NULL;
    uint64_t id             = 0;

    if (!hca_share_is_on()) {
        return 0;
    }
    pthread_mutex_lock(&share_mutex);
    share_drop_range(addr, addr + length, false);
    if (end > start) {
        area = share_get_inner(start, end, writes);
    }
    if (area != NULL) {
        id = share_use(area, writes);
    }
    hca_debug("share: %lu bytes at 0x%lx: peers %s", length, addr,
              (id != 0) ? "map them" : "do not map them");
    pthread_mutex_unlock(&share_mutex);
    return id;
}

uint64_t hca_share_begin_odp(void)
{
    if (!hca_share_is_on()) {
        return 0;
    }
    pthread_mutex_lock(&share_mutex);
    if (share_num_odp++ == 0) {
        share_publish();
    }
    pthread_mutex_unlock(&share_mutex);
    return SHARE_ODP;
}

void hca_share_end(uint64_t id)
{
    if (id == 0) {
        return;
    }
    pthread_mutex_lock(&share_mutex);
    if ((id == SHARE_ODP) && (share_num_odp > 0) && (--share_num_odp == 0)) {
        share_publish();
    }
    for (unsigned i = 0; i < share_num_areas; i++) {
        struct share_area *area = &share_areas[i];

        if ((area->handle == id) && (area->users > 0)) {
            if (--area->users == 0) {
                share_drop(area);
                share_publish();
                share_collect_some();
            }
            break;
        }
    }
    pthread_mutex_unlock(&share_mutex);
}

/* Waits for atomics that began before, as they are not repeated like copies
 * (hca_mem_near()). One of a stopped process is not waited for. */
static void share_wait_atomics(void)
{
    struct timespec deadline = hca_mutex_deadline();
    bool is_broken;

    for (unsigned i = 0; i < HCA_ATOMIC_LOCKS; i++) {
        if (hca_mutex_lock_until(&hca_fabric->atomic_locks[i], &deadline,
                                 &is_broken)) {
            hca_mutex_unlock(&hca_fabric->atomic_locks[i]);
        }
    }
}

void hca_share_evict(uintptr_t start, uintptr_t end)
{
    bool has_evicted;

    pthread_mutex_lock(&share_mutex);
    has_evicted = share_drop_range(start, end, true);
    pthread_mutex_unlock(&share_mutex);
    if (has_evicted) {
        share_wait_atomics();
    }
}

bool hca_share_has(uintptr_t start, uintptr_t end)
{
    struct hca_vma vma;
    bool has = true;

    pthread_mutex_lock(&share_mutex);
    while (has && (start < end)) {
        has = hca_maps_find(start, &vma) &&
              (!vma.is_shared || hca_share_pages_have(&vma));
        start = vma.end;
    }
    pthread_mutex_unlock(&share_mutex);
    return has;
}

static bool share_is_discard(int advice)
{
    return (advice == MADV_DONTNEED) || (advice == MADV_FREE) ||
           (advice == HCA_MADV_DONTNEED_LOCKED);
}

/* Looks for mappings of the memfd, and frees their pages if @discards. Takes no
 * lock, as an allocator may call this anywhere.
 * @return true if there is one. */
static bool share_walk(void *addr, size_t length, bool discards)
{
    uintptr_t start = (uintptr_t)addr;
    uintptr_t end   = (start + length + HCA_SHARE_PAGE - 1) &
                    ~(HCA_SHARE_PAGE - 1);
    struct hca_vma vma;
    bool has = false;

    while ((start < end) && hca_maps_find(start, &vma)) {
        if (hca_share_pages_have(&vma)) {
            uintptr_t last = (vma.end < end) ? vma.end : end;

            has = true;
            if (discards) {
                hca_share_pages_punch(vma.offset + (start - vma.start),
                                      last - start);
            }
        }
        start = vma.end;
    }
    return has;
}

bool hca_share_discards(void *addr, size_t length, int advice)
{
    return share_is_discard(advice) && (hca_share_pages_fd() >= 0) &&
           share_walk(addr, length, false);
}

void hca_share_discard(void *addr, size_t length)
{
    share_walk(addr, length, true);
}

void hca_share_fork_begin(void)
{
    pthread_mutex_lock(&share_mutex);
    hca_share_pages_fork_begin();
}

void hca_share_fork_end(void)
{
    hca_share_pages_fork_end();
    pthread_mutex_unlock(&share_mutex);
}

void hca_share_forked(void)
{
    hca_share_pages_forked();
    while (share_num_areas > 0) {
        share_remove(&share_areas[share_num_areas - 1]);
    }
    share_looked  = 0;
    share_num_odp = 0;
    pthread_mutex_init(&share_mutex, NULL);
}
