/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Commands of the device's own interface (DEVX) that the transport issues and
 * the software device executes: their mailboxes, as declarations alone (see
 * prm.h). Positions are from mlx5_ifc.h of rdma-core and of UCX; the comment of
 * a structure names the one in mlx5_ifc.h. All fields are big endian.
 */
#ifndef DCX_COMMON_PRM_CMD_H
#define DCX_COMMON_PRM_CMD_H

#include <assert.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

/* Opcode: the first 16 bits of a command */
enum {
    PRM_CMD_QUERY_HCA_CAP           = 0x100,
    PRM_CMD_CREATE_MKEY             = 0x200,
    PRM_CMD_CREATE_QP               = 0x500,
    PRM_CMD_RST2INIT_QP             = 0x502,
    PRM_CMD_INIT2RTR_QP             = 0x503,
    PRM_CMD_RTR2RTS_QP              = 0x504,
    PRM_CMD_2ERR_QP                 = 0x507,
    PRM_CMD_2RST_QP                 = 0x50a,
    PRM_CMD_QUERY_QP                = 0x50b,
    PRM_CMD_CREATE_DCT              = 0x710,
    PRM_CMD_CREATE_XRQ              = 0x717,
    PRM_CMD_SET_XRQ_DC_PARAMS_ENTRY = 0x726,
    PRM_CMD_QUERY_HCA_VPORT_CONTEXT = 0x762,
    PRM_CMD_QUERY_LAG               = 0x842
};

/* Header of each response. It is the whole of create_xrq_out_bits,
 * create_dct_out_bits and create_qp_out_bits. Responses to modify commands have
 * no number. */
struct prm_cmd_out {
    uint8_t status;
    uint8_t reserved1[3];
    __be32 syndrome;
    __be32 number; /* new object's number, low 24 bits */
    __be32 reserved2;
};
static_assert(sizeof(struct prm_cmd_out) == 16, "create_xrq_out_bits");

/* Number of an object in its word; the other bits are reserved. */
#define PRM_NUMBER 0x00ffffffu

/* --- QUERY_HCA_CAP -------------------------------------------------------- */

/* op_mod: page << 1, with PRM_CAP_CURRENT or 0 for the maximum */
enum {
    PRM_CAP_GENERAL = 0,
    PRM_CAP_ATOMIC  = 3,

    PRM_CAP_CURRENT = 1
};

/* query_hca_cap_in_bits */
struct prm_query_hca_cap_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    uint8_t reserved2[8];
};
static_assert(sizeof(struct prm_query_hca_cap_in) == 16,
              "query_hca_cap_in_bits");

/* atomic_caps_bits; each page has 0x1000 bytes */
struct prm_atomic_caps {
    uint8_t reserved1[8];
    uint8_t req_8b_endianness; /* 2 high bits; 0: replies are big endian */
    uint8_t reserved2[9];
    __be16 operations; /* PRM_ATOMIC_* */
    uint8_t reserved3[2];
    __be16 size_qp; /* bit n: operands of 2^n bytes */
    uint8_t reserved4[2];
    __be16 size_dc; /* likewise */
    uint8_t reserved5[0x1000 - 0x1c];
};
static_assert(offsetof(struct prm_atomic_caps, operations) == 0x12,
              "atomic_caps_bits.atomic_operations");
static_assert(offsetof(struct prm_atomic_caps, size_dc) == 0x1a,
              "atomic_caps_bits.atomic_size_dc");
static_assert(sizeof(struct prm_atomic_caps) == 0x1000, "a page");

enum {
    PRM_ATOMIC_CMP_SWAP         = 1 << 0,
    PRM_ATOMIC_FETCH_ADD        = 1 << 1,
    PRM_ATOMIC_MASKED_CMP_SWAP  = 1 << 2,
    PRM_ATOMIC_MASKED_FETCH_ADD = 1 << 3
};

/* query_hca_cap_out_bits */
struct prm_query_hca_cap_out {
    uint8_t status;
    uint8_t reserved1[3];
    __be32 syndrome;
    uint8_t reserved2[8];
    union {
        uint8_t bytes[0x1000];
        struct prm_atomic_caps atomic;
    } cap;
};
static_assert(sizeof(struct prm_query_hca_cap_out) == 0x1010,
              "query_hca_cap_out_bits");

