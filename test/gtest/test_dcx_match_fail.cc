/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tagged messages and rendezvous to peers that die, with every policy;
 * rendezvous from senders that are killed; and rendezvous whose data the
 * receiver's device cannot fetch.
 */
#include "dcx_match_bench.h"
#include "dcx_shared_bench.h"
#include "dcx_tag_source.h"

#include <signal.h>
#include <sys/prctl.h>

namespace {

/* --- peers that die, with every policy ------------------------------------ */

class dcx_match_shared : public dcx_shared {
protected:
    dcx_match_shared() : m_source(*m_dcx), m_note_a(m_live_a.loop) {}

    void send(tag_kind kind, uct_ep_h ep, uct_tag_t tag, dcx_end &end)
    {
        post([&] { return m_source.send(kind, ep, tag, end); });
    }

    template <typename F> void progress_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            progress();
        }
    }

    /* Creates an endpoint to a peer that is closed with a rendezvous request
     * for each of @ends, which it has not read. */
    uct_ep_h make_dying_ep(std::vector<dcx_end> &ends)
    {
        dcx_loop peer;
        uct_ep_h ep = make_ep(peer);

        for (auto &end : ends) {
            send(RNDV, ep, 1, end);
        }
        flush();
        for (auto &end : ends) {
            EXPECT_EQ(0u, end.count);
        }
        return ep;
    }

    /* Checks the peer until the endpoint has failed. */
    void check_until_failed(uct_ep_h ep)
    {
        dcx_deadline deadline;

        while (m_dcx->errors.empty()) {
            ucs_status_t status = uct_ep_check(ep, 0, NULL);

            EXPECT_TRUE((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE))
                << ucs_status_string(status);
            deadline.check("the failure");
            progress();
        }
    }

    tag_source m_source;
    tag_note m_note_a;
};

/* Nothing is in flight when the peer dies: keepalive finds out. */
TEST_P(dcx_match_shared, dies_before_it_reads)
{
    std::vector<dcx_end> ends(20);
    uct_ep_h ep = make_dying_ep(ends);

    check_until_failed(ep);
    for (auto &end : ends) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, end.status);
    }
    dcx_end end;
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, m_source.send(RNDV, ep, 1, end));
    destroy_ep(ep);
    EXPECT_EQ(1u, m_dcx->errors.size());
    send(SHORT, m_a, 5, end);
    flush();
    EXPECT_EQ(std::vector<uint64_t>{5}, m_note_a.tags);
}

/* The endpoint is destroyed in the completion of its first failed operation:
 * its other operations end, and no error is reported. */
TEST_P(dcx_match_shared, destroyed_when_it_fails)
{
    std::vector<dcx_end> ends(5);
    uct_ep_h ep = make_dying_ep(ends);
    dcx_deadline deadline;
    bool is_destroyed = false;

    ends[0].then = [&] {
        is_destroyed = true;
        destroy_ep(ep);
    };
    while (!is_destroyed) {
        uct_ep_check(ep, 0, NULL);
        progress();
        deadline.check("the failure");
    }
    for (auto &end : ends) {
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, end.status);
    }
    EXPECT_EQ(0u, m_dcx->errors.size());
}

/* The user cancels the endpoint, by uct_ep_invalidate() or by a flush. */
TEST_P(dcx_match_shared, canceled_by_the_user)
{
    for (bool by_flush : {false, true}) {
        std::vector<dcx_end> ends(5);
        uct_ep_h ep         = make_ep(m_live_a.loop);
        ucs_status_t status = UCS_OK;
        dcx_end flushed;

        m_dcx->errors.clear();
        for (auto &end : ends) {
            send(RNDV, ep, 1, end);
        }
        if (by_flush) {
            status = uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, &flushed.comp);
        } else {
            EXPECT_EQ(UCS_OK, uct_ep_invalidate(ep, 0));
        }
        progress_until([&] { return ends[4].count > 0; });
        for (auto &end : ends) {
            EXPECT_EQ(1u, end.count);
            EXPECT_EQ(UCS_ERR_CANCELED, end.status);
        }
        flush();
        EXPECT_EQ(status == UCS_INPROGRESS, flushed.count);
        EXPECT_EQ(!by_flush, m_dcx->errors.size());
        destroy_ep(ep);
    }
}

/* All kinds of messages to a live peer, and to one that dies: messages to the
 * live one arrive once and in order, and its rendezvous succeed. */
