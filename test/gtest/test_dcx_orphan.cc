/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints that are destroyed with outstanding operations to a peer that does
 * not answer, or does not receive: uct_ep_destroy() returns at once, on any
 * kind of initiator. Each operation ends once: in that call on an exclusive
 * initiator, later on a shared one if the interface is open by then. Flushes
 * end in that call. Also initiators that the device does not reset or
 * reconnect, after an error or after an endpoint is destroyed.
 */
#include "dcx_shared_bench.h"
#include "ucx_log.h"

#include <algorithm>
#include <dlfcn.h>

/* Calls of ibv_modify_qp() that fail: the requested state, -1 for none */
static struct {
    int state      = -1;
    unsigned count = 0;
} refuse_state;

static unsigned num_modified;

extern "C" int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
                             int attr_mask)
{
    typedef int (*modify_t)(struct ibv_qp *, struct ibv_qp_attr *, int);
    static modify_t real = (modify_t)dlsym(dlopen("libibverbs.so.1", RTLD_LAZY),
                                           "ibv_modify_qp");

    num_modified++;
    if ((attr->qp_state == refuse_state.state) && (refuse_state.count > 0)) {
        refuse_state.count--;
        errno = EIO;
        return EIO;
    }
    return real(qp, attr, attr_mask);
}

namespace {

class dcx_orphan : public dcx_shared {
protected:
    using ends = std::list<dcx_end>;

    dcx_orphan() { num_modified = 0; }

    uct_iov_t iov(size_t length)
    {
        return {m_dcx->mem.data(), length, m_dcx->memh, 0, 1};
    }

    /* Posts one operation of each kind that uses memory of the user, and a
     * flush, which ends with the endpoint on any initiator. */
    void post_all(uct_ep_h ep, live_peer &peer, ends &all)
    {
        uint64_t addr  = (uintptr_t)peer.loop.mem.data() + 8192;
        uct_rkey_t key = dcx_peek_rkey(peer.loop.memh);
        uct_iov_t much = iov(512), few = iov(16);

        put(ep, peer, all.emplace_back());
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_get_bcopy(ep, unpack, &m_result, sizeof(m_result),
                                   addr, key, &all.emplace_back().comp));
        EXPECT_EQ(UCS_INPROGRESS, uct_ep_get_zcopy(ep, &much, 1, addr, key,
                                                   &all.emplace_back().comp));
        EXPECT_EQ(UCS_INPROGRESS, uct_ep_am_zcopy(ep, 6, NULL, 0, &few, 1, 0,
                                                  &all.emplace_back().comp));
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &m_result,
                                        addr, key, &all.emplace_back().comp));
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_flush(ep, 0, &m_flushes.emplace_back().comp));
    }

    /* Destroys endpoints with outstanding operations. The shortest time counts,
     * as other load may slow down some. */
    void destroy_quickly(const std::function<uct_ep_h()> &make, live_peer &peer,
                         std::list<ends> &all)
    {
        uint64_t shortest = UINT64_MAX;

        for (int i = 0; i < 5; i++) {
            uct_ep_h ep = make();

            post_all(ep, peer, all.emplace_back());
            unsigned before = num_modified;
            uint64_t begin  = time_now_us();
            destroy_ep(ep);
            shortest = std::min(shortest, time_now_us() - begin);
            if (is_shared()) {
                EXPECT_EQ(before, num_modified) << "modified a QP";
            }
            expect_all(all.back(), at_once());
            expect_all(m_flushes, 1);
        }
        EXPECT_GT(time_slow(TIME_NO_DEVICE) * 1000u, shortest);
    }

    /* Returns the number of completions of an operation in uct_ep_destroy(). */
    unsigned at_once() const { return is_shared() ? 0 : 1; }

    static void expect_all(const ends &all, unsigned count)
    {
        for (const auto &end : all) {
            EXPECT_EQ(count, end.count);
            EXPECT_EQ(count ? UCS_ERR_CANCELED : UCS_INPROGRESS, end.status);
        }
    }

    static bool post_if_room(const std::function<ucs_status_t()> &call)
    {
        ucs_status_t status = call();

        EXPECT_TRUE((status == UCS_INPROGRESS) ||
                    (status == UCS_ERR_NO_RESOURCE));
        return status == UCS_INPROGRESS;
    }

    /* Posts a put, and then as post_all(), unless other endpoints use all
     * initiators. */
    void post_all_if_room(uct_ep_h ep, live_peer &peer, ends &all)
    {
        dcx_end &first = all.emplace_back();

        if (post_if_room([&] { return try_put(ep, peer, first); })) {
            post_all(ep, peer, all);
        } else {
            all.pop_back();
        }
    }

    /* Puts more blocks than fit in a WQE: its completion is one of dcx. */
    void put_blocks(uct_ep_h ep, live_peer &peer, dcx_end &end)
    {
        uct_iov_t blocks = {m_dcx->mem.data(), 16, m_dcx->memh, 64, 64};

        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_put_zcopy(ep, &blocks, 1,
                                   (uintptr_t)peer.loop.mem.data(),
                                   dcx_peek_rkey(peer.loop.memh), &end.comp));
    }

    uint64_t m_result = 0;
    ends m_ends;
    ends m_flushes; /* of post_all() */
};

