/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Lists: puts and gets of many pieces of memory, each with a remote place of
 * its own. Called by UCX that has such operations, and by dcx.c; their contract
 * is in dcx.h.
 *
 * Pieces that are adjacent on the remote side share a WQE, and one that is too
 * long for a WQE has several. All WQEs are written into the free part of the
 * ring first; then one doorbell hands them to the device. So a wrong piece, or
 * a lack of room, changes nothing. Only the last WQE requests a completion, and
 * ends the operation. On a shared initiator each one requests a completion, as
 * recovery needs it.
 */
#include "dcx_list.h"
#include "uct/dcx/base/dcx_figures.h"
#include "uct/dcx/queue/dcx_post.h"
#include "uct/dcx/sched/dcx_tx.h"


/* An operation: the arguments of uct_dcx_ucx_sgl_zcopy_t, and its limits */
typedef struct uct_dcx_list {
    const char *name;
    uct_dcx_ep_t *ep;
    void *const *buffers;
    const size_t *lengths;
    uct_mem_h const *memhs;
    const uint64_t *remote_addrs;
    uct_rkey_t const *rkeys;
    const size_t *counts;
    const size_t *strides;
    size_t count;
    size_t max_length;   /* bytes of a WQE */
    unsigned max_pieces; /* of a WQE */
    uint8_t opcode;
} uct_dcx_list_t;


/* Written WQEs. Their places count on from the producer index, and do not
 * wrap. */
typedef struct uct_dcx_list_wqes {
    struct mlx5_wqe_ctrl_seg ctrl; /* of a WQE with one piece */
    unsigned num_bb;               /* of a WQE with one piece */
    unsigned last;                 /* beginning of the last one */
    unsigned end;                  /* end of the last one */
    unsigned stop;                 /* none may begin behind this */
    size_t length;                 /* bytes of data */
} uct_dcx_list_wqes_t;


/* --- limits and checks ---------------------------------------------------- */

/* Returns the segments of a WQE with one piece: ctrl, address, remote address,
 * data. */
static inline unsigned uct_dcx_list_ds(int has_grh)
{
    return 4 + (has_grh ? sizeof(uct_dcx_grh_t) / UCT_DCX_WQE_SEG : 0);
}


static size_t uct_dcx_list_max(uct_iface_h iface, int has_grh)
{
    const uct_dcx_dci_set_t *set =
        &ucs_derived_of(iface, uct_dcx_queues_t)->dci;
    unsigned num_bb = set->params.num_bb - set->max_bb - UCT_DCX_SQ_SPARE;

    return (num_bb / uct_dcx_wqe_ds_to_bb(uct_dcx_list_ds(has_grh))) + 1;
}


size_t uct_dcx_list_max_any(uct_iface_h iface)
{
    return uct_dcx_list_max(iface, 1);
}


size_t uct_dcx_list_max_ep(uct_ep_h ep)
{
    return uct_dcx_list_max(ep->iface, ucs_derived_of(ep, uct_dcx_ep_t)->flags &
                                           UCT_DCX_EP_FLAG_GRH);
}


/* Returns NULL, or the fault of piece @i, which is not empty, as the end of a
 * sentence. */
static const char *uct_dcx_list_fault(const uct_dcx_list_t *list, size_t i)
{
    uct_dcx_sgl_run_t run = {
        .addr  = ucs_max((uintptr_t)list->buffers[i], list->remote_addrs[i]),
        .bytes = list->lengths[i],
        .count = (list->counts == NULL) ? 1 : list->counts[i],
    };

    if (run.count > 1) {
        if (list->strides == NULL) {
            return "count is above 1, but strides is NULL";
        }
        run.stride = list->strides[i];
    }
    return uct_dcx_sgl_check(&run);
}


/* Handles piece @i, for which the send queue has no room. If the queue is
 * empty, there never will be. */
