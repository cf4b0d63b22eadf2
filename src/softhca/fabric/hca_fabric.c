/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Attaching to the fabric and leaving it. Everything that changes the run-time
 * folder holds flock() on it, so that two processes that start at once agree
 * on one segment and no one sweeps away a directory that is being made.
 */
#define _GNU_SOURCE
#include "hca_fabric.h"
#include "softhca/doorbell/hca_cpu.h"
#include "hca_dev.h"
#include "hca_fd.h"
#include "softhca/nic/hca_exec.h"
#include "hca_log.h"
#include "hca_obj.h"
#include "hca_proc.h"
#include "hca_rundir.h"
#include "softhca/preload/hca_sysfs.h"
#include "hca_umem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HCA_FABRIC_MAGIC   0x6163686674666f73ull /* "softhca" */
#define HCA_FABRIC_VERSION 5u
#define HCA_FABRIC_AWAY    (1ul << 40)

struct hca_fabric *hca_fabric;
unsigned hca_self;

static int hca_fabric_fd; /* the segment's; open as long as it is mapped */

static pthread_mutex_t hca_attach_mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t hca_attached_pid; /* 0: not attached; a forked child is not */
static int hca_attach_result;

static size_t hca_page_up(size_t size)
{
    return (size + 4095) & ~4095ul;
}

static size_t hca_fabric_size(void)
{
    return hca_page_up(sizeof(struct hca_fabric)) +
           hca_page_up(hca_obj_tables_size()) + HCA_MAX_CHUNKS * HCA_CHUNK_SIZE;
}

static void hca_fabric_format(void)
{
    hca_mutex_init(&hca_fabric->lock);
    hca_mutex_init(&hca_fabric->reap_lock);
    for (unsigned i = 0; i < HCA_ATOMIC_LOCKS; i++) {
        hca_mutex_init(&hca_fabric->atomic_locks[i]);
    }
    atomic_store(&hca_fabric->next_pdn, 1);
    hca_fabric->version = HCA_FABRIC_VERSION;
    hca_fabric->tables  = hca_page_up(sizeof(struct hca_fabric));
    hca_fabric->arena   = hca_fabric->tables +
                          hca_page_up(hca_obj_tables_size());
    hca_obj_tables_init();
    hca_fabric->magic = HCA_FABRIC_MAGIC;
}

static int hca_fabric_map(int fd)
{
    /* a hint far below the libraries: what is within 2 GiB of them is for
     * trampolines (hca_patch.h) */
    void *hint = (void*)(((uintptr_t)&hca_fabric - HCA_FABRIC_AWAY) & ~4095ul);
    void *map  = mmap(hint, hca_fabric_size(), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, fd, 0);
    int ret;

    if (map == MAP_FAILED) {
        ret = -errno;
        hca_error("fabric: no %zu GiB of address space: %s; raise ulimit -v",
                  hca_fabric_size() >> 30, strerror(-ret));
        return ret;
    }
    madvise(map, hca_fabric_size(), MADV_DONTDUMP);
    hca_fabric    = map;
    hca_fabric_fd = hca_fd_keep(fd);
    return 0;
}

/* mremap() with a size of 0 is one step and needs no descriptor; but valgrind
 * does not know it. */
int hca_fabric_map_again(const void *from, size_t size, void *to)
{
    long ret;

    if (hca_cpu_valgrind()) {
        ret = syscall(SYS_mmap, to, size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, hca_fabric_fd, hca_off(from));
    } else {
        ret = syscall(SYS_mremap, from, 0ul, size,
                      MREMAP_MAYMOVE | MREMAP_FIXED, to);
    }
    return (ret == -1) ? -errno : 0;
}