TEST_P(dcx_orphan, of_a_dead_peer)
{
    std::list<ends> all;

    destroy_quickly([&] { return make_dead_eps(1)[0]; }, m_live_a, all);
    send(m_a, 0);
    flush();
    for (const auto &list : all) {
        expect_all(list, 1);
    }
    EXPECT_EQ(0u, m_dcx->errors.size());
    EXPECT_EQ(numbers(1), m_live_a.headers);
    expect_works(m_b);
}

/* The peer does not progress: messages arrive when it continues, if the
 * initiator was not stopped. */
TEST_P(dcx_orphan, of_a_peer_that_stands_still)
{
    std::list<ends> all;

    setenv("UCX_DCX_RX_QUEUE_LEN", "4", 1);
    live_peer stopped;
    setenv("UCX_DCX_RX_QUEUE_LEN", "512", 1);

    uct_ep_h first = make_ep(stopped.loop);
    for (uint64_t i = 0; i < 4; i++) {
        send(first, i);
    }
    destroy_quickly(
        [&] {
            uct_ep_h ep = make_ep(stopped.loop);

            send(ep, 4);
            return ep;
        },
        stopped, all);

    dcx_deadline deadline;
    while ((uct_iface_flush(m_dcx->iface, 0, NULL) == UCS_INPROGRESS) &&
           !deadline.is_over()) {
        progress();
        stopped.progress();
    }
    for (int i = 0; i < 100; i++) {
        stopped.progress();
    }
    for (const auto &list : all) {
        expect_all(list, 1);
    }
    EXPECT_EQ(4 + (is_shared() ? 2 * all.size() : 0), stopped.headers.size());
    EXPECT_EQ(0u, m_dcx->errors.size());
    expect_works(m_a);
}

/* The interface is closed before the operations have ended: no completion is
 * called any longer, also none of strided memory, whose resources are freed. */
TEST_P(dcx_orphan, of_an_interface_that_is_closed)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    ends all;

    post_all(dead, m_live_a, all);
    put_blocks(dead, m_live_a, all.emplace_back());
    while (!m_eps.empty()) {
        destroy_ep(m_eps.front());
    }
    expect_all(all, at_once());
    expect_all(m_flushes, 1);
    m_dcx.reset();
    expect_all(all, at_once());
}

/* The interface is closed before its endpoints are destroyed: their operations
 * end, as UCP has not freed them. Those of an endpoint that was destroyed do
 * not. */
TEST_P(dcx_orphan, beside_endpoints_that_exist)
{
    std::vector<uct_ep_h> dead = make_dead_eps(2);
    ucx_log_reader log;
    ends all, gone;

    post_if_room(
        [&] { return try_put(dead[1], m_live_a, gone.emplace_back()); });
    post_all(dead[0], m_live_a, all);
    put_blocks(dead[0], m_live_a, all.emplace_back());
    destroy_ep(dead[1]);
    m_eps.clear();
    m_dcx.reset();
    expect_all(gone, at_once());
    expect_all(all, 1);
    expect_all(m_flushes, 1);
    EXPECT_NE(std::string::npos,
              log.take().find("3 endpoints were not destroyed"));
}

/* In the callback of an earlier operation */
TEST_P(dcx_orphan, of_a_callback)
{
    uct_ep_h ep = make_ep(m_live_a.loop);
    ends all;
    dcx_end first([&] {
        destroy_ep(ep);
        expect_all(all, at_once());
    });

    put(ep, m_live_a, first);
    post_all(ep, m_live_a, all);
    flush();
    EXPECT_EQ(UCS_OK, first.status);
    expect_all(all, 1);
    EXPECT_EQ(1u, m_live_a.headers.size()) << "it is sent nevertheless";
    expect_works(m_b);
}

