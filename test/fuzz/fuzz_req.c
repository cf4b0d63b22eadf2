/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Makes requests from an input: reads it byte by byte, and keeps the memory of
 * the program that the requests refer to, and the handles that came back.
 */
#define _GNU_SOURCE
#include "fuzz_req.h"
#include "softhca/dispatch/dispatch.h"

#include <string.h>

const uint8_t *fuzz_data;
size_t fuzz_left;
uint8_t *fuzz_buf;
uint8_t *fuzz_ring;

void fuzz_bytes(void *dst, size_t size)
{
    size_t given = (size < fuzz_left) ? size : fuzz_left;

    memset(dst, 0, size);
    memcpy(dst, fuzz_data, given);
    fuzz_data += given;
    fuzz_left -= given;
}

uint32_t fuzz_int(unsigned bytes)
{
    uint32_t value = 0;

    fuzz_bytes(&value, bytes);
    return value;
}

uint32_t fuzz_below(uint32_t count)
{
    return fuzz_int(1) % count;
}

/* Returns an address for the device to write to or to read from. */
uint64_t fuzz_addr(size_t size)
{
    switch (fuzz_below(8)) {
    case 0:
        return 0;
    case 1:
        return 0xdead000000000000ull; /* not canonical */
    case 2:
        return (uintptr_t)fuzz_buf + FUZZ_BUF_SIZE - size / 2; /* too near to
                                                                * the end */
    default:
        return (uintptr_t)fuzz_buf + 4096 + fuzz_int(1) * 8;
    }
}

uint64_t fuzz_ring_addr(void)
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

/* Handles that were returned, by type. Most requests name one of them; some
 * objects have been destroyed since. */
#define FUZZ_HANDLES 8

static uint32_t fuzz_handles[64][FUZZ_HANDLES];
static unsigned fuzz_num_handles[64];

/* The driver's types start at 1 << UVERBS_ID_NS_SHIFT. */
static unsigned fuzz_slot(uint16_t type)
{
    return type % 32 + ((type >> UVERBS_ID_NS_SHIFT) ? 32 : 0);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    fuzz_data = data;
    fuzz_left = size;
    memset(fuzz_num_handles, 0, sizeof(fuzz_num_handles));
}

static void fuzz_remember(uint16_t type, uint32_t handle)
{
    unsigned slot = fuzz_slot(type);

    fuzz_handles[slot][fuzz_num_handles[slot]++ % FUZZ_HANDLES] = handle;
}

uint64_t fuzz_handle(uint16_t type)
{
    unsigned num = fuzz_num_handles[fuzz_slot(type)];
    uint8_t pick = fuzz_int(1);

    if ((num == 0) || (pick >= 240)) {
        return (pick == 255) ? (uint64_t)-1 : pick % 16;
    }
    num = (num < FUZZ_HANDLES) ? num : FUZZ_HANDLES;
    return fuzz_handles[fuzz_slot(type)][pick % num];
}

struct ib_uverbs_attr *fuzz_attr(struct fuzz_req *req, uint16_t id,
                                 uint16_t len, uint64_t data)
{
    struct ib_uverbs_attr *attr = &req->attrs[req->num_attrs];

    if (req->num_attrs + 1 < FUZZ_COUNT(req->attrs)) {
        req->num_attrs++;
    }
    *attr = (struct ib_uverbs_attr){
        .attr_id = id,
        .len     = len,
        .flags   = UVERBS_ATTR_F_MANDATORY,
        .data    = data,
    };
    return attr;
}

void fuzz_const(struct fuzz_req *req, uint16_t id, uint16_t len, uint64_t value)
{
    fuzz_attr(req, id, len, value);
}

/* Places `size` bytes in the program's memory, for each attribute apart. */
void fuzz_in(struct fuzz_req *req, uint16_t id, const void *src, size_t size)
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

void fuzz_out(struct fuzz_req *req, uint16_t id, size_t size)
{
    fuzz_attr(req, id, size,
              (fuzz_below(32) == 31) ? fuzz_addr(size) :
                                       (uintptr_t)fuzz_buf + FUZZ_OUT);
}

int fuzz_send(int fd, const struct fuzz_req *req, uint16_t object,
              uint16_t method)
{
    size_t size                    = req->num_attrs * sizeof(req->attrs[0]);
    struct ib_uverbs_ioctl_hdr hdr = {
        .length    = sizeof(hdr) + size,
        .object_id = object,
        .method_id = method,
        .num_attrs = req->num_attrs,
        .driver_id = RDMA_DRIVER_MLX5,
    };
    uint8_t *at = fuzz_buf + 8192;

    int ret;

    memcpy(at, &hdr, sizeof(hdr));
    memcpy(at + sizeof(hdr), req->attrs, size);
    ret = dispatch_ioctl(fd, RDMA_VERBS_IOCTL, at);
    if ((ret == 0) && (size > 0) && (req->attrs[0].len == 0)) {
        struct ib_uverbs_attr first; /* new object, if the method creates one */

        memcpy(&first, at + sizeof(hdr), sizeof(first));
        fuzz_remember(object, first.data);
    }
    return ret;
}

