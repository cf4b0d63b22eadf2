/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The device's tag list at its limits: full, drained, flooded, with receives
 * that are canceled while a message arrives. Then endpoints and interfaces that
 * end during a rendezvous. The sender is another interface, so that a test can
 * send without progress of the receiver.
 */
#include "dcx_match_bench.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <random>
#include <sys/mman.h>

namespace {

class dcx_list : public dcx_tag_bench {
protected:
    dcx_list() : m_far_ep(m_far.make_ep(m_dcx))
    {
        m_far.survives_errors = true;
    }

    ~dcx_list()
    {
        if (m_far_ep != NULL) {
            uct_ep_destroy(m_far_ep);
        }
    }

    size_t list_size() const { return m_dcx.attr.cap.tag.recv.max_outstanding; }

    /* Makes progress of the sender alone. */
    template <typename F> void far_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("the sender");
            uct_worker_progress(m_far.worker);
        }
    }

    /* Makes progress of both. */
    template <typename F> void both_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress of both");
            uct_worker_progress(m_far.worker);
            uct_worker_progress(m_dcx.worker);
        }
    }

    /* Makes progress of both until nothing has happened for a while. */
    void sync()
    {
        constexpr unsigned IDLE = 100;
        dcx_deadline deadline;

        for (unsigned idle = 0; idle < IDLE; idle++) {
            deadline.check("both to complete");
            if (uct_worker_progress(m_far.worker) +
                    uct_worker_progress(m_dcx.worker) >
                0) {
                idle = 0;
            }
            if (is_late()) {
                usleep(time_slow(QUIET_LATE) * 1000 / IDLE);
            }
        }
    }

    static bool is_late() { return getenv("SOFTHCA_DELAY") != NULL; }

    /* Sends from the far interface, without progress. */
    ucs_status_t far_try(uct_tag_t tag, const void *data, size_t length)
    {
        return uct_ep_tag_eager_short(m_far_ep, tag, data, length);
    }

    /* Calls until there is room, with progress of both. */
    template <typename F> void far_retry(F call)
    {
        dcx_deadline deadline;
        ssize_t result;

        while ((result = call()) == UCS_ERR_NO_RESOURCE) {
            deadline.check("room");
            uct_worker_progress(m_far.worker);
            uct_worker_progress(m_dcx.worker);
        }
        ASSERT_GE(result, 0);
    }

    void far_send(uct_tag_t tag, uint64_t data)
    {
        far_retry([&] { return far_try(tag, &data, sizeof(data)); });
    }

    void far_send_bcopy(uct_tag_t tag, dcx_tag_mem &mem)
    {
        far_retry([&] {
            return uct_ep_tag_eager_bcopy(m_far_ep, tag, 0, pack, &mem, 0);
        });
    }

    /* Sends a message and waits until it has arrived; the receiver has not
     * polled it. */
    void far_send_arrived(uct_tag_t tag, dcx_tag_mem &mem)
    {
        dcx_end end;

        ASSERT_EQ(UCS_INPROGRESS,
                  uct_ep_tag_eager_zcopy(m_far_ep, tag, 0, &mem.iov, 1, 0,
                                         &end.comp));
        far_until([&] { return end.count == 1; });
        ASSERT_EQ(UCS_OK, end.status);
    }

    ucs_status_ptr_t far_rndv(uct_tag_t tag, const dcx_tag_mem &mem,
                              dcx_end &end)
    {
        return uct_ep_tag_rndv_zcopy(m_far_ep, tag, "header", 6, &mem.iov, 1, 0,
                                     &end.comp);
    }

    /* Posts as many receives as the list takes, all of one tag, and sends a
     * message for each. Checks that the receives match in order, and that an
     * entry is free again when its receive has ended. */
    void fill_and_drain(uct_tag_t tag)
    {
        std::vector<std::unique_ptr<dcx_tag_recv>> recvs;
        dcx_tag_recv one_more(m_dcx, 64);

        both_until([&] { return dcx_peek_num_posted(m_dcx.iface) == 0; });
        for (size_t i = 0; i < list_size(); i++) {
            recvs.emplace_back(new dcx_tag_recv(m_dcx, 64));
            ASSERT_EQ(UCS_OK, recvs.back()->post(tag)) << i;
        }
        EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, one_more.post(tag));
        dcx_wait_told(m_dcx);
        for (size_t i = 0; i < list_size(); i++) {
            far_send(tag, i);
            both_until([&] { return recvs[i]->has_ended(); });
            ASSERT_EQ(1u, recvs[i]->num_consumed);
            ASSERT_EQ(UCS_OK, recvs[i]->status);
            ASSERT_EQ(i, *(uint64_t *)recvs[i]->mem.bytes.data());
            if (i == 0) {
                EXPECT_EQ(UCS_OK, one_more.post(tag + 1));
            }
        }
        EXPECT_EQ(UCS_OK, one_more.cancel(false));
        both_until([&] { return one_more.has_ended(); });
        EXPECT_EQ(UCS_ERR_CANCELED, one_more.status);
        EXPECT_TRUE(m_unexpected.empty());
    }

    dcx_loop m_far;
    uct_ep_h m_far_ep;
};

/* Tests that need several receives in the list at a time */
class dcx_long_list : public dcx_list {};

/* Tests whose sender must not wait for progress of the receiver */
class dcx_no_fc : public dcx_list {};

/* --- the list ------------------------------------------------------------- */

TEST_P(dcx_list, full_and_drained)
{
    for (uct_tag_t tag : {5, 6, 7}) {
        fill_and_drain(tag);
    }
}

