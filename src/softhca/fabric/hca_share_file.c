/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Files of mappings: see hca_share_file.h. A peer opens a descriptor of this
 * process anew through /proc, with rights of its own: so it needs no right to
 * read or write here (O_PATH).
 */
#define _GNU_SOURCE
#include "hca_share_file.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_sys.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors of the program that are looked through. */
#define SHARE_FDS 4096u

/* The name of the mapping's file in /proc/self/maps. */
struct share_name {
    uintptr_t start;
    char text[512];
};

static void share_name_vma(const struct hca_vma *vma, void *arg)
{
    struct share_name *name = arg;
    const char *path        = strchr(vma->line, '/');

    if ((vma->start == name->start) && (path != NULL)) {
        snprintf(name->text, sizeof(name->text), "%s", path);
    }
}

static bool share_is_file(int fd, const struct hca_vma *vma)
{
    struct stat st;

    return (hca_sys()->fstat(fd, &st) == 0) && S_ISREG(st.st_mode) &&
           (st.st_dev == vma->dev) && (st.st_ino == vma->inode);
}

static int share_open(const char *path, const struct hca_vma *vma)
{
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC);

    if ((fd >= 0) && !share_is_file(fd, vma)) {
        syscall(SYS_close, fd);
        fd = -1;
    }
    return fd;
}

/* Opens the file of a descriptor of the program. A duplicate would keep its
 * flock(), and end the program's record locks when it is closed. */
static int share_open_again(const struct hca_vma *vma)
{
    struct rlimit limit = {.rlim_cur = SHARE_FDS};
    char path[32];

    getrlimit(RLIMIT_NOFILE, &limit);
    for (unsigned fd = 0; (fd < SHARE_FDS) && (fd < limit.rlim_cur); fd++) {
        if (!hca_fd_is_own(fd) && share_is_file(fd, vma)) {
            snprintf(path, sizeof(path), "/proc/self/fd/%u", fd);
            return share_open(path, vma);
        }
    }
    return -1;
}

/* The inode of a segment is its id (newseg() of Linux). */
static bool share_is_sysv(const char *name, const struct hca_vma *vma)
{
    struct shmid_ds ds;

    return !strncmp(name, "/SYSV", 5) && (strstr(name, " (deleted)") != NULL) &&
           (shmctl(vma->inode, IPC_STAT, &ds) == 0) &&
           (vma->offset + (vma->end - vma->start) <=
            ((ds.shm_segsz + 4095) & ~4095ul));
}

/* Only a file of memory: a peer that closes a file on a disk would lose its
 * record locks there (fcntl(2)), and so would this process. */
static bool share_is_memory(int fd)
{
    struct statfs fs;

    return (fstatfs(fd, &fs) == 0) &&
           ((fs.f_type == TMPFS_MAGIC) || (fs.f_type == HUGETLBFS_MAGIC));
}

bool hca_share_file_open(const struct hca_vma *vma, struct hca_share_run *run)
{
    struct share_name name = {.start = vma->start};
    char path[64];
    int fd;

    hca_maps_walk(share_name_vma, &name);
    if (!strncmp(name.text, "/memfd:softhca", 14) ||
        !strncmp(name.text, "/sys/", 5)) {
        return false; /* of the fabric; of a device */
    }
    run->is_sysv = share_is_sysv(name.text, vma);
    if (run->is_sysv) {
        run->file = vma->inode;
        return true;
    }
    fd = share_open_again(vma);
    if (fd < 0) {
        fd = share_open(name.text, vma);
    }
    if (fd < 0) {
        snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", vma->start,
                 vma->end);
        fd = share_open(path, vma);
    }
    if ((fd >= 0) && !share_is_memory(fd)) {
        syscall(SYS_close, fd);
        return false;
    }
    run->file = hca_fd_mark(fd);
    return fd >= 0;
}

void hca_share_file_close(const struct hca_share_run *run)
{
    if (!run->is_sysv) {
        hca_fd_close(run->file);
    }
}
