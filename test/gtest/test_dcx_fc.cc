/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control on the device: credits, requests and grants, while the receiver
 * makes no progress, or peers die. Senders do not retry when the receiver has
 * no buffer (RNR_RETRY_COUNT=0, see main()), so that one message too many is an
 * error of its endpoint.
 */
#include "dcx_end.h"
#include "dcx_loop.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <random>

namespace {

const uint8_t am_id = 6;

/* An endpoint that sends numbered messages, by pending requests if needed */
class dcx_sender {
public:
    dcx_sender(dcx_loop &from, dcx_loop &to, uint32_t id) :
        m_ep(from.make_ep(to)), m_id(id)
    {
        m_req.sender   = this;
        m_req.uct.func = resume;
    }

    ~dcx_sender()
    {
        uct_ep_pending_purge(m_ep, NULL, NULL);
        uct_ep_destroy(m_ep);
    }

    dcx_sender(const dcx_sender &) = delete;

    ucs_status_t send()
    {
        ucs_status_t status;

        status = uct_ep_am_short(m_ep, am_id, ((uint64_t)m_id << 32) | sent,
                                 NULL, 0);
        if (status == UCS_OK) {
            sent++;
        }
        return status;
    }

    /* Sends until a message is refused. */
    void send_all()
    {
        ucs_status_t status;

        while ((status = send()) == UCS_OK) {
        }
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
    }

    /* Sends until it has sent `count` messages in all, by pending requests if
     * needed. */
    void send_in_line(uint32_t count)
    {
        m_goal = count;
        while (!m_in_line && (sent < m_goal)) {
            if (send() != UCS_OK) {
                m_in_line = (uct_ep_pending_add(m_ep, &m_req.uct, 0) == UCS_OK);
            }
        }
    }

    uct_ep_h ep() const { return m_ep; }

    uint32_t sent = 0;

private:
    struct request {
        uct_pending_req_t uct;
        dcx_sender *sender;
    };

    static ucs_status_t resume(uct_pending_req_t *req)
    {
        dcx_sender *self    = ((request *)req)->sender;
        ucs_status_t status = self->send();

        if (status != UCS_OK) {
            return status;
        }
        if (self->sent < self->m_goal) {
            return UCS_INPROGRESS; /* called again later */
        }
        self->m_in_line = false;
        return UCS_OK;
    }

    uct_ep_h m_ep;
    uint32_t m_id, m_goal = 0;
    bool m_in_line = false;
    request m_req;
};

/* Two interfaces, each of which checks the order of its messages by sender */
class dcx_fc : public testing::Test {
protected:
    dcx_fc()
    {
        m_a->survives_errors = true;
        m_b->survives_errors = true;
        listen(*m_a);
        listen(*m_b);
    }

    ~dcx_fc() { m_senders.clear(); }

    void listen(dcx_loop &loop)
    {
        UCT_CALL(
            uct_iface_set_am_handler(loop.iface, am_id, received, this, 0));
    }

    static ucs_status_t received(void *arg, void *data, size_t, unsigned)
    {
        dcx_fc *self   = (dcx_fc *)arg;
        uint64_t value = *(uint64_t *)data;

        EXPECT_EQ(self->m_got[value >> 32]++, (uint32_t)value)
            << "out of order";
        self->m_total++;
        return UCS_OK;
    }

    dcx_sender &add(dcx_loop &from, dcx_loop &to)
    {
        m_senders.emplace_back(from, to, m_num_senders++);
        return m_senders.back();
    }

    /* Makes progress until `done`, which must become true. */
    void progress_until(const std::function<bool()> &done)
    {
        dcx_deadline deadline;

        while (!done()) {
            ASSERT_FALSE(deadline.is_over());
            uct_worker_progress(m_a->worker);
            if (m_b) {
                uct_worker_progress(m_b->worker);
            }
        }
    }

    /* Waits until all messages have been received; checks that none failed. */
    void drain()
    {
        progress_until([&] { return m_total == total_sent(); });
        EXPECT_EQ(0u, m_a->errors.size()) << "a message met no buffer";
        EXPECT_EQ(0u, m_b->errors.size());
    }

    unsigned total_sent() const
    {
        unsigned total = 0;

        for (const auto &sender : m_senders) {
            total += sender.sent;
        }
        return total;
    }

    /* Replaces m_a by a new interface. Messages and requests of the old one are
     * still in the receiver's queue; senders are numbered from 100 on. */
    void replace_a()
    {
        m_a->flush();
        m_senders.clear();
        m_a = std::make_unique<dcx_loop>();
        listen(*m_a);
        m_got.clear();
        m_total       = 0;
        m_num_senders = 100;
    }

