/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The arithmetic of flow control, without a device. The model at the end plays
 * receivers that stand still and senders that take all they get.
 */
#include "uct/dcx/dcx_credit.h"

#include <gtest/gtest.h>
#include <deque>
#include <random>
#include <vector>

namespace {

const unsigned automatic = UCT_DCX_CREDIT_AUTO;

TEST(dcx_credit, sizes)
{
    auto sizes = uct_dcx_credit_sizes(1024, automatic, automatic, 0.25);

    EXPECT_EQ(64, sizes.window);
    EXPECT_EQ(8, sizes.initial);
    EXPECT_EQ(16, sizes.reserve);
    EXPECT_EQ(512, sizes.limit);

    sizes = uct_dcx_credit_sizes(4, automatic, automatic, 0.9);
    EXPECT_EQ(1, sizes.window);
    EXPECT_EQ(1, sizes.initial);
    EXPECT_EQ(0, sizes.reserve);
    EXPECT_EQ(2, sizes.limit);

    sizes = uct_dcx_credit_sizes(1024, 10, 0, 0.5);
    EXPECT_EQ(10, sizes.window);
    EXPECT_EQ(0, sizes.initial);
    EXPECT_EQ(5, sizes.reserve);
}

TEST(dcx_credit, split)
{
    for (unsigned total = 0; total < 40; total++) {
        auto credit = uct_dcx_credit_split(total, 16);

        EXPECT_EQ(total, credit.left + credit.reserve) << "nothing is lost";
        EXPECT_LE(credit.reserve, 16);
        EXPECT_TRUE((credit.left == 0) || (credit.reserve == 16));
    }
}

/* An account of a receiver that promises 'limit', and 'least' at a time */
uct_dcx_credit_book_t
open_book(unsigned limit, unsigned least, uint32_t received)
{
    uct_dcx_credit_sizes_t sizes = {.window  = 1,
                                    .initial = (uint16_t)least,
                                    .reserve = 0,
                                    .limit   = (uint16_t)limit};

    return uct_dcx_credit_open(&sizes, received);
}

/* What it gives, 0 if it has to wait */
unsigned give(uct_dcx_credit_book_t *book, uint32_t received, unsigned want,
              unsigned crowd)
{
    return uct_dcx_credit_has_room(book, received, want) ?
           uct_dcx_credit_grant(book, received, want, crowd) : 0;
}

/* Grants of one size until there are no more; returns how many */
unsigned
count_grants(uct_dcx_credit_book_t *book, unsigned crowd, unsigned size)
{
    unsigned sum = uct_dcx_credit_out(book, 0), count = 0, grant;

    while ((grant = give(book, 0, 48, crowd)) > 0) {
        EXPECT_EQ(size, grant);
        sum += grant;
        EXPECT_EQ(sum, uct_dcx_credit_out(book, 0));
        count++;
    }
    EXPECT_LE(sum, 512u);
    return count;
}

/* Few are given what they ask for. */
TEST(dcx_credit, few)
{
    uct_dcx_credit_book_t book = open_book(512, 8, 0);

    for (unsigned i = 0; i < 10; i++) {
        EXPECT_EQ(48u, give(&book, 0, 48, i));
    }
    EXPECT_EQ(32u, give(&book, 0, 48, 10)) << "the rest";
    EXPECT_EQ(0u, give(&book, 0, 48, 10));
    EXPECT_EQ(0u, give(&book, 7, 48, 10)) << "not worth it";
    EXPECT_EQ(8u, give(&book, 8, 48, 10));
}

/* ... more of them the same share each */
TEST(dcx_credit, shares)
{
    for (unsigned crowd = 11; crowd <= 64; crowd++) {
        uct_dcx_credit_book_t book = open_book(512, 8, 0);
        unsigned share = 512 / crowd, count = 512 / share;

        for (unsigned i = 0; i < count; i++) {
            EXPECT_EQ(share, give(&book, 0, 48, crowd));
        }
        EXPECT_LE(crowd, count) << "enough for all";
    }
}

/* ... and in a crowd there is not enough for all: turns worth a request */
TEST(dcx_credit, turns)
{
    uct_dcx_credit_book_t book = open_book(512, 8, 0);

    EXPECT_EQ(3u, give(&book, 0, 3, 65)) << "as asked for";
    EXPECT_EQ((512u - 3) / 8, count_grants(&book, 65, 8));
    EXPECT_EQ(8u, give(&book, 8, 48, 100000));
    EXPECT_EQ(0u, give(&book, 8, 48, 100000));
}

/* Who asks is counted by and by, and forgotten likewise. */
TEST(dcx_credit, crowd)
{
    uct_dcx_credit_crowd_t crowd = {};
    std::mt19937 random(3);

    for (unsigned size : {1, 10, 100, 1000, 100, 10, 1}) {
        std::vector<uint32_t> who(size);

        for (auto &w : who) {
            w = random();
        }
        for (unsigned i = 0; i < 2 * UCT_DCX_CREDIT_WINDOW; i++) {
            uct_dcx_credit_crowd_add(&crowd, who[i % size]);
        }
        EXPECT_LE(uct_dcx_credit_crowd_size(&crowd), size);
        EXPECT_GE(uct_dcx_credit_crowd_size(&crowd), size / 2);
    }
}

/* By default a turn is a quarter of the window, and no less than what an
 * endpoint begins with. */
TEST(dcx_credit, least)
{
    auto sizes = uct_dcx_credit_sizes(1023, 64, automatic, 0.25);
    auto book  = uct_dcx_credit_open(&sizes, 0);

    EXPECT_EQ(16u, give(&book, 0, 48, 100));
    sizes = uct_dcx_credit_sizes(1023, 64, 40, 0.25);
    book  = uct_dcx_credit_open(&sizes, 0);
    EXPECT_EQ(40u, give(&book, 0, 48, 100));
}

TEST(dcx_credit, least_is_never_too_much)
{
    uct_dcx_credit_book_t book = open_book(2, 8, 0);

    EXPECT_EQ(2u, give(&book, 0, 64, 0)) << "all there is";
    EXPECT_EQ(0u, give(&book, 0, 64, 0));
    EXPECT_EQ(2u, give(&book, 2, 64, 5000));
    EXPECT_EQ(1u, give(&book, 4, 1, 0)) << "what was wanted";
    book = open_book(2, 0, 0);
    EXPECT_EQ(1u, give(&book, 0, 1, 5000));
}

/* Messages that nobody was promised do not make room for a promise. */
TEST(dcx_credit, other_messages)
{
    uct_dcx_credit_book_t book = open_book(100, 1, 0);

    EXPECT_EQ(25u, give(&book, 0, 64, 4));
    uct_dcx_credit_skip(&book, 1);
    EXPECT_EQ(25u, uct_dcx_credit_out(&book, 1));
    EXPECT_EQ(0u, uct_dcx_credit_out(&book, 26));
    EXPECT_EQ(0u, uct_dcx_credit_out(&book, 500));
    uct_dcx_credit_skip(&book, 500);
    EXPECT_EQ(0u, uct_dcx_credit_out(&book, 500));
    uct_dcx_credit_promise(&book, 500, 7);
    EXPECT_EQ(7u, uct_dcx_credit_out(&book, 500));
}

TEST(dcx_credit, forgiven)
{
    uct_dcx_credit_book_t book = open_book(16, 16, 0);
    unsigned rounds = 0;

    uct_dcx_credit_promise(&book, 0, 16);
    EXPECT_EQ(0u, give(&book, 0, 64, 0));
    while (give(&book, 0, 64, 0) == 0) {
        uct_dcx_credit_forgive(&book, 0);
        ASSERT_LT(rounds++, 6u) << "somebody waits for ever";
    }
}

/* The clock is looked at when nothing that was promised has come between two
 * calls. */
TEST(dcx_credit, quiet)
{
    uct_dcx_credit_book_t book = open_book(64, 4, 5);
    uct_dcx_credit_quiet_t quiet;
    const uint64_t patience = 100;

    uct_dcx_credit_promise(&book, 5, 3);
    uct_dcx_credit_listen(&quiet, &book, 5);
    EXPECT_FALSE(uct_dcx_credit_heard(&quiet, &book, 5));
    EXPECT_FALSE(uct_dcx_credit_is_quiet(&quiet, 1000, patience))
            << "from now on";
    EXPECT_FALSE(uct_dcx_credit_is_quiet(&quiet, 1099, patience));
    EXPECT_TRUE(uct_dcx_credit_is_quiet(&quiet, 1100, patience));
    EXPECT_FALSE(uct_dcx_credit_is_quiet(&quiet, 1199, patience))
            << "once in each interval";
    EXPECT_TRUE(uct_dcx_credit_is_quiet(&quiet, 1200, patience));

    uct_dcx_credit_skip(&book, 6);
    EXPECT_FALSE(uct_dcx_credit_heard(&quiet, &book, 6)) << "a request";
    EXPECT_TRUE(uct_dcx_credit_heard(&quiet, &book, 7)) << "a message";
    EXPECT_FALSE(uct_dcx_credit_heard(&quiet, &book, 7));
    EXPECT_FALSE(uct_dcx_credit_is_quiet(&quiet, 5000, patience))
            << "what was before does not count";
    EXPECT_FALSE(uct_dcx_credit_is_quiet(&quiet, 5099, patience));
    EXPECT_TRUE(uct_dcx_credit_is_quiet(&quiet, 5100, patience));

    uct_dcx_credit_listen(&quiet, &book, 7);
    EXPECT_FALSE(uct_dcx_credit_is_quiet(&quiet, 9000, patience)) << "anew";
}

TEST(dcx_credit, count_runs_over)
{
    uint32_t received = UINT32_MAX - 2;
    uct_dcx_credit_book_t book = open_book(64, 1, received);

    EXPECT_EQ(16u, give(&book, received, 64, 4));
    EXPECT_EQ(16u, uct_dcx_credit_out(&book, received));
    EXPECT_EQ(11u, uct_dcx_credit_out(&book, received + 5));
    EXPECT_EQ(0u, uct_dcx_credit_out(&book, received + 17));
}

/* A receiver's queue; senders that send as soon as they may. With `peers`
 * endpoints the queue never holds more than it has room for. */
class dcx_credit_model {
public:
    dcx_credit_model(unsigned queue_len, unsigned peers) :
        m_sizes(uct_dcx_credit_sizes(queue_len, automatic, automatic, 0.25)),
        m_book(uct_dcx_credit_open(&m_sizes, 0)), m_peers(peers)
    {
        for (auto &peer : m_peers) {
            peer.credit = {m_sizes.initial, 0};
        }
    }

