/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DEVX commands: valid mailboxes with some bytes replaced by the input. Numbers
 * of objects are those of existing ones, so that the device gets past its first
 * check.
 */
#define _GNU_SOURCE
#include "fuzz_req.h"

#include <endian.h>
#include <string.h>

#define FUZZ_LAYOUT  0x180 /* entries of the longest layout */
#define FUZZ_MAILBOX 0x1000

/* Mailbox word: a 32-bit word of a valid mailbox that is not 0 */
enum fuzz_word_kind {
    FUZZ_VALUE, /* the value itself */
    FUZZ_PDN,   /* an object's number, or'ed to the value */
    FUZZ_CQN,
    FUZZ_SRQN,
    FUZZ_QPN,
    FUZZ_UMEM,
    FUZZ_UAR
};

struct fuzz_word {
    uint16_t offset;
    uint8_t kind;
    uint32_t value;
};

struct fuzz_command {
    uint16_t opcode, size, out_size;
    uint16_t method; /* of an object; 0: DEVX_OTHER */
    struct fuzz_word words[12];
};

/* clang-format off */
static const struct fuzz_command fuzz_commands[] = {
    /* QUERY_HCA_CAP */
    {0x100, 16, 4112, 0, {{4, FUZZ_VALUE, 1}}},
    /* QUERY_LAG */
    {0x842, 16, 16, 0, {{0}}},
    /* QUERY_HCA_VPORT_CONTEXT */
    {0x762, 16, 524, 0, {{8, FUZZ_VALUE, 1u << 16}}},
    /* CREATE_MKEY */
    {0x200, 0x130, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{0x10, FUZZ_VALUE, 0x7e00}, {0x14, FUZZ_VALUE, 0xffffff00},
      {0x1c, FUZZ_PDN, 0}, {0x2c, FUZZ_VALUE, 4096}, {0x44, FUZZ_VALUE, 2},
      {0x60, FUZZ_VALUE, 2}, {0x110, FUZZ_VALUE, 4096}}},
    /* CREATE_MKEY */
    {0x200, 0x130, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{0x10, FUZZ_VALUE, 0x7f00}, {0x14, FUZZ_VALUE, 0xffffff00},
      {0x1c, FUZZ_PDN, 0}, {0x2c, FUZZ_VALUE, 4096}, {0x44, FUZZ_VALUE, 2},
      {0x48, FUZZ_VALUE, 12}, {0x60, FUZZ_VALUE, 2}}},
    /* CREATE_CQ */
    {0x400, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{0x10, FUZZ_VALUE, 1u << 14}, {0x14, FUZZ_UMEM, 0},
      {0x1c, FUZZ_UAR, 3u << 24}, {0x4c, FUZZ_VALUE, 8},
      {0x58, FUZZ_UMEM, 0}}},
    /* CREATE_CQ */
    {0x400, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{0x10, FUZZ_VALUE, 2u << 21}, {0x14, FUZZ_UMEM, 0},
      {0x1c, FUZZ_UAR, 3u << 24}, {0x4c, FUZZ_VALUE, 8},
      {0x58, FUZZ_UMEM, 0}}},
    /* QUERY_CQ */
    {0x402, 16, 0x110, MLX5_IB_METHOD_DEVX_OBJ_QUERY, {{8, FUZZ_CQN, 0}}},
    /* CREATE_GENERAL_OBJECT: numbers of QPs */
    {0xa00, 32, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{4, FUZZ_VALUE, 0x2c}, {12, FUZZ_VALUE, 5u << 24}}},
    /* CREATE_RMP */
    {0x90c, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{0x20, FUZZ_VALUE, 1u << 20}, {0x58, FUZZ_PDN, 0},
      {0x64, FUZZ_VALUE, 8}, {0x70, FUZZ_VALUE, (5u << 16) | 2},
      {0x78, FUZZ_UMEM, 0}, {0x7c, FUZZ_UMEM, 0}}},
    /* CREATE_XRQ */
    {0x717, 0x150, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{0x10, FUZZ_VALUE, (1u << 8) | 1}, {0x18, FUZZ_CQN, 0},
      {0x1c, FUZZ_VALUE, 1}, {0x30, FUZZ_VALUE, 4u << 28},
      {0x98, FUZZ_PDN, 0}, {0xa4, FUZZ_VALUE, 8},
      {0xb0, FUZZ_VALUE, (5u << 16) | 2}, {0xb8, FUZZ_UMEM, 0},
      {0xbc, FUZZ_UMEM, 0}}},
    /* CREATE_DCT */
    {0x710, 128, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{0x18, FUZZ_CQN, 0}, {0x1c, FUZZ_VALUE, 0xe0000},
      {0x24, FUZZ_SRQN, 0}, {0x28, FUZZ_PDN, 0},
      {0x38, FUZZ_VALUE, (3u << 24) | (1u << 16)}}},
    /* CREATE_QP */
    {0x500, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{0x1c, FUZZ_PDN, 0}, {0x20, FUZZ_VALUE, 2u << 11}, {0x24, FUZZ_UAR, 0},
      {0x94, FUZZ_CQN, 0}, {0xb4, FUZZ_CQN, 0}, {0xbc, FUZZ_VALUE, 8},
      {0xc4, FUZZ_SRQN, 1u << 24}, {0xfc, FUZZ_UMEM, 0},
      {0x108, FUZZ_UMEM, 0}}},
    /* CREATE_QP */
    {0x500, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     {{0x18, FUZZ_VALUE, 5u << 16}, {0x1c, FUZZ_PDN, 0},
      {0x20, FUZZ_VALUE, 2u << 11}, {0x24, FUZZ_UAR, 0}, {0x94, FUZZ_CQN, 0},
      {0xb4, FUZZ_CQN, 0}, {0xfc, FUZZ_UMEM, 0}, {0x108, FUZZ_UMEM, 0}}},
    /* RST2INIT_QP */
    {0x502, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
     {{8, FUZZ_QPN, 0}, {0x54, FUZZ_VALUE, 1u << 16}}},
    /* INIT2RTR_QP */
    {0x503, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
     {{8, FUZZ_QPN, 0}, {0x10, FUZZ_VALUE, 14},
      {0x20, FUZZ_VALUE, (3u << 29) | (30u << 24)}, {0x2c, FUZZ_QPN, 0},
      {0x34, FUZZ_VALUE, 1}, {0x54, FUZZ_VALUE, 1u << 16}}},
    /* RTR2RTS_QP */
    {0x504, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, {{8, FUZZ_QPN, 0}}},
    /* RTS2RTS_QP */
    {0x505, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, {{8, FUZZ_QPN, 0}}},
    /* 2ERR_QP */
    {0x507, 16, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, {{8, FUZZ_QPN, 0}}},
    /* 2RST_QP */
    {0x50a, 16, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, {{8, FUZZ_QPN, 0}}},
    /* DRAIN_DCT */
    {0x712, 16, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, {{8, FUZZ_QPN, 0}}},
    /* ARM_XRQ */
    {0x71a, 16, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, {{8, FUZZ_SRQN, 0}}},
    /* SET_XRQ_DC_PARAMS_ENTRY */
    {0x726, 0x30, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
     {{8, FUZZ_SRQN, 0}, {0x10, FUZZ_VALUE, (14u << 24) | (3u << 16)}}},
    /* QUERY_XRQ */
    {0x719, 16, 0x150, MLX5_IB_METHOD_DEVX_OBJ_QUERY, {{8, FUZZ_SRQN, 0}}},
    /* MODIFY_RMP */
    {0x90d, 0x110, 16, MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
     {{8, FUZZ_SRQN, 1u << 28}, {0x14, FUZZ_VALUE, 1},
      {0x54, FUZZ_VALUE, 2}}},
    /* QUERY_QP */
    {0x50b, 16, 272, MLX5_IB_METHOD_DEVX_OBJ_QUERY, {{8, FUZZ_QPN, 0}}},
    /* QUERY_DCT */
    {0x713, 16, 128, MLX5_IB_METHOD_DEVX_OBJ_QUERY, {{8, FUZZ_QPN, 0}}},
};
/* clang-format on */

