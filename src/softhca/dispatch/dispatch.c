/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Opened device files, and the context that each is of: see dispatch.h. An
 * ioctl goes on in dispatch_method.c. dispatch_files_lock guards the table of
 * files and the references of contexts; it is never held while a handler runs.
 */
#define _GNU_SOURCE
#include "dispatch.h"
#include "dispatch_method.h"
#include "softhca/devx/devx.h"
#include "softhca/obj/hca_cq_event.h"
#include "softhca/obj/hca_mkey.h"
#include "softhca/doorbell/hca_trap.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/fabric/hca_segment.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_sys.h"
#include "softhca/exec/hca_nic.h"
#include "softhca/exec/hca_sq.h"
#include "softhca/fabric/hca_port.h"
#include "softhca/fabric/hca_helper.h"
#include "softhca/exec/hca_thread.h"
#include "softhca/exec/hca_uar.h"
#include "softhca/uverbs/uverbs_mmap.h"
#include "softhca/uverbs/uverbs_pin.h"
#include "softhca/uverbs/uverbs_uar.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Descriptors from 0; pages of it are touched as they are used. */
#define DISPATCH_MAX_FDS 65536

static _Atomic(struct uverbs_ctx *) dispatch_files[DISPATCH_MAX_FDS];
static pthread_mutex_t dispatch_files_lock = PTHREAD_MUTEX_INITIALIZER;

/* Users before the objects they use: the order of releasing a context. */
static const struct uverbs_type *const dispatch_types[] = {
    &devx_obj_type,     &devx_umem_type,   &uverbs_qp_type,  &uverbs_srq_type,
    &uverbs_cq_type,    &uverbs_ah_type,   &uverbs_mw_type,  &uverbs_mr_type,
    &uverbs_dm_type,    &uverbs_xrcd_type, &uverbs_pd_type,  &uverbs_event_type,
    &uverbs_async_type, &devx_event_type,  &uverbs_uar_type,
};

bool dispatch_is_open(int fd)
{
    return ((unsigned)fd < DISPATCH_MAX_FDS) &&
           (atomic_load_explicit(&dispatch_files[fd], memory_order_relaxed) !=
            NULL);
}

static struct uverbs_ctx *dispatch_ctx_get(int fd)
{
    struct uverbs_ctx *ctx = NULL;

    pthread_mutex_lock(&dispatch_files_lock);
    if ((unsigned)fd < DISPATCH_MAX_FDS) {
        ctx = atomic_load(&dispatch_files[fd]);
    }
    if (ctx != NULL) {
        ctx->refs++; /* a close that removed it now waits for the lock */
    }
    pthread_mutex_unlock(&dispatch_files_lock);
    return ctx;
}

static void dispatch_ctx_put(struct uverbs_ctx *ctx)
{
    bool last;

    pthread_mutex_lock(&dispatch_files_lock);
    last = (--ctx->refs == 0);
    pthread_mutex_unlock(&dispatch_files_lock);
    if (!last) {
        return;
    }

    hca_thread_enter();
    pthread_mutex_lock(&ctx->lock);
    uverbs_obj_destroy_all(ctx);
    uverbs_map_forget_all(ctx);
    uverbs_context_cleanup(ctx);
    pthread_mutex_unlock(&ctx->lock);
    hca_thread_leave();
    pthread_mutex_destroy(&ctx->lock);
    hca_info("context: closed");
    free(ctx);
}

/* Reinitializes the locks: another thread may have held them at the fork. The
 * open objects stay the parent's: a close only forgets. */
static void dispatch_forked(void)
{
    pthread_mutex_init(&dispatch_files_lock, NULL);
    uverbs_uar_forked();
    uverbs_pin_forked();
    hca_mkey_forked();
    hca_uar_forked();
    hca_sq_forked();
    hca_cq_event_forked();
}

static void dispatch_init(void)
{
    pthread_atfork(NULL, NULL, dispatch_forked);
    hca_nic_init();
}

static struct uverbs_ctx *dispatch_ctx_new(int fd, unsigned dev)
{
    struct uverbs_ctx *ctx = calloc(1, sizeof(*ctx));
    struct stat st;

    if ((ctx == NULL) || (hca_sys()->fstat(fd, &st) < 0)) {
        free(ctx);
        return NULL;
    }
    pthread_mutex_init(&ctx->lock, NULL);
    ctx->dev       = dev;
    ctx->pid       = getpid();
    ctx->st_dev    = st.st_dev;
    ctx->st_ino    = st.st_ino;
    ctx->refs      = 1;
    ctx->types     = dispatch_types;
    ctx->num_types = sizeof(dispatch_types) / sizeof(dispatch_types[0]);
    return ctx;
}

