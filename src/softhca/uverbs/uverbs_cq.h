/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues, and what is checked of every buffer for the device.
 */
#ifndef UVERBS_CQ_H
#define UVERBS_CQ_H

#include "uverbs_event.h"

struct uverbs_cq {
    struct uverbs_obj    obj;
    struct hca_cq       *cq;
    struct uverbs_event *comp, *async;
    unsigned             cqe_size;
};

/* Checks a buffer that the device is to use.
 * @return 0, or -EINVAL after a line that says what is wrong. */
int uverbs_check_buf(const char *what, uint64_t addr, size_t size,
                     unsigned align);

#endif
