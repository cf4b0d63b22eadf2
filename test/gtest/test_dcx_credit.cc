/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Computation of credits for flow control, without a device. The model at the
 * end simulates receivers that make no progress, and senders that use all their
 * credits, pause, or end.
 */
/* a C header: a function may have the name of a structure */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "uct/dcx/base/dcx_credit.h"
#pragma GCC diagnostic pop

#include <gtest/gtest.h>
#include <algorithm>
#include <climits>
#include <deque>
#include <random>
#include <vector>

namespace {

const unsigned automatic = UCT_DCX_CREDIT_AUTO;

TEST(dcx_credit, sizes)
{
    auto bank = uct_dcx_credit_bank(1024, 1024, automatic, automatic);

    EXPECT_EQ(10 + 409 / 2, bank.window);
    EXPECT_EQ(10, bank.base);
    EXPECT_EQ(409, bank.size);
    EXPECT_EQ(7, bank.share);

    bank = uct_dcx_credit_bank(4, 4, automatic, automatic);
    EXPECT_EQ(1, bank.window);
    EXPECT_EQ(1, bank.base);
    EXPECT_EQ(1, bank.size);

    bank = uct_dcx_credit_bank(1024, 1024, 10, 0);
    EXPECT_EQ(10, bank.window);
    EXPECT_EQ(0, bank.base);

    bank = uct_dcx_credit_bank(1024, 1024, 1024, 8);
    EXPECT_EQ(2, bank.share) << "one endpoint can be granted the whole bank";
}

/* With longer buffers, of which there are half as many, an endpoint that is
 * alone, or beside few others, can send as many messages. */
TEST(dcx_credit, fewer_buffers)
{
    auto all  = uct_dcx_credit_bank(1024, 1024, automatic, automatic);
    auto half = uct_dcx_credit_bank(512, 1024, automatic, automatic);

    EXPECT_EQ(5, half.base);
    EXPECT_EQ(307, half.size) << "two fifths of the buffers are for bases";
    EXPECT_GE(half.window + 5, all.window);
    EXPECT_EQ(204, uct_dcx_credit_offer(&half));
    half.granted[0] = 204;
    all.granted[0]  = 204;
    EXPECT_GT(uct_dcx_credit_offer(&half), 2 * uct_dcx_credit_offer(&all) / 3);
}

uct_dcx_credit_bank_t open_bank(unsigned queue_len)
{
    return uct_dcx_credit_bank(queue_len, queue_len, automatic, automatic);
}

struct grant {
    unsigned credits;
    uct_dcx_credit_extra_t extra;
};

unsigned granted(const uct_dcx_credit_bank_t &bank)
{
    return bank.granted[0] + bank.granted[1];
}

/* Requests credits for an endpoint that has `left` credits, and returns `extra`
 * of an earlier grant. */
grant request(uct_dcx_credit_bank_t &bank, unsigned left = 0,
              uct_dcx_credit_extra_t extra = {})
{
    unsigned credits;

    uct_dcx_credit_return(&bank, extra);
    credits = uct_dcx_credit_grant(&bank, left, uct_dcx_credit_offer(&bank),
                                   &extra);
    return {credits, extra};
}

/* A single endpoint gets the whole window, repeatedly. */
TEST(dcx_credit, alone)
{
    auto bank  = open_bank(1024);
    auto grant = request(bank);

    for (unsigned i = 0; i < 3 * UCT_DCX_CREDIT_EPOCH; i++) {
        EXPECT_EQ(204, grant.extra.credits);
        EXPECT_EQ(204u, granted(bank));
        grant = request(bank, 51, grant.extra);
        EXPECT_EQ(214u - 51, grant.credits);
    }
}

/* An endpoint gets less than the window if another one has extra credits. */
TEST(dcx_credit, no_longer_alone)
{
    auto bank  = open_bank(1024);
    auto first = request(bank), second = request(bank);

    EXPECT_EQ((409 - 204) / 7, second.extra.credits);
    first = request(bank, 51, first.extra);
    EXPECT_EQ((409 - 29) / 7, first.extra.credits);
    bank  = uct_dcx_credit_bank(1024, 1024, 64, automatic);
    first = request(bank);
    EXPECT_EQ(54, first.extra.credits) << "not the window of the option";
}

/* A large base leaves extra credits for more than the first endpoint. */
TEST(dcx_credit, large_base)
{
    for (unsigned base : {10, 11, 64, 100, 200, 500, 818}) {
        auto bank  = uct_dcx_credit_bank(1023, 1023, automatic, base);
        auto first = request(bank), second = request(bank);

        EXPECT_EQ(409 / 2, first.extra.credits);
        EXPECT_GE(second.extra.credits, 205 / 7) << base;
        EXPECT_GE(bank.share, 2);
        EXPECT_LE(bank.share, 7);
        EXPECT_LE(first.credits, bank.window);
    }
    EXPECT_EQ(6, uct_dcx_credit_bank(1023, 1023, automatic, 0).share);
}

/* Many endpoints converge to equal credits, in any order of arrival. */
TEST(dcx_credit, shares)
{
    for (unsigned count : {2, 5, 10, 50, 100, 1000}) {
        auto bank = open_bank(1024);
        std::vector<struct grant> grants(count);
        unsigned least = UINT_MAX, most = 0, share = 409 / (count + 6);

        for (unsigned round = 0; round < 40; round++) {
            for (auto &grant : grants) {
                grant = request(bank, 0, grant.extra);
                EXPECT_LE(granted(bank), 409u);
            }
        }
        for (auto &grant : grants) {
            EXPECT_EQ(10u + grant.extra.credits, grant.credits);
            least = std::min<unsigned>(least, grant.extra.credits);
            most  = std::max<unsigned>(most, grant.extra.credits);
        }
        EXPECT_LE(most, least + 3);
        EXPECT_GE(least + 3, std::min(share, 54u)) << count;
    }
}

/* The base is always granted, and at least one credit, even if others have all
 * extra ones. */
TEST(dcx_credit, base)
{
    auto bank = open_bank(1024);

    for (unsigned i = 0; i < 10000; i++) {
        EXPECT_GE(request(bank).credits, 10u);
    }
    EXPECT_LE(granted(bank), 409u);
    EXPECT_EQ(10u, request(bank).credits) << "not the base of an empty bank";
    EXPECT_EQ(7u, request(bank, 3).credits) << "not up to the base";

    bank = uct_dcx_credit_bank(4, 4, 4, 0);
    for (unsigned i = 0; i < 10; i++) {
        EXPECT_GE(request(bank).credits, 1u);
    }
}

/* Credits beyond the base that an endpoint still has count as its extra ones,
 * and no more are granted. */
TEST(dcx_credit, remaining_credits_count)
{
    auto bank = open_bank(1024);
    auto last = request(bank);

    while (request(bank).extra.credits > 0) {
    }
    last = request(bank, 60, last.extra);
    EXPECT_EQ(50, last.extra.credits);
    EXPECT_EQ(0u, last.credits);
    EXPECT_LE(granted(bank), 409u);
}

/* While others lack credits, extra credits that are not returned are written
 * off at the end of the epoch after theirs. */
TEST(dcx_credit, extra_credits_are_written_off)
{
    auto bank         = open_bank(1024);
    auto idle         = request(bank);
    unsigned requests = 0;

    while (uct_dcx_credit_offer(&bank) >= bank.base) {
        request(bank); /* from an endpoint that ends */
    }

    unsigned out = granted(bank);
    auto busy    = request(bank);

    while (granted(bank) >= out) {
        busy = request(bank, 0, busy.extra);
        requests++;
    }
    EXPECT_EQ(2 * UCT_DCX_CREDIT_EPOCH, requests + 1);
    EXPECT_EQ(busy.extra.credits, granted(bank));
    idle = request(bank, 0, idle.extra);
    EXPECT_EQ(busy.extra.credits + idle.extra.credits, granted(bank))
        << "credits that were written off were returned, too";
}

/* The number of the epoch wraps around. */
TEST(dcx_credit, epoch_wraps_around)
{
    auto bank = open_bank(1024);
    uct_dcx_credit_extra_t old, next;

    bank.epoch    = UINT16_MAX;
    bank.requests = UCT_DCX_CREDIT_EPOCH - 2;
    uct_dcx_credit_grant(&bank, 0, 5, &old);
    uct_dcx_credit_grant(&bank, 0, 7, &next);
    EXPECT_EQ(UINT16_MAX, old.epoch);
    EXPECT_EQ(0, next.epoch);
    uct_dcx_credit_return(&bank, old);
    EXPECT_EQ(7u, granted(bank));
    uct_dcx_credit_return(&bank, next);
    EXPECT_EQ(0u, granted(bank));
}

/* A receiver's queue, and senders with flow control. A message enters the queue
 * at once. A grant takes effect when its sender takes it. */
class dcx_credit_model {
public:
    dcx_credit_model(unsigned queue_len, unsigned peers) :
        m_bank(open_bank(queue_len)), m_peers(peers)
    {
        for (auto &peer : m_peers) {
            peer.credits = m_bank.base;
        }
    }

