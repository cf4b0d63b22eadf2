/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Attaching to the fabric and leaving it: see hca_fabric.h. Every change of the
 * run-time folder is made under flock() on it, so that two processes that start
 * at once agree on one segment and neither removes a directory that is being
 * made.
 */
#define _GNU_SOURCE
#include "hca_fabric.h"
#include "hca_arena.h"
#include "hca_chan.h"
#include "hca_dev.h"
#include "hca_helper.h"
#include "hca_mem.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/base/hca_valgrind.h"
#include "hca_obj.h"
#include "hca_port.h"
#include "hca_proc.h"
#include "hca_rules.h"
#include "hca_rundir.h"
#include "hca_share.h"
#include "hca_share_map.h"
#include "hca_umem.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define HCA_FABRIC_MAGIC 0x6163686674666f73ull /* "softhca" */

/* Sum of the source of this library; the Makefile computes it. */
extern const unsigned hca_source_sum;

static pthread_mutex_t hca_attach_mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t hca_attached_pid; /* 0: did not try to attach, or forked since */
static int hca_attach_result;

/* Reaps dead processes whose death no process noticed. */
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

/* Takes a slot for this process. Slot 0 stays unused: it means "no process". */
static int hca_fabric_enter(void)
{
    struct hca_task task;
    int ret = hca_task_stat(getpid(), &task);

    if (ret != 0) {
        hca_error("fabric: failed to read /proc/%d/stat: %s", getpid(),
                  strerror(-ret));
        return ret;
    }
    hca_mutex_lock(&hca_fabric->lock);
    for (unsigned i = 1; i < HCA_MAX_PROCS; i++) {
        struct hca_proc *proc = &hca_fabric->procs[i];

        if (atomic_load(&proc->state) == HCA_PROC_FREE) {
            proc->pid        = getpid();
            proc->start_time = task.start;
            proc->stack      = task.stack;
            proc->gen++;
            proc->asks_fd = 0;
            atomic_store(&proc->freezes, 0);
            atomic_store(&proc->failed, 0);
            memset(&hca_fabric->accesses[i], 0,
                   sizeof(hca_fabric->accesses[i]));
            if (i >= atomic_load(&hca_fabric->procs_end)) {
                atomic_store(&hca_fabric->procs_end, i + 1);
            }
            hca_share_map_open(i);
            atomic_store(&proc->state, HCA_PROC_ALIVE);
            hca_self = i;
            hca_mutex_unlock(&hca_fabric->lock);
            return 0;
        }
    }
    hca_mutex_unlock(&hca_fabric->lock);
    hca_error("fabric: the maximum of %u processes is attached; end some, or "
              "set SOFTHCA_FABRIC to another name",
              HCA_MAX_PROCS - 1);
    return -EUSERS;
}

static void hca_fabric_leave(void)
{
    hca_fabric_reap(hca_self, hca_fabric->procs[hca_self].gen);
}

static size_t hca_page_up(size_t size)
{
    return (size + 4095) & ~4095ul;
}

_Static_assert(HCA_MAX_OFF == 1ul << 32, "hca_off_t has 32 bits");

