/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The arena: memory of the segment for all that other processes' devices reach,
 * such as rings, completion queues and doorbell records. Each process owns
 * chunks of it (HCA_CHUNK_SIZE). Sizes are in bytes.
 */
#ifndef HCA_ARENA_H
#define HCA_ARENA_H

#include "hca_segment.h"

/* Returns true if [ptr, ptr + size) lies in one allocation of this process. */
bool hca_arena_contains(const void *ptr, size_t size);

/* Allocates zeroed pages for this process.
 * @return NULL with errno set: EINVAL (@size is 0 or exceeds the arena), or
 *         ENOMEM, logged. */
void *hca_arena_alloc(size_t size);

/* hca_arena_alloc() of addresses only: the first use of a page allocates its
 * memory, and is a SIGBUS if there is none. */
void *hca_arena_reserve(size_t size);

/* Frees memory of hca_arena_alloc() or hca_arena_reserve(). Does nothing for
 * NULL, or unless this process is attached. */
void hca_arena_free(void *ptr);

/* Frees all chunks of a process that is dead or leaves. */
void hca_arena_reap(unsigned proc);

/* Returns true if all processes together have at most half of the arena. */
bool hca_arena_is_ample(void);

/* Puts private copies in place of this process' chunks, so that a thread that
 * goes on after the process has left writes to no other process' memory. */
void hca_arena_abandon(void);

/* Forgets the chunks in a forked child: they are its parent's. */
void hca_arena_forked(void);

#endif