/* Copied messages are sent, though their endpoint is gone. */
TEST_P(dcx_orphan, of_messages)
{
    for (uint64_t i = 0; i < 10; i++) {
        uct_ep_h ep = make_ep(m_live_a.loop);

        send(ep, 2 * i);
        send_bcopy(ep, 2 * i + 1);
        unsigned before = num_modified;
        destroy_ep(ep);
        EXPECT_EQ(before, num_modified) << "modified a QP";
    }
    flush();
    std::sort(m_live_a.headers.begin(), m_live_a.headers.end());
    EXPECT_EQ(numbers(20), m_live_a.headers);
    expect_works(m_b);
}

/* Completions that were not polled affect no other endpoint, whichever gets the
 * initiator next. */
TEST_P(dcx_orphan, of_what_has_completed)
{
    for (unsigned i = 0; i < 200; i++) {
        uct_ep_h ep = make_ep(m_live_a.loop);
        ends all;
        dcx_end next;

        for (unsigned j = 0; j < 3; j++) {
            put(ep, m_live_a, all.emplace_back());
        }
        destroy_ep(ep);
        expect_all(all, at_once());
        put(m_b, m_live_b, next);
        flush();
        expect_all(all, 1);
        EXPECT_EQ(UCS_OK, next.status);
        EXPECT_EQ(1u, next.count);
    }
}

/* Each endpoint is destroyed in a callback of the previous one, which is being
 * destroyed. */
TEST_P(dcx_orphan, of_each_other)
{
    std::vector<uct_ep_h> dead = make_dead_eps(5);
    std::vector<ends> all(dead.size());

    for (unsigned i = 0; i < dead.size(); i++) {
        auto &own = all[i];

        for (unsigned j = 0; j < 2; j++) {
            dcx_end &end = own.emplace_back();

            if (post_if_room([&] { return try_put(dead[i], m_live_a, end); })) {
                continue;
            }
            own.pop_back(); /* one initiator is not enough for all */
        }
        if (!own.empty() && (i + 1 < dead.size())) {
            own.front().then = [this, &dead, &all, i] {
                destroy_ep(dead[i + 1]);
                if (!is_shared()) { /* on a shared one it may have failed by
                                     * then */
                    expect_all(all[i + 1], 1);
                }
            };
        }
    }
    destroy_ep(dead[0]);
    expect_all(all[0], at_once());
    flush();
    for (const auto &own : all) {
        for (const auto &end : own) {
            EXPECT_EQ(1u, end.count);
        }
    }
    expect_works(m_a);
}

/* In a callback of uct_ep_destroy(), calls on the endpoint fail. */
TEST_P(dcx_orphan, of_a_callback_that_posts)
{
    uct_ep_h ep              = make_ep(m_live_a.loop);
    dcx_pending_call request = {[] { return UCS_OK; }};
    dcx_end more, first;

    if (is_shared()) {
        GTEST_SKIP() << "uct_ep_destroy() calls no callback";
    }

    first.then = [&] {
        EXPECT_EQ(UCS_ERR_CANCELED, first.status);
        EXPECT_EQ(UCS_ERR_CANCELED, try_put(ep, m_live_a, more));
        EXPECT_EQ(UCS_ERR_CANCELED, uct_ep_am_short(ep, 6, 0, NULL, 0));
        EXPECT_EQ(UCS_ERR_CANCELED, uct_ep_flush(ep, 0, &more.comp));
        EXPECT_EQ(UCS_ERR_BUSY, uct_ep_pending_add(ep, &request.req, 0));
    };
    put(ep, m_live_a, first);
    destroy_ep(ep);
    EXPECT_EQ(1u, first.count);
    flush();
    EXPECT_EQ(0u, more.count);
    EXPECT_EQ(0u, m_live_a.headers.size());
    expect_works(m_b);
}

/* An initiator recovers, and the user learns of failed operations: by
 * completions, then by the error handler. */
