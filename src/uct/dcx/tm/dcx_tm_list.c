/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The list of tagged buffers: posts a buffer that is one piece of memory,
 * cancels it, and completes it; see dcx_tm.h.
 */
#include "dcx_tm_cmd.h"
#include "uct/dcx/mem/dcx_mem.h"

#include <ucs/debug/log.h>


ucs_status_t uct_dcx_tm_recv_zcopy(uct_iface_h tl_iface, uct_tag_t tag,
                                   uct_tag_t tag_mask, const uct_iov_t *iov,
                                   size_t iovcnt, uct_tag_context_t *ctx)
{
    uct_dcx_tm_post_t post = {
        .tag  = tag,
        .mask = tag_mask,
        .lkey = MLX5_INVALID_LKEY,
    };

    if (ucs_unlikely((iovcnt != 1) || (iov->count != 1))) {
        return uct_dcx_tm_strided_recv_zcopy(tl_iface, tag, tag_mask, iov,
                                             iovcnt, ctx);
    }

    if (ucs_likely(iov->length > 0)) {
        if (ucs_unlikely(!uct_dcx_mem_is_plain(iov->memh))) {
            return uct_dcx_tm_strided_recv_zcopy(tl_iface, tag, tag_mask, iov,
                                                 iovcnt, ctx);
        }
        post.lkey = uct_dcx_mem_lkey(iov->memh);
        post.addr = (uintptr_t)iov->buffer;
    }

    post.buffer = iov->buffer;
    post.length = iov->length;
    return uct_dcx_tm_recv(ucs_derived_of(tl_iface, uct_dcx_queues_t)->tm,
                           &post, ctx);
}


/* --- ending entries ------------------------------------------------------- */

/* Stops all callbacks of an entry, so that the user may post its buffer again,
 * even if the entry still waits for its removal. Returns its context, or
 * NULL. */
static UCS_F_ALWAYS_INLINE uct_tag_context_t *
uct_dcx_tm_detach(uct_dcx_tm_t *tm, uint16_t index)
{
    uct_dcx_tm_entry_t *entry = &tm->entries[index];
    uct_tag_context_t *ctx    = entry->ctx;
    uint16_t *place;

    if (ucs_unlikely(ctx == NULL)) {
        return NULL;
    }

    place = &tm->buckets[entry->bucket];
    while (*place != index) {
        place = &tm->entries[*place].chain;
    }
    *place     = entry->chain;
    entry->ctx = NULL;
    return ctx;
}


/* Counts @count completions of the entry; frees it after the last one. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tm_complete(uct_dcx_tm_t *tm, uint16_t index, unsigned count)
{
    uct_dcx_tm_entry_t *entry = &tm->entries[index];

    ucs_assert(entry->num_awaited >= count);
    entry->num_awaited -= count;
    if (ucs_likely(entry->num_awaited == 0)) {
        tm->free[tm->num_free++] = index;
    }
}


/* Removes a buffer from the list. If a message arrives first, cancellation has
 * no effect. A buffer that is canceled by force after it was canceled waits for
 * the same removal. */
ucs_status_t uct_dcx_tm_recv_cancel(uct_iface_h tl_iface,
                                    uct_tag_context_t *ctx, int force)
{
    uct_dcx_tm_t *tm = ucs_derived_of(tl_iface, uct_dcx_queues_t)->tm;
    uct_dcx_tm_entry_t *entry;
    uint16_t index;

    memcpy(&index, ctx->priv, sizeof(index));
    entry = &tm->entries[index];
    ucs_assertv(
        (index < tm->num_entries) &&
            ((entry->ctx == ctx) || (uct_dcx_tm_strided_ctx(tm, index) == ctx)),
        "a receive that is not posted is canceled");

    if (force && ucs_unlikely(entry->ctx != ctx)) {
        uct_dcx_tm_strided_mute(tm, index);
    } else if (force) {
        uct_dcx_tm_detach(tm, index);
    }

    if (!entry->is_matched && (entry->num_awaited == 1)) {
        entry->num_awaited++;
        uct_dcx_tm_post(tm, index, PRM_TM_OPCODE_REMOVE, uct_dcx_tm_await(tm),
                        index, 0, 0, NULL);
    }
    return UCS_OK;
}


