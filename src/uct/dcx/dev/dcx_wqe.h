/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Writes WQEs of send queues: of DC initiators, of the UMR queue and of the
 * queue for commands of tag matching. A cursor moves over the ring; one small
 * function adds one kind of segment. Nothing here knows an interface or UCX, so
 * that a test can write any operation into a plain buffer and compare it with
 * the output of libmlx5's builders. The caller's thread owns the ring.
 *
 * The order of calls: begin; for a DC initiator, the address; the segments of
 * the operation; grh, if the destination has one; finish, which writes the ctrl
 * segment. Formats: mlx5dv.h and common/prm.h; the order of segments is that of
 * the PRM, "send WQE".
 */
#ifndef UCT_DCX_WQE_H
#define UCT_DCX_WQE_H

#include "common/prm.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    UCT_DCX_WQE_SEG        = 16, /* bytes; unit of a WQE's size */
    UCT_DCX_WQE_INLINE_HDR = sizeof(struct mlx5_wqe_inl_data_seg)
};


/* The first 16 bytes of struct mlx5_wqe_av. Alone it is the compact form, for
 * an InfiniBand destination without GRH. */
typedef struct uct_dcx_av {
    __be64 key;     /* DC access key of the peer */
    __be32 dqp_dct; /* number of the DCT; bit 31: 32 bytes follow */
    uint8_t stat_rate_sl;
    uint8_t fl_mlid;
    __be16 rlid;
} uct_dcx_av_t;


/* The other 32 bytes of struct mlx5_wqe_av: the extended form. */
typedef struct uct_dcx_grh {
    uint8_t reserved[4];
    uint8_t rmac[6];
    uint8_t tclass;
    uint8_t hop_limit;
    __be32 grh_gid_fl;
    uint8_t rgid[16];
} uct_dcx_grh_t;

static_assert(sizeof(uct_dcx_av_t) == UCT_DCX_WQE_SEG, "one segment");
static_assert(sizeof(uct_dcx_av_t) + sizeof(uct_dcx_grh_t) ==
                  sizeof(struct mlx5_wqe_av),
              "the two halves of the AV");
static_assert(offsetof(struct mlx5_wqe_av, reserved0) == sizeof(uct_dcx_av_t),
              "the AV is cut where its compact form ends");


/* A cursor: the place of the next byte of the WQE. The ring's limits are
 * multiples of 64, so a segment of 16 bytes never straddles the end of the
 * ring. */
typedef struct uct_dcx_wqe {
    uint8_t *pos;   /* the ring's end means its start */
    uint8_t *first; /* of the WQE */
    uint8_t *block; /* WQEBB in which inline data continues, if it fits */
    uint8_t *start; /* of the ring */
    unsigned mask;  /* WQEBBs of the ring - 1 */
    uint16_t index; /* of the first WQEBB */
    unsigned ds;    /* segments begun so far, ctrl included */
    int inside;     /* segments that surely fit into the first WQEBB: no test
                     * for the end of the ring; 0 or less: unknown */
} uct_dcx_wqe_t;


/* Fields of the ctrl segment, beside its size */
typedef struct uct_dcx_wqe_ctrl {
    uint8_t opcode; /* MLX5_OPCODE_* */
    uint8_t opmod;
    uint32_t flags;  /* MLX5_WQE_CTRL_*, UCT_DCX_WQE_STREAM() */
    uint32_t imm;    /* immediate of SEND_IMM, mkey of UMR; host order */
    uint64_t carry;  /* uct_dcx_wqe_flags() that the queue kept for this WQE */
    uint64_t sender; /* uct_dcx_wqe_sender() of the QP */
} uct_dcx_wqe_ctrl_t;

/* Fence mode of a WQE that waits for all previous ones (linux/mlx5/qp.h,
 * MLX5_FENCE_MODE_STRONG_ORDERING) */
#define UCT_DCX_WQE_STRONG_ORDER (3 << 5)

/* The stream of a DCI with streams, in front of fm_ce_se (libmlx5,
 * mlx5_send_wr_set_dc_addr_stream()) */
#define UCT_DCX_WQE_STREAM(_number) ((uint32_t)(_number) << 8)


/* Functions that move the cursor are always inlined, so that the compiler knows
 * how far it has moved: see uct_dcx_wqe_wrap(). */
#define UCT_DCX_WQE_F static inline __attribute__((always_inline))


/* Starts a WQE at WQEBB @index of a ring of @bb_mask + 1. */
UCT_DCX_WQE_F void uct_dcx_wqe_begin(uct_dcx_wqe_t *wqe, void *start,
                                     unsigned bb_mask, uint16_t index)
{
    wqe->start = (uint8_t *)start;
    wqe->mask  = bb_mask;
    wqe->index = index;
    wqe->first = wqe->start +
                 ((size_t)(index & bb_mask) << MLX5_SEND_WQE_SHIFT);
    wqe->block  = wqe->first;
    wqe->pos    = wqe->first + sizeof(struct mlx5_wqe_ctrl_seg);
    wqe->ds     = 1;
    wqe->inside = 3;
}


