/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The mappings of this process, as /proc/self/maps has them. Safe in a signal
 * handler and in a forked child: uses no memory but its stack, and no function
 * that another library could have replaced.
 */
#ifndef HCA_MAPS_H
#define HCA_MAPS_H

#include <stdint.h>

/* One line: START-END PERMS OFFSET DEV INODE NAME. */
struct hca_vma {
    uintptr_t   start, end;
    uint64_t    offset;
    const char *line; /* the whole of it, for its name */
};

/* Calls fn for each mapping, in the order of addresses. */
void hca_maps_walk(void (*fn)(const struct hca_vma *vma, void *arg),
                   void *arg);

#endif
