/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An operation fails on a shared initiator, and later ones of other endpoints
 * are posted again: one of these fails, too, its endpoint is destroyed, or new
 * operations need the room. Each operation ends once, with its own status. Also
 * the memory of operations whose endpoint is destroyed, and fences.
 */
#include "dcx_shared_bench.h"
#include "ucx_log.h"

#include <algorithm>

namespace {

class dcx_lost : public dcx_shared {
protected:
    using ends = std::vector<std::unique_ptr<dcx_end>>;

    /* Puts until there is no room. */
    void fill(uct_ep_h ep, live_peer &peer, ends *all)
    {
        do {
            all->push_back(std::make_unique<dcx_end>());
        } while (try_put(ep, peer, *all->back()) == UCS_INPROGRESS);
        all->pop_back();
    }

    ucs_status_t try_put(uct_ep_h ep, live_peer &peer, dcx_end &end)
    {
        uct_iov_t iov = {};

        iov.buffer = m_dcx->mem.data();
        iov.length = 64;
        iov.memh   = m_dcx->memh;
        iov.count  = 1;
        return uct_ep_put_zcopy(ep, &iov, 1,
                                (uintptr_t)peer.loop.mem.data() + 8192,
                                dcx_peek_rkey(peer.loop.memh), &end.comp);
    }

    ucs_status_t fetch(uct_ep_h ep, live_peer &peer, uint64_t *value,
                       dcx_end &end)
    {
        return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, value,
                                     (uintptr_t)&peer.counter(),
                                     dcx_peek_rkey(peer.loop.memh), &end.comp);
    }

    static void expect_all(const ends &all, ucs_status_t status)
    {
        for (const auto &end : all) {
            ASSERT_EQ(1u, end->count);
            ASSERT_EQ(status, end->status);
        }
    }
};

class dcx_resets : public dcx_lost {};

/* Of the operations that are posted again, some fail themselves. */
TEST_P(dcx_lost, two_dead_peers)
{
    uct_ep_h dead[] = {make_dead_eps(1)[0], make_dead_eps(1)[0]};
    dcx_end lost[6], kept;

    for (unsigned i = 0; i < std::size(lost); i++) {
        put(dead[i % 2], m_live_a, lost[i]);
    }
    put(m_a, m_live_a, kept);
    flush();

    for (const auto &end : lost) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, end.status);
    }
    EXPECT_EQ(1u, kept.count);
    EXPECT_EQ(UCS_OK, kept.status);
    EXPECT_EQ(2u, m_dcx->errors.size());
    expect_works(m_a);
}

/* The endpoint of an operation that is posted again is destroyed: only its own
 * operations end. */
TEST_P(dcx_lost, destroy_kept)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    uct_ep_h kept = make_ep(m_live_b.loop);
    dcx_end first([&] { destroy_ep(kept); }), kept_end, second;

    put(dead, m_live_a, first);
    put(kept, m_live_b, kept_end);
    put(dead, m_live_a, second);
    flush();

    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(1u, second.count);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, second.status);
    EXPECT_EQ(1u, kept_end.count);
    expect_works(m_a);
}

/* Operations that have failed take no room: as many others can be posted. */
TEST_P(dcx_lost, full_ring_behind)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    ends lost, later;
    dcx_end first([&] { fill(m_a, m_live_a, &later); }), kept;

    put(dead, m_live_a, first);
    put(m_b, m_live_b, kept);
    fill(dead, m_live_a, &lost);
    EXPECT_LT(40u, lost.size());
    flush();

    EXPECT_EQ(1u, kept.count);
    EXPECT_EQ(UCS_OK, kept.status);
    EXPECT_LT(40u, later.size());
    expect_all(lost, UCS_ERR_ENDPOINT_TIMEOUT);
    expect_all(later, UCS_OK);
}

/* Results of atomics that are posted again go to their own memory; those of
 * failed atomics go nowhere. */
