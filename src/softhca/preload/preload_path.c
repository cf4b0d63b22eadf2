/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Functions that take a path, in every form in which libibverbs, librdmacm,
 * UCX, Open MPI, perftest and plain tools call them (the 64-bit, the fortified
 * and, for programs built with glibc before 2.33, the versioned ones). Only
 * absolute paths are checked: a program that walks /sys from a descriptor
 * (hwloc) sees the machine as it is.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* no inline variants of functions defined here */
#include "preload.h"
#include "hca_sysfs.h"
#include "hca_sysfs_attr.h"
#include "softhca/dispatch/dispatch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/sysmacros.h>

static int preload_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    const char *real = preload_path(path);
    int fd;

    if (real == NULL) {
        return -1;
    }
    fd = hca_sys()->openat(dirfd, real, flags, mode);
    return (real == path) ? fd : preload_opened(path, fd);
}

/* Returns the mode argument, if there is one. */
static mode_t preload_mode(int flags, va_list ap)
{
    return (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(ap, mode_t) : 0;
}

PRELOAD_EXPORT int open(const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = preload_mode(flags, ap);
    va_end(ap);
    return preload_openat(AT_FDCWD, path, flags, mode);
}

PRELOAD_EXPORT int open64(const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = preload_mode(flags, ap);
    va_end(ap);
    return preload_openat(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

PRELOAD_EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = preload_mode(flags, ap);
    va_end(ap);
    return preload_openat(dirfd, path, flags, mode);
}

PRELOAD_EXPORT int openat64(int dirfd, const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = preload_mode(flags, ap);
    va_end(ap);
    return preload_openat(dirfd, path, flags | O_LARGEFILE, mode);
}

/* The fortified forms have no mode and end a program that forgot it. */
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

PRELOAD_EXPORT int __openat_2(int dirfd, const char *path, int flags)
{
    if ((flags & O_CREAT) || ((flags & __O_TMPFILE) == __O_TMPFILE)) {
        abort();
    }
    return preload_openat(dirfd, path, flags, 0);
}

PRELOAD_EXPORT int __openat64_2(int dirfd, const char *path, int flags)
{
    return __openat_2(dirfd, path, flags | O_LARGEFILE);
}

PRELOAD_EXPORT int __open_2(const char *path, int flags)
{
    return __openat_2(AT_FDCWD, path, flags);
}

PRELOAD_EXPORT int __open64_2(const char *path, int flags)
{
    return __openat_2(AT_FDCWD, path, flags | O_LARGEFILE);
}

PRELOAD_EXPORT FILE *fopen(const char *path, const char *mode)
{
    path = preload_path(path);
    return (path == NULL) ? NULL : hca_sys()->fopen(path, mode);
}

PRELOAD_EXPORT FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode); /* files are 64-bit on x86-64 */
}

PRELOAD_EXPORT DIR *opendir(const char *path)
{
    path = preload_path(path);
    return (path == NULL) ? NULL : hca_sys()->opendir(path);
}

PRELOAD_EXPORT int scandir(const char *path, struct dirent ***list,
                           int (*filter)(const struct dirent *),
                           int (*cmp)(const struct dirent **,
                                      const struct dirent **))
{
    path = preload_path(path);
    return (path == NULL) ? -1 : hca_sys()->scandir(path, list, filter, cmp);
}

PRELOAD_EXPORT int access(const char *path, int mode)
{
    path = preload_path(path);
    return (path == NULL) ? -1 : hca_sys()->access(path, mode);
}

PRELOAD_EXPORT int faccessat(int dirfd, const char *path, int mode, int flags)
{
    path = preload_path(path);
    return (path == NULL) ? -1 : hca_sys()->faccessat(dirfd, path, mode, flags);
}

PRELOAD_EXPORT ssize_t readlink(const char *path, char *buf, size_t size)
{
    path = preload_path(path);
    return (path == NULL) ? -1 : hca_sys()->readlink(path, buf, size);
}

ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);

PRELOAD_EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t size,
                                      size_t room)
{
    if (size > room) {
        abort();
    }
    return readlink(path, buf, size);
}

PRELOAD_EXPORT char *realpath(const char *path, char *resolved)
{
    path = preload_path(path);
    return (path == NULL) ? NULL : hca_sys()->realpath(path, resolved);
}

char *__realpath_chk(const char *path, char *resolved, size_t room);

PRELOAD_EXPORT char *__realpath_chk(const char *path, char *resolved,
                                    size_t room)
{
    if (room < PATH_MAX) {
        abort();
    }
    return realpath(path, resolved);
}

/* Gives the status of the kernel's node to a node, which is a link to another
 * device, and to an opened one, a file without a name. */
