/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of the program that is to be reached by peers without a system call:
 * rings and doorbell records that it allocated by itself. Its pages become
 * pages of the arena, with the same contents and at the same addresses, until
 * they are given back; then they are private again. (If they stayed, the heap
 * would be made of shared pages, and a forked child would write into its
 * parent's.)
 *
 * Pages are whole: what lies beside the memory in its first and last one moves
 * along. A store of another thread to that, during the copy, waits. They may
 * have pages in common, each of which stays until the last of them has gone.
 */
#ifndef HCA_UMEM_H
#define HCA_UMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_span;

struct hca_umem {
    char            *pages; /* of the program; NULL: in the arena already */
    size_t           size;
    char            *mem;   /* in the arena: what lies at its address */
    struct hca_span *span;  /* the room that has the pages */
};

/* @param writes  the device is to write there
 * @return 0, -EFAULT (not all of it is mapped, or allows that), -EEXIST
 * (others have some of its pages, in places that are not one piece), -ENOMEM,
 * -EINVAL (pages that cannot be replaced: huge ones, the caller's stack),
 * -EOPNOTSUPP (those of a mapping that is shared or read-only). */
int hca_umem_share(struct hca_umem *umem, uint64_t addr, size_t length,
                   bool writes);

/* Gives the pages back, as far as they are still there and nobody else's. */
void hca_umem_unshare(struct hca_umem *umem);

/* What is wrong, in words. @param error one of hca_umem_share(), positive */
const char *hca_umem_error(int error);

/* Gives all pages back: in a forked child, and when the process leaves the
 * fabric. */
void hca_umem_forked(void);
void hca_umem_abandon(void);

#endif
