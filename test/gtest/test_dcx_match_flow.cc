/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Properties that tagged messages share with active ones: flow control, sleep,
 * and peers with other options. Then missing resources: memory, entries of the
 * tag list, and a command queue that has failed.
 */
#include "dcx_tag_source.h"
#include "devx_bench.h"

#include <list>
#include <map>
#include <memory>
#include <poll.h>

/* Makes memory pools of UCX fail to grow, by a function that replaces that of
 * libucs. */
static bool has_no_more_memory;

extern "C" ucs_status_t ucs_mpool_chunk_malloc(struct ucs_mpool *mp,
                                               size_t *size, void **chunk)
{
    static const auto next = (decltype(&ucs_mpool_chunk_malloc))dlsym(
        RTLD_NEXT, "ucs_mpool_chunk_malloc");

    return has_no_more_memory ? UCS_ERR_NO_MEMORY : next(mp, size, chunk);
}

namespace {

class dcx_match_base : public testing::TestWithParam<int> {
protected:
    /* Opens an interface with this value of an environment variable. */
    static std::unique_ptr<dcx_loop> open_with(const char *name,
                                               const char *value)
    {
        const char *before = getenv(name);
        std::string kept   = (before != NULL) ? before : "";

        setenv(name, value, 1);
        auto loop             = std::make_unique<dcx_loop>();
        loop->survives_errors = true;
        if (before != NULL) {
            setenv(name, kept.c_str(), 1);
        } else {
            unsetenv(name);
        }
        return loop;
    }

    template <typename F>
    static void progress_until(const std::vector<dcx_loop *> &loops, F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            for (dcx_loop *loop : loops) {
                uct_worker_progress(loop->worker);
            }
        }
    }

    ucx_log_reader m_log;
};

/* --- flow control --------------------------------------------------------- */

/* Senders do not retry when the receiver has no buffer: one message too many is
 * an error of its endpoint. */
class dcx_match_fc : public dcx_match_base {
protected:
    /* Values of `kind`: all kinds in turn, without and with active messages in
     * between */
    static constexpr int ALL = NUM_KINDS, WITH_AM = NUM_KINDS + 1;

    /* An endpoint that sends numbered messages, by pending requests if
     * needed */
    struct sender {
        sender(dcx_loop &from, dcx_loop &to, unsigned number, int what) :
            ep(from.make_ep(to)), source(from), id(number), kind(what)
        {
            end.comp.count = 1 << 30;
            req.self       = this;
            req.uct.func   = resume;
        }

        ~sender()
        {
            uct_ep_pending_purge(ep, NULL, NULL);
            uct_ep_destroy(ep);
        }

        ucs_status_t send()
        {
            unsigned pick    = (kind < NUM_KINDS) ? kind : sent % NUM_KINDS;
            tag_kind what    = (tag_kind)pick;
            uct_tag_t number = ((uint64_t)id << 32) | sent;
            ucs_status_t status;

            status = ((kind == WITH_AM) && (sent % 2)) ?
                         uct_ep_am_short(ep, 6, number, NULL, 0) :
                         source.send(what, ep, number, end);
            sent += !UCS_STATUS_IS_ERR(status);
            return UCS_STATUS_IS_ERR(status) ? status : UCS_OK;
        }

        void send_in_line(unsigned count)
        {
            goal = count;
            while ((sent < goal) && !is_in_line) {
                if (send() != UCS_OK) {
                    is_in_line = uct_ep_pending_add(ep, &req.uct, 0) == UCS_OK;
                }
            }
        }

        static ucs_status_t resume(uct_pending_req_t *req)
        {
            sender *self        = ((struct request *)req)->self;
            ucs_status_t status = self->send();

            if (status != UCS_OK) {
                return status;
            }
            self->is_in_line = self->sent < self->goal;
            return self->is_in_line ? UCS_INPROGRESS : UCS_OK;
        }

        struct request {
            uct_pending_req_t uct;
            sender *self;
        } req = {};
        uct_ep_h ep;
        tag_source source;
        unsigned id, sent = 0, goal = 0;
        int kind;
        bool is_in_line = false;
        dcx_end end;
    };

    dcx_match_fc()
    {
        m_a.survives_errors = true;
        m_b.survives_errors = true;
        m_b.on_eager        = [this](void *, size_t, unsigned, uct_tag_t tag,
                              uint64_t) {
            got(tag);
            return UCS_OK;
        };
        m_b.on_rndv = [this](uct_tag_t tag, const void *, unsigned, uint64_t,
                             size_t, const void *) {
            got(tag);
            return UCS_OK;
        };
        UCT_CALL(uct_iface_set_am_handler(m_b.iface, 6, got_am, this, 0));
    }

