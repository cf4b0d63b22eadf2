/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The run-time folder: see hca_rundir.h. Its flock() is taken by the thread
 * that attaches or leaves, or by the sweeper, which is linked with this file
 * and base/ alone.
 */
#define _GNU_SOURCE
#include "hca_rundir.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* Pause between tries of the lock; tries between two looks at its holder, which
 * take about two seconds */
#define HCA_RUNDIR_PAUSE_NS 500000l
#define HCA_RUNDIR_TRIES    3500u

static char hca_rundir_folder[PATH_MAX - 300];
static char hca_rundir_own[PATH_MAX - 200];
static int hca_rundir_fd     = -1; /* the folder, while locked */
static int hca_rundir_own_fd = -1; /* our directory, locked for life */

static int hca_rundir_fail(const char *what, const char *path)
{
    int ret = -errno;

    hca_error("cannot %s %s: %s; %s", what, path, strerror(-ret),
              (ret == -EMFILE) ?
                  "raise ulimit -n" :
                  "set SOFTHCA_DIR to a folder of yours with room, on this "
                  "machine");
    return ret;
}

static int hca_rundir_name(void)
{
    const char *dir = getenv("SOFTHCA_DIR");
    int len;

    if ((dir != NULL) && (dir[0] != '/')) {
        hca_error("SOFTHCA_DIR=%s: use an absolute path", dir);
        return -EINVAL;
    }
    len = (dir != NULL) ? snprintf(hca_rundir_folder, sizeof(hca_rundir_folder),
                                   "%s", dir) :
                          snprintf(hca_rundir_folder, sizeof(hca_rundir_folder),
                                   "/dev/shm/softhca-%u", geteuid());
    if (len >= (int)sizeof(hca_rundir_folder)) {
        hca_error("SOFTHCA_DIR: longer than %zu characters",
                  sizeof(hca_rundir_folder) - 1);
        return -ENAMETOOLONG;
    }
    return 0;
}

/* Refuses a folder of another user, and one that others may enter: they could
 * open the device. */
static int hca_rundir_check(int fd)
{
    struct stat st;

    if (hca_sys()->fstat(fd, &st) < 0) {
        return hca_rundir_fail("examine", hca_rundir_folder);
    }
    if (st.st_uid != geteuid()) {
        hca_error("%s: belongs to uid %u; set SOFTHCA_DIR to a folder of yours",
                  hca_rundir_folder, st.st_uid);
        return -EPERM;
    }
    if (st.st_mode & 077) {
        hca_error("%s: others may enter it, its mode is %03o; chmod 700 it, or "
                  "set SOFTHCA_DIR",
                  hca_rundir_folder, st.st_mode & 0777);
        return -EPERM;
    }
    return 0;
}

/* Returns true if the locked folder is still the one of that name: the last
 * other process may have removed it while we waited for the lock. */
static int hca_rundir_is_current(void)
{
    struct stat locked, named;

    return (hca_sys()->fstat(hca_rundir_fd, &locked) == 0) &&
           (hca_sys()->stat(hca_rundir_folder, &named) == 0) &&
           (locked.st_ino == named.st_ino) && (locked.st_dev == named.st_dev);
}