UCT_DCX_WQE_F uint8_t *uct_dcx_wqe_ring_end(const uct_dcx_wqe_t *wqe)
{
    return wqe->start + ((size_t)(wqe->mask + 1) << MLX5_SEND_WQE_SHIFT);
}


/* Begins a segment; wraps to the ring's start after the ring's last segment.
 * The first segments of an operation cannot wrap: the compiler drops the test
 * where it knows the position. Elsewhere the end of any WQEBB is tested for the
 * ring's end. */
UCT_DCX_WQE_F void uct_dcx_wqe_wrap(uct_dcx_wqe_t *wqe)
{
    int is_inside = __builtin_constant_p(wqe->inside) && (wqe->inside > 0);

    wqe->inside--;
    if (!is_inside && !((uintptr_t)wqe->pos % MLX5_SEND_WQE_BB) &&
        (wqe->pos == uct_dcx_wqe_ring_end(wqe))) {
        wqe->pos = wqe->start;
    }
}


/* Returns the next segment; moves the cursor behind it. */
UCT_DCX_WQE_F void *uct_dcx_wqe_seg(uct_dcx_wqe_t *wqe)
{
    void *seg;

    uct_dcx_wqe_wrap(wqe);
    seg = wqe->pos;
    wqe->pos += UCT_DCX_WQE_SEG;
    wqe->ds++;
    return seg;
}


UCT_DCX_WQE_F void uct_dcx_wqe_av(uct_dcx_wqe_t *wqe, const uct_dcx_av_t *av)
{
    memcpy(uct_dcx_wqe_seg(wqe), av, sizeof(*av));
}


/* Adds the second half of an address right behind the first; before other
 * segments, unlike uct_dcx_wqe_grh(). */
UCT_DCX_WQE_F void uct_dcx_wqe_av_grh(uct_dcx_wqe_t *wqe,
                                      const uct_dcx_grh_t *grh)
{
    const uint8_t *from = (const uint8_t *)grh;

    memcpy(uct_dcx_wqe_seg(wqe), from, UCT_DCX_WQE_SEG);
    memcpy(uct_dcx_wqe_seg(wqe), from + UCT_DCX_WQE_SEG, UCT_DCX_WQE_SEG);
}


/* Returns segment @number of the WQE, also behind the end of the ring. */
static inline void *uct_dcx_wqe_seg_at(const uct_dcx_wqe_t *wqe,
                                       unsigned number)
{
    size_t offset = (size_t)(wqe->first - wqe->start) +
                    (number * UCT_DCX_WQE_SEG);
    size_t length = (size_t)(wqe->mask + 1) << MLX5_SEND_WQE_SHIFT;

    return wqe->start + (offset & (length - 1));
}


/* Inserts the second half of the address behind the first, which has bit 31 of
 * dqp_dct set, and moves all segments behind it. Called after all of them, as
 * few endpoints have a GRH and the others shall not pay for it. */
static inline void uct_dcx_wqe_grh(uct_dcx_wqe_t *wqe, const uct_dcx_grh_t *grh)
{
    const unsigned begin = 2; /* behind ctrl and address */
    const unsigned count = sizeof(*grh) / UCT_DCX_WQE_SEG;
    unsigned i;

    for (i = wqe->ds; i-- > begin;) {
        memcpy(uct_dcx_wqe_seg_at(wqe, i + count), uct_dcx_wqe_seg_at(wqe, i),
               UCT_DCX_WQE_SEG);
    }

    for (i = 0; i < count; ++i) {
        memcpy(uct_dcx_wqe_seg_at(wqe, begin + i),
               (const uint8_t *)grh + (i * UCT_DCX_WQE_SEG), UCT_DCX_WQE_SEG);
    }
    wqe->ds += count;
    wqe->pos = (uint8_t *)uct_dcx_wqe_seg_at(wqe, wqe->ds);
}


UCT_DCX_WQE_F void uct_dcx_wqe_raddr(uct_dcx_wqe_t *wqe, uint64_t remote_addr,
                                     uint32_t rkey)
{
    struct mlx5_wqe_raddr_seg *raddr;

    raddr           = (struct mlx5_wqe_raddr_seg *)uct_dcx_wqe_seg(wqe);
    raddr->raddr    = htobe64(remote_addr);
    raddr->rkey     = htobe32(rkey);
    raddr->reserved = 0;
}


/* Adds a pointer to 1 to 2^31 - 1 bytes: 0 would mean 2 GiB, and the top bit
 * makes a segment inline. */