/* The memory that a new fabric lives in. @return descriptor or -errno. */
static int hca_fabric_create(const char *name)
{
    struct rlimit limit;
    char label[64];
    int fd, ret;

    if ((getrlimit(RLIMIT_FSIZE, &limit) == 0) &&
        (limit.rlim_cur < hca_fabric_size())) {
        hca_error("fabric: ulimit -f is below %zu GiB; raise it (the memory "
                  "is taken only where it is used)", hca_fabric_size() >> 30);
        return -EFBIG;
    }

    snprintf(label, sizeof(label), "softhca:%s", name);
    fd = memfd_create(label, MFD_CLOEXEC);
    if ((fd < 0) || (fchmod(fd, 0600) < 0) ||
        (ftruncate(fd, hca_fabric_size()) < 0)) {
        ret = -errno;
        hca_error("fabric: no shared memory: %s", strerror(-ret));
        if (fd >= 0) {
            close(fd);
        }
        return ret;
    }
    return fd;
}

static int hca_fabric_check(void)
{
    if ((hca_fabric->magic == HCA_FABRIC_MAGIC) &&
        (hca_fabric->version == HCA_FABRIC_VERSION)) {
        return 0;
    }
    hca_error("fabric: the running one is of another build; set "
              "SOFTHCA_FABRIC to another name or end its processes");
    return -EPROTO;
}

/* The dead that no one was left to notice. */
static void hca_fabric_sweep(void)
{
    for (unsigned i = 1; i < HCA_MAX_PROCS; i++) {
        struct hca_proc *proc = &hca_fabric->procs[i];

        if ((atomic_load(&proc->state) != HCA_PROC_FREE) &&
            (hca_proc_check(proc) == -ESRCH)) {
            hca_fabric_reap(i, proc->gen);
        }
    }
}

/* Slot 0 stays unused: 0 means "no process". */
static int hca_fabric_enter(void)
{
    uint64_t start_time;
    int ret = hca_proc_start_time(getpid(), &start_time);

    if (ret != 0) {
        hca_error("fabric: /proc/%d/stat cannot be read: %s", getpid(),
                  strerror(-ret));
        return ret;
    }
    hca_mutex_lock(&hca_fabric->lock);
    for (unsigned i = 1; i < HCA_MAX_PROCS; i++) {
        struct hca_proc *proc = &hca_fabric->procs[i];

        if (atomic_load(&proc->state) == HCA_PROC_FREE) {
            proc->pid        = getpid();
            proc->start_time = start_time;
            proc->gen++;
            atomic_store(&proc->holds, 0);
            atomic_store(&proc->freezes, 0);
            atomic_store(&proc->state, HCA_PROC_ALIVE);
            hca_self = i;
            hca_mutex_unlock(&hca_fabric->lock);
            return 0;
        }
    }
    hca_mutex_unlock(&hca_fabric->lock);
    hca_error("fabric: %u processes are attached, which is all it takes",
              HCA_MAX_PROCS - 1);
    return -EUSERS;
}

static void hca_fabric_leave(void)
{
    hca_fabric_reap(hca_self, hca_fabric->procs[hca_self].gen);
}

static int hca_fabric_join(void)
{
    int ret = hca_fabric_check();

    if (ret == 0) {
        hca_fabric_sweep();
        ret = hca_fabric_enter();
    }
    if (ret == 0) {
        ret = hca_dev_register();
        if (ret != 0) {
            hca_fabric_leave();
        }
    }
    return ret;
}

static int hca_fabric_open(const char *name)
{
    int fd = hca_rundir_find(name), ret;
    bool is_new = (fd == -ENOENT);

    if (is_new) {
        fd = hca_fabric_create(name);
    }
    if (fd < 0) {
        return fd;
    }

    ret = hca_fabric_map(fd);
    if (ret != 0) {
        goto err_close;
    }
    if (is_new) {
        hca_fabric_format();
    }
    ret = hca_fabric_join();
    if (ret != 0) {
        goto err_unmap;
    }
    ret = hca_rundir_publish(name, fd);
    if (ret != 0) {
        goto err_leave;
    }
    return 0;

err_leave:
    hca_fabric_leave();
err_unmap:
    munmap(hca_fabric, hca_fabric_size());
    hca_fabric = NULL;
err_close:
    hca_fd_close(fd);
    return ret;
}

