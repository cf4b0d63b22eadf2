/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Files of sysfs whose contents change: ports/1/counters and hw_counters.
 */
#ifndef HCA_SYSFS_COUNT_H
#define HCA_SYSFS_COUNT_H

/* Writes the files, which contain 0, in ports/1 of a device's @folder, a path
 * below @dirfd. @return 0 or -errno, not logged. */
int hca_sysfs_count_create(int dirfd, const char *folder);

/* Updates counters before a program opens @path: if that is a counter, or a
 * folder of them, rewrites the files of its counterpart @real. After an error
 * they stay as they were. */
void hca_sysfs_count_refresh(const char *path, const char *real);

#endif
