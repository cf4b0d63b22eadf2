/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of the programs, this process' own and others', as mkeys and WQEs
 * name it.
 */
#ifndef HCA_MEM_H
#define HCA_MEM_H

#include "hca_share_map.h"

#include <sys/uio.h>

/* The owner of some memory. The pid is kept for the copy: by then the slot may
 * be another process', and the copy fails with -ESRCH. */
struct hca_owner {
    unsigned proc;
    pid_t pid;
};

/* Returns the owner for a slot: this process', or that of an object whose lock
 * the caller holds, so that its process keeps the slot, alive or not. */
static inline struct hca_owner hca_owner(unsigned proc)
{
    return (struct hca_owner){proc, hca_fabric->procs[proc].pid};
}

/* Looks if this process may copy from another one by process_vm_readv(). Logs
 * the cause if not: an error if no memory is shared, as then all copies need
 * it. @return 0, or -EPERM after an error */
int hca_mem_probe(void);

/* Copy between local pieces and pieces of the owner's memory; the owner may be
 * this process. Total lengths are equal; iov counts <= IOV_MAX each.
 * @return 0, -EFAULT (some address is not mapped or not accessible, or the
 *         system forbids the copy, whose cause is logged once; a part may be
 *         copied), -ESRCH (the owner is gone). */
int hca_mem_write(struct hca_owner owner, const struct iovec *local,
                  unsigned nlocal, const struct iovec *remote,
                  unsigned nremote);
int hca_mem_read(struct hca_owner owner, const struct iovec *local,
                 unsigned nlocal, const struct iovec *remote, unsigned nremote);

/* Takes the cache lines of memory that will most likely be written next, if it
 * is mapped here, @length bytes from @base on: they arrive before the write has
 * to wait for them. @base may be any address. Call it within an access to the
 * owner's mkeys. */
void hca_mem_prefetch(struct hca_owner owner, const void *base, size_t length);

/* Returns the address at which this process reaches memory of the owner by
 * loads and stores, guarded ones (hca_trap_guard.h), within an access to the
 * owner's mkeys (obj/hca_mkey.h); @base itself for its own memory. Ask again
 * after the copy: if the answer is another, the owner has replaced its pages
 * meanwhile, and the copy has to be made again.
 * @return NULL if only hca_mem_read() and hca_mem_write() reach all of it. */
static inline void *hca_mem_near(struct hca_owner owner, void *base,
                                 size_t length, bool writes)
{
    const struct hca_share_hit *hit;
    uintptr_t addr = (uintptr_t)base;

    if (owner.proc == hca_self) {
        return base;
    }
    hit = hca_share_map_hit(owner.proc, owner.pid, addr);
    return (length <= hit->end - addr) ? hca_share_hit_at(hit, addr, writes) :
                                         NULL;
}

#endif