UCT_DCX_WQE_F void uct_dcx_wqe_data(uct_dcx_wqe_t *wqe, const void *buffer,
                                    uint32_t length, uint32_t lkey)
{
    struct mlx5_wqe_data_seg *data;

    data             = (struct mlx5_wqe_data_seg *)uct_dcx_wqe_seg(wqe);
    data->byte_count = htobe32(length);
    data->lkey       = htobe32(lkey);
    data->addr       = htobe64((uintptr_t)buffer);
}


/* Opens an inline segment of @length bytes, to be put with
 * uct_dcx_wqe_inline_put() and closed with uct_dcx_wqe_inline_end(). */
UCT_DCX_WQE_F void uct_dcx_wqe_inline_begin(uct_dcx_wqe_t *wqe, unsigned length)
{
    struct mlx5_wqe_inl_data_seg *inl;

    uct_dcx_wqe_wrap(wqe);
    inl             = (struct mlx5_wqe_inl_data_seg *)wqe->pos;
    inl->byte_count = htobe32(length | MLX5_INLINE_SEG);
    wqe->pos += UCT_DCX_WQE_INLINE_HDR;
    wqe->ds += (UCT_DCX_WQE_INLINE_HDR + length + UCT_DCX_WQE_SEG - 1) /
               UCT_DCX_WQE_SEG;
}


/* Reserves the next @length bytes of an inline segment, without a test for the
 * end of the ring. All such calls for a segment take at most 12 bytes, or 28 if
 * it follows a compact address. */
UCT_DCX_WQE_F void *uct_dcx_wqe_inline_place(uct_dcx_wqe_t *wqe, size_t length)
{
    void *place = wqe->pos;

    wqe->pos += length;
    return place;
}


/* Copies @data to the place that uct_dcx_wqe_inline_place() returns. */
UCT_DCX_WQE_F void uct_dcx_wqe_inline_head(uct_dcx_wqe_t *wqe, const void *data,
                                           size_t length)
{
    memcpy(uct_dcx_wqe_inline_place(wqe, length), data, length);
}


/* Copies like memcpy(), inlined for the lengths of most headers and short
 * messages. @src may be NULL if @length is 0. */
UCT_DCX_WQE_F void uct_dcx_wqe_copy(uint8_t *dst, const void *src,
                                    size_t length)
{
    const uint8_t *from = (const uint8_t *)src;
    const size_t part   = sizeof(uint64_t);
    uint64_t head, tail;

    if ((length - part) <= part) {
        memcpy(&head, from, part);
        memcpy(&tail, from + length - part, part);
        memcpy(dst, &head, part);
        memcpy(dst + length - part, &tail, part);
    } else if (length > 0) {
        memcpy(dst, from, length);
    }
}


/* Puts inline data across the end of a WQEBB, which may be the ring's. */
UCT_DCX_WQE_F void uct_dcx_wqe_inline_wrap(uct_dcx_wqe_t *wqe, const void *data,
                                           size_t length)
{
    size_t left = uct_dcx_wqe_ring_end(wqe) - wqe->pos;

    if (length < left) {
        memcpy(wqe->pos, data, length);
        wqe->pos += length;
    } else {
        memcpy(wqe->pos, data, left);
        memcpy(wqe->start, (const uint8_t *)data + left, length - left);
        wqe->pos = wqe->start + (length - left);
    }
    /* no room: more data of this segment comes here, too */
    wqe->block = wqe->pos - MLX5_SEND_WQE_BB;
}


UCT_DCX_WQE_F void uct_dcx_wqe_inline_put(uct_dcx_wqe_t *wqe, const void *data,
                                          size_t length)
{
    ptrdiff_t left = wqe->block + MLX5_SEND_WQE_BB - wqe->pos;

    if (__builtin_expect((ptrdiff_t)length <= left, 1)) {
        uct_dcx_wqe_copy(wqe->pos, data, length);
        wqe->pos += length;
    } else {
        uct_dcx_wqe_inline_wrap(wqe, data, length);
    }
}


UCT_DCX_WQE_F void uct_dcx_wqe_inline_end(uct_dcx_wqe_t *wqe)
{
    const uintptr_t mask = UCT_DCX_WQE_SEG - 1;

    /* The ring is aligned to WQEBBs. */
    wqe->pos    = (uint8_t *)(((uintptr_t)wqe->pos + mask) & ~mask);
    wqe->inside = 0;
}


/* Copies the last segment of a WQE from @image: inline, @length bytes with its
 * byte count. It begins in the first WQEBB. @ring_end is the end of the ring.
 * Copies whole WQEBBs, which saves a call of memcpy(): up to 63 bytes more are
 * read and written. */
