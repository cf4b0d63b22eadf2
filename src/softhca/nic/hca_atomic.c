/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Atomics. All that go to one address take one lock of the fabric, chosen by
 * the address; then another process' operand is read and written back, and
 * this one's is exchanged with the CPU's own instruction.
 */
#include "hca_atomic.h"
#include "softhca/fabric/hca_proc.h"

/* Adds within fields: a set bit of `boundary` is the most significant bit of
 * its field, out of which no carry goes. */
static uint64_t hca_atomic_add(uint64_t a, uint64_t b, uint64_t boundary)
{
    uint64_t low = (a & ~boundary) + (b & ~boundary);

    return low ^ ((a ^ b) & boundary);
}

static uint64_t hca_atomic_next(uint64_t value,
                                const struct hca_wqe_atomic *op)
{
    if (!op->is_cs) {
        return hca_atomic_add(value, op->swap_add, op->compare);
    }
    if ((value ^ op->compare) & op->compare_mask) {
        return value;
    }
    return (value & ~op->swap_mask) | (op->swap_add & op->swap_mask);
}

static int hca_atomic_remote(unsigned proc, uint64_t addr,
                             const struct hca_wqe_atomic *op, uint64_t *before)
{
    uint64_t value      = 0, next;
    struct iovec local  = {&value, op->size};
    struct iovec remote = {(void*)addr, op->size};
    int ret             = hca_mem_read(proc, &local, 1, &remote, 1);

    if (ret != 0) {
        return ret;
    }
    *before        = value;
    next           = hca_atomic_next(value, op);
    local.iov_base = &next;
    return hca_mem_write(proc, &local, 1, &remote, 1);
}

static uint64_t hca_atomic_exchange4(uint32_t *ptr,
                                     const struct hca_wqe_atomic *op)
{
    uint32_t value = __atomic_load_n(ptr, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(ptr, &value,
                                        hca_atomic_next(value, op),
                                        false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
        /* a CPU was faster */
    }
    return value;
}

static uint64_t hca_atomic_exchange8(uint64_t *ptr,
                                     const struct hca_wqe_atomic *op)
{
    uint64_t value = __atomic_load_n(ptr, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(ptr, &value,
                                        hca_atomic_next(value, op),
                                        false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
        /* a CPU was faster */
    }
    return value;
}

/* Reading tells whether the memory is there;
 * the exchange itself cannot be guarded. */
static int hca_atomic_local(uint64_t addr,
                            const struct hca_wqe_atomic *op, uint64_t *before)
{
    uint64_t probe      = 0;
    struct iovec local  = {&probe, op->size};
    struct iovec remote = {(void*)addr, op->size};
    int ret             = hca_mem_read(hca_self, &local, 1, &remote, 1);

    if (ret != 0) {
        return ret;
    }
    *before = (op->size == 4) ?
              hca_atomic_exchange4((uint32_t*)addr, op) :
              hca_atomic_exchange8((uint64_t*)addr, op);
    return 0;
}

int hca_atomic_execute(unsigned proc, uint64_t addr,
                       const struct hca_wqe_atomic *op, uint64_t *before)
{
    pthread_mutex_t *lock =
            &hca_fabric->atomic_locks[((addr >> 3) ^ (addr >> 12) ^ proc) %
                                      HCA_ATOMIC_LOCKS];
    int ret;

    hca_mutex_lock(lock);
    ret = (proc == hca_self) ?
          hca_atomic_local(addr, op, before) :
          hca_atomic_remote(proc, addr, op, before);
    hca_mutex_unlock(lock);
    return ret;
}