static void fuzz_count_down(void *obj, void *arg)
{
    uint32_t *found = arg;

    if ((found[0] == 0) || (found[1] > 0)) {
        found[0] = ((struct hca_obj *)obj)->num;
        found[1] -= (found[1] > 0);
    }
}

/* Returns the number of an object of a kind, 0 if there is none. */
static uint32_t fuzz_number(enum hca_kind kind)
{
    uint32_t found[2] = {0, fuzz_below(4)};

    hca_obj_foreach(kind, hca_self, fuzz_count_down, found);
    return found[0];
}

static uint32_t fuzz_word(const struct fuzz_word *word, uint32_t uar)
{
    switch (word->kind) {
    case FUZZ_PDN:
        return word->value | fuzz_number(HCA_KIND_PD);
    case FUZZ_CQN:
        return word->value | fuzz_number(HCA_KIND_CQ);
    case FUZZ_SRQN:
        return word->value | fuzz_number(HCA_KIND_SRQ);
    case FUZZ_QPN:
        return word->value | fuzz_number(HCA_KIND_QP);
    case FUZZ_UMEM:
        return fuzz_handle(MLX5_IB_OBJECT_DEVX_UMEM) + 1;
    case FUZZ_UAR:
        return word->value | uar;
    default:
        return word->value;
    }
}

