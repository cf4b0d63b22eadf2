/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations with a count around each, in place of the interface's own. So an
 * interface without UCX_DCX_REPORT=y or UCX's statistics has no instruction
 * more. Figures are in base/dcx_figures.h. Lists and rare events are counted
 * where they happen, for the whole process, by a test of a pointer. Owned by
 * the interface's thread.
 */
#include "dcx_count.h"
#include "dcx_stats.h"
#include "uct/dcx/base/dcx_figures.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <uct/base/uct_iov.inl>


/* Calls of progress after which the statistics of layouts are read, and UCX's
 * statistics are written */
#define UCT_DCX_COUNT_PERIOD 1024

struct uct_dcx_count {
    uct_iface_ops_t ops; /* the interface's own */
    uct_dcx_figures_block_t *figures;
    unsigned num_calls; /* of progress */
    uint64_t targets[]; /* of the last operation of each initiator */
};


static uct_dcx_count_t *uct_dcx_count_of(uct_ep_h ep)
{
    return ucs_derived_of(ep->iface, uct_dcx_iface_t)->count;
}


/* Returns the address of the endpoint's target: the GID belongs to it, as nodes
 * number their targets alike, and RoCE has no LID. */
static uint64_t uct_dcx_count_target(const uct_dcx_ep_t *ep)
{
    uint64_t target = ((uint64_t)ep->av.rlid << 32) | ep->av.dqp_dct;
    uint64_t gid[2];

    if (uct_dcx_av_has_grh(&ep->av)) {
        memcpy(gid, ucs_derived_of(ep, uct_dcx_grh_ep_t)->grh.rgid,
               sizeof(gid));
        target ^= (gid[0] ^ gid[1]) * 0x9e3779b97f4a7c15ull; /* spread */
    }
    return target;
}


/* Counts a connection if the initiator's last operation went to another target:
 * the device connects it then. */
static void uct_dcx_count_connect(uct_dcx_count_t *count,
                                  const uct_dcx_ep_t *ep)
{
    uint64_t target = uct_dcx_count_target(ep);

    if ((ep->dci != UCT_DCX_NO_DCI) && (count->targets[ep->dci] != target)) {
        count->targets[ep->dci] = target;
        count->figures->counts[UCT_DCX_FIGURE_CONNECTS]++;
    }
}


/* Counts a call that returned @status. Returns @status. */
static ucs_status_t uct_dcx_count_op(uct_ep_h ep, uct_dcx_figure_op_t op,
                                     size_t bytes, ucs_status_t status)
{
    uct_dcx_count_t *count = uct_dcx_count_of(ep);

    if (status == UCS_ERR_NO_RESOURCE) {
        count->figures->ops[op].waits++;
    } else if (!UCS_STATUS_IS_ERR(status)) {
        count->figures->ops[op].num++;
        count->figures->ops[op].bytes += bytes;
        uct_dcx_count_connect(count, ucs_derived_of(ep, uct_dcx_ep_t));
    }
    return status;
}


/* Counts a copied operation, which returned its length or a status. Returns
 * @length. */
static ssize_t uct_dcx_count_bcopy(uct_ep_h ep, uct_dcx_figure_op_t op,
                                   ssize_t length)
{
    uct_dcx_count_op(ep, op, length, (length < 0) ? length : UCS_OK);
    return length;
}


/* Defines an operation that calls the interface's own, and counts @_bytes. A
 * function for each would be three times as long, with no other content. */