    ~dcx_match_fc()
    {
        m_senders.clear();
        EXPECT_EQ(std::vector<ucs_status_t>{}, m_a.errors)
            << "a message met no buffer";
        EXPECT_EQ(std::vector<ucs_status_t>{}, m_b.errors);
        EXPECT_EQ("", m_log.take());
    }

    static ucs_status_t got_am(void *arg, void *data, size_t, unsigned)
    {
        ((dcx_match_fc *)arg)->got(*(uint64_t *)data);
        return UCS_OK;
    }

    void got(uct_tag_t tag)
    {
        EXPECT_EQ(m_next[tag >> 32]++, (uint32_t)tag) << "out of order";
        m_total++;
    }

    sender &add(int kind)
    {
        m_senders.emplace_back(m_a, m_b, m_senders.size(), kind);
        return m_senders.back();
    }

    dcx_loop m_a, m_b;
    std::list<sender> m_senders;
    std::map<uint32_t, uint32_t> m_next;
    unsigned m_total = 0;
};

/* Each kind needs a credit, and without one waits for a grant. */
TEST_P(dcx_match_fc, receiver_stands_still)
{
    for (int kind = 0; kind <= WITH_AM; kind++) {
        m_a.flush(); /* so that the only initiator is available */
        sender &one      = add(kind);
        unsigned credits = dcx_peek_credits(one.ep), before = m_total;
        dcx_deadline deadline;

        SCOPED_TRACE(kind);
        EXPECT_EQ(2u, credits) << "FC_INITIAL";
        while (one.send() == UCS_OK) {
        }
        EXPECT_EQ(credits, one.sent);
        one.send_in_line(500);
        for (unsigned i = 0; i < 100; i++) {
            uct_worker_progress(m_a.worker);
        }
        EXPECT_EQ(credits, one.sent);
        progress_until({&m_a, &m_b}, [&] { return m_total - before == 500; });
    }
}

/* Thousands of messages of all kinds from many endpoints to a receiver that
 * seldom makes progress */
TEST_P(dcx_match_fc, many_endpoints)
{
    unsigned calls = 0;

    for (int i = 0; i < 12; i++) {
        add(i % (WITH_AM + 1)).send_in_line(400);
    }
    progress_until({&m_a}, [&] {
        if (++calls % 20 == 0) {
            uct_worker_progress(m_b.worker);
        }
        return m_total == 12 * 400;
    });
}

/* Messages that match need credits, too, and get grants. */
TEST_P(dcx_match_fc, expected)
{
    constexpr unsigned count = 600;
    unsigned ended = 0, posted = 0;
    std::list<dcx_tag_recv> recvs;
    sender &one = add(SHORT);

    for (; posted < 100; posted++) {
        recvs.emplace_back(m_b, 200);
        recvs.back().then = [&] { ended++; };
        EXPECT_EQ(UCS_OK, recvs.back().post(posted));
    }
    for (int kind : {(int)SHORT, (int)BCOPY, (int)ZCOPY, (int)RNDV}) {
        unsigned begin = one.sent;

        one.kind = kind;
        one.send_in_line(begin + count / 4);
        progress_until({&m_a, &m_b}, [&] {
            while ((posted < one.sent + 50) && (posted < count)) {
                recvs.emplace_back(m_b, 200);
                recvs.back().then = [&] { ended++; };
                EXPECT_EQ(UCS_OK, recvs.back().post(posted++));
            }
            return ended == begin + count / 4;
        });
    }
    EXPECT_EQ(0u, m_total) << "a message was unexpected";
    progress_until({&m_a, &m_b}, [&] {
        return one.end.comp.count == (1 << 30) - (int)count / 2;
    });
}

/* The messages that end rendezvous (FIN) use buffers of the sender without a
 * credit: here there are more of them than buffers. */
