/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UAR pages: the registers that this process stores to.
 */
#ifndef HCA_UAR_H
#define HCA_UAR_H

#include <stdbool.h>
#include <stdint.h>

/* Adds a UAR page of this id, for mapping as write-combining, or as a page that
 * takes doorbells only. @return 0 or -errno. */
int hca_uar_init(uint32_t uar, bool is_wc);

/* Makes stores to @page (4 KiB, of this process), at which the UAR page of this
 * id was mapped, ring doorbells from now on. @return 0 or -errno. */
int hca_uar_add(uint32_t uar, void *page);
void hca_uar_del(uint32_t uar);

/* Forgets pages and queues in a forked child: they are the parent's. */
void hca_uar_forked(void);

/* Returns the ticks of the time-stamp counter that the device has used in this
 * thread, within its doorbells. For programs that measure, by dlsym(). */
__attribute__((visibility("default"))) uint64_t softhca_ticks(void);

#endif