TEST_P(dcx_match_shared, dead_beside_live)
{
    constexpr unsigned rounds = 15, count = 20;
    std::list<dcx_end> good;
    dcx_end none; /* copied messages have no completion */
    uint64_t sent  = 0;
    auto send_good = [&](tag_kind kind, uct_ep_h ep, uct_tag_t tag) {
        if (kind >= ZCOPY) {
            good.emplace_back();
        }
        this->send(kind, ep, tag, (kind < ZCOPY) ? none : good.back());
    };

    for (unsigned round = 0; round < rounds; round++) {
        std::vector<dcx_end> asked(3), bad(NUM_KINDS);
        std::list<dcx_tag_recv> recvs;
        uct_ep_h dead;

        SCOPED_TRACE(round);
        m_dcx->errors.clear();
        dead = make_dying_ep(asked);
        for (unsigned i = 0; i < count; i++) {
            recvs.emplace_back(m_live_b.loop, 1000);
            EXPECT_EQ(UCS_OK, recvs.back().post(i));
        }
        dcx_wait_told(m_live_b.loop);
        for (unsigned i = 0; i < count; i++, sent++) {
            send_good((tag_kind)(sent % 3), m_a, sent);
            if ((i >= round) && (i - round < NUM_KINDS) &&
                m_dcx->errors.empty()) {
                tag_kind kind = (tag_kind)(i % NUM_KINDS);

                /* it may fail at any time */
                post([&] {
                    ucs_status_t status = m_source.send(kind, dead, 1,
                                                        bad[i - round]);

                    return m_dcx->errors.empty() ? status : UCS_OK;
                });
            }
            send_good((tag_kind)(i % 4), m_b, i);
        }
        if (m_dcx->errors.empty()) {
            check_until_failed(dead);
        }
        progress_until([&] {
            for (auto &recv : recvs) {
                if (!recv.has_ended()) {
                    return false;
                }
            }
            return m_note_a.tags.size() == sent;
        });
        flush();
        for (auto &recv : recvs) {
            EXPECT_EQ(UCS_OK, recv.status);
        }
        for (auto &end : asked) {
            EXPECT_EQ(1u, end.count);
            EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, end.status);
        }
        for (auto &end : bad) {
            EXPECT_LE(end.count, 1u);
            EXPECT_NE(UCS_OK, end.status);
        }
        EXPECT_EQ(1u, m_dcx->errors.size());
        destroy_ep(dead);
    }
    for (auto &end : good) {
        progress_until([&] { return end.count > 0; });
        EXPECT_EQ(UCS_OK, end.status);
    }
    EXPECT_EQ(numbers(sent), m_note_a.tags);
}

/* Pending requests for tagged and active messages alternate: none overtakes
 * another. */
TEST_P(dcx_match_shared, one_line_for_both_kinds)
{
    std::list<dcx_pending_call> line;
    std::vector<uint64_t> got;
    unsigned waited = 0;
    ucs_status_t status;
    dcx_end end;

    m_live_b.loop.on_eager = [&](void *, size_t, unsigned, uct_tag_t tag,
                                 uint64_t) {
        EXPECT_EQ(got.size(), m_live_b.headers.size());
        got.push_back(tag);
        return UCS_OK;
    };
    for (uint64_t i = 0; i < 300; i++) {
        auto call = [=, this, &end] {
            return (i % 2) ? uct_ep_am_short(m_b, 6, i / 2, NULL, 0) :
                             m_source.send(SHORT, m_b, i / 2, end);
        };

        line.emplace_back(call);
        do {
            status = uct_ep_pending_add(m_b, &line.back().req, 0);
            waited += (status == UCS_OK);
        } while ((status != UCS_OK) && (call() == UCS_ERR_NO_RESOURCE));
        if (i % 2) {
            send(SHORT, m_a, i, end);
        }
    }
    EXPECT_NE(0u, waited);
    progress_until([&] { return m_live_b.headers.size() == 150; });
    EXPECT_EQ(numbers(150), got);
    EXPECT_EQ(numbers(150), m_live_b.headers);
}