/* Bits that the mask leaves out do not count, in either tag. */
TEST_P(dcx_list, mask_leaves_bits_out)
{
    dcx_tag_recv recv(m_dcx, 64);

    EXPECT_EQ(UCS_OK, recv.post(0x1234, 0xff));
    dcx_wait_told(m_dcx);
    far_send(0x5634, 1);
    both_until([&] { return recv.has_ended(); });
    EXPECT_EQ(0x5634u, recv.tag);
}

TEST_P(dcx_long_list, wildcard_between_exact_tags)
{
    const std::vector<std::pair<uct_tag_t, uct_tag_t>> posts =
        {{5, ~0ull}, {0, 0}, {5, ~0ull}, {0x1200, 0xff00}, {5, ~0ull}};
    const std::vector<uct_tag_t> tags  = {5, 5, 0x1234, 5, 5};
    const std::vector<unsigned> places = {0, 1, 3, 2, 4};
    std::vector<std::unique_ptr<dcx_tag_recv>> recvs;

    for (const auto &post : posts) {
        recvs.emplace_back(new dcx_tag_recv(m_dcx, 64));
        ASSERT_EQ(UCS_OK, recvs.back()->post(post.first, post.second));
    }
    dcx_wait_told(m_dcx);
    for (unsigned i = 0; i < tags.size(); i++) {
        SCOPED_TRACE(i);
        far_send(tags[i], i);
        both_until([&] { return recvs[places[i]]->has_ended(); });
        EXPECT_EQ(tags[i], recvs[places[i]]->tag);
        EXPECT_EQ(i, *(uint64_t *)recvs[places[i]]->mem.bytes.data());
    }
}

/* One receive stays posted while tens of thousands come and go after it: counts
 * that the interface stored when it was posted are out of date by then. */
TEST_P(dcx_long_list, old_receive)
{
    const unsigned steps = is_late() ? 200 : 40000;
    dcx_tag_recv old(m_dcx, 64);
    uint64_t data = 77;

    EXPECT_EQ(UCS_OK, old.post(1));
    dcx_tag_recv recv(m_dcx, 64);
    for (unsigned i = 0; i < steps; i++) {
        recv.num_consumed = recv.num_completed = 0;
        ASSERT_EQ(UCS_OK, recv.post(2)) << i;
        dcx_wait_told(m_dcx);
        ASSERT_EQ(UCS_OK, retry([&] {
                      return uct_ep_tag_eager_short(m_dcx.ep, 2, &data,
                                                    sizeof(data));
                  }));
        progress_until([&] { return recv.has_ended(); });
    }
    far_send(1, 78);
    both_until([&] { return old.has_ended(); });
    for (unsigned i = 0; i < 3; i++) {
        fill_and_drain(3);
    }
}

/* Posts operations on the list that belong to no receive, as many as its ring
 * has room for, several times. */
TEST_P(dcx_list, told_after_each_receive)
{
    const unsigned count = is_late() ? 100 : 4000;
    dcx_tag_recv never(m_dcx, 64);

    for (unsigned i = 0; i < count; i++) {
        never.num_consumed = never.num_completed = 0;
        ASSERT_EQ(UCS_OK, never.post(1)) << i;
        far_send(2, i);
        both_until([&] { return !m_unexpected.empty(); });
        ASSERT_EQ(i, *(uint64_t *)wait_unexpected().data.data());
        ASSERT_EQ(UCS_OK, never.cancel(false));
        both_until([&] { return never.has_ended(); });
        ASSERT_EQ(UCS_ERR_CANCELED, never.status);
    }
    fill_and_drain(3);
}

/* One receive stays posted without a match. The device is told the number of
 * unexpected messages once after it was posted, and each 8,192 messages. */
TEST_P(dcx_list, count_of_many_messages)
{
    const unsigned count = is_late() ? 300 : 10000;
    dcx_tag_recv never(m_dcx, 64), recv(m_dcx, 64);
    uint16_t ops;

    EXPECT_EQ(UCS_OK, never.post(1));
    ops = dcx_peek_num_list_ops(m_dcx.iface);
    for (unsigned i = 0; i < count; i++) {
        far_send(2, i);
        both_until([&] { return !m_unexpected.empty(); });
        ASSERT_EQ(i, *(uint64_t *)wait_unexpected().data.data());
    }
    ops = dcx_peek_num_list_ops(m_dcx.iface) - ops;
    EXPECT_GE(ops, 1);
    EXPECT_LE(ops, is_late() ? 10 : 2);
    if (list_size() > 1) {
        ASSERT_EQ(UCS_OK, recv.post(2));
        dcx_wait_told(m_dcx);
        far_send(2, count);
        both_until([&] { return recv.has_ended(); });
    }
    EXPECT_EQ(UCS_OK, never.cancel(false));
    both_until([&] { return never.has_ended(); });
    EXPECT_EQ(UCS_ERR_CANCELED, never.status);
    fill_and_drain(3);
}

/* A receive is posted too early to match. When the device is told the first
 * time, more messages have arrived, so it is told once more. */
TEST_P(dcx_no_fc, told_too_early)
{
    const unsigned count = 40; /* more than progress delivers at once */
    dcx_tag_recv recv(m_dcx, 64);
    unsigned got = 0;

    m_dcx.on_eager = [&](void *, size_t, unsigned, uct_tag_t tag, uint64_t) {
        EXPECT_EQ(6u, tag);
        if (got++ == 0) {
            EXPECT_EQ(UCS_OK, recv.post(5));
        }
        if (got < count) {
            far_until([&] { return far_try(6, &got, sizeof(got)) == UCS_OK; });
        }
        return UCS_OK;
    };
    far_send(6, 0);
    both_until([&] { return got == count; });
    sync();
    dcx_wait_told(m_dcx);
    far_send(5, 77);
    both_until([&] { return recv.has_ended(); });
    EXPECT_EQ(1u, recv.num_consumed);
    EXPECT_EQ(77u, *(uint64_t *)recv.mem.bytes.data());
}

