/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Looks up the real functions of libc: see hca_sys.h. Any thread calls it, also
 * in a signal handler. The table does not change once it is filled in.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* no inline variants of functions looked up here */
#include "hca_sys.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

static struct hca_sys hca_sys_real;
static atomic_bool hca_sys_ready;

/* Two threads may run this at once: both find the same addresses. */
static void hca_sys_resolve(void)
{
#define HCA_SYS_RESOLVE(_name) \
    hca_sys_real._name = \
        (__typeof__(hca_sys_real._name))(uintptr_t)dlsym(RTLD_NEXT, #_name);
    HCA_SYS(HCA_SYS_RESOLVE)
    atomic_store_explicit(&hca_sys_ready, true, memory_order_release);
}

const struct hca_sys *hca_sys(void)
{
    /* pairs with the release in hca_sys_resolve() */
    if (__builtin_expect(
            !atomic_load_explicit(&hca_sys_ready, memory_order_acquire), 0)) {
        hca_sys_resolve();
    }
    return &hca_sys_real;
}