    std::unique_ptr<dcx_loop> m_a = std::make_unique<dcx_loop>();
    std::unique_ptr<dcx_loop> m_b = std::make_unique<dcx_loop>();
    std::list<dcx_sender> m_senders;
    std::map<uint32_t, uint32_t> m_got;
    uint32_t m_num_senders = 0;
    unsigned m_total       = 0;
};

/* Runs on InfiniBand, on RoCE, and with one initiator: see main() */
class dcx_fc_p : public dcx_fc, public testing::WithParamInterface<int> {};

TEST_P(dcx_fc_p, receiver_stands_still)
{
    dcx_sender &sender = add(*m_a, *m_b);
    unsigned begin     = dcx_peek_credits(sender.ep());

    EXPECT_EQ(2u, begin) << "FC_INITIAL";
    sender.send_all();
    EXPECT_EQ(begin, sender.sent);
    sender.send_in_line(1000);
    for (unsigned i = 0; i < 100; i++) {
        uct_worker_progress(m_a->worker);
    }
    EXPECT_EQ(begin, sender.sent) << "sent without a grant";
    progress_until([&] { return sender.sent == 1000; });
    drain();
    EXPECT_EQ(1000u, m_total);
}

/* Three fifths of 64 buffers are enough for 8 endpoints, each with 2 credits, a
 * request and a grant. Senders always send, the receiver seldom makes
 * progress. */
TEST_P(dcx_fc_p, many_endpoints)
{
    const unsigned count = 8, goal = 600;
    std::mt19937 random(7);

    for (unsigned i = 0; i < count; i++) {
        add(*m_a, *m_b);
    }

    dcx_deadline deadline;
    while (total_sent() < count * goal) {
        deadline.check("the last message");
        for (auto &sender : m_senders) {
            if ((random() % 3 == 0) && (sender.sent < goal)) {
                sender.send();
            }
        }
        uct_worker_progress(m_a->worker);
        if (random() % 50 == 0) {
            uct_worker_progress(m_b->worker);
        }
    }
    drain();
}

/* More endpoints than the buffers are enough for, with pending requests. All
 * messages arrive: endpoints that have credits and do not send leave some to
 * the others. */
TEST_P(dcx_fc_p, crowd)
{
    const unsigned count = 30;

    for (unsigned i = 0; i < count; i++) {
        dcx_sender &sender = add(*m_a, *m_b);

        sender.send_in_line(100);
        progress_until([&] { return sender.sent == 100; });
    }
    for (auto &sender : m_senders) {
        sender.send_in_line(200);
    }
    progress_until([&] { return total_sent() == 200 * count; });
    drain();
}

/* Both sides send: requests and grants use the same initiators as messages that
 * wait for them. */
TEST_P(dcx_fc_p, both_ways)
{
    for (unsigned i = 0; i < 4; i++) {
        add(*m_a, *m_b);
        add(*m_b, *m_a);
    }
    for (auto &sender : m_senders) {
        sender.send_in_line(500);
    }
    progress_until([&] { return total_sent() == 8 * 500; });
    drain();
}

TEST_P(dcx_fc_p, to_itself)
{
    add(*m_a, *m_a).send_in_line(1000);
    progress_until([&] { return total_sent() == 1000; });
    drain();
}

/* An endpoint is destroyed before its request is answered. The next one gets
 * its entry in the table, but not its credits. */
TEST_P(dcx_fc_p, destroyed_with_a_request)
{
    unsigned gone, begin;

    add(*m_a, *m_b).send_all();
    m_a->flush();
    gone = total_sent();
    m_senders.clear();

    dcx_sender &sender = add(*m_a, *m_b);
    begin              = dcx_peek_credits(sender.ep());
    sender.send_all();
    EXPECT_EQ(begin, sender.sent);
    progress_until([&] { return dcx_peek_credits(sender.ep()) > 0; });
    EXPECT_LE(dcx_peek_credits(sender.ep()), 8u) << "FC_WINDOW";
    progress_until([&] { return m_total == gone + begin; });
    sender.send_in_line(100);
    progress_until([&] { return m_total == gone + 100; });
    EXPECT_EQ(0u, m_a->errors.size());
}

/* The receiver of a grant is gone when the grant is sent. */
TEST_P(dcx_fc_p, requester_dies)
{
    for (unsigned i = 0; i < 4; i++) {
        add(*m_a, *m_b).send_all();
    }
    replace_a();

    dcx_sender &sender = add(*m_a, *m_b);
    sender.send_in_line(100);
    progress_until([&] { return m_got[100] == 100; });
    progress_until(
        [&] { return uct_iface_flush(m_b->iface, 0, NULL) == UCS_OK; });
    EXPECT_EQ(0u, m_b->errors.size()) << "an endpoint of the user failed";
}

/* A flush does not wait for a grant to a peer that is gone, which the device
 * retries for long. */
TEST_P(dcx_fc_p, flush_leaves_grants)
{
    unsigned sent;

    setenv("UCX_DCX_TIMEOUT", "1s", 1);
    m_b = std::make_unique<dcx_loop>();
    setenv("UCX_DCX_TIMEOUT", "1ms", 1);
    listen(*m_b);
    add(*m_a, *m_b).send_all();
    m_a->flush();
    sent = total_sent();
    m_senders.clear();
    m_a = std::make_unique<dcx_loop>();
    progress_until([&] { return m_total == sent; });

    dcx_deadline deadline;
    while (uct_worker_progress(m_b->worker) > 0) { /* receives the request */
        deadline.check("an idle receiver");
    }
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_b->iface, 0, NULL));
}

