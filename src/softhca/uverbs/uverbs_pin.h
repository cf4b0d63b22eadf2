/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory that counts as locked (SOFTHCA_MEMLOCK).
 */
#ifndef UVERBS_PIN_H
#define UVERBS_PIN_H

#include <stdint.h>

/* Counts the pages of [start, start + length) as locked memory. Sets @pages to
 * the number for uverbs_unpin(): 0 after an error or without SOFTHCA_MEMLOCK=y.
 * CAP_IPC_LOCK lifts the limit.
 * @return 0; -ENOMEM: beyond the limit; -EPERM: the limit is 0. */
int uverbs_pin(uint64_t start, uint64_t length, uint64_t *pages);
void uverbs_unpin(uint64_t pages);

/* Resets the count in a forked child, which has nothing pinned. */
void uverbs_pin_forked(void);

#endif
