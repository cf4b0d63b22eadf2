/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Writes the sysfs and device trees (hca_sysfs.h), once, while the process
 * attaches and before any other thread can look at them: folders, links and
 * the device nodes. Contents of files are in hca_sysfs_attr.c.
 *
 * A device node is a link to /dev/zero, so that it can be opened;
 * preload_path.c and sysfs show its device numbers, which libibverbs compares.
 */
#define _GNU_SOURCE
#include "hca_sysfs.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_sys.h"
#include "hca_sysfs_attr.h"
#include "hca_sysfs_count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A PCI domain that no machine has, so that a lookup elsewhere by this address
 * (UCX: /sys/bus/pci/devices) never finds a real device. */
#define HCA_SYSFS_DOMAIN "dc00"
#define HCA_SYSFS_VERBS  HCA_SYSFS_DIR "/class/infiniband_verbs"

static unsigned hca_sysfs_minor[HCA_DEVS_PER_NODE]; /* of mlx5_n */
static const char *hca_sysfs_root; /* the process' directory, for messages */

/* Links of a device; UCX takes the PCI device from the target of
 * class/infiniband/X, Open MPI the driver from the last part of its link. */
static const struct {
    enum hca_sysfs_folder folder;
    const char *name, *target; /* %s is the driver */
} hca_sysfs_links[] = {
    {HCA_SYSFS_PCI, "driver", "../../../bus/pci/drivers/%s_core"},
    {HCA_SYSFS_IBDEV, "device", "../.."},
};

/* Prints the path of a folder below the process' directory. */
static void hca_sysfs_folder(const struct hca_sysfs_ctx *ctx,
                             enum hca_sysfs_folder folder, char *path,
                             size_t size)
{
    static const char pci[] = HCA_SYSFS_DIR "/devices/pci" HCA_SYSFS_DOMAIN
                                            ":00/" HCA_SYSFS_DOMAIN;
    char name[HCA_DEV_NAME_LEN];

    switch (folder) {
    case HCA_SYSFS_PCI:
        snprintf(path, size, "%s:%02x:00.0", pci, ctx->dev);
        return;
    case HCA_SYSFS_IBDEV:
        hca_dev_name(ctx->n, name);
        snprintf(path, size, "%s:%02x:00.0/infiniband/%s", pci, ctx->dev, name);
        return;
    case HCA_SYSFS_UVERBS:
        snprintf(path, size, HCA_SYSFS_VERBS "/uverbs%u", ctx->minor);
        return;
    }
}

/* Makes the folders that lead to path. */
static int hca_sysfs_mkdirs(int dirfd, const char *path)
{
    char part[PATH_MAX];

    for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
        if ((mkdirat(dirfd, part, 0755) < 0) && (errno != EEXIST)) {
            return -errno;
        }
    }
    return 0;
}

static int hca_sysfs_fail(int ret, const char *path)
{
    if (ret != 0) {
        hca_error("cannot write %s/%s: %s; make room there or set SOFTHCA_DIR "
                  "to another folder of yours",
                  hca_sysfs_root, path, strerror(-ret));
    }
    return ret;
}

/* Opens a file for writing; makes missing folders. */
static int hca_sysfs_open(int dirfd, const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    int fd          = hca_sys()->openat(dirfd, path, flags, 0444);
    int ret;

    if ((fd < 0) && (errno == ENOENT)) {
        ret = hca_sysfs_mkdirs(dirfd, path);
        if (ret != 0) {
            return ret;
        }
        fd = hca_sys()->openat(dirfd, path, flags, 0444);
    }
    return (fd < 0) ? -errno : fd;
}

static int hca_sysfs_write(int dirfd, const char *path, const char *text)
{
    char line[1024];
    int len = snprintf(line, sizeof(line), "%s\n", text);
    int fd  = hca_sysfs_open(dirfd, path);
    ssize_t written;
    int ret;

    if (fd < 0) {
        return hca_sysfs_fail(fd, path);
    }
    written = write(fd, line, len);
    ret     = (written == len) ? 0 : (written < 0) ? -errno : -ENOSPC;
    hca_sys()->close(fd);
    return hca_sysfs_fail(ret, path);
}

