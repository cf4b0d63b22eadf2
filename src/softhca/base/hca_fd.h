/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Descriptors of the device's own, which a driver would not need. A program
 * that closes all that it does not know of (daemons, launchers) would take
 * them along: preload.c steps over them. Any thread, without a lock.
 */
#ifndef HCA_FD_H
#define HCA_FD_H

#include <stdbool.h>

/* Makes a descriptor the device's. @return fd, which may be negative. */
int hca_fd_keep(int fd);

/* Closes one of the device's. */
void hca_fd_close(int fd);

/* It is the program's now, who put something else in its place. */
void hca_fd_lose(int fd);

bool hca_fd_is_own(int fd);

/* Finds the first of the device's from `first` to `last`.
 * @return false if there is none. */
bool hca_fd_next(unsigned first, unsigned last, unsigned *fd);

#endif