TEST_P(dcx_match_fc, more_ends_than_buffers)
{
    constexpr unsigned count = 60;
    auto many                = open_with("UCX_DCX_RX_QUEUE_LEN", "8");
    std::list<dcx_tag_recv> recvs;
    uct_ep_h ep = many->make_ep(m_b);
    tag_source source(*many);
    dcx_deadline deadline;
    dcx_end end;

    end.comp.count = count;
    for (unsigned i = 0; i < count; i++) {
        recvs.emplace_back(m_b, 200);
        EXPECT_EQ(UCS_OK, recvs.back().post(i));
    }
    for (unsigned i = 0; i < count;) {
        i += source.send(RNDV, ep, i, end) == UCS_INPROGRESS;
        deadline.check("credits");
        uct_worker_progress(m_b.worker);
        if (i < 2) {
            continue; /* FC_INITIAL: they need no grant */
        }
        uct_iface_progress(many->iface);
    }
    progress_until({&m_b}, [&] { return recvs.back().has_ended(); });
    progress_until({&m_b, many.get()}, [&] { return end.count == 1; });
    EXPECT_EQ(UCS_OK, end.status);
    EXPECT_EQ(0u, many->errors.size());
    uct_ep_destroy(ep);
}

INSTANTIATE_TEST_SUITE_P(fc, dcx_match_fc, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(one_dci, dcx_match_fc, testing::Values(0));

/* --- peers with other options --------------------------------------------- */

class dcx_match_options : public dcx_match_base {};

/* A peer does not match tags: active messages work in both directions, tagged
 * ones are refused, with a message each. */
TEST_P(dcx_match_options, peer_without)
{
    dcx_loop with;
    auto without   = open_with("UCX_DCX_TM_ENABLE", "n");
    uct_ep_h there = with.make_ep(*without), back = without->make_ep(with);
    tag_source source(with);
    dcx_end end;

    EXPECT_EQ(0u, without->attr.cap.flags & UCT_IFACE_FLAG_TAG_EAGER_SHORT);
    EXPECT_EQ(without->attr.cap.am.max_bcopy, with.attr.cap.am.max_bcopy)
        << "UCP would send messages that do not fit";
    for (unsigned i = 0; i < 100; i++) {
        while (uct_ep_am_short(there, 5, i, "x", 1) == UCS_ERR_NO_RESOURCE) {
            uct_worker_progress(with.worker);
            uct_worker_progress(without->worker);
        }
        while (uct_ep_am_short(back, 5, i, NULL, 0) == UCS_ERR_NO_RESOURCE) {
            uct_worker_progress(with.worker);
            uct_worker_progress(without->worker);
        }
    }
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        std::string line;

        EXPECT_EQ(UCS_ERR_UNSUPPORTED,
                  source.send((tag_kind)kind, there, 5, end))
            << kind;
        line = m_log.take();
        EXPECT_NE(std::string::npos, line.find("UCX_DCX_TM_ENABLE")) << line;
        EXPECT_EQ(1, std::count(line.begin(), line.end(), '\n'));
    }
    progress_until({&with, without.get()}, [&] {
        return (with.received == 100) && (without->received == 100);
    });
    with.flush();
    EXPECT_EQ(0u, end.count);
    uct_ep_destroy(there);
    uct_ep_destroy(back);
    EXPECT_EQ("", m_log.take());
}

/* Messages that are longer than the peer's buffers are refused. Shorter ones
 * arrive, whether they match or not. */
TEST_P(dcx_match_options, peer_with_smaller_buffers)
{
    dcx_loop large;
    auto small = open_with("UCX_DCX_TM_SEG_SIZE", "1000");
    tag_note note(*small);
    uct_ep_h ep = large.make_ep(*small);
    size_t fits = small->attr.cap.tag.eager.max_bcopy;
    tag_source good(large, fits), bad(large, fits + 1);
    dcx_tag_recv recv(*small, fits);
    dcx_end end, never;

    EXPECT_EQ(1000u - 16, fits);
    EXPECT_GT(large.attr.cap.tag.eager.max_bcopy, fits);
    for (tag_kind kind : {BCOPY, ZCOPY}) {
        EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, bad.send(kind, ep, 1, never));
        EXPECT_NE("", m_log.take());
        EXPECT_FALSE(UCS_STATUS_IS_ERR(good.send(kind, ep, 1, end)));
    }
    for (tag_kind kind : {SHORT, RNDV, REQUEST}) {
        EXPECT_FALSE(UCS_STATUS_IS_ERR(bad.send(kind, ep, 1, never)));
    }
    progress_until({&large, small.get()},
                   [&] { return note.tags.size() == 5; });
    EXPECT_EQ(UCS_OK, recv.post(2));
    EXPECT_EQ(UCS_OK, good.send(BCOPY, ep, 2, end));
    progress_until({&large, small.get()}, [&] { return recv.has_ended(); });
    EXPECT_EQ(fits, recv.length);
    EXPECT_EQ(0, memcmp(good.mem.bytes.data(), recv.mem.bytes.data(), fits));
    EXPECT_EQ(0u, never.count);
    uct_ep_destroy(ep);
    EXPECT_EQ(1u, never.count);
    EXPECT_EQ(UCS_ERR_CANCELED, never.status);
    EXPECT_EQ("", m_log.take());
}

