/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The view of the devices outside of ioctl(): the files of
 * /sys/class/infiniband* and the nodes in /dev/infiniband, as a real tree in
 * this process' run-time directory. preload.c redirects paths there.
 */
#ifndef HCA_SYSFS_H
#define HCA_SYSFS_H

/* Folders below the process' directory: /sys/class/... is in
 * HCA_SYSFS_DIR/class/..., /dev/infiniband in HCA_DEVFS_DIR/infiniband. */
#define HCA_SYSFS_DIR "sysfs"
#define HCA_DEVFS_DIR "dev"

/* Writes the trees of this node's devices below @dir. The caller removes them,
 * also after an error.
 * @return 0 or -errno, logged with the path and advice. */
int hca_sysfs_create(const char *dir);

/* Returns the n of the device mlx5_n with node uverbs<minor>; -1 if there is
 * none. */
int hca_sysfs_dev(unsigned minor);

/* Returns the minor of this node's device @dev, a number on the fabric; -1 if
 * @dev is negative. */
int hca_sysfs_minor_of(int dev);

#endif