    /* Sends a message if the sender has a credit; requests more if it has
     * none. */
    void send(unsigned index)
    {
        sender &peer = m_peers[index];

        if ((peer.credits == 0) && !peer.asked) {
            peer.credits = peer.reserve;
            peer.asked   = true;
            m_queue.push_back({index, true, peer.credits, peer.extra});
        }
        if (peer.credits > 0) {
            peer.credits--;
            peer.sent++;
            m_queue.push_back({index, false, 0, {}});
        }
        most = std::max(most, m_queue.size());
    }

    /* Takes the sender's oldest grant, if it has one. The buffers that grants
     * need in the sender's own queue are not simulated. */
    void take_grant(unsigned index)
    {
        sender &peer = m_peers[index];
        unsigned credits;

        if (peer.grants.empty()) {
            return;
        }
        credits      = peer.credits + peer.grants.front().credits;
        peer.extra   = peer.grants.front().extra;
        peer.reserve = std::min(credits, std::max(peer.extra.credits / 4u, 1u));
        peer.credits = credits - peer.reserve;
        peer.asked   = false;
        peer.grants.pop_front();
        EXPECT_LE(credits, m_bank.window);
    }

    void receive()
    {
        if (m_queue.empty()) {
            return;
        }

        message got = m_queue.front();

        m_queue.pop_front();
        if (got.is_request) {
            m_peers[got.from].grants.push_back(
                request(m_bank, got.left, got.extra));
            /* the rest of credits that were written off is granted again */
            EXPECT_LE(granted(m_bank), m_bank.size + m_bank.window / 4u);
        }
    }

