/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DEVX: commands of the device's own interface, given as they are (PRM,
 * chapter "Command interface"; mlx5_ifc.h). A command is a row of a table by
 * its opcode; one without a row is not supported, which is what libmlx5 and
 * UCX expect of a function that has no such right, and do without.
 */
#define _GNU_SOURCE
#include "uverbs_objs.h"
#include "hca_log.h"

#include <errno.h>
#include <string.h>

/* Both mailboxes begin with 16 bits of opcode (in) and 8 of status (out). */
#define DEVX_MIN_MAILBOX 16u
#define DEVX_MAX_MAILBOX 4096u

struct devx_cmd {
    uint16_t    opcode;
    const char *name;
    uint16_t    in_size, out_size; /* the least */
    int       (*run)(struct uverbs_req *req, const uint8_t *in, uint8_t *out);
};

/* General commands: they make no object. Ends with a row without a name. */
static const struct devx_cmd devx_general[] = {
    {.name = NULL},
};

static const struct devx_cmd *devx_find(const struct devx_cmd *cmds,
                                        uint16_t opcode)
{
    for (; cmds->name != NULL; cmds++) {
        if (cmds->opcode == opcode) {
            return cmds;
        }
    }
    return NULL;
}

static const struct uverbs_attr_spec devx_other_attrs[] = {
    {MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, UVERBS_IN, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
    {MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, UVERBS_OUT, UVERBS_MANDATORY,
     DEVX_MIN_MAILBOX, UINT16_MAX, 0},
};

static int devx_other(struct uverbs_req *req)
{
    uint8_t in[DEVX_MAX_MAILBOX], out[DEVX_MAX_MAILBOX] = {0};
    size_t in_len  = uverbs_len(req, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN);
    size_t out_len = uverbs_len(req, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT);
    const struct devx_cmd *cmd;
    uint16_t opcode;
    int ret;

    if ((in_len > sizeof(in)) || (out_len > sizeof(out) * 16)) {
        return -EINVAL;
    }
    ret = uverbs_get(req, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, sizeof(in));
    if (ret != 0) {
        return ret;
    }
    opcode = (in[0] << 8) | in[1];
    cmd    = devx_find(devx_general, opcode);
    if (cmd == NULL) {
        hca_debug("devx: command 0x%x: not supported", opcode);
        return -EOPNOTSUPP;
    }
    if ((in_len < cmd->in_size) || (out_len < cmd->out_size)) {
        return -EINVAL;
    }
    ret = cmd->run(req, in, out);
    return (ret != 0) ? ret :
           uverbs_put(req, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, sizeof(out));
}

static const struct uverbs_attr_spec devx_query_uar_attrs[] = {
    {MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, UVERBS_IN, UVERBS_MANDATORY, 4, 4,
     0},
    {MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, UVERBS_OUT, UVERBS_MANDATORY, 4, 4,
     0},
};

/* From an index of the library to the page of the device: the same, as the
 * pages are all made by ALLOC_UAR. */
static int devx_query_uar(struct uverbs_req *req)
{
    uint32_t uar = uverbs_get_const(req, MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX);

    return !uverbs_uar_valid(req->ctx, uar) ? -EINVAL :
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

    return (eqn >= UVERBS_NUM_VECTORS) ? -EINVAL :
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
    {.handler = NULL},
};