/* Single bits of the general page, cmd_hca_cap_bits: bit 0 is the highest of
 * the first byte. */
enum {
    PRM_HCA_CAP_RELAXED_ORDERING_WRITE     = 0x0e8,
    PRM_HCA_CAP_FIXED_BUFFER_SIZE          = 0x108, /* KSM keys */
    PRM_HCA_CAP_OOO_SL_MASK                = 0x138,
    PRM_HCA_CAP_DP_ORDERING_OOO_RW_DC      = 0x1c9,
    PRM_HCA_CAP_COMPACT_ADDRESS_VECTOR     = 0x200,
    PRM_HCA_CAP_REPEATED_BLOCK_DISABLED    = 0x206,
    PRM_HCA_CAP_UMR_MODIFY_ATOMIC_DISABLED = 0x208, /* no atomics through KSM
                                                     * keys */
    PRM_HCA_CAP_UMR_INDIRECT_MKEY_DISABLED = 0x209,
    PRM_HCA_CAP_ATOMIC                     = 0x21e,
    PRM_HCA_CAP_DP_ORDERING_OOO_ALL_DC     = 0x333,
    PRM_HCA_CAP_TAG_MATCHING               = 0x5f0,
    PRM_HCA_CAP_RNDV_OFFLOAD_DC            = 0x5f2
};

/* Bytes of the general page whose low 5 bits are a logarithm */
enum {
    PRM_HCA_CAP_LOG_TAG_LIST = 0xbe, /* log_tag_matching_list_sz */
    PRM_HCA_CAP_LOG_MAX_XRQ  = 0xbf
};
#define PRM_HCA_CAP_LOG 0x1f

/* Byte of the general page whose low 6 bits are log_max_klm_list_size */
#define PRM_HCA_CAP_LOG_MAX_KLM 0x23
#define PRM_HCA_CAP_LOG_KLM     0x3f

/* Byte of the general page whose low 6 bits are log_max_ra_req_dc */
#define PRM_HCA_CAP_LOG_RA_REQ_DC 0x25
#define PRM_HCA_CAP_LOG_RA        0x3f

/* Bytes of the general page: max_indirection, whole; lag_dct in the low 2 bits;
 * umr_fence and sq_ts_format in 2 bits from their shift on */
#define PRM_HCA_CAP_MAX_INDIRECTION 0x20
#define PRM_HCA_CAP_UMR_FENCE       0x41
#define PRM_HCA_CAP_UMR_FENCE_SHIFT 4
#define PRM_HCA_CAP_LAG_DCT         0x4e
#define PRM_HCA_CAP_SQ_TS_FORMAT    0x88
#define PRM_HCA_CAP_TS_FORMAT_SHIFT 6
#define PRM_HCA_CAP_TWO_BITS        0x03

/* umr_fence: fence that the WQE behind a UMR needs: strong ordering, small or
 * none (MLX5_CAP_UMR_FENCE_* of Linux) */
enum {
    PRM_UMR_FENCE_STRONG = 0,
    PRM_UMR_FENCE_SMALL  = 1,
    PRM_UMR_FENCE_NONE   = 2
};

/* sq_ts_format: clocks of timestamps (MLX5_TIMESTAMP_FORMAT_CAP_*) */
enum {
    PRM_TS_FORMAT_FREE_RUNNING = 0,
    PRM_TS_FORMAT_REAL_TIME    = 1,
    PRM_TS_FORMAT_BOTH         = 2
};

/* --- QUERY_HCA_VPORT_CONTEXT ---------------------------------------------- */

/* query_hca_vport_context_in_bits */
struct prm_query_hca_vport_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    __be16 port;  /* low 4 bits */
    __be16 vport; /* 0: the port's own */
    uint8_t reserved2[4];
};
static_assert(sizeof(struct prm_query_hca_vport_in) == 16,
              "query_hca_vport_context_in_bits");