    /* Ends the endpoint, which returns none of its credits, after the receiver
     * has got all messages. A new one takes its place. */
    void replace(unsigned index)
    {
        unsigned base = m_bank.base;

        receive_all();
        m_peers[index]         = {};
        m_peers[index].credits = base;
    }

    void receive_all()
    {
        while (!m_queue.empty()) {
            receive();
        }
    }

    unsigned extra(unsigned index) const
    {
        return m_peers[index].extra.credits;
    }

    unsigned sent(unsigned index) const { return m_peers[index].sent; }

    size_t most = 0; /* maximum of messages in the queue */

private:
    struct message {
        unsigned from;
        bool is_request;
        unsigned left;
        uct_dcx_credit_extra_t extra;
    };

    struct sender {
        unsigned credits = 0, reserve = 0, sent = 0;
        uct_dcx_credit_extra_t extra = {};
        bool asked                   = false;
        std::deque<grant> grants;
    };

    uct_dcx_credit_bank_t m_bank;
    std::vector<sender> m_peers;
    std::deque<message> m_queue;
};

/* Checks the guarantee of docs/dcx.md for 51 endpoints: base + 2 buffers for
 * each are no more than 3/5 of the queue. One of the two is for a grant in the
 * other direction, and stays free here. The receiver pauses at random. Some
 * senders use all credits, some pause for long with theirs, some end. */
TEST(dcx_credit, never_more_than_the_queue_holds)
{
    const unsigned queue_len = 1024, peers = 51;

    for (unsigned seed = 0; seed < 5; seed++) {
        std::mt19937 random(seed);
        dcx_credit_model model(queue_len, peers);
        std::vector<unsigned> active(peers);

        for (unsigned round = 0; round < 500; round++) {
            if (round % 20 == 0) {
                for (auto &one : active) {
                    one = random() % 3; /* idle, sometimes, always */
                }
            }
            if (random() % 50 == 0) {
                model.replace(random() % peers);
            }
            for (unsigned n = random() % 6000; n > 0; n--) {
                unsigned one = random() % peers;

                if (random() % 2 < active[one]) {
                    model.take_grant(one);
                    model.send(one);
                }
            }
            for (unsigned n = random() % 2000; n > 0; n--) {
                model.receive();
            }
        }
        EXPECT_LE(model.most, queue_len - peers) << "seed " << seed;
        EXPECT_GT(model.most, queue_len / 2) << "the model is too timid";
    }
}

/* Each sender keeps its extra credits until all have them; then all send while
 * the receiver makes no progress. */
TEST(dcx_credit, all_at_once)
{
    const unsigned queue_len = 1024, peers = 51;
    dcx_credit_model model(queue_len, peers);

    for (unsigned i = 0; i < peers; i++) {
        for (unsigned n = 0; n < 11; n++) {
            model.send(i);
        }
        model.receive_all();
        model.take_grant(i);
    }
    for (unsigned i = 0; i < peers; i++) {
        for (unsigned n = 0; n < 300; n++) {
            model.send(i);
        }
    }
    EXPECT_LE(model.most, queue_len - peers);
    EXPECT_GT(model.most, queue_len * 9 / 10) << "the model is too timid";
}

/* Idle endpoints with extra credits do not keep them from ten others. */
TEST(dcx_credit, idle_endpoints_keep_no_extra_credits)
{
    const unsigned peers = 50, busy = 10;
    dcx_credit_model model(1024, peers);

    for (unsigned i = 0; i < peers; i++) {
        for (unsigned n = 0; n < 200; n++) {
            model.send(i);
            model.receive_all();
            model.take_grant(i);
        }
    }
    for (unsigned n = 0; n < 2500 * busy; n++) {
        unsigned i = peers - 1 - n % busy;

        model.send(i);
        model.receive_all();
        model.take_grant(i);
    }
    for (unsigned i = peers - busy; i < peers; i++) {
        EXPECT_LE(409 / (busy + 6) - 3, model.extra(i));
    }
}

/* Three endpoints that send whenever they can do not keep the others, each of
 * which sends 4000 times, from their credits. */
TEST(dcx_credit, greedy_endpoints_leave_credits_to_others)
{
    for (unsigned peers : {5, 51, 500}) {
        dcx_credit_model model(1024, peers);

        for (unsigned n = 0; n < 4000 * peers; n++) {
            unsigned greedy = n % 3, one = n % peers;

            model.take_grant(greedy);
            model.send(greedy);
            model.take_grant(one);
            model.send(one);
            model.receive();
            model.receive();
        }
        for (unsigned i = 3; i < peers; i++) {
            EXPECT_LT(3900u, model.sent(i)) << i << " of " << peers;
        }
    }
}

} /* namespace */
