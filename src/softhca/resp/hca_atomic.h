/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Atomic operations on an application's memory. They are atomic towards each
 * other (IBV_ATOMIC_HCA). They are also atomic towards the CPUs if this process
 * reaches the operand by loads and stores: in its own memory, or in pages of a
 * peer that it has mapped.
 */
#ifndef HCA_ATOMIC_H
#define HCA_ATOMIC_H

#include "softhca/fabric/hca_mem.h"
#include "softhca/wqe/hca_wqe.h"

/* Executes @op on the op->size bytes at @addr of @owner, aligned to that size;
 * all values are in host order.
 * @return 0 with the previous value in @before, or as hca_mem_read(). */
int hca_atomic_execute(struct hca_owner owner, uint64_t addr,
                       const struct hca_wqe_atomic *op, uint64_t *before);

#endif
