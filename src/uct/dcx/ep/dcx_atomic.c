/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Remote atomics. Called by UCT in the interface's thread. 64-bit ADD and CSWAP
 * are those of the InfiniBand specification. All others are extended atomics,
 * with masks: AND, OR and SWAP are compare-and-swaps that compare nothing and
 * swap some bits; XOR is an addition without carry. The device always returns
 * the old value, in memory of the operation; it is passed on when the WQE
 * completes.
 */
#include "dcx_atomic.h"
#include "dcx_ep.h"
#include "uct/dcx/queue/dcx_post.h"


#define UCT_DCX_ATOMIC_POST_OPS \
    (UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) | \
     UCS_BIT(UCT_ATOMIC_OP_OR) | UCS_BIT(UCT_ATOMIC_OP_XOR))
#define UCT_DCX_ATOMIC_FETCH_OPS \
    (UCT_DCX_ATOMIC_POST_OPS | UCS_BIT(UCT_ATOMIC_OP_SWAP))


/* An atomic, in the same form for all of UCT's entry points */
typedef struct uct_dcx_atomic {
    uct_atomic_op_t op;
    unsigned size; /* of the operand: 4 or 8 */
    uint64_t value;
    uint64_t compare; /* CSWAP */
    uint64_t remote_addr;
    uct_rkey_t rkey;
    void *result; /* NULL: not requested */
    uct_completion_t *comp;
} uct_dcx_atomic_t;


void uct_dcx_atomic_query(const uct_dcx_device_t *dev, uct_iface_attr_t *attr)
{
    const uct_dcx_atomic_caps_t *caps = &dev->atomic;

    if (caps->std & sizeof(uint64_t)) {
        attr->cap.atomic64.op_flags |= UCS_BIT(UCT_ATOMIC_OP_ADD);
        attr->cap.atomic64.fop_flags |= UCS_BIT(UCT_ATOMIC_OP_ADD) |
                                        UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    }

    if (caps->ext & sizeof(uint64_t)) {
        attr->cap.atomic64.op_flags |= UCT_DCX_ATOMIC_POST_OPS &
                                       ~UCS_BIT(UCT_ATOMIC_OP_ADD);
        attr->cap.atomic64.fop_flags |= UCT_DCX_ATOMIC_FETCH_OPS &
                                        ~UCS_BIT(UCT_ATOMIC_OP_ADD);
    }

    if (caps->ext & sizeof(uint32_t)) {
        attr->cap.atomic32.op_flags |= UCT_DCX_ATOMIC_POST_OPS;
        attr->cap.atomic32.fop_flags |= UCT_DCX_ATOMIC_FETCH_OPS |
                                        UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    }

    if ((caps->std | caps->ext) != 0) {
        attr->cap.flags |= UCT_IFACE_FLAG_ATOMIC_DEVICE;
    }
}


static UCS_F_ALWAYS_INLINE int
uct_dcx_atomic_is_std(const uct_dcx_atomic_t *atomic)
{
    return (atomic->size == sizeof(uint64_t)) &&
           ((atomic->op == UCT_ATOMIC_OP_ADD) ||
            (atomic->op == UCT_ATOMIC_OP_CSWAP));
}