static int preload_stat_node(int ret, int minor, struct stat *st)
{
    if ((ret == 0) && (minor >= 0)) {
        st->st_mode   = S_IFCHR | 0666;
        st->st_rdev   = hca_sysfs_rdev(minor);
        st->st_size   = 0;
        st->st_blocks = 0;
    }
    return ret;
}

static int preload_statx_node(int ret, int minor, struct statx *st)
{
    if ((ret == 0) && (minor >= 0)) {
        st->stx_mode       = S_IFCHR | 0666;
        st->stx_rdev_major = major(hca_sysfs_rdev(minor));
        st->stx_rdev_minor = minor(hca_sysfs_rdev(minor));
        st->stx_size       = 0;
        st->stx_blocks     = 0;
    }
    return ret;
}

/* Returns the minor of the node of an opened device; -1 if @fd is none. */
static int preload_fd_minor(int fd)
{
    return preload_fd_is_device(fd) ? hca_sysfs_minor_of(dispatch_dev(fd)) : -1;
}

/* Returns the minor of a path, or of @fd if the path is empty and @flags allow
 * that. */
static int preload_at_minor(int fd, const char *path, int flags)
{
    return ((flags & AT_EMPTY_PATH) && (path != NULL) && (*path == '\0')) ?
               preload_fd_minor(fd) :
               preload_minor(path);
}

PRELOAD_EXPORT int stat(const char *path, struct stat *st)
{
    const char *real = preload_path(path);

    return (real == NULL) ? -1 :
                            preload_stat_node(hca_sys()->stat(real, st),
                                              preload_minor(path), st);
}

PRELOAD_EXPORT int lstat(const char *path, struct stat *st)
{
    const char *real = preload_path(path);

    return (real == NULL) ? -1 :
                            preload_stat_node(hca_sys()->lstat(real, st),
                                              preload_minor(path), st);
}

PRELOAD_EXPORT int fstat(int fd, struct stat *st)
{
    int ret = hca_sys()->fstat(fd, st);

    if (ret == 0) {
        preload_fd_adopt(fd, st);
    }
    return preload_stat_node(ret, preload_fd_minor(fd), st);
}

PRELOAD_EXPORT int fstatat(int dirfd, const char *path, struct stat *st,
                           int flags)
{
    const char *real = preload_path(path);

    return (real == NULL) ?
               -1 :
               preload_stat_node(hca_sys()->fstatat(dirfd, real, st, flags),
                                 preload_at_minor(dirfd, path, flags), st);
}

PRELOAD_EXPORT int statx(int dirfd, const char *path, int flags, unsigned mask,
                         struct statx *st)
{
    const char *real = preload_path(path);

    return (real == NULL) ? -1 :
                            preload_statx_node(
                                hca_sys()->statx(dirfd, real, flags, mask, st),
                                preload_at_minor(dirfd, path, flags), st);
}

/* struct stat64 is struct stat on x86-64. */
PRELOAD_EXPORT int stat64(const char *path, struct stat64 *st)
{
    return stat(path, (struct stat *)st);
}

PRELOAD_EXPORT int lstat64(const char *path, struct stat64 *st)
{
    return lstat(path, (struct stat *)st);
}

PRELOAD_EXPORT int fstat64(int fd, struct stat64 *st)
{
    return fstat(fd, (struct stat *)st);
}

PRELOAD_EXPORT int fstatat64(int dirfd, const char *path, struct stat64 *st,
                             int flags)
{
    return fstatat(dirfd, path, (struct stat *)st, flags);
}

/* Versions 0 and 1 of the structure are the same on x86-64. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat *st);

static bool preload_stat_version(int version)
{
    if ((version != 0) && (version != 1)) {
        errno = EINVAL;
        return false;
    }
    return true;
}

PRELOAD_EXPORT int __xstat(int version, const char *path, struct stat *st)
{
    return preload_stat_version(version) ? stat(path, st) : -1;
}

PRELOAD_EXPORT int __xstat64(int version, const char *path, struct stat *st)
{
    return __xstat(version, path, st);
}

PRELOAD_EXPORT int __lxstat(int version, const char *path, struct stat *st)
{
    return preload_stat_version(version) ? lstat(path, st) : -1;
}

PRELOAD_EXPORT int __lxstat64(int version, const char *path, struct stat *st)
{
    return __lxstat(version, path, st);
}

PRELOAD_EXPORT int __fxstat(int version, int fd, struct stat *st)
{
    return preload_stat_version(version) ? fstat(fd, st) : -1;
}

PRELOAD_EXPORT int __fxstat64(int version, int fd, struct stat *st)
{
    return __fxstat(version, fd, st);
}
