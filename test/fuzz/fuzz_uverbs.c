/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * libFuzzer target of the kernel's half: one input is a sequence of ioctls on
 * a freshly opened device. Some are what libmlx5 would send with a few values
 * of its own, so that objects come about; the others are rows of the method
 * tables with random attributes, write commands cut short, and plain noise.
 * After each input the context is closed: nothing of it may be left in the
 * fabric, nor (LeakSanitizer) on the heap.
 *
 * What a bad pointer does is part of it: addresses are taken from a buffer
 * whose end is not mapped, or lead nowhere. An answer is never sent to an
 * address that comes from the input, as it might hit the target's own memory.
 */
#define _GNU_SOURCE
#include "softhca/uverbs_objs.h"
#include "softhca/hca_dev.h"
#include "softhca/hca_log.h"
#include "softhca/hca_proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_MAX_OPS   24
#define FUZZ_MAX_FDS   64
#define FUZZ_BUF_SIZE  16384
#define FUZZ_RING_SIZE (1u << 20)

/* What is left of the input; reads past its end are zero. */
static const uint8_t *fuzz_data;
static size_t fuzz_left;

static uint8_t *fuzz_buf;  /* the program's memory; behind it is none */
static uint8_t *fuzz_ring; /* in the arena */
static int fuzz_fds[FUZZ_MAX_FDS], fuzz_num_fds;

static const struct uverbs_method *const fuzz_methods[] = {
    uverbs_context_methods, uverbs_port_methods, uverbs_pd_methods,
    uverbs_mr_methods,      uverbs_mw_methods,   uverbs_dm_methods,
    uverbs_cq_methods,      uverbs_srq_methods,  uverbs_xrcd_methods,
    uverbs_ah_methods,      uverbs_qp_methods,   uverbs_event_methods,
    uverbs_uar_methods,     uverbs_odp_methods,  devx_methods,
};

static const struct uverbs_write *const fuzz_writes[] = {
    uverbs_device_writes, uverbs_pd_writes,   uverbs_mr_writes,
    uverbs_mw_writes,     uverbs_cq_writes,   uverbs_srq_writes,
    uverbs_xrcd_writes,   uverbs_ah_writes,   uverbs_qp_writes,
    uverbs_event_writes,
};

#define FUZZ_COUNT(_table) (sizeof(_table) / sizeof((_table)[0]))

/* Objects of the fabric that are alive. Linked with --wrap= for these. */
static int fuzz_live[HCA_NUM_KINDS];

void *__real_hca_obj_alloc(enum hca_kind kind, unsigned dev);
void *__wrap_hca_obj_alloc(enum hca_kind kind, unsigned dev);
void __real_hca_obj_free(enum hca_kind kind, void *obj);
void __wrap_hca_obj_free(enum hca_kind kind, void *obj);
int64_t __real_hca_chan_create(unsigned dev, int *fd);
int64_t __wrap_hca_chan_create(unsigned dev, int *fd);

void *__wrap_hca_obj_alloc(enum hca_kind kind, unsigned dev)
{
    void *obj = __real_hca_obj_alloc(kind, dev);

    fuzz_live[kind] += (obj != NULL);
    return obj;
}

void __wrap_hca_obj_free(enum hca_kind kind, void *obj)
{
    fuzz_live[kind]--;
    __real_hca_obj_free(kind, obj);
}

/* The program's descriptors: it would close them itself. */
int64_t __wrap_hca_chan_create(unsigned dev, int *fd)
{
    int64_t chan = __real_hca_chan_create(dev, fd);

    if ((chan >= 0) && (fuzz_num_fds < FUZZ_MAX_FDS)) {
        fuzz_fds[fuzz_num_fds++] = *fd; /* a failed answer closes it early */
    }
    return chan;
}

static void fuzz_bytes(void *dst, size_t size)
{
    size_t given = (size < fuzz_left) ? size : fuzz_left;

    memset(dst, 0, size);
    memcpy(dst, fuzz_data, given);
    fuzz_data += given;
    fuzz_left -= given;
}

static uint32_t fuzz_int(unsigned bytes)
{
    uint32_t value = 0;

    fuzz_bytes(&value, bytes);
    return value;
}