/* Adds the segments of AND, OR, SWAP, and CSWAP of 32 bits. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_atomic_put_cswap(uct_dcx_wqe_t *wqe, const uct_dcx_atomic_t *atomic)
{
    uint64_t swap_mask    = (atomic->op == UCT_ATOMIC_OP_AND) ? ~atomic->value :
                            (atomic->op == UCT_ATOMIC_OP_OR)  ? atomic->value :
                                                                UINT64_MAX;
    uint64_t compare_mask = (atomic->op == UCT_ATOMIC_OP_CSWAP) ? UINT64_MAX :
                                                                  0;

    if (atomic->size == sizeof(uint64_t)) {
        uct_dcx_wqe_atomic64(wqe, atomic->value, atomic->compare);
        uct_dcx_wqe_atomic64(wqe, swap_mask, compare_mask);
    } else {
        uct_dcx_wqe_atomic32(wqe, atomic->value, atomic->compare, swap_mask,
                             compare_mask);
    }
}


/* Adds the segments of ADD of 32 bits, and XOR. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_atomic_put_fadd(uct_dcx_wqe_t *wqe, const uct_dcx_atomic_t *atomic)
{
    uint64_t boundary = (atomic->op == UCT_ATOMIC_OP_XOR) ? UINT64_MAX : 0;

    if (atomic->size == sizeof(uint64_t)) {
        uct_dcx_wqe_atomic64(wqe, atomic->value, boundary);
    } else {
        uct_dcx_wqe_atomic32(wqe, atomic->value, boundary, 0, 0);
    }
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_atomic_put(uct_dcx_wqe_t *wqe, uct_dcx_post_t *tx,
                   const uct_dcx_atomic_t *atomic)
{
    if (uct_dcx_atomic_is_std(atomic)) {
        tx->opcode = (atomic->op == UCT_ATOMIC_OP_ADD) ? MLX5_OPCODE_ATOMIC_FA :
                                                         MLX5_OPCODE_ATOMIC_CS;
        uct_dcx_wqe_atomic64(wqe, atomic->value, atomic->compare);
        return;
    }

    tx->opmod = PRM_OPMOD_EXT_ATOMIC(atomic->size == sizeof(uint64_t) ? 3 : 2);
    if ((atomic->op == UCT_ATOMIC_OP_ADD) ||
        (atomic->op == UCT_ATOMIC_OP_XOR)) {
        tx->opcode = MLX5_OPCODE_ATOMIC_MASKED_FA;
        uct_dcx_atomic_put_fadd(wqe, atomic);
    } else {
        tx->opcode = MLX5_OPCODE_ATOMIC_MASKED_CS;
        uct_dcx_atomic_put_cswap(wqe, atomic);
    }
}


/* Returns the old value, as the device wrote it. @txq is the operation's
 * queue. */
static UCS_F_ALWAYS_INLINE const void *
uct_dcx_atomic_landed(uct_dcx_txq_t *txq, const uct_dcx_slot_t *slot)
{
    return &ucs_container_of(txq, uct_dcx_dci_t, txq)->results[slot->result];
}


/* Passes the old value to the user. A failed operation has none; its @txq may
 * be NULL. */
static void uct_dcx_atomic_done64(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                                  ucs_status_t status)
{
    if (ucs_likely(status == UCS_OK)) {
        *(uint64_t *)slot->buffer =
            *(const uint64_t *)uct_dcx_atomic_landed(txq, slot);
    }
    uct_dcx_post_done_comp(txq, slot, status);
}


static void uct_dcx_atomic_done64_be(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                                     ucs_status_t status)
{
    if (ucs_likely(status == UCS_OK)) {
        *(uint64_t *)slot->buffer =
            be64toh(*(const uint64_t *)uct_dcx_atomic_landed(txq, slot));
    }
    uct_dcx_post_done_comp(txq, slot, status);
}


static void uct_dcx_atomic_done32(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                                  ucs_status_t status)
{
    if (ucs_likely(status == UCS_OK)) {
        *(uint32_t *)slot->buffer =
            be32toh(*(const uint32_t *)uct_dcx_atomic_landed(txq, slot));
    }
    uct_dcx_post_done_comp(txq, slot, status);
}


