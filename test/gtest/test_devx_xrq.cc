/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Shared receive queues with tag matching, made by DEVX as UCX's rc_mlx5 and
 * dc_mlx5 do: their attributes, command queue pairs by DEVX, DC targets that
 * fetch the data of a rendezvous, and errors. Part of the program of
 * test_devx_objects.cc.
 */
#include "devx_xrq.h"
#include "verbs_peer.h"

#include <algorithm>

namespace {

class devx_tm : public verbs_test {
protected:
    /* Appends entry 0, for tag 5, or a later one. */
    void append(devx_qp &cmd, uint32_t length, unsigned index = 0)
    {
        xrq.append(cmd, 5, dst, length, index);
    }

    void expect_refused(const devx_mailbox &in, uint8_t status,
                        uint32_t syndrome, const char *what)
    {
        devx_object object(dev.ctx, in);

        EXPECT_EQ(nullptr, object.obj) << what;
        EXPECT_EQ(status, object.out.status()) << what;
        EXPECT_EQ(syndrome, object.out.syndrome()) << what;
    }

    void expect_not_set(const devx_mailbox &in, uint8_t status,
                        uint32_t syndrome, const char *what)
    {
        devx_mailbox out(16);

        EXPECT_EQ(status, xrq.modify(in, &out)) << what;
        EXPECT_EQ(syndrome, out.syndrome()) << what;
    }

    devx_xrq xrq{dev};
};

TEST_P(devx_tm, is_what_it_was_made_of)
{
    devx_mailbox out     = xrq.query(), none(16);
    constexpr size_t ctx = devx_xrq::CTX;

    EXPECT_EQ(0u, out.get(ctx, 31, 28)) << "good";
    EXPECT_EQ(1u, out.get(ctx, 11, 8)) << "tag matching";
    EXPECT_EQ(1u, out.get(ctx, 3, 0)) << "rendezvous";
    EXPECT_EQ(xrq.good.word(ctx + 8), out.word(ctx + 8)) << "cqn";
    EXPECT_EQ(4u, out.get(ctx + 0x20, 31, 28)) << "list";
    EXPECT_EQ(0u, out.get(ctx + 0x20, 15, 0)) << "append_next_index";
    EXPECT_EQ(xrq.good.get(devx_xrq::WQ, 31, 28), out.get(devx_xrq::WQ, 31, 28))
        << "wq_type";
    EXPECT_EQ(0u, out.get(devx_xrq::WQ + 0x24, 11, 0)) << "no strides";

    devx_qp cmd(dev, xrq);
    cmd.connect(cmd);
    append(cmd, 64);
    EXPECT_EQ(1u, xrq.query().get(ctx + 0x20, 15, 0));
    EXPECT_EQ(EBUSY, mlx5dv_devx_obj_destroy(xrq.object->obj));
    EXPECT_EQ(
        0, xrq.modify(devx_mailbox(16, 0x71a).put(8, xrq.number()).put(12, 3),
                      &none));
    EXPECT_EQ(3u, xrq.query().get(devx_xrq::WQ + 4, 15, 0)) << "lwm";
}

TEST_P(devx_tm, refuses_what_cannot_be)
{
    auto with            = [&] { return devx_mailbox(xrq.good); };
    constexpr size_t ctx = devx_xrq::CTX, wq = devx_xrq::WQ;

    expect_refused(with().set(ctx, 11, 8, 0), DEVX_BAD_PARAM, ctx,
                   "no tag matching");
    expect_refused(with().set(ctx, 3, 0, 2), DEVX_BAD_PARAM, ctx, "offload");
    expect_refused(with().set(ctx + 0x20, 31, 28, 11), DEVX_BAD_PARAM,
                   ctx + 0x20, "more tags than there can be");
    expect_refused(with().put(ctx + 0x24, 1), DEVX_BAD_PARAM, ctx + 0x24,
                   "counters at creation");
    expect_refused(with().set(ctx + 8, 23, 0, 0xfffff0), DEVX_BAD_RES, ctx + 8,
                   "cq of nobody");
    expect_refused(with().set(wq, 31, 28, 4), DEVX_BAD_PARAM, wq, "wq_type");
    expect_refused(with().set(wq + 0x24, 11, 8, 1), DEVX_BAD_PARAM, wq + 0x24,
                   "strides of a queue without");
    expect_refused(with().set(wq + 0x24, 2, 0, 1), DEVX_BAD_PARAM, wq + 0x24,
                   "their size");
    expect_refused(with().set(wq + 8, 23, 0, 0xfffff0), DEVX_BAD_RES, wq + 8,
                   "pd of nobody");
    expect_refused(with().set(wq + 0x20, 19, 16, 4), DEVX_BAD_PARAM, wq + 0x20,
                   "a stride without room for data");
    expect_refused(with().put(wq + 0x2c, 0), DEVX_BAD_RES, wq + 0x2c,
                   "umem of nobody");

    expect_not_set(xrq.dc_params().set(0x10, 18, 16, 0), DEVX_BAD_PARAM, 0x10,
                   "no mtu");
    expect_not_set(xrq.dc_params().set(0x10, 18, 16, 6), DEVX_BAD_PARAM, 0x10,
                   "an mtu of 8192");
    expect_not_set(xrq.dc_params().put(0x20, 1), DEVX_BAD_PARAM, 0x20,
                   "a reserved word");
    expect_not_set(devx_mailbox(0x10, 0x72a).put(8, xrq.number()), DEVX_BAD_OP,
                   0, "modify_xrq");
}

/* A command queue pair is RC, has a list of tags, and no send queue for the
 * program. */
TEST_P(devx_tm, wants_a_queue_pair_to_itself)
{
    devx_qp cmd(dev, xrq);
    devx_mailbox good    = cmd.create_in(xrq);
    constexpr size_t ctx = devx_qp::CTX;

    good.set(ctx, 7, 4, 1);
    expect_refused(good, DEVX_BAD_PARAM, ctx, "a send queue");
    good.set(ctx + 8, 15, 15, 1).set(ctx + 8, 14, 11, 0);
    EXPECT_NE(nullptr, devx_object(dev.ctx, good).obj);
    good.set(ctx, 23, 16, 1);
    expect_refused(good, DEVX_BAD_PARAM, ctx + 0xac, "an unreliable one");
}

/* Writes a DC initiator's request for `data`: TMH, RVH, and its own target, to
 * read through. @return its length */
uint32_t put_rndv_dc(const strict_mem &mem, const strict_mem &data,
                     uint32_t length, uint32_t dctn)
{
    tm_rndv rndv(IBV_TMH_RNDV, 5, data.addr, data.mr->rkey, length);
    struct prm_ravh ravh = {};

    ravh.sl_dct        = htobe32(dctn);
    ravh.dc_access_key = htobe64(TM_DC_KEY);
    memcpy(mem.addr, &rndv.headers, sizeof(rndv.headers));
    memcpy(mem.addr + sizeof(rndv.headers), &ravh, sizeof(ravh));
    return sizeof(rndv.headers) + sizeof(ravh);
}

class devx_tm_dc : public devx_tm {
protected:
    static constexpr uint32_t LENGTH = 5000;

