/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UAR pages: the registers that this process stores to.
 */
#ifndef HCA_UAR_H
#define HCA_UAR_H

#include <stdbool.h>
#include <stdint.h>

/* Adds a UAR page of this id, which is not mapped yet. Only a write-combining
 * page takes pushed WQEs; others take doorbells. @return 0 or -ENOMEM. */
int hca_uar_init(uint32_t uar, bool is_wc);

/* Makes stores to @page, 4 KiB at which this process has mapped the UAR page of
 * this id, ring doorbells; hca_uar_del() ends that. The caller protects @page
 * against writing. @return 0 or -errno. */
int hca_uar_add(uint32_t uar, void *page);
void hca_uar_del(uint32_t uar);

/* Forgets pages and queues in a forked child: they are the parent's. */
void hca_uar_forked(void);

/* Returns the ticks of the time-stamp counter that this thread has spent in
 * doorbells since the first call. For programs that measure, by dlsym(). */
__attribute__((visibility("default"))) uint64_t softhca_ticks(void);

#endif