/* The receiver is closed before it answers the request. No message is
 * outstanding that would fail: probes and repeated requests find out. */
TEST_P(dcx_fc_p, receiver_dies)
{
    dcx_sender &sender = add(*m_a, *m_b);

    sender.send_all();
    m_a->flush();
    sender.send_in_line(100);
    m_b.reset();
    progress_until([&] { return !m_a->errors.empty(); });
    EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_ENDPOINT_TIMEOUT}, m_a->errors);
}

/* Progress of the interface, without the worker's, is enough for requests and
 * grants. */
TEST_P(dcx_fc_p, progress_of_the_interface)
{
    const unsigned count = 40;
    dcx_deadline deadline;

    for (unsigned i = 0; i < count; i++) {
        dcx_sender &sender = add(*m_a, *m_b);

        sender.send_in_line(100);
        while (sender.sent < 100) {
            deadline.check("the last message");
            uct_iface_progress(m_a->iface);
            uct_iface_progress(m_b->iface);
        }
    }
    drain();
}

/* A flush waits for pending requests, though they are not posted. */
TEST_P(dcx_fc_p, flush)
{
    dcx_sender &sender = add(*m_a, *m_b);

    sender.send_all();
    m_a->flush();
    sender.send_in_line(100);
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_a->iface, 0, NULL));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_flush(sender.ep(), 0, NULL));
    progress_until([&] { return sender.sent == 100; });
    m_a->flush();
    drain();
}

/* The receiver has no memory for an answer: the request is sent again, after
 * some ticks that only probe the receiver. */
TEST_P(dcx_fc_p, request_is_repeated)
{
    dcx_sender &sender = add(*m_a, *m_b);

    dcx_peek_set_max_answers(m_b->iface, 0);
    sender.send_all();
    sender.send_in_line(20);
    progress_until([&] { return m_total == total_sent(); });
    while (uct_worker_progress(m_b->worker) > 0) { /* receives the request */
    }
    dcx_peek_set_max_answers(m_b->iface, 16);
    progress_until([&] { return sender.sent == 20; });
    drain();
}

/* The receiver makes no progress until the request has been sent again, and
 * answers both: the sender drops the second grant. */
TEST_P(dcx_fc_p, two_grants)
{
    dcx_sender &sender = add(*m_a, *m_b);
    dcx_deadline deadline;

    sender.send_all();
    while (dcx_peek_reminders(sender.ep()) < 9) {
        ASSERT_FALSE(deadline.is_over());
        uct_worker_progress(m_a->worker);
    }
    m_a->flush();
    while (uct_worker_progress(m_b->worker) > 0) { /* receives both */
    }
    progress_until([&] { return dcx_peek_credits(sender.ep()) > 0; });
    for (unsigned i = 0; i < 100; i++) {
        uct_worker_progress(m_a->worker);
    }
    EXPECT_GE(8u, dcx_peek_credits(sender.ep())) << "FC_WINDOW";
    sender.send_in_line(100);
    progress_until([&] { return sender.sent == 100; });
    drain();
}

/* Each grant has an effect, even with a window of one message. */
TEST_P(dcx_fc_p, one_credit)
{
    setenv("UCX_DCX_FC_WINDOW", "1", 1);
    setenv("UCX_DCX_FC_INITIAL", "1", 1);
    m_b = std::make_unique<dcx_loop>();
    setenv("UCX_DCX_FC_WINDOW", "8", 1);
    setenv("UCX_DCX_FC_INITIAL", "2", 1);
    listen(*m_b);
    dcx_sender &sender = add(*m_a, *m_b);

    for (uint32_t count = 1; count <= 10; count++) {
        sender.send_all();
        EXPECT_EQ(count, sender.sent);
        progress_until([&] { return dcx_peek_num_blocked(m_a->iface) == 0; });
    }
    drain();
}

/* More endpoints than can request credits at a time: the others do not wait for
 * grants, and the device retries if the receiver has no buffer. */
