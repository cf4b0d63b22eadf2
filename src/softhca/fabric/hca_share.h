/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of this process that peers reach by loads and stores: runs of pages of
 * a file that peers can map, published in hca_fabric->shares. Peers find them
 * by hca_share_map.h; memory in no run is reached by process_vm_readv() and
 * process_vm_writev(), which work for all of it.
 *
 * The file is one that the program has mapped shared, or the memfd of this
 * process, which takes the place of private memory that was untouched when
 * it was registered (hca_share_pages.h). Pages stay in the memfd for as long as
 * the program keeps them mapped: nothing is ever copied back, except in a
 * forked child.
 */
#ifndef HCA_SHARE_H
#define HCA_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if memory may be shared: SOFTHCA_SHARE, and no valgrind. */
bool hca_share_is_on(void);

/* Publishes the memory of a region, if all its whole pages are of one run or
 * can become one. To be called before any page is faulted in. Runs that the
 * program has meanwhile replaced by other mappings are removed.
 * @param writes  the region may be written
 * @return id for hca_share_end(); 0: peers do not map it. */
uint64_t hca_share_begin(uint64_t addr, uint64_t length, bool writes);

/* Publishes nothing until hca_share_end(), for an on-demand region: it leads to
 * the mappings of each moment, while a run keeps pages that the program may
 * have replaced meanwhile.
 * @return id for hca_share_end() */
uint64_t hca_share_begin_odp(void);

/* Ends the use of a run, or nothing if @id is 0. No peer may access it by the
 * region any more. A run without uses is not published. */
void hca_share_end(uint64_t id);

/* Removes runs that have some of these pages, which are about to be replaced by
 * other ones, and waits for atomics of peers there. */
void hca_share_evict(uintptr_t start, uintptr_t end);

/* Returns true if these pages are private, or of the memfd of this process:
 * they were private once. */
bool hca_share_has(uintptr_t start, uintptr_t end);

/* Returns true if madvise() of this kind discards pages that were private once:
 * the caller discards them by MADV_DONTNEED and then hca_share_discard(). Any
 * thread; without such pages it costs a comparison. */
bool hca_share_discards(void *addr, size_t length, int advice);

/* Makes these pages read as zeros. */
void hca_share_discard(void *addr, size_t length);

/* fork(): see hca_share_pages.h. The child has no runs. */
void hca_share_fork_begin(void);
void hca_share_fork_end(void);
void hca_share_forked(void);

#endif