/* --- completions ---------------------------------------------------------- */

/* A message that has matched */
typedef struct uct_dcx_tm_message {
    uct_tag_t tag;
    uint64_t imm;
    size_t length;
    void *inline_data; /* NULL: it is in the buffer */
} uct_dcx_tm_message_t;


/* Ends an entry, which may be posted again in the callback. */
static UCS_F_ALWAYS_INLINE void uct_dcx_tm_end(uct_dcx_tm_t *tm, uint16_t index,
                                               unsigned count,
                                               const uct_dcx_tm_message_t *msg,
                                               ucs_status_t status)
{
    uct_tag_context_t *ctx = uct_dcx_tm_detach(tm, index);

    uct_dcx_tm_complete(tm, index, count);
    if (ucs_likely(ctx != NULL)) {
        ctx->completed_cb(ctx, msg->tag, msg->imm, msg->length,
                          msg->inline_data, status);
    }
}


/* Ends an entry without a message: with the tag and length that were posted, as
 * UCX's own transports do. */
static UCS_F_NOINLINE void uct_dcx_tm_abort(uct_dcx_tm_t *tm, uint16_t index,
                                            unsigned count, ucs_status_t status)
{
    const uct_dcx_tm_message_t none = {
        .tag    = tm->entries[index].tag,
        .length = tm->entries[index].length,
    };

    uct_dcx_tm_end(tm, index, count, &none, status);
}


/* Ends an entry with a request of a rendezvous that the user carries out. */
static UCS_F_NOINLINE void uct_dcx_tm_requested(uct_dcx_tm_t *tm,
                                                uint16_t index, uct_tag_t tag,
                                                size_t length,
                                                void *inline_data)
{
    uct_tag_context_t *ctx = uct_dcx_tm_detach(tm, index);
    void *data             = (inline_data != NULL) ? inline_data :
                                                     tm->entries[index].buffer;

    uct_dcx_tm_complete(tm, index, 1);
    if (ctx != NULL) {
        ctx->rndv_cb(ctx, tag, data, length, UCS_OK,
                     (inline_data != NULL) ? UCT_TAG_RECV_CB_INLINE_DATA : 0);
    }
}


/* Ends an entry with a complete message. Data of up to 64 bytes is in front of
 * the completion if that has 128, and the buffer is unchanged: for any form of
 * buffer, the user unpacks it (uct.h, completed_cb). */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tm_arrived(uct_dcx_tm_t *tm, uint16_t index, uct_tag_t tag,
                   __be32 app_ctx, struct mlx5_cqe64 *cqe)
{
    const uct_dcx_tm_message_t msg = {
        .tag         = tag,
        .imm         = uct_dcx_tm_imm(cqe, app_ctx),
        .length      = be32toh(cqe->byte_cnt),
        .inline_data = (cqe->op_own & MLX5_INLINE_SCATTER_64) ? cqe - 1 : NULL,
    };

    if (ucs_unlikely(uct_dcx_tm_is_request(cqe, msg.imm))) {
        uct_dcx_tm_requested(tm, index, tag, msg.length, msg.inline_data);
        return;
    }
    uct_dcx_tm_end(tm, index, 1, &msg, UCS_OK);
}


static UCS_F_ALWAYS_INLINE void uct_dcx_tm_consumed(uct_dcx_tm_t *tm,
                                                    uint16_t index)
{
    uct_dcx_tm_entry_t *entry = &tm->entries[index];

    entry->is_matched = 1;
    if (ucs_likely(entry->ctx != NULL)) {
        entry->ctx->tag_consumed_cb(entry->ctx);
    }
}


/* --- lost rendezvous ------------------------------------------------------ */

