/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of the program that peers must reach without a system call: rings and
 * doorbell records that it allocated by itself. Its pages become pages of the
 * arena, with the same contents and at the same addresses, until they are given
 * back; then they are private again. (If they stayed, the heap would be made of
 * shared pages, and a forked child would write into its parent's.)
 *
 * Whole pages are exchanged: other data in the first and last page moves along.
 * A store of another thread to that, during the copy, waits. Several umems may
 * have pages in common, each of which stays until the last of them has gone.
 */
#ifndef HCA_UMEM_H
#define HCA_UMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_span;

struct hca_umem {
    char *pages; /* of the program; NULL: already in arena */
    size_t size;
    char *mem;             /* its address in the arena */
    struct hca_span *span; /* the room that has the pages */
};

/* @param writes  the device writes there
 * @return 0, -EFAULT (not all of it is mapped, or allows that), -EEXIST
 * (other umems have some of its pages, in places that are not one piece),
 * -ENOMEM, -EINVAL (pages that cannot be replaced: huge ones, the caller's
 * stack), -EOPNOTSUPP (those of a mapping that is shared or read-only). */
int hca_umem_share(struct hca_umem *umem, uint64_t addr, size_t length,
                   bool writes);

/* Makes its pages private again, except pages that were replaced or that other
 * umems have. */
void hca_umem_unshare(struct hca_umem *umem);

/* Describes an error of hca_umem_share(). @param error  positive errno */
const char *hca_umem_error(int error);

/* Make all pages private: in a forked child, and when the process leaves the
 * fabric. */
void hca_umem_forked(void);
void hca_umem_abandon(void);

#endif
