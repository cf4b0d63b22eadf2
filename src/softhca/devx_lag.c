/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * QUERY_LAG: whether the port is a bond. Layout: mlx5_ifc.h,
 * query_lag_in_bits, query_lag_out_bits.
 */
#include "devx.h"
#include "hca_dev.h"

static const struct devx_field devx_lag_in[] = {
    DEVX_HEADER_FIELDS,
    {.name = NULL}
};

#define DEVX_LAG_STATE DEVX_BITS(0x08, 2, 0) /* lagc_bits: 0 is none */

static enum devx_status devx_query_lag(struct devx_call *call)
{
    enum devx_status status = devx_check(call, 0, 16, devx_lag_in);

    if (status == DEVX_OK) {
        devx_set(call->out, DEVX_LAG_STATE,
                 hca_dev_is_roce(call->ctx->dev) && hca_config.lag);
    }
    return status;
}

const struct devx_cmd devx_lag_cmds[] = {
    {.opcode = 0x842, .class = DEVX_GENERAL, .name = "query_lag",
     .in_size = 16, .out_size = 16, .run = devx_query_lag},
    {.name = NULL}
};
