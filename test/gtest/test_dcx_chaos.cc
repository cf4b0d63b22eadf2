/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Random calls on endpoints to live peers, to dead ones, and to the same
 * interface, also in completions and in message handlers, with few initiators
 * and short rings. Each operation ends once; an endpoint that was not canceled,
 * has a live peer and posts nothing wrong gets no error, and its messages
 * arrive in order. The seed, a parameter, determines all calls.
 */
#include "dcx_live_peer.h"

#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace {

enum target { LIVE_A, LIVE_B, SELF, DEAD, NUM_TARGETS };

struct chaos_ep {
    uct_ep_h ep;
    uint32_t id;
    enum target target;
    uint32_t sent     = 0;
    uint32_t received = 0;
    unsigned pending  = 0;
    bool is_gone      = false;
    bool has_erred    = false; /* an error is allowed */
};

class dcx_chaos;

struct chaos_op {
    enum kind { MESSAGE, PUT, GET, FETCH, FLUSH };

    uct_completion_t comp = {};
    dcx_chaos *chaos;
    chaos_ep *ep;
    enum kind kind;
    bool is_wrong  = false;
    bool started   = false;
    unsigned count = 0;
    uint64_t value = 0;
};

struct chaos_request {
    uct_pending_req_t req;
    chaos_ep *ep;
    uint64_t header;
    unsigned ended;
};

