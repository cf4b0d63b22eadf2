/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Opened device files: the table of their descriptors, and their ioctl, for
 * which it finds the method of uverbs/ or devx/.
 *
 * dispatch/ is called by preload/, from the functions that take the place of
 * libc's open, close, dup, recvmsg and ioctl. It alone knows all methods and
 * all types of objects. It knows nothing of paths and sysfs.
 */
#ifndef DISPATCH_H
#define DISPATCH_H

#include <stdbool.h>
#include <sys/stat.h>

/* Makes @fd an opened device after the program opened the node of device @dev;
 * from now on fd refers to a new file (uverbs_mmap.h).
 * @return 0, -EMFILE (the number exceeds the table), or another -errno, such as
 *         that of hca_fabric_attach(). The caller closes @fd then. */
int dispatch_open(int fd, unsigned dev);

/* Records @newfd as a duplicate of @fd; if it was an opened device, that is
 * closed.
 * @return 0, -EBADF (@fd is no opened device), -EMFILE (@newfd exceeds the
 *         table). */
int dispatch_dup(int fd, int newfd);

/* Records @newfd, received through a socket for example, if it is a duplicate
 * of a device that this process has open as a descriptor up to @top.
 * @return true if it is recorded. */
bool dispatch_adopt(int newfd, int top);

/* Returns true if @fd, with @st from its fstat(), is the file of a device, but
 * not known as one: a duplicate, or another process has opened it. */
bool dispatch_may_adopt(int fd, const struct stat *st);

/* Returns true if @fd is an opened device, and @st is of its file. */
bool dispatch_has_file(int fd, const struct stat *st);

/* Returns the device (hca_dev.h) of @fd; -1 if it is none. */
int dispatch_dev(int fd);

/* Forgets @fd, which is being closed, if it is an opened device. The last
 * duplicate releases the objects of the context. In a forked child, only the
 * descriptor is forgotten. */
void dispatch_close(int fd);

/* @return 0 or -errno; -EBADF if @fd is no opened device, -ENOTTY for any
 * request but RDMA_VERBS_IOCTL, -EIO if the process that forked this one has
 * opened it. */
int dispatch_ioctl(int fd, unsigned long request, void *arg);

/* Returns true if @fd is an opened device. Takes no lock. */
bool dispatch_is_open(int fd);

#endif