static void fuzz_mailbox(const struct fuzz_command *cmd, uint8_t *box,
                         uint32_t uar)
{
    __be32 value = htobe32((uint32_t)cmd->opcode << 16);

    memset(box, 0, FUZZ_MAILBOX);
    memcpy(box, &value, sizeof(value));
    for (unsigned i = 0; i < FUZZ_COUNT(cmd->words); i++) {
        const struct fuzz_word *word = &cmd->words[i];

        if (word->offset != 0) {
            value = htobe32(fuzz_word(word, uar));
            memcpy(box + word->offset, &value, sizeof(value));
        }
    }
    for (unsigned i = fuzz_below(6); i > 3; i--) { /* none in most cases */
        box[fuzz_int(2) % FUZZ_LAYOUT] ^= fuzz_int(1);
    }
}

static void fuzz_devx_command(int fd, uint32_t uar)
{
    const struct fuzz_command *cmd =
        &fuzz_commands[fuzz_below(FUZZ_COUNT(fuzz_commands))];
    uint16_t first   = 1u << UVERBS_ID_NS_SHIFT; /* attribute of each method */
    uint16_t in_size = cmd->size, out_size = cmd->out_size;
    uint8_t box[FUZZ_MAILBOX];
    struct fuzz_req req = {0};

    fuzz_mailbox(cmd, box, uar);
    if (fuzz_below(16) == 0) {
        in_size  = fuzz_int(2) % FUZZ_MAILBOX;
        out_size = fuzz_int(1);
    }
    if (cmd->method != 0) {
        fuzz_attr(&req, first++, 0,
                  (cmd->method == MLX5_IB_METHOD_DEVX_OBJ_CREATE) ?
                      0 :
                      fuzz_handle(MLX5_IB_OBJECT_DEVX_OBJ));
    }
    fuzz_in(&req, first++, box, in_size);
    fuzz_attr(&req, first, out_size,
              (uintptr_t)fuzz_buf + FUZZ_OUT - ((out_size > 512) ? 4096 : 0));
    fuzz_send(fd, &req,
              (cmd->method != 0) ? MLX5_IB_OBJECT_DEVX_OBJ :
                                   MLX5_IB_OBJECT_DEVX,
              (cmd->method != 0) ? cmd->method : MLX5_IB_METHOD_DEVX_OTHER);
}

static void fuzz_umem_reg(int fd, uint32_t uar)
{
    uint64_t addr       = (uintptr_t)fuzz_buf + fuzz_below(4) * 4096;
    struct fuzz_req req = {0};

    (void)uar;
    if (fuzz_below(8) == 0) {
        addr += fuzz_int(2);
    }
    fuzz_attr(&req, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0, 0);
    fuzz_const(&req, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8, addr);
    fuzz_const(&req, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8,
               fuzz_below(8) ? 4096 : fuzz_int(2));
    fuzz_const(&req, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4, fuzz_below(3));
    fuzz_out(&req, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4);
    fuzz_send(fd, &req, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
}

static void fuzz_destroy(int fd, uint32_t uar)
{
    bool umem     = fuzz_below(4) == 0;
    uint16_t type = umem ? MLX5_IB_OBJECT_DEVX_UMEM : MLX5_IB_OBJECT_DEVX_OBJ;
    struct fuzz_req req = {0};

    (void)uar;
    fuzz_attr(&req, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, 0, fuzz_handle(type));
    fuzz_send(fd, &req, type,
              umem ? MLX5_IB_METHOD_DEVX_UMEM_DEREG :
                     MLX5_IB_METHOD_DEVX_OBJ_DESTROY);
}

static void fuzz_subscribe(int fd, uint32_t uar)
{
    const uint16_t types[2] = {0x13, fuzz_int(1)};
    struct fuzz_req req = {0}, alloc = {0};

    (void)uar;
    fuzz_attr(&alloc, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, 0, 0);
    fuzz_const(&alloc, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, 4,
               fuzz_below(8) ? 1 : fuzz_int(1));
    if (fuzz_num_fds < FUZZ_MAX_FDS) {
        fuzz_send(fd, &alloc, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD,
                  MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC);
    }
    fuzz_attr(&req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, 0,
              (fuzz_num_fds > 0) ? fuzz_fds[fuzz_num_fds - 1] : 0);
    fuzz_attr(&req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, 0,
              fuzz_handle(MLX5_IB_OBJECT_DEVX_OBJ));
    fuzz_in(&req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, types,
            fuzz_below(2) ? 2 : 4);
    fuzz_const(&req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, 8, fuzz_int(2));
    fuzz_send(fd, &req, MLX5_IB_OBJECT_DEVX,
              MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT);
}

void fuzz_devx(int fd, uint32_t uar)
{
    static const fuzz_op ops[] = {
        fuzz_devx_command, fuzz_devx_command, fuzz_devx_command,
        fuzz_devx_command, fuzz_umem_reg,     fuzz_umem_reg,
        fuzz_destroy,      fuzz_subscribe,
    };

    ops[fuzz_below(FUZZ_COUNT(ops))](fd, uar);
}
