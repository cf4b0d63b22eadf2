/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The files of a device in sysfs, as a table. hca_sysfs.c writes them.
 */
#ifndef HCA_SYSFS_ATTR_H
#define HCA_SYSFS_ATTR_H

#include <stddef.h>
#include <sys/types.h>

/* Arguments of a print function. */
struct hca_sysfs_ctx {
    int dirfd;      /* the process' directory */
    unsigned n;     /* mlx5_n */
    unsigned dev;   /* on the fabric */
    unsigned minor; /* uverbs<minor> */
    unsigned index; /* entry of a table (GIDs, P_Keys) */
};

/* The folders of a device, see hca_sysfs_folder(). */
enum hca_sysfs_folder { HCA_SYSFS_PCI, HCA_SYSFS_IBDEV, HCA_SYSFS_UVERBS };

/* Prints the contents without the newline. @return length; 0: no file. */
typedef int (*hca_sysfs_print_t)(const struct hca_sysfs_ctx *ctx, char *buf,
                                 size_t size);

struct hca_sysfs_file {
    enum hca_sysfs_folder folder;
    const char *name; /* %u is the index */
    hca_sysfs_print_t print;
    const char *text; /* contents, if print is NULL */
    unsigned count;   /* entries of a table, 0: one file */
};

/* Ends with a file without name. */
extern const struct hca_sysfs_file hca_sysfs_files[];

/* Returns the device number of the node uverbs<minor>. */
dev_t hca_sysfs_rdev(unsigned minor);

/* Returns the driver of mlx5_n: "mlx5", or "mlx4" (hca_dev_is_other()). */
const char *hca_sysfs_driver(unsigned n);

#endif