    void send(unsigned index)
    {
        auto &peer = m_peers[index];

        if ((peer.credit.left == 0) && !peer.asked) {
            peer.asked          = true;
            peer.credit.left    = peer.credit.reserve;
            peer.credit.reserve = 0;
            m_queue.push_back({index, true,
                               0u + m_sizes.window - peer.credit.left});
        }
        if (peer.credit.left > 0) {
            peer.credit.left--;
            peer.sent++;
            m_queue.push_back({index, false, 0});
        }
        most = std::max<size_t>(most, m_queue.size());
    }

    void receive()
    {
        if (m_queue.empty()) {
            return;
        }

        message got = m_queue.front();

        m_queue.pop_front();
        m_received++;
        if (got.is_request) {
            uct_dcx_credit_skip(&m_book, m_received);
            uct_dcx_credit_crowd_add(&m_crowd, got.from);
            m_held.push_back(got);
        }
        answer();
    }

    void answer()
    {
        while (!m_held.empty()) {
            message ask   = m_held.front();
            auto &peer    = m_peers[ask.from];
            unsigned got  = give(&m_book, m_received, ask.want,
                                 uct_dcx_credit_crowd_size(&m_crowd));

            if (got == 0) {
                break;
            }
            m_held.pop_front();
            peer.credit = uct_dcx_credit_split(peer.credit.left + got,
                                               m_sizes.reserve);
            EXPECT_LE(peer.credit.left + peer.credit.reserve, m_sizes.window);
            peer.asked  = false;
        }
    }

