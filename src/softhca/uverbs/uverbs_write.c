/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Write commands: the older interface of ib_uverbs, whose commands arrive in
 * the ioctl INVOKE_WRITE. The file of each object has a table of its commands.
 */
#define _GNU_SOURCE
#include "softhca/exec/hca_fatal.h"
#include "uverbs.h"

#include <errno.h>

static const struct uverbs_write *const uverbs_writes[] = {
    uverbs_device_writes, uverbs_pd_writes, uverbs_mr_writes,
    uverbs_mw_writes,     uverbs_cq_writes, uverbs_srq_writes,
    uverbs_xrcd_writes,   uverbs_ah_writes, uverbs_qp_writes,
    uverbs_event_writes,
};

static const struct uverbs_write *uverbs_write_row(uint64_t cmd)
{
    unsigned num = sizeof(uverbs_writes) / sizeof(uverbs_writes[0]);

    for (unsigned i = 0; i < num; i++) {
        const struct uverbs_write *row = uverbs_writes[i];

        for (; row->handler != NULL; row++) {
            if (row->cmd == cmd) {
                return row;
            }
        }
    }
    return NULL;
}

const char *uverbs_write_name(const struct uverbs_req *req)
{
    const struct uverbs_write *row =
        uverbs_write_row(uverbs_get_const(req, UVERBS_ATTR_WRITE_CMD));

    return (row == NULL) ? "unknown" : row->name;
}

/* Commands that answer for a device that has failed, too */
static bool uverbs_write_may_end(uint64_t cmd)
{
    return (cmd == IB_USER_VERBS_CMD_MODIFY_QP) ||
           (cmd == UVERBS_EX(IB_USER_VERBS_EX_CMD_MODIFY_QP));
}

int uverbs_write(struct uverbs_req *req)
{
    uint64_t cmd = uverbs_get_const(req, UVERBS_ATTR_WRITE_CMD);
    const struct uverbs_write *row;

    if (cmd > UINT32_MAX) {
        return -EINVAL;
    }
    row = uverbs_write_row(cmd);
    if (row == NULL) {
        return -EOPNOTSUPP;
    }
    /* libibverbs probes without any data, and takes this error as the sign that
     * it may send write commands by ioctl */
    if ((uverbs_len(req, UVERBS_ATTR_CORE_IN) < row->req_size) ||
        (uverbs_len(req, UVERBS_ATTR_CORE_OUT) < row->resp_size)) {
        return -ENOSPC;
    }
    if (!uverbs_write_may_end(cmd) && hca_fatal_is(hca_self, req->ctx->dev)) {
        return -EIO;
    }
    return req->ctx->ready ? row->handler(req) : -EINVAL;
}
