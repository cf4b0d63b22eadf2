/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_PCIE: counts the bytes that a NIC would move between itself and
 * memory. Each queue has counts, which any process that executes for it raises;
 * the counts of a process are the sum over its queues, also destroyed ones.
 *
 * The model (docs/softhca.md has its sources): a WQE is read from its ring
 * unless it was pushed; data is read and written in place, unless it is inline
 * or in a CQE; a receive WQE is read when it is taken, and a doorbell record of
 * receives when all that it posted are taken. Translations, contexts and an
 * SQ's doorbell record are not read.
 */
#ifndef HCA_PCIE_H
#define HCA_PCIE_H

#include "hca_objs.h"
#include "hca_sgl.h"

/* Set by hca_pcie_init() if anything is counted. If not, hca_pcie_exit() and
 * hca_pcie_retire_*() do nothing, and the counting functions are not called. */
extern bool hca_pcie_on __attribute__((visibility("hidden")));

static inline bool hca_pcie_is_on(void)
{
    return __builtin_expect(hca_pcie_on, 0);
}

/* Reads SOFTHCA_PCIE; a wrong value logs an error, and nothing is counted. */
void hca_pcie_init(void);

/* Prints the sum at the end of the process, when its queues are destroyed. */
void hca_pcie_exit(void);

/* Counts a transfer of @length bytes at @addr; nothing for 0 bytes. */
void hca_pcie_add(struct hca_pcie *pcie, enum hca_pcie_what what, uint64_t addr,
                  uint64_t length);

/* Counts a transfer for each entry of @sgl, except entries in
 * [inner, inner + size), which the device has, and those in device memory of
 * this process; that of another process counts as other memory. What is
 * gathered from there counts as stores of the processor, which has written it
 * before, in whole lines. An indirect mkey that is one entry (hca_sgl.h) counts
 * once. */
void hca_pcie_add_sgl(struct hca_pcie *pcie, enum hca_pcie_what what,
                      const struct hca_sgl *sgl, const void *inner,
                      size_t size);

/* Counts a doorbell of eight bytes. */
void hca_pcie_ring(struct hca_pcie *pcie);

/* Counts a push of a WQE of @size bytes. @has_rung: its first eight bytes were
 * counted as a doorbell: takes that back, and the read of the WQE, if any. */
void hca_pcie_push(struct hca_pcie *pcie, unsigned size, bool has_rung);

/* Counts the read of a WQE of @size bytes at basic block @idx. Not for a WQE
 * that was pushed. */
void hca_pcie_wqe(struct hca_pcie *pcie, uint16_t idx, unsigned size);

/* Counts a look at a receive queue: @taken WQEs were taken, of @posted, both
 * since its creation and modulo 2^16. */
void hca_pcie_look(struct hca_pcie *pcie, uint16_t taken, uint16_t posted);

/* Counts the read of a receive WQE of @size bytes at @offset in the ring. */
void hca_pcie_take(struct hca_pcie *pcie, size_t offset, size_t size);

/* Print the counts of a destroyed queue of this process, and add them to those
 * of the process. */
void hca_pcie_retire_qp(void *qp);
void hca_pcie_retire_srq(void *srq);
void hca_pcie_retire_cq(void *cq);

/* Stores the transfers of this process' queues, of a kind named as printed. For
 * programs that measure, by dlsym(). @return 0; -1 if nothing is counted, the
 * process is not attached, or there is no such kind. */
__attribute__((visibility("default"))) int softhca_pcie(const char *kind,
                                                        uint64_t *times,
                                                        uint64_t *bytes,
                                                        uint64_t *lines);

#endif