UCT_DCX_WQE_F void uct_dcx_wqe_inline_image(uct_dcx_wqe_t *wqe,
                                            const uint8_t *ring_end,
                                            const void *image, size_t length)
{
    const uint8_t *from = (const uint8_t *)image;
    const uint8_t *end  = from + length;
    uint8_t *block      = wqe->block;
    size_t left         = block + MLX5_SEND_WQE_BB - wqe->pos;

    wqe->ds = ((wqe->ds * UCT_DCX_WQE_SEG) + length + UCT_DCX_WQE_SEG - 1) /
              UCT_DCX_WQE_SEG;
    memcpy(wqe->pos, from, left);
    for (from += left; from < end; from += MLX5_SEND_WQE_BB) {
        block += MLX5_SEND_WQE_BB;
        if (block == ring_end) {
            block = wqe->start;
        }
        memcpy(block, from, MLX5_SEND_WQE_BB);
    }
}


/* Adds the operands of a 64-bit atomic: @swap_add, to add or to swap in, and
 * @compare. A masked compare-and-swap has a second segment of this kind, with
 * the masks of both. A masked addition has a field boundary in the place of
 * @compare: each bit set there stops the carry. 0 adds the whole operand; all
 * ones add bit by bit, which is XOR. */
UCT_DCX_WQE_F void uct_dcx_wqe_atomic64(uct_dcx_wqe_t *wqe, uint64_t swap_add,
                                        uint64_t compare)
{
    struct mlx5_wqe_atomic_seg *seg;

    seg           = (struct mlx5_wqe_atomic_seg *)uct_dcx_wqe_seg(wqe);
    seg->swap_add = htobe64(swap_add);
    seg->compare  = htobe64(compare);
}


/* Adds the operands of a 32-bit atomic, which is always of the masked kind, in
 * one segment. For an addition @compare is the field boundary, and the masks
 * are 0. */
UCT_DCX_WQE_F void uct_dcx_wqe_atomic32(uct_dcx_wqe_t *wqe, uint32_t swap_add,
                                        uint32_t compare, uint32_t swap_mask,
                                        uint32_t compare_mask)
{
    struct prm_masked_cswap32_seg *seg;

    seg               = (struct prm_masked_cswap32_seg *)uct_dcx_wqe_seg(wqe);
    seg->swap_data    = htobe32(swap_add);
    seg->compare_data = htobe32(compare);
    seg->swap_mask    = htobe32(swap_mask);
    seg->compare_mask = htobe32(compare_mask);
}


/* Returns the WQEBBs (building blocks of 64 bytes) of @ds segments. */
static inline unsigned uct_dcx_wqe_ds_to_bb(unsigned ds)
{
    const unsigned seg         = UCT_DCX_WQE_SEG;
    const unsigned segs_per_bb = MLX5_SEND_WQE_BB / seg;

    return (ds + segs_per_bb - 1) / segs_per_bb;
}


/* Returns the part of a ctrl segment's first eight bytes that all WQEs of a QP
 * have in common, in its byte order. */
static inline uint64_t uct_dcx_wqe_sender(uint32_t qpn)
{
    return htobe64((uint64_t)qpn << 8);
}


/* Returns the last eight bytes of a ctrl segment in its byte order: signature
 * (0), stream, fm_ce_se, immediate (0). */
static inline uint64_t uct_dcx_wqe_flags(uint32_t flags)
{
    return htobe64((uint64_t)flags << 32);
}


/* Writes the ctrl segment. Returns its first eight bytes in its byte order, for
 * the doorbell register. */
UCT_DCX_WQE_F uint64_t uct_dcx_wqe_finish(const uct_dcx_wqe_t *wqe,
                                          const uct_dcx_wqe_ctrl_t *ctrl)
{
    uint32_t what = ((uint32_t)ctrl->opmod << 24) |
                    ((uint32_t)wqe->index << 8) | ctrl->opcode;
    uint64_t head = htobe64(((uint64_t)what << 32) | wqe->ds) | ctrl->sender;
    uint64_t tail = htobe64(((uint64_t)ctrl->flags << 32) | ctrl->imm) |
                    ctrl->carry;

    memcpy(wqe->first, &head, sizeof(head));
    memcpy(wqe->first + sizeof(head), &tail, sizeof(tail));
    return head;
}


/* Writes a ctrl segment that differs from @like, another one with @opcode, only
 * in the index: for a row of WQEs. */
UCT_DCX_WQE_F void uct_dcx_wqe_finish_like(const uct_dcx_wqe_t *wqe,
                                           const struct mlx5_wqe_ctrl_seg *like,
                                           uint8_t opcode)
{
    const uint32_t what = htobe32(((uint32_t)wqe->index << 8) | opcode);

    memcpy(wqe->first, like, sizeof(*like));
    memcpy(wqe->first, &what, sizeof(what));
}

#endif
