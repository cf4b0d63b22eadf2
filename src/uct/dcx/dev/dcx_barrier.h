/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What keeps memory and registers in the order in which a device looks at them:
 * barriers named by purpose, as rdma-core has them (util/udma_barrier.h, where
 * the rules are). UCX's are not taken: those "of the CPU" order for other cores
 * alone, which on aarch64 is another domain than that of devices, and what those
 * "of the bus" are there differs between its versions.
 *
 * x86-64 keeps the order of loads, and that of stores to memory; stores to a
 * write-combining register are apart from both.
 */
#ifndef UCT_DCX_BARRIER_H
#define UCT_DCX_BARRIER_H

#include <ucs/sys/compiler_def.h>

#if defined(__x86_64__)
#define UCT_DCX_TO_DEVICE    ""
#define UCT_DCX_FROM_DEVICE  ""
#define UCT_DCX_WC_START     "sfence"
#define UCT_DCX_WC_FLUSH     "sfence"
#define UCT_DCX_WC_FULL      ""
#elif defined(__aarch64__)
#define UCT_DCX_TO_DEVICE    "dmb oshst"
#define UCT_DCX_FROM_DEVICE  "dmb oshld"
#define UCT_DCX_WC_START     "dmb oshst"
#define UCT_DCX_WC_FLUSH     "dsb st"
#define UCT_DCX_WC_FULL      "hint #6" /* dgh */
#else
#error barriers for DMA are known for x86-64 and aarch64
#endif


/* What was stored before is in memory before what is stored behind: entries
 * before the record that announces them. */
static UCS_F_ALWAYS_INLINE void uct_dcx_to_device_barrier(void)
{
    asm volatile(UCT_DCX_TO_DEVICE ::: "memory");
}


/* What was loaded before was so before all that follows, loads and stores: an
 * entry's owner bit before the rest of it, that before it is given back. */
static UCS_F_ALWAYS_INLINE void uct_dcx_from_device_barrier(void)
{
    asm volatile(UCT_DCX_FROM_DEVICE ::: "memory");
}


/* What was stored before is in memory before a store to a register, which may
 * be write-combining. */
static UCS_F_ALWAYS_INLINE void uct_dcx_wc_start(void)
{
    asm volatile(UCT_DCX_WC_START ::: "memory");
}


/* What was stored to a register goes out now, and is combined with nothing that
 * follows. */
static UCS_F_ALWAYS_INLINE void uct_dcx_wc_flush(void)
{
    asm volatile(UCT_DCX_WC_FLUSH ::: "memory");
}


/* The same where whole lines were stored, and nobody waits for it: x86-64 sends
 * those without being told (Intel SDM volume 3, "buffering of write combining
 * memory locations"); aarch64 is given a hint. */
static UCS_F_ALWAYS_INLINE void uct_dcx_wc_full(void)
{
    asm volatile(UCT_DCX_WC_FULL ::: "memory");
}

#endif