TEST_P(dcx_orphan, of_a_callback_of_recovery)
{
    std::vector<uct_ep_h> live = {make_ep(m_live_a.loop),
                                  make_ep(m_live_b.loop)};
    uct_ep_h dead              = make_dead_eps(1)[0];
    dcx_end behind, first([&] {
        for (uct_ep_h ep : live) {
            ends all;

            post_all_if_room(ep, m_live_a, all);
            destroy_ep(ep);
            if (!is_shared()) {
                expect_all(all, 1);
            }
            m_ends.splice(m_ends.end(), all);
        }
        EXPECT_EQ(0u, behind.count) << "it is another's";
    });

    put(dead, m_live_a, first);
    put(dead, m_live_a, behind);
    flush();
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, first.status);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, behind.status);
    EXPECT_EQ(1u, behind.count);
    EXPECT_EQ(1u, m_dcx->errors.size());
    expect_all(m_ends, 1);
    expect_works(m_a);
}

/* In the callback of a failed operation, while other failed operations and the
 * flush of the endpoint have not ended */
TEST_P(dcx_orphan, of_a_flush_in_a_callback_of_recovery)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end behind, flushed, first([&] {
        destroy_ep(dead);
        EXPECT_EQ(1u, flushed.count);
    });

    put(dead, m_live_a, first);
    put(dead, m_live_a, behind);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(dead, 0, &flushed.comp));
    flush();
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(1u, behind.count);
    EXPECT_EQ(1u, flushed.count);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, flushed.status);
    EXPECT_EQ(0u, m_dcx->errors.size());
    expect_works(m_b);
}

/* The callback of a failed operation cancels and destroys another endpoint. */
TEST_P(dcx_orphan, of_a_canceled_endpoint_in_a_callback_of_recovery)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end behind, flushed, first([&] {
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_flush(m_b, UCT_FLUSH_FLAG_CANCEL, &flushed.comp));
        destroy_ep(m_b);
        EXPECT_EQ(1u, flushed.count);
        EXPECT_EQ(0u, behind.count) << "it is another's";
    });

    put(dead, m_live_a, first);
    put(dead, m_live_a, behind);
    flush();
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(1u, behind.count);
    EXPECT_EQ(1u, flushed.count);
    EXPECT_EQ(UCS_ERR_CANCELED, flushed.status);
    expect_works(m_a);
}

/* The peer does not answer. The endpoint is destroyed before or after the
 * device reports that, but before the error is polled. */
TEST_P(dcx_orphan, of_an_error)
{
    for (unsigned i = 0; i < 5; i++) {
        uct_ep_h dead = make_dead_eps(1)[0];
        ends all;

        post_all(dead, m_live_a, all);
        usleep(i * STEP_RETRY);
        destroy_ep(dead);
        expect_all(all, at_once());
        expect_works(m_a);
        expect_all(all, 1);
    }
    EXPECT_EQ(0u, m_dcx->errors.size());
}

/* In the callback of an operation before a failed one: progress is handling the
 * error completion. */
TEST_P(dcx_orphan, of_a_callback_before_an_error)
{
    uct_ep_h ep = make_ep(m_live_a.loop);
    dcx_end wrong, first([&] {
        destroy_ep(ep);
        EXPECT_EQ(at_once(), wrong.count);
    });

    put(ep, m_live_a, first);
    put(ep, m_live_a, wrong, ~0xffu);
    flush();
    EXPECT_EQ(UCS_OK, first.status);
    EXPECT_EQ(UCS_ERR_CANCELED, wrong.status);
    EXPECT_EQ(1u, wrong.count);
    EXPECT_EQ(0u, m_dcx->errors.size());
    expect_works(m_b);
}

/* A flush behind copied operations, which have no completion, ends within
 * destroy, too. */
TEST_P(dcx_orphan, of_a_flush_behind_copies)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end plain, canceling;

    send_bcopy(dead, 0);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(dead, 0, &plain.comp));
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_flush(dead, UCT_FLUSH_FLAG_CANCEL, &canceling.comp));
    unsigned before = num_modified;
    destroy_ep(dead);
    EXPECT_EQ(before, num_modified) << "modified a QP";
    EXPECT_EQ(1u, plain.count);
    EXPECT_EQ(UCS_ERR_CANCELED, plain.status);
    EXPECT_EQ(1u, canceling.count);
    flush();
    EXPECT_EQ(1u, plain.count);
    EXPECT_EQ(1u, canceling.count);
    expect_works(m_b);
}

