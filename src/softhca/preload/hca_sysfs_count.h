/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Files of sysfs whose contents change: ports/1/counters and hw_counters.
 */
#ifndef HCA_SYSFS_COUNT_H
#define HCA_SYSFS_COUNT_H

/* Writes the files below the folder of a device. @return 0 or -errno. */
int hca_sysfs_count_create(int dirfd, const char *folder);

/* Updates counters before a program looks at @path (the program's name for
 * it), which is @real: if that is a counter, or a folder of them, it is
 * rewritten. */
void hca_sysfs_count_refresh(const char *path, const char *real);

#endif
