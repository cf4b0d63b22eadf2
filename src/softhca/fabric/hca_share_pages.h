/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The pages of this process that peers may map: a sparse memfd, which replaces
 * private memory that was never touched. Each replacement takes a window of
 * file offsets of its own, which is never used again: a mapping that the
 * program extends by mremap() finds zeros there, and a copy of a peer that
 * comes too late finds nothing of another's.
 *
 * hca_share.c calls all of it, one thread at a time, except
 * hca_share_pages_fd(), _have() and _punch().
 */
#ifndef HCA_SHARE_PAGES_H
#define HCA_SHARE_PAGES_H

#include "softhca/base/hca_maps.h"

#include <stddef.h>

#define HCA_SHARE_PAGE   4096ul
#define HCA_SHARE_WINDOW (1ull << 40) /* bytes */

/* Returns true if the page at @addr is private and was touched before: a quick
 * answer for most memory. */
bool hca_share_pages_are_private(uintptr_t addr);

/* Replaces whole pages by pages of the memfd, in place, if none of them was
 * ever touched. A store of another thread waits meanwhile; a system call of
 * another thread that writes to them fails with EFAULT.
 * @return 0 with the place in the file in @offset; -EBUSY: they were touched,
 *         or are not plain memory (hca_maps_plain()); or another -errno. */
int hca_share_pages_convert(uintptr_t start, uintptr_t end, uint64_t *offset);

/* Returns the descriptor of the memfd, of this process; -1: there is none. */
int hca_share_pages_fd(void);

/* Returns true if the mapping is of the memfd. */
bool hca_share_pages_have(const struct hca_vma *vma);

/* Frees pages of the memfd, which read as zeros afterwards. */
void hca_share_pages_punch(uint64_t offset, uint64_t size);

/* fork(): the child copies all mappings of the memfd, and the parent waits for
 * that, so that no store of the parent or a peer from then on is seen in the
 * child. To be called before fork(), in the parent, and in the child, which has
 * no memfd then. */
void hca_share_pages_fork_begin(void);
void hca_share_pages_fork_end(void);
void hca_share_pages_forked(void);

#endif