static uint32_t fuzz_below(uint32_t count)
{
    return fuzz_int(1) % count;
}

/* An address for the device to write to or to read from. */
static uint64_t fuzz_addr(size_t size)
{
    switch (fuzz_below(8)) {
    case 0:
        return 0;
    case 1:
        return 0xdead000000000000ull; /* not canonical */
    case 2:
        return (uintptr_t)fuzz_buf + FUZZ_BUF_SIZE - size / 2; /* cut short */
    default:
        return (uintptr_t)fuzz_buf + 4096 + fuzz_int(1) * 8;
    }
}

static uint64_t fuzz_ring_addr(void)
{
    switch (fuzz_below(16)) {
    case 0:
        return (uintptr_t)fuzz_buf;
    case 1:
        return (uintptr_t)fuzz_ring + FUZZ_RING_SIZE - 64;
    default:
        return (uintptr_t)fuzz_ring + fuzz_below(16) * 4096;
    }
}

/* --- requests ------------------------------------------------------------ */
struct fuzz_req {
    unsigned              num_attrs;
    struct ib_uverbs_attr attrs[32];
};

static struct ib_uverbs_attr *fuzz_attr(struct fuzz_req *req, uint16_t id,
                                        uint16_t len, uint64_t data)
{
    struct ib_uverbs_attr *attr = &req->attrs[req->num_attrs];

    if (req->num_attrs + 1 < FUZZ_COUNT(req->attrs)) {
        req->num_attrs++;
    }
    *attr = (struct ib_uverbs_attr){
        .attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY,
        .data = data
    };
    return attr;
}

static void fuzz_const(struct fuzz_req *req, uint16_t id, uint16_t len,
                       uint64_t value)
{
    fuzz_attr(req, id, len, value);
}

/* Bytes of `size` in the program's memory, each attribute at its own place. */
static void fuzz_in(struct fuzz_req *req, uint16_t id, const void *src,
                    size_t size)
{
    uint8_t *at = fuzz_buf + req->num_attrs * 256;

    if (size <= 8) {
        uint64_t data = 0;
        memcpy(&data, src, size);
        fuzz_attr(req, id, size, data);
        return;
    }
    memcpy(at, src, size);
    fuzz_attr(req, id, size, (uintptr_t)at);
}

static void fuzz_out(struct fuzz_req *req, uint16_t id, size_t size)
{
    fuzz_attr(req, id, size, (uintptr_t)fuzz_buf + 12288);
}

static int fuzz_send(int fd, const struct fuzz_req *req, uint16_t object,
                     uint16_t method)
{
    size_t size = req->num_attrs * sizeof(req->attrs[0]);
    struct ib_uverbs_ioctl_hdr hdr = {
        .length    = sizeof(hdr) + size,
        .object_id = object,
        .method_id = method,
        .num_attrs = req->num_attrs,
        .driver_id = RDMA_DRIVER_MLX5,
    };
    uint8_t *at = fuzz_buf + 8192;

    memcpy(at, &hdr, sizeof(hdr));
    memcpy(at + sizeof(hdr), req->attrs, size);
    return uverbs_ioctl(fd, RDMA_VERBS_IOCTL, at);
}

/* --- what libmlx5 sends -------------------------------------------------- */
static int fuzz_get_context(int fd)
{
    struct mlx5_ib_alloc_ucontext_req_v2 ucmd = {
        .max_cqe_version = 1,
        .lib_caps        = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
        .flags           = MLX5_IB_ALLOC_UCTX_DEVX,
    };
    struct fuzz_req req = {0};

    fuzz_in(&req, UVERBS_ATTR_UHW_IN, &ucmd, sizeof(ucmd));
    fuzz_out(&req, UVERBS_ATTR_UHW_OUT,
             sizeof(struct mlx5_ib_alloc_ucontext_resp));
    return fuzz_send(fd, &req, UVERBS_OBJECT_DEVICE,
                     UVERBS_METHOD_GET_CONTEXT);
}

