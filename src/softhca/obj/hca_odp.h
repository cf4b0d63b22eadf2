/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * On-demand paging: accesses to regions that are registered on demand, whose
 * pages the device may have to fault in. It has a page if it has faulted it in
 * before, or it was prefetched (a bit of mkey.faulted), and if the page table
 * of the region's process still has it: a page that was swapped out, or dropped
 * by MADV_DONTNEED, is missing again. An access to a missing page takes as long
 * as SOFTHCA_PAGE_FAULT says:
 *
 *  - the requester waits that long, once for each WQE, before it sends;
 *  - the responder answers RNR until that time has passed since its first
 *    answer. A receive stays in its queue, or goes back to its SRQ. The
 *    requester keeps the time (hca_tries): the first responder of a message may
 *    be another process than the next.
 *
 * The copy then faults the pages in; memory that is not mapped is an error of
 * the copy. An operation that the service cannot do on such memory
 * (hca_odp_caps()) is an error. So is a receive with tag matching, or to an SRQ
 * of DEVX: the kernel cannot read its WQEs.
 */
#ifndef HCA_ODP_H
#define HCA_ODP_H

#include "hca_sgl.h"
#include "softhca/fabric/hca_timer.h"

/* The time of a page fault; 0: no page counts as missing. */
extern uint64_t hca_odp_ns __attribute__((visibility("hidden")));

/* Reads SOFTHCA_PAGE_FAULT; a wrong value logs an error and keeps the
 * default. */
void hca_odp_init(void);

/* Returns IBV_ODP_SUPPORT_*: operations of a service (enum hca_qp_type) on
 * memory on demand. */
uint32_t hca_odp_caps(unsigned qp_type);

/* Begins a translation of an mkey: it has no pages. The mkey belongs to this
 * process. Without memory for the bitmap all pages stay missing. */
void hca_odp_reset(struct hca_mkey *mkey);

/* Frees the bitmap of an mkey that is not used any longer. */
void hca_odp_release(struct hca_mkey *mkey);

/* Marks pages of a region as faulted in. */
void hca_odp_mark(const struct hca_mkey *mkey, uint64_t va, uint64_t length);

/* hca_odp_mark() of those pages that this process, the region's, has. */
void hca_odp_mark_present(const struct hca_mkey *mkey, uint64_t va,
                          uint64_t length);

/* Returns true if a page of the list (sgl->on_demand) is missing. Within an
 * access to its mkeys. */
bool hca_odp_is_missing(const struct hca_sgl *sgl);

/* Marks all pages of the list as faulted in. */
void hca_odp_mark_sgl(const struct hca_sgl *sgl);

/* Counts a page fault that this process waits for. */
void hca_odp_count(void);

/* Returns the number of page faults that this process has waited for, its own
 * and those of peers. For programs that test, by dlsym(). */
__attribute__((visibility("default"))) uint64_t softhca_page_faults(void);

/* Records that the responder has answered RNR because of a fault. */
static inline void hca_odp_refused(struct hca_tries *tries)
{
    if (tries->fault_ns == 0) {
        tries->fault_ns = hca_time_ns();
        hca_odp_count();
    }
}

/* Returns true if the fault at the responder has ended. */
static inline bool hca_odp_is_over(const struct hca_tries *tries)
{
    return (tries->fault_ns != 0) &&
           (hca_time_ns() - tries->fault_ns >= hca_odp_ns);
}

#endif
