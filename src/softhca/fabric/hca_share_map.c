/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Runs of peers, looked up and mapped: see hca_share_map.h. map_mutex guards
 * the table of mappings.
 */
#define _GNU_SOURCE
#include "hca_share_map.h"
#include "hca_proc.h"
#include "hca_timer.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Mappings by id: sets of 8 for each value of its lowest bits. */
#define MAP_WAYS 8u
#define MAP_SETS 512u

struct share_map {
    uint64_t id; /* 0: free */
    char *base;  /* of run.start; NULL: it cannot be mapped */
    size_t size;
    size_t offset; /* of base in the segment (is_sysv) */
    unsigned proc;
    bool is_sysv;
};

__thread struct hca_share_hit hca_share_hits[HCA_SHARE_HITS]
    __attribute__((tls_model("initial-exec")));

static struct share_map map_table[MAP_SETS][MAP_WAYS];
static unsigned map_count, map_kept; /* now, and after the last collection */
static uint64_t map_wait;            /* of map_timer, when armed; 0: is not */
static pthread_mutex_t map_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Mappings are collected each second, as they keep the memory of files that
 * their owner has deleted; at once if there are more new ones than these, and
 * than there were. */
#define MAP_NEW       64u
#define MAP_PERIOD_NS 1000000000ull
#define MAP_SOON_NS   1000000ull

static void map_expire(struct hca_timer *timer)
{
    (void)timer;
    hca_share_map_collect();
}

static struct hca_timer map_timer = {.fn = map_expire};

/* --- the peer's table ----------------------------------------------------- */

/* Finds the first run that ends behind @addr. Another process writes the table
 * meanwhile: its reader checks `seq` before it believes any of it. */