INSTANTIATE_TEST_SUITE_P(any, dcx_match_shared,
                         testing::Values("dcs", "dcs_quota", "rand", "hw_dcs"),
                         dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(late, dcx_match_shared, testing::Values("dcs", "rand"),
                         dcx_policy_name);

/* --- killed processes ----------------------------------------------------- */

constexpr uint64_t TICK_US = 20000; /* UCX_DCX_FC_RESEND_TIMEOUT in main() */

/* A child process that exchanges strings of up to 255 bytes with its parent.
 * Start it before the test opens the device. */
class tag_child {
public:
    explicit tag_child(const std::function<void(tag_child &)> &body)
    {
        int down[2], up[2];

        HCA_CHECK_CALL((pipe(down) == 0) && (pipe(up) == 0));
        HCA_CHECK_CALL((pid = fork()) >= 0);
        m_in  = (pid == 0) ? down[0] : up[0];
        m_out = (pid == 0) ? up[1] : down[1];
        close((pid == 0) ? down[1] : up[1]);
        close((pid == 0) ? up[0] : down[0]);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            body(*this);
            _exit(0);
        }
    }

    ~tag_child()
    {
        kill();
        close(m_in);
        close(m_out);
    }

    tag_child(const tag_child &) = delete;

    void kill()
    {
        if (pid > 0) {
            ::kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            pid = -1;
        }
    }

    void say(const std::vector<uint8_t> &bytes)
    {
        uint8_t length = bytes.size();

        HCA_CHECK_CALL(write(m_out, &length, 1) == 1);
        HCA_CHECK_CALL(write(m_out, bytes.data(), length) == length);
    }

    std::vector<uint8_t> hear()
    {
        uint8_t length;

        HCA_CHECK_CALL(read(m_in, &length, 1) == 1);
        std::vector<uint8_t> bytes(length);
        HCA_CHECK_CALL((length == 0) ||
                       (read(m_in, bytes.data(), length) == length));
        return bytes;
    }

    void say_addr(const dcx_loop &loop)
    {
        say(loop.dev_addr());
        say(loop.iface_addr());
    }

    uct_ep_h hear_addr(dcx_loop &loop)
    {
        auto dev_addr = hear(), iface_addr = hear();
        uct_ep_h ep;

        UCT_CALL(loop.create_ep(dev_addr, iface_addr, 0, &ep));
        return ep;
    }

    pid_t pid;

private:
    int m_in, m_out;
};

/* Parameter: 1 if the device is very late */
class dcx_match_killed : public testing::TestWithParam<int> {
protected:
    static constexpr size_t LENGTH = 1 << 20;

    /* Starts a child that opens an interface and runs @body, then opens an
     * interface with an endpoint to the child. */
    void open(const std::function<void(tag_child &, dcx_loop &)> &body)
    {
        m_child = std::make_unique<tag_child>([=](tag_child &child) {
            dcx_loop loop;

            loop.survives_errors = true;
            child.say_addr(loop);
            body(child, loop);
            for (;;) {
                pause();
            }
        });
        m_dcx   = std::make_unique<dcx_loop>();
        m_dcx->survives_errors = true;
        m_ep                   = m_child->hear_addr(*m_dcx);
    }

    ~dcx_match_killed()
    {
        if (m_ep != NULL) {
            uct_ep_destroy(m_ep);
        }
        m_source.reset();
    }

    template <typename F> void progress_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            uct_worker_progress(m_dcx->worker);
        }
    }

    static void post_and_wait(dcx_loop &loop, dcx_tag_recv &recv)
    {
        HCA_CHECK_CALL(recv.post(5) == UCS_OK);
        dcx_wait_told(loop);
    }

    void send_rndv(dcx_end &end)
    {
        m_source = std::make_unique<tag_source>(*m_dcx, (size_t)LENGTH);
        EXPECT_EQ(UCS_INPROGRESS, m_source->send(RNDV, m_ep, 5, end));
    }

    /* Checks the endpoint until it fails. */
    void expect_failure(dcx_end &end)
    {
        progress_until([&] {
            uct_ep_check(m_ep, 0, NULL);
            return !m_dcx->errors.empty();
        });
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, end.status);
    }

    /* Runs in the child: sends one rendezvous when the parent says so. */
    static void send_to_parent(tag_child &child, dcx_loop &loop)
    {
        uct_ep_h ep = child.hear_addr(loop);
        tag_source source(loop, (size_t)LENGTH);
        dcx_end end;

        child.hear();
        source.send(RNDV, ep, 5, end);
        for (;;) {
            uct_worker_progress(loop.worker);
        }
    }

    std::unique_ptr<tag_child> m_child;
    std::unique_ptr<dcx_loop> m_dcx;
    std::unique_ptr<tag_source> m_source;
    uct_ep_h m_ep = NULL;
};

