/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory windows.
 */
#ifndef UVERBS_MW_H
#define UVERBS_MW_H

#include "uverbs.h"

/* Returns true if a window of the context is bound to the region of @key. */
bool uverbs_mw_has(struct uverbs_ctx *ctx, uint32_t key);

#endif
