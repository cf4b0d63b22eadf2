/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receive queues in umems. WQEs form a linked list, or a ring (wq_type cyclic);
 * in both, a WQE begins with the segment that has the index of the next one.
 */
#define _GNU_SOURCE
#include "devx_wq.h"
#include "softhca/fabric/hca_caps.h"

/* wq */
#define WQ_DBR_ADDR    DEVX_QWORD(0x10)
#define WQ_LOG_STRIDE  DEVX_BITS(0x20, 19, 16)
#define WQ_LOG_SIZE    DEVX_BITS(0x20, 4, 0)
#define WQ_NUM_STRIDES DEVX_BITS(0x24, 11, 8)
#define WQ_STRIDE_SIZE DEVX_BITS(0x24, 2, 0)
#define WQ_DBR_UMEM    DEVX_WORD(0x28)
#define WQ_UMEM        DEVX_WORD(0x2c)

/* Strides of a WQE: log2 of their number is a base plus a signed field (HCA
 * capability ext_stride_num_range), and at least WQ_NUM_STRIDES_MIN; log2 of
 * their size is a base plus an unsigned field (the kernel's
 * hw/mlx5/mlx5_ib.h, MLX5_EXT_MIN_SINGLE_WQE_LOG_NUM_STRIDES and others). */
#define WQ_NUM_STRIDES_BITS 4
#define WQ_NUM_STRIDES_BASE 9
#define WQ_NUM_STRIDES_MIN  3
#define WQ_STRIDE_SIZE_BASE 6

/* The *_umem_valid bits are ignored, as the kernel sets them; so is
 * end_padding_mode. Signatures are not supported. */
static const struct devx_field devx_wq_fields[] = {
    {"wq_type", WQ_TYPE, WQ_TYPE_CYCLIC_STRIDES},
    {"end_padding_mode", DEVX_BITS(0x00, 26, 25), 1},
    {"lwm", WQ_LWM, DEVX_ANY},
    {"pd", WQ_PD, DEVX_ANY},
    {"uar_page", DEVX_BITS(0x0c, 23, 0), DEVX_ANY},
    {"dbr_addr", WQ_DBR_ADDR, DEVX_ANY},
    {"log_wq_stride", WQ_LOG_STRIDE, 9}, /* UVERBS_MAX_RQ_DESC */
    {"log_wq_pg_sz", DEVX_BITS(0x20, 12, 8), DEVX_ANY},
    {"log_wq_sz", WQ_LOG_SIZE, 15}, /* UVERBS_MAX_WR */
    {"dbr_umem_valid", DEVX_BITS(0x24, 31, 31), 1},
    {"wq_umem_valid", DEVX_BITS(0x24, 30, 30), 1},
    {"log_wqe_num_of_strides", WQ_NUM_STRIDES, DEVX_ANY},
    {"log_wqe_stride_size", WQ_STRIDE_SIZE, DEVX_ANY},
    {"dbr_umem_id", WQ_DBR_UMEM, DEVX_ANY},
    {"wq_umem_id", WQ_UMEM, DEVX_ANY},
    {NULL, 0, 0},
};

static bool devx_wq_has_strides(const uint8_t *wq)
{
    return devx_get(wq, WQ_TYPE) >= WQ_TYPE_LIST_STRIDES;
}

static int devx_wq_log_strides(const uint8_t *wq)
{
    int value = devx_get(wq, WQ_NUM_STRIDES);

    if (value >> (WQ_NUM_STRIDES_BITS - 1)) {
        value -= 1 << WQ_NUM_STRIDES_BITS;
    }
    return WQ_NUM_STRIDES_BASE + value;
}

/* Checks the fields of strides, which must be 0 in a queue without strides. */
static enum devx_status devx_wq_check_strides(struct devx_call *call,
                                              size_t base)
{
    const uint8_t *wq = call->in + base;
    uint64_t number   = devx_get(wq, WQ_NUM_STRIDES);
    uint64_t size     = devx_get(wq, WQ_STRIDE_SIZE);

    if (!devx_wq_has_strides(wq)) {
        return ((number | size) == 0) ?
                   DEVX_OK :
                   devx_refuse(call, DEVX_BAD_PARAM, base + 0x24,
                               "strides, of a wq without,", number | size);
    }
    if (hca_lacks(HCA_LACK_STRIDES)) {
        return devx_refuse(call, DEVX_BAD_PARAM, base,
                           "wq_type, without strides,", devx_get(wq, WQ_TYPE));
    }
    return (devx_wq_log_strides(wq) >= WQ_NUM_STRIDES_MIN) ?
               DEVX_OK :
               devx_refuse(call, DEVX_BAD_PARAM, base + 0x24,
                           "wq log_wqe_num_of_strides", number);
}