/* Records a rendezvous whose data does not come; its sender asks for it. */
static void uct_dcx_tm_lose(uct_dcx_tm_t *tm, __be32 id)
{
    tm->lost[tm->num_lost++ % UCT_DCX_TM_MAX_LOST] = id;
}


int uct_dcx_tm_is_lost(const uct_dcx_tm_t *tm, __be32 id)
{
    uint32_t num = ucs_min(tm->num_lost, UCT_DCX_TM_MAX_LOST);
    uint32_t i;

    for (i = 0; i < num; ++i) {
        if (tm->lost[i] == id) {
            return 1;
        }
    }
    return 0;
}


/* Handles a rendezvous that the device has matched but leaves to the user, as
 * the data is too long, or too many are outstanding. Passes the request to the
 * user as unexpected; the user finds the same receive for it, and cancels that
 * here by force. If it does not cancel, the receive ends as truncated. The
 * request may be in front of the completion (rdma-core, providers/mlx5/cq.c,
 * handle_tag_matching()). */
static UCS_F_NOINLINE void uct_dcx_tm_refused(uct_dcx_tm_t *tm, uint16_t index,
                                              struct mlx5_cqe64 *cqe)
{
    uct_dcx_tm_entry_t *entry = &tm->entries[index];
    struct {
        struct ibv_tmh tmh;
        uint8_t rest[UCT_DCX_MAX_TM_REQUEST - sizeof(struct ibv_tmh)];
    } request;
    size_t length = ucs_min(be32toh(cqe->byte_cnt), sizeof(request));
    ucs_status_t status;

    static_assert(sizeof(request) <= sizeof(*cqe), "it fits a CQE");
    entry->is_matched = 1;
    if (cqe->op_own & MLX5_INLINE_SCATTER_64) {
        memcpy(&request, cqe - 1, length);
        status = UCS_OK;
    } else {
        status = uct_dcx_tm_strided_read(tm, index, &request, length);
    }

    if (status == UCS_OK) {
        entry->tag = request.tmh.tag;
        uct_dcx_tm_unexpected_rndv(tm, &request.tmh, length);
        status = UCS_ERR_MESSAGE_TRUNCATED;
    } else {
        uct_dcx_tm_lose(tm, cqe->tmh.app_ctx);
    }
    uct_dcx_tm_abort(tm, index, 1, status);
}


/* Handles the completion of uct_dcx_tm_sync(). If no message was unexpected
 * before it, and no other operation follows, the device matches all that is
 * posted. */
static UCS_F_NOINLINE void uct_dcx_tm_synced(uct_dcx_tm_t *tm, uint16_t cmd)
{
    int is_last = (uint16_t)(cmd + 1) == tm->cmd.sq.pi;

    tm->is_syncing   = 0;
    tm->max_unsynced = (is_last && (tm->unexpected == tm->synced)) ?
                           UCT_DCX_TM_MAX_UNSYNCED :
                           1;
}


/* Handles the completion of an operation that requested one; operations before
 * it were executed, too. */
static UCS_F_NOINLINE void uct_dcx_tm_op_complete(uct_dcx_tm_t *tm,
                                                  const struct mlx5_cqe64 *cqe)
{
    const uint16_t mask = tm->cmd.sq.mask;
    uint16_t cmd        = tm->awaited[tm->awaited_head++ & mask];
    uint16_t index      = tm->ops[cmd & mask];

    tm->cmd.sq.ci = cmd + 1;
    if (cqe->app_op == PRM_CQE_TM_NOOP) {
        uct_dcx_tm_synced(tm, cmd);
        return;
    }

    if (cqe->app_op != PRM_CQE_TM_REMOVE) {
        return;
    }

    if (cqe->tm_cqe.success & htobe32(MLX5_TMC_SUCCESS)) {
        uct_dcx_tm_abort(tm, index, 2, UCS_ERR_CANCELED);
    } else {
        uct_dcx_tm_complete(tm, index, 1); /* a message arrived first */
    }
}


