/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Requests as libmlx5 sends them, with a few values from the input: they create
 * objects of every kind, in every state.
 */
#define _GNU_SOURCE
#include "fuzz_req.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int fuzz_get_context(int fd)
{
    struct mlx5_ib_alloc_ucontext_req_v2 ucmd = {
        .max_cqe_version = 1,
        .lib_caps        = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
        .flags           = MLX5_IB_ALLOC_UCTX_DEVX,
    };
    struct fuzz_req req = {0};

    fuzz_in(&req, UVERBS_ATTR_UHW_IN, &ucmd, sizeof(ucmd));
    fuzz_attr(&req, UVERBS_ATTR_UHW_OUT,
              sizeof(struct mlx5_ib_alloc_ucontext_resp),
              (uintptr_t)fuzz_buf + FUZZ_OUT);
    return fuzz_send(fd, &req, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
}

uint32_t fuzz_alloc_uar(int fd, void **page)
{
    uint8_t *out        = fuzz_buf + FUZZ_OUT;
    struct fuzz_req req = {0};
    uint32_t page_id;
    uint64_t offset;

    fuzz_attr(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0, 0);
    fuzz_const(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 8,
               MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
    fuzz_attr(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8, (uintptr_t)out);
    fuzz_attr(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4,
              (uintptr_t)out + 8);
    fuzz_attr(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4, (uintptr_t)out + 16);
    if (fuzz_send(fd, &req, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC) !=
        0) {
        abort();
    }
    memcpy(&offset, out, sizeof(offset));
    memcpy(&page_id, out + 16, sizeof(page_id));
    *page = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, offset);
    return page_id;
}

static void fuzz_alloc_pd(int fd, uint32_t uar)
{
    struct ib_uverbs_alloc_pd cmd = {0};

    (void)uar;
    fuzz_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd));
}

static void fuzz_reg_mr(int fd, uint32_t uar)
{
    struct ib_uverbs_reg_mr cmd = {
        .start        = (uintptr_t)fuzz_buf + fuzz_int(2),
        .length       = fuzz_int(2),
        .pd_handle    = fuzz_handle(UVERBS_OBJECT_PD),
        .access_flags = fuzz_int(1),
    };

    (void)uar;
    cmd.hca_va = (fuzz_below(4) == 0) ? fuzz_int(4) : cmd.start;
    fuzz_write(fd, IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd));
}

static void fuzz_create_cq(int fd, uint32_t uar)
{
    struct mlx5_ib_create_cq ucmd = {
        .buf_addr       = fuzz_ring_addr(),
        .db_addr        = fuzz_ring_addr(),
        .cqe_size       = fuzz_below(2) ? 64 : 128,
        .flags          = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX,
        .uar_page_index = uar,
    };
    struct fuzz_req req = {0};

    fuzz_attr(&req, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
    fuzz_const(&req, UVERBS_ATTR_CREATE_CQ_CQE, 4, fuzz_int(1));
    fuzz_const(&req, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, fuzz_int(4));
    fuzz_const(&req, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 0);
    fuzz_const(&req, UVERBS_ATTR_CREATE_CQ_FLAGS, 4, fuzz_below(5));
    fuzz_out(&req, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4);
    if ((fuzz_num_fds > 0) && fuzz_below(2)) {
        fuzz_attr(&req, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 0,
                  fuzz_fds[fuzz_below(fuzz_num_fds)]);
    }
    fuzz_in(&req, UVERBS_ATTR_UHW_IN, &ucmd, sizeof(ucmd));
    fuzz_out(&req, UVERBS_ATTR_UHW_OUT, 8);
    fuzz_send(fd, &req, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
}

static void fuzz_create_srq(int fd, uint32_t uar)
{
    struct mlx5_ib_create_srq ucmd = {
        .buf_addr = fuzz_ring_addr(),
        .db_addr  = fuzz_ring_addr(),
        .uidx     = fuzz_int(1),
    };
    struct fuzz_req req = {0};

    (void)uar;
    fuzz_attr(&req, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0, 0);
    fuzz_attr(&req, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, 0,
              fuzz_handle(UVERBS_OBJECT_PD));
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, fuzz_int(4));
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_TYPE, 8, fuzz_below(8) / 3);
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, fuzz_int(1));
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, fuzz_below(40));
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, fuzz_int(1));
    if (fuzz_below(2)) {
        fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, 4, fuzz_int(2));
        fuzz_attr(&req, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, 0,
                  fuzz_handle(UVERBS_OBJECT_XRCD));
        fuzz_attr(&req, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, 0,
                  fuzz_handle(UVERBS_OBJECT_CQ));
    }
    fuzz_out(&req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4);
    fuzz_out(&req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4);
    fuzz_out(&req, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4);
    fuzz_in(&req, UVERBS_ATTR_UHW_IN, &ucmd, sizeof(ucmd));
    fuzz_out(&req, UVERBS_ATTR_UHW_OUT, 8);
    fuzz_send(fd, &req, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
}