static ucs_status_t uct_dcx_list_no_room(const uct_dcx_list_t *list, size_t i,
                                         uct_dcx_dci_t *dci)
{
    if (uct_dcx_txq_is_idle(&dci->txq)) {
        ucs_error("%s: piece %zu of %zu does not fit into the send queue: "
                  "divide the list, or increase UCX_DCX_TX_QUEUE_LEN",
                  list->name, i, list->count);
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    uct_dcx_tx_drain(dci);
    return uct_dcx_ep_no_resource(list->ep);
}


/* --- writing -------------------------------------------------------------- */

/* Begins with no WQEs. */
static void uct_dcx_list_begin(uct_dcx_list_wqes_t *wqes,
                               const uct_dcx_list_t *list,
                               const uct_dcx_dci_t *dci)
{
    const uct_dcx_sq_t *sq        = &dci->txq.sq;
    const uct_dcx_ep_t *ep        = list->ep;
    const uct_dcx_wqe_ctrl_t ctrl = {
        .opcode = list->opcode,
        .flags  = (ep->flags & UCT_DCX_EP_FLAG_SHARED) ?
                      UCT_DCX_WQE_STREAM(ep->stream) | MLX5_WQE_CTRL_CQ_UPDATE :
                      0,
        .sender = sq->sender,
    };
    uct_dcx_wqe_t wqe;

    uct_dcx_wqe_begin(&wqe, &wqes->ctrl, 0, 0);
    wqe.ds = uct_dcx_list_ds(ep->flags & UCT_DCX_EP_FLAG_GRH);
    uct_dcx_wqe_finish(&wqe, &ctrl);
    wqes->num_bb = uct_dcx_wqe_ds_to_bb(wqe.ds);
    wqes->end    = sq->pi;
    wqes->stop   = sq->pi + sq->capacity - uct_dcx_sq_used(sq);
    wqes->length = 0;
}


/* Writes a WQE at @index for @length bytes of piece @i, from @offset on. Reads
 * the arrays first, as the compiler must assume that the ring is part of
 * them. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_list_write_one(const uct_dcx_list_t *list, size_t i, size_t offset,
                       size_t length, const uct_dcx_sq_t *sq, unsigned index,
                       const struct mlx5_wqe_ctrl_seg *ctrl, int has_grh)
{
    void *buffer         = UCS_PTR_BYTE_OFFSET(list->buffers[i], offset);
    uint32_t lkey        = uct_dcx_mem_lkey(list->memhs[i]);
    uint64_t remote_addr = list->remote_addrs[i] + offset;
    uint32_t rkey        = list->rkeys[i];
    uct_dcx_wqe_t wqe;

    uct_dcx_wqe_begin(&wqe, sq->start, sq->mask, index);
    uct_dcx_wqe_av(&wqe, &list->ep->av);
    if (has_grh) {
        uct_dcx_wqe_av_grh(&wqe,
                           &ucs_derived_of(list->ep, uct_dcx_grh_ep_t)->grh);
    }
    uct_dcx_wqe_raddr(&wqe, remote_addr, rkey);
    uct_dcx_wqe_data(&wqe, buffer, length, lkey);
    uct_dcx_wqe_finish_like(&wqe, ctrl, list->opcode);
}


/* Adds pieces from @i on to the last WQE, which has piece @i - 1, as long as
 * they follow on the remote side. Returns the next piece. */
static UCS_F_NOINLINE size_t
uct_dcx_list_add_adjacent(const uct_dcx_list_t *op, size_t i,
                          const uct_dcx_sq_t *sq, uct_dcx_list_wqes_t *wqes)
{
    const uct_dcx_list_t list      = *op; /* stays in registers */
    struct mlx5_wqe_ctrl_seg *ctrl = uct_dcx_sq_block(sq, wqes->last);
    unsigned ds     = uct_dcx_list_ds(list.ep->flags & UCT_DCX_EP_FLAG_GRH);
    size_t last     = ucs_min(list.count, i + list.max_pieces - 1);
    uct_rkey_t rkey = list.rkeys[i - 1];
    uint64_t begin  = list.remote_addrs[i - 1];
    uint64_t end    = begin + list.lengths[i - 1];
    uct_dcx_wqe_t wqe;

    uct_dcx_wqe_begin(&wqe, sq->start, sq->mask, wqes->last);
    wqe.pos    = uct_dcx_wqe_seg_at(&wqe, ds);
    wqe.inside = 0;
    wqe.ds     = ds;
    for (; (i < last) && (list.remote_addrs[i] == end) &&
           (list.rkeys[i] == rkey) &&
           (list.lengths[i] - 1 < list.max_length - (end - begin));
         ++i) {
        end += list.lengths[i];
        uct_dcx_wqe_data(&wqe, list.buffers[i], list.lengths[i],
                         uct_dcx_mem_lkey(list.memhs[i]));
    }

    ctrl->qpn_ds += htobe32(wqe.ds - ds);
    wqes->end = wqes->last + uct_dcx_wqe_ds_to_bb(wqe.ds);
    wqes->length += (end - begin) - list.lengths[i - 1];
    return i;
}


/* Writes the WQEs of the block of piece @i that begins at @offset. */
static ucs_status_t uct_dcx_list_write_block(const uct_dcx_list_t *list,
                                             size_t i, size_t offset,
                                             uct_dcx_dci_t *dci,
                                             uct_dcx_list_wqes_t *wqes)
{
    size_t rest = list->lengths[i];
    size_t length;

    for (; rest > 0; rest -= length) {
        if (wqes->end > wqes->stop) {
            return uct_dcx_list_no_room(list, i, dci);
        }

        length = ucs_min(rest, list->max_length);
        uct_dcx_list_write_one(list, i, offset, length, &dci->txq.sq, wqes->end,
                               &wqes->ctrl,
                               list->ep->flags & UCT_DCX_EP_FLAG_GRH);
        wqes->last = wqes->end;
        wqes->end += wqes->num_bb;
        wqes->length += length;
        offset += length;
    }
    return UCS_OK;
}


/* Writes the WQEs of piece @i, which is not a single block of a single WQE, or
 * wrong. Returns an error, which is logged if it is wrong. */
static UCS_F_NOINLINE ucs_status_t
uct_dcx_list_write_blocks(const uct_dcx_list_t *list, size_t i,
                          uct_dcx_dci_t *dci, uct_dcx_list_wqes_t *wqes)
{
    size_t blocks       = (list->counts == NULL) ? 1 : list->counts[i];
    ucs_status_t status = UCS_OK;
    size_t offset       = 0;
    const char *fault;

    if ((blocks == 0) || (list->lengths[i] == 0)) {
        return UCS_OK;
    }

    fault = uct_dcx_list_fault(list, i);
    if (fault != NULL) {
        ucs_error("%s: piece %zu of %zu (buffer %p, length %zu, remote address "
                  "0x%" PRIx64 "): %s",
                  list->name, i, list->count, list->buffers[i],
                  list->lengths[i], list->remote_addrs[i], fault);
        return UCS_ERR_INVALID_PARAM;
    }

    for (; (blocks > 0) && (status == UCS_OK); --blocks) {
        status = uct_dcx_list_write_block(list, i, offset, dci, wqes);
        offset += (blocks > 1) ? list->strides[i] : 0;
    }
    return status;
}


/* Returns 1 if piece @i is a single block of a single WQE, and not empty. The
 * device checks its addresses. */
static UCS_F_ALWAYS_INLINE int uct_dcx_list_is_plain(const uct_dcx_list_t *list,
                                                     size_t i)
{
    return (list->lengths[i] - 1 < list->max_length) &&
           ((list->counts == NULL) || (list->counts[i] == 1));
}


/* Writes a WQE for piece @i, which is plain, and for those behind it as long as
 * they are plain, and there is room. Stops where a WQE has more than one piece.
 * Returns the next piece. */
static UCS_F_ALWAYS_INLINE size_t uct_dcx_list_write_plain(
    const uct_dcx_list_t *op, size_t i, const uct_dcx_sq_t *sq,
    uct_dcx_list_wqes_t *wqes, int has_grh)
{
    const uct_dcx_list_t list = *op; /* these stay in registers */
    uct_dcx_list_wqes_t to    = *wqes;
    size_t stop               = (list.counts == NULL) ? list.count : i + 1;
    uint64_t end;

    do {
        end = list.remote_addrs[i] + list.lengths[i];
        to.length += list.lengths[i];
        uct_dcx_list_write_one(&list, i, 0, list.lengths[i], sq, to.end,
                               &to.ctrl, has_grh);
        to.end += uct_dcx_wqe_ds_to_bb(uct_dcx_list_ds(has_grh));
        ++i;
    } while ((i < stop) && (list.remote_addrs[i] != end) &&
             (list.lengths[i] - 1 < list.max_length) && (to.end <= to.stop));

    to.last = to.end - to.num_bb;
    *wqes   = to;
    return ((i < stop) && (list.remote_addrs[i] == end)) ?
               uct_dcx_list_add_adjacent(op, i, sq, wqes) :
               i;
}


static UCS_F_NOINLINE size_t
uct_dcx_list_write_local(const uct_dcx_list_t *list, size_t i,
                         const uct_dcx_sq_t *sq, uct_dcx_list_wqes_t *wqes)
{
    return uct_dcx_list_write_plain(list, i, sq, wqes, 0);
}


static UCS_F_NOINLINE size_t
uct_dcx_list_write_global(const uct_dcx_list_t *list, size_t i,
                          const uct_dcx_sq_t *sq, uct_dcx_list_wqes_t *wqes)
{
    return uct_dcx_list_write_plain(list, i, sq, wqes, 1);
}


/* Writes WQEs for all pieces that are not empty. Returns UCS_OK, or the error
 * of the first piece that is wrong, or for which there is no room. */
static ucs_status_t uct_dcx_list_write(const uct_dcx_list_t *list,
                                       uct_dcx_dci_t *dci,
                                       uct_dcx_list_wqes_t *wqes)
{
    ucs_status_t status = UCS_OK;
    size_t i            = 0;

    while ((i < list->count) && (status == UCS_OK)) {
        if (!uct_dcx_list_is_plain(list, i)) {
            status = uct_dcx_list_write_blocks(list, i++, dci, wqes);
        } else if (wqes->end > wqes->stop) {
            status = uct_dcx_list_no_room(list, i, dci);
        } else {
            i = (list->ep->flags & UCT_DCX_EP_FLAG_GRH) ?
                    uct_dcx_list_write_global(list, i, &dci->txq.sq, wqes) :
                    uct_dcx_list_write_local(list, i, &dci->txq.sq, wqes);
        }
    }
    return status;
}


/* --- posting -------------------------------------------------------------- */

/* Makes @ep the owner of the written WQEs on a shared initiator. Returns the
 * bits that its stream adds to the first one. */
static uint64_t uct_dcx_list_share(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci,
                                   const uct_dcx_list_wqes_t *wqes)
{
    const uct_dcx_sq_t *sq = &dci->txq.sq;
    uint64_t carry         = uct_dcx_wqe_flags(dci->streams[ep->stream]);
    const struct mlx5_wqe_ctrl_seg *ctrl;
    unsigned index = sq->pi;

    while (index != wqes->end) {
        dci->eps[index & sq->mask] = ep;
        ctrl                       = uct_dcx_sq_block(sq, index);
        index += uct_dcx_wqe_ds_to_bb(be32toh(ctrl->qpn_ds) & 0x3f);
    }
    dci->streams[ep->stream] = UCT_DCX_WQE_STREAM(ep->stream);
    ep->last                 = wqes->last;
    return carry;
}


/* Posts the written WQEs. */
static void uct_dcx_list_post(const uct_dcx_list_t *list, uct_dcx_dci_t *dci,
                              const uct_dcx_list_wqes_t *wqes,
                              uct_completion_t *comp)
{
    const uct_dcx_post_t tx = {.done = uct_dcx_post_done_comp, .comp = comp};
    uct_dcx_sq_t *sq        = &dci->txq.sq;
    uint64_t *first         = uct_dcx_sq_block(sq, sq->pi);
    uint64_t *last          = uct_dcx_sq_block(sq, wqes->last);
    const uint64_t signal   = uct_dcx_wqe_flags(MLX5_WQE_CTRL_CQ_UPDATE);

    ucs_trace_data("TX: DCI 0x%x [%u] to [%u]: %s of %zu pieces, len %zu",
                   sq->qpn, sq->pi, (uint16_t)wqes->last, list->name,
                   list->count, wqes->length);
    first[1] |= (list->ep->flags & UCT_DCX_EP_FLAG_SHARED) ?
                    uct_dcx_list_share(list->ep, dci, wqes) :
                    (sq->carry & ~signal);
    last[1] |= signal;
    uct_dcx_txq_add(&dci->txq, wqes->last, &tx);
    sq->signaled = wqes->last;
    sq->carry    = 0;
    uct_dcx_sq_ring(sq, wqes->last, wqes->end - wqes->last, last[0]);
}


static ucs_status_t uct_dcx_list_run(const uct_dcx_list_t *list,
                                     uct_completion_t *comp)
{
    uct_dcx_ep_t *ep       = list->ep;
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);
    uct_dcx_list_wqes_t wqes;
    uct_dcx_dci_t *dci;
    ucs_status_t status;

    if (list->count == 0) {
        return UCS_OK;
    }

    dci = uct_dcx_tx_get(set, ep);
    if (dci == NULL) {
        return uct_dcx_ep_no_resource(ep);
    }

    uct_dcx_list_begin(&wqes, list, dci);
    status = uct_dcx_list_write(list, dci, &wqes);
    if ((status != UCS_OK) || (wqes.length == 0)) {
        uct_dcx_tx_release(set, dci); /* if nothing is outstanding */
        return status;
    }

    uct_dcx_list_post(list, dci, &wqes, comp);
    if (list->opcode == MLX5_OPCODE_RDMA_READ) {
        UCT_TL_EP_STAT_OP(&ep->super, GET, ZCOPY, wqes.length);
        uct_dcx_figures_add_op(UCT_DCX_OP_GET_LIST, wqes.length);
    } else {
        UCT_TL_EP_STAT_OP(&ep->super, PUT, ZCOPY, wqes.length);
        uct_dcx_figures_add_op(UCT_DCX_OP_PUT_LIST, wqes.length);
    }
    return UCS_INPROGRESS;
}


