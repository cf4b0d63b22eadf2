/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Descriptors that the device itself uses. A program that closes all
 * descriptors that it does not know (daemons, launchers) would close these too:
 * preload_fd.c skips them, below number HCA_FD_MAX (hca_fd.c). Any thread,
 * without a lock.
 */
#ifndef HCA_FD_H
#define HCA_FD_H

#include <stdbool.h>

/* Marks @fd as the device's; a negative one is ignored. If the program calls
 * dup2() onto it, the device loses it without notice. @return @fd. */
int hca_fd_mark(int fd);

/* Unmarks and closes a descriptor of the device. Does nothing if the program
 * has replaced it. */
void hca_fd_close(int fd);

/* Unmarks @fd, which the program has replaced by a file of its own. */
void hca_fd_unmark(int fd);

bool hca_fd_is_own(int fd);

/* Finds the first descriptor of the device from @first to @last, both included.
 * @return false if there is none; @fd is undefined then. */
bool hca_fd_next(unsigned first, unsigned last, unsigned *fd);

#endif
