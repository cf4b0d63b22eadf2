/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues by DEVX, and entries of 128 bytes that are padded. Part of
 * the program of test_devx_objects.cc.
 */
#include "devx_qp.h"

namespace {

constexpr unsigned CQE_64 = 0, CQE_128 = 1, CQE_128_PAD = 2;
constexpr size_t CTX = 0x10;

/* A queue of eight entries, which the test reads itself */
class devx_cq {
public:
    static constexpr unsigned log_count = 3;

    explicit devx_cq(const hca_device &dev, unsigned cqe_sz = CQE_64) :
        ring(dev.ctx, 2), m_size((cqe_sz == CQE_64) ? 64 : 128)
    {
        m_uar = mlx5dv_devx_alloc_uar(dev.ctx, 0);
        HCA_CHECK_CALL(m_uar != NULL);
        memset(ring.addr, 0xff, 4096); /* opcode invalid, owner 1 */
        object = std::make_unique<devx_object>(dev.ctx, create_in(cqe_sz));
        HCA_CHECK_CALL(object->obj != NULL);
    }

    ~devx_cq()
    {
        object.reset();
        mlx5dv_devx_free_uar(m_uar);
    }

    devx_mailbox create_in(unsigned cqe_sz) const
    {
        devx_mailbox in(0x110, 0x400);

        in.set(CTX, 23, 21, cqe_sz).put(CTX + 0x04, ring.umem->umem_id);
        in.set(CTX + 0x0c, 28, 24, log_count);
        in.set(CTX + 0x0c, 23, 0, m_uar->page_id);
        in.put64(CTX + 0x38, ring.dbr_offset());
        in.put(0x58, ring.umem->umem_id);
        return in;
    }

    uint32_t cqn() const { return object->out.number(); }

    uint8_t *entry(unsigned i) const
    {
        return ring.addr + i % (1u << log_count) * m_size;
    }

    /* Polls as in the PRM: an entry is valid if its owner bit is that of this
     * round. */
    bool poll(struct mlx5_cqe64 *cqe)
    {
        const uint8_t *at = entry(m_ci) + m_size - 64;
        uint8_t op_own    = __atomic_load_n(at + 63, __ATOMIC_ACQUIRE);

        if (((op_own >> 4) == MLX5_CQE_INVALID) ||
            ((op_own & 1) != ((m_ci >> log_count) & 1))) {
            return false;
        }
        memcpy(cqe, at, sizeof(*cqe));
        __atomic_store_n(ring.dbr(), htobe32(++m_ci), __ATOMIC_RELEASE);
        return true;
    }

    struct mlx5_cqe64 wait()
    {
        struct mlx5_cqe64 cqe = {};

        EXPECT_TRUE(hca_until([&] { return poll(&cqe); }));
        return cqe;
    }

    void arm(unsigned sn)
    {
        uint32_t word = sn << 28 | m_ci;

        __atomic_store_n(ring.dbr() + 1, htobe32(word), __ATOMIC_SEQ_CST);
        *(volatile uint64_t *)((char *)m_uar->base_addr + 0x20) =
            htobe64((uint64_t)word << 32 | cqn());
    }

    devx_mailbox query()
    {
        devx_mailbox in = devx_mailbox(16, 0x402).put(8, cqn()), out(0x110);

        EXPECT_EQ(0, mlx5dv_devx_obj_query(object->obj, in.bytes.data(), 16,
                                           out.bytes.data(), 0x110));
        return out;
    }

    devx_ring ring;
    std::unique_ptr<devx_object> object;

private:
    const size_t m_size;
    struct mlx5dv_devx_uar *m_uar;
    uint32_t m_ci = 0;
};

class devx_cqs : public verbs_test {
protected:
    /* Creates a queue pair connected to itself. */
    std::unique_ptr<devx_qp> loop(const devx_cq &cq)
    {
        auto qp = std::make_unique<devx_qp>(dev, m_rmp, cq.cqn());

        qp->connect(*qp);
        return qp;
    }

    void write(devx_qp &qp)
    {
        qp.post(raw_wqe(MLX5_OPCODE_RDMA_WRITE)
                    .raddr(dst.addr, dst.mr->rkey)
                    .data(src.addr, 64, src.mr->lkey));
    }

