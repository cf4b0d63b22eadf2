/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * On-demand paging: accesses to regions that are registered on demand, whose
 * pages may be missing. The device translates by the page table of the region's
 * process, so a page is missing if that has none: never touched, swapped out,
 * or dropped by MADV_DONTNEED. An access to a missing page takes as long as
 * SOFTHCA_PAGE_FAULT says:
 *
 *  - the requester waits that long, once for each WQE, before it sends;
 *  - the responder of an acknowledged service answers RNR until that time has
 *    passed since its first answer. The requester keeps the time (hca_tries):
 *    the first responder of a message may be another process than the next.
 *
 * The copy then faults the pages in; memory that is not mapped is an error of
 * the copy. A receive that an SRQ has handed out cannot be put back: its pages
 * take no time, nor do those of tagged buffers.
 */
#ifndef HCA_ODP_H
#define HCA_ODP_H

#include "hca_objs.h"
#include "softhca/fabric/hca_mem.h"
#include "softhca/fabric/hca_timer.h"

/* The time of a page fault; 0: no page counts as missing. */
extern uint64_t hca_odp_ns __attribute__((visibility("hidden")));

/* Reads SOFTHCA_PAGE_FAULT; a wrong value logs an error and keeps the
 * default. */
void hca_odp_init(void);

/* Returns true if a page of the owner's memory is missing; false if that cannot
 * be found out. */
bool hca_odp_is_missing(struct hca_owner owner, uint64_t va, uint64_t length);

/* Records that the responder has answered RNR because of a fault. */
static inline void hca_odp_refused(struct hca_tries *tries)
{
    if (tries->fault_ns == 0) {
        tries->fault_ns = hca_time_ns();
    }
}

/* Returns true if the fault at the responder has ended. */
static inline bool hca_odp_is_over(const struct hca_tries *tries)
{
    return (tries->fault_ns != 0) &&
           (hca_time_ns() - tries->fault_ns >= hca_odp_ns);
}

#endif
