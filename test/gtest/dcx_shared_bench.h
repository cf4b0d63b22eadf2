/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of endpoints that share an initiator: an interface, two live
 * peers, and any number of dead ones, which are closed interfaces. The policy
 * is the parameter.
 */
#ifndef DCX_TEST_DCX_SHARED_BENCH_H
#define DCX_TEST_DCX_SHARED_BENCH_H

#include "dcx_end.h"
#include "dcx_live_peer.h"

#include <list>
#include <memory>

class dcx_shared : public testing::TestWithParam<const char *> {
protected:
    dcx_shared()
    {
        setenv("UCX_DCX_TX_POLICY", GetParam(), 1);
        m_dcx.reset(new dcx_loop);
        m_dcx->survives_errors = true;
        m_a                    = make_ep(m_live_a.loop);
        m_b                    = make_ep(m_live_b.loop);
    }

    ~dcx_shared()
    {
        for (uct_ep_h ep : m_eps) {
            uct_ep_destroy(ep);
        }
        unsetenv("UCX_DCX_TX_POLICY");
    }

    /* Returns true if endpoints share an initiator from the start. */
    bool is_shared() const
    {
        return !strcmp(GetParam(), "rand") || !strcmp(GetParam(), "hw_dcs");
    }

    /* Returns true if endpoints never share an initiator. */
    bool is_exclusive() const
    {
        return !strcmp(GetParam(), "dcs") || !strcmp(GetParam(), "dcs_quota");
    }

    uct_ep_h make_ep(const dcx_loop &peer)
    {
        m_eps.push_back(m_dcx->make_ep(peer));
        return m_eps.back();
    }

    /* Creates endpoints to a closed peer. */
    std::vector<uct_ep_h> make_dead_eps(unsigned count)
    {
        dcx_loop peer;
        std::vector<uct_ep_h> eps;

        while (eps.size() < count) {
            eps.push_back(make_ep(peer));
        }
        return eps;
    }

    void destroy_ep(uct_ep_h ep)
    {
        m_eps.remove(ep);
        uct_ep_destroy(ep);
    }

    void progress()
    {
        uct_worker_progress(m_dcx->worker);
        m_live_a.progress();
        m_live_b.progress();
    }

    /* Calls until there are resources; checks that the call succeeds. */
    ucs_status_t post(const std::function<ucs_status_t()> &call)
    {
        dcx_deadline deadline;
        ucs_status_t status;

        while ((status = call()) == UCS_ERR_NO_RESOURCE) {
            deadline.check("resources for an operation");
            progress();
        }
        EXPECT_FALSE(UCS_STATUS_IS_ERR(status)) << ucs_status_string(status);
        return status;
    }

    void send(uct_ep_h ep, uint64_t header)
    {
        post([=] { return uct_ep_am_short(ep, 6, header, NULL, 0); });
    }

    static size_t pack(void *dest, void *arg)
    {
        memcpy(dest, &arg, sizeof(arg));
        return sizeof(arg);
    }

    void send_bcopy(uct_ep_h ep, uint64_t header)
    {
        post([=] {
            ssize_t length = uct_ep_am_bcopy(ep, 6, pack, (void *)header, 0);

            return (length < 0) ? (ucs_status_t)length : UCS_OK;
        });
    }

