/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds the handler of a descriptor: the opened device files, their ioctl, and
 * the tables of the methods of uverbs/ and devx/, which must not know of each
 * other.
 *
 * dispatch/ is called by preload/, from the functions that take the place of
 * libc's open, close, dup and ioctl. It alone knows all methods and all types
 * of objects, and nothing of paths, sysfs or libc.
 */
#ifndef DISPATCH_H
#define DISPATCH_H

#include <stdbool.h>
#include <sys/stat.h>

/* Makes @fd an opened device after the program opened the node of device @dev;
 * from now on fd is a file of its own (uverbs_mmap.h).
 * @return 0, -EMFILE (the number exceeds the table), -ENOMEM, or an error of
 *         hca_fabric_attach(). */
int dispatch_open(int fd, unsigned dev);

/* Records @newfd as a duplicate of @fd. @return 0, -EBADF, -EMFILE. */
int dispatch_dup(int fd, int newfd);

/* Records @newfd, received through a socket for example, if it is a duplicate
 * of an opened device up to @top.
 * @return true if it is one. */
bool dispatch_adopt(int newfd, int top);

/* Returns true if dispatch_import() may take @fd, whose status is @st. */
bool dispatch_may_import(int fd, const struct stat *st);

/* Makes @fd a device here, too: another process opened it, and this one has
 * received the descriptor. @return as dispatch_open(), or -ENODEV: it is no
 * device, or none that this process could have opened. */
int dispatch_import(int fd);

/* Returns true if the device opened as @fd has the file of status @st. */
bool dispatch_has_file(int fd, const struct stat *st);

/* Returns the device (hca_dev.h) of @fd; -1 if it is none. */
int dispatch_dev(int fd);

/* Forgets @fd, which is being closed. The last duplicate releases the objects
 * of the context. In a forked child it only forgets the descriptor. */
void dispatch_close(int fd);

/* @return 0 or -errno; -ENOTTY for any request but RDMA_VERBS_IOCTL. */
int dispatch_ioctl(int fd, unsigned long request, void *arg);

/* Returns true if @fd is an opened device: one load. */
bool dispatch_is_open(int fd);

#endif
