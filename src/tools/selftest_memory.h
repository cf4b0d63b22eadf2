/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The memory that a probe may pin. In a container, the kernel kills a process
 * that exceeds the limit of its cgroup.
 */
#ifndef DCX_SELFTEST_MEMORY_H
#define DCX_SELFTEST_MEMORY_H

#include <stddef.h>

/* Returns the free bytes of the host, or of the cgroup if these are fewer. */
size_t selftest_memory_free(void);

/* Returns the fewest free bytes of the cgroups, and of those above them, that
 * the file @list names, such as /proc/self/cgroup. @root: their mount point.
 * Returns SIZE_MAX if nothing limits them. */
size_t selftest_memory_cgroup(const char *list, const char *root);

#endif