    void add(uct_ep_h ep, live_peer &peer)
    {
        uint64_t addr  = (uintptr_t)&peer.counter();
        uct_rkey_t key = dcx_peek_rkey(peer.loop.memh);

        post([=] {
            return uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, addr, key);
        });
    }

    /* Puts from registered memory, without a copy. @wrong_key: bits to flip in
     * the rkey. */
    ucs_status_t try_put(uct_ep_h ep, live_peer &peer, dcx_end &end,
                         uint32_t wrong_key = 0)
    {
        uint64_t addr  = (uintptr_t)peer.loop.mem.data() + 8192;
        uct_rkey_t key = dcx_peek_rkey(peer.loop.memh) ^ wrong_key;
        uct_iov_t iov  = {};

        iov.buffer = m_dcx->mem.data();
        iov.length = 512;
        iov.memh   = m_dcx->memh;
        iov.count  = 1;
        return uct_ep_put_zcopy(ep, &iov, 1, addr, key, &end.comp);
    }

    void put(uct_ep_h ep, live_peer &peer, dcx_end &end, uint32_t wrong_key = 0)
    {
        post([&] { return try_put(ep, peer, end, wrong_key); });
    }

    static void unpack(void *arg, const void *data, size_t length)
    {
        memcpy(arg, data, length);
    }

    void get(uct_ep_h ep, live_peer &peer, uint64_t *value, dcx_end &end)
    {
        uint64_t addr  = (uintptr_t)&peer.counter();
        uct_rkey_t key = dcx_peek_rkey(peer.loop.memh);

        post([&] {
            return uct_ep_get_bcopy(ep, unpack, value, sizeof(*value), addr,
                                    key, &end.comp);
        });
    }

    /* Waits until all operations have ended; the peers then poll the messages,
     * which arrived before their acknowledgments. */
    void flush()
    {
        dcx_deadline deadline;

        while (uct_iface_flush(m_dcx->iface, 0, NULL) == UCS_INPROGRESS) {
            deadline.check("a flushed interface");
            progress();
        }
        for (int i = 0; i < 100; i++) {
            progress();
        }
    }

    static std::vector<uint64_t> numbers(uint64_t count)
    {
        std::vector<uint64_t> list;

        for (uint64_t i = 0; i < count; i++) {
            list.push_back(i);
        }
        return list;
    }

    /* Checks that a put to the endpoint's peer, b for m_b, else a, succeeds. */
    void expect_works(uct_ep_h ep)
    {
        dcx_end end;

        put(ep, (ep == m_b) ? m_live_b : m_live_a, end);
        flush();
        EXPECT_EQ(UCS_OK, end.status);
        EXPECT_EQ(1u, end.count);
    }

    live_peer m_live_a, m_live_b;
    std::unique_ptr<dcx_loop> m_dcx;
    std::list<uct_ep_h> m_eps;
    uct_ep_h m_a, m_b;
};

/* A pending request that sends a message */
struct dcx_request {
    uct_pending_req_t req;
    uct_ep_h ep;
    uint64_t header;

    static ucs_status_t send(uct_pending_req_t *req)
    {
        dcx_request *self = (dcx_request *)req; /* its first member */

        return uct_ep_am_short(self->ep, 6, self->header, NULL, 0);
    }
};

/* A pending request that calls a function of the test */
struct dcx_pending_call {
    dcx_pending_call(const std::function<ucs_status_t()> &what) : call(what)
    {
        req.func = run;
    }

    static ucs_status_t run(uct_pending_req_t *req)
    {
        dcx_pending_call *self = (dcx_pending_call *)req; /* its first member */

        self->status = self->call();
        return self->status;
    }

    uct_pending_req_t req = {};
    ucs_status_t status   = UCS_INPROGRESS;
    std::function<ucs_status_t()> call;
};

inline std::string
dcx_policy_name(const testing::TestParamInfo<const char *> &info)
{
    return info.param;
}

/* Returns options for one initiator with a short ring, which wraps often, and a
 * short timeout of dead peers. */
inline std::vector<std::pair<const char *, const char *>> dcx_shared_env()
{
    return {
        {"UCX_DCX_NUM_DCI", "1"},        {"UCX_DCX_TX_QUEUE_LEN", "16"},
        {"UCX_DCX_TIMEOUT", "1ms"},      {"UCX_DCX_RETRY_COUNT", "1"},
        {"UCX_DCX_RX_QUEUE_LEN", "512"}, {"UCX_DCX_SEG_SIZE", "1024"},
        {"UCX_DCX_FC_ENABLE", "n"},
    };
}

#endif