/* --- unexpected messages -------------------------------------------------- */

/* The receiver makes no progress until the sender cannot send. Unless the
 * device is late, its 16-bit count of unexpected messages passes its middle,
 * then wraps around. */
TEST_P(dcx_list, floods)
{
    uint64_t sent = 0, got = 0;
    dcx_deadline deadline;
    hca_log_reader log;
    auto flood = [&](uint64_t total) {
        while (got < total) {
            deadline.check("the flood");
            for (unsigned idle = 0; (sent < total) && (idle < 50);) {
                if (far_try(sent, &sent, sizeof(sent)) == UCS_OK) {
                    sent++;
                    idle = 0;
                } else {
                    uct_worker_progress(m_far.worker);
                    idle++;
                }
            }
            sync();
        }
        EXPECT_EQ(total, got);
        fill_and_drain(total + 1);
    };

    m_dcx.on_eager = [&](void *data, size_t, unsigned, uct_tag_t, uint64_t) {
        EXPECT_EQ(got++, *(uint64_t *)data);
        return UCS_OK;
    };
    flood(is_late() ? 1500 : 40000);
    flood(is_late() ? 3000 : 70000);
    EXPECT_EQ("", log.take()); /* the device logs a lost count */
}

/* Until the user has got the unexpected messages, the device matches only
 * receives that were posted before them. */
TEST_P(dcx_long_list, posted_behind_unexpected)
{
    dcx_tag_mem mem(m_dcx, 32, 1), far_mem(m_far, 32, 1);
    dcx_tag_recv before(m_dcx, 64), behind(m_dcx, 64);

    EXPECT_EQ(UCS_OK, before.post(5));
    dcx_wait_told(m_dcx);
    far_send_arrived(6, far_mem);
    EXPECT_EQ(UCS_OK, behind.post(6));
    far_send_arrived(6, far_mem);
    far_send_arrived(5, far_mem);
    EXPECT_EQ(6u, wait_unexpected().tag);
    EXPECT_EQ(6u, wait_unexpected().tag);
    progress_until([&] { return before.has_ended(); });
    EXPECT_FALSE(behind.has_ended());
    dcx_wait_told(m_dcx);
    far_send_arrived(6, far_mem);
    expect_received(behind, 6, 0, mem);
}

/* Buffers that the user keeps are replaced, and do not change until they are
 * released. */
TEST_P(dcx_list, kept_buffers)
{
    const unsigned total = is_late() ? 100 : 3000;
    dcx_tag_mem mem(m_far, 200);
    std::deque<void *> kept;
    uint64_t next = 0, sent = 0;
    auto release = [&] {
        EXPECT_EQ(next++, *(uint64_t *)((char *)kept.front() + 100));
        uct_iface_release_desc((char *)kept.front() - m_dcx.headroom());
        kept.pop_front();
    };

    m_dcx.on_eager = [&](void *data, size_t length, unsigned flags, uct_tag_t,
                         uint64_t) {
        EXPECT_TRUE(flags & UCT_CB_PARAM_FLAG_DESC);
        EXPECT_EQ(200u, length);
        memset((char *)data - m_dcx.headroom(), 0xee, m_dcx.headroom());
        kept.push_back(data);
        return UCS_INPROGRESS;
    };
    for (sent = 0; sent < total; sent++) {
        *(uint64_t *)&mem.bytes[100] = sent;
        far_send_bcopy(5, mem);
        if (kept.size() > total / 2) {
            release();
        }
    }
    both_until([&] { return next + kept.size() == total; });
    while (!kept.empty()) {
        release();
    }
    m_dcx.on_eager = nullptr;
    fill_and_drain(6);
}

/* --- as UCP: receives and messages match in order ------------------------- */

/* A user as UCP: keeps receives that the device does not accept, all later
 * ones, and messages that match none. */
class dcx_pairs : public dcx_list {
protected:
    struct pair_recv : dcx_tag_recv {
        using dcx_tag_recv::dcx_tag_recv;

        uct_tag_t want = 0, mask = 0;
        bool is_posted = false;
        int message    = -1; /* message that has matched */
    };

    dcx_pairs()
    {
        m_dcx.on_eager = [this](void *data, size_t, unsigned, uct_tag_t tag,
                                uint64_t) {
            int message = *(uint64_t *)data;

            for (size_t i = 0; i < m_recvs.size(); i++) {
                if (is_open(*m_recvs[i]) && matches(*m_recvs[i], tag)) {
                    found(*m_recvs[i], message);
                    return UCS_OK;
                }
            }
            m_waiting.push_back({tag, message});
            return UCS_OK;
        };
    }

    static bool matches(const pair_recv &recv, uct_tag_t tag)
    {
        return ((tag ^ recv.want) & recv.mask) == 0;
    }

    static bool is_open(const pair_recv &recv)
    {
        return (recv.message < 0) && (recv.num_consumed == 0);
    }

    void found(pair_recv &recv, int message)
    {
        recv.message = message;
        if (recv.is_posted) {
            EXPECT_EQ(UCS_OK, recv.cancel(true));
        }
    }

    void post(uct_tag_t tag, uct_tag_t mask)
    {
        m_recvs.emplace_back(new pair_recv(m_dcx, 64));
        pair_recv &recv = *m_recvs.back();
        recv.want       = tag;
        recv.mask       = mask;
        for (auto it = m_waiting.begin(); it != m_waiting.end(); ++it) {
            if (matches(recv, it->first)) {
                found(recv, it->second);
                m_waiting.erase(it);
                return;
            }
        }
        for (const auto &other : m_recvs) {
            if ((other.get() != &recv) && is_open(*other) &&
                !other->is_posted) {
                return;
            }
        }
        recv.is_posted = (recv.dcx_tag_recv::post(tag, mask) == UCS_OK);
    }

