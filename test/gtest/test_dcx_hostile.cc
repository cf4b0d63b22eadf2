/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A process that knows an interface's DCT number and DC key, but is not dcx,
 * sends messages that dcx never sends. The interface logs a few lines and keeps
 * working.
 */
#include "dcx_match_bench.h"

#include <algorithm>

namespace {

struct message {
    const char *name;
    uint8_t opcode; /* MLX5_OPCODE_* */
    std::vector<uint8_t> data;
};

/* The sender: an initiator by libmlx5, which it replaces after an error */
class stranger {
public:
    stranger(const dcx_view &peer) : m_peer(peer)
    {
        struct ibv_ah_attr ah_attr = {};

        HCA_CHECK_CALL((m_cq = ibv_create_cq(m_dev.ctx, 64, NULL, NULL, 0)));
        ah_attr.port_num = 1;
        ah_attr.dlid     = 1;
        HCA_CHECK_CALL((m_ah = ibv_create_ah(m_dev.pd, &ah_attr)));
        create();
    }

    ~stranger()
    {
        EXPECT_EQ(0, ibv_destroy_qp(m_qp));
        EXPECT_EQ(0, ibv_destroy_ah(m_ah));
        EXPECT_EQ(0, ibv_destroy_cq(m_cq));
    }

    /* Sends a message and waits for its completion. That may be in error: the
     * receiver has no buffer, or its device refuses the message. */
    void send(const message &msg, const std::function<void()> &progress)
    {
        struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(m_qp);
        dcx_deadline deadline;
        struct ibv_wc wc;

        ibv_wr_start(qpx);
        qpx->wr_flags = IBV_SEND_SIGNALED;
        begin(qpx, msg.opcode);
        mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qpx), m_ah,
                              m_peer.dctn, m_peer.dc_key);
        ibv_wr_set_inline_data(qpx, (void *)msg.data.data(), msg.data.size());
        HCA_CHECK_CALL(ibv_wr_complete(qpx) == 0);
        while (ibv_poll_cq(m_cq, 1, &wc) == 0) {
            deadline.check("a completion");
            progress();
        }
        if (wc.status != IBV_WC_SUCCESS) {
            EXPECT_NE(IBV_WC_RETRY_EXC_ERR, wc.status) << "no answer";
            EXPECT_EQ(0, ibv_destroy_qp(m_qp));
            create();
        }
    }

private:
    void create()
    {
        struct ibv_qp_cap cap = {4, 0, 1, 0, 512};

        m_qp = hca_create_dci(m_dev, m_cq,
                              IBV_QP_EX_WITH_SEND |
                                  IBV_QP_EX_WITH_SEND_WITH_IMM |
                                  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
                              cap);
        HCA_CHECK_CALL(m_qp != NULL);
        hca_connect_dci(m_qp, m_dev);
    }

    static void begin(struct ibv_qp_ex *qpx, uint8_t opcode)
    {
        switch (opcode) {
        case MLX5_OPCODE_SEND:
            return ibv_wr_send(qpx);
        case MLX5_OPCODE_SEND_IMM:
            return ibv_wr_send_imm(qpx, htobe32(7));
        default:
            return ibv_wr_rdma_write_imm(qpx, 0, 0, htobe32(7));
        }
    }

    hca_device m_dev;
    dcx_view m_peer;
    struct ibv_cq *m_cq;
    struct ibv_ah *m_ah;
    struct ibv_qp *m_qp;
};

/* Returns a tag matching header with this opcode, and zeros behind it. */
std::vector<uint8_t> tmh(uint8_t opcode, size_t length)
{
    std::vector<uint8_t> bytes(length);

    bytes[0] = opcode;
    return bytes;
}

/* Parameter: true if the device matches tags */
class dcx_hostile : public testing::TestWithParam<bool> {
protected:
    dcx_hostile()
    {
        m_dcx.on_rndv  = [](uct_tag_t, const void *, unsigned, uint64_t, size_t,
                           const void *) { return UCS_OK; };
        m_dcx.on_eager = [](void *, size_t, unsigned, uct_tag_t, uint64_t) {
            return UCS_OK;
        };
        /* UCX logs messages that have no handler */
        for (uint8_t id = 0; id < 5; id++) {
            UCT_CALL(
                uct_iface_set_am_handler(m_dcx.iface, id, ignore, NULL, 0));
        }
    }

