/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * RTS2RTS_QP with qpc_ext resets a stream in error of a DC initiator that verbs
 * or DEVX made. mlx5dv_dci_stream_id_reset() sends it. Layout: mlx5_ifc.h,
 * rts2rts_qp_in and qpc_ext.
 */
#define _GNU_SOURCE
#include "devx.h"
#include "devx_qp.h"
#include "softhca/exec/hca_stream.h"

#define STREAM_IN_SIZE 464u

/* Bit of opt_param_mask_95_32: use dci_stream_channel_id of qpc_ext */
#define STREAM_OPTPAR_ID 1u

#define STREAM_OPTPAR_95_32 DEVX_QWORD(0x108)
#define STREAM_ID           DEVX_BITS(0x110, 15, 0)

static const struct devx_field devx_stream_fields[] = {
    DEVX_HEADER_FIELDS,
    {"qpc_ext", DEVX_QP_EXT, 1},
    {"qpn", DEVX_QP_QPN, DEVX_ANY},
    {"opt_param_mask_95_32", STREAM_OPTPAR_95_32, STREAM_OPTPAR_ID},
    {"dci_stream_channel_id", STREAM_ID, DEVX_ANY},
    {NULL, 0, 0},
};

enum devx_status devx_qp_reset_stream(struct devx_call *call, struct hca_qp *hw)
{
    enum devx_status status;
    uint16_t stream;

    if (call->in_len < STREAM_IN_SIZE) {
        return devx_refuse(call, DEVX_BAD_INP_LEN, 0, "size of the in mailbox",
                           call->in_len);
    }
    status = devx_check(call, 0, STREAM_IN_SIZE, devx_stream_fields);
    if (status == DEVX_OK) {
        status = devx_check_rest(call, STREAM_IN_SIZE);
    }
    if (status != DEVX_OK) {
        return status;
    }
    if (devx_get(call->in, STREAM_OPTPAR_95_32) != STREAM_OPTPAR_ID) {
        return devx_refuse(call, DEVX_BAD_PARAM, 0x10c, "opt_param_mask_95_32",
                           0);
    }
    stream = devx_get(call->in, STREAM_ID);
    return (hca_stream_reset(hw, stream) == 0) ?
               DEVX_OK :
               devx_refuse(call, DEVX_BAD_PARAM, 0x110,
                           "dci_stream_channel_id, not in error,", stream);
}