TEST_P(dcx_lost, results_of_kept)
{
    uct_ep_h dead       = make_dead_eps(1)[0];
    const unsigned half = 8;
    uint64_t value[2 * half], nothing;
    dcx_end got[2 * half], lost[half], first([&] {
        for (unsigned i = half; i < 2 * half; i++) {
            EXPECT_EQ(UCS_INPROGRESS, fetch(m_a, m_live_a, &value[i], got[i]));
        }
    });

    put(dead, m_live_a, first);
    for (unsigned i = 0; i < half; i++) {
        EXPECT_EQ(UCS_INPROGRESS, fetch(dead, m_live_a, &nothing, lost[i]));
        EXPECT_EQ(UCS_INPROGRESS, fetch(m_a, m_live_a, &value[i], got[i]));
    }
    flush();

    for (unsigned i = 0; i < 2 * half; i++) {
        EXPECT_EQ(UCS_OK, got[i].status);
        EXPECT_EQ(1u, got[i].count);
        EXPECT_EQ(i, value[i]);
    }
    for (const auto &end : lost) {
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, end.status);
        EXPECT_EQ(1u, end.count);
    }
}

/* Unreadable memory is an error of one endpoint, not of others that post after
 * it. */
TEST_P(dcx_lost, bad_memory)
{
    const char *bad[] = {"put", "message"};
    uint64_t sent     = 0;

    for (const char *what : bad) {
        static char elsewhere[64];
        uct_ep_h ep   = make_ep(m_live_a.loop);
        uct_iov_t iov = {elsewhere, sizeof(elsewhere), m_dcx->memh, 0, 1};
        ucx_log_reader log;
        dcx_end end;

        SCOPED_TRACE(what);
        m_dcx->errors.clear();
        EXPECT_EQ(UCS_INPROGRESS,
                  strcmp(what, "put") ?
                      uct_ep_am_zcopy(ep, 6, NULL, 0, &iov, 1, 0, &end.comp) :
                      uct_ep_put_zcopy(
                          ep, &iov, 1, (uintptr_t)m_live_a.loop.mem.data(),
                          dcx_peek_rkey(m_live_a.loop.memh), &end.comp));
        send(m_b, sent++);
        flush();
        EXPECT_EQ(UCS_ERR_IO_ERROR, end.status);
        EXPECT_EQ(1u, m_dcx->errors.size());
        EXPECT_EQ(numbers(sent), m_live_b.headers);
        EXPECT_NE(std::string::npos, log.take().find("is not registered"));
    }
}

/* --- memory of a destroyed endpoint --------------------------------------- */

/* A peer with few buffers, which progresses only when a test says so, and the
 * last byte of each of its messages */
class dcx_lost_memory : public dcx_lost {
protected:
    static constexpr unsigned num_buffers = 16;

    dcx_lost_memory()
    {
        setenv("UCX_DCX_RX_QUEUE_LEN", "16", 1);
        m_slow.reset(new live_peer);
        setenv("UCX_DCX_RX_QUEUE_LEN", "512", 1);
        UCT_CALL(
            uct_iface_set_am_handler(m_slow->loop.iface, 6, receive, this, 0));
    }

    static ucs_status_t receive(void *arg, void *data, size_t length, unsigned)
    {
        ((dcx_lost_memory *)arg)->m_received += ((char *)data)[length - 1];
        return UCS_OK;
    }

    void send_memory(uct_ep_h ep, dcx_end &end)
    {
        uct_iov_t iov = {m_dcx->mem.data(), 1, m_dcx->memh, 0, 1};

        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_am_zcopy(ep, 6, NULL, 0, &iov, 1, 0, &end.comp));
    }

    std::unique_ptr<live_peer> m_slow;
    std::string m_received;
};

/* On a shared initiator the operations use the memory until they have ended;
 * others continue. */
TEST_P(dcx_lost_memory, is_in_use_until_the_end)
{
    uct_ep_h ep = make_ep(m_slow->loop);
    dcx_end sends[num_buffers + 1], kept;

    m_dcx->mem[0] = 'A';
    for (auto &end : sends) {
        send_memory(ep, end);
    }
    send(m_a, 0);
    put(m_b, m_live_b, kept);
    sends[num_buffers].then = [&] { m_dcx->mem[0] = 'Z'; };
    destroy_ep(ep);
    EXPECT_EQ(0u, sends[num_buffers].count);

    dcx_deadline deadline;
    while (m_received.size() < std::size(sends)) {
        deadline.check("the messages");
        uct_worker_progress(m_slow->loop.worker);
    }
    flush();
    for (const auto &end : sends) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    }
    EXPECT_EQ(std::string(std::size(sends), 'A'), m_received);
    EXPECT_EQ(UCS_OK, kept.status);
    EXPECT_EQ(1u, kept.count);
    EXPECT_EQ(numbers(1), m_live_a.headers);
    EXPECT_EQ(0u, m_dcx->errors.size());
    expect_works(m_a);
    expect_works(m_b);
}

