/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations of the list of tagged buffers, for its command queue.
 *
 * An APPEND names the entry of the *next* buffer; its own was named by the
 * previous one. So one entry is always reserved (tm->next). Operations are
 * executed in order, so that few of them request a completion: one in each
 * quarter of the ring, of any kind, and each REMOVE, as only its completion
 * tells if the buffer has matched meanwhile.
 */
#ifndef UCT_DCX_TM_CMD_H
#define UCT_DCX_TM_CMD_H

#include "dcx_tm.h"


/* Returns the hash bucket of a buffer. Buffers have any alignment: a
 * multiplication makes all of the lower bits count. The factor is 2^32 minus
 * that of Fibonacci hashing, so that it is a positive int. */
static UCS_F_ALWAYS_INLINE uint16_t uct_dcx_tm_bucket(const uct_dcx_tm_t *tm,
                                                      const void *buffer)
{
    return (((uintptr_t)buffer * 0x61c88647) >> 32) & tm->bucket_mask;
}


/* Returns non-zero if an entry of the bucket has this buffer. */
static UCS_F_ALWAYS_INLINE int uct_dcx_tm_is_posted(const uct_dcx_tm_t *tm,
                                                    uint16_t bucket,
                                                    const void *buffer)
{
    uint16_t index;

    for (index = tm->buckets[bucket]; index != UCT_DCX_TM_NONE;
         index = tm->entries[index].chain) {
        if (tm->entries[index].buffer == buffer) {
            return 1;
        }
    }
    return 0;
}


/* Returns the flag by which the next operation requests a completion; records
 * the operation in @awaited. */
static UCS_F_ALWAYS_INLINE unsigned uct_dcx_tm_await(uct_dcx_tm_t *tm)
{
    tm->awaited[tm->awaited_tail++ & tm->cmd.sq.mask] = tm->cmd.sq.pi;
    return PRM_TM_CQE_REQ;
}


/* Returns the flag of the next operation, which is no REMOVE: one in each
 * quarter of the ring requests a completion. */
static UCS_F_ALWAYS_INLINE unsigned uct_dcx_tm_cqe_flag(uct_dcx_tm_t *tm)
{
    return ucs_likely(tm->cmd.sq.pi & tm->cqe_mask) ? 0 : uct_dcx_tm_await(tm);
}


/* Posts a list operation for an entry, in one WQEBB; an APPEND has the buffer
 * @data. Each tells the device the number of delivered unexpected messages. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tm_post(uct_dcx_tm_t *tm, uint16_t entry, unsigned op, unsigned flags,
                uint16_t index, uct_tag_t tag, uct_tag_t mask,
                const struct mlx5_wqe_data_seg *data)
{
    uct_dcx_sq_t *sq              = &tm->cmd.sq;
    const uct_dcx_wqe_ctrl_t ctrl = {
        .opcode = MLX5_OPCODE_TAG_MATCHING,
        .sender = sq->sender,
    };
    const struct mlx5_wqe_tm_seg seg = {
        .opcode      = op << PRM_TM_OPCODE_SHIFT,
        .flags       = PRM_TM_SW_CNT | flags,
        .index       = htobe16(index),
        .sw_cnt      = htobe16(tm->unexpected),
        .append_tag  = tag,
        .append_mask = mask,
    };
    uct_dcx_wqe_t wqe;
    uint64_t doorbell;
    void *place;

    uct_dcx_wqe_begin(&wqe, sq->start, sq->mask, sq->pi);
    place = uct_dcx_wqe_seg(&wqe);
    uct_dcx_wqe_seg(&wqe); /* the second half */
    memcpy(place, &seg, sizeof(seg));
    if (data != NULL) {
        memcpy(uct_dcx_wqe_seg(&wqe), data, sizeof(*data));
    }

    tm->synced                 = tm->unexpected;
    tm->ops[sq->pi & sq->mask] = entry;
    doorbell                   = uct_dcx_wqe_finish(&wqe, &ctrl);
    uct_dcx_sq_push(sq, wqe.index, 1, doorbell);
}


/* Returns non-zero if the queue has room for an APPEND, and then for a REMOVE
 * of each entry. */
static UCS_F_ALWAYS_INLINE int uct_dcx_tm_has_room(const uct_dcx_tm_t *tm)
{
    unsigned num_posted = tm->num_entries - tm->num_free;

    return uct_dcx_sq_used(&tm->cmd.sq) + num_posted < tm->cmd.sq.limit;
}


static UCS_F_ALWAYS_INLINE void uct_dcx_tm_append(uct_dcx_tm_t *tm,
                                                  const uct_dcx_tm_post_t *post)
{
    const struct mlx5_wqe_data_seg data = {
        .byte_count = htobe32(post->length),
        .lkey       = htobe32(post->lkey),
        .addr       = htobe64(post->addr),
    };
    unsigned flags = uct_dcx_tm_cqe_flag(tm);
    uint16_t index = tm->next;

    /* The device compares (tag & mask) of a message with this one. */
    tm->next         = tm->free[--tm->num_free];
    tm->max_unsynced = 1;
    uct_dcx_tm_post(tm, index, PRM_TM_OPCODE_APPEND, flags, tm->next,
                    post->tag & post->mask, post->mask, &data);
}


/* Posts a buffer that is contiguous in the space of its key; @ctx has its
 * callbacks. Returns UCS_ERR_EXCEEDS_LIMIT if the list or the command queue is
 * full, or has failed, UCS_ERR_ALREADY_EXISTS if the buffer is posted. */
static UCS_F_ALWAYS_INLINE ucs_status_t uct_dcx_tm_recv(
    uct_dcx_tm_t *tm, const uct_dcx_tm_post_t *post, uct_tag_context_t *ctx)
{
    uct_dcx_tm_entry_t *entry;
    uint16_t bucket, index;

    if (ucs_unlikely((tm->num_free == 0) || !uct_dcx_tm_has_room(tm))) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    /* A buffer is posted once only: it may hold a rendezvous request, which has
     * to stay there until it is read. */
    bucket = uct_dcx_tm_bucket(tm, post->buffer);
    if (ucs_unlikely(uct_dcx_tm_is_posted(tm, bucket, post->buffer))) {
        return UCS_ERR_ALREADY_EXISTS;
    }

    index               = tm->next;
    entry               = &tm->entries[index];
    entry->ctx          = ctx;
    entry->buffer       = post->buffer;
    entry->tag          = post->tag;
    entry->length       = post->length;
    entry->num_awaited  = 1;
    entry->is_matched   = 0;
    entry->bucket       = bucket;
    entry->chain        = tm->buckets[bucket];
    tm->buckets[bucket] = index;

    memcpy(ctx->priv, &index, sizeof(index));
    uct_dcx_tm_append(tm, post);
    return UCS_OK;
}

#endif
