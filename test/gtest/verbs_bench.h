/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of verbs: a queue pair with its completion queues, two
 * connected ones, work requests, and waits with a deadline for events of the
 * device. Formats of mlx5 are not used here: all calls go through libibverbs,
 * as a program's do. One thread.
 */
#ifndef DCX_TEST_VERBS_BENCH_H
#define DCX_TEST_VERBS_BENCH_H

#include "hca_fixture.h"
#include "strict_bench.h"

#include <memory>
#include <poll.h>

/* --- waiting -------------------------------------------------------------- */

inline struct ibv_wc verbs_wait(struct ibv_cq *cq)
{
    struct ibv_wc wc = {};

    if (!hca_until([&] { return ibv_poll_cq(cq, 1, &wc) != 0; })) {
        ADD_FAILURE() << "no completion";
        wc.status = IBV_WC_GENERAL_ERR;
    }
    return wc;
}

/* Expects one completion with this status for each request, in order. */
inline void verbs_expect_wcs(struct ibv_cq *cq, enum ibv_wc_status status,
                             uint64_t first, uint64_t last)
{
    for (uint64_t wr_id = first; wr_id <= last; wr_id++) {
        struct ibv_wc wc = verbs_wait(cq);

        EXPECT_EQ(status, wc.status) << "request " << wr_id;
        EXPECT_EQ(wr_id, wc.wr_id);
    }
}

inline bool verbs_is_empty(struct ibv_cq *cq)
{
    struct ibv_wc wc;

    return ibv_poll_cq(cq, 1, &wc) == 0;
}

/* Returns true if @fd is readable, or becomes so within @limit ms. */
inline bool verbs_readable(int fd, int limit = TIME_WAIT)
{
    struct pollfd pfd = {fd, POLLIN, 0};

    return poll(&pfd, 1, time_slow(limit)) == 1;
}

/* Returns the next async event, acknowledged. */
inline struct ibv_async_event verbs_event(struct ibv_context *ctx)
{
    struct ibv_async_event event = {};

    event.event_type = IBV_EVENT_DEVICE_FATAL;
    if (!verbs_readable(ctx->async_fd)) {
        ADD_FAILURE() << "no async event";
    } else if (ibv_get_async_event(ctx, &event) != 0) {
        ADD_FAILURE() << "no async event: " << strerror(errno);
    } else {
        ibv_ack_async_event(&event);
    }
    return event;
}

inline void verbs_expect_event(struct ibv_comp_channel *channel,
                               struct ibv_cq *cq)
{
    struct ibv_cq *got = NULL;
    void *context;

    ASSERT_TRUE(verbs_readable(channel->fd)) << "no event";
    ASSERT_EQ(0, ibv_get_cq_event(channel, &got, &context));
    EXPECT_EQ(cq, got);
    ibv_ack_cq_events(got, 1);
}

/* --- queue pairs ---------------------------------------------------------- */

struct verbs_options {
    enum ibv_qp_type type            = IBV_QPT_RC;
    struct ibv_pd *pd                = NULL; /* the device's */
    struct ibv_cq *send_cq           = NULL; /* a queue of its own */
    struct ibv_srq *srq              = NULL;
    struct ibv_comp_channel *channel = NULL; /* channel of the receives' CQ */
    int send_cqe                     = 63;
    uint32_t send_wr                 = 32;
    uint8_t retry_cnt                = 1;
    uint8_t rnr_retry                = 0;
    uint8_t min_rnr_timer            = 1; /* 10 us */
    uint8_t timeout                  = 1; /* 8 us */
    bool sig_all                     = false;
};

class verbs_ep {
public:
    explicit verbs_ep(const hca_device &dev,
                      const verbs_options &options = {}) :
        m_dev(dev),
        m_options(options)
    {
        struct ibv_qp_init_attr attr = {};

        m_own_cq = (options.send_cq != NULL) ?
                       NULL :
                       ibv_create_cq(dev.ctx, options.send_cqe, NULL, NULL, 0);
        send_cq  = (m_own_cq != NULL) ? m_own_cq : options.send_cq;
        recv_cq  = ibv_create_cq(dev.ctx, 63, NULL, options.channel, 0);
        HCA_CHECK_CALL((send_cq != NULL) && (recv_cq != NULL));

        attr.send_cq          = send_cq;
        attr.recv_cq          = recv_cq;
        attr.srq              = options.srq;
        attr.qp_type          = options.type;
        attr.sq_sig_all       = options.sig_all;
        attr.cap.max_send_wr  = options.send_wr;
        attr.cap.max_recv_wr  = (options.srq == NULL) ? 16 : 0;
        attr.cap.max_send_sge = 3;
        attr.cap.max_recv_sge = 1;
        qp = ibv_create_qp((options.pd != NULL) ? options.pd : dev.pd, &attr);
        HCA_CHECK_CALL(qp != NULL);
    }