    /* Returns the number of messages that have arrived: that have matched, or
     * wait. */
    size_t num_come() const
    {
        return m_waiting.size() +
               std::count_if(
                   m_recvs.begin(), m_recvs.end(), [](const auto &recv) {
                       return (recv->message >= 0) || (recv->num_completed > 0);
                   });
    }

    /* Returns the message that each receive must get, or -1: each message gets
     * the first receive that matches and is free. */
    std::vector<int> reference(const std::vector<uct_tag_t> &tags) const
    {
        std::vector<int> places(m_recvs.size(), -1);

        for (size_t message = 0; message < tags.size(); message++) {
            for (size_t i = 0; i < m_recvs.size(); i++) {
                if ((places[i] < 0) && matches(*m_recvs[i], tags[message])) {
                    places[i] = message;
                    break;
                }
            }
        }
        return places;
    }

    std::vector<std::unique_ptr<pair_recv>> m_recvs;
    std::deque<std::pair<uct_tag_t, int>> m_waiting;
};

TEST_P(dcx_pairs, order_of_mpi)
{
    const uct_tag_t masks[] = {~0ull, ~0ull, ~0ull, 0xf, 0xf0, 0};

    for (unsigned seed = 0; seed < (is_late() ? 20 : 200); seed++) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::vector<uct_tag_t> tags;
        unsigned bias = 1 + (random() % 7);

        for (unsigned step = 0; step < 300; step++) {
            uct_tag_t tag = (random() % 3) | ((random() % 3) << 4);

            if ((random() % 8) < bias) {
                post(tag, masks[random() % 6]);
            } else {
                tags.push_back(tag);
                far_send(tag, tags.size() - 1);
            }
            if ((random() % 8) == 0) {
                uct_worker_progress(m_dcx.worker);
                uct_worker_progress(m_far.worker);
            }
        }
        both_until([&] { return num_come() == tags.size(); });

        std::vector<int> places = reference(tags);
        for (size_t i = 0; i < m_recvs.size(); i++) {
            pair_recv &recv = *m_recvs[i];

            if (recv.num_completed > 0) {
                EXPECT_EQ(-1, recv.message);
                recv.message = *(uint64_t *)recv.mem.bytes.data();
            }
            ASSERT_EQ(places[i], recv.message) << "receive " << i;
            if ((recv.message < 0) && recv.is_posted) {
                EXPECT_EQ(UCS_OK, recv.cancel(true));
            }
        }
        both_until([&] { return dcx_peek_num_posted(m_dcx.iface) == 0; });
        m_recvs.clear();
        m_waiting.clear();
    }
    m_dcx.on_eager = nullptr;
    fill_and_drain(100);
}

/* --- cancel --------------------------------------------------------------- */

/* A thread sends one message at a time, when the main thread allows it; the
 * main thread cancels the receive meanwhile. */
class dcx_cancel : public dcx_list {
protected:
    enum kind { SHORT, LONG, RNDV, NUM_KINDS };

    /* Outcome of the last message, set by the main thread */
    enum { UNKNOWN, MATCHED, UNEXPECTED };
    enum { MAX_TIMES = 10 }; /* as many messages as a test plans */

    ~dcx_cancel() { stop(); }

    /* Starts the thread. @shortest: length of SHORT messages. Few bytes may be
     * in the CQE, which is not read after a cancel by force. */
    void start(unsigned count, size_t shortest)
    {
        m_length[SHORT] = shortest;
        m_length[LONG]  = m_far.attr.cap.tag.eager.max_bcopy;
        m_length[RNDV]  = 20000;
        for (unsigned i = 0; i < NUM_KINDS; i++) {
            m_recvs[i].reset(new dcx_tag_recv(m_dcx, m_length[i]));
        }
        m_sender = std::thread([this, count] { send_all(count); });
    }

    void stop()
    {
        m_is_stuck = true;
        m_said     = MATCHED;
        if (m_sender.joinable()) {
            m_sender.join();
        }
    }

    dcx_tag_recv &post(unsigned i)
    {
        dcx_tag_recv &recv = *m_recvs[i % NUM_KINDS];

        recv.num_consumed = recv.num_completed = 0;
        progress_until([&] {
            ucs_status_t status = recv.post(i);

            EXPECT_NE(UCS_ERR_ALREADY_EXISTS, status);
            return status != UCS_ERR_EXCEEDS_LIMIT; /* still being removed */
        });
        return recv;
    }

