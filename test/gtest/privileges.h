/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The privilege to lock more memory than ulimit -l allows.
 */
#ifndef DCX_TEST_PRIVILEGES_H
#define DCX_TEST_PRIVILEGES_H

#include "hca_fixture.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sets or clears CAP_IPC_LOCK in the effective set; does not set it if it is
 * not permitted. */
static inline void set_privileged(bool is_privileged)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    const uint32_t bit = CAP_TO_MASK(CAP_IPC_LOCK);

    HCA_CHECK_CALL(syscall(SYS_capget, &header, data) == 0);
    if (is_privileged) {
        data[0].effective |= data[0].permitted & bit;
    } else {
        data[0].effective &= ~bit;
    }
    HCA_CHECK_CALL(syscall(SYS_capset, &header, data) == 0);
}

#endif
