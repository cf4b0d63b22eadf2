/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues. The ring and the doorbell record are in memory of the
 * program (uverbs_rings.h); the device fills the ring (hca_cq.h). Checks are
 * those of mlx5_ib's cq.c.
 */
#define _GNU_SOURCE
#include "uverbs_cq.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_objs.h"
#include "uverbs.h"
#include "uverbs_mmap.h"
#include "uverbs_uar.h"

#include <errno.h>

#define UVERBS_CQ_UCMD_FLAGS \
    (MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD | \
     MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX | \
     MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS)

static uint32_t uverbs_roundup_pow2(uint32_t value)
{
    return (value <= 1) ? 1 : 1u << (32 - __builtin_clz(value - 1));
}

static uint32_t uverbs_cq_max(void)
{
    return hca_limit(HCA_LIMIT_CQE, UVERBS_MAX_CQE - 1);
}

static int uverbs_cq_release(struct uverbs_obj *obj,
                             struct uverbs_events *events)
{
    struct uverbs_cq *cq = (struct uverbs_cq *)obj;
    struct hca_cq_events left;

    if (hca_cq_destroy(cq->cq, &left) != 0) {
        return -ETIMEDOUT;
    }
    uverbs_rings_unshare(&cq->rings);
    if (events != NULL) {
        *events = (struct uverbs_events){left.comp, left.async};
    }
    uverbs_drop(cq->comp);
    uverbs_drop(cq->async);
    return 0;
}

const struct uverbs_type uverbs_cq_type = {
    UVERBS_OBJECT_CQ,
    "completion queues",
    .release = uverbs_cq_release,
};

static const struct uverbs_attr_spec uverbs_create_cq_attrs[] = {
    {UVERBS_ATTR_CREATE_CQ_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0, 0, 0},
    {UVERBS_ATTR_CREATE_CQ_CQE, UVERBS_IN, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_CREATE_CQ_USER_HANDLE, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, UVERBS_FD, 0, 0, 0,
     UVERBS_OBJECT_COMP_CHANNEL},
    {UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, UVERBS_IN, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_CREATE_CQ_FLAGS, UVERBS_IN, 0, 4, 8, 0},
    {UVERBS_ATTR_CREATE_CQ_RESP_CQE, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_CREATE_CQ_EVENT_FD, UVERBS_FD, 0, 0, 0,
     UVERBS_OBJECT_ASYNC_EVENT},
};

static int uverbs_cq_check(const struct uverbs_req *req, uint32_t cqe)
{
    uint64_t flags  = uverbs_get_const(req, UVERBS_ATTR_CREATE_CQ_FLAGS);
    uint64_t vector = uverbs_get_const(req, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR);

    if (flags & ~(uint64_t)(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION |
                            IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)) {
        return -EINVAL;
    }
    if ((cqe == 0) || (cqe > uverbs_cq_max()) ||
        (vector >= UVERBS_NUM_VECTORS)) {
        return -EINVAL;
    }
    return 0;
}

/* Checks as mini_cqe_res_format_to_hw() of mlx5_ib does. */
static int uverbs_cq_check_mini(const struct mlx5_ib_create_cq *ucmd)
{
    if (ucmd->cqe_size != 64) {
        return -EOPNOTSUPP;
    }
    switch (ucmd->cqe_comp_res_format) {
    case MLX5_IB_CQE_RES_FORMAT_HASH:
    case MLX5_IB_CQE_RES_FORMAT_CSUM:
        return 0;
    case MLX5_IB_CQE_RES_FORMAT_CSUM_STRIDX:
        return -EOPNOTSUPP;
    default:
        return -EINVAL;
    }
}

static int uverbs_cq_check_ucmd(const struct uverbs_ctx *ctx,
                                const struct mlx5_ib_create_cq *ucmd)
{
    if ((ucmd->flags & ~UVERBS_CQ_UCMD_FLAGS) || (ucmd->reserved0 != 0) ||
        (ucmd->reserved1 != 0) ||
        ((ucmd->cqe_size != 64) && (ucmd->cqe_size != 128))) {
        return -EINVAL;
    }
    if ((ucmd->flags & MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS) ||
        ((ucmd->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD) &&
         (ucmd->cqe_size != 128))) {
        return -EOPNOTSUPP;
    }
    if (!(ucmd->flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) ||
        !uverbs_uar_valid(ctx, ucmd->uar_page_index)) {
        return -EINVAL;
    }
    return (ucmd->cqe_comp_en == 0) ? 0 : uverbs_cq_check_mini(ucmd);
}

static int uverbs_cq_share(struct uverbs_rings *rings, uint64_t ring,
                           uint64_t dbrec, size_t ring_size)
{
    const struct uverbs_place place = {
        .what       = "cq",
        .variable   = "MLX_CQ_ALLOC_TYPE",
        .ring       = ring,
        .ring_size  = ring_size,
        .dbrec      = dbrec,
        .dbrec_size = 8,
    };

    return uverbs_rings_share(rings, &place);
}