static UCS_F_ALWAYS_INLINE ucs_status_t
uct_dcx_atomic(uct_ep_h tl_ep, const uct_dcx_atomic_t *atomic)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_post_t tx        = {.comp = atomic->comp, .buffer = atomic->result};
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;
    unsigned result;

    dci = uct_dcx_tx_get(&queues->dci, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_ep_no_resource(ep);
    }

    result = dci->txq.sq.mask + 1; /* a place for results that are not read */
    if (atomic->result != NULL) {
        result   = uct_dcx_txq_slot(&dci->txq, dci->txq.tail)->result;
        tx.done  = (atomic->size == sizeof(uint32_t)) ? uct_dcx_atomic_done32 :
                   queues->port.dev->atomic.be64 ? uct_dcx_atomic_done64_be :
                                                   uct_dcx_atomic_done64;
        tx.flags = MLX5_WQE_CTRL_CQ_UPDATE;
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_raddr(&wqe, atomic->remote_addr, atomic->rkey);
    uct_dcx_atomic_put(&wqe, &tx, atomic);
    uct_dcx_wqe_data(&wqe, &dci->results[result], atomic->size,
                     dci->results_lkey);
    uct_dcx_post_end(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_ATOMIC(&ep->super);
    return (atomic->result != NULL) ? UCS_INPROGRESS : UCS_OK;
}


static UCS_F_ALWAYS_INLINE ucs_status_t uct_dcx_atomic_cswap(
    uct_ep_h ep, unsigned size, uint64_t compare, uint64_t swap,
    uint64_t remote_addr, uct_rkey_t rkey, void *result, uct_completion_t *comp)
{
    uct_dcx_atomic_t atomic = {
        .op          = UCT_ATOMIC_OP_CSWAP,
        .size        = size,
        .value       = swap,
        .compare     = compare,
        .remote_addr = remote_addr,
        .rkey        = rkey,
        .result      = result,
        .comp        = comp,
    };

    return uct_dcx_atomic(ep, &atomic);
}


/* Posts an atomic with one operand. The old value is not fetched if @result is
 * NULL. */
static UCS_F_ALWAYS_INLINE ucs_status_t uct_dcx_atomic_update(
    uct_ep_h ep, uct_atomic_op_t op, unsigned size, uint64_t value,
    uint64_t remote_addr, uct_rkey_t rkey, void *result, uct_completion_t *comp)
{
    uint64_t allowed        = (result == NULL) ? UCT_DCX_ATOMIC_POST_OPS :
                                                 UCT_DCX_ATOMIC_FETCH_OPS;
    uct_dcx_atomic_t atomic = {
        .op          = op,
        .size        = size,
        .value       = value,
        .remote_addr = remote_addr,
        .rkey        = rkey,
        .result      = result,
        .comp        = comp,
    };

    if (ucs_unlikely(!(UCS_BIT(op) & allowed))) {
        return UCS_ERR_UNSUPPORTED;
    }
    return uct_dcx_atomic(ep, &atomic);
}


ucs_status_t uct_dcx_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare,
                                       uint64_t swap, uint64_t remote_addr,
                                       uct_rkey_t rkey, uint64_t *result,
                                       uct_completion_t *comp)
{
    return uct_dcx_atomic_cswap(ep, sizeof(swap), compare, swap, remote_addr,
                                rkey, result, comp);
}


ucs_status_t uct_dcx_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare,
                                       uint32_t swap, uint64_t remote_addr,
                                       uct_rkey_t rkey, uint32_t *result,
                                       uct_completion_t *comp)
{
    return uct_dcx_atomic_cswap(ep, sizeof(swap), compare, swap, remote_addr,
                                rkey, result, comp);
}


ucs_status_t uct_dcx_ep_atomic64_post(uct_ep_h ep, uct_atomic_op_t opcode,
                                      uint64_t value, uint64_t remote_addr,
                                      uct_rkey_t rkey)
{
    return uct_dcx_atomic_update(ep, opcode, sizeof(value), value, remote_addr,
                                 rkey, NULL, NULL);
}


ucs_status_t uct_dcx_ep_atomic32_post(uct_ep_h ep, uct_atomic_op_t opcode,
                                      uint32_t value, uint64_t remote_addr,
                                      uct_rkey_t rkey)
{
    return uct_dcx_atomic_update(ep, opcode, sizeof(value), value, remote_addr,
                                 rkey, NULL, NULL);
}


ucs_status_t uct_dcx_ep_atomic64_fetch(uct_ep_h ep, uct_atomic_op_t opcode,
                                       uint64_t value, uint64_t *result,
                                       uint64_t remote_addr, uct_rkey_t rkey,
                                       uct_completion_t *comp)
{
    return uct_dcx_atomic_update(ep, opcode, sizeof(value), value, remote_addr,
                                 rkey, result, comp);
}


ucs_status_t uct_dcx_ep_atomic32_fetch(uct_ep_h ep, uct_atomic_op_t opcode,
                                       uint32_t value, uint32_t *result,
                                       uint64_t remote_addr, uct_rkey_t rkey,
                                       uct_completion_t *comp)
{
    return uct_dcx_atomic_update(ep, opcode, sizeof(value), value, remote_addr,
                                 rkey, result, comp);
}
