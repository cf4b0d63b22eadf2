/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UAR pages.
 */
#ifndef UVERBS_UAR_H
#define UVERBS_UAR_H

#include "uverbs.h"

/* Reinitializes the lock in a forked child, where no thread holds it. */
void uverbs_uar_forked(void);

/* Returns true if the UAR page belongs to this context. */
bool uverbs_uar_valid(const struct uverbs_ctx *ctx, uint32_t page_id);

#endif
