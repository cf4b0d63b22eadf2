/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A range of pages of the program that is replaced by others: no thread of this
 * process (hca_trap_freeze()) and no peer (hca_mem.c) stores there meanwhile.
 */
#ifndef HCA_FREEZE_H
#define HCA_FREEZE_H

#include <stddef.h>

/* Freezes whole pages, which the caller is about to make read-only: stores wait
 * until the same thread calls hca_freeze_end().
 * @return 0, or -errno: nothing is frozen. */
int hca_freeze_begin(void *pages, size_t size);

/* Ends it. The pages are writable again. */
void hca_freeze_end(void);

#endif