/* The header of a message is in the completion that reports the match. */
void uct_dcx_tm_list_complete(uct_dcx_tm_t *tm, struct mlx5_cqe64 *cqe)
{
    uint16_t index            = be16toh(cqe->app_info);
    uct_dcx_tm_entry_t *entry = &tm->entries[index];

    switch (cqe->app_op) {
    case PRM_CQE_TM_CONSUMED_MSG:
        uct_dcx_tm_consumed(tm, index);
        uct_dcx_tm_arrived(tm, index, cqe->tmh.tag, cqe->tmh.app_ctx, cqe);
        break;
    case PRM_CQE_TM_CONSUMED:
        entry->tag     = cqe->tmh.tag;
        entry->app_ctx = cqe->tmh.app_ctx;
        uct_dcx_tm_consumed(tm, index);
        break;
    case PRM_CQE_TM_EXPECTED:
        uct_dcx_tm_arrived(tm, index, entry->tag, entry->app_ctx, cqe);
        break;
    case PRM_CQE_TM_CONSUMED_MSG_SW_RNDV:
        uct_dcx_tm_refused(tm, index, cqe);
        break;
    case PRM_CQE_TM_MSG_COMPLETION_CANCELED:
        uct_dcx_tm_lose(tm, entry->app_ctx);
        uct_dcx_tm_abort(tm, index, 1, UCS_ERR_CONNECTION_RESET);
        break;
    default: /* APPEND, REMOVE, NOOP */
        uct_dcx_tm_op_complete(tm, cqe);
        break;
    }
}


/* Ends an entry whose buffer was not appended, or not removed. It does not
 * become free, as the device may have it. */
static void uct_dcx_tm_give_up(uct_dcx_tm_t *tm, uint16_t index)
{
    uct_dcx_tm_abort(tm, index, 0,
                     (tm->entries[index].num_awaited > 1) ? UCS_ERR_CANCELED :
                                                            UCS_ERR_IO_ERROR);
}


void uct_dcx_tm_close(uct_dcx_tm_t *tm)
{
    unsigned i;

    tm->cmd.sq.limit = 0;
    for (i = 0; i < tm->num_entries; ++i) {
        if (tm->entries[i].ctx != NULL) {
            uct_dcx_tm_give_up(tm, i);
        }
    }
}


/* Handles a failed operation; each one has a completion from then on. A buffer
 * that was not appended never matches, and one that was not removed has no
 * callback any longer. */
void uct_dcx_tm_failed(uct_dcx_tm_t *tm, const struct mlx5_cqe64 *cqe)
{
    const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe *)cqe;
    uint16_t index = tm->ops[be16toh(cqe->wqe_counter) & tm->cmd.sq.mask];

    if (tm->cmd.sq.limit > 0) {
        ucs_error("%s: the tag matching queue has failed: %s (syndrome 0x%x, "
                  "vendor 0x%x); UCX_DCX_TM_ENABLE=n continues without it",
                  tm->queues->port.name, uct_dcx_cqe_syndrome(cqe)->reason,
                  err->syndrome, err->vendor_err_synd);
    }

    tm->cmd.sq.limit = 0; /* uct_iface_tag_recv_zcopy() refuses */
    if ((index != UCT_DCX_TM_NONE) && !tm->entries[index].is_matched) {
        uct_dcx_tm_give_up(tm, index);
    }
}


void uct_dcx_tm_sync(uct_dcx_tm_t *tm)
{
    int is_full = (uint16_t)(tm->unexpected - tm->synced) >=
                  UCT_DCX_TM_MAX_UNSYNCED;

    if (!is_full && (tm->num_free + 1 == tm->num_entries)) {
        tm->max_unsynced = UCT_DCX_TM_MAX_UNSYNCED; /* nothing is posted */
    } else if (!tm->is_syncing && uct_dcx_tm_has_room(tm)) {
        tm->is_syncing   = 1;
        tm->max_unsynced = UCT_DCX_TM_MAX_UNSYNCED;
        uct_dcx_tm_post(tm, UCT_DCX_TM_NONE, PRM_TM_OPCODE_NOP,
                        uct_dcx_tm_await(tm), 0, 0, 0, NULL);
    }
}