    void send_one(unsigned which, uct_tag_t tag, dcx_tag_mem &mem)
    {
        dcx_deadline deadline;
        dcx_end end;
        void *op = NULL;

        *(uint64_t *)mem.bytes.data() = tag;
        for (;;) {
            ucs_status_t status = UCS_OK;

            if (which == RNDV) {
                op     = far_rndv(tag, mem, end);
                status = UCS_PTR_IS_ERR(op) ? UCS_PTR_STATUS(op) : UCS_OK;
            } else {
                status = uct_ep_tag_eager_zcopy(m_far_ep, tag, 0, &mem.iov, 1,
                                                0, &end.comp);
            }
            if (status != UCS_ERR_NO_RESOURCE) {
                break;
            }
            uct_worker_progress(m_far.worker);
        }
        while ((m_said == UNKNOWN) ||
               ((end.count == 0) && ((which != RNDV) || (m_said == MATCHED)))) {
            if (deadline.is_over()) {
                m_is_stuck = true;
                return;
            }
            uct_worker_progress(m_far.worker);
            std::this_thread::yield();
        }
        if ((which == RNDV) && (m_said == UNEXPECTED)) {
            EXPECT_EQ(0u, end.count);
            EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_far_ep, op));
        } else {
            EXPECT_EQ(1u, end.count);
            EXPECT_EQ(UCS_OK, end.status);
        }
    }

    void send_all(unsigned count)
    {
        std::vector<std::unique_ptr<dcx_tag_mem>> mems;

        for (unsigned i = 0; i < NUM_KINDS; i++) {
            mems.emplace_back(new dcx_tag_mem(m_far, m_length[i], 7));
        }
        for (unsigned i = 1; (i <= count) && !m_is_stuck; i++) {
            while ((m_allowed < i) && !m_is_stuck) {
                std::this_thread::yield();
            }
            if (m_is_stuck) { /* or no more are needed: stop() */
                break;
            }
            send_one(i % NUM_KINDS, i, *mems[i % NUM_KINDS]);
            m_done = i;
        }
    }

    /* Returns true if message @i need not be sent: @count have been, and
     * canceled receives have ended in both ways, or will not. */
    static bool is_enough(unsigned i, unsigned count, const unsigned *ends)
    {
        return (i > MAX_TIMES * count) ||
               ((i > count) && (ends[1] > 0) && (ends[2] > 0));
    }

    /* Allows the next message, and waits for a random time. */
    void race(unsigned i, std::mt19937 &random)
    {
        m_said    = UNKNOWN;
        m_allowed = i;
        for (unsigned spin = random() % (is_late() ? 200000 : 4000); spin > 0;
             spin--) {
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        if (random() % 4 == 0) {
            sched_yield();
        }
        if (random() % 2) {
            uct_worker_progress(m_dcx.worker);
        }
    }

    void say(unsigned i, int said)
    {
        dcx_deadline deadline;

        m_said = said;
        while ((m_done < i) && !m_is_stuck) {
            deadline.check("an end of what was sent");
            uct_worker_progress(m_dcx.worker);
            std::this_thread::yield();
        }
        ASSERT_FALSE(m_is_stuck);
    }

    size_t m_length[NUM_KINDS];
    std::unique_ptr<dcx_tag_recv> m_recvs[NUM_KINDS];
    std::thread m_sender;
    std::atomic<unsigned> m_allowed{0}, m_done{0};
    std::atomic<int> m_said{UNKNOWN};
    std::atomic<bool> m_is_stuck{false};
};

/* A receive is canceled while its message arrives. It ends once: with the
 * message, or canceled, and then the message is unexpected. */
TEST_P(dcx_cancel, races_with_match)
{
    const unsigned count = is_late() ? 1500 : 3000;
    unsigned ends[3]     = {}, i;
    std::mt19937 random(1);

    start(MAX_TIMES * count, 40);
    for (i = 1; !is_enough(i, count, ends) && !HasFatalFailure(); i++) {
        dcx_tag_recv &recv = post(i);
        bool is_canceled   = false;

        race(i, random);
        if (!recv.has_ended()) {
            is_canceled = true;
            EXPECT_EQ(UCS_OK, recv.cancel(false));
        }
        progress_until([&] {
            std::this_thread::yield();
            return recv.has_ended();
        });
        if (recv.status == UCS_OK) {
            EXPECT_EQ(1u, recv.num_consumed);
            EXPECT_EQ(i, *(uint64_t *)recv.mem.bytes.data());
            ends[is_canceled]++;
        } else {
            EXPECT_EQ(UCS_ERR_CANCELED, recv.status);
            EXPECT_EQ(0u, recv.num_consumed);
            EXPECT_EQ(i, wait_unexpected().tag);
            ends[2]++;
        }
        EXPECT_TRUE(m_unexpected.empty());
        say(i, (recv.status == UCS_OK) ? MATCHED : UNEXPECTED);
    }
    stop();
    RecordProperty("matched before", ends[0]);
    RecordProperty("matched though canceled", ends[1]);
    RecordProperty("canceled", ends[2]);
    EXPECT_GT(ends[1], 0u);
    EXPECT_GT(ends[2], 0u);
    fill_and_drain(i);
}

/* A cancel by force has no completion. The message is in the buffer if it came
 * first, else unexpected. The buffer is posted again at once. */
TEST_P(dcx_cancel, by_force_races_with_match)
{
    const unsigned count = is_late() ? 1500 : 3000;
    unsigned ends[3]     = {}, i;
    std::mt19937 random(2);

    start(MAX_TIMES * count, 200);
    for (i = 1; !is_enough(i, count, ends) && !HasFatalFailure(); i++) {
        void *buffer            = m_recvs[i % NUM_KINDS]->mem.bytes.data();
        volatile uint64_t &word = *(uint64_t *)buffer;
        unsigned which          = 0;
        dcx_deadline deadline;

        word               = 0;
        dcx_tag_recv &recv = post(i);
        race(i, random);
        if (!recv.has_ended()) {
            if (random() % 2) { /* the entry must be removed only once */
                EXPECT_EQ(UCS_OK, recv.cancel(false));
            }
            EXPECT_EQ(UCS_OK, recv.cancel(true));
            while ((word != i) && m_unexpected.empty()) {
                deadline.check("the message");
                uct_worker_progress(m_dcx.worker);
                std::this_thread::yield();
            }
            EXPECT_EQ(0u, recv.num_completed);
            which = (word == i) ? 1 : 2;
        }
        if (!m_unexpected.empty()) {
            EXPECT_EQ(i, wait_unexpected().tag);
            EXPECT_EQ(2u, which);
        }
        ends[which]++;
        say(i, (which == 2) ? UNEXPECTED : MATCHED);
        EXPECT_TRUE(m_unexpected.empty());
    }
    stop();
    EXPECT_GT(ends[1], 0u);
    EXPECT_GT(ends[2], 0u);
    fill_and_drain(i);
}