/* The receiver has not read the request. */
TEST_P(dcx_match_killed, receiver_with_a_request)
{
    dcx_end end;

    open([](tag_child &, dcx_loop &) {});
    send_rndv(end);
    m_dcx->flush();
    m_child->kill();
    EXPECT_EQ(0u, end.count);
    expect_failure(end);
}

/* The request has matched. A late device is killed before it has fetched the
 * data, others have fetched it at once; the rendezvous ends in both cases. */
TEST_P(dcx_match_killed, receiver_that_has_matched)
{
    dcx_end end;

    open([](tag_child &child, dcx_loop &loop) {
        static dcx_tag_recv recv(loop, LENGTH);

        post_and_wait(loop, recv);
        child.say({});
    });
    m_child->hear();
    send_rndv(end);
    m_dcx->flush();
    m_child->kill();
    if (GetParam()) {
        EXPECT_EQ(0u, end.count);
        expect_failure(end);
    } else { /* the device has executed all within the doorbell */
        progress_until([&] { return end.count > 0; });
        EXPECT_EQ(UCS_OK, end.status);
    }
}

/* Senders that are killed while the device reads from them. Needs a late
 * device: others read at once. On a busy machine also a late one may have read
 * before the child is killed; then the test starts again. */
class dcx_match_orphan : public dcx_match_killed {
protected:
    /* Starts a child whose rendezvous matches a receive. Returns false if its
     * data has arrived already. */
    bool begin(std::unique_ptr<dcx_tag_recv> &recv)
    {
        recv.reset();
        open(send_to_parent);
        recv = std::make_unique<dcx_tag_recv>(*m_dcx, (size_t)LENGTH);
        m_child->say_addr(*m_dcx);
        post_and_wait(*m_dcx, *recv);
        m_child->say({});
        progress_until([&] { return recv->num_consumed > 0; });
        return !recv->has_ended();
    }
};

/* The sender's memory disappears while the device reads it. */
TEST_P(dcx_match_orphan, sender)
{
    std::unique_ptr<dcx_tag_recv> recv;

    do {
        while (!begin(recv)) {
        }
        m_child->kill();
        progress_until([&] { return recv->has_ended(); });
    } while (recv->status == UCS_OK);
    EXPECT_EQ(1u, recv->num_completed);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, recv->status);
    EXPECT_EQ(5u, recv->tag);

    /* the entry of the list and the device still work */
    dcx_tag_recv next(*m_dcx, 100);
    tag_source source(*m_dcx);
    dcx_end end;

    EXPECT_EQ(UCS_OK, next.post(6));
    dcx_wait_told(*m_dcx);
    EXPECT_EQ(UCS_OK, source.send(SHORT, m_dcx->ep, 6, end));
    progress_until([&] { return next.has_ended(); });
    EXPECT_EQ(UCS_OK, next.status);
}

/* The user has canceled the receive before: it ends once. */
TEST_P(dcx_match_orphan, sender_of_a_canceled_receive)
{
    std::unique_ptr<dcx_tag_recv> recv;

    do {
        while (!begin(recv)) {
        }
        EXPECT_EQ(UCS_OK, recv->cancel(false));
        m_child->kill();
        progress_until([&] { return recv->has_ended(); });
    } while (recv->status == UCS_OK);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, recv->status);
    EXPECT_EQ(UCS_OK, recv->post(6)) << "the buffer is not free";
    EXPECT_EQ(UCS_OK, recv->cancel(true));
}

/* --- rendezvous that the receiver's device cannot fetch ------------------- */

/* Faults of main() hit the reads of some rendezvous. */
class dcx_match_lost : public dcx_tag_bench {
protected:
    /* Sends `count` rendezvous at once; returns the number that failed, and
     * checks that both sides say so. */
    unsigned send_all(unsigned count)
    {
        std::list<dcx_tag_recv> recvs;
        std::vector<dcx_end> ends(count);
        dcx_tag_mem mem(m_dcx, 5000, 3);
        unsigned num_failed = 0;

        for (unsigned i = 0; i < count; i++) {
            recvs.emplace_back(m_dcx, 5000);
            EXPECT_EQ(UCS_OK, recvs.back().post(i));
        }
        dcx_wait_told(m_dcx);
        for (unsigned i = 0; i < count; i++) {
            EXPECT_FALSE(UCS_PTR_IS_ERR(send_rndv(i, "header", mem, ends[i])));
        }
        for (auto &end : ends) {
            progress_until([&] { return end.count > 0; });
        }
        for (auto &recv : recvs) {
            progress_until([&] { return recv.has_ended(); });
            EXPECT_EQ(recv.status, ends[recv.tag].status);
            EXPECT_EQ(1u, ends[recv.tag].count);
            if (recv.status != UCS_OK) {
                EXPECT_EQ(UCS_ERR_CONNECTION_RESET, recv.status);
                num_failed++;
            }
        }
        m_dcx.flush();
        EXPECT_EQ(0u, m_dcx.errors.size()) << "the endpoint has failed";
        return num_failed;
    }
};

