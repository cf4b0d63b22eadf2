/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of DEVX: mailboxes of commands, objects, and keys created with
 * CREATE_MKEY. Fields are given by their position in mlx5_ifc.h: byte offset of
 * a word, highest and lowest bit.
 */
#ifndef DCX_TEST_DEVX_BENCH_H
#define DCX_TEST_DEVX_BENCH_H

#include "verbs_bench.h"

#include <endian.h>

/* Status of a command (PRM; MLX5_CMD_STAT_* in Linux) */
constexpr uint8_t DEVX_BAD_OP       = 0x02;
constexpr uint8_t DEVX_BAD_PARAM    = 0x03;
constexpr uint8_t DEVX_BAD_RES      = 0x05;
constexpr uint8_t DEVX_RES_BUSY     = 0x06;
constexpr uint8_t DEVX_BAD_QP_STATE = 0x10;
constexpr uint8_t DEVX_BAD_INP_LEN  = 0x50;
constexpr uint8_t DEVX_BAD_OUTP_LEN = 0x51;

class devx_mailbox {
public:
    explicit devx_mailbox(size_t size, uint16_t opcode = 0) : bytes(size)
    {
        set(0, 31, 16, opcode);
    }

    devx_mailbox &set(size_t offset, unsigned high, unsigned low,
                      uint64_t value)
    {
        const uint32_t mask = (uint32_t)((2ull << (high - low)) - 1) << low;

        return put(offset,
                   (word(offset) & ~mask) | ((uint32_t)(value << low) & mask));
    }

    devx_mailbox &put(size_t offset, uint32_t value)
    {
        value = htobe32(value);
        memcpy(&bytes.at(offset + 3) - 3, &value, 4);
        return *this;
    }

    devx_mailbox &put64(size_t offset, uint64_t value)
    {
        return put(offset, value >> 32).put(offset + 4, value);
    }

    uint32_t word(size_t offset) const
    {
        uint32_t value;

        memcpy(&value, &bytes.at(offset + 3) - 3, 4);
        return be32toh(value);
    }

    uint32_t get(size_t offset, unsigned high, unsigned low) const
    {
        return (word(offset) >> low) & (uint32_t)((2ull << (high - low)) - 1);
    }

    uint8_t status() const { return get(0, 31, 24); }
    uint32_t syndrome() const { return word(4); }
    uint32_t number() const { return get(8, 23, 0); }

    std::vector<uint8_t> bytes;
};

/* An object created by DEVX. If it is refused, obj is NULL, error is the errno,
 * and out has the status and syndrome of the command. */
class devx_object {
public:
    devx_object(struct ibv_context *ctx, const devx_mailbox &in,
                size_t out_size = 16) :
        out(out_size)
    {
        errno = 0;
        obj   = mlx5dv_devx_obj_create(ctx, in.bytes.data(), in.bytes.size(),
                                       out.bytes.data(), out.bytes.size());
        error = (obj == NULL) ? errno : 0;
    }

    ~devx_object()
    {
        if (obj != NULL) {
            EXPECT_EQ(0, destroy());
        }
    }

    devx_object(const devx_object &) = delete;

    int destroy()
    {
        int ret = mlx5dv_devx_obj_destroy(obj);

        obj = NULL;
        return ret;
    }

    devx_mailbox out;
    struct mlx5dv_devx_obj *obj;
    int error;
};

/* --- keys ----------------------------------------------------------------- */

struct devx_klm {
    uint64_t addr;
    uint32_t length;
    uint32_t key;
};

inline uint32_t devx_pdn(struct ibv_pd *pd)
{
    struct mlx5dv_pd out  = {};
    struct mlx5dv_obj obj = {};

    obj.pd.in  = pd;
    obj.pd.out = &out;
    HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD) == 0);
    return out.pdn;
}

constexpr unsigned DEVX_MODE_KLM = 2, DEVX_MODE_KSM = 3;
constexpr size_t DEVX_MKC = 0x10;

/* Returns a mailbox for CREATE_MKEY: all access rights, any QP, variant 0x42,
 * @length bytes from @start on, over @klms. If @log_size is 0, the entries are
 * KLMs; otherwise KSMs of 1 << @log_size bytes. */
inline devx_mailbox devx_mkey_in(struct ibv_pd *pd, uint64_t start,
                                 uint64_t length,
                                 const std::vector<devx_klm> &klms,
                                 unsigned log_size = 0)
{
    devx_mailbox in(0x110 + klms.size() * 16, 0x200);
    size_t at = 0x110;

    in.set(DEVX_MKC, 14, 10, 0x1f); /* a, rw, rr, lw, lr */
    in.set(DEVX_MKC, 9, 8, log_size ? DEVX_MODE_KSM : DEVX_MODE_KLM);
    in.put(DEVX_MKC + 0x04, 0xffffff42);
    in.set(DEVX_MKC + 0x0c, 23, 0, devx_pdn(pd));
    in.put64(DEVX_MKC + 0x10, start).put64(DEVX_MKC + 0x18, length);
    in.put(DEVX_MKC + 0x34, klms.size());
    in.set(DEVX_MKC + 0x38, 4, 0, log_size);
    in.put(0x60, klms.size());
    for (const auto &klm : klms) {
        in.put(at, klm.length).put(at + 4, klm.key).put64(at + 8, klm.addr);
        at += 16;
    }
    return in;
}

class devx_mkey : public devx_object {
public:
    devx_mkey(struct ibv_context *ctx, const devx_mailbox &in) :
        devx_object(ctx, in), key((out.number() << 8) | 0x42)
    {
    }

    uint32_t key;
};

#endif