/* Memory on demand is pinned for the list. If it cannot be, UCP has to receive
 * by itself: it expects no other error. */
TEST_P(dcx_long_list, memory_that_cannot_be_pinned)
{
    const size_t length = 65536;
    uct_md_attr_t attr;
    uct_mem_h memh;
    void *addr;

    UCT_CALL(uct_md_query(m_dcx.md(), &attr));
    if (!(attr.cap.flags & UCT_MD_FLAG_ADVISE)) {
        GTEST_SKIP() << "the device has no on-demand paging";
    }

    addr = mmap(NULL, length, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, addr);
    UCT_CALL(uct_md_mem_reg(m_dcx.md(), addr, length,
                            UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_NONBLOCK,
                            &memh));
    munmap(addr, length);

    dcx_tag_recv recv(m_dcx, length);
    recv.iov = {{addr, length, memh, 0, 1}};
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, recv.post(1));
    EXPECT_NE(std::string::npos, m_log.take().find("failed to pin"));
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
}

/* The completion of a receive can post and cancel receives, and destroy an
 * endpoint. */
TEST_P(dcx_long_list, callbacks_do_everything)
{
    dcx_tag_mem mem(m_dcx, 5000, 3), far_mem(m_far, 5000, 3);
    dcx_tag_recv first(m_dcx, 5000), other(m_dcx, 5000);
    unsigned rounds = 0;
    dcx_end ends[100];
    unsigned sent = 0;

    EXPECT_EQ(UCS_OK, other.post(7));
    first.then = [&] {
        EXPECT_EQ(UCS_OK, other.cancel(true));
        EXPECT_EQ(UCS_OK, other.post(7));
        first.num_consumed = first.num_completed = 0;
        if (++rounds < 100) {
            EXPECT_EQ(UCS_OK, first.post(6));
        } else {
            uct_ep_destroy(m_far_ep);
            m_far_ep = NULL;
        }
    };
    EXPECT_EQ(UCS_OK, first.post(6));
    both_until([&] {
        if ((sent == rounds) && (sent < 100) &&
            dcx_peek_list_is_told(m_dcx.iface) &&
            !UCS_PTR_IS_ERR(far_rndv(6, far_mem, ends[sent]))) {
            sent++;
        }
        return rounds == 100;
    });
    EXPECT_EQ(mem.bytes, first.mem.bytes);
    EXPECT_EQ(UCS_OK, other.cancel(true));
    sync();
    for (const auto &end : ends) {
        EXPECT_EQ(1u, end.count);
    }
}

/* --- rendezvous ----------------------------------------------------------- */

/* By default, min_recv keeps users from posting buffers that are too short for
 * an eager message or a rendezvous request. */
TEST_P(dcx_list, shortest_receive)
{
    const auto &cap = m_dcx.attr.cap.tag;

    EXPECT_GE(cap.recv.min_recv, cap.eager.max_bcopy);
    EXPECT_GE(cap.recv.min_recv, cap.eager.max_zcopy);
    EXPECT_GE(cap.recv.min_recv, cap.eager.max_short);
    EXPECT_GE(cap.recv.min_recv, sizeof(struct ibv_tmh) +
                                     sizeof(struct ibv_rvh) + 16 +
                                     cap.rndv.max_hdr - 2);
}

/* A rendezvous that is one byte too long ends the receive with an error, and
 * its request is unexpected. Nothing is written after the buffer. */
TEST_P(dcx_list, rndv_into_shortest_buffer)
{
    for (size_t room : {(size_t)64, (size_t)100, (size_t)4096}) {
        for (size_t length : {room, room + 1}) {
            SCOPED_TRACE(length);
            std::string hdr(m_far.attr.cap.tag.rndv.max_hdr, 'h');
            dcx_tag_mem mem(m_far, length, 5);
            dcx_tag_recv recv(m_dcx, room + 64);
            const std::vector<uint8_t> blank = recv.mem.bytes;
            dcx_end end;

            recv.mem.iov.length = room;
            EXPECT_EQ(UCS_OK, recv.post(5));
            dcx_wait_told(m_dcx);
            ucs_status_ptr_t op;
            both_until([&] {
                op = uct_ep_tag_rndv_zcopy(m_far_ep, 5, hdr.data(), hdr.size(),
                                           &mem.iov, 1, 0, &end.comp);
                return UCS_PTR_RAW_STATUS(op) != UCS_ERR_NO_RESOURCE;
            });
            ASSERT_FALSE(UCS_PTR_IS_ERR(op));
            both_until([&] { return recv.has_ended(); });
            EXPECT_EQ(0, memcmp(&recv.mem.bytes[room], &blank[room], 64));
            if (length == room) {
                EXPECT_EQ(UCS_OK, recv.status);
                EXPECT_EQ(
                    0, memcmp(mem.bytes.data(), recv.mem.bytes.data(), room));
                both_until([&] { return end.count == 1; });
            } else {
                EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, recv.status);
                EXPECT_EQ(bytes(hdr.data(), hdr.size()),
                          wait_unexpected().data);
                EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_far_ep, op));
                EXPECT_EQ(0u, end.count);
            }
        }
    }
}

/* A rendezvous is too long for a receive that is canceled: the device leaves it
 * to the user. dcx does not read the request from the buffer, in one piece or
 * several; if it is in the CQE, it is unexpected. */
