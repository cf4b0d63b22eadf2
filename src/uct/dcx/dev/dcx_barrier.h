/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Barriers that order memory and registers as a device sees them, named by
 * purpose like rdma-core's (util/udma_barrier.h explains the rules). UCX's are
 * not used. Its CPU barriers order for other cores only: on aarch64, devices
 * are in another shareability domain. Its bus barriers differ on aarch64
 * between versions of UCX.
 *
 * x86-64 keeps the order of loads, and that of stores to memory; stores to a
 * write-combining register are ordered with neither.
 */
#ifndef UCT_DCX_BARRIER_H
#define UCT_DCX_BARRIER_H

#include <ucs/sys/compiler_def.h>

#if defined(__x86_64__)
#define UCT_DCX_TO_DEVICE   ""
#define UCT_DCX_FROM_DEVICE ""
#define UCT_DCX_WC_START    "sfence"
#define UCT_DCX_WC_FLUSH    "sfence"
#define UCT_DCX_WC_FULL     ""
#elif defined(__aarch64__)
#define UCT_DCX_TO_DEVICE   "dmb oshst"
#define UCT_DCX_FROM_DEVICE "dmb oshld"
#define UCT_DCX_WC_START    "dmb oshst"
#define UCT_DCX_WC_FLUSH    "dsb st"
#define UCT_DCX_WC_FULL     "hint #6" /* dgh */
#else
#error barriers for DMA are known for x86-64 and aarch64
#endif


/* Orders stores to memory: WQEs before the doorbell record that announces
 * them. */
static UCS_F_ALWAYS_INLINE void uct_dcx_to_device_barrier(void)
{
    asm volatile(UCT_DCX_TO_DEVICE ::: "memory");
}


/* Orders loads before later loads and stores: the owner bit of a CQE before the
 * rest of it, and the rest before the CQE is given back to the device. */
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


/* Flushes stores to a register, so that later stores are not combined with
 * them. */
static UCS_F_ALWAYS_INLINE void uct_dcx_wc_flush(void)
{
    asm volatile(UCT_DCX_WC_FLUSH ::: "memory");
}


/* Ends stores of whole cache lines to a register that need no flush. x86-64
 * sends whole lines by itself (Intel SDM volume 3, "buffering of write
 * combining memory locations"); aarch64 is given a hint. */
static UCS_F_ALWAYS_INLINE void uct_dcx_wc_full(void)
{
    asm volatile(UCT_DCX_WC_FULL ::: "memory");
}

#endif
