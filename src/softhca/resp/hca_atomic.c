/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Atomics: see hca_atomic.h. The address selects a lock of the fabric, which
 * serializes all atomics on that address. An operand in memory of this process,
 * or in memory of a peer that it has mapped, is exchanged by the CPU's own
 * instruction; any other one is read and written back.
 */
#include "hca_atomic.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/doorbell/hca_trap.h"

#include <errno.h>

/* Adds within fields: a set bit of @boundary is the most significant bit of
 * its field, out of which no carry goes. */
static uint64_t hca_atomic_add(uint64_t a, uint64_t b, uint64_t boundary)
{
    uint64_t low = (a & ~boundary) + (b & ~boundary);

    return low ^ ((a ^ b) & boundary);
}

static uint64_t hca_atomic_next(uint64_t value, const struct hca_wqe_atomic *op)
{
    if (!op->is_cs) {
        return hca_atomic_add(value, op->swap_add, op->compare);
    }
    if ((value ^ op->compare) & op->compare_mask) {
        return value;
    }
    return (value & ~op->swap_mask) | (op->swap_add & op->swap_mask);
}

static int hca_atomic_remote(struct hca_owner owner, uint64_t addr,
                             const struct hca_wqe_atomic *op, uint64_t *before)
{
    uint64_t value      = 0, next;
    struct iovec local  = {&value, op->size};
    struct iovec remote = {(void *)addr, op->size};
    int ret             = hca_mem_read(owner, &local, 1, &remote, 1);

    if (ret != 0) {
        return ret;
    }
    *before        = value;
    next           = hca_atomic_next(value, op);
    local.iov_base = &next;
    return hca_mem_write(owner, &local, 1, &remote, 1);
}

static int hca_atomic_exchange4(uint32_t *ptr, const struct hca_wqe_atomic *op,
                                uint64_t *before)
{
    uint32_t value = *before;
    int ret;

    do {
        ret = hca_trap_guard_swap4(ptr, &value, hca_atomic_next(value, op));
    } while (ret == -EAGAIN); /* a CPU has changed it: @value is its new one */
    *before = value;
    return ret;
}

static int hca_atomic_exchange8(uint64_t *ptr, const struct hca_wqe_atomic *op,
                                uint64_t *before)
{
    int ret;

    do {
        ret = hca_trap_guard_swap8(ptr, before, hca_atomic_next(*before, op));
    } while (ret == -EAGAIN);
    return ret;
}

/* Exchanges an operand that this process can access. The value read here is the
 * first guess of the exchange. */
static int hca_atomic_near(void *operand, const struct hca_wqe_atomic *op,
                           uint64_t *before)
{
    int ret;

    *before = 0;
    ret     = hca_trap_guard_memcpy(before, operand, op->size);
    if (ret != 0) {
        return ret;
    }
    return (op->size == 4) ? hca_atomic_exchange4(operand, op, before) :
                             hca_atomic_exchange8(operand, op, before);
}

/* Executes the atomic under the lock. A peer's operand that is not mapped here,
 * or faults, may still be reached by system calls. */
static int hca_atomic_any(struct hca_owner owner, uint64_t addr,
                          const struct hca_wqe_atomic *op, uint64_t *before)
{
    void *operand = hca_mem_near(owner, (void *)addr, op->size, true);
    int ret       = -EFAULT;

    if (operand != NULL) {
        ret = hca_atomic_near(operand, op, before);
    }
    return ((ret == 0) || (owner.proc == hca_self)) ?
               ret :
               hca_atomic_remote(owner, addr, op, before);
}

int hca_atomic_execute(struct hca_owner owner, uint64_t addr,
                       const struct hca_wqe_atomic *op, uint64_t *before)
{
    unsigned hash = ((addr >> 3) ^ (addr >> 12) ^ owner.proc) %
                    HCA_ATOMIC_LOCKS;
    struct hca_mutex *lock = &hca_fabric->atomic_locks[hash];
    int ret;

    hca_mutex_lock(lock);
    ret = hca_atomic_any(owner, addr, op, before);
    hca_mutex_unlock(lock);
    return ret;
}