/* The endpoint is destroyed in the completion of one of its operations: later
 * ones are canceled, but use the memory until they have ended. */
TEST_P(dcx_lost_memory, is_in_use_behind_a_callback)
{
    uct_ep_h ep = make_ep(m_slow->loop);
    dcx_end sends[num_buffers + 1], kept;

    sends[3].then = [&] { destroy_ep(ep); };
    for (auto &end : sends) {
        send_memory(ep, end);
    }
    put(m_b, m_live_b, kept);
    dcx_deadline deadline;
    while (m_received.size() < std::size(sends)) {
        deadline.check("the messages");
        uct_worker_progress(m_slow->loop.worker);
        uct_worker_progress(m_dcx->worker);
    }
    flush();
    for (unsigned i = 0; i < std::size(sends); i++) {
        EXPECT_EQ(1u, sends[i].count);
        EXPECT_EQ((i <= 3) ? UCS_OK : UCS_ERR_CANCELED, sends[i].status);
    }
    EXPECT_EQ(UCS_OK, kept.status);
    EXPECT_EQ(0u, m_dcx->errors.size());
    expect_works(m_a);
    expect_works(m_b);
}

/* On an initiator that is not shared the memory is free when the endpoint is
 * destroyed: messages that have not arrived by then do not arrive later, with
 * new contents. */
class dcx_left_memory : public dcx_lost_memory {};

TEST_P(dcx_left_memory, is_not_in_use)
{
    uct_ep_h ep = make_ep(m_slow->loop);
    dcx_end sends[num_buffers + 1];

    m_dcx->mem[0] = 'A';
    for (auto &end : sends) {
        send_memory(ep, end);
    }
    destroy_ep(ep);
    for (const auto &end : sends) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    }

    m_dcx->mem[0] = 'Z';
    expect_works(m_a);
    for (unsigned i = 0; i < 1000; i++) {
        uct_worker_progress(m_slow->loop.worker);
        progress();
    }
    EXPECT_EQ(std::string(num_buffers, 'A'), m_received);
    expect_works(m_b);
}

/* --- resets --------------------------------------------------------------- */

/* After a reset, completions of the failed initiator take no room in the
 * completion queue, and those of another initiator stay in it. */
TEST_P(dcx_resets, leave_no_completions)
{
    hca_log_reader log;

    for (unsigned i = 0; i < 12; i++) {
        uct_ep_h ep = make_dead_eps(1)[0];
        dcx_end beside;
        ends all;

        fill(ep, m_live_b, &all);
        EXPECT_LT(40u, all.size());
        put(m_a, m_live_a, beside);
        flush();
        expect_all(all, UCS_ERR_ENDPOINT_TIMEOUT);
        EXPECT_EQ(UCS_OK, beside.status);
        EXPECT_EQ(1u, beside.count);
    }
    EXPECT_EQ(12u, m_dcx->errors.size());
    std::string text = log.take();
    EXPECT_EQ(12, std::count(text.begin(), text.end(), '\n')) << text;
    expect_works(m_a);
}

/* --- fences of endpoints without streams ---------------------------------- */

class dcx_lost_fence : public dcx_lost {
protected:
    /* Returns true if the last write in the ring has a fence. Checks that the
     * get was posted again. */
    bool is_last_put_fenced() const
    {
        struct dcx_view view = m_dcx->view();
        bool is_fenced       = false;
        unsigned num_gets    = 0;

        for (uint16_t index = 0; index != view.pi;) {
            auto ctrl =
                (const struct mlx5_wqe_ctrl_seg *)(view.ring +
                                                   (index % view.num_bb) * 64);

            switch (be32toh(ctrl->opmod_idx_opcode) & 0xff) {
            case MLX5_OPCODE_RDMA_READ:
                num_gets++;
                break;
            case MLX5_OPCODE_RDMA_WRITE:
                is_fenced = ctrl->fm_ce_se & MLX5_WQE_CTRL_FENCE;
                break;
            }
            index += ((be32toh(ctrl->qpn_ds) & 0x3f) + 3) / 4;
        }
        EXPECT_EQ(1u, num_gets) << "it was not posted again";
        return is_fenced;
    }