/* A doorbell page, mapped as the program would. @return its number. */
static uint32_t fuzz_alloc_uar(int fd, void **page)
{
    uint8_t *out        = fuzz_buf + 12288;
    struct fuzz_req req = {0};
    uint32_t page_id;
    uint64_t offset;

    fuzz_attr(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0, 0);
    fuzz_const(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 8,
               MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
    fuzz_attr(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8,
              (uintptr_t)out);
    fuzz_attr(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4,
              (uintptr_t)out + 8);
    fuzz_attr(&req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4,
              (uintptr_t)out + 16);
    if (fuzz_send(fd, &req, MLX5_IB_OBJECT_UAR,
                  MLX5_IB_METHOD_UAR_OBJ_ALLOC) != 0) {
        abort();
    }
    memcpy(&offset, out, sizeof(offset));
    memcpy(&page_id, out + 16, sizeof(page_id));
    *page = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, offset);
    return page_id;
}

static int fuzz_write(int fd, uint64_t cmd, const void *in, size_t in_size)
{
    struct fuzz_req req = {0};

    fuzz_const(&req, UVERBS_ATTR_WRITE_CMD, 8, cmd);
    fuzz_in(&req, UVERBS_ATTR_CORE_IN, in, in_size);
    fuzz_out(&req, UVERBS_ATTR_CORE_OUT, 256);
    return fuzz_send(fd, &req, UVERBS_OBJECT_DEVICE,
                     UVERBS_METHOD_INVOKE_WRITE);
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
        .pd_handle    = fuzz_below(8),
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
        .buf_addr = fuzz_ring_addr(), .db_addr = fuzz_ring_addr(),
        .uidx     = fuzz_int(1)
    };
    struct fuzz_req req = {0};

    (void)uar;
    fuzz_attr(&req, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0, 0);
    fuzz_attr(&req, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, 0, fuzz_below(16));
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, fuzz_int(4));
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_TYPE, 8, fuzz_below(4));
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, fuzz_int(1));
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, fuzz_below(40));
    fuzz_const(&req, UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, fuzz_int(1));
    if (fuzz_below(2)) {
        fuzz_attr(&req, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, 0,
                  fuzz_below(16));
        fuzz_attr(&req, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, 0, fuzz_below(16));
    }
    fuzz_out(&req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4);
    fuzz_out(&req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4);
    fuzz_out(&req, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4);
    fuzz_in(&req, UVERBS_ATTR_UHW_IN, &ucmd, sizeof(ucmd));
    fuzz_out(&req, UVERBS_ATTR_UHW_OUT, 8);
    fuzz_send(fd, &req, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
}

/* QP type of verbs, and the flags of mlx5 that go with it. */
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

