/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_PCIE: what a NIC would move between itself and memory, counted. Each
 * queue has its counts, whoever executes for it; those of a process are the sum,
 * with the queues that it has destroyed.
 *
 * The model, of which docs/softhca.md says where it comes from: a WQE is read
 * from its ring unless it was pushed; data is read and written where it lies,
 * unless it is inline or in a CQE; a receive WQE is read when it is taken, and a
 * doorbell record of receives when all that it told of are taken. A translation,
 * a context or an SQ's doorbell record is not read.
 */
#ifndef HCA_PCIE_H
#define HCA_PCIE_H

#include "hca_objs.h"
#include "hca_sgl.h"

/* Set if anything is counted; if not, only hca_pcie_retire_*() is called. */
extern bool hca_pcie_on;

static inline bool hca_pcie_is_on(void)
{
    return __builtin_expect(hca_pcie_on, 0);
}

/* Reads SOFTHCA_PCIE; a wrong value is an error line, and nothing is counted. */
void hca_pcie_init(void);

/* The process ends and its queues are gone: prints what they were, in all. */
void hca_pcie_exit(void);

/* A transfer of `length` bytes at addr; of none: none. */
void hca_pcie_add(struct hca_pcie *pcie, enum hca_pcie_what what, uint64_t addr,
                  uint64_t length);

/* One of each piece of memory, but for those in [inner, inner + size), which
 * the device has. What an indirect key leads to in many pieces counts as one. */
void hca_pcie_add_sgl(struct hca_pcie *pcie, enum hca_pcie_what what,
                      const struct hca_sgl *sgl, const void *inner,
                      size_t size);

/* A doorbell of eight bytes. */
void hca_pcie_ring(struct hca_pcie *pcie);

/* A WQE of `size` bytes was pushed. With has_rung its first eight bytes were
 * taken for a doorbell. */
void hca_pcie_push(struct hca_pcie *pcie, unsigned size, bool has_rung);

/* A WQE at this basic block is executed that the register does not have. */
void hca_pcie_wqe(struct hca_pcie *pcie, uint16_t idx, unsigned size);

/* A queue of receives is looked at: `taken` WQEs were, of `posted`. */
void hca_pcie_look(struct hca_pcie *pcie, uint16_t taken, uint16_t posted);

/* One is taken, that many bytes long and that far in the ring. */
void hca_pcie_take(struct hca_pcie *pcie, size_t offset, size_t size);

/* Prints the counts of a queue of this process that is destroyed, and adds them
 * to those of the process. */
void hca_pcie_retire_qp(void *qp);
void hca_pcie_retire_srq(void *srq);
void hca_pcie_retire_cq(void *cq);

/* For programs that measure, by dlsym(): what this process' queues have moved, by
 * the name of a kind, as printed. @return 0, or -1 without such a kind. */
__attribute__((visibility("default"))) int softhca_pcie(const char *kind,
                                                        uint64_t *times,
                                                        uint64_t *bytes,
                                                        uint64_t *lines);

#endif