class dcx_chaos
    : public testing::TestWithParam<std::tuple<const char *, unsigned>> {
protected:
    dcx_chaos() : m_random(std::get<1>(GetParam()))
    {
        setenv("UCX_DCX_TX_POLICY", std::get<0>(GetParam()), 1);
        m_dcx.reset(new dcx_loop);
        m_dcx->survives_errors = true;
        for (dcx_loop *loop : {&m_live_a.loop, &m_live_b.loop, &*m_dcx}) {
            UCT_CALL(
                uct_iface_set_am_handler(loop->iface, 6, receive, this, 0));
            memset(loop->mem.data(), 0, sizeof(uint64_t));
        }
    }

    ~dcx_chaos()
    {
        m_depth = max_depth;
        for (auto &ep : m_eps) {
            if (!ep.is_gone) {
                destroy(&ep);
            }
        }
        unsetenv("UCX_DCX_TX_POLICY");
    }

    /* Returns a random number below `count`. */
    unsigned draw(unsigned count) { return m_random() % count; }

    dcx_loop &loop(const chaos_ep *ep)
    {
        return (ep->target == LIVE_B) ? m_live_b.loop :
               (ep->target == SELF)   ? *m_dcx :
                                        m_live_a.loop;
    }

    /* --- endpoints -------------------------------------------------------- */

    void make_ep()
    {
        auto is_alive = [](const chaos_ep &ep) { return !ep.is_gone; };

        if (std::count_if(m_eps.begin(), m_eps.end(), is_alive) >= 8) {
            return;
        }

        add_ep((enum target)draw(NUM_TARGETS));
    }

    void add_ep(enum target target)
    {
        chaos_ep &ep = m_eps.emplace_back();

        ep.id     = m_eps.size();
        ep.target = target;
        if (ep.target == DEAD) {
            dcx_loop peer;

            ep.ep        = m_dcx->make_ep(peer);
            ep.has_erred = true;
        } else {
            ep.ep = m_dcx->make_ep(loop(&ep));
        }
    }

    chaos_ep *pick_ep()
    {
        std::vector<chaos_ep *> eps;

        for (auto &ep : m_eps) {
            if (!ep.is_gone) {
                eps.push_back(&ep);
            }
        }
        return eps.empty() ? NULL : eps[draw(eps.size())];
    }

    void destroy(chaos_ep *ep)
    {
        /* a new endpoint can get the address of this one */
        check_failed();
        ep->is_gone = true;
        uct_ep_pending_purge(ep->ep, purged, NULL);
        EXPECT_EQ(0u, ep->pending);
        uct_ep_destroy(ep->ep);
    }

    /* Checks that only endpoints for which an error is allowed have failed. */
    void check_failed()
    {
        for (uct_ep_h failed : m_dcx->failed_eps) {
            for (const auto &ep : m_eps) {
                if (!ep.is_gone && (ep.ep == failed)) {
                    EXPECT_TRUE(ep.has_erred) << "ep " << ep.id;
                }
            }
        }
        m_dcx->failed_eps.clear();
    }

    /* --- operations ------------------------------------------------------- */

    chaos_op *make_op(chaos_ep *ep, enum chaos_op::kind kind)
    {
        chaos_op *op = &m_ops.emplace_back();

        op->comp.func  = ended;
        op->comp.count = 1;
        op->chaos      = this;
        op->ep         = ep;
        op->kind       = kind;
        return op;
    }

    static void ended(uct_completion_t *comp)
    {
        chaos_op *op = (chaos_op *)comp; /* its first member */

        op->count++;
        comp->count = 1; /* another end is an error of this test, and must not
                          * abort the process */
        if (op->chaos->draw(4) == 0) {
            op->chaos->act_within();
        }
    }

    static size_t pack(void *dest, void *arg)
    {
        memcpy(dest, arg, sizeof(uint64_t));
        return sizeof(uint64_t);
    }

    static void unpack(void *arg, const void *data, size_t length)
    {
        memcpy(arg, data, length);
    }

    ucs_status_t try_send(chaos_ep *ep, uint64_t header)
    {
        uct_iov_t iov = {m_dcx->mem.data() + 4096, 16, m_dcx->memh, 0, 1};
        ssize_t length;
        chaos_op *op;

        switch (draw(3)) {
        case 0:
            return uct_ep_am_short(ep->ep, 6, header, NULL, 0);
        case 1:
            length = uct_ep_am_bcopy(ep->ep, 6, pack, &header, 0);
            return (length < 0) ? (ucs_status_t)length : UCS_OK;
        default:
            op = make_op(ep, chaos_op::MESSAGE);
            return start(op, uct_ep_am_zcopy(ep->ep, 6, &header, sizeof(header),
                                             &iov, 1, 0, &op->comp));
        }
    }

    void send(chaos_ep *ep)
    {
        uint64_t header     = ((uint64_t)ep->id << 32) | (ep->sent + 1);
        ucs_status_t status = ep->pending ? UCS_ERR_NO_RESOURCE :
                                            try_send(ep, header);
        chaos_request *req;

        if (status == UCS_ERR_NO_RESOURCE) {
            req           = &m_requests.emplace_back();
            req->req.func = send_pending;
            req->ep       = ep;
            req->header   = header;
            status        = uct_ep_pending_add(ep->ep, &req->req, 0);
            if (status == UCS_OK) {
                ep->pending++;
            } else {
                m_requests.pop_back();
            }
        }

        if (!UCS_STATUS_IS_ERR(status)) {
            ep->sent++;
        }
    }

    static ucs_status_t send_pending(uct_pending_req_t *tl_req)
    {
        chaos_request *req  = (chaos_request *)tl_req; /* its first member */
        ucs_status_t status = uct_ep_am_short(req->ep->ep, 6, req->header, NULL,
                                              0);

        if (status == UCS_ERR_NO_RESOURCE) {
            return status;
        }
        purged(tl_req, NULL);
        return UCS_OK;
    }

    static void purged(uct_pending_req_t *tl_req, void *)
    {
        chaos_request *req = (chaos_request *)tl_req;

        req->ended++;
        req->ep->pending--;
    }

    static ucs_status_t receive(void *arg, void *data, size_t length, unsigned)
    {
        dcx_chaos *self = (dcx_chaos *)arg;
        uint64_t header;

        EXPECT_LE(sizeof(header), length);
        memcpy(&header, data, sizeof(header));
        self->received(header >> 32, header);
        if (self->draw(20) == 0) {
            self->act_within();
        }
        return UCS_OK;
    }

    void received(uint32_t id, uint32_t number)
    {
        auto ep = std::find_if(m_eps.begin(), m_eps.end(),
                               [=](const auto &e) { return e.id == id; });

        ASSERT_NE(m_eps.end(), ep);
        if (ep->is_gone || ep->has_erred) {
            EXPECT_LT(ep->received, number) << "ep " << id;
        } else {
            EXPECT_EQ(ep->received + 1, number) << "ep " << id;
        }
        ep->received = number;
    }

    ucs_status_t start(chaos_op *op, ucs_status_t status)
    {
        op->started = (status == UCS_INPROGRESS);
        return status;
    }

    void put(chaos_ep *ep)
    {
        dcx_loop &peer = loop(ep);
        uct_iov_t iov  = {m_dcx->mem.data() + 4096, 64, m_dcx->memh, 0, 1};
        chaos_op *op   = make_op(ep, chaos_op::PUT);

        op->is_wrong = (draw(60) == 0);
        ep->has_erred |= op->is_wrong;
        start(op, uct_ep_put_zcopy(
                      ep->ep, &iov, 1, (uintptr_t)peer.mem.data() + 8192,
                      dcx_peek_rkey(peer.memh) ^ (op->is_wrong ? ~0xffu : 0),
                      &op->comp));
    }

    void get(chaos_ep *ep)
    {
        dcx_loop &peer = loop(ep);
        chaos_op *op   = make_op(ep, chaos_op::GET);

        start(op,
              uct_ep_get_bcopy(ep->ep, unpack, &op->value, sizeof(op->value),
                               (uintptr_t)peer.mem.data(),
                               dcx_peek_rkey(peer.memh), &op->comp));
    }

    void fetch(chaos_ep *ep)
    {
        dcx_loop &peer = loop(ep);
        chaos_op *op   = make_op(ep, chaos_op::FETCH);

        start(op, uct_ep_atomic64_fetch(ep->ep, UCT_ATOMIC_OP_ADD, 1,
                                        &op->value, (uintptr_t)peer.mem.data(),
                                        dcx_peek_rkey(peer.memh), &op->comp));
    }

    void flush(chaos_ep *ep, unsigned flags)
    {
        chaos_op *op = make_op(ep, chaos_op::FLUSH);

        if (flags & UCT_FLUSH_FLAG_CANCEL) {
            ep->has_erred = true;
            uct_ep_pending_purge(ep->ep, purged, NULL);
        }
        start(op, uct_ep_flush(ep->ep, flags, &op->comp));
    }

    /* --- one thing or another --------------------------------------------- */

    void act()
    {
        chaos_ep *ep     = pick_ep();
        unsigned percent = draw(100);

        if ((ep == NULL) || (draw(12) == 0)) {
            make_ep();
        } else if (percent < 55) {
            for (unsigned count = 1 + draw(6); count > 0; count--) {
                (percent < 35) ? send(ep) : put(ep);
            }
        } else if (percent < 62) {
            get(ep);
        } else if (percent < 70) {
            fetch(ep);
        } else if (percent < 80) {
            flush(ep, (percent < 78) ? 0 : UCT_FLUSH_FLAG_CANCEL);
        } else {
            act_rarely(ep, percent);
        }
    }

    void act_rarely(chaos_ep *ep, unsigned percent)
    {
        if (percent < 82) {
            ep->has_erred = true;
            uct_ep_invalidate(ep->ep, 0);
        } else if (percent < 86) {
            uct_ep_check(ep->ep, 0, NULL);
        } else if (percent < 90) {
            destroy(ep);
        } else if (percent < 95) {
            uct_ep_fence(ep->ep, 0);
        } else {
            uct_iface_flush(m_dcx->iface, 0, NULL);
        }
    }

    /* Acts in a callback, up to a depth. */
    void act_within()
    {
        if (m_depth < max_depth) {
            m_depth++;
            act();
            m_depth--;
        }
    }

    void progress()
    {
        uct_worker_progress(m_dcx->worker);
        m_live_a.progress();
        m_live_b.progress();
    }

    /* --- the end ---------------------------------------------------------- */

    bool has_ended()
    {
        for (const auto &op : m_ops) {
            if (op.started && (op.count == 0)) {
                return false;
            }
        }
        for (const auto &req : m_requests) {
            if (req.ended == 0) {
                return false;
            }
        }
        for (const auto &ep : m_eps) {
            if (!ep.is_gone && !ep.has_erred && (ep.received < ep.sent)) {
                return false;
            }
        }
        return uct_iface_flush(m_dcx->iface, 0, NULL) == UCS_OK;
    }

    void finish()
    {
        dcx_deadline deadline;

        m_depth = max_depth;
        while (!has_ended()) {
            ASSERT_FALSE(deadline.is_over());
            for (unsigned i = 0; i < 100; i++) {
                progress();
            }
        }
        check_failed();
    }

    void check_ops()
    {
        for (const auto &op : m_ops) {
            SCOPED_TRACE(testing::Message()
                         << "kind " << op.kind << " of ep " << op.ep->id);
            ASSERT_EQ(op.started, op.count);
            if (op.started && !op.ep->has_erred && !op.ep->is_gone) {
                EXPECT_EQ(UCS_OK, op.comp.status);
            }
            if (op.started && (op.kind != chaos_op::FLUSH) &&
                (op.is_wrong || (op.ep->target == DEAD))) {
                EXPECT_NE(UCS_OK, op.comp.status);
            }
        }
        for (const auto &req : m_requests) {
            ASSERT_EQ(1u, req.ended);
        }
    }

    /* Checks that fetches that succeeded got different values, and that the
     * counter is between their number and that of all posted fetches. */
    void check_fetches(enum target target, const dcx_loop &peer)
    {
        std::set<uint64_t> values;
        uint64_t counter, ok = 0, started = 0;

        memcpy(&counter, peer.mem.data(), sizeof(counter));
        for (const auto &op : m_ops) {
            if (!op.started || (op.kind != chaos_op::FETCH) ||
                (op.ep->target != target)) {
                continue;
            }
            started++;
            if (op.comp.status == UCS_OK) {
                ok++;
                values.insert(op.value);
                EXPECT_LT(op.value, counter);
            }
        }
        EXPECT_EQ(ok, values.size());
        EXPECT_LE(ok, counter);
        EXPECT_GE(started, counter);
    }

    /* --- the counters of the initiators ----------------------------------- */

    /* Posts a WQE of two blocks. */
    ucs_status_t put_short(uct_ep_h ep)
    {
        return uct_ep_put_short(ep, m_dcx->mem.data(), 64,
                                (uintptr_t)m_live_a.loop.mem.data() + 8192,
                                dcx_peek_rkey(m_live_a.loop.memh));
    }

    /* Posts such WQEs from another endpoint until the 16-bit counters of its
     * initiator have wrapped around. Checks that the existing endpoints stay
     * idle. */
    void go_round()
    {
        uct_ep_h other = m_dcx->make_ep(m_live_a.loop);
        dcx_deadline deadline;

        for (unsigned i = 0; i <= (UINT16_MAX + 256) / 2;) {
            ASSERT_FALSE(deadline.is_over());
            if (put_short(other) == UCS_OK) {
                i++;
            } else {
                progress();
            }
            ASSERT_NO_FATAL_FAILURE(check_rest());
        }
        uct_ep_destroy(other);
    }

    void check_rest()
    {
        unsigned count = 0;

        for (const auto &ep : m_eps) {
            if (!ep.is_gone && !ep.has_erred) {
                ASSERT_EQ(UCS_OK, uct_ep_flush(ep.ep, 0, NULL))
                    << "ep " << ep.id;
                count++;
            }
        }
        ASSERT_LT(0u, count);
    }

    static constexpr unsigned max_depth = 3;

    std::mt19937 m_random;
    live_peer m_live_a, m_live_b;
    std::unique_ptr<dcx_loop> m_dcx;
    std::list<chaos_ep> m_eps;
    std::list<chaos_op> m_ops;
    std::list<chaos_request> m_requests;
    unsigned m_depth = 0;
};