static void uverbs_cq_ring(struct hca_ring *ring, const struct uverbs_rings *at,
                           uint32_t entries, uint32_t cqe_size)
{
    ring->buf        = hca_off(at->ring.mem);
    ring->log_cnt    = __builtin_ctz(entries);
    ring->log_stride = __builtin_ctz(cqe_size);
}

/* Shares the memory, and creates the device's CQ. */
static int uverbs_cq_make(struct uverbs_req *req, struct uverbs_cq *cq,
                          const struct mlx5_ib_create_cq *ucmd,
                          uint32_t entries)
{
    uint64_t flags = uverbs_get_const(req, UVERBS_ATTR_CREATE_CQ_FLAGS);
    struct hca_cq_spec spec = {
        .dev         = req->ctx->dev,
        .uar         = ucmd->uar_page_index,
        .chan        = uverbs_chan(cq->comp),
        .async_chan  = uverbs_chan(cq->async),
        .user_handle = uverbs_get_const(req, UVERBS_ATTR_CREATE_CQ_USER_HANDLE),
        .ignore_overrun = flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN,
        .timestamp      = flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION,
        .is_padded      = ucmd->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD,
        .is_compressed  = ucmd->cqe_comp_en != 0,
    };
    int ret;

    ret = uverbs_cq_share(&cq->rings, ucmd->buf_addr, ucmd->db_addr,
                          (size_t)entries * ucmd->cqe_size);
    if (ret != 0) {
        return ret;
    }
    uverbs_cq_ring(&spec.ring, &cq->rings, entries, ucmd->cqe_size);
    spec.dbrec = hca_off(cq->rings.dbrec.mem);
    ret        = hca_cq_create(&spec, &cq->cq);
    if (ret != 0) {
        uverbs_rings_unshare(&cq->rings);
    }
    return ret;
}

static int uverbs_cq_new(struct uverbs_req *req,
                         const struct mlx5_ib_create_cq *ucmd, uint32_t entries,
                         struct uverbs_cq **cqp)
{
    struct uverbs_cq *cq;
    int ret;

    ret = uverbs_obj_new(req->ctx, UVERBS_OBJECT_CQ, sizeof(*cq), &cq);
    if (ret != 0) {
        return ret;
    }
    cq->cqe_size   = ucmd->cqe_size;
    cq->dbrec_addr = ucmd->db_addr;
    cq->comp       = uverbs_get_obj(req, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
    cq->async      = uverbs_async(req, UVERBS_ATTR_CREATE_CQ_EVENT_FD);
    ret            = uverbs_cq_make(req, cq, ucmd, entries);
    if (ret != 0) {
        uverbs_obj_delete(&cq->obj);
        return ret;
    }
    uverbs_hold(cq->comp);
    uverbs_hold(cq->async);
    *cqp = cq;
    return 0;
}

static int uverbs_cq_respond(struct uverbs_req *req, const struct uverbs_cq *cq)
{
    struct mlx5_ib_create_cq_resp drv = {.cqn = cq->cq->obj.num};
    uint32_t cqe                      = (1u << cq->cq->ring.log_cnt) - 1;
    int ret;

    ret = uverbs_uhw_out(req, &drv);
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe,
                         sizeof(cqe));
    }
    if (ret == 0) {
        ret = uverbs_put_handle(req, UVERBS_ATTR_CREATE_CQ_HANDLE,
                                cq->obj.handle);
    }
    return ret;
}

static int uverbs_create_cq(struct uverbs_req *req)
{
    uint32_t cqe = uverbs_get_const(req, UVERBS_ATTR_CREATE_CQ_CQE);
    struct mlx5_ib_create_cq ucmd;
    struct uverbs_cq *cq;
    uint32_t entries;
    int ret;

    ret = uverbs_cq_check(req, cqe);
    if (ret != 0) {
        return ret;
    }
    if (uverbs_len(req, UVERBS_ATTR_UHW_IN) < offsetof(typeof(ucmd), flags)) {
        return -EINVAL;
    }
    ret = uverbs_uhw_in(req, &ucmd);
    if (ret != 0) {
        return ret;
    }
    entries = uverbs_roundup_pow2(cqe + 1);
    ret     = uverbs_cq_check_ucmd(req->ctx, &ucmd);
    if (ret != 0) {
        return ret;
    }

    uverbs_map_resolve(req->ctx);
    ret = uverbs_cq_new(req, &ucmd, entries, &cq);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_cq_respond(req, cq);
    if (ret != 0) {
        uverbs_obj_destroy(&cq->obj, NULL);
    }
    return ret;
}

