/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * XRC domains.
 */
#ifndef UVERBS_XRCD_H
#define UVERBS_XRCD_H

#include "uverbs.h"

struct uverbs_xrcd {
    struct uverbs_obj obj;
    struct hca_xrcd *xrcd;
    uint32_t xrcdn; /* the same for all openers of an inode */
};

#endif
