/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Protection domains.
 */
#ifndef UVERBS_PD_H
#define UVERBS_PD_H

#include "uverbs.h"

struct uverbs_pd {
    struct uverbs_obj obj;
    struct hca_pd *hw;
    uint32_t pdn;
};

#endif
