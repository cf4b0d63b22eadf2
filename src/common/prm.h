/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Wire formats of mlx5 that <infiniband/mlx5dv.h> does not declare: WQEs, which
 * the transport writes and the software device reads, and CQEs, the other way.
 * This file has declarations only: shared code would hide a wrong encoder
 * behind a decoder with the same mistake. All fields are big endian.
 */
#ifndef DCX_COMMON_PRM_H
#define DCX_COMMON_PRM_H

#include <assert.h>
#include <infiniband/mlx5dv.h>

/* Ctrl segment, opmod_idx_opcode: 31..24 opmod, 23..8 WQE index, 7..0 opcode
 * (struct mlx5_wqe_ctrl_seg). Ctrl segment, qpn_ds: 31..8 QPN, 5..0 size of the
 * WQE in 16-byte units. */
#define PRM_CTRL_OPCODE 0x000000ffu
#define PRM_CTRL_IDX    0x00ffff00u
#define PRM_CTRL_DS     0x0000003fu
#define PRM_CTRL_QPN    0xffffff00u

/* Masks of the byte fm_ce_se of the ctrl segment. mlx5dv.h declares the values
 * (MLX5_WQE_CTRL_CQ_UPDATE 2<<2, SOLICITED 1<<1, FENCE 4<<5,
 * INITIATOR_SMALL_FENCE 1<<5). */
#define PRM_CTRL_SE 0x02
#define PRM_CTRL_CE 0x0c
#define PRM_CTRL_FM 0xe0

/* Extended ("masked") atomics: opmod holds the size of the operand as
 * log2(bytes) - 2 with bit 3 set (rdma-core providers/mlx5, UCX ib_mlx5.h). */
#define PRM_OPMOD_EXT_ATOMIC(_log_size) (0x08 | ((_log_size)-2))

/* Operands of masked atomics. A 64-bit compare-and-swap takes two segments of
 * struct prm_masked_cswap64_seg (swap and compare, then the masks of both), a
 * 64-bit fetch-and-add one (add data, field boundary). */
struct prm_masked_cswap32_seg {
    __be32 swap_data;
    __be32 compare_data;
    __be32 swap_mask;
    __be32 compare_mask;
};
static_assert(sizeof(struct prm_masked_cswap32_seg) == 16, "one octoword");

struct prm_masked_fadd32_seg {
    __be32 add_data;
    __be32 field_boundary;
    __be64 reserved;
};
static_assert(sizeof(struct prm_masked_fadd32_seg) == 16, "one octoword");

struct prm_masked_cswap64_seg {
    __be64 swap;
    __be64 compare;
};
static_assert(sizeof(struct prm_masked_cswap64_seg) == 16, "one octoword");

/* --- tag matching ---------------------------------------------------------
 * Headers of messages: <infiniband/tm_types.h>. Operations on the list of
 * posted tags: WQEs of the opcode MLX5_OPCODE_TAG_MATCHING, a struct
 * mlx5_wqe_tm_seg and, to append, a data segment (rdma-core,
 * providers/mlx5/qp.c, mlx5_post_srq_ops()). */

/* mlx5_wqe_tm_seg.opcode: the operation in its upper half */
#define PRM_TM_OPCODE_SHIFT 4
enum {
    PRM_TM_OPCODE_NOP    = 0,
    PRM_TM_OPCODE_APPEND = 1, /* index: entry of the APPEND after this one */
    PRM_TM_OPCODE_REMOVE = 2  /* index: the entry to remove */
};

/* mlx5_wqe_tm_seg.flags */
#define PRM_TM_SW_CNT  0x40 /* sw_cnt is valid */
#define PRM_TM_CQE_REQ 0x80 /* requests a completion */

/* Header of a rendezvous request over DC, behind struct ibv_rvh: the DC target
 * of the requester (UCX 1.13, dc_mlx5.h, struct ibv_ravh) */
struct prm_ravh {
    __be32 sl_dct;
    __be32 reserved;
    __be64 dc_access_key;
};
static_assert(sizeof(struct prm_ravh) == 16, "one octoword");

#define PRM_RAVH_DCT 0x00ffffffu

/* mlx5_cqe64.app and .app_op (rdma-core, providers/mlx5/cq.c). app_info is the
 * index of the list entry. */
#define PRM_CQE_APP_TAG_MATCHING 1
enum {
    PRM_CQE_TM_CONSUMED             = 0x1, /* matched; the data follows */
    PRM_CQE_TM_EXPECTED             = 0x2, /* data of a matched message */
    PRM_CQE_TM_UNEXPECTED           = 0x3,
    PRM_CQE_TM_NO_TAG               = 0x4,
    PRM_CQE_TM_APPEND               = 0x5,
    PRM_CQE_TM_REMOVE               = 0x6,
    PRM_CQE_TM_NOOP                 = 0x7,
    PRM_CQE_TM_CONSUMED_MSG         = 0xa, /* matched, with its data */
    PRM_CQE_TM_CONSUMED_MSG_SW_RNDV = 0xb, /* matched; the program has to fetch
                                            * the data */
    PRM_CQE_TM_MSG_COMPLETION_CANCELED = 0xc /* matched; data never arrives */
};

/* mlx5_cqe64.byte_cnt of a packet in strides: bits 15..0 are its length, 28..16
 * its number of strides. rsvd20[2..3] is the index of its first stride,
 * wqe_counter that of the WQE (UCX 1.18, ib_mlx5.h, ib_mlx5.inl; the number of
 * strides: libmlx5 of MLNX_OFED, without the bits that are flags here). */
#define PRM_CQE_MP_FIRST         0x20000000u /* first packet of its message */
#define PRM_CQE_MP_LAST          0x40000000u
#define PRM_CQE_MP_FILLER        0x80000000u /* skipped strides */
#define PRM_CQE_MP_STRIDES_SHIFT 16

/* --- CQE compression ------------------------------------------------------ */

/* mlx5_cqe64.op_own & PRM_CQE_FORMAT of a title CQE. Its byte_cnt is the
 * number of compressed completions. Mini CQEs fill the 64 bytes of the next
 * entry, then of each eighth entry from the title. Fields that a mini CQE
 * lacks are as in the title; wqe_counter of a receive counts up (Linux,
 * drivers/net/ethernet/mellanox/mlx5/core/en_rx.c,
 * mlx5e_decompress_cqes_start(); linux/mlx5/device.h, struct
 * mlx5_mini_cqe8). */
#define PRM_CQE_FORMAT            0x0c
#define PRM_CQE_FORMAT_COMPRESSED 0x0c
#define PRM_MINI_CQES             8u /* per 64-byte entry */

struct prm_mini_cqe {
    union {
        __be32 rx_hash_result; /* format "hash" */
        struct {
            __be16 checksum; /* format "checksum" */
            __be16 stride_index;
        } recv;
        struct {
            __be16 wqe_counter;
            uint8_t opcode;
            uint8_t reserved;
        } send;
    };
    __be32 byte_cnt;
};
static_assert(sizeof(struct prm_mini_cqe) == 8, "eight in an entry");

#endif
