/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Freezes a range of pages, which is read-only for a moment. A store that
 * faults there waits in the handler and is repeated. The handler may run only
 * after the thaw: then each thread may repeat one store for each freeze; the
 * next fault is the program's.
 */
#define _GNU_SOURCE
#include "hca_trap_freeze.h"
#include "hca_trap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t freeze_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uintptr_t freeze_start, freeze_end;
static _Atomic unsigned freeze_count; /* odd: frozen now */

static __thread unsigned freeze_seen; /* count of the last retry */
static __thread bool freeze_own;      /* this thread froze it */

/* Mask of the thread that froze, in the kernel's form; valid while frozen. */
static uint64_t freeze_mask;

bool hca_trap_frozen(const siginfo_t *info)
{
    uintptr_t fault = (uintptr_t)info->si_addr;
    unsigned count  = atomic_load(&freeze_count);

    if (freeze_own || (fault < atomic_load(&freeze_start)) ||
        (fault >= atomic_load(&freeze_end))) {
        return false;
    }

    if ((count & 1) == 0) {
        if (freeze_seen == count) {
            return false;
        }
        freeze_seen = count;
        return true;
    }

    while (atomic_load(&freeze_count) == count) {
        syscall(SYS_sched_yield);
    }
    return true;
}

/* Blocks signals in the thread that froze: a handler of the program could store
 * to the pages, and would wait for itself. */
static void freeze_block(void)
{
    const uint64_t all = ~((1ull << (SIGSEGV - 1)) | (1ull << (SIGBUS - 1)));

    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &freeze_mask,
            sizeof(freeze_mask));
}

void hca_trap_freeze(void *start, size_t len)
{
    pthread_mutex_lock(&freeze_mutex);
    freeze_block();
    freeze_own = true;
    atomic_store(&freeze_start, (uintptr_t)start);
    atomic_store(&freeze_end, (uintptr_t)start + len);
    atomic_fetch_add(&freeze_count, 1);
}

void hca_trap_thaw(void)
{
    uint64_t mask = freeze_mask;

    atomic_fetch_add(&freeze_count, 1);
    freeze_own = false;
    pthread_mutex_unlock(&freeze_mutex);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

void hca_trap_freeze_forked(void)
{
    pthread_mutex_init(&freeze_mutex, NULL);
    atomic_fetch_and(&freeze_count, ~1u);
}