static int hca_rundir_rm_entry(const char *path, const struct stat *st,
                               int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

static void hca_rundir_rm(const char *path)
{
    nftw(path, hca_rundir_rm_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Returns true if a process directory is not locked: its owner is dead. The pid
 * shows nothing, as it may be of another pid namespace, or reused. */
static bool hca_rundir_is_dead(const char *name)
{
    int fd = hca_sys()->openat(hca_rundir_fd, name,
                               O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool dead;

    if (fd < 0) {
        return false;
    }
    dead = flock(fd, LOCK_EX | LOCK_NB) == 0;
    hca_sys()->close(fd);
    return dead;
}

int hca_rundir_foreach(int (*fn)(const char *name, void *arg), void *arg)
{
    DIR *dir = hca_sys()->opendir(hca_rundir_folder);
    struct dirent *entry;
    int ret = 0;

    while ((dir != NULL) && (ret == 0) && ((entry = readdir(dir)) != NULL)) {
        if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name)) {
            ret = fn(entry->d_name, arg);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return ret;
}

bool hca_rundir_sweep(const char *name)
{
    char path[PATH_MAX];

    if (!hca_rundir_is_dead(name)) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/%s", hca_rundir_folder, name);
    hca_info("removing %s of a dead process", path);
    hca_rundir_rm(path);
    return true;
}

static int hca_rundir_sweep_one(const char *name, void *arg)
{
    (void)arg;
    hca_rundir_sweep(name);
    return 0;
}

/* Returns the process that has the folder locked; 0: unknown, as one of another
 * pid namespace. */
static int hca_rundir_holder(void)
{
    FILE *locks = hca_sys()->fopen("/proc/locks", "r");
    unsigned major, minor;
    unsigned long inode;
    int pid, found = 0;
    struct stat st;
    char line[128];

    if (locks == NULL) {
        return 0;
    }
    if (hca_sys()->fstat(hca_rundir_fd, &st) == 0) {
        while (fgets(line, sizeof(line), locks) != NULL) {
            if ((sscanf(line, "%*u: FLOCK %*s %*s %d %x:%x:%lu", &pid, &major,
                        &minor, &inode) == 4) &&
                (makedev(major, minor) == st.st_dev) && (inode == st.st_ino)) {
                found = pid;
            }
        }
    }
    fclose(locks);
    return found;
}

/* Logs that @pid, 0 if unknown, keeps others waiting. */
static void hca_rundir_complain(int pid, bool is_last)
{
    char holder[32] = "another process";

    if (pid != 0) {
        snprintf(holder, sizeof(holder), "process %d", pid);
    }
    hca_warn("%s: locked by %s, which may be stopped%s", hca_rundir_folder,
             holder, is_last ? "" : "; waiting");
}

/* Waits for the lock of the folder. A process that has it at two looks may be
 * stopped: logs it once.
 * @param is_last  gives up then: -ETIMEDOUT
 * @return 0 or -errno, logged. */
static int hca_rundir_wait(bool is_last)
{
    const struct timespec pause = {.tv_nsec = HCA_RUNDIR_PAUSE_NS};
    int before                  = -1, pid;
    bool is_known               = false;

    for (unsigned tries = 0; flock(hca_rundir_fd, LOCK_EX | LOCK_NB) < 0;
         tries++) {
        if (errno != EWOULDBLOCK) {
            return hca_rundir_fail("lock", hca_rundir_folder);
        }
        if (!is_known && (tries % HCA_RUNDIR_TRIES == 0)) {
            pid      = hca_rundir_holder();
            is_known = (pid == before);
            before   = pid;
            if (is_known) {
                hca_rundir_complain(pid, is_last);
            }
        }
        if (is_known && is_last) {
            return -ETIMEDOUT;
        }
        syscall(SYS_nanosleep, &pause, NULL); /* no cancellation point */
    }
    return 0;
}

static int hca_rundir_open(bool is_last)
{
    int ret = hca_rundir_name();

    if (ret != 0) {
        return ret;
    }
    hca_rundir_fd = hca_sys()->openat(AT_FDCWD, hca_rundir_folder,
                                      O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
                                          O_CLOEXEC);
    if (hca_rundir_fd < 0) {
        return (errno == ENOENT) ? -ENOENT :
                                   hca_rundir_fail("open", hca_rundir_folder);
    }

    ret = hca_rundir_check(hca_rundir_fd);
    if (ret == 0) {
        ret = hca_rundir_wait(is_last);
    }
    if ((ret == 0) && !hca_rundir_is_current()) {
        ret = -ENOENT;
    }
    if (ret != 0) {
        hca_rundir_unlock();
    }
    return ret;
}

int hca_rundir_lock_existing(void)
{
    return hca_rundir_open(false);
}

int hca_rundir_lock_last(void)
{
    int ret = hca_rundir_open(true);

    if (ret == 0) {
        hca_rundir_foreach(hca_rundir_sweep_one, NULL);
    }
    return ret;
}

int hca_rundir_lock(void)
{
    int ret = hca_rundir_name();

    if (ret != 0) {
        return ret;
    }
    do {
        if ((mkdir(hca_rundir_folder, 0700) < 0) && (errno != EEXIST)) {
            return hca_rundir_fail("make", hca_rundir_folder);
        }
        ret = hca_rundir_lock_existing();
        /* the last other process may be removing it this moment */
    } while (ret == -ENOENT);
    if (ret == 0) {
        hca_rundir_foreach(hca_rundir_sweep_one, NULL);
    }
    return ret;
}

const char *hca_rundir_folder_path(void)
{
    return (hca_rundir_name() == 0) ? hca_rundir_folder : NULL;
}

void hca_rundir_rmdir(void)
{
    rmdir(hca_rundir_folder); /* fails while others are there */
}

void hca_rundir_unlock(void)
{
    int fd = hca_rundir_fd;

    hca_rundir_fd = -1;
    flock(fd, LOCK_UN); /* a forked child may have it open */
    hca_sys()->close(fd);
}

static int hca_rundir_find_one(const char *name, void *fabric)
{
    char path[128];
    struct stat st;
    int fd;

    snprintf(path, sizeof(path), "%s/fabric.%s", name, (const char *)fabric);
    fd = hca_sys()->openat(hca_rundir_fd, path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    if ((hca_sys()->fstat(fd, &st) < 0) || (st.st_uid != geteuid())) {
        hca_sys()->close(fd);
        return 0;
    }
    return fd;
}

int hca_rundir_find(const char *fabric)
{
    int fd = hca_rundir_foreach(hca_rundir_find_one, (void *)fabric);

    return (fd > 0) ? fd : -ENOENT;
}

int hca_rundir_publish(const char *fabric, int fd)
{
    char link[PATH_MAX], target[64];

    snprintf(hca_rundir_own, sizeof(hca_rundir_own), "%s/%d", hca_rundir_folder,
             getpid());
    if ((mkdir(hca_rundir_own, 0700) < 0) && (errno != EEXIST)) {
        return hca_rundir_fail("make", hca_rundir_own);
    }
    hca_rundir_own_fd = hca_fd_mark(hca_sys()->openat(
        AT_FDCWD, hca_rundir_own, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if ((hca_rundir_own_fd < 0) ||
        (flock(hca_rundir_own_fd, LOCK_EX | LOCK_NB) < 0)) {
        return hca_rundir_fail("lock", hca_rundir_own);
    }

    snprintf(target, sizeof(target), "/proc/%d/fd/%d", getpid(), fd);
    snprintf(link, sizeof(link), "%s/fabric.%s", hca_rundir_own, fabric);
    if (symlink(target, link) < 0) {
        return hca_rundir_fail("write", link);
    }
    return 0;
}

const char *hca_rundir_path(void)
{
    return hca_rundir_own;
}

void hca_rundir_forked(void)
{
    if (hca_rundir_own_fd >= 0) {
        hca_fd_close(hca_rundir_own_fd); /* the lock stays the parent's */
    }
    if (hca_rundir_fd >= 0) {
        hca_sys()->close(hca_rundir_fd);
    }
    hca_rundir_fd     = -1;
    hca_rundir_own_fd = -1;
    hca_rundir_own[0] = '\0';
}

void hca_rundir_remove(void)
{
    if (hca_rundir_own[0] != '\0') {
        hca_rundir_rm(hca_rundir_own);
    }
    if (hca_rundir_own_fd >= 0) {
        hca_fd_close(hca_rundir_own_fd);
        hca_rundir_own_fd = -1;
    }
    hca_rundir_rmdir();
}