/* --- missing resources ---------------------------------------------------- */

/* There is no memory for an operation: it fails, and releases the only
 * initiator. */
TEST_P(dcx_match_options, no_memory)
{
    std::vector<dcx_end> ends(4000);
    dcx_loop dcx;
    uct_ep_h other = dcx.make_ep();
    tag_source source(dcx);
    std::vector<void *> ops;
    ucs_status_t status = UCS_OK;
    tag_note note(dcx);
    unsigned num_ops = 0, sent = 0;
    dcx_end end;

    has_no_more_memory = true;
    while (num_ops < ends.size()) {
        void *op = NULL;

        status = source.send(RNDV, dcx.ep, 1, ends[num_ops], &op);
        if (status == UCS_INPROGRESS) {
            ops.push_back(op);
            num_ops++;
            sent++;
        } else if (status != UCS_ERR_NO_RESOURCE) {
            break;
        }
        uct_worker_progress(dcx.worker);
    }
    has_no_more_memory = false;
    EXPECT_EQ(UCS_ERR_NO_MEMORY, status);
    m_log.take();
    dcx.flush();
    while ((status = source.send(SHORT, other, 2, end)) ==
           UCS_ERR_NO_RESOURCE) {
        uct_worker_progress(dcx.worker);
    }
    EXPECT_EQ(UCS_OK, status);
    progress_until({&dcx}, [&] { return note.tags.size() == sent + 1; });
    for (void *op : ops) {
        EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(dcx.ep, op));
    }
    uct_ep_destroy(other);
}

/* The list has as many entries as reported, and all of them again when they are
 * free. */
TEST_P(dcx_match_options, list_is_full)
{
    auto dcx       = open_with("UCX_DCX_TM_LIST_SIZE", "20");
    unsigned count = dcx->attr.cap.tag.recv.max_outstanding;
    tag_source source(*dcx);
    dcx_end end;

    EXPECT_EQ(20u, count);
    for (unsigned round = 0; round < 50; round++) {
        std::list<dcx_tag_recv> recvs;

        while (recvs.size() < count) {
            recvs.emplace_back(*dcx, 200);
            ASSERT_EQ(UCS_OK, recvs.back().post(recvs.size()));
        }
        dcx_tag_recv extra(*dcx, 200);
        ASSERT_EQ(UCS_ERR_EXCEEDS_LIMIT, extra.post(0));
        for (unsigned i = count; i > 0; i--) {
            while (source.send(SHORT, dcx->ep, i, end) != UCS_OK) {
                uct_worker_progress(dcx->worker);
            }
        }
        progress_until({dcx.get()}, [&] {
            for (auto &recv : recvs) {
                if (!recv.has_ended()) {
                    return false;
                }
            }
            return true;
        });
    }
}

/* The command queue fails. No receive can be posted any longer; canceled
 * receives end, and so do those that the device has not appended. Messages
 * still arrive. */