static void fuzz_create_qp(int fd, uint32_t uar)
{
    const uint32_t *type = fuzz_qp_types[fuzz_below(FUZZ_COUNT(fuzz_qp_types))];
    struct ib_uverbs_qp_cap cap = {.max_send_wr = 4,
                                   .max_recv_wr = fuzz_below(4)};
    struct mlx5_ib_create_qp ucmd = {
        .buf_addr     = fuzz_ring_addr(), .db_addr = fuzz_ring_addr(),
        .sq_wqe_count = fuzz_below(4) * 8,
        .rq_wqe_count = 1u << fuzz_below(4), .rq_wqe_shift = fuzz_below(12),
        .flags        = type[1] | MLX5_QP_FLAG_UAR_PAGE_INDEX,
        .uidx         = fuzz_int(1), .bfreg_index = uar,
    };
    struct fuzz_req req = {0};

    fuzz_attr(&req, UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0);
    if (type[0] == IB_UVERBS_QPT_XRC_TGT) {
        fuzz_attr(&req, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, 0, fuzz_below(16));
    } else {
        fuzz_attr(&req, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, fuzz_below(16));
        fuzz_attr(&req, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0,
                  fuzz_below(16));
    }
    if (fuzz_below(4) != 0) {
        fuzz_attr(&req, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0,
                  fuzz_below(16));
    }
    if (fuzz_below(2)) {
        fuzz_attr(&req, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, 0, fuzz_below(16));
    }
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
#define FUZZ_RTS  (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
                   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static void fuzz_modify_qp(int fd, uint32_t uar)
{
    static const uint32_t masks[] = {
        0, FUZZ_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT, FUZZ_RTR, FUZZ_RTS,
        FUZZ_RTR | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_PATH_MTU,
        IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, IBV_QP_SQ_PSN,
    };
    struct ib_uverbs_ex_modify_qp cmd = {0};
    struct fuzz_req req               = {0};

    (void)uar;
    fuzz_bytes(&cmd.base.dest, sizeof(cmd.base.dest));
    cmd.base.qp_handle     = fuzz_below(16);
    cmd.base.attr_mask     = masks[fuzz_below(FUZZ_COUNT(masks))] |
                             IBV_QP_STATE;
    cmd.base.qp_state      = fuzz_below(8);
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

static void fuzz_open_xrcd(int fd, uint32_t uar)
{
    struct ib_uverbs_open_xrcd cmd = {
        .fd = fuzz_below(2) ? (uint32_t)-1 : (uint32_t)fd, .oflags = O_CREAT
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

/* --- what nobody sends --------------------------------------------------- */
static const struct uverbs_attr_spec *
fuzz_spec(const struct uverbs_method *method, uint16_t id)
{
    for (unsigned i = 0; i < method->num_attrs; i++) {
        if (method->attrs[i].id == id) {
            return &method->attrs[i];
        }
    }
    return NULL;
}

static void fuzz_noise_attr(struct fuzz_req *req,
                            const struct uverbs_method *method, uint16_t id)
{
    const struct uverbs_attr_spec *spec = fuzz_spec(method, id);
    uint8_t kind  = (spec != NULL) ? spec->kind : UVERBS_OUT;
    uint16_t len  = (spec != NULL) ? spec->min : fuzz_int(1);
    uint8_t twist = fuzz_below(16);
    struct ib_uverbs_attr *attr;

    if (twist == 0) {
        len = fuzz_int(2);
    } else if (twist == 1) {
        len -= 1;
    }
    if (kind >= UVERBS_IDR) {
        attr = fuzz_attr(req, id, (twist == 2) ? len + 1 : 0, fuzz_int(1));
        attr->data_s64 = (twist == 3) ? -1 : attr->data_s64;
    } else if ((kind == UVERBS_IN) && (len <= 8)) {
        attr = fuzz_attr(req, id, len, 0);
        fuzz_bytes(&attr->data, len);
    } else {
        attr = fuzz_attr(req, id, len, fuzz_addr(len));
    }
    if (twist == 4) {
        attr->flags = fuzz_int(2);
    } else if (twist == 5) {
        attr->attr_data.reserved = fuzz_int(2);
    }
}

/* A row of the tables with attributes of its own, some left out, some given
 * twice, some made up. */
static void fuzz_noise_method(int fd, uint32_t uar)
{
    const struct uverbs_method *method =
            fuzz_methods[fuzz_below(FUZZ_COUNT(fuzz_methods))];
    struct fuzz_req req = {0};

    (void)uar;
    for (unsigned skip = fuzz_below(6);
         (skip > 0) && (method[1].handler != NULL); skip--) {
        method++;
    }
    fuzz_bytes(fuzz_buf + 4096, fuzz_below(128));
    for (unsigned i = 0; i < method->num_attrs; i++) {
        if (fuzz_below(16) != 0) {
            fuzz_noise_attr(&req, method, method->attrs[i].id);
        }
    }
    for (unsigned i = fuzz_below(4); i > 0; i--) {
        static const uint16_t ids[] = {
            UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT, 0, 0x77
        };
        fuzz_noise_attr(&req, method, ids[fuzz_below(FUZZ_COUNT(ids))]);
    }
    fuzz_send(fd, &req, method->object, method->id);
}

/* A write command with random bytes, cut or stretched. */
static void fuzz_noise_write(int fd, uint32_t uar)
{
    const struct uverbs_write *row =
            fuzz_writes[fuzz_below(FUZZ_COUNT(fuzz_writes))];
    uint8_t cmd[256];
    size_t size;

    (void)uar;
    for (unsigned skip = fuzz_below(4);
         (skip > 0) && (row[1].handler != NULL); skip--) {
        row++;
    }
    fuzz_bytes(cmd, sizeof(cmd));
    size = row->req_size + fuzz_below(16) - 4;
    if (size > sizeof(cmd)) {
        size = fuzz_below(8);
    }
    /* the handles of these commands: small numbers come up more often */
    if (fuzz_below(2) && (size >= 32)) {
        memset(cmd + 8, 0, 24);
        cmd[8] = cmd[32 - 4] = fuzz_below(8);
    }
    fuzz_write(fd, row->cmd, cmd, size);
}

/* The header itself, at the end of what is mapped. */
static void fuzz_noise_header(int fd, uint32_t uar)
{
    size_t size = sizeof(struct ib_uverbs_ioctl_hdr) + fuzz_below(64);
    struct ib_uverbs_ioctl_hdr hdr;
    uint8_t *at = fuzz_buf + FUZZ_BUF_SIZE - size;

    (void)uar;
    fuzz_bytes(&hdr, sizeof(hdr));
    hdr.object_id &= 0x101f;
    hdr.method_id &= 0x1007;
    if (fuzz_below(2)) {
        hdr.reserved1 = hdr.reserved2 = 0;
        hdr.driver_id = RDMA_DRIVER_MLX5;
        hdr.num_attrs %= 300;
        hdr.length     = sizeof(hdr) +
                         hdr.num_attrs * sizeof(struct ib_uverbs_attr);
    }
    memset(at, 0, size);
    memcpy(at, &hdr, sizeof(hdr));
    uverbs_ioctl(fd, fuzz_below(8) ? RDMA_VERBS_IOCTL : fuzz_int(4), at);
    uverbs_ioctl(fd, RDMA_VERBS_IOCTL, (void*)(uintptr_t)fuzz_addr(8));
}

static void (*const fuzz_ops[])(int fd, uint32_t uar) = {
    fuzz_alloc_pd,     fuzz_reg_mr,      fuzz_create_cq,
    fuzz_create_srq,   fuzz_create_qp,   fuzz_modify_qp,
    fuzz_open_xrcd,    fuzz_comp_channel, fuzz_noise_method,
    fuzz_noise_method, fuzz_noise_write, fuzz_noise_write,
    fuzz_noise_header, fuzz_create_qp,   fuzz_modify_qp,
    fuzz_modify_qp,
};

/* --- the target ---------------------------------------------------------- */
static char fuzz_dir[] = "/dev/shm/fuzz-uverbs-XXXXXX";

static void fuzz_cleanup(void)
{
    hca_fabric_detach();
    rmdir(fuzz_dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_buf = mmap(NULL, FUZZ_BUF_SIZE + 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if ((fuzz_buf == MAP_FAILED) || (mkdtemp(fuzz_dir) == NULL)) {
        abort();
    }
    mprotect(fuzz_buf + FUZZ_BUF_SIZE, 4096, PROT_NONE);
    setenv("SOFTHCA_DIR", fuzz_dir, 1);
    setenv("SOFTHCA_LOG_FILE", "/dev/null", 0);
    hca_log_init();
    if (hca_fabric_attach() != 0) {
        abort();
    }
    atexit(fuzz_cleanup);
    fuzz_ring = hca_arena_alloc(FUZZ_RING_SIZE);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    uint32_t uar = 0;
    void *page   = MAP_FAILED;

    fuzz_data = data;
    fuzz_left = size;
    if ((fd < 0) || (uverbs_open(fd, hca_dev_local(0)) != 0)) {
        abort();
    }
    if (fuzz_below(32) != 0) { /* else: without a context */
        if (fuzz_get_context(fd) != 0) {
            abort();
        }
        uar = fuzz_alloc_uar(fd, &page);
    }
    for (unsigned i = 0; (i < FUZZ_MAX_OPS) && (fuzz_left > 0); i++) {
        fuzz_ops[fuzz_below(FUZZ_COUNT(fuzz_ops))](fd, uar);
    }

    uverbs_close(fd);
    close(fd);
    if (page != MAP_FAILED) {
        munmap(page, 4096);
    }
    while (fuzz_num_fds > 0) {
        close(fuzz_fds[--fuzz_num_fds]);
    }
    for (unsigned kind = 0; kind < HCA_NUM_KINDS; kind++) {
        if (fuzz_live[kind] != 0) {
            fprintf(stderr, "%d objects of kind %u are left\n",
                    fuzz_live[kind], kind);
            abort();
        }
    }
    return 0;
}
