/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Runs the methods of an opened device. Internal to dispatch/.
 */
#ifndef DISPATCH_METHOD_H
#define DISPATCH_METHOD_H

#include "softhca/uverbs/uverbs.h"

/* Runs the method that an RDMA_VERBS_IOCTL names, under the context's lock.
 * @param user  in the program's memory; need not be accessible
 * @return the result of its handler, or -EFAULT, -EINVAL, -EPROTONOSUPPORT. */
int dispatch_method_run(struct uverbs_ctx *ctx,
                        struct ib_uverbs_ioctl_hdr *user);

#endif
