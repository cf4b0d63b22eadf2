/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The ioctl methods that carry DEVX commands: check that the method may carry
 * the command, copy both mailboxes, run the command, answer. If the device
 * refuses a command, the error is EREMOTEIO and the out mailbox is written
 * (since Linux 5.18; libmlx5 reads the status from there,
 * mlx5_get_cmd_status_err()).
 */
#define _GNU_SOURCE
#include "devx.h"
#include "devx_qp.h"
#include "softhca/base/hca_log.h"
#include "softhca/exec/hca_fatal.h"
#include "softhca/fabric/hca_rules.h"
#include "softhca/uverbs/uverbs_qp.h"
#include "softhca/uverbs/uverbs_uar.h"

#include <errno.h>
#include <stdlib.h>

#define DEVX_MIN_MAILBOX 16u           /* size of general_obj_in_cmd_hdr */
#define DEVX_MAX_OUT     (16u + 4096u) /* a page of capabilities */

static const struct devx_cmd *const devx_cmds[] = {
    devx_cap_cmds, devx_mkey_cmds,      devx_cq_cmds,
    devx_rmp_cmds, devx_xrq_cmds,       devx_dct_cmds,
    devx_qp_cmds,  devx_qp_modify_cmds, devx_qpn_cmds,
};

static const struct devx_cmd *devx_find(uint16_t opcode)
{
    for (unsigned i = 0; i < sizeof(devx_cmds) / sizeof(devx_cmds[0]); i++) {
        const struct devx_cmd *cmd = devx_cmds[i];

        for (; cmd->name != NULL; cmd++) {
            if (cmd->opcode == opcode) {
                return cmd;
            }
        }
    }
    return NULL;
}

/* A mailbox may be longer than the command's layout if the rest is zero: newer
 * programs have longer layouts. A command with has_list checks the rest
 * itself. */
static enum devx_status devx_check_sizes(struct devx_call *call)
{
    enum devx_status status;

    if (call->in_len < call->cmd->in_size) {
        return devx_refuse(call, DEVX_BAD_INP_LEN, 0, "size of the in mailbox",
                           call->in_len);
    }
    if (!call->cmd->has_list) {
        status = devx_check_rest(call, call->cmd->in_size);
        if (status != DEVX_OK) {
            return status;
        }
    }
    return (call->out_len >= call->cmd->out_size) ?
               DEVX_OK :
               devx_refuse(call, DEVX_BAD_OUTP_LEN, 0,
                           "size of the out mailbox", call->out_len);
}

static enum devx_status devx_run(struct devx_call *call)
{
    enum devx_status status = devx_check_sizes(call);

    if ((status == DEVX_OK) && (call->cmd->class == DEVX_CREATE)) {
        status = devx_obj_new(call);
    }
    if (status != DEVX_OK) {
        return status;
    }
    status = call->cmd->run(call);
    if (call->cmd->class == DEVX_CREATE) {
        if (status == DEVX_OK) {
            devx_set(call->out, DEVX_OUT_NUMBER, call->obj->number);
        } else {
            devx_obj_undo(call);
        }
    }
    return status;
}

/* Copies the in mailbox and finds the row of its opcode; call->cmd is NULL if
 * there is none. @return -EINVAL if commands of this row need another
 * method. */
static int devx_call_init(struct uverbs_req *req, struct devx_call *call,
                          uint16_t in_id, enum devx_class class)
{
    uint8_t *in;
    int ret;

    call->ctx    = req->ctx;
    call->in_len = uverbs_len(req, in_id);
    in           = calloc(1, call->in_len);
    if (in == NULL) {
        return -ENOMEM;
    }
    call->in = in;
    ret      = uverbs_get(req, in_id, in, call->in_len);
    if (ret != 0) {
        return ret;
    }
    call->cmd = devx_find(devx_get(in, DEVX_IN_OPCODE));
    return ((call->cmd != NULL) && (call->cmd->class != class)) ? -EINVAL : 0;
}