static UCS_F_ALWAYS_INLINE ucs_status_t uct_dcx_list_zcopy(
    const char *name, uint8_t opcode, uct_ep_h ep, void *const *buffers,
    const size_t *lengths, uct_mem_h const *memhs, const uint64_t *remote_addrs,
    uct_rkey_t const *rkeys, const size_t *counts, const size_t *strides,
    size_t count, uct_completion_t *comp)
{
    const uct_dcx_limits_t *limits =
        &ucs_derived_of(ep->iface, uct_dcx_queues_t)->limits;
    const uct_dcx_list_t list = {
        .name         = name,
        .ep           = ucs_derived_of(ep, uct_dcx_ep_t),
        .buffers      = buffers,
        .lengths      = lengths,
        .memhs        = memhs,
        .remote_addrs = remote_addrs,
        .rkeys        = rkeys,
        .counts       = counts,
        .strides      = strides,
        .count        = count,
        .max_length   = limits->rma_zcopy,
        .max_pieces   = (opcode == MLX5_OPCODE_RDMA_READ) ? limits->get_iov :
                                                            limits->rma_iov,
        .opcode       = opcode,
    };

    return uct_dcx_list_run(&list, comp);
}


ucs_status_t
uct_dcx_ep_put_sgl_zcopy(uct_ep_h ep, void *const *buffers,
                         const size_t *lengths, uct_mem_h const *memhs,
                         const uint64_t *remote_addrs, uct_rkey_t const *rkeys,
                         const size_t *counts, const size_t *strides,
                         size_t count, uct_completion_t *comp)
{
    return uct_dcx_list_zcopy("put_sgl_zcopy", MLX5_OPCODE_RDMA_WRITE, ep,
                              buffers, lengths, memhs, remote_addrs, rkeys,
                              counts, strides, count, comp);
}


ucs_status_t
uct_dcx_ep_get_sgl_zcopy(uct_ep_h ep, void *const *buffers,
                         const size_t *lengths, uct_mem_h const *memhs,
                         const uint64_t *remote_addrs, uct_rkey_t const *rkeys,
                         const size_t *counts, const size_t *strides,
                         size_t count, uct_completion_t *comp)
{
    return uct_dcx_list_zcopy("get_sgl_zcopy", MLX5_OPCODE_RDMA_READ, ep,
                              buffers, lengths, memhs, remote_addrs, rkeys,
                              counts, strides, count, comp);
}
