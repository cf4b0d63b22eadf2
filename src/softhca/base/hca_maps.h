/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The mappings of this process, as /proc/self/maps has them. Safe in a signal
 * handler and in a forked child: uses no memory but its stack, and no function
 * that another library could have replaced.
 */
#ifndef HCA_MAPS_H
#define HCA_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* One line: START-END PERMS OFFSET DEV INODE NAME. */
struct hca_vma {
    uintptr_t start, end;
    int prot; /* PROT_* */
    bool is_shared;
    uint64_t offset;
    const char *line; /* the whole line, for its name */
};

/* Calls fn for each mapping, in the order of addresses. */
void hca_maps_walk(void (*fn)(const struct hca_vma *vma, void *arg), void *arg);

/* A range of whole pages, and what is mapped there. */
struct hca_range {
    uintptr_t start, end;
    bool is_whole;  /* all of it is mapped */
    bool is_shared; /* some of it is */
    int prot;       /* PROT_* that all of it allows */
};

/* Fills in what is known of the range from start to end.
 * @return 0, or -errno: the file cannot be opened. */
int hca_maps_query(struct hca_range *range);

#endif