TEST_P(dcx_fc_p, more_endpoints_than_may_request)
{
    const unsigned count = 10;

    setenv("UCX_DCX_RNR_RETRY_COUNT", "7", 1);
    m_a = std::make_unique<dcx_loop>();
    setenv("UCX_DCX_RNR_RETRY_COUNT", "0", 1);
    dcx_peek_set_max_fc_entries(m_a->iface, 4);
    for (unsigned i = 0; i < count; i++) {
        add(*m_a, *m_b).send_in_line(100);
    }
    EXPECT_GE(4u, dcx_peek_num_blocked(m_a->iface));
    progress_until([&] { return total_sent() == count * 100; });
    drain();
    m_a->flush();
    m_senders.clear();
    EXPECT_EQ(0u, dcx_peek_num_blocked(m_a->iface));
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_fc_p, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_fc_p, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(one_dci, dcx_fc_p, testing::Values(0));

/* --- one initiator -------------------------------------------------------- */

class dcx_fc_one : public dcx_fc, public testing::WithParamInterface<int> {
protected:
    /* Makes progress of m_a and @other until `done`, but not of m_b. */
    void progress_a_until(const std::function<bool()> &done, dcx_loop &other)
    {
        dcx_deadline deadline;

        while (!done()) {
            ASSERT_FALSE(deadline.is_over());
            uct_worker_progress(m_a->worker);
            uct_worker_progress(other.worker);
        }
    }
};

/* An endpoint with a pending put is blocked by a message without a credit. It
 * does not keep the only initiator from others. */
TEST_P(dcx_fc_one, blocked_endpoint_releases_its_initiator)
{
    /* no repeated request, which would use the initiator for a moment */
    setenv("UCX_DCX_FC_RESEND_TIMEOUT", "3600s", 1);
    replace_a();
    setenv("UCX_DCX_FC_RESEND_TIMEOUT", "20ms", 1);

    dcx_sender &sender = add(*m_a, *m_b);
    dcx_sender &other  = add(*m_a, *m_b);
    uct_pending_req_t req;

    sender.send_all();
    progress_until([&] { return dcx_peek_credits(sender.ep()) > 0; });
    for (unsigned n = dcx_peek_credits(sender.ep()); n > 0; n--) {
        EXPECT_EQ(UCS_OK, sender.send());
    }
    EXPECT_EQ(0u, dcx_peek_num_blocked(m_a->iface))
        << "blocked before a message was refused";

    /* without progress of the receiver no grant arrives from here on */
    dcx_deadline deadline;
    while (dcx_peek_place(sender.ep()) != 0xffff) {
        deadline.check("an endpoint without an initiator");
        uct_worker_progress(m_a->worker);
    }
    EXPECT_EQ(UCS_OK, other.send());
    req.func = [](uct_pending_req_t *) { return UCS_ERR_NO_RESOURCE; };
    EXPECT_EQ(UCS_OK, uct_ep_pending_add(sender.ep(), &req, 0));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, sender.send());
    EXPECT_EQ(1u, dcx_peek_num_blocked(m_a->iface));
    while (dcx_peek_place(other.ep()) != 0xffff) {
        deadline.check("an endpoint without an initiator");
        uct_worker_progress(m_a->worker);
    }
    uct_worker_progress(m_a->worker);
    EXPECT_EQ(0xffffu, dcx_peek_place(sender.ep()));
    EXPECT_EQ(UCS_OK, other.send());
    uct_ep_pending_purge(sender.ep(), NULL, NULL);
    drain();
}

/* Requests of endpoints to a peer without progress are repeated; each
 * repetition uses the initiator. Other endpoints still get their turn, here one
 * with a dead peer. */
TEST_P(dcx_fc_one, repeated_requests_let_others_send)
{
    auto c = std::make_unique<dcx_loop>();

    add(*m_a, *c).send_all();
    add(*m_a, *m_b).send_all();
    m_a->flush();
    c.reset();
    progress_a_until([&] { return !m_a->errors.empty(); }, *m_a);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, m_a->errors[0]);
}

/* The last credit is used, and the next message is tried in the callback of the
 * last operation: the endpoint releases its initiator there. */
TEST_P(dcx_fc_one, blocked_in_a_callback)
{
    setenv("UCX_DCX_FC_THRESH", "0.5", 1);
    replace_a();
    unsetenv("UCX_DCX_FC_THRESH");

    dcx_sender &sender = add(*m_a, *m_b);
    uct_iov_t iov      = {m_a->mem.data(), 64, m_a->memh, 0, 1};
    dcx_end end([&] { EXPECT_EQ(UCS_ERR_NO_RESOURCE, sender.send()); });

    sender.send_all();
    progress_until([&] { return dcx_peek_credits(sender.ep()) > 0; });
    do { /* one of them requests credits, and uses the reserved one */
        ASSERT_EQ(UCS_OK, sender.send());
        m_a->flush();
    } while (dcx_peek_credits(sender.ep()) > 0);
    EXPECT_EQ(0u, dcx_peek_num_blocked(m_a->iface));
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_put_zcopy(sender.ep(), &iov, 1, (uintptr_t)m_b->mem.data(),
                               dcx_peek_rkey(m_b->memh), &end.comp));
    m_a->flush();
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(1u, dcx_peek_num_blocked(m_a->iface));
    sender.send_in_line(100);
    progress_until([&] { return sender.sent == 100; });
    drain();
}

INSTANTIATE_TEST_SUITE_P(one_dci, dcx_fc_one, testing::Values(0));

/* --- fifty endpoints ------------------------------------------------------ */

/* Fifty endpoints with default windows and queues: see main() */
class dcx_fc_fifty : public dcx_fc, public testing::WithParamInterface<int> {
protected:
    static constexpr unsigned count = 50;

    /* Uses all credits of the sender, and gets the maximum grant. */
    void fill(dcx_sender &sender)
    {
        progress_a_until([&] {
            while (sender.send() == UCS_OK) {
            }
            return dcx_peek_num_blocked(m_a->iface) == 1;
        });
        progress_until([&] { return dcx_peek_num_blocked(m_a->iface) == 0; });
    }