/* Two of the reads get a NAK, as for a wrong key. */
TEST_P(dcx_match_lost, some)
{
    EXPECT_EQ(2u, send_all(6));
    EXPECT_EQ(0u, send_all(6));
}

class dcx_match_all_lost : public dcx_match_lost {};

/* No read is answered: all rendezvous fail. */
TEST_P(dcx_match_all_lost, all)
{
    EXPECT_EQ(32u, send_all(32));
}

/* A sender that waits for long asks the receiver about its rendezvous. */
class dcx_match_asked : public dcx_match_killed {
protected:
    /* Waits for the next question, which takes a credit. Returns the time
     * before it was sent. */
    uint64_t wait_question()
    {
        const unsigned credits = dcx_peek_credits(m_ep);
        dcx_deadline deadline;
        uint64_t before;

        do {
            deadline.check("a question");
            before = time_now_us();
            uct_worker_progress(m_dcx->worker);
        } while (dcx_peek_credits(m_ep) == credits);
        return before;
    }
};

/* The receiver dies with a request, and the user does not check the
 * endpoint. */
TEST_P(dcx_match_asked, dead_receiver)
{
    dcx_end end;

    open([](tag_child &, dcx_loop &) {});
    send_rndv(end);
    m_dcx->flush();
    m_child->kill();
    progress_until([&] { return end.count > 0; });
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, end.status);
}

/* The receiver's user is late: questions do no harm, and their intervals grow
 * (ticks 2, 4 and 8). */
TEST_P(dcx_match_asked, late_receiver)
{
    dcx_end end;

    open([](tag_child &child, dcx_loop &loop) {
        unsigned num_requests = 0;
        dcx_deadline deadline;

        loop.on_rndv = [&](uct_tag_t, const void *, unsigned, uint64_t, size_t,
                           const void *) {
            num_requests++;
            return UCS_OK;
        };
        while (num_requests == 0) {
            deadline.check("the request");
            uct_worker_progress(loop.worker);
        }
        child.say({});
        for (;;) {
            uct_worker_progress(loop.worker);
        }
    });
    send_rndv(end);
    m_child->hear();
    wait_question();
    uint64_t second = wait_question();
    wait_question();
    EXPECT_LE(3 * TICK_US, time_now_us() - second);
    EXPECT_EQ(0u, end.count);
    EXPECT_EQ(0u, m_dcx->errors.size());
    uct_ep_destroy(m_ep);
    m_ep = NULL;
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
}

INSTANTIATE_TEST_SUITE_P(refused, dcx_match_lost, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(not_answered, dcx_match_all_lost, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(asked, dcx_match_asked, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(any, dcx_match_killed, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(very_late, dcx_match_killed, testing::Values(1));
INSTANTIATE_TEST_SUITE_P(very_late, dcx_match_orphan, testing::Values(1));

} // namespace

int main(int argc, char **argv)
{
    auto env = dcx_shared_env();

    env.push_back({"UCX_DCX_TM_ENABLE", "y"});
    env.push_back({"UCX_LOG_LEVEL", "fatal"}); /* deaths of peers are logged */
    auto late = env, very_late = env, asked = env;

    late.push_back({"SOFTHCA_DELAY", "50"});
    very_late.push_back({"SOFTHCA_DELAY", "50000"});
    asked.push_back({"UCX_DCX_FC_RESEND_TIMEOUT", "20ms"});
    asked.push_back({"UCX_DCX_FC_INITIAL", "8"}); /* for all questions */
    auto refused = asked, not_answered = asked;

    refused.push_back({"SOFTHCA_FAULT", "nak_access:op=read:nth=3:count=2"});
    not_answered.push_back({"SOFTHCA_FAULT", "drop:op=read:count=300"});
    not_answered.push_back({"UCX_DCX_TIMEOUT", "5ms"});
    return hca_test_main(argc, argv,
                         {{"any", env},
                          {"late", late},
                          {"very_late", very_late},
                          {"asked", asked},
                          {"refused", refused},
                          {"not_answered", not_answered}});
}