static int hca_sysfs_link(int dirfd, const char *path, const char *target)
{
    int ret = hca_sysfs_mkdirs(dirfd, path);

    if ((ret == 0) && (symlinkat(target, dirfd, path) < 0)) {
        ret = -errno;
    }
    return hca_sysfs_fail(ret, path);
}

/* The last entry of a table that was written; equal ones behind it are links to
 * its file. */
struct hca_sysfs_entry {
    char path[PATH_MAX], text[1000];
};

static int hca_sysfs_write_entry(int dirfd, struct hca_sysfs_entry *last,
                                 const char *path, const char *text)
{
    int ret;

    if (!strcmp(last->text, text) &&
        (linkat(dirfd, last->path, dirfd, path, 0) == 0)) {
        return 0;
    }
    ret = hca_sysfs_write(dirfd, path, text);
    snprintf(last->path, sizeof(last->path), "%s", path);
    snprintf(last->text, sizeof(last->text), "%s", text);
    return ret;
}

static int hca_sysfs_write_file(const struct hca_sysfs_file *file,
                                struct hca_sysfs_ctx *ctx)
{
    struct hca_sysfs_entry last = {};
    char path[PATH_MAX], text[1000];
    size_t len;
    int ret = 0;

    hca_sysfs_folder(ctx, file->folder, path, sizeof(path) - NAME_MAX);
    len         = strlen(path);
    path[len++] = '/';

    for (ctx->index = 0; ctx->index < (file->count ? file->count : 1);
         ctx->index++) {
        if ((file->print != NULL) &&
            (file->print(ctx, text, sizeof(text)) == 0)) {
            continue;
        }
        snprintf(path + len, sizeof(path) - len, file->name, ctx->index);
        ret = hca_sysfs_write_entry(ctx->dirfd, &last, path,
                                    file->print ? text : file->text);
        if (ret != 0) {
            return ret;
        }
    }
    return 0;
}

static int hca_sysfs_class_link(const struct hca_sysfs_ctx *ctx)
{
    char path[80], folder[PATH_MAX - 8], target[PATH_MAX];
    char name[HCA_DEV_NAME_LEN];

    hca_dev_name(ctx->n, name);
    hca_sysfs_folder(ctx, HCA_SYSFS_IBDEV, folder, sizeof(folder));
    snprintf(path, sizeof(path), HCA_SYSFS_DIR "/class/infiniband/%s", name);
    snprintf(target, sizeof(target), "../../%s",
             folder + strlen(HCA_SYSFS_DIR "/"));
    return hca_sysfs_link(ctx->dirfd, path, target);
}

/* Makes the node, and the links between uverbsN and its PCI device. */
static int hca_sysfs_uverbs_links(const struct hca_sysfs_ctx *ctx)
{
    char path[PATH_MAX], folder[PATH_MAX - 64], target[PATH_MAX];
    int ret;

    snprintf(path, sizeof(path), HCA_DEVFS_DIR "/infiniband/uverbs%u",
             ctx->minor);
    ret = hca_sysfs_link(ctx->dirfd, path, "/dev/zero");
    if (ret != 0) {
        return ret;
    }

    hca_sysfs_folder(ctx, HCA_SYSFS_PCI, folder, sizeof(folder));
    snprintf(path, sizeof(path), HCA_SYSFS_VERBS "/uverbs%u/device",
             ctx->minor);
    snprintf(target, sizeof(target), "../../../%s",
             folder + strlen(HCA_SYSFS_DIR "/"));
    ret = hca_sysfs_link(ctx->dirfd, path, target);
    if (ret != 0) {
        return ret;
    }

    snprintf(path, sizeof(path), "%s/infiniband_verbs/uverbs%u", folder,
             ctx->minor);
    snprintf(target, sizeof(target),
             "../../../../class/infiniband_verbs/uverbs%u", ctx->minor);
    return hca_sysfs_link(ctx->dirfd, path, target);
}