/* query_hca_vport_context_out_bits with hca_vport_context_bits */
struct prm_query_hca_vport_out {
    uint8_t status;
    uint8_t reserved1[3];
    __be32 syndrome;
    uint8_t reserved2[0x5a];
    __be16 ooo_sl_mask; /* bit n: service level n has adaptive routing */
    uint8_t reserved3[0x1a8];
};
static_assert(offsetof(struct prm_query_hca_vport_out, ooo_sl_mask) == 0x62,
              "hca_vport_context_bits.ooo_sl_mask");
static_assert(sizeof(struct prm_query_hca_vport_out) == 0x20c,
              "query_hca_vport_context_out_bits");

/* --- QUERY_LAG ------------------------------------------------------------ */

/* query_lag_in_bits */
struct prm_query_lag_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    uint8_t reserved2[8];
};
static_assert(sizeof(struct prm_query_lag_in) == 16, "query_lag_in_bits");

/* query_lag_out_bits with lagc_bits */
struct prm_query_lag_out {
    uint8_t status;
    uint8_t reserved1[3];
    __be32 syndrome;
    __be32 state; /* PRM_LAG_STATE */
    __be32 tx_remap;
};
static_assert(sizeof(struct prm_query_lag_out) == 16, "query_lag_out_bits");

/* prm_query_lag_out.state; 0: the ports are not bonded */
#define PRM_LAG_STATE 0x00000007u

/* --- CREATE_MKEY ---------------------------------------------------------- */

/* mkc_bits */
struct prm_mkc {
    __be32 rights; /* PRM_MKC_* */
    __be32 qpn_mkey_7_0;
    __be32 reserved1;
    __be32 flags_pd;
    __be64 start_addr;
    __be64 len;
    __be32 bsf_octword_size;
    uint8_t reserved2[16];
    __be32 translations_octword_size;
    __be32 log_entity_size; /* low 5 bits */
    __be32 reserved3;
};
static_assert(offsetof(struct prm_mkc, start_addr) == 0x10,
              "mkc_bits.start_addr");
static_assert(offsetof(struct prm_mkc, translations_octword_size) == 0x34,
              "mkc_bits.translations_octword_size");
static_assert(sizeof(struct prm_mkc) == 0x40, "mkc_bits");

/* prm_mkc.rights */
#define PRM_MKC_FREE            0x40000000u /* has no layout yet */
#define PRM_MKC_UMR_EN          0x00008000u /* gets its layout by UMR */
#define PRM_MKC_ATOMIC          0x00004000u
#define PRM_MKC_REMOTE_WRITE    0x00002000u
#define PRM_MKC_REMOTE_READ     0x00001000u
#define PRM_MKC_LOCAL_WRITE     0x00000800u
#define PRM_MKC_LOCAL_READ      0x00000400u
#define PRM_MKC_ACCESS_MODE     0x00000300u /* low 2 bits of the mode */
#define PRM_MKC_ACCESS_MODE_KLM 0x00000200u
#define PRM_MKC_ACCESS_MODE_KSM 0x00000300u

/* prm_mkc.qpn_mkey_7_0 */
#define PRM_MKC_ANY_QP  0xffffff00u
#define PRM_MKC_VARIANT 0x000000ffu

/* klm_bits. All entries of a KSM key have the key's entity size, and byte_count
 * is reserved. */
struct prm_klm {
    __be32 byte_count;
    __be32 mkey;
    __be64 address;
};
static_assert(sizeof(struct prm_klm) == 16, "one octoword");

/* create_mkey_in_bits */
struct prm_create_mkey_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    uint8_t reserved2[8];
    struct prm_mkc mkc;
    uint8_t reserved3[16];
    __be32 translations_octword_actual_size;
    uint8_t reserved4[172];
    struct prm_klm klm[];
};
static_assert(offsetof(struct prm_create_mkey_in,
                       translations_octword_actual_size) == 0x60,
              "create_mkey_in_bits.translations_octword_actual_size");
static_assert(sizeof(struct prm_create_mkey_in) == 0x110,
              "create_mkey_in_bits.klm_pas_mtt");

/* create_mkey_out_bits */
struct prm_create_mkey_out {
    uint8_t status;
    uint8_t reserved1[3];
    __be32 syndrome;
    __be32 mkey_index; /* low 24 bits */
    __be32 reserved2;
};
static_assert(sizeof(struct prm_create_mkey_out) == 16, "create_mkey_out_bits");