/* Runs the command and writes the answer, also if the command failed. */
static int devx_execute(struct uverbs_req *req, struct devx_call *call,
                        uint16_t out_id)
{
    uint8_t out[DEVX_MAX_OUT] = {0};
    enum devx_status status   = DEVX_BAD_OP;
    int ret;

    if (hca_fatal_is(hca_self, call->ctx->dev) &&
        ((call->cmd == NULL) || !call->cmd->is_end)) {
        return -EIO;
    }
    call->out     = out;
    call->out_len = uverbs_len(req, out_id);
    if (call->cmd == NULL) {
        hca_debug("devx: command 0x%x: not supported",
                  (unsigned)devx_get(call->in, DEVX_IN_OPCODE));
    } else if (hca_rules_are_set() &&
               (hca_rules_fail(HCA_RULE_DEVX, call->cmd->name) != 0)) {
        status = DEVX_NO_RES;
    } else if (hca_fatal_is(hca_self, call->ctx->dev)) {
        status = DEVX_OK;
    } else {
        status = devx_run(call);
        hca_debug("devx: %s: status 0x%x", call->cmd->name, status);
    }
    devx_set(out, DEVX_OUT_STATUS, status);
    devx_set(out, DEVX_OUT_SYNDROME, call->syndrome);
    ret = uverbs_put(req, out_id, out, sizeof(out));
    return ((ret == 0) && (status != DEVX_OK)) ? -EREMOTEIO : ret;
}

