/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * From a descriptor to a handler: the opened device files, their ioctl, and the
 * tables of what uverbs/ and devx/ offer, which both must not know of each
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

/* A program opened the node of device `dev`; from now on fd is a file of its own
 * (uverbs_mmap.h). @return 0, or -EMFILE (the number is beyond what the table
 * holds), -ENOMEM, or what hca_fabric_attach() returns. */
int dispatch_open(int fd, unsigned dev);

/* newfd is a duplicate of fd. @return 0, -EBADF, -EMFILE. */
int dispatch_dup(int fd, int newfd);

/* newfd came from somewhere, through a socket for example. @return whether it is
 * a duplicate of one up to `top` that is open here, and is known as such now. */
bool dispatch_adopt(int newfd, int top);

/* Whether fd, of that status, may be what dispatch_import() takes. */
bool dispatch_may_import(int fd, const struct stat *st);

/* Another process opened the device that fd is of, and this one has come to have
 * its descriptor: makes fd a device here, too. @return as dispatch_open(), or
 * -ENODEV: it is none, or none that this process could have opened. */
int dispatch_import(int fd);

/* Whether the device that was opened as fd has this file. */
bool dispatch_has_file(int fd, const struct stat *st);

/* The device (hca_dev.h) that fd is; -1 if it is none. */
int dispatch_dev(int fd);

/* fd is being closed. The last duplicate releases what the context holds. In
 * a forked child it only forgets the descriptor. */
void dispatch_close(int fd);

/* @return 0 or -errno; -ENOTTY for any request but RDMA_VERBS_IOCTL. */
int dispatch_ioctl(int fd, unsigned long request, void *arg);

/* Whether fd is an opened device: one load. */
bool dispatch_is_open(int fd);

#endif
