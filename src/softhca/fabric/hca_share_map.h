/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of peers that this process has mapped: the runs that they publish
 * (hca_share.h). A run is mapped at its first access. All accesses go through
 * hca_mem_near().
 */
#ifndef HCA_SHARE_MAP_H
#define HCA_SHARE_MAP_H

#include "hca_segment.h"

/* An answer about a peer's addresses, kept for its thread: valid as long as the
 * peer has not changed its runs. */
struct hca_share_hit {
    uintptr_t start, end; /* addresses in the peer */
    char *base;           /* of start in this process; NULL: not mapped */
    pid_t pid;
    uint32_t seq;
    bool is_writable;
};

#define HCA_SHARE_HITS 64u
extern __thread struct hca_share_hit hca_share_hits[HCA_SHARE_HITS]
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Looks the address up, and maps its run if this is the first access. Called
 * within an access to mkeys of @proc (obj/hca_mkey.h), which keeps the mapping.
 * @return the answer, which the next call of this thread may overwrite. */
const struct hca_share_hit *hca_share_map_find(unsigned proc, pid_t pid,
                                               uintptr_t addr);

/* Returns what the thread knows of the address, or looks it up. */
static inline const struct hca_share_hit *
hca_share_map_hit(unsigned proc, pid_t pid, uintptr_t addr)
{
    const struct hca_share_hit *hit =
        &hca_share_hits[(proc ^ (addr >> 24)) % HCA_SHARE_HITS];

    if (__builtin_expect(
            (hit->pid == pid) &&
                (hit->seq == atomic_load(&hca_fabric->shares[proc].seq)) &&
                (addr >= hit->start) && (addr < hit->end),
            1)) {
        return hit;
    }
    return hca_share_map_find(proc, pid, addr);
}

/* Returns the place in this process of @addr, which is in the range of @hit.
 * NULL: it is not mapped, or @writes is set and the mapping is read-only. */
static inline char *hca_share_hit_at(const struct hca_share_hit *hit,
                                     uintptr_t addr, bool writes)
{
    return ((hit->base != NULL) && (hit->is_writable || !writes)) ?
               hit->base + (addr - hit->start) :
               NULL;
}

/* Empties the table of runs (hca_fabric.shares) of a process that attaches. */
void hca_share_map_open(unsigned proc);

/* Makes the `seq` of the table of a process that has ended odd: peers read none
 * of its runs, and collect those that they have mapped. */
void hca_share_map_close(unsigned proc);

/* Unmaps runs that their process no longer publishes, unless a thread of this
 * process accesses the other's mkeys. The caller must not. */
void hca_share_map_collect(void);

/* Forgets all mappings in a forked child, which has inherited none. */
void hca_share_map_forked(void);

#endif