/* QP type of verbs, and its mlx5 flags */
static const uint32_t fuzz_qp_types[][2] = {
    {IB_UVERBS_QPT_RC, 0},
    {IB_UVERBS_QPT_UC, MLX5_QP_FLAG_SCATTER_CQE},
    {IB_UVERBS_QPT_UD, 0},
    {IB_UVERBS_QPT_XRC_INI, 0},
    {IB_UVERBS_QPT_XRC_TGT, 0},
    {IB_UVERBS_QPT_DRIVER, MLX5_QP_FLAG_TYPE_DCI},
    {IB_UVERBS_QPT_DRIVER, MLX5_QP_FLAG_TYPE_DCT},
    {IB_UVERBS_QPT_RAW_PACKET, MLX5_QP_FLAG_SIGNATURE},
};

static void fuzz_qp_objects(struct fuzz_req *req, const uint32_t qp_type[2])
{
    uint32_t type = qp_type[0];
    bool dct      = qp_type[1] == MLX5_QP_FLAG_TYPE_DCT;

    if (type == IB_UVERBS_QPT_XRC_TGT) {
        fuzz_attr(req, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, 0,
                  fuzz_handle(UVERBS_OBJECT_XRCD));
    } else {
        fuzz_attr(req, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0,
                  fuzz_handle(UVERBS_OBJECT_PD));
        fuzz_attr(req, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0,
                  fuzz_handle(UVERBS_OBJECT_CQ));
    }
    if (fuzz_below(8) != 0) {
        fuzz_attr(req, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0,
                  fuzz_handle(UVERBS_OBJECT_CQ));
    }
    if (fuzz_below(8) < (dct ? 7 : 3)) {
        fuzz_attr(req, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, 0,
                  fuzz_handle(UVERBS_OBJECT_SRQ));
    }
}

