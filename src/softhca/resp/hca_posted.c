/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* RDMA WRITEs that are kept back for a while: see hca_posted.h. */
#include "hca_posted.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"

#include <infiniband/mlx5dv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HCA_POSTED_ANY 0u /* no queue pair has this number */

/* A kept WRITE, in pages of its own: a doorbell may be rung in a signal handler
 * that has interrupted malloc(). Its mkey may be destroyed meanwhile. */
struct hca_posted_write {
    struct hca_posted_write *next;
    struct hca_key_use use; /* qpn: of the target */
    struct hca_owner owner; /* of the target memory */
    void *base;             /* its address there */
    uint8_t data[];
};

static struct hca_posted_write *hca_posted_alloc(size_t length)
{
    void *write = (void *)syscall(
        SYS_mmap, NULL, sizeof(struct hca_posted_write) + length,
        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return (write == MAP_FAILED) ? NULL : write;
}

static void hca_posted_free(struct hca_posted_write *write, size_t length)
{
    syscall(SYS_munmap, write, sizeof(*write) + length);
}

/* Writes the data to memory if the mkey still leads to the same address. */
static void hca_posted_place(struct hca_posted_write *write)
{
    struct hca_sgl to, from;

    hca_sgl_init(&to, write->owner);
    hca_sgl_init(&from, hca_owner(hca_self));
    hca_sgl_add(&from, write->data, write->use.length);
    if ((hca_sgl_add_key(&to, &write->use) == HCA_KEY_OK) && !to.has_via &&
        (to.iov[0].iov_base == write->base)) {
        hca_sgl_copy(&to, &from);
    } else {
        hca_debug("mkey 0x%x: destroyed: dropped data that was written to it",
                  write->use.key);
    }
    hca_sgl_put(&to);
}

/* Writes the kept data to memory.
 * @param qpn  number of the target whose data it is, or HCA_POSTED_ANY */
static void hca_posted_push(struct hca_posted *posted, uint32_t qpn)
{
    struct hca_posted_write **link = &posted->last, *write;

    while ((write = *link) != NULL) {
        if ((qpn != HCA_POSTED_ANY) && (write->use.qpn != qpn)) {
            link = &write->next;
            continue;
        }
        *link = write->next;
        posted->count--;
        hca_posted_place(write);
        hca_posted_free(write, write->use.length);
    }
}

static void hca_posted_timer(struct hca_timer *timer)
{
    struct hca_posted *posted = (struct hca_posted *)timer;

    hca_mutex_lock(&posted->qp->sq_lock);
    hca_posted_flush(posted);
    hca_mutex_unlock(&posted->qp->sq_lock);
}

void hca_posted_init(struct hca_posted *posted, struct hca_qp *qp)
{
    *posted = (struct hca_posted){.timer.fn = hca_posted_timer, .qp = qp};
}

/* Copies a WRITE.
 * @return NULL without memory, or if the data cannot be read: the WRITE is
 *         executed at once then, and reports that failure. */
static struct hca_posted_write *hca_posted_new(const struct hca_msg *msg,
                                               const struct hca_sgl *memory,
                                               const struct hca_mkey *mkey)
{
    struct hca_posted_write *write;
    struct hca_sgl copy;

    write = hca_posted_alloc(memory->length);
    if (write == NULL) {
        return NULL;
    }
    write->owner = memory->owner;
    write->base  = memory->iov[0].iov_base;
    write->use   = (struct hca_key_use){
          .key    = msg->rkey,
          .pdn    = mkey->pdn,
          .qpn    = msg->dest_qpn,
          .access = IBV_ACCESS_REMOTE_WRITE,
          .dev    = mkey->obj.dev,
          .addr   = msg->raddr,
          .length = memory->length,
    };
    hca_sgl_init(&copy, hca_owner(hca_self));
    hca_sgl_add(&copy, write->data, memory->length);
    if (hca_sgl_copy(&copy, msg->data) != 0) {
        hca_posted_free(write, memory->length);
        return NULL;
    }
    return write;
}

/* Returns the mkey of a WRITE to @memory, NULL unless it has relaxed
 * ordering. */
static const struct hca_mkey *hca_posted_relaxed(const struct hca_msg *msg,
                                                 const struct hca_sgl *memory)
{
    const struct hca_mkey *mkey = hca_mkey_find(msg->rkey, memory->owner.proc);

    return ((mkey != NULL) && hca_mkey_is_relaxed(mkey)) ? mkey : NULL;
}

bool hca_posted_keep(const struct hca_msg *msg, const struct hca_sgl *memory)
{
    const struct hca_mkey *mkey = hca_posted_relaxed(msg, memory);
    struct hca_posted *posted   = msg->posted;
    struct hca_posted_write *write;

    if ((mkey == NULL) || (memory->length > HCA_POSTED_LENGTH) ||
        (posted->count == HCA_POSTED_MAX)) {
        hca_posted_push(posted, msg->dest_qpn);
        return false;
    }
    write = posted->keeps ? hca_posted_new(msg, memory, mkey) : NULL;
    if (write == NULL) {
        return false;
    }
    if (posted->count++ == 0) {
        hca_timer_arm(&posted->timer, hca_time_ns() + HCA_POSTED_NS);
    }
    write->next  = posted->last;
    posted->last = write;
    return true;
}

void hca_posted_before(struct hca_posted *posted, const struct hca_wqe *wqe)
{
    bool is_dc = (posted->qp->type == HCA_QP_DCI) &&
                 !(wqe->op->flags & HCA_OP_LOCAL);

    if ((wqe->opcode != MLX5_OPCODE_NOP) &&
        (wqe->opcode != MLX5_OPCODE_RDMA_WRITE)) {
        hca_posted_push(posted, is_dc ? wqe->dqpn : HCA_POSTED_ANY);
    }
}

void hca_posted_flush(struct hca_posted *posted)
{
    hca_posted_push(posted, HCA_POSTED_ANY);
}