TEST_P(dcx_chaos, each_ends_once)
{
    for (unsigned i = 0; i < 1000; i++) {
        act();
        if (draw(4) == 0) {
            progress();
        }
    }
    finish();
    check_ops();
    check_fetches(LIVE_A, m_live_a.loop);
    check_fetches(LIVE_B, m_live_b.loop);
    check_fetches(SELF, *m_dcx);
}

std::string
dcx_chaos_name(const testing::TestParamInfo<dcx_chaos::ParamType> &info)
{
    return std::string(std::get<0>(info.param)) + "_" +
           std::to_string(std::get<1>(info.param));
}

class dcx_chaos_round : public dcx_chaos {};

/* An idle endpoint stays idle while others use the initiator, also when its
 * counters have wrapped around. */
TEST_P(dcx_chaos_round, at_rest)
{
    for (unsigned i = 0; i < 100; i++) {
        act();
    }
    finish();
    add_ep(LIVE_A); /* errors of the others can be allowed */
    ASSERT_EQ(UCS_OK, put_short(m_eps.back().ep));
    m_dcx->flush();
    go_round();
    finish();
}

INSTANTIATE_TEST_SUITE_P(any, dcx_chaos_round,
                         testing::Combine(testing::Values("rand", "hw_dcs"),
                                          testing::Range(1u, 5u)),
                         dcx_chaos_name);