/* --- CREATE_XRQ, SET_XRQ_DC_PARAMS_ENTRY ---------------------------------- */

/* wq_bits. The kernel sets the bits that say that umems are used
 * (devx_set_umem_valid() of mlx5_ib). */
struct prm_wq {
    __be32 type; /* 0: linked list */
    __be32 lwm;
    __be32 pd;
    __be32 uar_page;
    __be64 dbr_addr; /* offset in its umem */
    __be32 hw_counter;
    __be32 sw_counter;
    __be32 log_sizes; /* PRM_WQ_LOG_* */
    __be32 flags;
    __be32 dbr_umem_id;
    __be32 wq_umem_id;
    uint8_t reserved[0x90];
};
static_assert(offsetof(struct prm_wq, log_sizes) == 0x20,
              "wq_bits.log_wq_stride");
static_assert(offsetof(struct prm_wq, wq_umem_id) == 0x2c,
              "wq_bits.wq_umem_id");
static_assert(sizeof(struct prm_wq) == 0xc0, "wq_bits");

/* prm_wq.log_sizes */
#define PRM_WQ_LOG_STRIDE 0x000f0000u
#define PRM_WQ_LOG_SIZE   0x0000001fu

/* xrqc_bits, with tag_matching_topology_context_bits in it */
struct prm_xrqc {
    __be32 topology; /* PRM_XRQC_* */
    __be32 user_index;
    __be32 cqn;
    __be32 dc; /* bit 0 */
    uint8_t reserved1[16];
    __be32 log_list; /* PRM_XRQC_LOG_LIST */
    uint8_t reserved2[0x5c];
    struct prm_wq wq;
};
static_assert(offsetof(struct prm_xrqc, log_list) == 0x20,
              "xrqc_bits.tag_matching_topology_context");
static_assert(offsetof(struct prm_xrqc, wq) == 0x80, "xrqc_bits.wq");

/* prm_xrqc.topology */
#define PRM_XRQC_TAG_MATCHING 0x00000100u
#define PRM_XRQC_OFFLOAD_RNDV 0x00000001u

/* prm_xrqc.log_list: log2 of the entries of the list; one of them stays free */
#define PRM_XRQC_LOG_LIST 0xf0000000u

/* create_xrq_in_bits */
struct prm_create_xrq_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    uint8_t reserved2[8];
    struct prm_xrqc xrqc;
};
static_assert(sizeof(struct prm_create_xrq_in) == 0x150, "create_xrq_in_bits");

/* set_xrq_dc_params_entry_in_bits, which only UCX's mlx5_ifc.h has */
struct prm_set_xrq_dc_params_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    __be32 xrqn;
    __be32 reserved2;
    __be32 path; /* PRM_XRQ_DC_* */
    __be32 sl;   /* PRM_XRQ_DC_*SL */
    __be64 dc_access_key;
    uint8_t reserved3[16];
};
static_assert(offsetof(struct prm_set_xrq_dc_params_in, dc_access_key) == 0x18,
              "set_xrq_dc_params_entry_in_bits.dc_access_key");
static_assert(sizeof(struct prm_set_xrq_dc_params_in) == 0x30,
              "set_xrq_dc_params_entry_in_bits");

/* prm_set_xrq_dc_params_in.path */
#define PRM_XRQ_DC_ACK_TIMEOUT 0x1f000000u
#define PRM_XRQ_DC_MTU         0x00070000u
#define PRM_XRQ_DC_PKEY_INDEX  0x0000ffffu

/* prm_set_xrq_dc_params_in.sl: of CNAKs, of responses, of requests */
#define PRM_XRQ_DC_CNAK_REVERSE_SL 0x000f0000u
#define PRM_XRQ_DC_REVERSE_SL      0x00000f00u
#define PRM_XRQ_DC_SL              0x0000000fu

/* --- CREATE_DCT ----------------------------------------------------------- */