    devx_tm_dc()
    {
        struct ibv_srq_init_attr attr = {NULL, {15, 1, 0}};

        HCA_CHECK_CALL((srq = ibv_create_srq(dev.pd, &attr)) != NULL);
        m_own.reset(new tm_dct(dev, srq));
        m_dctn   = m_own->qp->qp_num;
        m_dct_in = devx_dct_in(dev, xrq.cq.cq, xrq.number());
        m_dct_in.set(0x10, 7, 4, 1);
        m_dct.reset(new devx_object(dev.ctx, m_dct_in));
        HCA_CHECK_CALL(m_dct->obj != NULL);
        for (size_t i = 0; i < m_data.size; i++) {
            m_data.addr[i] = i * 7;
        }
        m_cmd->connect(*m_cmd);
    }

    ~devx_tm_dc()
    {
        m_dct.reset();
        m_own.reset();
        EXPECT_EQ(0, ibv_destroy_srq(srq));
    }

    enum ibv_wc_status request()
    {
        return m_dci.send(m_dct->out.number(), src, put_request());
    }

    /* Writes a request into `src`. @return its length */
    uint32_t put_request() { return put_rndv_dc(src, m_data, LENGTH, m_dctn); }

    /* Checks that an entry has matched, and that its data has arrived. */
    void expect_fetched()
    {
        xrq.expect(PRM_CQE_TM_CONSUMED);
        EXPECT_EQ(LENGTH, be32toh(xrq.expect(PRM_CQE_TM_EXPECTED).byte_cnt));
    }