INSTANTIATE_TEST_SUITE_P(any, dcx_chaos,
                         testing::Combine(testing::Values("dcs", "dcs_quota",
                                                          "rand", "hw_dcs"),
                                          testing::Range(1u, 5u)),
                         dcx_chaos_name);

/* on a late device */
INSTANTIATE_TEST_SUITE_P(late, dcx_chaos,
                         testing::Combine(testing::Values("dcs", "dcs_quota",
                                                          "rand", "hw_dcs"),
                                          testing::Range(100u, 106u)),
                         dcx_chaos_name);

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_NUM_DCI", "3"},     {"UCX_DCX_TX_QUEUE_LEN", "4"},
        {"UCX_DCX_QUOTA", "6"},       {"UCX_DCX_TIMEOUT", "100us"},
        {"UCX_DCX_RETRY_COUNT", "1"}, {"UCX_DCX_RX_QUEUE_LEN", "1024"},
        {"UCX_DCX_SEG_SIZE", "1024"}, {"UCX_DCX_FC_WINDOW", "6"},
        {"UCX_DCX_FC_INITIAL", "2"},  {"UCX_DCX_FC_RESEND_TIMEOUT", "5ms"},
        {"UCX_LOG_LEVEL", "error"},
    };

    auto late = env;

    late.push_back({"SOFTHCA_DELAY", "50"});
    return hca_test_main(argc, argv, {{"any", env}, {"late", late}});
}