    static ucs_status_t ignore(void *, void *, size_t, unsigned)
    {
        return UCS_OK;
    }

    void progress() { uct_worker_progress(m_dcx.worker); }

    /* Sends messages of one kind: more than the interface has buffers and
     * entries of its tag list. Checks that it still receives, and has logged at
     * most 12 lines. */
    void bear(const message &msg)
    {
        const unsigned count = 300, before = m_dcx.received;
        dcx_deadline deadline;

        SCOPED_TRACE(msg.name);
        for (unsigned i = 0; i < count; i++) {
            m_stranger.send(msg, [&] { progress(); });
        }
        while (m_dcx.received < before + 100) {
            deadline.check("a message");
            uct_ep_am_short(m_dcx.ep, 5, 0, msg.data.data(), 0);
            progress();
        }
        m_dcx.flush();
        if (GetParam()) {
            receive_tag();
        }
        std::string lines = m_log.take();
        EXPECT_GE(12, std::count(lines.begin(), lines.end(), '\n')) << lines;
    }

    /* Checks that tagged messages match posted receives: the interface and the
     * device have the same list. */
    void receive_tag()
    {
        dcx_tag_mem mem(m_dcx, 100, 3);
        dcx_deadline deadline;

        for (unsigned i = 0; i < 20; i++) {
            dcx_tag_recv recv(m_dcx, 8000);
            dcx_end end;

            EXPECT_EQ(UCS_OK, recv.post(77));
            dcx_wait_told(m_dcx);
            EXPECT_EQ(UCS_INPROGRESS,
                      uct_ep_tag_eager_zcopy(m_dcx.ep, 77, 0, &mem.iov, 1, 0,
                                             &end.comp));
            while (!recv.has_ended() || (end.count == 0)) {
                deadline.check("a tagged message");
                progress();
            }
            EXPECT_EQ(UCS_OK, recv.status);
            EXPECT_EQ(100u, recv.length);
        }
    }

    ucx_log_reader m_log;
    dcx_loop m_dcx;
    stranger m_stranger{m_dcx.view()};
};

TEST_P(dcx_hostile, writes)
{
    bear({"write with immediate", MLX5_OPCODE_RDMA_WRITE_IMM, {}});
}

TEST_P(dcx_hostile, messages)
{
    bear({"no bytes", MLX5_OPCODE_SEND, {}});
    bear({"one byte", MLX5_OPCODE_SEND, {0}});
    bear({"unknown id", MLX5_OPCODE_SEND, {0, 0x50, 1, 2, 3}});
    bear({"unknown id, long", MLX5_OPCODE_SEND,
          std::vector<uint8_t>(300, 0x50)});
    bear({"request, too short", MLX5_OPCODE_SEND, {0, 0x40, 1, 2, 3}});
    bear({"grant of nothing",
          MLX5_OPCODE_SEND,
          {0, 0x41, 0xff, 0xff, 0, 0, 0, 1, 0, 1, 0, 0}});
    bear({"lost rendezvous",
          MLX5_OPCODE_SEND,
          {0, 0x43, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}});
    bear({"immediate", MLX5_OPCODE_SEND_IMM, {0, 0x50, 1, 2, 3}});
    bear({"immediate, no bytes", MLX5_OPCODE_SEND_IMM, {}});
}

TEST_P(dcx_hostile, headers_of_tag_matching)
{
    for (unsigned opcode = 1; opcode < 6; opcode++) {
        for (size_t length : {2, 15, 16, 17, 32, 33, 48, 64, 65}) {
            SCOPED_TRACE(length);
            bear({"header", MLX5_OPCODE_SEND, tmh(opcode, length)});
        }
    }
}

INSTANTIATE_TEST_SUITE_P(plain, dcx_hostile, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(tags, dcx_hostile, testing::Values(true));

} // namespace

int main(int argc, char **argv)
{
    hca_mode plain = {"plain", {{"UCX_DCX_RX_QUEUE_LEN", "64"}}};
    hca_mode tags  = {"tags",
                      {{"UCX_DCX_RX_QUEUE_LEN", "64"},
                       {"UCX_DCX_TM_ENABLE", "y"},
                       {"UCX_DCX_TM_LIST_SIZE", "15"}}};

    return hca_test_main(argc, argv, {plain, tags});
}