    struct ibv_srq *srq;
    std::unique_ptr<tm_dct> m_own; /* target of the initiator, to read from */
    uint32_t m_dctn;               /* its number in a request */
    strict_mem m_data{dev.pd, ACCESS_ALL, 0x33};
    devx_mailbox m_dct_in{16};
    std::unique_ptr<devx_qp> m_cmd{new devx_qp(dev, xrq)};
    std::unique_ptr<devx_object> m_dct;

private:
    tm_dci m_dci{dev};
};

TEST_P(devx_tm_dc, target_is_read_back)
{
    const uint32_t dctn = m_dct->out.number();
    devx_mailbox out(128);

    EXPECT_EQ(0,
              mlx5dv_devx_obj_query(
                  m_dct->obj, devx_mailbox(16, 0x713).put(8, dctn).bytes.data(),
                  16, out.bytes.data(), 128));
    EXPECT_EQ(1u, out.get(0x10, 7, 4)) << "offload_type";
}

TEST_P(devx_tm_dc, fetches_the_data_of_a_rendezvous)
{
    devx_mailbox out(16);
    struct mlx5_cqe64 cqe;

    EXPECT_EQ(0, xrq.modify(xrq.dc_params(), &out));
    EXPECT_EQ(0, verbs_recv(m_own->qp, m_data, 64)); /* for the FIN */
    append(*m_cmd, LENGTH);
    EXPECT_EQ(IBV_WC_SUCCESS, request());
    cqe = xrq.expect(PRM_CQE_TM_CONSUMED);
    EXPECT_EQ(htobe64(5), cqe.tmh.tag);
    cqe = xrq.expect(PRM_CQE_TM_EXPECTED);
    EXPECT_EQ(LENGTH, be32toh(cqe.byte_cnt));
    struct ibv_wc wc = verbs_wait(m_own->cq);
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh), wc.byte_len);
    EXPECT_EQ(IBV_TMH_FIN, m_data.addr[0]);
    EXPECT_EQ(0, memcmp(dst.addr + 64, m_data.addr + 64, LENGTH - 64));
}

TEST_P(devx_tm_dc, fetches_nothing_without_parameters)
{
    append(*m_cmd, LENGTH);
    EXPECT_EQ(IBV_WC_SUCCESS, request());
    EXPECT_EQ(48u,
              be32toh(xrq.expect(PRM_CQE_TM_CONSUMED_MSG_SW_RNDV).byte_cnt));
    EXPECT_EQ(0, memcmp(dst.addr, src.addr, 48));
}

/* The request names a target that does not exist: the entry is canceled, and
 * the buffer is the program's again. */
TEST_P(devx_tm_dc, gives_up_on_who_does_not_answer)
{
    devx_mailbox params = xrq.dc_params(), out(16);

    EXPECT_EQ(0, xrq.modify(params.set(0x10, 28, 24, 1), &out));
    append(*m_cmd, LENGTH);
    m_dctn ^= 0x800000;
    EXPECT_EQ(IBV_WC_SUCCESS, request());
    xrq.expect(PRM_CQE_TM_CONSUMED);
    xrq.expect(PRM_CQE_TM_MSG_COMPLETION_CANCELED);
}

/* The FIN of a rendezvous waits for a receive, without limit, and blocks
 * nothing: another one is fetched meanwhile. */
TEST_P(devx_tm_dc, waits_for_a_receive_of_the_fin)
{
    devx_mailbox out(16);

    EXPECT_EQ(0, xrq.modify(xrq.dc_params(), &out));
    for (unsigned i = 0; i < 2; i++) {
        append(*m_cmd, LENGTH, i);
        EXPECT_EQ(IBV_WC_SUCCESS, request());
        expect_fetched();
        time_quiet(QUIET_RNR);
        EXPECT_TRUE(verbs_is_empty(m_own->cq));
    }
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(0, verbs_recv(m_own->qp, m_data, 64));
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(m_own->cq).status);
        EXPECT_EQ(IBV_TMH_FIN, m_data.addr[0]);
    }
}

/* A request that finds neither an entry nor a receive is retried. */
TEST_P(devx_tm_dc, waits_for_an_entry)
{
    tm_dci patient(dev, 7);
    devx_mailbox out(16);

    EXPECT_EQ(0, xrq.modify(xrq.dc_params(), &out));
    EXPECT_EQ(0, verbs_recv(m_own->qp, m_data, 64));
    patient.post(m_dct->out.number(), src, put_request());
    time_quiet(QUIET_RNR);
    append(*m_cmd, LENGTH);
    EXPECT_EQ(IBV_WC_SUCCESS, patient.wait());
    expect_fetched();
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(m_own->cq).status);
}

/* The key in a request must be the one that the list fetches with. */
TEST_P(devx_tm_dc, refuses_a_request_of_another_key)
{
    devx_mailbox out(16), params = xrq.dc_params();

    EXPECT_EQ(0, xrq.modify(params.put64(0x18, TM_DC_KEY + 1), &out));
    append(*m_cmd, LENGTH);
    EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, request());
}

/* A device that fetches with the key in the request */
class devx_tm_own_key : public devx_tm_dc {};

