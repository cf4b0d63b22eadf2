/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Atomic operations on an application's memory: atomic towards each other
 * (IBV_ATOMIC_HCA), and in this process also towards its CPUs.
 */
#ifndef HCA_ATOMIC_H
#define HCA_ATOMIC_H

#include "softhca/fabric/hca_mem.h"
#include "softhca/wqe/hca_wqe.h"

/* Executes @op at @addr of @owner; the operand is in host order.
 * @return 0 and the previous value, or as hca_mem_read(). */
int hca_atomic_execute(struct hca_owner owner, uint64_t addr,
                       const struct hca_wqe_atomic *op, uint64_t *before);

#endif