    ~verbs_ep()
    {
        destroy_qp();
        EXPECT_EQ(0, ibv_destroy_cq(recv_cq));
        if (m_own_cq != NULL) {
            EXPECT_EQ(0, ibv_destroy_cq(m_own_cq));
        }
    }

    verbs_ep(const verbs_ep &) = delete;

    void destroy_qp()
    {
        if (qp != NULL) {
            EXPECT_EQ(0, ibv_destroy_qp(qp));
            qp = NULL;
        }
    }

    struct ibv_qp_attr attr(uint32_t dest_qpn) const
    {
        struct ibv_qp_attr attr = hca_qp_attr(m_dev, dest_qpn);

        attr.retry_cnt     = m_options.retry_cnt;
        attr.rnr_retry     = m_options.rnr_retry;
        attr.min_rnr_timer = m_options.min_rnr_timer;
        attr.timeout       = m_options.timeout;
        return attr;
    }

    void connect(const verbs_ep &peer) { connect(attr(peer.qp->qp_num)); }

    /* Moves the QP from RESET to RTS. */
    void connect(const struct ibv_qp_attr &attr)
    {
        const bool is_ud = (m_options.type == IBV_QPT_UD);

        hca_modify(qp, attr, IBV_QPS_INIT,
                   IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                       (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
        hca_modify(qp, attr, IBV_QPS_RTR, is_ud ? 0 : rtr_mask);
        hca_modify(qp, attr, IBV_QPS_RTS,
                   is_ud ? (int)IBV_QP_SQ_PSN : rts_mask);
    }

    enum ibv_qp_state state() const
    {
        struct ibv_qp_init_attr init_attr;
        struct ibv_qp_attr attr;

        HCA_CHECK_CALL(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init_attr) == 0);
        return attr.qp_state;
    }

    static constexpr int rtr_mask = IBV_QP_AV | IBV_QP_PATH_MTU |
                                    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC |
                                    IBV_QP_MIN_RNR_TIMER;
    static constexpr int rts_mask = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                    IBV_QP_MAX_QP_RD_ATOMIC;

    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_qp *qp;

private:
    const hca_device &m_dev;
    verbs_options m_options;
    struct ibv_cq *m_own_cq;
};

/* Two RC queue pairs, connected */
struct verbs_pair {
    explicit verbs_pair(const hca_device &dev,
                        const verbs_options &options = {}) :
        verbs_pair(dev, options, options)
    {
    }

    verbs_pair(const hca_device &dev, const verbs_options &options_a,
               const verbs_options &options_b) :
        a(dev, options_a),
        b(dev, options_b)
    {
        a.connect(b);
        b.connect(a);
    }

    verbs_ep a, b;
};

/* Connects two queue pairs. Requests of @a are out of sequence: @b expects
 * 0. */
inline void verbs_connect_ahead(verbs_ep &a, verbs_ep &b)
{
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    attr.sq_psn = 77;
    a.connect(attr);
    b.connect(a);
}

/* --- work requests -------------------------------------------------------- */

/* A signaled request */
class verbs_op {
public:
    explicit verbs_op(enum ibv_wr_opcode opcode, uint64_t wr_id = 0)
    {
        wr.opcode     = opcode;
        wr.wr_id      = wr_id;
        wr.send_flags = IBV_SEND_SIGNALED;
    }

    verbs_op &local(uint64_t addr, uint32_t length, uint32_t lkey)
    {
        m_sge[wr.num_sge++] = {addr, length, lkey};
        return *this;
    }

    verbs_op &local(const strict_mem &mem, uint32_t length)
    {
        return local((uintptr_t)mem.addr, length, mem.mr->lkey);
    }

    verbs_op &remote(uint64_t addr, uint32_t rkey)
    {
        wr.wr.rdma.remote_addr = addr;
        wr.wr.rdma.rkey        = rkey;
        return *this;
    }