    /* Makes progress until `done`, without progress of m_b. */
    void progress_a_until(const std::function<bool()> &done)
    {
        dcx_deadline deadline;

        while (!done()) {
            ASSERT_FALSE(deadline.is_over());
            uct_worker_progress(m_a->worker);
        }
    }
};

/* The extra credits of an endpoint that ends are returned by the next endpoint
 * to the same target, also if endpoints to another target come between. */
TEST_P(dcx_fc_fifty, destroyed_endpoints_return_their_credits)
{
    for (unsigned i = 0; i < count; i++) {
        for (dcx_loop *to : {m_a.get(), m_b.get()}) {
            fill(add(*m_a, *to));
            EXPECT_EQ(214u, dcx_peek_credits(m_senders.back().ep())) << i;
        }
        drain();
        m_a->flush();
        m_senders.clear();
        m_got.clear();
        m_total = 0;
    }
}

/* Extra credits are also returned if the 16-bit number of the endpoint's
 * requests has wrapped around. */
TEST_P(dcx_fc_fifty, numbers_of_requests_wrap_around)
{
    fill(add(*m_a, *m_b));
    dcx_peek_set_request(m_senders.back().ep(), UINT16_MAX);
    fill(m_senders.back());
    drain();
    m_a->flush();
    m_senders.clear();
    fill(add(*m_a, *m_a)); /* takes another entry */
    fill(add(*m_a, *m_b));
    EXPECT_EQ(214u, dcx_peek_credits(m_senders.back().ep()));
}

/* Extra credits of idle endpoints are written off: all others get their
 * quota. */
TEST_P(dcx_fc_fifty, idle_endpoints_keep_no_extra_credits)
{
    const unsigned busy = 10, goal = 2500;

    for (unsigned i = 0; i < count; i++) {
        fill(add(*m_a, *m_b));
    }
    drain();
    EXPECT_EQ(10u, dcx_peek_credits(m_senders.back().ep()))
        << "the bank is not empty";
    auto last = std::prev(m_senders.end(), busy);

    for (auto sender = last; sender != m_senders.end(); ++sender) {
        sender->send_in_line(goal);
    }
    progress_until([&] {
        return std::all_of(
            last, m_senders.end(),
            [&](const dcx_sender &sender) { return sender.sent == goal; });
    });
    drain();
    for (auto sender = last; sender != m_senders.end(); ++sender) {
        fill(*sender);
        EXPECT_LE(25u, dcx_peek_credits(sender->ep()));
    }
    drain();
}

/* All endpoints have their maximum of credits and use them at once, with their
 * requests; then the receiver makes progress. A message without a buffer would
 * fail its endpoint: senders do not retry. */
TEST_P(dcx_fc_fifty, receiver_stands_still)
{
    for (unsigned i = 0; i < count; i++) {
        add(*m_a, *m_b);
    }
    for (unsigned round = 0; round < 5; round++) {
        unsigned sent;

        for (auto &sender : m_senders) {
            fill(sender);
        }
        drain();
        sent = total_sent();
        for (auto &sender : m_senders) {
            sender.send_in_line(sender.sent + 1000);
        }
        progress_a_until(
            [&] { return dcx_peek_num_blocked(m_a->iface) == count; });
        EXPECT_LT(count * (10 + 5), total_sent() - sent)
            << "too few extra credits for this test";
        progress_until([&] { return total_sent() == sent + count * 1000; });
        drain();
    }
}

/* One endpoint needs half of the receive queue. If several send, the bank is
 * nearly empty, and all of it is used. */
TEST_P(dcx_fc_fifty, use_the_whole_queue)
{
    fill(add(*m_a, *m_b));
    m_senders.back().send_in_line(2000);
    progress_until([&] { return total_sent() == 2000; });
    drain();
    EXPECT_EQ(512u, dcx_peek_rx_buffers(m_b->iface));

    for (unsigned i = 0; i < 10; i++) {
        fill(add(*m_a, *m_b));
    }
    drain();
    EXPECT_EQ(1024u, dcx_peek_rx_buffers(m_b->iface));
    m_senders.front().send_in_line(5000); /* each buffer is used */
    progress_until([&] { return m_senders.front().sent == 5000; });
    drain();
}

/* An endpoint to each peer is a reason, too, before the peers send anything.
 * They use their bases at once, with their requests. */
TEST_P(dcx_fc_fifty, endpoints_use_the_whole_queue)
{
    for (unsigned i = 0; i < count; i++) {
        add(*m_b, *m_a);
        if (i == 40) { /* the fixture has one, too */
            EXPECT_EQ(512u, dcx_peek_rx_buffers(m_b->iface));
        }
    }
    EXPECT_EQ(1024u, dcx_peek_rx_buffers(m_b->iface));

    for (unsigned i = 0; i < count; i++) {
        dcx_sender &sender = add(*m_a, *m_b);

        progress_a_until([&] {
            while (sender.send() == UCS_OK) {
            }
            return sender.sent == 10;
        });
    }
    drain();
}