/* dctc_bits */
struct prm_dctc {
    __be32 offload; /* PRM_OFFLOAD_* */
    __be32 user_index;
    __be32 cqn;
    __be32 rights; /* PRM_DCTC_* */
    uint8_t reserved1;
    uint8_t cs_res; /* PRM_DCTC_CS_RES_64 */
    uint8_t min_rnr_nak;
    uint8_t reserved2;
    __be32 srqn; /* or of an XRQ */
    __be32 pd;
    uint8_t tclass;
    uint8_t flow_label[3];
    __be64 dc_access_key;
    uint8_t mtu;
    uint8_t port;
    __be16 pkey_index;
    uint8_t reserved3;
    uint8_t my_addr_index; /* of the source GID */
    uint8_t reserved4;
    uint8_t hop_limit;
    __be32 violations;
    uint8_t reserved5[2];
    __be16 prio_dscp; /* RoCE: PRM_DCTC_ETH_PRIO, and 6 low bits */
    uint8_t reserved6[0x38];
};
static_assert(offsetof(struct prm_dctc, srqn) == 0x14, "dctc_bits.srqn_xrqn");
static_assert(offsetof(struct prm_dctc, mtu) == 0x28, "dctc_bits.mtu");
static_assert(offsetof(struct prm_dctc, prio_dscp) == 0x36, "dctc_bits.dscp");
static_assert(sizeof(struct prm_dctc) == 0x70,
              "dctc_bits, and what follows in create_dct_in_bits");

/* prm_dctc.rights */
#define PRM_DCTC_ATOMIC_MODE 0x00f00000u
#define PRM_DCTC_RRE         0x00080000u
#define PRM_DCTC_RWE         0x00040000u
#define PRM_DCTC_RAE         0x00020000u
#define PRM_DCTC_HANDSHAKE   0x00002000u /* UCX: force_full_handshake */

/* prm_dctc.cs_res: up to 64 bytes go to the completion (UCX's mlx5_ifc.h) */
#define PRM_DCTC_CS_RES_64 2

/* prm_dctc.prio_dscp */
#define PRM_DCTC_ETH_PRIO 0x0700u

/* DCTs and QPs: the device sends the messages of a rendezvous. */
#define PRM_OFFLOAD_RNDV 0x00000010u

/* Atomics of DCTs and QPs: none, as in the InfiniBand specification, or masked
 * and of up to 8 bytes (MLX5_ATOMIC_MODE_* of mlx5_ib) */
enum {
    PRM_ATOMIC_MODE_NONE    = 0,
    PRM_ATOMIC_MODE_IB_COMP = 1,
    PRM_ATOMIC_MODE_8B      = 3
};

/* create_dct_in_bits */
struct prm_create_dct_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    uint8_t reserved2[8];
    struct prm_dctc dctc;
};
static_assert(sizeof(struct prm_create_dct_in) == 0x80, "create_dct_in_bits");

/* --- CREATE_QP, RST2INIT_QP, INIT2RTR_QP, RTR2RTS_QP, 2RST_QP, QUERY_QP --- */

/* ads_bits */
struct prm_ads {
    __be16 reserved1;
    __be16 pkey_index;
    uint8_t reserved2;
    uint8_t grh_mlid; /* PRM_ADS_GRH, path bits */
    __be16 rlid;
    uint8_t ack_timeout;    /* 5 high bits */
    uint8_t src_addr_index; /* of the GID */
    uint8_t rate;
    uint8_t hop_limit;
    __be32 tclass; /* PRM_ADS_TCLASS, flow label */
    uint8_t rgid[16];
    uint8_t reserved3;
    uint8_t dscp; /* 6 low bits */
    __be16 udp_sport;
    uint8_t sl; /* lower half; of RoCE in the upper one */
    uint8_t port;
    uint8_t rmac[6];
};
static_assert(sizeof(struct prm_ads) == 0x2c, "ads_bits");

#define PRM_ADS_GRH         0x80
#define PRM_ADS_ACK_TIMEOUT 3 /* shift */
#define PRM_ADS_TCLASS      0x0ff00000u
#define PRM_ADS_ETH_PRIO    4 /* shift */

