/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Counts memory that the kernel would pin (ib_umem_get()). With
 * SOFTHCA_MEMLOCK=y its pages count against the RLIMIT_MEMLOCK of the process,
 * unless it has CAP_IPC_LOCK. Nothing is locked. Called with the mutexes of
 * different contexts: the count is atomic.
 */
#define _GNU_SOURCE
#include "uverbs_pin.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/base/hca_log.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic uint64_t uverbs_pinned;

static bool uverbs_pin_is_privileged(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

    return (syscall(SYS_capget, &header, data) == 0) &&
           (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &
            CAP_TO_MASK(CAP_IPC_LOCK));
}

/* Returns the limit in bytes. */
static uint64_t uverbs_pin_limit(void)
{
    struct rlimit limit;

    if ((getrlimit(RLIMIT_MEMLOCK, &limit) != 0) ||
        (limit.rlim_cur == RLIM_INFINITY)) {
        return UINT64_MAX;
    }
    return limit.rlim_cur;
}

int uverbs_pin(uint64_t start, uint64_t length, uint64_t *pages)
{
    uint64_t count = ((start + length + 4095) >> 12) - (start >> 12);
    uint64_t limit = uverbs_pin_limit(), pinned;

    *pages = 0;
    if (!hca_caps.memlock) {
        return 0;
    }
    if ((limit == 0) && !uverbs_pin_is_privileged()) {
        return -EPERM; /* can_do_mlock() */
    }
    pinned = atomic_fetch_add(&uverbs_pinned, count);
    if ((pinned + count > limit / 4096) && !uverbs_pin_is_privileged()) {
        atomic_fetch_sub(&uverbs_pinned, count);
        hca_info("%lu pages to be locked, besides %lu: the limit is %lu", count,
                 pinned, limit / 4096);
        return -ENOMEM;
    }
    *pages = count;
    return 0;
}

void uverbs_unpin(uint64_t pages)
{
    atomic_fetch_sub(&uverbs_pinned, pages);
}

void uverbs_pin_forked(void)
{
    atomic_store(&uverbs_pinned, 0);
}
