/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What the device says of itself and of its objects: attributes are those that
 * it has, which are not always those that it was asked for.
 */
#include "verbs_bench.h"

namespace {

class verbs_attr : public verbs_test {
protected:
    static struct ibv_qp_attr query(struct ibv_qp *qp,
                                    struct ibv_qp_init_attr *init = NULL)
    {
        const int all = (IBV_QP_DEST_QPN << 1) - 1;
        struct ibv_qp_init_attr unused;
        struct ibv_qp_attr attr;

        HCA_CHECK_CALL(ibv_query_qp(qp, &attr, all,
                                    (init != NULL) ? init : &unused) == 0);
        return attr;
    }
};

/* --- queue pairs ---------------------------------------------------------- */

TEST_P(verbs_attr, receive_queue_is_as_large_as_its_ring)
{
    struct {
        uint32_t wr, sge, ring_wr, ring_sge;
    } cases[] = {{1, 1, 4, 1}, {3, 1, 4, 1}, {4, 1, 4, 1}, {5, 3, 8, 4}};

    for (const auto &c : cases) {
        struct ibv_cq *cq = ibv_create_cq(dev.ctx, 15, NULL, NULL, 0);
        struct ibv_qp_init_attr init = {}, got;

        init.send_cq = init.recv_cq = cq;
        init.qp_type                = IBV_QPT_RC;
        init.cap                    = {4, c.wr, 1, c.sge, 0};
        struct ibv_qp *qp           = ibv_create_qp(dev.pd, &init);
        ASSERT_NE(nullptr, qp);
        EXPECT_EQ(c.ring_wr, query(qp, &got).cap.max_recv_wr);
        EXPECT_EQ(c.ring_wr, got.cap.max_recv_wr);
        EXPECT_EQ(c.ring_sge, got.cap.max_recv_sge);
        EXPECT_EQ(init.cap.max_recv_wr, got.cap.max_recv_wr) << "as created";
        EXPECT_EQ(0, ibv_destroy_qp(qp));
        EXPECT_EQ(0, ibv_destroy_cq(cq));
    }
}

TEST_P(verbs_attr, reads_under_way_are_a_power_of_two)
{
    verbs_ep a(dev), b(dev);
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    attr.max_rd_atomic      = 3;
    attr.max_dest_rd_atomic = 5;
    a.connect(attr);
    EXPECT_EQ(4, query(a.qp).max_rd_atomic);
    EXPECT_EQ(8, query(a.qp).max_dest_rd_atomic);

    attr.dest_qp_num   = a.qp->qp_num;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 0;
    b.connect(attr);
    EXPECT_EQ(1, query(b.qp).max_rd_atomic);
    EXPECT_EQ(1, query(b.qp).max_dest_rd_atomic);
}

TEST_P(verbs_attr, access_flags_are_those_of_the_context)
{
    verbs_ep a(dev), b(dev);
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    attr.qp_access_flags = ACCESS_ALL;
    a.connect(attr);
    EXPECT_EQ((unsigned)(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                         IBV_ACCESS_REMOTE_ATOMIC),
              query(a.qp).qp_access_flags);

    attr.dest_qp_num        = a.qp->qp_num;
    attr.max_dest_rd_atomic = 0; /* leaves reads and atomics off */
    b.connect(attr);
    EXPECT_EQ((unsigned)IBV_ACCESS_REMOTE_WRITE, query(b.qp).qp_access_flags);
}

TEST_P(verbs_attr, psns_are_those_of_the_next_message)
{
    verbs_ep a(dev), b(dev);
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    attr.sq_psn = 0xfffffe;
    attr.rq_psn = 7;
    a.connect(attr);
    attr        = b.attr(a.qp->qp_num);
    attr.sq_psn = 7;
    attr.rq_psn = 0xfffffe;
    b.connect(attr);
    EXPECT_EQ(0xfffffeu, query(a.qp).sq_psn);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(IBV_WC_SUCCESS, run(a, write()));
    }
    EXPECT_EQ(1u, query(a.qp).sq_psn) << "of 24 bits";
    EXPECT_EQ(1u, query(b.qp).rq_psn);
    EXPECT_EQ(7u, query(a.qp).rq_psn);
    EXPECT_EQ(7u, query(b.qp).sq_psn);
}

TEST_P(verbs_attr, datagrams_have_the_mtu_of_the_port)
{
    verbs_options options;

    options.type = IBV_QPT_UD;
    verbs_ep ep(dev, options);
    ep.connect(ep.attr(0));
    EXPECT_EQ(IBV_MTU_4096, query(ep.qp).path_mtu);
    EXPECT_EQ(0, query(ep.qp).ah_attr.dlid);
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_attr, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_attr, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {{"ib", {}}, {"roce", {{"SOFTHCA_LINK", "roce"}}}});
}
