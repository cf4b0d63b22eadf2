/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Barriers that keep memory and registers in the order in which a device looks
 * at them, named by purpose, as rdma-core has them (util/udma_barrier.h, where
 * the rules are). UCX's are not taken: those "of the CPU" order for other cores
 * alone, which on aarch64 is another domain than that of devices, and what
 * those "of the bus" are there differs between its versions.
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


/* Orders stores to memory: entries before the record that announces them. */
static UCS_F_ALWAYS_INLINE void uct_dcx_to_device_barrier(void)
{
    asm volatile(UCT_DCX_TO_DEVICE ::: "memory");
}


/* Orders loads before later loads and stores: the owner bit of an entry before
 * the rest of it, and that before the entry is given back. */
static UCS_F_ALWAYS_INLINE void uct_dcx_from_device_barrier(void)
{
    asm volatile(UCT_DCX_FROM_DEVICE ::: "memory");
}


/* Orders stores to memory before a store to a register, which may be
 * write-combining. */
static UCS_F_ALWAYS_INLINE void uct_dcx_wc_start(void)
{
    asm volatile(UCT_DCX_WC_START ::: "memory");
}


/* Sends out the stores to a register, which are combined with nothing that
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
