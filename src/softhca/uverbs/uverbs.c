/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * From a descriptor to a handler: opened device files, the ioctl, the tables
 * of methods and write commands. Called by the interposed open, close, dup and
 * ioctl. uverbs_files_lock guards the table of files and the references of
 * contexts; it is never held while a handler runs.
 */
#define _GNU_SOURCE
#include "uverbs.h"
#include "uverbs_objs.h"
#include "softhca/nic/hca_exec.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/fabric/hca_log.h"
#include "softhca/fabric/hca_proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Descriptors from 0; pages of it are touched as they are used. */
#define UVERBS_MAX_FDS 65536

static _Atomic(struct uverbs_ctx*) uverbs_files[UVERBS_MAX_FDS];
static pthread_mutex_t uverbs_files_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct uverbs_method *const uverbs_methods[] = {
    uverbs_context_methods, uverbs_port_methods, uverbs_pd_methods,
    uverbs_mr_methods,      uverbs_mw_methods,   uverbs_dm_methods,
    uverbs_cq_methods,      uverbs_srq_methods,  uverbs_xrcd_methods,
    uverbs_ah_methods,      uverbs_qp_methods,   uverbs_event_methods,
    uverbs_uar_methods,     uverbs_odp_methods,  devx_methods,
    devx_umem_methods,      devx_event_methods,
};

static const struct uverbs_write *const uverbs_writes[] = {
    uverbs_device_writes, uverbs_pd_writes, uverbs_mr_writes,
    uverbs_mw_writes,     uverbs_cq_writes, uverbs_srq_writes,
    uverbs_xrcd_writes,   uverbs_ah_writes, uverbs_qp_writes,
    uverbs_event_writes,
};

static const struct uverbs_method *uverbs_method(uint16_t object, uint16_t id)
{
    for (unsigned i = 0;
         i < sizeof(uverbs_methods) / sizeof(uverbs_methods[0]); i++) {
        const struct uverbs_method *method = uverbs_methods[i];

        for (; method->handler != NULL; method++) {
            if ((method->object == object) && (method->id == id)) {
                return method;
            }
        }
    }
    return NULL;
}

static const struct uverbs_write *uverbs_write_row(uint64_t cmd)
{
    for (unsigned i = 0;
         i < sizeof(uverbs_writes) / sizeof(uverbs_writes[0]); i++) {
        const struct uverbs_write *row = uverbs_writes[i];

        for (; row->handler != NULL; row++) {
            if (row->cmd == cmd) {
                return row;
            }
        }
    }
    return NULL;
}

/* Name of the write command in a request, for the log. */
static const char *uverbs_write_name(const struct uverbs_req *req)
{
    const struct uverbs_write *row =
            uverbs_write_row(uverbs_get_const(req, UVERBS_ATTR_WRITE_CMD));

    return (row == NULL) ? "unknown" : row->name;
}

int uverbs_write(struct uverbs_req *req)
{
    uint64_t cmd = uverbs_get_const(req, UVERBS_ATTR_WRITE_CMD);
    const struct uverbs_write *row;

    if (cmd > UINT32_MAX) {
        return -EINVAL;
    }
    row = uverbs_write_row(cmd);
    if (row == NULL) {
        return -EOPNOTSUPP;
    }
    /* libibverbs probes with no data at all, and takes this very error as
     * the sign that every write command may come by ioctl */
    if ((uverbs_len(req, UVERBS_ATTR_CORE_IN) < row->req_size) ||
        (uverbs_len(req, UVERBS_ATTR_CORE_OUT) < row->resp_size)) {
        return -ENOSPC;
    }
    return req->ctx->ready ? row->handler(req) : -EINVAL;
}

/* The driver's answer is taken as written, as the kernel does. */
static int uverbs_finish(struct uverbs_req *req)
{
    struct uverbs_slot *slot = &req->slots[UVERBS_MAX_SPECS - 1];

    if (!req->method->uhw || (slot->attr == NULL) ||
        (slot->attr->flags & UVERBS_ATTR_F_VALID_OUTPUT)) {
        return 0;
    }
    return uverbs_put(req, UVERBS_ATTR_UHW_OUT, NULL, 0);
}

static int uverbs_run(struct uverbs_req *req,
                      const struct ib_uverbs_ioctl_hdr *hdr)
{
    struct uverbs_ctx *ctx = req->ctx;
    bool opens = (req->method->object == UVERBS_OBJECT_DEVICE) &&
                 ((req->method->id == UVERBS_METHOD_GET_CONTEXT) ||
                  (req->method->id == UVERBS_METHOD_INVOKE_WRITE));
    int ret;

    hca_exec_enter();
    pthread_mutex_lock(&ctx->lock);
    ret = uverbs_req_parse(req, hdr);
    if (ret != 0) {
        goto out;
    }
    if (!ctx->ready && !opens) {
        ret = -EINVAL; /* the kernel has no ucontext then */
        goto out;
    }

    ret = req->method->handler(req);
    if (ret == 0) {
        ret = uverbs_finish(req);
    }
out:
    hca_debug("uverbs: %s%s%s: %s", req->method->name,
              (req->method->handler == uverbs_write) ? " " : "",
              (req->method->handler == uverbs_write) ?
                      uverbs_write_name(req) : "",
              (ret == 0) ? "ok" : strerror(-ret));
    pthread_mutex_unlock(&ctx->lock);
    hca_exec_leave();
    return ret;
}