#define UCT_DCX_COUNT_OP(_name, _op, _bytes, _params, ...) \
    static ucs_status_t uct_dcx_count_##_name _params \
    { \
        return uct_dcx_count_op( \
            ep, UCT_DCX_OP_##_op, _bytes, \
            uct_dcx_count_of(ep)->ops.ep_##_name(__VA_ARGS__)); \
    }

UCT_DCX_COUNT_OP(put_short, PUT_SHORT, length,
                 (uct_ep_h ep, const void *buffer, unsigned length,
                  uint64_t remote_addr, uct_rkey_t rkey),
                 ep, buffer, length, remote_addr, rkey)

UCT_DCX_COUNT_OP(put_zcopy, PUT_ZCOPY, uct_iov_total_length(iov, iovcnt),
                 (uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                  uint64_t remote_addr, uct_rkey_t rkey,
                  uct_completion_t *comp),
                 ep, iov, iovcnt, remote_addr, rkey, comp)

UCT_DCX_COUNT_OP(get_bcopy, GET_BCOPY, length,
                 (uct_ep_h ep, uct_unpack_callback_t unpack_cb, void *arg,
                  size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                  uct_completion_t *comp),
                 ep, unpack_cb, arg, length, remote_addr, rkey, comp)

UCT_DCX_COUNT_OP(get_zcopy, GET_ZCOPY, uct_iov_total_length(iov, iovcnt),
                 (uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                  uint64_t remote_addr, uct_rkey_t rkey,
                  uct_completion_t *comp),
                 ep, iov, iovcnt, remote_addr, rkey, comp)

UCT_DCX_COUNT_OP(am_short, AM_SHORT, sizeof(header) + length,
                 (uct_ep_h ep, uint8_t id, uint64_t header, const void *payload,
                  unsigned length),
                 ep, id, header, payload, length)

UCT_DCX_COUNT_OP(am_short_iov, AM_SHORT, uct_iov_total_length(iov, iovcnt),
                 (uct_ep_h ep, uint8_t id, const uct_iov_t *iov, size_t iovcnt),
                 ep, id, iov, iovcnt)

UCT_DCX_COUNT_OP(am_zcopy, AM_ZCOPY,
                 header_length + uct_iov_total_length(iov, iovcnt),
                 (uct_ep_h ep, uint8_t id, const void *header,
                  unsigned header_length, const uct_iov_t *iov, size_t iovcnt,
                  unsigned flags, uct_completion_t *comp),
                 ep, id, header, header_length, iov, iovcnt, flags, comp)

/* Defines the atomics of an operand of @_bits. */
#define UCT_DCX_COUNT_ATOMICS(_bits) \
    UCT_DCX_COUNT_OP(atomic_cswap##_bits, ATOMIC, sizeof(swap), \
                     (uct_ep_h ep, uint##_bits##_t compare, \
                      uint##_bits##_t swap, uint64_t remote_addr, \
                      uct_rkey_t rkey, uint##_bits##_t * result, \
                      uct_completion_t * comp), \
                     ep, compare, swap, remote_addr, rkey, result, comp) \
    UCT_DCX_COUNT_OP(atomic##_bits##_post, ATOMIC, sizeof(value), \
                     (uct_ep_h ep, unsigned opcode, uint##_bits##_t value, \
                      uint64_t remote_addr, uct_rkey_t rkey), \
                     ep, opcode, value, remote_addr, rkey) \
    UCT_DCX_COUNT_OP(atomic##_bits##_fetch, ATOMIC, sizeof(value), \
                     (uct_ep_h ep, unsigned opcode, uint##_bits##_t value, \
                      uint##_bits##_t *result, uint64_t remote_addr, \
                      uct_rkey_t rkey, uct_completion_t *comp), \
                     ep, opcode, value, result, remote_addr, rkey, comp)

UCT_DCX_COUNT_ATOMICS(64)
UCT_DCX_COUNT_ATOMICS(32)

UCT_DCX_COUNT_OP(tag_eager_short, TAG_SHORT, length,
                 (uct_ep_h ep, uct_tag_t tag, const void *data, size_t length),
                 ep, tag, data, length)

UCT_DCX_COUNT_OP(tag_eager_zcopy, TAG_ZCOPY, uct_iov_total_length(iov, iovcnt),
                 (uct_ep_h ep, uct_tag_t tag, uint64_t imm,
                  const uct_iov_t *iov, size_t iovcnt, unsigned flags,
                  uct_completion_t *comp),
                 ep, tag, imm, iov, iovcnt, flags, comp)

UCT_DCX_COUNT_OP(tag_rndv_request, TAG_RNDV, header_length,
                 (uct_ep_h ep, uct_tag_t tag, const void *header,
                  unsigned header_length, unsigned flags),
                 ep, tag, header, header_length, flags)


static ssize_t uct_dcx_count_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack_cb,
                                       void *arg, uint64_t remote_addr,
                                       uct_rkey_t rkey)
{
    uct_dcx_count_t *count = uct_dcx_count_of(ep);
    ssize_t length;

    length = count->ops.ep_put_bcopy(ep, pack_cb, arg, remote_addr, rkey);
    if (ep->iface->ops.ep_put_bcopy != uct_dcx_count_put_bcopy) {
        /* The next one is expected to be of another length (dcx_rma.c). */
        count->ops.ep_put_bcopy     = ep->iface->ops.ep_put_bcopy;
        ep->iface->ops.ep_put_bcopy = uct_dcx_count_put_bcopy;
    }
    return uct_dcx_count_bcopy(ep, UCT_DCX_OP_PUT_BCOPY, length);
}