/* In the callback of a flush, with another flush after it */
TEST_P(dcx_orphan, of_the_callback_of_a_flush)
{
    uct_ep_h ep = make_ep(m_live_a.loop);
    dcx_end second, put_end, first([&] {
        destroy_ep(ep);
        EXPECT_EQ(1u, second.count);
    });

    put(ep, m_live_a, put_end);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep, 0, &first.comp));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep, 0, &second.comp));
    flush();
    EXPECT_EQ(UCS_OK, first.status);
    EXPECT_EQ(1u, second.count);
    EXPECT_EQ(UCS_ERR_CANCELED, second.status);
    expect_works(m_b);
}

/* The endpoint is canceled in the callback of a flush: its pending request gets
 * the error, too. */
TEST_P(dcx_orphan, cancelled_in_the_callback_of_a_flush)
{
    uct_ep_h ep = make_ep(m_live_a.loop);
    dcx_end first([&] {
        EXPECT_FALSE(
            UCS_STATUS_IS_ERR(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, NULL)));
    });
    dcx_pending_call before([&] {
        ucs_status_t status = uct_ep_flush(ep, 0, &first.comp);

        return (status == UCS_INPROGRESS) ? UCS_OK : status;
    });
    dcx_pending_call request([&] {
        return (first.count == 0) ? UCS_ERR_NO_RESOURCE :
                                    uct_ep_am_short(ep, 6, 0, NULL, 0);
    });
    ends puts;

    while (try_put(ep, m_live_a, puts.emplace_back()) == UCS_INPROGRESS) {
    }
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_flush(ep, 0, &first.comp));
    EXPECT_EQ(UCS_OK, uct_ep_pending_add(ep, &before.req, 0));
    EXPECT_EQ(UCS_OK, uct_ep_pending_add(ep, &request.req, 0));

    dcx_deadline deadline;
    while ((request.status == UCS_INPROGRESS) ||
           (request.status == UCS_ERR_NO_RESOURCE)) {
        deadline.check("the pending request");
        progress();
    }
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(UCS_ERR_CANCELED, request.status);
    uct_ep_pending_purge(ep, NULL, NULL);
    expect_works(m_b);
}

/* The endpoint is canceled and destroyed in the callback of a flush. A second
 * flush ends before the canceling one, and both before uct_ep_destroy()
 * returns. */
TEST_P(dcx_orphan, cancelled_and_destroyed_in_the_callback_of_a_flush)
{
    uct_ep_h ep = make_ep(m_live_a.loop);
    dcx_end put_end, second, last([&] { EXPECT_EQ(1u, second.count); });
    dcx_end first([&] {
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, &last.comp));
        destroy_ep(ep);
        EXPECT_EQ(1u, second.count);
        EXPECT_EQ(1u, last.count);
    });

    put(ep, m_live_a, put_end);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep, 0, &first.comp));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep, 0, &second.comp));
    flush();
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(1u, second.count);
    EXPECT_EQ(1u, last.count);
    EXPECT_EQ(0u, m_dcx->errors.size());
    expect_works(m_b);
}

/* The endpoint is canceled in the callback of a failed operation: the canceling
 * flush ends after an earlier flush. */
TEST_P(dcx_orphan, cancelled_in_a_callback_of_recovery)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end behind, flushed, last([&] { EXPECT_EQ(1u, flushed.count); });
    dcx_end first([&] {
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_flush(dead, UCT_FLUSH_FLAG_CANCEL, &last.comp));
    });

    put(dead, m_live_a, first);
    put(dead, m_live_a, behind);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(dead, 0, &flushed.comp));
    flush();
    EXPECT_EQ(1u, flushed.count);
    EXPECT_EQ(1u, last.count);
    expect_works(m_a);
}

/* A flush of the interface in a callback reports operations that have not
 * ended. */
class dcx_orphan_flush : public dcx_orphan {
protected:
    void expect_flush(const dcx_end &behind)
    {
        EXPECT_EQ(behind.count ? UCS_OK : UCS_INPROGRESS,
                  uct_iface_flush(m_dcx->iface, 0, NULL));
    }

    dcx_end m_behind{[this] { expect_flush(m_behind); }};
    dcx_end m_first{[this] { expect_flush(m_behind); }};
};

TEST_P(dcx_orphan_flush, within_destroy)
{
    uct_ep_h ep = make_ep(m_live_a.loop);

    if (is_shared()) {
        GTEST_SKIP() << "uct_ep_destroy() calls no callback";
    }

    put(ep, m_live_a, m_first);
    put(ep, m_live_a, m_behind);
    destroy_ep(ep);
    EXPECT_EQ(1u, m_behind.count);
}