/* Attaches this process, whose @fd becomes a device. @return 0 or -errno. */
static int dispatch_prepare(int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int ret;

    pthread_once(&once, dispatch_init);
    if ((unsigned)fd >= DISPATCH_MAX_FDS) {
        hca_error("descriptor %d: device files need one below %d; close some "
                  "files",
                  fd, DISPATCH_MAX_FDS);
        return -EMFILE;
    }
    ret = hca_fabric_attach(hca_nic_kinds, NULL);
    if (ret == 0) {
        ret = hca_helper_start();
    }
    if (ret == 0) {
        ret = hca_trap_install(); /* its commands are read by guarded copies */
    }
    if (ret == 0) {
        hca_port_watch();
    }
    return ret;
}

int dispatch_open(int fd, unsigned dev)
{
    int ret = dispatch_prepare(fd);
    struct uverbs_ctx *ctx;

    if (ret != 0) {
        return ret;
    }
    dispatch_close(fd); /* the number's last file was closed unseen */
    ret = uverbs_map_file(fd);
    if (ret != 0) {
        return ret;
    }
    ctx = dispatch_ctx_new(fd, dev);
    if (ctx == NULL) {
        return -ENOMEM;
    }
    atomic_store(&dispatch_files[fd], ctx);
    return 0;
}

bool dispatch_may_adopt(int fd, const struct stat *st)
{
    return uverbs_map_is_file(st) && !dispatch_is_open(fd);
}

int dispatch_dev(int fd)
{
    struct uverbs_ctx *ctx = dispatch_ctx_get(fd);
    int dev;

    if (ctx == NULL) {
        return -1;
    }
    dev = ctx->dev;
    dispatch_ctx_put(ctx);
    return dev;
}

int dispatch_dup(int fd, int newfd)
{
    struct uverbs_ctx *ctx;

    if ((unsigned)newfd >= DISPATCH_MAX_FDS) {
        return -EMFILE;
    }
    ctx = dispatch_ctx_get(fd);
    if (ctx == NULL) {
        return -EBADF;
    }
    dispatch_close(newfd);
    atomic_store(&dispatch_files[newfd], ctx);
    return 0;
}

bool dispatch_has_file(int fd, const struct stat *st)
{
    struct uverbs_ctx *ctx = dispatch_ctx_get(fd);
    bool is_same           = (ctx != NULL) && (ctx->st_dev == st->st_dev) &&
                   (ctx->st_ino == st->st_ino);

    if (ctx != NULL) {
        dispatch_ctx_put(ctx);
    }
    return is_same;
}

static bool dispatch_is_dup(int fd, int newfd)
{
    struct stat st;

    return dispatch_is_open(fd) && (fd != newfd) &&
           (hca_sys()->fstat(newfd, &st) == 0) && dispatch_has_file(fd, &st);
}

bool dispatch_adopt(int newfd, int top)
{
    for (int fd = 0; fd <= top; fd++) {
        if (dispatch_is_dup(fd, newfd)) {
            return dispatch_dup(fd, newfd) == 0;
        }
    }
    return false;
}

void dispatch_close(int fd)
{
    struct uverbs_ctx *ctx = NULL;

    if (dispatch_is_open(fd)) {
        ctx = atomic_exchange(&dispatch_files[fd], NULL);
    }
    /* in a forked child the objects are still the parent's, and a thread that
     * was not forked may hold the lock */
    if ((ctx != NULL) && (ctx->pid == getpid())) {
        dispatch_ctx_put(ctx);
    }
}

int dispatch_ioctl(int fd, unsigned long request, void *arg)
{
    struct uverbs_ctx *ctx = dispatch_ctx_get(fd);
    int ret                = 0;

    if (ctx == NULL) {
        return -EBADF;
    }
    if (request != RDMA_VERBS_IOCTL) {
        ret = -ENOTTY;
    } else if (ctx->pid != getpid()) {
        hca_warn("descriptor %d: the device was opened by process %d, which "
                 "forked this one: open it here",
                 fd, ctx->pid);
        ret = -EIO;
    }
    if (ret == 0) {
        ret = dispatch_method_run(ctx, arg);
    }
    dispatch_ctx_put(ctx);
    return ret;
}