static ssize_t uct_dcx_count_am_bcopy(uct_ep_h ep, uint8_t id,
                                      uct_pack_callback_t pack_cb, void *arg,
                                      unsigned flags)
{
    uct_dcx_count_t *count = uct_dcx_count_of(ep);
    ssize_t length;

    length = count->ops.ep_am_bcopy(ep, id, pack_cb, arg, flags);
    if (ep->iface->ops.ep_am_bcopy != uct_dcx_count_am_bcopy) {
        /* The next one is expected to be of another length (dcx_am.c). */
        count->ops.ep_am_bcopy     = ep->iface->ops.ep_am_bcopy;
        ep->iface->ops.ep_am_bcopy = uct_dcx_count_am_bcopy;
    }
    return uct_dcx_count_bcopy(ep, UCT_DCX_OP_AM_BCOPY, length);
}


static ssize_t uct_dcx_count_tag_eager_bcopy(uct_ep_h ep, uct_tag_t tag,
                                             uint64_t imm,
                                             uct_pack_callback_t pack_cb,
                                             void *arg, unsigned flags)
{
    return uct_dcx_count_bcopy(ep, UCT_DCX_OP_TAG_BCOPY,
                               uct_dcx_count_of(ep)->ops.ep_tag_eager_bcopy(
                                   ep, tag, imm, pack_cb, arg, flags));
}


static ucs_status_ptr_t
uct_dcx_count_tag_rndv(uct_ep_h ep, uct_tag_t tag, const void *header,
                       unsigned header_length, const uct_iov_t *iov,
                       size_t iovcnt, unsigned flags, uct_completion_t *comp)
{
    ucs_status_ptr_t op;

    op = uct_dcx_count_of(ep)->ops.ep_tag_rndv_zcopy(
        ep, tag, header, header_length, iov, iovcnt, flags, comp);
    uct_dcx_count_op(ep, UCT_DCX_OP_TAG_RNDV, uct_iov_total_length(iov, iovcnt),
                     UCS_PTR_IS_ERR(op) ? UCS_PTR_STATUS(op) : UCS_INPROGRESS);
    return op;
}


static ucs_status_t uct_dcx_count_tag_recv(uct_iface_h tl_iface, uct_tag_t tag,
                                           uct_tag_t tag_mask,
                                           const uct_iov_t *iov, size_t iovcnt,
                                           uct_tag_context_t *ctx)
{
    uct_dcx_count_t *count = ucs_derived_of(tl_iface, uct_dcx_iface_t)->count;
    ucs_status_t status;

    status = count->ops.iface_tag_recv_zcopy(tl_iface, tag, tag_mask, iov,
                                             iovcnt, ctx);
    if (status == UCS_OK) {
        count->figures->ops[UCT_DCX_OP_TAG_RECV].num++;
        count->figures->ops[UCT_DCX_OP_TAG_RECV].bytes +=
            uct_iov_total_length(iov, iovcnt);
    } else if (status == UCS_ERR_EXCEEDS_LIMIT) {
        count->figures->ops[UCT_DCX_OP_TAG_RECV].waits++;
    }
    return status;
}


/* --- the interface -------------------------------------------------------- */

static ucs_status_t
uct_dcx_count_pending_add(uct_ep_h ep, uct_pending_req_t *req, unsigned flags)
{
    uct_dcx_count_t *count = uct_dcx_count_of(ep);
    ucs_status_t status    = count->ops.ep_pending_add(ep, req, flags);

    count->figures->counts[UCT_DCX_FIGURE_PENDING] += (status == UCS_OK);
    return status;
}


/* Adds the statistics of the domain's layouts since the last call. Copies all
 * figures to UCX's statistics. */