static int hca_fabric_attach_once(void)
{
    const char *name = getenv("SOFTHCA_FABRIC");
    int ret;

    name = (name == NULL) ? "default" : name;
    if ((name[0] == '\0') || (strlen(name) > 32) ||
        (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                      "0123456789-_") != strlen(name))) {
        hca_error("SOFTHCA_FABRIC=%s: use 1 to 32 letters, digits, - and _",
                  name);
        return -EINVAL;
    }

    ret = hca_config_init();
    if (ret != 0) {
        return ret;
    }
    ret = hca_rundir_lock();
    if (ret != 0) {
        return ret;
    }
    /* Yama's ptrace_scope 1 would keep peers from this process' memory */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    ret = hca_fabric_open(name);
    if (ret == 0) {
        ret = hca_sysfs_create(hca_rundir_path());
        if (ret != 0) {
            hca_fabric_leave();
        }
    }
    if (ret != 0) {
        hca_rundir_remove();
    }
    hca_rundir_unlock();
    return ret;
}

/* A child has its parent's memory, but neither its threads nor its place on
 * the fabric. It runs with one thread, so nothing here needs a lock. */
static void hca_fabric_forked(void)
{
    hca_self         = 0; /* a slot of nobody */
    hca_attached_pid = 0;
    pthread_mutex_init(&hca_attach_mutex, NULL);
    hca_umem_forked();
    hca_rundir_forked();
    hca_arena_forked();
    hca_chan_forked();
    hca_proc_forked();
    hca_uar_forked();
}

int hca_fabric_attach(void)
{
    static bool has_handler;
    int cancels;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    pthread_mutex_lock(&hca_attach_mutex);
    if (hca_attached_pid == 0) {
        if (!has_handler) {
            has_handler = pthread_atfork(hca_proc_fork_begin,
                                         hca_proc_fork_end,
                                         hca_fabric_forked) == 0;
        }
        hca_attached_pid  = getpid();
        hca_attach_result = hca_fabric_attach_once();
    }
    pthread_mutex_unlock(&hca_attach_mutex);
    pthread_setcancelstate(cancels, NULL);
    return hca_attach_result;
}

bool hca_fabric_is_attached(void)
{
    return (hca_attached_pid == getpid()) && (hca_attach_result == 0);
}

/* valgrind's search for leaks, which comes after this, would read the whole
 * segment and so fill its holes: gigabytes, for minutes. What is hidden from
 * it no one uses any more, the objects of this process being gone. */
static void hca_fabric_hide(void)
{
    size_t head = hca_page_up(sizeof(struct hca_fabric));

    mprotect((char*)hca_fabric + head, hca_fabric_size() - head, PROT_NONE);
}

void hca_fabric_detach(void)
{
    if (!hca_fabric_is_attached()) {
        return;
    }
    hca_attach_result = -ESHUTDOWN;
    hca_umem_abandon();
    hca_arena_abandon();
    hca_fabric_leave();
    hca_cpu_init();
    if (hca_cpu_valgrind()) {
        hca_fabric_hide();
    }
    if (hca_rundir_lock() == 0) {
        hca_rundir_remove();
        hca_rundir_unlock();
    }
}

const char *hca_fabric_dir(void)
{
    return hca_rundir_path();
}

void hca_fabric_reap(unsigned slot, uint32_t gen)
{
    struct hca_proc *proc = &hca_fabric->procs[slot];

    hca_exec_enter();
    hca_mutex_lock(&hca_fabric->reap_lock);
    if ((atomic_load(&proc->state) != HCA_PROC_FREE) && (proc->gen == gen)) {
        hca_info("fabric: process %d left", proc->pid);
        atomic_store(&proc->state, HCA_PROC_DEAD);
        if (hca_obj_reap(slot)) {
            hca_arena_reap(slot);
            atomic_store(&proc->state, HCA_PROC_FREE);
        }
    }
    hca_mutex_unlock(&hca_fabric->reap_lock);
    hca_exec_leave();
}

void hca_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attr);
    pthread_mutexattr_destroy(&attr);
}

bool hca_mutex_lock(pthread_mutex_t *mutex)
{
    if (__builtin_expect(pthread_mutex_lock(mutex) != EOWNERDEAD, 1)) {
        return false;
    }
    pthread_mutex_consistent(mutex);
    return true;
}

void hca_mutex_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
}