TEST_P(dcx_orphan_flush, within_recovery)
{
    uct_ep_h dead = make_dead_eps(1)[0];

    put(dead, m_live_a, m_first);
    put(dead, m_live_a, m_behind);
    flush();
    EXPECT_EQ(1u, m_behind.count);
}

TEST_P(dcx_orphan_flush, within_a_flush)
{
    dcx_end end;

    put(m_a, m_live_a, end);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, &m_first.comp));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, &m_behind.comp));
    flush();
    EXPECT_EQ(1u, m_behind.count);
}

INSTANTIATE_TEST_SUITE_P(many, dcx_orphan_flush,
                         testing::Values("dcs", "dcs_quota"), dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(any, dcx_orphan_flush,
                         testing::Values("rand", "hw_dcs"), dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(many, dcx_orphan, testing::Values("dcs", "dcs_quota"),
                         dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(any, dcx_orphan, testing::Values("rand", "hw_dcs"),
                         dcx_policy_name);

/* --- initiators that cannot be recovered ---------------------------------- */

class dcx_retired : public dcx_shared {
protected:
    ~dcx_retired() { refuse_state.state = -1; }

    /* Posts a put that fails, and calls @behind. After the failure the
     * initiator cannot reach @state. Returns the log. */
    std::string retire(enum ibv_qp_state state, dcx_end &failed,
                       const std::function<void()> &behind)
    {
        ucx_log_reader log;

        put(make_dead_eps(1)[0], m_live_a, failed);
        behind();
        refuse_state.state = state;
        refuse_state.count = 1;
        flush();
        EXPECT_EQ(0u, refuse_state.count);
        return log.take();
    }

    static unsigned num_lines(const std::string &text, const char *what)
    {
        unsigned count = 0;

        for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;
             at++) {
            count++;
        }
        return count;
    }

    void expect_refuses(uct_ep_h ep)
    {
        ucx_log_reader log;
        dcx_end end;

        EXPECT_EQ(UCS_ERR_IO_ERROR, try_put(ep, m_live_a, end));
        EXPECT_EQ(UCS_ERR_IO_ERROR, uct_ep_am_short(ep, 6, 0, NULL, 0));
        log.take();
    }

    void test_last(enum ibv_qp_state state, const char *said)
    {
        dcx_end failed, other, flushed;
        dcx_request request = {};

        std::string text = retire(state, failed, [&] {
            if (is_shared()) {
                EXPECT_EQ(UCS_INPROGRESS, try_put(m_a, m_live_a, other));
                EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_a, 0, &flushed.comp));
            } else {
                request.req.func = dcx_request::send;
                request.ep       = m_a;
                EXPECT_EQ(UCS_ERR_NO_RESOURCE,
                          uct_ep_am_short(m_a, 6, 0, NULL, 0));
                EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_a, &request.req, 0));
            }
        });

        EXPECT_EQ(1u, num_lines(text, said)) << text;
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, failed.status);
        EXPECT_EQ(1u, failed.count);
        if (is_shared()) {
            /* on a stream of its own it was acknowledged */
            EXPECT_EQ(!strcmp(GetParam(), "rand") ? UCS_ERR_ENDPOINT_TIMEOUT :
                                                    UCS_OK,
                      other.status);
            EXPECT_EQ(1u, other.count);
            EXPECT_EQ(other.status, flushed.status);
        }
        EXPECT_EQ(is_shared() ? 2u : 1u, m_dcx->errors.size());
        expect_refuses(m_b);
        expect_refuses(make_ep(m_live_b.loop));
        uct_ep_pending_purge(m_a, NULL, NULL);
        EXPECT_EQ(0u, m_live_a.headers.size());
    }
};

/* The only initiator: all endpoints fail at their next call. */
TEST_P(dcx_retired, cannot_be_reset)
{
    test_last(IBV_QPS_RESET, "failed to reset DCI");
}

TEST_P(dcx_retired, cannot_be_connected)
{
    test_last(IBV_QPS_RTS, "to RTS");
}

/* An endpoint with nothing outstanding that waits for room, or for an
 * initiator, gets the error in its pending request. */
