/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shared receive queue with tag matching (XRQ) by DEVX, created as in UCX's
 * rc_mlx5 and dc_mlx5.
 */
#ifndef DCX_TEST_DEVX_XRQ_H
#define DCX_TEST_DEVX_XRQ_H

#include "devx_qp.h"
#include "tm_bench.h"

#include <common/prm.h>

class devx_xrq : public devx_rq {
public:
    static constexpr size_t CTX = 0x10, WQ = 0x90;
    static constexpr uint32_t uidx = 0x77;

    explicit devx_xrq(const hca_device &dev,
                      const devx_wq &wq = {.type = CYCLIC},
                      bool has_dc       = true) :
        devx_rq(dev, wq),
        cq(dev.ctx, 63), good(0x150, 0x717)
    {
        good.set(CTX, 11, 8, 1).set(CTX, 3, 0, 1); /* tag matching, rndv */
        good.put(CTX + 0x04, uidx);
        good.put(CTX + 0x08, devx_qp::devx_cqn(cq.cq));
        good.set(CTX + 0x0c, 0, 0, has_dc).set(CTX + 0x20, 31, 28, 4);
        put_wq(dev, good, WQ);
        object = std::make_unique<devx_object>(dev.ctx, good);
        HCA_CHECK_CALL(object->obj != NULL);
    }

    ~devx_xrq() { object.reset(); /* before its CQ */ }

    uint32_t number() const { return object->out.number(); }

    /* Returns the status of the command. */
    int modify(const devx_mailbox &in, devx_mailbox *out)
    {
        int ret = mlx5dv_devx_obj_modify(object->obj, in.bytes.data(),
                                         in.bytes.size(), out->bytes.data(),
                                         out->bytes.size());

        EXPECT_EQ((out->status() != 0) ? EREMOTEIO : 0, ret);
        return out->status();
    }

    devx_mailbox query()
    {
        devx_mailbox in = devx_mailbox(16, 0x719).put(8, number());
        devx_mailbox out(0x150);

        EXPECT_EQ(0, mlx5dv_devx_obj_query(object->obj, in.bytes.data(), 16,
                                           out.bytes.data(), out.bytes.size()));
        return out;
    }

    /* SET_XRQ_DC_PARAMS_ENTRY, as in UCX */
    devx_mailbox dc_params() const
    {
        devx_mailbox in(0x30, 0x726);

        in.put(8, number()).set(0x10, 28, 24, 14);
        in.set(0x10, 18, 16, IBV_MTU_1024).put64(0x18, TM_DC_KEY);
        return in;
    }

    /* Waits for the next completion, and checks its app_op. */
    struct mlx5_cqe64 expect(uint8_t app_op)
    {
        struct mlx5_cqe64 cqe = {};
        struct mlx5_err_cqe got;

        EXPECT_TRUE(hca_until([&] { return cq.poll(&got); }));
        memcpy(&cqe, &got, sizeof(cqe));
        EXPECT_EQ(PRM_CQE_APP_TAG_MATCHING, cqe.app);
        EXPECT_EQ(app_op, cqe.app_op);
        EXPECT_EQ(uidx, be32toh(cqe.srqn_uidx));
        return cqe;
    }

    /* Appends a buffer as entry @index of the list, by a command QP. Waits
     * until the device reports it. */
    void append(devx_qp &cmd, uint64_t tag, const strict_mem &to,
                uint32_t length, unsigned index = 0)
    {
        struct mlx5_wqe_tm_seg seg = {};
        raw_wqe wqe(MLX5_OPCODE_TAG_MATCHING);

        seg.opcode      = PRM_TM_OPCODE_APPEND << PRM_TM_OPCODE_SHIFT;
        seg.flags       = PRM_TM_CQE_REQ | PRM_TM_SW_CNT;
        seg.index       = htobe16(index + 1);
        seg.append_tag  = htobe64(tag);
        seg.append_mask = ~0ull;
        wqe.bytes[11]   = 0; /* no completion of the command QP */
        cmd.post(wqe.add(seg).data(to.addr, length, to.mr->lkey));
        expect(PRM_CQE_TM_APPEND);
    }

    raw_cq cq;
    devx_mailbox good;
};

#endif