INSTANTIATE_TEST_SUITE_P(fifty, dcx_fc_fifty, testing::Values(0));

/* --- answers that do not arrive ------------------------------------------- */

class dcx_fc_dead : public dcx_fc, public testing::WithParamInterface<int> {
protected:
    /* Opens interfaces, which send a request each, and closes them. */
    void ask_and_die(unsigned count)
    {
        for (unsigned i = 0; i < count; i++) {
            dcx_loop dead;
            dcx_sender sender(dead, *m_b, m_num_senders++);

            sender.send_all();
            dead.flush();
        }
    }

    /* Sends 1000 messages within @limit milliseconds. */
    void expect_sends(dcx_sender &sender, int limit)
    {
        uint64_t begin = time_now_us();

        sender.send_in_line(1000);
        progress_until([&] { return sender.sent == 1000; });
        EXPECT_LT(time_now_us() - begin, time_slow(limit) * 1000ull);
    }
};

/* Requests of interfaces that are gone: their grants are retried for seconds
 * each, but do not take all initiators, and are canceled. */
TEST_P(dcx_fc_dead, do_not_take_all_initiators)
{
    ask_and_die(16);
    expect_sends(add(*m_b, *m_a), TIME_GRANTS);
    expect_sends(add(*m_a, *m_b), TIME_RETRIES);
    EXPECT_EQ(0u, m_b->errors.size()) << "an endpoint of the user failed";
}

/* Grants to many endpoints of one closed interface fail together, not one after
 * the other. */
TEST_P(dcx_fc_dead, end_together)
{
    {
        dcx_loop dead;
        std::list<dcx_sender> senders;

        for (unsigned i = 0; i < 30; i++) {
            senders.emplace_back(dead, *m_b, m_num_senders++);
            senders.back().send_all();
            dead.flush();
        }
    }
    expect_sends(add(*m_a, *m_b), TIME_GRANTS);
}

INSTANTIATE_TEST_SUITE_P(dead, dcx_fc_dead, testing::Values(0));

/* A grant is lost several times, because the peer's device refuses it, or the
 * link is down for longer than the device retries: it is sent again, soon.
 * Requests are not repeated in these modes. */
class dcx_fc_refused : public dcx_fc,
                       public testing::WithParamInterface<int> {};

TEST_P(dcx_fc_refused, is_sent_again)
{
    dcx_sender &sender = add(*m_a, *m_b);
    uint64_t begin     = time_now_us();

    sender.send_in_line(100);
    progress_until([&] { return sender.sent == 100; });
    drain();
    EXPECT_LT(time_now_us() - begin, time_slow(TIME_GRANTS) * 1000ull);

    /* of FC_WINDOW, 2 are FC_INITIAL: a grant counts once */
    EXPECT_EQ(6u, dcx_peek_granted(m_b->iface));
}