static const struct uverbs_attr_spec devx_other_attrs[] = {
    {MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, UVERBS_IN, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
    {MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, UVERBS_OUT, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
};

static int devx_other(struct uverbs_req *req)
{
    struct devx_call call = {0};
    int ret;

    ret = devx_call_init(req, &call, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN,
                         DEVX_GENERAL);
    if (ret == 0) {
        ret = devx_execute(req, &call, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT);
    }
    free((void *)call.in);
    return ret;
}

static const struct uverbs_attr_spec devx_create_attrs[] = {
    {MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0, 0,
     0},
    {MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, UVERBS_IN, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
    {MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, UVERBS_OUT, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
};

static int devx_create(struct uverbs_req *req)
{
    struct devx_call call = {0};
    int ret;

    ret = devx_call_init(req, &call, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
                         DEVX_CREATE);
    if (ret == 0) {
        ret = devx_execute(req, &call, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT);
    }
    if (ret == 0) {
        ret = uverbs_put_handle(req, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE,
                                call.obj->obj.handle);
    }
    if ((ret != 0) && (call.obj != NULL)) {
        uverbs_obj_destroy(&call.obj->obj, NULL);
    }
    free((void *)call.in);
    return ret;
}

/* Returns true if the device knows @obj by @number, and if it was made by the
 * command @creator or by its counterpart in verbs. */
static bool devx_is_of(const struct uverbs_obj *obj, uint16_t creator,
                       uint32_t number)
{
    const struct hca_srq *srq;
    const struct hca_qp *qp;

    switch (obj->type) {
    case MLX5_IB_OBJECT_DEVX_OBJ:
        return (((const struct devx_obj *)obj)->cmd->opcode == creator) &&
               (((const struct devx_obj *)obj)->number == number);
    case UVERBS_OBJECT_CQ:
        return (((const struct uverbs_cq *)obj)->cq->obj.num == number) &&
               (creator == DEVX_OP_CREATE_CQ);
    case UVERBS_OBJECT_QP:
        qp = uverbs_qp_hw((const struct uverbs_qp *)obj);
        return (qp != NULL) && (atomic_load(&qp->obj.num) == number) &&
               (creator == ((qp->type == HCA_QP_DCT) ? DEVX_OP_CREATE_DCT :
                                                       DEVX_OP_CREATE_QP));
    case UVERBS_OBJECT_SRQ:
        srq = ((const struct uverbs_srq *)obj)->srq;
        return (srq->obj.num == number) &&
               (creator ==
                ((srq->tm != 0) ? DEVX_OP_CREATE_XRQ : DEVX_OP_CREATE_RMP));
    default:
        return false;
    }
}

/* MODIFY and QUERY: the mailbox must name the object of the handle (the
 * kernel's devx_is_valid_obj_id()). */
static int devx_on_object(struct uverbs_req *req, enum devx_class class)
{
    const struct uverbs_attr_spec *attrs = req->method->attrs;
    struct devx_call call                = {0};
    int ret;

    ret = devx_call_init(req, &call, attrs[1].id, class);
    if ((ret == 0) && (call.cmd != NULL)) {
        call.number = (call.in_len < call.cmd->in_size) ?
                          0 :
                          devx_get(call.in, call.cmd->number);
        ret = devx_is_of(uverbs_get_obj(req, attrs[0].id), call.cmd->creator,
                         call.number) ?
                  0 :
                  -EINVAL;
    }
    if (ret == 0) {
        ret = devx_execute(req, &call, attrs[2].id);
    }
    free((void *)call.in);
    return ret;
}

static const struct uverbs_attr_spec devx_modify_attrs[] = {
    {MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_ANY_TYPE},
    {MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, UVERBS_IN, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
    {MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, UVERBS_OUT, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
};

static int devx_modify(struct uverbs_req *req)
{
    return devx_on_object(req, DEVX_MODIFY);
}

static const struct uverbs_attr_spec devx_query_attrs[] = {
    {MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_ANY_TYPE},
    {MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, UVERBS_IN, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
    {MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, UVERBS_OUT, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
};

static int devx_query(struct uverbs_req *req)
{
    return devx_on_object(req, DEVX_QUERY);
}

static const struct uverbs_attr_spec devx_destroy_attrs[] = {
    {MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     MLX5_IB_OBJECT_DEVX_OBJ},
};

static const struct uverbs_attr_spec devx_query_uar_attrs[] = {
    {MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, UVERBS_IN, UVERBS_MANDATORY, 4, 4,
     0},
    {MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, UVERBS_OUT, UVERBS_MANDATORY, 4, 4,
     0},
};

/* Translates a UAR index of libmlx5 into that of the device. Both are the same,
 * as ALLOC_UAR makes all pages. */
static int devx_query_uar(struct uverbs_req *req)
{
    uint32_t uar = uverbs_get_const(req, MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX);

    return !uverbs_uar_valid(req->ctx, uar) ?
               -EINVAL :
               uverbs_put(req, MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, &uar,
                          sizeof(uar));
}

static const struct uverbs_attr_spec devx_query_eqn_attrs[] = {
    {MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, UVERBS_IN, UVERBS_MANDATORY, 4, 4,
     0},
    {MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, UVERBS_OUT, UVERBS_MANDATORY, 4, 4,
     0},
};

static int devx_query_eqn(struct uverbs_req *req)
{
    uint32_t eqn = uverbs_get_const(req, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC);

    return (eqn >= UVERBS_NUM_VECTORS) ?
               -EINVAL :
               uverbs_put(req, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &eqn,
                          sizeof(eqn));
}

const struct uverbs_method devx_methods[] = {
    {.object  = MLX5_IB_OBJECT_DEVX,
     .id      = MLX5_IB_METHOD_DEVX_OTHER,
     .name    = "devx_other",
     .handler = devx_other,
     UVERBS_ATTRS(devx_other_attrs)},
    {.object  = MLX5_IB_OBJECT_DEVX,
     .id      = MLX5_IB_METHOD_DEVX_QUERY_UAR,
     .name    = "devx_query_uar",
     .handler = devx_query_uar,
     UVERBS_ATTRS(devx_query_uar_attrs)},
    {.object  = MLX5_IB_OBJECT_DEVX,
     .id      = MLX5_IB_METHOD_DEVX_QUERY_EQN,
     .name    = "devx_query_eqn",
     .handler = devx_query_eqn,
     UVERBS_ATTRS(devx_query_eqn_attrs)},
    {.object  = MLX5_IB_OBJECT_DEVX_OBJ,
     .id      = MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     .name    = "devx_obj_create",
     .handler = devx_create,
     UVERBS_ATTRS(devx_create_attrs)},
    {.object  = MLX5_IB_OBJECT_DEVX_OBJ,
     .id      = MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
     .name    = "devx_obj_destroy",
     .is_end  = true,
     .handler = uverbs_destroy,
     UVERBS_ATTRS(devx_destroy_attrs)},
    {.object  = MLX5_IB_OBJECT_DEVX_OBJ,
     .id      = MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
     .name    = "devx_obj_modify",
     .may_end = true,
     .handler = devx_modify,
     UVERBS_ATTRS(devx_modify_attrs)},
    {.object  = MLX5_IB_OBJECT_DEVX_OBJ,
     .id      = MLX5_IB_METHOD_DEVX_OBJ_QUERY,
     .name    = "devx_obj_query",
     .handler = devx_query,
     UVERBS_ATTRS(devx_query_attrs)},
    {.handler = NULL},
};
