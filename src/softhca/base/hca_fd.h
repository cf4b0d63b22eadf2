/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Descriptors of the device's own. A program that closes all descriptors that
 * it does not know (daemons, launchers) would close these too: preload_fd.c
 * skips them, up to number HCA_FD_MAX (hca_fd.c). Any thread, without a lock.
 */
#ifndef HCA_FD_H
#define HCA_FD_H

#include <stdbool.h>

/* Marks @fd as the device's. dup2() of the program onto it takes it from the
 * device, which does not notice. @return fd, which may be negative. */
int hca_fd_mark(int fd);

/* Closes a descriptor of the device. */
void hca_fd_close(int fd);

/* Unmarks @fd: the program has put a file of its own in its place. */
void hca_fd_unmark(int fd);

bool hca_fd_is_own(int fd);

/* Finds the first descriptor of the device from @first to @last.
 * @return false if there is none. */
bool hca_fd_next(unsigned first, unsigned last, unsigned *fd);

#endif
