/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The mappings of this process, from /proc/self/maps. Safe in a signal handler
 * and in a forked child: uses the stack, a descriptor that was kept, and system
 * calls that no other library interposes.
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
    uint64_t dev, inode; /* of its file, as in struct stat; 0: no file */
    const char *line;    /* whole, without its newline; valid during the call */
};

/* Keeps a descriptor, with which the other functions work, too, when the
 * process has none left. @return 0, or -errno */
int hca_maps_keep(void);

/* Closes it in a forked child: it shows the mappings of the parent. */
void hca_maps_forked(void);

/* Calls @fn for each mapping, in the order of addresses.
 * @return false if the file cannot be opened: then for none. */
bool hca_maps_walk(void (*fn)(const struct hca_vma *vma, void *arg), void *arg);

/* Finds the mapping of an address, all but its line.
 * @return false if there is none, or the file cannot be opened. */
bool hca_maps_find(uintptr_t addr, struct hca_vma *vma);

/* Checks that [start, end) is in one mapping of plain memory: private, without
 * a file, readable, writable, not executable, neither stack nor heap. The
 * program may have used only some kinds of madvise() on it.
 * @return these kinds, bits 1 << MADV_*; -EBUSY: the range is other memory. */
int hca_maps_plain(uintptr_t start, uintptr_t end);

/* A range of whole pages. If not all of it is mapped, is_shared and prot may
 * cover only a part of the mappings. */
struct hca_range {
    uintptr_t start, end;
    bool is_whole;  /* all of it is mapped */
    bool is_shared; /* some of it is mapped shared */
    int prot;       /* PROT_* that all of it allows */
};

/* Fills in is_whole, is_shared and prot for the given start and end.
 * @return 0, or -errno: the file cannot be opened. */
int hca_maps_query(struct hca_range *range);

#endif