static void uct_dcx_count_update(uct_dcx_iface_t *iface)
{
    uct_dcx_md_t *md = ucs_derived_of(iface->super.super.md, uct_dcx_md_t);

    if ((md->keys != NULL) && uct_dcx_keys_is_open(md->keys)) {
        uct_dcx_keys_count(md->keys);
    }
    uct_dcx_stats_update();
}


static unsigned uct_dcx_count_progress(uct_iface_h tl_iface)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);

    if (ucs_unlikely(iface->count->num_calls++ % UCT_DCX_COUNT_PERIOD == 0)) {
        uct_dcx_count_update(iface);
    }
    return iface->count->ops.iface_progress(tl_iface);
}


static void uct_dcx_count_replace(uct_iface_ops_t *ops)
{
    ops->ep_put_short         = uct_dcx_count_put_short;
    ops->ep_put_bcopy         = uct_dcx_count_put_bcopy;
    ops->ep_put_zcopy         = uct_dcx_count_put_zcopy;
    ops->ep_get_bcopy         = uct_dcx_count_get_bcopy;
    ops->ep_get_zcopy         = uct_dcx_count_get_zcopy;
    ops->ep_am_short          = uct_dcx_count_am_short;
    ops->ep_am_short_iov      = uct_dcx_count_am_short_iov;
    ops->ep_am_bcopy          = uct_dcx_count_am_bcopy;
    ops->ep_am_zcopy          = uct_dcx_count_am_zcopy;
    ops->ep_atomic_cswap64    = uct_dcx_count_atomic_cswap64;
    ops->ep_atomic_cswap32    = uct_dcx_count_atomic_cswap32;
    ops->ep_atomic64_post     = uct_dcx_count_atomic64_post;
    ops->ep_atomic32_post     = uct_dcx_count_atomic32_post;
    ops->ep_atomic64_fetch    = uct_dcx_count_atomic64_fetch;
    ops->ep_atomic32_fetch    = uct_dcx_count_atomic32_fetch;
    ops->ep_tag_eager_short   = uct_dcx_count_tag_eager_short;
    ops->ep_tag_eager_bcopy   = uct_dcx_count_tag_eager_bcopy;
    ops->ep_tag_eager_zcopy   = uct_dcx_count_tag_eager_zcopy;
    ops->ep_tag_rndv_zcopy    = uct_dcx_count_tag_rndv;
    ops->ep_tag_rndv_request  = uct_dcx_count_tag_rndv_request;
    ops->iface_tag_recv_zcopy = uct_dcx_count_tag_recv;
    ops->ep_pending_add       = uct_dcx_count_pending_add;
    ops->iface_progress       = uct_dcx_count_progress;
}


void uct_dcx_count_init(uct_dcx_iface_t *iface,
                        const uct_dcx_iface_config_t *config)
{
    uct_dcx_queues_t *queues = &iface->super;
    uct_dcx_count_t *count;

    iface->count = NULL;
    if (!config->report && !uct_dcx_stats_is_on()) {
        return;
    }

    count = ucs_calloc(
        1, sizeof(*count) + queues->dci.pool.max_dci * sizeof(*count->targets),
        "dcx_count");
    if (count == NULL) {
        ucs_warn("%s: no memory for figures", queues->port.name);
        return;
    }

    count->figures = uct_dcx_figures_open(queues->port.name);
    if (count->figures == NULL) {
        ucs_warn("%s: UCX_DCX_REPORT and UCX_STATS_DEST count %d interfaces at "
                 "most, and need memory and a descriptor",
                 queues->port.name, UCT_DCX_FIGURES_BLOCKS - 1);
        ucs_free(count);
        return;
    }

    if (config->report) {
        uct_dcx_figures_is_printed = 1;
    }
    count->ops   = queues->super.super.ops;
    iface->count = count;
    uct_dcx_count_replace(&queues->super.super.ops);
}


void uct_dcx_count_cleanup(uct_dcx_iface_t *iface)
{
    if (iface->count != NULL) {
        uct_dcx_count_update(iface);
        uct_dcx_figures_close(iface->count->figures);
        iface->super.super.super.ops = iface->count->ops;
        ucs_free(iface->count);
    }
}