TEST_P(dcx_retired, wakes_waiting_endpoints)
{
    dcx_end failed;
    std::list<dcx_end> others;
    dcx_pending_call request(
        [&] { return uct_ep_am_short(m_b, 6, 0, NULL, 0); });

    retire(IBV_QPS_RESET, failed, [&] {
        while (try_put(m_a, m_live_a, others.emplace_back()) ==
               UCS_INPROGRESS) {
        }
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_am_short(m_b, 6, 0, NULL, 0));
        EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_b, &request.req, 0));
    });

    EXPECT_EQ(UCS_ERR_IO_ERROR, request.status);
    uct_ep_pending_purge(m_b, NULL, NULL);
}

/* The only initiator that could be created, of several that were configured */
TEST_P(dcx_retired, is_the_last_that_exists)
{
    if (is_shared()) {
        GTEST_SKIP() << "each endpoint has its initiator from the beginning";
    }

    setenv("UCX_DCX_NUM_DCI", "4", 1);
    m_dcx->survives_errors = true;
    while (!m_eps.empty()) {
        destroy_ep(m_eps.front());
    }
    m_dcx.reset(new dcx_loop);
    setenv("UCX_DCX_NUM_DCI", "1", 1);
    m_dcx->survives_errors = true;
    m_a                    = make_ep(m_live_a.loop);
    m_b                    = make_ep(m_live_b.loop);

    dcx_end failed;
    dcx_peek_no_more_dcis(m_dcx->iface);
    retire(IBV_QPS_RESET, failed, [&] {
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_am_short(m_b, 6, 0, NULL, 0));
    });
    expect_refuses(m_b);
}

/* A canceled endpoint cannot stop the initiator that it gets for this purpose,
 * and releases it. */
TEST_P(dcx_retired, cannot_be_stopped)
{
    ucx_log_reader log;

    if (is_shared()) {
        GTEST_SKIP() << "an initiator that others use is not stopped";
    }

    refuse_state.state = IBV_QPS_ERR;
    refuse_state.count = 1;
    uct_ep_invalidate(m_a, 0);
    EXPECT_EQ(0u, refuse_state.count);
    expect_works(m_b);
    EXPECT_GT(0, uct_ep_am_short(m_a, 6, 0, NULL, 0));
    expect_works(m_b);
    log.take();
}

/* Peers continue to request credits. */
class dcx_retired_fc : public dcx_retired {
protected:
    void ask(dcx_loop &from)
    {
        uct_ep_h ep = from.make_ep(*m_dcx);

        while (uct_ep_am_short(ep, 5, 0, NULL, 0) == UCS_OK) {
        }
        from.flush();
        uct_ep_destroy(ep);
    }
};

TEST_P(dcx_retired_fc, no_answer)
{
    dcx_end failed;

    retire(IBV_QPS_RESET, failed, [] {});
    for (int i = 0; i < 3; i++) {
        ask(m_live_a.loop);
        progress();
    }
    EXPECT_LT(0u, m_dcx->received);
    EXPECT_EQ(0u, dcx_peek_granted(m_dcx->iface));
}

/* The interface is closed after it has sent a grant to a peer that is gone. */
TEST_P(dcx_retired_fc, closed_behind_an_answer)
{
    {
        dcx_loop peer;

        ask(peer);
    }
    flush();
    EXPECT_LT(0u, dcx_peek_granted(m_dcx->iface));
    EXPECT_EQ(0u, m_dcx->errors.size());
    while (!m_eps.empty()) {
        destroy_ep(m_eps.front());
    }
    m_dcx.reset();
}

/* An endpoint is destroyed, but its queue cannot be stopped: its operations end
 * when the device has executed them, as it may use the memory. */
TEST_P(dcx_retired, cannot_be_reset_for_destroy)
{
    ucx_log_reader log;
    uct_ep_h ep = make_ep(m_live_a.loop);
    dcx_end end;

    if (is_shared()) {
        GTEST_SKIP() << "an initiator that others use is not stopped";
    }

    put(ep, m_live_a, end);
    refuse_state.state = IBV_QPS_RESET;
    refuse_state.count = 1;
    destroy_ep(ep);
    EXPECT_EQ(0u, refuse_state.count);
    EXPECT_EQ(0u, end.count);
    flush();
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    EXPECT_EQ(1u, num_lines(log.take(), "failed to reset DCI"));
    expect_works(m_b);
}

/* The queue cannot be reconnected: the operations end at once, and other
 * endpoints continue without it. */