TEST_P(dcx_list, rndv_into_canceled_buffer)
{
    const bool is_inline = getenv("UCX_DCX_RX_INLINE") == NULL;

    for (bool is_strided : {false, true}) {
        dcx_tag_mem mem(m_far, 20000, 5);
        dcx_tag_recv recv(m_dcx, 256);
        dcx_end end, flushed;

        if (is_strided) {
            recv.iov = {{recv.mem.iov.buffer, 100, recv.mem.iov.memh, 128, 2}};
        }
        ASSERT_EQ(UCS_OK, retry([&] { return recv.post(5); }));
        dcx_wait_told(m_dcx);
        ucs_status_ptr_t op = far_rndv(5, mem, end);
        ASSERT_FALSE(UCS_PTR_IS_ERR(op));
        if (uct_ep_flush(m_far_ep, 0, &flushed.comp) == UCS_INPROGRESS) {
            far_until([&] { return flushed.count == 1; });
        }
        EXPECT_EQ(UCS_OK, recv.cancel(true));
        std::fill(recv.mem.bytes.begin(), recv.mem.bytes.end(), 0xee);
        both_until([&] { return dcx_peek_num_posted(m_dcx.iface) == 0; });
        EXPECT_FALSE(recv.has_ended());
        EXPECT_EQ(is_inline, !m_unexpected.empty()) << is_strided;
        if (is_inline) {
            EXPECT_EQ(bytes("header", 6), wait_unexpected().data);
        }
        m_unexpected.clear();
        EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_far_ep, op));
    }
}

/* --- end of endpoints and interfaces -------------------------------------- */

/* The receiver does not fetch the data of a rendezvous: flushes end, and the
 * operation ends with the endpoint. */
TEST_P(dcx_list, ends_while_unexpected)
{
    dcx_tag_mem mem(m_far, 20000);
    dcx_end end, flushed, canceled;

    EXPECT_FALSE(UCS_PTR_IS_ERR(far_rndv(5, mem, end)));
    ucs_status_t status = uct_ep_flush(m_far_ep, 0, &flushed.comp);
    if (status == UCS_INPROGRESS) {
        far_until([&] { return flushed.count == 1; });
    } else {
        EXPECT_EQ(UCS_OK, status);
    }
    far_until([&] { return uct_iface_flush(m_far.iface, 0, NULL) == UCS_OK; });
    EXPECT_EQ(0u, end.count);
    uct_ep_destroy(m_far_ep);
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    EXPECT_TRUE(wait_unexpected().is_rndv);

    m_far_ep = m_far.make_ep(m_dcx);
    dcx_end second;
    EXPECT_FALSE(UCS_PTR_IS_ERR(far_rndv(5, mem, second)));
    status = uct_ep_flush(m_far_ep, UCT_FLUSH_FLAG_CANCEL, &canceled.comp);
    if (status == UCS_INPROGRESS) {
        far_until([&] { return canceled.count == 1; });
    }
    far_until([&] { return second.count == 1; });
    EXPECT_EQ(UCS_ERR_CANCELED, second.status);
}

/* The FIN of a rendezvous has arrived, but was not polled when the endpoint is
 * destroyed. It must not end the rendezvous of the next endpoint. */
TEST_P(dcx_list, late_fin)
{
    dcx_tag_mem mem(m_far, 20000, 4);

    for (unsigned i = 0; i < 300; i++) {
        dcx_tag_recv recv(m_dcx, 20000), next(m_dcx, 20000);
        dcx_end end, next_end;

        ASSERT_EQ(UCS_OK, recv.post(5));
        dcx_wait_told(m_dcx);
        ASSERT_FALSE(UCS_PTR_IS_ERR(far_rndv(5, mem, end)));
        progress_until([&] { return recv.has_ended(); });
        ASSERT_EQ(0u, end.count);
        uct_ep_destroy(m_far_ep);
        ASSERT_EQ(1u, end.count);
        ASSERT_EQ(UCS_ERR_CANCELED, end.status);
        m_far_ep = m_far.make_ep(m_dcx);
        ASSERT_FALSE(UCS_PTR_IS_ERR(far_rndv(6, mem, next_end)));
        sync();
        ASSERT_EQ(1u, end.count);
        ASSERT_EQ(0u, next_end.count);
        EXPECT_EQ(6u, wait_unexpected().tag);
        uct_ep_destroy(m_far_ep);
        ASSERT_EQ(1u, next_end.count);
        m_far_ep = m_far.make_ep(m_dcx);
    }
}

/* The FIN of a canceled rendezvous must not end a later one that has the same
 * entry in the table. */
TEST_P(dcx_no_fc, later_fin)
{
    const unsigned table = 64; /* UCT_DCX_TM_RNDV_LENGTH */
    dcx_tag_mem mem(m_far, 20000, 4);
    dcx_tag_recv recv(m_dcx, 20000);
    dcx_end ends[table + 1];

    ASSERT_EQ(UCS_OK, recv.post(5));
    dcx_wait_told(m_dcx);
    for (unsigned i = 0; i <= table; i++) {
        ucs_status_ptr_t op = far_rndv((i == 0) ? 5 : 6, mem, ends[i]);

        ASSERT_FALSE(UCS_PTR_IS_ERR(op));
        if (i == 0) {
            progress_until([&] { return recv.has_ended(); });
        } else {
            wait_unexpected();
        }
        if (i < table) {
            EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_far_ep, op));
        }
    }
    sync();
    for (const auto &end : ends) {
        EXPECT_EQ(0u, end.count);
    }
    uct_ep_destroy(m_far_ep);
    m_far_ep = NULL;
    EXPECT_EQ(1u, ends[table].count);
}

