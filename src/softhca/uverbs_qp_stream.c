/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A QP of verbs modified by a command of the device's own interface, as
 * mlx5dv_devx_qp_modify() carries it: RTS2RTS_QP to reset a stream of a DCI,
 * which is what mlx5dv_dci_stream_id_reset() sends. Layout: mlx5_ifc.h,
 * rts2rts_qp_in and qpc_ext. A command that the device refuses is EREMOTEIO,
 * with the reason in the out mailbox.
 */
#define _GNU_SOURCE
#include "uverbs_objs.h"
#include "hca_exec.h"
#include "hca_log.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define UVERBS_RTS2RTS_QP 0x505u

/* opt_param_mask_95_32: dci_stream_channel_id of the extension counts */
#define UVERBS_OPT_STREAM 1u

enum uverbs_cmd_status {
    UVERBS_CMD_OK        = 0x00,
    UVERBS_CMD_BAD_OP    = 0x02,
    UVERBS_CMD_BAD_PARAM = 0x03
};

struct uverbs_rts2rts_in {
    __be16 opcode, uid;
    __be16 reserved, op_mod;
    __be32 ext_qpn; /* bit 31: the extension is there */
    __be32 reserved1;
    __be32 opt_param_mask, reserved2;
    uint8_t qpc[232];
    __be32 reserved3[2];
    __be64 opt_param_mask_95_32;
    __be16 ext_flags, ext_stream;
    uint8_t ext[188];
};

_Static_assert(sizeof(struct uverbs_rts2rts_in) == 464, "rts2rts_qp_in");

static enum uverbs_cmd_status
uverbs_reset_stream(struct hca_qp *hw, const struct uverbs_rts2rts_in *in)
{
    struct uverbs_rts2rts_in expected = {
        .opcode               = htobe16(UVERBS_RTS2RTS_QP),
        .uid                  = in->uid, /* the kernel's to set */
        .ext_qpn              = htobe32((1u << 31) | hw->obj.num),
        .opt_param_mask_95_32 = htobe64(UVERBS_OPT_STREAM),
        .ext_stream           = in->ext_stream,
    };

    if (in->opcode != expected.opcode) {
        return UVERBS_CMD_BAD_OP;
    }
    if (memcmp(in, &expected, sizeof(expected)) != 0) {
        hca_info("qp 0x%x: rts2rts: something else than a stream to reset",
                 hw->obj.num);
        return UVERBS_CMD_BAD_PARAM;
    }
    if (hca_qp_reset_stream(hw, be16toh(in->ext_stream)) != 0) {
        hca_info("qp 0x%x: stream 0x%x to reset is not in error",
                 hw->obj.num, be16toh(in->ext_stream));
        return UVERBS_CMD_BAD_PARAM;
    }
    return UVERBS_CMD_OK;
}

static const struct uverbs_attr_spec uverbs_qp_stream_attrs[] = {
    {MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_QP},
    {MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, UVERBS_IN, UVERBS_MANDATORY,
     sizeof(struct uverbs_rts2rts_in), UINT16_MAX, 0},
    {MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, UVERBS_OUT, UVERBS_MANDATORY, 16,
     UINT16_MAX, 0},
};

static int uverbs_qp_stream(struct uverbs_req *req)
{
    struct uverbs_qp *qp = uverbs_get_obj(req,
                                          MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE);
    uint8_t out[16]      = {0};
    struct uverbs_rts2rts_in in;
    int ret;

    ret = uverbs_get(req, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, &in,
                     sizeof(in));
    if (ret != 0) {
        return ret;
    }
    if (qp->qp == NULL) {
        return -EINVAL;
    }
    out[0] = uverbs_reset_stream(qp->qp, &in);
    ret    = uverbs_put(req, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, out,
                        sizeof(out));
    return ((ret == 0) && (out[0] != UVERBS_CMD_OK)) ? -EREMOTEIO : ret;
}

const struct uverbs_method uverbs_qp_stream_methods[] = {
    {.object  = MLX5_IB_OBJECT_DEVX_OBJ,
     .id      = MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
     .name    = "devx_qp_modify",
     .handler = uverbs_qp_stream,
     UVERBS_ATTRS(uverbs_qp_stream_attrs)},
    {.handler = NULL},
};