TEST_P(devx_tm_own_key, fetches_with_the_key_of_the_request)
{
    devx_mailbox out(16), params = xrq.dc_params();

    EXPECT_EQ(0, xrq.modify(params.put64(0x18, TM_DC_KEY + 1), &out));
    EXPECT_EQ(0, verbs_recv(m_own->qp, m_data, 64));
    append(*m_cmd, LENGTH);
    EXPECT_EQ(IBV_WC_SUCCESS, request());
    expect_fetched();
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(m_own->cq).status);
    EXPECT_EQ(0, memcmp(dst.addr + 64, m_data.addr + 64, LENGTH - 64));
}

/* The list of the second SRQ is not for DC: a target by DEVX is refused. */
TEST_P(devx_tm_dc, wants_a_list_that_is_for_dc)
{
    devx_xrq other(dev, {.type = devx_rq::CYCLIC}, false);

    expect_refused(devx_dct_in(dev, other.cq.cq, other.number()),
                   DEVX_BAD_PARAM, 0x10 + 0x14, "dc 0");
}

/* Sends a request to the target that the parent names, and waits to be
 * killed. */
void dc_rndv_sender(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    struct ibv_srq_init_attr attr = {NULL, {15, 1, 0}};
    struct ibv_srq *srq           = ibv_create_srq(dev.pd, &attr);
    tm_dct own(dev, srq);
    tm_dci dci(dev);
    uint32_t dctn;

    HCA_CHECK_CALL(::read(fd, &dctn, sizeof(dctn)) == sizeof(dctn));
    dci.post(dctn, mem, put_rndv_dc(mem, mem, 4096, own.qp->qp_num));
    peer_wait_for_the_end(fd);
}

/* The device is so late that it fetches only when the sender is dead. */
class devx_tm_killed : public devx_tm_dc {
protected:
    peer_process m_peer{dc_rndv_sender}; /* forked late: opens its own device */
};

/* The entry is canceled though this process sends nothing to the dead one, and
 * makes no calls. */
TEST_P(devx_tm_killed, ends_what_it_had_asked_for)
{
    const uint32_t dctn = m_dct->out.number();
    devx_mailbox params = xrq.dc_params(), out(16);

    EXPECT_EQ(0, xrq.modify(params.set(0x10, 28, 24, 1), &out));
    append(*m_cmd, LENGTH);
    HCA_CHECK_CALL(::write(m_peer.fd, &dctn, sizeof(dctn)) == sizeof(dctn));
    xrq.expect(PRM_CQE_TM_CONSUMED);
    kill(m_peer.pid, SIGKILL);
    xrq.expect(PRM_CQE_TM_MSG_COMPLETION_CANCELED);
    EXPECT_TRUE(WIFSIGNALED(m_peer.wait()));
}

/* The first read is lost, and its queue is destroyed before the retry. */
class devx_tm_lost : public devx_tm_dc {};

TEST_P(devx_tm_lost, is_not_fetched_for_a_queue_that_is_gone)
{
    devx_mailbox out(16);

    EXPECT_EQ(0, xrq.modify(xrq.dc_params(), &out));
    EXPECT_EQ(0, verbs_recv(m_own->qp, m_data, 64));
    append(*m_cmd, LENGTH);
    EXPECT_EQ(IBV_WC_SUCCESS, request());
    xrq.expect(PRM_CQE_TM_CONSUMED);
    m_dct.reset();
    m_cmd.reset();
    xrq.object.reset();
    memset(dst.addr, 0x55, dst.size);
    time_quiet(QUIET_ACK);
    EXPECT_EQ(LENGTH, std::count(dst.addr, dst.addr + LENGTH, 0x55));
    EXPECT_TRUE(verbs_is_empty(m_own->cq)) << "nothing was fetched";
}

/* A device whose targets do not fetch */
class devx_tm_no_rndv : public verbs_test {};

TEST_P(devx_tm_no_rndv, is_neither_reported_nor_done)
{
    devx_mailbox out(0x1010);

    ASSERT_EQ(0, mlx5dv_devx_general_cmd(
                     dev.ctx, devx_mailbox(16, 0x100).put(4, 1).bytes.data(),
                     16, out.bytes.data(), out.bytes.size()));
    EXPECT_EQ(1u, out.get(0x10 + 0xbc, 15, 15)) << "tag_matching";
    EXPECT_EQ(1u, out.get(0x10 + 0xbc, 14, 14)) << "rndv_offload_rc";
    EXPECT_EQ(0u, out.get(0x10 + 0xbc, 13, 13)) << "rndv_offload_dc";
    EXPECT_THROW(devx_xrq xrq(dev), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(no_rndv, devx_tm_no_rndv, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, devx_tm, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, devx_tm, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, devx_tm_dc, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, devx_tm_dc, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, devx_tm_dc, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(own_key, devx_tm_own_key, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(slow, devx_tm_killed, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(lost, devx_tm_lost, testing::Values(0));

} /* namespace */