    /* Nothing can be granted, and nothing is on the way */
    bool is_stuck() const
    {
        return m_queue.empty() && !m_held.empty();
    }

    void forgive()
    {
        uct_dcx_credit_forgive(&m_book, m_received);
        answer();
    }

    unsigned sent(unsigned index) const
    {
        return m_peers[index].sent;
    }

    size_t most = 0; /* messages in the queue at a time */

private:
    struct message {
        unsigned from;
        bool     is_request;
        unsigned want;
    };

    struct sender {
        uct_dcx_credit_t credit;
        bool             asked = false;
        unsigned         sent = 0;
    };

    uct_dcx_credit_sizes_t m_sizes;
    uct_dcx_credit_book_t  m_book;
    uct_dcx_credit_crowd_t m_crowd = {};
    std::vector<sender>    m_peers;
    std::deque<message>    m_queue, m_held;
    uint32_t               m_received = 0;
};

/* The guarantee of docs/dcx.md: (initial + 2) for each endpoint are no more
 * than half of the queue. The receiver stands still for a random time. Nothing
 * is written off: where it would be, those who have credits use them. */
TEST(dcx_credit, never_more_than_there_is)
{
    const unsigned queue_len = 1024, peers = 51;
    std::mt19937 random(1);

    dcx_credit_model model(queue_len, peers);
    for (unsigned round = 0; round < 3000; round++) {
        for (unsigned n = random() % 4000; n > 0; n--) {
            model.send(random() % peers);
        }
        for (unsigned n = random() % 400; n > 0; n--) {
            model.receive();
        }
        for (unsigned n = 0; model.is_stuck() && (n < peers); n++) {
            model.send(n);
        }
    }
    EXPECT_LE(model.most, queue_len);
    EXPECT_GT(model.most, queue_len / 2) << "the model is too timid";
}

/* With more of them than that, somebody may have to wait for credits that
 * others do not use. That has an end. */
TEST(dcx_credit, idle_ones_hold_up_nobody)
{
    const unsigned peers = 500;
    dcx_credit_model model(1024, peers);
    unsigned rounds = 0;

    for (unsigned i = 0; i < peers; i++) {
        while (model.sent(i) < 100) {
            model.send(i);
            model.receive();
            if (model.is_stuck()) {
                model.forgive();
            }
            ASSERT_LT(rounds++, 100 * peers * 4);
        }
    }
}

TEST(dcx_credit, all_get_alike)
{
    const unsigned peers = 51;
    dcx_credit_model model(1024, peers);
    unsigned least = UINT_MAX, most = 0;

    for (unsigned round = 0; round < 200000; round++) {
        model.send(round % peers);
        model.send((round * 7) % peers);
        model.receive();
    }
    for (unsigned i = 0; i < peers; i++) {
        least = std::min(least, model.sent(i));
        most  = std::max(most, model.sent(i));
    }
    EXPECT_LT(most, 2 * least);
}

} /* namespace */