    uct_ep_h m_dead = make_dead_eps(1)[0];
    uint64_t m_value;
    dcx_end m_got, m_put_end, m_lost;
};

/* A fence with no operation after it when the initiator fails */
TEST_P(dcx_lost_fence, waits)
{
    dcx_end first([&] { put(m_b, m_live_b, m_put_end); });

    put(m_dead, m_live_a, first);
    get(m_b, m_live_b, &m_value, m_got);
    EXPECT_EQ(UCS_OK, uct_ep_fence(m_b, 0));
    flush();
    EXPECT_EQ(UCS_OK, m_put_end.status);
    EXPECT_TRUE(is_last_put_fenced());
}

/* The WQE with the fence fails; the next one, which is posted again, gets the
 * fence. */
TEST_P(dcx_lost_fence, passes_to_kept)
{
    dcx_end first;

    put(m_dead, m_live_a, first);
    get(m_b, m_live_b, &m_value, m_got);
    EXPECT_EQ(UCS_OK, uct_ep_fence(m_b, 0));
    put(m_dead, m_live_a, m_lost);
    put(m_b, m_live_b, m_put_end);
    flush();
    EXPECT_EQ(UCS_OK, m_put_end.status);
    EXPECT_TRUE(is_last_put_fenced());
}

/* The WQE with the fence fails, and none after it is posted again: the next new
 * one gets the fence. */
TEST_P(dcx_lost_fence, passes_to_next)
{
    dcx_end first([&] { put(m_b, m_live_b, m_put_end); });

    put(m_dead, m_live_a, first);
    get(m_b, m_live_b, &m_value, m_got);
    EXPECT_EQ(UCS_OK, uct_ep_fence(m_b, 0));
    put(m_dead, m_live_a, m_lost);
    flush();
    EXPECT_EQ(UCS_OK, m_put_end.status);
    EXPECT_TRUE(is_last_put_fenced());
}

/* --- one completion per call of progress ---------------------------------- */

class dcx_lost_steps : public dcx_lost {};

/* A canceled endpoint has all of its completions while those of others are
 * still outstanding on its initiator. A flush that cancels it then ends,
 * too. */
TEST_P(dcx_lost_steps, cancel_while_it_drains)
{
    uct_ep_h dead = make_dead_eps(1)[0];
    dcx_end first, acknowledged, flushed, behind[8];

    put(dead, m_live_a, first);
    put(m_a, m_live_a, acknowledged);
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_a, 0));
    for (auto &end : behind) {
        put(m_b, m_live_b, end);
    }

    dcx_deadline deadline;
    while (m_dcx->errors.empty()) {
        deadline.check("an endpoint that was given up");
        progress();
    }
    EXPECT_EQ(UCS_ERR_CANCELED, m_dcx->errors[0]);
    EXPECT_EQ(0u, first.count) << "the initiator has drained already";
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_flush(m_a, UCT_FLUSH_FLAG_CANCEL, &flushed.comp));
    flush();
    EXPECT_EQ(1u, flushed.count);
    EXPECT_EQ(1u, acknowledged.count);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, first.status);
    for (auto &end : behind) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_OK, end.status);
    }
    expect_works(m_b);
}

INSTANTIATE_TEST_SUITE_P(one, dcx_lost_steps, testing::Values("hw_dcs"),
                         dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(any, dcx_lost_fence, testing::Values("rand"),
                         dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(any, dcx_lost_memory,
                         testing::Values("rand", "hw_dcs"), dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(any, dcx_left_memory,
                         testing::Values("dcs", "dcs_quota"), dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(two, dcx_resets, testing::Values("dcs", "dcs_quota"),
                         dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(any, dcx_lost, testing::Values("rand", "hw_dcs"),
                         dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    auto env = dcx_shared_env(), two = env, one = env;

    two.push_back({"UCX_DCX_NUM_DCI", "2"});
    one.push_back({"UCX_DCX_TX_MAX_POLL", "1"});
    return hca_test_main(argc, argv,
                         {{"any", env}, {"two", two}, {"one", one}});
}
