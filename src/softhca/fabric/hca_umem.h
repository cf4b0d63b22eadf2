/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of the program that peers must reach without a system call: rings and
 * doorbell records that it allocated by itself. hca_umem_share() replaces its
 * pages by pages of the arena, at the same addresses with the same contents;
 * hca_umem_unshare() makes them private again. (If they stayed, the heap would
 * be made of shared pages, and a forked child would write into its parent's.)
 *
 * Whole pages are exchanged: other data in the first and last page moves along.
 * A store of another thread waits until its page is exchanged. Umems may have
 * pages in common; a page stays shared until the last of its umems ends.
 */
#ifndef HCA_UMEM_H
#define HCA_UMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_span;

struct hca_umem {
    char *pages; /* of the program; NULL: it was in the arena before */
    size_t size; /* bytes of the pages */
    char *mem;   /* address of the memory in the arena */
    struct hca_span *span; /* range of the arena that has the pages */
};

/* Shares @length bytes at @addr.
 * @param writes  the device writes there
 * @return 0, -EFAULT (not all of it is mapped, readable and, with @writes,
 *         writable; or its pages are part of a huge page), -EEXIST (other umems
 *         have some of its pages, but not as one range of the arena), -ENOMEM,
 *         -EINVAL (pages of the caller's stack), -EOPNOTSUPP (pages of a
 *         mapping that is shared or read-only), or another -errno of the
 *         exchange. */
int hca_umem_share(struct hca_umem *umem, uint64_t addr, size_t length,
                   bool writes);

/* Makes its pages private again, except pages that the program has replaced, or
 * that other umems have. */
void hca_umem_unshare(struct hca_umem *umem);

/* Describes an error of hca_umem_share(). @param error  positive errno */
const char *hca_umem_error(int error);

/* Around fork(), in the parent: no pages are exchanged meanwhile, as the child
 * would keep them read-only. The first waits until hca_mutex_deadline(). */
void hca_umem_fork_begin(void);
void hca_umem_fork_end(void);

/* Make all pages private: in a forked child, and when the process leaves the
 * fabric, which waits for other threads until hca_mutex_deadline(). */
void hca_umem_forked(void);
void hca_umem_abandon(void);

#endif