    devx_rmp m_rmp{dev, devx_rmp::LIST};
};

TEST_P(devx_cqs, report_what_completes)
{
    for (unsigned cqe_sz : {CQE_64, CQE_128, CQE_128_PAD}) {
        devx_cq cq(dev, cqe_sz);
        auto qp = loop(cq);

        for (unsigned i = 0; i < 30; i++) { /* more than once around the ring */
            write(*qp);
            struct mlx5_cqe64 cqe = cq.wait();

            ASSERT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
            EXPECT_EQ(qp->qpn, be32toh(cqe.sop_drop_qpn) & 0xffffff);
            EXPECT_NE(0u, cqe.timestamp);
        }
        EXPECT_EQ(cqe_sz, cq.query().get(CTX, 23, 21));
        EXPECT_EQ(30u, cq.query().word(CTX + 0x28)) << "consumed";
        EXPECT_EQ(30u, cq.query().word(CTX + 0x2c)) << "produced";
        EXPECT_EQ((cqe_sz == CQE_128_PAD) ? 0 : 0xff,
                  cq.entry(5)[0] | ((cqe_sz == CQE_64) ? 0xff : 0))
            << "the first half";
    }
}

TEST_P(devx_cqs, overrun_and_say_so)
{
    devx_cq cq(dev);
    auto qp = loop(cq);
    hca_log_reader log;

    for (unsigned i = 0; i < 9; i++) {
        write(*qp);
    }
    EXPECT_EQ(9u, cq.query().get(CTX, 31, 28)) << "overflow";
    EXPECT_NE(std::string::npos, log.take().find("overrun"));
}

TEST_P(devx_cqs, tell_a_subscriber_once_when_armed)
{
    const auto omit = MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA;
    struct mlx5dv_devx_event_channel *channel =
        mlx5dv_devx_create_event_channel(dev.ctx, omit);
    uint16_t comp = 0;

    ASSERT_NE(nullptr, channel);
    {
        devx_cq cq(dev);
        auto qp = loop(cq);

        ASSERT_EQ(0, mlx5dv_devx_subscribe_devx_event(channel, cq.object->obj,
                                                      sizeof(comp), &comp,
                                                      0xabcdef));
        for (unsigned sn = 0; sn < 3; sn++) {
            struct mlx5dv_devx_async_event_hdr event = {};

            write(*qp);
            EXPECT_FALSE(verbs_readable(channel->fd, 0)) << "not armed";
            cq.wait();
            EXPECT_EQ(0xau, cq.query().get(CTX, 11, 8)) << "fired";
            cq.arm(sn);
            EXPECT_EQ(0x9u, cq.query().get(CTX, 11, 8)) << "armed";
            write(*qp);
            write(*qp);
            ASSERT_TRUE(verbs_readable(channel->fd));
            EXPECT_EQ((ssize_t)sizeof(event),
                      mlx5dv_devx_get_event(channel, &event, sizeof(event)));
            EXPECT_EQ(0xabcdefu, event.cookie);
            EXPECT_FALSE(verbs_readable(channel->fd, 0)) << "one for both";
            cq.wait();
            cq.wait();
        }
    }
    mlx5dv_devx_destroy_event_channel(channel);
}

TEST_P(devx_cqs, are_kept_while_they_are_used)
{
    devx_cq cq(dev);
    auto qp = loop(cq);

    EXPECT_NE(0, mlx5dv_devx_obj_destroy(cq.object->obj));
}

TEST_P(devx_cqs, refuse_what_they_cannot_be)
{
    devx_cq cq(dev);
    const devx_mailbox good = cq.create_in(CQE_64);
    const struct {
        const char *what;
        devx_mailbox in;
        uint8_t status;
        uint32_t syndrome;
    } cases[] = {
        {"size of an entry", devx_mailbox(good).set(CTX, 23, 21, 3),
         DEVX_BAD_PARAM, CTX},
        {"one entry for all", devx_mailbox(good).set(CTX, 20, 20, 1),
         DEVX_BAD_PARAM, CTX},
        {"unknown page", devx_mailbox(good).set(CTX + 0x0c, 23, 0, 0xfff0),
         DEVX_BAD_RES, CTX + 0x0c},
        {"event queue", devx_mailbox(good).put(CTX + 0x14, 7), DEVX_BAD_PARAM,
         CTX + 0x14},
        {"longer than its umem", devx_mailbox(good).set(CTX + 0x0c, 28, 24, 10),
         DEVX_BAD_PARAM, 0x58},
        {"unknown umem", devx_mailbox(good).put(0x58, 0xfff0), DEVX_BAD_RES,
         0x58},
        {"doorbell record outside",
         devx_mailbox(good).put64(CTX + 0x38, 8192 - 4), DEVX_BAD_PARAM,
         CTX + 4},
    };

    for (const auto &c : cases) {
        devx_object object(dev.ctx, c.in);

        EXPECT_EQ(nullptr, object.obj) << c.what;
        EXPECT_EQ(c.status, object.out.status()) << c.what;
        EXPECT_EQ(c.syndrome, object.out.syndrome()) << c.what;
    }
}

/* A queue of verbs: libmlx5 makes it if the device reports support of
 * padding. */
TEST_P(devx_cqs, of_verbs_with_padding)
{
    struct ibv_cq_init_attr_ex attr = {};
    struct mlx5dv_cq_init_attr dv   = {};
    struct mlx5dv_cq raw            = {};
    struct mlx5dv_obj obj           = {};
    struct ibv_cq_ex *cq;

    attr.cqe     = 7;
    dv.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_FLAGS |
                   MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
    dv.flags    = MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD;
    dv.cqe_size = 128;
    cq          = mlx5dv_create_cq(dev.ctx, &attr, &dv);
    ASSERT_NE(nullptr, cq) << strerror(errno);
    obj.cq.in  = ibv_cq_ex_to_cq(cq);
    obj.cq.out = &raw;
    ASSERT_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
    {
        verbs_options options = {.send_cq = ibv_cq_ex_to_cq(cq)};
        verbs_pair pair(dev, options);

        memset(raw.buf, 0xff, 64);
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, verbs_test::write()));
        EXPECT_EQ(0, *(uint64_t *)raw.buf) << "the first half";
    }
    EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

INSTANTIATE_TEST_SUITE_P(ib, devx_cqs, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, devx_cqs, testing::Values(0));

} /* namespace */