static void fuzz_create_qp(int fd, uint32_t uar)
{
    const uint32_t *type = fuzz_qp_types[fuzz_below(FUZZ_COUNT(fuzz_qp_types))];
    struct ib_uverbs_qp_cap cap   = {.max_send_wr = 4,
                                     .max_recv_wr = fuzz_below(4)};
    struct mlx5_ib_create_qp ucmd = {
        .buf_addr     = fuzz_ring_addr(),
        .db_addr      = fuzz_ring_addr(),
        .sq_wqe_count = fuzz_below(4) * 8,
        .rq_wqe_count = 1u << fuzz_below(4),
        .rq_wqe_shift = fuzz_below(12),
        .flags        = type[1] | MLX5_QP_FLAG_UAR_PAGE_INDEX,
        .uidx         = fuzz_int(1),
        .bfreg_index  = uar,
    };
    struct fuzz_req req = {0};

    fuzz_attr(&req, UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0);
    fuzz_qp_objects(&req, type);
    fuzz_const(&req, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, fuzz_int(4));
    fuzz_in(&req, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
    fuzz_const(&req, UVERBS_ATTR_CREATE_QP_TYPE, 8, type[0]);
    fuzz_out(&req, UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(cap));
    fuzz_out(&req, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4);
    fuzz_in(&req, UVERBS_ATTR_UHW_IN, &ucmd, sizeof(ucmd));
    fuzz_out(&req, UVERBS_ATTR_UHW_OUT, 40);
    fuzz_send(fd, &req, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
}

#define FUZZ_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define FUZZ_RTR  (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER)
#define FUZZ_RTS \
    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
     IBV_QP_MAX_QP_RD_ATOMIC)

static void fuzz_modify_qp(int fd, uint32_t uar)
{
    static const uint32_t masks[] = {
        0,
        FUZZ_INIT,
        IBV_QP_PKEY_INDEX | IBV_QP_PORT,
        FUZZ_RTR,
        FUZZ_RTS,
        FUZZ_RTR | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC,
        IBV_QP_PATH_MTU,
        IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
        IBV_QP_SQ_PSN,
    };
    struct ib_uverbs_ex_modify_qp cmd = {0};
    struct fuzz_req req               = {0};

    (void)uar;
    fuzz_bytes(&cmd.base.dest, sizeof(cmd.base.dest));
    cmd.base.qp_handle = fuzz_handle(UVERBS_OBJECT_QP);
    cmd.base.attr_mask = masks[fuzz_below(FUZZ_COUNT(masks))] | IBV_QP_STATE;
    cmd.base.qp_state  = fuzz_below(8);
    cmd.base.dest.port_num = 1;
    cmd.base.port_num      = 1;
    cmd.base.path_mtu      = fuzz_below(6);
    cmd.base.dest_qp_num   = fuzz_int(3);
    fuzz_const(&req, UVERBS_ATTR_WRITE_CMD, 8,
               UVERBS_EX(IB_USER_VERBS_EX_CMD_MODIFY_QP));
    fuzz_in(&req, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
    fuzz_out(&req, UVERBS_ATTR_CORE_OUT, 8);
    fuzz_out(&req, UVERBS_ATTR_UHW_OUT, fuzz_below(17));
    fuzz_send(fd, &req, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
}

static void fuzz_create_ah(int fd, uint32_t uar)
{
    struct ib_uverbs_create_ah cmd = {0};
    struct fuzz_req req            = {0};

    (void)uar;
    cmd.pd_handle = fuzz_handle(UVERBS_OBJECT_PD);
    fuzz_bytes(&cmd.attr.grh, fuzz_below(24));
    cmd.attr.sl        = fuzz_below(17);
    cmd.attr.port_num  = 1;
    cmd.attr.is_global = fuzz_below(2);
    fuzz_const(&req, UVERBS_ATTR_WRITE_CMD, 8, IB_USER_VERBS_CMD_CREATE_AH);
    fuzz_in(&req, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
    fuzz_out(&req, UVERBS_ATTR_CORE_OUT, 4);
    if (fuzz_below(2)) {
        fuzz_attr(&req, UVERBS_ATTR_UHW_OUT, fuzz_below(20),
                  (uintptr_t)fuzz_buf + FUZZ_OUT + 512);
    }
    fuzz_write_uhw(fd, &req, IB_USER_VERBS_CMD_CREATE_AH);
}

static void fuzz_open_xrcd(int fd, uint32_t uar)
{
    struct ib_uverbs_open_xrcd cmd = {
        .fd     = fuzz_below(2) ? (uint32_t)-1 : (uint32_t)fd,
        .oflags = O_CREAT,
    };

    (void)uar;
    fuzz_write(fd, IB_USER_VERBS_CMD_OPEN_XRCD, &cmd, sizeof(cmd));
}

static void fuzz_comp_channel(int fd, uint32_t uar)
{
    struct ib_uverbs_create_comp_channel cmd = {0};

    (void)uar;
    if (fuzz_num_fds < FUZZ_MAX_FDS) {
        fuzz_write(fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &cmd,
                   sizeof(cmd));
    }
}

const fuzz_op fuzz_mlx5_ops[] = {
    fuzz_alloc_pd,  fuzz_reg_mr,       fuzz_create_cq, fuzz_create_srq,
    fuzz_create_qp, fuzz_modify_qp,    fuzz_modify_qp, fuzz_open_xrcd,
    fuzz_create_ah, fuzz_comp_channel, fuzz_devx,      fuzz_devx,
    fuzz_devx,      fuzz_devx,         fuzz_tm,        fuzz_umr,
};
const unsigned fuzz_num_mlx5_ops = FUZZ_COUNT(fuzz_mlx5_ops);