/* Writes the beginning of a new segment. */
static void hca_fabric_format(void)
{
    struct timespec now;

    hca_mutex_init(&hca_fabric->lock);
    hca_mutex_init(&hca_fabric->reap_lock);
    hca_mutex_init(&hca_fabric->xrcd_lock);
    for (unsigned i = 0; i < HCA_ATOMIC_LOCKS; i++) {
        hca_mutex_init(&hca_fabric->atomic_locks[i]);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    hca_fabric->id     = now.tv_sec * 1000000000ull + now.tv_nsec;
    hca_fabric->source = hca_source_sum;
    hca_fabric->tables = hca_page_up(sizeof(struct hca_fabric));
    hca_fabric->magic  = HCA_FABRIC_MAGIC;
}

/* Returns 0 if a library of the same source has created the segment. */
static int hca_fabric_check(void)
{
    if ((hca_fabric->magic == HCA_FABRIC_MAGIC) &&
        (hca_fabric->source == hca_source_sum) &&
        (hca_fabric->tables == hca_page_up(sizeof(struct hca_fabric)))) {
        return 0;
    }
    hca_error("fabric: the running one is from another build of softhca; set "
              "SOFTHCA_FABRIC to another name or end its processes");
    return -EPROTO;
}

static int hca_fabric_join(void)
{
    int ret = hca_fabric_check();

    if (ret == 0) {
        hca_obj_tables_find();
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

static int hca_fabric_open(const char *name, hca_fabric_fill_t fill)
{
    int fd      = hca_rundir_find(name), ret;
    bool is_new = (fd == -ENOENT);

    if (is_new) {
        assert(hca_page_up(sizeof(struct hca_fabric)) + hca_obj_tables_size() <=
               HCA_ARENA);
        fd = hca_segment_create(name, HCA_MAX_OFF + HCA_PIT_SIZE);
    }
    if (fd < 0) {
        return fd;
    }

    ret = hca_segment_map(hca_fd_mark(fd));
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
    if ((ret == 0) && (fill != NULL)) {
        ret = fill(hca_rundir_path());
    }
    if (ret != 0) {
        goto err_leave;
    }
    return 0;

err_leave:
    hca_fabric_leave();
err_unmap:
    hca_segment_unmap();
err_close:
    hca_fd_close(fd);
    return ret;
}

/* @return NULL if SOFTHCA_FABRIC is wrong, logged. */
static const char *hca_fabric_name(void)
{
    const char *name = getenv("SOFTHCA_FABRIC");

    name = (name == NULL) ? "default" : name;
    if ((name[0] != '\0') && (strlen(name) <= 32) &&
        (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                      "0123456789-_") == strlen(name))) {
        return name;
    }
    hca_error("SOFTHCA_FABRIC=%s: use 1 to 32 letters, digits, - and _", name);
    return NULL;
}

int hca_fabric_visit(void)
{
    const char *name = hca_fabric_name();
    int fd, ret;

    if (name == NULL) {
        return -EINVAL;
    }
    ret = hca_rundir_lock_existing();
    if (ret != 0) {
        return ret;
    }
    fd  = hca_rundir_find(name);
    ret = (fd < 0) ? fd : hca_segment_map(fd);
    return (ret == 0) ? hca_fabric_check() : ret;
}

static int hca_fabric_attach_once(hca_fabric_fill_t fill)
{
    const char *name = hca_fabric_name();
    int ret;

    if (name == NULL) {
        return -EINVAL;
    }
    ret = hca_config_init();
    if (ret != 0) {
        return ret;
    }
    /* Yama's ptrace_scope 1 would deny peers this process' memory; all need it,
     * as a peer may have no room to map what is shared */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    ret = hca_mem_probe();
    if (ret != 0) {
        return ret;
    }
    ret = hca_rundir_lock();
    if (ret != 0) {
        return ret;
    }
    ret = hca_fabric_open(name, fill);
    if (ret != 0) {
        hca_rundir_remove();
    } else {
        hca_rules_attached();
    }
    hca_rundir_unlock();
    return ret;
}

void hca_fabric_hide(void)
{
    if (hca_valgrind_active() && (hca_fabric != NULL)) {
        hca_helper_stop();
        hca_segment_hide();
    }
}

static void hca_fabric_fork_begin(void)
{
    hca_helper_fork_begin();
    hca_umem_fork_begin(); /* hca_umem_share() takes its lock first, too */
    hca_share_fork_begin();
}

static void hca_fabric_fork_end(void)
{
    hca_share_fork_end();
    hca_umem_fork_end();
    hca_helper_fork_end();
}

/* A child has its parent's memory, but neither its threads nor its place on
 * the fabric. It runs with one thread, so nothing here needs a lock. */
static void hca_fabric_forked(void)
{
    hca_task_forked();
    hca_share_forked(); /* early, as the parent waits for it */
    hca_share_map_forked();
    hca_helper_forked();
    hca_fabric_hide();
    hca_self         = 0; /* the slot of no process */
    hca_attached_pid = 0;
    pthread_mutex_init(&hca_attach_mutex, NULL);
    hca_umem_forked();
    hca_rundir_forked();
    hca_arena_forked();
    hca_chan_forked();
    hca_port_forked();
}

int hca_fabric_attach(const struct hca_kind_ops *kinds, hca_fabric_fill_t fill)
{
    static bool has_handler;
    int cancels;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    pthread_mutex_lock(&hca_attach_mutex);
    if (hca_attached_pid == 0) {
        if (!has_handler) {
            has_handler = pthread_atfork(hca_fabric_fork_begin,
                                         hca_fabric_fork_end,
                                         hca_fabric_forked) == 0;
        }
        hca_obj_kinds     = kinds;
        hca_attached_pid  = getpid();
        hca_attach_result = hca_fabric_attach_once(fill);
    }
    pthread_mutex_unlock(&hca_attach_mutex);
    pthread_setcancelstate(cancels, NULL);
    return hca_attach_result;
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
    hca_fabric_hide();
    if (hca_rundir_lock_last() == 0) {
        hca_rundir_remove();
        hca_rundir_unlock();
    }
}

const char *hca_fabric_dir(void)
{
    return hca_rundir_path();
}