static const struct uverbs_attr_spec uverbs_destroy_cq_attrs[] = {
    {UVERBS_ATTR_DESTROY_CQ_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_CQ},
    {UVERBS_ATTR_DESTROY_CQ_RESP, UVERBS_OUT, UVERBS_MANDATORY,
     sizeof(struct ib_uverbs_destroy_cq_resp),
     sizeof(struct ib_uverbs_destroy_cq_resp), 0},
};

static int uverbs_destroy_cq(struct uverbs_req *req)
{
    struct uverbs_obj *obj = uverbs_get_obj(req, UVERBS_ATTR_DESTROY_CQ_HANDLE);
    struct ib_uverbs_destroy_cq_resp resp;
    struct uverbs_events events;
    int ret;

    ret = uverbs_obj_destroy(obj, &events);
    if (ret != 0) {
        return ret;
    }
    resp = (struct ib_uverbs_destroy_cq_resp){events.comp, events.async};
    return uverbs_put(req, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof(resp));
}

/* Moves the CQ to a ring at @addr; the doorbell record stays. */
static int uverbs_cq_move(struct uverbs_cq *cq, uint64_t addr, uint32_t entries)
{
    struct uverbs_rings rings;
    struct hca_ring ring;
    int ret;

    ret = uverbs_cq_share(&rings, addr, cq->dbrec_addr,
                          (size_t)entries * cq->cqe_size);
    if (ret != 0) {
        return ret;
    }
    uverbs_cq_ring(&ring, &rings, entries, cq->cqe_size);
    ret = hca_cq_resize(cq->cq->obj.num, &ring);
    uverbs_rings_unshare((ret == 0) ? &cq->rings : &rings);
    if (ret == 0) {
        cq->rings = rings;
    }
    return ret;
}

static int uverbs_resize_cq(struct uverbs_req *req)
{
    struct ib_uverbs_resize_cq_resp resp = {0};
    struct ib_uverbs_resize_cq cmd;
    struct mlx5_ib_resize_cq ucmd;
    struct uverbs_cq *cq;
    uint32_t entries;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret == 0) {
        ret = uverbs_uhw_in(req, &ucmd);
    }
    if (ret != 0) {
        return ret;
    }
    cq = uverbs_obj_find(req->ctx, UVERBS_OBJECT_CQ, cmd.cq_handle, &ret);
    if (cq == NULL) {
        return -EINVAL;
    }
    if ((cmd.cqe == 0) || (cmd.cqe > uverbs_cq_max()) ||
        (ucmd.reserved0 != 0) || (ucmd.reserved1 != 0) ||
        (ucmd.cqe_size != cq->cqe_size)) {
        return -EINVAL;
    }

    entries = uverbs_roundup_pow2(cmd.cqe + 1);
    if (entries != 1u << cq->cq->ring.log_cnt) {
        ret = uverbs_cq_move(cq, ucmd.buf_addr, entries);
        if (ret != 0) {
            return ret;
        }
    }
    resp.cqe = entries - 1;
    return uverbs_core_out(req, &resp);
}

static int uverbs_modify_cq(struct uverbs_req *req)
{
    struct ib_uverbs_ex_modify_cq cmd;
    struct uverbs_cq *cq;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    if ((cmd.attr_mask == 0) || (cmd.reserved != 0)) {
        return -EINVAL;
    }
    if (cmd.attr_mask > IBV_CQ_ATTR_MODERATE) {
        return -EOPNOTSUPP;
    }
    cq = uverbs_obj_find(req->ctx, UVERBS_OBJECT_CQ, cmd.cq_handle, &ret);
    if ((cq == NULL) || (cmd.attr.cq_period > 0xfff)) {
        return -EINVAL;
    }

    return hca_cq_modify(cq->cq->obj.num, cmd.attr.cq_count,
                         cmd.attr.cq_period);
}

const struct uverbs_method uverbs_cq_methods[] = {
    {.object  = UVERBS_OBJECT_CQ,
     .id      = UVERBS_METHOD_CQ_CREATE,
     .uhw     = true,
     .name    = "create_cq",
     .handler = uverbs_create_cq,
     UVERBS_ATTRS(uverbs_create_cq_attrs)},
    {.object  = UVERBS_OBJECT_CQ,
     .id      = UVERBS_METHOD_CQ_DESTROY,
     .name    = "destroy_cq",
     .is_end  = true,
     .handler = uverbs_destroy_cq,
     UVERBS_ATTRS(uverbs_destroy_cq_attrs)},
    {.handler = NULL},
};

const struct uverbs_write uverbs_cq_writes[] = {
    {IB_USER_VERBS_CMD_RESIZE_CQ, "resize_cq",
     sizeof(struct ib_uverbs_resize_cq),
     sizeof(struct ib_uverbs_resize_cq_resp), uverbs_resize_cq},
    {UVERBS_EX(IB_USER_VERBS_EX_CMD_MODIFY_CQ), "modify_cq",
     sizeof(struct ib_uverbs_ex_modify_cq), 0, uverbs_modify_cq},
    {.handler = NULL},
};
