/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Commands of the device's own interface (DEVX) that the transport gives and
 * the software device takes: their mailboxes, declared and nothing more, as in
 * prm.h. Positions from mlx5_ifc.h of rdma-core and of UCX; a structure of
 * bits there is named behind each one here. All fields are big endian.
 */
#ifndef DCX_COMMON_PRM_CMD_H
#define DCX_COMMON_PRM_CMD_H

#include <assert.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

/* First 16 bits of a command */
enum {
    PRM_CMD_QUERY_HCA_CAP = 0x100,
    PRM_CMD_CREATE_MKEY   = 0x200,
    PRM_CMD_QUERY_LAG     = 0x842
};

/* --- QUERY_HCA_CAP -------------------------------------------------------- */

/* op_mod: page << 1 | which */
enum {
    PRM_CAP_GENERAL = 0,
    PRM_CAP_ATOMIC  = 3,

    PRM_CAP_CURRENT = 1
};

/* query_hca_cap_in_bits */
struct prm_query_hca_cap_in {
    __be16  opcode;
    __be16  uid;
    __be16  reserved1;
    __be16  op_mod;
    uint8_t reserved2[8];
};
static_assert(sizeof(struct prm_query_hca_cap_in) == 16,
              "query_hca_cap_in_bits");

/* atomic_caps_bits; a page is 0x1000 bytes whatever is in it */
struct prm_atomic_caps {
    uint8_t reserved1[8];
    uint8_t req_8b_endianness; /* two high bits; 0: replies are big endian */
    uint8_t reserved2[9];
    __be16  operations;        /* PRM_ATOMIC_* */
    uint8_t reserved3[2];
    __be16  size_qp;           /* bit n: operands of 2^n bytes */
    uint8_t reserved4[2];
    __be16  size_dc;
    uint8_t reserved5[0x1000 - 0x1c];
};
static_assert(offsetof(struct prm_atomic_caps, operations) == 0x12,
              "atomic_caps_bits.atomic_operations");
static_assert(offsetof(struct prm_atomic_caps, size_dc) == 0x1a,
              "atomic_caps_bits.atomic_size_dc");
static_assert(sizeof(struct prm_atomic_caps) == 0x1000, "a page");

enum {
    PRM_ATOMIC_CMP_SWAP          = 1 << 0,
    PRM_ATOMIC_FETCH_ADD         = 1 << 1,
    PRM_ATOMIC_MASKED_CMP_SWAP   = 1 << 2,
    PRM_ATOMIC_MASKED_FETCH_ADD  = 1 << 3
};

/* query_hca_cap_out_bits */
struct prm_query_hca_cap_out {
    uint8_t status;
    uint8_t reserved1[3];
    __be32  syndrome;
    uint8_t reserved2[8];
    union {
        uint8_t                bytes[0x1000];
        struct prm_atomic_caps atomic;
    } cap;
};
static_assert(sizeof(struct prm_query_hca_cap_out) == 0x1010,
              "query_hca_cap_out_bits");

/* Single bits of the general page, cmd_hca_cap_bits: bit 0 is the highest of
 * the first byte. */
enum {
    PRM_HCA_CAP_FIXED_BUFFER_SIZE          = 0x108, /* KSM keys */
    PRM_HCA_CAP_COMPACT_ADDRESS_VECTOR     = 0x200,
    PRM_HCA_CAP_UMR_MODIFY_ATOMIC_DISABLED = 0x208, /* none through KSM keys */
    PRM_HCA_CAP_UMR_INDIRECT_MKEY_DISABLED = 0x209
};

/* --- QUERY_LAG ------------------------------------------------------------ */

/* query_lag_in_bits */
struct prm_query_lag_in {
    __be16  opcode;
    __be16  uid;
    __be16  reserved1;
    __be16  op_mod;
    uint8_t reserved2[8];
};
static_assert(sizeof(struct prm_query_lag_in) == 16, "query_lag_in_bits");

/* query_lag_out_bits with lagc_bits */
struct prm_query_lag_out {
    uint8_t status;
    uint8_t reserved1[3];
    __be32  syndrome;
    __be32  state;    /* PRM_LAG_STATE */
    __be32  tx_remap;
};
static_assert(sizeof(struct prm_query_lag_out) == 16, "query_lag_out_bits");

/* prm_query_lag_out.state; 0: the ports go their own ways */
#define PRM_LAG_STATE            0x00000007u

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
#define PRM_MKC_ATOMIC           0x00004000u
#define PRM_MKC_REMOTE_WRITE     0x00002000u
#define PRM_MKC_REMOTE_READ      0x00001000u
#define PRM_MKC_LOCAL_WRITE      0x00000800u
#define PRM_MKC_LOCAL_READ       0x00000400u
#define PRM_MKC_ACCESS_MODE      0x00000300u /* low 2 bits of the mode */
#define PRM_MKC_ACCESS_MODE_KSM  0x00000300u

/* prm_mkc.qpn_mkey_7_0 */
#define PRM_MKC_ANY_QP           0xffffff00u
#define PRM_MKC_VARIANT          0x000000ffu

/* klm_bits. In a KSM key all pieces have the size of the key's entity and the
 * first word is reserved. */
struct prm_klm {
    __be32 byte_count;
    __be32 mkey;
    __be64 address;
};
static_assert(sizeof(struct prm_klm) == 16, "one octoword");

/* create_mkey_in_bits */
struct prm_create_mkey_in {
    __be16         opcode;
    __be16         uid;
    __be16         reserved1;
    __be16         op_mod;
    uint8_t        reserved2[8];
    struct prm_mkc mkc;
    uint8_t        reserved3[16];
    __be32         translations_octword_actual_size;
    uint8_t        reserved4[172];
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
    __be32  syndrome;
    __be32  mkey_index; /* low 24 bits */
    __be32  reserved2;
};
static_assert(sizeof(struct prm_create_mkey_out) == 16, "create_mkey_out_bits");

#endif