/* qpc_bits */
struct prm_qpc {
    __be32 state; /* PRM_QPC_PM_MIGRATED; service type 0: RC */
    __be32 pd;
    __be32 sizes; /* PRM_QPC_* */
    __be32 uar_page;
    __be32 user_index;
    __be32 remote_qpn;
    struct prm_ads path;
    struct prm_ads alt_path;
    __be32 retry; /* PRM_QPC_RETRY_COUNT, _RNR_RETRY */
    __be32 reserved1;
    __be32 next_send_psn;
    __be32 cqn_snd;
    uint8_t reserved2[16];
    __be32 rights;
    __be32 min_rnr_nak; /* 5 bits from bit 24 on, and a PSN */
    __be32 xrcd;
    __be32 cqn_rcv;
    __be64 dbr_addr; /* offset in its umem */
    __be32 q_key;
    __be32 rq_type_srqn; /* PRM_QPC_RQ_TYPE_SRQ */
    uint8_t reserved3[0x34];
    __be32 dbr_umem_id;
};
static_assert(offsetof(struct prm_qpc, retry) == 0x70, "qpc_bits.retry_count");
static_assert(offsetof(struct prm_qpc, rights) == 0x90, "qpc_bits.rre");
static_assert(offsetof(struct prm_qpc, rq_type_srqn) == 0xac,
              "qpc_bits.srqn_rmpn_xrqn");
static_assert(sizeof(struct prm_qpc) == 0xe8, "qpc_bits");

/* prm_qpc.state */
#define PRM_QPC_STATE       0xf0000000u
#define PRM_QPC_STATE_RTS   0x30000000u
#define PRM_QPC_PM_MIGRATED 0x00001800u

/* prm_qpc.sizes */
#define PRM_QPC_MTU         0xe0000000u
#define PRM_QPC_LOG_MSG_MAX 0x1f000000u
#define PRM_QPC_LOG_SQ_SIZE 0x00007800u
#define PRM_QPC_TS_DEFAULT  0x00000040u /* ts_format: the default clock */

/* prm_qpc.retry */
#define PRM_QPC_RETRY_COUNT 0x00070000u
#define PRM_QPC_RNR_RETRY   0x0000e000u

/* prm_qpc.rq_type_srqn: receives come from an SRQ or an XRQ, or there are none
 * (MLX5_SRQ_RQ, MLX5_ZERO_LEN_RQ of the kernel's qp.h) */
#define PRM_QPC_RQ_TYPE_SRQ  0x01000000u
#define PRM_QPC_RQ_TYPE_NONE 0x03000000u

/* create_qp_in_bits */
struct prm_create_qp_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    uint8_t reserved2[8];
    __be32 opt_param_mask;
    __be32 ece;
    struct prm_qpc qpc;
    uint8_t reserved3[8];
    __be32 wq_umem_id;
    __be32 wq_umem_valid;
};
static_assert(offsetof(struct prm_create_qp_in, wq_umem_id) == 0x108,
              "create_qp_in_bits.wq_umem_id");
static_assert(sizeof(struct prm_create_qp_in) == 0x110, "create_qp_in_bits");

/* rst2init_qp_in_bits, init2rtr_qp_in_bits, rtr2rts_qp_in_bits */
struct prm_modify_qp_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    __be32 qpn;
    __be32 reserved2;
    __be32 opt_param_mask;
    __be32 ece;
    struct prm_qpc qpc;
    uint8_t reserved3[16];
};
static_assert(sizeof(struct prm_modify_qp_in) == 0x110, "rst2init_qp_in_bits");

/* qp_2rst_in_bits, qp_2err_in_bits, query_qp_in_bits */
struct prm_2rst_qp_in {
    __be16 opcode;
    __be16 uid;
    __be16 reserved1;
    __be16 op_mod;
    __be32 qpn;
    __be32 reserved2;
};
static_assert(sizeof(struct prm_2rst_qp_in) == 0x10, "qp_2rst_in_bits");

/* query_qp_out_bits */
struct prm_query_qp_out {
    uint8_t status;
    uint8_t reserved1[3];
    __be32 syndrome;
    uint8_t reserved2[8];
    __be32 opt_param_mask;
    __be32 ece;
    struct prm_qpc qpc;
    uint8_t reserved3[16];
};
static_assert(offsetof(struct prm_query_qp_out, qpc) == 0x18,
              "query_qp_out_bits.qpc");
static_assert(sizeof(struct prm_query_qp_out) == 0x110, "query_qp_out_bits");

#endif