TEST_P(dcx_retired, cannot_be_connected_after_destroy)
{
    ucx_log_reader log;
    uct_ep_h ep = make_ep(m_live_a.loop);
    dcx_end end;

    if (is_shared()) {
        GTEST_SKIP() << "an initiator that others use is not stopped";
    }

    put(ep, m_live_a, end);
    refuse_state.state = IBV_QPS_RTS;
    refuse_state.count = 1;
    destroy_ep(ep);
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    EXPECT_EQ(1u, num_lines(log.take(), "to RTS"));
    expect_refuses(m_b);
}

/* The endpoint is destroyed in a callback, and its queue cannot be reconnected:
 * progress continues after it. */
TEST_P(dcx_retired, cannot_be_connected_in_a_callback)
{
    ucx_log_reader log;
    uct_ep_h ep = make_ep(m_live_a.loop);
    dcx_end behind[2], first([&] {
        refuse_state.state = IBV_QPS_RTS;
        refuse_state.count = 1;
        destroy_ep(ep);
        EXPECT_EQ(1u, behind[1].count);
    });

    if (is_shared()) {
        GTEST_SKIP() << "an initiator that others use is not stopped";
    }

    put(ep, m_live_a, first);
    for (auto &end : behind) {
        put(ep, m_live_a, end);
    }
    flush();
    EXPECT_EQ(UCS_OK, first.status);
    EXPECT_EQ(UCS_ERR_CANCELED, behind[0].status);
    EXPECT_EQ(0u, m_dcx->view().pi) << "something is posted on it";
    EXPECT_EQ(1u, num_lines(log.take(), "to RTS"));
    expect_refuses(m_b);
}

INSTANTIATE_TEST_SUITE_P(fc, dcx_retired_fc,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs"),
                         dcx_policy_name);

/* One of two initiators is retired: new endpoints use the other, and so do the
 * existing ones, unless the policy has bound them. */
class dcx_retired_one : public dcx_retired {};

TEST_P(dcx_retired_one, others_go_on)
{
    dcx_end failed;

    retire(IBV_QPS_RESET, failed, [] {});
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, failed.status);
    for (unsigned i = 0; i < 20; i++) {
        expect_works(make_ep(m_live_a.loop));
    }
    if (!is_shared()) {
        expect_works(m_a);
        expect_works(m_b);
    }
}

/* The only initiator that exists is retired: the policy had assigned it to all
 * endpoints. */
class dcx_retired_first : public dcx_retired {
protected:
    dcx_retired_first()
    {
        while (!m_eps.empty()) {
            destroy_ep(m_eps.front());
        }
        setenv("UCX_DCX_RAND_SEED", "18", 1); /* assigns it again */
        m_dcx.reset(new dcx_loop);
        unsetenv("UCX_DCX_RAND_SEED");
        m_dcx->survives_errors = true;
        m_a                    = make_ep(m_live_a.loop);
        m_b                    = make_ep(m_live_b.loop);
    }

    unsigned num_dci() const
    {
        struct dcx_dci_count count;

        dcx_peek_dcis(m_dcx->iface, &count);
        return count.num_dci;
    }
};

TEST_P(dcx_retired_first, another_is_created)
{
    dcx_end failed;

    retire(IBV_QPS_RESET, failed, [] {});
    EXPECT_EQ(1u, num_dci()) << "the seed assigned a second one";
    for (unsigned i = 0; i < 20; i++) {
        expect_works(make_ep(m_live_a.loop));
    }
    EXPECT_EQ(2u, num_dci());
}

INSTANTIATE_TEST_SUITE_P(any, dcx_retired,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs"),
                         dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(two, dcx_retired_one,
                         testing::Values("dcs", "dcs_quota", "rand"),
                         dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(two, dcx_retired_first, testing::Values("rand"),
                         dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    auto env = dcx_shared_env(), two = env, many = env, fc = env;

    many.push_back({"UCX_DCX_NUM_DCI", "8"});
    two.push_back({"UCX_DCX_NUM_DCI", "2"});
    fc.insert(fc.end(), {{"UCX_DCX_FC_ENABLE", "y"},
                         {"UCX_DCX_FC_WINDOW", "8"},
                         {"UCX_DCX_FC_INITIAL", "2"}});
    return hca_test_main(
        argc, argv, {{"any", env}, {"two", two}, {"many", many}, {"fc", fc}});
}
