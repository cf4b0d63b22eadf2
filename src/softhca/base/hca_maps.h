/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The mappings of this process, from /proc/self/maps. Safe in a signal handler
 * and in a forked child: uses the stack, and system calls that no other library
 * interposes. Each call opens the file. If that fails, it reads a descriptor
 * that was kept, except hca_maps_plain(), which reads /proc/self/smaps.
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

/* Keeps a descriptor of /proc/self/maps for when the process has none left.
 * @return 0, or -errno */
int hca_maps_keep(void);

/* Closes the kept descriptor in a forked child: it shows the mappings of the
 * parent. */
void hca_maps_forked(void);

/* Calls @fn for each mapping, in the order of addresses.
 * @return false if the file cannot be opened: @fn is not called then. */
bool hca_maps_walk(void (*fn)(const struct hca_vma *vma, void *arg), void *arg);

/* Finds the mapping of @addr, and fills in @vma except its line.
 * @return false if there is none, or the file cannot be opened; @vma is
 *         undefined then. */
bool hca_maps_find(uintptr_t addr, struct hca_vma *vma);

/* Checks that [start, end) is in one mapping of plain memory: private, without
 * a file, readable, writable, not executable, neither stack nor heap. Of the
 * advice that VmFlags shows, it may have MADV_DONTFORK, MADV_HUGEPAGE and
 * MADV_DONTDUMP.
 * @return the advice it has, bits 1 << MADV_*; -EBUSY: the range is other
 *         memory, or the file cannot be opened. */
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