enum devx_status devx_wq_check(struct devx_call *call, size_t base)
{
    uint64_t log_stride = devx_get(call->in + base, WQ_LOG_STRIDE);
    enum devx_status status;

    status = devx_check(call, base, DEVX_WQ_SIZE, devx_wq_fields);
    if (status == DEVX_OK) {
        status = devx_wq_check_strides(call, base);
    }
    if ((status == DEVX_OK) && (log_stride < 5)) { /* two segments at least */
        return devx_refuse(call, DEVX_BAD_PARAM, base + 0x20,
                           "wq log_wq_stride", log_stride);
    }
    return status;
}

enum devx_status devx_wq_fill(struct devx_call *call, size_t base,
                              struct hca_srq_spec *spec)
{
    const uint8_t *wq         = call->in + base;
    struct devx_umem_use ring = {
        .id    = devx_get(wq, WQ_UMEM),
        .size  = (size_t)1 << (devx_get(wq, WQ_LOG_SIZE) +
                              devx_get(wq, WQ_LOG_STRIDE)),
        .field = base + 0x2c,
    };
    struct devx_umem_use dbr = {
        .id     = devx_get(wq, WQ_DBR_UMEM),
        .offset = devx_get(wq, WQ_DBR_ADDR),
        .field  = base + 0x28,
    };
    enum devx_status status = devx_find_ring(call, &ring, &dbr);

    spec->ring.buf        = ring.off;
    spec->ring.log_cnt    = devx_get(wq, WQ_LOG_SIZE);
    spec->ring.log_stride = devx_get(wq, WQ_LOG_STRIDE);
    spec->dbrec           = dbr.off;
    spec->limit           = devx_get(wq, WQ_LWM);
    spec->is_cyclic       = (devx_get(wq, WQ_TYPE) & WQ_TYPE_CYCLIC) != 0;
    if (devx_wq_has_strides(wq)) {
        spec->num_strides = 1u << devx_wq_log_strides(wq);
        spec->log_stride  = WQ_STRIDE_SIZE_BASE + devx_get(wq, WQ_STRIDE_SIZE);
    }
    return status;
}

static void devx_wq_put_strides(uint8_t *wq, const struct hca_srq *hw)
{
    int log_number = __builtin_ctz(hw->strides.number) - WQ_NUM_STRIDES_BASE;

    devx_set(wq, WQ_NUM_STRIDES,
             log_number & ((1u << WQ_NUM_STRIDES_BITS) - 1));
    devx_set(wq, WQ_STRIDE_SIZE, hw->strides.log_size - WQ_STRIDE_SIZE_BASE);
}

void devx_wq_put(uint8_t *wq, const struct hca_srq *hw)
{
    bool has_strides = (hw->strides.number != 0);

    devx_set(wq, WQ_TYPE,
             (has_strides ? WQ_TYPE_LIST_STRIDES : WQ_TYPE_LIST) |
                 (hw->is_cyclic ? WQ_TYPE_CYCLIC : 0));
    devx_set(wq, WQ_PD, hw->pdn);
    devx_set(wq, WQ_LWM, hw->limit);
    devx_set(wq, WQ_LOG_STRIDE, hw->ring.log_stride);
    devx_set(wq, WQ_LOG_SIZE, hw->ring.log_cnt);
    if (has_strides) {
        devx_wq_put_strides(wq, hw);
    }
}

static int devx_srq_release(struct devx_obj *obj)
{
    uint32_t events;

    return hca_srq_destroy(obj->hw, &events);
}

enum devx_status devx_srq_make(struct devx_call *call,
                               const struct hca_srq_spec *spec)
{
    struct hca_srq *hw;

    if (hca_srq_create(spec, &hw) != 0) {
        return DEVX_NO_RES;
    }
    call->obj->hw      = hw;
    call->obj->number  = hw->obj.num;
    call->obj->release = devx_srq_release;
    return DEVX_OK;
}
