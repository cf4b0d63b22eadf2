/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The segment of the fabric (hca_fabric.h): a memfd that is mapped by each
 * attached process. Called by hca_fabric.c while it attaches and leaves.
 */
#ifndef HCA_SEGMENT_H
#define HCA_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

/* The memory that a new fabric lives in. @return descriptor or -errno. */
int hca_segment_create(const char *name);

/* Maps it as hca_fabric. The descriptor stays open, hidden from the program.
 * @return 0 or -errno. */
int hca_segment_map(int fd);
void hca_segment_unmap(void);

/* Whether it is where the process that forked this one had it: pointers that
 * were inherited lead to the same. */
bool hca_segment_is_inherited(void);

/* Maps pages of it a second time, in place of what is at `to`. The call is made
 * directly, past any hook. @return 0 or -errno. */
int hca_segment_map_again(const void *from, size_t size, void *to);

/* Writes what a new one begins with. */
void hca_segment_format(void);

/* Whether a library of the same source has made it. @return 0 or -EPROTO. */
int hca_segment_check(void);

/* valgrind's search for leaks, which comes after this, would read the whole
 * segment and so fill its holes: gigabytes, for minutes. What is hidden from
 * it no one uses any more: all but the rings of this process. */
void hca_segment_hide(void);

#endif
