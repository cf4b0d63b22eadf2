/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * QUERY_HCA_CAP, which has a page of capabilities for each op_mod, QUERY_LAG
 * and QUERY_HCA_VPORT_CONTEXT. devx_caps[] has a row for each capability;
 * without a row it is 0. Layouts: mlx5_ifc.h (cmd_hca_cap, cmd_hca_cap_2,
 * atomic_caps, roce_cap, odp_cap, device_mem_cap, lagc, hca_vport_context); for
 * strides, mlx5_ifc.h of MLNX_OFED (ib_striding_wq) and of UCX.
 */
#define _GNU_SOURCE
#include "devx.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/obj/hca_cq_mini.h"
#include "softhca/obj/hca_mkey.h"
#include "softhca/exec/hca_order.h"
#include "softhca/wqe/hca_wqe.h"
#include "softhca/uverbs/uverbs_dm.h"
#include "softhca/uverbs/uverbs_qp.h"
#include "softhca/uverbs/uverbs_srq.h"

#include <endian.h>

/* op_mod: bits 15..1 are the page (enum mlx5_cap_type of the kernel), bit 0
 * asks for the current values instead of the largest, which are the same here.
 * All other pages, as those of steering and offloads, are 0. */
enum devx_page {
    DEVX_PAGE_GENERAL = PRM_CAP_GENERAL,
    DEVX_PAGE_ODP     = 0x02,
    DEVX_PAGE_ATOMIC  = PRM_CAP_ATOMIC,
    DEVX_PAGE_ROCE    = 0x04,
    DEVX_PAGE_DEV_MEM = 0x0f,
    DEVX_PAGE_MORE    = 0x20, /* cmd_hca_cap_2 */
    DEVX_LAST_PAGE    = 0x3f
};

#define DEVX_PAGE_AT offsetof(struct prm_query_hca_cap_out, cap)

/* Conditions for a capability */
enum devx_where {
    DEVX_ON_ALL,
    DEVX_ON_IB,
    DEVX_ON_ROCE,
    DEVX_ON_BOND,
    DEVX_ON_BOND_DC,
    DEVX_ON_DC,
    DEVX_ON_TM,
    DEVX_ON_STRIDES,
    DEVX_ON_DC_TM,
    DEVX_ON_OOO,
    DEVX_ON_RELAXED,

    /* with an enum hca_lack: the device has this feature, or lacks it */
    DEVX_ON_HAVE = 0x40,
    DEVX_ON_LACK = 0x80,
    DEVX_ON_WHAT = 0x3f
};

struct devx_cap {
    uint8_t page;
    uint8_t where; /* enum devx_where */
    uint32_t bits;
    uint32_t value;
};