INSTANTIATE_TEST_SUITE_P(refused, dcx_fc_refused, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(failed, dcx_fc_refused, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(refused_rand, dcx_fc_refused, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(unheard, dcx_fc_refused, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(unheard_rand, dcx_fc_refused, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(unheard_streams, dcx_fc_refused, testing::Values(0));

/* The peer refuses its grant ten times. Each refusal costs a reset of the
 * initiator, so that the grant is sent again in pauses: of 1 ms, 2 ms, ... 128
 * ms, 200 ms. Beside other work the last ones were seen to be shorter. */
class dcx_fc_refused_often : public dcx_fc,
                             public testing::WithParamInterface<int> {};

TEST_P(dcx_fc_refused_often, is_sent_again_in_pauses)
{
    dcx_sender &sender = add(*m_a, *m_b);
    uint64_t begin     = time_now_us();

    sender.send_in_line(100);
    progress_until([&] { return sender.sent == 100; });
    EXPECT_LE(255'000u, time_now_us() - begin);
    EXPECT_LT(time_now_us() - begin, time_slow(TIME_GRANTS) * 1000ull);
    drain();
}

INSTANTIATE_TEST_SUITE_P(refused_often, dcx_fc_refused_often,
                         testing::Values(0));

/* Grants for several endpoints of an interface are lost while the link is down:
 * all of them are sent again when it is up. No timer helps. */
class dcx_fc_link : public dcx_fc, public testing::WithParamInterface<int> {};

TEST_P(dcx_fc_link, comes_up_again)
{
    std::vector<dcx_sender *> senders;

    for (unsigned i = 0; i < 12; i++) {
        senders.push_back(&add(*m_a, *m_b));
    }
    for (auto sender : senders) {
        sender->send_in_line(100);
    }
    progress_until([&] { return total_sent() == 12 * 100; });
    drain();
    EXPECT_EQ(0u, m_a->errors.size());
    EXPECT_EQ(0u, m_b->errors.size());
}

INSTANTIATE_TEST_SUITE_P(link, dcx_fc_link, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(link_rand, dcx_fc_link, testing::Values(0));

/* --- two initiators ------------------------------------------------------- */

class dcx_fc_two : public dcx_fc, public testing::WithParamInterface<int> {
protected:
    /* A pending request that posts a put; its completion decrements
     * comp.count */
    struct put {
        static ucs_status_t post(uct_pending_req_t *req)
        {
            put *self = (put *)req;
            ucs_status_t status;
            uct_iov_t iov = {};

            iov.buffer = self->from->mem.data();
            iov.length = 64;
            iov.memh   = self->from->memh;
            iov.count  = 1;

            status = uct_ep_put_zcopy(
                self->ep, &iov, 1, (uintptr_t)self->to->mem.data(),
                dcx_peek_rkey(self->to->memh), &self->comp);
            return (status == UCS_INPROGRESS) ? UCS_OK : status;
        }

        uct_pending_req_t req = {};
        uct_completion_t comp = {};
        dcx_loop *from, *to;
        uct_ep_h ep;
    };

    put make_put(uct_ep_h ep)
    {
        put p;

        p.req.func   = put::post;
        p.comp.func  = [](uct_completion_t *) {};
        p.comp.count = 2; /* 1 at the end */
        p.from       = m_a.get();
        p.to         = m_b.get();
        p.ep         = ep;
        return p;
    }
};

/* A blocked endpoint with a pending request gets an initiator for its repeated
 * request, and its grant before that has completed. It must not get a second
 * initiator, whose operations it would not track. */
TEST_P(dcx_fc_two, repeated_request_needs_one_initiator)
{
    dcx_sender &sender = add(*m_a, *m_b);
    uct_ep_h eps[]     = {m_a->make_ep(*m_b), m_a->make_ep(*m_b),
                          m_a->make_ep(*m_b)};
    put first = make_put(eps[0]), second = make_put(eps[1]);
    put third = make_put(eps[2]), own = make_put(sender.ep());

    sender.send_all();
    progress_until([&] { return dcx_peek_credits(sender.ep()) > 0; });
    for (unsigned n = dcx_peek_credits(sender.ep()); n > 0; n--) {
        EXPECT_EQ(UCS_OK, sender.send());
    }

    dcx_deadline deadline;
    while (dcx_peek_place(sender.ep()) != 0xffff) {
        deadline.check("an endpoint without an initiator");
        uct_worker_progress(m_a->worker);
    }

    EXPECT_EQ(UCS_OK, put::post(&first.req));
    EXPECT_EQ(UCS_OK, put::post(&second.req));
    EXPECT_EQ(UCS_OK, uct_ep_pending_add(eps[2], &third.req, 0));
    EXPECT_EQ(UCS_OK, uct_ep_pending_add(sender.ep(), &own.req, 0));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, sender.send());

    /* the grant has arrived when the request is repeated */
    for (unsigned i = 0; i < 100; i++) {
        uct_worker_progress(m_b->worker);
    }
    dcx_peek_tick(m_a->iface);
    uct_ep_pending_purge(eps[2], NULL, NULL);
    while (own.comp.count == 2) {
        deadline.check("the end of the put");
        if (uct_ep_flush(sender.ep(), 0, NULL) == UCS_OK) {
            EXPECT_EQ(1, own.comp.count) << "flushed, but not complete";
            break;
        }
        uct_worker_progress(m_a->worker);
    }
    drain();
    EXPECT_EQ(1, own.comp.count);
    m_a->flush();
    for (auto ep : eps) {
        uct_ep_destroy(ep);
    }
}

INSTANTIATE_TEST_SUITE_P(two_dcis, dcx_fc_two, testing::Values(0));

/* --- RoCE ----------------------------------------------------------------- */

class dcx_fc_roce : public dcx_fc, public testing::WithParamInterface<int> {};

/* There is no route to the requester: the kernel's neighbour table is queried
 * once, not for each request. */
TEST_P(dcx_fc_roce, no_route_to_the_requester)
{
    const uint8_t nowhere[16] = {0xfe, 0x80, 0x77};
    unsigned asked;

    dcx_peek_count_neigh(m_b->iface, &asked);
    dcx_peek_set_origin_gid(m_a->iface, nowhere);
    for (unsigned i = 0; i < 10; i++) {
        add(*m_a, *m_b).send_all();
        m_a->flush();
    }
    progress_until([&] { return m_total == total_sent(); });

    dcx_deadline deadline;
    while (uct_worker_progress(m_b->worker) > 0) { /* receives the requests */
        deadline.check("an idle receiver");
    }
    EXPECT_EQ(1u, asked);
}

/* The route to a requester has failed: the next answer looks it up again, in
 * case it has changed. */
TEST_P(dcx_fc_roce, new_route_to_the_requester)
{
    unsigned asked;

    add(*m_a, *m_b).send_all();
    replace_a();
    dcx_peek_count_neigh(m_b->iface, &asked);
    add(*m_a, *m_b).send_in_line(UINT32_MAX);
    progress_until([&] { return asked > 0; });
}

INSTANTIATE_TEST_SUITE_P(roce, dcx_fc_roce, testing::Values(0));

/* --- without flow control ------------------------------------------------- */

class dcx_fc_off : public dcx_fc, public testing::WithParamInterface<int> {};

/* One message more than there are buffers fails: the tests above would see
 * it. */
TEST_P(dcx_fc_off, overruns)
{
    dcx_sender &sender = add(*m_a, *m_b);

    for (unsigned i = 0; i < 65; i++) {
        EXPECT_EQ(UCS_OK, sender.send());
    }
    progress_until([&] { return !m_a->errors.empty(); });
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, m_a->errors[0]);
}

/* A peer that does not use flow control is refused if this process does, and
 * vice versa. */
TEST_P(dcx_fc_off, both_or_none)
{
    auto addr = m_b->iface_addr();
    uct_ep_h ep;

    EXPECT_TRUE(m_a->is_reachable(m_b->dev_addr(), addr));
    addr[1] ^= 1;
    dcx_peek_seal_addr(addr.data());
    EXPECT_FALSE(m_a->is_reachable(m_b->dev_addr(), addr));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              m_a->create_ep(m_b->dev_addr(), addr, 0, &ep));
}

INSTANTIATE_TEST_SUITE_P(off, dcx_fc_off, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_RX_QUEUE_LEN", "64"},
        {"UCX_DCX_TX_QUEUE_LEN", "32"},
        {"UCX_DCX_FC_WINDOW", "8"},
        {"UCX_DCX_FC_INITIAL", "2"},
        {"UCX_DCX_FC_RESEND_TIMEOUT", "20ms"},
        {"UCX_DCX_SEG_SIZE", "512"},
        {"UCX_DCX_RNR_RETRY_COUNT", "0"},
        {"UCX_DCX_TIMEOUT", "1ms"},
        {"UCX_DCX_RETRY_COUNT", "2"},
        {"UCX_LOG_LEVEL", "fatal"},
    };
    auto roce = env, one_dci = env, two_dcis = env, off = env;
    std::vector<std::pair<const char *, const char *>> fifty = {
        {"UCX_DCX_SEG_SIZE", "512"},
        {"UCX_DCX_RNR_RETRY_COUNT", "0"},
        {"UCX_LOG_LEVEL", "fatal"},
    };

    auto refused                                            = env;
    std::vector<std::pair<const char *, const char *>> dead = {
        {"UCX_DCX_FC_INITIAL", "2"},
        {"UCX_DCX_SEG_SIZE", "512"},
        {"UCX_DCX_TX_QUEUE_LEN", "32"},
        {"UCX_LOG_LEVEL", "fatal"},
    };

    refused.push_back({"UCX_DCX_FC_RESEND_TIMEOUT", "3600s"});
    auto unheard = refused, failed = refused, refused_often = refused;
    refused.push_back({"SOFTHCA_FAULT", "nak_op:op=send:nth=4:count=6"});
    refused_often.push_back({"SOFTHCA_FAULT", "nak_op:op=send:nth=4:count=10"});
    failed.push_back({"SOFTHCA_FAULT", "nak_inval:op=send:nth=4:count=6"});
    unheard.push_back({"SOFTHCA_FAULT", "drop:op=send:nth=4:count=12"});

    auto refused_rand = refused, unheard_rand = unheard;
    auto unheard_streams = unheard;
    refused_rand.push_back({"UCX_DCX_TX_POLICY", "rand"});
    unheard_rand.push_back({"UCX_DCX_TX_POLICY", "rand"});
    unheard_streams.push_back({"UCX_DCX_TX_POLICY", "hw_dcs"});

    /* down for longer than the patience with a grant, but not for longer than
     * the retries of a request */
    auto link = dead;
    link.insert(link.end(),
                {{"UCX_DCX_FC_RESEND_TIMEOUT", "3600s"},
                 {"UCX_DCX_TIMEOUT", "100ms"},
                 {"SOFTHCA_FAULT", "port_down:op=send:nth=37:for=400ms"}});
    auto link_rand = link;
    link_rand.push_back({"UCX_DCX_TX_POLICY", "rand"});

    roce.push_back({"SOFTHCA_LINK", "roce"});
    one_dci.push_back({"UCX_DCX_NUM_DCI", "1"});
    two_dcis.insert(two_dcis.end(), {{"UCX_DCX_NUM_DCI", "2"},
                                     {"UCX_DCX_TX_MAX_POLL", "1"},
                                     {"UCX_DCX_RX_MAX_POLL", "1"}});
    off.push_back({"UCX_DCX_FC_ENABLE", "n"});
    return hca_test_main(argc, argv,
                         {{"ib", env},
                          {"roce", roce},
                          {"one_dci", one_dci},
                          {"two_dcis", two_dcis},
                          {"fifty", fifty},
                          {"dead", dead},
                          {"refused", refused},
                          {"refused_often", refused_often},
                          {"failed", failed},
                          {"refused_rand", refused_rand},
                          {"unheard", unheard},
                          {"unheard_rand", unheard_rand},
                          {"unheard_streams", unheard_streams},
                          {"link", link},
                          {"link_rand", link_rand},
                          {"off", off}});
}