/* Write commands that answer with a handle, and the places of handles in all of
 * them */
/* clang-format off */
static const struct {
    uint32_t cmd;
    uint16_t made;      /* type of the new object */
    uint16_t type[2];   /* types of the objects that it names */
    uint16_t offset[2]; /* offsets of their handles */
} fuzz_commands[] = {
    {IB_USER_VERBS_CMD_ALLOC_PD, UVERBS_OBJECT_PD, {0}, {0}},
    {IB_USER_VERBS_CMD_OPEN_XRCD, UVERBS_OBJECT_XRCD, {0}, {0}},
    {IB_USER_VERBS_CMD_REG_MR, UVERBS_OBJECT_MR, {UVERBS_OBJECT_PD, 0},
     {offsetof(struct ib_uverbs_reg_mr, pd_handle), 0}},
    {IB_USER_VERBS_CMD_REREG_MR, 0, {UVERBS_OBJECT_MR, UVERBS_OBJECT_PD},
     {offsetof(struct ib_uverbs_rereg_mr, mr_handle),
      offsetof(struct ib_uverbs_rereg_mr, pd_handle)}},
    {IB_USER_VERBS_CMD_ALLOC_MW, UVERBS_OBJECT_MW, {UVERBS_OBJECT_PD, 0},
     {offsetof(struct ib_uverbs_alloc_mw, pd_handle), 0}},
    {IB_USER_VERBS_CMD_CREATE_AH, UVERBS_OBJECT_AH, {UVERBS_OBJECT_PD, 0},
     {offsetof(struct ib_uverbs_create_ah, pd_handle), 0}},
    {IB_USER_VERBS_CMD_RESIZE_CQ, 0, {UVERBS_OBJECT_CQ, 0},
     {offsetof(struct ib_uverbs_resize_cq, cq_handle), 0}},
    {UVERBS_EX(IB_USER_VERBS_EX_CMD_MODIFY_CQ), 0, {UVERBS_OBJECT_CQ, 0},
     {offsetof(struct ib_uverbs_ex_modify_cq, cq_handle), 0}},
    {IB_USER_VERBS_CMD_MODIFY_SRQ, 0, {UVERBS_OBJECT_SRQ, 0},
     {offsetof(struct ib_uverbs_modify_srq, srq_handle), 0}},
    {IB_USER_VERBS_CMD_QUERY_SRQ, 0, {UVERBS_OBJECT_SRQ, 0},
     {offsetof(struct ib_uverbs_query_srq, srq_handle), 0}},
    {IB_USER_VERBS_CMD_QUERY_QP, 0, {UVERBS_OBJECT_QP, 0},
     {offsetof(struct ib_uverbs_query_qp, qp_handle), 0}},
    {IB_USER_VERBS_CMD_MODIFY_QP, 0, {UVERBS_OBJECT_QP, 0},
     {offsetof(struct ib_uverbs_modify_qp, qp_handle), 0}},
    {UVERBS_EX(IB_USER_VERBS_EX_CMD_MODIFY_QP), 0, {UVERBS_OBJECT_QP, 0},
     {offsetof(struct ib_uverbs_modify_qp, qp_handle), 0}},
    {IB_USER_VERBS_CMD_OPEN_QP, UVERBS_OBJECT_QP, {UVERBS_OBJECT_XRCD, 0},
     {offsetof(struct ib_uverbs_open_qp, pd_handle), 0}},
};
/* clang-format on */

static int fuzz_command(uint64_t cmd)
{
    for (unsigned i = 0; i < FUZZ_COUNT(fuzz_commands); i++) {
        if (fuzz_commands[i].cmd == cmd) {
            return i;
        }
    }
    return -1;
}

/* Fills in the handles that a command names. */
void fuzz_command_handles(uint64_t cmd, uint8_t *in, size_t size)
{
    int row = fuzz_command(cmd);

    for (unsigned i = 0; (row >= 0) && (i < 2); i++) {
        uint32_t handle = fuzz_handle(fuzz_commands[row].type[i]);

        if ((fuzz_commands[row].type[i] != 0) &&
            (fuzz_commands[row].offset[i] + sizeof(handle) <= size)) {
            memcpy(in + fuzz_commands[row].offset[i], &handle, sizeof(handle));
        }
    }
}

void fuzz_write_uhw(int fd, struct fuzz_req *req, uint64_t cmd)
{
    int row = fuzz_command(cmd);
    uint32_t handle;

    if ((fuzz_send(fd, req, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE) ==
         0) &&
        (row >= 0) && (fuzz_commands[row].made != 0)) {
        memcpy(&handle, fuzz_buf + FUZZ_OUT, sizeof(handle));
        fuzz_remember(fuzz_commands[row].made, handle);
    }
}

void fuzz_write(int fd, uint64_t cmd, const void *in, size_t in_size)
{
    struct fuzz_req req = {0};

    fuzz_const(&req, UVERBS_ATTR_WRITE_CMD, 8, cmd);
    fuzz_in(&req, UVERBS_ATTR_CORE_IN, in, in_size);
    fuzz_out(&req, UVERBS_ATTR_CORE_OUT, 256);
    fuzz_write_uhw(fd, &req, cmd);
}