TEST_P(dcx_match_options, command_queue_fails)
{
    dcx_loop dcx;
    dcx_tag_recv first(dcx, 200), canceled(dcx, 200), second(dcx, 200),
        third(dcx, 200), fourth(dcx, 200);
    dcx_devx_objects objects;
    tag_source source(dcx);
    std::string text;
    dcx_end end;

    EXPECT_EQ(UCS_OK, first.post(1));
    EXPECT_EQ(UCS_OK, canceled.post(2));
    dcx_peek_devx(dcx.iface, &objects);
    devx_mailbox in(16, 0x507), out(16); /* 2ERR_QP */
    in.put(8, objects.cmd_qpn);
    ASSERT_EQ(0, mlx5dv_devx_obj_modify(objects.cmd, in.bytes.data(), 16,
                                        out.bytes.data(), 16));
    EXPECT_EQ(UCS_OK, second.post(3)) << "refused before the queue was polled";
    EXPECT_EQ(UCS_OK, fourth.post(5));
    EXPECT_EQ(UCS_OK, fourth.cancel(true));
    progress_until({&dcx}, [&] { return (text += m_log.take()) != ""; });
    EXPECT_EQ(1, std::count(text.begin(), text.end(), '\n')) << text;
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, third.post(4));

    /* entries in the list may still match, and are not freed */
    while (source.send(SHORT, dcx.ep, 1, end) != UCS_OK) {
        uct_worker_progress(dcx.worker);
    }
    progress_until({&dcx}, [&] { return first.has_ended(); });
    EXPECT_EQ(UCS_OK, first.status);
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, third.post(4));

    EXPECT_EQ(UCS_OK, canceled.cancel(false));
    progress_until({&dcx}, [&] { return canceled.has_ended(); });
    EXPECT_EQ(UCS_ERR_CANCELED, canceled.status);
    EXPECT_EQ(UCS_ERR_IO_ERROR, second.status);
    EXPECT_EQ(1u, second.num_completed);
    EXPECT_FALSE(fourth.has_ended()) << "though it was canceled by force";
    EXPECT_EQ(UCS_OK, uct_ep_am_short(dcx.ep, 5, 0, NULL, 0));
    progress_until({&dcx}, [&] { return dcx.received == 1; });
    EXPECT_EQ("", m_log.take());
}

INSTANTIATE_TEST_SUITE_P(options, dcx_match_options, testing::Values(0));

/* --- sleep ---------------------------------------------------------------- */

/* A process that only sleeps, and makes progress when it is woken */
class dcx_match_sleep : public dcx_match_base {
protected:
    ~dcx_match_sleep()
    {
        if (m_ep != NULL) {
            uct_ep_destroy(m_ep);
        }
        EXPECT_EQ("", m_log.take());
    }

    /* Sleeps until `done`, woken by `events` alone. Makes no progress of the
     * other interface. */
    template <typename F>
    void sleep_until(dcx_loop &loop, unsigned events, F done)
    {
        struct pollfd poll_fd = {};

        poll_fd.events = POLLIN;
        UCT_CALL(uct_iface_event_fd_get(loop.iface, &poll_fd.fd));
        for (;;) {
            while (uct_worker_progress(loop.worker) > 0) {
            }
            if (done()) {
                return;
            }
            ucs_status_t status = uct_iface_event_arm(loop.iface, events);
            if (status == UCS_ERR_BUSY) {
                continue;
            }
            ASSERT_EQ(UCS_OK, status);
            ASSERT_EQ(1, poll(&poll_fd, 1, time_slow(TIME_WAIT)))
                << "nothing has woken it";
            m_wakes++;
        }
    }

    /* Makes progress until `loop` is idle, and armed for `events`. */
    void quiesce(dcx_loop &loop, unsigned events = UCT_EVENT_RECV)
    {
        dcx_deadline deadline;

        while ((uct_worker_progress(loop.worker) > 0) ||
               (uct_iface_event_arm(loop.iface, events) == UCS_ERR_BUSY)) {
            deadline.check("an idle interface");
        }
    }

    bool is_late() const { return GetParam() != 0; }

    dcx_loop m_dcx, m_peer;
    uct_ep_h m_ep = m_peer.make_ep(m_dcx);
    tag_source m_source{m_peer};
    unsigned m_wakes = 0;
    std::list<dcx_end> m_ends; /* m_ep ends unexpected rendezvous at last */
};

/* Each kind of message wakes the receiver, expected or not. */
TEST_P(dcx_match_sleep, message)
{
    tag_note note(m_dcx);

    for (bool is_expected : {true, false}) {
        for (int kind = 0; kind < NUM_KINDS; kind++) {
            dcx_tag_recv recv(m_dcx, 1000);
            dcx_end &end = m_ends.emplace_back();

            SCOPED_TRACE(kind);
            if (is_expected) {
                EXPECT_EQ(UCS_OK, recv.post(1));
                dcx_wait_told(m_dcx);
            }
            note.tags.clear();
            quiesce(m_dcx);
            EXPECT_FALSE(
                UCS_STATUS_IS_ERR(m_source.send((tag_kind)kind, m_ep, 1, end)));
            sleep_until(m_dcx, UCT_EVENT_RECV, [&] {
                return is_expected ? recv.has_ended() : !note.tags.empty();
            });
            EXPECT_EQ(is_expected, note.tags.empty());
            m_peer.flush();
        }
    }
}

/* The data of a rendezvous, which arrives later than the match, wakes the
 * receiver; the FIN wakes the sender. */
