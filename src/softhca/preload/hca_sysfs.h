/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What programs read about the devices outside of ioctl(): the files of
 * /sys/class/infiniband* and the nodes in /dev/infiniband, as a real tree in
 * this process' run-time directory. preload.c sends paths there.
 */
#ifndef HCA_SYSFS_H
#define HCA_SYSFS_H

/* Folders below the process' directory: /sys/class/... is found in
 * HCA_SYSFS_DIR/class/..., /dev/infiniband in HCA_DEVFS_DIR/infiniband. */
#define HCA_SYSFS_DIR "sysfs"
#define HCA_DEVFS_DIR "dev"

/* Writes the trees of this node's devices below dir. Removing them is the
 * caller's, also after an error.
 * @return 0 or -errno, logged with the path and what to do. */
int hca_sysfs_create(const char *dir);

/* The device n (of mlx5_n) whose node is uverbs<minor>; -1 if there is none. */
int hca_sysfs_dev(unsigned minor);

/* ... and back, from the device's number on the fabric. */
int hca_sysfs_minor_of(int dev);

#endif
