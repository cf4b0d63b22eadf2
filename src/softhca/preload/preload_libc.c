/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The functions of libc that the library stands before; see preload.h.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* its inline variants of what is looked up here */
#include "preload.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>

static struct preload_libc preload_real;
static atomic_bool preload_ready;

/* Twice at once is harmless: both find the same. */
static void preload_resolve(void)
{
#define PRELOAD_RESOLVE(_name) \
    preload_real._name = (__typeof__(preload_real._name)) \
            (uintptr_t)dlsym(RTLD_NEXT, #_name);
    PRELOAD_LIBC(PRELOAD_RESOLVE)
    atomic_store_explicit(&preload_ready, true, memory_order_release);
}

const struct preload_libc *preload_libc(void)
{
    /* pairs with the release in preload_resolve() */
    if (__builtin_expect(!atomic_load_explicit(&preload_ready,
                                               memory_order_acquire), 0)) {
        preload_resolve();
    }
    return &preload_real;
}