    verbs_op &remote(const strict_mem &mem)
    {
        return remote((uintptr_t)mem.addr, mem.mr->rkey);
    }

    verbs_op &flags(unsigned flags)
    {
        wr.send_flags = flags;
        return *this;
    }

    /* Sets the list of segments; needed for a request that another's wr.next
     * leads to. */
    void attach() { wr.sg_list = m_sge; }

    int post(struct ibv_qp *qp)
    {
        struct ibv_send_wr *bad;

        attach();
        return ibv_post_send(qp, &wr, &bad);
    }

    struct ibv_send_wr wr = {};

private:
    struct ibv_sge m_sge[3] = {};
};

inline int verbs_recv(struct ibv_qp *qp, const strict_mem &mem, uint32_t length,
                      uint64_t wr_id = 0)
{
    struct ibv_sge sge    = {(uintptr_t)mem.addr, length, mem.mr->lkey};
    struct ibv_recv_wr wr = {};
    struct ibv_recv_wr *bad;

    wr.wr_id   = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    return (qp->srq != NULL) ? ibv_post_srq_recv(qp->srq, &wr, &bad) :
                               ibv_post_recv(qp, &wr, &bad);
}

/* Two UD queue pairs, and the address handle from the first to the second */
struct verbs_datagrams {
    explicit verbs_datagrams(const hca_device &dev) :
        a(dev, {.type = IBV_QPT_UD}), b(dev, {.type = IBV_QPT_UD})
    {
        struct ibv_ah_attr attr = dev.ah_attr(dev.is_roce());

        HCA_CHECK_CALL((ah = ibv_create_ah(dev.pd, &attr)) != NULL);
        a.connect(b);
        b.connect(a);
    }

    ~verbs_datagrams() { EXPECT_EQ(0, ibv_destroy_ah(ah)); }

    verbs_datagrams(const verbs_datagrams &) = delete;

    verbs_op to_b(verbs_op op) const
    {
        op.wr.wr.ud.ah          = ah;
        op.wr.wr.ud.remote_qpn  = b.qp->qp_num;
        op.wr.wr.ud.remote_qkey = b.attr(0).qkey;
        return op;
    }

    verbs_ep a, b;
    struct ibv_ah *ah;
};

/* --- the fixture ---------------------------------------------------------- */

/* The device and two pieces of memory; the parameter only gives a test its
 * mode. */
class verbs_test : public testing::TestWithParam<int> {
protected:
    verbs_op send(uint64_t wr_id = 0, uint32_t length = 64) const
    {
        return verbs_op(IBV_WR_SEND, wr_id).local(src, length);
    }

    verbs_op write(uint64_t wr_id = 0, uint32_t length = 64) const
    {
        return verbs_op(IBV_WR_RDMA_WRITE, wr_id)
            .local(src, length)
            .remote(dst);
    }

    /* Posts the request on @ep and returns the status of its completion. */
    static enum ibv_wc_status run(verbs_ep &ep, verbs_op op)
    {
        EXPECT_EQ(0, op.post(ep.qp));
        return verbs_wait(ep.send_cq).status;
    }

    /* Writes 64 bytes to a key of any kind; returns the status. */
    enum ibv_wc_status write_to(uint64_t addr, uint32_t rkey)
    {
        verbs_pair pair(dev);

        return run(pair.a, write().remote(addr, rkey));
    }

    hca_device dev;
    strict_mem src{dev.pd, ACCESS_ALL, 0x11};
    strict_mem dst{dev.pd, ACCESS_ALL, 0x22};
};

/* Reads 8 bytes, which the device writes to the completion, and libmlx5 copies
 * to memory. The key of that memory is wrong: the device does not use it. */
inline void verbs_read_to_cqe(const hca_device &dev, const strict_mem &to,
                              const strict_mem &from)
{
    setenv("MLX5_SCATTER_TO_CQE", "1", 1);
    verbs_pair pair(dev, {.sig_all = true});
    setenv("MLX5_SCATTER_TO_CQE", "0", 1);

    ASSERT_EQ(0, verbs_op(IBV_WR_RDMA_READ, 1)
                     .local((uintptr_t)to.addr, 8, to.mr->lkey ^ 0xdead00)
                     .remote(from)
                     .post(pair.a.qp));
    verbs_expect_wcs(pair.a.send_cq, IBV_WC_SUCCESS, 1, 1);
    EXPECT_EQ(0, memcmp(to.addr, from.addr, 8));
}

#endif
