/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of the segment that other processes' devices reach: rings, completion
 * queues, doorbell records. A process has chunks of its own.
 */
#ifndef HCA_ARENA_H
#define HCA_ARENA_H

#include "hca_segment.h"

/* Returns true if [ptr, ptr + size) lies in this process' part of the arena. */
bool hca_arena_contains(const void *ptr, size_t size);

/* Page-granular, zeroed memory of this process in the arena.
 * @return NULL with errno set: ENOSPC, ENOMEM. */
void *hca_arena_alloc(size_t size);

/* hca_arena_alloc() without the memory: that comes with the first use, if there
 * is some left then. */
void *hca_arena_reserve(size_t size);

/* Frees memory of hca_arena_alloc() or hca_arena_reserve(). */
void hca_arena_free(void *ptr);

/* Withdraws the chunks of some memory, of any process, from use for ever:
 * another has it mapped, and may write to it after the end of its process. */
void hca_arena_keep(const void *ptr, size_t size);

/* Returns the chunks of a process to the fabric. */
void hca_arena_reap(unsigned proc);

/* Returns true if all processes together have at most half of the arena. */
bool hca_arena_is_ample(void);

/* Puts private copies in place of this process' chunks, so that a thread that
 * goes on after the process has left writes to no other process' memory. */
void hca_arena_abandon(void);

/* Forgets the chunks in a forked child: they are its parent's. */
void hca_arena_forked(void);

#endif
