/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Start and end of the preloaded library, and the paths that it owns. Called by
 * any thread of any program, also in signal handlers and in children between
 * fork() (or vfork()) and exec().
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* no inline variants of functions defined here */
#include "preload.h"
#include "softhca/dispatch/dispatch.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/fabric/hca_rules.h"
#include "softhca/base/hca_log.h"
#include "hca_sysfs.h"
#include "hca_sysfs_count.h"
#include "softhca/obj/hca_pcie.h"
#include "softhca/exec/hca_nic.h"
#include "softhca/exec/hca_sq.h"
#include "softhca/exec/hca_thread.h"

#include <errno.h>
#include <limits.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define PRELOAD_SYSFS "/sys/class/infiniband" /* also infiniband_verbs, ... */
#define PRELOAD_DEVFS "/dev/infiniband"
#define PRELOAD_NODE  PRELOAD_DEVFS "/uverbs"

static __thread char preload_buffer[PATH_MAX];

static void preload_exit(int status, void *arg)
{
    (void)status;
    (void)arg;
    bool is_attached = hca_fabric_is_attached();

    hca_thread_enter();
    if (is_attached) {
        hca_sq_exit();
    }
    hca_fabric_detach();
    hca_thread_leave();
    if (is_attached) {
        hca_pcie_exit();
        hca_rules_exit();
    }
}

/* Hides the segment, as no exit handler runs. A child of vfork() hides nothing:
 * it has its parent's memory. */
PRELOAD_EXPORT void _exit(int status)
{
    if (preload_is_own_process() && hca_fabric_is_attached()) {
        hca_fabric_hide();
    }
    hca_sys()->_exit(status);
    __builtin_unreachable();
}

PRELOAD_EXPORT void _Exit(int status)
{
    _exit(status);
}

/* Destructors of other libraries (UCX, MPI) may still close devices, and that
 * of a preloaded library runs before theirs. An exit handler registered before
 * main() runs after all of them, unless it is tied to this library as those of
 * atexit() are. */
__attribute__((constructor)) static void preload_init(void)
{
    hca_sys();
    hca_log_init();
    preload_fd_init();
    on_exit(preload_exit, NULL);
}

/* Returns true if @path is @prefix, or something in that folder. */
static bool preload_is_below(const char *path, const char *prefix)
{
    size_t len = strlen(prefix);

    return !strncmp(path, prefix, len) &&
           ((path[len] == '\0') || (path[len] == '/'));
}

static bool preload_is_sysfs(const char *path)
{
    return !strncmp(path, PRELOAD_SYSFS, sizeof(PRELOAD_SYSFS) - 1);
}

const char *preload_path(const char *path)
{
    bool is_sysfs;
    int len;

    if ((path == NULL) || (path[0] != '/')) {
        return path;
    }
    is_sysfs = preload_is_sysfs(path);
    if (!is_sysfs && !preload_is_below(path, PRELOAD_DEVFS)) {
        return path;
    }
    if (hca_fabric_attach(hca_nic_kinds, hca_sysfs_create) != 0) {
        errno = ENOENT;
        return NULL;
    }
    preload_end_install();

    len = snprintf(preload_buffer, sizeof(preload_buffer), "%s/%s%s",
                   hca_fabric_dir(), is_sysfs ? HCA_SYSFS_DIR : HCA_DEVFS_DIR,
                   strchr(path + 1, '/'));
    if (len >= (int)sizeof(preload_buffer)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (is_sysfs) {
        hca_sysfs_count_refresh(path, preload_buffer);
    }
    return preload_buffer;
}

int preload_minor(const char *path)
{
    size_t len = sizeof(PRELOAD_NODE) - 1;
    unsigned minor;
    char end;

    /* called for all paths of a program: scan nodes only */
    if ((path == NULL) || strncmp(path, PRELOAD_NODE, len)) {
        return -1;
    }
    return (sscanf(path + len, "%u%c", &minor, &end) == 1) ? (int)minor : -1;
}

int preload_opened(const char *path, int fd)
{
    int minor = (fd < 0) ? -1 : preload_minor(path);
    int n, ret;

    if (minor < 0) {
        return fd;
    }
    n   = hca_sysfs_dev(minor);
    ret = (n < 0)                    ? -ENXIO :
          hca_lacks(HCA_LACK_ACCESS) ? -EACCES :
                                       dispatch_open(fd, hca_dev_local(n));
    if (ret == 0) {
        preload_fd_opened(fd);
        return fd;
    }
    hca_sys()->close(fd);
    errno = -ret;
    return -1;
}

/* Returns true if the ioctl is for the device. RDMA ioctls need no check of the
 * file; others may be meant for one that has the number now. */
static bool preload_takes_ioctl(int fd, unsigned long request)
{
    return dispatch_is_open(fd) &&
           ((request == RDMA_VERBS_IOCTL) || preload_fd_is_device(fd));
}

PRELOAD_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    struct stat st;
    va_list ap;
    void *arg;
    int ret;

    va_start(ap, request);
    arg = va_arg(ap, void *);
    va_end(ap);
    if ((request == RDMA_VERBS_IOCTL) && !dispatch_is_open(fd) &&
        (hca_sys()->fstat(fd, &st) == 0)) {
        preload_fd_adopt(fd, &st);
    }
    if (!preload_takes_ioctl(fd, request)) {
        return hca_sys()->ioctl(fd, request, arg);
    }

    ret = dispatch_ioctl(fd, request, arg);
    if (ret < 0) {
        errno = -ret;
        return -1;
    }
    return ret;
}