TEST_P(dcx_match_sleep, rendezvous)
{
    for (unsigned i = 0; i < 50; i++) {
        dcx_tag_recv recv(m_dcx, 1000);
        dcx_end end;

        EXPECT_EQ(UCS_OK, recv.post(1));
        dcx_wait_told(m_dcx);
        quiesce(m_dcx);
        quiesce(m_peer);
        EXPECT_EQ(UCS_INPROGRESS, m_source.send(RNDV, m_ep, 1, end));
        sleep_until(m_dcx, UCT_EVENT_RECV, [&] { return recv.has_ended(); });
        EXPECT_EQ(UCS_OK, recv.status);
        sleep_until(m_peer, UCT_EVENT_RECV, [&] { return end.count > 0; });
        EXPECT_EQ(UCS_OK, end.status);
    }
    if (is_late()) {
        EXPECT_GT(m_wakes, 50u) << "it did not sleep";
    }
}

TEST_P(dcx_match_sleep, end_of_a_cancel)
{
    for (unsigned i = 0; i < 50; i++) {
        dcx_tag_recv recv(m_dcx, 1000);

        EXPECT_EQ(UCS_OK, recv.post(1));
        quiesce(m_dcx);
        EXPECT_EQ(UCS_OK, recv.cancel(false));
        sleep_until(m_dcx, UCT_EVENT_RECV, [&] { return recv.has_ended(); });
        EXPECT_EQ(UCS_ERR_CANCELED, recv.status);
    }
    if (is_late()) {
        EXPECT_GT(m_wakes, 25u) << "it did not sleep";
    }
}

/* Each kind of message wakes a process that has armed before it was sent. */
TEST_P(dcx_match_sleep, is_woken)
{
    struct pollfd poll_fd = {};
    tag_note note(m_dcx);

    poll_fd.events = POLLIN;
    UCT_CALL(uct_iface_event_fd_get(m_dcx.iface, &poll_fd.fd));
    for (bool is_expected : {true, false}) {
        for (int kind = 0; kind < NUM_KINDS; kind++) {
            dcx_tag_recv recv(m_dcx, 1000);
            dcx_end &end = m_ends.emplace_back();

            SCOPED_TRACE(kind);
            note.tags.clear();
            if (is_expected) {
                EXPECT_EQ(UCS_OK, recv.post(1));
                dcx_wait_told(m_dcx);
            }
            quiesce(m_dcx);
            EXPECT_EQ(0, poll(&poll_fd, 1, 0)) << "an event before the message";
            EXPECT_FALSE(
                UCS_STATUS_IS_ERR(m_source.send((tag_kind)kind, m_ep, 1, end)));
            EXPECT_EQ(1, poll(&poll_fd, 1, time_slow(TIME_WAIT)));
            progress_until({&m_dcx, &m_peer}, [&] {
                return is_expected ? recv.has_ended() : !note.tags.empty();
            });
        }
    }
}

INSTANTIATE_TEST_SUITE_P(sleep, dcx_match_sleep, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_match_sleep, testing::Values(1));

} // namespace

int main(int argc, char **argv)
{
    /* A repeated request uses a buffer, too, after eight of these times: longer
     * than a receiver pauses on a busy machine under valgrind. */
    const std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_TM_ENABLE", "y"},      {"UCX_DCX_RNR_RETRY_COUNT", "0"},
        {"UCX_DCX_RX_QUEUE_LEN", "64"},  {"UCX_DCX_FC_WINDOW", "8"},
        {"UCX_DCX_FC_INITIAL", "2"},     {"UCX_DCX_FC_RESEND_TIMEOUT", "100ms"},
        {"UCX_DCX_TM_SEG_SIZE", "8250"}, /* with all 64 buffers */
    };
    auto one_dci = env, options = env, sleep = env;

    one_dci.push_back({"UCX_DCX_NUM_DCI", "1"});
    options.push_back({"UCX_DCX_NUM_DCI", "1"});
    options.push_back({"UCX_DCX_FC_ENABLE", "n"});
    options.push_back({"UCX_DCX_RX_QUEUE_LEN", "4096"});
    sleep.push_back({"UCX_DCX_FC_ENABLE", "n"});
    auto late = sleep;
    late.push_back({"SOFTHCA_DELAY", "2000"});
    return hca_test_main(argc, argv,
                         {{"fc", env},
                          {"one_dci", one_dci},
                          {"options", options},
                          {"sleep", sleep},
                          {"late", late}});
}