static int hca_sysfs_create_dev(int dirfd, unsigned n)
{
    struct hca_sysfs_ctx ctx = {
        .dirfd = dirfd,
        .n     = n,
        .dev   = hca_dev_local(n),
        .minor = hca_sysfs_minor[n],
    };
    char path[PATH_MAX], target[64];
    size_t len;
    int ret;

    for (const struct hca_sysfs_file *file = hca_sysfs_files;
         file->name != NULL; file++) {
        ret = hca_sysfs_write_file(file, &ctx);
        if (ret != 0) {
            return ret;
        }
    }
    for (size_t i = 0; i < sizeof(hca_sysfs_links) / sizeof(*hca_sysfs_links);
         i++) {
        hca_sysfs_folder(&ctx, hca_sysfs_links[i].folder, path,
                         sizeof(path) - NAME_MAX);
        len = strlen(path);
        snprintf(path + len, sizeof(path) - len, "/%s",
                 hca_sysfs_links[i].name);
        snprintf(target, sizeof(target), hca_sysfs_links[i].target,
                 hca_sysfs_driver(n));
        ret = hca_sysfs_link(dirfd, path, target);
        if (ret != 0) {
            return ret;
        }
    }
    hca_sysfs_folder(&ctx, HCA_SYSFS_IBDEV, path, sizeof(path) - NAME_MAX);
    ret = hca_sysfs_fail(hca_sysfs_count_create(dirfd, path), path);
    if (ret == 0) {
        ret = hca_sysfs_class_link(&ctx);
    }
    return (ret == 0) ? hca_sysfs_uverbs_links(&ctx) : ret;
}

/* Makes the folders uverbsN, and assigns the first that readdir() returns to
 * mlx5_0, and so on: libibverbs lists devices in this order, which is the file
 * system's, and programs use the first. It is usually the newest first: so the
 * folders are made downward. */
static int hca_sysfs_order(int dirfd)
{
    char path[64];
    struct dirent *entry;
    unsigned n = 0;
    DIR *dir;
    int fd;

    for (unsigned minor = hca_config.num_devs; minor-- > 0;) {
        snprintf(path, sizeof(path), HCA_SYSFS_VERBS "/uverbs%u", minor);
        if (mkdirat(dirfd, path, 0755) < 0) {
            return hca_sysfs_fail(-errno, path);
        }
    }

    fd  = hca_sys()->openat(dirfd, HCA_SYSFS_VERBS,
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = (fd < 0) ? NULL : fdopendir(fd);
    if (dir == NULL) {
        return hca_sysfs_fail(-errno, HCA_SYSFS_VERBS);
    }
    while (((entry = readdir(dir)) != NULL) && (n < hca_config.num_devs)) {
        if (sscanf(entry->d_name, "uverbs%u", &hca_sysfs_minor[n]) == 1) {
            n++;
        }
    }
    closedir(dir);
    return 0;
}

/* Hides the nodes, as without the module ib_uverbs: the devices exist, but no
 * program can open one. */
static int hca_sysfs_hide_verbs(int dirfd)
{
    if ((renameat(dirfd, HCA_SYSFS_VERBS, dirfd, HCA_SYSFS_DIR "/hidden") <
         0) ||
        (renameat(dirfd, HCA_DEVFS_DIR "/infiniband", dirfd,
                  HCA_DEVFS_DIR "/hidden") < 0)) {
        return hca_sysfs_fail(-errno, HCA_SYSFS_VERBS);
    }
    return 0;
}

int hca_sysfs_create(const char *dir)
{
    int dirfd = hca_sys()->openat(AT_FDCWD, dir,
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int ret;

    hca_sysfs_root = dir;
    if (dirfd < 0) {
        return hca_sysfs_fail(-errno, HCA_SYSFS_DIR);
    }

    /* 6 is the version of the commands (IB_USER_VERBS_ABI_VERSION) */
    ret = hca_sysfs_write(dirfd, HCA_SYSFS_VERBS "/abi_version", "6");
    if (ret == 0) {
        ret = hca_sysfs_order(dirfd);
    }
    for (unsigned n = 0; (ret == 0) && (n < hca_config.num_devs); n++) {
        ret = hca_sysfs_create_dev(dirfd, n);
    }
    if ((ret == 0) && hca_lacks(HCA_LACK_UVERBS)) {
        ret = hca_sysfs_hide_verbs(dirfd);
    }
    hca_sys()->close(dirfd);
    return ret;
}

int hca_sysfs_minor_of(int dev)
{
    return (dev < 0) ? -1 : (int)hca_sysfs_minor[dev % HCA_DEVS_PER_NODE];
}

int hca_sysfs_dev(unsigned minor)
{
    for (unsigned n = 0; n < hca_config.num_devs; n++) {
        if (hca_sysfs_minor[n] == minor) {
            return n;
        }
    }
    return -1;
}