/* Various operations are in progress when the sender's or the receiver's
 * interface is closed. All posted operations end. */
TEST_P(dcx_list, close)
{
    const unsigned rounds = is_late() ? 10 : 40;

    for (unsigned i = 0; i < rounds; i++) {
        SCOPED_TRACE(i);
        std::unique_ptr<dcx_loop> loop(new dcx_loop);
        std::vector<std::unique_ptr<dcx_tag_recv>> recvs;
        dcx_end ends[4];
        dcx_tag_mem far_mem(m_far, 100000, 4);
        std::unique_ptr<dcx_tag_mem> mem(new dcx_tag_mem(*loop, 100000, 4));
        uct_ep_h to   = loop->make_ep(m_dcx);
        uct_ep_h from = m_far.make_ep(*loop);

        loop->survives_errors = true;
        for (unsigned n = 0; n < std::min<size_t>(list_size(), 3); n++) {
            recvs.emplace_back(new dcx_tag_recv(*loop, 100000));
            ASSERT_EQ(UCS_OK, recvs.back()->post(5 + n));
        }
        dcx_tag_recv recv(m_dcx, 100000);
        ASSERT_EQ(UCS_OK, recv.post(5));

        /* one that matches and one that does not, in both directions */
        for (unsigned n = 0; n < 2; n++) {
            EXPECT_FALSE(UCS_PTR_IS_ERR(uct_ep_tag_rndv_zcopy(
                to, 5 + n, "", 0, &mem->iov, 1, 0, &ends[n].comp)));
            EXPECT_FALSE(UCS_PTR_IS_ERR(
                uct_ep_tag_rndv_zcopy(from, 5 + 9 * n, "", 0, &far_mem.iov, 1,
                                      0, &ends[2 + n].comp)));
        }
        if (i % 2) {
            uct_worker_progress(loop->worker);
        }
        uct_ep_destroy(to);
        EXPECT_EQ(1u, ends[0].count);
        EXPECT_EQ(1u, ends[1].count);
        EXPECT_EQ(UCS_ERR_CANCELED, ends[1].status);
        uct_ep_destroy(from);
        EXPECT_EQ(1u, ends[2].count);
        EXPECT_EQ(1u, ends[3].count);
        loop->close_iface();
        recvs.clear();
        mem.reset();
        loop.reset();

        /* the peer is gone: the receive has matched and ends, or can be
         * canceled */
        if (!recv.has_ended()) {
            EXPECT_EQ(UCS_OK, recv.cancel(false));
        }
        both_until([&] { return recv.has_ended(); });
        m_unexpected.clear();
    }
    sync();
    m_unexpected.clear();
    m_log.take();
    fill_and_drain(100);
}

/* An interface is closed before its endpoint is destroyed: it ends the
 * endpoint's operations, and logs a message. */
TEST_P(dcx_list, close_with_endpoint_left)
{
    std::unique_ptr<dcx_loop> loop(new dcx_loop);
    dcx_tag_mem *mem = new dcx_tag_mem(*loop, 20000);
    dcx_end end;

    uct_ep_h ep = loop->make_ep(m_dcx);
    EXPECT_FALSE(UCS_PTR_IS_ERR(
        uct_ep_tag_rndv_zcopy(ep, 5, "", 0, &mem->iov, 1, 0, &end.comp)));
    EXPECT_TRUE(wait_unexpected().is_rndv);
    delete mem;
    loop.reset();
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    EXPECT_NE(std::string::npos,
              m_log.take().find("endpoints were not destroyed"));
}

#define DCX_LIST_MODE(_mode) \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_list, testing::Values(0)); \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_pairs, testing::Values(0)); \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_cancel, testing::Values(0))

#define DCX_LONG_LIST_MODE(_mode) \
    DCX_LIST_MODE(_mode); \
    INSTANTIATE_TEST_SUITE_P(_mode, dcx_long_list, testing::Values(0))

DCX_LONG_LIST_MODE(base);
DCX_LONG_LIST_MODE(roce);
DCX_LONG_LIST_MODE(late);
DCX_LIST_MODE(one);
DCX_LIST_MODE(three);
DCX_LONG_LIST_MODE(small);
INSTANTIATE_TEST_SUITE_P(small, dcx_no_fc, testing::Values(0));

} // namespace

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {
            {"base", {{"UCX_DCX_TM_ENABLE", "y"}}},
            /* with doorbells of eight bytes, on a device without pushes */
            {"roce",
             {{"UCX_DCX_TM_ENABLE", "y"},
              {"SOFTHCA_LINK", "roce"},
              {"SOFTHCA_HAS", "tm_roce"},
              {"SOFTHCA_LACKS", "wc"},
              {"UCX_DCX_RX_INLINE", "0"}}},
            {"late", {{"UCX_DCX_TM_ENABLE", "y"}, {"SOFTHCA_DELAY", "20"}}},
            {"one",
             {{"UCX_DCX_TM_ENABLE", "y"}, {"UCX_DCX_TM_LIST_SIZE", "1"}}},
            {"three",
             {{"UCX_DCX_TM_ENABLE", "y"},
              {"UCX_DCX_TM_LIST_SIZE", "3"},
              {"DCX_TEST_HEADROOM", "64"}}},
            /* without a buffer the sender gets an RNR NAK, and retries */
            {"small",
             {{"UCX_DCX_TM_ENABLE", "y"},
              {"UCX_DCX_RX_QUEUE_LEN", "64"},
              {"UCX_DCX_FC_ENABLE", "n"},
              {"UCX_DCX_TM_LIST_SIZE", "100"},
              {"DCX_TEST_HEADROOM", "200"}}},
        });
}