/* clang-format off */
#define CAP(_page, _offset, _high, _low, _value) \
    {DEVX_PAGE_##_page, DEVX_ON_ALL, DEVX_BITS(_offset, _high, _low), _value}
#define CAP_ON(_where, _page, _offset, _high, _low, _value) \
    {DEVX_PAGE_##_page, DEVX_ON_##_where, DEVX_BITS(_offset, _high, _low), \
     _value}

/* A single bit, on devices that have or lack the feature */
#define CAP_HAVE(_lack, _page, _offset, _bit, _value) \
    {DEVX_PAGE_##_page, DEVX_ON_HAVE | HCA_LACK_##_lack, \
     DEVX_BITS(_offset, _bit, _bit), _value}
#define CAP_LACK(_lack, _page, _offset, _bit, _value) \
    {DEVX_PAGE_##_page, DEVX_ON_LACK | HCA_LACK_##_lack, \
     DEVX_BITS(_offset, _bit, _bit), _value}

/* CAP_BIT: a bit of the general page, PRM_HCA_CAP_*. CAP_ATOMIC: a member of
 * the page of atomics, which is the lower half of its word. CAP_DM: bits of the
 * page of device memory. */
#define CAP_BIT(_bit) \
    CAP(GENERAL, (_bit) / 32 * 4, 31 - (_bit) % 32, 31 - (_bit) % 32, 1)
#define CAP_ATOMIC(_member, _value) \
    {DEVX_PAGE_ATOMIC, DEVX_ON_HAVE | HCA_LACK_ATOMICS, \
     DEVX_BITS(offsetof(struct prm_atomic_caps, _member) & ~3u, 15, 0), _value}
#define CAP_DM(_offset, _high, _low, _value) \
    {DEVX_PAGE_DEV_MEM, DEVX_ON_HAVE | HCA_LACK_DM, \
     DEVX_BITS(_offset, _high, _low), _value}

/* Compare-swap and fetch-add, and both with masks; operands of 4 and 8 bytes.
 * Results have the host's byte order. */
#define DEVX_ATOMIC_OPS \
    (PRM_ATOMIC_CMP_SWAP | PRM_ATOMIC_FETCH_ADD | PRM_ATOMIC_MASKED_CMP_SWAP | \
     PRM_ATOMIC_MASKED_FETCH_ADD)
#define DEVX_ATOMIC_SIZES ((1 << 2) | (1 << 3))

/* CAP_ODP: bits 31..26 are send, receive, write, read, atomic, receive of an
 * SRQ. As obj/hca_odp.c has them. */
#define CAP_ODP(_offset, _value) \
    {DEVX_PAGE_ODP, DEVX_ON_HAVE | HCA_LACK_ODP, \
     DEVX_BITS(_offset, 31, 26), _value}
#define CAP_ODP_ATOMIC(_offset) \
    {DEVX_PAGE_ODP, DEVX_ON_HAVE | HCA_LACK_ODP_ATOMIC, \
     DEVX_BITS(_offset, 27, 27), 1}
#define DEVX_ODP_SEND 0x20
#define DEVX_ODP_RC   0x3d
#define DEVX_ODP_DC   0x2d

static const struct devx_cap devx_caps[] = {
    CAP(GENERAL, 0x04, 31, 31, 1),   /* hca_cap_2 */
    CAP(GENERAL, 0x10, 31, 24, 15),  /* log_max_srq_sz */
    CAP(GENERAL, 0x10, 23, 16, 15),  /* log_max_qp_sz */
    CAP(GENERAL, 0x10, 4, 0, 16),    /* log_max_qp */
    CAP(GENERAL, 0x14, 20, 16, 16),  /* log_max_srq */
    CAP(GENERAL, 0x18, 23, 16, 22),  /* log_max_cq_sz */
    CAP(GENERAL, 0x18, 4, 0, 16),    /* log_max_cq */
    CAP_ON(RELAXED, GENERAL, 0x1c, 23, 23, 1), /* relaxed_ordering_write */
    CAP(GENERAL, 0x1c, 21, 16, 20),  /* log_max_mkey */
    CAP_BIT(PRM_HCA_CAP_FIXED_BUFFER_SIZE), /* KSM */
    CAP(GENERAL, 0x20, 22, 16, 64),  /* log_max_mrw_sz */
    CAP(GENERAL, 0x20, 6, 6, 1),     /* null_mkey */
    CAP(GENERAL, 0x20, 5, 0, DEVX_LOG_MAX_KLMS), /* log_max_klm_list_size */
    CAP(GENERAL, 0x24, 29, 29, 1),   /* qpc_extension: streams of a DCI */
    CAP_ON(IB, GENERAL, 0x24, 7, 7, 1), /* ooo_sl_mask */
    CAP(GENERAL, 0x24, 5, 0, 4),     /* log_max_ra_res_dc */
    CAP(GENERAL, 0x28, 21, 16, 4),   /* log_max_ra_req_qp */
    CAP(GENERAL, 0x28, 5, 0, 4),     /* log_max_ra_res_qp */
    CAP_HAVE(DM, GENERAL, 0x34, 23, 1), /* device_memory */
    CAP(GENERAL, 0x34, 20, 16, 16),  /* local_ca_ack_delay */
    CAP_ON(ROCE, GENERAL, 0x34, 9, 8, 1), /* port_type: Ethernet */
    CAP(GENERAL, 0x34, 7, 0, 1),     /* num_ports */
    CAP(GENERAL, 0x38, 28, 24, HCA_LOG_MSG_MAX), /* log_max_msg */
    CAP_ON(OOO, GENERAL, 0x38, 22, 22, 1), /* dp_ordering_ooo_rw_dc */
    CAP_ON(OOO, GENERAL, 0x38, 21, 21, 1), /* dp_ordering_ooo_rw_rc */
    CAP_ON(BOND, GENERAL, 0x3c, 7, 7, 1), /* init2_lag_tx_port_affinity */
    CAP(GENERAL, 0x3c, 3, 0, 1),     /* cqe_version */
    CAP_BIT(PRM_HCA_CAP_COMPACT_ADDRESS_VECTOR),
    CAP_ON(STRIDES, GENERAL, 0x40, 26, 26, 1), /* ib_striding_wq */
    CAP_LACK(REPEAT, GENERAL, 0x40, 25, 1), /* repeated_block_disabled */
    CAP_LACK(UMR_ATOMIC, GENERAL, 0x40, 23, 1), /* umr_modify_atomic_dis... */
    CAP_HAVE(UMR_FENCE, GENERAL, 0x40, 20, 1), /* umr_fence: a small one */
    CAP(GENERAL, 0x40, 10, 10, 1),   /* sctr_data_cqe */
    CAP_ON(DC, GENERAL, 0x40, 5, 5, 1), /* dct */
    CAP_ON(ROCE, GENERAL, 0x40, 2, 2, 1), /* roce */
    CAP_HAVE(ATOMICS, GENERAL, 0x40, 1, 1), /* atomic */
    CAP(GENERAL, 0x44, 31, 31, 1),   /* cq_oi */
    CAP(GENERAL, 0x44, 30, 30, 1),   /* cq_resize */
    CAP(GENERAL, 0x44, 29, 29, 1),   /* cq_moderation */
    CAP_ON(STRIDES, GENERAL, 0x44, 26, 26, 1), /* first_indication of CQs */
    CAP_HAVE(ODP, GENERAL, 0x44, 24, 1), /* pg */
    CAP(GENERAL, 0x44, 3, 3, 1),     /* xrc */
    CAP(GENERAL, 0x44, 2, 2, 1),     /* ud */
    CAP(GENERAL, 0x44, 1, 1, 1),     /* uc */
    CAP(GENERAL, 0x44, 0, 0, 1),     /* rc */
    CAP(GENERAL, 0x48, 31, 31, 1),   /* uar_4k */
    CAP(GENERAL, 0x48, 7, 0, 12),    /* log_pg_sz */
    CAP(GENERAL, 0x4c, 31, 31, 1),   /* bf */
    CAP(GENERAL, 0x4c, 20, 16, 9),   /* log_bf_reg_size */
    CAP_ON(BOND_DC, GENERAL, 0x4c, 9, 8, 1), /* lag_dct */
    CAP_ON(BOND, GENERAL, 0x4c, 4, 4, 1), /* lag_master */
    CAP_ON(BOND, GENERAL, 0x4c, 3, 0, DEVX_LAG_PORTS), /* num_lag_ports */
    CAP(GENERAL, 0x50, 15, 0, UVERBS_MAX_SQ_DESC), /* max_wqe_sz_sq */
    CAP(GENERAL, 0x54, 15, 0, UVERBS_MAX_RQ_DESC), /* max_wqe_sz_rq */
    CAP(GENERAL, 0x58, 15, 0, UVERBS_MAX_SQ_DESC), /* max_wqe_sz_sq_dc */
    CAP(GENERAL, 0x64, 20, 16, HCA_LOG_MAX_PDS), /* log_max_pd */
    CAP_ON(OOO, GENERAL, 0x64, 12, 12, 1), /* dp_ordering_ooo_all_dc */
    CAP_ON(OOO, GENERAL, 0x64, 11, 11, 1), /* dp_ordering_ooo_all_rc */
    CAP(GENERAL, 0x64, 4, 0, 12),    /* log_max_xrcd */
    CAP(GENERAL, 0x70, 28, 24, 16),  /* log_max_rmp */
    CAP_ON(STRIDES, GENERAL, 0x74, 31, 31, 1), /* ext_stride_num_range */
    CAP(GENERAL, 0x78, 4, 0, 15),    /* log_max_wq_sz */
    CAP(GENERAL, 0x80, DEVX_GENERAL_RESERVED_QPN - 32,
        DEVX_GENERAL_RESERVED_QPN - 32, 1), /* general_obj_types */
    CAP_LACK(FREE_CLOCK, GENERAL, 0x88, 30, 1), /* sq_ts_format: real time */
    CAP_LACK(FREE_CLOCK, GENERAL, 0x88, 28, 1), /* rq_ts_format: real time */
    CAP(GENERAL, 0x9c, 31, 0, UVERBS_CLOCK_KHZ), /* device_frequency_khz */
    CAP(GENERAL, 0xb4, 2, 2, 1),     /* cqe_128_always */
    CAP(GENERAL, 0xb4, 0, 0, 1),     /* cqe_compression */
    CAP(GENERAL, 0xb8, 15, 0, HCA_MINIS_MAX), /* cqe_compression_max_num */
    CAP_ON(TM, GENERAL, 0xbc, 15, 15, 1), /* tag_matching */
    CAP_ON(TM, GENERAL, 0xbc, 14, 14, 1), /* rndv_offload_rc */
    CAP_ON(DC_TM, GENERAL, 0xbc, 13, 13, 1), /* rndv_offload_dc */
    CAP_ON(TM, GENERAL, 0xbc, 4, 0, 16), /* log_max_xrq */

    CAP_ODP(0x10, DEVX_ODP_RC),   /* rc_odp_caps */
    CAP_ODP_ATOMIC(0x10),
    CAP_ODP(0x18, DEVX_ODP_SEND), /* ud_odp_caps */
    CAP_ODP(0x1c, DEVX_ODP_RC),   /* xrc_odp_caps */
    CAP_ODP_ATOMIC(0x1c),
    CAP_ODP(0x20, DEVX_ODP_DC),   /* dc_odp_caps */
    CAP_ODP_ATOMIC(0x20),

    CAP_HAVE(ATOMICS, ATOMIC, 0x08, 30, 1), /* atomic_req_8B_endianness_mode */
    CAP_HAVE(ATOMICS, ATOMIC, 0x08, 25, 1), /* supported_..._mode_1 */
    CAP_ATOMIC(operations, DEVX_ATOMIC_OPS),
    CAP_ATOMIC(size_qp, DEVX_ATOMIC_SIZES),
    CAP_ATOMIC(size_dc, DEVX_ATOMIC_SIZES),

    CAP_ON(OOO, MORE, 0x10, 23, 23, 1), /* dp_ordering_force */
    CAP(MORE, 0x10, 12, 8, HCA_QPNS_LOG_COUNT), /* log_reserved_qpn_... */

    CAP_ON(ROCE, ROCE, 0x00, 27, 27, 1), /* sw_r_roce_src_udp_port */

    CAP_DM(0x00, 31, 31, 1), /* memic */
    CAP_DM(0x04, 20, 16, UVERBS_DM_LOG_MIN), /* log_min_memic_... */
    CAP_DM(0x04, 7, 0, UVERBS_DM_LOG_ALIGN - UVERBS_DM_LOG_MIN),
};
/* clang-format on */

static const struct devx_field devx_query_cap_fields[] = {
    DEVX_HEADER_FIELDS,
    {"op_mod", DEVX_IN_OP_MOD, (DEVX_LAST_PAGE << 1) | 1},
    {NULL, 0, 0},
};

bool devx_is_bond(const struct devx_call *call)
{
    return hca_dev_is_roce(call->ctx->dev) && hca_config.lag;
}

static bool devx_has_cap(const struct devx_call *call, enum devx_where where)
{
    bool roce = hca_dev_is_roce(call->ctx->dev);

    if (where > DEVX_ON_WHAT) {
        return hca_lacks(where & DEVX_ON_WHAT) == (where > DEVX_ON_LACK);
    }
    return (where == DEVX_ON_ALL) || ((where == DEVX_ON_IB) && !roce) ||
           ((where == DEVX_ON_ROCE) && roce) ||
           ((where == DEVX_ON_BOND) && devx_is_bond(call)) ||
           ((where == DEVX_ON_BOND_DC) && devx_is_bond(call) &&
            !hca_lacks(HCA_LACK_LAG_DCT)) ||
           ((where == DEVX_ON_DC) && !hca_lacks(HCA_LACK_DC)) ||
           ((where == DEVX_ON_TM) && !hca_lacks(HCA_LACK_TM)) ||
           ((where == DEVX_ON_STRIDES) && !hca_lacks(HCA_LACK_TM) &&
            !hca_lacks(HCA_LACK_STRIDES)) ||
           ((where == DEVX_ON_DC_TM) && hca_has_dc_rndv()) ||
           ((where == DEVX_ON_OOO) && (hca_order == HCA_ORDER_OOO)) ||
           ((where == DEVX_ON_RELAXED) && (hca_order == HCA_ORDER_RELAXED));
}

/* Capabilities whose values SOFTHCA_* variables set */
#define CAP_LOG_TAGS      DEVX_BITS(0xbc, 12, 8)  /* log_tag_matching_list_sz */
#define CAP_LOG_RA_REQ_DC DEVX_BITS(0x24, 21, 16) /* log_max_ra_req_dc */
#define CAP_INDIRECTION   DEVX_BITS(0x20, 31, 24) /* max_indirection */
#define CAP_MEMIC_BAR     DEVX_BITS(0x10, 31, 0)  /* memic_bar_size */
#define CAP_MEMIC_MAX     DEVX_BITS(0x14, 31, 0)  /* max_memic_size */

static void devx_put_limits(struct devx_call *call, enum devx_page number)
{
    uint8_t *page = call->out + DEVX_PAGE_AT;

    if (number == DEVX_PAGE_DEV_MEM) {
        devx_set(page, CAP_MEMIC_BAR, uverbs_max_dm());
        devx_set(page, CAP_MEMIC_MAX, uverbs_max_dm());
        return;
    }
    if (number != DEVX_PAGE_GENERAL) {
        return;
    }
    devx_set(page, CAP_INDIRECTION, hca_mkey_depth());
    devx_set(page, CAP_LOG_RA_REQ_DC, __builtin_ctz(hca_max_rd_atomic_dc()));
    if (devx_has_cap(call, DEVX_ON_TM)) {
        devx_set(page, CAP_LOG_TAGS, __builtin_ctz(uverbs_max_tags() + 1));
    }
}

static enum devx_status devx_query_cap(struct devx_call *call)
{
    unsigned page = devx_get(call->in, DEVX_IN_OP_MOD) >> 1;
    enum devx_status status;

    status = devx_check(call, 0, call->cmd->in_size, devx_query_cap_fields);
    if (status != DEVX_OK) {
        return status;
    }
    for (unsigned i = 0; i < sizeof(devx_caps) / sizeof(devx_caps[0]); i++) {
        const struct devx_cap *cap = &devx_caps[i];

        if ((cap->page == page) && devx_has_cap(call, cap->where)) {
            devx_set(call->out + DEVX_PAGE_AT, cap->bits, cap->value);
        }
    }
    devx_put_limits(call, page);
    return DEVX_OK;
}

static const struct devx_field devx_header_fields[] = {
    DEVX_HEADER_FIELDS,
    {NULL, 0, 0},
};

#define LAG_STATE DEVX_FIELD(prm_query_lag_out, state, PRM_LAG_STATE)

static enum devx_status devx_query_lag(struct devx_call *call)
{
    enum devx_status status = devx_check(call, 0, call->cmd->in_size,
                                         devx_header_fields);

    if (status == DEVX_OK) {
        devx_set(call->out, LAG_STATE, devx_is_bond(call));
    }
    return status;
}

/* query_hca_vport_context_in */
#define VPORT_IN_PORT DEVX_BITS(0x08, 19, 16)

static const struct devx_field devx_query_vport_fields[] = {
    DEVX_HEADER_FIELDS,
    {"port_num", VPORT_IN_PORT, 1},
    {NULL, 0, 0},
};

/* hca_vport_context */
#define VPORT_AT         0x10u /* in prm_query_hca_vport_out */
#define VPORT_PHYS_STATE DEVX_BITS(0x20, 15, 12)
#define VPORT_PORT_STATE DEVX_BITS(0x20, 7, 4)
#define VPORT_STATE      DEVX_BITS(0x20, 3, 0)
#define VPORT_SYS_GUID   DEVX_QWORD(0x28)
#define VPORT_PORT_GUID  DEVX_QWORD(0x30)
#define VPORT_NODE_GUID  DEVX_QWORD(0x38)
#define VPORT_OOO_SLS    DEVX_BITS(0x50, 15, 0)
#define VPORT_LID        DEVX_BITS(0x5c, 31, 16)
#define VPORT_SM_LID     DEVX_BITS(0x60, 31, 16)

enum { VPORT_PHYS_POLLING = 2, VPORT_PHYS_LINK_UP = 5 };

static enum devx_status devx_query_vport(struct devx_call *call)
{
    uint64_t guid = be64toh(hca_dev_guid(call->ctx->dev));
    bool down     = hca_dev_is_down(call->ctx->dev);
    uint8_t *out  = call->out + VPORT_AT;
    enum devx_status status;

    status = devx_check(call, 0, call->cmd->in_size, devx_query_vport_fields);
    if (status != DEVX_OK) {
        return status;
    }
    if (hca_dev_is_roce(call->ctx->dev)) {
        return devx_refuse(call, DEVX_BAD_PARAM, 0x08,
                           "port_num, of an Ethernet port,", 1);
    }
    devx_set(out, VPORT_PHYS_STATE,
             down ? VPORT_PHYS_POLLING : VPORT_PHYS_LINK_UP);
    devx_set(out, VPORT_PORT_STATE, down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
    devx_set(out, VPORT_STATE, down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
    devx_set(out, VPORT_SYS_GUID, guid);
    devx_set(out, VPORT_PORT_GUID, guid);
    devx_set(out, VPORT_NODE_GUID, guid);
    devx_set(out, VPORT_LID, hca_dev_lid(call->ctx->dev));
    devx_set(out, VPORT_SM_LID, 1);
    devx_set(out, VPORT_OOO_SLS,
             (hca_order == HCA_ORDER_OOO) ? HCA_ORDER_OOO_SLS : 0);
    return DEVX_OK;
}

const struct devx_cmd devx_cap_cmds[] = {
    {.opcode   = PRM_CMD_QUERY_HCA_CAP,
     .class    = DEVX_GENERAL,
     .name     = "query_hca_cap",
     .in_size  = sizeof(struct prm_query_hca_cap_in),
     .out_size = DEVX_PAGE_AT + 0x100, /* perftest has this old size */
     .run      = devx_query_cap},
    {.opcode   = PRM_CMD_QUERY_LAG,
     .class    = DEVX_GENERAL,
     .name     = "query_lag",
     .in_size  = sizeof(struct prm_query_lag_in),
     .out_size = sizeof(struct prm_query_lag_out),
     .run      = devx_query_lag},
    {.opcode   = PRM_CMD_QUERY_HCA_VPORT_CONTEXT,
     .class    = DEVX_GENERAL,
     .name     = "query_hca_vport_context",
     .in_size  = sizeof(struct prm_query_hca_vport_in),
     .out_size = sizeof(struct prm_query_hca_vport_out),
     .run      = devx_query_vport},
    {.name = NULL},
};