static int uverbs_verbs(struct uverbs_ctx *ctx,
                        struct ib_uverbs_ioctl_hdr *user)
{
    struct ib_uverbs_ioctl_hdr hdr;
    struct uverbs_req req;

    if (uverbs_copy_in(&hdr, (uintptr_t)user, sizeof(hdr)) != 0) {
        return -EFAULT;
    }
    if ((hdr.num_attrs > UVERBS_MAX_ATTRS) ||
        (hdr.length != sizeof(hdr) + hdr.num_attrs * sizeof(user->attrs[0]))) {
        return -EINVAL;
    }
    if ((hdr.reserved1 != 0) || (hdr.reserved2 != 0)) {
        return -EPROTONOSUPPORT;
    }
    if (hdr.driver_id != RDMA_DRIVER_MLX5) {
        return -EINVAL;
    }

    req.ctx        = ctx;
    req.user_attrs = user->attrs;
    req.method     = uverbs_method(hdr.object_id, hdr.method_id);
    if (req.method == NULL) {
        hca_debug("uverbs: method 0x%x/0x%x: not supported", hdr.object_id,
                  hdr.method_id);
        return -EPROTONOSUPPORT;
    }
    return uverbs_run(&req, &hdr);
}

bool uverbs_is_open(int fd)
{
    return ((unsigned)fd < UVERBS_MAX_FDS) &&
           (atomic_load_explicit(&uverbs_files[fd], memory_order_relaxed) !=
            NULL);
}

static struct uverbs_ctx *uverbs_ctx_get(int fd)
{
    struct uverbs_ctx *ctx = NULL;

    pthread_mutex_lock(&uverbs_files_lock);
    if ((unsigned)fd < UVERBS_MAX_FDS) {
        ctx = atomic_load(&uverbs_files[fd]);
    }
    if (ctx != NULL) {
        ctx->refs++; /* a close that took it out now waits for the lock */
    }
    pthread_mutex_unlock(&uverbs_files_lock);
    return ctx;
}

static void uverbs_ctx_put(struct uverbs_ctx *ctx)
{
    bool last;

    pthread_mutex_lock(&uverbs_files_lock);
    last = (--ctx->refs == 0);
    pthread_mutex_unlock(&uverbs_files_lock);
    if (!last) {
        return;
    }

    hca_exec_enter();
    pthread_mutex_lock(&ctx->lock);
    uverbs_obj_destroy_all(ctx);
    uverbs_context_cleanup(ctx);
    pthread_mutex_unlock(&ctx->lock);
    hca_exec_leave();
    pthread_mutex_destroy(&ctx->lock);
    hca_info("context: closed");
    free(ctx);
}

/* Another thread may have held these when it forked. What is open stays the
 * parent's: an ioctl is refused, a close only forgets. */
static void uverbs_forked(void)
{
    pthread_mutex_init(&uverbs_files_lock, NULL);
    uverbs_uar_forked();
    uverbs_dm_forked();
    uverbs_pin_forked();
}

static void uverbs_watch_fork(void)
{
    pthread_atfork(NULL, NULL, uverbs_forked);
}

int uverbs_open(int fd, unsigned dev)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct uverbs_ctx *ctx;
    int ret;

    pthread_once(&once, uverbs_watch_fork);
    if ((unsigned)fd >= UVERBS_MAX_FDS) {
        hca_error("descriptor %d: devices need one below %d", fd,
                  UVERBS_MAX_FDS);
        return -EMFILE;
    }
    ret = hca_fabric_attach();
    if (ret == 0) {
        ret = hca_helper_start();
    }
    if (ret != 0) {
        return ret;
    }
    ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL) {
        return -ENOMEM;
    }

    pthread_mutex_init(&ctx->lock, NULL);
    uverbs_pid = getpid();
    ctx->dev   = dev;
    ctx->pid   = uverbs_pid;
    ctx->refs  = 1;
    uverbs_close(fd); /* whoever had that number closed it behind our back */
    atomic_store(&uverbs_files[fd], ctx);
    return 0;
}

int uverbs_dup(int fd, int newfd)
{
    struct uverbs_ctx *ctx;

    if ((unsigned)newfd >= UVERBS_MAX_FDS) {
        return -EMFILE;
    }
    ctx = uverbs_ctx_get(fd);
    if (ctx == NULL) {
        return -EBADF;
    }
    uverbs_close(newfd);
    atomic_store(&uverbs_files[newfd], ctx);
    return 0;
}

void uverbs_close(int fd)
{
    struct uverbs_ctx *ctx = NULL;

    if (uverbs_is_open(fd)) {
        ctx = atomic_exchange(&uverbs_files[fd], NULL);
    }
    /* in a forked child the objects are still the parent's, and the lock may
     * be held by a thread that was not forked */
    if ((ctx != NULL) && (ctx->pid == getpid())) {
        uverbs_ctx_put(ctx);
    }
}

int uverbs_ioctl(int fd, unsigned long request, void *arg)
{
    struct uverbs_ctx *ctx;
    int ret;

    ctx = uverbs_ctx_get(fd);
    if (ctx == NULL) {
        return -EBADF;
    }
    if (request != RDMA_VERBS_IOCTL) {
        ret = -ENOTTY;
    } else if (ctx->pid != getpid()) {
        hca_warn("context: opened by process %d, which forked this one; open "
                 "the device here", ctx->pid);
        ret = -EIO;
    } else {
        ret = uverbs_verbs(ctx, arg);
    }
    uverbs_ctx_put(ctx);
    return ret;
}