static uint32_t map_search(const struct hca_share *share, uint32_t count,
                           uintptr_t addr)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (share->runs[middle].end <= addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t map_num_runs(const struct hca_share *share)
{
    uint32_t count = *(const volatile uint32_t *)&share->count;

    return (count < HCA_SHARE_RUNS) ? count : HCA_SHARE_RUNS;
}

/* Reads the run that has @addr, or the gap between two, of id 0.
 * @return false if the process has ended, or changes its table. */
static bool map_read(const struct hca_share *share, uint32_t seq,
                     uintptr_t addr, struct hca_share_run *run)
{
    uint32_t count = map_num_runs(share), at;

    at = map_search(share, count, addr);
    memset(run, 0, sizeof(*run));
    run->end = UINT64_MAX;
    if (at < count) {
        *run = share->runs[at];
    }
    if (run->start > addr) {
        run->id    = 0;
        run->end   = run->start;
        run->start = 0;
    }
    if ((run->id == 0) && (at > 0)) {
        run->start = share->runs[at - 1].end;
    }
    atomic_thread_fence(memory_order_acquire);
    return !(seq & 1) && (atomic_load(&share->seq) == seq);
}

/* Returns true if the process publishes that run this moment, or is about to
 * change its table. */
static bool map_is_published(const struct share_map *map)
{
    const struct hca_share *share = &hca_fabric->shares[map->proc];
    uint32_t seq                  = atomic_load(&share->seq);
    uint32_t count                = map_num_runs(share);
    bool is_found                 = false;

    for (uint32_t i = 0; i < count; i++) {
        is_found |= share->runs[i].id == map->id;
    }
    atomic_thread_fence(memory_order_acquire);
    if ((seq & 1) || (atomic_load(&share->seq) != seq)) {
        return hca_proc_is_attached(map->proc);
    }
    return is_found;
}

/* --- mappings ------------------------------------------------------------- */

/* Returns true if System V ids are the same in that process. */
static bool map_has_ids(unsigned proc)
{
    struct stat own, peers;
    char path[48];

    snprintf(path, sizeof(path), "/proc/%d/ns/ipc",
             hca_fabric->procs[proc].pid);
    return (hca_sys()->stat("/proc/self/ns/ipc", &own) == 0) &&
           (hca_sys()->stat(path, &peers) == 0) && (own.st_ino == peers.st_ino);
}

static char *map_sysv(unsigned proc, const struct hca_share_run *run)
{
    long base = -1;

    if (map_has_ids(proc)) {
        base = syscall(SYS_shmat, run->file, NULL,
                       run->is_writable ? 0 : SHM_RDONLY);
    }
    return (base == -1) ? NULL : (char *)base + run->offset;
}

/* Maps it unlocked, as mlockall(MCL_FUTURE) would fill all its holes. */
static long map_unlocked(int fd, const struct hca_share_run *run)
{
    size_t size = run->end - run->start;
    long base   = syscall(SYS_mmap, NULL, size, PROT_NONE,
                          MAP_SHARED | MAP_NORESERVE, fd, run->offset);

    if (base != -1) {
        syscall(SYS_munlock, base, size);
        syscall(SYS_mprotect, base, size,
                PROT_READ | (run->is_writable ? PROT_WRITE : 0));
    }
    return base;
}

static char *map_file(unsigned proc, const struct hca_share_run *run)
{
    int fd = hca_proc_open_fd(proc, run->file,
                              run->is_writable ? O_RDWR : O_RDONLY);
    struct stat st;
    long base = -1;

    if (fd < 0) {
        return NULL;
    }
    /* the process may have replaced its descriptor */
    if ((hca_sys()->fstat(fd, &st) == 0) && (st.st_dev == run->dev) &&
        (st.st_ino == run->inode)) {
        base = map_unlocked(fd, run);
    }
    syscall(SYS_close, fd);
    return (base == -1) ? NULL : (char *)base;
}

static void map_unmap(struct share_map *map)
{
    if ((map->base != NULL) && map->is_sysv) {
        syscall(SYS_shmdt, map->base - map->offset);
    } else if (map->base != NULL) {
        syscall(SYS_munmap, map->base, map->size);
    }
    map->id = 0;
    map_count--;
}

static struct share_map *map_lookup(uint64_t id)
{
    struct share_map *set = map_table[id % MAP_SETS], *found = NULL;

    for (unsigned i = 0; i < MAP_WAYS; i++) {
        if (set[i].id == id) {
            return &set[i];
        }
        found = (set[i].id == 0) ? &set[i] : found;
    }
    return found;
}

/* Maps a run. The descriptor may have been another file's: only if the run is
 * still published afterwards, was it the right one. */
static void map_create(struct share_map *map, unsigned proc,
                       const struct hca_share_run *run)
{
    *map = (struct share_map){
        .id      = run->id,
        .size    = run->end - run->start,
        .offset  = run->offset,
        .proc    = proc,
        .is_sysv = run->is_sysv,
        .base    = run->is_sysv ? map_sysv(proc, run) : map_file(proc, run),
    };
    map_count++;
    if (!map_is_published(map)) {
        map_unmap(map);
        return;
    }
    if (map->base == NULL) {
        hca_info("share: process %d: its memory cannot be mapped",
                 hca_fabric->procs[proc].pid);
        return;
    }
    hca_sys()->madvise(map->base, map->size, MADV_DONTFORK);
    hca_sys()->madvise(map->base, map->size, MADV_DONTDUMP);
}

/* @param wait  in ns; 0: does nothing */
static void map_arm(uint64_t wait)
{
    if (wait != 0) {
        hca_timer_arm(&map_timer, hca_time_ns() + wait);
    }
}

/* Returns where the run is in this process, NULL: nowhere. */
static char *map_run(unsigned proc, const struct hca_share_run *run)
{
    struct share_map *map;
    char *base    = NULL;
    uint64_t wait = 0;

    pthread_mutex_lock(&map_mutex);
    map = map_lookup(run->id);
    if ((map != NULL) && (map->id == 0)) {
        map_create(map, proc, run);
    }
    if ((map != NULL) && (map->id == run->id)) {
        base = map->base;
    }
    if (map_count > 2 * map_kept + MAP_NEW) {
        wait = MAP_SOON_NS; /* not here, as this thread holds an mkey */
    } else if (map_count > 0) {
        wait = MAP_PERIOD_NS;
    }
    wait     = ((map_wait == 0) || (wait < map_wait)) ? wait : 0;
    map_wait = (wait != 0) ? wait : map_wait;
    pthread_mutex_unlock(&map_mutex);
    map_arm(wait);
    return base;
}

const struct hca_share_hit *hca_share_map_find(unsigned proc, pid_t pid,
                                               uintptr_t addr)
{
    const struct hca_share *share = &hca_fabric->shares[proc];
    struct hca_share_hit *hit =
        &hca_share_hits[(proc ^ (addr >> 24)) % HCA_SHARE_HITS];
    uint32_t seq = atomic_load(&share->seq);
    struct hca_share_run run;

    /* the slot may be another process' by now */
    if ((hca_fabric->procs[proc].pid != pid) ||
        !map_read(share, seq, addr, &run)) {
        *hit = (struct hca_share_hit){.end = UINT64_MAX};
        return hit;
    }
    *hit = (struct hca_share_hit){
        .start       = run.start,
        .end         = run.end,
        .base        = (run.id == 0) ? NULL : map_run(proc, &run),
        .pid         = pid,
        .seq         = seq,
        .is_writable = run.is_writable,
    };
    return hit;
}

/* An access raises a count and then reads the peer's `seq`. Here `seq` is read
 * first: what is not published any more is not accessed by any thread that
 * comes later. */
static bool map_is_idle(const struct share_map *map)
{
    const struct hca_accesses *own = &hca_fabric->accesses[hca_self];

    return (atomic_load(&own->of[map->proc][0]) == 0) &&
           (atomic_load(&own->of[map->proc][1]) == 0);
}

void hca_share_map_collect(void)
{
    bool is_left = false;
    uint64_t wait;

    pthread_mutex_lock(&map_mutex);
    for (unsigned i = 0; (i < MAP_SETS * MAP_WAYS) && (map_count > 0); i++) {
        struct share_map *map = &map_table[i / MAP_WAYS][i % MAP_WAYS];

        if ((map->id == 0) || map_is_published(map)) {
            continue;
        }
        if (map_is_idle(map)) {
            map_unmap(map);
        } else {
            is_left = true;
        }
    }
    wait     = is_left ? MAP_SOON_NS : (map_count > 0) ? MAP_PERIOD_NS : 0;
    map_kept = map_count;
    map_wait = wait;
    pthread_mutex_unlock(&map_mutex);
    map_arm(wait);
}

/* The process may have been killed while it wrote. No value of `seq` comes
 * twice. */
void hca_share_map_open(unsigned proc)
{
    struct hca_share *share = &hca_fabric->shares[proc];

    share->count = 0;
    atomic_store(&share->seq, (atomic_load(&share->seq) | 1) + 1);
}

void hca_share_map_close(unsigned proc)
{
    _Atomic(uint32_t) *seq = &hca_fabric->shares[proc].seq;

    atomic_store(seq, (atomic_load(seq) | 1) + 2);
}

void hca_share_map_forked(void)
{
    memset(map_table, 0, sizeof(map_table));
    memset(hca_share_hits, 0, sizeof(hca_share_hits));
    map_count     = 0;
    map_kept      = 0;
    map_wait      = 0;
    map_timer.due = 0;
    pthread_mutex_init(&map_mutex, NULL);
}
